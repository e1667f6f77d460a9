//! Every script, in the simulator: its expectations, its recorded transcript, and a reader
//! who takes her time.
//!
//! `UPDATE_GOLDEN=1 cargo test -p lessons` rewrites `golden/*.txt`; read the difference
//! before you commit it.

mod transcript;

use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use lessons::driver::Driver;
use lessons::runner::{Runner, StepReport};
use lessons::script::{Command, Script, parse};
use lessons::sim_driver::{SimDriver, block_on};
use protocol::rules::Preset;

const START_MS: u64 = 1_700_000_000_000;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn scripts() -> Vec<(String, Script)> {
    let mut found: Vec<_> = fs::read_dir(folder("scripts"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|one| one == "txt"))
        .collect();
    found.sort();
    let read = |path: PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let script = parse(&fs::read_to_string(&path).unwrap());
        (name.clone(), script.unwrap_or_else(|error| panic!("{name}: {error}")))
    };
    found.into_iter().map(read).collect()
}

fn variants(script: &Script) -> Vec<String> {
    script.variants.iter().map(|variant| variant.id.clone()).collect()
}

fn complaints(name: &str, variant: &str, reports: &[StepReport]) -> Vec<String> {
    let unmet = reports.iter().flat_map(StepReport::checks).filter(|check| !check.met);
    unmet
        .map(|check| {
            format!(
                "{name} [{variant}] line {}: expected `{}`, found `{}`",
                check.line, check.expected, check.found
            )
        })
        .collect()
}

/// Plays a script; between steps the reader thinks for this long.
fn play(
    script: &Script,
    variant: &str,
    thinks_ms: u64,
) -> Result<(Vec<StepReport>, Rc<SimDriver>), String> {
    let driver = Rc::new(SimDriver::new(START_MS, Preset::Published));
    let mut runner = Runner::with_variant(script.clone(), variant, Rc::clone(&driver));
    let run = async {
        let mut reports = Vec::new();
        while let Some(report) = runner.run_step().await.map_err(|error| error.to_string())? {
            reports.push(report);
            runner.perform(Command::Wait(thinks_ms)).await.map_err(|error| error.to_string())?;
        }
        Ok(reports)
    };
    block_on(run).map(|reports| (reports, driver))
}

#[test]
fn every_script_does_what_it_expects_as_it_was_recorded() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut problems = Vec::new();
    for (name, script) in scripts() {
        let mut text = String::new();
        for variant in variants(&script) {
            match play(&script, &variant, 0) {
                Ok((reports, driver)) => {
                    problems.extend(complaints(&name, &variant, &reports));
                    let events = driver.world().log().to_vec();
                    text += &transcript::section(&variant, &events, START_MS);
                }
                Err(error) => problems.push(format!("{name} [{variant}] {error}")),
            }
        }
        let path = folder("golden").join(format!("{name}.txt"));
        if update {
            fs::write(&path, &text).unwrap();
        } else if fs::read_to_string(&path).unwrap_or_default() != text {
            problems.push(format!(
                "{name}: the transcript differs from golden/{name}.txt: run with UPDATE_GOLDEN=1 and read the difference"
            ));
        }
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn a_reader_may_think_as_long_as_she_likes() {
    for (name, script) in scripts() {
        for variant in variants(&script) {
            let (reports, _) = play(&script, &variant, 180_000).unwrap();
            let problems = complaints(&name, &variant, &reports);
            assert!(problems.is_empty(), "\n{}", problems.join("\n"));
        }
    }
}

#[test]
fn live_waiting_is_short() {
    for (name, script) in scripts() {
        for variant in variants(&script) {
            let (_, driver) = play(&script, &variant, 0).unwrap();
            let ms = driver.now_ms() - START_MS;
            assert!(ms < 6_000, "{name} [{variant}] takes {ms} ms");
        }
    }
}

#[test]
fn a_page_that_is_reloaded_goes_on_where_it_was() {
    for (name, script) in scripts() {
        for variant in variants(&script) {
            let driver = Rc::new(SimDriver::new(START_MS, Preset::Published));
            let mut runner = Runner::with_variant(script.clone(), &variant, Rc::clone(&driver));
            let mut reports = Vec::new();
            while let Some(report) = block_on(runner.run_step()).unwrap() {
                reports.push(report);
                let log = driver.world().log().to_vec();
                runner = Runner::restore(script.clone(), Rc::clone(&driver), &log);
            }
            assert_eq!(reports.len(), script.steps_of(&variant).count());
            let problems = complaints(&name, &variant, &reports);
            assert!(problems.is_empty(), "\n{}", problems.join("\n"));
        }
    }
}

#[test]
fn a_wrong_expectation_fails() {
    let text = "clients A\nlease orders\nresource ledger\nstep one \"One\"\n\
        A acquire orders ttl=1h\n  -> granted token=2\n  -> refused\n  -> granted tokens=1\n\
        expect orders.token=7\nexpect broken tokens_rise\n";
    let script = parse(text).unwrap();
    let (reports, _) = play(&script, "", 0).unwrap();
    let unmet: Vec<_> = reports[0].checks().filter(|check| !check.met).collect();
    let found: Vec<_> = unmet.iter().map(|check| (check.line, check.found.as_str())).collect();
    assert_eq!(
        found,
        [
            (6, "granted token=1"),
            (7, "granted"),
            (8, "granted without tokens"),
            (9, "orders.token=1"),
            (10, "tokens_rise holds"),
        ]
    );
    assert!(!reports[0].is_as_expected());
}
