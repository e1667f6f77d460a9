//! Puts a finished folder in place of the one that is in use.
//!
//! Invariant: whoever reads the place sees the old folder or the new one, never
//! a mixture and never nothing for longer than two renames take.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::project::Project;

/// Moves `next` to `place`; what was there is removed.
pub(crate) fn folder(project: &Project, next: &Path, place: &Path) -> Result<()> {
    let old = project.scratch("old");
    remove(&old)?;
    if let Some(parent) = place.parent() {
        fs::create_dir_all(parent)
            .with_context(|| format!("cannot create {}", parent.display()))?;
    }
    if place.exists() {
        fs::rename(place, &old).with_context(|| format!("cannot move {} away", place.display()))?;
    }
    fs::rename(next, place)
        .with_context(|| format!("cannot move {} into place", place.display()))?;
    remove(&old)
}

/// Removes a folder if it is there.
pub(crate) fn remove(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    Ok(())
}

/// Copies a file, or all files below a folder, to the same places below `to`.
pub(crate) fn copy_below(from: &Path, to: &Path, wanted: impl Fn(&Path) -> bool) -> Result<()> {
    for file in crate::fingerprint::files_below(from)? {
        let below = file.strip_prefix(from)?;
        if wanted(below) {
            let target = to.join(below);
            if let Some(parent) = target.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::copy(&file, &target).with_context(|| format!("cannot copy {}", file.display()))?;
        }
    }
    Ok(())
}
