//! A request and its reply, as they stand at one point of the log.

use protocol::ids::{FencingToken, NodeId};
use protocol::trace::MessageId;

/// Where a message is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The request is on its way.
    Requesting,
    /// The request is on its way and is held up for so many ms.
    Delayed(u64),
    /// The object has it and works on it, or has answered.
    Handled,
    /// The object refused it; the word is the outcome.
    Refused(String),
    /// The request was thrown away on its way.
    RequestLost,
    /// The reply was thrown away on its way.
    ReplyLost,
    /// No reply will come; the word is the reason.
    Failed(String),
    /// The client has the reply; the word is the outcome.
    Answered(String),
}

impl Phase {
    /// Whether nothing more is to come.
    pub fn is_over(&self) -> bool {
        matches!(self, Self::RequestLost | Self::ReplyLost | Self::Failed(_) | Self::Answered(_))
    }
}

/// One request of one client, with its reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its name.
    pub id: MessageId,
    /// The client.
    pub from: NodeId,
    /// The object.
    pub to: NodeId,
    /// `write`, `acquire`, …
    pub operation: String,
    /// What the arrow says.
    pub request: String,
    /// What the arrow back says, once there is one.
    pub reply: Option<String>,
    /// The token that the request carries, if it carries one.
    pub token: Option<FencingToken>,
    /// Where it is.
    pub phase: Phase,
    /// Whether the object refused it.
    pub refused: bool,
    /// Position of the event that sent it.
    pub sent_at: usize,
    /// Position of the first event of its handling.
    pub arrived_at: Option<usize>,
    /// Position of the last event about it.
    pub changed_at: usize,
    /// How often the network sent it again.
    pub n_duplicates: u32,
}

impl Message {
    /// The token that a request's one-line summary names: `… · token 33`.
    pub(super) fn token_in(summary: &str) -> Option<FencingToken> {
        let (_, rest) = summary.rsplit_once("token ")?;
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        FencingToken::try_from(digits.parse::<u64>().ok()?).ok()
    }
}
