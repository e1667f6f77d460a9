//! The driver of the simulator: a whole lab in memory, with its own time.
//!
//! The page uses it when there is no server, and says SIMULATED; the golden tests use it
//! always. Messages take a fixed time each way, so that a diagram by time is readable.
//!
//! Invariant: the same script gives the same log, to the last byte.

use std::cell::{Ref, RefCell};
use std::collections::BTreeSet;
use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use protocol::control::{Control, ControlReply};
use protocol::host::Envelope;
use protocol::ids::NodeId;
use protocol::object::Request;
use protocol::rules::Preset;
use protocol::sim::World;
use protocol::trace::TraceEvent;

use crate::driver::{Answer, Driver, DriverError};

/// How long a message takes one way, in ms, unless told otherwise.
pub const LATENCY_MS: u64 = 12;

/// A lab in memory.
pub struct SimDriver {
    world: RefCell<World>,
    wakes_ms: RefCell<BTreeSet<u64>>,
    latency_ms: u64,
}

impl SimDriver {
    /// An empty lab at this time; new objects start with the preset's rules.
    pub fn new(start_ms: u64, preset: Preset) -> Self {
        Self {
            world: RefCell::new(World::new(start_ms, preset)),
            wakes_ms: RefCell::default(),
            latency_ms: LATENCY_MS,
        }
    }

    /// The same with messages that take this long one way, in ms.
    pub fn with_latency_ms(mut self, latency_ms: u64) -> Self {
        self.latency_ms = latency_ms;
        self
    }

    /// The lab itself, for tables and records. Do not hold it across an `await`.
    pub fn world(&self) -> Ref<'_, World> {
        self.world.borrow()
    }
}

impl Driver for SimDriver {
    fn now_ms(&self) -> u64 {
        self.world.borrow().now_ms()
    }

    async fn sleep(&self, ms: u64) {
        let until_ms = self.now_ms() + ms;
        self.wakes_ms.borrow_mut().insert(until_ms);
        poll_fn(|_| if self.now_ms() < until_ms { Poll::Pending } else { Poll::Ready(()) }).await;
    }

    async fn send(
        &self,
        to: &NodeId,
        envelope: &Envelope,
        request: &Request,
    ) -> Result<Answer, DriverError> {
        self.sleep(self.latency_ms).await;
        let ticket = self.world.borrow_mut().submit(to, envelope, request.clone());
        let answer =
            poll_fn(|_| self.world.borrow().answer(ticket).map_or(Poll::Pending, Poll::Ready));
        let answer = answer.await;
        self.sleep(self.latency_ms).await;
        Ok(answer)
    }

    async fn control(&self, to: &NodeId, control: &Control) -> Result<ControlReply, DriverError> {
        let done = self.world.borrow_mut().control(to, control.clone());
        done.map_err(|refused| DriverError(refused.0))
    }

    async fn report(&self, events: Vec<TraceEvent>) -> Result<(), DriverError> {
        self.world.borrow_mut().report(events);
        Ok(())
    }

    async fn log_after(&self, seq: u64) -> Result<Vec<TraceEvent>, DriverError> {
        let world = self.world.borrow();
        Ok(world.log().iter().filter(|event| event.seq > seq).cloned().collect())
    }

    /// Moves the clock to the next moment at which anything can happen.
    fn idle(&self) -> bool {
        let mut world = self.world.borrow_mut();
        let mut wakes_ms = self.wakes_ms.borrow_mut();
        *wakes_ms = wakes_ms.split_off(&(world.now_ms() + 1));
        let next_ms =
            [wakes_ms.first().copied(), world.next_event_ms()].into_iter().flatten().min();
        let Some(next_ms) = next_ms else { return false };
        world.advance_to(next_ms);
        true
    }
}

/// Runs a future that a runner drives to its end. In the simulator nothing ever waits for
/// the outside, so one poll is enough.
///
/// # Panics
/// When the future waits for something that can no longer happen.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("the script waits for something that can no longer happen"),
    }
}
