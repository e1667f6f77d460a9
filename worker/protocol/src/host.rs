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
use crate::trace::{CrashPoint, Decision, MessageId, TraceEvent, TraceKind};

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
}

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
        }
    }
}

/// A machine with everything that an object has around it.
#[derive(Clone, Debug)]
pub struct Host<M: Machine> {
    node: NodeId,
    record: HostRecord<M::Rules>,
    machine: M,
}

impl<M: Machine> Host<M> {
    /// The host as it is after a start.
    pub fn restore(node: NodeId, record: HostRecord<M::Rules>, machine: Option<M::Record>) -> Self {
        let machine = M::restore(machine, record.rules);
        Self { node, record, machine }
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
        self.step(now_ms, envelope.request.as_ref(), input, &mut turn);
        if let Some((delay_ms, _)) = &mut turn.deferred {
            let mut faults = Turn::<M>::empty();
            let slow = self.take_fault(FaultAction::SlowStore, operation, from, &mut faults);
            *delay_ms = slow.and_then(|fault| fault.delay_ms).unwrap_or(STORE_DELAY_MS);
            turn.host_changed |= faults.host_changed;
        }
        self.crash_at_point(now_ms, envelope.request.as_ref(), &mut turn);
        turn
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
        turn
    }

    /// The alarm rang, or a person rang it.
    pub fn alarm(&mut self, now_ms: u64, forced: bool) -> Turn<M> {
        let mut turn = Turn::empty();
        if self.record.down || (self.record.alarm_suppressed && !forced) {
            return turn;
        }
        self.note_start(now_ms, &mut turn);
        let position = turn.events.len();
        let before = (self.record.lamport, self.record.local_seq);
        self.push(now_ms, None, TraceKind::AlarmFired { forced }, None, &mut turn);
        self.step(now_ms, None, M::tick(), &mut turn);
        // An alarm that changed nothing is not worth a line: it came early, or twice.
        if !forced && turn.events.len() == position + 1 {
            turn.events.truncate(position);
            (self.record.lamport, self.record.local_seq) = before;
        }
        turn.host_changed |= !turn.events.is_empty();
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
        for effect in effects {
            match effect {
                Effect::Persist(record) => turn.record = Some(record),
                Effect::Reply(reply) => turn.reply = Some(reply),
                Effect::Record(kind, decision) => self.push(now_ms, request, kind, decision, turn),
                Effect::Defer(input) => turn.deferred = Some((STORE_DELAY_MS, input)),
            }
        }
        if let (true, Some(last)) = (turn.record.is_some(), turn.events.last_mut()) {
            last.record = Some(M::traced(self.machine.record()));
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

    fn crash_at_point(&mut self, now_ms: u64, request: Option<&MessageId>, turn: &mut Turn<M>) {
        let Some(crash) = self.record.crash.take() else { return };
        if crash.at == CrashPoint::BeforePersist {
            // What the step did never becomes true, so the log must not show it.
            self.record.local_seq -= turn.events.len() as u64;
            self.record.lamport -= turn.events.len() as u64;
            turn.events.clear();
            turn.deferred = None;
        }
        self.go_down(now_ms, request, crash, turn);
        turn.crash = Some(crash.at);
        if crash.at != CrashPoint::AfterSend {
            turn.reply = None;
            turn.deferred = None;
        }
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
        let fault = &mut self.record.faults[index];
        let taken = fault.clone();
        if let Some(times) = &mut fault.times {
            *times -= 1;
            turn.host_changed = true;
            if *times == 0 {
                self.record.faults.remove(index);
            }
        }
        Some(taken)
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
