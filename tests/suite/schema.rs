//! The committed protocol files are what the code says, and the daemon serves the same.

use crate::{json_schema, support::Daemon};
use abridged::{
    compaction::ladder::Floor,
    protocol::{
        codes::CODES,
        errors::{Failure, Nothing},
        methods, schema,
    },
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, fs, path::Path};

#[test]
fn the_files_under_protocol_are_fresh() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("protocol");
    for (name, text) in schema::files() {
        let committed = fs::read_to_string(folder.join(&name)).unwrap_or_default();
        assert!(committed == text, "protocol/{name} is stale; run `cargo run -- schema --out protocol`");
    }
}

#[test]
fn discover_serves_the_same_document_and_every_method_is_answered() {
    let mut daemon = Daemon::start();
    let served = daemon.ok("rpc.discover", json!({}));
    assert_eq!(served, schema::openrpc());
    let listed: BTreeSet<&str> = methods().iter().map(|method| method.name).collect();
    let answered = daemon.ok("rpc.discover", json!({}));
    for method in answered["methods"].as_array().expect("methods") {
        assert!(method["summary"].as_str().is_some_and(|text| text.len() > 10), "{method}");
    }
    for name in listed {
        // A method that is missing from the daemon says so; any other answer means it is there.
        if let Err(error) =
            daemon.call(name, if name == "shutdown" { json!([1]) } else { json!({"id": 0, "requestId": 0}) })
        {
            assert_ne!(error["data"]["code"], "method_not_found", "{name}");
        }
        if name == "exit" {
            daemon = Daemon::start();
        }
    }
}

#[test]
fn every_reference_of_the_documents_leads_somewhere() {
    for (document, prefix) in [(schema::openrpc(), "#/components/schemas/"), (schema::schema(), "#/$defs/")] {
        let mut references = Vec::new();
        collect(&document, &mut references);
        assert!(!references.is_empty());
        for reference in references {
            assert!(reference.starts_with(prefix), "{reference}");
            let pointer = reference.trim_start_matches('#');
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
    }
}

fn collect(value: &Value, references: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            references.extend(map.get("$ref").and_then(Value::as_str).map(str::to_owned));
            map.values().for_each(|value| collect(value, references));
        }
        Value::Array(items) => items.iter().for_each(|value| collect(value, references)),
        _ => {}
    }
}

/// Each code of `codes.rs` has an error in `errors.rs`, and the fields of each error are those of the schema.
#[test]
fn errors_are_what_the_schema_says() {
    let schema = schema::schema();
    let floor = Floor { system: 1, tools: 2, pins: 5, latest_turn: 3, window: 4 };
    let failures = [
        Failure::Parse(String::new()),
        Failure::InvalidRequest(String::new()),
        Failure::AlreadyInitialized,
        Failure::FrameTooLarge { limit: 1 },
        Failure::MethodNotFound(String::new()),
        Failure::params("a", "b"),
        Failure::Internal(String::new()),
        Failure::Cancelled,
        Failure::ContentModified { leaf: None },
        Failure::ContentModified { leaf: Some("e".into()) },
        Failure::Overloaded { retry_after_ms: 1 },
        Failure::no_session("s"),
        Failure::Busy { operation_id: "o".into(), kind: "compaction" },
        Failure::Locked { pid: None, what: String::new() },
        Failure::Locked { pid: Some(1), what: String::new() },
        Failure::NothingToCompact(Nothing::AlreadyCompacted),
        Failure::NothingToCompact(Nothing::TooShort),
        Failure::NothingToCompact(Nothing::BelowHalfThreshold),
        Failure::ContextOverflow(floor),
        Failure::Provider {
            provider: Some("p".to_owned()),
            model: Some("m".to_owned()),
            status: None,
            retryable: true,
            what: String::new(),
        },
        Failure::Storage { path: String::new(), errno: None, what: String::new() },
        Failure::NotInitialized,
        Failure::UnsupportedProtocolVersion(9),
    ];
    let mut seen = BTreeSet::new();
    for failure in failures {
        let object = serde_json::to_value(failure.object()).expect("JSON");
        let problem = json_schema::problem(&schema, &schema["properties"]["error"], &object);
        assert_eq!(problem, None, "{object}");
        seen.insert(object["data"]["code"].as_str().expect("a code").to_owned());
    }
    assert_eq!(seen, CODES.iter().map(|(_, name)| (*name).to_owned()).collect(), "one of each");
}

/// schemars numbers two types of one name; a client author would have to guess which is which.
#[test]
fn every_type_has_a_name_of_its_own() {
    for name in schema::schema()["$defs"].as_object().expect("definitions").keys() {
        let numbered = name.ends_with(|char: char| char.is_ascii_digit());
        assert!(!numbered, "{name}: there are two types of this name; give one another by #[schemars(rename = …)]");
    }
}
