//! Running: the steps of the script, and acts by hand in between.
//!
//! Invariant: one future at a time has the runner. What is asked for meanwhile waits for
//! it, except what is done to an object: that reaches the object at once.

use std::rc::Rc;

use gloo_timers::future::TimeoutFuture;
use leptos::prelude::*;
use lessons::driver::Driver as _;
use lessons::runner::{RunError, StepReport};
use lessons::script::{Command, ObjectAct};
use protocol::control::{Alarm, Clock, Control, Crash};
use protocol::ids::OffsetMs;
use wasm_bindgen_futures::spawn_local;

use super::{Heading, Mode, Session, Start, Trouble};
use crate::playback::Playback;
use crate::storage::{self, Progress};

/// How long a step's last picture stays when steps follow by themselves, in ms.
const READING_MS: u32 = 1_600;

impl Session {
    /// One stop on: runs the next step, or shows the next one of the recording.
    pub(crate) fn next(self) {
        // What is being shown is shown to its end before anything else begins.
        if untrack(|| self.is_walking()) && !self.playing.get_untracked() {
            self.skip();
            return;
        }
        self.leave_rest();
        let step = self.step.get_untracked() + 1;
        let n_steps = untrack(|| self.n_steps());
        if step > n_steps + 1 {
            return;
        }
        let n_run = self.n_run.get_untracked();
        if step <= n_run || step > n_steps {
            let end = untrack(|| self.end_of_step(step.min(n_steps)));
            self.open_step(step);
            self.walk_to(end);
            return;
        }
        if self.stepping.get_untracked() || self.mode.get_untracked() == Mode::Starting {
            return;
        }
        // What follows would be about things that did not happen.
        let is_over = |trouble: &Option<Trouble>| {
            matches!(trouble, Some(Trouble::Expired | Trouble::Failed(_)))
        };
        if self.trouble.with_untracked(is_over) {
            return;
        }
        // The question of the open step is still to be answered.
        let open = self.step.get_untracked();
        if open > n_run {
            if !untrack(|| self.waits_for_answer(open)) {
                self.run_step();
            }
            return;
        }
        self.open_step(step);
        self.follow();
        if !untrack(|| self.waits_for_answer(step)) {
            self.run_step();
        }
    }

    /// One stop back, in the recording.
    pub(crate) fn back(self) {
        self.playing.set(false);
        let step = self.step.get_untracked();
        self.show_step(step.saturating_sub(1));
    }

    /// Opens a step that has been run, with everything up to its end.
    pub(crate) fn show_step(self, step: usize) {
        let n_steps = untrack(|| self.n_steps());
        let reachable = self.n_run.get_untracked();
        let step = if step > n_steps && reachable == n_steps { n_steps + 1 } else { step };
        if step > reachable && step != n_steps + 1 {
            return;
        }
        self.open_step(step);
        self.jump_to_end(untrack(|| self.end_of_step(step.min(n_steps))));
    }

    /// To the newest event, and the step that is going on.
    pub(crate) fn show_newest(self) {
        let n_run = self.n_run.get_untracked();
        if self.step.get_untracked() < n_run {
            self.open_step(n_run);
        }
        self.follow();
    }

    /// Shows this event; the prose follows to its step.
    pub(crate) fn show_event(self, n_events: usize) {
        self.playing.set(false);
        let n_run = self.n_run.get_untracked();
        let step = (0..=n_run).find(|step| untrack(|| self.end_of_step(*step)) >= n_events);
        let step = step.unwrap_or(n_run);
        if step != self.step.get_untracked() {
            self.open_step(step);
        }
        self.jump(n_events);
    }

    /// Chooses an answer; the step can run now.
    pub(crate) fn answer(self, question: &str, option: usize) {
        self.answers.update(|answers| {
            answers.insert(question.to_owned(), option);
        });
        self.keep_place();
        self.run_step();
    }

    /// Plays on, or stops playing.
    pub(crate) fn toggle_playing(self) {
        let playing = !self.playing.get_untracked();
        self.playing.set(playing);
        if playing {
            self.play_on();
        } else {
            if untrack(|| self.is_walking()) {
                self.jump(self.cursor.get_untracked());
            }
        }
    }

    /// Called when the cursor has arrived: the next step, if steps follow by themselves.
    pub(super) fn arrived(self) {
        if self.playing.try_get_untracked() == Some(true) && !self.stepping.get_untracked() {
            gloo_timers::callback::Timeout::new(READING_MS, move || self.play_on()).forget();
        }
    }

    fn play_on(self) {
        if self.playing.try_get_untracked() != Some(true) {
            return;
        }
        if self.stepping.get_untracked() || untrack(|| self.is_walking()) {
            return;
        }
        let step = self.step.get_untracked();
        let at_end = step > untrack(|| self.n_steps());
        if at_end || untrack(|| self.waits_for_answer(step)) {
            self.playing.set(false);
            return;
        }
        if self.cursor.get_untracked() < untrack(|| self.rest_of_step(step)) {
            self.walk_to(untrack(|| self.end_of_step(step)));
        } else {
            self.next();
        }
    }

    fn open_step(self, step: usize) {
        self.step.set(step);
        self.forget_refusal();
        self.note_progress();
        self.keep_place();
    }

    /// What was not possible is no longer what was asked for last.
    fn forget_refusal(self) {
        if self.trouble.with_untracked(|t| matches!(t, Some(Trouble::Refused(_)))) {
            self.trouble.set(None);
        }
    }

    fn note_progress(self) {
        let of = untrack(|| self.n_steps()) + 1;
        let slug = self.engine.with_value(|engine| engine.slug.clone());
        if !slug.is_empty() {
            storage::note_progress(&slug, Progress { step: self.step.get_untracked(), of });
        }
    }

    fn run_step(self) {
        if self.stepping.get_untracked() {
            return;
        }
        let generation = self.started_at();
        self.stepping.set(true);
        self.follow();
        spawn_local(async move {
            // An act by hand may be under way; the step waits for it.
            let mut runner = loop {
                if !self.is_current(generation) {
                    return;
                }
                match self.take_runner() {
                    Some((_, runner)) => break runner,
                    None => TimeoutFuture::new(30).await,
                }
            };
            let done = runner.run_step().await;
            if !self.is_current(generation) {
                return;
            }
            self.engine.update_value(|engine| engine.runner = Some(runner));
            self.pull().await;
            if !self.is_current(generation) {
                return;
            }
            self.busy.set(false);
            self.stepping.set(false);
            self.keep_place();
            self.take_report(done);
            self.drain();
            if !untrack(|| self.is_walking()) {
                self.arrived();
            }
        });
    }

    fn take_report(self, done: Result<Option<StepReport>, RunError>) {
        match done {
            Ok(Some(report)) => {
                if let Some(check) = report.checks().find(|check| !check.met) {
                    let text = format!("expected {}, found {}", check.expected, check.found);
                    self.trouble.set(Some(Trouble::Unexpected(text)));
                }
                self.report.set(Some(report));
            }
            Ok(None) => {}
            Err(error) => {
                self.playing.set(false);
                self.trouble.set(Some(Trouble::Failed(error.problem)));
            }
        }
    }

    /// Runs so many steps of a fresh lab one after the other, without looking at each.
    pub(super) fn run_up_to(self, n_steps: usize) {
        if n_steps == 0 {
            return;
        }
        let generation = self.started_at();
        self.stepping.set(true);
        spawn_local(async move {
            let mut runner = loop {
                if !self.is_current(generation) {
                    return;
                }
                match self.take_runner() {
                    Some((_, runner)) => break runner,
                    None => TimeoutFuture::new(30).await,
                }
            };
            let mut done = Ok(None);
            for step in 1..=n_steps {
                if !self.is_current(generation) {
                    return;
                }
                self.step.set(step);
                done = runner.run_step().await;
                if done.is_err() {
                    break;
                }
            }
            if !self.is_current(generation) {
                return;
            }
            self.engine.update_value(|engine| engine.runner = Some(runner));
            self.pull().await;
            if !self.is_current(generation) {
                return;
            }
            self.busy.set(false);
            self.stepping.set(false);
            self.keep_place();
            self.take_report(done);
            self.skip();
        });
    }

    /// Does something by hand, now or as soon as the step that runs has ended.
    pub(crate) fn perform(self, command: Command) {
        if let (true, Command::Object(object, act)) = (self.busy.get_untracked(), &command)
            && let Some(control) = immediate(act)
        {
            let object = object.clone();
            let driver = self.engine.with_value(|engine| engine.driver.clone());
            let Some(driver) = driver else { return };
            spawn_local(async move {
                if let Err(error) = driver.control(&object, &control).await {
                    self.trouble.try_set(Some(Trouble::Refused(error.0)));
                }
            });
            return;
        }
        let Some((generation, mut runner)) = self.take_runner() else {
            self.engine.update_value(|engine| engine.queue.push(command));
            return;
        };
        self.leave_rest();
        self.heading.set(Heading::Newest);
        spawn_local(async move {
            let done = runner.perform(command).await;
            if !self.is_current(generation) {
                return;
            }
            self.engine.update_value(|engine| engine.runner = Some(runner));
            self.pull().await;
            if !self.is_current(generation) {
                return;
            }
            self.busy.set(false);
            match done {
                Err(error) => self.trouble.set(Some(Trouble::Refused(error.problem))),
                Ok(_) => self.forget_refusal(),
            }
            self.drain();
        });
    }

    /// The same for a caller that wants to know how it ended.
    pub(crate) async fn do_now(
        self,
        command: Command,
    ) -> Result<Option<lessons::client::Outcome>, String> {
        let Some((generation, mut runner)) = self.take_runner() else {
            return Err("busy".to_owned());
        };
        self.leave_rest();
        self.heading.set(Heading::Newest);
        let done = runner.perform(command).await;
        if !self.is_current(generation) {
            return Err("gone".to_owned());
        }
        self.engine.update_value(|engine| engine.runner = Some(runner));
        self.pull().await;
        if !self.is_current(generation) {
            return Err("gone".to_owned());
        }
        self.busy.set(false);
        self.drain();
        done.map(|report| report.outcome).map_err(|error| error.problem)
    }

    /// The same script from the beginning, or up to a step, in a fresh lab.
    pub(crate) fn run_again(self, up_to: usize) {
        self.start(Start { variant: None, up_to });
    }

    fn take_runner(self) -> Option<(u32, lessons::runner::Runner<crate::live::LabDriver>)> {
        let taken = self.engine.try_update_value(|engine| {
            engine.runner.take().map(|runner| (engine.generation, runner))
        });
        let taken = taken.flatten()?;
        self.busy.set(true);
        self.keep_place();
        Some(taken)
    }

    fn drain(self) {
        let waiting = self
            .engine
            .try_update_value(|engine| (!engine.queue.is_empty()).then(|| engine.queue.remove(0)));
        if let Some(command) = waiting.flatten() {
            self.perform(command);
        }
    }

    /// Fetches what the socket has not brought, so that a step ends with its events.
    async fn pull(self) {
        let driver = self.engine.try_with_value(|engine| engine.driver.clone()).flatten();
        let Some(driver) = driver else { return };
        let last_seq = self.playback.with_untracked(Playback::last_seq);
        if let Ok(events) = Rc::clone(&driver).log_after(last_seq).await
            && self.mode.try_get_untracked().is_some()
        {
            self.append(events);
        }
    }
}

/// What can be done to an object without the runner.
fn immediate(act: &ObjectAct) -> Option<Control> {
    Some(match act {
        ObjectAct::Rules(update) => Control::Rules(update.clone()),
        ObjectAct::Crash { at, n, stay_down } => {
            Control::Crash(Crash { at: *at, stay_down: *stay_down, n: *n })
        }
        ObjectAct::Restart => Control::Restart,
        ObjectAct::Clock(offset_ms) => {
            Control::Clock(Clock { offset_ms: OffsetMs::try_from(*offset_ms).ok()? })
        }
        ObjectAct::Alarm(action) => Control::Alarm(Alarm { action: *action }),
        _ => return None,
    })
}
