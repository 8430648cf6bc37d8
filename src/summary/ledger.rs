//! The facts of a conversation: statements of the user that are in force, requests and their outcomes, decisions, failures,
//! the todo list.

mod acknowledged;
mod failures;
mod outcomes;
mod reading;
mod requests;
mod steps;

pub(super) use failures::Failure;
pub(super) use requests::Request;

use super::{
    cues,
    current::{Claim, Outdated, replaced_by},
    heard::{Said, Speaker},
    prose::sentences_of_line,
    sections::Section,
    statements::{self, Initials, Kind, Statement},
    todo,
};
use crate::{
    conversation::entry::{Entry, Todo},
    redact::Clean,
};
use failures::Worked;
use reading::{Read, Reading};
use std::{collections::HashSet, sync::Arc};

/// A statement in force.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub statement: Statement,
    /// Whether an earlier summary has it.
    pub carried: bool,
    /// The words that tell what a rule is about.
    words: Initials,
}

impl Held {
    fn new(statement: Statement, carried: bool) -> Self {
        let is_rule = statement.kind <= Kind::Wish;
        let words = if is_rule { Initials::of(&statement.text.to_lowercase()) } else { Initials::default() };
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
    /// The first thing that the user asked for.
    pub goal: Option<String>,
    /// Things to do that the user told of.
    pub tasks: Vec<String>,
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
        let mut reading = Reading::of(sources);
        sources.said.iter().for_each(|piece| reading.take(piece));
        let Read { mut ledger, statements, withdrawn, announcing } = reading.end(sources.goes_on);
        ledger.hold(statements);
        ledger.outdated.add(withdrawn);
        ledger.leave_outdated_out();
        let answers = sources.said.iter().rev().filter(|piece| piece.speaker == Speaker::Assistant);
        let mut telling = answers.map(|piece| &*piece.text).filter(|said| !acknowledged::is_acknowledgement(said));
        let last = telling.find(|said| !ledger.outdated.is_in(said));
        ledger.last_words = last.map(str::to_owned);
        ledger.next = last.map(steps::listed_steps).unwrap_or_default();
        ledger.next.extend(announcing.and_then(steps::announced));
        ledger.todos = todo::list(sources.entries.iter().copied(), sources.todo_tools);
        for todo in &mut ledger.todos {
            todo.text = (sources.clean)(&todo.text).into_string();
        }
        ledger
    }

    /// Leaves out of requests, outcomes and decisions what a later statement replaced.
    fn leave_outdated_out(&mut self) {
        let Self { requests, decisions, outdated, goal, tasks, .. } = self;
        // A request goes on without the sentence that a later one corrects. The first one has the goal.
        let first = requests.first().map(|request| request.text.clone());
        let texts = requests.iter_mut().map(|request| &mut request.text).chain(goal);
        for text in texts.filter(|text| outdated.is_in(text)) {
            let in_force = sentences_of_line(text).filter(|sentence| !outdated.is_in(sentence));
            let in_force = in_force.collect::<String>().trim().to_owned();
            // A request may name an outdated value: "free the port 8080".
            if !in_force.is_empty() || !statements::may_ask_for_work(text) {
                *text = in_force;
            }
        }
        tasks.retain(|task| !outdated.is_in(task));
        requests.retain(|request| !request.text.is_empty());
        if requests.is_empty() {
            requests.extend(first.map(Request::new));
        }
        for request in requests.iter_mut() {
            request.outcome = request.outcome.take().filter(|outcome| !outdated.is_in(outcome));
        }
        decisions.retain(|decision| !outdated.is_in(decision));
    }

    /// Takes the statements that are in force. Of equal ones the last stays: it tells since when they hold.
    fn hold(&mut self, mut made: Vec<Held>) {
        let mut seen = HashSet::new();
        made.reverse();
        made.retain(|held| seen.insert(cues::without_label(&held.statement.text).to_lowercase()));
        made.reverse();
        let claims: Vec<Option<Claim>> = made.iter().map(|held| Claim::of(&held.statement.text)).collect();
        let by = replaced_by(&claims);
        let holds: Vec<bool> = by.iter().map(Option::is_none).collect();
        let texts: Vec<&str> = made.iter().map(|held| held.statement.text.as_str()).collect();
        self.outdated = Outdated::of(&texts, &claims, &holds);
        // A statement has the place of the one that it replaces: a small summary has the oldest.
        let mut places: Vec<usize> = (0..made.len()).collect();
        for (older, by) in by.iter().enumerate() {
            if let Some(newer) = *by {
                places[newer] = places[newer].min(places[older]);
                made[newer].carried |= made[older].carried;
            }
        }
        let mut in_force: Vec<(usize, Held)> =
            made.into_iter().enumerate().filter(|(at, _)| holds[*at]).map(|(at, held)| (places[at], held)).collect();
        in_force.sort_by_key(|(place, _)| *place);
        self.statements = in_force.into_iter().map(|(_, held)| held).collect();
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
}

/// The mark of the newest command that worked.
pub(super) const LAST_COMMAND: &str = "last command that worked – ";

/// The mark of a request that is not done, and that the user went on without.
pub(super) const LEFT_OFF: &str = "left off – ";

/// The mark of a message that asked for nothing, by which a later summary knows it again.
pub(super) const MENTIONED: &str = "mentioned – ";

/// Whether a step of an earlier summary was announced and not listed.
pub(super) fn is_announced(step: &str) -> bool {
    steps::is_announced(step)
}

/// Whether a line in small letters says that something was done, and not that it was not.
pub(super) fn says_done(lower: &str) -> bool {
    outcomes::claims_result(lower) && !outcomes::denies(lower) || lower.contains("commit") && !outcomes::denies(lower)
}

/// Whether a sentence in small letters says that something is not done.
pub(super) fn denies(lower: &str) -> bool {
    outcomes::denies(lower)
}

/// The request in an item of a summary, without its outcome.
pub(super) fn asked(item: &str) -> &str {
    item.split(" → ").next().unwrap_or(item)
}

#[cfg(test)]
mod tests;
