//! Work of an idle session: building its index, reading the entries of other programs, and dropping bodies that can be
//! read again.

use super::{
    command::Command,
    queue::{Queue, TRY_AGAIN},
};
use crate::{
    ids::EntryId,
    log::{Access, Grown, Unfinished, error::StoreError, history::library::Indexed},
    protocol::{
        errors::Failure,
        events::{Event, Severity},
        types::Repair,
    },
    session::{
        core::{Core, Ending, LogState},
        effects::{Effect, Ticket},
        fault::{Fault, planted},
        jobs::{IndexBuilt, Job, defect},
        kind::OperationKind,
        log_work::LogWork,
        operations::interrupted,
    },
    wire::outbox::About,
};
use std::collections::HashSet;

/// Most repairs in one event: an event stays small.
const MOST_REPAIRS: usize = 100;

/// The index of the file, and the commands that need it.
#[derive(Default)]
pub(super) struct IndexWait {
    pub build: IndexBuild,
    /// Commands that wait for it.
    pub commands: Queue,
}

/// Whether the index is being built.
#[derive(Default)]
pub(super) enum IndexBuild {
    #[default]
    No,
    /// A job builds it.
    Running,
    /// The log is out with its rest.
    Rest,
    /// It was built while the log was out, and is taken when the log is back.
    Made(Box<Indexed>),
}

impl IndexBuild {
    /// Whether no index is being built.
    pub(super) fn is_none(&self) -> bool {
        matches!(self, Self::No)
    }

    /// The index that waits for the log.
    pub(super) fn take_made(&mut self) -> Option<Indexed> {
        match std::mem::take(self) {
            Self::Made(indexed) => Some(*indexed),
            other => {
                *self = other;
                None
            }
        }
    }
}

/// Changes of the file that other programs made.
#[derive(Default)]
pub(super) struct FileChanges {
    /// The file was touched and not read since.
    pub pending: bool,
    /// The client knows that bytes of the file were changed, beyond appends.
    pub reported: bool,
}

impl Core {
    /// Holds a command until the index is built.
    pub(super) fn await_index(&mut self, command: Command, ticket: Ticket) {
        if !self.index.commands.has_room() {
            return ticket.fail(&Failure::Overloaded { retry_after_ms: TRY_AGAIN });
        }
        self.index.commands.take_in(command, ticket);
        self.start_indexing();
    }

    pub(super) fn start_indexing(&mut self) {
        let LogState::Ready(log) = &self.log else { return };
        let Some(work) = self.state.history().indexing(log.end).filter(|_| self.index.build.is_none()) else {
            return;
        };
        self.index.build = IndexBuild::Running;
        self.start(Job::Index(work, self.reads.stop.clone()));
    }

    pub(super) fn indexed(&mut self, built: IndexBuilt) {
        self.index.build = IndexBuild::No;
        let failure = match built {
            // Work that is out with the log does not know the index: its result lacks the values from before a new path.
            IndexBuilt::Made(indexed) if !self.listens() => {
                self.index.build = IndexBuild::Made(Box::new(indexed));
                return;
            }
            IndexBuilt::Made(indexed) if indexed.covers(self.log_facts().end, self.state.path()) => {
                let repairs: Vec<Repair> = indexed.repairs.iter().map(Repair::from).collect();
                self.state.repairs.extend(indexed.repairs.iter().cloned());
                self.state.change(|history| history.set_index(indexed));
                self.send_index(repairs);
                None
            }
            // The commands that wait for it are answered by the end, and the log may be lost.
            IndexBuilt::Made(_) if matches!(self.ending, Ending::Now(_)) => None,
            IndexBuilt::Made(indexed) => match self.state.history().rest_of(indexed) {
                Some(rest) => {
                    self.index.build = IndexBuild::Rest;
                    return self.log_out(LogWork::Index(Box::new(rest)), LogState::Reading);
                }
                None => Some(Failure::Cancelled),
            },
            IndexBuilt::Stopped => Some(Failure::Cancelled),
            IndexBuilt::Failed(error) => Some(Failure::from(error)),
            IndexBuilt::Lost => Some(defect()),
        };
        if failure.is_some() {
            self.idle.postpone(self.now);
        }
        // In the order of their arrival, before later commands.
        for (command, ticket) in self.index.commands.drain().rev() {
            match &failure {
                Some(failure) if !command.closes() => ticket.fail(failure),
                _ => self.queue.put_back(command, ticket),
            }
        }
    }

    fn send_index(&mut self, mut repairs: Vec<Repair>) {
        if repairs.len() > MOST_REPAIRS {
            let detail = format!("{} more are not listed", repairs.len() - MOST_REPAIRS);
            repairs.truncate(MOST_REPAIRS);
            repairs.push(Repair { kind: "more".to_owned(), line: None, detail });
        }
        let event = Event::IndexReady {
            entry_count: self.state.history().entry_count().unwrap_or_default(),
            title: self.state.title(),
            repairs,
        };
        self.emit(About::default(), event);
        if self.work.is_none() && !self.state.history().is_asleep() {
            self.send_usage(self.state.usage());
        }
    }

    /// Reads the path again.
    pub(super) fn wake(&mut self) {
        // Only the entries of a file sleep.
        let Some(source) = self.state.history().source().cloned() else { return };
        let library = self.state.history().library();
        self.log_out(LogWork::Wake(source, library), LogState::Reading);
    }

    pub(super) fn woke(&mut self, path: Result<crate::conversation::path::Path, StoreError>) {
        match path {
            Ok(path) => {
                self.state.change(|history| history.wake(path));
                self.count();
            }
            Err(error) => {
                let failure = Failure::from(error);
                // A close needs no path.
                for (_, ticket) in self.queue.take_out(|command| !command.closes()) {
                    ticket.fail(&failure);
                }
            }
        }
    }

    /// Looks for entries of other programs.
    pub(super) fn catch_up(&mut self) {
        self.changes.pending = false;
        let leaf = self.state.path().last().map(|leaf| leaf.id.clone());
        let library = self.state.history().library();
        self.log_out(LogWork::CatchUp(leaf, library), LogState::Reading);
    }

    pub(super) fn caught_up(&mut self, grown: Result<Grown, StoreError>) {
        match grown {
            Ok(grown) => self.take_in(grown),
            // One notice is enough.
            Err(_) if self.changes.reported => {}
            Err(error) => {
                self.changes.reported = true;
                let (title, detail) = ("The session's file was changed".to_owned(), Some(error.to_string()));
                self.emit(About::default(), Event::Notice { severity: Severity::Error, title, detail });
            }
        }
    }

    /// Adds the entries of another program.
    pub(super) fn take_in(&mut self, grown: Grown) {
        if grown.entries.is_empty() {
            return;
        }
        let left = self.left_by(&grown);
        self.state.change(|history| {
            for placed in &grown.entries {
                history.push(placed.clone());
            }
            if let Some(path) = grown.path {
                history.wake(path);
            }
            history.complete_in_memory();
        });
        self.count();
        for placed in &grown.entries {
            self.announce(&placed.entry, None);
        }
        if !self.state.history().is_asleep() {
            self.send_usage(self.state.usage());
        }
        if let Some((messages, leaf)) = left {
            self.warn(
                "Another program went on from an earlier entry",
                format!(
                    "It had not read the last {messages} of this session's messages. They are a branch of their own \
                     now, up to entry {leaf}, and are not in the context. Nothing is lost. To go on from them, call \
                     session/append with parentEntryId {leaf}. Two programs that write to one session should take turns."
                ),
            );
        }
    }

    /// Number of messages that left the path because another program continued from an earlier entry, and the last of
    /// their branch.
    fn left_by(&self, grown: &Grown) -> Option<(usize, EntryId)> {
        // Without a new path they continue the old one.
        let after = grown.path.as_ref().filter(|_| self.log_facts().access == Access::Write)?;
        let new: HashSet<&EntryId> = grown.entries.iter().map(|placed| &placed.entry.id).collect();
        // The parent that a line names may be none of the tree.
        let base = after.iter().rev().find(|entry| !new.contains(&entry.id)).map(|entry| &entry.id);
        let base = base.or_else(|| after.first()?.parent.as_ref());
        let path = self.state.path();
        // A path that is not in memory does not show where the new entries continue.
        let place = base.and_then(|base| path.position(base)).map_or(0, |place| place + 1);
        let left = path[place..].iter().filter(|entry| entry.in_context()).count();
        (left > 0).then(|| Some((left, path.visible_leaf()?.clone()))).flatten()
    }

    /// Sends a warning.
    pub(super) fn warn(&self, title: &str, detail: String) {
        let event = Event::Notice { severity: Severity::Warning, title: title.to_owned(), detail: Some(detail) };
        self.emit(About::default(), event);
    }

    /// Sends the ends of operations whose process died before it ended them.
    pub(super) fn end_interrupted(&mut self, left_behind: Vec<Unfinished>) {
        if left_behind.is_empty() || planted(Fault::LostEndOfCrash) {
            return;
        }
        for (operation, event) in interrupted::<OperationKind>(left_behind, &self.sent_usage) {
            self.emit(About { entry: None, operation: Some(operation) }, event);
        }
        self.record_running();
    }

    /// Records the open operations in the lock, for the process that finds it after a crash. While the writer is away the
    /// record waits until it is back.
    pub(super) fn record_running(&mut self) {
        self.record(self.operations.unfinished());
    }

    /// Records these operations in the lock.
    pub(super) fn record(&mut self, operations: Vec<Unfinished>) {
        let skipped = if operations.is_empty() { Fault::RecordStays } else { Fault::StartNotRecorded };
        if self.listens() && !planted(skipped) {
            self.effects.push(Effect::Record(operations));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        log::sealed::Blocking,
        protocol::SessionEntries,
        session::{
            core::{
                Input, Over,
                held::{Held, answer, job, log_work},
            },
            jobs,
        },
    };
    use serde_json::json;

    #[test]
    fn an_index_whose_work_panicked_is_built_for_the_next_request() {
        let mut held = Held::indexed_below(0);
        let ask = |held: &mut Held, number| {
            let params = serde_json::from_value(json!({"sessionId": "held", "branch": "all"})).expect("params");
            let ticket = held.ticket(number);
            held.feed(Input::Command(Command::call::<SessionEntries>(params), ticket));
            job(held.feed(Input::Turn))
        };
        assert!(matches!(ask(&mut held, 1), Job::Index(..)));
        let effects = held.feed(Input::Indexed(IndexBuilt::Lost));
        assert_eq!(answer(&effects, 1), Some("internal".into()));
        assert!(matches!(ask(&mut held, 2), Job::Index(..)));
    }

    #[test]
    fn a_request_is_answered_whose_index_is_lost_with_the_log() {
        let blocking = Blocking::is_allowed_here();
        let mut held = Held::indexed_below(0);
        let params = serde_json::from_value(json!({"sessionId": "held", "branch": "all"})).expect("params");
        let ticket = held.ticket(1);
        held.feed(Input::Command(Command::call::<SessionEntries>(params), ticket));
        let Job::Index(work, stop) = job(held.feed(Input::Turn)) else { unreachable!("it needs the index") };
        let built = jobs::index(work, &stop, &blocking);
        held.append(2);
        let work = log_work(held.feed(Input::Turn)).expect("a write");
        let done = work.run(&mut *held.log, &blocking);
        let facts = held.facts();
        held.feed(Input::Log(Some(done), facts));
        assert!(
            matches!(log_work(held.feed(Input::Indexed(built))), Some(LogWork::Index(_))),
            "the index lacks a line"
        );
        let facts = held.facts();
        let effects = held.feed(Input::Log(None, facts));
        assert_eq!(answer(&effects, 1), Some("internal".into()));
        assert_eq!(held.core.over(), Over::Yes);
    }
}
