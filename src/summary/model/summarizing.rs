//! A summary by models: one candidate after the other, each asked part by part and chunk by chunk, each answer looked at
//! before it counts. One task beside the session; what happens is told, and dropping it ends every request.
//!
//! There is no failure in here: where no candidate makes a summary, the extracted one that was there before stays.

use crate::{
    ask::{
        access::ModelAccess,
        failed::{Failed, Next},
        purpose::Purpose,
        request::{Answered, Limits, Origin, Quota, Request, Update},
        retry::Policy,
    },
    conversation::tokens::{self, Estimator, Scale},
    ids::ModelRef,
    models::candidates::{Candidate, Unfit, Way},
    provider::{self, Cache, Delta, Reasoning, Stop as Ended, ToolChoice, Turn, overflow},
    redact::Stream,
    settings::Sourced,
    summary::{
        made::{Made, Rejected},
        model::{
            brief::{Ask, Brief, Part},
            check::{Accepted, Expected, Rejection, check},
            fold,
            material::{Material, Shares},
        },
    },
};
use serde_json::Value;
use std::{
    borrow::Cow,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// What is to be summarized, and by whom.
pub struct Job {
    /// Session and operation of its requests.
    pub origin: Origin,
    /// What it is made of.
    pub material: Material,
    /// What all requests have in common.
    pub brief: Brief,
    /// Room kept for an answer, in tokens: the contract's limit of its length.
    pub reserve: u64,
    /// Who may write it, in order.
    pub candidates: Vec<Result<Candidate, Unfit>>,
    /// The settings in force.
    pub settings: Arc<Sourced>,
    /// The scale of the session's own model.
    pub scale: Scale,
    /// How much time there is, where it is limited.
    pub deadline: Option<Duration>,
    /// Access to models.
    pub access: Arc<ModelAccess>,
}

/// Step of a summary in the making.
#[derive(Debug)]
pub enum Step {
    /// So many of its requests are done.
    Progress { done: usize, total: usize },
    /// A report on one of its requests, or on a part that stays without a request. Texts are redacted.
    Request(Purpose, Update),
}

/// A summary that a model wrote.
#[derive(Debug)]
pub struct Written {
    /// The text, whole.
    pub text: String,
    /// Two sentences for a person, where the model wrote them too.
    pub short: Option<String>,
}

/// So often an answer may be refused for its length in one maintenance, before no candidate is asked twice for that.
const MOST_TOO_LONG: usize = 3;

/// Requests of one maintenance beyond those that were planned for its candidates: retries, refused answers, and the
/// chunks that a smaller window makes necessary. A full window of 128,000 tokens of which a server serves 4,096 (Ollama's
/// default) takes 32 chunks more, and each may be refused once.
const MOST_BEYOND_PLAN: usize = 64;

/// Longest wait before a retry. With a longer one the next candidate is asked.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Asks the candidates. The summary, if one of them wrote it, and how it came to be.
pub async fn summarize(job: &Job, tell: &(dyn Fn(Step) + Send + Sync)) -> (Option<Written>, Made) {
    let exceeded = format!("{MOST_BEYOND_PLAN} more than planned were sent, and no summary came");
    let until = job.deadline.map(|deadline| Instant::now() + deadline);
    let work = Work {
        job,
        tell,
        until,
        rejected: Mutex::default(),
        too_long: AtomicUsize::new(0),
        quota: Arc::new(Quota::new(MOST_BEYOND_PLAN, exceeded)),
        done: AtomicUsize::new(0),
    };
    let asked = async {
        let _slot = job.access.summaries.take(job.settings.settings.compaction.max_concurrent).await;
        for candidate in &job.candidates {
            match candidate {
                Err(unfit) => work.cannot_ask(unfit),
                Ok(candidate) => match work.by(candidate).await {
                    Ok(written) => return Ok(Some((written, candidate.model.clone()))),
                    Err(Out::Candidate) => {}
                    Err(Out::Time) => return Err(Out::Time),
                },
            }
        }
        Ok(None)
    };
    let asked = match until {
        None => asked.await,
        Some(until) => tokio::time::timeout_at(until.into(), asked).await.unwrap_or(Err(Out::Time)),
    };
    let written = asked.unwrap_or_else(|_| {
        let seconds = job.deadline.unwrap_or_default().as_secs();
        work.reject(None, format!("the {seconds} s for this maintenance were over"), None);
        None
    });
    let rejected = std::mem::take(&mut *work.rejected());
    let (written, by) = written.map_or((None, None), |(written, by)| (Some(written), Some(by)));
    (written, Made { by, rejected })
}

/// How many requests to its model a candidate would take for its summary, that for the two sentences included, as far
/// as that is known before it is asked: how long the summary is that later requests carry along is a guess.
#[must_use]
pub fn planned(material: &Material, brief: &Brief, candidate: &Candidate, reserve: u64, scale: Scale) -> usize {
    let seat = Seat::new(candidate, reserve, scale);
    let shares = material.shares();
    let chunks = |part: Part| {
        let (pieces, previous) = material.part(part);
        if pieces.is_empty() {
            return 0;
        }
        let share = if part == Part::History { shares.history } else { shares.prefix };
        let (Some(room), Some(most)) = (seat.room(brief, part, previous), seat.most(brief, part, share)) else {
            return 1;
        };
        let until = pieces.chunk(0, room).until;
        // Half of what it may be.
        let carried = scale.unscaled(most) / 2;
        let room = seat.room(brief, part, Some("")).unwrap_or(room).saturating_sub(carried).max(1);
        1 + pieces.chunks(until, room)
    };
    chunks(Part::History) + chunks(Part::TurnPrefix) + 1
}

/// The short summary has so much time.
const LONGEST_FOR_SHORT: Duration = Duration::from_secs(30);

/// What is known of a window after a request was too long for it.
#[derive(Clone, Copy)]
enum Found {
    /// Nothing but that.
    Nothing,
    /// The provider said how large it is, in tokens.
    Stated(u64),
    /// So much of the request was read, in tokens.
    Guessed(u64),
}

/// Why there is no summary by a candidate. The reason is recorded.
enum Out {
    /// The candidate cannot write it.
    Candidate,
    /// The time for the maintenance is over.
    Time,
}

/// What all requests of one maintenance share.
struct Work<'a> {
    job: &'a Job,
    tell: &'a (dyn Fn(Step) + Send + Sync),
    until: Option<Instant>,
    rejected: Mutex<Vec<Rejected>>,
    too_long: AtomicUsize,
    /// Requests that may still be sent.
    quota: Arc<Quota>,
    done: AtomicUsize,
}

/// A candidate at work.
struct Seat<'a> {
    candidate: &'a Candidate,
    /// Its window as far as it is known; an overflow makes it smaller.
    window: AtomicU64,
    /// Room for an answer: in a small window no more than half of it.
    reserve: u64,
    scale: Scale,
}

impl<'a> Seat<'a> {
    fn new(candidate: &'a Candidate, reserve: u64, scale: Scale) -> Self {
        let reserve = reserve.min(candidate.window / 2);
        Self { candidate, window: AtomicU64::new(candidate.window), reserve, scale }
    }

    /// The scale of this model, which has reported nothing yet.
    fn own_scale(&self) -> Scale {
        Scale::expected(self.scale.estimator(), Some(&self.candidate.model.provider))
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

    /// The most a part may have that this model writes, as the session counts, where `share` is allowed: what it can
    /// answer, and no more than leaves room for what is yet to come when it is carried along. None where the window
    /// leaves no room.
    fn most(&self, brief: &Brief, part: Part, share: u64) -> Option<u64> {
        let half = self.room(brief, part, Some(""))? / 2;
        let half = self.scale.size(half);
        Some(share.min(self.answer(part)).min(half))
    }

    /// Room for a conversation, in estimated tokens; none where the window leaves none.
    fn room(&self, brief: &Brief, part: Part, previous: Option<&str>) -> Option<u64> {
        let ask = Ask { part, conversation: "", previous, most: self.answer(part), refused: Some(&"x".repeat(200)) };
        let around = self.scale.estimate(&brief.text(&ask)) + self.scale.estimate(&brief.system()) + 64;
        let around = self.own_scale().size(around);
        let room = fold::room(self.window.load(Ordering::Relaxed), self.answer(part) + self.thinking(), around)?;
        Some(self.own_scale().unscaled(room))
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

    /// Records a candidate that cannot be asked.
    fn cannot_ask(&self, Unfit { model: name, why }: &Unfit) {
        match ModelRef::parse(name) {
            Some(model) => self.reject_failed(&Failed::unfit(model, why)),
            None => self.reject(None, why.clone(), None),
        }
    }

    /// Records a candidate whose request failed.
    fn reject_failed(&self, failed: &Failed) {
        self.reject(Some(failed.model.clone()), failed.to_string(), Some(failed.data()));
    }

    /// Sends a request for a part. Its reports reach the session without secrets.
    async fn ask(&self, seat: &Seat<'_>, part: Part, text: &str, retry: Policy) -> Result<Answered, Failed> {
        let Job { origin, brief, settings, access, .. } = self.job;
        let purpose = part.purpose();
        let request = Request {
            purpose,
            origin: origin.clone(),
            candidate: seat.candidate.clone(),
            system: Some(brief.system()),
            turns: vec![Turn::user(text)],
            tools: Vec::new(),
            tool_choice: ToolChoice::default(),
            max_tokens: seat.answer(part),
            reasoning: Reasoning::Off,
            cache: Cache::default(),
            retry,
            limits: Limits {
                stall: Duration::from_secs(settings.settings.compaction.stall_seconds),
                client: Some(Duration::from_secs(settings.settings.compaction.deadline_seconds)),
                until: self.until,
                quota: Some(self.quota.clone()),
            },
        };
        let redacted = Redacted::new(settings.settings.redaction.enabled);
        let tell = |update: Update| {
            if let Some(update) = redacted.update(update) {
                (self.tell)(Step::Request(purpose, update));
            }
        };
        access.routes.ask(&request, &tell).await
    }

    /// A candidate's summary.
    async fn by(&self, candidate: &Candidate) -> Result<Written, Out> {
        let Job { material, brief, scale, .. } = self.job;
        let seat = Seat::new(candidate, self.job.reserve, *scale);
        let shares = material.shares();
        let planned = planned(material, brief, candidate, self.job.reserve, *scale);
        self.quota.add(planned);
        self.done.store(0, Ordering::Relaxed);
        (self.tell)(Step::Progress { done: 0, total: planned });
        let (history, prefix) = tokio::try_join!(
            self.part(&seat, Part::History, shares, planned),
            self.part(&seat, Part::TurnPrefix, shares, planned),
        )?;
        let text = material.compose(history.as_ref(), prefix.as_ref(), shares);
        let tokens = scale.text(&text);
        if tokens >= material.replaces {
            let why = Rejection::LargerThanSource { tokens, source: material.replaces };
            self.reject(Some(candidate.model.clone()), why.to_string(), None);
            return Err(Out::Candidate);
        }
        let short = self.short(&seat, &text).await;
        (self.tell)(Step::Progress { done: planned, total: planned });
        Ok(Written { text, short })
    }

    /// One part of a candidate's summary, folded over its chunks; none where there is nothing of it.
    async fn part(&self, seat: &Seat<'_>, part: Part, shares: Shares, planned: usize) -> Result<Option<Accepted>, Out> {
        let Job { material, brief, scale, .. } = self.job;
        let raw = |text: &str| scale.estimate(text);
        let (pieces, mut previous) = material.part(part);
        let mut pieces = Cow::Borrowed(pieces);
        let share = if part == Part::History { shares.history } else { shares.prefix };
        if pieces.is_empty() {
            let Some(before) = previous else { return Ok(None) };
            // Nothing new: what is there stays, if it fits.
            if let Some(kept) = Accepted::kept(before, share, &|text| scale.text(text)) {
                let report = |update: Update| (self.tell)(Step::Request(part.purpose(), update));
                report(Update::Begins);
                report(Update::Delta(Delta::Text(kept.text().to_owned())));
                return Ok(Some(kept));
            }
            pieces = Cow::Owned(pieces.behind(before, 0, &raw));
            previous = None;
        }
        let mut written: Option<Accepted> = None;
        let mut at = 0;
        let mut spread_for = u64::MAX;
        while at < pieces.len() {
            let window = seat.window.load(Ordering::Relaxed);
            let carried = written.as_ref().map(Accepted::text).or(previous);
            let rooms = (seat.most(brief, part, share), seat.room(brief, part, Some("")));
            let (Some(most), Some(empty)) = rooms else { return Err(self.no_room(seat)) };
            let room = seat.room(brief, part, carried).filter(|room| carried.is_none() || *room >= empty / 3);
            let room = match (room, carried) {
                (Some(room), _) => room,
                // What was written with more room is taken in bit by bit, once for each window.
                (None, Some(carried)) if window < spread_for => {
                    spread_for = window;
                    pieces = Cow::Owned(pieces.behind(carried, at, &raw));
                    (previous, written, at) = (None, None, 0);
                    continue;
                }
                (None, _) => return Err(self.no_room(seat)),
            };
            let chunk = pieces.chunk(at, room);
            let ask = Ask { part, conversation: &chunk.text, previous: carried, most, refused: None };
            // Too long after all? The window is smaller now, and so is the next chunk.
            if let Some(accepted) = self.asked(seat, ask, chunk.tokens).await? {
                at = chunk.until;
                written = Some(accepted);
                let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
                (self.tell)(Step::Progress { done, total: planned.max(done + 1) });
            }
        }
        Ok(written)
    }

    fn no_room(&self, seat: &Seat<'_>) -> Out {
        let window = seat.window.load(Ordering::Relaxed);
        let why =
            format!("its window of {window} tokens leaves no room for a conversation beside the prompt and an answer");
        self.reject(Some(seat.candidate.model.clone()), why, None);
        Out::Candidate
    }

    /// An answer to one request, with a conversation of so many tokens, that passed the gate; none where the request was
    /// too long and the window is smaller now.
    async fn asked(&self, seat: &Seat<'_>, ask: Ask<'_>, tokens: u64) -> Result<Option<Accepted>, Out> {
        let Job { material, brief, scale, settings, .. } = self.job;
        let model = || Some(seat.candidate.model.clone());
        // The other part may find out meanwhile that it is smaller.
        let window = seat.window.load(Ordering::Relaxed);
        // The conversation was measured already, and is nearly all of it.
        let around = brief.text(&Ask { conversation: "", ..ask });
        let estimate = tokens + scale.estimate(&around) + scale.estimate(&brief.system());
        let retry = Policy::of(&settings.settings.retry, LONGEST_WAIT);
        let mut refused: Option<String> = None;
        loop {
            let text = brief.text(&Ask { refused: refused.as_deref(), ..ask });
            let answer = match self.ask(seat, ask.part, &text, retry).await {
                Ok(Answered { answer, .. }) => answer,
                Err(failed) => match failed.next {
                    Next::Stop => return Err(Out::Time),
                    Next::Shorten { window: limit }
                        if self.shrinks(seat, window, limit.map_or(Found::Nothing, Found::Stated), estimate) =>
                    {
                        return Ok(None);
                    }
                    Next::Shorten { .. } | Next::OtherModel => {
                        self.reject_failed(&failed);
                        return Err(Out::Candidate);
                    }
                },
            };
            let usage = answer.usage;
            let reported = usage.input + usage.cache_read + usage.cache_write;
            // A client may leave out what was read from a cache.
            let at_provider = matches!(seat.candidate.way, Way::Provider(_));
            if at_provider && let Some(served) = self.truncated(reported, estimate, &text) {
                let why = format!("it was sent about {estimate} tokens and read {reported}: its server cuts prompts");
                self.reject(model(), why, None);
                return if self.shrinks(seat, window, Found::Guessed(served), estimate) {
                    Ok(None)
                } else {
                    Err(Out::Candidate)
                };
            }
            if overflow::silent(reported, usage.output, answer.stop == Ended::Length, window) {
                self.reject(model(), format!("the request filled its window of {window} tokens"), None);
                return if self.shrinks(seat, window, Found::Nothing, estimate) {
                    Ok(None)
                } else {
                    Err(Out::Candidate)
                };
            }
            let expected = Expected {
                part: ask.part,
                prompt: brief.prompt(ask.part, ask.previous.is_some()),
                replaces: material.replaces,
                cap: ask.most,
                script: material.script,
                redact: settings.settings.redaction.enabled,
                measure: &|text| scale.text(text),
            };
            match check(&answer, &expected) {
                Ok(accepted) => return Ok(Some(accepted)),
                Err(rejection) => {
                    self.reject(model(), rejection.to_string(), None);
                    let long = rejection.is_about_length();
                    let too_often = long && self.too_long.fetch_add(1, Ordering::Relaxed) + 1 >= MOST_TOO_LONG;
                    if refused.is_some() || too_often {
                        return Err(Out::Candidate);
                    }
                    refused = Some(rejection.to_string());
                }
            }
        }
    }

    /// The window that a server really has, where it cut a request of about `estimate` tokens and read so many.
    fn truncated(&self, reported: u64, estimate: u64, text: &str) -> Option<u64> {
        let served = overflow::truncated(reported, estimate)?;
        match self.job.scale.estimator() {
            Estimator::Tiktoken => Some(served),
            // A quarter of the characters is far too many for blanks: this is worth a count.
            Estimator::Chars => overflow::truncated(reported, u64::from(tokens::of_text(text))),
        }
    }

    /// Makes a window smaller after an overflow of a request that was planned for `before`, by what was found or by half.
    /// False where nothing is left to make smaller.
    fn shrinks(&self, seat: &Seat<'_>, before: u64, found: Found, estimate: u64) -> bool {
        /// No window in use is smaller, in tokens.
        const LEAST: u64 = 1_024;
        let sent = seat.own_scale().size(estimate);
        // What was sent did not fit, whatever anybody said.
        let smaller = match found {
            Found::Stated(window) | Found::Guessed(window) if window < before => window,
            _ => before.min(sent + seat.answer(Part::History)) / 2,
        };
        let settings = &self.job.settings.settings;
        let model = &seat.candidate.model;
        let set = settings.model(model).is_some_and(|model| model.context_window.is_some());
        let lesson = match found {
            Found::Stated(window) => Some(window),
            // A person who set a window knows better than a guess.
            Found::Guessed(window) => Some(window).filter(|_| !set),
            Found::Nothing => None,
        };
        if let Some(window) = lesson.filter(|_| settings.tokens.learn_window) {
            self.job.access.windows.learn(model, window);
        }
        // Both parts of a summary may meet the same limit: it is made smaller by the larger step, not twice.
        seat.window.fetch_min(smaller, Ordering::Relaxed).min(smaller) >= LEAST
    }

    /// Two sentences for a person; where the model has none, those that were there before stay.
    async fn short(&self, seat: &Seat<'_>, summary: &str) -> Option<String> {
        /// Longer ones are no line in a list, in characters.
        const LONGEST: usize = 600;
        let Job { brief, scale, settings, .. } = self.job;
        let ask =
            Ask { part: Part::Short, conversation: summary_as_data(summary), previous: None, most: 512, refused: None };
        // The summary is there: nobody waits long for a line about it.
        let longest = Duration::from_secs(settings.settings.compaction.stall_seconds).min(LONGEST_FOR_SHORT);
        let text = brief.text(&ask);
        let asked = self.ask(seat, Part::Short, &text, Policy::NEVER);
        let Answered { answer, .. } = tokio::time::timeout(longest, asked).await.ok()?.ok()?;
        let expected = Expected {
            part: Part::Short,
            prompt: brief.prompt(Part::Short, false),
            replaces: scale.text(summary).max(2),
            cap: 512,
            script: self.job.material.script,
            redact: settings.settings.redaction.enabled,
            measure: &|text| scale.text(text),
        };
        let accepted = check(&answer, &expected).ok()?;
        let text = accepted.text().split_whitespace().collect::<Vec<_>>().join(" ");
        (text.chars().count() <= LONGEST).then_some(text)
    }
}

/// Redacts the reports on a request.
struct Redacted {
    enabled: bool,
    text: Mutex<Stream>,
}

impl Redacted {
    fn new(enabled: bool) -> Self {
        Self { enabled, text: Mutex::new(Stream::new(enabled)) }
    }

    /// The report without secrets; none where there is nothing to say yet. Only the text of an answer is reported.
    fn update(&self, update: Update) -> Option<Update> {
        let mut stream = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = |stream: &mut Stream| std::mem::replace(stream, Stream::new(self.enabled)).finish();
        let text = |text: Option<String>| text.map(|text| Update::Delta(Delta::Text(text)));
        match update {
            Update::Delta(Delta::Text(piece)) => text(stream.push(&piece)),
            Update::Complete => text(ended(&mut stream)),
            Update::Delta(_) => None,
            Update::Begins => {
                ended(&mut stream);
                Some(Update::Begins)
            }
            other => Some(other),
        }
    }
}

/// The summary stands where a conversation does; it was cleaned when it was made.
fn summary_as_data(summary: &str) -> &str {
    summary.split("\n\n<read-files>").next().unwrap_or(summary).split("\n\n<modified-files>").next().unwrap_or(summary)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ask::{
            Pending,
            client::{Client, Completion, Unanswered},
        },
        conversation::entry::Entry,
        models::candidates::Way,
        settings::Layers,
        summary::{files::FileLists, span::Span},
    };
    use serde_json::json;

    /// A client that never answers.
    #[derive(Default)]
    struct Silent {
        deadlines: Mutex<Vec<Option<Duration>>>,
        cancelled: AtomicUsize,
    }

    impl Client for Silent {
        fn complete(&self, completion: Completion) -> Pending<'_, Result<Value, Unanswered>> {
            struct Request<'a>(&'a AtomicUsize);
            impl Drop for Request<'_> {
                fn drop(&mut self) {
                    self.0.fetch_add(1, Ordering::SeqCst);
                }
            }
            self.deadlines.lock().expect("no panic").push(completion.deadline);
            let request = Request(&self.cancelled);
            Box::pin(async move {
                let _request = request;
                std::future::pending().await
            })
        }
    }

    /// A conversation that only a client can summarize.
    fn job(client: Arc<Silent>, deadline: Duration) -> Job {
        let line = |at: usize| {
            let parent = if at == 0 { Value::Null } else { json!(format!("e{}", at - 1)) };
            let line = json!({
                "type": "message", "id": format!("e{at}"), "parentId": parent, "timestamp": "2026-01-01T00:00:00.000Z",
                "message": {"role": "user", "content": "Look at this. ".repeat(100), "timestamp": 1},
            });
            Arc::new(Entry::parse(line.to_string().into()).expect("a line"))
        };
        let entries: Vec<_> = (0..20).map(line).collect();
        let settings = Arc::new(Layers::default().sourced());
        let scale = Scale::new(Estimator::Chars, 1.0);
        let files = FileLists::default();
        let material = Material::of(Span::of(&entries), &files, 4_000, &settings.settings, scale, &|| false);
        let model = ModelRef::parse("some/model").expect("a model");
        let candidate = Candidate { model, window: 100_000, output: None, thinks: false, way: Way::Client };
        Job {
            origin: Origin { session: "s".into(), operation: "o".into() },
            material,
            brief: Brief::default(),
            reserve: 16_384,
            candidates: vec![Ok(candidate)],
            settings,
            scale,
            deadline: Some(deadline),
            // Nothing is learned, so nothing is written there.
            access: ModelAccess::new(client, std::path::Path::new("/nonexistent")),
        }
    }

    #[tokio::test]
    async fn the_time_for_a_maintenance_ends_whatever_is_asked() {
        let client = Arc::new(Silent::default());
        let deadline = Duration::from_millis(1_500);
        let (written, made) = summarize(&job(client.clone(), deadline), &|_| {}).await;
        assert!(written.is_none() && made.by.is_none());
        let why: Vec<_> = made.rejected.iter().map(|it| it.why.as_str()).collect();
        assert_eq!(why, ["the 1 s for this maintenance were over"]);
        // The client gets the time that is left, not the time that there was.
        let told = client.deadlines.lock().expect("no panic").clone();
        assert!(matches!(told[..], [Some(left)] if left <= deadline), "{told:?}");
        assert_eq!(client.cancelled.load(Ordering::SeqCst), 1);
    }
}
