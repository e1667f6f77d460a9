//! `smoke` on an https address: the same command, compiled with TLS.
//!
//! Invariant: nobody compiles a TLS library who does not talk to a deployment
//! over https; building it takes longer than the rest of xtask together.

use std::process::Stdio;

use anyhow::{Context as _, Result, bail};

use crate::progress;
use crate::project::Project;

/// Whether this address needs what this program was not compiled with.
pub(crate) fn is_needed(url: &str) -> bool {
    url.starts_with("https:") && !cfg!(feature = "tls")
}

/// Compiles xtask with TLS and runs it on the address.
pub(crate) fn run(project: &Project, url: &str) -> Result<()> {
    const PACKAGE: [&str; 4] = ["--package", "xtask", "--features", "tls"];
    let mut build = project.cargo();
    build.arg("build").args(PACKAGE);
    progress::run(project, "smoke: compile with TLS (once)", &mut build)?;
    let status = project
        .cargo()
        .args(["run", "--quiet"])
        .args(PACKAGE)
        .args(["--", "smoke", url])
        .stdout(Stdio::inherit())
        .status()
        .context("could not run cargo")?;
    if !status.success() {
        bail!("the deployment at {url} does not do what the lessons expect");
    }
    Ok(())
}
