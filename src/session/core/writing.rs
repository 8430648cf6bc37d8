//! Writes of a session: to the disk, and announced afterwards.

use super::{
    command::Command,
    edit::{self, Edit},
};
use crate::{
    conversation::{entry::Entry, mirroring, path::Path},
    ids::OperationId,
    log::{Access, Appended, Placed, error::StoreError, history::History},
    protocol::{errors::Failure, events::Event, notices::NoticeCode, types::AppendAnswer},
    session::{
        core::{
            Append, Core, LogState, Starts, Unanswered, Write,
            background::IndexBuild,
            commands::entries,
            work::{TransferPhase, Work},
        },
        effects::Ticket,
        fault::{Fault, planted},
        jobs::{IndexBuilt, defect},
        log_work::{AppendWork, Fetch, Fetched, LogDone, LogFacts, LogWork, UndoWork, placed},
        operations::{Asked, End},
    },
    wire::{outbox::About, transport},
};
use std::sync::Arc;

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
            Self::AfterTurn { entry, .. } => vec![entry.clone()],
            Self::Transfer(delivery) => delivery.entries(),
            Self::Relief(staged, _)
            | Self::Removal(staged)
            | Self::Recovery { staged, .. }
            | Self::Edit { staged, .. } => staged.entries.clone(),
        }
    }
}

impl Core {
    /// Adds the lines that other programs lack: texts since a compaction between a call and its result, edits of results
    /// without a call, and all that a torn write or another program's form left out. Entries on another branch get none,
    /// because these lines belong to the current path.
    pub(super) fn add_lines_for_others(&mut self, appends: &mut [Append]) {
        let (path, prompts) = (self.state.path(), &self.state.settings().prompts);
        let staged: Vec<Arc<Entry>> = appends.iter().flat_map(|append| append.staged.entries.clone()).collect();
        if !path.continues_with_all(&staged) || !mirroring::may_be_needed(path, &staged, prompts) {
            return;
        }
        let mirrors = mirroring::with_mirrors(path, &staged, prompts, &mut self.stamps);
        if let Some(last) = appends.last_mut() {
            last.staged.entries.extend(mirrors);
        }
    }

    /// Writes entries. The result comes back as an input.
    pub(super) fn write(&mut self, mut write: Write) {
        let work = match &mut write {
            Write::Edit { staged, .. } if staged.undoing.is_some() => self.undo_work(staged),
            write => self.append_work(write),
        };
        if planted(Fault::AnnouncedBeforeWrite) {
            write.entries().iter().for_each(|entry| self.announce(entry, None));
        }
        self.log_out(work, |log| LogState::Writing(log, write));
    }

    fn append_work(&self, write: &Write) -> LogWork {
        let entries = write.entries();
        LogWork::Append(AppendWork {
            leaf: self.state.path().last().map(|leaf| leaf.id.clone()),
            continues: self.state.path().continues_with_all(&entries),
            source: self.state.history().source().cloned(),
            library: self.state.history().library(),
            count: self.state.counts_with(),
            entries,
        })
    }

    /// An undo. Its entries depend on the path without the compaction, which is read first.
    fn undo_work(&mut self, staged: &mut edit::Staged) -> LogWork {
        let Some(undoing) = staged.undoing.take() else { unreachable!("an undo is staged") };
        LogWork::Undo(Box::new(UndoWork {
            undoing: *undoing,
            leaf: self.state.path().last().map(|leaf| leaf.id.clone()),
            reader: self.state.history().reader(),
            library: self.state.history().library(),
            stamps: self.stamps.fork(),
        }))
    }

    /// The log is back.
    pub(super) fn log_is_back(&mut self, done: Option<LogDone>, facts: LogFacts) {
        let (write, fetching) = match std::mem::replace(&mut self.log, LogState::Ready(facts)) {
            LogState::Writing(_, write) => (Some(write), None),
            LogState::Fetching(_, command, ticket) => (None, Some((command, ticket))),
            LogState::Reading(_) | LogState::Ready(_) | LogState::Counting(..) => (None, None),
        };
        // The lock of a lost log still takes the record.
        self.record_running();
        let Some(done) = done else {
            self.log_is_lost();
            // An answer has named it: it has a start and an end.
            if let Some(Write::Recovery { due, .. }) = write {
                self.recover(due, Err(defect()));
            }
            return;
        };
        match (done, write, fetching) {
            (LogDone::Wrote { appended, path, undone }, Some(write), None) => self.wrote(appended, path, undone, write),
            (LogDone::Woke(path), None, None) => self.woke(path),
            (LogDone::CaughtUp(grown), None, None) => self.caught_up(grown),
            (LogDone::Indexed(result), None, None) => {
                self.indexed(result.map_or_else(IndexBuilt::Failed, IndexBuilt::Made));
            }
            (LogDone::Fetched(fetched), None, Some((command, ticket))) => self.fetched(fetched, command, ticket),
            // A cancel has taken the command.
            (LogDone::Fetched(_), None, None) => {}
            _ => tracing::error!("a result of the log belongs to no work"),
        }
        self.continue_indexing();
    }

    /// A panic has lost the log: the session ends, and waiting requests are answered. Nothing can be written any more.
    fn log_is_lost(&mut self) {
        if let LogState::Ready(facts) = &mut self.log {
            facts.access = Access::Read;
        }
        match self.work.take() {
            Work::Committing(operation) | Work::Transfer(operation, TransferPhase::Writing { .. }) => {
                self.finish(operation, End::Failed(defect()));
            }
            other => self.work = other,
        }
        self.stop_running(None);
        self.begun_is_lost();
        // Ends that were sent while the log was out are not in the record.
        self.record_running();
        if !planted(Fault::LostLogGoesOn) {
            self.end_now();
        }
        if let Some(indexed) = self.index.build.take_made() {
            self.indexed(IndexBuilt::Made(indexed));
        } else if matches!(self.index.build, IndexBuild::Rest) {
            self.indexed(IndexBuilt::Lost);
        }
    }

    fn wrote(
        &mut self,
        appended: Result<Appended, StoreError>,
        path: Option<Result<Path, StoreError>>,
        undone: Option<Vec<Arc<Entry>>>,
        mut write: Write,
    ) {
        if let (Write::Edit { staged, .. }, Some(undone)) = (&mut write, undone) {
            staged.entries = undone;
        }
        let at = match appended {
            Ok(Appended::Written { at, others }) => {
                // These entries came in between and are on branches of their own.
                self.state.change(|history| {
                    others.iter().for_each(|placed| history.push(placed.clone()));
                });
                others.iter().for_each(|placed| self.announce(&placed.entry, None));
                self.warn_of_branch(&others);
                at
            }
            Ok(Appended::Behind(grown)) => {
                // Another program was faster. Its entries are added, and the write is tried again behind them.
                self.take_in(grown);
                return self.again(write);
            }
            Err(error) => return self.not_written(&Failure::from(error), write),
        };
        let is_moved = matches!(path, Some(Ok(_)));
        self.state.change(|history| {
            for placed in placed(&write.entries(), at) {
                if !planted(Fault::ForgottenEntry) || placed.entry.is_marker() {
                    history.push(placed);
                }
            }
            match path {
                None => {}
                Some(Ok(path)) => history.set_path(path),
                Some(Err(error)) => {
                    tracing::warn!(%error, "the path could not be read again");
                    history.forget_path();
                }
            }
            history.complete_in_memory();
        });
        if is_moved {
            self.delayed_is_elsewhere();
        }
        match write {
            Write::Appends(mut appends) => {
                if planted(Fault::AppendsReversed) {
                    appends.reverse();
                }
                self.appended(appends);
            }
            Write::Compaction { costs, entry, mirrors, draft } => {
                self.compacted(&costs.entries, &entry, &mirrors, &draft, Ok(()));
            }
            Write::Costs(costs) => costs.entries.iter().for_each(|entry| self.announce(entry, None)),
            Write::AfterTurn { entry, asker } => self.delayed_is_written(&entry, asker),
            Write::Transfer(delivery) => self.delivered(*delivery, Ok(())),
            Write::Relief(staged, event) => self.relieved(&staged, event),
            Write::Recovery { staged, due } => self.recover(due, Ok(staged)),
            Write::Removal(staged) => self.removed(&staged),
            Write::Edit { edit, staged, ticket } => self.edited(edit, staged, ticket),
        }
    }

    /// Reports messages of another program that arrived while a write was on its way: both follow the same entry.
    fn warn_of_branch(&self, others: &[Placed]) {
        let messages = others.iter().filter(|placed| placed.entry.in_context()).count();
        if let (true, Some(last)) = (messages > 0, others.last()) {
            let last = &last.entry.id;
            self.warn(
                NoticeCode::SessionBranched,
                "Another program wrote to this session at the same moment",
                format!(
                    "Its {messages} messages are a branch of their own, up to entry {last}, and are not in the context. \
                     Nothing is lost. To go on from them, call session/append with parentEntryId {last}. Two programs \
                     that write to one session should take turns."
                ),
            );
        }
    }

    fn not_written(&mut self, failure: &Failure, write: Write) {
        match write {
            Write::Appends(appends) => appends.into_iter().for_each(|append| append.ticket.fail(failure)),
            Write::Compaction { entry, draft, .. } => {
                self.compacted(&[], &entry, &[], &draft, Err(failure.clone()));
            }
            Write::Costs(costs) if costs.len() == 0 => {
                tracing::warn!(%failure, "the failure of a summary ahead could not be recorded");
            }
            Write::Costs(costs) => self.warn(
                NoticeCode::CostsNotRecorded,
                "The costs of model requests could not be recorded",
                format!("{failure}. session/usage lacks {} of them.", costs.len()),
            ),
            Write::AfterTurn { asker, .. } => self.delayed_is_not_written(failure, asker),
            Write::Transfer(delivery) => self.delivered(*delivery, Err(failure.clone())),
            Write::Relief(..) => {
                let title = "The context could not be made smaller";
                self.warn(NoticeCode::ContextNotReduced, title, failure.to_string());
                // Another try would fail, too, and the requests would start one after the other.
                self.held_start(Starts::Nothing);
                self.answer_held();
            }
            Write::Recovery { due, .. } => self.recover(due, Err(failure.clone())),
            Write::Removal(_) => {
                let title = "A failed answer could not be removed from the context";
                self.warn(NoticeCode::FailedAnswerKept, title, failure.to_string());
                self.answer_held();
            }
            Write::Edit { ticket, .. } => ticket.fail(failure),
        }
    }

    fn again(&mut self, write: Write) {
        match write {
            Write::Appends(appends) => {
                for Append { params, ticket, .. } in appends.into_iter().rev() {
                    self.queue.put_back(Command::Append(params), ticket);
                }
            }
            Write::Compaction { costs, draft, .. } => {
                self.costs.put_back(costs);
                self.draft_again(draft);
            }
            Write::Costs(costs) => self.costs.put_back(costs),
            Write::AfterTurn { asker, .. } => self.write_delayed_for(asker),
            Write::Transfer(delivery) => self.deliver_again(*delivery),
            // The context is measured again.
            Write::Relief(..) | Write::Removal(_) => self.answer_held(),
            Write::Recovery { due, .. } => self.write_recovery(due),
            Write::Edit { edit, ticket, .. } => self.queue.put_back(Command::Edit(edit), ticket),
        }
    }

    /// Appends are on disk. Where a compaction seems to be due, the decision waits for counts.
    fn appended(&mut self, appends: Vec<Append>) {
        for append in &appends {
            self.learn_from(&append.staged.entries);
        }
        self.count();
        if self.seems_due()
            && let LogState::Ready(facts) = self.log
        {
            self.log = LogState::Counting(facts, Unanswered::Appends(appends));
            return;
        }
        self.answer_appends(appends);
    }

    /// Answers appends that are on disk, announces their entries, and starts the maintenance that is due.
    pub(super) fn answer_appends(&mut self, appends: Vec<Append>) {
        self.has_changed();
        let remark = self.heed_report(&appends);
        let model = appends.first().and_then(|append| append.model.clone());
        let due = self.due_after(&appends);
        let newest = appends.last().and_then(|append| append.staged.entries.last().cloned());
        let usage = self.state.usage();
        let last = appends.len().saturating_sub(1);
        for (at, Append { staged, ticket, .. }) in appends.into_iter().enumerate() {
            if planted(Fault::EventBeforeAnswer) {
                staged.entries.iter().for_each(|entry| self.announce(entry, None));
            }
            let visible = staged.entries.iter().filter(|entry| !entry.is_marker());
            ticket.ok(&AppendAnswer {
                entry_ids: visible.map(|entry| entry.id.clone()).collect(),
                leaf_entry_id: self.state.visible_leaf(),
                usage: usage.clone(),
                next: self.next(due.as_ref().filter(|_| at == last)),
            });
            for entry in staged.entries.iter().skip(usize::from(planted(Fault::NotAnnounced))) {
                self.announce(entry, None);
            }
        }
        if !planted(Fault::UsageNotSent) {
            self.send_usage(usage.clone());
        }
        self.tell_of_model(model);
        if let Some(newest) = newest {
            self.tell_of(&newest);
        }
        if let Some((code, title, detail)) = remark {
            self.warn(code, title, detail);
        }
        self.tell_of_window();
        match due {
            None => self.look_ahead(&usage),
            due => self.start_due(due),
        }
    }

    /// Reads the entries that a command needs. The command is handled again behind the read, before all others.
    pub(super) fn fetch(&mut self, fetch: Fetch, command: Command, ticket: Ticket) {
        self.log_out(LogWork::Fetch(fetch), |log| LogState::Fetching(log, command, ticket));
    }

    fn fetched(&mut self, fetched: Result<Fetched, StoreError>, command: Command, ticket: Ticket) {
        match fetched {
            Ok(fetched) => {
                self.state.fetched = Some(fetched);
                self.queue.put_back(command, ticket);
            }
            Err(error) => ticket.fail(&error.into()),
        }
    }

    /// Makes the entries of a request and writes them. A request without entries is answered immediately.
    pub(super) fn edit(&mut self, edit: Box<dyn Edit>, ticket: Ticket) {
        if ticket.cancelled() && !planted(Fault::CancelledEditWritten) {
            return ticket.fail(&Failure::Cancelled);
        }
        let busy = || if edit.rewrites_context() { self.free() } else { Ok(()) };
        if let Err(failure) = self.writable().and_then(|()| busy()) {
            return ticket.fail(&failure);
        }
        match edit.stage(&self.state, &mut self.stamps) {
            Ok(staged) if staged.entries.is_empty() => self.edited(edit, staged, ticket),
            Ok(staged) => self.write(Write::Edit { edit, staged, ticket }),
            Err(edit::NotStaged::NeedsIndex) => self.await_index(Command::Edit(edit), ticket),
            Err(edit::NotStaged::NeedsEntries(fetch)) => self.fetch(fetch, Command::Edit(edit), ticket),
            Err(edit::NotStaged::Failed(failure)) => ticket.fail(&failure),
        }
    }

    /// The entries of a request are on disk. Where a compaction seems to be due, the answer waits for counts.
    fn edited(&mut self, edit: Box<dyn Edit>, staged: edit::Staged, ticket: Ticket) {
        if staged.stores_model() {
            self.state.stored_model();
        }
        if staged.stores_data() {
            self.state.stored_data();
        }
        if staged.clears() {
            self.state.change(History::trim);
        }
        self.note_switch(&staged);
        self.count();
        if self.upkeep.switched.is_some()
            && self.seems_too_large()
            && let LogState::Ready(facts) = self.log
        {
            self.log = LogState::Counting(facts, Unanswered::Edit { edit, staged: Box::new(staged), ticket });
            return;
        }
        self.answer_edit(&*edit, staged, ticket);
    }

    /// Answers a request whose entries are on disk, sends its events, and starts the maintenance that is due.
    pub(super) fn answer_edit(&mut self, edit: &dyn Edit, mut staged: edit::Staged, ticket: Ticket) {
        self.forget_failed_recovery();
        if !staged.entries.is_empty() {
            self.has_changed();
        }
        // Only the answer of a change of the model names what follows.
        let is_named = staged.before.is_some() && !ticket.in_batch();
        let due = self.due_after_edit(if is_named { Asked::Introduced } else { Asked::Unasked });
        staged.next = self.next(due.as_ref());
        match edit.answer(self, &staged) {
            _ if planted(Fault::NeverAnswered) => std::mem::forget(ticket),
            answer => ticket.answer(answer),
        }
        for entry in &staged.entries {
            self.announce(entry, None);
        }
        if !staged.entries.is_empty()
            && let Some(event) = edit.event(&self.state, &staged)
        {
            self.emit(About::default(), event);
        }
        self.send_usage(self.state.usage());
        self.tell_of_window();
        if staged.clears() {
            self.delayed_gives_way();
        }
        self.start_due(due);
    }

    pub(super) fn announce(&self, entry: &Entry, operation: Option<OperationId>) {
        let whole = transport::escaped_len(entry.line()) <= LARGEST_ANNOUNCED;
        let event = Event::EntryAppended {
            entry: whole.then(|| entries::wire(entry)),
            entry_type: (!whole).then(|| entry.kind.clone()),
        };
        self.emit(About { entry: Some(entry.id.clone()), operation }, event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        models::ModelRef,
        protocol::{SessionConfigure, SessionContext, SessionEntry, types::Outcome},
        session::{
            core::{
                Input, Over,
                held::{Held, answer, cost, draft, job, line, log_work, message, messages, outcomes, written},
            },
            effects::Effect,
            jobs::Job,
            state::SessionData,
        },
        settings::{Layers, layers::Source},
    };
    use serde_json::{Value, json};

    #[test]
    fn a_compaction_whose_log_is_lost_has_its_end() {
        let mut held = Held::new();
        let order = held.begin_draft(1);
        held.feed(Input::Drafted(order.id.clone(), Ok(draft(order))));
        let written = held.turn();
        assert!(written.iter().any(|effect| matches!(effect, Effect::Log(LogWork::Append(_)))));
        let effects = held.lose_log();
        assert_eq!(outcomes(&effects), [Outcome::Failed]);
        assert!(answer(&effects, 1).is_some(), "the request is answered");
        assert_eq!(held.core.over(), Over::Yes);
    }

    #[test]
    fn a_failed_read_fails_the_command_that_needs_it_and_no_other() {
        let mut held = Held::new();
        held.append_with(1, json!({"parentEntryId": "branch"}));
        held.compact(2);
        held.append(3);
        let read = held.turn();
        assert!(read.iter().any(|effect| matches!(effect, Effect::Log(LogWork::Fetch(_)))));
        held.cancel(4);
        let error = StoreError::Changed { path: "/held".into(), what: "it was cut".to_owned() };
        let facts = held.facts();
        let effects = held.feed(Input::Log(Some(LogDone::Fetched(Err(error))), facts));
        assert!(answer(&effects, 1).is_some_and(|it| it.is_string()), "the append fails");
        assert_eq!(answer(&effects, 2), None);
        let effects = held.turn();
        assert_eq!(outcomes(&effects), [Outcome::Cancelled]);
        assert_eq!(answer(&effects, 3), None, "it waits for its write");
        assert!(held.turn().iter().any(|effect| matches!(effect, Effect::Log(LogWork::Append(_)))));
    }

    #[test]
    fn an_end_during_a_write_is_recorded_behind_it() {
        let mut held = Held::new();
        held.begin_draft(1);
        held.append(2);
        let work = log_work(held.turn()).expect("a write");
        let cancelled = held.cancel(3);
        assert_eq!(outcomes(&cancelled), [Outcome::Cancelled]);
        let records = |effects: &[Effect]| -> Vec<usize> {
            let record = |effect: &Effect| match effect {
                Effect::Record(operations) => Some(operations.len()),
                _ => None,
            };
            effects.iter().filter_map(record).collect()
        };
        assert!(records(&cancelled).is_empty(), "the lock is with the writer");
        assert_eq!(records(&held.back(work)), [0]);
    }

    #[test]
    fn costs_whose_write_has_to_be_repeated_are_written() {
        let mut held = Held::new();
        let order = held.begin_draft(1);
        held.feed(Input::Reported(order.id, cost()));
        held.cancel(2);
        let work = log_work(held.turn()).expect("a write");
        held.disk.append_as_another(&message("other", Some("e39"))).expect("an entry");
        held.back(work);
        let work = log_work(held.turn());
        assert_eq!(written(work.as_ref()), ["usage"]);
        held.back(work.expect("a write"));
        assert!(held.core.load().is_empty());
    }

    #[test]
    fn a_context_that_needs_the_index_during_a_write_has_it_built_behind_the_write() {
        let mut held = Held::indexed_below(0);
        held.begin_draft(1);
        held.call::<SessionContext>(2, json!({"leafEntryId": "branch", "wait": true}));
        held.turn();
        held.append(3);
        let work = log_work(held.turn()).expect("a write");
        assert!(answer(&held.cancel(4), 2).is_none());
        assert!(matches!(job(held.back(work)), Job::Index(..)));
    }

    #[test]
    fn entries_that_arrived_right_before_a_write_are_known() {
        let mut held = Held::new();
        held.append(1);
        let work = log_work(held.turn()).expect("a write");
        held.disk.race(format!("{}\n", message("raced", Some("e39"))).as_bytes());
        held.back(work);
        held.call::<SessionEntry>(2, json!({"entryId": "raced"}));
        assert!(held.turn().iter().any(|effect| matches!(effect, Effect::Read(2, _))));
    }

    #[test]
    fn a_context_waits_for_one_pruning_that_cannot_be_written_and_for_no_second_one() {
        let call = json!([{"type": "toolCall", "id": "c", "name": "bash", "arguments": {}}]);
        let says =
            |id: &str, parent: &str, message: Value| line(id, Some(parent), "message", json!({"message": message}));
        let mut lines = messages();
        lines.extend([
            says("f0", "e39", json!({"role": "assistant", "content": call, "stopReason": "toolUse", "timestamp": 1})),
            says(
                "f1",
                "f0",
                json!({"role": "toolResult", "toolCallId": "c", "toolName": "bash", "timestamp": 1,
                "content": [{"type": "text", "text": "word ".repeat(16_000)}], "isError": false}),
            ),
            says("f2", "f1", json!({"role": "assistant", "content": [], "stopReason": "stop", "timestamp": 1})),
            says("f3", "f2", json!({"role": "user", "content": "Go on.", "timestamp": 1})),
        ]);
        let mut held = Held::of(&lines, u64::MAX);
        let settings = json!({"tokens": {"estimator": "chars"}, "defaultModel": "p/m",
            "prune": {"protectTokens": 0, "minimumSavings": 0},
            "models": [{"provider": "p", "id": "m", "contextWindow": 16_000}]});
        held.feed(Input::Layers(Layers::of(vec![(Source::Global, settings)])));
        held.call::<SessionContext>(1, json!({"wait": true}));
        let work = log_work(held.turn()).expect("a pruning");
        assert_eq!(written(Some(&work)), ["context_edit"]);
        held.disk.fill();
        let effects = held.back(work);
        assert_eq!(answer(&effects, 1), Some(json!("context_overflow")));
        assert!(log_work(effects).is_none() && log_work(held.turn()).is_none());
    }

    #[test]
    fn values_that_are_stored_replace_those_that_the_client_gave() {
        let model = |name: &str| ModelRef { provider: "a".to_owned(), id: name.to_owned() };
        let given = SessionData { system_prompt: Some("be kind".to_owned()), ..SessionData::default() };
        let mut held = Held::given(given, model("given"));
        held.edit::<SessionConfigure>(1, json!({"model": model("stored"), "systemPrompt": "be brief"}));
        let work = log_work(held.turn()).expect("a write");
        held.back(work);
        let state = held.core.state();
        assert_eq!(state.model(state.path()), Some(model("stored")));
        assert_eq!(state.data().system_prompt.as_deref(), Some("be brief"));
    }

    #[test]
    fn texts_that_other_programs_lack_are_written_on_the_path_alone() {
        let pin = line("p1", Some("e39"), "custom", json!({"customType": "abridged.pin", "data": {"entryId": "e2"}}));
        let fields = json!({"summary": "A parser was mended.", "firstKeptEntryId": "e30", "tokensBefore": 100});
        let compaction = line("c1", Some("p1"), "compaction", fields);
        let lines: Vec<String> = messages().into_iter().chain([pin, compaction]).collect();
        let appended = |params| {
            let mut held = Held::of(&lines, u64::MAX);
            held.append_with(1, params);
            let work = log_work(held.turn()).expect("a write");
            match work {
                LogWork::Fetch(_) => {
                    held.back(work);
                    written(log_work(held.turn()).as_ref())
                }
                work => written(Some(&work)),
            }
        };
        assert_eq!(appended(json!({})), ["message", "custom_message"]);
        assert_eq!(appended(json!({"parentEntryId": "branch"})), ["message"]);
    }
}
