//! What every object has around its machine: rules, crashes, a clock, faults, a log.
//!
//! The Worker's shell and the simulator both drive this, so that a crash, a partition or
//! a moved clock means the same in both. A [`Turn`] says what must become durable and what
//! must then happen; writing it down, aborting the object and setting the one alarm is the
//! shell's work.
//!
//! Invariant: the events of a turn are durable together with the record that they report,
//! or not at all. The one exception is a crash `before_persist`: that event alone is
//! durable, and the step is lost.

use serde::{Deserialize, Serialize};

use crate::control::{AlarmAction, Control, ControlReply, Crash, FAULTS_MAX, Fault, FaultAction};
use crate::ids::{Label, MAX_SAFE_INTEGER, NodeId};
use crate::machine::{Effect, Effects, Machine};
use crate::rules::{BadRule, Rules};
use crate::trace::{CrashPoint, Decision, DeliveryMode, MessageId, TraceEvent, TraceKind};

mod network;

pub use network::{Arrival, OUTBOX_MAX, Outgoing, RESEND_MS};

/// How long the second half of a step takes with an `atomic_…` rule off, in ms, when no
/// `slow_store` fault says otherwise.
pub const STORE_DELAY_MS: u64 = 20;

/// The durable part of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound = "R: Rules")]
pub struct HostRecord<R> {
    /// The rules in force.
    pub rules: R,
    /// How often the object has started after a crash, from 1.
    pub incarnation: u64,
    /// A crash was injected and the next start has not yet been recorded.
    pub crashed: bool,
    /// Stays down until told to restart.
    pub down: bool,
    /// The crash that waits for its point.
    pub crash: Option<Crash>,
    /// Added to the real time, in ms.
    pub clock_offset_ms: i64,
    /// Faults in force.
    pub faults: Vec<Fault>,
    /// The alarm passes unheard.
    pub alarm_suppressed: bool,
    /// Whether events are recorded at all.
    pub tracing: bool,
    /// Lamport clock.
    pub lamport: u64,
    /// Count of own events.
    pub local_seq: u64,
    /// How messages to other objects leave.
    #[serde(default)]
    pub delivery: DeliveryMode,
    /// Messages that have not been delivered yet, in the order of their numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outbox: Vec<Outgoing>,
    /// Count of messages.
    #[serde(default)]
    pub n_messages: u64,
}

impl<R: Rules> HostRecord<R> {
    /// A new object, with every measure on.
    pub fn new(rules: R, tracing: bool) -> Self {
        Self {
            rules,
            incarnation: 1,
            crashed: false,
            down: false,
            crash: None,
            clock_offset_ms: 0,
            faults: Vec::new(),
            alarm_suppressed: false,
            tracing,
            lamport: 0,
            local_seq: 0,
            delivery: DeliveryMode::Auto,
            outbox: Vec::new(),
            n_messages: 0,
        }
    }
}

/// What comes with a request: who sent it and what the sender's log has not told yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    /// Names the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<MessageId>,
    /// The client, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Label>,
    /// The sender's Lamport clock.
    #[serde(default)]
    pub lamport: u64,
    /// The sender's own events so far, which the lab must sequence before the object's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<TraceEvent>,
}

/// Why a request got no answer from the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unavailable {
    /// The object is down and stays down until it is restarted.
    Down,
    /// A fault cuts it off.
    Unreachable,
    /// It crashed while it worked on the request.
    Crashed,
}

impl Unavailable {
    /// The word used in problems and in the log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Unreachable => "unreachable",
            Self::Crashed => "crashed",
        }
    }
}

/// What one input led to, for the shell to carry out from top to bottom.
#[derive(Debug)]
pub struct Turn<M: Machine> {
    /// The machine's record, if it changed: make it durable.
    pub record: Option<M::Record>,
    /// The host's own record changed: make it durable too.
    pub host_changed: bool,
    /// Events to make durable with them, then to send to the lab.
    pub events: Vec<TraceEvent>,
    /// Crash here. `Now` and `AfterPersist`: after the writes, before the reply;
    /// `BeforePersist`: everything but `record` is durable; `AfterSend`: after the reply.
    pub crash: Option<CrashPoint>,
    /// The machine was not asked at all.
    pub unavailable: Option<Unavailable>,
    /// Feed this back after so many ms, as part of the same request.
    pub deferred: Option<(u64, M::Input)>,
    /// The answer.
    pub reply: Option<M::Reply>,
    /// The answer comes with a later turn, under this ticket.
    pub waits: Option<Ticket>,
    /// Answers to earlier requests.
    pub answers: Vec<(Ticket, M::Reply)>,
    /// How to crash, once the step is whole.
    passed: Option<CrashPoint>,
    /// The messages that the step sent, by their numbers in the outbox.
    sent: Vec<u64>,
}

/// Names a caller that waits for an answer; counted anew after each start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

impl<M: Machine> Turn<M> {
    fn empty() -> Self {
        Self {
            record: None,
            host_changed: false,
            events: Vec::new(),
            crash: None,
            unavailable: None,
            deferred: None,
            reply: None,
            waits: None,
            answers: Vec::new(),
            passed: None,
            sent: Vec::new(),
        }
    }
}

/// A machine with everything that an object has around it.
#[derive(Clone, Debug)]
pub struct Host<M: Machine> {
    node: NodeId,
    record: HostRecord<M::Rules>,
    machine: M,
    /// Callers that wait, by the machine's key.
    waiting: Vec<(u64, Ticket)>,
    n_tickets: u64,
}

impl<M: Machine> Host<M> {
    /// The host as it is after a start.
    pub fn restore(node: NodeId, record: HostRecord<M::Rules>, machine: Option<M::Record>) -> Self {
        let machine = M::restore(machine, record.rules);
        Self { node, record, machine, waiting: Vec::new(), n_tickets: 0 }
    }

    /// Its durable part.
    pub fn record(&self) -> &HostRecord<M::Rules> {
        &self.record
    }

    /// The machine.
    pub fn machine(&self) -> &M {
        &self.machine
    }

    /// Its name in the log.
    pub fn node(&self) -> &NodeId {
        &self.node
    }

    /// When the alarm must ring, by the real clock; `None` for no alarm.
    pub fn alarm_at_ms(&self) -> Option<u64> {
        if self.record.down {
            return None;
        }
        self.deadline_at_ms().into_iter().chain(self.outbox_alarm_at_ms()).min()
    }

    /// When the machine itself wants to be woken, by the real clock; `None` while its alarm is
    /// suppressed. The outbox needs the alarm all the same.
    pub fn deadline_at_ms(&self) -> Option<u64> {
        if self.record.down || self.record.alarm_suppressed {
            return None;
        }
        let deadline_ms = self.machine.next_deadline()?;
        Some(deadline_ms.saturating_add_signed(-self.record.clock_offset_ms))
    }

    /// A request for the machine. `operation` is its word in the API.
    pub fn request(
        &mut self,
        now_ms: u64,
        envelope: &Envelope,
        operation: &str,
        input: M::Input,
    ) -> Turn<M> {
        let mut turn = Turn::empty();
        if self.record.down {
            turn.unavailable = Some(Unavailable::Down);
            return turn;
        }
        let from = envelope.from.as_ref();
        if self.take_fault(FaultAction::Unreachable, operation, from, &mut turn).is_some() {
            turn.unavailable = Some(Unavailable::Unreachable);
            return turn;
        }
        self.record.lamport = self.record.lamport.max(envelope.lamport);
        self.note_start(now_ms, &mut turn);
        let n_before_step = turn.events.len();
        self.step(now_ms, envelope.request.as_ref(), input, &mut turn);
        if let Some((delay_ms, _)) = &mut turn.deferred {
            let mut faults = Turn::<M>::empty();
            let slow = self.take_fault(FaultAction::SlowStore, operation, from, &mut faults);
            *delay_ms = slow.and_then(|fault| fault.delay_ms).unwrap_or(STORE_DELAY_MS);
            turn.host_changed |= faults.host_changed;
        }
        self.crash_at_point(now_ms, envelope.request.as_ref(), n_before_step, &mut turn);
        turn
    }

    /// The caller has waited for too long: what it is told.
    pub fn give_up(&mut self, now_ms: u64, ticket: Ticket) -> Option<M::Reply> {
        let n_before = self.waiting.len();
        self.waiting.retain(|(_, other)| *other != ticket);
        if self.waiting.len() == n_before {
            return None;
        }
        self.machine.gave_up(self.clock_ms(now_ms))
    }

    /// The second half of a step (see [`Turn::deferred`]).
    pub fn deferred(
        &mut self,
        now_ms: u64,
        request: Option<&MessageId>,
        input: M::Input,
    ) -> Turn<M> {
        let mut turn = Turn::empty();
        self.step(now_ms, request, input, &mut turn);
        self.crash_at_passed_point(now_ms, request, 0, &mut turn);
        turn
    }

    /// The alarm rang, or a person rang it.
    pub fn alarm(&mut self, now_ms: u64, forced: bool) -> Turn<M> {
        let mut turn = Turn::empty();
        if self.record.down {
            return turn;
        }
        if self.record.alarm_suppressed && !forced {
            // The outbox is not the machine's: what waits in it goes on after a crash.
            if !self.record.outbox.is_empty() {
                self.note_start(now_ms, &mut turn);
            }
            return turn;
        }
        self.note_start(now_ms, &mut turn);
        let position = turn.events.len();
        let n_messages = self.record.outbox.len();
        let before = (self.record.lamport, self.record.local_seq);
        self.push(now_ms, None, TraceKind::AlarmFired { forced }, None, &mut turn);
        let input = if forced { M::forced_tick() } else { M::tick() };
        self.step(now_ms, None, input, &mut turn);
        turn.reply = None;
        // An alarm that changed nothing is not worth a line: it came early, or twice.
        if !forced && turn.events.len() == position + 1 {
            turn.events.truncate(position);
            (self.record.lamport, self.record.local_seq) = before;
            turn.host_changed = false;
        }
        turn.host_changed |= !turn.events.is_empty() || self.record.outbox.len() != n_messages;
        self.crash_at_passed_point(now_ms, None, position, &mut turn);
        turn
    }

    /// A person's act. An error means that nothing was changed.
    pub fn control(
        &mut self,
        now_ms: u64,
        control: Control,
    ) -> Result<(Turn<M>, ControlReply), ControlRefused> {
        let mut turn = Turn::empty();
        turn.host_changed = true;
        let (kind, reply) = match control {
            Control::Rules(update) => {
                let rules = self.record.rules.updated(&update)?;
                self.record.rules = rules;
                self.machine.set_rules(rules);
                let entries = rules.entries().into_iter();
                let named: Vec<_> = entries.map(|(name, value)| (name.to_owned(), value)).collect();
                let reply = ControlReply::RulesSet { rules: named.iter().cloned().collect() };
                (TraceKind::RulesChanged { rules: named }, reply)
            }
            Control::Crash(crash) if crash.problem(M::KIND).is_some() => {
                return Err(ControlRefused(crash.problem(M::KIND).unwrap_or_default().to_owned()));
            }
            Control::Crash(crash) if crash.at == CrashPoint::Now => {
                self.go_down(now_ms, None, crash, &mut turn);
                turn.crash = Some(CrashPoint::Now);
                return Ok((turn, ControlReply::Crashed));
            }
            Control::Crash(crash) => {
                self.record.crash = Some(crash);
                return Ok((turn, ControlReply::CrashArmed { at: crash.at }));
            }
            Control::Restart => {
                if !self.record.down && !self.record.crashed {
                    turn.host_changed = false;
                    return Ok((turn, ControlReply::AlreadyRunning));
                }
                self.record.down = false;
                self.record.crashed = true;
                self.note_start(now_ms, &mut turn);
                let incarnation = self.record.incarnation;
                return Ok((turn, ControlReply::Restarted { incarnation }));
            }
            Control::Clock(clock) => {
                let offset_ms = clock.offset_ms.get();
                self.record.clock_offset_ms = offset_ms;
                (TraceKind::ClockSet { offset_ms }, ControlReply::ClockSet { offset_ms })
            }
            Control::Faults(faults) => {
                if faults.len() > FAULTS_MAX {
                    return Err(ControlRefused(format!("at most {FAULTS_MAX} faults at once")));
                }
                if let Some(problem) = faults.iter().find_map(Fault::problem) {
                    return Err(ControlRefused(problem.to_owned()));
                }
                let n_faults = faults.len() as u64;
                let summaries = faults.iter().map(Fault::summary).collect();
                self.record.faults = faults;
                (TraceKind::FaultsSet { faults: summaries }, ControlReply::FaultsSet { n_faults })
            }
            Control::Alarm(alarm) => match alarm.action {
                AlarmAction::Fire => {
                    let mut turn = self.alarm(now_ms, true);
                    turn.host_changed = true;
                    return Ok((turn, ControlReply::AlarmFired));
                }
                AlarmAction::Suppress => {
                    self.record.alarm_suppressed = true;
                    (TraceKind::AlarmSuppressed, ControlReply::AlarmSuppressed)
                }
                AlarmAction::Resume => {
                    self.record.alarm_suppressed = false;
                    (TraceKind::AlarmResumed, ControlReply::AlarmResumed)
                }
            },
            Control::Delivery(delivery) => {
                self.set_delivery(now_ms, delivery.mode, &mut turn);
                return Ok((turn, ControlReply::DeliverySet { mode: delivery.mode }));
            }
            Control::Outbox { id, action } => {
                let reply = self.act_on_message(now_ms, id, action, &mut turn);
                return Ok((turn, reply));
            }
        };
        self.push(now_ms, None, kind, None, &mut turn);
        Ok((turn, reply))
    }

    /// The machine's own time.
    fn clock_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_add_signed(self.record.clock_offset_ms).min(MAX_SAFE_INTEGER)
    }

    fn step(
        &mut self,
        now_ms: u64,
        request: Option<&MessageId>,
        input: M::Input,
        turn: &mut Turn<M>,
    ) {
        let mut effects = Effects::<M>::new();
        self.machine.step(self.clock_ms(now_ms), input, &mut effects);
        let mut sends = Vec::new();
        for effect in effects {
            match effect {
                Effect::Persist(record) => turn.record = Some(record),
                Effect::Reply(reply) => turn.reply = Some(reply),
                Effect::Record(kind, decision) => {
                    self.note_passed_point(&kind, turn);
                    self.push(now_ms, request, kind, decision, turn);
                }
                Effect::Defer(input) => turn.deferred = Some((STORE_DELAY_MS, input)),
                Effect::Send { to, message } => sends.push((to, message)),
                Effect::Await(key) => {
                    self.n_tickets += 1;
                    self.waiting.push((key, Ticket(self.n_tickets)));
                    turn.waits = Some(Ticket(self.n_tickets));
                }
                Effect::Answer(key, reply) => {
                    let waiting = std::mem::take(&mut self.waiting);
                    let (told, others) = waiting.into_iter().partition(|(one, _)| *one == key);
                    self.waiting = others;
                    let told: Vec<(u64, Ticket)> = told;
                    turn.answers.extend(told.into_iter().map(|(_, to)| (to, reply.clone())));
                }
            }
        }
        if let (true, Some(last)) = (turn.record.is_some(), turn.events.last_mut()) {
            last.record = Some(M::traced(self.machine.record()));
        }
        for (to, message) in sends {
            self.send(now_ms, request, to, message, turn);
        }
    }

    fn push(
        &mut self,
        now_ms: u64,
        request: Option<&MessageId>,
        kind: TraceKind,
        decision: Option<Decision>,
        turn: &mut Turn<M>,
    ) {
        if !self.record.tracing {
            return;
        }
        turn.host_changed = true;
        self.record.lamport += 1;
        self.record.local_seq += 1;
        turn.events.push(TraceEvent {
            seq: 0,
            at_ms: now_ms,
            node: self.node.clone(),
            lamport: self.record.lamport,
            local_seq: self.record.local_seq,
            request: request.cloned(),
            kind,
            decision,
            record: None,
        });
    }

    /// The first input after an injected crash records the start.
    fn note_start(&mut self, now_ms: u64, turn: &mut Turn<M>) {
        if !self.record.crashed {
            return;
        }
        self.record.crashed = false;
        self.record.incarnation += 1;
        turn.host_changed = true;
        let incarnation = self.record.incarnation;
        self.push(now_ms, None, TraceKind::Restarted { incarnation }, None, turn);
        if let Some(last) = turn.events.last_mut() {
            last.record = Some(M::traced(self.machine.record()));
        }
    }

    fn crash_at_point(
        &mut self,
        now_ms: u64,
        request: Option<&MessageId>,
        n_before_step: usize,
        turn: &mut Turn<M>,
    ) {
        if self.record.crash.is_some_and(|crash| !crash.at.is_of_transaction()) {
            turn.passed = self.record.crash.map(|crash| crash.at);
        }
        self.crash_at_passed_point(now_ms, request, n_before_step, turn);
    }

    /// Crashes if the step has passed the point for which a crash waits.
    fn crash_at_passed_point(
        &mut self,
        now_ms: u64,
        request: Option<&MessageId>,
        n_before_step: usize,
        turn: &mut Turn<M>,
    ) {
        let Some(way) = turn.passed.take() else { return };
        let Some(crash) = self.record.crash.take() else { return };
        if way == CrashPoint::BeforePersist {
            // What the step did never becomes true, so the log must not show it. That the
            // object had started before is true.
            let n_lost = (turn.events.len() - n_before_step) as u64;
            self.record.local_seq -= n_lost;
            self.record.lamport -= n_lost;
            turn.events.truncate(n_before_step);
            turn.deferred = None;
            self.record.outbox.retain(|message| !turn.sent.contains(&message.id));
        }
        self.go_down(now_ms, request, crash, turn);
        turn.crash = Some(way);
        if way != CrashPoint::AfterSend {
            turn.reply = None;
            turn.deferred = None;
            turn.answers.clear();
        }
        turn.waits = None;
    }

    /// Whether the crash that waits is for the point that this event marks, and how the
    /// object then crashes.
    fn note_passed_point(&self, kind: &TraceKind, turn: &mut Turn<M>) {
        let Some(crash) = self.record.crash else { return };
        let n = crash.n.unwrap_or(1);
        let way = match (crash.at, kind) {
            (CrashPoint::AfterPreparing, TraceKind::PreparingRecorded { .. })
            | (CrashPoint::AfterDecision, TraceKind::DecisionRecorded { .. }) => {
                CrashPoint::AfterPersist
            }
            (CrashPoint::BeforeDecision, TraceKind::DecisionRecorded { .. })
            | (CrashPoint::BeforeDone, TraceKind::TransactionDone { .. }) => {
                CrashPoint::BeforePersist
            }
            (CrashPoint::AfterNthVote, TraceKind::VoteReceived { n_votes, .. })
                if *n_votes == n =>
            {
                CrashPoint::AfterPersist
            }
            (CrashPoint::AfterNthAck, TraceKind::AckReceived { n_acked, .. }) if *n_acked == n => {
                CrashPoint::AfterPersist
            }
            _ => return,
        };
        turn.passed = Some(way);
    }

    fn go_down(
        &mut self,
        now_ms: u64,
        request: Option<&MessageId>,
        crash: Crash,
        turn: &mut Turn<M>,
    ) {
        self.record.crash = None;
        self.record.crashed = true;
        self.record.down = crash.stay_down;
        turn.host_changed = true;
        let kind = TraceKind::Crashed {
            at: crash.at,
            stays_down: crash.stay_down,
            incarnation: self.record.incarnation,
        };
        self.push(now_ms, request, kind, None, turn);
    }

    fn take_fault(
        &mut self,
        action: FaultAction,
        operation: &str,
        from: Option<&Label>,
        turn: &mut Turn<M>,
    ) -> Option<Fault> {
        let index = self.record.faults.iter().position(|f| f.matches(action, operation, from))?;
        Some(self.use_up_fault(index, turn))
    }

    fn use_up_fault(&mut self, index: usize, turn: &mut Turn<M>) -> Fault {
        let fault = &mut self.record.faults[index];
        let taken = fault.clone();
        if let Some(times) = &mut fault.times {
            *times -= 1;
            turn.host_changed = true;
            if *times == 0 {
                self.record.faults.remove(index);
            }
        }
        taken
    }
}

/// Why a person's act was refused; the text says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlRefused(pub String);

impl From<BadRule> for ControlRefused {
    fn from(bad: BadRule) -> Self {
        Self(bad.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::control::{Alarm, Clock};
    use crate::fence::{FenceInput, FenceReply, FenceRules, FencedResource, Write};
    use crate::ids::{ObjectKind, TtlMs};
    use crate::lease::{Acquire, LeaseAuthority, LeaseInput, LeaseReply, LeaseRules};
    use crate::rules::{RuleValue, RulesUpdate};
    use crate::trace::ObjectRecord;

    /// A host with the disk under it, driven as the Worker's shell drives it.
    struct Shell<M: Machine> {
        disk: (HostRecord<M::Rules>, Option<M::Record>),
        host: Host<M>,
        log: Vec<TraceEvent>,
    }

    impl<M: Machine> Shell<M> {
        fn new(rules: M::Rules, tracing: bool) -> Self {
            let node = NodeId::Object(M::KIND, "x".try_into().expect("a name"));
            let record = HostRecord::new(rules, tracing);
            let host = Host::restore(node, record.clone(), None);
            Self { disk: (record, None), host, log: Vec::new() }
        }

        /// Writes down what the turn says and, after a crash, starts from what is written.
        fn carry_out(&mut self, turn: Turn<M>) -> Turn<M> {
            if turn.host_changed {
                self.disk.0 = self.host.record().clone();
            }
            if turn.crash != Some(CrashPoint::BeforePersist)
                && let Some(record) = &turn.record
            {
                self.disk.1 = Some(record.clone());
            }
            self.log.extend(turn.events.iter().cloned());
            if turn.crash.is_some() {
                let (record, machine) = self.disk.clone();
                self.host = Host::restore(self.host.node().clone(), record, machine);
            }
            turn
        }

        fn request(
            &mut self,
            now_ms: u64,
            from: &str,
            operation: &str,
            input: M::Input,
        ) -> Turn<M> {
            let name = |text: &str| Label::try_from(text).expect("a label");
            let request = Some(name(&format!("{from}.{now_ms}")));
            let envelope = Envelope { request, from: Some(name(from)), ..Envelope::default() };
            let turn = self.host.request(now_ms, &envelope, operation, input);
            self.carry_out(turn)
        }

        fn alarm(&mut self, now_ms: u64) -> Turn<M> {
            let turn = self.host.alarm(now_ms, false);
            self.carry_out(turn)
        }

        fn control(&mut self, now_ms: u64, control: Control) -> ControlReply {
            let (turn, reply) = self.host.control(now_ms, control).expect("a control that fits");
            self.carry_out(turn);
            reply
        }

        fn refused(&mut self, control: Control) -> String {
            let before = self.host.record().clone();
            let Err(ControlRefused(why)) = self.host.control(0, control) else {
                panic!("accepted")
            };
            assert_eq!(*self.host.record(), before, "nothing was changed");
            why
        }
    }

    type Lease = Shell<LeaseAuthority>;
    type Resource = Shell<FencedResource>;

    fn lease() -> Lease {
        Shell::new(LeaseRules::repaired(), true)
    }

    fn torn_resource() -> Resource {
        Shell::new(FenceRules::published(), true)
    }

    impl Lease {
        /// What `from` is told: a token, or why not.
        fn acquire(&mut self, now_ms: u64, from: &str) -> String {
            let input = LeaseInput::Acquire(Acquire {
                holder: from.try_into().expect("a holder"),
                nonce: None,
                ttl_ms: TtlMs::try_from(100).expect("a ttl"),
                request_id: None,
                wait_ms: None,
                not_after_ms: None,
            });
            let turn = self.request(now_ms, from, "acquire", input);
            match (turn.unavailable, turn.crash, turn.reply) {
                (Some(why), ..) => why.as_str().to_owned(),
                (_, _, Some(LeaseReply::Granted { token, .. })) => token.to_string(),
                (_, _, Some(_)) => "refused".to_owned(),
                (_, Some(_), None) => "crashed".to_owned(),
                (None, None, None) => panic!("a lease answers"),
            }
        }
    }

    impl Resource {
        fn write(&mut self, now_ms: u64, token: u64) -> Turn<FencedResource> {
            let input = FenceInput::Write(Write {
                lease: "orders".try_into().expect("a lease"),
                token: token.try_into().expect("a token"),
                key: "k".try_into().expect("a key"),
                value: 7.try_into().expect("a value"),
                write_id: None,
                seq: None,
            });
            self.request(now_ms, "A", "write", input)
        }
    }

    fn crash(at: CrashPoint, stay_down: bool) -> Control {
        Control::Crash(Crash { at, stay_down, n: None })
    }

    fn alarm(action: AlarmAction) -> Control {
        Control::Alarm(Alarm { action })
    }

    fn clock(offset_ms: i64) -> Control {
        Control::Clock(Clock { offset_ms: offset_ms.try_into().expect("an offset") })
    }

    fn fault(message: &str, from: Option<&str>, action: FaultAction, times: Option<u32>) -> Fault {
        let from = from.map(|name| Label::try_from(name).expect("a name"));
        let delay_ms = (action == FaultAction::SlowStore).then_some(500);
        Fault { message: message.to_owned(), from, to: None, reply: false, action, delay_ms, times }
    }

    /// The kinds of event, as the log spells them.
    fn kinds(events: &[TraceEvent]) -> Vec<String> {
        let tagged = events.iter().map(|event| serde_json::to_value(&event.kind).expect("JSON"));
        tagged.map(|kind| kind["kind"].as_str().expect("a kind").to_owned()).collect()
    }

    /// Node-local order: counted and clocked, strictly rising over every crash.
    fn check_order(log: &[TraceEvent]) {
        for pair in log.windows(2) {
            assert!(pair[0].local_seq < pair[1].local_seq, "{pair:?}");
            assert!(pair[0].lamport < pair[1].lamport, "{pair:?}");
        }
    }

    #[test]
    fn a_crash_loses_and_keeps_what_its_point_says() {
        let cases = [
            // The first answer, the events of that turn, and the token that comes next.
            (CrashPoint::BeforePersist, "crashed", &["crashed"][..], "1"),
            (CrashPoint::AfterPersist, "crashed", &["lease_granted", "crashed"], "2"),
            (CrashPoint::AfterSend, "1", &["lease_granted", "crashed"], "2"),
        ];
        for (at, answer, events, next) in cases {
            let mut lease = lease();
            let armed = ControlReply::CrashArmed { at };
            assert_eq!(lease.control(0, crash(at, false)), armed);
            assert_eq!(lease.acquire(10, "A"), answer, "{at:?}");
            assert_eq!(kinds(&lease.log), events, "{at:?}");
            assert_eq!(lease.disk.1.is_some(), next == "2", "{at:?}: what is on disk");
            assert_eq!(lease.acquire(200, "B"), next, "{at:?}");
            assert_eq!(kinds(&lease.log)[events.len()], "restarted", "{at:?}");
            check_order(&lease.log);
        }
    }

    #[test]
    fn an_armed_crash_is_used_up_by_one_request() {
        let mut lease = lease();
        lease.control(0, crash(CrashPoint::AfterPersist, false));
        // The alarm does not use it up: it waits for a request.
        assert!(lease.alarm(1).crash.is_none());
        assert_eq!(lease.acquire(10, "A"), "crashed");
        assert_eq!(lease.acquire(200, "B"), "2");
        assert_eq!(lease.acquire(400, "C"), "3");
        assert_eq!(lease.host.record().incarnation, 2);
        assert_eq!(kinds(&lease.log).iter().filter(|kind| *kind == "restarted").count(), 1);
    }

    #[test]
    fn a_start_is_in_the_log_even_if_the_step_after_it_is_lost() {
        let mut lease = lease();
        assert_eq!(lease.control(0, crash(CrashPoint::Now, false)), ControlReply::Crashed);
        lease.control(1, crash(CrashPoint::BeforePersist, false));
        assert_eq!(lease.acquire(10, "A"), "crashed");
        assert_eq!(lease.acquire(20, "A"), "1");
        let expected = ["crashed", "restarted", "crashed", "restarted", "lease_granted"];
        assert_eq!(kinds(&lease.log), expected);
        check_order(&lease.log);
    }

    #[test]
    fn what_is_down_stays_down_until_it_is_restarted() {
        let mut lease = lease();
        assert_eq!(lease.acquire(0, "A"), "1");
        lease.control(10, crash(CrashPoint::Now, true));
        assert_eq!(lease.host.alarm_at_ms(), None);
        assert_eq!(lease.acquire(20, "B"), "down");
        assert!(lease.alarm(100).events.is_empty());
        let TraceKind::Crashed { stays_down, incarnation, .. } = lease.log[1].kind else {
            panic!("the second event is the crash")
        };
        assert_eq!((stays_down, incarnation), (true, 1));
        let restarted = ControlReply::Restarted { incarnation: 2 };
        assert_eq!(lease.control(110, Control::Restart), restarted);
        assert_eq!(lease.host.alarm_at_ms(), Some(100), "overdue, so it rings at once");
        assert_eq!(lease.control(111, Control::Restart), ControlReply::AlreadyRunning);
        assert_eq!(lease.acquire(120, "B"), "2");
        check_order(&lease.log);
    }

    #[test]
    fn restarting_what_has_just_crashed_is_its_start() {
        let mut lease = lease();
        lease.control(0, crash(CrashPoint::Now, false));
        assert_eq!(lease.control(1, Control::Restart), ControlReply::Restarted { incarnation: 2 });
        assert_eq!(lease.acquire(2, "A"), "1");
        assert_eq!(kinds(&lease.log), ["crashed", "restarted", "lease_granted"]);
    }

    #[test]
    fn an_unreachable_object_never_sees_the_request() {
        let mut lease = lease();
        let faults = vec![
            fault("acquire", Some("A"), FaultAction::Unreachable, Some(2)),
            fault("renew", None, FaultAction::Unreachable, None),
        ];
        assert_eq!(
            lease.control(0, Control::Faults(faults)),
            ControlReply::FaultsSet { n_faults: 2 }
        );
        let n_events = lease.log.len();
        assert_eq!(lease.acquire(1, "A"), "unreachable");
        assert_eq!(lease.acquire(2, "B"), "1", "another client gets through");
        assert_eq!(lease.acquire(200, "A"), "unreachable");
        assert_eq!(lease.disk.0.faults.len(), 1, "used up, on disk too");
        assert_eq!(lease.acquire(300, "A"), "2");
        assert_eq!(lease.log.len(), n_events + 3, "nothing recorded of what never arrived");

        let all = vec![fault("*", None, FaultAction::Unreachable, None)];
        lease.control(400, Control::Faults(all));
        for at_ms in 401..410 {
            assert_eq!(lease.acquire(at_ms, "B"), "unreachable");
        }
        lease.control(500, Control::Faults(Vec::new()));
        assert_eq!(lease.acquire(501, "B"), "3");
    }

    #[test]
    fn a_crash_waits_for_a_request_that_arrives() {
        let mut lease = lease();
        let once = vec![fault("*", None, FaultAction::Unreachable, Some(1))];
        lease.control(0, Control::Faults(once));
        lease.control(0, crash(CrashPoint::AfterPersist, false));
        assert_eq!(lease.acquire(1, "A"), "unreachable");
        assert_eq!(lease.acquire(2, "A"), "crashed");
    }

    #[test]
    fn faults_that_make_no_sense_are_refused() {
        let mut lease = lease();
        let many = vec![fault("*", None, FaultAction::Unreachable, None); FAULTS_MAX + 1];
        assert_eq!(lease.refused(Control::Faults(many)), "at most 16 faults at once");
        let never = vec![fault("*", None, FaultAction::Unreachable, Some(0))];
        assert_eq!(lease.refused(Control::Faults(never)), "`times` must be at least 1");
    }

    #[test]
    fn the_second_half_of_a_write_waits() {
        let mut resource = torn_resource();
        let slow = vec![fault("write", None, FaultAction::SlowStore, Some(1))];
        resource.control(0, Control::Faults(slow));
        let first = resource.write(1, 1);
        let second = resource.write(2, 2);
        assert!(first.reply.is_none() && second.reply.is_none());
        let (slow_ms, input) = first.deferred.expect("a second half");
        assert_eq!((slow_ms, second.deferred.map(|(ms, _)| ms)), (500, Some(STORE_DELAY_MS)));
        let request = Label::try_from("A.1").expect("a request");
        let turn = resource.host.deferred(501, Some(&request), input);
        let turn = resource.carry_out(turn);
        assert_eq!(turn.reply, Some(FenceReply::Applied { version: 1 }));
        let last = resource.log.last().expect("an event");
        assert_eq!((last.at_ms, last.request.as_ref()), (501, Some(&request)));
        assert!(last.record.is_some(), "the last event of a step bears the record");
        check_order(&resource.log);
    }

    #[test]
    fn a_crash_between_the_halves_keeps_the_first() {
        for (at, high_water_mark) in
            [(CrashPoint::BeforePersist, None), (CrashPoint::AfterPersist, Some(5))]
        {
            let mut resource = torn_resource();
            resource.control(0, crash(at, false));
            let turn = resource.write(1, 5);
            assert!(turn.deferred.is_none() && turn.reply.is_none(), "{at:?}");
            let record = resource.host.machine().record();
            let mark = record.marks.get("key/k").map(|mark| mark.high_water_mark);
            assert_eq!((mark, record.values.len()), (high_water_mark, 0), "{at:?}");
        }
    }

    #[test]
    fn a_moved_clock_moves_the_machine_and_its_alarm() {
        let mut lease = lease();
        assert_eq!(lease.control(1_000, clock(500)), ControlReply::ClockSet { offset_ms: 500 });
        assert_eq!(lease.acquire(1_000, "A"), "1");
        let granted = lease.log.last().expect("the grant").clone();
        let TraceKind::LeaseGranted { clock_ms, expires_at_ms, .. } = granted.kind else {
            panic!("a grant")
        };
        assert_eq!((granted.at_ms, clock_ms, expires_at_ms), (1_000, 1_500, 1_600));
        assert_eq!(lease.host.alarm_at_ms(), Some(1_100), "by the real clock");
        lease.control(1_010, clock(-500));
        assert_eq!(lease.host.alarm_at_ms(), Some(2_100));
        assert_eq!(lease.acquire(1_200, "B"), "refused");
        lease.control(1_210, clock(0));
        assert_eq!(lease.acquire(1_599, "B"), "refused");
        assert_eq!(lease.acquire(1_600, "B"), "2");
        // Nor does a clock that is far off leave the range of a time.
        lease.control(2_000, clock(-31_536_000_000));
        assert_eq!(lease.acquire(2_001, "C"), "refused");
    }

    #[test]
    fn the_alarm_is_heard_when_it_changes_something() {
        let mut lease = lease();
        assert_eq!(lease.host.alarm_at_ms(), None);
        lease.acquire(0, "A");
        assert_eq!(lease.host.alarm_at_ms(), Some(100));
        let before = lease.host.record().clone();
        let early = lease.alarm(50);
        assert!(early.events.is_empty() && early.record.is_none() && !early.host_changed);
        assert_eq!(*lease.host.record(), before, "an alarm that is early leaves no trace");
        assert_eq!(kinds(&lease.alarm(100).events), ["alarm_fired", "lease_expired"]);
        assert!(lease.alarm(100).events.is_empty(), "twice does no harm");
        assert_eq!(lease.host.alarm_at_ms(), None);
        check_order(&lease.log);
    }

    #[test]
    fn an_alarm_can_be_held_and_rung_by_hand() {
        let mut lease = lease();
        lease.acquire(0, "A");
        let suppress = alarm(AlarmAction::Suppress);
        assert_eq!(lease.control(1, suppress), ControlReply::AlarmSuppressed);
        assert_eq!(lease.host.alarm_at_ms(), None);
        assert!(lease.alarm(100).events.is_empty());
        let n_events = lease.log.len();
        assert_eq!(lease.control(50, alarm(AlarmAction::Fire)), ControlReply::AlarmFired);
        assert_eq!(kinds(&lease.log[n_events..]), ["alarm_fired"], "though it changed nothing");
        assert_eq!(lease.control(101, alarm(AlarmAction::Fire)), ControlReply::AlarmFired);
        assert_eq!(kinds(&lease.log[n_events + 1..]), ["alarm_fired", "lease_expired"]);
        lease.acquire(200, "A");
        assert_eq!(lease.control(400, alarm(AlarmAction::Resume)), ControlReply::AlarmResumed);
        assert_eq!(lease.host.alarm_at_ms(), Some(300), "overdue, so it rings at once");
    }

    #[test]
    fn the_alarm_too_starts_what_has_crashed() {
        let mut lease = lease();
        lease.acquire(0, "A");
        lease.control(10, crash(CrashPoint::Now, false));
        assert_eq!(lease.host.alarm_at_ms(), Some(100), "an alarm survives a crash");
        assert_eq!(kinds(&lease.alarm(100).events), ["restarted", "alarm_fired", "lease_expired"]);
    }

    #[test]
    fn with_tracing_off_everything_works_and_nothing_is_recorded() {
        let mut lease: Lease = Shell::new(LeaseRules::repaired(), false);
        let before = lease.host.record().clone();
        assert_eq!(lease.acquire(0, "A"), "1");
        assert_eq!(*lease.host.record(), before, "no row of the host is written for a request");
        lease.control(1, crash(CrashPoint::BeforePersist, false));
        assert_eq!(lease.acquire(200, "B"), "crashed");
        assert_eq!(lease.acquire(201, "B"), "2");
        lease.control(202, crash(CrashPoint::Now, true));
        assert_eq!(lease.acquire(203, "B"), "down");
        assert_eq!(
            lease.control(204, Control::Restart),
            ControlReply::Restarted { incarnation: 3 }
        );
        assert!(lease.alarm(400).record.is_some());
        assert_eq!(lease.acquire(401, "C"), "3");
        assert_eq!((lease.log.len(), lease.host.record().local_seq), (0, 0));
    }

    #[test]
    fn rules_change_in_the_host_and_in_its_machine() {
        let mut lease = lease();
        lease.acquire(0, "A");
        let set = BTreeMap::from([("holder_has_nonce".to_owned(), RuleValue::Switch(false))]);
        let update = RulesUpdate { preset: None, set };
        let ControlReply::RulesSet { rules } = lease.control(1, Control::Rules(update)) else {
            panic!("rules are set")
        };
        assert_eq!(rules["holder_has_nonce"], RuleValue::Switch(false));
        assert_eq!(rules.len(), LeaseRules::repaired().entries().len());
        assert_eq!(lease.acquire(2, "A"), "2", "names are enough now");
        lease.control(3, crash(CrashPoint::Now, false));
        assert_eq!(lease.acquire(4, "A"), "3", "and after a crash");
        let set = BTreeMap::from([("no_such_rule".to_owned(), RuleValue::Switch(false))]);
        let why = lease.refused(Control::Rules(RulesUpdate { preset: None, set }));
        assert!(why.contains("no_such_rule") && why.contains("fifo_queue"), "{why}");
    }

    #[test]
    fn order_survives_every_crash() {
        let mut lease = lease();
        for round in 0..40_u64 {
            let now_ms = round * 1_000;
            let at = CrashPoint::ALL[round as usize % 4];
            lease.control(now_ms, crash(at, round % 3 == 0));
            lease.acquire(now_ms + 10, "A");
            lease.control(now_ms + 20, Control::Restart);
            lease.alarm(now_ms + 500);
            lease.acquire(now_ms + 600, "B");
        }
        check_order(&lease.log);
        assert!(lease.log.len() > 200, "enough to tell: {}", lease.log.len());
        let crashes =
            lease.log.iter().filter(|event| matches!(event.kind, TraceKind::Crashed { .. }));
        let starts =
            lease.log.iter().filter(|event| matches!(event.kind, TraceKind::Restarted { .. }));
        assert_eq!((crashes.count(), starts.count()), (40, 40));
        assert_eq!(lease.host.record().incarnation, 41);
    }

    #[test]
    fn an_event_comes_after_what_its_request_knew() {
        let mut lease = lease();
        let envelope = Envelope { lamport: 50, ..Envelope::default() };
        let input =
            LeaseInput::Release(crate::lease::Release { token: 9.try_into().expect("one") });
        let turn = lease.host.request(1, &envelope, "release", input);
        assert_eq!((turn.events[0].lamport, turn.events[0].local_seq), (51, 1));
    }

    #[test]
    fn the_last_event_of_a_step_bears_the_record() {
        let mut lease = lease();
        lease.acquire(0, "A");
        let turn = lease.alarm(100);
        let bears: Vec<_> = turn.events.iter().map(|event| event.record.is_some()).collect();
        assert_eq!(bears, [false, true]);
        let Some(ObjectRecord::Lease(record)) = &turn.events[1].record else { panic!("a lease") };
        assert_eq!(Some(record), turn.record.as_ref());
        lease.acquire(200, "A");
        lease.acquire(210, "B");
        assert!(lease.log.last().expect("a refusal").record.is_none(), "a refusal changed nothing");
    }

    #[test]
    fn the_hosts_own_record_and_envelope_survive_json() {
        let mut lease = lease();
        lease.control(0, crash(CrashPoint::AfterSend, true));
        lease.control(0, clock(-7));
        let slow = vec![fault("*", Some("A"), FaultAction::SlowStore, Some(3))];
        lease.control(0, Control::Faults(slow));
        let record = lease.host.record().clone();
        let json = serde_json::to_string(&record).expect("a record is JSON");
        let back: HostRecord<LeaseRules> = serde_json::from_str(&json).expect("and back");
        assert_eq!(back, record);
        let empty: Envelope = serde_json::from_str("{}").expect("curl sends none");
        assert_eq!(empty, Envelope::default());
        assert_eq!(lease.host.node().object_kind(), Some(ObjectKind::Lease));
    }
}
