//! Looks at the JSON of a given message, with the path of each value for errors.

use serde_json::{Value, json, value::RawValue};
use std::collections::HashMap;

/// A place in a message, and the problem there.
#[derive(Debug)]
pub(super) struct Spot {
    /// The path from the message on; empty for the message itself.
    pub path: String,
    /// The problem and the expected value.
    pub problem: String,
}

impl Spot {
    pub fn new(path: &str, problem: impl Into<String>) -> Self {
        Self { path: path.to_owned(), problem: problem.into() }
    }
}

/// A value of a message: its JSON text, the same parsed, and its path.
#[derive(Debug, Clone)]
pub(super) struct Look<'a> {
    json: &'a str,
    pub value: &'a Value,
    path: String,
}

impl<'a> Look<'a> {
    /// The message itself.
    pub fn new(json: &'a str, value: &'a Value) -> Self {
        Self { json, value, path: String::new() }
    }

    /// The JSON text as it was given.
    pub fn exact(&self) -> String {
        self.json.to_owned()
    }

    /// A problem with this value.
    pub fn wrong(&self, problem: impl Into<String>) -> Spot {
        Spot::new(&self.path, problem)
    }

    /// A problem with a field.
    pub fn wrong_at(&self, name: &str, problem: impl Into<String>) -> Spot {
        Spot { path: self.below(name), problem: problem.into() }
    }

    fn below(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// A field; `None` where it is missing or null.
    pub fn get(&self, name: &str) -> Option<Self> {
        let value = self.value.get(name).filter(|value| !value.is_null())?;
        let fields: HashMap<String, &'a RawValue> = serde_json::from_str(self.json).ok()?;
        let json = fields.get(name)?.get();
        Some(Self { json, value, path: self.below(name) })
    }

    /// A field that must be there.
    pub fn need(&self, name: &str) -> Result<Self, Spot> {
        self.get(name).ok_or_else(|| self.wrong_at(name, format!("missing field `{name}`")))
    }

    /// The items of an array.
    pub fn items(&self) -> Result<Vec<Self>, Spot> {
        let Value::Array(values) = self.value else { return Err(self.wrong("expected an array")) };
        let exact: Vec<&'a RawValue> = serde_json::from_str(self.json).map_err(|_| self.wrong("expected an array"))?;
        let items = values.iter().zip(exact).enumerate();
        Ok(items
            .map(|(at, (value, exact))| Self { json: exact.get(), value, path: format!("{}[{at}]", self.path) })
            .collect())
    }

    /// A field that is a text.
    pub fn text(&self, name: &str) -> Result<&'a str, Spot> {
        let field = self.need(name)?;
        field.value.as_str().ok_or_else(|| field.wrong("expected a text"))
    }

    /// A field that is a text, if it is there.
    pub fn maybe_text(&self, name: &str) -> Result<Option<&'a str>, Spot> {
        self.get(name).map(|_| self.text(name)).transpose()
    }

    /// A field that is an object, if it is there.
    pub fn maybe_object(&self, name: &str) -> Result<Option<Self>, Spot> {
        match self.get(name) {
            Some(field) if field.value.is_object() => Ok(Some(field)),
            Some(field) => Err(field.wrong("expected an object")),
            None => Ok(None),
        }
    }

    /// The exact JSON of a field.
    pub fn raw(&self, name: &str) -> Option<Box<RawValue>> {
        RawValue::from_string(self.get(name)?.exact()).ok()
    }
}

/// A text in pi's form.
pub(super) fn text_block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// An image in pi's form.
pub(super) fn image_block(mime: &str, data: &str) -> Value {
    json!({ "type": "image", "mimeType": mime, "data": data })
}

/// An image of a `data:` address.
pub(super) fn image_of_url(url: &Look<'_>) -> Result<Value, Spot> {
    let expected = || url.wrong("expected an image as `data:<type>;base64,<data>`; no other address is fetched");
    let text = url.value.as_str().ok_or_else(expected)?;
    let (mime, data) = text.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")).ok_or_else(expected)?;
    Ok(image_block(mime, data))
}
