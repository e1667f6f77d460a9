//! A request as an object receives it, and how it gets its answer.

use core::future::Future;
use core::task::{Context, Poll, Waker};

use js_sys::Array;
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::future_to_promise;
use web_sys::Response;

use crate::body;
use crate::problem::Problem;

/// What JavaScript calls with a request that it has read.
pub(crate) type Handler = Closure<dyn Fn(JsValue) -> JsValue>;

/// Makes a handler of what answers a request.
///
/// The answer's future is polled here and now: a request that waits for nothing, which is
/// any operation with tracing off, is answered without a task and its microtasks. Only what
/// has to wait becomes a promise.
pub(crate) fn handler<F>(answer: impl Fn(Result<Incoming, Problem>) -> F + 'static) -> Handler
where
    F: Future<Output = Response> + 'static,
{
    Closure::new(move |parts: JsValue| {
        let mut future = Box::pin(answer(Incoming::from_parts(&parts)));
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(response) => response.into(),
            // Polled again as a task, which leaves its own waker behind.
            Poll::Pending => future_to_promise(async move { Ok(future.await.into()) }).into(),
        }
    })
}

/// Method, address, the two headers that matter, and the body.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) method: String,
    pub(crate) url: String,
    content_type: Option<String>,
    pub(crate) trace: Option<String>,
    /// `None`: it was too large, and was not read to its end.
    body: Option<String>,
    /// It wants to become a socket.
    pub(crate) is_upgrade: bool,
}

impl Incoming {
    fn from_parts(parts: &JsValue) -> Result<Self, Problem> {
        let Some(parts) = parts.dyn_ref::<Array>() else {
            let detail = "The body could not be read to its end; send it again.";
            return Err(Problem::Malformed(detail.to_owned()));
        };
        Ok(Self {
            method: parts.get(0).as_string().unwrap_or_default(),
            url: parts.get(1).as_string().unwrap_or_default(),
            content_type: parts.get(2).as_string(),
            trace: parts.get(3).as_string(),
            body: parts.get(4).as_string(),
            is_upgrade: parts.get(5).is_truthy(),
        })
    }

    /// The body of a call from outside, which says that it is JSON.
    pub(crate) fn json(&self) -> Result<&str, Problem> {
        let body = self.text()?;
        body::check_content_type(self.content_type.as_deref(), body)?;
        Ok(body)
    }

    /// The body of a call between objects.
    pub(crate) fn text(&self) -> Result<&str, Problem> {
        self.body.as_deref().ok_or(Problem::TooLarge)
    }
}
