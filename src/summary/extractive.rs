//! A summary without a model: deterministic, without a network, and without failures. A session gets it if no model is
//! configured, or if every model fails.
//!
//! The summary consists of facts (goal, rules of the user, requests and their outcomes, open tasks, failures, decisions),
//! of the most valuable lines, and of the agent's last words. Every item has a rank; the best items that fit are taken.

pub mod salient;

use super::{
    SPLIT_TURN, archived,
    cleaner::Cleaner,
    files::{FileLists, without_files},
    ledger::{self, Ledger, Said, Speaker},
    made::SummaryPart,
    sections::{self, Section},
    span::Span,
};
use crate::{
    conversation::{
        entry::{Entry, TodoState as State},
        tokens::Scale,
    },
    redact::Clean,
    settings::Settings,
    text,
};
use std::{collections::HashSet, sync::Arc};

/// A request for an extracted summary.
pub struct Request<'a> {
    /// The part of the conversation that is summarized.
    pub span: Span<'a>,
    /// The wishes of its request.
    pub wishes: Wishes<'a>,
    /// Limit of the summary with its file lists, in tokens.
    pub cap: u64,
    /// Tools.
    pub settings: &'a Settings,
    /// Cleans every text.
    pub cleaner: &'a Cleaner,
    /// The scale that texts are measured with.
    pub scale: Scale,
    /// Whether the work is cancelled. It then ends early with a summary that is not complete.
    pub stop: &'a dyn Fn() -> bool,
}

/// The wishes of a request for a summary. Lines about them come before all others.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wishes<'a> {
    /// The topics that a person wants to be kept above all. The summary quotes them.
    pub instructions: Option<&'a str>,
    /// Other texts whose topics are to be kept.
    pub topics: &'a [String],
}

impl Wishes<'_> {
    /// The words of the wishes that lines are chosen by.
    fn words(&self) -> Vec<String> {
        const FILLERS: &[&str] =
            &["about", "keep", "focus", "that", "this", "with", "everything", "summary", "remember"];
        let texts = self.instructions.into_iter().chain(self.topics.iter().map(String::as_str));
        let words = texts.flat_map(|text| text.split(|char: char| !char.is_alphanumeric() && char != '_'));
        let words = words.map(str::to_lowercase);
        words.filter(|word| word.chars().count() > 3 && !FILLERS.contains(&word.as_str())).collect()
    }
}

/// A finished summary. Its texts are redacted, or it does not compile:
///
/// ```compile_fail,E0308
/// use abridged::summary::extractive::Summary;
///
/// let text = "DB_PASSWORD=hunter2hunter2".to_owned();
/// let summary = Summary { text, short: Default::default(), files: Default::default() };
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
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
        ledger::listen(entries, &|text| self.clean(text), self.stop)
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
        if !out.is_empty() {
            out.push_str(SPLIT_TURN);
        }
        out.push_str(&prefix.compose(share, wish));
    }
    let short = short(&history, &prefix, &files, span.messages().len());
    if !tags.is_empty() {
        out.push_str("\n\n");
        out.push_str(&tags);
    }
    if out.is_empty() && scale.text(NOTHING) <= request.cap {
        out.push_str(NOTHING);
    }
    Summary { text: Clean::assembled(out), short, files }
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
    Clean::assembled(draft.compose(request.cap, request.wish().as_deref()))
}

/// The previous summary. One with an archive says only how to read it.
fn previous_summary(request: &Request<'_>) -> Option<Clean> {
    if request.span.previous_archive().is_some() {
        return None;
    }
    // The file lists of a summary are read from its details.
    Some(request.clean(&without_files(request.span.previous_summary()?)))
}

/// Two sentences about the span: its goal and its size.
fn short(history: &Draft<'_>, prefix: &Draft<'_>, files: &FileLists, messages: usize) -> Clean {
    let first = |said: &[Said]| said.iter().find(|it| it.speaker == Speaker::User).map(|it| it.text.to_string());
    let previous = history.previous.as_deref();
    let goal = previous
        .and_then(|text| sections::parse(text).into_iter().find(|(section, _)| *section == Section::Goal))
        .map(|(_, goal)| goal)
        .or_else(|| first(&history.said))
        .or_else(|| first(&prefix.said))
        .unwrap_or_else(|| "the conversation so far".to_owned());
    let goal = text::one_line(&goal, 120);
    let goal = goal.trim_end_matches('.');
    let changed = match (files.modified_files.as_slice(), files.modified_files_left_out) {
        ([], 0) => "no files were changed".to_owned(),
        ([file], 0) => format!("{file} was changed"),
        (named, more) => format!("{} files were changed", (named.len() as u64).saturating_add(more)),
    };
    Clean::assembled(format!("Work on: {goal}. {messages} messages were condensed; {changed}."))
}

/// Size below which empty headings are left out, in tokens: they would be most of the summary.
const SMALL: u64 = 600;

/// One part of a summary, history or turn prefix.
struct Draft<'a> {
    said: Vec<Said>,
    entries: Vec<&'a Arc<Entry>>,
    previous: Option<Clean>,
    request: &'a Request<'a>,
}

/// A candidate line of a summary. Lower ranks precede; items of one rank keep their order.
struct Item {
    rank: u8,
    section: Section,
    /// Its place within its section.
    order: usize,
    text: String,
}

/// Ranks, best first. A summary is filled in this order up to its limit.
mod rank {
    pub(super) const WISH: u8 = 0;
    pub(super) const GOAL: u8 = 1;
    pub(super) const CONSTRAINT: u8 = 2;
    pub(super) const OPEN: u8 = 3;
    pub(super) const LATEST: u8 = 4;
    pub(super) const FAILURE: u8 = 5;
    pub(super) const REQUEST: u8 = 6;
    pub(super) const EARLIER: u8 = 7;
    pub(super) const DECISION: u8 = 8;
    pub(super) const NARRATIVE: u8 = 9;
    pub(super) const LINE: u8 = 10;
}

/// Label of the instructions that a summary quotes.
const WISH: &str = "Instructions for this summary: ";

/// Longest quotation of instructions, in characters.
const LONGEST_WISH: usize = 400;

impl<'a> Draft<'a> {
    fn of_history(request: &'a Request<'a>) -> Self {
        let entries = request.span.history();
        let archived = request.span.previous_archive();
        let archived = archived.map(|archive| archived::said(archive, &|text| request.clean(text)));
        let said = archived.into_iter().flatten().chain(request.heard(&entries)).collect();
        Self { said, entries, previous: previous_summary(request), request }
    }

    fn of_turn_prefix(request: &'a Request<'a>) -> Self {
        let entries = request.span.turn_prefix();
        Self { said: request.heard(&entries), entries, previous: None, request }
    }

    fn is_empty(&self) -> bool {
        self.said.is_empty() && self.previous.is_none()
    }

    /// The text within `cap` tokens. `wish`: instructions that it quotes.
    fn compose(&self, cap: u64, wish: Option<&str>) -> String {
        let clean = |text: &str| self.request.clean(text);
        let ledger = Ledger::of(&self.said, &self.entries, &self.request.settings.tools.todo, &clean);
        let short = cap < SMALL;
        let empty = self.request.scale.text(&sections::render(&[], short));
        let room = cap.saturating_sub(empty);
        let mut taken = Taken { room, items: Vec::new(), scale: self.request.scale, short };
        // Facts have two thirds at most, so that there is always something of what was actually said.
        taken.fill(self.facts(&ledger, room, wish), room * 2 / 3);
        taken.fill(self.narrative(&ledger, taken.room), taken.room / 3);
        let lines = self.lines(taken.room);
        taken.fill(lines, taken.room);
        taken.render(cap)
    }

    fn facts(&self, ledger: &Ledger, room: u64, wish: Option<&str>) -> Vec<Item> {
        let mut earlier = self.previous.as_deref().map(sections::parse).unwrap_or_default();
        // Instructions are for one summary.
        earlier.retain(|(_, text)| !text.starts_with(WISH));
        let mut facts = Facts::default();
        if let Some(wish) = wish {
            // A quarter of a small summary.
            let chars = usize::try_from(room).unwrap_or(usize::MAX).clamp(60, LONGEST_WISH);
            facts.add(rank::WISH, Section::Context, &format!("{WISH}\"{}\"", text::one_line(wish, chars)));
        }
        let of = |section: Section| earlier.iter().filter(move |(it, _)| *it == section).map(|(_, text)| text.as_str());

        match of(Section::Goal).next() {
            Some(_) => {
                of(Section::Goal).take(3).for_each(|goal| facts.add(rank::GOAL, Section::Goal, text::head(goal, 600)))
            }
            None => {
                if let Some(first) = ledger.requests.first() {
                    facts.add(rank::GOAL, Section::Goal, &first.text);
                }
            }
        }
        // Rules first to last: the oldest rule is as valid as the newest.
        of(Section::Constraints)
            .for_each(|rule| facts.add(rank::CONSTRAINT, Section::Constraints, text::head(rule, 400)));
        ledger.constraints.iter().for_each(|rule| facts.add(rank::CONSTRAINT, Section::Constraints, rule));

        if ledger.todos.is_empty() {
            of(Section::NextSteps).for_each(|step| facts.add(rank::EARLIER, Section::NextSteps, text::head(step, 300)));
        }
        for todo in &ledger.todos {
            let line = text::one_line(&todo.text, 240);
            match todo.state {
                State::Open => facts.add(rank::OPEN, Section::NextSteps, &line),
                State::Doing => facts.add(rank::OPEN, Section::InProgress, &line),
                State::Done => facts.add(rank::EARLIER, Section::Done, &line),
            }
        }
        for failure in ledger.failures.iter().rev() {
            let line = format!("{}: {}", failure.label, failure.line);
            match failure.resolved {
                false => facts.add(rank::FAILURE, Section::Blocked, &line),
                true => facts.add(rank::EARLIER, Section::Context, &format!("failed, later worked – {line}")),
            }
        }
        let chars = request_chars(room);
        let (last, before) = match ledger.requests.split_last() {
            Some((last, before)) => (Some(last), before),
            None => (None, &[][..]),
        };
        if let Some(request) = last {
            facts.add(rank::LATEST, Section::InProgress, &outcome_line(request, chars));
        }
        for request in before.iter().rev() {
            facts.add(rank::REQUEST, Section::Done, &outcome_line(request, chars));
        }
        for section in [Section::InProgress, Section::Done] {
            // What was in progress then is done or taken up again by now.
            let earlier: Vec<&str> = of(section).collect();
            earlier.iter().rev().for_each(|line| facts.add(rank::EARLIER, Section::Done, text::head(line, 300)));
        }
        of(Section::Blocked).for_each(|line| facts.add(rank::EARLIER, Section::Context, text::head(line, 300)));
        ledger.decisions.iter().rev().for_each(|line| facts.add(rank::DECISION, Section::Decisions, line));
        let decisions: Vec<&str> = of(Section::Decisions).collect();
        decisions.iter().rev().for_each(|line| facts.add(rank::DECISION, Section::Decisions, text::head(line, 300)));
        let context: Vec<&str> = of(Section::Context).collect();
        context.iter().for_each(|line| facts.add(rank::DECISION, Section::Context, text::head(line, 300)));
        facts.in_order()
    }

    /// The agent's last words, verbatim, newest first.
    fn narrative(&self, ledger: &Ledger, room: u64) -> Vec<Item> {
        let newest = ledger.narrative.iter().rev().take(3).enumerate();
        newest
            .map(|(age, said)| {
                // A token has about four characters: a third of the room for the newest, less for what came before.
                let chars = (room as usize * 4 / 3 / (1 + age)).clamp(120, 2_000);
                let said = text::clip_middle(said.trim(), chars, " […] ");
                Item {
                    rank: rank::NARRATIVE,
                    section: Section::Context,
                    order: usize::MAX - age,
                    text: format!("said last: {said}"),
                }
            })
            .collect()
    }

    /// The most valuable lines; those of one piece are together under its label.
    fn lines(&self, room: u64) -> Vec<Item> {
        let focus = self.request.wishes.words();
        let mut items: Vec<Item> = Vec::new();
        let mut last_piece = None;
        for picked in salient::pick(&self.said, room, &focus) {
            let line = picked.text;
            if last_piece == Some(picked.piece)
                && let Some(item) = items.last_mut()
            {
                item.text.push('\n');
                item.text.push_str(&line);
                continue;
            }
            last_piece = Some(picked.piece);
            let label = &self.said[picked.piece].label;
            items.push(Item {
                rank: rank::LINE,
                section: Section::Context,
                order: picked.piece,
                text: format!("{label}: {line}"),
            });
        }
        items
    }
}

/// Length of a request, in characters: shorter in a small summary, so that more of them fit.
fn request_chars(room: u64) -> usize {
    if room < 6_000 { 110 } else { 240 }
}

fn outcome_line(request: &ledger::Request, chars: usize) -> String {
    let asked = text::one_line(&request.text, chars);
    match &request.outcome {
        Some(outcome) => format!("{asked} → {}", text::one_line(outcome, chars * 2 / 3)),
        None => asked,
    }
}

/// Facts without duplicates.
#[derive(Default)]
struct Facts {
    items: Vec<Item>,
    known: HashSet<String>,
}

impl Facts {
    fn add(&mut self, rank: u8, section: Section, text: &str) {
        let text = text.trim();
        if text.is_empty() || !self.known.insert(text.to_lowercase()) {
            return;
        }
        self.items.push(Item { rank, section, order: self.items.len(), text: text.to_owned() });
    }

    /// The facts by rank. Lists whose newest items matter most were added newest first; a summary has them oldest first.
    fn in_order(mut self) -> Vec<Item> {
        let count = self.items.len();
        for item in &mut self.items {
            if matches!(item.rank, rank::REQUEST | rank::EARLIER | rank::DECISION | rank::FAILURE)
                && item.section != Section::NextSteps
            {
                item.order = count - item.order;
                // Within a section: earlier summaries, then older requests, then newer ones.
                if item.rank == rank::REQUEST {
                    item.order += count;
                }
            }
        }
        self.items.sort_by_key(|item| item.rank);
        self.items
    }
}

/// The items that a summary has so far.
struct Taken {
    /// Whether empty headings are left out.
    short: bool,
    room: u64,
    items: Vec<Item>,
    scale: Scale,
}

impl Taken {
    /// Takes the items that fit into `share`, in order.
    fn fill(&mut self, items: Vec<Item>, share: u64) {
        let mut left = share.min(self.room);
        for item in items {
            let cost = self.cost(&item.text);
            if cost <= left {
                left -= cost;
                self.room -= cost;
                self.items.push(item);
            } else if item.rank == rank::GOAL && item.section == Section::Goal && left > 40 {
                // A goal that is too long is still the goal.
                let text = text::one_line(&item.text, left as usize);
                self.room -= self.cost(&text).min(self.room);
                self.items.push(Item { text, ..item });
                left = 0;
            }
        }
    }

    /// Cost of a text with its bullet, in tokens.
    fn cost(&self, text: &str) -> u64 {
        self.scale.text(text) + 4
    }

    fn render(mut self, cap: u64) -> String {
        self.items.sort_by_key(|item| item.order);
        loop {
            let items: Vec<(Section, String)> =
                self.items.iter().map(|item| (item.section, item.text.clone())).collect();
            let text = sections::render(&items, self.short);
            // Tokens of a whole are rarely more than those of its parts; where they are, the least important goes.
            if self.scale.text(&text) <= cap || self.items.is_empty() {
                return text;
            }
            let worst = self.items.iter().enumerate().max_by_key(|(_, item)| item.rank).map_or(0, |(at, _)| at);
            self.items.remove(worst);
        }
    }
}
