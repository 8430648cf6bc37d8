//! Thinking levels as params.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much a model thinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingLevel {
    /// It does not think, where it can be told so.
    Off,
    /// The least.
    Minimal,
    /// Little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
    /// The most that the model has. `max` is the same.
    Xhigh,
    /// The most that the model has.
    Max,
}

impl ThinkingLevel {
    /// Its name in a session file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }
}
