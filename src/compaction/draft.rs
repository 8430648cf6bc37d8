//! A draft: everything that a compaction would write, measured before it is written.

use super::{images, plan::Plan, rehydrate::Rehydrated};
use crate::{
    conversation::{
        context::{self, Context},
        entry::{
            self, Attempts, CarriedAgent, CarriedCalibration, CarriedSummary, ContextEdit, Entry, Preserved, Stamp,
            native::Kind,
        },
        path::Path,
        spending::Spending,
    },
    ids::EntryId,
    models::Budget,
    redact::Clean,
    summary::{
        extractive::Summary,
        lost::Lost,
        made::{Made, Rejected, SummaryMethod},
        model::writer::Native,
    },
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Everything that a compaction would write, in one entry.
#[derive(Debug, Clone)]
pub struct Draft {
    /// The plan, with its cut.
    pub plan: Plan,
    /// The summary of the part before the cut.
    pub summary: Summary,
    /// The origin of the summary.
    pub made: Made,
    /// The provider's own compaction of the same part.
    pub native: Option<Box<Native>>,
    /// Edits of kept entries.
    pub edits: Vec<ContextEdit>,
    /// Size of the resulting context with the overhead, in tokens.
    pub tokens_after: u64,
    /// Size of its images, in bytes.
    pub image_bytes: usize,
    /// The parts of a compaction that a hook supplies.
    pub supplied: Supplied,
    /// Times that models took for the newest summaries of the session, in milliseconds, oldest first.
    pub summary_times: Vec<u64>,
    /// Entries that it cuts or summarizes before any model has read them.
    pub shortened: Vec<Shortened>,
    /// Facts that the summary does not have; `None` where they are not known.
    pub lost: Option<Box<Lost>>,
    /// The files and loaded texts that the client is told; `None` until the draft is written, and where the settings ask for none.
    pub rehydrated: Option<Box<Rehydrated>>,
}

/// The parts of a compaction that hooks supply beside its summary.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Supplied {
    /// The `details` of the entry. A summary that no hook wrote has its file lists there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// Lines that the summary was made with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<String>,
    /// Fields of `preserveData`, beside ours.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub data: Map<String, Value>,
}

/// An entry that a draft cuts or summarizes before any model has read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortened {
    /// The entry.
    pub entry: EntryId,
    /// Size of its message without the edits of the draft, in tokens.
    pub before: u64,
    /// Size of its message in the context of the draft, in tokens; 0 where it is summarized.
    pub after: u64,
}

impl Draft {
    /// A draft of an extracted summary.
    #[must_use]
    pub fn extracted(plan: Plan, summary: Summary, edits: Vec<ContextEdit>) -> Self {
        Self {
            plan,
            summary,
            made: Made::default(),
            native: None,
            edits,
            tokens_after: 0,
            image_bytes: 0,
            supplied: Supplied::default(),
            summary_times: Vec::new(),
            shortened: Vec::new(),
            lost: None,
            rehydrated: None,
        }
        .measure()
    }

    /// The draft with the files and loaded texts that the client is told. `newer` follows the path of the plan and is kept.
    #[must_use]
    pub fn rehydrated(self, newer: &[Arc<Entry>]) -> Self {
        let rehydrated = self.plan.rehydrated(&self.edits, newer).map(Box::new);
        Self { rehydrated, ..self }
    }

    /// The draft with other edits of kept entries.
    #[must_use]
    pub fn with_edits(self, edits: Vec<ContextEdit>) -> Self {
        Self { edits, ..self }.measure()
    }

    fn measure(self) -> Self {
        let mut draft = self;
        let demand = draft.plan.demand;
        let context = draft.context();
        draft.tokens_after = demand.budget.overhead() + demand.scale.size(context.tokens(demand.scale.estimator()));
        draft.image_bytes = images::bytes(&context);
        draft
    }

    /// The limit of another summary in the place of this one, in tokens, so that the draft still fits.
    #[must_use]
    pub fn room_for_summary(&self) -> u64 {
        let slack = goal(&self.plan).max(self.tokens_after) - self.tokens_after;
        self.plan.demand.budget.summary_cap().min(self.plan.demand.scale.text(&self.summary.text) + slack)
    }

    /// The largest context that another summary may lead to, in tokens: below the goal and smaller than before, or no larger
    /// than this draft's.
    fn largest(&self) -> u64 {
        let smaller = if self.plan.demand.insists { u64::MAX } else { size_before(&self.plan).saturating_sub(1) };
        goal(&self.plan).min(smaller).max(self.tokens_after)
    }

    /// The draft with another summary. Where that would not fit, or not be smaller than the context before, the summary
    /// stays, and `made` says why.
    #[must_use]
    pub fn with_summary(self, text: Clean, short: Option<Clean>, made: Made) -> Self {
        let goal = self.largest();
        let short = short.unwrap_or_else(|| self.summary.short.clone());
        let files = self.summary.files.clone();
        let (plan, edits, before) = (self.plan.clone(), self.edits.clone(), made.clone());
        let summary = Summary { text, short, files };
        let supplied = self.supplied.clone();
        let with = Self { made, supplied, ..Self::extracted(plan, summary, edits) };
        if with.tokens_after <= goal {
            return with;
        }
        let why = format!("with it the context would have {} tokens, over the {goal} aimed at", with.tokens_after);
        let mut made = Made { method: SummaryMethod::Extractive, by: None, parts: None, ..before.clone() };
        made.rejected.push(Rejected { method: before.method, model: before.by, why, error: None });
        Self { made, ..self }
    }

    /// The draft with the provider's own compaction beside the summary. Where the form of the context for this provider would
    /// not fit, or not be smaller than the context before, the provider's compaction is left out, and `made` says why.
    #[must_use]
    pub fn with_native(self, native: Native) -> Self {
        let goal = self.largest();
        let model = native.model.clone();
        let with = Self { native: Some(Box::new(native)), ..self.clone() }.measure();
        if with.tokens_after <= goal {
            return with;
        }
        let why =
            format!("with its items the context would have {} tokens, over the {goal} aimed at", with.tokens_after);
        let mut draft = self;
        let method = SummaryMethod::ProviderNative;
        draft.made.rejected.push(Rejected { method, model: Some(model), why, error: None });
        draft
    }

    /// The origin of the compaction: that of the summary, or the provider.
    #[must_use]
    pub fn origin(&self) -> Made {
        match &self.native {
            None => self.made.clone(),
            Some(native) => Made {
                method: SummaryMethod::ProviderNative,
                by: Some(native.model.clone()),
                rejected: self.made.rejected.clone(),
                usage: self.made.usage,
                saved: self.made.saved,
                ..Made::default()
            },
        }
    }

    /// The draft for a path that has grown: with the overhead of this budget and these calibrations.
    #[must_use]
    pub fn with_overhead(mut self, budget: Budget, calibrations: Vec<CarriedCalibration>) -> Self {
        let before = self.plan.demand.budget.overhead();
        self.tokens_after = self.tokens_after.saturating_sub(before) + budget.overhead();
        self.plan = self.plan.carrying(calibrations);
        self.plan.demand.budget = budget;
        self
    }

    /// The resulting context.
    #[must_use]
    pub fn context(&self) -> Context {
        // The size of a context depends on neither.
        let stamp = Stamp { id: "draft".into(), timestamp: String::new() };
        let path = self.plan.path();
        let (parent, spent) = (path.last().map(|leaf| &leaf.id), Spending::default());
        let line = self.line(&stamp, parent, path, None, 0, spent);
        let entry = Entry::parse(line.into()).expect("we wrote this line ourselves");
        context::build(&self.plan.path().with(Arc::new(entry)), &self.plan.prompts)
    }

    /// The entry as a line of the file, after `parent`. `path` may have grown since the plan was made. `first_kept` is the
    /// first kept entry of a plan that itself keeps nothing.
    #[must_use]
    pub fn line(
        &self,
        stamp: &Stamp,
        parent: Option<&EntryId>,
        path: &Path,
        first_kept: Option<&EntryId>,
        tokens_after: u64,
        spent: Spending,
    ) -> String {
        let first_kept = self.plan.first_kept_id().or(first_kept).unwrap_or(&stamp.id);
        let mut preserved = Preserved::of(path);
        preserved.newest_user_message = self.plan.carried();
        preserved.user_messages = self.plan.user_messages();
        preserved.edits = self.edits.clone();
        preserved.agent = CarriedAgent { todos: self.plan.todos(path), loaded: self.plan.loaded() };
        preserved.compactions += 1;
        preserved.overhead = Some(self.plan.demand.budget.overhead());
        preserved.estimator = Some(self.plan.demand.scale.estimator().name().to_owned());
        preserved.calibrations = self.plan.calibrations().to_vec();
        preserved.attempts = Attempts::of(path);
        preserved.summary_times.clone_from(&self.summary_times);
        preserved.spent = Some(spent).filter(|spent| !spent.is_empty());
        let places = path.places();
        for pin in &mut preserved.pins {
            let place = places.of_entry(&pin.entry_id);
            if let Some(place) = place.filter(|place| *place < self.plan.first_kept()) {
                pin.text = Some(path[place].pinned_text());
            }
        }
        let history = self.native.as_ref().and_then(|native| native.history());
        let of_openai = history.as_ref().filter(|history| *history.kind() == Kind::Items);
        let before = preserved.summary.requests;
        preserved.summary = CarriedSummary {
            requests: self.made.requests(before),
            native_items: of_openai.map(|history| history.items().len() as u64),
        };
        let mut ours = preserved.of_entry(&stamp.id);
        if let Some(by) = &self.made.by {
            ours["summarizer"] = json!(by);
        }
        if let Some(parts) = &self.made.parts {
            ours["parts"] = json!(parts);
        }
        if !self.made.rejected.is_empty() {
            ours["rejected"] = json!(self.made.rejected);
        }
        let mut data = self.plan.carried_data().clone();
        data.extend(self.supplied.data.clone());
        data.retain(|_, value| !value.is_null());
        data.insert("abridged".to_owned(), ours);
        let native = history.as_ref().map(|history| history.stored(&stamp.id));
        data.extend(native.map(|(key, value)| (key.to_owned(), value)));
        let by_hook = self.made.method == SummaryMethod::Hook;
        let details = match by_hook {
            true => self.supplied.details.as_ref().map(entry::raw),
            false => Some(entry::raw(&self.summary.files)),
        };
        let texts = [
            ("summary", entry::raw(&self.summary.text)),
            // A hook may supply none.
            ("shortSummary", entry::raw(&Some(&self.summary.short).filter(|short| !by_hook || !short.is_empty()))),
            ("firstKeptEntryId", entry::raw(first_kept)),
            ("tokensBefore", entry::raw(&self.plan.demand.tokens_before)),
            ("tokensAfter", entry::raw(&tokens_after)),
            ("method", entry::raw(&self.origin().method)),
        ];
        let details = details.map(|details| ("details", details));
        let data = ("preserveData", entry::raw(&data));
        // oh-my-pi's name, and pi's.
        let marks = ["fromExtension", "fromHook"].map(|name| (name, entry::raw(&true)));
        let marks = marks.into_iter().filter(|_| by_hook);
        // pi reads here what its system messages before the compaction declared.
        let system = path.system_prompt().message().map(|message| ("systemMessage", entry::raw(&message)));
        // oh-my-pi sends no entries up to this one beside a history of a provider.
        let before_kept = path.position(first_kept).map_or(parent, |place| path[place].parent.as_ref());
        let before_kept = before_kept.filter(|_| of_openai.is_some());
        let replayed = before_kept.map(|id| ("providerReplayThroughEntryId", entry::raw(id)));
        let more = marks.chain(system).chain(replayed);
        let fields: Vec<_> = texts.into_iter().chain(details).chain([data]).chain(more).collect();
        let fields: Vec<_> = fields.iter().map(|(name, json)| (*name, &**json)).collect();
        entry::line("compaction", stamp, parent, &fields)
    }
}

/// Size of the context before a plan, in tokens. A report that is below the estimate is one of another context, or nonsense.
pub(super) fn size_before(plan: &Plan) -> u64 {
    let (scale, budget) = (plan.demand.scale, plan.demand.budget);
    plan.demand.tokens_before.max(budget.overhead() + scale.size(plan.estimate_before()))
}

/// Limit of the resulting context, in tokens. A tail of a requested size is cut only where the threshold demands it.
pub(super) fn goal(plan: &Plan) -> u64 {
    let budget = plan.demand.budget;
    if plan.demand.explicit { budget.threshold } else { budget.target() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compaction::plan::{self, Demand},
        conversation::tokens::{Estimator, Scale},
        models::ModelRef,
        settings::CompactionSettings,
        summary::made::PartOrigin,
    };

    fn budget(overhead: u64) -> Budget {
        Budget::of(200_000, &CompactionSettings::default(), overhead, 0)
    }

    #[test]
    fn a_summary_that_makes_the_context_larger_is_not_taken() {
        let mut path = Path::default();
        for (id, words) in [("a", 400), ("b", 10)] {
            let message = json!({"role": "user", "content": "word ".repeat(words)});
            let line = json!({"type": "message", "id": id, "message": message});
            path.push(Arc::new(Entry::parse(line.to_string().into()).expect("an entry")));
        }
        let scale = Scale::expected(Estimator::Chars, None);
        let draft = |insists: bool| {
            let demand = Demand {
                keep: 1,
                explicit: true,
                scale,
                budget: budget(0),
                tokens_before: 0,
                may_stay: u64::MAX,
                insists,
            };
            let plan = plan::plan(path.clone(), demand, Arc::default()).expect("a plan");
            let summary =
                Summary { text: Clean::assembled("A summary."), short: Clean::default(), files: Default::default() };
            Draft::extracted(plan, summary, Vec::new())
        };
        let made = || Made::by_model(ModelRef::parse("some/model").expect("a model"));
        for (insists, words, taken) in [(false, 50, true), (false, 2_000, false), (true, 2_000, true)] {
            let with = draft(insists).with_summary(Clean::assembled("word ".repeat(words)), None, made());
            assert_eq!((!with.made.is_extracted(), with.made.rejected.is_empty()), (taken, taken), "{words} words");
        }
    }

    /// A draft that summarizes e0 and keeps e1, after more entries.
    fn drafted(more: &[serde_json::Value], demand: impl FnOnce(&mut Demand)) -> Draft {
        let message = |id: &str, words: usize| json!({"type": "message", "id": id, "message": {"role": "user", "content": "word ".repeat(words)}});
        let mut path = Path::default();
        for line in [message("e0", 400), message("e1", 10)].iter().chain(more) {
            path.push(Arc::new(Entry::parse(line.to_string().into()).expect("an entry")));
        }
        let mut of = Demand {
            keep: 1,
            explicit: true,
            scale: Scale::expected(Estimator::Chars, None),
            budget: budget(0),
            tokens_before: 0,
            may_stay: u64::MAX,
            insists: false,
        };
        demand(&mut of);
        let plan = plan::plan(path, of, Arc::default()).expect("a plan");
        let summary =
            Summary { text: Clean::assembled("A summary."), short: Clean::default(), files: Default::default() };
        Draft::extracted(plan, summary, Vec::new())
    }

    #[test]
    fn the_line_of_a_draft_carries_the_attempts_and_the_texts_of_pins_before_the_cut() {
        let ours = |id: &str, name: &str, data: serde_json::Value| json!({"type": "custom", "id": id, "customType": format!("abridged.{name}"), "data": data});
        let pin = |id: &str, entry: &str| ours(id, "pin", json!({"entryId": entry}));
        let more = [ours("x", "attempt", json!({"reason": "overflow"})), pin("y", "e0"), pin("z", "e1")];
        let pinned = drafted(&[], |_| {}).plan.path().clone();
        let path = more
            .iter()
            .fold(pinned, |path, line| path.with(Arc::new(Entry::parse(line.to_string().into()).expect("an entry"))));
        let stamp = Stamp { id: "c".into(), timestamp: String::new() };
        let line = drafted(&[], |_| {}).line(&stamp, None, &path, None, 1, Spending::default());
        let entry = Entry::parse(line.into()).expect("an entry");
        let preserved = entry.compaction().and_then(|compaction| compaction.preserved()).expect("data");
        assert_eq!((preserved.attempts.overflow, preserved.compactions), (1, 1));
        let texts: Vec<_> = preserved.pins.iter().map(|pin| (pin.entry_id.as_str(), pin.text.is_some())).collect();
        assert_eq!(texts, [("e0", true), ("e1", false)]);
    }

    #[test]
    fn a_summary_has_the_room_up_to_the_goal_and_its_cap() {
        let mut draft = drafted(&[], |_| {});
        assert_eq!(draft.room_for_summary(), budget(0).summary_cap());
        let text = draft.plan.demand.scale.text("A summary.");
        draft.tokens_after = 169_990;
        assert_eq!(draft.room_for_summary(), text + 10);
        draft.tokens_after = 170_001;
        assert_eq!(draft.room_for_summary(), text, "it is over the goal already");
        draft.plan.demand.explicit = false;
        draft.tokens_after = 135_990;
        assert_eq!(draft.room_for_summary(), text + 10, "the goal is 80 % of the threshold");
    }

    #[test]
    fn a_summary_that_makes_a_draft_no_larger_is_taken_even_over_the_goal() {
        let made = || Made::by_model(ModelRef::parse("some/model").expect("a model"));
        let taken =
            |draft: Draft, text: &str| draft.with_summary(Clean::assembled(text), None, made()).made.by.is_some();
        let tight = || drafted(&[], |demand| demand.budget.threshold = 10);
        assert!(taken(tight(), "Summary: a"));
        assert!(!taken(tight(), &"word ".repeat(50)));
        let model = PartOrigin { method: SummaryMethod::Llm, model: ModelRef::parse("some/model") };
        let partly = Made::of_parts(model, PartOrigin::default());
        let left = tight().with_summary(Clean::assembled("word ".repeat(50)), None, partly).made;
        assert_eq!((left.method, left.parts, left.rejected.len()), (SummaryMethod::Extractive, None, 1));
        // The context before has as many tokens as the draft with this summary, or one more.
        let long = "word ".repeat(800);
        let with = drafted(&[], |demand| demand.insists = true)
            .with_summary(Clean::assembled(long.clone()), None, made())
            .tokens_after;
        assert!(!taken(drafted(&[], |demand| demand.tokens_before = with), &long));
        assert!(taken(drafted(&[], |demand| demand.tokens_before = with + 1), &long));
    }

    #[test]
    fn a_providers_compaction_that_would_not_fit_is_left_out() {
        let native = |length: usize| {
            let item = json!({"type": "compaction", "encrypted_content": "x".repeat(length)});
            Native {
                model: ModelRef::parse("openai/m").expect("a model"),
                items: vec![item],
                bound: None,
                facts: String::new(),
            }
        };
        let draft = || drafted(&[], |demand| demand.tokens_before = 1_000);
        let with = draft().with_native(native(800));
        assert_eq!(
            (with.origin().method, with.made.method),
            (SummaryMethod::ProviderNative, SummaryMethod::Extractive)
        );
        assert!(with.tokens_after > draft().tokens_after, "the items are larger than the summary");
        let stamp = Stamp { id: "c".into(), timestamp: String::new() };
        let line = with.line(&stamp, None, with.plan.path(), None, 1, Spending::default());
        assert_eq!(line.matches("openaiRemoteCompaction").count(), 1);
        let without = draft().with_native(native(6_000));
        assert_eq!((without.origin().method, without.tokens_after), (SummaryMethod::Extractive, draft().tokens_after));
        let Rejected { method, model, why, .. } = &without.made.rejected[0];
        assert_eq!((*method, model.is_some()), (SummaryMethod::ProviderNative, true));
        assert!(why.contains("over the 999 aimed at"), "{why}");
    }

    #[test]
    fn another_overhead_is_in_the_size_and_the_line_of_a_draft() {
        let mut path = Path::default();
        let line = json!({"type": "message", "id": "a", "message": {"role": "user", "content": "Fix the parser."}});
        path.push(Arc::new(Entry::parse(line.to_string().into()).expect("an entry")));
        let scale = Scale::expected(Estimator::Chars, None);
        let demand = Demand {
            keep: 0,
            explicit: true,
            scale,
            budget: budget(1_000),
            tokens_before: 0,
            may_stay: u64::MAX,
            insists: true,
        };
        let plan = plan::plan(path.clone(), demand, Arc::default()).expect("a plan");
        let summary =
            Summary { text: Clean::assembled("A summary."), short: Clean::default(), files: Default::default() };
        let draft = Draft::extracted(plan, summary, Vec::new());
        let calibration = json!({"estimator": "chars", "sums": {"weight": 1.0}});
        let calibrations: Vec<CarriedCalibration> = vec![serde_json::from_value(calibration).expect("a calibration")];
        let other = draft.clone().with_overhead(budget(5_000), calibrations.clone());
        assert_eq!(other.tokens_after, draft.tokens_after + 4_000);
        let stamp = Stamp { id: "c".into(), timestamp: String::new() };
        let line = other.line(&stamp, None, &path, None, other.tokens_after, Spending::default());
        let entry = Entry::parse(line.into()).expect("an entry");
        let preserved = entry.compaction().and_then(|compaction| compaction.preserved()).expect("data");
        assert_eq!((preserved.overhead, &preserved.calibrations), (Some(5_000), &calibrations));
    }
}
