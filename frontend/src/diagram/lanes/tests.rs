//! The space-time diagram: edges, bars, scale, and what is left out.

use protocol::rules::Preset;

use super::*;
use crate::diagram::tracks::Bar;
use crate::rehearsal::{Rehearsal, acquire, node, paused_holder};

fn log_of(lab: &Rehearsal) -> Playback {
    Playback::of(Preset::Repaired, lab.world.log().to_vec())
}

fn view(from_x: f64) -> View {
    View { from_x, width: 900.0, height: 230.0 }
}

#[test]
fn a_client_stands_above_what_it_first_talks_to() {
    let log = log_of(&paused_holder("strict"));
    let tracks = log.tracks();
    let names: Vec<_> =
        tracks.order().into_iter().map(|lane| tracks.lanes[lane].to_string()).collect();
    assert_eq!(names, ["client/A", "lease/orders", "resource/ledger", "client/B"]);
}

#[test]
fn edges_join_exactly_the_events_of_one_message() {
    let log = log_of(&paused_holder("strict"));
    for edge in &log.tracks().edges {
        let (At::Event(from), Some(At::Event(to))) = (edge.from.1, edge.to.1) else {
            panic!("every message of this log arrives: {edge:?}");
        };
        let (from, to) = (log.event(from).expect("an event"), log.event(to).expect("an event"));
        assert_eq!(from.request.as_ref(), Some(&edge.request));
        assert_eq!(to.request.as_ref(), Some(&edge.request));
        assert_ne!(from.node, to.node);
    }
    let n_refused = log.tracks().edges.iter().filter(|edge| edge.fate == Fate::Refused).count();
    assert_eq!(n_refused, 2, "B's first acquire and A's last write");
}

#[test]
fn a_belief_turns_false_where_the_grant_ends() {
    let log = log_of(&paused_holder("strict"));
    let tracks = log.tracks();
    let is_of_a = |bar: &&Bar| {
        matches!(bar.kind, BarKind::Believed { .. }) && tracks.lanes[bar.lane] == node("client/A")
    };
    let belief = tracks.bars.iter().find(is_of_a).expect("A believes");
    let held = tracks.bars.iter().find(|bar| matches!(bar.kind, BarKind::Held { .. }));
    assert_eq!(tracks.false_from(belief), held.expect("A holds").to);
    assert!(belief.to.is_none(), "nobody told A");
}

#[test]
fn no_two_labels_cover_each_other() {
    for guard in ["none", "strict", "claimed"] {
        let log = log_of(&paused_holder(guard));
        for axis in [Axis::Time, Axis::Order] {
            let scale = Scale::new(&log.tracks().times_ms, axis, 900.0, 1.0);
            for cursor in 0..=log.len() {
                let labels = picture(&log, &scale, view(0.0), cursor).labels;
                for (nth, one) in labels.iter().enumerate() {
                    for other in &labels[nth + 1..] {
                        let apart = (one.y - other.y).abs() >= LABEL
                            || one.x + measure::sans(&one.text, LABEL) <= other.x
                            || other.x + measure::sans(&other.text, LABEL) <= one.x;
                        assert!(apart, "{one:?} and {other:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_short_log_fits_and_events_keep_their_distance() {
    let log = log_of(&paused_holder("strict"));
    let scale = Scale::new(&log.tracks().times_ms, Axis::Time, 900.0, 1.0);
    assert!(scale.width <= 901.0, "{}", scale.width);
    assert!(scale.xs.windows(2).all(|pair| pair[1] - pair[0] >= GAP_MIN - 1e-9));
}

#[test]
fn a_click_on_a_dot_goes_to_its_event() {
    let log = log_of(&paused_holder("strict"));
    for axis in [Axis::Time, Axis::Order] {
        let scale = Scale::new(&log.tracks().times_ms, axis, 900.0, 1.0);
        for (index, x) in scale.xs.iter().enumerate() {
            assert_eq!(scale.cursor_at(*x), index + 1);
        }
        assert_eq!(scale.cursor_at(-50.0), 0);
    }
}

#[test]
fn of_ten_thousand_events_only_those_in_view_are_laid_out() {
    let mut lab = Rehearsal::new(Preset::Repaired);
    while lab.world.log().len() < 10_000 {
        lab.ask("A", "lease/orders", acquire("A", 200));
        lab.world.advance(300);
    }
    let log = log_of(&lab);
    let scale = Scale::new(&log.tracks().times_ms, Axis::Order, 900.0, 1.0);
    assert!(scale.width > 100_000.0);
    let picture = picture(&log, &scale, view(scale.width / 2.0), 5_000);
    assert!(picture.dots.len() < 80, "{}", picture.dots.len());
    assert!(picture.edges.len() < 80 && picture.bars.len() < 40);
}
