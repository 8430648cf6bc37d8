//! Params and answers of the hooks: requests at certain points of an operation, by which the client takes part in it.

use crate::{
    compaction::{plan::Plan, preview::Preview},
    conversation::entry::Entry,
    ids::{EntryId, OperationId, SessionId},
    protocol::{
        events::Reason,
        types::{FileOps, Object, ShownDraft},
    },
    settings::CompactionSettings,
    text::faults,
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// Params of `hook/session_before_compact`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BeforeCompactParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// Id of the operation.
    pub operation_id: OperationId,
    /// Reason of the compaction.
    pub reason: Reason,
    /// Whether the turn is repeated after the compaction.
    pub will_retry: bool,
    /// Instructions of the request: topics to keep above all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Plan of the compaction.
    pub preparation: HookPreparation,
    /// Time after which the answer is ignored, in milliseconds.
    pub deadline_ms: Option<u64>,
}

/// Plan of a compaction, as a hook receives it. `session/entries` and `session/entry` return the messages, also during the
/// hook.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookPreparation {
    /// First entry that would be kept verbatim; null where none would.
    pub first_kept_entry_id: Option<EntryId>,
    /// Size of the context now.
    pub tokens_before: u64,
    /// Whether the cut is inside a turn.
    pub is_split_turn: bool,
    /// Summary in force, which the new one has to cover.
    pub previous_summary: Option<String>,
    /// Messages in whole turns that would be summarized.
    pub messages_to_summarize: MessageRange,
    /// Messages that would be summarized from a turn whose end is kept.
    pub turn_prefix_messages: MessageRange,
    /// Files of the summarized messages.
    pub file_ops: FileOps,
    /// Data that the previous compaction carries for other programs and hooks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_preserve_data: Option<Object>,
    /// Settings in force.
    pub settings: CompactionSettings,
}

/// Messages that follow each other on the path.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MessageRange {
    /// First message; null where there is none.
    pub first_entry_id: Option<EntryId>,
    /// Last message; null where there is none.
    pub last_entry_id: Option<EntryId>,
    /// Number of messages.
    pub count: usize,
}

/// Answer of `hook/session_before_compact`. Null is `continue`.
#[derive(Debug, Clone, PartialEq, JsonSchema)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum BeforeCompactAnswer {
    /// The compaction goes on.
    Continue {},
    /// The compaction ends with the outcome `cancelled`.
    Cancel {
        /// Reason, for the end event of the hook.
        #[serde(default)]
        reason: Option<String>,
    },
    /// The compaction takes this summary. No model is asked.
    Replace {
        /// The compaction.
        compaction: Box<SuppliedCompaction>,
    },
}

impl<'de> Deserialize<'de> for BeforeCompactAnswer {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(expecting = "an object with `action`")]
        struct Answer {
            action: Action,
            #[serde(default)]
            reason: Option<Value>,
            #[serde(default)]
            compaction: Option<Value>,
        }
        let Answer { action, reason, compaction } = Answer::deserialize(reader)?;
        Ok(match action {
            Action::Continue => Self::Continue {},
            Action::Cancel => Self::Cancel { reason: faults::optional_member("reason", reason)? },
            Action::Replace => Self::Replace { compaction: faults::member("compaction", compaction)? },
        })
    }
}

/// The decision of an answer.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Action {
    Continue,
    Cancel,
    Replace,
}

/// A compaction that a hook supplies.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SuppliedCompaction {
    /// Summary of everything before the first kept entry.
    pub summary: String,
    /// Two sentences for a person.
    #[serde(default)]
    pub short_summary: Option<String>,
    /// First entry that stays verbatim. Default: the one of the preparation.
    #[serde(default)]
    pub first_kept_entry_id: Option<EntryId>,
    /// Any JSON. It is stored as it is and never read for files.
    #[serde(default)]
    pub details: Option<Value>,
    /// Data that is stored with the compaction. Later compactions carry it on; the key `abridged` is not available.
    #[serde(default)]
    pub preserve_data: Option<Object>,
}

/// Params of `hook/session_compacting`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompactingParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// Id of the operation.
    pub operation_id: OperationId,
    /// Reason of the compaction.
    pub reason: Reason,
    /// Data that the previous compaction carries for other programs and hooks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_preserve_data: Option<Object>,
    /// Time after which the answer is ignored, in milliseconds.
    pub deadline_ms: Option<u64>,
}

/// Params of `hook/session_compact_draft`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompactDraftParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// Id of the operation.
    pub operation_id: OperationId,
    /// Reason of the compaction.
    pub reason: Reason,
    /// The draft.
    pub draft: ShownDraft,
    /// Time after which the answer is ignored, in milliseconds.
    pub deadline_ms: Option<u64>,
}

/// Answer of `hook/session_compacting`. Null changes nothing.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CompactingAnswer {
    /// Prompt for the summary. Default: the prompt in force.
    pub prompt: Option<String>,
    /// Lines beside the conversation. Every request for the summary has them.
    pub context: Option<Vec<String>>,
    /// Data that is stored with the compaction. Later compactions carry it on; the key `abridged` is not available.
    pub preserve_data: Option<Object>,
}

impl HookPreparation {
    /// The plan with its preview.
    #[must_use]
    pub fn of(plan: &Plan, preview: Preview, settings: CompactionSettings) -> Self {
        let carried = plan.carried_data();
        Self {
            first_kept_entry_id: plan.first_kept_id().cloned(),
            tokens_before: plan.demand.tokens_before,
            is_split_turn: plan.splits_a_turn(),
            previous_summary: preview.previous_summary,
            messages_to_summarize: MessageRange::of(plan.history()),
            turn_prefix_messages: MessageRange::of(plan.turn_prefix()),
            file_ops: FileOps { read: preview.files.read_files, modified: preview.files.modified_files },
            previous_preserve_data: (!carried.is_empty()).then(|| Object(carried.clone())),
            settings,
        }
    }
}

impl MessageRange {
    fn of(entries: &[Arc<Entry>]) -> Self {
        let mut messages = entries.iter().filter(|entry| entry.in_context());
        let first_entry_id = messages.next().map(|entry| entry.id.clone());
        let last_entry_id = entries.iter().rev().find(|entry| entry.in_context()).map(|entry| entry.id.clone());
        Self { count: messages.count() + usize::from(first_entry_id.is_some()), first_entry_id, last_entry_id }
    }
}
