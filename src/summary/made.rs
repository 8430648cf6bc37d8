//! The origin of a summary.

use crate::ids::ModelRef;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The origin of a summary.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Made {
    /// The model that wrote it; `None` if it was extracted.
    pub by: Option<ModelRef>,
    /// The rejected candidates.
    pub rejected: Vec<Rejected>,
    /// The tokens that a request or a whole summary would have taken, where no model was asked because too few were left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unaffordable: Option<u64>,
}

/// A rejected candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rejected {
    /// The model; `None` if the configured name is no model.
    pub model: Option<ModelRef>,
    /// The reason.
    pub why: String,
    /// The error of the provider in the form of `error.data`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Value>,
}

impl Made {
    /// The name of the method in entries.
    #[must_use]
    pub fn method(&self) -> &'static str {
        match self.by {
            Some(_) => "llm",
            None => "extractive",
        }
    }
}
