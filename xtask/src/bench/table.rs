//! The table: medians over the rounds, and the ratio to the rival in the same round.

use serde_json::{Value, json};

use crate::bench::load::{Measured, Target};

/// One target's medians.
pub(crate) struct Row {
    name: &'static str,
    per_second: f64,
    p50_ms: f64,
    p99_ms: f64,
    /// Requests per second against the first of the group, round by round.
    ratio: f64,
}

impl Row {
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "per_second": self.per_second,
            "p50_ms": self.p50_ms,
            "p99_ms": self.p99_ms,
            "ratio_to_first_of_group": self.ratio,
        })
    }
}

pub(crate) fn rows(targets: &[Target], measured: &[Vec<Measured>]) -> Vec<Row> {
    let row = |(target, rounds): (&Target, &Vec<Measured>)| {
        let first = targets.iter().position(|other| other.group == target.group).unwrap_or(0);
        let ratios = rounds.iter().zip(&measured[first]);
        Row {
            name: target.name,
            per_second: median(rounds.iter().map(|round| round.per_second)),
            p50_ms: median(rounds.iter().map(|round| round.p50_ms)),
            p99_ms: median(rounds.iter().map(|round| round.p99_ms)),
            ratio: median(ratios.map(|(ours, rival)| ours.per_second / rival.per_second)),
        }
    };
    targets.iter().zip(measured).map(row).collect()
}

pub(crate) fn print(rows: &[Row]) {
    println!("\n{:<54} {:>8} {:>9} {:>9} {:>7}", "", "per s", "p50 ms", "p99 ms", "ratio");
    for Row { name, per_second, p50_ms, p99_ms, ratio } in rows {
        println!("{name:<54} {per_second:>8.0} {p50_ms:>9.2} {p99_ms:>9.2} {ratio:>7.2}");
    }
    println!("\nratio: requests per second against the first line of the same group.");
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
