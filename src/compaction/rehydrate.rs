//! Rehydration: the files that an agent had read or changed, and the skills and instructions that it had loaded, when a
//! compaction summarizes the messages with their texts.
//!
//! Everything here comes from the calls and results of the session. No file is opened or looked for: it may be on another
//! machine, or be something else than a file. The host that reads it again finds that out.

mod reading;

use crate::{
    conversation::{
        entry::{CarriedLoad, ContextEdit, Entry, LoadKind},
        path::Path,
        tokens::Scale,
    },
    ids::EntryId,
    models::Budget,
    settings::Settings,
    text,
};
use reading::{Load, Reading, Touched};
use schemars::JsonSchema;
use serde::Serialize;
use std::{cmp::Reverse, collections::HashSet, sync::Arc};

/// The most files that are named: as many as Claude Code reads again.
const MOST_FILES: usize = 5;

/// The most loaded texts that are named.
const MOST_NAMED: usize = 20;

/// The most tokens of one loaded text that stay; the number is Claude Code's.
const MOST_OF_ONE: u64 = 5_000;

/// The most tokens of all loaded texts that stay.
const MOST_OF_ALL: u64 = 25_000;

/// The least tokens that are worth a part of a text.
const LEAST: u64 = 100;

/// The files and the loaded texts of a path, and the most of these texts that stay.
#[derive(Debug, Clone)]
pub struct Rehydration {
    reading: Arc<Reading>,
    /// The most tokens of loaded texts.
    most: u64,
}

/// The cut that a path is seen through.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// The place of the first kept entry.
    pub cut: usize,
    /// The pinned entries.
    pub pinned: &'a HashSet<EntryId>,
    /// Size of the summarized part, in tokens.
    pub replaced: u64,
    /// The scale of the session.
    pub scale: Scale,
}

/// Files and texts that the summarized part had, and the context has no more, or only in part.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rehydrated {
    /// At most five files that are worth reading again: first the changed ones, from the newest change on, then those that were
    /// only read, from the newest read on. A file that was removed, or whose newest form is in the kept part, is not among them.
    pub files: Vec<FileToRead>,
    /// Number of the other files that the summarized part read or changed.
    pub files_left_out: usize,
    /// At most twenty skills and instructions that the summarized part loaded and the kept part does not, from the newest on.
    pub loaded: Vec<Loaded>,
    /// Number of the others.
    pub loaded_left_out: usize,
}

/// A file that is worth reading again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileToRead {
    /// The file. A relative path of a tool is taken from the session's `cwd`. It is not looked for on the disk.
    pub path: String,
    /// The newest use of the file.
    pub operation: FileUse,
    /// Size of the file when the session last had it whole, in tokens; null where it never had. The size on the disk may differ.
    pub tokens: Option<u64>,
    /// The entry with that use: the result of a call.
    pub entry_id: EntryId,
}

/// The use of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileUse {
    /// It was made or changed.
    Changed,
    /// It was only read.
    Read,
}

/// A skill, or the instructions of a file, that the agent loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Loaded {
    /// The kind.
    pub kind: LoadKind,
    /// The name of the skill, or of the file.
    pub name: String,
    /// The file, if the agent named it.
    pub path: Option<String>,
    /// Size of the text as it was loaded, in tokens.
    pub tokens: u64,
    /// The part of the text that stays in the context.
    pub kept: LoadKept,
    /// The entry with the text.
    pub entry_id: EntryId,
}

/// The part of a loaded text that a compaction keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoadKept {
    /// All of it, without its secrets.
    Whole,
    /// Its beginning and its end.
    Clipped,
    /// Nothing: it stood in no tool result, an edit had replaced it, there was no room, or the compaction is not applied.
    None,
}

impl Rehydration {
    /// The files and the loaded texts of a path. `cwd`: the folder of relative paths.
    #[must_use]
    pub fn of(path: &Path, settings: &Settings, cwd: Option<&str>, scale: Scale, budget: &Budget) -> Self {
        let reading = Reading::of(path, settings, cwd, scale);
        Self { reading: Arc::new(reading), most: MOST_OF_ALL.min(budget.available() / 4) }
    }

    /// The same without loaded texts.
    pub(super) fn nothing(&self) -> Self {
        Self { most: 0, ..self.clone() }
    }

    /// The same with about half of the loaded texts that are carried. `None` without any.
    pub(super) fn less(&self, seen: Seen<'_>) -> Option<Self> {
        let carried = self.carried(seen);
        if carried.is_empty() {
            return None;
        }
        let size: u64 = carried.iter().map(|load| seen.scale.text(&load.framed())).sum();
        let half = size.min(self.most) / 2;
        Some(Self { most: if half < LEAST { 0 } else { half }, ..self.clone() })
    }

    /// The loaded texts that a compaction with this cut carries, oldest first. The newest come first into the room, and a text that
    /// does not fit loses its middle.
    pub(super) fn carried(&self, seen: Seen<'_>) -> Vec<CarriedLoad> {
        let scale = seen.scale;
        let mut left = self.most.min(seen.replaced / 2);
        let mut carried = Vec::new();
        for load in self.summarized(seen.cut).filter(|load| load.may_stay && !seen.pinned.contains(&load.text.entry_id))
        {
            let size = scale.text(&load.text.framed());
            let kept = match () {
                () if size <= left => CarriedLoad::clone(&load.text),
                () if left >= LEAST => {
                    let (text, _) = clipped(&load.text.text, left.saturating_sub(LEAST / 2), scale);
                    CarriedLoad { text, clipped: true, ..CarriedLoad::clone(&load.text) }
                }
                () => break,
            };
            left = left.saturating_sub(size);
            carried.push(kept);
        }
        carried.reverse();
        carried
    }

    /// The loaded texts before a cut, newest first.
    fn summarized(&self, cut: usize) -> impl Iterator<Item = &Load> {
        self.reading.loads().iter().rev().filter(move |load| load.place.is_none_or(|place| place < cut))
    }

    /// The files and loaded texts that a client is told, after these edits. `newer` are kept entries from the place `end` on.
    pub(super) fn rehydrated(
        &self,
        seen: Seen<'_>,
        edits: &[ContextEdit],
        end: usize,
        newer: &[Arc<Entry>],
    ) -> Rehydrated {
        let mut reading = Reading::clone(&self.reading);
        newer.iter().enumerate().for_each(|(at, entry)| reading.hear(end + at, entry));
        let cut_now: HashSet<&EntryId> = edits.iter().map(|edit| &edit.target_id).collect();
        let is_edited = |id: &EntryId| cut_now.contains(id) || reading.is_edited(id);
        let carried = self.carried(seen);
        let Seen { cut, pinned, .. } = seen;
        let mut loaded: Vec<Loaded> =
            self.summarized(cut).map(|load| load.shown(&carried, pinned.contains(&load.text.entry_id))).collect();
        let is_pinned = |id: &EntryId| pinned.contains(id);
        let is_loaded = |path: &str| loaded.iter().any(|load| load.path.as_deref() == Some(path));
        let mut files: Vec<(&String, &Touched)> = reading
            .files()
            .filter(|(path, file)| {
                file.is_used_before(cut) && !file.stands(cut, &is_edited, &is_pinned) && !is_loaded(path)
            })
            .collect();
        // A file that was only read has no change, which is less than any.
        files.sort_by_key(|(_, file)| Reverse((file.changed, file.newest)));
        let files_left_out = files.len().saturating_sub(MOST_FILES);
        let files = files.into_iter().take(MOST_FILES).map(|(path, file)| file.shown(path)).collect();
        let loaded_left_out = loaded.len().saturating_sub(MOST_NAMED);
        loaded.truncate(MOST_NAMED);
        Rehydrated { files, files_left_out, loaded, loaded_left_out }
    }
}

impl Rehydrated {
    /// The same for a compaction that is not applied: no text stays.
    #[must_use]
    pub fn unapplied(mut self) -> Self {
        self.loaded.iter_mut().for_each(|load| load.kept = LoadKept::None);
        self
    }
}

/// A text without its middle, of at most `most` tokens, and whether something of it is left out.
fn clipped(text: &str, most: u64, scale: Scale) -> (String, bool) {
    /// A token has at most so many characters, in nearly every text.
    const CHARS: u64 = 8;
    let all = text.chars().count();
    let mut chars = (most.saturating_mul(CHARS) as usize).min(all);
    loop {
        if chars == all && scale.text(text) <= most {
            return (text.to_owned(), false);
        }
        let gap =
            format!("\n[… {} characters of this text were left out; load it again to have them …]\n", all - chars);
        let clipped = text::clip_middle(text, chars, &gap);
        if chars < all && scale.text(&clipped) <= most || chars < 80 {
            return (clipped, chars < all);
        }
        chars = chars * 4 / 5;
    }
}

#[cfg(test)]
mod tests;
