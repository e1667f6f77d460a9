//! The fenced resource: the only place where a stale holder can be stopped.
//!
//! Source: L §5 and §6C, with the holes and fixes C1 to C8 of the protocol review.
//!
//! Invariant (repaired): once a grant has claimed the resource, no effect of an older
//! grant is accepted; guard and payload are stored in one commit.
//!
//! What it does not do: it cannot know whether a token was ever granted. A caller that
//! makes one up can jump ahead (C7); signed grants would close that, and are outside the
//! faults that the lab injects. Tokens that are no safe integers are refused by the types
//! of [`crate::ids`] under every rule. Two authorities in front of one fence (C6) cannot
//! happen here: a scope is the name of a lease, and a lab has one authority per name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::{Count, FencingToken, Label, Name, ObjectKind, Value};
use crate::machine::{Effect, Effects, Machine};
use crate::rules::{BadRule, RuleValue, Rules};
use crate::table::{
    Cell,
    ColumnType::{Integer, Text},
    Rows, TableSchema, Tabled,
};
use crate::trace::{Decision, ObjectRecord, TraceKind, decided};

/// How many keys one resource holds; a write to one more is refused.
pub const KEYS_MAX: usize = 64;
/// How many fences one resource holds; a claim or write that needs one more is refused.
pub const SCOPES_MAX: usize = 64;
/// How many write ids are remembered; the oldest is forgotten first.
pub const WRITES_MAX: usize = 64;

/// Which comparison the fence makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Guard {
    /// No comparison: everything is admitted.
    None,
    /// At least the high-water mark (>=).
    AtLeast,
    /// Above the high-water mark (>): the paper's.
    Strict,
    /// Exactly the token that last claimed the resource.
    Claimed,
}

impl Guard {
    const ALL: [(&'static str, Self); 4] = [
        ("none", Self::None),
        ("at_least", Self::AtLeast),
        ("strict", Self::Strict),
        ("claimed", Self::Claimed),
    ];

    /// The word used in rules.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::AtLeast => "at_least",
            Self::Strict => "strict",
            Self::Claimed => "claimed",
        }
    }
}

/// The resource's safety measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FenceRules {
    /// The comparison. With `claimed` a holder claims before its first read or write (C1).
    pub guard: Guard,
    /// One fence per lease. Off: one per key, and the lease covers more than a key (C5).
    pub fence_per_lease: bool,
    /// Guard and payload in one commit. Off: the mark first, the payload after other I/O,
    /// and an older value can land under a newer mark (C4).
    pub atomic_write: bool,
    /// A write id is applied once and its first result given again (C2).
    pub remember_write_ids: bool,
    /// Writes of one grant that carry `seq` are applied in its order, without gaps (C3).
    pub check_sequence: bool,
    /// Reads that carry a token are refused below the mark (C8).
    pub fence_reads: bool,
}

impl Rules for FenceRules {
    fn published() -> Self {
        Self {
            guard: Guard::Strict,
            fence_per_lease: false,
            atomic_write: false,
            remember_write_ids: false,
            check_sequence: false,
            fence_reads: false,
        }
    }

    fn repaired() -> Self {
        Self {
            guard: Guard::Claimed,
            fence_per_lease: true,
            atomic_write: true,
            remember_write_ids: true,
            check_sequence: true,
            fence_reads: true,
        }
    }

    fn entries(&self) -> Vec<(&'static str, RuleValue)> {
        vec![
            ("guard", RuleValue::Choice(self.guard.as_str().to_owned())),
            ("fence_per_lease", RuleValue::Switch(self.fence_per_lease)),
            ("atomic_write", RuleValue::Switch(self.atomic_write)),
            ("remember_write_ids", RuleValue::Switch(self.remember_write_ids)),
            ("check_sequence", RuleValue::Switch(self.check_sequence)),
            ("fence_reads", RuleValue::Switch(self.fence_reads)),
        ]
    }

    fn set(&mut self, rule: &str, value: &RuleValue) -> Result<(), BadRule> {
        let bad = |allowed: &str| BadRule { rule: rule.to_owned(), allowed: allowed.to_owned() };
        if rule == "guard" {
            let RuleValue::Choice(word) = value else {
                return Err(bad("\"none\", \"at_least\", \"strict\" or \"claimed\""));
            };
            let found = Guard::ALL.into_iter().find(|(name, _)| name == word);
            let (_, guard) = found.ok_or_else(|| bad("none, at_least, strict or claimed"))?;
            self.guard = guard;
            return Ok(());
        }
        let switch = match rule {
            "fence_per_lease" => &mut self.fence_per_lease,
            "atomic_write" => &mut self.atomic_write,
            "remember_write_ids" => &mut self.remember_write_ids,
            "check_sequence" => &mut self.check_sequence,
            "fence_reads" => &mut self.fence_reads,
            _ => {
                return Err(bad(
                    "guard, fence_per_lease, atomic_write, remember_write_ids, check_sequence, fence_reads",
                ));
            }
        };
        let RuleValue::Switch(on) = value else { return Err(bad("true or false")) };
        *switch = *on;
        Ok(())
    }
}

/// Raises the mark before the first read or write.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Claim {
    /// The lease whose holder claims.
    pub lease: Name,
    /// Its token.
    pub token: FencingToken,
}

/// Stores a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Write {
    /// The lease under which the caller writes.
    pub lease: Name,
    /// Its token.
    pub token: FencingToken,
    /// Where.
    pub key: Label,
    /// What.
    pub value: Value,
    /// Names this write, so that it can be sent again without a second effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_id: Option<Label>,
    /// The position among this grant's writes, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<Count>,
}

/// Reads a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Read {
    /// The lease under which the caller reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Name>,
    /// Its token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<FencingToken>,
    /// Where.
    pub key: Label,
}

/// What can be asked of the resource.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FenceInput {
    /// Raises the mark.
    Claim(Claim),
    /// Stores a value.
    Write(Write),
    /// Reads a value.
    Read(Read),
    /// The second half of a write, with `atomic_write` off.
    StorePayload(Write),
    /// Time has passed. The resource has no deadlines; this changes nothing.
    Tick,
}

/// What the resource answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum FenceReply {
    /// The resource now belongs to this grant.
    Claimed {
        /// Its token.
        token: FencingToken,
    },
    /// The value is stored.
    Applied {
        /// How often this key has been written.
        version: u64,
    },
    /// This write id was applied before; nothing was done now.
    Duplicate {
        /// The first result.
        first: FirstWrite,
    },
    /// A newer grant has been here.
    Fenced {
        /// The token that was sent.
        presented: FencingToken,
        /// The highest token admitted.
        high_water_mark: FencingToken,
    },
    /// Claim with this token first.
    NotClaimed {
        /// The token that was sent.
        presented: FencingToken,
        /// The token that last claimed; 0 for none.
        claimed: FencingToken,
    },
    /// An earlier write of this grant is missing, or this one was applied already.
    Gap {
        /// The `seq` to send.
        expected: u64,
    },
    /// The value of the key.
    Value {
        /// `null` when it was never written.
        value: Option<i64>,
        /// How often this key has been written.
        version: u64,
        /// The token of the last write.
        token: FencingToken,
    },
    /// This `write_id` was used for another write.
    Conflict {
        /// The write id.
        write_id: Label,
    },
    /// The resource holds as many keys, or fences, as it may.
    Full {
        /// How many.
        keys_max: u64,
    },
}

/// What became of a write when it was first applied.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FirstWrite {
    /// The version it made.
    pub version: u64,
    /// The token it carried.
    pub token: FencingToken,
}

/// The fence of one scope: a lease, or a key with `fence_per_lease` off.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Mark {
    /// The token that last claimed; 0 for none.
    pub claimed: u64,
    /// The highest token admitted.
    pub high_water_mark: u64,
    /// The next `seq` of the claiming grant, from 1.
    pub next_seq: u64,
}

/// A stored value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stored {
    /// The value.
    pub value: i64,
    /// The token of the last write.
    pub token: u64,
    /// How often the key has been written.
    pub version: u64,
}

/// A remembered write id.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RememberedWrite {
    /// Order of the writes.
    pub ordinal: u64,
    /// The write id.
    pub write_id: Label,
    /// Where it wrote.
    pub key: Label,
    /// What it wrote.
    pub value: i64,
    /// The first result.
    pub first: FirstWrite,
}

/// What survives a crash.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FenceRecord {
    /// The fences, by scope: `lease/orders` or `key/balance`.
    pub marks: BTreeMap<String, Mark>,
    /// The values.
    pub values: BTreeMap<String, Stored>,
    /// Remembered write ids, oldest first.
    pub writes: Vec<RememberedWrite>,
}

/// The machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FencedResource {
    record: FenceRecord,
    rules: FenceRules,
}

type Happened = Vec<(TraceKind, Option<Decision>)>;

const FULL: FenceReply = FenceReply::Full { keys_max: KEYS_MAX as u64 };

impl Machine for FencedResource {
    type Record = FenceRecord;
    type Rules = FenceRules;
    type Input = FenceInput;
    type Reply = FenceReply;

    const KIND: ObjectKind = ObjectKind::Resource;

    fn traced(record: &FenceRecord) -> ObjectRecord {
        ObjectRecord::Resource(record.clone())
    }

    fn restore(record: Option<FenceRecord>, rules: FenceRules) -> Self {
        Self { record: record.unwrap_or_default(), rules }
    }

    fn record(&self) -> &FenceRecord {
        &self.record
    }

    fn rules(&self) -> FenceRules {
        self.rules
    }

    fn set_rules(&mut self, rules: FenceRules) {
        self.rules = rules;
    }

    fn tick() -> FenceInput {
        FenceInput::Tick
    }

    fn step(&mut self, _now_ms: u64, input: FenceInput, effects: &mut Effects<Self>) {
        let before = self.record.clone();
        let mut happened = Happened::new();
        let mut deferred = None;
        let reply = match input {
            FenceInput::Claim(claim) => Some(self.claim(claim, &mut happened)),
            FenceInput::Write(write) => self.write(write, &mut deferred, &mut happened),
            // Another new key may have been stored since this one was admitted.
            FenceInput::StorePayload(write) if self.is_full_for(&write.key) => Some(FULL),
            FenceInput::StorePayload(write) => Some(self.store(write, &mut happened)),
            FenceInput::Read(read) => Some(self.read(read, &mut happened)),
            FenceInput::Tick => None,
        };
        if self.record != before {
            effects.push(Effect::Persist(self.record.clone()));
        }
        effects.extend(reply.map(Effect::Reply));
        effects.extend(happened.into_iter().map(|(kind, why)| Effect::Record(kind, why)));
        effects.extend(deferred.map(|write| Effect::Defer(FenceInput::StorePayload(write))));
    }

    fn next_deadline(&self) -> Option<u64> {
        None
    }
}

impl FencedResource {
    fn scope(&self, lease: &Name, key: &Label) -> String {
        if self.rules.fence_per_lease { format!("lease/{lease}") } else { format!("key/{key}") }
    }

    fn is_full_for(&self, key: &Label) -> bool {
        let is_new = !self.record.values.contains_key(key.as_str());
        is_new && self.record.values.len() >= KEYS_MAX
    }

    fn has_no_room_for(&self, scope: &str) -> bool {
        !self.record.marks.contains_key(scope) && self.record.marks.len() >= SCOPES_MAX
    }

    fn mark(&self, scope: &str) -> Mark {
        self.record.marks.get(scope).cloned().unwrap_or_default()
    }

    /// Raises the mark of the lease before its holder reads or writes, so that a write
    /// still on its way from an older grant finds the fence closed (C1). A claim covers
    /// the lease, so it has no effect on per-key fences.
    fn claim(&mut self, claim: Claim, happened: &mut Happened) -> FenceReply {
        let scope = format!("lease/{}", claim.lease);
        if self.has_no_room_for(&scope) {
            return FULL;
        }
        let mut mark = self.mark(&scope);
        let lease = label(&claim.lease);
        if claim.token.get() < mark.high_water_mark {
            let high_water_mark = token(mark.high_water_mark);
            let presented = claim.token;
            let kind = TraceKind::ClaimRefused { lease, presented, high_water_mark };
            happened.push((kind, decided!("guard")));
            return FenceReply::Fenced { presented, high_water_mark };
        }
        if claim.token.get() > mark.high_water_mark {
            mark.next_seq = 1;
        }
        mark.claimed = claim.token.get();
        mark.high_water_mark = claim.token.get();
        self.record.marks.insert(scope, mark);
        happened.push((TraceKind::Claimed { lease, token: claim.token }, decided!("guard")));
        FenceReply::Claimed { token: claim.token }
    }

    fn write(
        &mut self,
        write: Write,
        deferred: &mut Option<Write>,
        happened: &mut Happened,
    ) -> Option<FenceReply> {
        if let Some(reply) = self.repeated(&write, happened) {
            return Some(reply);
        }
        let scope = self.scope(&write.lease, &write.key);
        if self.is_full_for(&write.key) || self.has_no_room_for(&scope) {
            return Some(FULL);
        }
        let mut mark = self.mark(&scope);
        if write.token.get() > mark.high_water_mark {
            // A newer grant numbers its writes from 1, claimed or not.
            mark.next_seq = 1;
        }
        if let Err((reply, why)) = self.admit(&write, &mark) {
            happened.push((self.refusal(&write, &mark, &reply), why));
            return Some(reply);
        }
        mark.high_water_mark = mark.high_water_mark.max(write.token.get());
        if write.seq.is_some() {
            mark.next_seq += 1;
        }
        self.record.marks.insert(scope, mark);
        if self.rules.atomic_write {
            return Some(self.store(write, happened));
        }
        // The paper raises the mark, then awaits the payload's store (C4).
        let kind = TraceKind::WriteAdmitted {
            lease: label(&write.lease),
            token: write.token,
            key: write.key.clone(),
            value: write.value.get(),
        };
        happened.push((kind, decided!("atomic_write")));
        *deferred = Some(write);
        None
    }

    fn repeated(&self, write: &Write, happened: &mut Happened) -> Option<FenceReply> {
        if !self.rules.remember_write_ids {
            return None;
        }
        let write_id = write.write_id.clone()?;
        let known = self.record.writes.iter().find(|one| one.write_id == write_id)?;
        let key = write.key.clone();
        if known.key != write.key || known.value != write.value.get() {
            let kind = TraceKind::WriteConflicted { write_id: write_id.clone(), key };
            happened.push((kind, decided!("remember_write_ids")));
            return Some(FenceReply::Conflict { write_id });
        }
        let kind = TraceKind::WriteRepeated { write_id, key };
        happened.push((kind, decided!("remember_write_ids")));
        Some(FenceReply::Duplicate { first: known.first.clone() })
    }

    /// The fence itself. `presented` is what the write carries, `mark` what the resource
    /// has admitted, and neither says what time it is.
    fn admit(&self, write: &Write, mark: &Mark) -> Result<(), (FenceReply, Option<Decision>)> {
        let presented = write.token.get();
        let fenced = FenceReply::Fenced {
            presented: write.token,
            high_water_mark: token(mark.high_water_mark),
        };
        // A claim covers the lease: fences of single keys never hear of one, and compare with
        // their mark only. 0 stands for "nobody has claimed" and is nobody's token.
        let is_unclaimed = presented != mark.claimed || presented == 0;
        match self.rules.guard {
            Guard::None => {}
            Guard::AtLeast if presented < mark.high_water_mark => {
                return Err((fenced, decided!("guard")));
            }
            Guard::AtLeast => {}
            Guard::Strict if presented <= mark.high_water_mark => {
                return Err((fenced, decided!("guard")));
            }
            Guard::Strict => {}
            Guard::Claimed if presented < mark.high_water_mark => {
                return Err((fenced, decided!("guard")));
            }
            Guard::Claimed if self.rules.fence_per_lease && is_unclaimed => {
                let claimed = token(mark.claimed);
                let reply = FenceReply::NotClaimed { presented: write.token, claimed };
                return Err((reply, decided!("guard")));
            }
            Guard::Claimed => {}
        }
        let expected = mark.next_seq.max(1);
        match write.seq {
            Some(seq) if self.rules.check_sequence && seq.get() != expected => {
                Err((FenceReply::Gap { expected }, decided!("check_sequence")))
            }
            _ => Ok(()),
        }
    }

    fn refusal(&self, write: &Write, mark: &Mark, reply: &FenceReply) -> TraceKind {
        let outcome = match reply {
            FenceReply::NotClaimed { .. } => "not_claimed",
            FenceReply::Gap { .. } => "gap",
            _ => "fenced",
        };
        TraceKind::WriteRefused {
            lease: label(&write.lease),
            key: write.key.clone(),
            value: write.value.get(),
            presented: write.token,
            high_water_mark: token(mark.high_water_mark),
            outcome: outcome.to_owned(),
            kept: self.record.values.get(write.key.as_str()).map(|stored| stored.value),
        }
    }

    fn store(&mut self, write: Write, happened: &mut Happened) -> FenceReply {
        let version = self.record.values.get(write.key.as_str()).map_or(0, |old| old.version) + 1;
        let stored = Stored { value: write.value.get(), token: write.token.get(), version };
        self.record.values.insert(write.key.as_str().to_owned(), stored);
        if let (true, Some(write_id)) = (self.rules.remember_write_ids, write.write_id.clone()) {
            let ordinal = self.record.writes.last().map_or(0, |last| last.ordinal) + 1;
            self.record.writes.push(RememberedWrite {
                ordinal,
                write_id,
                key: write.key.clone(),
                value: write.value.get(),
                first: FirstWrite { version, token: write.token },
            });
            if self.record.writes.len() > WRITES_MAX {
                self.record.writes.remove(0);
            }
        }
        let kind = TraceKind::WriteApplied {
            lease: label(&write.lease),
            token: write.token,
            key: write.key,
            value: write.value.get(),
            version,
            write_id: write.write_id,
        };
        happened.push((kind, decided!("guard")));
        FenceReply::Applied { version }
    }

    fn read(&self, read: Read, happened: &mut Happened) -> FenceReply {
        if let (true, Some(lease), Some(presented)) =
            (self.rules.fence_reads, &read.lease, read.token)
        {
            let mark = self.mark(&self.scope(lease, &read.key));
            if presented.get() < mark.high_water_mark {
                let high_water_mark = token(mark.high_water_mark);
                let lease = label(lease);
                let key = read.key;
                let kind = TraceKind::ReadRefused { lease, key, presented, high_water_mark };
                happened.push((kind, decided!("fence_reads")));
                return FenceReply::Fenced { presented, high_water_mark };
            }
        }
        let stored = self.record.values.get(read.key.as_str());
        let value = stored.map(|stored| stored.value);
        let version = stored.map_or(0, |stored| stored.version);
        let last = token(stored.map_or(0, |stored| stored.token));
        let kind = TraceKind::ValueRead {
            lease: read.lease.as_ref().map(label),
            token: read.token,
            key: read.key,
            value,
            version,
        };
        happened.push((kind, None));
        FenceReply::Value { value, version, token: last }
    }
}

/// A token that was valid when it was stored.
fn token(value: u64) -> FencingToken {
    FencingToken::try_from(value).expect("only valid tokens are ever stored")
}

fn label(name: &Name) -> Label {
    Label::try_from(name.as_str()).expect("every character of a name may stand in a label")
}

impl Tabled for FenceRecord {
    const SCHEMA: &'static [TableSchema] = &[
        TableSchema {
            name: "fence",
            columns: &[
                ("scope", Text),
                ("claimed", Integer),
                ("high_water_mark", Integer),
                ("next_seq", Integer),
            ],
        },
        TableSchema {
            name: "stored",
            columns: &[("key", Text), ("value", Integer), ("token", Integer), ("version", Integer)],
        },
        TableSchema {
            name: "write_ids",
            columns: &[
                ("ordinal", Integer),
                ("write_id", Text),
                ("key", Text),
                ("value", Integer),
                ("version", Integer),
                ("token", Integer),
            ],
        },
    ];

    fn to_rows(&self) -> Vec<Rows> {
        let marks = self.marks.iter().map(|(scope, mark)| {
            vec![
                scope.as_str().into(),
                mark.claimed.into(),
                mark.high_water_mark.into(),
                mark.next_seq.into(),
            ]
        });
        let values = self.values.iter().map(|(key, stored)| {
            vec![
                key.as_str().into(),
                stored.value.into(),
                stored.token.into(),
                stored.version.into(),
            ]
        });
        let writes = self.writes.iter().map(|write| {
            vec![
                write.ordinal.into(),
                write.write_id.as_str().into(),
                write.key.as_str().into(),
                write.value.into(),
                write.first.version.into(),
                write.first.token.get().into(),
            ]
        });
        vec![marks.collect(), values.collect(), writes.collect()]
    }

    fn from_rows(tables: &[Rows]) -> Option<Self> {
        let [marks, values, writes] = tables else { return None };
        if marks.is_empty() && values.is_empty() {
            return None;
        }
        let text = |cell: &Cell| cell.as_text().map(str::to_owned);
        Some(Self {
            marks: marks
                .iter()
                .filter_map(|row| {
                    let mark = Mark {
                        claimed: row[1].as_u64(),
                        high_water_mark: row[2].as_u64(),
                        next_seq: row[3].as_u64(),
                    };
                    Some((text(&row[0])?, mark))
                })
                .collect(),
            values: values
                .iter()
                .filter_map(|row| {
                    let stored = Stored {
                        value: row[1].as_i64(),
                        token: row[2].as_u64(),
                        version: row[3].as_u64(),
                    };
                    Some((text(&row[0])?, stored))
                })
                .collect(),
            writes: writes
                .iter()
                .filter_map(|row| {
                    Some(RememberedWrite {
                        ordinal: row[0].as_u64(),
                        write_id: Label::try_from(row[1].as_text()?).ok()?,
                        key: Label::try_from(row[2].as_text()?).ok()?,
                        value: row[3].as_i64(),
                        first: FirstWrite {
                            version: row[4].as_u64(),
                            token: FencingToken::try_from(row[5].as_u64()).ok()?,
                        },
                    })
                })
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without(rule: &str) -> FenceRules {
        let mut rules = FenceRules::repaired();
        rules.set(rule, &RuleValue::Switch(false)).expect("a rule of the fence");
        rules
    }

    fn guarded(guard: Guard) -> FenceRules {
        FenceRules { guard, ..FenceRules::repaired() }
    }

    fn safe<T: TryFrom<u64, Error: core::fmt::Debug>>(text: &str) -> T {
        text.parse::<u64>().expect("a number").try_into().expect("a number in range")
    }

    /// `claim 1`, `write 1 k=5 id=w1 seq=1`, `read 1 k`, `read - k`, `land` (the payload
    /// that waits longest), `crash` (it never lands). `other/claim 1` names another lease.
    fn input(text: &str, storing: &mut Vec<Write>) -> Option<FenceInput> {
        let (lease, rest) = text.split_once('/').unwrap_or(("orders", text));
        let lease = Name::try_from(lease).expect("a lease");
        let words: Vec<_> = rest.split_whitespace().collect();
        let option =
            |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        Some(match words[0] {
            "claim" => FenceInput::Claim(Claim { lease, token: safe(words[1]) }),
            "write" => {
                let (key, value) = words[2].split_once('=').expect("a key and a value");
                let value = value.parse::<i64>().expect("a number").try_into().expect("in range");
                FenceInput::Write(Write {
                    lease,
                    token: safe(words[1]),
                    key: key.try_into().expect("a key"),
                    value,
                    write_id: option("id").map(|id| Label::try_from(id).expect("an id")),
                    seq: option("seq").map(safe),
                })
            }
            "read" => FenceInput::Read(Read {
                lease: Some(lease),
                token: (words[1] != "-").then(|| safe(words[1])),
                key: words[2].try_into().expect("a key"),
            }),
            "land" => FenceInput::StorePayload(storing.remove(0)),
            "land-last" => FenceInput::StorePayload(storing.pop().expect("one that waits")),
            "crash" => {
                storing.clear();
                return None;
            }
            other => panic!("no verb: {other}"),
        })
    }

    fn said(reply: &FenceReply) -> String {
        match reply {
            FenceReply::Claimed { token } => format!("claimed {token}"),
            FenceReply::Applied { version } => format!("applied {version}"),
            FenceReply::Duplicate { first } => {
                format!("duplicate of {} by {}", first.version, first.token)
            }
            FenceReply::Fenced { presented, high_water_mark } => {
                format!("fenced {presented} by {high_water_mark}")
            }
            FenceReply::NotClaimed { presented, claimed } => {
                format!("not claimed {presented}, but {claimed}")
            }
            FenceReply::Gap { expected } => format!("gap, send {expected}"),
            FenceReply::Value { value, version, token } => {
                let value = value.map_or("nothing".to_owned(), |value| value.to_string());
                format!("{value}, version {version} by {token}")
            }
            FenceReply::Conflict { write_id } => format!("conflict {write_id}"),
            FenceReply::Full { keys_max } => format!("full at {keys_max}"),
        }
    }

    /// Runs `input => reply` lines. The object starts anew before every one of them, from
    /// nothing but what was persisted.
    fn check(rules: FenceRules, script: &str) -> FenceRecord {
        let mut record = FenceRecord::default();
        let mut storing = Vec::new();
        for line in script.trim().lines().map(str::trim) {
            let (asked, expected) = line.split_once(" => ").unwrap_or((line, ""));
            let Some(input) = input(asked, &mut storing) else { continue };
            let mut machine = FencedResource::restore(Some(record.clone()), rules);
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
                    Effect::Defer(FenceInput::StorePayload(write)) => storing.push(write),
                    Effect::Defer(other) => panic!("deferred: {other:?}"),
                }
            }
            assert_eq!(reply, expected, "{line}");
            assert_eq!(*machine.record(), record, "all of it persisted: {line}");
        }
        record
    }

    /// The kinds of event of the last line, with the rules that decided them.
    fn events(rules: FenceRules, script: &str) -> String {
        let (before, last) = script.trim().rsplit_once('\n').unwrap_or(("", script.trim()));
        let record = if before.is_empty() { <_>::default() } else { check(rules, before) };
        let input = input(last.trim(), &mut Vec::new()).expect("an input");
        let mut effects = Vec::new();
        FencedResource::restore(Some(record), rules).step(0, input, &mut effects);
        let named = effects.iter().filter_map(|effect| {
            let Effect::Record(kind, why) = effect else { return None };
            let kind = serde_json::to_value(kind).expect("an event");
            let rule = why.as_ref().map_or("nothing", |why| why.rule.as_str());
            Some(format!("{} by {rule}", kind["kind"].as_str().expect("a kind")))
        });
        named.collect::<Vec<_>>().join(", ")
    }

    /// What each guard says to tokens around the mark, which stands at 2.
    #[test]
    fn guards_compare() {
        let cases = [
            (Guard::None, ["applied 2", "applied 2", "applied 2"]),
            (Guard::AtLeast, ["fenced 1 by 2", "applied 2", "applied 2"]),
            (Guard::Strict, ["fenced 1 by 2", "fenced 2 by 2", "applied 2"]),
        ];
        for (guard, expected) in cases {
            for (token, answer) in (1..).zip(expected) {
                let script = format!("write 2 k=20 => applied 1\nwrite {token} k=7 => {answer}");
                check(guarded(guard), &script);
            }
        }
        let claimed = ["fenced 1 by 2", "applied 1", "not claimed 3, but 2"];
        for (token, answer) in (1..).zip(claimed) {
            let script = format!("claim 2 => claimed 2\nwrite {token} k=7 => {answer}");
            check(FenceRules::repaired(), &script);
        }
    }

    #[test]
    fn c1_late_write_before_the_newer_holders_first() {
        for guard in [Guard::None, Guard::AtLeast, Guard::Strict] {
            check(
                guarded(guard),
                "read 1 k => nothing, version 0 by 0
                 read 2 k => nothing, version 0 by 0
                 write 1 k=10 => applied 1
                 write 2 k=20 => applied 2",
            );
        }
        check(
            FenceRules::repaired(),
            "claim 1 => claimed 1
             read 1 k => nothing, version 0 by 0
             claim 2 => claimed 2
             read 2 k => nothing, version 0 by 0
             write 1 k=10 => fenced 1 by 2
             write 2 k=20 => applied 1
             claim 1 => fenced 1 by 2
             claim 2 => claimed 2
             write 2 k=21 => applied 2
             write 3 k=30 => not claimed 3, but 2",
        );
        // The claim alone closes it, with the weaker comparison too.
        check(guarded(Guard::AtLeast), "claim 2 => claimed 2\nwrite 1 k=10 => fenced 1 by 2");
    }

    #[test]
    fn c2_refused_or_already_done() {
        let lost = |answer: &str| {
            format!(
                "claim 5 => claimed 5\nwrite 5 k=1 id=w => applied 1\nwrite 5 k=1 id=w => {answer}"
            )
        };
        check(FenceRules::repaired(), &lost("duplicate of 1 by 5"));
        check(without("remember_write_ids"), &lost("applied 2"));
        // The paper's guard gives the answer for "stale" to its own repetition.
        let published = FenceRules { atomic_write: true, ..FenceRules::published() };
        check(published, "write 5 k=1 id=w => applied 1\nwrite 5 k=1 id=w => fenced 5 by 5");
        check(published, "write 5 k=1 id=w => applied 1\nwrite 6 k=1 id=w => applied 2");
        // The first result is told even to one who has been fenced since.
        check(
            FenceRules::repaired(),
            "claim 1 => claimed 1
             write 1 k=1 id=w => applied 1
             claim 2 => claimed 2
             write 1 k=1 id=w => duplicate of 1 by 1
             write 2 k=2 id=w => conflict w
             write 2 j=1 id=w => conflict w
             write 1 k=1 id=v => fenced 1 by 2",
        );
    }

    #[test]
    fn c3_writes_of_one_grant_keep_their_order() {
        let overtaken = "write 6 k=6 => applied 1\nwrite 5 k=5 => fenced 5 by 6";
        check(guarded(Guard::Strict), overtaken);
        check(
            FenceRules::repaired(),
            "claim 1 => claimed 1
             write 1 k=2 seq=2 => gap, send 1
             write 1 k=1 seq=1 => applied 1
             write 1 j=2 seq=2 => applied 1
             write 1 k=1 seq=1 => gap, send 3
             write 1 k=9 => applied 2
             claim 1 => claimed 1
             write 1 k=3 seq=3 => applied 3
             claim 2 => claimed 2
             write 2 k=4 seq=4 => gap, send 1
             write 2 k=4 seq=1 => applied 4",
        );
        check(without("check_sequence"), "claim 1 => claimed 1\nwrite 1 k=2 seq=2 => applied 1");
        // Without claims too, each grant numbers its writes from 1.
        check(
            guarded(Guard::AtLeast),
            "write 1 k=1 seq=1 => applied 1
             write 1 k=2 seq=2 => applied 2
             write 2 k=3 seq=1 => applied 3
             write 2 k=4 seq=2 => applied 4
             claim 2 => claimed 2
             write 2 k=5 seq=3 => applied 5",
        );
    }

    #[test]
    fn c4_guard_and_payload_in_one_commit() {
        let published = FenceRules::published();
        let record = check(
            published,
            "write 5 k=5 id=w
             write 6 k=6
             land-last => applied 1
             land => applied 2",
        );
        assert_eq!(record.values["k"], Stored { value: 5, token: 5, version: 2 }, "the older one");
        assert_eq!(record.marks["key/k"].high_water_mark, 6, "under the newer mark");
        // A crash in between: the mark is up, nothing is stored, the retry is refused.
        let record = check(published, "write 5 k=5\ncrash\nwrite 5 k=5 => fenced 5 by 5");
        assert!(record.values.is_empty());
        // Repaired but for this: a newer claim gets in between, and the older lands.
        check(
            without("atomic_write"),
            "claim 1 => claimed 1
             write 1 k=1
             claim 2 => claimed 2
             read 2 k => nothing, version 0 by 0
             land => applied 1
             read 2 k => 1, version 1 by 1",
        );
        check(FenceRules::repaired(), "claim 5 => claimed 5\nwrite 5 k=5 => applied 1\ncrash");
    }

    #[test]
    fn c5_one_fence_for_what_one_lease_covers() {
        let other_key = |answer: &str| format!("write 2 k=2 => applied 1\nwrite 1 j=1 => {answer}");
        let per_key = FenceRules { fence_per_lease: false, ..guarded(Guard::AtLeast) };
        check(per_key, &other_key("applied 1"));
        check(guarded(Guard::AtLeast), &other_key("fenced 1 by 2"));
        check(
            without("fence_per_lease"),
            "claim 1 => claimed 1
             claim 2 => claimed 2
             write 2 k=2 => applied 1
             write 1 k=1 => fenced 1 by 2
             write 1 j=1 => applied 1",
        );
        check(
            FenceRules::repaired(),
            "claim 2 => claimed 2
             write 2 k=2 => applied 1
             write 1 j=1 => fenced 1 by 2",
        );
    }

    #[test]
    fn c6_each_lease_has_its_own_fence() {
        check(
            FenceRules::repaired(),
            "orders/claim 7 => claimed 7
             stock/claim 2 => claimed 2
             orders/write 7 a=1 => applied 1
             stock/write 2 b=1 => applied 1
             stock/write 7 b=1 => not claimed 7, but 2",
        );
    }

    #[test]
    fn c7_the_guard_does_not_fail_open() {
        let write = |token: &str| {
            let text = format!(r#"{{"lease":"orders","token":{token},"key":"k","value":1}}"#);
            serde_json::from_str::<Write>(&text)
        };
        assert!(write("5").is_ok());
        for token in ["\"5\"", "null", "5.5", "-1", "1e400", "9007199254740992", "true", "\"zzz\""]
        {
            assert!(write(token).is_err(), "{token}");
        }
        let no_token = r#"{"lease":"orders","key":"k","value":1}"#;
        assert!(serde_json::from_str::<Write>(no_token).is_err());
        // 0 stands for "nobody has claimed", which is no claim.
        check(
            FenceRules::repaired(),
            "write 0 k=1 => not claimed 0, but 0
             claim 0 => claimed 0
             write 0 k=1 => not claimed 0, but 0
             write 1 k=1 => not claimed 1, but 0",
        );
        check(guarded(Guard::Strict), "write 0 k=1 => fenced 0 by 0");
    }

    #[test]
    fn c8_reads_are_fenced() {
        let deposed = |answer: &str| format!("claim 2 => claimed 2\nread 1 k => {answer}");
        check(FenceRules::repaired(), &deposed("fenced 1 by 2"));
        check(without("fence_reads"), &deposed("nothing, version 0 by 0"));
        check(
            FenceRules::repaired(),
            "claim 2 => claimed 2
             write 2 k=5 => applied 1
             read 2 k => 5, version 1 by 2
             read 3 k => 5, version 1 by 2
             read - k => 5, version 1 by 2
             read 2 j => nothing, version 0 by 0",
        );
    }

    #[test]
    fn keys_and_fences_are_bounded() {
        let mut script = "claim 1 => claimed 1".to_owned();
        for n in 0..KEYS_MAX {
            script += &format!("\nwrite 1 k{n}=1 => applied 1");
        }
        script += "\nwrite 1 one-more=1 => full at 64\nwrite 1 k0=2 => applied 2";
        assert_eq!(check(FenceRules::repaired(), &script).values.len(), KEYS_MAX);

        // Two new keys on their way at once, and room for one.
        let mut script = "claim 1 => claimed 1".to_owned();
        for n in 1..KEYS_MAX {
            script += &format!("\nwrite 1 k{n}=1\nland => applied 1");
        }
        script += "\nwrite 1 a=1\nwrite 1 b=1\nland => applied 1\nland => full at 64";
        assert_eq!(check(without("atomic_write"), &script).values.len(), KEYS_MAX);

        let mut script = String::new();
        for n in 0..SCOPES_MAX {
            script += &format!("l{n}/claim 1 => claimed 1\n");
        }
        script += "one-more/claim 1 => full at 64\nl0/claim 2 => claimed 2";
        assert_eq!(check(FenceRules::repaired(), &script).marks.len(), SCOPES_MAX);
        script += "\none-more/write 1 k=1 => full at 64";
        check(guarded(Guard::AtLeast), &script);
    }

    #[test]
    fn write_ids_are_bounded_and_the_oldest_is_forgotten() {
        let mut script = "claim 1 => claimed 1".to_owned();
        for n in 1..=WRITES_MAX + 1 {
            script += &format!("\nwrite 1 k={n} id=w{n} => applied {n}");
        }
        script += "\nwrite 1 k=2 id=w2 => duplicate of 2 by 1";
        script += "\nwrite 1 k=1 id=w1 => applied 66";
        assert_eq!(check(FenceRules::repaired(), &script).writes.len(), WRITES_MAX);
    }

    #[test]
    fn every_event_names_the_rule_that_decided() {
        let claimed = "claim 2 => claimed 2\nwrite 2 k=5 id=w seq=1 => applied 1";
        let cases = [
            ("claim 3", "claimed by guard"),
            ("claim 1", "claim_refused by guard"),
            ("write 2 k=6", "write_applied by guard"),
            ("write 1 k=6", "write_refused by guard"),
            ("write 3 k=6", "write_refused by guard"),
            ("write 2 k=6 seq=9", "write_refused by check_sequence"),
            ("write 2 k=5 id=w", "write_repeated by remember_write_ids"),
            ("write 2 k=6 id=w", "write_conflicted by remember_write_ids"),
            ("read 1 k", "read_refused by fence_reads"),
            ("read 2 k", "value_read by nothing"),
        ];
        for (last, expected) in cases {
            let found = events(FenceRules::repaired(), &format!("{claimed}\n{last}"));
            assert_eq!(found, expected, "{last}");
        }
        assert_eq!(
            events(FenceRules::published(), "write 1 k=1"),
            "write_admitted by atomic_write"
        );
    }

    #[test]
    fn time_is_nothing_to_it() {
        let mut machine = FencedResource::restore(None, FenceRules::repaired());
        let mut effects = Vec::new();
        machine.step(1_000, FencedResource::tick(), &mut effects);
        assert_eq!((effects, machine.next_deadline()), (vec![], None));
    }

    #[test]
    fn records_survive_rows_and_json() {
        let record = check(
            FenceRules::repaired(),
            "orders/claim 3 => claimed 3
             stock/claim 9007199254740991 => claimed 9007199254740991
             orders/write 3 a=-9007199254740991 id=w1 seq=1 => applied 1
             orders/write 3 a=7 id=w2 seq=2 => applied 2
             stock/write 9007199254740991 b=0 id=w3 => applied 1",
        );
        assert_eq!((record.marks.len(), record.values.len(), record.writes.len()), (2, 2, 3));
        assert_eq!(FenceRecord::from_rows(&record.to_rows()), Some(record.clone()));
        let json = serde_json::to_string(&record).expect("a record is JSON");
        assert_eq!(serde_json::from_str::<FenceRecord>(&json).expect("and back"), record);
        for (rows, table) in record.to_rows().iter().zip(FenceRecord::SCHEMA) {
            assert!(rows.iter().all(|row| row.len() == table.columns.len()), "{}", table.name);
        }
        let nothing = FenceRecord::default().to_rows();
        assert_eq!(FenceRecord::from_rows(&nothing), None, "nothing stored");
        assert_eq!(FenceRecord::from_rows(&[]), None);
    }

    #[test]
    fn rules_are_set_by_name() {
        let word = |word: &str| RuleValue::Choice(word.to_owned());
        for (name, guard) in Guard::ALL {
            let mut rules = FenceRules::published();
            assert_eq!(rules.set("guard", &word(name)), Ok(()));
            assert_eq!((rules.guard, guard.as_str()), (guard, name));
        }
        let mut rules = FenceRules::published();
        for (rule, value) in FenceRules::repaired().entries() {
            assert_eq!(rules.set(rule, &value), Ok(()));
        }
        assert_eq!(rules, FenceRules::repaired());
        for (rule, value) in [
            ("guard", word("paranoid")),
            ("guard", RuleValue::Switch(true)),
            ("atomic_write", word("yes")),
            ("atomic", RuleValue::Switch(true)),
        ] {
            assert!(rules.set(rule, &value).is_err(), "{rule} {value}");
        }
        assert_eq!(rules, FenceRules::repaired(), "a refused change changes nothing");
    }
}
