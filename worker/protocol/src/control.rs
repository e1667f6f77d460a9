//! What a person can do to an object: change its rules, crash it, move its clock, cut it
//! off, hold its alarm. Every one of these is recorded in the log.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::{Label, NodeId, ObjectKind, OffsetMs};
use crate::rules::{RuleValue, RulesUpdate};
use crate::trace::{CrashPoint, DeliveryMode};
use crate::transaction::LEGS_MAX;
use crate::transaction::message::Message;

/// How many faults one object can have at once.
pub const FAULTS_MAX: usize = 16;

/// Crashes the object, now or at a point of its next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Crash {
    /// Where.
    pub at: CrashPoint,
    /// Stay down until told to restart. Otherwise the next call or alarm starts it again.
    #[serde(default)]
    pub stay_down: bool,
    /// For `after_nth_vote` and `after_nth_ack`: which one, from 1. Without it, the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n: Option<u64>,
}

impl Crash {
    /// Why the crash makes no sense, if it does not.
    pub fn problem(&self, kind: ObjectKind) -> Option<&'static str> {
        if self.at.is_of_transaction() && kind != ObjectKind::Transaction {
            return Some("only a transaction passes this point");
        }
        match self.n {
            None => None,
            Some(_) if !self.at.is_counted() => {
                Some("`n` belongs to `after_nth_vote` and `after_nth_ack` only")
            }
            Some(n) if n == 0 || n > LEGS_MAX as u64 => Some("`n` goes from 1 to 16"),
            Some(_) => None,
        }
    }
}

/// Moves the object's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Clock {
    /// What is added to the real time, in ms. 0 puts it right.
    pub offset_ms: OffsetMs,
}

/// What a fault does to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum FaultAction {
    /// The object cannot be reached: the request never arrives.
    Unreachable,
    /// With an `atomic_…` rule off: the second half of the step takes `delay_ms`.
    SlowStore,
    /// The message that this object sends waits until a person delivers it.
    Hold,
    /// The message is thrown away, and nobody is told.
    Drop,
    /// The message leaves after `delay_ms`.
    Delay,
    /// The message leaves twice.
    Duplicate,
}

impl FaultAction {
    /// Whether it is about a message that the object sends to another one.
    pub const fn is_of_network(self) -> bool {
        matches!(self, Self::Hold | Self::Drop | Self::Delay | Self::Duplicate)
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::SlowStore => "slow store",
            Self::Hold => "hold",
            Self::Drop => "drop",
            Self::Delay => "delay",
            Self::Duplicate => "duplicate",
        }
    }
}

/// A fault that waits for matching messages.
///
/// `unreachable` and `slow_store` are about what comes to the object; `hold`, `drop`, `delay`
/// and `duplicate` about what it sends to other objects. A fault on an answer is therefore
/// one of the object that answers: with `reply`, `message` names what is answered.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fault {
    /// The operation it matches, `acquire` or `write` for example; `*` for every one.
    pub message: String,
    /// Only messages of this client or object, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Label>,
    /// Only messages to this object, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Label>,
    /// The answer to such a message rather than the message itself.
    #[serde(default, skip_serializing_if = "is_false")]
    pub reply: bool,
    /// What it does.
    pub action: FaultAction,
    /// For `slow_store` and `delay`: how long, in ms, at most 10,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// How many messages it hits; without it, every one until the faults are set anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
}

impl Fault {
    /// The longest delay, in ms.
    pub const DELAY_MAX_MS: u64 = 10_000;

    /// Why the fault makes no sense, if it does not.
    pub fn problem(&self) -> Option<&'static str> {
        let is_network = self.action.is_of_network();
        let has_long_delay = self.delay_ms.is_none_or(|ms| ms > Self::DELAY_MAX_MS);
        match self.action {
            _ if self.times == Some(0) => Some("`times` must be at least 1"),
            _ if !is_network && (self.reply || self.to.is_some()) => {
                Some("`to` and `reply` belong to `hold`, `drop`, `delay` and `duplicate`")
            }
            _ if is_network && self.from.is_some() => {
                Some("`from` belongs to `unreachable` and `slow_store`: say `to`")
            }
            FaultAction::SlowStore if has_long_delay => {
                Some("`slow_store` needs `delay_ms` from 0 to 10000")
            }
            FaultAction::Delay if has_long_delay => {
                Some("`delay` needs `delay_ms` from 0 to 10000")
            }
            FaultAction::SlowStore | FaultAction::Delay => None,
            _ if self.delay_ms.is_some() => {
                Some("`delay_ms` belongs to `slow_store` and `delay` only")
            }
            _ => None,
        }
    }

    pub(crate) fn matches(
        &self,
        action: FaultAction,
        operation: &str,
        from: Option<&Label>,
    ) -> bool {
        let is_message = self.message == "*" || self.message == operation;
        let is_sender = self.from.is_none() || self.from.as_ref() == from;
        self.action == action && is_message && is_sender
    }

    /// Whether it is about this message on its way out.
    pub(crate) fn matches_outgoing(&self, message: &Message, to: &NodeId) -> bool {
        let word = if self.reply { message.answers() } else { Some(message.operation()) };
        let is_message = word.is_some_and(|word| self.message == "*" || self.message == word);
        let is_receiver = self.to.as_ref().is_none_or(|name| name.as_str() == to.name());
        self.action.is_of_network() && is_message && is_receiver
    }

    /// One line for the log: `unreachable: acquire from A, 2 times`.
    pub fn summary(&self) -> String {
        let reply = if self.reply { "reply to " } else { "" };
        let mut text = format!("{}: {reply}{}", self.action.as_str(), self.message);
        if let Some(from) = &self.from {
            text += &format!(" from {from}");
        }
        if let Some(to) = &self.to {
            text += &format!(" to {to}");
        }
        if matches!(self.action, FaultAction::SlowStore | FaultAction::Delay) {
            text += &format!(", {} ms", self.delay_ms.unwrap_or(0));
        }
        if let Some(times) = self.times {
            text += &format!(", {times} times");
        }
        text
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

/// What happens to the alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum AlarmAction {
    /// Ring it now.
    Fire,
    /// Let it pass unheard until resumed.
    Suppress,
    /// Let it ring again; an overdue one rings at once.
    Resume,
}

/// The body of a request about the alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Alarm {
    /// What to do.
    pub action: AlarmAction,
}

/// The body of a request about delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Delivery {
    /// How messages leave from now on. `auto` lets go of those that wait.
    pub mode: DeliveryMode,
}

/// What happens to a message that waits in an outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum OutboxAction {
    /// It leaves.
    Deliver,
    /// It is thrown away.
    Drop,
    /// A second one like it waits too.
    Duplicate,
}

/// One act of a person on an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "control", content = "body", rename_all = "snake_case")]
pub enum Control {
    /// `PUT …/rules`
    Rules(RulesUpdate),
    /// `POST …/crash`
    Crash(Crash),
    /// `POST …/restart`
    Restart,
    /// `PUT …/clock`
    Clock(Clock),
    /// `PUT …/faults`: replaces all of them.
    Faults(Vec<Fault>),
    /// `POST …/alarm`
    Alarm(Alarm),
    /// `PUT /api/labs/{lab}/delivery`, for each of the lab's objects.
    Delivery(Delivery),
    /// `POST …/outbox/{id}/{action}`
    Outbox {
        /// The message's number in the outbox.
        id: u64,
        /// What to do with it.
        action: OutboxAction,
    },
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ControlReply {
    /// The rules now in force.
    RulesSet {
        /// By name.
        rules: BTreeMap<String, RuleValue>,
    },
    /// The next step crashes at this point.
    CrashArmed {
        /// Where.
        at: CrashPoint,
    },
    /// It is down, or on its way down.
    Crashed,
    /// It runs again.
    Restarted {
        /// How often it has started after a crash, from 1.
        incarnation: u64,
    },
    /// It was running.
    AlreadyRunning,
    /// The clock is moved.
    ClockSet {
        /// By this much.
        offset_ms: i64,
    },
    /// The faults are in place.
    FaultsSet {
        /// How many.
        n_faults: u64,
    },
    /// The alarm rang.
    AlarmFired,
    /// The alarm is held.
    AlarmSuppressed,
    /// The alarm rings again.
    AlarmResumed,
    /// Messages leave this way from now on.
    DeliverySet {
        /// How.
        mode: DeliveryMode,
    },
    /// The message is on its way.
    MessageReleased {
        /// Its number.
        id: u64,
    },
    /// The message is gone.
    MessageDropped {
        /// Its number.
        id: u64,
    },
    /// There are two of it now.
    MessageDuplicated {
        /// The number of the second one.
        id: u64,
    },
    /// No message with this number waits: it has left, or never was.
    NoSuchMessage {
        /// The number.
        id: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(json: &str) -> Fault {
        serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"))
    }

    #[test]
    fn faults_say_what_they_do_and_whether_they_can() {
        let delay = "`slow_store` needs `delay_ms` from 0 to 10000";
        let cases = [
            (r#"{"message":"*","action":"unreachable"}"#, "unreachable: *", None),
            (
                r#"{"message":"acquire","from":"A","action":"unreachable","times":2}"#,
                "unreachable: acquire from A, 2 times",
                None,
            ),
            (
                r#"{"message":"write","action":"slow_store","delay_ms":10000}"#,
                "slow store: write, 10000 ms",
                None,
            ),
            (
                r#"{"message":"write","action":"slow_store","delay_ms":10001}"#,
                "slow store: write, 10001 ms",
                Some(delay),
            ),
            (
                r#"{"message":"write","action":"slow_store"}"#,
                "slow store: write, 0 ms",
                Some(delay),
            ),
            (
                r#"{"message":"*","action":"unreachable","delay_ms":1}"#,
                "unreachable: *",
                Some("`delay_ms` belongs to `slow_store` and `delay` only"),
            ),
            (
                r#"{"message":"prepare","to":"b","action":"drop","times":1}"#,
                "drop: prepare to b, 1 times",
                None,
            ),
            (
                r#"{"message":"commit","reply":true,"action":"delay","delay_ms":250}"#,
                "delay: reply to commit, 250 ms",
                None,
            ),
            (
                r#"{"message":"prepare","action":"delay"}"#,
                "delay: prepare, 0 ms",
                Some("`delay` needs `delay_ms` from 0 to 10000"),
            ),
            (
                r#"{"message":"prepare","from":"t","action":"hold"}"#,
                "hold: prepare from t",
                Some("`from` belongs to `unreachable` and `slow_store`: say `to`"),
            ),
            (
                r#"{"message":"*","reply":true,"action":"unreachable"}"#,
                "unreachable: reply to *",
                Some("`to` and `reply` belong to `hold`, `drop`, `delay` and `duplicate`"),
            ),
            (
                r#"{"message":"*","action":"unreachable","times":0}"#,
                "unreachable: *, 0 times",
                Some("`times` must be at least 1"),
            ),
        ];
        for (json, summary, problem) in cases {
            let fault = fault(json);
            assert_eq!((fault.summary().as_str(), fault.problem()), (summary, problem), "{json}");
        }
    }

    #[test]
    fn a_fault_matches_operation_and_sender() {
        let a = Label::try_from("A").expect("a name");
        let b = Label::try_from("B").expect("a name");
        let of_a = fault(r#"{"message":"acquire","from":"A","action":"unreachable"}"#);
        let of_all = fault(r#"{"message":"*","action":"unreachable"}"#);
        let cases = [
            (&of_a, "acquire", Some(&a), true),
            (&of_a, "acquire", Some(&b), false),
            (&of_a, "acquire", None, false),
            (&of_a, "renew", Some(&a), false),
            (&of_all, "renew", Some(&b), true),
            (&of_all, "write", None, true),
        ];
        for (fault, operation, from, expected) in cases {
            let found = fault.matches(FaultAction::Unreachable, operation, from);
            assert_eq!(found, expected, "{operation} from {from:?}");
            assert!(!fault.matches(FaultAction::SlowStore, operation, from));
        }
    }

    #[test]
    fn bodies_refuse_what_they_do_not_know() {
        assert!(serde_json::from_str::<Crash>(r#"{"at":"now"}"#).is_ok());
        assert!(serde_json::from_str::<Crash>(r#"{"at":"later"}"#).is_err());
        assert!(serde_json::from_str::<Crash>(r#"{"at":"now","down":true}"#).is_err());
        assert!(serde_json::from_str::<Clock>(r#"{"offset_ms":-31536000000}"#).is_ok());
        assert!(serde_json::from_str::<Clock>(r#"{"offset_ms":31536000001}"#).is_err());
        assert!(serde_json::from_str::<Alarm>(r#"{"action":"ring"}"#).is_err());
        assert!(serde_json::from_str::<Fault>(r#"{"message":"*"}"#).is_err());
        let rules = r#"{"preset":"published","set":{"guard":"strict","fence_reads":true}}"#;
        assert!(serde_json::from_str::<RulesUpdate>(rules).is_ok());
        assert!(serde_json::from_str::<RulesUpdate>(r#"{"rules":{}}"#).is_err());
    }

    #[test]
    fn controls_and_replies_survive_json() {
        let controls = [
            r#"{"control":"rules","body":{"preset":"repaired"}}"#,
            r#"{"control":"crash","body":{"at":"before_persist","stay_down":true}}"#,
            r#"{"control":"restart"}"#,
            r#"{"control":"clock","body":{"offset_ms":-5}}"#,
            r#"{"control":"faults","body":[{"message":"*","action":"unreachable"}]}"#,
            r#"{"control":"alarm","body":{"action":"suppress"}}"#,
        ];
        for json in controls {
            let control: Control = serde_json::from_str(json).expect(json);
            assert_eq!(serde_json::to_string(&control).expect("JSON"), json);
        }
        let reply = ControlReply::Restarted { incarnation: 2 };
        let json = serde_json::to_string(&reply).expect("JSON");
        assert_eq!(json, r#"{"outcome":"restarted","incarnation":2}"#);
    }
}
