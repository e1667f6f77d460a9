//! Two-phase commit, every schedule explored.
//!
//! Callers that come twice, calls that fail before or after they took effect, messages that
//! overtake, are lost or repeated, an alarm that rings when it likes, crashes of the
//! coordinator. With everything on nothing breaks; with one rule off:
//!
//! | off | broken | in words |
//! |---|---|---|
//! | `write_once_decision` | agreement, validity, stability, the same is told | K1 to K3: whoever comes later decides anew |
//! | `alarm_records_abort_first` | the same | K4: the alarm aborts and leaves the decision open |
//! | `alarm_with_preparing` | nobody is stuck | K6: a crash before the decision, and nobody goes on |
//! | `abort_tombstone` | nothing left prepared | N7: the prepare comes after the abort |
//! | `typed_acks` | nothing | participants obey here; a person does not (`two_phase.rs`, P3) |
//! | `raise_fence` | nothing | a decision that is written once needs no fence (K15) |
//! | `atomic_phase_and_alarm` | nothing | the alarm was set with PREPARING |
//!
//! Four rules carry safety and three are belts, as the review's own model says (§1.7). The
//! remaining four are about money, legs and asking, of which one transaction over honest
//! accounts shows nothing: `two_phase.rs` has a schedule for each.

mod model;

use std::collections::BTreeSet;

use model::two_phase::{Claim, Transfer};
use model::{explore, shortest, show};
use protocol::rules::{RuleValue, Rules};
use protocol::transaction::TwoPhaseRules;

/// Two callers, one crash, one alarm, one failed call, as in the review's model.
fn repaired(n_accounts: u8) -> Transfer {
    Transfer {
        rules: TwoPhaseRules::repaired(),
        n_accounts,
        says_no: false,
        n_runs: 2,
        n_crashes: 1,
        n_rings: 1,
        n_failures: 1,
        n_losses: 0,
        n_duplicates: 0,
        n_inquiries: 0,
        claims: Claim::ALL.to_vec(),
    }
}

/// One caller and no failed call, to make room for other faults.
fn one_run(n_accounts: u8) -> Transfer {
    Transfer { n_runs: 1, n_failures: 0, ..repaired(n_accounts) }
}

fn without(rule: &str, plan: Transfer) -> Transfer {
    let mut plan = plan;
    plan.rules.set(rule, &RuleValue::Switch(false)).expect("a rule of two-phase commit");
    plan
}

fn check_clean(plan: Transfer, impossible: &[Claim], n_states: usize) {
    let (found, n_explored) = explore(plan);
    show(&format!("clean: {n_explored} states"));
    let possible = Claim::ALL.iter().filter(|one| !one.is_always() && !impossible.contains(one));
    let possible: BTreeSet<_> = possible.map(|claim| claim.words()).collect();
    assert_eq!(found, possible, "nothing may break, and all this must be possible");
    assert_eq!(n_explored, n_states, "the number of states");
}

fn check_broken(plan: Transfer, broken: &[Claim], n_states: usize) {
    let (found, n_explored) = explore(plan);
    show(&format!("broken: {n_explored} states"));
    let is_broken = |claim: &&Claim| claim.is_always() && found.contains(claim.words());
    let all: Vec<_> = Claim::ALL.iter().filter(is_broken).copied().collect();
    assert_eq!(all, broken, "what is broken");
    assert_eq!(n_explored, n_states, "the number of states");
}

fn check_schedule(plan: Transfer, claim: Claim, schedule: &str) {
    let trace = shortest(Transfer { claims: vec![claim], ..plan }).expect("it is broken");
    let trace = trace.join("\n");
    show(&format!("{}:\n{trace}", claim.words()));
    let expected: Vec<_> = schedule.trim().lines().map(str::trim).collect();
    assert_eq!(trace, expected.join("\n"), "the shortest schedule");
}

#[test]
fn everything_on() {
    check_clean(repaired(2), &[], 279_020);
}

#[test]
fn everything_on_and_one_says_no() {
    let plan = Transfer { says_no: true, ..repaired(2) };
    check_clean(plan, &[Claim::Commits], 211_982);
}

#[test]
fn everything_on_with_loss_and_duplicates() {
    let plan = Transfer { n_losses: 1, n_duplicates: 1, ..one_run(2) };
    check_clean(plan, &[Claim::TwoTold], 49_485);
}

#[test]
fn everything_on_with_inquiries() {
    let plan = Transfer { n_inquiries: 1, n_failures: 1, ..one_run(2) };
    check_clean(plan, &[Claim::TwoTold], 101_167);
}

#[test]
fn everything_on_three_accounts() {
    check_clean(one_run(3), &[Claim::TwoTold], 21_905);
}

#[test]
fn everything_on_three_accounts_with_loss() {
    let plan = Transfer { n_losses: 1, ..one_run(3) };
    check_clean(plan, &[Claim::TwoTold], 75_081);
}

#[test]
fn everything_on_three_accounts_with_failures() {
    let plan = Transfer { n_failures: 1, n_crashes: 0, ..one_run(3) };
    check_clean(plan, &[Claim::TwoTold, Claim::InDoubt], 51_631);
}

#[test]
fn everything_on_three_accounts_two_runs() {
    let plan = Transfer { n_runs: 2, n_crashes: 0, n_rings: 0, ..one_run(3) };
    check_clean(plan, &[Claim::Aborts, Claim::LateVote, Claim::InDoubt], 4_222);
}

/// Agreement, validity, stability, one answer: what deciding twice costs.
const DECIDED_TWICE: [Claim; 4] =
    [Claim::Agreement, Claim::Validity, Claim::Stability, Claim::SameTold];

#[test]
fn write_once_decision_off_decides_twice() {
    let plan = Transfer { n_crashes: 0, n_rings: 0, ..repaired(2) };
    let plan = without("write_once_decision", plan);
    check_broken(plan.clone(), &DECIDED_TWICE, 14_533);
    check_schedule(
        plan,
        Claim::SameTold,
        "
        a caller runs it
        a caller runs it
        arrives: prepare +10 to a in round 1
        arrives: prepare +10 to a in round 2
        arrives: prepare -10 to b in round 1
        fails: prepare -10 to b in round 2
        arrives: yes from a
        arrives: yes from a
        arrives: yes from b
    ",
    );
}

#[test]
fn alarm_records_abort_first_off_splits() {
    let plan = without("alarm_records_abort_first", repaired(2));
    check_broken(plan.clone(), &DECIDED_TWICE, 596_067);
    check_schedule(
        plan,
        Claim::Agreement,
        "
        a caller runs it
        arrives: prepare +10 to a in round 1
        arrives: prepare -10 to b in round 1
        arrives: yes from a
        the alarm rings
        arrives: abort to a in round 2
        arrives: yes from b
    ",
    );
}

#[test]
fn alarm_with_preparing_off_is_stuck() {
    let plan = without("alarm_with_preparing", repaired(2));
    check_broken(plan.clone(), &[Claim::NobodyStuck], 154_173);
    check_schedule(
        plan,
        Claim::NobodyStuck,
        "
        a caller runs it
        arrives: prepare +10 to a in round 1
        fails: prepare -10 to b in round 1
        the coordinator crashes
        arrives: yes from a
    ",
    );
}

#[test]
fn abort_tombstone_off_leaves_a_hold() {
    let plan = without("abort_tombstone", repaired(2));
    check_broken(plan.clone(), &[Claim::NothingLeft], 255_375);
    check_schedule(
        plan,
        Claim::NothingLeft,
        "
        a caller runs it
        the alarm rings
        arrives: abort to a in round 2
        arrives: prepare +10 to a in round 1
        arrives: abort to b in round 2
        arrives: abort · unknown from a
        arrives: abort · unknown from b
    ",
    );
}

#[test]
fn typed_acks_off_breaks_nothing_here() {
    check_broken(without("typed_acks", repaired(2)), &[], 221_818);
}

#[test]
fn raise_fence_off_breaks_nothing() {
    check_broken(without("raise_fence", repaired(2)), &[], 199_274);
}

#[test]
fn atomic_phase_and_alarm_off_breaks_nothing_more() {
    check_broken(without("atomic_phase_and_alarm", repaired(2)), &[], 833_599);
}

/// K7: without the other alarm it is this rule that keeps everybody from being stuck.
#[test]
fn neither_alarm_nor_atomic_is_stuck_after_the_decision() {
    let plan = without("atomic_phase_and_alarm", one_run(2));
    let plan = Transfer { n_crashes: 1, n_rings: 0, ..without("alarm_with_preparing", plan) };
    check_broken(plan, &[Claim::NobodyStuck], 45);
}

/// N12: with one caller and no crash the paper's code is safe under failed calls.
#[test]
fn published_is_safe_with_one_run_and_no_crash() {
    let rules = TwoPhaseRules::published();
    let plan = Transfer { rules, n_crashes: 0, n_rings: 0, n_failures: 2, ..one_run(2) };
    check_broken(plan, &[], 180);
}

#[test]
fn published_breaks_nearly_everything() {
    let rules = TwoPhaseRules::published();
    let plan = Transfer { rules, n_crashes: 0, ..repaired(2) };
    let broken = [
        Claim::Agreement,
        Claim::Validity,
        Claim::Stability,
        Claim::NothingLeft,
        Claim::SameTold,
        Claim::ToldWhatIsDecided,
    ];
    check_broken(plan, &broken, 843_065);
    let plan = Transfer { rules, ..one_run(2) };
    check_schedule(
        plan,
        Claim::NobodyStuck,
        "
        a caller runs it
        arrives: prepare +10 to a in round 1
        arrives: prepare -10 to b in round 1
        arrives: yes from a
        arrives: yes from b
        the coordinator crashes
    ",
    );
}
