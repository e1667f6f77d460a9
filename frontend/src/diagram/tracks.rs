//! What the space-time diagram shows, apart from where: lanes, edges and bars.
//!
//! Grown event by event beside the log, so that a live log of any length costs only its
//! new events. Edges are exact (see `protocol::trace`): a request ends at the first event
//! of its handling, a reply begins at the last.

use std::collections::{BTreeMap, VecDeque};

use protocol::ids::{NodeId, ObjectKind};
use protocol::trace::{MessageId, TraceEvent, TraceKind};

use crate::playback::Scene;
use crate::playback::fold::refusal;

/// A point of the diagram's axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// Where this event is.
    Event(usize),
    /// Where this time is, which need not be that of an event.
    Time(u64),
    /// Half way between two events.
    Between(usize, usize),
}

/// What a stretch of a lane means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BarKind {
    /// By the authority's clock, somebody holds the lease.
    Held {
        /// Who.
        holder: String,
        /// The grant.
        token: u64,
    },
    /// A client believes that it holds a lease.
    Believed {
        /// The grant.
        token: u64,
        /// The lease.
        lease: NodeId,
        /// The bar of the lease that makes it true, if there is one.
        truth: Option<usize>,
    },
    /// A client stands still.
    Paused,
    /// An object is not running.
    Down,
}

/// A stretch of a lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bar {
    /// Index into [`Tracks::lanes`].
    pub lane: usize,
    /// What it means.
    pub kind: BarKind,
    /// Where it begins.
    pub from: At,
    /// Where it ends; `None` while it goes on. A held lease ends at its expiry, known
    /// beforehand.
    pub to: Option<At>,
    /// It cannot change any more.
    pub closed: bool,
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// On its way.
    Pending,
    /// It arrived.
    Arrived,
    /// It arrived and was refused.
    Refused,
    /// It was thrown away.
    Lost,
    /// The object could not be reached, or went down.
    Failed,
}

/// A message from one lane to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Where it leaves.
    pub from: (usize, At),
    /// Where it arrives, or would have arrived.
    pub to: (usize, Option<At>),
    /// What became of it.
    pub fate: Fate,
    /// A reply, not a request.
    pub is_reply: bool,
    /// The message.
    pub request: MessageId,
    /// Position of the last event about it.
    pub known_at: usize,
}

#[derive(Clone, Debug, Default)]
struct Flight {
    lanes: (usize, usize),
    sent: usize,
    pending: VecDeque<usize>,
    current: Option<usize>,
    last: Option<usize>,
}

/// A step or remark that divides the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chapter {
    /// Position of the event.
    pub index: usize,
    /// What it says.
    pub text: String,
}

/// Lanes, edges and bars of a log.
#[derive(Clone, Debug, Default)]
pub struct Tracks {
    /// Clients and objects in the order in which they appeared.
    pub lanes: Vec<NodeId>,
    /// For each lane the event with which it came into the story; settings do not count.
    pub entered_at: Vec<Option<usize>>,
    /// For each event its lane; `None` for the lab's own.
    pub lane_of: Vec<Option<usize>>,
    /// For each event the time, which never runs backwards.
    pub times_ms: Vec<u64>,
    /// Messages, in the order in which they left.
    pub edges: Vec<Edge>,
    /// Stretches, in the order in which they began.
    pub bars: Vec<Bar>,
    /// Steps and remarks.
    pub chapters: Vec<Chapter>,
    flights: BTreeMap<MessageId, Flight>,
}

impl Tracks {
    /// Takes the next event; `scene` is how things stand after it.
    pub fn observe(&mut self, index: usize, event: &TraceEvent, scene: &Scene) {
        let last_ms = self.times_ms.last().copied().unwrap_or(0);
        self.times_ms.push(event.at_ms.max(last_ms));
        if event.node == NodeId::Lab {
            self.lane_of.push(None);
            if let TraceKind::Noted { text } = &event.kind
                && !text.starts_with("variant: ")
            {
                let text = text.strip_prefix("step: ").unwrap_or(text).to_owned();
                self.chapters.push(Chapter { index, text });
            }
            return;
        }
        let lane = self.lane(&event.node);
        self.lane_of.push(Some(lane));
        if !is_setting(&event.kind) {
            self.enter(lane, index);
        }
        self.observe_message(index, lane, event);
        match &event.node {
            NodeId::Client(_) => self.observe_client(index, lane, event),
            NodeId::Object(kind, _) => {
                self.observe_crash(index, lane, event);
                if *kind == ObjectKind::Lease {
                    self.observe_lease(index, lane, event, scene);
                }
            }
            NodeId::Lab => {}
        }
    }

    /// Where a belief stops being true: where the grant ended; at once when there is none.
    pub fn false_from(&self, bar: &Bar) -> Option<At> {
        let BarKind::Believed { truth, .. } = &bar.kind else { return None };
        match truth {
            Some(truth) => self.bars[*truth].to,
            None => Some(bar.from),
        }
    }

    fn lane(&mut self, node: &NodeId) -> usize {
        let known = self.lanes.iter().position(|lane| lane == node);
        known.unwrap_or_else(|| {
            self.lanes.push(node.clone());
            self.entered_at.push(None);
            self.lanes.len() - 1
        })
    }

    fn enter(&mut self, lane: usize, index: usize) {
        self.entered_at[lane].get_or_insert(index);
    }

    /// The lanes from top to bottom: in the order in which they came into the story, a
    /// client before the object that it talks to.
    pub fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.lanes.len()).collect();
        order.sort_by_key(|lane| {
            (self.entered_at[*lane].unwrap_or(usize::MAX), !self.lanes[*lane].is_client(), *lane)
        });
        order
    }

    fn open_bar(&mut self, lane: usize, kind: BarKind, from: At, to: Option<At>) {
        self.bars.push(Bar { lane, kind, from, to, closed: false });
    }

    fn close(&mut self, to: At, which: impl Fn(&Bar) -> bool) {
        let bar = self.bars.iter_mut().rev().find(|bar| !bar.closed && which(bar));
        if let Some(bar) = bar {
            bar.to = Some(to);
            bar.closed = true;
        }
    }

    fn observe_client(&mut self, index: usize, lane: usize, event: &TraceEvent) {
        let at = At::Event(index);
        let believed = |bar: &Bar, of: &NodeId| {
            bar.lane == lane && matches!(&bar.kind, BarKind::Believed { lease, .. } if lease == of)
        };
        match &event.kind {
            TraceKind::BeliefGained { lease, token, .. } => {
                self.close(at, |bar| believed(bar, lease));
                let truth = self.truth_of(lease, event.node.name(), token.get());
                let kind = BarKind::Believed { token: token.get(), lease: lease.clone(), truth };
                self.open_bar(lane, kind, at, None);
            }
            TraceKind::BeliefLost { lease, .. } => self.close(at, |bar| believed(bar, lease)),
            TraceKind::ClientPaused => self.open_bar(lane, BarKind::Paused, at, None),
            TraceKind::ClientResumed { .. } => {
                self.close(at, |bar| bar.lane == lane && bar.kind == BarKind::Paused);
            }
            _ => {}
        }
    }

    fn truth_of(&self, lease: &NodeId, client: &str, granted: u64) -> Option<usize> {
        let lane = self.lanes.iter().position(|lane| lane == lease)?;
        self.bars.iter().rposition(|bar| {
            bar.lane == lane
                && matches!(&bar.kind, BarKind::Held { holder, token }
                    if holder == client && *token == granted)
        })
    }

    fn observe_crash(&mut self, index: usize, lane: usize, event: &TraceEvent) {
        match &event.kind {
            TraceKind::Crashed { .. } => {
                self.open_bar(lane, BarKind::Down, At::Event(index), None);
            }
            TraceKind::Restarted { .. } => {
                let at = At::Event(index);
                self.close(at, |bar| bar.lane == lane && bar.kind == BarKind::Down);
            }
            _ => {}
        }
    }

    fn observe_lease(&mut self, index: usize, lane: usize, event: &TraceEvent, scene: &Scene) {
        let Some(lease) = scene.lease(&event.node) else { return };
        let is_open =
            |bar: &Bar| !bar.closed && bar.lane == lane && matches!(bar.kind, BarKind::Held { .. });
        match &event.kind {
            TraceKind::LeaseGranted { holder, token, .. } => {
                self.close(At::Event(index), is_open);
                let kind = BarKind::Held { holder: holder.to_string(), token: token.get() };
                let expires = At::Time(expiry_of(event, lease.condition.clock_offset_ms));
                self.open_bar(lane, kind, At::Event(index), Some(expires));
            }
            TraceKind::LeaseRenewed { .. } => {
                let expires = At::Time(expiry_of(event, lease.condition.clock_offset_ms));
                self.move_end(expires, is_open);
            }
            TraceKind::LeaseExpired { .. } => {
                let open = self.bars.iter().rev().find(|bar| is_open(bar));
                let promised = match open.and_then(|bar| bar.to) {
                    Some(At::Time(at_ms)) if at_ms <= event.at_ms => At::Time(at_ms),
                    _ => At::Event(index),
                };
                self.close(promised, is_open);
            }
            TraceKind::LeaseReleased { .. } => self.close(At::Event(index), is_open),
            TraceKind::ClockSet { .. } => self.move_end(At::Time(lease.expires_at_ms), is_open),
            _ => {}
        }
    }

    fn move_end(&mut self, to: At, which: impl Fn(&Bar) -> bool) {
        if let Some(bar) = self.bars.iter_mut().rev().find(|bar| which(bar)) {
            bar.to = Some(to);
        }
    }

    fn observe_message(&mut self, index: usize, lane: usize, event: &TraceEvent) {
        let Some(id) = event.request.clone() else { return };
        if let TraceKind::RequestSent { to, .. } = &event.kind {
            let to_lane = self.lane(to);
            self.enter(to_lane, index);
            let edge = self.push_edge((lane, At::Event(index)), to_lane, false, &id, index);
            let flight = Flight { lanes: (lane, to_lane), sent: index, ..Flight::default() };
            let flight = self.flights.entry(id).insert_entry(flight).into_mut();
            flight.pending.push_back(edge);
            return;
        }
        let Some(mut flight) = self.flights.remove(&id) else { return };
        let is_over = match event.node {
            NodeId::Client(_) => self.client_side(index, event, &id, &mut flight),
            _ => {
                self.object_side(index, event, &mut flight);
                false
            }
        };
        if !is_over || !flight.pending.is_empty() {
            self.flights.insert(id, flight);
        }
    }

    fn push_edge(
        &mut self,
        from: (usize, At),
        to_lane: usize,
        is_reply: bool,
        id: &MessageId,
        index: usize,
    ) -> usize {
        self.edges.push(Edge {
            from,
            to: (to_lane, None),
            fate: Fate::Pending,
            is_reply,
            request: id.clone(),
            known_at: index,
        });
        self.edges.len() - 1
    }

    fn end_edge(&mut self, edge: usize, at: At, fate: Fate, index: usize) {
        let edge = &mut self.edges[edge];
        edge.to.1 = Some(at);
        edge.fate = fate;
        edge.known_at = index;
    }

    fn object_side(&mut self, index: usize, event: &TraceEvent, flight: &mut Flight) {
        // Events of one handling stand together; a later one is the next delivery.
        let is_next_delivery = flight.last.is_none_or(|last| last + 1 != index);
        flight.last = Some(index);
        if is_next_delivery && let Some(edge) = flight.pending.pop_front() {
            flight.current = Some(edge);
            self.end_edge(edge, At::Event(index), Fate::Arrived, index);
        }
        if let (Some(edge), true) = (flight.current, refusal(&event.kind).is_some()) {
            self.edges[edge].fate = Fate::Refused;
        }
    }

    /// Returns whether the message is over.
    fn client_side(
        &mut self,
        index: usize,
        event: &TraceEvent,
        id: &MessageId,
        flight: &mut Flight,
    ) -> bool {
        let (client, object) = flight.lanes;
        let between = At::Between(flight.sent, index);
        let fate = match &event.kind {
            TraceKind::RequestDropped { .. } => {
                if let Some(edge) = flight.pending.pop_front() {
                    self.end_edge(edge, At::Event(index), Fate::Lost, index);
                }
                return false;
            }
            TraceKind::RequestDuplicated { .. } => {
                let from = (client, At::Event(index));
                flight.pending.push_back(self.push_edge(from, object, false, id, index));
                return false;
            }
            TraceKind::ReplyReceived { .. } => Fate::Arrived,
            TraceKind::ReplyDropped { .. } => Fate::Lost,
            TraceKind::ReplyFailed { .. } => Fate::Failed,
            _ => return false,
        };
        let Some(last) = flight.last else {
            // The object recorded nothing: it was not reached, or had nothing to say.
            let Some(edge) = flight.pending.pop_front() else { return true };
            let arrived = if fate == Fate::Failed { Fate::Failed } else { Fate::Arrived };
            self.end_edge(edge, between, arrived, index);
            if fate != Fate::Failed {
                let reply = self.push_edge((object, between), client, true, id, index);
                self.end_edge(reply, At::Event(index), fate, index);
            }
            return true;
        };
        let reply = self.push_edge((object, At::Event(last)), client, true, id, index);
        self.end_edge(reply, At::Event(index), fate, index);
        true
    }
}

fn expiry_of(event: &TraceEvent, offset_ms: i64) -> u64 {
    let (TraceKind::LeaseGranted { expires_at_ms, .. }
    | TraceKind::LeaseRenewed { expires_at_ms, .. }) = &event.kind
    else {
        return event.at_ms;
    };
    expires_at_ms.saturating_add_signed(-offset_ms)
}

/// Whether a person only set something.
fn is_setting(kind: &TraceKind) -> bool {
    matches!(
        kind,
        TraceKind::RulesChanged { .. }
            | TraceKind::ClockSet { .. }
            | TraceKind::FaultsSet { .. }
            | TraceKind::AlarmSuppressed
            | TraceKind::AlarmResumed
    )
}
