//! Everything a session writes: handed to the disk, and told when it is there.

use super::{
    Append, Input, Session, Write, Writer,
    append::Staged,
    handle::Command,
    read,
    state::Home,
    store::{Appended, Log, StoreError},
};
use crate::{
    entry::Entry,
    ids::OperationId,
    outbox::About,
    protocol::{
        errors::Failure,
        events::Event,
        types::{AppendAnswer, Next},
    },
    rpc::Reply,
    tokens::{self, Estimator},
};
use std::sync::Arc;

/// A larger entry is announced by its id and type alone, in bytes.
const LARGEST_ANNOUNCED: usize = 48 * 1024;

impl Session {
    /// Hands lines to the disk; the result comes back as an input.
    pub(super) fn write(&mut self, lines: Vec<String>, what: Write) {
        match std::mem::replace(&mut self.writer, Writer::Away) {
            Writer::Ready(Home::File(mut log)) => {
                self.state.stats = log.stats();
                let counted = tokens::ready() && self.state.gauge(None).estimator() == Estimator::Tiktoken;
                self.spawn(move || {
                    let result = log.append(&lines);
                    if counted && let Write::Appends(appends) = &what {
                        // Here it costs nobody's time but the writer's, and every answer has counts instead of guesses.
                        appends.iter().flat_map(|append| &append.staged.entries).for_each(|entry| entry.count());
                    }
                    Input::Written { log: Some(log), result, what }
                });
            }
            Writer::Ready(home) => {
                self.writer = Writer::Ready(home);
                self.written(None, Ok(Appended::Written), what);
            }
            Writer::Away => unreachable!("commands and drafts wait while a write is out"),
        }
    }

    pub(super) fn written(&mut self, log: Option<Log>, result: Result<Appended, StoreError>, what: Write) {
        if let Some(log) = log {
            self.writer = Writer::Ready(Home::File(log));
        }
        match (result, what) {
            (Ok(Appended::Behind(strangers)), what) => self.again(&strangers, what),
            (Ok(Appended::Written), Write::Appends(appends)) => {
                appends.into_iter().for_each(|Append { staged, reply, .. }| self.appended(staged, reply));
            }
            (Err(error), Write::Appends(appends)) => {
                let failure = Failure::from(error);
                appends.into_iter().for_each(|append| append.reply.fail(&failure));
            }
            (result, Write::Compaction { entry, .. }) => {
                self.compacted(&entry, result.map(drop).map_err(Failure::from))
            }
        }
    }

    /// Another program wrote to the file meanwhile: what it wrote is taken in, then ours is tried again on top of it.
    fn again(&mut self, strangers: &[Arc<Entry>], what: Write) {
        for entry in strangers {
            self.state.tree.push(entry.clone());
            self.announce(entry, None);
        }
        self.tell_usage(self.state.measure(self.state.path()).usage);
        match what {
            Write::Appends(appends) => {
                for Append { params, reply, .. } in appends.into_iter().rev() {
                    self.commands.push_front(Command::Append(params, reply));
                }
            }
            Write::Compaction { draft, .. } => self.draft_again(draft),
        }
    }

    fn appended(&mut self, staged: Staged, reply: Reply) {
        for entry in &staged.entries {
            self.state.tree.push(entry.clone());
        }
        let usage = self.state.measure(self.state.path()).usage;
        reply.ok(&AppendAnswer {
            entry_ids: staged.entries.iter().map(|entry| entry.id.clone()).collect(),
            leaf_entry_id: self.state.visible_leaf(),
            usage: usage.clone(),
            next: Next::None,
        });
        for entry in &staged.entries {
            self.announce(entry, None);
        }
        self.tell_usage(usage);
    }

    pub(super) fn announce(&self, entry: &Entry, operation: Option<OperationId>) {
        let whole = entry.line().len() <= LARGEST_ANNOUNCED;
        let event = Event::EntryAppended {
            entry: whole.then(|| read::wire(entry)),
            entry_type: (!whole).then(|| entry.kind.clone()),
        };
        self.emitter.emit(About { entry: Some(entry.id.clone()), operation }, &event);
    }
}
