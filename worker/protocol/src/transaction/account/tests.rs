//! One account, message by message.

use super::*;

struct Bank {
    account: Account,
    now_ms: u64,
}

fn txn() -> Name {
    "t".try_into().expect("a name")
}

impl Bank {
    fn new(rules: TwoPhaseRules, balance: i64) -> Self {
        let record = AccountRecord { balance: Some(balance), holds: BTreeMap::new() };
        Self { account: Account::restore(Some(record), rules), now_ms: 1_000 }
    }

    fn step(
        &mut self,
        input: AccountInput,
    ) -> Vec<Effect<AccountRecord, AccountReply, AccountInput>> {
        let before = self.account.record().clone();
        let mut effects = Effects::<Account>::new();
        self.account.step(self.now_ms, input, &mut effects);
        let persists = matches!(effects.first(), Some(Effect::Persist(_)));
        assert_eq!(persists, before != *self.account.record(), "persisted, and first");
        effects
    }

    /// What it answers to a message; `None` for nothing.
    fn tell(&mut self, message: Message) -> Option<Message> {
        let effects = self.step(AccountInput::Received(txn(), message));
        effects.into_iter().find_map(|effect| match effect {
            Effect::Send { message, .. } => Some(message),
            _ => None,
        })
    }

    fn prepare(&mut self, delta: i64, fence: u64) -> Vote {
        self.prepare_leg(0, delta, fence)
    }

    fn prepare_leg(&mut self, leg: u64, delta: i64, fence: u64) -> Vote {
        match self.tell(Message::Prepare { leg, delta, fence, attempt: 7 }) {
            Some(Message::Vote { leg: voted, fence: same, attempt: 7, vote }) => {
                assert_eq!((voted, same), (leg, fence));
                vote
            }
            other => panic!("no vote: {other:?}"),
        }
    }

    fn decide(&mut self, decision: Decision, fence: u64) -> Answer {
        let message = match decision {
            Commit => Message::Commit { fence, attempt: 8 },
            Abort => Message::Abort { fence, attempt: 8 },
        };
        match self.tell(message) {
            Some(Message::Ack { decision: about, attempt: 8, answer }) if about == decision => {
                answer
            }
            other => panic!("no answer: {other:?}"),
        }
    }

    fn resolve(&mut self, decision: Decision) -> AccountReply {
        let reason = Reason::try_from("the bank called".to_owned()).expect("a reason");
        let resolve = ResolveHold { transaction: txn(), decision, reason };
        let effects = self.step(AccountInput::Resolve(resolve));
        let reply = effects.into_iter().find_map(|effect| match effect {
            Effect::Reply(reply) => Some(reply),
            _ => None,
        });
        reply.expect("a reply")
    }

    fn balance(&self) -> i64 {
        self.account.record().balance.expect("it is open")
    }

    fn hold(&self) -> &Hold {
        &self.account.record().holds[&txn()]
    }
}

use crate::rules::Rules;
use Answer::{Aborted, Already, Applied, Committed, Stale, Unknown};
use Decision::{Abort, Commit};

fn repaired() -> TwoPhaseRules {
    TwoPhaseRules::repaired()
}

fn published() -> TwoPhaseRules {
    TwoPhaseRules::published()
}

#[test]
fn every_decision_meets_every_hold() {
    // What the hold is, the decision and its fence against the hold's 5, and the answer.
    let cases = [
        ("none", Commit, 5, Unknown, 100),
        ("none", Abort, 5, Unknown, 100),
        ("prepared", Commit, 5, Applied, 70),
        ("prepared", Commit, 6, Applied, 70),
        ("prepared", Commit, 4, Stale, 100),
        ("prepared", Abort, 5, Applied, 100),
        ("prepared", Abort, 4, Stale, 100),
        ("committed", Commit, 5, Already, 70),
        ("committed", Commit, 4, Already, 70),
        ("committed", Abort, 6, Committed, 70),
        ("committed", Abort, 4, Stale, 70),
        ("aborted", Commit, 6, Aborted, 100),
        ("aborted", Abort, 5, Already, 100),
        ("aborted", Abort, 4, Stale, 100),
    ];
    for (hold, decision, fence, answer, balance) in cases {
        for rules in [published(), repaired()] {
            let mut bank = Bank::new(rules, 100);
            if hold != "none" {
                assert_eq!(bank.prepare(-30, 5), Vote::Yes);
            }
            match hold {
                "committed" => assert_eq!(bank.decide(Commit, 5), Applied),
                "aborted" => assert_eq!(bank.decide(Abort, 5), Applied),
                _ => {}
            }
            let found = (bank.decide(decision, fence), bank.balance());
            assert_eq!(found, (answer, balance), "{hold} {decision} {fence}");
        }
    }
}

#[test]
fn an_abort_of_nothing_is_remembered() {
    for (on, vote) in [(true, Vote::No(NoReason::AlreadyAborted)), (false, Vote::Yes)] {
        let mut bank = Bank::new(TwoPhaseRules { abort_tombstone: on, ..repaired() }, 100);
        assert_eq!(bank.decide(Abort, 1), Unknown);
        assert_eq!(bank.prepare(-30, 1), vote);
    }
}

#[test]
fn a_prepare_that_comes_again_must_be_the_same() {
    let mut bank = Bank::new(repaired(), 100);
    assert_eq!(bank.prepare(-50, 1), Vote::Yes);
    assert_eq!(bank.prepare(-50, 1), Vote::Yes, "twice is once");
    assert_eq!(bank.account.record().reserved(), 50);
    assert_eq!(bank.prepare(-90, 1), Vote::No(NoReason::OtherLeg));
    assert_eq!(bank.prepare_leg(1, -50, 1), Vote::No(NoReason::OtherLeg));
    bank.decide(Commit, 1);
    assert_eq!(bank.prepare(-50, 2), Vote::No(NoReason::AlreadyCommitted));

    let mut bank = Bank::new(published(), 100);
    assert_eq!(bank.prepare(-50, 1), Vote::Yes);
    assert_eq!(bank.prepare(-90, 1), Vote::Yes, "P5: yes to 90");
    bank.decide(Commit, 1);
    assert_eq!((bank.balance(), bank.prepare(-50, 2)), (50, Vote::Yes), "and 50 are taken");
}

#[test]
fn the_fence_rises_with_each_round() {
    for (rules, fence, answer) in [(repaired(), 2, Stale), (published(), 1, Applied)] {
        let mut bank = Bank::new(rules, 100);
        bank.prepare(-50, 1);
        bank.prepare(-50, 2);
        assert_eq!(bank.hold().fence, fence);
        assert_eq!(bank.decide(Abort, 1), answer, "P2: an abort of the first round");
        assert_eq!(bank.prepare(-50, 0), Vote::No(NoReason::StaleCoordinator));
    }
}

#[test]
fn what_is_not_there_is_not_promised() {
    let mut bank = Bank::new(repaired(), 100);
    assert_eq!(bank.prepare(-101, 1), Vote::No(NoReason::InsufficientFunds));
    assert_eq!(bank.hold().state, HoldState::Aborted, "and it stays no");
    assert_eq!(bank.prepare(-101, 2), Vote::No(NoReason::AlreadyAborted));
    let mut bank = Bank::new(repaired(), 100);
    assert_eq!(bank.prepare(-100, 1), Vote::Yes);
    let mut bank = Bank::new(repaired(), MAX_SAFE_INTEGER as i64);
    assert_eq!(bank.prepare(1, 1), Vote::No(NoReason::Full), "the safe range ends");
    let mut bank = Bank { account: Account::restore(None, repaired()), now_ms: 0 };
    assert_eq!(bank.prepare(1, 1), Vote::No(NoReason::NotOpened));
    assert_eq!(*bank.account.record(), AccountRecord::default(), "nothing was written");
}

#[test]
fn an_account_remembers_so_many_transactions() {
    let mut bank = Bank::new(repaired(), 1_000);
    for n in 0..HOLDS_MAX {
        let name = Name::try_from(format!("t{n}")).expect("a name");
        let prepare = Message::Prepare { leg: 0, delta: -1, fence: 1, attempt: 1 };
        bank.step(AccountInput::Received(name, prepare));
    }
    assert_eq!(bank.prepare(-1, 1), Vote::No(NoReason::Full));
}

#[test]
fn a_person_decides_and_both_facts_are_kept() {
    let mut bank = Bank::new(repaired(), 100);
    assert_eq!(bank.resolve(Commit), AccountReply::Unknown);
    bank.prepare(-30, 1);
    assert_eq!(bank.resolve(Commit), AccountReply::Resolved { balance: 70 });
    assert_eq!(bank.resolve(Commit), AccountReply::Already { balance: 70 });
    assert_eq!(bank.resolve(Abort), AccountReply::Conflict { decision: Commit });
    assert_eq!(bank.decide(Commit, 1), Already);
    assert!(!bank.hold().heuristic.as_ref().expect("by hand").mixed, "it was right");
    assert_eq!(bank.decide(Abort, 1), Committed);
    assert!(bank.hold().heuristic.as_ref().expect("by hand").mixed);
    let mut bank = Bank::new(repaired(), 100);
    bank.prepare(-30, 1);
    assert_eq!(bank.resolve(Abort), AccountReply::Resolved { balance: 100 });
    assert_eq!(bank.resolve(Commit), AccountReply::Conflict { decision: Abort });
}

#[test]
fn whoever_is_in_doubt_asks_with_longer_and_longer_pauses() {
    let mut bank = Bank::new(repaired(), 100);
    bank.prepare(-30, 1);
    let mut pauses = Vec::new();
    for _ in 0..7 {
        let at_ms = bank.account.next_deadline().expect("it asks");
        pauses.push(at_ms - bank.now_ms);
        bank.now_ms = at_ms;
        let effects = bank.step(AccountInput::Tick);
        let asks = effects.iter().any(|effect| {
            matches!(effect, Effect::Send { message: Message::Inquire { fence: 1 }, .. })
        });
        assert!(asks, "{effects:?}");
    }
    assert_eq!(pauses, [2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
    assert_eq!(bank.tell(Message::Status { decision: None, fence: 1 }), None);
    assert_eq!(bank.hold().state, HoldState::Prepared, "it never decides alone");
    let told = bank.tell(Message::Status { decision: Some(Commit), fence: 1 });
    assert!(matches!(told, Some(Message::Ack { answer: Applied, .. })), "{told:?}");
    assert_eq!((bank.balance(), bank.account.next_deadline()), (70, None));

    let mut bank = Bank::new(published(), 100);
    bank.prepare(-30, 1);
    assert_eq!(bank.account.next_deadline(), None, "P8: the paper's account waits");
}

#[test]
fn what_may_be_forgotten_is_kept_a_while() {
    let mut bank = Bank::new(repaired(), 100);
    bank.prepare(-30, 1);
    bank.tell(Message::Forget);
    assert_eq!(bank.hold().forget_at_ms, None, "what is in doubt is not forgotten");
    bank.decide(Commit, 1);
    bank.tell(Message::Forget);
    let at_ms = bank.account.next_deadline().expect("it is dropped");
    assert_eq!(at_ms, 1_000 + RETENTION_MS);
    bank.now_ms = at_ms;
    bank.step(AccountInput::Tick);
    assert!(bank.account.record().holds.is_empty());
}

#[test]
fn each_transaction_touches_its_own_hold_only() {
    let mut bank = Bank::new(repaired(), 100);
    bank.prepare(-30, 1);
    let other = Name::try_from("other").expect("a name");
    bank.step(AccountInput::Received(other.clone(), Message::Abort { fence: 9, attempt: 1 }));
    bank.step(AccountInput::Received(other, Message::Commit { fence: 9, attempt: 1 }));
    assert_eq!((bank.hold().state, bank.balance()), (HoldState::Prepared, 100), "FC-19");
}

#[test]
fn the_record_survives_its_rows() {
    use crate::table::Tabled;
    let mut bank = Bank::new(repaired(), 100);
    bank.prepare(-30, 3);
    bank.step(AccountInput::Undelivered(txn()));
    let in_doubt = bank.account.record().clone();
    bank.resolve(Abort);
    bank.decide(Commit, 3);
    bank.tell(Message::Forget);
    for record in [AccountRecord::default(), in_doubt, bank.account.record().clone()] {
        assert_eq!(AccountRecord::from_rows(&record.to_rows()), Some(record));
    }
    assert_eq!(AccountRecord::from_rows(&[Vec::new(), Vec::new()]), None);
}

#[test]
fn a_number_that_would_be_rounded_is_never_seen() {
    let prepare = |delta, fence| Message::Prepare { leg: 0, delta, fence, attempt: 1 };
    assert!(is_safe(&prepare(-5, 1)) && is_safe(&Message::Forget));
    assert!(!is_safe(&prepare(MAX_SAFE_INTEGER as i64 + 1, 1)));
    assert!(!is_safe(&prepare(5, MAX_SAFE_INTEGER + 1)));
}
