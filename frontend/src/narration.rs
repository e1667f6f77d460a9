//! One plain sentence for each event: the transcript, and what a screen reader hears.
//!
//! A sentence names who, what and with which number, and for a refusal what was known.
//! It never says why in terms of rules: that is [`crate::explain`]'s.

use protocol::ids::{FencingToken, Label, NodeId, ObjectKind};
use protocol::trace::{CrashPoint, GrantedBy, TraceEvent, TraceKind};

mod transfer;

/// The sentence for one event.
pub fn sentence(event: &TraceEvent) -> String {
    let here = the(&event.node);
    let sender = event.request.as_ref().and_then(sender_of);
    match &event.node {
        NodeId::Client(name) => client_sentence(name.as_str(), &event.kind),
        NodeId::Lab => lab_sentence(&event.kind),
        NodeId::Object(..) => object_sentence(&here, sender.as_deref(), &event.kind),
    }
}

/// The node as a sentence speaks of it: `A`, `the ledger`, `the orders lease`.
pub fn the(node: &NodeId) -> String {
    match node {
        NodeId::Lab => "the lab".to_owned(),
        NodeId::Client(name) => name.to_string(),
        NodeId::Object(kind, name) if names_itself(*kind, name.as_str()) => name.to_string(),
        NodeId::Object(ObjectKind::Resource, name) => format!("the {name}"),
        NodeId::Object(ObjectKind::Lease, name) => format!("the {name} lease"),
        NodeId::Object(ObjectKind::Shard, name) => format!("shard {name}"),
        NodeId::Object(ObjectKind::Account, name) => format!("account {name}"),
        NodeId::Object(ObjectKind::Transaction, name) => format!("transaction {name}"),
    }
}

/// The node as a heading: `A`, `lease · orders`.
pub fn title(node: &NodeId) -> String {
    match node {
        NodeId::Lab => "lab".to_owned(),
        NodeId::Client(name) => name.to_string(),
        NodeId::Object(kind, name) if names_itself(*kind, name.as_str()) => name.to_string(),
        NodeId::Object(kind, name) => format!("{} · {name}", kind.as_str()),
    }
}

/// Whether the name says what it is: `shard-1` is a shard.
pub fn names_itself(kind: ObjectKind, name: &str) -> bool {
    name.starts_with(kind.as_str())
}

/// The client that a request's name begins with: `A` of `A.1732999.3`.
pub fn sender_of(request: &Label) -> Option<String> {
    let mut parts = request.as_str().rsplitn(3, '.');
    let (_, _) = (parts.next()?, parts.next()?);
    parts.next().map(str::to_owned)
}

/// A time span as a person says it: `0.4 s`, `12 s`, `3 min`.
pub fn span(ms: u64) -> String {
    match ms {
        0..10_000 => format!("{:.1} s", ms as f64 / 1000.0),
        10_000..120_000 => format!("{} s", ms / 1000),
        _ => format!("{} min", ms / 60_000),
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

fn client_sentence(name: &str, kind: &TraceKind) -> String {
    match kind {
        TraceKind::RequestSent { to, summary, .. } => {
            format!("{name} asks {}: {summary}.", the(to))
        }
        TraceKind::RequestDropped { to } => {
            format!("{name}'s request to {} was lost on its way.", the(to))
        }
        TraceKind::RequestDelayed { to, delay_ms } => {
            format!("{name}'s request to {} is held up for {}.", the(to), span(*delay_ms))
        }
        TraceKind::RequestDuplicated { to } => {
            format!("The network sends {name}'s request to {} once more.", the(to))
        }
        TraceKind::ReplyReceived { from, summary, .. } => {
            format!("{name} hears from {}: {summary}.", the(from))
        }
        TraceKind::ReplyDropped { from } => {
            format!("The reply of {} to {name} was lost: {name} does not know.", the(from))
        }
        TraceKind::ReplyFailed { from, reason } => {
            format!("{name} gets no answer from {}: {}.", the(from), reason_words(reason))
        }
        TraceKind::ClientPaused => format!("{name} stops, in the middle of what it was doing."),
        TraceKind::ClientResumed { paused_ms } => {
            format!("{name} goes on after {}, as if no time had passed.", span(*paused_ms))
        }
        TraceKind::BeliefGained { lease, token, .. } => {
            format!("{name} now believes that it holds {} under token {token}.", the(lease))
        }
        TraceKind::BeliefLost { lease, token, reason } => {
            let why = match reason.as_str() {
                "released" => "it gave it back",
                "lost" => "it was told that it had lost it",
                "deadline" => "its own deadline has passed",
                other => other,
            };
            format!(
                "{name} no longer believes that it holds {} (token {token}): {why}.",
                the(lease)
            )
        }
        TraceKind::ClientRefrained { summary } => {
            format!("{name} does not act, by its own deadline: {summary}.")
        }
        _ => format!("{name}: {}.", plain(kind)),
    }
}

fn reason_words(reason: &str) -> &str {
    match reason {
        "down" => "it is down",
        "unreachable" => "it cannot be reached",
        "crashed" => "it crashed while at work on the request",
        other => other,
    }
}

fn object_sentence(here: &str, sender: Option<&str>, kind: &TraceKind) -> String {
    let lease = lease_sentence(here, sender, kind);
    let fence = || fence_sentence(here, sender, kind);
    let shard = || shard_sentence(here, sender, kind);
    let transfer = || transfer::sentence(&capital(here), kind);
    let message = || transfer::message_sentence(&capital(here), kind);
    let protocol = lease.or_else(fence).or_else(shard).or_else(transfer).or_else(message);
    protocol.unwrap_or_else(|| condition_sentence(here, kind))
}

fn lease_sentence(here: &str, sender: Option<&str>, kind: &TraceKind) -> Option<String> {
    let text = match kind {
        TraceKind::LeaseGranted { holder, token, ttl_ms, by, .. } => {
            let how = match by {
                GrantedBy::Acquire => "",
                GrantedBy::ReEntry => ", let in again by its name alone",
                GrantedBy::Renewal => ", as a renewal",
                GrantedBy::Queue => ", first in the queue",
            };
            format!(
                "{} goes to {holder} for {} under token {token}{how}.",
                capital(here),
                span(*ttl_ms)
            )
        }
        TraceKind::LeaseRenewed { holder, token, expires_at_ms, clock_ms } => {
            let left = span(expires_at_ms.saturating_sub(*clock_ms));
            format!("{holder} renews {here}: token {token} stays, {left} more.")
        }
        TraceKind::LeaseRefused { candidate, holder, remaining_ms } => format!(
            "{candidate} is refused {here}: {holder} holds it for another {}.",
            span(*remaining_ms)
        ),
        TraceKind::LeaseExpired { holder, token, .. } => {
            format!("{holder}'s grant of {here} (token {token}) has expired.")
        }
        TraceKind::LeaseReleased { holder, token, forced: None } => {
            format!("{holder} gives {here} back (token {token}).")
        }
        TraceKind::LeaseReleased { holder, token, forced: Some(reason) } => {
            format!("{} was taken from {holder} (token {token}): {reason}.", capital(here))
        }
        TraceKind::ReleaseRefused { presented, current } => format!(
            "{} release with token {presented} changes nothing: the last grant is {current}.",
            whose(sender)
        ),
        TraceKind::RenewalRefused { presented, current } => format!(
            "{} renewal with token {presented} is refused: token {current} has been granted since, or the time was over.",
            whose(sender)
        ),
        TraceKind::WaiterQueued { holder, position, .. } => {
            format!("{holder} waits for {here}, at position {position}.")
        }
        TraceKind::WaiterTimedOut { holder } => {
            format!("{holder} has waited long enough for {here} and leaves the queue.")
        }
        TraceKind::RequestRepeated { request_id } => {
            format!("Request {request_id} came again and got its first reply.")
        }
        TraceKind::RequestExpired { holder, .. } => {
            format!("{holder}'s request for {here} arrived too late to be granted.")
        }
        TraceKind::RequestConflicted { request_id } => {
            format!("Request {request_id} came again with other contents and was refused.")
        }
        TraceKind::TokensExhausted => format!("{} has no token left to give.", capital(here)),
        _ => return None,
    };
    Some(text)
}

fn whose(sender: Option<&str>) -> String {
    sender.map_or("A".to_owned(), |name| format!("{name}'s"))
}

fn fence_sentence(here: &str, sender: Option<&str>, kind: &TraceKind) -> Option<String> {
    let whose = whose(sender);
    let who = sender.unwrap_or("Somebody");
    let text = match kind {
        TraceKind::Claimed { token, .. } => {
            format!("{who} claims {here}: nothing below token {token} gets in from now on.")
        }
        TraceKind::ClaimRefused { presented, high_water_mark, .. } => format!(
            "{whose} claim of {here} with token {presented} was refused: it had already admitted {high_water_mark}."
        ),
        TraceKind::WriteAdmitted { token, key, value, .. } => format!(
            "{whose} write of {key} = {value} with token {token} was admitted; the value is not stored yet."
        ),
        TraceKind::WriteApplied { token, key, value, .. } => {
            format!("{who} wrote {key} = {value} to {here} with token {token}.")
        }
        TraceKind::WriteRepeated { write_id, .. } => {
            format!("Write {write_id} came again: done before, nothing done now.")
        }
        TraceKind::WriteConflicted { write_id, .. } => {
            format!("Write {write_id} came again with another value and was refused.")
        }
        TraceKind::WriteRefused { key, value, presented, high_water_mark, outcome, .. } => {
            let known = refused_because(here, outcome, *presented, *high_water_mark);
            format!("{whose} write of {key} = {value} with token {presented} was refused: {known}.")
        }
        TraceKind::ValueRead { key, value, token, .. } => {
            let with = token.map_or(String::new(), |token| format!(" with token {token}"));
            match value {
                Some(value) => format!("{who} read {key} = {value}{with}."),
                None => format!("{who} read {key}{with}: there is no value yet."),
            }
        }
        TraceKind::ReadRefused { key, presented, high_water_mark, .. } => format!(
            "{whose} read of {key} with token {presented} was refused: {here} had already admitted {high_water_mark}."
        ),
        _ => return None,
    };
    Some(text)
}

fn refused_because(
    here: &str,
    outcome: &str,
    presented: FencingToken,
    mark: FencingToken,
) -> String {
    match outcome {
        "not_claimed" => format!("token {presented} has not claimed {here}"),
        "gap" => "it is not the next in the order of its grant".to_owned(),
        _ => format!("{here} had already admitted {mark}"),
    }
}

fn shard_sentence(here: &str, sender: Option<&str>, kind: &TraceKind) -> Option<String> {
    let whose = whose(sender);
    let text = match kind {
        TraceKind::OperationNumbered { number, summary } => {
            format!(
                "{} gives number {number} to {summary}; the effect is not stored yet.",
                capital(here)
            )
        }
        TraceKind::OperationApplied { number, summary, .. } => {
            format!("{} does {summary} as number {number}.", capital(here))
        }
        TraceKind::OperationRepeated { op_id, number } => {
            format!("Operation {op_id} came again: done before as number {number}.")
        }
        TraceKind::OperationConflicted { op_id } => {
            format!("Operation {op_id} came again as another operation and was refused.")
        }
        TraceKind::OperationRefused { outcome, presented_epoch, current_epoch } => {
            match outcome.as_str() {
                "sealed" => format!(
                    "{whose} operation was refused: {here} is sealed for map {current_epoch}."
                ),
                _ => format!(
                    "{whose} operation under map {presented_epoch} was refused: {here} serves map {current_epoch}."
                ),
            }
        }
        TraceKind::ShardSealed { map_epoch, number } => {
            format!("{} is sealed for map {map_epoch}, after number {number}.", capital(here))
        }
        TraceKind::ShardOpened { map_epoch } => {
            format!("{} opens for map {map_epoch}.", capital(here))
        }
        _ => return None,
    };
    Some(text)
}

fn condition_sentence(place: &str, kind: &TraceKind) -> String {
    let here = capital(place);
    match kind {
        TraceKind::Crashed { at, stays_down, .. } => {
            let when = match at {
                CrashPoint::Now => "",
                CrashPoint::BeforePersist => " before anything was stored",
                CrashPoint::AfterPersist => " after storing, before anybody was told",
                CrashPoint::AfterSend => " after answering",
                CrashPoint::AfterPreparing => " after storing that it prepares",
                CrashPoint::AfterNthVote => " after a vote",
                CrashPoint::BeforeDecision => " before its decision was stored",
                CrashPoint::AfterDecision => " after storing its decision, before telling anybody",
                CrashPoint::AfterNthAck => " after an acknowledgement",
                CrashPoint::BeforeDone => " before storing that it is done",
            };
            let after = if *stays_down { " and stays down" } else { "" };
            format!("{here} crashed{when}{after}. Its memory is gone, its tables are not.")
        }
        TraceKind::Restarted { incarnation } => {
            format!("{here} runs again from what is stored (start {incarnation}).")
        }
        TraceKind::RulesChanged { rules } => {
            let all: Vec<_> = rules.iter().map(|(rule, value)| format!("{rule} {value}")).collect();
            format!("The rules of {place} are now: {}.", all.join(", "))
        }
        TraceKind::ClockSet { offset_ms: 0 } => format!("{here}'s clock is right again."),
        TraceKind::ClockSet { offset_ms } => {
            let way = if *offset_ms > 0 { "ahead" } else { "behind" };
            format!("{here}'s clock now runs {} {way}.", span(offset_ms.unsigned_abs()))
        }
        TraceKind::FaultsSet { faults } if faults.is_empty() => {
            format!("{here} has no faults any more.")
        }
        TraceKind::FaultsSet { faults } => format!("{here} has faults: {}.", faults.join("; ")),
        TraceKind::AlarmSuppressed => format!("{here}'s alarm will pass unheard."),
        TraceKind::AlarmResumed => format!("{here}'s alarm rings again."),
        TraceKind::AlarmFired { forced: true } => format!("{here}'s alarm was rung by hand."),
        TraceKind::AlarmFired { forced: false } => format!("{here}'s alarm rang."),
        _ => format!("{here}: {}.", plain(kind)),
    }
}

fn lab_sentence(kind: &TraceKind) -> String {
    match kind {
        TraceKind::LabCreated => "The lab begins.".to_owned(),
        TraceKind::ObjectAdded { object_kind, name } => {
            format!("A {} appears: {name}.", object_kind.as_str())
        }
        TraceKind::Noted { text } => match text.strip_prefix("step: ") {
            Some(step) => format!("Step: {step}."),
            None => format!("Note: {text}"),
        },
        _ => format!("{}.", capital(&plain(kind))),
    }
}

/// The event's own word, for what cannot happen at this kind of node.
fn plain(kind: &TraceKind) -> String {
    let value = serde_json::to_value(kind).unwrap_or_default();
    value.get("kind").and_then(|word| word.as_str()).unwrap_or("event").replace('_', " ")
}

/// Two or three words for a dot of the diagram; `None` for what is not worth one.
pub fn caption(event: &TraceEvent) -> Option<String> {
    let text = match &event.kind {
        TraceKind::RequestSent { operation, .. } => operation.replace('-', " "),
        TraceKind::RequestDelayed { delay_ms, .. } => format!("held up {}", span(*delay_ms)),
        TraceKind::RequestDropped { .. } => "request lost".to_owned(),
        TraceKind::RequestDuplicated { .. } => "sent twice".to_owned(),
        TraceKind::ReplyDropped { .. } => "reply lost".to_owned(),
        TraceKind::ReplyFailed { reason, .. } => format!("no answer: {reason}"),
        TraceKind::ClientResumed { .. } => "wakes".to_owned(),
        TraceKind::ClientRefrained { .. } => "refrains".to_owned(),
        TraceKind::LeaseGranted { token, .. } => format!("granted {token}"),
        TraceKind::LeaseRenewed { token, .. } => format!("renewed {token}"),
        TraceKind::LeaseRefused { .. } => "refused".to_owned(),
        TraceKind::LeaseExpired { .. } => "expired".to_owned(),
        TraceKind::LeaseReleased { forced: None, .. } => "released".to_owned(),
        TraceKind::LeaseReleased { .. } => "taken away".to_owned(),
        TraceKind::RenewalRefused { .. } => "lost".to_owned(),
        TraceKind::ReleaseRefused { .. } => "not holder".to_owned(),
        TraceKind::WaiterQueued { .. } => "queued".to_owned(),
        TraceKind::WaiterTimedOut { .. } => "gave up".to_owned(),
        TraceKind::RequestRepeated { .. } => "first reply again".to_owned(),
        TraceKind::RequestExpired { .. } => "too late".to_owned(),
        TraceKind::Claimed { token, .. } => format!("claimed {token}"),
        TraceKind::WriteAdmitted { value, .. } => format!("admitted {value}"),
        TraceKind::WriteApplied { value, .. } => format!("applied {value}"),
        TraceKind::WriteRepeated { .. } => "duplicate".to_owned(),
        TraceKind::WriteRefused { outcome, .. } => outcome.replace('_', " "),
        TraceKind::ClaimRefused { .. } | TraceKind::ReadRefused { .. } => "fenced".to_owned(),
        TraceKind::ValueRead { value, .. } => {
            value.map_or("read nothing".to_owned(), |value| format!("read {value}"))
        }
        TraceKind::OperationNumbered { number, .. } => format!("number {number}"),
        TraceKind::OperationApplied { number, .. } => format!("applied {number}"),
        TraceKind::OperationRepeated { .. } => "duplicate".to_owned(),
        TraceKind::OperationRefused { outcome, .. } => outcome.replace('_', " "),
        TraceKind::ShardSealed { .. } => "sealed".to_owned(),
        TraceKind::ShardOpened { .. } => "opened".to_owned(),
        TraceKind::Crashed { .. } => "crash".to_owned(),
        TraceKind::Restarted { .. } => "restart".to_owned(),
        TraceKind::RulesChanged { .. } => "rules".to_owned(),
        TraceKind::ClockSet { .. } => "clock".to_owned(),
        TraceKind::FaultsSet { .. } => "faults".to_owned(),
        TraceKind::AlarmSuppressed => "alarm held".to_owned(),
        TraceKind::AlarmResumed => "alarm on".to_owned(),
        TraceKind::RequestConflicted { .. }
        | TraceKind::WriteConflicted { .. }
        | TraceKind::OperationConflicted { .. } => "conflict".to_owned(),
        _ => return None,
    };
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(node: &str, kind: TraceKind) -> TraceEvent {
        TraceEvent {
            seq: 1,
            at_ms: 0,
            node: NodeId::try_from(node.to_owned()).expect("a node"),
            lamport: 1,
            local_seq: 1,
            request: Some("A.17.3".try_into().expect("a message id")),
            kind,
            decision: None,
            record: None,
        }
    }

    #[test]
    fn a_refusal_says_what_was_presented_and_what_was_known() {
        let token = |value: u64| FencingToken::try_from(value).expect("a token");
        let refused = at(
            "resource/ledger",
            TraceKind::WriteRefused {
                lease: "orders".try_into().expect("a label"),
                key: "balance".try_into().expect("a label"),
                value: 95,
                presented: token(33),
                high_water_mark: token(34),
                outcome: "fenced".to_owned(),
                kept: Some(120),
            },
        );
        assert_eq!(
            sentence(&refused),
            "A's write of balance = 95 with token 33 was refused: the ledger had already admitted 34."
        );
    }

    #[test]
    fn the_sender_is_the_name_before_two_numbers() {
        let id = |text: &str| Label::try_from(text).expect("a label");
        assert_eq!(sender_of(&id("A.1732.3")).as_deref(), Some("A"));
        assert_eq!(sender_of(&id("a.b.1732.3")).as_deref(), Some("a.b"));
        assert_eq!(sender_of(&id("r1")), None);
    }
}
