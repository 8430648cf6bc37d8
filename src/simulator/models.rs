//! Models that follow a script, at their providers and by the client, with a record of every request.

use super::{
    hooks::{Called, Hooking},
    script::{End, Said, Script, Step},
    words::texts,
};
use crate::{
    ask::{
        Pending,
        client::{Client, Completion, Executed, Execution, HookCall, Unanswered},
        clock::{Clock as _, after},
        purpose::Purpose,
        routes::{Provider, Routes},
        virtual_clock::VirtualClock,
    },
    conversation::{message::Usage, tokens::Estimator},
    prompts::Prompt,
    provider::{self, Answer, Api, Delta, Encoded, Endpoint, Part, Reach, Stop, Trouble, TroubleKind, Turn},
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// The models of a simulation. Clones are the same models.
#[derive(Clone)]
pub struct Models {
    clock: VirtualClock,
    state: Arc<Mutex<State>>,
}

struct State {
    script: Script,
    /// Number of requests of each model.
    asked: BTreeMap<String, usize>,
    /// Requests that were not taken, by their numbers.
    requests: BTreeMap<u64, Asked>,
    /// Number of the next request.
    next: u64,
    /// Tokens of all requests that a model may have read.
    tokens: u64,
    /// The requests without a purpose among all, and their tokens: in a session with turns, those of turns.
    aimless: (u64, u64),
    hooking: Hooking,
    /// Number of calls of each hook.
    hooked: BTreeMap<&'static str, usize>,
    /// Calls of hooks that were not taken.
    calls: Vec<Called>,
}

/// A request that reached a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Time of the request, since the start of the clock.
    pub at: Duration,
    /// Id of the model.
    pub model: String,
    /// Its way.
    pub by: By,
    /// Purpose. A request at a provider does not say it, so it is read from the embedded prompts.
    pub purpose: Option<Purpose>,
    /// Estimated size of the request, in tokens, by a quarter of the characters.
    pub tokens: u64,
    /// Limit of the answer, in tokens.
    pub max_tokens: Option<u64>,
    /// End of the request.
    pub outcome: Outcome,
}

/// The way of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// At its provider.
    Provider,
    /// By the client.
    Client,
}

/// The end of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// None so far.
    Running,
    /// An answer, which may be an unusable one.
    Answered,
    /// A failure.
    Failed,
    /// The request was dropped.
    Cancelled,
}

impl Models {
    /// Models that follow `script` on this clock.
    #[must_use]
    pub fn new(clock: VirtualClock, script: Script) -> Self {
        let (asked, requests, hooked) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let hooking = Hooking::default();
        let state =
            State { script, asked, requests, next: 0, tokens: 0, aimless: (0, 0), hooking, hooked, calls: Vec::new() };
        Self { clock, state: Arc::new(Mutex::new(state)) }
    }

    /// The models, by a client that answers hooks so.
    #[must_use]
    pub fn hooking(self, hooking: Hooking) -> Self {
        self.state().hooking = hooking;
        self
    }

    /// Takes the calls of hooks, in their order.
    #[must_use]
    pub fn take_calls(&self) -> Vec<Called> {
        std::mem::take(&mut self.state().calls)
    }

    /// Records a call of a hook and looks up its answer.
    fn called(&self, call: &HookCall) -> Option<Called> {
        let mut state = self.state();
        let number = state.hooked.entry(call.name).or_default();
        let earlier = *number;
        *number += 1;
        let mut called = state.hooking.called(call.name, &call.params, earlier)?;
        state.calls.push(called.clone());
        called.tamper();
        Some(called)
    }

    /// The ways to these models.
    #[must_use]
    pub fn routes(&self) -> Routes {
        let (provider, client) = (Box::new(self.clone()), Arc::new(self.clone()));
        Routes { provider, client, clock: Box::new(self.clock.clone()), plain: Default::default() }
    }

    /// The number of requests so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.state().next
    }

    /// The tokens of all requests so far that a model may have read, and its provider may bill.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.state().tokens
    }

    /// The number of requests without a purpose so far, and their tokens. Those of turns are among them.
    #[must_use]
    pub fn aimless(&self) -> (u64, u64) {
        self.state().aimless
    }

    /// Takes the requests that ended, in the order in which they were sent, and leaves those that run.
    #[must_use]
    pub fn take_ended(&self) -> Vec<Asked> {
        let mut state = self.state();
        let (running, ended) =
            std::mem::take(&mut state.requests).into_iter().partition(|(_, it)| it.outcome == Outcome::Running);
        state.requests = running;
        let ended: BTreeMap<u64, Asked> = ended;
        ended.into_values().collect()
    }

    /// The requests that run, in the order in which they were sent.
    #[must_use]
    pub fn running(&self) -> Vec<Asked> {
        self.state().requests.values().filter(|it| it.outcome == Outcome::Running).cloned().collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a request and looks up its answer.
    fn receive(&self, model: &str, by: By, prompt: &str, system: &str, max_tokens: Option<u64>) -> Receipt<'_> {
        let tokens = Estimator::Chars.of_text(prompt) + Estimator::Chars.of_text(system);
        let at = self.clock.passed();
        let mut state = self.state();
        let before = state.asked.entry(model.to_owned()).or_default();
        let earlier = *before;
        *before += 1;
        let step = state.script.step(model, earlier);
        let number = state.next;
        state.next += 1;
        let is_refused = match step.end {
            End::Fails(fault) => fault.is_refusal(),
            // The error of a client says nothing of an answer that had begun.
            End::BreaksOff(_, fault) => by == By::Client && fault.is_refusal(),
            _ => false,
        };
        let purpose = purpose(prompt);
        let billed = if is_refused { 0 } else { tokens };
        state.tokens += billed;
        if purpose.is_none() {
            state.aimless.0 += 1;
            state.aimless.1 += billed;
        }
        let asked = Asked { at, model: model.to_owned(), by, purpose, tokens, max_tokens, outcome: Outcome::Running };
        state.requests.insert(number, asked);
        Receipt { models: self, number, earlier, step, tokens }
    }
}

/// A recorded request. Dropping it before its end is its cancel.
struct Receipt<'a> {
    models: &'a Models,
    number: u64,
    /// Requests of the model before this one.
    earlier: usize,
    step: Step,
    tokens: u64,
}

impl Receipt<'_> {
    fn ends(self, outcome: Outcome) {
        self.set(outcome);
    }

    /// Waits, but not longer than `stall`.
    async fn waits(&self, wait: Duration, stall: Option<Duration>) -> Result<(), Trouble> {
        let clock = &self.models.clock;
        let stalls = stall.filter(|stall| *stall <= wait);
        clock.sleep_until(after(clock.now(), stalls.unwrap_or(wait))).await;
        stalls.map_or(Ok(()), |stall| Err(Trouble::new(TroubleKind::Stalled, format!("nothing for {stall:?}"))))
    }

    /// Breaks the answer off after so many pieces, where the script says so.
    async fn breaks(&self, pieces: usize, stall: Option<Duration>) -> Result<(), Trouble> {
        match self.step.end {
            End::BreaksOff(after, fault) if after <= pieces => Err(fault.trouble(Reach::Sent)),
            End::Silent(after) if after <= pieces => match stall {
                Some(stall) => self.waits(stall, Some(stall)).await,
                None => future::pending().await,
            },
            _ => Ok(()),
        }
    }

    /// Follows the script. `stall` is the longest silence, where the request has one.
    async fn follow(
        &self,
        prompt: &str,
        stall: Option<Duration>,
        told: &mut (dyn FnMut(&Delta) + Send),
    ) -> Result<Answer, Trouble> {
        let Step { first_ms, between_ms, end, .. } = self.step;
        match end {
            End::Deaf => future::pending().await,
            End::Panics => {
                self.set(Outcome::Failed);
                // Unlike `panic!` it prints nothing.
                std::panic::resume_unwind(Box::new("a scripted model panics"));
            }
            _ => self.waits(Duration::from_millis(first_ms), stall).await?,
        }
        if let End::Fails(fault) = end {
            return Err(fault.trouble(Reach::Refused));
        }
        // An answer in a turn has no headings to fill. With those of the summaries in the context it would be as long as they are.
        let is_summary = purpose(prompt).is_some() || prompt.contains("</conversation>");
        let answer = texts::answer(&self.step.text, if is_summary { prompt } else { "" });
        let pieces = pieces(&answer, self.step.pieces);
        for (at, piece) in pieces.iter().enumerate() {
            self.breaks(at, stall).await?;
            if at > 0 {
                self.waits(Duration::from_millis(between_ms), stall).await?;
            }
            told(piece);
        }
        // A text may have fewer pieces than the script says.
        self.breaks(usize::MAX, stall).await?;
        Ok(answer)
    }

    fn set(&self, outcome: Outcome) {
        if let Some(asked) = self.models.state().requests.get_mut(&self.number)
            && asked.outcome == Outcome::Running
        {
            asked.outcome = outcome;
        }
    }

    /// The reported input and output, in tokens. Negative numbers only where the way can carry them.
    fn usage(&self, answer: &Answer) -> (i128, i128) {
        let written = Estimator::Chars.of_text(&answer.text());
        let (input, output) = match self.step.usage {
            Said::True => (self.tokens, written),
            Said::Zero => (0, 0),
            Said::Absurd => (u64::MAX, u64::MAX),
            Said::Negative => return (-i128::from(self.tokens), -i128::from(written)),
            Said::Decreasing => (self.tokens / (self.earlier as u64 + 1), written / (self.earlier as u64 + 1)),
            Said::Truncated(most) => (self.tokens.min(most), written),
            Said::Fixed(input, output) => (input, output),
        };
        (input.into(), output.into())
    }
}

impl Drop for Receipt<'_> {
    fn drop(&mut self) {
        self.set(Outcome::Cancelled);
    }
}

impl Provider for Models {
    fn ask<'a>(
        &'a self,
        _: &'a Endpoint,
        request: &'a provider::Request,
        stall: Duration,
        told: &'a mut (dyn FnMut(&Delta) + Send),
    ) -> Pending<'a, Result<Answer, Trouble>> {
        let prompt = prompt(&request.all_turns());
        let system = request.system.as_deref().unwrap_or_default();
        let receipt = self.receive(&request.model.id, By::Provider, &prompt, system, request.max_tokens);
        Box::pin(async move {
            match receipt.follow(&prompt, Some(stall), told).await {
                Ok(mut answer) => {
                    let (input, output) = receipt.usage(&answer);
                    let number = |number: i128| u64::try_from(number.max(0)).unwrap_or(u64::MAX);
                    answer.usage = Usage { input: number(input), output: number(output), ..Usage::default() };
                    receipt.ends(Outcome::Answered);
                    Ok(answer)
                }
                Err(trouble) => {
                    receipt.ends(Outcome::Failed);
                    Err(trouble)
                }
            }
        })
    }

    fn post<'a>(&'a self, _: &'a Endpoint, _: Encoded, _: u64, _: Duration) -> Pending<'a, Result<String, Trouble>> {
        Box::pin(future::ready(Err(Self::nobody())))
    }

    fn get<'a>(
        &'a self,
        _: &'a Endpoint,
        _: &'static str,
        _: Vec<(&'static str, String)>,
        _: u64,
        _: Duration,
    ) -> Pending<'a, Result<String, Trouble>> {
        Box::pin(future::ready(Err(Self::nobody())))
    }
}

impl Models {
    /// No service but models answers here.
    fn nobody() -> Trouble {
        Trouble::new(TroubleKind::Unreachable, "as scripted")
    }
}

impl Client for Models {
    fn complete(&self, completion: Completion) -> Pending<'_, Result<Value, Unanswered>> {
        let block = |block: &Value| block["text"].as_str().unwrap_or_default().to_owned();
        let blocks = completion.messages.iter().filter_map(|message| message["content"].as_array());
        let prompt = blocks.flatten().map(block).collect::<Vec<_>>().join("\n");
        let (model, system) = (completion.model.clone(), completion.system.unwrap_or_default());
        let receipt = self.receive(&model.id, By::Client, &prompt, &system, Some(completion.max_tokens));
        Box::pin(async move {
            match receipt.follow(&prompt, None, &mut |_| {}).await {
                Ok(answer) => {
                    let (input, output) = receipt.usage(&answer);
                    let mut message = answer.message(Api::Client.name(), &model.provider, &model.id, 0);
                    message["usage"] = json!({ "input": number(input), "output": number(output) });
                    receipt.ends(Outcome::Answered);
                    Ok(message)
                }
                Err(_) => {
                    let text = match receipt.step.end {
                        End::Fails(fault) | End::BreaksOff(_, fault) => fault.text(),
                        _ => "as scripted".to_owned(),
                    };
                    receipt.ends(Outcome::Failed);
                    Err(Unanswered::Error(text))
                }
            }
        })
    }

    fn execute(&self, execution: Execution) -> Pending<'_, Result<Executed, Unanswered>> {
        let wait = Duration::from_millis(50 * (1 + execution.call.as_str().len() as u64 % 40));
        let content = format!("The result of {}.", execution.call).into();
        Box::pin(async move {
            self.clock.sleep_until(after(self.clock.now(), wait)).await;
            Ok(Executed { content, is_error: false })
        })
    }

    fn hook(&self, call: HookCall) -> Pending<'_, Result<Value, Unanswered>> {
        let (now, called) = (self.clock.now(), self.called(&call));
        Box::pin(async move {
            let Some(Called { deadline_ms, after_ms, answer, .. }) = called else { return Err(Unanswered::Gone) };
            let Some(millis) = after_ms else { return future::pending().await };
            self.clock.sleep_until(after(now, Duration::from_millis(millis))).await;
            if deadline_ms.is_some_and(|deadline| millis > deadline) {
                // Where the process slept over both, its deadline still comes first.
                self.clock.sleep_until(after(self.clock.now(), Duration::from_millis(1))).await;
            }
            answer
        })
    }
}

/// A number of a client's message. JSON holds none over 64 bits.
fn number(number: i128) -> Value {
    match (u64::try_from(number), i64::try_from(number)) {
        (Ok(number), _) => number.into(),
        (_, Ok(number)) => number.into(),
        _ => i64::MIN.into(),
    }
}

fn prompt(turns: &[Turn]) -> String {
    let text = |part: &Part| if let Part::Text { text, .. } = part { Some(text.clone()) } else { None };
    let texts = |turn: &Turn| match turn {
        Turn::User(parts) | Turn::Assistant(parts) => parts.iter().filter_map(text).collect::<Vec<_>>(),
        Turn::Result(result) => result.parts.iter().filter_map(text).collect(),
    };
    turns.iter().flat_map(texts).collect::<Vec<_>>().join("\n")
}

fn purpose(prompt: &str) -> Option<Purpose> {
    let instructions = texts::instructions(prompt);
    let is = |prompt: Prompt| instructions.contains(prompt.embedded().trim_end());
    let purposes = [
        (Prompt::CompactionSummary, Purpose::Compaction),
        (Prompt::CompactionUpdateSummary, Purpose::Compaction),
        (Prompt::CompactionTurnPrefix, Purpose::TurnPrefix),
        (Prompt::CompactionShortSummary, Purpose::ShortSummary),
        (Prompt::BranchSummary, Purpose::BranchSummary),
        (Prompt::HandoffDocument, Purpose::Handoff),
        (Prompt::Reference, Purpose::Handoff),
    ];
    purposes.into_iter().find(|(prompt, _)| is(*prompt)).map(|(_, purpose)| purpose)
}

/// An answer in so many pieces of about the same length.
fn pieces(answer: &Answer, pieces: usize) -> Vec<Delta> {
    match answer.parts.first() {
        Some(Part::Thinking { text, .. }) => vec![Delta::Thinking(text.clone())],
        Some(Part::Call { arguments, .. }) => vec![Delta::Call(arguments.clone())],
        _ if answer.stop == Stop::Done || answer.stop == Stop::Length => {
            let text: Vec<char> = answer.text().chars().collect();
            let length = text.len().div_ceil(pieces.max(1)).max(1);
            text.chunks(length).map(|piece| Delta::Text(piece.iter().collect())).collect()
        }
        _ => Vec::new(),
    }
}
