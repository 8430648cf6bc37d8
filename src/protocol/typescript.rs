//! The protocol in TypeScript: `abridged.d.ts`, made from `schema.json`.
//!
//! It knows the keywords that our types use and says so loudly when there is another one: a type that is written down
//! wrong is worse than none.

use super::{codes::CODES, methods, notifications::notifications};
use serde_json::{Map, Value};

/// Lines are not longer than this.
const WIDTH: usize = 120;

/// Keywords that make no difference to a type.
const SILENT: [&str; 10] = [
    "description",
    "default",
    "format",
    "minimum",
    "maximum",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minLength",
];

/// What stands before everything.
const HEAD: &str = "\
// The protocol of abridged, version 1. Made from its types by `abridged schema --out`; do not edit.
//
// Unknown fields may come with every object, and unknown values of a union from a newer daemon: be lenient.
// `_meta` is free on all params, results and events.
";

/// What stands behind everything: the frames.
const FRAMES: &str = r#"
/** The event of one type: `EventOf<"compaction_end">`. */
export type EventOf<T extends SessionEvent["type"]> = Extract<SessionEvent, { type: T }>;

/** What `error.data.code` may be. */
export type ErrorCode = ErrorData["code"];

/** The `error.data` of one code: `ErrorOf<"busy">`. */
export type ErrorOf<C extends ErrorCode> = Extract<ErrorData, { code: C }>;

/** An id of a request; it is echoed with its type. */
export type RequestId = string | number;

/** A request. */
export interface Request<M extends keyof Methods = keyof Methods> {
  jsonrpc?: "2.0";
  id: RequestId;
  method: M;
  params: Methods[M]["params"];
}

/** A notification to the daemon. */
export interface ClientNotification<M extends keyof ClientNotifications = keyof ClientNotifications> {
  jsonrpc?: "2.0";
  method: M;
  params: ClientNotifications[M]["params"];
}

/** The answer to a request: told from the others by its `id`, good from bad by `error`. */
export type Answer<M extends keyof Methods = keyof Methods> =
  | { jsonrpc: "2.0"; id: RequestId; result: Methods[M]["result"]; error?: undefined }
  | { jsonrpc: "2.0"; id: RequestId | null; error: ErrorObject; result?: undefined };

/** What the daemon sends unasked: told apart by `method`. */
export type ServerNotification = {
  [M in keyof ServerNotifications]: { jsonrpc: "2.0"; id?: undefined; method: M; params: ServerNotifications[M]["params"] };
}[keyof ServerNotifications];

/** Any line of the daemon's; the answers to a batch come as an array. */
export type ServerFrame = Answer | Answer[] | ServerNotification;
"#;

/// `abridged.d.ts` of `schema.json`.
///
/// # Panics
/// When a type uses a keyword that has no rule here.
#[must_use]
pub fn declarations(schema: &Value) -> String {
    let mut out = HEAD.to_owned();
    let property = |name: &str| &schema["properties"][name]["properties"];
    let mut map = |doc: &str, head: &str, members: Vec<(&str, &str, String)>| {
        out.push('\n');
        comment(doc, 0, &mut out);
        out.push_str(&format!("export interface {head} {{\n"));
        for (name, doc, text) in members {
            comment(doc, 2, &mut out);
            out.push_str(&format!("  {name:?}: {text};\n"));
        }
        out.push_str("}\n");
    };
    let methods = methods();
    let params = |name: &str| format!("params: {}", type_of(&property(name)["params"], 2));
    let requests = methods.iter().filter(|method| !method.notification).map(|method| {
        let result = type_of(&property(method.name)["result"], 2);
        (method.name, method.doc, format!("{{ {}; result: {result} }}", params(method.name)))
    });
    map("What a client may ask for: method, params, result.", "Methods", requests.collect());
    let told = methods.iter().filter(|method| method.notification);
    let told = told.map(|it| (it.name, it.doc, format!("{{ {} }}", params(it.name))));
    map("What a client may say without being answered.", "ClientNotifications", told.collect());
    let notifications = notifications();
    let told = notifications.iter().map(|it| (it.name, it.doc, format!("{{ {} }}", params(it.name))));
    map("What the daemon says unasked.", "ServerNotifications", told.collect());
    let numbers = CODES.iter().map(|(number, name)| (*name, "", number.to_string()));
    map("The number in `error.code` of each `error.data.code`.", "ErrorNumbers", numbers.collect());
    out.push_str("\n/** Every notification, whoever sends it. */\n");
    out.push_str("export interface Notifications extends ClientNotifications, ServerNotifications {}\n");

    for (name, definition) in schema["$defs"].as_object().into_iter().flatten() {
        out.push('\n');
        declare(name, definition, &mut out);
    }
    out.push_str(FRAMES);
    out
}

/// One definition, under its name.
fn declare(name: &str, schema: &Value, out: &mut String) {
    comment(doc_of(schema), 0, out);
    let plain_object = schema["properties"].is_object() && parts(schema).is_none();
    let text = type_of(schema, 0);
    if plain_object {
        out.push_str(&format!("export interface {name} {text}\n"));
    } else if text.starts_with('\n') {
        out.push_str(&format!("export type {name} ={text};\n"));
    } else {
        out.push_str(&format!("export type {name} = {text};\n"));
    }
}

/// A schema as a type. One that takes several lines begins with a newline, or is an object.
fn type_of(schema: &Value, indent: usize) -> String {
    let Value::Object(map) = schema else {
        assert!(schema.as_bool() != Some(false), "nothing on the wire is forbidden");
        return "unknown".to_owned();
    };
    let mut all = Vec::new();
    for (keyword, value) in map {
        match keyword.as_str() {
            "$ref" => all.extend(value.as_str().and_then(|path| path.rsplit('/').next()).map(str::to_owned)),
            "const" => all.push(value.to_string()),
            "enum" => all.push(joined(value.as_array().into_iter().flatten().map(Value::to_string).collect(), " | ")),
            "oneOf" | "anyOf" => all.push(union(value, indent)),
            "allOf" => all.extend(value.as_array().into_iter().flatten().map(|part| type_of(part, indent))),
            "type" if map.contains_key("const") || map.contains_key("enum") => {}
            "type" => all.push(by_name(value, map, indent)),
            "properties" if map.contains_key("type") => {}
            "properties" => all.push(object(map, indent)),
            // Read together with `type`.
            "required" | "items" | "prefixItems" | "additionalProperties" => {}
            keyword => assert!(SILENT.contains(&keyword), "there is no rule for `{keyword}` in {schema}"),
        }
    }
    match all.len() {
        0 => "unknown".to_owned(),
        1 => all.remove(0),
        _ => {
            // An object that says nothing of its own adds nothing to what stands beside it.
            all.retain(|part| part != "Record<string, unknown>");
            joined(all, " & ")
        }
    }
}

/// The types of `type`, which is one name or several.
fn by_name(names: &Value, map: &Map<String, Value>, indent: usize) -> String {
    let names = names.as_array().map_or_else(|| vec![names], |names| names.iter().collect());
    let types = names.into_iter().map(|name| match name.as_str() {
        Some("integer" | "number") => "number".to_owned(),
        Some(name @ ("string" | "boolean" | "null")) => name.to_owned(),
        Some("array") => array(map, indent),
        Some("object") => object(map, indent),
        _ => panic!("there is no type for {name}"),
    });
    joined(types.collect(), " | ")
}

fn array(map: &Map<String, Value>, indent: usize) -> String {
    if let Some(items) = map.get("prefixItems").and_then(Value::as_array) {
        let items: Vec<String> = items.iter().map(|item| type_of(item, indent)).collect();
        return format!("[{}]", items.join(", "));
    }
    let item = map.get("items").map_or_else(|| "unknown".to_owned(), |items| type_of(items, indent));
    let simple = !item.contains(['|', '&']) || item.starts_with('{');
    if simple { format!("{item}[]") } else { format!("({item})[]") }
}

fn object(map: &Map<String, Value>, indent: usize) -> String {
    let properties = map.get("properties").and_then(Value::as_object);
    let others = map.get("additionalProperties");
    let Some(properties) = properties else {
        let value = others.map_or_else(|| "unknown".to_owned(), |others| type_of(others, indent));
        return format!("Record<string, {value}>");
    };
    let required: Vec<&str> =
        map.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let inner = indent + 2;
    let mut out = "{\n".to_owned();
    for (name, schema) in properties {
        comment(doc_of(schema), inner, &mut out);
        let mark = if required.contains(&name.as_str()) { "" } else { "?" };
        let name = if is_identifier(name) { name.clone() } else { format!("{name:?}") };
        let text = type_of(schema, inner);
        let text = if text.starts_with('\n') { text } else { format!(" {text}") };
        out.push_str(&format!("{:inner$}{name}{mark}:{text};\n", ""));
    }
    if let Some(others) = others {
        out.push_str(&format!("{:inner$}[key: string]: {};\n", "", type_of(others, inner)));
    }
    out.push_str(&format!("{:indent$}}}", ""));
    out
}

/// One of several. Each on a line of its own where there is something to say of it.
fn union(variants: &Value, indent: usize) -> String {
    let variants: Vec<&Value> = variants.as_array().into_iter().flatten().collect();
    let inner = indent + 2;
    let object = |schema: &Value| schema["properties"].is_object();
    let lines = variants.len() > 1 && variants.iter().any(|it| object(it) || !doc_of(it).is_empty());
    if !lines {
        return joined(variants.iter().map(|variant| type_of(variant, indent)).collect(), " | ");
    }
    let mut out = String::new();
    for variant in variants {
        out.push('\n');
        comment(doc_of(variant), inner, &mut out);
        let deeper = if object(variant) { inner + 2 } else { inner };
        out.push_str(&format!("{:inner$}| {}", "", type_of(variant, deeper)));
    }
    out
}

/// Joined, without doubles, null last.
fn joined(mut types: Vec<String>, with: &str) -> String {
    let mut seen = std::collections::BTreeSet::new();
    types.retain(|it| seen.insert(it.clone()));
    types.sort_by_key(|it| it == "null");
    types.join(with)
}

fn parts(schema: &Value) -> Option<&str> {
    ["oneOf", "anyOf", "allOf", "$ref"].into_iter().find(|keyword| schema.get(keyword).is_some())
}

fn doc_of(schema: &Value) -> &str {
    schema["description"].as_str().unwrap_or_default()
}

/// What is said of something, over it.
fn comment(doc: &str, indent: usize, out: &mut String) {
    let doc = doc.trim().replace("*/", "*\\/");
    if doc.is_empty() {
        return;
    }
    if !doc.contains('\n') && indent + doc.chars().count() + "/**  */".len() <= WIDTH {
        out.push_str(&format!("{:indent$}/** {doc} */\n", ""));
        return;
    }
    out.push_str(&format!("{:indent$}/**\n", ""));
    for paragraph in doc.lines() {
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            if indent + " * ".len() + line.chars().count() + 1 + word.chars().count() > WIDTH {
                out.push_str(&format!("{:indent$} *{line}\n", ""));
                line.clear();
            }
            line.push(' ');
            line.push_str(word);
        }
        out.push_str(&format!("{:indent$} *{line}\n", ""));
    }
    out.push_str(&format!("{:indent$} */\n", ""));
}

fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    let word = |char: char| char == '_' || char == '$' || char.is_ascii_alphabetic();
    chars.next().is_some_and(word) && chars.all(|char| word(char) || char.is_ascii_digit())
}
