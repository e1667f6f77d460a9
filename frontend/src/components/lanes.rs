//! The lanes (under construction).
use leptos::prelude::*;

use crate::playback::Playback;

/// The space-time diagram of the whole log.
#[component]
pub fn Lanes(
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
    let _ = on_seek;
    view! { <div class="lanes">{move || playback.with(Playback::len)}{cursor}</div> }
}
