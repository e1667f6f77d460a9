//! Messages between objects, by hand: which one waits, and what is done to it.
//!
//! Invariant: a message is found in the log and nowhere else, so that a script, the page and
//! a recording mean the same one.

use std::rc::Rc;

use protocol::control::{Control, ControlReply, Delivery, OutboxAction};
use protocol::ids::{Name, NodeId};
use protocol::trace::{DeliveryMode, MessageId, TraceEvent, TraceKind};

use super::Runner;
use super::checks::{AGAIN_MS, Check, PATIENCE_MS};
use crate::driver::Driver;
use crate::script::Expectation;
use crate::script::{FieldExpected, WAIT_FIELD_MAX_MS};

/// How often the log is asked whether a delivered message has arrived, in ms.
const ARRIVAL_MS: u64 = 20;

/// A message in the outbox of its sender, held for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Its number in that outbox.
    pub number: u64,
    /// Its name in the log.
    pub message: MessageId,
    /// Who sent it.
    pub from: NodeId,
    /// Where it goes.
    pub to: NodeId,
    /// What it is: `prepare`.
    pub operation: String,
    /// What it says: `prepare -30`.
    pub summary: String,
}

/// The messages that wait at the end of this log, oldest first.
pub fn waiting(log: &[TraceEvent]) -> Vec<Waiting> {
    let mut waiting: Vec<Waiting> = Vec::new();
    for event in log {
        let from = &event.node;
        let gone = match &event.kind {
            TraceKind::MessageHeld { to, number } => {
                let Some(message) = event.request.clone() else { continue };
                let Some((operation, summary)) = said(log, from, &message) else { continue };
                let (from, to, number) = (from.clone(), to.clone(), *number);
                waiting.push(Waiting { number, message, from, to, operation, summary });
                continue;
            }
            TraceKind::MessageReleased { number, .. }
            | TraceKind::MessageDropped { number, .. } => *number,
            _ => continue,
        };
        waiting.retain(|one| (&one.from, one.number) != (from, gone));
    }
    waiting
}

fn said(log: &[TraceEvent], from: &NodeId, message: &MessageId) -> Option<(String, String)> {
    log.iter().find_map(|event| match &event.kind {
        TraceKind::MessageSent { operation, summary, .. }
            if event.node == *from && event.request.as_ref() == Some(message) =>
        {
            Some((operation.clone(), summary.clone()))
        }
        _ => None,
    })
}

impl<D: Driver + 'static> Runner<D> {
    pub(super) async fn set_delivery(
        &mut self,
        mode: DeliveryMode,
    ) -> Result<ControlReply, String> {
        let driver = Rc::clone(&self.driver);
        let control = Control::Delivery(Delivery { mode });
        Ok(self.meanwhile(driver.control(&NodeId::Lab, &control)).await?)
    }

    /// Acts on a waiting message; one that is delivered has arrived, or has failed to, when
    /// this returns, so that the next line of a script finds what it led to.
    pub(super) async fn act_on_waiting(
        &mut self,
        from: &NodeId,
        action: OutboxAction,
        (message, to, nth): (&str, Option<&Name>, u64),
    ) -> Result<ControlReply, String> {
        let found = self.await_waiting(from, (message, to, nth)).await?;
        let n_arrived = self.n_arrivals(&found.message);
        let driver = Rc::clone(&self.driver);
        let control = Control::Outbox { id: found.number, action };
        let reply = self.meanwhile(driver.control(from, &control)).await?;
        if action == OutboxAction::Deliver {
            let give_up_ms = self.driver.now_ms() + PATIENCE_MS;
            while self.n_arrivals(&found.message) == n_arrived && self.driver.now_ms() < give_up_ms
            {
                self.sleep(ARRIVAL_MS).await;
                self.read_log().await?;
            }
        }
        Ok(reply)
    }

    /// The message may still be on its way into the log.
    async fn await_waiting(
        &mut self,
        from: &NodeId,
        (message, to, nth): (&str, Option<&Name>, u64),
    ) -> Result<Waiting, String> {
        let give_up_ms = self.driver.now_ms() + PATIENCE_MS;
        loop {
            self.read_log().await?;
            let all = waiting(&self.log);
            let matches = |one: &&Waiting| {
                one.from == *from
                    && (message == "*" || one.operation == message)
                    && to.is_none_or(|name| one.to.name() == name.as_str())
            };
            let nth = usize::try_from(nth.saturating_sub(1)).unwrap_or(usize::MAX);
            if let Some(found) = all.iter().filter(matches).nth(nth) {
                return Ok(found.clone());
            }
            if self.driver.now_ms() >= give_up_ms {
                let name = |one: &Waiting| {
                    format!("{} of {} to {}", one.summary, one.from.name(), one.to.name())
                };
                let all: Vec<_> = all.iter().map(name).collect();
                let all = if all.is_empty() { "nothing".to_owned() } else { all.join(", ") };
                return Err(format!("no such message waits; what waits: {all}"));
            }
            self.sleep(AGAIN_MS).await;
        }
    }

    /// How often a message has come to its end: arrived, or known not to arrive.
    fn n_arrivals(&self, message: &MessageId) -> usize {
        let is_end = |event: &&TraceEvent| {
            event.request.as_ref() == Some(message)
                && matches!(
                    event.kind,
                    TraceKind::MessageDelivered { .. } | TraceKind::MessageFailed { .. }
                )
        };
        self.log.iter().filter(is_end).count()
    }

    /// Waits until a record says so; a check that fails if it does not in time.
    pub(super) async fn wait_field(
        &mut self,
        (object, field, value): (&NodeId, &str, &FieldExpected),
    ) -> Result<Check, String> {
        let (object, value) = (object.clone(), value.clone());
        let expectation = Expectation::Field { object, field: field.to_owned(), value };
        self.check_within(&expectation, WAIT_FIELD_MAX_MS).await
    }
}
