//! What a coordinator has in memory: a call of `run`, or of the alarm, that waits for answers.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::Name;
use crate::transaction::Decision;
use crate::transaction::message::Vote;

/// One activation: it asked the participants and waits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Flight {
    /// What its messages carry.
    pub(super) fence: u64,
    /// The votes so far, by leg.
    pub(super) votes: BTreeMap<u64, Vote>,
    /// Phase two; `None` while it waits for votes.
    pub(super) finishing: Option<Finishing>,
}

/// Phase two of a flight.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Finishing {
    pub(super) decision: Decision,
    /// Who has not answered; an account twice if it has two legs.
    pub(super) outstanding: Vec<Name>,
    /// Who has, as the paper keeps it: read at the start, written at the end.
    pub(super) acked: BTreeSet<Name>,
    /// An alarm began it.
    pub(super) by_alarm: bool,
}

impl Flight {
    pub(super) fn voting(fence: u64) -> Self {
        Self { fence, votes: BTreeMap::new(), finishing: None }
    }

    pub(super) fn is_voting(&self) -> bool {
        self.finishing.is_none()
    }
}
