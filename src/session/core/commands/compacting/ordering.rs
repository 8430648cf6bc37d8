//! The order of a draft: its models, its limits and the hooks that it asks.

use crate::{
    ask::rank::Rank,
    compaction::request::Planned,
    ids::OperationId,
    session::{
        core::base::Base,
        hooks::Hooks,
        jobs::{DraftOrder, Focus, Job, LiveOrder, PlanMade, hooks::HookOrder},
        kind::OperationKind,
        stop::Stop,
    },
};
use std::{sync::Arc, time::Duration};

/// A draft that is to be made.
pub(in crate::session::core) struct ToDraft {
    pub id: OperationId,
    pub made: PlanMade,
    pub focus: Focus,
    pub rank: Rank,
    pub stop: Stop,
    /// The tokens that its models may take, beside the ceiling.
    pub most: Option<u64>,
}

/// Starts the job that makes the draft of a plan. A compaction that was asked for has no deadline.
pub(in crate::session::core) fn order(base: &Base, kind: &OperationKind, draft: ToDraft) {
    let ToDraft { id, made, focus, rank, stop, most } = draft;
    let settings = base.state.settings().clone();
    let deadline = Duration::from_secs(settings.settings.compaction.deadline_seconds);
    let deadline = kind.is_automatic().then_some(deadline);
    let trigger = kind.trigger();
    let tokens = base.costs.tokens_for(trigger, most, &base.facts());
    let PlanMade { planned: Planned { plan, .. }, candidates, native, only } = made;
    let hooks = hooks_of(kind, &base.hooks);
    let is_warm = base.is_cache_warm();
    base.effects.start(Job::Draft(DraftOrder {
        id,
        trigger,
        tokens,
        plan,
        candidates,
        native,
        live: Some(LiveOrder { view: Box::new(base.state.view()), is_warm }),
        only,
        focus,
        hooks,
        settings,
        deadline,
        rank,
        stop,
    }));
}

/// The hooks that a compaction asks.
fn hooks_of(kind: &OperationKind, hooks: &Arc<Hooks>) -> Option<HookOrder> {
    let asks = hooks.concerns_compaction() && *kind != OperationKind::Speculation;
    asks.then(|| HookOrder { hooks: hooks.clone(), reason: kind.reason(), will_retry: kind.repeats_the_turn() })
}
