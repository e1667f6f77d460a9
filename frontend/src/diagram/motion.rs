//! The way of a message over the stage, and where it is at a moment of its motion.
//!
//! A way is a cubic curve. Motion only shows causality: the half that the event in the
//! spotlight stands for is played once, 0 to 1; everything else stands still.

use protocol::ids::ObjectKind;

use super::stage::{Frame, Layout, Point, fence_post, ring_radius};
use crate::playback::{Message, Object, Phase, Scene};

/// How far along its way a request on its way is drawn.
pub const UNDER_WAY: f64 = 0.56;
/// How far a lost message gets.
pub const LOST_AT: f64 = 0.72;

/// A cubic curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Curve(pub [Point; 4]);

impl Curve {
    /// The point at this share of the way.
    pub fn at(&self, t: f64) -> Point {
        let [a, b, c, d] = self.0;
        let s = 1.0 - t;
        let mix = |a: f64, b: f64, c: f64, d: f64| {
            s * s * s * a + 3.0 * s * s * t * b + 3.0 * s * t * t * c + t * t * t * d
        };
        Point::new(mix(a.x, b.x, c.x, d.x), mix(a.y, b.y, c.y, d.y))
    }

    /// The part of the way up to this share, as an SVG path.
    pub fn path_until(&self, t: f64) -> String {
        let [a, b, c, d] = self.0;
        let mix = |p: Point, q: Point| Point::new(p.x + (q.x - p.x) * t, p.y + (q.y - p.y) * t);
        let (ab, bc, cd) = (mix(a, b), mix(b, c), mix(c, d));
        let (abc, bcd) = (mix(ab, bc), mix(bc, cd));
        let end = mix(abc, bcd);
        format!(
            "M{:.1} {:.1}C{:.1} {:.1} {:.1} {:.1} {:.1} {:.1}",
            a.x, a.y, ab.x, ab.y, abc.x, abc.y, end.x, end.y
        )
    }

    /// Direction at this share of the way, in degrees.
    pub fn angle(&self, t: f64) -> f64 {
        let (p, q) = (self.at((t - 0.02).max(0.0)), self.at((t + 0.02).min(1.0)));
        (q.y - p.y).atan2(q.x - p.x).to_degrees()
    }
}

/// One message as it is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    /// The way of the half that is shown.
    pub curve: Curve,
    /// A reply, not a request.
    pub is_reply: bool,
    /// From which share to which it moves; equal when it stands still.
    pub from_t: f64,
    /// See `from_t`.
    pub to_t: f64,
    /// It hits a fence, or a ring, and is thrown back.
    pub bounces: bool,
    /// It is lost where it ends.
    pub is_lost: bool,
    /// It is over, and shown faintly for memory.
    pub is_past: bool,
    /// The event in the spotlight is about it.
    pub is_spotlit: bool,
    /// What it says.
    pub text: String,
    /// A shorter way to say it.
    pub short: String,
}

impl Drawn {
    /// How long its motion takes, in ms.
    pub fn duration_ms(&self) -> f64 {
        let way = (self.to_t - self.from_t).abs();
        if way < 0.01 { 0.0 } else { 260.0 + 420.0 * way + if self.bounces { 260.0 } else { 0.0 } }
    }

    /// Where the head of the line is at this moment, 0 to 1.
    pub fn head(&self, progress: f64) -> f64 {
        let share = if self.bounces { (progress / 0.68).min(1.0) } else { progress };
        self.from_t + (self.to_t - self.from_t) * ease(share)
    }

    /// How far the message itself has been thrown back, as a share of its way.
    pub fn thrown_back(&self, progress: f64) -> f64 {
        if !self.bounces || progress < 0.68 {
            return 0.0;
        }
        let share = (progress - 0.68) / 0.32;
        0.13 * (1.0 - (1.0 - share) * (1.0 - share))
    }
}

fn ease(t: f64) -> f64 {
    let t = t.clamp(0.0, 1.0);
    if t < 0.5 { 2.0 * t * t } else { 1.0 - (2.0 - 2.0 * t) * (2.0 - 2.0 * t) / 2.0 }
}

/// Every message of the scene as it is drawn, the spotlit one last.
pub fn messages(scene: &Scene, layout: &Layout) -> Vec<Drawn> {
    let spotlit = scene.spotlight.as_ref().and_then(|event| event.request.as_ref());
    let mut drawn: Vec<Drawn> = Vec::new();
    let n_over = scene.messages.iter().filter(|message| message.phase.is_over()).count();
    let mut n_to_skip = n_over.saturating_sub(3);
    for message in &scene.messages {
        let is_spotlit = spotlit == Some(&message.id);
        if message.phase.is_over() && !is_spotlit && n_to_skip > 0 {
            n_to_skip -= 1;
            continue;
        }
        let Some(one) = draw(scene, layout, message, is_spotlit) else { continue };
        drawn.push(one);
    }
    drawn.sort_by_key(|one| (one.is_spotlit, !one.is_past));
    drawn
}

fn draw(scene: &Scene, layout: &Layout, message: &Message, is_spotlit: bool) -> Option<Drawn> {
    let is_now = is_spotlit && message.changed_at + 1 == scene.cursor;
    let is_first = message.sent_at + 1 == scene.cursor;
    let (is_reply, from_t, to_t, is_lost) = match &message.phase {
        Phase::Requesting | Phase::Delayed(_) => {
            (false, if is_first { 0.0 } else { UNDER_WAY }, UNDER_WAY, false)
        }
        Phase::Handled | Phase::Refused(_) => {
            let arrives = is_now && is_arrival(scene, message);
            (false, if arrives { UNDER_WAY } else { 1.0 }, 1.0, false)
        }
        Phase::RequestLost => (false, if is_now { UNDER_WAY } else { LOST_AT }, LOST_AT, true),
        Phase::ReplyLost => (true, if is_now { 0.0 } else { LOST_AT }, LOST_AT, true),
        Phase::Failed(_) => (false, if is_now { UNDER_WAY } else { 1.0 }, 1.0, true),
        Phase::Answered(_) => (true, if is_now { 0.0 } else { 1.0 }, 1.0, false),
    };
    let refused_here = matches!(message.phase, Phase::Refused(_));
    let is_past = message.phase.is_over() && !is_spotlit;
    let text = match (is_reply, &message.reply) {
        (true, Some(reply)) => reply.clone(),
        (true, None) => "reply".to_owned(),
        (false, _) => message.request.clone(),
    };
    let text = match &message.phase {
        Phase::Delayed(ms) => format!("{text} · held {}", crate::narration::span(*ms)),
        Phase::Requesting if message.n_duplicates > 0 => format!("{text} · twice"),
        Phase::Failed(reason) => format!("{text} · {reason}"),
        _ => text,
    };
    Some(Drawn {
        curve: way(scene, layout, message, is_reply)?,
        is_reply,
        from_t,
        to_t,
        bounces: refused_here,
        is_lost,
        is_past,
        is_spotlit,
        short: shorten(&text),
        text,
    })
}

/// Whether the event in the spotlight is the first of the handling.
fn is_arrival(scene: &Scene, message: &Message) -> bool {
    let event = scene.spotlight.as_ref();
    event.is_some_and(|event| event.node == message.to) && scene.is_arrival_of(message)
}

fn shorten(text: &str) -> String {
    let text = text.replace("token ", "");
    match text.split_once(" = ") {
        Some((before, after)) => {
            let verb = before.split(' ').next().unwrap_or(before);
            format!("{verb} {after}")
        }
        None => text.replace("acquire for ", "acquire "),
    }
}

/// The way between a client and an object; requests and replies keep to their own side.
fn way(scene: &Scene, layout: &Layout, message: &Message, is_reply: bool) -> Option<Curve> {
    let client = layout.frame(&message.from)?;
    let frame = layout.frame(&message.to)?;
    let object = scene.object(&message.to)?;
    let side = if is_reply { 9.0 } else { -9.0 };
    let refused = message.refused && !is_reply;
    let curve = match (message.to.object_kind()?, layout.is_narrow) {
        (ObjectKind::Lease, narrow) => to_ring(client, frame, ring_radius(layout), narrow, side),
        (_, true) => {
            let end = match object {
                Object::Resource(resource) if !is_reply => {
                    let post = fence_post(resource, frame, true);
                    post.gate(
                        Point::new(door(client), client.middle.y),
                        refused,
                        is_at_mark(message, resource),
                    )
                }
                _ => Point::new(
                    door(client).clamp(frame.left() + 24.0, frame.right() - 24.0) + side,
                    frame.top() - 3.0,
                ),
            };
            down(Point::new(door(client) + side, client.bottom() + 3.0), end)
        }
        (_, false) => {
            let end = match object {
                Object::Resource(resource) if !is_reply => {
                    let post = fence_post(resource, frame, false);
                    post.gate(client.middle, refused, is_at_mark(message, resource))
                }
                Object::Resource(_) => Point::new(frame.left() - 3.0, frame.bottom() - 12.0),
                _ => Point::new(frame.left() - 4.0, frame.middle.y + side),
            };
            across(Point::new(client.right() + 3.0, client.middle.y + side), end)
        }
    };
    let Curve([a, b, c, d]) = curve;
    Some(if is_reply { Curve([d, c, b, a]) } else { curve })
}

/// Where messages leave and enter a card when things stand one below the other: left of
/// its note.
fn door(client: Frame) -> f64 {
    client.middle.x - client.width * 0.24
}

fn is_at_mark(message: &Message, resource: &crate::playback::Resource) -> bool {
    let mark = resource.fences.first().map_or(0, |fence| fence.high_water_mark);
    message.token.is_some_and(|token| token.get() == mark)
}

fn across(start: Point, end: Point) -> Curve {
    let dx = end.x - start.x;
    Curve([
        start,
        Point::new(start.x + dx * 0.45, start.y),
        Point::new(end.x - dx * 0.38, end.y),
        end,
    ])
}

fn down(start: Point, end: Point) -> Curve {
    let dy = end.y - start.y;
    Curve([
        start,
        Point::new(start.x, start.y + dy * 0.45),
        Point::new(end.x, end.y - dy * 0.4),
        end,
    ])
}

fn to_ring(client: Frame, ring: Frame, radius: f64, is_narrow: bool, side: f64) -> Curve {
    let start = if is_narrow {
        Point::new(door(client) + side, client.top() - 3.0)
    } else {
        let is_above = client.middle.y - ring.middle.y > 120.0;
        let dy = if is_above { -client.height / 4.0 } else { 0.0 };
        Point::new(client.right() + 3.0, client.middle.y + dy + side * 0.6)
    };
    let (dx, dy) = (start.x - ring.middle.x, start.y - ring.middle.y);
    let angle = if is_narrow {
        // Into the lower half, beside the title under the ring.
        let lean = if dx.abs() < 8.0 { -1.0 } else { dx.signum() };
        (std::f64::consts::FRAC_PI_2 - lean * 0.9) + side * 0.02
    } else {
        (dy * 0.6).atan2(dx) - side * 0.016
    };
    let out = |distance: f64| {
        Point::new(ring.middle.x + angle.cos() * distance, ring.middle.y + angle.sin() * distance)
    };
    let reach = (dx.hypot(dy) * 0.4).min(110.0);
    let start_pull = if is_narrow {
        Point::new(start.x, start.y - reach * 0.6)
    } else {
        Point::new(start.x + reach, start.y)
    };
    Curve([start, start_pull, out(radius + 8.0 + reach), out(radius + 9.0)])
}
