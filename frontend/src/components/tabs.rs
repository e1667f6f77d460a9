//! A row of tabs, as the pattern of the ARIA authoring guide has it.

use leptos::prelude::*;
use wasm_bindgen::JsCast as _;

/// One tab: its id, and the word on it.
pub(crate) type Tab = (&'static str, &'static str);

/// The row; the panels are the caller's, with the ids `panel-{id}`.
#[component]
pub(crate) fn Tabs(
    /// What the row is for.
    label: &'static str,
    /// The tabs.
    #[prop(into)]
    tabs: Signal<Vec<Tab>>,
    /// Which one is open.
    selected: RwSignal<&'static str>,
) -> impl IntoView {
    let on_key = move |event: web_sys::KeyboardEvent| {
        let all = tabs.get_untracked();
        let Some(index) = all.iter().position(|tab| tab.0 == selected.get_untracked()) else {
            return;
        };
        let next = match event.key().as_str() {
            "ArrowRight" => (index + 1) % all.len(),
            "ArrowLeft" => (index + all.len() - 1) % all.len(),
            "Home" => 0,
            "End" => all.len() - 1,
            _ => return,
        };
        event.prevent_default();
        event.stop_propagation();
        selected.set(all[next].0);
        focus(&format!("tab-{}", all[next].0));
    };
    view! {
        <div class="tabs" role="tablist" aria-label=label on:keydown=on_key>
            {move || {
                tabs.get()
                    .into_iter()
                    .map(|(id, word)| {
                        view! {
                            <button
                                type="button"
                                role="tab"
                                id=format!("tab-{id}")
                                aria-controls=format!("panel-{id}")
                                aria-selected=move || (selected.get() == id).to_string()
                                tabindex=move || if selected.get() == id { 0 } else { -1 }
                                on:click=move |_| selected.set(id)
                            >
                                {word}
                            </button>
                        }
                    })
                    .collect_view()
            }}
        </div>
    }
}

/// Moves the focus to the element with this id.
pub(crate) fn focus(id: &str) {
    let element = web_sys::window()
        .and_then(|window| window.document())
        .and_then(|document| document.get_element_by_id(id));
    if let Some(element) = element.and_then(|found| found.dyn_into::<web_sys::HtmlElement>().ok()) {
        let _ = element.focus();
    }
}
