//! Reasons of decisions, for programs. The sentence beside a reason names its numbers.

use crate::compaction::decide::Why;
use schemars::JsonSchema;
use serde::Serialize;

/// The reason why the context is compacted now or not. A later version may add some.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhyCode {
    /// The context is over the threshold, and a compaction is due.
    Due,
    /// The context is not over the threshold.
    Below,
    /// The prompt cache is cold, the context is over `compaction.coldResumeTokens`, and a compaction is due.
    Cold,
    /// Automatic compaction is off.
    Off,
    /// A compaction was undone on this path, and the context still has room.
    Undone,
    /// The images of the context are over their budget, and old ones are due to leave.
    Images,
    /// System prompt, tools and pins leave no room for a conversation.
    Overhead,
    /// No compaction can meet the threshold, and a higher one stands in.
    Unattainable,
    /// There is nothing to summarize yet.
    TooShort,
    /// Calls of the newest answer have no result yet.
    CallsOpen,
    /// The turn goes on, and `compaction.midTurn` is false.
    MidTurn,
    /// The last automatic compaction did not complete.
    Resting,
    /// Several maintenances in a row led to no answer.
    NoProgress,
    /// A summary is being made ahead.
    Ahead,
}

impl From<Why> for WhyCode {
    fn from(why: Why) -> Self {
        match why {
            Why::Due => Self::Due,
            Why::Below => Self::Below,
            Why::Cold { .. } => Self::Cold,
            Why::Off(_) => Self::Off,
            Why::Undone { .. } => Self::Undone,
            Why::Images => Self::Images,
            Why::Overhead => Self::Overhead,
            Why::Unattainable { .. } => Self::Unattainable,
            Why::TooShort => Self::TooShort,
            Why::CallsOpen => Self::CallsOpen,
            Why::MidTurn => Self::MidTurn,
            Why::Resting => Self::Resting,
            Why::NoProgress => Self::NoProgress,
            Why::Ahead { .. } => Self::Ahead,
        }
    }
}
