//! Where everything on the stage stands, for the objects present and the room there is.
//!
//! Wide: clients left, leases above, stores and shards right behind their fences. Narrow:
//! leases, clients and stores one below the other. Units are pixels of the drawing; the
//! component scales the drawing up on large screens and down on low ones ([`Layout::zoom`]).

use protocol::ids::{NodeId, ObjectKind};

use super::measure;
use crate::playback::{Object, Resource, Scene};

/// Below this width the parts stand one below the other.
const NARROW_BELOW: f64 = 560.0;
/// The drawing is never smaller than this share: before it has been measured it has no size.
const ZOOM_MIN: f64 = 0.4;
/// Size of the smallest text.
pub const TEXT_MIN: f64 = 11.0;

/// A point.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Point {
    /// To the right.
    pub x: f64,
    /// Down.
    pub y: f64,
}

impl Point {
    /// A point.
    pub const fn new(x: f64, y: f64) -> Self {
        Self { x, y }
    }
}

/// A rectangle by its middle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame {
    /// The middle.
    pub middle: Point,
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
}

impl Frame {
    /// Left edge.
    pub fn left(&self) -> f64 {
        self.middle.x - self.width / 2.0
    }
    /// Right edge.
    pub fn right(&self) -> f64 {
        self.middle.x + self.width / 2.0
    }
    /// Upper edge.
    pub fn top(&self) -> f64 {
        self.middle.y - self.height / 2.0
    }
    /// Lower edge.
    pub fn bottom(&self) -> f64 {
        self.middle.y + self.height / 2.0
    }
    /// Whether two rectangles share an area.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.left() < other.right()
            && other.left() < self.right()
            && self.top() < other.bottom()
            && other.top() < self.bottom()
    }
}

/// One node on the stage.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// Which.
    pub node: NodeId,
    /// Its box, or the square around its ring.
    pub frame: Frame,
}

/// Everything's place.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// Parts stand one below the other.
    pub is_narrow: bool,
    /// Width of the drawing.
    pub width: f64,
    /// Height of the drawing.
    pub height: f64,
    /// Pixels of the screen for one of the drawing.
    pub zoom: f64,
    /// The nodes.
    pub nodes: Vec<Placed>,
}

impl Layout {
    /// Where this node stands.
    pub fn frame(&self, node: &NodeId) -> Option<Frame> {
        self.nodes.iter().find(|placed| placed.node == *node).map(|placed| placed.frame)
    }
}

/// The least width and height of the drawing with its parts side by side: each further
/// lease needs its own room.
fn wide_min(scene: &Scene) -> (f64, f64) {
    let n_leases = scene.leases().count();
    let n_stores = scene.objects.len() - n_leases;
    let clients = scene.clients.len() as f64 * 112.0 + 24.0;
    let store_room = if n_stores > 2 { 158.0 } else { 190.0 };
    let stores = n_stores as f64 * store_room + if n_leases > 0 { 96.0 } else { 24.0 };
    let width = NARROW_BELOW + n_leases.saturating_sub(1) as f64 * 170.0;
    (width, clients.max(stores).max(360.0))
}

/// The least height of the drawing with its parts one below the other.
fn narrow_min(scene: &Scene) -> f64 {
    let n_leases = scene.leases().count();
    let n_stores = scene.objects.len() - n_leases;
    let leases = if n_leases > 0 { 168.0 } else { 16.0 };
    let clients = if scene.clients.is_empty() { 0.0 } else { 160.0 };
    leases + clients + n_stores as f64 * 168.0 + 20.0
}

/// Places everything into so many pixels of the screen; nothing is ever cut off.
pub fn layout(scene: &Scene, screen_width: f64, screen_height: f64) -> Layout {
    let (wide_w, wide_h) = wide_min(scene);
    let as_wide = (screen_width / wide_w).min(screen_height / wide_h);
    let as_narrow = (screen_height / narrow_min(scene)).min(1.0);
    if screen_width < wide_w && as_narrow >= as_wide.min(1.0) {
        let zoom = as_narrow.max(ZOOM_MIN);
        return narrow(scene, screen_width / zoom, screen_height / zoom, zoom);
    }
    let roomy = (screen_width / 760.0).min(screen_height / wide_h.max(430.0)).clamp(1.0, 1.6);
    let zoom = roomy.min(as_wide).max(ZOOM_MIN);
    wide(scene, screen_width / zoom, screen_height / zoom, zoom)
}

/// Radius of a lease's ring.
pub fn ring_radius(layout: &Layout) -> f64 {
    if layout.is_narrow { 44.0 } else { 54.0 }
}

fn client_nodes(scene: &Scene) -> Vec<NodeId> {
    scene.clients.iter().map(|client| client.node.clone()).collect()
}

fn nodes_of(scene: &Scene, wanted: impl Fn(ObjectKind) -> bool) -> Vec<NodeId> {
    let nodes = scene.objects.iter().map(Object::node);
    nodes.filter(|node| node.object_kind().is_some_and(&wanted)).cloned().collect()
}

/// A card has a third line once somebody has read something.
fn client_height(scene: &Scene) -> f64 {
    let has_memory = scene.clients.iter().any(|client| !client.reads.is_empty());
    if has_memory { 82.0 } else { 66.0 }
}

fn wide(scene: &Scene, width: f64, height: f64, zoom: f64) -> Layout {
    let mut nodes = Vec::new();
    let margin = if width > 900.0 { (width - 860.0) / 2.0 } else { 26.0 };
    let clients = client_nodes(scene);
    let leases = nodes_of(scene, |kind| kind == ObjectKind::Lease);
    let stores = nodes_of(scene, |kind| kind != ObjectKind::Lease);
    let (client_w, client_h) = (136.0, client_height(scene));
    let top = 30.0;
    let pitch = ((height - top - 30.0) / clients.len().max(1) as f64).clamp(100.0, 184.0);
    let first = height / 2.0 - pitch * (clients.len() as f64 - 1.0) / 2.0 - 2.0;
    for (nth, node) in clients.into_iter().enumerate() {
        let middle = Point::new(margin + client_w / 2.0, first + pitch * nth as f64);
        nodes.push(Placed { node, frame: Frame { middle, width: client_w, height: client_h } });
    }
    let store_w = 204.0;
    let has_leases = !leases.is_empty();
    let from = if has_leases { (height * 0.36).clamp(118.0, 190.0) } else { 20.0 };
    let room = height - from - 26.0;
    let pitch = (room / stores.len().max(1) as f64).min(214.0);
    let first = from + room / 2.0 - pitch * (stores.len() as f64 - 1.0) / 2.0;
    let has_stores = !stores.is_empty();
    for (nth, node) in stores.into_iter().enumerate() {
        let middle = Point::new(width - margin - store_w / 2.0, first + pitch * nth as f64);
        let frame = Frame { middle, width: store_w, height: (pitch - 34.0).clamp(120.0, 152.0) };
        nodes.push(Placed { node, frame });
    }
    let (left, right) =
        (margin + client_w, width - margin - if has_stores { store_w + FENCE_GAP } else { 0.0 });
    let n = leases.len() as f64;
    for (nth, node) in leases.into_iter().enumerate() {
        let aside = nth as f64 - (n - 1.0) / 2.0;
        let middle = if has_stores {
            let lower = if height > 470.0 { (height - 470.0) * 0.14 } else { 0.0 };
            Point::new((left + right) / 2.0 + aside * 142.0, 92.0 + lower)
        } else {
            Point::new(right - 90.0, height / 2.0 - 8.0 + aside * 190.0)
        };
        nodes.push(Placed { node, frame: Frame { middle, width: 108.0, height: 108.0 } });
    }
    Layout { is_narrow: false, width, height, zoom, nodes }
}

fn narrow(scene: &Scene, width: f64, height: f64, zoom: f64) -> Layout {
    let mut nodes = Vec::new();
    let leases = nodes_of(scene, |kind| kind == ObjectKind::Lease);
    let stores = nodes_of(scene, |kind| kind != ObjectKind::Lease);
    let clients = client_nodes(scene);
    let spare = (height - narrow_min(scene)).clamp(0.0, 120.0) / 3.0;
    let mut y = 0.0;
    if !leases.is_empty() {
        let n = leases.len() as f64;
        for (nth, node) in leases.into_iter().enumerate() {
            let middle = Point::new(width * (nth as f64 + 0.5) / n, 80.0);
            nodes.push(Placed { node, frame: Frame { middle, width: 88.0, height: 88.0 } });
        }
        y = 168.0 + spare;
    }
    if !clients.is_empty() {
        let n = clients.len() as f64;
        let client_w = ((width - 20.0 - (n - 1.0) * 8.0) / n).min(136.0);
        let pitch = if n > 1.0 { (width - 20.0 - client_w) / (n - 1.0) } else { 0.0 };
        let pitch = pitch.min(client_w + 40.0);
        let first = width / 2.0 - pitch * (n - 1.0) / 2.0;
        for (nth, node) in clients.into_iter().enumerate() {
            let middle = Point::new(first + pitch * nth as f64, y + 50.0);
            let frame = Frame { middle, width: client_w, height: client_height(scene) };
            nodes.push(Placed { node, frame });
        }
        y += 160.0 + spare;
    }
    for node in stores {
        let middle = Point::new(width / 2.0, y + 84.0);
        let frame = Frame { middle, width: (width - 40.0).min(320.0), height: 112.0 };
        nodes.push(Placed { node, frame });
        y += 168.0;
    }
    Layout { is_narrow: true, width, height, zoom, nodes }
}

/// One fence as it stands before a store.
#[derive(Clone, Debug, PartialEq)]
pub struct Plate {
    /// `> 34`, `≥ 34`, `= 34`, or `34` without a guard.
    pub text: String,
    /// Whose fence, when there are several.
    pub scope: Option<String>,
    /// The middle of the plate.
    pub middle: Point,
    /// Its width.
    pub width: f64,
}

/// The fence before a store.
#[derive(Clone, Debug, PartialEq)]
pub struct FencePost {
    /// The store's box.
    pub frame: Frame,
    /// The post's plates, at least one.
    pub plates: Vec<Plate>,
    /// Whether it keeps anything out.
    pub is_open: bool,
    /// It lies across the top instead of standing at the left.
    pub is_across: bool,
}

/// How far the fence stands before the box.
const FENCE_GAP: f64 = 36.0;

impl FencePost {
    /// The line of the fence: x when it stands, y when it lies across.
    pub fn line(&self) -> f64 {
        if self.is_across { self.frame.top() - 26.0 } else { self.frame.left() - FENCE_GAP }
    }

    /// Where a message is stopped, or goes over, coming from this client's middle.
    pub fn gate(&self, from: Point, is_refused: bool, is_at_mark: bool) -> Point {
        if self.is_across {
            let x = from.x.clamp(self.frame.left() + 24.0, self.frame.right() - 24.0);
            let near = self.plates.first().map_or(0.0, |plate| plate.middle.x);
            // Beside the plate, so that it stays legible.
            let x = if (x - near).abs() < 40.0 && !is_at_mark { near - 48.0 } else { x };
            let y = if is_refused { self.line() - 8.0 } else { self.frame.top() - 2.0 };
            return Point::new(x, y);
        }
        let plate = self.plates.first().map_or(self.frame.middle, |plate| plate.middle);
        match (is_refused, is_at_mark) {
            (false, _) => Point::new(self.frame.left() - 3.0, self.tip() - 12.0),
            (true, true) => Point::new(self.line() - 30.0, plate.y),
            (true, false) => Point::new(self.line() - 14.0, plate.y + 27.0),
        }
    }

    /// The upper end of the standing post.
    pub fn tip(&self) -> f64 {
        self.frame.top() + 26.0
    }
}

/// The fence of a resource.
pub fn fence_post(resource: &Resource, frame: Frame, is_across: bool) -> FencePost {
    use protocol::fence::Guard;
    let guard = resource.guard();
    let sign = match guard {
        Guard::None => "",
        Guard::AtLeast => "≥ ",
        Guard::Strict => "> ",
        Guard::Claimed => "= ",
    };
    let mut post =
        FencePost { frame, plates: Vec::new(), is_open: guard == Guard::None, is_across };
    let n = resource.fences.len().clamp(1, 3);
    for nth in 0..n {
        let fence = resource.fences.get(nth);
        let mark = fence.map_or(0, |fence| fence.high_water_mark);
        let mark = match (guard, fence) {
            (Guard::Claimed, Some(fence)) if fence.claimed == mark => mark,
            _ => mark,
        };
        let text = format!("{sign}{mark}");
        let scope = fence.filter(|_| n > 1).map(|fence| {
            fence.scope.split_once('/').map_or(fence.scope.clone(), |(_, name)| name.to_owned())
        });
        let width = measure::mono(&text, 12.5) + 16.0;
        let middle = if is_across {
            let share = (nth as f64 + 1.0) / (n as f64 + 1.0);
            Point::new(frame.left() + frame.width * share, post.line())
        } else {
            Point::new(post.line(), post.tip() + 26.0 + 30.0 * nth as f64)
        };
        post.plates.push(Plate { text, scope, middle, width });
    }
    post
}

#[cfg(test)]
mod tests;
