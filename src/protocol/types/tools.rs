//! The tools of a model as params.

use crate::{
    conversation::tools::{self, Function},
    text::faults::Placed,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{DeserializeSeed, Error, SeqAccess, Visitor},
};
use serde_json::Value;
use std::{borrow::Cow, collections::HashSet, fmt};

/// Tools, each with a name of its own, in the form of this protocol: `{name, description, inputSchema}`. They are given in this
/// form, or in that of a provider.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Tools(pub Vec<Value>);

impl<'de> Deserialize<'de> for Tools {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        reader.deserialize_seq(List(Arguments::Any))
    }
}

/// Tools that a client executes. A model has to know their arguments.
///
/// # Errors
/// When they are no tools, or one has no schema.
pub(super) fn executable<'de, D: Deserializer<'de>>(reader: D) -> Result<Tools, D::Error> {
    reader.deserialize_seq(List(Arguments::Described))
}

/// The arguments of the tools of a list.
#[derive(Clone, Copy)]
enum Arguments {
    /// A tool may have no schema.
    Any,
    /// Each tool has a schema.
    Described,
}

struct List(Arguments);

impl<'de> Visitor<'de> for List {
    type Value = Tools;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of tools")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Tools, A::Error> {
        let mut read = Tools::default();
        let mut names = HashSet::new();
        while let Some(functions) = list.next_element_seed(Tool { names: &mut names, arguments: self.0 })? {
            read.0.extend(functions);
        }
        Ok(read)
    }
}

/// Reads one tool. An error has its place in the params.
struct Tool<'a> {
    names: &'a mut HashSet<String>,
    arguments: Arguments,
}

impl<'de> DeserializeSeed<'de> for Tool<'_> {
    type Value = Vec<Value>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Vec<Value>, D::Error> {
        let wrong = |path: &str, what: &str| D::Error::custom(Placed { path, what });
        let functions =
            tools::functions(&Value::deserialize(reader)?).map_err(|fault| wrong(&fault.path, &fault.what))?;
        for Function { value, path } in &functions {
            let name = tools::name(value).unwrap_or_default();
            if !self.names.insert(name.to_owned()) {
                let path = if path.is_empty() { "name".to_owned() } else { format!("{path}.name") };
                return Err(wrong(&path, &format!("there are two tools {name:?}; give each a name of its own")));
            }
            if matches!(self.arguments, Arguments::Described) && value.get("inputSchema").is_none() {
                let next = "{\"type\": \"object\"} accepts any arguments";
                return Err(wrong(path, &format!("the tool {name:?} has no inputSchema; {next}")));
            }
        }
        Ok(functions.into_iter().map(|function| function.value).collect())
    }
}

impl JsonSchema for Tools {
    fn schema_name() -> Cow<'static, str> {
        "Tools".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let schema = json_schema!({ "description": "JSON Schema of the arguments.", "type": "object" });
        let text = json_schema!({ "type": "string" });
        json_schema!({
            "description": "Tools: `{name, description, inputSchema}`, or the form of Anthropic (`input_schema`), of OpenAI (`parameters`, also below `function`) or of Google (`functionDeclarations`). A provider's own tools are refused: the client adds them to the request.",
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "name": text,
                    "description": text,
                    "inputSchema": schema,
                    "input_schema": schema,
                    "parameters": schema,
                    "function": { "type": "object", "additionalProperties": true },
                    "functionDeclarations": { "type": "array", "items": { "type": "object", "additionalProperties": true } },
                },
                "additionalProperties": true,
            },
        })
    }
}
