//! An account: what is in it, what of that is promised, and to whom.

use leptos::prelude::*;
use protocol::ids::NodeId;
use protocol::transaction::account::Hold;

use super::Context;
use crate::diagram::measure;
use crate::diagram::stage::Frame;
use crate::narration::title;
use crate::playback::{Account, Object};

#[component]
pub(super) fn AccountNode(
    node: NodeId,
    context: Context,
    #[prop(into)] frame: Signal<Option<Frame>>,
) -> impl IntoView {
    let scene = context.scene;
    let heading = title(&node);
    let shown = Memo::new(move |_| {
        scene.with(|scene| match scene.object(&node) {
            Some(Object::Account(account)) => Some(account.clone()),
            _ => None,
        })
    });
    move || {
        let (account, frame) = (shown.get()?, frame.get()?);
        Some(draw(&account, heading.clone(), frame))
    }
}

fn draw(account: &Account, heading: String, frame: Frame) -> impl IntoView + use<> {
    let (half_w, half_h) = (frame.width / 2.0, frame.height / 2.0);
    let is_down = account.condition.is_down();
    let record = &account.record;
    let balance = match record.balance {
        _ if is_down => "down · memory lost".to_owned(),
        None => "not opened yet".to_owned(),
        Some(balance) => format!("balance {balance} · available {}", record.available()),
    };
    let width = frame.width - 20.0;
    let holds: Vec<_> = record
        .in_doubt()
        .take(3)
        .enumerate()
        .map(|(nth, (txn, hold))| {
            let y = -half_h + 84.0 + 18.0 * nth as f64;
            let words = measure::fit(&waits(txn.as_str(), hold), 11.5, width);
            view! { <text class="mono foot" y=y text-anchor="middle">{words}</text> }
        })
        .collect();
    view! {
        <g class="shard" class:down=is_down>
            <rect class="halo" x=-half_w - 4.0 y=-half_h - 4.0 width=frame.width + 8.0 height=frame.height + 8.0 rx="15" />
            <rect class="box" x=-half_w y=-half_h width=frame.width height=frame.height rx="12" />
            <text class="title" y=-half_h + 24.0 text-anchor="middle">{heading}</text>
            <text class="mono row" y=-half_h + 60.0 text-anchor="middle">
                {measure::fit(&balance, 13.0, width)}
            </text>
            {holds}
        </g>
    }
}

/// `in doubt: t1 -30`.
fn waits(txn: &str, hold: &Hold) -> String {
    format!("in doubt: {txn} {:+}", hold.delta)
}
