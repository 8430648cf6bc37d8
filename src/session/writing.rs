//! Writes of a session: to the disk, and announced afterwards.

use super::{
    Append, Done, Ending, Input, Session, Write, Writer,
    command::Command,
    edit::{self, Edit},
};
use crate::{
    conversation::{
        context::others,
        entry::{Entry, Stamps},
        mirroring,
        path::Path,
        tokens::{self, Estimator},
    },
    ids::OperationId,
    log::{Appended, Log, error::StoreError, history::Library, index::Spot, memory::Ephemeral, source::Placed},
    protocol::{
        errors::Failure,
        events::Event,
        types::{AppendAnswer, Next},
    },
    provider::overflow::{self, Meaning, Overflow},
    session::commands::{append, entries},
    wire::{outbox::About, rpc::Reply, transport},
};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

/// Size above which an entry is announced by its id and type alone, in bytes.
const LARGEST_ANNOUNCED: usize = 48 * 1024;

impl Write {
    fn entries(&self) -> Vec<Arc<Entry>> {
        match self {
            Self::Appends(appends) => appends.iter().flat_map(|append| append.staged.entries.clone()).collect(),
            Self::Compaction { costs, entry, mirrors, .. } => {
                costs.entries.iter().chain([entry]).chain(mirrors).cloned().collect()
            }
            Self::Costs(costs) => costs.entries.clone(),
            Self::Edit { staged, .. } => staged.entries.clone(),
        }
    }
}

/// A path with the values from before its first entry, as far as an index knows them.
pub(super) fn with_its_past(mut path: Path, library: Option<&Library>) -> Path {
    if let Some(library) = library {
        library.look_into_the_past(&mut path);
    }
    path
}

impl Session {
    /// Runs work on the log away from the session. No command is handled meanwhile.
    pub(super) fn with_log(&mut self, work: impl FnOnce(&mut dyn Log) -> Done + Send + 'static) {
        let end = match &self.writer {
            Writer::Ready(log) => log.end(),
            Writer::Away { .. } => unreachable!("commands and drafts wait while a write is out"),
        };
        let Writer::Ready(mut log) = std::mem::replace(&mut self.writer, Writer::Away { end }) else { return };
        self.state.stats = log.stats();
        self.spawn(move || match catch_unwind(AssertUnwindSafe(|| work(&mut *log))) {
            Ok(done) => Input::Back { log, done },
            Err(_) => Input::Lost,
        });
    }

    /// Adds the texts that other programs lack since a compaction between a call and its result. Entries on another branch
    /// get none, because these texts belong to the current path.
    pub(super) fn add_texts_held_back(&self, appends: &mut [Append]) {
        let (path, prompts) = (self.state.path(), &self.state.settings().prompts);
        if !others::may_lack_texts(path, prompts) {
            return;
        }
        let staged: Vec<Arc<Entry>> = appends.iter().flat_map(|append| append.staged.entries.clone()).collect();
        if !path.continues_with_all(&staged) {
            return;
        }
        let mirrors = mirroring::with_mirrors(path, &staged, prompts, &mut Stamps::system());
        if let Some(last) = appends.last_mut() {
            last.staged.entries.extend(mirrors);
        }
    }

    /// Writes entries; the result comes back as an input.
    pub(super) fn write(&mut self, what: Write) {
        if let Write::Edit { staged: edit::Staged { undoing: Some(_), .. }, .. } = &what {
            return self.write_undo(what);
        }
        let entries = what.entries();
        let lines: Vec<String> = entries.iter().map(|entry| entry.line().to_owned()).collect();
        let leaf = self.state.path().last().map(|leaf| leaf.id.clone());
        let goes_on = self.state.path().continues_with_all(&entries);
        let source = self.state.history().source().cloned();
        let library = self.state.history().library();
        let counted = tokens::ready() && self.state.wanted_estimator() == Estimator::Tiktoken;
        self.with_log(move |log| {
            let appended = log.append(&lines, leaf.as_ref());
            let path = match (&appended, source) {
                (Ok(Appended::Written { others, .. }), Some(source)) if !goes_on || !others.is_empty() => {
                    Some(source.path_from(log.end()).map(|path| with_its_past(path, library.as_ref())))
                }
                _ => None,
            };
            if counted {
                // The time of the count is the writer's, and every answer has counts in the place of estimates.
                entries.iter().for_each(|entry| entry.count());
                if let Some(Ok(path)) = &path {
                    path[path.first_kept()..].iter().for_each(|entry| entry.count());
                }
            }
            Done::Wrote { appended, path, what: Box::new(what) }
        });
    }

    /// Writes an undo. Its entries depend on the path without the compaction, which is read first.
    fn write_undo(&mut self, mut what: Write) {
        let Write::Edit { staged, .. } = &mut what else { return };
        let Some(undoing) = staged.undoing.take() else { return };
        let leaf = self.state.path().last().map(|leaf| leaf.id.clone());
        let library = self.state.history().library();
        let reader = self.state.history().reader();
        self.with_log(move |log| {
            let marker = undoing.marker().clone();
            let (entries, path) = match reader.path_behind(marker, log.end()) {
                Ok(path) => undoing.complete(with_its_past(path, library.as_ref()), &mut Stamps::system()),
                Err(error) => return Done::Wrote { appended: Err(error), path: None, what: Box::new(what) },
            };
            let lines: Vec<String> = entries.iter().map(|entry| entry.line().to_owned()).collect();
            let appended = log.append(&lines, leaf.as_ref());
            if let Write::Edit { staged, .. } = &mut what {
                staged.entries = entries;
            }
            Done::Wrote { appended, path: Some(Ok(path)), what: Box::new(what) }
        });
    }

    /// The log is back.
    pub(super) fn back(&mut self, log: Box<dyn Log>, done: Done) {
        self.writer = Writer::Ready(log);
        self.record_running();
        match done {
            Done::Wrote { appended, path, what } => self.wrote(appended, path, *what),
            Done::Woke(path) => self.woke(path),
            Done::CaughtUp(grown) => self.caught_up(grown),
        }
        if !self.index.commands.is_empty() {
            self.start_indexing();
        }
    }

    /// A panic has lost the log: the session ends, and waiting requests are answered.
    pub(super) fn lost(&mut self) {
        self.writer = Writer::Ready(Box::new(Ephemeral));
        self.stop_running(None);
        if !matches!(self.ending, Ending::Now(_)) {
            self.ending = Ending::Now(Vec::new());
        }
    }

    fn wrote(&mut self, appended: Result<Appended, StoreError>, path: Option<Result<Path, StoreError>>, what: Write) {
        let at = match appended {
            Ok(Appended::Written { at, others }) => {
                // These entries came in between and are on branches of their own.
                self.state.change(|history| {
                    others.iter().for_each(|(entry, spot)| history.push(entry.clone(), Some(*spot)));
                });
                others.iter().for_each(|(entry, _)| self.announce(entry, None));
                self.warn_of_branch(&others);
                at
            }
            Ok(Appended::Behind(grown)) => {
                // Another program was faster. Its entries are added, and the write is tried again behind them.
                self.take_in(grown);
                return self.again(what);
            }
            Err(error) => return self.not_written(&Failure::from(error), what),
        };
        self.state.change(|history| {
            let mut offset = at;
            for entry in what.entries() {
                let spot = Spot { offset, length: entry.line().len() as u32 };
                offset += u64::from(spot.length) + 1;
                history.push(entry, Some(spot));
            }
            match path {
                None => {}
                Some(Ok(path)) => history.set_path(path),
                Some(Err(error)) => {
                    tracing::warn!(%error, "the path could not be read again");
                    history.forget_path();
                }
            }
            history.complete();
        });
        match what {
            Write::Appends(appends) => appends.into_iter().for_each(|append| self.appended(append)),
            Write::Compaction { costs, entry, mirrors, draft } => {
                self.compacted(&costs.entries, &entry, &mirrors, &draft.made, Ok(()));
            }
            Write::Costs(costs) => costs.entries.iter().for_each(|entry| self.announce(entry, None)),
            Write::Edit { edit, staged, reply } => self.edited(&*edit, staged, reply),
        }
    }

    /// Reports messages of another program that arrived while a write was on its way: both follow the same entry.
    fn warn_of_branch(&self, others: &[Placed]) {
        let messages = others.iter().filter(|(entry, _)| entry.in_context()).count();
        if let (true, Some((last, _))) = (messages > 0, others.last()) {
            let last = &last.id;
            self.warn(
                "Another program wrote to this session at the same moment",
                format!(
                    "Its {messages} messages are a branch of their own, up to entry {last}, and are not in the context. \
                     Nothing is lost. To go on from them, call session/append with parentEntryId {last}. Two programs \
                     that write to one session should take turns."
                ),
            );
        }
    }

    fn not_written(&mut self, failure: &Failure, what: Write) {
        match what {
            Write::Appends(appends) => appends.into_iter().for_each(|append| append.reply.fail(failure)),
            Write::Compaction { entry, draft, .. } => {
                self.compacted(&[], &entry, &[], &draft.made, Err(failure.clone()));
            }
            Write::Costs(_) => tracing::warn!(%failure, "costs of model requests could not be written"),
            Write::Edit { reply, .. } => reply.fail(failure),
        }
    }

    fn again(&mut self, what: Write) {
        match what {
            Write::Appends(appends) => {
                for Append { params, reply, .. } in appends.into_iter().rev() {
                    self.commands.push_front(Command::Append(params, reply));
                }
            }
            Write::Compaction { costs, draft, .. } => {
                self.costs.put_back(costs);
                self.draft_again(draft);
            }
            Write::Costs(costs) => self.costs.put_back(costs),
            Write::Edit { edit, reply, .. } => self.commands.push_front(Command::Edit(edit, reply)),
        }
    }

    fn appended(&mut self, Append { staged, reply, .. }: Append) {
        self.learn_from(&staged.entries);
        self.count();
        let usage = self.state.usage();
        reply.ok(&AppendAnswer {
            entry_ids: staged.entries.iter().filter(|entry| !entry.is_marker()).map(|entry| entry.id.clone()).collect(),
            leaf_entry_id: self.state.visible_leaf(),
            usage: usage.clone(),
            next: Next::None,
        });
        for entry in &staged.entries {
            self.announce(entry, None);
        }
        self.tell_usage(usage);
    }

    /// The error of a failed answer may state the model's window.
    fn learn_from(&self, entries: &[Arc<Entry>]) {
        if !self.state.settings().settings.tokens.learn_window {
            return;
        }
        for entry in entries.iter().filter(|entry| entry.outline().is_some_and(|outline| outline.failed)) {
            let Some(failed) = append::failed_answer(entry) else { continue };
            let Meaning::Overflow(Overflow { limit: Some(window), .. }) = overflow::meaning(None, &failed.error) else {
                continue;
            };
            let model = failed.model.or_else(|| self.state.model(self.state.path()));
            if let Some(model) = model {
                self.idle.access().windows.learn(&model, window);
            }
        }
    }

    /// Makes the entries of a request and writes them. A request without entries is answered immediately.
    pub(super) fn edit(&mut self, edit: Box<dyn Edit>, reply: Reply) {
        if reply.cancelled() {
            return reply.fail(&Failure::Cancelled);
        }
        let busy = || if edit.rewrites_context() { self.free() } else { Ok(()) };
        if let Err(failure) = self.writable().and_then(|()| busy()) {
            return reply.fail(&failure);
        }
        match edit.stage(&self.state) {
            Ok(staged) if staged.entries.is_empty() => self.edited(&*edit, staged, reply),
            Ok(staged) => self.write(Write::Edit { edit, staged, reply }),
            Err(edit::NotStaged::NeedsIndex) => self.await_index(Command::Edit(edit, reply)),
            Err(edit::NotStaged::Failed(failure)) => reply.fail(&failure),
        }
    }

    /// Answers a request whose entries are on disk, and sends its events.
    fn edited(&mut self, edit: &dyn Edit, staged: edit::Staged, reply: Reply) {
        if staged.stores_model() {
            self.state.stored_model();
        }
        if staged.stores_data() {
            self.state.stored_data();
        }
        self.count();
        edit.answer(self, &staged, reply);
        for entry in &staged.entries {
            self.announce(entry, None);
        }
        if !staged.entries.is_empty()
            && let Some(event) = edit.event(&self.state, &staged)
        {
            self.emitter.emit(About::default(), &event);
        }
        self.tell_usage(self.state.usage());
    }

    pub(super) fn announce(&self, entry: &Entry, operation: Option<OperationId>) {
        let whole = transport::escaped_len(entry.line()) <= LARGEST_ANNOUNCED;
        let event = Event::EntryAppended {
            entry: whole.then(|| entries::wire(entry)),
            entry_type: (!whole).then(|| entry.kind.clone()),
        };
        self.emitter.emit(About { entry: Some(entry.id.clone()), operation }, &event);
    }
}
