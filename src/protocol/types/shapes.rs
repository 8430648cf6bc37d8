//! Schemas of the values that are passed through byte for byte: pi's messages and entries. `message.rs` and `entry.rs`
//! read them. Fields that are not listed here are kept.

mod blocks;
mod entries;
mod messages;

pub(super) use blocks::details;
pub(super) use entries::entry;
pub(super) use messages::message;
pub use {
    blocks::{Block, CallArguments, PromptBlock, ToolDefinition},
    messages::AssistantMessage,
};

use super::Message;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

/// Mark of a member of a union for the values that this version does not know. TypeScript narrows a union by its literals
/// only without it.
pub(super) const OPEN: &str = "x-open";

/// A type for the schema alone. Its values are JSON texts of others.
macro_rules! shape {
    ($($(#[doc = $doc:literal])+ $name:ident = $schema:expr;)+) => {
        $(
            $(#[doc = $doc])+
            #[derive(Debug, Clone, Copy)]
            pub struct $name;

            impl schemars::JsonSchema for $name {
                fn schema_name() -> std::borrow::Cow<'static, str> {
                    stringify!($name).into()
                }

                fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                    let build: fn(&mut schemars::SchemaGenerator) -> serde_json::Value = $schema;
                    let mut schema = build(generator);
                    schema["description"] = concat!($($doc),+).trim().into();
                    schema.try_into().expect("a schema is an object")
                }
            }
        )+
    };
}
use shape;

/// A message in pi's form, or in the form of a provider.
pub(super) fn given_message(generator: &mut SchemaGenerator) -> Schema {
    let message = generator.subschema_for::<Message>();
    let roles = ["user", "assistant", "developer", "tool", "function", "model"];
    json_schema!({
        "description": "A message in pi's form. With a provider's `format`: a message, item or content of a request to the provider, the message of its answer, or its whole answer.",
        "anyOf": [
            message,
            {
                "type": "object",
                "properties": { "role": { "type": "string", "enum": roles } },
                "additionalProperties": true,
            },
        ],
    })
}

/// The usage of an answer, as its provider reports it.
pub(super) fn given_usage(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "description": "`usage` of the answer; in the format `google`, `usageMetadata`.",
        "type": "object",
        "additionalProperties": true,
    })
}

/// A field of an object.
struct Field {
    name: &'static str,
    schema: Value,
    is_required: bool,
}

/// A field that is always there.
fn required(name: &'static str, description: &str, schema: Value) -> Field {
    Field { name, schema: described(schema, description), is_required: true }
}

/// A field that may be missing, or null.
fn optional(name: &'static str, description: &str, schema: Value) -> Field {
    Field { name, schema: described(nullable(schema), description), is_required: false }
}

/// An object with these fields. It may have others.
fn object(fields: Vec<Field>) -> Value {
    let required: Vec<&str> = fields.iter().filter(|field| field.is_required).map(|field| field.name).collect();
    let mut schema = json!({ "type": "object", "required": required });
    if required.is_empty() {
        schema = json!({ "type": "object" });
    }
    let properties: Map<String, Value> =
        fields.into_iter().map(|field| (field.name.to_owned(), field.schema)).collect();
    schema["properties"] = properties.into();
    schema["unevaluatedProperties"] = true.into();
    schema
}

/// An object with these fields, whose other fields a client may read and write.
fn with_own_fields(mut object: Value) -> Value {
    if let Some(schema) = object.as_object_mut() {
        schema.shift_remove("unevaluatedProperties");
    }
    object["additionalProperties"] = true.into();
    object
}

fn described(mut schema: Value, description: &str) -> Value {
    schema["description"] = description.into();
    schema
}

/// The schema, or null. It has no `enum` and no `const`.
fn nullable(schema: Value) -> Value {
    if schema == any() {
        return schema;
    }
    let mut both = schema;
    if let Some(name) = both["type"].as_str() {
        both["type"] = json!([name, "null"]);
        return both;
    }
    match both.get_mut("anyOf").and_then(Value::as_array_mut) {
        Some(members) => members.push(json!({ "type": "null" })),
        None => both = json!({ "anyOf": [both, { "type": "null" }] }),
    }
    both
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn number() -> Value {
    json!({ "type": "number" })
}

fn boolean() -> Value {
    json!({ "type": "boolean" })
}

fn constant(value: &str) -> Value {
    json!({ "type": "string", "const": value })
}

fn list(items: Value) -> Value {
    json!({ "type": "array", "items": items })
}

/// Any JSON value.
fn any() -> Value {
    json!({})
}

/// A type of this protocol.
fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().to_value()
}

/// A member of a union for any other value.
fn open(mut schema: Value) -> Value {
    schema[OPEN] = true.into();
    schema
}
