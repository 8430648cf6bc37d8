//! The events of a session: the table, and the types of their fields.

use super::{
    codes::{ErrorData, WhyNothing},
    notices::{NoticeCode, Warning},
    types::{CompactionResult, Entry, HookEvent, Outcome, Queue, Repair, Status, Usage},
};
use crate::{
    ask::purpose::Purpose,
    ids::{CallId, EntryId, ModelRef, OperationId, SessionId},
    settings::{Settings, Source, masked},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// How long the outbox keeps an event for a client that reads slowly or is away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeping {
    /// Kept for a later `session/subscribe`, and dropped only together with all waiting events of its session.
    Durable,
    /// Dropped when too much waits.
    Droppable,
    /// Replaced by the next event of its type when too much waits.
    Replaceable,
}

macro_rules! events {
    ($($(#[doc = $doc:literal])+ $keeping:ident $variant:ident = $name:literal {
        $($(#[$attribute:meta])+ $field:ident: $type:ty,)*
    })+) => {
        /// Event of a session.
        #[derive(Debug, Clone, Serialize, JsonSchema)]
        #[serde(tag = "type", rename_all_fields = "camelCase")]
        #[schemars(rename = "SessionEvent")]
        pub enum Event {
            $(
                $(#[doc = $doc])+
                #[serde(rename = $name)]
                $variant { $($(#[$attribute])+ $field: $type,)* },
            )+
        }

        impl Event {
            /// The `type` on the wire.
            #[must_use]
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $name,)+
                }
            }

            /// How long the outbox keeps it.
            #[must_use]
            pub fn keeping(&self) -> Keeping {
                match self {
                    $(Self::$variant { .. } => Keeping::$keeping,)+
                }
            }
        }
    };
}

// A line for each event: how long it is kept, its variant, its `type` on the wire, its fields.
events! {
    /// An entry is on disk. An entry that exceeds a frame is announced by its type; its id is in the envelope.
    Durable EntryAppended = "entry_appended" {
        /// The entry.
        #[serde(skip_serializing_if = "Option::is_none")]
        entry: Option<Entry>,
        /// Type of an entry that is not sent along.
        #[serde(skip_serializing_if = "Option::is_none")]
        entry_type: Option<String>,
    }
    /// A compaction has started.
    Durable CompactionStart = "compaction_start" {
        /// Reason of the compaction.
        reason: Reason,
        /// Strategy of the compaction.
        strategy: Strategy,
        /// Size of the context.
        tokens_before: u64,
        /// Size of the window.
        context_window: u64,
        /// Size above which the context is compacted.
        threshold_tokens: u64,
        /// Whether the turn is repeated afterwards.
        will_retry: bool,
    }
    /// Progress of a compaction. Steps of a stage and the share never fall, also where another model begins anew.
    Replaceable CompactionProgress = "compaction_progress" {
        /// Current stage.
        stage: Stage,
        /// Finished steps of the stage. While the summary is made, its requests.
        done: usize,
        /// Steps of the stage.
        total: usize,
        /// Part of the whole compaction that is done, from 0 to 1.
        share: f64,
        /// Model that writes the summary now.
        #[serde(skip_serializing_if = "Option::is_none")]
        model: Option<ModelRef>,
        /// Time until the summary is made, in milliseconds, from the time of the requests before. Absent before the first one is
        /// done.
        #[serde(skip_serializing_if = "Option::is_none")]
        remaining_ms: Option<u64>,
    }
    /// A piece of a summary that is being written.
    Droppable SummaryChunk = "summary_chunk" {
        /// Part of the summary.
        source: ChunkSource,
        /// Number of the chunk of the conversation that the text adds, from 1. Each chunk rewrites the text of the source, so
        /// the newest `part` and `attempt` hold the whole text.
        part: u32,
        /// Number of the try of this chunk, from 1. Pieces of earlier tries are void.
        attempt: u32,
        /// Text of the piece.
        text: String,
    }
    /// A model request failed and is sent again after a delay.
    Durable RetryStart = "retry_start" {
        /// Purpose of the request.
        source: RetrySource,
        /// Number of the retry, from 1.
        attempt: u32,
        /// Largest number of retries.
        max_attempts: u32,
        /// Delay, in milliseconds.
        delay_ms: u64,
        /// Error of the failed request.
        error: ErrorData,
        /// The same error for a person.
        error_message: String,
    }
    /// Result of a retry. Each `retry_start` has exactly one.
    Durable RetryEnd = "retry_end" {
        /// Purpose of the request.
        source: RetrySource,
        /// Whether the request was answered.
        success: bool,
        /// Number of the retry.
        attempt: u32,
        /// Error of a failed retry.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<ErrorData>,
        /// The same error for a person.
        #[serde(skip_serializing_if = "Option::is_none")]
        error_message: Option<String>,
    }
    /// A compaction has ended. Each `compaction_start` has exactly one.
    Durable CompactionEnd = "compaction_end" {
        /// Reason of the compaction.
        reason: Reason,
        /// Outcome.
        outcome: Outcome,
        /// The compaction that was written.
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<Box<CompactionResult>>,
        /// Session that the summary begins, or that continues after a handoff.
        #[serde(skip_serializing_if = "Option::is_none")]
        new_session_id: Option<SessionId>,
        /// Error of a failed compaction.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<ErrorData>,
        /// The same error for a person.
        #[serde(skip_serializing_if = "Option::is_none")]
        error_message: Option<String>,
        /// Reason of a skipped compaction.
        #[serde(skip_serializing_if = "Option::is_none")]
        skipped_reason: Option<WhyNothing>,
        /// Whether the turn is repeated now.
        will_retry: bool,
        /// Whether the session continues without input.
        will_continue: bool,
        /// Duration, in milliseconds.
        duration_ms: u64,
        /// Fullness of the context.
        usage: Usage,
    }
    /// A turn that failed is being repaired. The compactions of the recovery have its id.
    Durable RecoveryStart = "recovery_start" {
        /// Reason of the recovery.
        reason: RecoveryReason,
        /// The answer that leaves the context.
        #[serde(skip_serializing_if = "Option::is_none")]
        removed_entry_id: Option<EntryId>,
        /// Remedy.
        action: RecoveryAction,
    }
    /// The end of a recovery.
    Durable RecoveryEnd = "recovery_end" {
        /// Outcome.
        outcome: RecoveryOutcome,
        /// Whether the turn is to be repeated with the context as it is now.
        will_retry: bool,
        /// Error of a failed recovery.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<ErrorData>,
        /// The same error for a person.
        #[serde(skip_serializing_if = "Option::is_none")]
        error_message: Option<String>,
    }
    /// Idle maintenance has started. The status of the session stays `idle`, and the compaction inside has its id.
    Durable IdleStart = "idle_start" {
        /// Size of the context.
        context_tokens: u64,
        /// Time since the last activity, in seconds.
        idle_seconds: u64,
    }
    /// Idle maintenance has ended. Each `idle_start` has exactly one, after the `compaction_end`, which names the error of
    /// one that failed. Activity cancels it.
    Durable IdleEnd = "idle_end" {
        /// Outcome.
        outcome: Outcome,
        /// Reason of skipped maintenance, as in `compaction_end`.
        #[serde(skip_serializing_if = "Option::is_none")]
        skipped_reason: Option<WhyNothing>,
    }
    /// The summary of a branch has started. The session moves to another branch after it.
    Durable BranchSummaryStart = "branch_summary_start" {
        /// Leaf of the branch that is left.
        old_leaf_id: Option<EntryId>,
        /// Entry to which the session moves.
        target_entry_id: EntryId,
        /// Newest entry of both branches.
        common_ancestor_id: Option<EntryId>,
        /// Number of entries that are left.
        entry_count: usize,
    }
    /// The summary of a branch has ended. Each `branch_summary_start` has exactly one. Nothing has changed, if it did not
    /// complete.
    Durable BranchSummaryEnd = "branch_summary_end" {
        /// Outcome.
        outcome: Outcome,
        /// Entry with the summary.
        #[serde(skip_serializing_if = "Option::is_none")]
        summary_entry_id: Option<EntryId>,
        /// Error of a failed summary.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<ErrorData>,
        /// The same error for a person.
        #[serde(skip_serializing_if = "Option::is_none")]
        error_message: Option<String>,
    }
    /// The session has moved to another branch.
    Durable TreeChanged = "tree_changed" {
        /// Leaf before.
        old_leaf_id: Option<EntryId>,
        /// Leaf now.
        new_leaf_id: Option<EntryId>,
        /// Entry with the summary of the branch that was left.
        #[serde(skip_serializing_if = "Option::is_none")]
        summary_entry_id: Option<EntryId>,
        /// Label of the entry with the summary, or of the target.
        #[serde(skip_serializing_if = "Option::is_none")]
        label: Option<String>,
    }
    /// A handoff has started.
    Durable HandoffStart = "handoff_start" {
        /// Goal of the new session.
        #[serde(skip_serializing_if = "Option::is_none")]
        goal: Option<String>,
    }
    /// A handoff has ended. Each `handoff_start` has exactly one. Without `newSessionId` there is no new session.
    Durable HandoffEnd = "handoff_end" {
        /// Outcome.
        outcome: Outcome,
        /// The session that goes on. It is open.
        #[serde(skip_serializing_if = "Option::is_none")]
        new_session_id: Option<SessionId>,
        /// Error of a failed handoff.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<ErrorData>,
        /// The same error for a person.
        #[serde(skip_serializing_if = "Option::is_none")]
        error_message: Option<String>,
    }
    /// Another session goes on in the place of this one, which stays as it is. It is the last event of a handoff, also after
    /// `settled`.
    Durable SessionReplaced = "session_replaced" {
        /// The session that goes on.
        new_session_id: SessionId,
        /// Reason.
        reason: Replacement,
    }
    /// The session has another model.
    Durable ModelChanged = "model_changed" {
        /// The model before.
        from: Option<ModelRef>,
        /// The model now.
        to: ModelRef,
        /// Reason of the change.
        reason: ModelChange,
    }
    /// The fullness of the context has changed.
    Replaceable UsageUpdated = "usage_updated" {
        /// The whole value.
        usage: Usage,
    }
    /// The activity of the session has changed.
    Durable StatusChanged = "status_changed" {
        /// The whole value.
        status: Status,
    }
    /// Old tool results were replaced by one line each.
    Durable Pruned = "pruned" {
        /// Entries of these results.
        entry_ids: Vec<EntryId>,
        /// Estimated saving, in tokens.
        tokens_saved: u64,
        /// Reason of the pruning.
        why: String,
    }
    /// A hook of the client is called.
    Durable HookStart = "hook_start" {
        /// Hook.
        hook: HookEvent,
    }
    /// A hook has ended. Each `hook_start` has exactly one.
    Durable HookEnd = "hook_end" {
        /// Hook.
        hook: HookEvent,
        /// Outcome.
        outcome: HookOutcome,
        /// Time that it took, in milliseconds.
        duration_ms: u64,
        /// Reason of a cancel or of an error.
        #[serde(skip_serializing_if = "Option::is_none")]
        error_message: Option<String>,
    }
    /// The index is complete. Requests that need it no longer wait.
    Durable IndexReady = "index_ready" {
        /// Number of entries.
        entry_count: usize,
        /// Title of the session.
        title: Option<String>,
        /// Faults of the file that `session/load` has not reported.
        repairs: Vec<Repair>,
    }
    /// A turn has started. Its id is the `turnId` of the envelope.
    Durable TurnStart = "turn_start" {
    }
    /// The end of a turn. Each `turn_start` has exactly one.
    Durable TurnEnd = "turn_end" {
        /// Outcome: `completed`, `failed` or `cancelled`.
        outcome: Outcome,
        /// The stop reason of the last answer; null for a turn without one.
        stop_reason: Option<String>,
        /// Fullness of the context.
        usage: Usage,
        /// Error of a failed turn.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<ErrorData>,
        /// The same error for a person.
        #[serde(skip_serializing_if = "Option::is_none")]
        error_message: Option<String>,
    }
    /// A piece of the answer that a model is writing. The entry after it has the whole answer.
    Droppable MessageDelta = "message_delta" {
        /// Place of the content block in the message.
        content_index: usize,
        /// Kind of the block.
        kind: DeltaKind,
        /// The piece.
        text: String,
    }
    /// The client is asked to execute a tool.
    Durable ToolStart = "tool_start" {
        /// Id of the call.
        tool_call_id: CallId,
        /// Name of the tool.
        name: String,
        /// Arguments of the call.
        #[schemars(with = "super::types::CallArguments")]
        arguments: Box<RawValue>,
    }
    /// A call has its result. Each `tool_start` has exactly one.
    Durable ToolEnd = "tool_end" {
        /// Id of the call.
        tool_call_id: CallId,
        /// Whether the tool failed.
        is_error: bool,
    }
    /// The queue of messages has changed.
    Durable QueueChanged = "queue_changed" {
        /// The whole queue.
        queue: Queue,
    }
    /// The settings in force for the session have changed.
    Durable SettingsChanged = "settings_changed" {
        /// All settings.
        #[serde(serialize_with = "masked::serialize")]
        settings: Box<Settings>,
        /// Source of each value that is not a default, by its dotted key.
        sources: BTreeMap<String, Source>,
    }
    /// A message for a person.
    Durable Notice = "notice" {
        /// Severity.
        severity: Severity,
        /// Its subject, for programs.
        code: NoticeCode,
        /// Message in one line.
        title: String,
        /// Further details.
        #[serde(skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
    }
    /// Nothing runs without new input.
    Durable Settled = "settled" {
        /// Whether the last operation was cancelled.
        aborted: bool,
    }
}

/// Kind of a content block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeltaKind {
    /// Text.
    Text,
    /// Reasoning.
    Thinking,
    /// Arguments of a tool call, as JSON.
    ToolCall,
}

impl Event {
    /// Whether the id in its envelope is that of a turn.
    #[must_use]
    pub fn is_of_turn(&self) -> bool {
        match self {
            Self::TurnStart {}
            | Self::TurnEnd { .. }
            | Self::MessageDelta { .. }
            | Self::ToolStart { .. }
            | Self::ToolEnd { .. } => true,
            Self::RetryStart { source, .. } | Self::RetryEnd { source, .. } => *source == RetrySource::Turn,
            _ => false,
        }
    }
}

/// Reason of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "CompactionReason")]
pub enum Reason {
    /// A request of the client.
    Manual,
    /// The context exceeds the threshold.
    Threshold,
    /// The provider rejected the context as too long.
    Overflow,
    /// The answer was cut off.
    Incomplete,
    /// The session was idle.
    Idle,
    /// The new model has a smaller window.
    ModelSwitch,
}

impl Reason {
    /// Reads the reason that a lock file records.
    #[must_use]
    pub fn read(text: &str) -> Self {
        serde_json::from_value(text.into()).unwrap_or(Self::Manual)
    }
}

/// Reason of a recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecoveryReason {
    /// The provider rejected the context as too long.
    Overflow,
    /// The answer was cut off.
    Incomplete,
}

impl RecoveryReason {
    /// Reads the reason that a lock file records.
    #[must_use]
    pub fn read(text: &str) -> Self {
        serde_json::from_value(text.into()).unwrap_or(Self::Overflow)
    }
}

impl From<RecoveryReason> for Reason {
    fn from(reason: RecoveryReason) -> Self {
        match reason {
            RecoveryReason::Overflow => Self::Overflow,
            RecoveryReason::Incomplete => Self::Incomplete,
        }
    }
}

/// Remedy of a recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecoveryAction {
    /// The session moves to a larger model.
    PromoteModel,
    /// The context is compacted.
    Compact,
    /// A new session continues from a document.
    Handoff,
    /// The turn is repeated as it is.
    Retry,
}

/// Outcome of a recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecoveryOutcome {
    /// There is a context to repeat the turn with.
    Recovered,
    /// There is none.
    Failed,
    /// The recovery was cancelled.
    Cancelled,
}

/// Reason of a change of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ModelChangeReason")]
pub enum ModelChange {
    /// The context needs a larger window.
    Promotion,
    /// The model before cannot be asked.
    Fallback,
    /// A request of the client.
    User,
    /// The session goes on at an entry where another model was in force.
    Restore,
}

/// Reason for which another session goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ReplacementReason")]
pub enum Replacement {
    /// A handoff.
    Handoff,
}

/// Strategy of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "CompactionStrategy")]
pub enum Strategy {
    /// The older messages are replaced by a summary.
    ContextFull,
    /// A new session continues from a document.
    Handoff,
}

/// Stage of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Old tool results are cut.
    Pruning,
    /// A hook of the client is called.
    Hook,
    /// The summary is written.
    Summarizing,
    /// The resulting context is measured.
    Checking,
    /// The compaction is written to the file.
    Writing,
}

/// Outcome of a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookOutcome {
    /// The operation goes on.
    Ok,
    /// The hook cancelled the operation, or the operation ended before the answer.
    Cancelled,
    /// The operation takes the summary of the hook.
    Replaced,
    /// The client did not answer in time.
    Timeout,
    /// The client answered with an error, or with a summary that is not used. Also where the process that asked ended before
    /// the answer.
    Error,
}

/// Part of a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChunkSource {
    /// Whole turns.
    History,
    /// Beginning of a turn whose end is kept.
    TurnPrefix,
    /// Summary of a branch.
    Branch,
    /// Document of a handoff.
    Handoff,
}

/// Purpose of a model request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RetrySource {
    /// A turn.
    Turn,
    /// Summary of whole turns.
    History,
    /// Summary of the beginning of a turn.
    TurnPrefix,
    /// Two sentences for a person.
    ShortSummary,
    /// Summary of a branch.
    Branch,
    /// Document of a handoff.
    Handoff,
}

impl RetrySource {
    /// The name that a lock file records.
    #[must_use]
    pub fn name(self) -> String {
        let name = serde_json::to_value(self).ok();
        name.and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
    }

    /// Reads the name that a lock file records.
    #[must_use]
    pub fn read(name: &str) -> Option<Self> {
        serde_json::from_value(name.into()).ok()
    }
}

impl ChunkSource {
    /// The part that a request of this purpose writes. None where its text is not sent.
    #[must_use]
    pub fn of(purpose: Purpose) -> Option<Self> {
        match purpose {
            Purpose::Compaction => Some(Self::History),
            Purpose::TurnPrefix => Some(Self::TurnPrefix),
            Purpose::BranchSummary => Some(Self::Branch),
            Purpose::Handoff => Some(Self::Handoff),
            Purpose::Turn | Purpose::ShortSummary => None,
        }
    }
}

impl From<Purpose> for RetrySource {
    fn from(purpose: Purpose) -> Self {
        match purpose {
            Purpose::Turn => Self::Turn,
            Purpose::Compaction => Self::History,
            Purpose::TurnPrefix => Self::TurnPrefix,
            Purpose::ShortSummary => Self::ShortSummary,
            Purpose::BranchSummary => Self::Branch,
            Purpose::Handoff => Self::Handoff,
        }
    }
}

impl From<Warning> for Event {
    fn from(warning: Warning) -> Self {
        let Warning { code, title, detail } = warning;
        Self::Notice { severity: Severity::Warning, code, title: title.to_owned(), detail: Some(detail) }
    }
}

/// Severity of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Information.
    Info,
    /// A problem that needs attention.
    Warning,
    /// A failure that needs action.
    Error,
}

/// Params of `session/event`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Envelope<'a> {
    /// Session of the event.
    pub session_id: &'a SessionId,
    /// Run of the daemon.
    pub epoch: &'a str,
    /// Number of the event, without gaps within a session and epoch.
    pub seq: u64,
    /// Time of the event.
    pub ts: &'a str,
    /// Whether the event is retained for `session/subscribe`.
    pub durable: bool,
    /// Entry that the event is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry_id: Option<&'a EntryId>,
    /// Operation that the event is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<&'a OperationId>,
    /// Turn that the event is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<&'a OperationId>,
    /// The event.
    #[schemars(with = "Event")]
    pub event: &'a RawValue,
}
