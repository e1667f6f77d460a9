//! `cargo xtask deploy`: a release build, then `wrangler deploy`.
//!
//! Invariant: only a release build that was made now is deployed. Wrangler asks
//! for what it needs (an account, a login) by itself, so it gets the terminal.

use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::build;
use crate::progress;
use crate::project::{Profile, Project};

pub(crate) fn deploy(project: &Project, args: &[String]) -> Result<()> {
    build::build(project, Profile::Release)?;
    progress::line("  wrangler deploy");
    let status = command(project)
        .args(args)
        .stdin(Stdio::inherit())
        .status()
        .context("could not run node")?;
    if !status.success() {
        bail!("wrangler deploy failed; it says why above");
    }
    Ok(())
}

/// What the tests run, with `--dry-run`: everything but the upload.
pub(crate) fn command(project: &Project) -> Command {
    let mut command = project.wrangler();
    command.arg("deploy").arg("--config").arg(project.path("worker/wrangler.toml"));
    command
}
