//! The browser of the browser tests: the system's own.
//!
//! Invariant: `CHROMIUM` decides if it is set, then the usual names; if there is
//! none we install Debian's package as root, or say in one line how to.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use nix::unistd::Uid;

use crate::progress;
use crate::project::Project;

const NAMES: &[&str] = &["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"];
const ELSEWHERE: &[&str] = &[
    "/snap/bin/chromium",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];

pub(crate) fn ensure(project: &Project) -> Result<PathBuf> {
    if let Some(chosen) = std::env::var_os("CHROMIUM") {
        let chosen = PathBuf::from(chosen);
        if !chosen.is_file() {
            bail!("CHROMIUM is {}, which is not a file", chosen.display());
        }
        return Ok(chosen);
    }
    if let Some(found) = find() {
        return Ok(found);
    }
    if !Uid::effective().is_root() || !Path::new("/usr/bin/apt-get").is_file() {
        bail!(
            "no Chromium: install it (Debian: `sudo apt-get install chromium`) \
             or set CHROMIUM to the path of one"
        );
    }
    for args in [&["update"][..], &["install", "--yes", "--no-install-recommends", "chromium"]] {
        let mut command = project.command("apt-get");
        command.args(args).env("DEBIAN_FRONTEND", "noninteractive");
        progress::run(project, &format!("apt-get {}", args.join(" ")), &mut command)?;
    }
    find().context("apt-get installed chromium, but it is in none of the usual places")
}

fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = NAMES
        .iter()
        .flat_map(|name| std::env::split_paths(&path).map(move |folder| folder.join(name)));
    in_path.chain(ELSEWHERE.iter().map(PathBuf::from)).find(|candidate| candidate.is_file())
}
