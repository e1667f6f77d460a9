//! The log as sentences: the full twin of the stage, with the same cursor.
//!
//! Of a long log only the part around the cursor is in the page; buttons lead on.

use leptos::html::Ol;
use leptos::prelude::*;

use super::source::scroll;
use crate::diagram::lanes::{Dot, dot};
use crate::narration;
use crate::playback::Playback;

/// How many sentences are in the page at once.
const SHOWN_MAX: usize = 240;

/// One line.
#[derive(Clone, Debug, PartialEq)]
struct Line {
    index: usize,
    time: String,
    node: String,
    sentence: String,
    class: &'static str,
}

/// The log as sentences, with the same cursor as every picture.
#[component]
pub fn Transcript(
    /// The log.
    #[prop(into)]
    playback: Signal<Playback>,
    /// How many events have happened.
    #[prop(into)]
    cursor: Signal<usize>,
    /// The reader wants to go there.
    #[prop(into)]
    on_seek: Callback<usize>,
    /// The transcript can be seen: what is hidden has no place to scroll to.
    #[prop(into)]
    is_shown: Signal<bool>,
) -> impl IntoView {
    let list = NodeRef::<Ol>::new();
    // The part moves in steps, so that most steps of the cursor leave it alone.
    let part = Memo::new(move |_| {
        let middle = cursor.get() / (SHOWN_MAX / 4) * (SHOWN_MAX / 4);
        let from = middle.saturating_sub(SHOWN_MAX / 2);
        let len = playback.with(Playback::len);
        (from, (from + SHOWN_MAX).min(len))
    });
    let lines = Memo::new(move |_| {
        let (from, to) = part.get();
        playback.with(|log| (from..to).filter_map(|index| line(log, index)).collect::<Vec<_>>())
    });
    Effect::new(move |_| {
        let here = cursor.get();
        lines.track();
        if let (true, Some(list)) = (is_shown.get(), list.get()) {
            request_animation_frame(move || {
                if here == 0 {
                    scroll::to_top(&list);
                } else {
                    scroll::into_view(&list, "[aria-current=step]");
                }
            });
        }
    });
    let len = move || playback.with(Playback::len);
    let has_earlier = move || part.get().0 > 0;
    let has_later = move || part.get().1 < len();
    view! {
        <div class="transcript">
            <Show when=has_earlier>
                <button type="button" class="transcript-more" on:click=move |_| on_seek.run(part.get_untracked().0)>
                    {move || format!("{} earlier events", part.get().0)}
                </button>
            </Show>
            <ol node_ref=list start=move || part.get().0 + 1>
                <For each=move || lines.get() key=|line| line.index let:line>
                    <Entry line cursor on_seek />
                </For>
            </ol>
            <Show when=has_later>
                <button type="button" class="transcript-more" on:click=move |_| on_seek.run(part.get_untracked().1 + 1)>
                    {move || format!("{} later events", len() - part.get().1)}
                </button>
            </Show>
            <Show when=move || len() == 0>
                <p class="panel-empty">"Nothing has happened yet."</p>
            </Show>
        </div>
    }
}

#[component]
fn Entry(line: Line, cursor: Signal<usize>, on_seek: Callback<usize>) -> impl IntoView {
    let Line { index, time, node, sentence, class } = line;
    let is_here = Memo::new(move |_| cursor.get() == index + 1);
    let is_future = Memo::new(move |_| cursor.get() <= index);
    view! {
        <li class=class class:future=move || is_future.get()>
            <button
                type="button"
                aria-current=move || is_here.get().then_some("step")
                on:click=move |_| on_seek.run(index + 1)
            >
                <span class="transcript-number mono">{index + 1}</span>
                <span class="transcript-text">
                    {sentence}
                    <span class="transcript-where">{format!("{node} · {time}")}</span>
                </span>
            </button>
        </li>
    }
}

fn line(log: &Playback, index: usize) -> Option<Line> {
    let event = log.event(index)?;
    let passed_ms = event.at_ms.saturating_sub(log.start_ms());
    let class = match dot(event) {
        Dot::Refused | Dot::Crashed => "bad",
        Dot::Applied => "good",
        Dot::Granted => "holds",
        Dot::Fault => "fault",
        _ => "plain",
    };
    let is_broken = log.is_broken_at(event.seq);
    Some(Line {
        index,
        time: format!("{:.3} s", passed_ms as f64 / 1000.0),
        node: narration::title(&event.node),
        sentence: narration::sentence(event),
        class: if is_broken { "broken" } else { class },
    })
}

/// One polite sentence for each event that the cursor comes to; not to be seen. Mount it
/// once on a page, outside of anything that is hidden.
#[component]
pub fn LiveSentence(
    /// The log.
    #[prop(into)]
    playback: Signal<Playback>,
    /// How many events have happened.
    #[prop(into)]
    cursor: Signal<usize>,
) -> impl IntoView {
    let sentence = Memo::new(move |_| {
        let index = cursor.get().checked_sub(1);
        playback.with(|log| index.and_then(|index| log.event(index)).map(narration::sentence))
    });
    view! { <p class="sr-only" aria-live="polite" aria-atomic="true">{move || sentence.get()}</p> }
}
