//! Operations: a start is recorded, introduced and ended, and nothing follows the end.

mod completed;
mod inside;
mod left;
mod moves;

use super::{
    Rule, Verdict, Violation,
    ahead::Ahead,
    broken,
    due::{Cause, Due, Standing},
    file::File,
    founded::Founded,
    ids,
    later::{self, Later},
    requests::{Asked, Requests},
    require,
};
use crate::{
    compaction::{draft::Draft, request::Cause as PlanCause},
    ids::{EntryId, OperationId},
    log::{Access, Inside, Unfinished},
    protocol::{
        errors::Failure,
        events::{Event, Reason, RecoveryOutcome},
        types::{Outcome, TURN, Usage},
    },
    session::{
        effects::{Effect, Sent, TicketNumber},
        jobs::Job,
        log_work::LogWork,
        operations::Follows,
        stop::Stop,
    },
    wire::outbox::About,
};
use moves::Moves;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};

/// A kind of operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum What {
    Compaction,
    Recovery,
    Idle,
    /// A navigation with a summary.
    Branch,
    /// A navigation without events of its own.
    Move,
}

impl What {
    /// The kind that a lock names.
    fn of(left: &Unfinished) -> Self {
        match left.kind.as_str() {
            "recovery" => Self::Recovery,
            "idle" => Self::Idle,
            "branch_summary" => Self::Branch,
            "navigation" => Self::Move,
            _ => Self::Compaction,
        }
    }
}

/// An operation whose end was sent.
pub struct Ended {
    /// Its id.
    pub id: OperationId,
    /// Whether the operation around it has the same id.
    pub is_part: bool,
}

/// An operation whose start was sent and whose end was not.
#[derive(Debug)]
struct Open {
    id: OperationId,
    what: What,
    /// Whether it has the id of the operation around it.
    is_part: bool,
    /// The outcome of the compaction inside of it.
    inside: Option<Outcome>,
    /// The window that its plan is made for.
    window: u64,
    /// The request that is answered at the end.
    owner: Option<TicketNumber>,
    /// Hooks and retries whose end was not sent.
    steps: Vec<Inside>,
    /// The compaction entry that was given to the log, while that may have it.
    given: Option<EntryId>,
    /// Entries that were announced as its own, newest last, by their places.
    announced: Vec<usize>,
    /// The usage that was sent after the newest of them.
    usage: Option<Usage>,
}

/// An operation before its start.
#[derive(Debug)]
struct Planning {
    id: OperationId,
    stop: Stop,
    /// Whether there is no plan. The request is answered when the log is here.
    failed: bool,
}

/// The operations of a life of a session.
#[derive(Debug, Default)]
pub struct Operations {
    open: Vec<Open>,
    ended: HashMap<OperationId, Outcome>,
    /// Operations that are idle maintenance.
    idle: HashSet<OperationId>,
    pub(super) due: Due,
    /// The window that the client was told last.
    window: Option<u64>,
    /// The operation whose plan is made, or was made and waits for the log.
    planning: Option<Planning>,
    /// Requests that are answered at the end of an operation.
    owners: HashMap<OperationId, TicketNumber>,
    /// Whether entries are being counted.
    counts: bool,
    /// Operations that the life before left in the lock, outer ones first.
    left_behind: Vec<(OperationId, What)>,
    /// Hooks and retries inside of them.
    left_inside: Vec<(OperationId, Inside)>,
    /// Operations that were started before a crash and not ended.
    owed: HashSet<(OperationId, What)>,
    /// Hooks and retries inside of them.
    owed_inside: Vec<(OperationId, Inside)>,
    /// Whether the log is out with work.
    log_is_out: bool,
    /// Whether the lock is held.
    has_lock: bool,
    /// Jobs of operations, by their stops.
    stops: Vec<(OperationId, Stop)>,
    /// The entries of the paths that plans were made for.
    plans: HashMap<OperationId, Vec<EntryId>>,
    /// Summaries ahead of the threshold.
    ahead: Ahead,
    /// The session that is made for a summary.
    pub founded: Founded,
    /// Navigations.
    pub moves: Moves,
    /// Requests to models whose costs are to be in the file.
    spent: BTreeMap<String, usize>,
}

impl Operations {
    /// A life begins with this record in its lock.
    pub fn opens(&mut self, running: &[Unfinished], access: Access) -> Verdict {
        let open: Vec<_> = self.open.iter().map(|open| &open.id).collect();
        require(open.is_empty(), Rule::EveryStartEnds, || format!("{open:?} were open when the session was closed"))?;
        let ended = running.iter().find(|it| self.ended.contains_key(&it.operation_id));
        require(ended.is_none(), Rule::RecordEmpties, || format!("{ended:?} has ended and is left in the lock"))?;
        let (owed, owed_inside) = match access {
            Access::Ephemeral => Default::default(),
            Access::Write | Access::Read => (std::mem::take(&mut self.owed), std::mem::take(&mut self.owed_inside)),
        };
        let has_lock = access == Access::Write;
        let left_inside = if has_lock { inside::listed(running) } else { Vec::new() };
        let left_behind = match access {
            Access::Write => running
                .iter()
                .filter(|left| !["speculation", "navigation", TURN].contains(&left.kind.as_str()))
                .map(|left| (left.operation_id.clone(), What::of(left)))
                .collect(),
            Access::Read | Access::Ephemeral => Vec::new(),
        };
        *self = Self { owed, owed_inside, left_behind, left_inside, has_lock, ..Self::default() };
        Ok(())
    }

    /// The process dies.
    pub fn crashed(&mut self) {
        self.due.crashed();
        if self.has_lock {
            let owed: Vec<_> = self.open_inside().collect();
            self.owed_inside.extend(owed);
        }
        let owed = self.open.drain(..).filter(|open| open.what != What::Move).map(|open| (open.id, open.what));
        // A reader has no lock that names its operations.
        self.owed.extend(owed.filter(|_| self.has_lock));
        self.ahead.crashed();
        // The process may die between an end and its record.
        self.ended.clear();
    }

    /// Costs of a request arose.
    pub fn spent(&mut self, operation: &OperationId) {
        *self.spent.entry(operation.as_str().to_owned()).or_default() += 1;
    }

    /// The operation that runs in the foreground.
    pub fn running(&self) -> Option<&OperationId> {
        self.open.last().map(|open| &open.id).filter(|id| !self.is_idle(id))
    }

    /// Whether an open operation is idle maintenance, or the compaction inside of it.
    pub fn is_idle(&self, id: &OperationId) -> bool {
        self.open.iter().any(|open| open.id == *id && open.what == What::Idle)
    }

    /// Whether an operation that ended was idle maintenance.
    pub fn was_idle(&self, id: &OperationId) -> bool {
        self.idle.contains(id)
    }

    /// Idle maintenance that runs and is not being written.
    pub fn idle_that_can_end(&self) -> Option<&OperationId> {
        let written = |id: &OperationId| self.open.iter().any(|open| open.id == *id && self.is_being_written(open));
        let idle = self.open.iter().find(|open| open.what == What::Idle);
        idle.map(|open| &open.id).filter(|id| !written(id))
    }

    /// The operation that runs or is planned.
    pub fn busy(&self) -> Option<&OperationId> {
        let planned = self.planning.as_ref().filter(|it| !it.stop.requested()).map(|it| &it.id);
        self.running().or(planned)
    }

    /// Whether an operation was planned that has not started. A cancelled one starts and ends when the log is here.
    pub fn is_planned(&self) -> bool {
        self.planning.is_some()
    }

    /// An operation that is not being written and not planned for an answer alone.
    pub fn that_can_stop(&self) -> Option<&OperationId> {
        let planned = self.planning.as_ref().filter(|it| !it.stop.requested() && !it.failed).map(|it| &it.id);
        // A recovery is written with its compaction.
        let written = |open: &Open| self.open.iter().any(|it| it.id == open.id && it.given.is_some());
        self.open.iter().find(|open| !written(open)).map(|open| &open.id).or(planned)
    }

    /// A draft was made, or cannot be made.
    pub fn drafted(&mut self, id: &OperationId, draft: Option<&Draft>) {
        self.ahead.drafted(id, draft);
    }

    /// An effect.
    pub fn performs(&mut self, effect: &Effect) {
        self.ahead.performs(effect);
    }

    /// The summary that is being made ahead, if it is meant.
    pub fn ahead(&self, which: Option<&OperationId>) -> Option<&OperationId> {
        self.ahead.running().filter(|id| which.is_none_or(|which| which == *id))
    }

    /// Whether the summary of a compaction was begun before it.
    pub fn was_begun_ahead(&self, id: &OperationId) -> bool {
        self.ahead.was_begun(id)
    }

    /// Whether a summary that was made ahead may be spliced in.
    pub fn has_one_ahead(&self) -> bool {
        self.ahead.has_one()
    }

    /// A plan was made, or cannot be made.
    pub fn planned(&mut self, id: &OperationId, succeeds: bool) {
        self.ahead.planned(id);
        self.planning.iter_mut().filter(|it| it.id == *id).for_each(|it| it.failed = !succeeds);
    }

    /// A request was refused: the one without a plan, or another.
    pub fn refused(&mut self, asked: &Asked, failure: &Failure) {
        let compacts = asked.method == "session/compact" && asked.params["dryRun"] != true;
        if compacts && !matches!(failure, Failure::Busy { .. } | Failure::Overloaded { .. }) {
            self.planning.take_if(|it| it.failed);
        }
    }

    /// The request that asked for an operation.
    pub fn request_of(&self, id: &OperationId) -> Option<TicketNumber> {
        let owner = self.owners.get(id).copied();
        owner.or_else(|| self.due.introduced_by(id).map(|(request, _)| request))
    }

    /// Whether a job of an operation goes on.
    pub fn job_runs(&self, id: &OperationId) -> bool {
        self.stops.iter().any(|(of, stop)| of == id && !stop.requested())
    }

    /// The outcome of an operation that ended.
    pub fn outcome(&self, id: &OperationId) -> Option<Outcome> {
        self.ended.get(id).copied()
    }

    /// Whether the start of an operation was sent, and not its end.
    pub fn is_open(&self, id: &OperationId) -> bool {
        self.open.iter().any(|open| open.id == *id)
    }

    /// Whether an operation is the compaction that runs.
    pub fn compacts(&self, id: &OperationId) -> bool {
        self.open.last().is_some_and(|open| open.id == *id && open.what == What::Compaction)
    }

    /// Whether an open operation ends with a request.
    pub fn has_owner(&self, request: TicketNumber) -> bool {
        self.open.iter().any(|open| open.owner == Some(request))
    }

    /// Whether the log is out with work.
    pub fn log_is_out(&self) -> bool {
        self.log_is_out
    }

    /// Whether an operation is one that the life before left.
    pub fn is_left_behind(&self, about: &About) -> bool {
        about.operation.as_ref().is_some_and(|id| self.was_left_behind(id))
    }

    fn was_left_behind(&self, id: &OperationId) -> bool {
        self.left_behind.iter().any(|(left, _)| left == id)
    }

    /// Whether an open operation has a part of the same id.
    pub fn has_part(&self, id: &OperationId) -> bool {
        self.open.iter().any(|open| open.id == *id && open.is_part)
    }

    /// Whether a recovery runs.
    pub fn recovers(&self) -> bool {
        self.open.iter().any(|open| open.what == What::Recovery)
    }

    /// Whether an answer outside of a batch has introduced an operation.
    pub fn introduced_by_answer(&self, id: &OperationId) -> bool {
        self.due.introduced_by(id).is_some_and(|(_, sent)| sent == Sent::Alone)
    }

    /// The operation that ends with a request, unless it is being written.
    pub fn owned_by(&self, request: TicketNumber) -> Option<&OperationId> {
        let owned = self.open.iter().find(|open| open.owner == Some(request) && !self.is_being_written(open));
        owned.map(|open| &open.id)
    }

    /// The operations that a cancel of one, or of all, can end.
    pub fn that_can_end(&self, which: Option<&OperationId>) -> impl Iterator<Item = &OperationId> {
        let meant = move |open: &&Open| which.is_none_or(|which| open.id == *which) && !self.is_being_written(open);
        self.open.iter().filter(meant).map(|open| &open.id)
    }

    fn is_being_written(&self, open: &Open) -> bool {
        self.log_is_out && open.given.is_some() || self.founded.is_out(&open.id)
    }

    /// A request for a compaction was answered.
    pub fn answered(&mut self, asked: &Asked, result: &Value) -> Verdict {
        let Some(id) = result["operationId"].as_str().map(OperationId::from) else { return Ok(()) };
        let Some(outcome) = result["outcome"].as_str() else {
            let known = self.ended.contains_key(&id) || self.open.iter().any(|open| open.id == id);
            require(!known, Rule::AnswerIntroduces, || format!("{id:?} started before {} was answered", asked.number))?;
            require(!asked.waits_for_compaction(), Rule::WaitingAnswer, || {
                format!("{} waits, and is answered at the start", asked.number)
            })?;
            self.due.introduces(asked, id);
            return Ok(());
        };
        let ended = self.ended.get(&id).and_then(|ended| serde_json::to_value(ended).ok());
        require(asked.waits_for_compaction() && ended == Some(outcome.into()), Rule::WaitingAnswer, || {
            format!("{} is answered with {id:?}, {outcome}, which ended as {ended:?}", asked.number)
        })
    }

    /// A request for a compaction with an expected leaf was answered: its plan was made while nothing had changed after it.
    pub fn expected_leaf(&self, asked: &Asked, result: &Value, file: &File) -> Verdict {
        let expected = asked.params["expectedLeafId"].as_str().map(EntryId::from);
        let plan = result["operationId"].as_str().and_then(|id| self.plans.get(&OperationId::from(id)));
        // One after the turn is planned later.
        let (Some(expected), Some(plan), false) = (expected, plan, asked.comes_later()) else { return Ok(()) };
        let changed = |id: &&EntryId| {
            let entry = file.newest(id).and_then(|place| file.entry(place));
            **id == expected || entry.is_some_and(|entry| entry.in_context() || entry.rewrites())
        };
        let leaf = plan.iter().rev().find(changed);
        require(leaf == Some(&expected) || file.another_wrote(), Rule::ExpectedLeaf, || {
            format!("compaction {} covers up to {leaf:?}, and {expected:?} was expected", asked.number)
        })
    }

    /// An append was answered: its `next` names the operation that runs, or one that starts after it.
    pub fn named_next(&mut self, asked: &Asked, result: &Value, file: &File) -> Verdict {
        let standing = self.standing(result);
        self.due.named_next(asked, result, standing, file)
    }

    /// A change of the model was answered: its `next` names the operation that runs, or one that starts after the answer.
    pub fn named_switch(&mut self, asked: &Asked, result: &Value) -> Verdict {
        let (standing, busy) = (self.standing(result), self.running().is_some() || self.is_planned());
        self.due.named_switch(asked, result, standing, busy)
    }

    /// The state of the operation that `next` of an answer names.
    fn standing(&self, result: &Value) -> Standing {
        let id = result["next"]["operationId"].as_str().map(OperationId::from);
        match id {
            Some(id) if self.is_open(&id) => Standing::Open,
            Some(id) if self.ended.contains_key(&id) => Standing::Ended,
            _ => Standing::New,
        }
    }

    /// A turn begins. A recovery that is due starts in one of the first in which nothing runs.
    pub fn turn_begins(&mut self, is_indexed: bool) {
        if is_indexed && !self.log_is_out && self.running().is_none() && self.planning.is_none() {
            self.due.turn_begins();
        }
    }

    /// Whether the session may start work without input.
    pub fn follows(&self, requests: &Requests) -> Follows {
        let due = self.due.introduced().any(|id| !self.ended.contains_key(id) && !self.is_open(id));
        let asked = requests.wait_for_context() || requests.for_compaction() || requests.for_navigation();
        let works = due || asked || self.may_decide() || self.due.is_switched() || self.is_planned();
        if works { Follows::Work } else { Follows::Nothing }
    }

    /// Whether a failed answer may wait for a decision.
    pub fn may_decide(&self) -> bool {
        self.due.may_decide()
    }

    /// Pruning or a larger model made room.
    pub fn relieved(&mut self) {
        self.due.relieved();
    }

    /// `session/status` is answered.
    pub fn listed(&self, result: &Value) -> Verdict {
        let operations = result["operations"].as_array().map(Vec::as_slice).unwrap_or_default();
        let listed: Vec<_> = operations.iter().filter_map(|it| it["operationId"].as_str()).collect();
        let wholes = self.open.iter().filter(|open| !open.is_part);
        let open = self.due.turn().into_iter().chain(wholes.map(|open| &open.id)).chain(self.ahead.running());
        let open: Vec<_> = open.map(OperationId::as_str).collect();
        require(listed == open, Rule::StatusAnswer, || format!("{listed:?} are listed, and {open:?} run"))
    }

    /// The lock is written.
    pub fn recorded(&self, operations: &[Unfinished]) -> Verdict {
        let is = |it: &Unfinished, open: &Open| it.operation_id == open.id && What::of(it) == open.what;
        let missing = self.open.iter().find(|open| !operations.iter().any(|it| is(it, open)));
        require(missing.is_none(), Rule::StartIsRecorded, || format!("the record forgets {missing:?}"))
    }

    /// A job starts. `idles`: whether it is a plan of idle maintenance.
    pub fn job_starts(&mut self, job: &Job, idles: bool) -> Verdict {
        match job {
            Job::Plan(order) => {
                self.stops.push((order.id.clone(), order.stop.clone()));
                let is_again = self.plans.insert(order.id.clone(), ids(&order.request.path)).is_some();
                if is_again {
                    self.is_planned_again(&order.id);
                }
                if order.request.cause == PlanCause::Ahead {
                    let running = self.open.last().map(|open| &open.id);
                    return self.ahead.begins(&order.id, &order.stop, running);
                }
                // The plan of an automatic compaction is made after its start.
                if !self.is_open(&order.id) && !idles {
                    self.planning = Some(Planning { id: order.id.clone(), stop: order.stop.clone(), failed: false });
                }
                Ok(())
            }
            Job::Found(id, founding) => {
                require(self.is_open(id), Rule::NothingAfterTheEnd, || format!("a session is made for {id:?}"))?;
                self.founded.begins(id, founding)
            }
            Job::Transfer(order) => {
                self.stops.push((order.id.clone(), order.stop.clone()));
                let runs = self.open.last().is_some_and(|open| open.id == order.id);
                require(runs, Rule::NothingAfterTheEnd, || format!("a text is made for {:?}", order.id))
            }
            Job::Draft(order) => {
                self.stops.push((order.id.clone(), order.stop.clone()));
                let runs =
                    self.open.last().is_some_and(|open| open.id == order.id) || self.ahead.running() == Some(&order.id);
                require(runs, Rule::NothingAfterTheEnd, || format!("a draft begins for {:?}", order.id))
            }
            Job::Count(_) => {
                self.counts = true;
                Ok(())
            }
            Job::Index(..) | Job::Source(_) | Job::Turn(_) => Ok(()),
        }
    }

    /// Work is given to the log.
    pub fn log_goes_out(&mut self, work: &LogWork) {
        self.log_is_out = true;
        let Some(open) = self.open.last_mut() else { return };
        open.given = match work {
            LogWork::Append(work) => {
                let compaction = work.entries.iter().find(|entry| entry.compaction().is_some());
                let compaction = compaction.or_else(|| moves::moved_by(work));
                compaction.map(|entry| entry.id.clone())
            }
            _ => None,
        };
    }

    /// Entries were counted.
    pub fn counted(&mut self) {
        self.counts = false;
    }

    /// Whether entries are being counted. A decision waits for the counts.
    pub fn is_counting(&self) -> bool {
        self.counts
    }

    /// The log comes back.
    pub fn log_is_back(&mut self) {
        self.log_is_out = false;
    }

    /// An event names an operation.
    pub fn names(&self, about: &About, event: &Event, ended_last: Option<&OperationId>) -> Verdict {
        let Some(id) = &about.operation else { return Ok(()) };
        let allowed = match event {
            // These have rules of their own.
            Event::CompactionStart { .. }
            | Event::CompactionEnd { .. }
            | Event::RecoveryStart { .. }
            | Event::RecoveryEnd { .. }
            | Event::IdleStart { .. }
            | Event::IdleEnd { .. }
            | Event::BranchSummaryStart { .. }
            | Event::BranchSummaryEnd { .. } => true,
            Event::Notice { .. } => ended_last == Some(id) || self.was_left_behind(id),
            Event::HookEnd { .. } | Event::RetryEnd { .. } => self.has_left_inside(about),
            _ => false,
        };
        if allowed || self.open.iter().any(|open| open.id == *id) {
            return Ok(());
        }
        let rule = if self.ended.contains_key(id) { Rule::NothingAfterTheEnd } else { Rule::AnswerIntroduces };
        broken(rule, format!("{} names {id:?}", event.kind()))
    }

    /// A start event is sent. Returns its operation.
    pub fn starts(
        &mut self,
        about: &About,
        event: &Event,
        running: &[Unfinished],
        requests: &Requests,
        later: &Later,
    ) -> Result<OperationId, Violation> {
        let Some(id) = about.operation.clone() else { return broken(Rule::StartedOnce, "a start without an id") };
        let (what, cause, window) = match *event {
            Event::CompactionStart { reason: Reason::Manual, context_window, .. } => {
                (What::Compaction, None, context_window)
            }
            Event::CompactionStart { reason: Reason::ModelSwitch, context_window, .. } => {
                (What::Compaction, Some(Cause::Switch), context_window)
            }
            Event::CompactionStart { context_window, .. } => (What::Compaction, Some(Cause::Size), context_window),
            Event::RecoveryStart { .. } => (What::Recovery, Some(Cause::Answer), 0),
            Event::IdleStart { .. } => (What::Idle, None, 0),
            Event::BranchSummaryStart { .. } => (What::Branch, None, 0),
            _ => return broken(Rule::StartedOnce, "a start of nothing"),
        };
        let recorded = running.iter().any(|it| it.operation_id == id && What::of(it) == what);
        require(recorded || !self.has_lock, Rule::StartIsRecorded, || {
            format!("{what:?} {id:?} starts, and the lock lists {running:?}")
        })?;
        let before = self.becomes_branch(&id, what);
        let around = self.open.last().filter(|_| what == What::Compaction);
        let is_part =
            around.is_some_and(|around| around.id == id && around.what != What::Compaction && around.inside.is_none());
        let mut owner = before;
        if !is_part {
            let known = self.ended.contains_key(&id) || self.is_open(&id);
            require(!known, Rule::StartedOnce, || format!("{what:?} {id:?} starts again"))?;
            let other = self.open.last().map(|open| &open.id);
            require(other.is_none(), Rule::OneCompaction, || format!("{id:?} starts while {other:?} runs"))?;
            owner = match self.due.introduced_by(&id) {
                Some(_) if later.pending().contains(&id) => later::joined(requests),
                None if what == What::Branch => before.or_else(|| self.moves.owner(requests)),
                None if cause.is_none() && what != What::Idle => later::owner(later, &id, requests),
                _ => None,
            };
            let ahead = self.ahead.may_serve(&id);
            let asked = self.due.starts(&id, cause, requests.wait_for_context()) || owner.is_some() || ahead;
            let asked = self.due.starts_by_turn() || asked;
            require(asked || what == What::Idle, Rule::StartWasAsked, || {
                format!("no answer has introduced {id:?}, and no request waits for it")
            })?;
        }
        self.idle.extend((what == What::Idle).then(|| id.clone()));
        self.ahead.starts(&id, event)?;
        self.planning.take_if(|it| it.id == id);
        self.owners.extend(owner.map(|owner| (id.clone(), owner)));
        let open = Open {
            id: id.clone(),
            what,
            is_part,
            inside: None,
            window,
            owner,
            steps: Vec::new(),
            given: None,
            announced: Vec::new(),
            usage: None,
        };
        self.open.push(open);
        Ok(id)
    }

    /// An entry of this line is announced.
    pub fn announced(&mut self, about: &About, place: usize) {
        if let Some(open) = self.of(about) {
            open.announced.push(place);
            open.usage = None;
        }
    }

    /// The usage is sent.
    pub fn usage(&mut self, about: &About, usage: &Usage) {
        self.window = usage.context_window;
        if let Some(open) = self.of(about) {
            open.usage = Some(usage.clone());
        }
    }

    fn of(&mut self, about: &About) -> Option<&mut Open> {
        let id = about.operation.as_ref()?;
        self.open.iter_mut().rev().find(|open| open.id == *id)
    }

    /// An end event is sent. Returns its operation.
    pub fn ends(&mut self, about: &About, event: &Event, file: &File) -> Result<Ended, Violation> {
        let Some(id) = about.operation.clone() else { return broken(Rule::EndedOnce, "an end without an id") };
        let (what, outcome) = match event {
            Event::CompactionEnd { outcome, .. } => (What::Compaction, *outcome),
            Event::RecoveryEnd { outcome, .. } => (What::Recovery, of_recovery(*outcome)),
            Event::IdleEnd { outcome, .. } => (What::Idle, *outcome),
            Event::BranchSummaryEnd { outcome, .. } => (What::Branch, *outcome),
            _ => return broken(Rule::EndedOnce, "an end of nothing"),
        };
        if self.was_left_behind(&id) {
            return self.ends_from_before(id, what, outcome);
        }
        let Some(at) = self.open.iter().position(|open| open.id == id && open.what == what) else {
            let before = self.ended.get(&id);
            return broken(
                Rule::EndedOnce,
                format!("{what:?} {id:?} ends as {outcome:?}, and ended before as {before:?}"),
            );
        };
        require(at + 1 == self.open.len(), Rule::InnerEndsFirst, || {
            format!("{what:?} {id:?} ends before {:?}", self.running())
        })?;
        let open = self.open.remove(at);
        match self.open.last_mut().filter(|_| open.is_part) {
            Some(around) => around.inside = Some(outcome),
            None => drop(self.ended.insert(id.clone(), outcome)),
        }
        require(open.steps.is_empty(), Rule::RetriesEnd, || format!("{id:?} ends before {:?}", open.steps))?;
        let ended = Ended { id, is_part: open.is_part };
        let written = open.given.as_ref().and_then(|entry| file.newest(entry));
        if what == What::Branch {
            if outcome != Outcome::Completed {
                self.due.stayed();
            }
            return open.ends_branch(outcome, written.is_some()).map(|()| ended);
        }
        let Event::CompactionEnd { reason, result, usage, new_session_id, .. } = event else { return Ok(ended) };
        match (outcome, result) {
            (Outcome::Completed, Some(result)) if new_session_id.is_some() => {
                self.founded.completed(&open.id, result, new_session_id.as_ref())?;
            }
            (Outcome::Completed, Some(result)) => self.completed(&open, *reason, result, usage, file)?,
            (Outcome::Completed, None) => return broken(Rule::EndFollowsEntry, format!("{:?} has no result", open.id)),
            (Outcome::Cancelled, _) if written.is_some() => {
                return broken(Rule::CancelledWritesNothing, format!("{:?} has written {:?}", open.id, open.given));
            }
            _ => {}
        }
        Ok(ended)
    }

    /// An input was handled.
    pub fn after_input(&mut self) -> Verdict {
        self.ahead.after_input()?;
        require(!self.has_lock || self.owed.is_empty() && self.left_behind.is_empty(), Rule::EveryStartEnds, || {
            format!("no end of {:?}, and {:?} are left in the lock", self.owed, self.left_behind)
        })?;
        let none = self.owed_inside.is_empty() && self.left_inside.is_empty();
        require(!self.has_lock || none, Rule::EveryStartEnds, || {
            format!("no end of {:?}, and {:?} are left in the lock", self.owed_inside, self.left_inside)
        })?;
        let ended = &self.ended;
        let runs = self.stops.iter().find(|(id, stop)| ended.contains_key(id) && !stop.requested());
        require(runs.is_none(), Rule::JobsStop, || {
            format!("a job runs for {:?}, which has ended", runs.map(|it| &it.0))
        })?;
        self.stops.retain(|(id, _)| !ended.contains_key(id));
        self.due.after_input(self.log_is_out)
    }

    /// Nothing runs.
    pub fn at_rest(&self, running: &[Unfinished]) -> Verdict {
        let open: Vec<_> = self.open.iter().map(|open| &open.id).collect();
        require(open.is_empty(), Rule::EveryStartEnds, || format!("no end of {open:?}"))?;
        require(running.is_empty(), Rule::RecordEmpties, || format!("the lock lists {running:?} at rest"))
    }
}

/// The outcome of a recovery as that of an operation.
fn of_recovery(outcome: RecoveryOutcome) -> Outcome {
    match outcome {
        RecoveryOutcome::Recovered => Outcome::Completed,
        RecoveryOutcome::Failed => Outcome::Failed,
        RecoveryOutcome::Cancelled => Outcome::Cancelled,
    }
}
