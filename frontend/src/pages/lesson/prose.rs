//! The text beside the stage: introduction, one page for each step, debrief.

use std::sync::Arc;

use leptos::prelude::*;
use lessons::catalogue::Entry;
use lessons::lesson::Lesson;
use protocol::trace::TraceKind;
use wasm_bindgen::JsCast as _;

use crate::api;
use crate::arrival::arrival;
use crate::components::icon::Icon;
use crate::components::prediction::PredictionCard;
use crate::components::rejection_card::RejectionCard;
use crate::components::source::scroll;
use crate::explain;
use crate::session::{Mode, Session, Start, Trouble};

/// The column on the left.
#[component]
pub(super) fn Prose(
    session: Session,
    lesson: Arc<Lesson>,
    #[prop(into)] on_source: Callback<()>,
    narrow: RwSignal<bool>,
) -> impl IntoView {
    let node = NodeRef::<leptos::html::Section>::new();
    let stop = Memo::new(move |_| (session.step.get(), session.variant.get()));
    Effect::new(move |_| {
        stop.track();
        if let Some(node) = node.get() {
            node.set_scroll_top(0);
        }
    });
    let number_of_steps = Memo::new(move |_| session.n_steps());
    let body = move || {
        let (step, variant) = stop.get();
        if step == 0 {
            introduction(session, &lesson)
        } else if step > number_of_steps.get() {
            debrief(session, &lesson, &variant)
        } else {
            step_page(session, &lesson, step, &variant, on_source)
        }
    };
    view! {
        <section
            class="prose"
            id="panel-lesson"
            aria-label="Lesson"
            tabindex="0"
            role=move || narrow.get().then_some("tabpanel")
            node_ref=node
        >
            {body}
        </section>
    }
}

fn introduction(session: Session, lesson: &Arc<Lesson>) -> AnyView {
    let entry = &lesson.entry;
    let paper = lesson.paper.join(", ");
    let is_expired = move || session.trouble.get() == Some(Trouble::Expired);
    let is_starting = move || session.mode.get() == Mode::Starting && !is_expired();
    let label = move || match (is_expired(), is_starting()) {
        (true, _) => "Start in a fresh lab",
        (_, true) => "Setting up a lab…",
        _ => "Start",
    };
    view! {
        <p class="eyebrow">
            {format!("Lesson {} · about {} min", entry.number, entry.minutes)}
        </p>
        <h1 class="serif">{entry.title.clone()}</h1>
        <div class="text" inner_html=lesson.intro_html.clone()></div>
        <VariantSwitch session=session lesson=lesson.clone() />
        <button
            class="button primary large"
            type="button"
            data-testid="start"
            disabled=is_starting
            on:click=move |_| {
                if is_expired() { session.run_again(0) } else { session.next() }
            }
        >
            {label}
            <Icon name="next" />
        </button>
        <p class="small soft">
            {(!paper.is_empty())
                .then(|| view! { <cite>"The Leader You Never Elected"</cite> {format!(" (L): {paper}. ")} })}
            "Or press the right arrow key; "
            <kbd class="key">"?"</kbd>
            " lists all keys."
        </p>
    }
    .into_any()
}

/// The settings of the rules under which the script can run.
#[component]
fn VariantSwitch(session: Session, lesson: Arc<Lesson>) -> impl IntoView {
    if lesson.variants.len() < 2 {
        return ().into_any();
    }
    let prose: Vec<_> =
        lesson.variants.iter().map(|one| (one.id.clone(), one.html.clone())).collect();
    let about = move || {
        let variant = session.variant.get();
        prose
            .iter()
            .find(|(id, _)| *id == variant)
            .map(|(_, html)| html.clone())
            .unwrap_or_default()
    };
    let buttons = lesson.variants.iter().map(|variant| {
        let (id, chosen) = (variant.id.clone(), variant.id.clone());
        let choose = move |_| {
            if session.variant.get_untracked() != chosen {
                session.start(Start { variant: Some(chosen.clone()), up_to: 0 });
            }
        };
        view! {
            <button
                type="button"
                aria-pressed=move || (session.variant.get() == id).to_string()
                on:click=choose
            >
                {variant.title.clone()}
            </button>
        }
    });
    let buttons = buttons.collect_view();
    view! {
        <div class="variants">
            <p class="eyebrow" id="variants-label">"Rules"</p>
            <div class="segments" role="group" aria-labelledby="variants-label">
                {buttons}
            </div>
            <div class="text small" inner_html=about></div>
        </div>
    }
    .into_any()
}

fn step_page(
    session: Session,
    lesson: &Arc<Lesson>,
    step: usize,
    variant: &str,
    on_source: Callback<()>,
) -> AnyView {
    let ids = untrack(|| session.step_ids());
    let n_steps = ids.len();
    let Some(prose) = ids.get(step - 1).and_then(|id| lesson.step(id)) else {
        return ().into_any();
    };
    let outcome = Memo::new(move |_| outcome_of(session, step));
    let prediction = untrack(|| session.question(step)).and_then(|id| {
        let prediction = prose.prediction(&id)?.clone();
        let (known, question) = (id.clone(), id);
        let chosen = Memo::new(move |_| session.answers.read().get(&known).copied());
        let node = NodeRef::<leptos::html::Div>::new();
        let answer = Callback::new(move |option: usize| {
            // Before the button that has the focus goes away.
            if let Some(card) = node.get_untracked() {
                let options = web_sys::FocusOptions::new();
                options.set_prevent_scroll(true);
                let _ = card.focus_with_options(&options);
            }
            session.answer(&question, option);
        });
        Effect::new(move |before: Option<bool>| {
            let is_known = outcome.get().is_some();
            // The verdict has just come: what it says, and why, into sight.
            if before == Some(false)
                && is_known
                && let Some(card) = node.get()
            {
                gloo_timers::callback::Timeout::new(60, move || scroll::begin_with(&card)).forget();
            }
            is_known
        });
        Some(view! {
            <div id="question" class="question-place" tabindex="-1" node_ref=node>
                <PredictionCard
                    prediction=prediction
                    chosen=chosen
                    outcome=outcome
                    on_answer=answer
                />
            </div>
        })
    });
    let in_variant = prose.in_variant(variant).map(str::to_owned);
    view! {
        <p class="eyebrow">{format!("Step {step} of {n_steps}")}</p>
        <h1 class="serif">{prose.title.clone()}</h1>
        <div class="text" inner_html=prose.html.clone()></div>
        {in_variant.map(|html| view! { <div class="text" inner_html=html></div> })}
        {prediction}
        <h2 class="sr-only">"What happened"</h2>
        <Refusals session=session step=step on_source=on_source />
        <Violations session=session step=step />
    }
    .into_any()
}

/// What answers the question of a step, once the cursor has seen it: the last reply, or the
/// field that the script names.
fn outcome_of(session: Session, step: usize) -> Option<String> {
    if session.n_run.get() < step || (session.stepping.get() && session.n_run.get() == step) {
        return None;
    }
    let (start, end) = (session.end_of_step(step - 1), session.end_of_step(step));
    if session.cursor.get() < session.rest_of_step(step) {
        return None;
    }
    if let Some((object, field)) = session.decided_by(step) {
        return session.playback.with(|log| {
            let record = (0..end).rev().find_map(|index| {
                log.event(index).filter(|event| event.node == object)?;
                log.record(index)
            });
            record.map(|record| lessons::runner::record_word(record, &field))
        });
    }
    session.playback.with(|log| {
        (start..end).rev().find_map(|index| match &log.event(index)?.kind {
            TraceKind::ReplyReceived { outcome, .. } => Some(outcome.clone()),
            TraceKind::ReplyFailed { reason, .. } => Some(reason.clone()),
            TraceKind::ReplyDropped { .. } | TraceKind::RequestDropped { .. } => {
                Some("silence".to_owned())
            }
            _ => None,
        })
    })
}

/// The range of events of a step that the cursor has seen.
fn seen(session: Session, step: usize) -> (usize, usize) {
    let start = session.end_of_step(step - 1);
    (start, session.end_of_step(step).min(session.cursor.get()))
}

#[component]
fn Refusals(session: Session, step: usize, on_source: Callback<()>) -> impl IntoView {
    let refused = Memo::new(move |_| {
        let (start, end) = seen(session, step);
        session.playback.with(|log| {
            let is_refusal = |index: &usize| {
                log.event(*index)
                    .is_some_and(|event| crate::playback::fold::refusal(&event.kind).is_some())
            };
            (start..end).filter(is_refusal).collect::<Vec<_>>()
        })
    });
    view! {
        <For each=move || refused.get() key=|index| *index let:index>
            {session
                .playback
                .with_untracked(|log| explain::rejection(log, index))
                .map(|rejection| {
                    view! {
                        <RejectionCard
                            rejection=rejection
                            on_source=Callback::new(move |()| {
                                session.show_event(index + 1);
                                on_source.run(());
                            })
                        />
                    }
                })}
        </For>
    }
}

#[component]
fn Violations(session: Session, step: usize) -> impl IntoView {
    let broken = Memo::new(move |_| {
        let (start, end) = seen(session, step);
        session.playback.with(|log| {
            let in_step =
                |seq: u64| log.index_of_seq(seq).is_some_and(|index| start <= index && index < end);
            let violations = log.violations().iter().filter(|one| in_step(one.seq));
            violations
                .map(|one| (one.seq, one.invariant.label(), one.sentence.clone()))
                .collect::<Vec<_>>()
        })
    });
    view! {
        <For each=move || broken.get() key=|one| (one.0, one.1) let:one>
            <section class="card broken" data-testid="broken">
                <h3>"No longer true: " {one.1}</h3>
                <p>{one.2.clone()}</p>
            </section>
        </For>
    }
}

/// To what comes after the lesson: the first way on that the debrief offers, into sight and
/// ready to be taken with one more press.
pub(super) fn go_on() {
    let document = web_sys::window().and_then(|window| window.document());
    let found = document.and_then(|document| {
        document.query_selector(".actions button, .next-lesson a").ok().flatten()
    });
    if let Some(way) = found.and_then(|way| way.dyn_into::<web_sys::HtmlElement>().ok()) {
        scroll::begin_with(&way);
        let _ = way.focus();
    }
}

fn debrief(session: Session, lesson: &Arc<Lesson>, variant: &str) -> AnyView {
    let others = lesson.variants.iter().filter(|one| one.id != variant);
    let others = others.map(|other| {
        let id = other.id.clone();
        view! {
            <button
                class="button primary"
                type="button"
                on:click=move |_| {
                    session.start(Start { variant: Some(id.clone()), up_to: 0 });
                }
            >
                {format!("Now run it with: {}", other.title)}
            </button>
        }
    });
    let others = others.collect_view();
    let sources = lesson.sources.iter().map(|source| {
        view! {
            <li>
                {source.label.clone()} ": "
                <code>{format!("{} ({}:{})", source.anchor, source.file, source.line)}</code>
            </li>
        }
    });
    let sources = sources.collect_view();
    let number = lesson.entry.number;
    view! {
        <p class="eyebrow">"What to take away"</p>
        <h1 class="serif">{lesson.entry.title.clone()}</h1>
        <div class="text" data-testid="debrief" inner_html=lesson.debrief_html.clone()></div>
        <div class="actions">{others}</div>
        <NextLesson number=number />
        <h2 class="eyebrow">"The lines that decide"</h2>
        <ul class="sources">{sources}</ul>
        <p class="small soft">
            {(!lesson.paper.is_empty()).then(|| format!("Paper: {}. ", lesson.paper.join(", ")))}
            {(!lesson.cases.is_empty()).then(|| format!("Cases: {}.", lesson.cases.join(", ")))}
        </p>
    }
    .into_any()
}

#[component]
fn NextLesson(number: u32) -> impl IntoView {
    let index = arrival(api::file::<Vec<Entry>>("/lessons/index.json"));
    move || {
        let entries = index.get()?.ok()?;
        let next = entries.into_iter().find(|entry| entry.number == number + 1)?;
        next.available.then(|| {
            view! {
                <p class="next-lesson">
                    <a href=format!("/lessons/{}", next.slug)>
                        <span class="eyebrow">"Next lesson"</span>
                        <b>{next.number} " " {next.title}</b>
                        <Icon name="arrow" />
                    </a>
                </p>
            }
        })
    }
}
