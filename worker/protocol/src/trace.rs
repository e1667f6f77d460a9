//! The one trace format: what happened, where, in which order, and why.
//!
//! Every view (stage, lanes, tables, transcript, invariants) is a function of a list of
//! these events and a cursor. The lab gives each event its `seq`; `node` and
//! `local_seq` name it for ever, so that a batch may be sent twice without harm.
//!
//! Happens-before edges are exact:
//! - a request: `request_sent` at the client → the first event at the object with the
//!   same `request`;
//! - a reply: the last event at the object with that `request` → `reply_received` at the
//!   client;
//! - within a node, the order of `local_seq`.

use serde::{Deserialize, Serialize};

use crate::fence::FenceRecord;
use crate::ids::{FencingToken, Label, NodeId, ObjectKind};
use crate::lease::LeaseRecord;
use crate::rules::RuleValue;
use crate::shard::ShardRecord;

/// One thing that happened at one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TraceEvent {
    /// The position in the lab's log, from 1; 0 until the lab has sequenced it.
    #[serde(default)]
    pub seq: u64,
    /// When, in ms since 1970, by the real clock of the node's machine. An injected clock
    /// offset is not in it (see `clock_set`).
    pub at_ms: u64,
    /// Where.
    pub node: NodeId,
    /// Lamport clock of the node at this event.
    pub lamport: u64,
    /// The node's own count of events, strictly rising, not always by one.
    pub local_seq: u64,
    /// The message that this event belongs to: its sending, handling or answering.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<MessageId>,
    /// What happened.
    #[serde(flatten)]
    pub kind: TraceKind,
    /// The line of source that decided it, for refusals, grants and admissions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// The object's durable record after the step, on the last event of the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<ObjectRecord>,
}

/// Names one request of one client: `A.1732999.3`. Its reply has the same id.
pub type MessageId = Label;

/// The rule and the line that decided an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Decision {
    /// The rule, as in the rules of the object: `guard`, `renew_proves_grant`, …
    pub rule: String,
    /// The source file, from the root of the repository.
    pub file: String,
    /// The line in it, from 1.
    pub line: u32,
}

/// Makes a [`Decision`] of a rule's name and the line where it is written, which
/// therefore cannot drift from the source.
macro_rules! decided {
    ($rule:literal) => {
        Some($crate::trace::Decision {
            rule: $rule.to_owned(),
            file: file!().replace('\\', "/"),
            line: line!(),
        })
    };
}
pub(crate) use decided;

/// The durable record of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ObjectRecord {
    /// Of a lease authority.
    Lease(LeaseRecord),
    /// Of a fenced resource.
    Resource(FenceRecord),
    /// Of a shard coordinator.
    Shard(ShardRecord),
}

/// How a new grant came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum GrantedBy {
    /// The lease was free.
    Acquire,
    /// The candidate has the holder's name, and names were enough (case B2).
    ReEntry,
    /// A renewal, where renewing is acquiring (case B1).
    Renewal,
    /// The candidate was first in the queue.
    Queue,
}

/// Where a crash is injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum CrashPoint {
    /// At once.
    Now,
    /// The step is done in memory and its writes are issued, but nothing is durable.
    BeforePersist,
    /// The step is durable, nobody has been told.
    AfterPersist,
    /// The step is durable and the reply is on its way.
    AfterSend,
}

impl CrashPoint {
    /// Every point, in the order in which a step passes them.
    pub const ALL: [Self; 4] =
        [Self::Now, Self::BeforePersist, Self::AfterPersist, Self::AfterSend];
}

/// What happened: a closed list, in the past tense.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[allow(missing_docs, reason = "fields are named after the terms of `ids` and of the records")]
pub enum TraceKind {
    // ---- clients -------------------------------------------------------------------
    /// A client sent a request. `summary` is one line: `acquire orders ttl_ms=2000`.
    RequestSent {
        to: NodeId,
        operation: String,
        summary: String,
    },
    /// The request was thrown away on its way: it never arrives.
    RequestDropped {
        to: NodeId,
    },
    /// The request waits on its way for this long.
    RequestDelayed {
        to: NodeId,
        delay_ms: u64,
    },
    /// The same request is sent once more by the network.
    RequestDuplicated {
        to: NodeId,
    },
    /// The reply reached the client. `outcome` is the tag of the reply.
    ReplyReceived {
        from: NodeId,
        outcome: String,
        summary: String,
    },
    /// The reply arrived and was thrown away: the client never saw it.
    ReplyDropped {
        from: NodeId,
    },
    /// No reply will come: the object crashed, is down or cannot be reached.
    ReplyFailed {
        from: NodeId,
        reason: String,
    },
    /// The client stopped: a long garbage collection, a suspended laptop.
    ClientPaused,
    /// The client goes on as if no time had passed.
    ClientResumed {
        paused_ms: u64,
    },
    /// The client now believes that it holds a lease until its own deadline.
    BeliefGained {
        lease: NodeId,
        token: FencingToken,
        until_ms: u64,
    },
    /// The client gave up its belief. `reason`: `released`, `lost`, `deadline`.
    BeliefLost {
        lease: NodeId,
        token: FencingToken,
        reason: String,
    },
    /// The client refused to act, by its own deadline (case FC-03).
    ClientRefrained {
        summary: String,
    },

    // ---- lease authority -----------------------------------------------------------
    LeaseGranted {
        holder: Label,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        nonce: Option<Label>,
        token: FencingToken,
        ttl_ms: u64,
        /// By the authority's own clock.
        expires_at_ms: u64,
        /// The authority's own clock at the grant.
        clock_ms: u64,
        by: GrantedBy,
    },
    LeaseRenewed {
        holder: Label,
        token: FencingToken,
        expires_at_ms: u64,
        clock_ms: u64,
    },
    LeaseRefused {
        candidate: Label,
        holder: Label,
        remaining_ms: u64,
    },
    LeaseExpired {
        holder: Label,
        token: FencingToken,
        clock_ms: u64,
    },
    LeaseReleased {
        holder: Label,
        token: FencingToken,
        /// The reason given, when somebody else forced it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        forced: Option<String>,
    },
    ReleaseRefused {
        presented: FencingToken,
        current: FencingToken,
    },
    RenewalRefused {
        presented: FencingToken,
        current: FencingToken,
    },
    WaiterQueued {
        holder: Label,
        position: u64,
        deadline_ms: u64,
    },
    WaiterTimedOut {
        holder: Label,
    },
    /// A request id came again and got its first reply.
    RequestRepeated {
        request_id: Label,
    },
    /// A request arrived after its own `not_after_ms`.
    RequestExpired {
        holder: Label,
        /// How long the lease was to last.
        ttl_ms: u64,
        not_after_ms: u64,
        clock_ms: u64,
    },
    /// A request id came again with other contents.
    RequestConflicted {
        request_id: Label,
    },
    /// No further token can be issued (case B9).
    TokensExhausted,

    // ---- fenced resource -----------------------------------------------------------
    Claimed {
        lease: Label,
        token: FencingToken,
    },
    ClaimRefused {
        lease: Label,
        presented: FencingToken,
        high_water_mark: FencingToken,
    },
    /// The guard let the write in, the payload is not stored yet (`atomic_write` off).
    WriteAdmitted {
        lease: Label,
        token: FencingToken,
        key: Label,
        value: i64,
    },
    WriteApplied {
        lease: Label,
        token: FencingToken,
        key: Label,
        value: i64,
        /// How often this key has been written.
        version: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        write_id: Option<Label>,
    },
    /// The write id came again: the first result was given once more.
    WriteRepeated {
        write_id: Label,
        key: Label,
    },
    /// The write id came again with another payload.
    WriteConflicted {
        write_id: Label,
        key: Label,
    },
    WriteRefused {
        lease: Label,
        key: Label,
        value: i64,
        presented: FencingToken,
        high_water_mark: FencingToken,
        /// `fenced`, `not_claimed` or `gap`.
        outcome: String,
        /// What the key keeps, since the write was refused.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kept: Option<i64>,
    },
    ValueRead {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lease: Option<Label>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<FencingToken>,
        key: Label,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<i64>,
        version: u64,
    },
    ReadRefused {
        lease: Label,
        key: Label,
        presented: FencingToken,
        high_water_mark: FencingToken,
    },

    // ---- shard coordinator ---------------------------------------------------------
    /// A sequence number was given out, its effect is not stored yet (`atomic_apply` off).
    OperationNumbered {
        number: u64,
        summary: String,
    },
    OperationApplied {
        number: u64,
        /// The key that it changed.
        key: Label,
        summary: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        op_id: Option<Label>,
    },
    OperationRepeated {
        op_id: Label,
        number: u64,
    },
    OperationConflicted {
        op_id: Label,
    },
    /// `wrong_epoch` or `sealed`.
    OperationRefused {
        outcome: String,
        presented_epoch: u64,
        current_epoch: u64,
    },
    ShardSealed {
        map_epoch: u64,
        number: u64,
    },
    ShardOpened {
        map_epoch: u64,
    },

    // ---- any object ----------------------------------------------------------------
    Crashed {
        at: CrashPoint,
        stays_down: bool,
        incarnation: u64,
    },
    Restarted {
        incarnation: u64,
    },
    RulesChanged {
        rules: Vec<(String, RuleValue)>,
    },
    ClockSet {
        offset_ms: i64,
    },
    FaultsSet {
        faults: Vec<String>,
    },
    AlarmSuppressed,
    AlarmResumed,
    /// The alarm rang. `forced` when a person fired it.
    AlarmFired {
        forced: bool,
    },

    // ---- the lab -------------------------------------------------------------------
    LabCreated,
    ObjectAdded {
        object_kind: ObjectKind,
        name: String,
    },
    /// A person's remark or a lesson's step, kept so that a recording explains itself.
    Noted {
        text: String,
    },
}
