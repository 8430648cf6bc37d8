//! `compaction` entries as pi, oh-my-pi and this program write them.

use super::{
    Preserved, Unparsed,
    native::NativeHistory,
    preserved::{PreserveData, Stored, object_or_nothing},
};
use crate::ids::EntryId;
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

/// A `compaction` entry.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Compaction {
    /// The text that stands for what was summarized, with the text of an archive after it.
    #[serde(default)]
    pub summary: String,
    /// Two sentences for a person.
    #[serde(default)]
    pub short_summary: Option<String>,
    /// The first entry that is still sent as it is; an entry's own id, or one not on the path, keeps nothing.
    #[serde(default)]
    pub first_kept_entry_id: Option<EntryId>,
    /// In the first proposal of the format: how many messages before it are kept, back to the start of the turn of the
    /// first of them, and not past the compaction before.
    #[serde(default)]
    pub keep_last_messages: Option<u64>,
    /// Size of the context before, in tokens.
    #[serde(default)]
    tokens_before: Option<f64>,
    /// File lists of ours; anything of a hook's.
    #[serde(default)]
    pub details: Option<Unparsed>,
    /// pi: system prompt and tools at that time, as one message.
    #[serde(default)]
    pub system_message: Option<Value>,
    /// Size of the context after it, in tokens; another program may have written anything there.
    #[serde(default)]
    tokens_after: Option<Value>,
    /// Data that programs keep for themselves, as the line has them; ours is under `abridged`.
    #[serde(default, rename = "preserveData", deserialize_with = "object_or_nothing")]
    stored: Option<Box<Stored>>,
    /// The same, as far as they are this entry's.
    #[serde(skip)]
    data: PreserveData,
    /// oh-my-pi: made by an extension.
    #[serde(default)]
    from_extension: Option<bool>,
    /// pi: made by a hook.
    #[serde(default)]
    from_hook: Option<bool>,
}

impl Compaction {
    /// The compaction in the line of the entry with this id; `None` where the fields are not those of one.
    pub(super) fn read(line: &str, id: &EntryId) -> Option<Self> {
        let mut compaction: Self = serde_json::from_str(line).ok()?;
        compaction.data = compaction.stored.take().map(|stored| stored.of_entry(id)).unwrap_or_default();
        if let Some(archive) = compaction.data.archive() {
            compaction.summary = format!("{}\n\n{}", compaction.summary.trim_end(), archive.text);
        }
        Some(compaction)
    }

    /// Made by somebody's hook or extension: its `details` are theirs.
    #[must_use]
    pub fn from_hook(&self) -> bool {
        self.from_hook == Some(true) || self.from_extension == Some(true)
    }

    /// The size of the context before it, in tokens; zero where the line does not say it.
    #[must_use]
    pub fn tokens_before(&self) -> f64 {
        self.tokens_before.unwrap_or_default()
    }

    /// Whether it has the fields that pi and oh-my-pi read. pi's terminal ends at one without the size before it.
    #[must_use]
    pub fn is_read_by_others(&self) -> bool {
        self.tokens_before.is_some() && (self.first_kept_entry_id.is_some() || self.keep_last_messages.is_none())
    }

    /// The size of the context right after it and the overhead in that, where we measured both.
    #[must_use]
    pub fn measured(&self) -> Option<(u64, u64)> {
        let tokens = self.tokens_after.as_ref()?.as_u64().filter(|tokens| *tokens > 0)?;
        let overhead = self.preserved()?.overhead?;
        (overhead <= tokens).then_some((tokens, overhead))
    }

    /// Data that a compaction of ours carries; none for another program's.
    #[must_use]
    pub fn preserved(&self) -> Option<&Preserved> {
        self.data.ours()
    }

    /// The text of the archive that the summary ends with.
    #[must_use]
    pub fn archive(&self) -> Option<&str> {
        self.data.archive().map(|archive| archive.text.as_str())
    }

    /// Pictures that belong to the summary, as blocks of a message.
    #[must_use]
    pub fn frames(&self) -> &[Value] {
        self.data.archive().map(|archive| archive.frames.as_slice()).unwrap_or_default()
    }

    /// The history that a provider made by its own compaction, if it is valid.
    #[must_use]
    pub fn native(&self) -> Option<&Arc<NativeHistory>> {
        self.data.native()
    }
}
