//! The time by which rings shrink.
//!
//! At the newest event it is the lab's real time; in the recording it is the time of the
//! event that is shown. While the cursor walks, the shown time trails behind, and catches
//! up evenly afterwards instead of jumping.
//!
//! Invariant: frames are asked for only while something on the stage depends on the time.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use gloo_timers::callback::Timeout;
use leptos::prelude::*;
use wasm_bindgen::JsCast as _;
use wasm_bindgen::prelude::Closure;

use super::Session;
use crate::playback::{Activity, Scene};

/// The shown time gains this share of its lag with each frame.
const CATCH_UP: f64 = 0.06;
const FRAME_MS: f64 = 16.0;
const LAG_LONGEST_MS: f64 = 30_000.0;
/// The ring of a longer lease than this does not visibly move from frame to frame, in ms.
const RING_MOVES_MS: f64 = 90_000.0;

/// The stage's clock, in ms since 1970.
pub(crate) fn stage_clock(session: Session, scene: Memo<Scene>) -> Signal<f64> {
    let shown = RwSignal::new(0.0_f64);
    let frame = Rc::new(Frame::default());
    let holder = StoredValue::new_local(Rc::clone(&frame));
    let tick = move || {
        let scene = scene.try_get_untracked()?;
        let at_ms = scene.at_ms as f64;
        let is_now = !untrack(|| session.is_replay() || session.is_walking());
        if !is_now {
            shown.try_set(at_ms);
            return Some(Look::Never);
        }
        let real_ms = session.now_ms() as f64;
        let last_ms = shown.try_get_untracked()?.max(at_ms);
        let lag_ms = real_ms - last_ms;
        // After a long absence there is nothing to be seen in catching up.
        let gained_ms = lag_ms.clamp(0.0, FRAME_MS) + (lag_ms - FRAME_MS).max(0.0) * CATCH_UP;
        let next_ms = if lag_ms > LAG_LONGEST_MS { real_ms } else { last_ms + gained_ms };
        shown.try_set(next_ms);
        Some(next_look(&scene, next_ms))
    };
    *frame.tick.borrow_mut() = Some(Box::new(tick));
    Effect::new(move |_| {
        scene.track();
        session.cursor.track();
        session.heading.track();
        session.playback.track();
        holder.with_value(Frame::ask);
    });
    on_cleanup(move || {
        holder.try_with_value(|frame| frame.end());
    });
    shown.into()
}

/// When the picture has to be drawn again, as far as time is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    NextFrame,
    NextSecond,
    Never,
}

fn next_look(scene: &Scene, now_ms: f64) -> Look {
    let mut look = Look::Never;
    for lease in scene.leases() {
        match lease.remaining_ms(now_ms) {
            left_ms if left_ms <= 0.0 => {}
            left_ms if left_ms < RING_MOVES_MS => return Look::NextFrame,
            _ => look = Look::NextSecond,
        }
    }
    let is_paused = |activity: &Activity| matches!(activity, Activity::Paused { .. });
    if scene.clients.iter().any(|client| is_paused(&client.activity)) {
        return Look::NextFrame;
    }
    look
}

type Tick = Box<dyn Fn() -> Option<Look>>;

/// One animation frame at a time.
#[derive(Default)]
struct Frame {
    tick: RefCell<Option<Tick>>,
    callback: RefCell<Option<Closure<dyn FnMut()>>>,
    handle: Cell<Option<i32>>,
    later: RefCell<Option<Timeout>>,
}

impl Frame {
    fn ask(self: &Rc<Self>) {
        if self.handle.get().is_some() || self.tick.borrow().is_none() {
            return;
        }
        let Some(window) = web_sys::window() else { return };
        if self.callback.borrow().is_none() {
            let weak = Rc::downgrade(self);
            let run = Closure::<dyn FnMut()>::new(move || {
                let Some(this) = weak.upgrade() else { return };
                this.handle.set(None);
                let goes_on = this.tick.borrow().as_ref().and_then(|tick| tick());
                match goes_on {
                    Some(Look::NextFrame) => this.ask(),
                    Some(Look::NextSecond) => this.ask_later(),
                    _ => {}
                }
            });
            *self.callback.borrow_mut() = Some(run);
        }
        let callback = self.callback.borrow();
        let Some(callback) = callback.as_ref() else { return };
        self.handle.set(window.request_animation_frame(callback.as_ref().unchecked_ref()).ok());
    }

    fn ask_later(self: &Rc<Self>) {
        let weak = Rc::downgrade(self);
        let ask = move || {
            if let Some(this) = weak.upgrade() {
                this.ask();
            }
        };
        *self.later.borrow_mut() = Some(Timeout::new(1_000, ask));
    }

    fn end(&self) {
        self.later.borrow_mut().take();
        if let (Some(handle), Some(window)) = (self.handle.take(), web_sys::window()) {
            let _ = window.cancel_animation_frame(handle);
        }
        self.tick.borrow_mut().take();
    }
}
