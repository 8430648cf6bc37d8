//! Maintenance that no client asks for: whether it is due after an append, its start, and the time after one that did not
//! complete.

use super::{
    Append, Core, Ending, LogState, Unanswered, WaitsFor, Write,
    commands::{configure::model_fields, prune},
    due::{Due, DueCompaction},
    edit::Staged,
    work::Work,
};
use crate::{
    compaction::{
        decide::{Automatic, Decision, Facts, Rest, Why, at_threshold},
        request::Cause,
    },
    conversation::message::outline::Role,
    protocol::{
        errors::Failure,
        events::{Event, ModelChange, Reason},
        types::{Initiator, Next},
    },
    session::{
        fault::{Fault, planted},
        jobs::{Job, PlanOrder},
        kind::{OperationKind, Product},
        operations::{Asked, End, Kind as _, Place},
        stop::Stop,
    },
    wire::outbox::About,
};

impl Core {
    /// The decision at the leaf as a sentence, or the reason of a recovery that failed there.
    pub(super) fn why(&self) -> String {
        match (self.failed_recovery(), self.work.operation().filter(|operation| operation.is_open())) {
            (Some(failed), _) => failed.to_owned(),
            (None, Some(running)) => format!("A compaction is running ({}). {}", running.id, self.decision()),
            (None, None) => self.decision().to_string(),
        }
    }

    /// The decision at the leaf.
    pub(super) fn decision(&self) -> Decision {
        let facts = self.state.measure().facts(self.state.path(), self.upkeep.rest);
        match self.writable() {
            Ok(()) => at_threshold(facts),
            Err(_) => at_threshold(Facts { automatic: Automatic::ReadOnly, ..facts }),
        }
    }

    /// Whether the path is unknown before a compaction of another program.
    pub(super) fn lacks_past(&self) -> bool {
        self.state.history().index().is_none() && self.state.path().lacks_its_past()
    }

    /// Whether maintenance may start.
    pub(super) fn may_maintain(&self) -> bool {
        matches!(self.ending, Ending::No)
            && self.work.is_none()
            && self.cancelled.is_empty()
            && self.operations.idle().is_ok()
            && self.writable().is_ok()
            && !self.lacks_past()
    }

    /// Whether events that came during maintenance can be decided about: no work runs, and the path is known.
    pub(super) fn may_decide(&self) -> bool {
        let waits_for_past = self.lacks_past() && matches!(self.ending, Ending::No);
        self.work.is_none() && self.cancelled.is_empty() && !waits_for_past
    }

    /// Whether a compaction is due by an estimate, while entries are being counted.
    pub(super) fn seems_due(&self) -> bool {
        self.counting.runs() && self.maintenance_is_due()
    }

    /// Continues with the requests that waited for counts. Returns whether there were any.
    pub(super) fn unanswered_were_counted(&mut self) -> bool {
        if self.counting.runs() {
            return false;
        }
        let facts = *self.log_facts();
        match std::mem::replace(&mut self.log, LogState::Ready(facts)) {
            LogState::Counting(_, Unanswered::Appends(appends)) => {
                self.answer_appends(appends);
                true
            }
            LogState::Counting(_, Unanswered::Edit { edit, staged, ticket }) => {
                self.answer_edit(&*edit, *staged, ticket);
                true
            }
            other => {
                self.log = other;
                false
            }
        }
    }

    /// The maintenance that is due behind these appends.
    pub(super) fn due_after(&mut self, appends: &[Append]) -> Option<Due> {
        let mut entries = appends.iter().flat_map(|append| &append.staged.entries);
        if entries.any(|entry| entry.is_from(Role::User)) {
            self.upkeep.rest = None;
        }
        let in_batch = appends.last().is_some_and(|append| append.ticket.in_batch());
        let asked = || if in_batch { Asked::Unasked } else { Asked::Introduced };
        if let Some(due) = self.due_after_answer(appends, asked()) {
            return Some(due);
        }
        if let Some(due) = self.due_after_turn() {
            return Some(due);
        }
        // Nearly all appends end here, with one decision.
        if self.decision().why == Why::Below && !planted(Fault::AlwaysDue) {
            return None;
        }
        if let Some((staged, event)) = self.relief() {
            return Some(Due::Relief(staged, event));
        }
        if !self.maintenance_is_due() {
            return None;
        }
        let id = self.stamps.operation();
        Some(Due::Compaction(DueCompaction { id, reason: Reason::Threshold, asked: asked(), former: None }))
    }

    /// Entries that bring the context below the threshold without a compaction: old tool results are cut, or a larger model
    /// is chosen. That needs no automatic compaction.
    fn relief(&mut self) -> Option<(Staged, Event)> {
        let due = self.maintenance_is_due();
        if due && let Some(staged) = self.pruning_that_suffices() {
            let event = prune::event(&staged, &staged.why);
            return Some((staged, event));
        }
        let off = |why| matches!(why, Why::Off(Automatic::Disabled | Automatic::StrategyOff));
        let decision = self.decision();
        // A larger window takes no more bytes.
        let helps = due || self.may_maintain() && off(decision.why);
        if decision.is_about_images() || !helps {
            return None;
        }
        let to = self.larger_model()?;
        let from = self.state.model(self.state.path());
        let mut staged = Staged::default();
        staged.add(&self.state, &mut self.stamps, "model_change", &model_fields(&to)).ok()?;
        Some((staged, Event::ModelChanged { from, to, reason: ModelChange::Promotion }))
    }

    /// Whether maintenance is due and may start.
    pub(super) fn maintenance_is_due(&self) -> bool {
        self.may_maintain() && (self.decision().is_due() || planted(Fault::AlwaysDue))
    }

    /// The edits of a pruning that brings the context below the threshold.
    pub(super) fn pruning_that_suffices(&mut self) -> Option<Staged> {
        if self.decision().why == Why::Images {
            return prune::without_old_images(&self.state, &mut self.stamps);
        }
        let pruned = prune::pruned(&self.state, &self.state.settings().settings.prune);
        let fullness = self.state.measure();
        let left = fullness.context_tokens.saturating_sub(fullness.scale.size(pruned.tokens_saved));
        let budget = fullness.budget.attainable().unwrap_or(fullness.budget);
        if pruned.edits.is_empty() || left > budget.threshold {
            return None;
        }
        let why = "the context was over the threshold".to_owned();
        prune::staged(&self.state, pruned, &mut self.stamps).ok().map(|staged| Staged { why, ..staged })
    }

    /// Entries that bring the context below the threshold are on disk. The context is measured again.
    pub(super) fn relieved(&mut self, staged: &Staged, event: Event) {
        if staged.stores_model() {
            self.state.stored_model();
        }
        self.count();
        staged.entries.iter().for_each(|entry| self.announce(entry, None));
        self.emit(About::default(), event);
        self.send_usage(self.state.usage());
        if self.maintenance_is_due() {
            self.start_unasked();
        }
        self.answer_held();
    }

    /// `next` of an append: the maintenance that is due, or the one that runs.
    pub(super) fn next(&self, due: Option<&Due>) -> Next {
        let (operation_id, reason, will_retry) = match (due, self.work.operation().filter(|it| it.is_open())) {
            (Some(Due::Recovery(due)), _) => {
                (due.id.clone(), OperationKind::Recovering(due.reason).cause(), due.repeats_the_turn())
            }
            (Some(Due::Delayed(request)), _) => (request.id.clone(), request.kind.cause(), false),
            (Some(Due::Compaction(due)), _) => (due.id.clone(), OperationKind::Compaction(due.reason).cause(), false),
            (_, Some(operation)) => (operation.id.clone(), operation.kind.cause(), operation.kind.repeats_the_turn()),
            (_, None) => return Next::None,
        };
        Next::Maintenance { operation_id, reason, will_retry, will_continue: false }
    }

    /// Starts the maintenance that is due.
    pub(super) fn start_due(&mut self, due: Option<Due>) {
        match due {
            Some(Due::Recovery(due)) => self.write_recovery(due),
            Some(Due::Compaction(due)) => self.start_automatic(due),
            Some(Due::Delayed(request)) => self.begin_delayed(*request),
            Some(Due::Relief(staged, event)) => self.write(Write::Relief(staged, event)),
            None => {}
        }
    }

    /// Starts the maintenance that is due, for a request that waits for it.
    pub(super) fn maintain(&mut self) -> WaitsFor {
        match self.relief() {
            Some((staged, event)) => {
                self.write(Write::Relief(staged, event));
                WaitsFor::Decision
            }
            None => {
                self.start_unasked();
                WaitsFor::Compaction
            }
        }
    }

    /// Starts a compaction that no answer has named.
    pub(super) fn start_unasked(&mut self) {
        let id = self.stamps.operation();
        self.start_automatic(DueCompaction { id, reason: Reason::Threshold, asked: Asked::Unasked, former: None });
    }

    /// Starts a compaction.
    pub(super) fn start_automatic(&mut self, due: DueCompaction) {
        if planted(Fault::NextNotStarted) {
            return;
        }
        let DueCompaction { id, reason, asked, former } = due;
        let kind = OperationKind::Compaction(reason);
        let stop = Stop::default();
        let opening = self.opening(kind, Place::Top(id.clone()), asked, self.state.usage(), stop.clone());
        let operation = self.start_operation(opening);
        let request = self.plan_request(None, Initiator::User, Cause::Due);
        self.start(Job::Plan(PlanOrder { id, request, method: None, former, stop }));
        self.work = Work::Preparing(operation, None);
    }

    /// Whether an automatic compaction that did not complete lets no other one start.
    pub(super) fn rests(&self) -> bool {
        let fullness = self.state.measure();
        self.upkeep.rest.is_some_and(|rest| rest.holds(fullness.context_tokens, fullness.budget.threshold))
    }

    /// Records the end of a compaction: an automatic one that did not complete is not repeated immediately.
    pub(super) fn rests_after(&mut self, kind: &OperationKind, end: &End<Product>) {
        self.upkeep.rest = match end {
            End::Completed(_) => None,
            _ if planted(Fault::RestForgotten) => None,
            // It says nothing about the branch that the session is on now.
            End::Failed(Failure::ContentModified { .. }) => None,
            _ if kind.is_automatic() => {
                let fullness = self.state.measure();
                Some(Rest { context_tokens: fullness.context_tokens, threshold: fullness.budget.threshold })
            }
            _ => self.upkeep.rest,
        };
    }
}
