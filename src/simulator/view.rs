//! The picture that a client has of its session, and the params of its requests.

use super::{
    action::{
        Compacting, Configured, Error, Format, Method, Navigating, Pinned, Provider, Reported, Request, Said, Target,
        Which, WhichOperation,
    },
    lies::exchanges::{Exchanges, Telling},
    lies::{Gives, Named},
    setup,
    words::text,
};
use crate::{
    ids::{EntryId, OperationId, SessionId},
    protocol::{errors::Failure, events::Event},
    session::effects::{Answer, TicketNumber},
    wire::{outbox::About, transport::Piece},
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// One pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// The picture of a client.
pub struct View {
    session: SessionId,
    /// Entries that were announced, in their order.
    entries: Vec<EntryId>,
    /// The last leaf of an answer.
    leaf: Option<EntryId>,
    /// The leaf that the last navigation left.
    left: Option<EntryId>,
    operations: Vec<OperationId>,
    /// Open requests with their methods.
    pub open: BTreeMap<TicketNumber, &'static str>,
    /// Calls without results.
    calls: Vec<String>,
    /// Number of the next text, call or id.
    next: u64,
    /// The window of the session, in tokens.
    window: u64,
    /// The size of the context that was given last, in tokens. None if it was refused.
    given: Option<u64>,
    /// The size of the last answer to a request for a context, in bytes.
    pub bytes: u64,
    /// The failure of the last request for a context, if it was refused.
    pub refused: Option<Failure>,
    /// Whether the last context had the newest text of the user.
    pub has_newest: bool,
    /// The number of the newest text of the user.
    asked: u64,
    /// The requests to a provider with a truth of its own.
    pub exchanges: Exchanges,
}

impl View {
    /// The picture before the first answer. The file has these entries.
    #[must_use]
    pub fn new(session: SessionId, entries: Vec<EntryId>) -> Self {
        Self {
            session,
            leaf: entries.last().cloned(),
            entries,
            left: None,
            operations: Vec::new(),
            open: BTreeMap::new(),
            calls: Vec::new(),
            next: 0,
            window: 1_000,
            given: Some(0),
            bytes: 0,
            refused: None,
            has_newest: true,
            asked: 0,
            exchanges: Exchanges::default(),
        }
    }

    /// An event arrives.
    pub fn event(&mut self, about: &About, event: &Event) {
        match (event, &about.entry, &about.operation) {
            (Event::EntryAppended { .. }, Some(entry), _) => self.entries.push(entry.clone()),
            (
                Event::CompactionStart { .. }
                | Event::RecoveryStart { .. }
                | Event::IdleStart { .. }
                | Event::BranchSummaryStart { .. },
                _,
                Some(operation),
            ) if !self.operations.contains(operation) => {
                self.operations.push(operation.clone());
            }
            (Event::TreeChanged { old_leaf_id, new_leaf_id, .. }, ..) => {
                self.left.clone_from(old_leaf_id);
                self.leaf = new_leaf_id.clone().or(self.leaf.take());
            }
            (Event::UsageUpdated { usage }, ..) => self.window = usage.context_window.unwrap_or(self.window),
            _ => {}
        }
    }

    /// An answer arrives.
    pub fn answer(&mut self, request: TicketNumber, answer: &Answer) {
        let method = self.open.remove(&request);
        self.exchanges.answered(request, answer);
        if method == Some("session/context") {
            self.given = given(answer);
            self.has_newest = has(answer, &format!("m{}:", self.asked));
            self.bytes = match answer {
                Answer::Failed(_) => 0,
                Answer::Result(json) => json.get().len() as u64,
                Answer::Pieces(pieces) => pieces.iter().map(|piece| piece.as_str().len() as u64).sum(),
            };
            self.refused = match answer {
                Answer::Failed(failure) => Some(failure.clone()),
                _ => None,
            };
        }
        let (
            Some("session/append" | "session/undo_compaction" | "session/reset" | "session/compact"),
            Answer::Result(result),
        ) = (method, answer)
        else {
            return;
        };
        let answer: Value = serde_json::from_str(result.get()).unwrap_or_default();
        if method == Some("session/compact") && answer["outcome"].is_null() {
            self.operations.extend(answer["operationId"].as_str().map(OperationId::from));
        }
        if let Some(leaf) = answer["leafEntryId"].as_str() {
            self.leaf = Some(leaf.into());
        }
    }

    /// The open request at this place, counted from the newest.
    #[must_use]
    pub fn open_request(&self, place: u32) -> Option<TicketNumber> {
        let place = place as usize % self.open.len().max(1);
        self.open.keys().rev().nth(place).copied()
    }

    /// The operation of a cancel.
    #[must_use]
    pub fn operation(&self, which: WhichOperation) -> Option<OperationId> {
        match which {
            WhichOperation::All => None,
            WhichOperation::Newest(place) => {
                let place = place as usize % self.operations.len().max(1);
                Some(self.operations.iter().rev().nth(place).cloned().unwrap_or_else(|| "op-none".into()))
            }
            WhichOperation::Unknown => Some("op-none".into()),
        }
    }

    fn entry(&self, which: Which) -> EntryId {
        let most = self.entries.len().max(1);
        let found = match which {
            Which::Leaf => self.leaf.clone(),
            Which::Newest(place) => self.entries.iter().rev().nth(place as usize % most).cloned(),
            Which::Oldest(place) => self.entries.get(place as usize % most).cloned(),
            Which::Unknown => None,
        };
        found.unwrap_or_else(|| "no-such-entry".into())
    }

    /// Whether the newest message is among these bytes of a file.
    #[must_use]
    pub fn newest_is_in(&self, bytes: &[u8]) -> bool {
        let marks = [format!("m{}:", self.next), format!("\"timestamp\":{}", self.next)];
        marks.iter().any(|mark| memchr::memmem::rfind(bytes, mark.as_bytes()).is_some())
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// The method and the params of a request.
    pub fn params(&mut self, request: &Request) -> (&'static str, Value) {
        let (method, mut params) = self.own_params(request);
        params.insert("sessionId".to_owned(), self.session.as_str().into());
        params.retain(|_, value| value.as_str() != Some("-absent-"));
        (method, Value::Object(params))
    }

    fn own_params(&mut self, request: &Request) -> (&'static str, Map<String, Value>) {
        let absent = Value::from("-absent-");
        let or_absent = |value: Option<Value>| value.unwrap_or_else(|| absent.clone());
        let entry = |view: &Self, which: Option<Which>| or_absent(which.map(|which| view.entry(which).as_str().into()));
        let (method, params) = match request {
            Request::Append { messages, parent, expected } => {
                let (parent, expected) = (entry(self, *parent), entry(self, *expected));
                let names = messages.iter().rev().find_map(|said| match said {
                    Said::Told(told) => Some(told.names),
                    _ => None,
                });
                let context = or_absent(self.exchanges.named(names.unwrap_or(Named::Omitted)).map(Value::from));
                let messages: Vec<Value> = messages.iter().map(|said| self.message(said)).collect();
                let params = json!({
                    "messages": messages, "parentEntryId": parent, "expectedLeafId": expected, "contextId": context,
                });
                ("session/append", params)
            }
            Request::Compact(compacting) => ("session/compact", self.compact(compacting)),
            Request::Undo => ("session/undo_compaction", json!({})),
            Request::Reset => ("session/reset", json!({})),
            Request::Pin(pinned) => ("session/pin", self.pinned(*pinned)),
            Request::Unpin(pinned) => ("session/unpin", self.pinned(*pinned)),
            Request::Label(target, label) => {
                let label = label.map(|label| format!("label {label}"));
                ("session/label", json!({"targetEntryId": self.entry(*target), "label": label}))
            }
            Request::Prune { protect, minimum, dry_run } => {
                let params = json!({
                    "protectTokens": or_absent(protect.map(Value::from)),
                    "minimumSavings": or_absent(minimum.map(Value::from)),
                    "dryRun": or_absent(dry_run.map(Value::from)),
                });
                ("session/prune", params)
            }
            Request::Configure(configured) => ("session/configure", configure(*configured)),
            Request::Set(tuning) => {
                let patch = setup::patch(*tuning);
                ("settings/set", json!({"scope": "session", "patch": patch}))
            }
            Request::Settings => ("settings/get", json!({})),
            Request::Context { leaf, format, wait } => {
                let format = format.map(|format| match format {
                    Format::Messages => "messages".into(),
                    Format::Anthropic => "anthropic".into(),
                    Format::OpenaiChat => "openai_chat".into(),
                    Format::OpenaiResponses => "openai_responses".into(),
                    Format::Google => "google".into(),
                });
                let wait = or_absent(wait.map(Value::from));
                let params = json!({"leafEntryId": entry(self, *leaf), "format": or_absent(format), "wait": wait});
                ("session/context", params)
            }
            Request::Entries { since, all, limit } => {
                let branch = if *all { "all" } else { "active" };
                let limit = or_absent(limit.map(Value::from));
                ("session/entries", json!({"since": entry(self, *since), "branch": branch, "limit": limit}))
            }
            Request::Entry(which) => ("session/entry", json!({"entryId": self.entry(*which)})),
            Request::Tree(cursor) => ("session/tree", json!({"cursor": entry(self, *cursor), "limit": 20})),
            Request::Search(number) => ("session/search", json!({"query": format!("m{number}")})),
            Request::Usage => ("session/usage", json!({})),
            Request::Status => ("session/status", json!({})),
            Request::Subscribe => ("session/subscribe", json!({})),
            Request::Unsubscribe => ("session/unsubscribe", json!({})),
            Request::ClearQueue => ("session/clear_queue", json!({})),
            Request::Activity => ("session/activity", json!({})),
            Request::RunIdle => ("session/run_idle", json!({})),
            Request::Load => ("session/load", json!({})),
            Request::HandOver => ("settings/set", json!({"scope": "project", "patch": {}})),
            Request::Close => ("session/close", json!({})),
            Request::Navigate(navigating) => ("session/navigate", self.navigate(*navigating)),
            Request::Prompt { steers } => {
                self.next += 1;
                let behavior = if *steers { "steer" } else { "follow_up" };
                ("session/prompt", json!({"message": format!("prompt {}", self.next), "behavior": behavior}))
            }
            Request::Continue => ("session/continue", json!({})),
        };
        (method, if let Value::Object(params) = params { params } else { Map::new() })
    }

    fn compact(&self, compacting: &Compacting) -> Value {
        let mut params = Map::new();
        let mut set = |key: &str, value: Option<Value>| value.map(|value| params.insert(key.to_owned(), value));
        set("wait", compacting.wait.map(Value::from));
        set("dryRun", compacting.dry_run.map(Value::from));
        set("method", compacting.method.map(|it| if it == Method::Llm { "llm" } else { "extractive" }.into()));
        set("keepRecentTokens", compacting.keep_recent_tokens.map(Value::from));
        set("instructions", compacting.instructions.map(|it| text(it.into(), 60).into()));
        set("expectedLeafId", compacting.expected.map(|which| self.entry(which).as_str().into()));
        set("initiator", compacting.by_agent.then(|| "agent".into()));
        set("newSession", compacting.new_session.then(|| true.into()));
        set("when", compacting.after_turn.then(|| "after_turn".into()));
        Value::Object(params)
    }

    fn navigate(&self, navigating: Navigating) -> Value {
        let target = match navigating.target {
            Target::Entry(which) => self.entry(which),
            Target::Left => self.left.clone().unwrap_or_else(|| self.entry(Which::Oldest(0))),
        };
        let mut params = json!({"targetEntryId": target});
        for (key, value) in [("summarize", navigating.summarize), ("wait", navigating.wait)] {
            if let Some(value) = value {
                params[key] = value.into();
            }
        }
        if let Some(label) = navigating.label {
            params["label"] = format!("moved {label}").into();
        }
        params
    }

    fn pinned(&mut self, pinned: Pinned) -> Value {
        match pinned {
            Pinned::Entry(which) => json!({"entryId": self.entry(which)}),
            Pinned::Text(number, chars) => json!({"text": text(number.into(), chars)}),
        }
    }

    /// A message.
    fn message(&mut self, said: &Said) -> Value {
        let number = self.number();
        let window = self.window;
        let blocks = |chars: u32| json!([{"type": "text", "text": text(number, chars)}]);
        let answer = |content: Value, stop: &str, reported: Reported| {
            let mut message = json!({"role": "assistant", "content": content, "stopReason": stop, "timestamp": number});
            if let Some(usage) = usage(reported, window) {
                message["usage"] = usage;
            }
            message
        };
        match *said {
            Said::User(chars) => {
                self.asked = number;
                self.exchanges.turn_begins();
                json!({"role": "user", "content": text(number, chars)})
            }
            Said::Answer(chars, reported) => answer(blocks(chars), "stop", reported),
            Said::Provided(Provider { window, percent, states }) => match self.given {
                None => json!({"role": "user", "content": text(number, 40)}),
                Some(given) => {
                    let tokens = given.saturating_mul(percent.into()) / 100;
                    if tokens <= window {
                        return answer(blocks(120), "stop", Reported::Input(tokens));
                    }
                    let mut message = answer(json!([]), "error", Reported::Nothing);
                    message["errorMessage"] = match states {
                        Some(limit) => format!("prompt is too long: {tokens} tokens > {limit} maximum").into(),
                        None => "prompt is too long".into(),
                    };
                    message
                }
            },
            Said::Told(told) => match self.exchanges.tell(told) {
                Telling::NoRequest => json!({"role": "user", "content": text(number, 40)}),
                Telling::Refused(error) => {
                    let mut message = answer(json!([]), "error", Reported::Nothing);
                    message["errorMessage"] = error.into();
                    message
                }
                Telling::Answered(usage) => {
                    let said = match told.gives {
                        Gives::Calls(calls) => Said::Calls(calls, Reported::Nothing),
                        Gives::Text(chars) => Said::Answer(chars, Reported::Nothing),
                        Gives::Throttled(_) => Said::Aborted(0),
                    };
                    let mut message = self.message(&said);
                    if let Some(usage) = usage {
                        message["usage"] = usage;
                    }
                    message
                }
            },
            Said::CutCall(reported) => {
                let id = format!("call-{number}-cut");
                let call = json!({"type": "toolCall", "id": id, "name": "edit", "arguments": {"path": "src/"}});
                self.calls.push(id);
                answer(json!([call]), "length", reported)
            }
            Said::CutEmpty(reported) => answer(json!([]), "length", reported),
            Said::OfAnother(chars, reported) => {
                let mut message = answer(blocks(chars), "stop", reported);
                (message["provider"], message["model"]) = ("other".into(), "another".into());
                message
            }
            Said::Images(images) => {
                let image = json!({"type": "image", "data": PIXEL, "mimeType": "image/png"});
                json!({"role": "user", "content": vec![image; images.max(1) as usize]})
            }
            Said::CutOff(chars, reported) => answer(blocks(chars), "length", reported),
            Said::Aborted(chars) => answer(blocks(chars), "aborted", Reported::Nothing),
            Said::Failed(error, reported) => {
                let mut message = answer(json!([]), "error", reported);
                message["errorMessage"] = match error {
                    Error::Overflow => "prompt is too long".into(),
                    Error::OverflowOf(window) => format!("prompt is too long: 999999 tokens > {window} maximum").into(),
                    Error::Throttled => "429 too many requests".into(),
                    Error::ThrottledTokens => {
                        "429 rate limit reached: too many tokens per minute, 40000 tokens > 30000 maximum".into()
                    }
                    Error::TooManyBytes => "413 request entity too large".into(),
                    Error::Unknown => "la requête déborde du cadre prévu".into(),
                    Error::Broken => "socket hang up".into(),
                };
                message
            }
            Said::Calls(calls, reported) => {
                let mut content = vec![json!({"type": "text", "text": text(number, 40)})];
                for call in 0..calls {
                    let id = format!("call-{number}-{call}");
                    let path = format!("src/part{}.rs", (number + u64::from(call)) % 9);
                    let name = if call % 2 == 0 { "read" } else { "edit" };
                    content.push(json!({"type": "toolCall", "id": id, "name": name, "arguments": {"path": path}}));
                    self.calls.push(id);
                }
                answer(Value::Array(content), "toolUse", reported)
            }
            Said::Result(place, chars) => {
                let most = self.calls.len().max(1);
                let at = self.calls.len().checked_sub(1 + place as usize % most);
                let id = at.map_or_else(|| "call-none".to_owned(), |at| self.calls.remove(at));
                json!({"role": "toolResult", "toolCallId": id, "toolName": "read", "content": blocks(chars), "isError": false})
            }
            Said::Stray(chars) => {
                json!({"role": "toolResult", "toolCallId": "call-none", "toolName": "read", "content": blocks(chars)})
            }
            Said::Image(chars) => {
                let image = json!({"type": "image", "data": PIXEL, "mimeType": "image/png"});
                json!({"role": "user", "content": [{"type": "text", "text": text(number, chars)}, image]})
            }
            Said::Custom(chars) => {
                json!({"role": "custom", "customType": "note", "content": text(number, chars), "display": true})
            }
            Said::Developer(chars) => json!({"role": "developer", "content": text(number, chars)}),
            Said::Execution(chars) => json!({
                "role": "bashExecution", "command": "cargo test", "output": text(number, chars), "exitCode": 0,
                "cancelled": false, "truncated": false,
            }),
            Said::Thinking(chars, reported) => {
                let thinking = json!({"type": "thinking", "thinking": text(number, 80), "thinkingSignature": "c2ln"});
                answer(json!([thinking, {"type": "text", "text": text(number, chars)}]), "stop", reported)
            }
            Said::Invalid(kind) => match kind % 5 {
                0 => json!({"role": "toolResult", "content": []}),
                1 => json!({"role": "user", "content": [{"type": "text"}]}),
                2 => json!({"role": "system", "content": "no"}),
                3 => json!({"role": "user"}),
                _ => json!({}),
            },
        }
    }

    /// Lines of another program, with a newline each.
    pub fn lines_of_another(&mut self, parent: Which, messages: &[Said]) -> String {
        let mut parent = Some(self.entry(parent));
        let mut lines = String::new();
        for said in messages {
            let id = format!("other{:011x}", self.number());
            let line = json!({
                "type": "message", "id": id, "parentId": parent, "timestamp": "2026-01-01T00:00:00.000Z",
                "message": self.message(said),
            });
            lines.push_str(&line.to_string());
            lines.push('\n');
            parent = Some(id.into());
        }
        lines
    }
}

/// The size of the context of an answer, in tokens. None if it was refused.
fn given(answer: &Answer) -> Option<u64> {
    let answer = match answer {
        Answer::Failed(_) => return None,
        Answer::Result(json) => json.get().to_owned(),
        // The usage is at the end, after the messages or the body.
        Answer::Pieces(pieces) => {
            let end = pieces.last().map(Piece::as_str).unwrap_or_default();
            format!("{{{}", end.trim_start_matches([']', ',']))
        }
    };
    let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
    Some(answer["usage"]["contextTokens"].as_u64().unwrap_or_default())
}

/// Whether a text is in an answer.
fn has(answer: &Answer, text: &str) -> bool {
    match answer {
        Answer::Failed(_) => false,
        Answer::Result(json) => json.get().contains(text),
        Answer::Pieces(pieces) => pieces.iter().any(|piece| piece.as_str().contains(text)),
    }
}

fn usage(reported: Reported, window: u64) -> Option<Value> {
    let input =
        |input: u64| json!({"input": input, "output": 20, "cacheRead": 0, "cacheWrite": 0, "totalTokens": input + 20});
    match reported {
        Reported::Nothing => None,
        Reported::Zero => Some(json!({"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0})),
        Reported::Input(tokens) => Some(input(tokens)),
        Reported::Cached(tokens) => Some(json!({
            "input": tokens - tokens / 10 * 9, "output": 20, "cacheRead": tokens / 10 * 9, "cacheWrite": 0,
            "totalTokens": tokens + 20,
        })),
        Reported::Percent(percent) => Some(input(window.saturating_mul(percent.into()) / 100)),
        Reported::Huge => Some(input(1_000_000_000_000_000)),
        Reported::Total(total) => {
            Some(json!({"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": total}))
        }
        Reported::Absurd => Some(json!({
            "input": u64::MAX, "output": u64::MAX, "cacheRead": u64::MAX, "cacheWrite": 1, "totalTokens": u64::MAX,
        })),
        Reported::Negative => Some(json!({"input": -5, "output": -1})),
    }
}

fn configure(configured: Configured) -> Value {
    let tool = |at: u32| json!({"name": format!("tool{at}"), "description": text(at.into(), 80), "inputSchema": {}});
    match configured {
        Configured::Model(number) => json!({"model": {"provider": "local", "id": setup::model(number)}}),
        Configured::NoModel => json!({"model": null}),
        Configured::Thinking(level) => {
            json!({"thinkingLevel": level.map(|it| ["low", "medium", "high"][it as usize % 3])})
        }
        Configured::Title(title) => json!({"title": title.map(|it| format!("Title {it}"))}),
        Configured::Prompt(chars) => json!({"systemPrompt": chars.map(|chars| text(0, chars))}),
        Configured::Tools(number) => json!({"tools": (0..number).map(tool).collect::<Vec<_>>()}),
        Configured::All(number) => json!({
            "model": {"provider": "local", "id": setup::model(number)}, "title": format!("Title {number}"),
            "systemPrompt": text(number.into(), 100),
        }),
        Configured::Window(window) => json!({"contextWindow": window}),
        Configured::Output(output) => json!({"maxOutputTokens": output}),
        Configured::Nothing => json!({}),
    }
}
