//! The making of the summary in a compaction.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The making of a summary, in `preserveData.abridged` of its compaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CarriedSummary {
    /// The requests for it; `None` where no model was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<SummaryRequests>,
    /// The number of the first items of `openaiRemoteCompaction.replacementHistory` that stand for the summarized part. The
    /// items after them, which earlier versions wrote, repeat kept entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_items: Option<u64>,
}

/// The form of the requests to a model for a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SummaryForm {
    /// The session's own request, which its provider has in its cache, with the prompt as one more message.
    LiveRequest,
    /// The conversation as a text.
    Transcript,
}

/// The requests for a summary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SummaryRequests {
    /// Their form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<SummaryForm>,
    /// The input that was read from the provider's cache, in tokens.
    pub cached: u64,
    /// The other input, in tokens.
    pub input: u64,
    /// A request of the session's own brought no summary, here or before the requests with a transcript.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub live_failed: bool,
    /// The part of their price that the cache saved, in dollars, where the prices are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dollars: Option<f64>,
}
