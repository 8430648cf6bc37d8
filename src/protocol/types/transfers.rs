//! Params and results of `session/navigate`, `session/handoff` and `session/reference`.

use super::Outcome;
use crate::{
    ids::{EntryId, OperationId, SessionId},
    models::ModelRef,
    protocol::codes::ErrorData,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Params of `session/navigate`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NavigateParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// Entry at which the conversation goes on. For a message of the user it goes on before that message, whose text is in
    /// the result.
    pub target_entry_id: EntryId,
    /// Summarize the branch that is left. Default: the setting `branchSummary.enabled`.
    #[serde(default)]
    pub summarize: Option<bool>,
    /// Topics that the summary keeps above all. At most 65536 bytes.
    #[serde(default)]
    pub instructions: Option<String>,
    /// The instructions take the place of the prompt. Default: false.
    #[serde(default)]
    pub replace_instructions: Option<bool>,
    /// Label of the entry with the summary; without a summary, of the target. At most 1024 bytes.
    #[serde(default)]
    pub label: Option<String>,
    /// Answer when the session has moved.
    #[serde(default)]
    pub wait: Option<bool>,
}

/// Result of `session/navigate`. The form follows from `wait`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged, rename_all_fields = "camelCase")]
#[expect(clippy::large_enum_variant, reason = "one lives at a time")]
pub enum NavigateAnswer {
    /// The navigation has started. Its events follow.
    Started {
        /// Id of the operation.
        operation_id: OperationId,
    },
    /// With `wait`: the navigation has ended.
    Ended {
        /// Id of the operation.
        operation_id: OperationId,
        /// Outcome of the operation.
        outcome: Outcome,
        /// Leaf before; null for a session without entries.
        old_leaf_id: Option<EntryId>,
        /// Leaf now; null before the first entry.
        new_leaf_id: Option<EntryId>,
        /// Text of the message before which the conversation goes on; null for any other target.
        editor_text: Option<String>,
        /// Entry with the summary of the branch that was left.
        summary_entry_id: Option<EntryId>,
        /// Error of a failed operation.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<ErrorData>,
        /// Text of the error.
        #[serde(skip_serializing_if = "Option::is_none")]
        error_message: Option<String>,
    },
}

/// Params of `session/handoff`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HandoffParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// Goal of the new session, of at most 8,000 characters. The document is written for it.
    #[serde(default)]
    pub goal: Option<String>,
    /// Topics that the document keeps above all, in at most 8,000 characters.
    #[serde(default)]
    pub instructions: Option<String>,
    /// The model that writes the document, and no other. Default: the session's.
    #[serde(default)]
    pub model: Option<ModelRef>,
    /// Return the document without a new session.
    #[serde(default)]
    pub dry_run: Option<bool>,
    /// The document. No model is asked.
    #[serde(default)]
    pub document: Option<String>,
    /// Save the document as a file beside the new session, too. Default: false.
    #[serde(default)]
    pub save: Option<bool>,
    /// Answer when the new session is open.
    #[serde(default)]
    pub wait: Option<bool>,
}

/// Result of `session/handoff`. The form follows from `wait` and `dryRun`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum HandoffAnswer {
    /// The handoff has started. Its events follow.
    Started {
        /// Id of the operation.
        operation_id: OperationId,
    },
    /// With `wait`: the handoff has ended.
    Ended {
        /// Id of the operation.
        operation_id: OperationId,
        /// Outcome of the operation.
        outcome: Outcome,
        /// The session that goes on.
        #[serde(skip_serializing_if = "Option::is_none")]
        new_session_id: Option<SessionId>,
        /// The document.
        #[serde(skip_serializing_if = "Option::is_none")]
        document: Option<String>,
        /// File with the document, if `save` asked for one.
        #[serde(skip_serializing_if = "Option::is_none")]
        saved_path: Option<String>,
        /// Error of a failed operation.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<ErrorData>,
        /// Text of the error.
        #[serde(skip_serializing_if = "Option::is_none")]
        error_message: Option<String>,
    },
    /// With `dryRun`: the document.
    Draft {
        /// The document.
        document: String,
    },
}

/// Params of `session/reference`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReferenceParams {
    /// Id of the session that receives the extract.
    pub session_id: SessionId,
    /// Id of the session that is read.
    pub from_session_id: SessionId,
    /// The question that the extract answers. Default: everything that helps the conversation of this session.
    #[serde(default)]
    pub question: Option<String>,
    /// Answer when the extract is written.
    #[serde(default)]
    pub wait: Option<bool>,
}

/// Result of `session/reference`. The form follows from `wait`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum ReferenceAnswer {
    /// The extraction has started. Its events follow.
    Started {
        /// Id of the operation.
        operation_id: OperationId,
    },
    /// With `wait`: the extraction has ended.
    Ended {
        /// Id of the operation.
        operation_id: OperationId,
        /// Outcome of the operation.
        outcome: Outcome,
        /// The `custom_message` with the extract.
        #[serde(skip_serializing_if = "Option::is_none")]
        entry_id: Option<EntryId>,
        /// Error of a failed operation.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<ErrorData>,
        /// Text of the error.
        #[serde(skip_serializing_if = "Option::is_none")]
        error_message: Option<String>,
    },
}
