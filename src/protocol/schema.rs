//! The protocol for machines: `openrpc.json` and `schema.json`, made from the table.

use super::{events, methods, types::Notice};
use crate::settings::{Settings, Sourced};
use schemars::{Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

/// The files under `protocol/`: name and content.
#[must_use]
pub fn files() -> Vec<(&'static str, String)> {
    let text = |value: &Value| format!("{value:#}\n");
    vec![("openrpc.json", text(&openrpc())), ("schema.json", text(&schema()))]
}

/// The OpenRPC document, as `rpc.discover` answers it.
#[must_use]
pub fn openrpc() -> Value {
    let mut generator = generator("#/components/schemas");
    let listed: Vec<Value> = methods()
        .iter()
        .map(|method| {
            let params = (method.params)(&mut generator);
            let mut entry = json!({
                "name": method.name,
                "summary": method.doc.trim(),
                "paramStructure": "by-name",
                "params": params_of(&resolved(&generator, params.to_value())),
            });
            if !method.notification {
                let schema = (method.answer)(&mut generator).to_value();
                entry["result"] = json!({ "name": "result", "schema": schema });
            }
            entry
        })
        .collect();
    let notifications: Vec<Value> = notifications()
        .into_iter()
        .map(|(name, summary, params)| {
            let params = params(&mut generator).to_value();
            json!({ "name": name, "summary": summary, "params": params })
        })
        .collect();
    json!({
        "openrpc": "1.3.2",
        "info": { "title": "abridged", "version": env!("CARGO_PKG_VERSION"), "license": { "name": "MIT OR Apache-2.0" } },
        "methods": listed,
        "x-notifications": notifications,
        "components": { "schemas": generator.take_definitions(true) },
    })
}

/// JSON Schema 2020-12 of every type on the wire, and of the settings file.
#[must_use]
pub fn schema() -> Value {
    let mut generator = generator("#/$defs");
    let mut properties = Map::new();
    for method in methods() {
        let params = (method.params)(&mut generator).to_value();
        let answer = (method.answer)(&mut generator).to_value();
        let both = if method.notification {
            json!({ "params": params })
        } else {
            json!({ "params": params, "result": answer })
        };
        properties.insert(method.name.to_owned(), json!({ "type": "object", "properties": both }));
    }
    for (name, _, params) in notifications() {
        let params = params(&mut generator).to_value();
        properties.insert(name.to_owned(), json!({ "type": "object", "properties": { "params": params } }));
    }
    let settings = generator.subschema_for::<Settings>().to_value();
    properties.insert("settings.json".to_owned(), settings);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "abridged: methods, events and settings by name",
        "type": "object",
        "properties": properties,
        "$defs": generator.take_definitions(true),
    })
}

type Params = fn(&mut SchemaGenerator) -> Schema;

/// What the daemon sends unasked: name, meaning and params.
fn notifications() -> [(&'static str, &'static str, Params); 3] {
    [
        ("session/event", "An event of a session.", SchemaGenerator::subschema_for::<events::Envelope>),
        (
            "settings_changed",
            "The settings that hold where no project and no session says otherwise are different now.",
            SchemaGenerator::subschema_for::<Sourced>,
        ),
        (
            "notice",
            "Something a person may want to know that is about no session.",
            SchemaGenerator::subschema_for::<Notice>,
        ),
    ]
}

fn generator(definitions: &str) -> SchemaGenerator {
    SchemaSettings::draft2020_12()
        .with(|settings| settings.definitions_path = definitions.to_owned().into())
        .into_generator()
}

/// The schema a reference points to.
fn resolved(generator: &SchemaGenerator, schema: Value) -> Value {
    let name = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next());
    match name.and_then(|name| generator.definitions().get(name)) {
        Some(definition) => definition.clone(),
        None => schema,
    }
}

/// OpenRPC wants each param by itself.
fn params_of(schema: &Value) -> Vec<Value> {
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties
        .map(|(name, schema)| json!({ "name": name, "required": required.contains(&name.as_str()), "schema": schema }))
        .collect()
}
