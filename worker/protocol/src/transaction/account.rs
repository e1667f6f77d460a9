//! The account: a participant that promises money and then waits to be told.
//!
//! Invariant (repaired): no promise exceeds what is there, a transaction ends here in one
//! way only, and after a Yes the account decides nothing alone: it asks its coordinator, or
//! a person decides for it and both facts are kept.
//!
//! What it does not do: it does not isolate. Between the commits of two legs a reader sees
//! money missing (N11); [`crate::invariant`] counts what is under way.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::message::{Answer, Message, NoReason, Vote};
use super::{Decision, Reason, TwoPhaseRules, pause_ms};
use crate::ids::{MAX_SAFE_INTEGER, Name, NodeId, ObjectKind, Value};
use crate::machine::{Effect, Effects, Machine};
use crate::trace::{self, ObjectRecord, TraceKind, decided};

mod tables;
#[cfg(test)]
mod tests;

/// How many transactions an account remembers at once; one more is voted down.
pub const HOLDS_MAX: usize = 64;

/// How long a finished transaction is remembered after it may be forgotten, in ms. Longer
/// than a message is delayed; one that a person holds longer finds nothing here (P9).
pub const RETENTION_MS: u64 = 60_000;

/// The first balance of an account: 0 to 2^53 − 1.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OpenAccount {
    /// What is in it.
    pub balance: crate::ids::Count,
}

/// Decides for an account that is in doubt.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResolveHold {
    /// The transaction.
    pub transaction: Name,
    /// What to do with its hold.
    pub decision: Decision,
    /// Why, for the log.
    pub reason: Reason,
}

/// What can be asked of the account.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AccountInput {
    /// Opens it.
    Open(OpenAccount),
    /// A person decides.
    Resolve(ResolveHold),
    /// A message of this transaction's coordinator.
    Received(Name, Message),
    /// An inquiry did not reach this transaction's coordinator.
    Undelivered(Name),
    /// Time has passed.
    Tick,
    /// A person rings: every hold in doubt is asked about, due or not.
    InquireNow,
}

/// What the account answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum AccountReply {
    /// It is open now.
    Opened {
        /// With this in it.
        balance: i64,
    },
    /// It was open, or the hold had ended that way.
    Already {
        /// What is in it.
        balance: i64,
    },
    /// The hold has ended as the person said. If the coordinator decides otherwise, the log
    /// says `mixed`.
    Resolved {
        /// What is in the account now.
        balance: i64,
    },
    /// The hold had ended in the other way.
    Conflict {
        /// How it had ended.
        decision: Decision,
    },
    /// There is no such hold.
    Unknown,
}

/// How far a hold is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum HoldState {
    /// In doubt: voted Yes, not told yet.
    Prepared,
    /// Done.
    Committed,
    /// Dropped, or never taken.
    Aborted,
}

/// What a person decided for a hold.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Heuristic {
    /// What was decided.
    pub decision: Decision,
    /// Why.
    pub reason: String,
    /// The coordinator has decided otherwise.
    pub mixed: bool,
}

/// What an account knows of one transaction.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hold {
    /// How far it is.
    pub state: HoldState,
    /// Which leg of the transaction it is.
    pub leg: u64,
    /// What it adds to the balance.
    pub delta: i64,
    /// The highest fence of the coordinator that counts here.
    pub fence: u64,
    /// Since when, by the account's clock, in ms.
    pub since_ms: u64,
    /// How often the coordinator was asked.
    pub n_inquiries: u64,
    /// When it is asked next.
    pub inquire_at_ms: Option<u64>,
    /// Why the last inquiry failed.
    pub last_error: Option<String>,
    /// What a person decided.
    pub heuristic: Option<Heuristic>,
    /// When a finished hold is dropped.
    pub forget_at_ms: Option<u64>,
}

/// What survives a crash.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AccountRecord {
    /// What is in it; `None` before it is opened.
    pub balance: Option<i64>,
    /// What it knows of each transaction.
    pub holds: BTreeMap<Name, Hold>,
}

impl AccountRecord {
    /// What was promised away and not yet taken.
    pub fn reserved(&self) -> i64 {
        let prepared = self.holds.values().filter(|hold| hold.state == HoldState::Prepared);
        prepared.map(|hold| hold.delta.min(0)).sum::<i64>().saturating_neg()
    }

    /// What can be promised: the balance less what is reserved. Promised credits do not
    /// count, since they may never come (P1).
    pub fn available(&self) -> i64 {
        self.balance.unwrap_or(0).saturating_sub(self.reserved())
    }

    /// The transactions that the account waits for.
    pub fn in_doubt(&self) -> impl Iterator<Item = (&Name, &Hold)> {
        self.holds.iter().filter(|(_, hold)| hold.state == HoldState::Prepared)
    }
}

/// The machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Account {
    record: AccountRecord,
    rules: TwoPhaseRules,
}

#[derive(Default)]
struct Out {
    reply: Option<AccountReply>,
    happened: Vec<(TraceKind, Option<trace::Decision>)>,
    /// To the coordinator of that name.
    sends: Vec<(Name, Message)>,
}

impl Machine for Account {
    type Record = AccountRecord;
    type Rules = TwoPhaseRules;
    type Input = AccountInput;
    type Reply = AccountReply;

    const KIND: ObjectKind = ObjectKind::Account;

    fn traced(record: &AccountRecord) -> ObjectRecord {
        ObjectRecord::Account(record.clone())
    }

    fn restore(record: Option<AccountRecord>, rules: TwoPhaseRules) -> Self {
        Self { record: record.unwrap_or_default(), rules }
    }

    fn record(&self) -> &AccountRecord {
        &self.record
    }

    fn rules(&self) -> TwoPhaseRules {
        self.rules
    }

    fn set_rules(&mut self, rules: TwoPhaseRules) {
        self.rules = rules;
    }

    fn tick() -> AccountInput {
        AccountInput::Tick
    }

    fn forced_tick() -> AccountInput {
        AccountInput::InquireNow
    }

    fn received(from: &NodeId, message: Message) -> Option<AccountInput> {
        let NodeId::Object(ObjectKind::Transaction, name) = from else { return None };
        Some(AccountInput::Received(name.clone(), message))
    }

    fn undelivered(to: &NodeId, message: &Message, _why: &str) -> Option<AccountInput> {
        let NodeId::Object(ObjectKind::Transaction, name) = to else { return None };
        matches!(message, Message::Inquire { .. }).then(|| AccountInput::Undelivered(name.clone()))
    }

    fn step(&mut self, now_ms: u64, input: AccountInput, effects: &mut Effects<Self>) {
        let before = self.record.clone();
        let mut out = Out::default();
        match input {
            AccountInput::Open(open) => self.open(&open, &mut out),
            AccountInput::Resolve(resolve) => {
                out.reply = Some(self.resolve_for_caller(resolve, &mut out));
            }
            AccountInput::Received(txn, message) => self.receive(now_ms, txn, message, &mut out),
            AccountInput::Undelivered(txn) => {
                if let Some(hold) = self.record.holds.get_mut(&txn) {
                    hold.last_error = Some("the coordinator could not be reached".to_owned());
                }
            }
            AccountInput::Tick => self.tick_holds(now_ms, now_ms, &mut out),
            AccountInput::InquireNow => self.tick_holds(now_ms, u64::MAX, &mut out),
        }
        if self.record != before {
            effects.push(Effect::Persist(self.record.clone()));
        }
        effects.extend(out.reply.map(Effect::Reply));
        effects.extend(out.happened.into_iter().map(|(kind, why)| Effect::Record(kind, why)));
        effects.extend(out.sends.into_iter().map(|(txn, message)| Effect::Send {
            to: NodeId::Object(ObjectKind::Transaction, txn),
            message,
        }));
    }

    fn next_deadline(&self) -> Option<u64> {
        let times = |hold: &Hold| [self.inquiry_due(hold), hold.forget_at_ms];
        self.record.holds.values().flat_map(times).flatten().min()
    }
}

impl Account {
    fn open(&mut self, open: &OpenAccount, out: &mut Out) {
        if let Some(balance) = self.record.balance {
            out.reply = Some(AccountReply::Already { balance });
            return;
        }
        let balance = open.balance.get() as i64;
        self.record.balance = Some(balance);
        out.happened.push((TraceKind::AccountOpened { balance }, None));
        out.reply = Some(AccountReply::Opened { balance });
    }

    fn receive(&mut self, now_ms: u64, txn: Name, message: Message, out: &mut Out) {
        match message {
            Message::Prepare { leg, delta, fence, attempt } => {
                let vote = self.prepare(now_ms, &txn, (leg, delta), fence, out);
                out.sends.push((txn, Message::Vote { leg, fence, attempt, vote }));
            }
            Message::Commit { fence, attempt } => {
                self.acknowledge(txn, Decision::Commit, (fence, attempt), out);
            }
            Message::Abort { fence, attempt } => {
                self.acknowledge(txn, Decision::Abort, (fence, attempt), out);
            }
            Message::Status { decision: Some(decision), fence } => {
                self.acknowledge(txn, decision, (fence, 0), out);
            }
            Message::Status { decision: None, .. } => {
                if let Some(hold) = self.record.holds.get_mut(&txn) {
                    hold.last_error = Some("the coordinator has not decided".to_owned());
                }
            }
            Message::Resolve { decision, reason } => {
                let answer = self.resolve(&txn, decision, &reason, out);
                out.sends.push((txn, Message::Resolved { decision, answer }));
            }
            Message::Forget => {
                if let Some(hold) = self.record.holds.get_mut(&txn)
                    && hold.state != HoldState::Prepared
                {
                    hold.forget_at_ms.get_or_insert(now_ms + RETENTION_MS);
                }
            }
            // What only a coordinator is told.
            Message::Vote { .. }
            | Message::Ack { .. }
            | Message::Resolved { .. }
            | Message::Inquire { .. } => {}
        }
    }

    // ---- phase one ---------------------------------------------------------------------

    fn prepare(
        &mut self,
        now_ms: u64,
        txn: &Name,
        digest: (u64, i64),
        fence: u64,
        out: &mut Out,
    ) -> Vote {
        let (leg, delta) = digest;
        let (vote, why) = match self.record.holds.get(txn).cloned() {
            Some(hold) => self.prepare_again(txn, &hold, digest, fence),
            None => self.prepare_first(now_ms, txn, digest, fence),
        };
        let kind = match vote {
            Vote::Yes => TraceKind::Prepared {
                transaction: txn.clone(),
                leg,
                delta,
                available: self.record.available(),
            },
            Vote::No(reason) => TraceKind::PrepareRefused {
                transaction: txn.clone(),
                leg,
                delta,
                reason: reason.as_str().to_owned(),
                available: self.record.available(),
            },
        };
        out.happened.push((kind, why));
        vote
    }

    fn prepare_again(
        &mut self,
        txn: &Name,
        hold: &Hold,
        digest: (u64, i64),
        fence: u64,
    ) -> (Vote, Option<trace::Decision>) {
        if fence < hold.fence {
            return (Vote::No(NoReason::StaleCoordinator), decided!("fence"));
        }
        if hold.state == HoldState::Aborted {
            return (Vote::No(NoReason::AlreadyAborted), decided!("tombstone"));
        }
        if self.rules.compare_legs {
            if digest != (hold.leg, hold.delta) {
                return (Vote::No(NoReason::OtherLeg), decided!("compare_legs"));
            }
            if hold.state == HoldState::Committed {
                return (Vote::No(NoReason::AlreadyCommitted), decided!("compare_legs"));
            }
        }
        self.raise_fence(txn, fence);
        (Vote::Yes, decided!("prepared_before"))
    }

    fn prepare_first(
        &mut self,
        now_ms: u64,
        txn: &Name,
        digest: (u64, i64),
        fence: u64,
    ) -> (Vote, Option<trace::Decision>) {
        let (leg, delta) = digest;
        if self.record.balance.is_none() {
            return (Vote::No(NoReason::NotOpened), decided!("opened"));
        }
        if self.record.holds.len() >= HOLDS_MAX || !self.fits(delta) {
            return (Vote::No(NoReason::Full), decided!("safe_range"));
        }
        let available = if self.rules.reserve_holds {
            self.record.available()
        } else {
            self.record.balance.unwrap_or(0)
        };
        let is_enough = available + delta >= 0;
        let state = if is_enough { HoldState::Prepared } else { HoldState::Aborted };
        let hold = Hold {
            state,
            leg,
            delta,
            fence,
            since_ms: now_ms,
            n_inquiries: 0,
            inquire_at_ms: is_enough.then(|| now_ms + pause_ms(2)),
            last_error: None,
            heuristic: None,
            forget_at_ms: None,
        };
        self.record.holds.insert(txn.clone(), hold);
        let vote = if is_enough { Vote::Yes } else { Vote::No(NoReason::InsufficientFunds) };
        (vote, decided!("reserve_holds"))
    }

    /// Whether the balance stays in the safe range even if every promised credit comes.
    fn fits(&self, delta: i64) -> bool {
        let credits: i128 =
            self.record.in_doubt().map(|(_, hold)| i128::from(hold.delta.max(0))).sum();
        let most =
            i128::from(self.record.balance.unwrap_or(0)) + credits + i128::from(delta.max(0));
        most <= i128::from(MAX_SAFE_INTEGER)
    }

    fn raise_fence(&mut self, txn: &Name, fence: u64) {
        if let (true, Some(hold)) = (self.rules.raise_fence, self.record.holds.get_mut(txn)) {
            hold.fence = hold.fence.max(fence);
        }
    }

    // ---- phase two ---------------------------------------------------------------------

    fn acknowledge(
        &mut self,
        txn: Name,
        decision: Decision,
        (fence, attempt): (u64, u64),
        out: &mut Out,
    ) {
        let answer = match decision {
            Decision::Commit => self.commit(&txn, fence, out),
            Decision::Abort => self.abort(&txn, fence, out),
        };
        self.meet_heuristic(&txn, decision, out);
        out.sends.push((txn, Message::Ack { decision, attempt, answer }));
    }

    fn commit(&mut self, txn: &Name, fence: u64, out: &mut Out) -> Answer {
        let refused = |answer: Answer| TraceKind::DecisionRefused {
            transaction: txn.clone(),
            decision: Decision::Commit,
            answer,
        };
        let Some(hold) = self.record.holds.get(txn) else {
            out.happened.push((refused(Answer::Unknown), decided!("typed_acks")));
            return Answer::Unknown;
        };
        let answer = match hold.state {
            HoldState::Committed => return Answer::Already,
            HoldState::Aborted => Answer::Aborted,
            HoldState::Prepared if fence < hold.fence => Answer::Stale,
            HoldState::Prepared => Answer::Applied,
        };
        if answer == Answer::Applied {
            self.raise_fence(txn, fence);
            self.end_hold(txn, Decision::Commit, out);
        } else {
            out.happened.push((refused(answer), decided!("typed_acks")));
        }
        answer
    }

    fn abort(&mut self, txn: &Name, fence: u64, out: &mut Out) -> Answer {
        let Some(hold) = self.record.holds.get(txn) else {
            self.leave_tombstone(txn, fence, out);
            return Answer::Unknown;
        };
        let answer = match hold.state {
            _ if fence < hold.fence => Answer::Stale,
            HoldState::Aborted => return Answer::Already,
            HoldState::Committed => Answer::Committed,
            HoldState::Prepared => Answer::Applied,
        };
        if answer == Answer::Applied {
            self.raise_fence(txn, fence);
            self.end_hold(txn, Decision::Abort, out);
        } else {
            let transaction = txn.clone();
            let decision = Decision::Abort;
            let kind = TraceKind::DecisionRefused { transaction, decision, answer };
            out.happened.push((kind, decided!("typed_acks")));
        }
        answer
    }

    /// Without it a prepare that is still on its way would be held for a transaction that
    /// is over (N7).
    fn leave_tombstone(&mut self, txn: &Name, fence: u64, out: &mut Out) {
        if !self.rules.abort_tombstone {
            return;
        }
        if self.record.holds.len() >= HOLDS_MAX {
            return;
        }
        let hold = Hold {
            state: HoldState::Aborted,
            leg: 0,
            delta: 0,
            fence,
            since_ms: 0,
            n_inquiries: 0,
            inquire_at_ms: None,
            last_error: None,
            heuristic: None,
            forget_at_ms: None,
        };
        self.record.holds.insert(txn.clone(), hold);
        let kind = TraceKind::TombstoneLeft { transaction: txn.clone() };
        out.happened.push((kind, decided!("abort_tombstone")));
    }

    /// A prepared hold ends, in one way and for good.
    fn end_hold(&mut self, txn: &Name, decision: Decision, out: &mut Out) {
        let Some(hold) = self.record.holds.get_mut(txn) else { return };
        let delta = hold.delta;
        hold.inquire_at_ms = None;
        hold.last_error = None;
        let transaction = txn.clone();
        let kind = match decision {
            Decision::Commit => {
                hold.state = HoldState::Committed;
                let balance = self.record.balance.unwrap_or(0) + delta;
                self.record.balance = Some(balance);
                TraceKind::HoldCommitted { transaction, delta, balance }
            }
            Decision::Abort => {
                hold.state = HoldState::Aborted;
                TraceKind::HoldAborted { transaction, delta, available: self.record.available() }
            }
        };
        out.happened.push((kind, None));
    }

    // ---- in doubt ----------------------------------------------------------------------

    fn inquiry_due(&self, hold: &Hold) -> Option<u64> {
        if self.rules.ask_coordinator { hold.inquire_at_ms } else { None }
    }

    fn tick_holds(&mut self, now_ms: u64, due_by_ms: u64, out: &mut Out) {
        let is_over = |hold: &Hold| hold.forget_at_ms.is_some_and(|at_ms| at_ms <= now_ms);
        self.record.holds.retain(|_, hold| !is_over(hold));
        let is_due = |hold: &Hold| self.inquiry_due(hold).is_some_and(|at_ms| at_ms <= due_by_ms);
        let due: Vec<_> = self
            .record
            .in_doubt()
            .filter(|(_, hold)| is_due(hold))
            .map(|(txn, _)| txn.clone())
            .collect();
        for txn in due {
            let Some(hold) = self.record.holds.get_mut(&txn) else { continue };
            hold.n_inquiries += 1;
            hold.inquire_at_ms = Some(now_ms + pause_ms(hold.n_inquiries + 2));
            let fence = hold.fence;
            let in_doubt_ms = now_ms.saturating_sub(hold.since_ms);
            let kind = TraceKind::DecisionInquired { transaction: txn.clone(), in_doubt_ms };
            out.happened.push((kind, decided!("ask_coordinator")));
            out.sends.push((txn, Message::Inquire { fence }));
        }
    }

    // ---- decided by hand ---------------------------------------------------------------

    fn resolve_for_caller(&mut self, resolve: ResolveHold, out: &mut Out) -> AccountReply {
        let ResolveHold { transaction, decision, reason } = resolve;
        let answer = self.resolve(&transaction, decision, &reason, out);
        let balance = self.record.balance.unwrap_or(0);
        match answer {
            Answer::Applied => AccountReply::Resolved { balance },
            Answer::Already => AccountReply::Already { balance },
            Answer::Aborted => AccountReply::Conflict { decision: Decision::Abort },
            Answer::Committed => AccountReply::Conflict { decision: Decision::Commit },
            Answer::Unknown | Answer::Stale => AccountReply::Unknown,
        }
    }

    /// A person ends a hold. That it was a person, and why, is kept.
    fn resolve(
        &mut self,
        txn: &Name,
        decision: Decision,
        reason: &Reason,
        out: &mut Out,
    ) -> Answer {
        let Some(hold) = self.record.holds.get_mut(txn) else { return Answer::Unknown };
        match (hold.state, decision) {
            (HoldState::Prepared, _) => {}
            (HoldState::Committed, Decision::Commit) | (HoldState::Aborted, Decision::Abort) => {
                return Answer::Already;
            }
            (HoldState::Committed, Decision::Abort) => return Answer::Committed,
            (HoldState::Aborted, Decision::Commit) => return Answer::Aborted,
        }
        let reason = reason.as_str().to_owned();
        hold.heuristic = Some(Heuristic { decision, reason: reason.clone(), mixed: false });
        let kind = TraceKind::HoldResolved { transaction: txn.clone(), decision, reason };
        out.happened.push((kind, decided!("by_hand")));
        self.end_hold(txn, decision, out);
        Answer::Applied
    }

    /// The coordinator's decision comes after a person's.
    fn meet_heuristic(&mut self, txn: &Name, decision: Decision, out: &mut Out) {
        let Some(hold) = self.record.holds.get_mut(txn) else { return };
        let Some(heuristic) = &mut hold.heuristic else { return };
        if heuristic.decision == decision || heuristic.mixed {
            return;
        }
        heuristic.mixed = true;
        let (by_hand, transaction) = (heuristic.decision, Some(txn.clone()));
        let kind = TraceKind::MixedFound { transaction, account: None, decision, by_hand };
        out.happened.push((kind, decided!("by_hand")));
    }
}

/// The delta of a prepare as a checked number; what crosses the network is not trusted.
pub(crate) fn is_safe(message: &Message) -> bool {
    match message {
        Message::Prepare { leg, delta, fence, attempt } => {
            Value::try_from(*delta).is_ok()
                && [leg, fence, attempt].iter().all(|number| **number <= MAX_SAFE_INTEGER)
        }
        _ => true,
    }
}
