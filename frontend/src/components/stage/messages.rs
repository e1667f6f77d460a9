//! Messages: a line along its way, its words beside it, a head that moves.

use leptos::prelude::*;

use super::Context;
use crate::diagram::labels::{self, PlacedText};
use crate::diagram::motion::{self, Drawn};
use crate::diagram::stage::{Frame, Point};

type Shown = Vec<(Drawn, Option<PlacedText>)>;

fn shown(context: Context, is_spotlit: bool) -> Memo<Shown> {
    Memo::new(move |_| {
        context.scene.with(|scene| {
            context.layout.with(|layout| {
                let drawn = motion::messages(scene, layout);
                let verdict = super::verdict::frame(scene, layout);
                let taken: Vec<Frame> = verdict.into_iter().collect();
                let texts = labels::place(&drawn, layout, &taken);
                let all = drawn.into_iter().zip(texts);
                all.filter(|(one, _)| one.is_spotlit == is_spotlit).collect()
            })
        })
    })
}

/// Those that the spotlight is not on; they stand still behind the nodes.
#[component]
pub(super) fn PastMessages(context: Context) -> impl IntoView {
    let shown = shown(context, false);
    move || {
        let all = shown.get().into_iter();
        all.map(|(drawn, text)| {
            let t = drawn.to_t;
            let class = class(&drawn);
            view! {
                <g class=class>
                    <path class="way" d=drawn.curve.path_until(t) />
                    {end(&drawn, t, 1.0)}
                    {text.map(words)}
                </g>
            }
        })
        .collect::<Vec<_>>()
    }
}

/// The one that the spotlight is on, in front of everything and in motion.
#[component]
pub(super) fn LiveMessages(context: Context, progress: RwSignal<f64>) -> impl IntoView {
    let shown = shown(context, true);
    move || {
        let all = shown.get().into_iter();
        all.map(|(drawn, text)| {
            let class = class(&drawn);
            let moving = drawn.clone();
            view! {
                <g class=class>
                    {move || {
                        let progress = progress.get();
                        let t = moving.head(progress);
                        view! {
                            <path class="way" d=moving.curve.path_until(t) />
                            {end(&moving, t, progress)}
                        }
                    }}
                    {text.map(words)}
                </g>
            }
        })
        .collect::<Vec<_>>()
    }
}

fn class(drawn: &Drawn) -> &'static str {
    match (drawn.is_past, drawn.bounces || drawn.is_lost, drawn.is_reply) {
        (true, _, _) => "message past",
        (false, true, _) => "message bad",
        (false, false, true) => "message reply",
        (false, false, false) => "message",
    }
}

/// The end of the line: the message, or what is left once it has arrived.
fn end(drawn: &Drawn, t: f64, progress: f64) -> AnyView {
    let is_stopped = (drawn.bounces || drawn.is_lost) && (t - drawn.to_t).abs() < 0.004;
    match (has_body(drawn, progress), is_stopped) {
        (true, true) => view! { {head(drawn, t)} {body(drawn, t, progress)} }.into_any(),
        (true, false) => body(drawn, t, progress),
        (false, _) => head(drawn, t),
    }
}

/// The end of the line: an arrow head, or a cross where the message was stopped.
fn head(drawn: &Drawn, t: f64) -> AnyView {
    let Point { x, y } = drawn.curve.at(t);
    let is_there = (t - drawn.to_t).abs() < 0.004;
    if (drawn.bounces || drawn.is_lost) && is_there {
        return view! {
            <path class="cross" style=format!("transform:translate({x:.1}px,{y:.1}px)") d="M-7-7 7 7M7-7-7 7" />
        }
        .into_any();
    }
    let angle = drawn.curve.angle(t);
    view! {
        <path
            class="arrow"
            style=format!("transform:translate({x:.1}px,{y:.1}px) rotate({angle:.1}deg)")
            d="M1 0-9-4.5V4.5z"
        />
    }
    .into_any()
}

/// Whether the message itself is to be seen: while it moves, or where it waits.
fn has_body(drawn: &Drawn, progress: f64) -> bool {
    let is_moving = drawn.duration_ms() > 0.0 && progress < 1.0;
    let is_waiting = drawn.to_t < 0.9 && !drawn.is_lost && !drawn.is_past;
    is_moving || is_waiting
}

/// The message itself, while it moves or where it was thrown back to.
fn body(drawn: &Drawn, t: f64, progress: f64) -> AnyView {
    let Point { x, y } = drawn.curve.at(t - drawn.thrown_back(progress));
    view! { <circle class="body" cx=x cy=y r="6" /> }.into_any()
}

fn words(placed: PlacedText) -> AnyView {
    let Frame { middle, width, height } = placed.frame;
    view! {
        <g class="words" style=format!("transform:translate({:.1}px,{:.1}px)", middle.x, middle.y)>
            <rect x=-width / 2.0 y=-height / 2.0 width=width height=height rx="6" />
            <text class="mono" y="4" text-anchor="middle">{placed.text}</text>
        </g>
    }
    .into_any()
}
