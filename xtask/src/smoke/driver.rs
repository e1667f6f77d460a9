//! The lessons' driver over blocking HTTP: one thread a call, so that two requests of a
//! script can be on their way at once.

use std::future::poll_fn;
use std::sync::mpsc::{TryRecvError, channel};
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use lessons::driver::{Answer, Driver, DriverError};
use protocol::control::{Control, ControlReply};
use protocol::host::Envelope;
use protocol::ids::NodeId;
use protocol::object::Request;
use protocol::trace::TraceEvent;

use super::lab::Lab;

/// How long the runner sleeps when all of its futures wait.
const IDLE: Duration = Duration::from_millis(1);

pub(super) struct HttpDriver {
    lab: Lab,
    made_at: Instant,
}

impl HttpDriver {
    pub(super) fn new(lab: Lab) -> Self {
        Self { lab, made_at: Instant::now() }
    }

    /// Makes a call on a thread of its own and waits for it without blocking.
    async fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Lab) -> Result<T> + Send + 'static,
    ) -> Result<T, DriverError> {
        let (sender, receiver) = channel();
        let lab = self.lab.clone();
        // Nobody listens any more when the run has failed meanwhile.
        thread::spawn(move || drop(sender.send(call(&lab))));
        let answer = poll_fn(|_| match receiver.try_recv() {
            Ok(answer) => Poll::Ready(answer),
            Err(TryRecvError::Empty) => Poll::Pending,
            Err(TryRecvError::Disconnected) => Poll::Ready(Err(anyhow!("the call panicked"))),
        });
        answer.await.map_err(|error| DriverError(format!("{error:#}")))
    }
}

impl Driver for HttpDriver {
    /// The server's time when the lab was made, counted on by a clock that never jumps.
    fn now_ms(&self) -> u64 {
        let elapsed_ms = u64::try_from(self.made_at.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.lab.created_at_ms.saturating_add(elapsed_ms)
    }

    async fn sleep(&self, ms: u64) {
        let until = Instant::now() + Duration::from_millis(ms);
        poll_fn(|_| if Instant::now() < until { Poll::Pending } else { Poll::Ready(()) }).await;
    }

    async fn send(
        &self,
        to: &NodeId,
        envelope: &Envelope,
        request: &Request,
    ) -> Result<Answer, DriverError> {
        let (to, envelope, request) = (to.clone(), envelope.clone(), request.clone());
        self.call(move |lab| lab.send(&to, &envelope, &request)).await
    }

    async fn control(&self, to: &NodeId, control: &Control) -> Result<ControlReply, DriverError> {
        let (to, control) = (to.clone(), control.clone());
        self.call(move |lab| lab.control(&to, &control)).await
    }

    async fn report(&self, events: Vec<TraceEvent>) -> Result<(), DriverError> {
        self.call(move |lab| lab.report(&events)).await
    }

    async fn log_after(&self, seq: u64) -> Result<Vec<TraceEvent>, DriverError> {
        self.call(move |lab| lab.log_after(seq)).await
    }

    fn idle(&self) -> bool {
        thread::sleep(IDLE);
        true
    }
}
