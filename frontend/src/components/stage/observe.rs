//! What the stage learns from the world outside: its size, and the passing of a moment.

use std::cell::RefCell;
use std::rc::Rc;

use leptos::html::Figure;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;

use crate::diagram::motion;
use crate::diagram::stage::Layout;
use crate::playback::Scene;

/// The size of the room inside the figure, in pixels.
pub(super) fn size_of(figure: NodeRef<Figure>) -> RwSignal<(f64, f64)> {
    let size = RwSignal::new((728.0, 480.0));
    Effect::new(move |_| {
        let Some(figure) = figure.get() else { return };
        let Ok(Some(room)) = figure.query_selector(".stage-room") else { return };
        watch_size(&room, move |width, height| {
            if width > 0.0 && size.try_get_untracked().is_some_and(|now| now != (width, height)) {
                size.set((width, height));
            }
        });
    });
    size
}

/// Calls back with the size of the element, now and whenever it changes, until the owner
/// is gone.
pub(crate) fn watch_size(element: &web_sys::Element, on_size: impl Fn(f64, f64) + 'static) {
    let watched = element.clone();
    let callback = Closure::<dyn FnMut()>::new(move || {
        on_size(f64::from(watched.client_width()), f64::from(watched.client_height()));
    });
    let Ok(observer) = web_sys::ResizeObserver::new(callback.as_ref().unchecked_ref()) else {
        return;
    };
    observer.observe(element);
    let kept = send_wrapper((observer, callback));
    on_cleanup(move || kept.with(|(observer, _)| observer.disconnect()));
}

/// A value of the page's one thread, for a cleanup that has to be `Send`.
struct OfThisThread<T: 'static>(StoredValue<T, LocalStorage>);

impl<T: 'static> OfThisThread<T> {
    fn with(&self, act: impl FnOnce(&T)) {
        self.0.try_with_value(act);
    }
}

fn send_wrapper<T: 'static>(value: T) -> OfThisThread<T> {
    OfThisThread(StoredValue::new_local(value))
}

/// Whether the visitor asked for less motion.
pub(crate) fn wants_stillness() -> bool {
    let query = "(prefers-reduced-motion: reduce)";
    window().match_media(query).ok().flatten().is_some_and(|list| list.matches())
}

/// How far the motion of the spotlit event has come, 0 to 1.
pub(super) fn progress(scene: Signal<Scene>, layout: Memo<Layout>) -> RwSignal<f64> {
    let progress = RwSignal::new(1.0);
    let running = Rc::new(RefCell::new(0_u32));
    Effect::new(move |before: Option<usize>| {
        let cursor = scene.with(|scene| scene.cursor);
        let is_step = before.is_some_and(|before| cursor == before + 1);
        *running.borrow_mut() += 1;
        if !is_step || wants_stillness() {
            progress.set(1.0);
            return cursor;
        }
        let drawn = scene.with_untracked(|scene| {
            layout.with_untracked(|layout| motion::messages(scene, layout))
        });
        let duration_ms = drawn
            .iter()
            .filter(|one| one.is_spotlit)
            .map(motion::Drawn::duration_ms)
            .fold(0.0, f64::max);
        if duration_ms == 0.0 {
            progress.set(1.0);
            return cursor;
        }
        progress.set(0.0);
        play(progress, duration_ms, running.clone());
        cursor
    });
    progress
}

/// Runs `progress` from 0 to 1, unless another run begins or the page goes away.
fn play(progress: RwSignal<f64>, duration_ms: f64, running: Rc<RefCell<u32>>) {
    let run = *running.borrow();
    let started_ms = now_ms();
    next_frame(move || frame(progress, duration_ms, running, run, started_ms));
}

fn frame(
    progress: RwSignal<f64>,
    duration_ms: f64,
    running: Rc<RefCell<u32>>,
    run: u32,
    started_ms: f64,
) {
    if *running.borrow() != run || progress.try_get_untracked().is_none() {
        return;
    }
    let share = ((now_ms() - started_ms) / duration_ms).clamp(0.0, 1.0);
    progress.try_set(share);
    if share < 1.0 {
        next_frame(move || frame(progress, duration_ms, running, run, started_ms));
    }
}

fn next_frame(act: impl FnOnce() + 'static) {
    request_animation_frame(act);
}

fn now_ms() -> f64 {
    window().performance().map_or(0.0, |performance| performance.now())
}
