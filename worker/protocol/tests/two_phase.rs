//! Two-phase commit in the simulated lab: each schedule of the review, published and
//! repaired, with every message in our hands.
#![allow(unreachable_pub, dead_code, reason = "a test binary exports nothing")]

#[path = "two_phase/bank.rs"]
mod bank;
#[path = "simulation/draw.rs"]
mod draw;
#[path = "two_phase/random.rs"]
mod random;

use bank::{Bank, body, node};
use protocol::control::{Control, Crash};
use protocol::invariant::Invariant;
use protocol::object::{Reply, Request};
use protocol::rules::Preset;
use protocol::trace::{CrashPoint, DeliveryMode, TraceKind};
use protocol::transaction::account::AccountReply;
use protocol::transaction::coordinator::TxnReply;

use Preset::{Published, Repaired};

const ALL: [&str; 3] = ["account/a", "account/b", "transaction/t"];

/// Both prepares delivered and both votes waiting.
fn voted(bank: &mut Bank, txn: &str) {
    bank.deliver(&[&format!("{txn} > a: prepare -50"), &format!("{txn} > b: prepare +50")]);
}

#[test]
fn a_transfer_commits_or_aborts_and_nothing_is_left() {
    for preset in [Published, Repaired] {
        let mut bank = Bank::opened(preset);
        let run = bank.run("t", "a-30 b+30");
        assert_eq!(bank.told(run), "waits");
        bank.world.advance(1_000);
        assert_eq!(bank.told(run), "committed");
        assert_eq!((bank.balances(), bank.phase("t")), ([70, 130, 100], "done_commit"));
        let run = bank.run("t2", "a-71 b+71");
        bank.world.advance(1_000);
        let Reply::Transaction(TxnReply::Aborted { reason }) = bank.reply(run) else {
            panic!("too much")
        };
        assert_eq!(reason, "insufficient_funds: a");
        assert_eq!((bank.balances(), bank.phase("t2")), ([70, 130, 100], "done_abort"));
        assert_eq!(bank.broken(), []);
        assert!(bank.world.outbox(&node("transaction/t")).is_empty());
    }
}

// ---- the coordinator (K1 to K12) -------------------------------------------------------

/// What follows K1: the caller is told "committed", and asks again while `b` does not know.
fn k1(preset: Preset) -> (Bank, [protocol::sim::Ticket; 2]) {
    let mut bank = Bank::new(preset);
    let first = bank.run("t", "a-50 b+50");
    voted(&mut bank, "t");
    bank.deliver(&["a > t: yes", "b > t: yes", "t > a: commit", "a > t: commit · applied"]);
    bank.lose("t > b: commit");
    let second = bank.run("t", "a-50 b+50");
    (bank, [first, second])
}

#[test]
fn k1_the_decision_made_twice() {
    let (mut bank, [first, second]) = k1(Published);
    bank.deliver(&["t > a: prepare -50", "a > t: yes"]);
    bank.fail("t > b: prepare +50");
    bank.world.advance(30);
    bank.deliver(&[
        "t > b: abort",
        "b > t: abort · applied",
        "t > a: abort",
        "a > t: abort · committed",
    ]);
    assert_eq!([bank.told(first), bank.told(second)], ["committed", "aborted"]);
    assert_eq!((bank.phase("t"), bank.holds("t")), ("done_abort", ["committed", "aborted"]));
    assert_eq!(bank.balances(), [50, 100, 100]);
    let broken = [
        Invariant::Agreement,
        Invariant::Stability,
        Invariant::MoneyConserved,
        Invariant::SameOutcomeTold,
    ];
    assert_eq!(bank.broken(), broken);

    let (mut bank, [first, second]) = k1(Repaired);
    assert_eq!([bank.told(first), bank.told(second)], ["committed", "committed"]);
    bank.heal(&ALL);
    assert_eq!((bank.phase("t"), bank.balances()), ("done_commit", [50, 150, 100]));
    assert_eq!(bank.broken(), []);
}

/// `b` holds its leg, and its coordinator believes that it does not.
fn k2(preset: Preset) -> (Bank, [protocol::sim::Ticket; 2]) {
    let mut bank = Bank::new(preset);
    let first = bank.run("t", "a-50 b+50");
    bank.deliver(&["t > a: prepare -50", "a > t: yes"]);
    bank.crash("account/b", CrashPoint::AfterPersist, false);
    bank.deliver(&["t > b: prepare +50"]);
    bank.lose("t > a: abort");
    bank.lose("t > b: abort");
    let second = bank.run("t", "a-50 b+50");
    (bank, [first, second])
}

#[test]
fn k2_abort_told_then_committed() {
    let (mut bank, [first, second]) = k2(Published);
    voted(&mut bank, "t");
    bank.deliver(&["a > t: yes", "b > t: yes @2"]);
    assert_eq!([bank.told(first), bank.told(second)], ["aborted", "committed"]);
    bank.deliver(&["t > a: commit", "t > b: commit"]);
    assert_eq!(bank.balances(), [50, 150, 100]);
    assert_eq!(bank.broken(), [Invariant::Stability, Invariant::SameOutcomeTold]);

    let (mut bank, [first, second]) = k2(Repaired);
    assert_eq!([bank.told(first), bank.told(second)], ["aborted", "aborted"]);
    bank.heal(&ALL);
    assert_eq!((bank.phase("t"), bank.balances()), ("done_abort", [100, 100, 100]));
    assert_eq!(bank.broken(), []);
}

#[test]
fn k3_two_runs_at_once() {
    let mut bank = Bank::new(Published);
    let first = bank.run("t", "a-50 b+50");
    let second = bank.run("t", "a-50 b+50");
    voted(&mut bank, "t");
    bank.deliver(&["a > t: yes", "b > t: yes", "t > a: commit", "a > t: commit · applied"]);
    bank.deliver(&["t > a: prepare -50", "a > t: yes"]);
    bank.fail("t > b: prepare +50");
    bank.world.advance(30);
    bank.deliver(&["t > b: abort", "t > b: commit", "t > a: abort"]);
    bank.deliver(&[
        "b > t: abort · applied",
        "b > t: commit · aborted",
        "a > t: abort · committed",
    ]);
    assert_eq!([bank.told(first), bank.told(second)], ["committed", "aborted"]);
    assert_eq!((bank.phase("t"), bank.holds("t")), ("done_abort", ["committed", "aborted"]));
    let broken = [
        Invariant::Agreement,
        Invariant::Stability,
        Invariant::MoneyConserved,
        Invariant::SameOutcomeTold,
    ];
    assert_eq!(bank.broken(), broken);

    let mut bank = Bank::new(Repaired);
    let first = bank.run("t", "a-50 b+50");
    let second = bank.run("t", "a-50 b+50");
    voted(&mut bank, "t");
    assert_eq!(bank.world.outbox(&node("transaction/t")), [], "one round for both");
    bank.deliver(&["a > t: yes", "b > t: yes"]);
    assert_eq!([bank.told(first), bank.told(second)], ["committed", "committed"]);
    bank.heal(&ALL);
    assert_eq!((bank.broken(), bank.balances()), (vec![], [50, 150, 100]));
}

#[test]
fn k4_the_alarm_that_decides_without_deciding() {
    let mut bank = Bank::new(Published);
    let first = bank.run("t", "a-50 b+50");
    bank.fail("t > a: prepare -50");
    bank.fail("t > b: prepare +50");
    bank.world.advance(30);
    bank.fail("t > a: abort");
    bank.fail("t > b: abort");
    let second = bank.run("t", "a-50 b+50");
    voted(&mut bank, "t");
    bank.deliver(&["a > t: yes"]);
    bank.ring("transaction/t");
    bank.deliver(&["t > a: abort", "t > b: abort"]);
    bank.deliver(&["a > t: abort · applied", "b > t: abort · applied"]);
    assert_eq!((bank.phase("t"), bank.told(second)), ("done_abort", "waits".to_owned()));
    bank.deliver(&["b > t: yes"]);
    bank.world.advance(60);
    assert_eq!([bank.told(first), bank.told(second)], ["aborted", "committed"]);
    assert_eq!((bank.phase("t"), bank.balances()), ("done_commit", [100, 100, 100]));
    let broken = [Invariant::Agreement, Invariant::Stability, Invariant::SameOutcomeTold];
    assert_eq!(bank.broken(), broken);

    let mut bank = Bank::new(Repaired);
    let run = bank.run("t", "a-50 b+50");
    voted(&mut bank, "t");
    bank.deliver(&["a > t: yes"]);
    bank.ring("transaction/t");
    assert_eq!((bank.told(run), bank.phase("t")), ("aborted".to_owned(), "abort"));
    bank.deliver(&["b > t: yes"]);
    assert_eq!(bank.phase("t"), "abort", "a late vote changes nothing");
    bank.heal(&ALL);
    assert_eq!((bank.phase("t"), bank.balances()), ("done_abort", [100, 100, 100]));
    assert_eq!(bank.broken(), []);
}

/// Everybody has acknowledged; the alarm is off; that it is done is lost.
fn k5(preset: Preset) -> Bank {
    let mut bank = Bank::new(preset);
    bank.crash("transaction/t", CrashPoint::BeforeDone, false);
    bank.run("t", "a-50 b+50");
    voted(&mut bank, "t");
    bank.deliver(&["a > t: yes", "b > t: yes", "t > a: commit", "t > b: commit"]);
    bank.deliver(&["a > t: commit · applied", "b > t: commit · applied"]);
    bank
}

#[test]
fn k5_the_alarm_is_off_and_nothing_is_done() {
    let mut bank = k5(Published);
    assert_eq!((bank.phase("t"), bank.txn("t").next_attempt_at_ms), ("commit", None));
    let run = bank.run("t", "a-50 b+50");
    bank.deliver(&["t > a: prepare -50", "a > t: yes"]);
    bank.fail("t > b: prepare +50");
    bank.world.advance(60);
    assert_eq!((bank.told(run), bank.phase("t")), ("aborted".to_owned(), "done_abort"));
    assert_eq!(bank.balances(), [50, 150, 100], "the caller will pay again");
    assert_eq!(
        bank.broken(),
        [Invariant::Agreement, Invariant::Stability, Invariant::SameOutcomeTold]
    );

    let mut bank = k5(Repaired);
    assert!(bank.txn("t").next_attempt_at_ms.is_some(), "done and the alarm: both or neither");
    let run = bank.run("t", "a-50 b+50");
    assert_eq!(bank.told(run), "committed");
    bank.heal(&ALL);
    assert_eq!((bank.phase("t"), bank.broken()), ("done_commit", vec![]));
}

#[test]
fn k6_nobody_set_the_alarm() {
    for (preset, phase, holds) in [
        (Published, "preparing", ["prepared", "prepared"]),
        (Repaired, "done_abort", ["aborted", "aborted"]),
    ] {
        let mut bank = Bank::new(preset);
        let run = bank.run("t", "a-50 b+50");
        voted(&mut bank, "t");
        bank.crash("transaction/t", CrashPoint::Now, false);
        assert_eq!(bank.told(run), "crashed");
        bank.heal(&ALL);
        assert_eq!((bank.phase("t"), bank.holds("t")), (phase, holds), "{preset:?}");
        assert_eq!(bank.broken(), []);
        let recover = bank.ask("transaction/t", Request::Recover(body("{}")));
        assert!(["recovering", "aborted"].contains(&&*bank.told(recover)));
        bank.world.advance(10_000);
        assert_eq!(bank.holds("t"), ["aborted", "aborted"], "by hand it ends in both");
    }
}

#[test]
fn k7_a_decision_without_an_alarm() {
    for (preset, phase, balances) in
        [(Published, "commit", [100, 100, 100]), (Repaired, "done_commit", [50, 150, 100])]
    {
        let mut bank = Bank::new(preset);
        bank.crash("transaction/t", CrashPoint::AfterDecision, false);
        let run = bank.run("t", "a-50 b+50");
        voted(&mut bank, "t");
        bank.deliver(&["a > t: yes", "b > t: yes"]);
        assert_eq!(bank.told(run), "crashed");
        bank.heal(&ALL);
        assert_eq!((bank.phase("t"), bank.balances()), (phase, balances), "{preset:?}");
    }
}

#[test]
fn k9_an_account_with_two_legs() {
    let mut bank = Bank::opened(Published);
    let run = bank.run("t", "a-50 a-30 b+80");
    bank.world.advance(30_000);
    assert_eq!((bank.told(run), bank.phase("t")), ("committed".to_owned(), "commit"));
    assert_eq!(bank.balances(), [50, 180, 100], "30 out of nothing");
    assert!(bank.txn("t").next_attempt_at_ms.is_some(), "and the alarm rings for ever");
    assert_eq!(bank.broken(), [Invariant::Validity, Invariant::MoneyConserved]);

    let mut bank = Bank::opened(Repaired);
    let run = bank.run("t", "a-50 a-30 b+80");
    assert_eq!(bank.told(run), "refused");
    assert_eq!(bank.txn("t"), Default::default(), "nothing was written");
}

#[test]
fn k10_the_same_name_for_other_legs() {
    for (preset, outcome) in [(Published, "committed"), (Repaired, "conflict")] {
        let mut bank = Bank::opened(preset);
        bank.run("t", "a-10 b+10");
        bank.world.advance(1_000);
        let other = bank.run("t", "a-90 b+90");
        assert_eq!((bank.told(other), bank.balances()), (outcome.to_owned(), [90, 110, 100]));
        if let Reply::Transaction(TxnReply::Conflict { difference }) = bank.reply(other) {
            assert_eq!(difference, "it has a -10 where the request has a -90");
        }
    }
}

#[test]
fn k11_a_losing_zombie_overwrites_the_winner() {
    let mut bank = Bank::new(Published);
    let first = bank.run("t", "a-50 b+50");
    let second = bank.run("t", "a-50 b+50");
    bank.deliver(&["t > b: prepare +50", "b > t: yes"]);
    bank.deliver(&["t > a: prepare -50 @2", "t > b: prepare +50"]);
    bank.deliver(&["a > t: yes", "b > t: yes"]);
    assert_eq!(bank.told(second), "committed");
    bank.deliver(&["t > a: prepare -50", "a > t: no · stale coordinator"]);
    bank.world.advance(30);
    assert_eq!(bank.told(first), "aborted");
    bank.deliver(&["t > a: abort", "a > t: abort · stale"]);
    assert_eq!(bank.phase("t"), "abort");
    assert_eq!(bank.broken(), [Invariant::Stability, Invariant::SameOutcomeTold]);
}

#[test]
fn k12_one_participant_that_never_answers() {
    let mut bank = Bank::new(Repaired);
    let run = bank.run("t", "a-50 b+50");
    bank.deliver(&["t > a: prepare -50", "a > t: yes"]);
    bank.lose("t > b: prepare +50");
    bank.world.advance(5_000);
    assert_eq!(bank.told(run), "aborted");
    let Reply::Transaction(TxnReply::Aborted { reason }) = bank.reply(run) else { panic!() };
    assert_eq!(reason, "vote_deadline");
    bank.deliver(&["t > a: abort", "a > t: abort · applied"]);
    assert_eq!(bank.txn("t").acked.len(), 1, "recorded, though the other is silent");

    let mut bank = Bank::new(Published);
    let run = bank.run("t", "a-50 b+50");
    bank.deliver(&["t > a: prepare -50", "a > t: yes"]);
    bank.lose("t > b: prepare +50");
    bank.heal(&ALL);
    assert_eq!((bank.told(run), bank.phase("t")), ("waits".to_owned(), "preparing"));
}

// ---- the participant (P1 to P9) --------------------------------------------------------

#[test]
fn p1_an_overdraft_by_two_honest_votes() {
    for (preset, second, balances) in
        [(Published, "committed", [-60, 180, 180]), (Repaired, "aborted", [20, 180, 100])]
    {
        let mut bank = Bank::new(preset);
        let run = bank.run("t", "a-80 b+80");
        let other = bank.run("t2", "a-80 c+80");
        bank.deliver(&["t > a: prepare -80", "t2 > a: prepare -80"]);
        bank.world.set_delivery(DeliveryMode::Auto);
        bank.world.advance(20_000);
        assert_eq!([bank.told(run), bank.told(other)], ["committed", second]);
        assert_eq!(bank.balances(), balances);
        let overdraft = bank.broken() == [Invariant::NoOverdraft];
        assert_eq!(overdraft, preset == Published, "{:?}", bank.broken());
    }
}

#[test]
fn p1_a_promised_credit_cannot_be_spent() {
    let mut bank = Bank::new(Repaired);
    bank.run("t", "a-80 b+80");
    bank.deliver(&["t > b: prepare +80"]);
    let other = bank.run("t2", "b-150 c+150");
    bank.deliver(&["t2 > b: prepare -150", "b > t2: no · insufficient funds"]);
    bank.deliver(&["t2 > c: prepare +150", "c > t2: yes"]);
    assert_eq!(bank.told(other), "aborted");
}

#[test]
fn p2_an_old_abort_undoes_a_later_round() {
    let mut bank = Bank::new(Published);
    bank.run("t", "a-50 b+50");
    bank.deliver(&["t > a: prepare -50", "a > t: yes"]);
    bank.fail("t > b: prepare +50");
    bank.world.advance(30);
    bank.lose("t > b: abort");
    let second = bank.run("t", "a-50 b+50");
    voted(&mut bank, "t");
    bank.deliver(&["a > t: yes", "b > t: yes", "t > b: commit", "b > t: commit · applied"]);
    bank.deliver(&["t > a: abort", "t > a: commit", "a > t: commit · aborted"]);
    assert_eq!((bank.told(second), bank.phase("t")), ("committed".to_owned(), "done_commit"));
    assert_eq!(bank.balances(), [100, 150, 100]);
    assert!(bank.broken().contains(&Invariant::MoneyConserved));
}

/// Both hold, COMMIT is durable, and a person aborts at `b`.
fn p3(preset: Preset) -> Bank {
    let mut bank = Bank::new(preset);
    bank.run("t", "a-50 b+50");
    voted(&mut bank, "t");
    bank.deliver(&["a > t: yes", "b > t: yes"]);
    let resolve = r#"{"transaction":"t","decision":"abort","reason":"the bank called"}"#;
    let resolved = bank.ask("account/b", Request::ResolveHold(body(resolve)));
    assert_eq!(bank.reply(resolved), Reply::Account(AccountReply::Resolved { balance: 100 }));
    bank.deliver(&["t > a: commit", "t > b: commit"]);
    bank.deliver(&["a > t: commit · applied", "b > t: commit · aborted"]);
    bank
}

#[test]
fn p3_a_false_acknowledgement() {
    let bank = p3(Published);
    assert_eq!((bank.phase("t"), bank.balances()), ("done_commit", [50, 100, 100]));

    let mut bank = p3(Repaired);
    assert_eq!((bank.phase("t"), bank.txn("t").is_mixed()), ("commit", true), "never done");
    let hold = bank.account("b").holds["t".try_into().as_ref().expect("a name")].clone();
    let heuristic = hold.heuristic.expect("it was a person");
    assert_eq!((heuristic.reason.as_str(), heuristic.mixed), ("the bank called", true));
    bank.heal(&ALL);
    assert_eq!((bank.phase("t"), bank.txn("t").next_attempt_at_ms), ("commit", None));
    assert_eq!(bank.broken(), [Invariant::Agreement, Invariant::MoneyConserved]);
    let forget = bank.ask("transaction/t", Request::Forget(body("{}")));
    assert_eq!(bank.told(forget), "forgotten", "which ends the incident");
}

#[test]
fn p7_an_account_that_was_never_opened() {
    for preset in [Published, Repaired] {
        let mut bank = Bank::opened(preset);
        let run = bank.run("t", "a-50 z+50");
        bank.world.advance(1_000);
        let Reply::Transaction(TxnReply::Aborted { reason }) = bank.reply(run) else { panic!() };
        assert_eq!((reason.as_str(), bank.balances()), ("not_opened: z", [100, 100, 100]));
    }
}

#[test]
fn p8_whoever_is_in_doubt_asks() {
    let mut bank = Bank::opened(Repaired);
    bank.crash("transaction/t", CrashPoint::AfterDecision, true);
    bank.run("t", "a-30 b+30");
    bank.world.advance(20_000);
    assert_eq!(bank.holds("t"), ["prepared", "prepared"]);
    let account = bank.account("a");
    assert_eq!((account.reserved(), account.available(), account.balance), (30, 70, Some(100)));
    let (txn, hold) = account.in_doubt().next().expect("in doubt");
    assert_eq!((txn.as_str(), hold.n_inquiries), ("t", 3));
    assert_eq!(hold.last_error.as_deref(), Some("the coordinator could not be reached"));
    let other = bank.run("t2", "a-80 c+80");
    bank.world.advance(1_000);
    assert_eq!(bank.told(other), "aborted", "70 are available");
    bank.suppress("transaction/t");
    bank.control("transaction/t", Control::Restart);
    bank.world.advance(3_000);
    assert_eq!(bank.balances(), [70, 130, 100], "what waited in the outbox, or the inquiry");
    bank.heal(&ALL);
    assert_eq!((bank.phase("t"), bank.broken()), ("done_commit", vec![]));
}

#[test]
fn p8_an_inquiry_decides_nothing() {
    let mut bank = Bank::new(Repaired);
    bank.suppress("transaction/t");
    bank.run("t", "a-50 b+50");
    bank.deliver(&["t > a: prepare -50"]);
    bank.world.advance(3_000);
    bank.deliver(&["a > t: what was decided?", "t > a: not decided"]);
    assert_eq!((bank.phase("t"), bank.holds("t")), ("preparing", ["prepared", "-"]));
    let error = bank.account("a").holds.values().next().and_then(|hold| hold.last_error.clone());
    assert_eq!(error.as_deref(), Some("the coordinator has not decided"));
}

#[test]
fn p9_what_is_over_everywhere_is_forgotten() {
    let mut bank = Bank::new(Repaired);
    bank.run("t", "a-50 b+50");
    let forget = bank.ask("transaction/t", Request::Forget(body("{}")));
    let Reply::Transaction(TxnReply::Refused { reason }) = bank.reply(forget) else { panic!() };
    assert_eq!(reason, "it is preparing, and 2 have not acknowledged");
    bank.heal(&ALL);
    let forget = bank.ask("transaction/t", Request::Forget(body("{}")));
    assert_eq!(bank.told(forget), "forgotten");
    bank.world.advance(1_000);
    assert_eq!(bank.holds("t"), ["committed", "committed"], "not at once");
    bank.world.advance(61_000);
    assert_eq!(bank.holds("t"), ["-", "-"]);
    let again = bank.run("t", "a-50 b+50");
    assert_eq!((bank.told(again), bank.balances()), ("committed".to_owned(), [50, 150, 100]));
}

#[test]
fn n7_a_prepare_that_comes_after_its_abort() {
    for (tombstone, holds) in [(true, ["aborted", "aborted"]), (false, ["prepared", "aborted"])] {
        let mut bank = Bank::new(Published);
        bank.rule("account/a", "abort_tombstone", tombstone);
        bank.run("t", "a-50 b+50");
        bank.duplicate("t > a: prepare -50");
        bank.fail("t > a: prepare -50");
        bank.deliver(&["t > b: prepare +50", "b > t: yes"]);
        bank.deliver(&["t > a: abort", "a > t: abort · unknown"]);
        bank.deliver(&["t > b: abort", "b > t: abort · applied"]);
        assert_eq!(bank.phase("t"), "done_abort");
        bank.deliver(&["t > a: prepare -50"]);
        assert_eq!(bank.holds("t"), holds);
        let is_left = bank.broken() == [Invariant::NothingLeftPrepared];
        assert_eq!(is_left, !tombstone, "{:?}", bank.broken());
    }
}

// ---- crashes and faults ----------------------------------------------------------------

#[test]
fn every_crash_point_ends_in_one_outcome_once_healed() {
    let points = CrashPoint::ALL.into_iter().filter(|at| *at != CrashPoint::Now);
    for at in points {
        for n in 1..=2 {
            for stay_down in [false, true] {
                let mut bank = Bank::opened(Repaired);
                let n = at.is_counted().then_some(n);
                bank.control("transaction/t", Control::Crash(Crash { at, stay_down, n }));
                bank.run("t", "a-30 b+30");
                bank.world.advance(4_000);
                assert_eq!(
                    bank.count(|kind| matches!(kind, TraceKind::Crashed { .. })),
                    1,
                    "{at:?} is passed"
                );
                bank.heal(&ALL);
                let again = bank.run("t", "a-30 b+30");
                bank.world.advance(10_000);
                let balances = match &*bank.told(again) {
                    "committed" => [70, 130, 100],
                    "aborted" => [100, 100, 100],
                    other => panic!("{at:?}: {other}"),
                };
                assert_eq!(bank.balances(), balances, "{at:?} {n:?} {stay_down}");
                let is_over = ["done_commit", "done_abort"].contains(&bank.phase("t"));
                assert!(is_over && !bank.holds("t").contains(&"prepared"), "{at:?}");
                assert_eq!(bank.broken(), [], "{at:?} {n:?} {stay_down}");
            }
        }
    }
}

// ---- random schedules ------------------------------------------------------------------

const N_SEEDS: u64 = 500;

/// Accounts of a lab that has settled: whether anything is still held, and the money.
fn settled(bank: &Bank) -> (bool, i64) {
    let accounts = ["a", "b", "c"].map(|name| bank.account(name));
    let is_held = accounts.iter().any(|account| account.in_doubt().next().is_some());
    (is_held, accounts.iter().filter_map(|account| account.balance).sum())
}

#[test]
fn random_schedules_break_nothing_and_leave_nothing() {
    let (mut n_done, mut n_committed, mut n_crashes, mut n_lost) = (0, 0, 0, 0);
    for seed in 0..N_SEEDS {
        let bank = random::run(seed, Repaired);
        assert_eq!(bank.broken(), [], "seed {seed}");
        assert_eq!(settled(&bank), (false, 300), "seed {seed}");
        n_done += bank.count(|kind| matches!(kind, TraceKind::TransactionDone { .. }));
        n_committed += bank.count(|kind| matches!(kind, TraceKind::HoldCommitted { .. }));
        n_crashes += bank.count(|kind| matches!(kind, TraceKind::Crashed { .. }));
        n_lost += bank.count(|kind| matches!(kind, TraceKind::MessageDropped { .. }));
    }
    let counts = [n_done, n_committed, n_crashes, n_lost];
    let enough = counts.iter().all(|n| *n as u64 > N_SEEDS / 2);
    assert!(enough, "done, committed, crashes, lost: {counts:?}");
}

#[test]
fn random_schedules_break_the_published_code() {
    let mut broken = std::collections::BTreeSet::new();
    let mut n_held = 0;
    for seed in 0..N_SEEDS {
        let bank = random::run(seed, Published);
        broken.extend(bank.broken());
        n_held += u64::from(settled(&bank).0);
    }
    let expected = [
        Invariant::Agreement,
        Invariant::Stability,
        Invariant::NothingLeftPrepared,
        Invariant::NoOverdraft,
        Invariant::MoneyConserved,
        Invariant::SameOutcomeTold,
    ];
    assert_eq!(broken, expected.into());
    assert!(n_held > N_SEEDS / 10, "in doubt for ever: {n_held}");
}

#[test]
fn the_same_seed_gives_the_same_log() {
    let (one, two) = (random::run(7, Repaired), random::run(7, Repaired));
    assert!(one.world.log() == two.world.log());
    assert!(one.world.log() != random::run(8, Repaired).world.log());
}
