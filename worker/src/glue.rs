//! The functions of `glue.js`: everything that is asked of the runtime, in one place.
//!
//! A function that can throw is imported with `catch`; the others catch what is thrown
//! themselves, since a JavaScript error that passes through Rust frames would end the
//! whole Worker's memory.

use js_sys::{Array, Promise};
use wasm_bindgen::prelude::*;
use web_sys::Response;

#[wasm_bindgen(module = "/src/glue.js")]
extern "C" {
    /// Reads a request and gives it to a handler as
    /// `[method, url, content type, trace header, body, wants to be a socket]`; no body
    /// means: too large; `null` for all of it: it broke off.
    pub(crate) fn serve(request: &JsValue, handle: &JsValue) -> Promise;

    /// The response, once the body that nobody wants has been read.
    #[wasm_bindgen(js_name = afterDraining)]
    pub(crate) fn after_draining(request: &JsValue, response: Response) -> Promise;

    /// A JSON answer.
    pub(crate) fn answer(status: u16, body: &str, lamport: f64) -> Response;

    /// The answer to a wrong method.
    #[wasm_bindgen(js_name = notAllowed)]
    pub(crate) fn not_allowed(body: &str, allow: &str) -> Response;

    /// The answer to a browser that asks before it sends.
    pub(crate) fn preflight() -> Response;

    /// What the entry answers for an object that crashed, that crashed because this very
    /// request asked for it, or that did not answer.
    #[wasm_bindgen(js_name = tellWords)]
    pub(crate) fn tell_words(crashed: &str, crashed_as_asked: &str, internal: &str);

    /// The object's response.
    #[wasm_bindgen(catch)]
    pub(crate) fn forward(
        env: &JsValue,
        binding: &str,
        name: &str,
        request: &JsValue,
    ) -> Result<Promise, JsValue>;

    /// The same on an internal path.
    #[wasm_bindgen(catch, js_name = forwardInternal)]
    pub(crate) fn forward_internal(
        env: &JsValue,
        binding: &str,
        name: &str,
        path: &str,
        request: &JsValue,
    ) -> Result<Promise, JsValue>;

    /// `[status, text]` of an internal call; never rejects.
    pub(crate) fn send(env: &JsValue, binding: &str, name: &str, path: &str, body: &str)
    -> Promise;

    /// A JSON file as a response; `missing` is the problem when there is none.
    pub(crate) fn asset(env: &JsValue, path: &str, missing: &str) -> Promise;

    /// An answer between objects without a body.
    pub(crate) fn status(code: u16) -> Response;

    /// A new lab's name.
    #[wasm_bindgen(js_name = randomLab)]
    pub(crate) fn random_lab() -> String;

    /// A positive number from the Worker's configuration.
    pub(crate) fn setting(env: &JsValue, name: &str, otherwise: f64) -> f64;

    /// Writes one turn; answers the number of rows.
    #[wasm_bindgen(catch)]
    pub(crate) fn commit(ctx: &JsValue, writes: &str, alarm: &JsValue) -> Result<f64, JsValue>;

    /// Rows as JSON.
    #[wasm_bindgen(catch)]
    pub(crate) fn query(ctx: &JsValue, statement: &str, values: &str) -> Result<String, JsValue>;

    /// Waits until everything written is durable.
    #[wasm_bindgen(catch)]
    pub(crate) fn sync(ctx: &JsValue) -> Result<Promise, JsValue>;

    /// Deletes everything stored.
    #[wasm_bindgen(catch, js_name = deleteAll)]
    pub(crate) fn delete_all(ctx: &JsValue) -> Result<Promise, JsValue>;

    /// Ends the object in this turn.
    #[wasm_bindgen(js_name = abortSoon)]
    pub(crate) fn abort_soon(ctx: &JsValue, reason: &str);

    /// Ends the object after its reply.
    #[wasm_bindgen(js_name = abortAfterReply)]
    pub(crate) fn abort_after_reply(ctx: &JsValue, reason: &str);

    /// Resolves after so many ms.
    pub(crate) fn sleep(ms: f64) -> Promise;

    /// `[response, server end]` of a new socket.
    #[wasm_bindgen(catch, js_name = acceptSocket)]
    pub(crate) fn accept_socket(ctx: &JsValue) -> Result<Array, JsValue>;

    /// The open sockets.
    #[wasm_bindgen(catch)]
    pub(crate) fn sockets(ctx: &JsValue) -> Result<Array, JsValue>;

    /// Answers `ping` without waking the object.
    #[wasm_bindgen(js_name = answerPings, catch)]
    pub(crate) fn answer_pings(ctx: &JsValue) -> Result<(), JsValue>;

    /// Sends a frame and remembers up to which event.
    #[wasm_bindgen(js_name = sendFrame)]
    pub(crate) fn send_frame(socket: &JsValue, frame: &str, seq: f64) -> bool;

    /// Up to which event the socket has been sent everything.
    #[wasm_bindgen(catch, js_name = sentSeq)]
    pub(crate) fn sent_seq(socket: &JsValue) -> Result<f64, JsValue>;

    /// Closes a socket.
    #[wasm_bindgen(js_name = closeSocket)]
    pub(crate) fn close_socket(socket: &JsValue, code: u16, reason: &str);
}

/// The real time, in ms since 1970.
pub(crate) fn now_ms() -> u64 {
    js_sys::Date::now() as u64
}

/// The `[status, text]` of [`send`].
pub(crate) fn status_and_text(pair: &JsValue) -> (u16, String) {
    let pair: &Array = pair.unchecked_ref();
    let status = pair.get(0).as_f64().unwrap_or(0.0) as u16;
    (status, pair.get(1).as_string().unwrap_or_default())
}
