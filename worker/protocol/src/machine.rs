//! The contract that every protocol keeps: restore, step, deadline.
//!
//! - `step` is total and deterministic: same record, rules, time and input, same
//!   effects. Refusals are replies, never errors, since lessons show them.
//! - Effects are in the order in which they must become true: what is persisted
//!   before what reveals it.
//! - The machine's fields outside its record are volatile: a crash loses them.
//! - `next_deadline` is the earliest time at which a tick could change anything. The
//!   shell owns the one alarm; a tick that comes early or twice does no harm.

use core::fmt::Debug;

use crate::ids::{NodeId, ObjectKind};
use crate::rules::Rules;
use crate::table::Tabled;
use crate::trace::{Decision, ObjectRecord, TraceKind};
use crate::transaction::message::Message;

/// What a machine asks of its shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect<Record, Reply, Input> {
    /// Make this record durable, before anything that follows.
    Persist(Record),
    /// Answer the request that caused this step.
    Reply(Reply),
    /// Something happened that the log must show, and the line that decided it.
    Record(TraceKind, Option<Decision>),
    /// Only with an `atomic_…` rule off: give the machine this input after some other
    /// I/O has been awaited, in the same request. Other inputs get in between, and a
    /// crash loses it.
    Defer(Input),
    /// Send this to another object. Its answer, if one comes, is another input.
    Send {
        /// Whom.
        to: NodeId,
        /// What.
        message: Message,
    },
    /// Whoever sent the request that caused this step is answered later, under this key. A
    /// crash loses the caller, as it loses everything volatile.
    Await(u64),
    /// Answer everybody who waits under this key.
    Answer(u64, Reply),
}

/// The effects of one machine.
pub type Effects<M> =
    Vec<Effect<<M as Machine>::Record, <M as Machine>::Reply, <M as Machine>::Input>>;

/// One protocol.
pub trait Machine: Sized {
    /// The only part that survives a crash.
    type Record: Clone + Debug + Eq + Default + Tabled;
    /// Its safety measures.
    type Rules: Rules;
    /// What can be asked of it.
    type Input: Clone + Debug + Eq;
    /// What it can answer.
    type Reply: Clone + Debug + Eq;

    /// The kind of object that runs this machine.
    const KIND: ObjectKind;

    /// The record as the log shows it.
    fn traced(record: &Self::Record) -> ObjectRecord;

    /// The machine as it is after a start; `None` when nothing was ever stored.
    fn restore(record: Option<Self::Record>, rules: Self::Rules) -> Self;

    /// The record as it would be persisted now.
    fn record(&self) -> &Self::Record;

    /// The rules in force.
    fn rules(&self) -> Self::Rules;

    /// Changes the rules; the record stays.
    fn set_rules(&mut self, rules: Self::Rules);

    /// Takes one input. `now_ms` is the object's own clock, which may jump.
    fn step(&mut self, now_ms: u64, input: Self::Input, effects: &mut Effects<Self>);

    /// The input that an alarm stands for.
    fn tick() -> Self::Input;

    /// The input that an alarm stands for which a person rings, early perhaps.
    fn forced_tick() -> Self::Input {
        Self::tick()
    }

    /// When a tick could change something, by the object's own clock.
    fn next_deadline(&self) -> Option<u64>;

    /// The input that a message of another object stands for; `None` when it means nothing
    /// to this kind of object.
    fn received(_from: &NodeId, _message: Message) -> Option<Self::Input> {
        None
    }

    /// The input that a message stands for which did not reach its object; `None` when the
    /// machine does not care. `why` is a word: `down`, `unreachable` or `crashed`.
    fn undelivered(_to: &NodeId, _message: &Message, _why: &str) -> Option<Self::Input> {
        None
    }

    /// What a caller is told who has waited for too long; `None` for a machine that lets
    /// nobody wait.
    fn gave_up(&self, _now_ms: u64) -> Option<Self::Reply> {
        None
    }
}
