//! A client that works under a lease: acquire, claim, read, write twice, release.
//!
//! With the paper's code it does not claim, and a write that is refused as stale is sent
//! again under a fresh token. It never looks at a clock. It sends again what is not answered, with the same ids, and
//! gives up what it believes only when it is told.

use protocol::fence::{Claim, FenceReply, Read, Write};
use protocol::host::Unavailable;
use protocol::ids::{FencingToken, Label, NodeId, TtlMs, WaitMs};
use protocol::lease::{Acquire, LeaseReply, Release, Renew};
use protocol::object::{Reply, Request};
use protocol::sim::Answer;

use super::draw::Draw;
use super::network::Actor;

/// One process of one name.
pub struct Holder {
    name: String,
    holder: Label,
    /// Claims before it reads, as a client of the repaired resource does.
    claims: bool,
    round: u64,
    token: Option<FencingToken>,
    has_claimed: bool,
    has_read: bool,
    n_written: u64,
    /// It was told that its write is stale, and cannot tell that from one that was done.
    doubts: bool,
    waits_for: Option<(u64, Request)>,
    sleeps_until_ms: u64,
}

impl Holder {
    pub fn new(name: &str, holder: &str, claims: bool) -> Self {
        Self {
            name: name.to_owned(),
            holder: label(holder),
            claims,
            round: 0,
            token: None,
            has_claimed: false,
            has_read: false,
            n_written: 0,
            doubts: false,
            waits_for: None,
            sleeps_until_ms: 0,
        }
    }

    fn begin_anew(&mut self) {
        let Self { name, round, sleeps_until_ms, .. } = &*self;
        let (round, sleeps_until_ms) = (round + 1, *sleeps_until_ms);
        let anew = Self::new(name, self.holder.as_str(), self.claims);
        *self = Self { round, sleeps_until_ms, ..anew };
    }

    fn key(&self) -> Label {
        label(if self.round.is_multiple_of(3) { "stock" } else { "balance" })
    }

    fn next(&self, draw: &mut Draw) -> Request {
        let nonce = Some(label(&self.name));
        let ttl_ms = TtlMs::try_from(300).expect("a ttl");
        let lease = "orders".try_into().expect("a lease");
        let Some(token) = self.token else {
            let request_id = Some(label(&format!("{}.{}", self.name, self.round)));
            let wait_ms = draw.chance(50).then(|| WaitMs::try_from(200).expect("a wait"));
            let holder = self.holder.clone();
            let not_after_ms = None;
            return Request::Acquire(Acquire {
                holder,
                nonce,
                ttl_ms,
                request_id,
                wait_ms,
                not_after_ms,
            });
        };
        if self.claims && !self.has_claimed {
            return Request::Claim(Claim { lease, token });
        }
        if !self.has_read {
            return Request::Read(Read { lease: Some(lease), token: Some(token), key: self.key() });
        }
        if self.doubts || draw.chance(20) {
            let holder = self.holder.clone();
            return Request::Renew(Renew { holder, nonce, token, ttl_ms, request_id: None });
        }
        if self.n_written == 2 {
            return Request::Release(Release { token });
        }
        let value = (self.round * 2 + self.n_written) as i64;
        Request::Write(Write {
            lease,
            token,
            key: self.key(),
            value: value.try_into().expect("a value"),
            write_id: Some(label(&format!("{}.{value}", self.name))),
            seq: Some((self.n_written + 1).try_into().expect("a seq")),
        })
    }

    fn hear_lease(&mut self, reply: &LeaseReply) {
        match reply {
            LeaseReply::Granted { token, .. } => {
                self.doubts = false;
                self.has_claimed &= self.token == Some(*token);
                self.token = Some(*token);
            }
            LeaseReply::Refused { .. } if self.token.is_none() => {}
            _ => self.begin_anew(),
        }
    }

    fn hear_resource(&mut self, reply: &FenceReply) {
        match reply {
            FenceReply::Claimed { .. } => self.has_claimed = true,
            FenceReply::Value { .. } => self.has_read = true,
            FenceReply::Applied { .. } | FenceReply::Duplicate { .. } => self.n_written += 1,
            FenceReply::Fenced { .. } if !self.claims => self.doubts = true,
            _ => self.begin_anew(),
        }
    }
}

impl Actor for Holder {
    fn name(&self) -> &str {
        &self.name
    }

    fn act(&mut self, now_ms: u64, draw: &mut Draw) -> Option<(NodeId, Request)> {
        if now_ms < self.sleeps_until_ms {
            return None;
        }
        if draw.chance(6) {
            self.sleeps_until_ms = now_ms + draw.below(1_500);
            return None;
        }
        let request = match &self.waits_for {
            Some((since_ms, _)) if now_ms < since_ms + 60 => return None,
            Some((_, request)) => request.clone(),
            None => self.next(draw),
        };
        self.waits_for = Some((now_ms, request.clone()));
        let node = if request.operation() == "claim" || request.kind().plural() == "resources" {
            "resource/ledger"
        } else {
            "lease/orders"
        };
        Some((node.to_owned().try_into().expect("a node"), request))
    }

    fn hear(&mut self, _node: &NodeId, request: &Request, answer: &Answer) {
        if self.waits_for.as_ref().is_none_or(|(_, awaited)| awaited != request) {
            return;
        }
        match answer {
            // It asks again, as it does after a silence.
            Answer::Unavailable(
                Unavailable::Down | Unavailable::Crashed | Unavailable::Unreachable,
            )
            | Answer::Reply { reply: Reply::Lease(LeaseReply::Queued { .. }), .. } => return,
            Answer::Reply { reply: Reply::Lease(reply), .. } => self.hear_lease(reply),
            Answer::Reply { reply: Reply::Resource(reply), .. } => self.hear_resource(reply),
            Answer::Reply {
                reply: Reply::Shard(_) | Reply::Account(_) | Reply::Transaction(_),
                ..
            } => {}
        }
        self.waits_for = None;
    }
}

fn label(text: &str) -> Label {
    text.try_into().expect("a label")
}
