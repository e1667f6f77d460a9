//! What the model tests share: running a checker, and one step of a real machine.
//!
//! Invariant: the machines explored here are the ones that the Worker runs. Every step
//! restores the machine from its durable record and keeps only what the step asked to
//! persist, so a crash between any two steps is part of every schedule.
//!
//! What it does not do: liveness. `eventually` is unreliable on cyclic paths, so progress
//! is checked as reachability (`sometimes`).
#![allow(dead_code, unused_imports, reason = "each test binary uses its own part")]
#![allow(unreachable_pub, reason = "a test binary exports nothing")]

pub mod check;
pub mod claims;
pub mod client;
pub mod shards;
pub mod system;
pub mod two_phase;

use std::collections::BTreeSet;
use std::fmt::Display;

use protocol::machine::{Effect, Effects, Machine};
use protocol::trace::TraceKind;
use stateright::{Checker, Model};

/// What one input of one machine led to.
pub struct Stepped<M: Machine> {
    /// The record after it, as far as the machine asked to persist it.
    pub record: M::Record,
    /// The answer.
    pub reply: Option<M::Reply>,
    /// What the log would show.
    pub events: Vec<TraceKind>,
    /// The second half of the step, with an `atomic_…` rule off.
    pub deferred: Option<M::Input>,
    /// When the alarm would ring next.
    pub next_deadline: Option<u64>,
}

/// Restores the machine, gives it one input and keeps what it persists.
pub fn step<M: Machine>(
    record: &M::Record,
    rules: M::Rules,
    now_ms: u64,
    input: M::Input,
) -> Stepped<M> {
    let mut machine = M::restore(Some(record.clone()), rules);
    let mut effects = Effects::<M>::new();
    machine.step(now_ms, input, &mut effects);
    let mut stepped = Stepped {
        record: record.clone(),
        reply: None,
        events: Vec::new(),
        deferred: None,
        next_deadline: machine.next_deadline(),
    };
    for effect in effects {
        match effect {
            Effect::Persist(record) => {
                let is_first = stepped.reply.is_none() && stepped.events.is_empty();
                assert!(is_first, "a step persists before it tells anybody");
                stepped.record = record;
            }
            Effect::Reply(reply) => stepped.reply = Some(reply),
            Effect::Record(kind, _) => stepped.events.push(kind),
            Effect::Defer(input) => stepped.deferred = Some(input),
            Effect::Send { .. } | Effect::Await(_) | Effect::Answer(..) => {
                panic!("it talks to nobody and answers at once")
            }
        }
    }
    assert!(stepped.record == *machine.record(), "a step keeps nothing that it did not persist");
    stepped
}

/// Shown when a test fails: what was found, as it would be pinned.
#[allow(clippy::print_stdout, reason = "captured by the test harness")]
pub fn show(found: &str) {
    println!("{found}");
}

/// Explores every state. The names of the discoveries, and how many states there are.
pub fn explore<M>(model: M) -> (BTreeSet<&'static str>, usize)
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + PartialEq + std::hash::Hash + Send + Sync,
    M::Action: Clone + PartialEq,
{
    let checker = model.checker().threads(2).spawn_bfs().join();
    (checker.discoveries().into_keys().collect(), checker.unique_state_count())
}

/// The shortest schedule that leads to a discovery of the model's only property; `None`
/// when every state was explored and there is none.
///
/// One property at a time, since a checker keeps the last discovery of each, not the
/// first; one thread, since only then is the first the shortest.
pub fn shortest<M>(model: M) -> Option<Vec<String>>
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + PartialEq + std::hash::Hash + Send + Sync,
    M::Action: Clone + PartialEq + Display,
{
    let [property] = &model.properties()[..] else { panic!("one property at a time") };
    let name = property.name;
    let checker = model.checker().threads(1).spawn_bfs().join();
    let path = checker.discovery(name)?;
    Some(path.into_actions().iter().map(ToString::to_string).collect())
}
