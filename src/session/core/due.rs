//! Maintenance that is due and has not started.

use super::{edit::Staged, work::Request};
use crate::{
    compaction::recovery::Remedy,
    conversation::attempts::Attempted,
    ids::{EntryId, ModelRef, OperationId},
    protocol::events::{Event, Reason, RecoveryAction, RecoveryReason},
    session::{effects::Ticket, operations::Asked, stop::Stop},
};

/// Maintenance that is due.
#[expect(clippy::large_enum_variant, reason = "one lives at a time")]
pub(super) enum Due {
    /// A recovery from the answer at the leaf.
    Recovery(DueRecovery),
    /// The client repeats the turn with a smaller answer.
    Repeat(DueRepeat),
    /// Entries that bring the context below the threshold, with the event after them.
    Relief(Staged, Event),
    /// A compaction.
    Compaction(DueCompaction),
    /// A compaction that a client asked for after the turn.
    Delayed(Box<Request>),
}

/// A turn that the client repeats with a smaller answer. Nothing runs.
pub(super) struct DueRepeat {
    /// The failed answer that leaves the context.
    pub removed: EntryId,
    /// Largest answer of the next request, in tokens.
    pub max_output: u64,
    pub why: String,
}

/// A compaction that is due.
pub(super) struct DueCompaction {
    pub id: OperationId,
    pub reason: Reason,
    /// Whether an answer outside of a batch names the id before its start event does.
    pub asked: Asked<Ticket>,
    /// The model before the session's, after a change of the model. It may write the summary.
    pub former: Option<ModelRef>,
}

/// A recovery that is due.
pub(super) struct DueRecovery {
    pub id: OperationId,
    pub reason: RecoveryReason,
    /// Whether an answer outside of a batch names the id before its start event does.
    pub asked: Asked<Ticket>,
    /// The answer that leaves the context.
    pub removed: EntryId,
    /// Failed answers before it that leave the context, too.
    pub earlier: Vec<EntryId>,
    pub remedy: Remedy,
    /// Limit and size of the request as the provider states them, in tokens.
    pub stated: Option<(u64, u64)>,
    /// The model of the session.
    pub model: Option<ModelRef>,
    /// Cancels it, before its start too.
    pub stop: Stop,
}

impl DueRecovery {
    /// Whether the turn is to be repeated after it.
    pub(super) fn repeats_the_turn(&self) -> bool {
        !matches!(self.remedy, Remedy::GiveUp(_))
    }

    pub(super) fn action(&self) -> RecoveryAction {
        match self.remedy {
            Remedy::Retry | Remedy::Repeat => RecoveryAction::Retry,
            Remedy::Promote(_) => RecoveryAction::PromoteModel,
            Remedy::Compact(_) | Remedy::GiveUp(_) | Remedy::None => RecoveryAction::Compact,
        }
    }

    /// The attempt as which it counts.
    pub(super) fn attempted(&self) -> Option<Attempted> {
        match (&self.remedy, self.reason) {
            (Remedy::Promote(_), _) => Some(Attempted::Promotion),
            (Remedy::Repeat, _) => Some(Attempted::Repeat),
            (Remedy::Compact(_), RecoveryReason::Overflow) => Some(Attempted::Overflow),
            (Remedy::Compact(_) | Remedy::Retry, RecoveryReason::Incomplete) => Some(Attempted::Incomplete),
            (Remedy::Retry, RecoveryReason::Overflow) | (Remedy::GiveUp(_) | Remedy::None, _) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{compaction::recovery::Share, conversation::entry::Attempts};

    fn due(remedy: Remedy, reason: RecoveryReason) -> DueRecovery {
        DueRecovery {
            id: "operation".into(),
            reason,
            asked: Asked::Unasked,
            removed: "answer".into(),
            earlier: Vec::new(),
            remedy,
            stated: None,
            model: None,
            stop: Stop::default(),
        }
    }

    #[test]
    fn a_recovery_counts_as_an_attempt_by_its_remedy_and_its_reason() {
        use Attempted::{Incomplete, Overflow, Promotion, Repeat};
        let larger = ModelRef::parse("p/large").expect("a name");
        for (remedy, overflow, incomplete) in [
            (Remedy::Promote(larger), Some(Promotion), Some(Promotion)),
            (Remedy::Compact(Share::WHOLE), Some(Overflow), Some(Incomplete)),
            (Remedy::Retry, None, Some(Incomplete)),
            (Remedy::Repeat, Some(Repeat), Some(Repeat)),
            (Remedy::GiveUp(Attempts::default()), None, None),
            (Remedy::None, None, None),
        ] {
            assert_eq!(due(remedy.clone(), RecoveryReason::Overflow).attempted(), overflow, "{remedy:?}");
            assert_eq!(due(remedy.clone(), RecoveryReason::Incomplete).attempted(), incomplete, "{remedy:?}");
        }
    }

    #[test]
    fn a_recovery_names_its_remedy_and_whether_the_turn_is_repeated() {
        let larger = ModelRef::parse("p/large").expect("a name");
        for (remedy, action, repeats) in [
            (Remedy::Retry, RecoveryAction::Retry, true),
            (Remedy::Repeat, RecoveryAction::Retry, true),
            (Remedy::Promote(larger), RecoveryAction::PromoteModel, true),
            (Remedy::Compact(Share::WHOLE), RecoveryAction::Compact, true),
            (Remedy::GiveUp(Attempts::default()), RecoveryAction::Compact, false),
        ] {
            let due = due(remedy.clone(), RecoveryReason::Overflow);
            assert_eq!((due.action(), due.repeats_the_turn()), (action, repeats), "{remedy:?}");
        }
    }
}
