//! A request for a compaction: from a path and the settings to a plan.

use super::{
    decide::{Images, Matter},
    gauge::{Fullness, Gauge},
    ladder,
    meter::Meter,
    plan::{self, Demand, NothingToDo, Plan},
    recovery::{self, Share},
    rehydrate::Rehydration,
    style::Messages,
};
use crate::{
    conversation::{
        instructions::Instructions,
        path::Path,
        tokens::{self, Estimator},
    },
    models::{ModelRef, learned::Learned},
    settings::{EstimatorSetting, Sourced, Style},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A request for a compaction with everything that its plan depends on. It owns copies, so that the session can continue.
pub struct PlanRequest {
    /// The path to the leaf.
    pub path: Path,
    /// Whether the tokenizer has counted the session. The plan says the same whatever other work has counted meanwhile.
    pub is_counted: bool,
    /// The settings in force.
    pub settings: Arc<Sourced>,
    /// The model.
    pub model: Option<ModelRef>,
    /// The windows that providers taught.
    pub learned: Learned,
    /// The system prompt and the tools.
    pub instructions: Arc<Instructions>,
    /// The folder that relative paths of tools are in, if it is known.
    pub cwd: Option<String>,
    /// Size of the kept tail, in tokens, if the request names one.
    pub keep_recent_tokens: Option<u64>,
    /// The initiator.
    pub initiator: Initiator,
    /// The cause.
    pub cause: Cause,
    /// Whether the compaction is made even where it makes nothing smaller.
    pub insists: bool,
}

/// Cause of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// A client or an agent asks for it.
    Asked,
    /// The context is over the threshold.
    Due,
    /// The context is near the threshold. The compaction leaves room for the messages up to there.
    Ahead,
    /// A provider rejected the context.
    Rejected {
        /// The share of the rejected context that bounds the window.
        share: Share,
        /// Limit and size of the request as the provider states them, in tokens.
        stated: Option<(u64, u64)>,
    },
}

/// Initiator of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Initiator {
    /// A person.
    User,
    /// The agent itself.
    Agent,
}

/// A plan, and the fullness of the context before it.
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// The fullness.
    pub fullness: Fullness,
}

/// The reason why a request has no plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoPlan {
    /// The work was cancelled.
    Cancelled,
    /// There is nothing to compact.
    NothingToDo(NothingToDo),
}

/// Whether a compaction is refused because an agent asks below half of the threshold. An agent may ask after every turn, and
/// each compaction costs details.
#[must_use]
pub fn is_too_early(initiator: Initiator, fullness: &Fullness) -> bool {
    initiator == Initiator::Agent && fullness.context_tokens < fullness.budget.threshold / 2
}

impl PlanRequest {
    /// Plans the compaction. Counts tokens, which may take a while. `stop` tells whether the work is cancelled.
    ///
    /// # Errors
    /// When there is nothing to compact, or the work is cancelled.
    pub fn plan(self, stop: &dyn Fn() -> bool) -> Result<Planned, NoPlan> {
        let settings = &self.settings.settings;
        let estimator = match settings.tokens.estimator {
            // The count of a large context takes seconds. Until it is there, characters are a safe estimate.
            EstimatorSetting::Auto if !self.is_counted && self.bytes() > COUNTED_AT_ONCE => Estimator::Chars,
            estimator => estimator.into(),
        };
        if estimator == Estimator::Tiktoken {
            tokens::load();
            for entry in &self.path[self.path.first_kept()..] {
                if stop() {
                    return Err(NoPlan::Cancelled);
                }
                entry.count();
            }
        }
        let meter = Meter::of(&self.path, &self.settings, estimator);
        let (model, instructions) = (self.model.as_ref(), &*self.instructions);
        let learned = model.map(|model| self.learned.taught(settings, model)).unwrap_or_default();
        let fullness = Gauge { settings, model, learned, instructions }.measure(&meter);
        let fullness = match self.cause {
            Cause::Asked | Cause::Due | Cause::Ahead => fullness,
            Cause::Rejected { share, stated } => {
                let bound = recovery::bound(fullness.context_tokens, share, stated);
                fullness.bounded(bound)
            }
        };
        if is_too_early(self.initiator, &fullness) {
            return Err(NoPlan::NothingToDo(NothingToDo::BelowHalfThreshold));
        }
        let budget = fullness.budget.attainable().unwrap_or(fullness.budget);
        let budget = match self.cause {
            Cause::Ahead => budget.with_threshold_at(fullness.context_tokens),
            Cause::Asked | Cause::Due | Cause::Rejected { .. } => budget,
        };
        let demand = Demand {
            keep: self.keep_recent_tokens.unwrap_or(match fullness.compaction.style {
                Style::Structured => fullness.compaction.keep_recent_tokens,
                // Only these messages and the summary are left.
                Style::RecentUserMessages => 0,
            }),
            explicit: self.keep_recent_tokens.is_some(),
            scale: fullness.scale,
            budget,
            tokens_before: fullness.context_tokens,
            may_stay: match self.cause {
                Cause::Asked => budget.window,
                // A provider refuses the bytes, however few tokens they are.
                _ if Images::of(fullness.image_bytes, &self.path).are_too_large() => 0,
                Cause::Due | Cause::Ahead | Cause::Rejected { .. } => budget.threshold,
            },
            insists: self.insists,
        };
        let messages = match fullness.compaction.style {
            Style::Structured => None,
            Style::RecentUserMessages => Some(Messages::of(&self.path, &self.settings.prompts, &budget)),
        };
        // A client that asks for a compaction means messages that no model has read, too, where there are no others.
        let asks_for_unread = self.cause == Cause::Asked && Matter::on(&self.path) == Matter::None;
        let planned = match plan::plan(self.path.clone(), demand, self.settings.prompts.clone()) {
            Err(NothingToDo::TooShort) if asks_for_unread && !demand.explicit => {
                let demand = Demand { keep: demand.keep.max(1), explicit: true, ..demand };
                plan::plan(self.path, demand, self.settings.prompts.clone())
            }
            planned => planned,
        };
        let plan = planned.map_err(NoPlan::NothingToDo)?;
        let rehydrates = fullness.compaction.rehydrate;
        let rehydration =
            rehydrates.then(|| Rehydration::of(plan.path(), settings, self.cwd.as_deref(), plan.demand.scale, &budget));
        let plan = plan.reading_todos(settings).carrying_messages(messages).rehydrating(rehydration);
        if !ladder::may_shrink(&plan) {
            return Err(NoPlan::NothingToDo(NothingToDo::WouldNotShrink));
        }
        Ok(Planned { plan: plan.carrying(meter.calibrations().carried()), fullness })
    }

    /// The size of the context, in bytes of its lines.
    fn bytes(&self) -> usize {
        self.path[self.path.first_kept()..].iter().map(|entry| entry.line().len()).sum()
    }
}

/// The largest context that is counted for a plan, in bytes of its lines: nine milliseconds.
const COUNTED_AT_ONCE: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        conversation::{entry::Entry, message::outline::Role},
        settings::{Layers, layers::Source},
    };
    use serde_json::json;

    /// A request over a short conversation, in a window of 100,000 tokens.
    fn request(cause: Cause, estimator: &str) -> PlanRequest {
        let mut path = Path::default();
        for at in 0..6 {
            let text = "abc ".repeat(2_000);
            let message = match at % 2 {
                0 => json!({"role": "user", "content": text}),
                _ => json!({"role": "assistant", "content": [{"type": "text", "text": text}], "stopReason": "stop",
                    "provider": "openai", "model": "m", "usage": {"input": 3_000 * (at + 1), "output": 2_000}}),
            };
            let parent = (at > 0).then(|| format!("e{}", at - 1));
            let line = json!({"type": "message", "id": format!("e{at}"), "parentId": parent, "message": message});
            path.push(Arc::new(Entry::parse(line.to_string().into()).expect("an entry")));
        }
        let settings = json!({"tokens": {"estimator": estimator}, "compaction": {"thresholdTokens": 100, "keepRecentTokens": 500},
            "models": [{"provider": "openai", "id": "m", "contextWindow": 100_000}]});
        PlanRequest {
            path,
            is_counted: false,
            settings: Arc::new(Layers::of(vec![(Source::Global, settings)]).sourced()),
            model: ModelRef::parse("openai/m"),
            learned: Learned::default(),
            instructions: Arc::default(),
            cwd: None,
            keep_recent_tokens: None,
            initiator: Initiator::User,
            cause,
            insists: false,
        }
    }

    fn plan(request: PlanRequest) -> Plan {
        request.plan(&|| false).unwrap_or_else(|why| panic!("{why:?}")).plan
    }

    #[test]
    fn messages_that_no_model_has_read_are_summarized_where_a_client_asks_and_there_are_no_others() {
        let kept = |cause, answers: bool| {
            let mut request = request(cause, "chars");
            let unread = |entry: &&Arc<Entry>| answers || entry.is_from(Role::User);
            let lines = request.path.iter().filter(unread).map(|entry| entry.line().to_owned());
            let mut path = Path::default();
            lines.for_each(|line| path.push(Arc::new(Entry::parse(line.into()).expect("an entry"))));
            request.path = path;
            let first = |planned: Planned| planned.plan.first_kept_id().map(ToString::to_string);
            request.plan(&|| false).map(first)
        };
        let too_short = Err(NoPlan::NothingToDo(NothingToDo::TooShort));
        assert_eq!(kept(Cause::Asked, false), Ok(Some("e4".to_owned())));
        assert_eq!(kept(Cause::Due, false), too_short);
        assert_eq!(kept(Cause::Ahead, false), too_short);
        assert!(kept(Cause::Due, true).is_ok());
    }

    #[test]
    fn the_cause_decides_the_window_and_the_size_that_may_stay() {
        let rejected = Cause::Rejected { share: Share::WHOLE, stated: Some((8_000, 16_000)) };
        let sizes = |cause| {
            let Demand { budget, may_stay, tokens_before, .. } = plan(request(cause, "chars")).demand;
            assert_eq!(budget.window, if cause == rejected { tokens_before / 2 } else { 100_000 });
            // The threshold of the settings cannot be met.
            assert_ne!(budget.threshold, 100);
            may_stay == if cause == Cause::Asked { budget.window } else { budget.threshold }
        };
        assert!([Cause::Asked, Cause::Due, rejected].into_iter().all(sizes));
    }

    #[test]
    fn a_plan_has_the_tail_and_the_insistence_of_its_request_and_the_calibrations_of_its_path() {
        let due = plan(request(Cause::Due, "chars"));
        assert_eq!((due.demand.keep, due.demand.explicit, due.demand.insists), (500, false, false));
        assert_eq!(due.calibrations().len(), 1);
        let named = PlanRequest { keep_recent_tokens: Some(700), insists: true, ..request(Cause::Asked, "chars") };
        let named = plan(named).demand;
        assert_eq!((named.keep, named.explicit, named.insists), (700, true, true));
    }

    #[test]
    fn a_cancelled_count_has_no_plan() {
        let plan = request(Cause::Due, "o200k_base").plan(&|| true);
        assert!(matches!(plan, Err(NoPlan::Cancelled)));
    }

    #[test]
    fn a_large_context_that_was_not_counted_is_planned_by_its_characters() {
        let estimator = |is_counted: bool, messages: usize| {
            let mut request = request(Cause::Asked, "auto");
            let mut path = Path::default();
            for at in 0..messages {
                let parent = at.checked_sub(1).map(|before| format!("e{before}"));
                let message = json!({"role": "user", "content": "abc ".repeat(2_000)});
                let line = json!({"type": "message", "id": format!("e{at}"), "parentId": parent, "message": message});
                path.push(Arc::new(Entry::parse(line.to_string().into()).expect("an entry")));
            }
            (request.path, request.is_counted) = (path, is_counted);
            plan(request).demand.scale.estimator()
        };
        assert_eq!(estimator(false, 40), Estimator::Chars);
        assert_eq!(estimator(true, 40), Estimator::Tiktoken);
        assert_eq!(estimator(false, 8), Estimator::Tiktoken);
    }

    #[test]
    fn an_agent_is_refused_below_half_of_the_threshold() {
        let mut fullness =
            request(Cause::Due, "chars").plan(&|| false).unwrap_or_else(|why| panic!("{why:?}")).fullness;
        fullness.budget.threshold = 20_000;
        for (initiator, tokens, refused) in
            [(Initiator::Agent, 9_999, true), (Initiator::Agent, 10_000, false), (Initiator::User, 1, false)]
        {
            fullness.context_tokens = tokens;
            assert_eq!(is_too_early(initiator, &fullness), refused, "{initiator:?} at {tokens}");
        }
    }
}
