//! The work of a compaction, away from the session: from a path to a plan, from a plan to a draft. It owns nothing of
//! the session; what comes out is committed there, if the plan still stands.

use super::{state::wanted, stop::Stop, usage::Gauge};
use crate::{
    compaction::{
        meter::Meter,
        plan::{self, Demand, Plan},
    },
    conversation::{
        instructions::Instructions,
        path::Path,
        tokens::{self, Estimator, Scale},
    },
    models::ModelRef,
    protocol::{
        errors::{Failure, Nothing},
        types::{Initiator, Usage},
    },
    settings::Sourced,
};
use std::sync::Arc;

/// What a plan is made from: a copy, so that the session can go on.
pub struct Snapshot {
    /// The path to the leaf.
    pub path: Path,
    /// The settings in force.
    pub settings: Arc<Sourced>,
    /// The model.
    pub model: Option<ModelRef>,
    /// The window that its provider taught, in tokens.
    pub learned: Option<u64>,
    /// The system prompt and the tools.
    pub instructions: Arc<Instructions>,
    /// Tokens to keep, where a call names them.
    pub keep_recent_tokens: Option<u64>,
    /// Who wants it.
    pub initiator: Initiator,
    /// Ends the work early.
    pub stop: Stop,
}

/// A plan, and how full the context is.
pub struct Planned {
    /// What would be done.
    pub plan: Plan,
    /// Before it.
    pub usage: Usage,
}

/// Plans a compaction. Counts tokens, which may take a while.
///
/// # Errors
/// When there is nothing to compact, or it was stopped.
pub fn prepare(snapshot: Snapshot) -> Result<Planned, Failure> {
    let gauge = Gauge {
        settings: &snapshot.settings.settings,
        model: snapshot.model.as_ref(),
        learned: snapshot.learned,
        instructions: &snapshot.instructions,
    };
    let estimator = wanted(&snapshot.settings.settings);
    if estimator == Estimator::Tiktoken {
        tokens::load();
        for entry in &snapshot.path[snapshot.path.first_kept()..] {
            if snapshot.stop.requested() {
                return Err(Failure::Cancelled);
            }
            entry.count();
        }
    }
    let meter = Meter::of(&snapshot.path, &snapshot.settings.prompts, estimator);
    let measure = gauge.measure(&meter);
    let too_early = measure.usage.context_tokens < measure.budget.threshold / 2;
    if snapshot.initiator == Initiator::Agent && too_early {
        return Err(Failure::NothingToCompact(Nothing::BelowHalfThreshold));
    }
    let demand = Demand {
        keep: snapshot.keep_recent_tokens.unwrap_or(measure.compaction.keep_recent_tokens),
        explicit: snapshot.keep_recent_tokens.is_some(),
        scale: Scale::new(estimator, measure.factor),
        budget: measure.budget,
        tokens_before: measure.usage.context_tokens,
    };
    let plan = plan::plan(snapshot.path, demand, snapshot.settings.prompts.clone())?;
    Ok(Planned { plan: plan.carrying(meter.calibrations().carried()), usage: measure.usage })
}
