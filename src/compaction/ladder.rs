//! The ladder: a draft that does not fit is made smaller, rung by rung, until it fits.
//!
//! Every rung makes another draft from the cut, the summary and the edits of the draft before. A draft that is not smaller
//! is skipped. The last rungs keep a short ledger and the entries that stay in any case: the messages of the user that no model
//! has read, and calls that wait for their results. These lose their middle. Where not even the ends of all these messages fit a
//! context that is over the window, the oldest of them are summarized. At the end entries that no model has read get as much of
//! their text back as fits. A session cannot be compacted only if system prompt, tools and pins alone leave no room.

mod elide;
#[cfg(test)]
mod tests;

use super::{
    draft::{Draft, goal, size_before},
    images,
    plan::{self, Plan},
    prune::{self, Rules, Standing},
};
use crate::{
    conversation::entry::{Body, ContextEdit, Entry},
    ids::EntryId,
    models::Budget,
    redact::{Clean, Secrets},
    settings::{PruneSettings, Settings},
    summary::{
        cleaner::Cleaner,
        extractive::{self, Summary, Wishes},
        files::FileLists,
    },
};
use std::{
    collections::HashSet,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

/// The parts of a context that is too large although nothing of it can be made smaller, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Floor {
    /// The system prompt.
    pub system: u64,
    /// The tools.
    pub tools: u64,
    /// Pinned entries.
    pub pins: u64,
    /// Summary, messages of the user that no model has read, and calls that still wait for their results.
    pub latest_turn: u64,
    /// The window.
    pub window: u64,
}

impl Floor {
    /// All parts together, in tokens.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.system + self.tools + self.pins + self.latest_turn
    }
}

/// The reason why a plan has no draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoDraft {
    /// The work was cancelled.
    Cancelled,
    /// Not even the last rung fits the window.
    TooLarge(Floor),
    /// The last rung is not smaller than the context.
    WouldNotShrink,
}

/// Size of the ledger of the last rung, in tokens.
const SHORTEST_SUMMARY: u64 = 500;

/// Number of messages whose images stay: the newest.
const KEPT_IMAGES: usize = 1;

/// The least summary that is worth a compaction, in tokens: a heading and a line of fifteen words.
const LEAST_SUMMARY: usize = 30;

/// Makes the draft of a plan without a model: an extracted summary, and as much of the kept part as fits. `stop` tells
/// whether the work is cancelled.
///
/// # Errors
/// When the work is cancelled, or no draft fits.
pub fn extracted(
    plan: Plan,
    settings: &Settings,
    cleaner: &Cleaner,
    wishes: Wishes<'_>,
    stop: &dyn Fn() -> bool,
) -> Result<Draft, NoDraft> {
    let summarize = |plan: &Plan, cap: u64| {
        let (span, scale) = (plan.span(), plan.demand.scale);
        let request = extractive::Request { span, wishes, cap, without: None, settings, cleaner, scale, stop };
        // Without a floor a context over its window stays over it.
        catch_unwind(AssertUnwindSafe(|| extractive::summarize(&request))).unwrap_or_else(|_| {
            tracing::error!("a defect ended the extraction of a summary; it has the newest words of the user alone");
            let request = extractive::Request { stop: &|| false, ..request };
            extractive::plain(&request)
        })
    };
    let draft = climb(plan, settings.into(), &summarize);
    if stop() { Err(NoDraft::Cancelled) } else { draft }
}

/// The reason why a supplied summary does not become the draft of its plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// The context with it is over its limit.
    #[error("with it the context would have {after} tokens, over the {goal} aimed at")]
    Large {
        /// Size of the context with it, in tokens.
        after: u64,
        /// The limit, in tokens.
        goal: u64,
    },
    /// The context with it is not smaller than before.
    #[error("with it the context would have {after} tokens, and has {before} without it")]
    NotSmaller {
        /// Size of the context with it, in tokens.
        after: u64,
        /// Size of the context now, in tokens.
        before: u64,
    },
}

/// Makes the draft of a plan with a summary that was written for exactly this cut. Only edits of the kept entries make it
/// smaller.
///
/// # Errors
/// When it does not fit, or is not smaller than the context.
pub fn supplied(plan: Plan, summary: Summary, rules: Rules<'_>) -> Result<Draft, Unfit> {
    let (goal, before) = (goal(&plan), size_before(&plan));
    let mut ladder = Ladder { best: Draft::extracted(plan.clone(), summary, carried_edits(&plan)), goal };
    ladder.lose_image_bytes();
    ladder.shrink_kept(rules);
    while ladder.best.tokens_after >= before && ladder.load_less() {}
    let threshold = plan.demand.budget.threshold;
    let (after, goal) = (ladder.best.tokens_after, goal.max(threshold * 9 / 10));
    match () {
        () if after > goal => Err(Unfit::Large { after, goal }),
        () if after >= before && !plan.demand.insists => Err(Unfit::NotSmaller { after, before }),
        () => Ok(ladder.best),
    }
}

/// Whether a draft of this plan may be smaller than the context. A context that has to become smaller is measured by its
/// draft alone.
#[must_use]
pub fn may_shrink(plan: &Plan) -> bool {
    let text = Secrets::Redacted.clean(&"word ".repeat(LEAST_SUMMARY));
    let smallest = Draft::extracted(
        plan.with_nothing_loaded(),
        Summary { text, short: Clean::default(), files: FileLists::default() },
        carried_edits(plan),
    );
    let has_to_change = plan.demand.insists || plan.demand.may_stay == 0;
    has_to_change || smallest.tokens_after > goal(plan) || smallest.tokens_after < size_before(plan)
}

/// The room for a summary by a model, in tokens, where every draft of the plan fits as it is: with the largest summary, without
/// a rung, and the extracted one smaller than the context. A summary by a model is smaller than the part that it replaces.
#[must_use]
pub fn room_at_once(plan: &Plan) -> Option<u64> {
    let without = Draft::extracted(plan.clone(), Summary::default(), carried_edits(plan));
    let scale = plan.demand.scale;
    let (room, extracted) = (plan.demand.budget.summary_cap(), summary_cap(plan));
    let by_model = room.min(scale.size(plan.span().replaced(scale.estimator())));
    let fits = without.tokens_after + by_model.max(extracted) <= goal(plan);
    let shrinks = without.tokens_after + extracted < size_before(plan) || plan.demand.insists;
    (fits && shrinks && without.image_bytes <= images::BUDGET).then_some(room)
}

/// Finds the first draft that fits. `summarize` gives the summary of a plan within a number of tokens.
///
/// # Errors
/// When not even the last rung fits, or the draft is not smaller than the context.
pub fn climb(plan: Plan, rules: Rules<'_>, summarize: &dyn Fn(&Plan, u64) -> Summary) -> Result<Draft, NoDraft> {
    let (goal, before) = (goal(&plan), size_before(&plan));
    let cap = summary_cap(&plan);
    let mut ladder = Ladder { best: Draft::extracted(plan.clone(), summarize(&plan, cap), carried_edits(&plan)), goal };

    ladder.lose_image_bytes();
    ladder.shrink_kept(rules);
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
        if ladder.may_have(&plan, goal) {
            ladder.try_rung(|draft| {
                let summary = summarize(&plan, summary_cap(&plan));
                Draft::extracted(plan.clone(), summary, edits_of_kept(&plan, &draft.edits))
            });
        }
    }
    // The next rung keeps a short ledger, and the entries that stay in any case.
    let unread = !plan::unread(ladder.best.plan.kept()).is_empty();
    ladder.try_rung(|draft| with_short_summary(draft, draft.plan.keeping(u64::from(unread)), summarize));
    // The last rungs cut these entries. Another compaction is better than a request without its middle.
    let threshold = ladder.best.plan.demand.budget.threshold;
    ladder.goal = ladder.goal.max(threshold * 9 / 10);
    let limit = ladder.goal;
    ladder.try_rung(|draft| elide::cut_to(draft, limit));
    ladder.try_rung(|draft| with_edits(draft, &image_edits(draft, 0)));
    ladder.try_rung(|draft| with_edits(draft, &prune_all(draft)));
    ladder
        .try_rung(|draft| Draft::extracted(draft.plan.with_short_todos(), draft.summary.clone(), draft.edits.clone()));
    if unread {
        // The call of these results may be the large part.
        ladder.try_rung(|draft| with_short_summary(draft, draft.plan.keeping_least(), summarize));
    }
    let mut tried = ladder.best.plan.clone();
    while matches!(ladder.objection(before), Some(NoDraft::TooLarge(_)))
        && let Some(plan) = tried.keeping_fewer_unread()
    {
        tried = plan.clone();
        // A context over the goal is accepted up to these sizes.
        let budget = plan.demand.budget;
        let most = ladder.goal.max(budget.threshold).max(budget.usable());
        if ladder.may_have(&plan, most) || plan.keeping_fewer_unread().is_none() {
            ladder.try_rung(|draft| with_short_summary(draft, plan, summarize));
        }
    }
    // A text that was loaded is no reason against a compaction.
    while ladder.best.tokens_after >= before && ladder.load_less() {}
    ladder.accepted(before)
}

/// The draft of a plan with a smaller tail and the shortest summary.
fn with_short_summary(draft: &Draft, plan: Plan, summarize: &dyn Fn(&Plan, u64) -> Summary) -> Draft {
    let summary = summarize(&plan, SHORTEST_SUMMARY);
    let edits = edits_of_kept(&plan, &draft.edits);
    Draft::extracted(plan, summary, edits)
}

/// Whether a draft has a last step: only edits and summaries cut an entry that no model has read.
#[must_use]
pub fn is_to_be_completed(draft: &Draft) -> bool {
    !draft.edits.is_empty() || !draft.plan.summarized_unread().is_empty()
}

/// The most tokens of a context after its last step.
#[must_use]
pub fn most_completed(draft: &Draft) -> u64 {
    let (goal, threshold) = (goal(&draft.plan), draft.plan.demand.budget.threshold);
    // The last rungs may have needed more than the goal.
    let most = if draft.tokens_after > goal { goal.max(threshold * 9 / 10) } else { goal };
    let smaller = if draft.plan.demand.insists { u64::MAX } else { size_before(&draft.plan).saturating_sub(1) };
    most.min(smaller)
}

/// The last step of a draft, with the summary that it has in the end: entries that no model has read have as much of their
/// texts as the goal allows, and the draft names those of them that it cuts or summarizes.
#[must_use]
pub fn completed(draft: Draft) -> Draft {
    let carried = carried_edits(&draft.plan);
    let shortened = elide::shortened(&draft, &carried);
    if shortened.is_empty() {
        return draft;
    }
    let most = most_completed(&draft);
    let draft = elide::restored(draft, &carried, most);
    let shortened = elide::shortened(&draft, &carried);
    Draft { shortened, ..draft }
}

/// Limit of a summary, in tokens: the budget's cap, and the size of the previous summary with half of the part that is new. A
/// summary that fills its limit is worth its compaction then, and loses nothing for being summarized again.
fn summary_cap(plan: &Plan) -> u64 {
    /// The headings alone take about so many.
    const LEAST: u64 = 160;
    let (span, scale) = (plan.span(), plan.demand.scale);
    // The limit is a size as the provider counts, which may be less than the estimate.
    let (all, new) = (scale.size(span.replaced(scale.estimator())), scale.size(span.said(scale.estimator())));
    (all - new / 2).clamp(LEAST, plan.demand.budget.summary_cap().max(LEAST))
}

struct Ladder {
    best: Draft,
    goal: u64,
}

impl Ladder {
    fn fits(&self) -> bool {
        self.best.tokens_after <= self.goal
    }

    /// Whether a plan with a larger cut has at most so many tokens without its summary. The extraction of a summary takes longer
    /// than this look.
    fn may_have(&self, plan: &Plan, most: u64) -> bool {
        let edits = edits_of_kept(plan, &self.best.edits);
        Draft::extracted(plan.clone(), Summary::default(), edits).tokens_after <= most
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

    /// The rungs that leave the cut and the summary as they are.
    fn shrink_kept(&mut self, rules: Rules<'_>) {
        while !self.fits()
            && let Some(plan) = self.best.plan.with_fewer_messages()
        {
            let Draft { summary, edits, .. } = self.best.clone();
            self.best = Draft { supplied: self.best.supplied.clone(), ..Draft::extracted(plan, summary, edits) };
        }
        self.try_rung(|draft| with_edits(draft, &prune_edits(draft, rules)));
        self.try_rung(elide::without_oversized);
        self.try_rung(|draft| with_edits(draft, &image_edits(draft, KEPT_IMAGES)));
        while !self.fits() && self.load_less() {}
    }

    /// Carries less of the loaded texts. False without any.
    fn load_less(&mut self) -> bool {
        let Some(plan) = self.best.plan.with_less_loaded() else { return false };
        let Draft { summary, edits, supplied, .. } = self.best.clone();
        self.best = Draft { supplied, ..Draft::extracted(plan, summary, edits) };
        true
    }

    /// Removes old images until their bytes are within the budget.
    fn lose_image_bytes(&mut self) {
        if self.best.image_bytes <= images::BUDGET {
            return;
        }
        let edits = images::within(&self.best.context(), images::TARGET, &|entry| !is_pinned(&self.best, entry));
        self.best = with_edits(&self.best, &edits);
    }

    /// The draft in hand, if it is worth writing over a context of the size `before`.
    fn accepted(self, before: u64) -> Result<Draft, NoDraft> {
        self.objection(before).map_or(Ok(self.best), Err)
    }

    /// The reason why the draft in hand is not worth writing over a context of the size `before`.
    fn objection(&self, before: u64) -> Option<NoDraft> {
        let Draft { tokens_after: after, plan, .. } = &self.best;
        let budget = plan.demand.budget;
        let shrinks = after < &before || plan.demand.insists;
        // Over the threshold a compaction would be due again after a smaller change.
        let much = *after <= before - before / 20;
        match () {
            () if *after <= budget.threshold.max(self.goal) && shrinks => None,
            () if *after <= budget.usable() && much => None,
            () if before < budget.window => Some(NoDraft::WouldNotShrink),
            () => {
                let Budget { system, tools, pins, window, .. } = budget;
                let latest_turn = after.saturating_sub(budget.overhead() + pins);
                Some(NoDraft::TooLarge(Floor { system, tools, pins, latest_turn, window }))
            }
        }
    }
}

/// The draft with more edits. An edit replaces an earlier one of the same entry.
fn with_edits(draft: &Draft, more: &[ContextEdit]) -> Draft {
    let replaced: HashSet<&EntryId> = more.iter().map(|edit| &edit.target_id).collect();
    let mut edits = draft.edits.clone();
    edits.retain(|edit| !replaced.contains(&edit.target_id));
    edits.extend_from_slice(more);
    draft.clone().with_edits(edits)
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
    let of = |entry: &Arc<Entry>| match &entry.body {
        Body::ContextEdit(edit) => Some(edit.target_id.clone()),
        _ => None,
    };
    let later: HashSet<EntryId> = path[place + 1..].iter().filter_map(of).collect();
    edits.retain(|edit| !later.contains(&edit.target_id));
    edits
}

fn edits_of_kept(plan: &Plan, edits: &[ContextEdit]) -> Vec<ContextEdit> {
    let kept: HashSet<&EntryId> = plan.kept().iter().map(|entry| &entry.id).collect();
    edits.iter().filter(|edit| kept.contains(&edit.target_id)).cloned().collect()
}

fn is_pinned(draft: &Draft, entry: &EntryId) -> bool {
    draft.plan.path().pins().iter().any(|pin| pin.entry == *entry)
}

/// Edits that cut superseded reads and the results before the protected newest ones, if the gain is large enough.
fn prune_edits(draft: &Draft, rules: Rules<'_>) -> Vec<ContextEdit> {
    let estimator = draft.plan.demand.scale.estimator();
    let (edited, unread) = (edited(draft), plan::unread_ids(draft.plan.kept()));
    let standing = |entry: &Entry| match () {
        () if edited.contains(&entry.id) => Standing::Edited,
        () if draft.plan.is_pinned(entry) => Standing::Pinned,
        () if unread.contains(&entry.id) => Standing::Unread,
        () => Standing::Free,
    };
    prune::prune(draft.plan.kept(), rules, estimator, &standing).edits
}

/// Edits that replace every kept result with the notice of a pruning.
fn prune_all(draft: &Draft) -> Vec<ContextEdit> {
    let all = PruneSettings { protect_tokens: 0, minimum_savings: 0, protected_tools: Vec::new(), cache_seconds: 300 };
    let standing = |entry: &Entry| if draft.plan.is_pinned(entry) { Standing::Pinned } else { Standing::Free };
    let rules = Rules { settings: &all, tools: &[] };
    prune::prune(draft.plan.kept(), rules, draft.plan.demand.scale.estimator(), &standing).edits
}

/// The entries whose content an edit replaces.
fn edited(draft: &Draft) -> HashSet<EntryId> {
    let on_path = draft.plan.path().iter().filter_map(|entry| match &entry.body {
        Body::ContextEdit(edit) => Some(edit.target_id.clone()),
        _ => None,
    });
    on_path.chain(draft.edits.iter().map(|edit| edit.target_id.clone())).collect()
}

/// Edits that replace the images of all messages but the newest `keep` with a notice.
fn image_edits(draft: &Draft, keep: usize) -> Vec<ContextEdit> {
    images::but_newest(&draft.context(), keep, &|entry| !is_pinned(draft, entry))
}
