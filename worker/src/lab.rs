//! The lab: one learner's world. It keeps the log that every view is made from, knows
//! which objects there are, and deletes all of it when nobody has used it for a day.
//!
//! Invariant: an event that the lab has acknowledged is on disk with its number, and every
//! open socket has been sent it, or is sent it as soon as the socket's own number says
//! that it is behind. After the lab is forgotten, nothing of it is on any disk.
//!
//! What it does not do: it does not look at what events say, and it is not asked when a
//! lease is granted or a write fenced. With tracing off an object needs it once.

use core::cell::{Cell, RefCell, RefMut};
use std::rc::Rc;

use js_sys::{Array, Promise};
use protocol::control::Delivery;
use protocol::ids::{MAX_SAFE_INTEGER, NodeId};
use protocol::rules::Preset;
use protocol::trace::{DeliveryMode, TraceEvent, TraceKind};
use serde::Deserialize;
use serde_json::json;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::Response;

use crate::flight::{TAKEN, TAKEN_AND_FULL};
use crate::glue;
use crate::incoming::Incoming;
use crate::lab_log::{Sequenced, object_node};
use crate::lab_store::{About, Stored};
use crate::loaded::Registration;
use crate::problem::Problem;
use crate::routes::{LabAction, Route, path_and_query, query_number, route};
use crate::shell::LOG_FULL;
use crate::store::Writes;

/// After this many events, objects and clients are refused.
const EVENTS_MAX: u64 = 20_000;
/// What was already on its way when the log became full is still taken, up to here.
const EVENTS_HARD_MAX: u64 = EVENTS_MAX + 2_000;
/// How many objects a lab may have.
const OBJECTS_MAX: usize = 64;
/// How many sockets a lab may have open.
const SOCKETS_MAX: u32 = 64;
/// What a free account may do in a day, of requests and of rows written alike.
const FREE_DAY: f64 = 100_000.0;
/// How long a lab is kept without being used, in ms, unless `LAB_IDLE_MS` says otherwise.
const IDLE_MS: f64 = 86_400_000.0;
/// How many events one page of the log has, by default and at most.
const PAGE_EVENTS: u64 = 500;
const PAGE_EVENTS_MAX: u64 = 5_000;
/// About how much text one page or one socket frame has.
const PAGE_BYTES: usize = 512 * 1024;
/// When to go on deleting objects that could not be reached, in ms.
const FORGET_AGAIN_MS: u64 = 5_000;

/// Closing codes of sockets: the client broke a rule; the lab is gone.
const CLOSE_POLICY: u16 = 1008;
const CLOSE_FORGOTTEN: u16 = 4404;

/// How long a lab is kept without being used, in ms.
pub(crate) fn idle_ms(env: &JsValue) -> u64 {
    glue::setting(env, "LAB_IDLE_MS", IDLE_MS) as u64
}

/// The body of `POST /api/labs`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateLab {
    #[serde(default = "yes")]
    tracing: bool,
    #[serde(default = "repaired")]
    preset: Preset,
}

fn yes() -> bool {
    true
}

fn repaired() -> Preset {
    Preset::Repaired
}

/// The object of one lab.
pub(crate) struct LabObject {
    ctx: JsValue,
    env: JsValue,
    stored: RefCell<Option<Stored>>,
    idle_ms: u64,
    is_deleting: Cell<bool>,
}

impl LabObject {
    pub(crate) fn new(ctx: JsValue, env: JsValue) -> Self {
        let idle_ms = idle_ms(&env);
        if let Err(error) = glue::answer_pings(&ctx) {
            worker::console_error!("{error:?}");
        }
        Self { ctx, env, stored: RefCell::new(None), idle_ms, is_deleting: Cell::new(false) }
    }

    /// Answers a request, whatever it is.
    pub(crate) async fn answer(self: Rc<Self>, incoming: Result<Incoming, Problem>) -> Response {
        match self.handle(incoming).await {
            Ok(response) => response,
            Err(problem) => problem.respond(),
        }
    }

    async fn handle(&self, incoming: Result<Incoming, Problem>) -> Result<Response, Problem> {
        let incoming = incoming?;
        let (path, query) = path_and_query(&incoming.url);
        if let Some(word) = path.strip_prefix("/internal/") {
            return self.internal(word, query, &incoming);
        }
        let Route::Lab { action, .. } = route(&incoming.method, path)? else {
            return Err(Problem::UnknownRoute);
        };
        match action {
            LabAction::Report => {
                let events = incoming.json().and_then(crate::envelope::report)?;
                self.touch()?;
                self.report(&events)
            }
            LabAction::Events => {
                let after = query_number(query, "after", 0, MAX_SAFE_INTEGER)?;
                let limit = query_number(query, "limit", PAGE_EVENTS, PAGE_EVENTS_MAX)?;
                self.touch()?;
                self.page(after, limit)
            }
            LabAction::Socket => {
                let after = query_number(query, "after", 0, MAX_SAFE_INTEGER)?;
                self.touch()?;
                self.socket(incoming.is_upgrade, after)
            }
            LabAction::Inspect => {
                self.touch()?;
                self.inspect()
            }
            LabAction::Delivery => {
                let Delivery { mode } = crate::body::parse(incoming.json()?)?;
                self.touch()?;
                self.set_delivery(mode).await
            }
            LabAction::Forget => {
                self.with_lab(|_| Ok(()))?;
                self.forget().await?;
                Ok(glue::answer(200, r#"{"outcome":"forgotten"}"#, -1.0))
            }
        }
    }

    /// What the entry and the lab's own objects ask.
    fn internal(&self, word: &str, query: &str, incoming: &Incoming) -> Result<Response, Problem> {
        match word.split_once('/') {
            Some(("create", lab)) => return self.create(lab, incoming.json()?),
            Some(_) => return Err(Problem::UnknownRoute),
            None => {}
        }
        match word {
            "register" => self.register(query.strip_prefix("node=").unwrap_or("")),
            "append" => self.append(query, incoming.text()?),
            "exists" => self.with_lab(|_| Ok(glue::answer(200, "{}", -1.0))),
            _ => Err(Problem::UnknownRoute),
        }
    }

    // ---- the lab itself ----------------------------------------------------------------

    fn create(&self, lab: &str, body: &str) -> Result<Response, Problem> {
        let asked: CreateLab = crate::body::parse(if body.is_empty() { "{}" } else { body })?;
        let now_ms = glue::now_ms();
        let mut memory = self.memory()?;
        if memory.is_some() {
            return Err(Problem::Internal("a lab's name came up twice".to_owned()));
        }
        let about = About {
            lab: lab.to_owned(),
            created_at_ms: now_ms,
            tracing: asked.tracing,
            preset: asked.preset,
            forgotten: false,
            active_at_ms: now_ms,
            requests: 1,
            rows_written: 0,
            nodes_seq: 0,
            delivery: DeliveryMode::Auto,
        };
        let mut stored = Stored::create(&self.ctx, about, now_ms + self.idle_ms)?;
        self.note(&mut stored, TraceKind::LabCreated, Writes::default())?;
        *memory = Some(stored);
        let body = json!({ "lab": lab, "expires_at_ms": now_ms + self.idle_ms, "now_ms": now_ms });
        Ok(glue::answer(201, &body.to_string(), -1.0))
    }

    fn inspect(&self) -> Result<Response, Problem> {
        let body = self.with_lab(|stored| {
            let about = &stored.about;
            let nodes = stored.objects.iter().filter_map(|node| object_node(node));
            let objects: Vec<_> = nodes
                .map(|node| json!({ "kind": node.object_kind(), "name": node.name() }))
                .collect();
            let most = about.requests.max(about.rows_written) as f64;
            Ok(json!({
                "lab": about.lab,
                "now_ms": glue::now_ms(),
                "created_at_ms": about.created_at_ms,
                "expires_at_ms": about.active_at_ms + self.idle_ms,
                "tracing": about.tracing,
                "preset": about.preset,
                "delivery": about.delivery,
                "objects": objects,
                "usage": {
                    "events": stored.log.last_seq,
                    "requests": about.requests,
                    "rows_written": about.rows_written,
                    "share_of_free_day": most / FREE_DAY,
                },
                "last_seq": stored.log.last_seq,
            }))
        })?;
        Ok(glue::answer(200, &body.to_string(), -1.0))
    }

    /// The alarm rang: the lab has been idle, or part of it is still to be deleted.
    pub(crate) async fn alarm(&self) -> Result<(), JsValue> {
        match self.ring().await {
            Ok(()) | Err(Problem::UnknownLab) => Ok(()),
            Err(problem) => Err(JsValue::from_str(&format!("{problem:?}"))),
        }
    }

    async fn ring(&self) -> Result<(), Problem> {
        let expires_at_ms = {
            let mut memory = self.restored()?;
            let stored = memory.as_mut().ok_or(Problem::UnknownLab)?;
            let expires_at_ms = stored.about.active_at_ms + self.idle_ms;
            if !stored.about.forgotten && glue::now_ms() < expires_at_ms {
                stored.write_alarm(&self.ctx, expires_at_ms)?;
                return Ok(());
            }
            expires_at_ms
        };
        worker::console_log!("a lab is deleted; it expired at {expires_at_ms}");
        self.forget().await
    }

    /// Deletes the objects, then the lab. From the first moment on the lab is unknown; what
    /// could not be reached is tried again by the alarm.
    async fn forget(&self) -> Result<(), Problem> {
        if self.is_deleting.replace(true) {
            return Ok(());
        }
        let outcome = self.forget_objects().await;
        self.is_deleting.set(false);
        if !outcome? {
            return Ok(());
        }
        for socket in self.sockets()? {
            glue::close_socket(&socket, CLOSE_FORGOTTEN, "the lab was deleted or has expired");
        }
        *self.memory()? = None;
        JsFuture::from(glue::delete_all(&self.ctx)?).await?;
        Ok(())
    }

    /// Whether all of them are gone.
    async fn forget_objects(&self) -> Result<bool, Problem> {
        let calls: Vec<(String, Promise)> = {
            let mut memory = self.restored()?;
            let stored = memory.as_mut().ok_or(Problem::UnknownLab)?;
            stored.about.forgotten = true;
            stored.write_about(&self.ctx, Some(glue::now_ms() + FORGET_AGAIN_MS))?;
            let lab = stored.about.lab.clone();
            let nodes = stored.objects.iter().filter_map(|text| Some((text, object_node(text)?)));
            nodes
                .map(|(text, node)| (text.clone(), self.call_object(&lab, &node, "forget")))
                .collect()
        };
        for (node, call) in calls {
            let (status, text) = glue::status_and_text(&JsFuture::from(call).await?);
            if status == 200 {
                let mut memory = self.memory()?;
                memory.as_mut().ok_or(Problem::UnknownLab)?.remove_object(&self.ctx, &node)?;
            } else {
                worker::console_warn!("{node} is not deleted yet: {status} {text}");
            }
        }
        Ok(self.memory()?.as_ref().is_none_or(|stored| stored.objects.is_empty()))
    }

    /// Sets it for objects to come, then for those that are there. One that could not be
    /// reached keeps what it had; asking again reaches it.
    async fn set_delivery(&self, mode: DeliveryMode) -> Result<Response, Problem> {
        let word = if mode == DeliveryMode::Auto { "auto" } else { "manual" };
        let calls: Vec<Promise> = self.with_lab(|stored| {
            stored.about.delivery = mode;
            stored.write_about(&self.ctx, None)?;
            let lab = stored.about.lab.clone();
            let nodes = stored.objects.iter().filter_map(|text| object_node(text));
            let path = format!("delivery/{word}");
            Ok(nodes.map(|node| self.call_object(&lab, &node, &path)).collect())
        })?;
        let mut n_unreached = 0_u64;
        for call in calls {
            let (status, _) = glue::status_and_text(&JsFuture::from(call).await?);
            n_unreached += u64::from(status != 200);
        }
        let body = json!({ "outcome": "delivery_set", "mode": word, "n_unreached": n_unreached });
        Ok(glue::answer(200, &body.to_string(), -1.0))
    }

    fn call_object(&self, lab: &str, node: &NodeId, path: &str) -> Promise {
        let binding = node.object_kind().map_or("", crate::objects::binding);
        glue::send(&self.env, binding, &format!("{lab}/{node}"), path, "")
    }

    // ---- objects -----------------------------------------------------------------------

    fn register(&self, node: &str) -> Result<Response, Problem> {
        let Some(NodeId::Object(object_kind, name)) = object_node(node) else {
            return Err(Problem::Internal(format!("{node} is no object")));
        };
        self.with_lab(|stored| {
            stored.about.requests += 1;
            if !stored.objects.contains(node) {
                if stored.objects.len() >= OBJECTS_MAX {
                    // The object passes this text on to its caller.
                    return Ok(glue::answer(429, "It has 64 objects, as many as it may.", -1.0));
                }
                let mut writes = Writes::default();
                stored.add_object(node.to_owned(), &mut writes);
                let kind = TraceKind::ObjectAdded { object_kind, name: name.to_string() };
                self.note(stored, kind, writes)?;
            }
            let About { tracing, preset, delivery, .. } = stored.about;
            let body = serde_json::to_string(&Registration { tracing, preset, delivery })?;
            Ok(glue::answer(200, &body, -1.0))
        })
    }

    fn append(&self, query: &str, batch: &str) -> Result<Response, Problem> {
        let requests = query_number(query, "requests", 0, MAX_SAFE_INTEGER)?;
        let rows = query_number(query, "rows", 0, MAX_SAFE_INTEGER)?;
        self.with_lab(|stored| {
            // The call itself is a request to an object, too.
            stored.about.requests += requests + 1;
            stored.about.rows_written += rows;
            let now_ms = glue::now_ms();
            if batch == "[]" {
                stored.touch(&self.ctx, now_ms, self.idle_ms / 8)?;
            } else if stored.log.last_seq < EVENTS_HARD_MAX {
                self.take(stored, batch, now_ms)?;
            }
            let is_full = stored.log.last_seq >= EVENTS_MAX;
            Ok(glue::status(if is_full { TAKEN_AND_FULL } else { TAKEN }))
        })
    }

    // ---- the log -----------------------------------------------------------------------

    fn report(&self, events: &[TraceEvent]) -> Result<Response, Problem> {
        let batch = serde_json::to_string(events)?;
        self.with_lab(|stored| {
            if stored.log.last_seq >= EVENTS_MAX {
                return Err(Problem::Quota(LOG_FULL.to_owned()));
            }
            let outcome = if stored.about.tracing { "recorded" } else { "not_recorded" };
            if stored.about.tracing && !events.is_empty() {
                self.take(stored, &batch, glue::now_ms())?;
            }
            let body = json!({ "outcome": outcome, "last_seq": stored.log.last_seq });
            Ok(glue::answer(200, &body.to_string(), -1.0))
        })
    }

    fn take(&self, stored: &mut Stored, batch: &str, now_ms: u64) -> Result<(), Problem> {
        let taken = stored.log.sequence(batch)?;
        self.write(stored, &taken, now_ms, Writes::default())
    }

    /// Adds an event of the lab's own, with what else is to be written for it.
    fn note(&self, stored: &mut Stored, kind: TraceKind, writes: Writes) -> Result<(), Problem> {
        let now_ms = glue::now_ms();
        let mut taken = Sequenced::default();
        if stored.about.tracing {
            let local_seq = stored.log.next_lab_seq();
            let event = TraceEvent {
                seq: 0,
                at_ms: now_ms,
                node: NodeId::Lab,
                lamport: local_seq,
                local_seq,
                request: None,
                kind,
                decision: None,
                record: None,
            };
            stored.log.push_own(&serde_json::to_string(&event)?, &mut taken);
        }
        self.write(stored, &taken, now_ms, writes)
    }

    /// Writes events and sends them to the sockets. What is sent waits at the output gate
    /// until it is durable. A write that fails ends the lab's object, whose memory would
    /// otherwise be ahead of the disk.
    fn write(
        &self,
        stored: &mut Stored,
        taken: &Sequenced,
        now_ms: u64,
        writes: Writes,
    ) -> Result<(), Problem> {
        stored
            .write_events(&self.ctx, taken, now_ms, writes)
            .inspect_err(|_| glue::abort_soon(&self.ctx, "a write failed"))?;
        if taken.is_empty() {
            return Ok(());
        }
        let frame = format!("{{\"events\":{}}}", taken.events);
        for socket in self.sockets()? {
            if glue::sent_seq(&socket).unwrap_or(0.0) as u64 + 1 == taken.first_seq {
                glue::send_frame(&socket, &frame, taken.last_seq as f64);
            } else {
                self.catch_up(stored, &socket)?;
            }
        }
        Ok(())
    }

    fn page(&self, after: u64, limit: u64) -> Result<Response, Problem> {
        self.with_lab(|stored| {
            let (events, next_after) = stored.events(&self.ctx, after, limit, PAGE_BYTES)?;
            let more = next_after < stored.log.last_seq;
            let body = format!(r#"{{"events":{events},"next_after":{next_after},"more":{more}}}"#);
            Ok(glue::answer(200, &body, -1.0))
        })
    }

    // ---- sockets -----------------------------------------------------------------------

    fn socket(&self, is_upgrade: bool, after: u64) -> Result<Response, Problem> {
        if !is_upgrade {
            return Err(Problem::UpgradeRequired);
        }
        self.with_lab(|stored| {
            if glue::sockets(&self.ctx)?.length() >= SOCKETS_MAX {
                return Err(Problem::Quota(format!(
                    "It has {SOCKETS_MAX} sockets open; close one."
                )));
            }
            let accepted = glue::accept_socket(&self.ctx)?;
            let socket = accepted.get(1);
            glue::send_frame(&socket, "", after as f64);
            self.catch_up(stored, &socket)?;
            Ok(accepted.get(0).unchecked_into())
        })
    }

    /// Sends a socket everything after its own number, in frames.
    fn catch_up(&self, stored: &Stored, socket: &JsValue) -> Result<(), Problem> {
        let mut sent = glue::sent_seq(socket).unwrap_or(0.0) as u64;
        while sent < stored.log.last_seq {
            let (events, last) = stored.events(&self.ctx, sent, u64::MAX, PAGE_BYTES)?;
            if last == sent
                || !glue::send_frame(socket, &format!("{{\"events\":{events}}}"), last as f64)
            {
                break;
            }
            sent = last;
        }
        Ok(())
    }

    fn sockets(&self) -> Result<Vec<JsValue>, Problem> {
        let sockets: Array = glue::sockets(&self.ctx)?;
        Ok(sockets.iter().collect())
    }

    /// A socket is for listening. `ping` is answered by the runtime and does not come here.
    pub(crate) fn socket_message(&self, socket: &JsValue) {
        glue::close_socket(
            socket,
            CLOSE_POLICY,
            "this socket only sends; the one word it knows is ping",
        );
    }

    /// A socket that is not closed from this side too would look broken to the other.
    pub(crate) fn socket_closed(&self, socket: &JsValue, code: u16) {
        glue::close_socket(socket, code, "");
    }

    // ---- memory ------------------------------------------------------------------------

    fn touch(&self) -> Result<(), Problem> {
        self.with_lab(|stored| stored.touch(&self.ctx, glue::now_ms(), self.idle_ms / 8))
    }

    fn memory(&self) -> Result<RefMut<'_, Option<Stored>>, Problem> {
        let memory = self.stored.try_borrow_mut();
        memory.map_err(|_| Problem::Internal("the lab's memory is in use".to_owned()))
    }

    fn restored(&self) -> Result<RefMut<'_, Option<Stored>>, Problem> {
        let mut memory = self.memory()?;
        if memory.is_none() {
            *memory = Stored::restore(&self.ctx)?;
        }
        Ok(memory)
    }

    /// Works on the lab. A lab that is being deleted is unknown already.
    fn with_lab<T>(
        &self,
        work: impl FnOnce(&mut Stored) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let mut memory = self.restored()?;
        let stored = memory.as_mut().filter(|stored| !stored.about.forgotten);
        work(stored.ok_or(Problem::UnknownLab)?)
    }
}
