//! The committed protocol files are what the code says, and the daemon serves the same.

use crate::support::Daemon;
use abridged::protocol::{methods, schema};
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
