//! The servers under load, and what is asked of each.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use crate::bench::load::{Client, Target};
use crate::install;
use crate::process::Group;
use crate::project::{Profile, Project};

pub(crate) struct Servers {
    ours: String,
    rival: String,
    /// Ends the servers when it is dropped.
    _group: Group,
}

impl Servers {
    pub(crate) fn start(project: &Project) -> Result<Self> {
        let state = project.scratch("bench-state");
        install::remove(&state)?;
        let mut command = project.command("node");
        command
            .arg(project.path("xtask/bench/serve.mjs"))
            .arg(project.worker_build(Profile::Release))
            .arg(&state)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut group = Group::spawn(&mut command).context("could not run node")?;
        let stdout = group.child().stdout.take().context("node has no output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let addresses: Value = serde_json::from_str(&line)
            .context("the servers of the bench did not start; they say why above")?;
        let address = |name: &str| -> Result<String> {
            let text = addresses[name].as_str().context("serve.mjs prints no address")?;
            Ok(text.trim_end_matches('/').to_owned())
        };
        Ok(Self { ours: address("ours")?, rival: address("rival")?, _group: group })
    }

    /// Everything that is measured, in the order of the table.
    pub(crate) fn targets(&self, n_clients: usize) -> Result<Vec<Target>> {
        let quiet = Labs::create(&self.ours, false, "published", n_clients)?;
        let traced = Labs::create(&self.ours, true, "published", n_clients)?;
        let repaired = Labs::create(&self.ours, true, "repaired", n_clients)?;
        let rival = |operation: &str, body: &str| -> Vec<Client> {
            let url = |n: usize| format!("{}/bench-{n}/{operation}", self.rival);
            (0..n_clients).map(|n| Client { url: url(n), body: body.to_owned() }).collect()
        };
        let acquire = r#"{"holder":"A","ttl_ms":60000}"#;
        let write = r#"{"lease":"orders","token":{n},"key":"balance","value":{n}}"#;
        let target = |name, group, clients, expected| Target { name, group, clients, expected };
        Ok(vec![
            target(
                "floor: an object that does nothing",
                "floor",
                rival("nothing", "{}"),
                "nothing",
            ),
            target(
                "acquire · the paper's TypeScript",
                "acquire",
                rival("acquire", r#"{"candidate":"A","ttlMs":60000}"#),
                "\"granted\":true",
            ),
            target(
                "acquire · tracing off",
                "acquire",
                quiet.clients("leases", "acquire", acquire),
                "granted",
            ),
            target(
                "acquire · tracing on",
                "acquire",
                traced.clients("leases", "acquire", acquire),
                "granted",
            ),
            target(
                "fenced write · the paper's TypeScript",
                "write",
                rival("write", r#"{"key":"balance","token":{n},"value":{n}}"#),
                "applied",
            ),
            target(
                "fenced write · tracing off",
                "write",
                quiet.clients("resources", "write", write),
                "applied",
            ),
            target(
                "fenced write · tracing on",
                "write",
                traced.clients("resources", "write", write),
                "applied",
            ),
            target(
                "claimed write with a write id · repaired, tracing on",
                "write",
                repaired.clients(
                    "resources",
                    "write",
                    r#"{"lease":"orders","token":1,"key":"balance","value":{n},"write_id":"w{n}"}"#,
                ),
                "applied",
            ),
        ])
    }
}

/// Labs whose objects are ready: one for each client, as in a workshop, so that no log
/// comes near the limit of events that a lab may hold.
struct Labs {
    urls: Vec<String>,
}

impl Labs {
    fn create(server: &str, tracing: bool, preset: &str, n_clients: usize) -> Result<Self> {
        let urls = (0..n_clients).map(|_| create_lab(server, tracing, preset));
        Ok(Self { urls: urls.collect::<Result<_>>()? })
    }

    fn clients(&self, plural: &str, operation: &str, body: &str) -> Vec<Client> {
        let url = |lab: &String| format!("{lab}/{plural}/bench/{operation}");
        self.urls.iter().map(|lab| Client { url: url(lab), body: body.to_owned() }).collect()
    }
}

fn create_lab(server: &str, tracing: bool, preset: &str) -> Result<String> {
    let asked = json!({"tracing": tracing, "preset": preset});
    let created = post(&format!("{server}/api/labs"), &asked)?;
    let Some(lab) = created["lab"].as_str() else { bail!("no lab: {created}") };
    let url = format!("{server}/api/labs/{lab}");
    // The paper's resource awaits other I/O between guard and payload; the rival of this
    // bench does not, so neither do we.
    let rules = json!({"set": {"atomic_write": true}});
    put(&format!("{url}/objects/resource/bench/rules"), &rules)?;
    if preset == "repaired" {
        post(&format!("{url}/resources/bench/claim"), &json!({"lease": "orders", "token": 1}))?;
    }
    Ok(url)
}

fn post(url: &str, body: &Value) -> Result<Value> {
    let request = ureq::post(url).header("content-type", "application/json");
    answer(url, request.send(&body.to_string()))
}

fn put(url: &str, body: &Value) -> Result<Value> {
    let request = ureq::put(url).header("content-type", "application/json");
    answer(url, request.send(&body.to_string()))
}

fn answer(url: &str, sent: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Result<Value> {
    let text = sent.with_context(|| url.to_owned())?.body_mut().read_to_string()?;
    serde_json::from_str(&text).with_context(|| format!("{url} answered {text}"))
}
