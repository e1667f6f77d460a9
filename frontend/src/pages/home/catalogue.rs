//! The course: what there is, how far you got, and what is still to come.

use std::collections::BTreeMap;

use leptos::prelude::*;
use lessons::catalogue::{Entry, Part};

use crate::api;
use crate::arrival::{arrival, await_into};
use crate::storage::{self, Progress};

/// All lessons, by part.
#[component]
pub(super) fn Catalogue() -> impl IntoView {
    let fetch = || api::file::<Vec<Entry>>("/lessons/index.json");
    let index = arrival(fetch());
    let body = move || {
        match index.get() {
        None => view! { <p class="soft" aria-busy="true">"Loading the lessons…"</p> }.into_any(),
        Some(Err(error)) => view! {
            <div class="notice inline" data-kind="amber" role="alert">
                <p>
                    <b>"The list of lessons did not load."</b>
                    " "
                    {error.to_string()}
                </p>
                <button class="button small" type="button" on:click=move |_| await_into(index, fetch())>
                    "Try again"
                </button>
            </div>
        }
        .into_any(),
        Some(Ok(entries)) if entries.is_empty() => {
            view! { <p class="soft">"There are no lessons in this build."</p> }.into_any()
        }
        Some(Ok(entries)) => {
            let progress = storage::all_progress();
            let parts = Part::ALL.map(|part| part_view(part, &entries, &progress));
            parts.into_iter().collect_view().into_any()
        }
    }
    };
    view! {
        <section class="catalogue" aria-labelledby="catalogue-title">
            <h2 id="catalogue-title" class="serif">"The course"</h2>
            <p class="soft">
                "Each lesson takes a claim of a paper, or a hole in its published code, and lets \
                 you replay it on the real objects: "
                <cite>"The Leader You Never Elected"</cite>
                ", cited as L."
            </p>
            {body}
        </section>
    }
}

fn part_view(part: Part, entries: &[Entry], progress: &BTreeMap<String, Progress>) -> AnyView {
    let in_part: Vec<&Entry> = entries.iter().filter(|entry| entry.part == part).collect();
    if in_part.is_empty() {
        return ().into_any();
    }
    let rows = in_part.iter().map(|entry| row(entry, progress.get(&entry.slug).copied()));
    let rows = rows.collect_view();
    view! {
        <section class="part" aria-label=part.title()>
            <h3>{part.title()}</h3>
            <ol>{rows}</ol>
        </section>
    }
    .into_any()
}

/// Text in which words between backticks are code.
fn with_code(text: &str) -> AnyView {
    let part = |(index, part): (usize, &str)| {
        let part = part.to_owned();
        if index % 2 == 1 { view! { <code>{part}</code> }.into_any() } else { part.into_any() }
    };
    text.split('`').enumerate().map(part).collect_view().into_any()
}

fn row(entry: &Entry, progress: Option<Progress>) -> AnyView {
    let number = entry.number;
    if !entry.available {
        return view! {
            <li class="entry planned">
                <span class="entry-number mono">{number}</span>
                <div>
                    <p class="entry-title">{entry.title.clone()}</p>
                    <p class="entry-summary">{with_code(&entry.summary)}</p>
                </div>
                <span class="entry-note">"planned"</span>
            </li>
        }
        .into_any();
    }
    let done = progress.unwrap_or_default();
    let note = match done {
        done if done.is_done() => "done".to_owned(),
        Progress { step: 0, .. } => format!("{} min", entry.minutes),
        Progress { step, of } => format!("step {step} of {}", of.saturating_sub(1)),
    };
    let (title, summary) = (entry.title.clone(), with_code(&entry.summary));
    let href = format!("/lessons/{}", entry.slug);
    let share = if done.of == 0 { 0.0 } else { done.step as f64 / done.of as f64 };
    view! {
        <li class="entry" data-done=done.is_done().then_some("")>
            <span class="entry-number mono">{number}</span>
            <div>
                <p class="entry-title">
                    <a href=href>{title}</a>
                </p>
                <p class="entry-summary">{summary}</p>
            </div>
            <span class="entry-note">
                {note}
                {(share > 0.0 && !done.is_done())
                    .then(|| {
                        view! {
                            <i class="entry-bar" aria-hidden="true">
                                <i style:width=format!("{:.0}%", share * 100.0)></i>
                            </i>
                        }
                    })}
            </span>
        </li>
    }
    .into_any()
}
