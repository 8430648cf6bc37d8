//! One part of an extracted summary, history or turn prefix: its facts, and the lines that fill its room.

use super::{
    Part, Request, Wishes,
    excerpts::{excerpts, root},
    items::{AMPLE, Items, Kind, LAST, TINY, WISH},
    last_words::head_and_end,
    previous_summary,
    salient::{Context, Picker},
};
use crate::{
    conversation::entry::{Entry, TodoState},
    redact::Clean,
    summary::{
        archived, cues,
        heard::{Said, Speaker},
        ledger::{self, LAST_COMMAND, LEFT_OFF, Ledger, Sources},
        prose::{clip, content_words, item},
        sections::{self, Section},
        statements,
    },
    text,
};
use std::{collections::HashSet, sync::Arc};

/// One part of a summary.
pub(super) struct Draft<'a> {
    said: Vec<Said>,
    previous: Vec<(Section, String)>,
    /// The facts.
    pub ledger: Ledger,
    /// The part of the conversation that stays.
    following: Vec<Said>,
    /// Whether the turn goes on in the part that stays.
    goes_on: bool,
    request: &'a Request<'a>,
}

/// Longest quotation of instructions, in characters.
const LONGEST_WISH: usize = 400;

impl<'a> Draft<'a> {
    pub(super) fn of_history(request: &'a Request<'a>) -> Self {
        let archived = request.span.previous_archive();
        let archived = archived.map(|archive| archived::said(archive, &|text| request.clean(text)));
        let previous = previous_summary(request).map(|text| sections::parse(&text)).unwrap_or_default();
        Self::of(request, previous, archived.unwrap_or_default(), &request.span.history(), false)
    }

    pub(super) fn of_turn_prefix(request: &'a Request<'a>) -> Self {
        Self::of(request, Vec::new(), Vec::new(), &request.span.turn_prefix(), true)
    }

    fn of(
        request: &'a Request<'a>,
        mut previous: Vec<(Section, String)>,
        archived: Vec<Said>,
        entries: &[&'a Arc<Entry>],
        goes_on: bool,
    ) -> Self {
        // Instructions are for one summary, and so is the mark of what it left out.
        previous.retain(|(_, text)| !text.starts_with(WISH) && text != sections::GAP);
        let fresh: Vec<Said> = archived.into_iter().chain(request.heard(entries)).collect();
        let mut ledger = Ledger::of(&Sources {
            previous: &previous,
            said: &fresh,
            entries,
            goes_on,
            todo_tools: request.cleaner.todo_tools(),
            clean: &|text| request.clean(text),
        });
        let following = match request.without {
            Some(Part::Kept) => Vec::new(),
            _ => request.heard(&request.span.following().collect::<Vec<_>>()),
        };
        if !goes_on && ledger.has_open_failures() {
            ledger.learn_later(&request.heard(&request.span.turn_prefix()));
        }
        ledger.learn_later(&following);
        let excerpts = previous.iter().filter(|(section, _)| *section == Section::Excerpts);
        let carried =
            excerpts.filter_map(|(_, item)| sections::excerpt(item)).map(|(label, text)| carried(label, text));
        let said = carried.chain(fresh).collect();
        Self { said, previous, ledger, following, goes_on, request }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.said.is_empty() && self.previous.is_empty()
    }

    /// The goal: that of the previous summary, else the first request.
    pub(super) fn goal(&self) -> Option<&str> {
        let earlier = self.earlier(Section::Goal).next();
        earlier.or_else(|| self.ledger.requests.first().map(|request| request.text.as_str()))
    }

    fn earlier(&self, section: Section) -> impl Iterator<Item = &str> {
        self.previous.iter().filter(move |(it, _)| *it == section).map(|(_, text)| text.as_str())
    }

    /// The text within `cap` tokens. `wish`: instructions that it quotes.
    pub(super) fn compose(&self, cap: u64, wish: Option<&str>) -> String {
        let scale = self.request.scale;
        let measure = |text: &str| scale.text(text);
        let mut items = Items::new(cap, self.request.without, &measure);
        self.facts(&mut items, cap, wish);
        if self.request.without != Some(Part::Lines) {
            self.fill(&mut items, &measure);
        }
        items.into_text()
    }

    /// Fills the room that the facts leave with lines of the conversation.
    fn fill<'i>(&'i self, items: &mut Items<'i>, measure: &dyn Fn(&str) -> u64) {
        let Request { without, wishes, .. } = self.request;
        let root = root(&self.said);
        let solved = self.ledger.failures.iter().filter(|failure| failure.is_solved());
        let solved: HashSet<&str> = solved.map(|failure| failure.label.as_str()).collect();
        let context = Context {
            solved: &solved,
            following: &self.following,
            root,
            even: *without == Some(Part::Worth),
            known: &items.texts(),
            focus: &wishes.words(),
            stale: &|text| self.ledger.outdated.is_in(text),
        };
        let mut picker = Picker::new(&self.said, &context, measure);
        items.set_root(root);
        // The whole has fewer tokens than its parts: the room that is left after all is filled again.
        for _ in 0..REFILLS {
            if !picker.take(items.room()) {
                break;
            }
            items.replace_lines(excerpts(&self.said, &picker.picked(), root));
            // Many lines of one piece are one item, which does not go for a few tokens.
            while let Some(excess) = items.excess()
                && picker.give_back(excess)
            {
                items.replace_lines(excerpts(&self.said, &picker.picked(), root));
            }
        }
    }

    fn facts(&self, items: &mut Items<'_>, cap: u64, wish: Option<&str>) {
        let ledger = &self.ledger;
        if let Some(wish) = wish {
            // A quarter of a small summary.
            let chars = usize::try_from(cap).unwrap_or(usize::MAX).clamp(60, LONGEST_WISH);
            items.take(Kind::Wish, [(Section::Context, format!("{WISH}\"{}\"", clip(wish, chars)))]);
        }
        let goals: Vec<String> = self.earlier(Section::Goal).take(3).map(|goal| clip(goal, 600)).collect();
        let goals =
            if goals.is_empty() { self.goal().map(|goal| self.with_order(goal)).into_iter().collect() } else { goals };
        items.take(Kind::Goal, goals.into_iter().map(|goal| (Section::Goal, goal)));
        // Rules first to last: the oldest rule is as valid as the newest.
        let (carried, new): (Vec<_>, Vec<_>) = ledger.statements.iter().partition(|held| held.carried);
        for (rules, kind) in [(true, Kind::Rules), (false, Kind::Facts)] {
            let of_kind = |held: &&&ledger::Held| (held.statement.kind <= statements::Kind::Wish) == rules;
            let mut order: Vec<&&ledger::Held> =
                carried.iter().filter(of_kind).chain(new.iter().filter(of_kind)).collect();
            // A tiny summary has no labels, which tell the kind of a fact: those of an earlier one come first.
            let kind_of = |held: &ledger::Held| match held.statement.kind {
                statements::Kind::Fact if held.carried && cap < TINY => statements::Kind::Note,
                kind => kind,
            };
            order.sort_by_key(|held| (kind_of(held), !held.carried));
            let section = if rules { Section::Constraints } else { Section::Context };
            // The section tells the kind, too.
            let text = |text: &str| if cap < TINY { cues::without_label(text).to_owned() } else { text.to_owned() };
            let texts: Vec<String> = order.into_iter().map(|held| text(&held.statement.text)).collect();
            items.take_both_ends(kind, texts.into_iter().map(|text| (section, text)).collect());
        }
        let todo = |state: TodoState| {
            ledger.todos.iter().filter(move |todo| todo.state == state).map(|todo| clip(&todo.text, 240))
        };
        items.take(Kind::Open, todo(TodoState::Doing).map(|text| (Section::InProgress, text)));
        items.take(Kind::Open, todo(TodoState::Open).map(|text| (Section::NextSteps, text)));
        // The request of a split turn comes after the steps that were listed before it.
        if self.goes_on || self.request.span.turn_prefix().is_empty() {
            items.take(Kind::Open, ledger.next.iter().map(|step| (Section::NextSteps, step.clone())));
        }
        if ledger.todos.is_empty() {
            // The step that an answer announced was the next one at that time.
            let open =
                self.earlier(Section::NextSteps).filter(|step| !ledger::is_announced(step) && !self.is_done(step));
            items.take(Kind::Open, open.map(|step| (Section::NextSteps, clip(step, 300))));
        }
        self.requests(items, cap);
        let finished = self.earlier(Section::NextSteps).filter(|step| ledger.todos.is_empty() && self.is_done(step));
        let earlier = self.earlier(Section::Done).map(str::to_owned).chain(finished.map(str::to_owned));
        items.take_newest(Kind::Earlier, earlier.map(|line| (Section::Done, clip(&line, 320))));
        let goes_on = |line: &&str| ledger.requests.iter().all(|request| request.text != ledger::asked(line));
        let open = self.earlier(Section::InProgress).filter(goes_on);
        let section = |line: &str| if self.is_done(line) { Section::Done } else { Section::InProgress };
        items.take_newest(Kind::Earlier, open.map(|line| (section(line), clip(line, 320))));
        items.take_newest(Kind::Earlier, todo(TodoState::Done).map(|text| (Section::Done, text)));
        items.take(Kind::Instructions, self.instructions().into_iter().map(|rule| (Section::Constraints, rule)));
        let past =
            ledger.failures.iter().filter(|it| !it.is_open() && (cap >= WIDE || !it.is_solved_slip())).map(|failure| {
                let (section, mark) = failure.state.place();
                (section, format!("{mark}{}", failure.text()))
            });
        items.take_newest(Kind::Solved, past);
        let decisions =
            self.earlier(Section::Decisions).map(|line| clip(line, 300)).chain(ledger.decisions.iter().cloned());
        items.take_newest(Kind::Decisions, decisions.map(|line| (Section::Decisions, line)));
        if let Some(said) = self.last_words(cap) {
            items.take(Kind::Last, [(Section::Excerpts, format!("{LAST}{said}"))]);
        }
    }

    /// Whether no answer tells the outcome of a request: the next one says what it was about.
    fn is_unanswered(&self, text: &str) -> bool {
        self.ledger.requests.iter().any(|request| request.text == text && !request.is_done())
    }

    /// The rules in instructions of the project, those about the commands and requests of the conversation first.
    fn instructions(&self) -> Vec<String> {
        let mut used: HashSet<String> = HashSet::new();
        for piece in self.said.iter().filter(|piece| matches!(piece.speaker, Speaker::Call | Speaker::User)) {
            used.extend(content_words(&text::head(&piece.label, LONGEST_WISH).to_lowercase()));
            used.extend(content_words(&text::head(&piece.text, LONGEST_WISH).to_lowercase()));
        }
        // A line that only announces others says nothing by itself, and neither does one that leans on the line before.
        let leans = |rule: &str| rule.ends_with([':', '：']) || rule.ends_with("instead.") && rule.len() < SHORT_GOAL;
        let rules = self.ledger.instructions.iter().map(|rule| item(rule).unwrap_or(rule)).filter(|rule| !leans(rule));
        let mut rules: Vec<_> = rules
            .map(|rule| {
                let lower = rule.to_lowercase();
                let words = content_words(&lower);
                // A long sentence has more words of everything.
                let shared = words.intersection(&used).count() as f64 / (words.len().max(1) as f64).sqrt();
                (commands(&lower), shared, rule)
            })
            .collect();
        rules.sort_by(|(strong, shared, _), (other, of_other, _)| {
            other.cmp(strong).then_with(|| of_other.total_cmp(shared))
        });
        rules.into_iter().map(|(_, _, rule)| rule.to_owned()).collect()
    }

    /// A goal that is only the name of a command, with the first request in the user's own words.
    fn with_order(&self, goal: &str) -> String {
        let is_command = |text: &str| text.starts_with('/') && !text.contains(char::is_whitespace);
        let requests = self.ledger.requests.iter().map(|request| request.text.as_str());
        match requests.skip(1).find(|text| !is_command(text)).filter(|_| is_command(goal) && self.is_unanswered(goal)) {
            Some(order) => format!("{goal} – {}", clip(order, 300)),
            None => goal.to_owned(),
        }
    }

    /// Takes the requests, the latest one first, and the failures that are open.
    fn requests(&self, items: &mut Items<'_>, cap: u64) {
        // The goal stands above, and the last words below.
        let goal = self.goal();
        let last = self.last_words(cap).filter(|_| cap >= AMPLE).unwrap_or_default();
        let line = |request: &ledger::Request, chars: usize| {
            let is_goal = goal == Some(&request.text);
            let outcome = request.outcome.as_deref();
            let is_said_below =
                |outcome: &&str| is_goal && self.goes_on && last.contains(outcome.trim_end_matches(" …"));
            let asked = clip(&request.text, if is_goal { SHORT_GOAL.min(chars) } else { chars });
            let asked = if request.is_stopped() { format!("{asked} (interrupted)") } else { asked };
            let outcome = outcome.filter(|outcome| !is_said_below(outcome)).map(|outcome| clip(outcome, chars * 2 / 3));
            let gap = request.gap.as_deref().map(|gap| clip(gap, chars / 2));
            let told: Vec<String> = outcome.into_iter().chain(gap).collect();
            if told.is_empty() { asked } else { format!("{asked} → {}", told.join(" ")) }
        };
        let Some((latest, before)) = self.ledger.requests.split_last() else {
            return self.open_failures(items);
        };
        let size =
            |chars: usize| -> u64 { before.iter().map(|request| self.request.scale.text(&line(request, chars))).sum() };
        let chars = longest_that_fits(&REQUEST_CHARS, cap * REQUEST_SHARE / 100, size);
        let line = |request: &ledger::Request| line(request, chars);
        let is_open = self.goes_on || !latest.is_done();
        let section = if is_open { Section::InProgress } else { Section::Done };
        items.take(Kind::Latest, [(section, line(latest))]);
        if let Some(command) = self.ledger.last_command.as_deref().filter(|_| self.goes_on) {
            items.take(Kind::Latest, [(Section::Context, format!("{LAST_COMMAND}{command}"))]);
        }
        if self.goes_on {
            let so_far = self.ledger.so_far.iter().filter(|said| latest.outcome.as_deref() != Some(said.as_str()));
            items.take_newest(Kind::SoFar, so_far.map(|said| (Section::Done, clip(said, chars))));
        }
        self.open_failures(items);
        let (left_off, before): (Vec<_>, Vec<_>) = before.iter().partition(|request| request.is_left_off());
        let with_section = |request: &ledger::Request| {
            (if request.is_done() { Section::Done } else { Section::InProgress }, line(request))
        };
        items.take_newest(Kind::Requests, before.into_iter().map(with_section));
        let left_off = left_off.into_iter().map(|request| (Section::Context, format!("{LEFT_OFF}{}", line(request))));
        items.take_newest(Kind::LeftOff, left_off);
    }

    /// The last words as the summary shows them: about the share of their kind.
    fn last_words(&self, cap: u64) -> Option<String> {
        let chars = (cap as usize * 2 / 5).clamp(120, 2_000);
        self.ledger.last_words.as_deref().map(|said| head_and_end(said.trim(), chars))
    }

    fn open_failures(&self, items: &mut Items<'_>) {
        let open = self.ledger.failures.iter().filter(|failure| failure.is_open());
        items.take_newest(Kind::Failures, open.map(|failure| (Section::Blocked, failure.text())));
    }

    /// Whether a step of the previous summary is done: the agent said so, with most of its words.
    fn is_done(&self, step: &str) -> bool {
        let words = |text: &str| -> HashSet<String> {
            let words = text.split(|char: char| !char.is_alphanumeric()).filter(|word| word.len() > 3);
            words.map(str::to_lowercase).collect()
        };
        let step = words(step);
        !step.is_empty()
            && self.said.iter().filter(|piece| !piece.carried).any(|piece| {
                matches!(piece.speaker, Speaker::Assistant | Speaker::Call)
                    && piece.text.lines().chain(piece.label.lines()).any(|line| {
                        let lower = line.to_lowercase();
                        ledger::says_done(&lower) && {
                            let said = words(line);
                            step.iter().filter(|word| said.contains(*word)).count() * 10 >= step.len() * 7
                        }
                    })
            })
    }
}

/// A summary in tokens that has room for slips in the use of a tool.
const WIDE: u64 = 4_000;

/// Whether a rule commands with a word that its project stands on. After a subject most of these words tell how something is:
/// "users don't need it".
fn commands(lower: &str) -> bool {
    const STRONG: [&str; 7] = ["must", "never", "always", "do not", "don't", "niemals", "immer"];
    const LEADS: [&str; 8] = ["please", "and", "but", "or", "so", "then", "you", "also"];
    const SUBJECTS: [&str; 13] =
        ["it", "they", "users", "he", "she", "which", "who", "that", "there", "is", "are", "was", "were"];
    let mut found = STRONG.iter().flat_map(|word| lower.match_indices(word));
    found.any(|(at, strong)| {
        let before = lower[..at].trim_end();
        let word = before.rsplit(|char: char| !char.is_alphanumeric()).next().unwrap_or_default();
        // Code is a subject, too.
        let begins = word.is_empty() && !before.ends_with(['`', ')']);
        let is_part = lower[..at].ends_with(char::is_alphanumeric)
            || lower[at + strong.len()..].starts_with(char::is_alphanumeric);
        match strong {
            _ if is_part => false,
            "must" => true,
            "do not" | "don't" => begins || LEADS.contains(&word),
            _ => begins || !SUBJECTS.contains(&word),
        }
    })
}

/// Length of the goal where it stands among the requests, in characters.
const SHORT_GOAL: usize = 60;

/// Times that the room of a summary is filled.
const REFILLS: usize = 4;

/// An excerpt of an earlier summary.
fn carried(label: &str, text: String) -> Said {
    let (speaker, label) = match label {
        "user" => (Speaker::User, label),
        label if label == "assistant" || LAST.strip_suffix(": ") == Some(label) => (Speaker::Assistant, "assistant"),
        _ => (Speaker::Aside, label),
    };
    Said { carried: true, ..Said::new(speaker, Clean::assembled(label), Clean::assembled(text)) }
}

/// Lengths of a request, in characters. The outcome has two thirds of it.
const REQUEST_CHARS: [usize; 6] = [320, 240, 180, 140, 110, 90];

/// The share of a summary, in hundredths, that all requests may have before they are shortened.
const REQUEST_SHARE: u64 = 22;

/// The first of these lengths, the longest first, with which a text has at most `room` tokens; else the shortest.
fn longest_that_fits(lengths: &[usize], room: u64, size: impl Fn(usize) -> u64) -> usize {
    let fits = lengths.iter().find(|chars| size(**chars) <= room).or(lengths.last());
    fits.copied().unwrap_or_default()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strong_word_after_a_subject_commands_nothing() {
        for rule in [
            "don't use unwrap",
            "use tabs. do not use spaces",
            "please don't push",
            "**never** push",
            "commits must be signed",
            "we always squash",
            "if it fails, don't retry",
        ] {
            assert!(commands(rule), "{rule}");
        }
        for other in [
            "users don't need to know it",
            "use the flag where they just don't get it",
            "`open()` don't lock",
            "it never returns",
            "the list is always sorted",
            "use mustard",
        ] {
            assert!(!commands(other), "{other}");
        }
    }
}
