//! Bodies that the Worker writes by hand, for the description of the API only.

#![expect(dead_code, reason = "the fields are read by the derived schemas alone")]

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde_json::Value as Json;

use crate::control::Fault;
use crate::host::Outgoing;
use crate::ids::{Name, NodeId, ObjectKind};
use crate::rules::{Preset, RuleValue};
use crate::trace::{DeliveryMode, ObjectRecord, TraceEvent};

/// How a new lab is to be. Every member may be left out.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct CreateLab {
    /// Whether events are recorded; true without it.
    tracing: Option<bool>,
    /// The rules with which new objects start; `repaired` without it.
    preset: Option<Preset>,
}

/// A new lab.
#[derive(JsonSchema)]
pub(super) struct Created {
    /// Its name; keep it, there is no list of labs.
    lab: String,
    /// When it is deleted if nobody uses it, in ms since 1970.
    expires_at_ms: u64,
    /// The server's time.
    now_ms: u64,
}

/// A lab.
#[derive(JsonSchema)]
pub(super) struct About {
    lab: String,
    now_ms: u64,
    created_at_ms: u64,
    /// When it is deleted if nobody uses it from now on.
    expires_at_ms: u64,
    tracing: bool,
    preset: Preset,
    /// How messages between objects leave.
    delivery: DeliveryMode,
    objects: Vec<ObjectName>,
    usage: Usage,
    /// The last number in the log.
    last_seq: u64,
}

/// An object of a lab.
#[derive(JsonSchema)]
pub(super) struct ObjectName {
    kind: ObjectKind,
    name: Name,
}

/// What a lab has used so far.
#[derive(JsonSchema)]
pub(super) struct Usage {
    /// Of at most 20,000.
    events: u64,
    /// Requests to objects, calls between them included.
    requests: u64,
    /// Rows that objects have written.
    rows_written: u64,
    /// The larger of both, as a share of what a free account may do in a day.
    share_of_free_day: f64,
}

/// The lab is gone.
#[derive(JsonSchema)]
pub(super) struct Forgotten {
    /// `forgotten`
    outcome: String,
}

/// A page of the log.
#[derive(JsonSchema)]
pub(super) struct EventsPage {
    events: Vec<TraceEvent>,
    /// Ask for the next page after this number.
    next_after: u64,
    /// Whether there is one.
    more: bool,
}

/// A client's own events, in the order in which they happened.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct Report {
    /// At nodes `client/…`, or `noted` at node `lab`. `local_seq` rises with each event of a
    /// node; start it at the client's own start time in ms, times 1000.
    events: Vec<TraceEvent>,
}

/// The events are in the log.
#[derive(JsonSchema)]
pub(super) struct Recorded {
    /// `recorded`, or `not_recorded` in a lab without tracing.
    outcome: String,
    /// The last number in the log.
    last_seq: u64,
}

/// An object.
#[derive(JsonSchema)]
pub(super) struct Inspected {
    kind: ObjectKind,
    name: Name,
    record: ObjectRecord,
    rules: BTreeMap<String, RuleValue>,
    /// How often it has started after an injected crash, from 1.
    incarnation: u64,
    /// Stays down until it is restarted.
    down: bool,
    clock_offset_ms: i64,
    faults: Vec<Fault>,
    alarm_suppressed: bool,
    /// When the alarm rings, by the real clock; `null` for no alarm.
    alarm_at_ms: Option<u64>,
    /// How its messages to other objects leave.
    delivery: DeliveryMode,
    /// How many of them have not been delivered.
    n_outbox: u64,
    /// Who waits for whom: of an account its holds, of a transaction its open legs.
    in_doubt: Vec<Doubt>,
}

/// One leg that waits.
#[derive(JsonSchema)]
pub(super) struct Doubt {
    /// Of an account: whom it waits for.
    coordinator: Option<NodeId>,
    /// Of a transaction: who has not acknowledged.
    account: Option<Name>,
    delta: i64,
    /// For how long, in ms.
    age_ms: u64,
    /// How often it was tried to end this.
    attempts: u64,
    last_error: Option<String>,
    /// Of a transaction: the leg has ended otherwise.
    mixed: Option<bool>,
}

/// Messages that have not been delivered.
#[derive(JsonSchema)]
pub(super) struct Waiting {
    messages: Vec<Outgoing>,
}

/// An object's own SQLite tables.
#[derive(JsonSchema)]
pub(super) struct Tables {
    tables: Vec<Table>,
}

/// One of them.
#[derive(JsonSchema)]
pub(super) struct Table {
    name: String,
    columns: Vec<String>,
    /// Integers, text or `null`, in the order of the columns.
    rows: Vec<Vec<Json>>,
}

/// Whether the server runs.
#[derive(JsonSchema)]
pub(super) struct Health {
    ok: bool,
    version: String,
}

/// Why a request was not carried out.
#[derive(JsonSchema)]
pub(super) struct Problem {
    /// `urn:fencepost:problem:…`
    #[schemars(rename = "type")]
    kind: String,
    title: String,
    status: u16,
    /// What to do.
    detail: String,
    /// Of an injected fault: `down`, `unreachable` or `crashed`.
    reason: Option<String>,
}
