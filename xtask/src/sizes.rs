//! How large the release build is, and how large it may be.
//!
//! Invariant: the Worker stays under 1 MB gzip (a third of what a free account
//! may upload), and the first load of the page does not grow. It is still more
//! than twice its aim: the limit is where it stands, and is lowered with every
//! step towards the aim. Past either limit, the test command fails.

use std::process::Stdio;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::progress;
use crate::project::{Profile, Project};

const WORKER_GZIP_BYTES_MAX: u64 = 1_000_000;
const FIRST_LOAD_BROTLI_BYTES_MAX: u64 = 690_000;
const FIRST_LOAD_BROTLI_BYTES_AIM: u64 = 300_000;

pub(crate) struct Sizes {
    pub(crate) worker_gzip_bytes: u64,
    pub(crate) first_load_brotli_bytes: u64,
    /// The first load taken apart: html, js, css, wasm, fonts.
    pub(crate) parts: Value,
}

/// Measures the release build that is in place.
pub(crate) fn measure(project: &Project) -> Result<Sizes> {
    let output = project
        .command("node")
        .arg(project.path("xtask/src/sizes.mjs"))
        .arg(project.worker_build(Profile::Release))
        .arg(project.dist(Profile::Release))
        .stderr(Stdio::inherit())
        .output()
        .context("could not run node")?;
    if !output.status.success() {
        bail!(
            "the sizes cannot be measured; is there a release build? `cargo xtask build --release`"
        );
    }
    let sizes: Value = serde_json::from_slice(&output.stdout)?;
    let number =
        |name: &str| sizes[name].as_u64().with_context(|| format!("sizes.mjs prints no {name}"));
    Ok(Sizes {
        worker_gzip_bytes: number("worker_gzip_bytes")?,
        first_load_brotli_bytes: number("first_load_brotli_bytes")?,
        parts: sizes["parts"].clone(),
    })
}

/// Prints the sizes; an error if one is past its limit.
pub(crate) fn report(project: &Project) -> Result<()> {
    let sizes = measure(project)?;
    progress::line(&format!(
        "  worker {} kB gzip (limit {}) · first load {} kB brotli (limit {}, aim {}): {}",
        sizes.worker_gzip_bytes / 1000,
        WORKER_GZIP_BYTES_MAX / 1000,
        sizes.first_load_brotli_bytes / 1000,
        FIRST_LOAD_BROTLI_BYTES_MAX / 1000,
        FIRST_LOAD_BROTLI_BYTES_AIM / 1000,
        sizes.parts
    ));
    if sizes.worker_gzip_bytes > WORKER_GZIP_BYTES_MAX {
        bail!("the Worker is past its size limit");
    }
    if sizes.first_load_brotli_bytes > FIRST_LOAD_BROTLI_BYTES_MAX {
        bail!("the first load of the page is past its size limit");
    }
    Ok(())
}
