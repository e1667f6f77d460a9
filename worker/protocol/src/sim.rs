//! A deterministic lab: the same hosts and machines, with time as an argument.
//!
//! The [`World`] does what the Worker does (first contact, writing down, crashing, ringing
//! alarms, sequencing the log) without a runtime. The page uses it when there is no server,
//! and says SIMULATED; the golden tests replay every lesson script in it.
//!
//! Invariant: the same calls give the same log. It has no randomness of its own: whoever
//! wants a random schedule draws it outside and calls in.

use std::collections::BTreeMap;

use crate::control::{Control, ControlReply};
use crate::fence::FencedResource;
use crate::host::{ControlRefused, Envelope, Host, HostRecord, Turn, Unavailable};
use crate::ids::{NodeId, ObjectKind};
use crate::lease::LeaseAuthority;
use crate::machine::Machine;
use crate::object::{Addressed, Reply, Request};
use crate::rules::{Preset, Rules, RulesUpdate};
use crate::shard::ShardCoordinator;
use crate::table::{Rows, TableSchema, Tabled};
use crate::trace::{CrashPoint, MessageId, ObjectRecord, TraceEvent, TraceKind};

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
    n_tickets: u64,
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
        self.n_tickets += 1;
        let ticket = Ticket(self.n_tickets);
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

    /// A person's act on an object.
    pub fn control(
        &mut self,
        node: &NodeId,
        control: Control,
    ) -> Result<ControlReply, ControlRefused> {
        self.add_object(node);
        let now_ms = self.now_ms;
        let Some(object) = self.objects.get_mut(node) else {
            return Err(ControlRefused(format!("{node} is not an object of the lab")));
        };
        let (done, reply) = object.control(now_ms, control)?;
        self.carry_out(node, Ticket(0), done);
        Ok(reply)
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

    /// When something is due: an alarm, or the second half of a step.
    pub fn next_event_ms(&self) -> Option<u64> {
        let alarms = self.objects.values().filter_map(|object| object.alarm_at_ms());
        let halves = self.pending.iter().map(|pending| pending.at_ms);
        alarms.chain(halves).min()
    }

    /// Lets time pass and does what falls due, in order.
    pub fn advance(&mut self, ms: u64) {
        self.advance_to(self.now_ms + ms);
    }

    /// Lets time pass until then and does what falls due, in order.
    pub fn advance_to(&mut self, until_ms: u64) {
        while let Some(due_ms) = self.next_event_ms().filter(|due_ms| *due_ms <= until_ms) {
            self.now_ms = self.now_ms.max(due_ms);
            if !self.run_pending() && !self.ring_alarm() {
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
        };
        self.objects.insert(node.clone(), object);
        self.note(TraceKind::ObjectAdded { object_kind: *kind, name: name.to_string() });
    }

    fn carry_out(&mut self, node: &NodeId, ticket: Ticket, done: Done) {
        self.report(done.events);
        if let Some(answer) = done.answer {
            self.answers.insert(ticket, answer);
        }
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
        let done = object.alarm(now_ms);
        // An alarm that leaves itself due would ring for ever.
        let progressed = !due(object.as_ref());
        self.carry_out(&node, Ticket(0), done);
        progressed
    }
}

/// What the world has to do after an object has worked.
#[derive(Default)]
struct Done {
    events: Vec<TraceEvent>,
    answer: Option<Answer>,
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
    fn alarm(&mut self, now_ms: u64) -> Done;
    fn control(
        &mut self,
        now_ms: u64,
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
}

impl<M: Machine> Sim<M> {
    fn new(node: NodeId, preset: Preset) -> Self {
        let update = RulesUpdate { preset: Some(preset), ..RulesUpdate::default() };
        let rules = M::Rules::repaired();
        let record = HostRecord::new(rules.updated(&update).unwrap_or(rules), true);
        let host = Host::restore(node, record.clone(), None);
        Self { disk: (record, None), host, deferred: BTreeMap::new() }
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
        if let Some((delay_ms, input)) = turn.deferred {
            self.deferred.insert(ticket, (request, input));
            done.deferred_ms = Some(delay_ms);
        }
        if done.crashed {
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

    fn alarm(&mut self, now_ms: u64) -> Done {
        let turn = self.host.alarm(now_ms, false);
        self.finish(Ticket(0), None, turn)
    }

    fn control(
        &mut self,
        now_ms: u64,
        control: Control,
    ) -> Result<(Done, ControlReply), ControlRefused> {
        let (turn, reply) = self.host.control(now_ms, control)?;
        let mut done = self.finish(Ticket(0), None, turn);
        done.answer = None;
        Ok((done, reply))
    }

    fn alarm_at_ms(&self) -> Option<u64> {
        self.host.alarm_at_ms()
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
            world.control(&lease(), Control::Crash(Crash { at, stay_down: false })).expect("armed");
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
