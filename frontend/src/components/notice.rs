//! What is wrong, in calm words, with the one thing to do about it.

use leptos::prelude::*;

use super::icon::Icon;
use crate::session::{Mode, Session, Trouble};
use crate::socket::Link;

/// The banners of a run: the connection, and trouble with the run itself.
#[component]
pub(crate) fn Notices(
    /// The run.
    session: Session,
) -> impl IntoView {
    let is_lost =
        move || matches!(session.mode.get(), Mode::Live(_)) && session.link.get() == Link::Lost;
    // A socket that comes back within a moment is not worth a word.
    let shown = RwSignal::new(false);
    Effect::new(move |_| {
        if is_lost() {
            let later = move || {
                let still = session.link.try_get_untracked() == Some(Link::Lost);
                shown.try_set(still);
            };
            gloo_timers::callback::Timeout::new(900, later).forget();
        } else {
            shown.set(false);
        }
    });
    view! {
        <div class="notices">
            {move || shown.get().then(|| connection_lost(session))}
            {move || session.trouble.get().map(|trouble| trouble_notice(session, trouble))}
        </div>
    }
}

fn connection_lost(session: Session) -> AnyView {
    view! {
        <div class="notice" data-kind="amber" role="alert" data-testid="connection-lost">
            <p>
                <b>"Connection lost."</b>
                " Everything up to here is kept, and the lab keeps what you did. Trying again…"
            </p>
            <button class="button small" type="button" on:click=move |_| session.retry_now()>
                "Try now"
            </button>
        </div>
    }
    .into_any()
}

fn trouble_notice(session: Session, trouble: Trouble) -> AnyView {
    let (kind, head, text, button) = match trouble {
        Trouble::Expired => (
            "amber",
            "This lab has expired.",
            "Labs delete themselves after a day without use. Your progress is kept.".to_owned(),
            Some(("Start in a fresh lab", 0)),
        ),
        Trouble::CutOff(step) => (
            "amber",
            "The reload cut this step off in the middle.",
            "Run it again in a fresh lab, up to and with this step.".to_owned(),
            Some(("Run again live", step)),
        ),
        Trouble::Failed(problem) => {
            let before = session.step.get_untracked().saturating_sub(1);
            ("red", "The run stopped.", problem, Some(("Run again up to here", before)))
        }
        Trouble::Unexpected(check) => (
            "amber",
            "This run went differently.",
            format!(
                "A live run is never the same twice, and your own interference counts: {check}."
            ),
            Some(("Start in a fresh lab", 0)),
        ),
        Trouble::Refused(problem) => ("amber", "Not possible now.", problem, None),
        Trouble::Quota(problem) => ("amber", "No lab on the server today.", problem, None),
    };
    // A run that stopped cannot go on, and what says so stays.
    let can_dismiss = kind != "red";
    let role = if kind == "red" { "alert" } else { "status" };
    view! {
        <div class="notice" data-kind=kind role=role data-testid="trouble">
            <p>
                <b>{head}</b>
                " "
                {text}
            </p>
            {button
                .map(|(label, up_to)| {
                    view! {
                        <button
                            class="button small"
                            type="button"
                            on:click=move |_| session.run_again(up_to)
                        >
                            {label}
                        </button>
                    }
                })}
            {can_dismiss
                .then(|| {
                    view! {
                        <button
                            class="icon-button"
                            type="button"
                            aria-label="Dismiss"
                            on:click=move |_| session.trouble.set(None)
                        >
                            <Icon name="close" />
                        </button>
                    }
                })}
        </div>
    }
    .into_any()
}
