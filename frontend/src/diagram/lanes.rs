//! The space-time diagram in pixels: which marks are in view, and where.
//!
//! x is the log, by order or by time. By time, events that stand closer than
//! [`GAP_MIN`] are drawn apart, and the ticks move with them, so that nothing overlaps
//! and no tick lies. Only what is in view is laid out.

use protocol::trace::{TraceEvent, TraceKind};

use super::measure;
use super::tracks::{At, BarKind, Fate, Tracks};
use crate::narration;
use crate::playback::Playback;
use crate::playback::fold::refusal;

/// The least distance between two events.
pub const GAP_MIN: f64 = 9.0;
/// Space before the first event and after the last.
const MARGIN_LEFT: f64 = 18.0;
const MARGIN_RIGHT: f64 = 64.0;
/// Space above the first lane and below the last.
const HEAD: f64 = 27.0;
const FOOT: f64 = 22.0;
/// How far a message that is still under way is drawn.
const UNDER_WAY_MAX: f64 = 90.0;
/// Thickness of a bar.
pub const BAR: f64 = 16.0;
/// Size of the labels.
pub const LABEL: f64 = 11.0;

/// What x means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Axis {
    /// One step for each event.
    Order,
    /// The time.
    #[default]
    Time,
}

/// Where each event is on the axis.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Scale {
    /// For each event its x.
    pub xs: Vec<f64>,
    times_ms: Vec<u64>,
    /// Pixels for one ms; only by time.
    slope: f64,
    /// How wide the whole diagram is.
    pub width: f64,
}

impl Scale {
    /// Places events so that all of them fit into `width`, or as many as there is room
    /// for. `zoom` stretches that.
    pub fn new(times_ms: &[u64], axis: Axis, width: f64, zoom: f64) -> Self {
        let n_gaps = times_ms.len().saturating_sub(1) as f64;
        let room = (width * zoom - MARGIN_LEFT - MARGIN_RIGHT).max(80.0);
        let (Some(first), Some(last)) = (times_ms.first(), times_ms.last()) else {
            return Self { width, ..Self::default() };
        };
        let (step, slope) = match axis {
            Axis::Order => {
                let step = (room / n_gaps.max(1.0)).clamp(14.0 * zoom.max(1.0), 84.0 * zoom);
                (step, 0.0)
            }
            Axis::Time => (GAP_MIN, time_slope(times_ms, room, (last - first) as f64)),
        };
        let mut xs = Vec::with_capacity(times_ms.len());
        let mut x = MARGIN_LEFT;
        for (index, time_ms) in times_ms.iter().enumerate() {
            if index > 0 {
                let passed_ms = (time_ms - times_ms[index - 1]) as f64;
                x += step.max(passed_ms * slope);
            }
            xs.push(x);
        }
        let width = (x + MARGIN_RIGHT).max(width);
        Self { xs, times_ms: times_ms.to_vec(), slope, width }
    }

    /// Where this point is. A time beyond the log is as far as the picture goes.
    pub fn x(&self, at: At) -> f64 {
        match at {
            At::Event(index) => self.xs.get(index).copied().unwrap_or(MARGIN_LEFT),
            At::Between(one, other) => (self.x(At::Event(one)) + self.x(At::Event(other))) / 2.0,
            At::Time(time_ms) => self.x_of_time(time_ms),
        }
    }

    fn x_of_time(&self, time_ms: u64) -> f64 {
        let after = self.times_ms.partition_point(|known| *known <= time_ms);
        if after == 0 {
            return MARGIN_LEFT;
        }
        let (x0, t0) = (self.xs[after - 1], self.times_ms[after - 1]);
        match self.xs.get(after) {
            Some(x1) => {
                let share = (time_ms - t0) as f64 / (self.times_ms[after] - t0).max(1) as f64;
                x0 + (x1 - x0) * share
            }
            None => (x0 + (time_ms - t0) as f64 * self.slope).min(self.width),
        }
    }

    /// The cursor that a click at this x stands for: the nearest event has happened.
    pub fn cursor_at(&self, x: f64) -> usize {
        let after = self.xs.partition_point(|known| *known <= x);
        if after == 0 {
            return usize::from(self.xs.first().is_some_and(|first| first - x < GAP_MIN));
        }
        let nearer_next = self.xs.get(after).is_some_and(|next| next - x < x - self.xs[after - 1]);
        after + usize::from(nearer_next)
    }

    /// Times worth a tick between two x, with their labels.
    pub fn ticks(&self, from_x: f64, to_x: f64) -> Vec<(f64, String)> {
        let Some(start_ms) = self.times_ms.first() else { return Vec::new() };
        if self.slope == 0.0 {
            return self.order_ticks(from_x, to_x);
        }
        let (low, high) = (self.time_at(from_x), self.time_at(to_x));
        let step_ms = nice_step(90.0 / self.slope);
        let first = low.saturating_sub(*start_ms).div_ceil(step_ms);
        let last = high.saturating_sub(*start_ms) / step_ms;
        let mut ticks: Vec<(f64, String)> = Vec::new();
        for n in first..=last.min(first + 200) {
            let x = self.x_of_time(start_ms + n * step_ms);
            if ticks.last().is_none_or(|(before, _)| x - before > 44.0) {
                ticks.push((x, seconds(n * step_ms)));
            }
        }
        ticks
    }

    fn order_ticks(&self, from_x: f64, to_x: f64) -> Vec<(f64, String)> {
        let (low, high) = self.in_view(from_x, to_x);
        let step = self.xs.get(1).map_or(60.0, |x| x - self.xs[0]);
        let every = [1_usize, 2, 5, 10, 20, 50, 100]
            .into_iter()
            .find(|every| *every as f64 * step > 44.0)
            .unwrap_or(200);
        let numbers = (low..high).filter(|index| (index + 1).is_multiple_of(every));
        numbers.map(|index| (self.xs[index], (index + 1).to_string())).collect()
    }

    fn time_at(&self, x: f64) -> u64 {
        let after = self.xs.partition_point(|known| *known <= x);
        if after == 0 {
            return self.times_ms[0];
        }
        let (x0, t0) = (self.xs[after - 1], self.times_ms[after - 1]);
        let beyond = ((x - x0) / self.slope.max(1e-9)) as u64;
        match (self.xs.get(after), self.times_ms.get(after)) {
            (Some(x1), Some(t1)) => t0 + ((t1 - t0) as f64 * (x - x0) / (x1 - x0).max(1.0)) as u64,
            _ => t0 + beyond,
        }
    }

    /// The events between two x: first, and one past the last.
    pub fn in_view(&self, from_x: f64, to_x: f64) -> (usize, usize) {
        let low = self.xs.partition_point(|x| *x < from_x);
        let high = self.xs.partition_point(|x| *x <= to_x);
        (low, high)
    }
}

/// Pixels for one ms, so that the gaps that are wider than the least fill the room.
fn time_slope(times_ms: &[u64], room: f64, span_ms: f64) -> f64 {
    let mut slope = room / span_ms.max(1.0);
    for _ in 0..6 {
        let (mut narrow, mut wide_ms) = (0.0, 0.0);
        for pair in times_ms.windows(2) {
            let passed_ms = (pair[1] - pair[0]) as f64;
            if passed_ms * slope < GAP_MIN { narrow += GAP_MIN } else { wide_ms += passed_ms }
        }
        if wide_ms == 0.0 {
            break;
        }
        slope = ((room - narrow) / wide_ms).max(0.004);
    }
    slope.clamp(0.004, 3.0)
}

fn nice_step(at_least_ms: f64) -> u64 {
    const STEPS_MS: [u64; 15] = [
        50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 60_000, 120_000, 300_000, 600_000,
        1_800_000, 3_600_000,
    ];
    STEPS_MS.into_iter().find(|step| *step as f64 >= at_least_ms).unwrap_or(7_200_000)
}

fn seconds(ms: u64) -> String {
    match ms {
        0 => "0 s".to_owned(),
        _ if ms.is_multiple_of(1000) => format!("{} s", ms / 1000),
        _ => format!("{} s", (ms as f64 / 1000.0)),
    }
}

/// What one event looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dot {
    /// Something was sent or heard.
    Plain,
    /// A belief, an alarm: worth a tick.
    Minor,
    /// A grant.
    Granted,
    /// An effect.
    Applied,
    /// A refusal.
    Refused,
    /// A crash.
    Crashed,
    /// A person interfered, or the network did.
    Fault,
}

/// A dot in view.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacedDot {
    /// Which event.
    pub index: usize,
    /// Where.
    pub x: f64,
    /// Where.
    pub y: f64,
    /// What it looks like.
    pub dot: Dot,
    /// An invariant broke here.
    pub violates: bool,
}

/// A line in view.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacedEdge {
    /// From, to.
    pub ends: [(f64, f64); 2],
    /// What became of it.
    pub fate: Fate,
    /// A reply.
    pub is_reply: bool,
    /// It belongs to the spotlighted event.
    pub is_spotlit: bool,
    /// Where it was known last, for dimming what is yet to come.
    pub from_index: usize,
}

/// What a placed bar looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// A lease is held.
    Held,
    /// A belief that is true.
    True,
    /// A belief that is false.
    False,
    /// A pause.
    Paused,
    /// Down.
    Down,
}

/// A bar in view.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacedBar {
    /// Left edge.
    pub x0: f64,
    /// Right edge.
    pub x1: f64,
    /// Middle.
    pub y: f64,
    /// What it looks like.
    pub look: Look,
    /// Position of the event with which it begins.
    pub from_index: usize,
}

/// The color of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Grey.
    Soft,
    /// Ink, bold: the spotlighted event.
    Strong,
    /// Blue.
    Holds,
    /// Green.
    Good,
    /// Red.
    Bad,
    /// Plum.
    Fault,
}

/// A text in view.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacedLabel {
    /// Left edge.
    pub x: f64,
    /// Baseline.
    pub y: f64,
    /// What it says.
    pub text: String,
    /// Its color.
    pub tone: Tone,
}

/// Everything in view.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Picture {
    /// y of each lane.
    pub rows: Vec<f64>,
    /// Height of the whole.
    pub height: f64,
    /// Bars, to be drawn first.
    pub bars: Vec<PlacedBar>,
    /// Lines.
    pub edges: Vec<PlacedEdge>,
    /// Dots.
    pub dots: Vec<PlacedDot>,
    /// Texts.
    pub labels: Vec<PlacedLabel>,
    /// Ticks of the axis.
    pub ticks: Vec<(f64, String)>,
    /// Steps: x and text.
    pub chapters: Vec<(f64, String)>,
    /// Where the cursor is.
    pub cursor_x: f64,
}

/// The part that is looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct View {
    /// Left edge, in the diagram's own pixels.
    pub from_x: f64,
    /// How wide.
    pub width: f64,
    /// How high; lanes get closer, but not too close.
    pub height: f64,
}

/// y of each lane, and the height of the whole. `order` is the lanes from top to bottom.
pub fn rows(order: &[usize], height: f64) -> (Vec<f64>, f64) {
    let n = order.len().max(1) as f64;
    let step = ((height - HEAD - FOOT) / n).clamp(29.0, 54.0);
    let mut ys = vec![0.0; order.len()];
    for (place, lane) in order.iter().enumerate() {
        ys[*lane] = HEAD + step * (place as f64 + 0.5);
    }
    (ys, HEAD + step * n + FOOT)
}

/// Lays out what is in view.
pub fn picture(log: &Playback, scale: &Scale, view: View, cursor: usize) -> Picture {
    let tracks = log.tracks();
    let (rows, height) = rows(&tracks.order(), view.height);
    let (from_x, to_x) = (view.from_x - 40.0, view.from_x + view.width + 40.0);
    let (low, high) = scale.in_view(from_x, to_x);
    let mut picture = Picture { height, ..Picture::default() };
    let mut labels = Labels::default();
    picture.cursor_x = match cursor {
        0 => MARGIN_LEFT - 9.0,
        _ => scale.x(At::Event(cursor - 1)),
    };
    place_edges(&mut picture, tracks, scale, &rows, (from_x, to_x), log, cursor);
    place_dots(&mut picture, log, scale, &rows, (low, high));
    let dots = picture.dots.clone();
    labels.dots = dots.iter().map(|dot| (dot.x, dot.y)).collect();
    let ranked = ranked_captions(log, &dots, cursor);
    for (dot, text, tone, _) in ranked.iter().filter(|(_, _, _, rank)| *rank == 0) {
        // Clear of the cursor's line.
        labels.beside(dot.x, dot.y, text, *tone, view, 9.0);
    }
    place_bars(&mut picture, &mut labels, tracks, scale, &rows, view);
    for (dot, text, tone, _) in ranked.iter().filter(|(_, _, _, rank)| *rank > 0) {
        labels.beside(dot.x, dot.y, text, *tone, view, 3.0);
    }
    picture.labels = labels.placed;
    picture.ticks = scale.ticks(from_x.max(0.0), to_x);
    picture.chapters = chapters(tracks, scale, from_x, to_x);
    picture.rows = rows;
    picture
}

fn chapters(tracks: &Tracks, scale: &Scale, from_x: f64, to_x: f64) -> Vec<(f64, String)> {
    let placed = tracks
        .chapters
        .iter()
        .map(|chapter| (scale.x(At::Event(chapter.index)), chapter.text.clone()));
    let mut kept: Vec<(f64, String)> = Vec::new();
    for (x, text) in placed.filter(|(x, _)| (from_x - 200.0..to_x).contains(x)) {
        let before = kept.last().map_or(f64::MIN, |(x, text)| x + measure::sans(text, 10.5) + 14.0);
        let text = if x < before { String::new() } else { text };
        kept.push((x, text));
    }
    kept
}

fn place_edges(
    picture: &mut Picture,
    tracks: &Tracks,
    scale: &Scale,
    rows: &[f64],
    (from_x, to_x): (f64, f64),
    log: &Playback,
    cursor: usize,
) {
    let spotlit = cursor.checked_sub(1).and_then(|index| log.event(index)?.request.as_ref());
    let end = At::Event(tracks.times_ms.len().saturating_sub(1));
    for edge in &tracks.edges {
        // Not in the order of x: a reply is known only when it has arrived.
        let x0 = scale.x(edge.from.1);
        if x0 > to_x {
            continue;
        }
        let x1 = match edge.to.1 {
            Some(to) => scale.x(to),
            None => scale.x(end).min(x0 + UNDER_WAY_MAX),
        };
        let x1 = x1.max(x0 + 10.0);
        if x1 < from_x {
            continue;
        }
        let (y0, y1) = (rows[edge.from.0], rows[edge.to.0]);
        let pad = if y1 > y0 { 4.5 } else { -4.5 };
        let share = match edge.fate {
            Fate::Lost => 0.55,
            Fate::Pending => 0.5,
            _ => 1.0,
        };
        let end = (x0 + (x1 - x0) * share, y0 + (y1 - y0) * share);
        let from_index = match edge.from.1 {
            At::Event(index) | At::Between(index, _) => index,
            At::Time(_) => 0,
        };
        picture.edges.push(PlacedEdge {
            ends: [(x0, y0 + pad), (end.0, end.1 - if share < 1.0 { 0.0 } else { pad })],
            fate: edge.fate,
            is_reply: edge.is_reply,
            is_spotlit: spotlit == Some(&edge.request),
            from_index,
        });
    }
}

fn place_dots(
    picture: &mut Picture,
    log: &Playback,
    scale: &Scale,
    rows: &[f64],
    (low, high): (usize, usize),
) {
    let tracks = log.tracks();
    for index in low..high {
        let (Some(event), Some(Some(lane))) = (log.event(index), tracks.lane_of.get(index)) else {
            continue;
        };
        picture.dots.push(PlacedDot {
            index,
            x: scale.xs[index],
            y: rows[*lane],
            dot: dot(event),
            violates: log.is_broken_at(event.seq),
        });
    }
}

/// What an event looks like.
pub fn dot(event: &TraceEvent) -> Dot {
    if refusal(&event.kind).is_some() {
        return Dot::Refused;
    }
    match &event.kind {
        TraceKind::LeaseGranted { .. }
        | TraceKind::LeaseRenewed { .. }
        | TraceKind::Claimed { .. } => Dot::Granted,
        TraceKind::WriteApplied { .. } | TraceKind::OperationApplied { .. } => Dot::Applied,
        TraceKind::Crashed { .. } => Dot::Crashed,
        TraceKind::RequestDropped { .. }
        | TraceKind::RequestDelayed { .. }
        | TraceKind::RequestDuplicated { .. }
        | TraceKind::ReplyDropped { .. }
        | TraceKind::ReplyFailed { .. }
        | TraceKind::RulesChanged { .. }
        | TraceKind::ClockSet { .. }
        | TraceKind::FaultsSet { .. }
        | TraceKind::AlarmSuppressed
        | TraceKind::AlarmResumed
        | TraceKind::ClientPaused => Dot::Fault,
        TraceKind::BeliefGained { .. }
        | TraceKind::BeliefLost { .. }
        | TraceKind::AlarmFired { .. } => Dot::Minor,
        _ => Dot::Plain,
    }
}

type Ranked<'a> = (&'a PlacedDot, String, Tone, u8);

/// Captions of the dots, the most important first; rank 0 goes before the bars' texts.
fn ranked_captions<'a>(log: &Playback, dots: &'a [PlacedDot], cursor: usize) -> Vec<Ranked<'a>> {
    let mut ranked: Vec<Ranked<'a>> = dots
        .iter()
        .filter_map(|placed| {
            let text = narration::caption(log.event(placed.index)?)?;
            let is_spotlit = placed.index + 1 == cursor;
            let (tone, rank) = match placed.dot {
                Dot::Refused => (Tone::Bad, 1),
                Dot::Crashed => (Tone::Bad, 1),
                Dot::Applied => (Tone::Good, 2),
                Dot::Granted => (Tone::Holds, 3),
                Dot::Fault => (Tone::Fault, 3),
                Dot::Plain => (Tone::Soft, 4),
                Dot::Minor => (Tone::Soft, 5),
            };
            let tone = match tone {
                Tone::Soft if is_spotlit => Tone::Strong,
                tone => tone,
            };
            Some((placed, text, tone, if is_spotlit { 0 } else { rank }))
        })
        .collect();
    ranked.sort_by_key(|(placed, _, _, rank)| (*rank, placed.index));
    ranked
}

fn place_bars(
    picture: &mut Picture,
    labels: &mut Labels,
    tracks: &Tracks,
    scale: &Scale,
    rows: &[f64],
    view: View,
) {
    let (left, right) = (view.from_x, view.from_x + view.width);
    let last_ms = tracks.times_ms.last().copied().unwrap_or(0);
    let now = At::Event(tracks.times_ms.len().saturating_sub(1));
    for bar in tracks.bars.iter().filter(|bar| bar.kind == BarKind::Down) {
        let end = bar.to.map_or(right, |at| scale.x(at));
        labels.lines.push((scale.x(bar.from), end, rows[bar.lane]));
    }
    for bar in &tracks.bars {
        let x0 = scale.x(bar.from);
        if x0 > right {
            break;
        }
        // What is open reaches a little beyond the last event: it goes on.
        let open_x = scale.x(now) + 26.0;
        let x1 = match bar.to {
            Some(to) if bar.closed => scale.x(to),
            Some(to) => scale.x(to).min(open_x.max(scale.x(now))),
            None => open_x,
        };
        let x1 = x1.max(x0 + 2.0);
        if x1 < left {
            continue;
        }
        let y = rows[bar.lane];
        let from_index = match bar.from {
            At::Event(index) | At::Between(index, _) => index,
            At::Time(_) => 0,
        };
        let mut push = |x0: f64, x1: f64, look: Look| {
            if x1 > left && x1 > x0 {
                picture.bars.push(PlacedBar { x0, x1, y, look, from_index });
            }
        };
        match &bar.kind {
            BarKind::Held { holder, token } => {
                push(x0, x1, Look::Held);
                let texts = [format!("held by {holder} · {token}"), holder.clone()];
                labels.inside(x0, x1, y, &texts, Tone::Soft, view);
            }
            BarKind::Believed { token, .. } => {
                let is_ahead = |at: &At| matches!(at, At::Time(time_ms) if *time_ms > last_ms);
                let split = tracks.false_from(bar).filter(|at| !is_ahead(at));
                let split = split.map_or(x1, |at| scale.x(at)).clamp(x0, x1);
                push(x0, split, Look::True);
                push(split, x1, Look::False);
                let texts = [format!("holds {token}"), token.to_string()];
                labels.inside(x0, split, y, &texts, Tone::Holds, view);
                let texts =
                    [format!("still believes it holds {token}"), format!("believes {token}")];
                labels.inside(split, x1, y, &texts, Tone::Bad, view);
            }
            BarKind::Paused => {
                push(x0, x1, Look::Paused);
                labels.above(x0, x1, y, "paused", Tone::Fault, view);
            }
            BarKind::Down => {
                push(x0, x1, Look::Down);
                labels.above(x0 + 6.0, x1, y, "down", Tone::Bad, view);
            }
        }
    }
}

/// Texts placed so far, so that no two cover each other.
#[derive(Default)]
struct Labels {
    placed: Vec<PlacedLabel>,
    /// Dots, which no text in a bar may cover.
    dots: Vec<(f64, f64)>,
    /// Stretches with a line of their own: left, right, middle.
    lines: Vec<(f64, f64, f64)>,
    taken: Vec<(f64, f64, f64)>,
}

impl Labels {
    fn is_free(&self, x0: f64, x1: f64, baseline: f64) -> bool {
        self.taken
            .iter()
            .all(|(a, b, y)| (y - baseline).abs() > LABEL + 1.0 || x1 + 6.0 < *a || *b + 6.0 < x0)
    }

    fn put(&mut self, x: f64, y: f64, width: f64, text: String, tone: Tone) {
        self.taken.push((x, x + width, y));
        self.placed.push(PlacedLabel { x, y, text, tone });
    }

    /// Beside a dot: above to the right, above to the left, below to the right; else not.
    fn beside(&mut self, x: f64, y: f64, text: &str, tone: Tone, view: View, gap: f64) {
        let width = measure::sans(text, LABEL);
        let right_edge = view.from_x + view.width;
        let (above, below) = (y - BAR / 2.0 - 4.0, y + BAR / 2.0 + LABEL + 1.0);
        let right =
            if x + gap + width > right_edge && x < right_edge { x - width - gap } else { x + gap };
        for (left, baseline) in [(right, above), (right, below), (x - width - gap, above)] {
            if self.is_free(left, left + width, baseline) {
                return self.put(left, baseline, width, text.to_owned(), tone);
            }
        }
    }

    /// Inside a bar, as far left as there is a gap between its dots: the longest that fits.
    fn inside(&mut self, x0: f64, x1: f64, y: f64, texts: &[String], tone: Tone, view: View) {
        let left = x0.max(view.from_x) + 8.0;
        let right = x1.min(view.from_x + view.width) - 4.0;
        let dots: Vec<f64> = self
            .dots
            .iter()
            .filter(|(x, dot_y)| *dot_y == y && (left - 14.0..right).contains(x))
            .map(|(x, _)| *x)
            .collect();
        let lines: Vec<(f64, f64)> =
            self.lines.iter().filter(|line| line.2 == y).map(|line| (line.0, line.1)).collect();
        let starts = || std::iter::once(left).chain(dots.iter().map(|x| (x + 9.0).max(left)));
        for text in texts {
            let width = measure::sans(text, LABEL);
            let is_free = |start: &f64| {
                start + width <= right
                    && !lines.iter().any(|(a, b)| *a < *start + width + 4.0 && *start - 4.0 < *b)
                    && dots.iter().all(|x| x + 7.0 < *start || start + width + 6.0 < *x)
            };
            if let Some(start) = starts().find(is_free) {
                return self.put(start, y + 4.0, width, text.clone(), tone);
            }
        }
    }

    /// Above the middle of a stretch.
    fn above(&mut self, x0: f64, x1: f64, y: f64, text: &str, tone: Tone, view: View) {
        let (x0, x1) = (x0.max(view.from_x), x1.min(view.from_x + view.width));
        let width = measure::sans(text, LABEL);
        let baseline = y - BAR / 2.0 - 4.0;
        let middle = (x0 + x1 - width) / 2.0;
        if x1 - x0 < width {
            return;
        }
        for left in [middle, x0 + 4.0, x1 - width - 4.0] {
            if self.is_free(left, left + width, baseline) {
                return self.put(left, baseline, width, text.to_owned(), tone);
            }
        }
    }
}

#[cfg(test)]
mod tests;
