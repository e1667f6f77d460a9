//! The source (under construction).
use leptos::prelude::*;
use protocol::trace::Decision;

/// The handler that ran, with the line that decided lit.
#[component]
pub fn Source(
    /// The line that decided; `None` when the event was not decided by a rule.
    #[prop(into)]
    decision: Signal<Option<Decision>>,
) -> impl IntoView {
    view! { <div class="source">{move || decision.get().map(|decision| decision.file)}</div> }
}
