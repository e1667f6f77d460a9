//! Clients of a shard that moves: workers, who route by the map that they have, and the
//! mover, who seals the old shard and opens the new one.
//!
//! Map `n` names `shard/even` if `n` is even and `shard/odd` if it is odd.

use std::collections::BTreeMap;

use protocol::ids::{Count, Label, NodeId, Value};
use protocol::object::{Reply, Request};
use protocol::shard::{Apply, Op, Open, Seal, ShardReply};
use protocol::sim::Answer;

use super::draw::Draw;
use super::network::Actor;

/// How many moves there are.
pub const MOVES_MAX: u64 = 4;
/// How many operations each worker has; all of them fit into the log of a shard.
pub const OPERATIONS_MAX: u64 = 25;

fn shard(map_epoch: u64) -> NodeId {
    let node = if map_epoch.is_multiple_of(2) { "shard/even" } else { "shard/odd" };
    node.to_owned().try_into().expect("a node")
}

fn epoch(map_epoch: u64) -> Count {
    map_epoch.try_into().expect("an epoch")
}

/// Adds 1 to one key, again and again.
pub struct Worker {
    name: String,
    map_epoch: u64,
    n_done: u64,
    waits_for: Option<(u64, NodeId, Request)>,
}

impl Worker {
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), map_epoch: 0, n_done: 0, waits_for: None }
    }
}

impl Actor for Worker {
    fn name(&self) -> &str {
        &self.name
    }

    fn act(&mut self, now_ms: u64, draw: &mut Draw) -> Option<(NodeId, Request)> {
        if draw.chance(2) && self.map_epoch < MOVES_MAX {
            // A new map may come long before the shards know of it.
            self.map_epoch += 1;
        }
        let (node, request) = match &self.waits_for {
            Some((since_ms, ..)) if now_ms < since_ms + 60 => return None,
            // It asks where it sent it, until it is refused there.
            Some((_, node, request)) => (node.clone(), request.clone()),
            None if self.n_done == OPERATIONS_MAX => return None,
            None => {
                let id = format!("{}.{}", self.name, self.n_done);
                let key = Label::try_from("apples").expect("a key");
                let apply = Apply {
                    op: Op::Add { key, amount: Value::try_from(1).expect("one") },
                    op_id: Some(id.as_str().try_into().expect("an id")),
                    map_epoch: Some(epoch(self.map_epoch)),
                };
                (shard(self.map_epoch), Request::Apply(apply))
            }
        };
        self.waits_for = Some((now_ms, node.clone(), request.clone()));
        Some((node, request))
    }

    fn hear(&mut self, node: &NodeId, request: &Request, answer: &Answer) {
        let is_awaited =
            |(_, at, awaited): &(u64, NodeId, Request)| at == node && awaited == request;
        let Answer::Reply { reply: Reply::Shard(reply), .. } = answer else { return };
        if !self.waits_for.as_ref().is_some_and(is_awaited) {
            return;
        }
        let Request::Apply(Apply { map_epoch: Some(sent), .. }) = request else { return };
        match reply {
            ShardReply::Applied { .. } | ShardReply::Duplicate { .. } => self.n_done += 1,
            // Not yet is not no: the shard may open for this map, and a copy of the request
            // that is still on its way would then be done.
            ShardReply::WrongEpoch { current } if *current < sent.get() => return,
            ShardReply::Sealed { map_epoch, .. } if *map_epoch < sent.get() => return,
            ShardReply::Sealed { map_epoch: newer, .. }
            | ShardReply::WrongEpoch { current: newer } => {
                self.map_epoch = self.map_epoch.max(*newer);
            }
            _ => {}
        }
        self.waits_for = None;
    }
}

/// Moves the key to the other shard, now and then.
pub struct Mover {
    map_epoch: u64,
    sealed: Option<BTreeMap<Label, Value>>,
    waits_for: Option<(u64, NodeId, Request)>,
}

impl Mover {
    pub fn new() -> Self {
        Self { map_epoch: 0, sealed: None, waits_for: None }
    }
}

impl Actor for Mover {
    fn name(&self) -> &'static str {
        "mover"
    }

    fn act(&mut self, now_ms: u64, draw: &mut Draw) -> Option<(NodeId, Request)> {
        let next = self.map_epoch + 1;
        let (node, request) = match (&self.waits_for, &self.sealed) {
            (Some((since_ms, ..)), _) if now_ms < since_ms + 60 => return None,
            (Some((_, node, request)), _) => (node.clone(), request.clone()),
            (None, Some(state)) => {
                let open = Open { map_epoch: epoch(next), state: state.clone() };
                (shard(next), Request::Open(open))
            }
            (None, None) if self.map_epoch == MOVES_MAX || !draw.chance(8) => return None,
            (None, None) => (shard(self.map_epoch), Request::Seal(Seal { map_epoch: epoch(next) })),
        };
        self.waits_for = Some((now_ms, node.clone(), request.clone()));
        Some((node, request))
    }

    fn hear(&mut self, _node: &NodeId, request: &Request, answer: &Answer) {
        let Answer::Reply { reply: Reply::Shard(reply), .. } = answer else { return };
        if self.waits_for.as_ref().is_none_or(|(.., awaited)| awaited != request) {
            return;
        }
        match reply {
            ShardReply::Sealed { state, .. } => {
                let copied = state.iter().map(|(key, value)| {
                    let key = Label::try_from(key.as_str()).expect("a key that was stored");
                    (key, Value::try_from(*value).expect("a value that was stored"))
                });
                self.sealed = Some(copied.collect());
            }
            ShardReply::Opened { .. } => {
                self.map_epoch += 1;
                self.sealed = None;
            }
            _ => {}
        }
        self.waits_for = None;
    }
}
