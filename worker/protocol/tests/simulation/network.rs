//! The lab of a simulation: the world, a network that loses, delays and repeats, and a
//! hand that crashes objects, moves clocks and holds alarms. Everything is drawn from one
//! seed.

use protocol::control::{Alarm, AlarmAction, Clock, Control, Crash, Fault, FaultAction};
use protocol::host::Envelope;
use protocol::ids::{Label, NodeId};
use protocol::object::Request;
use protocol::rules::Preset;
use protocol::sim::{Answer, Ticket, World};
use protocol::trace::{CrashPoint, TraceEvent, TraceKind};

use super::draw::Draw;

/// A client of the lab.
pub trait Actor {
    /// Its name in the log.
    fn name(&self) -> &str;
    /// What it sends now, if anything.
    fn act(&mut self, now_ms: u64, draw: &mut Draw) -> Option<(NodeId, Request)>;
    /// The answer to a request of its own, perhaps an old one.
    fn hear(&mut self, node: &NodeId, request: &Request, answer: &Answer);
}

/// A request on its way, or at its object and not yet answered.
#[derive(Clone)]
struct Flight {
    at_ms: u64,
    actor: usize,
    node: NodeId,
    request: Request,
    envelope: Envelope,
    ticket: Option<Ticket>,
}

/// The lab.
pub struct Lab {
    pub world: World,
    pub draw: Draw,
    actors: Vec<Box<dyn Actor>>,
    objects: Vec<NodeId>,
    flights: Vec<Flight>,
    n_sent: u64,
}

impl Lab {
    pub fn new(seed: u64, preset: Preset, actors: Vec<Box<dyn Actor>>, objects: &[&str]) -> Self {
        let node = |text: &&str| NodeId::try_from((*text).to_owned()).expect("a node");
        Self {
            world: World::new(1_000_000, preset),
            draw: Draw::new(seed),
            actors,
            objects: objects.iter().map(node).collect(),
            flights: Vec::new(),
            n_sent: 0,
        }
    }

    /// Lets everybody act for so many turns, with faults.
    pub fn run(&mut self, n_turns: u64) {
        for _ in 0..n_turns {
            if self.draw.chance(3) {
                self.break_something();
            }
            self.turn();
        }
    }

    /// Puts everything right and lets everybody act a while longer.
    pub fn heal(&mut self, n_turns: u64) {
        for node in self.objects.clone() {
            let offset_ms = 0.try_into().expect("no offset");
            let action = AlarmAction::Resume;
            for control in [
                Control::Restart,
                Control::Clock(Clock { offset_ms }),
                Control::Alarm(Alarm { action }),
            ] {
                self.world.control(&node, control).expect("a control that fits");
            }
        }
        (0..n_turns).for_each(|_| self.turn());
    }

    fn turn(&mut self) {
        let actor = self.draw.below(self.actors.len() as u64) as usize;
        let now_ms = self.world.now_ms();
        if let Some((node, request)) = self.actors[actor].act(now_ms, &mut self.draw) {
            self.send(actor, node, request);
        }
        let is_long = self.draw.chance(4);
        let ms = 1 + self.draw.below(if is_long { 600 } else { 30 });
        self.let_pass(now_ms + ms);
    }

    fn send(&mut self, actor: usize, node: NodeId, request: Request) {
        self.n_sent += 1;
        let from = Label::try_from(self.actors[actor].name()).expect("a name");
        let id = Label::try_from(format!("{from}.{}", self.n_sent)).expect("an id");
        let now_ms = self.world.now_ms();
        self.world.report(vec![TraceEvent {
            seq: 0,
            at_ms: now_ms,
            node: NodeId::Client(from.clone()),
            lamport: 0,
            local_seq: self.n_sent,
            request: Some(id.clone()),
            kind: TraceKind::RequestSent {
                to: node.clone(),
                operation: request.operation().to_owned(),
                summary: request.summary(),
            },
            decision: None,
            record: None,
        }]);
        let envelope = Envelope { request: Some(id), from: Some(from), ..Envelope::default() };
        let n_copies = match self.draw.below(100) {
            0..6 => 0,
            6..14 => 2,
            _ => 1,
        };
        for _ in 0..n_copies {
            let is_slow = self.draw.chance(10);
            let at_ms = now_ms + self.draw.below(if is_slow { 2_000 } else { 20 });
            let (node, request, envelope) = (node.clone(), request.clone(), envelope.clone());
            self.flights.push(Flight { at_ms, actor, node, request, envelope, ticket: None });
        }
    }

    /// Lets time pass; what is due arrives, in order, and answers are heard or lost.
    fn let_pass(&mut self, until_ms: u64) {
        self.flights.sort_by_key(|flight| flight.at_ms);
        let mut waiting = Vec::new();
        for mut flight in std::mem::take(&mut self.flights) {
            if flight.ticket.is_none() && flight.at_ms <= until_ms {
                self.world.advance_to(flight.at_ms);
                let Flight { node, envelope, request, .. } = &flight;
                flight.ticket = Some(self.world.submit(node, envelope, request.clone()));
            }
            waiting.push(flight);
        }
        self.world.advance_to(until_ms);
        for flight in waiting {
            let answer = flight.ticket.and_then(|ticket| self.world.answer(ticket));
            match answer {
                None => self.flights.push(flight),
                Some(_) if self.draw.chance(8) => {}
                Some(answer) => {
                    self.actors[flight.actor].hear(&flight.node, &flight.request, &answer);
                }
            }
        }
    }

    fn break_something(&mut self) {
        let node = self.objects[self.draw.below(self.objects.len() as u64) as usize].clone();
        let control = match self.draw.below(6) {
            5 => Control::Faults(vec![Fault {
                message: "*".to_owned(),
                from: None,
                to: None,
                reply: false,
                action: FaultAction::SlowStore,
                delay_ms: Some(500),
                times: Some(1),
            }]),
            0 | 1 => {
                let at = CrashPoint::ALL[self.draw.below(4) as usize];
                Control::Crash(Crash { at, stay_down: self.draw.chance(20), n: None })
            }
            2 => Control::Restart,
            3 => {
                let offset_ms = self.draw.below(4_000) as i64 - 2_000;
                let offset_ms = offset_ms.try_into().expect("a small offset");
                Control::Clock(Clock { offset_ms })
            }
            _ => {
                let suppress = self.draw.chance(50);
                let action = if suppress { AlarmAction::Suppress } else { AlarmAction::Resume };
                Control::Alarm(Alarm { action })
            }
        };
        self.world.control(&node, control).expect("a control that fits");
    }
}
