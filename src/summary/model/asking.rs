//! One request to a model: at its provider or by the client, sent again where that may help. What it says is told while it
//! comes, its secrets gone.

use super::summarizing::{Job, Seat, Told, Work};
use crate::{
    conversation::message::{self, Message, StopReason},
    ids::ModelRef,
    models::{candidates::Way, dialects},
    protocol::{
        errors::Failure,
        events::{ChunkSource, RetrySource},
        requests::{LlmComplete, LlmCompleteParams, Purpose},
    },
    provider::{self, Answer, Delta, Reasoning, Request, Stop as Ended, Trouble, TroubleKind, Turn},
    redact::{self, Stream},
    settings::RetrySettings,
    summary::model::brief::Part,
    text,
    wire::caller::Unanswered,
};
use serde_json::{Value, json};
use std::time::Duration;

/// Where nobody says otherwise a wait longer than this goes on to the next candidate: somebody is waiting.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

impl Work<'_> {
    /// Asks, and asks again after a while where that may help.
    pub(super) async fn with_retries(&self, seat: &Seat<'_>, part: Part, text: &str) -> Result<Answer, Trouble> {
        let retry = &self.job.settings.settings.retry;
        let most = if retry.enabled { u32::try_from(retry.max_retries).unwrap_or(u32::MAX) } else { 0 };
        let source = retry_source(part);
        let mut attempt = 0;
        let mut again: Option<Again<'_>> = None;
        loop {
            let trouble = match self.once(seat, part, text).await {
                Ok(answer) => {
                    if let Some(again) = again {
                        again.ends(None);
                    }
                    return Ok(answer);
                }
                Err(trouble) => trouble,
            };
            let failure = failure(&seat.candidate.model, &trouble);
            if let Some(again) = again.take() {
                again.ends(Some(failure.clone()));
            }
            if !trouble.worth_a_retry() || attempt == most {
                return Err(trouble);
            }
            let delay = delay(retry, attempt, trouble.retry_after);
            if delay > LONGEST_WAIT {
                return Err(trouble);
            }
            attempt += 1;
            (self.tell)(Told::RetryStart { source, attempt, most, delay, failure });
            again = Some(Again { tell: self.tell, source, attempt, over: false });
            tokio::time::sleep(delay).await;
        }
    }

    /// Asks once, if the maintenance may send another request.
    pub(super) async fn once(&self, seat: &Seat<'_>, part: Part, text: &str) -> Result<Answer, Trouble> {
        self.take_request()?;
        let Job { brief, settings, means, .. } = self.job;
        let answer = seat.answer(part);
        let source = chunk_source(part);
        source.inspect(|source| (self.tell)(Told::Begins(*source)));
        let mut stream = Stream::new(settings.settings.redaction.enabled);
        let say = |piece: Option<String>| {
            if let (Some(source), Some(piece)) = (source, piece) {
                (self.tell)(Told::Text(source, piece));
            }
        };
        let answered = match &seat.candidate.way {
            Way::Provider(endpoint) => {
                let request = Request {
                    model: dialects::model(&seat.candidate.model.id),
                    system: Some(brief.system()),
                    turns: vec![Turn::user(text)],
                    max_tokens: Some(match seat.candidate.output {
                        Some(most) => (answer + seat.thinking()).min(most),
                        None => answer + seat.thinking(),
                    }),
                    ceiling: seat.candidate.output,
                    reasoning: if seat.candidate.thinks { Reasoning::Off } else { Reasoning::Unsaid },
                    ..Request::default()
                };
                let stall = Duration::from_secs(settings.settings.compaction.stall_seconds);
                let mut told = |delta: &Delta| {
                    if let Delta::Text(text) = delta {
                        say(stream.push(text));
                    }
                };
                means.http.ask(endpoint, &request, stall, &mut told).await?
            }
            Way::Client => {
                let answer = self.by_client(seat, part, text, answer).await?;
                say(stream.push(&answer.text()));
                answer
            }
        };
        say(stream.finish());
        Ok(answered)
    }

    /// Lets the client ask the model.
    async fn by_client(&self, seat: &Seat<'_>, part: Part, text: &str, most: u64) -> Result<Answer, Trouble> {
        let longest = Duration::from_secs(self.job.settings.settings.compaction.deadline_seconds);
        let deadline = self.left().map_or(longest, |left| left.min(longest));
        let params = LlmCompleteParams {
            session_id: self.job.session.clone(),
            operation_id: self.job.operation.clone(),
            purpose: purpose(part),
            system: self.job.brief.system(),
            messages: vec![json!({
                "role": "user",
                "content": [{ "type": "text", "text": text }],
                "timestamp": crate::clock::now().as_millisecond(),
            })],
            tools: None,
            max_tokens: most,
            model: Some(seat.candidate.model.clone()),
            deadline_ms: u64::try_from(deadline.as_millis()).ok(),
        };
        let unwilling = |what: String| Trouble::new(TroubleKind::Unwilling, what);
        let call = self.job.means.caller.call::<LlmComplete>(&params, LARGEST_ANSWER);
        match tokio::time::timeout(deadline, call).await {
            Err(_) => Err(Trouble::new(TroubleKind::Late, format!("nothing within {} s", deadline.as_secs()))),
            // Some say in the error what their provider said.
            Ok(Err(Unanswered::Error(said))) => match Trouble::of(None, &said, None) {
                Trouble { kind: TroubleKind::Refused, .. } => Err(unwilling(Unanswered::Error(said).to_string())),
                trouble => Err(trouble),
            },
            Ok(Err(unanswered)) => Err(unwilling(unanswered.to_string())),
            Ok(Ok(answer)) => answer_of(answer.message).map_err(unwilling)?,
        }
    }
}

/// A try again that was told: its end is told too, also where nobody waits for it any more.
struct Again<'a> {
    tell: &'a (dyn Fn(Told) + Send + Sync),
    source: RetrySource,
    attempt: u32,
    over: bool,
}

impl Again<'_> {
    fn ends(mut self, failure: Option<Failure>) {
        self.over = true;
        (self.tell)(Told::RetryEnd { source: self.source, attempt: self.attempt, failure });
    }
}

impl Drop for Again<'_> {
    fn drop(&mut self) {
        if !self.over {
            let failure = Some(Failure::Cancelled);
            (self.tell)(Told::RetryEnd { source: self.source, attempt: self.attempt, failure });
        }
    }
}

/// A client's message as an answer; what its provider said where it is an error.
fn answer_of(mut message: Value) -> Result<Result<Answer, Trouble>, String> {
    if !message.is_object() {
        return Err("`message` is no message".to_owned());
    }
    if message.get("role").is_none() {
        message["role"] = "assistant".into();
    }
    let error = message["errorMessage"].as_str().map(str::to_owned);
    let Message::Assistant(assistant) = Message::parse(&message.to_string()).map_err(|error| error.to_string())? else {
        return Err("`message` is no assistant message".to_owned());
    };
    if assistant.failed() {
        return Ok(Err(Trouble::of(None, &error.unwrap_or_else(|| "it failed without a word".to_owned()), None)));
    }
    let part = |block: &message::Block| match block {
        message::Block::Text(text) => Some(provider::Part::text(text.as_str())),
        message::Block::Thinking { text, .. } => {
            Some(provider::Part::Thinking { text: text.clone(), signature: None, redacted: false })
        }
        message::Block::ToolCall(call) => Some(provider::Part::Call {
            id: call.id.as_str().to_owned(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
            signature: None,
        }),
        message::Block::Image(_) | message::Block::Other(_) => None,
    };
    let stop = match assistant.stop {
        StopReason::Length => Ended::Length,
        StopReason::ToolUse => Ended::ToolUse,
        _ => Ended::Done,
    };
    let parts = assistant.content.iter().filter_map(part).collect();
    Ok(Ok(Answer { parts, usage: assistant.usage.unwrap_or_default(), stop }))
}

/// The shortest wait before a request is sent again, whatever a provider says: the least of `retry.baseDelayMs`.
const SHORTEST_WAIT: Duration = Duration::from_millis(100);

/// How long to wait before asking again: twice as long each time, and not all at the same moment.
fn delay(retry: &RetrySettings, attempt: u32, after: Option<Duration>) -> Duration {
    let base = retry.base_delay_ms.saturating_mul(1 << attempt.min(20)).min(retry.max_delay_ms);
    let jitter = base / 4 / 255 * u64::from(uuid::Uuid::new_v4().as_bytes()[0]);
    // Not longer, by chance, than anybody waits.
    let own = Duration::from_millis(base.saturating_add(jitter)).min(LONGEST_WAIT.max(Duration::from_millis(base)));
    after.filter(|after| !after.is_zero()).unwrap_or(own).max(SHORTEST_WAIT)
}

/// No summary is larger, in bytes, with everything around it.
const LARGEST_ANSWER: usize = 1 << 20;

/// So much of what went wrong is looked through for secrets, in characters: many times what is quoted.
const LONGEST_LOOKED_THROUGH: usize = 8_192;

/// A model's trouble as clients are told of it.
#[must_use]
pub fn failure(model: &ModelRef, trouble: &Trouble) -> Failure {
    // Only its beginning is quoted; what is long takes long to look through.
    let said = trouble.said_as(|said| redact::redact(text::head(said, LONGEST_LOOKED_THROUGH)).into_owned());
    Failure::Provider {
        provider: model.provider.clone(),
        model: model.id.clone(),
        status: trouble.status,
        retryable: trouble.transient(),
        what: format!("{model}: {said}; {}", trouble.advice()),
    }
}

/// What a part is for, as clients and entries name it.
pub(super) fn purpose(part: Part) -> Purpose {
    match part {
        Part::History => Purpose::Compaction,
        Part::TurnPrefix => Purpose::TurnPrefix,
        Part::Short => Purpose::ShortSummary,
    }
}

pub(super) fn chunk_source(part: Part) -> Option<ChunkSource> {
    match part {
        Part::History => Some(ChunkSource::History),
        Part::TurnPrefix => Some(ChunkSource::TurnPrefix),
        Part::Short => None,
    }
}

fn retry_source(part: Part) -> RetrySource {
    match part {
        Part::History => RetrySource::History,
        Part::TurnPrefix => RetrySource::TurnPrefix,
        Part::Short => RetrySource::ShortSummary,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_keep_to_what_was_said() {
        let retry = |base_delay_ms| RetrySettings { base_delay_ms, max_delay_ms: u64::MAX, ..RetrySettings::default() };
        let seconds = Duration::from_secs;
        for attempt in 0..3 {
            let own = delay(&retry(2_000), attempt, None);
            assert!(own >= seconds(2 << attempt) && own <= seconds(2 << attempt).mul_f64(1.25), "{own:?}");
        }
        assert!(delay(&retry(29_000), 0, None) <= LONGEST_WAIT, "chance does not make it too long");
        assert!(delay(&retry(31_000), 0, None) > LONGEST_WAIT);
        assert_eq!(delay(&retry(2_000), 0, Some(seconds(1))), seconds(1));
        assert!(delay(&retry(2_000), 0, Some(Duration::ZERO)) >= seconds(2));
        assert_eq!(delay(&retry(0), 0, None), SHORTEST_WAIT);
        assert_eq!(delay(&retry(2_000), 0, Some(Duration::from_nanos(1))), SHORTEST_WAIT);
        assert!(delay(&retry(u64::MAX), 20, None) > LONGEST_WAIT, "and no number is too large");
    }
}
