//! One run of a script in one lab: the ground state of a page.
//!
//! Ground state is the log, the cursor with where it is heading, the mode, and the open
//! step with the answers given. Everything that is drawn is derived from that.
//!
//! Invariants: the log only grows, by events in the order of their numbers with none
//! missing. The cursor moves only here and in [`walk`]. Nothing else writes these signals.

pub(crate) mod now;
mod open;
mod run;
mod walk;

use std::collections::BTreeMap;
use std::rc::Rc;

use gloo_timers::callback::{Interval, Timeout};
use leptos::prelude::*;
use lessons::runner::{Runner, StepReport};
use lessons::script::{Cast, Command, Script};
use protocol::ids::NodeId;
use protocol::rules::Preset;
use protocol::trace::{TraceEvent, TraceKind};

use crate::live::LabDriver;
use crate::playback::{Playback, Scene};
use crate::socket::{Link, Socket};
use crate::storage::Place;

pub(crate) use open::Start;
pub(crate) use walk::prefers_reduced_motion;

/// The rules with which new objects of a lab start.
pub(crate) const PRESET: Preset = Preset::Repaired;

/// Where the machines run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The lab is being made.
    Starting,
    /// Real objects of this lab.
    Live(String),
    /// The machines in this page.
    Simulated,
}

/// Where the cursor is heading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heading {
    /// To the newest event, and on as more come.
    Newest,
    /// To this many events, and then it stays.
    Until(usize),
}

/// Something to tell the learner, with what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The lab of the last visit does not exist any more.
    Expired,
    /// A reload cut the step off in the middle.
    CutOff(usize),
    /// The run could not go on.
    Failed(String),
    /// The run went differently from what the script expects.
    Unexpected(String),
    /// An act by hand was not possible.
    Refused(String),
    /// The server has no lab to give today; the page goes on by itself.
    Quota(String),
}

/// A handle to a run; cheap to copy.
#[derive(Clone, Copy)]
pub(crate) struct Session {
    /// The log.
    pub(crate) playback: RwSignal<Playback>,
    /// How many events of it are shown.
    pub(crate) cursor: RwSignal<usize>,
    /// Where the cursor is heading.
    pub(crate) heading: RwSignal<Heading>,
    /// Where the machines run.
    pub(crate) mode: RwSignal<Mode>,
    /// The socket's state.
    pub(crate) link: RwSignal<Link>,
    /// A step or an act is under way.
    pub(crate) busy: RwSignal<bool>,
    /// A step of the script is under way.
    pub(crate) stepping: RwSignal<bool>,
    /// The open step: 0 is the introduction, one more than there are steps the debrief.
    pub(crate) step: RwSignal<usize>,
    /// Steps follow one another by themselves.
    pub(crate) playing: RwSignal<bool>,
    /// The option chosen, by question.
    pub(crate) answers: RwSignal<BTreeMap<String, usize>>,
    /// What is wrong, if anything.
    pub(crate) trouble: RwSignal<Option<Trouble>>,
    /// The variant of the script.
    pub(crate) variant: RwSignal<String>,
    /// What the last step led to.
    pub(crate) report: RwSignal<Option<StepReport>>,
    /// How long events are looked at; 1 is a lesson's pace, less is faster.
    pub(crate) pace: RwSignal<f64>,
    /// Steps that have been run, by the log.
    pub(crate) n_run: Memo<usize>,
    engine: StoredValue<Engine, LocalStorage>,
}

/// What moves a run; none of it is shown.
#[derive(Default)]
struct Engine {
    /// Rises with each fresh lab, so that what belongs to the one before is dropped.
    generation: u32,
    slug: String,
    script: Rc<Script>,
    driver: Option<Rc<LabDriver>>,
    runner: Option<Runner<LabDriver>>,
    queue: Vec<Command>,
    socket: Option<Socket>,
    ticker: Option<Interval>,
    walk: Option<Timeout>,
}

impl Drop for Engine {
    fn drop(&mut self) {
        if let Some(driver) = &self.driver {
            driver.end();
        }
    }
}

impl Session {
    /// A run of this script; `slug` is where its place is kept, empty for nowhere.
    pub(crate) fn new(slug: &str, script: Script) -> Self {
        let playback = RwSignal::new(Playback::with_clients(PRESET, &script.cast.clients));
        let variant = RwSignal::new(script.default_variant().to_owned());
        let script = Rc::new(script);
        let mut engine = Engine::default();
        engine.slug = slug.to_owned();
        engine.script = script;
        let engine = StoredValue::new_local(engine);
        let n_run = Memo::new(move |_| {
            let ids = engine.with_value(|engine| step_ids(&engine.script, &variant.read()));
            playback.with(|log| steps_in(log, &ids).len())
        });
        Self {
            playback,
            cursor: RwSignal::new(0),
            heading: RwSignal::new(Heading::Newest),
            mode: RwSignal::new(Mode::Starting),
            link: RwSignal::new(Link::Connecting),
            busy: RwSignal::new(false),
            stepping: RwSignal::new(false),
            step: RwSignal::new(0),
            playing: RwSignal::new(false),
            answers: RwSignal::new(BTreeMap::new()),
            trouble: RwSignal::new(None),
            variant,
            report: RwSignal::new(None),
            pace: RwSignal::new(1.0),
            n_run,
            engine,
        }
    }

    /// The ids of the steps of the variant, in order.
    pub(crate) fn step_ids(self) -> Vec<String> {
        let variant = self.variant.get();
        self.engine.with_value(|engine| step_ids(&engine.script, &variant))
    }

    /// How many steps there are, without the introduction and the debrief.
    pub(crate) fn n_steps(self) -> usize {
        self.step_ids().len()
    }

    /// How many events there were when this many steps had been run.
    pub(crate) fn end_of_step(self, step: usize) -> usize {
        let ids = self.step_ids();
        self.playback.with(|log| {
            let starts = steps_in(log, &ids);
            starts.get(step).copied().unwrap_or(log.len())
        })
    }

    /// How many events are shown when the cursor has come to rest at the end of a step.
    pub(crate) fn rest_of_step(self, step: usize) -> usize {
        let end = self.end_of_step(step);
        self.playback.with(|log| log.rest(end))
    }

    /// The question before a step, from 1.
    pub(crate) fn question(self, step: usize) -> Option<String> {
        let id = self.step_ids().get(step.checked_sub(1)?)?.clone();
        let variant = self.variant.get();
        self.engine.with_value(|engine| {
            let found = engine.script.steps.iter().find(|step| step.id == id)?;
            found.prediction(&variant).map(|asked| asked.id.clone())
        })
    }

    /// The field of a record that holds the answer to the step's question; nothing when the
    /// last reply does.
    pub(crate) fn decided_by(self, step: usize) -> Option<(NodeId, String)> {
        let id = self.step_ids().get(step.checked_sub(1)?)?.clone();
        let variant = self.variant.get();
        self.engine.with_value(|engine| {
            let found = engine.script.steps.iter().find(|step| step.id == id)?;
            found.prediction(&variant)?.by.clone()
        })
    }

    /// Whether a question must be answered before the step can run.
    pub(crate) fn waits_for_answer(self, step: usize) -> bool {
        step > self.n_run.get()
            && self.question(step).is_some_and(|id| !self.answers.read().contains_key(&id))
    }

    /// Whether the cursor is behind what has happened, and is to stay there.
    pub(crate) fn is_replay(self) -> bool {
        matches!(self.heading.get(), Heading::Until(n) if n < self.playback.with(Playback::len))
    }

    /// How things stand at the cursor.
    pub(crate) fn scene(self) -> Memo<Scene> {
        Memo::new(move |_| self.playback.with(|log| log.scene_at(self.cursor.get())))
    }

    /// Who and what takes part.
    pub(crate) fn cast(self) -> Cast {
        self.engine.try_with_value(|engine| engine.script.cast.clone()).unwrap_or_default()
    }

    /// The time by the lab's clock, in ms since 1970; untracked.
    pub(crate) fn now_ms(self) -> u64 {
        use lessons::driver::Driver as _;
        self.engine
            .try_with_value(|engine| engine.driver.as_ref().map(|driver| driver.now_ms()))
            .flatten()
            .unwrap_or_default()
    }

    /// Appends what is new. False when an event in between is missing.
    fn append(self, events: Vec<TraceEvent>) -> bool {
        let is_whole = self.playback.try_update(|log| {
            for event in events {
                let expected = log.last_seq() + 1;
                if event.seq > expected {
                    return false;
                }
                if event.seq == expected {
                    log.push(event);
                }
            }
            true
        });
        self.walk();
        is_whole.unwrap_or(true)
    }

    /// Which lab, counted by the page, the run is in.
    pub(crate) fn started_at(self) -> u32 {
        self.engine.try_with_value(|engine| engine.generation).unwrap_or(0)
    }

    /// Whether the page is still there and the run still in the lab of that number.
    pub(crate) fn is_started(self, generation: u32) -> bool {
        self.is_current(generation)
    }

    /// Whether the page is still there and its lab still the same.
    fn is_current(self, generation: u32) -> bool {
        self.engine.try_with_value(|engine| engine.generation == generation).unwrap_or(false)
    }

    /// Keeps the place, so that a reload resumes here.
    fn keep_place(self) {
        let Mode::Live(lab) = self.mode.get_untracked() else { return };
        let slug = self.engine.with_value(|engine| engine.slug.clone());
        if slug.is_empty() {
            return;
        }
        let place = Place {
            lab,
            variant: self.variant.get_untracked(),
            step: self.step.get_untracked(),
            answers: self.answers.get_untracked(),
            running: self.stepping.get_untracked(),
        };
        crate::storage::set_place(&slug, &place);
    }
}

fn step_ids(script: &Script, variant: &str) -> Vec<String> {
    script.steps_of(variant).map(|step| step.id.clone()).collect()
}

/// The positions of the notes with which steps begin, in the order of the steps.
fn steps_in(log: &Playback, ids: &[String]) -> Vec<usize> {
    let mut starts = Vec::new();
    for (position, event) in log.events().enumerate() {
        if let TraceKind::Noted { text } = &event.kind
            && let Some(id) = text.strip_prefix("step: ")
            && ids.get(starts.len()).is_some_and(|next| next == id)
        {
            starts.push(position);
        }
    }
    starts
}
