//! Where the words of a message go: beside its way, and on nothing else.

use protocol::ids::ObjectKind;

use super::measure;
use super::motion::Drawn;
use super::stage::{Frame, Layout, Point};

/// Size of the words.
pub const SIZE: f64 = 11.5;
const HEIGHT: f64 = 21.0;

/// A label with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacedText {
    /// Its box.
    pub frame: Frame,
    /// What it says.
    pub text: String,
}

/// A place for the words of each message; `None` for one that finds no room.
pub fn place(drawn: &[Drawn], layout: &Layout, taken: &[Frame]) -> Vec<Option<PlacedText>> {
    let mut taken: Vec<Frame> = layout.nodes.iter().map(around).chain(taken.to_vec()).collect();
    let mut placed = vec![None; drawn.len()];
    // The spotlit message is the last one and chooses first.
    for index in (0..drawn.len()).rev() {
        let found = find(&drawn[index], layout, &taken);
        if let Some(found) = &found {
            taken.push(found.frame);
        }
        placed[index] = found;
    }
    placed
}

/// A node with its title and notes.
fn around(node: &super::stage::Placed) -> Frame {
    let frame = node.frame;
    let (above, below, left) = match node.node.object_kind() {
        Some(ObjectKind::Lease) => (24.0, 26.0, 0.0),
        Some(ObjectKind::Resource) if frame.height < 118.0 => (44.0, 4.0, 0.0),
        Some(ObjectKind::Resource) => (4.0, 24.0, 60.0),
        Some(ObjectKind::Shard | ObjectKind::Account | ObjectKind::Transaction) => (4.0, 24.0, 0.0),
        None => (4.0, 20.0, 0.0),
    };
    let middle = Point::new(frame.middle.x - left / 2.0, frame.middle.y + (below - above) / 2.0);
    Frame { middle, width: frame.width + left + 8.0, height: frame.height + above + below }
}

fn find(drawn: &Drawn, layout: &Layout, taken: &[Frame]) -> Option<PlacedText> {
    const SHARES: [f64; 7] = [0.5, 0.42, 0.58, 0.34, 0.66, 0.28, 0.74];
    let texts = if layout.is_narrow { vec![&drawn.short] } else { vec![&drawn.text, &drawn.short] };
    for text in texts {
        let width = measure::mono(text, SIZE) + 16.0;
        // A message under way has its words behind its head.
        let reach = if drawn.to_t < 0.9 { drawn.to_t * 0.86 } else { 1.0 };
        for share in SHARES.map(|share| share * reach) {
            for (dx, dy) in offsets(layout.is_narrow, width) {
                let on = drawn.curve.at(share);
                let half = width / 2.0 + 4.0;
                let x = (on.x + dx).clamp(half, (layout.width - half).max(half));
                let frame = Frame { middle: Point::new(x, on.y + dy), width, height: HEIGHT };
                let is_inside = frame.top() > 2.0 && frame.bottom() < layout.height - 2.0;
                if is_inside && !taken.iter().any(|other| other.overlaps(&frame)) {
                    return Some(PlacedText { frame, text: text.clone() });
                }
            }
        }
    }
    None
}

fn offsets(is_narrow: bool, width: f64) -> Vec<(f64, f64)> {
    if is_narrow {
        let aside = width / 2.0 + 6.0;
        return vec![(0.0, 0.0), (aside, 0.0), (-aside, 0.0)];
    }
    vec![(0.0, 0.0), (0.0, -16.0), (0.0, 16.0), (0.0, -30.0), (0.0, 30.0)]
}
