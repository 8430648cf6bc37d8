//! Requests that move a session in its tree.

use super::Which;
use serde::{Deserialize, Serialize};

/// Params of `session/navigate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Navigating {
    /// The entry at which the session is to go on.
    pub target: Target,
    /// Whether the branch that is left is summarized.
    pub summarize: Option<bool>,
    /// Whether there is a label.
    pub label: Option<u32>,
    /// Whether the answer comes at the end.
    pub wait: Option<bool>,
}

/// The target of a navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// Any entry.
    Entry(Which),
    /// The leaf that the last navigation left.
    Left,
}
