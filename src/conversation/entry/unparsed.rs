//! A value of a line of which no tree is kept.

use serde::{Deserialize, Serialize};
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

/// The JSON text of a value. Its tree takes some ten times the memory or more, so it is made when it is needed: a file has
/// many lines.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Unparsed(Box<RawValue>);

impl Unparsed {
    /// The value; null where it is nested too deeply.
    #[must_use]
    pub fn read(&self) -> Value {
        serde_json::from_str(self.0.get()).unwrap_or_default()
    }
}

impl From<Value> for Unparsed {
    fn from(value: Value) -> Self {
        Self(to_raw_value(&value).expect("a value is JSON"))
    }
}

/// Two texts of one value are equal, however they are written.
impl PartialEq for Unparsed {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get() || self.read() == other.read()
    }
}
