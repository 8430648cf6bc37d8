//! The material of a summary, for any summarizer: the conversation in pieces, the previous summary, the rules of the user,
//! the files, and the limits.

use super::{
    brief::Part,
    check::Accepted,
    fold::Pieces,
    language::{self, Language, Script},
    musts::{self, Must},
    transcript::transcript,
};
use crate::{
    conversation::{entry::Entry, tokens::Scale},
    redact::Clean,
    summary::{
        SPLIT_TURN,
        cleaner::Cleaner,
        files::{FileLists, without_files},
        made::SummaryPart,
        span::Span,
    },
};
use std::sync::Arc;

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
    /// The facts that the summary must have.
    musts: Vec<Must>,
    /// The lists of files, as the end of the summary has them.
    tags: String,
}

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
        let clean = |text: &str| cleaner.clean(text);
        let (history, prefix) = (span.history(), span.turn_prefix());
        // Requests are planned by the estimate: each summarizer has a factor of its own.
        let told = |text: &str| clean(text).into_string();
        let pieces =
            |entries: &[&Arc<Entry>]| Pieces::measured(transcript(entries, &told, stop), &|text| scale.estimate(text));
        let previous = span.previous_summary().map(|text| clean(&without_files(text)));
        let previous = previous.filter(|text| !text.trim().is_empty());
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
        let all: Vec<&Arc<Entry>> = history.iter().chain(&prefix).copied().collect();
        Self {
            history: pieces(&history),
            prefix: pieces(&prefix),
            language: language::of(&words),
            script: language::script(&words),
            replaces: scale.size(span.replaced(scale.estimator())),
            cap,
            musts: musts::musts(previous.as_deref(), &all, cleaner.todo_tools(), &clean, stop),
            tags: files.tags_within(cap / 4, &|text| scale.text(text)),
            scale,
            previous,
        }
    }

    /// The material of cleaned texts for a text of at most `cap` tokens. `words`: texts in the language of the user.
    #[must_use]
    pub fn of_texts(texts: Vec<String>, words: &[&str], cap: u64, scale: Scale) -> Self {
        let history = Pieces::measured(texts, &|text| scale.estimate(text));
        Self {
            prefix: Pieces::measured(Vec::new(), &|text| scale.estimate(text)),
            previous: None,
            language: language::of(words),
            script: language::script(words),
            replaces: scale.size(history.tokens()),
            cap,
            musts: Vec::new(),
            tags: String::new(),
            scale,
            history,
        }
    }

    /// Divides the limit: the lists of files have their size, lost facts up to a fifth, and the beginning of a turn two
    /// fifths of the rest if there is a history. A previous summary that stays unchanged has its size.
    #[must_use]
    pub fn shares(&self) -> Shares {
        let measure = |text: &str| self.scale.text(text);
        let room = self.cap.saturating_sub(measure(&self.tags) + 4);
        let all: u64 = self.musts.iter().map(|must| measure(must.text()) + 3).sum();
        let rules = all.min(room / 5);
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
        let lost = musts::lost(&self.musts, &both);
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
        if !self.tags.is_empty() {
            whole.push_str("\n\n");
            whole.push_str(&self.tags);
        }
        Clean::assembled(whole)
    }
}
