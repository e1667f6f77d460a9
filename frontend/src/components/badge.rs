//! Where the machines run, and whether what is shown is happening now.

use leptos::prelude::*;

use crate::session::{Mode, Session};
use crate::socket::Link;

/// LIVE, RECORDED or SIMULATED.
#[component]
pub(crate) fn Badge(
    /// The run.
    session: Session,
) -> impl IntoView {
    let state = move || match (session.mode.get(), session.is_replay(), session.link.get()) {
        (Mode::Starting, ..) => ("starting", "…"),
        (_, true, _) => ("recorded", "RECORDED"),
        (Mode::Simulated, ..) => ("simulated", "SIMULATED"),
        (Mode::Live(_), _, Link::Lost) => ("lost", "RECONNECTING"),
        (Mode::Live(_), _, Link::Gone) => ("lost", "EXPIRED"),
        (Mode::Live(_), ..) => ("live", "LIVE"),
    };
    let place = move || match session.mode.get() {
        Mode::Starting => view! { <span>"a fresh lab"</span> }.into_any(),
        Mode::Simulated => view! { <span>"in this page"</span> }.into_any(),
        Mode::Live(lab) => {
            let short = short(&lab);
            view! { <span>{runtime()} " · lab " <span class="mono">{short}</span></span> }
                .into_any()
        }
    };
    let title = move || match state().0 {
        "live" => "Real Durable Objects. What you see is what they did just now.",
        "recorded" => "A recording of this lab. The lab itself is further on.",
        "simulated" => "There is no server, so the same machines run in this page.",
        "lost" => "The connection is lost. Nothing of the recording is.",
        _ => "Setting up",
    };
    view! {
        <span class="badge" data-testid="badge" data-state=move || state().0 title=title>
            <i aria-hidden="true"></i>
            <b>{move || state().1}</b>
            <span class="badge-place">{place}</span>
        </span>
    }
}

fn short(lab: &str) -> String {
    if lab.len() < 8 {
        lab.to_owned()
    } else {
        format!("{}…{}", &lab[..4], &lab[lab.len() - 2..])
    }
}

fn runtime() -> String {
    let host = web_sys::window().and_then(|window| window.location().hostname().ok());
    match host.as_deref() {
        Some("localhost" | "127.0.0.1" | "[::1]") | None => "local runtime".to_owned(),
        Some(host) => host.to_owned(),
    }
}
