//! Sentences for transfers: accounts, their coordinators, and the messages between them.

use protocol::trace::{DeliveryMode, TraceKind};
use protocol::transaction::Decision;
use protocol::transaction::message::{Answer, Vote};

use super::{span, the};

/// What happened at an account or a coordinator; `here` begins the sentence.
pub(super) fn sentence(here: &str, kind: &TraceKind) -> Option<String> {
    account_sentence(here, kind).or_else(|| coordinator_sentence(here, kind))
}

fn account_sentence(here: &str, kind: &TraceKind) -> Option<String> {
    let text = match kind {
        TraceKind::AccountOpened { balance } => format!("{here} is open, with {balance} in it."),
        TraceKind::Prepared { transaction, delta, available, .. } => format!(
            "{here} votes yes to {transaction}: it holds {delta:+} until it is told what was \
             decided. {available} are still available."
        ),
        TraceKind::PrepareRefused { transaction, delta, reason, available, .. } => {
            let reason = reason.replace('_', " ");
            format!(
                "{here} votes no to {delta:+} for {transaction}: {reason}. {available} are available."
            )
        }
        TraceKind::HoldCommitted { transaction, delta, balance } => {
            format!("{here} did {delta:+} for {transaction} and now has {balance}.")
        }
        TraceKind::HoldAborted { transaction, delta, available } => {
            format!("{here} dropped {delta:+} of {transaction}. {available} are available again.")
        }
        TraceKind::TombstoneLeft { transaction } => format!(
            "{here} knows nothing of {transaction} and remembers that it is aborted, should its \
             prepare still come."
        ),
        TraceKind::DecisionRefused { transaction, decision, answer } => {
            format!("{here} cannot {decision} {transaction}: {}.", answer_words(*answer))
        }
        TraceKind::DecisionInquired { transaction, in_doubt_ms } => format!(
            "{here} has been in doubt about {transaction} for {} and asks what was decided.",
            span(*in_doubt_ms)
        ),
        TraceKind::HoldResolved { transaction, decision, reason } => {
            format!("A person made {here} {decision} {transaction}: {reason}.")
        }
        TraceKind::MixedFound { transaction: Some(transaction), decision, by_hand, .. } => format!(
            "{here} finds that {transaction} was decided: {decision}. A person had said {by_hand}. \
             The outcome is mixed."
        ),
        _ => return None,
    };
    Some(text)
}

fn answer_words(answer: Answer) -> &'static str {
    match answer {
        Answer::Applied => "it has done so",
        Answer::Already => "it had done so before",
        Answer::Unknown => "it knows nothing of it",
        Answer::Aborted => "it was aborted here",
        Answer::Committed => "it was committed here",
        Answer::Stale => "a later round has been here",
    }
}

fn coordinator_sentence(here: &str, kind: &TraceKind) -> Option<String> {
    let text = match kind {
        TraceKind::PreparingRecorded { legs, alarm_at_ms, .. } => {
            let n_legs = legs.len();
            let alarm = match alarm_at_ms {
                Some(_) => "with an alarm, should the votes not come",
                None => "without an alarm",
            };
            format!("{here} has stored that it asks its {n_legs} accounts, {alarm}.")
        }
        TraceKind::VoteReceived { account, vote, n_votes, n_legs } => {
            let vote = vote_words(*vote);
            format!("{here} has {account}'s vote, {vote}: {n_votes} of {n_legs}.")
        }
        TraceKind::VoteIgnored { account, vote } => {
            format!("{here} gets {account}'s vote, {}, and nobody waits for it.", vote_words(*vote))
        }
        TraceKind::DecisionRecorded { decision: Decision::Commit, .. } => {
            format!("{here} has decided: commit. From here on it may be told.")
        }
        TraceKind::DecisionRecorded { decision: Decision::Abort, reason, .. } => {
            let reason = reason.as_deref().unwrap_or("recovery").replace('_', " ");
            format!("{here} has decided: abort ({reason}).")
        }
        TraceKind::OutcomeTold { outcome } => format!("{here} told its caller: {outcome}."),
        TraceKind::AckReceived { account, decision, answer, n_acked, n_legs } => format!(
            "{here} heard from {account} about the {decision}: {}. {n_acked} of {n_legs}.",
            answer_words(*answer)
        ),
        TraceKind::TransactionDone { decision } => {
            format!("{here} is done: every account has acknowledged the {decision}.")
        }
        TraceKind::RecoveryStarted { phase, attempt, fence } => {
            let phase = phase.replace('_', " ");
            format!("{here} goes on from {phase}: attempt {attempt}, round {fence}.")
        }
        TraceKind::InquiryAnswered { account, decision: Some(decision) } => {
            format!("{here} tells account {account}: {decision}.")
        }
        TraceKind::InquiryAnswered { account, decision: None } => {
            format!("{here} tells account {account} that nothing is decided.")
        }
        TraceKind::RunRefused { reason, .. } => format!("{here} refused to run: {reason}."),
        TraceKind::ResolveSent { account, decision, reason } => {
            format!("A person has {here} tell {account} to {decision}: {reason}.")
        }
        TraceKind::MixedFound { account: Some(account), decision, by_hand, .. } => format!(
            "{here} decided {decision}, and {account} has ended with {by_hand}. The outcome is \
             mixed, and a person has to look at it."
        ),
        TraceKind::ForgetRefused { reason } => format!("{here} cannot be forgotten: {reason}."),
        TraceKind::TransactionForgotten => format!("{here} may be forgotten by its accounts."),
        _ => return None,
    };
    Some(text)
}

fn vote_words(vote: Vote) -> String {
    match vote {
        Vote::Yes => "yes".to_owned(),
        Vote::No(reason) => format!("no ({})", reason.as_str().replace('_', " ")),
    }
}

/// What happened to a message between two objects.
pub(super) fn message_sentence(here: &str, kind: &TraceKind) -> Option<String> {
    let text = match kind {
        TraceKind::MessageSent { to, summary, .. } => {
            format!("{here} sends to {}: {summary}.", the(to))
        }
        TraceKind::MessageHeld { to, .. } => {
            format!("The message to {} waits to be delivered.", the(to))
        }
        TraceKind::MessageDelayed { to, delay_ms } => {
            format!("The message to {} takes {}.", the(to), span(*delay_ms))
        }
        TraceKind::MessageDropped { to, .. } => format!("The message to {} is lost.", the(to)),
        TraceKind::MessageDuplicated { to, .. } => {
            format!("The message to {} is sent twice.", the(to))
        }
        TraceKind::MessageReleased { to, .. } => format!("The message to {} may leave.", the(to)),
        TraceKind::MessageFailed { to, reason } => {
            let reason = super::reason_words(reason);
            format!("{here} learns that its message did not reach {}: {reason}.", the(to))
        }
        TraceKind::MessageDelivered { from, operation } => {
            format!("{here} gets {}'s {operation}.", the(from))
        }
        TraceKind::DeliverySet { mode: DeliveryMode::Auto } => {
            format!("{here}'s messages leave at once.")
        }
        TraceKind::DeliverySet { mode: DeliveryMode::Manual } => {
            format!("{here}'s messages wait to be delivered by hand.")
        }
        _ => return None,
    };
    Some(text)
}
