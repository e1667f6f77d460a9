//! A runtime for the tests that need one from outside: worker/tests/server.mjs,
//! on a free port, with a state of its own that starts empty.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};

use crate::install;
use crate::process::Group;
use crate::project::{Profile, Project};

pub(crate) struct TestServer {
    url: String,
    /// Ends the server when it is dropped.
    _group: Group,
}

impl TestServer {
    pub(crate) fn start(project: &Project, profile: Profile) -> Result<Self> {
        let state = project.scratch("test-state");
        install::remove(&state)?;
        let mut command = project.command("node");
        command
            .arg(project.path("worker/tests/server.mjs"))
            .arg("--persist")
            .arg(&state)
            .env("FENCEPOST_PROFILE", profile.name())
            .stdout(Stdio::piped());
        let mut group = Group::spawn(&mut command).context("could not run node")?;
        let stdout = group.child().stdout.take().context("node has no output")?;
        let mut first_line = String::new();
        let mut lines = BufReader::new(stdout);
        lines.read_line(&mut first_line)?;
        let Some(url) = first_line.trim().strip_prefix("listening on ") else {
            bail!("the test server did not start; it says why above");
        };
        let url = url.to_owned();
        // Keep reading, or a server that logs would block on a full pipe.
        std::thread::spawn(move || lines.lines().for_each(drop));
        Ok(Self { url, _group: group })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}
