//! `context/fit`: fits the messages of a host that keeps its own history into a window. Nothing is stored.

use super::{Authors, DraftOrder, Focus, PlanMade, PlanOrder, plan};
use crate::{
    ask::{access::ModelAccess, rank::Rank},
    compaction::{
        draft::Draft,
        request::{Cause, Initiator, PlanRequest},
    },
    conversation::{
        context::{self, ContextMessage},
        entry::{self, CarriedMessage, Entry, Header, HeaderKind, Preserved, VERSION},
        message::{Message, NotAMessage, known},
        path::Path,
        tokens,
    },
    ids::{EntryId, ModelRef, SessionId},
    log::history::History,
    models::learned::Learned,
    protocol::{
        errors::Failure,
        types::{AnyJson, FitAnswer, FitParams, MessageFormat},
    },
    provider::{
        Api, Delivery, Request, codec,
        given::{self, Beside},
        turns::{Target, turns},
    },
    session::{
        kind::OperationKind,
        state::{SessionData, State},
        stop::Stop,
    },
    settings::{Layers, trust::Trust},
    summary::extractive,
    text::values,
};
use jiff::Timestamp;
use regex::Regex;
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    collections::HashSet,
    sync::{Arc, LazyLock},
};

/// A request that is being handled.
pub struct Fitting {
    params: FitParams,
    api: Option<Api>,
    /// Number of messages at the beginning that hold the system prompt. They stay.
    instructions: usize,
    state: State,
    /// The place of each entry among the given messages.
    places: Vec<(EntryId, usize)>,
    /// Whether a result has no call: the end of a message whose beginning was summarized before.
    has_strays: bool,
}

/// The next step.
pub enum Next {
    /// The messages fit.
    Fits(FitAnswer),
    /// A summary is needed.
    Draft(Box<DraftOrder>, Box<Fitting>),
}

/// The entry that stands for an earlier summary.
const PREVIOUS: &str = "previous";

/// The entry that stands for the request of the user which an earlier summary ends with.
const REQUEST: &str = "request";

/// The tags around that request. The next call finds it by them, so that a long turn keeps the words of its request.
const REQUEST_TAGS: (&str, &str) = ("\n\n<user-message>\n", "\n</user-message>");

/// A summary with the request of the user that is carried beside it; none where nothing was summarized.
fn with_request(summary: &str, carried: Option<CarriedMessage>) -> Option<String> {
    let (open, close) = REQUEST_TAGS;
    match carried {
        Some(carried) => Some(format!("{summary}{open}{}{close}", carried.text)),
        None => Some(summary).filter(|summary| !extractive::is_nothing(summary)).map(str::to_owned),
    }
}

/// A summary without the request that it ends with, and that request.
fn without_request(summary: &str) -> (&str, Option<&str>) {
    let (open, close) = REQUEST_TAGS;
    match summary.trim_end().strip_suffix(close).and_then(|text| text.split_once(open)) {
        Some((summary, request)) => (summary, Some(request)),
        None => (summary, None),
    }
}

impl Fitting {
    /// Reads the messages.
    ///
    /// # Errors
    /// When a message is none of its format, with its place.
    pub fn new(params: FitParams, layers: &Layers, learned: Learned) -> Result<Self, Failure> {
        let api = params.format.and_then(MessageFormat::api);
        let texts: Vec<&str> = params.messages.iter().map(|message| message.0.get()).collect();
        for (at, text) in texts.iter().enumerate() {
            values::check(text).map_err(|_| {
                let what = format!("it has more than {} values and keys; give large data as one text", values::MOST);
                Failure::of_message(at, "", what)
            })?;
        }
        let leading: Vec<String> = texts.iter().map_while(|text| system_text(text)).collect();
        let instructions = leading.len();
        let system: Vec<String> = params.system.iter().cloned().chain(leading).collect();
        let settings = layers.with_session(None).map_err(Failure::invalid_settings)?.settings;
        let named = settings.model_or_default(params.model.clone());
        // Signed blocks are read and written for one model, so they stay.
        let model = named.clone().or_else(|| api.map(unnamed));
        let read = read(&texts[instructions..], api, model.as_ref(), instructions)?;
        let mut places = Vec::new();
        let mut entries: Vec<Arc<Entry>> = Vec::new();
        let time = entry::timestamp(newest(&texts));
        let mut add = |mut line: Value| -> Result<EntryId, Failure> {
            line["parentId"] = json!(entries.last().map(|entry| &entry.id));
            line["timestamp"] = json!(time);
            let entry = Entry::parse(line.to_string().into()).map_err(|error| Failure::Internal(error.to_string()))?;
            entries.push(Arc::new(entry));
            Ok(entries[entries.len() - 1].id.clone())
        };
        if let Some(summary) = params.previous_summary.as_ref().filter(|summary| !summary.trim().is_empty()) {
            let (summary, request) = without_request(summary);
            let carried = request.map(|text| CarriedMessage { entry_id: REQUEST.into(), text: text.to_owned() });
            let preserved = Preserved { newest_user_message: carried, ..Preserved::default() };
            add(json!({
                "type": "compaction", "id": PREVIOUS, "summary": summary, "firstKeptEntryId": PREVIOUS, "tokensBefore": 0,
                "preserveData": { "abridged": preserved.of_entry(&PREVIOUS.into()) },
            }))?;
        }
        for (at, message) in read {
            let refused = |error: NotAMessage| Failure::of_message(at, &error.path, error.problem);
            if api.is_none() {
                known::check(&message).map_err(refused)?;
            }
            let parsed = Message::parse(&message).map_err(refused)?;
            let message: Value =
                serde_json::from_str(&message).map_err(|error| Failure::of_message(at, "", error.to_string()))?;
            if api.is_none() {
                foreign(&parsed, &message).map_err(|what| Failure::of_message(at, "", what))?;
            }
            places.push((add(json!({"type": "message", "id": format!("m{}", places.len()), "message": message}))?, at));
        }
        let counted = if tokens::ready() {
            entries.iter().inspect(|entry| entry.count()).map(|entry| entry.id.clone()).collect()
        } else {
            HashSet::new()
        };
        let data = SessionData {
            system_prompt: (!system.is_empty()).then(|| system.join("\n\n")),
            tools: params.tools.clone().map(|tools| tools.0),
            settings: None,
            limits: SessionData::stated(params.context_window, params.max_output_tokens),
        };
        let history = History::in_memory(entries);
        let header = header(time);
        // The window that is named is that of the next request, whatever models the messages name.
        let model = named.or_else(|| history.path().model());
        let state = State::new(header, None, None, history, data, model, layers, Trust::Trusted);
        let mut state = state.map_err(Failure::invalid_settings)?;
        state.learned = learned.in_session(&state.id);
        state.tokenizer_is(tokens::ready());
        state.settle_estimator(&counted);
        let has_strays = has_strays(state.path());
        Ok(Self { params, api, instructions, state, places, has_strays })
    }

    /// Plans a summary, if one is needed. Blocks.
    ///
    /// # Errors
    /// When no compaction makes the messages fit, or the work is stopped.
    pub fn plan(self, access: &ModelAccess, stop: Stop) -> Result<Next, Failure> {
        let (tokens_before, fits) = self.size();
        let asked = self.params.keep_recent_tokens.is_some();
        if fits && !asked {
            return Ok(Next::Fits(self.unchanged(tokens_before)));
        }
        let made = match self.planned(self.params.keep_recent_tokens, access, &stop) {
            Err(Failure::NothingToCompact(_)) if fits => return Ok(Next::Fits(self.unchanged(tokens_before))),
            // Everything would be kept, and does not fit.
            Err(Failure::NothingToCompact(_)) if asked => self.planned(None, access, &stop),
            made => made,
        };
        let PlanMade { planned, candidates, only, .. } = made?;
        let id = self.state.id.to_string();
        let order = DraftOrder {
            id: id.as_str().into(),
            trigger: OperationKind::BY_CLIENT.trigger(),
            tokens: None,
            plan: planned.plan,
            focus: Focus { instructions: self.params.instructions.clone(), context: Vec::new() },
            hooks: None,
            candidates,
            native: None,
            live: None,
            only,
            settings: self.state.settings().clone(),
            deadline: None,
            rank: Rank::foreground(),
            stop,
        };
        Ok(Next::Draft(Box::new(order), Box::new(self)))
    }

    /// The size of the messages in tokens, and whether they fit.
    fn size(&self) -> (u64, bool) {
        let fullness = self.state.measure();
        let threshold = fullness.budget.attainable().unwrap_or(fullness.budget).threshold;
        (fullness.context_tokens, fullness.context_tokens <= threshold)
    }

    /// All messages, where they fit and nothing makes them smaller.
    ///
    /// # Errors
    /// The failure of the draft, otherwise.
    pub fn without_a_draft(&self, failure: Failure) -> Result<FitAnswer, Failure> {
        match (failure, self.size()) {
            (Failure::NothingToCompact(_), (tokens, true)) => Ok(self.unchanged(tokens)),
            (failure, _) => Err(failure),
        }
    }

    fn planned(&self, keep: Option<u64>, access: &ModelAccess, stop: &Stop) -> Result<PlanMade, Failure> {
        let path = self.state.path().clone();
        let request = PlanRequest {
            is_counted: self.state.estimator() == self.state.wanted_estimator(),
            settings: self.state.settings().clone(),
            learned: self.state.learned.clone(),
            instructions: self.state.instructions().clone(),
            cwd: None,
            keep_recent_tokens: keep,
            initiator: Initiator::User,
            cause: if keep.is_some() { Cause::Asked } else { Cause::Due },
            insists: self.params.instructions.is_some(),
            model: self.state.model(&path),
            path,
        };
        let id = self.state.id.to_string();
        let order =
            PlanOrder { id: id.as_str().into(), request, authors: Authors::Anyone, former: None, stop: stop.clone() };
        plan(order, access)
    }

    /// The session that requests for the summary are made for.
    #[must_use]
    pub fn session(&self) -> SessionId {
        self.state.id.clone()
    }

    /// All messages, as they are.
    fn unchanged(&self, tokens: u64) -> FitAnswer {
        FitAnswer {
            messages: self.whole(),
            summary: self.params.previous_summary.clone(),
            first_kept_index: 0,
            tokens_before: tokens,
            tokens_after: tokens,
            method: None,
            rejected: Vec::new(),
        }
    }

    /// The messages with the summary of a draft, or all of them where they fit and the draft makes nothing smaller.
    #[must_use]
    pub fn answer(&self, draft: &Draft) -> FitAnswer {
        let before = draft.plan.demand.tokens_before;
        let insists = self.params.instructions.is_some();
        if draft.tokens_after >= before && before <= draft.plan.demand.budget.threshold && !insists {
            return self.unchanged(before);
        }
        let first_kept = draft.plan.first_kept_id();
        let kept = first_kept.and_then(|id| self.places.iter().find(|(entry, _)| entry == id)).map(|(_, at)| *at);
        let first_kept_index = kept.unwrap_or(self.params.messages.len());
        let context = draft.context();
        let is_frame = |message: &&ContextMessage| {
            message.entry_shown().is_none_or(|entry| !self.is_kept(entry, first_kept_index))
        };
        let given = |from: usize| self.params.messages[from..].iter().map(|message| value(message.0.get()));
        let mut messages: Vec<AnyJson> = given(0).take(self.instructions).collect();
        let is_divided = self
            .places
            .iter()
            .zip(self.places.iter().skip(1))
            .any(|((_, before), (id, at))| before == at && first_kept == Some(id));
        if draft.edits.is_empty() && !is_divided && !self.has_strays {
            // The kept messages stay as they were given.
            messages.extend(self.written(context.messages().iter().take_while(is_frame)));
            messages.extend(given(first_kept_index.max(self.instructions)));
        } else {
            messages.extend(self.written(context.messages().iter()));
        }
        let made = draft.origin();
        FitAnswer {
            messages,
            summary: with_request(&draft.summary.text, draft.plan.carried()),
            first_kept_index,
            tokens_before: draft.plan.demand.tokens_before,
            tokens_after: draft.tokens_after,
            method: Some(made.method),
            rejected: made.rejected,
        }
    }

    fn is_kept(&self, entry: &EntryId, first_kept: usize) -> bool {
        self.places.iter().any(|(id, at)| id == entry && *at >= first_kept)
    }

    /// All messages, after the earlier summary if there is one. Those that are given stay as they are.
    fn whole(&self) -> Vec<AnyJson> {
        let given: Vec<AnyJson> = self.params.messages.iter().map(|message| value(message.0.get())).collect();
        if self.state.path().compaction().is_none() && !self.has_strays {
            return given;
        }
        let context = context::build(self.state.path(), &self.state.settings().prompts);
        let is_given = |message: &ContextMessage| {
            message.entry_shown().is_some_and(|entry| self.places.iter().any(|(id, _)| id == entry))
        };
        let mut given = given.into_iter();
        let mut messages: Vec<AnyJson> = given.by_ref().take(self.instructions).collect();
        if self.has_strays {
            messages.extend(self.written(context.messages().iter()));
        } else {
            messages.extend(self.written(context.messages().iter().take_while(|message| !is_given(message))));
            messages.extend(given);
        }
        messages
    }

    /// Messages of a context in the format of the request.
    fn written<'m>(&self, messages: impl Iterator<Item = &'m ContextMessage>) -> Vec<AnyJson> {
        let Some(api) = self.api else {
            return messages.map(|message| AnyJson(without_entries(value(&message.json()).0))).collect();
        };
        let model = self.state.model(self.state.path());
        let model = model.unwrap_or_else(|| unnamed(api));
        let target = Target { api, provider: &model.provider, model: &model.id };
        let request = Request {
            model: crate::models::dialects::model(&model.id),
            turns: turns(messages.map(ContextMessage::json), &target),
            ..Request::default()
        };
        let mut body = codec::encode(api, &request, Delivery::Whole).body;
        let list = match api {
            Api::Anthropic | Api::OpenaiChat => "messages",
            Api::OpenaiResponses => "input",
            Api::Google => "contents",
            // No format of messages is the client's.
            Api::Client => return Vec::new(),
        };
        match body[list].take() {
            Value::Array(messages) => messages.into_iter().map(without_entries).map(AnyJson).collect(),
            _ => Vec::new(),
        }
    }
}

/// The model of messages that name none.
fn unnamed(api: Api) -> ModelRef {
    ModelRef { provider: api.name().into(), id: "model".into() }
}

/// Whether a path has a result without its call.
fn has_strays(path: &Path) -> bool {
    let mut calls = HashSet::new();
    path.iter().filter_map(|entry| entry.outline()).any(|outline| {
        calls.extend(outline.calls.iter().map(|call| call.id.clone()));
        outline.answers.as_ref().is_some_and(|call| !calls.contains(call))
    })
}

/// Refuses a message of another format among those of pi.
fn foreign(message: &Message, value: &Value) -> Result<(), String> {
    const KNOWN: [&str; 4] = ["text", "thinking", "toolCall", "image"];
    const HINT: &str = "name the format of the messages with `format`";
    if matches!(message, Message::System(_) | Message::Summary(_)) {
        return Err("a system prompt stands in front of all messages, or in `system`".to_owned());
    }
    if value.get("content").is_none_or(Value::is_null) && !matches!(message, Message::Execution(_)) {
        return Err(format!("the message needs a content: a text or a list of blocks; {HINT}"));
    }
    let kinds = value["content"].as_array().into_iter().flatten().map(|block| block["type"].as_str());
    match kinds.into_iter().find(|kind| !kind.is_some_and(|kind| KNOWN.contains(&kind))) {
        Some(kind) => Err(format!("a block {:?} is none of pi's messages; {HINT}", kind.unwrap_or_default())),
        None => Ok(()),
    }
}

/// The time of the newest message that names one. The frames of a summary have it.
fn newest(texts: &[&str]) -> Timestamp {
    #[derive(Deserialize)]
    struct Timed {
        #[serde(default)]
        timestamp: Option<Value>,
    }
    let times = texts.iter().filter_map(|text| serde_json::from_str::<Timed>(text).ok()?.timestamp?.as_i64());
    times.max().and_then(|time| Timestamp::from_millisecond(time).ok()).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// The header of a session that is never written.
fn header(timestamp: String) -> Header {
    Header {
        kind: HeaderKind::Session,
        version: VERSION,
        id: "fit".into(),
        timestamp,
        cwd: "/".to_owned(),
        parent_session: None,
        title: None,
        rest: serde_json::Map::new(),
    }
}

/// A message without words about entries, which nobody can ask for here.
fn without_entries(mut message: Value) -> Value {
    static WORDS: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"; entry m\d+ has (?:all of )?it(?: \(session/entry of abridged returns it\))?").expect("fixed")
    });
    fn visit(value: &mut Value) {
        match value {
            Value::String(text) if text.contains("; entry m") => *text = WORDS.replace_all(text, "").into_owned(),
            Value::Array(items) => items.iter_mut().for_each(visit),
            Value::Object(members) => members.values_mut().for_each(visit),
            _ => {}
        }
    }
    visit(&mut message);
    message
}

fn value(text: &str) -> AnyJson {
    AnyJson(serde_json::from_str(text).unwrap_or_default())
}

/// The text of a message that holds a system prompt.
fn system_text(message: &str) -> Option<String> {
    let message: Value = serde_json::from_str(message).ok()?;
    if message["role"] != "system" && message["role"] != "developer" {
        return None;
    }
    match &message["content"] {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => {
            Some(parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n"))
        }
        _ => Some(String::new()),
    }
}

/// The messages in pi's form, each with its place among the given ones. `from`: the place of the first one.
fn read(
    texts: &[&str],
    api: Option<Api>,
    model: Option<&ModelRef>,
    from: usize,
) -> Result<Vec<(usize, String)>, Failure> {
    let Some(api) = api else {
        return Ok(texts.iter().enumerate().map(|(at, text)| (at + from, (*text).to_owned())).collect());
    };
    let made = given::messages(api, texts, &Beside::default(), model, Vec::new()).map_err(|invalid| {
        let given::Invalid { path, problem } = invalid;
        let problem = match problem.contains("system prompt is given with the session") {
            true => "a system prompt stands in front of all messages, or in `system`".to_owned(),
            false => problem,
        };
        Failure::params(moved(&path, from), problem)
    })?;
    Ok(made.into_iter().map(|made| (made.at + from, made.json)).collect())
}

/// A path below `messages` in a list with more messages before.
fn moved(path: &str, from: usize) -> String {
    let Some((at, rest)) = path.strip_prefix("messages[").and_then(|rest| rest.split_once(']')) else {
        return path.to_owned();
    };
    match at.parse::<usize>() {
        Ok(at) => format!("messages[{}]{rest}", at + from),
        Err(_) => path.to_owned(),
    }
}
