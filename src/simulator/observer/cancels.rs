//! Cancels: they wait for nothing, and end what they name.

use super::{
    Rule, Verdict,
    later::Later,
    names::named,
    operations::Operations,
    requests::{Asked, Requests},
    require,
};
use crate::{
    ids::OperationId,
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
}

/// The cancels of the input that is handled.
#[derive(Debug, Default)]
pub struct Cancels {
    reached: Option<Reached>,
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
    pub fn reaches(&mut self, request: TicketNumber, requests: &Requests, operations: &Operations) {
        let Some(asked) = requests.open(request) else { return };
        if asked.method == "session/cancel" {
            let which = asked.params["operationId"].as_str().map(OperationId::from);
            self.reached = Some(Reached { request, which });
        } else {
            self.requests.insert(request);
        }
        if asked.waits_for_compaction() || asked.waits_for_navigation() {
            self.due.extend(operations.owned_by(request).cloned());
        }
    }

    /// Whether an effect may come now.
    pub fn permits(&self, effect: &Effect) -> Verdict {
        let Some(reached) = &self.reached else { return Ok(()) };
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
        requests: &Requests,
        operations: &Operations,
        later: &Later,
    ) -> Verdict {
        let Some(reached) = self.reached.take_if(|reached| reached.request == asked.number) else { return Ok(()) };
        let cancelled = result.and_then(|result| result["cancelled"].as_array()).map(Vec::as_slice).unwrap_or_default();
        let ids: Vec<OperationId> =
            cancelled.iter().filter_map(|it| it["operationId"].as_str()).map(OperationId::from).collect();
        let meant = |id: &&OperationId| reached.which.as_ref().is_none_or(|which| which == *id);
        let pending = later.pending().iter().filter(meant);
        let ahead = operations.ahead(reached.which.as_ref());
        let left =
            operations.that_can_end(reached.which.as_ref()).chain(ahead).chain(pending).find(|id| !ids.contains(id));
        require(left.is_none(), Rule::CancelNamesAll, || format!("cancel {} does not name {left:?}", asked.number))?;
        let unstarted = ids.iter().filter(|id| !operations.is_open(id) && Some(*id) != ahead).count();
        let waiting = requests.compactions_before(asked.number).filter(|it| !operations.has_owner(*it)).count();
        self.later.retain(|id| operations.outcome(id).is_none());
        require(reached.which.is_some() || unstarted + self.later.len() >= waiting, Rule::CancelNamesAll, || {
            format!("cancel {} names {unstarted} of {waiting} compactions that wait", asked.number)
        })?;
        self.named.extend(ids.iter().cloned());
        // It ends without an event.
        self.ahead = ahead.cloned();
        self.due.extend(ids.into_iter().filter(|id| Some(id) != self.ahead.as_ref()));
        Ok(())
    }

    /// Whether a cancel named an operation.
    pub fn was_named(&self, id: &OperationId) -> bool {
        self.named.contains(id)
    }

    /// Whether the client cancelled a request.
    pub fn was_cancelled(&self, request: TicketNumber) -> bool {
        self.requests.contains(&request)
    }

    /// An input was handled. `waits`: an operation waited for the end of the turn, whose end is written first.
    pub fn after_input(&mut self, operations: &Operations, waits: bool) -> Verdict {
        if let Some(reached) = self.reached.take() {
            return super::broken(
                Rule::CancelWaitsForNothing,
                format!("cancel {} was not answered with its input", reached.request),
            );
        }
        if let Some(id) = self.ahead.take() {
            require(!operations.job_runs(&id), Rule::JobsStop, || {
                format!("the summary of {id:?} is made ahead, which was cancelled")
            })?;
        }
        for id in self.due.drain(..) {
            let outcome = operations.outcome(&id);
            // A recovery ends behind the write of its compaction.
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
