//! The keyboard: one table for the keys and for the sheet that lists them.

use leptos::prelude::*;
use wasm_bindgen::JsCast as _;

use super::icon::Icon;

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Next,
    Back,
    NextEvent,
    PreviousEvent,
    Play,
    First,
    Last,
    Chapter(usize),
    Compare,
    Break,
    Keys,
    Close,
}

/// What the sheet says.
const SHEET: [(&[&str], &str); 9] = [
    (&["→", "Page Down"], "Next: run the next step, or show it again"),
    (&["←", "Page Up"], "Back, in the recording"),
    (&["Shift →", "Shift ←"], "One event on, one event back"),
    (&["Space", "."], "Play and pause (clickers send a point)"),
    (&["Home", "End"], "The beginning; the newest event"),
    (&["1 – 9"], "Chapter"),
    (&["B"], "Break it: faults, and acts by hand"),
    (&["C"], "Compare two settings of the rules"),
    (&["?", "Esc"], "Open this list; close what is open"),
];

/// The wish behind a key, unless the key is meant for the control that has the focus.
pub(crate) fn wish(event: &web_sys::KeyboardEvent) -> Option<Wish> {
    if event.ctrl_key() || event.meta_key() || event.alt_key() || event.default_prevented() {
        return None;
    }
    let key = event.key();
    if key == "Escape" {
        return Some(Wish::Close);
    }
    let target = event.target().and_then(|target| target.dyn_into::<web_sys::Element>().ok());
    let name = target.as_ref().map(|element| element.tag_name().to_lowercase());
    let name = name.as_deref().unwrap_or("");
    let kind = target.as_ref().and_then(|element| element.get_attribute("type"));
    let is_field = matches!(name, "select" | "textarea")
        || (name == "input" && !matches!(kind.as_deref(), Some("radio" | "checkbox" | "range")));
    if is_field {
        return None;
    }
    let is_inside = |place: &str| {
        target.as_ref().is_some_and(|element| element.closest(place).ok().flatten().is_some())
    };
    if is_inside("dialog") {
        return None;
    }
    // Where there is something to scroll, the keys that scroll go on doing so.
    let scrolls = is_inside(".prose, .pane, .tray");
    let is_control = matches!(name, "button" | "a" | "summary" | "input");
    let is_radio = name == "input" && kind.as_deref() == Some("radio");
    Some(match key.as_str() {
        "ArrowRight" if event.shift_key() => Wish::NextEvent,
        "ArrowLeft" if event.shift_key() => Wish::PreviousEvent,
        "ArrowRight" if !is_radio => Wish::Next,
        "ArrowLeft" if !is_radio => Wish::Back,
        "PageDown" if !scrolls => Wish::Next,
        "PageUp" if !scrolls => Wish::Back,
        " " if !is_control => Wish::Play,
        "." => Wish::Play,
        "Home" if !scrolls => Wish::First,
        "End" if !scrolls => Wish::Last,
        "c" | "C" => Wish::Compare,
        "b" | "B" => Wish::Break,
        "?" => Wish::Keys,
        digit => Wish::Chapter(digit.parse().ok().filter(|n| (1..=9).contains(n))?),
    })
}

/// Listens as long as the page is there.
pub(crate) fn listen(on_wish: impl Fn(Wish) + 'static) {
    let handle = window_event_listener(leptos::ev::keydown, move |event| {
        if let Some(wish) = wish(&event) {
            if wish != Wish::Close {
                event.prevent_default();
            }
            on_wish(wish);
        }
    });
    on_cleanup(move || handle.remove());
}

/// The list of keys.
#[component]
pub(crate) fn KeySheet(
    /// Whether it is open.
    open: RwSignal<bool>,
) -> impl IntoView {
    let rows = SHEET
        .into_iter()
        .map(|(keys, what)| {
            let keys =
                keys.iter().map(|key| view! { <kbd class="key">{*key}</kbd> }).collect_view();
            view! {
                <div>
                    <dt>{keys}</dt>
                    <dd>{what}</dd>
                </div>
            }
        })
        .collect_view();
    view! {
        <Dialog title="Keys" open=open>
            <dl class="key-sheet">{rows}</dl>
        </Dialog>
    }
}

/// A modal dialog; the browser keeps the focus in it and gives it back.
#[component]
pub(crate) fn Dialog(
    /// What it is.
    title: &'static str,
    /// Whether it is open.
    open: RwSignal<bool>,
    /// As wide as the page.
    #[prop(optional)]
    wide: bool,
    children: Children,
) -> impl IntoView {
    let node = NodeRef::<leptos::html::Dialog>::new();
    Effect::new(move |_| {
        let Some(dialog) = node.get() else { return };
        match (open.get(), dialog.open()) {
            (true, false) => {
                let _ = dialog.show_modal();
            }
            (false, true) => dialog.close(),
            _ => {}
        }
    });
    view! {
        <dialog
            node_ref=node
            class="dialog"
            class:wide=wide
            aria-label=title
            on:close=move |_| open.set(false)
        >
            <header>
                <h2>{title}</h2>
                <button
                    class="icon-button"
                    type="button"
                    aria-label="Close"
                    on:click=move |_| open.set(false)
                >
                    <Icon name="close" />
                </button>
            </header>
            <div class="dialog-body">{children()}</div>
        </dialog>
    }
}
