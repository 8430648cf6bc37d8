//! `session/usage`: the fullness of the context.

use crate::{
    compaction::{
        decide::Why,
        native::{self, Unsent},
        resting,
    },
    conversation::tokens::Estimator,
    models,
    protocol::{
        SessionUsage,
        types::{SessionParams, Thresholds, UsageAnswer},
    },
    session::{
        core::{Core, command::SessionMethod, recovering::reports, standing::Standing},
        effects::Ticket,
        state::State,
    },
};

impl SessionMethod for SessionUsage {
    fn handle(core: &mut Core, _: SessionParams, ticket: Ticket) {
        let fullness = core.base.state.measure();
        let why = why_and_switches(core);
        let estimator = match fullness.scale.estimator() {
            Estimator::Tiktoken => "tiktoken",
            Estimator::Chars => "chars",
        };
        ticket.ok(&UsageAnswer {
            thresholds: Thresholds {
                threshold_tokens: fullness.budget.threshold,
                target_tokens: fullness.budget.target(),
                fixed_overhead_tokens: fullness.budget.overhead(),
                summary_tokens: fullness.budget.summary_cap(),
                keep_recent_tokens: fullness.compaction.keep_recent_tokens,
                calibration: fullness.calibration,
                estimator: estimator.to_owned(),
            },
            usage: core.base.state.usage_at(core.base.stamps.now()),
            why,
            code: Standing::of(core).decision().why.into(),
        });
    }
}

/// The reason why the context is compacted now or not, the last decision about a pruning, and everything that is switched
/// off.
fn why_and_switches(core: &Core) -> String {
    let base = &core.base;
    let pruning = core.upkeep.pruning.map(|considered| format!(" {considered}"));
    let why = Standing::of(core).why() + &pruning.unwrap_or_default();
    let mut off = base.state.settings().switched_off(base.state.model(base.state.path()).as_ref());
    if base.writable().is_err() {
        off.push("writing (readOnly of session/load)".to_owned());
    }
    let fullness = base.state.measure();
    if fullness.rests(base.state.path()) {
        let until = resting::rests_to(&fullness.with_reported_overhead());
        off.push(format!("automatic compaction (an undone compaction; it acts again over {until} tokens)"));
    }
    // A compaction for a cold cache starts without a report that is believed.
    let is_cold = matches!(Standing::of(core).decision().why, Why::Cold { .. });
    let why = match reports::why_estimated(&base.state).filter(|_| !is_cold) {
        Some(estimated) => format!("{why} {estimated}"),
        None => why,
    };
    let why = match unsent_compaction(&base.state) {
        Some(unsent) => format!("{why} {}", unsent.sentence()),
        None => why,
    };
    let why = match base.costs.why_extracted(&base.facts()) {
        Some(extracted) => format!("{why} {extracted}"),
        None => why,
    };
    match off.as_slice() {
        [] => why,
        off => format!("{why} Switched off: {}.", off.join(", ")),
    }
}

/// The reason for which the newest compaction of a provider is not in the requests to the session's model.
fn unsent_compaction(state: &State) -> Option<Unsent> {
    let path = state.path();
    let model = state.model(path)?;
    let is_allowed = models::may_send_native(&state.settings().settings, &model);
    native::unsent(path, &model, state.instructions(), is_allowed)
}
