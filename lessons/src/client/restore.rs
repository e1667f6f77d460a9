//! A client, rebuilt from the log after the page was reloaded.
//!
//! What the log tells is enough to go on: beliefs, reads, the pause. What was in flight
//! when the page went away is lost, as it would be for any process that crashed.

use std::collections::BTreeMap;

use protocol::ids::{Label, NodeId};
use protocol::trace::{MessageId, ObjectRecord, TraceEvent, TraceKind};

use super::{Belief, Client};

impl Client {
    /// The client as the log knows it. `boot_ms` is the time now.
    pub fn restore(name: Label, boot_ms: u64, log: &[TraceEvent]) -> Self {
        let mut client = Self::new(name, boot_ms);
        let node = client.node();
        let mut answers = BTreeMap::new();
        for event in log {
            if event.node == node {
                client.lamport = client.lamport.max(event.lamport);
                client.local_seq = client.local_seq.max(event.local_seq);
                client.remember(event, &answers);
            } else if let (Some(request), Some(learnt)) = (&event.request, Learnt::from(event)) {
                answers.insert(request.clone(), learnt);
            }
        }
        client
    }

    fn remember(&mut self, event: &TraceEvent, answers: &BTreeMap<MessageId, Learnt>) {
        match &event.kind {
            TraceKind::ClientPaused => self.paused_since_ms = Some(event.at_ms),
            TraceKind::ClientResumed { .. } => self.paused_since_ms = None,
            TraceKind::BeliefGained { lease: NodeId::Object(_, lease), token, until_ms } => {
                let belief = Belief { token: *token, until_ms: *until_ms };
                self.beliefs.insert(lease.clone(), belief);
                self.tokens.insert(lease.clone(), *token);
                self.last_lease = Some(lease.clone());
            }
            TraceKind::BeliefLost { lease: NodeId::Object(_, lease), .. } => {
                self.beliefs.remove(lease);
            }
            TraceKind::ReplyReceived { .. } => {
                match event.request.as_ref().and_then(|request| answers.get(request)) {
                    Some(Learnt::Value(key, Some(value))) => {
                        self.reads.insert(key.clone(), *value);
                    }
                    Some(Learnt::Value(key, None)) => {
                        self.reads.remove(key);
                    }
                    Some(Learnt::State(state)) => self.sealed_state.clone_from(state),
                    None => {}
                }
            }
            _ => {}
        }
    }
}

/// What a reply told, which the client's own event does not repeat.
enum Learnt {
    Value(Label, Option<i64>),
    State(BTreeMap<String, i64>),
}

impl Learnt {
    fn from(event: &TraceEvent) -> Option<Self> {
        match (&event.kind, &event.record) {
            (TraceKind::ValueRead { key, value, .. }, _) => Some(Self::Value(key.clone(), *value)),
            (TraceKind::ShardSealed { .. }, Some(ObjectRecord::Shard(record))) => {
                Some(Self::State(record.state.clone()))
            }
            _ => None,
        }
    }
}
