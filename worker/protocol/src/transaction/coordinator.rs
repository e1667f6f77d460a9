//! The coordinator of one transaction: it asks, decides once, and tells everybody.
//!
//! Invariant (repaired): NONE → PREPARING → COMMIT or ABORT → DONE, never backwards, each
//! durable before anybody is told of it, and none of them without an alarm that goes on
//! from there.
//!
//! What it does not do: votes are not durable. A crash before the decision loses them, and
//! the transaction is aborted when its alarm rings, or asked for again by whoever runs it
//! again. With the rules off the coordinator is the paper's, in which an answer dies with
//! the call that waits for it: a vote or an acknowledgement counts only for the flight that
//! asked for it, and a crash ends every flight.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::message::{Answer, Message, NoReason, Vote};
use super::{Decision, Legs, Reason, TwoPhaseRules, VOTE_WITHIN_MS, pause_ms};
use crate::ids::{Name, NodeId, ObjectKind, VoteWithinMs};
use crate::machine::{Effect, Effects, Machine};
use crate::trace::{self, ObjectRecord, TraceKind, decided};

mod by_hand;
mod flight;
mod phase_two;
mod record;
#[cfg(test)]
mod tests;

use flight::{Finishing, Flight};
pub use record::{Phase, TxnLeg, TxnRecord};

/// Runs the transaction, or asks what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Run {
    /// Who gets what.
    pub legs: Legs,
    /// How long to wait for the votes; 5 s without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vote_within_ms: Option<VoteWithinMs>,
}

/// Tells a participant in doubt what to do, without waiting for the decision.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResolveLeg {
    /// The participant.
    pub account: Name,
    /// What to do.
    pub decision: Decision,
    /// Why, for the log.
    pub reason: Reason,
}

/// Goes on now, as the alarm would. It has no members.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Recover {}

/// Lets the participants forget a transaction that is over. It has no members.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ForgetTxn {}

/// What can be asked of the coordinator.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TxnInput {
    /// Runs the transaction.
    Run(Run),
    /// Does now what the alarm would do.
    Recover,
    /// Decides for one participant.
    Resolve(ResolveLeg),
    /// Lets everybody forget a transaction that is over.
    Forget,
    /// A message of this account.
    Received(Name, Message),
    /// A message did not reach this account.
    Undelivered(Name, Message),
    /// After a decision: set the alarm and tell everybody. Apart from the decision only with
    /// `atomic_phase_and_alarm` off.
    Announce {
        /// The flight that decided.
        attempt: u64,
        /// What it decided.
        decision: Decision,
    },
    /// After the alarm is off: it is done. Apart only with `atomic_phase_and_alarm` off.
    MarkDone {
        /// What is done.
        decision: Decision,
    },
    /// Time has passed.
    Tick,
}

/// What the coordinator answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum TxnReply {
    /// It is decided: every leg happens. So many have not said yet that they have (FC-12b).
    Committed {
        /// How many.
        n_pending: u64,
    },
    /// It is decided: no leg happens.
    Aborted {
        /// Why, in one word and the account: `insufficient_funds: a`.
        reason: String,
    },
    /// Nothing is decided yet. Ask again.
    InDoubt {
        /// How long it has been under way, in ms.
        age_ms: u64,
    },
    /// This transaction has other legs.
    Conflict {
        /// What differs.
        difference: String,
    },
    /// The request makes no sense here; nothing was changed.
    Refused {
        /// Why, and what to do.
        reason: String,
    },
    /// The alarm's work was done now.
    Recovering {
        /// How often the coordinator has set to work, this time included.
        attempt: u64,
    },
    /// The participant has been told; its answer will be in the log.
    Resolving {
        /// The participant.
        account: Name,
    },
    /// The participants may forget it. The coordinator still knows what was decided.
    Forgotten,
}

/// The machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TxnCoordinator {
    record: TxnRecord,
    rules: TwoPhaseRules,
    /// What is under way in memory, by the attempt that began it. A crash ends it.
    flights: BTreeMap<u64, Flight>,
}

#[derive(Default)]
struct Out {
    reply: Option<TxnReply>,
    waits_for: Option<u64>,
    answers: Vec<(u64, TxnReply)>,
    happened: Vec<(TraceKind, Option<trace::Decision>)>,
    /// To the account of that name.
    sends: Vec<(Name, Message)>,
    deferred: Option<TxnInput>,
}

impl Out {
    fn record(&mut self, kind: TraceKind, why: Option<trace::Decision>) {
        self.happened.push((kind, why));
    }
}

impl Machine for TxnCoordinator {
    type Record = TxnRecord;
    type Rules = TwoPhaseRules;
    type Input = TxnInput;
    type Reply = TxnReply;

    const KIND: ObjectKind = ObjectKind::Transaction;

    fn traced(record: &TxnRecord) -> ObjectRecord {
        ObjectRecord::Transaction(record.clone())
    }

    fn restore(record: Option<TxnRecord>, rules: TwoPhaseRules) -> Self {
        Self { record: record.unwrap_or_default(), rules, flights: BTreeMap::new() }
    }

    fn record(&self) -> &TxnRecord {
        &self.record
    }

    fn rules(&self) -> TwoPhaseRules {
        self.rules
    }

    fn set_rules(&mut self, rules: TwoPhaseRules) {
        self.rules = rules;
    }

    fn tick() -> TxnInput {
        TxnInput::Tick
    }

    fn forced_tick() -> TxnInput {
        TxnInput::Recover
    }

    fn received(from: &NodeId, message: Message) -> Option<TxnInput> {
        let NodeId::Object(ObjectKind::Account, name) = from else { return None };
        Some(TxnInput::Received(name.clone(), message))
    }

    fn undelivered(to: &NodeId, message: &Message, _why: &str) -> Option<TxnInput> {
        let NodeId::Object(ObjectKind::Account, name) = to else { return None };
        Some(TxnInput::Undelivered(name.clone(), message.clone()))
    }

    fn step(&mut self, now_ms: u64, input: TxnInput, effects: &mut Effects<Self>) {
        let before = self.record.clone();
        let mut out = Out::default();
        self.take(now_ms, input, &mut out);
        if self.record != before {
            effects.push(Effect::Persist(self.record.clone()));
        }
        effects.extend(out.reply.map(Effect::Reply));
        effects.extend(out.waits_for.map(Effect::Await));
        effects.extend(out.answers.into_iter().map(|(key, reply)| Effect::Answer(key, reply)));
        effects.extend(out.happened.into_iter().map(|(kind, why)| Effect::Record(kind, why)));
        effects.extend(out.sends.into_iter().map(|(account, message)| Effect::Send {
            to: NodeId::Object(ObjectKind::Account, account),
            message,
        }));
        effects.extend(out.deferred.map(Effect::Defer));
    }

    fn next_deadline(&self) -> Option<u64> {
        self.record.next_attempt_at_ms
    }

    fn gave_up(&self, now_ms: u64) -> Option<TxnReply> {
        let age_ms = now_ms.saturating_sub(self.record.since_ms);
        Some(self.outcome().unwrap_or(TxnReply::InDoubt { age_ms }))
    }
}

impl TxnCoordinator {
    fn take(&mut self, now_ms: u64, input: TxnInput, out: &mut Out) {
        match input {
            TxnInput::Run(run) => self.run(now_ms, &run, out),
            TxnInput::Recover => self.recover(now_ms, out),
            TxnInput::Resolve(resolve) => self.resolve(resolve, out),
            TxnInput::Forget => self.forget(out),
            TxnInput::Received(account, message) => self.receive(now_ms, account, message, out),
            TxnInput::Undelivered(account, message) => {
                self.undelivered_to(now_ms, &account, &message, out);
            }
            TxnInput::Announce { attempt, decision } => {
                self.announce(now_ms, attempt, decision, out);
            }
            TxnInput::MarkDone { decision } => self.mark_done(decision, out),
            TxnInput::Tick => {
                if self.record.next_attempt_at_ms.is_some_and(|at_ms| at_ms <= now_ms) {
                    self.activate(now_ms, out);
                }
            }
        }
    }

    /// The second of two writes that belong together. With the rule off it comes after
    /// other I/O, or never.
    fn then(&mut self, now_ms: u64, input: TxnInput, out: &mut Out) {
        if self.rules.atomic_phase_and_alarm {
            self.take(now_ms, input, out);
        } else {
            out.deferred = Some(input);
        }
    }

    /// What binds whoever comes later: the recorded phase. With the rule off, nothing does.
    fn binding(&self) -> Option<Phase> {
        if self.rules.write_once_decision { Some(self.record.phase) } else { None }
    }

    // ---- phase one ---------------------------------------------------------------------

    fn run(&mut self, now_ms: u64, run: &Run, out: &mut Out) {
        if let Some(reply) = self.refuse_legs(&run.legs, out) {
            out.reply = Some(reply);
            return;
        }
        match (self.binding(), self.record.phase) {
            (_, Phase::DoneCommit | Phase::DoneAbort) => self.answer_again(out),
            (Some(Phase::Commit | Phase::Abort), _) => {
                self.answer_again(out);
                self.activate(now_ms, out);
            }
            (Some(Phase::Preparing), _) => self.join(now_ms, out),
            _ => self.begin(now_ms, run, out),
        }
    }

    fn refuse_legs(&self, legs: &Legs, out: &mut Out) -> Option<TxnReply> {
        let legs = legs.as_slice();
        let repeated = legs.iter().enumerate().find_map(|(index, leg)| {
            legs[..index].iter().any(|other| other.account == leg.account).then_some(&leg.account)
        });
        if let (true, Some(account)) = (self.rules.reject_duplicate_legs, repeated) {
            let reason = format!("{account} has two legs: add them up");
            let outcome = "refused".to_owned();
            let kind = TraceKind::RunRefused { outcome, reason: reason.clone() };
            out.record(kind, decided!("reject_duplicate_legs"));
            return Some(TxnReply::Refused { reason });
        }
        let difference = self.record.difference(legs)?;
        if self.record.phase == Phase::None || !self.rules.compare_legs {
            return None;
        }
        let outcome = "conflict".to_owned();
        let kind = TraceKind::RunRefused { outcome, reason: difference.clone() };
        out.record(kind, decided!("compare_legs"));
        Some(TxnReply::Conflict { difference })
    }

    fn answer_again(&self, out: &mut Out) {
        let Some(reply) = self.outcome() else { return };
        out.record(told(&reply), decided!("write_once_decision"));
        out.reply = Some(reply);
    }

    /// What was decided; `None` before that.
    fn outcome(&self) -> Option<TxnReply> {
        self.record.phase.decision().map(|decision| self.outcome_of(decision))
    }

    fn outcome_of(&self, decision: Decision) -> TxnReply {
        match decision {
            Decision::Commit => TxnReply::Committed { n_pending: self.record.n_pending() },
            Decision::Abort => {
                let reason = self.record.reason.clone();
                TxnReply::Aborted { reason: reason.unwrap_or_else(|| "recovery".to_owned()) }
            }
        }
    }

    fn begin(&mut self, now_ms: u64, run: &Run, out: &mut Out) {
        self.record.begin(run.legs.as_slice(), now_ms);
        if self.rules.alarm_with_preparing {
            let within_ms = run.vote_within_ms.map_or(VOTE_WITHIN_MS, VoteWithinMs::get);
            self.record.next_attempt_at_ms = Some(now_ms + within_ms);
        }
        let legs = run.legs.as_slice().to_vec();
        let kind = TraceKind::PreparingRecorded {
            legs,
            fence: self.record.fence,
            alarm_at_ms: self.record.next_attempt_at_ms,
        };
        out.record(kind, decided!("alarm_with_preparing"));
        self.ask(out);
    }

    /// Another caller of a round that is under way, or of one that a crash has ended.
    fn join(&mut self, now_ms: u64, out: &mut Out) {
        let under_way = self.flights.iter().find(|(_, flight)| flight.is_voting());
        if let Some((attempt, _)) = under_way {
            out.waits_for = Some(*attempt);
            return;
        }
        self.raise_fence();
        let (phase, attempt) = (self.record.phase.as_str().to_owned(), self.record.attempts + 1);
        let kind = TraceKind::RecoveryStarted { phase, attempt, fence: self.record.fence };
        out.record(kind, decided!("raise_fence"));
        if self.record.next_attempt_at_ms.is_none() && self.rules.alarm_with_preparing {
            self.record.next_attempt_at_ms = Some(now_ms + VOTE_WITHIN_MS);
        }
        self.ask(out);
    }

    fn ask(&mut self, out: &mut Out) {
        self.record.attempts += 1;
        let (attempt, fence) = (self.record.attempts, self.record.fence);
        for (leg, TxnLeg { account, delta, .. }) in (0..).zip(&self.record.legs) {
            let prepare = Message::Prepare { leg, delta: *delta, fence, attempt };
            out.sends.push((account.clone(), prepare));
        }
        self.flights.insert(attempt, Flight::voting(fence));
        out.waits_for = Some(attempt);
    }

    fn take_vote(
        &mut self,
        now_ms: u64,
        account: &Name,
        (attempt, leg): (u64, u64),
        vote: Vote,
        out: &mut Out,
    ) {
        let is_its_leg = |known: &TxnLeg| known.account == *account;
        let is_known = usize::try_from(leg)
            .is_ok_and(|index| self.record.legs.get(index).is_some_and(is_its_leg));
        let n_legs = self.record.legs.len();
        let flight = self.flights.get_mut(&attempt).filter(|flight| flight.is_voting());
        let Some(flight) = flight.filter(|flight| is_known && !flight.votes.contains_key(&leg))
        else {
            // Nobody waits for it: it comes twice, or after the decision, or after a crash.
            let kind = TraceKind::VoteIgnored { account: account.clone(), vote };
            out.record(kind, None);
            return;
        };
        flight.votes.insert(leg, vote);
        let n_votes = flight.votes.len();
        let kind = TraceKind::VoteReceived {
            account: account.clone(),
            vote,
            n_votes: n_votes as u64,
            n_legs: n_legs as u64,
        };
        out.record(kind, None);
        if n_votes == n_legs {
            self.decide(now_ms, attempt, out);
        }
    }

    fn decide(&mut self, now_ms: u64, attempt: u64, out: &mut Out) {
        if self.binding().is_some_and(|phase| phase != Phase::Preparing) {
            // Decided already, by the alarm: the votes are late.
            self.flights.remove(&attempt);
            if let Some(reply) = self.outcome() {
                out.record(told(&reply), decided!("write_once_decision"));
                out.answers.push((attempt, reply));
            }
            return;
        }
        let Some(flight) = self.flights.get(&attempt) else { return };
        let no = flight.votes.iter().find_map(|(leg, vote)| match vote {
            Vote::No(reason) => Some((*leg, *reason)),
            Vote::Yes => None,
        });
        let Some((leg, reason)) = no else {
            self.record_decision(now_ms, attempt, Decision::Commit, out);
            return;
        };
        let account = usize::try_from(leg).ok().and_then(|index| self.record.legs.get(index));
        let who = account.map_or("", |leg| leg.account.as_str());
        self.record.reason = Some(format!("{}: {who}", reason.as_str()));
        self.record_decision(now_ms, attempt, Decision::Abort, out);
    }

    fn record_decision(&mut self, now_ms: u64, attempt: u64, decision: Decision, out: &mut Out) {
        self.record.phase = match decision {
            Decision::Commit => Phase::Commit,
            Decision::Abort => Phase::Abort,
        };
        let reason = match decision {
            Decision::Commit => None,
            Decision::Abort => self.record.reason.clone(),
        };
        let kind = TraceKind::DecisionRecorded { decision, reason, fence: self.record.fence };
        out.record(kind, decided!("decision"));
        self.then(now_ms, TxnInput::Announce { attempt, decision }, out);
    }

    /// The decision is durable: now it may be told.
    fn announce(&mut self, now_ms: u64, attempt: u64, decision: Decision, out: &mut Out) {
        self.record.n_retries = 0;
        self.record.next_attempt_at_ms = Some(now_ms + pause_ms(2));
        let reply = self.outcome_of(decision);
        let waits = |(other, flight): (&u64, &Flight)| {
            let is_bound = self.binding().is_some() || *other == attempt;
            (flight.is_voting() && is_bound).then_some(*other)
        };
        let told_now: Vec<u64> = self.flights.iter().filter_map(waits).collect();
        for key in told_now {
            if key != attempt {
                self.flights.remove(&key);
            }
            out.record(told(&reply), None);
            out.answers.push((key, reply.clone()));
        }
        self.finish(now_ms, attempt, decision, out);
    }
}

fn told(reply: &TxnReply) -> TraceKind {
    let outcome = match reply {
        TxnReply::Committed { .. } => "committed",
        TxnReply::Aborted { .. } => "aborted",
        _ => "in_doubt",
    };
    TraceKind::OutcomeTold { outcome: outcome.to_owned() }
}
