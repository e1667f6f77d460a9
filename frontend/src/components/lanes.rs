//! The lanes: the whole log as a space-time diagram, with the cursor in it.
//!
//! The box scrolls like any other; the drawing inside it is only as wide as what can be
//! seen, so that ten thousand events cost no more than a hundred. A click or a drag goes
//! to that event, and so do the arrow keys while the diagram has the focus.

use leptos::ev;
use leptos::html::Div;
use leptos::prelude::*;

use super::stage::observe::watch_size;
use crate::diagram::lanes::{self as geometry, Axis, Picture, Scale, View};
use crate::narration;
use crate::playback::Playback;

mod drawing;

/// How far the diagram can be stretched.
const ZOOM_MIN: f64 = 1.0;
const ZOOM_MAX: f64 = 16.0;

/// The space-time diagram of the whole log.
#[component]
pub fn Lanes(
    /// The log.
    #[prop(into)]
    playback: Signal<Playback>,
    /// How many events have happened.
    #[prop(into)]
    cursor: Signal<usize>,
    /// The reader wants to go there.
    #[prop(into)]
    on_seek: Callback<usize>,
) -> impl IntoView {
    let scroller = NodeRef::<Div>::new();
    let size = RwSignal::new((900.0, 230.0));
    let from_x = RwSignal::new(0.0);
    let axis = RwSignal::new(Axis::Time);
    let zoom = RwSignal::new(1.0);
    Effect::new(move |_| {
        if let Some(scroller) = scroller.get() {
            watch_size(&scroller, move |width, height| {
                if width > 0.0 {
                    size.try_set((width, height));
                }
            });
        }
    });
    let scale = Memo::new(move |_| {
        let (width, _) = size.get();
        playback.with(|log| Scale::new(&log.tracks().times_ms, axis.get(), width, zoom.get()))
    });
    let picture = Memo::new(move |_| {
        let (width, height) = size.get();
        let view = View { from_x: from_x.get(), width, height: height - 2.0 };
        let cursor = cursor.get();
        playback.with(|log| scale.with(|scale| geometry::picture(log, scale, view, cursor)))
    });
    follow_cursor(scroller, picture, size, from_x);
    let total_width = move || format!("width:{:.0}px", scale.with(|scale| scale.width));
    let height = move || picture.with(|picture| picture.height);
    let view_box = move || {
        let (width, _) = size.get();
        format!("{:.1} 0 {width:.1} {:.1}", from_x.get(), height())
    };
    let cursor_at = move |client_x: f64| {
        let scroller = scroller.get_untracked()?;
        let x = client_x - scroller.get_bounding_client_rect().left() + from_x.get_untracked();
        Some(scale.with_untracked(|scale| scale.cursor_at(x)))
    };
    let seek = move |event: &web_sys::PointerEvent| {
        if let Some(wanted) = cursor_at(f64::from(event.client_x()))
            && wanted != cursor.get_untracked()
        {
            on_seek.run(wanted);
        }
    };
    let on_key = move |event: ev::KeyboardEvent| {
        let (now, last) = (cursor.get_untracked(), playback.with_untracked(Playback::len));
        let wanted = match event.key().as_str() {
            "ArrowLeft" => now.saturating_sub(1),
            "ArrowRight" => (now + 1).min(last),
            "PageUp" => now.saturating_sub(10),
            "PageDown" => (now + 10).min(last),
            "Home" => 0,
            "End" => last,
            _ => return,
        };
        event.prevent_default();
        event.stop_propagation();
        on_seek.run(wanted);
    };
    let value_text = move || {
        let cursor = cursor.get();
        let event = playback.with(|log| log.shared_event(cursor.checked_sub(1)?));
        event.map_or("the beginning".to_owned(), |event| narration::sentence(&event))
    };
    view! {
        <section class="lanes" aria-label="Space-time diagram">
            <div class="lanes-body">
                <div class="lanes-names" style=move || format!("height:{:.0}px", height())>
                    <Controls axis zoom />
                    <Names playback picture />
                </div>
                <div
                    class="lanes-scroll"
                    node_ref=scroller
                    tabindex="0"
                    role="slider"
                    aria-label="Position in the log"
                    aria-valuemin="0"
                    aria-valuemax=move || playback.with(Playback::len)
                    aria-valuenow=move || cursor.get()
                    aria-valuetext=value_text
                    on:scroll=move |_| {
                        if let Some(scroller) = scroller.get_untracked() {
                            from_x.set(f64::from(scroller.scroll_left()));
                        }
                    }
                    on:keydown=on_key
                    on:pointerdown=move |event| if event.button() == 0 { seek(&event) }
                    on:pointermove=move |event| {
                        if event.buttons() == 1 && event.pointer_type() == "mouse" {
                            seek(&event);
                        }
                    }
                >
                    <div class="lanes-width" style=total_width>
                        <svg
                            class="lanes-drawing"
                            viewBox=view_box
                            width=move || size.get().0
                            height=height
                            aria-hidden="true"
                        >
                            <defs>
                                <pattern id="hatch-lanes" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
                                    <line class="hatch" x1="0" y1="0" x2="0" y2="6" />
                                </pattern>
                            </defs>
                            {move || {
                                let (width, _) = size.get_untracked();
                                let (left, cursor) = (from_x.get_untracked(), cursor.get_untracked());
                                picture.with(|picture| drawing::draw(picture, left, width, cursor))
                            }}
                        </svg>
                    </div>
                </div>
            </div>
            <Show when=move || playback.with(Playback::is_empty)>
                <p class="lanes-empty panel-empty">"Each client and object gets a lane here, and each message a line."</p>
            </Show>
        </section>
    }
}

/// Scrolls so that the cursor stays in view.
fn follow_cursor(
    scroller: NodeRef<Div>,
    picture: Memo<Picture>,
    size: RwSignal<(f64, f64)>,
    from_x: RwSignal<f64>,
) {
    let cursor_x = Memo::new(move |_| picture.with(|picture| picture.cursor_x));
    Effect::new(move |_| {
        let x = cursor_x.get();
        let (width, left) = (size.get_untracked().0, from_x.get_untracked());
        if (left + 40.0..left + width - 60.0).contains(&x) {
            return;
        }
        if let Some(scroller) = scroller.get_untracked() {
            let wanted = if x < left + 40.0 { x - width * 0.3 } else { x - width * 0.7 };
            scroller.set_scroll_left(wanted.max(0.0) as i32);
            from_x.set(f64::from(scroller.scroll_left()));
        }
    });
}

/// The names at the left, each at the height of its lane.
#[component]
fn Names(playback: Signal<Playback>, picture: Memo<Picture>) -> impl IntoView {
    let names = Memo::new(move |_| {
        let rows = picture.with(|picture| picture.rows.clone());
        playback.with(|log| {
            let titles = log.tracks().lanes.iter().map(|node| {
                let kind = node.object_kind();
                let kind = kind.filter(|kind| !narration::names_itself(*kind, node.name()));
                let kind = kind.map(|kind| kind.as_str());
                (kind, node.name().to_owned())
            });
            titles.zip(rows).collect::<Vec<_>>()
        })
    });
    move || {
        let all = names.get().into_iter();
        all.map(|((kind, name), y)| {
            let whole = name.clone();
            view! {
                <div class="lane-name" style=format!("top:{y:.1}px") title=whole>
                    {kind.map(|kind| view! { <span class="lane-kind">{kind}</span> })}
                    {name}
                </div>
            }
        })
        .collect::<Vec<_>>()
    }
}

/// What x means, and how far apart things stand.
#[component]
fn Controls(axis: RwSignal<Axis>, zoom: RwSignal<f64>) -> impl IntoView {
    let choice = move |value: Axis, label: &'static str| {
        view! {
            <button
                type="button"
                class="lanes-choice"
                aria-pressed=move || (axis.get() == value).to_string()
                on:click=move |_| axis.set(value)
            >
                {label}
            </button>
        }
    };
    let zoom_by = move |factor: f64| {
        zoom.update(|zoom| *zoom = (*zoom * factor).clamp(ZOOM_MIN, ZOOM_MAX));
    };
    let is_least = move || zoom.get() <= ZOOM_MIN;
    let is_most = move || zoom.get() >= ZOOM_MAX;
    view! {
        <div class="lanes-controls" role="group" aria-label="Axis">
            <span class="lanes-segments">
                {choice(Axis::Time, "time")}
                {choice(Axis::Order, "order")}
            </span>
            <button type="button" class="lanes-zoom" aria-label="Closer together" disabled=is_least on:click=move |_| zoom_by(1.0 / 1.6)>"−"</button>
            <button type="button" class="lanes-zoom" aria-label="Further apart" disabled=is_most on:click=move |_| zoom_by(1.6)>"+"</button>
        </div>
    }
}
