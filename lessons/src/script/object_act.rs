//! What a person can do to an object.

use protocol::control::{AlarmAction, FaultAction, OutboxAction};
use protocol::ids::{Label, Name};
use protocol::rules::RulesUpdate;
use protocol::trace::CrashPoint;

/// What is done to an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectAct {
    /// `rules ledger published guard=none`
    Rules(RulesUpdate),
    /// `crash orders at after_persist` and, if it is to stay so, `stay down`
    Crash {
        /// Where.
        at: CrashPoint,
        /// Which vote or acknowledgement, from 1: `at after_nth_vote n=2`.
        n: Option<u64>,
        /// Until it is told to restart.
        stay_down: bool,
    },
    /// `restart orders`
    Restart,
    /// `clock orders +1h`
    Clock(i64),
    /// `unreachable orders acquire from=A times=2`
    Unreachable {
        /// Which operation; nothing for every one.
        operation: Option<String>,
        /// Whose; nothing for everybody's.
        from: Option<Label>,
        /// How often; nothing for ever.
        times: Option<u32>,
    },
    /// `slow ledger write 600ms times=1`: the second half of the step takes this long.
    Slow {
        /// Which operation.
        operation: String,
        /// How long, in ms.
        delay_ms: u64,
        /// How often; nothing for ever.
        times: Option<u32>,
    },
    /// `hold t1 commit to=bob times=1`, and so with `drop`, `delay … 300ms` and `duplicate`:
    /// what happens to messages that the object is about to send.
    Network {
        /// `hold`, `drop`, `delay` or `duplicate`.
        action: FaultAction,
        /// Which kind of message; `*` for every one.
        message: String,
        /// Only those to this object.
        to: Option<Name>,
        /// For `delay`: how long, in ms.
        delay_ms: Option<u64>,
        /// How many; nothing for ever.
        times: Option<u32>,
    },
    /// `deliver t1 commit to=bob`, `drop waiting t1 commit`, `duplicate waiting t1 commit`:
    /// what is done to a message that waits in the object's outbox.
    Waiting {
        /// What.
        action: OutboxAction,
        /// Which kind of message.
        message: String,
        /// To which object.
        to: Option<Name>,
        /// Which of several that match, from 1, the oldest.
        nth: u64,
    },
    /// `heal orders`: no faults any more.
    Heal,
    /// `alarm orders suppress`
    Alarm(AlarmAction),
}
