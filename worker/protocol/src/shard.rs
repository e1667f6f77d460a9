//! The shard coordinator: a single writer by name, with no election.
//!
//! Source: L §4 and §6A, with the holes and fixes A1 to A7 of the protocol review.
//!
//! Invariant (repaired): sequence number and operation are one to one, effects are in the
//! order of the numbers, and two maps of keys to shards are never served at once.
//!
//! Not rules, and why: a missing row (A1) cannot occur, since a record has a default; one
//! spelling of a name (A5) is what [`crate::ids::Name`] enforces; a superseded incarnation
//! that finishes an effect elsewhere (A7) needs an effect elsewhere, and a shard here has
//! none: the incarnation that [`crate::host`] counts is in the log.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::fence::KEYS_MAX;
use crate::ids::{Count, Label, ObjectKind, Value};
use crate::machine::{Effect, Effects, Machine};
use crate::rules::switches;
use crate::table::{
    Cell,
    ColumnType::{Integer, Text},
    Rows, TableSchema, Tabled,
};
use crate::trace::{Decision, ObjectRecord, TraceKind, decided};

/// How many operations the log keeps, for repeated operation ids.
pub const LOG_MAX: usize = 64;

switches! {
    /// The shard's safety measures.
    ShardRules {
        /// Number, log and state in one commit. Off: the number first, the effect after
        /// other I/O, so that effects and numbers part (A2, A3).
        atomic_apply: false,
        /// An operation id is applied once and its first number given again (A4).
        remember_op_ids: false,
        /// Requests carry the epoch of the caller's map of keys to shards; another epoch
        /// than the shard's is refused (A6).
        check_map_epoch: false,
    }
}

/// One operation on the shard's state.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Op {
    /// Sets a key.
    Put {
        /// Where.
        key: Label,
        /// What.
        value: Value,
    },
    /// Adds to a key, which starts at 0. Not idempotent: done twice, it shows.
    Add {
        /// Where.
        key: Label,
        /// How much.
        amount: Value,
    },
}

impl Op {
    fn key(&self) -> &Label {
        match self {
            Self::Put { key, .. } | Self::Add { key, .. } => key,
        }
    }

    /// One line: `put a = 5`, `add a + 5`.
    pub fn summary(&self) -> String {
        match self {
            Self::Put { key, value } => format!("put {key} = {value}"),
            Self::Add { key, amount } => format!("add {key} + {amount}"),
        }
    }
}

/// Applies an operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Apply {
    /// What to do.
    pub op: Op,
    /// Names it, so that it can be sent again without a second effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op_id: Option<Label>,
    /// The epoch of the caller's map of keys to shards. Absent counts as 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map_epoch: Option<Count>,
}

/// Stops the shard, so that its keys can move (A6).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Seal {
    /// The epoch of the map that no longer names this shard.
    pub map_epoch: Count,
}

/// Opens the shard under a map.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Open {
    /// The epoch of that map; lower than the shard's is refused.
    pub map_epoch: Count,
    /// State copied from a sealed shard; keys already here are overwritten, unless the shard
    /// is open under that map already.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub state: BTreeMap<Label, Value>,
}

/// What can be asked of the shard.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ShardInput {
    /// Applies an operation.
    Apply(Apply),
    /// The second half of it, with `atomic_apply` off.
    StoreOperation {
        /// The number it was given.
        number: u64,
        /// The operation.
        apply: Apply,
    },
    /// Stops the shard.
    Seal(Seal),
    /// Opens the shard.
    Open(Open),
    /// Time has passed. The shard has no deadlines; this changes nothing.
    Tick,
}

/// What the shard answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ShardReply {
    /// Done.
    Applied {
        /// Its number in the shard's order.
        seq: u64,
        /// The key's value now.
        value: i64,
    },
    /// Done before; nothing was done now.
    Duplicate {
        /// Its number.
        seq: u64,
    },
    /// This `op_id` was used for another operation.
    Conflict {
        /// The operation id.
        op_id: Label,
    },
    /// The caller's map is not the shard's.
    WrongEpoch {
        /// The shard's.
        current: u64,
    },
    /// The shard's keys have moved, or are moving. The state is what to copy.
    Sealed {
        /// The epoch under which it was sealed.
        map_epoch: u64,
        /// The last number.
        seq: u64,
        /// The state at the seal; only to the caller that sealed it.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        state: BTreeMap<String, i64>,
    },
    /// The shard serves this map.
    Opened {
        /// Its epoch.
        map_epoch: u64,
    },
    /// The result would leave the safe range, or the shard holds as many keys as it may.
    Full {
        /// How many keys.
        keys_max: u64,
    },
}

/// A remembered operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Logged {
    /// The order in which effects landed, which with `atomic_apply` off is not the order
    /// of the numbers.
    pub ordinal: u64,
    /// Its number.
    pub number: u64,
    /// Its id.
    pub op_id: Option<Label>,
    /// One line.
    pub summary: String,
}

/// What survives a crash.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ShardRecord {
    /// The last number given out.
    pub number: u64,
    /// The epoch of the map it serves.
    pub map_epoch: u64,
    /// Whether it has stopped.
    pub sealed: bool,
    /// The state.
    pub state: BTreeMap<String, i64>,
    /// The latest operations, oldest first.
    pub log: Vec<Logged>,
}

/// The machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ShardCoordinator {
    record: ShardRecord,
    rules: ShardRules,
}

type Happened = Vec<(TraceKind, Option<Decision>)>;

impl Machine for ShardCoordinator {
    type Record = ShardRecord;
    type Rules = ShardRules;
    type Input = ShardInput;
    type Reply = ShardReply;

    const KIND: ObjectKind = ObjectKind::Shard;

    fn traced(record: &ShardRecord) -> ObjectRecord {
        ObjectRecord::Shard(record.clone())
    }

    fn restore(record: Option<ShardRecord>, rules: ShardRules) -> Self {
        Self { record: record.unwrap_or_default(), rules }
    }

    fn record(&self) -> &ShardRecord {
        &self.record
    }

    fn rules(&self) -> ShardRules {
        self.rules
    }

    fn set_rules(&mut self, rules: ShardRules) {
        self.rules = rules;
    }

    fn tick() -> ShardInput {
        ShardInput::Tick
    }

    fn step(&mut self, _now_ms: u64, input: ShardInput, effects: &mut Effects<Self>) {
        let before = self.record.clone();
        let mut happened = Happened::new();
        let mut deferred = None;
        let reply = match input {
            ShardInput::Apply(apply) => self.apply(apply, &mut deferred, &mut happened),
            ShardInput::StoreOperation { number, apply } => {
                Some(self.store(number, apply, &mut happened))
            }
            ShardInput::Seal(seal) => Some(self.seal(seal, &mut happened)),
            ShardInput::Open(open) => Some(self.open(open, &mut happened)),
            ShardInput::Tick => None,
        };
        if self.record != before {
            effects.push(Effect::Persist(self.record.clone()));
        }
        effects.extend(reply.map(Effect::Reply));
        effects.extend(happened.into_iter().map(|(kind, why)| Effect::Record(kind, why)));
        effects.extend(deferred.map(Effect::Defer));
    }

    fn next_deadline(&self) -> Option<u64> {
        None
    }
}

impl ShardCoordinator {
    fn apply(
        &mut self,
        apply: Apply,
        deferred: &mut Option<ShardInput>,
        happened: &mut Happened,
    ) -> Option<ShardReply> {
        // Before the map: whoever missed the answer must be able to learn it here after the
        // keys have moved, or would apply the operation again at the new shard.
        if let Some((kind, reply)) = self.repeated(&apply) {
            happened.push((kind, decided!("remember_op_ids")));
            return Some(reply);
        }
        if let Some(reply) = self.check_map(&apply, happened) {
            return Some(reply);
        }
        if self.result(&apply.op).is_none() {
            return Some(ShardReply::Full { keys_max: KEYS_MAX as u64 });
        }
        self.record.number += 1;
        let number = self.record.number;
        if self.rules.atomic_apply {
            return Some(self.store(number, apply, happened));
        }
        // The paper writes the number, then awaits the effect: another call, or a crash,
        // gets in between (A2, A3).
        let summary = apply.op.summary();
        happened.push((TraceKind::OperationNumbered { number, summary }, decided!("atomic_apply")));
        *deferred = Some(ShardInput::StoreOperation { number, apply });
        None
    }

    fn check_map(&self, apply: &Apply, happened: &mut Happened) -> Option<ShardReply> {
        let presented_epoch = apply.map_epoch.map_or(0, Count::get);
        let current_epoch = self.record.map_epoch;
        let refused = |outcome: &str| TraceKind::OperationRefused {
            outcome: outcome.to_owned(),
            presented_epoch,
            current_epoch,
        };
        if self.record.sealed {
            happened.push((refused("sealed"), decided!("sealed")));
            let (map_epoch, seq) = (current_epoch, self.record.number);
            return Some(ShardReply::Sealed { map_epoch, seq, state: BTreeMap::new() });
        }
        if self.rules.check_map_epoch && presented_epoch != current_epoch {
            happened.push((refused("wrong_epoch"), decided!("check_map_epoch")));
            return Some(ShardReply::WrongEpoch { current: current_epoch });
        }
        None
    }

    fn repeated(&self, apply: &Apply) -> Option<(TraceKind, ShardReply)> {
        if !self.rules.remember_op_ids {
            return None;
        }
        let op_id = apply.op_id.clone()?;
        let known = self.record.log.iter().find(|logged| logged.op_id.as_ref() == Some(&op_id))?;
        if known.summary != apply.op.summary() {
            let kind = TraceKind::OperationConflicted { op_id: op_id.clone() };
            return Some((kind, ShardReply::Conflict { op_id }));
        }
        let number = known.number;
        Some((
            TraceKind::OperationRepeated { op_id, number },
            ShardReply::Duplicate { seq: number },
        ))
    }

    /// The key's value after the operation; `None` when it does not fit.
    fn result(&self, op: &Op) -> Option<i64> {
        let known = self.record.state.get(op.key().as_str()).copied();
        if known.is_none() && self.record.state.len() >= KEYS_MAX {
            return None;
        }
        let value = match op {
            Op::Put { value, .. } => value.get(),
            Op::Add { amount, .. } => known.unwrap_or(0).checked_add(amount.get())?,
        };
        Value::try_from(value).ok().map(Value::get)
    }

    fn store(&mut self, number: u64, apply: Apply, happened: &mut Happened) -> ShardReply {
        let Some(value) = self.result(&apply.op) else {
            return ShardReply::Full { keys_max: KEYS_MAX as u64 };
        };
        let summary = apply.op.summary();
        self.record.state.insert(apply.op.key().as_str().to_owned(), value);
        let ordinal = self.record.log.last().map_or(0, |last| last.ordinal) + 1;
        let op_id = apply.op_id.clone();
        self.record.log.push(Logged { ordinal, number, op_id, summary: summary.clone() });
        if self.record.log.len() > LOG_MAX {
            self.record.log.remove(0);
        }
        let key = apply.op.key().clone();
        let kind = TraceKind::OperationApplied { number, key, summary, op_id: apply.op_id };
        happened.push((kind, decided!("one_writer")));
        ShardReply::Applied { seq: number, value }
    }

    fn seal(&mut self, seal: Seal, happened: &mut Happened) -> ShardReply {
        let map_epoch = seal.map_epoch.get();
        if let Some(reply) = self.refuse_lower(map_epoch, happened) {
            return reply;
        }
        self.record.sealed = true;
        self.record.map_epoch = map_epoch;
        let number = self.record.number;
        happened.push((TraceKind::ShardSealed { map_epoch, number }, decided!("sealed")));
        ShardReply::Sealed { map_epoch, seq: number, state: self.record.state.clone() }
    }

    fn open(&mut self, open: Open, happened: &mut Happened) -> ShardReply {
        let map_epoch = open.map_epoch.get();
        if let Some(reply) = self.refuse_lower(map_epoch, happened) {
            return reply;
        }
        if map_epoch == self.record.map_epoch && !self.record.sealed {
            // Open already, as every shard is under map 0. A copy of the request that comes
            // late must not undo what has been written since.
            return ShardReply::Opened { map_epoch };
        }
        let new_keys =
            open.state.keys().filter(|key| !self.record.state.contains_key(key.as_str()));
        if self.record.state.len() + new_keys.count() > KEYS_MAX {
            return ShardReply::Full { keys_max: KEYS_MAX as u64 };
        }
        self.record.sealed = false;
        self.record.map_epoch = map_epoch;
        let copied = open.state.into_iter().map(|(key, value)| (String::from(key), value.get()));
        self.record.state.extend(copied);
        happened.push((TraceKind::ShardOpened { map_epoch }, decided!("check_map_epoch")));
        ShardReply::Opened { map_epoch }
    }

    fn refuse_lower(&self, presented_epoch: u64, happened: &mut Happened) -> Option<ShardReply> {
        let current_epoch = self.record.map_epoch;
        if presented_epoch >= current_epoch {
            return None;
        }
        let outcome = "wrong_epoch".to_owned();
        let kind = TraceKind::OperationRefused { outcome, presented_epoch, current_epoch };
        happened.push((kind, decided!("check_map_epoch")));
        Some(ShardReply::WrongEpoch { current: current_epoch })
    }
}

impl Tabled for ShardRecord {
    const SCHEMA: &'static [TableSchema] = &[
        TableSchema {
            name: "shard",
            columns: &[
                ("id", Integer),
                ("number", Integer),
                ("map_epoch", Integer),
                ("sealed", Integer),
            ],
        },
        TableSchema { name: "state", columns: &[("key", Text), ("value", Integer)] },
        TableSchema {
            name: "operations",
            columns: &[
                ("ordinal", Integer),
                ("number", Integer),
                ("op_id", Text),
                ("summary", Text),
            ],
        },
    ];

    fn to_rows(&self) -> Vec<Rows> {
        let shard = vec![vec![
            0_u64.into(),
            self.number.into(),
            self.map_epoch.into(),
            u64::from(self.sealed).into(),
        ]];
        let state =
            self.state.iter().map(|(key, value)| vec![key.as_str().into(), (*value).into()]);
        let operations = self.log.iter().map(|logged| {
            vec![
                logged.ordinal.into(),
                logged.number.into(),
                Cell::from(logged.op_id.as_ref().map(Label::as_str)),
                logged.summary.as_str().into(),
            ]
        });
        vec![shard, state.collect(), operations.collect()]
    }

    fn from_rows(tables: &[Rows]) -> Option<Self> {
        let [shard, state, operations] = tables else { return None };
        let row = shard.first()?;
        Some(Self {
            number: row[1].as_u64(),
            map_epoch: row[2].as_u64(),
            sealed: row[3].as_u64() == 1,
            state: state
                .iter()
                .filter_map(|row| Some((row[0].as_text()?.to_owned(), row[1].as_i64())))
                .collect(),
            log: operations
                .iter()
                .filter_map(|row| {
                    Some(Logged {
                        ordinal: row[0].as_u64(),
                        number: row[1].as_u64(),
                        op_id: row[2].as_text().and_then(|text| Label::try_from(text).ok()),
                        summary: row[3].as_text()?.to_owned(),
                    })
                })
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{RuleValue, Rules};

    fn without(rule: &str) -> ShardRules {
        let mut rules = ShardRules::repaired();
        rules.set(rule, &RuleValue::Switch(false)).expect("a rule of the shard");
        rules
    }

    fn value(text: &str) -> Value {
        text.parse::<i64>().expect("a number").try_into().expect("a number in range")
    }

    fn epoch(text: &str) -> Count {
        text.parse::<u64>().expect("a number").try_into().expect("an epoch")
    }

    /// `put k 5 id=o1 map=1`, `add k 5`, `seal 1`, `open 1 k=5`, `land` (the effect that
    /// waits longest), `land-last`, `crash` (they never land).
    fn input(text: &str, storing: &mut Vec<ShardInput>) -> Option<ShardInput> {
        let words: Vec<_> = text.split_whitespace().collect();
        let option =
            |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        let key = |text: &str| Label::try_from(text).expect("a key");
        let apply = |op: Op| {
            let op_id = option("id").map(|id| Label::try_from(id).expect("an id"));
            ShardInput::Apply(Apply { op, op_id, map_epoch: option("map").map(epoch) })
        };
        Some(match words[0] {
            "put" => apply(Op::Put { key: key(words[1]), value: value(words[2]) }),
            "add" => apply(Op::Add { key: key(words[1]), amount: value(words[2]) }),
            "seal" => ShardInput::Seal(Seal { map_epoch: epoch(words[1]) }),
            "open" => {
                let pairs = words[2..].iter().filter_map(|word| word.split_once('='));
                let state = pairs.map(|(name, text)| (key(name), value(text))).collect();
                ShardInput::Open(Open { map_epoch: epoch(words[1]), state })
            }
            "land" => storing.remove(0),
            "land-last" => storing.pop().expect("one that waits"),
            "crash" => {
                storing.clear();
                return None;
            }
            other => panic!("no verb: {other}"),
        })
    }

    fn said(reply: &ShardReply) -> String {
        match reply {
            ShardReply::Applied { seq, value } => format!("applied {seq}, now {value}"),
            ShardReply::Duplicate { seq } => format!("duplicate of {seq}"),
            ShardReply::Conflict { op_id } => format!("conflict {op_id}"),
            ShardReply::WrongEpoch { current } => format!("wrong epoch, it is {current}"),
            ShardReply::Sealed { map_epoch, seq, state } => {
                let state: String = state.iter().map(|(key, n)| format!(" {key}={n}")).collect();
                format!("sealed for {map_epoch} at {seq}{state}")
            }
            ShardReply::Opened { map_epoch } => format!("opened for {map_epoch}"),
            ShardReply::Full { keys_max } => format!("full at {keys_max}"),
        }
    }

    /// Runs `input => reply` lines. The object starts anew before every one of them, from
    /// nothing but what was persisted.
    fn check(rules: ShardRules, script: &str) -> ShardRecord {
        let mut record = ShardRecord::default();
        let mut storing = Vec::new();
        for line in script.trim().lines().map(str::trim) {
            let (asked, expected) = line.split_once(" => ").unwrap_or((line, ""));
            let Some(input) = input(asked, &mut storing) else { continue };
            let mut machine = ShardCoordinator::restore(Some(record.clone()), rules);
            let mut effects = Vec::new();
            machine.step(0, input, &mut effects);
            let mut reply = String::new();
            for (index, effect) in effects.into_iter().enumerate() {
                match effect {
                    Effect::Persist(persisted) => {
                        assert_eq!(index, 0, "persisted before anybody is told: {line}");
                        record = persisted;
                    }
                    Effect::Reply(answer) => reply = said(&answer),
                    Effect::Record(..) => {}
                    Effect::Send { .. } | Effect::Await(_) | Effect::Answer(..) => {
                        panic!("it talks to nobody and answers at once")
                    }
                    Effect::Defer(input) => storing.push(input),
                }
            }
            assert_eq!(reply, expected, "{line}");
            assert_eq!(*machine.record(), record, "all of it persisted: {line}");
        }
        record
    }

    /// The kinds of event of the last line, with the rules that decided them.
    fn events(rules: ShardRules, script: &str) -> String {
        let (before, last) = script.trim().rsplit_once('\n').unwrap_or(("", script.trim()));
        let record = if before.is_empty() { <_>::default() } else { check(rules, before) };
        let input = input(last.trim(), &mut Vec::new()).expect("an input");
        let mut effects = Vec::new();
        ShardCoordinator::restore(Some(record), rules).step(0, input, &mut effects);
        let named = effects.iter().filter_map(|effect| {
            let Effect::Record(kind, why) = effect else { return None };
            let kind = serde_json::to_value(kind).expect("an event");
            let rule = why.as_ref().map_or("nothing", |why| why.rule.as_str());
            Some(format!("{} by {rule}", kind["kind"].as_str().expect("a kind")))
        });
        named.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn a1_a_new_shard_needs_no_row() {
        for rules in
            [ShardRules::repaired(), ShardRules { atomic_apply: true, ..ShardRules::published() }]
        {
            check(rules, "add k 5 => applied 1, now 5\nput k 2 => applied 2, now 2");
        }
        assert_eq!(ShardCoordinator::restore(None, ShardRules::repaired()).record().number, 0);
    }

    #[test]
    fn a2_effects_follow_the_numbers() {
        let published = check(
            ShardRules::published(),
            "put k 1
             put k 2
             land-last => applied 2, now 2
             land => applied 1, now 1",
        );
        let numbers: Vec<_> = published.log.iter().map(|logged| logged.number).collect();
        assert_eq!(numbers, [2, 1], "the older operation has the last word");
        check(ShardRules::repaired(), "put k 1 => applied 1, now 1\nput k 2 => applied 2, now 2");
    }

    #[test]
    fn a3_number_and_operation_are_one_to_one() {
        let script = "add k 1 id=o\ncrash\nadd k 1 id=o\nland => applied 2, now 1";
        for rules in [ShardRules::published(), without("atomic_apply")] {
            let record = check(rules, script);
            assert_eq!((record.number, record.log.len()), (2, 1), "number 1 has no operation");
        }
        // Nothing is numbered that cannot be done.
        let too_large = "put k 9007199254740991 => applied 1, now 9007199254740991
                         add k 1 => full at 64";
        assert_eq!(check(ShardRules::repaired(), too_large).number, 1);
    }

    #[test]
    fn a4_an_operation_is_done_once() {
        let again =
            |answer: &str| format!("add k 5 id=o => applied 1, now 5\nadd k 5 id=o => {answer}");
        check(ShardRules::repaired(), &again("duplicate of 1"));
        check(without("remember_op_ids"), &again("applied 2, now 10"));
        check(
            ShardRules::repaired(),
            "add k 5 id=o => applied 1, now 5
             add k 6 id=o => conflict o
             put k 5 id=o => conflict o
             add k 5 => applied 2, now 10
             add k 5 => applied 3, now 15",
        );
    }

    #[test]
    fn a5_a_name_has_one_spelling() {
        use crate::ids::Name;
        assert!(Name::try_from("7").is_ok());
        // " 7" is refused; "07" is a name of its own, as it is to the platform.
        assert!(Name::try_from(" 7").is_err() && Name::try_from("").is_err());
    }

    #[test]
    fn a6_two_maps_are_never_served_at_once() {
        check(
            ShardRules::repaired(),
            "add k 5 map=0 => applied 1, now 5
             add k 5 map=1 => wrong epoch, it is 0
             seal 1 => sealed for 1 at 1 k=5
             add k 5 => sealed for 1 at 1
             add k 5 map=1 => sealed for 1 at 1
             seal 1 => sealed for 1 at 1 k=5
             seal 0 => wrong epoch, it is 1
             open 0 => wrong epoch, it is 1
             open 2 k=7 j=1 => opened for 2
             add k 1 map=1 => wrong epoch, it is 2
             add k 1 map=2 => applied 2, now 8",
        );
        let early = "add k 5 map=1 => applied 1, now 5\nadd k 5 map=0 => applied 2, now 10";
        check(without("check_map_epoch"), early);
        // Lower epochs and sealed shards are refused whatever the rules say.
        check(
            without("check_map_epoch"),
            "open 2 => opened for 2\nopen 1 => wrong epoch, it is 2\nseal 3 => sealed for 3 at 0\nadd k 1 => sealed for 3 at 0",
        );
    }

    #[test]
    fn a6_a_late_copy_of_open_undoes_nothing() {
        check(
            ShardRules::repaired(),
            "open 1 k=5 => opened for 1
             add k 1 map=1 => applied 1, now 6
             open 1 k=5 => opened for 1
             add k 1 map=1 => applied 2, now 7
             open 0 k=9 => wrong epoch, it is 1",
        );
    }

    #[test]
    fn a6_a_sealed_shard_tells_what_became_of_an_operation() {
        let moved = |answer: &str| {
            format!(
                "add k 5 id=o => applied 1, now 5
                 seal 1 => sealed for 1 at 1 k=5
                 add k 5 id=p => sealed for 1 at 1
                 add k 5 id=o => {answer}"
            )
        };
        check(ShardRules::repaired(), &moved("duplicate of 1"));
        check(without("remember_op_ids"), &moved("sealed for 1 at 1"));
    }

    #[test]
    fn what_waits_can_land_on_a_sealed_shard() {
        let script = "add k 5\nseal 1 => sealed for 1 at 1\nland => applied 1, now 5";
        check(ShardRules::published(), script);
    }

    #[test]
    fn keys_are_bounded() {
        let mut script = String::new();
        for n in 1..=KEYS_MAX {
            script += &format!("put k{n} 0 => applied {n}, now 0\n");
        }
        script += "put one-more 0 => full at 64\nadd k1 1 => applied 65, now 1\n";
        script += "open 1 one-more=1 => full at 64\nopen 1 k1=7 => opened for 1";
        assert_eq!(check(ShardRules::repaired(), &script).state.len(), KEYS_MAX);
        // Two new keys on their way at once, and room for one.
        let mut script = String::new();
        for n in 1..KEYS_MAX {
            script += &format!("put k{n} 0\nland => applied {n}, now 0\n");
        }
        script += "put a 1\nput b 1\nland => applied 64, now 1\nland => full at 64";
        assert_eq!(check(ShardRules::published(), &script).state.len(), KEYS_MAX);
    }

    #[test]
    fn the_log_is_bounded_and_the_oldest_is_forgotten() {
        let mut script = String::new();
        for n in 1..=LOG_MAX + 1 {
            script += &format!("add k 1 id=o{n} => applied {n}, now {n}\n");
        }
        script += "add k 1 id=o2 => duplicate of 2\nadd k 1 id=o1 => applied 66, now 66";
        assert_eq!(check(ShardRules::repaired(), &script).log.len(), LOG_MAX);
    }

    #[test]
    fn every_event_names_the_rule_that_decided() {
        let cases = [
            ("add k 1", "operation_applied by one_writer"),
            ("add k 5 id=o", "operation_repeated by remember_op_ids"),
            ("add k 6 id=o", "operation_conflicted by remember_op_ids"),
            ("add k 1 map=9", "operation_refused by check_map_epoch"),
            ("seal 1", "shard_sealed by sealed"),
            ("open 1", "shard_opened by check_map_epoch"),
            ("open 0", ""),
        ];
        for (last, expected) in cases {
            let script = format!("add k 5 id=o => applied 1, now 5\n{last}");
            assert_eq!(events(ShardRules::repaired(), &script), expected, "{last}");
        }
        let sealed = "seal 1 => sealed for 1 at 0\nadd k 1";
        assert_eq!(events(ShardRules::repaired(), sealed), "operation_refused by sealed");
        let lower = "open 2 => opened for 2\nseal 1";
        assert_eq!(events(ShardRules::repaired(), lower), "operation_refused by check_map_epoch");
        let numbered = "operation_numbered by atomic_apply";
        assert_eq!(events(ShardRules::published(), "add k 1"), numbered);
    }

    #[test]
    fn time_is_nothing_to_it() {
        let mut machine = ShardCoordinator::restore(None, ShardRules::repaired());
        let mut effects = Vec::new();
        machine.step(1_000, ShardCoordinator::tick(), &mut effects);
        assert_eq!((effects, machine.next_deadline()), (vec![], None));
    }

    #[test]
    fn records_survive_rows_and_json() {
        let rich = check(
            ShardRules::repaired(),
            "open 3 b=-7 => opened for 3
             add a 5 id=o1 map=3 => applied 1, now 5
             put b 9007199254740991 map=3 => applied 2, now 9007199254740991
             seal 4 => sealed for 4 at 2 a=5 b=9007199254740991",
        );
        let never_sealed = check(ShardRules::repaired(), "add a 5 => applied 1, now 5");
        for record in [rich, never_sealed, ShardRecord::default()] {
            assert_eq!(ShardRecord::from_rows(&record.to_rows()), Some(record.clone()));
            let json = serde_json::to_string(&record).expect("a record is JSON");
            assert_eq!(serde_json::from_str::<ShardRecord>(&json).expect("and back"), record);
            for (rows, table) in record.to_rows().iter().zip(ShardRecord::SCHEMA) {
                assert!(rows.iter().all(|row| row.len() == table.columns.len()), "{}", table.name);
            }
        }
        assert_eq!(ShardRecord::from_rows(&[vec![], vec![], vec![]]), None, "nothing stored");
        assert_eq!(ShardRecord::from_rows(&[]), None);
    }
}
