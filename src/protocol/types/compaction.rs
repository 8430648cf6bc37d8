//! Params and results of compaction and cancellation.

use crate::{
    compaction::{
        draft::{Draft, Shortened},
        plan::Plan,
        preview::{Effect, Preview},
    },
    conversation::{entry::Entry, message, tokens::Scale},
    ids::{EntryId, OperationId, SessionId},
    models::ModelRef,
    protocol::codes::{ErrorData, WhyNothing},
};

pub use crate::{
    compaction::{
        rehydrate::{FileToRead, FileUse, LoadKept, Loaded, Rehydrated},
        request::Initiator,
    },
    summary::{
        lost::Lost,
        made::{PartOrigins, Rejected, SummaryForm, SummaryMethod, SummaryRequests},
    },
};

use super::{OperationName, shapes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// Params of `session/cancel`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CancelParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// Operation to cancel. Default: every operation of the session.
    #[serde(default)]
    pub operation_id: Option<OperationId>,
}

/// Result of `session/cancel`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CancelAnswer {
    /// Operations that were cancelled.
    pub cancelled: Vec<Cancelled>,
}

/// A cancelled operation.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cancelled {
    /// Id of the operation. A turn has a `turnId` in its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<OperationId>,
    /// Id of the turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<OperationId>,
    /// Kind of the operation.
    #[schemars(with = "OperationName")]
    pub kind: String,
}

impl Cancelled {
    /// The operation of this kind.
    #[must_use]
    pub fn of(id: OperationId, kind: &str) -> Self {
        let (operation_id, turn_id) = if kind == TURN { (None, Some(id)) } else { (Some(id), None) };
        Self { operation_id, turn_id, kind: kind.to_owned() }
    }

    /// The id of the operation or of the turn.
    #[must_use]
    pub fn id(&self) -> Option<&OperationId> {
        self.operation_id.as_ref().or(self.turn_id.as_ref())
    }
}

/// The kind of a turn in answers and in the lock.
pub const TURN: &str = "turn";

/// Params of `session/compact`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompactParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// Instructions for the summary: topics to keep above all.
    #[serde(default)]
    pub instructions: Option<String>,
    /// Lines beside the conversation, for the summary. Every request for it has them.
    #[serde(default)]
    pub context: Option<Vec<String>>,
    /// Size of the newest messages that are kept verbatim, without a lower bound. Default: the setting.
    #[serde(default)]
    pub keep_recent_tokens: Option<u64>,
    /// Method of the summary. Default: the setting.
    #[serde(default)]
    pub method: Option<CompactMethod>,
    /// The model that writes the summary, and no other. Where it writes none, the compaction fails with `provider_error`.
    /// Default: the models of the settings, then the session's, then the extracted summary.
    #[serde(default)]
    pub model: Option<ModelRef>,
    /// With `model`: where it writes no summary, the others follow, and at last the extracted summary. Default: false.
    #[serde(default)]
    pub fallback: Option<bool>,
    /// Time of the start. Default: `now`.
    #[serde(default)]
    pub when: Option<When>,
    /// Initiator of the request. Default: `user`. An agent is refused below half of the threshold.
    #[serde(default)]
    pub initiator: Option<Initiator>,
    /// Report the plan without writing.
    #[serde(default)]
    pub dry_run: Option<bool>,
    /// With `dryRun`: makes the summary, too, and asks models for it as the compaction would. It takes its time, and is cancelled
    /// with its request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft: Option<bool>,
    /// Answer when the compaction has ended.
    #[serde(default)]
    pub wait: Option<bool>,
    /// The summary begins a new session, which names this one as its parent. This session stays as it is. Default: false.
    #[serde(default)]
    pub new_session: Option<bool>,
    /// Expected leaf. The request fails if another message or compaction follows this entry.
    #[serde(default)]
    pub expected_leaf_id: Option<EntryId>,
    /// Whether the compaction is written. Default: true. False makes the whole result, answers with it at its end, and writes
    /// nothing: for a host that applies it itself, also on a read-only session. Hooks are not asked, and it is cancelled with
    /// its request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apply: Option<bool>,
    /// With `apply: false` or `dryRun`: the entry that the context ends with. Default: the leaf.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaf_entry_id: Option<EntryId>,
}

impl CompactParams {
    /// Whether the compaction is written.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.dry_run != Some(true) && self.apply != Some(false)
    }

    /// The params of a compaction in this session that no client asks for.
    #[must_use]
    pub fn of(session_id: SessionId) -> Self {
        Self {
            session_id,
            instructions: None,
            context: None,
            keep_recent_tokens: None,
            method: None,
            model: None,
            fallback: None,
            when: None,
            initiator: None,
            dry_run: None,
            draft: None,
            wait: None,
            new_session: None,
            expected_leaf_id: None,
            apply: None,
            leaf_entry_id: None,
        }
    }
}

/// Result of `session/run_idle`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum RunIdleAnswer {
    /// The maintenance has started. Its events follow.
    Started {
        /// Id of the operation.
        operation_id: OperationId,
    },
    /// Nothing starts now.
    Skipped {
        /// Reason.
        skipped: IdleSkipped,
    },
}

/// The reason why no idle maintenance starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IdleSkipped {
    /// An operation or another request runs or waits, the session ends, or its file cannot be read.
    Busy,
    /// Automatic maintenance is off: `compaction.enabled` is false, or `compaction.strategy` is `off`.
    Disabled,
    /// The context is smaller than `compaction.idleThresholdTokens`.
    BelowThreshold,
    /// A tool call of the newest answer has no result.
    UnansweredCall,
    /// The newest message is a request of the user or a tool result: the model is to answer.
    UnansweredMessage,
    /// A compaction was undone on this path, and the context is not near its window.
    Undone,
    /// The last automatic maintenance was cancelled, failed or was skipped. A message of the user, or growth by 5 %, ends
    /// that.
    Resting,
    /// Nothing can be summarized, or the summary would make nothing smaller.
    NothingToCompact,
    /// Another session has its idle maintenance. This one waits for its turn and starts by itself, if nothing comes
    /// between.
    Queued,
    /// It was cancelled before it started.
    Cancelled,
}

/// Method of a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompactMethod {
    /// A summary by a model. The service at `compaction.remoteEndpoint` is not asked.
    Llm,
    /// A summary extracted without a model.
    Extractive,
}

/// Time at which a compaction starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// Immediately.
    Now,
    /// After the next complete answer without calls; immediately, if the turn is over. Until then the compaction is in
    /// `waiting` of `session/status`, also after a restart. A second request answers the same id, and its params count.
    AfterTurn,
}

/// Result of `session/compact`. The form follows from `wait` and `dryRun`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum CompactAnswer {
    /// The compaction has started. Its events follow.
    Started {
        /// Id of the operation.
        operation_id: OperationId,
    },
    /// With `wait`: the compaction has ended.
    Ended {
        /// Id of the operation.
        operation_id: OperationId,
        /// Outcome of the operation.
        outcome: Outcome,
        /// Compaction that was written.
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<Box<CompactionResult>>,
        /// Session that the summary begins.
        #[serde(skip_serializing_if = "Option::is_none")]
        new_session_id: Option<SessionId>,
        /// Error of a failed operation.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<ErrorData>,
        /// Text of the error.
        #[serde(skip_serializing_if = "Option::is_none")]
        error_message: Option<String>,
        /// Reason of a skipped operation.
        #[serde(skip_serializing_if = "Option::is_none")]
        skipped_reason: Option<WhyNothing>,
    },
    /// With `dryRun`: the plan.
    DryRun {
        /// Plan of the compaction.
        preparation: Box<Preparation>,
        /// With `draft`: the compaction that would be written.
        #[serde(skip_serializing_if = "Option::is_none")]
        draft: Option<Box<ShownDraft>>,
    },
}

/// Outcome of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The operation completed.
    Completed,
    /// The operation failed with an error.
    Failed,
    /// The operation was cancelled.
    Cancelled,
    /// There was nothing to do.
    Skipped,
}

/// A completed compaction.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompactionResult {
    /// Id of the compaction entry; null with `apply: false`.
    pub entry_id: Option<EntryId>,
    /// Summary; null where the frame would exceed 60 KiB. `session/entry` returns it whole.
    pub summary: Option<String>,
    /// Two sentences for a person; null like the summary where a hook supplied a long text.
    pub short_summary: Option<String>,
    /// First entry that is kept verbatim; null where none is.
    pub first_kept_entry_id: Option<EntryId>,
    /// Size of the context before.
    pub tokens_before: u64,
    /// Estimated size of the context after.
    pub tokens_after: u64,
    /// Lists of files, or the details of a hook; null where the frame would exceed 60 KiB.
    #[schemars(schema_with = "shapes::details")]
    pub details: Value,
    /// Whether a hook supplied the summary.
    pub from_hook: bool,
    /// Method of the summary.
    pub method: SummaryMethod,
    /// Model of the summary; null for a method without a model.
    pub model: Option<ModelRef>,
    /// Form of the requests to the model of the summary; absent for a method without a model, and for a provider's own compaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<SummaryForm>,
    /// Savings by the provider's cache; absent where nothing was read from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saved: Option<Saved>,
    /// Origins of the two parts of a split turn's summary, where they differ: one was extracted, or two models wrote them.
    /// `method` and `model` are then those of the part by a model, or of the history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<PartOrigins>,
    /// Candidates that did not become the summary, or a part of it.
    pub rejected: Vec<Rejected>,
    /// Tokens of all requests to models together; null where none was asked.
    pub usage: Option<MessageUsage>,
    /// Entries that the summary stands for.
    pub covered: Extent,
    /// Entries that are kept verbatim.
    pub kept: Extent,
    /// Facts that the summary does not have; null for a conversation that is too large to be read again. They stay in the session.
    pub lost: Option<Lost>,
    /// Entries that the compaction cuts or summarizes before any model has read them; absent where there are none. Where the
    /// frame would exceed 60 KiB, the last ones are left out: the compaction entry has an edit for each entry that is cut.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shortened: Vec<ShortenedEntry>,
    /// Files and loaded texts to bring back; absent where `compaction.rehydrate` is off, or the frame would exceed 60 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rehydration: Option<Rehydrated>,
}

/// Savings of requests by the provider's cache.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Saved {
    /// Input that was read from the cache, in tokens.
    pub tokens: u64,
    /// The difference to the price of the same input without a cache, in dollars; null where the prices of the model are not known.
    pub dollars: Option<f64>,
}

impl Saved {
    /// The savings of requests. None where nothing was read from a cache.
    #[must_use]
    pub fn of(requests: SummaryRequests) -> Option<Self> {
        let SummaryRequests { cached, dollars, .. } = requests;
        (cached > 0).then_some(Self { tokens: cached, dollars })
    }
}

/// Tokens of requests, in the form of a message's `usage`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MessageUsage {
    /// Input that was not cached.
    pub input: u64,
    /// Output.
    pub output: u64,
    /// Input that was read from the provider's cache.
    pub cache_read: u64,
    /// Input that was written to the provider's cache.
    pub cache_write: u64,
    /// All of it.
    pub total_tokens: u64,
}

impl From<message::Usage> for MessageUsage {
    fn from(usage: message::Usage) -> Self {
        let message::Usage { input, output, cache_read, cache_write, .. } = usage;
        Self { input, output, cache_read, cache_write, total_tokens: usage.context_tokens() }
    }
}

/// A part of a context.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Extent {
    /// Number of its messages.
    pub entries: usize,
    /// Size of its messages before the compaction, in tokens.
    pub tokens: u64,
}

impl Extent {
    /// The messages among these entries, in a context of this scale.
    #[must_use]
    pub fn of<'a>(entries: impl IntoIterator<Item = &'a Arc<Entry>>, scale: Scale) -> Self {
        let (mut count, mut tokens) = (0, 0);
        for entry in entries.into_iter().filter(|entry| entry.in_context()) {
            count += 1;
            tokens += u64::from(entry.tokens(scale.estimator()));
        }
        Self { entries: count, tokens: scale.size(tokens) }
    }
}

/// An entry that a compaction cuts or summarizes before any model has read it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShortenedEntry {
    /// The entry. `session/entry` returns it whole.
    pub entry_id: EntryId,
    /// Size of its message before, in tokens.
    pub tokens_before: u64,
    /// Size of its message in the context, in tokens; 0 where it is summarized.
    pub tokens_after: u64,
}

impl From<&Shortened> for ShortenedEntry {
    fn from(shortened: &Shortened) -> Self {
        let Shortened { entry, before, after } = shortened.clone();
        Self { entry_id: entry, tokens_before: before, tokens_after: after }
    }
}

/// A compaction before it is written.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShownDraft {
    /// The summary, whole.
    pub summary: String,
    /// Two sentences for a person; null where there are none.
    pub short_summary: Option<String>,
    /// First entry that is kept verbatim; null where none is.
    pub first_kept_entry_id: Option<EntryId>,
    /// Size of the context before.
    pub tokens_before: u64,
    /// Size of the context after.
    pub tokens_after: u64,
    /// Method of the summary.
    pub method: SummaryMethod,
    /// Facts that the summary does not have; null for a conversation that is too large to be read again.
    pub lost: Option<Lost>,
}

impl ShownDraft {
    /// A draft as a client sees it.
    #[must_use]
    pub fn of(draft: &Draft) -> Self {
        let short = draft.summary.short.trim();
        Self {
            summary: draft.summary.text.to_string(),
            short_summary: (!short.is_empty()).then(|| short.to_owned()),
            first_kept_entry_id: draft.plan.first_kept_id().cloned(),
            tokens_before: draft.plan.demand.tokens_before,
            tokens_after: draft.tokens_after,
            method: draft.origin().method,
            lost: draft.lost.as_deref().cloned(),
        }
    }
}

/// Plan of a compaction.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Preparation {
    /// First entry that would be kept verbatim; null where none would.
    pub first_kept_entry_id: Option<EntryId>,
    /// Number of messages in whole turns that would be summarized.
    pub messages_to_summarize: usize,
    /// Number of messages that would be summarized from a turn whose end is kept.
    pub turn_prefix_messages: usize,
    /// Whether the cut is inside a turn.
    pub is_split_turn: bool,
    /// Size of the context now.
    pub tokens_before: u64,
    /// Upper bound of the context's size after the compaction.
    pub tokens_after_estimate: u64,
    /// `would_not_shrink` where a summary of the largest size makes nothing smaller. With such a summary the compaction is skipped,
    /// unless it has instructions. Absent where the context becomes smaller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<WhyNothing>,
    /// Summary in force, which would be merged into the new one.
    pub previous_summary: Option<String>,
    /// Number of model requests. Each but the first of a long conversation carries the summary so far, whose length is a guess.
    pub chunks: usize,
    /// Author of the summary.
    pub summarizer: Summarizer,
    /// Files of the summarized messages.
    pub file_ops: FileOps,
    /// Fingerprint of the plan: equal plans of one session have equal values.
    pub plan_hash: String,
}

impl Preparation {
    /// The plan with its preview. `summarizer` is the model that would be asked first; without one the summary is
    /// extracted. `requests` is the number of requests to that model.
    #[must_use]
    pub fn of(plan: &Plan, preview: Preview, summarizer: Option<ModelRef>, requests: usize) -> Self {
        Self {
            first_kept_entry_id: plan.first_kept_id().cloned(),
            messages_to_summarize: preview.history_messages,
            turn_prefix_messages: preview.turn_prefix_messages,
            is_split_turn: plan.splits_a_turn(),
            tokens_before: plan.demand.tokens_before,
            tokens_after_estimate: preview.tokens_after,
            warning: (preview.effect == Effect::MayNotShrink).then_some(WhyNothing::WouldNotShrink),
            previous_summary: preview.previous_summary,
            chunks: requests,
            summarizer: summarizer.map_or(Summarizer::Extractive(ExtractiveWord::Extractive), Summarizer::Model),
            file_ops: FileOps { read: preview.files.read_files, modified: preview.files.modified_files },
            plan_hash: plan.hash(),
        }
    }
}

/// Author of a summary.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Summarizer {
    /// No model: `"extractive"`.
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

/// Files that a conversation touched.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FileOps {
    /// Files that were read and not changed.
    pub read: Vec<String>,
    /// Files that were changed.
    pub modified: Vec<String>,
}
