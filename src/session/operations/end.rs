//! The ends of operations, and of retries and hooks inside of them.

use super::{Closed, Kind};
use crate::{
    ids::OperationId,
    protocol::{
        codes::WhyNothing,
        errors::{Failure, Nothing},
        events::{Event, HookOutcome, RetrySource},
        notices::Warning,
        types::{HookEvent, Outcome, Usage},
    },
};
use std::time::Duration;

/// How an operation ended.
#[derive(Debug)]
pub enum End<P> {
    /// It made its product.
    Completed(P),
    /// It was cancelled.
    Cancelled,
    /// It failed.
    Failed(Failure),
    /// There was nothing to do.
    Skipped(Nothing),
}

impl<P> End<P> {
    /// The outcome on the wire.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Completed(_) => Outcome::Completed,
            Self::Cancelled => Outcome::Cancelled,
            Self::Failed(_) => Outcome::Failed,
            Self::Skipped(_) => Outcome::Skipped,
        }
    }

    /// The product of a completed operation.
    pub fn product(&self) -> Option<&P> {
        if let Self::Completed(product) = self { Some(product) } else { None }
    }

    /// The reason of a skipped operation, as the protocol names it.
    pub fn skipped(&self) -> Option<WhyNothing> {
        if let Self::Skipped(nothing) = self { Some(nothing.code()) } else { None }
    }

    /// The error of a failed operation.
    pub fn failure(&self) -> Option<&Failure> {
        if let Self::Failed(failure) = self { Some(failure) } else { None }
    }
}

/// An end, with the facts that its event names.
pub struct Ended<'a, P> {
    /// How it ended.
    pub end: &'a End<P>,
    /// The usage after it.
    pub usage: &'a Usage,
    /// The time since its start.
    pub duration: Duration,
    /// Whether the operation around it goes on.
    pub continues: bool,
}

/// The end event of a retry.
#[must_use]
pub fn retry_end(source: RetrySource, attempt: u32, failure: Option<&Failure>) -> Event {
    Event::RetryEnd {
        source,
        success: failure.is_none(),
        attempt,
        error: failure.map(Failure::data),
        error_message: failure.map(ToString::to_string),
    }
}

/// The end event of a hook.
#[must_use]
pub fn hook_end(hook: HookEvent, outcome: HookOutcome, took: Duration, why: Option<String>) -> Event {
    Event::HookEnd {
        hook,
        outcome,
        duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        error_message: why,
    }
}

/// The notices about ends that neither an event nor an answer tells, with the ids of the operations.
pub(super) fn untold<K: Kind, W>(closed: &[Closed<K, W>]) -> Vec<(Option<OperationId>, Warning)> {
    let unanswered = closed.iter().filter(|closed| closed.open.waiting.is_empty());
    unanswered.filter_map(|Closed { open, end, .. }| Some((Some(open.id.clone()), open.kind.untold(end)?))).collect()
}
