//! Events: each goes to the rules of its subject.

use super::{Observer, Rule, Verdict, broken, operations::Ended, prunings, require, turns::daemon::is_turn};
use crate::{
    ids::OperationId,
    log::memory::Disk,
    protocol::{events::Event, notices::NoticeCode, types::Outcome},
    wire::outbox::About,
};
use serde_json::Value;

impl Observer {
    /// An operation that ended as cancelled was named by a cancel, or its request or its session was ended.
    fn cancel_was_asked(&self, id: &OperationId) -> Verdict {
        let cancelled = self.operations.outcome(id) == Some(Outcome::Cancelled);
        let request = self.operations.request_of(id);
        let asked = self.turns.ends()
            || self.later.was_over(id).is_none() && self.turns.may_end_later()
            || self.cancels.was_named(id)
            || self.hooks.cancelled(id)
            || self.idling.may_give_way() && self.operations.was_idle(id)
            || request.is_some_and(|request| self.cancels.was_cancelled(request));
        require(!cancelled || asked, Rule::CancelWasAsked, || format!("{id:?} ends as cancelled"))
    }

    /// An event is sent.
    pub(super) fn emitted(&mut self, about: &About, event: &Event, disk: &Disk) -> Verdict {
        self.operations.names(about, event, self.status.ended_last())?;
        self.budget.event(event);
        self.spending.event(about.operation.as_ref(), event);
        self.calls.event(event)?;
        match event {
            Event::EntryAppended { entry, .. } => {
                let id = about.entry.as_ref();
                let id = id.ok_or("").or_else(|_| broken(Rule::AnnouncedIsDurable, "an entry without an id"))?;
                let announced = self.file.announced(id, entry.as_ref().map(|entry| entry.0.get()))?;
                if let Some(entry) = self.file.entry(announced) {
                    self.later.announced(entry);
                    if self.daemon.is_some() && about.operation.is_none() {
                        self.recoveries.turn_says(entry);
                    }
                }
                self.operations.announced(about, announced);
                self.recoveries.announced(about);
                self.usage.announced(about)
            }
            Event::CompactionStart { .. }
            | Event::RecoveryStart { .. }
            | Event::IdleStart { .. }
            | Event::BranchSummaryStart { .. } => {
                let delayed = |id: &OperationId| self.later.pending().contains(id) && self.file.another_wrote();
                // A summary may be ready, or another program may have ended a turn.
                let may_follow = self.operations.has_one_ahead() || about.operation.as_ref().is_some_and(delayed);
                let id = self.operations.starts(about, event, &disk.running(), &self.requests, &self.later)?;
                self.later.starts(&id);
                self.operations.moves.starts(&id, event);
                self.hooks.compaction_starts(&id, event);
                self.recoveries.starts(&id, event, &self.file)?;
                if self.operations.was_begun_ahead(&id) {
                    self.recoveries.began_ahead();
                }
                match event {
                    Event::IdleStart { .. } => self.idling.starts(&id)?,
                    _ if self.operations.is_idle(&id) => {}
                    _ => return self.status.starts(&id, may_follow),
                }
                self.status.starts_behind(&id)
            }
            Event::CompactionEnd { .. }
            | Event::RecoveryEnd { .. }
            | Event::IdleEnd { .. }
            | Event::BranchSummaryEnd { .. } => {
                if let Event::CompactionEnd { error: Some(error), .. }
                | Event::RecoveryEnd { error: Some(error), .. }
                | Event::BranchSummaryEnd { error: Some(error), .. } = event
                {
                    self.marks.write_failed |= error.code == "storage_error";
                    let detail = || format!("{:?} ended with {error:?}", about.operation);
                    let excused = self.operations.is_left_behind(about) || self.turns.is_lost();
                    require(error.code != "internal" || excused, Rule::NoDefect, detail)?;
                }
                let was_open = about.operation.as_ref().is_some_and(|id| self.operations.is_open(id));
                if let Some(id) = &about.operation {
                    self.hooks.compaction_ends(id, event, self.turns.is_lost(), &self.file)?;
                }
                let ended = self.operations.ends(about, event, &self.file)?;
                match event {
                    Event::RecoveryEnd { outcome, will_retry, .. } => {
                        self.recoveries.ends(*outcome, *will_retry, &self.file)?;
                    }
                    _ if was_open => self.recoveries.compaction_ends(event, &self.file)?,
                    _ => {}
                }
                self.later.ends(&ended.id, self.operations.outcome(&ended.id), &self.file)?;
                self.cancel_was_asked(&ended.id)?;
                self.status.ends(&ended)
            }
            // Those of a turn.
            Event::RetryStart { .. } | Event::RetryEnd { .. } if about.turn.is_some() => Ok(()),
            Event::TurnStart {} | Event::TurnEnd { .. } => {
                let Some(turn) = about.turn.clone() else { return broken(Rule::StartedOnce, "a turn without an id") };
                let starts = matches!(event, Event::TurnStart {});
                self.operations.due.turns(Some(turn.clone()).filter(|_| starts));
                if starts {
                    self.status.starts(&turn, false)
                } else {
                    self.status.ends(&Ended { id: turn, is_part: false })
                }
            }
            Event::HookEnd { .. } | Event::RetryEnd { .. } if self.operations.has_left_inside(about) => {
                self.operations.ends_inside_from_before(about, event)
            }
            Event::HookStart { hook } => match &about.operation {
                Some(id) => {
                    self.hooks.starts(id, *hook, &self.operations)?;
                    self.operations.starts_inside(about, event, &disk.running())
                }
                None => broken(Rule::HooksEnd, "a hook of no operation"),
            },
            Event::HookEnd { hook, outcome, .. } => match &about.operation {
                Some(id) => {
                    self.hooks.ends(id, *hook, *outcome)?;
                    self.operations.ends_inside(about, event)
                }
                None => broken(Rule::HooksEnd, "a hook of no operation"),
            },
            Event::RetryStart { .. } => self.operations.starts_inside(about, event, &disk.running()),
            Event::RetryEnd { .. } => self.operations.ends_inside(about, event),
            Event::UsageUpdated { usage } => {
                if self.daemon.is_some() {
                    self.recoveries.turn_measures(usage);
                }
                self.operations.usage(about, usage);
                self.usage.sent(usage);
                Ok(())
            }
            Event::StatusChanged { status } => {
                if let Some(ended) = self.operations.status_changes(status, disk, &self.requests)? {
                    self.status.ends(&ended)?;
                }
                let turns = self.daemon.as_deref();
                self.status.changed(status, |id| match turns.filter(|_| is_turn(id)) {
                    Some(turns) => turns.is_introduced_in(id, status),
                    None => self.operations.introduced_by_answer(id),
                })
            }
            Event::TreeChanged { .. } => {
                self.later.moves();
                self.recoveries.rewritten(&Value::Null);
                self.contexts.moves(event, &self.file);
                self.operations.moves.changed(about.operation.as_ref(), event, &self.file)
            }
            Event::Settled { .. } => self.status.settled(self.requests.held_by_core()),
            Event::Pruned { entry_ids, tokens_saved, why } => {
                self.operations.relieved();
                prunings::announced(entry_ids, *tokens_saved, why, &self.file)
            }
            Event::ModelChanged { reason, .. } => {
                self.recoveries.model_changes(*reason);
                self.operations.relieved();
                Ok(())
            }
            Event::Notice { code: NoticeCode::AfterTurnNotRecorded, .. } => {
                self.later.not_recorded();
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
