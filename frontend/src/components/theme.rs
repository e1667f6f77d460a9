//! Light, dark, or as the system has it.

use leptos::prelude::*;

use super::icon::Icon;
use crate::storage;

/// The visitor's choice; `None` follows the system.
#[derive(Clone, Copy)]
pub(crate) struct Theme(RwSignal<Option<&'static str>>);

impl Theme {
    /// The choice of the last visit.
    pub(crate) fn restore() -> Self {
        let theme = match storage::theme().as_deref() {
            Some("light") => Some("light"),
            Some("dark") => Some("dark"),
            _ => None,
        };
        apply(theme);
        Self(RwSignal::new(theme))
    }

    fn turn(self) {
        let next = match self.0.get_untracked() {
            None => Some("light"),
            Some("light") => Some("dark"),
            _ => None,
        };
        apply(next);
        storage::set_theme(next);
        self.0.set(next);
    }
}

fn apply(theme: Option<&str>) {
    let root = web_sys::window()
        .and_then(|window| window.document())
        .and_then(|document| document.document_element());
    if let Some(root) = root {
        let _ = match theme {
            Some(theme) => root.set_attribute("data-theme", theme),
            None => root.remove_attribute("data-theme"),
        };
    }
}

/// Turns from the system's theme to light, dark, and back.
#[component]
pub(crate) fn ThemeSwitch() -> impl IntoView {
    let theme = expect_context::<Theme>();
    let name = move || theme.0.get().unwrap_or("as the system");
    view! {
        <button
            class="pill icon-only"
            type="button"
            data-testid="theme"
            aria-label=move || format!("Colors: {}", name())
            title=move || format!("Colors: {}", name())
            on:click=move |_| theme.turn()
        >
            {move || match theme.0.get() {
                Some("light") => view! { <Icon name="sun" /> },
                Some(_) => view! { <Icon name="moon" /> },
                None => view! { <Icon name="auto" /> },
            }}
        </button>
    }
}
