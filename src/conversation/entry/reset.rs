//! `reset_boundary` entries, as oh-my-pi and this program write them.

use super::{
    Preserved,
    preserved::{PreserveData, object_or_nothing},
};
use serde::Deserialize;
use serde_json::Value;

/// A `reset_boundary` entry: nothing before it is in the context. oh-my-pi writes none of these fields.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Reset {
    /// System prompt and tools at that time, as one message in pi's form.
    pub system_message: Option<Value>,
    /// Data that programs keep for themselves; ours is under `abridged`.
    #[serde(deserialize_with = "object_or_nothing")]
    preserve_data: Option<PreserveData>,
}

impl Reset {
    /// Data that a reset of ours carries; none for another program's.
    #[must_use]
    pub fn preserved(&self) -> Option<&Preserved> {
        self.preserve_data.as_ref()?.ours()
    }
}
