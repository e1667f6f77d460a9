//! The transcript (under construction).
use leptos::prelude::*;

use crate::playback::Playback;

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
) -> impl IntoView {
    let _ = on_seek;
    view! { <ol class="transcript"><li>{move || playback.with(Playback::len)}{cursor}</li></ol> }
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
    let _ = (playback, cursor);
    view! { <p class="sr-only" aria-live="polite"></p> }
}
