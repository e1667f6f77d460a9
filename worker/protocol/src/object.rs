//! Requests and replies of all objects, as the API, the scripts and the page spell them.

use serde::Serialize;

use crate::fence::{Claim, FenceInput, FenceReply, Read, Write};
use crate::ids::ObjectKind;
use crate::lease::{Acquire, ForceRelease, LeaseInput, LeaseReply, Release, Renew};
use crate::shard::{Apply, Open, Seal, ShardInput, ShardReply};
use crate::transaction::account::{Account, AccountInput, AccountReply, OpenAccount, ResolveHold};
use crate::transaction::coordinator::{
    ForgetTxn, Recover, ResolveLeg, Run, TxnCoordinator, TxnInput, TxnReply,
};

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
    /// `accounts/…/open`
    OpenAccount(OpenAccount),
    /// `accounts/…/resolve`
    ResolveHold(ResolveHold),
    /// `transactions/…/run`
    Run(Run),
    /// `transactions/…/recover`
    Recover(Recover),
    /// `transactions/…/resolve`
    ResolveLeg(ResolveLeg),
    /// `transactions/…/forget`
    Forget(ForgetTxn),
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
            Self::OpenAccount(_) | Self::ResolveHold(_) => ObjectKind::Account,
            Self::Run(_) | Self::Recover(_) | Self::ResolveLeg(_) | Self::Forget(_) => {
                ObjectKind::Transaction
            }
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
            Self::Open(_) | Self::OpenAccount(_) => "open",
            Self::ResolveHold(_) | Self::ResolveLeg(_) => "resolve",
            Self::Run(_) => "run",
            Self::Recover(_) => "recover",
            Self::Forget(_) => "forget",
        }
    }

    /// What the arrow on the stage says: `write balance = 95 · token 33`.
    pub fn summary(&self) -> String {
        match self {
            Self::Acquire(acquire) => format!("acquire for {}", acquire.ttl_ms.in_words()),
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
            Self::OpenAccount(open) => format!("open with {}", open.balance),
            Self::ResolveHold(resolve) => {
                format!("{} {} by hand", resolve.decision, resolve.transaction)
            }
            Self::Run(run) => {
                let legs = run.legs.as_slice().iter();
                let legs: Vec<_> =
                    legs.map(|leg| format!("{} {:+}", leg.account, leg.delta.get())).collect();
                format!("run {}", legs.join(", "))
            }
            Self::Recover(_) => "recover".to_owned(),
            Self::ResolveLeg(resolve) => {
                format!("{} {} by hand", resolve.decision, resolve.account)
            }
            Self::Forget(_) => "forget".to_owned(),
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
    /// Of an account.
    Account(AccountReply),
    /// Of a transaction's coordinator.
    Transaction(TxnReply),
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
            Self::Account(reply) => match reply {
                AccountReply::Opened { .. } => "opened",
                AccountReply::Already { .. } => "already",
                AccountReply::Resolved { .. } => "resolved",
                AccountReply::Conflict { .. } => "conflict",
                AccountReply::Unknown => "unknown",
            },
            Self::Transaction(reply) => match reply {
                TxnReply::Committed { .. } => "committed",
                TxnReply::Aborted { .. } => "aborted",
                TxnReply::InDoubt { .. } => "in_doubt",
                TxnReply::Conflict { .. } => "conflict",
                TxnReply::Refused { .. } => "refused",
                TxnReply::Recovering { .. } => "recovering",
                TxnReply::Resolving { .. } => "resolving",
                TxnReply::Forgotten => "forgotten",
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
            Self::Account(
                AccountReply::Opened { balance }
                | AccountReply::Already { balance }
                | AccountReply::Resolved { balance },
            ) => format!("{} · balance {balance}", self.outcome()),
            Self::Transaction(TxnReply::Aborted { reason }) => {
                format!("aborted · {}", reason.replace('_', " "))
            }
            Self::Transaction(TxnReply::Committed { n_pending }) if *n_pending > 0 => {
                format!("committed · {n_pending} still to acknowledge")
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

impl Addressed for Account {
    fn input(request: Request) -> Option<AccountInput> {
        Some(match request {
            Request::OpenAccount(open) => AccountInput::Open(open),
            Request::ResolveHold(resolve) => AccountInput::Resolve(resolve),
            _ => return None,
        })
    }

    fn reply(reply: AccountReply) -> Reply {
        Reply::Account(reply)
    }
}

impl Addressed for TxnCoordinator {
    fn input(request: Request) -> Option<TxnInput> {
        Some(match request {
            Request::Run(run) => TxnInput::Run(run),
            Request::Recover(_) => TxnInput::Recover,
            Request::ResolveLeg(resolve) => TxnInput::Resolve(resolve),
            Request::Forget(_) => TxnInput::Forget,
            _ => return None,
        })
    }

    fn reply(reply: TxnReply) -> Reply {
        Reply::Transaction(reply)
    }
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;

    use super::*;
    use crate::fence::FencedResource;
    use crate::lease::LeaseAuthority;
    use crate::shard::ShardCoordinator;

    fn body<T: DeserializeOwned>(json: &str) -> T {
        serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"))
    }

    /// Every request with its path and the words on its arrow.
    fn requests() -> Vec<(Request, &'static str, &'static str)> {
        let put = r#"{"op":{"type":"put","key":"k","value":5}}"#;
        let add = r#"{"op":{"type":"add","key":"k","amount":-2}}"#;
        let acquire = r#"{"holder":"A","ttl_ms":2000}"#;
        let legs = r#"{"legs":[{"account":"a","delta":-30},{"account":"b","delta":30}]}"#;
        let write = r#"{"lease":"orders","token":7,"key":"balance","value":95}"#;
        vec![
            (Request::Acquire(body(acquire)), "leases/acquire", "acquire for 2 s"),
            (
                Request::Renew(body(r#"{"holder":"A","token":7,"ttl_ms":2000}"#)),
                "leases/renew",
                "renew token 7",
            ),
            (Request::Release(body(r#"{"token":7}"#)), "leases/release", "release token 7"),
            (
                Request::ForceRelease(body(r#"{"token":7,"reason":"stuck"}"#)),
                "leases/force-release",
                "force release of token 7",
            ),
            (
                Request::Claim(body(r#"{"lease":"orders","token":7}"#)),
                "resources/claim",
                "claim · token 7",
            ),
            (Request::Write(body(write)), "resources/write", "write balance = 95 · token 7"),
            (Request::Read(body(r#"{"key":"k"}"#)), "resources/read", "read k"),
            (
                Request::Read(body(r#"{"lease":"orders","token":7,"key":"k"}"#)),
                "resources/read",
                "read k · token 7",
            ),
            (Request::Apply(body(put)), "shards/apply", "put k = 5"),
            (Request::Apply(body(add)), "shards/apply", "add k + -2"),
            (Request::Seal(body(r#"{"map_epoch":2}"#)), "shards/seal", "seal for map 2"),
            (Request::Open(body(r#"{"map_epoch":2}"#)), "shards/open", "open for map 2"),
            (Request::OpenAccount(body(r#"{"balance":100}"#)), "accounts/open", "open with 100"),
            (
                Request::ResolveHold(body(
                    r#"{"transaction":"t1","decision":"abort","reason":"stuck"}"#,
                )),
                "accounts/resolve",
                "abort t1 by hand",
            ),
            (Request::Run(body(legs)), "transactions/run", "run a -30, b +30"),
            (Request::Recover(body("{}")), "transactions/recover", "recover"),
            (
                Request::ResolveLeg(body(
                    r#"{"account":"a","decision":"commit","reason":"stuck"}"#,
                )),
                "transactions/resolve",
                "commit a by hand",
            ),
            (Request::Forget(body("{}")), "transactions/forget", "forget"),
        ]
    }

    #[test]
    fn every_request_has_one_path_and_one_machine() {
        for (request, path, summary) in requests() {
            let found = format!("{}/{}", request.kind().plural(), request.operation());
            assert_eq!(found, path);
            assert_eq!(request.summary(), summary);
            let taken_by = [
                LeaseAuthority::input(request.clone()).is_some(),
                FencedResource::input(request.clone()).is_some(),
                ShardCoordinator::input(request.clone()).is_some(),
                Account::input(request.clone()).is_some(),
                TxnCoordinator::input(request.clone()).is_some(),
            ];
            let expected = ObjectKind::ALL.map(|kind| kind == request.kind());
            assert_eq!(taken_by, expected, "{path}");
        }
    }

    #[test]
    fn bodies_refuse_what_they_do_not_know() {
        for (request, path, _) in requests() {
            let json = serde_json::to_value(&request).expect("a request is JSON");
            let mut more = json.clone();
            more["no_such_field"] = 1.into();
            let is_accepted = match &request {
                Request::Acquire(_) => serde_json::from_value::<Acquire>(more).is_ok(),
                Request::Renew(_) => serde_json::from_value::<Renew>(more).is_ok(),
                Request::Release(_) => serde_json::from_value::<Release>(more).is_ok(),
                Request::ForceRelease(_) => serde_json::from_value::<ForceRelease>(more).is_ok(),
                Request::Claim(_) => serde_json::from_value::<Claim>(more).is_ok(),
                Request::Write(_) => serde_json::from_value::<Write>(more).is_ok(),
                Request::Read(_) => serde_json::from_value::<Read>(more).is_ok(),
                Request::Apply(_) => serde_json::from_value::<Apply>(more).is_ok(),
                Request::Seal(_) => serde_json::from_value::<Seal>(more).is_ok(),
                Request::Open(_) => serde_json::from_value::<Open>(more).is_ok(),
                Request::OpenAccount(_) => serde_json::from_value::<OpenAccount>(more).is_ok(),
                Request::ResolveHold(_) => serde_json::from_value::<ResolveHold>(more).is_ok(),
                Request::Run(_) => serde_json::from_value::<Run>(more).is_ok(),
                Request::Recover(_) => serde_json::from_value::<Recover>(more).is_ok(),
                Request::ResolveLeg(_) => serde_json::from_value::<ResolveLeg>(more).is_ok(),
                Request::Forget(_) => serde_json::from_value::<ForgetTxn>(more).is_ok(),
            };
            assert!(!is_accepted, "{path}: {json}");
        }
    }

    #[test]
    fn every_reply_is_tagged_with_its_outcome() {
        let replies: Vec<Reply> = [
            r#"{"outcome":"granted","token":7,"ttl_ms":5,"expires_at_ms":9}"#,
            r#"{"outcome":"refused","holder":"A","remaining_ms":5}"#,
            r#"{"outcome":"queued","position":1}"#,
            r#"{"outcome":"timeout"}"#,
            r#"{"outcome":"lost","current_token":8}"#,
            r#"{"outcome":"released"}"#,
            r#"{"outcome":"not_holder","current_token":8}"#,
            r#"{"outcome":"conflict","request_id":"r"}"#,
            r#"{"outcome":"exhausted"}"#,
        ]
        .map(|json| LeaseAuthority::reply(body(json)))
        .into_iter()
        .chain(
            [
                r#"{"outcome":"claimed","token":7}"#,
                r#"{"outcome":"applied","version":1}"#,
                r#"{"outcome":"duplicate","first":{"version":1,"token":7}}"#,
                r#"{"outcome":"fenced","presented":7,"high_water_mark":8}"#,
                r#"{"outcome":"not_claimed","presented":7,"claimed":0}"#,
                r#"{"outcome":"gap","expected":2}"#,
                r#"{"outcome":"value","value":null,"version":0,"token":0}"#,
                r#"{"outcome":"conflict","write_id":"w"}"#,
                r#"{"outcome":"full","keys_max":64}"#,
            ]
            .map(|json| FencedResource::reply(body(json))),
        )
        .chain(
            [
                r#"{"outcome":"applied","seq":1,"value":5}"#,
                r#"{"outcome":"duplicate","seq":1}"#,
                r#"{"outcome":"conflict","op_id":"o"}"#,
                r#"{"outcome":"wrong_epoch","current":2}"#,
                r#"{"outcome":"sealed","map_epoch":2,"seq":1}"#,
                r#"{"outcome":"opened","map_epoch":2}"#,
                r#"{"outcome":"full","keys_max":64}"#,
            ]
            .map(|json| ShardCoordinator::reply(body(json))),
        )
        .chain(
            [
                r#"{"outcome":"opened","balance":100}"#,
                r#"{"outcome":"already","balance":100}"#,
                r#"{"outcome":"resolved","balance":70}"#,
                r#"{"outcome":"conflict","decision":"abort"}"#,
                r#"{"outcome":"unknown"}"#,
            ]
            .map(|json| Account::reply(body(json))),
        )
        .chain(
            [
                r#"{"outcome":"committed","n_pending":2}"#,
                r#"{"outcome":"aborted","reason":"insufficient_funds: a"}"#,
                r#"{"outcome":"in_doubt","age_ms":5}"#,
                r#"{"outcome":"conflict","difference":"it has 2 legs and the request has 3"}"#,
                r#"{"outcome":"refused","reason":"a has two legs: add them up"}"#,
                r#"{"outcome":"recovering","attempt":2}"#,
                r#"{"outcome":"resolving","account":"a"}"#,
                r#"{"outcome":"forgotten"}"#,
            ]
            .map(|json| TxnCoordinator::reply(body(json))),
        )
        .collect();
        for reply in replies {
            let json = serde_json::to_value(&reply).expect("a reply is JSON");
            assert_eq!(json["outcome"], reply.outcome(), "{json}");
            let first_word = reply.outcome().split('_').next().expect("a word");
            let summary = reply.summary();
            let is_value = reply.outcome() == "value";
            assert!(is_value || summary.starts_with(first_word), "{summary}");
            assert!(!summary.contains('_'), "{summary}");
        }
    }
}
