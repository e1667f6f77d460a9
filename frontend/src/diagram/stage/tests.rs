//! The stage: everything has its place, and no two things the same.

use protocol::rules::Preset;

use super::*;
use crate::diagram::{labels, motion};
use crate::playback::Playback;
use crate::rehearsal::{Rehearsal, acquire, add, claim, paused_holder, write};

fn crowd() -> Rehearsal {
    let mut lab = Rehearsal::new(Preset::Repaired);
    for (n, client) in ["worker-1", "worker-2", "C", "D"].into_iter().enumerate() {
        let lease = if n % 2 == 0 { "lease/orders" } else { "lease/stock" };
        lab.ask(client, lease, acquire(client, 5000));
    }
    lab.ask("worker-1", "resource/ledger", claim(1));
    lab.ask("worker-1", "resource/archive", claim(1));
    lab.ask("worker-1", "resource/ledger", write("balance", 1, 1));
    lab
}

fn shards() -> Rehearsal {
    let mut lab = Rehearsal::new(Preset::Published);
    for client in ["A", "B", "C"] {
        lab.ask(client, "shard/7", add("stock", 1));
    }
    lab
}

#[test]
fn nothing_overlaps_and_nothing_sticks_out() {
    for lab in [paused_holder("strict"), crowd(), shards()] {
        let log = Playback::of(Preset::Repaired, lab.world.log().to_vec());
        let desks = [(728.0, 500.0), (390.0, 480.0), (1100.0, 700.0), (560.0, 380.0)];
        let low = [(456.0, 300.0), (520.0, 290.0), (660.0, 240.0)];
        for (width, height) in desks.into_iter().chain(low) {
            for cursor in 0..=log.len() {
                let scene = log.scene_at(cursor);
                let layout = layout(&scene, width, height);
                assert!(layout.height * layout.zoom <= height + 0.1, "{width} {height}");
                assert!(layout.width * layout.zoom <= width + 0.1, "{width} {height}");
                for (nth, one) in layout.nodes.iter().enumerate() {
                    let frame = one.frame;
                    assert!(
                        frame.left() >= 0.0 && frame.right() <= layout.width,
                        "{one:?} {width}"
                    );
                    assert!(
                        frame.top() >= 0.0 && frame.bottom() <= layout.height,
                        "{one:?} {width}"
                    );
                    for other in &layout.nodes[nth + 1..] {
                        assert!(!frame.overlaps(&other.frame), "{one:?} {other:?} {width}");
                    }
                }
            }
        }
    }
}

#[test]
fn words_of_messages_cover_no_node_and_no_other_words() {
    for lab in [paused_holder("claimed"), crowd(), shards()] {
        let log = Playback::of(Preset::Repaired, lab.world.log().to_vec());
        for (width, height) in [(728.0, 500.0), (390.0, 560.0)] {
            for cursor in 0..=log.len() {
                let scene = log.scene_at(cursor);
                let layout = layout(&scene, width, height);
                let drawn = motion::messages(&scene, &layout);
                let placed: Vec<_> =
                    labels::place(&drawn, &layout, &[]).into_iter().flatten().collect();
                for (nth, one) in placed.iter().enumerate() {
                    assert!(
                        layout.nodes.iter().all(|node| !node.frame.overlaps(&one.frame)),
                        "{one:?}"
                    );
                    assert!(
                        placed[nth + 1..].iter().all(|other| !other.frame.overlaps(&one.frame))
                    );
                }
            }
        }
    }
}

#[test]
fn a_stale_write_is_stopped_at_the_fence_and_a_fresh_one_goes_over() {
    let lab = paused_holder("strict");
    let log = Playback::of(Preset::Repaired, lab.world.log().to_vec());
    let scene = log.scene_at(log.len());
    let layout = layout(&scene, 728.0, 500.0);
    let resource = scene.resources().next().expect("a resource");
    let post = fence_post(resource, layout.frame(&resource.node).expect("a place"), false);
    assert_eq!(post.plates[0].text, "> 2");
    let from = Point::new(100.0, 100.0);
    assert!(post.gate(from, true, false).x < post.line());
    assert!(post.gate(from, true, false).y > post.plates[0].middle.y);
    let over = post.gate(from, false, false);
    assert!(over.x > post.line() && over.y < post.tip());
}
