//! The Worker: worker-build, with the tools it would otherwise download.
//!
//! Invariant: the finished Worker appears in one step, so that nobody ever runs
//! half of a build.

use std::fs;

use anyhow::{Context as _, Result};

use crate::fingerprint::{Fingerprint, MANIFESTS, Stamp};
use crate::install;
use crate::progress;
use crate::project::{Profile, Project};
use crate::tools;

const SOURCES: &[&str] = &["worker/src", "worker/Cargo.toml", "worker/protocol", "lessons"];

/// A built Worker that is not in its place yet.
pub(crate) struct Built {
    stamp: Stamp,
    /// `None`: nothing had changed, what is in place is current.
    next: Option<std::path::PathBuf>,
}

impl Built {
    pub(crate) fn digest(&self) -> &str {
        self.stamp.digest()
    }

    pub(crate) fn is_new(&self) -> bool {
        self.next.is_some()
    }

    /// Puts it where it is run from.
    pub(crate) fn install(self, project: &Project, profile: Profile) -> Result<()> {
        if let Some(next) = self.next {
            install::folder(project, &next, &project.worker_build(profile))?;
            self.stamp.write()?;
        }
        Ok(())
    }
}

/// Builds the Worker if its sources have changed.
pub(crate) fn compile(project: &Project, profile: Profile) -> Result<Built> {
    let digest = Fingerprint::new(concat!(file!(), " 1"))
        .inputs(project, MANIFESTS)?
        .inputs(project, SOURCES)?
        .text(profile.worker())
        .finish();
    let stamp = Stamp::new(project, &format!("worker-{}", profile.name()), digest);
    let label = format!("worker ({})", profile.worker());
    if stamp.is_fresh(&project.worker_build(profile).join("index.js")) {
        progress::unchanged(&label);
        return Ok(Built { stamp, next: None });
    }

    let worker_build = tools::WORKER_BUILD.ensure(project)?;
    let wasm_bindgen = tools::WASM_BINDGEN.ensure(project)?;
    let next = project.scratch(profile.name()).join("worker-next");
    install::remove(&next)?;
    fs::create_dir_all(&next).with_context(|| format!("cannot create {}", next.display()))?;
    let mut command = project.command(worker_build);
    command
        .current_dir(project.path("worker"))
        .env("WASM_BINDGEN_BIN", wasm_bindgen)
        .env("WASM_OPT_BIN", project.node_bin("wasm-opt"))
        .env("ESBUILD_BIN", project.node_bin("esbuild"))
        .args(["--profile", profile.worker()])
        .arg("--out-dir")
        .arg(&next);
    if profile == Profile::Dev {
        command.arg("--no-opt");
    }
    progress::run(project, &format!("{label}: worker-build"), &mut command)?;
    Ok(Built { stamp, next: Some(next) })
}
