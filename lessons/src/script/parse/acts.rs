//! What a client does, read from its words.

use protocol::ids::{Name, NodeId, ObjectKind, VoteWithinMs};
use protocol::transaction::{Decision, Leg, Legs, Reason};

use super::{
    Parsed, assignment, declared, find_object, label, object, object_of, optional_label,
    optional_number, value,
};
use crate::script::words::Words;
use crate::script::{Act, Cast, Under, parse_duration};

const ACTS: &str = "acquire, await, renew, release, force-release, check, claim, read, write, \
     apply, seal, open, run, recover, resolve or forget";

pub(super) fn parse_act(cast: &Cast, words: &mut Words<'_>) -> Parsed<Act> {
    let verb = words.next(&format!("what the client does: {ACTS}"))?;
    Ok(match verb.as_str() {
        "acquire" | "await" | "renew" | "release" | "force-release" | "check" => {
            let lease = object_of(cast, ObjectKind::Lease, words)?;
            parse_lease_act(cast, &verb, lease, words)?
        }
        "claim" | "read" | "write" => {
            let resource = object_of(cast, ObjectKind::Resource, words)?;
            parse_resource_act(cast, &verb, resource, words)?
        }
        "open" if is_kind(cast, ObjectKind::Account, words) => {
            let account = object_of(cast, ObjectKind::Account, words)?;
            let example = "with what: open alice balance=100";
            let balance = optional_number(words, "balance")?;
            let balance = balance.ok_or_else(|| words.error(format!("say {example}")))?;
            Act::OpenAccount { account, balance }
        }
        "run" | "recover" | "forget" => {
            let transaction = object_of(cast, ObjectKind::Transaction, words)?;
            match verb.as_str() {
                "run" => parse_run(cast, transaction, words)?,
                "recover" => Act::Recover { transaction },
                _ => Act::Forget { transaction },
            }
        }
        "resolve" => parse_resolve(cast, words)?,
        "apply" | "seal" | "open" => {
            let shard = object_of(cast, ObjectKind::Shard, words)?;
            parse_shard_act(cast, &verb, shard, words)?
        }
        other => return Err(words.error(format!("a client cannot {other:?}: use {ACTS}"))),
    })
}

fn parse_lease_act(cast: &Cast, verb: &str, lease: Name, words: &mut Words<'_>) -> Parsed<Act> {
    let token = |words: &mut Words<'_>| {
        words.named("token").map(|text| value(cast, words, &text)).transpose()
    };
    Ok(match verb {
        "acquire" | "await" => {
            let ttl_ms = ttl(words)?;
            let request = optional_label(words, "request")?;
            let wait = words.named("wait").map(|text| parse_duration(&text)).transpose();
            let wait_ms = wait.map_err(|problem| words.error(problem))?;
            let wait_ms = wait_ms.map(TryInto::try_into).transpose();
            let wait_ms = wait_ms.map_err(|problem| words.error(format!("wait: {problem}")))?;
            let poll = verb == "await";
            if poll && (request.is_none() || wait_ms.is_none()) {
                return Err(words.error("to wait in the queue add request=r1 wait=2s"));
            }
            Act::Acquire { lease, ttl_ms, request, wait_ms, poll }
        }
        "renew" => Act::Renew { lease, ttl_ms: ttl(words)?, token: token(words)? },
        "release" => Act::Release { lease, token: token(words)? },
        "force-release" => {
            let token = token(words)?;
            let Some(token) = token else {
                return Err(words.error("say which grant, so that no other is ended: token=1"));
            };
            let reason = words.named("reason");
            let Some(reason) = reason else {
                return Err(words.error("say why, for the log: reason=\"A does not answer\""));
            };
            Act::ForceRelease { lease, token, reason }
        }
        _ => Act::Check { lease },
    })
}

fn parse_resource_act(
    cast: &Cast,
    verb: &str,
    resource: Name,
    words: &mut Words<'_>,
) -> Parsed<Act> {
    let shows_nothing = words.flag("token=none");
    let lease = words.named("lease").map(|name| declared(cast, ObjectKind::Lease, &name, words));
    let lease = lease.transpose()?;
    let token = words.named("token").map(|text| value(cast, words, &text)).transpose()?;
    if lease.is_none() && !shows_nothing && cast.only_lease().is_none() {
        return Err(words.error("say under which lease: lease=orders"));
    }
    let under = Under { lease, token };
    Ok(match verb {
        "claim" => Act::Claim { resource, under },
        "read" => {
            let key = words.next("the key: A read ledger balance")?;
            let key = label(words, key)?;
            Act::Read { resource, key, under: (!shows_nothing).then_some(under) }
        }
        _ => {
            let id = optional_label(words, "id")?;
            let seq = optional_number(words, "seq")?;
            let (key, value) = assignment(cast, words, "A write ledger balance=100")?;
            Act::Write { resource, key, value, under, id, seq }
        }
    })
}

fn parse_shard_act(cast: &Cast, verb: &str, shard: Name, words: &mut Words<'_>) -> Parsed<Act> {
    let map_epoch = optional_number(words, "epoch")?;
    let needed =
        |words: &Words<'_>| map_epoch.ok_or_else(|| words.error("say under which map: epoch=2"));
    Ok(match verb {
        "apply" => {
            let id = optional_label(words, "id")?;
            let word = words.next("the operation: apples=3, or apples+=3 to add")?;
            let Some((key, amount)) = word.split_once('=') else {
                return Err(words.error("write the operation as apples=3, or apples+=3 to add"));
            };
            let add = key.ends_with('+');
            let key = label(words, key.trim_end_matches('+').to_owned())?;
            let value = value(cast, words, amount)?;
            Act::Apply { shard, key, add, value, id, map_epoch }
        }
        "seal" => Act::Seal { shard, map_epoch: needed(words)? },
        _ => Act::Open { shard, map_epoch: needed(words)?, copy: words.flag("copy") },
    })
}

fn is_kind(cast: &Cast, kind: ObjectKind, words: &Words<'_>) -> bool {
    let found = words.peek().and_then(|name| find_object(cast, name));
    found.and_then(NodeId::object_kind) == Some(kind)
}

fn parse_run(cast: &Cast, transaction: Name, words: &mut Words<'_>) -> Parsed<Act> {
    let within = words.named("within").map(|text| parse_duration(&text)).transpose();
    let within_ms = within.map_err(|problem| words.error(problem))?;
    let within_ms = within_ms.map(VoteWithinMs::try_from).transpose();
    let within_ms = within_ms.map_err(|problem| words.error(format!("within: {problem}")))?;
    let mut legs = Vec::new();
    while words.peek().is_some() {
        let word = words.next("a leg")?;
        let leg = word.find(['+', '-']).and_then(|_| {
            // A name may have a hyphen in it: the delta is what follows the last sign.
            let (name, delta) = word.split_at(word.rfind(['+', '-'])?);
            Some((name.to_owned(), delta.parse::<i64>().ok()?))
        });
        let Some((name, delta)) = leg else {
            return Err(words.error("write the legs as in: run t1 alice-30 bob+30"));
        };
        let account = declared(cast, ObjectKind::Account, &name, words)?;
        let delta = delta.try_into().map_err(|bad| words.error(format!("{name}: {bad}")))?;
        legs.push(Leg { account, delta });
    }
    let legs = Legs::try_from(legs).map_err(|bad| words.error(bad.to_string()))?;
    Ok(Act::Run { transaction, legs, within_ms })
}

fn parse_resolve(cast: &Cast, words: &mut Words<'_>) -> Parsed<Act> {
    let example = "resolve bob t1=abort reason=\"the bank called\"";
    let reason = words.named("reason").unwrap_or_default();
    let reason = Reason::try_from(reason);
    let reason = reason.map_err(|bad| words.error(format!("reason: {bad}: {example}")))?;
    let object = object(cast, words)?;
    let other = match object.object_kind() {
        Some(ObjectKind::Account) => ObjectKind::Transaction,
        Some(ObjectKind::Transaction) => ObjectKind::Account,
        _ => return Err(words.error(format!("only a hold can be resolved: {example}"))),
    };
    let word = words.next(&format!("what to do: {example}"))?;
    let Some((about, decision)) = word.split_once('=') else {
        return Err(words.error(format!("write: {example}")));
    };
    let about = declared(cast, other, about, words)?;
    let decision = Decision::from_word(decision)
        .ok_or_else(|| words.error(format!("{decision:?}: use commit or abort")))?;
    Ok(Act::Resolve { object, about, decision, reason })
}

fn ttl(words: &mut Words<'_>) -> Parsed<protocol::ids::TtlMs> {
    let text = words.named("ttl");
    let text = text.ok_or_else(|| words.error("say how long the lease is to last: ttl=2s"))?;
    let ms = parse_duration(&text).map_err(|problem| words.error(problem))?;
    ms.try_into().map_err(|problem| words.error(format!("ttl in ms: {problem}")))
}
