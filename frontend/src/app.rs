//! Routes, and what every page shares.

use leptos::prelude::*;
use leptos_router::components::{Route, Router, Routes};
use leptos_router::path;

use crate::components::theme::Theme;
use crate::pages::home::HomePage;
use crate::pages::lesson::LessonPage;
use crate::pages::not_found::NotFoundPage;

/// The page.
#[component]
pub(crate) fn App() -> impl IntoView {
    provide_context(Theme::restore());
    view! {
        <Router>
            <Routes fallback=|| view! { <NotFoundPage /> }.into_any()>
                <Route path=path!("/") view=HomePage />
                <Route path=path!("/lessons/:slug") view=LessonPage />
            </Routes>
        </Router>
    }
}

/// What the browser's tab is called.
pub(crate) fn set_title(text: &str) {
    if let Some(document) = web_sys::window().and_then(|window| window.document()) {
        document.set_title(&format!("{text} · Fencepost"));
    }
}
