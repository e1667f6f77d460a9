//! `cargo xtask test`: every check of the project, cheapest first.
//!
//! Invariant: it is what CI runs, and nothing is checked anywhere else. Every
//! stage runs even if one before it failed, so that one run shows everything;
//! the last line is `N passed, N failed`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};

use crate::build;
use crate::chromium;
use crate::deploy;
use crate::prerequisites;
use crate::progress;
use crate::project::{Profile, Project};
use crate::rust_tests::RustTests;
use crate::sizes;
use crate::summary::Tally;
use crate::test_server::TestServer;

type Run = fn(&Context<'_>) -> Result<Tally>;

/// The stages in order, each with what it finds out.
const STAGES: &[(&str, &str, Run)] = &[
    ("format", "the code is formatted", format),
    ("lint", "clippy has no warning, native and wasm", lint),
    ("unit", "unit and integration tests", unit),
    ("model", "every state of the machines", model),
    ("golden", "every lesson's script in the simulator", golden),
    ("docs", "the examples in the documentation", docs),
    ("gate", "what each crate may depend on", gate),
    ("build", "release build within its sizes", build_release),
    ("deploy", "wrangler accepts the build", dry_run),
    ("worker", "the Worker on the real runtime", worker),
    ("live", "every lesson's script on the real runtime", live),
    ("browser", "the page, as a person uses it", browser),
];

struct Context<'a> {
    project: &'a Project,
    profile: Profile,
}

impl Context<'_> {
    /// The build that is tested; nothing to do when a stage before made it.
    fn ensure_build(&self) -> Result<()> {
        build::prepare(self.project, self.profile)?.install(self.project, self.profile)
    }

    fn check(&self, label: &str, command: &mut Command) -> Result<Tally> {
        let outcome = progress::attempt(self.project, label, command)?;
        if !outcome.success {
            progress::show_output(&outcome);
        }
        Ok(Tally::of_check(outcome.success))
    }

    fn tests(&self, label: &str, command: &mut Command) -> Result<Tally> {
        let outcome = progress::attempt(self.project, label, command)?;
        if !outcome.success {
            progress::show_output(&outcome);
        }
        Ok(Tally::of_tests(outcome.success, &outcome.output))
    }
}

pub(crate) fn test(project: &Project, profile: Profile, only: Option<&str>) -> Result<()> {
    let started_at = Instant::now();
    let chosen = choose(only)?;
    prerequisites::ensure(project)?;
    let context = Context { project, profile };
    let mut total = Tally::default();
    let mut failed = Vec::new();
    for (name, meaning, run) in chosen {
        progress::line(&format!("\n{name}: {meaning}"));
        let stage_started_at = Instant::now();
        let tally = run(&context).unwrap_or_else(|error| {
            progress::line(&format!("    {error:#}"));
            Tally::FAILED
        });
        progress::line(&format!(
            "{name}: {tally} in {}",
            progress::seconds(stage_started_at.elapsed())
        ));
        if tally.failed > 0 {
            failed.push(*name);
        }
        total += tally;
    }
    progress::line(&format!("\n{} in all", progress::seconds(started_at.elapsed())));
    if !failed.is_empty() {
        progress::line(&format!("failed: {}", failed.join(", ")));
    }
    progress::line(&total.to_string());
    if total.failed > 0 {
        // Not an error to be printed: the summary is the last line.
        std::process::exit(1);
    }
    Ok(())
}

fn choose(only: Option<&str>) -> Result<Vec<&'static (&'static str, &'static str, Run)>> {
    let Some(only) = only else {
        return Ok(STAGES.iter().collect());
    };
    let wanted: Vec<&str> = only.split(',').map(str::trim).collect();
    for name in &wanted {
        if !STAGES.iter().any(|(known, ..)| known == name) {
            let known: Vec<&str> = STAGES.iter().map(|(name, ..)| *name).collect();
            bail!("there is no stage `{name}`; there are {}", known.join(", "));
        }
    }
    Ok(STAGES.iter().filter(|(name, ..)| wanted.contains(name)).collect())
}

fn format(context: &Context<'_>) -> Result<Tally> {
    let mut command = context.project.cargo();
    context.check("cargo fmt", command.args(["fmt", "--all", "--check"]))
}

fn lint(context: &Context<'_>) -> Result<Tally> {
    let clippy = |args: &[&str]| {
        let mut command = context.project.cargo();
        command.arg("clippy").args(args);
        // After `--`: flags for our crates only, so no dependency is rebuilt.
        command.args(["--", "--deny", "warnings"]);
        command
    };
    let mut tally =
        context.check("clippy, native", &mut clippy(&["--workspace", "--all-targets"]))?;
    let on_wasm = [
        ["--package", "protocol"],
        ["--package", "lessons"],
        ["--package", "fencepost-worker"],
        ["--package", "frontend"],
    ];
    let mut args = vec!["--target", "wasm32-unknown-unknown"];
    args.extend(on_wasm.iter().flatten());
    tally += context.check("clippy, wasm", &mut clippy(&args))?;
    Ok(tally)
}

fn unit(context: &Context<'_>) -> Result<Tally> {
    let mut command = RustTests::new(context.project)?.unit();
    context.tests("unit tests", &mut command)
}

fn model(context: &Context<'_>) -> Result<Tally> {
    match RustTests::new(context.project)?.named("model") {
        Some(mut command) => context.tests("model tests", &mut command),
        None => Ok(Tally::default()),
    }
}

fn golden(context: &Context<'_>) -> Result<Tally> {
    match RustTests::new(context.project)?.named("golden") {
        Some(mut command) => context.tests("golden tests", &mut command),
        None => Ok(Tally::default()),
    }
}

fn gate(context: &Context<'_>) -> Result<Tally> {
    match RustTests::new(context.project)?.named("dependencies") {
        Some(mut command) => context.tests("dependency gate", &mut command),
        None => bail!("xtask/tests/dependencies.rs is missing"),
    }
}

fn docs(context: &Context<'_>) -> Result<Tally> {
    let mut command = context.project.cargo();
    command.args(["test", "--doc", "--package", "protocol", "--package", "lessons"]);
    context.tests("documentation tests", &mut command)
}

fn build_release(context: &Context<'_>) -> Result<Tally> {
    context.ensure_build()?;
    if context.profile == Profile::Release {
        sizes::report(context.project)?;
    }
    Ok(Tally::of_check(true))
}

fn dry_run(context: &Context<'_>) -> Result<Tally> {
    context.ensure_build()?;
    let mut command = deploy::command(context.project);
    command.arg("--dry-run").arg("--outdir").arg(context.project.scratch("dry-run"));
    if context.profile == Profile::Dev {
        command
            .arg(context.project.worker_build(Profile::Dev).join("index.js"))
            .arg("--assets")
            .arg(context.project.dist(Profile::Dev));
    }
    context.check("wrangler deploy --dry-run", &mut command)
}

fn worker(context: &Context<'_>) -> Result<Tally> {
    context.ensure_build()?;
    let mut command = node_tests(context, "worker/tests", ".test.mjs")?;
    context.tests("worker tests", &mut command)
}

fn live(context: &Context<'_>) -> Result<Tally> {
    context.ensure_build()?;
    let server = TestServer::start(context.project, context.profile)?;
    // Through cargo, not by our own path: an earlier stage may have linked xtask anew, and
    // the file that this process was started from is gone then.
    let mut command = context.project.cargo();
    command.args(["run", "--quiet", "--package", "xtask", "--", "smoke", server.url()]);
    context.tests("lesson scripts", &mut command)
}

fn browser(context: &Context<'_>) -> Result<Tally> {
    context.ensure_build()?;
    let chromium = chromium::ensure(context.project)?;
    let server = TestServer::start(context.project, context.profile)?;
    let mut command = node_tests(context, "frontend/e2e", ".spec.mjs")?;
    command.env("CHROMIUM", chromium).env("FENCEPOST_URL", server.url());
    context.tests("browser tests", &mut command)
}

/// Node's own test runner on the files of a folder.
fn node_tests(context: &Context<'_>, folder: &str, ending: &str) -> Result<Command> {
    let path = context.project.path(folder);
    let entries = fs::read_dir(&path).with_context(|| format!("there is no {folder}"))?;
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in entries {
        let file = entry?.path();
        if file.to_string_lossy().ends_with(ending) {
            files.push(file);
        }
    }
    if files.is_empty() {
        bail!("there is no {folder}/*{ending}");
    }
    files.sort();
    let mut command = context.project.command("node");
    command
        .env("FENCEPOST_PROFILE", context.profile.name())
        // One file at a time: each has a runtime of its own, and tests of time
        // must not fight for the processor.
        .args(["--test", "--test-concurrency=1", "--test-reporter=spec"])
        .args(files);
    Ok(command)
}
