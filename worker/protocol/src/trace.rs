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
//! - a message between objects: `message_sent` → the events of the object that took it with
//!   the same `request`, of which `message_delivered` is the first; `message_delayed`,
//!   `message_held` and the like at the sender are in between;
//! - within a node, the order of `local_seq`.

use serde::{Deserialize, Serialize};

use crate::fence::FenceRecord;
use crate::ids::{FencingToken, Label, Name, NodeId, ObjectKind};
use crate::lease::LeaseRecord;
use crate::rules::RuleValue;
use crate::shard::ShardRecord;
use crate::transaction::account::AccountRecord;
use crate::transaction::coordinator::TxnRecord;
use crate::transaction::message::{Answer, Vote};
use crate::transaction::{Decision as TxnDecision, Leg};

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
    /// Of an account.
    Account(AccountRecord),
    /// Of a transaction's coordinator.
    Transaction(TxnRecord),
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
    /// PREPARING is durable, no prepare has left.
    AfterPreparing,
    /// The n-th vote is in, and whatever it led to is durable.
    AfterNthVote,
    /// The last vote is in, the decision is not durable.
    BeforeDecision,
    /// The decision is durable, nobody has been told.
    AfterDecision,
    /// The n-th acknowledgement is in.
    AfterNthAck,
    /// Everybody has acknowledged, that it is done is not durable.
    BeforeDone,
}

impl CrashPoint {
    /// Every point: first those that every step passes, in their order, then those of a
    /// transaction, in theirs.
    pub const ALL: [Self; 10] = [
        Self::Now,
        Self::BeforePersist,
        Self::AfterPersist,
        Self::AfterSend,
        Self::AfterPreparing,
        Self::AfterNthVote,
        Self::BeforeDecision,
        Self::AfterDecision,
        Self::AfterNthAck,
        Self::BeforeDone,
    ];

    /// The word in bodies and scripts: `after_nth_vote`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Now => "now",
            Self::BeforePersist => "before_persist",
            Self::AfterPersist => "after_persist",
            Self::AfterSend => "after_send",
            Self::AfterPreparing => "after_preparing",
            Self::AfterNthVote => "after_nth_vote",
            Self::BeforeDecision => "before_decision",
            Self::AfterDecision => "after_decision",
            Self::AfterNthAck => "after_nth_ack",
            Self::BeforeDone => "before_done",
        }
    }

    /// Whether it counts: the first vote, or the second.
    pub const fn is_counted(self) -> bool {
        matches!(self, Self::AfterNthVote | Self::AfterNthAck)
    }

    /// Whether only the coordinator of a transaction passes it.
    pub const fn is_of_transaction(self) -> bool {
        !matches!(self, Self::Now | Self::BeforePersist | Self::AfterPersist | Self::AfterSend)
    }
}

/// How messages between objects leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum DeliveryMode {
    /// At once.
    #[default]
    Auto,
    /// When a person delivers them.
    Manual,
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

    // ---- account -------------------------------------------------------------------
    AccountOpened {
        balance: i64,
    },
    /// The account voted Yes and holds its leg until it is told what was decided.
    Prepared {
        transaction: Name,
        leg: u64,
        delta: i64,
        /// What can still be promised.
        available: i64,
    },
    /// The account voted No.
    PrepareRefused {
        transaction: Name,
        leg: u64,
        delta: i64,
        reason: String,
        available: i64,
    },
    HoldCommitted {
        transaction: Name,
        delta: i64,
        /// What is in the account now.
        balance: i64,
    },
    HoldAborted {
        transaction: Name,
        delta: i64,
        available: i64,
    },
    /// An abort of something unknown was remembered (N7).
    TombstoneLeft {
        transaction: Name,
    },
    /// A decision was not carried out: the hold is unknown, over, or of a later round.
    DecisionRefused {
        transaction: Name,
        decision: TxnDecision,
        answer: Answer,
    },
    /// An account in doubt asked its coordinator.
    DecisionInquired {
        transaction: Name,
        in_doubt_ms: u64,
    },
    /// A person ended a hold.
    HoldResolved {
        transaction: Name,
        decision: TxnDecision,
        reason: String,
    },
    /// What a person decided for a leg and what the coordinator decided are not the same.
    MixedFound {
        /// At the account: which transaction.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        transaction: Option<Name>,
        /// At the coordinator: which account.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        account: Option<Name>,
        decision: TxnDecision,
        by_hand: TxnDecision,
    },

    // ---- transaction coordinator ---------------------------------------------------
    PreparingRecorded {
        legs: Vec<Leg>,
        fence: u64,
        /// When the votes must be in; absent when no alarm is set.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        alarm_at_ms: Option<u64>,
    },
    VoteReceived {
        account: Name,
        vote: Vote,
        n_votes: u64,
        n_legs: u64,
    },
    /// A vote that nobody waits for.
    VoteIgnored {
        account: Name,
        vote: Vote,
    },
    /// From here on it can be told.
    DecisionRecorded {
        decision: TxnDecision,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        fence: u64,
    },
    /// A caller was told `committed` or `aborted`.
    OutcomeTold {
        outcome: String,
    },
    AckReceived {
        account: Name,
        decision: TxnDecision,
        answer: Answer,
        n_acked: u64,
        n_legs: u64,
    },
    /// Everybody has acknowledged.
    TransactionDone {
        decision: TxnDecision,
    },
    /// The alarm, a person or another caller went on from what is recorded.
    RecoveryStarted {
        phase: String,
        attempt: u64,
        fence: u64,
    },
    /// A participant asked; `decision` is absent when nothing is decided.
    InquiryAnswered {
        account: Name,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        decision: Option<TxnDecision>,
    },
    /// `conflict` or `refused`.
    RunRefused {
        outcome: String,
        reason: String,
    },
    ResolveSent {
        account: Name,
        decision: TxnDecision,
        reason: String,
    },
    ForgetRefused {
        reason: String,
    },
    TransactionForgotten,

    // ---- messages between objects --------------------------------------------------
    /// The message is in the sender's outbox, durable with the step that sent it.
    MessageSent {
        to: NodeId,
        operation: String,
        summary: String,
        /// The message that it answers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reply_to: Option<MessageId>,
    },
    /// It waits to be delivered by hand, under this number in the sender's outbox.
    MessageHeld {
        to: NodeId,
        number: u64,
    },
    /// It waits this long.
    MessageDelayed {
        to: NodeId,
        delay_ms: u64,
    },
    /// It was thrown away.
    MessageDropped {
        to: NodeId,
        number: u64,
    },
    /// It is sent once more. `number` is that of the second one.
    MessageDuplicated {
        to: NodeId,
        number: u64,
    },
    /// A person let a held message go.
    MessageReleased {
        to: NodeId,
        number: u64,
    },
    /// It could not be delivered, and the sender knows: `down`, `unreachable`, `crashed`.
    MessageFailed {
        to: NodeId,
        reason: String,
    },
    /// It arrived, at this node.
    MessageDelivered {
        from: NodeId,
        operation: String,
    },
    DeliverySet {
        mode: DeliveryMode,
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
