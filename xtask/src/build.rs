//! One build: the page and the Worker, prepared beside the running ones and
//! then put in place together.
//!
//! Invariant: a failed build changes nothing that is being served.

use anyhow::Result;

use crate::page;
use crate::prerequisites;
use crate::project::{Profile, Project};
use crate::publish;
use crate::site;
use crate::sizes;
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
    let worker = worker::compile(project, profile)?;
    let page = page::compile(project, profile)?;
    let published = publish::run(project)?;
    let site = site::assemble(project, profile, &page, &published, worker.digest())?;
    Ok(Prepared { worker, site })
}
