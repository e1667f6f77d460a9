//! What the object decided, in a few words beside it.

use leptos::prelude::*;
use protocol::ids::ObjectKind;
use protocol::trace::TraceKind;

use super::Context;
use crate::diagram::measure;
use crate::diagram::stage::{Frame, Layout, Point, ring_radius};
use crate::playback::{Object, Scene};

/// The words, and whether they are good or bad news.
#[derive(Clone, Debug, PartialEq)]
struct Words {
    text: String,
    class: &'static str,
    at: Point,
}

#[component]
pub(super) fn Verdict(context: Context, progress: RwSignal<f64>) -> impl IntoView {
    let words = Memo::new(move |_| {
        context.scene.with(|scene| context.layout.with(|layout| words(scene, layout)))
    });
    // Not before the message has arrived.
    let is_told = Memo::new(move |_| progress.get() >= 0.66);
    move || {
        let words = words.get().filter(|_| is_told.get())?;
        let class = format!("verdict {}", words.class);
        Some(
            view! { <text class=class x=words.at.x y=words.at.y text-anchor="middle">{words.text}</text> },
        )
    }
}

/// The area that the words cover.
pub(super) fn frame(scene: &Scene, layout: &Layout) -> Option<Frame> {
    let words = words(scene, layout)?;
    let width = measure::sans(&words.text, 13.0) + 10.0;
    let middle = Point::new(words.at.x, words.at.y - 4.0);
    Some(Frame { middle, width, height: 18.0 })
}

fn words(scene: &Scene, layout: &Layout) -> Option<Words> {
    let event = scene.spotlight.as_ref()?;
    let frame = layout.frame(&event.node)?;
    let object = scene.object(&event.node)?;
    let (text, class) = text(&event.kind, object)?;
    let class = if scene.broken.is_empty() { class } else { "bad" };
    let y = match event.node.object_kind()? {
        ObjectKind::Lease => {
            let n_notes = notes_under(object);
            frame.middle.y + ring_radius(layout) + 45.0 + 15.0 * n_notes
        }
        _ => frame.bottom() + 20.0,
    };
    let half = measure::sans(&text, 13.0) / 2.0 + 6.0;
    let x = frame.middle.x.clamp(half, (layout.width - half).max(half));
    Some(Words { text, class, at: Point::new(x, y) })
}

fn notes_under(object: &Object) -> f64 {
    let Object::Lease(lease) = object else { return 0.0 };
    let condition = &lease.condition;
    let notes = [
        !lease.waiters.is_empty(),
        condition.clock_offset_ms != 0,
        condition.alarm_suppressed,
        !condition.faults.is_empty(),
        condition.crashed.is_some() && !condition.is_down(),
    ];
    notes.into_iter().filter(|is_there| *is_there).count() as f64
}

fn text(kind: &TraceKind, object: &Object) -> Option<(String, &'static str)> {
    use protocol::fence::Guard;
    let against = |presented: u64, mark: u64| match object {
        Object::Resource(resource) if resource.guard() == Guard::Strict => {
            format!("fenced: {presented} is not above {mark}")
        }
        _ => format!("fenced: {presented} is below {mark}"),
    };
    Some(match kind {
        TraceKind::WriteRefused { presented, high_water_mark, outcome, .. } => {
            let text = match outcome.as_str() {
                "not_claimed" => format!("refused: {presented} has not claimed"),
                "gap" => "refused: not the next write".to_owned(),
                _ => against(presented.get(), high_water_mark.get()),
            };
            (text, "bad")
        }
        TraceKind::ClaimRefused { presented, high_water_mark, .. }
        | TraceKind::ReadRefused { presented, high_water_mark, .. } => {
            (format!("fenced: {presented} is below {high_water_mark}"), "bad")
        }
        TraceKind::LeaseRefused { holder, .. } => (format!("refused: {holder} holds it"), "bad"),
        TraceKind::RenewalRefused { presented, .. } => {
            (format!("lost: {presented} is not the current grant"), "bad")
        }
        TraceKind::ReleaseRefused { presented, .. } => {
            (format!("{presented} is not the current grant"), "bad")
        }
        TraceKind::RequestExpired { .. } => ("too late to be granted".to_owned(), "bad"),
        TraceKind::OperationRefused { outcome, presented_epoch, current_epoch } => {
            let text = match outcome.as_str() {
                "sealed" => "refused: sealed".to_owned(),
                _ => format!("refused: map {presented_epoch}, not {current_epoch}"),
            };
            (text, "bad")
        }
        TraceKind::LeaseGranted { holder, token, .. } => {
            (format!("{token} goes to {holder}"), "holds")
        }
        TraceKind::LeaseRenewed { token, .. } => (format!("{token} renewed"), "holds"),
        TraceKind::LeaseExpired { holder, .. } => (format!("{holder}'s time is over"), "soft"),
        TraceKind::LeaseReleased { .. } => ("given back".to_owned(), "soft"),
        TraceKind::Claimed { token, .. } => (format!("claimed: nothing below {token}"), "holds"),
        TraceKind::WriteApplied { key, value, .. } => (format!("stored: {key} = {value}"), "good"),
        TraceKind::WriteAdmitted { .. } => ("admitted, not stored yet".to_owned(), "soft"),
        TraceKind::WriteRepeated { .. } => ("done before: first result again".to_owned(), "soft"),
        TraceKind::OperationApplied { number, .. } => (format!("done as number {number}"), "good"),
        TraceKind::OperationNumbered { number, .. } => {
            (format!("number {number}, not stored yet"), "soft")
        }
        TraceKind::OperationRepeated { number, .. } => (format!("done before as {number}"), "soft"),
        TraceKind::Crashed { .. } => ("crashed: memory lost".to_owned(), "bad"),
        TraceKind::Restarted { incarnation } => (format!("start {incarnation}, from disk"), "soft"),
        TraceKind::RulesChanged { .. } => ("rules changed".to_owned(), "fault"),
        TraceKind::ClockSet { .. } => ("clock moved".to_owned(), "fault"),
        TraceKind::FaultsSet { .. } => ("faults set".to_owned(), "fault"),
        TraceKind::AlarmFired { .. } => ("alarm".to_owned(), "soft"),
        _ => return None,
    })
}
