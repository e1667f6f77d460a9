//! Explanations of refusals that the simulator produced.

use protocol::rules::Preset;

use super::*;
use crate::rehearsal::{Rehearsal, acquire, claim, label, paused_holder, token, write};

fn last_rejection(lab: &Rehearsal) -> Rejection {
    let log = Playback::of(Preset::Repaired, lab.world.log().to_vec());
    let found = (0..log.len()).rev().find_map(|index| rejection(&log, index));
    found.expect("something was refused")
}

#[test]
fn the_stale_write_would_have_lost_an_update() {
    let explained = last_rejection(&paused_holder("strict"));
    assert_eq!(explained.title, "Fenced by ledger");
    assert_eq!(explained.presented, ("token".to_owned(), "1".to_owned()));
    assert_eq!(explained.known, ("high-water mark".to_owned(), "2".to_owned()));
    assert_eq!(explained.meaning.name, "strict guard");
    let without = explained.without.expect("it can be run without");
    assert_eq!(
        without.sentence,
        "balance 120 would be overwritten with 95: the update made under token 2 is lost."
    );
    assert_eq!(without.setting, "guard = none");
    assert!(explained.decision.expect("a line").file.ends_with("fence.rs"));
}

#[test]
fn a_stale_claim_is_refused_with_or_without_the_guard() {
    let mut lab = paused_holder("claimed");
    lab.ask("A", "resource/ledger", claim(1));
    let without = last_rejection(&lab).without.expect("it can be run without");
    assert!(without.still_refused, "{without:?}");
    assert!(without.sentence.starts_with("Refused all the same: "), "{without:?}");
}

#[test]
fn a_zombie_renewal_would_have_been_given_a_fresh_token() {
    let mut lab = paused_holder("strict");
    lab.world.advance(10_000);
    let renew = Renew {
        holder: label("A"),
        nonce: None,
        token: token(1),
        ttl_ms: 1000.try_into().expect("a ttl"),
        request_id: None,
    };
    lab.ask("A", "lease/orders", protocol::object::Request::Renew(renew));
    let explained = last_rejection(&lab);
    assert_eq!((explained.rule.as_str(), explained.meaning.case), ("renew_proves_grant", "B1"));
    let without = explained.without.expect("it can be run without");
    assert!(without.sentence.contains("the fresh token 3"), "{without:?}");
}

#[test]
fn what_has_no_switch_is_not_run_without() {
    let mut lab = Rehearsal::new(Preset::Repaired);
    lab.rule("lease/orders", "fifo_queue", RuleValue::Switch(false));
    lab.ask("A", "lease/orders", acquire("A", 2000));
    lab.ask("B", "lease/orders", acquire("B", 2000));
    let explained = last_rejection(&lab);
    assert_eq!(explained.meaning.name, "one holder");
    assert_eq!(explained.without, None);
}

#[test]
fn an_effect_is_no_refusal() {
    let mut lab = Rehearsal::new(Preset::Published);
    lab.ask("A", "resource/ledger", write("balance", 1, 1));
    let log = Playback::of(Preset::Published, lab.world.log().to_vec());
    assert!((0..log.len()).all(|index| rejection(&log, index).is_none()));
}
