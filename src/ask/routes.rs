//! Sends requests to models: at their providers or by the client, again where that helps.

use super::{
    Pending,
    client::{Client, Completion, Unanswered},
    clock::{Clock, SystemClock, after, within},
    failed::Failed,
    messages::{self, NoAnswer},
    plain::PlainAddresses,
    purpose::Purpose,
    request::{Answered, Limits, Request, RetryOutcome, Update},
    retry::Retries,
    spent::Spent,
};
use crate::{
    conversation::{evidence, message::Usage, spending::Trigger},
    models::candidates::Way,
    provider::{
        self, Answer, Delta, Encoded, Endpoint, Part, Reach, Trouble, TroubleKind, http::Http,
        openai_responses::compact, reach::Input, summarizer,
    },
};
use std::{sync::Arc, time::Duration};

/// Asks a model at its provider.
pub trait Provider: Send + Sync {
    /// Sends a request and waits for the whole answer. `told` gets its pieces. Without more of it for `stall` it ends.
    /// Dropping the future cancels the request.
    ///
    /// # Errors
    /// When there is no answer.
    fn ask<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        request: &'a provider::Request,
        stall: Duration,
        told: &'a mut (dyn FnMut(&Delta) + Send),
    ) -> Pending<'a, Result<Answer, Trouble>>;

    /// Sends a request and waits for the JSON document that answers it, of at most `most` bytes. Without more of it for
    /// `stall` it ends. Dropping the future cancels the request.
    ///
    /// # Errors
    /// When there is no document.
    fn post<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        request: Encoded,
        most: u64,
        stall: Duration,
    ) -> Pending<'a, Result<String, Trouble>>;

    /// Reads the JSON document at a path, of at most `most` bytes, with these headers. Without more of it for `stall` it ends.
    ///
    /// # Errors
    /// When there is no document.
    fn get<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        path: &'static str,
        headers: Vec<(&'static str, String)>,
        most: u64,
        stall: Duration,
    ) -> Pending<'a, Result<String, Trouble>>;
}

impl Provider for Http {
    fn ask<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        request: &'a provider::Request,
        stall: Duration,
        told: &'a mut (dyn FnMut(&Delta) + Send),
    ) -> Pending<'a, Result<Answer, Trouble>> {
        Box::pin(Self::ask(self, endpoint, request, stall, told))
    }

    fn post<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        request: Encoded,
        most: u64,
        stall: Duration,
    ) -> Pending<'a, Result<String, Trouble>> {
        Box::pin(Self::post(self, endpoint, request, most, stall))
    }

    fn get<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        path: &'static str,
        headers: Vec<(&'static str, String)>,
        most: u64,
        stall: Duration,
    ) -> Pending<'a, Result<String, Trouble>> {
        Box::pin(Self::get(self, endpoint, path, headers, most, stall))
    }
}

/// Receives the reports on a request.
pub type Sink<'a> = &'a (dyn Fn(Update) + Send + Sync);

/// The ways to a model.
pub struct Routes {
    /// Asks providers.
    pub provider: Box<dyn Provider>,
    /// Asks the client.
    pub client: Arc<dyn Client>,
    /// Time and chance.
    pub clock: Box<dyn Clock>,
    /// Addresses that refuse a request which says what happens to bound thinking.
    pub plain: PlainAddresses,
}

/// A failed attempt.
struct Attempt {
    trouble: Trouble,
    /// Its cost, where it is known.
    usage: Usage,
}

/// The tokens of a request that was sent.
#[derive(Debug, Clone, Copy, Default)]
struct Charge {
    usage: Usage,
    is_estimated: bool,
    /// The input by an estimate, where the request failed without a report and its provider may bill it nevertheless. It is
    /// no cost: it counts only against the tokens that summaries without use may take.
    at_stake: u64,
}

/// A request that was sent and whose tokens are not known. Dropping it charges an estimate: a provider bills the input of a
/// request that is cancelled, too.
struct Unreported<'a> {
    request: &'a Request,
    tell: Sink<'a>,
    is_open: bool,
}

impl From<Trouble> for Attempt {
    fn from(trouble: Trouble) -> Self {
        Self { usage: trouble.usage, trouble }
    }
}

impl Charge {
    /// The input of a request by its estimate. Only automatic maintenance has a ceiling; a cancel of a client writes nothing.
    fn estimated(request: &Request) -> Self {
        let input = if request.origin.trigger.is_automatic() { request.limits.input } else { 0 };
        Self { usage: Usage { input, total: input, ..Usage::default() }, is_estimated: input > 0, at_stake: 0 }
    }

    /// The tokens that a provider reported, or else the estimate where the request may be billed, or where the report cannot be
    /// its cost.
    fn of(request: &Request, usage: Usage, is_billed: bool) -> Self {
        let sent = request.limits.input;
        let is_reported = usage != Usage::default();
        match () {
            () if is_reported && sent > 0 && !evidence::is_credible_cost(&usage, sent) => {
                let usage = Usage { input: sent, output: usage.output.min(sent), ..Usage::default() };
                Self { usage: Usage { total: usage.context_tokens(), ..usage }, is_estimated: true, at_stake: 0 }
            }
            () if !is_reported && is_billed => Self::estimated(request),
            () => Self { usage, is_estimated: false, at_stake: 0 },
        }
    }

    /// The tokens of a request that failed.
    fn of_failed(request: &Request, failed: &Attempt) -> Self {
        let charge = Self::of(request, failed.usage, is_billed(failed.trouble.kind));
        let unknown = charge.usage == Usage::default() && failed.trouble.input() == Input::MaybeRead;
        let counts = unknown && request.origin.trigger == Trigger::Speculative;
        Self { at_stake: if counts { request.limits.input } else { 0 }, ..charge }
    }

    /// The cost as a report.
    fn spent(self, request: &Request) -> Update {
        let (purpose, trigger, model) = (request.purpose, request.origin.trigger, request.candidate.model.clone());
        let (usage, estimated, sent) = (self.usage, self.is_estimated, request.limits.input);
        Update::Spent(Spent { purpose, model, trigger, usage, estimated, sent })
    }

    /// The tokens that count against an allowance. A summary that may come to nothing counts for no less than was sent, or a
    /// report that is too small would let it repeat.
    fn counted(&self, request: &Request) -> u64 {
        match (self.usage.context_tokens(), request.origin.trigger) {
            (0, _) => self.at_stake,
            (tokens, Trigger::Speculative) => tokens.max(request.limits.input),
            (tokens, _) => tokens,
        }
    }
}

impl Unreported<'_> {
    fn end(mut self) {
        self.is_open = false;
    }
}

impl Drop for Unreported<'_> {
    fn drop(&mut self) {
        let charge = Charge::estimated(self.request);
        if self.is_open && charge.is_estimated {
            (self.tell)(charge.spent(self.request));
        }
    }
}

/// Whether a provider may bill a request that failed in this way without a report: it had begun to answer.
fn is_billed(kind: TroubleKind) -> bool {
    matches!(kind, TroubleKind::Stalled | TroubleKind::Late | TroubleKind::CutOff | TroubleKind::Endless)
}

impl Routes {
    /// Providers over HTTP, and the given client.
    #[must_use]
    pub fn new(client: Arc<dyn Client>) -> Self {
        Self {
            provider: Box::new(Http::default()),
            client,
            clock: Box::new(SystemClock),
            plain: PlainAddresses::default(),
        }
    }

    /// Sends a request and waits for its answer. A transient failure is retried as the request's policy says. Dropping
    /// the future cancels the request at its provider or client.
    ///
    /// # Errors
    /// When there is no answer. The failure says what to do next.
    pub async fn ask(&self, request: &Request, tell: Sink<'_>) -> Result<Answered, Failed> {
        let began = self.clock.now();
        let answered = self.in_time(request, tell).await;
        let (session, model, purpose) = (&request.origin.session, &request.candidate.model, request.purpose.name());
        let duration_ms = self.clock.now().saturating_duration_since(began).as_millis();
        match &answered {
            Ok(Answered { cost, .. }) => {
                let (input, output) = (cost.context_tokens().saturating_sub(cost.output), cost.output);
                tracing::info!(%session, %model, purpose, input, output, duration_ms, "a model answered");
            }
            Err(Failed { next, status, .. }) => {
                tracing::info!(%session, %model, purpose, ?next, status, duration_ms, "a model gave no answer");
            }
        }
        answered
    }

    async fn in_time(&self, request: &Request, tell: Sink<'_>) -> Result<Answered, Failed> {
        let asking = Box::pin(self.with_retries(request, tell));
        let Some(until) = request.limits.until else { return asking.await };
        within(&*self.clock, until, asking)
            .await
            .unwrap_or_else(|| Err(Failed::new(&request.candidate, &Trouble::new(TroubleKind::OutOfTime, ""))))
    }

    async fn with_retries(&self, request: &Request, tell: Sink<'_>) -> Result<Answered, Failed> {
        let Request { retry, candidate, .. } = request;
        // A request that was refused for the room kept for its answer is sent once more, with less.
        let (mut lessened, mut limit): (Option<Box<Request>>, _) = (None, None);
        let mut cost = Usage::default();
        let mut retries = Retries::default();
        let mut running: Option<Retry<'_>> = None;
        let mut last: Option<Failed> = None;
        loop {
            let sent = lessened.as_deref().unwrap_or(request);
            let (mut trouble, charge) = match self.once(sent, tell).await {
                Ok((answer, charge)) => {
                    if let Some(retry) = running {
                        retry.ends(RetryOutcome::Answered);
                    }
                    tell(charge.spent(request));
                    return Ok(Answered { cost: sum(cost, charge.usage), answer, limit });
                }
                Err(failed) => failed,
            };
            let less = match () {
                () if lessened.is_some() => None,
                () if self.plain.learn(sent, &trouble) => Some(Box::new(request.clone())),
                () => request.with_less_output(&trouble),
            };
            request.doubt(&mut trouble);
            let mut failed = Failed::new(candidate, &trouble);
            if trouble.kind == TroubleKind::NoTokens
                && let Some(cause) = last.take()
            {
                // No retry can be paid. The cause is the error of the provider.
                let next = std::mem::replace(&mut failed, cause).next;
                failed.next = next;
            }
            if let Some(retry) = running.take() {
                retry.ends(RetryOutcome::Failed(failed.clone()));
            }
            if charge.usage != Usage::default() {
                cost = sum(cost, charge.usage);
                tell(charge.spent(request));
            } else if charge.at_stake > 0 {
                tell(Update::AtStake(charge.at_stake));
            }
            if let Some(less) = less {
                tracing::info!(model = %candidate.model, most = less.max_tokens, "asked again for a smaller answer");
                limit = trouble.reservation().map(|refused| refused.limit());
                lessened = Some(less);
                continue;
            }
            let Some(delay) = retry.wait(&trouble, retries, self.clock.chance()) else { return Err(failed) };
            retries.begin(&trouble);
            last = Some(failed.clone());
            tell(Update::RetryStart { attempt: retries.all, most: retry.most, delay, failed });
            running = Some(Retry { tell, attempt: retries.all, ended: false });
            self.clock.sleep_until(after(self.clock.now(), delay)).await;
        }
    }

    /// One attempt, with its tokens.
    async fn once(&self, request: &Request, tell: Sink<'_>) -> Result<(Answer, Charge), (Trouble, Charge)> {
        let unsent = |trouble: Trouble| (trouble, Charge::default());
        let tokens = request.limits.tokens.as_ref();
        let claim = tokens.map(|(allowance, most)| allowance.claim(*most)).transpose().map_err(unsent)?;
        if let Some(quota) = &request.limits.quota {
            quota.take().map_err(unsent)?;
        }
        let unreported = Unreported { request, tell, is_open: true };
        let sent = self.send(request, tell).await;
        unreported.end();
        let charge = match &sent {
            Ok(answer) => Charge::of(request, answer.usage, true),
            Err(failed) => Charge::of_failed(request, failed),
        };
        if let Some(claim) = claim {
            claim.took(charge.counted(request));
        }
        match sent {
            Ok(answer) => Ok((answer, charge)),
            Err(attempt) => Err((attempt.trouble, charge)),
        }
    }

    /// Sends a request once.
    async fn send(&self, request: &Request, tell: Sink<'_>) -> Result<Answer, Attempt> {
        tell(Update::Begins);
        let Request { origin, candidate, purpose, limits, .. } = request;
        let (session, model, purpose, input) = (&origin.session, &candidate.model, purpose.name(), limits.input);
        tracing::info!(%session, %model, purpose, input, "a model is asked");
        let answer = match &request.candidate.way {
            Way::Provider(endpoint) => {
                let mut told = |delta: &Delta| tell(Update::Delta(delta.clone()));
                let stall = request.limits.stall;
                self.provider.ask(endpoint, &self.plain.suited(request, endpoint), stall, &mut told).await?
            }
            Way::Summarizer(endpoint) => {
                let (encoded, stall) = (summarizer::encode(&request.for_provider()), request.limits.stall);
                let document = self.provider.post(endpoint, encoded, summarizer::LARGEST_ANSWER, stall).await?;
                let answer = summarizer::decode(&document)?;
                deltas(&answer, request.purpose).for_each(|delta| tell(Update::Delta(delta)));
                answer
            }
            Way::OnDemand(endpoint) => {
                let stall = request.limits.stall;
                self.provider.ask(endpoint, &self.plain.suited(request, endpoint), stall, &mut |_| ()).await?
            }
            Way::Compaction(endpoint) => {
                let (encoded, stall) = (compact::encode(&request.for_provider()), request.limits.stall);
                let document = self.provider.post(endpoint, encoded, compact::LARGEST_ANSWER, stall).await?;
                compact::decode(&document)?
            }
            Way::Client => {
                let answer = self.by_client(request).await?;
                deltas(&answer, request.purpose).for_each(|delta| tell(Update::Delta(delta)));
                answer
            }
        };
        tell(Update::Complete);
        Ok(answer)
    }

    async fn by_client(&self, request: &Request) -> Result<Answer, Attempt> {
        let Limits { client: longest, until, .. } = request.limits;
        let now = self.clock.now();
        let left = until.map(|until| until.saturating_duration_since(now));
        let model = &request.candidate.model;
        let answer = self.client.complete(Completion {
            origin: request.origin.clone(),
            purpose: request.purpose,
            system: request.content.system().map(str::to_owned),
            messages: messages::messages(&request.for_provider().all_turns(), model, self.clock.timestamp_ms()),
            tools: request.content.tools().to_vec(),
            max_tokens: request.max_tokens,
            model: model.clone(),
            deadline: longest.into_iter().chain(left).min(),
        });
        let answered = match longest {
            None => answer.await,
            Some(longest) => {
                let late = || Trouble::new(TroubleKind::Late, format!("nothing within {} s", longest.as_secs()));
                within(&*self.clock, after(now, longest), answer).await.ok_or_else(late)?
            }
        };
        let unwilling = |what: String| Attempt::from(Trouble::new(TroubleKind::Unwilling, what));
        let message = answered.map_err(|unanswered| match &unanswered {
            // Some clients pass on the error of their provider.
            Unanswered::Error(said) => match Trouble::of(None, said, None) {
                Trouble { kind: TroubleKind::Refused, .. } => unwilling(unanswered.to_string()),
                trouble => trouble.reaching(Reach::Refused).into(),
            },
            _ => unwilling(unanswered.to_string()),
        })?;
        messages::answer(message).map_err(|error| match error {
            NoAnswer::Unreadable(what) => unwilling(what),
            NoAnswer::Failed { said, usage, reach } => {
                Attempt { trouble: Trouble::of(None, &said, None).reaching(reach), usage }
            }
        })
    }
}

/// The usage of two attempts together.
fn sum(one: Usage, other: Usage) -> Usage {
    Usage {
        input: one.input.saturating_add(other.input),
        output: one.output.saturating_add(other.output),
        cache_read: one.cache_read.saturating_add(other.cache_read),
        cache_write: one.cache_write.saturating_add(other.cache_write),
        total: one.context_tokens().saturating_add(other.context_tokens()),
    }
}

/// An answer that came whole, in pieces, one for each part. The texts of a summary join to its text.
fn deltas(answer: &Answer, purpose: Purpose) -> impl Iterator<Item = Delta> {
    let mut first = true;
    answer.parts.iter().enumerate().flat_map(move |(at, part)| {
        let piece = match part {
            Part::Text { text, .. } if std::mem::take(&mut first) || purpose == Purpose::Turn => {
                Some(Delta::Text(text.clone()))
            }
            Part::Text { text, .. } => Some(Delta::Text(format!("\n{text}"))),
            Part::Thinking { text, .. } => Some(Delta::Thinking(text.clone())),
            Part::Call { arguments, .. } => Some(Delta::Call(arguments.clone())),
            Part::Image { .. } => None,
        };
        piece.map(|piece| [Delta::Part(at), piece]).into_iter().flatten()
    })
}

/// A retry that was reported. Dropping it reports its end.
struct Retry<'a> {
    tell: Sink<'a>,
    attempt: u32,
    ended: bool,
}

impl Retry<'_> {
    fn ends(mut self, outcome: RetryOutcome) {
        self.ended = true;
        (self.tell)(Update::RetryEnd { attempt: self.attempt, outcome });
    }
}

impl Drop for Retry<'_> {
    fn drop(&mut self) {
        if !self.ended {
            (self.tell)(Update::RetryEnd { attempt: self.attempt, outcome: RetryOutcome::Cancelled });
        }
    }
}
