//! The conversation, read piece by piece into the facts of a ledger.

use super::{
    Failure, Held, LAST_COMMAND, LEFT_OFF, Ledger, MENTIONED, Sources, asked,
    failures::{self, Worked},
    outcomes,
    requests::{Gathered, Part, Requests, Turn, is_request, without_pastes},
};
use crate::summary::{
    heard::{Said, Speaker},
    prose::{clip, sentences_of_line},
    sections::{self, Section},
    statements::{self, Kind, Statement},
};
use std::collections::HashSet;

/// The state of a conversation that is read.
pub(super) struct Reading<'a> {
    ledger: Ledger,
    requests: Requests,
    turn: Turn<'a>,
    /// The statements of the user so far.
    statements: Vec<Held>,
    /// The place of the statements of the newest message.
    newest: usize,
    /// Rules that the user took back.
    withdrawn: Vec<String>,
    /// The number of decisions before the newest answer.
    decided: usize,
    /// Decisions, in small letters, and rules of instructions, each of which is told once.
    told: HashSet<String>,
    rules: HashSet<String>,
}

/// A conversation that was read.
pub(super) struct Read<'a> {
    pub ledger: Ledger,
    /// The statements of the user.
    pub statements: Vec<Held>,
    /// Rules that the user took back.
    pub withdrawn: Vec<String>,
    /// The answer whose announced step is the next one.
    pub announcing: Option<&'a str>,
}

impl<'a> Reading<'a> {
    /// Begins with the facts of an earlier summary.
    pub(super) fn of(sources: &Sources<'_>) -> Self {
        let requests = Requests::going_on_with(continued(sources));
        let turn = requests.count();
        let previous = || sources.previous.iter();
        let failures = previous().filter_map(|(section, text)| Failure::carried(*section, text, turn));
        let statements: Vec<Held> = previous().flat_map(|(section, text)| carried(*section, text)).collect();
        Self {
            ledger: Ledger { failures: failures.collect(), ..Ledger::default() },
            requests,
            turn: Turn::default(),
            newest: statements.len(),
            statements,
            withdrawn: Vec::new(),
            decided: 0,
            told: HashSet::new(),
            rules: HashSet::new(),
        }
    }

    /// Takes the next piece in.
    pub(super) fn take(&mut self, piece: &'a Said) {
        match piece.speaker {
            Speaker::User => {
                self.turn_ended();
                self.user(&piece.text);
            }
            Speaker::Assistant => {
                self.turn.answered(&piece.text);
                self.requests.told(&piece.text);
                self.decided = self.ledger.decisions.len();
                let Self { ledger, told, .. } = self;
                let decisions = outcomes::decisions(&piece.text);
                ledger.decisions.extend(decisions.filter(|decision| told.insert(decision.to_lowercase())));
            }
            Speaker::Result { failed } => {
                self.turn.result(piece, failed);
                self.result(piece, failed);
            }
            Speaker::Stop => {
                self.requests.stopped();
                self.turn = Turn::default();
            }
            Speaker::Instructions => {
                let found = statements::of_user(&piece.text).into_iter().filter(|it| it.kind == Kind::Rule);
                let Self { ledger, rules, .. } = self;
                ledger.instructions.extend(found.map(|it| it.text).filter(|text| rules.insert(text.clone())));
            }
            Speaker::Branch => {
                let found = sections::parse(&piece.text);
                let held = found.iter().flat_map(|(section, text)| carried(*section, text));
                self.statements.extend(held.map(|held| Held { carried: false, ..held }));
            }
            Speaker::Call => self.turn.called(),
            Speaker::Aside => {}
        }
    }

    /// Ends the reading. `goes_on`: whether the last turn goes on after its end.
    pub(super) fn end(mut self, goes_on: bool) -> Read<'a> {
        // An announced step whose call worked is done.
        let announcing = self.turn.announcing().filter(|_| goes_on);
        if !goes_on {
            self.turn_ended();
        }
        let Self { mut ledger, requests, statements, withdrawn, .. } = self;
        let Gathered { list, goal, so_far } = requests.gathered();
        (ledger.requests, ledger.goal, ledger.so_far) = (list, goal, so_far);
        Read { ledger, statements, withdrawn, announcing }
    }

    /// Takes a message of the user in.
    fn user(&mut self, said: &str) {
        let found = statements::of_user(said);
        if self.ledger.decisions.len() > self.decided && statements::refuses(said) {
            self.decide(&format!("The user: {}", said.trim()));
        }
        if let Part::Reply { question, answer } = self.requests.heard(said, &found) {
            self.decide(&format!("The user answered: {answer} (asked: {question})"));
        }
        self.withdrawn.extend(take_back(&mut self.statements, said, &found));
        // Those of the message before, and some before them.
        let start = self.statements.len().saturating_sub(statements::CORRECTED).min(self.newest);
        let before: Vec<&str> = self.statements[start..].iter().map(|held| held.statement.text.as_str()).collect();
        let corrected = statements::corrections(said, &before, self.newest - start);
        self.newest = self.statements.len();
        let corrected = corrected.into_iter().map(|text| Statement { kind: Kind::Note, text });
        corrected.chain(found).for_each(|statement| self.state(statement));
    }

    /// Takes a statement of the user in.
    fn state(&mut self, statement: Statement) {
        if statement.kind > Kind::Wish && statements::is_task(&statement.text) {
            self.ledger.tasks.push(statement.text);
        } else {
            self.statements.push(Held::new(statement, false));
        }
    }

    /// Takes a message in that asked for nothing: its sentences that are no statements yet.
    fn tell(&mut self, said: &str) {
        let known: Vec<String> =
            self.statements[self.newest..].iter().map(|held| held.statement.text.to_lowercase()).collect();
        let is_known = |sentence: &str| {
            let lower = sentence.to_lowercase();
            known.iter().any(|it| it.contains(&lower) || lower.contains(it.as_str()))
        };
        let sentences: Vec<&str> = match said.chars().count() <= LONGEST_TOLD && known.is_empty() {
            true => vec![said],
            false => sentences_of_line(said).map(str::trim).filter(|it| !is_known(it)).collect(),
        };
        for text in sentences.into_iter().filter(|text| text.split_whitespace().count() > 1 || !text.is_ascii()) {
            self.state(Statement { kind: Kind::Told, text: clip(text, LONGEST_ANSWER) });
        }
    }

    fn decide(&mut self, decision: &str) {
        self.ledger.decisions.push(clip(decision, LONGEST_ANSWER));
    }

    /// Takes the end of a turn in.
    fn turn_ended(&mut self) {
        let turn = std::mem::take(&mut self.turn);
        let number = self.requests.count();
        if let Some(told) = self.requests.turn_ended(&turn) {
            self.tell(&told);
        }
        if turn.end().is_some_and(outcomes::claims_success) {
            self.ledger.failures.iter_mut().for_each(|failure| failure.turn_succeeded(number));
        }
    }

    /// Takes the result of a call in.
    fn result(&mut self, piece: &Said, failed: bool) {
        let Ledger { failures, .. } = &mut self.ledger;
        if failed || failures::is_hidden_failure(piece) {
            if let Some(failure) = Failure::of(piece, self.requests.count()) {
                failures.retain(|known| !known.is(&failure));
                failures.iter_mut().for_each(|known| known.failed_again(&failure));
                failures.push(failure);
                if failures.len() > MOST_FAILURES {
                    failures.remove(0);
                }
            }
            return;
        }
        if !failures.is_empty() {
            let worked = Worked::by(piece);
            failures.iter_mut().for_each(|failure| failure.worked(&worked));
        }
        if is_of_question(&piece.label) && !piece.text.trim().is_empty() {
            self.decide(&format!("The user answered: {}", bare_answer(&piece.text)));
        }
        // A call without an argument says nothing.
        if piece.runs.iter().any(|run| !run.only_looks()) && piece.label.contains(' ') {
            let end = piece.text.lines().rev().map(str::trim).find(|line| !line.is_empty());
            let end = end.map(|line| format!(": {}", clip(line, LONGEST_END))).unwrap_or_default();
            self.ledger.last_command = Some(format!("{}{end}", &*piece.label));
        }
    }
}

/// Failures that are followed. A summary has the newest ones.
const MOST_FAILURES: usize = 400;

/// Longest end of the output of a command, in characters.
const LONGEST_END: usize = 120;

/// Longest message that is held as one statement, in characters.
const LONGEST_TOLD: usize = 160;

/// Longest answer of the user to a question of the agent, in characters.
const LONGEST_ANSWER: usize = 400;

/// An answer without the words that a harness puts around it.
fn bare_answer(text: &str) -> &str {
    const BEFORE: [&str; 2] = ["Your questions have been answered: ", "User has answered your questions: "];
    let text = BEFORE.iter().find_map(|before| text.strip_prefix(before)).unwrap_or(text);
    text.split_once(". You can now continue with").map_or(text, |(answer, _)| answer)
}

/// Whether a call asked the user. A tool with a shorter name may ask something else, as an oracle or a search: it asks the user
/// where it has a list of questions and no text.
fn is_of_question(label: &str) -> bool {
    const TOOLS: [&str; 5] =
        ["askuserquestion", "ask_user_question", "ask_user", "request_user_input", "ask_followup_question"];
    const OF_LISTS: [&str; 2] = ["ask", "question"];
    let lower = label.to_lowercase();
    TOOLS.contains(&lower.split(' ').next().unwrap_or_default()) || OF_LISTS.contains(&lower.trim())
}

/// The request of an earlier summary that the conversation goes on with: without a new message of the user, or with one that asks
/// for nothing by itself, as "go on" does.
fn continued(sources: &Sources<'_>) -> Option<String> {
    let of_turn = |piece: &&Said| matches!(piece.speaker, Speaker::User | Speaker::Assistant | Speaker::Call);
    let first = sources.said.iter().find(of_turn)?;
    let asks = first.speaker == Speaker::User && is_request(&without_pastes(&first.text));
    let open = sources.previous.iter().rfind(|(section, _)| *section == Section::InProgress).filter(|_| !asks)?;
    Some(asked(&open.1).to_owned())
}

/// Takes the rules out that a message of the user takes back, and puts its sentence in their place where it says more than a
/// request. Returns these rules.
fn take_back(made: &mut Vec<Held>, said: &str, found: &[Statement]) -> Vec<String> {
    let mut withdrawn = Vec::new();
    for withdrawal in statements::withdrawals(said, found) {
        let before = withdrawn.len();
        made.retain(|held| {
            let goes = held.statement.kind <= Kind::Wish && withdrawal.takes_back(&held.statement.text, &held.words);
            if goes {
                withdrawn.push(held.statement.text.clone());
            }
            !goes
        });
        let is_new = || found.iter().all(|it| !it.text.contains(&withdrawal.text));
        if withdrawn.len() > before && withdrawal.is_told() && is_new() {
            let statement = Statement { kind: Kind::Wish, text: clip(&withdrawal.text, LONGEST_ANSWER) };
            made.push(Held::new(statement, false));
        }
    }
    withdrawn
}

/// The statements in an item of an earlier summary. A long one is divided into its sentences.
fn carried(section: Section, text: &str) -> Vec<Held> {
    /// The longest item that is one statement, in characters.
    const LONGEST: usize = 600;
    let rule = section == Section::Constraints;
    let fact = section == Section::Context;
    if !rule && !fact
        || Failure::carried(section, text, 0).is_some()
        || text.starts_with(LAST_COMMAND)
        || text.starts_with(LEFT_OFF)
        || text == sections::GAP
    {
        return Vec::new();
    }
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some(told) = text.strip_prefix(MENTIONED) {
        return vec![Held::new(Statement { kind: Kind::Told, text: told.to_owned() }, true)];
    }
    let is_long = text.chars().nth(LONGEST).is_some();
    let held = |text: &str| {
        let found = statements::statement(text).map(|it| it.kind);
        // Of many sentences those that state something come first.
        let kind = found.unwrap_or(if is_long { Kind::Fact } else { Kind::Note });
        let kind = if rule { kind.min(Kind::Wish) } else { kind.max(Kind::Note) };
        Held::new(Statement { kind, text: clip(text, LONGEST) }, true)
    };
    if !is_long {
        return vec![held(&text)];
    }
    sentences_of_line(&text).map(str::trim).filter(|sentence| !sentence.is_empty()).map(held).collect()
}
