//! Everything a session writes: handed to the disk, and told when it is there.

use super::{
    Append, Input, Session, Write, Writer,
    append::Staged,
    handle::Command,
    read,
    state::Home,
    store::{Appended, StoreError},
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
    transport,
};
use std::sync::Arc;

/// A larger entry is announced by its id and type alone, in bytes.
const LARGEST_ANNOUNCED: usize = 48 * 1024;

impl Write {
    fn entries(&self) -> impl Iterator<Item = &Arc<Entry>> {
        let (appends, compaction) = match self {
            Self::Appends(appends) => (appends.as_slice(), None),
            Self::Compaction { entry, .. } => (&[][..], Some(entry)),
        };
        appends.iter().flat_map(|append| &append.staged.entries).chain(compaction)
    }
}

impl Session {
    /// Hands lines to the disk; the result comes back as an input.
    pub(super) fn write(&mut self, lines: Vec<String>, what: Write) {
        let Writer::Ready(mut home) = std::mem::replace(&mut self.writer, Writer::Away) else {
            unreachable!("commands and drafts wait while a write is out")
        };
        if let Home::File(log) = &home {
            self.state.stats = log.stats();
        }
        let counted = tokens::ready() && self.state.gauge(None).estimator() == Estimator::Tiktoken;
        self.spawn(move || {
            let result = match &mut home {
                Home::File(log) => log.append(&lines),
                Home::Memory | Home::ReadOnly(_) => Ok(Appended::Written),
            };
            if counted {
                // Here it costs nobody's time but the writer's, and every answer has counts instead of guesses.
                what.entries().for_each(|entry| entry.count());
            }
            Input::Written { home, result, what }
        });
    }

    pub(super) fn written(&mut self, home: Home, result: Result<Appended, StoreError>, what: Write) {
        self.writer = Writer::Ready(home);
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
        self.count();
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
        let whole = transport::escaped_len(entry.line()) <= LARGEST_ANNOUNCED;
        let event = Event::EntryAppended {
            entry: whole.then(|| read::wire(entry)),
            entry_type: (!whole).then(|| entry.kind.clone()),
        };
        self.emitter.emit(About { entry: Some(entry.id.clone()), operation }, &event);
    }
}
