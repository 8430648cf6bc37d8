//! The models in the doctor's report: window and its source, route and key, and with `--ask` the model's answer.

#![expect(clippy::disallowed_methods, reason = "a command of a person")]

use super::{model::key, print};
use crate::{
    ask::{
        Pending,
        client::{Client, Completion, Unanswered},
        content::Content,
        purpose::Purpose,
        request::{Limits, Origin, Request, Update},
        retry::Policy,
        routes::Routes,
    },
    conversation::spending::Trigger,
    models::{
        ModelRef,
        candidates::{Candidate, Situation, Way},
        catalog::{ListedModel, catalog},
        known,
        windows::Windows,
    },
    provider::{Cache, KeySource, Reasoning, ToolChoice, address::without_credentials, keys},
    redact::Clean,
    settings::{RetrySettings, Sourced},
    summary::model::writer::LONGEST_WAIT,
};
use serde::Serialize;
use serde_json::Value;
use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

/// A model that the settings name.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Model {
    #[serde(flatten)]
    pub(super) listed: ListedModel,
    /// Whether it is among those that summaries are asked of first.
    pub(super) summarizes: bool,
    pub(super) asking: Asking,
    /// Answer of the model, if it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) answer: Option<Answered>,
}

/// Whether a model can be asked from here, and how.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Asking {
    pub(super) possible: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) api: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) base_url: Option<String>,
    /// Where its key is, or should be; never the key.
    pub(super) key: String,
    /// Why it cannot be asked, and what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) why: Option<String>,
}

/// The answer of a model.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answered {
    pub(super) ok: bool,
    /// Time until the answer, retries and the waits before them included.
    pub(super) duration_ms: u64,
    /// Number of retries.
    pub(super) retries: u32,
    /// Fault and next step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) why: Option<String>,
}

/// The models of the settings, the default one and those that write summaries, each once. They are asked only if `ask`.
///
/// # Errors
/// When nothing can be asked at all.
pub(super) fn models(windows: &Windows, sourced: &Sourced, ask: bool) -> Result<Vec<Model>, String> {
    let mut models = look(sourced, windows);
    if !ask {
        return Ok(models.into_iter().map(|(model, _)| model).collect());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("nothing can be asked: {error}"))?;
    let routes = Routes::new(Arc::new(NoClient));
    for (model, candidate) in &mut models {
        if let Some(candidate) = candidate {
            model.answer = runtime.block_on(answer(&routes, &sourced.settings.retry, candidate));
        }
    }
    Ok(models.into_iter().map(|(model, _)| model).collect())
}

fn look(sourced: &Sourced, windows: &Windows) -> Vec<(Model, Option<Candidate>)> {
    let learned = windows.learned();
    let settings = &sourced.settings;
    let named: Vec<ModelRef> = settings.compaction.models.iter().filter_map(|it| ModelRef::parse(it)).collect();
    let listed = catalog(sourced, &learned, &named);
    let named: HashSet<ModelRef> = named.into_iter().collect();
    let situation = Situation {
        settings,
        session: None,
        former: None,
        client_runs_models: false,
        is_set: &keys::is_set,
        learned: &learned,
    };
    let looked_at = listed.into_iter().map(|listed| {
        let model = listed.model();
        let (asking, candidate) = match situation.candidate(&model) {
            Ok(candidate) => (asking(&candidate), Some(candidate)),
            Err(unfit) => (not_asking(&listed, unfit.why), None),
        };
        (Model { summarizes: named.contains(&model), listed, asking, answer: None }, candidate)
    });
    looked_at.collect()
}

fn asking(candidate: &Candidate) -> Asking {
    let Way::Provider(endpoint) = &candidate.way else {
        return Asking { possible: false, api: None, base_url: None, key: "the client's".to_owned(), why: None };
    };
    Asking {
        possible: true,
        api: Some(endpoint.api.name()),
        base_url: Some(without_credentials(&endpoint.base_url)),
        key: match &endpoint.key {
            KeySource::None => "none needed".to_owned(),
            KeySource::Variable(name) => format!("set in {name}"),
            KeySource::Command(_) => key(&endpoint.key).replace("key from the ", ""),
        },
        why: None,
    }
}

fn not_asking(listed: &ListedModel, why: String) -> Asking {
    let variables = match &listed.api_key_env {
        Some(name) => vec![name.as_str()],
        None => known::provider(&listed.provider).map_or(Vec::new(), |known| known.key_env.to_vec()),
    };
    let missing = variables.iter().all(|name| !keys::is_set(name)) && !variables.is_empty();
    Asking {
        possible: false,
        api: listed.api.map(known::Api::name),
        base_url: listed.base_url.clone(),
        key: if missing { format!("missing: set {}", variables.join(" or ")) } else { "unknown".to_owned() },
        why: Some(why),
    }
}

/// Longest silence of a server. A server that works says a word within it.
const LONGEST: Duration = Duration::from_secs(60);

/// The largest answer, in tokens.
const LARGEST: u64 = 16;

/// There is no client here. Only models at providers are asked.
struct NoClient;

impl Client for NoClient {
    fn complete(&self, _: Completion) -> Pending<'_, Result<Value, Unanswered>> {
        Box::pin(async { Err(Unanswered::Gone) })
    }
}

/// Asks for a word, with the retries of a compaction. Each retry is reported on stderr. A text of any kind is an answer: a
/// model that thinks may have no room left for the word.
async fn answer(routes: &Routes, retry: &RetrySettings, candidate: &Candidate) -> Option<Answered> {
    let Way::Provider(_) = &candidate.way else { return None };
    let request = Request {
        purpose: Purpose::Turn,
        origin: Origin { session: "doctor".into(), operation: "doctor".into(), trigger: Trigger::Manual },
        candidate: candidate.clone(),
        content: Content::default().then(Clean::assembled("Say ok.")),
        tool_choice: ToolChoice::default(),
        max_tokens: LARGEST,
        reasoning: Reasoning::Off,
        cache: Cache::default(),
        retry: Policy::of(retry, LONGEST_WAIT),
        limits: Limits { stall: LONGEST, client: None, until: None, input: 0, quota: None, tokens: None },
    };
    let retries = AtomicU32::new(0);
    let tell = |update: Update| {
        if let Update::RetryStart { attempt, most, delay, failed } = update {
            retries.store(attempt, Ordering::Relaxed);
            let (why, wait) = (failed.to_string(), delay.as_secs_f64());
            print::note(&format!("{why}; retry {attempt} of {most} in {wait:.1} s"));
        }
    };
    let started = Instant::now();
    let answered = routes.ask(&request, &tell).await;
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let why = answered.err().map(|failed| failed.to_string());
    Some(Answered { ok: why.is_none(), duration_ms, retries: retries.into_inner(), why })
}
