//! Carrying messages between objects, and callers that wait for what they lead to.
//!
//! Invariant: a message leaves only after the turn that sent it is durable and the lab has
//! been told, so that the log has causes before effects. It stays in the outbox until its
//! object has it; one that a crash forgot is sent again when the alarm rings for it.
//!
//! A message is carried by a task of its own: nobody waits for it, and whatever it leads to
//! at its object comes back as another message.

use core::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use js_sys::{Array, Function, Promise};
use protocol::host::{Arrival, Outgoing, Ticket, Unavailable};
use protocol::ids::NodeId;
use protocol::machine::Machine;
use protocol::object::Addressed;
use serde::{Deserialize, Serialize};
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::Response;

use crate::glue;
use crate::problem::Problem;
use crate::shell::Shell;

/// A caller is told that nothing is decided after this long, in ms.
const CALLER_WAITS_MS: f64 = 15_000.0;

/// What one object sends to another: the message, and where it belongs.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Parcel {
    pub(crate) lab: String,
    pub(crate) to: NodeId,
    pub(crate) arrival: Arrival,
}

/// What an object has under way in memory.
pub(crate) struct Carrier<M: Machine> {
    /// Messages that have left, by their numbers.
    leaving: RefCell<BTreeSet<u64>>,
    /// Callers that wait.
    waiting: RefCell<BTreeMap<Ticket, Waiting<M>>>,
}

/// A caller: how to wake it, and what it is told.
struct Waiting<M: Machine> {
    wake: Option<Function>,
    reply: Option<M::Reply>,
}

impl<M: Machine> Carrier<M> {
    pub(crate) fn new() -> Self {
        Self { leaving: RefCell::default(), waiting: RefCell::new(BTreeMap::new()) }
    }

    /// Begins to wait, in the turn that says so: the answer may come in the very next.
    pub(crate) fn wait(&self, ticket: Ticket) -> Promise {
        let mut wake = None;
        let promise = Promise::new(&mut |resolve, _| wake = Some(resolve));
        self.waiting.borrow_mut().insert(ticket, Waiting { wake, reply: None });
        promise
    }

    /// Hands out answers and wakes whoever waits for them.
    pub(crate) fn tell(&self, answers: Vec<(Ticket, M::Reply)>) {
        for (ticket, reply) in answers {
            let wake = self.waiting.borrow_mut().get_mut(&ticket).and_then(|waiting| {
                waiting.reply = Some(reply);
                waiting.wake.take()
            });
            if let Some(wake) = wake {
                // Resolving a promise calls nothing of ours before this turn is over.
                let _ = wake.call0(&JsValue::NULL);
            }
        }
    }

    fn end_wait(&self, ticket: Ticket) -> Option<M::Reply> {
        self.waiting.borrow_mut().remove(&ticket).and_then(|waiting| waiting.reply)
    }
}

impl<M: Addressed + 'static> Shell<M> {
    /// Waits for the answer of a later turn.
    pub(crate) async fn await_reply(
        &self,
        ticket: Ticket,
        promise: Promise,
    ) -> Result<M::Reply, Problem> {
        let first = Promise::race(&Array::of2(&promise, &glue::sleep(CALLER_WAITS_MS)));
        JsFuture::from(first).await?;
        if let Some(reply) = self.carrier.end_wait(ticket) {
            return Ok(reply);
        }
        let given_up =
            self.with_loaded(|loaded| Ok(loaded.host.give_up(glue::now_ms(), ticket)))?;
        given_up.ok_or_else(|| Problem::Internal("a caller that nobody knew of".to_owned()))
    }

    /// Sends off what is ready.
    pub(crate) fn carry(self: &Rc<Self>) {
        let ready =
            self.with_loaded(|loaded| Ok((loaded.lab.clone(), loaded.host.ready(glue::now_ms()))));
        let Ok((lab, ready)) = ready else { return };
        for message in ready {
            if self.is_crashing() || !self.carrier.leaving.borrow_mut().insert(message.id) {
                continue;
            }
            let (shell, lab) = (Rc::clone(self), lab.clone());
            spawn_local(async move {
                let id = message.id;
                if let Err(problem) = shell.carry_one(&lab, &message).await {
                    worker::console_warn!("message {id} was not carried: {problem:?}");
                }
                shell.carrier.leaving.borrow_mut().remove(&id);
            });
        }
    }

    async fn carry_one(self: &Rc<Self>, lab: &str, message: &Outgoing) -> Result<(), Problem> {
        let to = message.to.clone();
        let from = self.with_loaded(|loaded| Ok(loaded.host.node().clone()))?;
        let binding = to.object_kind().map_or("", crate::objects::binding);
        let object = format!("{lab}/{to}");
        let parcel = Parcel { lab: lab.to_owned(), to, arrival: message.arrival(&from) };
        let body = serde_json::to_string(&parcel)?;
        let call = glue::send(&self.env, binding, &object, "deliver", &body);
        let (status, text) = glue::status_and_text(&JsFuture::from(call).await?);
        if self.is_crashing() {
            return Ok(());
        }
        if status == 200 {
            return self.with_loaded(|loaded| {
                loaded.host.delivered(message.id);
                Ok(())
            });
        }
        let why = reason(status, &text);
        let (turn, ordinal) = self.with_loaded(|loaded| {
            let turn = loaded.host.undelivered(glue::now_ms(), message.id, why);
            let ordinal = self.written(loaded, &turn)?;
            Ok((turn, ordinal))
        })?;
        self.conclude(turn, ordinal, Some(&message.message_id)).await?;
        Ok(())
    }

    /// A message of another object arrives.
    pub(crate) async fn receive(self: &Rc<Self>, body: &str) -> Result<Response, Problem> {
        let Parcel { lab, to, arrival } = serde_json::from_str(body)?;
        self.ensure(&lab, &to).await?;
        let id = arrival.id.clone();
        let (turn, ordinal) = self.with_loaded(|loaded| {
            loaded.usage.requests += 1;
            let turn = loaded.host.receive(glue::now_ms(), arrival);
            let ordinal = self.written(loaded, &turn)?;
            Ok((turn, ordinal))
        })?;
        if let Some(reason) = turn.unavailable {
            self.tell_lab(ordinal).await?;
            return Err(Problem::Unavailable(reason));
        }
        if turn.deferred.is_some() {
            // The sender has nothing to do with the second half.
            self.tell_lab(ordinal).await?;
            let shell = Rc::clone(self);
            spawn_local(async move {
                if let Err(problem) = shell.conclude(turn, ordinal, Some(&id)).await {
                    worker::console_warn!("a second half failed: {problem:?}");
                }
            });
        } else {
            self.conclude(turn, ordinal, Some(&id)).await?;
        }
        Ok(glue::answer(200, "{}", -1.0))
    }
}

/// Why a message did not arrive: the object's own word, or what the runtime says.
fn reason(status: u16, text: &str) -> Unavailable {
    #[derive(Deserialize)]
    struct Refused {
        reason: Unavailable,
    }
    match status {
        503 => {
            let refused = serde_json::from_str::<Refused>(text);
            refused.map_or(Unavailable::Unreachable, |refused| refused.reason)
        }
        // The call broke off: the object ended while it worked on it.
        0 => Unavailable::Crashed,
        _ => Unavailable::Unreachable,
    }
}
