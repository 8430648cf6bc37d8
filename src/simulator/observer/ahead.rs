//! Summaries ahead of the threshold: one at a time, beside no compaction, and never spliced in where something that they
//! cover was changed.

use super::{Rule, Verdict, require};
use crate::{
    conversation::entry::{Body, Entry},
    ids::{EntryId, OperationId},
    session::stop::Stop,
};
use std::{collections::HashMap, sync::Arc};

/// The summary that was begun last.
#[derive(Debug)]
struct Begun {
    id: OperationId,
    stop: Stop,
    is_ready: bool,
    /// Whether its job was stopped in an earlier input. The effects of an input are seen behind all that it does.
    is_stopped: bool,
}

/// Summaries ahead of the threshold, in a life of a session.
#[derive(Debug, Default)]
pub struct Ahead {
    begun: Option<Begun>,
    /// Compactions whose summary was begun ahead, by whether it was ready at their start.
    spliced: HashMap<OperationId, bool>,
}

impl Ahead {
    /// A summary begins. `running`: the operation that runs.
    pub fn begins(&mut self, id: &OperationId, stop: &Stop, running: Option<&OperationId>) -> Verdict {
        let other = self.running().or(running);
        require(other.is_none(), Rule::OneAhead, || format!("{id:?} begins ahead while {other:?} runs"))?;
        self.begun = Some(Begun { id: id.clone(), stop: stop.clone(), is_ready: false, is_stopped: false });
        Ok(())
    }

    /// The summary that is being made.
    pub fn running(&self) -> Option<&OperationId> {
        self.begun.as_ref().filter(|begun| !begun.is_ready && !begun.is_stopped).map(|begun| &begun.id)
    }

    /// Whether a summary was made, or is being made, and may be spliced in.
    pub fn may_serve(&self, id: &OperationId) -> bool {
        self.begun.as_ref().is_some_and(|begun| begun.id == *id && !begun.is_stopped)
    }

    /// Whether there is a summary that may be spliced in.
    pub fn has_one(&self) -> bool {
        self.begun.as_ref().is_some_and(|begun| !begun.is_stopped)
    }

    /// A draft was made, or cannot be made.
    pub fn drafted(&mut self, id: &OperationId) {
        self.begun.iter_mut().filter(|begun| begun.id == *id).for_each(|begun| begun.is_ready = true);
    }

    /// An operation starts.
    pub fn starts(&mut self, id: &OperationId) {
        if let Some(begun) = self.begun.take_if(|begun| begun.id == *id) {
            self.spliced.insert(begun.id, begun.is_ready);
        }
    }

    /// Whether the summary of a compaction was begun before it.
    pub fn was_begun(&self, id: &OperationId) -> bool {
        self.spliced.contains_key(id)
    }

    /// Whether a compaction began with a summary that was ready.
    pub fn is_spliced(&self, id: &OperationId) -> bool {
        self.spliced.get(id) == Some(&true)
    }

    /// A compaction entry was written for a path with these entries, `newer` ones behind the plan.
    pub fn completed(
        &self,
        id: &OperationId,
        plan: &[EntryId],
        first_kept: &EntryId,
        newer: &[&Arc<Entry>],
    ) -> Verdict {
        if !self.is_spliced(id) {
            return Ok(());
        }
        let cut = plan.iter().position(|it| it == first_kept).unwrap_or(plan.len());
        let is_covered = |target: &str| plan[..cut].iter().any(|id| id.as_str() == target);
        let changed = newer.iter().find(|entry| match &entry.body {
            Body::ContextEdit(edit) => is_covered(edit.target_id.as_str()),
            _ => {
                let pin = entry.ours("pin").or_else(|| entry.ours("unpin"));
                pin.and_then(|pin| pin["entryId"].as_str()).is_some_and(is_covered)
            }
        });
        require(changed.is_none(), Rule::SplicedUnchanged, || {
            format!("{id:?} begins with a summary from before {changed:?}")
        })
    }

    /// An input was handled.
    pub fn after_input(&mut self) {
        self.begun.iter_mut().for_each(|begun| begun.is_stopped = begun.stop.requested());
    }

    /// The process dies.
    pub fn crashed(&mut self) {
        self.begun = None;
    }
}
