//! Which page an address is, and what every page shares.
//!
//! A link loads its page anew: script and wasm come from the browser's cache, so that is a
//! matter of milliseconds, and a router would be a twentieth of what a first visitor loads.

use leptos::prelude::*;

use crate::components::theme::Theme;
use crate::pages::home::HomePage;
use crate::pages::lesson::LessonPage;
use crate::pages::not_found::NotFoundPage;

/// The page.
#[component]
pub(crate) fn App() -> impl IntoView {
    provide_context(Theme::restore());
    let path = web_sys::window().and_then(|window| window.location().pathname().ok());
    let path = path.unwrap_or_default();
    match path.trim_end_matches('/').split('/').collect::<Vec<_>>()[..] {
        [""] => view! { <HomePage /> }.into_any(),
        ["", "lessons", slug] => view! { <LessonPage slug=slug.to_owned() /> }.into_any(),
        _ => view! { <NotFoundPage /> }.into_any(),
    }
}

/// What the browser's tab is called.
pub(crate) fn set_title(text: &str) {
    if let Some(document) = web_sys::window().and_then(|window| window.document()) {
        document.set_title(&format!("{text} · Fencepost"));
    }
}
