//! Every frame of a daemon under test is held against the schema that the daemon publishes.

use crate::json_schema;
use abridged::protocol::schema;
use serde_json::Value;
use std::{
    collections::HashMap,
    sync::{LazyLock, Mutex, PoisonError},
};

static SCHEMA: LazyLock<Value> = LazyLock::new(schema::schema);

/// The requests of a dialogue, whose answers are known by their methods.
#[derive(Default)]
pub struct Dialogue {
    methods: Mutex<HashMap<String, String>>,
}

impl Dialogue {
    /// A request was sent.
    pub fn sent(&self, id: &Value, method: &str) {
        self.methods.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_string(), method.to_owned());
    }

    /// Where a frame of the daemon is not what the schema says. Answers to requests that were sent by other means are not
    /// looked at.
    pub fn problem(&self, frame: &Value) -> Option<String> {
        let one = |frame: &Value| {
            let (schema, value) = self.schema_of(frame)?;
            match schema {
                Some(schema) => json_schema::problem(&SCHEMA, schema, value),
                // A notification that was sent as a request.
                None if value.is_null() => None,
                None => Some("there is no schema for it".to_owned()),
            }
        };
        // The ids of a batch are those of the test.
        if frame.is_array() { None } else { one(frame) }
    }

    /// The schema of a frame, if it is known what it is, and the part that the schema is about.
    fn schema_of<'a>(&self, frame: &'a Value) -> Option<(Option<&'static Value>, &'a Value)> {
        let of = |method: &str, part: &str| SCHEMA["properties"].get(method)?["properties"].get(part);
        match (frame["method"].as_str(), frame.get("error")) {
            (Some(method), _) => Some((of(method, "params"), &frame["params"])),
            (None, Some(error)) => Some((SCHEMA["properties"].get("error"), error)),
            (None, None) => {
                let methods = self.methods.lock().unwrap_or_else(PoisonError::into_inner);
                let method = methods.get(&frame["id"].to_string())?;
                Some((of(method, "result"), &frame["result"]))
            }
        }
    }
}
