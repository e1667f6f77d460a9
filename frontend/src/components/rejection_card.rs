//! The rejection card (under construction).
use leptos::prelude::*;

use crate::explain::Rejection;

/// Why a request was refused, and what would have happened without the rule.
#[component]
pub fn RejectionCard(
    /// The refusal.
    rejection: Rejection,
    /// The reader wants to see the line that decided.
    #[prop(into, optional)]
    on_source: Option<Callback<()>>,
) -> impl IntoView {
    let _ = on_source;
    view! { <section class="rejection"><h3>{rejection.title}</h3></section> }
}
