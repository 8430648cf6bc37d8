//! The kinds of operations that a session runs. A new kind is a variant here and an arm in each method: its events, its
//! status, its place in the lock and its end after a crash follow from them.

mod handoff;
mod transfer;

pub use handoff::{HandedOff, Handoff, said};
pub use transfer::{Lack, Moved, Navigation, Reference, Referred, Transfer, TransferAnswer, Transferred};

use super::operations::{End, Ended, Kind, Standing};
use crate::{
    conversation::spending::Trigger,
    ids::{EntryId, OperationId, SessionId},
    protocol::{
        errors::Failure,
        events::{Event, Reason, RecoveryAction, RecoveryOutcome, RecoveryReason, Strategy},
        notices::Warning,
        types::{CompactAnswer, CompactionResult, ContinueAnswer, Disposition, PromptAnswer, StatusKind, TURN, Usage},
    },
};
use serde::Serialize;

/// A kind of operation, with its cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperationKind {
    /// A compaction.
    Compaction(Reason),
    /// A recovery.
    Recovery(Recovery),
    /// The compaction of a recovery. The turn is repeated after it.
    Recovering(RecoveryReason),
    /// Maintenance of an idle session, around its compaction.
    Idle {
        /// Time since the last activity, in seconds. A lock file does not name it.
        seconds: u64,
    },
    /// A compaction by the strategy `handoff`. The handoff is a part of it, and without a document it summarizes in place.
    Relay(Reason),
    /// A summary that is made ahead of the threshold. It has no events; the compaction that splices it in has them.
    Speculation,
    /// A transfer: a navigation, a handoff or a reference.
    Transfer(Transfer),
    /// A turn that the daemon runs.
    Turn(Opening),
}

impl OperationKind {
    /// Whether it is a turn that the daemon runs.
    #[must_use]
    pub fn is_turn(&self) -> bool {
        matches!(self, Self::Turn(_))
    }

    /// The kind of a compaction that a client asks for.
    pub const BY_CLIENT: Self = Self::Compaction(Reason::Manual);
}

/// The request that a turn begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// `session/prompt`, or a message of the queue.
    Prompt,
    /// `session/continue`.
    Continue,
}

/// The answer of a request for an operation.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum OperationAnswer {
    /// Of a compaction.
    Compact(CompactAnswer),
    /// Of a transfer.
    Transfer(TransferAnswer),
    /// Of a turn with a message.
    Prompt(PromptAnswer),
    /// Of a turn without one.
    Continue(ContinueAnswer),
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
    /// A compaction whose summary begins this session.
    Founded(Box<CompactionResult>, SessionId),
    /// A recovery: there is a context to repeat the turn with.
    Recovered,
    /// Idle maintenance: its compaction completed.
    Maintained,
    /// A compaction by the strategy `handoff`: this session goes on.
    Relayed(SessionId),
    /// A transfer.
    Transferred(Transferred),
    /// A turn, with the stop reason of its last answer.
    Answered(String),
}

impl Product {
    /// The result of a compaction.
    #[must_use]
    pub fn compaction(&self) -> Option<&CompactionResult> {
        match self {
            Self::Compaction(result) | Self::Founded(result, _) => Some(result),
            Self::Recovered | Self::Maintained | Self::Relayed(_) | Self::Transferred(_) | Self::Answered(_) => None,
        }
    }

    /// The session that a compaction or a handoff made.
    #[must_use]
    pub fn new_session(&self) -> Option<&SessionId> {
        match self {
            Self::Founded(_, session) | Self::Relayed(session) => Some(session),
            Self::Transferred(Transferred::HandedOff(made)) => made.session.as_ref(),
            Self::Compaction(_) | Self::Recovered | Self::Maintained | Self::Transferred(_) | Self::Answered(_) => None,
        }
    }

    /// Whether the conversation goes on in another session.
    #[must_use]
    pub fn replaces_session(&self) -> bool {
        !matches!(self, Self::Founded(..)) && self.new_session().is_some()
    }

    /// Whether the session goes on at another entry.
    #[must_use]
    pub fn is_move(&self) -> bool {
        matches!(self, Self::Transferred(Transferred::Moved(_)))
    }
}

impl OperationKind {
    /// Whether no client asked for it.
    #[must_use]
    pub fn is_automatic(&self) -> bool {
        !matches!(self, Self::Compaction(Reason::Manual) | Self::Transfer(_) | Self::Turn(_))
    }

    /// Whether the turn is repeated after it, if it completes.
    #[must_use]
    pub fn repeats_the_turn(&self) -> bool {
        matches!(self, Self::Recovery(_) | Self::Recovering(_))
    }

    /// Whether it is idle maintenance, or the compaction of one. Both give way to everything else.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        matches!(self, Self::Idle { .. } | Self::Compaction(Reason::Idle))
    }

    /// Its reason.
    #[must_use]
    pub fn reason(&self) -> Reason {
        match self {
            Self::Compaction(reason) | Self::Relay(reason) => *reason,
            Self::Speculation => Reason::Threshold,
            Self::Recovery(Recovery { reason, .. }) | Self::Recovering(reason) => (*reason).into(),
            Self::Idle { .. } => Reason::Idle,
            Self::Transfer(_) | Self::Turn(_) => Reason::Manual,
        }
    }

    /// Its reason in the entries of its costs.
    #[must_use]
    pub fn trigger(&self) -> Trigger {
        if *self == Self::Speculation {
            return Trigger::Speculative;
        }
        match self.reason() {
            Reason::Manual => Trigger::Manual,
            Reason::Threshold => Trigger::Threshold,
            Reason::Overflow => Trigger::Overflow,
            Reason::Incomplete => Trigger::Incomplete,
            Reason::Idle => Trigger::Idle,
            Reason::ModelSwitch => Trigger::ModelSwitch,
        }
    }

    /// The error of this operation for a person.
    #[must_use]
    pub fn failed(&self, failure: &str) -> String {
        if let Self::Transfer(transfer) = self {
            return transfer.failed(failure);
        }
        if self.is_turn() {
            return failure.to_owned();
        }
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
            strategy: if matches!(self, Self::Relay(_)) { Strategy::Handoff } else { Strategy::ContextFull },
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
            new_session_id: ended.end.product().and_then(Product::new_session).cloned(),
            error: failure.map(Failure::data),
            error_message: failure.map(|failure| self.failed(&failure.to_string())),
            skipped_reason: ended.end.skipped(),
            will_retry: self.repeats_the_turn() && matches!(ended.end, End::Completed(_)),
            will_continue: ended.continues && matches!(ended.end, End::Completed(_)),
            duration_ms: u64::try_from(ended.duration.as_millis()).unwrap_or(u64::MAX),
            usage: ended.usage.clone(),
        }
    }

    fn turn_end(&self, ended: &Ended<'_, Product>) -> Event {
        let failure = ended.end.failure();
        Event::TurnEnd {
            outcome: ended.end.outcome(),
            stop_reason: match ended.end {
                End::Completed(Product::Answered(stop)) => Some(stop.clone()),
                _ => None,
            },
            usage: ended.usage.clone(),
            error: failure.map(Failure::data),
            error_message: failure.map(ToString::to_string),
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
            will_retry: outcome == RecoveryOutcome::Recovered,
            error: failure.map(Failure::data),
            error_message: failure.map(|failure| self.failed(&failure.to_string())),
        }
    }
}

/// The name of a compaction in the lock, in answers and in errors.
const COMPACTION: &str = "compaction";
/// The name of a recovery.
pub const RECOVERY: &str = "recovery";
/// The name of idle maintenance.
pub const IDLE: &str = "idle";
/// The name of a summary that is made ahead.
pub const SPECULATION: &str = "speculation";

impl Kind for OperationKind {
    type Product = Product;
    type Answer = OperationAnswer;

    fn name(&self) -> &'static str {
        match self {
            Self::Compaction(_) | Self::Recovering(_) | Self::Relay(_) => COMPACTION,
            Self::Recovery(_) => RECOVERY,
            Self::Idle { .. } => IDLE,
            Self::Speculation => SPECULATION,
            Self::Transfer(transfer) => transfer.name(),
            Self::Turn(_) => TURN,
        }
    }

    fn cause(&self) -> String {
        if self.is_turn() {
            return "prompt".to_owned();
        }
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
            IDLE => Some(Self::Idle { seconds: 0 }),
            SPECULATION => Some(Self::Speculation),
            TURN => Some(Self::Turn(Opening::Prompt)),
            name => Transfer::read(name).map(Self::Transfer),
        }
    }

    fn standing(&self) -> Standing {
        match self {
            Self::Compaction(_) | Self::Recovery(_) | Self::Recovering(_) | Self::Relay(_) => {
                Standing::Foreground(StatusKind::Compacting)
            }
            Self::Idle { .. } | Self::Speculation => Standing::Background,
            Self::Transfer(transfer) => Standing::Foreground(transfer.status()),
            Self::Turn(_) => Standing::Foreground(StatusKind::Running),
        }
    }

    fn gives_way_to(&self, other: &Self) -> bool {
        self.is_idle() || *self == Self::Speculation || self.is_turn() && *other == Self::BY_CLIENT
    }

    fn runs_inside(&self, other: &Self) -> bool {
        let is_maintenance = matches!(self, Self::Compaction(_) | Self::Recovery(_) | Self::Relay(_));
        other.is_turn() && is_maintenance && *self != Self::BY_CLIENT && !self.is_idle()
    }

    fn goes_on_after_inner(&self) -> bool {
        self.is_turn()
    }

    fn start(&self, before: &Usage) -> Option<Event> {
        Some(match self {
            Self::Compaction(reason) | Self::Relay(reason) => self.compaction_start(*reason, before),
            Self::Recovering(reason) => self.compaction_start((*reason).into(), before),
            Self::Recovery(Recovery { reason, removed, action }) => {
                Event::RecoveryStart { reason: *reason, removed_entry_id: removed.clone(), action: *action }
            }
            Self::Idle { seconds } => {
                Event::IdleStart { context_tokens: before.context_tokens, idle_seconds: *seconds }
            }
            Self::Speculation => return None,
            Self::Turn(_) => Event::TurnStart {},
            Self::Transfer(transfer) => return transfer.start(),
        })
    }

    fn end(&self, ended: &Ended<'_, Product>) -> Option<Event> {
        Some(match self {
            Self::Compaction(reason) | Self::Relay(reason) => self.compaction_end(*reason, ended),
            Self::Recovering(reason) => self.compaction_end((*reason).into(), ended),
            Self::Recovery(_) => self.recovery_end(ended.end),
            Self::Idle { .. } => Event::IdleEnd { outcome: ended.end.outcome(), skipped_reason: ended.end.skipped() },
            Self::Speculation => return None,
            Self::Turn(_) => self.turn_end(ended),
            Self::Transfer(transfer) => return transfer.end(ended.end),
        })
    }

    fn untold(&self, end: &End<Product>) -> Option<Warning> {
        match self {
            Self::Transfer(transfer) => transfer.untold(end),
            _ => None,
        }
    }

    fn last(&self, end: &End<Product>) -> Option<Event> {
        match self {
            Self::Transfer(transfer) => transfer.last(end),
            _ => None,
        }
    }

    fn started(&self, id: &OperationId) -> OperationAnswer {
        match self {
            Self::Transfer(transfer) => OperationAnswer::Transfer(transfer.started(id)),
            Self::Turn(Opening::Prompt) => {
                OperationAnswer::Prompt(PromptAnswer { turn_id: id.clone(), disposition: Disposition::Started })
            }
            Self::Turn(Opening::Continue) => OperationAnswer::Continue(ContinueAnswer { turn_id: id.clone() }),
            _ => OperationAnswer::Compact(CompactAnswer::Started { operation_id: id.clone() }),
        }
    }

    fn ended(&self, id: &OperationId, end: &End<Product>) -> OperationAnswer {
        if let Self::Transfer(transfer) = self {
            return OperationAnswer::Transfer(transfer.ended(id, end));
        }
        OperationAnswer::Compact(CompactAnswer::Ended {
            operation_id: id.clone(),
            outcome: end.outcome(),
            result: end.product().and_then(Product::compaction).cloned().map(Box::new),
            new_session_id: end.product().and_then(Product::new_session).cloned(),
            error: end.failure().map(Failure::data),
            error_message: end.failure().map(|failure| self.failed(&failure.to_string())),
            skipped_reason: end.skipped(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::errors::Nothing;
    use serde_json::{Value, json};
    use std::time::Duration;

    const INSIDE: OperationKind = OperationKind::Recovering(RecoveryReason::Overflow);
    const AT_THRESHOLD: OperationKind = OperationKind::Compaction(Reason::Threshold);

    fn recovery(reason: RecoveryReason) -> OperationKind {
        OperationKind::Recovery(Recovery { reason, removed: Some("e1".into()), action: RecoveryAction::Compact })
    }

    fn json(event: Option<Event>) -> Value {
        serde_json::to_value(event.expect("an event")).expect("JSON")
    }

    fn usage() -> Usage {
        let state = crate::session::core::held::Held::new();
        state.core.state().usage()
    }

    fn end(kind: &OperationKind, end: &End<Product>) -> Value {
        json(kind.end(&Ended { end, usage: &usage(), duration: Duration::from_millis(7), continues: false }))
    }

    fn failed() -> End<Product> {
        End::Failed(Failure::Internal("it failed".to_owned()))
    }

    const SKIPPED: End<Product> = End::Skipped(Nothing::WouldNotShrink);

    #[test]
    fn only_a_compaction_that_a_client_asks_for_is_not_automatic() {
        assert!(!OperationKind::Compaction(Reason::Manual).is_automatic());
        for kind in [AT_THRESHOLD, INSIDE, recovery(RecoveryReason::Overflow)] {
            assert!(kind.is_automatic(), "{kind:?}");
        }
    }

    #[test]
    fn the_lock_names_a_compaction_and_the_recovery_around_it_apart() {
        assert_eq!((INSIDE.name(), INSIDE.cause()), ("compaction", "overflow".to_owned()));
        let recovery = recovery(RecoveryReason::Incomplete);
        assert_eq!((recovery.name(), recovery.cause()), ("recovery", "incomplete".to_owned()));
        let read = OperationKind::read("compaction", "threshold");
        assert_eq!(read, Some(AT_THRESHOLD));
        assert_eq!(OperationKind::read("sleep", "manual"), None);
    }

    #[test]
    fn idle_maintenance_runs_in_the_background_and_gives_way_to_all_with_its_compaction() {
        let (idle, inside) = (OperationKind::Idle { seconds: 300 }, OperationKind::Compaction(Reason::Idle));
        assert_eq!(idle.standing(), Standing::Background);
        let start = json(idle.start(&usage()));
        assert_eq!(start, json!({"type": "idle_start", "contextTokens": usage().context_tokens, "idleSeconds": 300}));
        assert_eq!(end(&idle, &End::Cancelled), json!({"type": "idle_end", "outcome": "cancelled"}));
        let skipped = json!({"type": "idle_end", "outcome": "skipped", "skippedReason": "would_not_shrink"});
        assert_eq!(end(&idle, &SKIPPED), skipped);
        for other in [OperationKind::Compaction(Reason::Manual), AT_THRESHOLD, recovery(RecoveryReason::Overflow)] {
            assert!(idle.gives_way_to(&other) && inside.gives_way_to(&other), "{other:?}");
            assert!(!other.gives_way_to(&idle) && !other.gives_way_to(&inside), "{other:?}");
        }
        assert_eq!((idle.name(), idle.cause()), ("idle", "idle".to_owned()));
        assert_eq!(OperationKind::read("idle", "idle"), Some(OperationKind::Idle { seconds: 0 }));
    }

    #[test]
    fn an_error_names_the_operation_for_a_person() {
        for (kind, expected) in [
            (OperationKind::Compaction(Reason::Manual), "it failed"),
            (AT_THRESHOLD, "Auto-compaction failed: it failed"),
            (OperationKind::Compaction(Reason::Idle), "Auto-compaction failed: it failed"),
            (OperationKind::Compaction(Reason::ModelSwitch), "Auto-compaction failed: it failed"),
            (INSIDE, "Context overflow recovery failed: it failed"),
            (recovery(RecoveryReason::Overflow), "Context overflow recovery failed: it failed"),
            (recovery(RecoveryReason::Incomplete), "Incomplete response recovery failed: it failed"),
        ] {
            assert_eq!(kind.failed("it failed"), expected, "{kind:?}");
        }
    }

    #[test]
    fn the_start_of_a_compaction_says_its_sizes_and_whether_the_turn_is_repeated() {
        let before = usage();
        for (kind, reason, will_retry) in [(INSIDE, "overflow", true), (AT_THRESHOLD, "threshold", false)] {
            let expected = json!({"type": "compaction_start", "reason": reason, "strategy": "context_full",
                "tokensBefore": before.context_tokens, "contextWindow": before.context_window,
                "thresholdTokens": before.threshold_tokens, "willRetry": will_retry});
            assert_eq!(json(kind.start(&before)), expected);
        }
        let expected =
            json!({"type": "recovery_start", "reason": "incomplete", "removedEntryId": "e1", "action": "compact"});
        assert_eq!(json(recovery(RecoveryReason::Incomplete).start(&before)), expected);
    }

    #[test]
    fn the_turn_is_repeated_behind_a_compaction_of_a_recovery_that_completes() {
        for (kind, the_end, expected) in [
            (INSIDE, End::Completed(Product::Recovered), true),
            (INSIDE, failed(), false),
            (INSIDE, End::Cancelled, false),
            (INSIDE, SKIPPED, false),
            (AT_THRESHOLD, End::Completed(Product::Recovered), false),
        ] {
            assert_eq!(end(&kind, &the_end)["willRetry"], expected, "{kind:?}: {the_end:?}");
        }
    }

    #[test]
    fn the_end_of_a_compaction_says_its_error_or_why_it_was_skipped() {
        let ended = end(&INSIDE, &failed());
        assert_eq!((&ended["outcome"], &ended["error"]["code"]), (&json!("failed"), &json!("internal")));
        let message = ended["errorMessage"].as_str().expect("a text");
        assert!(message.starts_with("Context overflow recovery failed: "), "{message}");
        assert_eq!((&ended["durationMs"], &ended["skippedReason"]), (&json!(7), &Value::Null));
        let ended = end(&INSIDE, &SKIPPED);
        assert_eq!((&ended["outcome"], &ended["skippedReason"]), (&json!("skipped"), &json!("would_not_shrink")));
        assert_eq!((&ended["error"], &ended["errorMessage"]), (&Value::Null, &Value::Null));
    }

    #[test]
    fn a_recovery_ends_recovered_cancelled_or_failed() {
        let kind = recovery(RecoveryReason::Overflow);
        let expected = json!({"type": "recovery_end", "outcome": "recovered", "willRetry": true});
        assert_eq!(end(&kind, &End::Completed(Product::Recovered)), expected);
        let expected = json!({"type": "recovery_end", "outcome": "cancelled", "willRetry": false});
        assert_eq!(end(&kind, &End::Cancelled), expected);
        for (the_end, code) in [(failed(), "internal"), (SKIPPED, "nothing_to_compact")] {
            let ended = end(&kind, &the_end);
            assert_eq!((&ended["outcome"], &ended["willRetry"]), (&json!("failed"), &json!(false)));
            assert_eq!(ended["error"]["code"], code);
            let message = ended["errorMessage"].as_str().expect("a text");
            assert!(message.starts_with("Context overflow recovery failed: "), "{message}");
        }
    }

    #[test]
    fn the_answer_of_a_request_that_waited_says_the_end() {
        let id: OperationId = "op".into();
        let answer = |end: &End<Product>| {
            serde_json::to_value(OperationKind::Compaction(Reason::Manual).ended(&id, end)).expect("JSON")
        };
        let ended = answer(&failed());
        assert_eq!((&ended["outcome"], &ended["error"]["code"]), (&json!("failed"), &json!("internal")));
        let ended = answer(&SKIPPED);
        assert_eq!((&ended["outcome"], &ended["skippedReason"]), (&json!("skipped"), &json!("would_not_shrink")));
    }
}
