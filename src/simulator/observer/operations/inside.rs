//! Hooks and retries inside of operations: the lock lists each from before its start to its end, and those of a life before
//! end as failed, before their operation.

use super::Operations;
use crate::{
    ids::OperationId,
    log::{Inside, Unfinished},
    protocol::{
        events::{Event, HookOutcome, RetrySource},
        types::{HookEvent, TURN},
    },
    simulator::observer::{Rule, Verdict, broken, require},
    wire::outbox::About,
};

/// The hook or the retry of an event, as a lock lists it.
fn of(event: &Event) -> Option<Inside> {
    match event {
        Event::HookStart { hook } | Event::HookEnd { hook, .. } => {
            let hook = match hook {
                HookEvent::SessionBeforeCompact => "session_before_compact",
                HookEvent::SessionCompacting => "session_compacting",
                HookEvent::SessionCompactDraft => "session_compact_draft",
                HookEvent::SessionBeforeTree => "session_before_tree",
            };
            Some(Inside::Hook { hook: hook.to_owned() })
        }
        Event::RetryStart { source, attempt, .. } | Event::RetryEnd { source, attempt, .. } => {
            let retry = match source {
                RetrySource::Turn => "turn",
                RetrySource::History => "history",
                RetrySource::TurnPrefix => "turn_prefix",
                RetrySource::ShortSummary => "short_summary",
                RetrySource::Branch => "branch",
                RetrySource::Handoff => "handoff",
            };
            Some(Inside::Retry { retry: retry.to_owned(), attempt: *attempt })
        }
        _ => None,
    }
}

/// The hooks and retries that a record lists, in the order of their starts, without those of a turn.
pub(super) fn listed(running: &[Unfinished]) -> Vec<(OperationId, Inside)> {
    let others = running.iter().filter(|it| it.kind != TURN);
    let inside = others.flat_map(|it| it.inside.iter().map(|inside| (it.operation_id.clone(), inside.clone())));
    inside.collect()
}

impl Operations {
    /// A hook or a retry starts.
    pub fn starts_inside(&mut self, about: &About, event: &Event, running: &[Unfinished]) -> Verdict {
        let Some(inside) = of(event) else { return Ok(()) };
        let has_lock = self.has_lock;
        let Some(open) = self.of(about) else { return broken(Rule::RetriesEnd, format!("{inside:?} of no operation")) };
        let runs = open.steps.contains(&inside);
        let step = (open.id.clone(), inside.clone());
        open.steps.push(inside);
        require(!runs, Rule::RetriesEnd, || format!("{step:?} starts again"))?;
        require(!has_lock || listed(running).contains(&step), Rule::StartIsRecorded, || {
            format!("{step:?} starts, and the lock lists {running:?}")
        })
    }

    /// A hook or a retry ends.
    pub fn ends_inside(&mut self, about: &About, event: &Event) -> Verdict {
        let Some(inside) = of(event) else { return Ok(()) };
        let Some(open) = self.of(about) else { return broken(Rule::RetriesEnd, format!("{inside:?} of no operation")) };
        match open.steps.iter().position(|it| *it == inside) {
            Some(at) => {
                open.steps.remove(at);
                Ok(())
            }
            None => broken(Rule::RetriesEnd, format!("{inside:?} ends without its start")),
        }
    }

    /// A hook or a retry that the life before left ends.
    pub fn ends_inside_from_before(&mut self, about: &About, event: &Event) -> Verdict {
        let (Some(inside), Some(id)) = (of(event), about.operation.clone()) else { return Ok(()) };
        let step = (id, inside);
        require(self.left_inside.last() == Some(&step), Rule::InnerEndsFirst, || {
            format!("{step:?} ends, and {:?} are left in the lock", self.left_inside)
        })?;
        let fails = match event {
            Event::HookEnd { outcome, .. } => *outcome == HookOutcome::Error,
            Event::RetryEnd { success, .. } => !success,
            _ => false,
        };
        require(fails, Rule::EveryStartEnds, || format!("{step:?} was lost and does not fail"))?;
        self.left_inside.pop();
        self.owed_inside.retain(|it| *it != step);
        Ok(())
    }

    /// Whether hooks and retries of an operation are left by the life before.
    pub fn has_left_inside(&self, about: &About) -> bool {
        self.left_inside.iter().any(|(id, _)| about.operation.as_ref() == Some(id))
    }

    /// Hooks and retries of an operation that the life before left end before it.
    pub(super) fn inside_has_ended(&self, id: &OperationId) -> Verdict {
        let left = self.left_inside.iter().chain(&self.owed_inside).find(|(of, _)| of == id);
        require(left.is_none(), Rule::InnerEndsFirst, || format!("{id:?} ends before {left:?}"))
    }

    /// The hooks and retries that are open.
    pub(super) fn open_inside(&self) -> impl Iterator<Item = (OperationId, Inside)> {
        self.open.iter().flat_map(|open| open.steps.iter().map(|step| (open.id.clone(), step.clone())))
    }

    /// An input was handled: the lock lists nothing that has ended.
    pub fn inside_is_open(&self, running: &[Unfinished]) -> Verdict {
        let open: Vec<_> = self.open_inside().collect();
        let ended = listed(running).into_iter().find(|step| self.has_lock && !open.contains(step));
        require(ended.is_none(), Rule::RecordEmpties, || format!("{ended:?} has ended and is left in the lock"))
    }
}
