//! Work of an idle session: building its index, reading the entries of other programs, and dropping bodies that can be
//! read again.

use super::{
    Done, Ending, Input, Session, Writer, command::Command, idle::IdleWork, kind::OperationKind,
    operations::interrupted, writing::with_its_past,
};
use crate::{
    ids::EntryId,
    log::{
        Access, Grown,
        error::StoreError,
        history::{History, Indexed},
        lock::Unfinished,
    },
    protocol::{
        errors::Failure,
        events::{Event, Severity},
        types::Repair,
    },
    wire::outbox::About,
};
/// Most repairs in one event: an event stays small.
const MOST_REPAIRS: usize = 100;

/// The index of the file, and the commands that need it.
#[derive(Default)]
pub(super) struct IndexWait {
    /// The index is being built.
    pub building: bool,
    /// Commands that wait for it.
    pub commands: Vec<Command>,
}

/// Changes of the file that other programs made.
#[derive(Default)]
pub(super) struct FileChanges {
    /// The file was touched and not read since.
    pub pending: bool,
    /// The client knows that bytes of the file were changed, beyond appends.
    pub reported: bool,
}

impl Session {
    /// The next work of an idle session.
    pub(super) fn next_idle_work(&mut self) -> Option<IdleWork> {
        let quiet = self.listens() && self.work.is_none() && self.reads.running == 0;
        if !quiet || self.state.history().source().is_none() || !matches!(self.ending, Ending::No) {
            return None;
        }
        if self.state.history().index().is_none() {
            return (!self.index.building).then_some(IdleWork::Index(self.idle.indexes_at()));
        }
        if self.state.history().is_asleep() || self.counting {
            return None;
        }
        self.idle.share(self.state.path().bytes());
        Some(IdleWork::Sleep(self.idle.sleeps_at()))
    }

    /// Performs the work.
    pub(super) fn do_idle_work(&mut self) {
        if self.state.history().index().is_none() {
            self.start_indexing();
        } else {
            self.state.change(History::sleep);
            self.idle.share(0);
        }
    }

    /// Holds a command until the index is built.
    pub(super) fn await_index(&mut self, command: Command) {
        self.index.commands.push(command);
        self.start_indexing();
    }

    pub(super) fn start_indexing(&mut self) {
        let Writer::Ready(log) = &self.writer else { return };
        let Some(work) = self.state.history().indexing(log.end()).filter(|_| !self.index.building) else { return };
        self.index.building = true;
        let stop = self.reads.stop.clone();
        self.spawn(move || Input::Indexed(work.run(&|| stop.requested())));
    }

    pub(super) fn indexed(&mut self, result: Result<Option<Indexed>, StoreError>) {
        self.index.building = false;
        let failure = match result {
            Ok(Some(indexed)) => {
                // Entries of a write that is out are added when it comes back.
                let end = match &self.writer {
                    Writer::Ready(log) => log.end(),
                    Writer::Away { end } => *end,
                };
                let repairs: Vec<Repair> = indexed.repairs.iter().map(Repair::from).collect();
                self.state.repairs.extend(indexed.repairs.iter().cloned());
                match self.state.change(|history| history.set_index(indexed, end)) {
                    Ok(()) => {
                        self.tell_index(repairs);
                        None
                    }
                    Err(error) => Some(Failure::from(error)),
                }
            }
            Ok(None) => Some(Failure::Cancelled),
            Err(error) => Some(Failure::from(error)),
        };
        if failure.is_some() {
            self.idle.postpone();
        }
        // In the order of their arrival, before later commands.
        for command in std::mem::take(&mut self.index.commands).into_iter().rev() {
            match &failure {
                Some(failure) if !command.closes() => command.refuse(failure),
                _ => self.commands.push_front(command),
            }
        }
    }

    fn tell_index(&mut self, mut repairs: Vec<Repair>) {
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
        self.emitter.emit(About::default(), &event);
        if self.work.is_none() && !self.state.history().is_asleep() {
            self.tell_usage(self.state.usage());
        }
    }

    /// Reads the path again.
    pub(super) fn wake(&mut self) {
        let source = self.state.history().source().cloned();
        let library = self.state.history().library();
        self.with_log(move |log| {
            let source = source.expect("only what is in a file sleeps");
            Done::Woke(source.path_from(log.end()).map(|path| with_its_past(path, library.as_ref())))
        });
    }

    pub(super) fn woke(&mut self, path: Result<crate::conversation::path::Path, StoreError>) {
        match path {
            Ok(path) => {
                self.state.change(|history| history.wake(path));
                self.count();
            }
            Err(error) => {
                let failure = Failure::from(error);
                for command in std::mem::take(&mut self.commands) {
                    // A close needs no path.
                    if command.closes() { self.commands.push_back(command) } else { command.refuse(&failure) }
                }
            }
        }
    }

    /// Looks for entries of other programs. Returns false if there is nothing to look for.
    pub(super) fn catches_up(&mut self) -> bool {
        if !std::mem::take(&mut self.changes.pending) {
            return false;
        }
        match &self.writer {
            // Most changes are the session's own writes.
            Writer::Ready(log) if log.may_have_grown() => {}
            Writer::Ready(_) | Writer::Away { .. } => return false,
        }
        let leaf = self.state.path().last().map(|leaf| leaf.id.clone());
        let library = self.state.history().library();
        self.with_log(move |log| {
            let grown = log.catch_up(leaf.as_ref());
            Done::CaughtUp(
                grown
                    .map(|grown| Grown { path: grown.path.map(|path| with_its_past(path, library.as_ref())), ..grown }),
            )
        });
        true
    }

    pub(super) fn caught_up(&mut self, grown: Result<Grown, StoreError>) {
        match grown {
            Ok(grown) => self.take_in(grown),
            // One notice is enough.
            Err(_) if self.changes.reported => {}
            Err(error) => {
                self.changes.reported = true;
                let (title, detail) = ("The session's file was changed".to_owned(), Some(error.to_string()));
                self.emitter.emit(About::default(), &Event::Notice { severity: Severity::Error, title, detail });
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
            for (entry, spot) in &grown.entries {
                history.push(entry.clone(), Some(*spot));
            }
            if let Some(path) = grown.path {
                history.wake(path);
            }
            history.complete();
        });
        self.count();
        for (entry, _) in &grown.entries {
            self.announce(entry, None);
        }
        if !self.state.history().is_asleep() {
            self.tell_usage(self.state.usage());
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
        let ours = matches!(&self.writer, Writer::Ready(log) if log.access() == Access::Write);
        let path = self.state.path();
        let mut base = grown.entries.last()?.0.parent.clone();
        for (entry, _) in grown.entries.iter().rev() {
            if base.as_ref() == Some(&entry.id) {
                base.clone_from(&entry.parent);
            }
        }
        // A path that is not in memory does not show where the new entries continue.
        let place = match &base {
            Some(base) => path.position(base).map_or(0, |place| place + 1),
            None => 0,
        };
        let left = path[place..].iter().filter(|entry| entry.in_context()).count();
        (ours && left > 0).then(|| Some((left, path.visible_leaf()?.clone()))).flatten()
    }

    /// Sends a warning.
    pub(super) fn warn(&self, title: &str, detail: String) {
        let event = Event::Notice { severity: Severity::Warning, title: title.to_owned(), detail: Some(detail) };
        self.emitter.emit(About::default(), &event);
    }

    /// Sends the ends of operations whose process died before it ended them.
    pub(super) fn end_interrupted(&mut self, left_behind: Vec<Unfinished>) {
        if left_behind.is_empty() {
            return;
        }
        for (operation, event) in interrupted::<OperationKind>(left_behind, &self.told) {
            self.emitter.emit(About { entry: None, operation: Some(operation) }, &event);
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
        if let Writer::Ready(log) = &mut self.writer {
            log.record(operations);
        }
    }
}
