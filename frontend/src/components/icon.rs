//! The few pictures in the interface, drawn in one line weight.

use leptos::prelude::*;

/// A picture of 16 by 16; a word always stands beside it or in the control's label.
#[component]
pub(crate) fn Icon(
    /// Its name.
    name: &'static str,
) -> impl IntoView {
    let d = match name {
        "back" => "M10.5 3 5 8l5.5 5",
        "next" => "M5.5 3 11 8l-5.5 5",
        "play" => "M4.5 2.8v10.4L13 8z",
        "pause" => "M5 3v10M11 3v10",
        "again" => "M13 8a5 5 0 1 1-1.6-3.7M13 2v3.2H9.8",
        "bolt" => "M9 1.8 3.5 9H8l-1 5.2L12.5 7H8z",
        "close" => "m4 4 8 8M12 4l-8 8",
        "check" => "m3 8.5 3.2 3L13 4.5",
        "cross" => "m4 4 8 8M12 4l-8 8",
        "arrow" => "M2.5 8h11M9 3.5 13.5 8 9 12.5",
        "sun" => {
            "M8 1v1.6M8 13.4V15M1 8h1.6M13.4 8H15M3 3l1.2 1.2M11.8 11.8 13 13M13 3l-1.2 1.2M4.2 11.8 3 13M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6"
        }
        "moon" => "M13.2 9.6A5.6 5.6 0 0 1 6.4 2.8a5.6 5.6 0 1 0 6.8 6.8",
        "auto" => "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2M8 2v12M8 5h4.6M8 8h6M8 11h4.6",
        "key" => "M1.8 4.2h12.4v7.6H1.8zM4 6.6h.2M6.6 6.6h.2M9.2 6.6h.2M11.8 6.6h.2M4.4 9.4h7.2",
        "compare" => "M2 3.5h5v9H2zM9 3.5h5v9H9z",
        "lock" => "M4 7.2h8v6H4zM5.6 7V5a2.4 2.4 0 0 1 4.8 0v2",
        _ => "",
    };
    view! {
        <svg
            class="icon"
            width="16"
            height="16"
            viewBox="0 0 16 16"
            fill="none"
            stroke="currentColor"
            stroke-width="1.6"
            stroke-linecap="round"
            stroke-linejoin="round"
            aria-hidden="true"
        >
            <path d=d></path>
        </svg>
    }
}

/// Two posts and two rails.
#[component]
pub(crate) fn Logo() -> impl IntoView {
    view! {
        <svg
            width="22"
            height="22"
            viewBox="0 0 22 22"
            fill="none"
            stroke="currentColor"
            stroke-width="1.8"
            stroke-linecap="round"
            aria-hidden="true"
        >
            <path d="M5 19V6l2-2.6L9 6v13M13 19V6l2-2.6L17 6v13M2 10h18M2 15h18"></path>
        </svg>
    }
}
