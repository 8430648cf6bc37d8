//! Names, pins, edits, and ways to look through a session.

use crate::{
    ids::{EntryId, SessionId},
    models::ModelRef,
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// Null, as something that was said: it clears, while leaving the field out changes nothing.
fn said<'de, D: Deserializer<'de>, T: Deserialize<'de>>(reader: D) -> Result<Option<Option<T>>, D::Error> {
    Option::<T>::deserialize(reader).map(Some)
}

/// Params of `session/configure`. What is left out stays, null clears.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigureParams {
    /// Which session.
    pub session_id: SessionId,
    /// Its model from here on. It cannot be cleared: null is refused.
    #[serde(default, deserialize_with = "said")]
    #[schemars(with = "Option<ModelRef>")]
    pub model: Option<Option<ModelRef>>,
    /// How much the model thinks from here on; null: `off`.
    #[serde(default, deserialize_with = "said")]
    #[schemars(with = "Option<String>")]
    pub thinking_level: Option<Option<String>>,
    /// What the model is told before everything.
    #[serde(default, deserialize_with = "said")]
    #[schemars(with = "Option<String>")]
    pub system_prompt: Option<Option<String>>,
    /// The tools the model is given, as they are sent to it.
    #[serde(default, deserialize_with = "said")]
    #[schemars(with = "Option<Vec<Value>>")]
    pub tools: Option<Option<Vec<Value>>>,
    /// Its name.
    #[serde(default, deserialize_with = "said")]
    #[schemars(with = "Option<String>")]
    pub title: Option<Option<String>>,
}

/// The result of `session/configure`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ConfigureAnswer {
    /// The session.
    pub session: super::SessionInfo,
    /// What the daemon does about it.
    pub next: super::Next,
}

/// Params of `session/label`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LabelParams {
    /// In which session.
    pub session_id: SessionId,
    /// What is named.
    pub target_entry_id: EntryId,
    /// Its name; null takes it away.
    #[serde(default)]
    pub label: Option<String>,
}

/// The id of one entry.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EntryIdAnswer {
    /// Of `session/label` the entry that gives the name; of `session/pin` and `session/unpin` what is or was pinned.
    pub entry_id: EntryId,
}

/// Params of `session/pin` and `session/unpin`: an entry, or a text.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PinParams {
    /// In which session.
    pub session_id: SessionId,
    /// An entry of the conversation.
    #[serde(default)]
    pub entry_id: Option<EntryId>,
    /// A text, which becomes a message of its own.
    #[serde(default)]
    pub text: Option<String>,
}

/// The result of `session/undo_compaction`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UndoAnswer {
    /// The leaf.
    pub leaf_entry_id: Option<EntryId>,
    /// How full the context is now.
    pub usage: super::Usage,
}

/// Params of `session/prune`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PruneParams {
    /// In which session.
    pub session_id: SessionId,
    /// The newest results of this size stay, in tokens; the setting if omitted.
    #[serde(default)]
    pub protect_tokens: Option<u64>,
    /// Nothing is done for less than this, in tokens; the setting if omitted.
    #[serde(default)]
    pub minimum_savings: Option<u64>,
    /// Only says what would be done.
    #[serde(default)]
    pub dry_run: Option<bool>,
}

/// The result of `session/prune`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PruneAnswer {
    /// The entries that give way to a line about them.
    pub entry_ids: Vec<EntryId>,
    /// What that frees, estimated.
    pub tokens_saved: u64,
}

/// Params of `session/search`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchParams {
    /// In which session.
    pub session_id: SessionId,
    /// What is looked for, as it stands; case makes no difference.
    pub query: String,
    /// At most so many matches; 50 if omitted.
    #[serde(default)]
    pub limit: Option<usize>,
}

/// The result of `session/search`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SearchAnswer {
    /// Newest first, one for each entry.
    pub matches: Vec<SearchMatch>,
}

/// An entry with what was looked for.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchMatch {
    /// The entry.
    pub entry_id: EntryId,
    /// What stands around the first place.
    pub snippet: String,
}

/// Params of `session/tree`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TreeParams {
    /// Of which session.
    pub session_id: SessionId,
    /// Where the page before ended.
    #[serde(default)]
    pub cursor: Option<EntryId>,
    /// At most so many; 1,000 if omitted.
    #[serde(default)]
    pub limit: Option<usize>,
}

/// The result of `session/tree`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TreeAnswer {
    /// The entries in the order of the file: a parent stands before its children.
    pub nodes: Vec<TreeNode>,
    /// The leaf.
    pub leaf_entry_id: Option<EntryId>,
    /// For the next page; null where this is the last.
    pub next_cursor: Option<EntryId>,
}

/// An entry in a tree.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TreeNode {
    /// Its id.
    pub id: EntryId,
    /// What it follows; null for a root.
    pub parent_id: Option<EntryId>,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Of a message, whose it is.
    pub role: Option<String>,
    /// What it says, in a line.
    pub preview: String,
    /// Its name.
    pub label: Option<String>,
    /// When it was written, in the file's own form.
    pub timestamp: String,
}

/// Params of `session/export`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExportParams {
    /// Which session.
    pub session_id: SessionId,
    /// In which form.
    pub format: ExportFormat,
    /// A file that is not there yet; a relative one is under the session's folder.
    pub path: String,
}

/// The form of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExportFormat {
    /// A session file that pi and abridged open, with every entry.
    Jsonl,
    /// The conversation for people: the path to the leaf, from its beginning.
    Markdown,
}

/// The result of `session/export`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ExportAnswer {
    /// The file.
    pub path: String,
}
