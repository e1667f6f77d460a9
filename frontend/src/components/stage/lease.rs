//! A lease: a ring that empties as the time runs out.

use leptos::prelude::*;
use protocol::ids::NodeId;

use super::Context;
use crate::diagram::measure;
use crate::diagram::stage::{Frame, ring_radius};
use crate::narration::{span, title};
use crate::playback::Lease;

/// What the ring shows, apart from its arc.
#[derive(Clone, Debug, PartialEq)]
struct Face {
    above: String,
    top: &'static str,
    middle: String,
    bottom: String,
    is_free: bool,
    is_down: bool,
    notes: Vec<(String, bool)>,
}

#[component]
pub(super) fn LeaseNode(
    node: NodeId,
    context: Context,
    #[prop(into)] frame: Signal<Option<Frame>>,
) -> impl IntoView {
    let Context { scene, now_ms, layout, .. } = context;
    let heading = title(&node);
    let lease = Memo::new(move |_| scene.with(|scene| scene.lease(&node).cloned()));
    let face = Memo::new(move |_| {
        let now_ms = now_ms.get();
        lease.with(|lease| lease.as_ref().map(|lease| face(lease, now_ms)))
    });
    let radius = Memo::new(move |_| layout.with(ring_radius));
    let share = move || {
        let now_ms = now_ms.get();
        lease.with(|lease| {
            let Some(lease) = lease else { return 0.0 };
            let ttl_ms = (lease.ttl_ms as f64).max(1.0);
            (lease.remaining_ms(now_ms) / ttl_ms).clamp(0.0, 1.0)
        })
    };
    let dash = move || format!("{:.4} 2", share());
    let arc_class = move || if share() > 0.0005 { "arc" } else { "arc gone" };
    move || {
        frame.get()?;
        let r = radius.get();
        let heading = heading.clone();
        Some(view! {
            <g class="lease">
                <circle class="halo" r=r + 8.0 />
                <circle class="ground" r=r />
                <circle class=arc_class r=r pathLength="1" stroke-dasharray=dash transform="rotate(-90)" />
                {move || face.get().map(|face| draw_face(face, r))}
                <text class="title" y=r + 26.0 text-anchor="middle">{heading}</text>
            </g>
        })
    }
}

fn face(lease: &Lease, now_ms: f64) -> Face {
    let now = now_ms.max(0.0) as u64;
    let condition = &lease.condition;
    let holder = lease.holder_at(now);
    let left_ms = lease.remaining_ms(now_ms) as u64;
    let (above, top, middle, bottom) = match holder {
        Some(holder) => {
            let nonce = lease.nonce.as_ref().map_or("held by", |_| "held by");
            (
                format!("{} left", span(left_ms)),
                nonce,
                holder.to_string(),
                format!("token {}", lease.token),
            )
        }
        None if lease.holder.is_some() => {
            ("expired".to_owned(), "", "free".to_owned(), format!("last token {}", lease.token))
        }
        None if lease.token > 0 => {
            (String::new(), "", "free".to_owned(), format!("last token {}", lease.token))
        }
        None => (String::new(), "", "free".to_owned(), String::new()),
    };
    let mut notes = Vec::new();
    if !lease.waiters.is_empty() {
        let names: Vec<_> = lease.waiters.iter().map(ToString::to_string).collect();
        notes.push((format!("waiting: {}", names.join(", ")), false));
    }
    if condition.clock_offset_ms != 0 {
        let sign = if condition.clock_offset_ms > 0 { '+' } else { '−' };
        notes.push((
            format!("clock {sign}{}", span(condition.clock_offset_ms.unsigned_abs())),
            true,
        ));
    }
    if condition.alarm_suppressed {
        notes.push(("alarm held".to_owned(), true));
    }
    if !condition.faults.is_empty() {
        notes.push(("cut off".to_owned(), true));
    }
    if condition.crashed.is_some() && !condition.is_down() {
        notes.push(("crashed · starts at the next call".to_owned(), true));
    }
    Face {
        above,
        top,
        middle,
        bottom,
        is_free: holder.is_none(),
        is_down: condition.is_down(),
        notes,
    }
}

fn draw_face(face: Face, r: f64) -> impl IntoView {
    let class = match (face.is_down, face.is_free) {
        (true, _) => "face down",
        (false, true) => "face free",
        (false, false) => "face",
    };
    // A long name is set smaller before it is cut.
    let is_long = measure::sans(&face.middle, 22.0) > r * 1.55;
    let holder = if is_long { "holder long" } else { "holder" };
    let middle = if is_long { measure::fit(&face.middle, 15.0, r * 1.62) } else { face.middle };
    let notes: Vec<_> = face
        .notes
        .into_iter()
        .enumerate()
        .map(|(nth, (text, is_fault))| {
            let class = if is_fault { "note fault" } else { "note" };
            view! { <text class=class y=r + 43.0 + 15.0 * nth as f64 text-anchor="middle">{text}</text> }
        })
        .collect();
    view! {
        <g class=class>
            {face.is_down.then(|| view! { <circle class="outage" r=r /> })}
            <text class="mono above" y=-r - 14.0 text-anchor="middle">
                {if face.is_down { "down".to_owned() } else { face.above }}
            </text>
            <text class="small" y="-13" text-anchor="middle">{face.top}</text>
            <text class=holder y="9" text-anchor="middle">{middle}</text>
            <text class="mono token" y="28" text-anchor="middle">{face.bottom}</text>
            {notes}
        </g>
    }
}
