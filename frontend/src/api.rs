//! The wire: every call of the API is in this file, the socket in `socket.rs`. (The source
//! panel alone reads its static text itself.)
//!
//! Invariant: a refusal of the protocol is an `Ok`. An [`ApiError`] means that the lab
//! could not be reached or did not want the request, and says what a person can do.
//! It knows nothing of lessons or of what is on the screen.

use core::fmt;

use gloo_timers::callback::Timeout;
use protocol::control::{Control, ControlReply, OutboxAction};
use protocol::fence::FenceReply;
use protocol::host::{Envelope, Unavailable};
use protocol::ids::{NodeId, ObjectKind};
use protocol::lease::LeaseReply;
use protocol::object::{Reply, Request};
use protocol::rules::Preset;
use protocol::shard::ShardReply;
use protocol::sim::Answer;
use protocol::trace::TraceEvent;
use protocol::transaction::account::AccountReply;
use protocol::transaction::coordinator::TxnReply;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use wasm_bindgen::JsCast as _;
use wasm_bindgen_futures::JsFuture;
use web_sys::{AbortController, RequestCache, RequestInit, Response};

/// After this long without an answer a request counts as lost, in ms. The longest that an
/// object may take is a slow store of 10 s.
const PATIENCE_MS: u32 = 20_000;

/// How many events one page of the log has.
const PAGE_LIMIT: u32 = 500;

/// Why a call came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ApiError {
    /// No answer: no network, no server, or something in between that gave up.
    Unreachable,
    /// The server said no, and why.
    Problem(Problem),
    /// The answer makes no sense: this page and the server are of different builds.
    Malformed(String),
}

/// `application/problem+json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Problem {
    #[serde(default)]
    pub(crate) status: u16,
    #[serde(default)]
    pub(crate) title: String,
    /// What to do.
    #[serde(default)]
    pub(crate) detail: String,
    /// For injected unavailability: which one.
    #[serde(default)]
    reason: Option<String>,
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable => f.write_str("No answer from the server."),
            Self::Problem(problem) if problem.detail.is_empty() => f.write_str(&problem.title),
            Self::Problem(problem) => f.write_str(&problem.detail),
            Self::Malformed(what) => {
                write!(f, "The server's answer could not be read ({what}). Reload the page.")
            }
        }
    }
}

impl ApiError {
    /// The lab is gone: it expired, or somebody had it forgotten.
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self, Self::Problem(problem) if problem.status == 404 || problem.status == 410)
    }
}

/// A new lab.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct LabCreated {
    pub(crate) lab: String,
    pub(crate) now_ms: u64,
}

/// What the page asks of a lab that it knows already.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct LabStatus {
    pub(crate) now_ms: u64,
}

#[derive(Serialize)]
struct NewLab {
    preset: Preset,
}

#[derive(Serialize)]
struct Report<'a> {
    events: &'a [TraceEvent],
}

#[derive(Deserialize)]
struct EventsPage {
    events: Vec<TraceEvent>,
    next_after: u64,
    #[serde(default)]
    more: bool,
}

/// `POST /api/labs`
pub(crate) async fn create_lab(preset: Preset) -> Result<LabCreated, ApiError> {
    let body = text_of(&NewLab { preset })?;
    json(call("POST", "/api/labs", Some(body), None).await?).await
}

/// `GET /api/labs/{lab}`
pub(crate) async fn lab_status(lab: &str) -> Result<LabStatus, ApiError> {
    json(call("GET", &format!("/api/labs/{lab}"), None, None).await?).await
}

/// `GET /api/labs/{lab}/events`: everything after `seq`.
pub(crate) async fn events_after(lab: &str, seq: u64) -> Result<Vec<TraceEvent>, ApiError> {
    let mut events = Vec::new();
    let mut after = seq;
    loop {
        let path = format!("/api/labs/{lab}/events?after={after}&limit={PAGE_LIMIT}");
        let page: EventsPage = json(call("GET", &path, None, None).await?).await?;
        let is_last = !page.more || page.next_after <= after;
        after = page.next_after;
        events.extend(page.events);
        if is_last {
            return Ok(events);
        }
    }
}

/// `POST /api/labs/{lab}/events`
pub(crate) async fn report(lab: &str, events: &[TraceEvent]) -> Result<(), ApiError> {
    let body = text_of(&Report { events })?;
    call("POST", &format!("/api/labs/{lab}/events"), Some(body), None).await.map(drop)
}

/// `POST /api/labs/{lab}/{leases|resources|shards}/{name}/{operation}`
pub(crate) async fn operate(
    lab: &str,
    to: &NodeId,
    envelope: &Envelope,
    request: &Request,
) -> Result<Answer, ApiError> {
    let kind = request.kind();
    let path = format!("/api/labs/{lab}/{}/{}/{}", kind.plural(), to.name(), request.operation());
    let body = serde_json::to_string(request).map_err(malformed)?;
    let trace = serde_json::to_string(envelope).map(|text| ascii(&text)).map_err(malformed)?;
    let response = match call("POST", &path, Some(body), Some(trace)).await {
        Err(ApiError::Problem(problem)) if problem.status == 503 => {
            let reason = problem.reason.as_deref().and_then(unavailable);
            return reason.map(Answer::Unavailable).ok_or(ApiError::Problem(problem));
        }
        other => other?,
    };
    let lamport = response.headers().get("fencepost-lamport").ok().flatten();
    let lamport = lamport.and_then(|text| text.parse().ok()).unwrap_or(0);
    let reply = match kind {
        ObjectKind::Lease => Reply::Lease(json::<LeaseReply>(response).await?),
        ObjectKind::Resource => Reply::Resource(json::<FenceReply>(response).await?),
        ObjectKind::Shard => Reply::Shard(json::<ShardReply>(response).await?),
        ObjectKind::Account => Reply::Account(json::<AccountReply>(response).await?),
        ObjectKind::Transaction => Reply::Transaction(json::<TxnReply>(response).await?),
    };
    Ok(Answer::Reply { reply, lamport })
}

/// `…/objects/{kind}/{name}/{rules|crash|restart|clock|faults|alarm}`
pub(crate) async fn control(
    lab: &str,
    to: &NodeId,
    control: &Control,
) -> Result<ControlReply, ApiError> {
    let text = |body: Result<String, serde_json::Error>| body.map_err(malformed);
    let (method, word, body) = match control {
        // Of the lab's whole network; the object's own node is one of those it reaches.
        Control::Delivery(body) => {
            let path = format!("/api/labs/{lab}/delivery");
            let body = text(serde_json::to_string(body))?;
            return json(call("PUT", &path, Some(body), None).await?).await;
        }
        Control::Outbox { id, action } => {
            let word = match action {
                OutboxAction::Deliver => "deliver",
                OutboxAction::Drop => "drop",
                OutboxAction::Duplicate => "duplicate",
            };
            let path = format!("/api/labs/{lab}/objects/{to}/outbox/{id}/{word}");
            return json(call("POST", &path, Some("{}".to_owned()), None).await?).await;
        }
        Control::Rules(body) => ("PUT", "rules", text(serde_json::to_string(body))?),
        Control::Crash(body) => ("POST", "crash", text(serde_json::to_string(body))?),
        Control::Restart => ("POST", "restart", "{}".to_owned()),
        Control::Clock(body) => ("PUT", "clock", text(serde_json::to_string(body))?),
        Control::Faults(body) => ("PUT", "faults", text(serde_json::to_string(body))?),
        Control::Alarm(body) => ("POST", "alarm", text(serde_json::to_string(body))?),
    };
    // The node's own text is `kind/name`, which is what the path wants.
    let path = format!("/api/labs/{lab}/objects/{to}/{word}");
    json(call(method, &path, Some(body), None).await?).await
}

/// `GET` of a static JSON file.
pub(crate) async fn file<T: DeserializeOwned>(path: &str) -> Result<T, ApiError> {
    json(call("GET", path, None, None).await?).await
}

async fn call(
    method: &str,
    path: &str,
    body: Option<String>,
    trace: Option<String>,
) -> Result<Response, ApiError> {
    let js = |_| ApiError::Malformed("the browser refused the request".to_owned());
    let window = web_sys::window().ok_or(ApiError::Unreachable)?;
    let headers = web_sys::Headers::new().map_err(js)?;
    headers.set("accept", "application/json").map_err(js)?;
    if body.is_some() {
        headers.set("content-type", "application/json").map_err(js)?;
    }
    if let Some(trace) = &trace {
        headers.set("fencepost-trace", trace).map_err(js)?;
    }
    let abort = AbortController::new().map_err(js)?;
    let init = RequestInit::new();
    init.set_method(method);
    init.set_headers_headers(&headers);
    init.set_signal(Some(&abort.signal()));
    if path.starts_with("/api/") {
        init.set_cache(RequestCache::NoStore);
    }
    if let Some(body) = &body {
        init.set_body_opt_str(Some(body));
    }
    let deadline = Timeout::new(PATIENCE_MS, move || abort.abort());
    let done = JsFuture::from(window.fetch_with_str_and_init(path, &init)).await;
    deadline.cancel();
    let response: Response =
        done.map_err(|_| ApiError::Unreachable)?.dyn_into().map_err(|_| ApiError::Unreachable)?;
    if response.ok() {
        return Ok(response);
    }
    let status = response.status();
    let kind = response.headers().get("content-type").ok().flatten().unwrap_or_default();
    // Our own server's refusals are problems. A proxy that lost its connection to it says
    // 502 or 503 in words of its own, which is a connection lost and no outcome.
    if status >= 500 && !kind.starts_with("application/problem+json") {
        return Err(ApiError::Unreachable);
    }
    let mut problem: Problem = json(response).await.unwrap_or_default();
    problem.status = status;
    if problem.title.is_empty() {
        problem.title = format!("The server answered {status}.");
    }
    Err(ApiError::Problem(problem))
}

async fn json<T: DeserializeOwned>(response: Response) -> Result<T, ApiError> {
    serde_json::from_str(&text(&response).await?).map_err(malformed)
}

async fn text(response: &Response) -> Result<String, ApiError> {
    let promise = response.text().map_err(|_| ApiError::Unreachable)?;
    let text = JsFuture::from(promise).await.map_err(|_| ApiError::Unreachable)?;
    text.as_string().ok_or_else(|| ApiError::Malformed("no text".to_owned()))
}

fn text_of<T: Serialize>(value: &T) -> Result<String, ApiError> {
    serde_json::to_string(value).map_err(malformed)
}

fn malformed(error: serde_json::Error) -> ApiError {
    ApiError::Malformed(error.to_string())
}

fn unavailable(reason: &str) -> Option<Unavailable> {
    [Unavailable::Down, Unavailable::Unreachable, Unavailable::Crashed]
        .into_iter()
        .find(|one| one.as_str() == reason)
}

/// Headers carry ASCII only; JSON can spell everything else with escapes.
fn ascii(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii() {
            escaped.push(c);
            continue;
        }
        let mut units = [0; 2];
        for unit in c.encode_utf16(&mut units) {
            escaped.push_str(&format!("\\u{unit:04x}"));
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::ascii;

    #[test]
    fn a_header_is_ascii_and_still_the_same_json() {
        let escaped = ascii("{\"text\":\"write · 33 → 𝄞\"}");
        assert!(escaped.is_ascii());
        let back: serde_json::Value = serde_json::from_str(&escaped).expect("still JSON");
        assert_eq!(back["text"], "write · 33 → 𝄞");
    }
}
