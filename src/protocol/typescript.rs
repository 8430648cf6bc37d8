//! The protocol in TypeScript: `abridged.d.ts`, generated from `schema.json`.
//!
//! The generator knows the keywords that the types of this crate use. It panics on any other keyword, because a wrong
//! declaration is worse than none.

use super::{codes::CODES, methods, notifications::notifications, requests::client_requests};
use serde_json::{Map, Value};

/// Longest line, in characters.
const WIDTH: usize = 120;

/// Keywords without an effect on a type.
const SILENT: [&str; 13] = [
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
    "x-project",
    "x-outOfRange",
    // A type is open anyway.
    "unevaluatedProperties",
];

/// Header of the file.
const HEAD: &str = "\
// The protocol of abridged, version 1. Made from its types by `abridged schema --out`; do not edit.
//
// Unknown fields may come with every object, and unknown values of a union from a newer daemon: be lenient.
// `_meta` is free on all params, results and events.
";

/// Footer of the file: the frames.
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
  [M in keyof ServerNotifications]: {
    jsonrpc: "2.0";
    id?: undefined;
    method: M;
    params: ServerNotifications[M]["params"];
  };
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
    let params = |name: &str| format!("params: {}", text_of(&property(name)["params"], 2));
    let requests = methods.iter().filter(|method| !method.notification).map(|method| {
        let result = text_of(&property(method.name)["result"], 2);
        (method.name, method.doc, format!("{{ {}; result: {result} }}", params(method.name)))
    });
    map("What a client may ask for: method, params, result.", "Methods", requests.collect());
    let told = methods.iter().filter(|method| method.notification);
    let told = told.map(|it| (it.name, it.doc, format!("{{ {} }}", params(it.name))));
    map("What a client may say without being answered.", "ClientNotifications", told.collect());
    let notifications = notifications();
    let told = notifications.iter().map(|it| (it.name, it.doc, format!("{{ {} }}", params(it.name))));
    map("What the daemon says unasked.", "ServerNotifications", told.collect());
    let asked = client_requests();
    let asked = asked.iter().map(|it| {
        let result = text_of(&property(it.name)["result"], 2);
        (it.name, it.doc, format!("{{ {}; result: {result} }}", params(it.name)))
    });
    map("What the daemon asks of the client: method, params, result.", "ClientRequests", asked.collect());
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

/// One definition with its name.
fn declare(name: &str, schema: &Value, out: &mut String) {
    comment(doc_of(schema), 0, out);
    let plain_object = schema["properties"].is_object() && parts(schema).is_none();
    let text = text_of(schema, 0);
    if plain_object {
        out.push_str(&format!("export interface {name} {text}\n"));
    } else if text.starts_with('\n') {
        out.push_str(&format!("export type {name} ={text};\n"));
    } else {
        out.push_str(&format!("export type {name} = {text};\n"));
    }
}

/// A TypeScript type.
struct Type {
    /// Text of the type. A type of several lines begins with a newline or is an object.
    text: String,
    /// Whether the type is a union or an intersection, which needs brackets inside of another type.
    compound: bool,
}

impl Type {
    fn one(text: impl Into<String>) -> Self {
        Self { text: text.into(), compound: false }
    }

    fn as_part(&self) -> String {
        if self.compound { format!("({})", self.text) } else { self.text.clone() }
    }
}

/// Text of a schema's type.
fn text_of(schema: &Value, indent: usize) -> String {
    type_of(schema, indent).text
}

fn type_of(schema: &Value, indent: usize) -> Type {
    let Value::Object(map) = schema else {
        assert!(schema.as_bool() != Some(false), "nothing on the wire is forbidden");
        return Type::one("unknown");
    };
    let mut all = Vec::new();
    for (keyword, value) in map {
        match keyword.as_str() {
            "$ref" => all.extend(value.as_str().and_then(|path| path.rsplit('/').next()).map(Type::one)),
            "const" => all.push(Type::one(value.to_string())),
            "enum" => all.push(one_of(list(value).iter().map(|value| Type::one(value.to_string())).collect())),
            "oneOf" | "anyOf" => all.push(union(value, indent)),
            "allOf" => all.extend(list(value).iter().map(|part| type_of(part, indent))),
            "type" if map.contains_key("const") || map.contains_key("enum") => {}
            "type" => all.push(by_name(value, map, indent)),
            "properties" if map.contains_key("type") => {}
            "properties" => all.push(Type::one(object(map, indent))),
            // Read together with `type`.
            "required" | "items" | "prefixItems" | "additionalProperties" => {}
            keyword => assert!(SILENT.contains(&keyword), "there is no rule for `{keyword}` in {schema}"),
        }
    }
    if all.len() > 1 {
        // An object without keywords of its own adds nothing to the types beside it.
        all.retain(|part| part.text != "Record<string, unknown>");
    }
    match all.len() {
        0 => Type::one("unknown"),
        1 => all.remove(0),
        _ => Type { text: all.iter().map(Type::as_part).collect::<Vec<_>>().join(" & "), compound: true },
    }
}

/// The types of the keyword `type`, which holds one name or several.
fn by_name(names: &Value, map: &Map<String, Value>, indent: usize) -> Type {
    let names = names.as_array().map_or_else(|| vec![names], |names| names.iter().collect());
    let types = names.into_iter().map(|name| match name.as_str() {
        Some("integer" | "number") => Type::one("number"),
        Some(name @ ("string" | "boolean" | "null")) => Type::one(name),
        Some("array") => Type::one(array(map, indent)),
        Some("object") => Type::one(object(map, indent)),
        _ => panic!("there is no type for {name}"),
    });
    one_of(types.collect())
}

fn array(map: &Map<String, Value>, indent: usize) -> String {
    if let Some(items) = map.get("prefixItems") {
        let items: Vec<String> = list(items).iter().map(|item| text_of(item, indent)).collect();
        return format!("[{}]", items.join(", "));
    }
    let item = map.get("items").map_or_else(|| Type::one("unknown"), |items| type_of(items, indent));
    format!("{}[]", item.as_part())
}

fn object(map: &Map<String, Value>, indent: usize) -> String {
    let others = map.get("additionalProperties");
    let Some(properties) = map.get("properties").and_then(Value::as_object) else {
        let value = others.map_or_else(|| "unknown".to_owned(), |others| text_of(others, indent));
        return format!("Record<string, {value}>");
    };
    let required = map.get("required").map(list).unwrap_or_default();
    let inner = indent + 2;
    let mut out = "{\n".to_owned();
    for (name, schema) in properties {
        comment(doc_of(schema), inner, &mut out);
        let mark = if required.iter().any(|it| it == name.as_str()) { "" } else { "?" };
        let name = if is_identifier(name) { name.clone() } else { format!("{name:?}") };
        let text = text_of(schema, inner);
        let text = if text.starts_with('\n') { text } else { format!(" {text}") };
        out.push_str(&format!("{:inner$}{name}{mark}:{text};\n", ""));
    }
    if let Some(others) = others {
        out.push_str(&format!("{:inner$}[key: string]: {};\n", "", text_of(others, inner)));
    }
    out.push_str(&format!("{:indent$}}}", ""));
    out
}

/// A union. Each variant with a description has its own line. A variant for any other value is left out, because the compiler
/// would not narrow the union by its literals.
fn union(variants: &Value, indent: usize) -> Type {
    let variants: Vec<&Value> = list(variants).iter().filter(|variant| variant["x-open"] != true).collect();
    let inner = indent + 2;
    let object = |schema: &Value| schema["properties"].is_object();
    let lines = variants.len() > 1 && variants.iter().any(|it| object(it) || !doc_of(it).is_empty());
    if !lines {
        let line = one_of(variants.iter().map(|variant| type_of(variant, indent)).collect());
        if line.text.len() + indent < WIDTH || line.text.contains('\n') {
            return line;
        }
    }
    let mut text = String::new();
    for variant in variants {
        text.push('\n');
        comment(doc_of(variant), inner, &mut text);
        let deeper = if object(variant) { inner + 2 } else { inner };
        text.push_str(&format!("{:inner$}| {}", "", text_of(variant, deeper)));
    }
    Type { text, compound: true }
}

/// A union on one line, without duplicates, null last.
fn one_of(types: Vec<Type>) -> Type {
    let mut texts: Vec<String> = Vec::new();
    for text in types.into_iter().map(|it| it.text) {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts.sort_by_key(|it| it == "null");
    Type { compound: texts.len() > 1, text: texts.join(" | ") }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn parts(schema: &Value) -> Option<&str> {
    ["oneOf", "anyOf", "allOf", "$ref"].into_iter().find(|keyword| schema.get(keyword).is_some())
}

fn doc_of(schema: &Value) -> &str {
    schema["description"].as_str().unwrap_or_default()
}

/// A description above its declaration.
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn declared(schema: &Value) -> String {
        let mut out = String::new();
        declare("T", schema, &mut out);
        out
    }

    #[test]
    fn each_keyword_has_its_type() {
        let reference = json!({ "$ref": "#/$defs/Other", "description": "d" });
        for (schema, expected) in [
            (json!({}), "unknown"),
            (json!(true), "unknown"),
            (json!({ "type": "integer", "format": "uint64", "minimum": 0 }), "number"),
            (json!({ "type": ["null", "string"] }), "string | null"),
            (json!({ "type": "string", "const": "a" }), "\"a\""),
            (json!({ "type": "string", "enum": ["a", "b"] }), "\"a\" | \"b\""),
            (reference.clone(), "Other"),
            (json!({ "anyOf": [{ "type": "null" }, { "$ref": "#/$defs/Other" }] }), "Other | null"),
            (json!({ "type": "array", "items": reference.clone() }), "Other[]"),
            (json!({ "type": "array", "items": { "type": ["integer", "null"] } }), "(number | null)[]"),
            (
                json!({ "type": "array", "prefixItems": [{ "type": "string" }, { "type": "number" }] }),
                "[string, number]",
            ),
            (json!({ "type": "object" }), "Record<string, unknown>"),
            (json!({ "type": "object", "additionalProperties": reference.clone() }), "Record<string, Other>"),
            (json!({ "allOf": [reference, { "$ref": "#/$defs/More" }] }), "Other & More"),
            (json!({ "type": "object", "oneOf": [{ "$ref": "#/$defs/A" }, { "$ref": "#/$defs/B" }] }), "A | B"),
            (json!({ "anyOf": [{ "$ref": "#/$defs/A" }, { "$ref": "#/$defs/Any", "x-open": true }] }), "A"),
        ] {
            assert_eq!(declared(&schema), format!("{}export type T = {expected};\n", doc(&schema)), "{schema}");
        }
    }

    fn doc(schema: &Value) -> String {
        let mut out = String::new();
        comment(doc_of(schema), 0, &mut out);
        out
    }

    #[test]
    fn objects_and_what_is_told_apart_by_a_tag_are_readable() {
        let schema = json!({
            "type": "object",
            "description": "A thing.",
            "properties": { "id": { "type": "string" }, "odd-name": { "type": ["number", "null"], "description": "Odd. */" } },
            "required": ["id"],
            "additionalProperties": true,
        });
        let expected = "/** A thing. */\nexport interface T {\n  id: string;\n  /** Odd. *\\/ */\n  \"odd-name\"?: number | null;\n  [key: string]: unknown;\n}\n";
        assert_eq!(declared(&schema), expected);
        let tagged = json!({ "oneOf": [
            { "type": "object", "properties": { "type": { "const": "a" } }, "required": ["type"], "description": "One." },
            { "type": "object", "properties": { "type": { "const": "b" } }, "required": ["type"] },
        ] });
        let expected =
            "export type T =\n  /** One. */\n  | {\n      type: \"a\";\n    }\n  | {\n      type: \"b\";\n    };\n";
        assert_eq!(declared(&tagged), expected);
        let long = |letter: &str| json!({ "$ref": format!("#/$defs/{}", letter.repeat(60)) });
        let expected = format!("export type T =\n  | {}\n  | {};\n", "A".repeat(60), "B".repeat(60));
        assert_eq!(declared(&json!({ "anyOf": [long("A"), long("B")] })), expected, "a member a line");
        let both = json!({
            "type": "object",
            "properties": { "id": { "type": "string" } },
            "required": ["id"],
            "anyOf": [{ "$ref": "#/$defs/A" }, { "type": "null" }],
        });
        assert_eq!(declared(&both), "export type T = {\n  id: string;\n} & (A | null);\n");
    }

    #[test]
    #[should_panic(expected = "no rule for `patternProperties`")]
    fn what_has_no_rule_is_not_passed_over() {
        type_of(&json!({ "patternProperties": {} }), 0);
    }
}
