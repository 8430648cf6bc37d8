//! A provider of models on loopback, for tests of the real binary: real HTTP, the wire formats of four APIs, streaming
//! or not, as strict about requests as the providers are, and with every fault they are known for.
//!
//! ```ignore
//! let provider = Provider::start(Format::Anthropic);
//! provider.window(8_000).script([Step::rate_limited(1), Step::answer("A summary.")]);
//! // … a daemon whose model has `provider.base_url()` …
//! let asked = provider.wait_for(2);
//! assert!(asked[1].text().contains("what must be kept"));
//! ```

#![allow(dead_code, reason = "a provider has more faults than one test needs")]

mod checks;
pub mod claude;
mod faults;
mod formats;
mod http;
mod step;
mod tls;
mod validity;

pub use faults::{Refusal, Trouble};
#[allow(unused_imports, reason = "not every test says why a model stops")]
pub use step::{Step, Stop};
#[allow(unused_imports, reason = "most tests need no certificate")]
pub use tls::Tls;

use faults::Facts;
use formats::{Place, Turn};
use http::{Body, Reply, Request, Stream, Wire};
use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};
use step::{Answer, Part, Usage, What};

/// Longer than a request takes to come, even on a busy machine.
const LONG: Duration = Duration::from_secs(20);

/// A wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Anthropic,
    OpenAiChat,
    OpenAiResponses,
    Google,
}

impl Format {
    pub const ALL: [Self; 4] = [Self::Anthropic, Self::OpenAiChat, Self::OpenAiResponses, Self::Google];

    /// Where a model is asked, behind the address of the server.
    pub fn path(self, model: &str) -> String {
        match self {
            Self::Anthropic => "/v1/messages".to_owned(),
            Self::OpenAiChat => "/v1/chat/completions".to_owned(),
            Self::OpenAiResponses => "/v1/responses".to_owned(),
            Self::Google => format!("/v1beta/models/{model}:generateContent"),
        }
    }

    /// Name of the format in the settings of a model.
    pub fn api(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAiChat => "openai_chat",
            Self::OpenAiResponses => "openai_responses",
            Self::Google => "google",
        }
    }
}

/// A server of one format. It ends with its value, and everything it started ends with it.
pub struct Provider {
    shared: Arc<Shared>,
    scheme: &'static str,
    address: SocketAddr,
    listener: Option<JoinHandle<()>>,
}

struct Shared {
    format: Format,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    stopped: bool,
    rules: Rules,
    script: VecDeque<Step>,
    otherwise: Arc<dyn Answers>,
    asked: Vec<Asked>,
    connections: Vec<(TcpStream, JoinHandle<()>)>,
}

/// Checks that each request has to pass.
#[derive(Debug, Clone)]
struct Rules {
    strict: bool,
    window: Option<u64>,
    truncated: Option<u64>,
    output_limit: Option<u64>,
    key: Option<String>,
    /// Characters of the body for a token, where this server counts all of the JSON.
    chars_per_token: Option<f64>,
    refusal: Refusal,
}

impl Rules {
    /// The size of a request, in tokens of this server.
    fn tokens(&self, asked: &Asked) -> u64 {
        match self.chars_per_token {
            Some(chars) => (asked.body.to_string().chars().count() as f64 / chars).ceil() as u64,
            None => asked.tokens(),
        }
    }
}

/// A request the provider got.
#[derive(Debug, Clone)]
pub struct Asked {
    pub format: Format,
    pub method: String,
    /// With its query.
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// `null` if it was no JSON.
    pub body: Value,
    pub at: Instant,
    /// Which connection it came on, from 0.
    pub connection: usize,
    /// The provider's own objection. A refused request takes no step of the script.
    pub refused: Option<Trouble>,
    /// The whole response was written.
    pub complete: bool,
    /// The client closed the connection before that.
    pub closed_early: bool,
}

/// Source of answers for requests behind the script's end.
pub trait Answers: Send + Sync {
    fn step(&self, asked: &Asked) -> Step;
}

impl Answers for Step {
    fn step(&self, _: &Asked) -> Step {
        self.clone()
    }
}

impl<F: Fn(&Asked) -> Step + Send + Sync> Answers for F {
    fn step(&self, asked: &Asked) -> Step {
        self(asked)
    }
}

/// Turns a connection into a stream.
type Wrap = Arc<dyn Fn(TcpStream) -> Box<dyn Stream> + Send + Sync>;

impl Provider {
    /// A server that answers everything with a word, and refuses what the real one would refuse.
    pub fn start(format: Format) -> Self {
        Self::over(format, "http", Arc::new(|socket| Box::new(socket)))
    }

    fn over(format: Format, scheme: &'static str, wrap: Wrap) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let rules = Rules {
            strict: true,
            window: None,
            truncated: None,
            output_limit: None,
            key: None,
            chars_per_token: None,
            refusal: Refusal::Numbers,
        };
        let state = State {
            stopped: false,
            rules,
            script: VecDeque::new(),
            otherwise: Arc::new(Step::answer("An answer.")),
            asked: Vec::new(),
            connections: Vec::new(),
        };
        let shared = Arc::new(Shared { format, state: Mutex::new(state), changed: Condvar::new() });
        let listening = shared.clone();
        let listener = thread::spawn(move || listening.listen(&listener, &wrap));
        Self { shared, scheme, address, listener: Some(listener) }
    }

    /// Value for a model's `baseUrl`.
    pub fn base_url(&self) -> String {
        let version = match self.shared.format {
            Format::Anthropic => "",
            Format::OpenAiChat | Format::OpenAiResponses => "/v1",
            Format::Google => "/v1beta",
        };
        format!("{}://{}{version}", self.scheme, self.address)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Adds steps: one for each request, in the order they arrive.
    pub fn script(&self, steps: impl IntoIterator<Item = Step>) -> &Self {
        self.shared.state().script.extend(steps);
        self
    }

    /// Sets the answers behind the script's end: a step, or a function of the request.
    pub fn otherwise(&self, answers: impl Answers + 'static) -> &Self {
        self.shared.state().otherwise = Arc::new(answers);
        self
    }

    /// Refuses what is larger, in the provider's own words.
    pub fn window(&self, tokens: u64) -> &Self {
        self.ruled(|rules| rules.window = Some(tokens))
    }

    /// Counts all of the JSON of a request, so many characters for a token.
    pub fn counts_json(&self, chars_per_token: f64) -> &Self {
        self.ruled(|rules| rules.chars_per_token = Some(chars_per_token))
    }

    /// Sets the text of a request that is over the window.
    pub fn refuses_with(&self, refusal: Refusal) -> &Self {
        self.ruled(|rules| rules.refusal = refusal)
    }

    /// Takes what is larger, cuts it silently, and counts only what was left.
    pub fn truncates(&self, tokens: u64) -> &Self {
        self.ruled(|rules| rules.truncated = Some(tokens))
    }

    /// Refuses to be asked for more output than this.
    pub fn output_limit(&self, tokens: u64) -> &Self {
        self.ruled(|rules| rules.output_limit = Some(tokens))
    }

    /// Whether requests are held to what the provider takes.
    pub fn strict(&self, strict: bool) -> &Self {
        self.ruled(|rules| rules.strict = strict)
    }

    /// Requires this key where the format has it. Google says 400 to a wrong one, the others 401.
    pub fn key(&self, key: &str) -> &Self {
        self.ruled(|rules| rules.key = Some(key.to_owned()))
    }

    fn ruled(&self, change: impl FnOnce(&mut Rules)) -> &Self {
        change(&mut self.shared.state().rules);
        self
    }

    /// Every request so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.shared.state().asked.clone()
    }

    /// Forgets the bodies of requests that were answered. Those of thousands of requests take gigabytes.
    pub fn forget_bodies(&self) {
        self.shared.state().asked.iter_mut().filter(|asked| asked.complete).for_each(|asked| asked.body = Value::Null);
    }

    /// Waits until so many requests arrived.
    pub fn wait_for(&self, count: usize) -> Vec<Asked> {
        self.wait_until(&format!("{count} requests"), |asked| asked.len() >= count)
    }

    /// Waits until the client has closed the connection of a request before it was answered.
    pub fn wait_for_close(&self, at: usize) -> Vec<Asked> {
        self.wait_until(&format!("the close of request {at}"), |asked| {
            asked.get(at).is_some_and(|one| one.closed_early)
        })
    }

    /// Waits until it holds of the requests; `what` is what a failure calls it.
    pub fn wait_until(&self, what: &str, holds: impl Fn(&[Asked]) -> bool) -> Vec<Asked> {
        let waiting = |state: &mut State| !holds(&state.asked);
        let (state, timeout) = self
            .shared
            .changed
            .wait_timeout_while(self.shared.state(), LONG, waiting)
            .unwrap_or_else(PoisonError::into_inner);
        let asked = state.asked.clone();
        drop(state);
        assert!(!timeout.timed_out(), "{what} did not come; so far: {asked:#?}");
        asked
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.shared.state().stopped = true;
        // The listener looks at that when the next connection comes.
        let woken = TcpStream::connect(self.address);
        let listened = self.listener.take().map(JoinHandle::join);
        drop(woken);
        let connections = std::mem::take(&mut self.shared.state().connections);
        for (socket, _) in &connections {
            let _ = socket.shutdown(Shutdown::Both);
        }
        let ends: Vec<_> = connections.into_iter().map(|(_, thread)| thread.join()).chain(listened).collect();
        if !thread::panicking() {
            ends.into_iter().for_each(|end| end.expect("the provider's own threads end well"));
        }
    }
}

impl Asked {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn model(&self) -> &str {
        match self.format {
            Format::Google => {
                let (path, _) = self.path.split_once(':').unwrap_or((&self.path, ""));
                path.rsplit_once("/models/").map_or("", |(_, model)| model)
            }
            _ => self.body["model"].as_str().unwrap_or_default(),
        }
    }

    /// Whether a stream was asked for.
    pub fn streams(&self) -> bool {
        match self.format {
            Format::Google => self.path.contains(":streamGenerateContent"),
            _ => self.body["stream"] == true,
        }
    }

    /// The most that was asked for.
    pub fn max_output(&self) -> Option<u64> {
        let of = |pointer: &str| self.body.pointer(pointer).and_then(Value::as_u64);
        match self.format {
            Format::Anthropic => of("/max_tokens"),
            Format::OpenAiChat => of("/max_completion_tokens").or_else(|| of("/max_tokens")),
            Format::OpenAiResponses => of("/max_output_tokens"),
            Format::Google => of("/generationConfig/maxOutputTokens"),
        }
    }

    /// Everything the model would read, in order: the system prompt, texts, calls and their results.
    pub fn text(&self) -> String {
        let mut texts = Vec::new();
        for part in ["system", "systemInstruction", "instructions", "messages", "input", "contents"] {
            gather(&self.body[part], &mut texts);
        }
        texts.join("\n")
    }

    /// Its size as this provider estimates it: a token for four characters, a thousand for an image, and the tools.
    pub fn tokens(&self) -> u64 {
        let tools = if self.body["tools"].is_null() { 0 } else { self.body["tools"].to_string().len() };
        let images = images(&self.body);
        (self.text().chars().count() + tools).div_ceil(4) as u64 + images * 1000
    }
}

/// The words in a part of a request, without names of types, ids and what is encrypted or encoded.
fn gather(value: &Value, texts: &mut Vec<String>) {
    const SILENT: [&str; 17] = [
        "type",
        "role",
        "id",
        "call_id",
        "tool_use_id",
        "tool_call_id",
        "signature",
        "thoughtSignature",
        "data",
        "encrypted_content",
        "media_type",
        "mimeType",
        "image_url",
        "fileUri",
        "status",
        "detail",
        "cache_control",
    ];
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(parts) => parts.iter().for_each(|part| gather(part, texts)),
        Value::Object(fields) => {
            for (name, field) in fields {
                match name.as_str() {
                    // Arguments and results of a tool are read as they are.
                    "input" | "args" | "response" if field.is_object() => texts.push(field.to_string()),
                    name if SILENT.contains(&name) => {}
                    _ => gather(field, texts),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn images(value: &Value) -> u64 {
    match value {
        Value::Array(parts) => parts.iter().map(images).sum(),
        Value::Object(fields) => {
            let kind = fields.get("type").and_then(Value::as_str).unwrap_or_default();
            let image = ["image", "image_url", "input_image"].contains(&kind) || fields.contains_key("inlineData");
            if image { 1 } else { fields.values().map(images).sum() }
        }
        _ => 0,
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listen(self: Arc<Self>, listener: &TcpListener, wrap: &Wrap) {
        for socket in listener.incoming() {
            let mut state = self.state();
            if state.stopped {
                return;
            }
            let Ok(socket) = socket else { continue };
            let Ok(kept) = socket.try_clone() else { continue };
            let (shared, wrap, number) = (self.clone(), wrap.clone(), state.connections.len());
            let thread = thread::spawn(move || shared.converse(socket, &wrap, number));
            state.connections.push((kept, thread));
        }
    }

    fn converse(&self, socket: TcpStream, wrap: &Wrap, connection: usize) {
        // Each write is sent immediately.
        let _ = socket.set_nodelay(true);
        let Ok(below) = socket.try_clone() else { return };
        let mut wire = Wire::new(wrap(socket), below);
        while let Some(request) = wire.request() {
            let last = request.headers.iter().any(|(name, value)| name == "connection" && value == "close");
            let (at, reply) = self.take_in(request, connection);
            let said = wire.say(&reply);
            let mut state = self.state();
            state.asked[at].complete = said.is_ok();
            state.asked[at].closed_early = said.is_err();
            drop(state);
            self.changed.notify_all();
            if last || !matches!(said, Ok(http::After::Stays)) {
                break;
            }
        }
        wire.close();
    }

    /// Writes a request down and decides on its reply.
    fn take_in(&self, request: Request, connection: usize) -> (usize, Reply) {
        let body = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
        let Request { method, path, headers, .. } = request;
        let mut asked = Asked {
            format: self.format,
            method,
            path,
            headers,
            body,
            at: Instant::now(),
            connection,
            refused: None,
            complete: false,
            closed_early: false,
        };
        let mut state = self.state();
        let rules = state.rules.clone();
        asked.refused = refused(&asked, &rules);
        let scripted = if asked.refused.is_none() { state.script.pop_front() } else { None };
        let otherwise = state.otherwise.clone();
        let at = state.asked.len();
        state.asked.push(asked.clone());
        drop(state);
        self.changed.notify_all();
        // Outside the lock: what answers may look at the provider.
        let step = match &asked.refused {
            Some(Trouble::Overflow) if rules.refusal == Refusal::Words => {
                Step::overflow().body(&faults::overflow_without_numbers(self.format).to_string())
            }
            Some(trouble) => Step::trouble(trouble.clone()),
            None => scripted.unwrap_or_else(|| otherwise.step(&asked)),
        };
        (at, reply(&asked, &rules, step, at + 1))
    }
}

/// Objection of a strict provider of this format to a body, without a socket.
pub fn objection(format: Format, model: &str, body: Value) -> Option<String> {
    let headers = [("content-type", "application/json"), ("anthropic-version", "2023-06-01")];
    let asked = Asked {
        format,
        method: "POST".to_owned(),
        path: format.path(model),
        headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        body,
        at: Instant::now(),
        connection: 0,
        refused: None,
        complete: false,
        closed_early: false,
    };
    validity::check(&asked, None).err()
}

/// The provider's own objection to a request.
fn refused(asked: &Asked, rules: &Rules) -> Option<Trouble> {
    let (path, query) = asked.path.split_once('?').unwrap_or((&asked.path, ""));
    let known = match asked.format {
        Format::Anthropic if asked.method == "GET" && path == "/v1/models" => return None,
        Format::Anthropic => path == "/v1/messages",
        Format::OpenAiChat => path == "/v1/chat/completions",
        Format::OpenAiResponses => path == "/v1/responses" || path == "/v1/responses/compact",
        Format::Google => {
            let (model, verb) = path.split_once(':').unwrap_or((path, ""));
            let verb = verb == "generateContent" || verb == "streamGenerateContent";
            verb && model.strip_prefix("/v1beta/models/").is_some_and(|model| !model.is_empty() && !model.contains('/'))
        }
    };
    if !known || asked.method != "POST" {
        return Some(Trouble::NoSuchAddress(format!("{} {path}", asked.method)));
    }
    if rules.key.as_ref().is_some_and(|key| *key != key_of(asked)) {
        return Some(Trouble::Unauthorized);
    }
    if rules.strict {
        if query.contains("key=") {
            return Some(Trouble::Invalid("A key does not belong into an address.".to_owned()));
        }
        if let Err(message) = validity::check(asked, rules.output_limit) {
            return Some(Trouble::Invalid(message));
        }
    }
    let counted_output = match asked.format {
        Format::Anthropic | Format::OpenAiChat => asked.max_output().unwrap_or(0),
        Format::OpenAiResponses | Format::Google => 0,
    };
    rules.window.filter(|window| rules.tokens(asked) + counted_output > *window).map(|_| Trouble::Overflow)
}

/// The key as it stands in the header of the format.
fn key_of(asked: &Asked) -> String {
    let header = |name: &str| asked.header(name).unwrap_or_default();
    match asked.format {
        Format::Anthropic => header("x-api-key").to_owned(),
        Format::Google => header("x-goog-api-key").to_owned(),
        _ => header("authorization").strip_prefix("Bearer ").unwrap_or_default().to_owned(),
    }
}

/// Response of a step to the request with this number.
fn reply(asked: &Asked, rules: &Rules, step: Step, number: usize) -> Reply {
    let id = if asked.format == Format::Anthropic { "request-id" } else { "x-request-id" };
    let headers = vec![(id.to_owned(), format!("req_{number:06}"))];
    let Step { what, manner } = step;
    let facts = Facts {
        model: asked.model().to_owned(),
        tokens: rules.tokens(asked),
        max_output: asked.max_output(),
        window: match rules.refusal {
            Refusal::States(window) => Some(window),
            Refusal::Numbers | Refusal::Words => rules.window,
        },
        key: key_of(asked),
        number,
    };
    let (status, body) = match what {
        What::Hang => (200, Body::Never),
        What::Status { code, trouble, body } => {
            let (status, own) = faults::refusal(asked.format, &trouble, &facts);
            (code.unwrap_or(status), Body::Whole(body.unwrap_or_else(|| own.to_string()).into_bytes()))
        }
        What::Answer(answer) => {
            let turn = Turn {
                number,
                model: &facts.model,
                answer: &answer,
                usage: answer.usage.unwrap_or_else(|| counted(asked, rules, &answer)),
                pieces: manner.pieces,
                include_usage: asked.body["stream_options"]["include_usage"] == true,
            };
            let body = if asked.path.ends_with("/compact") {
                Body::Whole(formats::compacted(&turn, &asked.body["input"]).to_string().into_bytes())
            } else if asked.streams() && !manner.json {
                streamed(asked, &turn, manner.trouble.as_ref(), &facts)
            } else {
                Body::Whole(formats::body(asked.format, &turn).to_string().into_bytes())
            };
            (200, body)
        }
    };
    Reply { status, headers, body, manner }
}

fn streamed(asked: &Asked, turn: &Turn, trouble: Option<&Trouble>, facts: &Facts) -> Body {
    let mut events = formats::events(asked.format, turn);
    if let Some(trouble) = trouble {
        let end = events.iter().position(|event| event.place == Place::End).unwrap_or(events.len());
        let first = events.iter().position(|event| event.place == Place::Delta).map_or(end, |at| at + 1);
        events.truncate(first);
        events.extend(faults::events(asked.format, trouble, facts));
    }
    // Without being asked for events, Google streams the elements of an array.
    if asked.format == Format::Google && !asked.path.contains("alt=sse") {
        let chunks = events.iter().filter_map(|event| match &event.data {
            formats::Data::Json(value) => Some(value),
            formats::Data::Raw(_) => None,
        });
        return Body::Whole(json!(chunks.collect::<Vec<_>>()).to_string().into_bytes());
    }
    Body::Events(events)
}

/// The usage of an answer as this provider counts.
fn counted(asked: &Asked, rules: &Rules, answer: &Answer) -> Usage {
    let chars = |part: &Part| match part {
        Part::Text(text) | Part::Redacted(text) | Part::Thinking { text, .. } => text.chars().count(),
        Part::Call { name, args } => name.len() + args.to_string().len(),
        Part::Block(block) => block["content"].to_string().len(),
    };
    let output = answer.parts.iter().map(chars).sum::<usize>() as u64 / 4 + 1;
    let input = rules.tokens(asked).min(rules.truncated.unwrap_or(u64::MAX));
    Usage { input, output, cache_read: 0, cache_write: 0 }
}
