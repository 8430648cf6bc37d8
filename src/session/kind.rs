//! The kinds of operations that a session runs. A new kind is a variant here and an arm in each method: its events, its
//! status, its place in the lock and its end after a crash follow from them.

use super::{
    fault::{Fault, planted},
    operations::{End, Ended, Kind, Standing},
};
use crate::{
    ids::{EntryId, OperationId},
    protocol::{
        errors::Failure,
        events::{Event, Reason, RecoveryAction, RecoveryOutcome, RecoveryReason, Strategy},
        types::{CompactAnswer, CompactionResult, StatusKind, Usage},
    },
};

/// A kind of operation, with its cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperationKind {
    /// A compaction.
    Compaction(Reason),
    /// A recovery.
    Recovery(Recovery),
    /// The compaction of a recovery. The turn is repeated behind it.
    Recovering(RecoveryReason),
}

/// A recovery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovery {
    /// Its reason.
    pub reason: RecoveryReason,
    /// The answer that leaves the context. A lock file does not name it.
    pub removed: Option<EntryId>,
    /// Its remedy.
    pub action: RecoveryAction,
}

/// The result of an operation.
#[derive(Debug)]
pub enum Product {
    /// A compaction.
    Compaction(Box<CompactionResult>),
    /// A recovery: there is a context to repeat the turn with.
    Recovered,
}

impl Product {
    /// The result of a compaction.
    #[must_use]
    pub fn compaction(&self) -> Option<&CompactionResult> {
        match self {
            Self::Compaction(result) => Some(result),
            Self::Recovered => None,
        }
    }
}

impl OperationKind {
    /// Whether no client asked for it.
    #[must_use]
    pub fn is_automatic(&self) -> bool {
        *self != Self::Compaction(Reason::Manual)
    }

    /// Whether the turn is repeated behind it, if it completes.
    #[must_use]
    pub fn repeats_the_turn(&self) -> bool {
        !matches!(self, Self::Compaction(_))
    }

    /// Its reason.
    #[must_use]
    pub fn reason(&self) -> Reason {
        match self {
            Self::Compaction(reason) => *reason,
            Self::Recovery(Recovery { reason, .. }) | Self::Recovering(reason) => (*reason).into(),
        }
    }

    /// The error of this operation for a person.
    #[must_use]
    pub fn failed(&self, failure: &str) -> String {
        let what = match self.reason() {
            Reason::Manual => return failure.to_owned(),
            Reason::Overflow => "Context overflow recovery",
            Reason::Incomplete => "Incomplete response recovery",
            Reason::Threshold | Reason::Idle | Reason::ModelSwitch => "Auto-compaction",
        };
        format!("{what} failed: {failure}")
    }

    fn compaction_start(&self, reason: Reason, before: &Usage) -> Event {
        Event::CompactionStart {
            reason,
            strategy: Strategy::ContextFull,
            tokens_before: before.context_tokens,
            context_window: before.context_window.unwrap_or(0),
            threshold_tokens: before.threshold_tokens.unwrap_or(0),
            will_retry: self.repeats_the_turn(),
        }
    }

    fn compaction_end(&self, reason: Reason, ended: &Ended<'_, Product>) -> Event {
        let failure = ended.end.failure();
        Event::CompactionEnd {
            reason,
            outcome: ended.end.outcome(),
            result: ended.end.product().and_then(Product::compaction).cloned().map(Box::new),
            new_session_id: None,
            error: failure.map(Failure::data),
            error_message: failure.map(|failure| self.failed(&failure.to_string())),
            skipped_reason: ended.end.skipped().map(str::to_owned),
            will_retry: self.repeats_the_turn() && matches!(ended.end, End::Completed(_)),
            will_continue: false,
            duration_ms: u64::try_from(ended.duration.as_millis()).unwrap_or(u64::MAX),
            usage: ended.usage.clone(),
        }
    }

    fn recovery_end(&self, end: &End<Product>) -> Event {
        let outcome = match end {
            End::Completed(_) => RecoveryOutcome::Recovered,
            End::Cancelled => RecoveryOutcome::Cancelled,
            End::Failed(_) | End::Skipped(_) => RecoveryOutcome::Failed,
        };
        let skipped = match end {
            End::Skipped(nothing) => Some(Failure::NothingToCompact(*nothing)),
            _ => None,
        };
        let failure = end.failure().or(skipped.as_ref());
        Event::RecoveryEnd {
            outcome,
            will_retry: outcome == RecoveryOutcome::Recovered && !planted(Fault::RetryNotSaid),
            error: failure.map(Failure::data),
            error_message: failure.map(|failure| self.failed(&failure.to_string())),
        }
    }
}

/// The name of a compaction in the lock, in answers and in errors.
const COMPACTION: &str = "compaction";
/// The name of a recovery.
pub const RECOVERY: &str = "recovery";

impl Kind for OperationKind {
    type Product = Product;
    type Answer = CompactAnswer;

    fn name(&self) -> &'static str {
        match self {
            Self::Compaction(_) | Self::Recovering(_) => COMPACTION,
            Self::Recovery(_) => RECOVERY,
        }
    }

    fn cause(&self) -> String {
        let name = serde_json::to_value(self.reason()).ok();
        name.and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
    }

    fn read(name: &str, cause: &str) -> Option<Self> {
        match name {
            COMPACTION => Some(Self::Compaction(Reason::read(cause))),
            RECOVERY => {
                let reason = RecoveryReason::read(cause);
                Some(Self::Recovery(Recovery { reason, removed: None, action: RecoveryAction::Retry }))
            }
            _ => None,
        }
    }

    fn standing(&self) -> Standing {
        Standing::Foreground(StatusKind::Compacting)
    }

    fn gives_way_to(&self, _: &Self) -> bool {
        false
    }

    fn start(&self, before: &Usage) -> Option<Event> {
        Some(match self {
            Self::Compaction(reason) => self.compaction_start(*reason, before),
            Self::Recovering(reason) => self.compaction_start((*reason).into(), before),
            Self::Recovery(Recovery { reason, removed, action }) => {
                Event::RecoveryStart { reason: *reason, removed_entry_id: removed.clone(), action: *action }
            }
        })
    }

    fn end(&self, ended: &Ended<'_, Product>) -> Option<Event> {
        Some(match self {
            Self::Compaction(reason) => self.compaction_end(*reason, ended),
            Self::Recovering(reason) => self.compaction_end((*reason).into(), ended),
            Self::Recovery(_) => self.recovery_end(ended.end),
        })
    }

    fn started(&self, id: &OperationId) -> CompactAnswer {
        CompactAnswer::Started { operation_id: id.clone() }
    }

    fn ended(&self, id: &OperationId, end: &End<Product>) -> CompactAnswer {
        CompactAnswer::Ended {
            operation_id: id.clone(),
            outcome: end.outcome(),
            result: end.product().and_then(Product::compaction).cloned().map(Box::new),
            error: end.failure().map(Failure::data),
            skipped_reason: end.skipped().map(str::to_owned),
        }
    }
}
