//! How a summary came to be, and what did not become it.

use crate::ids::ModelRef;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How a summary came to be.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Made {
    /// By which model; by none, where it was extracted.
    pub by: Option<ModelRef>,
    /// The candidates that did not become it.
    pub rejected: Vec<Rejected>,
}

/// A candidate that did not become the summary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rejected {
    /// Which; none where what was named is no model.
    pub model: Option<ModelRef>,
    /// Why not.
    pub why: String,
    /// The provider's error as `error.data`, where it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Value>,
}

impl Made {
    /// The method's name, as entries have it.
    #[must_use]
    pub fn method(&self) -> &'static str {
        match self.by {
            Some(_) => "llm",
            None => "extractive",
        }
    }
}
