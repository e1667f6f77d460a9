//! What must hold of transactions: the four of atomic commit, and of money.

use std::collections::{BTreeMap, BTreeSet};

use super::Invariant;
use crate::ids::{Name, NodeId, ObjectKind};
use crate::trace::{TraceEvent, TraceKind};
use crate::transaction::Decision;

/// A broken invariant and the sentence that says how.
pub(super) type Broken = (Invariant, String);

/// What the log has told about each transaction.
#[derive(Clone, Debug, Default)]
pub(super) struct Transactions {
    known: BTreeMap<Name, Transaction>,
}

#[derive(Clone, Debug, Default)]
struct Transaction {
    /// The legs of the latest round.
    legs: Vec<(Name, i64)>,
    /// What each account prepared last.
    prepared: BTreeMap<Name, i64>,
    /// Which of them wait.
    waiting: BTreeSet<Name>,
    committed: BTreeMap<Name, i64>,
    aborted: BTreeSet<Name>,
    decision: Option<Decision>,
    told: BTreeSet<String>,
    done: bool,
    is_split: bool,
    has_lost_money: bool,
}

impl Transactions {
    pub(super) fn observe(&mut self, event: &TraceEvent) -> Vec<Broken> {
        match &event.node {
            NodeId::Object(ObjectKind::Account, account) => self.at_account(account, &event.kind),
            NodeId::Object(ObjectKind::Transaction, name) => {
                self.known.entry(name.clone()).or_default().at_coordinator(name, &event.kind)
            }
            _ => Vec::new(),
        }
    }

    fn at_account(&mut self, account: &Name, kind: &TraceKind) -> Vec<Broken> {
        let (name, decision) = match kind {
            TraceKind::Prepared { transaction, delta, .. } => {
                let txn = self.known.entry(transaction.clone()).or_default();
                return txn.prepare(transaction, account, *delta);
            }
            TraceKind::HoldCommitted { transaction, .. } => (transaction, Decision::Commit),
            TraceKind::HoldAborted { transaction, .. }
            | TraceKind::TombstoneLeft { transaction } => (transaction, Decision::Abort),
            _ => return Vec::new(),
        };
        let txn = self.known.entry(name.clone()).or_default();
        txn.waiting.remove(account);
        let mut broken = Vec::new();
        match (decision, kind) {
            (Decision::Commit, TraceKind::HoldCommitted { delta, balance, .. }) => {
                txn.committed.insert(account.clone(), *delta);
                broken.extend(txn.other_leg(name, account, *delta));
                if *balance < 0 {
                    let sentence = format!("{account} has {balance} after {name}.");
                    broken.push((Invariant::NoOverdraft, sentence));
                }
            }
            _ => {
                txn.aborted.insert(account.clone());
            }
        }
        broken.extend(txn.split(name));
        broken.extend(txn.lost_money(name));
        broken
    }
}

impl Transaction {
    fn prepare(&mut self, name: &Name, account: &Name, delta: i64) -> Vec<Broken> {
        self.prepared.insert(account.clone(), delta);
        let is_over = self.committed.contains_key(account) || self.aborted.contains(account);
        if is_over {
            return Vec::new();
        }
        self.waiting.insert(account.clone());
        if !self.done {
            return Vec::new();
        }
        let sentence = format!("{account} holds its leg of {name}, which is over.");
        vec![(Invariant::NothingLeftPrepared, sentence)]
    }

    fn at_coordinator(&mut self, name: &Name, kind: &TraceKind) -> Vec<Broken> {
        match kind {
            TraceKind::PreparingRecorded { legs, .. } => {
                self.legs = legs.iter().map(|leg| (leg.account.clone(), leg.delta.get())).collect();
                self.done = false;
                Vec::new()
            }
            TraceKind::DecisionRecorded { decision, .. } => self.decide(name, *decision),
            TraceKind::TransactionDone { decision } => {
                let mut broken = self.change(name, *decision);
                self.done = true;
                if let Some(account) = self.waiting.first() {
                    let sentence = format!("{name} is over, and {account} still holds its leg.");
                    broken.push((Invariant::NothingLeftPrepared, sentence));
                }
                broken.extend(self.split(name));
                broken.extend(self.lost_money(name));
                broken
            }
            TraceKind::OutcomeTold { outcome } => {
                let is_other = self.told.iter().any(|other| other != outcome);
                if !self.told.insert(outcome.clone()) || !is_other {
                    return Vec::new();
                }
                let sentence = format!("One caller of {name} was told the opposite of another.");
                vec![(Invariant::SameOutcomeTold, sentence)]
            }
            _ => Vec::new(),
        }
    }

    fn decide(&mut self, name: &Name, decision: Decision) -> Vec<Broken> {
        let mut broken = self.change(name, decision);
        let has_not_prepared =
            |(account, delta): &&(Name, i64)| self.prepared.get(account) != Some(delta);
        if let (Decision::Commit, Some((account, delta))) =
            (decision, self.legs.iter().find(has_not_prepared))
        {
            let sentence = format!("{name} commits, and {account} never held {delta:+} for it.");
            broken.push((Invariant::Validity, sentence));
        }
        broken.extend(self.split(name));
        broken
    }

    /// A decision after another one.
    fn change(&mut self, name: &Name, decision: Decision) -> Vec<Broken> {
        let before = self.decision.replace(decision);
        let Some(before) = before.filter(|before| *before != decision) else { return Vec::new() };
        self.is_split = false;
        let sentence = format!("{name} was decided: {before}. Now it is {decision}.");
        vec![(Invariant::Stability, sentence)]
    }

    /// Legs that ended otherwise than the decision, or than each other.
    fn split(&mut self, name: &Name) -> Option<Broken> {
        let committed = self.committed.keys().next();
        let aborted = self.aborted.first();
        let sentence = match (committed, aborted, self.decision) {
            (Some(one), Some(other), _) => format!("{one} did its leg of {name}, {other} did not."),
            (Some(one), None, Some(Decision::Abort)) => {
                format!("{one} did its leg of {name}, which is aborted.")
            }
            (None, Some(one), Some(Decision::Commit)) => {
                format!("{one} dropped its leg of {name}, which is committed.")
            }
            _ => return None,
        };
        if std::mem::replace(&mut self.is_split, true) {
            return None;
        }
        Some((Invariant::Agreement, sentence))
    }

    fn other_leg(&self, name: &Name, account: &Name, delta: i64) -> Option<Broken> {
        let own = self.legs.iter().filter(|(other, _)| other == account);
        let meant: i64 = own.map(|(_, delta)| delta).sum();
        let sentence = format!("{account} did {delta:+} for {name}, whose leg is {meant:+}.");
        (meant != delta).then_some((Invariant::Validity, sentence))
    }

    /// What was taken and given, once every leg has ended.
    fn lost_money(&mut self, name: &Name) -> Option<Broken> {
        let has_ended =
            |account: &Name| self.committed.contains_key(account) || self.aborted.contains(account);
        let is_over = self.done || self.legs.iter().all(|(account, _)| has_ended(account));
        let sum: i64 = self.committed.values().sum();
        if !is_over || sum == 0 || self.has_lost_money {
            return None;
        }
        self.has_lost_money = true;
        let sentence = if sum < 0 {
            format!("{name} has taken {} and given it to nobody.", -sum)
        } else {
            format!("{name} has given {sum} and taken it from nobody.")
        };
        Some((Invariant::MoneyConserved, sentence))
    }
}
