//! Schemas of the values that are passed through byte for byte: pi's messages and entries. `message.rs` and `entry.rs`
//! read
//! them. Fields that are not listed here are kept.

use super::Message;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};
use std::borrow::Cow;

/// A message in pi's form.
pub(super) fn message(generator: &mut SchemaGenerator) -> Schema {
    let blocks = generator.subschema_for::<Block>();
    let content = json!({
        "description": "A text, or blocks.",
        "anyOf": [{ "type": "string" }, { "type": "array", "items": blocks }],
    });
    let text = |what: &str| json!({ "type": "string", "description": what });
    let optional = |kind: &str, what: &str| json!({ "type": [kind, "null"], "description": what });
    let usage = json!({
        "description": "What the provider said it cost: `{input, output, cacheRead, cacheWrite, totalTokens}`, in tokens.",
        "type": ["object", "null"],
        "additionalProperties": true,
    });
    json_schema!({
        "description": "A message in pi's form. Fields that are not named here are kept.",
        "oneOf": [
            role("user", "What the user said.", &[("content", content.clone())], &[]),
            role("assistant", "An answer of a model.", &[("content", content.clone())], &[
                ("provider", optional("string", "Who answered.")),
                ("model", optional("string", "The model that answered.")),
                ("usage", usage),
                ("stopReason", optional("string", "`stop`, `length`, `toolUse`, `error` or `aborted`.")),
                ("errorMessage", optional("string", "The provider's text where it failed.")),
            ]),
            role("toolResult", "What a tool returned.", &[
                ("toolCallId", text("The call it answers.")),
                ("content", content.clone()),
            ], &[
                ("toolName", optional("string", "The tool.")),
                ("isError", optional("boolean", "Whether the tool failed.")),
            ]),
            role("bashExecution", "A command the user ran beside the model.", &[("command", text("The command."))], &[
                ("output", optional("string", "What it printed.")),
                ("exitCode", optional("integer", "Its exit code.")),
                ("excludeFromContext", optional("boolean", "Not for the model.")),
            ]),
            role("custom", "A message of an extension.", &[("content", content.clone())], &[]),
            role("developer", "An instruction by an agent, not by the user.", &[("content", content.clone())], &[]),
            role("system", "A system prompt that pi has stored among the messages.", &[("content", content)], &[]),
        ],
    })
}

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

/// An entry of a session file.
pub(super) fn entry(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "description": "An entry of a session file in pi's third version. What else stands in it depends on its type.",
        "type": "object",
        "properties": {
            "type": { "type": "string", "description": "What it is: `message`, `compaction`, `custom`, …" },
            "id": { "type": "string", "description": "Its id." },
            "parentId": {
                "type": ["string", "null"],
                "description": "The entry it follows. Missing in the place of a line that cannot be read.",
            },
            "timestamp": { "type": "string", "description": "When it was written." },
        },
        "required": ["type", "id"],
        "additionalProperties": true,
    })
}

fn role(name: &str, doc: &str, required: &[(&str, Value)], optional: &[(&str, Value)]) -> Value {
    let mut properties = serde_json::Map::new();
    properties.insert("role".to_owned(), json!({ "type": "string", "const": name }));
    properties.extend(required.iter().chain(optional).map(|(name, schema)| ((*name).to_owned(), schema.clone())));
    let when = "When, in milliseconds since 1970; filled in where it is missing.";
    properties.insert("timestamp".to_owned(), json!({ "type": "number", "description": when }));
    let names: Vec<&str> = std::iter::once("role").chain(required.iter().map(|(name, _)| *name)).collect();
    json!({
        "type": "object",
        "description": doc,
        "properties": properties,
        "required": names,
        "additionalProperties": true,
    })
}

/// A block of a message.
struct Block;

impl JsonSchema for Block {
    fn schema_name() -> Cow<'static, str> {
        "Block".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A block of a message: `text {text}`, `thinking {thinking, thinkingSignature?}`, `toolCall {id, name, arguments}`, `image {data, mimeType}`. Others are passed on.",
            "type": "object",
            "properties": { "type": { "type": "string" } },
            "required": ["type"],
            "additionalProperties": true,
        })
    }
}
