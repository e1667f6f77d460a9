//! Telling the lab: the object's events travel to the lab's log, at least once.
//!
//! Invariant: one call at a time. A request whose events are in a call that is under way
//! waits for that call; everything that was written meanwhile goes with the next one, in
//! one batch. Whoever wakes first deals with the outcome, so that a caller who goes away
//! takes nothing with it.
//!
//! A lab that cannot be reached delays nobody: the answer goes out, and the events are
//! sent again with the next request, or when the alarm rings for it.

use js_sys::{Object, Promise};
use protocol::object::Addressed;
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::JsFuture;

use crate::glue;
use crate::loaded::Usage;
use crate::problem::Problem;
use crate::shell::Shell;

/// The first pause before the lab is tried again, in ms; it doubles up to the longest.
const RETRY_FIRST_MS: u64 = 2_000;
const RETRY_LONGEST_MS: u64 = 300_000;

/// A call to the lab that is under way.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    promise: Promise,
    /// The last batch in it.
    ordinal: u64,
    usage: Usage,
}

/// The lab's answer to a batch of events: it has them, and whether it takes more.
pub(crate) const TAKEN: u16 = 204;
pub(crate) const TAKEN_AND_FULL: u16 = 202;

impl<M: Addressed + 'static> Shell<M> {
    /// Waits until the lab has everything up to a batch, or until it could not be reached.
    /// The only error is that there is no such lab any more.
    pub(crate) async fn tell_lab(&self, ordinal: u64) -> Result<(), Problem> {
        let mut has_tried = false;
        loop {
            let Some(flight) = self.next_flight(ordinal, &mut has_tried)? else { return Ok(()) };
            let landed = JsFuture::from(flight.promise.clone()).await;
            if self.land(&flight, landed.ok().as_ref())? {
                self.forget().await?;
                return Err(Problem::UnknownLab);
            }
        }
    }

    /// The call to wait for: the one under way, or a new one, once.
    fn next_flight(&self, ordinal: u64, has_tried: &mut bool) -> Result<Option<Flight>, Problem> {
        let under_way = self.flight.borrow().clone();
        self.with_loaded(|loaded| {
            let is_told = loaded.outbox.has_sent(ordinal);
            let is_silent = glue::now_ms() > loaded.lab_heard_ms + self.touch_every_ms;
            if is_told && (under_way.is_some() || !is_silent) {
                return Ok(None);
            }
            if under_way.is_some() {
                return Ok(under_way);
            }
            if core::mem::replace(has_tried, true) && loaded.n_failures > 0 {
                return Ok(None);
            }
            let (body, last) = loaded.outbox.next_call();
            let usage = core::mem::take(&mut loaded.usage);
            let Usage { requests, rows_written } = usage;
            let path = format!("append?requests={requests}&rows={rows_written}");
            let promise = self.call_lab(&loaded.lab, &path, &body);
            let flight = Flight { promise, ordinal: last, usage };
            *self.flight.borrow_mut() = Some(flight.clone());
            Ok(Some(flight))
        })
    }

    /// Takes in how a call ended, if nobody has yet. `true`: the lab is gone.
    fn land(&self, flight: &Flight, landed: Option<&JsValue>) -> Result<bool, Problem> {
        let is_same = |one: &Flight| Object::is(&one.promise, &flight.promise);
        let is_current = self.flight.borrow().as_ref().is_some_and(is_same);
        if !is_current {
            return Ok(false);
        }
        *self.flight.borrow_mut() = None;
        let (status, text) = landed.map(glue::status_and_text).unwrap_or_default();
        self.with_loaded(|loaded| {
            let now_ms = glue::now_ms();
            match status {
                TAKEN | TAKEN_AND_FULL => {
                    loaded.outbox.acknowledge(flight.ordinal);
                    loaded.lab_full = status == TAKEN_AND_FULL;
                    loaded.lab_heard_ms = now_ms;
                    loaded.n_failures = 0;
                    loaded.retry_at_ms = None;
                }
                404 => return Ok(true),
                _ => {
                    worker::console_warn!("the lab did not answer: {status} {text}");
                    loaded.usage.requests += flight.usage.requests;
                    loaded.usage.rows_written += flight.usage.rows_written;
                    let pause_ms = RETRY_FIRST_MS << loaded.n_failures.min(8);
                    loaded.n_failures += 1;
                    loaded.retry_at_ms = Some(now_ms + pause_ms.min(RETRY_LONGEST_MS));
                    loaded.write_alarm(&self.ctx)?;
                }
            }
            Ok(false)
        })
    }
}
