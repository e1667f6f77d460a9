//! The lease authority in front of a fenced resource, every schedule explored.
//!
//! Two clients, one lease, one resource; requests are late, lost, repeated or overtake one
//! another, replies are lost, clients pause anywhere, the alarm is late or never rings.
//! With everything on nothing breaks; with one rule off:
//!
//! | off | broken | in words |
//! |---|---|---|
//! | `renew_proves_grant` | no lost update | B1: the zombie renews, gets a fresh token, and writes what it computed long ago |
//! | `holder_has_nonce` | one holder | B2: the twin asks and has it too |
//! | `remember_requests` | one grant per request | B4: the second copy of a request is granted to nobody |
//! | `check_not_after` | no late grant | FC-04: the request arrives when nobody wants it any more |
//! | `fifo_queue` | first come, first served | B10: whoever asks just when the lease comes free overtakes |
//! | `check_waiter_deadline` | no grant to the gone | the queue grants to one who has given up |
//! | `monotonic_clock` | one holder, on paper only | B7: a grant that is over looks alive again; a belt, see its test |
//! | `keep_token` | tokens rise, no older effect | B3, B8: the stale write carries the newer grant's number |
//!
//! Three of the eight carry the safety of what is written: `renew_proves_grant`,
//! `keep_token`, and at the resource the guard. The others decide who gets the lease and
//! when, which the fence does not depend on.

mod model;

use model::check::{
    check_all_broken, check_broken, check_clean, published, repaired, repaired_without, verdict,
};
use model::claims::Claim;
use model::client::Plan;
use model::system::Lab;

/// Each renews once between reading and writing.
fn renewing() -> Plan {
    Plan { n_renewals: 1, ..Plan::simple() }
}

/// Two processes of one name.
fn twins() -> Plan {
    Plan { names: ["A", "A"], ..Plan::simple() }
}

/// They wait in the queue for as long as a lease lasts, and say until when they care.
fn queueing() -> Plan {
    Plan { wait_ticks: Some(1), not_after_ticks: Some(1), ..Plan::simple() }
}

/// They wait in the queue and come back for a second grant.
fn returning() -> Plan {
    Plan { wait_ticks: Some(1), n_rounds: 2, n_resends: 0, ..Plan::simple() }
}

/// The authority's clock steps back once.
fn clock_steps_back() -> Plan {
    Plan { n_steps_back: 1, ..Plan::simple() }
}

/// What the plan breaks with one of the lease's rules off.
fn check_without(rule: &str, plan: Plan, broken: &[Claim], schedule: &str) {
    let lab = Lab { lease: repaired_without(rule), ..repaired(plan) };
    check_broken(lab, broken, schedule);
}

const SIMPLE: [Claim; 5] =
    [Claim::BothWrite, Claim::Fenced, Claim::ReadFenced, Claim::Duplicate, Claim::Repeated];

#[test]
fn everything_on_renewing() {
    let possible = [&SIMPLE[..], &[Claim::Renewed, Claim::RenewalLost]].concat();
    check_clean(repaired(renewing()), &possible, 52_184);
}

#[test]
fn everything_on_twins() {
    check_clean(repaired(twins()), &SIMPLE, 22_936);
}

#[test]
fn everything_on_queueing() {
    let queue = [Claim::QueueGrants, Claim::WaiterTimesOut, Claim::Late];
    check_clean(repaired(queueing()), &[&SIMPLE[..], &queue].concat(), 60_545);
}

#[test]
fn everything_on_returning() {
    let possible = [
        Claim::BothWrite,
        Claim::Fenced,
        Claim::ReadFenced,
        Claim::QueueGrants,
        Claim::WaiterTimesOut,
        Claim::Repeated,
    ];
    check_clean(repaired(returning()), &possible, 210_524);
}

#[test]
fn everything_on_clock_steps_back() {
    check_clean(repaired(clock_steps_back()), &SIMPLE, 63_570);
}

#[test]
fn renew_proves_grant_off_lets_the_zombie_renew() {
    check_without(
        "renew_proves_grant",
        renewing(),
        &[Claim::NoLostUpdate],
        "
        A asks
        B asks
        arrives: A acquire
        A goes on
        arrives: A claim(1)
        A goes on
        arrives: A read(1)
        A renews
        time passes
        arrives: B acquire
        B goes on
        arrives: B claim(2)
        B goes on
        arrives: B read(2)
        B goes on
        arrives: B write 1(2)
        time passes
        arrives: A renew(1)
        A goes on
        arrives: A claim(3)
        A goes on
        arrives: A write 1(3)
    ",
    );
}

#[test]
fn holder_has_nonce_off_lets_the_twin_in() {
    check_without(
        "holder_has_nonce",
        twins(),
        &[Claim::OneHolder],
        "
        A asks
        B asks
        arrives: A acquire
        arrives: B acquire
    ",
    );
}

#[test]
fn remember_requests_off_grants_a_ghost() {
    check_without(
        "remember_requests",
        Plan::simple(),
        &[Claim::OneGrantPerRequest],
        "
        A asks
        again: A acquire
        arrives: A acquire
        time passes
        arrives: A acquire, unheard
    ",
    );
}

#[test]
fn check_not_after_off_grants_late() {
    check_without(
        "check_not_after",
        queueing(),
        &[Claim::NoLateGrant],
        "
        A asks
        time passes
        time passes
        arrives: A acquire
    ",
    );
}

#[test]
fn fifo_queue_off_lets_whoever_comes_at_the_right_time_overtake() {
    check_without(
        "fifo_queue",
        returning(),
        &[Claim::FirstComeFirstServed],
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
        A releases
        A asks
        arrives: A acquire
        arrives: A release(1), unheard
        arrives: B acquire
    ",
    );
}

#[test]
fn check_waiter_deadline_off_grants_to_the_gone() {
    let broken = [Claim::NoGrantToTheGone, Claim::NoLateGrant];
    check_without(
        "check_waiter_deadline",
        queueing(),
        &broken,
        "
        A asks
        B asks
        arrives: A acquire
        arrives: B acquire
        time passes
        time passes
        the alarm rings
    ",
    );
}

/// A belt. The authority records that a grant is over, and a record does not come back to
/// life with the clock: nobody is let in twice, and nothing breaks at the resource. What
/// breaks is the promise on paper, since by the clock as it now is the old grant still has
/// time left. With the rule on time stands still until the clock has caught up.
#[test]
fn monotonic_clock_off_breaks_the_promise_only() {
    check_without(
        "monotonic_clock",
        clock_steps_back(),
        &[Claim::OneHolder],
        "
        A asks
        B asks
        arrives: A acquire
        time passes
        the alarm rings
        the clock steps back
        arrives: B acquire
    ",
    );
}

#[test]
fn keep_token_off_starts_the_numbers_again() {
    let broken =
        [Claim::NoOlderEffect, Claim::TokensRise, Claim::GrantedMeansHeld, Claim::NoOlderRead];
    check_without(
        "keep_token",
        renewing(),
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
        arrives: B claim(1)
        arrives: A write 1(1)
    ",
    );
}

/// A stale holder is stopped by the fence whoever else was let in: with every rule off that
/// decides only about who gets the lease and when, nothing breaks at the resource.
#[test]
fn six_rules_off_at_once_and_the_resource_is_safe() {
    for plan in [renewing(), twins(), queueing(), clock_steps_back()] {
        let mut lab = repaired(plan);
        lab.lease.holder_has_nonce = false;
        lab.lease.remember_requests = false;
        lab.lease.check_not_after = false;
        lab.lease.fifo_queue = false;
        lab.lease.check_waiter_deadline = false;
        lab.lease.monotonic_clock = false;
        let (broken, ..) = verdict(lab);
        let at_the_resource =
            broken.into_iter().filter(|claim| *claim >= Claim::EffectsInTokenOrder);
        assert_eq!(at_the_resource.collect::<Vec<_>>(), []);
    }
}

/// The paper's code: all that breaks, under each plan.
#[test]
fn published_breaks() {
    use Claim::*;
    let always = [EffectsInTokenOrder, NoOlderEffect, NoOlderRead, NoLostUpdate];
    let resent = [&always[..], &[OneGrantPerRequest, OutcomeLearnt]].concat();
    let late = [FirstComeFirstServed, NoLateGrant];
    check_all_broken(published(renewing()), &resent);
    check_all_broken(published(twins()), &[&resent[..], &[OneHolder]].concat());
    check_all_broken(published(queueing()), &[&resent[..], &late].concat());
    check_all_broken(published(returning()), &[&always[..], &[FirstComeFirstServed]].concat());
    check_all_broken(published(clock_steps_back()), &[&resent[..], &[OneHolder]].concat());
}
