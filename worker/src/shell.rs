//! The one shell around every machine: request in, turn written, lab told, answer out.
//!
//! The order of things is the contract. A request is checked whole before anything is
//! touched. The machine takes its step, and in one synchronous turn the record's changed
//! rows, the host's record, the events and the alarm are written. Then the lab is told,
//! then the caller is answered. The platform's output gate makes "write, then reply" safe;
//! the order says it all the same.
//!
//! Invariant: no borrow of the object's memory lives across an `await`. Other requests do
//! come in at each one, so what is read after it is read anew.
//!
//! What it does not do: it decides nothing about a protocol ([`protocol::host`] and the
//! machines do), and it knows no SQL ([`crate::loaded`] does).

use core::cell::{Cell, RefCell};
use std::rc::Rc;

use js_sys::Promise;
use protocol::control::{Control, ControlReply, Delivery};
use protocol::host::{Envelope, Host, HostRecord, Turn, Unavailable};
use protocol::ids::{Name, NodeId};
use protocol::machine::Machine;
use protocol::object::Addressed;
use protocol::rules::Rules;
use protocol::trace::{CrashPoint, DeliveryMode, MessageId, ObjectRecord};
use protocol::transaction::account::Hold;
use protocol::transaction::coordinator::TxnLeg;
use serde_json::json;
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::JsFuture;
use web_sys::Response;

use crate::carrier::Carrier;
use crate::flight::Flight;
use crate::glue;
use crate::incoming::Incoming;
use crate::loaded::{Loaded, Registration};
use crate::problem::Problem;
use crate::routes::{ObjectAction, Operation, Route, path_and_query, route};

/// The reason that the runtime's log shows for an injected crash.
const CRASH_REASON: &str = "an injected crash";

/// Words of refusal for a lab whose log has reached its limit.
pub(crate) const LOG_FULL: &str = "Its log holds as many events as it may.";

/// One object: a machine, its disk and its lab.
pub(crate) struct Shell<M: Machine> {
    pub(crate) ctx: JsValue,
    pub(crate) env: JsValue,
    pub(crate) loaded: RefCell<Option<Loaded<M>>>,
    /// The call to the lab that is under way.
    pub(crate) flight: RefCell<Option<Flight>>,
    /// Messages and callers that are under way.
    pub(crate) carrier: Carrier<M>,
    /// Counts deletions: what was awaited across one must not bring the object back.
    generation: Cell<u64>,
    /// A crash is on its way; nothing may start any more.
    is_crashing: Cell<bool>,
    /// The lab is told at least this often that it is in use.
    pub(crate) touch_every_ms: u64,
}

impl<M: Addressed + 'static> Shell<M> {
    pub(crate) fn new(ctx: JsValue, env: JsValue) -> Self {
        let touch_every_ms = crate::lab::idle_ms(&env) / 4;
        Self {
            ctx,
            env,
            loaded: RefCell::new(None),
            flight: RefCell::new(None),
            carrier: Carrier::new(),
            generation: Cell::new(0),
            is_crashing: Cell::new(false),
            touch_every_ms,
        }
    }

    /// Answers a request, whatever it is.
    pub(crate) async fn answer(self: Rc<Self>, incoming: Result<Incoming, Problem>) -> Response {
        match self.handle(incoming).await {
            Ok(response) => response,
            Err(problem) => problem.respond(),
        }
    }

    /// The alarm rang. An error asks the runtime to ring again.
    pub(crate) async fn alarm(self: Rc<Self>) -> Result<(), JsValue> {
        if self.is_crashing.get() {
            return Err(JsValue::from_str("the object is crashing"));
        }
        match self.ring().await {
            // Nothing that is here, or that is still here, needs the alarm.
            Ok(()) | Err(Problem::UnknownLab) => Ok(()),
            Err(problem) => Err(JsValue::from_str(&format!("{problem:?}"))),
        }
    }

    async fn ring(self: &Rc<Self>) -> Result<(), Problem> {
        if !self.restore()? {
            return Ok(());
        }
        let now_ms = glue::now_ms();
        let (turn, ordinal) = self.with_loaded(|loaded| {
            let turn = loaded.host.alarm(now_ms, false);
            self.is_crashing.set(turn.crash.is_some());
            let ordinal = self.or_end(loaded.write_after_ring(&self.ctx, &turn, now_ms))?;
            Ok((turn, ordinal))
        })?;
        self.conclude(turn, ordinal, None).await?;
        Ok(())
    }

    async fn handle(
        self: &Rc<Self>,
        incoming: Result<Incoming, Problem>,
    ) -> Result<Response, Problem> {
        let incoming = incoming?;
        let (path, _) = path_and_query(&incoming.url);
        if path == "/internal/forget" {
            return self.forget().await;
        }
        if path == "/internal/deliver" {
            return self.receive(incoming.text()?).await;
        }
        if let Some(word) = path.strip_prefix("/internal/delivery/") {
            let mode = if word == "manual" { DeliveryMode::Manual } else { DeliveryMode::Auto };
            if !self.restore()? {
                return Err(Problem::UnknownLab);
            }
            return self.control(Control::Delivery(Delivery { mode })).await;
        }
        let Route::Object { lab, kind, name, action } = route(&incoming.method, path)? else {
            return Err(Problem::UnknownRoute);
        };
        let node = NodeId::Object(kind, name);
        match action {
            ObjectAction::Inspect => {
                self.must_exist(lab, &node).await?;
                self.inspect()
            }
            ObjectAction::Tables => {
                self.must_exist(lab, &node).await?;
                let tables = self.with_loaded(|loaded| loaded.tables_json(&self.ctx))?;
                Ok(glue::answer(200, &tables, -1.0))
            }
            ObjectAction::Outbox => {
                self.must_exist(lab, &node).await?;
                let outbox = self.with_loaded(|loaded| Ok(json!(loaded.host.record().outbox)))?;
                Ok(glue::answer(200, &json!({ "messages": outbox }).to_string(), -1.0))
            }
            ObjectAction::Message { id, action } => {
                self.must_exist(lab, &node).await?;
                self.control(Control::Outbox { id, action }).await
            }
            ObjectAction::Operation(operation) => {
                let request = operation.parse(incoming.json()?)?;
                let envelope = crate::envelope::envelope(incoming.trace.as_deref(), &request)?;
                let input = M::input(request).ok_or(Problem::UnknownRoute)?;
                self.ensure(lab, &node).await?;
                self.operate(operation, &envelope, input).await
            }
            ObjectAction::Control(word) => {
                let control = word.parse(kind, incoming.json()?)?;
                rehearse::<M>(&node, &control)?;
                self.ensure(lab, &node).await?;
                self.control(control).await
            }
        }
    }

    // ---- coming to be, and ceasing to --------------------------------------------------

    /// Makes sure that the object is in memory; a new one asks its lab first. Nothing is
    /// stored for a lab that does not exist.
    pub(crate) async fn ensure(&self, lab: &str, node: &NodeId) -> Result<(), Problem> {
        if self.restore()? {
            return Ok(());
        }
        let generation = self.generation.get();
        let path = format!("register?node={node}");
        let call = glue::send(&self.env, "LABS", lab, &path, "");
        let (status, text) = glue::status_and_text(&JsFuture::from(call).await?);
        let registration: Registration = match status {
            200 => serde_json::from_str(&text)?,
            404 => return Err(Problem::UnknownLab),
            429 => return Err(Problem::Quota(text)),
            _ => return Err(Problem::Internal(format!("register {node}: {status} {text}"))),
        };
        if generation != self.generation.get() {
            return Err(Problem::UnknownLab);
        }
        // Another request may have been here meanwhile.
        if !self.restore()? {
            let loaded = Loaded::create(&self.ctx, lab, node, &registration);
            *self.memory()? = Some(loaded.inspect_err(|_| self.end_now())?);
        }
        Ok(())
    }

    /// Reads the object from disk, unless it is in memory.
    fn restore(&self) -> Result<bool, Problem> {
        if self.is_crashing.get() {
            return Err(Problem::Unavailable(Unavailable::Crashed));
        }
        let mut memory = self.memory()?;
        if memory.is_none() {
            *memory = Loaded::restore(&self.ctx)?;
        }
        Ok(memory.is_some())
    }

    async fn must_exist(&self, lab: &str, node: &NodeId) -> Result<(), Problem> {
        if self.restore()? {
            return Ok(());
        }
        let call = glue::send(&self.env, "LABS", lab, "exists", "");
        let (status, _) = glue::status_and_text(&JsFuture::from(call).await?);
        let missing = if status == 200 {
            Problem::UnknownObject(node.to_string())
        } else {
            Problem::UnknownLab
        };
        Err(missing)
    }

    /// Deletes everything, because the lab is deleted.
    pub(crate) async fn forget(&self) -> Result<Response, Problem> {
        self.generation.set(self.generation.get() + 1);
        *self.memory()? = None;
        JsFuture::from(glue::delete_all(&self.ctx)?).await?;
        Ok(glue::answer(200, "{}", -1.0))
    }

    // ---- what is asked -----------------------------------------------------------------

    async fn operate(
        self: &Rc<Self>,
        operation: Operation,
        envelope: &Envelope,
        input: M::Input,
    ) -> Result<Response, Problem> {
        let now_ms = glue::now_ms();
        let (turn, ordinal) = self.with_loaded(|loaded| {
            if loaded.lab_full {
                return Err(Problem::Quota(LOG_FULL.to_owned()));
            }
            loaded.usage.requests += 1;
            let turn = loaded.host.request(now_ms, envelope, operation.as_str(), input);
            self.is_crashing.set(turn.crash.is_some());
            let ordinal = self.or_end(loaded.write(&self.ctx, &turn, &envelope.events))?;
            Ok((turn, ordinal))
        })?;
        if let Some(reason) = turn.unavailable {
            self.tell_lab(ordinal).await?;
            return Err(Problem::Unavailable(reason));
        }
        let waits = turn.waits.map(|ticket| (ticket, self.carrier.wait(ticket)));
        let reply = self.conclude(turn, ordinal, envelope.request.as_ref()).await?;
        let reply = match (reply, waits) {
            (Some(reply), _) => reply,
            (None, Some((ticket, promise))) => self.await_reply(ticket, promise).await?,
            (None, None) => return Err(Problem::Internal("a step without a reply".to_owned())),
        };
        self.reply(&M::reply(reply))
    }

    /// What follows once a turn is written: its second half, its crash, the lab, whoever
    /// waits, the messages. The answer is the turn's own.
    pub(crate) async fn conclude(
        self: &Rc<Self>,
        mut turn: Turn<M>,
        mut ordinal: u64,
        request: Option<&MessageId>,
    ) -> Result<Option<M::Reply>, Problem> {
        let crash_of_first = turn.crash;
        while let Some((delay_ms, input)) = turn.deferred.take() {
            // The first half is durable and others act on it: the log shows it now.
            self.tell_lab(ordinal).await?;
            JsFuture::from(glue::sleep(delay_ms as f64)).await?;
            (turn, ordinal) = self.with_loaded(|loaded| {
                let turn = loaded.host.deferred(glue::now_ms(), request, input);
                let ordinal = self.written(loaded, &turn)?;
                Ok((turn, ordinal))
            })?;
        }
        match turn.crash.or(crash_of_first) {
            Some(point) => self.crash(point, &turn, ordinal).await?,
            None => self.tell_lab(ordinal).await?,
        }
        self.carrier.tell(turn.answers);
        self.carry();
        Ok(turn.reply)
    }

    /// Writes a turn down; nothing may start any more if it crashes.
    pub(crate) fn written(&self, loaded: &mut Loaded<M>, turn: &Turn<M>) -> Result<u64, Problem> {
        if turn.crash.is_some() {
            self.is_crashing.set(true);
        }
        self.or_end(loaded.write(&self.ctx, turn, &[]))
    }

    pub(crate) fn is_crashing(&self) -> bool {
        self.is_crashing.get()
    }

    async fn control(self: &Rc<Self>, control: Control) -> Result<Response, Problem> {
        let (turn, reply, ordinal) = self.with_loaded(|loaded| {
            if loaded.lab_full {
                return Err(Problem::Quota(LOG_FULL.to_owned()));
            }
            loaded.usage.requests += 1;
            let acted = loaded.host.control(glue::now_ms(), control);
            let (turn, reply) = acted.map_err(|refused| Problem::Malformed(refused.0))?;
            let ordinal = self.written(loaded, &turn)?;
            Ok((turn, reply, ordinal))
        })?;
        // A crash comes at once, so that nobody else is answered meanwhile; the entry tells
        // whoever asked for it (see `forward` in glue.js).
        self.conclude(turn, ordinal, None).await?;
        self.reply::<ControlReply>(&reply)
    }

    /// Ends the object. That it crashed is durable, and the lab knows, before anything is
    /// lost. Comes back only when the reply is to be sent first.
    async fn crash(&self, point: CrashPoint, turn: &Turn<M>, ordinal: u64) -> Result<(), Problem> {
        JsFuture::from(glue::sync(&self.ctx)?).await?;
        self.tell_lab(ordinal).await?;
        if point == CrashPoint::AfterSend {
            glue::abort_after_reply(&self.ctx, CRASH_REASON);
            return Ok(());
        }
        if point == CrashPoint::BeforePersist {
            // Written now, and ended in the same turn: these writes are really lost.
            self.with_loaded(|loaded| loaded.write_and_lose(&self.ctx, turn))?;
        }
        glue::abort_soon(&self.ctx, CRASH_REASON);
        // The runtime rejects this and every other call that is still open.
        core::future::pending().await
    }

    fn inspect(&self) -> Result<Response, Problem> {
        let body = self.with_loaded(|loaded| {
            loaded.touch(&self.ctx)?;
            let host = loaded.host.record();
            let rules = host.rules.entries().into_iter();
            let rules: serde_json::Map<_, _> =
                rules.map(|(name, value)| (name.to_owned(), json!(value))).collect();
            let record = M::traced(loaded.host.machine().record());
            let in_doubt = in_doubt(&record, glue::now_ms());
            Ok(json!({
                "kind": M::KIND,
                "name": loaded.host.node().name(),
                "record": record,
                "in_doubt": in_doubt,
                "rules": rules,
                "incarnation": host.incarnation,
                "down": host.down,
                "clock_offset_ms": host.clock_offset_ms,
                "faults": host.faults,
                "delivery": host.delivery,
                "n_outbox": host.outbox.len(),
                "alarm_suppressed": host.alarm_suppressed,
                "alarm_at_ms": loaded.host.alarm_at_ms(),
            }))
        })?;
        Ok(glue::answer(200, &body.to_string(), -1.0))
    }

    fn reply<T: serde::Serialize>(&self, reply: &T) -> Result<Response, Problem> {
        let lamport = self.with_loaded(|loaded| Ok(loaded.host.record().lamport))?;
        Ok(glue::answer(200, &serde_json::to_string(reply)?, lamport as f64))
    }

    // ---- memory ------------------------------------------------------------------------

    fn memory(&self) -> Result<core::cell::RefMut<'_, Option<Loaded<M>>>, Problem> {
        let memory = self.loaded.try_borrow_mut();
        memory.map_err(|_| Problem::Internal("the object's memory is in use".to_owned()))
    }

    /// Works on the object in memory. It is gone when the lab was deleted meanwhile.
    pub(crate) fn with_loaded<T>(
        &self,
        work: impl FnOnce(&mut Loaded<M>) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        work(self.memory()?.as_mut().ok_or(Problem::UnknownLab)?)
    }

    /// A write that failed leaves memory ahead of the disk: end the object.
    fn or_end<T>(&self, written: Result<T, Problem>) -> Result<T, Problem> {
        written.inspect_err(|_| self.end_now())
    }

    fn end_now(&self) {
        self.is_crashing.set(true);
        glue::abort_soon(&self.ctx, "a write failed");
    }

    /// Starts a call to the lab; see [`crate::flight`].
    pub(crate) fn call_lab(&self, lab: &str, path: &str, body: &str) -> Promise {
        glue::send(&self.env, "LABS", lab, path, body)
    }
}

/// Refuses a control that the object would refuse, before there is an object.
fn rehearse<M: Machine>(node: &NodeId, control: &Control) -> Result<(), Problem> {
    let record = HostRecord::new(M::Rules::repaired(), false);
    let mut host = Host::<M>::restore(node.clone(), record, None);
    let acted = host.control(0, control.clone());
    acted.map(|_| ()).map_err(|refused| Problem::Malformed(refused.0))
}

/// Who waits for whom, since when: of an account its holds, of a transaction its open legs.
fn in_doubt(record: &ObjectRecord, now_ms: u64) -> Vec<serde_json::Value> {
    match record {
        ObjectRecord::Account(account) => {
            let doubt = |(txn, hold): (&Name, &Hold)| {
                json!({
                    "coordinator": format!("transaction/{txn}"),
                    "delta": hold.delta,
                    "age_ms": now_ms.saturating_sub(hold.since_ms),
                    "attempts": hold.n_inquiries,
                    "last_error": hold.last_error,
                })
            };
            account.in_doubt().map(doubt).collect()
        }
        ObjectRecord::Transaction(txn) if txn.next_attempt_at_ms.is_some() || txn.is_mixed() => {
            let is_open = |leg: &&TxnLeg| leg.mixed || !txn.acked.contains(&leg.account);
            let doubt = |leg: &TxnLeg| {
                json!({
                    "account": leg.account,
                    "delta": leg.delta,
                    "age_ms": now_ms.saturating_sub(txn.since_ms),
                    "attempts": txn.attempts,
                    "last_error": leg.last_error,
                    "mixed": leg.mixed,
                })
            };
            txn.legs.iter().filter(is_open).map(doubt).collect()
        }
        ObjectRecord::Transaction(_)
        | ObjectRecord::Lease(_)
        | ObjectRecord::Resource(_)
        | ObjectRecord::Shard(_) => Vec::new(),
    }
}
