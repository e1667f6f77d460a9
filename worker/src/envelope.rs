//! What clients tell about themselves: the trace header of a request, reported events.
//!
//! Invariant: nothing a client says can be taken for an object's word. Its events are at
//! its own node, of the kinds that happen to clients, without a record, and their numbers
//! are safe integers. The lab's node may be given remarks (`noted`) only.

use protocol::host::Envelope;
use protocol::ids::{MAX_SAFE_INTEGER, NodeId};
use protocol::object::Request;
use protocol::trace::{TraceEvent, TraceKind};
use serde::Deserialize;

use crate::body;
use crate::problem::Problem;

/// The largest Lamport time that is taken from outside: half the safe range, so that
/// counting on from it never leaves the range.
const LAMPORT_MAX: u64 = MAX_SAFE_INTEGER / 2;

/// The longest text of one remark, in characters.
const NOTE_LENGTH_MAX: usize = 2000;

/// The body of a report.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Report {
    /// In the order in which they happened.
    pub(crate) events: Vec<TraceEvent>,
}

/// The envelope of a request. Without a header the sender is the holder it names.
pub(crate) fn envelope(header: Option<&str>, request: &Request) -> Result<Envelope, Problem> {
    let Some(header) = header else {
        let from = match request {
            Request::Acquire(acquire) => Some(acquire.holder.clone()),
            Request::Renew(renew) => Some(renew.holder.clone()),
            _ => None,
        };
        return Ok(Envelope { from, ..Envelope::default() });
    };
    let mut envelope: Envelope = body::parse_at("header fencepost-trace", header)?;
    if envelope.lamport > LAMPORT_MAX {
        return Err(too_large("header fencepost-trace: `lamport`"));
    }
    check_events(&mut envelope.events)
        .map_err(|what| Problem::Malformed(format!("header fencepost-trace: {what}")))?;
    Ok(envelope)
}

/// The events of a report's body.
pub(crate) fn report(body: &str) -> Result<Vec<TraceEvent>, Problem> {
    let mut report: Report = body::parse(body)?;
    check_events(&mut report.events).map_err(Problem::Malformed)?;
    Ok(report.events)
}

fn too_large(what: &str) -> Problem {
    Problem::Malformed(format!("{what} is too large: use a whole number from 0 to {LAMPORT_MAX}."))
}

fn check_events(events: &mut [TraceEvent]) -> Result<(), String> {
    for (index, event) in events.iter_mut().enumerate() {
        event.seq = 0;
        check_event(event).map_err(|what| format!("`events[{index}]`: {what}"))?;
    }
    Ok(())
}

fn check_event(event: &TraceEvent) -> Result<(), String> {
    let is_note = matches!(event.kind, TraceKind::Noted { .. });
    match event.node {
        NodeId::Client(_) if is_note || happens_to_clients(&event.kind) => {}
        NodeId::Lab if is_note => {}
        _ => {
            return Err(
                "report only what happens to clients, at nodes `client/…`, and `noted` at \
                        node `lab`; objects report for themselves."
                    .to_owned(),
            );
        }
    }
    if event.lamport > LAMPORT_MAX
        || event.local_seq > MAX_SAFE_INTEGER
        || event.at_ms > MAX_SAFE_INTEGER
    {
        return Err(format!("`at_ms`, `lamport` and `local_seq` end at {LAMPORT_MAX}."));
    }
    if event.record.is_some() {
        return Err("a client has no `record`.".to_owned());
    }
    match &event.kind {
        TraceKind::Noted { text } if text.chars().count() > NOTE_LENGTH_MAX => {
            Err(format!("`text` is longer than {NOTE_LENGTH_MAX} characters."))
        }
        _ => Ok(()),
    }
}

fn happens_to_clients(kind: &TraceKind) -> bool {
    matches!(
        kind,
        TraceKind::RequestSent { .. }
            | TraceKind::RequestDropped { .. }
            | TraceKind::RequestDelayed { .. }
            | TraceKind::RequestDuplicated { .. }
            | TraceKind::ReplyReceived { .. }
            | TraceKind::ReplyDropped { .. }
            | TraceKind::ReplyFailed { .. }
            | TraceKind::ClientPaused
            | TraceKind::ClientResumed { .. }
            | TraceKind::BeliefGained { .. }
            | TraceKind::BeliefLost { .. }
            | TraceKind::ClientRefrained { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(node: &str, kind: &str, more: &str) -> String {
        format!(
            r#"{{"events":[{{"at_ms":1,"node":"{node}","lamport":1,"local_seq":1,"kind":"{kind}"{more}}}]}}"#
        )
    }

    #[test]
    fn clients_speak_for_themselves_only() {
        assert!(report(&event("client/A", "client_paused", "")).is_ok());
        assert!(report(&event("lab", "noted", r#","text":"step: 1""#)).is_ok());
        for (node, kind, more) in [
            ("lease/orders", "client_paused", ""),
            ("client/A", "lab_created", ""),
            ("lab", "lab_created", ""),
            ("client/A", "restarted", r#","incarnation":2"#),
            (
                "client/A",
                "client_paused",
                r#","record":{"lease":{"holder":null,"token":9,"expires_at_ms":0,"max_seen_ms":0,"counter":0,"waiters":[],"replies":[]}}"#,
            ),
        ] {
            assert!(report(&event(node, kind, more)).is_err(), "{node} {kind} {more}");
        }
    }

    #[test]
    fn numbers_stay_safe() {
        let header = format!(r#"{{"lamport":{}}}"#, u64::MAX);
        let request = crate::routes::Operation::Read.parse(r#"{"key":"a"}"#).unwrap();
        assert!(envelope(Some(&header), &request).is_err());
        assert!(envelope(Some(r#"{"lamport":7}"#), &request).is_ok());
        assert!(envelope(Some("{"), &request).is_err());
    }

    #[test]
    fn without_a_header_the_holder_is_the_sender() {
        let request = crate::routes::Operation::Acquire.parse(r#"{"holder":"A","ttl_ms":1000}"#);
        let envelope = envelope(None, &request.unwrap()).unwrap();
        assert_eq!(envelope.from.unwrap().as_str(), "A");
    }
}
