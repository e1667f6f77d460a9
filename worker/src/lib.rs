//! The Worker: finds the object that a request is for, and nothing else.
//!
//! Reading order: this file (which object), [`routes`] (the API's paths), [`shell`] (what
//! every object does with a request), [`loaded`] (how a turn is written), [`flight`] (how
//! the lab learns of it), [`carrier`] (how
//! messages get to other objects), [`lab`] (the log and its sockets), [`problem`] (what is said when
//! something is wrong).
//!
//! Invariant: no panic can be reached from outside. One panic takes the memory of every
//! object in the process with it, so everything here answers with a `Result`, borrows
//! nothing across an `await`, and indexes nothing.

mod body;
mod carrier;
mod envelope;
mod flight;
mod glue;
mod incoming;
mod lab;
mod lab_log;
mod lab_store;
mod loaded;
mod objects;
mod outbox;
mod problem;
mod routes;
mod shell;
mod store;

use core::cell::Cell;

use js_sys::Promise;
use protocol::control::ControlReply;
use protocol::host::Unavailable;
use serde_json::json;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use web_sys::{Request, Response};

use problem::Problem;
use routes::{Route, path_and_query, route};

/// Called by the runtime for each request. What is waited for is waited for in JavaScript:
/// the entry has nothing to do once the object has answered.
#[wasm_bindgen]
pub fn fetch(request: Request, env: JsValue, _ctx: JsValue) -> Promise {
    tell_words_once();
    let (method, url) = (request.method(), request.url());
    let (path, _) = path_and_query(&url);
    if method == "OPTIONS" && path.starts_with("/api/") {
        return glue::after_draining(&request, glue::preflight());
    }
    let sent = route(&method, path).and_then(|found| send(found, &request, &env));
    sent.unwrap_or_else(|problem| glue::after_draining(&request, problem.respond()))
}

fn send(found: Route<'_>, request: &Request, env: &JsValue) -> Result<Promise, Problem> {
    Ok(match found {
        Route::Health => glue::after_draining(request, health()),
        Route::OpenApi => glue::asset(env, "/openapi.json", &Problem::UnknownRoute.to_json()),
        Route::CreateLab => {
            let lab = glue::random_lab();
            glue::forward_internal(env, "LABS", &lab, &format!("create/{lab}"), request)?
        }
        Route::Lab { lab, .. } => glue::forward(env, "LABS", lab, request)?,
        Route::Object { lab, kind, name, .. } => {
            let object = format!("{lab}/{}/{name}", kind.as_str());
            glue::forward(env, objects::binding(kind), &object, request)?
        }
    })
}

fn health() -> Response {
    let body = json!({ "ok": true, "version": env!("CARGO_PKG_VERSION") });
    glue::answer(200, &body.to_string(), -1.0)
}

/// JavaScript answers for an object that cannot, in the words of [`problem`].
fn tell_words_once() {
    thread_local! {
        static TOLD: Cell<bool> = const { Cell::new(false) };
    }
    if !TOLD.replace(true) {
        let crashed = Problem::Unavailable(Unavailable::Crashed).to_json();
        let as_asked = json!(ControlReply::Crashed).to_string();
        glue::tell_words(&crashed, &as_asked, &Problem::Internal(String::new()).to_json());
    }
}
