//! Params and result of `context/fit`: messages of a host that keeps its own history.

use super::{AnyJson, GivenMessage, MessageFormat, Tools, messages};
use crate::{
    models::ModelRef,
    settings::TokenLimit,
    summary::made::{Rejected, SummaryMethod},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Params of `context/fit`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FitParams {
    /// The messages, oldest first.
    #[serde(deserialize_with = "messages::read")]
    #[schemars(length(max = 50_000))]
    pub messages: Vec<GivenMessage>,
    /// Format of the messages, in the params and in the result. Default: `messages`.
    #[serde(default)]
    pub format: Option<MessageFormat>,
    /// System prompt beside the messages.
    #[serde(default)]
    pub system: Option<String>,
    /// Tools of the model.
    #[serde(default)]
    pub tools: Option<Tools>,
    /// Model that the messages are for. Default: the setting `defaultModel`.
    #[serde(default)]
    pub model: Option<ModelRef>,
    /// Size of its window, in tokens. Default: that of the model.
    #[serde(default)]
    pub context_window: Option<TokenLimit>,
    /// Its longest answer, in tokens.
    #[serde(default)]
    pub max_output_tokens: Option<TokenLimit>,
    /// Size of the newest messages that are kept verbatim, in tokens. With it the messages are compacted also where they fit.
    #[serde(default)]
    pub keep_recent_tokens: Option<u64>,
    /// Summary of the messages before the first one. The new summary continues it.
    #[serde(default)]
    pub previous_summary: Option<String>,
    /// Instructions for the summary: topics to keep above all.
    #[serde(default)]
    pub instructions: Option<String>,
}

/// Result of `context/fit`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FitAnswer {
    /// Messages that fit the window: the summary in messages of its own, then the kept messages as they were given.
    #[schemars(with = "Vec<GivenMessage>")]
    pub messages: Vec<AnyJson>,
    /// The summary; null where nothing was summarized. The next request gives it back as `previousSummary` with the messages
    /// from `firstKeptIndex` on. It ends with the newest request of the user, between the tags `<user-message>`, where that is
    /// not among the kept messages.
    pub summary: Option<String>,
    /// Place of the first kept message among the given ones; their number where none is kept.
    pub first_kept_index: usize,
    /// Size of the context before, with system prompt and tools.
    pub tokens_before: u64,
    /// Size of the context after.
    pub tokens_after: u64,
    /// Method of the summary; null where nothing was summarized.
    pub method: Option<SummaryMethod>,
    /// Candidates that did not become the summary.
    pub rejected: Vec<Rejected>,
}
