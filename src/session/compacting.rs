//! A compaction in a session: asked for, planned, drafted, written, told.

use super::{
    Input, Session, Slot, Write,
    compaction::{self, NoDraft, Planned, Snapshot},
    handle::Note,
    handle::Urgent,
    operation::{COMPACTION, End, Operation, Stop},
};
use crate::{
    entry::Entry,
    ids::{EntryId, OperationId},
    maintenance::ladder::Draft,
    protocol::{
        errors::Failure,
        events::{ChunkSource, Event, Stage},
        types::{CompactAnswer, CompactMethod, CompactParams, Initiator},
    },
    rpc::Reply,
    summary::SPLIT_TURN,
    tokens,
};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

impl Session {
    pub(super) fn compact(&mut self, params: CompactParams, reply: Reply) {
        if reply.cancelled() {
            return reply.fail(&Failure::Cancelled);
        }
        let dry_run = params.dry_run == Some(true);
        if let Err(failure) = self.may_compact(&params, dry_run) {
            return reply.fail(&failure);
        }
        let id = OperationId::fresh();
        let stop = if dry_run { self.stop_reads.clone() } else { Stop::default() };
        let snapshot = self.snapshot(&params, stop.clone());
        if dry_run {
            let settings = self.state.settings().clone();
            return self.spawn_read(move || {
                let result = guarded(|| compaction::prepare(snapshot)).map(|planned| CompactAnswer::DryRun {
                    preparation: compaction::preparation(&planned.plan, &settings.settings),
                });
                reply.with(result);
            });
        }
        let urgent = self.urgent.clone();
        reply.on_cancel(move || drop(urgent.send(Box::new(Urgent::TakenBack))));
        self.slot = Slot::Planning { id: id.clone(), params, reply, stop };
        self.spawn(move || Input::Planned { id, result: guarded(|| compaction::prepare(snapshot)) });
    }

    fn may_compact(&self, params: &CompactParams, dry_run: bool) -> Result<(), Failure> {
        if params.method == Some(CompactMethod::Llm) {
            let what = "no model can be asked for summaries yet; leave `method` out or say \"extractive\"";
            return Err(Failure::params("method", what));
        }
        if let Some(expected) = &params.expected_leaf_id
            && !self.state.unchanged_since(expected)
        {
            return Err(Failure::ContentModified { leaf: self.state.visible_leaf() });
        }
        if dry_run {
            return Ok(());
        }
        self.writable()?;
        self.free()
    }

    fn free(&self) -> Result<(), Failure> {
        match &self.slot {
            Slot::Free => Ok(()),
            Slot::Planning { id, .. } => Err(Failure::Busy { operation_id: id.clone(), kind: COMPACTION }),
            Slot::Running(operation) | Slot::Committing(operation) => {
                Err(Failure::Busy { operation_id: operation.id.clone(), kind: COMPACTION })
            }
        }
    }

    /// What changes the part that a running operation works on has to wait for its end.
    pub(super) fn free_for(&self, note: &Note) -> Result<(), Failure> {
        match note {
            Note::Undo => self.free(),
            Note::Prune(params) if params.dry_run != Some(true) => self.free(),
            _ => Ok(()),
        }
    }

    fn snapshot(&self, params: &CompactParams, stop: Stop) -> Snapshot {
        let path = self.state.path().clone();
        let model = self.state.model(&path);
        let gauge = self.state.gauge(model.as_ref());
        Snapshot {
            settings: self.state.settings().clone(),
            system_prompt: gauge.system_prompt.map(str::to_owned),
            tools: gauge.tools.map(<[_]>::to_vec),
            keep_recent_tokens: params.keep_recent_tokens,
            initiator: params.initiator.unwrap_or(Initiator::User),
            stop,
            path,
            model,
        }
    }

    pub(super) fn planned(&mut self, planned: &OperationId, result: Result<Planned, Failure>) {
        let (id, params, reply, stop) = match std::mem::replace(&mut self.slot, Slot::Free) {
            Slot::Planning { id, params, reply, stop } if id == *planned => (id, params, reply, stop),
            other => {
                self.slot = other;
                return;
            }
        };
        let Planned { plan, usage } = match result {
            Ok(planned) => planned,
            Err(failure) => {
                reply.fail(&failure);
                return self.answer_waiting();
            }
        };
        let wait = params.wait == Some(true);
        self.note_running(Some(Operation::about_to_start(&id)));
        let operation = Operation::start(id.clone(), usage, stop.clone(), reply, wait, self.emitter.clone());
        operation.progress(Stage::Summarizing, 0, 1);
        let settings = self.state.settings().clone();
        self.slot = Slot::Running(operation);
        self.spawn(move || {
            let work = || compaction::draft(plan, &settings.settings, params.instructions.as_deref(), &stop);
            let result = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(NoDraft::Failed(defect())));
            Input::Drafted { id, result }
        });
    }

    pub(super) fn drafted(&mut self, drafted: &OperationId, result: Result<Draft, NoDraft>) {
        let Slot::Running(operation) = &self.slot else {
            return;
        };
        if operation.id != *drafted {
            return;
        }
        let end = match result {
            _ if operation.stop.requested() => End::Cancelled,
            Ok(draft) => {
                operation.progress(Stage::Summarizing, 1, 1);
                tell_chunks(operation, &draft);
                operation.progress(Stage::Checking, 1, 1);
                self.draft = Some(Box::new(draft));
                return;
            }
            Err(NoDraft::Stopped) => End::Cancelled,
            Err(NoDraft::Failed(failure)) => End::Failed(failure),
        };
        if let Slot::Running(operation) = std::mem::replace(&mut self.slot, Slot::Free) {
            self.finish(operation, end);
        }
    }

    /// Writes a draft, if what it covers is still what it was.
    pub(super) fn commit(&mut self, draft: Draft) {
        let Slot::Running(operation) = std::mem::replace(&mut self.slot, Slot::Free) else {
            return;
        };
        if operation.stop.requested() {
            return self.finish(operation, End::Cancelled);
        }
        let path = self.state.path();
        let covered = draft.plan.path();
        if !path.grew_from(covered) || path.compaction() != covered.compaction() {
            let leaf = self.state.visible_leaf();
            return self.finish(operation, End::Failed(Failure::ContentModified { leaf }));
        }
        operation.progress(Stage::Writing, 0, 1);
        let id = EntryId::fresh();
        // What came meanwhile is kept as it is, behind what the draft has seen.
        let newer = &path[covered.len()..];
        let measure = self.state.measure(path);
        let newer_tokens: u64 = newer.iter().map(|entry| u64::from(entry.tokens(measure.estimator))).sum();
        let tokens_after = draft.tokens_after + tokens::scaled(newer_tokens, measure.factor);
        let first_newer: Option<&EntryId> = newer.iter().find(|entry| entry.in_context()).map(|entry| &entry.id);
        let line = draft.line(&id, path, first_newer, tokens_after);
        match Entry::parse(line.into()) {
            Ok(entry) => {
                self.slot = Slot::Committing(operation);
                self.write(Write::Compaction { entry: Arc::new(entry), draft: Box::new(draft) });
            }
            Err(error) => self.finish(operation, End::Failed(Failure::Internal(error.to_string()))),
        }
    }

    pub(super) fn compacted(&mut self, entry: &Arc<Entry>, result: Result<(), Failure>) {
        let Slot::Committing(operation) = std::mem::replace(&mut self.slot, Slot::Free) else {
            return;
        };
        if let Err(failure) = result {
            return self.finish(operation, End::Failed(failure));
        }
        operation.progress(Stage::Writing, 1, 1);
        self.state.history.trim();
        self.count();
        self.announce(entry, Some(operation.id.clone()));
        self.told = self.state.measure(self.state.path()).usage;
        operation.emit(&Event::UsageUpdated { usage: self.told.clone() });
        let end = match operation.result(entry) {
            Some(result) => End::Completed(result),
            None => End::Failed(defect()),
        };
        self.finish(operation, end);
    }

    /// The ground has grown while the draft was on its way; it is looked at again before the next try.
    pub(super) fn draft_again(&mut self, draft: Box<Draft>) {
        if let Slot::Committing(operation) = std::mem::replace(&mut self.slot, Slot::Free) {
            self.slot = Slot::Running(operation);
            self.draft = Some(draft);
        }
    }

    /// The slot is free when the end is told, so that a client can act on it at once.
    pub(super) fn finish(&mut self, operation: Operation, end: End) {
        let compactions = self.state.path().compactions();
        let notice = (matches!(end, End::Completed(_)) && compactions >= 3).then(|| {
            let detail = format!(
                "This conversation was condensed {compactions} times; each time details are lost. A new session that begins with what matters for the next goal knows more."
            );
            ("The summary of a summary of a summary", detail)
        });
        operation.finish(end, self.told.clone(), notice);
        self.note_what_runs();
        self.answer_waiting();
    }

    pub(super) fn answer_waiting(&mut self) {
        for (params, reply) in std::mem::take(&mut self.waiting) {
            self.answer_context(params, reply);
        }
    }
}

/// The pieces of a summary, its two parts apart.
fn tell_chunks(operation: &Operation, draft: &Draft) {
    let text = &draft.summary.text;
    match text.split_once(SPLIT_TURN) {
        Some((history, prefix)) => {
            operation.chunks(ChunkSource::History, history);
            operation.chunks(ChunkSource::TurnPrefix, prefix);
        }
        None if draft.plan.history().is_empty() && draft.plan.previous().is_none() => {
            operation.chunks(ChunkSource::TurnPrefix, text);
        }
        None => operation.chunks(ChunkSource::History, text),
    }
}
/// A panic in work becomes an error of that work.
fn guarded<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(defect()))
}

fn defect() -> Failure {
    Failure::Internal("a defect of abridged ended this work; nothing was changed".to_owned())
}
