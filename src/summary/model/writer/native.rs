//! The provider's own compaction, asked for beside a summary: its history is for later requests to this provider, and the
//! summary is for every other reader.

use super::{Step, Writer};
use crate::{
    ask::{
        content::{Content, clean_value},
        purpose::Purpose,
        request::{Answered, Limits, Request, Update},
        retry::Policy,
    },
    conversation::{
        entry::native::{Covers, NativeHistory},
        tokens::Scale,
    },
    ids::ModelRef,
    models::candidates::{Candidate, Unfit},
    provider::{Beside, Cache, Reasoning, ToolChoice},
    summary::{
        made::{Rejected, SummaryMethod},
        model::summarizer::planned,
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
}

/// A history of a provider's own compaction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Native {
    /// The model that was asked.
    pub model: ModelRef,
    /// Its items.
    pub items: Vec<Value>,
}

impl Native {
    /// The history of the summarized part. None where an item is invalid.
    #[must_use]
    pub fn history(&self) -> Option<NativeHistory> {
        NativeHistory::new(&self.model.provider, self.items.clone(), Covers::Summarized)
    }
}

impl Writer<'_> {
    /// The input of a request by a safe estimate, in tokens.
    fn native_input(&self, native: &NativeJob) -> u64 {
        let scale = Scale::expected(self.job.scale.estimator(), Some(&native.candidate.model.provider));
        scale.size(native.tokens)
    }

    /// The most tokens that a request takes. The length of the answer has no limit of ours; a summary is as long.
    fn native_most(&self, native: &NativeJob) -> u64 {
        self.native_input(native).saturating_add(self.job.reserve)
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
        let summary = first.map_or(0, |first| planned(material, brief, first, reserve, self.job.scale).tokens);
        let why = allowance.has(summary.saturating_add(self.native_most(native))).err();
        let refused = why.is_some();
        why.into_iter().for_each(|why| self.reject_native(native, why, None));
        !refused
    }

    /// Asks the provider, and keeps its history where it is valid.
    pub(super) async fn ask_native(&self, native: &NativeJob) {
        let (job, settings) = (self.job, &self.job.settings.settings);
        let purpose = Purpose::Compaction;
        self.quota.add(1);
        let request = Request {
            purpose,
            origin: job.origin.clone(),
            candidate: native.candidate.clone(),
            content: native.content.clone(),
            tool_choice: ToolChoice::default(),
            max_tokens: job.reserve,
            reasoning: Reasoning::Unsaid,
            cache: Cache::default(),
            retry: Policy::of(&settings.retry, super::LONGEST_WAIT),
            limits: Limits {
                stall: Duration::from_secs(settings.compaction.stall_seconds),
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
        let mut items = match job.access.routes.ask(&request, &tell).await {
            Ok(Answered { answer, .. }) => match answer.beside {
                Beside::Items(items) => items,
                Beside::Nothing | Beside::Short(_) => Vec::new(),
            },
            Err(failed) => return self.reject_native(native, failed.to_string(), Some(failed.data())),
        };
        if settings.redaction.enabled {
            items.iter_mut().for_each(clean_value);
        }
        let made = Native { model: native.candidate.model.clone(), items };
        match made.history() {
            Some(_) => *self.native.lock().unwrap_or_else(PoisonError::into_inner) = Some(made),
            None => self.reject_native(native, "its items are no history that it takes back".to_owned(), None),
        }
    }
}
