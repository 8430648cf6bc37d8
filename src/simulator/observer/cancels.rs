//! Cancels: they wait for nothing, and end what they name. Only the answer that names a compaction after the turn waits: for
//! the entry after which no restart brings that one back.

use super::{
    Rule, Verdict,
    file::File,
    later::Later,
    names::named,
    operations::Operations,
    requests::{Asked, Requests},
    require,
};
use crate::{
    ids::OperationId,
    log::Unfinished,
    protocol::types::Outcome,
    session::effects::{Effect, TicketNumber},
};
use serde_json::Value;
use std::collections::HashSet;

/// A `session/cancel` that has reached the session.
#[derive(Debug)]
struct Reached {
    request: TicketNumber,
    which: Option<OperationId>,
    /// Operations that its answer has to name.
    meant: Vec<OperationId>,
    /// Those of them that were open.
    open: Vec<OperationId>,
    /// The summary that was being made ahead, if it is meant.
    ahead: Option<OperationId>,
    /// Number of the requests for a compaction that waited for their turn.
    waiting: usize,
    /// Whether the answer waits for an entry.
    writes: bool,
}

impl Reached {
    fn new(asked: &Asked, requests: &Requests, operations: &Operations, later: &Later) -> Self {
        let which = asked.params["operationId"].as_str().map(OperationId::from);
        let is_meant = |id: &&OperationId| which.as_ref().is_none_or(|which| which == *id);
        let pending = || later.pending().iter().filter(is_meant);
        let ahead = operations.ahead(which.as_ref()).cloned();
        // The id of one whose request is not answered is not known.
        let comes_later = |number| requests.open(number).is_some_and(Asked::comes_later);
        let asks_for_later = requests.compactions_before(asked.number).any(comes_later);
        let waits_on = pending().filter(|id| !later.is_superseded(id));
        let due = operations.due.named().filter(is_meant);
        let named = operations.that_can_end(which.as_ref()).chain(&ahead).chain(waits_on).chain(due);
        let meant: Vec<OperationId> = named.cloned().collect();
        Self {
            request: asked.number,
            open: meant.iter().filter(|id| operations.is_open(id)).cloned().collect(),
            meant,
            waiting: requests.compactions_before(asked.number).filter(|it| !operations.has_owner(*it)).count(),
            writes: pending().next().is_some() || asks_for_later,
            ahead,
            which,
        }
    }
}

/// The cancels of the input that is handled.
#[derive(Debug, Default)]
pub struct Cancels {
    reached: Option<Reached>,
    /// Those of earlier inputs whose answers wait for an entry.
    writing: Vec<Reached>,
    /// Operations that end before the input is done.
    due: Vec<OperationId>,
    /// The summary that was being made ahead and is to be stopped.
    ahead: Option<OperationId>,
    /// Operations that were named before their start, while the log was out. They start and end when it is back.
    later: Vec<OperationId>,
    /// Operations that an answer of a cancel named.
    named: HashSet<OperationId>,
    /// Requests that the client cancelled.
    requests: HashSet<TicketNumber>,
}

impl Cancels {
    /// A cancel reaches the session.
    pub fn reaches(&mut self, request: TicketNumber, requests: &Requests, operations: &Operations, later: &Later) {
        let Some(asked) = requests.open(request) else { return };
        if asked.method == "session/cancel" {
            self.reached = Some(Reached::new(asked, requests, operations, later));
        } else {
            self.requests.insert(request);
        }
        if asked.waits_for_compaction() || asked.waits_for_navigation() {
            self.due.extend(operations.owned_by(request).cloned());
        }
    }

    /// Whether an effect may come now.
    pub fn permits(&self, effect: &Effect) -> Verdict {
        let Some(reached) = self.reached.as_ref().filter(|reached| !reached.writes) else { return Ok(()) };
        let own = match effect {
            Effect::Publish(_) => true,
            Effect::Answer(request, _) => *request == reached.request,
            _ => false,
        };
        require(own, Rule::CancelWaitsForNothing, || {
            format!("{} comes before the answer of cancel {}", named(effect), reached.request)
        })
    }

    /// A request was answered; `None` for an error.
    pub fn answered(
        &mut self,
        asked: &Asked,
        result: Option<&Value>,
        operations: &Operations,
        later: &Later,
        file: &File,
        running: &[Unfinished],
    ) -> Verdict {
        let is_it = |reached: &Reached| reached.request == asked.number;
        let place = self.writing.iter().position(is_it);
        let reached = self.reached.take_if(|reached| is_it(reached));
        let Some(reached) = reached.or_else(|| Some(self.writing.remove(place?))) else { return Ok(()) };
        let cancelled = result.and_then(|result| result["cancelled"].as_array()).map(Vec::as_slice).unwrap_or_default();
        let ids: Vec<OperationId> =
            cancelled.iter().filter_map(|it| it["operationId"].as_str()).map(OperationId::from).collect();
        let left = reached.meant.iter().find(|id| !ids.contains(id));
        require(left.is_none(), Rule::CancelNamesAll, || format!("cancel {} does not name {left:?}", asked.number))?;
        let unstarted =
            ids.iter().filter(|id| !reached.open.contains(id) && Some(*id) != reached.ahead.as_ref()).count();
        self.later.retain(|id| operations.outcome(id).is_none());
        let enough = unstarted + self.later.len() >= reached.waiting;
        require(reached.which.is_some() || enough, Rule::CancelNamesAll, || {
            format!("cancel {} names {unstarted} of {} compactions that wait", asked.number, reached.waiting)
        })?;
        let is_named = |id: &OperationId| running.iter().any(|it| it.operation_id == *id);
        let back = later.brought_back(file).filter(|id| ids.contains(id) && !later.is_unrecorded() && !is_named(id));
        require(back.is_none(), Rule::AnsweredIsDurable, || {
            format!("cancel {} names {back:?}, which a restart brings back", asked.number)
        })?;
        self.named.extend(ids.iter().cloned());
        // It ends without an event.
        self.ahead = reached.ahead;
        self.due.extend(ids.into_iter().filter(|id| Some(id) != self.ahead.as_ref()));
        Ok(())
    }

    /// Whether a cancel named an operation, or will name it in an answer that waits for an entry.
    pub fn was_named(&self, id: &OperationId) -> bool {
        let mut writing = self.reached.iter().filter(|reached| reached.writes).chain(&self.writing);
        self.named.contains(id) || writing.any(|reached| reached.meant.contains(id))
    }

    /// Whether the client cancelled a request.
    pub fn was_cancelled(&self, request: TicketNumber) -> bool {
        self.requests.contains(&request)
    }

    /// An input was handled. `waits`: an operation waited for the end of the turn, whose end is written first.
    pub fn after_input(&mut self, operations: &Operations, waits: bool) -> Verdict {
        if let Some(reached) = self.reached.take() {
            require(reached.writes, Rule::CancelWaitsForNothing, || {
                format!("cancel {} was not answered with its input", reached.request)
            })?;
            self.writing.push(reached);
        }
        if let Some(id) = self.ahead.take() {
            require(!operations.job_runs(&id), Rule::JobsStop, || {
                format!("the summary of {id:?} is made ahead, which was cancelled")
            })?;
        }
        for id in self.due.drain(..) {
            let outcome = operations.outcome(&id);
            // A recovery ends after the write of its compaction.
            let ends_later = !operations.is_open(&id) || operations.has_part(&id);
            // An operation that has not started waits for the end of the running one.
            let others = waits || operations.running().is_some();
            let later = operations.log_is_out() || !operations.is_open(&id) && others;
            if outcome.is_none() && ends_later && later {
                let stops = operations.is_open(&id) || !operations.job_runs(&id);
                require(stops, Rule::JobsStop, || format!("a job runs for {id:?}, which was cancelled"))?;
                self.later.push(id);
                continue;
            }
            require(!operations.job_runs(&id), Rule::JobsStop, || {
                format!("a job runs for {id:?}, which was cancelled")
            })?;
            require(
                outcome == Some(Outcome::Cancelled) || operations.moves.is_silent(&id),
                Rule::CancelledEnds,
                || format!("{id:?} was cancelled, and its outcome is {outcome:?}"),
            )?;
        }
        Ok(())
    }

    /// Nothing runs.
    pub fn at_rest(&self, operations: &Operations) -> Verdict {
        let ends =
            |id: &OperationId| operations.moves.is_silent(id) || operations.outcome(id) == Some(Outcome::Cancelled);
        let open = self.later.iter().find(|id| !ends(id));
        require(open.is_none(), Rule::CancelledEnds, || format!("{open:?} was cancelled and never ended"))
    }
}
