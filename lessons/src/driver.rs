//! What the runner needs of the world: time, and a way to reach the objects.
//!
//! Three drivers exist: the simulator ([`crate::sim_driver`]), the page (fetch), and the
//! smoke test (blocking HTTP on threads). A script cannot tell them apart.
//!
//! Invariant: a driver changes nothing. It carries requests, replies and events as they
//! are; faults on messages are the client's ([`crate::client`]), faults on objects are
//! the objects' own.

use core::fmt;

use protocol::control::{Control, ControlReply};
use protocol::host::Envelope;
use protocol::ids::NodeId;
use protocol::object::Request;
use protocol::trace::TraceEvent;

pub use protocol::sim::Answer;

/// A way to reach one lab. All futures run on one thread; none needs to be `Send`.
#[allow(async_fn_in_trait, reason = "every user awaits on the thread that made the future")]
pub trait Driver {
    /// The time in ms since 1970. It never runs backwards.
    fn now_ms(&self) -> u64;

    /// Waits: in real time, or until the simulated clock gets there.
    async fn sleep(&self, ms: u64);

    /// Sends a request and waits for its answer.
    async fn send(
        &self,
        to: &NodeId,
        envelope: &Envelope,
        request: &Request,
    ) -> Result<Answer, DriverError>;

    /// Does to an object what a person may do to it.
    async fn control(&self, to: &NodeId, control: &Control) -> Result<ControlReply, DriverError>;

    /// Reports events of clients, and notes. Reporting an event twice does no harm.
    async fn report(&self, events: Vec<TraceEvent>) -> Result<(), DriverError>;

    /// The lab's log from `seq + 1` on, complete.
    async fn log_after(&self, seq: u64) -> Result<Vec<TraceEvent>, DriverError>;

    /// Called when every future of the runner waits. `true`: something may have changed,
    /// ask again. The simulator moves its clock here, a blocking driver sleeps for a
    /// moment; a driver whose futures wake the task leaves it at `false`.
    fn idle(&self) -> bool {
        false
    }
}

/// The lab could not be reached, or did not understand. Not an outcome of the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverError(pub String);

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DriverError {}
