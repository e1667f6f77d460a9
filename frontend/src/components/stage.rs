//! The stage: actors, objects and messages as they stand at the cursor.
//!
//! A figure of SVG over the geometry of [`crate::diagram::stage`]. The half-way that the
//! event in the spotlight stands for is played once when the cursor goes one step
//! forward; every other jump, and every jump for those who asked for less motion, is
//! instant, with the spotlight as the mark of what changed.

use leptos::html::Figure;
use leptos::prelude::*;
use protocol::ids::{NodeId, ObjectKind};

use crate::diagram::stage::{self as geometry, Layout};
use crate::narration;
use crate::playback::Scene;

mod account;
mod client;
mod lease;
mod messages;
pub(crate) mod observe;
mod resource;
mod shard;
mod transaction;
mod verdict;

/// What every node of the stage needs.
#[derive(Clone, Copy)]
pub(super) struct Context {
    scene: Signal<Scene>,
    layout: Memo<Layout>,
    now_ms: Signal<f64>,
    selected: RwSignal<Option<NodeId>>,
    spotlit: Memo<Vec<NodeId>>,
}

/// The stage: actors, objects and messages as they stand at the cursor.
#[component]
pub fn Stage(
    /// How things stand.
    #[prop(into)]
    scene: Signal<Scene>,
    /// The time that rings and spans are counted by: live the real clock, else the
    /// scene's own.
    #[prop(into)]
    now_ms: Signal<f64>,
    /// The node that is selected.
    selected: RwSignal<Option<NodeId>>,
) -> impl IntoView {
    let figure = NodeRef::<Figure>::new();
    let size = observe::size_of(figure);
    let layout = Memo::new(move |_| {
        let (width, height) = size.get();
        scene.with(|scene| geometry::layout(scene, width, height))
    });
    let spotlit = Memo::new(move |_| scene.with(Scene::spotlit_nodes));
    let context = Context { scene, layout, now_ms, selected, spotlit };
    let progress = observe::progress(scene, layout);
    let nodes = Memo::new(move |_| {
        layout.with(|layout| {
            layout.nodes.iter().map(|placed| placed.node.clone()).collect::<Vec<_>>()
        })
    });
    let caption = Memo::new(move |_| {
        scene.with(|scene| {
            let event = scene.spotlight.as_ref();
            event.map_or(String::new(), |event| narration::sentence(event))
        })
    });
    let broken = Memo::new(move |_| scene.with(|scene| scene.broken.last().cloned()));
    let number = move || scene.with(|scene| scene.cursor);
    let view_box =
        move || layout.with(|layout| format!("0 0 {:.1} {:.1}", layout.width, layout.height));
    let pixels =
        move || layout.with(|layout| (layout.width * layout.zoom, layout.height * layout.zoom));
    view! {
        <figure class="stage" node_ref=figure>
            <div class="stage-room">
            <svg
                class="stage-drawing"
                viewBox=view_box
                width=move || pixels().0
                height=move || pixels().1
                role="group"
                aria-roledescription="diagram"
                aria-label=move || {
                    if nodes.with(Vec::is_empty) { "An empty lab.".to_owned() } else { caption.get() }
                }
            >
                <Marks />
                <messages::PastMessages context />
                <For each=move || nodes.get() key=|node| node.clone() let:node>
                    <Node node context />
                </For>
                <messages::LiveMessages context progress />
                <verdict::Verdict context progress />
            </svg>
            <Show when=move || nodes.with(Vec::is_empty)>
                <p class="stage-empty">
                    "Nothing has happened yet. Clients and objects appear here as they act."
                </p>
            </Show>
            </div>
            <figcaption class="stage-caption">
                <Show when=move || !caption.with(String::is_empty)>
                    <span class="stage-number">{number}</span>
                    <span>
                        {caption}
                        {move || broken.get().map(|sentence| view! {
                            <span class="stage-broken">
                                <span aria-hidden="true">"✕ "</span>
                                {sentence}
                            </span>
                        })}
                    </span>
                </Show>
            </figcaption>
        </figure>
    }
}

/// Patterns and arrow heads. Their names are page-wide, and every stage has the same.
#[component]
fn Marks() -> impl IntoView {
    view! {
        <defs>
            <pattern id="hatch" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
                <line class="hatch" x1="0" y1="0" x2="0" y2="7" />
            </pattern>
        </defs>
    }
}

/// One node: what is common to all kinds, around what is special to its own.
#[component]
fn Node(node: NodeId, context: Context) -> impl IntoView {
    let Context { layout, selected, spotlit, scene, .. } = context;
    let frame = {
        let node = node.clone();
        Memo::new(move |_| layout.with(|layout| layout.frame(&node)))
    };
    let place = move || {
        frame.get().map_or(String::new(), |frame| {
            format!("transform:translate({:.1}px,{:.1}px)", frame.middle.x, frame.middle.y)
        })
    };
    let is_dim = {
        let node = node.clone();
        move || spotlit.with(|nodes| !nodes.is_empty() && !nodes.contains(&node))
    };
    let is_selected = {
        let node = node.clone();
        Memo::new(move |_| selected.with(|selected| selected.as_ref() == Some(&node)))
    };
    let name = {
        let node = node.clone();
        move || scene.with(|scene| accessible_name(scene, &node))
    };
    let select = {
        let node = node.clone();
        move || {
            selected.update(|selected| {
                *selected =
                    if selected.as_ref() == Some(&node) { None } else { Some(node.clone()) };
            });
        }
    };
    let on_key = {
        let select = select.clone();
        move |event: leptos::ev::KeyboardEvent| {
            if event.key() == "Enter" || event.key() == " " {
                event.prevent_default();
                event.stop_propagation();
                select();
            }
        }
    };
    let inner = match &node {
        NodeId::Client(_) => {
            view! { <client::ClientNode node=node.clone() context frame /> }.into_any()
        }
        NodeId::Object(ObjectKind::Lease, _) => {
            view! { <lease::LeaseNode node=node.clone() context frame /> }.into_any()
        }
        NodeId::Object(ObjectKind::Resource, _) => {
            view! { <resource::ResourceNode node=node.clone() context frame /> }.into_any()
        }
        NodeId::Object(ObjectKind::Shard, _) => {
            view! { <shard::ShardNode node=node.clone() context frame /> }.into_any()
        }
        NodeId::Object(ObjectKind::Account, _) => {
            view! { <account::AccountNode node=node.clone() context frame /> }.into_any()
        }
        NodeId::Object(ObjectKind::Transaction, _) => {
            view! { <transaction::TransactionNode node=node.clone() context frame /> }.into_any()
        }
        NodeId::Lab => ().into_any(),
    };
    view! {
        <g
            class="node"
            class:dim=is_dim
            class:selected=move || is_selected.get()
            style=place
            on:click=move |_| select()
        >
            <g aria-hidden="true">{inner}</g>
            // The control has no text of its own: its name says more than the picture does.
            <rect
                class="hit"
                role="button"
                tabindex="0"
                aria-label=name
                aria-pressed=move || is_selected.get().to_string()
                on:keydown=on_key
                x=move || frame.get().map_or(0.0, |frame| -frame.width / 2.0)
                y=move || frame.get().map_or(0.0, |frame| -frame.height / 2.0)
                width=move || frame.get().map_or(0.0, |frame| frame.width)
                height=move || frame.get().map_or(0.0, |frame| frame.height)
            />
        </g>
    }
}

/// What a screen reader says of a node.
fn accessible_name(scene: &Scene, node: &NodeId) -> String {
    use crate::playback::{Activity, Object};
    if let Some(client) = scene.client(node) {
        let mut words = vec![format!("client {}", node.name())];
        for belief in &client.beliefs {
            let is_true = scene.is_true(node, belief, scene.at_ms);
            let how = if is_true { "holds" } else { "wrongly believes it holds" };
            words.push(format!("{how} {} under token {}", belief.lease.name(), belief.token));
        }
        match &client.activity {
            Activity::Idle => {}
            Activity::Paused { .. } => words.push("paused".to_owned()),
            Activity::Waiting { on } => words.push(format!("waits for {}", on.name())),
        }
        return words.join(", ");
    }
    let title = node.to_string().replace('/', " ");
    let Some(object) = scene.object(node) else { return title };
    let state = match object {
        _ if object.condition().is_down() => "down".to_owned(),
        Object::Lease(lease) => match lease.holder_at(scene.at_ms) {
            Some(holder) => format!("held by {holder} under token {}", lease.token),
            None => format!("free, last token {}", lease.token),
        },
        Object::Resource(resource) => {
            let values = resource.values.iter();
            let mut words: Vec<_> =
                values.map(|stored| format!("{} is {}", stored.key, stored.value)).collect();
            let marks = resource.fences.iter();
            words.extend(marks.map(|fence| format!("high-water mark {}", fence.high_water_mark)));
            words.join(", ")
        }
        Object::Shard(shard) => {
            let sealed = if shard.sealed { ", sealed" } else { "" };
            format!("number {}, map {}{sealed}", shard.number, shard.map_epoch)
        }
        Object::Account(account) => match account.record.balance {
            None => "not opened yet".to_owned(),
            Some(balance) => {
                let waits = account.record.in_doubt().map(|(txn, _)| txn.as_str());
                let waits: Vec<_> = waits.collect();
                let doubt = match waits.is_empty() {
                    true => String::new(),
                    false => format!(", in doubt about {}", waits.join(" and ")),
                };
                let available = account.record.available();
                format!("balance {balance}, available {available}{doubt}")
            }
        },
        Object::Transaction(txn) => {
            let phase = txn.record.phase.as_str().replace('_', " ");
            format!("{phase}, {} still to acknowledge", txn.record.n_pending())
        }
    };
    format!("{title}: {state}")
}
