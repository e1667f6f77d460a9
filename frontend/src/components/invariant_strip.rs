//! The invariants (under construction).
use leptos::prelude::*;

use crate::playback::Playback;

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
    let _ = (playback, cursor, on_seek);
    view! { <ul class="invariants"></ul> }
}
