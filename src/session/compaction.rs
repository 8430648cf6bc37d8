//! The work of a compaction, away from the session: from a path to a plan, from a plan to a draft. It owns nothing of
//! the session; what comes out is committed there, if the plan still stands.

use super::{instructions::Instructions, operation::Stop, state::wanted, usage::Gauge};
use crate::{
    compaction::{
        ladder::{self, Draft},
        meter::Meter,
        plan::{self, Demand, Plan},
    },
    conversation::{
        path::Path,
        tokens::{self, Estimator, Scale},
    },
    models::ModelRef,
    prompts::Prompt,
    protocol::{
        errors::{Failure, Nothing},
        types::{ExtractiveWord, FileOps, Initiator, Preparation, Summarizer, Usage},
    },
    redact::redact,
    settings::{Settings, Sourced},
    summary::{extractive, files::FileLists},
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
    Ok(Planned { plan: plan.carrying(meter.carried()), usage: measure.usage })
}

/// What a plan would do, for somebody who only asks. `summarizer` is the model that would be asked first, `requests` how
/// often.
#[must_use]
pub fn preparation(
    plan: &Plan,
    settings: &Settings,
    summarizer: Option<ModelRef>,
    requests: Option<usize>,
) -> Preparation {
    // What is only told of a plan is no less read than what comes of it.
    let clean = |text: &str| match settings.redaction.enabled {
        true => redact(text).into_owned(),
        false => text.to_owned(),
    };
    let files = FileLists::of(&plan.span(), &settings.tools.files, &clean);
    let counted =
        |entries: &[Arc<crate::conversation::entry::Entry>]| entries.iter().filter(|entry| entry.in_context()).count();
    let scale = plan.demand.scale;
    let summarized: u64 = plan.summarized().iter().map(|entry| u64::from(entry.tokens(scale.estimator()))).sum();
    let summary = plan.demand.budget.summary_cap().min(scale.size(summarized));
    // What stands around the summary, and behind it.
    let carried = plan.carried().map_or(0, |carried| scale.text(&carried.text));
    let frame = scale.text(plan.prompts.get(Prompt::CompactionSummaryContext))
        + scale.text(plan.prompts.get(Prompt::CarriedMessageContext))
        + carried;
    Preparation {
        first_kept_entry_id: plan.first_kept_id().cloned(),
        messages_to_summarize: counted(plan.history()),
        turn_prefix_messages: counted(plan.turn_prefix()),
        is_split_turn: plan.splits_a_turn(),
        tokens_before: plan.demand.tokens_before,
        tokens_after_estimate: plan.demand.budget.overhead() + plan.kept_tokens() + summary + frame,
        previous_summary: plan.previous().and_then(|entry| Some(clean(&entry.compaction()?.summary))),
        chunks: requests.unwrap_or(0),
        summarizer: summarizer.map_or(Summarizer::Extractive(ExtractiveWord::Extractive), Summarizer::Model),
        file_ops: FileOps { read: files.read_files, modified: files.modified_files },
        plan_hash: plan.hash(),
    }
}

/// Why there is no draft.
pub enum NoDraft {
    /// Somebody stopped it.
    Stopped,
    /// Nothing fits.
    Failed(Failure),
}

/// Makes the draft of a plan.
///
/// # Errors
/// When it was stopped, or nothing that could be written fits the window.
pub fn draft(plan: Plan, settings: &Settings, instructions: Option<&str>, stop: &Stop) -> Result<Draft, NoDraft> {
    let summarize = |plan: &Plan, cap: u64| {
        extractive::summarize(&extractive::Request {
            span: plan.span(),
            instructions,
            cap,
            settings,
            scale: plan.demand.scale,
            stop: &|| stop.requested(),
        })
    };
    let draft = ladder::climb(plan, &settings.prune, &summarize);
    if stop.requested() {
        return Err(NoDraft::Stopped);
    }
    draft.map_err(|floor| NoDraft::Failed(Failure::ContextOverflow(floor)))
}
