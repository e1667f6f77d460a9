//! Messages between objects: the durable outbox, delivery by hand, faults on the way.
//!
//! Invariant: a message is durable with the step that sent it, and stays in the outbox until
//! its object has it or is known not to get it. A crash in between sends it again, so an
//! object may see a message twice, and must cope.
//!
//! The shell carries what is [`Host::ready`] and reports back: [`Host::delivered`] or
//! [`Host::undelivered`]. At the other end it calls [`Host::receive`].

use serde::{Deserialize, Serialize};

use super::{Host, Turn, Unavailable};
use crate::control::{ControlReply, FaultAction, OutboxAction};
use crate::ids::{Label, NAME_LENGTH_MAX, NodeId};
use crate::machine::Machine;
use crate::trace::{DeliveryMode, MessageId, TraceKind};
use crate::transaction::account::is_safe;
use crate::transaction::message::Message;

/// A message that a crash left in the outbox is sent again after this long, in ms.
pub const RESEND_MS: u64 = 1_000;

/// How many messages can wait in one outbox; the oldest that waits makes room.
pub const OUTBOX_MAX: usize = 128;

/// A message in the outbox.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Outgoing {
    /// Its number in this outbox, from 1.
    pub id: u64,
    /// Its name in the log. A second copy has the same.
    pub message_id: MessageId,
    /// Where it goes.
    pub to: NodeId,
    /// The message that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<MessageId>,
    /// What it says.
    pub body: Message,
    /// The sender's Lamport clock when it was sent.
    pub lamport: u64,
    /// When it was sent.
    pub sent_ms: u64,
    /// It does not leave before then.
    pub due_ms: u64,
    /// It waits for a person.
    pub held: bool,
}

/// A message as it arrives.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Arrival {
    /// Its name in the log.
    pub id: MessageId,
    /// Who sent it.
    pub from: NodeId,
    /// The sender's Lamport clock when it was sent.
    pub lamport: u64,
    /// What it says.
    pub body: Message,
}

impl Outgoing {
    /// What its object is given.
    pub fn arrival(&self, from: &NodeId) -> Arrival {
        Arrival {
            id: self.message_id.clone(),
            from: from.clone(),
            lamport: self.lamport,
            body: self.body.clone(),
        }
    }
}

impl<M: Machine> Host<M> {
    /// What the shell has to carry now, in the order in which it was sent.
    pub fn ready(&self, now_ms: u64) -> Vec<Outgoing> {
        // After a crash the alarm, or whoever calls first, starts the object.
        if self.record.down || self.record.crashed {
            return Vec::new();
        }
        let is_ready = |message: &&Outgoing| !message.held && message.due_ms <= now_ms;
        self.record.outbox.iter().filter(is_ready).cloned().collect()
    }

    /// The message has arrived. It leaves the outbox with the next write: if that never
    /// comes, it is sent once more.
    pub fn delivered(&mut self, id: u64) {
        self.record.outbox.retain(|message| message.id != id);
    }

    /// The message has not arrived and will not, and its sender knows, as of a failed call.
    pub fn undelivered(&mut self, now_ms: u64, id: u64, why: Unavailable) -> Turn<M> {
        let mut turn = Turn::empty();
        let Some(index) = self.record.outbox.iter().position(|message| message.id == id) else {
            return turn;
        };
        let message = self.record.outbox.remove(index);
        turn.host_changed = true;
        if self.record.down {
            return turn;
        }
        self.note_start(now_ms, &mut turn);
        let n_before_step = turn.events.len();
        let request = Some(&message.message_id);
        let reason = why.as_str().to_owned();
        let kind = TraceKind::MessageFailed { to: message.to.clone(), reason };
        self.push(now_ms, request, kind, None, &mut turn);
        if let Some(input) = M::undelivered(&message.to, &message.body, why.as_str()) {
            self.step(now_ms, request, input, &mut turn);
        }
        self.crash_at_passed_point(now_ms, request, n_before_step, &mut turn);
        turn
    }

    /// A message of another object.
    pub fn receive(&mut self, now_ms: u64, arrival: Arrival) -> Turn<M> {
        let mut turn = Turn::empty();
        if self.record.down {
            turn.unavailable = Some(Unavailable::Down);
            return turn;
        }
        let Arrival { id, from, lamport, body } = arrival;
        let operation = body.operation();
        let sender = Label::try_from(from.name()).ok();
        let fault = FaultAction::Unreachable;
        if self.take_fault(fault, operation, sender.as_ref(), &mut turn).is_some() {
            turn.unavailable = Some(Unavailable::Unreachable);
            return turn;
        }
        self.record.lamport = self.record.lamport.max(lamport);
        self.note_start(now_ms, &mut turn);
        let n_before_step = turn.events.len();
        let kind = TraceKind::MessageDelivered { from: from.clone(), operation: operation.into() };
        self.push(now_ms, Some(&id), kind, None, &mut turn);
        // A number that would be rounded is none that a machine may see.
        let input = if is_safe(&body) { M::received(&from, body) } else { None };
        if let Some(input) = input {
            self.step(now_ms, Some(&id), input, &mut turn);
        }
        self.crash_at_point(now_ms, Some(&id), n_before_step, &mut turn);
        turn
    }

    /// Puts a message into the outbox, and does to it what a fault says.
    pub(super) fn send(
        &mut self,
        now_ms: u64,
        request: Option<&MessageId>,
        to: NodeId,
        body: Message,
        turn: &mut Turn<M>,
    ) {
        self.record.n_messages += 1;
        turn.host_changed = true;
        let message_id = self.message_id(self.record.n_messages);
        let reply_to = body.answers().and(request.cloned());
        let kind = TraceKind::MessageSent {
            to: to.clone(),
            operation: body.operation().to_owned(),
            summary: body.summary(),
            reply_to: reply_to.clone(),
        };
        self.push(now_ms, Some(&message_id), kind, None, turn);
        let mut message = Outgoing {
            id: self.record.n_messages,
            message_id: message_id.clone(),
            to: to.clone(),
            reply_to,
            body,
            lamport: self.record.lamport,
            sent_ms: now_ms,
            due_ms: now_ms,
            held: self.record.delivery == DeliveryMode::Manual,
        };
        let faults = &self.record.faults;
        let index = faults.iter().position(|fault| fault.matches_outgoing(&message.body, &to));
        let fault = index.map(|index| self.use_up_fault(index, turn));
        let id = Some(&message_id);
        match fault.as_ref().map(|fault| fault.action) {
            Some(FaultAction::Drop) => {
                let kind = TraceKind::MessageDropped { to, number: message.id };
                self.push(now_ms, id, kind, None, turn);
                return;
            }
            Some(FaultAction::Hold) => message.held = true,
            Some(FaultAction::Delay) => {
                let delay_ms = fault.and_then(|fault| fault.delay_ms).unwrap_or(0);
                message.due_ms += delay_ms;
                let kind = TraceKind::MessageDelayed { to: to.clone(), delay_ms };
                self.push(now_ms, id, kind, None, turn);
            }
            Some(FaultAction::Duplicate) => {
                self.record.n_messages += 1;
                let number = self.record.n_messages;
                let kind = TraceKind::MessageDuplicated { to: to.clone(), number };
                self.push(now_ms, id, kind, None, turn);
                self.keep(now_ms, message.clone(), turn);
                message.id = number;
            }
            Some(FaultAction::Unreachable | FaultAction::SlowStore) | None => {}
        }
        self.keep(now_ms, message, turn);
    }

    fn keep(&mut self, now_ms: u64, message: Outgoing, turn: &mut Turn<M>) {
        if message.held {
            let kind = TraceKind::MessageHeld { to: message.to.clone(), number: message.id };
            self.push(now_ms, Some(&message.message_id), kind, None, turn);
        }
        turn.sent.push(message.id);
        self.record.outbox.push(message);
        if self.record.outbox.len() > OUTBOX_MAX {
            self.record.outbox.remove(0);
        }
    }

    /// `transaction.t1:5`; a name too long for a label gives way to its own checksum.
    fn message_id(&self, number: u64) -> MessageId {
        let (kind, name) = match &self.node {
            NodeId::Object(kind, name) => (kind.as_str(), name.as_str()),
            NodeId::Client(_) | NodeId::Lab => ("lab", "lab"),
        };
        let id = format!("{kind}.{name}:{number}");
        let id = if id.len() > NAME_LENGTH_MAX {
            let fnv = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
            let sum = name.bytes().fold(0xcbf2_9ce4_8422_2325, fnv);
            format!("{kind}.{}_{sum:016x}:{number}", &name[..12])
        } else {
            id
        };
        MessageId::try_from(id).expect("a kind, a name and a number make a label")
    }

    /// When the outbox needs the shell again, should it have been forgotten by then.
    pub(super) fn outbox_alarm_at_ms(&self) -> Option<u64> {
        let at_ms = |message: &Outgoing| {
            let is_delayed = message.due_ms > message.sent_ms;
            if is_delayed { message.due_ms } else { message.sent_ms + RESEND_MS }
        };
        self.record.outbox.iter().filter(|message| !message.held).map(at_ms).min()
    }

    // ---- by hand -----------------------------------------------------------------------

    pub(super) fn set_delivery(&mut self, now_ms: u64, mode: DeliveryMode, turn: &mut Turn<M>) {
        if self.record.delivery == mode {
            turn.host_changed = false;
            return;
        }
        self.record.delivery = mode;
        self.push(now_ms, None, TraceKind::DeliverySet { mode }, None, turn);
        if mode == DeliveryMode::Auto {
            let held = self.record.outbox.iter().filter(|message| message.held);
            let ids: Vec<u64> = held.map(|message| message.id).collect();
            for id in ids {
                self.act_on_message(now_ms, id, OutboxAction::Deliver, turn);
            }
        }
    }

    pub(super) fn act_on_message(
        &mut self,
        now_ms: u64,
        id: u64,
        action: OutboxAction,
        turn: &mut Turn<M>,
    ) -> ControlReply {
        let Some(index) = self.record.outbox.iter().position(|message| message.id == id) else {
            turn.host_changed = false;
            return ControlReply::NoSuchMessage { id };
        };
        let message = &mut self.record.outbox[index];
        let (message_id, to) = (message.message_id.clone(), message.to.clone());
        let (kind, reply) = match action {
            OutboxAction::Deliver => {
                message.held = false;
                message.sent_ms = now_ms;
                message.due_ms = now_ms;
                let kind = TraceKind::MessageReleased { to, number: id };
                (kind, ControlReply::MessageReleased { id })
            }
            OutboxAction::Drop => {
                self.record.outbox.remove(index);
                let kind = TraceKind::MessageDropped { to, number: id };
                (kind, ControlReply::MessageDropped { id })
            }
            OutboxAction::Duplicate => {
                self.record.n_messages += 1;
                let copy = Outgoing { id: self.record.n_messages, ..message.clone() };
                let id = copy.id;
                let kind = TraceKind::MessageDuplicated { to, number: id };
                self.push(now_ms, Some(&message_id), kind, None, turn);
                self.keep(now_ms, copy, turn);
                return ControlReply::MessageDuplicated { id };
            }
        };
        self.push(now_ms, Some(&message_id), kind, None, turn);
        reply
    }
}
