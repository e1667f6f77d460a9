//! Skips steps whose inputs have not changed.
//!
//! Invariant: a step is skipped only when the contents of everything that feeds
//! it, the rules it was built with and the tools' versions hash to what they
//! hashed to when it last succeeded, and its output is still there. Contents,
//! not times: a checkout or a clone changes every time and no content.
//!
//! The hash is std's, which is 64 bits and not cryptographic: it has to notice
//! an edit, not to withstand an attacker.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::project::Project;

/// Inputs of every compiled step: a change here can change any artifact.
pub(crate) const MANIFESTS: &[&str] =
    &["Cargo.toml", "Cargo.lock", "rust-toolchain.toml", ".cargo/config.toml", "package-lock.json"];

/// Folders that hold output or other people's code, wherever they are.
const SKIPPED_FOLDERS: &[&str] = &["target", "node_modules", "build", "tests", "e2e"];

pub(crate) struct Fingerprint(DefaultHasher);

impl Fingerprint {
    /// `rules` says how the step is done: a change of it redoes the step.
    pub(crate) fn new(rules: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        rules.hash(&mut hasher);
        Self(hasher)
    }

    /// Adds files and folders, given relative to the root. A missing one counts
    /// as missing, so that it is noticed when it appears.
    pub(crate) fn inputs(mut self, project: &Project, paths: &[&str]) -> Result<Self> {
        for path in paths {
            for file in files_below(&project.path(path))? {
                // Relative: a moved or copied tree is the same tree.
                file.strip_prefix(project.path(""))?.hash(&mut self.0);
                let bytes =
                    fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
                bytes.hash(&mut self.0);
            }
            0_u8.hash(&mut self.0);
        }
        Ok(self)
    }

    /// Adds a folder that a step before this one wrote.
    pub(crate) fn folder(mut self, folder: &Path) -> Result<Self> {
        for file in files_below(folder)? {
            file.strip_prefix(folder)?.hash(&mut self.0);
            fs::read(&file)?.hash(&mut self.0);
        }
        Ok(self)
    }

    pub(crate) fn text(mut self, text: &str) -> Self {
        text.hash(&mut self.0);
        self
    }

    pub(crate) fn finish(self) -> String {
        format!("{:016x}", self.0.finish())
    }
}

/// The hash of some bytes, for the name of a file that may be cached for ever.
pub(crate) fn of_bytes(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// What a step hashed to when it last succeeded.
pub(crate) struct Stamp {
    path: PathBuf,
    digest: String,
}

impl Stamp {
    pub(crate) fn new(project: &Project, step: &str, digest: String) -> Self {
        Self { path: project.scratch("stamps").join(step), digest }
    }

    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }

    /// Whether the step can be skipped, its `output` being there.
    pub(crate) fn is_fresh(&self, output: &Path) -> bool {
        output.exists() && fs::read_to_string(&self.path).is_ok_and(|stored| stored == self.digest)
    }

    /// To be called when the step has succeeded.
    pub(crate) fn write(&self) -> Result<()> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&self.path, &self.digest)
            .with_context(|| format!("cannot write {}", self.path.display()))
    }
}

/// All files at or below a path, sorted; none if the path does not exist.
pub(crate) fn files_below(path: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    collect(path, &mut found)?;
    found.sort();
    Ok(found)
}

fn collect(path: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    if path.is_file() {
        found.push(path.to_owned());
        return Ok(());
    }
    if !path.is_dir() {
        return Ok(());
    }
    let entries = fs::read_dir(path).with_context(|| format!("cannot list {}", path.display()))?;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with('.') || SKIPPED_FOLDERS.contains(&name.as_ref()) {
            continue;
        }
        collect(&entry.path(), found)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_decide_and_nothing_else() {
        assert_eq!(of_bytes(b"fence"), of_bytes(b"fence"));
        assert_ne!(of_bytes(b"fence"), of_bytes(b"fences"));
        assert_eq!(of_bytes(b"").len(), 16);
    }

    #[test]
    fn rules_and_texts_change_the_digest() {
        let digest = |rules: &str, text: &str| Fingerprint::new(rules).text(text).finish();
        assert_eq!(digest("a", "b"), digest("a", "b"));
        assert_ne!(digest("a", "b"), digest("a", "c"));
        assert_ne!(digest("a", "b"), digest("b", "b"));
    }
}
