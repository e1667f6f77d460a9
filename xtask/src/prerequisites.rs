//! What the machine must have, and what we fetch ourselves.
//!
//! Invariant: a missing prerequisite is one line that says what to install;
//! all of them are reported at once. What we can install we do (the wasm
//! target, the npm packages), once.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::fingerprint;
use crate::progress;
use crate::project::Project;

const NODE_MIN: (u32, u32) = (20, 3);
const WASM_TARGET: &str = "wasm32-unknown-unknown";

/// Everything that a build needs, checked or installed.
pub(crate) fn ensure(project: &Project) -> Result<()> {
    check()?;
    add_wasm_target(project)?;
    install_npm_packages(project)
}

fn check() -> Result<()> {
    let mut missing = Vec::new();
    if version_of("rustup").is_none() {
        missing.push("rustup is missing: install it from https://rustup.rs".to_owned());
    }
    match version_of("node") {
        None => missing.push(format!(
            "Node.js is missing: install version {}.{} or later from https://nodejs.org",
            NODE_MIN.0, NODE_MIN.1
        )),
        Some(version) if node_version(&version) < Some(NODE_MIN) => missing.push(format!(
            "Node.js {} is too old: install version {}.{} or later from https://nodejs.org",
            version.trim(),
            NODE_MIN.0,
            NODE_MIN.1
        )),
        Some(_) => {}
    }
    if version_of("npm").is_none() {
        missing.push("npm is missing: it comes with Node.js, or as the package `npm`".to_owned());
    }
    if version_of("git").is_none() {
        missing.push("Git is missing: install it from https://git-scm.com".to_owned());
    }
    if missing.is_empty() {
        return Ok(());
    }
    bail!("{}", missing.join("\n       "))
}

/// What `program --version` prints, if there is such a program.
fn version_of(program: &str) -> Option<String> {
    let output = Command::new(program).arg("--version").output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// `v20.3.1` is (20, 3).
fn node_version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.trim().strip_prefix('v')?.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// rust-toolchain.toml names the target, so rustup has usually installed it.
fn add_wasm_target(project: &Project) -> Result<()> {
    let output = project
        .command("rustup")
        .args(["target", "list", "--installed"])
        .output()
        .context("could not run rustup")?;
    let installed = String::from_utf8_lossy(&output.stdout);
    if installed.lines().any(|target| target == WASM_TARGET) {
        return Ok(());
    }
    let mut command = project.command("rustup");
    command.args(["target", "add", WASM_TARGET]);
    progress::run(project, "install the wasm target", &mut command)?;
    Ok(())
}

/// `npm ci`, unless `node_modules` is what the lockfile says.
fn install_npm_packages(project: &Project) -> Result<()> {
    let lockfile = fs::read(project.path("package-lock.json"))
        .context("package-lock.json is missing: the clone is not complete")?;
    let digest = fingerprint::of_bytes(&lockfile);
    // The stamp lives inside, so that whoever removes the folder removes it.
    let stamp = project.path("node_modules/.fencepost-stamp");
    if fs::read_to_string(&stamp).is_ok_and(|stored| stored == digest) {
        return Ok(());
    }
    let mut command = project.command("npm");
    command.args(["ci", "--no-audit", "--no-fund"]);
    progress::run(project, "install the npm packages", &mut command)?;
    fs::write(&stamp, digest).with_context(|| format!("cannot write {}", stamp.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_node_versions() {
        assert_eq!(node_version("v20.20.2\n"), Some((20, 20)));
        assert!(node_version("v20.3.0") >= Some(NODE_MIN));
        assert!(node_version("v20.2.9") < Some(NODE_MIN));
        assert!(node_version("v18.19.0") < Some(NODE_MIN));
        assert!(node_version("no version") < Some(NODE_MIN));
    }
}
