//! What a script expects, compared with what happened.

use std::rc::Rc;

use protocol::fence::FenceReply;
use protocol::ids::NodeId;
use protocol::invariant::{self, Invariant, Violation};
use protocol::lease::LeaseReply;
use protocol::object::Reply;
use protocol::shard::ShardReply;
use protocol::trace::ObjectRecord;
use protocol::transaction::account::AccountReply;
use protocol::transaction::coordinator::TxnReply;

use super::Runner;
use crate::client::Outcome;
use crate::driver::Driver;
use crate::script::{Expectation, FieldExpected, ReplyExpected, Value};

/// How long an expectation about the log is given to become true, in ms: events of alarms
/// and crashes reach the log a little later than the reply.
pub(super) const PATIENCE_MS: u64 = 1_500;
pub(super) const AGAIN_MS: u64 = 100;

/// One comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Where in the script, from 1.
    pub line: usize,
    /// What was expected, as text.
    pub expected: String,
    /// What was found.
    pub found: String,
    /// Whether they agree.
    pub met: bool,
}

/// A field of a reply or of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fact {
    Number(i64),
    Word(String),
    Nothing,
}

impl core::fmt::Display for Fact {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Word(word) => f.write_str(word),
            Self::Nothing => f.write_str("nothing"),
        }
    }
}

pub(super) fn check_reply(
    expected: &ReplyExpected,
    outcome: Option<&Outcome>,
    number: impl Fn(&Value) -> Result<i64, String>,
) -> Check {
    let facts = match outcome {
        Some(Outcome::Reply(reply)) => reply_facts(reply),
        _ => Vec::new(),
    };
    let word = outcome.map_or("no reply", Outcome::word);
    let mut found = word.to_owned();
    let mut met = word == expected.outcome;
    for (name, want) in &expected.fields {
        let fact = facts.iter().find(|(fact, _)| fact == name).map(|(_, fact)| fact);
        met &= fact.is_some_and(|fact| agrees(fact, want, &number));
        found += &fact.map_or(format!(" without {name}"), |fact| format!(" {name}={fact}"));
    }
    Check { line: expected.number, expected: expected.to_string(), found, met }
}

fn agrees(
    fact: &Fact,
    want: &FieldExpected,
    number: impl Fn(&Value) -> Result<i64, String>,
) -> bool {
    match (fact, want) {
        (Fact::Number(fact), FieldExpected::Number(want)) => number(want) == Ok(*fact),
        (Fact::Word(fact), FieldExpected::Word(want)) => fact == want,
        (Fact::Nothing, FieldExpected::Word(want)) => want == "nothing",
        _ => false,
    }
}

fn reply_facts(reply: &Reply) -> Vec<(&'static str, Fact)> {
    let word = |text: &dyn ToString| Fact::Word(text.to_string());
    match reply {
        Reply::Lease(reply) => match reply {
            LeaseReply::Granted { token, ttl_ms, .. } => {
                vec![("token", count(token.get())), ("ttl_ms", count(*ttl_ms))]
            }
            LeaseReply::Refused { holder, .. } => vec![("holder", word(holder))],
            LeaseReply::Queued { position } => vec![("position", count(*position))],
            LeaseReply::Lost { current_token } | LeaseReply::NotHolder { current_token } => {
                vec![("current_token", count(current_token.get()))]
            }
            LeaseReply::Conflict { request_id } => vec![("request_id", word(request_id))],
            LeaseReply::Timeout | LeaseReply::Released | LeaseReply::Exhausted => Vec::new(),
        },
        Reply::Resource(reply) => match reply {
            FenceReply::Claimed { token } => vec![("token", count(token.get()))],
            FenceReply::Applied { version } => vec![("version", count(*version))],
            FenceReply::Duplicate { first } => {
                vec![("version", count(first.version)), ("token", count(first.token.get()))]
            }
            FenceReply::Fenced { presented, high_water_mark } => vec![
                ("presented", count(presented.get())),
                ("high_water_mark", count(high_water_mark.get())),
            ],
            FenceReply::NotClaimed { presented, claimed } => {
                vec![("presented", count(presented.get())), ("claimed", count(claimed.get()))]
            }
            FenceReply::Gap { expected } => vec![("expected", count(*expected))],
            FenceReply::Value { value, version, token } => vec![
                ("value", value.map_or(Fact::Nothing, Fact::Number)),
                ("version", count(*version)),
                ("token", count(token.get())),
            ],
            FenceReply::Conflict { write_id } => vec![("write_id", word(write_id))],
            FenceReply::Full { keys_max } => vec![("keys_max", count(*keys_max))],
        },
        Reply::Shard(reply) => match reply {
            ShardReply::Applied { seq, value } => {
                vec![("seq", count(*seq)), ("value", Fact::Number(*value))]
            }
            ShardReply::Duplicate { seq } => vec![("seq", count(*seq))],
            ShardReply::Conflict { op_id } => vec![("op_id", word(op_id))],
            ShardReply::WrongEpoch { current } => vec![("current", count(*current))],
            ShardReply::Sealed { map_epoch, seq, .. } => {
                vec![("map_epoch", count(*map_epoch)), ("seq", count(*seq))]
            }
            ShardReply::Opened { map_epoch } => vec![("map_epoch", count(*map_epoch))],
            ShardReply::Full { keys_max } => vec![("keys_max", count(*keys_max))],
        },
        Reply::Account(reply) => match reply {
            AccountReply::Opened { balance }
            | AccountReply::Already { balance }
            | AccountReply::Resolved { balance } => vec![("balance", Fact::Number(*balance))],
            AccountReply::Conflict { decision } => {
                vec![("decision", Fact::Word(decision.as_str().to_owned()))]
            }
            AccountReply::Unknown => Vec::new(),
        },
        Reply::Transaction(reply) => match reply {
            TxnReply::Committed { n_pending } => vec![("n_pending", count(*n_pending))],
            TxnReply::Aborted { reason } | TxnReply::Refused { reason } => {
                vec![("reason", Fact::Word(reason.clone()))]
            }
            TxnReply::InDoubt { age_ms } => vec![("age_ms", count(*age_ms))],
            TxnReply::Conflict { difference } => {
                vec![("difference", Fact::Word(difference.clone()))]
            }
            TxnReply::Recovering { attempt } => vec![("attempt", count(*attempt))],
            TxnReply::Resolving { account } => {
                vec![("account", Fact::Word(account.to_string()))]
            }
            TxnReply::Forgotten => Vec::new(),
        },
    }
}

fn count(number: u64) -> Fact {
    i64::try_from(number).map_or(Fact::Nothing, Fact::Number)
}

/// A field of a durable record as text, by the words that scripts use; `nothing` when it
/// has no value.
pub fn record_word(record: &ObjectRecord, field: &str) -> String {
    record_fact(record, field).to_string()
}

/// A field of a durable record, by the words that scripts use.
fn record_fact(record: &ObjectRecord, field: &str) -> Fact {
    match record {
        ObjectRecord::Lease(lease) => match field {
            "token" => count(lease.token),
            "holder" => {
                let holder = lease.holder.as_ref();
                holder.map_or(Fact::Nothing, |holder| Fact::Word(holder.name.to_string()))
            }
            "waiting" => count(lease.waiters.len() as u64),
            _ => Fact::Nothing,
        },
        ObjectRecord::Resource(resource) => match field {
            "mark" => count(resource.marks.values().map(|m| m.high_water_mark).max().unwrap_or(0)),
            key => resource.values.get(key).map_or(Fact::Nothing, |one| Fact::Number(one.value)),
        },
        ObjectRecord::Shard(shard) => match field {
            "number" => count(shard.number),
            "sealed" => Fact::Word(if shard.sealed { "yes" } else { "no" }.to_owned()),
            key => shard.state.get(key).map_or(Fact::Nothing, |value| Fact::Number(*value)),
        },
        ObjectRecord::Account(account) => match field {
            "balance" => account.balance.map_or(Fact::Nothing, Fact::Number),
            "available" => Fact::Number(account.available()),
            "reserved" => Fact::Number(account.reserved()),
            // The state of the hold for this transaction.
            txn => {
                let hold = account.holds.iter().find(|(name, _)| name.as_str() == txn);
                hold.map_or(Fact::Nothing, |(_, hold)| Fact::Word(hold.state.as_str().to_owned()))
            }
        },
        ObjectRecord::Transaction(txn) => match field {
            "phase" => Fact::Word(txn.phase.as_str().to_owned()),
            "fence" => count(txn.fence),
            "pending" => count(txn.n_pending()),
            "mixed" => Fact::Word(if txn.is_mixed() { "yes" } else { "no" }.to_owned()),
            _ => Fact::Nothing,
        },
    }
}

impl<D: Driver + 'static> Runner<D> {
    /// Compares; what only needs the log to catch up is given a moment.
    pub(super) async fn check(&mut self, expectation: &Expectation) -> Result<Check, String> {
        self.check_within(expectation, PATIENCE_MS).await
    }

    pub(super) async fn check_within(
        &mut self,
        expectation: &Expectation,
        within_ms: u64,
    ) -> Result<Check, String> {
        let give_up_ms = self.driver.now_ms() + within_ms;
        loop {
            self.read_log().await?;
            let (met, found) = self.compare(expectation);
            if met || self.driver.now_ms() >= give_up_ms {
                let expected = format!("expect {expectation}");
                return Ok(Check { line: 0, expected, found, met });
            }
            self.sleep(AGAIN_MS).await;
        }
    }

    pub(super) async fn read_log(&mut self) -> Result<(), String> {
        let last_seq = self.log.last().map_or(0, |event| event.seq);
        let driver = Rc::clone(&self.driver);
        let news = self.meanwhile(driver.log_after(last_seq)).await?;
        self.log.extend(news);
        Ok(())
    }

    fn compare(&self, expectation: &Expectation) -> (bool, String) {
        let violations = invariant::check(&self.log);
        let broken = |one: Invariant| violations.iter().find(|found| found.invariant == one);
        let sentence = |found: &Violation| format!("event {}: {}", found.seq, found.sentence);
        match expectation {
            Expectation::Broken(one) => match broken(*one) {
                Some(found) => (true, sentence(found)),
                None => (false, format!("{} holds", one.word())),
            },
            Expectation::Holds(one) => match broken(*one) {
                Some(found) => (false, sentence(found)),
                None => (true, format!("{} holds", one.word())),
            },
            Expectation::AllHold => match violations.first() {
                Some(found) => (false, sentence(found)),
                None => (true, "all invariants hold".to_owned()),
            },
            Expectation::Field { object, field, value } => {
                let fact = self.record(object).map_or(Fact::Nothing, |one| record_fact(one, field));
                let met = agrees(&fact, value, |value| self.number(value));
                (met, format!("{}.{field}={fact}", object.name()))
            }
        }
    }

    /// The object's latest durable record in the log.
    pub(super) fn record(&self, object: &NodeId) -> Option<&ObjectRecord> {
        let own = self.log.iter().rev().filter(|event| event.node == *object);
        own.filter_map(|event| event.record.as_ref()).next()
    }
}
