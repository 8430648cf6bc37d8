//! `session/compact` with `apply: false`: the whole result, made beside the session, for a host that applies it itself.

use super::{requested_plan, result::whole};
use crate::{
    ask::{access::ModelAccess, rank::Rank},
    compaction::{draft::Draft, request::PlanRequest},
    conversation::{
        entry::{Entry, Stamp},
        path::Path,
        spending::Spending,
    },
    ids::{EntryId, OperationId},
    log::sealed::Blocking,
    protocol::{
        errors::Failure,
        types::{CompactAnswer, CompactParams, CompactionResult, Outcome, Preparation, ShownDraft},
    },
    session::{
        core::{base::Base, command::Command},
        effects::{Answer, DraftRead, Ticket},
        jobs::{self, Authors, DraftOrder, Focus, PlanMade, PlanOrder, defect},
        kind::OperationKind,
        state::View,
    },
};
use std::sync::{Arc, OnceLock};

/// Finds the path of a plan. It may read the file.
pub(super) type Planning = Box<dyn FnOnce(&Blocking) -> Result<PlanRequest, Failure> + Send>;

/// The plan of a request that writes nothing, of the session's leaf or of another one. `None` where the index is needed first.
pub(super) fn planning(base: &Base, params: &CompactParams) -> Option<Planning> {
    let request = requested_plan(base, params);
    let path = base.state.path();
    let leaf = params.leaf_entry_id.clone().filter(|leaf| base.state.visible_leaf().as_ref() != Some(leaf));
    let Some(leaf) = leaf.filter(|leaf| path.last().is_none_or(|last| last.id != *leaf)) else {
        return Some(Box::new(|_| Ok(request)));
    };
    let (library, view) = (base.state.history().library()?, base.state.view());
    Some(Box::new(move |blocking| match library.path_at(&leaf, blocking)? {
        Some(path) => Ok(at(request, view, path)),
        None => Err(Failure::no_entry(&leaf)),
    }))
}

/// The plan of another path of the session, which may have another model and other instructions.
fn at(request: PlanRequest, view: View, path: Path) -> PlanRequest {
    let view = view.of(&path);
    PlanRequest {
        model: view.model(&path),
        instructions: view.shared_instructions(),
        is_counted: false,
        path,
        ..request
    }
}

/// Answers with the plan of a compaction.
pub(super) fn plan(base: &mut Base, params: CompactParams, authors: Authors, ticket: Ticket) {
    let Some(planning) = planning(base, &params) else {
        return base.await_index(Command::Compact(params), ticket);
    };
    let (stop, focus) = (base.reads.stop.clone(), Focus::of(params));
    let read = move |access: &ModelAccess, blocking: &Blocking| {
        let stop = || stop.requested() || blocking.is_stopped();
        let planned = planning(blocking).and_then(|request| jobs::dry_run(request, &authors, &focus, access, &stop));
        Answer::from(planned.map(|plan| CompactAnswer::DryRun { preparation: Box::new(plan), draft: None }))
    };
    base.reads.start_outside(ticket, read);
}

/// Makes the result. It is cancelled with its request, or with the session.
pub(super) fn begin(base: &mut Base, params: CompactParams, authors: Authors, ticket: Ticket) {
    let Some(planning) = planning(base, &params) else {
        return base.await_index(Command::Compact(params), ticket);
    };
    let (id, stamp, stop) = (base.stamps.operation(), base.stamps.stamp(), base.reads.stop.child());
    let (settings, order_stop, order_id) = (base.state.settings().clone(), stop.clone(), id.clone());
    // A dry run shows its plan beside the draft.
    let planned = (params.dry_run == Some(true)).then(Arc::<OnceLock<Preparation>>::default);
    let shown = planned.clone();
    // The answer of a dry run names no operation.
    let events = planned.is_none().then(|| id.clone());
    let focus = Focus::of(params);
    let plan = move |access: &_, blocking: &_| {
        let (id, stop) = (order_id, order_stop);
        let request = planning(blocking)?;
        let order = PlanOrder { id: id.clone(), request, authors, former: None, stop: stop.clone() };
        let PlanMade { planned, candidates, only, .. } = jobs::plan(order, access)?;
        if let Some(shown) = shown {
            let _ = shown
                .set(jobs::preparation(planned.plan.clone(), &candidates, &focus, &settings, &|| stop.requested()));
        }
        Ok(DraftOrder {
            id,
            trigger: OperationKind::BY_CLIENT.trigger(),
            tokens: None,
            // Nothing of it stays in a context of the session.
            plan: planned.plan.with_nothing_loaded(),
            focus,
            hooks: None,
            candidates,
            // A host cannot replay the provider's own compaction.
            native: None,
            live: None,
            only,
            settings,
            deadline: None,
            rank: Rank::foreground(),
            stop,
        })
    };
    let answer = move |draft: Result<Draft, Failure>| match draft {
        Err(failure @ (Failure::InvalidParams { .. } | Failure::NotFound { .. } | Failure::NothingToCompact(_))) => {
            Answer::Failed(failure)
        }
        draft => match planned {
            None => Answer::ok(&ended(id, &stamp, draft)),
            Some(planned) => Answer::from(draft.and_then(|draft| {
                let preparation = planned.get().cloned().ok_or_else(defect)?;
                Ok(CompactAnswer::DryRun {
                    preparation: Box::new(preparation),
                    draft: Some(Box::new(ShownDraft::of(&draft))),
                })
            })),
        },
    };
    base.reads.start_draft(ticket, DraftRead { id: events, plan: Box::new(plan), answer: Box::new(answer), stop });
}

/// The answer for a draft.
fn ended(operation_id: OperationId, stamp: &Stamp, draft: Result<Draft, Failure>) -> CompactAnswer {
    let made = draft.and_then(|draft| result(draft, stamp).ok_or_else(defect));
    let (outcome, result, failure) = match made {
        Ok(result) => (Outcome::Completed, Some(result), None),
        Err(Failure::Cancelled) => (Outcome::Cancelled, None, None),
        Err(failure) => (Outcome::Failed, None, Some(failure)),
    };
    CompactAnswer::Ended {
        operation_id,
        outcome,
        result,
        new_session_id: None,
        error: failure.as_ref().map(Failure::data),
        error_message: failure.map(|failure| failure.to_string()),
        skipped_reason: None,
    }
}

/// The result of a draft that is not written. Edits of kept entries are left out: a host cannot apply them.
fn result(draft: Draft, stamp: &Stamp) -> Option<Box<CompactionResult>> {
    let mut draft = draft;
    if !draft.edits.is_empty() {
        let is_cut = |entry: &EntryId| draft.edits.iter().any(|edit| edit.target_id == *entry);
        let shortened = draft.shortened.iter().filter(|shortened| !is_cut(&shortened.entry)).cloned().collect();
        draft = Draft { shortened, ..draft }.with_edits(Vec::new());
    }
    let line = draft.line(stamp, None, draft.plan.path(), None, draft.tokens_after, Spending::default());
    let entry = Entry::parse(line.into()).ok()?;
    let mut result = whole(&entry, &draft)?;
    result.entry_id = None;
    let rehydrated = draft.rehydrated(&[]).rehydrated;
    result.rehydration = rehydrated.map(|rehydrated| rehydrated.unapplied());
    Some(result)
}
