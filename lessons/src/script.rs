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

mod act;
mod object_act;
mod parse;
mod print;
mod value;
mod words;
#[cfg(test)]
mod tests;

use core::fmt;

use protocol::ids::{Label, Name, NodeId, ObjectKind};
use protocol::invariant::Invariant;
use protocol::trace::DeliveryMode;

pub use act::{Act, Under};
pub use object_act::ObjectAct;
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
    pub predicts: Vec<Predict>,
    /// What it does.
    pub lines: Vec<Line>,
}

impl Step {
    /// The question to ask before it runs.
    pub fn prediction(&self, variant: &str) -> Option<&Predict> {
        self.predicts.iter().find(|predict| predict.only.includes(variant))
    }
}

/// A question to ask before a step runs: `predict stale`, or `predict told by bob.balance`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Predict {
    /// In which variants.
    pub only: Only,
    /// Names it in the prose.
    pub id: String,
    /// The field of a durable record that holds the answer when the step is over, as in
    /// [`Expectation::Field`]. Nothing: the last reply of the step is the answer.
    pub by: Option<(NodeId, String)>,
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

/// How long [`Command::WaitField`] waits, in ms: an alarm comes after 2 s, a second try after 4.
pub const WAIT_FIELD_MAX_MS: u64 = 10_000;

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
    /// `wait until t1.phase=done_commit`: at most [`WAIT_FIELD_MAX_MS`].
    WaitField {
        /// Which object.
        object: NodeId,
        /// As in [`Expectation::Field`].
        field: String,
        /// What it waits for.
        value: FieldExpected,
    },
    /// `delivery manual`: how messages between objects leave, in the whole lab.
    Delivery(DeliveryMode),
    /// `expect …`.
    Expect(Expectation),
    /// `note "text"`: a line in the log.
    Note(String),
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
        /// `token`, `holder`, `mark`, `number`, `phase`, `balance`, `available`, or a key; of an
        /// account also the name of a transaction, for the state of its hold.
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
