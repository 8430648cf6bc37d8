//! How a session stands: what is due, and what may start. A view of the core that changes nothing.

pub mod load;

use super::{Core, command::Command, parts::facts::Facts};
use crate::{
    compaction::decide::{self, Automatic, Decision, at_threshold},
    protocol::errors::Failure,
    session::{
        fault::{Fault, planted},
        kind::{OperationKind, Product},
        operation::Operation,
        operations::End,
    },
};

/// A view of a session between two changes of it.
#[derive(Clone, Copy)]
pub(super) struct Standing<'a> {
    pub(super) core: &'a Core,
}

impl<'a> Standing<'a> {
    /// How the session stands now.
    pub(super) fn of(core: &'a Core) -> Self {
        Self { core }
    }

    /// The facts now, for a part.
    pub(super) fn facts(&self) -> Facts<'a> {
        self.core.base.facts()
    }
}

impl Standing<'_> {
    /// The decision at the leaf as a sentence, or the reason of a recovery that failed there.
    pub(super) fn why(&self) -> String {
        match (
            self.core.recoveries.failed_at(self.core.base.state.path().visible_leaf()),
            self.core.base.work.operation(),
        ) {
            (Some(failed), _) => failed.to_owned(),
            (None, Some(running)) => format!("A compaction is running ({}). {}", running.id, self.decision()),
            (None, None) => match self.core.upkeep.ahead.why(&self.facts()) {
                Some(ahead) => format!("{ahead} {}", self.decision()),
                None => self.decision().to_string(),
            },
        }
    }

    /// The decision at the leaf.
    pub(super) fn decision(&self) -> Decision {
        let state = &self.core.base.state;
        let cold_over = self.core.upkeep.cold.compact_over(state, self.core.base.stamps.now());
        let facts = state.measure().facts(state.path(), self.core.upkeep.rest, cold_over);
        let facts = decide::Facts { goes_on_to: self.core.upkeep.ahead.goes_on_to(&self.core.base.state), ..facts };
        match self.core.base.writable() {
            Ok(()) => at_threshold(facts),
            Err(_) => at_threshold(decide::Facts { automatic: Automatic::ReadOnly, ..facts }),
        }
    }

    /// The end of a recovery that leaves the context as it is. It fails where no request with this context fits the window
    /// and no maintenance makes the context smaller.
    pub(super) fn with_room(&self) -> End<Product> {
        let decision = self.decision();
        match self.core.base.state.measure().too_large(self.core.base.state.path()) {
            Some(floor) if !decision.is_due() => {
                let why = self.core.upkeep.relays.or_goes_on_elsewhere(decision.to_string());
                End::Failed(Failure::OverWindow { floor, why })
            }
            _ => End::Completed(Product::Recovered),
        }
    }

    /// Whether maintenance may start.
    pub(super) fn may_maintain(&self) -> bool {
        self.core.base.ending.goes_on()
            && !self.core.base.work.is_in_front()
            && self.core.unbegun.is_empty()
            && self.core.base.writable().is_ok()
            && !self.core.base.state.lacks_past()
    }

    /// Whether events that came during maintenance can be decided about after it: the path is known. A session that ends
    /// does not wait for that.
    pub(super) fn may_decide(&self) -> bool {
        !self.core.base.state.lacks_past() || !self.core.base.ending.goes_on()
    }

    /// Whether a compaction is due by an estimate, while entries are being counted.
    pub(super) fn seems_due(&self) -> bool {
        self.core.base.counting.runs() && self.maintenance_is_due()
    }

    /// Whether maintenance is due and may start.
    pub(super) fn maintenance_is_due(&self) -> bool {
        self.may_maintain() && is_due(&self.decision())
    }

    /// Whether an operation makes the context smaller. Maintenance that is due starts after any other.
    pub(super) fn is_maintenance(&self, operation: &Operation) -> bool {
        !matches!(operation.kind, OperationKind::Transfer(_)) || self.core.base.relay().is_some()
    }

    /// Whether an automatic compaction that did not complete lets no other one start.
    pub(super) fn rests(&self) -> bool {
        // Each append asks, and a measurement of a large context takes time.
        self.core.upkeep.rest.is_some_and(|rest| {
            let fullness = self.core.base.state.measure();
            rest.holds(fullness.context_tokens, fullness.budget.threshold)
        })
    }

    /// Whether an operation runs that makes the context smaller. Idle maintenance gives way.
    pub(super) fn maintains(&self) -> bool {
        self.core.base.work.is_in_front()
            && self.core.base.work.operation().is_some_and(|operation| self.is_maintenance(operation))
    }

    /// Whether a command needs the index first. A write needs it to know its path. A later write and a close stay
    /// after.
    pub(super) fn waits_for_index(&self, command: &Command) -> bool {
        if self.core.base.index.commands.has(Command::writes) {
            return command.writes() || command.closes();
        }
        matches!(command, Command::Compact(_) | Command::Edit(_) | Command::Transfer(_))
            && self.core.base.state.history().index().is_none()
            && self.core.base.state.path().lacks_its_past()
    }
}

/// Whether maintenance is due by a decision.
pub(super) fn is_due(decision: &Decision) -> bool {
    decision.is_due() || planted(Fault::AlwaysDue)
}
