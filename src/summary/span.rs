//! The part of a conversation that a summary stands for.

use crate::{
    conversation::{
        entry::{Body, Entry},
        message::outline::Role,
        tokens::Estimator,
    },
    ids::EntryId,
};
use std::{collections::HashSet, sync::Arc};

/// Entries to be summarized, with everything of a conversation that their summary depends on.
///
/// A compaction's plan makes one of the part before its cut. Entries of any other origin make one with [`Span::of`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Span<'a> {
    previous: Option<&'a Entry>,
    history: &'a [Arc<Entry>],
    turn_prefix: &'a [Arc<Entry>],
    following: &'a [Arc<Entry>],
    pinned: Option<&'a HashSet<EntryId>>,
}

impl<'a> Span<'a> {
    /// A span of whole turns.
    #[must_use]
    pub fn of(history: &'a [Arc<Entry>]) -> Self {
        Self { history, ..Self::default() }
    }

    /// The span after an earlier compaction or branch summary: the new summary continues the one of that entry, which
    /// then needs no other place.
    #[must_use]
    pub fn continuing(self, previous: Option<&'a Arc<Entry>>) -> Self {
        Self { previous: previous.map(|entry| &**entry), ..self }
    }

    /// The span with the beginning of a turn whose end is not in it.
    #[must_use]
    pub fn with_turn_prefix(self, turn_prefix: &'a [Arc<Entry>]) -> Self {
        Self { turn_prefix, ..self }
    }

    /// The span with the entries after it. They are not summarized. They show the language of a user who said little
    /// in the span.
    #[must_use]
    pub fn followed_by(self, following: &'a [Arc<Entry>]) -> Self {
        Self { following, ..self }
    }

    /// The span without these entries, which are kept verbatim elsewhere. Files that they touched are still listed.
    #[must_use]
    pub fn without(self, pinned: &'a HashSet<EntryId>) -> Self {
        Self { pinned: Some(pinned), ..self }
    }

    /// The entries of whole turns that are summarized.
    #[must_use]
    pub fn history(&self) -> Vec<&'a Arc<Entry>> {
        self.unpinned(self.history).collect()
    }

    /// The entries of a turn's beginning that are summarized.
    #[must_use]
    pub fn turn_prefix(&self) -> Vec<&'a Arc<Entry>> {
        self.unpinned(self.turn_prefix).collect()
    }

    /// The messages that are summarized, history and turn prefix.
    #[must_use]
    pub fn messages(&self) -> Vec<&'a Arc<Entry>> {
        let all = self.unpinned(self.history).chain(self.unpinned(self.turn_prefix));
        all.filter(|entry| entry.is_conversation()).collect()
    }

    /// All entries, also those that are pinned, after the previous summary.
    pub fn entries(&self) -> impl Iterator<Item = &'a Entry> {
        self.previous.into_iter().chain(self.history.iter().chain(self.turn_prefix).map(|entry| &**entry))
    }

    /// The summary that the new one continues.
    #[must_use]
    pub fn previous_summary(&self) -> Option<&'a str> {
        match &self.previous?.body {
            Body::Compaction(compaction) => Some(&compaction.summary),
            Body::BranchSummary(branch) => Some(&branch.summary),
            _ => None,
        }
    }

    /// The text of the archive that the previous summary ends with.
    #[must_use]
    pub fn previous_archive(&self) -> Option<&'a str> {
        self.previous?.compaction()?.archive()
    }

    /// The estimate of everything that a summary of the span replaces, in tokens: the messages and the previous summary.
    #[must_use]
    pub fn replaced(&self, estimator: Estimator) -> u64 {
        self.said(estimator) + self.previous.map_or(0, |entry| u64::from(entry.tokens(estimator)))
    }

    /// The estimate of the messages, without the previous summary, in tokens.
    #[must_use]
    pub fn said(&self, estimator: Estimator) -> u64 {
        self.messages().into_iter().map(|entry| u64::from(entry.tokens(estimator))).sum()
    }

    /// The entries after the span, which stay in the context.
    pub fn following(&self) -> impl Iterator<Item = &'a Arc<Entry>> {
        self.following.iter()
    }

    /// The newest texts of the user in the span, enough to tell their language.
    #[must_use]
    pub fn said_by_user(&self) -> Vec<String> {
        said_by_user(self.unpinned(self.turn_prefix).rev().chain(self.unpinned(self.history).rev()))
    }

    /// The newest texts of the user after the span, enough to tell their language.
    #[must_use]
    pub fn said_by_user_later(&self) -> Vec<String> {
        said_by_user(self.following.iter().rev())
    }

    /// The size of its messages, in bytes of their lines.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.history.iter().chain(self.turn_prefix).map(|entry| entry.line().len()).sum()
    }

    fn unpinned(&self, entries: &'a [Arc<Entry>]) -> impl DoubleEndedIterator<Item = &'a Arc<Entry>> {
        let pinned = self.pinned;
        entries.iter().filter(move |entry| pinned.is_none_or(|pinned| !pinned.contains(&entry.id)))
    }
}

/// Texts of the user that tell a language, in bytes.
const TELLING: usize = 64 << 10;

/// The first texts of the user among these entries.
fn said_by_user<'a>(entries: impl Iterator<Item = &'a Arc<Entry>>) -> Vec<String> {
    let text = |entry: &Arc<Entry>| entry.message_once().map(|message| message.text());
    let texts = entries.filter(|entry| entry.is_from(Role::User)).filter_map(text);
    let before = |sum: &mut usize, text: String| {
        let before = *sum;
        *sum += text.len();
        (before < TELLING).then_some(text)
    };
    texts.scan(0, before).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        conversation::tokens::Scale,
        settings::Settings,
        summary::{
            cleaner::Cleaner,
            extractive::{self, Summary},
            model::{
                brief::Part,
                material::{Added, Material},
            },
        },
    };
    use serde_json::{Value, json};

    fn entry(id: &str, kind: &str, fields: Value) -> Arc<Entry> {
        let mut line = json!({"type": kind, "id": id, "parentId": null, "timestamp": "2026-01-01T00:00:00.000Z"});
        line.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
        Arc::new(Entry::parse(line.to_string().into()).expect("a line"))
    }

    fn user(id: &str, text: &str) -> Arc<Entry> {
        entry(id, "message", json!({"message": {"role": "user", "content": text, "timestamp": 1}}))
    }

    fn edit(id: &str, path: &str) -> Arc<Entry> {
        let call = json!({"type": "toolCall", "id": id, "name": "edit", "arguments": {"path": path}});
        let message = json!({"role": "assistant", "content": [call], "stopReason": "toolUse", "timestamp": 1});
        entry(id, "message", json!({"message": message}))
    }

    const SCALE: Scale = Scale::new(Estimator::Chars, 1.5);

    fn extracted(span: Span<'_>) -> Summary {
        let settings = Settings::default();
        extractive::summarize(&extractive::Request {
            span,
            wishes: Default::default(),
            cap: 2_000,
            without: None,
            settings: &settings,
            cleaner: &Cleaner::new(&settings),
            scale: SCALE,
            stop: &|| false,
        })
    }

    fn material(span: Span<'_>, summary: &Summary) -> Material {
        Material::of(span, &summary.files, 2_000, &Cleaner::new(&Settings::default()), SCALE, &|| false)
    }

    /// The entries of an abandoned branch: no compaction, no cut, no path.
    #[test]
    fn a_span_of_any_entries_is_summarized() {
        let entries = [user("a", "Please port the lexer. Never use macros."), edit("b", "src/lexer.rs")];
        let span = Span::of(&entries);
        let summary = extracted(span);
        assert!(summary.text.contains("Please port the lexer") && summary.text.contains("Never use macros"));
        assert_eq!(summary.files.modified_files, ["src/lexer.rs"]);
        let material = material(span, &summary);
        let (pieces, previous) = material.part(Part::History);
        let read = pieces.chunk(0, 10_000).text;
        assert!(read.contains("Please port the lexer") && read.contains("src/lexer.rs"), "{read}");
        assert_eq!(previous, None);
        let estimate: u64 = entries.iter().map(|entry| u64::from(entry.tokens(Estimator::Chars))).sum();
        assert_eq!(material.replaces, SCALE.size(estimate));
    }

    #[test]
    fn a_span_continues_the_summary_of_a_compaction_or_of_a_branch() {
        let entries = [user("b", "Go on with the tests.")];
        let text = "## Goal\nPort the lexer\n\n<modified-files>\nsrc/old.rs\n</modified-files>";
        let details = json!({"readFiles": [], "modifiedFiles": ["src/old.rs"]});
        let compaction = json!({"summary": text, "firstKeptEntryId": "b", "tokensBefore": 1, "details": details});
        let branch = json!({"summary": text, "fromId": "x", "details": details});
        for previous in [entry("a", "compaction", compaction), entry("a", "branch_summary", branch)] {
            let span = Span::of(&entries).continuing(Some(&previous));
            let summary = extracted(span);
            assert!(summary.text.contains("- Port the lexer") && summary.text.contains("Go on with the tests"));
            assert_eq!(summary.files.modified_files, ["src/old.rs"]);
            let material = material(span, &summary);
            assert_eq!(material.part(Part::History).1, Some("## Goal\nPort the lexer"));
            let sizes = [&previous, &entries[0]].map(|entry| u64::from(entry.tokens(Estimator::Chars)));
            assert_eq!(material.replaces, SCALE.size(sizes.iter().sum()));
        }
    }

    #[test]
    fn a_pinned_entry_is_not_summarized_and_its_files_are_listed() {
        let entries = [user("a", "Look at the parser."), edit("b", "src/parser.rs"), user("c", "Never push to main.")];
        let pinned = HashSet::from([EntryId::from("b"), EntryId::from("c")]);
        let span = Span::of(&entries).without(&pinned);
        let summary = extracted(span);
        assert!(!summary.text.contains("Never push"), "{}", summary.text);
        assert_eq!(summary.files.modified_files, ["src/parser.rs"]);
        assert_eq!(span.messages().len(), 1);
        assert_eq!(span.replaced(Estimator::Chars), u64::from(entries[0].tokens(Estimator::Chars)));
    }

    #[test]
    fn the_beginning_of_a_turn_is_a_part_of_its_own() {
        let entries = [user("a", "Read the scanner."), user("b", "Rewrite the whole parser now.")];
        let span = Span::of(&entries[..1]).with_turn_prefix(&entries[1..]);
        let summary = extracted(span);
        let (history, prefix) = summary.text.split_once(crate::summary::SPLIT_TURN).expect("two parts");
        assert!(
            history.contains("Read the scanner") && prefix.contains("Rewrite the whole parser"),
            "{}",
            summary.text
        );
        let material = material(span, &summary);
        assert_eq!((material.history.len(), material.prefix.len()), (1, 1));
    }

    #[test]
    fn the_entries_behind_a_span_show_the_language_and_nothing_else() {
        let entries = [user("a", "ok")];
        let later = [user("b", "Пожалуйста, проверь настройки и исправь все ошибки в файле настроек проекта.")];
        let span = Span::of(&entries).followed_by(&later);
        let summary = extracted(span);
        assert!(!summary.text.contains("настройки"));
        let material = material(span, &summary);
        assert!(material.script.is_some() && material.history.len() == 1);
    }

    /// A limit is shared out before the lists of files and the facts are there: they have the most that they may have.
    #[test]
    fn the_texts_that_are_added_to_a_summary_may_come_later() {
        let entries = [user("a", "Please port the lexer. Never use macros."), edit("b", "src/lexer.rs")];
        let span = Span::of(&entries);
        let summary = extracted(span);
        let (now, cleaner) = (material(span, &summary), Cleaner::new(&Settings::default()));
        let later = Material::unread(span, 2_000, cleaner.secrets(), SCALE);
        let (exact, least) = (now.shares(), later.shares());
        assert!(least.history < exact.history && least.rules > exact.rules, "{least:?} {exact:?}");
        assert_eq!(later.history.chunk(0, 10_000), now.history.chunk(0, 10_000));
        later.add(Added::of(span, &summary.files, 2_000, &cleaner, SCALE, &|| false));
        assert_eq!(later.shares(), exact);
        let text = later.compose(None, None);
        assert!(text.contains("Never use macros.") && text.ends_with("src/lexer.rs\n</modified-files>"), "{text}");
    }
}
