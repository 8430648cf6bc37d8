//! The facts of a conversation: statements of the user that are in force, requests and their outcomes, decisions, failures,
//! the todo list.

use super::{
    cues,
    current::{Claim, Outdated, in_force},
    heard::{Said, Speaker},
    prose::{clip, lines, sentences, sentences_of_line},
    sections::{self, Section},
    statements::{self, Kind, Statement},
    todo,
    words::Words,
};
use crate::{
    conversation::entry::{Entry, Todo},
    redact::Clean,
};
use std::{
    collections::HashSet,
    sync::{Arc, LazyLock},
};

/// A request of the user and what came of it.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub text: String,
    pub outcome: Option<String>,
}

impl Request {
    /// Whether nothing says that it is not done.
    pub(super) fn is_done(&self) -> bool {
        static NOT: LazyLock<Words> = LazyLock::new(|| {
            Words::new(&[
                "could not",
                "couldn't",
                "cannot",
                "can't",
                "not done",
                "not yet",
                "unable",
                "failed",
                "fails",
                "still",
                "blocked",
                "missing",
                "nicht",
                "noch",
                "incomplete",
            ])
        });
        self.outcome.as_ref().is_none_or(|outcome| !NOT.stand_in(&outcome.to_lowercase()))
    }
}

/// Something that failed.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    pub label: String,
    pub line: String,
    /// The same was tried again later and worked.
    pub resolved: bool,
}

impl Failure {
    /// A failure of an earlier summary.
    fn carried(text: &str) -> Self {
        let (label, line) = text.split_once(": ").unwrap_or(("", text));
        Self { label: label.to_owned(), line: line.to_owned(), resolved: false }
    }

    /// The failure on one line.
    pub(super) fn text(&self) -> String {
        if self.label.is_empty() { self.line.clone() } else { format!("{}: {}", self.label, self.line) }
    }
}

/// A statement in force.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub statement: Statement,
    /// Whether an earlier summary has it.
    pub carried: bool,
}

/// The facts of a conversation, each list from the oldest to the newest.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// The statements of the user that are in force.
    pub statements: Vec<Held>,
    /// Rules in instructions of the project.
    pub instructions: Vec<String>,
    pub requests: Vec<Request>,
    pub decisions: Vec<String>,
    pub failures: Vec<Failure>,
    pub todos: Vec<Todo>,
    /// The newest answer of the agent that says something.
    pub last_words: Option<String>,
    /// Values that later statements replaced.
    pub outdated: Outdated,
}

/// The longest request, outcome and decision that a ledger has, in characters.
const LONGEST_REQUEST: usize = 320;
const LONGEST_OUTCOME: usize = 200;
const LONGEST_DECISION: usize = 240;

/// Material of a ledger.
pub(super) struct Sources<'a> {
    /// The items of the previous summary.
    pub previous: &'a [(Section, String)],
    /// The conversation.
    pub said: &'a [Said],
    /// Its entries, for the todo list.
    pub entries: &'a [&'a Arc<Entry>],
    /// Tools that hold a list, beside the known ones.
    pub todo_tools: &'a [String],
    pub clean: &'a dyn Fn(&str) -> Clean,
}

/// An acknowledgement asks for nothing.
fn is_request(text: &str) -> bool {
    const EMPTY: &[&str] = &[
        "ok",
        "okay",
        "yes",
        "yep",
        "yeah",
        "no",
        "y",
        "n",
        "yo",
        "wow",
        "nice",
        "great",
        "cool",
        "good",
        "perfect",
        "thanks",
        "thank you",
        "thx",
        "go",
        "go on",
        "continue",
        "sure",
        "done",
        "ls",
        "hi",
        "hello",
        "and",
        "really",
    ];
    let words = text.to_lowercase();
    !EMPTY.contains(&words.trim_matches(|char: char| !char.is_alphanumeric()))
}

/// Whether an answer says no more than that it was heard.
fn is_acknowledgement(sentence: &str) -> bool {
    const STARTS: [&str; 10] =
        ["acknowledged", "noted", "got it", "sure", "ok", "understood", "perfect", "great", "good", "you're right"];
    let lower = sentence.to_lowercase();
    sentence.split_whitespace().count() <= 7 && STARTS.iter().any(|start| lower.starts_with(start))
}

impl Ledger {
    /// Gathers the facts of a conversation that continues an earlier summary.
    pub(super) fn of(sources: &Sources<'_>) -> Self {
        let blocked = sources.previous.iter().filter(|(section, _)| *section == Section::Blocked);
        let mut ledger =
            Self { failures: blocked.map(|(_, text)| Failure::carried(text)).collect(), ..Self::default() };
        let mut made: Vec<Held> =
            sources.previous.iter().filter_map(|(section, text)| carried(*section, text)).collect();
        let (mut seen, mut rules) = (HashSet::new(), HashSet::new());
        for piece in sources.said {
            match piece.speaker {
                Speaker::User => {
                    let found = statements::of_user(&piece.text);
                    ledger.request(&piece.text, &found);
                    made.extend(found.into_iter().map(|statement| Held { statement, carried: false }));
                }
                Speaker::Assistant => ledger.assistant(&piece.text, &mut seen),
                Speaker::Result { failed } => ledger.result(piece, failed),
                Speaker::Instructions => {
                    let found = statements::of_user(&piece.text).into_iter().filter(|it| it.kind == Kind::Rule);
                    ledger.instructions.extend(found.map(|it| it.text).filter(|text| rules.insert(text.clone())));
                }
                Speaker::Branch => {
                    let found = sections::parse(&piece.text);
                    let held = found.iter().filter_map(|(section, text)| carried(*section, text));
                    made.extend(held.map(|held| Held { carried: false, ..held }));
                }
                Speaker::Call | Speaker::Aside => {}
            }
        }
        ledger.hold(made);
        let Self { requests, decisions, outdated, .. } = &mut ledger;
        // A request goes on without the sentence that a later one corrects. The first one has the goal.
        let first = requests.first().map(|request| request.text.clone());
        for request in requests.iter_mut().filter(|request| outdated.is_in(&request.text)) {
            let in_force = sentences_of_line(&request.text).filter(|sentence| !outdated.is_in(sentence));
            request.text = in_force.collect::<String>().trim().to_owned();
        }
        requests.retain(|request| !request.text.is_empty());
        if requests.is_empty() {
            requests.extend(first.map(|text| Request { text, outcome: None }));
        }
        for request in requests.iter_mut() {
            request.outcome = request.outcome.take().filter(|outcome| !outdated.is_in(outcome));
        }
        decisions.retain(|decision| !outdated.is_in(decision));
        let answers = sources.said.iter().rev().filter(|piece| piece.speaker == Speaker::Assistant);
        let mut telling = answers.map(|piece| &*piece.text).filter(|said| !is_acknowledgement(said));
        ledger.last_words = telling.find(|said| !ledger.outdated.is_in(said)).map(str::to_owned);
        ledger.todos = todo::list(sources.entries.iter().copied(), sources.todo_tools);
        for todo in &mut ledger.todos {
            todo.text = (sources.clean)(&todo.text).into_string();
        }
        ledger
    }

    /// Takes the statements that are in force. Of equal ones the last stays: it tells since when they hold.
    fn hold(&mut self, mut made: Vec<Held>) {
        let mut seen = HashSet::new();
        made.reverse();
        made.retain(|held| seen.insert(cues::without_label(&held.statement.text).to_lowercase()));
        made.reverse();
        let claims: Vec<Option<Claim>> = made.iter().map(|held| Claim::of(&held.statement.text)).collect();
        let holds = in_force(&claims);
        let texts: Vec<&str> = made.iter().map(|held| held.statement.text.as_str()).collect();
        self.outdated = Outdated::of(&texts, &claims, &holds);
        let mut holds = holds.into_iter();
        made.retain(|_| holds.next() == Some(true));
        self.statements = made;
    }

    fn request(&mut self, said: &str, found: &[Statement]) {
        let text = clip(&without_pastes(said), LONGEST_REQUEST);
        if text.is_empty() || !is_request(&text) {
            return;
        }
        // A message that states facts and nothing else asks for nothing.
        let stated: usize = found.iter().map(|it| it.text.len()).sum();
        let states =
            found.iter().all(|it| matches!(it.kind, Kind::Note | Kind::Fact) || cues::label(&it.text).is_some());
        let asks = statements::asks_for_work(&text);
        if !found.is_empty() && !self.requests.is_empty() && states && !asks && stated * 10 >= said.trim().len() * 9 {
            return;
        }
        self.requests.retain(|request| request.text != text);
        self.requests.push(Request { text, outcome: None });
    }

    fn assistant(&mut self, said: &str, seen: &mut HashSet<String>) {
        if let Some(request) = self.requests.last_mut() {
            // The last answer of a turn says what came of it; a sentence that ends with a colon says it further down.
            let telling = sentences(said).find(|sentence| {
                !sentence.trim_end_matches(['*', '_']).ends_with([':', '?'])
                    && sentence.split(' ').count() > 2
                    && !is_acknowledgement(sentence)
            });
            if let Some(sentence) = telling {
                request.outcome = Some(clip(sentence, LONGEST_OUTCOME));
            }
        }
        for sentence in sentences(said).filter(|sentence| is_decision(sentence)) {
            let decision = clip(sentence, LONGEST_DECISION);
            if seen.insert(decision.to_lowercase()) {
                self.decisions.push(decision);
            }
        }
    }

    fn result(&mut self, piece: &Said, failed: bool) {
        if !failed {
            let worked = commands(&piece.label);
            for failure in &mut self.failures {
                let failed = commands(&failure.label);
                // It may have failed at any of them, most often at the last one.
                failure.resolved |= failed.last().is_some_and(|failed| worked.iter().any(|it| covers(it, failed)));
            }
            return;
        }
        let telling = telling_line(&piece.text);
        // After a colon the next line has the message.
        let next = piece
            .text
            .split_once(telling)
            .and_then(|(_, after)| after.lines().map(str::trim).find(|line| !line.is_empty()));
        let line = match next.filter(|_| telling.ends_with(':')) {
            Some(next) => clip(&format!("{telling} {next}"), 240),
            None => clip(telling, 240),
        };
        // grep and the like fail by finding nothing.
        if line.is_empty()
            || line.starts_with("(no output)")
            || only_failed(&line)
            || line.starts_with("The user doesn't want")
        {
            return;
        }
        self.failures.retain(|failure| failure.label != *piece.label || failure.line != line);
        self.failures.push(Failure { label: piece.label.to_string(), line, resolved: false });
    }
}

/// The statement in an item of an earlier summary.
fn carried(section: Section, text: &str) -> Option<Held> {
    let rule = section == Section::Constraints;
    let fact = section == Section::Context;
    if !rule && !fact {
        return None;
    }
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let kind = statements::statement(&text).map_or(Kind::Note, |it| it.kind);
    let kind = if rule { kind.min(Kind::Wish) } else { kind.max(Kind::Note) };
    Some(Held { statement: Statement { kind, text }, carried: true })
}

/// The commands of a call that worked if it did, each as its tool and its words without redirections and options. Its output
/// may be shown in another way.
fn commands(label: &str) -> Vec<Vec<&str>> {
    let (tool, said) = label.split_once(' ').unwrap_or((label, ""));
    // Of two alternatives it is not known which one worked.
    let certain = said.split(" && ").filter(|command| !command.contains("||"));
    let runs = certain.map(|command| command.split(['|', '>', '<']).next().unwrap_or(command));
    runs.map(|run| {
        let words = run.trim_end_matches(['2', '&', ' ']).split_whitespace();
        std::iter::once(tool).chain(words.filter(|word| !word.starts_with('-'))).collect()
    })
    .collect()
}

/// Whether a command that worked did what another one failed at: the same, or more of it, as all tests are more than some.
fn covers(worked: &[&str], failed: &[&str]) -> bool {
    // One word is the tool, without an argument to tell its calls apart.
    failed.len() > 1 && worked.len() > 1 && failed.starts_with(worked)
}

/// Whether a line says only that a command failed.
fn only_failed(line: &str) -> bool {
    let lower = line.to_lowercase();
    lower.starts_with("command exited with code") || lower.starts_with("exit code ") && line.len() < 16
}

/// The line of a failure that says what failed: one that reads like an error, else the first. Lines too long to read
/// are code that was thrown out along with it.
fn telling_line(text: &str) -> &str {
    const READABLE: usize = 400;
    let lines =
        || text.lines().map(str::trim).filter(|line| !line.is_empty() && line.len() <= READABLE && !only_failed(line));
    let error = |line: &&str| {
        let line = line.to_ascii_lowercase();
        ["error", "panicked", "exception", "fatal"]
            .iter()
            .any(|word| line.match_indices(word).any(|(at, _)| line[at + word.len()..].starts_with([':', '[', ' '])))
    };
    let failed = |line: &&str| {
        let line = line.to_ascii_lowercase();
        ["failed", "cannot", "not found", "denied", "no such", "unable"].iter().any(|word| line.contains(word))
    };
    lines().find(error).or_else(|| lines().find(failed)).or_else(|| lines().next()).unwrap_or_default()
}

/// A user's own words without what was pasted after them: long lines, code blocks, many lines.
fn without_pastes(text: &str) -> String {
    let mut kept = Vec::new();
    for line in lines(text) {
        if !line.trim().is_empty() {
            kept.push(line.trim());
        }
        if kept.len() == 12 {
            break;
        }
    }
    kept.join(" ")
}

/// Whether a sentence of the agent settles something.
fn is_decision(sentence: &str) -> bool {
    static PHRASES: LazyLock<Words> = LazyLock::new(|| {
        Words::new(&[
            "decided",
            "decision",
            "instead of",
            "rather than",
            "we'll use",
            "i'll use",
            "will use",
            "chose",
            "choose",
            "going with",
            "root cause",
            "the fix is",
            "turns out",
            "the problem is",
            "the issue is",
            "because",
            "the reason",
            "trade-off",
            "tradeoff",
            "must be",
            "has to be",
            "so that",
        ])
    });
    let lower = sentence.to_lowercase();
    // A plan of the agent is no decision yet, and a heading is none.
    let plan = ["let me", "now let", "now i", "i'll now", "first,"].iter().any(|start| lower.starts_with(start));
    if plan || sentence.ends_with(':') || sentence.split_whitespace().count() < 5 {
        return false;
    }
    PHRASES.are_in(&lower)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_that_worked_later_is_resolved() {
        let said = |failed, label: &str, text: &str| Said {
            speaker: Speaker::Result { failed },
            ..Said::new(Speaker::Aside, Clean::assembled(label), Clean::assembled(text))
        };
        let pieces = [
            said(true, "bash cargo test", "running\nerror[E0308]: mismatched types"),
            said(true, "bash make", "make: *** no rule"),
            said(false, "bash cargo test", "ok"),
            said(
                true,
                "bash cargo run",
                "thread 'main' panicked at src/main.rs:3:5:\nthe port is taken\nnote: run with",
            ),
        ];
        let ledger = Ledger::of(&Sources {
            previous: &[],
            said: &pieces,
            entries: &[],
            todo_tools: &[],
            clean: &|text| Clean::assembled(text),
        });
        let found: Vec<_> = ledger.failures.iter().map(|it| (it.line.as_str(), it.resolved)).collect();
        let panic = "thread 'main' panicked at src/main.rs:3:5: the port is taken";
        assert_eq!(found, [("error[E0308]: mismatched types", true), ("make: *** no rule", false), (panic, false)]);
    }

    fn statements(pieces: &[Said]) -> Vec<String> {
        let clean = |text: &str| Clean::assembled(text);
        let ledger = Ledger::of(&Sources { previous: &[], said: pieces, entries: &[], todo_tools: &[], clean: &clean });
        ledger.statements.into_iter().map(|held| held.statement.text).collect()
    }

    fn piece(speaker: Speaker, text: &str) -> Said {
        Said::new(speaker, Clean::assembled("x"), Clean::assembled(text))
    }

    #[test]
    fn a_statement_with_and_without_its_label_is_one_statement() {
        let said = ["The port is 4711.", "Note: The port is 4711."].map(|text| piece(Speaker::User, text));
        assert_eq!(statements(&said), ["Note: The port is 4711."]);
    }

    #[test]
    fn the_statements_in_the_summary_of_a_branch_are_held_and_may_be_replaced() {
        let branch = "## Goal\nTry it\n\n## Constraints & Preferences\n- Never use macros.\n\n## Critical Context\n- The port is 4711.\n- The host is a.internal.";
        let said = [piece(Speaker::Branch, branch), piece(Speaker::User, "The port is 9000.")];
        assert_eq!(statements(&said), ["Never use macros.", "The host is a.internal.", "The port is 9000."]);
    }

    fn ledger(previous: &[(Section, String)], pieces: &[Said]) -> Ledger {
        let clean = |text: &str| Clean::assembled(text);
        Ledger::of(&Sources { previous, said: pieces, entries: &[], todo_tools: &[], clean: &clean })
    }

    #[test]
    fn a_correction_takes_its_sentence_and_not_the_request() {
        let said = |text: &str| piece(Speaker::User, text);
        let found = ledger(&[], &[said("Build a REST API in Rust. The port is 8080."), said("The port is 9000.")]);
        let requests: Vec<_> = found.requests.iter().map(|request| request.text.as_str()).collect();
        assert_eq!(requests, ["Build a REST API in Rust."]);
    }

    #[test]
    fn each_request_has_its_own_outcome() {
        let said = [
            piece(Speaker::User, "Fix the bug in src/cart.rs where the total is 3 instead of 4."),
            piece(Speaker::Assistant, "**Files changed (1):**\n- src/cart.rs\n\nI rounded in the wrong place."),
            piece(Speaker::User, "Add an endpoint /v2/export that returns CSV and is limited to 100 rows."),
            piece(Speaker::Assistant, "The endpoint is there, the tests are missing."),
        ];
        let found = ledger(&[], &said).requests;
        let done: Vec<_> = found.iter().map(|request| (request.outcome.as_deref(), request.is_done())).collect();
        assert_eq!(
            done,
            [
                (Some("I rounded in the wrong place."), true),
                (Some("The endpoint is there, the tests are missing."), false)
            ]
        );
    }

    #[test]
    fn a_command_that_worked_solves_the_same_and_less() {
        let result = |failed: bool, label: &str| Said {
            speaker: Speaker::Result { failed },
            ..Said::new(Speaker::Aside, Clean::assembled(label), Clean::assembled("error: it broke"))
        };
        let open = |failed: &str, worked: &str| {
            let found = ledger(&[], &[result(true, failed), result(false, worked)]);
            !found.failures[0].resolved
        };
        for (failed, worked) in [
            ("bash cargo test payment", "bash cargo test login"),
            ("bash docker compose up db", "bash docker compose ps"),
            ("bash npm run build", "bash npm run lint"),
            ("bash cargo test", "bash cargo test login"),
            ("bash mise run lint && mise run test", "bash mise run lint"),
            ("bash cargo test", "bash cargo test || true"),
        ] {
            assert!(open(failed, worked), "{failed} | {worked}");
        }
        for (failed, worked) in [
            ("bash cargo test payment", "bash cargo test"),
            ("bash cd /x && cargo test 2>&1 | tail -40", "bash cargo test 2>&1 | tail -5"),
            ("edit src/a.rs", "edit src/a.rs"),
            ("bash mise run lint 2>&1", "bash mise run lint && mise run test"),
        ] {
            assert!(!open(failed, worked), "{failed} | {worked}");
        }
        let carried = [(Section::Blocked, "bash cargo test: error[E0382]: moved".to_owned())];
        assert!(!ledger(&carried, &[]).failures[0].resolved);
        let found = ledger(&carried, &[result(false, "bash cargo test")]);
        assert!(found.failures[0].resolved && found.failures[0].text() == carried[0].1);
    }
}
