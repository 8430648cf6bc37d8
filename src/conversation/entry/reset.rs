//! `reset_boundary` entries, as oh-my-pi and this program write them.

use super::{
    Preserved,
    preserved::{PreserveData, Stored, object_or_nothing},
};
use crate::ids::EntryId;
use serde::Deserialize;
use serde_json::Value;

/// A `reset_boundary` entry: nothing before it is in the context. oh-my-pi writes none of these fields.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Reset {
    /// System prompt and tools at that time, as one message in pi's form.
    pub system_message: Option<Value>,
    /// Data that programs keep for themselves, as the line has them; ours is under `abridged`.
    #[serde(rename = "preserveData", deserialize_with = "object_or_nothing")]
    stored: Option<Box<Stored>>,
    /// The same, as far as they are this entry's.
    #[serde(skip)]
    data: PreserveData,
}

impl Reset {
    /// The reset in the line of the entry with this id. Fields of another form count as missing.
    pub(super) fn read(line: &str, id: &EntryId) -> Self {
        let mut reset: Self = serde_json::from_str(line).unwrap_or_default();
        reset.data = reset.stored.take().map(|stored| stored.of_entry(id)).unwrap_or_default();
        reset
    }

    /// Data that a reset of ours carries; none for another program's.
    #[must_use]
    pub fn preserved(&self) -> Option<&Preserved> {
        self.data.ours()
    }
}
