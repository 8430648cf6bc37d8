//! Summaries ahead of the threshold, as the session begins them and splices them in.

use crate::{
    compaction::{decide::Decision, request::Cause},
    ids::OperationId,
    protocol::{
        events::Reason,
        types::{Initiator, Usage},
    },
    session::{
        core::{
            automatic::speculation::{Ahead, Spliced},
            base::Base,
            commands::prune::{self, Share},
            parts::facts::Facts,
            recovering::promotion,
            standing::Standing,
            transfers::relaying,
            upkeep::Upkeep,
            work::{Unstarted, Work},
        },
        effects::Ticket,
        jobs::Job,
        kind::OperationKind,
        operation::Operation,
        operations::{Asked, End},
        stop::Stop,
    },
};

impl Standing<'_> {
    /// Whether a summary may begin ahead.
    pub(in crate::session::core) fn may_look_ahead(&self) -> bool {
        // A decision waits for the tokenizer.
        if self.core.base.counting.runs()
            || !self.core.upkeep.ahead.may_begin(&self.core.base.state)
            || !self.may_maintain()
        {
            return false;
        }
        // A hook is told of a compaction, and not of a summary that may never be used.
        if self.core.base.hooks.concerns_compaction() {
            return false;
        }
        // A handoff uses no summary. Whether the turn has settled at the threshold is not known before.
        !self.maintenance_may_follow()
            && !relaying::hands_off(&self.core.base.state, &self.core.upkeep.relays)
            && self.core.base.costs.have_room_for(self.core.base.state.measure().context_tokens, &self.facts())
    }
}

/// Begins a summary ahead of the threshold, if the context is near it and nothing makes it smaller without one. `usage`: the
/// usage after the append.
pub(in crate::session::core) fn begin(base: &mut Base, ahead: &mut Ahead, decision: &Decision, usage: &Usage) {
    if !ahead.is_due(decision, &base.facts()) || prunes_enough(&base.facts()) || promotion::larger_model(base).is_some()
    {
        return;
    }
    let (id, kind) = (base.stamps.operation(), OperationKind::Speculation);
    let request = base.plan_request(None, Initiator::User, Cause::Ahead);
    let unstarted = Unstarted { id, kind, asked: Asked::Unasked, stop: Stop::default() };
    let operation = base.open(unstarted, usage.clone());
    let order = ahead.begin(operation, request, usage.context_tokens, base.now);
    base.effects.start(Job::Plan(order));
}

/// The id of a compaction that is due at the threshold: that of the summary with which it begins.
pub(in crate::session::core) fn compaction_id(base: &mut Base, upkeep: &Upkeep) -> OperationId {
    match upkeep.ahead.serving(&base.state) {
        Some(id) if relaying::part_to_relay(&base.state, &upkeep.relays, Reason::Threshold).is_none() => id.clone(),
        _ => base.stamps.operation(),
    }
}

/// Begins a compaction with the summary that is made ahead under its id. Returns the request where there is none.
pub(in crate::session::core) fn splice(
    base: &mut Base,
    ahead: &mut Ahead,
    kind: OperationKind,
    id: &OperationId,
    asked: Asked<Ticket>,
) -> Option<Asked<Ticket>> {
    let spliced = ahead.splice(id, base.state.path());
    let Some(Spliced { operation, stop, draft }) = spliced else { return Some(asked) };
    operation.into_iter().for_each(|operation| end(base, operation));
    let operation = base.open(Unstarted { id: id.clone(), kind, asked, stop }, base.state.usage());
    base.work = match draft {
        Some(draft) => Work::Drafted(operation, draft),
        None => Work::Drafting(operation),
    };
    None
}

/// Ends the operation of a summary ahead, which has no events.
pub(in crate::session::core) fn end(base: &Base, operation: Operation) {
    operation.finish(End::Cancelled, &base.sent_usage, Vec::new());
    base.record_running();
}

/// Whether old tool results leave when the threshold is crossed. That needs no summary.
fn prunes_enough(facts: &Facts) -> bool {
    let pruned = prune::pruned(facts.state, &facts.state.settings().settings.prune, Share::All);
    !pruned.edits.is_empty() && prune::judged(facts.state, &pruned, facts.wall).pays()
}
