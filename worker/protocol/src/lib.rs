//! The protocols of Fencepost as pure state machines.
//!
//! A machine is restored from its durable record, is given one input at a time
//! together with the time, and answers with effects in the order in which they
//! must happen: `Persist`, `Reply`, `Record`, `Send`. Nothing here reads a clock, draws a
//! random number, does I/O or walks an unordered map, so that one and the same
//! machine runs in a Durable Object, in the simulator, in the model checker and in
//! the page.
//!
//! Reading order: [`ids`] and [`trace`] for the words, [`machine`] for the contract
//! of a step, then [`lease`], [`fence`], [`shard`] and [`transaction`], then [`host`] (what
//! every object has: rules, crashes, clock, messages, log), [`sim`] and [`invariant`].
#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod ids;
pub mod trace;
pub mod machine;
pub mod rules;
pub mod table;
pub mod lease;
pub mod fence;
pub mod shard;
pub mod transaction;
pub mod control;
pub mod host;
pub mod object;
pub mod sim;
pub mod invariant;
#[cfg(feature = "schema")]
pub mod openapi;
