//! The paths of the API: a method and a path become a typed route, nothing else.
//!
//! Invariant: a route's lab and name are well formed, so that no object is touched for a
//! name that could never be one. Both the entry and the objects read paths here.

use protocol::control::{Alarm, Clock, Control, Crash, Fault, OutboxAction};
use protocol::fence::{Claim, Read, Write};
use protocol::ids::{MAX_SAFE_INTEGER, Name, ObjectKind};
use protocol::lease::{Acquire, ForceRelease, Release, Renew};
use protocol::object::Request;
use protocol::rules::RulesUpdate;
use protocol::shard::{Apply, Open, Seal};
use protocol::transaction::account::{OpenAccount, ResolveHold};
use protocol::transaction::coordinator::{ForgetTxn, Recover, ResolveLeg, Run};
use protocol::transaction::message::Message;

use crate::body;
use crate::problem::Problem;

/// The longest reason of a forced release, in characters.
const REASON_LENGTH_MAX: usize = 200;

/// Where a request goes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Route<'a> {
    Health,
    OpenApi,
    CreateLab,
    Lab { lab: &'a str, action: LabAction },
    Object { lab: &'a str, kind: ObjectKind, name: Name, action: ObjectAction },
}

/// What is asked of a lab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LabAction {
    Inspect,
    Forget,
    Events,
    Report,
    Socket,
    Delivery,
}

/// What is asked of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectAction {
    Inspect,
    Tables,
    Outbox,
    Message { id: u64, action: OutboxAction },
    Operation(Operation),
    Control(ControlWord),
}

/// The last word of an operation's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Acquire,
    Renew,
    Release,
    ForceRelease,
    Claim,
    Write,
    Read,
    Apply,
    Seal,
    Open,
    OpenAccount,
    ResolveHold,
    Run,
    Recover,
    ResolveLeg,
    Forget,
}

/// The last word of a control's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ControlWord {
    Rules,
    Crash,
    Restart,
    Clock,
    Faults,
    Alarm,
}

impl Operation {
    const ALL: [Self; 16] = [
        Self::Acquire,
        Self::Renew,
        Self::Release,
        Self::ForceRelease,
        Self::Claim,
        Self::Write,
        Self::Read,
        Self::Apply,
        Self::Seal,
        Self::Open,
        Self::OpenAccount,
        Self::ResolveHold,
        Self::Run,
        Self::Recover,
        Self::ResolveLeg,
        Self::Forget,
    ];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Acquire => "acquire",
            Self::Renew => "renew",
            Self::Release => "release",
            Self::ForceRelease => "force-release",
            Self::Claim => "claim",
            Self::Write => "write",
            Self::Read => "read",
            Self::Apply => "apply",
            Self::Seal => "seal",
            Self::Open | Self::OpenAccount => "open",
            Self::ResolveHold | Self::ResolveLeg => "resolve",
            Self::Run => "run",
            Self::Recover => "recover",
            Self::Forget => "forget",
        }
    }

    fn from_word(kind: ObjectKind, word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.kind() == kind && one.as_str() == word)
    }

    /// The kind of object that knows it.
    pub(crate) const fn kind(self) -> ObjectKind {
        match self {
            Self::Acquire | Self::Renew | Self::Release | Self::ForceRelease => ObjectKind::Lease,
            Self::Claim | Self::Write | Self::Read => ObjectKind::Resource,
            Self::Apply | Self::Seal | Self::Open => ObjectKind::Shard,
            Self::OpenAccount | Self::ResolveHold => ObjectKind::Account,
            Self::Run | Self::Recover | Self::ResolveLeg | Self::Forget => ObjectKind::Transaction,
        }
    }

    /// The request in a body.
    pub(crate) fn parse(self, body: &str) -> Result<Request, Problem> {
        Ok(match self {
            Self::Acquire => Request::Acquire(body::parse::<Acquire>(body)?),
            Self::Renew => Request::Renew(body::parse::<Renew>(body)?),
            Self::Release => Request::Release(body::parse::<Release>(body)?),
            Self::ForceRelease => Request::ForceRelease(force_release(body)?),
            Self::Claim => Request::Claim(body::parse::<Claim>(body)?),
            Self::Write => Request::Write(body::parse::<Write>(body)?),
            Self::Read => Request::Read(body::parse::<Read>(body)?),
            Self::Apply => Request::Apply(body::parse::<Apply>(body)?),
            Self::Seal => Request::Seal(body::parse::<Seal>(body)?),
            Self::Open => Request::Open(body::parse::<Open>(body)?),
            Self::OpenAccount => Request::OpenAccount(body::parse::<OpenAccount>(body)?),
            Self::ResolveHold => Request::ResolveHold(body::parse::<ResolveHold>(body)?),
            Self::Run => Request::Run(body::parse::<Run>(body)?),
            Self::Recover => Request::Recover(body::parse::<Recover>(or_nothing(body))?),
            Self::ResolveLeg => Request::ResolveLeg(body::parse::<ResolveLeg>(body)?),
            Self::Forget => Request::Forget(body::parse::<ForgetTxn>(or_nothing(body))?),
        })
    }
}

/// A body that may be left out.
fn or_nothing(body: &str) -> &str {
    if body.is_empty() { "{}" } else { body }
}

fn force_release(body: &str) -> Result<ForceRelease, Problem> {
    let force: ForceRelease = body::parse(body)?;
    let length = force.reason.chars().count();
    if !(1..=REASON_LENGTH_MAX).contains(&length) {
        return Err(Problem::Malformed(format!(
            "`reason`: {length} characters; use 1 to {REASON_LENGTH_MAX}, for the log."
        )));
    }
    Ok(force)
}

impl ControlWord {
    fn from_word(word: &str) -> Option<Self> {
        Some(match word {
            "rules" => Self::Rules,
            "crash" => Self::Crash,
            "restart" => Self::Restart,
            "clock" => Self::Clock,
            "faults" => Self::Faults,
            "alarm" => Self::Alarm,
            _ => return None,
        })
    }

    /// The control in a body.
    pub(crate) fn parse(self, kind: ObjectKind, body: &str) -> Result<Control, Problem> {
        Ok(match self {
            Self::Rules => Control::Rules(body::parse::<RulesUpdate>(body)?),
            Self::Crash => Control::Crash(body::parse::<Crash>(body)?),
            Self::Restart => {
                body::parse::<body::Nothing>(or_nothing(body))?;
                Control::Restart
            }
            Self::Clock => Control::Clock(body::parse::<Clock>(body)?),
            Self::Faults => Control::Faults(faults(kind, body)?),
            Self::Alarm => Control::Alarm(body::parse::<Alarm>(body)?),
        })
    }
}

fn faults(kind: ObjectKind, body: &str) -> Result<Vec<Fault>, Problem> {
    let faults: Vec<Fault> = body::parse_list(body)?;
    let talks = matches!(kind, ObjectKind::Account | ObjectKind::Transaction);
    let knows = |word: &str| {
        Operation::from_word(kind, word).is_some() || (talks && Message::OPERATIONS.contains(&word))
    };
    match faults.iter().position(|fault| fault.message != "*" && !knows(&fault.message)) {
        None => Ok(faults),
        Some(index) => Err(Problem::Malformed(format!(
            "`[{index}].message`: no operation of a {}; use one of its operations or messages, or *.",
            kind.as_str()
        ))),
    }
}

/// Reads a path, which starts with `/` and has no query.
pub(crate) fn route<'a>(method: &str, path: &'a str) -> Result<Route<'a>, Problem> {
    let words: Vec<&str> = path.strip_prefix("/api/").unwrap_or("").split('/').collect();
    match words.as_slice() {
        ["health"] => only(method, &["GET"]).map(|()| Route::Health),
        ["openapi.json"] => only(method, &["GET"]).map(|()| Route::OpenApi),
        ["labs"] => only(method, &["POST"]).map(|()| Route::CreateLab),
        ["labs", lab] => in_lab(lab, lab_action(method, "")),
        ["labs", lab, word @ ("events" | "socket" | "delivery")] => {
            in_lab(lab, lab_action(method, word))
        }
        ["labs", lab, "objects", kind, name, word] => {
            let kind = find_kind(kind, ObjectKind::as_str)?;
            let action = match ControlWord::from_word(word) {
                Some(control) => {
                    only(method, &["PUT", "POST"])?;
                    ObjectAction::Control(control)
                }
                None if *word == "tables" => {
                    only(method, &["GET"])?;
                    ObjectAction::Tables
                }
                None if *word == "outbox" => {
                    only(method, &["GET"])?;
                    ObjectAction::Outbox
                }
                None => return Err(Problem::UnknownRoute),
            };
            in_object(lab, kind, name, action)
        }
        ["labs", lab, "objects", kind, name, "outbox", id, word] => {
            let kind = find_kind(kind, ObjectKind::as_str)?;
            let action = match *word {
                "deliver" => OutboxAction::Deliver,
                "drop" => OutboxAction::Drop,
                "duplicate" => OutboxAction::Duplicate,
                _ => return Err(Problem::UnknownRoute),
            };
            only(method, &["POST"])?;
            let id = id.parse().ok().filter(|id| *id <= MAX_SAFE_INTEGER);
            let id = id.ok_or_else(|| {
                Problem::Malformed("The message's number is a whole number from 1.".to_owned())
            })?;
            in_object(lab, kind, name, ObjectAction::Message { id, action })
        }
        ["labs", lab, plural, name] => {
            let kind = find_kind(plural, ObjectKind::plural)?;
            only(method, &["GET"])?;
            in_object(lab, kind, name, ObjectAction::Inspect)
        }
        ["labs", lab, plural, name, word] => {
            let kind = find_kind(plural, ObjectKind::plural)?;
            let operation = Operation::from_word(kind, word).ok_or(Problem::UnknownRoute)?;
            only(method, &["POST"])?;
            in_object(lab, kind, name, ObjectAction::Operation(operation))
        }
        _ => Err(Problem::UnknownRoute),
    }
}

fn only(method: &str, allowed: &'static [&'static str]) -> Result<(), Problem> {
    if allowed.contains(&method) {
        return Ok(());
    }
    Err(Problem::WrongMethod(match allowed {
        ["GET"] => "GET, OPTIONS",
        ["POST"] => "POST, OPTIONS",
        ["PUT", "POST"] => "PUT, POST, OPTIONS",
        ["GET", "POST"] => "GET, POST, OPTIONS",
        _ => "GET, DELETE, OPTIONS",
    }))
}

fn lab_action(method: &str, word: &str) -> Result<LabAction, Problem> {
    match word {
        "" => only(method, &["GET", "DELETE"])?,
        "events" => only(method, &["GET", "POST"])?,
        "delivery" => only(method, &["PUT", "POST"])?,
        _ => only(method, &["GET"])?,
    }
    Ok(match (word, method) {
        ("", "DELETE") => LabAction::Forget,
        ("", _) => LabAction::Inspect,
        ("events", "POST") => LabAction::Report,
        ("events", _) => LabAction::Events,
        ("delivery", _) => LabAction::Delivery,
        _ => LabAction::Socket,
    })
}

fn in_lab<'a>(lab: &'a str, action: Result<LabAction, Problem>) -> Result<Route<'a>, Problem> {
    let action = action?;
    check_lab(lab)?;
    Ok(Route::Lab { lab, action })
}

fn in_object<'a>(
    lab: &'a str,
    kind: ObjectKind,
    name: &str,
    action: ObjectAction,
) -> Result<Route<'a>, Problem> {
    check_lab(lab)?;
    let name = Name::try_from(name).map_err(|bad| Problem::Malformed(bad.to_string()))?;
    Ok(Route::Object { lab, kind, name, action })
}

/// A lab that could never have been made needs no object to say so.
fn check_lab(lab: &str) -> Result<(), Problem> {
    let letters =
        lab.bytes().all(|byte| byte.is_ascii_lowercase() || (b'2'..=b'7').contains(&byte));
    if lab.len() == 26 && letters { Ok(()) } else { Err(Problem::UnknownLab) }
}

fn find_kind(word: &str, spelling: fn(ObjectKind) -> &'static str) -> Result<ObjectKind, Problem> {
    let found = ObjectKind::ALL.into_iter().find(|kind| spelling(*kind) == word);
    found.ok_or(Problem::UnknownRoute)
}

/// Path and query of a full URL.
pub(crate) fn path_and_query(url: &str) -> (&str, &str) {
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = after_scheme.find('/').and_then(|start| after_scheme.get(start..)).unwrap_or("/");
    let path = path.split_once('#').map_or(path, |(path, _)| path);
    path.split_once('?').unwrap_or((path, ""))
}

/// A whole number from a query, or the value it has when it is not given.
pub(crate) fn query_number(
    query: &str,
    name: &str,
    otherwise: u64,
    max: u64,
) -> Result<u64, Problem> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let Some((_, text)) = pairs.find(|(key, _)| *key == name) else { return Ok(otherwise) };
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| digits && *number <= max).ok_or_else(|| {
        Problem::Malformed(format!("`{name}` in the query: use a whole number from 0 to {max}."))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAB: &str = "abcdefghijklmnopqrstuvwxyz";

    fn check(method: &str, path: &str) -> Result<String, Problem> {
        route(method, &path.replace("LAB", LAB)).map(|route| format!("{route:?}"))
    }

    #[test]
    fn every_operation_has_its_path() {
        for (plural, words) in [
            ("leases", &["acquire", "renew", "release", "force-release"][..]),
            ("resources", &["claim", "write", "read"]),
            ("shards", &["apply", "seal", "open"]),
            ("accounts", &["open", "resolve"]),
            ("transactions", &["run", "recover", "resolve", "forget"]),
        ] {
            for word in words {
                let path = format!("/api/labs/LAB/{plural}/orders/{word}");
                assert!(check("POST", &path).is_ok(), "{path}");
                assert!(matches!(check("GET", &path), Err(Problem::WrongMethod(_))), "{path}");
            }
        }
        assert_eq!(check("POST", "/api/labs/LAB/shards/7/acquire"), Err(Problem::UnknownRoute));
    }

    #[test]
    fn a_message_is_named_by_its_number() {
        let path = "/api/labs/LAB/objects/transaction/t1/outbox";
        assert!(check("GET", path).is_ok());
        for word in ["deliver", "drop", "duplicate"] {
            assert!(check("POST", &format!("{path}/7/{word}")).is_ok(), "{word}");
        }
        assert_eq!(check("POST", &format!("{path}/7/burn")), Err(Problem::UnknownRoute));
        for id in ["x", "-1", "1.5", "99999999999999999999"] {
            let path = format!("{path}/{id}/drop");
            assert!(matches!(check("POST", &path), Err(Problem::Malformed(_))), "{path}");
        }
    }

    #[test]
    fn names_and_labs_are_checked_here() {
        for name in ["Orders", "%20", "a b", "ü", ""] {
            let path = format!("/api/labs/LAB/leases/{name}/acquire");
            assert!(matches!(check("POST", &path), Err(Problem::Malformed(_))), "{path}");
        }
        for lab in ["x", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxy1"] {
            let path = format!("/api/labs/{lab}");
            assert_eq!(check("GET", &path), Err(Problem::UnknownLab), "{path}");
        }
    }

    #[test]
    fn nothing_internal_is_a_route() {
        for path in
            ["/internal/forget", "/api", "/api/", "/api/labs/", "//api/labs", "/api/labs/LAB/"]
        {
            assert!(check("POST", path).is_err(), "{path}");
        }
    }

    #[test]
    fn a_query_holds_whole_numbers() {
        assert_eq!(query_number("after=7&limit=2", "limit", 0, 9), Ok(2));
        assert_eq!(query_number("", "limit", 5, 9), Ok(5));
        for bad in [
            "after=-1",
            "after=+1",
            "after=1.5",
            "after=",
            "after=10",
            "after=99999999999999999999",
        ] {
            assert!(query_number(bad, "after", 0, 9).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_url_is_taken_apart() {
        assert_eq!(path_and_query("http://h:1/api/x?a=1#f"), ("/api/x", "a=1"));
        assert_eq!(path_and_query("http://h"), ("/", ""));
    }

    #[test]
    fn a_forced_release_says_why() {
        let parse = |reason: String| {
            let body = serde_json::json!({ "token": 1, "reason": reason }).to_string();
            Operation::ForceRelease.parse(&body)
        };
        assert!(parse("x".to_owned()).is_ok() && parse("ü".repeat(200)).is_ok());
        assert!(parse(String::new()).is_err() && parse("x".repeat(201)).is_err());
    }

    #[test]
    fn a_fault_names_an_operation_of_its_object() {
        let parse = |kind, message| {
            let body = format!(r#"[{{"message":"{message}","action":"unreachable"}}]"#);
            ControlWord::Faults.parse(kind, &body)
        };
        assert!(parse(ObjectKind::Lease, "acquire").is_ok());
        assert!(parse(ObjectKind::Lease, "*").is_ok());
        assert!(parse(ObjectKind::Shard, "acquire").is_err());
        assert!(parse(ObjectKind::Shard, "prepare").is_err());
        assert!(parse(ObjectKind::Transaction, "prepare").is_ok());
    }
}
