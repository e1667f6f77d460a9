//! One transaction over a few accounts, as a state space: a network that overtakes, loses,
//! repeats and fails, callers that come twice, an alarm, crashes.
//!
//! The coordinator is the machine itself with what it has in memory; a crash leaves its
//! record. Accounts have nothing in memory, so their crashes are failures of calls: before
//! the step, or after it. Time stands still: an alarm that is set may ring at any moment.

use std::fmt;

use protocol::ids::{Name, NodeId, Value};
use protocol::machine::{Effect, Effects, Machine};
use protocol::trace::TraceKind;
use protocol::transaction::account::{Account, AccountInput, AccountRecord, HoldState};
use protocol::transaction::coordinator::{Phase, Run, TxnCoordinator, TxnInput, TxnReply};
use protocol::transaction::message::Message;
use protocol::transaction::{Decision, Leg, Legs, TwoPhaseRules};
use stateright::{Model, Property};

use super::claims::claims;

claims! {
    Transfer, Bank;
    /// AC1: no leg ends otherwise than another, or than what is decided.
    Agreement: always "agreement",
    /// AC2: it commits only when everybody holds its leg.
    Validity: always "validity",
    /// AC3: what was decided is never decided otherwise.
    Stability: always "stability",
    /// AC4: whoever is in doubt has somebody to wait for.
    NobodyStuck: always "nobody is stuck in doubt",
    /// AC4: when it is over, nothing is held.
    NothingLeft: always "nothing left prepared",
    /// Callers are told the same.
    SameTold: always "the same is told",
    /// A caller is told what is decided, and not before.
    ToldWhatIsDecided: always "told what is decided",
    /// It commits everywhere and is done.
    Commits: sometimes "commits",
    /// It aborts and is done.
    Aborts: sometimes "aborts",
    /// A vote comes when nobody waits for it.
    LateVote: sometimes "a late vote",
    /// An account is in doubt after the coordinator has crashed.
    InDoubt: sometimes "in doubt without a coordinator",
    /// Two callers are answered.
    TwoTold: sometimes "two are told",
}

/// What is explored.
#[derive(Clone, Debug)]
pub struct Transfer {
    pub rules: TwoPhaseRules,
    pub n_accounts: u8,
    /// The last account has not enough and votes No.
    pub says_no: bool,
    pub n_runs: u8,
    pub n_crashes: u8,
    pub n_rings: u8,
    /// Calls that fail, before or after they took effect.
    pub n_failures: u8,
    /// Messages lost without a word.
    pub n_losses: u8,
    /// Messages that come twice.
    pub n_duplicates: u8,
    /// Inquiries of accounts in doubt.
    pub n_inquiries: u8,
    pub claims: Vec<Claim>,
}

/// A message on its way, to or from the account of this index.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wire {
    To(u8, Message),
    From(u8, Message),
}

/// How often each thing may still happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Left {
    runs: u8,
    crashes: u8,
    rings: u8,
    failures: u8,
    losses: u8,
    duplicates: u8,
    inquiries: u8,
}

/// The state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bank {
    coordinator: TxnCoordinator,
    accounts: Vec<Account>,
    network: Vec<Wire>,
    /// Second halves of the coordinator's steps.
    deferred: Vec<TxnInput>,
    /// Callers that wait, by key.
    waiting: Vec<u64>,
    left: Left,
    // What the claims are about.
    decision: Option<Decision>,
    outcome: Option<Decision>,
    n_told: u8,
    has_crashed: bool,
    told: u32,
}

/// One step of the world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    Run,
    Arrive(Wire),
    Fail(Wire, bool),
    Lose(Wire),
    Duplicate(Wire),
    Ring,
    Inquire(u8),
    Land,
    Crash,
}

fn name(account: u8) -> Name {
    let names = ["a", "b", "c", "d"];
    names[usize::from(account)].try_into().expect("a name")
}

fn txn() -> Name {
    "t".try_into().expect("a name")
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::To(account, message) => {
                write!(f, "{} to {} in round {}", message, name(*account), fence(message))
            }
            Self::From(account, message) => write!(f, "{} from {}", message, name(*account)),
        }
    }
}

fn fence(message: &Message) -> u64 {
    match message {
        Message::Prepare { fence, .. }
        | Message::Commit { fence, .. }
        | Message::Abort { fence, .. }
        | Message::Status { fence, .. } => *fence,
        _ => 0,
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run => f.write_str("a caller runs it"),
            Self::Arrive(wire) => write!(f, "arrives: {wire}"),
            Self::Fail(wire, false) => write!(f, "fails: {wire}"),
            Self::Fail(wire, true) => write!(f, "fails after it took effect: {wire}"),
            Self::Lose(wire) => write!(f, "lost: {wire}"),
            Self::Duplicate(wire) => write!(f, "again: {wire}"),
            Self::Ring => f.write_str("the alarm rings"),
            Self::Inquire(account) => write!(f, "{} asks", name(*account)),
            Self::Land => f.write_str("the second write lands"),
            Self::Crash => f.write_str("the coordinator crashes"),
        }
    }
}

impl Model for Transfer {
    type State = Bank;
    type Action = Action;

    fn init_states(&self) -> Vec<Bank> {
        let account = |index| {
            let is_poor = self.says_no && index + 1 == self.n_accounts;
            let balance = Some(if is_poor { 0 } else { 100 });
            let record = AccountRecord { balance, ..AccountRecord::default() };
            Account::restore(Some(record), self.rules)
        };
        vec![Bank {
            coordinator: TxnCoordinator::restore(None, self.rules),
            accounts: (0..self.n_accounts).map(account).collect(),
            network: Vec::new(),
            deferred: Vec::new(),
            waiting: Vec::new(),
            left: Left {
                runs: self.n_runs,
                crashes: self.n_crashes,
                rings: self.n_rings,
                failures: self.n_failures,
                losses: self.n_losses,
                duplicates: self.n_duplicates,
                inquiries: self.n_inquiries,
            },
            decision: None,
            outcome: None,
            n_told: 0,
            has_crashed: false,
            told: 0,
        }]
    }

    fn actions(&self, state: &Bank, actions: &mut Vec<Action>) {
        let left = state.left;
        if left.runs > 0 {
            actions.push(Action::Run);
        }
        let mut last = None;
        for wire in &state.network {
            if last.replace(wire) == Some(wire) {
                continue;
            }
            actions.push(Action::Arrive(wire.clone()));
            if let (Wire::To(..), true) = (wire, left.failures > 0) {
                actions.push(Action::Fail(wire.clone(), false));
                actions.push(Action::Fail(wire.clone(), true));
            }
            if left.losses > 0 {
                actions.push(Action::Lose(wire.clone()));
            }
            if left.duplicates > 0 {
                actions.push(Action::Duplicate(wire.clone()));
            }
        }
        if left.rings > 0 && state.coordinator.next_deadline().is_some() {
            actions.push(Action::Ring);
        }
        if left.inquiries > 0 {
            let asks = |index: &u8| state.accounts[usize::from(*index)].next_deadline().is_some();
            actions.extend((0..self.n_accounts).filter(asks).map(Action::Inquire));
        }
        if !state.deferred.is_empty() {
            actions.push(Action::Land);
        }
        if left.crashes > 0 && state.coordinator.record().phase != Phase::None {
            actions.push(Action::Crash);
        }
    }

    fn next_state(&self, last: &Bank, action: Action) -> Option<Bank> {
        let mut state = last.clone();
        state.told = 0;
        match action {
            Action::Run => {
                state.left.runs -= 1;
                state.coordinate(TxnInput::Run(self.run()));
            }
            Action::Arrive(wire) => {
                state.take(&wire)?;
                state.arrive(wire);
            }
            Action::Fail(wire, has_arrived) => {
                state.left.failures -= 1;
                state.take(&wire)?;
                let Wire::To(account, message) = wire else { return None };
                if has_arrived {
                    // The answer dies with the call.
                    let input = AccountInput::Received(txn(), message.clone());
                    state.step_account(account, input);
                }
                state.coordinate(TxnInput::Undelivered(name(account), message));
            }
            Action::Lose(wire) => {
                state.left.losses -= 1;
                state.take(&wire)?;
            }
            Action::Duplicate(wire) => {
                state.left.duplicates -= 1;
                state.post(wire);
            }
            Action::Ring => {
                state.left.rings -= 1;
                state.coordinate(TxnInput::Recover);
            }
            Action::Inquire(account) => {
                state.left.inquiries -= 1;
                let sent = state.step_account(account, AccountInput::InquireNow);
                sent.into_iter().for_each(|message| state.post(Wire::From(account, message)));
            }
            Action::Land => {
                let input = state.deferred.remove(0);
                state.coordinate(input);
            }
            Action::Crash => {
                state.left.crashes -= 1;
                let record = state.coordinator.record().clone();
                state.coordinator = TxnCoordinator::restore(Some(record), self.rules);
                state.deferred.clear();
                state.waiting.clear();
                state.has_crashed = true;
            }
        }
        state.look();
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        self.claims.iter().map(|claim| claim.property()).collect()
    }
}

impl Transfer {
    /// The last account gives what all others get.
    fn run(&self) -> Run {
        let n_others = i64::from(self.n_accounts) - 1;
        let delta = |index| if index + 1 == self.n_accounts { -10 * n_others } else { 10 };
        let leg = |index| Leg {
            account: name(index),
            delta: Value::try_from(delta(index)).expect("a small number"),
        };
        let legs: Vec<Leg> = (0..self.n_accounts).map(leg).collect();
        Run { legs: Legs::try_from(legs).expect("they add up"), vote_within_ms: None }
    }
}

impl Bank {
    /// Whether the last step broke or showed this.
    pub fn told(&self, claim: Claim) -> bool {
        self.told & (1 << claim as u32) != 0
    }

    fn tell_if(&mut self, is_so: bool, claim: Claim) {
        self.told |= u32::from(is_so) << claim as u32;
    }

    fn post(&mut self, wire: Wire) {
        let index = self.network.partition_point(|one| *one < wire);
        self.network.insert(index, wire);
    }

    fn take(&mut self, wire: &Wire) -> Option<()> {
        let index = self.network.iter().position(|one| one == wire)?;
        self.network.remove(index);
        Some(())
    }

    fn arrive(&mut self, wire: Wire) {
        match wire {
            Wire::To(account, message) => {
                let input = AccountInput::Received(txn(), message);
                let sent = self.step_account(account, input);
                sent.into_iter().for_each(|message| self.post(Wire::From(account, message)));
            }
            Wire::From(account, message) => {
                self.coordinate(TxnInput::Received(name(account), message));
            }
        }
    }

    fn step_account(&mut self, account: u8, input: AccountInput) -> Vec<Message> {
        let mut effects = Effects::<Account>::new();
        self.accounts[usize::from(account)].step(0, input, &mut effects);
        let sent = effects.into_iter().filter_map(|effect| match effect {
            Effect::Send { message, .. } => Some(message),
            _ => None,
        });
        sent.collect()
    }

    fn coordinate(&mut self, input: TxnInput) {
        let mut effects = Effects::<TxnCoordinator>::new();
        self.coordinator.step(0, input, &mut effects);
        let mut has_told = false;
        for effect in effects {
            match effect {
                Effect::Persist(_) => assert!(!has_told, "it persists before it tells anybody"),
                Effect::Reply(reply) => {
                    has_told = true;
                    self.hear(&reply);
                }
                Effect::Await(key) => self.waiting.push(key),
                Effect::Answer(key, reply) => {
                    has_told = true;
                    let n_before = self.waiting.len();
                    self.waiting.retain(|other| *other != key);
                    for _ in self.waiting.len()..n_before {
                        self.hear(&reply);
                    }
                }
                Effect::Record(kind, _) => self.observe(&kind),
                Effect::Defer(input) => self.deferred.push(input),
                Effect::Send { to, message } => {
                    let NodeId::Object(_, to) = to else { continue };
                    let index = (0..4).find(|index| name(*index) == to).expect("an account");
                    self.post(Wire::To(index, message));
                }
            }
        }
    }

    fn hear(&mut self, reply: &TxnReply) {
        let outcome = match reply {
            TxnReply::Committed { .. } => Decision::Commit,
            TxnReply::Aborted { .. } => Decision::Abort,
            _ => return,
        };
        let recorded = self.coordinator.record().phase.decision();
        self.tell_if(recorded != Some(outcome), Claim::ToldWhatIsDecided);
        self.tell_if(self.outcome.is_some_and(|told| told != outcome), Claim::SameTold);
        self.outcome = Some(outcome);
        self.n_told += 1;
        self.tell_if(self.n_told == 2, Claim::TwoTold);
    }

    fn observe(&mut self, event: &TraceKind) {
        match event {
            TraceKind::DecisionRecorded { decision, .. }
            | TraceKind::TransactionDone { decision } => {
                let holds = |account: &Account| {
                    let hold = account.record().holds.get(&txn());
                    hold.is_some_and(|hold| hold.state != HoldState::Aborted)
                };
                let all_hold = self.accounts.iter().all(holds);
                self.tell_if(*decision == Decision::Commit && !all_hold, Claim::Validity);
                let is_other = self.decision.is_some_and(|before| before != *decision);
                self.tell_if(is_other, Claim::Stability);
                self.decision = Some(*decision);
            }
            TraceKind::VoteIgnored { .. } => self.tell_if(true, Claim::LateVote),
            _ => {}
        }
    }

    /// What can be seen of a state as such.
    fn look(&mut self) {
        let state = |account: &Account| account.record().holds.get(&txn()).map(|hold| hold.state);
        let holds: Vec<_> = self.accounts.iter().map(state).collect();
        let any = |state: HoldState| holds.contains(&Some(state));
        let all = |state: HoldState| holds.iter().all(|hold| *hold == Some(state));
        let phase = self.coordinator.record().phase;
        let (commits, aborts) = (any(HoldState::Committed), any(HoldState::Aborted));
        // The decision is a party to it, beside the accounts.
        let has_committed = commits || self.decision == Some(Decision::Commit);
        let has_aborted = aborts || self.decision == Some(Decision::Abort);
        let is_split = has_committed && has_aborted && (commits || aborts);
        let in_doubt = any(HoldState::Prepared);
        let is_over = matches!(phase, Phase::DoneCommit | Phase::DoneAbort);
        let goes_on = !self.network.is_empty()
            || !self.deferred.is_empty()
            || self.coordinator.next_deadline().is_some();
        let is_done_commit = phase == Phase::DoneCommit && all(HoldState::Committed);
        self.tell_if(is_split, Claim::Agreement);
        self.tell_if(in_doubt && !is_over && !goes_on, Claim::NobodyStuck);
        self.tell_if(in_doubt && is_over, Claim::NothingLeft);
        self.tell_if(is_done_commit, Claim::Commits);
        self.tell_if(phase == Phase::DoneAbort && !in_doubt && !commits, Claim::Aborts);
        self.tell_if(in_doubt && self.has_crashed, Claim::InDoubt);
    }
}
