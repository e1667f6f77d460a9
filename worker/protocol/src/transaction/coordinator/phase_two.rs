//! Phase two: everybody is told, and answers; the alarm goes on until everybody has.

use super::{
    Answer, Decision, Finishing, Flight, Message, Name, NoReason, Out, Phase, TraceKind,
    TxnCoordinator, TxnInput, Vote, decided, pause_ms,
};

impl TxnCoordinator {
    pub(super) fn receive(&mut self, now_ms: u64, account: Name, message: Message, out: &mut Out) {
        match message {
            Message::Vote { leg, attempt, vote, .. } => {
                self.take_vote(now_ms, &account, (attempt, leg), vote, out);
            }
            Message::Ack { decision, attempt, answer } => {
                self.take_ack(now_ms, &account, attempt, (decision, answer), out);
            }
            Message::Inquire { fence } => self.answer_inquiry(account, fence, out),
            Message::Resolved { decision, answer } => {
                self.take_resolved(&account, decision, answer);
            }
            // What only an account is told.
            Message::Prepare { .. }
            | Message::Commit { .. }
            | Message::Abort { .. }
            | Message::Resolve { .. }
            | Message::Forget
            | Message::Status { .. } => {}
        }
    }

    /// A call that failed. A failed prepare counts as No, since its abort follows (N6).
    pub(super) fn undelivered_to(
        &mut self,
        now_ms: u64,
        account: &Name,
        message: &Message,
        out: &mut Out,
    ) {
        match message {
            Message::Prepare { leg, attempt, .. } => {
                let vote = Vote::No(NoReason::Unreachable);
                self.take_vote(now_ms, account, (*attempt, *leg), vote, out);
            }
            Message::Commit { attempt, .. } | Message::Abort { attempt, .. } => {
                let error = format!("{account} could not be reached");
                self.record.note_error(account, error);
                if self.any_answer_counts() {
                    self.settle(now_ms, *attempt, account, None, out);
                } else {
                    self.forget_outstanding(*attempt, account);
                }
            }
            _ => {}
        }
    }

    /// What was decided, for a participant in doubt. It is read and never decided here, or
    /// a participant could decide by asking (FC-20). Of what nothing is known, nothing was
    /// asked: PREPARING is durable before any prepare leaves, so it is presumed aborted. And
    /// what is forgotten was acknowledged by all, so whoever still asks was prepared by a
    /// message that came too late.
    fn answer_inquiry(&mut self, account: Name, fence: u64, out: &mut Out) {
        let decision = match self.record.phase {
            _ if self.record.forgotten => Some(Decision::Abort),
            Phase::None => Some(Decision::Abort),
            phase => phase.decision(),
        };
        let fence = fence.max(self.record.fence);
        let kind = TraceKind::InquiryAnswered { account: account.clone(), decision };
        out.record(kind, decided!("status"));
        out.sends.push((account, Message::Status { decision, fence }));
    }

    // ---- the alarm ---------------------------------------------------------------------

    pub(super) fn raise_fence(&mut self) {
        if self.rules.raise_fence {
            self.record.fence += 1;
        }
    }

    /// What the alarm does, whoever asks for it.
    pub(super) fn activate(&mut self, now_ms: u64, out: &mut Out) {
        let phase = self.record.phase;
        if !matches!(phase, Phase::Preparing | Phase::Commit | Phase::Abort) {
            self.record.next_attempt_at_ms = None;
            return;
        }
        // An alarm that still waits for answers is given up: the next one asks again.
        self.flights.retain(|_, flight| {
            flight.finishing.as_ref().is_none_or(|finishing| !finishing.by_alarm)
        });
        self.raise_fence();
        self.record.attempts += 1;
        self.record.n_retries += 1;
        let (attempt, fence) = (self.record.attempts, self.record.fence);
        let word = phase.as_str().to_owned();
        out.record(
            TraceKind::RecoveryStarted { phase: word, attempt, fence },
            decided!("raise_fence"),
        );
        self.record.next_attempt_at_ms = Some(now_ms + pause_ms(self.record.n_retries + 2));
        match phase.decision() {
            Some(decision) => self.finish(now_ms, attempt, decision, out),
            None if self.rules.alarm_records_abort_first => {
                self.record.reason = Some(NoReason::VoteDeadline.as_str().to_owned());
                self.record_decision(now_ms, attempt, Decision::Abort, out);
            }
            None => self.finish(now_ms, attempt, Decision::Abort, out),
        }
    }

    /// Tells everybody who has not acknowledged.
    pub(super) fn finish(&mut self, now_ms: u64, attempt: u64, decision: Decision, out: &mut Out) {
        let by_alarm = !self.flights.contains_key(&attempt);
        let fence = self.flights.get(&attempt).map_or(self.record.fence, |flight| flight.fence);
        let is_open = |name: &&Name| !self.record.acked.contains(*name);
        let accounts = self.record.legs.iter().filter(|leg| !leg.mixed).map(|leg| &leg.account);
        let outstanding: Vec<Name> = accounts.filter(is_open).cloned().collect();
        for account in &outstanding {
            let message = match decision {
                Decision::Commit => Message::Commit { fence, attempt },
                Decision::Abort => Message::Abort { fence, attempt },
            };
            out.sends.push((account.clone(), message));
        }
        let is_settled = outstanding.is_empty();
        let acked = self.record.acked.clone();
        let finishing = Some(Finishing { decision, outstanding, acked, by_alarm });
        let flight = self.flights.entry(attempt).or_insert_with(|| Flight::voting(fence));
        flight.finishing = finishing;
        if is_settled {
            self.flights.remove(&attempt);
            self.complete_if_all(now_ms, decision, out);
        }
    }

    // ---- acknowledgements --------------------------------------------------------------

    /// Any answer will do, if a flight waits for it (P3, P4).
    fn any_answer_counts(&self) -> bool {
        !self.rules.typed_acks
    }

    fn take_ack(
        &mut self,
        now_ms: u64,
        account: &Name,
        attempt: u64,
        (decision, answer): (Decision, Answer),
        out: &mut Out,
    ) {
        if self.any_answer_counts() {
            self.settle(now_ms, attempt, account, Some(answer), out);
            return;
        }
        let flight = self.flights.get(&attempt).and_then(|flight| flight.finishing.as_ref());
        let meant = flight.map(|finishing| finishing.decision).or(self.record.phase.decision());
        let is_leg = self.record.legs.iter().any(|leg| leg.account == *account);
        if meant != Some(decision) || !is_leg || self.record.acked.contains(account) {
            return;
        }
        self.forget_outstanding(attempt, account);
        if answer.acknowledges(decision) {
            self.record.acked.insert(account.clone());
            self.record_ack(account, decision, answer, out);
            self.complete_if_all(now_ms, decision, out);
        } else {
            self.note_refusal(account, decision, answer, out);
        }
    }

    fn record_ack(&mut self, account: &Name, decision: Decision, answer: Answer, out: &mut Out) {
        let kind = TraceKind::AckReceived {
            account: account.clone(),
            decision,
            answer,
            n_acked: self.record.acked.len() as u64,
            n_legs: self.record.legs.len() as u64,
        };
        out.record(kind, decided!("typed_acks"));
    }

    /// A participant that says the opposite is an incident that no retry ends (FC-10).
    fn note_refusal(&mut self, account: &Name, decision: Decision, answer: Answer, out: &mut Out) {
        let error = format!("{account} answered {decision} with {}", answer.as_str());
        self.record.note_error(account, error);
        let is_mixed = answer.contradicts(decision);
        let leg = self.record.legs.iter_mut().find(|leg| leg.account == *account && !leg.mixed);
        if let (true, Some(leg)) = (is_mixed, leg) {
            leg.mixed = true;
            let transaction = None;
            let by_hand = match decision {
                Decision::Commit => Decision::Abort,
                Decision::Abort => Decision::Commit,
            };
            let account = Some(account.clone());
            let kind = TraceKind::MixedFound { transaction, account, decision, by_hand };
            out.record(kind, decided!("typed_acks"));
        }
        if self.record.n_pending() == 0 {
            // Nothing is left to try: a person has to look at it.
            self.record.next_attempt_at_ms = None;
        }
    }

    fn forget_outstanding(&mut self, attempt: u64, account: &Name) {
        let Some(flight) = self.flights.get_mut(&attempt) else { return };
        let Some(finishing) = &mut flight.finishing else { return };
        finishing.outstanding.retain(|name| name != account);
        if finishing.outstanding.is_empty() {
            self.flights.remove(&attempt);
        }
    }

    /// An answer, or that there will be none, as the paper takes it: all are awaited, then
    /// the set of those who answered is written over what another call may have written.
    fn settle(
        &mut self,
        now_ms: u64,
        attempt: u64,
        account: &Name,
        answer: Option<Answer>,
        out: &mut Out,
    ) {
        let Some(flight) = self.flights.get_mut(&attempt) else { return };
        let Some(finishing) = &mut flight.finishing else { return };
        let Some(index) = finishing.outstanding.iter().position(|name| name == account) else {
            return;
        };
        finishing.outstanding.remove(index);
        let decision = finishing.decision;
        if let Some(answer) = answer {
            finishing.acked.insert(account.clone());
            let kind = TraceKind::AckReceived {
                account: account.clone(),
                decision,
                answer,
                n_acked: finishing.acked.len() as u64,
                n_legs: self.record.legs.len() as u64,
            };
            out.record(kind, decided!("typed_acks"));
        }
        if !finishing.outstanding.is_empty() {
            return;
        }
        self.record.acked = finishing.acked.clone();
        self.flights.remove(&attempt);
        self.complete_if_all(now_ms, decision, out);
    }

    fn complete_if_all(&mut self, now_ms: u64, decision: Decision, out: &mut Out) {
        // One name too few for ever, if an account has two legs (K9).
        if self.record.acked.len() != self.record.legs.len() {
            return;
        }
        self.record.next_attempt_at_ms = None;
        self.then(now_ms, TxnInput::MarkDone { decision }, out);
    }

    pub(super) fn mark_done(&mut self, decision: Decision, out: &mut Out) {
        self.record.phase = match decision {
            Decision::Commit => Phase::DoneCommit,
            Decision::Abort => Phase::DoneAbort,
        };
        out.record(TraceKind::TransactionDone { decision }, decided!("atomic_phase_and_alarm"));
    }
}
