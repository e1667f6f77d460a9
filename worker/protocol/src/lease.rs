//! The lease authority: who holds the lease, until when, and under which token.
//!
//! Source: L §5 and §6B, with the holes and fixes B1 to B10 of the protocol review.
//!
//! Invariant: tokens strictly rise over grants, and by the authority's own clock there
//! is at most one holder. Expiry is a comparison of times on every call; the alarm only
//! tidies up, so a late or lost alarm never lets two in.
//!
//! What it does not do: it cannot stop a client that was paused from acting on an old
//! grant. Only the resource can (see [`crate::fence`]).
//!
//! Not rules, and why: bad arguments (B5) and tokens beyond 2^53 (B9) are refused by
//! the types of [`crate::ids`] in every setting, since a lab that can be poisoned teaches
//! nothing; which clock a client counts by (B6) is the client's own matter, so the reply
//! says how long is left and never asks the client to compare clocks; a token stream that
//! restarts (B8) is what `keep_token` off shows.

use serde::{Deserialize, Serialize};

use crate::ids::{FencingToken, Label, MAX_SAFE_INTEGER, ObjectKind, TimestampMs, TtlMs, WaitMs};
use crate::machine::{Effect, Effects, Machine};
use crate::rules::switches;
use crate::table::{
    Cell,
    ColumnType::{Integer, Text},
    Rows, TableSchema, Tabled,
};
use crate::trace::{Decision, GrantedBy, ObjectRecord, TraceKind, decided};

/// How many candidates may wait at once; one more is refused.
pub const WAITERS_MAX: usize = 32;
/// How many replies are remembered; the oldest is forgotten first.
pub const REPLIES_MAX: usize = 32;

switches! {
    /// The authority's safety measures.
    LeaseRules {
        /// Renewing needs the current token and keeps it. Off: renewing is acquiring, and a
        /// zombie is given a fresh token (B1).
        renew_proves_grant: false,
        /// A name is not an identity: the same name does not re-enter. Off: equal strings
        /// share the lease (B2).
        holder_has_nonce: false,
        /// A request id gets its first reply again. Off: every lost reply burns a token or
        /// leaves a ghost (B4).
        remember_requests: false,
        /// A request that arrives after its `not_after_ms` is not granted (B4, FC-04).
        check_not_after: false,
        /// Candidates that said `wait_ms` queue, first come first served (B10).
        fifo_queue: false,
        /// A waiter whose own deadline has passed is not granted (FC-04).
        check_waiter_deadline: false,
        /// Time never runs backwards for the authority (B7).
        monotonic_clock: false,
        /// The token survives release, expiry and clean-up. Off: the row is deleted, and the
        /// numbers start again (B3, B8). The paper keeps it.
        keep_token: true,
    }
}

/// Asks for the lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Acquire {
    /// Who asks.
    pub holder: Label,
    /// Which process of that name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<Label>,
    /// How long the lease is to last.
    pub ttl_ms: TtlMs,
    /// Names this request, so that it can be asked again without a second grant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Label>,
    /// Ready to queue for this long. Needs `request_id`: ask again with it to learn the
    /// outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<WaitMs>,
    /// Do not grant after this time of the authority's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_after_ms: Option<TimestampMs>,
}

/// Asks for more time.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Renew {
    /// Who asks.
    pub holder: Label,
    /// Which process of that name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<Label>,
    /// The grant to prolong.
    pub token: FencingToken,
    /// How long from now.
    pub ttl_ms: TtlMs,
    /// Names this request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Label>,
}

/// Gives the lease back.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Release {
    /// The grant to end. A token that is no longer current changes nothing.
    pub token: FencingToken,
}

/// Takes the lease from its holder.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ForceRelease {
    /// The grant to end, so that nobody ends another one by accident (FC-26).
    pub token: FencingToken,
    /// Why, for the log: 1 to 200 characters.
    pub reason: String,
}

/// What can be asked of the authority.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LeaseInput {
    /// Asks for the lease.
    Acquire(Acquire),
    /// Asks for more time.
    Renew(Renew),
    /// Gives the lease back.
    Release(Release),
    /// Takes the lease from its holder.
    ForceRelease(ForceRelease),
    /// Time has passed.
    Tick,
}

/// What the authority answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum LeaseReply {
    /// The lease is yours.
    Granted {
        /// Tag every write with it.
        token: FencingToken,
        /// Time left when this was answered. Count it from when you *sent* the request, by
        /// your own clock that never jumps (B6).
        ttl_ms: u64,
        /// The same moment by the authority's clock; do not compare it with your own.
        expires_at_ms: u64,
    },
    /// Somebody else holds it.
    Refused {
        /// Who.
        holder: Label,
        /// For how long still, by the authority's clock.
        remaining_ms: u64,
    },
    /// You wait. Ask again with the same `request_id`.
    Queued {
        /// 1 is next.
        position: u64,
    },
    /// You waited long enough, or the request came after its `not_after_ms`.
    Timeout,
    /// The token is not the current grant: somebody was granted since, or it lapsed.
    Lost {
        /// The highest token ever granted.
        current_token: FencingToken,
    },
    /// The lease is free again, or with the next in the queue.
    Released,
    /// The token is not the current grant; nothing was changed.
    NotHolder {
        /// The highest token ever granted.
        current_token: FencingToken,
    },
    /// This `request_id` was used for something else.
    Conflict {
        /// The request id.
        request_id: Label,
    },
    /// No token is left.
    Exhausted,
}

/// Who holds a lease: a name and, where the rule asks for it, which process.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Holder {
    /// The name.
    pub name: Label,
    /// Which process of that name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<Label>,
}

/// A candidate in the queue.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Waiter {
    /// Order of arrival.
    pub ticket: u64,
    /// The request to answer.
    pub request_id: Label,
    /// Who waits.
    pub holder: Holder,
    /// How long its lease is to last.
    pub ttl_ms: u64,
    /// Until when it waits, by the authority's clock.
    pub deadline_ms: u64,
}

/// The first reply to a request id.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RememberedReply {
    /// The request.
    pub request_id: Label,
    /// Order of the replies.
    pub ordinal: u64,
    /// Who asked.
    pub holder: Holder,
    /// The token granted; `None` for a timeout.
    pub token: Option<FencingToken>,
    /// When the grant ends, by the authority's clock.
    pub expires_at_ms: u64,
}

/// What survives a crash.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeaseRecord {
    /// The holder, until it is known that the lease ended.
    pub holder: Option<Holder>,
    /// The highest token ever granted.
    pub token: u64,
    /// When the current grant ends, by the authority's clock.
    pub expires_at_ms: u64,
    /// The largest time ever seen (rule `monotonic_clock`).
    pub max_seen_ms: u64,
    /// Tickets and reply ordinals handed out.
    pub counter: u64,
    /// The queue, first come first.
    pub waiters: Vec<Waiter>,
    /// Remembered replies, oldest first.
    pub replies: Vec<RememberedReply>,
}

/// The machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeaseAuthority {
    record: LeaseRecord,
    rules: LeaseRules,
}

/// Events of the step in progress, with the lines that decided them.
type Happened = Vec<(TraceKind, Option<Decision>)>;

impl Machine for LeaseAuthority {
    type Record = LeaseRecord;
    type Rules = LeaseRules;
    type Input = LeaseInput;
    type Reply = LeaseReply;

    const KIND: ObjectKind = ObjectKind::Lease;

    fn traced(record: &LeaseRecord) -> ObjectRecord {
        ObjectRecord::Lease(record.clone())
    }

    fn restore(record: Option<LeaseRecord>, rules: LeaseRules) -> Self {
        Self { record: record.unwrap_or_default(), rules }
    }

    fn record(&self) -> &LeaseRecord {
        &self.record
    }

    fn rules(&self) -> LeaseRules {
        self.rules
    }

    fn set_rules(&mut self, rules: LeaseRules) {
        self.rules = rules;
    }

    fn tick() -> LeaseInput {
        LeaseInput::Tick
    }

    fn step(&mut self, now_ms: u64, input: LeaseInput, effects: &mut Effects<Self>) {
        let before = self.record.clone();
        let mut happened = Happened::new();
        let now_ms = self.read_clock(now_ms);
        let reply = match input {
            LeaseInput::Acquire(acquire) => Some(self.acquire(now_ms, acquire, &mut happened)),
            LeaseInput::Renew(renew) => Some(self.renew(now_ms, renew, &mut happened)),
            LeaseInput::Release(Release { token }) => {
                Some(self.release(now_ms, token, None, &mut happened))
            }
            LeaseInput::ForceRelease(ForceRelease { token, reason }) => {
                Some(self.release(now_ms, token, Some(reason), &mut happened))
            }
            LeaseInput::Tick => {
                self.expire(now_ms, &mut happened);
                None
            }
        };
        if self.record != before {
            effects.push(Effect::Persist(self.record.clone()));
        }
        effects.extend(reply.map(Effect::Reply));
        effects.extend(happened.into_iter().map(|(kind, why)| Effect::Record(kind, why)));
    }

    fn next_deadline(&self) -> Option<u64> {
        let expiry = self.record.holder.as_ref().map(|_| self.record.expires_at_ms);
        // A waiter has given up once its deadline is past, not at it. Where the rule is off
        // nobody looks at the deadline, and an alarm for it would ring for ever.
        let waiter = self.record.waiters.iter().map(|waiter| waiter.deadline_ms + 1).min();
        let waiter = waiter.filter(|_| self.rules.check_waiter_deadline);
        [expiry, waiter].into_iter().flatten().min()
    }
}

impl LeaseAuthority {
    /// The time to decide by. A host that moves may come back with an earlier clock: the
    /// lease then lasts too long, or with a later one: it ends too early. Neither breaks
    /// safety, which rests on the fence; the rule keeps expiry from being undone (B7).
    fn read_clock(&mut self, now_ms: u64) -> u64 {
        if !self.rules.monotonic_clock {
            return now_ms;
        }
        // Written only together with something else worth a row: see `touch_clock`.
        now_ms.max(self.record.max_seen_ms)
    }

    /// Makes the time part of the record, when the record changes anyway.
    fn touch_clock(&mut self, now_ms: u64) {
        if self.rules.monotonic_clock {
            self.record.max_seen_ms = now_ms;
        }
    }

    fn acquire(&mut self, now_ms: u64, ask: Acquire, happened: &mut Happened) -> LeaseReply {
        let candidate = Holder { name: ask.holder, nonce: ask.nonce };
        if let Some(reply) = self.repeated(now_ms, ask.request_id.as_ref(), &candidate, happened) {
            return reply;
        }
        if self.rules.check_not_after && ask.not_after_ms.is_some_and(|limit| limit.get() < now_ms)
        {
            let not_after_ms = ask.not_after_ms.map_or(0, TimestampMs::get);
            let holder = candidate.name;
            let kind = TraceKind::RequestExpired { holder, not_after_ms, clock_ms: now_ms };
            happened.push((kind, decided!("check_not_after")));
            return LeaseReply::Timeout;
        }
        self.expire(now_ms, happened);
        let Some(holder) = self.record.holder.clone() else {
            return self.grant(
                now_ms,
                candidate,
                ask.ttl_ms.get(),
                ask.request_id,
                GrantedBy::Acquire,
                happened,
            );
        };
        // The paper compares names: a restarted twin, or a zombie, is let in again (B2).
        if !self.rules.holder_has_nonce && holder.name == candidate.name {
            return self.grant(
                now_ms,
                candidate,
                ask.ttl_ms.get(),
                ask.request_id,
                GrantedBy::ReEntry,
                happened,
            );
        }
        if let (true, Some(wait_ms), Some(request_id)) =
            (self.rules.fifo_queue, ask.wait_ms, ask.request_id)
            && self.record.waiters.len() < WAITERS_MAX
        {
            // Whichever comes first: it is tired of waiting, or its request is out of date.
            let limit_ms = ask.not_after_ms.filter(|_| self.rules.check_not_after);
            let limit_ms = limit_ms.map_or(MAX_SAFE_INTEGER, TimestampMs::get);
            let deadline_ms = (now_ms + wait_ms.get()).min(limit_ms);
            return self.queue(now_ms, candidate, ask.ttl_ms, deadline_ms, request_id, happened);
        }
        let remaining_ms = self.record.expires_at_ms.saturating_sub(now_ms);
        let kind = TraceKind::LeaseRefused {
            candidate: candidate.name,
            holder: holder.name.clone(),
            remaining_ms,
        };
        happened.push((kind, decided!("one_holder")));
        LeaseReply::Refused { holder: holder.name, remaining_ms }
    }

    /// The answer to a request id that came before: its first reply, or its place in the
    /// queue. A refusal changed nothing and is not remembered.
    fn repeated(
        &mut self,
        now_ms: u64,
        request_id: Option<&Label>,
        asked_by: &Holder,
        happened: &mut Happened,
    ) -> Option<LeaseReply> {
        let request_id = request_id?;
        if self.rules.fifo_queue {
            // The deadline of a waiter must not depend on an alarm having come in time.
            self.expire(now_ms, happened);
            if let Some(index) =
                self.record.waiters.iter().position(|w| w.request_id == *request_id)
            {
                return Some(LeaseReply::Queued { position: index as u64 + 1 });
            }
        }
        // A queued request can only learn its outcome this way, so the queue implies it.
        if !self.rules.remember_requests && !self.rules.fifo_queue {
            return None;
        }
        let first = self.record.replies.iter().find(|reply| reply.request_id == *request_id)?;
        let (token, first_expires_at_ms) = (first.token, first.expires_at_ms);
        let request_id = request_id.clone();
        if first.holder != *asked_by {
            happened.push((
                TraceKind::RequestConflicted { request_id: request_id.clone() },
                decided!("remember_requests"),
            ));
            return Some(LeaseReply::Conflict { request_id });
        }
        happened.push((TraceKind::RequestRepeated { request_id }, decided!("remember_requests")));
        // The same grant as at first, but the time left is what is left now: it may have been
        // prolonged, or have ended by a release or by force.
        let is_held = self.record.holder.as_ref() == Some(asked_by)
            && token.is_some_and(|token| token.get() == self.record.token);
        let expires_at_ms =
            if is_held { self.record.expires_at_ms } else { first_expires_at_ms.min(now_ms) };
        Some(token.map_or(LeaseReply::Timeout, |token| LeaseReply::Granted {
            token,
            ttl_ms: expires_at_ms.saturating_sub(now_ms),
            expires_at_ms,
        }))
    }

    fn queue(
        &mut self,
        now_ms: u64,
        holder: Holder,
        ttl_ms: TtlMs,
        deadline_ms: u64,
        request_id: Label,
        happened: &mut Happened,
    ) -> LeaseReply {
        self.touch_clock(now_ms);
        self.record.counter += 1;
        let position = self.record.waiters.len() as u64 + 1;
        let name = holder.name.clone();
        self.record.waiters.push(Waiter {
            ticket: self.record.counter,
            request_id,
            holder,
            ttl_ms: ttl_ms.get(),
            deadline_ms,
        });
        let kind = TraceKind::WaiterQueued { holder: name, position, deadline_ms };
        happened.push((kind, decided!("fifo_queue")));
        LeaseReply::Queued { position }
    }

    fn grant(
        &mut self,
        now_ms: u64,
        holder: Holder,
        ttl_ms: u64,
        request_id: Option<Label>,
        by: GrantedBy,
        happened: &mut Happened,
    ) -> LeaseReply {
        let next = self.record.token + 1;
        let Ok(token) = FencingToken::try_from(next) else {
            debug_assert!(next > MAX_SAFE_INTEGER);
            happened.push((TraceKind::TokensExhausted, decided!("safe_integers")));
            return LeaseReply::Exhausted;
        };
        let expires_at_ms = (now_ms + ttl_ms).min(MAX_SAFE_INTEGER);
        self.touch_clock(now_ms);
        self.record.token = next;
        self.record.expires_at_ms = expires_at_ms;
        self.record.holder = Some(holder.clone());
        // A queued request can only learn its outcome by asking again, so the queue needs
        // no rule for this.
        let is_remembered = self.rules.remember_requests || by == GrantedBy::Queue;
        if let Some(request_id) = request_id.filter(|_| is_remembered) {
            self.remember(request_id, holder.clone(), Some(token), expires_at_ms);
        }
        let kind = TraceKind::LeaseGranted {
            holder: holder.name,
            nonce: holder.nonce,
            token,
            ttl_ms,
            expires_at_ms,
            clock_ms: now_ms,
            by,
        };
        happened.push((kind, decided!("tokens_rise")));
        LeaseReply::Granted { token, ttl_ms, expires_at_ms }
    }

    fn remember(
        &mut self,
        request_id: Label,
        holder: Holder,
        token: Option<FencingToken>,
        expires_at_ms: u64,
    ) {
        self.record.counter += 1;
        let ordinal = self.record.counter;
        self.record.replies.retain(|reply| reply.request_id != request_id);
        self.record.replies.push(RememberedReply {
            request_id,
            ordinal,
            holder,
            token,
            expires_at_ms,
        });
        if self.record.replies.len() > REPLIES_MAX {
            self.record.replies.remove(0);
        }
    }

    fn renew(&mut self, now_ms: u64, ask: Renew, happened: &mut Happened) -> LeaseReply {
        if !self.rules.renew_proves_grant {
            return self.renew_by_acquiring(now_ms, ask, happened);
        }
        self.expire(now_ms, happened);
        let current = ask.token.get() == self.record.token;
        let Some(holder) = self.record.holder.clone().filter(|_| current) else {
            let current = self.current_token();
            let kind = TraceKind::RenewalRefused { presented: ask.token, current };
            happened.push((kind, decided!("renew_proves_grant")));
            return LeaseReply::Lost { current_token: current };
        };
        let expires_at_ms = (now_ms + ask.ttl_ms.get()).min(MAX_SAFE_INTEGER);
        self.touch_clock(now_ms);
        // A renewal never shortens what was promised.
        self.record.expires_at_ms = self.record.expires_at_ms.max(expires_at_ms);
        let expires_at_ms = self.record.expires_at_ms;
        let kind = TraceKind::LeaseRenewed {
            holder: holder.name,
            token: ask.token,
            expires_at_ms,
            clock_ms: now_ms,
        };
        happened.push((kind, decided!("renew_proves_grant")));
        LeaseReply::Granted { token: ask.token, ttl_ms: expires_at_ms - now_ms, expires_at_ms }
    }

    /// The paper's renewal: `acquire` again. Whoever wakes after others came and went gets
    /// a fresh token for work that is stale (B1).
    fn renew_by_acquiring(
        &mut self,
        now_ms: u64,
        ask: Renew,
        happened: &mut Happened,
    ) -> LeaseReply {
        let acquire = Acquire {
            holder: ask.holder,
            nonce: ask.nonce,
            ttl_ms: ask.ttl_ms,
            request_id: ask.request_id,
            wait_ms: None,
            not_after_ms: None,
        };
        let reply = self.acquire(now_ms, acquire, happened);
        for (kind, why) in happened.iter_mut() {
            if let TraceKind::LeaseGranted {
                by: by @ (GrantedBy::Acquire | GrantedBy::ReEntry),
                ..
            } = kind
            {
                *by = GrantedBy::Renewal;
                *why = decided!("renew_proves_grant");
            }
        }
        reply
    }

    fn release(
        &mut self,
        now_ms: u64,
        token: FencingToken,
        forced: Option<String>,
        happened: &mut Happened,
    ) -> LeaseReply {
        self.expire(now_ms, happened);
        let current = token.get() == self.record.token;
        let Some(holder) = self.record.holder.take_if(|_| current) else {
            let current = self.current_token();
            let kind = TraceKind::ReleaseRefused { presented: token, current };
            happened.push((kind, decided!("release_proves_grant")));
            return LeaseReply::NotHolder { current_token: current };
        };
        self.touch_clock(now_ms);
        let kind = TraceKind::LeaseReleased { holder: holder.name, token, forced };
        happened.push((kind, decided!("release_proves_grant")));
        self.end_grant(now_ms, happened);
        LeaseReply::Released
    }

    /// Ends a grant whose time is over and drops waiters who have given up.
    fn expire(&mut self, now_ms: u64, happened: &mut Happened) {
        let due = self.record.expires_at_ms <= now_ms;
        if let Some(holder) = self.record.holder.take_if(|_| due) {
            self.touch_clock(now_ms);
            let token = self.current_token();
            let kind = TraceKind::LeaseExpired { holder: holder.name, token, clock_ms: now_ms };
            happened.push((kind, decided!("expiry")));
            self.end_grant(now_ms, happened);
        }
        if self.rules.check_waiter_deadline {
            while let Some(index) = self.record.waiters.iter().position(|w| w.deadline_ms < now_ms)
            {
                self.time_out(index, happened);
            }
        }
    }

    fn time_out(&mut self, index: usize, happened: &mut Happened) {
        let waiter = self.record.waiters.remove(index);
        let holder = waiter.holder.name.clone();
        self.remember(waiter.request_id, waiter.holder, None, 0);
        happened.push((TraceKind::WaiterTimedOut { holder }, decided!("check_waiter_deadline")));
    }

    /// After a grant has ended: what becomes of the token, and who is next.
    fn end_grant(&mut self, now_ms: u64, happened: &mut Happened) {
        if !self.rules.keep_token {
            self.record.token = 0;
        }
        while !self.record.waiters.is_empty() {
            if self.rules.check_waiter_deadline && self.record.waiters[0].deadline_ms < now_ms {
                self.time_out(0, happened);
                continue;
            }
            let Waiter { request_id, holder, ttl_ms, .. } = self.record.waiters.remove(0);
            self.grant(now_ms, holder, ttl_ms, Some(request_id), GrantedBy::Queue, happened);
            return;
        }
    }

    /// The highest token ever granted. Grants stop before the safe range ends.
    fn current_token(&self) -> FencingToken {
        FencingToken::try_from(self.record.token.min(MAX_SAFE_INTEGER))
            .expect("the token is within the safe range: it was cut to it just now")
    }
}

impl Tabled for LeaseRecord {
    const SCHEMA: &'static [TableSchema] = &[
        TableSchema {
            name: "lease",
            columns: &[
                ("id", Integer),
                ("holder", Text),
                ("nonce", Text),
                ("token", Integer),
                ("expires_at_ms", Integer),
                ("max_seen_ms", Integer),
                ("counter", Integer),
            ],
        },
        TableSchema {
            name: "waiters",
            columns: &[
                ("ticket", Integer),
                ("request_id", Text),
                ("holder", Text),
                ("nonce", Text),
                ("ttl_ms", Integer),
                ("deadline_ms", Integer),
            ],
        },
        TableSchema {
            name: "replies",
            columns: &[
                ("ordinal", Integer),
                ("request_id", Text),
                ("holder", Text),
                ("nonce", Text),
                ("token", Integer),
                ("expires_at_ms", Integer),
            ],
        },
    ];

    fn to_rows(&self) -> Vec<Rows> {
        let text = |label: &Option<Label>| Cell::from(label.as_ref().map(Label::as_str));
        let lease = vec![vec![
            0_u64.into(),
            Cell::from(self.holder.as_ref().map(|holder| holder.name.as_str())),
            Cell::from(self.holder.as_ref().and_then(|h| h.nonce.as_ref().map(Label::as_str))),
            self.token.into(),
            self.expires_at_ms.into(),
            self.max_seen_ms.into(),
            self.counter.into(),
        ]];
        let waiters = self.waiters.iter().map(|waiter| {
            vec![
                waiter.ticket.into(),
                waiter.request_id.as_str().into(),
                waiter.holder.name.as_str().into(),
                text(&waiter.holder.nonce),
                waiter.ttl_ms.into(),
                waiter.deadline_ms.into(),
            ]
        });
        let replies = self.replies.iter().map(|reply| {
            vec![
                reply.ordinal.into(),
                reply.request_id.as_str().into(),
                reply.holder.name.as_str().into(),
                text(&reply.holder.nonce),
                Cell::from(reply.token.map(FencingToken::get)),
                reply.expires_at_ms.into(),
            ]
        });
        vec![lease, waiters.collect(), replies.collect()]
    }

    fn from_rows(tables: &[Rows]) -> Option<Self> {
        let [lease, waiters, replies] = tables else { return None };
        let row = lease.first()?;
        let label = |cell: &Cell| cell.as_text().and_then(|text| Label::try_from(text).ok());
        let holder = |name: &Cell, nonce: &Cell| {
            label(name).map(|name| Holder { name, nonce: label(nonce) })
        };
        Some(Self {
            holder: holder(&row[1], &row[2]),
            token: row[3].as_u64(),
            expires_at_ms: row[4].as_u64(),
            max_seen_ms: row[5].as_u64(),
            counter: row[6].as_u64(),
            waiters: waiters
                .iter()
                .filter_map(|row| {
                    Some(Waiter {
                        ticket: row[0].as_u64(),
                        request_id: label(&row[1])?,
                        holder: holder(&row[2], &row[3])?,
                        ttl_ms: row[4].as_u64(),
                        deadline_ms: row[5].as_u64(),
                    })
                })
                .collect(),
            replies: replies
                .iter()
                .filter_map(|row| {
                    Some(RememberedReply {
                        ordinal: row[0].as_u64(),
                        request_id: label(&row[1])?,
                        holder: holder(&row[2], &row[3])?,
                        token: match &row[4] {
                            Cell::Null => None,
                            cell => FencingToken::try_from(cell.as_u64()).ok(),
                        },
                        expires_at_ms: row[5].as_u64(),
                    })
                })
                .collect(),
        })
    }
}
