//! The tables (under construction).
use std::sync::Arc;

use leptos::prelude::*;
use protocol::ids::NodeId;

use crate::playback::Scene;

/// The rows of every object at the cursor; what the last event changed is marked.
#[component]
pub fn Tables(
    /// How things stand.
    #[prop(into)]
    scene: Signal<Arc<Scene>>,
    /// Only this object, when it is one.
    #[prop(into, optional)]
    selected: Signal<Option<NodeId>>,
) -> impl IntoView {
    let _ = selected;
    view! { <div class="tables">{move || scene.get().cursor}</div> }
}
