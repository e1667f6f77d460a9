//! A deterministic lab: the same hosts and machines, with time as an argument.
//!
//! The [`World`] does what the Worker does (first contact, writing down, crashing, ringing
//! alarms, sequencing the log) without a runtime. The page uses it when there is no server,
//! and says SIMULATED; the golden tests replay every lesson script in it.
//!
//! Invariant: the same calls give the same log. It has no randomness of its own: whoever
//! wants a random schedule draws it outside and calls in.

use std::collections::{BTreeMap, BTreeSet};

use crate::control::{Control, ControlReply, Delivery};
use crate::fence::FencedResource;
use crate::host::{
    self, Arrival, ControlRefused, Envelope, Host, HostRecord, Outgoing, Turn, Unavailable,
};
use crate::ids::{NodeId, ObjectKind};
use crate::lease::LeaseAuthority;
use crate::machine::Machine;
use crate::object::{Addressed, Reply, Request};
use crate::rules::{Preset, Rules, RulesUpdate};
use crate::shard::ShardCoordinator;
use crate::table::{Rows, TableSchema, Tabled};
use crate::trace::{CrashPoint, DeliveryMode, MessageId, ObjectRecord, TraceEvent, TraceKind};
use crate::transaction::account::Account;
use crate::transaction::coordinator::TxnCoordinator;

/// How long a message between two objects is under way, in ms.
pub const LATENCY_MS: u64 = 5;

/// Names a request that was submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

/// What a client gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The object answered.
    Reply {
        /// The answer.
        reply: Reply,
        /// The object's Lamport clock when it answered.
        lamport: u64,
    },
    /// No answer will come.
    Unavailable(Unavailable),
}

/// A lab in memory.
pub struct World {
    now_ms: u64,
    preset: Preset,
    objects: BTreeMap<NodeId, Box<dyn SimObject>>,
    log: Vec<TraceEvent>,
    seen: BTreeMap<NodeId, u64>,
    lab_lamport: u64,
    answers: BTreeMap<Ticket, Answer>,
    pending: Vec<Pending>,
    transit: Vec<Transit>,
    delivery: DeliveryMode,
    n_tickets: u64,
}

/// A message between two objects that has left and not arrived.
struct Transit {
    at_ms: u64,
    from: NodeId,
    message: Outgoing,
}

/// The second half of a step that is still under way.
struct Pending {
    at_ms: u64,
    ticket: Ticket,
    node: NodeId,
}

impl World {
    /// An empty lab at this time; new objects start with the preset's rules.
    pub fn new(start_ms: u64, preset: Preset) -> Self {
        let mut world = Self {
            now_ms: start_ms,
            preset,
            objects: BTreeMap::new(),
            log: Vec::new(),
            seen: BTreeMap::new(),
            lab_lamport: 0,
            answers: BTreeMap::new(),
            pending: Vec::new(),
            transit: Vec::new(),
            delivery: DeliveryMode::Auto,
            n_tickets: 0,
        };
        world.note(TraceKind::LabCreated);
        world
    }

    /// The time, in ms since 1970.
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// The log so far; `seq` runs from 1 without gaps.
    pub fn log(&self) -> &[TraceEvent] {
        &self.log
    }

    /// Delivers a request to its object, which is created when it is new. `node` must be
    /// an object of the request's kind; for any other the answer is `unreachable`.
    pub fn submit(&mut self, node: &NodeId, envelope: &Envelope, request: Request) -> Ticket {
        let ticket = self.new_ticket();
        if node.object_kind() != Some(request.kind()) {
            self.answers.insert(ticket, Answer::Unavailable(Unavailable::Unreachable));
            return ticket;
        }
        self.add_object(node);
        let now_ms = self.now_ms;
        let Some(object) = self.objects.get_mut(node) else { return ticket };
        let done = object.request(now_ms, envelope, ticket, request);
        // An object that was not reached cannot forward what its client has to tell.
        if !matches!(
            done.answer,
            Some(Answer::Unavailable(Unavailable::Down | Unavailable::Unreachable))
        ) {
            self.report(envelope.events.clone());
        }
        self.carry_out(node, ticket, done);
        ticket
    }

    /// The answer to a request; `None` while the object is still at work on it.
    pub fn answer(&self, ticket: Ticket) -> Option<Answer> {
        self.answers.get(&ticket).cloned()
    }

    /// A person's act on an object, or on the network of the whole lab.
    pub fn control(
        &mut self,
        node: &NodeId,
        control: Control,
    ) -> Result<ControlReply, ControlRefused> {
        if let (NodeId::Lab, Control::Delivery(Delivery { mode })) = (node, &control) {
            self.set_delivery(*mode);
            return Ok(ControlReply::DeliverySet { mode: *mode });
        }
        self.add_object(node);
        let now_ms = self.now_ms;
        let Some(object) = self.objects.get_mut(node) else {
            return Err(ControlRefused(format!("{node} is not an object of the lab")));
        };
        let ticket = Ticket(self.n_tickets + 1);
        let (done, reply) = object.control(now_ms, ticket, control)?;
        self.n_tickets += 1;
        self.carry_out(node, ticket, done);
        Ok(reply)
    }

    /// How messages between objects leave, in this lab's objects and in new ones.
    pub fn set_delivery(&mut self, mode: DeliveryMode) {
        self.delivery = mode;
        for node in self.objects.keys().cloned().collect::<Vec<_>>() {
            // Setting it is never refused.
            let _ = self.control(&node, Control::Delivery(Delivery { mode }));
        }
    }

    /// The messages that wait at an object.
    pub fn outbox(&self, node: &NodeId) -> Vec<Outgoing> {
        self.objects.get(node).map(|object| object.outbox()).unwrap_or_default()
    }

    /// Sequences events of clients, each once however often it is reported.
    pub fn report(&mut self, events: Vec<TraceEvent>) {
        for mut event in events {
            let newest = self.seen.entry(event.node.clone()).or_default();
            if event.node == NodeId::Lab {
                self.note(event.kind);
                continue;
            }
            if event.local_seq <= *newest {
                continue;
            }
            *newest = event.local_seq;
            event.seq = self.log.len() as u64 + 1;
            self.log.push(event);
        }
    }

    /// When something is due: an alarm, the second half of a step, a message.
    pub fn next_event_ms(&self) -> Option<u64> {
        let alarms = self.objects.values().filter_map(|object| object.alarm_at_ms());
        let halves = self.pending.iter().map(|pending| pending.at_ms);
        let arrivals = self.transit.iter().map(|transit| transit.at_ms);
        let leaving = self.objects.values().filter_map(|object| object.leaves_at_ms());
        alarms.chain(halves).chain(arrivals).chain(leaving).min()
    }

    /// Lets time pass and does what falls due, in order.
    pub fn advance(&mut self, ms: u64) {
        self.advance_to(self.now_ms + ms);
    }

    /// Lets time pass until then and does what falls due, in order.
    pub fn advance_to(&mut self, until_ms: u64) {
        while let Some(due_ms) = self.next_event_ms().filter(|due_ms| *due_ms <= until_ms) {
            self.now_ms = self.now_ms.max(due_ms);
            let has_left = self.let_leave();
            if !has_left && !self.arrive() && !self.run_pending() && !self.ring_alarm() {
                break;
            }
        }
        self.now_ms = self.now_ms.max(until_ms);
    }

    /// The object's durable record; `None` for an object that does not exist.
    pub fn record(&self, node: &NodeId) -> Option<ObjectRecord> {
        self.objects.get(node).map(|object| object.record())
    }

    /// The object's tables as they are on disk.
    pub fn tables(&self, node: &NodeId) -> Vec<(&'static TableSchema, Rows)> {
        self.objects.get(node).map(|object| object.tables()).unwrap_or_default()
    }

    fn note(&mut self, kind: TraceKind) {
        self.lab_lamport += 1;
        self.log.push(TraceEvent {
            seq: self.log.len() as u64 + 1,
            at_ms: self.now_ms,
            node: NodeId::Lab,
            lamport: self.lab_lamport,
            local_seq: self.lab_lamport,
            request: None,
            kind,
            decision: None,
            record: None,
        });
    }

    fn add_object(&mut self, node: &NodeId) {
        let NodeId::Object(kind, name) = node else { return };
        if self.objects.contains_key(node) {
            return;
        }
        let object: Box<dyn SimObject> = match kind {
            ObjectKind::Lease => Box::new(Sim::<LeaseAuthority>::new(node.clone(), self.preset)),
            ObjectKind::Resource => Box::new(Sim::<FencedResource>::new(node.clone(), self.preset)),
            ObjectKind::Shard => Box::new(Sim::<ShardCoordinator>::new(node.clone(), self.preset)),
            ObjectKind::Account => Box::new(Sim::<Account>::new(node.clone(), self.preset)),
            ObjectKind::Transaction => {
                Box::new(Sim::<TxnCoordinator>::new(node.clone(), self.preset))
            }
        };
        let mut object = object;
        object.set_delivery(self.delivery);
        self.objects.insert(node.clone(), object);
        self.note(TraceKind::ObjectAdded { object_kind: *kind, name: name.to_string() });
    }

    fn carry_out(&mut self, node: &NodeId, ticket: Ticket, done: Done) {
        self.report(done.events);
        if let Some(answer) = done.answer {
            self.answers.insert(ticket, answer);
        }
        self.answers.extend(done.answers);
        if let Some(delay_ms) = done.deferred_ms {
            let at_ms = self.now_ms + delay_ms;
            self.pending.push(Pending { at_ms, ticket, node: node.clone() });
        }
        if done.crashed {
            let (lost, kept) = std::mem::take(&mut self.pending)
                .into_iter()
                .partition(|pending: &Pending| pending.node == *node);
            self.pending = kept;
            for Pending { ticket, .. } in lost {
                self.answers.insert(ticket, Answer::Unavailable(Unavailable::Crashed));
            }
        }
    }

    fn new_ticket(&mut self) -> Ticket {
        self.n_tickets += 1;
        Ticket(self.n_tickets)
    }

    /// What is ready leaves its outbox. Whether anything did.
    fn let_leave(&mut self) -> bool {
        let (now_ms, n_before) = (self.now_ms, self.transit.len());
        for (node, object) in &mut self.objects {
            let at_ms = now_ms + LATENCY_MS;
            let leaving = object.take_ready(now_ms).into_iter();
            let transit = |message| Transit { at_ms, from: node.clone(), message };
            self.transit.extend(leaving.map(transit));
        }
        self.transit.len() > n_before
    }

    /// The next message that is due arrives. Whether there was one.
    fn arrive(&mut self) -> bool {
        let now_ms = self.now_ms;
        let Some(index) = self.transit.iter().position(|transit| transit.at_ms <= now_ms) else {
            return false;
        };
        let Transit { from, message, .. } = self.transit.remove(index);
        self.add_object(&message.to);
        let ticket = self.new_ticket();
        let Some(object) = self.objects.get_mut(&message.to) else { return true };
        let done = object.receive(now_ms, ticket, message.arrival(&from));
        let failed = match done.answer {
            Some(Answer::Unavailable(why)) => Some(why),
            Some(Answer::Reply { .. }) | None => None,
        };
        self.carry_out(&message.to, ticket, Done { answer: None, ..done });
        let ticket = self.new_ticket();
        let Some(sender) = self.objects.get_mut(&from) else { return true };
        match failed {
            None => sender.delivered(message.id),
            Some(why) => {
                let done = sender.undelivered(now_ms, ticket, message.id, why);
                self.carry_out(&from, ticket, done);
            }
        }
        true
    }

    fn run_pending(&mut self) -> bool {
        let due = |pending: &Pending| pending.at_ms <= self.now_ms;
        let Some(index) = self.pending.iter().position(due) else { return false };
        let Pending { ticket, node, .. } = self.pending.remove(index);
        let now_ms = self.now_ms;
        let Some(object) = self.objects.get_mut(&node) else { return false };
        let done = object.deferred(now_ms, ticket);
        self.carry_out(&node, ticket, done);
        true
    }

    fn ring_alarm(&mut self) -> bool {
        let now_ms = self.now_ms;
        let due = |object: &dyn SimObject| object.alarm_at_ms().is_some_and(|at| at <= now_ms);
        let found = self.objects.iter_mut().find(|(_, object)| due(object.as_ref()));
        let Some((node, object)) = found else { return false };
        let node = node.clone();
        self.n_tickets += 1;
        let ticket = Ticket(self.n_tickets);
        let done = object.alarm(now_ms, ticket);
        // An alarm that leaves itself due would ring for ever.
        let progressed = !due(object.as_ref());
        self.carry_out(&node, ticket, done);
        progressed
    }
}

/// What the world has to do after an object has worked.
#[derive(Default)]
struct Done {
    events: Vec<TraceEvent>,
    answer: Option<Answer>,
    /// To requests that have waited.
    answers: Vec<(Ticket, Answer)>,
    deferred_ms: Option<u64>,
    crashed: bool,
}

/// An object whose machine the world need not know.
trait SimObject {
    fn request(
        &mut self,
        now_ms: u64,
        envelope: &Envelope,
        ticket: Ticket,
        request: Request,
    ) -> Done;
    fn deferred(&mut self, now_ms: u64, ticket: Ticket) -> Done;
    fn alarm(&mut self, now_ms: u64, ticket: Ticket) -> Done;
    fn receive(&mut self, now_ms: u64, ticket: Ticket, arrival: Arrival) -> Done;
    fn delivered(&mut self, id: u64);
    fn undelivered(&mut self, now_ms: u64, ticket: Ticket, id: u64, why: Unavailable) -> Done;
    /// What leaves now; each is given once.
    fn take_ready(&mut self, now_ms: u64) -> Vec<Outgoing>;
    fn leaves_at_ms(&self) -> Option<u64>;
    fn outbox(&self) -> Vec<Outgoing>;
    fn set_delivery(&mut self, mode: DeliveryMode);
    fn control(
        &mut self,
        now_ms: u64,
        ticket: Ticket,
        control: Control,
    ) -> Result<(Done, ControlReply), ControlRefused>;
    fn alarm_at_ms(&self) -> Option<u64>;
    fn record(&self) -> ObjectRecord;
    fn tables(&self) -> Vec<(&'static TableSchema, Rows)>;
}

/// One object: what is on disk, and the host that runs on it.
struct Sim<M: Machine> {
    disk: (HostRecord<M::Rules>, Option<M::Record>),
    host: Host<M>,
    deferred: BTreeMap<Ticket, (Option<MessageId>, M::Input)>,
    waiting: BTreeMap<host::Ticket, Ticket>,
    /// Messages that have left and not arrived, by their numbers.
    leaving: BTreeSet<u64>,
}

impl<M: Machine> Sim<M> {
    fn new(node: NodeId, preset: Preset) -> Self {
        let update = RulesUpdate { preset: Some(preset), ..RulesUpdate::default() };
        let rules = M::Rules::repaired();
        let record = HostRecord::new(rules.updated(&update).unwrap_or(rules), true);
        let host = Host::restore(node, record.clone(), None);
        Self {
            disk: (record, None),
            host,
            deferred: BTreeMap::new(),
            waiting: BTreeMap::new(),
            leaving: BTreeSet::new(),
        }
    }

    /// Writes down, crashes and answers, as the Worker's shell does.
    fn finish(&mut self, ticket: Ticket, request: Option<MessageId>, turn: Turn<M>) -> Done
    where
        M: Addressed,
    {
        self.disk.0 = self.host.record().clone();
        if let (Some(record), false) = (turn.record, turn.crash == Some(CrashPoint::BeforePersist))
        {
            self.disk.1 = Some(record);
        }
        let mut done =
            Done { events: turn.events, crashed: turn.crash.is_some(), ..Done::default() };
        let lamport = self.host.record().lamport;
        done.answer = match (turn.unavailable, turn.reply, turn.crash) {
            (Some(why), _, _) => Some(Answer::Unavailable(why)),
            (None, Some(reply), _) => Some(Answer::Reply { reply: M::reply(reply), lamport }),
            (None, None, Some(_)) => Some(Answer::Unavailable(Unavailable::Crashed)),
            (None, None, None) => None,
        };
        for (waiter, reply) in turn.answers {
            let Some(ticket) = self.waiting.remove(&waiter) else { continue };
            let answer = Answer::Reply { reply: M::reply(reply), lamport };
            done.answers.push((ticket, answer));
        }
        if let Some(waiter) = turn.waits {
            self.waiting.insert(waiter, ticket);
        }
        if let Some((delay_ms, input)) = turn.deferred {
            self.deferred.insert(ticket, (request, input));
            done.deferred_ms = Some(delay_ms);
        }
        if done.crashed {
            let lost = std::mem::take(&mut self.waiting).into_values();
            let crashed = Answer::Unavailable(Unavailable::Crashed);
            done.answers.extend(lost.map(|ticket| (ticket, crashed.clone())));
            self.leaving.clear();
            // Memory is gone: what runs next is restored from disk.
            let (record, machine) = self.disk.clone();
            self.host = Host::restore(self.host.node().clone(), record, machine);
            self.deferred.clear();
        }
        done
    }
}

impl<M: Addressed> SimObject for Sim<M> {
    fn request(
        &mut self,
        now_ms: u64,
        envelope: &Envelope,
        ticket: Ticket,
        request: Request,
    ) -> Done {
        let operation = request.operation();
        let Some(input) = M::input(request) else {
            let answer = Some(Answer::Unavailable(Unavailable::Unreachable));
            return Done { answer, ..Done::default() };
        };
        let turn = self.host.request(now_ms, envelope, operation, input);
        self.finish(ticket, envelope.request.clone(), turn)
    }

    fn deferred(&mut self, now_ms: u64, ticket: Ticket) -> Done {
        let Some((request, input)) = self.deferred.remove(&ticket) else { return Done::default() };
        let turn = self.host.deferred(now_ms, request.as_ref(), input);
        self.finish(ticket, request, turn)
    }

    fn alarm(&mut self, now_ms: u64, ticket: Ticket) -> Done {
        let turn = self.host.alarm(now_ms, false);
        self.finish(ticket, None, turn)
    }

    fn receive(&mut self, now_ms: u64, ticket: Ticket, arrival: Arrival) -> Done {
        let id = arrival.id.clone();
        let turn = self.host.receive(now_ms, arrival);
        let has_arrived = turn.crash == Some(CrashPoint::AfterSend);
        let mut done = self.finish(ticket, Some(id), turn);
        if has_arrived {
            done.answer = None;
        }
        done
    }

    fn delivered(&mut self, id: u64) {
        self.leaving.remove(&id);
        self.host.delivered(id);
        self.disk.0 = self.host.record().clone();
    }

    fn undelivered(&mut self, now_ms: u64, ticket: Ticket, id: u64, why: Unavailable) -> Done {
        self.leaving.remove(&id);
        let turn = self.host.undelivered(now_ms, id, why);
        self.finish(ticket, None, turn)
    }

    fn take_ready(&mut self, now_ms: u64) -> Vec<Outgoing> {
        let mut ready = self.host.ready(now_ms);
        ready.retain(|message| self.leaving.insert(message.id));
        ready
    }

    fn leaves_at_ms(&self) -> Option<u64> {
        let waits = |message: &&Outgoing| !self.leaving.contains(&message.id);
        let ready = self.host.ready(u64::MAX);
        ready.iter().filter(waits).map(|message| message.due_ms).min()
    }

    fn outbox(&self) -> Vec<Outgoing> {
        self.host.record().outbox.clone()
    }

    fn set_delivery(&mut self, mode: DeliveryMode) {
        if mode != self.host.record().delivery {
            let (mut record, machine) = self.disk.clone();
            record.delivery = mode;
            self.host = Host::restore(self.host.node().clone(), record.clone(), machine);
            self.disk.0 = record;
        }
    }

    fn control(
        &mut self,
        now_ms: u64,
        ticket: Ticket,
        control: Control,
    ) -> Result<(Done, ControlReply), ControlRefused> {
        let (turn, reply) = self.host.control(now_ms, control)?;
        let mut done = self.finish(ticket, None, turn);
        done.answer = None;
        Ok((done, reply))
    }

    fn alarm_at_ms(&self) -> Option<u64> {
        // A running object's messages leave without an alarm.
        if self.host.record().crashed {
            self.host.alarm_at_ms()
        } else {
            self.host.deadline_at_ms()
        }
    }

    fn record(&self) -> ObjectRecord {
        M::traced(self.host.machine().record())
    }

    fn tables(&self) -> Vec<(&'static TableSchema, Rows)> {
        let rows = self.disk.1.as_ref().map(Tabled::to_rows).unwrap_or_default();
        M::Record::SCHEMA.iter().zip(rows).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::{Clock, Crash};
    use crate::ids::TtlMs;
    use crate::lease::{Acquire, LeaseReply};

    fn lease() -> NodeId {
        NodeId::try_from("lease/orders".to_owned()).expect("a valid node")
    }

    fn acquire(world: &mut World, holder: &str, ttl_ms: u64) -> Answer {
        let request = Request::Acquire(Acquire {
            holder: holder.try_into().expect("a valid holder"),
            nonce: None,
            ttl_ms: TtlMs::try_from(ttl_ms).expect("a valid ttl"),
            request_id: None,
            wait_ms: None,
            not_after_ms: None,
        });
        let ticket = world.submit(&lease(), &Envelope::default(), request);
        world.answer(ticket).expect("a lease answers at once")
    }

    fn token(answer: Answer) -> Option<u64> {
        match answer {
            Answer::Reply { reply: Reply::Lease(LeaseReply::Granted { token, .. }), .. } => {
                Some(token.get())
            }
            _ => None,
        }
    }

    #[test]
    fn alarms_ring_in_order_and_end_the_lease() {
        let mut world = World::new(1_000, Preset::Published);
        assert_eq!(token(acquire(&mut world, "A", 500)), Some(1));
        assert_eq!(token(acquire(&mut world, "B", 500)), None);
        world.advance(500);
        let expired = world.log().iter().find(|e| matches!(e.kind, TraceKind::LeaseExpired { .. }));
        assert_eq!(expired.map(|event| event.at_ms), Some(1_500));
        assert_eq!(token(acquire(&mut world, "B", 500)), Some(2));
    }

    #[test]
    fn a_crash_before_persist_loses_the_step_and_keeps_the_crash() {
        for (at, survives) in [
            (CrashPoint::BeforePersist, false),
            (CrashPoint::AfterPersist, true),
            (CrashPoint::AfterSend, true),
        ] {
            let mut world = World::new(1_000, Preset::Repaired);
            assert_eq!(token(acquire(&mut world, "A", 500)), Some(1));
            world.advance(500);
            world
                .control(&lease(), Control::Crash(Crash { at, stay_down: false, n: None }))
                .expect("armed");
            acquire(&mut world, "B", 500);
            world.advance(500);
            let next = token(acquire(&mut world, "C", 500));
            assert_eq!(next, Some(if survives { 3 } else { 2 }), "{at:?}");
            let seqs: Vec<_> = world.log().iter().map(|event| event.seq).collect();
            assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_clock_that_jumps_ends_the_lease_early_and_rings_the_alarm_early() {
        let mut world = World::new(10_000_000, Preset::Repaired);
        acquire(&mut world, "A", 60_000);
        let offset_ms = 3_600_000.try_into().expect("an hour");
        world.control(&lease(), Control::Clock(Clock { offset_ms })).expect("moved");
        assert_eq!(token(acquire(&mut world, "B", 1_000)), Some(2));
        world.advance(1_000);
        assert_eq!(token(acquire(&mut world, "A", 1_000)), Some(3));
    }
}
