//! The account's record as rows.

use super::{AccountRecord, Heuristic, Hold, HoldState};
use crate::ids::Name;
use crate::table::{
    Cell,
    ColumnType::{Integer, Text},
    Rows, TableSchema, Tabled,
};
use crate::transaction::Decision;

impl HoldState {
    /// The word in the table.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Prepared => "prepared",
            Self::Committed => "committed",
            Self::Aborted => "aborted",
        }
    }

    fn from_word(word: &str) -> Option<Self> {
        [Self::Prepared, Self::Committed, Self::Aborted]
            .into_iter()
            .find(|state| state.as_str() == word)
    }
}

impl Tabled for AccountRecord {
    const SCHEMA: &'static [TableSchema] = &[
        TableSchema {
            name: "account",
            columns: &[("id", Integer), ("balance", Integer), ("available", Integer)],
        },
        TableSchema {
            name: "holds",
            columns: &[
                ("txn", Text),
                ("state", Text),
                ("leg", Integer),
                ("delta", Integer),
                ("fence", Integer),
                ("since_ms", Integer),
                ("n_inquiries", Integer),
                ("inquire_at_ms", Integer),
                ("last_error", Text),
                ("by_hand", Text),
                ("reason", Text),
                ("mixed", Integer),
                ("forget_at_ms", Integer),
            ],
        },
    ];

    fn to_rows(&self) -> Vec<Rows> {
        // `available` is there to be looked at; it is not read back.
        let account =
            vec![vec![0_u64.into(), Cell::from(self.balance), Cell::from(self.available())]];
        let holds = self.holds.iter().map(|(txn, hold)| {
            let by_hand = hold.heuristic.as_ref();
            vec![
                txn.as_str().into(),
                hold.state.as_str().into(),
                hold.leg.into(),
                hold.delta.into(),
                hold.fence.into(),
                hold.since_ms.into(),
                hold.n_inquiries.into(),
                Cell::from(hold.inquire_at_ms),
                Cell::from(hold.last_error.as_deref()),
                Cell::from(by_hand.map(|heuristic| heuristic.decision.as_str())),
                Cell::from(by_hand.map(|heuristic| heuristic.reason.as_str())),
                Cell::from(by_hand.map(|heuristic| u64::from(heuristic.mixed))),
                Cell::from(hold.forget_at_ms),
            ]
        });
        vec![account, holds.collect()]
    }

    fn from_rows(tables: &[Rows]) -> Option<Self> {
        let [account, holds] = tables else { return None };
        let balance = match account.first()?.get(1)? {
            Cell::Null => None,
            cell => Some(cell.as_i64()),
        };
        let holds = holds.iter().filter_map(|row| Some((name(row)?, hold(row)?))).collect();
        Some(Self { balance, holds })
    }
}

fn name(row: &[Cell]) -> Option<Name> {
    Name::try_from(row.first()?.as_text()?).ok()
}

fn optional(cell: &Cell) -> Option<u64> {
    (*cell != Cell::Null).then(|| cell.as_u64())
}

fn hold(row: &[Cell]) -> Option<Hold> {
    let [_, state, leg, delta, fence, since, n, at, error, by_hand, reason, mixed, forget] = row
    else {
        return None;
    };
    let heuristic = by_hand.as_text().and_then(Decision::from_word).map(|decision| Heuristic {
        decision,
        reason: reason.as_text().unwrap_or_default().to_owned(),
        mixed: mixed.as_u64() == 1,
    });
    Some(Hold {
        state: HoldState::from_word(state.as_text()?)?,
        leg: leg.as_u64(),
        delta: delta.as_i64(),
        fence: fence.as_u64(),
        since_ms: since.as_u64(),
        n_inquiries: n.as_u64(),
        inquire_at_ms: optional(at),
        last_error: error.as_text().map(str::to_owned),
        heuristic,
        forget_at_ms: optional(forget),
    })
}
