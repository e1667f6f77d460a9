//! What a client can do.

use protocol::ids::{Label, Name, NodeId, TtlMs, VoteWithinMs, WaitMs};
use protocol::transaction::{Decision, Legs, Reason};

use super::Value;

/// What a client does. Where a token is left out, the client sends the one that it
/// believes it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// `acquire orders ttl=2s`; with `await` instead of `acquire` it asks again while it
    /// is told `queued`.
    Acquire {
        /// Which.
        lease: Name,
        /// For how long.
        ttl_ms: TtlMs,
        /// Names the request.
        request: Option<Label>,
        /// Ready to queue.
        wait_ms: Option<WaitMs>,
        /// Asks again while queued.
        poll: bool,
    },
    /// `renew orders ttl=2s`
    Renew {
        /// Which.
        lease: Name,
        /// For how long.
        ttl_ms: TtlMs,
        /// Which grant.
        token: Option<Value>,
    },
    /// `release orders`
    Release {
        /// Which.
        lease: Name,
        /// Which grant.
        token: Option<Value>,
    },
    /// `force-release orders token=1 reason="…"`
    ForceRelease {
        /// Which.
        lease: Name,
        /// Which grant.
        token: Value,
        /// Why.
        reason: String,
    },
    /// `check orders`: looks at its own clock only, and asks nobody.
    Check {
        /// Which.
        lease: Name,
    },
    /// `claim ledger`
    Claim {
        /// Which.
        resource: Name,
        /// Under which lease.
        under: Under,
    },
    /// `read ledger balance`
    Read {
        /// Which.
        resource: Name,
        /// Where.
        key: Label,
        /// Under which lease; nothing when the client shows no token (`token=none`).
        under: Option<Under>,
    },
    /// `write ledger balance=A.balance+20`
    Write {
        /// Which.
        resource: Name,
        /// Where.
        key: Label,
        /// What.
        value: Value,
        /// Under which lease.
        under: Under,
        /// Names the write.
        id: Option<Label>,
        /// Its position among this grant's writes.
        seq: Option<u64>,
    },
    /// `apply stock apples+=3` or `apply stock apples=3`
    Apply {
        /// Which.
        shard: Name,
        /// Where.
        key: Label,
        /// Sets the key, or adds to it.
        add: bool,
        /// What.
        value: Value,
        /// Names the operation.
        id: Option<Label>,
        /// The epoch of the client's map.
        map_epoch: Option<u64>,
    },
    /// `seal stock epoch=2`
    Seal {
        /// Which.
        shard: Name,
        /// The epoch of the map that no longer names it.
        map_epoch: u64,
    },
    /// `open stock-2 epoch=2 copy`: `copy` brings what the client was given at its seal.
    Open {
        /// Which.
        shard: Name,
        /// The epoch of the map.
        map_epoch: u64,
        /// With the state of the last seal.
        copy: bool,
    },
    /// `open alice balance=100`
    OpenAccount {
        /// Which.
        account: Name,
        /// What is in it.
        balance: u64,
    },
    /// `run t1 alice-30 bob+30 within=2s`
    Run {
        /// Which.
        transaction: Name,
        /// Who gets what.
        legs: Legs,
        /// How long the coordinator waits for votes.
        within_ms: Option<VoteWithinMs>,
    },
    /// `recover t1`: does what the alarm would do.
    Recover {
        /// Which.
        transaction: Name,
    },
    /// `resolve bob t1=abort reason="…"`: a person decides for an account. With a
    /// transaction in the first place its coordinator passes it on: `resolve t1 bob=abort`.
    Resolve {
        /// Whom it is said to.
        object: NodeId,
        /// The transaction, or the account.
        about: Name,
        /// What to do.
        decision: Decision,
        /// Why.
        reason: Reason,
    },
    /// `forget t1`
    Forget {
        /// Which.
        transaction: Name,
    },
}

/// The lease and the token that a client shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Under {
    /// The lease; nothing when the script has only one.
    pub lease: Option<Name>,
    /// The token; nothing for the one that the client believes it holds.
    pub token: Option<Value>,
}
