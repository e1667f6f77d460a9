//! One coordinator, answer by answer.

use super::*;
use crate::rules::Rules;
use crate::transaction::Leg;

struct Desk {
    coordinator: TxnCoordinator,
    now_ms: u64,
    sent: Vec<String>,
    told: Vec<TxnReply>,
}

fn name(text: &str) -> Name {
    text.try_into().expect("a name")
}

fn run_of(legs: &[(&str, i64)]) -> TxnInput {
    let leg = |(account, delta): &(&str, i64)| Leg {
        account: name(account),
        delta: (*delta).try_into().expect("a delta"),
    };
    let legs: Vec<_> = legs.iter().map(leg).collect();
    TxnInput::Run(Run { legs: legs.try_into().expect("they add up"), vote_within_ms: None })
}

impl Desk {
    fn new(rules: TwoPhaseRules) -> Self {
        let coordinator = TxnCoordinator::restore(None, rules);
        Self { coordinator, now_ms: 1_000, sent: Vec::new(), told: Vec::new() }
    }

    /// One step and its second halves.
    fn step(&mut self, input: TxnInput) {
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            let before = self.coordinator.record().clone();
            let mut effects = Effects::<TxnCoordinator>::new();
            self.coordinator.step(self.now_ms, input, &mut effects);
            let persists = matches!(effects.first(), Some(Effect::Persist(_)));
            assert_eq!(persists, before != *self.coordinator.record(), "persisted, and first");
            for effect in effects {
                match effect {
                    Effect::Send { to, message } => {
                        self.sent.push(format!("{}: {message}", to.name()));
                    }
                    Effect::Reply(reply) | Effect::Answer(_, reply) => self.told.push(reply),
                    Effect::Defer(input) => inputs.push(input),
                    Effect::Persist(_) | Effect::Record(..) | Effect::Await(_) => {}
                }
            }
        }
    }

    fn run(&mut self) {
        self.step(run_of(&[("a", -30), ("b", 30)]));
    }

    fn vote(&mut self, account: &str, attempt: u64, vote: Vote) {
        let leg = u64::from(account == "b");
        let message = Message::Vote { leg, fence: 1, attempt, vote };
        self.step(TxnInput::Received(name(account), message));
    }

    fn ack(&mut self, account: &str, decision: Decision, answer: Answer) {
        let attempt = self.coordinator.record().attempts;
        let message = Message::Ack { decision, attempt, answer };
        self.step(TxnInput::Received(name(account), message));
    }

    fn sent(&mut self) -> Vec<String> {
        std::mem::take(&mut self.sent)
    }

    fn phase(&self) -> Phase {
        self.coordinator.record().phase
    }

    /// Prepared at both, COMMIT recorded and told.
    fn committed(rules: TwoPhaseRules) -> Self {
        let mut desk = Self::new(rules);
        desk.run();
        desk.vote("a", 1, Vote::Yes);
        desk.vote("b", 1, Vote::Yes);
        assert_eq!(desk.phase(), Phase::Commit);
        desk.sent();
        desk
    }
}

fn repaired() -> TwoPhaseRules {
    TwoPhaseRules::repaired()
}

fn published() -> TwoPhaseRules {
    TwoPhaseRules::published()
}

#[test]
fn it_asks_decides_tells_and_is_done() {
    for rules in [published(), repaired()] {
        let mut desk = Desk::new(rules);
        desk.run();
        assert_eq!(desk.sent(), ["a: prepare -30", "b: prepare +30"]);
        assert_eq!(desk.coordinator.next_deadline().is_some(), rules.alarm_with_preparing);
        desk.vote("a", 1, Vote::Yes);
        assert_eq!((desk.sent(), desk.told.len()), (vec![], 0));
        desk.vote("b", 1, Vote::Yes);
        assert_eq!(desk.sent(), ["a: commit", "b: commit"]);
        assert_eq!(desk.told, [TxnReply::Committed { n_pending: 2 }]);
        desk.ack("a", Decision::Commit, Answer::Applied);
        desk.ack("b", Decision::Commit, Answer::Already);
        assert_eq!((desk.phase(), desk.coordinator.next_deadline()), (Phase::DoneCommit, None));
        assert!(desk.coordinator.flights.is_empty());
    }
}

#[test]
fn one_no_or_one_failed_call_aborts() {
    for rules in [published(), repaired()] {
        let mut desk = Desk::new(rules);
        desk.run();
        desk.vote("a", 1, Vote::No(NoReason::InsufficientFunds));
        desk.vote("b", 1, Vote::Yes);
        let reason = "insufficient_funds: a".to_owned();
        assert_eq!(desk.told, [TxnReply::Aborted { reason }]);
        let mut desk = Desk::new(rules);
        desk.run();
        desk.vote("a", 1, Vote::Yes);
        let failed = Message::Prepare { leg: 1, delta: 30, fence: 1, attempt: 1 };
        desk.step(TxnInput::Undelivered(name("b"), failed));
        assert_eq!(desk.told, [TxnReply::Aborted { reason: "unreachable: b".to_owned() }]);
        desk.ack("a", Decision::Abort, Answer::Applied);
        desk.ack("b", Decision::Abort, Answer::Unknown);
        assert_eq!(desk.phase(), Phase::DoneAbort);
    }
}

#[test]
fn a_vote_counts_once_for_its_own_round_and_leg() {
    let mut desk = Desk::new(repaired());
    desk.run();
    desk.vote("a", 1, Vote::Yes);
    desk.vote("a", 1, Vote::Yes);
    desk.vote("b", 2, Vote::Yes);
    let stranger = Message::Vote { leg: 1, fence: 1, attempt: 1, vote: Vote::Yes };
    desk.step(TxnInput::Received(name("z"), stranger));
    assert_eq!(desk.phase(), Phase::Preparing);
    desk.vote("b", 1, Vote::Yes);
    assert_eq!(desk.phase(), Phase::Commit);
}

#[test]
fn a_crash_ends_what_waits_and_the_next_caller_goes_on() {
    let mut desk = Desk::new(repaired());
    desk.run();
    desk.vote("a", 1, Vote::Yes);
    let record = desk.coordinator.record().clone();
    desk.coordinator = TxnCoordinator::restore(Some(record), repaired());
    desk.sent();
    desk.vote("b", 1, Vote::Yes);
    assert_eq!(desk.phase(), Phase::Preparing, "nobody waits for it");
    desk.run();
    assert_eq!(desk.sent(), ["a: prepare -30", "b: prepare +30"], "asked again, in a new round");
    assert_eq!((desk.coordinator.record().fence, desk.coordinator.record().attempts), (2, 2));
    desk.vote("a", 2, Vote::Yes);
    desk.vote("b", 2, Vote::Yes);
    assert_eq!(desk.told, [TxnReply::Committed { n_pending: 2 }]);
}

#[test]
fn the_alarm_goes_on_with_longer_and_longer_pauses() {
    let mut desk = Desk::committed(repaired());
    let mut pauses = Vec::new();
    for _ in 0..7 {
        let at_ms = desk.coordinator.next_deadline().expect("it goes on");
        pauses.push(at_ms - desk.now_ms);
        desk.step(TxnInput::Tick);
        assert_eq!(desk.sent(), [""; 0], "an alarm that is early changes nothing");
        desk.now_ms = at_ms;
        desk.step(TxnInput::Tick);
        assert_eq!(desk.sent(), ["a: commit", "b: commit"]);
    }
    assert_eq!(pauses, [2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
    assert_eq!(desk.coordinator.record().fence, 8, "a round for each activation");
    desk.ack("a", Decision::Commit, Answer::Applied);
    desk.step(TxnInput::Recover);
    assert_eq!(desk.sent(), ["b: commit"], "only who has not acknowledged");
}

#[test]
fn only_a_positive_answer_acknowledges() {
    let cases = [
        (Answer::Applied, true, false),
        (Answer::Already, true, false),
        (Answer::Unknown, false, false),
        (Answer::Stale, false, false),
        (Answer::Aborted, false, true),
        (Answer::Committed, false, false),
    ];
    for (answer, is_done, is_mixed) in cases {
        let mut desk = Desk::committed(repaired());
        desk.ack("a", Decision::Commit, Answer::Applied);
        desk.ack("b", Decision::Commit, answer);
        let record = desk.coordinator.record();
        assert_eq!(record.phase == Phase::DoneCommit, is_done, "{answer:?}");
        assert_eq!(record.is_mixed(), is_mixed, "{answer:?}");
        assert_eq!(record.next_attempt_at_ms.is_none(), is_done || is_mixed, "{answer:?}");

        let mut desk = Desk::committed(published());
        desk.ack("a", Decision::Commit, Answer::Applied);
        desk.ack("b", Decision::Commit, answer);
        assert_eq!(desk.phase(), Phase::DoneCommit, "P3, P4: any answer will do");
    }
}

#[test]
fn an_inquiry_is_answered_and_decides_nothing() {
    let ask = |desk: &mut Desk| {
        let before = desk.coordinator.record().clone();
        desk.step(TxnInput::Received(name("a"), Message::Inquire { fence: 1 }));
        assert_eq!(*desk.coordinator.record(), before, "FC-20: it is read");
        desk.sent().pop().expect("an answer")
    };
    let mut desk = Desk::new(repaired());
    assert_eq!(ask(&mut desk), "a: it is abort", "presumed");
    desk.run();
    assert_eq!(ask(&mut desk), "a: not decided");
    let mut desk = Desk::committed(repaired());
    assert_eq!(ask(&mut desk), "a: it is commit");
    desk.ack("a", Decision::Commit, Answer::Applied);
    desk.ack("b", Decision::Commit, Answer::Applied);
    assert_eq!(ask(&mut desk), "a: it is commit");
    desk.step(TxnInput::Forget);
    desk.sent();
    assert_eq!(ask(&mut desk), "a: it is abort", "whoever still asks came too late");
}

#[test]
fn what_makes_no_sense_is_refused_and_nothing_is_written() {
    let mut desk = Desk::new(repaired());
    let resolve = || {
        let reason = "why not".to_owned().try_into().expect("a reason");
        TxnInput::Resolve(ResolveLeg { account: name("z"), decision: Decision::Abort, reason })
    };
    for input in [
        run_of(&[("a", -50), ("a", -30), ("b", 80)]),
        TxnInput::Recover,
        TxnInput::Forget,
        resolve(),
    ] {
        desk.step(input);
        assert_eq!(*desk.coordinator.record(), TxnRecord::default());
        assert!(matches!(desk.told.pop(), Some(TxnReply::Refused { .. })));
    }
    let mut desk = Desk::committed(repaired());
    desk.told.clear();
    for (legs, difference) in [
        (&[("a", -31), ("b", 31)][..], "it has a -30 where the request has a -31"),
        (&[("b", 30), ("a", -30)], "it has a -30 where the request has b +30"),
        (&[("a", -30), ("b", 30), ("c", 5), ("d", -5)], "it has 2 legs and the request has 4"),
    ] {
        desk.step(run_of(legs));
        let difference = difference.to_owned();
        assert_eq!(desk.told.pop(), Some(TxnReply::Conflict { difference }));
        assert_eq!(desk.sent(), [""; 0]);
    }
}

#[test]
fn a_caller_that_has_waited_too_long_is_told_how_it_stands() {
    let mut desk = Desk::new(repaired());
    desk.run();
    assert_eq!(desk.coordinator.gave_up(3_500), Some(TxnReply::InDoubt { age_ms: 2_500 }));
    let desk = Desk::committed(repaired());
    assert_eq!(desk.coordinator.gave_up(9_000), Some(TxnReply::Committed { n_pending: 2 }));
}

#[test]
fn the_record_survives_its_rows() {
    use crate::table::Tabled;
    let mut desk = Desk::committed(repaired());
    desk.ack("a", Decision::Commit, Answer::Applied);
    let half = desk.coordinator.record().clone();
    desk.ack("b", Decision::Commit, Answer::Aborted);
    let resolved = Message::Resolved { decision: Decision::Abort, answer: Answer::Applied };
    desk.step(TxnInput::Received(name("b"), resolved));
    for record in [TxnRecord::default(), half, desk.coordinator.record().clone()] {
        assert_eq!(TxnRecord::from_rows(&record.to_rows()), Some(record));
    }
}
