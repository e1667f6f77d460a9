//! What coordinator and participants say to each other.
//!
//! Every message is one way. A peer's answer is a message too, thus another input of the
//! machine, so that losing, holding or repeating it needs no case of its own. The name of
//! the transaction is the name of its coordinator: the envelope says who speaks.

use core::fmt;

use serde::{Deserialize, Serialize};

use super::{Decision, Reason};

/// Why a participant votes No.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum NoReason {
    /// Less is available than the leg takes.
    InsufficientFunds,
    /// The account was never opened (P7).
    NotOpened,
    /// The transaction was aborted here before.
    AlreadyAborted,
    /// It was committed here before.
    AlreadyCommitted,
    /// It was prepared here with another leg (P5).
    OtherLeg,
    /// A later round of the coordinator has been here.
    StaleCoordinator,
    /// The balance would leave the safe range, or the account has as many holds as it may.
    Full,
    /// No answer: the participant could not be reached.
    Unreachable,
    /// No answer in time.
    VoteDeadline,
}

impl NoReason {
    /// The word used in replies: `insufficient_funds`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InsufficientFunds => "insufficient_funds",
            Self::NotOpened => "not_opened",
            Self::AlreadyAborted => "already_aborted",
            Self::AlreadyCommitted => "already_committed",
            Self::OtherLeg => "other_leg",
            Self::StaleCoordinator => "stale_coordinator",
            Self::Full => "full",
            Self::Unreachable => "unreachable",
            Self::VoteDeadline => "vote_deadline",
        }
    }

    /// The reason with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        [
            Self::InsufficientFunds,
            Self::NotOpened,
            Self::AlreadyAborted,
            Self::AlreadyCommitted,
            Self::OtherLeg,
            Self::StaleCoordinator,
            Self::Full,
            Self::Unreachable,
            Self::VoteDeadline,
        ]
        .into_iter()
        .find(|reason| reason.as_str() == word)
    }
}

/// A participant's vote. After Yes it decides nothing alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Vote {
    /// It can commit, and will if told to.
    Yes,
    /// It cannot.
    No(NoReason),
}

/// What a participant says about a decision it was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Answer {
    /// Done now.
    Applied,
    /// Done before.
    Already,
    /// Nothing is known of the transaction here.
    Unknown,
    /// It was aborted here, so it cannot be committed.
    Aborted,
    /// It was committed here, so it cannot be aborted (FC-18).
    Committed,
    /// A later round of the coordinator has been here.
    Stale,
}

impl Answer {
    /// The word in the log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Already => "already",
            Self::Unknown => "unknown",
            Self::Aborted => "aborted",
            Self::Committed => "committed",
            Self::Stale => "stale",
        }
    }

    /// Whether it says that the decision is in force there. Only a positive record does
    /// (FC-10); having nothing to abort is as good as having aborted.
    pub(crate) fn acknowledges(self, decision: Decision) -> bool {
        match decision {
            Decision::Commit => matches!(self, Self::Applied | Self::Already),
            Decision::Abort => matches!(self, Self::Applied | Self::Already | Self::Unknown),
        }
    }

    /// Whether it says that the opposite is in force there, for good.
    pub(crate) fn contradicts(self, decision: Decision) -> bool {
        match decision {
            Decision::Commit => self == Self::Aborted,
            Decision::Abort => self == Self::Committed,
        }
    }
}

/// One message between a coordinator and an account.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[allow(missing_docs, reason = "fields are named after the records' own")]
pub enum Message {
    // ---- to an account ---------------------------------------------------------------
    /// Can you do your leg? `attempt` names the activation that waits for the vote.
    Prepare { leg: u64, delta: i64, fence: u64, attempt: u64 },
    /// Do it.
    Commit { fence: u64, attempt: u64 },
    /// Drop it.
    Abort { fence: u64, attempt: u64 },
    /// A person decided for you.
    Resolve { decision: Decision, reason: Reason },
    /// It is over everywhere: you need not remember it much longer.
    Forget,
    /// The answer to an inquiry; `None`: not decided yet.
    Status { decision: Option<Decision>, fence: u64 },
    // ---- to a coordinator ------------------------------------------------------------
    /// The answer to `prepare`.
    Vote { leg: u64, fence: u64, attempt: u64, vote: Vote },
    /// The answer to `commit`, `abort`, or to a status that says either.
    Ack { decision: Decision, attempt: u64, answer: Answer },
    /// The answer to `resolve`.
    Resolved { decision: Decision, answer: Answer },
    /// I am in doubt: what was decided? `fence` is what counts there.
    Inquire { fence: u64 },
}

impl Message {
    /// Its word in faults and in the log.
    pub const fn operation(&self) -> &'static str {
        match self {
            Self::Prepare { .. } => "prepare",
            Self::Commit { .. } => "commit",
            Self::Abort { .. } => "abort",
            Self::Resolve { .. } => "resolve",
            Self::Forget => "forget",
            Self::Status { .. } => "status",
            Self::Vote { .. } => "vote",
            Self::Ack { .. } => "ack",
            Self::Resolved { .. } => "resolved",
            Self::Inquire { .. } => "inquire",
        }
    }

    /// The word of what it answers; `None` for what is asked.
    pub const fn answers(&self) -> Option<&'static str> {
        match self {
            Self::Vote { .. } => Some("prepare"),
            Self::Ack { decision, .. } => Some(decision.as_str()),
            Self::Resolved { .. } => Some("resolve"),
            Self::Status { .. } => Some("inquire"),
            _ => None,
        }
    }

    /// Every word that a fault can name.
    pub const OPERATIONS: [&'static str; 10] = [
        "prepare", "commit", "abort", "resolve", "forget", "status", "vote", "ack", "resolved",
        "inquire",
    ];

    /// The words on its arrow: `prepare -30`, `yes`, `commit`.
    pub fn summary(&self) -> String {
        match self {
            Self::Prepare { delta, .. } => format!("prepare {delta:+}"),
            Self::Commit { .. } => "commit".to_owned(),
            Self::Abort { .. } => "abort".to_owned(),
            Self::Resolve { decision, .. } => format!("{decision} by hand"),
            Self::Forget => "forget".to_owned(),
            Self::Status { decision: Some(decision), .. } => format!("it is {decision}"),
            Self::Status { decision: None, .. } => "not decided".to_owned(),
            Self::Vote { vote: Vote::Yes, .. } => "yes".to_owned(),
            Self::Vote { vote: Vote::No(reason), .. } => {
                format!("no · {}", reason.as_str().replace('_', " "))
            }
            Self::Ack { decision, answer, .. } => format!("{decision} · {}", answer.as_str()),
            Self::Resolved { decision, answer } => {
                format!("{decision} by hand · {}", answer.as_str())
            }
            Self::Inquire { .. } => "what was decided?".to_owned(),
        }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.summary())
    }
}
