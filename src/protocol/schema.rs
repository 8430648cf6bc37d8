//! The protocol for programs, generated from the tables: `openrpc.json`, `schema.json`, `abridged.d.ts`, the settings and the
//! dialogues.

use super::{
    codes::ErrorObject, methods, notifications::notifications, requests::client_requests, settings_page, transcripts,
    typescript,
};
use crate::settings::Settings;
use schemars::{SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The files under `protocol/`: name and content.
#[must_use]
pub fn files() -> Vec<(String, String)> {
    let text = |value: &Value| format!("{value:#}\n");
    let schema = schema();
    let mut files = vec![
        ("openrpc.json".to_owned(), text(&openrpc())),
        ("schema.json".to_owned(), text(&schema)),
        ("abridged.d.ts".to_owned(), typescript::declarations(&schema)),
        ("SETTINGS.md".to_owned(), settings_page::page()),
    ];
    files.extend(transcripts::ALL.iter().map(|it| (format!("transcripts/{}.jsonl", it.name), it.text.to_owned())));
    files
}

/// The OpenRPC document, which is the result of `rpc.discover`.
#[must_use]
pub fn openrpc() -> Value {
    let shapes = Shapes::collect("#/components/schemas/");
    let listed: Vec<Value> = shapes
        .methods
        .iter()
        .map(|method| {
            let mut entry = json!({
                "name": method.name,
                "summary": method.doc,
                "paramStructure": "by-name",
                "params": params_of(shapes.resolved(&method.params)),
            });
            if let Some(answer) = &method.answer {
                entry["result"] = json!({ "name": "result", "schema": answer });
            }
            entry
        })
        .collect();
    let told: Vec<Value> = shapes
        .told
        .iter()
        .map(|(name, doc, params)| json!({ "name": name, "summary": doc, "params": params }))
        .collect();
    let asked: Vec<Value> = shapes
        .asked
        .iter()
        .map(|(name, doc, params, answer)| json!({ "name": name, "summary": doc, "params": params, "result": answer }))
        .collect();
    json!({
        "openrpc": "1.3.2",
        "info": { "title": "abridged", "version": env!("CARGO_PKG_VERSION"), "license": { "name": "MIT OR Apache-2.0" } },
        "methods": listed,
        "x-notifications": told,
        "x-client-requests": asked,
        "components": { "schemas": shapes.definitions },
    })
}

/// JSON Schema 2020-12 of every type on the wire, and of the settings file.
#[must_use]
pub fn schema() -> Value {
    let shapes = Shapes::collect("#/$defs/");
    let mut properties = Map::new();
    for method in shapes.methods {
        let mut both = json!({ "params": method.params });
        if let Some(answer) = method.answer {
            both["result"] = answer;
        }
        properties.insert(method.name.to_owned(), json!({ "type": "object", "properties": both }));
    }
    for (name, _, params, answer) in shapes.asked {
        let both = json!({ "type": "object", "properties": { "params": params, "result": answer } });
        properties.insert(name.to_owned(), both);
    }
    for (name, _, params) in shapes.told {
        properties.insert(name.to_owned(), json!({ "type": "object", "properties": { "params": params } }));
    }
    properties.insert("error".to_owned(), shapes.error);
    properties.insert("settings.json".to_owned(), shapes.settings);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "abridged: methods, events, errors and settings by name",
        "type": "object",
        "properties": properties,
        "$defs": shapes.definitions,
    })
}

struct MethodShape {
    name: &'static str,
    doc: &'static str,
    params: Value,
    answer: Option<Value>,
}

/// The schemas of all types, and the definitions that they refer to.
struct Shapes {
    methods: Vec<MethodShape>,
    /// Notifications: name, description, params.
    told: Vec<(&'static str, &'static str, Value)>,
    /// Requests to the client: name, description, params, result.
    asked: Vec<(&'static str, &'static str, Value, Value)>,
    error: Value,
    settings: Value,
    /// Definitions in the order of their first use.
    definitions: Map<String, Value>,
}

impl Shapes {
    /// A type that is read may leave out fields that are always written. Each direction has its own generator. A type
    /// that differs
    /// between the two is called `…Input` where it is read.
    fn collect(prefix: &str) -> Self {
        let place = format!("/{}", prefix.trim_start_matches("#/").trim_end_matches('/'));
        let generator =
            |settings: SchemaSettings| settings.with(|it| it.definitions_path = place.clone().into()).into_generator();
        let mut read = generator(SchemaSettings::draft2020_12().for_deserialize());
        let mut written = generator(SchemaSettings::draft2020_12().for_serialize());
        let listed: Vec<_> = methods()
            .into_iter()
            .map(|method| MethodShape {
                name: method.name,
                doc: method.doc.trim(),
                params: (method.params)(&mut read).to_value(),
                answer: (!method.notification).then(|| (method.answer)(&mut written).to_value()),
            })
            .collect();
        let told = notifications()
            .into_iter()
            .map(|it| (it.name, it.doc.trim(), (it.params)(&mut written).to_value()))
            .collect();
        let asked = client_requests()
            .into_iter()
            .map(|it| {
                let params = (it.params)(&mut written).to_value();
                (it.name, it.doc.trim(), params, (it.answer)(&mut read).to_value())
            })
            .collect();
        let error = written.subschema_for::<ErrorObject>().to_value();
        let settings = read.subschema_for::<Settings>().to_value();
        let mut shapes = Self { methods: listed, told, asked, error, settings, definitions: Map::new() };
        shapes.define(prefix, definitions(&mut read), definitions(&mut written));
        shapes
    }

    fn define(&mut self, prefix: &str, read: Map<String, Value>, written: Map<String, Value>) {
        let twice = both_and_not_the_same(prefix, &read, &written);
        let rename = |value: &mut Value| {
            each_reference(value, &mut |reference| {
                let name = reference.trim_start_matches(prefix);
                if twice.contains(name) {
                    *reference = format!("{prefix}{name}Input");
                }
            });
        };
        self.methods.iter_mut().for_each(|method| rename(&mut method.params));
        self.asked.iter_mut().for_each(|(.., answer)| rename(answer));
        rename(&mut self.settings);
        let mut all = written;
        for (name, mut definition) in read {
            rename(&mut definition);
            let name = if twice.contains(&name) { format!("{name}Input") } else { name };
            all.entry(name).or_insert(definition);
        }
        let mut ordered = Map::new();
        let methods = self.methods.iter().flat_map(|method| std::iter::once(&method.params).chain(&method.answer));
        let told = self.told.iter().map(|(_, _, params)| params);
        let asked = self.asked.iter().flat_map(|(_, _, params, answer)| [params, answer]);
        for value in methods.chain(told).chain(asked).chain([&self.error, &self.settings]) {
            follow(prefix, value, &all, &mut ordered);
        }
        self.definitions = ordered;
    }

    /// The schema that a reference names.
    fn resolved<'a>(&'a self, schema: &'a Value) -> &'a Value {
        let name = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next());
        name.and_then(|name| self.definitions.get(name)).unwrap_or(schema)
    }
}

fn definitions(generator: &mut SchemaGenerator) -> Map<String, Value> {
    generator.take_definitions(true).into_iter().collect()
}

/// Names whose schemas differ between reading and writing, also by a type that they refer to.
fn both_and_not_the_same(prefix: &str, read: &Map<String, Value>, written: &Map<String, Value>) -> BTreeSet<String> {
    let in_both = |name: &String| written.contains_key(name);
    let mut twice: BTreeSet<String> = read
        .iter()
        .filter(|(name, it)| written.get(*name).is_some_and(|other| other != *it))
        .map(|it| it.0.clone())
        .collect();
    loop {
        let before = twice.len();
        for (name, definition) in read.iter().filter(|(name, _)| in_both(name)) {
            let mut refers = false;
            let mut definition = definition.clone();
            each_reference(&mut definition, &mut |it| refers |= twice.contains(it.trim_start_matches(prefix)));
            if refers {
                twice.insert(name.clone());
            }
        }
        if twice.len() == before {
            return twice;
        }
    }
}

fn each_reference(value: &mut Value, visit: &mut impl FnMut(&mut String)) {
    match value {
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                match value {
                    Value::String(reference) if key == "$ref" => visit(reference),
                    value => each_reference(value, visit),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| each_reference(item, visit)),
        _ => {}
    }
}

/// Moves the definitions that `value` needs into `ordered`, a definition before those that it needs.
fn follow(prefix: &str, value: &Value, all: &Map<String, Value>, ordered: &mut Map<String, Value>) {
    let mut names = Vec::new();
    each_reference(&mut value.clone(), &mut |it| names.push(it.trim_start_matches(prefix).to_owned()));
    for name in names {
        if let Some(definition) = all.get(&name)
            && !ordered.contains_key(&name)
        {
            ordered.insert(name, definition.clone());
            follow(prefix, definition, all, ordered);
        }
    }
}

/// OpenRPC lists each param by itself.
fn params_of(schema: &Value) -> Vec<Value> {
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties
        .map(|(name, schema)| json!({ "name": name, "required": required.contains(&name.as_str()), "schema": schema }))
        .collect()
}
