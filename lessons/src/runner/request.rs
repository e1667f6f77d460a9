//! From what a script says to the request that a client sends.
//!
//! The numbers are worked out here, from what the client knows at this moment: a client
//! that read before its pause computes with what it read then.

use std::collections::BTreeMap;

use protocol::fence::{Claim, Read, Write};
use protocol::ids::{Count, FencingToken, Label, Name, NodeId, ObjectKind};
use protocol::lease::{Acquire, ForceRelease, Release, Renew};
use protocol::object::Request;
use protocol::shard::{Apply, Op, Open, Seal};
use protocol::transaction::account::{OpenAccount, ResolveHold};
use protocol::transaction::coordinator::{ForgetTxn, Recover, ResolveLeg, Run};

use crate::client::Client;
use crate::script::{Act, Cast, Term, Under, Value};

/// Everything that a request is made from.
pub(super) struct Desk<'a> {
    pub(super) cast: &'a Cast,
    pub(super) clients: &'a BTreeMap<Label, Client>,
    pub(super) client: &'a Client,
}

impl Desk<'_> {
    /// The object and the request; the error says what is missing. `None`: not a request.
    pub(super) fn request(&self, act: &Act) -> Result<Option<(NodeId, Request)>, String> {
        let name = self.client.name().clone();
        let nonce = Some(self.client.nonce());
        let lease_node = |lease: &Name| NodeId::Object(ObjectKind::Lease, lease.clone());
        let resource_node = |name: &Name| NodeId::Object(ObjectKind::Resource, name.clone());
        let shard_node = |name: &Name| NodeId::Object(ObjectKind::Shard, name.clone());
        let txn_node = |name: &Name| NodeId::Object(ObjectKind::Transaction, name.clone());
        Ok(Some(match act {
            Act::Check { .. } => return Ok(None),
            Act::Acquire { lease, ttl_ms, request, wait_ms, poll: _ } => {
                let (ttl_ms, wait_ms) = (*ttl_ms, *wait_ms);
                let request_id = request.clone();
                let acquire = Acquire {
                    holder: name,
                    nonce,
                    ttl_ms,
                    request_id,
                    wait_ms,
                    not_after_ms: None,
                };
                (lease_node(lease), Request::Acquire(acquire))
            }
            Act::Renew { lease, ttl_ms, token } => {
                let token = self.token(lease, token.as_ref())?;
                let renew = Renew { holder: name, nonce, token, ttl_ms: *ttl_ms, request_id: None };
                (lease_node(lease), Request::Renew(renew))
            }
            Act::Release { lease, token } => {
                let token = self.token(lease, token.as_ref())?;
                (lease_node(lease), Request::Release(Release { token }))
            }
            Act::ForceRelease { lease, token, reason } => {
                let token = self.token(lease, Some(token))?;
                let reason = reason.clone();
                (lease_node(lease), Request::ForceRelease(ForceRelease { token, reason }))
            }
            Act::Claim { resource, under } => {
                let (lease, token) = self.under(under)?;
                (resource_node(resource), Request::Claim(Claim { lease, token }))
            }
            Act::Read { resource, key, under } => {
                let under = under.as_ref().map(|under| self.under(under)).transpose()?;
                let (lease, token) = under.unzip();
                (resource_node(resource), Request::Read(Read { lease, token, key: key.clone() }))
            }
            Act::Write { resource, key, value, under, id, seq } => {
                let (lease, token) = self.under(under)?;
                let value = self.value(value)?;
                let (key, write_id) = (key.clone(), id.clone());
                let seq = seq.map(count).transpose()?;
                let write = Write { lease, token, key, value, write_id, seq };
                (resource_node(resource), Request::Write(write))
            }
            Act::Apply { shard, key, add, value, id, map_epoch } => {
                let (key, value) = (key.clone(), self.value(value)?);
                let op = if *add { Op::Add { key, amount: value } } else { Op::Put { key, value } };
                let map_epoch = map_epoch.map(count).transpose()?;
                let apply = Apply { op, op_id: id.clone(), map_epoch };
                (shard_node(shard), Request::Apply(apply))
            }
            Act::Seal { shard, map_epoch } => {
                (shard_node(shard), Request::Seal(Seal { map_epoch: count(*map_epoch)? }))
            }
            Act::Open { shard, map_epoch, copy } => {
                let mut state = BTreeMap::new();
                if *copy {
                    for (key, value) in self.client.sealed_state() {
                        let key = Label::try_from(key.as_str()).map_err(|bad| bad.to_string())?;
                        state.insert(key, (*value).try_into().map_err(|bad| format!("{bad}"))?);
                    }
                }
                let open = Open { map_epoch: count(*map_epoch)?, state };
                (shard_node(shard), Request::Open(open))
            }
            Act::OpenAccount { account, balance } => {
                let node = NodeId::Object(ObjectKind::Account, account.clone());
                (node, Request::OpenAccount(OpenAccount { balance: count(*balance)? }))
            }
            Act::Run { transaction, legs, within_ms } => {
                let run = Run { legs: legs.clone(), vote_within_ms: *within_ms };
                (txn_node(transaction), Request::Run(run))
            }
            Act::Recover { transaction } => (txn_node(transaction), Request::Recover(Recover {})),
            Act::Forget { transaction } => (txn_node(transaction), Request::Forget(ForgetTxn {})),
            Act::Resolve { object, about, decision, reason } => {
                let (about, decision, reason) = (about.clone(), *decision, reason.clone());
                let request = match object.object_kind() {
                    Some(ObjectKind::Transaction) => {
                        Request::ResolveLeg(ResolveLeg { account: about, decision, reason })
                    }
                    _ => Request::ResolveHold(ResolveHold { transaction: about, decision, reason }),
                };
                (object.clone(), request)
            }
        }))
    }

    /// The number that a script's value stands for, by what each client knows.
    pub(super) fn number(&self, value: &Value) -> Result<i64, String> {
        let known = |term: &Term| match term {
            Term::Number(number) => Some(*number),
            Term::Token(client) | Term::Read(client, _) => self.clients.get(client)?.known(term),
        };
        value.evaluate(known).map_err(|term| {
            format!("{term} is not known yet: let the client acquire, or read the key, first")
        })
    }

    fn value(&self, value: &Value) -> Result<protocol::ids::Value, String> {
        self.number(value)?.try_into().map_err(|bad| format!("{bad}"))
    }

    fn under(&self, under: &Under) -> Result<(Name, FencingToken), String> {
        let lease = under.lease.as_ref().or_else(|| self.cast.only_lease());
        let lease = lease.ok_or("say under which lease: lease=orders")?;
        Ok((lease.clone(), self.token(lease, under.token.as_ref())?))
    }

    fn token(&self, lease: &Name, token: Option<&Value>) -> Result<FencingToken, String> {
        let Some(value) = token else {
            let name = self.client.name();
            return self
                .client
                .token(lease)
                .ok_or_else(|| format!("{name} was never granted {lease}: let it acquire first"));
        };
        let number = u64::try_from(self.number(value)?);
        number
            .ok()
            .and_then(|number| number.try_into().ok())
            .ok_or_else(|| format!("{value} is no token: use a whole number from 0 on"))
    }
}

fn count(number: u64) -> Result<Count, String> {
    number.try_into().map_err(|bad| format!("{bad}"))
}
