//! Requests and replies of all objects, as the API, the scripts and the page spell them.

use serde::Serialize;

use crate::fence::{Claim, FenceInput, FenceReply, Read, Write};
use crate::ids::ObjectKind;
use crate::lease::{Acquire, ForceRelease, LeaseInput, LeaseReply, Release, Renew};
use crate::shard::{Apply, Open, Seal, ShardInput, ShardReply};

/// One request to an object: `POST /api/labs/{lab}/{kind}s/{name}/{operation}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub enum Request {
    /// `leases/…/acquire`
    Acquire(Acquire),
    /// `leases/…/renew`
    Renew(Renew),
    /// `leases/…/release`
    Release(Release),
    /// `leases/…/force-release`
    ForceRelease(ForceRelease),
    /// `resources/…/claim`
    Claim(Claim),
    /// `resources/…/write`
    Write(Write),
    /// `resources/…/read`
    Read(Read),
    /// `shards/…/apply`
    Apply(Apply),
    /// `shards/…/seal`
    Seal(Seal),
    /// `shards/…/open`
    Open(Open),
}

impl Request {
    /// The kind of object it is for.
    pub fn kind(&self) -> ObjectKind {
        match self {
            Self::Acquire(_) | Self::Renew(_) | Self::Release(_) | Self::ForceRelease(_) => {
                ObjectKind::Lease
            }
            Self::Claim(_) | Self::Write(_) | Self::Read(_) => ObjectKind::Resource,
            Self::Apply(_) | Self::Seal(_) | Self::Open(_) => ObjectKind::Shard,
        }
    }

    /// The last word of its path.
    pub fn operation(&self) -> &'static str {
        match self {
            Self::Acquire(_) => "acquire",
            Self::Renew(_) => "renew",
            Self::Release(_) => "release",
            Self::ForceRelease(_) => "force-release",
            Self::Claim(_) => "claim",
            Self::Write(_) => "write",
            Self::Read(_) => "read",
            Self::Apply(_) => "apply",
            Self::Seal(_) => "seal",
            Self::Open(_) => "open",
        }
    }

    /// What the arrow on the stage says: `write balance = 95 · token 33`.
    pub fn summary(&self) -> String {
        match self {
            Self::Acquire(acquire) => format!("acquire for {} ms", acquire.ttl_ms),
            Self::Renew(renew) => format!("renew token {}", renew.token),
            Self::Release(release) => format!("release token {}", release.token),
            Self::ForceRelease(force) => format!("force release of token {}", force.token),
            Self::Claim(claim) => format!("claim · token {}", claim.token),
            Self::Write(write) => {
                format!("write {} = {} · token {}", write.key, write.value, write.token)
            }
            Self::Read(read) => match read.token {
                Some(token) => format!("read {} · token {token}", read.key),
                None => format!("read {}", read.key),
            },
            Self::Apply(apply) => apply.op.summary(),
            Self::Seal(seal) => format!("seal for map {}", seal.map_epoch),
            Self::Open(open) => format!("open for map {}", open.map_epoch),
        }
    }
}

/// One reply of an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub enum Reply {
    /// Of a lease authority.
    Lease(LeaseReply),
    /// Of a fenced resource.
    Resource(FenceReply),
    /// Of a shard coordinator.
    Shard(ShardReply),
}

impl Reply {
    /// The tag of its JSON body.
    pub fn outcome(&self) -> &'static str {
        match self {
            Self::Lease(reply) => match reply {
                LeaseReply::Granted { .. } => "granted",
                LeaseReply::Refused { .. } => "refused",
                LeaseReply::Queued { .. } => "queued",
                LeaseReply::Timeout => "timeout",
                LeaseReply::Lost { .. } => "lost",
                LeaseReply::Released => "released",
                LeaseReply::NotHolder { .. } => "not_holder",
                LeaseReply::Conflict { .. } => "conflict",
                LeaseReply::Exhausted => "exhausted",
            },
            Self::Resource(reply) => match reply {
                FenceReply::Claimed { .. } => "claimed",
                FenceReply::Applied { .. } => "applied",
                FenceReply::Duplicate { .. } => "duplicate",
                FenceReply::Fenced { .. } => "fenced",
                FenceReply::NotClaimed { .. } => "not_claimed",
                FenceReply::Gap { .. } => "gap",
                FenceReply::Value { .. } => "value",
                FenceReply::Conflict { .. } => "conflict",
                FenceReply::Full { .. } => "full",
            },
            Self::Shard(reply) => match reply {
                ShardReply::Applied { .. } => "applied",
                ShardReply::Duplicate { .. } => "duplicate",
                ShardReply::Conflict { .. } => "conflict",
                ShardReply::WrongEpoch { .. } => "wrong_epoch",
                ShardReply::Sealed { .. } => "sealed",
                ShardReply::Opened { .. } => "opened",
                ShardReply::Full { .. } => "full",
            },
        }
    }

    /// What the arrow back says: `granted · token 34`.
    pub fn summary(&self) -> String {
        match self {
            Self::Lease(LeaseReply::Granted { token, .. }) => format!("granted · token {token}"),
            Self::Lease(LeaseReply::Refused { holder, .. }) => {
                format!("refused · held by {holder}")
            }
            Self::Lease(LeaseReply::Queued { position }) => format!("queued · position {position}"),
            Self::Lease(
                LeaseReply::Lost { current_token } | LeaseReply::NotHolder { current_token },
            ) => format!("{} · token is {current_token}", self.outcome().replace('_', " ")),
            Self::Resource(FenceReply::Claimed { token }) => format!("claimed · token {token}"),
            Self::Resource(FenceReply::Fenced { presented, high_water_mark }) => {
                format!("fenced · {presented} against {high_water_mark}")
            }
            Self::Resource(FenceReply::Value { value, .. }) => {
                value.map_or("no value yet".to_owned(), |value| format!("value {value}"))
            }
            Self::Shard(ShardReply::Applied { seq, .. } | ShardReply::Duplicate { seq }) => {
                format!("{} · number {seq}", self.outcome())
            }
            _ => self.outcome().replace('_', " "),
        }
    }
}

/// A machine whose inputs and replies travel as [`Request`] and [`Reply`].
pub trait Addressed: crate::machine::Machine {
    /// The input that a request stands for; `None` when it is for another kind.
    fn input(request: Request) -> Option<Self::Input>;
    /// The reply as it travels.
    fn reply(reply: Self::Reply) -> Reply;
}

impl Addressed for crate::lease::LeaseAuthority {
    fn input(request: Request) -> Option<LeaseInput> {
        Some(match request {
            Request::Acquire(acquire) => LeaseInput::Acquire(acquire),
            Request::Renew(renew) => LeaseInput::Renew(renew),
            Request::Release(release) => LeaseInput::Release(release),
            Request::ForceRelease(force) => LeaseInput::ForceRelease(force),
            _ => return None,
        })
    }

    fn reply(reply: LeaseReply) -> Reply {
        Reply::Lease(reply)
    }
}

impl Addressed for crate::fence::FencedResource {
    fn input(request: Request) -> Option<FenceInput> {
        Some(match request {
            Request::Claim(claim) => FenceInput::Claim(claim),
            Request::Write(write) => FenceInput::Write(write),
            Request::Read(read) => FenceInput::Read(read),
            _ => return None,
        })
    }

    fn reply(reply: FenceReply) -> Reply {
        Reply::Resource(reply)
    }
}

impl Addressed for crate::shard::ShardCoordinator {
    fn input(request: Request) -> Option<ShardInput> {
        Some(match request {
            Request::Apply(apply) => ShardInput::Apply(apply),
            Request::Seal(seal) => ShardInput::Seal(seal),
            Request::Open(open) => ShardInput::Open(open),
            _ => return None,
        })
    }

    fn reply(reply: ShardReply) -> Reply {
        Reply::Shard(reply)
    }
}
