//! The lab as the runner sees it: real objects over HTTP, or the same machines in the page.
//!
//! Invariant: both answer to the same calls in real time, so that a lesson cannot tell
//! them apart; only the badge does. Nothing is decided here, and nothing is kept that the
//! lab does not have.
//!
//! A lost connection is not an outcome of the protocol, so it is waited out. What may be
//! sent twice is sent again. A request to a machine may not: the log says whether it had
//! arrived, and only one that had not is sent again.

use std::cell::{Cell, RefCell};

use gloo_timers::future::TimeoutFuture;
use lessons::driver::{Answer, Driver, DriverError};
use protocol::control::{Control, ControlReply};
use protocol::host::Envelope;
use protocol::ids::NodeId;
use protocol::object::Request;
use protocol::rules::Preset;
use protocol::sim::World;
use protocol::trace::TraceEvent;

use crate::api::{self, ApiError};
use crate::clock::{Clock, uptime_ms};

/// How long a message takes one way when there is no network, in ms: long enough to be
/// seen on an axis of seconds, as on a real network.
const LATENCY_MS: u32 = 24;
/// How often a request that is being worked on is asked for, in ms.
const POLL_MS: u32 = 15;
/// How long a lost connection is waited out, in ms.
const OUTAGE_LONGEST_MS: f64 = 300_000.0;
/// How often it is tried again, in ms.
const AGAIN_MS: u32 = 700;

/// A way to one lab.
pub(crate) enum LabDriver {
    /// A server's objects.
    Live { lab: String, clock: Clock, ended: Cell<bool> },
    /// The machines in this page.
    InPage { world: RefCell<World>, clock: Clock },
}

impl LabDriver {
    /// Real objects; the server has just said that it is `now_ms`.
    pub(crate) fn live(lab: String, now_ms: u64) -> Self {
        Self::Live { lab, clock: Clock::of_server(now_ms), ended: Cell::new(false) }
    }

    /// Nobody waits for this lab any more: no further tries.
    pub(crate) fn end(&self) {
        if let Self::Live { ended, .. } = self {
            ended.set(true);
        }
    }

    /// The machines in this page; new objects start with the preset's rules.
    pub(crate) fn in_page(preset: Preset) -> Self {
        let clock = Clock::local();
        Self::InPage { world: RefCell::new(World::new(clock.now_ms(), preset)), clock }
    }

    /// For the lab in the page: lets time catch up, and gives what has happened since.
    pub(crate) fn tick(&self, seq: u64) -> Vec<TraceEvent> {
        let Self::InPage { world, clock } = self else { return Vec::new() };
        let mut world = world.borrow_mut();
        world.advance_to(clock.now_ms());
        world.log().get(seq as usize..).map(<[_]>::to_vec).unwrap_or_default()
    }
}

impl Driver for LabDriver {
    fn now_ms(&self) -> u64 {
        match self {
            Self::Live { clock, .. } | Self::InPage { clock, .. } => clock.now_ms(),
        }
    }

    async fn sleep(&self, ms: u64) {
        TimeoutFuture::new(ms.min(u64::from(u32::MAX)) as u32).await;
    }

    async fn send(
        &self,
        to: &NodeId,
        envelope: &Envelope,
        request: &Request,
    ) -> Result<Answer, DriverError> {
        match self {
            Self::Live { lab, ended, .. } => {
                operate_once(lab, to, envelope, request, ended).await.map_err(failed)
            }
            Self::InPage { world, clock } => {
                TimeoutFuture::new(LATENCY_MS).await;
                let ticket = {
                    let mut world = world.borrow_mut();
                    world.advance_to(clock.now_ms());
                    world.submit(to, envelope, request.clone())
                };
                loop {
                    let answer = world.borrow().answer(ticket);
                    if let Some(answer) = answer {
                        TimeoutFuture::new(LATENCY_MS).await;
                        return Ok(answer);
                    }
                    TimeoutFuture::new(POLL_MS).await;
                    world.borrow_mut().advance_to(clock.now_ms());
                }
            }
        }
    }

    async fn control(&self, to: &NodeId, control: &Control) -> Result<ControlReply, DriverError> {
        match self {
            Self::Live { lab, ended, .. } => {
                patiently(ended, || api::control(lab, to, control)).await.map_err(failed)
            }
            Self::InPage { world, clock } => {
                let mut world = world.borrow_mut();
                world.advance_to(clock.now_ms());
                world.control(to, control.clone()).map_err(|refused| DriverError(refused.0))
            }
        }
    }

    async fn report(&self, events: Vec<TraceEvent>) -> Result<(), DriverError> {
        match self {
            Self::Live { .. } if events.is_empty() => Ok(()),
            Self::Live { lab, ended, .. } => {
                patiently(ended, || api::report(lab, &events)).await.map_err(failed)
            }
            Self::InPage { world, clock } => {
                let mut world = world.borrow_mut();
                world.advance_to(clock.now_ms());
                world.report(events);
                Ok(())
            }
        }
    }

    async fn log_after(&self, seq: u64) -> Result<Vec<TraceEvent>, DriverError> {
        match self {
            Self::Live { lab, ended, .. } => {
                patiently(ended, || api::events_after(lab, seq)).await.map_err(failed)
            }
            Self::InPage { .. } => Ok(self.tick(seq)),
        }
    }
}

/// For what may be done twice: does it until there is a connection.
async fn patiently<T, F: Future<Output = Result<T, ApiError>>>(
    ended: &Cell<bool>,
    attempt: impl Fn() -> F,
) -> Result<T, ApiError> {
    let since_ms = uptime_ms();
    loop {
        match attempt().await {
            Err(ApiError::Unreachable)
                if !ended.get() && uptime_ms() - since_ms < OUTAGE_LONGEST_MS =>
            {
                TimeoutFuture::new(AGAIN_MS).await;
            }
            other => return other,
        }
    }
}

/// Sends a request; when the connection breaks, finds out whether it had arrived.
async fn operate_once(
    lab: &str,
    to: &NodeId,
    envelope: &Envelope,
    request: &Request,
    ended: &Cell<bool>,
) -> Result<Answer, ApiError> {
    loop {
        match api::operate(lab, to, envelope, request).await {
            Err(ApiError::Unreachable) if !ended.get() => {}
            other => return other,
        }
        TimeoutFuture::new(AGAIN_MS).await;
        let log = patiently(ended, || api::events_after(lab, 0)).await?;
        let arrived = |event: &TraceEvent| event.node == *to && event.request == envelope.request;
        if envelope.request.is_none() || log.iter().any(arrived) {
            return Err(ApiError::Unreachable);
        }
    }
}

fn failed(error: ApiError) -> DriverError {
    DriverError(error.to_string())
}
