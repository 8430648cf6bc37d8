//! A client of the real binary.

use crate::held_to_schema::Dialogue;
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, channel},
    },
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Longer than anything takes, even on a busy machine: it only bounds how long a failure hangs.
pub const LONG: Duration = Duration::from_secs(60);

/// The variable with a folder where every daemon leaves its recording, and its frames beside it. With this folder in
/// `ABRIDGED_REPLAY` the test `recordings_of_random_histories_replay` compares them.
const RECORDED: &str = "ABRIDGED_RECORDINGS";

/// The binary under test.
pub fn binary() -> Command {
    Command::new(env!("CARGO_BIN_EXE_abridged"))
}

/// A daemon and a dialogue with it, line by line.
pub struct Daemon {
    pub home: Home,
    child: Child,
    to: Option<ChildStdin>,
    frames: Receiver<Value>,
    dialogue: Dialogue,
    paused: Arc<AtomicBool>,
    /// Notifications that came while an answer was waited for.
    pub events: Vec<Value>,
    next_id: u64,
}

/// Where a daemon keeps its things; gone with the test.
pub struct Home(pub TempDir);

impl Home {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder for the test"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn settings(&self, text: &str) {
        fs::create_dir_all(self.path("config")).expect("a folder");
        fs::write(self.path("config/settings.json"), text).expect("a file");
    }

    pub fn command(&self) -> Command {
        let mut command = binary();
        command
            .env("ABRIDGED_DATA_DIR", self.path("data"))
            .env("ABRIDGED_CONFIG_DIR", self.path("config"))
            .env_remove("ABRIDGED_DISABLE_AUTOCOMPACT");
        without_keys(&mut command);
        if let Some(folder) = std::env::var_os(RECORDED) {
            static NEXT: AtomicU64 = AtomicU64::new(0);
            let name = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
            command.env("ABRIDGED_RECORD", Path::new(&folder).join(name));
        }
        command
    }

    /// A session file of these lines.
    pub fn session(&self, name: &str, lines: &[Value]) -> PathBuf {
        let path = self.path(name);
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(&path, text).expect("a file");
        path
    }
}

/// Keys of whoever runs the tests would let a daemon ask real models.
pub fn without_keys(command: &mut Command) {
    for (name, _) in std::env::vars().filter(|(name, _)| name.ends_with("_API_KEY") || name.ends_with("_TOKEN")) {
        command.env_remove(name);
    }
}

impl Daemon {
    /// A daemon that was greeted.
    pub fn start() -> Self {
        Self::at(Home::new())
    }

    pub fn at(home: Home) -> Self {
        let mut daemon = Self::silent(home);
        daemon.ok("initialize", json!({"protocolVersion": 1, "clientInfo": {"name": "test", "version": "0"}}));
        daemon
    }

    /// A daemon that nobody has spoken to.
    pub fn silent(home: Home) -> Self {
        let command = home.command();
        Self::of(home, command)
    }

    pub fn of(home: Home, mut command: Command) -> Self {
        let recording = command.get_envs().find(|(name, _)| *name == "ABRIDGED_RECORD").and_then(|(_, value)| value);
        let mut copy =
            recording.map(|path| fs::File::create(Path::new(path).with_extension("frames")).expect("a file"));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the binary starts");
        let to = child.stdin.take();
        let from = BufReader::new(child.stdout.take().expect("a pipe"));
        let (frames, received) = channel();
        let paused = Arc::new(AtomicBool::new(false));
        let waits = paused.clone();
        std::thread::spawn(move || {
            for line in from.lines() {
                let Ok(line) = line else { return };
                if let Some(copy) = &mut copy {
                    writeln!(copy, "{line}").expect("it is written");
                }
                while waits.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_millis(5));
                }
                let frame =
                    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error} in a line of stdout: {line}"));
                if frames.send(frame).is_err() {
                    return;
                }
            }
        });
        Self {
            home,
            child,
            to,
            frames: received,
            dialogue: Dialogue::default(),
            paused,
            events: Vec::new(),
            next_id: 1,
        }
    }

    /// Writes bytes as they are.
    pub fn write(&mut self, bytes: &[u8]) {
        let to = self.to.as_mut().expect("stdin is open");
        to.write_all(bytes).and_then(|()| to.flush()).expect("the daemon reads");
    }

    pub fn send(&mut self, frame: &Value) {
        if let (Some(id), Some(method)) = (frame.get("id"), frame["method"].as_str()) {
            self.dialogue.sent(id, method);
        }
        self.write(format!("{frame}\n").as_bytes());
    }

    /// An id for a request that is sent by other means.
    pub fn take_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }

    /// Sends a request without waiting; its id.
    pub fn begin(&mut self, method: &str, params: Value) -> u64 {
        let id = self.take_id();
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// The next frame, whatever it is.
    pub fn frame(&mut self) -> Value {
        match self.frames.recv_timeout(LONG) {
            Ok(frame) => self.held_to_schema(frame),
            Err(RecvTimeoutError::Timeout) => {
                panic!("the daemon says nothing; so far: {:#?}", self.events)
            }
            Err(RecvTimeoutError::Disconnected) => {
                panic!("the daemon ended; so far: {:#?}", self.events)
            }
        }
    }

    /// The next frame, if one comes soon enough.
    pub fn frame_within(&mut self, longest: Duration) -> Option<Value> {
        self.frames.recv_timeout(longest).ok().map(|frame| self.held_to_schema(frame))
    }

    /// A frame that is as the schema says.
    fn held_to_schema(&self, frame: Value) -> Value {
        let problem = self.dialogue.problem(&frame);
        assert!(problem.is_none(), "{}: {:.2000}", problem.unwrap_or_default(), frame.to_string());
        frame
    }

    /// The next frame that is wanted, if one comes in time; those before it are kept.
    pub fn next_within(&mut self, time: Duration, wanted: impl Fn(&Value) -> bool) -> Option<Value> {
        let end = Instant::now() + time;
        loop {
            let frame = self.frame_within(end.saturating_duration_since(Instant::now()))?;
            if wanted(&frame) {
                return Some(frame);
            }
            self.events.push(frame);
        }
    }

    /// Stops reading what the daemon says.
    pub fn pause(&self) {
        self.paused.store(true, Ordering::SeqCst);
    }

    /// Reads again.
    pub fn resume(&self) {
        self.paused.store(false, Ordering::SeqCst);
    }

    /// The answer to a request; what comes before it is kept.
    pub fn answer(&mut self, id: u64) -> Result<Value, Value> {
        let answers = |frame: &Value| frame["id"] == id && frame.get("method").is_none();
        let frame = match self.events.iter().position(answers) {
            Some(at) => self.events.remove(at),
            None => loop {
                let frame = self.frame();
                if answers(&frame) {
                    break frame;
                }
                self.events.push(frame);
            },
        };
        match frame.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(frame["result"].clone()),
        }
    }

    pub fn call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.begin(method, params);
        self.answer(id)
    }

    pub fn ok(&mut self, method: &str, params: Value) -> Value {
        self.call(method, params).unwrap_or_else(|error| panic!("{method} failed: {error:#}"))
    }

    /// The error of a request that must fail.
    pub fn err(&mut self, method: &str, params: Value) -> Value {
        match self.call(method, params) {
            Err(error) => error,
            Ok(result) => panic!("{method} must fail, but answered {result:#}"),
        }
    }

    /// Waits for an event of this type; those before it are kept.
    pub fn until(&mut self, kind: &str) -> Value {
        if let Some(at) = self.events.iter().position(|frame| frame["params"]["event"]["type"] == kind) {
            return self.events[at].clone();
        }
        loop {
            let frame = self.frame();
            let found = frame["params"]["event"]["type"] == kind;
            self.events.push(frame.clone());
            if found {
                return frame;
            }
        }
    }

    /// The types of the events so far, of one operation or all.
    pub fn kinds(&self) -> Vec<String> {
        let kind = |frame: &Value| frame["params"]["event"]["type"].as_str().map(str::to_owned);
        self.events.iter().filter_map(kind).collect()
    }

    /// Number of the events of this type so far.
    pub fn count(&self, kind: &str) -> usize {
        self.kinds().iter().filter(|known| *known == kind).count()
    }

    /// The events since `from` in their order: types and params. Those that a daemon may leave out are skipped.
    pub fn events_since(&self, from: usize) -> Vec<(String, Value)> {
        const OPTIONAL: [&str; 3] = ["compaction_progress", "summary_chunk", "usage_updated"];
        let sent = self.events[from..].iter().map(|frame| &frame["params"]);
        sent.map(|params| (params["event"]["type"].as_str().expect("a type").to_owned(), params.clone()))
            .filter(|(kind, _)| !OPTIONAL.contains(&kind.as_str()))
            .collect()
    }

    /// Makes a session; its id.
    pub fn new_session(&mut self, params: Value) -> String {
        let answer = self.ok("session/new", params);
        answer["session"]["sessionId"].as_str().expect("an id").to_owned()
    }

    pub fn append(&mut self, session: &str, messages: &[Value]) -> Value {
        self.ok("session/append", json!({"sessionId": session, "messages": messages}))
    }

    /// Compacts a session to so many recent tokens; what was written.
    pub fn compact(&mut self, session: &str, keep: u64) -> Value {
        let params = json!({"sessionId": session, "keepRecentTokens": keep, "wait": true});
        let answer = self.ok("session/compact", params);
        assert_eq!(answer["outcome"], "completed", "{answer:#}");
        answer["result"].clone()
    }

    /// The context behind the maintenance that is due.
    pub fn context(&mut self, session: &str) -> Value {
        self.ok("session/context", json!({"sessionId": session, "wait": true}))
    }

    pub fn load(&mut self, path: &Path) -> String {
        let answer = self.ok("session/load", json!({"path": path}));
        answer["session"]["sessionId"].as_str().expect("an id").to_owned()
    }

    /// Ends stdin and waits; everything still said goes to `events`.
    pub fn end(&mut self) -> (ExitStatus, Duration) {
        let started = Instant::now();
        self.to = None;
        let status = self.wait();
        (status, started.elapsed())
    }

    pub fn wait(&mut self) -> ExitStatus {
        const STEP: Duration = Duration::from_millis(5);
        let end = Instant::now() + LONG;
        loop {
            // A closed stdout answers at once, and the process ends later.
            match self.frames.recv_timeout(STEP) {
                Ok(frame) => {
                    self.events.push(frame);
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(STEP),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                while let Ok(frame) = self.frames.recv_timeout(Duration::from_millis(50)) {
                    self.events.push(frame);
                }
                return status;
            }
            assert!(Instant::now() < end, "the daemon does not end");
        }
    }

    pub fn kill(&mut self) {
        self.child.kill().expect("a child can be killed");
        self.child.wait().expect("a child can be waited for");
    }

    /// Kills the process, and starts another one on its files.
    pub fn restarted(mut self) -> Self {
        self.kill();
        Self::at(std::mem::replace(&mut self.home, Home::new()))
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The types of events. Equal neighbours are one: several entries are announced one after the other.
pub fn names(events: &[(String, Value)]) -> Vec<&str> {
    let mut names: Vec<&str> = events.iter().map(|(kind, _)| kind.as_str()).collect();
    names.dedup();
    names
}

/// The first event of this type.
pub fn event<'a>(events: &'a [(String, Value)], kind: &str) -> &'a Value {
    let found = events.iter().find(|(it, _)| it == kind);
    &found.unwrap_or_else(|| panic!("no {kind} in {:?}", names(events))).1["event"]
}

/// Runs a test for each of these at the same time, so that their waits overlap.
pub fn at_once<T: Send>(of: impl IntoIterator<Item = T>, test: impl Fn(T) + Sync) {
    std::thread::scope(|scope| {
        let test = &test;
        for one in of {
            scope.spawn(move || test(one));
        }
    });
}

/// Runs a command to its end: its code and what it printed.
pub fn run(mut command: Command) -> (Option<i32>, String, String) {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
    let mut err = child.stderr.take().expect("a pipe");
    let errors = std::thread::spawn(move || {
        let mut text = String::new();
        err.read_to_string(&mut text).map(|_| text).unwrap_or_default()
    });
    let mut out = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut out).expect("text");
    let status = child.wait().expect("a child can be waited for");
    (status.code(), out, errors.join().expect("the reader ends"))
}

/// A session's header.
pub fn header(id: &str) -> Value {
    json!({"type": "session", "version": 3, "id": id, "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/project"})
}

/// Entries of messages, each behind the one before.
pub fn entries(messages: &[Value]) -> Vec<Value> {
    let entry = |(at, message): (usize, &Value)| {
        let parent = if at == 0 { Value::Null } else { json!(format!("e{}", at - 1)) };
        json!({"type": "message", "id": format!("e{at}"), "parentId": parent, "timestamp": "2026-01-01T00:00:00.000Z", "message": message})
    };
    messages.iter().enumerate().map(entry).collect()
}

/// A text of exactly so many tokens by the peers' count, about `topic`.
pub fn text_of(tokens: usize, topic: &str) -> String {
    let sentence = format!("The {topic} module reads {topic}_value from src/{topic}.rs. ");
    let mut text = sentence.repeat(tokens * 4 / sentence.len() + 1);
    text.truncate(tokens * 4);
    text
}

pub fn user(text: &str) -> Value {
    json!({"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1})
}

pub fn assistant(text: &str) -> Value {
    json!({"role": "assistant", "content": [{"type": "text", "text": text}], "stopReason": "stop", "timestamp": 1})
}

/// An answer that failed with this error.
pub fn failed(error: &str) -> Value {
    json!({"role": "assistant", "content": [], "stopReason": "error", "errorMessage": error, "timestamp": 1})
}

pub fn calls(ids: &[&str]) -> Value {
    let call = |id: &&str| json!({"type": "toolCall", "id": id, "name": "read", "arguments": {"path": format!("src/{id}.rs")}});
    json!({"role": "assistant", "content": ids.iter().map(call).collect::<Vec<_>>(), "stopReason": "toolUse", "timestamp": 1})
}

pub fn result(id: &str, text: &str) -> Value {
    json!({"role": "toolResult", "toolCallId": id, "toolName": "read", "content": [{"type": "text", "text": text}], "isError": false, "timestamp": 1})
}

/// A model of settings with this window.
pub fn model(id: &str, window: u64) -> Value {
    json!({"provider": "p", "id": id, "contextWindow": window})
}

/// A conversation of so many turns, each of a request, a call, its result and an answer of about 300 tokens in all.
pub fn turns(count: usize) -> Vec<Value> {
    (0..count)
        .flat_map(|turn| {
            let id = format!("call{turn}");
            [
                user(&format!("Request {turn}: look at part_{turn}. You must never change part_{turn}.lock.")),
                calls(&[&id]),
                result(&id, &text_of(200, &format!("part_{turn}"))),
                assistant(&format!(
                    "Looked at part_{turn}: it is fine because value_{turn} is set. {}",
                    text_of(40, "answer")
                )),
            ]
        })
        .collect()
}

/// A session file with a header and these messages.
pub fn session_of(home: &Home, name: &str, messages: &[Value]) -> PathBuf {
    let lines: Vec<Value> = std::iter::once(header(name)).chain(entries(messages)).collect();
    home.session(&format!("{name}.jsonl"), &lines)
}

/// A session with the models `p/large` and `p/small` and a history of 20,000 tokens by characters.
pub fn long_session(daemon: &mut Daemon, compaction: &Value) -> String {
    let settings = json!({
        "tokens": {"estimator": "chars"},
        "models": [model("large", 100_000), model("small", 16_000)],
        "compaction": compaction,
    });
    let session = daemon.new_session(json!({"cwd": "/project", "model": "p/large", "settings": settings}));
    let history =
        [user(&text_of(10_000, "one")), assistant("Read."), user(&text_of(10_000, "two")), assistant("Read, too.")];
    assert_eq!(daemon.append(&session, &history)["next"]["type"], "none");
    session
}
