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
            let (holder, ttl_ms) = (candidate.name, ask.ttl_ms.get());
            let kind = TraceKind::RequestExpired { holder, ttl_ms, not_after_ms, clock_ms: now_ms };
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{RuleValue, Rules};
    use crate::table::Tabled;

    fn rules(base: LeaseRules, changes: &[(&str, bool)]) -> LeaseRules {
        let mut rules = base;
        for (rule, on) in changes {
            rules.set(rule, &RuleValue::Switch(*on)).expect("a rule of the lease");
        }
        rules
    }

    fn without(rule: &str) -> LeaseRules {
        rules(LeaseRules::repaired(), &[(rule, false)])
    }

    fn published_with(rule: &str) -> LeaseRules {
        rules(LeaseRules::published(), &[(rule, true)])
    }

    fn number<T: TryFrom<u64, Error: core::fmt::Debug>>(text: &str) -> T {
        text.parse::<u64>().expect("a number").try_into().expect("a number in range")
    }

    /// `A acquire 1000 id=r1 wait=500 by=900`, `A/n1 renew 1 1000`, `A release 1`,
    /// `A force 1`, `tick`.
    fn input(text: &str) -> LeaseInput {
        let words: Vec<_> = text.split_whitespace().collect();
        if words == ["tick"] {
            return LeaseInput::Tick;
        }
        let option =
            |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        let (name, nonce) = words[0].split_once('/').unwrap_or((words[0], ""));
        let holder = Label::try_from(name).expect("a name");
        let nonce = Label::try_from(nonce).ok();
        let request_id = option("id").map(|id| Label::try_from(id).expect("an id"));
        match words[1] {
            "acquire" => LeaseInput::Acquire(Acquire {
                holder,
                nonce,
                ttl_ms: number(words[2]),
                request_id,
                wait_ms: option("wait").map(number),
                not_after_ms: option("by").map(number),
            }),
            "renew" => LeaseInput::Renew(Renew {
                holder,
                nonce,
                token: number(words[2]),
                ttl_ms: number(words[3]),
                request_id,
            }),
            "release" => LeaseInput::Release(Release { token: number(words[2]) }),
            "force" => LeaseInput::ForceRelease(ForceRelease {
                token: number(words[2]),
                reason: "test".to_owned(),
            }),
            other => panic!("no verb: {other}"),
        }
    }

    fn said(reply: &LeaseReply) -> String {
        match reply {
            LeaseReply::Granted { token, ttl_ms, .. } => format!("granted {token} for {ttl_ms}"),
            LeaseReply::Refused { holder, remaining_ms } => {
                format!("refused by {holder} for {remaining_ms}")
            }
            LeaseReply::Queued { position } => format!("queued {position}"),
            LeaseReply::Timeout => "timeout".to_owned(),
            LeaseReply::Lost { current_token } => format!("lost to {current_token}"),
            LeaseReply::Released => "released".to_owned(),
            LeaseReply::NotHolder { current_token } => format!("not holder, it is {current_token}"),
            LeaseReply::Conflict { request_id } => format!("conflict {request_id}"),
            LeaseReply::Exhausted => "exhausted".to_owned(),
        }
    }

    /// Runs `time input => reply` lines. The object starts anew before every one of them,
    /// from nothing but what was persisted (N1); a line without a reply is a tick.
    fn run(record: LeaseRecord, rules: LeaseRules, script: &str) -> LeaseRecord {
        let mut record = record;
        for line in script.trim().lines().map(str::trim) {
            let (at, rest) = line.split_once(' ').expect("a time first");
            let (asked, expected) = rest.split_once(" => ").unwrap_or((rest, ""));
            let mut machine = LeaseAuthority::restore(Some(record.clone()), rules);
            let mut effects = Vec::new();
            machine.step(number(at), input(asked), &mut effects);
            let mut reply = String::new();
            for (index, effect) in effects.iter().enumerate() {
                match effect {
                    Effect::Persist(persisted) => {
                        assert_eq!(index, 0, "persisted before anybody is told: {line}");
                        record = persisted.clone();
                    }
                    Effect::Reply(answer) => reply = said(answer),
                    Effect::Record(..) => {}
                    Effect::Send { .. } | Effect::Await(_) | Effect::Answer(..) => {
                        panic!("it talks to nobody and answers at once")
                    }
                    Effect::Defer(_) => panic!("a lease defers nothing: {line}"),
                }
            }
            assert_eq!(reply, expected, "{line}");
            assert_eq!(*machine.record(), record, "all of it persisted: {line}");
        }
        record
    }

    fn check(rules: LeaseRules, script: &str) -> LeaseRecord {
        run(LeaseRecord::default(), rules, script)
    }

    /// The kinds of event of the last line, with the rules that decided them.
    fn events(rules: LeaseRules, script: &str) -> String {
        let (before, last) = script.trim().rsplit_once('\n').unwrap_or(("", script.trim()));
        let record = if before.is_empty() { <_>::default() } else { check(rules, before) };
        let (at, asked) = last.trim().split_once(' ').expect("a time first");
        let mut effects = Vec::new();
        LeaseAuthority::restore(Some(record), rules).step(
            number(at),
            input(asked.split(" => ").next().expect("an input")),
            &mut effects,
        );
        let named = effects.iter().filter_map(|effect| {
            let Effect::Record(kind, why) = effect else { return None };
            let kind = serde_json::to_value(kind).expect("an event");
            let rule = why.as_ref().map_or("-", |why| why.rule.as_str());
            Some(format!("{} by {rule}", kind["kind"].as_str().expect("a kind")))
        });
        named.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn b1_renewal_is_not_acquisition() {
        let zombie = |last: &str| {
            format!(
                "0 A acquire 1000 => granted 1 for 1000
                 1000 B acquire 1000 => granted 2 for 1000
                 2000 A renew 1 1000 => {last}"
            )
        };
        check(LeaseRules::published(), &zombie("granted 3 for 1000"));
        check(without("renew_proves_grant"), &zombie("granted 3 for 1000"));
        check(LeaseRules::repaired(), &zombie("lost to 2"));
        check(published_with("renew_proves_grant"), &zombie("lost to 2"));
        check(
            LeaseRules::repaired(),
            "0 A acquire 1000 => granted 1 for 1000
             600 A renew 1 1000 => granted 1 for 1000
             700 A renew 1 500 => granted 1 for 900
             1600 A renew 1 1000 => lost to 1
             1700 A renew 7 1000 => lost to 1",
        );
    }

    #[test]
    fn b2_a_name_is_not_an_identity() {
        let twins = "0 A/p1 acquire 1000 => granted 1 for 1000
                     10 A/p2 acquire 1000 => granted 2 for 1000
                     20 A/p1 acquire 1000 => granted 3 for 1000
                     30 A/p2 acquire 1000 => granted 4 for 1000";
        check(LeaseRules::published(), twins);
        check(without("holder_has_nonce"), twins);
        let refused = "0 A/p1 acquire 1000 => granted 1 for 1000
                       10 A/p2 acquire 1000 => refused by A for 990
                       20 A/p1 acquire 1000 => refused by A for 980
                       1000 A/p2 acquire 1000 => granted 2 for 1000";
        check(LeaseRules::repaired(), refused);
        check(published_with("holder_has_nonce"), refused);
    }

    #[test]
    fn b3_release_compares_and_clears() {
        for rules in [LeaseRules::published(), LeaseRules::repaired()] {
            check(
                rules,
                "0 A acquire 1000 => granted 1 for 1000
                 10 B release 9 => not holder, it is 1
                 20 A release 1 => released
                 30 A release 1 => not holder, it is 1
                 40 B acquire 1000 => granted 2 for 1000
                 50 A release 1 => not holder, it is 2
                 60 A force 1 => not holder, it is 2
                 70 A force 2 => released
                 80 C acquire 1000 => granted 3 for 1000
                 2000 C release 3 => not holder, it is 3",
            );
        }
    }

    #[test]
    fn b4_a_request_is_granted_once() {
        let burned = "0 A acquire 1000 id=r1 => granted 1 for 1000
                      10 A acquire 1000 id=r1 => granted 2 for 1000
                      20 A release 2 => released
                      30 A acquire 1000 id=r1 => granted 3 for 1000";
        check(LeaseRules::published(), burned);
        // With nonces the retry is refused by its own ghost instead.
        check(
            without("remember_requests"),
            "0 A acquire 1000 id=r1 => granted 1 for 1000
             10 A acquire 1000 id=r1 => refused by A for 990
             20 A release 1 => released
             30 A acquire 1000 id=r1 => granted 2 for 1000",
        );
        let repeated = "0 A acquire 1000 id=r1 => granted 1 for 1000
                        10 A acquire 1000 id=r1 => granted 1 for 990
                        15 A renew 1 1000 => granted 1 for 1000
                        20 A acquire 1000 id=r1 => granted 1 for 995
                        25 B acquire 1000 id=r1 => conflict r1
                        30 A release 1 => released
                        40 A acquire 1000 id=r1 => granted 1 for 0
                        50 B acquire 1000 => granted 2 for 1000
                        60 A acquire 1000 id=r1 => granted 1 for 0
                        2000 A acquire 1000 id=r1 => granted 1 for 0
                        2000 A acquire 1000 id=r2 => granted 3 for 1000";
        check(LeaseRules::repaired(), repeated);
        check(without("fifo_queue"), repeated);
        // A refusal changed nothing: the same request may succeed later.
        check(
            LeaseRules::repaired(),
            "0 A acquire 1000 id=r1 => granted 1 for 1000
             10 B acquire 1000 id=r2 => refused by A for 990
             1000 B acquire 1000 id=r2 => granted 2 for 1000",
        );
    }

    #[test]
    fn b4_a_request_can_be_too_late() {
        let late = |last: &str| {
            format!(
                "500 A acquire 1000 by=500 => granted 1 for 1000\n2000 B acquire 1000 by=1999 => {last}"
            )
        };
        check(LeaseRules::repaired(), &late("timeout"));
        check(published_with("check_not_after"), &late("timeout"));
        check(without("check_not_after"), &late("granted 2 for 1000"));
        check(LeaseRules::published(), &late("granted 2 for 1000"));
        let queued = |last: &str| {
            format!(
                "0 A acquire 1000 => granted 1 for 1000
                 10 B acquire 1000 id=r1 wait=5000 by=900 => queued 1
                 900 B acquire 1000 id=r1 wait=5000 by=900 => queued 1
                 1000 B acquire 1000 id=r1 wait=5000 by=900 => {last}"
            )
        };
        check(LeaseRules::repaired(), &queued("timeout"));
        check(without("check_not_after"), &queued("granted 2 for 1000"));
    }

    #[test]
    fn b5_bad_arguments_never_reach_the_machine() {
        let acquire = |ttl: &str, holder: &str| {
            serde_json::from_str::<Acquire>(&format!("{{\"holder\":{holder},\"ttl_ms\":{ttl}}}"))
        };
        assert!(acquire("1000", "\"A\"").is_ok());
        for ttl in ["\"1000\"", "-1", "0", "99", "3600001", "1e400", "1.5", "null", "true"] {
            assert!(acquire(ttl, "\"A\"").is_err(), "{ttl}");
        }
        for holder in ["null", "\"\"", "7", "\"a b\""] {
            assert!(acquire("1000", holder).is_err(), "{holder}");
        }
        assert!(serde_json::from_str::<Acquire>(r#"{"ttl_ms":1000}"#).is_err(), "no holder");
        let unknown = r#"{"holder":"A","ttl_ms":1000,"ttl":5}"#;
        assert!(serde_json::from_str::<Acquire>(unknown).is_err(), "an unknown field");
    }

    #[test]
    fn b6_a_lease_ends_at_its_last_moment() {
        for rules in [LeaseRules::published(), LeaseRules::repaired()] {
            check(
                rules,
                "0 A acquire 1000 => granted 1 for 1000
                 999 B acquire 1000 => refused by A for 1
                 1000 B acquire 1000 => granted 2 for 1000",
            );
        }
    }

    #[test]
    fn b7_time_never_runs_backwards() {
        let jump = |last: &str| {
            format!(
                "5000 A acquire 1000 => granted 1 for 1000
                 9000 tick
                 2000 B acquire 1000 => granted 2 for 1000
                 2500 C acquire 1000 => {last}"
            )
        };
        let repaired = check(LeaseRules::repaired(), &jump("refused by B for 1000"));
        assert_eq!((repaired.max_seen_ms, repaired.expires_at_ms), (9_000, 10_000));
        let off = check(without("monotonic_clock"), &jump("refused by B for 500"));
        assert_eq!((off.max_seen_ms, off.expires_at_ms), (0, 3_000));
        check(LeaseRules::published(), &jump("refused by B for 500"));
        check(published_with("monotonic_clock"), &jump("refused by B for 1000"));
    }

    #[test]
    fn b8_the_numbers_survive_the_grant() {
        let again = |last: &str| {
            format!(
                "0 A acquire 1000 => granted 1 for 1000
                 10 A release 1 => released
                 20 B acquire 1000 => granted {last} for 1000"
            )
        };
        check(LeaseRules::published(), &again("2"));
        check(LeaseRules::repaired(), &again("2"));
        check(without("keep_token"), &again("1"));
        check(
            without("keep_token"),
            "0 A acquire 1000 => granted 1 for 1000
             1000 tick
             1100 A renew 1 1000 => lost to 0
             1200 B acquire 1000 => granted 1 for 1000
             1300 A renew 1 1000 => granted 1 for 1000",
        );
    }

    #[test]
    fn b9_no_token_beyond_the_safe_range() {
        for rules in [LeaseRules::published(), LeaseRules::repaired()] {
            let record = LeaseRecord { token: MAX_SAFE_INTEGER - 1, ..<_>::default() };
            let record = run(
                record,
                rules,
                "0 A acquire 100 => granted 9007199254740991 for 100
                 100 B acquire 100 => exhausted
                 200 B acquire 100 => exhausted",
            );
            assert_eq!(record.token, MAX_SAFE_INTEGER);
            assert_eq!(record.holder, None);
        }
    }

    #[test]
    fn b10_first_come_first_served() {
        check(
            LeaseRules::repaired(),
            "0 A acquire 1000 id=a => granted 1 for 1000
             10 B acquire 1000 id=b wait=5000 => queued 1
             20 C acquire 500 id=c wait=5000 => queued 2
             30 B acquire 1000 id=b wait=5000 => queued 1
             40 D acquire 1000 id=d => refused by A for 960
             50 E acquire 1000 wait=5000 => refused by A for 950
             60 A release 1 => released
             70 A acquire 1000 id=a2 => refused by B for 990
             80 B acquire 1000 id=b wait=5000 => granted 2 for 980
             1060 tick
             1100 C acquire 500 id=c wait=5000 => granted 3 for 460",
        );
        let unqueued = "0 A acquire 1000 id=a => granted 1 for 1000
                        10 B acquire 1000 id=b wait=5000 => refused by A for 990
                        60 A release 1 => released
                        70 C acquire 1000 id=c => granted 2 for 1000";
        check(without("fifo_queue"), unqueued);
        check(LeaseRules::published(), unqueued);
        // The queue alone remembers the replies that it owes, and no others.
        check(
            published_with("fifo_queue"),
            "0 A acquire 1000 id=a => granted 1 for 1000
             10 B acquire 1000 id=b wait=5000 => queued 1
             1000 B acquire 1000 id=b wait=5000 => granted 2 for 1000
             1100 B acquire 1000 id=b wait=5000 => granted 2 for 900",
        );
    }

    #[test]
    fn b10_whoever_stopped_waiting_is_passed_over() {
        let gone = |late: &str| {
            format!(
                "0 A acquire 1000 id=a => granted 1 for 1000
                 10 B acquire 1000 id=b wait=100 => queued 1
                 20 C acquire 1000 id=c wait=5000 => queued 2
                 {late}"
            )
        };
        let passed = "110 B acquire 1000 id=b wait=100 => queued 1
                      111 B acquire 1000 id=b wait=100 => timeout
                      112 C acquire 1000 id=c wait=5000 => queued 1
                      1000 tick
                      1001 C acquire 1000 id=c wait=5000 => granted 2 for 999
                      1002 B acquire 1000 id=b wait=100 => timeout";
        check(LeaseRules::repaired(), &gone(passed));
        // A deadline does not depend on an alarm: both are over when the tick comes.
        check(
            LeaseRules::repaired(),
            &gone("1000 tick\n1000 D acquire 100 => refused by C for 1000"),
        );
        let granted = "1000 tick\n1000 D acquire 100 => refused by B for 1000";
        check(without("check_waiter_deadline"), &gone(granted));
    }

    #[test]
    fn the_queue_is_bounded() {
        let mut script = "0 A acquire 3600000 => granted 1 for 3600000".to_owned();
        for position in 1..=WAITERS_MAX {
            script += &format!("\n1 W acquire 100 id=w{position} wait=9 => queued {position}");
        }
        script += "\n1 W acquire 100 id=full wait=9 => refused by A for 3599999";
        let record = check(LeaseRules::repaired(), &script);
        assert_eq!(record.waiters.len(), WAITERS_MAX);
        let record = run(record, LeaseRules::repaired(), "11 tick");
        assert_eq!((record.waiters.len(), record.replies.len()), (0, REPLIES_MAX));
    }

    #[test]
    fn replies_are_bounded_and_the_oldest_is_forgotten() {
        let mut script = String::new();
        for n in 1..=REPLIES_MAX + 1 {
            script += &format!("{n} A acquire 100 id=r{n} => granted {n} for 100\n");
            script += &format!("{n} A release {n} => released\n");
        }
        script += "99 A acquire 100 id=r2 => granted 2 for 0\n";
        script += &format!("99 A acquire 100 id=r1 => granted {} for 100", REPLIES_MAX + 2);
        assert_eq!(check(LeaseRules::repaired(), &script).replies.len(), REPLIES_MAX);
    }

    /// N2, N3: the alarm only tidies up. Early, twice or never, it changes no answer, and
    /// when it must ring is part of the record that the grant itself stored.
    #[test]
    fn n2_n3_the_alarm_is_cosmetic() {
        for rules in [LeaseRules::published(), LeaseRules::repaired()] {
            let with_ticks = check(
                rules,
                "0 A acquire 1000 => granted 1 for 1000
                 500 tick
                 1000 tick
                 1000 tick
                 1200 B acquire 1000 => granted 2 for 1000
                 1300 tick
                 1400 A acquire 1000 => refused by B for 800",
            );
            let never = check(
                rules,
                "0 A acquire 1000 => granted 1 for 1000
                 1200 B acquire 1000 => granted 2 for 1000
                 1400 A acquire 1000 => refused by B for 800",
            );
            assert_eq!(with_ticks, never);
        }
    }

    #[test]
    fn the_next_deadline_is_when_a_tick_changes_something() {
        let deadline = |rules, script: &str| {
            let record = check(rules, script);
            let deadline = LeaseAuthority::restore(Some(record.clone()), rules).next_deadline();
            let at_ms = deadline?;
            let early = run(record.clone(), rules, &format!("{} tick", at_ms - 1));
            assert_eq!(early, record, "a tick before the deadline changes nothing");
            assert_ne!(run(record.clone(), rules, &format!("{at_ms} tick")), record);
            deadline
        };
        let repaired = LeaseRules::repaired();
        assert_eq!(deadline(repaired, "0 A release 1 => not holder, it is 0"), None);
        assert_eq!(deadline(repaired, "5 A acquire 1000 => granted 1 for 1000"), Some(1_005));
        let queued = "5 A acquire 1000 => granted 1 for 1000
                      6 B acquire 1000 id=b wait=10 => queued 1";
        assert_eq!(deadline(repaired, queued), Some(17));
        assert_eq!(deadline(without("check_waiter_deadline"), queued), Some(1_005));
    }

    #[test]
    fn every_event_names_the_rule_that_decided() {
        let held = "0 A acquire 1000 id=a => granted 1 for 1000";
        let cases = [
            ("1 B acquire 1000 => refused by A for 999", "lease_refused by one_holder"),
            ("1 A renew 1 1000", "lease_renewed by renew_proves_grant"),
            ("1 A renew 2 1000", "renewal_refused by renew_proves_grant"),
            ("1 A release 1", "lease_released by release_proves_grant"),
            ("1 A release 2", "release_refused by release_proves_grant"),
            ("1 A acquire 1000 id=a", "request_repeated by remember_requests"),
            ("1 B acquire 1000 id=a", "request_conflicted by remember_requests"),
            ("1 B acquire 1000 id=b wait=9", "waiter_queued by fifo_queue"),
            ("1 B acquire 1000 by=0", "request_expired by check_not_after"),
            ("1000 tick", "lease_expired by expiry"),
            ("1000 B acquire 100", "lease_expired by expiry, lease_granted by tokens_rise"),
            ("1 tick", ""),
        ];
        for (last, expected) in cases {
            let found = events(LeaseRules::repaired(), &format!("{held}\n{last}"));
            assert_eq!(found, expected, "{last}");
        }
        let zombie = format!("{held}\n1000 A renew 1 100");
        let expected = "lease_expired by expiry, lease_granted by renew_proves_grant";
        assert_eq!(events(LeaseRules::published(), &zombie), expected);
        let waiting = format!("{held}\n1 B acquire 100 id=b wait=9 => queued 1\n11 tick");
        let expected = "waiter_timed_out by check_waiter_deadline";
        assert_eq!(events(LeaseRules::repaired(), &waiting), expected);
    }

    #[test]
    fn records_survive_rows_and_json() {
        let rich = check(
            LeaseRules::repaired(),
            "10 A/n1 acquire 1000 id=a => granted 1 for 1000
             20 B acquire 500 id=b wait=100 => queued 1
             30 C/n2 acquire 400 id=c wait=9000 => queued 2
             40 D acquire 300 id=d wait=8000 => queued 3
             200 A/n1 release 1 => released",
        );
        assert_eq!((rich.waiters.len(), rich.replies.len()), (1, 3), "rich enough to tell");
        assert!(rich.replies.iter().any(|reply| reply.token.is_none()));
        for record in [rich, LeaseRecord::default()] {
            assert_eq!(LeaseRecord::from_rows(&record.to_rows()), Some(record.clone()));
            let json = serde_json::to_string(&record).expect("a record is JSON");
            assert_eq!(serde_json::from_str::<LeaseRecord>(&json).expect("and back"), record);
        }
        for (rows, table) in LeaseRecord::default().to_rows().iter().zip(LeaseRecord::SCHEMA) {
            assert!(rows.iter().all(|row| row.len() == table.columns.len()), "{}", table.name);
        }
        assert_eq!(LeaseRecord::from_rows(&[vec![], vec![], vec![]]), None, "nothing stored");
        assert_eq!(LeaseRecord::from_rows(&[]), None);
    }

    #[test]
    fn rules_are_set_by_name() {
        use crate::rules::{Preset, RulesUpdate};
        let off = RulesUpdate {
            set: [("fifo_queue".into(), RuleValue::Switch(false))].into(),
            ..<_>::default()
        };
        assert_eq!(LeaseRules::repaired().updated(&off), Ok(without("fifo_queue")));
        let both = RulesUpdate { preset: Some(Preset::Published), ..off };
        assert_eq!(LeaseRules::repaired().updated(&both), Ok(LeaseRules::published()));
        let mut rules = LeaseRules::published();
        let unknown = rules.set("fifo", &RuleValue::Switch(true)).unwrap_err().to_string();
        assert!(unknown.contains("fifo_queue"), "{unknown}");
        let word = rules.set("fifo_queue", &RuleValue::Choice("yes".into())).unwrap_err();
        assert_eq!(word.to_string(), "rule \"fifo_queue\": use true or false");
        assert_eq!(rules, LeaseRules::published(), "a refused change changes nothing");
        let on = LeaseRules::repaired().entries();
        assert!(on.iter().all(|(_, value)| *value == RuleValue::Switch(true)));
        assert_eq!(on.len(), 8);
    }
}
