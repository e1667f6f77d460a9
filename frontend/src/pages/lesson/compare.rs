//! The same script under two settings of the rules, side by side.
//!
//! The other setting runs in a lab of its own, up to the step that is open. What differs
//! is marked; what is the same is dimmed.

use std::sync::Arc;

use leptos::prelude::*;
use lessons::lesson::Lesson;
use lessons::script;
use protocol::ids::NodeId;
use protocol::trace::TraceKind;

use crate::components::invariant_strip::InvariantStrip;
use crate::components::keys::Dialog;
use crate::components::stage::Stage;
use crate::narration;
use crate::session::{Session, Start};

/// The dialog; the second run begins when it is first opened.
#[component]
pub(super) fn Compare(
    session: Session,
    lesson: Arc<Lesson>,
    open: RwSignal<bool>,
) -> impl IntoView {
    view! {
        <Dialog title="Compare" open=open wide=true>
            {move || open.get().then(|| sides(session, lesson.clone()))}
        </Dialog>
    }
}

fn sides(session: Session, lesson: Arc<Lesson>) -> AnyView {
    if session.n_run.get_untracked() == 0 {
        let text = "Run a step or two first: the same steps are then run under the other setting.";
        return view! { <p class="compare-note">{text}</p> }.into_any();
    }
    let Ok(script) = script::parse(&lesson.script) else { return ().into_any() };
    let mine = session.variant.get_untracked();
    let Some(other) = lesson.variants.iter().find(|one| one.id != mine) else {
        return ().into_any();
    };
    let title = |id: &str| {
        lesson
            .variants
            .iter()
            .find(|one| one.id == id)
            .map_or(String::new(), |one| one.title.clone())
    };
    let second = Session::new("", script);
    let n_run = session.n_run.get_untracked();
    second.start(Start { variant: Some(other.id.clone()), up_to: n_run });
    let ready = move || !second.stepping.get() && second.n_run.get() > 0;
    view! {
        <p class="soft compare-note">
            {move || {
                if ready() {
                    "The same script, the same steps; one setting of the rules is different. \
                     Lines that differ are marked."
                } else {
                    "Running the same steps in a second lab…"
                }
            }}
        </p>
        <div class="compare">
            {side(session, second, title(&mine))}
            {side(second, session, other.title.clone())}
        </div>
    }
    .into_any()
}

fn side(session: Session, other: Session, title: String) -> AnyView {
    let whole = Memo::new(move |_| session.playback.with(|log| log.scene_at(log.len())));
    let now_ms = Signal::derive(move || whole.with(|scene| scene.at_ms as f64));
    let end = Memo::new(move |_| session.playback.with(|log| log.len()));
    let selected = RwSignal::new(None::<NodeId>);
    let theirs = Memo::new(move |_| sentences(other));
    let rows = move || {
        let theirs = theirs.get();
        sentences(session)
            .into_iter()
            .map(|text| {
                let is_same = theirs.contains(&text);
                view! { <li data-same=is_same.then_some("")>{text}</li> }
            })
            .collect_view()
    };
    view! {
        <section class="compare-side" aria-label=title.clone()>
            <h3>{title.clone()}</h3>
            <Stage scene=whole now_ms=now_ms selected=selected />
            <InvariantStrip playback=session.playback cursor=end on_seek=|_: usize| {} />
            <ol class="compare-log">{rows}</ol>
        </section>
    }
    .into_any()
}

/// What clients asked for and what came of it; without times, so that runs can be compared.
fn sentences(session: Session) -> Vec<String> {
    session.playback.with(|log| {
        let tells = |kind: &TraceKind| {
            matches!(
                kind,
                TraceKind::ReplyReceived { .. }
                    | TraceKind::ReplyFailed { .. }
                    | TraceKind::ReplyDropped { .. }
                    | TraceKind::Crashed { .. }
            )
        };
        let told = log.events().filter(|event| tells(&event.kind));
        told.map(narration::sentence).collect()
    })
}
