//! One part of an extracted summary, history or turn prefix: its facts, and the lines that fill its room.

use super::{
    Part, Request, Wishes,
    items::{Items, Kind, TINY},
    previous_summary,
    salient::{Context, Picked, Picker},
};
use crate::{
    conversation::entry::{Entry, TodoState},
    redact::Clean,
    summary::{
        archived, cues,
        heard::{Said, Speaker},
        ledger::{self, Ledger, Sources},
        prose::clip,
        read_lines,
        sections::{self, GAP, Section},
        statements,
    },
};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// One part of a summary.
pub(super) struct Draft<'a> {
    said: Vec<Said>,
    previous: Vec<(Section, String)>,
    /// The facts.
    pub ledger: Ledger,
    request: &'a Request<'a>,
}

/// Label of the instructions that a summary quotes.
const WISH: &str = "Instructions for this summary: ";

/// Label of the agent's last words.
const LAST: &str = "said last";

/// Longest quotation of instructions, in characters.
const LONGEST_WISH: usize = 400;

impl<'a> Draft<'a> {
    pub(super) fn of_history(request: &'a Request<'a>) -> Self {
        let archived = request.span.previous_archive();
        let archived = archived.map(|archive| archived::said(archive, &|text| request.clean(text)));
        let previous = previous_summary(request).map(|text| sections::parse(&text)).unwrap_or_default();
        Self::of(request, previous, archived.unwrap_or_default(), &request.span.history())
    }

    pub(super) fn of_turn_prefix(request: &'a Request<'a>) -> Self {
        Self::of(request, Vec::new(), Vec::new(), &request.span.turn_prefix())
    }

    fn of(
        request: &'a Request<'a>,
        mut previous: Vec<(Section, String)>,
        archived: Vec<Said>,
        entries: &[&'a Arc<Entry>],
    ) -> Self {
        // Instructions are for one summary.
        previous.retain(|(_, text)| !text.starts_with(WISH));
        let fresh: Vec<Said> = archived.into_iter().chain(request.heard(entries)).collect();
        let ledger = Ledger::of(&Sources {
            previous: &previous,
            said: &fresh,
            entries,
            todo_tools: request.cleaner.todo_tools(),
            clean: &|text| request.clean(text),
        });
        let excerpts = previous.iter().filter(|(section, _)| *section == Section::Excerpts);
        let carried =
            excerpts.filter_map(|(_, item)| sections::excerpt(item)).map(|(label, text)| carried(label, text));
        let said = carried.chain(fresh).collect();
        Self { said, previous, ledger, request }
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
        let Request { without, span, wishes, .. } = self.request;
        let following = match without {
            Some(Part::Kept) => Vec::new(),
            _ => self.request.heard(&span.following().collect::<Vec<_>>()),
        };
        let root = root(&self.said);
        let context = Context {
            following: &following,
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
        let goals = if goals.is_empty() { self.goal().map(str::to_owned).into_iter().collect() } else { goals };
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
            items.take(kind, order.into_iter().map(|held| (section, text(&held.statement.text))));
        }
        let todo = |state: TodoState| {
            ledger.todos.iter().filter(move |todo| todo.state == state).map(|todo| clip(&todo.text, 240))
        };
        items.take(Kind::Open, todo(TodoState::Doing).map(|text| (Section::InProgress, text)));
        items.take(Kind::Open, todo(TodoState::Open).map(|text| (Section::NextSteps, text)));
        if ledger.todos.is_empty() {
            let open = self.earlier(Section::NextSteps).filter(|step| !self.is_done(step));
            items.take(Kind::Open, open.map(|step| (Section::NextSteps, clip(step, 300))));
        }
        let (open, solved): (Vec<_>, Vec<_>) = ledger.failures.iter().partition(|failure| !failure.resolved);
        let chars = request_chars(cap);
        if let Some(request) = ledger.requests.last() {
            items.take(Kind::Latest, [(Section::InProgress, outcome_line(request, chars))]);
        }
        items.take_newest(Kind::Failures, open.into_iter().map(|it| (Section::Blocked, it.text())));
        let before = &ledger.requests[..ledger.requests.len().saturating_sub(1)];
        let outcome = |request: &ledger::Request| {
            let section = if request.is_done() { Section::Done } else { Section::InProgress };
            (section, outcome_line(request, chars))
        };
        items.take_newest(Kind::Requests, before.iter().map(outcome));
        let earlier = [Section::Done, Section::InProgress].into_iter().flat_map(|section| self.earlier(section));
        let finished = self.earlier(Section::NextSteps).filter(|step| ledger.todos.is_empty() && self.is_done(step));
        items.take_newest(Kind::Earlier, earlier.chain(finished).map(|line| (Section::Done, clip(line, 320))));
        items.take_newest(Kind::Earlier, todo(TodoState::Done).map(|text| (Section::Done, text)));
        items.take(Kind::Instructions, ledger.instructions.iter().map(|rule| (Section::Constraints, rule.clone())));
        let solved = solved.into_iter().map(|it| (Section::Context, format!("failed, later worked – {}", it.text())));
        items.take_newest(Kind::Solved, solved);
        let decisions =
            self.earlier(Section::Decisions).map(|line| clip(line, 300)).chain(ledger.decisions.iter().cloned());
        items.take_newest(Kind::Decisions, decisions.map(|line| (Section::Decisions, line)));
        if let Some(said) = &ledger.last_words {
            let chars = (cap as usize * 2 / 5).clamp(120, 2_000);
            items.take(Kind::Last, [(Section::Excerpts, format!("{LAST}: {}", head_and_end(said.trim(), chars)))]);
        }
    }

    /// Whether a step of the previous summary is done: the agent said so, with most of its words.
    fn is_done(&self, step: &str) -> bool {
        const DONE: [&str; 9] =
            ["commit", "done", "finished", "complete", "implemented", "fixed", "added", "passes", "created"];
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
                        DONE.iter().any(|word| lower.contains(word)) && {
                            let said = words(line);
                            step.iter().filter(|word| said.contains(*word)).count() * 10 >= step.len() * 7
                        }
                    })
            })
    }
}

/// Times that the room of a summary is filled.
const REFILLS: usize = 4;

/// An excerpt of an earlier summary.
fn carried(label: &str, text: String) -> Said {
    let (speaker, label) = match label {
        "user" => (Speaker::User, label),
        "assistant" | LAST => (Speaker::Assistant, "assistant"),
        _ => (Speaker::Aside, label),
    };
    Said { carried: true, ..Said::new(speaker, Clean::assembled(label), Clean::assembled(text)) }
}

/// The lines that were taken, those of one label together.
fn excerpts(said: &[Said], picked: &[Picked<'_>], root: Option<&str>) -> Vec<String> {
    let key = |line: &Picked<'_>| (&said[line.piece].label, is_prose(&said[line.piece]));
    picked
        .chunk_by(|one, other| key(one) == key(other))
        .flat_map(|lines| match is_prose(&said[lines[0].piece]) {
            // Each thing that was said stands by itself.
            true => {
                lines.chunk_by(|one, other| one.piece == other.piece).map(|lines| excerpt(said, lines, root)).collect()
            }
            false => vec![excerpt(said, lines, root)],
        })
        .collect()
}

fn is_prose(piece: &Said) -> bool {
    matches!(piece.speaker, Speaker::User | Speaker::Assistant | Speaker::Instructions)
}

/// Lines under the label of their piece, with their numbers in a file that was read: prose as it was said, output and files
/// in a fence.
fn excerpt(said: &[Said], lines: &[Picked<'_>], root: Option<&str>) -> String {
    let piece = &said[lines[0].piece];
    let label = match root {
        _ if says_its_label(piece, lines[0].text) => piece.label.split(' ').next().unwrap_or_default().to_owned(),
        Some(root) => piece.label.replace(root, ""),
        None => piece.label.to_string(),
    };
    let numbers: Vec<usize> = lines.iter().filter_map(|line| line.number).collect();
    let label = match numbers.len() == lines.len() {
        true => format!("{label}:{}", read_lines::short(&numbers)),
        false => label,
    };
    let prose = is_prose(piece);
    match lines {
        [line] if prose => format!("{label}: {line}"),
        [line] if !line.text.contains('`') => format!("{label}: `{line}`"),
        _ => {
            // A fence is longer than those inside.
            let ticks = if lines.iter().any(|line| line.text.starts_with("```")) { "````" } else { "```" };
            let fence = if prose { String::new() } else { format!("\n{ticks}") };
            let body: String = lines.iter().map(|line| format!("\n{line}")).collect();
            format!("{label}:{fence}{body}{fence}")
        }
    }
}

/// Whether a line of a call begins with the argument that its label has clipped.
fn says_its_label(piece: &Said, line: &str) -> bool {
    let clipped = piece.label.split_once(' ').and_then(|(_, argument)| argument.strip_suffix('…'));
    piece.speaker == Speaker::Call
        && clipped
            .zip(line.split_once(": "))
            .is_some_and(|(clipped, (_, argument))| argument.starts_with(clipped.trim_end()))
}

/// The folder that most paths in labels are below, with its last slash. Excerpts leave it out.
fn root(said: &[Said]) -> Option<&str> {
    let paths: Vec<&str> = said
        .iter()
        .flat_map(|piece| piece.label.split_whitespace().filter(|word| word.starts_with('/') && word.len() > 8))
        .collect();
    let mut count: HashMap<&str, usize> = HashMap::new();
    for path in &paths {
        for (at, _) in path.match_indices('/').skip(1) {
            *count.entry(&path[..=at]).or_default() += 1;
        }
    }
    let most = paths.len() * 3 / 5;
    let fits = |(root, count): &(&str, usize)| *count > most && *count > 2 && root.len() > 8;
    count.into_iter().filter(fits).map(|(root, _)| root).max_by_key(|root| (root.len(), *root))
}

/// The beginning and the end of a text in whole lines, at most about `chars` characters, with an ellipsis between.
fn head_and_end(said: &str, chars: usize) -> String {
    if said.chars().count() <= chars {
        return said.to_owned();
    }
    let lines: Vec<&str> = said.lines().collect();
    let take = |lines: &mut dyn Iterator<Item = &&str>, most: usize| {
        let mut left = most;
        let mut taken = Vec::new();
        for line in lines {
            let size = line.chars().count() + 1;
            if size > left {
                break;
            }
            left -= size;
            taken.push((*line).to_owned());
        }
        taken
    };
    let mut head = take(&mut lines.iter(), chars * 2 / 3);
    if head.is_empty() {
        head.push(clip(lines[0], chars * 2 / 3));
    }
    let mut end = take(&mut lines[head.len()..].iter().rev(), chars / 3);
    end.reverse();
    head.push(GAP.to_owned());
    head.extend(end);
    head.join("\n")
}

/// Length of a request, in characters: shorter in a small summary, so that more of them fit.
fn request_chars(cap: u64) -> usize {
    match cap {
        0..3_000 => 90,
        3_000..6_000 => 110,
        _ => 240,
    }
}

fn outcome_line(request: &ledger::Request, chars: usize) -> String {
    let asked = clip(&request.text, chars);
    match &request.outcome {
        Some(outcome) => format!("{asked} → {}", clip(outcome, chars * 2 / 3)),
        None => asked,
    }
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
    fn the_folder_of_most_paths_is_left_out() {
        let said = |label: &str| Said::new(Speaker::Call, Clean::assembled(label), Clean::assembled("x"));
        let below = ["read /home/ana/shop/a.rs", "edit /home/ana/shop/src/b.rs", "read /home/ana/shop/c.rs", "ls"];
        let below = below.map(said);
        assert_eq!(root(&below), Some("/home/ana/shop/"));
        assert_eq!(root(&below[..2]), None, "of two paths there is no most");
        let apart = ["read /home/ana/a.rs", "read /etc/hosts.conf", "read /opt/tools/b.rs"].map(said);
        assert_eq!(root(&apart), None);
    }

    #[test]
    fn a_clipped_label_is_left_out_before_the_line_that_has_it() {
        let said = |label: &str| Said::new(Speaker::Call, Clean::assembled(label), Clean::assembled("x"));
        let line = "command: git log --format=%H src/main.rs";
        assert!(says_its_label(&said("bash git log …"), line));
        assert!(!says_its_label(&said("bash git log …"), "description: the newest commits"));
        assert!(!says_its_label(&said("bash git log --format=%H src/main.rs"), line), "nothing is clipped");
    }

    #[test]
    fn the_middle_of_long_last_words_is_left_out_line_by_line() {
        assert_eq!(head_and_end("short", 100), "short");
        let said = (0..40).map(|at| format!("line number {at}\n")).collect::<String>();
        let cut = head_and_end(&said, 120);
        assert!(
            cut.starts_with("line number 0\nline number 1\n") && cut.ends_with("\n…\nline number 38\nline number 39"),
            "{cut}"
        );
    }
}
