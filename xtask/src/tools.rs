//! The cargo tools, pinned, in a cache that all clones of a user share.
//!
//! Invariant: a tool is at `<cache>/fencepost/tools/<name>-<version>/bin/` only
//! when it is complete: it is installed beside that place and renamed. A file
//! lock keeps two clones from compiling the same thing at once.
//!
//! It does not look at what is in `PATH`: another version would build something
//! else, and wasm-bindgen refuses to.

use std::fs::{self, File, TryLockError};
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use crate::install;
use crate::progress;
use crate::project::Project;

pub(crate) struct Tool {
    name: &'static str,
    version: &'static str,
    binary: &'static str,
    /// Whether the package's own lockfile still builds.
    locked: bool,
}

/// Builds the Worker. Its version is the version of the crate `worker`.
pub(crate) const WORKER_BUILD: Tool =
    Tool { name: "worker-build", version: "0.8.7", binary: "worker-build", locked: true };

/// Must be exactly the version of the crate `wasm-bindgen` in Cargo.toml.
pub(crate) const WASM_BINDGEN: Tool =
    Tool { name: "wasm-bindgen-cli", version: "0.2.130", binary: "wasm-bindgen", locked: false };

impl Tool {
    /// The path of the tool, which is installed first if it is missing.
    pub(crate) fn ensure(&self, project: &Project) -> Result<PathBuf> {
        let cache = cache_folder()?;
        let home = cache.join(format!("{}-{}", self.name, self.version));
        let binary = home.join("bin").join(self.binary);
        if binary.is_file() {
            return Ok(binary);
        }

        fs::create_dir_all(&cache).with_context(|| format!("cannot create {}", cache.display()))?;
        let lock_path = cache.join(format!(".{}-{}.lock", self.name, self.version));
        let lock = File::create(&lock_path)
            .with_context(|| format!("cannot write {}", lock_path.display()))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                progress::line(&format!(
                    "  … {}: another clone is installing it, waiting",
                    self.name
                ));
                lock.lock()?;
            }
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        // Whoever had the lock may have done our work.
        if binary.is_file() {
            return Ok(binary);
        }

        let partial = cache.join(format!(".{}-{}.partial", self.name, self.version));
        install::remove(&partial)?;
        let mut command = project.cargo();
        command
            .arg("install")
            .arg(format!("{}@{}", self.name, self.version))
            .arg("--root")
            .arg(&partial)
            // The project's own target folder is locked by other builds.
            .env_remove("CARGO_TARGET_DIR");
        if self.locked {
            command.arg("--locked");
        }
        let label = format!("install {} {} (once per user)", self.name, self.version);
        progress::run(project, &label, &mut command)?;
        install::remove(&home)?;
        fs::rename(&partial, &home)
            .with_context(|| format!("cannot move {} into place", home.display()))?;
        Ok(binary)
    }
}

fn cache_folder() -> Result<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let base = match (set("XDG_CACHE_HOME"), set("HOME")) {
        (Some(cache), _) => PathBuf::from(cache),
        (None, Some(home)) => PathBuf::from(home).join(".cache"),
        (None, None) => {
            anyhow::bail!("neither XDG_CACHE_HOME nor HOME is set: there is no place for the tools")
        }
    };
    Ok(base.join("fencepost/tools"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_what_the_manifest_pins() {
        let manifest = include_str!("../../Cargo.toml");
        for (name, tool) in [("wasm-bindgen", &WASM_BINDGEN), ("worker", &WORKER_BUILD)] {
            let line = format!("{name} = \"={}\"", tool.version);
            assert!(
                manifest.contains(&line),
                "Cargo.toml must have `{line}`: the tool and the crate go together"
            );
        }
    }
}
