//! The line at the top of every page.

use leptos::prelude::*;
use leptos_router::components::A;

use super::icon::Logo;
use super::theme::ThemeSwitch;

/// Logo, where you are, and what the page adds on the right.
#[component]
pub(crate) fn Header(
    /// Part and lesson, on a lesson's page.
    #[prop(optional, into)]
    crumb: Option<AnyView>,
    /// What stands on the right.
    #[prop(optional)]
    children: Option<Children>,
) -> impl IntoView {
    view! {
        <a class="skip-link" href="#main" rel="external">
            "Skip to the content"
        </a>
        <header class="header">
            <A href="/" attr:class="logo">
                <Logo />
                "Fencepost"
            </A>
            {crumb}
            <span class="header-space"></span>
            {children.map(|children| children())}
            <ThemeSwitch />
        </header>
    }
}
