//! The ladder: a draft that does not fit is made smaller, rung by rung, until it fits.
//!
//! Every rung makes another draft from the cut, the summary and the edits of the draft before. A draft that is not smaller
//! is skipped. The last rung keeps only the newest user message and a short ledger, so a session cannot be compacted only
//! if system prompt and tools alone leave no room.

use super::{
    draft::{Draft, goal},
    plan::Plan,
    prune,
};
use crate::{
    conversation::{
        entry::{Body, ContextEdit, Entry},
        message::{Block, Message, ToolResult},
    },
    ids::EntryId,
    models::Budget,
    settings::{PruneSettings, Settings},
    summary::extractive::{self, Summary},
    text,
};
use serde_json::{Value, json};
use std::sync::Arc;

/// The parts of a context that is too large although nothing of it can be made smaller, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Floor {
    /// The system prompt.
    pub system: u64,
    /// The tools.
    pub tools: u64,
    /// Pinned entries.
    pub pins: u64,
    /// Summary, newest user message, and calls that still wait for their results.
    pub latest_turn: u64,
    /// The window.
    pub window: u64,
}

/// The reason why a plan has no draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoDraft {
    /// The work was cancelled.
    Cancelled,
    /// Not even the last rung is under the threshold.
    TooLarge(Floor),
}

/// Size of the ledger of the last rung, in tokens.
const SHORTEST_SUMMARY: u64 = 500;

/// Largest result that is no oversized one, in tokens: a tenth of the default tail.
const OVERSIZED: u64 = 2_000;

/// Characters that stay of an oversized result, beginning and end together: about half of that size.
const ELIDED_CHARS: usize = 4_000;

/// Number of images that stay: the newest.
const KEPT_IMAGES: usize = 1;

/// Makes the draft of a plan without a model: an extracted summary, and as much of the kept part as fits. `instructions`
/// are the topics that a person wants to be kept above all. `stop` tells whether the work is cancelled.
///
/// # Errors
/// When the work is cancelled, or no draft fits.
pub fn extracted(
    plan: Plan,
    settings: &Settings,
    instructions: Option<&str>,
    stop: &dyn Fn() -> bool,
) -> Result<Draft, NoDraft> {
    let cleaner = extractive::Cleaner::new(settings);
    let summarize = |plan: &Plan, cap: u64| {
        let (span, scale, cleaner) = (plan.span(), plan.demand.scale, &cleaner);
        extractive::summarize(&extractive::Request { span, instructions, cap, settings, cleaner, scale, stop })
    };
    let draft = climb(plan, &settings.prune, &summarize);
    if stop() {
        return Err(NoDraft::Cancelled);
    }
    draft.map_err(NoDraft::TooLarge)
}

/// Finds the first draft that fits. `summarize` gives the summary of a plan within a number of tokens.
///
/// # Errors
/// When not even the last rung is under the threshold.
pub fn climb(plan: Plan, prune: &PruneSettings, summarize: &dyn Fn(&Plan, u64) -> Summary) -> Result<Draft, Floor> {
    let budget = plan.demand.budget;
    let goal = goal(&plan);
    let cap = summary_cap(&plan);
    let mut ladder = Ladder { best: Draft::extracted(plan.clone(), summarize(&plan, cap), carried_edits(&plan)), goal };

    ladder.try_rung(|draft| with_edits(draft, &prune_edits(draft, prune)));
    ladder.try_rung(|draft| with_edits(draft, &elide_edits(draft)));
    ladder.try_rung(|draft| with_edits(draft, &image_edits(draft)));
    // The next rungs halve the tail.
    let mut keep = ladder.best.plan.kept_tokens();
    let mut tried = ladder.best.plan.clone();
    while keep > 1 && !ladder.fits() {
        keep /= 2;
        // A cut is made by estimates.
        let plan = tried.keeping(tried.demand.scale.fitting(keep) + 1);
        // The same cut gives the same draft.
        if plan.cuts_like(&tried) {
            continue;
        }
        tried = plan.clone();
        ladder.try_rung(|draft| {
            let summary = summarize(&plan, summary_cap(&plan));
            Draft::extracted(plan.clone(), summary, edits_of_kept(&plan, &draft.edits))
        });
    }
    // The last rung keeps the newest user message and a short ledger.
    ladder.try_rung(|draft| {
        let plan = draft.plan.keeping(0);
        let summary = summarize(&plan, SHORTEST_SUMMARY);
        Draft::extracted(plan.clone(), summary, edits_of_kept(&plan, &draft.edits))
    });
    let Draft { tokens_after, .. } = ladder.best;
    if tokens_after > budget.threshold.max(goal) {
        let Budget { system, tools, pins, window, .. } = budget;
        let latest_turn = tokens_after.saturating_sub(budget.overhead() + pins);
        return Err(Floor { system, tools, pins, latest_turn, window });
    }
    Ok(ladder.best)
}

/// Limit of a summary, in tokens: the budget's cap, and less than the part that it replaces.
fn summary_cap(plan: &Plan) -> u64 {
    /// The headings alone take about so many.
    const LEAST: u64 = 160;
    let replaced = plan.span().replaced(plan.demand.scale.estimator());
    (replaced * 4 / 5).clamp(LEAST, plan.demand.budget.summary_cap().max(LEAST))
}

struct Ladder {
    best: Draft,
    goal: u64,
}

impl Ladder {
    fn fits(&self) -> bool {
        self.best.tokens_after <= self.goal
    }

    fn try_rung(&mut self, make: impl FnOnce(&Draft) -> Draft) {
        if self.fits() {
            return;
        }
        let draft = make(&self.best);
        if draft.tokens_after < self.best.tokens_after {
            self.best = draft;
        }
    }
}

/// The draft with more edits. An edit replaces an earlier one of the same entry.
fn with_edits(draft: &Draft, more: &[ContextEdit]) -> Draft {
    let mut edits = draft.edits.clone();
    edits.retain(|edit| more.iter().all(|it| it.target_id != edit.target_id));
    edits.extend_from_slice(more);
    Draft::extracted(draft.plan.clone(), draft.summary.clone(), edits)
}

/// The edits of the previous compaction that apply to kept entries and that no later edit replaces.
fn carried_edits(plan: &Plan) -> Vec<ContextEdit> {
    let path = plan.path();
    let Some(place) = path.compaction() else { return Vec::new() };
    let Some(previous) = path[place].compaction().and_then(|compaction| compaction.preserved()) else {
        return Vec::new();
    };
    let mut edits = edits_of_kept(plan, &previous.edits);
    // A later edit of the same entry stands on the path by itself.
    let later = |target: &EntryId| {
        let of = |entry: &Arc<Entry>| matches!(&entry.body, Body::ContextEdit(edit) if edit.target_id == *target);
        path[place + 1..].iter().any(of)
    };
    edits.retain(|edit| !later(&edit.target_id));
    edits
}

fn edits_of_kept(plan: &Plan, edits: &[ContextEdit]) -> Vec<ContextEdit> {
    edits.iter().filter(|edit| plan.kept().iter().any(|entry| entry.id == edit.target_id)).cloned().collect()
}

/// The kept tool results that are not pinned, newest first.
fn results(draft: &Draft) -> impl Iterator<Item = (&Arc<Entry>, &ToolResult)> {
    prune::results(draft.plan.kept()).filter(|(entry, _)| !draft.plan.is_pinned(entry))
}

/// Edits that cut the results before the protected newest ones, if the gain is large enough.
fn prune_edits(draft: &Draft, settings: &PruneSettings) -> Vec<ContextEdit> {
    let estimator = draft.plan.demand.scale.estimator();
    let already = |entry: &Entry| draft.edits.iter().any(|edit| edit.target_id == entry.id);
    let may = |entry: &Entry| !draft.plan.is_pinned(entry) && !already(entry);
    prune::prune(draft.plan.kept(), settings, estimator, &may).edits
}

/// Edits that remove the middle of oversized results.
fn elide_edits(draft: &Draft) -> Vec<ContextEdit> {
    let mut edits = Vec::new();
    for (entry, result) in results(draft) {
        let tokens = u64::from(entry.tokens(draft.plan.demand.scale.estimator()));
        let pruned = draft.edits.iter().any(|edit| edit.target_id == entry.id);
        if tokens <= OVERSIZED || pruned {
            continue;
        }
        let whole = crate::conversation::message::text_of(&result.content);
        let gap = format!("\n[… most of these {tokens} tokens were left out; entry {} has all of it …]\n", entry.id);
        edits.push(prune::edit(entry, text::clip_middle(&whole, ELIDED_CHARS, &gap).into()));
    }
    edits
}

/// Edits that replace all images but the newest with a notice.
fn image_edits(draft: &Draft) -> Vec<ContextEdit> {
    let has_image = |message: &Message| message.blocks().iter().any(|block| matches!(block, Block::Image(_)));
    let shows = |entry: &&Arc<Entry>| entry.message().is_some_and(has_image) && !draft.plan.is_pinned(entry);
    let with_images = draft.plan.kept().iter().rev().filter(shows);
    let without = |entry: &Arc<Entry>| -> Option<Value> {
        let message = crate::conversation::message::value(entry.message_json()?)?;
        let blocks = message["content"].as_array()?.iter().map(|block| match block["type"].as_str() {
            Some("image") => json!({ "type": "text", "text": format!("[Image left out; entry {} has it]", entry.id) }),
            _ => block.clone(),
        });
        Some(blocks.collect())
    };
    with_images.skip(KEPT_IMAGES).filter_map(|entry| Some(prune::edit(entry, without(entry)?))).collect()
}
