//! `cargo xtask bench`: the release build beside a floor and a rival.
//!
//! The rival is the paper's TypeScript, the floor an object that does nothing; all run on
//! the same runtime, started the same way, and take turns within every round, since only
//! ratios within one run mean anything on a busy machine.
//!
//! It prints a table and writes JSON. It asserts nothing: a timed test fails on somebody
//! else's slow day.

mod load;
mod servers;
mod table;

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::json;

use crate::bench::load::{Measured, Target};
use crate::bench::servers::Servers;
use crate::build;
use crate::progress;
use crate::project::{Profile, Project};
use crate::sizes;

/// Closed-loop clients, each with an object of its own.
const N_CLIENTS: usize = 8;

/// What the command line chose.
struct Options {
    n_rounds: usize,
    seconds_per_turn: u64,
}

impl Options {
    fn parse(args: &[String]) -> Result<Self> {
        let mut options = Self { n_rounds: 5, seconds_per_turn: 3 };
        let mut args = args.iter();
        while let Some(name) = args.next() {
            let value = args.next().and_then(|text| text.parse().ok()).filter(|n| *n > 0_u64);
            match (name.as_str(), value) {
                ("--rounds", Some(n)) => options.n_rounds = n as usize,
                ("--seconds", Some(n)) => options.seconds_per_turn = n,
                _ => bail!("use: bench [--rounds N] [--seconds N]"),
            }
        }
        Ok(options)
    }
}

pub(crate) fn run(project: &Project, args: &[String]) -> Result<()> {
    let options = Options::parse(args)?;
    build::build(project, Profile::Release)?;
    let servers = Servers::start(project)?;
    let targets = servers.targets(N_CLIENTS)?;
    for target in &targets {
        load::drive(target, Duration::from_secs(1))
            .with_context(|| format!("warming up {}", target.name))?;
    }
    let mut measured: Vec<Vec<Measured>> = targets.iter().map(|_| Vec::new()).collect();
    for round in 1..=options.n_rounds {
        progress::line(&format!("round {round} of {}", options.n_rounds));
        for (target, results) in targets.iter().zip(&mut measured) {
            let seconds = Duration::from_secs(options.seconds_per_turn);
            results.push(load::drive(target, seconds).with_context(|| target.name.to_owned())?);
        }
    }
    report(project, &targets, &measured, &options)
}

fn report(
    project: &Project,
    targets: &[Target],
    measured: &[Vec<Measured>],
    options: &Options,
) -> Result<()> {
    let rows = table::rows(targets, measured);
    table::print(&rows);
    let sizes = sizes::measure(project)?;
    println!(
        "\nsizes: worker {} kB gzip, first load of the page {} kB brotli",
        sizes.worker_gzip_bytes / 1000,
        sizes.first_load_brotli_bytes / 1000
    );
    let file = project.scratch("bench.json");
    let document = json!({
        "n_clients": N_CLIENTS,
        "n_rounds": options.n_rounds,
        "seconds_per_turn": options.seconds_per_turn,
        "rows": rows.iter().map(table::Row::to_json).collect::<Vec<_>>(),
        "sizes": {
            "worker_gzip_bytes": sizes.worker_gzip_bytes,
            "first_load_brotli_bytes": sizes.first_load_brotli_bytes,
            "parts": sizes.parts,
        },
    });
    fs::write(&file, serde_json::to_string_pretty(&document)?)?;
    println!("written to .fencepost/bench.json");
    Ok(())
}
