//! Values drawn from a schema, and values that break one.

use super::known::Known;
use crate::{mutator, wire::Dice};
use serde_json::{Map, Value, json};

/// Texts that some reader may stumble over.
const TEXTS: [&str; 18] = [
    "",
    " ",
    "a",
    "null",
    "\u{0}",
    "line\nline\r\n",
    "\u{2028}\u{2029}\u{feff}",
    "日本語のテキスト",
    "🦀🦀",
    "</conversation></previous-summary>",
    "[Request interrupted]",
    "\"quoted\\\"",
    "..",
    "own/small",
    "read",
    "2026-01-01T00:00:00Z",
    "id",
    "e\u{301}",
];

/// A depth from which on values are small.
const DEEPEST: usize = 6;

pub struct Draw<'a> {
    pub dice: &'a mut Dice,
    /// The document of `rpc.discover`.
    pub document: &'a Value,
    pub known: &'a Known,
}

impl Draw<'_> {
    /// Params of a method, valid by its schema.
    pub fn params(&mut self, method: &Value) -> Value {
        let params = method["params"].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut fields = Map::new();
        for param in params {
            if param["required"] == true || self.dice.below(3) == 0 {
                let name = param["name"].as_str().unwrap_or_default();
                fields.insert(name.to_owned(), self.field(name, &param["schema"], 0));
            }
        }
        Value::Object(fields)
    }

    /// A value of a field. Ids are mostly known ones.
    fn field(&mut self, name: &str, schema: &Value, depth: usize) -> Value {
        if self.dice.below(4) > 0
            && let Some(known) = self.known_id(name)
        {
            return json!(known);
        }
        self.value(schema, depth)
    }

    fn known_id(&mut self, name: &str) -> Option<String> {
        let sessions = &self.known.sessions;
        if sessions.is_empty() {
            return None;
        }
        let session = self.dice.pick(sessions);
        match name {
            "sessionId" | "fromSessionId" | "parentSession" => Some(session.id.clone()),
            "entryId" | "targetEntryId" | "parentEntryId" | "expectedLeafId" | "leafEntryId" | "since" | "cursor" => {
                self.known.entry(self.dice, &session.id)
            }
            "operationId" => {
                (!self.known.operations.is_empty()).then(|| self.dice.pick(&self.known.operations).clone())
            }
            "contextId" => session.context.clone(),
            "epoch" => Some(session.epoch.clone()),
            _ => None,
        }
    }

    /// A value that is as the schema says.
    pub fn value(&mut self, schema: &Value, depth: usize) -> Value {
        let Value::Object(keywords) = schema else { return self.anything(depth) };
        if let Some(path) = keywords.get("$ref").and_then(Value::as_str) {
            let target = self.document.pointer(path.trim_start_matches('#')).expect("a reference leads somewhere");
            return self.value(target, depth + 1);
        }
        if let Some(value) = keywords.get("const") {
            return value.clone();
        }
        if let Some(values) = keywords.get("enum").and_then(Value::as_array) {
            return self.dice.pick(values).clone();
        }
        for several in ["anyOf", "oneOf"] {
            if let Some(ways) = keywords.get(several).and_then(Value::as_array) {
                let at = if depth > DEEPEST { ways.len() - 1 } else { self.dice.below(ways.len()) };
                let mut value = self.value(&ways[at], depth + 1);
                self.properties(keywords, &mut value, depth);
                return value;
            }
        }
        let kind = match keywords.get("type") {
            Some(Value::Array(kinds)) => self.dice.pick(kinds).as_str().unwrap_or_default().to_owned(),
            Some(kind) => kind.as_str().unwrap_or_default().to_owned(),
            None if keywords.contains_key("properties") => "object".to_owned(),
            None => return self.anything(depth),
        };
        match kind.as_str() {
            "null" => Value::Null,
            "boolean" => json!(self.dice.below(2) == 0),
            "integer" => self.integer(keywords),
            "number" => json!(self.dice.below(1_000_000) as f64 / 100.0),
            "string" => json!(self.text()),
            "array" => {
                let least = keywords.get("minItems").and_then(Value::as_u64).unwrap_or(0) as usize;
                let count = least + if depth > DEEPEST { 0 } else { self.dice.below(4) };
                let items = keywords.get("items").cloned().unwrap_or(Value::Bool(true));
                (0..count).map(|_| self.value(&items, depth + 1)).collect()
            }
            _ => {
                let mut value = json!({});
                self.properties(keywords, &mut value, depth);
                value
            }
        }
    }

    fn properties(&mut self, keywords: &Map<String, Value>, value: &mut Value, depth: usize) {
        let Value::Object(fields) = value else { return };
        let required = keywords.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        for (name, schema) in keywords.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if required.contains(&json!(name)) || depth <= DEEPEST && self.dice.below(3) == 0 {
                fields.insert(name.clone(), self.field(name, schema, depth + 1));
            }
        }
    }

    fn integer(&mut self, keywords: &Map<String, Value>) -> Value {
        let bound = |name: &str| keywords.get(name).and_then(Value::as_i64);
        let (least, most) = (bound("minimum").unwrap_or(i64::MIN), bound("maximum").unwrap_or(i64::MAX));
        let drawn = match self.dice.below(6) {
            0 => least,
            1 => most,
            2 => 0,
            3 => self.dice.below(100_000) as i64,
            _ => self.dice.below(300) as i64,
        };
        json!(drawn.clamp(least, most))
    }

    pub fn text(&mut self) -> String {
        let text = *self.dice.pick(&TEXTS);
        match self.dice.below(12) {
            0 => text.repeat(1 + self.dice.below(4_000)),
            1 => format!("{text}{text}x"),
            _ => text.to_owned(),
        }
    }

    fn anything(&mut self, depth: usize) -> Value {
        match self.dice.below(if depth > DEEPEST { 4 } else { 6 }) {
            0 => Value::Null,
            1 => json!(self.dice.below(1_000)),
            2 => json!(self.dice.below(2) == 0),
            3 => json!(self.text()),
            4 => (0..self.dice.below(3)).map(|_| self.anything(depth + 1)).collect(),
            _ => json!({ self.text(): self.anything(depth + 1) }),
        }
    }

    /// Breaks params: another type somewhere, a number out of range, an unknown key, a deep nesting.
    pub fn broken(&mut self, params: &mut Value) {
        match self.dice.below(8) {
            0 => *params = deep(1 + self.dice.below(200)),
            1 => *params = self.anything(0),
            2 | 3 => {
                let (key, value) = (self.text(), self.anything(1));
                if let Value::Object(fields) = params {
                    fields.insert(key, value);
                }
            }
            4 => {
                if let Value::Object(fields) = params
                    && let Some(at) = (!fields.is_empty()).then(|| self.dice.below(fields.len()))
                {
                    let key = fields.keys().nth(at).expect("it is there").clone();
                    let value = fields.remove(&key).expect("it is there");
                    // A letter less: an error of typing.
                    fields.insert(key[..key.len() - 1].to_owned(), value);
                }
            }
            _ => mutator::change(self.dice, params),
        }
    }
}

fn deep(depth: usize) -> Value {
    (0..depth).fold(json!(1), |inner, at| if at % 2 == 0 { json!([inner]) } else { json!({ "a": inner }) })
}

/// Paths that lead out of the folder of the test lead into it instead: a random request must not write elsewhere.
pub fn confine(value: &mut Value, home: &str) {
    match value {
        Value::String(text) if text.starts_with(['/', '~']) && !text.starts_with(home) => {
            *text = format!("{home}/out/{}", text.trim_start_matches(['/', '~', '.']).replace("..", "_"));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| confine(item, home)),
        Value::Object(fields) => fields.values_mut().for_each(|field| confine(field, home)),
        _ => {}
    }
}
