//! A summary without a model: deterministic, without a network, and without failures. A session gets it if no model is
//! configured, or if every model fails.
//!
//! The summary consists of facts (goal, statements of the user, requests and their outcomes, open tasks, failures, decisions),
//! each kind within a share of its own, and of the lines that fill the room after them (`docs/FIDELITY.md`).

mod draft;
mod excerpts;
mod gone;
mod items;
mod last_words;
mod salient;
mod short;
mod worth;

use super::{
    SPLIT_TURN,
    cleaner::Cleaner,
    files::{FileLists, without_files},
    heard::{self, Said},
    made::SummaryPart,
    span::Span,
};
use crate::{
    conversation::{entry::Entry, tokens::Scale},
    redact::Clean,
    settings::Settings,
    text,
};
use draft::Draft;
use std::sync::Arc;

/// A request for an extracted summary.
pub struct Request<'a> {
    /// The part of the conversation that is summarized.
    pub span: Span<'a>,
    /// The wishes of its request.
    pub wishes: Wishes<'a>,
    /// Limit of the summary with its file lists, in tokens.
    pub cap: u64,
    /// A part that is left out. A measurement sees what it brings.
    pub without: Option<Part>,
    /// Tools.
    pub settings: &'a Settings,
    /// Cleans every text.
    pub cleaner: &'a Cleaner,
    /// The scale that texts are measured with.
    pub scale: Scale,
    /// Whether the work is cancelled. It then ends early with a summary that is not complete.
    pub stop: &'a dyn Fn() -> bool,
}

/// A part of the extraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Rules, wishes and facts of the user.
    Statements,
    /// Requests and their outcomes.
    Requests,
    /// Failures.
    Failures,
    /// Decisions of the agent.
    Decisions,
    /// Its last words.
    LastWords,
    /// Lines of the conversation.
    Lines,
    /// The worth of names: without it all names have the same.
    Worth,
    /// The knowledge of the part that stays.
    Kept,
}

impl Part {
    /// All parts.
    pub const ALL: [Self; 8] = [
        Self::Statements,
        Self::Requests,
        Self::Failures,
        Self::Decisions,
        Self::LastWords,
        Self::Lines,
        Self::Worth,
        Self::Kept,
    ];
}

/// The wishes of a request for a summary. Lines about them come before all others.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wishes<'a> {
    /// The topics that a person wants to be kept above all. The summary quotes them.
    pub instructions: Option<&'a str>,
    /// Other texts whose topics are to be kept.
    pub topics: &'a [String],
}

/// A finished summary. Its texts are redacted, or it does not compile:
///
/// ```compile_fail,E0308
/// use abridged::summary::extractive::Summary;
///
/// let text = "DB_PASSWORD=hunter2hunter2".to_owned();
/// let summary = Summary { text, short: Default::default(), files: Default::default() };
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// The text, with its file lists at the end.
    pub text: Clean,
    /// Two sentences for a person.
    pub short: Clean,
    /// The files.
    pub files: FileLists,
}

impl Request<'_> {
    fn clean(&self, text: &str) -> Clean {
        self.cleaner.clean(text)
    }

    /// The instructions that a summary quotes.
    fn wish(&self) -> Option<Clean> {
        self.wishes.instructions.map(|text| self.clean(text)).filter(|text| !text.trim().is_empty())
    }

    fn heard(&self, entries: &[&Arc<Entry>]) -> Vec<Said> {
        heard::listen(entries, &|text| self.clean(text), self.stop)
    }
}

/// Summarizes a span. The same request gives the same summary, byte for byte.
#[must_use]
pub fn summarize(request: &Request<'_>) -> Summary {
    let Request { span, scale, .. } = request;
    let files = FileLists::of(span, &request.settings.tools.files, &|path| request.clean(path));
    let tags = files.tags_within(request.cap / 4, &|text| scale.text(text));

    let room = request.cap.saturating_sub(scale.text(&tags));
    let (history, prefix) = (Draft::of_history(request), Draft::of_turn_prefix(request));
    // The kept messages continue the beginning of a split turn: it gets two fifths of the room, or all of it.
    let share = match (history.is_empty(), prefix.is_empty()) {
        (_, true) => 0,
        (true, false) => room,
        (false, false) => room * 2 / 5,
    };
    let wish = request.wish();
    let mut wish = wish.as_deref();
    let mut out = String::new();
    if share < room {
        out = history.compose(room - share, wish.take());
    }
    if share > 0 {
        let of_turn = prefix.compose(share, wish);
        if !out.is_empty() && !of_turn.trim().is_empty() {
            out.push_str(SPLIT_TURN);
        }
        out.push_str(&of_turn);
    }
    let short = short::of(&history, &prefix, &files);
    // A name of a file may have a word of a secret, and is one word of the list.
    out = request.cleaner.cleaned_again(&out).into_string();
    if !tags.is_empty() {
        out.push_str("\n\n");
        out.push_str(&tags);
    }
    if out.is_empty() && !span.said_by_user().is_empty() {
        // Nothing is worth a line by its kind. The words of the user are what there is.
        out.push_str(&plain(request).text);
    }
    if out.is_empty() && scale.text(NOTHING) <= request.cap {
        out.push_str(NOTHING);
    }
    Summary { text: Clean::assembled(out), short: request.cleaner.cleaned_again(&short), files }
}

/// A summary of the newest texts of the user, with the lists of files: the floor where the extraction itself has a defect. Less of
/// the code that may have one makes it.
#[must_use]
pub fn plain(request: &Request<'_>) -> Summary {
    /// Longest text, in characters.
    const LONGEST: usize = 400;
    let Request { span, scale, .. } = request;
    let files = FileLists::of(span, &request.settings.tools.files, &|path| request.clean(path));
    let said: Vec<Clean> = span.said_by_user().iter().map(|text| request.clean(text)).collect();
    let line = |text: &Clean| format!("- {}\n", text::one_line(text, LONGEST));
    let mut text = "## Critical Context\n".to_owned();
    let tags = files.tags_within(request.cap / 4, &|text| scale.text(text));
    for said in &said {
        let more = format!("{text}{}", line(said));
        if scale.text(&more) + scale.text(&tags) + 4 > request.cap {
            break;
        }
        text = more;
    }
    let short = Clean::assembled(said.first().map(|said| text::one_line(said, LONGEST)).unwrap_or_default());
    let text = request.cleaner.cleaned_again(format!("{text}\n{tags}").trim());
    Summary { text, short: request.cleaner.cleaned_again(&short), files }
}

/// Whether a summary is the text of a compaction that only cuts messages.
#[must_use]
pub fn is_nothing(summary: &str) -> bool {
    summary == NOTHING
}

/// The text of a compaction that only cuts messages.
const NOTHING: &str = "No message was summarized: all of them are kept, some of them shortened.";

/// Extracts one part of a summary of a split turn, without lists of files. The limit of the request is that of the part.
#[must_use]
pub fn part(request: &Request<'_>, part: SummaryPart) -> Clean {
    let draft = match part {
        SummaryPart::History => Draft::of_history(request),
        SummaryPart::TurnPrefix => Draft::of_turn_prefix(request),
    };
    request.cleaner.cleaned_again(&draft.compose(request.cap, request.wish().as_deref()))
}

/// The previous summary. One with an archive says only how to read it.
fn previous_summary(request: &Request<'_>) -> Option<Clean> {
    if request.span.previous_archive().is_some() {
        return None;
    }
    // The file lists of a summary are read from its details.
    Some(request.clean(&without_files(request.span.previous_summary()?)))
}
