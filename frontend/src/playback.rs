//! The log of a lab, and what it looks like at any point of it.
//!
//! A [`Playback`] only grows. Every picture of the page is a function of it and a
//! cursor: `cursor` events have happened, and event `cursor - 1` is the one to look
//! at. [`Playback::scene_at`] starts from the nearest checkpoint, so that any cursor of
//! a log of ten thousand events is reached within [`CHECKPOINT_EVERY`] steps.
//!
//! Plain Rust: no reactive types, no clock. It knows no protocol rule; it repeats what
//! the events say.

use std::sync::Arc;

use protocol::ids::{Label, NodeId};
use protocol::invariant::{Checkers, Invariant, Violation};
use protocol::rules::Preset;
use protocol::trace::{ObjectRecord, TraceEvent, TraceKind};

pub mod fold;
pub mod message;
pub mod scene;

pub use message::{Message, Phase};
pub use scene::{
    Account, Activity, Belief, Client, Condition, Fence, Lease, Object, ReadValue, Resource, Scene,
    Shard, Stored, Transaction,
};

use crate::diagram::tracks::Tracks;

/// How many events lie between two checkpoints.
pub const CHECKPOINT_EVERY: usize = 64;

/// One event of the log, cheap to copy.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The event.
    pub event: Arc<TraceEvent>,
    /// Its record, shared with every scene that shows it.
    pub record: Option<Arc<ObjectRecord>>,
}

/// A log that grows, with what is needed to jump about in it.
#[derive(Clone, Debug)]
pub struct Playback {
    entries: Vec<Entry>,
    checkpoints: Vec<Scene>,
    latest: Scene,
    tracks: Tracks,
    checkers: Checkers,
    concerned: Vec<(Invariant, usize)>,
}

impl Default for Playback {
    fn default() -> Self {
        Self::new(Preset::Repaired)
    }
}

impl Playback {
    /// An empty log of a lab whose objects start with these rules.
    pub fn new(preset: Preset) -> Self {
        let empty = Scene::new(preset);
        Self {
            entries: Vec::new(),
            checkpoints: vec![empty.clone()],
            latest: empty,
            tracks: Tracks::default(),
            checkers: Checkers::new(),
            concerned: Vec::new(),
        }
    }

    /// The same with these clients on the stage, in this order, before they have done
    /// anything.
    pub fn with_clients(preset: Preset, clients: &[Label]) -> Self {
        let mut playback = Self::new(preset);
        for name in clients {
            playback.latest.add_client(NodeId::Client(name.clone()));
        }
        playback.checkpoints = vec![playback.latest.clone()];
        playback
    }

    /// A whole log at once.
    pub fn of(preset: Preset, events: impl IntoIterator<Item = TraceEvent>) -> Self {
        let mut playback = Self::new(preset);
        events.into_iter().for_each(|event| playback.push(event));
        playback
    }

    /// Appends the next event of the log.
    pub fn push(&mut self, event: TraceEvent) {
        let record = event.record.clone().map(Arc::new);
        let entry = Entry { event: Arc::new(event), record };
        self.latest.apply(&entry);
        self.tracks.observe(self.entries.len(), &entry.event, &self.latest);
        self.checkers.observe(&entry.event);
        let position = self.entries.len();
        for invariant in self.checkers.concerned() {
            if !self.concerned.iter().any(|(known, _)| *known == invariant) {
                self.concerned.push((invariant, position));
            }
        }
        self.entries.push(entry);
        if self.entries.len().is_multiple_of(CHECKPOINT_EVERY) {
            self.checkpoints.push(self.latest.clone());
        }
    }

    /// How many events there are; also the last cursor.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing has happened yet.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The event at this position, from 0.
    pub fn event(&self, index: usize) -> Option<&TraceEvent> {
        self.entries.get(index).map(|entry| entry.event.as_ref())
    }

    /// The durable record that this event brought.
    pub fn record(&self, index: usize) -> Option<&ObjectRecord> {
        self.entries.get(index)?.record.as_deref()
    }

    /// The same, to keep.
    pub fn shared_event(&self, index: usize) -> Option<Arc<TraceEvent>> {
        self.entries.get(index).map(|entry| entry.event.clone())
    }

    /// All events in order.
    pub fn events(&self) -> impl DoubleEndedIterator<Item = &TraceEvent> + ExactSizeIterator {
        self.entries.iter().map(|entry| entry.event.as_ref())
    }

    /// The number that the lab gave to the last event; 0 for an empty log.
    pub fn last_seq(&self) -> u64 {
        self.entries.last().map_or(0, |entry| entry.event.seq)
    }

    /// The position of the event with this number, if it is in the log.
    pub fn index_of_seq(&self, seq: u64) -> Option<usize> {
        self.entries.binary_search_by_key(&seq, |entry| entry.event.seq).ok()
    }

    /// How things stand after the first `cursor` events.
    pub fn scene_at(&self, cursor: usize) -> Scene {
        let cursor = cursor.min(self.entries.len());
        let mut scene = self.fold_to(cursor);
        let seq = scene.spotlight.as_ref().map(|event| event.seq);
        let broken = self.violations().iter().filter(|broken| Some(broken.seq) == seq);
        scene.broken = broken.map(|broken| broken.sentence.clone()).collect();
        scene
    }

    fn fold_to(&self, cursor: usize) -> Scene {
        if cursor == self.entries.len() {
            return self.latest.clone();
        }
        let nearest = (cursor / CHECKPOINT_EVERY).min(self.checkpoints.len() - 1);
        let mut scene = self.checkpoints[nearest].clone();
        for entry in &self.entries[nearest * CHECKPOINT_EVERY..cursor] {
            scene.apply(entry);
        }
        scene
    }

    /// What the lanes show.
    pub fn tracks(&self) -> &Tracks {
        &self.tracks
    }

    /// Everything broken, in the order of the log.
    pub fn violations(&self) -> &[Violation] {
        self.checkers.violations()
    }

    /// Whether the event with this number broke something.
    pub fn is_broken_at(&self, seq: u64) -> bool {
        self.violations().binary_search_by_key(&seq, |broken| broken.seq).is_ok()
    }

    /// Whether the event refuses something, or breaks an invariant: what a lesson is about.
    pub fn is_decisive(&self, index: usize) -> bool {
        self.event(index).is_some_and(|event| {
            fold::refusal(&event.kind).is_some() || self.is_broken_at(event.seq)
        })
    }

    /// Where to come to rest when everything up to `cursor` has been shown: on the refusal,
    /// or on the damage, if all that followed is its reply and a belief given up for it.
    pub fn rest(&self, cursor: usize) -> usize {
        let mut echoed = None;
        for n in (1..=cursor.min(self.len())).rev() {
            let Some(event) = self.event(n - 1) else { break };
            if self.is_decisive(n - 1) {
                let is_its_own =
                    echoed.is_none_or(|request| event.request.as_ref() == Some(request));
                return if is_its_own { n } else { cursor };
            }
            match (&event.kind, &event.request) {
                (TraceKind::BeliefLost { .. }, _) => {}
                (TraceKind::ReplyReceived { .. }, Some(request)) if echoed.is_none() => {
                    echoed = Some(request);
                }
                _ => break,
            }
        }
        cursor
    }

    /// The invariants that the log is about, each with the position of the first event
    /// that concerns it, in the order of [`Invariant::ALL`].
    pub fn concerned(&self) -> Vec<(Invariant, usize)> {
        let mut concerned = self.concerned.clone();
        concerned.sort_by_key(|(invariant, _)| *invariant);
        concerned
    }

    /// When the log began, in ms since 1970; 0 for an empty one.
    pub fn start_ms(&self) -> u64 {
        self.entries.first().map_or(0, |entry| entry.event.at_ms)
    }
}

#[cfg(test)]
mod tests;
