//! The script language: what clients do, what goes wrong, and what is expected.
//!
//! ```text
//! variant strict "The paper's fence"
//! clients A B
//! lease orders
//! resource ledger
//! rules ledger repaired guard=strict
//!
//! step stale "A wakes and writes"
//!   predict stale-write
//!   resume A
//!   A write ledger balance=A.balance+20
//!     -> fenced presented=1 high_water_mark=2
//!   expect all invariants hold
//! ```
//!
//! One command a line; `#` starts a comment. A line that begins with `[variant]` counts in
//! that variant only. The same script runs in the simulator, in the page and against a
//! deployment.
//!
//! Invariant: what is printed parses to the same script ([`parse`] and `Display`), so a
//! sandbox can save what it did. Comments are not kept.

mod parse;
mod print;
mod value;
mod words;
#[cfg(test)]
mod tests;

use core::fmt;

use protocol::control::AlarmAction;
use protocol::ids::{Label, Name, NodeId, ObjectKind, TtlMs, WaitMs};
use protocol::invariant::Invariant;
use protocol::rules::RulesUpdate;
use protocol::trace::CrashPoint;

pub use parse::{parse, parse_command};
pub use value::{Term, Value, duration_text, parse_duration};

/// A whole script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// The settings under which it can run, first the default. Empty: one without a name.
    pub variants: Vec<Variant>,
    /// Who and what takes part.
    pub cast: Cast,
    /// Done before the first step.
    pub setup: Vec<Line>,
    /// The steps, in order.
    pub steps: Vec<Step>,
}

impl Script {
    /// The steps that a variant has.
    pub fn steps_of<'a>(&'a self, variant: &'a str) -> impl Iterator<Item = &'a Step> {
        self.steps.iter().filter(move |step| step.only.includes(variant))
    }

    /// The id of the default variant; empty when the script has none.
    pub fn default_variant(&self) -> &str {
        self.variants.first().map_or("", |variant| variant.id.as_str())
    }
}

/// One setting under which the same script runs: `variant strict "The paper's fence"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// The word in `[…]`.
    pub id: String,
    /// What the page calls it.
    pub title: String,
}

/// The clients and objects of a script, in the order in which they are declared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cast {
    /// The clients.
    pub clients: Vec<Label>,
    /// The objects.
    pub objects: Vec<NodeId>,
}

impl Cast {
    /// The names of one kind's objects.
    pub fn of_kind(&self, kind: ObjectKind) -> impl Iterator<Item = &Name> {
        self.objects.iter().filter_map(move |node| match node {
            NodeId::Object(found, name) if *found == kind => Some(name),
            _ => None,
        })
    }

    /// The lease, when there is exactly one; commands need not name it then.
    pub fn only_lease(&self) -> Option<&Name> {
        let mut leases = self.of_kind(ObjectKind::Lease);
        leases.next().filter(|_| leases.next().is_none())
    }
}

/// Which variants a line counts in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Only(pub Vec<String>);

impl Only {
    /// Whether it counts in this one.
    pub fn includes(&self, variant: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|id| id == variant)
    }
}

/// One step: what happens at one press of the button.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Where in the text, from 1.
    pub number: usize,
    /// Names it in the prose, in the log (`step: <id>`) and in links.
    pub id: String,
    /// What the transport bar shows.
    pub title: String,
    /// Which variants have it.
    pub only: Only,
    /// The questions to ask before it runs; at most one counts in a variant.
    pub predicts: Vec<(Only, String)>,
    /// What it does.
    pub lines: Vec<Line>,
}

impl Step {
    /// The question to ask before it runs.
    pub fn prediction(&self, variant: &str) -> Option<&str> {
        let found = self.predicts.iter().find(|(only, _)| only.includes(variant));
        found.map(|(_, id)| id.as_str())
    }
}

/// One command and what is expected of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Where in the text, from 1.
    pub number: usize,
    /// Which variants do it.
    pub only: Only,
    /// What to do.
    pub command: Command,
    /// What the reply must be: `-> fenced presented=1`.
    pub replies: Vec<ReplyExpected>,
}

/// What a reply must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyExpected {
    /// Where in the text, from 1.
    pub number: usize,
    /// In which variants.
    pub only: Only,
    /// The reply's tag, or `silence`, `crashed`, `down`, `unreachable`.
    pub outcome: String,
    /// Fields of the reply that must have these values.
    pub fields: Vec<(String, FieldExpected)>,
}

/// What a field of a reply must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldExpected {
    /// This number.
    Number(Value),
    /// This word; `nothing` for a field without a value.
    Word(String),
}

/// One command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// A client does something: `A acquire orders ttl=2s`. With `start` in front it does
    /// not wait for the reply.
    Act {
        /// Who.
        client: Label,
        /// What.
        act: Act,
        /// Whether the script goes on before the reply is there.
        start: bool,
    },
    /// `finish A`: waits for the oldest request that A started.
    Finish(Label),
    /// `pause A`: A stops; replies wait.
    Pause(Label),
    /// `resume A`: A goes on as if no time had passed.
    Resume(Label),
    /// `drop request from A`: happens to A's next request.
    Message(Label, MessageFault),
    /// Something is done to an object.
    Object(NodeId, ObjectAct),
    /// `wait 500ms`.
    Wait(u64),
    /// `wait until orders expires`.
    WaitExpiry(Name),
    /// `expect …`.
    Expect(Expectation),
    /// `note "text"`: a line in the log.
    Note(String),
}

/// What a client does. Where a token is left out, the client sends the one that it
/// believes it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// `acquire orders ttl=2s`; with `await` instead of `acquire` it asks again while it
    /// is told `queued`.
    Acquire {
        /// Which.
        lease: Name,
        /// For how long.
        ttl_ms: TtlMs,
        /// Names the request.
        request: Option<Label>,
        /// Ready to queue.
        wait_ms: Option<WaitMs>,
        /// Asks again while queued.
        poll: bool,
    },
    /// `renew orders ttl=2s`
    Renew {
        /// Which.
        lease: Name,
        /// For how long.
        ttl_ms: TtlMs,
        /// Which grant.
        token: Option<Value>,
    },
    /// `release orders`
    Release {
        /// Which.
        lease: Name,
        /// Which grant.
        token: Option<Value>,
    },
    /// `force-release orders token=1 reason="…"`
    ForceRelease {
        /// Which.
        lease: Name,
        /// Which grant.
        token: Value,
        /// Why.
        reason: String,
    },
    /// `check orders`: looks at its own clock only, and asks nobody.
    Check {
        /// Which.
        lease: Name,
    },
    /// `claim ledger`
    Claim {
        /// Which.
        resource: Name,
        /// Under which lease.
        under: Under,
    },
    /// `read ledger balance`
    Read {
        /// Which.
        resource: Name,
        /// Where.
        key: Label,
        /// Under which lease; nothing when the client shows no token (`token=none`).
        under: Option<Under>,
    },
    /// `write ledger balance=A.balance+20`
    Write {
        /// Which.
        resource: Name,
        /// Where.
        key: Label,
        /// What.
        value: Value,
        /// Under which lease.
        under: Under,
        /// Names the write.
        id: Option<Label>,
        /// Its position among this grant's writes.
        seq: Option<u64>,
    },
    /// `apply stock apples+=3` or `apply stock apples=3`
    Apply {
        /// Which.
        shard: Name,
        /// Where.
        key: Label,
        /// Sets the key, or adds to it.
        add: bool,
        /// What.
        value: Value,
        /// Names the operation.
        id: Option<Label>,
        /// The epoch of the client's map.
        map_epoch: Option<u64>,
    },
    /// `seal stock epoch=2`
    Seal {
        /// Which.
        shard: Name,
        /// The epoch of the map that no longer names it.
        map_epoch: u64,
    },
    /// `open stock-2 epoch=2 copy`: `copy` brings what the client was given at its seal.
    Open {
        /// Which.
        shard: Name,
        /// The epoch of the map.
        map_epoch: u64,
        /// With the state of the last seal.
        copy: bool,
    },
}

/// The lease and the token that a client shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Under {
    /// The lease; nothing when the script has only one.
    pub lease: Option<Name>,
    /// The token; nothing for the one that the client believes it holds.
    pub token: Option<Value>,
}

/// What happens to the next message of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageFault {
    /// `drop request from A`: it never arrives.
    DropRequest,
    /// `drop reply to A`: it arrives, the answer does not come back.
    DropReply,
    /// `delay request from A 800ms`
    DelayRequest(u64),
    /// `delay reply to A 800ms`
    DelayReply(u64),
    /// `duplicate request from A`: it arrives twice.
    DuplicateRequest,
}

/// What is done to an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectAct {
    /// `rules ledger published guard=none`
    Rules(RulesUpdate),
    /// `crash orders at after_persist` and, if it is to stay so, `stay down`
    Crash {
        /// Where.
        at: CrashPoint,
        /// Until it is told to restart.
        stay_down: bool,
    },
    /// `restart orders`
    Restart,
    /// `clock orders +1h`
    Clock(i64),
    /// `unreachable orders acquire from=A times=2`
    Unreachable {
        /// Which operation; nothing for every one.
        operation: Option<String>,
        /// Whose; nothing for everybody's.
        from: Option<Label>,
        /// How often; nothing for ever.
        times: Option<u32>,
    },
    /// `slow ledger write 600ms times=1`: the second half of the step takes this long.
    Slow {
        /// Which operation.
        operation: String,
        /// How long, in ms.
        delay_ms: u64,
        /// How often; nothing for ever.
        times: Option<u32>,
    },
    /// `heal orders`: no faults any more.
    Heal,
    /// `alarm orders suppress`
    Alarm(AlarmAction),
}

/// What must be true now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// `expect broken no_older_effect`
    Broken(Invariant),
    /// `expect holds no_older_effect`
    Holds(Invariant),
    /// `expect all invariants hold`
    AllHold,
    /// `expect ledger.balance=110`: in the object's durable record.
    Field {
        /// Which object.
        object: NodeId,
        /// `token`, `holder`, `mark`, `number`, or a key.
        field: String,
        /// What.
        value: FieldExpected,
    },
}

/// Why a text is not a script; `problem` says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    /// Where, from 1.
    pub line: usize,
    /// The line.
    pub text: String,
    /// What is wrong, and what to write instead.
    pub problem: String,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: `{}`: {}", self.line, self.text, self.problem)
    }
}

impl std::error::Error for ScriptError {}
