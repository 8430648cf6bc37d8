//! A draft that does not fit is made smaller, rung by rung, until it does.
//!
//! A draft is three things: a cut, a summary, edits of what is kept. Every rung makes another draft of the same three;
//! one that is not smaller than the draft before is skipped. The last rung keeps nothing but the newest user message
//! and a short ledger, so a session is stuck only when system prompt and tools alone leave no room.

use super::{plan::Plan, prune};
use crate::{
    conversation::{
        context::{self, Context},
        entry::{self, Body, ContextEdit, Entry, Preserved},
        message::{Block, Message},
        path::Path,
    },
    ids::EntryId,
    models::Budget,
    settings::PruneSettings,
    summary::{
        extractive::Summary,
        made::{Made, Rejected},
    },
    text,
};
use serde_json::{Value, json};
use std::sync::Arc;

/// What a compaction would write: all of it in one entry.
#[derive(Debug, Clone)]
pub struct Draft {
    /// The cut.
    pub plan: Plan,
    /// What stands for the part before it.
    pub summary: Summary,
    /// How it came to be.
    pub made: Made,
    /// Edits of what is kept.
    pub edits: Vec<ContextEdit>,
    /// Size of the context that would result, in tokens, estimated and calibrated, with the fixed overhead.
    pub tokens_after: u64,
}

/// What is left when nothing can be made smaller any more, and still too much. In tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Floor {
    /// The system prompt.
    pub system: u64,
    /// The tools.
    pub tools: u64,
    /// What is pinned.
    pub pins: u64,
    /// Summary, newest user message, and calls that still wait for their results.
    pub latest_turn: u64,
    /// The window.
    pub window: u64,
}

/// The ledger of the last rung, in tokens.
const SHORTEST_SUMMARY: u64 = 500;

/// A result over this is oversized, in tokens: a tenth of the default tail.
const OVERSIZED: u64 = 2_000;

/// What stays of it, in characters, beginning and end together: about half of that.
const ELIDED_CHARS: usize = 4_000;

/// Images that stay: the newest.
const KEPT_IMAGES: usize = 1;

/// Finds the first draft that fits. `summarize` gives the summary of a plan within a number of tokens.
///
/// # Errors
/// When not even the last rung is under the threshold.
pub fn climb(plan: Plan, prune: &PruneSettings, summarize: &dyn Fn(&Plan, u64) -> Summary) -> Result<Draft, Floor> {
    let budget = plan.demand.budget;
    let goal = goal(&plan);
    let cap = summary_cap(&plan);
    let mut ladder = Ladder { best: Draft::measured(plan.clone(), summarize(&plan, cap), carried_edits(&plan)), goal };

    ladder.try_rung(|draft| with_edits(draft, &prune_edits(draft, prune)));
    ladder.try_rung(|draft| with_edits(draft, &elide_edits(draft)));
    ladder.try_rung(|draft| with_edits(draft, &image_edits(draft)));
    // Keep less, by halves.
    let mut keep = ladder.best.plan.kept_tokens();
    while keep > 1 && !ladder.fits() {
        keep /= 2;
        ladder.try_rung(|draft| {
            // Estimates are calibrated, cuts are not.
            let plan = draft.plan.keeping(draft.plan.demand.scale.fitting(keep) + 1);
            let summary = summarize(&plan, summary_cap(&plan));
            Draft::measured(plan.clone(), summary, edits_of_kept(&plan, &draft.edits))
        });
    }
    // At last nothing but the newest user message and a short ledger.
    ladder.try_rung(|draft| {
        let plan = draft.plan.keeping(0);
        let summary = summarize(&plan, SHORTEST_SUMMARY);
        Draft::measured(plan.clone(), summary, edits_of_kept(&plan, &draft.edits))
    });
    let Draft { tokens_after, .. } = ladder.best;
    if tokens_after > budget.threshold.max(goal) {
        let Budget { system, tools, pins, window, .. } = budget;
        let latest_turn = tokens_after.saturating_sub(budget.overhead() + pins);
        return Err(Floor { system, tools, pins, latest_turn, window });
    }
    Ok(ladder.best)
}

/// How large the context may be afterwards, in tokens. A tail that was asked for by number is only cut where it has to be.
fn goal(plan: &Plan) -> u64 {
    let budget = plan.demand.budget;
    if plan.demand.explicit { budget.threshold } else { budget.target() }
}

/// The most a summary may have: the budget's cap, and less than what it stands for, or nothing would be gained.
fn summary_cap(plan: &Plan) -> u64 {
    /// Under this there is no room for the headings.
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

impl Draft {
    fn measured(plan: Plan, summary: Summary, edits: Vec<ContextEdit>) -> Self {
        Self { plan, summary, made: Made::default(), edits, tokens_after: 0 }.measure()
    }

    fn measure(self) -> Self {
        let mut draft = self;
        let demand = draft.plan.demand;
        draft.tokens_after =
            demand.budget.overhead() + demand.scale.size(draft.context().tokens(demand.scale.estimator()));
        draft
    }

    /// The limit of another summary in the place of this one, in tokens, so that the draft still fits.
    #[must_use]
    pub fn room_for_summary(&self) -> u64 {
        let slack = goal(&self.plan).max(self.tokens_after) - self.tokens_after;
        self.plan.demand.budget.summary_cap().min(self.plan.demand.scale.text(&self.summary.text) + slack)
    }

    /// The draft with another summary; the same one again where that would not fit.
    #[must_use]
    pub fn with_summary(self, text: String, short: Option<String>, made: Made) -> Self {
        let goal = goal(&self.plan).max(self.tokens_after);
        let short = short.unwrap_or_else(|| self.summary.short.clone());
        let files = self.summary.files.clone();
        let (plan, edits, before) = (self.plan.clone(), self.edits.clone(), made.clone());
        let with = Self { plan, summary: Summary { text, short, files }, made, edits, tokens_after: 0 }.measure();
        if with.tokens_after <= goal {
            return with;
        }
        let why = format!("with it the context would have {} tokens, over the {goal} aimed at", with.tokens_after);
        let mut made = Made { by: None, rejected: before.rejected };
        made.rejected.push(Rejected { model: before.by, why, error: None });
        Self { made, ..self }
    }

    /// The context that would result.
    #[must_use]
    pub fn context(&self) -> Context {
        let id: EntryId = "draft".into();
        let path = self.plan.path();
        let line = self.line(&id, path.last().map(|leaf| &leaf.id), path, None, 0);
        let entry = Entry::parse(line.into()).expect("we wrote this line ourselves");
        context::build(&self.plan.path().with(Arc::new(entry)), &self.plan.prompts)
    }

    /// The entry as a line of the file, behind `parent`. `path` may have grown since the plan was made. `first_kept` is what
    /// is kept where the plan itself keeps nothing.
    #[must_use]
    pub fn line(
        &self,
        id: &EntryId,
        parent: Option<&EntryId>,
        path: &Path,
        first_kept: Option<&EntryId>,
        tokens_after: u64,
    ) -> String {
        let first_kept = self.plan.first_kept_id().or(first_kept).unwrap_or(id);
        let mut preserved = Preserved::of(path);
        preserved.newest_user_message = self.plan.carried();
        preserved.edits = self.edits.clone();
        preserved.compactions += 1;
        preserved.overhead = Some(self.plan.demand.budget.overhead());
        preserved.calibrations = self.plan.calibrations().to_vec();
        for pin in &mut preserved.pins {
            let place = path.position(&pin.entry_id);
            if let Some(place) = place.filter(|place| *place < self.plan.first_kept()) {
                pin.text = Some(path[place].pinned_text());
            }
        }
        let mut ours = json!(preserved);
        if let Some(by) = &self.made.by {
            ours["summarizer"] = json!(by);
        }
        if !self.made.rejected.is_empty() {
            ours["rejected"] = json!(self.made.rejected);
        }
        let texts = [
            ("summary", entry::raw(&self.summary.text)),
            ("shortSummary", entry::raw(&self.summary.short)),
            ("firstKeptEntryId", entry::raw(first_kept)),
            ("tokensBefore", entry::raw(&self.plan.demand.tokens_before)),
            ("tokensAfter", entry::raw(&tokens_after)),
            ("method", entry::raw(&self.made.method())),
            ("details", entry::raw(&self.summary.files)),
            ("preserveData", entry::raw(&json!({ "abridged": ours }))),
        ];
        // pi reads here what its system messages before the compaction declared.
        let system = path.system_prompt().message().map(|message| ("systemMessage", entry::raw(&message)));
        let fields: Vec<_> = texts.iter().chain(&system).map(|(name, json)| (*name, &**json)).collect();
        entry::line("compaction", id, parent, &fields)
    }
}

/// The draft with more edits; an edit replaces an earlier one of the same entry.
fn with_edits(draft: &Draft, more: &[ContextEdit]) -> Draft {
    let mut edits = draft.edits.clone();
    edits.retain(|edit| more.iter().all(|it| it.target_id != edit.target_id));
    edits.extend_from_slice(more);
    Draft::measured(draft.plan.clone(), draft.summary.clone(), edits)
}

/// The edits that came with the compaction before, hold still and are about something that is kept.
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

/// The tool results of the kept part that may be made smaller, newest first.
fn results(draft: &Draft) -> impl Iterator<Item = (&Arc<Entry>, &crate::conversation::message::ToolResult)> {
    prune::results(draft.plan.kept()).filter(|(entry, _)| !draft.plan.is_pinned(entry))
}

/// Old results behind the newest that are protected, if it is worth it.
fn prune_edits(draft: &Draft, settings: &PruneSettings) -> Vec<ContextEdit> {
    let estimator = draft.plan.demand.scale.estimator();
    let already = |entry: &Entry| draft.edits.iter().any(|edit| edit.target_id == entry.id);
    let may = |entry: &Entry| !draft.plan.is_pinned(entry) && !already(entry);
    prune::prune(draft.plan.kept(), settings, estimator, &may).edits
}

/// Oversized results lose their middle.
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

/// All images but the newest give way to a word about them.
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
