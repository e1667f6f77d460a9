//! One build: the page and the Worker, prepared beside the running ones and
//! then put in place together.
//!
//! Invariant: a failed build changes nothing that is being served.

use std::path::PathBuf;
use std::thread;

use anyhow::Result;

use crate::page;
use crate::prerequisites;
use crate::project::{Profile, Project};
use crate::publish;
use crate::site;
use crate::sizes;
use crate::tools;
use crate::worker;

/// A build that is finished but not in its place.
pub(crate) struct Prepared {
    worker: worker::Built,
    site: site::Built,
}

impl Prepared {
    /// Whether anything differs from what is in place.
    pub(crate) fn is_new(&self) -> bool {
        self.worker.is_new() || self.site.is_new()
    }

    pub(crate) fn install(self, project: &Project, profile: Profile) -> Result<()> {
        self.worker.install(project, profile)?;
        self.site.install(project, profile)
    }
}

/// `cargo xtask build`: sets up, builds, and says how large it is.
pub(crate) fn build(project: &Project, profile: Profile) -> Result<()> {
    prerequisites::ensure(project)?;
    prepare(project, profile)?.install(project, profile)?;
    if profile == Profile::Release {
        sizes::report(project)?;
    }
    Ok(())
}

/// Compiles what has changed. Prerequisites must be there.
pub(crate) fn prepare(project: &Project, profile: Profile) -> Result<Prepared> {
    let (worker, page) = match profile {
        // One cargo profile: the second would only wait for the first.
        Profile::Dev => (worker::compile(project, profile)?, page::compile(project, profile)?),
        Profile::Release => compile_together(project)?,
    };
    let published = publish::run(project)?;
    let site = site::assemble(project, profile, &page, &published, worker.digest())?;
    Ok(Prepared { worker, site })
}

/// Both at once: they have a cargo profile each, and the longest part of each,
/// optimizing the whole program, keeps one core busy.
fn compile_together(project: &Project) -> Result<(worker::Built, PathBuf)> {
    // First, because cargo would install the same tool for both.
    tools::WASM_BINDGEN.ensure(project)?;
    thread::scope(|scope| {
        let page = scope.spawn(|| page::compile(project, Profile::Release));
        let worker = worker::compile(project, Profile::Release);
        let page = page.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok((worker?, page?))
    })
}
