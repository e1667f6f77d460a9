//! Two-phase commit in the simulated lab: each schedule of the review, published and
//! repaired, with every message in our hands.
#![allow(unreachable_pub, dead_code, reason = "a test binary exports nothing")]

#[path = "two_phase/bank.rs"]
mod bank;

use bank::{Bank, body, node};
use protocol::control::{Control, Crash};
use protocol::invariant::Invariant;
use protocol::object::{Reply, Request};
use protocol::rules::Preset;
use protocol::trace::{CrashPoint, DeliveryMode};
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
