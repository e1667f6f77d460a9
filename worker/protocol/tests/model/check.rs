//! The two verdicts of a model test: clean, or broken in exactly these ways.

use std::collections::BTreeSet;

use protocol::fence::FenceRules;
use protocol::lease::LeaseRules;
use protocol::rules::{RuleValue, Rules};

use super::claims::Claim;
use super::client::Plan;
use super::system::Lab;
use super::{explore, shortest, show};

/// Everything on, with one rule off or none (`""`).
pub fn repaired_without<R: Rules>(rule: &str) -> R {
    let mut rules = R::repaired();
    if !rule.is_empty() {
        rules.set(rule, &RuleValue::Switch(false)).expect("a rule of this machine");
    }
    rules
}

/// A plan with every measure on.
pub fn repaired(plan: Plan) -> Lab {
    let claims = Claim::ALL.to_vec();
    Lab { plan, lease: LeaseRules::repaired(), fence: FenceRules::repaired(), claims }
}

/// The paper's code, and the paper's client, which knows of no claim.
pub fn published(plan: Plan) -> Lab {
    let plan = Plan { claims: false, ..plan };
    Lab { lease: LeaseRules::published(), fence: FenceRules::published(), ..repaired(plan) }
}

/// Explores every state: what is broken, what was shown to be possible, how many states.
pub fn verdict(lab: Lab) -> (Vec<Claim>, Vec<Claim>, usize) {
    let (found, n_states) = explore(lab);
    let found: Vec<_> = Claim::ALL.iter().copied().filter(|c| found.contains(c.words())).collect();
    let (broken, shown) = found.into_iter().partition(|claim| claim.is_always());
    (broken, shown, n_states)
}

/// Nothing is broken in any state, all this is possible, and there are so many states.
pub fn check_clean(lab: Lab, possible: &[Claim], n_states: usize) {
    let (broken, shown, n_explored) = verdict(lab);
    let shown: BTreeSet<_> = shown.into_iter().collect();
    show(&format!("clean: {n_explored} states"));
    assert_eq!(broken, [], "nothing may break");
    assert_eq!(shown, possible.iter().copied().collect(), "what is possible");
    assert_eq!(n_explored, n_states, "the number of states");
}

/// Exactly this is broken over all states.
pub fn check_all_broken(lab: Lab, broken: &[Claim]) {
    let (all_broken, ..) = verdict(lab);
    let all: BTreeSet<_> = all_broken.into_iter().collect();
    assert_eq!(all, broken.iter().copied().collect(), "what is broken");
}

/// Exactly this is broken over all states, and the shortest schedule that breaks the first
/// of them is this one.
pub fn check_broken(lab: Lab, broken: &[Claim], schedule: &str) {
    check_all_broken(lab.clone(), broken);
    let trace = shortest_schedule(lab, broken[0]).expect("what is broken has a schedule");
    let n_steps = trace.matches('\n').count() + 1;
    show(&format!("{}: {n_steps} steps\n{trace}", broken[0].words()));
    assert_eq!(trace, unindented(schedule), "the shortest schedule");
}

/// The shortest schedule that breaks this, one action a line.
pub fn shortest_schedule(lab: Lab, claim: Claim) -> Option<String> {
    Some(shortest(Lab { claims: vec![claim], ..lab })?.join("\n"))
}

fn unindented(text: &str) -> String {
    text.trim().lines().map(str::trim).collect::<Vec<_>>().join("\n")
}
