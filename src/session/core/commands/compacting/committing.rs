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
            base::Base,
            commands::{compacting::result::sent, founding, notices},
            costs::CostEntries,
            step::{Ended, Step, Write},
            turns::prompts::Prompts,
            upkeep::Upkeep,
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

    fn written(self: Box<Self>, base: &mut Base) -> Vec<Step> {
        let Some(mut operation) = base.work.take_committing() else { return Vec::new() };
        operation.progress(Stage::Writing, 1, 1);
        let made = &self.draft.origin();
        base.costs.lacked(made.unaffordable);
        base.state.change(History::trim);
        for entry in self.entries() {
            base.effects.announce(&entry, Some(operation.id.clone()));
        }
        base.sent_usage = base.state.usage();
        operation.emit(Event::UsageUpdated { usage: base.sent_usage.clone() });
        let end = match sent(&self.entry, &self.draft) {
            Some(result) => End::Completed(Product::Compaction(result)),
            None => End::Failed(defect()),
        };
        vec![Step::End(Ended { operation, end, notice: notices::of_shortened(&self.draft.shortened) })]
    }

    fn not_written(self: Box<Self>, base: &mut Base, failure: &Failure) -> Vec<Step> {
        let operation = base.work.take_committing();
        operation.map(|operation| Step::end(operation, End::Failed(failure.clone()))).into_iter().collect()
    }

    /// The draft is checked again before the next try.
    fn again(self: Box<Self>, base: &mut Base) -> Vec<Step> {
        base.costs.put_back(self.costs);
        if let Some(operation) = base.work.take_committing() {
            operation.commits_no_more();
            base.work = Work::Drafted(operation, self.draft);
        }
        Vec::new()
    }
}

/// Writes a draft, if the entries that it covers did not change.
pub(in crate::session::core) fn commit(
    base: &mut Base,
    upkeep: &mut Upkeep,
    prompts: &Prompts,
    mut operation: Operation,
    draft: Draft,
) -> Option<Step> {
    if operation.is_stopped() {
        return Some(Step::end(operation, End::Cancelled));
    }
    let path = base.state.path();
    let covered = draft.plan.path();
    let cleared = |entry: &Arc<Entry>| matches!(entry.body, Body::ResetBoundary(_));
    let grew = path.grew_from(covered) && !path[covered.len()..].iter().any(cleared);
    if !(grew || planted(Fault::ChangedPathCovered) && path.len() >= covered.len()) {
        let leaf = base.state.visible_leaf();
        return Some(Step::end(operation, End::Failed(Failure::ContentModified { leaf })));
    }
    operation.progress(Stage::Writing, 0, 1);
    let stamp = base.stamps.stamp();
    // Entries that came after the plan are kept as they are.
    let newer = &path[covered.len()..];
    let scale = draft.plan.demand.scale;
    let newer_tokens: u64 = newer.iter().map(|entry| meter::sent(entry, scale.estimator())).sum();
    let mut draft = match newer {
        [] => draft,
        // They may be reports, or announce other instructions.
        _ => {
            let meter = base.state.meter(scale.estimator());
            let budget = base.state.measure_with(&meter).budget;
            draft.with_overhead(budget, meter.calibrations().carried())
        }
    }
    .rehydrated(newer);
    let tokens_after = draft.tokens_after + scale.size(newer_tokens);
    let first_newer: Option<&EntryId> = newer.iter().find(|entry| entry.in_context()).map(|entry| &entry.id);
    let (path, first_newer) = (path.clone(), first_newer.cloned());
    if upkeep.moves.as_ref() == Some(&operation.id) {
        return founding::found(base, operation, &draft, first_newer.as_ref(), tokens_after);
    }
    let costs = base.costs.take(&base.state, &mut base.stamps);
    let parent = costs.entries.last().or_else(|| path.last()).map(|leaf| &leaf.id);
    draft.summary_times = upkeep.ahead.summary_times();
    let spent = base.costs.carried(&costs, upkeep.ahead.unused_by_wall(&base.facts()), &base.facts());
    let line = draft.line(&stamp, parent, &path, first_newer.as_ref(), tokens_after, spent);
    Some(match Entry::parse(line.into()) {
        Ok(entry) if entry.is_too_large() => Step::end(operation, End::Failed(carries_too_much())),
        Ok(entry) => {
            operation.commits();
            base.work = Work::Committing(operation);
            let entry = Arc::new(entry);
            let written = [costs.entries.as_slice(), std::slice::from_ref(&entry)].concat();
            let mut mirrors = mirroring::with_mirrors(&path, &written, &draft.plan.prompts, &mut base.stamps);
            let parent = mirrors.last().unwrap_or(&entry).id.clone();
            mirrors.extend(upkeep.after_turn.entry_again(&parent, &mut base.stamps));
            let parent = mirrors.last().unwrap_or(&entry).id.clone();
            mirrors.extend(prompts.entry_again(&base.state.id, &parent, &mut base.stamps));
            Step::Write(Box::new(CompactionWrite { costs, entry, mirrors, draft: Box::new(draft) }))
        }
        Err(error) => Step::end(operation, End::Failed(Failure::Internal(error.to_string()))),
    })
}
