//! The fields of a line that decide its place and its kind: one reading for entries and for the index.

use serde::{Deserialize, Deserializer};
use serde_json::{StreamDeserializer, value::RawValue};
use std::borrow::Cow;

/// The first reading of a line. All of the line is checked to be JSON, and a key that is there twice is an error. The
/// other fields depend on the type, so that an entry of an unknown type may have any.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Head<'a> {
    /// The type.
    #[serde(rename = "type", borrow)]
    pub kind: Cow<'a, str>,
    #[serde(default, borrow)]
    id: Option<&'a RawValue>,
    /// The parent as the line has it.
    #[serde(default, borrow, deserialize_with = "present")]
    pub parent_id: Option<&'a RawValue>,
    /// The time of the entry.
    #[serde(default, borrow)]
    pub timestamp: Option<&'a RawValue>,
    /// The message of a `message`.
    #[serde(default, borrow)]
    pub message: Option<&'a RawValue>,
    /// The content of a `custom_message`.
    #[serde(default, borrow)]
    pub content: Option<&'a RawValue>,
    /// The type of a `custom` or a `custom_message`.
    #[serde(default, borrow)]
    pub custom_type: Option<&'a RawValue>,
    /// The entry that a `label` names.
    #[serde(default, borrow)]
    pub target_id: Option<&'a RawValue>,
    /// The text of a `label`.
    #[serde(default, borrow)]
    pub label: Option<&'a RawValue>,
    /// The name in a `session_info`.
    #[serde(default, borrow)]
    pub name: Option<&'a RawValue>,
    /// The name in a `title_change`, which oh-my-pi writes.
    #[serde(default, borrow)]
    pub title: Option<&'a RawValue>,
    /// The tokens of a `usage`.
    #[serde(default, borrow)]
    pub usage: Option<&'a RawValue>,
    /// The purpose of a `usage`.
    #[serde(default, borrow)]
    pub purpose: Option<&'a RawValue>,
    /// The purpose in a `usage` of another program.
    #[serde(rename = "kind", default, borrow)]
    pub use_kind: Option<&'a RawValue>,
    /// The reason of a `usage`.
    #[serde(default, borrow)]
    pub trigger: Option<&'a RawValue>,
}

impl<'a> Head<'a> {
    /// Reads a line.
    ///
    /// # Errors
    /// When the line is not JSON, or not an object with a `type`.
    pub fn read(line: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(line)
    }

    /// Reads lines that may stand one after another without a newline.
    pub fn all<R: serde_json::de::Read<'a>>(read: R) -> StreamDeserializer<'a, R, Self> {
        StreamDeserializer::new(read)
    }

    /// The id; `None` where it is missing, empty or not a string.
    #[must_use]
    pub fn id(&self) -> Option<Cow<'a, str>> {
        self.id.and_then(text).filter(|id| !id.is_empty())
    }

    /// Whether the line names a parent, or says that it has none.
    #[must_use]
    pub fn names_parent(&self) -> bool {
        self.parent_id.is_some_and(|json| json.get() == "null" || text(json).is_some())
    }

    /// The parent; `None` for a root, and an empty id, which no entry has, where the line says nothing of a parent.
    #[must_use]
    pub fn parent(&self) -> Option<Cow<'a, str>> {
        match self.parent_id.map(RawValue::get) {
            Some("null" | "\"\"") => None,
            _ => Some(self.parent_id.and_then(text).unwrap_or_default()),
        }
    }
}

/// The string in a JSON text; nearly always the bytes between its quotes. `None` for any other value.
#[must_use]
pub fn text(json: &RawValue) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    let json = json.get();
    match json.strip_prefix('"')?.strip_suffix('"')? {
        plain if !plain.contains('\\') => Some(Cow::Borrowed(plain)),
        _ => serde_json::from_str::<Text<'_>>(json).ok().map(|text| text.0),
    }
}

/// A field that is there, also where its value is null.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(value: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(value).map(Some)
}
