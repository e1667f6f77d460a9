//! Where things are.
//!
//! Invariant: release output lives in `dist/` and `worker/build/`, the two
//! paths that `wrangler.toml` names and that tests and deployments use;
//! development output lives under `.fencepost/dev/`. A development server that
//! is running is thus never changed by a test run, and a development build is
//! never deployed by accident.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    Dev,
    Release,
}

impl Profile {
    pub(crate) fn from_release_flag(release: bool) -> Self {
        if release { Self::Release } else { Self::Dev }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Dev => "dev",
            Self::Release => "release",
        }
    }

    /// The cargo profile of the page.
    pub(crate) fn page(self) -> &'static str {
        match self {
            Self::Dev => "wasm-dev",
            Self::Release => "web-release",
        }
    }

    /// The cargo profile of the Worker.
    pub(crate) fn worker(self) -> &'static str {
        match self {
            Self::Dev => "wasm-dev",
            Self::Release => "release",
        }
    }
}

pub(crate) struct Project {
    root: PathBuf,
}

impl Project {
    pub(crate) fn locate() -> Result<Self> {
        // Cargo sets the variable when it runs us. The compiled-in path would
        // be wrong after the folder was moved or copied with its target.
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
            .context("xtask must be run through cargo: `cargo xtask <command>`")?;
        match Path::new(&manifest).parent() {
            Some(root) => Ok(Self { root: root.into() }),
            None => bail!("xtask's manifest has no folder above it"),
        }
    }

    /// A path below the root of the repository.
    pub(crate) fn path(&self, below: impl AsRef<Path>) -> PathBuf {
        self.root.join(below)
    }

    /// Our own scratch space: stamps, logs, development output, local state.
    pub(crate) fn scratch(&self, below: impl AsRef<Path>) -> PathBuf {
        self.root.join(".fencepost").join(below)
    }

    /// The finished page: what the static assets are served from.
    pub(crate) fn dist(&self, profile: Profile) -> PathBuf {
        match profile {
            Profile::Dev => self.scratch("dev/dist"),
            Profile::Release => self.path("dist"),
        }
    }

    /// The finished Worker.
    pub(crate) fn worker_build(&self, profile: Profile) -> PathBuf {
        match profile {
            Profile::Dev => self.scratch("dev/worker"),
            Profile::Release => self.path("worker/build"),
        }
    }

    /// A program of `node_modules`.
    pub(crate) fn node_bin(&self, name: &str) -> PathBuf {
        self.path("node_modules/.bin").join(name)
    }

    /// A command that runs at the root, with nothing to read from.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root).stdin(std::process::Stdio::null());
        command
    }

    pub(crate) fn cargo(&self) -> Command {
        // The cargo that runs us, so that the toolchain cannot differ.
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = self.command(cargo);
        // Cargo sets these for us only; a build script that sees them in a
        // nested cargo is rebuilt for nothing.
        command.env_remove("CARGO_MANIFEST_DIR");
        command
    }

    /// Wrangler, quiet and offline (see its comments in serve.rs).
    pub(crate) fn wrangler(&self) -> Command {
        let mut command = self.command("node");
        command
            // Its `bin` wrapper only starts this file in one more process.
            .arg("--no-warnings")
            .arg(self.path("node_modules/wrangler/wrangler-dist/cli.js"))
            .env("WRANGLER_SEND_METRICS", "false")
            .env("WRANGLER_SEND_ERROR_REPORTS", "false")
            // No banner, and no question to the registry for a newer version.
            .env("WRANGLER_HIDE_BANNER", "true")
            .env("WRANGLER_LOG_PATH", self.scratch("logs/wrangler"))
            // Without this every start waits three seconds for a file that
            // describes the data center, and then does without it.
            .env("CLOUDFLARE_CF_FETCH_ENABLED", "false");
        command
    }

    /// Where cargo puts what it builds, which the user may have moved.
    pub(crate) fn target(&self) -> Result<PathBuf> {
        let output = self
            .cargo()
            .args(["metadata", "--no-deps", "--format-version", "1"])
            .output()
            .context("could not run `cargo metadata`")?;
        if !output.status.success() {
            bail!("`cargo metadata` failed:\n{}", String::from_utf8_lossy(&output.stderr));
        }
        let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        metadata["target_directory"]
            .as_str()
            .map(PathBuf::from)
            .context("`cargo metadata` names no target directory")
    }
}
