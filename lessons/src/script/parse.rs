//! From text to script, line by line.
//!
//! Invariant: every name that a script uses has been declared above, so that a slip of the
//! pen is an error with a line number and not a new object.

mod acts;
mod objects;

use protocol::ids::{Label, Name, NodeId, ObjectKind};
use protocol::invariant::Invariant;
use protocol::trace::DeliveryMode;

use super::words::Words;
use super::{
    Cast, Command, Expectation, FieldExpected, Line, MessageFault, Only, Predict, ReplyExpected,
    Script, ScriptError, Step, Value, Variant, parse_duration,
};
use acts::parse_act;
use objects::parse_object_act;

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
        Some("clients" | "lease" | "resource" | "shard" | "account" | "transaction") => {
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
    let by = if words.take("by") { Some(parse_place(&script.cast, words)?) } else { None };
    let Some(step) = script.steps.last_mut() else {
        return Err(words.error("put it into a step"));
    };
    if !step.lines.is_empty() {
        return Err(words.error("ask before anything happens: move it up, right below `step`"));
    }
    step.predicts.push(Predict { only, id, by });
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
     hold, deliver, delivery, rules, crash, restart, clock, unreachable, slow, heal, alarm, wait, \
     expect or note";

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
        "drop" | "delay" | "duplicate" if matches!(words.peek(), Some("request" | "reply")) => {
            parse_message(cast, &first, words)?
        }
        "drop" | "duplicate" if words.take("waiting") => {
            parse_object(cast, &format!("{first} waiting"), words)?
        }
        "rules" | "crash" | "restart" | "clock" | "unreachable" | "slow" | "heal" | "alarm"
        | "hold" | "drop" | "delay" | "duplicate" | "deliver" => parse_object(cast, &first, words)?,
        "delivery" if words.take("manual") => Command::Delivery(DeliveryMode::Manual),
        "delivery" if words.take("auto") => Command::Delivery(DeliveryMode::Auto),
        "delivery" => return Err(words.error("write: delivery manual, or delivery auto")),
        "wait" if words.take("until") => parse_wait_until(cast, words)?,
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

fn parse_object(cast: &Cast, verb: &str, words: &mut Words<'_>) -> Parsed<Command> {
    let object = object(cast, words)?;
    let act = parse_object_act(cast, verb, &object, words)?;
    Ok(Command::Object(object, act))
}

fn parse_wait_until(cast: &Cast, words: &mut Words<'_>) -> Parsed<Command> {
    if words.peek().is_some_and(|word| word.contains('=')) {
        let (object, field, value) = parse_field(cast, words, "wait until t1.phase=done_commit")?;
        return Ok(Command::WaitField { object, field, value });
    }
    let lease = object_of(cast, ObjectKind::Lease, words)?;
    if !words.take("expires") {
        return Err(words.error("write: wait until orders expires"));
    }
    Ok(Command::WaitExpiry(lease))
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
    let (object, field, value) = parse_field(cast, words, example)?;
    Ok(Expectation::Field { object, field, value })
}

fn parse_field(
    cast: &Cast,
    words: &mut Words<'_>,
    example: &str,
) -> Parsed<(NodeId, String, FieldExpected)> {
    let word = words.next(&format!("what: {example}"))?;
    let field = word.split_once('=').and_then(|(left, want)| Some((left.split_once('.')?, want)));
    let Some(((name, field), want)) = field else {
        return Err(words.error(format!("write: {example}")));
    };
    let object = find_object(cast, name)
        .cloned()
        .ok_or_else(|| words.error(format!("{name} is not declared above")))?;
    let value = field_expected(cast, words, want)?;
    Ok((object, field.to_owned(), value))
}

fn parse_place(cast: &Cast, words: &mut Words<'_>) -> Parsed<(NodeId, String)> {
    let example = "predict told by bob.balance";
    let word = words.next(&format!("where the answer will be: {example}"))?;
    let place = word.split_once('.');
    let Some((name, field)) = place else { return Err(words.error(format!("write: {example}"))) };
    let object = find_object(cast, name).cloned();
    let object = object.ok_or_else(|| words.error(format!("{name} is not declared above")))?;
    Ok((object, field.to_owned()))
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
