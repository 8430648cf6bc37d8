//! The index of the file: its job, and the commands that need it. Reads of the log that no write needs.

use super::Base;
use crate::{
    log::history::library::Indexed,
    protocol::{errors::Failure, events::Event, types::Repair},
    session::{
        core::{
            command::Command,
            parts::queue::{Queue, TRY_AGAIN},
        },
        effects::{Effect, Ticket},
        jobs::{IndexBuilt, Job, defect},
        log_work::{Fetch, LogWork},
        state::State,
    },
    wire::outbox::About,
};

/// Most repairs in one event: an event stays small.
const MOST_REPAIRS: usize = 100;

/// The index of the file, and the commands that need it.
#[derive(Default)]
pub(in crate::session::core) struct IndexWait {
    pub build: IndexBuild,
    /// Commands that wait for it.
    pub commands: Queue,
}

/// Whether the index is being built.
#[derive(Default)]
pub(in crate::session::core) enum IndexBuild {
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
    pub fn is_none(&self) -> bool {
        matches!(self, Self::No)
    }

    /// The index that waits for the log.
    pub fn take_made(&mut self) -> Option<Indexed> {
        match std::mem::take(self) {
            Self::Made(indexed) => Some(*indexed),
            other => {
                *self = other;
                None
            }
        }
    }
}

impl Base {
    /// Holds a command until the index is built.
    pub fn await_index(&mut self, command: Command, ticket: Ticket) {
        if !self.index.commands.has_room() {
            return ticket.fail(&Failure::Overloaded { retry_after_ms: TRY_AGAIN });
        }
        self.index.commands.take_in(command, ticket);
        self.start_indexing();
    }

    /// Starts the job that builds the index, if the log is here.
    pub fn start_indexing(&mut self) {
        if !self.log.is_free() || !self.index.build.is_none() {
            return;
        }
        let Some(work) = self.state.history().indexing(self.log.facts().end) else { return };
        self.index.build = IndexBuild::Running;
        self.effects.start(Job::Index(work, self.reads.stop.clone()));
    }

    /// Takes an index. Returns the failure of one that cannot be built, or nothing where it waits for the log.
    pub fn take_index(&mut self, built: IndexBuilt) -> Option<Result<(), Failure>> {
        self.index.build = IndexBuild::No;
        let failure = match built {
            // Work that is out with the log does not know the index: its result lacks the values from before a new path.
            IndexBuilt::Made(indexed) if !self.log.is_free() => {
                self.index.build = IndexBuild::Made(Box::new(indexed));
                return None;
            }
            IndexBuilt::Made(indexed) if indexed.covers(self.log.facts().end, self.state.path()) => {
                self.has_index(indexed);
                return Some(Ok(()));
            }
            // The commands that wait for it are answered by the end, and the log may be lost.
            IndexBuilt::Made(_) if self.ending.is_now() => return Some(Ok(())),
            IndexBuilt::Made(indexed) => match self.state.history().rest_of(indexed) {
                Some(rest) => {
                    self.index.build = IndexBuild::Rest;
                    self.read_log(LogWork::Index(Box::new(rest)));
                    return None;
                }
                None => Failure::Cancelled,
            },
            IndexBuilt::Stopped => Failure::Cancelled,
            IndexBuilt::Failed(error) => Failure::from(error),
            IndexBuilt::Lost => defect(),
        };
        Some(Err(failure))
    }

    fn has_index(&mut self, indexed: Indexed) {
        let repairs: Vec<Repair> = indexed.repairs.iter().map(Repair::from).collect();
        self.state.repairs.extend(indexed.repairs.iter().cloned());
        let was_partial = self.state.history().spending().is_partial;
        self.state.change(|history| history.set_index(indexed));
        if was_partial {
            self.costs.learn(&self.state.history().spending().recent);
        }
        self.effects.emit(About::default(), ready(&self.state, repairs));
        if !self.work.is_in_front() && !self.state.history().is_asleep() {
            self.send_usage();
        }
    }

    /// Passes on the commands that waited for the index, in the order of their arrival and before later ones. Without an
    /// index they fail.
    pub fn pass_on_waiting(&mut self, index: &Result<(), Failure>) {
        for (command, ticket) in self.index.commands.drain().rev() {
            match index {
                Err(failure) if !command.closes() => ticket.fail(failure),
                _ => self.queue.put_back(command, ticket),
            }
        }
    }

    /// Gives a read to the log.
    pub fn read_log(&mut self, work: LogWork) {
        self.log.reads();
        self.effects.push(Effect::Log(work));
    }

    /// Reads the path again. Only the entries of a file sleep.
    pub fn wake(&mut self) {
        let Some(source) = self.state.history().source().cloned() else { return };
        let library = self.state.history().library();
        self.read_log(LogWork::Wake(source, library));
    }

    /// Reads the entries that other programs have added.
    pub fn catch_up(&mut self) {
        let leaf = self.state.path().last().map(|leaf| leaf.id.clone());
        let library = self.state.history().library();
        self.read_log(LogWork::CatchUp(leaf, library));
    }

    /// Reads the entries that a command needs. The command is handled again after the read, before all others.
    pub fn fetch(&mut self, fetch: Fetch, command: Command, ticket: Ticket) {
        self.log.fetches(command, ticket);
        self.effects.push(Effect::Log(LogWork::Fetch(fetch)));
    }
}

/// The event about an index that was built, with the repairs of its file.
fn ready(state: &State, mut repairs: Vec<Repair>) -> Event {
    if repairs.len() > MOST_REPAIRS {
        let detail = format!("{} more are not listed", repairs.len() - MOST_REPAIRS);
        repairs.truncate(MOST_REPAIRS);
        repairs.push(Repair { kind: "more".to_owned(), line: None, detail });
    }
    let entry_count = state.history().entry_count().unwrap_or_default();
    Event::IndexReady { entry_count, title: state.title(), repairs }
}
