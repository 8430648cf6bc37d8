//! Navigations: they run one at a time, say the leaf that the file has, and leave everything as it was where they do not
//! complete.

use super::{Ended, Open, Operations, What};
use crate::{
    conversation::entry::{Body, Entry},
    ids::{EntryId, OperationId},
    log::memory::Disk,
    protocol::{
        events::Event,
        types::{Outcome, Status, StatusKind},
    },
    session::{
        effects::TicketNumber,
        log_work::{AppendWork, LogWork},
    },
    simulator::observer::{
        Rule, Verdict, broken,
        file::File,
        requests::{Asked, Requests},
        require,
        turns::daemon::is_turn,
    },
};
use serde_json::Value;
use std::{collections::HashSet, sync::Arc};

/// The navigations of a life of a session.
#[derive(Debug, Default)]
pub struct Moves {
    /// The operation of the status that was published last.
    published: Option<OperationId>,
    /// Those without events of their own.
    silent: HashSet<OperationId>,
    /// The requests that are answered at the end of one.
    owners: HashSet<TicketNumber>,
    /// The leaf before the write of the newest one.
    left: Option<EntryId>,
    /// The targets of summaries.
    targets: Vec<(OperationId, EntryId)>,
}

impl Moves {
    /// The status is published.
    pub fn published(&mut self, status: &Status) {
        self.published.clone_from(&status.operation_id);
    }

    /// The request that is answered at the end of the navigation that starts.
    pub fn owner(&mut self, requests: &Requests) -> Option<TicketNumber> {
        let owner = requests.waiting_for_navigation().map(|asked| asked.number).find(|it| !self.owners.contains(it));
        self.owners.extend(owner);
        owner
    }

    /// Whether a navigation has no events of its own.
    pub fn is_silent(&self, id: &OperationId) -> bool {
        self.silent.contains(id)
    }

    /// Work is given to the log.
    pub fn log_goes_out(&mut self, work: &LogWork, file: &File) {
        if let LogWork::Append(work) = work
            && moved_by(work).is_some()
        {
            self.left = visible(file.chain());
        }
    }

    /// A summary of a branch starts.
    pub fn starts(&mut self, id: &OperationId, event: &Event) {
        if let Event::BranchSummaryStart { target_entry_id, .. } = event {
            self.targets.push((id.clone(), target_entry_id.clone()));
        }
    }

    /// `tree_changed` is sent.
    pub fn changed(&self, operation: Option<&OperationId>, event: &Event, file: &File) -> Verdict {
        let Event::TreeChanged { old_leaf_id, new_leaf_id, summary_entry_id, .. } = event else { return Ok(()) };
        if file.another_wrote() {
            return Ok(());
        }
        let leaf = visible(file.announced_chain());
        require(*new_leaf_id == leaf, Rule::LeafIsNamed, || {
            format!("`tree_changed` names the leaf {new_leaf_id:?}, and the file has {leaf:?}")
        })?;
        require(*old_leaf_id == self.left, Rule::LeafIsNamed, || {
            format!("`tree_changed` names the leaf {old_leaf_id:?} before, which was {:?}", self.left)
        })?;
        let Some(summary) = summary_entry_id else { return Ok(()) };
        let place = file.newest(summary);
        let entry = place.and_then(|place| file.entry(place));
        let Some((place, Body::BranchSummary(_))) = place.zip(entry.map(|entry| &entry.body)) else {
            return broken(Rule::SummaryAtTarget, format!("{summary:?} is no summary of a branch: {entry:?}"));
        };
        let target = self.targets.iter().rev().find(|(id, _)| Some(id) == operation).map(|(_, target)| target);
        let Some(target) = target.and_then(|target| file.newest(target)) else {
            return broken(Rule::SummaryAtTarget, format!("{operation:?} has no target"));
        };
        let by_user = file.entry(target).is_some_and(|entry| is_by_user(entry));
        let above = file.above(Some(target)).skip(usize::from(by_user));
        let (expected, parent) = (visible(above), visible(file.above(Some(place)).skip(1)));
        require(parent == expected, Rule::SummaryAtTarget, || {
            format!("{summary:?} stands behind {parent:?}, and {expected:?} was the target")
        })
    }
}

/// A message for which a session goes on before it.
fn is_by_user(entry: &Entry) -> bool {
    entry.outline().is_some_and(|outline| outline.role == crate::conversation::message::outline::Role::User)
}

/// The first entry of a chain that clients see.
fn visible<'a>(mut chain: impl Iterator<Item = &'a Arc<Entry>>) -> Option<EntryId> {
    chain.find(|entry| !entry.is_marker()).map(|entry| entry.id.clone())
}

/// The entry of a navigation among those of a write. A marker after messages says where the leaf stays.
pub(super) fn moved_by(work: &AppendWork) -> Option<&Arc<Entry>> {
    let is_move = |entry: &&Arc<Entry>| entry.is_ours("leaf") || matches!(entry.body, Body::BranchSummary(_));
    let says = work.entries.iter().any(|entry| entry.outline().is_some());
    work.entries.iter().find(is_move).filter(|_| !says)
}

impl Open {
    /// A summary of a branch ends.
    pub(super) fn ends_branch(&self, outcome: Outcome, is_written: bool) -> Verdict {
        let cancelled = outcome == Outcome::Cancelled && is_written;
        require(!cancelled, Rule::CancelledWritesNothing, || format!("{:?} has written {:?}", self.id, self.given))
    }
}

impl Operations {
    /// `status_changed` is sent: a navigation without events begins or ends with it. Returns the one that ends.
    pub fn status_changes(
        &mut self,
        status: &Status,
        disk: &Disk,
        requests: &Requests,
    ) -> Result<Option<Ended>, super::Violation> {
        let id = self.moves.published.clone();
        let moves = matches!(status.kind, StatusKind::SummarizingBranch | StatusKind::Running);
        let ends = self.open.pop_if(|open| open.what == What::Move && (!moves || Some(&open.id) != id.as_ref()));
        let ended = ends.map(|open| {
            // Its answer says whether it has moved.
            self.due.stayed();
            self.ended.insert(open.id.clone(), Outcome::Completed);
            Ended { id: open.id, is_part: false }
        });
        let begins = id.filter(|id| moves && !self.is_open(id) && !is_turn(id));
        let Some(id) = begins.filter(|id| {
            disk.running().iter().any(|it| it.operation_id == *id && it.kind == "navigation") || !self.has_lock
        }) else {
            return Ok(ended);
        };
        let other = self.running();
        require(other.is_none(), Rule::OneCompaction, || format!("{id:?} starts while {other:?} runs"))?;
        let known = self.ended.contains_key(&id);
        require(!known, Rule::StartedOnce, || format!("{id:?} starts again"))?;
        let introduced = self.due.starts(&id, None, false);
        let owner = if introduced { None } else { self.moves.owner(requests) };
        require(introduced || owner.is_some(), Rule::StartWasAsked, || format!("no request has asked for {id:?}"))?;
        self.owners.extend(owner.map(|owner| (id.clone(), owner)));
        self.moves.silent.insert(id.clone());
        self.open.push(Open {
            id,
            what: What::Move,
            is_part: false,
            inside: None,
            window: 0,
            owner,
            steps: Vec::new(),
            given: None,
            announced: Vec::new(),
            usage: None,
        });
        Ok(ended)
    }

    /// A navigation without a lock turns out to have events. Returns the request that waits for it.
    pub(super) fn becomes_branch(&mut self, id: &OperationId, what: What) -> Option<TicketNumber> {
        let is_it = |open: &mut Open| what == What::Branch && open.what == What::Move && open.id == *id;
        let open = self.open.pop_if(is_it)?;
        self.moves.silent.remove(id);
        open.owner
    }

    /// A request for a navigation was answered.
    pub fn navigated(&mut self, asked: &Asked, result: &Value, file: &File) -> Verdict {
        let Some(id) = result["operationId"].as_str().map(OperationId::from) else { return Ok(()) };
        let Some(outcome) = result["outcome"].as_str() else {
            require(!asked.waits_for_navigation(), Rule::WaitingAnswer, || {
                format!("{} waits, and is answered at the start", asked.number)
            })?;
            self.due.introduces(asked, id);
            return Ok(());
        };
        let ended = self.ended.get(&id).and_then(|ended| serde_json::to_value(ended).ok());
        let agrees = self.moves.is_silent(&id) || ended == Some(outcome.into());
        require(asked.waits_for_navigation() && agrees, Rule::WaitingAnswer, || {
            format!("{} is answered with {id:?}, {outcome}, which ended as {ended:?}", asked.number)
        })?;
        let leaf = visible(file.announced_chain());
        let named = result["newLeafId"].as_str().map(EntryId::from);
        let stays = outcome != "completed" && result["newLeafId"] == result["oldLeafId"];
        require(stays || named == leaf || file.another_wrote(), Rule::LeafIsNamed, || {
            format!("{id:?} is answered with the leaf {named:?}, and the file has {leaf:?}")
        })
    }
}
