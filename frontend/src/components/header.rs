//! The line at the top of every page.

use leptos::prelude::*;

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
        <a class="skip-link" href="#main">
            "Skip to the content"
        </a>
        <header class="header">
            <a href="/" class="logo">
                <Logo />
                "Fencepost"
            </a>
            {crumb}
            <span class="header-space"></span>
            {children.map(|children| children())}
            <ThemeSwitch />
        </header>
    }
}
