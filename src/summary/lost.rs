//! The facts of a conversation that its summary does not have.

use super::{
    cleaner::Cleaner,
    files::{FileLists, without_files},
    model::musts::{self, Kind, Must},
    prose::clip,
    span::Span,
};
use crate::{conversation::entry::Entry, settings::Settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The facts that are not in a summary, the first of each kind. They stay in the session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lost {
    /// Rules of the user.
    pub rules: Vec<String>,
    /// Open tasks.
    pub todos: Vec<String>,
    /// Errors that are not solved.
    pub errors: Vec<String>,
    /// Files that were changed.
    pub files: Vec<String>,
}

/// The largest span that is read for them, in bytes: a tenth of a second.
const LARGEST: usize = 4 << 20;

/// The most facts of one kind, and the most characters of each.
const MOST: usize = 20;
const LONGEST: usize = 200;

impl Lost {
    /// The facts of a span that a summary of it does not have. `None` for a span that is too large to be read again.
    #[must_use]
    pub fn of(span: Span<'_>, summary: &str, settings: &Settings, stop: &dyn Fn() -> bool) -> Option<Self> {
        if span.bytes() > LARGEST {
            return None;
        }
        let cleaner = Cleaner::new(settings);
        let clean = |text: &str| cleaner.clean(text);
        let previous = span.previous_summary().map(|text| clean(&without_files(text)));
        let entries: Vec<&Arc<Entry>> = span.history().into_iter().chain(span.turn_prefix()).collect();
        let musts = musts::musts(previous.as_deref(), &entries, cleaner.todo_tools(), &clean, stop);
        let lost = musts::lost(&musts, summary);
        let of_kind = |kind: Kind| {
            let texts = lost.iter().filter(|must| must.kind() == kind).map(|must| clip(Must::text(must), LONGEST));
            texts.take(MOST).collect()
        };
        let files = FileLists::of(&span, &settings.tools.files, &clean).modified_files;
        let files = files.into_iter().filter(|file| !summary.contains(file.as_str()));
        Some(Self {
            rules: of_kind(Kind::Rule),
            todos: of_kind(Kind::Task),
            errors: of_kind(Kind::Error),
            files: files.take(MOST).map(|file| clip(&file, LONGEST)).collect(),
        })
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
