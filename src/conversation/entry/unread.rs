//! A value of a line of which no tree is kept.

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

/// The JSON text of a value. Its tree takes some ten times the memory or more, so it is made when it is needed: a file has
/// many lines.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub struct Unread(Box<RawValue>);

impl Unread {
    /// The value; null where it is nested too deeply.
    #[must_use]
    pub fn read(&self) -> Value {
        serde_json::from_str(self.0.get()).unwrap_or_default()
    }
}
