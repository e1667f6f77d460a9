//! What the page reads that is written by Rust: the lessons as JSON, and the
//! OpenAPI file generated from the wire types.
//!
//! Invariant: it runs in a fresh process (`xtask publish FOLDER`, through
//! cargo). Lessons are compiled into this program, so under `dev --watch` the
//! running one has the lessons of when it was started.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::fingerprint::{Fingerprint, MANIFESTS, Stamp};
use crate::install;
use crate::progress;
use crate::project::Project;

const SOURCES: &[&str] = &["lessons", "worker/protocol", "xtask/src/publish.rs"];

/// Writes the files if their sources have changed; the folder they are in.
pub(crate) fn run(project: &Project) -> Result<PathBuf> {
    let output = project.scratch("published");
    let digest = Fingerprint::new(concat!(file!(), " 1"))
        .inputs(project, MANIFESTS)?
        .inputs(project, SOURCES)?
        .finish();
    let stamp = Stamp::new(project, "published", digest);
    if stamp.is_fresh(&output) {
        progress::unchanged("lessons and API description");
        return Ok(output);
    }
    install::remove(&output)?;
    let mut command = project.cargo();
    command.args(["run", "--quiet", "--package", "xtask", "--", "publish"]).arg(&output);
    progress::run(project, "lessons and API description", &mut command)?;
    stamp.write()?;
    Ok(output)
}

/// The fresh process: writes everything below `folder`.
pub(crate) fn write(folder: &Path) -> Result<()> {
    let lessons = lessons::publish::all().context("the lessons are not whole")?;
    let openapi = serde_json::to_string_pretty(&protocol::openapi::document())?;
    for (path, text) in lessons.into_iter().chain([("openapi.json".to_owned(), openapi)]) {
        let file = folder.join(path);
        if let Some(parent) = file.parent() {
            fs::create_dir_all(parent)
                .with_context(|| format!("cannot create {}", parent.display()))?;
        }
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}
