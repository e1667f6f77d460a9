//! What a person does: recover, resolve, forget.

use super::{
    Answer, Decision, Message, Name, Out, Phase, ResolveLeg, TraceKind, TxnCoordinator, TxnReply,
    decided,
};

impl TxnCoordinator {
    /// The alarm's own path, so that it can decide nothing that the alarm could not.
    pub(super) fn recover(&mut self, now_ms: u64, out: &mut Out) {
        let phase = self.record.phase;
        out.reply = Some(match phase {
            Phase::None => refused("nothing was ever run here"),
            Phase::DoneCommit | Phase::DoneAbort => self.outcome_or_refused(),
            Phase::Preparing | Phase::Commit | Phase::Abort => {
                self.activate(now_ms, out);
                TxnReply::Recovering { attempt: self.record.attempts }
            }
        });
    }

    fn outcome_or_refused(&self) -> TxnReply {
        self.outcome().unwrap_or_else(|| refused("nothing is decided"))
    }

    /// Passes a person's decision on to one participant. The coordinator's own decision
    /// stays what it is; if it differs, the outcome is mixed and says so.
    pub(super) fn resolve(&mut self, resolve: ResolveLeg, out: &mut Out) {
        let ResolveLeg { account, decision, reason } = resolve;
        if !self.record.legs.iter().any(|leg| leg.account == account) {
            out.reply = Some(TxnReply::Refused { reason: format!("{account} has no leg here") });
            return;
        }
        let kind = TraceKind::ResolveSent {
            account: account.clone(),
            decision,
            reason: reason.as_str().to_owned(),
        };
        out.record(kind, decided!("by_hand"));
        out.sends.push((account.clone(), Message::Resolve { decision, reason }));
        out.reply = Some(TxnReply::Resolving { account });
    }

    /// What came of it.
    pub(super) fn take_resolved(&mut self, account: &Name, decision: Decision, answer: Answer) {
        let Some(leg) = self.record.legs.iter_mut().find(|leg| leg.account == *account) else {
            return;
        };
        match answer {
            Answer::Applied => leg.by_hand = Some(decision),
            Answer::Already
            | Answer::Unknown
            | Answer::Aborted
            | Answer::Committed
            | Answer::Stale => {
                let error = format!("{account} answered {decision} by hand: {}", answer.as_str());
                self.record.note_error(account, error);
            }
        }
    }

    pub(super) fn forget(&mut self, out: &mut Out) {
        let n_pending = self.record.n_pending();
        let is_over = match self.record.phase {
            Phase::DoneCommit | Phase::DoneAbort => true,
            // Everybody has answered and somebody's answer is mixed: forgetting is how the
            // person who has looked at it says so.
            Phase::Commit | Phase::Abort => n_pending == 0,
            Phase::None | Phase::Preparing => false,
        };
        if !is_over {
            let phase = self.record.phase.as_str();
            let reason = format!("it is {phase}, and {n_pending} have not acknowledged");
            out.record(TraceKind::ForgetRefused { reason: reason.clone() }, decided!("forget"));
            out.reply = Some(TxnReply::Refused { reason });
            return;
        }
        if !self.record.forgotten {
            self.record.forgotten = true;
            self.record.next_attempt_at_ms = None;
            out.record(TraceKind::TransactionForgotten, decided!("forget"));
        }
        let accounts = self.record.legs.iter().map(|leg| leg.account.clone());
        out.sends.extend(accounts.map(|account| (account, Message::Forget)));
        out.reply = Some(TxnReply::Forgotten);
    }
}

fn refused(reason: &str) -> TxnReply {
    TxnReply::Refused { reason: reason.to_owned() }
}
