//! Why a request was refused, and what would have happened without the rule.
//!
//! The second part is not told but computed: the machine is restored from the last
//! record before the event, the deciding rule is switched off, and the same input is
//! given to it again. What it then does is what the page says. Where the event does not
//! carry enough to rebuild the input, nothing is claimed.

use protocol::fence::{Claim, FenceInput, FenceRecord, FencedResource, Read, Write};
use protocol::ids::{Label, Name, NodeId, TtlMs, Value};
use protocol::lease::{Acquire, LeaseAuthority, LeaseInput, Renew};
use protocol::machine::{Effect, Effects, Machine};
use protocol::rules::{RuleValue, Rules};
use protocol::shard::{Apply, Op, ShardCoordinator, ShardInput};
use protocol::trace::{Decision, ObjectRecord, TraceEvent, TraceKind};

use crate::narration::{self, sender_of};
use crate::playback::fold::refusal;
use crate::playback::{Object, Playback, Scene};

pub mod excerpt;
pub mod rules;

pub use rules::{Meaning, meaning};

/// A refusal, explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Position of the event in the log.
    pub index: usize,
    /// `Fenced by ledger`.
    pub title: String,
    /// Who refused.
    pub node: NodeId,
    /// What came: label and value, `token` and `33`.
    pub presented: (String, String),
    /// What the object knew: `high-water mark` and `34`.
    pub known: (String, String),
    /// The rule as the object has it, `guard`.
    pub rule: String,
    /// Its name and what it says.
    pub meaning: Meaning,
    /// What the same machine does without it; `None` when that cannot be computed.
    pub without: Option<Without>,
    /// The line that decided.
    pub decision: Option<Decision>,
}

/// What happens with the rule off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Without {
    /// How the rule was set for it: `guard = none`.
    pub setting: String,
    /// What the machine then did, as a sentence.
    pub sentence: String,
    /// It was refused all the same.
    pub still_refused: bool,
}

/// Explains the event at this position, if it is a refusal.
pub fn rejection(log: &Playback, index: usize) -> Option<Rejection> {
    let event = log.shared_event(index)?;
    let outcome = refusal(&event.kind)?;
    let before = log.scene_at(index);
    let object = before.object(&event.node)?;
    let (presented, known) = facts(&event.kind, &before)?;
    let rule = event.decision.as_ref().map_or(String::new(), |decision| decision.rule.clone());
    let title = title(&event.node, &outcome);
    let meaning = meaning(&rule, object.condition().rule(&rule));
    let without = without(&event, &before, object, &rule);
    Some(Rejection {
        index,
        title,
        node: event.node.clone(),
        presented,
        known,
        rule,
        meaning,
        without,
        decision: event.decision.clone(),
    })
}

fn title(node: &NodeId, outcome: &str) -> String {
    let name = node.name();
    match outcome {
        "fenced" => format!("Fenced by {name}"),
        "not_claimed" => format!("Not claimed at {name}"),
        "gap" => format!("Out of order at {name}"),
        "lost" => format!("Lease {name} is lost"),
        "not_holder" => format!("Not the holder of {name}"),
        "timeout" => format!("Too late for {name}"),
        "conflict" => format!("Same id, other contents at {name}"),
        "sealed" => format!("Shard {name} is sealed"),
        "wrong_epoch" => format!("Another map at shard {name}"),
        _ => format!("Refused by {name}"),
    }
}

type Fact = (String, String);

fn facts(kind: &TraceKind, scene: &Scene) -> Option<(Fact, Fact)> {
    let fact = |label: &str, value: String| (label.to_owned(), value);
    let known = match kind {
        TraceKind::WriteRefused { presented, outcome, .. } if outcome == "not_claimed" => {
            (fact("token", presented.to_string()), fact("claimed", claimed(kind, scene)))
        }
        TraceKind::WriteRefused { presented, high_water_mark, .. }
        | TraceKind::ClaimRefused { presented, high_water_mark, .. }
        | TraceKind::ReadRefused { presented, high_water_mark, .. } => (
            fact("token", presented.to_string()),
            fact("high-water mark", high_water_mark.to_string()),
        ),
        TraceKind::LeaseRefused { candidate, holder, remaining_ms } => (
            fact("candidate", candidate.to_string()),
            fact("holder", format!("{holder}, {} left", narration::span(*remaining_ms))),
        ),
        TraceKind::RenewalRefused { presented, current }
        | TraceKind::ReleaseRefused { presented, current } => {
            (fact("token", presented.to_string()), fact("last grant", current.to_string()))
        }
        TraceKind::RequestExpired { not_after_ms, clock_ms, .. } => (
            fact("not after", format!("…{}", not_after_ms % 100_000)),
            fact("clock", format!("…{}", clock_ms % 100_000)),
        ),
        TraceKind::OperationRefused { presented_epoch, current_epoch, .. } => (
            fact("map", presented_epoch.to_string()),
            fact("shard's map", current_epoch.to_string()),
        ),
        TraceKind::RequestConflicted { request_id } => {
            (fact("request", request_id.to_string()), fact("known", "other contents".to_owned()))
        }
        TraceKind::WriteConflicted { write_id, .. } => {
            (fact("write", write_id.to_string()), fact("known", "another value".to_owned()))
        }
        TraceKind::OperationConflicted { op_id } => {
            (fact("operation", op_id.to_string()), fact("known", "another operation".to_owned()))
        }
        _ => return None,
    };
    Some(known)
}

/// The token that claimed the fence which refused this write.
fn claimed(kind: &TraceKind, scene: &Scene) -> String {
    let TraceKind::WriteRefused { lease, .. } = kind else { return String::new() };
    let scope = format!("lease/{lease}");
    let fences = scene.resources().flat_map(|resource| &resource.fences);
    let claimed = fences.filter(|fence| fence.scope == scope).map(|fence| fence.claimed).max();
    claimed.filter(|claimed| *claimed > 0).map_or("none".to_owned(), |claimed| claimed.to_string())
}

fn without(event: &TraceEvent, before: &Scene, object: &Object, rule: &str) -> Option<Without> {
    let off = match rule {
        "guard" => RuleValue::Choice("none".to_owned()),
        _ => RuleValue::Switch(false),
    };
    // What cannot be switched off cannot be run without.
    object.condition().rule(rule)?;
    let (now_ms, setting) = (event.at_ms, format!("{rule} = {off}"));
    let clock_ms = now_ms.saturating_add_signed(object.condition().clock_offset_ms);
    let happened = match object {
        Object::Lease(_) => {
            let input = lease_input(event, before)?;
            rerun::<LeaseAuthority>(object, (rule, &off), clock_ms, input)?
        }
        Object::Resource(_) => {
            let input = fence_input(event)?;
            rerun::<FencedResource>(object, (rule, &off), clock_ms, input)?
        }
        Object::Shard(_) => {
            let input = shard_input(event, before)?;
            rerun::<ShardCoordinator>(object, (rule, &off), clock_ms, input)?
        }
        // What a coordinator has in memory is not in the log, and half of what an account is
        // told comes from there: a step alone cannot be run again.
        Object::Account(_) | Object::Transaction(_) => return None,
    };
    let last = happened.last()?;
    let again = TraceEvent { kind: last.clone(), ..event.clone() };
    let still_refused = refusal(last).is_some();
    let sentence = match consequence(last, object) {
        Some(sentence) => sentence,
        None if still_refused => {
            format!("Refused all the same: {}", lower(&narration::sentence(&again)))
        }
        None => narration::sentence(&again),
    };
    Some(Without { setting, sentence, still_refused })
}

fn lower(sentence: &str) -> String {
    // A name stays as it is: only "The" and "A " begin sentences that are not names.
    sentence.strip_prefix("The ").map_or(sentence.to_owned(), |rest| format!("the {rest}"))
}

/// Gives a machine the same input under other rules; what it then records.
fn rerun<M: Rerun>(
    object: &Object,
    off: (&str, &RuleValue),
    clock_ms: u64,
    input: M::Input,
) -> Option<Vec<TraceKind>> {
    let mut rules = M::Rules::repaired();
    for (rule, value) in object.condition().rules.iter() {
        rules.set(rule, value).ok()?;
    }
    rules.set(off.0, off.1).ok()?;
    let record = object.condition().record.as_deref().and_then(M::own);
    let mut machine = M::restore(record, rules);
    let mut happened = Vec::new();
    let mut inputs = vec![input];
    while let Some(input) = inputs.pop() {
        let mut effects = Effects::<M>::new();
        machine.step(clock_ms, input, &mut effects);
        for effect in effects {
            match effect {
                Effect::Record(kind, _) => happened.push(kind),
                Effect::Defer(input) => inputs.push(input),
                Effect::Persist(_)
                | Effect::Reply(_)
                | Effect::Send { .. }
                | Effect::Await(_)
                | Effect::Answer(..) => {}
            }
        }
    }
    Some(happened)
}

/// A machine whose record can be taken out of the log.
trait Rerun: Machine {
    fn own(record: &ObjectRecord) -> Option<Self::Record>;
}

impl Rerun for LeaseAuthority {
    fn own(record: &ObjectRecord) -> Option<Self::Record> {
        if let ObjectRecord::Lease(record) = record { Some(record.clone()) } else { None }
    }
}

impl Rerun for FencedResource {
    fn own(record: &ObjectRecord) -> Option<FenceRecord> {
        if let ObjectRecord::Resource(record) = record { Some(record.clone()) } else { None }
    }
}

impl Rerun for ShardCoordinator {
    fn own(record: &ObjectRecord) -> Option<Self::Record> {
        if let ObjectRecord::Shard(record) = record { Some(record.clone()) } else { None }
    }
}

fn name(label: &Label) -> Option<Name> {
    Name::try_from(label.as_str()).ok()
}

fn fence_input(event: &TraceEvent) -> Option<FenceInput> {
    Some(match &event.kind {
        TraceKind::WriteRefused { lease, key, value, presented, .. } => FenceInput::Write(Write {
            lease: name(lease)?,
            token: *presented,
            key: key.clone(),
            value: Value::try_from(*value).ok()?,
            write_id: None,
            seq: None,
        }),
        TraceKind::ClaimRefused { lease, presented, .. } => {
            FenceInput::Claim(Claim { lease: name(lease)?, token: *presented })
        }
        TraceKind::ReadRefused { lease, key, presented, .. } => {
            FenceInput::Read(Read { lease: name(lease), token: Some(*presented), key: key.clone() })
        }
        _ => return None,
    })
}

fn lease_input(event: &TraceEvent, before: &Scene) -> Option<LeaseInput> {
    Some(match &event.kind {
        TraceKind::RenewalRefused { presented, .. } => {
            let ttl_ms = before.lease(&event.node)?.ttl_ms;
            LeaseInput::Renew(Renew {
                holder: sender_of(event.request.as_ref()?)?.as_str().try_into().ok()?,
                nonce: None,
                token: *presented,
                ttl_ms: TtlMs::try_from(ttl_ms.max(TtlMs::MIN)).ok()?,
                request_id: None,
            })
        }
        TraceKind::RequestExpired { holder, ttl_ms, .. } => LeaseInput::Acquire(Acquire {
            holder: holder.clone(),
            nonce: None,
            ttl_ms: TtlMs::try_from(*ttl_ms).ok()?,
            request_id: None,
            wait_ms: None,
            not_after_ms: None,
        }),
        _ => return None,
    })
}

fn shard_input(event: &TraceEvent, before: &Scene) -> Option<ShardInput> {
    let TraceKind::OperationRefused { presented_epoch, .. } = &event.kind else { return None };
    let request = event.request.as_ref()?;
    let sent = before.messages.iter().find(|message| message.id == *request)?;
    let op = operation(&sent.request)?;
    let map_epoch = Some((*presented_epoch).try_into().ok()?);
    Some(ShardInput::Apply(Apply { op, op_id: None, map_epoch }))
}

/// The operation that a request's one line stands for: `put a = 5`, `add a + 5`.
fn operation(summary: &str) -> Option<Op> {
    let words: Vec<&str> = summary.split(' ').collect();
    let [verb, key, _, number] = words[..] else { return None };
    let key = Label::try_from(key).ok()?;
    let number = Value::try_from(number.parse::<i64>().ok()?).ok()?;
    match verb {
        "put" => Some(Op::Put { key, value: number }),
        "add" => Some(Op::Add { key, amount: number }),
        _ => None,
    }
}

/// What the event would have done to what is stored.
fn consequence(kind: &TraceKind, object: &Object) -> Option<String> {
    match (kind, object) {
        (TraceKind::WriteApplied { key, value, token, .. }, Object::Resource(resource)) => {
            let old = resource.values.iter().find(|stored| stored.key == key.as_str());
            Some(match old {
                Some(old) if old.token > token.get() => format!(
                    "{key} {} would be overwritten with {value}: the update made under token {} is lost.",
                    old.value, old.token
                ),
                Some(old) => format!("{key} {} would be overwritten with {value}.", old.value),
                None => {
                    format!("{key} = {value} would be stored, although a newer grant has begun.")
                }
            })
        }
        (TraceKind::LeaseGranted { holder, token, .. }, Object::Lease(lease)) => Some(format!(
            "{holder} would be given the fresh token {token} for work that began before token {}: no fence could tell it from new work.",
            lease.token
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
