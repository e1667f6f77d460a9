//! The description of the HTTP API (OpenAPI 3.1), made from the wire types.
//!
//! Only the build uses it, with the feature `schema`; nothing that ships does. Invariant:
//! what a body or a reply looks like comes from the same types that read and write it, so
//! this can leave something out but not say something else. Paths, summaries and examples
//! are written here.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value as Json, json};

use crate::control::{Alarm, Clock, ControlReply, Crash, Delivery, Fault};
use crate::fence::{Claim, FenceReply, Read, Write};
use crate::ids::{
    Count, FencingToken, NAME_LENGTH_MAX, OffsetMs, TimestampMs, TtlMs, Value, WaitMs,
};
use crate::lease::{Acquire, ForceRelease, LeaseReply, Release, Renew};
use crate::rules::RulesUpdate;
use crate::shard::{Apply, Open, Seal, ShardReply};
use crate::transaction::account::{AccountReply, OpenAccount, ResolveHold};
use crate::transaction::coordinator::{ForgetTxn, Recover, ResolveLeg, Run, TxnReply};

mod answers;

use answers::{
    About, CreateLab, Created, EventsPage, Forgotten, Health, Inspected, Problem, Recorded, Report,
    Tables, Waiting,
};

const ABOUT: &str = "Leases, fencing tokens, shards and two-phase commit on real Durable Objects, to be broken on \
purpose.\n\nA *lab* is a private world; knowing its name is the permission to use it. Protocol \
outcomes, refusals included, are `200` with a tagged body. What is malformed is `400`, and the \
`detail` of every problem says what to do.\n\nAn answer names a `fencepost-lamport` time. A client \
that wants to be in the log sends the header `fencepost-trace` with each operation: ASCII JSON \
`{\"request\", \"from\", \"lamport\", \"events\"}`, where `events` are all of its own events that it \
has not reported yet. Nobody needs it: curl works without.";

/// The description as one JSON document.
pub fn document() -> Json {
    let settings = SchemaSettings::draft2020_12()
        .with(|settings| settings.definitions_path = "/components/schemas".into());
    let mut paths = Paths { generator: settings.into_generator(), paths: Map::new() };
    labs(&mut paths);
    leases(&mut paths);
    resources(&mut paths);
    shards(&mut paths);
    accounts(&mut paths);
    transactions(&mut paths);
    controls(&mut paths);
    let mut schemas = paths.generator.take_definitions(true);
    add_ranges(&mut schemas);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Fencepost",
            "version": env!("CARGO_PKG_VERSION"),
            "description": ABOUT,
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "paths": paths.paths,
        "components": { "schemas": schemas },
    })
}

/// One request that the API knows.
struct Endpoint<'a> {
    method: &'a str,
    path: &'a str,
    id: &'a str,
    summary: &'a str,
    /// An example of the body.
    example: Option<Json>,
    status: u16,
    /// Problems besides 400, 404 and 405.
    problems: &'a [u16],
}

struct Paths {
    generator: SchemaGenerator,
    paths: Map<String, Json>,
}

impl Paths {
    fn add<Body: JsonSchema, Reply: JsonSchema>(&mut self, endpoint: &Endpoint<'_>) {
        let reply = self.generator.subschema_for::<Reply>();
        let mut responses = Map::new();
        let content = json!({ "application/json": { "schema": reply } });
        let done = json!({ "description": endpoint.summary, "content": content });
        responses.insert(endpoint.status.to_string(), done);
        let problem = self.generator.subschema_for::<Problem>();
        for status in [400, 404, 405].iter().chain(endpoint.problems) {
            let content = json!({ "application/problem+json": { "schema": problem } });
            let description = meaning(*status);
            responses.insert(
                status.to_string(),
                json!({ "description": description, "content": content }),
            );
        }
        let mut operation = json!({
            "operationId": endpoint.id,
            "summary": endpoint.summary,
            "parameters": parameters(endpoint.path, endpoint.id),
            "responses": responses,
            "x-codeSamples": [{ "lang": "Shell", "label": "curl", "source": curl(endpoint) }],
        });
        if let Some(example) = &endpoint.example {
            let schema = self.generator.subschema_for::<Body>();
            let content = json!({ "application/json": { "schema": schema, "example": example } });
            let may_be_absent = ["create-lab", "set-restart", "recover", "forget"];
            let required = !may_be_absent.contains(&endpoint.id);
            operation["requestBody"] = json!({ "required": required, "content": content });
        }
        let path = endpoint.path.split('?').next().unwrap_or(endpoint.path);
        let known = self.paths.entry(path.to_owned()).or_insert_with(|| json!({}));
        known[endpoint.method] = operation;
    }

    /// An operation of an object.
    fn operation<Body: JsonSchema, Reply: JsonSchema>(
        &mut self,
        plural: &str,
        word: &str,
        summary: &str,
        example: Json,
    ) {
        let path = format!("/api/labs/{{lab}}/{plural}/{{name}}/{word}");
        self.add::<Body, Reply>(&Endpoint {
            method: "post",
            path: &path,
            id: word,
            summary,
            example: Some(example),
            status: 200,
            problems: &[413, 429, 503],
        });
    }

    /// An operation whose word another kind of object has too.
    fn named<Body: JsonSchema, Reply: JsonSchema>(
        &mut self,
        (plural, word, id): (&str, &str, &str),
        summary: &str,
        example: Json,
    ) {
        let path = format!("/api/labs/{{lab}}/{plural}/{{name}}/{word}");
        self.add::<Body, Reply>(&Endpoint {
            method: "post",
            path: &path,
            id,
            summary,
            example: Some(example),
            status: 200,
            problems: &[413, 429, 503],
        });
    }

    fn control<Body: JsonSchema>(&mut self, word: &str, summary: &str, example: Json) {
        let path = format!("/api/labs/{{lab}}/objects/{{kind}}/{{name}}/{word}");
        self.add::<Body, ControlReply>(&Endpoint {
            method: "put",
            path: &path,
            id: &format!("set-{word}"),
            summary,
            example: Some(example),
            status: 200,
            problems: &[413, 429],
        });
    }

    fn get<Reply: JsonSchema>(&mut self, path: &str, id: &str, summary: &str) {
        let endpoint = Endpoint {
            method: "get",
            path,
            id,
            summary,
            example: None,
            status: 200,
            problems: &[],
        };
        self.add::<(), Reply>(&endpoint);
    }
}

fn labs(paths: &mut Paths) {
    paths.get::<Health>("/api/health", "health", "Whether the server runs");
    paths.get::<Json>("/api/openapi.json", "openapi", "This document");
    paths.add::<CreateLab, Created>(&Endpoint {
        method: "post",
        path: "/api/labs",
        id: "create-lab",
        summary: "Makes a lab",
        example: Some(json!({ "tracing": true, "preset": "repaired" })),
        status: 201,
        problems: &[413],
    });
    paths.get::<About>(
        "/api/labs/{lab}",
        "inspect-lab",
        "What the lab has and how much it has used",
    );
    paths.add::<(), Forgotten>(&Endpoint {
        method: "delete",
        path: "/api/labs/{lab}",
        id: "delete-lab",
        summary: "Deletes the lab and all of its objects",
        example: None,
        status: 200,
        problems: &[],
    });
    let log = "The lab's log, in pages. The same log comes over a WebSocket at `…/socket?after=N`: \
               text frames `{\"events\": [...]}`, first what was, then what happens";
    paths.get::<EventsPage>("/api/labs/{lab}/events?after=0&limit=500", "read-events", log);
    paths.add::<Report, Recorded>(&Endpoint {
        method: "post",
        path: "/api/labs/{lab}/events",
        id: "report-events",
        summary: "Adds a client's own events to the log, each of them once however often it is sent",
        example: Some(json!({ "events": [{
            "at_ms": 1_767_225_600_000_u64, "node": "client/A", "lamport": 1,
            "local_seq": 1_767_225_600_000_000_u64, "kind": "client_paused",
        }] })),
        status: 200,
        problems: &[413, 429],
    });
}

fn leases(paths: &mut Paths) {
    paths.get::<Inspected>("/api/labs/{lab}/leases/{name}", "inspect-lease", "The lease as it is");
    paths.operation::<Acquire, LeaseReply>(
        "leases",
        "acquire",
        "Asks for the lease. Ask again with the same `request_id` to learn what became of a request",
        json!({ "holder": "A", "ttl_ms": 60_000 }),
    );
    paths.operation::<Renew, LeaseReply>(
        "leases",
        "renew",
        "Asks for more time under the same token",
        json!({ "holder": "A", "token": 1, "ttl_ms": 60_000 }),
    );
    paths.operation::<Release, LeaseReply>(
        "leases",
        "release",
        "Gives the lease back; an old token changes nothing",
        json!({ "token": 1 }),
    );
    paths.operation::<ForceRelease, LeaseReply>(
        "leases",
        "force-release",
        "Takes the lease from its holder; the reason goes into the log",
        json!({ "token": 1, "reason": "the holder's machine is gone" }),
    );
}

fn resources(paths: &mut Paths) {
    paths.get::<Inspected>(
        "/api/labs/{lab}/resources/{name}",
        "inspect-resource",
        "The resource as it is",
    );
    paths.operation::<Claim, FenceReply>(
        "resources",
        "claim",
        "Raises the fence to a grant's token, before its first read or write",
        json!({ "lease": "orders", "token": 1 }),
    );
    paths.operation::<Write, FenceReply>(
        "resources",
        "write",
        "Stores a value, unless a newer grant has been here",
        json!({ "lease": "orders", "token": 1, "key": "balance", "value": 95, "write_id": "w1" }),
    );
    paths.operation::<Read, FenceReply>(
        "resources",
        "read",
        "Reads a value; with a token, only if no newer grant has been here",
        json!({ "key": "balance" }),
    );
}

fn shards(paths: &mut Paths) {
    paths.get::<Inspected>("/api/labs/{lab}/shards/{name}", "inspect-shard", "The shard as it is");
    paths.operation::<Apply, ShardReply>(
        "shards",
        "apply",
        "Applies an operation and numbers it",
        json!({ "op": { "type": "add", "key": "stock", "amount": -1 }, "op_id": "o1" }),
    );
    paths.operation::<Seal, ShardReply>(
        "shards",
        "seal",
        "Stops the shard and hands out its state, so that its keys can move",
        json!({ "map_epoch": 1 }),
    );
    paths.operation::<Open, ShardReply>(
        "shards",
        "open",
        "Opens the shard under a map",
        json!({ "map_epoch": 1, "state": { "stock": 7 } }),
    );
}

fn accounts(paths: &mut Paths) {
    paths.get::<Inspected>(
        "/api/labs/{lab}/accounts/{name}",
        "inspect-account",
        "The account as it is; `in_doubt` lists what it waits for",
    );
    paths.named::<OpenAccount, AccountReply>(
        ("accounts", "open", "open-account"),
        "Opens the account with this much in it",
        json!({ "balance": 100 }),
    );
    paths.named::<ResolveHold, AccountReply>(
        ("accounts", "resolve", "resolve-hold"),
        "Decides by hand for an account in doubt; that it was by hand, and why, is kept",
        json!({ "transaction": "t1", "decision": "abort", "reason": "the coordinator is gone" }),
    );
}

fn transactions(paths: &mut Paths) {
    paths.get::<Inspected>(
        "/api/labs/{lab}/transactions/{name}",
        "inspect-transaction",
        "The transaction as it is; `in_doubt` lists the legs that have not acknowledged",
    );
    let legs = json!([{ "account": "a", "delta": -30 }, { "account": "b", "delta": 30 }]);
    paths.named::<Run, TxnReply>(
        ("transactions", "run", "run"),
        "Runs the transaction, or tells what became of it. Answers when the decision is durable",
        json!({ "legs": legs }),
    );
    paths.named::<Recover, TxnReply>(
        ("transactions", "recover", "recover"),
        "Does now what the alarm would do",
        json!({}),
    );
    paths.named::<ResolveLeg, TxnReply>(
        ("transactions", "resolve", "resolve-leg"),
        "Tells one account in doubt what to do, by hand",
        json!({ "account": "a", "decision": "abort", "reason": "the customer called" }),
    );
    paths.named::<ForgetTxn, TxnReply>(
        ("transactions", "forget", "forget"),
        "Lets the accounts forget a transaction that all of them have acknowledged",
        json!({}),
    );
}

fn outbox(paths: &mut Paths) {
    paths.add::<Delivery, ControlReply>(&Endpoint {
        method: "put",
        path: "/api/labs/{lab}/delivery",
        id: "set-delivery",
        summary: "How messages between objects leave: `auto`, or `manual` and by hand",
        example: Some(json!({ "mode": "manual" })),
        status: 200,
        problems: &[413],
    });
    paths.get::<Waiting>(
        "/api/labs/{lab}/objects/{kind}/{name}/outbox",
        "read-outbox",
        "The messages that have not been delivered",
    );
    for (word, summary) in [
        ("deliver", "Lets a waiting message leave"),
        ("drop", "Throws a waiting message away"),
        ("duplicate", "Makes a second copy of a waiting message"),
    ] {
        paths.add::<(), ControlReply>(&Endpoint {
            method: "post",
            path: &format!("/api/labs/{{lab}}/objects/{{kind}}/{{name}}/outbox/{{id}}/{word}"),
            id: &format!("{word}-message"),
            summary,
            example: None,
            status: 200,
            problems: &[429],
        });
    }
}

fn controls(paths: &mut Paths) {
    outbox(paths);
    paths.get::<Tables>(
        "/api/labs/{lab}/objects/{kind}/{name}/tables",
        "read-tables",
        "The object's own SQLite rows",
    );
    paths.control::<RulesUpdate>(
        "rules",
        "Changes the object's rules: a preset first, then single ones",
        json!({ "preset": "published", "set": { "fifo_queue": true } }),
    );
    paths.control::<Crash>(
        "crash",
        "Crashes the object, now or at a point of its next step",
        json!({ "at": "after_persist", "stay_down": false }),
    );
    paths.control::<Nothing>("restart", "Starts an object that stays down", json!({}));
    paths.control::<Clock>("clock", "Moves the object's clock", json!({ "offset_ms": 5_000 }));
    paths.control::<Vec<Fault>>(
        "faults",
        "Puts faults in place; they replace those that were there",
        json!([{ "message": "acquire", "from": "A", "action": "unreachable", "times": 1 }]),
    );
    paths.control::<Alarm>("alarm", "Rings the alarm, or holds it", json!({ "action": "fire" }));
}

/// A body without members.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Nothing {}

fn meaning(status: u16) -> &'static str {
    match status {
        400 => "The request makes no sense; `detail` names the member and what it may be",
        404 => "No such lab, object or path",
        405 => "Another method; the header `allow` says which",
        413 => "The body is over 64 kB",
        429 => "The lab is full of events, objects or sockets; make a new one",
        _ => "An injected fault: `reason` is `down`, `unreachable` or `crashed`",
    }
}

fn parameters(path: &str, id: &str) -> Json {
    let mut parameters = Vec::new();
    let text = |name: &str, pattern: &str| {
        let schema = json!({ "type": "string", "pattern": pattern });
        json!({ "name": name, "in": "path", "required": true, "schema": schema })
    };
    if path.contains("{lab}") {
        parameters.push(text("lab", "^[a-z2-7]{26}$"));
    }
    if path.contains("{kind}") {
        parameters.push(text("kind", "^(lease|resource|shard|account|transaction)$"));
    }
    if path.contains("{id}") {
        let schema = json!({ "type": "integer", "minimum": 1 });
        parameters.push(json!({ "name": "id", "in": "path", "required": true, "schema": schema }));
    }
    if path.contains("{name}") {
        parameters.push(text("name", "^[a-z0-9._-]{1,64}$"));
    }
    if id == "read-events" {
        for (name, default, maximum) in [("after", 0, None), ("limit", 500, Some(5000))] {
            let mut schema = json!({ "type": "integer", "minimum": 0, "default": default });
            if let Some(maximum) = maximum {
                schema["maximum"] = json!(maximum);
            }
            parameters.push(json!({ "name": name, "in": "query", "schema": schema }));
        }
    }
    json!(parameters)
}

/// A command that can be typed as it stands, once `$HOST` and `$LAB` are set.
fn curl(endpoint: &Endpoint<'_>) -> String {
    let (kind, name) = match endpoint.path {
        path if path.contains("shards") => ("shard", "7"),
        path if path.contains("accounts") => ("account", "a"),
        path if path.contains("transactions") || path.contains("outbox") => ("transaction", "t1"),
        _ => ("lease", "orders"),
    };
    let path = endpoint.path.replace("{lab}", "$LAB").replace("{kind}", kind);
    let path = path.replace("{name}", name).replace("{id}", "1");
    let method = match endpoint.method {
        "get" => String::new(),
        other => format!(" -X {}", other.to_uppercase()),
    };
    match &endpoint.example {
        None => format!("curl -s{method} \"$HOST{path}\""),
        Some(body) => format!(
            "curl -s{method} \"$HOST{path}\" -H 'content-type: application/json' -d '{}'",
            body.to_string().replace('\'', "'\\''")
        ),
    }
}

/// What the types check when they are read, and a schema made of them does not know.
fn add_ranges(schemas: &mut Map<String, Json>) {
    let integers: [(&str, i64, i64); 7] = [
        ("FencingToken", FencingToken::MIN as i64, FencingToken::MAX as i64),
        ("TtlMs", TtlMs::MIN as i64, TtlMs::MAX as i64),
        ("WaitMs", WaitMs::MIN as i64, WaitMs::MAX as i64),
        ("TimestampMs", TimestampMs::MIN as i64, TimestampMs::MAX as i64),
        ("Count", Count::MIN as i64, Count::MAX as i64),
        ("Value", Value::MIN, Value::MAX),
        ("OffsetMs", OffsetMs::MIN, OffsetMs::MAX),
    ];
    for (name, minimum, maximum) in integers {
        if let Some(Json::Object(schema)) = schemas.get_mut(name) {
            schema.remove("format");
            schema.insert("type".to_owned(), json!("integer"));
            schema.insert("minimum".to_owned(), json!(minimum));
            schema.insert("maximum".to_owned(), json!(maximum));
        }
    }
    for (name, characters) in [("Name", "a-z0-9._-"), ("Label", "A-Za-z0-9._:-")] {
        if let Some(Json::Object(schema)) = schemas.get_mut(name) {
            schema.insert(
                "pattern".to_owned(),
                json!(format!("^[{characters}]{{1,{NAME_LENGTH_MAX}}}$")),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_leads_somewhere() {
        let document = document();
        let text = document.to_string();
        let names =
            text.split("\"#/components/schemas/").skip(1).filter_map(|rest| rest.split('"').next());
        for name in names {
            assert!(document["components"]["schemas"][name].is_object(), "{name}");
        }
    }

    #[test]
    fn every_operation_has_an_id_of_its_own_and_an_example() {
        let document = document();
        let paths = document["paths"].as_object().expect("paths");
        let operations: Vec<&Json> =
            paths.values().flat_map(|path| path.as_object().expect("methods").values()).collect();
        assert_eq!(operations.len(), 40);
        let mut ids: Vec<_> = operations.iter().map(|one| one["operationId"].as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), operations.len());
        for operation in operations {
            assert!(
                operation["x-codeSamples"][0]["source"].as_str().expect("curl").starts_with("curl")
            );
        }
    }

    #[test]
    fn examples_are_bodies_that_the_types_take() {
        let document = document();
        let example = |path: &str| {
            let path = format!("/api/labs/{{lab}}/{path}");
            document["paths"][&path]["post"]["requestBody"]["content"]["application/json"]["example"].clone()
        };
        serde_json::from_value::<Acquire>(example("leases/{name}/acquire")).expect("acquire");
        serde_json::from_value::<Write>(example("resources/{name}/write")).expect("write");
        serde_json::from_value::<Apply>(example("shards/{name}/apply")).expect("apply");
        serde_json::from_value::<Open>(example("shards/{name}/open")).expect("open");
    }

    #[test]
    fn ranges_and_patterns_are_those_of_the_types() {
        let schemas = document()["components"]["schemas"].clone();
        assert_eq!(schemas["TtlMs"]["minimum"], 100);
        assert_eq!(schemas["TtlMs"]["maximum"], 3_600_000);
        assert_eq!(schemas["Name"]["pattern"], "^[a-z0-9._-]{1,64}$");
    }
}
