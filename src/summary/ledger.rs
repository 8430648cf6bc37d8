//! The facts of a conversation: statements of the user that are in force, requests and their outcomes, decisions, failures,
//! the todo list.

mod failures;
mod outcomes;
mod requests;

pub(super) use failures::Failure;
pub(super) use requests::Request;

use super::{
    cues,
    current::{Claim, Outdated, in_force},
    heard::{Said, Speaker},
    prose::{clip, sentences_of_line},
    sections::{self, Section},
    statements::{self, Kind, Statement},
    todo,
};
use crate::{
    conversation::entry::{Entry, Todo},
    redact::Clean,
};
use failures::Worked;
use requests::{Part, Requests, Turn, is_request, without_pastes};
use std::{collections::HashSet, sync::Arc};

/// A statement in force.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub statement: Statement,
    /// Whether an earlier summary has it.
    pub carried: bool,
    /// The words that tell what a rule is about.
    words: Vec<String>,
}

impl Held {
    fn new(statement: Statement, carried: bool) -> Self {
        let is_rule = statement.kind <= Kind::Wish;
        let words = if is_rule { statements::words(&statement.text.to_lowercase()) } else { Vec::new() };
        Self { statement, carried, words }
    }
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
    /// The steps that the newest answer lists, and the one that it announces.
    pub next: Vec<String>,
    /// The results that the agent told in the last turn, if that goes on.
    pub so_far: Vec<String>,
    /// The newest command that worked, with the end of its output.
    pub last_command: Option<String>,
    /// Values that later statements replaced.
    pub outdated: Outdated,
}

/// Material of a ledger.
pub(super) struct Sources<'a> {
    /// The items of the previous summary.
    pub previous: &'a [(Section, String)],
    /// The conversation.
    pub said: &'a [Said],
    /// Its entries, for the todo list.
    pub entries: &'a [&'a Arc<Entry>],
    /// Whether the last turn goes on after its end.
    pub goes_on: bool,
    /// Tools that hold a list, beside the known ones.
    pub todo_tools: &'a [String],
    pub clean: &'a dyn Fn(&str) -> Clean,
}

impl Ledger {
    /// Gathers the facts of a conversation that continues an earlier summary.
    pub(super) fn of(sources: &Sources<'_>) -> Self {
        let mut requests = Requests::going_on_with(continued(sources));
        let turn = requests.count();
        let carried_failures =
            sources.previous.iter().filter_map(|(section, text)| Failure::carried(*section, text, turn));
        let mut ledger = Self { failures: carried_failures.collect(), ..Self::default() };
        let mut made: Vec<Held> =
            sources.previous.iter().filter_map(|(section, text)| carried(*section, text)).collect();
        let (mut seen, mut rules) = (HashSet::new(), HashSet::new());
        let mut turn = Turn::default();
        // The number of decisions before the newest answer.
        let mut decided = 0;
        let mut withdrawn = Vec::new();
        // The place of the statements of the newest message.
        let mut latest = made.len();
        for piece in sources.said {
            match piece.speaker {
                Speaker::User => {
                    ledger.turn_ended(&std::mem::take(&mut turn), &mut requests);
                    let found = statements::of_user(&piece.text);
                    if ledger.decisions.len() > decided && statements::refuses(&piece.text) {
                        ledger.decisions.push(clip(&format!("The user: {}", piece.text.trim()), LONGEST_ANSWER));
                    }
                    if let Part::Reply { question, answer } = requests.heard(&piece.text, &found) {
                        let told = format!("The user answered: {answer} (asked: {question})");
                        ledger.decisions.push(clip(&told, LONGEST_ANSWER));
                    }
                    withdrawn.extend(take_back(&mut made, &piece.text, &found));
                    let before: Vec<&str> = made.iter().map(|held| held.statement.text.as_str()).collect();
                    let corrected = statements::corrections(&piece.text, &before, latest);
                    latest = made.len();
                    let corrected = corrected.into_iter().map(|text| Statement { kind: Kind::Note, text });
                    made.extend(corrected.map(|statement| Held::new(statement, false)));
                    made.extend(found.into_iter().map(|statement| Held::new(statement, false)));
                }
                Speaker::Assistant => {
                    turn.answered(&piece.text);
                    requests.told(&piece.text);
                    decided = ledger.decisions.len();
                    ledger.assistant(&piece.text, &mut seen);
                }
                Speaker::Result { failed } => {
                    turn.result(piece, failed);
                    ledger.result(piece, failed, requests.count());
                }
                Speaker::Stop => {
                    requests.stopped();
                    turn = Turn::default();
                }
                Speaker::Instructions => {
                    let found = statements::of_user(&piece.text).into_iter().filter(|it| it.kind == Kind::Rule);
                    ledger.instructions.extend(found.map(|it| it.text).filter(|text| rules.insert(text.clone())));
                }
                Speaker::Branch => {
                    let found = sections::parse(&piece.text);
                    let held = found.iter().filter_map(|(section, text)| carried(*section, text));
                    made.extend(held.map(|held| Held { carried: false, ..held }));
                }
                Speaker::Call => turn.called(),
                Speaker::Aside => {}
            }
        }
        if !sources.goes_on {
            ledger.turn_ended(&turn, &mut requests);
        }
        (ledger.requests, ledger.so_far) = requests.into_parts();
        ledger.hold(made);
        ledger.outdated.add(withdrawn);
        let Self { requests, decisions, outdated, .. } = &mut ledger;
        // A request goes on without the sentence that a later one corrects. The first one has the goal.
        let first = requests.first().map(|request| request.text.clone());
        for request in requests.iter_mut().filter(|request| outdated.is_in(&request.text)) {
            let in_force = sentences_of_line(&request.text).filter(|sentence| !outdated.is_in(sentence));
            let in_force = in_force.collect::<String>().trim().to_owned();
            // A request may name an outdated value: "free the port 8080".
            if !in_force.is_empty() || !statements::may_ask_for_work(&request.text) {
                request.text = in_force;
            }
        }
        requests.retain(|request| !request.text.is_empty());
        if requests.is_empty() {
            requests.extend(first.map(Request::new));
        }
        for request in requests.iter_mut() {
            request.outcome = request.outcome.take().filter(|outcome| !outdated.is_in(outcome));
        }
        decisions.retain(|decision| !outdated.is_in(decision));
        let answers = sources.said.iter().rev().filter(|piece| piece.speaker == Speaker::Assistant);
        let mut telling = answers.map(|piece| &*piece.text).filter(|said| !outcomes::is_acknowledgement(said));
        let last = telling.find(|said| !ledger.outdated.is_in(said));
        ledger.last_words = last.map(str::to_owned);
        ledger.next = last.map(outcomes::listed_steps).unwrap_or_default();
        // An announced step whose call worked is done.
        let announcing = turn.announcing().filter(|_| sources.goes_on);
        ledger.next.extend(announcing.and_then(outcomes::announced));
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

    fn assistant(&mut self, said: &str, seen: &mut HashSet<String>) {
        self.decisions.extend(outcomes::decisions(said).filter(|decision| seen.insert(decision.to_lowercase())));
    }

    /// Takes the end of a turn in.
    fn turn_ended(&mut self, turn: &Turn<'_>, requests: &mut Requests) {
        let number = requests.count();
        requests.turn_ended(turn);
        if turn.end().is_some_and(outcomes::claims_success) {
            self.failures.iter_mut().for_each(|failure| failure.turn_succeeded(number));
        }
    }

    pub(super) fn has_open_failures(&self) -> bool {
        self.failures.iter().any(Failure::is_open)
    }

    /// Learns of failures that are solved in a later part of the conversation.
    pub(super) fn learn_later(&mut self, later: &[Said]) {
        for piece in later.iter().filter(|piece| piece.speaker == Speaker::Result { failed: false }) {
            if !self.has_open_failures() {
                return;
            }
            let worked = Worked::by(piece);
            self.failures.iter_mut().for_each(|failure| failure.worked(&worked));
        }
    }

    fn result(&mut self, piece: &Said, failed: bool, turn: usize) {
        if failed || failures::is_hidden_failure(piece) {
            if let Some(failure) = Failure::of(piece, turn) {
                self.failures.retain(|known| !known.is(&failure));
                self.failures.iter_mut().for_each(|known| known.failed_again(&failure));
                self.failures.push(failure);
                if self.failures.len() > MOST_FAILURES {
                    self.failures.remove(0);
                }
            }
            return;
        }
        if !self.failures.is_empty() {
            let worked = Worked::by(piece);
            self.failures.iter_mut().for_each(|failure| failure.worked(&worked));
        }
        if is_of_question(&piece.label) && !piece.text.trim().is_empty() {
            self.decisions.push(clip(&format!("The user answered: {}", bare_answer(&piece.text)), LONGEST_ANSWER));
        }
        if piece.runs.iter().any(|run| !run.only_looks()) {
            let end = piece.text.lines().rev().map(str::trim).find(|line| !line.is_empty());
            if piece.label.contains(' ') {
                let end = end.map(|line| format!(": {}", clip(line, LONGEST_END))).unwrap_or_default();
                self.last_command = Some(format!("{}{end}", &*piece.label));
            }
        }
    }
}

/// The mark of the newest command that worked.
pub(super) const LAST_COMMAND: &str = "last command that worked – ";

/// The mark of a request that is not done, and that the user went on without.
pub(super) const LEFT_OFF: &str = "left off – ";

/// Failures that are followed. A summary has the newest ones.
const MOST_FAILURES: usize = 400;

/// Longest end of the output of a command, in characters.
const LONGEST_END: usize = 120;

/// Whether a step of an earlier summary was announced and not listed.
pub(super) fn is_announced(step: &str) -> bool {
    outcomes::is_announced(step)
}

/// Whether a line in small letters says that something was done, and not that it was not.
pub(super) fn says_done(lower: &str) -> bool {
    outcomes::claims_result(lower) && !outcomes::denies(lower) || lower.contains("commit") && !outcomes::denies(lower)
}

/// Longest answer of the user to a question of the agent, in characters.
const LONGEST_ANSWER: usize = 400;

/// An answer without the words that a harness puts around it.
fn bare_answer(text: &str) -> &str {
    const BEFORE: [&str; 2] = ["Your questions have been answered: ", "User has answered your questions: "];
    let text = BEFORE.iter().find_map(|before| text.strip_prefix(before)).unwrap_or(text);
    text.split_once(". You can now continue with").map_or(text, |(answer, _)| answer)
}

/// Whether a call asked the user.
fn is_of_question(label: &str) -> bool {
    const TOOLS: [&str; 7] = [
        "askuserquestion",
        "ask_user_question",
        "ask",
        "ask_user",
        "question",
        "request_user_input",
        "ask_followup_question",
    ];
    let tool = label.split(' ').next().unwrap_or_default().to_lowercase();
    TOOLS.contains(&&*tool)
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

/// The request in an item of a summary, without its outcome.
pub(super) fn asked(item: &str) -> &str {
    item.split(" → ").next().unwrap_or(item)
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

/// The statement in an item of an earlier summary.
fn carried(section: Section, text: &str) -> Option<Held> {
    let rule = section == Section::Constraints;
    let fact = section == Section::Context;
    if !rule && !fact
        || Failure::carried(section, text, 0).is_some()
        || text.starts_with(LAST_COMMAND)
        || text.starts_with(LEFT_OFF)
    {
        return None;
    }
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let kind = statements::statement(&text).map_or(Kind::Note, |it| it.kind);
    let kind = if rule { kind.min(Kind::Wish) } else { kind.max(Kind::Note) };
    Some(Held::new(Statement { kind, text }, true))
}

#[cfg(test)]
mod tests;
