//! Recoveries: an answer that a turn cannot go on from leaves the context, and the turn gets a context to be repeated with.
//!
//! The edit that removes the answer is written before the recovery starts. A recovery that compacts is an operation around
//! its compaction, and both have one id.

mod giving_up;
mod judging;
pub mod promotion;
mod reported;
pub mod reports;
mod reserving;
#[cfg(test)]
mod tests;

use self::{
    judging::Judged,
    reported::Reported,
    reports::contexts::{Contexts, Identity},
};
use super::{
    Core,
    commands::{append::Append, context::too_large},
    due::{Due, DueCompaction, DueRecovery},
    edit::Staged,
    parts::log_gate::{FollowUp, Write},
    work::Work,
};
use crate::{
    compaction::{
        decide::Automatic,
        ladder::Floor,
        recovery::{self, Facts, Remedy, Share, Trouble, Verdict},
        request::Cause,
    },
    conversation::{
        attempts::Attempt,
        entry::{Attempts, Body, Entry, Stamps},
        evidence::Grounds,
        message::outline::Role,
    },
    ids::{EntryId, OperationId},
    models::{self, ModelRef},
    protocol::{
        errors::Failure,
        events::{Event, ModelChange, Reason, RecoveryReason},
        notices::Warning,
        types::{Cancelled, Initiator},
    },
    session::{
        core::{commands::compacting::planning, standing::Standing},
        data::model_fields,
        effects::Ticket,
        fault::{Fault, planted},
        jobs::{Authors, Focus, Job, PlanOrder, defect},
        kind::{OperationKind, Product, RECOVERY, Recovery},
        operation::Operation,
        operations::{Asked, End, Place},
        state::State,
        stop::Stop,
    },
    settings::Switch,
};
use serde_json::json;
use std::sync::Arc;

/// The recoveries of a session.
#[derive(Default)]
pub(super) struct Recoveries {
    /// The recovery whose compaction runs.
    running: Option<Operation>,
    /// Failed answers that were appended while maintenance ran, oldest first.
    reported: Vec<Reported>,
    /// The contexts that clients were given last.
    pub(super) contexts: Contexts,
    /// A recovery that failed.
    failed: Option<Failed>,
    /// The model of the last failure, where it is another one than the session's. A good answer forgets it.
    other_model: Option<ModelRef>,
}

/// A recovery that failed. There is no context to repeat the turn with until the session goes on from its leaf, or an edit
/// makes its request smaller or a limit larger.
struct Failed {
    leaf: Option<EntryId>,
    why: String,
    limits: Limits,
}

/// The size of a request and the limits of its model, in tokens.
#[derive(Clone, Copy)]
struct Limits {
    request: u64,
    window: u64,
    output: Option<u64>,
}

impl Limits {
    /// Whether a request with these limits has more room than one with the others.
    fn are_wider_than(self, others: Self) -> bool {
        self.request < others.request || self.window > others.window || self.output > others.output
    }
}

impl Recoveries {
    /// Whether a failed answer waits for a decision.
    pub fn is_pending(&self) -> bool {
        !self.reported.is_empty()
    }

    /// Whether requests for the context wait for a recovery. `follow_up`: the work after the write that runs.
    pub fn hold_contexts(&self, follow_up: &FollowUp<'_>) -> bool {
        let is_written = matches!(follow_up, FollowUp::Recovery(_) | FollowUp::Removal);
        is_written || self.running.is_some() || self.is_pending()
    }

    /// The reason for which there is no context to repeat the turn with, if its recovery failed.
    pub fn failed_at(&self, leaf: Option<&EntryId>) -> Option<&str> {
        self.failed.as_ref().filter(|failed| failed.leaf.as_ref() == leaf).map(|failed| failed.why.as_str())
    }

    /// Forgets a recovery that failed, if an edit made the request smaller or a limit larger.
    pub fn forget_failed(&mut self, state: &State) {
        let now = limits(state);
        self.failed.take_if(|failed| now.are_wider_than(failed.limits));
    }

    /// Forgets the recovery that a cancel has ended.
    pub fn forget_cancelled(&mut self) {
        self.running = None;
    }

    /// Cancels a recovery that starts after the write that runs, and names it. A cancel of all work forgets the failed answers
    /// that wait for a decision, too.
    pub fn cancel_due(&mut self, which: Option<&OperationId>, follow_up: &FollowUp<'_>) -> Option<Cancelled> {
        if which.is_none() {
            self.reported.clear();
        }
        let FollowUp::Recovery(due) = follow_up else { return None };
        // It ends after its write. Another cancel until then names it, too.
        let named = which.is_none_or(|which| *which == due.id);
        if named {
            due.stop.request();
        }
        named.then(|| Cancelled { operation_id: due.id.clone(), kind: RECOVERY.to_owned() })
    }

    /// Whether a failure is of another model than the session's, so that it says nothing about this context. A host that asks
    /// that model again means it, or has another name for the session's model: the next failure counts.
    fn is_of_another_model(&mut self, judged: &Judged, now: &Identity) -> bool {
        let named = judged.answer.outline().and_then(|outline| outline.model.clone());
        let other = named.filter(|named| now.model.as_ref().is_some_and(|model| model != named));
        let before = std::mem::replace(&mut self.other_model, other);
        self.other_model.is_some() && self.other_model != before
    }
}

/// Whether the conversation went on while a recovery ran: with a message of the user, with an answer, or on another branch.
fn went_on(state: &State, recovery: &Operation) -> bool {
    let OperationKind::Recovery(Recovery { removed: Some(removed), .. }) = &recovery.kind else { return false };
    let path = state.path();
    let answers = |entry: &Entry| entry.outline().is_some_and(|it| it.role == Role::Assistant && !it.failed);
    let goes_on = |entry: &Arc<Entry>| entry.is_from(Role::User) || answers(entry);
    path.position(removed).is_none_or(|place| path[place + 1..].iter().any(goes_on))
}

/// The entries of a recovery, which starts after them.
struct RecoveryWrite {
    staged: Staged,
    due: DueRecovery,
}

impl Write for RecoveryWrite {
    fn entries(&self) -> Vec<Arc<Entry>> {
        self.staged.entries.clone()
    }

    fn written(self: Box<Self>, core: &mut Core) {
        core.recover(self.due, Ok(self.staged));
    }

    fn not_written(self: Box<Self>, core: &mut Core, failure: &Failure) {
        core.recover(self.due, Err(failure.clone()));
    }

    fn again(self: Box<Self>, core: &mut Core) {
        core.write_recovery(self.due);
    }

    /// An answer has named the recovery: it has a start and an end.
    fn lost(self: Box<Self>, core: &mut Core) {
        core.recover(self.due, Err(defect()));
    }

    fn follow_up(&self) -> FollowUp<'_> {
        FollowUp::Recovery(&self.due)
    }
}

impl Standing<'_> {
    /// The end of a recovery that leaves the context as it is. It fails where no request with this context fits the window
    /// and no maintenance makes the context smaller.
    fn with_room(&self) -> End<Product> {
        let decision = self.decision();
        match too_large(&self.core.state.measure(), self.core.state.path()) {
            Some(floor) if !decision.is_due() => {
                let why = self.core.upkeep.relays.or_goes_on_elsewhere(decision.to_string());
                End::Failed(Failure::OverWindow { floor, why })
            }
            _ => End::Completed(Product::Recovered),
        }
    }
}

impl Core {
    /// The maintenance that the answer at the end of these appends needs.
    pub(super) fn due_after_answer(&mut self, appends: &[Append], asked: Asked<Ticket>) -> Option<Due> {
        let context = appends.last().map(|append| append.context.clone());
        let judged = Judged { context, ..judging::judge_last(&Standing::of(self).facts(), appends)? };
        self.learn_reserved(&judged.answer);
        let verdict = match judged.verdict {
            Verdict::Usable if planted(Fault::DeliveredLeaves) => Verdict::Unusable(Trouble::TooLong),
            verdict => verdict,
        };
        match verdict {
            Verdict::Usable | Verdict::Shortened => {
                self.recoveries.other_model = None;
                None
            }
            Verdict::OverWindow => {
                let on = self.state.measure().compaction.switch() == Switch::On;
                (on && !Standing::of(self).rests() && Standing::of(self).may_maintain()).then(|| {
                    let id = self.stamps.operation();
                    Due::Compaction(DueCompaction { id, reason: Reason::Overflow, asked, former: None })
                })
            }
            Verdict::Unusable(trouble) if Standing::of(self).may_maintain() => {
                self.recovery(&judged, trouble, asked).map(Due::Recovery)
            }
            // Its turn is repeated after the maintenance that `next` names.
            Verdict::Reserved(_) if Standing::of(self).maintains() => {
                self.report(judged);
                None
            }
            Verdict::Reserved(refused) => Some(Due::Repeat(reserving::repeat(&self.state, &judged.answer, refused))),
            Verdict::Unusable(_) => {
                self.report(judged);
                None
            }
        }
    }

    /// The recovery from an answer.
    fn recovery(&mut self, judged: &Judged, trouble: Trouble, asked: Asked<Ticket>) -> Option<DueRecovery> {
        let reason = match trouble {
            Trouble::TooLong => RecoveryReason::Overflow,
            Trouble::WindowFull | Trouble::CutOff => RecoveryReason::Incomplete,
        };
        let now = Identity::at_leaf(&self.state);
        let is_of_another_model = trouble != Trouble::CutOff && self.recoveries.is_of_another_model(judged, &now);
        let stale = is_of_another_model || judged.context.as_ref().is_some_and(|context| context.is_replaced_by(&now));
        if stale {
            self.recoveries.contexts.told_replaced(now);
        }
        let facts = Facts {
            trouble,
            automatic: match planted(Fault::OffForgotten) {
                true => Automatic::On,
                false => self.state.measure().compaction.switch().into(),
            },
            stale: stale && !planted(Fault::StaleForgotten),
            larger: promotion::larger_model(&self.state),
            attempts: match planted(Fault::AttemptsForgotten) {
                true => Attempts::default(),
                false => Attempts::before(self.state.path(), &judged.answer.id),
            },
        };
        match recovery::remedy(facts) {
            Remedy::None => None,
            remedy => Some(DueRecovery {
                id: self.stamps.operation(),
                reason,
                asked,
                removed: judged.answer.id.clone(),
                earlier: Vec::new(),
                remedy,
                stated: judged.stated,
                model: self.state.model(self.state.path()),
                stop: Stop::default(),
            }),
        }
    }

    /// Writes the entries of a recovery, which starts after them.
    pub(super) fn write_recovery(&mut self, due: DueRecovery) {
        match entries_of(&self.state, &mut self.stamps, &due) {
            Ok(staged) => self.write(Box::new(RecoveryWrite { staged, due })),
            Err(failure) => self.recover(due, Err(failure)),
        }
    }

    /// Starts a recovery whose entries were written, or could not be.
    fn recover(&mut self, due: DueRecovery, written: Result<Staged, Failure>) {
        let action = due.action();
        let DueRecovery { id, reason, asked, removed, remedy, stated, model, stop, .. } = due;
        let kind = OperationKind::Recovery(Recovery { reason, removed: Some(removed), action });
        let entries = written.as_ref().map(|staged| staged.entries.clone()).unwrap_or_default();
        let (choices, others): (Vec<_>, Vec<_>) =
            entries.iter().partition(|entry| matches!(entry.body, Body::ModelChange { .. }));
        if !choices.is_empty() {
            self.state.stored_model();
        }
        others.iter().for_each(|entry| self.effects.announce(entry, None));
        self.send_usage(self.state.usage());
        let operation = self.open(kind, Place::Top(id), asked, self.state.usage(), stop.clone());
        // It is in force, also where the recovery was cancelled while it was being written.
        choices.iter().for_each(|entry| self.effects.announce(entry, Some(operation.id.clone())));
        if let (Ok(_), Remedy::Promote(to)) = (&written, &remedy) {
            operation.emit(Event::ModelChanged { from: model, to: to.clone(), reason: ModelChange::Promotion });
        }
        let end = match (written, remedy) {
            _ if stop.requested() => End::Cancelled,
            (Err(failure), _) => End::Failed(failure),
            (Ok(_), Remedy::Compact(share)) => return self.compact_inside(operation, reason, share, stated),
            (Ok(_), Remedy::GiveUp(attempts)) => {
                End::Failed(giving_up::given_up(&self.state, &self.upkeep.relays, reason, attempts))
            }
            (Ok(_), Remedy::Promote(_) | Remedy::Retry | Remedy::Repeat | Remedy::None) => {
                Standing::of(self).with_room()
            }
        };
        self.end_recovery(operation, end, Vec::new());
    }

    /// Starts the compaction of a recovery.
    fn compact_inside(
        &mut self,
        recovery: Operation,
        reason: RecoveryReason,
        share: Share,
        stated: Option<(u64, u64)>,
    ) {
        let (place, stop) = (recovery.part(self.stamps.operation()), Stop::default());
        let kind = OperationKind::Recovering(reason);
        let compaction = self.open(kind, place, Asked::Introduced, self.state.usage(), stop.clone());
        let request = planning::plan_request(&self.state, None, Initiator::User, Cause::Rejected { share, stated });
        self.effects.start(Job::Plan(PlanOrder {
            id: compaction.id.clone(),
            request,
            authors: Authors::Anyone,
            former: None,
            stop,
        }));
        self.work = Work::Preparing(compaction, Focus::default());
        self.recoveries.running = Some(recovery);
    }

    /// Ends the recovery around a compaction that has ended. The end of the compaction comes first, and `notices` after both.
    pub(super) fn finish_inside(&mut self, compaction: Operation, end: End<Product>, notices: Vec<Warning>) {
        let end = match end {
            // The plan has a smaller window than the model: the rejected size bounds it.
            End::Failed(Failure::ContextOverflow(floor)) => {
                let window = self.state.measure().budget.window;
                End::Failed(Failure::ContextOverflow(Floor { window, ..floor }))
            }
            end => end,
        };
        let around = match &end {
            End::Completed(_) => End::Completed(Product::Recovered),
            End::Cancelled => End::Cancelled,
            End::Failed(failure) => End::Failed(failure.clone()),
            End::Skipped(nothing) => End::Skipped(*nothing),
        };
        compaction.finish(end, &self.sent_usage, Vec::new());
        if let Some(recovery) = self.recoveries.running.take() {
            self.end_recovery(recovery, around, notices);
        }
    }

    /// Ends a recovery.
    fn end_recovery(&mut self, recovery: Operation, end: End<Product>, notices: Vec<Warning>) {
        let why = match &end {
            End::Completed(_) | End::Cancelled => None,
            End::Failed(failure) => Some(failure.to_string()),
            End::Skipped(nothing) => Some(Failure::NothingToCompact(*nothing).to_string()),
        };
        let leaf = self.state.visible_leaf();
        self.held.go_on_after(&recovery.kind, &end);
        let why = why.filter(|_| !went_on(&self.state, &recovery));
        let limits = limits(&self.state);
        self.recoveries.failed = why.map(|why| Failed { leaf, why: recovery.kind.failed(&why), limits });
        self.settle();
        recovery.finish(end, &self.sent_usage, notices);
        self.record_running();
        self.answer_held();
    }
}

/// The entries with which answers leave the context. An answer that was delivered stays, whatever asks for its removal.
fn removal<'a>(
    state: &State,
    stamps: &mut Stamps,
    answers: impl Iterator<Item = &'a EntryId>,
) -> Result<Staged, Failure> {
    let mut staged = Staged::default();
    for answer in answers {
        let path = state.path();
        let entry = path.position(answer).map(|place| &path[place]);
        if entry.is_some_and(|entry| Grounds::of(entry).is_none()) && !planted(Fault::DeliveredLeaves) {
            tracing::error!(%answer, "a delivered answer does not leave the context");
            continue;
        }
        let fields = [("targetId", json!(answer)), ("replacement", json!(null))];
        staged.add(state, stamps, "context_edit", &fields)?;
    }
    Ok(staged)
}

/// The entries of a recovery: the answer leaves the context, the attempt is recorded, the model changes.
fn entries_of(state: &State, stamps: &mut Stamps, due: &DueRecovery) -> Result<Staged, Failure> {
    let keeps = planted(Fault::AnswerStays) && due.attempted().is_some();
    let mut staged = match keeps {
        true => Staged::default(),
        false => removal(state, stamps, due.earlier.iter().chain([&due.removed]))?,
    };
    if let Some(reason) = due.attempted() {
        staged.add_custom(state, stamps, "attempt", json!(Attempt { reason }))?;
    }
    if let Remedy::Promote(larger) = &due.remedy {
        staged.add(state, stamps, "model_change", &model_fields(larger))?;
    }
    Ok(staged)
}

fn limits(state: &State) -> Limits {
    let fullness = state.measure();
    let model = state.model(state.path());
    let output = models::output_limit(&state.settings().settings, model.as_ref()).map(|limit| limit.tokens);
    Limits { request: fullness.context_tokens, window: fullness.budget.window, output }
}
