//! The Worker: finds the object that a request is for, and nothing else.
//!
//! Reading order: this file (which object), [`routes`] (the API's paths), [`shell`] (what
//! every object does with a request), [`loaded`] (how a turn is written), [`flight`] (how
//! the lab learns of it), [`lab`] (the log and its sockets), [`problem`] (what is said when
//! something is wrong).
//!
//! Invariant: no panic can be reached from outside. One panic takes the memory of every
//! object in the process with it, so everything here answers with a `Result`, borrows
//! nothing across an `await`, and indexes nothing.

mod body;
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

use protocol::host::Unavailable;
use serde_json::json;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{Request, Response};
use worker::{Context, Env, event};

use problem::Problem;
use routes::{Route, path_and_query, route};

/// Called by the runtime for each request.
#[event(fetch)]
async fn fetch(request: Request, env: Env, _ctx: Context) -> worker::Result<Response> {
    let answer = answer(&request, env.as_ref()).await;
    Ok(answer.unwrap_or_else(|problem| problem.respond()))
}

async fn answer(request: &Request, env: &JsValue) -> Result<Response, Problem> {
    let (method, url) = (request.method(), request.url());
    let (path, _) = path_and_query(&url);
    if method == "OPTIONS" && path.starts_with("/api/") {
        return Ok(glue::preflight());
    }
    let found = route(&method, path);
    if matches!(found, Err(_) | Ok(Route::Health | Route::OpenApi)) {
        JsFuture::from(glue::drain(request)).await?;
    }
    match found? {
        Route::Health => {
            let body = json!({ "ok": true, "version": env!("CARGO_PKG_VERSION") });
            Ok(glue::answer(200, &body.to_string(), -1.0))
        }
        Route::OpenApi => openapi(env).await,
        Route::CreateLab => {
            let lab = glue::random_lab();
            let path = format!("create/{lab}");
            response(
                JsFuture::from(glue::forward_internal(env, "LABS", &lab, &path, request)?).await?,
            )
        }
        Route::Lab { lab, .. } => {
            response(JsFuture::from(glue::forward(env, "LABS", lab, request)?).await?)
        }
        Route::Object { lab, kind, name, .. } => {
            let object = format!("{lab}/{}/{name}", kind.as_str());
            let call = glue::forward(env, objects::binding(kind), &object, request)?;
            response(JsFuture::from(call).await?)
        }
    }
}

/// What came back from an object: its response, or a word about why there is none.
fn response(answer: JsValue) -> Result<Response, Problem> {
    match answer.dyn_into::<Response>() {
        Ok(response) => Ok(response),
        Err(word) if word == "crashed" => Err(Problem::Unavailable(Unavailable::Crashed)),
        Err(error) => Err(Problem::Internal(format!("an object did not answer: {error:?}"))),
    }
}

async fn openapi(env: &JsValue) -> Result<Response, Problem> {
    let asset = glue::asset(env, "/openapi.json", "application/json");
    let text = JsFuture::from(asset).await?.as_string().ok_or(Problem::UnknownRoute)?;
    Ok(glue::answer(200, &text, -1.0))
}
