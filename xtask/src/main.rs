//! `cargo xtask`: the only build logic of the project.
//!
//! Invariant: every command works from a clean clone on a machine with rustup,
//! Node, npm and Git, and does no work twice: a step whose inputs have not
//! changed is skipped.
//!
//! It holds no protocol rule and nothing that ships to a visitor.
#![expect(clippy::print_stdout, reason = "a command line tool: standard output is its interface")]

mod args;
mod bench;
mod build;
mod chromium;
mod deploy;
mod fingerprint;
mod fonts;
mod install;
mod page;
mod prerequisites;
mod process;
mod progress;
mod project;
mod publish;
mod rust_tests;
mod serve;
mod site;
mod sizes;
mod smoke;
mod smoke_tls;
mod stages;
mod summary;
mod test_server;
mod tools;
mod watch;
mod worker;

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::args::Args;
use crate::project::{Profile, Project};

const USAGE: &str = "\
cargo xtask <command>

  dev [--watch] [--port N] [--release]
                      set up what is missing, build, serve on http://127.0.0.1:8787
  build [--release]   build the page and the Worker
  test [--only STAGE[,STAGE]] [--dev]
                      every test, in order; --dev tests the development build
  deploy [-- ARGS]    release build, then `wrangler deploy ARGS`
  smoke URL           run every lesson's script against a running deployment
  bench [ARGS]        measure the release build beside a floor and a rival";

fn main() -> ExitCode {
    process::end_children_on_interrupt();
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            progress::line(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let mut args = Args::from_env();
    let project = Project::locate()?;
    match args.command().as_deref() {
        Some("dev") => {
            let watch = args.flag("--watch");
            let profile = Profile::from_release_flag(args.flag("--release"));
            let port = args.number("--port")?.unwrap_or(serve::PORT);
            args.finish()?;
            watch::dev(&project, profile, port, watch)
        }
        Some("build") => {
            let profile = Profile::from_release_flag(args.flag("--release"));
            args.finish()?;
            build::build(&project, profile)
        }
        Some("test") => {
            let only = args.value("--only")?;
            let profile = Profile::from_release_flag(!args.flag("--dev"));
            args.finish()?;
            stages::test(&project, profile, only.as_deref())
        }
        Some("deploy") => deploy::deploy(&project, &args.rest()),
        Some("smoke") => {
            let Some(url) = args.command() else {
                bail!("smoke needs the address of a deployment, e.g. http://127.0.0.1:8787");
            };
            args.finish()?;
            if smoke_tls::is_needed(&url) {
                return smoke_tls::run(&project, &url);
            }
            smoke::run(&url)
        }
        Some("bench") => bench::run(&project, &args.rest()),
        // Called by the build in a fresh process, see publish.rs.
        Some("publish") => {
            let Some(folder) = args.command() else {
                bail!("publish needs a folder to write to");
            };
            publish::write(folder.as_ref())
        }
        Some("help" | "--help" | "-h") | None => {
            println!("{USAGE}");
            Ok(())
        }
        Some(other) => bail!("there is no command `{other}`\n\n{USAGE}"),
    }
}
