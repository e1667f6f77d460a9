//! The lab on disk: what it is, which objects it has, and its log in batches.
//!
//! Invariant: what an append makes durable is one batch row. It carries the meter and how
//! far each node has come that spoke in it. The table of nodes is brought up to date once in
//! a while, so that a lab that wakes reads a few rows and not its whole log.

use std::collections::{BTreeMap, BTreeSet};

use protocol::rules::Preset;
use protocol::trace::DeliveryMode;
use serde::{Deserialize, Serialize};
use wasm_bindgen::JsValue;

use crate::glue;
use crate::lab_log::{Log, Sequenced, cut};
use crate::problem::Problem;
use crate::store::{Bound, Writes};

const CREATE: [&str; 4] = [
    "CREATE TABLE IF NOT EXISTS lab (id INTEGER PRIMARY KEY, about TEXT NOT NULL) STRICT",
    "CREATE TABLE IF NOT EXISTS objects (node TEXT PRIMARY KEY) STRICT, WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS nodes (node TEXT PRIMARY KEY, local_seq INTEGER NOT NULL) \
     STRICT, WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS batches (first_seq INTEGER PRIMARY KEY, last_seq INTEGER NOT NULL, \
     at_ms INTEGER NOT NULL, requests INTEGER NOT NULL, rows_written INTEGER NOT NULL, \
     tops TEXT NOT NULL, events TEXT NOT NULL) STRICT",
];
const IS_CREATED: &str = "SELECT 1 FROM sqlite_master WHERE name = 'lab'";
const SELECT_ABOUT: &str = "SELECT about FROM lab";
const PUT_ABOUT: &str = "INSERT INTO lab (id, about) VALUES (0, ?) \
     ON CONFLICT (id) DO UPDATE SET about = excluded.about";
const SELECT_OBJECTS: &str = "SELECT node FROM objects";
const PUT_OBJECT: &str = "INSERT INTO objects (node) VALUES (?) ON CONFLICT (node) DO NOTHING";
const DELETE_OBJECT: &str = "DELETE FROM objects WHERE node = ?";
const SELECT_NODES: &str = "SELECT node, local_seq FROM nodes";
const PUT_NODE: &str = "INSERT INTO nodes (node, local_seq) VALUES (?, ?) \
     ON CONFLICT (node) DO UPDATE SET local_seq = excluded.local_seq";
const SELECT_LAST: &str = "SELECT last_seq, at_ms, requests, rows_written FROM batches \
     ORDER BY first_seq DESC LIMIT 1";
const SELECT_TOPS: &str = "SELECT tops FROM batches WHERE first_seq > CAST(? AS INTEGER) \
     ORDER BY first_seq";
const PUT_BATCH: &str = "INSERT INTO batches (first_seq, last_seq, at_ms, requests, rows_written, \
     tops, events) VALUES (?, ?, ?, ?, ?, ?, ?)";
/// The batch that holds the event after a given one, and those behind it.
const SELECT_BATCHES: &str = "SELECT first_seq, last_seq, events FROM batches WHERE first_seq >= \
     COALESCE((SELECT MAX(first_seq) FROM batches WHERE first_seq <= CAST(?1 AS INTEGER)), 0) \
     AND last_seq >= CAST(?1 AS INTEGER) ORDER BY first_seq LIMIT 64";

/// Remarks, beside the nodes that have come so far.
const REMARK: &str = "remark/";

/// After so many batches the table of nodes is brought up to date.
const CHECKPOINT_BATCHES: usize = 64;

/// What a lab is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct About {
    pub(crate) lab: String,
    pub(crate) created_at_ms: u64,
    pub(crate) tracing: bool,
    pub(crate) preset: Preset,
    /// It was deleted; some of its objects may still have to be.
    pub(crate) forgotten: bool,
    /// As of when this was written; a later batch knows better.
    pub(crate) active_at_ms: u64,
    pub(crate) requests: u64,
    pub(crate) rows_written: u64,
    /// Up to this event the table of nodes knows everything.
    pub(crate) nodes_seq: u64,
    /// How messages between objects leave.
    #[serde(default)]
    pub(crate) delivery: DeliveryMode,
}

/// The lab in memory.
pub(crate) struct Stored {
    pub(crate) about: About,
    pub(crate) objects: BTreeSet<String>,
    pub(crate) log: Log,
    /// When `about` was last written.
    about_written_ms: u64,
    /// What the table of nodes does not know yet, and of how many batches.
    news: BTreeMap<String, u64>,
    n_news: usize,
}

impl Stored {
    /// The lab as it was written; `None` when there is none.
    pub(crate) fn restore(ctx: &JsValue) -> Result<Option<Self>, Problem> {
        if glue::query(ctx, IS_CREATED, "[]")? == "[]" {
            return Ok(None);
        }
        let abouts: Vec<(String,)> = rows(ctx, SELECT_ABOUT)?;
        let Some((about,)) = abouts.into_iter().next() else { return Ok(None) };
        let mut about: About = serde_json::from_str(&about)?;
        let about_written_ms = about.active_at_ms;
        let objects: Vec<(String,)> = rows(ctx, SELECT_OBJECTS)?;
        let mut log = Log::default();
        for (node, local_seq) in rows::<(String, u64)>(ctx, SELECT_NODES)? {
            learn(&mut log, node, local_seq);
        }
        let json = glue::query(ctx, SELECT_TOPS, &format!("[{}]", about.nodes_seq))?;
        let batches: Vec<(String,)> = serde_json::from_str(&json)?;
        let n_news = batches.len();
        let mut news = BTreeMap::new();
        for (tops,) in batches {
            news.extend(serde_json::from_str::<BTreeMap<String, u64>>(&tops)?);
        }
        for (node, local_seq) in &news {
            learn(&mut log, node.clone(), *local_seq);
        }
        let last: Vec<(u64, u64, u64, u64)> = rows(ctx, SELECT_LAST)?;
        if let Some((last_seq, at_ms, requests, rows_written)) = last.into_iter().next() {
            log.last_seq = last_seq;
            about.active_at_ms = about.active_at_ms.max(at_ms);
            about.requests = about.requests.max(requests);
            about.rows_written = about.rows_written.max(rows_written);
        }
        let objects = objects.into_iter().map(|(node,)| node).collect();
        Ok(Some(Self { about, objects, log, about_written_ms, news, n_news }))
    }

    /// A new lab, with the alarm for its end.
    pub(crate) fn create(ctx: &JsValue, about: About, alarm_at_ms: u64) -> Result<Self, Problem> {
        let mut writes = Writes::default();
        for statement in CREATE {
            writes.add(statement, &[]);
        }
        let about_written_ms = about.active_at_ms;
        let mut stored = Self {
            about,
            objects: BTreeSet::new(),
            log: Log::default(),
            about_written_ms,
            news: BTreeMap::new(),
            n_news: 0,
        };
        stored.add_about(&mut writes)?;
        stored.commit(ctx, writes, Some(alarm_at_ms))?;
        Ok(stored)
    }

    /// The lab is in use. It is made durable only when what is on disk is old.
    pub(crate) fn touch(
        &mut self,
        ctx: &JsValue,
        now_ms: u64,
        write_every_ms: u64,
    ) -> Result<(), Problem> {
        self.about.active_at_ms = now_ms;
        self.about.requests += 1;
        if now_ms < self.about_written_ms + write_every_ms {
            return Ok(());
        }
        self.about_written_ms = now_ms;
        self.write_about(ctx, None)
    }

    /// Writes what the lab is, and the alarm if one is given.
    pub(crate) fn write_about(
        &mut self,
        ctx: &JsValue,
        alarm_at_ms: Option<u64>,
    ) -> Result<(), Problem> {
        let mut writes = Writes::default();
        self.add_about(&mut writes)?;
        self.commit(ctx, writes, alarm_at_ms)
    }

    /// Sets the alarm alone.
    pub(crate) fn write_alarm(&mut self, ctx: &JsValue, alarm_at_ms: u64) -> Result<(), Problem> {
        self.commit(ctx, Writes::default(), Some(alarm_at_ms))
    }

    /// Adds an object.
    pub(crate) fn add_object(&mut self, node: String, writes: &mut Writes) {
        writes.add(PUT_OBJECT, &[Bound::Text(&node)]);
        self.objects.insert(node);
    }

    /// Takes an object out, once it has deleted itself.
    pub(crate) fn remove_object(&mut self, ctx: &JsValue, node: &str) -> Result<(), Problem> {
        self.objects.remove(node);
        let mut writes = Writes::default();
        writes.add(DELETE_OBJECT, &[Bound::Text(node)]);
        self.commit(ctx, writes, None)
    }

    /// Writes events that have their numbers.
    pub(crate) fn write_events(
        &mut self,
        ctx: &JsValue,
        taken: &Sequenced,
        now_ms: u64,
        mut writes: Writes,
    ) -> Result<(), Problem> {
        self.about.active_at_ms = now_ms;
        if !taken.is_empty() {
            let tops = self.tops_of(taken);
            let json = serde_json::to_string(&tops)?;
            self.news.extend(tops);
            self.n_news += 1;
            let batch = [
                Bound::Integer(taken.first_seq),
                Bound::Integer(taken.last_seq),
                Bound::Integer(now_ms),
                Bound::Integer(self.about.requests),
                Bound::Integer(self.about.rows_written),
                Bound::Text(&json),
                Bound::Text(&taken.events),
            ];
            writes.add(PUT_BATCH, &batch);
        }
        if self.n_news >= CHECKPOINT_BATCHES {
            self.checkpoint(taken.last_seq, &mut writes)?;
        }
        if writes.is_empty() { Ok(()) } else { self.commit(ctx, writes, None) }
    }

    /// How far the nodes have come that spoke in a batch.
    fn tops_of(&self, taken: &Sequenced) -> BTreeMap<String, u64> {
        let tops = taken.nodes.iter().filter_map(|node| {
            let top = self.log.tops.get(node).copied()?;
            Some((node.clone(), top))
        });
        let remarks = taken.remarks.iter().map(|remark| (format!("{REMARK}{remark}"), *remark));
        tops.chain(remarks).collect()
    }

    /// Brings the table of nodes up to date.
    fn checkpoint(&mut self, last_seq: u64, writes: &mut Writes) -> Result<(), Problem> {
        for (node, local_seq) in core::mem::take(&mut self.news) {
            writes.add(PUT_NODE, &[Bound::Text(&node), Bound::Integer(local_seq)]);
        }
        self.n_news = 0;
        self.about.nodes_seq = last_seq;
        self.add_about(writes)
    }

    /// A JSON array of the events after `after`, and the last number in it.
    pub(crate) fn events(
        &self,
        ctx: &JsValue,
        after: u64,
        limit: u64,
        bytes: usize,
    ) -> Result<(String, u64), Problem> {
        let json = glue::query(ctx, SELECT_BATCHES, &format!("[{}]", after.saturating_add(1)))?;
        let batches: Vec<(u64, u64, String)> = serde_json::from_str(&json)?;
        cut(
            batches.iter().map(|(first, last, text)| (*first, *last, text.as_str())),
            after,
            limit,
            bytes,
        )
    }

    fn add_about(&self, writes: &mut Writes) -> Result<(), Problem> {
        writes.add(PUT_ABOUT, &[Bound::Text(&serde_json::to_string(&self.about)?)]);
        Ok(())
    }

    fn commit(
        &mut self,
        ctx: &JsValue,
        writes: Writes,
        alarm_at_ms: Option<u64>,
    ) -> Result<(), Problem> {
        let alarm = alarm_at_ms.map_or(JsValue::UNDEFINED, |at_ms| JsValue::from_f64(at_ms as f64));
        self.about.rows_written += glue::commit(ctx, &writes.into_json(), &alarm)? as u64;
        Ok(())
    }
}

/// Takes in what a row of the table of nodes, or a batch, says.
fn learn(log: &mut Log, node: String, local_seq: u64) {
    if node.starts_with(REMARK) {
        log.remarks.insert(local_seq);
    } else {
        log.tops.insert(node, local_seq);
    }
}

fn rows<T: serde::de::DeserializeOwned>(ctx: &JsValue, statement: &str) -> Result<Vec<T>, Problem> {
    Ok(serde_json::from_str(&glue::query(ctx, statement, "[]")?)?)
}
