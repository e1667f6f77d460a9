//! `cargo xtask smoke URL`: every lesson's script against a running deployment.
//!
//! Each script runs in every variant, each in a lab of its own that is deleted afterwards.
//! The runner and the expectations are those of the golden tests; only the driver differs.
//!
//! Invariant: an outcome that is not what the script expects fails the command, with the
//! line of the script.

mod driver;
mod lab;

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use lessons::publish::{SOURCES, Source};
use lessons::runner::Runner;
use lessons::script::parse;
use lessons::sim_driver::block_on;

use crate::progress;
use driver::HttpDriver;
use lab::Lab;

/// Scripts mostly wait; more at once would make a small machine late.
const THREADS: usize = 4;

/// One script in one variant.
struct Job {
    source: &'static Source,
    variant: String,
}

/// What came of it.
struct Done {
    n_checks: usize,
    took: Duration,
    complaints: Vec<String>,
}

pub(crate) fn run(url: &str) -> Result<()> {
    let url = url.trim_end_matches('/');
    let jobs = jobs()?;
    let n_jobs = jobs.len();
    let queue = Mutex::new(jobs);
    let n_failed = Mutex::new(0);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(job) = next(&queue) {
                    let done = play(url, &job);
                    if !report(&job, &done)
                        && let Ok(mut n_failed) = n_failed.lock()
                    {
                        *n_failed += 1;
                    }
                }
            });
        }
    });
    let n_failed = n_failed.into_inner().map_err(|_| anyhow!("a thread of smoke panicked"))?;
    progress::line(&format!("{} passed, {n_failed} failed", n_jobs - n_failed));
    if n_failed > 0 {
        bail!("{url} does not do what the lessons expect");
    }
    Ok(())
}

fn jobs() -> Result<VecDeque<Job>> {
    let mut jobs = VecDeque::new();
    for source in SOURCES {
        let script = parse(source.script).with_context(|| source.slug.to_owned())?;
        let variants = script.variants.into_iter();
        jobs.extend(variants.map(|variant| Job { source, variant: variant.id }));
    }
    Ok(jobs)
}

fn next(queue: &Mutex<VecDeque<Job>>) -> Option<Job> {
    queue.lock().ok()?.pop_front()
}

fn play(url: &str, job: &Job) -> Result<Done> {
    let started_at = Instant::now();
    let script = parse(job.source.script)?;
    let lab = Lab::create(url)?;
    let driver = Rc::new(HttpDriver::new(lab.clone()));
    let mut runner = Runner::with_variant(script, &job.variant, driver);
    let reports = block_on(runner.run_to_end());
    let deleted = lab.delete();
    let reports = reports?;
    deleted?;
    let checks: Vec<_> = reports.iter().flat_map(|report| report.checks()).collect();
    let unmet = checks.iter().filter(|check| !check.met);
    let complaints = unmet.map(|check| {
        format!("line {}: expected `{}`, found `{}`", check.line, check.expected, check.found)
    });
    let complaints = complaints.collect();
    Ok(Done { n_checks: checks.len(), took: started_at.elapsed(), complaints })
}

/// One line, or more when something is wrong; whether all is well.
fn report(job: &Job, done: &Result<Done>) -> bool {
    let name = format!("{} [{}]", job.source.slug, job.variant);
    match done {
        Ok(Done { n_checks, took, complaints }) if complaints.is_empty() => {
            let seconds = took.as_secs_f64();
            progress::line(&format!("ok    {name:<45} {n_checks:>3} checks in {seconds:.1} s"));
            true
        }
        Ok(done) => {
            progress::line(&format!("FAIL  {name}"));
            done.complaints.iter().for_each(|one| progress::line(&format!("      {one}")));
            false
        }
        Err(error) => {
            progress::line(&format!("FAIL  {name}\n      {error:#}"));
            false
        }
    }
}
