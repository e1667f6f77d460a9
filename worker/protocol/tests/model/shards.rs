//! Two shards, two clients and a mover, as a state space: the keys move from the old shard
//! to the new one while clients with the old map and clients with the new one write.
//!
//! The mover seals the old shard, and opens the new one with what the seal answered. A
//! client learns of the new map at any time, before the seal or long after, or when the
//! old shard tells it. It asks about an operation where it sent it, until it is refused
//! there, unless it moves blindly.

use std::fmt;

use protocol::ids::{Count, Label, Value};
use protocol::machine::Machine;
use protocol::shard::{
    Apply, Op, Open, Seal, ShardCoordinator, ShardInput, ShardRecord, ShardReply, ShardRules,
};
use protocol::trace::TraceKind;
use stateright::{Model, Property};

use super::claims::claims;
use super::step;

claims! {
    Move, Shards;
    /// A number has one operation and an operation one number.
    OneOperationPerNumber: always "one operation per number",
    /// Effects land in the order of their numbers.
    EffectsInNumberOrder: always "effects in number order",
    /// No number is given out whose operation never happens.
    NoLostNumber: always "no lost number",
    /// An operation id has one effect, wherever it is sent.
    OneEffectPerOpId: always "one effect per operation",
    /// Whoever asks again where it sent an operation is told that it was applied.
    OutcomeLearnt: always "the outcome is learnt",
    /// No key is written at two shards at the same time.
    OneShardPerKey: always "one shard per key",
    /// Nothing is written at a shard that has said that it is sealed.
    NoEffectAfterSeal: always "no effect after the seal",
    /// The new shard goes on from all that the old one has done.
    NothingLost: always "nothing is lost in the move",
    /// Every operation of both clients is done, some at each shard.
    DoneAtBoth: sometimes "all done, some at each shard",
    /// An operation is answered with its first number.
    Duplicate: sometimes "a duplicate is told",
    /// An operation is refused by a shard that is sealed.
    SealedTold: sometimes "a sealed shard is met",
    /// An operation comes to the new shard before the keys do.
    TooEarly: sometimes "a client comes too early",
}

/// One of the two shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    Old,
    New,
}

/// What is explored: a plan under some rules, and which claims are looked at.
#[derive(Clone, Debug)]
pub struct Move {
    pub rules: ShardRules,
    /// Operations of each client; each adds 1 to the same key.
    pub n_ops: u8,
    /// Requests sent once more, by whomever.
    pub n_resends: u8,
    pub n_crashes: u8,
    /// A client that learns of the new map sends what is unanswered there, without asking
    /// the old shard first.
    pub moves_blindly: bool,
    pub claims: Vec<Claim>,
}

/// A request on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Message {
    Apply {
        client: u8,
        n: u8,
        at: Place,
    },
    Seal,
    /// With the value that the seal answered.
    Open(Option<i64>),
}

/// A number whose effect is not stored yet, at a shard that may crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Storing {
    number: u64,
    client: u8,
    n: u8,
    at: Place,
}

/// One client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Client {
    has_new_map: bool,
    n_done: u8,
    /// Where it sent the operation whose answer it waits for.
    waits_at: Option<Place>,
}

/// What the mover has got done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mover {
    Idle,
    Sealing,
    Sealed(Option<i64>),
    Opening(Option<i64>),
    Done,
}

/// The state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shards {
    records: [ShardRecord; 2],
    storing: Vec<Storing>,
    clients: [Client; 2],
    mover: Mover,
    network: Vec<Message>,
    n_resends: u8,
    n_crashes: u8,
    // What the claims are about: every effect, in order.
    effects: Vec<Storing>,
    told: u32,
}

/// One step of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Send(u8),
    Learn(u8),
    Seal,
    Open,
    Resend(Message),
    Arrive(Message, bool),
    Land(Storing, bool),
    Crash(Place),
}

fn who(client: u8) -> &'static str {
    if client == 0 { "A" } else { "B" }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::Old { "old" } else { "new" })
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Apply { client, n, at } => write!(f, "{} op {} at {at}", who(*client), n + 1),
            Self::Seal => f.write_str("seal"),
            Self::Open(value) => write!(f, "open with {}", value.unwrap_or(0)),
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lost = |is_heard: bool| if is_heard { "" } else { ", unheard" };
        match self {
            Self::Send(client) => write!(f, "{} sends", who(*client)),
            Self::Learn(client) => write!(f, "{} learns the new map", who(*client)),
            Self::Seal => f.write_str("the mover seals"),
            Self::Open => f.write_str("the mover opens"),
            Self::Resend(message) => write!(f, "again: {message}"),
            Self::Arrive(message, is_heard) => {
                write!(f, "arrives: {message}{}", lost(*is_heard))
            }
            Self::Land(Storing { number, client, n, at }, is_heard) => {
                let who = who(*client);
                write!(f, "lands: {who} op {} at {at} as {number}{}", n + 1, lost(*is_heard))
            }
            Self::Crash(at) => write!(f, "the {at} shard crashes"),
        }
    }
}

impl Model for Move {
    type State = Shards;
    type Action = Action;

    fn init_states(&self) -> Vec<Shards> {
        let client = Client { has_new_map: false, n_done: 0, waits_at: None };
        vec![Shards {
            records: [ShardRecord::default(), ShardRecord::default()],
            storing: Vec::new(),
            clients: [client.clone(), client],
            mover: Mover::Idle,
            network: Vec::new(),
            n_resends: 0,
            n_crashes: 0,
            effects: Vec::new(),
            told: 0,
        }]
    }

    fn actions(&self, state: &Shards, actions: &mut Vec<Action>) {
        for (id, client) in (0..).zip(&state.clients) {
            if client.waits_at.is_none() && client.n_done < self.n_ops {
                actions.push(Action::Send(id));
            }
            if !client.has_new_map {
                actions.push(Action::Learn(id));
            }
        }
        match state.mover {
            Mover::Idle => actions.push(Action::Seal),
            Mover::Sealed(_) => actions.push(Action::Open),
            _ => {}
        }
        let may_resend = state.n_resends < self.n_resends;
        if may_resend {
            actions.extend(state.unanswered().into_iter().map(Action::Resend));
        }
        let mut last = None;
        for message in &state.network {
            if last.replace(*message) == Some(*message) {
                continue;
            }
            let is_awaited = state.unanswered().contains(message);
            let heard = [true, false].into_iter().filter(|heard| match heard {
                true => is_awaited,
                false => !is_awaited || may_resend,
            });
            actions.extend(heard.map(|is_heard| Action::Arrive(*message, is_heard)));
        }
        for storing in &state.storing {
            actions.push(Action::Land(*storing, true));
            if may_resend {
                actions.push(Action::Land(*storing, false));
            }
        }
        for at in [Place::Old, Place::New] {
            let loses = state.storing.iter().any(|storing| storing.at == at);
            if loses && state.n_crashes < self.n_crashes {
                actions.push(Action::Crash(at));
            }
        }
    }

    fn next_state(&self, last: &Shards, action: Action) -> Option<Shards> {
        let mut state = last.clone();
        state.told = 0;
        match action {
            Action::Send(id) => {
                let client = &mut state.clients[usize::from(id)];
                let at = if client.has_new_map { Place::New } else { Place::Old };
                client.waits_at = Some(at);
                let n = client.n_done;
                state.post(Message::Apply { client: id, n, at });
            }
            Action::Learn(id) => {
                let client = &mut state.clients[usize::from(id)];
                client.has_new_map = true;
                if self.moves_blindly {
                    client.waits_at = None;
                }
            }
            Action::Seal => {
                state.mover = Mover::Sealing;
                state.post(Message::Seal);
            }
            Action::Open => {
                let Mover::Sealed(value) = state.mover else { return None };
                state.mover = Mover::Opening(value);
                state.post(Message::Open(value));
            }
            Action::Resend(message) => {
                state.n_resends += 1;
                state.post(message);
            }
            Action::Arrive(message, is_heard) => {
                let index = state.network.iter().position(|one| *one == message)?;
                state.network.remove(index);
                state.arrive(message, is_heard, self);
            }
            Action::Land(storing, is_heard) => {
                let index = state.storing.iter().position(|one| *one == storing)?;
                state.storing.remove(index);
                let Storing { number, client, n, at } = storing;
                let input = ShardInput::StoreOperation { number, apply: apply(client, n, at) };
                state.step(Message::Apply { client, n, at }, input, is_heard, self);
            }
            Action::Crash(at) => {
                state.n_crashes += 1;
                state.storing.retain(|storing| storing.at != at);
                state.tell_if(true, Claim::NoLostNumber);
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        self.claims.iter().map(|claim| claim.property()).collect()
    }
}

fn key() -> Label {
    "k".try_into().expect("a valid key")
}

fn epoch(at: Place) -> Count {
    Count::try_from(at as u64).expect("a valid epoch")
}

fn apply(client: u8, n: u8, at: Place) -> Apply {
    let op_id = format!("{}.{n}", who(client));
    Apply {
        op: Op::Add { key: key(), amount: Value::try_from(1).expect("a valid amount") },
        op_id: Some(op_id.as_str().try_into().expect("a valid id")),
        map_epoch: Some(epoch(at)),
    }
}

impl Shards {
    /// Whether the last step broke or showed this.
    pub fn told(&self, claim: Claim) -> bool {
        self.told & (1 << claim as u32) != 0
    }

    fn tell_if(&mut self, is_so: bool, claim: Claim) {
        self.told |= u32::from(is_so) << claim as u32;
    }

    fn post(&mut self, message: Message) {
        let index = self.network.partition_point(|one| *one < message);
        self.network.insert(index, message);
    }

    fn unanswered(&self) -> Vec<Message> {
        let waits = |(id, client): (u8, &Client)| {
            let n = client.n_done;
            client.waits_at.map(|at| Message::Apply { client: id, n, at })
        };
        let mover = match self.mover {
            Mover::Sealing => Some(Message::Seal),
            Mover::Opening(value) => Some(Message::Open(value)),
            _ => None,
        };
        (0..).zip(&self.clients).filter_map(waits).chain(mover).collect()
    }

    fn arrive(&mut self, message: Message, is_heard: bool, plan: &Move) {
        let input = match message {
            Message::Apply { client, n, at } => ShardInput::Apply(apply(client, n, at)),
            Message::Seal => ShardInput::Seal(Seal { map_epoch: epoch(Place::New) }),
            Message::Open(value) => ShardInput::Open(Open {
                map_epoch: epoch(Place::New),
                state: value
                    .map(|value| (key(), Value::try_from(value).expect("a valid value")))
                    .into_iter()
                    .collect(),
            }),
        };
        self.step(message, input, is_heard, plan);
    }

    fn step(&mut self, message: Message, input: ShardInput, is_heard: bool, plan: &Move) {
        let at = match message {
            Message::Apply { at, .. } => at,
            Message::Seal => Place::Old,
            Message::Open(_) => Place::New,
        };
        let stepped = step::<ShardCoordinator>(&self.records[at as usize], plan.rules, 0, input);
        self.records[at as usize] = stepped.record;
        for event in &stepped.events {
            self.observe(message, event);
        }
        if let (Some(ShardInput::StoreOperation { number, .. }), Message::Apply { client, n, .. }) =
            (stepped.deferred, message)
        {
            self.storing.push(Storing { number, client, n, at });
            self.storing.sort();
        }
        let is_awaited = self.unanswered().contains(&message);
        if let (Some(reply), true) = (stepped.reply, is_heard && is_awaited) {
            self.hear(message, &reply);
        }
        let is_done = self.clients.iter().all(|client| client.n_done == plan.n_ops);
        let is_at_both = self.effects.iter().any(|effect| effect.at == Place::Old)
            && self.effects.iter().any(|effect| effect.at == Place::New);
        self.tell_if(is_done && is_at_both, Claim::DoneAtBoth);
    }

    fn observe(&mut self, message: Message, event: &TraceKind) {
        let Message::Apply { client, n, at } = message else { return };
        match event {
            TraceKind::OperationApplied { number, .. } => {
                self.observe_effect(Storing { number: *number, client, n, at });
            }
            TraceKind::OperationRepeated { .. } => self.tell_if(true, Claim::Duplicate),
            TraceKind::OperationRefused { outcome, .. } => {
                self.tell_if(outcome == "sealed", Claim::SealedTold);
                self.tell_if(outcome == "wrong_epoch" && at == Place::New, Claim::TooEarly);
            }
            _ => {}
        }
    }

    fn observe_effect(&mut self, effect: Storing) {
        let is_same_op = |one: &&Storing| (one.client, one.n) == (effect.client, effect.n);
        let here = || self.effects.iter().filter(|one| one.at == effect.at);
        let is_second_number = here().filter(is_same_op).any(|one| one.number != effect.number);
        let is_taken = here().any(|one| one.number == effect.number && !is_same_op(&one));
        let is_earlier = here().any(|one| one.number > effect.number);
        let is_second = self.effects.iter().any(|one| is_same_op(&one));
        let [old, new] = &self.records;
        let is_after_seal = effect.at == Place::Old && old.sealed;
        let is_elsewhere = here().count() < self.effects.len();
        let is_served_elsewhere = is_elsewhere && (effect.at == Place::Old || !old.sealed);
        let value = new.state.get("k").copied().unwrap_or(0);
        let is_lost = effect.at == Place::New && value != self.effects.len() as i64 + 1;
        self.tell_if(is_second_number || is_taken, Claim::OneOperationPerNumber);
        self.tell_if(is_earlier, Claim::EffectsInNumberOrder);
        self.tell_if(is_second, Claim::OneEffectPerOpId);
        self.tell_if(is_after_seal, Claim::NoEffectAfterSeal);
        self.tell_if(is_served_elsewhere, Claim::OneShardPerKey);
        self.tell_if(is_lost, Claim::NothingLost);
        self.effects.push(effect);
    }

    fn hear(&mut self, message: Message, reply: &ShardReply) {
        match (message, reply) {
            (Message::Seal, ShardReply::Sealed { state, .. }) => {
                self.mover = Mover::Sealed(state.get("k").copied());
            }
            (Message::Open(_), ShardReply::Opened { .. }) => self.mover = Mover::Done,
            (Message::Apply { client, n, at }, _) => {
                let is_done =
                    matches!(reply, ShardReply::Applied { .. } | ShardReply::Duplicate { .. });
                let is_here = |one: &Storing| (one.client, one.n, one.at) == (client, n, at);
                let is_applied = self.effects.iter().any(is_here);
                self.tell_if(is_applied && !is_done, Claim::OutcomeLearnt);
                let client = &mut self.clients[usize::from(client)];
                client.waits_at = None;
                client.n_done += u8::from(is_done);
                client.has_new_map |= matches!(reply, ShardReply::Sealed { .. });
            }
            _ => {}
        }
    }
}
