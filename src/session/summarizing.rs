//! A summary by models: one candidate after the other, each asked part by part and chunk by chunk, each answer looked at
//! before it counts. One task beside the session; what happens is told, and dropping it ends every request.
//!
//! There is no failure in here: where no candidate makes a summary, the extracted one that was there before stays.

use super::{
    compaction::{self, NoDraft},
    means::Means,
    operation::Stop,
};
use crate::{
    entry,
    ids::{EntryId, ModelRef, OperationId, SessionId},
    maintenance::{ladder::Draft, plan::Plan},
    message::{self, Message, StopReason},
    models::candidates::{Candidate, Unfit, Way},
    protocol::{
        errors::Failure,
        events::{ChunkSource, RetrySource},
        requests::{LlmComplete, LlmCompleteParams, Purpose},
    },
    provider::{self, Answer, Delta, Reasoning, Request, Stop as Ended, Trouble, TroubleKind, Turn, overflow},
    settings::Sourced,
    summary::{
        brief::{Ask, Brief, Part},
        check::{Accepted, Expected, Rejection, check},
        files::FileLists,
        fold,
        made::{Made, Rejected},
        material::{Material, Shares},
        redact::{self, stream::Stream},
    },
    tokens::{self, Estimator},
};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

/// What is to be drafted, and with whom.
pub struct Drafting {
    /// For which session.
    pub session: SessionId,
    /// Of which operation.
    pub operation: OperationId,
    /// What is done.
    pub plan: Plan,
    /// What a person wants kept above all.
    pub instructions: Option<String>,
    /// Who may write the summary, in order; with nobody it is extracted.
    pub candidates: Vec<Result<Candidate, Unfit>>,
    /// The settings in force.
    pub settings: Arc<Sourced>,
    /// How much time there is, where it is limited.
    pub deadline: Option<Duration>,
    /// What models are asked with.
    pub means: Arc<Means>,
    /// Ends it early.
    pub stop: Stop,
}

/// What comes back from a draft being made.
pub enum Report {
    /// Something happened on the way.
    Told(Told),
    /// It is done.
    Drafted(Result<Draft, NoDraft>),
}

/// Makes a draft beside the session. A panic in it is a defect, and ends only this.
pub fn spawn(drafting: Drafting, report: impl Fn(Report) + Send + Sync + Clone + 'static) {
    tokio::spawn(async move {
        let tell = report.clone();
        let work = tokio::spawn(async move { draft(drafting, &|told| tell(Report::Told(told))).await });
        report(Report::Drafted(work.await.unwrap_or_else(|_| Err(NoDraft::Failed(defect())))));
    });
}

/// Makes a draft: one that fits without any model first, and then, if a model writes a summary that fits too, with that.
///
/// # Errors
/// When it was stopped, or nothing that could be written fits the window.
pub async fn draft(drafting: Drafting, tell: &(dyn Fn(Told) + Send + Sync)) -> Result<Draft, NoDraft> {
    let Drafting { session, operation, plan, instructions, candidates, settings, deadline, means, stop } = drafting;
    let measure = Measure { estimator: plan.demand.estimator, factor: plan.demand.factor };
    let reserve = plan.demand.budget.reserve;
    let asks = !candidates.is_empty();
    let (sourced, focus, stopped) = (settings.clone(), instructions.clone(), stop.clone());
    let floor = move || {
        let settings = &sourced.settings;
        let floor = compaction::draft(plan, settings, focus.as_deref(), &stopped)?;
        let measured = |text: &str| measure.of(text);
        let cap = floor.room_for_summary(&measured);
        // Without room for more than a few lines a model has nothing to add.
        let material = (asks && cap >= LEAST_SUMMARY).then(|| {
            let raw = |text: &str| measure.raw(text);
            let stop = || stopped.requested();
            Material::of(&floor.plan, &floor.summary.files, cap, settings, &raw, &measured, &stop)
        });
        Ok((floor, material))
    };
    let (floor, material) = blocking(floor).await??;
    let Some(material) = material else { return Ok(floor) };
    let brief = Brief {
        prompts: (*settings.prompts).clone(),
        instructions: instructions.map(|it| cleaned(&it, &settings)),
        context: Vec::new(),
        language: material.language,
    };
    let job = Job { session, operation, material, brief, reserve, candidates, settings, measure, deadline, means };
    let (written, made) = tokio::select! { biased;
        () = stop.wait() => return Err(NoDraft::Stopped),
        made = summarize(&job, tell) => made,
    };
    match written {
        Some(Written { text, short }) => blocking(move || Ok(floor.with_summary(text, short, made))).await?,
        None => Ok(Draft { made, ..floor }),
    }
}

/// A summary smaller than this, in tokens, is left to the extractor.
const LEAST_SUMMARY: u64 = 200;

/// Runs work on the blocking pool. A panic in it is a defect, and ends only this.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, NoDraft> + Send + 'static,
) -> Result<Result<T, NoDraft>, NoDraft> {
    tokio::task::spawn_blocking(work).await.map_err(|_| NoDraft::Failed(defect()))
}

fn defect() -> Failure {
    Failure::Internal("a defect of abridged ended this work; nothing was changed".to_owned())
}

fn cleaned(text: &str, settings: &Sourced) -> String {
    if settings.settings.redaction.enabled { redact::redact(text).into_owned() } else { text.to_owned() }
}

/// What is to be summarized, and by whom.
pub struct Job {
    /// For which session.
    pub session: SessionId,
    /// Of which operation.
    pub operation: OperationId,
    /// What it is made of.
    pub material: Material,
    /// What all requests have in common.
    pub brief: Brief,
    /// Room kept for an answer, in tokens: the contract's measure for how long one may be.
    pub reserve: u64,
    /// Who may write it, in order.
    pub candidates: Vec<Result<Candidate, Unfit>>,
    /// The settings in force.
    pub settings: Arc<Sourced>,
    /// How tokens are counted, and what an estimate of the session's own model is multiplied with.
    pub measure: Measure,
    /// How much time there is, where it is limited.
    pub deadline: Option<Duration>,
    /// What models are asked with.
    pub means: Arc<Means>,
}

/// How texts are measured.
#[derive(Debug, Clone, Copy)]
pub struct Measure {
    /// By what.
    pub estimator: Estimator,
    /// Reported over estimated tokens of the session.
    pub factor: f64,
}

/// What happens on the way.
#[derive(Debug)]
pub enum Told {
    /// So many requests of so many are done.
    Progress { done: usize, total: usize },
    /// Another try at a part begins: what was told of it before is void.
    Begins(ChunkSource),
    /// A piece of a part.
    Text(ChunkSource, String),
    /// The same request is sent again after a while.
    RetryStart { source: RetrySource, attempt: u32, most: u32, delay: Duration, failure: Failure },
    /// How that went.
    RetryEnd { source: RetrySource, attempt: u32, failure: Option<Failure> },
    /// A model was asked, and this is what it cost.
    Spent(Spent),
}

/// What a model's answer cost.
#[derive(Debug, Clone)]
pub struct Spent {
    /// What it was for.
    pub purpose: Purpose,
    /// Which model.
    pub model: ModelRef,
    /// In tokens.
    pub usage: message::Usage,
}

impl Spent {
    /// As an entry of the session.
    #[must_use]
    pub fn line(&self, id: &EntryId, parent: Option<&EntryId>, operation: &OperationId) -> String {
        let message::Usage { input, output, cache_read, cache_write, .. } = self.usage;
        let usage = json!({
            "input": input, "output": output, "cacheRead": cache_read, "cacheWrite": cache_write,
            "totalTokens": self.usage.context_tokens(),
        });
        entry::line(
            "usage",
            id,
            parent,
            &[
                ("purpose", &entry::raw(&self.purpose)),
                ("provider", &entry::raw(&self.model.provider)),
                ("model", &entry::raw(&self.model.id)),
                ("usage", &entry::raw(&usage)),
                ("operationId", &entry::raw(operation)),
            ],
        )
    }
}

/// A summary that a model wrote.
#[derive(Debug)]
pub struct Written {
    /// The text, whole.
    pub text: String,
    /// Two sentences for a person, where the model wrote them too.
    pub short: Option<String>,
}

/// Where nobody says otherwise a wait longer than this goes on to the next candidate: somebody is waiting.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// So often an answer may be refused for its length in one maintenance, before no candidate is asked twice for that.
const MOST_TOO_LONG: usize = 3;

/// Asks the candidates. The summary, if one of them wrote it, and how it came to be.
pub async fn summarize(job: &Job, tell: &(dyn Fn(Told) + Send + Sync)) -> (Option<Written>, Made) {
    let work = Work { job, tell, rejected: Mutex::default(), too_long: AtomicUsize::new(0), done: AtomicUsize::new(0) };
    let asked = async {
        let _turn = job.means.turn(job.settings.settings.compaction.max_concurrent).await;
        for candidate in &job.candidates {
            match candidate {
                Err(Unfit { model, why }) => work.reject(ModelRef::parse(model), why.clone(), None),
                Ok(candidate) => {
                    if let Ok(written) = work.by(candidate).await {
                        return Some((written, candidate.model.clone()));
                    }
                }
            }
        }
        None
    };
    let written = match job.deadline {
        None => asked.await,
        Some(deadline) => match tokio::time::timeout(deadline, asked).await {
            Ok(written) => written,
            Err(_) => {
                let why = format!("the {} s for this maintenance were over", deadline.as_secs());
                work.reject(None, why, None);
                None
            }
        },
    };
    let rejected = std::mem::take(&mut *work.rejected());
    let (written, by) = written.map_or((None, None), |(written, by)| (Some(written), Some(by)));
    (written, Made { by, rejected })
}

/// How many requests a candidate would take for the summary of a plan.
#[must_use]
pub fn requests(plan: &Plan, candidate: &Candidate, settings: &Sourced) -> usize {
    let measure = Measure { estimator: plan.demand.estimator, factor: plan.demand.factor };
    let (raw, measured) = (|text: &str| measure.raw(text), |text: &str| measure.of(text));
    let cap = plan.demand.budget.summary_cap();
    let files = FileLists::default();
    let material = Material::of(plan, &files, cap, &settings.settings, &raw, &measured, &|| false);
    let brief = Brief { prompts: (*settings.prompts).clone(), ..Brief::default() };
    planned(&material, &brief, candidate, plan.demand.budget.reserve, measure)
}

/// How many requests a candidate would take for its summary, as far as that is known before it is asked.
#[must_use]
pub fn planned(material: &Material, brief: &Brief, candidate: &Candidate, reserve: u64, measure: Measure) -> usize {
    let seat = Seat::new(candidate, reserve, measure);
    let chunks = |part: Part| {
        let (pieces, previous) = material.part(part);
        let room = seat.room(brief, part, previous);
        room.map_or(1, |room| pieces.chunks(0, room)).max(usize::from(!pieces.is_empty()))
    };
    chunks(Part::History) + chunks(Part::TurnPrefix) + 1
}

/// A candidate is out; why is noted.
struct Out;

/// What all requests of one maintenance share.
struct Work<'a> {
    job: &'a Job,
    tell: &'a (dyn Fn(Told) + Send + Sync),
    rejected: Mutex<Vec<Rejected>>,
    too_long: AtomicUsize,
    done: AtomicUsize,
}

/// A candidate at work.
struct Seat<'a> {
    candidate: &'a Candidate,
    /// Its window as far as it is known; an overflow makes it smaller.
    window: AtomicU64,
    /// Room for an answer: in a small window no more than half of it.
    reserve: u64,
    measure: Measure,
}

impl<'a> Seat<'a> {
    fn new(candidate: &'a Candidate, reserve: u64, measure: Measure) -> Self {
        let reserve = reserve.min(candidate.window / 2);
        Self { candidate, window: AtomicU64::new(candidate.window), reserve, measure }
    }

    /// What an estimate is multiplied with, for this model: nothing was reported by it yet.
    fn factor(&self) -> f64 {
        tokens::factor(&tokens::Calibration::default(), self.measure.estimator, Some(&self.candidate.model.provider))
    }

    /// The most an answer may have, in tokens.
    fn answer(&self, part: Part) -> u64 {
        let reserve = self.reserve.min(self.window.load(Ordering::Relaxed) / 2);
        let most = match part {
            Part::History => reserve * 4 / 5,
            Part::TurnPrefix => reserve / 2,
            Part::Short => (reserve / 5).min(512),
        };
        most.min(self.candidate.output.unwrap_or(u64::MAX)).max(16)
    }

    /// Tokens that thinking may take beside the answer.
    fn thinking(&self) -> u64 {
        if self.candidate.thinks { provider::Effort::Minimal.room() } else { 0 }
    }

    /// Room for a conversation, in estimated tokens; none where the window leaves none.
    fn room(&self, brief: &Brief, part: Part, previous: Option<&str>) -> Option<u64> {
        let ask = Ask { part, conversation: "", previous, most: self.answer(part), refused: Some(&"x".repeat(200)) };
        let around = self.measure.raw(&brief.text(&ask)) + self.measure.raw(&brief.system()) + 64;
        let around = tokens::scaled(around, self.factor());
        let room = fold::room(self.window.load(Ordering::Relaxed), self.answer(part) + self.thinking(), around)?;
        Some((room as f64 / self.factor()) as u64)
    }
}

impl Measure {
    /// A text by the estimator alone.
    #[must_use]
    pub fn raw(self, text: &str) -> u64 {
        match self.estimator {
            Estimator::Tiktoken => u64::from(tokens::of_text(text)),
            Estimator::Chars => tokens::utf16_len(text).div_ceil(4) as u64,
        }
    }

    /// A text as the session counts.
    #[must_use]
    pub fn of(self, text: &str) -> u64 {
        tokens::scaled(self.raw(text), self.factor)
    }
}

impl Work<'_> {
    fn rejected(&self) -> MutexGuard<'_, Vec<Rejected>> {
        self.rejected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reject(&self, model: Option<ModelRef>, why: String, error: Option<Value>) {
        tracing::info!(model = model.as_ref().map(ToString::to_string), why, "no summary by this model");
        self.rejected().push(Rejected { model, why, error });
    }

    /// A candidate's summary.
    async fn by(&self, candidate: &Candidate) -> Result<Written, Out> {
        let Job { material, brief, measure, .. } = self.job;
        let seat = Seat::new(candidate, self.job.reserve, *measure);
        let measured = |text: &str| measure.of(text);
        let shares = material.shares(&measured);
        let planned = planned(material, brief, candidate, self.job.reserve, *measure);
        self.done.store(0, Ordering::Relaxed);
        (self.tell)(Told::Progress { done: 0, total: planned });
        let (history, prefix) = tokio::try_join!(
            self.part(&seat, Part::History, shares, planned),
            self.part(&seat, Part::TurnPrefix, shares, planned),
        )?;
        let text = material.compose(history.as_ref(), prefix.as_ref(), shares, &measured);
        let tokens = measured(&text);
        if tokens >= material.replaces {
            let why = Rejection::LargerThanSource { tokens, source: material.replaces };
            self.reject(Some(candidate.model.clone()), why.to_string(), None);
            return Err(Out);
        }
        let short = self.short(&seat, &text).await;
        (self.tell)(Told::Progress { done: planned, total: planned });
        Ok(Written { text, short })
    }

    /// One part of a candidate's summary, folded over its chunks; none where there is nothing of it.
    async fn part(&self, seat: &Seat<'_>, part: Part, shares: Shares, planned: usize) -> Result<Option<Accepted>, Out> {
        let Job { material, brief, measure, .. } = self.job;
        let (pieces, previous) = material.part(part);
        let share = if part == Part::History { shares.history } else { shares.prefix };
        if pieces.is_empty() {
            // Nothing new: what is there stays, if it fits.
            let kept = previous.map(|previous| Accepted::kept(previous, share, &|text| measure.of(text)));
            return Ok(kept);
        }
        let mut carried: Option<Accepted> = None;
        let mut at = 0;
        while at < pieces.len() {
            let previous = carried.as_ref().map(Accepted::text).or(previous);
            let Some(room) = seat.room(brief, part, previous) else {
                let why = format!("its window of {} tokens leaves no room", seat.window.load(Ordering::Relaxed));
                self.reject(Some(seat.candidate.model.clone()), why, None);
                return Err(Out);
            };
            let chunk = pieces.chunk(at, room);
            let ask = Ask { part, conversation: &chunk.text, previous, most: share, refused: None };
            match self.asked(seat, ask, share).await? {
                Some(accepted) => {
                    at = chunk.until;
                    carried = Some(accepted);
                    let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
                    (self.tell)(Told::Progress { done, total: planned.max(done + 1) });
                }
                // Too long after all: the window is smaller now, and so is the next chunk.
                None => {}
            }
        }
        Ok(carried)
    }

    /// An answer to one request that passed the gate; none where the request was too long and the window is smaller now.
    async fn asked(&self, seat: &Seat<'_>, ask: Ask<'_>, share: u64) -> Result<Option<Accepted>, Out> {
        let Job { material, brief, measure, settings, .. } = self.job;
        let model = || Some(seat.candidate.model.clone());
        let mut refused: Option<String> = None;
        loop {
            let text = brief.text(&Ask { refused: refused.as_deref(), ..ask });
            let estimate = measure.raw(&text) + measure.raw(&brief.system());
            let answer = match self.with_retries(seat, ask.part, &text).await {
                Ok(answer) => answer,
                Err(trouble) => {
                    let overflow = match trouble.kind {
                        TroubleKind::Overflow(overflow) => Some(overflow),
                        // Bytes, or a word without a number: too long it was, if it was long.
                        TroubleKind::TooLarge => Some(overflow::Overflow::default()),
                        _ => None,
                    };
                    if let Some(overflow) = overflow
                        && self.shrinks(seat, overflow.limit, estimate)
                    {
                        return Ok(None);
                    }
                    let failure = failure(&seat.candidate.model, &trouble);
                    self.reject(model(), failure.to_string(), serde_json::to_value(failure.data()).ok());
                    return Err(Out);
                }
            };
            let usage = answer.usage;
            (self.tell)(Told::Spent(Spent { purpose: purpose(ask.part), model: seat.candidate.model.clone(), usage }));
            let reported = usage.input + usage.cache_read + usage.cache_write;
            if let Some(window) = overflow::truncated(reported, estimate) {
                let why = format!("it was sent about {estimate} tokens and read {reported}: its server cuts prompts");
                self.reject(model(), why, None);
                if self.shrinks(seat, Some(window), estimate) {
                    return Ok(None);
                }
                return Err(Out);
            }
            let window = seat.window.load(Ordering::Relaxed);
            if overflow::silent(reported, usage.output, answer.stop == Ended::Length, window) {
                self.reject(model(), format!("the request filled its window of {window} tokens"), None);
                return if self.shrinks(seat, None, estimate) { Ok(None) } else { Err(Out) };
            }
            let expected = Expected {
                part: ask.part,
                prompt: brief.prompt(ask.part, ask.previous.is_some()),
                replaces: material.replaces,
                cap: share,
                script: material.script,
                redact: settings.settings.redaction.enabled,
                measure: &|text| measure.of(text),
            };
            match check(&answer, &expected) {
                Ok(accepted) => return Ok(Some(accepted)),
                Err(rejection) => {
                    self.reject(model(), rejection.to_string(), None);
                    let long = rejection.is_about_length();
                    let too_often = long && self.too_long.fetch_add(1, Ordering::Relaxed) + 1 >= MOST_TOO_LONG;
                    if refused.is_some() || too_often {
                        return Err(Out);
                    }
                    refused = Some(rejection.to_string());
                }
            }
        }
    }

    /// Makes a window smaller after an overflow, by what was said or by half. False where nothing is left to make
    /// smaller.
    fn shrinks(&self, seat: &Seat<'_>, stated: Option<u64>, estimate: u64) -> bool {
        /// No window in use is smaller, in tokens.
        const LEAST: u64 = 1_024;
        let before = seat.window.load(Ordering::Relaxed);
        let sent = tokens::scaled(estimate, seat.factor());
        // What was sent did not fit, whatever anybody said.
        let smaller = match stated {
            Some(stated) if stated < before => stated,
            _ => before.min(sent + seat.answer(Part::History)) / 2,
        };
        if let Some(stated) = stated.filter(|_| self.job.settings.settings.tokens.learn_window)
            && self.job.means.learned.learn(&seat.candidate.model, stated)
        {
            let means = self.job.means.clone();
            tokio::task::spawn_blocking(move || means.keep_learned());
        }
        seat.window.fetch_min(smaller, Ordering::Relaxed);
        smaller >= LEAST
    }

    /// Two sentences for a person; where the model has none, those that were there before stay.
    async fn short(&self, seat: &Seat<'_>, summary: &str) -> Option<String> {
        /// Longer ones are no line in a list, in characters.
        const LONGEST: usize = 600;
        let Job { brief, measure, settings, .. } = self.job;
        let ask =
            Ask { part: Part::Short, conversation: summary_as_data(summary), previous: None, most: 512, refused: None };
        let answer = self.once(seat, Part::Short, &brief.text(&ask)).await.ok()?;
        let spent = Spent { purpose: Purpose::ShortSummary, model: seat.candidate.model.clone(), usage: answer.usage };
        (self.tell)(Told::Spent(spent));
        let expected = Expected {
            part: Part::Short,
            prompt: brief.prompt(Part::Short, false),
            replaces: measure.of(summary).max(2),
            cap: 512,
            script: self.job.material.script,
            redact: settings.settings.redaction.enabled,
            measure: &|text| measure.of(text),
        };
        let accepted = check(&answer, &expected).ok()?;
        let text = accepted.text().split_whitespace().collect::<Vec<_>>().join(" ");
        (text.chars().count() <= LONGEST).then_some(text)
    }

    /// Asks, and asks again after a while where that may help.
    async fn with_retries(&self, seat: &Seat<'_>, part: Part, text: &str) -> Result<Answer, Trouble> {
        let retry = &self.job.settings.settings.retry;
        let most = if retry.enabled { u32::try_from(retry.max_retries).unwrap_or(u32::MAX) } else { 0 };
        let source = retry_source(part);
        let mut attempt = 0;
        loop {
            let asked = self.once(seat, part, text).await;
            let failed = asked.as_ref().err().map(|trouble| failure(&seat.candidate.model, trouble));
            if attempt > 0 {
                (self.tell)(Told::RetryEnd { source, attempt, failure: failed.clone() });
            }
            let (trouble, failure) = match (asked, failed) {
                (Err(trouble), Some(failure)) => (trouble, failure),
                (Ok(answer), _) => return Ok(answer),
                (Err(trouble), None) => return Err(trouble),
            };
            // Silence was long enough already.
            if !trouble.transient() || trouble.kind == TroubleKind::Stalled || attempt == most {
                return Err(trouble);
            }
            let delay = delay(retry, attempt, trouble.retry_after);
            if delay > LONGEST_WAIT {
                return Err(trouble);
            }
            attempt += 1;
            (self.tell)(Told::RetryStart { source, attempt, most, delay, failure });
            tokio::time::sleep(delay).await;
        }
    }

    /// Asks once.
    async fn once(&self, seat: &Seat<'_>, part: Part, text: &str) -> Result<Answer, Trouble> {
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
                    model: seat.candidate.model.id.clone(),
                    system: Some(brief.system()),
                    turns: vec![Turn::user(text)],
                    max_tokens: Some(match seat.candidate.output {
                        Some(most) => (answer + seat.thinking()).min(most),
                        None => answer + seat.thinking(),
                    }),
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
        let deadline = Duration::from_secs(self.job.settings.settings.compaction.deadline_seconds);
        let params = LlmCompleteParams {
            session_id: self.job.session.clone(),
            operation_id: self.job.operation.clone(),
            purpose: purpose(part),
            system: self.job.brief.system(),
            messages: vec![json!({
                "role": "user",
                "content": [{ "type": "text", "text": text }],
                "timestamp": jiff::Timestamp::now().as_millisecond(),
            })],
            tools: None,
            max_tokens: most,
            model: Some(seat.candidate.model.clone()),
            deadline_ms: u64::try_from(deadline.as_millis()).ok(),
        };
        let unwilling = |what: String| Trouble::new(TroubleKind::Unwilling, what);
        let call = self.job.means.caller.call::<LlmComplete>(&params);
        match tokio::time::timeout(deadline, call).await {
            Err(_) => Err(Trouble::new(TroubleKind::Stalled, format!("no answer within {} s", deadline.as_secs()))),
            Ok(Err(unanswered)) => Err(unwilling(unanswered.to_string())),
            Ok(Ok(answer)) => answer_of(answer.message).map_err(unwilling)?,
        }
    }
}

/// A client's message as an answer; what its provider said where it is an error.
fn answer_of(mut message: Value) -> Result<Result<Answer, Trouble>, String> {
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

/// How long to wait before asking again: twice as long each time, and not all at the same moment.
fn delay(retry: &crate::settings::RetrySettings, attempt: u32, after: Option<Duration>) -> Duration {
    let base = retry.base_delay_ms.saturating_mul(1 << attempt.min(20)).min(retry.max_delay_ms);
    // Somewhere in the last quarter.
    let jitter = base / 4 * u64::from(uuid::Uuid::new_v4().as_bytes()[0]) / 255;
    let own = Duration::from_millis(base - base / 4 + jitter);
    after.map_or(own, |after| after.max(own.min(Duration::from_millis(retry.base_delay_ms))))
}

/// A model's trouble as clients are told of it.
#[must_use]
pub fn failure(model: &ModelRef, trouble: &Trouble) -> Failure {
    let said = redact::redact(&trouble.to_string()).into_owned();
    Failure::Provider {
        provider: model.provider.clone(),
        model: model.id.clone(),
        status: trouble.status,
        retryable: trouble.transient(),
        what: format!("{model}: {said}; {}", trouble.advice()),
    }
}

/// The summary stands where a conversation does; it was cleaned when it was made.
fn summary_as_data(summary: &str) -> &str {
    summary.split("\n\n<read-files>").next().unwrap_or(summary).split("\n\n<modified-files>").next().unwrap_or(summary)
}

fn purpose(part: Part) -> Purpose {
    match part {
        Part::History => Purpose::Compaction,
        Part::TurnPrefix => Purpose::TurnPrefix,
        Part::Short => Purpose::ShortSummary,
    }
}

fn chunk_source(part: Part) -> Option<ChunkSource> {
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
