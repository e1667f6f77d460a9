//! A lesson: prose on the left, the stage in the middle, lanes below, details on the right,
//! one bar at the bottom. On a phone the stage stays and the rest are tabs.

mod compare;
mod prose;

use std::sync::Arc;

use leptos::prelude::*;
use lessons::lesson::Lesson;
use lessons::script;
use protocol::ids::NodeId;

use crate::api::{self, ApiError};
use crate::app::set_title;
use crate::arrival::arrival;
use crate::components::badge::Badge;
use crate::components::fault_tray::FaultTray;
use crate::components::header::Header;
use crate::components::icon::Icon;
use crate::components::invariant_strip::InvariantStrip;
use crate::components::keys::{self, KeySheet, Wish};
use crate::components::lanes::Lanes;
use crate::components::notice::Notices;
use crate::components::source::Source;
use crate::components::stage::Stage;
use crate::components::tables::Tables;
use crate::components::tabs::{Tab, Tabs, focus};
use crate::components::transcript::{LiveSentence, Transcript};
use crate::components::transport::Transport;
use crate::playback::Scene;
use crate::session::Session;
use crate::session::now::stage_clock;

use compare::Compare;
use prose::Prose;

/// `/lessons/{slug}`
#[component]
pub(crate) fn LessonPage(slug: String) -> impl IntoView {
    let lesson = arrival(load(slug.clone()));
    move || match lesson.get() {
        None => waiting(),
        Some(Err(problem)) => missing(&problem),
        Some(Ok(lesson)) => view! { <Opened lesson=lesson slug=slug.clone() /> }.into_any(),
    }
}

async fn load(slug: String) -> Result<Lesson, String> {
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !slug.chars().all(is_name) {
        return Err("There is no lesson of this name.".to_owned());
    }
    api::file::<Lesson>(&format!("/lessons/{slug}.json")).await.map_err(|error| match error {
        // Unknown files are answered with the page itself, which is no JSON.
        ApiError::Malformed(_) => "There is no lesson of this name.".to_owned(),
        other if other.is_gone() => "There is no lesson of this name.".to_owned(),
        other => other.to_string(),
    })
}

fn waiting() -> AnyView {
    view! {
        <Header />
        <main id="main" class="lone" aria-busy="true" tabindex="-1">
            <p class="soft">"Opening the lesson…"</p>
        </main>
    }
    .into_any()
}

fn missing(problem: &str) -> AnyView {
    set_title("Not found");
    let problem = problem.to_owned();
    view! {
        <Header />
        <main id="main" class="lone" tabindex="-1">
            <p class="eyebrow">"No lesson here"</p>
            <h1 class="serif">{problem}</h1>
            <p class="serif">"Reload the page, or choose from " <a href="/">"all lessons"</a> "."</p>
        </main>
    }
    .into_any()
}

/// The parts that can be seen one at a time on a phone.
const PANES: [Tab; 5] = [
    ("lesson", "Lesson"),
    ("lanes", "Lanes"),
    ("tables", "Tables"),
    ("source", "Source"),
    ("transcript", "Transcript"),
];

#[component]
fn Opened(lesson: Lesson, slug: String) -> impl IntoView {
    set_title(&format!("{} {}", lesson.entry.number, lesson.entry.title));
    let script = match script::parse(&lesson.script) {
        Ok(script) => script,
        Err(error) => return missing(&format!("This lesson's script is broken: {error}")),
    };
    let session = Session::new(&slug, script);
    session.resume_or_start();

    let narrow = narrow_screen();
    let pane = RwSignal::new("lesson");
    let tabs =
        Signal::derive(move || if narrow.get() { PANES.to_vec() } else { PANES[2..].to_vec() });
    Effect::new(move |_| {
        let is_side = matches!(pane.get_untracked(), "tables" | "source" | "transcript");
        if narrow.get() {
            pane.set("lesson");
        } else if !is_side {
            pane.set("tables");
        }
    });
    Effect::new(move |before: Option<&'static str>| {
        let now = pane.get();
        if narrow.get_untracked() && before.is_some_and(|before| before != now) {
            top_of("tab-lesson");
        }
        now
    });
    let tray = RwSignal::new(false);
    let keys_open = RwSignal::new(false);
    let compare_open = RwSignal::new(false);
    let can_compare = lesson.variants.len() > 1;
    let on_next = Callback::new(move |()| next_or_ask(session));
    keys::listen(move |wish| match wish {
        Wish::Next => next_or_ask(session),
        Wish::Back => session.back(),
        Wish::NextEvent => session.show_event(session.cursor.get_untracked() + 1),
        Wish::PreviousEvent => session.show_event(session.cursor.get_untracked().saturating_sub(1)),
        Wish::Play => session.toggle_playing(),
        Wish::First => session.show_step(0),
        Wish::Last => session.show_newest(),
        Wish::Chapter(step) => session.show_step(step),
        Wish::Compare if can_compare => compare_open.update(|open| *open = !*open),
        Wish::Break => tray.update(|open| *open = !*open),
        Wish::Keys => keys_open.set(true),
        Wish::Compare => {}
        Wish::Close => tray.set(false),
    });

    bring_into_sight(session, narrow);
    let scene = session.scene();
    // What can be done by hand is done to the lab as it is now, whatever is being looked at.
    let newest = Memo::new(move |_| session.playback.with(|log| log.scene_at(log.len())));
    let selected = RwSignal::new(None::<NodeId>);
    let chapters = chapters(session, &lesson);
    let crumb = view! {
        <p class="crumb">
            <a href="/">{lesson.entry.part.title()}</a>
            <span aria-hidden="true">"/"</span>
            <b>{lesson.entry.number} " " {lesson.entry.title.clone()}</b>
        </p>
    }
    .into_any();
    let lesson = Arc::new(lesson);
    let on_source = Callback::new(move |()| pane.set("source"));
    view! {
        <div class="lesson-page">
            <Header crumb=crumb>
                <Badge session=session />
                {can_compare
                    .then(|| {
                        view! {
                            <button
                                class="pill"
                                type="button"
                                data-testid="compare"
                                on:click=move |_| compare_open.set(true)
                            >
                                <Icon name="compare" />
                                <span>"Compare"</span>
                                <kbd class="key">"C"</kbd>
                            </button>
                        }
                    })}
                <button class="pill" type="button" data-testid="keys" on:click=move |_| keys_open.set(true)>
                    <Icon name="key" />
                    <span>"Keys"</span>
                    <kbd class="key">"?"</kbd>
                </button>
            </Header>
            <main id="main" class="lesson" data-pane=move || pane.get() tabindex="-1">
                <Prose session=session lesson=lesson.clone() on_source=on_source narrow=narrow />
                <Figure session=session scene=scene selected=selected />
                <div
                    class="lanes-pane"
                    id="panel-lanes"
                    aria-labelledby=move || narrow.get().then_some("tab-lanes")
                    role=move || narrow.get().then_some("tabpanel")
                >
                    <Lanes
                        playback=session.playback
                        cursor=session.cursor
                        on_seek=move |n: usize| session.show_event(n)
                    />
                </div>
                <aside class="side" aria-label="Details">
                    <h2 class="sr-only">"Details"</h2>
                    <Tabs label="Details" tabs=tabs selected=pane />
                    <Panels session=session scene=scene selected=selected pane=pane />
                </aside>
                {move || {
                    tray.get().then(|| view! { <FaultTray session=session scene=newest open=tray /> })
                }}
            </main>
            <Notices session=session />
            <Transport session=session chapters=chapters tray=tray on_next=on_next />
            <LiveSentence playback=session.playback cursor=session.cursor />
            <KeySheet open=keys_open />
            {can_compare
                .then(|| view! { <Compare session=session lesson=lesson.clone() open=compare_open /> })}
        </div>
    }
    .into_any()
}

/// The stage, and the invariants below it.
#[component]
fn Figure(
    session: Session,
    scene: Memo<Scene>,
    selected: RwSignal<Option<NodeId>>,
) -> impl IntoView {
    view! {
        <section class="figure" aria-label="Stage">
            <Stage scene=scene now_ms=stage_clock(session, scene) selected=selected />
            <InvariantStrip
                playback=session.playback
                cursor=session.cursor
                on_seek=move |n: usize| session.show_event(n)
            />
        </section>
    }
}

#[component]
fn Panels(
    session: Session,
    scene: Memo<Scene>,
    selected: RwSignal<Option<NodeId>>,
    pane: RwSignal<&'static str>,
) -> impl IntoView {
    let decision = Memo::new(move |_| {
        let cursor = session.cursor.get();
        session.playback.with(|log| {
            let events = (0..cursor).rev().filter_map(|index| log.event(index));
            // The line of the last decision stays until there is another one.
            events.take(12).find_map(|event| event.decision.clone())
        })
    });
    let hidden = move |id: &'static str| pane.get() != id;
    // The line that decided, into sight; after the panel has drawn it.
    Effect::new(move |_| {
        decision.track();
        if pane.get() == "source" {
            gloo_timers::callback::Timeout::new(120, show_lit_line).forget();
        }
    });
    view! {
        <div
            class="pane"
            role="tabpanel"
            id="panel-tables"
            aria-labelledby="tab-tables"
            tabindex="0"
            hidden=move || hidden("tables")
        >
            <Tables scene=scene selected=selected />
        </div>
        <div
            class="pane"
            role="tabpanel"
            id="panel-source"
            aria-labelledby="tab-source"
            tabindex="0"
            hidden=move || hidden("source")
        >
            <Source decision=decision />
        </div>
        <div
            class="pane"
            role="tabpanel"
            id="panel-transcript"
            aria-labelledby="tab-transcript"
            tabindex="0"
            hidden=move || hidden("transcript")
        >
            <Transcript
                playback=session.playback
                cursor=session.cursor
                on_seek=move |n: usize| session.show_event(n)
                is_shown=Signal::derive(move || !hidden("transcript"))
            />
        </div>
    }
}

/// The next step; or the question, when one must be answered first.
fn next_or_ask(session: Session) {
    let step = session.step.get_untracked();
    if untrack(|| session.waits_for_answer(step)) {
        focus("question");
        return;
    }
    if step > untrack(|| session.n_steps()) {
        // The other rules, then the next lesson: whichever stands first.
        prose::go_on();
        return;
    }
    session.next();
}

/// On a phone a new step begins at the stage, or at its question.
fn bring_into_sight(session: Session, narrow: RwSignal<bool>) {
    Effect::new(move |before: Option<usize>| {
        let step = session.step.get();
        if narrow.get_untracked() && before.is_some_and(|before| before != step) {
            let asks = untrack(|| session.waits_for_answer(step));
            if asks {
                top_of("question");
            } else {
                gloo_timers::callback::Timeout::new(30, scroll_up).forget();
            }
        }
        step
    });
}

fn by_id(id: &str) -> Option<web_sys::Element> {
    web_sys::window()?.document()?.get_element_by_id(id)
}

/// Scrolls until the element is at the top, once it has been drawn.
fn top_of(id: &'static str) {
    let scroll = move || {
        if let Some(element) = by_id(id) {
            element.scroll_into_view();
        }
    };
    gloo_timers::callback::Timeout::new(30, scroll).forget();
}

fn show_lit_line() {
    let lit = web_sys::window()
        .and_then(|window| window.document())
        .and_then(|page| page.query_selector("#panel-source .lit").ok().flatten());
    let (Some(pane), Some(lit)) = (by_id("panel-source"), lit) else { return };
    let below = lit.get_bounding_client_rect().top() - pane.get_bounding_client_rect().top();
    let middle = f64::from(pane.client_height()) / 2.0;
    pane.set_scroll_top(pane.scroll_top() + (below - middle) as i32);
}

fn scroll_up() {
    if let Some(main) = by_id("main") {
        main.set_scroll_top(0);
    }
}

fn chapters(session: Session, lesson: &Lesson) -> Memo<Vec<String>> {
    let titles: Vec<(String, String)> =
        lesson.steps.iter().map(|step| (step.id.clone(), step.title.clone())).collect();
    Memo::new(move |_| {
        let ids = session.step_ids();
        let title = |id: &String| {
            titles
                .iter()
                .find(|(known, _)| known == id)
                .map_or(id.clone(), |(_, title)| title.clone())
        };
        ids.iter().map(title).chain(["What to take away".to_owned()]).collect()
    })
}

/// Whether the screen is too narrow for more than one column.
fn narrow_screen() -> RwSignal<bool> {
    let is_narrow = || {
        let query = "(max-width: 60rem)";
        let found = web_sys::window().and_then(|window| window.match_media(query).ok().flatten());
        found.is_some_and(|query| query.matches())
    };
    let narrow = RwSignal::new(is_narrow());
    let handle = window_event_listener(leptos::ev::resize, move |_| {
        let now = is_narrow();
        if narrow.get_untracked() != now {
            narrow.set(now);
        }
    });
    on_cleanup(move || handle.remove());
    narrow
}
