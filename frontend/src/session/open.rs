//! Opening a lab for a run: a fresh one, the one of the last visit, or the page's own.

use std::rc::Rc;

use gloo_timers::callback::Interval;
use leptos::prelude::*;
use lessons::runner::Runner;
use lessons::script::Command;
use protocol::trace::TraceEvent;
use wasm_bindgen_futures::spawn_local;

use super::{Heading, Mode, PRESET, Session, Trouble};
use crate::api::{self, ApiError};
use crate::live::LabDriver;
use crate::playback::Playback;
use crate::socket::{Link, Listener, Socket};
use crate::storage::{self, Place};

/// How often the lab in the page is asked what time has done to it, in ms.
const TICK_MS: u32 = 60;

/// How a run begins.
#[derive(Clone, Debug, Default)]
pub(crate) struct Start {
    /// In this variant; nothing for the one that is set.
    pub(crate) variant: Option<String>,
    /// Run this many steps at once, as in a run that was left there.
    pub(crate) up_to: usize,
}

impl Session {
    /// Goes on where the last visit stopped, or begins.
    pub(crate) fn resume_or_start(self) {
        let slug = self.engine.with_value(|engine| engine.slug.clone());
        match storage::place(&slug).filter(|place| !place.lab.is_empty()) {
            Some(place) => spawn_local(self.resume(place)),
            None => self.start(Start::default()),
        }
    }

    /// Begins in a fresh lab; what was recorded before is gone from the page.
    pub(crate) fn start(self, start: Start) {
        let generation = self.reset(start.variant.as_deref());
        spawn_local(async move {
            let driver = match api::create_lab(PRESET).await {
                Ok(created) => {
                    let driver = LabDriver::live(created.lab.clone(), created.now_ms);
                    if self.is_current(generation) {
                        self.mode.set(Mode::Live(created.lab));
                    }
                    driver
                }
                Err(error) => {
                    if self.is_current(generation) {
                        self.mode.set(Mode::Simulated);
                        if let ApiError::Problem(problem) = &error
                            && problem.status == 429
                        {
                            self.trouble.set(Some(Trouble::Quota(error.to_string())));
                        }
                    }
                    LabDriver::in_page(PRESET)
                }
            };
            if !self.is_current(generation) {
                return;
            }
            let driver = Rc::new(driver);
            let script = self.engine.with_value(|engine| (*engine.script).clone());
            let variant = self.variant.get_untracked();
            let runner = Runner::with_variant(script, &variant, Rc::clone(&driver));
            self.attach(driver, runner);
            // The cast is on the stage before the first step.
            self.perform(Command::Wait(0));
            self.run_up_to(start.up_to);
        });
    }

    async fn resume(self, place: Place) {
        let generation = self.reset(Some(&place.variant));
        let log = api::events_after(&place.lab, 0).await;
        let status = api::lab_status(&place.lab).await;
        if !self.is_current(generation) {
            return;
        }
        let (log, status) = match (log, status) {
            (Ok(log), Ok(status)) => (log, status),
            (Err(error), _) | (_, Err(error)) if error.is_gone() => {
                self.trouble.set(Some(Trouble::Expired));
                self.answers.set(place.answers);
                return;
            }
            // No server: the lab is out of reach, so the page plays by itself.
            _ => return self.start(Start::default()),
        };
        let driver = Rc::new(LabDriver::live(place.lab.clone(), status.now_ms));
        let script = self.engine.with_value(|engine| (*engine.script).clone());
        let runner = Runner::restore(script, Rc::clone(&driver), &log);
        self.mode.set(Mode::Live(place.lab));
        self.answers.set(place.answers);
        self.append(log);
        self.show_place(place.step, place.running);
        self.attach(driver, runner);
    }

    /// Shows the step that was open, with everything up to its end.
    fn show_place(self, step: usize, was_running: bool) {
        let n_run = self.n_run.get_untracked();
        let step = step.min(self.n_steps() + 1);
        self.step.set(step);
        if step < n_run {
            self.jump_to_end(untrack(|| self.end_of_step(step)));
        } else {
            self.jump_to_end(usize::MAX);
        }
        if was_running && step == n_run && step > 0 {
            self.trouble.set(Some(Trouble::CutOff(step)));
        }
    }

    /// Forgets the lab and the log; the number of the new generation.
    fn reset(self, variant: Option<&str>) -> u32 {
        let mut generation = 0;
        self.engine.update_value(|engine| {
            engine.generation += 1;
            generation = engine.generation;
            if let Some(driver) = engine.driver.take() {
                driver.end();
            }
            engine.runner = None;
            engine.socket = None;
            engine.ticker = None;
            engine.walk = None;
            engine.queue.clear();
            let known = engine.script.variants.iter().any(|one| Some(one.id.as_str()) == variant);
            if let Some(variant) = variant.filter(|_| known) {
                self.variant.set(variant.to_owned());
            }
        });
        self.mode.set(Mode::Starting);
        self.link.set(Link::Connecting);
        self.playback.set(Playback::with_clients(PRESET, &self.cast().clients));
        self.cursor.set(0);
        self.heading.set(Heading::Newest);
        self.step.set(0);
        self.busy.set(false);
        self.stepping.set(false);
        self.playing.set(false);
        self.answers.set(Default::default());
        self.report.set(None);
        self.trouble.set(None);
        generation
    }

    /// Lets the lab's events come in.
    fn attach(self, driver: Rc<LabDriver>, runner: Runner<LabDriver>) {
        let (socket, ticker) = match &*driver {
            LabDriver::Live { lab, .. } => (Some(Socket::open(lab, self.listener())), None),
            LabDriver::InPage { .. } => {
                let driver = Rc::clone(&driver);
                let tick = move || {
                    let last_seq = self.playback.try_with_untracked(Playback::last_seq);
                    let events = driver.tick(last_seq.unwrap_or(0));
                    if !events.is_empty() {
                        self.append(events);
                    }
                };
                (None, Some(Interval::new(TICK_MS, tick)))
            }
        };
        self.engine.update_value(|engine| {
            engine.driver = Some(driver);
            engine.runner = Some(runner);
            engine.socket = socket;
            engine.ticker = ticker;
        });
        self.keep_place();
    }

    fn listener(self) -> Listener {
        Listener {
            last_seq: Box::new(move || {
                self.playback.try_with_untracked(Playback::last_seq).unwrap_or(0)
            }),
            on_events: Box::new(move |events: Vec<TraceEvent>| self.append(events)),
            on_link: Box::new(move |link| {
                self.link.try_set(link);
                if link == Link::Gone {
                    self.trouble.try_set(Some(Trouble::Expired));
                }
            }),
        }
    }

    /// Tries the connection at once.
    pub(crate) fn retry_now(self) {
        self.engine.with_value(|engine| {
            if let Some(socket) = &engine.socket {
                socket.retry_now();
            }
        });
    }
}
