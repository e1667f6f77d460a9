//! The page's wasm: cargo, wasm-bindgen, wasm-opt, one bundled script.
//!
//! Invariant: what comes out is two files with plain names, `app.wasm` and
//! `app.js`, in `.fencepost/<profile>/page/`. Names with hashes, and all else
//! that the page is made of, are site.rs.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::fingerprint::{Fingerprint, MANIFESTS, Stamp};
use crate::install;
use crate::progress;
use crate::project::{Profile, Project};
use crate::tools;

const SOURCES: &[&str] = &["frontend", "lessons", "worker/protocol", "xtask/src/boot.js"];

/// Compiles the page if its sources have changed; the folder with both files.
pub(crate) fn compile(project: &Project, profile: Profile) -> Result<PathBuf> {
    let output = project.scratch(profile.name()).join("page");
    let digest = Fingerprint::new(concat!(file!(), " 2"))
        .inputs(project, MANIFESTS)?
        .inputs(project, SOURCES)?
        .text(profile.page())
        .finish();
    let stamp = Stamp::new(project, &format!("page-{}", profile.name()), digest);
    let label = format!("page ({})", profile.page());
    if stamp.is_fresh(&output.join("app.wasm")) {
        progress::unchanged(&label);
        return Ok(output);
    }

    let wasm_bindgen = tools::WASM_BINDGEN.ensure(project)?;
    let compiled = run_cargo(project, profile, &label)?;
    let bound = project.scratch(profile.name()).join("page-bindgen");
    install::remove(&bound)?;
    let mut command = project.command(wasm_bindgen);
    command
        .args(["--target", "web", "--no-typescript", "--out-name", "app"])
        .arg("--out-dir")
        .arg(&bound)
        .arg(&compiled);
    progress::run(project, &format!("{label}: wasm-bindgen"), &mut command)?;

    fs::create_dir_all(&output).with_context(|| format!("cannot create {}", output.display()))?;
    let bound_wasm = bound.join("app_bg.wasm");
    match profile {
        Profile::Dev => {
            fs::copy(&bound_wasm, output.join("app.wasm"))?;
        }
        Profile::Release => optimize(project, &label, &bound_wasm, &output.join("app.wasm"))?,
    }
    bundle(project, profile, &label, &bound, &output.join("app.js"))?;
    stamp.write()?;
    Ok(output)
}

fn run_cargo(project: &Project, profile: Profile, label: &str) -> Result<PathBuf> {
    const TARGET: &str = "wasm32-unknown-unknown";
    let mut command = project.cargo();
    command
        .args(["build", "--package", "frontend", "--target", TARGET])
        .args(["--profile", profile.page()]);
    // Leptos' views without their types: faster to build, and a fifteenth of what a
    // first visitor loads.
    command.env("RUSTFLAGS", "--cfg erase_components");
    progress::run(project, &format!("{label}: cargo build"), &mut command)?;
    Ok(project.target()?.join(TARGET).join(profile.page()).join("frontend.wasm"))
}

fn optimize(project: &Project, label: &str, input: &Path, output: &Path) -> Result<()> {
    let mut command = project.command(project.node_bin("wasm-opt"));
    command.arg("-Oz").arg(input).arg("-o").arg(output);
    progress::run(project, &format!("{label}: wasm-opt"), &mut command)?;
    Ok(())
}

/// wasm-bindgen's script, the snippets it imports and our start, in one file.
fn bundle(
    project: &Project,
    profile: Profile,
    label: &str,
    bound: &Path,
    output: &Path,
) -> Result<()> {
    let entry = bound.join("boot.js");
    fs::write(&entry, include_str!("boot.js"))?;
    let mut command = project.command(project.node_bin("esbuild"));
    command
        .arg(&entry)
        .args(["--bundle", "--format=esm", "--target=es2022"])
        .args(["--log-level=warning", "--legal-comments=none"])
        .arg(format!("--outfile={}", output.display()));
    if profile == Profile::Release {
        command.arg("--minify");
    }
    progress::run(project, &format!("{label}: bundle"), &mut command)?;
    Ok(())
}
