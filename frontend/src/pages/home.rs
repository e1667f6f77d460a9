//! The first page: a scene to break before reading a word, then the course.

mod catalogue;
mod scene;

use leptos::prelude::*;

use crate::components::badge::Badge;
use crate::components::header::Header;
use crate::session::Session;

use catalogue::Catalogue;
use scene::Opening;

/// `/`
#[component]
pub(crate) fn HomePage() -> impl IntoView {
    crate::app::set_title("Leases and fences, live");
    let session = scene::session();
    view! {
        <Header>{session.map(|session| view! { <Badge session=session /> })}</Header>
        <main id="main" class="home" tabindex="-1">
            {session.map(|session: Session| view! { <Opening session=session /> })}
            <Catalogue />
            <footer class="home-footer">
                <p>
                    "Every lesson runs on real Durable Objects, in a private lab that deletes itself \
                     after a day without use. Your own program can take part: the "
                    <a href="/api/openapi.json" rel="external">"API"</a>
                    " needs no more than curl."
                </p>
            </footer>
        </main>
    }
}
