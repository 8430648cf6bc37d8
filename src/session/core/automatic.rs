//! Maintenance that no client asks for: whether it is due after an append, its start, and the time after one that did not
//! complete.

use super::{Append, Core, Ending, LogState, WaitsFor, Write, commands::prune, edit::Staged, work::Work};
use crate::{
    compaction::{
        decide::{Automatic, Decision, Facts, Rest, at_threshold},
        request::Cause,
    },
    conversation::message::outline::Role,
    ids::OperationId,
    protocol::{
        events::Reason,
        types::{CompactionResult, Initiator, Next},
    },
    session::{
        effects::Ticket,
        fault::{Fault, planted},
        jobs::{Job, PlanOrder},
        kind::OperationKind,
        operations::{Asked, End, Kind as _, Place},
        stop::Stop,
    },
    wire::outbox::About,
};

/// Maintenance that is due.
pub(super) enum Due {
    /// Cutting old tool results brings the context below the threshold.
    Pruning(Staged),
    /// A compaction.
    Compaction(DueCompaction),
}

/// A compaction that is due.
pub(super) struct DueCompaction {
    id: OperationId,
    reason: Reason,
    /// Whether an answer outside of a batch names the id before its start event does.
    asked: Asked<Ticket>,
}

impl Core {
    /// The decision at the leaf.
    pub(super) fn decision(&self) -> Decision {
        let facts = self.state.measure().facts(self.state.path(), self.rest);
        match self.writable() {
            Ok(()) => at_threshold(facts),
            Err(_) => at_threshold(Facts { automatic: Automatic::ReadOnly, ..facts }),
        }
    }

    /// Whether maintenance may start.
    fn may_maintain(&self) -> bool {
        let lacks_past = self.state.history().index().is_none() && self.state.path().lacks_its_past();
        matches!(self.ending, Ending::No)
            && self.work.is_none()
            && self.cancelled.is_empty()
            && self.operations.idle().is_ok()
            && self.writable().is_ok()
            && !lacks_past
    }

    /// Whether a compaction is due by an estimate, while entries are being counted.
    pub(super) fn seems_due(&self) -> bool {
        self.counting.runs() && self.maintenance_is_due()
    }

    /// Continues with the appends that waited for counts. Returns whether there were any.
    pub(super) fn appends_were_counted(&mut self) -> bool {
        if self.counting.runs() {
            return false;
        }
        let facts = *self.log_facts();
        match std::mem::replace(&mut self.log, LogState::Ready(facts)) {
            LogState::Counting(_, appends) => {
                self.answer_appends(appends);
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
            self.rest = None;
        }
        if !self.maintenance_is_due() {
            return None;
        }
        if let Some(staged) = self.pruning_that_suffices() {
            return Some(Due::Pruning(staged));
        }
        let in_batch = appends.last().is_some_and(|append| append.ticket.in_batch());
        let asked = if in_batch { Asked::Unasked } else { Asked::Introduced };
        Some(Due::Compaction(DueCompaction { id: self.stamps.operation(), reason: Reason::Threshold, asked }))
    }

    /// Whether maintenance is due and may start.
    pub(super) fn maintenance_is_due(&self) -> bool {
        self.may_maintain() && (self.decision().is_due() || planted(Fault::AlwaysDue))
    }

    /// The edits of a pruning that brings the context below the threshold.
    fn pruning_that_suffices(&mut self) -> Option<Staged> {
        let pruned = prune::pruned(&self.state, &self.state.settings().settings.prune);
        let fullness = self.state.measure();
        let left = fullness.context_tokens.saturating_sub(fullness.scale.size(pruned.tokens_saved));
        if pruned.edits.is_empty() || left > fullness.budget.threshold {
            return None;
        }
        prune::staged(&self.state, pruned, &mut self.stamps).ok()
    }

    /// Edits of a pruning are on disk. The context is measured again.
    pub(super) fn pruned(&mut self, staged: &Staged) {
        self.count();
        staged.entries.iter().for_each(|entry| self.announce(entry, None));
        self.emit(About::default(), prune::event(staged, "the context was over the threshold"));
        self.send_usage(self.state.usage());
        if self.maintenance_is_due() {
            self.start_unasked();
        }
        self.answer_held();
    }

    /// `next` of an append: the maintenance that is due, or the one that runs.
    pub(super) fn next(&self, due: Option<&Due>) -> Next {
        let (operation_id, kind) = match (due, self.work.operation().filter(|operation| operation.is_open())) {
            (Some(Due::Compaction(due)), _) => (due.id.clone(), OperationKind::Compaction(due.reason)),
            (_, Some(operation)) => (operation.id.clone(), operation.kind),
            (_, None) => return Next::None,
        };
        Next::Maintenance { operation_id, reason: kind.cause(), will_retry: false, will_continue: false }
    }

    /// Starts the maintenance that is due, for a request that waits for it.
    pub(super) fn maintain(&mut self) -> WaitsFor {
        match self.pruning_that_suffices() {
            Some(staged) => {
                self.write(Write::Pruned(staged));
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
        self.start_automatic(DueCompaction { id, reason: Reason::Threshold, asked: Asked::Unasked });
    }

    /// Starts a compaction.
    pub(super) fn start_automatic(&mut self, due: DueCompaction) {
        if planted(Fault::NextNotStarted) {
            return;
        }
        let DueCompaction { id, reason, asked } = due;
        let kind = OperationKind::Compaction(reason);
        let stop = Stop::default();
        let opening = self.opening(kind, Place::Top(id.clone()), asked, self.state.usage(), stop.clone());
        let operation = self.start_operation(opening);
        let request = self.plan_request(None, Initiator::User, Cause::Due);
        self.start(Job::Plan(PlanOrder { id, request, method: None, stop }));
        self.work = Work::Preparing(operation);
    }

    /// Records the end of a compaction: an automatic one that did not complete is not repeated immediately.
    pub(super) fn rests_after(&mut self, kind: &OperationKind, end: &End<Box<CompactionResult>>) {
        self.rest = match end {
            End::Completed(_) => None,
            _ if kind.is_automatic() => {
                let fullness = self.state.measure();
                Some(Rest { context_tokens: fullness.context_tokens, threshold: fullness.budget.threshold })
            }
            _ => self.rest,
        };
    }
}
