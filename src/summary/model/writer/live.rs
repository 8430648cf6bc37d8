//! A summary by the session's own model as the answer to one more message after the session's own request. Its provider has
//! that request in its cache, where a transcript would be read at the full price.

use super::{LONGEST_WAIT, NoSummary, Redacted, Step, SummaryJob, Writer, Written};
use crate::{
    ask::{
        content::Content,
        failed::Next,
        request::{Answered, Limits, Request, Update},
        retry::Policy,
    },
    ids::ModelRef,
    models::candidates::{Candidate, Way},
    provider::{Answer, Api, Cache, Part as Piece, Reasoning, ToolChoice},
    redact::Clean,
    summary::{
        made::{Made, PartOrigin, Rejected, SummaryForm},
        model::{
            brief::Part,
            check::{Accepted, Expected, Rejection, check},
            summarizer::Summarizer,
        },
    },
};
use std::{sync::atomic::Ordering, time::Duration};

/// The session's own request.
#[derive(Debug, Clone)]
pub struct LiveJob {
    /// The session's model, which has seen all of it.
    pub model: ModelRef,
    /// The request.
    pub content: Content,
    /// The thinking of the conversation. Another one would cost the cache.
    pub reasoning: Reasoning,
    /// The cache of the conversation.
    pub cache: Cache,
    /// Its input, in tokens.
    pub tokens: u64,
    /// The part of the conversation that the summary is of, as a sentence for the model. None: all of it.
    pub part: Option<Clean>,
}

/// Requests for one summary: one, and one more that names the reason for which its answer was refused.
const MOST: usize = 2;

impl Writer<'_> {
    /// Asks the session's own model after the session's own request. None where it did not write a summary so, or the window
    /// has no room for the question. The reason is recorded.
    pub(super) async fn after_live_request(
        &self,
        candidate: &Candidate,
        live: &LiveJob,
    ) -> Result<Option<(Written, Made)>, NoSummary> {
        let SummaryJob { material, brief, scale, reserve, settings, .. } = self.job;
        let summarizer = Summarizer::new(candidate, *reserve, *scale);
        let shares = material.shares();
        let most = shares.history + shares.prefix;
        let (answer, thinking) = (summarizer.answer(Part::History), room_of(live.reasoning));
        let question = |refused: Option<Rejection>| {
            let refused = refused.map(|why| why.to_string());
            brief.after_messages(most, live.part.as_ref(), refused.as_deref())
        };
        let input = live.tokens + scale.text(&question(None));
        let sent = input.saturating_add(answer).saturating_add(thinking);
        let is_paid = self.allowance.as_ref().is_none_or(|allowance| allowance.has(sent).is_ok());
        if sent > candidate.window || !is_paid {
            return Ok(None);
        }
        let reject = |why: String| {
            self.live_failed.store(true, Ordering::Relaxed);
            let why = format!("asked after the session's own request: {why}");
            self.reject(Rejected::of(candidate.named(), why));
        };
        let purpose = brief.purpose(Part::History);
        (self.tell)(Step::Progress { done: 0, total: 1, model: Some(candidate.model.clone()) });
        (self.tell)(Step::Chunk { purpose, number: 1 });
        let mut refused = None;
        for _ in 0..MOST {
            self.quota.add(1);
            let request = self.request_after(candidate, live, question(refused), input, sent);
            let redacted = Redacted::new(settings.settings.redaction.enabled);
            let tell = |update: Update| {
                if let Some(update) = redacted.update(update) {
                    (self.tell)(Step::Request(purpose, update));
                }
            };
            let answer = match self.job.access.routes.ask(&request, &tell).await {
                Ok(Answered { answer, .. }) => self.redacted(answer),
                Err(failed) => match failed.next {
                    Next::Stop => return Err(NoSummary::Time),
                    Next::Enough => {
                        self.reject_failed(&failed);
                        return Err(NoSummary::Requests);
                    }
                    Next::Shorten { .. } | Next::OtherModel => {
                        reject(failed.to_string());
                        return Ok(None);
                    }
                },
            };
            match self.checked(&answer, most) {
                Ok(accepted) => {
                    material.complete().await;
                    let text = material.compose(Some(&accepted), None);
                    let tokens = scale.text(&text);
                    if tokens >= material.replaces {
                        reject(Rejection::LargerThanSource { tokens, source: material.replaces }.to_string());
                        return Ok(None);
                    }
                    let short = if brief.has_short() { self.short_summary(&summarizer, &text).await } else { None };
                    (self.tell)(Step::Progress { done: 1, total: 1, model: Some(candidate.model.clone()) });
                    let by = PartOrigin::of(candidate);
                    let made = Made { form: Some(SummaryForm::LiveRequest), ..Made::of_parts(by.clone(), by) };
                    return Ok(Some((Written::Whole { text, short }, made)));
                }
                Err(rejection) => {
                    reject(rejection.to_string());
                    // It would do so again.
                    if rejection == Rejection::ToolCall {
                        return Ok(None);
                    }
                    refused = Some(rejection);
                }
            }
        }
        Ok(None)
    }

    /// The summary in an answer, of at most `cap` tokens.
    fn checked(&self, answer: &Answer, cap: u64) -> Result<Accepted, Rejection> {
        let SummaryJob { material, brief, scale, settings, .. } = self.job;
        let expected = Expected {
            form: brief.form(Part::History, false),
            replaces: material.replaces,
            cap,
            script: material.script,
            secrets: settings.settings.redaction.secrets(),
            measure: &|text| scale.text(text),
        };
        check(answer, &expected)
    }

    /// The request with a question after the session's own.
    fn request_after(&self, candidate: &Candidate, live: &LiveJob, question: Clean, input: u64, sent: u64) -> Request {
        let SummaryJob { brief, settings, origin, reserve, scale, .. } = self.job;
        Request {
            purpose: brief.purpose(Part::History),
            origin: origin.clone(),
            candidate: Candidate {
                thinks: candidate.thinks || matches!(live.reasoning, Reasoning::Effort(_)),
                ..candidate.clone()
            },
            content: live.content.clone().then(question),
            tool_choice: tool_choice(candidate),
            max_tokens: Summarizer::new(candidate, *reserve, *scale).answer(Part::History),
            reasoning: live.reasoning,
            cache: live.cache.clone(),
            retry: Policy::of(&settings.settings.retry, LONGEST_WAIT),
            limits: Limits {
                stall: Duration::from_secs(settings.settings.compaction.stall_seconds),
                client: None,
                until: self.until,
                input,
                quota: Some(self.quota.clone()),
                tokens: self.allowance.clone().map(|allowance| (allowance, sent)),
            },
        }
    }

    /// The answer without the secrets of the conversation, which the model has seen.
    fn redacted(&self, mut answer: Answer) -> Answer {
        let secrets = self.job.settings.settings.redaction.secrets();
        for part in &mut answer.parts {
            if let Piece::Text { text, .. } = part {
                *text = secrets.clean(text).into_string();
            }
        }
        answer
    }
}

/// The room for thinking beside an answer, in tokens.
fn room_of(reasoning: Reasoning) -> u64 {
    match reasoning {
        Reasoning::Effort(effort) => effort.room(),
        Reasoning::Off | Reasoning::Unsaid => 0,
    }
}

/// Whether the model may call tools. Anthropic's cache of messages holds for the same choice alone, by its page about prompt
/// caching; an answer that calls a tool is refused.
#[must_use]
pub fn tool_choice(candidate: &Candidate) -> ToolChoice {
    match &candidate.way {
        Way::Provider(endpoint) if endpoint.api == Api::Anthropic => ToolChoice::Auto,
        _ => ToolChoice::None,
    }
}
