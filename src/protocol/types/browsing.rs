//! Params and results of the methods that annotate and browse a session.

use crate::{
    conversation::{
        entry::{Body, Entry},
        message::outline::Role,
        tokens::Estimator,
    },
    ids::{EntryId, SessionId},
    models::ModelRef,
    settings::TokenLimit,
    text,
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// Deserializes an explicit null as `Some(None)`: null clears a field, and a missing field leaves it unchanged.
fn said<'de, D: Deserializer<'de>, T: Deserialize<'de>>(reader: D) -> Result<Option<Option<T>>, D::Error> {
    Option::<T>::deserialize(reader).map(Some)
}

/// Params of `session/configure`. A missing field stays unchanged, null clears it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigureParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// Model from here on. Null is refused: a model cannot be cleared.
    #[serde(default, deserialize_with = "said")]
    #[schemars(with = "Option<ModelRef>")]
    pub model: Option<Option<ModelRef>>,
    /// Thinking level from here on; null for `off`.
    #[serde(default, deserialize_with = "said")]
    #[schemars(with = "Option<super::ThinkingLevel>")]
    pub thinking_level: Option<Option<super::ThinkingLevel>>,
    /// System prompt.
    #[serde(default, deserialize_with = "said")]
    #[schemars(with = "Option<String>")]
    pub system_prompt: Option<Option<String>>,
    /// Tools of the model.
    #[serde(default, deserialize_with = "said")]
    #[schemars(with = "Option<super::Tools>")]
    pub tools: Option<Option<super::Tools>>,
    /// Title of the session.
    #[serde(default, deserialize_with = "said")]
    #[schemars(with = "Option<String>")]
    pub title: Option<Option<String>>,
    /// Size of the window of the session's model, in tokens, in place of that in `models`; null clears it. It belongs to the
    /// model: another model has its own.
    #[serde(default, deserialize_with = "said")]
    #[schemars(with = "Option<TokenLimit>")]
    pub context_window: Option<Option<TokenLimit>>,
    /// The longest answer of the session's model, in tokens; null clears it.
    #[serde(default, deserialize_with = "said")]
    #[schemars(with = "Option<TokenLimit>")]
    pub max_output_tokens: Option<Option<TokenLimit>>,
    /// The settings of the session.
    #[serde(default)]
    #[schemars(skip)]
    pub settings: super::SetElsewhere,
}

/// Result of `session/configure`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ConfigureAnswer {
    /// State of the session.
    pub session: super::SessionInfo,
    /// Maintenance that follows.
    pub next: super::Next,
}

/// The longest title of a session, in bytes. A list shows it in one line.
pub const LONGEST_TITLE: usize = 1_024;

/// The longest path in the header of a session, in bytes: that of Linux.
pub const LONGEST_PATH: usize = 4_096;

/// The longest label of an entry, in bytes. A list shows it in one line.
pub const LONGEST_LABEL: usize = 1_024;

/// Params of `session/label`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LabelParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// Entry to label.
    pub target_entry_id: EntryId,
    /// Label, of at most 1024 bytes; null removes it.
    #[serde(default)]
    pub label: Option<String>,
}

/// Result of methods that return one entry's id.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EntryIdAnswer {
    /// `session/label`: the entry that holds the label. `session/pin` and `session/unpin`: the pinned entry.
    pub entry_id: EntryId,
}

/// Params of `session/pin` and `session/unpin`: an entry or a text.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PinParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// Entry of the conversation.
    #[serde(default)]
    pub entry_id: Option<EntryId>,
    /// Text to pin; it becomes a message.
    #[serde(default)]
    pub text: Option<String>,
}

/// Result of `session/undo_compaction`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UndoAnswer {
    /// Leaf after the undo.
    pub leaf_entry_id: Option<EntryId>,
    /// Fullness of the context after the undo.
    pub usage: super::Usage,
}

/// Result of `session/reset`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResetAnswer {
    /// The reset. Nothing before it is in the context, except pins.
    pub entry_id: EntryId,
    /// Leaf after the reset.
    pub leaf_entry_id: Option<EntryId>,
    /// Fullness of the context after the reset.
    pub usage: super::Usage,
}

/// Params of `session/prune`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PruneParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// Size of the newest tool results that stay whole, in tokens. Default: the setting.
    #[serde(default)]
    pub protect_tokens: Option<u64>,
    /// Smallest saving that is worth a change, in tokens. Default: the setting.
    #[serde(default)]
    pub minimum_savings: Option<u64>,
    /// Report the effect without writing.
    #[serde(default)]
    pub dry_run: Option<bool>,
}

/// Result of `session/prune`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PruneAnswer {
    /// Entries whose content is replaced by one line.
    pub entry_ids: Vec<EntryId>,
    /// Estimated saving, in tokens.
    pub tokens_saved: u64,
}

/// Params of `session/search`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// Text to find, taken literally; case is ignored.
    pub query: String,
    /// `nextCursor` of the page before.
    #[serde(default)]
    pub cursor: Option<String>,
    /// Largest number of matches. Default: 50.
    #[serde(default)]
    pub limit: Option<usize>,
}

/// Result of `session/search`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchAnswer {
    /// Matches, newest first, at most one for each entry.
    pub matches: Vec<SearchMatch>,
    /// Cursor of the next page; null where the whole session was searched.
    pub next_cursor: Option<String>,
}

/// An entry that contains the text.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchMatch {
    /// Id of the entry.
    pub entry_id: EntryId,
    /// Role of a message; null for other entries.
    pub role: Option<String>,
    /// Timestamp in the file's own form.
    pub timestamp: String,
    /// Whether the entry is on the active path; null until the file is indexed.
    pub active: Option<bool>,
    /// Text around the first match.
    pub snippet: String,
}

/// Params of `session/tree`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TreeParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// `nextCursor` of the page before.
    #[serde(default)]
    pub cursor: Option<EntryId>,
    /// Largest number of entries. Default: 1,000.
    #[serde(default)]
    pub limit: Option<usize>,
}

/// Result of `session/tree`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TreeAnswer {
    /// Entries in file order: a parent precedes its children.
    pub nodes: Vec<TreeNode>,
    /// Leaf of the active path.
    pub leaf_entry_id: Option<EntryId>,
    /// Cursor of the next page; null on the last page.
    pub next_cursor: Option<EntryId>,
}

/// An entry of the tree.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TreeNode {
    /// Id of the entry.
    pub id: EntryId,
    /// Id of the parent; null for a root.
    pub parent_id: Option<EntryId>,
    /// Type of the entry.
    #[serde(rename = "type")]
    pub kind: String,
    /// Type of a `custom` entry or a `custom_message`; null for other entries.
    pub custom_type: Option<String>,
    /// Role of a message; null for other entries.
    pub role: Option<String>,
    /// Content in one line; of an entry without text its type.
    pub preview: String,
    /// Label of the entry.
    pub label: Option<String>,
    /// Timestamp in the file's own form.
    pub timestamp: String,
    /// Size of the entry in a context, estimated by its characters.
    pub tokens: u32,
    /// Whether it is on the active path.
    pub active: bool,
    /// Whether it is in no context of any branch: a marker, a label, a change of a setting.
    pub hidden: bool,
    /// Whether it is a compaction or a reset that does not hold any more.
    pub undone: bool,
}

/// Characters of a node's preview.
const PREVIEW: usize = 120;

/// The values of a node that its entry does not have.
#[derive(Debug, Clone, Default)]
pub struct Around {
    /// Label of the entry.
    pub label: Option<String>,
    /// Whether it is on the active path.
    pub active: bool,
    /// Whether it does not hold any more.
    pub undone: bool,
}

impl TreeNode {
    /// The node of an entry.
    #[must_use]
    pub fn of(entry: &Entry, around: Around) -> Self {
        let custom_type = match &entry.body {
            Body::Custom(custom) => Some(custom.custom_type.clone()),
            Body::CustomMessage(custom) => Some(custom.custom_type.clone()),
            _ => None,
        };
        let preview = text::one_line(&entry.readable_text(), PREVIEW);
        let named = || custom_type.as_deref().unwrap_or(&entry.kind);
        Self {
            id: entry.id.clone(),
            parent_id: entry.parent.clone(),
            kind: entry.kind.clone(),
            role: role_of(entry),
            preview: if preview.is_empty() { text::one_line(named(), PREVIEW) } else { preview },
            custom_type,
            label: around.label,
            timestamp: entry.timestamp.clone(),
            tokens: entry.tokens(Estimator::Chars),
            active: around.active,
            hidden: !entry.in_context() && entry.compaction().is_none(),
            undone: around.undone,
        }
    }
}

/// The role of a message.
#[must_use]
pub fn role_of(entry: &Entry) -> Option<String> {
    let role = match entry.outline()?.role {
        Role::User => "user",
        Role::Developer => "developer",
        Role::System => "system",
        Role::Assistant => "assistant",
        Role::ToolResult => "toolResult",
        Role::Execution => "bashExecution",
        Role::Custom => "custom",
        Role::Summary => "branchSummary",
    };
    Some(role.to_owned())
}

/// Params of `session/export`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExportParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// Format of the export.
    pub format: ExportFormat,
    /// Path of the new file. A relative path is below the session's working folder. An existing file is refused.
    pub path: String,
}

/// Format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExportFormat {
    /// A session file with every entry, for pi and abridged.
    Jsonl,
    /// The active path as Markdown, for a person.
    Markdown,
}

/// Result of `session/export`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ExportAnswer {
    /// Path of the file.
    pub path: String,
}
