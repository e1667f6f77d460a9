//! The order of a lab's log: which events are new, and which number each one gets.
//!
//! Invariant: a node's events are taken in the order of their `local_seq`, each once,
//! however often a batch comes. Numbers have no gaps. The lab reads no more of an event
//! than its node and its `local_seq`: the number is written in front of the rest.
//!
//! The lab's own node is special: several pages may leave remarks there, each with its own
//! count. A remark is known by its `local_seq` alone, whoever left it, and gets the lab's
//! next `local_seq` in the log.

use std::collections::{BTreeMap, BTreeSet};

use protocol::ids::NodeId;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::problem::Problem;

/// How a serialized event begins before it has a number.
const UNNUMBERED: &str = "{\"seq\":0,";

/// The lab's own node.
pub(crate) const LAB_NODE: &str = "lab";

/// What names an event.
#[derive(Deserialize)]
struct Key<'a> {
    #[serde(borrow)]
    node: std::borrow::Cow<'a, str>,
    local_seq: u64,
}

/// Numbers of a stored event.
#[derive(Deserialize)]
struct Numbered {
    seq: u64,
}

/// How far the log has come.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// The last number given out.
    pub(crate) last_seq: u64,
    /// The highest `local_seq` of each node.
    pub(crate) tops: BTreeMap<String, u64>,
    /// The remarks that have been taken.
    pub(crate) remarks: BTreeSet<u64>,
}

/// Events that have been given their numbers.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Sequenced {
    /// The first number; there is none when `events` is empty.
    pub(crate) first_seq: u64,
    /// The last number.
    pub(crate) last_seq: u64,
    /// A JSON array.
    pub(crate) events: String,
    /// Nodes with a new highest `local_seq`.
    pub(crate) nodes: BTreeSet<String>,
    /// Remarks that are new.
    pub(crate) remarks: Vec<u64>,
}

impl Sequenced {
    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }
}

impl Log {
    /// Takes a JSON array of events. An error means that nothing was taken.
    pub(crate) fn sequence(&mut self, batch: &str) -> Result<Sequenced, Problem> {
        let batch: Vec<&RawValue> = serde_json::from_str(batch)?;
        let mut keyed = Vec::with_capacity(batch.len());
        for event in batch {
            let key: Key<'_> = serde_json::from_str(event.get())?;
            let rest = event.get().strip_prefix(UNNUMBERED);
            let rest =
                rest.ok_or_else(|| Problem::Internal("an event with a number".to_owned()))?;
            keyed.push((key, rest));
        }
        let mut taken = Sequenced { first_seq: self.last_seq + 1, ..Sequenced::default() };
        for (key, rest) in keyed {
            if key.node == LAB_NODE {
                self.take_remark(&key, rest, &mut taken);
            } else {
                self.take(&key, rest, &mut taken);
            }
        }
        if !taken.events.is_empty() {
            taken.events.push(']');
        }
        taken.last_seq = self.last_seq;
        Ok(taken)
    }

    /// The next `local_seq` of the lab itself.
    pub(crate) fn next_lab_seq(&mut self) -> u64 {
        let top = self.tops.entry(LAB_NODE.to_owned()).or_default();
        *top += 1;
        *top
    }

    fn take(&mut self, key: &Key<'_>, rest: &str, taken: &mut Sequenced) {
        match self.tops.get_mut(key.node.as_ref()) {
            Some(top) if key.local_seq <= *top => return,
            Some(top) => *top = key.local_seq,
            None => {
                self.tops.insert(key.node.to_string(), key.local_seq);
            }
        }
        if !taken.nodes.contains(key.node.as_ref()) {
            taken.nodes.insert(key.node.to_string());
        }
        self.push(rest, taken);
    }

    fn take_remark(&mut self, key: &Key<'_>, rest: &str, taken: &mut Sequenced) {
        if !self.remarks.insert(key.local_seq) {
            return;
        }
        taken.remarks.push(key.local_seq);
        taken.nodes.insert(LAB_NODE.to_owned());
        let given = format!("\"local_seq\":{},", key.local_seq);
        let own = format!("\"local_seq\":{},", self.next_lab_seq());
        // The head of an event has the field before any text of the caller's.
        self.push(&rest.replacen(&given, &own, 1), taken);
    }

    /// Adds one of the lab's own events, already with its `local_seq`.
    pub(crate) fn push_own(&mut self, event: &str, taken: &mut Sequenced) {
        taken.first_seq = self.last_seq + 1;
        taken.nodes.insert(LAB_NODE.to_owned());
        if let Some(rest) = event.strip_prefix(UNNUMBERED) {
            self.push(rest, taken);
            taken.events.push(']');
        }
        taken.last_seq = self.last_seq;
    }

    fn push(&mut self, rest: &str, taken: &mut Sequenced) {
        self.last_seq += 1;
        taken.events.push(if taken.events.is_empty() { '[' } else { ',' });
        taken.events.push_str("{\"seq\":");
        taken.events.push_str(&self.last_seq.to_string());
        taken.events.push(',');
        taken.events.push_str(rest);
    }
}

/// Cuts stored batches to the events after `after`, `limit` of them at most, and to about
/// `bytes` of text. Answers a JSON array and the last number in it.
pub(crate) fn cut<'a>(
    batches: impl Iterator<Item = (u64, u64, &'a str)>,
    after: u64,
    limit: u64,
    bytes: usize,
) -> Result<(String, u64), Problem> {
    let mut text = String::from("[");
    let mut last = after;
    for (first_seq, last_seq, events) in batches {
        let left = limit.saturating_sub(last - after);
        if left == 0 || (text.len() > 1 && text.len() + events.len() > bytes) {
            break;
        }
        if first_seq > last && last_seq.saturating_sub(last) <= left {
            if text.len() > 1 {
                text.push(',');
            }
            text.push_str(events.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(""));
            last = last_seq;
            continue;
        }
        for event in serde_json::from_str::<Vec<&RawValue>>(events)? {
            let Numbered { seq } = serde_json::from_str(event.get())?;
            if last < seq && seq - after <= limit {
                if text.len() > 1 {
                    text.push(',');
                }
                text.push_str(event.get());
                last = seq;
            }
        }
    }
    text.push(']');
    Ok((text, last))
}

/// Whether a node can be an object's.
pub(crate) fn object_node(text: &str) -> Option<NodeId> {
    NodeId::try_from(text.to_owned()).ok().filter(|node| node.object_kind().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(node: &str, local_seq: u64) -> String {
        format!(
            r#"{{"seq":0,"at_ms":1,"node":"{node}","lamport":1,"local_seq":{local_seq},"kind":"noted","text":"x"}}"#
        )
    }

    fn batch(events: &[(&str, u64)]) -> String {
        let events: Vec<_> =
            events.iter().map(|(node, local_seq)| event(node, *local_seq)).collect();
        format!("[{}]", events.join(","))
    }

    fn seqs(events: &str) -> Vec<u64> {
        if events.is_empty() {
            return Vec::new();
        }
        let events: Vec<protocol::trace::TraceEvent> = serde_json::from_str(events).unwrap();
        events.iter().map(|event| event.seq).collect()
    }

    #[test]
    fn an_event_is_taken_once() {
        let mut log = Log::default();
        let first = log.sequence(&batch(&[("client/A", 5), ("lease/x", 1)])).unwrap();
        assert_eq!(seqs(&first.events), [1, 2]);
        let again =
            log.sequence(&batch(&[("client/A", 5), ("lease/x", 1), ("lease/x", 2)])).unwrap();
        assert_eq!((again.first_seq, again.last_seq, seqs(&again.events)), (3, 3, vec![3]));
        assert!(log.sequence(&batch(&[("client/A", 4)])).unwrap().is_empty());
    }

    #[test]
    fn remarks_of_two_pages_are_both_taken() {
        let mut log = Log::default();
        let taken = log.sequence(&batch(&[("lab", 9000), ("lab", 10), ("lab", 9000)])).unwrap();
        assert_eq!(seqs(&taken.events), [1, 2]);
        assert!(taken.events.contains(r#""local_seq":2,"kind":"noted""#), "{}", taken.events);
        assert_eq!(taken.remarks, [9000, 10]);
    }

    #[test]
    fn what_has_a_number_or_no_shape_is_refused_whole() {
        let mut log = Log::default();
        for bad in ["", "{}", "[{}]", r#"[{"seq":1,"node":"client/A","local_seq":1}]"#] {
            assert!(log.sequence(bad).is_err(), "{bad}");
        }
        assert_eq!(log.last_seq, 0);
    }

    #[test]
    fn a_page_starts_and_ends_inside_a_batch() {
        let mut log = Log::default();
        let one =
            log.sequence(&batch(&[("client/A", 1), ("client/A", 2), ("client/A", 3)])).unwrap();
        let two = log.sequence(&batch(&[("client/A", 4), ("client/A", 5)])).unwrap();
        let stored = [(1, 3, one.events.as_str()), (4, 5, two.events.as_str())];
        let page = |after, limit, bytes| {
            let (text, last) = cut(stored.into_iter(), after, limit, bytes).unwrap();
            (seqs(&text), last)
        };
        assert_eq!(page(0, 100, 10_000), (vec![1, 2, 3, 4, 5], 5));
        assert_eq!(page(1, 3, 10_000), (vec![2, 3, 4], 4));
        assert_eq!(page(3, 1, 10_000), (vec![4], 4));
        assert_eq!(page(0, 100, 10), (vec![1, 2, 3], 3));
        assert_eq!(page(5, 100, 10_000), (vec![], 5));
    }
}
