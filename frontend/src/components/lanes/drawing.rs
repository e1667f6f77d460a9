//! The picture as SVG. Lines of one look are one path, so that there are few elements.

use std::collections::BTreeMap;

use leptos::prelude::*;

use crate::diagram::lanes::{BAR, Dot, Look, Picture, PlacedBar, PlacedDot, PlacedEdge, Tone};
use crate::diagram::tracks::Fate;

/// Everything in view.
pub(super) fn draw(picture: &Picture, left: f64, width: f64, cursor: usize) -> AnyView {
    let right = left + width;
    let lanes: String =
        picture.rows.iter().map(|y| format!("M{left:.1} {y:.1}H{right:.1}")).collect();
    let bottom = picture.height - 22.0;
    let cursor_x = picture.cursor_x;
    view! {
        <path class="lane" d=lanes />
        {chapters(picture, bottom)}
        {picture.bars.iter().map(|bar| draw_bar(bar, cursor)).collect::<Vec<_>>()}
        {edges(&picture.edges, cursor)}
        {picture.dots.iter().map(|dot| draw_dot(dot, cursor)).collect::<Vec<_>>()}
        {labels(picture)}
        {ticks(picture)}
        {(!picture.rows.is_empty()).then(|| now(cursor_x, bottom))}
    }
    .into_any()
}

/// The cursor: a line through all lanes.
fn now(x: f64, bottom: f64) -> AnyView {
    view! {
        <path class="now" d=format!("M{x:.1} 20V{bottom:.1}") />
        <path class="now-head" d=format!("M{:.1} 15h11l-5.5 7.5z", x - 5.5) />
    }
    .into_any()
}

fn chapters(picture: &Picture, bottom: f64) -> Vec<AnyView> {
    let all = picture.chapters.iter();
    all.map(|(x, text)| {
        view! {
            <path class="chapter" d=format!("M{x:.1} 4V{bottom:.1}") />
            <text class="chapter-name" x=x + 5.0 y="11">{text.clone()}</text>
        }
        .into_any()
    })
    .collect()
}

fn draw_bar(bar: &PlacedBar, cursor: usize) -> AnyView {
    let future = if bar.from_index >= cursor { " future" } else { "" };
    let (x, y, width) = (bar.x0, bar.y - BAR / 2.0, bar.x1 - bar.x0);
    match bar.look {
        Look::Paused => {
            let (top, bottom) = (bar.y - 13.0, bar.y + 13.0);
            let ends = format!(
                "M{:.1} {top:.1}V{bottom:.1}M{:.1} {top:.1}V{bottom:.1}", bar.x0, bar.x1
            );
            view! {
                <path class=format!("bar-paused{future}") d=ends />
                <path class=format!("bar-still{future}") d=format!("M{:.1} {:.1}H{:.1}", bar.x0, bar.y, bar.x1) />
            }
            .into_any()
        }
        Look::Down => view! {
            <path class=format!("bar-down{future}") d=format!("M{:.1} {:.1}H{:.1}", bar.x0, bar.y, bar.x1) />
        }
        .into_any(),
        Look::Held | Look::True | Look::False => {
            let class = match bar.look {
                Look::Held => "bar-held",
                Look::True => "bar-true",
                _ => "bar-false",
            };
            let fill = (bar.look == Look::False).then_some("url(#hatch-lanes)");
            view! {
                <rect class=format!("{class}{future}") x=x y=y width=width height=BAR rx="4" fill=fill />
            }
            .into_any()
        }
    }
}

fn edges(edges: &[PlacedEdge], cursor: usize) -> Vec<AnyView> {
    let mut paths: BTreeMap<&'static str, String> = BTreeMap::new();
    let mut add =
        |class: &'static str, text: String| paths.entry(class).or_default().push_str(&text);
    for edge in edges {
        let [(x0, y0), (x1, y1)] = edge.ends;
        let line = format!("M{x0:.1} {y0:.1}L{x1:.1} {y1:.1}");
        let is_bad = matches!(edge.fate, Fate::Lost | Fate::Failed)
            || (edge.fate == Fate::Refused && !edge.is_reply);
        let class = match (edge.from_index >= cursor, is_bad, edge.is_spotlit) {
            (true, true, _) => "edge bad future",
            (true, false, _) => "edge future",
            (false, true, true) => "edge bad spotlit",
            (false, true, false) => "edge bad",
            (false, false, true) => "edge spotlit",
            (false, false, false) if edge.is_reply => "edge reply",
            (false, false, false) => "edge",
        };
        add(class, line);
        if matches!(edge.fate, Fate::Lost | Fate::Failed) {
            let cross = format!("M{:.1} {:.1}l8 8m0-8l-8 8", x1 - 4.0, y1 - 4.0);
            add(
                if edge.from_index >= cursor { "edge-end bad future" } else { "edge-end bad" },
                cross,
            );
        } else if edge.is_spotlit && edge.from_index < cursor && edge.fate != Fate::Pending {
            let class = if is_bad { "arrow-head bad" } else { "arrow-head" };
            add(class, arrow((x0, y0), (x1, y1)));
        }
    }
    paths.into_iter().map(|(class, d)| view! { <path class=class d=d /> }.into_any()).collect()
}

fn arrow((x0, y0): (f64, f64), (x1, y1): (f64, f64)) -> String {
    let length = (x1 - x0).hypot(y1 - y0).max(0.1);
    let (ux, uy) = ((x1 - x0) / length, (y1 - y0) / length);
    let (bx, by) = (x1 - ux * 8.0, y1 - uy * 8.0);
    format!(
        "M{x1:.1} {y1:.1}L{:.1} {:.1}L{:.1} {:.1}z",
        bx - uy * 3.6,
        by + ux * 3.6,
        bx + uy * 3.6,
        by - ux * 3.6
    )
}

fn draw_dot(dot: &PlacedDot, cursor: usize) -> AnyView {
    let (x, y) = (dot.x, dot.y);
    let kind = match dot.dot {
        Dot::Plain => "dot",
        Dot::Minor => "dot minor",
        Dot::Granted => "dot granted",
        Dot::Applied => "dot applied",
        Dot::Refused => "dot refused",
        Dot::Crashed => "dot crashed",
        Dot::Fault => "dot fault",
    };
    let when = match (dot.index + 1).cmp(&cursor) {
        std::cmp::Ordering::Less => "",
        std::cmp::Ordering::Equal => " here",
        std::cmp::Ordering::Greater => " future",
    };
    let class = format!("{kind}{when}");
    let ring = dot.violates.then(|| view! { <circle class="violation" cx=x cy=y r="10.5" /> });
    let mark = match dot.dot {
        Dot::Refused | Dot::Crashed => view! {
            <circle class="dot-ground" cx=x cy=y r="8.5" />
            <path d=format!("M{:.1} {:.1}l8 8m0-8l-8 8", x - 4.0, y - 4.0) />
        }
        .into_any(),
        Dot::Fault => {
            view! { <path d=format!("M{x:.1} {:.1}l5 5-5 5-5-5z", y - 5.0) /> }.into_any()
        }
        Dot::Minor => view! { <circle cx=x cy=y r="2.4" /> }.into_any(),
        _ => view! { <circle cx=x cy=y r="4.2" /> }.into_any(),
    };
    view! { <g class=class>{ring}{mark}</g> }.into_any()
}

fn labels(picture: &Picture) -> Vec<AnyView> {
    let all = picture.labels.iter();
    all.map(|label| {
        let class = match label.tone {
            Tone::Soft => "label",
            Tone::Strong => "label strong",
            Tone::Holds => "label holds",
            Tone::Good => "label good",
            Tone::Bad => "label bad",
            Tone::Fault => "label fault",
        };
        view! { <text class=class x=label.x y=label.y>{label.text.clone()}</text> }.into_any()
    })
    .collect()
}

fn ticks(picture: &Picture) -> Vec<AnyView> {
    let y = picture.height - 8.0;
    let all = picture.ticks.iter();
    all.map(|(x, text)| {
        view! {
            <path class="tick" d=format!("M{x:.1} {:.1}v4", y - 15.0) />
            <text class="mono tick-name" x=*x y=y text-anchor="middle">{text.clone()}</text>
        }
        .into_any()
    })
    .collect()
}
