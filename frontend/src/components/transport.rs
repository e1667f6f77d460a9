//! The one fixed bar: back, next, play, and a line with the chapters.
//!
//! The line is a range over the events and a list of chapter buttons at once: a chapter is
//! as wide as any other, however many events it has.

use leptos::prelude::*;
use wasm_bindgen::JsCast as _;

use super::icon::Icon;
use crate::narration;
use crate::playback::Playback;
use crate::session::Session;

/// Positions of the range between two chapters.
const FINENESS: f64 = 1_000.0;

/// The bar.
#[component]
pub(crate) fn Transport(
    /// The run.
    session: Session,
    /// What the chapters are called, from the first step to the debrief.
    #[prop(into)]
    chapters: Signal<Vec<String>>,
    /// The fault tray is open.
    tray: RwSignal<bool>,
    /// The reader wants the next step.
    #[prop(into)]
    on_next: Callback<()>,
) -> impl IntoView {
    let at_end = Memo::new(move |_| session.step.get() > session.n_steps());
    let waits = Memo::new(move |_| session.waits_for_answer(session.step.get()));
    let runs =
        Memo::new(move |_| session.stepping.get() && session.step.get() >= session.n_run.get());
    let next_label = move || {
        if at_end.get() {
            "Go on"
        } else if runs.get() {
            "Running…"
        } else if waits.get() {
            "Predict first"
        } else if session.step.get() == 0 {
            "Start"
        } else {
            "Next"
        }
    };
    view! {
        <footer class="transport" aria-label="Playback">
            <div class="transport-buttons">
                <button
                    class="button"
                    type="button"
                    data-testid="back"
                    disabled=move || session.step.get() == 0
                    on:click=move |_| session.back()
                >
                    <Icon name="back" />
                    <span>"Back"</span>
                </button>
                <button
                    class="button primary"
                    type="button"
                    data-testid="next"
                    data-running=move || runs.get().then_some("")
                    data-walking=move || session.is_walking().then_some("")
                    data-waits=move || waits.get().then_some("")
                    aria-disabled=move || runs.get().to_string()
                    on:click=move |_| on_next.run(())
                >
                    <span>{next_label}</span>
                    <Icon name="next" />
                </button>
                <button
                    class="button"
                    type="button"
                    data-testid="play"
                    aria-pressed=move || session.playing.get().to_string()
                    on:click=move |_| session.toggle_playing()
                >
                    {move || {
                        if session.playing.get() {
                            view! { <Icon name="pause" /> }
                        } else {
                            view! { <Icon name="play" /> }
                        }
                    }}
                    <span>{move || if session.playing.get() { "Pause" } else { "Play" }}</span>
                </button>
            </div>
            <Scrubber session=session chapters=chapters />
            <div class="transport-more">
                <button
                    class="button"
                    type="button"
                    data-testid="again"
                    title="The same script from the beginning, in a fresh lab"
                    on:click=move |_| session.run_again(0)
                >
                    <Icon name="again" />
                    <span>"Run again live"</span>
                </button>
                <button
                    class="button"
                    type="button"
                    id="tray-button"
                    data-testid="break"
                    aria-expanded=move || tray.get().to_string()
                    aria-controls="fault-tray"
                    on:click=move |_| tray.update(|open| *open = !*open)
                >
                    <Icon name="bolt" />
                    <span>"Break it"</span>
                </button>
            </div>
        </footer>
    }
}

#[component]
fn Scrubber(session: Session, chapters: Signal<Vec<String>>) -> impl IntoView {
    let n_stops = Memo::new(move |_| chapters.with(Vec::len).max(1));
    let position = Memo::new(move |_| position(session));
    let percent = move |stop: f64| format!("{:.3}%", 100.0 * stop / n_stops.get() as f64);
    let spoken = move || {
        let cursor = session.cursor.get();
        session.playback.with(|log| {
            let here = cursor.checked_sub(1).and_then(|index| log.event(index));
            let text = here.map_or("nothing has happened yet".to_owned(), narration::sentence);
            format!("event {cursor} of {}: {text}", log.len())
        })
    };
    let on_input = move |event: web_sys::Event| {
        let target = event.target().and_then(|target| target.dyn_into().ok());
        if let Some(range) = target.map(|input: web_sys::HtmlInputElement| input.value_as_number())
        {
            session.show_event(event_at(session, range / FINENESS));
        }
    };
    let on_key = move |event: web_sys::KeyboardEvent| {
        let cursor = session.cursor.get_untracked();
        let n = match event.key().as_str() {
            "ArrowRight" | "ArrowUp" => cursor + 1,
            "ArrowLeft" | "ArrowDown" => cursor.saturating_sub(1),
            _ => return,
        };
        event.prevent_default();
        event.stop_propagation();
        session.show_event(n.min(session.playback.with_untracked(Playback::len)));
    };
    view! {
        <div class="scrubber">
            <div class="scrubber-line" aria-hidden="true">
                <i style:width=move || percent(session.n_run.get() as f64) class="run"></i>
                <i style:width=move || percent(position.get()) class="seen"></i>
                <b style:left=move || percent(position.get())></b>
            </div>
            <input
                type="range"
                class="scrubber-range"
                aria-label="Position in the recording"
                aria-valuetext=spoken
                min="0"
                max=move || n_stops.get() as f64 * FINENESS
                prop:value=move || position.get() * FINENESS
                on:input=on_input
                on:keydown=on_key
            />
            <ol class="chapters" data-testid="chapters">
                {move || {
                    chapters
                        .get()
                        .into_iter()
                        .enumerate()
                        .map(|(index, title)| chapter(session, n_stops, index + 1, title))
                        .collect_view()
                }}
            </ol>
        </div>
    }
}

fn chapter(session: Session, n_stops: Memo<usize>, stop: usize, title: String) -> AnyView {
    let state = Memo::new(move |_| {
        let is_debrief = stop == n_stops.get();
        let reached = if is_debrief { stop - 1 } else { stop };
        if session.step.get() == stop {
            "current"
        } else if session.n_run.get() >= reached {
            "run"
        } else {
            "ahead"
        }
    });
    view! {
        <li style:left=move || format!("{:.3}%", 100.0 * stop as f64 / n_stops.get() as f64)>
            <button
                type="button"
                class="chapter"
                data-state=move || state.get()
                disabled=move || state.get() == "ahead"
                aria-current=move || (state.get() == "current").then_some("step")
                title=title.clone()
                on:click=move |_| session.show_step(stop)
            >
                <i aria-hidden="true"></i>
                <span>{title.clone()}</span>
            </button>
        </li>
    }
    .into_any()
}

/// Where the cursor is, in chapters: 2.5 is in the middle of the third step's events.
fn position(session: Session) -> f64 {
    let (step, n_run) = (session.step.get(), session.n_run.get());
    if step > session.n_steps() {
        return step as f64;
    }
    if step == 0 {
        return 0.0;
    }
    if step > n_run {
        return step as f64 - 1.0;
    }
    let (start, end) = (session.end_of_step(step - 1), session.rest_of_step(step));
    let done = session.cursor.get().saturating_sub(start) as f64;
    let share = if end > start { (done / (end - start) as f64).min(1.0) } else { 1.0 };
    step as f64 - 1.0 + share
}

/// The number of events that such a position stands for.
fn event_at(session: Session, position: f64) -> usize {
    untrack(|| {
        let n_run = session.n_run.get();
        let position = position.clamp(0.0, n_run as f64);
        let step = position.ceil().max(1.0) as usize;
        let (start, end) = (session.end_of_step(step - 1), session.end_of_step(step));
        let share = position - (step as f64 - 1.0);
        start + (share * end.saturating_sub(start) as f64).round() as usize
    })
}
