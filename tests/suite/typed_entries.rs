//! The entries that the daemon and pi write are the typed entries of the schema, with no field that the schema does not name.

use crate::{
    json_schema,
    support::{Daemon, assistant, calls, model, result, text_of, user},
};
use abridged::protocol::schema;
use serde_json::{Map, Value, json};
use std::{collections::BTreeSet, fs, path::Path};

/// The definitions of the protocol by the `type` of an entry. A field without a name is a problem.
struct Types {
    schema: Value,
    entries: Map<String, Value>,
}

impl Types {
    fn new() -> Self {
        let schema = schema::schema();
        let members = schema["$defs"]["Entry"]["anyOf"].as_array().expect("a union");
        let mut entries = Map::new();
        for member in members {
            let name = member["$ref"].as_str().and_then(|path| path.rsplit('/').next()).expect("a reference");
            let mut definition = schema["$defs"][name].clone();
            if let Some(name) = definition["properties"]["type"]["const"].as_str().map(str::to_owned) {
                definition.as_object_mut().expect("an object").remove("unevaluatedProperties");
                entries.insert(name, definition);
            }
        }
        Self { schema, entries }
    }

    fn problem(&self, entry: &Value) -> Option<String> {
        let name = entry["type"].as_str().expect("a type");
        let Some(definition) = self.entries.get(name) else { return Some(format!("there is no entry {name}")) };
        json_schema::problem(&self.schema, definition, entry)
    }

    fn hold(&self, entry: &Value, whence: &str) {
        assert_eq!(self.problem(entry), None, "{whence}: {entry:.2000}");
    }
}

/// The values inside of a value that are entries.
fn entries<'a>(value: &'a Value, found: &mut Vec<&'a Value>) {
    let is_entry = ["type", "id", "parentId", "timestamp"].iter().all(|field| value.get(field).is_some());
    match value {
        // A node of `session/tree` has no message.
        Value::Object(fields) if is_entry && !fields.contains_key("preview") => found.push(value),
        Value::Object(fields) => fields.values().for_each(|value| entries(value, found)),
        Value::Array(items) => items.iter().for_each(|value| entries(value, found)),
        _ => {}
    }
}

#[test]
fn entries_of_pi_and_of_the_dialogues_are_typed() {
    let types = Types::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut count = 0;
    for folder in ["protocol/transcripts", "tests/golden/pi"] {
        let files = fs::read_dir(root.join(folder)).expect("a folder").map(|file| file.expect("a file").path());
        for file in files.filter(|file| file.extension().is_some_and(|name| name == "jsonl")) {
            for line in fs::read_to_string(&file).expect("a text").lines() {
                let value: Value = serde_json::from_str(line).expect("JSON");
                // Lines that stand in a file before the daemon looks are sometimes broken on purpose.
                if value["direction"] == "setup" {
                    continue;
                }
                let mut found = Vec::new();
                entries(&value, &mut found);
                count += found.len();
                found.iter().for_each(|entry| types.hold(entry, &file.display().to_string()));
            }
        }
    }
    assert!(count > 100, "{count} entries");
}

#[test]
fn entries_that_the_daemon_writes_are_typed() {
    let types = Types::new();
    let mut daemon = Daemon::start();
    let settings = json!({"tokens": {"estimator": "chars"}, "models": [model("m", 32_000), model("n", 32_000)],
        "prune": {"protectTokens": 0, "minimumSavings": 0}});
    let session = daemon.new_session(json!({"cwd": "/project", "model": "p/m", "settings": settings}));
    let of = |more: Value| {
        let mut params = json!({"sessionId": session});
        params.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        params
    };
    let image = json!({"role": "user", "content": [{"type": "image", "data": "iVBORw0KGgo="}, {"type": "text", "text": "See."}]});
    let thought = json!({"role": "assistant", "content": [
        {"type": "thinking", "thinking": "Hm.", "thinkingSignature": "S"}, {"type": "text", "text": "Yes."}]});
    let others = [
        json!({"role": "bashExecution", "command": "ls"}),
        json!({"role": "developer", "content": "Be brief."}),
        json!({"role": "custom", "content": "From an extension.", "customType": "x"}),
    ];
    daemon.append(&session, &[image, thought]);
    daemon.append(&session, &others);
    daemon.append(&session, &[calls(&["c1"]), result("c1", &text_of(4_000, "result")), assistant("Done.")]);
    let first = daemon.append(&session, &[user(&text_of(2_000, "first")), assistant("First.")])["entryIds"][0].clone();
    daemon.ok("session/pin", of(json!({"text": "Never push."})));
    daemon.ok("session/pin", of(json!({"entryId": first})));
    daemon.ok("session/label", of(json!({"targetEntryId": first, "label": "here"})));
    daemon.ok("session/configure", of(json!({"title": "A title", "model": "p/n", "thinkingLevel": "low"})));
    daemon.append(&session, &[user(&text_of(2_000, "second")), assistant("Second.")]);
    for id in ["c2", "c3"] {
        let (mut call, mut shown) = (calls(&[id]), result(id, &text_of(3_000, id)));
        (call["content"][0]["name"], shown["toolName"]) = (json!("bash"), json!("bash"));
        daemon.append(&session, &[call, shown, assistant("Read.")]);
    }
    let prune = json!({"protectTokens": 1_000, "minimumSavings": 1});
    assert_ne!(daemon.ok("session/prune", of(prune))["entryIds"], json!([]));
    let compact = json!({"wait": true, "method": "extractive", "keepRecentTokens": 500});
    assert_eq!(daemon.ok("session/compact", of(compact))["outcome"], "completed");
    daemon.ok("session/undo_compaction", of(json!({})));
    daemon.append(&session, &[user("third"), assistant("Third.")]);
    let left = json!({"targetEntryId": first, "summarize": true, "wait": true});
    assert_eq!(daemon.ok("session/navigate", of(left))["outcome"], "completed");
    daemon.append(&session, &[user("fourth"), assistant("Fourth.")]);
    daemon.ok("session/reset", of(json!({})));
    let all = daemon.ok("session/entries", of(json!({"branch": "all"})))["entries"].clone();
    let all = all.as_array().expect("entries");
    all.iter().for_each(|entry| types.hold(entry, "the daemon"));
    let written: BTreeSet<&str> = all.iter().filter_map(|entry| entry["type"].as_str()).collect();
    let expected = [
        "branch_summary",
        "compaction",
        "context_edit",
        "custom",
        "custom_message",
        "label",
        "message",
        "model_change",
        "reset_boundary",
        "session_info",
        "thinking_level_change",
    ];
    assert_eq!(written, BTreeSet::from(expected));
}

#[test]
fn an_entry_that_is_not_typed_is_found() {
    let types = Types::new();
    let label = json!({"type": "label", "id": "a", "parentId": null, "timestamp": "t", "targetId": "b", "label": "c"});
    assert_eq!(types.problem(&label), None);
    for (field, value) in
        [("label", json!(7)), ("targetId", json!(null)), ("stranger", json!(1)), ("type", json!("labl"))]
    {
        let mut wrong = label.clone();
        wrong[field] = value;
        assert!(types.problem(&wrong).is_some(), "{wrong}");
    }
}
