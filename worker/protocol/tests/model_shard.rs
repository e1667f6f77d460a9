//! Keys move from one shard to another while clients write, every schedule explored.
//!
//! Two clients, two shards, a mover; requests are late, lost, repeated or overtake one
//! another; replies are lost; a client learns of the new map early, late, or from the old
//! shard. With everything on nothing breaks; with one rule off:
//!
//! | off | broken | in words |
//! |---|---|---|
//! | `atomic_apply` | effects in number order, no lost number, no effect after the seal, … | A2, A3: the number first and the effect when it likes, or never; what the seal has answered is not all |
//! | `remember_op_ids` | one effect per operation, the outcome is learnt | A4: the reply is lost, the operation is sent again and done again |
//! | `check_map_epoch` | one shard per key, nothing is lost in the move | A6: the new shard is written before the old one is sealed, and then overwritten |
//!
//! One thing no rule can do for the client: an operation whose answer it missed must be
//! asked about where it was sent, until that shard has refused it. A client that follows
//! the new map blindly does it twice. And "not yet" is no refusal: a shard behind the
//! client's map may still open for it (`simulation.rs` found that one).

mod model;

use std::collections::BTreeSet;

use model::shards::{Claim, Move};
use model::{explore, shortest, show};
use protocol::rules::{RuleValue, Rules};
use protocol::shard::ShardRules;

fn repaired(n_ops: u8) -> Move {
    Move {
        rules: ShardRules::repaired(),
        n_ops,
        n_resends: 1,
        n_crashes: 1,
        moves_blindly: false,
        claims: Claim::ALL.to_vec(),
    }
}

fn repaired_without(rule: &str) -> Move {
    let mut plan = repaired(1);
    plan.rules.set(rule, &RuleValue::Switch(false)).expect("a rule of the shard");
    plan
}

fn check_clean(plan: Move, n_states: usize) {
    let (found, n_explored) = explore(plan);
    show(&format!("clean: {n_explored} states"));
    let possible: BTreeSet<_> =
        Claim::ALL.iter().filter(|claim| !claim.is_always()).map(|claim| claim.words()).collect();
    assert_eq!(found, possible, "nothing may break, and all this must be possible");
    assert_eq!(n_explored, n_states, "the number of states");
}

fn check_all_broken(plan: Move, broken: &[Claim]) {
    let (found, _) = explore(plan);
    let all: Vec<_> = Claim::ALL
        .iter()
        .copied()
        .filter(|claim| claim.is_always() && found.contains(claim.words()))
        .collect();
    assert_eq!(all, broken, "what is broken");
}

fn check_schedule(plan: Move, claim: Claim, schedule: &str) {
    let trace = shortest(Move { claims: vec![claim], ..plan }).expect("it is broken").join("\n");
    let n_steps = trace.matches('\n').count() + 1;
    show(&format!("{}: {n_steps} steps\n{trace}", claim.words()));
    let expected: Vec<_> = schedule.trim().lines().map(str::trim).collect();
    assert_eq!(trace, expected.join("\n"), "the shortest schedule");
}

#[test]
fn everything_on() {
    check_clean(repaired(1), 7_133);
}

#[test]
fn everything_on_two_operations_each() {
    check_clean(repaired(2), 44_619);
}

#[test]
fn everything_on_two_requests_sent_twice() {
    check_clean(Move { n_resends: 2, ..repaired(2) }, 243_889);
}

#[test]
fn a_client_that_moves_blindly_does_it_twice() {
    let plan = Move { moves_blindly: true, ..repaired(1) };
    check_all_broken(plan.clone(), &[Claim::OneEffectPerOpId]);
    check_schedule(
        plan,
        Claim::OneEffectPerOpId,
        "
        A sends
        A learns the new map
        A sends
        the mover seals
        arrives: A op 1 at old, unheard
        arrives: seal
        the mover opens
        arrives: open with 1
        arrives: A op 1 at new
    ",
    );
}

const NOT_ATOMIC: [Claim; 7] = [
    Claim::OneOperationPerNumber,
    Claim::EffectsInNumberOrder,
    Claim::NoLostNumber,
    Claim::OneEffectPerOpId,
    Claim::OneShardPerKey,
    Claim::NoEffectAfterSeal,
    Claim::NothingLost,
];

#[test]
fn atomic_apply_off_breaks_this() {
    check_all_broken(repaired_without("atomic_apply"), &NOT_ATOMIC);
}

#[test]
fn atomic_apply_off_effects_out_of_order() {
    check_schedule(
        repaired_without("atomic_apply"),
        Claim::EffectsInNumberOrder,
        "
        A sends
        B sends
        arrives: A op 1 at old
        arrives: B op 1 at old
        lands: B op 1 at old as 2
        lands: A op 1 at old as 1
    ",
    );
}

#[test]
fn atomic_apply_off_a_number_is_lost() {
    check_schedule(
        repaired_without("atomic_apply"),
        Claim::NoLostNumber,
        "
        A sends
        arrives: A op 1 at old
        the old shard crashes
    ",
    );
}

#[test]
fn atomic_apply_off_an_effect_after_the_seal() {
    check_schedule(
        repaired_without("atomic_apply"),
        Claim::NoEffectAfterSeal,
        "
        A sends
        the mover seals
        arrives: A op 1 at old
        arrives: seal
        lands: A op 1 at old as 1
    ",
    );
}

#[test]
fn remember_op_ids_off_does_it_twice() {
    let plan = repaired_without("remember_op_ids");
    let broken = [Claim::OneOperationPerNumber, Claim::OneEffectPerOpId, Claim::OutcomeLearnt];
    check_all_broken(plan.clone(), &broken);
    check_schedule(
        plan,
        Claim::OneEffectPerOpId,
        "
        A sends
        again: A op 1 at old
        arrives: A op 1 at old
        arrives: A op 1 at old, unheard
    ",
    );
}

#[test]
fn check_map_epoch_off_writes_at_both() {
    let plan = repaired_without("check_map_epoch");
    check_all_broken(plan.clone(), &[Claim::OneShardPerKey, Claim::NothingLost]);
    check_schedule(
        plan,
        Claim::OneShardPerKey,
        "
        A sends
        B learns the new map
        B sends
        arrives: A op 1 at old
        arrives: B op 1 at new
    ",
    );
}

/// The paper's code: everything breaks.
#[test]
fn published_breaks_everything() {
    let plan = Move { rules: ShardRules::published(), ..repaired(1) };
    let always = Claim::ALL.iter().copied().filter(|claim| claim.is_always());
    check_all_broken(plan, &always.collect::<Vec<_>>());
}
