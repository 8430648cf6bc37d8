//! The material of a summary, for any summarizer: the conversation in pieces, the previous summary, the rules of the user,
//! the files, and the limits.

use super::{
    brief::Part,
    check::Accepted,
    fold::Pieces,
    language::{self, Language, Script},
    musts::{self, Must},
    transcript::Reader,
};
use crate::{
    ask::later::Later,
    conversation::{entry::Entry, tokens::Scale},
    redact::{Clean, Secrets},
    summary::{
        SPLIT_TURN,
        cleaner::{self, Cleaner},
        files::{FileLists, without_files},
        made::SummaryPart,
        span::Span,
    },
};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

/// The material of a summary. Its texts contain neither secrets nor boundary tags.
#[derive(Debug, Clone)]
pub struct Material {
    /// The messages of whole turns.
    pub history: Pieces,
    /// The messages of a turn's beginning.
    pub prefix: Pieces,
    /// The previous summary, without its lists of files.
    pub previous: Option<Clean>,
    /// The language of the user, if it is certain and not English.
    pub language: Option<Language>,
    /// The script of the user, if it is certain.
    pub script: Option<Script>,
    /// Size of the replaced part, in tokens. A summary has to be smaller.
    pub replaces: u64,
    /// Limit of the summary with its lists of files, in tokens.
    pub cap: u64,
    /// The scale that the parts of a summary are measured with.
    scale: Scale,
    /// The texts that are added, which may come while models are asked.
    added: Arc<Later<Added>>,
}

/// The texts that are added to a model's summary.
#[derive(Debug, Clone, Default)]
pub struct Added {
    /// The facts that the summary must have.
    musts: Vec<Must>,
    /// The lists of files, as the end of the summary has them.
    tags: String,
}

impl Added {
    /// Gathers them from a span, for a summary of at most `cap` tokens that ends with these files.
    #[must_use]
    pub fn of(
        span: Span<'_>,
        files: &FileLists,
        cap: u64,
        cleaner: &Cleaner,
        scale: Scale,
        stop: &dyn Fn() -> bool,
    ) -> Self {
        let clean = |text: &str| cleaner.clean(text);
        let previous = previous(span, &clean);
        let all: Vec<&Arc<Entry>> = span.history().into_iter().chain(span.turn_prefix()).collect();
        Self {
            // A defect there costs the lost facts, and not the summary.
            musts: catch_unwind(AssertUnwindSafe(|| {
                musts::musts(previous.as_deref(), &all, cleaner.todo_tools(), &clean, stop)
            }))
            .unwrap_or_default(),
            tags: files.tags_within(cap / LARGEST_LISTS, &|text| scale.text(text)),
        }
    }
}

/// The previous summary of a span, without its lists of files.
fn previous(span: Span<'_>, clean: &dyn Fn(&str) -> Clean) -> Option<Clean> {
    span.previous_summary().map(|text| clean(&without_files(text))).filter(|text| !text.trim().is_empty())
}

/// The largest lists of files, as a divisor of a summary's limit.
const LARGEST_LISTS: u64 = 4;

/// The shares of a summary's limit, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares {
    /// Share of the whole turns.
    pub history: u64,
    /// Share of the beginning of a turn.
    pub prefix: u64,
    /// Share of facts that the model lost: rules, errors, open tasks.
    pub rules: u64,
}

impl Material {
    /// Gathers the material of a span for a summary of at most `cap` tokens that ends with these files.
    #[must_use]
    pub fn of(
        span: Span<'_>,
        files: &FileLists,
        cap: u64,
        cleaner: &Cleaner,
        scale: Scale,
        stop: &dyn Fn() -> bool,
    ) -> Self {
        let told = |text: &str| cleaner.clean(text).into_string();
        let reader = Reader { secrets: cleaner.secrets(), scale };
        let read = |entries: &[&Arc<Entry>]| {
            let entries = entries.iter().take_while(|_| !stop());
            Pieces::read(entries.filter_map(|entry| reader.read(entry, &told)))
        };
        let material = Self::with(span, [read(&span.history()), read(&span.turn_prefix())], cap, scale, &|text| {
            cleaner.clean(text)
        });
        material.add(Added::of(span, files, cap, cleaner, scale, stop));
        material
    }

    /// The material of a span whose messages are read with their chunks. The texts that are added to a summary come later, by
    /// [`Material::add`].
    #[must_use]
    pub fn unread(span: Span<'_>, cap: u64, secrets: Secrets, scale: Scale) -> Self {
        let reader = Reader { secrets, scale };
        let pieces = [span.history(), span.turn_prefix()].map(|entries| Pieces::unread(&entries, reader));
        Self::with(span, pieces, cap, scale, &|text| cleaner::clean(secrets, text))
    }

    fn with(span: Span<'_>, pieces: [Pieces; 2], cap: u64, scale: Scale, clean: &dyn Fn(&str) -> Clean) -> Self {
        let previous = previous(span, clean);
        let says_enough =
            |words: &[String]| language::script(&words.iter().map(String::as_str).collect::<Vec<_>>()).is_some();
        let mut words = span.said_by_user();
        // "Yes" is no language. The entries after the span are of the same user, and the previous summary is in their
        // language.
        if !says_enough(&words) {
            words.extend(span.said_by_user_later());
        }
        if !says_enough(&words) {
            words.extend(previous.as_ref().map(Clean::to_string));
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let [history, prefix] = pieces;
        Self {
            history,
            prefix,
            language: language::of(&words),
            script: language::script(&words),
            replaces: scale.size(span.replaced(scale.estimator())),
            cap,
            scale,
            previous,
            added: Arc::default(),
        }
    }

    /// The material of cleaned texts for a text of at most `cap` tokens. `words`: texts in the language of the user.
    #[must_use]
    pub fn of_texts(texts: Vec<String>, words: &[&str], cap: u64, scale: Scale) -> Self {
        let history = Pieces::measured(texts, &|text| scale.estimate(text));
        Self {
            prefix: Pieces::default(),
            previous: None,
            language: language::of(words),
            script: language::script(words),
            replaces: scale.size(history.tokens()),
            cap,
            scale,
            history,
            added: Arc::new(Later::now(Added::default())),
        }
    }

    /// Names the texts that are added to a summary. Those that were named before stay.
    pub fn add(&self, added: Added) {
        self.added.come(added);
    }

    /// Waits for the texts that are added to a summary.
    pub async fn complete(&self) {
        self.added.wait().await;
    }

    /// Divides the limit: the lists of files have their size, lost facts up to a fifth, and the beginning of a turn two
    /// fifths of the rest if there is a history. A previous summary that stays unchanged has its size. While the lists and the
    /// facts are not there, they have the most that they may have.
    #[must_use]
    pub fn shares(&self) -> Shares {
        let measure = |text: &str| self.scale.text(text);
        let added = self.added.get();
        let lists = added.map_or(self.cap / LARGEST_LISTS, |added| measure(&added.tags));
        let room = self.cap.saturating_sub(lists + 4);
        let facts =
            added.map_or(u64::MAX, |added| added.musts.iter().map(|must| measure(must.text()) + 3).sum::<u64>());
        let rules = facts.min(room / 5);
        let room = room - rules;
        let (history, prefix) = match (self.has_history(), self.prefix.is_empty()) {
            (_, true) => (room, 0),
            (false, false) => (0, room),
            (true, false) => {
                let stays = self.previous.as_deref().filter(|_| self.history.is_empty()).map(measure);
                let history = stays.map_or(room - room * 2 / 5, |record| (record + 1).min(room * 3 / 4));
                (history, room - history)
            }
        };
        Shares { history, prefix, rules }
    }

    /// Whether there is a history or a previous summary.
    #[must_use]
    pub fn has_history(&self) -> bool {
        !self.history.is_empty() || self.previous.is_some()
    }

    /// The pieces of a part, and the summary that it continues.
    #[must_use]
    pub fn part(&self, part: Part) -> (&Pieces, Option<&str>) {
        match part {
            Part::History => (&self.history, self.previous.as_deref()),
            Part::TurnPrefix | Part::Short => (&self.prefix, None),
        }
    }

    /// Composes the summary from its parts. Lost facts are added, and the lists of files at the end.
    #[must_use]
    pub fn compose(&self, history: Option<&Accepted>, prefix: Option<&Accepted>) -> Clean {
        let text = |part: Option<&Accepted>| part.cloned().map(Accepted::into_clean).unwrap_or_default();
        self.joined(&text(history), &text(prefix))
    }

    /// The facts that a summary lost, under their headings. Empty where it has them all.
    #[must_use]
    pub fn lost_by(&self, summary: &str) -> Clean {
        let Added { musts, .. } = self.added.get().cloned().unwrap_or_default();
        let lost = musts::lost(&musts, summary);
        Clean::assembled(musts::with("", &lost, self.shares().rules, &|text| self.scale.text(text)))
    }

    /// Composes the summary from an accepted part and the other one, which was extracted.
    #[must_use]
    pub fn completed(&self, part: SummaryPart, accepted: Accepted, extracted: &Clean) -> Clean {
        let accepted = &accepted.into_clean();
        match part {
            SummaryPart::History => self.joined(accepted, extracted),
            SummaryPart::TurnPrefix => self.joined(extracted, accepted),
        }
    }

    fn joined(&self, history: &Clean, prefix: &Clean) -> Clean {
        let measure = |text: &str| self.scale.text(text);
        let room = self.shares().rules;
        let both = format!("{history}\n{prefix}");
        let Added { musts, tags } = self.added.get().cloned().unwrap_or_default();
        let lost = musts::lost(&musts, &both);
        let head = match history.is_empty() {
            // The rules are the session's, not the turn's.
            true => musts::with(prefix, &lost, room, &measure),
            false => musts::with(history, &lost, room, &measure),
        };
        let mut whole = head;
        if !history.is_empty() && !prefix.is_empty() {
            whole.push_str(SPLIT_TURN);
            whole.push_str(prefix);
        }
        if !tags.is_empty() {
            whole.push_str("\n\n");
            whole.push_str(&tags);
        }
        Clean::assembled(whole)
    }
}
