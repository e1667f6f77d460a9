//! A transaction's coordinator: how far it is, and who has acknowledged.

use leptos::prelude::*;
use protocol::ids::NodeId;

use super::Context;
use crate::diagram::measure;
use crate::diagram::stage::Frame;
use crate::narration::title;
use crate::playback::{Object, Transaction};

#[component]
pub(super) fn TransactionNode(
    node: NodeId,
    context: Context,
    #[prop(into)] frame: Signal<Option<Frame>>,
) -> impl IntoView {
    let scene = context.scene;
    let heading = title(&node);
    let shown = Memo::new(move |_| {
        scene.with(|scene| match scene.object(&node) {
            Some(Object::Transaction(txn)) => Some(txn.clone()),
            _ => None,
        })
    });
    move || {
        let (txn, frame) = (shown.get()?, frame.get()?);
        Some(draw(&txn, heading.clone(), frame))
    }
}

fn draw(txn: &Transaction, heading: String, frame: Frame) -> impl IntoView + use<> {
    let (half_w, half_h) = (frame.width / 2.0, frame.height / 2.0);
    let is_down = txn.condition.is_down();
    let record = &txn.record;
    let phase = match is_down {
        true => "down · memory lost".to_owned(),
        false => record.phase.as_str().replace('_', " "),
    };
    let width = frame.width - 20.0;
    let legs: Vec<_> = record
        .legs
        .iter()
        .take(3)
        .enumerate()
        .map(|(nth, leg)| {
            let state = match (leg.mixed, record.acked.contains(&leg.account)) {
                (true, _) => " · mixed",
                (false, true) => " · acknowledged",
                (false, false) => "",
            };
            let words = format!("{} {:+}{state}", leg.account, leg.delta);
            let y = -half_h + 84.0 + 18.0 * nth as f64;
            let words = measure::fit(&words, 11.5, width);
            view! { <text class="mono foot" y=y text-anchor="middle">{words}</text> }
        })
        .collect();
    view! {
        <g class="shard" class:down=is_down>
            <rect class="halo" x=-half_w - 4.0 y=-half_h - 4.0 width=frame.width + 8.0 height=frame.height + 8.0 rx="15" />
            <rect class="box" x=-half_w y=-half_h width=frame.width height=frame.height rx="12" />
            <text class="title" y=-half_h + 24.0 text-anchor="middle">{heading}</text>
            <text class="mono row" y=-half_h + 60.0 text-anchor="middle">
                {measure::fit(&phase, 13.0, width)}
            </text>
            {legs}
        </g>
    }
}
