//! From text to script, line by line.
//!
//! Invariant: every name that a script uses has been declared above, so that a slip of the
//! pen is an error with a line number and not a new object.

use std::collections::BTreeMap;

use protocol::control::AlarmAction;
use protocol::ids::{Label, Name, NodeId, ObjectKind, OffsetMs};
use protocol::invariant::Invariant;
use protocol::rules::{Preset, RuleValue, RulesUpdate};
use protocol::trace::CrashPoint;

use super::words::Words;
use super::{
    Act, Cast, Command, Expectation, FieldExpected, Line, MessageFault, ObjectAct, Only,
    ReplyExpected, Script, ScriptError, Step, Under, Value, Variant, parse_duration,
};

type Parsed<T> = Result<T, ScriptError>;

/// Reads a script. The first error is reported with its line.
pub fn parse(text: &str) -> Parsed<Script> {
    let mut script = Script::default();
    for (index, line) in text.lines().enumerate() {
        let mut words = Words::new(index + 1, line)?;
        if !words.is_empty() {
            parse_line(&mut script, &mut words)?;
            words.finish()?;
        }
    }
    Ok(script)
}

/// Reads one command, as a sandbox needs it.
pub fn parse_command(cast: &Cast, text: &str) -> Parsed<Command> {
    let mut words = Words::new(1, text)?;
    let command = parse_in(cast, &mut words)?;
    words.finish()?;
    Ok(command)
}

fn parse_line(script: &mut Script, words: &mut Words<'_>) -> Parsed<()> {
    let only = parse_only(script, words)?;
    if words.take("->") {
        return parse_reply(script, only, words);
    }
    match words.peek() {
        Some("variant") => return parse_variant(script, words),
        Some("clients" | "lease" | "resource" | "shard") => {
            if !script.steps.is_empty() {
                return Err(words.error("declare it above the first step"));
            }
            return parse_declaration(&mut script.cast, words);
        }
        Some("step") => return parse_step(script, only, words),
        Some("predict") => return parse_predict(script, only, words),
        _ => {}
    }
    let command = parse_in(&script.cast, words)?;
    let line = Line { number: words.number, only, command, replies: Vec::new() };
    match script.steps.last_mut() {
        Some(step) => step.lines.push(line),
        None => script.setup.push(line),
    }
    Ok(())
}

fn parse_only(script: &Script, words: &mut Words<'_>) -> Parsed<Only> {
    let inner = words.peek().and_then(|word| word.strip_prefix('[')?.strip_suffix(']'));
    let Some(inner) = inner.map(str::to_owned) else { return Ok(Only::default()) };
    words.next("a variant")?;
    let ids: Vec<String> = inner.split('|').map(str::to_owned).collect();
    for id in &ids {
        if !script.variants.iter().any(|variant| variant.id == *id) {
            let known: Vec<_> = script.variants.iter().map(|one| one.id.as_str()).collect();
            let known = if known.is_empty() { "none yet".to_owned() } else { known.join(", ") };
            return Err(
                words.error(format!("[{id}] is no variant of this script (known: {known})"))
            );
        }
    }
    Ok(Only(ids))
}

fn parse_variant(script: &mut Script, words: &mut Words<'_>) -> Parsed<()> {
    words.next("variant")?;
    let id = words.next("a word for the variant: variant strict \"The paper's fence\"")?;
    let title = words.next("what the page shall call it, in quotation marks")?;
    if script.variants.iter().any(|variant| variant.id == id) {
        return Err(words.error(format!("there is a variant {id} already: choose another word")));
    }
    script.variants.push(Variant { id, title });
    Ok(())
}

fn parse_declaration(cast: &mut Cast, words: &mut Words<'_>) -> Parsed<()> {
    let what = words.next("what to declare")?;
    let mut n_declared = 0;
    while let Some(name) = words.peek().map(str::to_owned) {
        words.next("a name")?;
        n_declared += 1;
        if find_object(cast, &name).is_some() || cast.clients.iter().any(|c| c.as_str() == name) {
            return Err(words.error(format!("{name} is declared already: choose another name")));
        }
        match ObjectKind::from_word(&what) {
            None => cast.clients.push(label(words, name)?),
            Some(kind) => cast.objects.push(NodeId::Object(kind, object_name(words, &name)?)),
        }
    }
    if n_declared == 0 { Err(words.error(format!("add a name: {what} A"))) } else { Ok(()) }
}

fn parse_step(script: &mut Script, only: Only, words: &mut Words<'_>) -> Parsed<()> {
    words.next("step")?;
    let id = words.next("a word for the step: step stale \"A wakes and writes\"")?;
    let title = words.next("what the bar shall show, in quotation marks")?;
    if script.steps.iter().any(|step| step.id == id) {
        return Err(words.error(format!("there is a step {id} already: choose another word")));
    }
    let number = words.number;
    script.steps.push(Step { number, id, title, only, predicts: Vec::new(), lines: Vec::new() });
    Ok(())
}

fn parse_predict(script: &mut Script, only: Only, words: &mut Words<'_>) -> Parsed<()> {
    words.next("predict")?;
    let id = words.next("the word of the question")?;
    let Some(step) = script.steps.last_mut() else {
        return Err(words.error("put it into a step"));
    };
    if !step.lines.is_empty() {
        return Err(words.error("ask before anything happens: move it up, right below `step`"));
    }
    step.predicts.push((only, id));
    Ok(())
}

fn parse_reply(script: &mut Script, only: Only, words: &mut Words<'_>) -> Parsed<()> {
    let lines = script.steps.last_mut().map_or(&mut script.setup, |step| &mut step.lines);
    let answered = |line: &&mut Line| {
        matches!(line.command, Command::Act { start: false, .. } | Command::Finish(_))
    };
    let Some(line) = lines.last_mut().filter(answered) else {
        return Err(words.error("put it below a command that gets a reply: A acquire …, finish A"));
    };
    let outcome = words.next("the outcome: -> applied")?;
    let fields = words.pairs("presented=1")?.into_iter();
    let fields =
        fields.map(|(name, value)| Ok((name, field_expected(&script.cast, words, &value)?)));
    let fields = fields.collect::<Parsed<_>>()?;
    line.replies.push(ReplyExpected { number: words.number, only, outcome, fields });
    Ok(())
}

const COMMANDS: &str = "a client's name, start, finish, pause, resume, drop, delay, duplicate, \
     rules, crash, restart, clock, unreachable, slow, heal, alarm, wait, expect or note";

fn parse_in(cast: &Cast, words: &mut Words<'_>) -> Parsed<Command> {
    let first = words.next("a command")?;
    Ok(match first.as_str() {
        "start" => {
            let client = client(cast, words)?;
            Command::Act { client, act: parse_act(cast, words)?, start: true }
        }
        "finish" => Command::Finish(client(cast, words)?),
        "pause" => Command::Pause(client(cast, words)?),
        "resume" => Command::Resume(client(cast, words)?),
        "drop" | "delay" | "duplicate" => parse_message(cast, &first, words)?,
        "rules" | "crash" | "restart" | "clock" | "unreachable" | "slow" | "heal" | "alarm" => {
            let object = object(cast, words)?;
            let act = parse_object_act(cast, &first, &object, words)?;
            Command::Object(object, act)
        }
        "wait" if words.take("until") => {
            let lease = object_of(cast, ObjectKind::Lease, words)?;
            if !words.take("expires") {
                return Err(words.error("write: wait until orders expires"));
            }
            Command::WaitExpiry(lease)
        }
        "wait" => Command::Wait(duration(words, "how long: wait 500ms")?),
        "expect" => Command::Expect(parse_expectation(cast, words)?),
        "note" => Command::Note(words.next("the text, in quotation marks")?),
        name if cast.clients.iter().any(|client| client.as_str() == name) => {
            let client = label(words, first.clone())?;
            Command::Act { client, act: parse_act(cast, words)?, start: false }
        }
        other => {
            return Err(words.error(format!("there is no command {other:?}: use {COMMANDS}")));
        }
    })
}

const ACTS: &str = "acquire, await, renew, release, force-release, check, claim, read, write, \
     apply, seal or open";

fn parse_act(cast: &Cast, words: &mut Words<'_>) -> Parsed<Act> {
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

fn parse_message(cast: &Cast, verb: &str, words: &mut Words<'_>) -> Parsed<Command> {
    let problem = "write: drop request from A, drop reply to A, delay request from A 800ms, \
         delay reply to A 800ms, duplicate request from A";
    let is_request = words.take_all(&["request", "from"]);
    if !is_request && !words.take_all(&["reply", "to"]) {
        return Err(words.error(problem));
    }
    let client = client(cast, words)?;
    let fault = match (verb, is_request) {
        ("drop", true) => MessageFault::DropRequest,
        ("drop", false) => MessageFault::DropReply,
        ("delay", true) => MessageFault::DelayRequest(duration(words, "how long: 800ms")?),
        ("delay", false) => MessageFault::DelayReply(duration(words, "how long: 800ms")?),
        ("duplicate", true) => MessageFault::DuplicateRequest,
        _ => return Err(words.error(problem)),
    };
    Ok(Command::Message(client, fault))
}

fn parse_object_act(
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
            let stay_down = stay_down || words.take_all(&["and", "stay", "down"]);
            ObjectAct::Crash { at, stay_down }
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

fn parse_expectation(cast: &Cast, words: &mut Words<'_>) -> Parsed<Expectation> {
    if words.take_all(&["all", "invariants", "hold"]) {
        return Ok(Expectation::AllHold);
    }
    for (word, make) in [
        ("broken", Expectation::Broken as fn(Invariant) -> Expectation),
        ("holds", Expectation::Holds),
    ] {
        if words.take(word) {
            let known: Vec<_> = Invariant::ALL.into_iter().map(Invariant::word).collect();
            let found = Invariant::from_word(&words.next("an invariant")?);
            let problem = || words.error(format!("use one of: {}", known.join(", ")));
            return Ok(make(found.ok_or_else(problem)?));
        }
    }
    let example = "expect ledger.balance=110, expect broken no_lost_update, \
         expect holds one_holder, or expect all invariants hold";
    let word = words.next(&format!("what: {example}"))?;
    let field = word.split_once('=').and_then(|(left, want)| Some((left.split_once('.')?, want)));
    let Some(((name, field), want)) = field else {
        return Err(words.error(format!("write: {example}")));
    };
    let object = find_object(cast, name)
        .cloned()
        .ok_or_else(|| words.error(format!("{name} is not declared above")))?;
    let value = field_expected(cast, words, want)?;
    Ok(Expectation::Field { object, field: field.to_owned(), value })
}

fn field_expected(cast: &Cast, words: &Words<'_>, text: &str) -> Parsed<FieldExpected> {
    let looks_like_number = text.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    if looks_like_number || text.contains('.') {
        return value(cast, words, text).map(FieldExpected::Number);
    }
    Ok(FieldExpected::Word(text.to_owned()))
}

fn assignment(cast: &Cast, words: &mut Words<'_>, example: &str) -> Parsed<(Label, Value)> {
    let word = words.next(&format!("key and value: {example}"))?;
    let Some((key, text)) = word.split_once('=') else {
        return Err(words.error(format!("write key and value as in: {example}")));
    };
    Ok((label(words, key.to_owned())?, value(cast, words, text)?))
}

fn value(cast: &Cast, words: &Words<'_>, text: &str) -> Parsed<Value> {
    let value = Value::parse(text).map_err(|problem| words.error(problem))?;
    for client in value.clients() {
        declared_client(cast, client.as_str(), words)?;
    }
    Ok(value)
}

fn ttl(words: &mut Words<'_>) -> Parsed<protocol::ids::TtlMs> {
    let text = words.named("ttl");
    let text = text.ok_or_else(|| words.error("say how long the lease is to last: ttl=2s"))?;
    let ms = parse_duration(&text).map_err(|problem| words.error(problem))?;
    ms.try_into().map_err(|problem| words.error(format!("ttl in ms: {problem}")))
}

fn duration(words: &mut Words<'_>, what: &str) -> Parsed<u64> {
    let text = words.next(what)?;
    parse_duration(&text).map_err(|problem| words.error(problem))
}

fn optional_label(words: &mut Words<'_>, name: &str) -> Parsed<Option<Label>> {
    let text = words.named(name);
    text.map(|text| label(words, text)).transpose()
}

fn optional_number(words: &mut Words<'_>, name: &str) -> Parsed<Option<u64>> {
    let Some(text) = words.named(name) else { return Ok(None) };
    let number = text.parse().ok().filter(|n| *n <= protocol::ids::MAX_SAFE_INTEGER);
    let problem = || words.error(format!("{name}={text}: use a whole number from 0 on"));
    number.map(Some).ok_or_else(problem)
}

fn label(words: &Words<'_>, text: String) -> Parsed<Label> {
    text.try_into().map_err(|bad: protocol::ids::BadName| words.error(bad.to_string()))
}

fn object_name(words: &Words<'_>, text: &str) -> Parsed<Name> {
    text.try_into().map_err(|bad: protocol::ids::BadName| words.error(bad.to_string()))
}

fn client(cast: &Cast, words: &mut Words<'_>) -> Parsed<Label> {
    let name = words.next("a client")?;
    declared_client(cast, &name, words)
}

fn declared_client(cast: &Cast, name: &str, words: &Words<'_>) -> Parsed<Label> {
    let found = cast.clients.iter().find(|client| client.as_str() == name);
    found.cloned().ok_or_else(|| {
        words.error(format!("{name} is no client: declare it above with `clients {name}`"))
    })
}

fn find_object<'a>(cast: &'a Cast, name: &str) -> Option<&'a NodeId> {
    cast.objects.iter().find(|node| node.name() == name)
}

fn object(cast: &Cast, words: &mut Words<'_>) -> Parsed<NodeId> {
    let name = words.next("an object")?;
    find_object(cast, &name).cloned().ok_or_else(|| {
        words.error(format!("{name} is no object: declare it above with `resource {name}`"))
    })
}

fn object_of(cast: &Cast, kind: ObjectKind, words: &mut Words<'_>) -> Parsed<Name> {
    let name = words.next(&format!("a {}", kind.as_str()))?;
    declared(cast, kind, &name, words)
}

fn declared(cast: &Cast, kind: ObjectKind, name: &str, words: &Words<'_>) -> Parsed<Name> {
    let found = cast.of_kind(kind).find(|one| one.as_str() == name);
    found.cloned().ok_or_else(|| {
        let kind = kind.as_str();
        words.error(format!("{name} is no {kind}: declare it above with `{kind} {name}`"))
    })
}
