//! Plays a script through a driver: step by step for a reader, to the end for a test.
//!
//! ```
//! use std::rc::Rc;
//! use lessons::{runner::Runner, script, sim_driver::{SimDriver, block_on}};
//! use protocol::rules::Preset;
//!
//! let script = script::parse("clients A\nlease orders\nstep one \"A asks\"\nA acquire orders ttl=1s\n-> granted token=1")?;
//! let driver = Rc::new(SimDriver::new(0, Preset::Repaired));
//! let mut runner = Runner::new(script, driver);
//! let report = block_on(runner.run_step())?.expect("there is a step");
//! assert!(report.is_as_expected());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Invariant: what happens is the objects' doing. The runner sends, waits and compares; an
//! expectation that is not met is reported, and the run goes on.
//!
//! Each step is noted in the log as `step: <id>` before its first command, so that a page
//! that was reloaded knows how far it got ([`Runner::restore`]). Events of other clients
//! are reported before a client acts, so the order of the log respects causality.

mod checks;
pub mod delivery;
mod flight;
mod objects;
mod request;

use core::fmt;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use protocol::control::{ControlReply, Fault};
use protocol::ids::{Label, Name, NodeId};
use protocol::lease::LeaseReply;
use protocol::object::Reply;
use protocol::trace::{TraceEvent, TraceKind};

use crate::client::{Client, Outcome};
use crate::driver::{Answer, Driver, DriverError};
use crate::script::{Act, Command, Line, ObjectAct, Script, Step};

pub use checks::{Check, record_word};

use flight::Flight;
use request::Desk;

/// How long after its expiry a lease is taken to be over, in ms: the alarm may ring late.
const EXPIRY_MARGIN_MS: u64 = 60;
/// How often a queued client asks again, in ms.
const POLL_MS: u64 = 150;

/// A script in the middle of its run.
pub struct Runner<D> {
    script: Script,
    variant: String,
    driver: Rc<D>,
    clients: BTreeMap<Label, Client>,
    flights: Vec<Flight>,
    n_flights: u64,
    faults: BTreeMap<NodeId, Vec<Fault>>,
    expiries_ms: BTreeMap<Name, u64>,
    log: Vec<TraceEvent>,
    lab_seq: u64,
    next_step: usize,
    set_up: bool,
}

/// What one step did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepReport {
    /// The step's id; `setup` for what comes before the first one.
    pub step: String,
    /// Its commands, in order.
    pub commands: Vec<CommandReport>,
    /// What a prediction is compared with: the word of the last reply, or the value of the
    /// field that the script says decides.
    pub answer: Option<String>,
}

impl StepReport {
    /// What was compared.
    pub fn checks(&self) -> impl Iterator<Item = &Check> {
        self.commands.iter().flat_map(|command| &command.checks)
    }

    /// Whether everything was as the script expects.
    pub fn is_as_expected(&self) -> bool {
        self.checks().all(|check| check.met)
    }

    /// The last reply of the step.
    pub fn last_outcome(&self) -> Option<&Outcome> {
        self.commands.iter().rev().find_map(|command| command.outcome.as_ref())
    }
}

/// What one command did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandReport {
    /// Where in the script, from 1; 0 outside a script.
    pub line: usize,
    /// The command as text.
    pub command: String,
    /// What the client got, if it asked for something.
    pub outcome: Option<Outcome>,
    /// What a person's act on an object led to.
    pub control: Option<ControlReply>,
    /// What was compared.
    pub checks: Vec<Check>,
}

/// Why a run cannot go on: a mistake in the script, or no lab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunError {
    /// Where in the script, from 1; 0 outside a script.
    pub line: usize,
    /// The command as text.
    pub command: String,
    /// What is wrong, and what to do.
    pub problem: String,
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: `{}`: {}", self.line, self.command, self.problem)
    }
}

impl std::error::Error for RunError {}

impl<D: Driver + 'static> Runner<D> {
    /// A run in a fresh lab, in the script's first variant.
    pub fn new(script: Script, driver: Rc<D>) -> Self {
        let variant = script.default_variant().to_owned();
        Self::with_variant(script, &variant, driver)
    }

    /// A run in a fresh lab, in this variant.
    pub fn with_variant(script: Script, variant: &str, driver: Rc<D>) -> Self {
        let now_ms = driver.now_ms();
        let clients = script.cast.clients.iter();
        let clients = clients.map(|name| (name.clone(), Client::new(name.clone(), now_ms)));
        Self {
            variant: variant.to_owned(),
            clients: clients.collect(),
            flights: Vec::new(),
            n_flights: 0,
            faults: BTreeMap::new(),
            expiries_ms: BTreeMap::new(),
            log: Vec::new(),
            lab_seq: now_ms * 1_000,
            next_step: 0,
            set_up: false,
            script,
            driver,
        }
    }

    /// A run that goes on where the log ends. The variant is the one in the log.
    pub fn restore(script: Script, driver: Rc<D>, log: &[TraceEvent]) -> Self {
        let noted = |prefix: &'static str| {
            log.iter().rev().find_map(move |event| match &event.kind {
                TraceKind::Noted { text } => text.strip_prefix(prefix),
                _ => None,
            })
        };
        let variant = noted("variant: ").unwrap_or(script.default_variant()).to_owned();
        let mut runner = Self::with_variant(script, &variant, driver);
        let now_ms = runner.driver.now_ms();
        for (name, client) in &mut runner.clients {
            *client = Client::restore(name.clone(), now_ms, log);
        }
        for event in log {
            if let TraceKind::BeliefGained { lease: NodeId::Object(_, lease), until_ms, .. } =
                &event.kind
            {
                // The client counts from sending, the authority from a little later.
                runner.expiries_ms.insert(lease.clone(), until_ms + 250);
            }
        }
        runner.set_up = noted("variant: ").is_some();
        if let Some(id) = noted("step: ") {
            let index = runner.script.steps.iter().position(|step| step.id == id);
            runner.next_step = index.map_or(0, |index| index + 1);
        }
        runner.log = log.to_vec();
        runner
    }

    /// The script.
    pub fn script(&self) -> &Script {
        &self.script
    }

    /// The variant that is played; empty when the script has none.
    pub fn variant(&self) -> &str {
        &self.variant
    }

    /// The clients, by name.
    pub fn clients(&self) -> impl Iterator<Item = &Client> {
        self.clients.values()
    }

    /// The step that comes next; `None` at the end.
    pub fn next_step(&self) -> Option<&Step> {
        let rest = self.script.steps.get(self.next_step..)?;
        rest.iter().find(|step| step.only.includes(&self.variant))
    }

    /// Plays the next step; `None` at the end.
    pub async fn run_step(&mut self) -> Result<Option<StepReport>, RunError> {
        if !self.set_up {
            self.set_up().await?;
        }
        let Some(step) = self.next_step().cloned() else { return Ok(None) };
        // A step whose beginning the lab does not know has not begun, and is still the next.
        self.note(format!("step: {}", step.id)).await?;
        let index = self.script.steps.iter().position(|one| one.id == step.id);
        self.next_step = index.map_or(self.script.steps.len(), |index| index + 1);
        let commands = self.perform_all(&step.lines).await?;
        let mut report = StepReport { step: step.id.clone(), commands, answer: None };
        report.answer = match step.prediction(&self.variant).and_then(|asked| asked.by.as_ref()) {
            Some((object, field)) => {
                self.read_log().await.map_err(|problem| RunError {
                    line: step.number,
                    command: step.id.clone(),
                    problem,
                })?;
                self.record(object).map(|record| record_word(record, field))
            }
            None => report.last_outcome().map(|outcome| outcome.word().to_owned()),
        };
        Ok(Some(report))
    }

    /// Plays all steps that are left.
    pub async fn run_to_end(&mut self) -> Result<Vec<StepReport>, RunError> {
        let mut reports = Vec::new();
        while let Some(report) = self.run_step().await? {
            reports.push(report);
        }
        Ok(reports)
    }

    /// Does one command that is not in the script: the sandbox, and "break it".
    pub async fn perform(&mut self, command: Command) -> Result<CommandReport, RunError> {
        if !self.set_up {
            self.set_up().await?;
        }
        let line = Line { number: 0, only: Default::default(), command, replies: Vec::new() };
        let report = self.perform_line(&line).await?;
        self.flush(None).await.map_err(|error| failed(&line, error.0))?;
        Ok(report)
    }

    /// Notes the variant and does what comes before the first step.
    async fn set_up(&mut self) -> Result<(), RunError> {
        self.note(format!("variant: {}", self.variant)).await?;
        let setup = self.script.setup.clone();
        self.perform_all(&setup).await?;
        self.set_up = true;
        Ok(())
    }

    async fn perform_all(&mut self, lines: &[Line]) -> Result<Vec<CommandReport>, RunError> {
        let mut reports = Vec::new();
        for line in lines {
            if line.only.includes(&self.variant) {
                reports.push(self.perform_line(line).await?);
            }
        }
        match (self.flush(None).await, lines.last()) {
            (Err(error), Some(last)) => Err(failed(last, error.0)),
            _ => Ok(reports),
        }
    }

    async fn perform_line(&mut self, line: &Line) -> Result<CommandReport, RunError> {
        let done = self.perform_command(&line.command).await;
        let (outcome, control, mut checks) = done.map_err(|problem| failed(line, problem))?;
        for check in &mut checks {
            check.line = line.number;
        }
        for expected in line.replies.iter().filter(|one| one.only.includes(&self.variant)) {
            let number = |value: &_| self.number(value);
            checks.push(checks::check_reply(expected, outcome.as_ref(), number));
        }
        let command = line.command.to_string();
        Ok(CommandReport { line: line.number, command, outcome, control, checks })
    }

    async fn perform_command(&mut self, command: &Command) -> Result<Performed, String> {
        if !matches!(command, Command::Act { .. }) {
            self.flush(None).await?;
        }
        match command {
            Command::Act { client, act, start } => {
                let outcome = self.act(client, act, *start).await?;
                return Ok((outcome, None, Vec::new()));
            }
            Command::Finish(client) => {
                let outcome = self.finish(client).await?;
                return Ok((Some(outcome), None, Vec::new()));
            }
            Command::Object(object, ObjectAct::Waiting { action, message, to, nth }) => {
                let which = (message.as_str(), to.as_ref(), *nth);
                let reply = self.act_on_waiting(object, *action, which).await?;
                return Ok((None, Some(reply), Vec::new()));
            }
            Command::Delivery(mode) => {
                let reply = self.set_delivery(*mode).await?;
                return Ok((None, Some(reply), Vec::new()));
            }
            Command::WaitField { object, field, value } => {
                let check = self.wait_field((object, field, value)).await?;
                return Ok((None, None, vec![check]));
            }
            Command::Object(object, act) => {
                let control = self.control_of(object, act)?;
                let driver = Rc::clone(&self.driver);
                let reply = self.meanwhile(driver.control(object, &control)).await?;
                return Ok((None, Some(reply), Vec::new()));
            }
            Command::Expect(expectation) => {
                let check = self.check(expectation).await?;
                return Ok((None, None, vec![check]));
            }
            Command::Pause(client) => {
                let now_ms = self.driver.now_ms();
                if !self.client_mut(client)?.pause(now_ms) {
                    return Err(format!("{client} is paused already: wake it first"));
                }
            }
            Command::Resume(client) => self.resume(client)?,
            Command::Message(client, fault) => self.client_mut(client)?.set_fault(*fault),
            Command::Wait(ms) => self.sleep(*ms).await,
            Command::WaitExpiry(lease) => {
                let until_ms = self.expiries_ms.get(lease).copied();
                let until_ms = until_ms.ok_or("nobody was granted it yet: acquire it first")?;
                let until_ms = until_ms + EXPIRY_MARGIN_MS;
                self.sleep(until_ms.saturating_sub(self.driver.now_ms())).await;
            }
            Command::Note(text) => self.note(text.clone()).await.map_err(|error| error.problem)?,
        }
        Ok((None, None, Vec::new()))
    }

    async fn act(
        &mut self,
        client: &Label,
        act: &Act,
        start: bool,
    ) -> Result<Option<Outcome>, String> {
        if self.client_mut(client)?.paused_since_ms().is_some() {
            return Err(format!("{client} is paused and does nothing: wake it first"));
        }
        self.flush(Some(client)).await?;
        if let Act::Check { lease } = act {
            let now_ms = self.driver.now_ms();
            return Ok(Some(self.client_mut(client)?.check(now_ms, lease)));
        }
        let id = self.send(client, act)?;
        if start {
            return Ok(None);
        }
        let mut outcome = self.landing(id).await?;
        let polls = matches!(act, Act::Acquire { poll: true, .. });
        while polls && outcome.word() == "queued" {
            self.sleep(POLL_MS).await;
            let id = self.send(client, act)?;
            outcome = self.landing(id).await?;
        }
        Ok(Some(outcome))
    }

    fn send(&mut self, client: &Label, act: &Act) -> Result<u64, String> {
        let desk = self.desk(client)?;
        let (to, request) = desk.request(act)?.ok_or("this is no request")?;
        let now_ms = self.driver.now_ms();
        let sent = self.client_mut(client)?.send(now_ms, to, request);
        self.n_flights += 1;
        let flight = Flight::new(self.n_flights, client.clone(), sent, &self.driver);
        self.flights.push(flight);
        Ok(self.n_flights)
    }

    async fn finish(&mut self, client: &Label) -> Result<Outcome, String> {
        if self.client_mut(client)?.paused_since_ms().is_some() {
            return Err(format!("{client} is paused and reads no reply: wake it first"));
        }
        let oldest = self.flights.iter().find(|flight| flight.client == *client);
        let id = oldest.map(|flight| flight.id);
        let id =
            id.ok_or_else(|| format!("{client} has started nothing: start {client} write …"))?;
        self.landing(id).await
    }

    fn resume(&mut self, client: &Label) -> Result<(), String> {
        let now_ms = self.driver.now_ms();
        let resumed = self.client_mut(client)?;
        if !resumed.resume(now_ms) {
            return Err(format!("{client} is not paused: pause it first"));
        }
        for flight in self.flights.iter_mut().filter(|flight| flight.client == *client) {
            if let (Some(answer), Some(client)) =
                (flight.held.take(), self.clients.get_mut(&flight.client))
            {
                flight.landed = Some(Ok(client.receive(now_ms, &flight.sent, answer)));
            }
        }
        Ok(())
    }

    fn desk(&self, client: &Label) -> Result<Desk<'_>, String> {
        let client = self.clients.get(client).ok_or_else(|| format!("{client} is no client"))?;
        Ok(Desk { cast: &self.script.cast, clients: &self.clients, client })
    }

    fn number(&self, value: &crate::script::Value) -> Result<i64, String> {
        let client = self.clients.values().next().ok_or("the script has no clients")?;
        Desk { cast: &self.script.cast, clients: &self.clients, client }.number(value)
    }

    fn client_mut(&mut self, name: &Label) -> Result<&mut Client, String> {
        self.clients.get_mut(name).ok_or_else(|| format!("{name} is no client"))
    }

    async fn note(&mut self, text: String) -> Result<(), RunError> {
        self.lab_seq += 1;
        let lamport = self.log.last().map_or(0, |event| event.lamport);
        let event = TraceEvent {
            seq: 0,
            at_ms: self.driver.now_ms(),
            node: NodeId::Lab,
            lamport,
            local_seq: self.lab_seq,
            request: None,
            kind: TraceKind::Noted { text: text.clone() },
            decision: None,
            record: None,
        };
        let driver = Rc::clone(&self.driver);
        let done = self.meanwhile(driver.report(vec![event])).await;
        done.map_err(|error| RunError { line: 0, command: text, problem: error.0 })
    }

    /// Tells the log what the clients have not told yet; all but one, who is about to send.
    async fn flush(&mut self, except: Option<&Label>) -> Result<(), DriverError> {
        let clients = self.clients.values().filter(|client| Some(client.name()) != except);
        let mut events: Vec<_> = clients.flat_map(Client::unreported).cloned().collect();
        if events.is_empty() {
            return Ok(());
        }
        events.sort_by_key(|event| event.at_ms);
        let driver = Rc::clone(&self.driver);
        self.meanwhile(driver.report(events.clone())).await?;
        for event in events {
            if let NodeId::Client(name) = &event.node
                && let Some(client) = self.clients.get_mut(name)
            {
                client.reported(event.local_seq);
            }
        }
        Ok(())
    }

    async fn sleep(&mut self, ms: u64) {
        let driver = Rc::clone(&self.driver);
        self.meanwhile(driver.sleep(ms)).await;
    }

    /// Waits for the future, and lets what is in flight land meanwhile.
    async fn meanwhile<T>(&mut self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        poll_fn(|context| {
            loop {
                if let Poll::Ready(done) = future.as_mut().poll(context) {
                    return Poll::Ready(done);
                }
                self.poll_flights(context);
                if !self.driver.idle() {
                    return Poll::Pending;
                }
            }
        })
        .await
    }

    /// Waits until this flight has landed.
    async fn landing(&mut self, id: u64) -> Result<Outcome, String> {
        poll_fn(|context| {
            loop {
                self.poll_flights(context);
                let index = self.flights.iter().position(|flight| flight.id == id);
                let Some(index) = index else {
                    return Poll::Ready(Err("this request is gone".to_owned()));
                };
                if let Some(outcome) = self.flights[index].landed.take() {
                    self.flights.remove(index);
                    return Poll::Ready(outcome.map_err(|error| error.0));
                }
                if !self.driver.idle() {
                    return Poll::Pending;
                }
            }
        })
        .await
    }

    fn poll_flights(&mut self, context: &mut Context<'_>) {
        for flight in &mut self.flights {
            let Some(answer) = flight.poll(context) else { continue };
            let Some(client) = self.clients.get_mut(&flight.client) else { continue };
            let answer = match answer {
                Ok(answer) => answer,
                Err(error) => {
                    flight.landed = Some(Err(error));
                    continue;
                }
            };
            let now_ms = self.driver.now_ms();
            if let Some(Answer::Reply { reply, .. }) = &answer {
                client.reported(flight.told());
                if let Reply::Lease(LeaseReply::Granted { ttl_ms, .. }) = reply
                    && let NodeId::Object(_, lease) = &flight.sent.to
                {
                    self.expiries_ms.insert(lease.clone(), now_ms + ttl_ms);
                }
            }
            if client.paused_since_ms().is_some() {
                flight.held = Some(answer);
            } else {
                flight.landed = Some(Ok(client.receive(now_ms, &flight.sent, answer)));
            }
        }
    }
}

type Performed = (Option<Outcome>, Option<ControlReply>, Vec<Check>);

impl From<DriverError> for String {
    fn from(error: DriverError) -> Self {
        error.0
    }
}

fn failed(line: &Line, problem: String) -> RunError {
    RunError { line: line.number, command: line.command.to_string(), problem }
}
