//! Compacting, and stopping it.

use crate::{
    ids::{EntryId, OperationId, SessionId},
    models::ModelRef,
    protocol::errors::ErrorData,
    summary::made,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Params of `session/cancel`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CancelParams {
    /// In which session.
    pub session_id: SessionId,
    /// Only this one.
    #[serde(default)]
    pub operation_id: Option<OperationId>,
}

/// The result of `session/cancel`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CancelAnswer {
    /// What was stopped.
    pub cancelled: Vec<Cancelled>,
}

/// Something that was stopped.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cancelled {
    /// Its id.
    pub operation_id: OperationId,
    /// What it was.
    pub kind: String,
}

/// Params of `session/compact`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompactParams {
    /// Which session.
    pub session_id: SessionId,
    /// What to keep above all.
    #[serde(default)]
    pub instructions: Option<String>,
    /// Tokens kept as they are; taken as it is.
    #[serde(default)]
    pub keep_recent_tokens: Option<u64>,
    /// How the summary is made.
    #[serde(default)]
    pub method: Option<CompactMethod>,
    /// `now` if omitted.
    #[serde(default)]
    pub when: Option<When>,
    /// `user` if omitted. An agent is refused below half of the threshold.
    #[serde(default)]
    pub initiator: Option<Initiator>,
    /// Only says what it would do.
    #[serde(default)]
    pub dry_run: Option<bool>,
    /// Answers at the end.
    #[serde(default)]
    pub wait: Option<bool>,
    /// Only if this is still the leaf, or nothing that matters came since.
    #[serde(default)]
    pub expected_leaf_id: Option<EntryId>,
}

/// How a summary is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompactMethod {
    /// By a model.
    Llm,
    /// Without one.
    Extractive,
}

/// When a compaction begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// At once.
    Now,
    /// When the running turn has ended.
    AfterTurn,
}

/// Who wants a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Initiator {
    /// A person.
    User,
    /// The model itself.
    Agent,
}

/// The result of `session/compact`, by what was asked for.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum CompactAnswer {
    /// It runs; its events follow.
    Started {
        /// Its id.
        operation_id: OperationId,
    },
    /// With `wait`: it ended.
    Ended {
        /// Its id.
        operation_id: OperationId,
        /// How.
        outcome: Outcome,
        /// What was written.
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<Box<CompactionResult>>,
        /// Why it failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<ErrorData>,
    },
    /// With `dryRun`: what it would do.
    DryRun {
        /// The plan.
        preparation: Preparation,
    },
}

/// How something ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// As it should.
    Completed,
    /// With an error.
    Failed,
    /// Somebody stopped it.
    Cancelled,
    /// There was nothing to do.
    Skipped,
}

/// A finished compaction.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompactionResult {
    /// Its entry.
    pub entry_id: EntryId,
    /// The summary; null where the frame would pass 60 KiB: read the entry.
    pub summary: Option<String>,
    /// Two sentences for a person.
    pub short_summary: Option<String>,
    /// The first entry that is kept; null where nothing is.
    pub first_kept_entry_id: Option<EntryId>,
    /// Size of the context before.
    pub tokens_before: u64,
    /// Size of the context after, estimated.
    pub tokens_after: u64,
    /// The files, or anything of a hook's.
    pub details: Value,
    /// Whether a hook made it.
    pub from_hook: bool,
    /// How the summary was made.
    pub method: SummaryMethod,
    /// By which model.
    pub model: Option<ModelRef>,
    /// Every candidate that did not become the summary.
    pub rejected: Vec<Rejected>,
}

/// How a summary was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SummaryMethod {
    /// By a model.
    Llm,
    /// By an endpoint.
    Remote,
    /// By the provider's own compaction.
    ProviderNative,
    /// Without a model.
    Extractive,
    /// By a hook.
    Hook,
}

/// A candidate that did not become the summary.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Rejected {
    /// How it was made.
    pub method: SummaryMethod,
    /// By which model.
    pub model: Option<ModelRef>,
    /// Why not.
    pub why: String,
    /// The provider's error, where it was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ErrorData>")]
    pub error: Option<Value>,
}

impl From<&made::Rejected> for Rejected {
    fn from(rejected: &made::Rejected) -> Self {
        let made::Rejected { model, why, error } = rejected.clone();
        Self { method: SummaryMethod::Llm, model, why, error }
    }
}

/// What a compaction would do.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Preparation {
    /// The first entry that would be kept; null where nothing would.
    pub first_kept_entry_id: Option<EntryId>,
    /// Messages of whole turns that would be summarized.
    pub messages_to_summarize: usize,
    /// Messages of the turn whose end would be kept.
    pub turn_prefix_messages: usize,
    /// Whether the cut would fall inside a turn.
    pub is_split_turn: bool,
    /// Size of the context now.
    pub tokens_before: u64,
    /// Size of the context after, at the most.
    pub tokens_after_estimate: u64,
    /// The summary that would go into the new one.
    pub previous_summary: Option<String>,
    /// Requests to a model that it would take.
    pub chunks: usize,
    /// Who would write the summary.
    pub summarizer: Summarizer,
    /// The files.
    pub file_ops: FileOps,
    /// Equal for two plans that would do the same to the same session.
    pub plan_hash: String,
}

/// Who writes a summary.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Summarizer {
    /// Nobody: `"extractive"`.
    Extractive(ExtractiveWord),
    /// A model.
    Model(ModelRef),
}

/// The word `extractive`.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExtractiveWord {
    /// `extractive`
    Extractive,
}

/// Files.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FileOps {
    /// Read and not changed.
    pub read: Vec<String>,
    /// Changed.
    pub modified: Vec<String>,
}
