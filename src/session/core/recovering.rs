//! Recoveries: an answer that a turn cannot go on from leaves the context, and the turn gets a context to be repeated with.
//!
//! The edit that removes the answer is written before the recovery starts. A recovery that compacts is an operation around
//! its compaction, and both have one id.

mod giving_up;
pub(super) mod judging;
pub mod promotion;
pub(super) mod reported;
pub mod reports;
pub(super) mod reserving;
#[cfg(test)]
mod tests;

use self::{judging::Judged, reported::Reported};
use super::{
    base::Base,
    commands::append::Append,
    due::{Due, DueCompaction, DueRecovery},
    edit::Staged,
    parts::{contexts::Identity, log_gate::FollowUp},
    step::{Step, Write},
    transfers::Relays,
    work::{Unstarted, Work},
};
use crate::{
    compaction::{
        decide::Automatic,
        ladder::Floor,
        recovery::{self, Facts, Remedy, Trouble, Verdict},
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
        types::Cancelled,
    },
    session::{
        data::model_fields,
        effects::Ticket,
        fault::{Fault, planted},
        jobs::{Focus, defect},
        kind::{OperationKind, Product, RECOVERY, Recovery},
        operation::Operation,
        operations::{Asked, End},
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
    /// Failed answers that were appended while maintenance ran, oldest first.
    reported: Vec<Reported>,
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

    /// Whether requests for the context wait for a recovery.
    pub fn hold_contexts(&self, base: &Base) -> bool {
        let is_written = matches!(base.log.follow_up(), FollowUp::Recovery { .. } | FollowUp::Removal);
        is_written || base.recovery().is_some() || self.is_pending()
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

    /// Cancels a recovery that starts after the write that runs, and names it. A cancel of all work forgets the failed answers
    /// that wait for a decision, too.
    pub fn cancel_due(&mut self, which: Option<&OperationId>, follow_up: &FollowUp) -> Option<Cancelled> {
        if which.is_none() {
            self.reported.clear();
        }
        let FollowUp::Recovery { id, stop } = follow_up else { return None };
        // It ends after its write. Another cancel until then names it, too.
        let named = which.is_none_or(|which| which == id);
        if named {
            stop.request();
        }
        named.then(|| Cancelled::of(id.clone(), RECOVERY))
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

    fn written(self: Box<Self>, _: &mut Base) -> Vec<Step> {
        vec![Step::Recover(self.due, Ok(self.staged))]
    }

    fn not_written(self: Box<Self>, _: &mut Base, failure: &Failure) -> Vec<Step> {
        vec![Step::Recover(self.due, Err(failure.clone()))]
    }

    fn again(self: Box<Self>, _: &mut Base) -> Vec<Step> {
        vec![Step::Start(Due::Recovery(self.due))]
    }

    /// An answer has named the recovery: it has a start and an end.
    fn lost(self: Box<Self>) -> Vec<Step> {
        vec![Step::Recover(self.due, Err(defect()))]
    }

    fn follow_up(&self) -> FollowUp {
        FollowUp::Recovery { id: self.due.id.clone(), stop: self.due.stop.clone() }
    }
}

/// Whether maintenance may start now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MayStart {
    /// It may. `rests`: only where it was not fruitless at this size.
    Now { rests: bool },
    /// Other maintenance runs.
    Later,
    /// It may not.
    No,
}

impl MayStart {
    /// Whether it may.
    pub fn is_now(self) -> bool {
        matches!(self, Self::Now { .. })
    }
}

impl Recoveries {
    /// The maintenance that the answer at the end of these appends needs.
    pub fn due_after(
        &mut self,
        base: &mut Base,
        appends: &[Append],
        asked: Asked<Ticket>,
        may_start: MayStart,
    ) -> Option<Due> {
        let context = appends.last().map(|append| append.context.clone());
        let judged = Judged { context, ..judging::judge_last(&base.facts(), appends)? };
        reserving::learn(base, &judged.answer);
        let verdict = match judged.verdict {
            Verdict::Usable if planted(Fault::DeliveredLeaves) => Verdict::Unusable(Trouble::TooLong),
            verdict => verdict,
        };
        match (verdict, may_start) {
            (Verdict::Usable | Verdict::Shortened, _) => self.other_model = None,
            (Verdict::OverWindow, MayStart::Now { rests: false }) => {
                let on = base.state.measure().compaction.switch() == Switch::On;
                return on.then(|| {
                    let id = base.stamps.operation();
                    Due::Compaction(DueCompaction { id, reason: Reason::Overflow, asked, former: None })
                });
            }
            (Verdict::OverWindow, _) => {}
            (Verdict::Unusable(trouble), MayStart::Now { .. }) => {
                return self.recovery(base, &judged, trouble, asked).map(Due::Recovery);
            }
            (Verdict::Reserved(refused), MayStart::Now { .. } | MayStart::No) => {
                return Some(Due::Repeat(reserving::repeat(&base.state, &judged.answer, refused)));
            }
            (Verdict::RefusedBlock, MayStart::Now { .. } | MayStart::No) => {
                return Some(Due::Repeat(reserving::repeat_without_block(&base.state, &judged.answer)));
            }
            // Its turn is repeated after the maintenance that `next` names.
            (Verdict::Reserved(_) | Verdict::RefusedBlock, MayStart::Later) | (Verdict::Unusable(_), _) => {
                self.report(base, judged);
            }
        }
        None
    }

    /// The recovery from an answer.
    fn recovery(
        &mut self,
        base: &mut Base,
        judged: &Judged,
        trouble: Trouble,
        asked: Asked<Ticket>,
    ) -> Option<DueRecovery> {
        let reason = match trouble {
            Trouble::TooLong => RecoveryReason::Overflow,
            Trouble::WindowFull | Trouble::CutOff => RecoveryReason::Incomplete,
        };
        let now = Identity::at_leaf(&base.state);
        let is_of_another_model = trouble != Trouble::CutOff && self.is_of_another_model(judged, &now);
        let stale = is_of_another_model || judged.context.as_ref().is_some_and(|context| context.is_replaced_by(&now));
        if stale {
            base.contexts.told_replaced(now);
        }
        let facts = Facts {
            trouble,
            automatic: match planted(Fault::OffForgotten) {
                true => Automatic::On,
                false => base.state.measure().compaction.switch().into(),
            },
            stale: stale && !planted(Fault::StaleForgotten),
            larger: promotion::larger_model(base),
            attempts: match planted(Fault::AttemptsForgotten) {
                true => Attempts::default(),
                false => Attempts::before(base.state.path(), &judged.answer.id),
            },
        };
        match recovery::remedy(facts) {
            Remedy::None => None,
            remedy => Some(DueRecovery {
                id: base.stamps.operation(),
                reason,
                asked,
                removed: judged.answer.id.clone(),
                earlier: Vec::new(),
                remedy,
                stated: judged.stated,
                model: base.state.model(base.state.path()),
                stop: Stop::default(),
            }),
        }
    }

    /// A recovery ends. Records its failure, if the conversation did not go on meanwhile.
    pub fn ends(&mut self, base: &mut Base, recovery: &Operation, end: &End<Product>) {
        let why = match end {
            End::Completed(_) | End::Cancelled => None,
            End::Failed(failure) => Some(failure.to_string()),
            End::Skipped(nothing) => Some(Failure::NothingToCompact(*nothing).to_string()),
        };
        base.waiting.go_on_after(&recovery.kind, end);
        let why = why.filter(|_| !went_on(&base.state, recovery));
        let (leaf, limits) = (base.state.visible_leaf(), limits(&base.state));
        self.failed = why.map(|why| Failed { leaf, why: recovery.kind.failed(&why), limits });
    }
}

/// The end of the recovery around a compaction that ends.
pub(super) fn end_around(end: &End<Product>) -> End<Product> {
    match end {
        End::Completed(_) => End::Completed(Product::Recovered),
        End::Cancelled => End::Cancelled,
        End::Failed(failure) => End::Failed(failure.clone()),
        End::Skipped(nothing) => End::Skipped(*nothing),
    }
}

/// The end of the compaction of a recovery. Its plan has a smaller window than the model, because the rejected size bounds it.
pub(super) fn with_window(state: &State, end: End<Product>) -> End<Product> {
    match end {
        End::Failed(Failure::ContextOverflow(floor)) => {
            let window = state.measure().budget.window;
            End::Failed(Failure::ContextOverflow(Floor { window, ..floor }))
        }
        end => end,
    }
}

/// Writes the entries of a recovery, which starts after them.
pub(super) fn write(base: &mut Base, due: DueRecovery) -> Step {
    match entries_of(&base.state, &mut base.stamps, &due) {
        Ok(staged) => Step::Write(Box::new(RecoveryWrite { staged, due })),
        Err(failure) => Step::Recover(due, Err(failure)),
    }
}

/// A recovery that has started.
pub(super) enum Begun {
    /// Its compaction is planned.
    Compacts,
    /// It leaves the context as it is.
    KeepsContext(Operation),
    /// It ends at once.
    Ends(Operation, End<Product>),
}

/// Starts a recovery whose entries were written, or could not be.
pub(super) fn begin(base: &mut Base, relays: &Relays, due: DueRecovery, written: Result<Staged, Failure>) -> Begun {
    let action = due.action();
    let DueRecovery { id, reason, asked, removed, remedy, stated, model, stop, .. } = due;
    let kind = OperationKind::Recovery(Recovery { reason, removed: Some(removed), action });
    let entries = written.as_ref().map(|staged| staged.entries.clone()).unwrap_or_default();
    let (choices, others): (Vec<_>, Vec<_>) =
        entries.iter().partition(|entry| matches!(entry.body, Body::ModelChange { .. }));
    if !choices.is_empty() {
        base.state.stored_model();
    }
    others.iter().for_each(|entry| base.effects.announce(entry, None));
    base.send_usage();
    let operation = base.open(Unstarted { id, kind, asked, stop: stop.clone() }, base.state.usage());
    // It is in force, also where the recovery was cancelled while it was being written.
    choices.iter().for_each(|entry| base.effects.announce(entry, Some(operation.id.clone())));
    if let (Ok(_), Remedy::Promote(to)) = (&written, &remedy) {
        operation.emit(Event::ModelChanged { from: model, to: to.clone(), reason: ModelChange::Promotion });
    }
    match (written, remedy) {
        _ if stop.requested() => Begun::Ends(operation, End::Cancelled),
        (Err(failure), _) => Begun::Ends(operation, End::Failed(failure)),
        (Ok(_), Remedy::Compact(share)) => {
            compact_inside(base, operation, reason, Cause::Rejected { share, stated });
            Begun::Compacts
        }
        (Ok(_), Remedy::GiveUp(attempts)) => {
            let end = End::Failed(giving_up::given_up(&base.state, relays, reason, attempts));
            Begun::Ends(operation, end)
        }
        (Ok(_), Remedy::Promote(_) | Remedy::Retry | Remedy::Repeat | Remedy::None) => Begun::KeepsContext(operation),
    }
}

/// Starts the compaction of a recovery.
fn compact_inside(base: &mut Base, recovery: Operation, reason: RecoveryReason, cause: Cause) {
    let stop = Stop::default();
    let kind = OperationKind::Recovering(reason);
    let compaction = base.open_inside(recovery, kind, base.state.usage(), stop.clone());
    base.plan(compaction.id.clone(), cause, None, stop);
    base.work = Work::Preparing(compaction, Focus::default());
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
