//! A compaction that completed: its entry, its usage, and the entries that came since its plan.

mod unread;

use super::{Open, Operations};
use crate::{
    conversation::entry::{Body, Entry},
    ids::OperationId,
    protocol::{
        events::Reason,
        types::{CompactionResult, Usage},
    },
    simulator::observer::{Rule, Verdict, broken, file::File, require},
};

impl Operations {
    /// The plan of an operation is made again. The first one is made for the window that the start names, this one for the
    /// window that the client was told since: the model may have changed.
    pub(super) fn is_planned_again(&mut self, id: &OperationId) {
        let Some(window) = self.window else { return };
        self.open.iter_mut().filter(|open| open.id == *id).for_each(|open| open.window = window);
    }

    /// Whether a compaction that completed agrees with its entry.
    pub(super) fn completed(
        &self,
        open: &Open,
        reason: Reason,
        result: &CompactionResult,
        usage: &Usage,
        file: &File,
    ) -> Verdict {
        unread::stays(open, reason, result, file)?;
        let id = &open.id;
        let announced = open.announced.iter().copied();
        let Some(place) =
            announced.rev().find(|at| file.entry(*at).is_some_and(|it| Some(&it.id) == result.entry_id.as_ref()))
        else {
            return broken(Rule::EndFollowsEntry, format!("{id:?} ends before {:?} is announced", result.entry_id));
        };
        require(open.usage.as_ref() == Some(usage), Rule::EndFollowsEntry, || {
            format!("{id:?} ends with {usage:?}, and {:?} was sent behind its entry", open.usage)
        })?;
        let Some(plan) = self.plans.get(id) else { return Ok(()) };
        let above: Vec<_> = file.above(Some(place)).skip(1).collect();
        // A broken line has an entry in the plan and none here.
        let last = plan.iter().rev().find(|id| file.newest(id).is_some() || !file.is_on_broken_line(id));
        let newer = above.iter().take_while(|entry| last != Some(&entry.id)).count();
        require(last.is_none() || newer < above.len(), Rule::CoveredUnchanged, || {
            format!("{id:?} covers {last:?}, which is not above its entry")
        })?;
        let changes = above[..newer].iter().find(|entry| match &entry.body {
            Body::Compaction(_) => true,
            // An edit outside of what a summary ahead covers is kept.
            Body::ContextEdit(_) => !file.another_wrote() && !self.ahead.is_spliced(id),
            _ => entry.undoes().is_some(),
        });
        // The parent of a broken line is not known here, and entries of another branch seem to be above it.
        let is_known = plan.last().is_none_or(|id| file.newest(id).is_some() || !file.is_on_broken_line(id));
        require(changes.is_none() || !is_known, Rule::CoveredUnchanged, || {
            format!("{changes:?} came between the plan of {id:?} and its entry")
        })?;
        if let Some(first_kept) = result.first_kept_entry_id.as_ref().filter(|_| is_known) {
            self.ahead.completed(id, plan, first_kept, &above[..newer])?;
        }
        if is_known {
            self.ahead.written(id, plan, result.first_kept_entry_id.as_ref())?;
        }
        // Newer lines may be messages, or change the settings or the model by which everything is measured.
        let measures = |entry: &Entry| matches!(entry.body, Body::ModelChange { .. }) || entry.is_ours("session");
        let grew = above[..newer].iter().any(|entry| entry.in_context() || measures(entry));
        // The window of the session may have changed since: another model was stored, or a window was learned.
        require(grew || result.tokens_after <= open.window, Rule::CompactionFits, || {
            format!("{id:?} leaves {} tokens in a window of {}", result.tokens_after, open.window)
        })
    }
}
