//! Logs for tests: a few clients that act on the simulator by hand.
//!
//! Not the lessons' client: it keeps no promise beyond naming its messages and counting
//! its events, which is all that the pictures need.

use std::collections::BTreeMap;

use protocol::control::Control;
use protocol::host::Envelope;
use protocol::ids::{FencingToken, Label, NodeId};
use protocol::lease::{Acquire, LeaseReply};
use protocol::object::{Reply, Request};
use protocol::rules::{Preset, RuleValue, RulesUpdate};
use protocol::sim::{Answer, Ticket, World};
use protocol::trace::{TraceEvent, TraceKind};

/// When every rehearsal starts.
pub(crate) const START_MS: u64 = 1_732_999_000_000;

#[derive(Default)]
struct Actor {
    lamport: u64,
    local_seq: u64,
    n_requests: u64,
    paused_ms: Option<u64>,
}

/// A lab in memory with clients.
pub(crate) struct Rehearsal {
    /// The lab.
    pub(crate) world: World,
    actors: BTreeMap<String, Actor>,
}

/// A request that has been sent.
#[derive(Clone)]
pub(crate) struct Sent {
    client: String,
    id: Label,
    to: NodeId,
    request: Request,
}

pub(crate) fn node(text: &str) -> NodeId {
    NodeId::try_from(text.to_owned()).expect("a valid node")
}

pub(crate) fn token(value: u64) -> FencingToken {
    FencingToken::try_from(value).expect("a valid token")
}

pub(crate) fn label(text: &str) -> Label {
    Label::try_from(text).expect("a valid label")
}

/// `acquire` for so many ms.
pub(crate) fn acquire(holder: &str, ttl_ms: u64) -> Request {
    Request::Acquire(Acquire {
        holder: label(holder),
        nonce: None,
        ttl_ms: ttl_ms.try_into().expect("a valid ttl"),
        request_id: None,
        wait_ms: None,
        not_after_ms: None,
    })
}

/// `write` of one key under the lease `orders`.
pub(crate) fn write(key: &str, value: i64, with: u64) -> Request {
    Request::Write(protocol::fence::Write {
        lease: "orders".try_into().expect("a valid name"),
        token: token(with),
        key: label(key),
        value: value.try_into().expect("a safe integer"),
        write_id: None,
        seq: None,
    })
}

/// `read` of one key under the lease `orders`.
pub(crate) fn read(key: &str, with: u64) -> Request {
    Request::Read(protocol::fence::Read {
        lease: Some("orders".try_into().expect("a valid name")),
        token: Some(token(with)),
        key: label(key),
    })
}

/// `claim` for the lease `orders`.
pub(crate) fn claim(with: u64) -> Request {
    Request::Claim(protocol::fence::Claim {
        lease: "orders".try_into().expect("a valid name"),
        token: token(with),
    })
}

/// `add` to a key of a shard.
pub(crate) fn add(key: &str, amount: i64) -> Request {
    Request::Apply(protocol::shard::Apply {
        op: protocol::shard::Op::Add {
            key: label(key),
            amount: amount.try_into().expect("a safe integer"),
        },
        op_id: None,
        map_epoch: None,
    })
}

impl Rehearsal {
    pub(crate) fn new(preset: Preset) -> Self {
        Self { world: World::new(START_MS, preset), actors: BTreeMap::new() }
    }

    /// Sets one rule of an object.
    pub(crate) fn rule(&mut self, object: &str, rule: &str, value: RuleValue) {
        let update = RulesUpdate { preset: None, set: [(rule.to_owned(), value)].into() };
        self.control(object, Control::Rules(update));
    }

    /// One act of a person.
    pub(crate) fn control(&mut self, object: &str, control: Control) {
        self.world.control(&node(object), control).expect("a control that is allowed");
    }

    /// A remark in the log.
    pub(crate) fn step(&mut self, name: &str) {
        let kind = TraceKind::Noted { text: format!("step: {name}") };
        let mut event = self.event("lab", None, kind);
        event.node = NodeId::Lab;
        self.world.report(vec![event]);
    }

    fn event(&mut self, client: &str, request: Option<Label>, kind: TraceKind) -> TraceEvent {
        let at_ms = self.world.now_ms();
        let actor = self.actors.entry(client.to_owned()).or_default();
        actor.lamport += 1;
        actor.local_seq += 1;
        TraceEvent {
            seq: 0,
            at_ms,
            node: node(&format!("client/{client}")),
            lamport: actor.lamport,
            local_seq: actor.local_seq,
            request,
            kind,
            decision: None,
            record: None,
        }
    }

    /// Something that happened at a client.
    pub(crate) fn note(&mut self, client: &str, request: Option<Label>, kind: TraceKind) {
        let event = self.event(client, request, kind);
        self.world.report(vec![event]);
    }

    /// Sends, and no more.
    pub(crate) fn send(&mut self, client: &str, to: &str, request: Request) -> Sent {
        let actor = self.actors.entry(client.to_owned()).or_default();
        actor.n_requests += 1;
        let id = label(&format!("{client}.1732.{}", actor.n_requests));
        let to = node(to);
        let kind = TraceKind::RequestSent {
            to: to.clone(),
            operation: request.operation().to_owned(),
            summary: request.summary(),
        };
        self.note(client, Some(id.clone()), kind);
        Sent { client: client.to_owned(), id, to, request }
    }

    /// The request arrives.
    pub(crate) fn deliver(&mut self, sent: &Sent) -> Ticket {
        let lamport = self.actors.get(&sent.client).map_or(0, |actor| actor.lamport);
        let envelope = Envelope {
            request: Some(sent.id.clone()),
            from: Some(label(&sent.client)),
            lamport,
            events: Vec::new(),
        };
        self.world.submit(&sent.to, &envelope, sent.request.clone())
    }

    /// The reply arrives, if there is one.
    pub(crate) fn hear(&mut self, sent: &Sent, ticket: Ticket) -> Option<Answer> {
        let answer = self.world.answer(ticket)?;
        let from = sent.to.clone();
        let kind = match &answer {
            Answer::Reply { reply, .. } => TraceKind::ReplyReceived {
                from,
                outcome: reply.outcome().to_owned(),
                summary: reply.summary(),
            },
            Answer::Unavailable(why) => {
                TraceKind::ReplyFailed { from, reason: why.as_str().to_owned() }
            }
        };
        self.note(&sent.client, Some(sent.id.clone()), kind);
        if let Answer::Reply {
            reply: Reply::Lease(LeaseReply::Granted { token, ttl_ms, .. }),
            ..
        } = &answer
        {
            let until_ms = self.world.now_ms() + ttl_ms;
            let lease = sent.to.clone();
            let kind = TraceKind::BeliefGained { lease, token: *token, until_ms };
            self.note(&sent.client, Some(sent.id.clone()), kind);
        }
        Some(answer)
    }

    /// There and back, with a few ms on the way.
    pub(crate) fn ask(&mut self, client: &str, to: &str, request: Request) -> Option<Answer> {
        let sent = self.send(client, to, request);
        self.world.advance(18);
        let ticket = self.deliver(&sent);
        self.world.advance(24);
        self.hear(&sent, ticket)
    }

    pub(crate) fn pause(&mut self, client: &str) {
        let now_ms = self.world.now_ms();
        self.note(client, None, TraceKind::ClientPaused);
        self.actors.entry(client.to_owned()).or_default().paused_ms = Some(now_ms);
    }

    pub(crate) fn resume(&mut self, client: &str) {
        let now_ms = self.world.now_ms();
        let since_ms = self.actors.entry(client.to_owned()).or_default().paused_ms.take();
        let paused_ms = now_ms - since_ms.unwrap_or(now_ms);
        self.note(client, None, TraceKind::ClientResumed { paused_ms });
    }
}

/// The paused holder: A sleeps over its lease, B writes, A wakes and writes. The guard
/// decides how it ends.
pub(crate) fn paused_holder(guard: &str) -> Rehearsal {
    let mut lab = Rehearsal::new(Preset::Repaired);
    lab.rule("resource/ledger", "guard", RuleValue::Choice(guard.to_owned()));
    lab.step("acquire");
    lab.ask("A", "lease/orders", acquire("A", 2000));
    lab.ask("A", "resource/ledger", write("balance", 100, 1));
    lab.world.advance(400);
    lab.ask("A", "resource/ledger", read("balance", 1));
    lab.world.advance(300);
    lab.step("pause");
    lab.pause("A");
    lab.world.advance(700);
    lab.ask("B", "lease/orders", acquire("B", 3000));
    lab.world.advance(1200);
    lab.step("B writes");
    lab.ask("B", "lease/orders", acquire("B", 4000));
    lab.world.advance(200);
    if guard == "claimed" {
        lab.ask("B", "resource/ledger", claim(2));
    }
    lab.ask("B", "resource/ledger", read("balance", 2));
    lab.world.advance(250);
    lab.ask("B", "resource/ledger", write("balance", 120, 2));
    lab.world.advance(900);
    lab.step("A wakes");
    lab.resume("A");
    lab.world.advance(150);
    lab.ask("A", "resource/ledger", write("balance", 95, 1));
    lab.world.advance(300);
    lab
}
