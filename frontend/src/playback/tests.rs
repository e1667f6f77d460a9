//! The log and the scene, on logs that the simulator made.

use protocol::rules::Preset;

use super::*;
use crate::rehearsal::{Rehearsal, acquire, add, node, paused_holder, write};

fn playback(lab: &Rehearsal) -> Playback {
    Playback::of(Preset::Repaired, lab.world.log().to_vec())
}

#[test]
fn every_cursor_is_the_fold_from_the_start() {
    let mut lab = Rehearsal::new(Preset::Repaired);
    for n in 0..60 {
        let client = if n % 2 == 0 { "A" } else { "B" };
        lab.ask(client, "lease/orders", acquire(client, 300));
        lab.world.advance(400);
    }
    let log = playback(&lab);
    assert!(log.len() > 4 * CHECKPOINT_EVERY);
    let mut scene = Scene::new(Preset::Repaired);
    for cursor in 0..=log.len() {
        assert_eq!(log.scene_at(cursor), scene, "at {cursor}");
        if let Some(entry) = log.entries.get(cursor) {
            scene.apply(entry);
        }
    }
}

#[test]
fn a_paused_holder_goes_on_believing() {
    let lab = paused_holder("strict");
    let log = playback(&lab);
    let scene = log.scene_at(log.len());
    let client = scene.client(&node("client/A")).expect("A is there");
    let belief = client.beliefs.first().expect("A believes");
    assert_eq!(belief.token.get(), 1);
    assert!(!scene.is_true(&client.node, belief, scene.at_ms));
    let other = scene.client(&node("client/B")).expect("B is there");
    assert!(scene.is_true(&other.node, &other.beliefs[0], scene.at_ms));
    let resource = scene.resources().next().expect("a resource");
    assert_eq!((resource.values[0].value, resource.fences[0].high_water_mark), (120, 2));
}

#[test]
fn the_cursor_rests_on_what_decided() {
    let mut lab = paused_holder("strict");
    lab.ask("A", "resource/ledger", write("balance", 95, 1));
    let log = playback(&lab);
    let refused = (0..log.len()).rev().find(|index| log.is_decisive(*index)).expect("a refusal");
    let TraceKind::WriteRefused { .. } = &log.event(refused).expect("an event").kind else {
        panic!("the write is what was refused last")
    };
    assert!(refused + 1 < log.len(), "its reply came after it");
    assert_eq!(log.rest(log.len()), refused + 1);
    assert_eq!(log.rest(refused + 1), refused + 1);
    assert_eq!(log.rest(refused), refused, "not yet refused");
    // Whatever else happens takes the cursor along.
    lab.world.advance(3_600_000);
    let log = playback(&lab);
    assert!(matches!(log.event(log.len() - 1).expect("one").kind, TraceKind::LeaseExpired { .. }));
    assert_eq!(log.rest(log.len()), log.len());
}

#[test]
fn a_lease_is_over_before_anybody_wrote_it_down() {
    let mut lab = Rehearsal::new(Preset::Repaired);
    lab.ask("A", "lease/orders", acquire("A", 2000));
    let log = playback(&lab);
    let scene = log.scene_at(log.len());
    let lease = scene.leases().next().expect("a lease");
    assert!(lease.holder_at(lease.expires_at_ms - 1).is_some());
    assert!(lease.holder_at(lease.expires_at_ms).is_none());
    assert_eq!(lease.remaining_ms(lease.expires_at_ms as f64 - 500.0), 500.0);
}

#[test]
fn a_refused_message_keeps_its_token_and_its_outcome() {
    let mut lab = paused_holder("strict");
    let sent = lab.send("A", "resource/ledger", write("balance", 96, 1));
    let on_its_way = playback(&lab);
    let scene = on_its_way.scene_at(on_its_way.len());
    let message = scene.spotlit_message().expect("a message");
    assert_eq!(
        (message.phase.clone(), message.token.map(|token| token.get())),
        (Phase::Requesting, Some(1))
    );
    lab.deliver(&sent);
    let log = playback(&lab);
    let scene = log.scene_at(log.len());
    let message = scene.spotlit_message().expect("a message");
    assert_eq!(message.phase, Phase::Refused("fenced".to_owned()));
    assert!(scene.is_arrival_of(message));
}

#[test]
fn a_number_without_its_effect_is_kept_apart() {
    let mut lab = Rehearsal::new(Preset::Published);
    let one = lab.send("A", "shard/7", add("stock", 1));
    lab.deliver(&one);
    let log = Playback::of(Preset::Published, lab.world.log().to_vec());
    let scene = log.scene_at(log.len());
    let shard = scene.shards().next().expect("a shard");
    assert_eq!((shard.numbered.len(), shard.operations.len(), shard.number), (1, 0, 1));
}
