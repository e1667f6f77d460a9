//! Two-phase commit: a transfer across accounts that happens at all of them or at none.
//!
//! Source: C §2, with the holes and fixes P1 to P9 and K1 to K17 of the protocol review.
//!
//! Reading order: this file (the rules and the words), [`message`] (what the objects say to
//! each other), [`account`] (the participant), [`coordinator`].
//!
//! Not rules, and why: types and ranges (P6), legs that do not sum to zero (K9) and accounts
//! that were never opened (P7) are refused in every setting, since a lab that can be poisoned
//! teaches nothing; the caller is answered when the decision is durable (N8), where the paper
//! waits for the participants, which changes when it is told and not what. The paper leaves a
//! tombstone for an abort of something unknown (N7), so `abort_tombstone` is on in both.

use core::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::{Name, Value};
use crate::rules::switches;

pub mod account;
pub mod coordinator;
pub mod message;

/// How many legs a transaction can have.
pub const LEGS_MAX: usize = 16;

/// How long the coordinator waits for votes when the caller does not say, in ms.
pub const VOTE_WITHIN_MS: u64 = 5_000;

/// The first pause before something is tried again, in ms; it doubles up to the longest.
pub const RETRY_FIRST_MS: u64 = 500;
/// The longest pause, in ms. There is no jitter: a machine draws no random numbers, and the
/// objects of one lab are too few to fall into step.
pub const RETRY_LONGEST_MS: u64 = 60_000;

/// The pause after so many attempts, in ms.
pub(crate) fn pause_ms(n_attempts: u64) -> u64 {
    (RETRY_FIRST_MS << n_attempts.min(10)).min(RETRY_LONGEST_MS)
}

switches! {
    /// The safety measures of coordinator and participants. Each machine reads its own.
    TwoPhaseRules {
        /// A decision is written once: whoever comes later joins the round under way or is
        /// told what was decided. Off: every `run` decides anew (K1, K2, K3, K11).
        write_once_decision: false,
        /// The alarm is set in the commit that records PREPARING. Off: only after the
        /// decision, so that a crash before it leaves everybody in doubt (K6).
        alarm_with_preparing: false,
        /// An alarm that finds PREPARING records ABORT before it says so. Off: it tells the
        /// participants to abort and leaves the decision open (K4).
        alarm_records_abort_first: false,
        /// Aborting something unknown is remembered, so that its prepare is refused when it
        /// comes late (N7). The paper has this.
        abort_tombstone: true,
        /// Only an answer that says so counts as done, and each is recorded as it comes. Off:
        /// any answer counts, and none is recorded before all have answered (P3, P4, K12).
        typed_acks: false,
        /// The coordinator raises its fence at each recovery, and participants raise theirs
        /// with each message (P2, K15).
        raise_fence: false,
        /// The decision and its alarm, DONE and the end of the alarm: one commit each. Off:
        /// two, and a crash fits between them (K5, K7).
        atomic_phase_and_alarm: false,
        /// Money that was promised is not available a second time (P1).
        reserve_holds: false,
        /// A repeated transaction or prepare must be about the same legs (P5, K10).
        compare_legs: false,
        /// A transaction names each account once (K9).
        reject_duplicate_legs: false,
        /// A participant in doubt asks its coordinator, by its own alarm (P8).
        ask_coordinator: false,
    }
}

/// What becomes of a transaction. There is no third.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "TxnDecision"))]
pub enum Decision {
    /// Every leg happens.
    Commit,
    /// No leg happens.
    Abort,
}

impl Decision {
    /// `commit` or `abort`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Abort => "abort",
        }
    }

    /// The decision with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Commit, Self::Abort].into_iter().find(|decision| decision.as_str() == word)
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One account's part of a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Leg {
    /// The account, by name.
    pub account: Name,
    /// What is added to it: negative for a debit, never 0.
    pub delta: Value,
}

/// The legs of a transaction: 1 to 16, none of them 0, together 0.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<Leg>", into = "Vec<Leg>")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(with = "Vec<Leg>"))]
pub struct Legs(Vec<Leg>);

impl Legs {
    /// In the order of the request.
    pub fn as_slice(&self) -> &[Leg] {
        &self.0
    }
}

/// Why legs make no transaction; the text says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLegs(String);

impl fmt::Display for BadLegs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<Vec<Leg>> for Legs {
    type Error = BadLegs;

    fn try_from(legs: Vec<Leg>) -> Result<Self, BadLegs> {
        if legs.is_empty() || legs.len() > LEGS_MAX {
            let n_legs = legs.len();
            return Err(BadLegs(format!("{n_legs} legs: use 1 to {LEGS_MAX}")));
        }
        if let Some(leg) = legs.iter().find(|leg| leg.delta.get() == 0) {
            let account = &leg.account;
            return Err(BadLegs(format!("the leg of {account} is 0: leave it out")));
        }
        let sum: i128 = legs.iter().map(|leg| i128::from(leg.delta.get())).sum();
        if sum != 0 {
            return Err(BadLegs(format!(
                "the legs add up to {sum}, not to 0: what one account loses another must get"
            )));
        }
        Ok(Self(legs))
    }
}

impl From<Legs> for Vec<Leg> {
    fn from(legs: Legs) -> Self {
        legs.0
    }
}

/// A reason given by a person: 1 to 200 characters, not only blanks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(with = "String"))]
pub struct Reason(String);

impl Reason {
    /// The text itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Reason {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        if text.trim().is_empty() || text.chars().count() > 200 {
            return Err("say why, in 1 to 200 characters");
        }
        Ok(Self(text))
    }
}

impl From<Reason> for String {
    fn from(reason: Reason) -> Self {
        reason.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn legs(json: &str) -> Result<Legs, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn legs_that_are_no_transfer_are_refused() {
        let seventeen: Vec<_> =
            (0..17).map(|n| format!(r#"{{"account":"a{n}","delta":1}}"#)).collect();
        let seventeen = format!("[{}]", seventeen.join(","));
        let cases = [
            ("[]", "0 legs: use 1 to 16"),
            (seventeen.as_str(), "17 legs: use 1 to 16"),
            (r#"[{"account":"a","delta":-5}]"#, "the legs add up to -5, not to 0"),
            (r#"[{"account":"a","delta":0}]"#, "the leg of a is 0: leave it out"),
            (r#"[{"account":"a","delta":0.1}]"#, "floating point"),
            (r#"[{"account":"a","delta":"-5"}]"#, "string"),
            (r#"[{"account":"a","delta":9007199254740992}]"#, "out of range"),
            (r#"[{"account":"A","delta":5}]"#, "is not a name"),
            (r#"[{"account":"a","delta":5,"more":1}]"#, "unknown field"),
        ];
        for (json, why) in cases {
            let error = legs(json).expect_err(json);
            assert!(error.contains(why), "{json}: {error}");
        }
        assert!(legs(r#"[{"account":"a","delta":-5},{"account":"b","delta":5}]"#).is_ok());
        let most = r#"[{"account":"a","delta":-9007199254740991},{"account":"b","delta":9007199254740991}]"#;
        assert!(legs(most).is_ok());
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        let pauses: Vec<_> = (0..9).map(pause_ms).collect();
        assert_eq!(pauses, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
        assert_eq!(pause_ms(u64::MAX), RETRY_LONGEST_MS);
    }

    #[test]
    fn a_reason_says_something() {
        for bad in [r#""""#, r#""  ""#, &format!("\"{}\"", "x".repeat(201))] {
            assert!(serde_json::from_str::<Reason>(bad).is_err(), "{bad}");
        }
        assert!(serde_json::from_str::<Reason>(r#""the bank called""#).is_ok());
    }
}
