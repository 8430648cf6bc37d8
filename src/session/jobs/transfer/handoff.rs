//! The document of a handoff. A model that continues the conversation writes it; without one it is extracted.

use super::Making;
use crate::{
    ask::{
        access::ModelAccess,
        allowance::Allowance,
        clock::after,
        content::Content,
        failed::{Failed, Next},
        pool::Pool,
        purpose::Purpose,
        rank::Rank,
        request::{Answered, Limits, Quota, Request, Update},
        retry::Policy,
    },
    compaction::gauge::Fullness,
    conversation::{evidence, message::outline::Role, path::Path, spending::Trigger, tokens::Scale},
    ids::ModelRef,
    log::sealed::Blocking,
    models::{
        self, SaidBy, Window,
        candidates::{self, Candidate, Situation, Unfit, Way},
        learned::{Learned, WindowOrigin},
    },
    prompts::{Prompt, escape_tags},
    protocol::{
        errors::Failure,
        types::{Usage, UsageSource},
    },
    provider::{Api, Cache, Effort, Reasoning, ToolChoice, keys},
    redact::Clean,
    session::{
        jobs::{
            blocking::blocking,
            no_model,
            progress::{Progress, Tell},
        },
        state::{View, request::LiveRequest},
    },
    settings::Settings,
    summary::{
        cleaner::Cleaner,
        extractive::{self, Wishes},
        model::{
            check::{Expected, Form, check},
            language::{self, Language, Script},
            writer::{LONGEST_WAIT, Redacted, Step, live},
        },
        span::Span,
    },
    text::clip_middle,
};
use serde::{Deserialize, Serialize};
use std::{
    collections::HashSet,
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

/// The document of a handoff that is to be made.
pub struct HandoffOrder {
    /// The view on the path.
    pub view: View,
    /// Whether the provider of the session's model has the last request in its cache.
    pub is_warm: bool,
    /// The conversation.
    pub path: Path,
    /// The goal of the new session.
    pub goal: Option<Clean>,
    /// The topics that a person wants to be kept above all.
    pub instructions: Option<Clean>,
    /// The model that writes it, and no other. None: the session's, then the others that are configured.
    pub only: Option<ModelRef>,
    /// The maintenance that it is for; none for a request of a client.
    pub maintenance: Option<Maintenance>,
    /// The size of the context.
    pub fullness: Fullness,
    /// Largest document, in tokens: the room of the new session.
    pub room: u64,
}

/// The limits of a document at one moment.
struct Limited {
    /// The size of the context.
    fullness: Fullness,
    /// Largest document, in tokens.
    room: u64,
}

impl HandoffOrder {
    /// The windows that are known now.
    fn learned(&self, access: &ModelAccess) -> Learned {
        let mut learned = self.view.learned.clone();
        learned.update(access.windows.learned());
        learned
    }

    /// The limits with the window that is known now for the session's model.
    fn now(&self, access: &ModelAccess) -> Limited {
        let model = self.view.model(&self.path);
        let taught = model.as_ref().map(|model| self.learned(access).taught(self.view.settings(), model));
        let window = models::window(self.view.settings(), taught.unwrap_or_default(), model.as_ref());
        match window {
            Window { tokens: window, source: SaidBy::Learned } if window < self.fullness.budget.window => {
                let fullness = self.fullness.clone().bounded(window);
                let less = self.fullness.budget.threshold.saturating_sub(fullness.budget.threshold);
                Limited { fullness, room: self.room.saturating_sub(less) }
            }
            _ => Limited { fullness: self.fullness.clone(), room: self.room },
        }
    }
}

/// The limits of a document that maintenance asks for. It is not extracted: the maintenance summarizes in place then.
pub struct Maintenance {
    /// The reason for which models are asked.
    pub trigger: Trigger,
    /// The tokens that the models may take, if they are limited.
    pub tokens: Option<u64>,
    /// The time for the models.
    pub deadline: Duration,
}

/// The document of a handoff.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HandoffText {
    /// The document.
    pub document: Clean,
    /// Its origin.
    pub origin: DocumentOrigin,
}

/// The origin of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DocumentOrigin {
    /// A model wrote it.
    Model(ModelRef),
    /// It was extracted. The last reason for which no model wrote it; none where no model can be asked.
    Extracted(Option<String>),
    /// The client supplied it.
    Client,
}

/// The parts of a job that its work needs.
pub(super) struct Around<'a> {
    /// The values of every transfer.
    pub making: &'a Making<'a>,
    /// Makes the proof that a thread of the pool may wait for the disk.
    pub may_block: fn() -> Blocking,
    /// Runs work that blocks.
    pub pool: &'a dyn Pool,
    /// Takes the steps.
    pub tell: Tell<'a>,
}

/// Most requests for one document: with retries, refused answers and further candidates.
const MOST_REQUESTS: usize = 12;

/// The size of the user's newest messages that show the language, in bytes.
const LANGUAGE_SAMPLE: usize = 1 << 20;

/// Least room for a document by a model, in tokens. With less it is extracted.
const LEAST_DOCUMENT: u64 = 400;

/// Makes the document of a handoff.
///
/// # Errors
/// When the work is cancelled, or the one model that may write it does not.
pub(super) async fn document(order: HandoffOrder, around: Around<'_>) -> Result<HandoffText, Failure> {
    let order = Arc::new(order);
    let (asked, settings, access) = (order.clone(), around.making.settings.clone(), around.making.access.clone());
    let prepared = blocking(around.pool, move || Ok(Prepared::of(&asked, &settings.settings, &access))).await?;
    let Prepared { candidates, language, script } = prepared;
    let writing = Writing {
        order: &order,
        around: &around,
        language,
        script,
        until: order.maintenance.as_ref().map(|it| after(around.making.access.routes.clock.now(), it.deadline)),
        allowance: order.maintenance.as_ref().and_then(|it| it.tokens).map(|tokens| Arc::new(Allowance::new(tokens))),
        quota: Arc::new(Quota::new(MOST_REQUESTS, format!("{MOST_REQUESTS} were sent, and no document came"))),
    };
    let written = around.making.stop.unless_requested(writing.by_models(candidates)).await.ok_or(Failure::Cancelled)?;
    let last = match written {
        Ok((document, model)) => return Ok(HandoffText { document, origin: DocumentOrigin::Model(model) }),
        Err(last) => last,
    };
    if order.only.is_some() || order.maintenance.is_some() {
        return Err(last.map_or_else(no_model, |last| last.failure()));
    }
    let why = last.map(|last| last.to_string());
    let (settings, stop) = (around.making.settings.clone(), around.making.stop.clone());
    let limited = order.now(around.making.access);
    let extracted = move || Ok(extracted(&order, &limited, &settings.settings, &|| stop.requested()));
    let extracted = around.making.stop.unless_requested(blocking(around.pool, extracted)).await;
    let document = extracted.unwrap_or(Err(Failure::Cancelled))?;
    Ok(HandoffText { document, origin: DocumentOrigin::Extracted(why) })
}

/// The facts that all requests for one document share.
struct Prepared {
    candidates: Vec<Result<Candidate, Unfit>>,
    language: Option<Language>,
    script: Option<Script>,
}

impl Prepared {
    fn of(order: &HandoffOrder, settings: &Settings, access: &ModelAccess) -> Self {
        let session = order.view.model(&order.path);
        let situation = Situation {
            settings,
            session: session.as_ref(),
            former: None,
            client_runs_models: access.client_runs_models(),
            is_set: &keys::is_set,
            learned: &order.learned(access),
        };
        let candidates = candidates::continuing(&situation, order.only.as_ref());
        let mut left = LANGUAGE_SAMPLE;
        let newest = order.path.iter().rev().filter(|entry| entry.is_from(Role::User)).take_while(|entry| {
            let before = left;
            left = left.saturating_sub(entry.line().len());
            before > 0
        });
        let said: Vec<String> = newest.filter_map(|entry| Some(entry.message_once()?.text())).collect();
        let said: Vec<&str> = said.iter().map(String::as_str).collect();
        Self { candidates, language: language::of(&said), script: language::script(&said) }
    }
}

/// The reason for which a candidate wrote no document.
enum NoDocument {
    /// Its request failed.
    Failed(Failed),
    /// Its answer was rejected, or it was not asked. The model as it is named, and the reason.
    Rejected(String, String),
}

impl NoDocument {
    fn failure(&self) -> Failure {
        match self {
            Self::Failed(failed) => Failure::from(failed),
            Self::Rejected(model, _) => {
                let (provider, model) = ModelRef::parse(model).map(|it| (it.provider, it.id)).unzip();
                Failure::Provider { provider, model, status: None, retryable: true, what: self.to_string() }
            }
        }
    }

    /// Whether no other candidate is asked.
    fn ends_all(&self) -> bool {
        matches!(self, Self::Failed(Failed { next: Next::Stop | Next::Enough, .. }))
    }
}

impl fmt::Display for NoDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(failed) => failed.fmt(f),
            Self::Rejected(model, why) => write!(f, "{model}: {why}"),
        }
    }
}

/// The next request of the session to a candidate.
#[derive(Clone)]
struct Live {
    content: Content,
    reasoning: Reasoning,
    cache: Cache,
    /// The usage of the context in it.
    usage: Usage,
    /// Least input that a provider counts for it, in estimated tokens without any factor.
    solid: u64,
}

/// The work of models on one document.
struct Writing<'a> {
    order: &'a Arc<HandoffOrder>,
    around: &'a Around<'a>,
    language: Option<Language>,
    script: Option<Script>,
    /// The end of the time for all requests.
    until: Option<Instant>,
    /// The tokens that all requests may take together.
    allowance: Option<Arc<Allowance>>,
    quota: Arc<Quota>,
}

impl Writing<'_> {
    /// Asks the candidates in their order. Without a document, the last reason.
    async fn by_models(
        &self,
        candidates: Vec<Result<Candidate, Unfit>>,
    ) -> Result<(Clean, ModelRef), Option<NoDocument>> {
        if candidates.is_empty() {
            return Err(None);
        }
        let Making { access, settings, .. } = self.around.making;
        let _slot = access.summaries.take(settings.settings.compaction.max_concurrent, &Rank::foreground()).await;
        let mut last = None;
        for candidate in candidates {
            let written = match candidate {
                Ok(candidate) => self.by(candidate).await,
                Err(Unfit { model, why }) => Err(match ModelRef::parse(&model) {
                    Some(model) => NoDocument::Failed(Failed::unfit(model, &why)),
                    None => NoDocument::Rejected(model, why),
                }),
            };
            match written {
                Ok(written) => return Ok(written),
                Err(why) => {
                    tracing::info!(%why, "no document by this candidate");
                    let ends = why.ends_all();
                    last = Some(why);
                    if ends {
                        break;
                    }
                }
            }
        }
        Err(last)
    }

    /// Asks one candidate until an answer passes the gate.
    async fn by(&self, candidate: Candidate) -> Result<(Clean, ModelRef), NoDocument> {
        let (Making { settings, access, .. }, tell) = (self.around.making, self.around.tell);
        let settings = &settings.settings;
        let model = candidate.model.clone();
        let rejected = |why: String| NoDocument::Rejected(model.to_string(), why);
        let no_room = || {
            let window = candidate.window;
            rejected(format!("the conversation leaves no room for a document in its window of {window} tokens"))
        };
        // Known before the request is there, which holds the whole conversation again.
        let tokens = self.context_tokens().await.map_err(|failure| rejected(failure.to_string()))?;
        if tokens >= candidate.window {
            return Err(no_room());
        }
        let mut live = self.live(&candidate).await.map_err(|failure| rejected(failure.to_string()))?;
        let (scale, prompt) = (self.order.fullness.scale, self.order.view.prompts().get(Prompt::HandoffDocument));
        let room = self.room();
        let input = live.usage.context_tokens + scale.text(&self.prompt(u64::MAX, None));
        let (reasoning, most) = self.most(&candidate, &live, input, room);
        live.reasoning = reasoning;
        if most < LEAST_DOCUMENT {
            return Err(no_room());
        }
        let is_own = self.order.view.model(&self.order.path).as_ref() == Some(&model);
        let first = if is_own && self.order.is_warm { live::tool_choice(&candidate) } else { ToolChoice::None };
        let (mut choice, mut refused): (ToolChoice, Option<String>) = (first, None);
        loop {
            let request = self.request(&candidate, &live, self.prompt(most, refused.as_deref()), choice, most, input);
            let redacted = Redacted::new(settings.redaction.enabled);
            let report = |update: Update| {
                if let Some(update) = redacted.update(update) {
                    tell(Progress::Summary(Step::Request(Purpose::Handoff, update)));
                }
            };
            let answer = match access.routes.ask(&request, &report).await {
                Ok(Answered { answer, limit, .. }) => {
                    if let Some(window) = limit.filter(|_| settings.tokens.learn_window) {
                        access.learn(settings, &model, window, WindowOrigin::Refusal, &request.origin.session);
                    }
                    answer
                }
                // Another request, once: some servers know no choice of tools, or only `auto`.
                Err(failed) if choice == ToolChoice::None && is_about_choice(&failed) => {
                    choice = ToolChoice::Auto;
                    continue;
                }
                Err(failed) => {
                    if let Next::Shorten { window: Some(window) } = failed.next
                        && settings.tokens.learn_window
                    {
                        access.learn(settings, &model, window, WindowOrigin::Refusal, &request.origin.session);
                    }
                    return Err(NoDocument::Failed(failed));
                }
            };
            let reported = answer.usage.input + answer.usage.cache_read + answer.usage.cache_write;
            let at_provider = matches!(candidate.way, Way::Provider(_));
            if at_provider && evidence::served(reported, live.solid).is_some() {
                let sent = live.solid;
                let why = format!("it was sent about {sent} tokens and read {reported}: its server cuts prompts");
                return Err(rejected(why));
            }
            let expected = Expected {
                form: Form::Record { prompt, prompts: self.order.view.prompts() },
                // It stands beside the conversation, not in the place of it.
                replaces: u64::MAX,
                cap: room,
                script: self.script,
                secrets: settings.redaction.secrets(),
                measure: &|text| scale.text(text),
            };
            match check(&answer, &expected) {
                Ok(accepted) => return Ok((accepted.into_clean(), model.clone())),
                Err(why) if refused.is_some() => return Err(rejected(why.to_string())),
                Err(why) => refused = Some(why.to_string()),
            }
        }
    }

    /// The size of the context as it stands in the usage of the next request, in tokens.
    async fn context_tokens(&self) -> Result<u64, Failure> {
        let order = self.order.clone();
        blocking(self.around.pool, move || Ok(order.view.measure(&order.path).context_tokens)).await
    }

    /// The next request of the session to this candidate. Its own model gets it byte for byte, so that the provider's cache
    /// holds; another model gets no secrets.
    async fn live(&self, candidate: &Candidate) -> Result<Live, Failure> {
        let api = match &candidate.way {
            Way::Provider(endpoint) => endpoint.api,
            Way::Client | Way::Summarizer(_) | Way::Compaction(_) | Way::OnDemand(_) => Api::Client,
        };
        let (order, session) = (self.order.clone(), self.around.making.origin.session.clone());
        let model = candidate.model.clone();
        let is_own = self.order.view.model(&self.order.path).as_ref() == Some(&model);
        let secrets = self.around.making.settings.settings.redaction.secrets();
        let may_block = self.around.may_block;
        blocking(self.around.pool, move || {
            let live = order.view.live_request(&order.path, &session, &model, api, &may_block())?;
            let LiveRequest { request, usage, solid, .. } = live;
            let (reasoning, cache) = (request.reasoning, request.cache.clone());
            let content = if is_own { Content::live(request) } else { Content::of(request, secrets) };
            Ok(Live { content, reasoning, cache, usage, solid })
        })
        .await
    }

    /// The largest document now: a refusal may have told a smaller window of the session's model meanwhile.
    fn room(&self) -> u64 {
        self.order.now(self.around.making.access).room
    }

    /// The thinking and the largest answer, in tokens. The size of the request is partly estimated, so some of the window
    /// stays free. A limit counts thinking and answer together, so the effort is lower where it leaves too little.
    fn most(&self, candidate: &Candidate, live: &Live, input: u64, room: u64) -> (Reasoning, u64) {
        let window = candidate.window;
        let estimated = match live.usage.source {
            UsageSource::Provider => 0,
            UsageSource::Estimate => input / 20,
        };
        let left = window.saturating_sub(input + (window / 100).max(estimated));
        let wanted = (self.order.fullness.budget.reserve * 4 / 5).min(room);
        sharing(live.reasoning, wanted, left.min(candidate.output.unwrap_or(u64::MAX)))
    }

    /// The message after the conversation.
    fn prompt(&self, most: u64, refused: Option<&str>) -> Clean {
        let mut text = self.order.view.prompts().get(Prompt::HandoffDocument).to_owned();
        let mut add = |line: String| {
            text.push_str("\n\n");
            text.push_str(&line);
        };
        if let Some(goal) = &self.order.goal {
            add(format!("Goal of the new conversation: {}", escape_tags(goal)));
        }
        if let Some(instructions) = &self.order.instructions {
            add(format!("Additional focus: {}", escape_tags(instructions)));
        }
        if let Some(Language { name, .. }) = self.language {
            add(format!("The user writes in {name}: write the text in it too, and only the headings in English."));
        }
        add(format!("Use at most {} words.", (most / 5 * 2).clamp(60, 2_000)));
        if let Some(why) = refused {
            add(format!("An earlier answer to this could not be used: {why}. Answer anew, and avoid that."));
        }
        Clean::assembled(text)
    }

    fn request(
        &self,
        candidate: &Candidate,
        live: &Live,
        prompt: Clean,
        tool_choice: ToolChoice,
        most: u64,
        input: u64,
    ) -> Request {
        let Making { origin, settings, .. } = self.around.making;
        let settings = &settings.settings;
        let Live { content, reasoning, cache, .. } = live.clone();
        // The limit of answer and thinking together.
        let room = candidate.window.saturating_sub(input).max(most);
        Request {
            purpose: Purpose::Handoff,
            origin: (*origin).clone(),
            candidate: Candidate {
                output: Some(candidate.output.unwrap_or(u64::MAX).min(room)),
                thinks: candidate.thinks || matches!(reasoning, Reasoning::Effort(_)),
                ..candidate.clone()
            },
            content: content.then(prompt),
            tool_choice,
            max_tokens: most,
            reasoning,
            cache,
            retry: Policy::of(&settings.retry, LONGEST_WAIT),
            limits: Limits {
                stall: Duration::from_secs(settings.compaction.stall_seconds),
                client: Some(Duration::from_secs(settings.compaction.deadline_seconds)),
                until: self.until,
                input,
                quota: Some(self.quota.clone()),
                tokens: self.allowance.clone().map(|allowance| (allowance, input + most)),
            },
        }
    }
}

/// The thinking that leaves room for an answer of `wanted` tokens, or for half of the limit of both together, and the answer
/// beside it.
fn sharing(asked: Reasoning, wanted: u64, together: u64) -> (Reasoning, u64) {
    let efforts = [Effort::Highest, Effort::High, Effort::Medium, Effort::Low, Effort::Minimal];
    let least = wanted.min(together / 2);
    match asked {
        Reasoning::Effort(asked) => {
            let fits = |effort: &Effort| *effort <= asked && effort.room() + least <= together;
            match efforts.into_iter().find(fits) {
                Some(effort) => (Reasoning::Effort(effort), wanted.min(together - effort.room())),
                None => (Reasoning::Off, wanted.min(together)),
            }
        }
        Reasoning::Off | Reasoning::Unsaid => (asked, wanted.min(together)),
    }
}

/// Whether a provider refused a request for its choice of tools.
fn is_about_choice(failed: &Failed) -> bool {
    let said = failed.to_string().to_lowercase();
    let names = ["tool_choice", "toolchoice", "tool choice", "toolconfig", "function_calling_config"];
    let names_it = names.iter().any(|name| said.contains(name));
    failed.status == Some(400) && (names_it || said.contains("auto") && said.contains("support"))
}

/// The document without a model: the goal, then the facts of the conversation.
fn extracted(order: &HandoffOrder, limited: &Limited, settings: &Settings, stop: &dyn Fn() -> bool) -> Clean {
    let HandoffOrder { path, goal, instructions, .. } = order;
    let Limited { fullness, room } = limited;
    let cleaner = Cleaner::new(settings);
    let pinned: HashSet<_> = path.pins().iter().map(|pin| pin.entry.clone()).collect();
    let previous = path.compaction().map(|place| &path[place]);
    let topics: Vec<String> = goal.iter().map(Clean::to_string).collect();
    let scale = fullness.scale;
    let most = (fullness.budget.reserve * 4 / 5).min(*room).max(LEAST_DOCUMENT / 2);
    let goal = goal.as_deref().map(|goal| within(escape_tags(goal).into_owned(), most / 2, scale));
    let goal = goal.map(|goal| format!("## Goal\n{goal}\n\n")).unwrap_or_default();
    let summary = extractive::summarize(&extractive::Request {
        span: Span::of(&path[path.first_kept()..]).continuing(previous).without(&pinned),
        wishes: Wishes { instructions: instructions.as_deref(), topics: &topics },
        cap: most.saturating_sub(scale.text(&goal)).max(LEAST_DOCUMENT / 2),
        without: None,
        settings,
        cleaner: &cleaner,
        scale,
        stop,
    });
    Clean::assembled(match summary.text.strip_prefix("## Goal\n") {
        Some(rest) if !goal.is_empty() => format!("{goal}## Earlier Goal\n{rest}"),
        _ => format!("{goal}{}", summary.text),
    })
}

/// A text of at most `cap` tokens.
fn within(text: String, cap: u64, scale: Scale) -> String {
    let tokens = scale.text(&text);
    if tokens <= cap {
        return text;
    }
    let share = cap as f64 / tokens as f64;
    clip_middle(&text, (text.chars().count() as f64 * share * 0.9) as usize, "\n[…]\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinking_leaves_room_for_the_document() {
        let (high, low) = (Reasoning::Effort(Effort::High), Reasoning::Effort(Effort::Low));
        assert_eq!(sharing(high, 13_000, 32_000), (high, 13_000));
        assert_eq!(sharing(high, 13_000, 8_192), (low, 4_096));
        assert_eq!(sharing(low, 13_000, 1_500), (Reasoning::Off, 1_500));
        assert_eq!(sharing(Reasoning::Unsaid, 13_000, 8_192), (Reasoning::Unsaid, 8_192));
    }
}
