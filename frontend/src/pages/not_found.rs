//! A path that leads nowhere.

use leptos::prelude::*;

use crate::components::header::Header;

/// Says so, and where to go.
#[component]
pub(crate) fn NotFoundPage() -> impl IntoView {
    crate::app::set_title("Not found");
    view! {
        <Header />
        <main id="main" class="lone" tabindex="-1">
            <p class="eyebrow">"Not found"</p>
            <h1 class="serif">"There is nothing at this address."</h1>
            <p class="serif">
                "A lesson may have moved, or the address may be misspelt. Every lesson is on "
                <a href="/">"the first page"</a> "."
            </p>
        </main>
    }
}
