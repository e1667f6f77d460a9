//! What must hold, as one checker each over the log.
//!
//! The tests and the page's live strip use the same checkers: green from the first event,
//! red at the exact event that breaks the invariant, and on they go afterwards, since
//! exploring beyond a violation is allowed.
//!
//! They look at effects, not at rules: a checker knows nothing of the switches in force.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::ids::{Label, NodeId};
use crate::trace::{MessageId, TraceEvent, TraceKind};

mod transactions;

/// What must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Invariant {
    /// Each grant has a higher token than the one before.
    TokensRise,
    /// By the authority's clock there is at most one holder.
    OneHolder,
    /// Writes to one key land in the order of their tokens.
    EffectsInTokenOrder,
    /// Nothing of an older grant lands after a newer holder has begun.
    NoOlderEffect,
    /// Nobody overwrites a value it has not seen.
    NoLostUpdate,
    /// A write id has one effect.
    OneEffectPerWriteId,
    /// Number and operation are one to one, in order.
    OneOperationPerNumber,
    /// An operation id has one effect.
    OneEffectPerOpId,
    /// A key has one shard at a time.
    OneShardPerKey,
    /// AC1: a transaction ends everywhere in the same way.
    Agreement,
    /// AC2: it commits only if every participant holds its leg.
    Validity,
    /// AC3: a decision does not change.
    Stability,
    /// AC4, as far as a log can show it: when it is over, nobody holds anything for it.
    NothingLeftPrepared,
    /// No account falls below zero.
    NoOverdraft,
    /// What one account loses another gets.
    MoneyConserved,
    /// Every caller is told the same.
    SameOutcomeTold,
}

impl Invariant {
    /// Every one, in the order in which the strip shows them.
    pub const ALL: [Self; 16] = [
        Self::TokensRise,
        Self::OneHolder,
        Self::EffectsInTokenOrder,
        Self::NoOlderEffect,
        Self::NoLostUpdate,
        Self::OneEffectPerWriteId,
        Self::OneOperationPerNumber,
        Self::OneEffectPerOpId,
        Self::OneShardPerKey,
        Self::Agreement,
        Self::Validity,
        Self::Stability,
        Self::NothingLeftPrepared,
        Self::NoOverdraft,
        Self::MoneyConserved,
        Self::SameOutcomeTold,
    ];

    /// The word used in scripts: `no_older_effect`.
    pub fn word(self) -> &'static str {
        match self {
            Self::TokensRise => "tokens_rise",
            Self::OneHolder => "one_holder",
            Self::EffectsInTokenOrder => "effects_in_token_order",
            Self::NoOlderEffect => "no_older_effect",
            Self::NoLostUpdate => "no_lost_update",
            Self::OneEffectPerWriteId => "one_effect_per_write_id",
            Self::OneOperationPerNumber => "one_operation_per_number",
            Self::OneEffectPerOpId => "one_effect_per_op_id",
            Self::OneShardPerKey => "one_shard_per_key",
            Self::Agreement => "agreement",
            Self::Validity => "validity",
            Self::Stability => "stability",
            Self::NothingLeftPrepared => "nothing_left_prepared",
            Self::NoOverdraft => "no_overdraft",
            Self::MoneyConserved => "money_conserved",
            Self::SameOutcomeTold => "same_outcome_told",
        }
    }

    /// The words on the strip.
    pub fn label(self) -> &'static str {
        match self {
            Self::TokensRise => "tokens rise",
            Self::OneHolder => "one holder",
            Self::EffectsInTokenOrder => "effects in token order",
            Self::NoOlderEffect => "no older effect",
            Self::NoLostUpdate => "no lost update",
            Self::OneEffectPerWriteId => "one effect per write",
            Self::OneOperationPerNumber => "one operation per number",
            Self::OneEffectPerOpId => "one effect per operation",
            Self::OneShardPerKey => "one shard per key",
            Self::Agreement => "agreement",
            Self::Validity => "validity",
            Self::Stability => "stability",
            Self::NothingLeftPrepared => "nothing left prepared",
            Self::NoOverdraft => "no overdraft",
            Self::MoneyConserved => "money conserved",
            Self::SameOutcomeTold => "same outcome told",
        }
    }

    /// One sentence.
    pub fn explanation(self) -> &'static str {
        match self {
            Self::TokensRise => "Each grant carries a higher token than every grant before it.",
            Self::OneHolder => "By the authority's own clock, at most one client holds the lease.",
            Self::EffectsInTokenOrder => "Writes to one key land in the order of their tokens.",
            Self::NoOlderEffect => {
                "Once a newer holder has claimed, read or written, nothing of an older grant lands."
            }
            Self::NoLostUpdate => "Nobody who has read a key overwrites a value it has not seen.",
            Self::OneEffectPerWriteId => "A write that is sent twice under one id has one effect.",
            Self::OneOperationPerNumber => {
                "Every number belongs to one operation, and effects follow the numbers without a gap."
            }
            Self::OneEffectPerOpId => {
                "An operation that is sent twice under one id has one effect."
            }
            Self::OneShardPerKey => "No two shards serve the same key at the same time.",
            Self::Agreement => "A transaction is done by all of its accounts or by none.",
            Self::Validity => "A transaction commits only if every account holds its leg for it.",
            Self::Stability => "What was decided once is never decided otherwise.",
            Self::NothingLeftPrepared => {
                "When a transaction is over, no account holds anything for it."
            }
            Self::NoOverdraft => "No account falls below zero.",
            Self::MoneyConserved => {
                "Once all legs of a transaction have ended, what was taken is what was given."
            }
            Self::SameOutcomeTold => "All callers of a transaction are told the same outcome.",
        }
    }

    /// The invariant with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|invariant| invariant.word() == word)
    }

    /// Whether the log has anything that this invariant is about.
    fn concerns(self, kind: &TraceKind) -> bool {
        match self {
            Self::TokensRise | Self::OneHolder => matches!(kind, TraceKind::LeaseGranted { .. }),
            Self::EffectsInTokenOrder | Self::NoOlderEffect | Self::NoLostUpdate => matches!(
                kind,
                TraceKind::WriteApplied { .. }
                    | TraceKind::WriteRefused { .. }
                    | TraceKind::ValueRead { .. }
            ),
            Self::OneEffectPerWriteId => {
                matches!(kind, TraceKind::WriteApplied { write_id: Some(_), .. })
            }
            Self::OneOperationPerNumber | Self::OneShardPerKey => {
                matches!(
                    kind,
                    TraceKind::OperationApplied { .. } | TraceKind::OperationNumbered { .. }
                )
            }
            Self::OneEffectPerOpId => {
                matches!(kind, TraceKind::OperationApplied { op_id: Some(_), .. })
            }
            Self::Agreement
            | Self::Validity
            | Self::Stability
            | Self::NothingLeftPrepared
            | Self::MoneyConserved
            | Self::SameOutcomeTold => matches!(kind, TraceKind::PreparingRecorded { .. }),
            Self::NoOverdraft => matches!(kind, TraceKind::AccountOpened { .. }),
        }
    }
}

/// The event at which an invariant was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which one.
    pub invariant: Invariant,
    /// The event.
    pub seq: u64,
    /// What happened, in one sentence.
    pub sentence: String,
}

/// All checkers, fed one event after the other.
#[derive(Clone, Debug, Default)]
pub struct Checkers {
    violations: Vec<Violation>,
    concerned: BTreeSet<Invariant>,
    leases: BTreeMap<NodeId, Lease>,
    keys: BTreeMap<(NodeId, Label), u64>,
    begun: BTreeMap<(NodeId, Label), u64>,
    senders: BTreeMap<MessageId, NodeId>,
    versions_seen: BTreeMap<(NodeId, Label, NodeId), u64>,
    ids: BTreeSet<(NodeId, Label)>,
    numbers: BTreeMap<NodeId, u64>,
    shard_of_key: BTreeMap<Label, NodeId>,
    sealed: BTreeSet<NodeId>,
    transactions: transactions::Transactions,
}

#[derive(Clone, Debug, Default)]
struct Lease {
    token: u64,
    holder: Option<(Label, Option<Label>)>,
    expires_at_ms: u64,
}

impl Checkers {
    /// Nothing seen yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Everything broken so far, in the order of the log.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// The invariants that the log so far is about, in the order of [`Invariant::ALL`].
    pub fn concerned(&self) -> impl Iterator<Item = Invariant> + '_ {
        Invariant::ALL.into_iter().filter(|invariant| self.concerned.contains(invariant))
    }

    /// Takes the next event of the log.
    pub fn observe(&mut self, event: &TraceEvent) {
        self.concerned.extend(Invariant::ALL.into_iter().filter(|one| one.concerns(&event.kind)));
        for (invariant, sentence) in self.transactions.observe(event) {
            self.broken(invariant, event, sentence);
        }
        match &event.kind {
            TraceKind::RequestSent { .. } => {
                if let Some(request) = &event.request {
                    self.senders.insert(request.clone(), event.node.clone());
                }
            }
            TraceKind::LeaseExpired { .. } | TraceKind::LeaseReleased { .. } => {
                self.leases.entry(event.node.clone()).or_default().holder = None;
            }
            TraceKind::LeaseGranted { .. } => self.observe_grant(event),
            TraceKind::LeaseRenewed { expires_at_ms, .. } => {
                self.leases.entry(event.node.clone()).or_default().expires_at_ms = *expires_at_ms;
            }
            TraceKind::Claimed { lease, token } => self.begin(event, lease, token.get()),
            TraceKind::WriteAdmitted { lease, token, .. } => self.begin(event, lease, token.get()),
            TraceKind::ValueRead { .. } => self.observe_read(event),
            TraceKind::WriteApplied { .. } => self.observe_write(event),
            TraceKind::ShardSealed { .. } => {
                self.sealed.insert(event.node.clone());
            }
            TraceKind::ShardOpened { .. } => {
                self.sealed.remove(&event.node);
            }
            TraceKind::OperationApplied { .. } => self.observe_operation(event),
            _ => {}
        }
    }

    fn broken(&mut self, invariant: Invariant, event: &TraceEvent, sentence: String) {
        self.violations.push(Violation { invariant, seq: event.seq, sentence });
    }

    fn observe_grant(&mut self, event: &TraceEvent) {
        let TraceKind::LeaseGranted { holder, nonce, token, expires_at_ms, clock_ms, .. } =
            &event.kind
        else {
            return;
        };
        let lease = self.leases.entry(event.node.clone()).or_default();
        let before = lease.clone();
        *lease = Lease {
            token: token.get().max(before.token),
            holder: Some((holder.clone(), nonce.clone())),
            expires_at_ms: *expires_at_ms,
        };
        if token.get() <= before.token {
            let sentence = format!(
                "{holder} was granted token {token}, but {} had been granted before.",
                before.token
            );
            self.broken(Invariant::TokensRise, event, sentence);
        }
        let Some((other, other_nonce)) = before.holder else { return };
        let is_other = other != *holder || other_nonce != *nonce;
        if is_other && before.expires_at_ms > *clock_ms {
            let who = if other == *holder {
                format!("a second process named {holder}")
            } else {
                holder.to_string()
            };
            let left_ms = before.expires_at_ms - clock_ms;
            let sentence =
                format!("The lease went to {who} while {other} still held it for {left_ms} ms.");
            self.broken(Invariant::OneHolder, event, sentence);
        }
    }

    fn begin(&mut self, event: &TraceEvent, lease: &Label, token: u64) {
        let begun = self.begun.entry((event.node.clone(), lease.clone())).or_default();
        *begun = token.max(*begun);
    }

    fn sender(&self, event: &TraceEvent) -> Option<NodeId> {
        event.request.as_ref().and_then(|request| self.senders.get(request)).cloned()
    }

    fn observe_read(&mut self, event: &TraceEvent) {
        let TraceKind::ValueRead { lease, token, key, version, .. } = &event.kind else { return };
        if let (Some(lease), Some(token)) = (lease, token) {
            self.begin(event, lease, token.get());
        }
        if let Some(sender) = self.sender(event) {
            self.versions_seen.insert((event.node.clone(), key.clone(), sender), *version);
        }
    }

    fn observe_write(&mut self, event: &TraceEvent) {
        let TraceKind::WriteApplied { lease, token, key, version, write_id, .. } = &event.kind
        else {
            return;
        };
        let last = self.keys.entry((event.node.clone(), key.clone())).or_default();
        let before = *last;
        *last = token.get().max(before);
        if token.get() < before {
            let sentence =
                format!("A write with token {token} landed after one with token {before}.");
            self.broken(Invariant::EffectsInTokenOrder, event, sentence);
        }
        let begun = self.begun.get(&(event.node.clone(), lease.clone())).copied().unwrap_or(0);
        if token.get() < begun {
            let sentence = format!(
                "A write with token {token} landed although token {begun} had already begun."
            );
            self.broken(Invariant::NoOlderEffect, event, sentence);
        }
        self.begin(event, lease, token.get());
        if let Some(write_id) = write_id
            && !self.ids.insert((event.node.clone(), write_id.clone()))
        {
            let sentence = format!("Write {write_id} was applied a second time.");
            self.broken(Invariant::OneEffectPerWriteId, event, sentence);
        }
        self.check_lost_update(event, key, *version);
    }

    fn check_lost_update(&mut self, event: &TraceEvent, key: &Label, version: u64) {
        let Some(sender) = self.sender(event) else { return };
        let seen =
            self.versions_seen.insert((event.node.clone(), key.clone(), sender.clone()), version);
        let Some(seen) = seen else { return };
        let n_unseen = version.saturating_sub(1).saturating_sub(seen);
        if n_unseen > 0 {
            let who = sender.name();
            let sentence = match n_unseen {
                1 => format!("{who} overwrote a write to {key} that it had never seen."),
                n => format!("{who} overwrote {n} writes to {key} that it had never seen."),
            };
            self.broken(Invariant::NoLostUpdate, event, sentence);
        }
    }

    fn observe_operation(&mut self, event: &TraceEvent) {
        let TraceKind::OperationApplied { number, key, op_id, .. } = &event.kind else { return };
        let last = self.numbers.entry(event.node.clone()).or_default();
        let before = *last;
        *last = (*number).max(before);
        if *number != before + 1 {
            let sentence = if *number > before {
                format!("Operation {number} took effect, but {} never did.", before + 1)
            } else {
                format!("Operation {number} took effect after operation {before}.")
            };
            self.broken(Invariant::OneOperationPerNumber, event, sentence);
        }
        if let Some(op_id) = op_id
            && !self.ids.insert((event.node.clone(), op_id.clone()))
        {
            let sentence = format!("Operation {op_id} took effect a second time.");
            self.broken(Invariant::OneEffectPerOpId, event, sentence);
        }
        let other = self.shard_of_key.insert(key.clone(), event.node.clone());
        if let Some(other) =
            other.filter(|other| *other != event.node && !self.sealed.contains(other))
        {
            let sentence =
                format!("{} wrote {key}, which {} still serves.", event.node.name(), other.name());
            self.broken(Invariant::OneShardPerKey, event, sentence);
        }
    }
}

/// Everything that a whole log breaks.
pub fn check(log: &[TraceEvent]) -> Vec<Violation> {
    let mut checkers = Checkers::new();
    log.iter().for_each(|event| checkers.observe(event));
    checkers.violations
}
