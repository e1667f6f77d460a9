//! A resource behind its fence: the post bears the comparison and the mark.

use leptos::prelude::*;
use protocol::ids::NodeId;

use super::Context;
use crate::diagram::measure;
use crate::diagram::stage::{FencePost, Frame, fence_post};
use crate::narration::title;
use crate::playback::{Object, Resource};

/// What the box shows.
#[derive(Clone, Debug, PartialEq)]
struct Shown {
    title: String,
    resource: Resource,
    is_new: bool,
    is_broken: bool,
    post: FencePost,
}

#[component]
pub(super) fn ResourceNode(
    node: NodeId,
    context: Context,
    #[prop(into)] frame: Signal<Option<Frame>>,
) -> impl IntoView {
    let Context { scene, layout, .. } = context;
    let shown = Memo::new(move |_| {
        let frame = frame.get()?;
        let is_across = layout.with(|layout| layout.is_narrow);
        scene.with(|scene| {
            let Some(Object::Resource(resource)) = scene.object(&node) else { return None };
            let own = Frame { middle: Default::default(), ..frame };
            let is_new = resource.last_write.as_ref().is_some_and(|(_, at)| at + 1 == scene.cursor);
            Some(Shown {
                title: title(&node),
                post: fence_post(resource, own, is_across),
                resource: resource.clone(),
                is_new,
                is_broken: is_new && !scene.broken.is_empty(),
            })
        })
    });
    move || Some(draw(shown.get()?))
}

fn draw(shown: Shown) -> impl IntoView {
    let Shown { title, resource, is_new, is_broken, post } = shown;
    let frame = post.frame;
    let (half_w, half_h) = (frame.width / 2.0, frame.height / 2.0);
    let is_down = resource.condition.is_down();
    let values = values(&resource, is_new, frame, post.is_across);
    let foot = foot(&resource);
    view! {
        <g class="resource" class:down=is_down class:broken=is_broken>
            <rect class="halo" x=-half_w - 4.0 y=-half_h - 4.0 width=frame.width + 8.0 height=frame.height + 8.0 rx="15" />
            <rect class="box" x=-half_w y=-half_h width=frame.width height=frame.height rx="12" />
            <text class="title" y=-half_h + 24.0 text-anchor="middle">{title}</text>
            {values}
            <text class="mono foot" y=half_h - 13.0 text-anchor="middle">{foot}</text>
            {fence(&post)}
        </g>
    }
}

/// The values, or what there is to say without any.
fn values(resource: &Resource, is_new: bool, frame: Frame, is_across: bool) -> AnyView {
    let (half_w, half_h) = (frame.width / 2.0, frame.height / 2.0);
    let middle = if is_across { 2.0 } else { 0.0 };
    let changed = resource.last_write.as_ref().filter(|_| is_new).map(|(key, _)| key.as_str());
    if resource.condition.is_down() {
        return view! { <text class="state bad" y=middle + 6.0 text-anchor="middle">"down · memory lost"</text> }.into_any();
    }
    match resource.values.as_slice() {
        [] => view! { <text class="state" y=middle + 6.0 text-anchor="middle">"nothing stored yet"</text> }.into_any(),
        [only] => {
            let text = only.value.to_string();
            let width = measure::mono(&text, 26.0) + 20.0;
            let is_changed = changed == Some(only.key.as_str());
            view! {
                <text class="small" y=middle - 14.0 text-anchor="middle">{only.key.clone()}</text>
                <g class:changed=is_changed>
                    <rect class="mark" x=-width / 2.0 y=middle - 8.0 width=width height="33" rx="7" />
                    <text class="mono value" y=middle + 18.0 text-anchor="middle">{text}</text>
                </g>
            }
            .into_any()
        }
        many => {
            let rows = many.iter().take(3).enumerate().map(|(nth, stored)| {
                let y = -half_h + 48.0 + 21.0 * nth as f64;
                let is_changed = changed == Some(stored.key.as_str());
                view! {
                    <g class:changed=is_changed>
                        <rect class="mark" x=-half_w + 12.0 y=y - 15.0 width=frame.width - 24.0 height="21" rx="5" />
                        <text class="state" x=-half_w + 20.0 y=y>{measure::fit(&format!("{} · token {}", stored.key, stored.token), 12.0, frame.width * 0.7)}</text>
                        <text class="mono row" x=half_w - 20.0 y=y text-anchor="end">{stored.value}</text>
                    </g>
                }
            });
            rows.collect::<Vec<_>>().into_any()
        }
    }
}

/// What is known of the last write: the mark itself is on the post.
fn foot(resource: &Resource) -> String {
    if let Some((_, what)) = resource.admitted.last() {
        return format!("admitted {what} …");
    }
    let newest = resource.values.iter().max_by_key(|stored| stored.token);
    match (resource.fences.first(), newest) {
        (Some(fence), _) if fence.claimed == fence.high_water_mark && fence.claimed > 0 => {
            format!("claimed by token {}", fence.claimed)
        }
        // With several values each row says it for itself.
        (_, Some(stored)) if resource.values.len() == 1 => {
            format!("written under token {}", stored.token)
        }
        _ => String::new(),
    }
}

fn fence(post: &FencePost) -> AnyView {
    let plates: Vec<_> = post
        .plates
        .iter()
        .map(|plate| {
            let (x, y) = (plate.middle.x, plate.middle.y);
            view! {
                <g class="plate" style=format!("transform:translate({x:.1}px,{y:.1}px)")>
                    <rect x=-plate.width / 2.0 y="-11" width=plate.width height="22" rx="5" />
                    <text class="mono" y="4.5" text-anchor="middle">{plate.text.clone()}</text>
                    {plate.scope.clone().map(|scope| view! {
                        <text class="scope" x=-plate.width / 2.0 - 5.0 y="4" text-anchor="end">{scope}</text>
                    })}
                </g>
            }
        })
        .collect();
    let line = post.line();
    let frame = post.frame;
    let wood = if post.is_across {
        let (left, right) = (frame.left() + 8.0, frame.right() - 8.0);
        let n = ((right - left) / 26.0).floor().max(2.0);
        let pickets = (0..=n as usize).map(|nth| {
            let x = left + (right - left) * nth as f64 / n;
            let (top, bottom) = (line - 17.0, frame.top() - 1.0);
            format!("M{:.1} {bottom:.1}V{:.1}l4 -5 4 5V{bottom:.1}", x - 4.0, top + 5.0)
        });
        let pickets: String = pickets.collect();
        let rails = format!(
            "M{:.1} {:.1}H{:.1}M{:.1} {:.1}H{:.1}",
            left - 8.0,
            line - 6.0,
            right + 8.0,
            left - 8.0,
            line + 12.0,
            right + 8.0
        );
        (rails, pickets)
    } else {
        let (top, bottom) = (post.tip(), frame.bottom() - 26.0);
        let rail = |y: f64| format!("M{:.1} {y:.1}H{:.1}", line - 16.0, frame.left());
        let post = format!("M{:.1} {bottom:.1}V{:.1}l8 -9 8 9V{bottom:.1}z", line - 8.0, top + 9.0);
        (format!("{}{}", rail(bottom - 50.0), rail(bottom - 16.0)), post)
    };
    view! {
        <g class="fence" class:open=post.is_open>
            <path class="rails" d=wood.0 />
            <path class="post" d=wood.1 />
            {plates}
            {post.is_open.then(|| {
                let (x, y, anchor) = if post.is_across {
                    (frame.right() - 8.0, line - 22.0, "end")
                } else {
                    (line, frame.bottom() + 13.0, "middle")
                };
                view! { <text class="note" x=x y=y text-anchor=anchor>"no guard"</text> }
            })}
        </g>
    }
    .into_any()
}
