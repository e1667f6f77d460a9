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
