//! How the Rust tests are run: cargo-nextest if it is installed, else cargo.
//!
//! Invariant: both run the same tests, split the same way by the name of the
//! test file: `model*`, `golden*`, `dependencies`, and all the rest. One
//! compilation serves all of them.

use std::process::Command;

use anyhow::Result;

use crate::fingerprint;
use crate::project::Project;

/// Test files with a stage of their own, by the start of their name.
const APART: &[&str] = &["model", "golden", "dependencies"];

/// Where crates of the workspace have their `tests/`.
const CRATES: &[&str] = &["frontend", "lessons", "worker", "worker/protocol", "xtask"];

pub(crate) struct RustTests<'a> {
    project: &'a Project,
    has_nextest: bool,
    /// The names of all integration tests.
    files: Vec<String>,
}

impl<'a> RustTests<'a> {
    pub(crate) fn new(project: &'a Project) -> Result<Self> {
        let has_nextest = project
            .cargo()
            .args(["nextest", "--version"])
            .output()
            .is_ok_and(|output| output.status.success());
        let mut files = Vec::new();
        for folder in CRATES {
            let tests = project.path(folder).join("tests");
            for file in fingerprint::files_below(&tests)? {
                // A file further down is a module of a test, not a test.
                if file.parent() == Some(&tests)
                    && file.extension().is_some_and(|extension| extension == "rs")
                    && let Some(name) = file.file_stem()
                {
                    files.push(name.to_string_lossy().into_owned());
                }
            }
        }
        Ok(Self { project, has_nextest, files })
    }

    /// Everything that has no stage of its own.
    pub(crate) fn unit(&self) -> Command {
        if self.has_nextest {
            let apart: Vec<String> = APART.iter().map(|start| binary_filter(start)).collect();
            return self.nextest(&format!("not ({})", apart.join(" | ")));
        }
        let mut command = self.cargo_test();
        command.args(["--lib", "--bins"]);
        for file in &self.files {
            if !APART.iter().any(|start| file.starts_with(start)) {
                command.args(["--test", file]);
            }
        }
        command
    }

    /// The test files whose name starts with `start`, if there are any.
    pub(crate) fn named(&self, start: &str) -> Option<Command> {
        let mut files = self.files.iter().filter(|file| file.starts_with(start)).peekable();
        files.peek()?;
        if self.has_nextest {
            return Some(self.nextest(&binary_filter(start)));
        }
        let mut command = self.cargo_test();
        for file in files {
            command.args(["--test", file]);
        }
        Some(command)
    }

    fn nextest(&self, filter: &str) -> Command {
        let mut command = self.project.cargo();
        command.args(["nextest", "run", "--workspace", "--no-fail-fast"]).args([
            "--no-tests",
            "pass",
            "--filterset",
            filter,
        ]);
        command
    }

    fn cargo_test(&self) -> Command {
        let mut command = self.project.cargo();
        command.args(["test", "--workspace", "--no-fail-fast"]);
        command
    }
}

fn binary_filter(start: &str) -> String {
    format!("binary(/^{start}/)")
}
