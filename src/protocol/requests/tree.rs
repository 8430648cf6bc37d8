//! Params and answer of `hook/session_before_tree`: the client takes part in a move of the leaf to another branch.

use super::{MessageRange, hooks::Action};
use crate::{
    ids::{EntryId, OperationId, SessionId},
    text::faults,
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// Params of `hook/session_before_tree`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BeforeTreeParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// Id of the operation.
    pub operation_id: OperationId,
    /// Entry to which the leaf moves.
    pub target_entry_id: EntryId,
    /// Leaf now; null for a session without entries.
    pub old_leaf_id: Option<EntryId>,
    /// Newest entry of both branches; null where they have none in common.
    pub common_ancestor_id: Option<EntryId>,
    /// Entries of the branch that is left, after the common ancestor.
    pub entries_to_summarize: MessageRange,
    /// Whether a summary of the branch was asked for. A summary of the answer is used only then.
    pub user_wants_summary: bool,
    /// Instructions of the request: topics to keep above all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Time after which the answer is ignored, in milliseconds.
    pub deadline_ms: Option<u64>,
}

/// Answer of `hook/session_before_tree`. Null is `continue`.
#[derive(Debug, Clone, PartialEq, JsonSchema)]
#[serde(tag = "action", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum BeforeTreeAnswer {
    /// The leaf moves.
    Continue {
        /// Instructions for the summary. Default: those of the request.
        #[serde(default)]
        instructions: Option<String>,
        /// Whether the instructions take the place of the prompt. Default: the choice of the request.
        #[serde(default)]
        replace_instructions: Option<bool>,
        /// Label of the entry with the summary. Default: that of the request.
        #[serde(default)]
        label: Option<String>,
    },
    /// The leaf stays.
    Cancel {
        /// Reason, for the end event of the hook.
        #[serde(default)]
        reason: Option<String>,
    },
    /// The leaf moves with this summary. No model is asked.
    Replace {
        /// The summary.
        summary: SuppliedBranchSummary,
        /// Label of the entry with the summary. Default: that of the request.
        #[serde(default)]
        label: Option<String>,
    },
}

impl<'de> Deserialize<'de> for BeforeTreeAnswer {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase", expecting = "an object with `action`")]
        struct Answer {
            action: Action,
            #[serde(default)]
            instructions: Option<Value>,
            #[serde(default)]
            replace_instructions: Option<Value>,
            #[serde(default)]
            label: Option<Value>,
            #[serde(default)]
            reason: Option<Value>,
            #[serde(default)]
            summary: Option<Value>,
        }
        let Answer { action, instructions, replace_instructions, label, reason, summary } =
            Answer::deserialize(reader)?;
        Ok(match action {
            Action::Continue => Self::Continue {
                instructions: faults::optional_member("instructions", instructions)?,
                replace_instructions: faults::optional_member("replaceInstructions", replace_instructions)?,
                label: faults::optional_member("label", label)?,
            },
            Action::Cancel => Self::Cancel { reason: faults::optional_member("reason", reason)? },
            Action::Replace => Self::Replace {
                summary: faults::member("summary", summary)?,
                label: faults::optional_member("label", label)?,
            },
        })
    }
}

/// The summary of a branch that a hook supplies.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SuppliedBranchSummary {
    /// Summary of the branch that is left.
    pub summary: String,
    /// Any JSON. It is stored as it is and never read for files.
    #[serde(default)]
    pub details: Option<Value>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_answer_of_the_contract_is_read() {
        let read = |value: Value| serde_json::from_value::<BeforeTreeAnswer>(value).ok();
        let unchanged = BeforeTreeAnswer::Continue { instructions: None, replace_instructions: None, label: None };
        assert_eq!(read(json!({"action": "continue"})), Some(unchanged));
        let more = json!({"action": "continue", "instructions": "files", "replaceInstructions": true, "label": "l"});
        let (instructions, label) = (Some("files".to_owned()), Some("l".to_owned()));
        let changed = BeforeTreeAnswer::Continue { instructions, replace_instructions: Some(true), label };
        assert_eq!(read(more), Some(changed));
        assert_eq!(read(json!({"action": "cancel"})), Some(BeforeTreeAnswer::Cancel { reason: None }));
        let summary = SuppliedBranchSummary { summary: "s".to_owned(), details: Some(json!({"n": 1})) };
        let replaced = json!({"action": "replace", "summary": {"summary": "s", "details": {"n": 1}}});
        assert_eq!(read(replaced), Some(BeforeTreeAnswer::Replace { summary, label: None }));
        for wrong in [json!({}), json!({"action": "replace"}), json!({"action": "replace", "summary": "s"}), json!(7)] {
            assert_eq!(read(wrong.clone()), None, "{wrong}");
        }
    }
}
