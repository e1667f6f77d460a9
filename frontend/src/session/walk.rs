//! The cursor's pace: one event at a time, slowly enough to be seen.
//!
//! A real lab does five things in ten milliseconds. They are shown one after the other,
//! each for as long as it takes to look at; when many wait, faster. With reduced motion
//! the cursor jumps to what decides, and from there to the end.
//!
//! Invariant: one timer at most is running, and all it does is move the cursor on.

use gloo_timers::callback::Timeout;
use leptos::prelude::*;
use protocol::trace::TraceKind;

use super::{Heading, Session};
use crate::playback::Playback;

/// How long an event is looked at when nothing hurries, in ms.
const MESSAGE_MS: f64 = 620.0;
const DECISION_MS: f64 = 520.0;
const OTHER_MS: f64 = 380.0;
/// A refusal, or what breaks an invariant: the message's way to it, and time to read.
const DECISIVE_MS: f64 = 2_600.0;
/// From this many waiting events on, each is looked at for a shorter time.
const UNHURRIED: usize = 10;

impl Session {
    /// Heads for the newest event.
    pub(crate) fn follow(self) {
        self.heading.set(Heading::Newest);
        self.walk();
    }

    /// Shows this many events, at once.
    pub(crate) fn jump(self, n: usize) {
        self.jump_and_rest(n, n);
    }

    /// Shows everything up to the end of a step, at once, and rests on what decided it.
    pub(super) fn jump_to_end(self, n: usize) {
        self.jump_and_rest(n, self.playback.with_untracked(|log| log.rest(n.min(log.len()))));
    }

    fn jump_and_rest(self, n: usize, rest: usize) {
        let n_events = self.playback.with_untracked(Playback::len);
        self.stop_walking();
        self.cursor.set(rest.min(n_events));
        self.heading.set(if n >= n_events { Heading::Newest } else { Heading::Until(n) });
    }

    /// Walks on to this many events, and stays there.
    pub(crate) fn walk_to(self, n: usize) {
        let n_events = self.playback.with_untracked(Playback::len);
        self.heading.set(if n >= n_events { Heading::Newest } else { Heading::Until(n) });
        if self.cursor.get_untracked() > n {
            self.cursor.set(n);
        }
        self.walk();
    }

    /// Whether the cursor is on its way.
    pub(crate) fn is_walking(self) -> bool {
        self.cursor.get() < self.goal()
    }

    /// Goes where the cursor is heading, at once.
    pub(crate) fn skip(self) {
        self.stop_walking();
        self.cursor.set(self.goal_untracked());
        self.arrived();
    }

    /// What the cursor rests on has been seen: on to the end of what only told of it.
    pub(super) fn leave_rest(self) {
        let cursor = self.cursor.get_untracked();
        let n_events = self.playback.with_untracked(Playback::len);
        let end = match self.heading.get_untracked() {
            Heading::Newest => n_events,
            Heading::Until(n) => n.min(n_events),
        };
        if cursor == self.goal_untracked() && cursor < end {
            self.cursor.set(end);
        }
    }

    /// Starts the timer, unless it runs or there is nowhere to go.
    pub(super) fn walk(self) {
        if self.engine.try_with_value(|engine| engine.walk.is_some()).unwrap_or(true) {
            return;
        }
        let (cursor, goal) = (self.cursor.get_untracked(), self.goal_untracked());
        if cursor >= goal {
            self.arrived();
            return;
        }
        let pause_ms = match cursor {
            0 => 0.0,
            _ if self.is_passed_over(cursor, goal - cursor) => 0.0,
            _ => self.dwell_ms(cursor, goal - cursor),
        };
        let timer = Timeout::new(pause_ms as u32, move || {
            let taken = self.engine.try_update_value(|engine| engine.walk = None);
            if taken.is_none() {
                return;
            }
            let goal = self.goal_untracked();
            let mut next = self.cursor.get_untracked() + 1;
            // What nobody looks at is passed over in the same moment.
            while next < goal && self.is_passed_over(next, goal - next) {
                next += 1;
            }
            self.cursor.set(next.min(goal.max(self.cursor.get_untracked())));
            self.walk();
        });
        self.engine.update_value(|engine| engine.walk = Some(timer));
    }

    fn stop_walking(self) {
        self.engine.update_value(|engine| engine.walk = None);
    }

    fn goal(self) -> usize {
        let heading = self.heading.get();
        self.playback.with(|log| match heading {
            Heading::Newest => log.rest(log.len()),
            Heading::Until(n) => log.rest(n.min(log.len())),
        })
    }

    fn goal_untracked(self) -> usize {
        untrack(|| self.goal())
    }

    /// With reduced motion only what decides is stopped at.
    fn is_passed_over(self, cursor: usize, n_waiting: usize) -> bool {
        let is_decisive = || self.playback.with_untracked(|log| log.is_decisive(cursor - 1));
        self.dwell_ms(cursor, n_waiting) == 0.0 || (prefers_reduced_motion() && !is_decisive())
    }

    /// How long the event before the cursor is looked at, with so many waiting behind it.
    fn dwell_ms(self, cursor: usize, n_waiting: usize) -> f64 {
        let pace = self.pace.get_untracked();
        if self.playback.with_untracked(|log| log.is_decisive(cursor - 1)) {
            return DECISIVE_MS * pace;
        }
        let hurry = (n_waiting as f64 / UNHURRIED as f64).max(1.0);
        let base_ms = self.playback.with_untracked(|log| {
            log.event(cursor - 1).map_or(0.0, |event| match &event.kind {
                TraceKind::LabCreated
                | TraceKind::ObjectAdded { .. }
                | TraceKind::RulesChanged { .. } => 0.0,
                TraceKind::Noted { text } if is_marker(text) => 0.0,
                TraceKind::RequestSent { .. } | TraceKind::ReplyReceived { .. } => MESSAGE_MS,
                TraceKind::AlarmFired { .. } | TraceKind::BeliefGained { .. } => OTHER_MS / 2.0,
                _ if event.decision.is_some() => DECISION_MS,
                _ => OTHER_MS,
            })
        });
        base_ms * pace / hurry
    }
}

/// Whether a note only marks where a step begins.
fn is_marker(text: &str) -> bool {
    text.starts_with("step: ") || text.starts_with("variant: ")
}

pub(crate) fn prefers_reduced_motion() -> bool {
    let query = "(prefers-reduced-motion: reduce)";
    let asked = web_sys::window().and_then(|window| window.match_media(query).ok().flatten());
    asked.is_some_and(|query| query.matches())
}
