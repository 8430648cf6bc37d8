//! Settings, and what is told about them.

use crate::protocol::events::Severity;
use schemars::JsonSchema;
use serde::Serialize;

/// Something a person may want to know that is about no session.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Notice {
    /// How much.
    pub severity: Severity,
    /// In a line.
    pub title: String,
    /// In more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}
