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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        log::error::StoreError,
        protocol::{SessionContext, SessionEntries, SessionPin},
        session::{
            core::{
                Input, Over,
                command::Command,
                held::{Held, answer, answered, built, compacted_messages, events, job, log_work, usages},
            },
            effects::{Effect, Ticket},
            jobs::{IndexBuilt, Job},
            log_work::LogWork,
        },
        settings::{Layers, layers::Source},
    };
    use serde_json::json;
    use std::time::Duration;

    /// Asks for all entries. Without an index one is built.
    fn asks_for_all(held: &mut Held, number: u64) -> Job {
        held.call::<SessionEntries>(number, json!({"branch": "all"}));
        job(held.turn())
    }

    fn is_ready(effects: &[Effect]) -> bool {
        events(effects).any(|event| matches!(event, Event::IndexReady { .. }))
    }

    fn failed() -> StoreError {
        StoreError::Changed { path: "/held".into(), what: "it was cut".to_owned() }
    }

    /// A refusal after a compaction of another program, whose index is being built, and a context that waits.
    fn refused() -> Held {
        let mut held = Held::of(&compacted_messages(), 0);
        let answer = json!({"role": "assistant", "content": [], "stopReason": "error", "timestamp": 1,
            "errorMessage": "context_length_exceeded"});
        held.append_with(1, json!({"messages": [answer]}));
        let work = log_work(held.turn()).expect("a write");
        assert!(matches!(job(held.back(work)), Job::Index(..)));
        held.call::<SessionContext>(2, json!({"wait": true}));
        assert_eq!(answered(&held.turn()), [0; 0]);
        held
    }

    #[test]
    fn an_index_whose_work_panicked_is_built_for_the_next_request() {
        let mut held = Held::indexed_below(0);
        assert!(matches!(asks_for_all(&mut held, 1), Job::Index(..)));
        let effects = held.feed(Input::Indexed(IndexBuilt::Lost));
        assert_eq!(answer(&effects, 1), Some("internal".into()));
        assert!(matches!(asks_for_all(&mut held, 2), Job::Index(..)));
    }

    #[test]
    fn an_index_that_is_made_during_a_write_is_taken_behind_it() {
        let mut held = Held::indexed_below(0);
        let index = asks_for_all(&mut held, 1);
        held.append(2);
        let work = log_work(held.turn()).expect("a write");
        assert!(held.feed(built(index)).is_empty());
        let rest = log_work(held.back(work)).expect("the index lacks the new entry");
        assert!(matches!(rest, LogWork::Index(_)));
        assert!(is_ready(&held.back(rest)));
        assert!(held.turn().iter().any(|effect| matches!(effect, Effect::Read(1, _))));
    }

    #[test]
    fn a_session_with_an_index_that_waits_for_the_log_ends_behind_its_write() {
        let begin = || {
            let mut held = Held::indexed_below(0);
            let index = asks_for_all(&mut held, 1);
            held.append(2);
            let work = log_work(held.turn()).expect("a write");
            held.feed(built(index));
            (held, work)
        };
        let (mut stopped, work) = begin();
        stopped.feed(Input::Stop);
        assert_eq!(stopped.core.over(), Over::No);
        assert_eq!(answered(&stopped.back(work)), [2]);
        let (mut lost, _) = begin();
        assert_eq!(answered(&lost.lose_log()), [2]);
        for held in [stopped, lost] {
            assert_eq!(held.core.over(), Over::Yes);
            let effects = held.core.effects().clone();
            assert!(held.core.end().is_empty());
            assert_eq!(answer(&effects.take(), 1), Some("not_found".into()));
        }
    }

    #[test]
    fn a_ready_index_sends_no_usage_during_a_compaction() {
        let mut held = Held::indexed_below(0);
        let index = asks_for_all(&mut held, 1);
        held.begin_draft(2);
        let layers = json!({"tokens": {"estimator": "chars"}, "compaction": {"reserveTokens": 9_000}});
        held.feed(Input::Layers(Layers::of(vec![(Source::Global, layers)])));
        let effects = held.feed(built(index));
        assert!(is_ready(&effects));
        assert_eq!(usages(&effects), 0);
    }

    #[test]
    fn an_index_that_failed_is_tried_again_later() {
        let mut held = Held::indexed_below(0);
        held.at.now = held.core.wake_at(0).expect("an idle session builds its index");
        assert!(matches!(job(held.feed(Input::Tick)), Job::Index(..)));
        held.feed(Input::Indexed(IndexBuilt::Failed(failed())));
        assert!(held.core.wake_at(0).is_some_and(|at| at >= held.at.now + Duration::from_secs(10)));
    }

    #[test]
    fn a_close_behind_a_write_that_waits_for_the_index_closes_without_an_index() {
        let mut held = Held::of(&compacted_messages(), 0);
        held.edit::<SessionPin>(1, json!({"text": "keep this"}));
        held.send(2, Command::Close);
        held.turn();
        assert_eq!(answered(&held.turn()), [0; 0]);
        assert_eq!(answered(&held.feed(Input::Indexed(IndexBuilt::Lost))), [1]);
        held.turn();
        assert_eq!(held.core.over(), Over::Yes);
        assert_eq!(held.core.end().iter().map(Ticket::number).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn a_request_is_answered_whose_index_is_lost_with_the_log() {
        let mut held = Held::indexed_below(0);
        let index = asks_for_all(&mut held, 1);
        held.append(2);
        let work = log_work(held.turn()).expect("a write");
        held.back(work);
        let rest = log_work(held.feed(built(index)));
        assert!(matches!(rest, Some(LogWork::Index(_))), "the index lacks a line");
        let effects = held.lose_log();
        assert_eq!(answer(&effects, 1), Some("internal".into()));
        assert_eq!(held.core.over(), Over::Yes);
    }

    #[test]
    fn a_context_behind_a_refusal_is_answered_where_the_index_cannot_be_built() {
        let mut held = refused();
        assert_eq!(answered(&held.feed(Input::Indexed(IndexBuilt::Failed(failed())))), [2]);
    }

    #[test]
    fn a_context_behind_a_refusal_waits_for_no_index_in_a_session_that_finishes() {
        let mut held = refused();
        held.feed(Input::Finish);
        assert_eq!(answered(&held.turn()), [2]);
    }
}
