//! A client: what it does, and what it believes.

use leptos::prelude::*;
use protocol::ids::NodeId;

use super::Context;
use crate::diagram::measure;
use crate::diagram::stage::Frame;
use crate::narration::span;
use crate::playback::{Activity, Client, Scene};

/// What the card shows.
#[derive(Clone, Debug, PartialEq)]
struct Card {
    name: String,
    /// Token and whether the belief is true.
    chips: Vec<(String, bool)>,
    state: String,
    memory: Option<String>,
    is_paused: bool,
    is_wrong: bool,
    /// Below the card; bad when it tells of a pause.
    note: Option<String>,
}

#[component]
pub(super) fn ClientNode(
    node: NodeId,
    context: Context,
    #[prop(into)] frame: Signal<Option<Frame>>,
) -> impl IntoView {
    let Context { scene, now_ms, layout, .. } = context;
    let is_narrow = Memo::new(move |_| layout.with(|layout| layout.is_narrow));
    let card = Memo::new(move |_| {
        let width = frame.get().map_or(136.0, |frame| frame.width);
        let now_ms = now_ms.get();
        let room = if is_narrow.get() { width * 0.68 } else { width + 44.0 };
        scene.with(|scene| {
            scene.client(&node).map(|client| card(scene, client, now_ms, width, room))
        })
    });
    move || {
        let (card, frame) = (card.get()?, frame.get()?);
        Some(draw(card, frame, is_narrow.get()))
    }
}

/// `width` is the card's, `note_room` what a note below it may take.
fn card(scene: &Scene, client: &Client, now_ms: f64, width: f64, note_room: f64) -> Card {
    let now = now_ms.max(0.0) as u64;
    let beliefs: Vec<(String, bool)> = client
        .beliefs
        .iter()
        .map(|belief| (belief.token.to_string(), scene.is_true(&client.node, belief, now)))
        .collect();
    let is_wrong = beliefs.iter().any(|(_, is_true)| !is_true);
    let room = width - 20.0;
    let longest_that_fits = |texts: &[&str]| {
        let fits = texts.iter().find(|text| measure::sans(text, 12.0) <= room);
        (*fits.unwrap_or(&texts[texts.len() - 1])).to_owned()
    };
    let state = match &client.activity {
        _ if is_wrong => longest_that_fits(&["believes it holds", "believes"]),
        _ if !beliefs.is_empty() => {
            let names: Vec<_> = client.beliefs.iter().map(|belief| belief.lease.name()).collect();
            longest_that_fits(&[&format!("holds {}", names.join(", ")), "holds"])
        }
        Activity::Waiting { on } => {
            longest_that_fits(&[&format!("waits for {}", on.name()), "waits"])
        }
        Activity::Paused { .. } => "paused".to_owned(),
        Activity::Idle if scene.leases().next().is_none() => String::new(),
        Activity::Idle => "no lease".to_owned(),
    };
    let memory = client.reads.last().map(|read| {
        let value = read.value.map_or("–".to_owned(), |value| value.to_string());
        let long = format!("read {} {value}", read.key);
        if measure::mono(&long, 11.0) <= room { long } else { format!("read {value}") }
    });
    let (is_paused, note) = match (&client.activity, client.woke) {
        (Activity::Paused { since_ms }, _) => {
            let for_ms = now.saturating_sub(*since_ms);
            (true, Some(format!("paused {}", span(for_ms))))
        }
        (_, Some((at_ms, paused_ms))) if now.saturating_sub(at_ms) < 6000 => {
            let long = format!(
                "woke {} ago · paused {}",
                span(now.saturating_sub(at_ms)),
                span(paused_ms)
            );
            let short = format!("slept {}", span(paused_ms));
            let fits = measure::sans(&long, 11.0) <= note_room;
            (false, Some(if fits { long } else { short }))
        }
        _ => (false, None),
    };
    Card {
        name: client.node.name().to_owned(),
        chips: beliefs,
        state,
        memory,
        is_paused,
        is_wrong,
        note,
    }
}

fn draw(card: Card, frame: Frame, is_narrow: bool) -> impl IntoView {
    let (half_w, half_h) = (frame.width / 2.0, frame.height / 2.0);
    let left = -half_w + 12.0;
    let mut chip_right = half_w - 10.0;
    let chips: Vec<_> = card
        .chips
        .iter()
        .map(|(token, is_true)| {
            let width = measure::mono(token, 12.0) + 12.0;
            chip_right -= width;
            let x = chip_right;
            chip_right -= 4.0;
            let class = if *is_true { "chip holds" } else { "chip stale" };
            view! {
                <g class=class style=format!("transform:translate({x:.1}px,{:.1}px)", -half_h + 12.0)>
                    <rect width=width height="20" rx="5" />
                    <text class="mono" x=width / 2.0 y="14.5" text-anchor="middle">{token.clone()}</text>
                </g>
            }
        })
        .collect();
    let name_room = chip_right - left;
    let name = measure::fit(&card.name, 20.0, name_room.max(16.0));
    // Narrow, messages come and go at the left.
    let (note_x, anchor) = if is_narrow { (half_w - 2.0, "end") } else { (0.0, "middle") };
    let note_class = if card.is_paused { "note fault" } else { "note bad" };
    view! {
        <g class="client" class:paused=card.is_paused class:wrong=card.is_wrong>
            <rect class="halo" x=-half_w - 4.0 y=-half_h - 4.0 width=frame.width + 8.0 height=frame.height + 8.0 rx="15" />
            <rect class="box" x=-half_w y=-half_h width=frame.width height=frame.height rx="12" />
            {card.is_paused.then(|| view! {
                <rect class="veil" x=-half_w y=-half_h width=frame.width height=frame.height rx="12" fill="url(#hatch)" />
            })}
            <text class="name" x=left y=-half_h + 29.0>{name}</text>
            {chips}
            <text class="state" x=left y=-half_h + 50.0>{card.state}</text>
            {card.memory.map(|memory| view! {
                <text class="mono memory" x=left y=-half_h + 68.0>{memory}</text>
            })}
            {card.note.map(|note| view! {
                <text class=note_class x=note_x y=half_h + 16.0 text-anchor=anchor>{note}</text>
            })}
        </g>
    }
}
