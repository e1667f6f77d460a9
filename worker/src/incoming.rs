//! A request as an object receives it.

use js_sys::Array;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;

use crate::body;
use crate::glue;
use crate::problem::Problem;

/// Method, address, the two headers that matter, and the body, all read at once.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) method: String,
    pub(crate) url: String,
    content_type: Option<String>,
    pub(crate) trace: Option<String>,
    /// `None`: it was too large, and was not read to its end.
    body: Option<String>,
}

impl Incoming {
    pub(crate) async fn receive(request: &JsValue) -> Result<Self, Problem> {
        let parts = JsFuture::from(glue::receive(request)?).await.map_err(|_| {
            Problem::Malformed("The body could not be read to its end; send it again.".to_owned())
        })?;
        let parts: Array = parts.unchecked_into();
        Ok(Self {
            method: parts.get(0).as_string().unwrap_or_default(),
            url: parts.get(1).as_string().unwrap_or_default(),
            content_type: parts.get(2).as_string(),
            trace: parts.get(3).as_string(),
            body: parts.get(4).as_string(),
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
