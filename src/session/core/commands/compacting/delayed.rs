//! A compaction that a client asks for after the turn.

use super::{
    after_turn::{AfterTurn, outlives_session},
    requested_plan,
};
use crate::{
    ids::OperationId,
    protocol::types::CompactParams,
    session::{
        core::{
            base::Base,
            commands::founding,
            step::Step,
            work::{Request, Unstarted, Work},
        },
        effects::Ticket,
        jobs::{Authors, Focus, Job, PlanOrder},
        operations::Asked,
    },
};

/// Takes a request for a compaction after the turn. Where the session ends before the turn, the compaction ends at once.
pub(super) fn delay(base: &mut Base, after_turn: &mut AfterTurn, params: CompactParams, ticket: Ticket) -> Vec<Step> {
    if let Err(failure) = base.writable().and_then(|()| after_turn.accepts(&params, &base.state)) {
        return vec![Step::fail(ticket, &failure)];
    }
    let asked = Asked::by(ticket, params.wait);
    if base.ending.goes_on() || outlives_session(&asked, base.log.facts().access) {
        after_turn.ask(params, asked, &base.state, &mut base.stamps)
    } else {
        vec![Step::Cancel(after_turn.ask_at_end(params, asked, &mut base.stamps).into())]
    }
}

/// Starts a compaction after the turn. Returns the id of the one whose summary goes into a new session.
pub(in crate::session::core) fn begin(
    base: &mut Base,
    after_turn: &mut AfterTurn,
    request: Request,
) -> Option<OperationId> {
    let Request { id, kind, params, asked, stop } = request;
    let unstarted = Unstarted { id: id.clone(), kind, asked, stop: stop.clone() };
    let operation = base.open(unstarted, base.state.usage());
    base.lock.keep(after_turn.begun(&id, base.operations.unfinished(), &base.state));
    let moves = founding::moved(&id, &params);
    let request = requested_plan(base, &params);
    // It was checked when it was asked for.
    let authors = Authors::of(&params).unwrap_or_default();
    base.effects.start(Job::Plan(PlanOrder { id, request, authors, former: None, stop }));
    base.work = Work::Preparing(operation, Focus::of(params));
    moves
}
