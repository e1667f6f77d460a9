//! Random schedules over the simulated lab: hosts, alarms, crashes and moved clocks
//! included, which the models leave out, and the checkers that the page's strip uses.
//!
//! The seeds are fixed. A failure names its seed; `run` with it repeats the schedule
//! exactly.
#![allow(unreachable_pub, reason = "a test binary exports nothing")]

#[path = "simulation/draw.rs"]
mod draw;
#[path = "simulation/holder.rs"]
mod holder;
#[path = "simulation/network.rs"]
mod network;
#[path = "simulation/router.rs"]
mod router;

use std::collections::BTreeSet;

use holder::Holder;
use network::{Actor, Lab};
use protocol::ids::NodeId;
use protocol::invariant::{Invariant, check};
use protocol::rules::Preset;
use protocol::trace::{ObjectRecord, TraceEvent, TraceKind};
use router::{Mover, Worker};

const N_SEEDS: u64 = 300;

/// Three clients under one lease, two of which have the same name.
fn run_lease(seed: u64, preset: Preset) -> Lab {
    let claims = preset == Preset::Repaired;
    let holder = |name, holder| -> Box<dyn Actor> { Box::new(Holder::new(name, holder, claims)) };
    let actors = vec![holder("A", "A"), holder("B1", "B"), holder("B2", "B")];
    let mut lab = Lab::new(seed, preset, actors, &["lease/orders", "resource/ledger"]);
    lab.run(400);
    lab
}

/// Two workers and a mover over two shards.
fn run_shards(seed: u64, preset: Preset) -> Lab {
    let actors: Vec<Box<dyn Actor>> =
        vec![Box::new(Worker::new("V")), Box::new(Worker::new("W")), Box::new(Mover::new())];
    let mut lab = Lab::new(seed, preset, actors, &["shard/even", "shard/odd"]);
    lab.run(300);
    lab.heal(600);
    lab
}

/// What the log must be whatever the rules: numbered without gaps, and in node order.
fn check_log(seed: u64, log: &[TraceEvent]) {
    let mut last = std::collections::BTreeMap::<&NodeId, (u64, u64)>::new();
    for (seq, event) in (1..).zip(log) {
        assert_eq!(event.seq, seq, "seed {seed}");
        let now = (event.local_seq, event.lamport);
        if let Some(before) = last.insert(&event.node, now) {
            let rises = before.0 < now.0 && (event.node.is_client() || before.1 < now.1);
            assert!(rises, "seed {seed}: {before:?} before {event:?}");
        }
    }
}

fn count(log: &[TraceEvent], is_it: impl Fn(&TraceKind) -> bool) -> usize {
    log.iter().filter(|event| is_it(&event.kind)).count()
}

#[test]
fn the_same_seed_gives_the_same_log() {
    let (one, two) = (run_lease(7, Preset::Repaired), run_lease(7, Preset::Repaired));
    assert!(one.world.log() == two.world.log());
    assert!(one.world.log() != run_lease(8, Preset::Repaired).world.log());
}

#[test]
fn repaired_leases_and_fences_break_nothing() {
    let (mut n_grants, mut n_writes, mut n_refused, mut n_crashes) = (0, 0, 0, 0);
    for seed in 0..N_SEEDS {
        let lab = run_lease(seed, Preset::Repaired);
        let log = lab.world.log();
        check_log(seed, log);
        assert_eq!(check(log), [], "seed {seed}");
        n_grants += count(log, |kind| matches!(kind, TraceKind::LeaseGranted { .. }));
        n_writes += count(log, |kind| matches!(kind, TraceKind::WriteApplied { .. }));
        n_refused += count(log, |kind| matches!(kind, TraceKind::WriteRefused { .. }));
        n_crashes += count(log, |kind| matches!(kind, TraceKind::Crashed { .. }));
    }
    let counts = [n_grants, n_writes, n_refused, n_crashes];
    let enough = counts.iter().all(|n| *n as u64 > N_SEEDS / 10);
    assert!(enough, "grants, writes, refusals, crashes: {counts:?}");
}

#[test]
fn published_leases_and_fences_break() {
    let mut broken = BTreeSet::new();
    for seed in 0..N_SEEDS {
        let lab = run_lease(seed, Preset::Published);
        check_log(seed, lab.world.log());
        broken.extend(check(lab.world.log()).into_iter().map(|violation| violation.invariant));
    }
    let expected = [
        Invariant::OneHolder,
        Invariant::EffectsInTokenOrder,
        Invariant::NoOlderEffect,
        Invariant::NoLostUpdate,
        Invariant::OneEffectPerWriteId,
    ];
    assert_eq!(broken, BTreeSet::from(expected));
}

#[test]
fn repaired_shards_break_nothing_and_lose_nothing() {
    let (mut n_operations, mut n_moves) = (0, 0);
    for seed in 0..N_SEEDS {
        let lab = run_shards(seed, Preset::Repaired);
        let log = lab.world.log();
        check_log(seed, log);
        assert_eq!(check(log), [], "seed {seed}");
        let n_applied = count(log, |kind| matches!(kind, TraceKind::OperationApplied { .. }));
        let ids: BTreeSet<_> = log
            .iter()
            .filter_map(|event| match &event.kind {
                TraceKind::OperationApplied { op_id, .. } => op_id.clone(),
                _ => None,
            })
            .collect();
        assert_eq!(ids.len(), n_applied, "seed {seed}: once each, wherever it was sent");
        let records = ["shard/even", "shard/odd"].map(|node| {
            let node = NodeId::try_from(node.to_owned()).expect("a node");
            match lab.world.record(&node) {
                Some(ObjectRecord::Shard(record)) => record,
                _ => protocol::shard::ShardRecord::default(),
            }
        });
        let newest = records.iter().max_by_key(|record| (record.map_epoch, !record.sealed));
        let apples = newest.and_then(|record| record.state.get("apples")).copied().unwrap_or(0);
        assert_eq!(apples, n_applied as i64, "seed {seed}: every apple is where the map says");
        n_operations += n_applied as u64;
        n_moves += count(log, |kind| matches!(kind, TraceKind::ShardOpened { .. })) as u64;
    }
    assert!(n_operations > N_SEEDS * 20 && n_moves > N_SEEDS, "{n_operations}, {n_moves}");
}

#[test]
fn published_shards_break() {
    let mut broken = BTreeSet::new();
    for seed in 0..N_SEEDS {
        let lab = run_shards(seed, Preset::Published);
        check_log(seed, lab.world.log());
        broken.extend(check(lab.world.log()).into_iter().map(|violation| violation.invariant));
    }
    let expected =
        [Invariant::OneOperationPerNumber, Invariant::OneEffectPerOpId, Invariant::OneShardPerKey];
    assert_eq!(broken, BTreeSet::from(expected));
}
