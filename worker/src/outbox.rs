//! Events that the lab has not acknowledged yet.
//!
//! Invariant: batches leave in the order in which they were written, and all that are
//! still here leave together. The lab drops what it has seen, so sending one twice does no
//! harm; sending a later one without an earlier one would lose the earlier one.
//!
//! On disk a batch is one row in a slot. An acknowledged batch is not deleted: its slot is
//! written over by a later one, which halves the rows written. What is left in the slots
//! after a crash is sent once more.

use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};

use protocol::trace::TraceEvent;
use serde::Deserialize;

use crate::problem::Problem;
use crate::store::{Bound, Writes};

/// Statements of the table.
pub(crate) const CREATE: &str = "CREATE TABLE IF NOT EXISTS trace (slot INTEGER PRIMARY KEY, \
     ordinal INTEGER NOT NULL, events TEXT NOT NULL) STRICT";
pub(crate) const SELECT: &str = "SELECT slot, ordinal, events FROM trace ORDER BY ordinal";
const PUT: &str = "INSERT INTO trace (slot, ordinal, events) VALUES (?, ?, ?) ON CONFLICT (slot) \
     DO UPDATE SET ordinal = excluded.ordinal, events = excluded.events";

/// One call to the lab carries about this much; more goes with the next call.
const CALL_BYTES: usize = 512 * 1024;

#[derive(Debug)]
struct Batch {
    ordinal: u64,
    /// Where it is on disk; `None` when only the sender's own events are in it, which the
    /// sender keeps until it hears from us.
    slot: Option<u64>,
    /// A JSON array.
    events: String,
}

/// The numbers of an event.
#[derive(Deserialize)]
struct Clock<'a> {
    #[serde(borrow)]
    node: Cow<'a, str>,
    lamport: u64,
    local_seq: u64,
}

/// The batches, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    batches: VecDeque<Batch>,
    last_ordinal: u64,
}

impl Outbox {
    /// Reads the rows that [`SELECT`] gave.
    pub(crate) fn restore(json: &str) -> Result<Self, Problem> {
        let rows: Vec<(u64, u64, String)> = serde_json::from_str(json)?;
        let batches: VecDeque<_> = rows
            .into_iter()
            .map(|(slot, ordinal, events)| Batch { ordinal, slot: Some(slot), events })
            .collect();
        let last_ordinal = batches.back().map_or(0, |last| last.ordinal);
        Ok(Self { batches, last_ordinal })
    }

    /// Lamport time and count of a node's latest event here. The latest batch is always on
    /// disk, so the host's own row need not be written for these two alone.
    pub(crate) fn last_clock(&self, node: &str) -> Result<Option<(u64, u64)>, Problem> {
        let mut last = None;
        for batch in &self.batches {
            let events: Vec<Clock<'_>> = serde_json::from_str(&batch.events)?;
            let own = events.iter().filter(|event| event.node == node);
            last = last.max(own.map(|event| (event.lamport, event.local_seq)).max());
        }
        Ok(last)
    }

    /// Takes a turn's events and writes them with the turn.
    pub(crate) fn add(
        &mut self,
        events: &[&TraceEvent],
        writes: &mut Writes,
    ) -> Result<(), Problem> {
        let taken: BTreeSet<_> = self.batches.iter().filter_map(|batch| batch.slot).collect();
        let slot = (0..).find(|slot| !taken.contains(slot));
        let events = serde_json::to_string(events)?;
        self.last_ordinal += 1;
        let ordinal = self.last_ordinal;
        let values =
            [Bound::Integer(slot.unwrap_or(0)), Bound::Integer(ordinal), Bound::Text(&events)];
        writes.add(PUT, &values);
        self.batches.push_back(Batch { ordinal, slot, events });
        Ok(())
    }

    /// Takes events that need not be durable here.
    pub(crate) fn add_volatile(&mut self, events: &[TraceEvent]) -> Result<(), Problem> {
        let events = serde_json::to_string(events)?;
        self.last_ordinal += 1;
        self.batches.push_back(Batch { ordinal: self.last_ordinal, slot: None, events });
        Ok(())
    }

    /// The newest batch's number: acknowledged up to here, everything has arrived.
    pub(crate) fn last_ordinal(&self) -> u64 {
        self.last_ordinal
    }

    /// Whether everything up to a batch has been acknowledged.
    pub(crate) fn has_sent(&self, ordinal: u64) -> bool {
        self.batches.front().is_none_or(|first| first.ordinal > ordinal)
    }

    /// The next call's body, a JSON array of events, and the last batch in it.
    pub(crate) fn next_call(&self) -> (String, u64) {
        let mut body = String::from("[");
        let mut last = 0;
        for batch in &self.batches {
            let events = batch.events.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
            let events = events.unwrap_or("");
            if events.is_empty() {
                last = batch.ordinal;
                continue;
            }
            if body.len() > 1 {
                if body.len() + events.len() > CALL_BYTES {
                    break;
                }
                body.push(',');
            }
            body.push_str(events);
            last = batch.ordinal;
        }
        body.push(']');
        (body, last)
    }

    /// The lab has everything up to this batch.
    pub(crate) fn acknowledge(&mut self, ordinal: u64) {
        while self.batches.front().is_some_and(|first| first.ordinal <= ordinal) {
            self.batches.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(local_seq: u64) -> TraceEvent {
        let json = format!(
            r#"{{"at_ms":1,"node":"client/A","lamport":1,"local_seq":{local_seq},"kind":"client_paused"}}"#
        );
        serde_json::from_str(&json).unwrap()
    }

    fn add(outbox: &mut Outbox, local_seq: u64) -> String {
        let mut writes = Writes::default();
        outbox.add(&[&event(local_seq)], &mut writes).unwrap();
        writes.into_json()
    }

    #[test]
    fn a_slot_is_written_over_once_acknowledged() {
        let mut outbox = Outbox::default();
        assert!(add(&mut outbox, 1).contains(",0,1,"));
        assert!(add(&mut outbox, 2).contains(",1,2,"));
        outbox.acknowledge(1);
        assert!(add(&mut outbox, 3).contains(",0,3,"));
        assert!(outbox.has_sent(1) && !outbox.has_sent(2));
        let (body, last) = outbox.next_call();
        assert_eq!(last, 3);
        let events: Vec<TraceEvent> = serde_json::from_str(&body).unwrap();
        assert_eq!(events.iter().map(|event| event.local_seq).collect::<Vec<_>>(), [2, 3]);
        outbox.acknowledge(last);
        assert!(outbox.has_sent(3));
    }

    #[test]
    fn what_was_on_disk_is_sent_again_in_order() {
        let outbox = Outbox::restore(r#"[[1,4,"[]"],[0,5,"[{}]"]]"#).unwrap();
        assert_eq!(outbox.last_ordinal(), 5);
        assert_eq!(outbox.next_call(), ("[{}]".to_owned(), 5));
    }

    #[test]
    fn a_node_finds_its_own_latest_numbers() {
        let mut outbox = Outbox::default();
        assert_eq!(outbox.last_clock("client/A").unwrap(), None);
        add(&mut outbox, 4);
        add(&mut outbox, 7);
        assert_eq!(outbox.last_clock("client/A").unwrap(), Some((1, 7)));
        assert_eq!(outbox.last_clock("lease/x").unwrap(), None);
    }
}
