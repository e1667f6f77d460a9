//! What must hold: green from the first event, red from the very event that broke it.

use leptos::prelude::*;
use protocol::invariant::Invariant;

use crate::playback::Playback;

/// One chip of the strip.
#[derive(Clone, Debug, PartialEq)]
struct Chip {
    invariant: Invariant,
    /// Position of the event that broke it, and what happened.
    broken: Option<(usize, String)>,
}

/// What must hold: green from the first event, red from the one that broke it.
#[component]
pub fn InvariantStrip(
    /// The log.
    #[prop(into)]
    playback: Signal<Playback>,
    /// How many events have happened.
    #[prop(into)]
    cursor: Signal<usize>,
    /// The reader wants to go there.
    #[prop(into)]
    on_seek: Callback<usize>,
) -> impl IntoView {
    let open = RwSignal::new(None::<Invariant>);
    let chips = Memo::new(move |_| {
        let cursor = cursor.get();
        playback.with(|log| {
            let all = log.concerned().into_iter();
            all.map(|(invariant, _)| Chip { invariant, broken: broken(log, invariant, cursor) })
                .collect::<Vec<_>>()
        })
    });
    let keys = Memo::new(move |_| {
        chips.with(|chips| chips.iter().map(|chip| chip.invariant).collect::<Vec<_>>())
    });
    view! {
        <ul class="invariants" aria-label="What must hold">
            <For each=move || keys.get() key=|invariant| *invariant let:invariant>
                {
                    let chip = Memo::new(move |_| {
                        chips.with(|chips| chips.iter().find(|one| one.invariant == invariant).cloned())
                    });
                    view! { <ChipView invariant chip open on_seek /> }
                }
            </For>
        </ul>
    }
}

fn broken(log: &Playback, invariant: Invariant, cursor: usize) -> Option<(usize, String)> {
    let violation = log.violations().iter().find(|broken| broken.invariant == invariant)?;
    let index = log.index_of_seq(violation.seq)?;
    (index < cursor).then(|| (index, violation.sentence.clone()))
}

#[component]
fn ChipView(
    invariant: Invariant,
    chip: Memo<Option<Chip>>,
    open: RwSignal<Option<Invariant>>,
    on_seek: Callback<usize>,
) -> impl IntoView {
    let broken = move || chip.get().and_then(|chip| chip.broken);
    let is_broken = Memo::new(move |_| broken().is_some());
    let is_open = move || open.get() == Some(invariant);
    let on_click = move |_| {
        open.update(|open| *open = if *open == Some(invariant) { None } else { Some(invariant) });
    };
    let on_key = move |event: leptos::ev::KeyboardEvent| {
        if event.key() == "Escape" && is_open() {
            event.stop_propagation();
            open.set(None);
        }
    };
    view! {
        <li class="invariant-item" on:keydown=on_key>
            <button
                type="button"
                class="invariant"
                class:broken=move || is_broken.get()
                aria-expanded=move || is_open().to_string()
                on:click=on_click
            >
                <span aria-hidden="true">{move || if is_broken.get() { "✕" } else { "✓" }}</span>
                {invariant.label()}
                <span class="sr-only">{move || if is_broken.get() { ": broken" } else { ": holds" }}</span>
            </button>
            <Show when=is_open>
                <div class="invariant-card" role="note">
                    <p>{invariant.explanation()}</p>
                    {move || broken().map(|(index, sentence)| view! {
                        <p class="invariant-broken">{sentence}</p>
                        <button type="button" class="invariant-go" on:click=move |_| on_seek.run(index + 1)>
                            {format!("Go to event {}", index + 1)}
                        </button>
                    })}
                    {move || (!is_broken.get()).then(|| view! {
                        <p class="invariant-holds">"It holds up to here."</p>
                    })}
                </div>
            </Show>
        </li>
    }
}
