//! What a person does to an object, read from its words.

use std::collections::BTreeMap;

use protocol::control::{AlarmAction, Crash, FaultAction, OutboxAction};
use protocol::ids::{Label, Name, NodeId, ObjectKind, OffsetMs};
use protocol::rules::{Preset, RuleValue, RulesUpdate};
use protocol::trace::CrashPoint;

use super::{Parsed, declared_client, duration, find_object, optional_number};
use crate::script::words::Words;
use crate::script::{Cast, ObjectAct, parse_duration};

pub(super) fn parse_object_act(
    cast: &Cast,
    verb: &str,
    object: &NodeId,
    words: &mut Words<'_>,
) -> Parsed<ObjectAct> {
    Ok(match verb {
        "rules" => ObjectAct::Rules(parse_rules(object, words)?),
        "crash" => {
            let stay_down = words.take_all(&["and", "stay", "down"]);
            let at = if words.take("at") { Some(words.next("the point")?) } else { None };
            let point = |word: &str| CrashPoint::ALL.into_iter().find(|at| at.as_str() == word);
            let Some(at) = at.map_or(Some(CrashPoint::Now), |word| point(&word)) else {
                let points = CrashPoint::ALL.map(CrashPoint::as_str);
                return Err(words.error(format!("use one of {}", points.join(", "))));
            };
            let n = optional_number(words, "n")?;
            let stay_down = stay_down || words.take_all(&["and", "stay", "down"]);
            let crash = Crash { at, stay_down, n };
            let kind = object.object_kind();
            if let Some(problem) = kind.and_then(|kind| crash.problem(kind)) {
                return Err(words.error(problem));
            }
            ObjectAct::Crash { at, n, stay_down }
        }
        "restart" => ObjectAct::Restart,
        "clock" => ObjectAct::Clock(parse_offset(words)?),
        "unreachable" => {
            let (from, times) = (parse_from(cast, words)?, parse_times(words)?);
            let operation = words.peek().map(str::to_owned);
            if operation.is_some() {
                words.next("the operation")?;
            }
            ObjectAct::Unreachable { operation, from, times }
        }
        "slow" => {
            let times = parse_times(words)?;
            let operation = words.next("the operation: slow ledger write 600ms")?;
            let delay_ms = duration(words, "how long: slow ledger write 600ms")?;
            ObjectAct::Slow { operation, delay_ms, times }
        }
        "hold" | "drop" | "delay" | "duplicate" => parse_network(cast, verb, words)?,
        "deliver" | "drop waiting" | "duplicate waiting" => parse_waiting(cast, verb, words)?,
        "heal" => ObjectAct::Heal,
        _ => {
            let action = match words.next("what: suppress, resume or fire")?.as_str() {
                "suppress" => AlarmAction::Suppress,
                "resume" => AlarmAction::Resume,
                "fire" => AlarmAction::Fire,
                other => {
                    return Err(words.error(format!("{other:?}: use suppress, resume or fire")));
                }
            };
            ObjectAct::Alarm(action)
        }
    })
}

fn parse_rules(object: &NodeId, words: &mut Words<'_>) -> Parsed<RulesUpdate> {
    let preset = if words.take("published") {
        Some(Preset::Published)
    } else if words.take("repaired") {
        Some(Preset::Repaired)
    } else {
        None
    };
    let pairs = words.pairs("guard=strict, or remember_write_ids=off")?;
    if preset.is_none() && pairs.is_empty() {
        return Err(words.error("add published, repaired, or a rule: guard=none"));
    }
    let value = |text: String| match text.as_str() {
        "on" => RuleValue::Switch(true),
        "off" => RuleValue::Switch(false),
        _ => RuleValue::Choice(text),
    };
    let set: BTreeMap<_, _> = pairs.into_iter().map(|(name, text)| (name, value(text))).collect();
    let update = RulesUpdate { preset, set };
    check_rules(object, &update).map_err(|problem| words.error(problem))?;
    Ok(update)
}

/// A rule that the object does not have is found when the script is read, not when it runs.
fn check_rules(object: &NodeId, update: &RulesUpdate) -> Result<(), String> {
    use protocol::rules::{BadRule, Rules};
    fn check<R: Rules>(update: &RulesUpdate) -> Result<(), BadRule> {
        R::repaired().updated(update).map(|_| ())
    }
    let checked = match object.object_kind() {
        Some(ObjectKind::Lease) => check::<protocol::lease::LeaseRules>(update),
        Some(ObjectKind::Resource) => check::<protocol::fence::FenceRules>(update),
        Some(ObjectKind::Shard) => check::<protocol::shard::ShardRules>(update),
        Some(ObjectKind::Account | ObjectKind::Transaction) => {
            check::<protocol::transaction::TwoPhaseRules>(update)
        }
        None => Ok(()),
    };
    checked.map_err(|bad| bad.to_string().replace("true or false", "on or off"))
}

fn parse_offset(words: &mut Words<'_>) -> Parsed<i64> {
    let text = words.next("by how much: +1h, -1h or 0")?;
    if text == "0" {
        return Ok(0);
    }
    let (sign, rest) = match text.strip_prefix('+') {
        Some(rest) => (1, rest),
        None => (-1, text.strip_prefix('-').unwrap_or("")),
    };
    let offset = parse_duration(rest).ok().and_then(|ms| i64::try_from(ms).ok());
    let offset = offset.map(|ms| sign * ms).filter(|ms| OffsetMs::try_from(*ms).is_ok());
    offset.ok_or_else(|| words.error("say by how much, with a sign: +1h, -1h or 0"))
}

fn parse_from(cast: &Cast, words: &mut Words<'_>) -> Parsed<Option<Label>> {
    let text = words.named("from");
    let Some(name) = text else { return Ok(None) };
    declared_client(cast, &name, words).map(Some)
}

fn parse_times(words: &mut Words<'_>) -> Parsed<Option<u32>> {
    let number = optional_number(words, "times")?;
    let times = number.map(|n| u32::try_from(n).ok().filter(|n| *n > 0));
    match times {
        Some(None) => Err(words.error("use a number from 1 on: times=2")),
        times => Ok(times.flatten()),
    }
}

/// The messages that objects send each other, by the words of the log.
const MESSAGES: [&str; 10] = [
    "prepare", "vote", "commit", "abort", "ack", "inquire", "status", "resolve", "resolved",
    "forget",
];

fn parse_kind_of_message(words: &mut Words<'_>) -> Parsed<String> {
    let known = MESSAGES.join(", ");
    let word = words.next(&format!("which message: {known}, or *"))?;
    if word != "*" && !MESSAGES.contains(&word.as_str()) {
        return Err(words.error(format!("{word:?} is no message: use {known}, or *")));
    }
    Ok(word)
}

fn parse_to(cast: &Cast, words: &mut Words<'_>) -> Parsed<Option<Name>> {
    let Some(text) = words.named("to") else { return Ok(None) };
    let found = find_object(cast, &text);
    let problem = || words.error(format!("to={text}: it is no object declared above"));
    match found.ok_or_else(problem)? {
        NodeId::Object(_, name) => Ok(Some(name.clone())),
        NodeId::Client(_) | NodeId::Lab => Err(problem()),
    }
}

fn parse_network(cast: &Cast, verb: &str, words: &mut Words<'_>) -> Parsed<ObjectAct> {
    let (to, times) = (parse_to(cast, words)?, parse_times(words)?);
    let message = parse_kind_of_message(words)?;
    let (action, delay_ms) = match verb {
        "hold" => (FaultAction::Hold, None),
        "drop" => (FaultAction::Drop, None),
        "duplicate" => (FaultAction::Duplicate, None),
        _ => {
            let delay_ms = duration(words, "how long: delay t1 commit 300ms")?;
            (FaultAction::Delay, Some(delay_ms))
        }
    };
    Ok(ObjectAct::Network { action, message, to, delay_ms, times })
}

fn parse_waiting(cast: &Cast, verb: &str, words: &mut Words<'_>) -> Parsed<ObjectAct> {
    let to = parse_to(cast, words)?;
    let nth = optional_number(words, "nth")?.unwrap_or(1);
    if nth == 0 {
        return Err(words.error("count from 1: nth=2 is the second oldest"));
    }
    let message = parse_kind_of_message(words)?;
    let action = match verb {
        "deliver" => OutboxAction::Deliver,
        "drop waiting" => OutboxAction::Drop,
        _ => OutboxAction::Duplicate,
    };
    Ok(ObjectAct::Waiting { action, message, to, nth })
}
