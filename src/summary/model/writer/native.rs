//! The provider's own compaction, asked for beside a summary: its history is for later requests to this provider, and the
//! summary is for every other reader.

use super::{Part, Step, SummaryJob, Writer, Written};
use crate::{
    ask::{
        access::ModelAccess,
        content::{Content, clean_value},
        failed::Failed,
        purpose::Purpose,
        request::{Answered, Limits, Request, Update},
        retry::Policy,
    },
    conversation::{
        entry::native::{Bound, Covers, NativeHistory, text_of_block},
        tokens::Scale,
    },
    ids::ModelRef,
    models::candidates::{Candidate, Unfit, Way},
    provider::{
        Answer, Beside, Cache, OnDemand, Reasoning, Stop, ToolChoice, anthropic::support, openai_responses::compact,
    },
    settings::{CompactionSettings, Settings},
    summary::{
        made::{Made, Rejected, SummaryMethod},
        model::{
            brief::Brief,
            check::{Accepted, Rejection, Supplied, supplied},
            summarizer::planned,
        },
    },
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{sync::PoisonError, time::Duration};

/// The conversation for a provider's own compaction.
#[derive(Debug, Clone)]
pub struct NativeJob {
    /// The model, and the way to its provider.
    pub candidate: Candidate,
    /// The system prompt, the history that the provider made before, and the conversation after it.
    pub content: Content,
    /// Their estimated tokens, uncalibrated.
    pub tokens: u64,
    /// The use of its answer.
    pub kind: NativeKind,
}

/// The use of a provider's own compaction.
#[derive(Debug, Clone)]
pub enum NativeKind {
    /// Its items stand beside a summary by others, since nobody else can read them. A request by the session's own has the
    /// request by the provider's address for compactions after it, for a model that refuses the first.
    Beside(Option<(LiveBytes, Box<NativeJob>)>),
    /// Its text is the summary.
    Summary {
        /// The request that its block belongs to.
        bound: Bound,
        /// Whether the provider compacts this model, or has to be asked first.
        is_certain: bool,
        /// The parts of the session's own request that its bytes depend on.
        live: LiveBytes,
    },
}

/// Parts of the session's own request that its bytes depend on.
#[derive(Debug, Clone)]
pub struct LiveBytes {
    /// The thinking of the conversation.
    pub reasoning: Reasoning,
    /// The cache of the conversation.
    pub cache: Cache,
}

/// A history of a provider's own compaction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Native {
    /// The model that was asked.
    pub model: ModelRef,
    /// Its items, or its block alone.
    pub items: Vec<Value>,
    /// The request that a block belongs to. None: the items are those of OpenAI's Responses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// Facts that the text of a block does not have.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub facts: String,
}

impl NativeJob {
    /// Whether its text is the summary, in the place of one by this model.
    #[must_use]
    pub fn is_summary_by(&self, model: &ModelRef) -> bool {
        matches!(self.kind, NativeKind::Summary { .. }) && self.candidate.model == *model
    }

    /// The same with the wishes of a person and of hooks for a summary of at most `cap` tokens, where there are any.
    #[must_use]
    pub fn with_wishes(self, brief: &Brief, has_wishes: bool, cap: u64) -> Self {
        let takes = has_wishes && matches!(self.kind, NativeKind::Summary { .. });
        let instructions = takes.then(|| brief.after_messages(cap, None, None));
        Self { content: self.content.with_instructions(instructions), ..self }
    }

    /// The history of an answer.
    fn made(&self, items: Vec<Value>) -> Native {
        let bound = match &self.kind {
            NativeKind::Beside(_) => None,
            NativeKind::Summary { bound, .. } => Some(bound.clone()),
        };
        Native { model: self.candidate.model.clone(), items, bound, facts: String::new() }
    }
}

impl Native {
    /// The history of the summarized part. None where an item is invalid.
    #[must_use]
    pub fn history(&self) -> Option<NativeHistory> {
        let provider = &self.model.provider;
        match (&self.bound, self.items.as_slice()) {
            (None, items) => NativeHistory::new(provider, items.to_vec(), Covers::Summarized),
            (Some(bound), [block]) => NativeHistory::block(provider, block.clone(), bound.clone(), self.facts.clone()),
            (Some(_), _) => None,
        }
    }
}

impl Writer<'_> {
    /// The input of a request by a safe estimate, in tokens.
    fn native_input(&self, native: &NativeJob) -> u64 {
        let scale = Scale::expected(self.job.scale.estimator(), Some(&native.candidate.model.provider));
        scale.size(native.tokens)
    }

    /// The most tokens that a request takes.
    fn native_most(&self, native: &NativeJob) -> u64 {
        self.native_input(native).saturating_add(self.native_output(native))
    }

    /// The limit of the answer, in tokens.
    fn native_output(&self, native: &NativeJob) -> u64 {
        let least = if matches!(native.candidate.way, Way::OnDemand(_)) { LEAST_ANSWER } else { 0 };
        self.job.reserve.max(least)
    }

    fn reject_native(&self, native: &NativeJob, why: String, error: Option<Value>) {
        let model = Some(native.candidate.model.clone());
        self.reject(Rejected { method: SummaryMethod::ProviderNative, model, why, error });
    }

    /// Whether the window holds the request, and the tokens that are left are enough for it beside the summary.
    pub(super) fn affords_native(&self, native: &NativeJob, others: &[&Result<Candidate, Unfit>]) -> bool {
        let (input, window) = (self.native_input(native), native.candidate.window);
        if input > window {
            let why = format!("the conversation has about {input} tokens, and the window {window}");
            self.reject_native(native, why, None);
            return false;
        }
        let Some(allowance) = &self.allowance else { return true };
        let (material, brief, reserve) = (&self.job.material, &self.job.brief, self.job.reserve);
        let first = others.iter().find_map(|candidate| candidate.as_ref().ok());
        let is_beside = matches!(native.kind, NativeKind::Beside(_));
        let first = first.filter(|_| is_beside);
        let summary = first.map_or(0, |first| planned(material, brief, first, reserve, self.job.scale).tokens);
        let why = allowance.has(summary.saturating_add(self.native_most(native))).err();
        let refused = why.is_some();
        why.into_iter().for_each(|why| self.reject_native(native, why, None));
        !refused
    }

    /// Asks the provider, and keeps its history where it is valid.
    pub(super) async fn ask_native(&self, native: &NativeJob) {
        let mut native = native;
        let refuses = native
            .candidate
            .way
            .endpoint()
            .is_some_and(|endpoint| self.job.access.supports.refuses(endpoint, &native.candidate.model.id));
        let mut items = if refuses { None } else { self.items_of(native).await };
        if items.is_none()
            && let NativeKind::Beside(Some((_, fallback))) = &native.kind
        {
            native = fallback;
            items = self.items_of(native).await;
        }
        let Some(mut items) = items else { return };
        if self.job.settings.settings.redaction.enabled {
            items.iter_mut().for_each(clean_value);
        }
        let made = native.made(items);
        match made.history() {
            Some(_) => *self.native.lock().unwrap_or_else(PoisonError::into_inner) = Some(made),
            None => self.reject_native(native, "its items are no history that it takes back".to_owned(), None),
        }
    }

    /// The items of the provider. A failure is recorded.
    async fn items_of(&self, native: &NativeJob) -> Option<Vec<Value>> {
        match self.answer_of(native).await?.beside {
            Beside::Items(items) => Some(items),
            Beside::Nothing | Beside::Short(_) => {
                // A gateway that drops the trigger answers the conversation.
                if let Way::OnDemand(endpoint) = &native.candidate.way {
                    self.job.access.supports.refuse(endpoint, &native.candidate.model.id);
                }
                self.reject_native(native, "it answered without a compaction".to_owned(), None);
                None
            }
        }
    }

    /// Asks the provider for a compaction whose text is the summary, and keeps its block.
    pub(super) async fn summarized_by_provider(&self, native: &NativeJob) -> Option<(Written, Made)> {
        let endpoint = native.candidate.way.endpoint()?;
        let supports = &self.job.access.supports;
        if supports.refuses(endpoint, &native.candidate.model.id) {
            return None;
        }
        self.compacts(native).await.map_err(|why| self.reject_native(native, why, None)).ok()?;
        let model = &native.candidate.model;
        (self.tell)(Step::Progress { done: 0, total: 1, model: Some(model.clone()) });
        let answer = self.answer_of(native).await?;
        let (text, made) = match self.text_of(native, answer) {
            Ok(made) => made,
            Err(why) => {
                self.reject_native(native, why, None);
                return None;
            }
        };
        self.show(Part::History, text.text());
        self.job.material.complete().await;
        (self.tell)(Step::Progress { done: 1, total: 1, model: Some(model.clone()) });
        let facts = self.job.material.lost_by(text.text()).into_string();
        *self.native.lock().unwrap_or_else(PoisonError::into_inner) = Some(Native { facts, ..made });
        let text = self.job.material.compose(Some(&text), None);
        Some((Written::Whole { text, short: None }, Made::by_model(model.clone())))
    }

    /// Whether the provider compacts this model.
    ///
    /// # Errors
    /// When it does not, or does not say so.
    async fn compacts(&self, native: &NativeJob) -> Result<(), String> {
        let NativeKind::Summary { is_certain: false, .. } = native.kind else { return Ok(()) };
        let Candidate { model, way: Way::OnDemand(endpoint), .. } = &native.candidate else { return Ok(()) };
        let ModelAccess { routes, supports, .. } = &*self.job.access;
        let stall = Duration::from_secs(self.job.settings.settings.compaction.stall_seconds).min(LONGEST_LIST);
        match supports.compacts(&*routes.provider, &*routes.clock, endpoint, &model.id, stall).await {
            Ok(true) => Ok(()),
            Ok(false) => Err("its provider does not list it as a model that compacts on demand".to_owned()),
            Err(why) => Err(format!("its provider did not say whether it compacts on demand: {why}")),
        }
    }

    /// The block of an answer, with its text.
    ///
    /// # Errors
    /// When there is no block, or its text may not be a summary.
    fn text_of(&self, native: &NativeJob, answer: Answer) -> Result<(Accepted, Native), String> {
        let Beside::Items(items) = answer.beside else {
            // A gateway that drops the field answers the conversation, which costs as much as a summary.
            if answer.stop == Stop::Done
                && let Some(endpoint) = native.candidate.way.endpoint()
            {
                self.job.access.supports.refuse(endpoint, &native.candidate.model.id);
            }
            return Err(no_block(&answer.stop));
        };
        let made = native.made(items);
        let text = made.history().and_then(|history| text_of_block(&history.items()[0]).map(str::to_owned));
        let text = text.ok_or("its block has no text, or no signature")?;
        let SummaryJob { material, scale, settings, .. } = self.job;
        // A signed text cannot be redacted.
        let expected = Supplied {
            replaces: material.replaces,
            secrets: settings.settings.redaction.secrets(),
            measure: &|text| scale.text(text),
        };
        let accepted = supplied(&text, &expected).map_err(|rejection| rejection.to_string())?;
        // The provider takes no limit of its own prompt. A text of more than half of the span is not worth its rewrite.
        let (tokens, most) = (scale.text(&text), material.replaces / 2);
        if tokens > most {
            return Err(Rejection::OverCap { tokens, cap: most }.to_string());
        }
        Ok((accepted, made))
    }

    /// The answer of the provider. A failure is recorded.
    async fn answer_of(&self, native: &NativeJob) -> Option<Answer> {
        let (job, settings) = (self.job, &self.job.settings.settings);
        let purpose = Purpose::Compaction;
        if native.content.instructions().is_some_and(|text| text.chars().count() > OnDemand::LONGEST) {
            let why = format!("its provider takes instructions of at most {} characters", OnDemand::LONGEST);
            self.reject_native(native, why, None);
            return None;
        }
        let (reasoning, cache) = match &native.kind {
            NativeKind::Beside(None) => (Reasoning::Unsaid, Cache::default()),
            NativeKind::Beside(Some((live, _))) | NativeKind::Summary { live, .. } => {
                (live.reasoning, live.cache.clone())
            }
        };
        let thinks = native.candidate.thinks || matches!(reasoning, Reasoning::Effort(_));
        self.quota.add(1);
        let request = Request {
            purpose,
            origin: job.origin.clone(),
            candidate: Candidate { thinks, ..native.candidate.clone() },
            content: native.content.clone(),
            tool_choice: ToolChoice::default(),
            max_tokens: self.native_output(native),
            reasoning,
            cache,
            retry: Policy::of(&settings.retry, super::LONGEST_WAIT),
            limits: Limits {
                stall: longest_silence(native, settings),
                client: None,
                until: self.until,
                input: self.native_input(native),
                quota: Some(self.quota.clone()),
                tokens: self.allowance.clone().map(|allowance| (allowance, self.native_most(native))),
            },
        };
        // The events of the operation are those of the summary.
        let tell = |update: Update| {
            if let Update::Spent(_) | Update::AtStake(_) = update {
                (self.tell)(Step::Request(purpose, update));
            }
        };
        match job.access.routes.ask(&request, &tell).await {
            Ok(Answered { answer, .. }) => Some(answer),
            Err(failed) => {
                if let Way::OnDemand(endpoint) = &native.candidate.way
                    && refuses(&native.kind, &failed)
                {
                    job.access.supports.refuse(endpoint, &native.candidate.model.id);
                }
                self.reject_native(native, failed.to_string(), Some(failed.data()));
                None
            }
        }
    }
}

/// Whether a failure says that a model compacts no conversation on demand.
fn refuses(kind: &NativeKind, failed: &Failed) -> bool {
    let said = failed.to_string();
    match (kind, failed.status) {
        (_, Some(404)) => true,
        (NativeKind::Beside(_), Some(400)) => compact::refuses_trigger(&said),
        (NativeKind::Summary { .. }, Some(400)) => support::refuses_compaction(&said),
        _ => false,
    }
}

/// The longest silence of a provider. A compaction on demand comes whole, so that nothing comes until it is written.
fn longest_silence(native: &NativeJob, settings: &Settings) -> Duration {
    let CompactionSettings { stall_seconds: stall, deadline_seconds: deadline, .. } = settings.compaction;
    Duration::from_secs(if matches!(native.candidate.way, Way::OnDemand(_)) { stall.max(deadline) } else { stall })
}

/// The reason for which an answer has no block.
fn no_block(stop: &Stop) -> String {
    match stop {
        Stop::Length => {
            "it reached its output limit, or the end of the window, before there was a compaction".to_owned()
        }
        Stop::ToolUse => "it called a tool in the place of a compaction".to_owned(),
        Stop::Refused(why) => format!("its provider refused the compaction: {why}"),
        Stop::Done => "it answered without a compaction".to_owned(),
    }
}

/// The least limit of an answer with a block, in tokens: the provider's page asks for several thousand, its thinking included.
const LEAST_ANSWER: u64 = 8_192;

/// The longest wait for a list of models.
const LONGEST_LIST: Duration = Duration::from_secs(10);
