//! Writes a summary with models: one candidate after the other, part by part and chunk by chunk. Every answer passes the
//! gate before it is used.
//!
//! A summary runs in a task beside the session and reports its steps. Dropping it cancels its requests. It has no errors:
//! where no candidate writes a summary, the extracted one stays.

pub mod live;
mod native;
mod parts;
mod redacted;
#[cfg(test)]
mod tests;

pub use live::LiveJob;
pub use native::{LiveBytes, Native, NativeJob, NativeKind};
pub use redacted::Redacted;

use crate::{
    ask::{
        access::ModelAccess,
        allowance::Allowance,
        clock::{after, within},
        content::Content,
        failed::{Failed, Next},
        pool::{Pool, in_pool},
        purpose::Purpose,
        rank::Rank,
        request::{Answered, Limits, Origin, Quota, Request, Update},
        retry::Policy,
    },
    conversation::{evidence, tokens::Scale},
    ids::ModelRef,
    models::{
        self,
        candidates::{Candidate, Unfit, Way},
        learned::WindowOrigin,
    },
    provider::{self, Answer, Beside, Cache, Delta, Reasoning, Stop, ToolChoice},
    redact::Clean,
    settings::Sourced,
    summary::{
        made::{Made, PartOrigin, Rejected, SummaryForm, SummaryPart},
        model::{
            brief::{Ask, Brief, Part},
            check::{Accepted, Expected, Rejection, check, is_about_reasoning},
            fold::{Chunk, Pieces},
            material::{Material, Shares},
            summarizer::{Clue, Summarizer, planned},
        },
    },
};
use parts::{Done, Parts};
use serde::{Deserialize, Serialize};
use std::{
    borrow::Cow,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// A summary to be written.
pub struct SummaryJob {
    /// Session and operation of its requests.
    pub origin: Origin,
    /// The conversation, cleaned.
    pub material: Material,
    /// Texts that all requests have in common.
    pub brief: Brief,
    /// Room kept for an answer, in tokens. Limits of answers are fractions of it.
    pub reserve: u64,
    /// Candidates in the order in which they are asked, with the reason where one cannot be.
    pub candidates: Vec<Result<Candidate, Unfit>>,
    /// The conversation for the provider's own compaction, where it has one.
    pub native: Option<NativeJob>,
    /// The session's own request, where its provider has it in its cache.
    pub live: Option<LiveJob>,
    /// The settings in force.
    pub settings: Arc<Sourced>,
    /// The scale of the session's own model.
    pub scale: Scale,
    /// Time for all requests together. None: no limit.
    pub deadline: Option<Duration>,
    /// Tokens that all requests may take together. None: no limit.
    pub tokens: Option<u64>,
    /// Whether something waits for the summary.
    pub rank: Rank,
    /// Access to models.
    pub access: Arc<ModelAccess>,
}

/// Step of a summary in the making.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Step {
    /// So many of its requests are done. The model is the one that is asked.
    Progress { done: usize, total: usize, model: Option<ModelRef> },
    /// The next requests of this purpose summarize the chunk with this number, from 1. A chunk that was summarized before is
    /// summarized again.
    Chunk { purpose: Purpose, number: u32 },
    /// A report on one of its requests, or on a part that stays without a request. Texts are redacted.
    Request(Purpose, Update),
}

/// The text that models wrote.
#[derive(Debug)]
pub enum Written {
    /// The summary.
    Whole {
        /// The whole text.
        text: Clean,
        /// Two sentences for a person. None where the model wrote none that passed the gate.
        short: Option<Clean>,
    },
    /// One part of the summary of a split turn. The other part has to be extracted.
    Part(SummaryPart, Accepted),
}

impl Written {
    /// The text of a whole summary.
    #[must_use]
    pub fn whole(self) -> Option<Clean> {
        match self {
            Self::Whole { text, .. } => Some(text),
            Self::Part(..) => None,
        }
    }
}

/// Answers that may be refused for their length in one maintenance. After that no candidate is asked again for a shorter one.
const MOST_TOO_LONG: usize = 3;

/// Requests of one maintenance beyond the planned chunks: retries, refused answers, chunks that a smaller window makes
/// necessary, requests to further candidates, and the short summary. The bound is a decision: a summary is not worth more,
/// and the extracted one stands in. A window that an overflow taught is planned with the next time.
const MOST_BEYOND_PLAN: usize = 12;

/// Longest wait before a retry. With a longer one the next candidate is asked.
pub const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The result of a [`SummaryJob`].
#[derive(Debug, Default)]
pub struct Summarized {
    /// The summary, or the part of it that candidates wrote.
    pub written: Option<Written>,
    /// The history of the provider's own compaction.
    pub native: Option<Native>,
    /// The origin of the summary, with the rejected candidates.
    pub made: Made,
}

/// Asks the candidates in their order, and the provider for its own compaction meanwhile.
pub async fn summarize(job: &SummaryJob, pool: &dyn Pool, tell: &(dyn Fn(Step) + Send + Sync)) -> Summarized {
    let exceeded = format!("{MOST_BEYOND_PLAN} more than planned were sent, and no summary came");
    let clock = &*job.access.routes.clock;
    let until = job.deadline.map(|deadline| after(clock.now(), deadline));
    let writer = Writer {
        job,
        pool,
        tell,
        until,
        rejected: Mutex::default(),
        parts: Mutex::default(),
        short: Mutex::default(),
        native: Mutex::default(),
        live_failed: AtomicBool::new(false),
        too_long: AtomicUsize::new(0),
        quota: Arc::new(Quota::new(MOST_BEYOND_PLAN, exceeded)),
        allowance: job.tokens.map(|tokens| Arc::new(Allowance::new(tokens))),
        granted: AtomicUsize::new(0),
        begun: AtomicUsize::new(0),
        done: AtomicUsize::new(0),
    };
    let asked = async {
        // Nothing waits for other summaries to be told that no model can be asked.
        let affordable: Vec<_> = job.candidates.iter().filter(|candidate| writer.affords(candidate)).collect();
        let native = job.native.as_ref().filter(|native| writer.affords_native(native, &affordable));
        if affordable.is_empty() && native.is_none() {
            return Ok(None);
        }
        let _slot = job.access.summaries.take(job.settings.settings.compaction.max_concurrent, &job.rank).await;
        let by_provider = async {
            if let Some(native) = native.filter(|native| matches!(native.kind, NativeKind::Beside(_))) {
                writer.ask_native(native).await;
            }
        };
        let by_candidates = async {
            for candidate in affordable {
                match candidate {
                    Err(unfit) => writer.cannot_ask(unfit),
                    Ok(candidate) => {
                        let own = native.filter(|native| native.is_summary_by(&candidate.model));
                        if let Some(own) = own
                            && let Some(written) = writer.summarized_by_provider(own).await
                        {
                            return Ok(Some(written));
                        }
                        let live = job.live.as_ref().filter(|live| live.model == candidate.model);
                        if let Some(live) = live
                            && let Some(written) = writer.after_live_request(candidate, live).await?
                        {
                            return Ok(Some(written));
                        }
                        match writer.write(candidate).await {
                            Ok(written) => return Ok(Some(written)),
                            Err(NoSummary::Candidate) => {}
                            Err(NoSummary::Requests) => return Ok(None),
                            Err(NoSummary::Time) => return Err(NoSummary::Time),
                        }
                    }
                }
            }
            Ok(None)
        };
        let (written, ()) = tokio::join!(by_candidates, by_provider);
        written
    };
    let asked = match until {
        None => asked.await,
        Some(until) => within(clock, until, asked).await.unwrap_or(Err(NoSummary::Time)),
    };
    let whole = asked.unwrap_or_else(|_| {
        let seconds = job.deadline.unwrap_or_default().as_secs();
        writer.reject(Rejected::model(None, format!("the {seconds} s for this maintenance were over")));
        None
    });
    let written = whole.or_else(|| std::mem::take(&mut *writer.parts()).half());
    let rejected = std::mem::take(&mut *writer.rejected());
    let native = writer.native.lock().unwrap_or_else(PoisonError::into_inner).take();
    let (written, made) = written.unzip();
    let unaffordable = match &written {
        Some(Written::Whole { .. }) => None,
        Some(Written::Part(..)) | None => writer.allowance.as_ref().and_then(|allowance| allowance.refused()),
    };
    let live_failed = writer.live_failed.load(Ordering::Relaxed);
    Summarized { written, native, made: Made { rejected, unaffordable, live_failed, ..made.unwrap_or_default() } }
}

/// Longest wait for the short summary.
const LONGEST_FOR_SHORT: Duration = Duration::from_secs(10);

/// Why a candidate wrote no summary. The reason is recorded. Of two parts the later variant counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum NoSummary {
    /// The candidate failed. The next one is asked.
    Candidate,
    /// The requests of the maintenance are used up. No other candidate is asked.
    Requests,
    /// The time for the maintenance is over. No other candidate is asked.
    Time,
}

/// State that all requests of one summary share.
struct Writer<'a> {
    job: &'a SummaryJob,
    pool: &'a dyn Pool,
    tell: &'a (dyn Fn(Step) + Send + Sync),
    until: Option<Instant>,
    rejected: Mutex<Vec<Rejected>>,
    /// Whether a request after the session's own one brought no summary.
    live_failed: AtomicBool,
    /// The parts that passed the gate.
    parts: Mutex<Parts>,
    /// Two sentences for a person that came beside the summary.
    short: Mutex<Option<String>>,
    /// The history of the provider's own compaction.
    native: Mutex<Option<Native>>,
    too_long: AtomicUsize,
    /// Requests that may still be sent.
    quota: Arc<Quota>,
    /// Tokens that may still be taken, if they are limited.
    allowance: Option<Arc<Allowance>>,
    /// Most planned chunks that one candidate was asked for so far. The quota has room for them.
    granted: AtomicUsize,
    /// Planned chunks that the candidate in hand was asked for.
    begun: AtomicUsize,
    done: AtomicUsize,
}

impl Writer<'_> {
    fn rejected(&self) -> MutexGuard<'_, Vec<Rejected>> {
        self.rejected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn parts(&self) -> MutexGuard<'_, Parts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reject(&self, rejected: Rejected) {
        let Rejected { method, model, why, .. } = &rejected;
        tracing::info!(?method, model = model.as_ref().map(ToString::to_string), why, "no summary by this candidate");
        self.rejected().push(rejected);
    }

    /// Records a candidate that wrote no summary.
    fn reject_candidate(&self, candidate: &Candidate, why: impl Into<String>) {
        self.reject(Rejected::of(candidate.named(), why.into()));
    }

    /// Records a candidate that cannot be asked.
    fn cannot_ask(&self, Unfit { model: name, why }: &Unfit) {
        match ModelRef::parse(name) {
            Some(model) => self.reject_failed(&Failed::unfit(model, why)),
            None => self.reject(Rejected::model(None, why.clone())),
        }
    }

    /// Records a candidate whose request failed. Both parts of a summary may meet the same failure.
    fn reject_failed(&self, failed: &Failed) {
        let rejected = Rejected::of(failed.model.as_ref(), failed.to_string());
        self.reject_once(Rejected { error: Some(failed.data()), ..rejected });
    }

    fn reject_once(&self, rejected: Rejected) {
        if !self.rejected().contains(&rejected) {
            self.reject(rejected);
        }
    }

    /// Whether the tokens that are left are enough for the summary of a candidate. One that they are not enough for is
    /// recorded.
    fn affords(&self, candidate: &Result<Candidate, Unfit>) -> bool {
        let (Some(allowance), Ok(candidate)) = (&self.allowance, candidate) else { return true };
        let SummaryJob { material, brief, reserve, scale, .. } = self.job;
        let tokens = planned(material, brief, candidate, *reserve, *scale).tokens;
        let why = allowance.has(tokens).err();
        let refused = why.is_some();
        why.into_iter().for_each(|why| self.reject_candidate(candidate, why));
        !refused
    }

    /// Sends a request for a part, of `estimate` estimated tokens. Its reports reach the session without secrets.
    async fn send(
        &self,
        summarizer: &Summarizer<'_>,
        part: Part,
        text: Clean,
        estimate: u64,
        retry: Policy,
    ) -> Result<Answered, Failed> {
        let SummaryJob { origin, brief, settings, access, .. } = self.job;
        let purpose = brief.purpose(part);
        let request = Request {
            purpose,
            origin: origin.clone(),
            candidate: summarizer.candidate.clone(),
            content: Content::asking(brief.system(), text),
            tool_choice: ToolChoice::default(),
            max_tokens: summarizer.answer(part),
            reasoning: Reasoning::Off,
            cache: Cache::default(),
            retry,
            limits: Limits {
                stall: Duration::from_secs(settings.settings.compaction.stall_seconds),
                client: Some(Duration::from_secs(settings.settings.compaction.deadline_seconds)),
                until: self.until,
                input: summarizer.input(estimate),
                quota: Some(self.quota.clone()),
                tokens: self.allowance.clone().map(|allowance| (allowance, summarizer.sent(estimate, part))),
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

    /// Writes the parts that are missing with one candidate. A part that it writes stays, whatever becomes of the other.
    async fn write(&self, candidate: &Candidate) -> Result<(Written, Made), NoSummary> {
        let SummaryJob { material, brief, scale, .. } = self.job;
        let summarizer = Summarizer::new(candidate, self.job.reserve, *scale);
        let shares = material.shares();
        let planned = planned(material, brief, candidate, self.job.reserve, *scale).requests;
        self.begun.store(0, Ordering::Relaxed);
        self.done.store(0, Ordering::Relaxed);
        if self.parts().is_empty() {
            *self.short.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        (self.tell)(Step::Progress { done: 0, total: planned, model: Some(candidate.model.clone()) });
        let write = async |part: Part| {
            if self.parts().has(part) {
                return Ok(());
            }
            let done = self.write_part(&summarizer, part, shares, planned).await?;
            done.into_iter().for_each(|done| self.parts().keep(part, done));
            Ok(())
        };
        let (history, prefix) = tokio::join!(write(Part::History), write(Part::TurnPrefix));
        if let Some(no) = history.err().max(prefix.err()) {
            return Err(no);
        }
        material.complete().await;
        let whole = self.parts().whole(material, &PartOrigin::of(candidate));
        let Some((text, made)) = whole else { return Err(NoSummary::Candidate) };
        let tokens = scale.text(&text);
        if tokens >= material.replaces {
            let why = Rejection::LargerThanSource { tokens, source: material.replaces };
            self.reject_candidate(candidate, why.to_string());
            *self.parts() = Parts::default();
            return Err(NoSummary::Candidate);
        }
        let short = if brief.has_short() { self.short_summary(&summarizer, &text).await } else { None };
        (self.tell)(Step::Progress { done: planned, total: planned, model: Some(candidate.model.clone()) });
        let made = Made { form: candidate.named().map(|_| SummaryForm::Transcript), ..made };
        Ok((Written::Whole { text, short }, made))
    }

    /// Writes one part, folded over its chunks. None where the part is empty.
    async fn write_part(
        &self,
        summarizer: &Summarizer<'_>,
        part: Part,
        shares: Shares,
        planned: usize,
    ) -> Result<Option<Done>, NoSummary> {
        let SummaryJob { material, brief, scale, .. } = self.job;
        let raw = |text: &str| scale.estimate(text);
        let (pieces, mut previous) = material.part(part);
        let mut pieces = Cow::Borrowed(pieces);
        let share = if part == Part::History { shares.history } else { shares.prefix };
        if pieces.is_empty() {
            let Some(before) = previous else { return Ok(None) };
            if let Some(kept) = self.kept(part, before, share) {
                return Ok(Some(kept));
            }
            pieces = Cow::Owned(pieces.behind(before, 0, &raw));
            previous = None;
        }
        let mut written: Option<Accepted> = None;
        let (mut at, mut number) = (0, 1);
        let mut spread_for = u64::MAX;
        while at < pieces.len() {
            let window = summarizer.window();
            let carried = written.as_ref().map(Accepted::text).or(previous);
            let rooms = (summarizer.most(brief, part, share), summarizer.room(brief, part, Some("")));
            let (Some(most), Some(empty)) = rooms else { return Err(self.no_room(summarizer)) };
            let room = summarizer.room(brief, part, carried).filter(|room| carried.is_none() || *room >= empty / 3);
            let room = match (room, carried) {
                (Some(room), _) => room,
                // A text that was written for a larger window is read again in chunks, once for each window.
                (None, Some(carried)) if window < spread_for => {
                    spread_for = window;
                    pieces = Cow::Owned(pieces.behind(carried, at, &raw));
                    (previous, written, at, number) = (None, None, 0, 1);
                    continue;
                }
                (None, _) => return Err(self.no_room(summarizer)),
            };
            // A chunk for a window that an overflow made smaller is not planned.
            if window == summarizer.candidate.window {
                self.grant_chunk();
            }
            let chunk = self.chunk(&pieces, at, room).await?;
            if chunk.tokens == 0 || summarizer.conversation(&chunk.text).is_empty() {
                at = chunk.until;
                continue;
            }
            let ask = Ask { part, conversation: &chunk.text, previous: carried, most, refused: None };
            (self.tell)(Step::Chunk { purpose: brief.purpose(part), number });
            // After an overflow the window is smaller, and so is the next chunk.
            if let Some(accepted) = self.accepted(summarizer, ask, chunk.tokens).await? {
                (at, number) = (chunk.until, number + 1);
                written = Some(accepted);
                let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
                let model = Some(summarizer.candidate.model.clone());
                (self.tell)(Step::Progress { done, total: planned.max(done + 1), model });
            }
        }
        let by = PartOrigin::of(summarizer.candidate);
        let kept = || previous.and_then(|before| self.kept(part, before, share));
        Ok(written.map(|text| Done { text, by: Some(by) }).or_else(kept))
    }

    /// The previous summary, if it fits: it stays where the conversation says nothing new.
    fn kept(&self, part: Part, before: &str, share: u64) -> Option<Done> {
        let scale = self.job.scale;
        let text = Accepted::kept(before, share, &|text| scale.text(text))?;
        self.show(part, text.text());
        Some(Done { text, by: None })
    }

    /// Reports a text that came whole as a part.
    fn show(&self, part: Part, text: &str) {
        let purpose = self.job.brief.purpose(part);
        (self.tell)(Step::Chunk { purpose, number: 1 });
        let report = |update: Update| (self.tell)(Step::Request(purpose, update));
        report(Update::Begins);
        report(Update::Delta(Delta::Text(text.to_owned())));
    }

    /// The messages from `at` on that fit into `room` tokens. Their reading does not hold other tasks up.
    async fn chunk(&self, pieces: &Pieces, at: usize, room: u64) -> Result<Chunk, NoSummary> {
        if pieces.is_read() {
            return Ok(pieces.chunk(at, room));
        }
        let pieces = pieces.clone();
        // A pool that shuts down ends the daemon.
        in_pool(self.pool, move || pieces.chunk(at, room)).await.ok_or(NoSummary::Requests)
    }

    /// Grants a request for a planned chunk. Candidates share the grants: a candidate has no more of them than it has chunks.
    fn grant_chunk(&self) {
        let begun = self.begun.fetch_add(1, Ordering::Relaxed) + 1;
        let granted = self.granted.fetch_max(begun, Ordering::Relaxed);
        self.quota.add(begun.saturating_sub(granted));
    }

    fn no_room(&self, summarizer: &Summarizer<'_>) -> NoSummary {
        let window = summarizer.window();
        let why =
            format!("its window of {window} tokens leaves no room for a conversation beside the prompt and an answer");
        self.reject_once(Rejected::of(summarizer.candidate.named(), why));
        NoSummary::Candidate
    }

    /// Asks until an answer passes the gate. None where the request was too long and the window is smaller now. `tokens` is
    /// the estimate of the conversation in it.
    async fn accepted(
        &self,
        summarizer: &Summarizer<'_>,
        ask: Ask<'_>,
        tokens: u64,
    ) -> Result<Option<Accepted>, NoSummary> {
        let SummaryJob { material, brief, scale, settings, .. } = self.job;
        let candidate = summarizer.candidate;
        // The other part may shrink it meanwhile.
        let window = summarizer.window();
        // The conversation is nearly all of the request and was measured already.
        let around = brief.text(&Ask { conversation: "", ..ask });
        let around = scale.estimate(&around) + scale.estimate(&brief.system());
        let retry = Policy::of(&settings.settings.retry, LONGEST_WAIT);
        let mut refused: Option<String> = None;
        loop {
            let conversation = summarizer.conversation(ask.conversation);
            let estimate = around
                + match &conversation {
                    Cow::Borrowed(_) => tokens,
                    Cow::Owned(shorter) => scale.estimate(shorter),
                };
            let text = brief.text(&Ask { conversation: &conversation, refused: refused.as_deref(), ..ask });
            let answer = match self.send(summarizer, ask.part, text.clone(), estimate, retry).await {
                Ok(Answered { answer, limit, .. }) => {
                    self.learn(candidate, limit.map(|window| (window, WindowOrigin::Refusal)));
                    answer
                }
                Err(failed) => match failed.next {
                    Next::Stop => return Err(NoSummary::Time),
                    Next::Enough => {
                        self.reject_failed(&failed);
                        return Err(NoSummary::Requests);
                    }
                    Next::Shorten { window: limit }
                        if self.shrinks(summarizer, window, limit.map_or(Clue::None, Clue::Stated), estimate) =>
                    {
                        return Ok(None);
                    }
                    Next::Shorten { .. } | Next::OtherModel => {
                        self.reject_failed(&failed);
                        if is_about_reasoning(&failed.to_string()) && summarizer.becomes_plain() {
                            continue;
                        }
                        return Err(NoSummary::Candidate);
                    }
                },
            };
            let usage = answer.usage;
            let reported = usage.input + usage.cache_read + usage.cache_write;
            // A client may leave out what was read from a cache.
            let at_provider = matches!(summarizer.candidate.way, Way::Provider(_));
            if at_provider && let Some(served) = summarizer.truncated(reported, estimate, &text) {
                let why = format!("it was sent about {estimate} tokens and read {reported}: its server cuts prompts");
                self.reject_candidate(candidate, why);
                return if self.shrinks(summarizer, window, Clue::Served(served), estimate) {
                    Ok(None)
                } else {
                    Err(NoSummary::Candidate)
                };
            }
            let prompt = evidence::own_prompt(reported, summarizer.input(estimate));
            if evidence::is_silent_overflow(prompt, usage.output, answer.stop == Stop::Length, window) {
                self.reject_candidate(candidate, format!("the request filled its window of {window} tokens"));
                return if self.shrinks(summarizer, window, Clue::None, estimate) {
                    Ok(None)
                } else {
                    Err(NoSummary::Candidate)
                };
            }
            let expected = Expected {
                form: brief.form(ask.part, ask.previous.is_some()),
                replaces: material.replaces,
                cap: ask.most,
                script: material.script,
                secrets: settings.settings.redaction.secrets(),
                measure: &|text| scale.text(text),
            };
            match check(&answer, &expected) {
                Ok(accepted) => {
                    self.keep_short(ask.part, answer.beside);
                    return Ok(Some(accepted));
                }
                Err(rejection) => {
                    self.reject_candidate(candidate, rejection.to_string());
                    // The next request does not name the reason, which is about reasoning.
                    if rejection == Rejection::ReasoningExtraction {
                        if summarizer.becomes_plain() {
                            continue;
                        }
                        return Err(NoSummary::Candidate);
                    }
                    let long = rejection.is_about_length();
                    let too_often = long && self.too_long.fetch_add(1, Ordering::Relaxed) + 1 >= MOST_TOO_LONG;
                    if refused.is_some() || too_often {
                        return Err(NoSummary::Candidate);
                    }
                    refused = Some(rejection.to_string());
                }
            }
        }
    }

    /// Makes the window smaller after an overflow of a request that was planned for a window of `before`, and learns from
    /// the clue. False where the result is too small to work in.
    fn shrinks(&self, summarizer: &Summarizer<'_>, before: u64, clue: Clue, estimate: u64) -> bool {
        let settings = &self.job.settings.settings;
        let Some(model) = summarizer.candidate.named() else { return summarizer.shrink(before, clue, estimate) };
        let is_named = models::named_window(settings, Some(model)).is_some();
        let lesson = match clue {
            Clue::Stated(window) => Some((window, WindowOrigin::Refusal)),
            // A window that somebody names is more certain than a guess. So is one of a server elsewhere, whose counts may
            // lack what it cached.
            Clue::Served(window) if !is_named && summarizer.candidate.is_local() => {
                Some((window, WindowOrigin::Saturation))
            }
            Clue::Served(_) | Clue::None => None,
        };
        self.learn(summarizer.candidate, lesson);
        summarizer.shrink(before, clue, estimate)
    }

    /// Learns the window of a candidate.
    fn learn(&self, candidate: &Candidate, lesson: Option<(u64, WindowOrigin)>) {
        let settings = &self.job.settings.settings;
        if let (Some(model), Some((window, origin))) =
            (candidate.named(), lesson.filter(|_| settings.tokens.learn_window))
        {
            self.job.access.learn(settings, model, window, origin, &self.job.origin.session);
        }
    }

    /// Keeps two sentences for a person that came beside a part. Those about whole turns count for more.
    fn keep_short(&self, part: Part, beside: Beside) {
        let mut kept = self.short.lock().unwrap_or_else(PoisonError::into_inner);
        if let Beside::Short(short) = beside
            && (part == Part::History || kept.is_none())
        {
            *kept = Some(short);
        }
    }

    /// Two sentences for a person: those that came beside the summary, else the answer to a request. None where no text
    /// passes the gate.
    async fn short_summary(&self, summarizer: &Summarizer<'_>, summary: &str) -> Option<Clean> {
        let SummaryJob { brief, scale, settings, .. } = self.job;
        let came = self.short.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(short) = came.and_then(|short| {
            let answer = Answer { parts: vec![provider::Part::text(short)], ..Answer::default() };
            self.accepted_short(&answer, summary)
        }) {
            return Some(short);
        }
        let ask =
            Ask { part: Part::Short, conversation: summary_as_data(summary), previous: None, most: 512, refused: None };
        // The summary is written. Its end does not wait long for a line about it.
        let longest = Duration::from_secs(settings.settings.compaction.stall_seconds).min(LONGEST_FOR_SHORT);
        let text = brief.text(&ask);
        let estimate = scale.estimate(&text) + scale.estimate(&brief.system());
        let asked = self.send(summarizer, Part::Short, text, estimate, Policy::NEVER);
        let clock = &*self.job.access.routes.clock;
        let was_ahead = !self.job.rank.is_foreground();
        let asked = within(clock, after(clock.now(), longest), asked);
        let Answered { answer, .. } = tokio::select! {
            biased;
            asked = asked => asked?.ok()?,
            // A compaction waits now for the summary, which was made ahead.
            () = self.job.rank.raised(), if was_ahead => return None,
        };
        self.accepted_short(&answer, summary)
    }

    /// The two sentences of an answer on one line. None where they do not pass the gate.
    fn accepted_short(&self, answer: &Answer, summary: &str) -> Option<Clean> {
        /// Longest text, in characters. A longer one is no line in a list.
        const LONGEST: usize = 600;
        let SummaryJob { brief, scale, settings, .. } = self.job;
        let expected = Expected {
            form: brief.form(Part::Short, false),
            replaces: scale.text(summary).max(2),
            cap: 512,
            script: self.job.material.script,
            secrets: settings.settings.redaction.secrets(),
            measure: &|text| scale.text(text),
        };
        let accepted = check(answer, &expected).ok()?;
        let text = accepted.on_one_line();
        (text.chars().count() <= LONGEST).then_some(text)
    }
}

/// The summary without its lists of files, as the conversation of a request. It was cleaned when it was made.
fn summary_as_data(summary: &str) -> &str {
    summary.split("\n\n<read-files>").next().unwrap_or(summary).split("\n\n<modified-files>").next().unwrap_or(summary)
}
