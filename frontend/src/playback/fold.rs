//! One event more: how a scene follows from the scene before it.

use std::sync::Arc;

use protocol::ids::{Label, NodeId};
use protocol::trace::{ObjectRecord, TraceEvent, TraceKind};

use super::Entry;
use super::message::{Message, Phase};
use super::scene::{Activity, Belief, Client, Crash, Fence, Object, ReadValue, Scene, Stored};

impl Scene {
    /// Takes the next event.
    pub(super) fn apply(&mut self, entry: &Entry) {
        let event = &entry.event;
        let index = self.cursor;
        self.cursor += 1;
        self.at_ms = self.at_ms.max(event.at_ms);
        self.has_begun |= matches!(event.kind, TraceKind::RequestSent { .. })
            || matches!(&event.kind, TraceKind::Noted { text } if text.starts_with("step: "));
        self.spotlight = self.has_begun.then(|| event.clone());
        self.messages.retain(|message| !is_stale(message, index));
        match &event.node {
            NodeId::Lab => self.apply_lab(event),
            NodeId::Client(_) => self.apply_client(index, event),
            NodeId::Object(..) => {
                self.apply_object(index, entry);
                self.apply_arrival(index, event);
            }
        }
    }

    fn apply_lab(&mut self, event: &TraceEvent) {
        if let TraceKind::ObjectAdded { object_kind, name } = &event.kind
            && let Ok(name) = name.as_str().try_into()
        {
            self.add_object(&NodeId::Object(*object_kind, name));
        }
    }

    fn add_object(&mut self, node: &NodeId) {
        if let NodeId::Object(kind, _) = node
            && self.object(node).is_none()
        {
            self.objects.push(Object::new(node.clone(), *kind, self.preset));
        }
    }

    fn client_mut(&mut self, node: &NodeId) -> &mut Client {
        let position = self.clients.iter().position(|client| client.node == *node);
        let position = position.unwrap_or_else(|| {
            self.add_client(node.clone());
            self.clients.len() - 1
        });
        &mut self.clients[position]
    }

    /// Puts a client on the stage.
    pub(super) fn add_client(&mut self, node: NodeId) {
        self.clients.push(Client {
            node,
            activity: Activity::Idle,
            woke: None,
            beliefs: Vec::new(),
            reads: Vec::new(),
        });
    }

    fn apply_client(&mut self, index: usize, event: &TraceEvent) {
        let node = &event.node;
        let at_ms = event.at_ms;
        let client = self.client_mut(node);
        match &event.kind {
            TraceKind::RequestSent { to, .. } => {
                client.activity = Activity::Waiting { on: to.clone() }
            }
            TraceKind::ReplyReceived { .. } | TraceKind::ReplyFailed { .. } => {
                client.activity = Activity::Idle;
            }
            TraceKind::ClientPaused => client.activity = Activity::Paused { since_ms: at_ms },
            TraceKind::ClientResumed { paused_ms } => {
                client.woke = Some((at_ms, *paused_ms));
                client.activity = Activity::Idle;
            }
            TraceKind::BeliefGained { lease, token, until_ms } => {
                client.beliefs.retain(|belief| belief.lease != *lease);
                client.beliefs.push(Belief {
                    lease: lease.clone(),
                    token: *token,
                    until_ms: *until_ms,
                    gained_ms: at_ms,
                });
            }
            TraceKind::BeliefLost { lease, .. } => {
                client.beliefs.retain(|belief| belief.lease != *lease);
            }
            _ => {}
        }
        self.apply_message(index, event);
        self.settle_activity(node);
    }

    /// A client that woke up, or whose reply was lost, may still be waiting for another.
    fn settle_activity(&mut self, node: &NodeId) {
        let open = self.messages.iter().find(|one| one.from == *node && !one.phase.is_over());
        let on = open.map(|message| message.to.clone());
        let client = self.client_mut(node);
        if let (Activity::Idle, Some(on)) = (&client.activity, on) {
            client.activity = Activity::Waiting { on };
        }
    }

    fn apply_message(&mut self, index: usize, event: &TraceEvent) {
        let Some(id) = &event.request else { return };
        if let TraceKind::RequestSent { to, operation, summary } = &event.kind {
            self.add_object(to);
            self.messages.retain(|one| {
                one.id != *id && !(one.phase.is_over() && one.from == event.node && one.to == *to)
            });
            self.messages.push(Message {
                id: id.clone(),
                from: event.node.clone(),
                to: to.clone(),
                operation: operation.clone(),
                request: summary.clone(),
                reply: None,
                token: Message::token_in(summary),
                phase: Phase::Requesting,
                refused: false,
                sent_at: index,
                arrived_at: None,
                changed_at: index,
                n_duplicates: 0,
            });
            return;
        }
        let Some(message) = self.messages.iter_mut().find(|one| one.id == *id) else { return };
        message.changed_at = index;
        match &event.kind {
            TraceKind::RequestDropped { .. } => message.phase = Phase::RequestLost,
            TraceKind::RequestDelayed { delay_ms, .. } => message.phase = Phase::Delayed(*delay_ms),
            TraceKind::RequestDuplicated { .. } => message.n_duplicates += 1,
            TraceKind::ReplyDropped { .. } => message.phase = Phase::ReplyLost,
            TraceKind::ReplyFailed { reason, .. } => message.phase = Phase::Failed(reason.clone()),
            TraceKind::ReplyReceived { outcome, summary, .. } => {
                message.reply = Some(summary.clone());
                message.phase = Phase::Answered(outcome.clone());
            }
            _ => {}
        }
    }

    /// What an event at an object says about the message that caused it.
    fn apply_arrival(&mut self, index: usize, event: &TraceEvent) {
        let Some(id) = &event.request else { return };
        let Some(message) = self.messages.iter_mut().find(|one| one.id == *id) else { return };
        message.changed_at = index;
        message.arrived_at.get_or_insert(index);
        match refusal(&event.kind) {
            Some(outcome) => {
                message.refused = true;
                message.phase = Phase::Refused(outcome);
            }
            None if !matches!(message.phase, Phase::Refused(_)) => message.phase = Phase::Handled,
            None => {}
        }
        if let TraceKind::ValueRead { key, value, version, .. } = &event.kind {
            let (reader, resource) = (message.from.clone(), event.node.clone());
            let (key, value, version) = (key.to_string(), *value, *version);
            let reads = &mut self.client_mut(&reader).reads;
            reads.retain(|read| read.key != key || read.resource != resource);
            reads.push(ReadValue { resource, key, value, version });
        }
    }

    fn apply_object(&mut self, index: usize, entry: &Entry) {
        let event = &entry.event;
        self.add_object(&event.node);
        let Some(object) = self.objects.iter_mut().find(|one| *one.node() == event.node) else {
            return;
        };
        apply_condition(index, entry, object);
        match object {
            Object::Lease(lease) => match &event.kind {
                TraceKind::LeaseGranted { ttl_ms, .. } => lease.ttl_ms = *ttl_ms,
                TraceKind::LeaseRenewed { expires_at_ms, clock_ms, .. } => {
                    lease.ttl_ms = expires_at_ms.saturating_sub(*clock_ms);
                }
                _ => {}
            },
            Object::Resource(resource) => match (&event.kind, &event.request) {
                (TraceKind::WriteAdmitted { key, value, .. }, Some(id)) => {
                    resource.admitted.push((id.clone(), format!("{key} = {value}")));
                }
                (TraceKind::WriteApplied { key, .. }, id) => {
                    resource.admitted.retain(|(admitted, _)| Some(admitted) != id.as_ref());
                    resource.last_write = Some((key.to_string(), index));
                }
                (TraceKind::Crashed { .. }, _) => resource.admitted.clear(),
                _ => {}
            },
            Object::Shard(shard) => match (&event.kind, &event.request) {
                (TraceKind::OperationNumbered { number, summary }, Some(id)) => {
                    shard.numbered.push((id.clone(), *number, summary.clone()));
                }
                (TraceKind::OperationApplied { .. }, Some(id)) => {
                    shard.numbered.retain(|(numbered, _, _)| numbered != id);
                }
                (TraceKind::Crashed { .. }, _) => shard.numbered.clear(),
                _ => {}
            },
            // All that is shown of these is in their records.
            Object::Account(_) | Object::Transaction(_) => {}
        }
        if let Some(record) = &entry.record {
            apply_record(object, record);
        }
    }
}

fn apply_condition(index: usize, entry: &Entry, object: &mut Object) {
    let event = &entry.event;
    let condition = object.condition_mut();
    condition.changed_at = index;
    if let Some(record) = &entry.record
        && condition.record.as_ref() != Some(record)
    {
        condition.previous_record = condition.record.replace(record.clone());
        condition.record_at = index;
    }
    match &event.kind {
        TraceKind::Crashed { stays_down, .. } => {
            condition.crashed = Some(Crash { since_ms: event.at_ms, stays_down: *stays_down });
        }
        TraceKind::Restarted { incarnation } => {
            condition.crashed = None;
            condition.incarnation = *incarnation;
        }
        TraceKind::RulesChanged { rules } => condition.rules = Arc::new(rules.clone()),
        TraceKind::ClockSet { offset_ms } => {
            let moved_ms = offset_ms - condition.clock_offset_ms;
            condition.clock_offset_ms = *offset_ms;
            if let Object::Lease(lease) = object {
                lease.expires_at_ms = lease.expires_at_ms.saturating_add_signed(-moved_ms);
            }
        }
        TraceKind::FaultsSet { faults } => condition.faults.clone_from(faults),
        TraceKind::AlarmSuppressed => condition.alarm_suppressed = true,
        TraceKind::AlarmResumed => condition.alarm_suppressed = false,
        _ => {}
    }
}

fn apply_record(object: &mut Object, record: &ObjectRecord) {
    let offset_ms = object.condition().clock_offset_ms;
    match (object, record) {
        (Object::Lease(lease), ObjectRecord::Lease(record)) => {
            lease.holder = record.holder.as_ref().map(|holder| holder.name.clone());
            lease.nonce = record.holder.as_ref().and_then(|holder| holder.nonce.clone());
            lease.token = record.token;
            lease.expires_at_ms = record.expires_at_ms.saturating_add_signed(-offset_ms);
            lease.waiters =
                record.waiters.iter().map(|waiter| waiter.holder.name.clone()).collect();
        }
        (Object::Resource(resource), ObjectRecord::Resource(record)) => {
            let fences = record.marks.iter().map(|(scope, mark)| Fence {
                scope: scope.clone(),
                claimed: mark.claimed,
                high_water_mark: mark.high_water_mark,
            });
            resource.fences = fences.collect();
            let values = record.values.iter().map(|(key, stored)| Stored {
                key: key.clone(),
                value: stored.value,
                token: stored.token,
                version: stored.version,
            });
            resource.values = values.collect();
        }
        (Object::Shard(shard), ObjectRecord::Shard(record)) => {
            shard.number = record.number;
            shard.map_epoch = record.map_epoch;
            shard.sealed = record.sealed;
            shard.state = record.state.iter().map(|(key, value)| (key.clone(), *value)).collect();
            let latest = record.log.iter().rev().take(8).rev();
            shard.operations =
                latest.map(|logged| (logged.number, logged.summary.clone())).collect();
        }
        (Object::Account(account), ObjectRecord::Account(record)) => {
            account.record = record.clone();
        }
        (Object::Transaction(txn), ObjectRecord::Transaction(record)) => {
            txn.record = record.clone();
        }
        _ => {}
    }
}

/// The outcome, when the event says no.
pub fn refusal(kind: &TraceKind) -> Option<String> {
    let word = match kind {
        TraceKind::WriteRefused { outcome, .. } | TraceKind::OperationRefused { outcome, .. } => {
            return Some(outcome.clone());
        }
        TraceKind::LeaseRefused { .. } => "refused",
        TraceKind::ReleaseRefused { .. } => "not_holder",
        TraceKind::RenewalRefused { .. } => "lost",
        TraceKind::RequestExpired { .. } => "timeout",
        TraceKind::RequestConflicted { .. }
        | TraceKind::WriteConflicted { .. }
        | TraceKind::OperationConflicted { .. } => "conflict",
        TraceKind::TokensExhausted => "exhausted",
        TraceKind::ClaimRefused { .. } | TraceKind::ReadRefused { .. } => "fenced",
        TraceKind::RunRefused { outcome, .. } => return Some(outcome.clone()),
        TraceKind::PrepareRefused { .. } => "no",
        TraceKind::DecisionRefused { answer, .. } => answer.as_str(),
        TraceKind::ForgetRefused { .. } => "refused",
        _ => return None,
    };
    Some(word.to_owned())
}

/// How long a finished message stays to be seen, in events.
const TRACE_EVENTS: usize = 8;

fn is_stale(message: &Message, index: usize) -> bool {
    message.phase.is_over() && index.saturating_sub(message.changed_at) > TRACE_EVENTS
}

/// The clients that an event at an object names.
pub(super) fn names_in(event: &TraceEvent) -> Vec<NodeId> {
    let holder: Option<&Label> = match &event.kind {
        TraceKind::LeaseGranted { holder, .. }
        | TraceKind::LeaseRenewed { holder, .. }
        | TraceKind::LeaseExpired { holder, .. }
        | TraceKind::LeaseReleased { holder, .. }
        | TraceKind::WaiterQueued { holder, .. }
        | TraceKind::WaiterTimedOut { holder } => Some(holder),
        _ => None,
    };
    holder.map(|holder| NodeId::Client(holder.clone())).into_iter().collect()
}
