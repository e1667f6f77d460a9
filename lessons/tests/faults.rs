//! What clients and networks can do to each other, as short scripts in the simulator.

use std::cell::Cell;
use std::rc::Rc;

use lessons::client::Client;
use lessons::driver::{Answer, Driver, DriverError};
use lessons::runner::{RunError, Runner};
use lessons::script::parse;
use lessons::sim_driver::{SimDriver, block_on};
use protocol::control::{Control, ControlReply};
use protocol::host::Envelope;
use protocol::ids::NodeId;
use protocol::object::Request;
use protocol::rules::Preset;
use protocol::trace::{TraceEvent, TraceKind};

const HEAD: &str = "clients A B\nlease orders\nresource ledger\nshard stock\nstep one \"One\"\n";

fn run(text: &str) -> Result<Rc<SimDriver>, RunError> {
    let driver = Rc::new(SimDriver::new(1_000_000, Preset::Repaired));
    let script = parse(&format!("{HEAD}{text}")).unwrap_or_else(|error| panic!("{error}"));
    let mut runner = Runner::new(script, Rc::clone(&driver));
    for report in block_on(runner.run_to_end())? {
        for check in report.checks() {
            assert!(check.met, "line {}: {} but {}", check.line, check.expected, check.found);
        }
    }
    Ok(driver)
}

fn check(text: &str) -> Rc<SimDriver> {
    run(text).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn two_writes_of_one_client_can_be_on_their_way_at_once() {
    // Case C4: the mark first, the payload later, so the older value lands last.
    check(
        "rules orders published\nrules ledger published\nslow ledger write 600ms times=1\n\
         A acquire orders ttl=1h\nstart A write ledger balance=1\nA renew orders ttl=1h\n\
         A write ledger balance=2\n-> applied version=1\nfinish A\n-> applied version=2\n\
         expect ledger.balance=1\nexpect broken effects_in_token_order\n",
    );
}

#[test]
fn a_paused_client_reads_its_reply_when_it_resumes() {
    let driver = check(
        "start A acquire orders ttl=1h\npause A\nwait 1s\nexpect orders.holder=A\nresume A\n\
         finish A\n-> granted token=1\n",
    );
    let world = driver.world();
    let at = |wanted: &str| {
        let is_wanted = |kind: &TraceKind| format!("{kind:?}").starts_with(wanted);
        world.log().iter().position(|event| is_wanted(&event.kind)).expect(wanted)
    };
    assert!(at("LeaseGranted") < at("ClientResumed"));
    assert!(at("ClientResumed") < at("ReplyReceived"));
}

#[test]
fn a_paused_client_does_nothing() {
    let error = run("pause A\nA acquire orders ttl=1h\n").err().unwrap();
    assert_eq!(error.line, 7);
    assert!(error.problem.contains("wake it first"), "{error}");
}

#[test]
fn a_value_that_nobody_knows_yet_is_reported_with_what_to_do() {
    let error = run("A acquire orders ttl=1h\nA write ledger balance=A.balance+1\n").err().unwrap();
    assert!(error.problem.contains("A.balance is not known yet"), "{error}");
    let error = run("A write ledger balance=1\n").err().unwrap();
    assert!(error.problem.contains("A was never granted orders"), "{error}");
}

#[test]
fn a_queued_client_asks_again_until_it_is_its_turn() {
    check(
        "A acquire orders ttl=1s\nB await orders ttl=1s request=r1 wait=5s\n-> granted token=2\n\
         A acquire orders ttl=1s request=r2 wait=2s\n-> queued position=1\n\
         B release orders\n-> released\nA acquire orders ttl=1s request=r2 wait=2s\n\
         -> granted token=3\n",
    );
}

#[test]
fn messages_are_dropped_delayed_and_duplicated() {
    check(
        "drop request from A\nA acquire orders ttl=1h\n-> silence\nexpect orders.token=nothing\n\
         drop reply to A\nA acquire orders ttl=1h request=r1\n-> silence\n\
         expect orders.holder=A\n",
    );
    check(
        "rules stock published atomic_apply=on\nduplicate request from A\n\
         A apply stock apples+=3 id=o1\n-> applied seq=1 value=3\nexpect stock.apples=6\n\
         expect broken one_effect_per_op_id\n",
    );
    // The paper's fence, and a write that was slow on its way (case C1).
    check(
        "rules ledger published atomic_write=on\nA acquire orders ttl=1s\n\
         delay request from A 1500ms\nstart A write ledger balance=1\n\
         wait until orders expires\nB acquire orders ttl=1h\nB read ledger balance\n\
         -> value value=nothing\nfinish A\n-> applied\nexpect broken no_older_effect\n",
    );
    check(
        "delay reply to A 800ms\nA acquire orders ttl=1s\n-> granted\nwait 150ms\n\
         A check orders\n-> valid\nwait 100ms\nA check orders\n-> expired\n",
    );
}

#[test]
fn objects_are_cut_off_crashed_and_put_right() {
    check(
        "unreachable orders acquire from=A times=1\nA acquire orders ttl=1h\n-> unreachable\n\
         A acquire orders ttl=1h\n-> granted token=1\n\
         unreachable ledger\nA claim ledger\n-> unreachable\nheal ledger\nA claim ledger\n\
         -> claimed\ncrash ledger at now and stay down\nA read ledger balance\n-> down\n\
         restart ledger\nA read ledger balance\n-> value value=nothing\n\
         crash ledger at before_persist\nA write ledger balance=1\n-> crashed\n\
         A read ledger balance\n-> value value=nothing\n",
    );
}

#[test]
fn a_single_command_can_be_played_outside_a_script() {
    let driver = Rc::new(SimDriver::new(0, Preset::Repaired));
    let script = parse(HEAD).unwrap();
    let command = lessons::script::parse_command(&script.cast, "A acquire orders ttl=1s").unwrap();
    let mut runner = Runner::new(script, driver);
    let report = block_on(runner.perform(command)).unwrap();
    assert_eq!(report.outcome.unwrap().summary(), "granted · token 1");
}

#[test]
fn a_client_is_rebuilt_from_the_log() {
    let driver = check(
        "A acquire orders ttl=1h\nA claim ledger\nA write ledger balance=7\nA read ledger balance\n\
         A apply stock apples=3\nA seal stock epoch=1\nB acquire orders ttl=1h\npause A\n",
    );
    let world = driver.world();
    let name = "A".try_into().unwrap();
    let client = Client::restore(name, world.now_ms(), world.log());
    let lease = "orders".try_into().unwrap();
    assert_eq!(client.token(&lease).unwrap().get(), 1);
    // Counted from the moment of sending, which was the first of all.
    assert_eq!(client.belief(&lease).unwrap().until_ms, 1_000_000 + 3_600_000);
    assert_eq!(
        client.known(&lessons::script::Value::parse("A.balance").unwrap().terms[0].1),
        Some(7)
    );
    assert_eq!(client.sealed_state().get("apples"), Some(&3));
    assert!(client.paused_since_ms().is_some());
    assert!(client.unreported().is_empty());
}

/// A simulated lab that cannot be reached for one report, the `n`th.
struct OneReportLost {
    lab: SimDriver,
    reports_until_lost: Cell<u32>,
}

impl Driver for OneReportLost {
    fn now_ms(&self) -> u64 {
        self.lab.now_ms()
    }

    async fn sleep(&self, ms: u64) {
        self.lab.sleep(ms).await;
    }

    async fn send(
        &self,
        to: &NodeId,
        envelope: &Envelope,
        request: &Request,
    ) -> Result<Answer, DriverError> {
        self.lab.send(to, envelope, request).await
    }

    async fn control(&self, to: &NodeId, control: &Control) -> Result<ControlReply, DriverError> {
        self.lab.control(to, control).await
    }

    async fn report(&self, events: Vec<TraceEvent>) -> Result<(), DriverError> {
        let left = self.reports_until_lost.get();
        self.reports_until_lost.set(left.wrapping_sub(1));
        if left == 0 {
            return Err(DriverError("no connection".to_owned()));
        }
        self.lab.report(events).await
    }

    async fn log_after(&self, seq: u64) -> Result<Vec<TraceEvent>, DriverError> {
        self.lab.log_after(seq).await
    }

    fn idle(&self) -> bool {
        self.lab.idle()
    }
}

#[test]
fn a_step_that_could_not_begin_is_still_the_next_one() {
    let text = format!(
        "{HEAD}A acquire orders ttl=1h\n-> granted token=1\nstep two \"Two\"\nA release orders\n"
    );
    // The variant's note, step one's and step two's; the third report is what step one did.
    for lost in [0, 1, 3] {
        let script = parse(&text).expect("a script");
        let driver = Rc::new(OneReportLost {
            lab: SimDriver::new(1_000_000, Preset::Repaired),
            reports_until_lost: Cell::new(lost),
        });
        let mut runner = Runner::new(script, Rc::clone(&driver));
        let mut ran = Vec::new();
        let mut n_failed = 0;
        loop {
            match block_on(runner.run_step()) {
                Ok(Some(report)) => ran.push(report.step),
                Ok(None) => break,
                Err(_) => n_failed += 1,
            }
        }
        assert_eq!((ran, n_failed), (vec!["one".to_owned(), "two".to_owned()], 1), "{lost}");
    }
}
