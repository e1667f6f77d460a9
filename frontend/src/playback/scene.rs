//! How a lab stands at one point of its log.
//!
//! Times are in ms since 1970 by the real clock: what an object keeps by its own moved
//! clock has been put right by its offset, so that it can be compared with the time of
//! an event.

use std::sync::Arc;

use protocol::fence::{FenceRules, Guard};
use protocol::ids::{FencingToken, Label, NodeId, ObjectKind};
use protocol::lease::LeaseRules;
use protocol::rules::{Preset, RuleValue, Rules};
use protocol::shard::ShardRules;
use protocol::trace::{MessageId, ObjectRecord, TraceEvent};
use protocol::transaction::TwoPhaseRules;
use protocol::transaction::account::AccountRecord;
use protocol::transaction::coordinator::TxnRecord;

use super::message::Message;

/// What a client is doing.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Activity {
    /// Nothing that the log shows.
    #[default]
    Idle,
    /// It stopped, and does not know it.
    Paused {
        /// When.
        since_ms: u64,
    },
    /// It has asked and waits.
    Waiting {
        /// Whom it asked.
        on: NodeId,
    },
}

/// What a client believes about a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Belief {
    /// The lease.
    pub lease: NodeId,
    /// The grant.
    pub token: FencingToken,
    /// Until when, by the client's own clock.
    pub until_ms: u64,
    /// When it was told.
    pub gained_ms: u64,
}

/// What a client saw when it last read a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadValue {
    /// Where.
    pub resource: NodeId,
    /// Which key.
    pub key: String,
    /// What it saw; `None` when there was nothing.
    pub value: Option<i64>,
    /// Which write of the key it saw.
    pub version: u64,
}

/// A client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// Its node.
    pub node: NodeId,
    /// What it does.
    pub activity: Activity,
    /// When it last woke from a pause, and how long that was.
    pub woke: Option<(u64, u64)>,
    /// What it believes, one entry for each lease.
    pub beliefs: Vec<Belief>,
    /// What it has read, one entry for each key.
    pub reads: Vec<ReadValue>,
}

/// What every object has, whatever its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Not running: since when, and whether a call starts it again.
    pub crashed: Option<Crash>,
    /// How often it has started.
    pub incarnation: u64,
    /// How far its clock is moved.
    pub clock_offset_ms: i64,
    /// The alarm passes unheard.
    pub alarm_suppressed: bool,
    /// Faults in force, one line each.
    pub faults: Vec<String>,
    /// Rules in force, in the order of the source.
    pub rules: Arc<Vec<(String, RuleValue)>>,
    /// Position of the last event at this object.
    pub changed_at: usize,
    /// The durable record, and where it was written.
    pub record: Option<Arc<ObjectRecord>>,
    /// The record before that, for marking what changed.
    pub previous_record: Option<Arc<ObjectRecord>>,
    /// Position of the event that wrote the record.
    pub record_at: usize,
}

/// A crash that has not been followed by a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crash {
    /// When.
    pub since_ms: u64,
    /// It stays down until told to restart.
    pub stays_down: bool,
}

impl Condition {
    /// The value of one rule.
    pub fn rule(&self, name: &str) -> Option<&RuleValue> {
        self.rules.iter().find(|(rule, _)| rule == name).map(|(_, value)| value)
    }

    /// Whether a switch is on.
    pub fn is_on(&self, name: &str) -> bool {
        self.rule(name) == Some(&RuleValue::Switch(true))
    }

    /// Whether it is down and stays so.
    pub fn is_down(&self) -> bool {
        self.crashed.is_some_and(|crash| crash.stays_down)
    }
}

/// A lease authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Its node.
    pub node: NodeId,
    /// What every object has.
    pub condition: Condition,
    /// Who holds it, as far as the authority has written down.
    pub holder: Option<Label>,
    /// Which process of that name.
    pub nonce: Option<Label>,
    /// The highest token granted.
    pub token: u64,
    /// When the grant ends.
    pub expires_at_ms: u64,
    /// How long the grant, or its last renewal, was for.
    pub ttl_ms: u64,
    /// Who waits, first come first.
    pub waiters: Vec<Label>,
}

impl Lease {
    /// Who holds it at this time. An expiry that is not yet written down counts.
    pub fn holder_at(&self, now_ms: u64) -> Option<&Label> {
        self.holder.as_ref().filter(|_| now_ms < self.expires_at_ms)
    }

    /// How long is left at this time.
    pub fn remaining_ms(&self, now_ms: f64) -> f64 {
        if self.holder.is_none() {
            return 0.0;
        }
        (self.expires_at_ms as f64 - now_ms).max(0.0)
    }
}

/// One fence of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    /// `lease/orders` or `key/balance`.
    pub scope: String,
    /// The token that last claimed; 0 for none.
    pub claimed: u64,
    /// The highest token admitted.
    pub high_water_mark: u64,
}

/// One value of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Where.
    pub key: String,
    /// What.
    pub value: i64,
    /// Under which token.
    pub token: u64,
    /// How often it has been written.
    pub version: u64,
}

/// A fenced resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Its node.
    pub node: NodeId,
    /// What every object has.
    pub condition: Condition,
    /// The fences that stand.
    pub fences: Vec<Fence>,
    /// The values.
    pub values: Vec<Stored>,
    /// The key written last, and at which position.
    pub last_write: Option<(String, usize)>,
    /// Admitted, with the payload not yet stored.
    pub admitted: Vec<(MessageId, String)>,
}

impl Resource {
    /// The comparison that the fence makes.
    pub fn guard(&self) -> Guard {
        match self.condition.rule("guard") {
            Some(RuleValue::Choice(word)) => match word.as_str() {
                "none" => Guard::None,
                "at_least" => Guard::AtLeast,
                "strict" => Guard::Strict,
                _ => Guard::Claimed,
            },
            _ => Guard::Claimed,
        }
    }
}

/// A shard coordinator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Its node.
    pub node: NodeId,
    /// What every object has.
    pub condition: Condition,
    /// The last number given out.
    pub number: u64,
    /// The map it serves.
    pub map_epoch: u64,
    /// It has stopped.
    pub sealed: bool,
    /// Keys and values.
    pub state: Vec<(String, i64)>,
    /// The latest operations in the order in which their effects landed.
    pub operations: Vec<(u64, String)>,
    /// Numbered, with the effect not yet stored.
    pub numbered: Vec<(MessageId, u64, String)>,
}

/// An account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its node.
    pub node: NodeId,
    /// What every object has.
    pub condition: Condition,
    /// Its money and its holds.
    pub record: AccountRecord,
}

/// The coordinator of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Its node.
    pub node: NodeId,
    /// What every object has.
    pub condition: Condition,
    /// How far it is.
    pub record: TxnRecord,
}

/// An object of the lab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Object {
    /// A lease authority.
    Lease(Lease),
    /// A fenced resource.
    Resource(Resource),
    /// A shard coordinator.
    Shard(Shard),
    /// An account.
    Account(Account),
    /// The coordinator of a transaction.
    Transaction(Transaction),
}

impl Object {
    /// Its node.
    pub fn node(&self) -> &NodeId {
        match self {
            Self::Lease(lease) => &lease.node,
            Self::Resource(resource) => &resource.node,
            Self::Shard(shard) => &shard.node,
            Self::Account(account) => &account.node,
            Self::Transaction(txn) => &txn.node,
        }
    }

    /// What every object has.
    pub fn condition(&self) -> &Condition {
        match self {
            Self::Lease(lease) => &lease.condition,
            Self::Resource(resource) => &resource.condition,
            Self::Shard(shard) => &shard.condition,
            Self::Account(account) => &account.condition,
            Self::Transaction(txn) => &txn.condition,
        }
    }

    pub(super) fn condition_mut(&mut self) -> &mut Condition {
        match self {
            Self::Lease(lease) => &mut lease.condition,
            Self::Resource(resource) => &mut resource.condition,
            Self::Shard(shard) => &mut shard.condition,
            Self::Account(account) => &mut account.condition,
            Self::Transaction(txn) => &mut txn.condition,
        }
    }

    /// A new object of this kind with the rules that a lab starts with.
    pub(super) fn new(node: NodeId, kind: ObjectKind, preset: Preset) -> Self {
        let condition = Condition {
            crashed: None,
            incarnation: 1,
            clock_offset_ms: 0,
            alarm_suppressed: false,
            faults: Vec::new(),
            rules: Arc::new(rules_of(kind, preset)),
            changed_at: 0,
            record: None,
            previous_record: None,
            record_at: 0,
        };
        match kind {
            ObjectKind::Lease => Self::Lease(Lease {
                node,
                condition,
                holder: None,
                nonce: None,
                token: 0,
                expires_at_ms: 0,
                ttl_ms: 0,
                waiters: Vec::new(),
            }),
            ObjectKind::Resource => Self::Resource(Resource {
                node,
                condition,
                fences: Vec::new(),
                values: Vec::new(),
                last_write: None,
                admitted: Vec::new(),
            }),
            ObjectKind::Shard => Self::Shard(Shard {
                node,
                condition,
                number: 0,
                map_epoch: 0,
                sealed: false,
                state: Vec::new(),
                operations: Vec::new(),
                numbered: Vec::new(),
            }),
            ObjectKind::Account => {
                Self::Account(Account { node, condition, record: AccountRecord::default() })
            }
            ObjectKind::Transaction => {
                Self::Transaction(Transaction { node, condition, record: TxnRecord::default() })
            }
        }
    }
}

fn rules_of(kind: ObjectKind, preset: Preset) -> Vec<(String, RuleValue)> {
    fn named<R: Rules>(preset: Preset) -> Vec<(String, RuleValue)> {
        let rules = match preset {
            Preset::Published => R::published(),
            Preset::Repaired => R::repaired(),
        };
        rules.entries().into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
    match kind {
        ObjectKind::Lease => named::<LeaseRules>(preset),
        ObjectKind::Resource => named::<FenceRules>(preset),
        ObjectKind::Shard => named::<ShardRules>(preset),
        ObjectKind::Account | ObjectKind::Transaction => named::<TwoPhaseRules>(preset),
    }
}

/// How a lab stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// How many events have happened.
    pub cursor: usize,
    /// The time of the last of them, which never runs backwards.
    pub at_ms: u64,
    /// The event to look at.
    pub spotlight: Option<Arc<TraceEvent>>,
    /// Clients in the order in which they appeared.
    pub clients: Vec<Client>,
    /// Objects in the order in which they were added.
    pub objects: Vec<Object>,
    /// Messages under way, and the last finished one between each two nodes.
    pub messages: Vec<Message>,
    /// What the spotlighted event broke, one sentence each.
    pub broken: Vec<String>,
    pub(super) preset: Preset,
    /// Somebody has asked for something: what is set up before is no event to look at.
    pub(super) has_begun: bool,
}

impl Scene {
    /// Nothing has happened.
    pub(super) fn new(preset: Preset) -> Self {
        Self {
            cursor: 0,
            at_ms: 0,
            spotlight: None,
            clients: Vec::new(),
            objects: Vec::new(),
            messages: Vec::new(),
            broken: Vec::new(),
            preset,
            has_begun: false,
        }
    }

    /// The lease authorities.
    pub fn leases(&self) -> impl Iterator<Item = &Lease> {
        self.objects.iter().filter_map(|object| match object {
            Object::Lease(lease) => Some(lease),
            _ => None,
        })
    }

    /// The fenced resources.
    pub fn resources(&self) -> impl Iterator<Item = &Resource> {
        self.objects.iter().filter_map(|object| match object {
            Object::Resource(resource) => Some(resource),
            _ => None,
        })
    }

    /// The shard coordinators.
    pub fn shards(&self) -> impl Iterator<Item = &Shard> {
        self.objects.iter().filter_map(|object| match object {
            Object::Shard(shard) => Some(shard),
            _ => None,
        })
    }

    /// The object with this node.
    pub fn object(&self, node: &NodeId) -> Option<&Object> {
        self.objects.iter().find(|object| object.node() == node)
    }

    /// The lease with this node.
    pub fn lease(&self, node: &NodeId) -> Option<&Lease> {
        self.leases().find(|lease| lease.node == *node)
    }

    /// The client with this node.
    pub fn client(&self, node: &NodeId) -> Option<&Client> {
        self.clients.iter().find(|client| client.node == *node)
    }

    /// Whether what a client believes is so, at this time.
    pub fn is_true(&self, client: &NodeId, belief: &Belief, now_ms: u64) -> bool {
        self.lease(&belief.lease).is_some_and(|lease| {
            lease.token == belief.token.get()
                && lease.holder_at(now_ms).is_some_and(|holder| holder.as_str() == client.name())
        })
    }

    /// The message that the spotlighted event belongs to.
    pub fn spotlit_message(&self) -> Option<&Message> {
        let id = self.spotlight.as_ref()?.request.as_ref()?;
        self.messages.iter().find(|message| message.id == *id)
    }

    /// Whether the spotlighted event is the one with which this message arrived.
    pub fn is_arrival_of(&self, message: &Message) -> bool {
        message.arrived_at.is_some_and(|arrived| arrived + 1 == self.cursor)
    }

    /// The nodes that the spotlighted event concerns; empty when it concerns all.
    pub fn spotlit_nodes(&self) -> Vec<NodeId> {
        let Some(event) = &self.spotlight else { return Vec::new() };
        if event.node == NodeId::Lab {
            return Vec::new();
        }
        let mut nodes = vec![event.node.clone()];
        if let Some(message) = self.spotlit_message() {
            nodes.extend([message.from.clone(), message.to.clone()]);
        }
        nodes.extend(super::fold::names_in(event));
        nodes.dedup();
        nodes
    }
}
