//! A log as text, one event a line, without what changes from run to run or from edit to
//! edit: absolute times, message numbers, line numbers.

use protocol::trace::TraceEvent;
use serde_json::Value;

/// One variant's log.
pub(crate) fn section(variant: &str, events: &[TraceEvent], start_ms: u64) -> String {
    let mut text = format!("== {variant}\n");
    for event in events {
        text += &line(event, start_ms);
        text.push('\n');
    }
    text.push('\n');
    text
}

fn line(event: &TraceEvent, start_ms: u64) -> String {
    let json = serde_json::to_value(event).expect("an event is JSON");
    let kind = json["kind"].as_str().unwrap_or("?");
    let mut text = format!(
        "{:>4} {:>5}ms {:<16} {kind:<18}",
        event.seq,
        event.at_ms.saturating_sub(start_ms),
        event.node.to_string(),
    );
    const SHOWN: [&str; 9] =
        ["seq", "at_ms", "node", "lamport", "local_seq", "kind", "request", "decision", "record"];
    let fields = json.as_object().into_iter().flatten();
    for (name, value) in fields.filter(|(name, _)| !SHOWN.contains(&name.as_str())) {
        text += &format!(" {name}={}", plain(value, start_ms));
    }
    if let Some(request) = &event.request {
        let number = request.as_str().rsplit('.').next().unwrap_or("?");
        let client = request.as_str().split('.').next().unwrap_or("?");
        text += &format!(" ({client}.{number})");
    }
    if let Some(decision) = &event.decision {
        text += &format!(" by {}", decision.rule);
    }
    text.trim_end().to_owned()
}

fn plain(value: &Value, start_ms: u64) -> String {
    match value {
        Value::String(text) if text.contains(' ') => format!("{text:?}"),
        Value::String(text) => text.clone(),
        Value::Number(number) => match number.as_u64().filter(|ms| *ms >= start_ms) {
            Some(ms) => format!("+{}ms", ms - start_ms),
            None => number.to_string(),
        },
        other => other.to_string(),
    }
}
