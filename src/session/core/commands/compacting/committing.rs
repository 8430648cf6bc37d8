//! The write of a compaction: a draft becomes one entry, with the lines that other programs need.

use crate::{
    compaction::{draft::Draft, meter},
    conversation::{
        entry::{Body, Entry},
        mirroring,
    },
    ids::EntryId,
    log::history::History,
    protocol::{
        errors::Failure,
        events::{Event, Stage},
    },
    session::{
        core::{
            Core,
            commands::{compacting::result::sent, notices},
            costs::CostEntries,
            parts::log_gate::Write,
            standing::Standing,
            work::Work,
        },
        fault::{Fault, planted},
        jobs::defect,
        kind::Product,
        operation::Operation,
        operations::End,
    },
    text::values,
};
use std::sync::Arc;

/// The failure of a compaction that could not be read again.
fn carries_too_much() -> Failure {
    let what = format!(
        "pins, tools and settings that the compaction would carry have more than {} values and keys; take some of them out",
        values::MOST
    );
    Failure::params("", what)
}

/// The entries of a compaction.
struct CompactionWrite {
    costs: CostEntries,
    entry: Arc<Entry>,
    /// Entries with which other programs read the data that the compaction carries, and the one about the compaction after
    /// the turn.
    mirrors: Vec<Arc<Entry>>,
    draft: Box<Draft>,
}

impl Write for CompactionWrite {
    fn entries(&self) -> Vec<Arc<Entry>> {
        self.costs.entries.iter().chain([&self.entry]).chain(&self.mirrors).cloned().collect()
    }

    fn written(self: Box<Self>, core: &mut Core) {
        core.compacted(&self);
    }

    fn not_written(self: Box<Self>, core: &mut Core, failure: &Failure) {
        if let Some(operation) = core.work.take_committing() {
            core.finish(operation, End::Failed(failure.clone()));
        }
    }

    /// The draft is checked again before the next try.
    fn again(self: Box<Self>, core: &mut Core) {
        core.costs.put_back(self.costs);
        if let Some(operation) = core.work.take_committing() {
            operation.commits_no_more();
            core.work = Work::Drafted(operation, self.draft);
        }
    }
}

impl Core {
    /// Writes a draft, if the entries that it covers did not change.
    pub(in crate::session::core) fn commit(&mut self, operation: Operation, draft: Draft) {
        if operation.is_stopped() {
            return self.finish(operation, End::Cancelled);
        }
        let path = self.state.path();
        let covered = draft.plan.path();
        let cleared = |entry: &Arc<Entry>| matches!(entry.body, Body::ResetBoundary(_));
        let grew = path.grew_from(covered) && !path[covered.len()..].iter().any(cleared);
        if !(grew || planted(Fault::ChangedPathCovered) && path.len() >= covered.len()) {
            let leaf = self.state.visible_leaf();
            return self.finish(operation, End::Failed(Failure::ContentModified { leaf }));
        }
        operation.progress(Stage::Writing, 0, 1);
        let stamp = self.stamps.stamp();
        // Entries that came after the plan are kept as they are.
        let newer = &path[covered.len()..];
        let scale = draft.plan.demand.scale;
        let newer_tokens: u64 = newer.iter().map(|entry| meter::sent(entry, scale.estimator())).sum();
        let mut draft = match newer {
            [] => draft,
            // They may be reports, or announce other instructions.
            _ => {
                let meter = self.state.meter(scale.estimator());
                let budget = self.state.measure_with(&meter).budget;
                draft.with_overhead(budget, meter.calibrations().carried())
            }
        };
        let tokens_after = draft.tokens_after + scale.size(newer_tokens);
        let first_newer: Option<&EntryId> = newer.iter().find(|entry| entry.in_context()).map(|entry| &entry.id);
        let (path, first_newer) = (path.clone(), first_newer.cloned());
        if self.upkeep.moves.as_ref() == Some(&operation.id) {
            return self.found(operation, &draft, first_newer.as_ref(), tokens_after);
        }
        let costs = self.costs.take(&self.state, &mut self.stamps);
        let parent = costs.entries.last().or_else(|| path.last()).map(|leaf| &leaf.id);
        draft.summary_times = self.upkeep.ahead.summary_times();
        let spent = self.costs.carried(
            &costs,
            self.upkeep.ahead.unused_by_wall(&Standing::of(self).facts()),
            &Standing::of(self).facts(),
        );
        let line = draft.line(&stamp, parent, &path, first_newer.as_ref(), tokens_after, spent);
        match Entry::parse(line.into()) {
            Ok(entry) if entry.is_too_large() => self.finish(operation, End::Failed(carries_too_much())),
            Ok(entry) => {
                operation.commits();
                self.work = Work::Committing(operation);
                let entry = Arc::new(entry);
                let written = [costs.entries.as_slice(), std::slice::from_ref(&entry)].concat();
                let mut mirrors = mirroring::with_mirrors(&path, &written, &draft.plan.prompts, &mut self.stamps);
                let parent = mirrors.last().unwrap_or(&entry).id.clone();
                mirrors.extend(self.upkeep.after_turn.entry_again(&parent, &mut self.stamps));
                self.write(Box::new(CompactionWrite { costs, entry, mirrors, draft: Box::new(draft) }));
            }
            Err(error) => self.finish(operation, End::Failed(Failure::Internal(error.to_string()))),
        }
    }

    /// The compaction is on disk.
    fn compacted(&mut self, write: &CompactionWrite) {
        let CompactionWrite { entry, draft, .. } = write;
        let Some(operation) = self.work.take_committing() else { return };
        operation.progress(Stage::Writing, 1, 1);
        let made = &draft.origin();
        self.costs.lacked(made.unaffordable);
        self.state.change(History::trim);
        for entry in write.entries() {
            self.effects.announce(&entry, Some(operation.id.clone()));
        }
        self.sent_usage = self.state.usage();
        operation.emit(Event::UsageUpdated { usage: self.sent_usage.clone() });
        let end = match sent(entry, made, &draft.shortened) {
            Some(result) => End::Completed(Product::Compaction(result)),
            None => End::Failed(defect()),
        };
        self.finish_with(operation, end, notices::of_shortened(&draft.shortened));
    }
}
