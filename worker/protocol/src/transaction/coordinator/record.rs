//! What a coordinator has on disk.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::ids::Name;
use crate::table::{
    Cell,
    ColumnType::{Integer, Text},
    Rows, TableSchema, Tabled,
};
use crate::transaction::{Decision, Leg};

/// How far the transaction is. Repaired, it only moves down this list.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Phase {
    /// Never run: presumed aborted, should anybody ask.
    #[default]
    None,
    /// The participants are being asked.
    Preparing,
    /// Decided; not everybody has acknowledged.
    Commit,
    /// Decided; not everybody has acknowledged.
    Abort,
    /// Over.
    DoneCommit,
    /// Over.
    DoneAbort,
}

impl Phase {
    const ALL: [Self; 6] =
        [Self::None, Self::Preparing, Self::Commit, Self::Abort, Self::DoneCommit, Self::DoneAbort];

    /// The word in the table.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Preparing => "preparing",
            Self::Commit => "commit",
            Self::Abort => "abort",
            Self::DoneCommit => "done_commit",
            Self::DoneAbort => "done_abort",
        }
    }

    /// What is decided; `None` before that.
    pub const fn decision(self) -> Option<Decision> {
        match self {
            Self::None | Self::Preparing => None,
            Self::Commit | Self::DoneCommit => Some(Decision::Commit),
            Self::Abort | Self::DoneAbort => Some(Decision::Abort),
        }
    }
}

/// One leg, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TxnLeg {
    /// The account.
    pub account: Name,
    /// What is added to it.
    pub delta: i64,
    /// What a person decided for it.
    pub by_hand: Option<Decision>,
    /// It ended otherwise than the transaction.
    pub mixed: bool,
    /// Why its last message or answer was no good.
    pub last_error: Option<String>,
}

/// What survives a crash.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TxnRecord {
    /// How far it is.
    pub phase: Phase,
    /// In the order of the request.
    pub legs: Vec<TxnLeg>,
    /// The round, raised at each recovery; participants refuse a lower one.
    pub fence: u64,
    /// Who has acknowledged the decision.
    pub acked: BTreeSet<Name>,
    /// How often the coordinator has set to work.
    pub attempts: u64,
    /// How often of these after the decision.
    pub n_retries: u64,
    /// When it does so next, by its own clock.
    pub next_attempt_at_ms: Option<u64>,
    /// When it was first run.
    pub since_ms: u64,
    /// Why it was aborted.
    pub reason: Option<String>,
    /// The participants have been told to forget it.
    pub forgotten: bool,
}

impl TxnRecord {
    /// How many legs have not acknowledged the decision and still may.
    pub fn n_pending(&self) -> u64 {
        let is_open = |leg: &&TxnLeg| !leg.mixed && !self.acked.contains(&leg.account);
        self.legs.iter().filter(is_open).count() as u64
    }

    /// Whether the outcome is not the same everywhere, as far as is known here.
    pub fn is_mixed(&self) -> bool {
        self.legs.iter().any(|leg| leg.mixed)
    }

    /// A new round. Who acknowledged an earlier one stays in the record, as the paper has it.
    pub(super) fn begin(&mut self, legs: &[Leg], now_ms: u64) {
        if self.phase == Phase::None {
            self.since_ms = now_ms;
        }
        let leg = |leg: &Leg| TxnLeg {
            account: leg.account.clone(),
            delta: leg.delta.get(),
            by_hand: None,
            mixed: false,
            last_error: None,
        };
        self.legs = legs.iter().map(leg).collect();
        self.phase = Phase::Preparing;
        self.fence += 1;
        self.reason = None;
    }

    /// How other legs differ from the recorded ones, in words.
    pub(super) fn difference(&self, legs: &[Leg]) -> Option<String> {
        let differs = |(known, given): &(&TxnLeg, &Leg)| {
            known.account != given.account || known.delta != given.delta.get()
        };
        if let Some((known, given)) = self.legs.iter().zip(legs).find(differs) {
            return Some(format!(
                "it has {} {:+} where the request has {} {:+}",
                known.account,
                known.delta,
                given.account,
                given.delta.get()
            ));
        }
        let (n_known, n_given) = (self.legs.len(), legs.len());
        (n_known != n_given).then(|| format!("it has {n_known} legs and the request has {n_given}"))
    }

    pub(super) fn note_error(&mut self, account: &Name, error: String) {
        if let Some(leg) = self.legs.iter_mut().find(|leg| leg.account == *account) {
            leg.last_error = Some(error);
        }
    }
}

impl Tabled for TxnRecord {
    const SCHEMA: &'static [TableSchema] = &[
        TableSchema {
            name: "txn",
            columns: &[
                ("id", Integer),
                ("phase", Text),
                ("fence", Integer),
                ("attempts", Integer),
                ("n_retries", Integer),
                ("next_attempt_at_ms", Integer),
                ("since_ms", Integer),
                ("reason", Text),
                ("forgotten", Integer),
            ],
        },
        TableSchema {
            name: "legs",
            columns: &[
                ("leg", Integer),
                ("account", Text),
                ("delta", Integer),
                ("acked", Integer),
                ("by_hand", Text),
                ("mixed", Integer),
                ("last_error", Text),
            ],
        },
    ];

    fn to_rows(&self) -> Vec<Rows> {
        let txn = vec![vec![
            0_u64.into(),
            self.phase.as_str().into(),
            self.fence.into(),
            self.attempts.into(),
            self.n_retries.into(),
            Cell::from(self.next_attempt_at_ms),
            self.since_ms.into(),
            Cell::from(self.reason.as_deref()),
            u64::from(self.forgotten).into(),
        ]];
        let legs = (0_u64..).zip(&self.legs).map(|(index, leg)| {
            vec![
                index.into(),
                leg.account.as_str().into(),
                leg.delta.into(),
                u64::from(self.acked.contains(&leg.account)).into(),
                Cell::from(leg.by_hand.map(Decision::as_str)),
                u64::from(leg.mixed).into(),
                Cell::from(leg.last_error.as_deref()),
            ]
        });
        vec![txn, legs.collect()]
    }

    fn from_rows(tables: &[Rows]) -> Option<Self> {
        let [txn, legs] = tables else { return None };
        let [_, phase, fence, attempts, n_retries, next, since, reason, forgotten] =
            &txn.first()?[..]
        else {
            return None;
        };
        let phase = phase.as_text()?;
        let legs: Vec<(TxnLeg, bool)> = legs.iter().filter_map(|row| leg(row)).collect();
        let acked = legs.iter().filter(|(_, is_acked)| *is_acked);
        Some(Self {
            phase: Phase::ALL.into_iter().find(|known| known.as_str() == phase)?,
            fence: fence.as_u64(),
            attempts: attempts.as_u64(),
            n_retries: n_retries.as_u64(),
            next_attempt_at_ms: (*next != Cell::Null).then(|| next.as_u64()),
            since_ms: since.as_u64(),
            reason: reason.as_text().map(str::to_owned),
            forgotten: forgotten.as_u64() == 1,
            acked: acked.map(|(leg, _)| leg.account.clone()).collect(),
            legs: legs.into_iter().map(|(leg, _)| leg).collect(),
        })
    }
}

fn leg(row: &[Cell]) -> Option<(TxnLeg, bool)> {
    let [_, account, delta, acked, by_hand, mixed, last_error] = row else { return None };
    let leg = TxnLeg {
        account: Name::try_from(account.as_text()?).ok()?,
        delta: delta.as_i64(),
        by_hand: by_hand.as_text().and_then(Decision::from_word),
        mixed: mixed.as_u64() == 1,
        last_error: last_error.as_text().map(str::to_owned),
    };
    Some((leg, acked.as_u64() == 1))
}
