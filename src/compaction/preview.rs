//! A preview of a compaction: the effects of a plan, without a summary.

use super::{
    draft::{self, Draft},
    ladder,
    plan::Plan,
};
use crate::{
    conversation::entry::Entry,
    prompts::Prompt,
    settings::Settings,
    summary::{extractive::Summary, files::FileLists},
};
use std::sync::Arc;

/// The effects that a plan would have.
#[derive(Debug, Clone)]
pub struct Preview {
    /// Number of messages in whole turns that would be summarized.
    pub history_messages: usize,
    /// Number of messages that would be summarized from a turn whose end is kept.
    pub turn_prefix_messages: usize,
    /// Upper bound of the context's size after the compaction, in tokens. A compaction that makes nothing smaller is skipped, unless its
    /// request insists.
    pub tokens_after: u64,
    /// The effect on the size, as far as the plan tells it.
    pub effect: Effect,
    /// The redacted summary in force, which would be merged into the new one.
    pub previous_summary: Option<String>,
    /// The redacted files of the summarized entries.
    pub files: FileLists,
}

/// The effect of a compaction on the size of its context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The context becomes smaller.
    Shrinks,
    /// With a summary of the largest size the context does not become smaller.
    MayNotShrink,
}

/// Size of the skills and instructions that a plan carries in their frame, in tokens.
fn loaded_size(plan: &Plan) -> u64 {
    let (scale, loaded) = (plan.demand.scale, plan.loaded());
    let texts = loaded.iter().map(|load| scale.text(&load.framed()));
    let frame = if loaded.is_empty() { 0 } else { scale.text(plan.prompts.get(Prompt::LoadedContext)) };
    texts.sum::<u64>() + frame
}

impl Preview {
    /// Previews a plan. The texts are redacted as those of a summary, because they reach the client too.
    #[must_use]
    pub fn of(plan: &Plan, settings: &Settings) -> Self {
        let scale = plan.demand.scale;
        // A summary that a request insists on may be larger than what it replaces.
        let replaced = if plan.demand.insists { u64::MAX } else { scale.size(plan.span().replaced(scale.estimator())) };
        let summary = plan.demand.budget.summary_cap().min(replaced);
        // The frame around the summary, and the newest user message after it.
        let frame = scale.text(plan.prompts.get(Prompt::CompactionSummaryContext))
            + scale.text(plan.prompts.get(Prompt::CarriedMessageContext))
            + plan.carried().map_or(0, |carried| scale.text(&carried.text))
            + plan
                .todos(plan.path())
                .map_or(0, |todos| scale.text(plan.prompts.get(Prompt::TodosContext)) + scale.text(&todos.lines()))
            + loaded_size(plan)
            + plan.prompts.transcript_hint().map_or(0, |hint| scale.text(&hint));
        let said: u64 = plan.user_messages().iter().map(|said| scale.text(&said.text)).sum();
        let largest = plan.demand.budget.overhead() + plan.kept_tokens() + said + summary + frame;
        Self::of_size(plan, largest, settings)
    }

    /// Previews a draft without a model, whose plan may keep less than the one that it was made for. `by_model`: a model writes
    /// another summary for its plan.
    #[must_use]
    pub fn of_draft(draft: &Draft, by_model: bool, settings: &Settings) -> Self {
        let is_completed = ladder::is_to_be_completed(draft);
        let largest = match by_model {
            true => {
                let without = Draft::extracted(draft.plan.clone(), Summary::default(), draft.edits.clone());
                let written = draft.tokens_after.max(without.tokens_after + draft.room_for_summary());
                if is_completed { written.max(ladder::most_completed(draft)) } else { written }
            }
            false if is_completed => ladder::completed(draft.clone()).tokens_after,
            false => draft.tokens_after,
        };
        Self::of_size(&draft.plan, largest, settings)
    }

    fn of_size(plan: &Plan, largest: u64, settings: &Settings) -> Self {
        let clean = |text: &str| settings.redaction.secrets().clean(text);
        let span = plan.span();
        let in_context = |entries: &[Arc<Entry>]| entries.iter().filter(|entry| entry.in_context()).count();
        let before = draft::size_before(plan);
        Self {
            history_messages: in_context(plan.history()),
            turn_prefix_messages: in_context(plan.turn_prefix()),
            tokens_after: if plan.demand.insists { largest } else { largest.min(before) },
            effect: if largest < plan.demand.tokens_before { Effect::Shrinks } else { Effect::MayNotShrink },
            previous_summary: span.previous_summary().map(|text| clean(text).into_string()),
            files: FileLists::of(&span, &settings.tools.files, &clean),
        }
    }
}
