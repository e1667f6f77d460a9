//! The clients of the lease and fence models: what each wants, knows and waits for.
//!
//! A client never looks at a clock: it acts on what it was last told, however late. That
//! is the worst that a pause can do, so a pause needs no action of its own; nor does a
//! message that is lost, since one that never arrives is the same.

use super::system::TICK_MS;

/// What the two clients set out to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Their names as holders: equal for a process and its restarted twin.
    pub names: [&'static str; 2],
    /// How often each asks for the lease.
    pub n_rounds: u8,
    /// The keys that each writes under one grant, in this order; it reads the first one.
    pub keys: [&'static [u8]; 2],
    /// Claim before reading.
    pub claims: bool,
    /// Number the writes of a grant.
    pub numbers_writes: bool,
    /// Renewals under one grant, between reading and writing.
    pub n_renewals: u8,
    /// Give the lease back when the writes are done.
    pub releases: bool,
    /// Ready to wait in the queue for this long.
    pub wait_ticks: Option<u64>,
    /// Requests carry a time after which they must not be granted, this far ahead.
    pub not_after_ticks: Option<u64>,
    /// How much time passes in all.
    pub n_ticks: u8,
    /// How often the authority's clock steps back by a tick.
    pub n_steps_back: u8,
    /// How often a request is sent again although nothing said so: by a client that has
    /// lost patience, or by the network.
    pub n_resends: u8,
    /// How often the resource crashes.
    pub n_crashes: u8,
}

impl Plan {
    /// Two clients, one grant each, one key; they claim, read, write and go. One request
    /// is sent twice.
    pub fn simple() -> Self {
        Self {
            names: ["A", "B"],
            n_rounds: 1,
            keys: [&[0], &[0]],
            claims: true,
            numbers_writes: true,
            n_renewals: 0,
            releases: true,
            wait_ticks: None,
            not_after_ticks: None,
            n_ticks: 2,
            n_steps_back: 0,
            n_resends: 1,
            n_crashes: 0,
        }
    }
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ask {
    Acquire { not_after_ms: Option<u64> },
    Renew { token: u64 },
    Claim { token: u64 },
    Read { token: u64 },
    Write { n: u8, token: u64, based_on: Option<u64> },
    Release { token: u64 },
}

/// A request on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Message {
    /// Who sent it.
    pub client: u8,
    /// In which of its rounds.
    pub round: u8,
    /// Under which grant, counted over the whole history.
    pub grant: u8,
    /// What it asks for.
    pub ask: Ask,
}

/// What a client is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Doing {
    /// Has no lease and waits for nothing.
    Idle,
    /// Believes that it has the lease, and waits for nothing.
    Holding,
    /// Has written everything.
    Written,
    /// Waits for the answer to an acquire.
    Acquiring,
    /// … to a renewal.
    Renewing,
    /// … to a claim.
    Claiming,
    /// … to a read.
    Reading,
    /// … to the writes whose bits are set.
    Writing(u8),
    /// Has nothing left to do.
    Gone,
}

/// One client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Client {
    pub id: u8,
    pub round: u8,
    pub doing: Doing,
    /// The grant that it believes to hold, and its token.
    pub grant: u8,
    pub token: u64,
    pub has_claimed: bool,
    /// The version that it read.
    pub version_read: Option<u64>,
    pub n_renewals: u8,
    /// It was told to ask again: its place in the queue, or a gap.
    pub may_ask_again: bool,
}

impl Client {
    pub fn new(id: u8) -> Self {
        Self {
            id,
            round: 0,
            doing: Doing::Idle,
            grant: 0,
            token: 0,
            has_claimed: false,
            version_read: None,
            n_renewals: 0,
            may_ask_again: false,
        }
    }

    fn message(&self, ask: Ask) -> Message {
        Message { client: self.id, round: self.round, grant: self.grant, ask }
    }

    fn acquire(&self, plan: &Plan, now_ms: u64) -> Message {
        let not_after_ms = plan.not_after_ticks.map(|ticks| now_ms + ticks * TICK_MS);
        self.message(Ask::Acquire { not_after_ms })
    }

    fn write(&self, n: u8) -> Message {
        self.message(Ask::Write { n, token: self.token, based_on: self.version_read })
    }

    /// What it sends of its own accord, and what it is about then.
    pub fn next(&self, plan: &Plan, now_ms: u64) -> Option<(Vec<Message>, Doing)> {
        let token = self.token;
        match self.doing {
            Doing::Idle => Some((vec![self.acquire(plan, now_ms)], Doing::Acquiring)),
            Doing::Holding if plan.claims && !self.has_claimed => {
                Some((vec![self.message(Ask::Claim { token })], Doing::Claiming))
            }
            Doing::Holding if self.version_read.is_none() => {
                Some((vec![self.message(Ask::Read { token })], Doing::Reading))
            }
            Doing::Holding => {
                let n_writes = plan.keys[usize::from(self.id)].len() as u8;
                let writes = (0..n_writes).map(|n| self.write(n)).collect();
                Some((writes, Doing::Writing((1 << n_writes) - 1)))
            }
            Doing::Written if plan.releases => {
                Some((vec![self.message(Ask::Release { token })], Doing::Gone))
            }
            _ => None,
        }
    }

    /// The renewal that it may send instead: between reading and writing.
    pub fn renewal(&self, plan: &Plan) -> Option<Message> {
        let may = self.doing == Doing::Holding
            && self.version_read.is_some()
            && self.n_renewals < plan.n_renewals;
        may.then(|| self.message(Ask::Renew { token: self.token }))
    }

    /// The requests whose answers it waits for.
    pub fn unanswered(&self, plan: &Plan, now_ms: u64) -> Vec<Message> {
        let token = self.token;
        match self.doing {
            Doing::Acquiring => vec![self.acquire(plan, now_ms)],
            Doing::Renewing => vec![self.message(Ask::Renew { token })],
            Doing::Claiming => vec![self.message(Ask::Claim { token })],
            Doing::Reading => vec![self.message(Ask::Read { token })],
            Doing::Writing(bits) => {
                (0..2).filter(|n| bits & (1 << n) != 0).map(|n| self.write(n)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Whether it waits for the answer to this message.
    pub fn awaits(&self, message: &Message) -> bool {
        self.round == message.round
            && match message.ask {
                Ask::Acquire { .. } => self.doing == Doing::Acquiring,
                Ask::Renew { .. } => self.doing == Doing::Renewing,
                Ask::Claim { token } => self.doing == Doing::Claiming && token == self.token,
                Ask::Read { .. } => self.doing == Doing::Reading,
                Ask::Write { n, .. } => {
                    matches!(self.doing, Doing::Writing(bits) if bits & (1 << n) != 0)
                }
                Ask::Release { .. } => false,
            }
    }

    /// It was granted the lease, or more time; a renewal may come with another token.
    pub fn hear_granted(&mut self, grant: u8, token: u64) {
        if self.token != token || self.grant != grant {
            self.has_claimed = false;
        }
        self.grant = grant;
        self.token = token;
        self.doing = Doing::Holding;
    }

    /// One of its writes is done.
    pub fn hear_written(&mut self, n: u8, plan: &Plan) {
        let Doing::Writing(bits) = self.doing else { return };
        let left = bits & !(1 << n);
        self.doing = if left == 0 { Doing::Written } else { Doing::Writing(left) };
        if left == 0 && !plan.releases {
            self.end_round(plan);
        }
    }

    /// It gives up what it believed and begins anew, if it has a round left.
    pub fn end_round(&mut self, plan: &Plan) {
        let round = self.round + 1;
        let doing = if round < plan.n_rounds { Doing::Idle } else { Doing::Gone };
        *self = Self { round, doing, ..Self::new(self.id) };
    }
}
