//! The purpose of a model request.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Purpose of a model request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Continuation of the conversation.
    Turn,
    /// Summary of whole turns.
    Compaction,
    /// Summary of the beginning of a turn.
    TurnPrefix,
    /// Two sentences for a person.
    ShortSummary,
    /// Summary of a branch.
    BranchSummary,
    /// Document for another session.
    Handoff,
}

impl Purpose {
    /// Name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Compaction => "compaction",
            Self::TurnPrefix => "turn_prefix",
            Self::ShortSummary => "short_summary",
            Self::BranchSummary => "branch_summary",
            Self::Handoff => "handoff",
        }
    }
}
