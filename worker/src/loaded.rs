//! An object in memory, beside what it has on disk.
//!
//! Invariant: `rows`, `alarm` and `host_written` are what was last written, so that a
//! turn writes only what it changed, and writes it in one synchronous call: the runtime
//! commits all of a turn or nothing of it. When a write fails the object is ended, so
//! that memory is never ahead of the disk.

use protocol::host::{Host, HostRecord, Turn};
use protocol::ids::NodeId;
use protocol::machine::Machine;
use protocol::rules::{Preset, Rules};
use protocol::table::{Rows, Tabled};
use protocol::trace::{CrashPoint, DeliveryMode, TraceEvent};
use serde::{Deserialize, Serialize};
use wasm_bindgen::JsValue;

use crate::glue;
use crate::outbox::{self, Outbox};
use crate::problem::Problem;
use crate::store::{Bound, Table, Writes, rows_from_json};

const CREATE_HOST: &str = "CREATE TABLE IF NOT EXISTS host (id INTEGER PRIMARY KEY, \
     lab TEXT NOT NULL, node TEXT NOT NULL, record TEXT NOT NULL) STRICT";
const INSERT_HOST: &str = "INSERT INTO host (id, lab, node, record) VALUES (0, ?, ?, ?)";
const UPDATE_HOST: &str = "UPDATE host SET record = ? WHERE id = 0";
const SELECT_HOST: &str = "SELECT lab, node, record FROM host";
const IS_CREATED: &str = "SELECT 1 FROM sqlite_master WHERE name = 'host'";
const TOUCH: &str = "SELECT id FROM host";

/// The latest time that an alarm can be set to, in ms.
const ALARM_MAX_MS: u64 = 8_640_000_000_000_000;

/// What the lab tells an object that registers.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Registration {
    pub(crate) tracing: bool,
    pub(crate) preset: Preset,
    #[serde(default)]
    pub(crate) delivery: DeliveryMode,
}

/// What is known about the runtime's alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Alarm {
    /// Nothing, after a start.
    Unknown,
    /// It was set to this, or to nothing.
    Set(Option<u64>),
}

/// What the lab's meter is told.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) requests: u64,
    pub(crate) rows_written: u64,
}

/// The object.
pub(crate) struct Loaded<M: Machine> {
    pub(crate) lab: String,
    pub(crate) host: Host<M>,
    pub(crate) outbox: Outbox,
    /// Not yet told to the lab.
    pub(crate) usage: Usage,
    /// When the lab was last heard from.
    pub(crate) lab_heard_ms: u64,
    /// The lab takes no more events.
    pub(crate) lab_full: bool,
    /// When to try the lab again, if it could not be reached.
    pub(crate) retry_at_ms: Option<u64>,
    /// How often it could not be reached in a row.
    pub(crate) n_failures: u32,
    tables: Vec<Table>,
    rows: Vec<Rows>,
    /// The host's record as it is on disk, except for its clocks.
    host_written: HostRecord<M::Rules>,
    alarm: Alarm,
    /// How often in a row the alarm rang with nothing to do and an overdue deadline.
    n_idle_rings: u32,
}

impl<M: Machine> Loaded<M> {
    /// The object as it was written; `None` when there is none.
    pub(crate) fn restore(ctx: &JsValue) -> Result<Option<Self>, Problem> {
        if glue::query(ctx, IS_CREATED, "[]")? == "[]" {
            return Ok(None);
        }
        let hosts: Vec<(String, NodeId, String)> =
            serde_json::from_str(&glue::query(ctx, SELECT_HOST, "[]")?)?;
        let Some((lab, node, record)) = hosts.into_iter().next() else { return Ok(None) };
        let mut record: HostRecord<M::Rules> = serde_json::from_str(&record)?;
        let outbox = Outbox::restore(&glue::query(ctx, outbox::SELECT, "[]")?)?;
        if let Some((lamport, local_seq)) = outbox.last_clock(&node.to_string())? {
            record.lamport = record.lamport.max(lamport);
            record.local_seq = record.local_seq.max(local_seq);
        }
        let tables = tables::<M>();
        let mut rows = Vec::with_capacity(tables.len());
        for table in &tables {
            rows.push(rows_from_json(&glue::query(ctx, &table.select, "[]")?)?);
        }
        let host = Host::restore(node, record, M::Record::from_rows(&rows));
        Ok(Some(Self::new(lab, host, outbox, tables, rows)))
    }

    /// A new object of a lab that has agreed to it.
    pub(crate) fn create(
        ctx: &JsValue,
        lab: &str,
        node: &NodeId,
        registration: &Registration,
    ) -> Result<Self, Problem> {
        let rules = match registration.preset {
            Preset::Published => M::Rules::published(),
            Preset::Repaired => M::Rules::repaired(),
        };
        let mut record = HostRecord::new(rules, registration.tracing);
        record.delivery = registration.delivery;
        let tables = tables::<M>();
        let mut writes = Writes::default();
        for statement in [CREATE_HOST, outbox::CREATE] {
            writes.add(statement, &[]);
        }
        for table in &tables {
            writes.add(&table.create, &[]);
        }
        let (name, json) = (node.to_string(), serde_json::to_string(&record)?);
        writes.add(INSERT_HOST, &[Bound::Text(lab), Bound::Text(&name), Bound::Text(&json)]);
        let rows_written = glue::commit(ctx, &writes.into_json(), &JsValue::UNDEFINED)? as u64;
        let host = Host::restore(node.clone(), record, None);
        let rows = tables.iter().map(|_| Rows::new()).collect();
        let mut loaded = Self::new(lab.to_owned(), host, Outbox::default(), tables, rows);
        loaded.usage.rows_written = rows_written;
        loaded.lab_heard_ms = glue::now_ms();
        Ok(loaded)
    }

    fn new(
        lab: String,
        host: Host<M>,
        outbox: Outbox,
        tables: Vec<Table>,
        rows: Vec<Rows>,
    ) -> Self {
        Self {
            lab,
            host_written: host.record().clone(),
            host,
            outbox,
            usage: Usage::default(),
            lab_heard_ms: 0,
            lab_full: false,
            retry_at_ms: None,
            n_failures: 0,
            tables,
            rows,
            alarm: Alarm::Unknown,
            n_idle_rings: 0,
        }
    }

    /// Makes a turn durable. `sender_events` are the client's own, put in front of the
    /// object's so that the log has causes before effects. The answer is the outbox batch
    /// to wait for.
    ///
    /// A turn that crashes before it persists is written without its record here: that
    /// it crashed has to survive. [`Loaded::write_and_lose`] does the rest.
    pub(crate) fn write(
        &mut self,
        ctx: &JsValue,
        turn: &Turn<M>,
        sender_events: &[TraceEvent],
    ) -> Result<u64, Problem> {
        self.write_turn(ctx, turn, sender_events, 0)
    }

    fn write_turn(
        &mut self,
        ctx: &JsValue,
        turn: &Turn<M>,
        sender_events: &[TraceEvent],
        alarm_not_before_ms: u64,
    ) -> Result<u64, Problem> {
        let is_lost = turn.crash == Some(CrashPoint::BeforePersist);
        let mut writes = Writes::default();
        if let (Some(record), false) = (&turn.record, is_lost) {
            self.write_record(record, &mut writes);
        }
        if turn.host_changed {
            self.write_host(&mut writes)?;
        }
        if self.host.record().tracing {
            if !turn.events.is_empty() {
                let events: Vec<_> = sender_events.iter().chain(&turn.events).collect();
                self.outbox.add(&events, &mut writes)?;
            } else if !sender_events.is_empty() {
                self.outbox.add_volatile(sender_events)?;
            }
        }
        // The lost step must not move the alarm either.
        let alarm = if is_lost { JsValue::UNDEFINED } else { self.next_alarm(alarm_not_before_ms) };
        self.commit(ctx, writes, &alarm)?;
        Ok(self.outbox.last_ordinal())
    }

    /// Issues the writes of a step that is to be lost. The caller ends the object in the
    /// same turn, before they are durable.
    pub(crate) fn write_and_lose(&mut self, ctx: &JsValue, turn: &Turn<M>) -> Result<(), Problem> {
        let mut writes = Writes::default();
        if let Some(record) = &turn.record {
            self.write_record(record, &mut writes);
        }
        let alarm = self.next_alarm(0);
        self.commit(ctx, writes, &alarm)
    }

    /// After the alarm rang: sets the next one, never at once again when ringing had no
    /// effect, or a deadline that nothing can meet would ring for ever.
    pub(crate) fn write_after_ring(
        &mut self,
        ctx: &JsValue,
        turn: &Turn<M>,
        now_ms: u64,
    ) -> Result<u64, Problem> {
        self.alarm = Alarm::Set(None);
        self.retry_at_ms = self.retry_at_ms.filter(|at_ms| *at_ms > now_ms);
        let is_overdue = self.host.alarm_at_ms().is_some_and(|at_ms| at_ms <= now_ms);
        if !is_overdue || turn.record.is_some() {
            self.n_idle_rings = 0;
            return self.write_turn(ctx, turn, &[], 0);
        }
        let pause_ms = (5 << (2 * self.n_idle_rings).min(14)).min(60_000);
        self.n_idle_rings += 1;
        self.write_turn(ctx, turn, &[], now_ms + pause_ms)
    }

    /// Sets the alarm alone, for a retry.
    pub(crate) fn write_alarm(&mut self, ctx: &JsValue) -> Result<(), Problem> {
        let alarm = self.next_alarm(0);
        if alarm.is_undefined() { Ok(()) } else { self.commit(ctx, Writes::default(), &alarm) }
    }

    /// The object's own tables, as SQL has them.
    pub(crate) fn tables_json(&self, ctx: &JsValue) -> Result<String, Problem> {
        let mut parts = Vec::with_capacity(self.tables.len());
        for table in &self.tables {
            let rows = glue::query(ctx, &table.select, "[]")?;
            let columns = serde_json::to_string(&table.columns)?;
            parts.push(format!(r#"{{"name":"{}","columns":{columns},"rows":{rows}}}"#, table.name));
        }
        Ok(format!(r#"{{"tables":[{}]}}"#, parts.join(",")))
    }

    /// Reads one row, so that an instance that is no longer the current one is found out
    /// even when it has nothing to write.
    pub(crate) fn touch(&self, ctx: &JsValue) -> Result<(), Problem> {
        glue::query(ctx, TOUCH, "[]")?;
        Ok(())
    }

    /// Writes the host's record, unless only its clocks went on: the events have those.
    fn write_host(&mut self, writes: &mut Writes) -> Result<(), Problem> {
        let HostRecord { lamport, local_seq, .. } = self.host_written;
        let record = self.host.record();
        if (HostRecord { lamport, local_seq, ..record.clone() }) == self.host_written {
            return Ok(());
        }
        writes.add(UPDATE_HOST, &[Bound::Text(&serde_json::to_string(record)?)]);
        self.host_written = record.clone();
        Ok(())
    }

    fn write_record(&mut self, record: &M::Record, writes: &mut Writes) {
        let rows = record.to_rows();
        for ((table, old), new) in self.tables.iter().zip(&self.rows).zip(&rows) {
            writes.add_changes(table, old, new);
        }
        self.rows = rows;
    }

    /// What to set the alarm to. An alarm that rings too early does no harm and is set
    /// anew then, so it is moved only when it would ring too late: renewing a lease again
    /// and again leaves it alone.
    fn next_alarm(&mut self, not_before_ms: u64) -> JsValue {
        let deadlines = [self.host.alarm_at_ms(), self.retry_at_ms];
        let Some(wanted_ms) = deadlines.into_iter().flatten().min() else {
            return JsValue::UNDEFINED;
        };
        let wanted_ms = wanted_ms.max(not_before_ms).clamp(1, ALARM_MAX_MS);
        if matches!(self.alarm, Alarm::Set(Some(set_ms)) if set_ms <= wanted_ms) {
            return JsValue::UNDEFINED;
        }
        self.alarm = Alarm::Set(Some(wanted_ms));
        JsValue::from_f64(wanted_ms as f64)
    }

    fn commit(&mut self, ctx: &JsValue, writes: Writes, alarm: &JsValue) -> Result<(), Problem> {
        if writes.is_empty() && alarm.is_undefined() {
            return self.touch(ctx);
        }
        self.usage.rows_written += glue::commit(ctx, &writes.into_json(), alarm)? as u64;
        Ok(())
    }
}

fn tables<M: Machine>() -> Vec<Table> {
    M::Record::SCHEMA.iter().map(Table::new).collect()
}
