//! The stage (under construction).
use std::sync::Arc;

use leptos::prelude::*;
use protocol::ids::NodeId;

use crate::playback::Scene;

/// The stage: actors, objects and messages as they are at the cursor.
#[component]
pub fn Stage(
    /// How things stand.
    #[prop(into)]
    scene: Signal<Arc<Scene>>,
    /// The time that rings and spans are counted by: live the real clock, else the scene's.
    #[prop(into)]
    now_ms: Signal<f64>,
    /// The node that is selected.
    selected: RwSignal<Option<NodeId>>,
) -> impl IntoView {
    let _ = (now_ms, selected);
    view! { <figure class="stage">{move || scene.get().cursor}</figure> }
}
