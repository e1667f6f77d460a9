//! Bodies: from text to the wire types, which check everything.
//!
//! The fast path is plain `serde_json`. Only a body that was refused is read a second
//! time, to find out which field to name.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::problem::Problem;

/// A body without members.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

/// Refuses a body that does not say that it is JSON. No body needs no type.
pub(crate) fn check_content_type(content_type: Option<&str>, body: &str) -> Result<(), Problem> {
    let essence = content_type.unwrap_or("").split(';').next().unwrap_or("").trim();
    if body.is_empty() || essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(Problem::Malformed(
        "The body must be JSON: send the header `content-type: application/json`.".to_owned(),
    ))
}

/// Reads a body that is an object.
pub(crate) fn parse<T: DeserializeOwned>(body: &str) -> Result<T, Problem> {
    parse_at("", body)
}

/// Reads a body that is a list.
pub(crate) fn parse_list<T: DeserializeOwned>(body: &str) -> Result<Vec<T>, Problem> {
    serde_json::from_str(body).map_err(|_| explain::<Vec<T>>("", body))
}

/// Reads a JSON object; `place` says where it stood, if it was not the body.
pub(crate) fn parse_at<T: DeserializeOwned>(place: &str, text: &str) -> Result<T, Problem> {
    // serde would take a list for a struct, by the order of the fields.
    if text.trim_start().starts_with('[') {
        return Err(explain::<BTreeMap<String, IgnoredAny>>(place, text));
    }
    serde_json::from_str(text).map_err(|_| explain::<T>(place, text))
}

fn explain<T: DeserializeOwned>(place: &str, text: &str) -> Problem {
    let place = if place.is_empty() { String::new() } else { format!("{place}: ") };
    if text.trim().is_empty() {
        return Problem::Malformed(format!("{place}there is no body; send JSON."));
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    let detail = match serde_path_to_error::deserialize::<_, T>(&mut reader) {
        // The value is fine, so there is something behind it.
        Ok(_) => "there is more text after the JSON value".to_owned(),
        Err(error) => {
            let path = error.path().to_string();
            let what = error.into_inner().to_string();
            if path == "." { what } else { format!("`{path}`: {what}") }
        }
    };
    Problem::Malformed(format!("{place}{detail}"))
}

#[cfg(test)]
mod tests {
    use protocol::lease::Acquire;
    use protocol::shard::Apply;

    use super::*;

    fn detail<T: DeserializeOwned + std::fmt::Debug>(body: &str) -> String {
        match parse::<T>(body) {
            Err(Problem::Malformed(detail)) => detail,
            other => panic!("{body} gave {other:?}"),
        }
    }

    #[test]
    fn a_refusal_names_the_field_and_the_range() {
        let text = detail::<Acquire>(r#"{"holder":"A","ttl_ms":5}"#);
        assert!(text.contains("`ttl_ms`") && text.contains("from 100 to 3600000"), "{text}");
        let text = detail::<Apply>(r#"{"op":{"type":"add","key":"a b","amount":1}}"#);
        assert!(text.contains("`op") && text.contains("is not a name"), "{text}");
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for body in ["", "{", "nonsense", "[]", "{\"holder\":\"A\",\"ttl_ms\":1000} more", "\u{0}"]
        {
            detail::<Acquire>(body);
        }
        let text = detail::<Acquire>(r#"{"holder":"A","ttl_ms":1000,"ttl":1}"#);
        assert!(text.contains("unknown field"), "{text}");
    }

    #[test]
    fn a_list_is_no_object() {
        let text = detail::<protocol::lease::Release>("[1]");
        assert!(text.contains("expected a map"), "{text}");
        assert!(parse_list::<u64>("[1]").is_ok() && parse_list::<u64>("{}").is_err());
    }

    #[test]
    fn json_must_be_called_json() {
        for good in ["application/json", "application/json; charset=utf-8", "Application/JSON"] {
            assert!(check_content_type(Some(good), "{}").is_ok(), "{good}");
        }
        for bad in [None, Some("text/plain"), Some("application/x-www-form-urlencoded")] {
            assert!(check_content_type(bad, "{}").is_err(), "{bad:?}");
        }
        assert!(check_content_type(None, "").is_ok());
    }
}
