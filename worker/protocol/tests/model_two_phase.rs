mod model;

use std::collections::BTreeSet;

use model::two_phase::{Claim, Transfer};
use model::{explore, shortest, show};
use protocol::rules::{RuleValue, Rules};
use protocol::transaction::TwoPhaseRules;

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

#[test]
fn probe() {
    let t = std::time::Instant::now();
    for (label, plan) in [
        ("2", repaired(2)),
        ("2no", Transfer { says_no: true, ..repaired(2) }),
        ("2 loss dup", Transfer { n_losses: 1, n_duplicates: 1, n_failures: 0, n_crashes: 1, ..repaired(2) }),
        ("2 inq", Transfer { n_inquiries: 1, ..repaired(2) }),
        ("3 nofail", Transfer { n_failures: 0, n_runs: 1, ..repaired(3) }),
        ("3 fail", Transfer { n_failures: 1, n_runs: 1, n_crashes: 0, ..repaired(3) }),
    ] {
        let (found, n) = explore(plan);
        println!("{label}: {n} {found:?} {:?}", t.elapsed());
    }
    for rule in ["", "write_once_decision", "alarm_records_abort_first", "alarm_with_preparing", "abort_tombstone", "typed_acks", "raise_fence", "atomic_phase_and_alarm"] {
        let mut plan = repaired(2);
        if !rule.is_empty() { plan.rules.set(rule, &RuleValue::Switch(false)).unwrap(); }
        let (found, n) = explore(plan);
        let broken: Vec<_> = Claim::ALL.iter().filter(|c| c.is_always() && found.contains(c.words())).collect();
        println!("off {rule}: {n} {broken:?} {:?}", t.elapsed());
    }
}
