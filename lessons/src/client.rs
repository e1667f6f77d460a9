//! A client: what it believes, what it has read, and what it has not yet told the log.
//!
//! The clients are the honest part of every lesson. They really send requests, and they
//! act on what they believe, which may be stale: nobody tells a paused process that its
//! lease is over. Pure state; the [`crate::runner`] does the waiting and the sending.
//!
//! Invariants: a client counts its own deadline from the moment of *sending*, so by a
//! clock that runs evenly it never believes longer than the authority granted (B6). Its
//! events are numbered from `boot_ms * 1000` on, so that a page that was reloaded goes on
//! numbering upwards.

mod restore;

use std::collections::BTreeMap;

use protocol::fence::FenceReply;
use protocol::host::Envelope;
use protocol::ids::{FencingToken, Label, Name, NodeId, ObjectKind};
use protocol::lease::LeaseReply;
use protocol::object::{Reply, Request};
use protocol::shard::ShardReply;
use protocol::sim::Answer;
use protocol::trace::{MessageId, TraceEvent, TraceKind};

use crate::script::{MessageFault, Term};

/// One client.
#[derive(Clone, Debug)]
pub struct Client {
    name: Label,
    boot_ms: u64,
    n_messages: u64,
    lamport: u64,
    local_seq: u64,
    beliefs: BTreeMap<Name, Belief>,
    tokens: BTreeMap<Name, FencingToken>,
    last_lease: Option<Name>,
    reads: BTreeMap<Label, i64>,
    sealed_state: BTreeMap<String, i64>,
    paused_since_ms: Option<u64>,
    next_fault: Option<MessageFault>,
    unreported: Vec<TraceEvent>,
}

/// What a client believes about a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Belief {
    /// Its token.
    pub token: FencingToken,
    /// Until when it believes to hold it, by its own clock.
    pub until_ms: u64,
}

/// A request as it leaves the client.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// Names the request; the reply carries the same name.
    pub message: MessageId,
    /// Where it goes.
    pub to: NodeId,
    /// What it asks.
    pub request: Request,
    /// What travels with it.
    pub envelope: Envelope,
    /// What the network does to it.
    pub fault: Option<MessageFault>,
    /// When it was sent.
    pub sent_at_ms: u64,
}

/// What came of a request, as far as the client can tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// This reply.
    Reply(Reply),
    /// No answer: `crashed`, `down` or `unreachable`.
    Unavailable(&'static str),
    /// Nothing at all: the request or its reply was dropped.
    Silence,
    /// What its own clock says: `valid`, `expired` or `unknown`.
    Checked(&'static str),
}

impl Outcome {
    /// The word used in scripts.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Reply(reply) => reply.outcome(),
            Self::Unavailable(word) | Self::Checked(word) => word,
            Self::Silence => "silence",
        }
    }

    /// One line for people.
    pub fn summary(&self) -> String {
        match self {
            Self::Reply(reply) => reply.summary(),
            Self::Unavailable(word) => format!("no answer: {word}"),
            Self::Silence => "no answer".to_owned(),
            Self::Checked(word) => format!("by its own clock: {word}"),
        }
    }
}

impl Client {
    /// A client that has done nothing yet. `boot_ms` is the time now.
    pub fn new(name: Label, boot_ms: u64) -> Self {
        Self {
            name,
            boot_ms,
            n_messages: 0,
            lamport: 0,
            local_seq: boot_ms * 1_000,
            beliefs: BTreeMap::new(),
            tokens: BTreeMap::new(),
            last_lease: None,
            reads: BTreeMap::new(),
            sealed_state: BTreeMap::new(),
            paused_since_ms: None,
            next_fault: None,
            unreported: Vec::new(),
        }
    }

    /// Its name, by which it is known as a holder.
    pub fn name(&self) -> &Label {
        &self.name
    }

    /// Its name in the log.
    pub fn node(&self) -> NodeId {
        NodeId::Client(self.name.clone())
    }

    /// Which process of its name it is. A reloaded page goes on with the same one.
    pub fn nonce(&self) -> Label {
        Label::try_from(format!("{}-1", self.name)).unwrap_or_else(|_| self.name.clone())
    }

    /// What it believes about a lease.
    pub fn belief(&self, lease: &Name) -> Option<Belief> {
        self.beliefs.get(lease).copied()
    }

    /// The last token that it was granted, whether or not it still believes in it.
    pub fn token(&self, lease: &Name) -> Option<FencingToken> {
        self.tokens.get(lease).copied()
    }

    /// What a term of a script stands for.
    pub fn known(&self, term: &Term) -> Option<i64> {
        match term {
            Term::Number(number) => Some(*number),
            Term::Token(_) => {
                let token = self.tokens.get(self.last_lease.as_ref()?)?;
                i64::try_from(token.get()).ok()
            }
            Term::Read(_, key) => self.reads.get(key).copied(),
        }
    }

    /// What it was given when it sealed a shard.
    pub fn sealed_state(&self) -> &BTreeMap<String, i64> {
        &self.sealed_state
    }

    /// Since when it is paused.
    pub fn paused_since_ms(&self) -> Option<u64> {
        self.paused_since_ms
    }

    /// Stops. False when it was paused already.
    pub fn pause(&mut self, now_ms: u64) -> bool {
        if self.paused_since_ms.is_some() {
            return false;
        }
        self.push(now_ms, None, TraceKind::ClientPaused);
        self.paused_since_ms = Some(now_ms);
        true
    }

    /// Goes on, and believes what it believed. False when it was not paused.
    pub fn resume(&mut self, now_ms: u64) -> bool {
        let Some(since_ms) = self.paused_since_ms.take() else { return false };
        let paused_ms = now_ms.saturating_sub(since_ms);
        self.push(now_ms, None, TraceKind::ClientResumed { paused_ms });
        true
    }

    /// Looks at its own clock, and asks nobody.
    pub fn check(&mut self, now_ms: u64, lease: &Name) -> Outcome {
        let Some(belief) = self.belief(lease) else { return Outcome::Checked("unknown") };
        if now_ms < belief.until_ms {
            let left_ms = belief.until_ms - now_ms;
            let text =
                format!("by its own clock, {lease} is {}'s for {left_ms} ms more", self.name);
            self.push(now_ms, None, TraceKind::Noted { text });
            return Outcome::Checked("valid");
        }
        let summary = format!("its lease on {lease} is over by its own clock");
        self.push(now_ms, None, TraceKind::ClientRefrained { summary });
        self.give_up(now_ms, lease, "deadline");
        Outcome::Checked("expired")
    }

    /// What happens to its next message.
    pub fn set_fault(&mut self, fault: MessageFault) {
        self.next_fault = Some(fault);
    }

    /// Sends a request: names it, records it, and packs what has not been told yet.
    pub fn send(&mut self, now_ms: u64, to: NodeId, request: Request) -> Outgoing {
        self.n_messages += 1;
        let message = format!("{}.{}.{}", self.name, self.boot_ms, self.n_messages);
        let message = Label::try_from(message).unwrap_or_else(|_| self.name.clone());
        let fault = self.next_fault.take();
        let sent = TraceKind::RequestSent {
            to: to.clone(),
            operation: request.operation().to_owned(),
            summary: request.summary(),
        };
        self.push(now_ms, Some(&message), sent);
        let on_the_way = match fault {
            Some(MessageFault::DropRequest) => Some(TraceKind::RequestDropped { to: to.clone() }),
            Some(MessageFault::DelayRequest(delay_ms)) => {
                Some(TraceKind::RequestDelayed { to: to.clone(), delay_ms })
            }
            Some(MessageFault::DuplicateRequest) => {
                Some(TraceKind::RequestDuplicated { to: to.clone() })
            }
            Some(MessageFault::DropReply | MessageFault::DelayReply(_)) | None => None,
        };
        if let Some(kind) = on_the_way {
            self.push(now_ms, Some(&message), kind);
        }
        let envelope = Envelope {
            request: Some(message.clone()),
            from: Some(self.name.clone()),
            lamport: self.lamport,
            events: self.unreported.clone(),
        };
        Outgoing { message, to, request, envelope, fault, sent_at_ms: now_ms }
    }

    /// Takes what came of a request; what the client makes of it.
    pub fn receive(&mut self, now_ms: u64, sent: &Outgoing, answer: Option<Answer>) -> Outcome {
        let from = sent.to.clone();
        let message = Some(&sent.message);
        match answer {
            None => Outcome::Silence,
            Some(Answer::Unavailable(why)) => {
                let reason = why.as_str().to_owned();
                self.push(now_ms, message, TraceKind::ReplyFailed { from, reason });
                Outcome::Unavailable(why.as_str())
            }
            // What was thrown away is known to the network, not to the client: it learns
            // nothing, not even the time.
            Some(Answer::Reply { .. }) if sent.fault == Some(MessageFault::DropReply) => {
                self.push(now_ms, message, TraceKind::ReplyDropped { from });
                Outcome::Silence
            }
            Some(Answer::Reply { reply, lamport }) => {
                self.lamport = self.lamport.max(lamport);
                let (outcome, summary) = (reply.outcome().to_owned(), reply.summary());
                let kind = TraceKind::ReplyReceived { from, outcome, summary };
                self.push(now_ms, message, kind);
                self.learn(now_ms, sent, &reply);
                Outcome::Reply(reply)
            }
        }
    }

    /// Events that the log has not been told; they stay until [`Client::reported`].
    pub fn unreported(&self) -> &[TraceEvent] {
        &self.unreported
    }

    /// The log knows this client's events up to this one.
    pub fn reported(&mut self, local_seq: u64) {
        self.unreported.retain(|event| event.local_seq > local_seq);
    }

    fn learn(&mut self, now_ms: u64, sent: &Outgoing, reply: &Reply) {
        match (reply, &sent.request) {
            (Reply::Lease(reply), _) => {
                if let NodeId::Object(ObjectKind::Lease, lease) = &sent.to {
                    self.learn_of_lease(now_ms, lease.clone(), sent.sent_at_ms, reply);
                }
            }
            (Reply::Resource(FenceReply::Value { value, .. }), Request::Read(read)) => {
                match value {
                    Some(value) => self.reads.insert(read.key.clone(), *value),
                    None => self.reads.remove(&read.key),
                };
            }
            (Reply::Resource(FenceReply::Fenced { presented, .. }), request) => {
                let lease = match request {
                    Request::Claim(claim) => Some(&claim.lease),
                    Request::Write(write) => Some(&write.lease),
                    Request::Read(read) => read.lease.as_ref(),
                    _ => None,
                };
                // Refused by its own token: a well-behaved client takes that as the end.
                let believed = lease.and_then(|lease| Some((lease, self.belief(lease)?.token)));
                if let Some((lease, _)) = believed.filter(|(_, token)| token == presented) {
                    let lease = lease.clone();
                    self.give_up(now_ms, &lease, "lost");
                }
            }
            (Reply::Shard(ShardReply::Sealed { state, .. }), Request::Seal(_)) => {
                self.sealed_state.clone_from(state);
            }
            _ => {}
        }
    }

    fn learn_of_lease(&mut self, now_ms: u64, lease: Name, sent_at_ms: u64, reply: &LeaseReply) {
        match reply {
            LeaseReply::Granted { token, ttl_ms, .. } => {
                let until_ms = sent_at_ms + ttl_ms;
                self.beliefs.insert(lease.clone(), Belief { token: *token, until_ms });
                self.tokens.insert(lease.clone(), *token);
                self.last_lease = Some(lease.clone());
                let lease = NodeId::Object(ObjectKind::Lease, lease);
                let kind = TraceKind::BeliefGained { lease, token: *token, until_ms };
                self.push(now_ms, None, kind);
            }
            LeaseReply::Lost { .. } | LeaseReply::NotHolder { .. } => {
                self.give_up(now_ms, &lease, "lost");
            }
            LeaseReply::Released => self.give_up(now_ms, &lease, "released"),
            _ => {}
        }
    }

    fn give_up(&mut self, now_ms: u64, lease: &Name, reason: &str) {
        let Some(belief) = self.beliefs.remove(lease) else { return };
        let lease = NodeId::Object(ObjectKind::Lease, lease.clone());
        let reason = reason.to_owned();
        self.push(now_ms, None, TraceKind::BeliefLost { lease, token: belief.token, reason });
    }

    fn push(&mut self, now_ms: u64, request: Option<&MessageId>, kind: TraceKind) {
        self.lamport += 1;
        self.local_seq += 1;
        self.unreported.push(TraceEvent {
            seq: 0,
            at_ms: now_ms,
            node: self.node(),
            lamport: self.lamport,
            local_seq: self.local_seq,
            request: request.cloned(),
            kind,
            decision: None,
            record: None,
        });
    }
}
