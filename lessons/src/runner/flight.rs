//! Requests in flight.
//!
//! Invariant: a flight lands once, in the order in which the world answers, whatever the
//! script is waiting for meanwhile. A reply to a paused client waits until it resumes.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use protocol::ids::Label;

use crate::client::{Outcome, Outgoing};
use crate::driver::{Answer, Driver, DriverError};
use crate::script::MessageFault;

pub(super) type Answering = Pin<Box<dyn Future<Output = Result<Option<Answer>, DriverError>>>>;

/// One request on its way.
pub(super) struct Flight {
    pub(super) id: u64,
    pub(super) client: Label,
    pub(super) sent: Outgoing,
    answering: Option<Answering>,
    /// The answer has arrived and the client is paused.
    pub(super) held: Option<Option<Answer>>,
    pub(super) landed: Option<Result<Outcome, DriverError>>,
}

impl Flight {
    pub(super) fn new<D: Driver + 'static>(
        id: u64,
        client: Label,
        sent: Outgoing,
        driver: &Rc<D>,
    ) -> Self {
        let answering: Answering = Box::pin(travel(Rc::clone(driver), sent.clone()));
        Self { id, client, sent, answering: Some(answering), held: None, landed: None }
    }

    /// The highest event that this request tells the log.
    pub(super) fn told(&self) -> u64 {
        self.sent.envelope.events.last().map_or(0, |event| event.local_seq)
    }

    /// The answer, when it has just arrived.
    pub(super) fn poll(
        &mut self,
        context: &mut Context<'_>,
    ) -> Option<Result<Option<Answer>, DriverError>> {
        let answering = self.answering.as_mut()?;
        let Poll::Ready(answer) = answering.as_mut().poll(context) else { return None };
        self.answering = None;
        Some(answer)
    }
}

/// There and back; `None` when the request never arrives.
async fn travel<D: Driver>(driver: Rc<D>, sent: Outgoing) -> Result<Option<Answer>, DriverError> {
    match sent.fault {
        Some(MessageFault::DropRequest) => return Ok(None),
        Some(MessageFault::DelayRequest(delay_ms)) => driver.sleep(delay_ms).await,
        _ => {}
    }
    let answer = driver.send(&sent.to, &sent.envelope, &sent.request).await?;
    match sent.fault {
        // The client takes the first answer; the second finds nobody waiting.
        Some(MessageFault::DuplicateRequest) => {
            driver.send(&sent.to, &sent.envelope, &sent.request).await?;
        }
        Some(MessageFault::DelayReply(delay_ms)) => driver.sleep(delay_ms).await,
        _ => {}
    }
    Ok(Some(answer))
}
