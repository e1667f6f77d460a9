//! One lab of a deployment, over blocking HTTP.
//!
//! Invariant: what the server says is understood or reported as it is; nothing is guessed.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use lessons::driver::Answer;
use protocol::control::{Control, ControlReply};
use protocol::host::{Envelope, Unavailable};
use protocol::ids::{NodeId, ObjectKind};
use protocol::object::{Reply, Request};
use protocol::trace::TraceEvent;
use serde_json::{Value, json};
use ureq::Agent;

const TIMEOUT: Duration = Duration::from_secs(30);
const PAGE: usize = 1_000;

/// A lab that was made for one script.
#[derive(Clone)]
pub(super) struct Lab {
    agent: Agent,
    /// `http://127.0.0.1:8787/api/labs/…`
    url: String,
    /// The server's time when the lab was made, in ms since 1970.
    pub(super) created_at_ms: u64,
}

/// Status, Lamport time and body of an answer.
struct Heard {
    status: u16,
    lamport: u64,
    body: Value,
}

impl Lab {
    pub(super) fn create(server: &str) -> Result<Self> {
        // A refusal and a fault are answers: they are read, not turned into errors.
        let config =
            Agent::config_builder().timeout_global(Some(TIMEOUT)).http_status_as_error(false);
        let mut lab = Self {
            agent: config.build().into(),
            url: format!("{server}/api/labs"),
            created_at_ms: 0,
        };
        let made = lab.post("", &json!({}), None)?.expect(201)?;
        let name = made["lab"].as_str().context("no `lab` in the answer")?;
        lab.url = format!("{}/{name}", lab.url);
        lab.created_at_ms = made["now_ms"].as_u64().context("no `now_ms` in the answer")?;
        Ok(lab)
    }

    pub(super) fn delete(&self) -> Result<()> {
        let answer = self.agent.delete(&self.url).call()?;
        Heard::read(answer)?.expect(200).map(|_| ())
    }

    pub(super) fn send(
        &self,
        to: &NodeId,
        envelope: &Envelope,
        request: &Request,
    ) -> Result<Answer> {
        let kind = request.kind();
        let path = format!("/{}/{}/{}", kind.plural(), to.name(), request.operation());
        let envelope = ascii(&serde_json::to_string(envelope)?);
        let heard = self.post(&path, &serde_json::to_value(request)?, Some(&envelope))?;
        if heard.status == 503 {
            let reason = heard.body["reason"].clone();
            let why: Unavailable = serde_json::from_value(reason)
                .with_context(|| format!("a 503 without a known reason: {}", heard.body))?;
            return Ok(Answer::Unavailable(why));
        }
        let lamport = heard.lamport;
        let body = heard.expect(200)?;
        let reply = match kind {
            ObjectKind::Lease => Reply::Lease(serde_json::from_value(body)?),
            ObjectKind::Resource => Reply::Resource(serde_json::from_value(body)?),
            ObjectKind::Shard => Reply::Shard(serde_json::from_value(body)?),
            ObjectKind::Account => Reply::Account(serde_json::from_value(body)?),
            ObjectKind::Transaction => Reply::Transaction(serde_json::from_value(body)?),
        };
        Ok(Answer::Reply { reply, lamport })
    }

    pub(super) fn control(&self, to: &NodeId, control: &Control) -> Result<ControlReply> {
        let object = match (to.object_kind(), control) {
            (Some(kind), _) => format!("/objects/{}/{}", kind.as_str(), to.name()),
            // Of the lab as a whole.
            (None, Control::Delivery(_)) => String::new(),
            (None, _) => bail!("only objects can be controlled"),
        };
        let (path, body) = match control {
            Control::Rules(body) => (format!("{object}/rules"), serde_json::to_value(body)?),
            Control::Crash(body) => (format!("{object}/crash"), serde_json::to_value(body)?),
            Control::Restart => (format!("{object}/restart"), json!({})),
            Control::Clock(body) => (format!("{object}/clock"), serde_json::to_value(body)?),
            Control::Faults(body) => (format!("{object}/faults"), serde_json::to_value(body)?),
            Control::Alarm(body) => (format!("{object}/alarm"), serde_json::to_value(body)?),
            Control::Delivery(body) => ("/delivery".to_owned(), serde_json::to_value(body)?),
            Control::Outbox { id, action } => {
                let action = serde_json::to_value(action)?;
                let action = action.as_str().context("an action is a word")?;
                (format!("{object}/outbox/{id}/{action}"), json!({}))
            }
        };
        let body = self.post(&path, &body, None)?.expect(200)?;
        serde_json::from_value(body).context("an unknown reply to a control")
    }

    pub(super) fn report(&self, events: &[TraceEvent]) -> Result<()> {
        self.post("/events", &json!({ "events": events }), None)?.expect(200).map(|_| ())
    }

    pub(super) fn log_after(&self, seq: u64) -> Result<Vec<TraceEvent>> {
        let (mut after, mut log) = (seq, Vec::new());
        loop {
            let url = format!("{}/events?after={after}&limit={PAGE}", self.url);
            let mut body = Heard::read(self.agent.get(&url).call()?)?.expect(200)?;
            let events: Vec<TraceEvent> = serde_json::from_value(body["events"].take())?;
            log.extend(events);
            if body["more"].as_bool() != Some(true) {
                return Ok(log);
            }
            after = body["next_after"].as_u64().context("no `next_after` in the answer")?;
        }
    }

    fn post(&self, path: &str, body: &Value, envelope: Option<&str>) -> Result<Heard> {
        let url = format!("{}{path}", self.url);
        let mut request = self.agent.post(&url).header("content-type", "application/json");
        if let Some(envelope) = envelope {
            request = request.header("fencepost-trace", envelope);
        }
        let answer = request.send(body.to_string()).with_context(|| format!("POST {url}"))?;
        Heard::read(answer)
    }
}

impl Heard {
    fn read(mut answer: ureq::http::Response<ureq::Body>) -> Result<Self> {
        let status = answer.status().as_u16();
        let lamport = answer.headers().get("fencepost-lamport");
        let lamport = lamport.and_then(|text| text.to_str().ok()?.parse().ok()).unwrap_or(0);
        let text = answer.body_mut().read_to_string()?;
        let body = serde_json::from_str(&text)
            .with_context(|| format!("status {status}, and no JSON: {text}"))?;
        Ok(Self { status, lamport, body })
    }

    fn expect(self, status: u16) -> Result<Value> {
        if self.status != status {
            let detail = self.body["detail"].as_str().unwrap_or("no `detail`");
            bail!("status {} instead of {status}: {detail}", self.status);
        }
        Ok(self.body)
    }
}

/// JSON whose characters may all stand in a header.
fn ascii(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_ascii() {
            text.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                text += &format!("\\u{unit:04x}");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::ascii;

    #[test]
    fn what_is_not_ascii_is_escaped_and_means_the_same() {
        let json = serde_json::to_string("a · 𝄞").unwrap();
        let escaped = ascii(&json);
        assert!(escaped.is_ascii(), "{escaped}");
        assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), "a · 𝄞");
    }
}
