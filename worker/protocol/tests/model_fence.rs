//! The fenced resource behind a lease authority, every schedule explored.
//!
//! The guard, alone, with everything else on. A client that claims does so before it
//! reads:
//!
//! | guard | client | broken |
//! |---|---|---|
//! | `none` | does not claim | no lost update, no older effect, no older read |
//! | `none` | claims | no older effect: a claim that nobody compares with |
//! | `at_least` | does not claim | no lost update, no older effect, no older read (C1) |
//! | `at_least` | claims | nothing |
//! | `strict` | does not claim | the same as `at_least`, to the last step (C1, C9) |
//! | `strict` | claims | nothing, since nothing is ever written: the claim is the one use of the token |
//! | `claimed` | does not claim | no older read; nothing is ever written |
//! | `claimed` | claims | nothing |
//!
//! What closes the gap before the first write is the claim, not the comparison.
//! The other rules, each off alone:
//!
//! | off | broken | in words |
//! |---|---|---|
//! | `fence_per_lease` | no older effect, no older read, no lost update | C5: a claim covers the lease, and a fence per key does not hear of it |
//! | `atomic_write` | no older effect, effects in token order, all or nothing, … | C4: the payload lands after a newer claim, or never |
//! | `remember_write_ids` | the outcome is learnt | C2: applied, and told "gap"; where writes are not numbered, one effect per write |
//! | `check_sequence` | writes in sequence | C3: the second write overtakes the first |
//! | `fence_reads` | no older read | C8: the deposed holder is served |

mod model;

use model::check::{
    check_all_broken, check_broken, check_clean, published, repaired, repaired_without, verdict,
};
use model::claims::Claim;
use model::client::Plan;
use model::system::Lab;
use protocol::fence::Guard;

/// Each writes both keys under one grant without waiting in between; the resource may
/// crash.
fn two_keys() -> Plan {
    Plan { keys: [&[0, 1], &[0, 1]], n_resends: 0, n_crashes: 1, ..Plan::simple() }
}

/// A writes one key and B the other, under the same lease.
fn one_key_each() -> Plan {
    Plan { keys: [&[1], &[0]], n_crashes: 1, ..Plan::simple() }
}

/// Each writes one key twice without waiting in between.
fn pipelined() -> Plan {
    Plan { keys: [&[0, 0], &[0, 0]], ..Plan::simple() }
}

fn with_guard(guard: Guard, claims: bool) -> Lab {
    let mut lab = repaired(Plan { claims, ..Plan::simple() });
    lab.fence.guard = guard;
    lab
}

fn check_without(rule: &str, plan: Plan, broken: &[Claim], schedule: &str) {
    let lab = Lab { fence: repaired_without(rule), ..repaired(plan) };
    check_broken(lab, broken, schedule);
}

const SIMPLE: [Claim; 5] =
    [Claim::BothWrite, Claim::Fenced, Claim::ReadFenced, Claim::Duplicate, Claim::Repeated];

#[test]
fn everything_on_one_key() {
    check_clean(repaired(Plan::simple()), &SIMPLE, 22_936);
}

#[test]
fn everything_on_one_key_each() {
    check_clean(repaired(one_key_each()), &SIMPLE, 22_936);
}

#[test]
fn everything_on_pipelined() {
    check_clean(repaired(pipelined()), &[&SIMPLE[..], &[Claim::Gap]].concat(), 83_578);
}

#[test]
fn everything_on_two_keys() {
    let possible = [Claim::BothWrite, Claim::Fenced, Claim::ReadFenced, Claim::Gap];
    check_clean(repaired(two_keys()), &possible, 3_514);
}

#[test]
fn guard_none() {
    let broken = [Claim::NoLostUpdate, Claim::NoOlderEffect, Claim::NoOlderRead];
    check_broken(
        with_guard(Guard::None, false),
        &broken,
        "
        A asks
        B asks
        arrives: A acquire
        A goes on
        arrives: A read(1)
        A goes on
        time passes
        arrives: B acquire
        B goes on
        arrives: B read(2)
        B goes on
        arrives: A write 1(1)
        arrives: B write 1(2)
    ",
    );
}

#[test]
fn guard_none_with_claims() {
    check_broken(
        with_guard(Guard::None, true),
        &[Claim::NoOlderEffect],
        "
        A asks
        B asks
        arrives: A acquire
        A goes on
        arrives: A claim(1)
        A goes on
        arrives: A read(1)
        A goes on
        time passes
        arrives: B acquire
        B goes on
        arrives: B claim(2)
        arrives: A write 1(1)
    ",
    );
}

#[test]
fn guard_at_least() {
    let broken = [Claim::NoLostUpdate, Claim::NoOlderEffect, Claim::NoOlderRead];
    check_broken(
        with_guard(Guard::AtLeast, false),
        &broken,
        "
        A asks
        B asks
        arrives: A acquire
        A goes on
        arrives: A read(1)
        A goes on
        time passes
        arrives: B acquire
        B goes on
        arrives: B read(2)
        B goes on
        arrives: A write 1(1)
        arrives: B write 1(2)
    ",
    );
}

#[test]
fn guard_at_least_with_claims_is_as_good_as_claimed() {
    check_clean(with_guard(Guard::AtLeast, true), &SIMPLE, 22_936);
}

#[test]
fn guard_strict() {
    let broken = [Claim::NoLostUpdate, Claim::NoOlderEffect, Claim::NoOlderRead];
    check_broken(
        with_guard(Guard::Strict, false),
        &broken,
        "
        A asks
        B asks
        arrives: A acquire
        A goes on
        arrives: A read(1)
        A goes on
        time passes
        arrives: B acquire
        B goes on
        arrives: B read(2)
        B goes on
        arrives: A write 1(1)
        arrives: B write 1(2)
    ",
    );
}

/// A claim raises the mark to the holder's own token, which a strict guard then refuses;
/// and without a claim there is nothing to be equal to.
#[test]
fn guards_that_do_not_fit_the_client_let_nothing_through() {
    let (broken, shown, _) = verdict(with_guard(Guard::Strict, true));
    assert_eq!(broken, []);
    assert_eq!(shown, [Claim::Fenced, Claim::Repeated, Claim::ReadFenced], "nothing is written");
    let (broken, shown, _) = verdict(with_guard(Guard::Claimed, false));
    assert_eq!(broken, [Claim::NoOlderRead]);
    assert_eq!(shown, [Claim::Repeated], "nothing is written");
}

#[test]
fn fence_per_lease_off_lets_the_other_key_be_written() {
    let broken = [Claim::NoOlderEffect, Claim::NoOlderRead];
    check_without(
        "fence_per_lease",
        one_key_each(),
        &broken,
        "
        A asks
        B asks
        arrives: A acquire
        A goes on
        arrives: A claim(1)
        A goes on
        arrives: A read(1)
        A goes on
        time passes
        arrives: B acquire
        B goes on
        arrives: B claim(2)
        arrives: A write 1(1)
    ",
    );
}

#[test]
fn atomic_write_off_lands_late_or_never() {
    let broken = [
        Claim::NoOlderEffect,
        Claim::EffectsInTokenOrder,
        Claim::NoLostUpdate,
        Claim::AllOrNothing,
        Claim::WritesInSequence,
    ];
    check_without(
        "atomic_write",
        two_keys(),
        &broken,
        "
        A asks
        B asks
        arrives: A acquire
        A goes on
        arrives: A claim(1)
        A goes on
        arrives: A read(1)
        A goes on
        arrives: A write 1(1)
        time passes
        arrives: B acquire
        B goes on
        arrives: B claim(2)
        lands: A write 1(1)
    ",
    );
}

#[test]
fn remember_write_ids_off_hides_the_outcome() {
    check_without(
        "remember_write_ids",
        Plan::simple(),
        &[Claim::OutcomeLearnt],
        "
        A asks
        arrives: A acquire
        A goes on
        arrives: A claim(1)
        A goes on
        arrives: A read(1)
        A goes on
        arrives: A write 1(1), unheard
        again: A write 1(1)
        arrives: A write 1(1)
    ",
    );
}

#[test]
fn remember_write_ids_off_applies_twice_where_writes_are_not_numbered() {
    let plan = Plan { numbers_writes: false, ..Plan::simple() };
    check_without(
        "remember_write_ids",
        plan,
        &[Claim::OneEffectPerWriteId, Claim::OutcomeLearnt],
        "
        A asks
        arrives: A acquire
        A goes on
        arrives: A claim(1)
        A goes on
        arrives: A read(1)
        A goes on
        again: A write 1(1)
        arrives: A write 1(1)
        arrives: A write 1(1), unheard
    ",
    );
}

#[test]
fn check_sequence_off_lets_writes_overtake() {
    check_without(
        "check_sequence",
        two_keys(),
        &[Claim::WritesInSequence],
        "
        A asks
        arrives: A acquire
        A goes on
        arrives: A claim(1)
        A goes on
        arrives: A read(1)
        A goes on
        arrives: A write 2(1)
    ",
    );
}

#[test]
fn fence_reads_off_serves_the_deposed_holder() {
    check_without(
        "fence_reads",
        Plan::simple(),
        &[Claim::NoOlderRead],
        "
        A asks
        B asks
        arrives: A acquire
        A goes on
        arrives: A claim(1)
        A goes on
        time passes
        arrives: B acquire
        B goes on
        arrives: B claim(2)
        arrives: A read(1)
    ",
    );
}

/// The paper's code: all that breaks, under each plan.
#[test]
fn published_breaks() {
    use Claim::*;
    let always = [NoOlderEffect, NoOlderRead];
    let same_key = [&always[..], &[EffectsInTokenOrder, NoLostUpdate]].concat();
    let resent = [OneGrantPerRequest, OutcomeLearnt];
    let crashed = [AllOrNothing];
    check_all_broken(published(Plan::simple()), &[&same_key[..], &resent].concat());
    check_all_broken(published(one_key_each()), &[&always[..], &resent, &crashed].concat());
    let pipelined_breaks = [&same_key[..], &resent, &[WritesInSequence]].concat();
    check_all_broken(published(pipelined()), &pipelined_breaks);
    let two_keys_break = [&same_key[..], &crashed, &[WritesInSequence]].concat();
    check_all_broken(published(two_keys()), &two_keys_break);
}
