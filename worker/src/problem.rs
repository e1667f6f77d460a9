//! Everything that can go wrong for a caller, and the one mapping to status codes.
//!
//! Protocol outcomes, refusals included, are no problems: they are replies. `detail` says
//! what to do. What went wrong inside is logged and not sent.

use protocol::host::Unavailable;
use serde_json::json;
use wasm_bindgen::JsValue;
use web_sys::Response;

use crate::glue;

/// The longest `detail`, in characters; it may quote what was sent.
const DETAIL_LENGTH_MAX: usize = 600;

/// Why a request was not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// The request makes no sense; the text says what to send instead.
    Malformed(String),
    /// No such path.
    UnknownRoute,
    /// No such lab, or no more.
    UnknownLab,
    /// The lab has no object of this name.
    UnknownObject(String),
    /// The path exists, for other methods.
    WrongMethod(&'static str),
    /// The body is over 64 kB.
    TooLarge,
    /// The path is a socket's.
    UpgradeRequired,
    /// The lab is full; the text says of what.
    Quota(String),
    /// An injected fault.
    Unavailable(Unavailable),
    /// Our mistake, or the platform's; the text goes to the log only.
    Internal(String),
}

impl Problem {
    fn parts(&self) -> (u16, &'static str, &'static str, String) {
        match self {
            Self::Malformed(detail) => {
                (400, "malformed", "The request makes no sense", detail.clone())
            }
            Self::UnknownRoute => (
                404,
                "unknown-route",
                "There is no such path",
                "See /api/openapi.json for every path of this API.".to_owned(),
            ),
            Self::UnknownLab => (
                404,
                "unknown-lab",
                "There is no such lab",
                "It was never made, was deleted or has expired. Make a new one: POST /api/labs."
                    .to_owned(),
            ),
            Self::UnknownObject(node) => (
                404,
                "unknown-object",
                "There is no such object yet",
                format!(
                    "This lab has no {node}. An object comes to be with the first operation \
                     or control that is sent to it."
                ),
            ),
            Self::WrongMethod(allow) => {
                (405, "wrong-method", "The path does not know this method", format!("Use {allow}."))
            }
            Self::TooLarge => (
                413,
                "too-large",
                "The body is too large",
                "Send at most 65536 bytes; split a batch of events.".to_owned(),
            ),
            Self::UpgradeRequired => (
                426,
                "upgrade-required",
                "This path is a WebSocket",
                "Connect with a WebSocket client, or use GET …/events?after=N.".to_owned(),
            ),
            Self::Quota(what) => (
                429,
                "quota",
                "The lab is full",
                format!("{what} Start a fresh lab: POST /api/labs."),
            ),
            Self::Unavailable(reason) => (
                503,
                "unavailable",
                "The object did not answer",
                match reason {
                    Unavailable::Down => "It is down until it is restarted: POST …/restart.",
                    Unavailable::Unreachable => {
                        "A fault cuts it off. Ask again, or clear the faults: PUT …/faults with []."
                    }
                    Unavailable::Crashed => {
                        "It crashed while it worked on this. Nobody knows from here whether the \
                         request took effect: ask again with the same id."
                    }
                }
                .to_owned(),
            ),
            Self::Internal(_) => (
                500,
                "internal",
                "Something failed on our side",
                "The request may or may not have taken effect. Ask again.".to_owned(),
            ),
        }
    }

    /// The problem as `application/problem+json`.
    pub(crate) fn to_json(&self) -> String {
        let (status, word, title, detail) = self.parts();
        let detail: String = detail.chars().take(DETAIL_LENGTH_MAX).collect();
        let mut body = json!({
            "type": format!("urn:fencepost:problem:{word}"),
            "title": title,
            "status": status,
            "detail": detail,
        });
        if let Self::Unavailable(reason) = self {
            body["reason"] = json!(reason.as_str());
        }
        body.to_string()
    }

    /// The problem as a response.
    pub(crate) fn respond(&self) -> Response {
        if let Self::Internal(what) = self {
            worker::console_error!("{what}");
        }
        match self {
            Self::WrongMethod(allow) => glue::not_allowed(&self.to_json(), allow),
            _ => glue::answer(self.parts().0, &self.to_json(), -1.0),
        }
    }
}

impl From<JsValue> for Problem {
    fn from(error: JsValue) -> Self {
        Self::Internal(format!("{error:?}"))
    }
}

impl From<serde_json::Error> for Problem {
    fn from(error: serde_json::Error) -> Self {
        Self::Internal(format!("stored JSON: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_injected_fault_names_its_reason() {
        let body = Problem::Unavailable(Unavailable::Down).to_json();
        assert!(body.contains(r#""reason":"down""#) && body.contains(r#""status":503"#), "{body}");
    }

    #[test]
    fn what_failed_inside_is_not_sent() {
        let body = Problem::Internal("secret".to_owned()).to_json();
        assert!(!body.contains("secret"), "{body}");
    }

    #[test]
    fn a_detail_that_quotes_the_caller_is_cut() {
        let body = Problem::Malformed("x".repeat(70_000)).to_json();
        assert!(body.len() < 1000);
    }
}
