//! Edits of the context.

use super::Unparsed;
use crate::ids::EntryId;
use serde::{Deserialize, Serialize};

/// A `context_edit` entry.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextEdit {
    /// The entry that is edited.
    pub target_id: EntryId,
    /// `{content}`, or null to leave the entry out.
    pub replacement: Option<Replacement>,
}

/// The content in the place of an edited message's content.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Replacement {
    /// A text or blocks.
    pub content: Unparsed,
}
