//! A shard: one writer, and the operations that it has taken one after the other.

use leptos::prelude::*;
use protocol::ids::NodeId;

use super::Context;
use crate::diagram::measure;
use crate::diagram::stage::Frame;
use crate::narration::title;
use crate::playback::{Object, Shard};

/// Width of a ticket.
const TICKET: f64 = 28.0;

#[component]
pub(super) fn ShardNode(
    node: NodeId,
    context: Context,
    #[prop(into)] frame: Signal<Option<Frame>>,
) -> impl IntoView {
    let scene = context.scene;
    let heading = title(&node);
    let shown = Memo::new(move |_| {
        scene.with(|scene| match scene.object(&node) {
            Some(Object::Shard(shard)) => {
                Some((shard.clone(), shard.condition.record_at + 1 == scene.cursor))
            }
            _ => None,
        })
    });
    move || {
        let ((shard, is_new), frame) = (shown.get()?, frame.get()?);
        Some(draw(shard, is_new, heading.clone(), frame))
    }
}

fn draw(shard: Shard, is_new: bool, heading: String, frame: Frame) -> impl IntoView {
    let (half_w, half_h) = (frame.width / 2.0, frame.height / 2.0);
    let is_down = shard.condition.is_down();
    let state: Vec<_> =
        shard.state.iter().take(2).map(|(key, value)| format!("{key} = {value}")).collect();
    let more = shard.state.len().saturating_sub(2);
    let state = match more {
        _ if is_down => "down · memory lost".to_owned(),
        0 if state.is_empty() => "no keys yet".to_owned(),
        0 => state.join("   "),
        more => format!("{}   +{more}", state.join("   ")),
    };
    let epoch = if shard.sealed {
        format!("sealed · map {}", shard.map_epoch)
    } else {
        format!("one writer · map {}", shard.map_epoch)
    };
    view! {
        <g class="shard" class:down=is_down class:sealed=shard.sealed>
            <rect class="halo" x=-half_w - 4.0 y=-half_h - 4.0 width=frame.width + 8.0 height=frame.height + 8.0 rx="15" />
            <rect class="box" x=-half_w y=-half_h width=frame.width height=frame.height rx="12" />
            <text class="title" y=-half_h + 24.0 text-anchor="middle">{heading}</text>
            <text class="small" y=-half_h + 40.0 text-anchor="middle">{epoch}</text>
            <text class="mono row" y=-half_h + 62.0 text-anchor="middle">
                {measure::fit(&state, 13.0, frame.width - 20.0)}
            </text>
            {tickets(&shard, is_new, frame)}
        </g>
    }
}

/// The last operations as numbered tickets, the newest at the right with its words below.
/// A number whose effect is not stored yet is a hatched ticket.
fn tickets(shard: &Shard, is_new: bool, frame: Frame) -> AnyView {
    let n_max = ((frame.width - 24.0) / (TICKET + 4.0)).floor() as usize;
    let pending =
        shard.numbered.iter().map(|(_, number, summary)| (*number, summary.as_str(), true));
    let done = shard.operations.iter().map(|(number, summary)| (*number, summary.as_str(), false));
    let all: Vec<_> = done.chain(pending).collect();
    let shown = &all[all.len().saturating_sub(n_max)..];
    if shown.is_empty() {
        return ().into_any();
    }
    let left = -(shown.len() as f64 * (TICKET + 4.0) - 4.0) / 2.0;
    let y = frame.height / 2.0 - 52.0;
    let last = shown.len() - 1;
    let squares: Vec<_> = shown
        .iter()
        .enumerate()
        .map(|(nth, (number, _, is_pending))| {
            let class = match (is_pending, nth == last && is_new) {
                (true, _) => "ticket pending",
                (false, true) => "ticket new",
                (false, false) => "ticket",
            };
            let x = left + nth as f64 * (TICKET + 4.0);
            view! {
                <g class=class style=format!("transform:translate({x:.1}px,{y:.1}px)")>
                    <rect width=TICKET height="22" rx="4" />
                    <text class="mono" x=TICKET / 2.0 y="15.5" text-anchor="middle">{*number}</text>
                </g>
            }
        })
        .collect();
    let words = measure::fit(shown[last].1, 11.5, frame.width - 24.0);
    view! {
        {squares}
        <text class="mono foot" y=y + 39.0 text-anchor="middle">{words}</text>
    }
    .into_any()
}
