//! Accounts and coordinators in the simulated lab, with every message in our hands.

use protocol::control::{
    Alarm, AlarmAction, Control, ControlReply, Crash, Fault, FaultAction, OutboxAction,
};
use protocol::host::Envelope;
use protocol::ids::NodeId;
use protocol::invariant::{Invariant, check};
use protocol::object::{Reply, Request};
use protocol::rules::{Preset, RuleValue, RulesUpdate};
use protocol::sim::{Answer, Ticket, World};
use protocol::trace::{CrashPoint, DeliveryMode, ObjectRecord, TraceKind};
use protocol::transaction::account::AccountRecord;
use protocol::transaction::coordinator::TxnRecord;
use serde::de::DeserializeOwned;

pub struct Bank {
    pub world: World,
}

pub fn node(text: &str) -> NodeId {
    NodeId::try_from(text.to_owned()).expect("a node")
}

pub fn body<T: DeserializeOwned>(json: &str) -> T {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"))
}

impl Bank {
    /// Accounts `a`, `b` and `c` with 100 each. Messages wait to be delivered.
    pub fn new(preset: Preset) -> Self {
        let mut bank = Self::opened(preset);
        bank.world.set_delivery(DeliveryMode::Manual);
        bank
    }

    /// The same, and messages leave at once.
    pub fn opened(preset: Preset) -> Self {
        let mut bank = Self { world: World::new(1_000_000, preset) };
        for account in ["a", "b", "c"] {
            bank.open(account, 100);
        }
        bank
    }

    pub fn open(&mut self, account: &str, balance: i64) {
        let open = Request::OpenAccount(body(&format!(r#"{{"balance":{balance}}}"#)));
        self.ask(&format!("account/{account}"), open);
    }

    pub fn ask(&mut self, to: &str, request: Request) -> Ticket {
        self.world.submit(&node(to), &Envelope::default(), request)
    }

    /// `legs` as `a-50 b+50`.
    pub fn run(&mut self, txn: &str, legs: &str) -> Ticket {
        let legs: Vec<_> = legs
            .split(' ')
            .map(|leg| {
                let (account, delta) = leg.split_at(1);
                let delta: i64 = delta.parse().expect("a number");
                format!(r#"{{"account":"{account}","delta":{delta}}}"#)
            })
            .collect();
        let run = Request::Run(body(&format!(r#"{{"legs":[{}]}}"#, legs.join(","))));
        self.ask(&format!("transaction/{txn}"), run)
    }

    /// What was answered: the outcome's word, `waits`, or why not.
    pub fn told(&self, ticket: Ticket) -> String {
        match self.world.answer(ticket) {
            None => "waits".to_owned(),
            Some(Answer::Reply { reply, .. }) => reply.outcome().to_owned(),
            Some(Answer::Unavailable(why)) => why.as_str().to_owned(),
        }
    }

    pub fn reply(&self, ticket: Ticket) -> Reply {
        match self.world.answer(ticket) {
            Some(Answer::Reply { reply, .. }) => reply,
            other => panic!("no reply: {other:?}"),
        }
    }

    /// The message that waits at `from` and reads like this: `t1 > a: prepare -50`; with
    /// ` @2` the second that does.
    fn find(&self, line: &str) -> (NodeId, u64) {
        let (ends, summary) = line.split_once(": ").expect("ends: summary");
        let (summary, which) = summary.split_once(" @").unwrap_or((summary, "1"));
        let which: usize = which.parse().expect("a number");
        let (from, to) = ends.split_once(" > ").expect("from > to");
        let place = |name: &str| {
            let kind = if name.starts_with('t') { "transaction" } else { "account" };
            node(&format!("{kind}/{name}"))
        };
        let waiting = self.world.outbox(&place(from));
        let is_it = |one: &&protocol::host::Outgoing| {
            one.held && one.to == place(to) && one.body.summary() == summary
        };
        let found = waiting.iter().filter(is_it).nth(which - 1);
        let lines: Vec<_> = waiting.iter().map(|one| format!("{}: {}", one.to, one.body)).collect();
        let found = found.unwrap_or_else(|| panic!("no {line:?} in {lines:?}"));
        (place(from), found.id)
    }

    fn act(&mut self, line: &str, action: OutboxAction) {
        let (from, id) = self.find(line);
        let done = self.world.control(&from, Control::Outbox { id, action }).expect("it waits");
        assert_ne!(done, ControlReply::NoSuchMessage { id });
    }

    /// Each line arrives before the next one leaves.
    pub fn deliver(&mut self, lines: &[&str]) {
        for line in lines {
            self.act(line, OutboxAction::Deliver);
            self.world.advance(30);
        }
    }

    pub fn lose(&mut self, line: &str) {
        self.act(line, OutboxAction::Drop);
    }

    pub fn duplicate(&mut self, line: &str) {
        self.act(line, OutboxAction::Duplicate);
    }

    /// The message meets an error that its sender sees, as an RPC does.
    pub fn fail(&mut self, line: &str) {
        let (_, to) = line
            .split_once(": ")
            .map(|(ends, _)| ends)
            .and_then(|ends| ends.split_once(" > "))
            .expect("from > to");
        let kind = if to.starts_with('t') { "transaction" } else { "account" };
        let fault = Fault {
            message: "*".to_owned(),
            from: None,
            to: None,
            reply: false,
            action: FaultAction::Unreachable,
            delay_ms: None,
            times: Some(1),
        };
        self.control(&format!("{kind}/{to}"), Control::Faults(vec![fault]));
        self.deliver(&[line]);
    }

    pub fn control(&mut self, to: &str, control: Control) -> ControlReply {
        self.world.control(&node(to), control).expect("a control that fits")
    }

    pub fn crash(&mut self, to: &str, at: CrashPoint, stay_down: bool) {
        self.control(to, Control::Crash(Crash { at, stay_down, n: None }));
    }

    pub fn ring(&mut self, to: &str) {
        self.control(to, Control::Alarm(Alarm { action: AlarmAction::Fire }));
        self.world.advance(0);
    }

    pub fn suppress(&mut self, to: &str) {
        self.control(to, Control::Alarm(Alarm { action: AlarmAction::Suppress }));
    }

    /// Sets one rule at an object.
    pub fn rule(&mut self, to: &str, rule: &str, on: bool) {
        let set = [(rule.to_owned(), RuleValue::Switch(on))].into();
        self.control(to, Control::Rules(RulesUpdate { preset: None, set }));
    }

    /// Everything reachable and running, messages on their way, and time to recover.
    pub fn heal(&mut self, nodes: &[&str]) {
        self.world.set_delivery(DeliveryMode::Auto);
        for to in nodes {
            self.control(to, Control::Faults(Vec::new()));
            self.control(to, Control::Alarm(Alarm { action: AlarmAction::Resume }));
            self.control(to, Control::Restart);
        }
        self.world.advance(300_000);
    }

    pub fn account(&self, name: &str) -> AccountRecord {
        match self.world.record(&node(&format!("account/{name}"))) {
            Some(ObjectRecord::Account(record)) => record,
            other => panic!("{name}: {other:?}"),
        }
    }

    pub fn txn(&self, name: &str) -> TxnRecord {
        match self.world.record(&node(&format!("transaction/{name}"))) {
            Some(ObjectRecord::Transaction(record)) => record,
            other => panic!("{name}: {other:?}"),
        }
    }

    /// Balances of `a`, `b` and `c`.
    pub fn balances(&self) -> [i64; 3] {
        ["a", "b", "c"].map(|name| self.account(name).balance.expect("it is open"))
    }

    /// `prepared`, `committed`, `aborted` or `-` at `a` and `b`.
    pub fn holds(&self, txn: &str) -> [&'static str; 2] {
        let txn = txn.try_into().expect("a name");
        ["a", "b"]
            .map(|name| self.account(name).holds.get(&txn).map_or("-", |hold| hold.state.as_str()))
    }

    pub fn phase(&self, txn: &str) -> &'static str {
        self.txn(txn).phase.as_str()
    }

    /// What the log breaks, in the order of the strip.
    pub fn broken(&self) -> Vec<Invariant> {
        let mut broken: Vec<_> =
            check(self.world.log()).into_iter().map(|one| one.invariant).collect();
        broken.sort();
        broken.dedup();
        broken
    }

    pub fn count(&self, is_it: impl Fn(&TraceKind) -> bool) -> usize {
        self.world.log().iter().filter(|event| is_it(&event.kind)).count()
    }
}
