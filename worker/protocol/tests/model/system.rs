//! A lease authority, a fenced resource, two clients and the network between them, as a
//! state space: the real machines, driven by their durable records.
//!
//! Actions: a client sends what it would send next, renews, or sends something again; a
//! request arrives, and its answer is heard or lost; time passes, the authority's clock
//! steps back; the alarm rings, as late as it likes; the second half of a write lands;
//! the resource crashes. Requests arrive in any order, at any time, or never.

use std::fmt;

use protocol::fence::{
    Claim as ClaimRequest, FenceInput, FenceRecord, FenceReply, FenceRules, FencedResource, Read,
    Write,
};
use protocol::ids::{Count, FencingToken, Label, Name, TimestampMs, TtlMs, Value, WaitMs};
use protocol::lease::{
    Acquire, LeaseAuthority, LeaseInput, LeaseRecord, LeaseReply, LeaseRules, Release, Renew,
};
use protocol::machine::Machine;
use protocol::trace::{GrantedBy, TraceKind};
use stateright::{Model, Property};

use super::claims::Claim;
use super::client::{Ask, Client, Doing, Message, Plan};
use super::{Stepped, step};

/// When the model begins.
pub const START_MS: u64 = 1_000;
/// How far one action moves the time; a lease lasts as long.
pub const TICK_MS: u64 = 100;

/// What is explored: a plan under some rules, and which claims are looked at.
#[derive(Clone, Debug)]
pub struct Lab {
    pub plan: Plan,
    pub lease: LeaseRules,
    pub fence: FenceRules,
    pub claims: Vec<Claim>,
}

/// One grant of the history.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Grant {
    pub client: u8,
    /// The round whose request led to it; none for a renewal that made a new grant.
    pub round: Option<u8>,
    pub token: u64,
    pub ends_at_ms: u64,
    pub is_released: bool,
    /// How many of its writes have landed.
    pub n_applied: u8,
}

/// One who asked, was not granted the lease and waits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Waiting {
    pub client: u8,
    pub round: u8,
    pub until_ms: u64,
    pub not_after_ms: Option<u64>,
}

/// The state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct System {
    // Durable at the objects.
    pub lease: LeaseRecord,
    pub fence: FenceRecord,
    // Volatile at the resource: writes admitted whose payload is not stored.
    pub storing: Vec<Message>,
    pub clients: [Client; 2],
    pub network: Vec<Message>,
    pub now_ms: u64,
    // What is used up of the plan.
    pub n_ticks: u8,
    pub n_steps_back: u8,
    pub n_resends: u8,
    pub n_crashes: u8,
    // What the claims are about.
    pub grants: Vec<Grant>,
    pub waiting: Vec<Waiting>,
    pub newest_begun: Option<u8>,
    pub applied: u16,
    pub last_writer: [Option<u8>; 2],
    told: u32,
}

/// One step of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Send(u8, Doing),
    Renew(u8),
    Resend(Message),
    Arrive { message: Message, is_heard: bool },
    Land { message: Message, is_heard: bool },
    Tick,
    StepBack,
    Alarm,
    Crash,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = |client: u8| if client == 0 { "A" } else { "B" };
        let lost = |is_heard: bool| if is_heard { "" } else { ", unheard" };
        match self {
            Self::Send(client, Doing::Idle) => write!(f, "{} asks", who(*client)),
            Self::Send(client, Doing::Written) => write!(f, "{} releases", who(*client)),
            Self::Send(client, _) => write!(f, "{} goes on", who(*client)),
            Self::Renew(client) => write!(f, "{} renews", who(*client)),
            Self::Resend(message) => write!(f, "again: {message}"),
            Self::Arrive { message, is_heard } => {
                write!(f, "arrives: {message}{}", lost(*is_heard))
            }
            Self::Land { message, is_heard } => write!(f, "lands: {message}{}", lost(*is_heard)),
            Self::Tick => f.write_str("time passes"),
            Self::StepBack => f.write_str("the clock steps back"),
            Self::Alarm => f.write_str("the alarm rings"),
            Self::Crash => f.write_str("the resource crashes"),
        }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = if self.client == 0 { "A" } else { "B" };
        match self.ask {
            Ask::Acquire { .. } => write!(f, "{who} acquire"),
            Ask::Renew { token } => write!(f, "{who} renew({token})"),
            Ask::Claim { token } => write!(f, "{who} claim({token})"),
            Ask::Read { token } => write!(f, "{who} read({token})"),
            Ask::Write { n, token, .. } => write!(f, "{who} write {}({token})", n + 1),
            Ask::Release { token } => write!(f, "{who} release({token})"),
        }
    }
}

fn label(text: &str) -> Label {
    text.try_into().expect("a valid label")
}

fn fencing_token(token: u64) -> FencingToken {
    token.try_into().expect("a valid token")
}

fn nonce(client: u8) -> Label {
    label(if client == 0 { "a" } else { "b" })
}

fn key(index: u8) -> Label {
    label(if index == 0 { "k1" } else { "k2" })
}

fn lease_name() -> Name {
    "orders".try_into().expect("a valid name")
}

impl Model for Lab {
    type State = System;
    type Action = Action;

    fn init_states(&self) -> Vec<System> {
        vec![System {
            lease: LeaseRecord::default(),
            fence: FenceRecord::default(),
            storing: Vec::new(),
            clients: [Client::new(0), Client::new(1)],
            network: Vec::new(),
            now_ms: START_MS,
            n_ticks: 0,
            n_steps_back: 0,
            n_resends: 0,
            n_crashes: 0,
            grants: Vec::new(),
            waiting: Vec::new(),
            newest_begun: None,
            applied: 0,
            last_writer: [None; 2],
            told: 0,
        }]
    }

    fn actions(&self, state: &System, actions: &mut Vec<Action>) {
        for client in &state.clients {
            self.client_actions(state, client, actions);
        }
        let mut last = None;
        for message in &state.network {
            if last.replace(*message) == Some(*message) {
                continue;
            }
            let message = *message;
            self.heard_or_not(state, &message, actions, |is_heard| Action::Arrive {
                message,
                is_heard,
            });
        }
        for message in state.storing.iter().copied() {
            self.heard_or_not(state, &message, actions, |is_heard| Action::Land {
                message,
                is_heard,
            });
        }
        if state.n_ticks < self.plan.n_ticks {
            actions.push(Action::Tick);
        }
        if state.n_steps_back < self.plan.n_steps_back {
            actions.push(Action::StepBack);
        }
        let authority = LeaseAuthority::restore(Some(state.lease.clone()), self.lease);
        if authority.next_deadline().is_some_and(|deadline_ms| deadline_ms <= state.now_ms) {
            actions.push(Action::Alarm);
        }
        if !state.storing.is_empty() && state.n_crashes < self.plan.n_crashes {
            actions.push(Action::Crash);
        }
    }

    fn next_state(&self, last: &System, action: Action) -> Option<System> {
        let mut state = last.clone();
        state.told = 0;
        match action {
            Action::Send(id, _) => state.send(id, self),
            Action::Renew(id) => {
                let client = &mut state.clients[usize::from(id)];
                let message = client.renewal(&self.plan)?;
                client.n_renewals += 1;
                client.doing = Doing::Renewing;
                state.post(message);
            }
            Action::Resend(message) => {
                let client = &mut state.clients[usize::from(message.client)];
                if !std::mem::take(&mut client.may_ask_again) {
                    state.n_resends += 1;
                }
                state.post(message);
            }
            Action::Arrive { message, is_heard } => {
                let index = state.network.iter().position(|one| *one == message)?;
                state.network.remove(index);
                state.arrive(message, is_heard, self);
            }
            Action::Land { message, is_heard } => {
                let index = state.storing.iter().position(|one| *one == message)?;
                state.storing.remove(index);
                let input = FenceInput::StorePayload(self.write(&message)?);
                state.step_fence(message, input, is_heard, self);
            }
            Action::Tick => {
                state.now_ms += TICK_MS;
                state.n_ticks += 1;
            }
            Action::StepBack => {
                state.now_ms -= TICK_MS;
                state.n_steps_back += 1;
            }
            Action::Alarm => {
                let stepped = state.step_lease(None, LeaseInput::Tick, self);
                let is_due = stepped.next_deadline.is_some_and(|at_ms| at_ms <= state.now_ms);
                state.tell_if(is_due, Claim::AlarmRests);
            }
            Action::Crash => {
                state.n_crashes += 1;
                state.storing.clear();
                state.tell_if(true, Claim::AllOrNothing);
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        self.claims.iter().map(|claim| claim.property()).collect()
    }
}

impl Lab {
    fn client_actions(&self, state: &System, client: &Client, actions: &mut Vec<Action>) {
        if client.next(&self.plan, state.now_ms).is_some() {
            actions.push(Action::Send(client.id, client.doing));
        }
        if client.renewal(&self.plan).is_some() {
            actions.push(Action::Renew(client.id));
        }
        let may_lose_patience = state.n_resends < self.plan.n_resends;
        for message in client.unanswered(&self.plan, state.now_ms) {
            let is_on_its_way = state.network.contains(&message);
            if may_lose_patience || client.may_ask_again && !is_on_its_way {
                actions.push(Action::Resend(message));
            }
        }
    }

    /// An answer that nobody waits for is heard or lost alike. One that is lost matters
    /// only if the request can be sent again: a client that never acts on an answer is in
    /// the model anyway.
    fn heard_or_not(
        &self,
        state: &System,
        message: &Message,
        actions: &mut Vec<Action>,
        action: impl Fn(bool) -> Action,
    ) {
        let is_awaited = state.clients[usize::from(message.client)].awaits(message);
        if is_awaited {
            actions.push(action(true));
        }
        if !is_awaited || state.n_resends < self.plan.n_resends {
            actions.push(action(false));
        }
    }

    fn acquire(&self, message: &Message, not_after_ms: Option<u64>) -> Acquire {
        let Message { client, round, .. } = *message;
        let wait_ms = self.plan.wait_ticks.map(|ticks| ticks * TICK_MS);
        Acquire {
            holder: label(self.plan.names[usize::from(client)]),
            nonce: Some(nonce(client)),
            ttl_ms: TtlMs::try_from(TICK_MS).expect("a valid ttl"),
            request_id: Some(label(&format!("{}.{round}", nonce(client)))),
            wait_ms: wait_ms.map(|ms| WaitMs::try_from(ms).expect("a valid wait")),
            not_after_ms: not_after_ms.map(|ms| TimestampMs::try_from(ms).expect("a valid time")),
        }
    }

    fn write(&self, message: &Message) -> Option<Write> {
        let Ask::Write { n, token, .. } = message.ask else { return None };
        let Message { client, round, .. } = *message;
        let value = i64::from(1 << bit(message, n));
        Some(Write {
            lease: lease_name(),
            token: fencing_token(token),
            key: key(self.plan.keys[usize::from(client)][usize::from(n)]),
            value: Value::try_from(value).expect("a valid value"),
            write_id: Some(label(&format!("{}.{round}.{n}", nonce(client)))),
            seq: self
                .plan
                .numbers_writes
                .then(|| Count::try_from(u64::from(n) + 1).expect("a valid seq")),
        })
    }
}

/// The bit of a write in [`System::applied`].
fn bit(message: &Message, n: u8) -> u8 {
    (message.client * 4 + message.round) * 2 + n
}

impl System {
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

    fn send(&mut self, id: u8, lab: &Lab) {
        let client = &mut self.clients[usize::from(id)];
        let Some((messages, doing)) = client.next(&lab.plan, self.now_ms) else { return };
        client.may_ask_again = false;
        if doing == Doing::Gone {
            client.end_round(&lab.plan);
        } else {
            client.doing = doing;
        }
        messages.into_iter().for_each(|message| self.post(message));
    }

    fn arrive(&mut self, message: Message, is_heard: bool, lab: &Lab) {
        let lease = |input| (Some(input), None);
        let fence = |input| (None, Some(input));
        let holder = || label(lab.plan.names[usize::from(message.client)]);
        let (lease, fence) = match message.ask {
            Ask::Acquire { not_after_ms } => {
                lease(LeaseInput::Acquire(lab.acquire(&message, not_after_ms)))
            }
            Ask::Renew { token } => lease(LeaseInput::Renew(Renew {
                holder: holder(),
                nonce: Some(nonce(message.client)),
                token: fencing_token(token),
                ttl_ms: TtlMs::try_from(TICK_MS).expect("a valid ttl"),
                request_id: None,
            })),
            Ask::Release { token } => {
                lease(LeaseInput::Release(Release { token: fencing_token(token) }))
            }
            Ask::Claim { token } => fence(FenceInput::Claim(ClaimRequest {
                lease: lease_name(),
                token: fencing_token(token),
            })),
            Ask::Read { token } => fence(FenceInput::Read(Read {
                lease: Some(lease_name()),
                token: Some(fencing_token(token)),
                key: key(lab.plan.keys[usize::from(message.client)][0]),
            })),
            Ask::Write { .. } => (None, lab.write(&message).map(FenceInput::Write)),
        };
        if let Some(input) = lease {
            let stepped = self.step_lease(Some(message), input, lab);
            self.answer_lease(message, stepped.reply, is_heard, lab);
        }
        if let Some(input) = fence {
            self.step_fence(message, input, is_heard, lab);
        }
    }

    // ---- the authority -------------------------------------------------------------

    fn step_lease(
        &mut self,
        message: Option<Message>,
        input: LeaseInput,
        lab: &Lab,
    ) -> Stepped<LeaseAuthority> {
        let stepped = step::<LeaseAuthority>(&self.lease, lab.lease, self.now_ms, input);
        let before = std::mem::replace(&mut self.lease, stepped.record.clone());
        for event in &stepped.events {
            self.observe_lease(message, event, &before, lab);
        }
        stepped
    }

    fn observe_lease(
        &mut self,
        message: Option<Message>,
        event: &TraceKind,
        before: &LeaseRecord,
        lab: &Lab,
    ) {
        let newest = |grants: &mut Vec<Grant>, token: &FencingToken| {
            grants.iter().rposition(|grant| grant.token == token.get())
        };
        match event {
            TraceKind::LeaseGranted {
                nonce: holder, token, expires_at_ms, clock_ms, by, ..
            } => {
                let client = u8::from(*holder != Some(nonce(0)));
                let round = match by {
                    GrantedBy::Renewal => None,
                    GrantedBy::Queue => self.round_from_queue(client, before),
                    GrantedBy::Acquire | GrantedBy::ReEntry => message.map(|one| one.round),
                };
                let grant = Grant {
                    client,
                    round,
                    token: token.get(),
                    ends_at_ms: *expires_at_ms,
                    is_released: false,
                    n_applied: 0,
                };
                self.observe_grant(message, grant, *clock_ms, *by == GrantedBy::Queue);
            }
            TraceKind::LeaseRenewed { token, expires_at_ms, .. } => {
                self.tell_if(true, Claim::Renewed);
                if let Some(index) = newest(&mut self.grants, token) {
                    self.grants[index].ends_at_ms = *expires_at_ms;
                }
            }
            TraceKind::LeaseReleased { token, .. } => {
                if let Some(index) = newest(&mut self.grants, token) {
                    self.grants[index].is_released = true;
                }
            }
            TraceKind::WaiterTimedOut { holder } => {
                self.tell_if(true, Claim::WaiterTimesOut);
                let client = u8::from(holder.as_str() != lab.plan.names[0]);
                if let Some(index) = self.waiting.iter().position(|one| one.client == client) {
                    self.waiting.remove(index);
                }
            }
            TraceKind::RenewalRefused { .. } => self.tell_if(true, Claim::RenewalLost),
            TraceKind::RequestRepeated { .. } => self.tell_if(true, Claim::Repeated),
            TraceKind::RequestExpired { .. } => self.tell_if(true, Claim::Late),
            _ => {}
        }
    }

    /// The round of the waiter that has just left the queue with a grant.
    fn round_from_queue(&self, client: u8, before: &LeaseRecord) -> Option<u8> {
        let request_id = before.waiters.iter().find_map(|waiter| {
            let is_its = waiter.holder.nonce == Some(nonce(client));
            let has_left = !self.lease.waiters.iter().any(|one| one.ticket == waiter.ticket);
            (is_its && has_left).then_some(&waiter.request_id)
        })?;
        request_id.as_str().rsplit_once('.')?.1.parse().ok()
    }

    fn observe_grant(
        &mut self,
        message: Option<Message>,
        grant: Grant,
        clock_ms: u64,
        is_from_queue: bool,
    ) {
        let falls = self.grants.iter().any(|older| older.token >= grant.token);
        self.tell_if(falls, Claim::TokensRise);
        let is_held = self.grants.iter().any(|older| {
            older.client != grant.client && !older.is_released && older.ends_at_ms > clock_ms
        });
        self.tell_if(is_held, Claim::OneHolder);
        let is_second = grant.round.is_some()
            && self.grants.iter().any(|one| one.client == grant.client && one.round == grant.round);
        self.tell_if(is_second, Claim::OneGrantPerRequest);
        self.tell_if(is_from_queue, Claim::QueueGrants);

        let is_it = |one: &Waiting| one.client == grant.client && Some(one.round) == grant.round;
        let index = self.waiting.iter().position(is_it);
        let mut not_after_ms = index.and_then(|index| self.waiting[index].not_after_ms);
        if let (false, Some(Message { ask: Ask::Acquire { not_after_ms: limit }, .. })) =
            (is_from_queue, message)
        {
            not_after_ms = limit;
        }
        let is_late = not_after_ms.is_some_and(|limit_ms| limit_ms < clock_ms);
        self.tell_if(is_late, Claim::NoLateGrant);
        let ahead = &self.waiting[..index.unwrap_or(self.waiting.len())];
        let overtakes = ahead.iter().any(|one| !is_it(one) && one.until_ms >= clock_ms);
        self.tell_if(overtakes, Claim::FirstComeFirstServed);
        if let Some(index) = index {
            let waited = self.waiting.remove(index);
            let is_gone = is_from_queue && waited.until_ms < clock_ms;
            self.tell_if(is_gone, Claim::NoGrantToTheGone);
        }
        // Whoever is granted the lease anew gives up what it had.
        let own = self.grants.iter_mut().filter(|older| older.client == grant.client);
        own.for_each(|older| older.is_released = true);
        self.grants.push(grant);
    }

    fn answer_lease(
        &mut self,
        message: Message,
        reply: Option<LeaseReply>,
        is_heard: bool,
        lab: &Lab,
    ) {
        let Some(reply) = reply else { return };
        self.note_waiting(&message, &reply, lab);
        if let LeaseReply::Granted { token, ttl_ms, .. } = &reply {
            let holder = self.lease.holder.as_ref().and_then(|holder| holder.nonce.clone());
            let is_held = self.lease.token == token.get() && holder == Some(nonce(message.client));
            self.tell_if(*ttl_ms > 0 && !is_held, Claim::GrantedMeansHeld);
        }
        let client = &mut self.clients[usize::from(message.client)];
        if !is_heard || !client.awaits(&message) {
            return;
        }
        client.may_ask_again = matches!(reply, LeaseReply::Queued { .. });
        match reply {
            LeaseReply::Granted { token, .. } => {
                let is_it =
                    |grant: &Grant| grant.client == message.client && grant.token == token.get();
                let Some(grant) = self.grants.iter().rposition(is_it) else { return };
                client.hear_granted(grant as u8, token.get());
            }
            LeaseReply::Refused { .. } if matches!(message.ask, Ask::Acquire { .. }) => {
                client.doing = Doing::Idle;
            }
            LeaseReply::Queued { .. } => {}
            _ => client.end_round(&lab.plan),
        }
    }

    /// Keeps book of who waits, whether or not the authority does.
    fn note_waiting(&mut self, message: &Message, reply: &LeaseReply, lab: &Lab) {
        let (Some(wait_ticks), Ask::Acquire { not_after_ms }) = (lab.plan.wait_ticks, message.ask)
        else {
            return;
        };
        let Message { client, round, .. } = *message;
        let index = self.waiting.iter().position(|one| (one.client, one.round) == (client, round));
        let waits = matches!(reply, LeaseReply::Queued { .. } | LeaseReply::Refused { .. });
        if let (true, None) = (waits, index) {
            let until_ms = self.now_ms + wait_ticks * TICK_MS;
            self.waiting.push(Waiting { client, round, until_ms, not_after_ms });
        }
        if let (LeaseReply::Timeout, Some(index)) = (reply, index) {
            self.waiting.remove(index);
        }
    }

    // ---- the resource --------------------------------------------------------------

    fn step_fence(&mut self, message: Message, input: FenceInput, is_heard: bool, lab: &Lab) {
        let stepped = step::<FencedResource>(&self.fence, lab.fence, self.now_ms, input);
        let before = std::mem::replace(&mut self.fence, stepped.record);
        for event in &stepped.events {
            self.observe_fence(message, event, &before);
        }
        if stepped.deferred.is_some() {
            let index = self.storing.partition_point(|one| *one < message);
            self.storing.insert(index, message);
        }
        if let Some(reply) = stepped.reply {
            self.answer_fence(message, &reply, is_heard, lab);
        }
    }

    fn observe_fence(&mut self, message: Message, event: &TraceKind, before: &FenceRecord) {
        let is_older = self.newest_begun > Some(message.grant);
        match event {
            TraceKind::Claimed { .. } | TraceKind::WriteAdmitted { .. } => {}
            TraceKind::ValueRead { .. } => self.tell_if(is_older, Claim::NoOlderRead),
            TraceKind::WriteApplied { .. } => {
                self.tell_if(is_older, Claim::NoOlderEffect);
                self.observe_effect(message, event, before);
            }
            TraceKind::WriteRefused { outcome, .. } => {
                self.tell_if(outcome == "fenced", Claim::Fenced);
                self.tell_if(outcome == "gap", Claim::Gap);
                return;
            }
            TraceKind::WriteRepeated { .. } => return self.tell_if(true, Claim::Duplicate),
            TraceKind::ReadRefused { .. } => return self.tell_if(true, Claim::ReadFenced),
            _ => return,
        }
        self.newest_begun = self.newest_begun.max(Some(message.grant));
    }

    fn observe_effect(&mut self, message: Message, event: &TraceKind, before: &FenceRecord) {
        let (TraceKind::WriteApplied { key: at, token, .. }, Ask::Write { n, based_on, .. }) =
            (event, message.ask)
        else {
            return;
        };
        let index = usize::from(*at == key(1));
        let stored = before.values.get(at.as_str());
        let is_lower = stored.is_some_and(|stored| stored.token > token.get());
        self.tell_if(is_lower, Claim::EffectsInTokenOrder);

        let applied_bit = 1 << bit(&message, n);
        let is_second = self.applied & applied_bit != 0;
        self.tell_if(is_second, Claim::OneEffectPerWriteId);
        self.applied |= applied_bit;

        let is_others = self.last_writer[index].is_some_and(|writer| writer != message.client);
        let is_unseen = n == 0 && stored.map(|stored| stored.version) > based_on;
        self.tell_if(is_others && is_unseen && !is_second, Claim::NoLostUpdate);
        self.last_writer[index] = Some(message.client);

        let grant = &mut self.grants[usize::from(message.grant)];
        let is_next = grant.n_applied == n;
        grant.n_applied += u8::from(!is_second);
        self.tell_if(!is_next && !is_second, Claim::WritesInSequence);
        let others =
            self.grants.iter().any(|one| one.client != message.client && one.n_applied > 0);
        self.tell_if(others, Claim::BothWrite);
    }

    fn answer_fence(&mut self, message: Message, reply: &FenceReply, is_heard: bool, lab: &Lab) {
        let client = &mut self.clients[usize::from(message.client)];
        if !is_heard || !client.awaits(&message) {
            return;
        }
        client.may_ask_again = matches!(reply, FenceReply::Gap { .. });
        match (reply, message.ask) {
            (FenceReply::Claimed { .. }, _) => {
                client.has_claimed = true;
                client.doing = Doing::Holding;
            }
            (FenceReply::Value { version, .. }, _) => {
                client.version_read = Some(*version);
                client.doing = Doing::Holding;
            }
            (FenceReply::Applied { .. } | FenceReply::Duplicate { .. }, Ask::Write { n, .. }) => {
                client.hear_written(n, &lab.plan);
                return;
            }
            (FenceReply::Gap { .. }, _) => {}
            _ => client.end_round(&lab.plan),
        }
        if let Ask::Write { n, .. } = message.ask {
            let is_applied = self.applied & (1 << bit(&message, n)) != 0;
            self.tell_if(is_applied, Claim::OutcomeLearnt);
        }
    }
}
