//! One case: a client of the real binary that takes steps, each from numbers of its own, so that a case without some of
//! its steps is a case too.

use super::{
    answering::answering,
    draw::{Draw, confine},
    known::Known,
    link::{Heard, Link},
    record::{Broken, Line, Record},
    requests::{self, sensible},
    spoiling::spoiled,
};
use crate::{support::Home, wire::Dice};
use abridged::wire::transport::Framing;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, HashSet},
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// It only bounds how long a failure hangs.
const LONG: Duration = Duration::from_secs(25);

/// Requests that wait for something are cancelled after this time.
const PATIENCE: Duration = Duration::from_secs(2);

pub struct Case {
    home: Home,
    link: Link,
    framing: Framing,
    handshake: Value,
    document: Value,
    record: Record,
    known: Known,
    /// Requests without an answer.
    waiting: HashSet<String>,
    later: Vec<Value>,
    next_id: u64,
    dice: Dice,
}

/// The end of a case.
pub struct Ended {
    pub broken: Option<Broken>,
    /// Steps that were taken.
    pub steps: usize,
    pub record: Record,
}

type Held = Result<(), Broken>;

/// Takes the steps with these numbers in the case of a seed.
pub fn run(seed: u64, steps: &[u64]) -> Ended {
    let mut dice = Dice::new(seed);
    let framing = if dice.below(2) == 0 { Framing::Ndjson } else { Framing::ContentLength };
    let home = Home::new();
    home.settings(&settings(&mut dice).to_string());
    for folder in ["project", "other", "out"] {
        fs::create_dir_all(home.path(folder)).expect("a folder");
    }
    let mut capabilities = json!({"llm": {}});
    if dice.below(3) == 0 {
        capabilities["modelSwitch"] = json!({});
    }
    if dice.below(3) == 0 {
        capabilities["hooks"] = json!({"events": ["session_before_compact", "session_compacting"], "timeoutMs": 200});
    }
    if dice.below(4) == 0 {
        capabilities["events"] = json!({"optOut": ["usage_updated", "compaction_progress"]});
    }
    let link = Link::start(&home, framing);
    let mut case = Case {
        handshake: json!({"protocolVersion": 1, "clientInfo": {"name": "fuzzer", "version": "1"}, "capabilities": capabilities}),
        home,
        link,
        framing,
        document: Value::Null,
        record: Record::new(),
        known: Known::default(),
        waiting: HashSet::new(),
        later: Vec::new(),
        next_id: 1,
        dice,
    };
    let mut taken = 0;
    let held = case.begin().and_then(|()| {
        for step in steps {
            taken += 1;
            case.dice = Dice::new(seed.rotate_left(32) ^ step.wrapping_mul(0xD6E8_FEB8_6659_FD93));
            case.step()?;
        }
        case.finish()
    });
    Ended { broken: held.err(), steps: taken, record: case.record }
}

fn settings(dice: &mut Dice) -> Value {
    let model = |id: &str, window: u64, to: Option<&str>| json!({"provider": "own", "id": id, "api": "client", "contextWindow": window, "maxOutputTokens": window / 8, "promoteTo": to});
    let mut models =
        [model("tiny", 4_096, Some("own/small")), model("small", 8_192, None), model("large", 32_768, None)];
    for model in &mut models {
        model.as_object_mut().expect("an object").retain(|_, value| !value.is_null());
    }
    json!({
        "defaultModel": "own/small",
        "models": models,
        "tokens": {"estimator": "chars"},
        "compaction": {
            "keepRecentTokens": 200 + dice.below(2_000), "reserveTokens": 500 + dice.below(1_500),
            "speculative": dice.below(2) == 0, "idleEnabled": dice.below(2) == 0, "idleTimeoutSeconds": 1,
            "idleThresholdTokens": 500, "stallSeconds": 1, "deadlineSeconds": 4,
        },
        "retry": {"maxRetries": 1, "baseDelayMs": 100, "maxDelayMs": 200},
    })
}

impl Case {
    fn begin(&mut self) -> Held {
        self.record.push(Line::Started)?;
        let greeting = self.handshake.clone();
        self.ask("initialize", greeting)?;
        if self.document.is_null() {
            self.document = self.ask("rpc.discover", json!({}))?.unwrap_or_default();
        }
        Ok(())
    }

    fn step(&mut self) -> Held {
        match self.dice.below(200) {
            0..140 => self.burst(),
            140..160 => self.stray(),
            160..170 => self.calm(),
            170..176 => self.reopen(),
            176..180 => self.restart(End::InOrder),
            180..185 => self.restart(End::Killed),
            185..188 => self.calm().and_then(|()| self.restart(End::Killed)),
            188..190 => self.batch(),
            _ => self.spoil(),
        }
    }

    fn home(&self) -> String {
        self.home.0.path().display().to_string()
    }

    /// Requests that make sense, one after the other or all at once.
    fn burst(&mut self) -> Held {
        let home = self.home();
        for (method, params) in sensible(&mut self.dice, &self.known, &home) {
            let waits = params["wait"] == true;
            let id = self.send(method, params)?;
            if !waits && self.dice.below(2) == 0 {
                self.until_answered(&id)?;
            }
        }
        self.some_later()?;
        let pause = if self.dice.below(16) == 0 { self.dice.below(1_200) } else { 0 };
        self.listen(Duration::from_millis(pause as u64))
    }

    /// A request that is valid by its schema alone, or not even that.
    fn stray(&mut self) -> Held {
        for _ in 0..1 + self.dice.below(3) {
            let home = self.home();
            let methods = self.document["methods"].as_array().cloned().unwrap_or_default();
            let method = self.dice.pick(&methods).clone();
            let name = method["name"].as_str().unwrap_or_default().to_owned();
            // These end the daemon, or are large without telling anything new.
            if ["exit", "shutdown", "rpc.discover"].contains(&name.as_str()) {
                continue;
            }
            let mut dice = Dice::new(self.dice.roll());
            let mut draw = Draw { dice: &mut dice, document: &self.document, known: &self.known };
            let mut params = draw.params(&method);
            if draw.dice.below(3) == 0 {
                draw.broken(&mut params);
            }
            if let Some(patch) = params.get_mut("patch") {
                harmless(patch);
            }
            // A hook may go without an answer, and the case does not wait for half a minute.
            if let ("hooks/set", Value::Object(params)) = (name.as_str(), &mut params) {
                params.insert("timeoutMs".to_owned(), json!(100 + self.dice.below(200)));
            }
            confine(&mut params, &home);
            self.send(&name, params)?;
        }
        Ok(())
    }

    /// Reading requests in one array.
    fn batch(&mut self) -> Held {
        let sessions: Vec<String> = self.known.sessions.iter().map(|session| session.id.clone()).collect();
        let mut frames = vec![self.frame("ping", json!({})), self.frame("models/list", json!({}))];
        for session in sessions.iter().take(3) {
            frames.push(self.frame("session/usage", json!({"sessionId": session})));
            frames.push(self.frame("session/entries", json!({"sessionId": session, "limit": 3})));
        }
        for frame in &frames {
            self.note(frame)?;
        }
        self.link.send(&Value::Array(frames));
        Ok(())
    }

    fn frame(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        // Ids of both kinds.
        let id = if self.next_id.is_multiple_of(3) { json!(format!("r{}", self.next_id)) } else { json!(self.next_id) };
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    }

    fn note(&mut self, frame: &Value) -> Held {
        self.waiting.insert(frame["id"].to_string());
        self.record.push(Line::Sent(frame.clone()))
    }

    /// Sends a request; its id.
    fn send(&mut self, method: &str, params: Value) -> Result<String, Broken> {
        let frame = self.frame(method, params);
        self.note(&frame)?;
        self.link.send(&frame);
        Ok(shown(&frame["id"]))
    }

    /// The result of a request; none if it failed.
    fn ask(&mut self, method: &str, params: Value) -> Result<Option<Value>, Broken> {
        let id = self.send(method, params)?;
        let from = self.record.len();
        self.until_answered(&id)?;
        let answers = |frame: &&Value| frame.get("method").is_none() && shown(&frame["id"]) == id;
        let frames = self.record.since(from).iter().filter_map(|line| match line {
            Line::Got(frame) => Some(frame),
            _ => None,
        });
        Ok(frames.into_iter().find(answers).and_then(|frame| frame.get("result")).cloned())
    }

    fn until_answered(&mut self, id: &str) -> Held {
        let end = Instant::now() + LONG;
        while self.waiting.contains(id) {
            self.hear(end)?;
        }
        Ok(())
    }

    /// Takes in what comes within a time.
    fn listen(&mut self, longest: Duration) -> Held {
        let end = Instant::now() + longest;
        loop {
            match self.link.hear(end.saturating_duration_since(Instant::now())) {
                Heard::Frame(frame) => self.take(frame)?,
                Heard::Nothing => return Ok(()),
                Heard::End => return self.died(),
            }
        }
    }

    /// Takes in the next frame, which has to come.
    fn hear(&mut self, end: Instant) -> Held {
        match self.link.hear(end.saturating_duration_since(Instant::now())) {
            Heard::Frame(frame) => self.take(frame),
            Heard::Nothing => self.record.push(Line::Overdue).and_then(|()| broken("it is late".to_owned())),
            Heard::End => self.died(),
        }
    }

    fn died(&mut self) -> Held {
        let log = self.link.log();
        self.record.push(Line::Logged(log.clone()))?;
        broken(format!("the daemon ended by itself: {log:.2000}"))
    }

    fn take(&mut self, frame: Value) -> Held {
        if let Value::Array(frames) = frame {
            return frames.into_iter().try_for_each(|frame| self.take(frame));
        }
        self.known.learn(&frame, self.record.asked(&frame));
        self.waiting.remove(&frame["id"].to_string());
        let question = frame.get("id").is_some() && frame["method"].is_string();
        self.record.push(Line::Got(frame.clone()))?;
        if question {
            let answers = answering(&mut self.dice, &frame);
            self.later.extend(answers.later);
            for answer in answers.now {
                self.reply(&answer)?;
            }
        }
        Ok(())
    }

    /// Answers a question of the daemon.
    fn reply(&mut self, answer: &Value) -> Held {
        self.record.push(Line::Sent(answer.clone()))?;
        self.link.send(answer);
        Ok(())
    }

    fn some_later(&mut self) -> Held {
        if self.dice.below(4) == 0 {
            for answer in std::mem::take(&mut self.later) {
                self.reply(&answer)?;
            }
        }
        Ok(())
    }

    fn open(&self) -> Vec<String> {
        self.known.sessions.iter().filter(|session| session.open).map(|session| session.id.clone()).collect()
    }

    /// Waits until nothing runs, and looks at every session and file.
    fn calm(&mut self) -> Held {
        let end = Instant::now() + LONG;
        let patience = if self.dice.below(3) == 0 { Duration::ZERO } else { PATIENCE };
        let patient = Instant::now() + patience;
        while !self.waiting.is_empty() && Instant::now() < patient {
            self.listen(Duration::from_millis(20))?;
        }
        if !self.waiting.is_empty() || patience.is_zero() {
            for session in self.open() {
                self.send("session/cancel", json!({"sessionId": session}))?;
            }
        }
        while !self.waiting.is_empty() {
            self.hear(end)?;
        }
        for session in self.open() {
            let mut patient = Some(Instant::now() + PATIENCE);
            while self.runs(&session)? {
                if Instant::now() > end {
                    return broken(format!("{session} does not come to rest"));
                }
                // A turn waits for its model, which this client may never answer.
                if patient.take_if(|patient| Instant::now() > *patient).is_some() {
                    self.send("session/cancel", json!({"sessionId": session}))?;
                }
                self.listen(Duration::from_millis(100))?;
            }
            self.context(&session)?;
            let format = *self.dice.pick(&["anthropic", "openai_chat", "openai_responses", "google"]);
            self.ask("session/context", json!({"sessionId": session, "format": format}))?;
        }
        self.look()
    }

    fn runs(&mut self, session: &str) -> Result<bool, Broken> {
        let status = self.ask("session/status", json!({"sessionId": session}))?;
        Ok(status
            .is_some_and(|status| status["session"]["status"]["type"] != "idle" || status["operations"] != json!([])))
    }

    fn context(&mut self, session: &str) -> Result<Option<Value>, Broken> {
        self.ask("session/context", json!({"sessionId": session}))
    }

    /// Every file in the home.
    fn look(&mut self) -> Held {
        let mut files = BTreeMap::new();
        collect(&self.home.path("data"), &mut files);
        self.record.push(Line::Files(files))
    }

    /// Closes and opens a session: the context is what it was.
    fn reopen(&mut self) -> Held {
        self.calm()?;
        let open: Vec<String> =
            self.known.sessions.iter().filter(|it| it.open && it.path.is_some()).map(|it| it.id.clone()).collect();
        for session in open {
            let from = self.record.len();
            let before = self.context(&session)?;
            self.ask("session/close", json!({"sessionId": session}))?;
            self.ask("session/load", json!({"sessionId": session}))?;
            self.compare(from, session, before)?;
        }
        Ok(())
    }

    /// Holds the context of a session against that from before; not if entries came since.
    fn compare(&mut self, from: usize, session: String, before: Option<Value>) -> Held {
        let after = self.context(&session)?;
        let appended = self.record.since(from).iter().any(|line| {
            matches!(line, Line::Got(frame) if frame["params"]["sessionId"] == session.as_str()
                && frame["params"]["event"]["type"] == "entry_appended")
        });
        match (before, after) {
            (Some(before), Some(after)) if !appended => self.record.push(Line::Reopened { session, before, after }),
            _ => Ok(()),
        }
    }

    /// Ends the process and starts another one on its files.
    fn restart(&mut self, how: End) -> Held {
        let open = self.open();
        // Nothing is under way after a calm: then each context has to be there again.
        let calm = self.waiting.is_empty();
        let from = self.record.len();
        let mut before = BTreeMap::new();
        if calm {
            for session in &open {
                if !self.runs(session)? {
                    before.insert(session.clone(), self.context(session)?);
                }
            }
        }
        self.stop(how)?;
        self.start()?;
        for session in open {
            self.ask("session/load", json!({"sessionId": session}))?;
            if let Some(before) = before.remove(&session) {
                self.compare(from, session, before)?;
            }
        }
        Ok(())
    }

    fn stop(&mut self, how: End) -> Held {
        match how {
            End::InOrder => self.link.end(),
            End::Killed => {
                for _ in 0..self.dice.below(12) {
                    if let Heard::Frame(frame) = self.link.hear(Duration::from_millis(3)) {
                        self.take(frame)?;
                    }
                }
                self.link.kill();
            }
        }
        loop {
            match self.link.hear(LONG) {
                // A client that closed the stream answers nothing.
                Heard::Frame(Value::Array(frames)) => {
                    frames.into_iter().try_for_each(|frame| self.record_only(frame))?
                }
                Heard::Frame(frame) => self.record_only(frame)?,
                Heard::Nothing => return broken("the daemon does not end".to_owned()),
                Heard::End => break,
            }
        }
        let log = self.link.log();
        self.record.push(Line::Logged(log))?;
        self.record.push(match how {
            End::InOrder => Line::Ended,
            End::Killed => Line::Killed,
        })?;
        self.waiting.clear();
        self.later.clear();
        self.known.ended();
        self.look()
    }

    fn record_only(&mut self, frame: Value) -> Held {
        self.known.learn(&frame, self.record.asked(&frame));
        self.record.push(Line::Got(frame))
    }

    fn start(&mut self) -> Held {
        self.link = Link::start(&self.home, self.framing);
        self.begin()
    }

    /// Breaks a session file while no process runs, and goes on with it.
    fn spoil(&mut self) -> Held {
        let paths: Vec<PathBuf> = self.known.sessions.iter().filter_map(|session| session.path.clone()).collect();
        if paths.is_empty() {
            return Ok(());
        }
        self.stop(End::InOrder)?;
        let path = self.dice.pick(&paths).clone();
        if let Ok(bytes) = fs::read(&path) {
            let bytes = spoiled(&mut self.dice, &bytes);
            fs::write(&path, &bytes).expect("a file");
            self.record.push(Line::Rewritten(path.clone(), bytes))?;
        }
        self.start()?;
        self.ask("session/load", json!({"path": path}))?;
        self.reopen()
    }

    /// The end of every case: all rest, open again as they were, and end in order.
    fn finish(&mut self) -> Held {
        self.reopen()?;
        self.stop(End::InOrder)
    }
}

#[derive(Debug, Clone, Copy)]
enum End {
    InOrder,
    Killed,
}

fn broken(why: String) -> Held {
    Err(Broken { rule: "the daemon goes on", why })
}

/// Settings of a random request neither run programs nor lead to other machines.
fn harmless(patch: &mut Value) {
    if let Value::Object(fields) = patch {
        fields.retain(|name, _| !["models", "trustedProjects", "defaultModel"].contains(&name.as_str()));
        if let Some(Value::Object(compaction)) = fields.get_mut("compaction") {
            compaction.retain(|name, _| name != "remoteEndpoint");
        }
    }
}

fn collect(folder: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if let Ok(bytes) = fs::read(&path) {
            files.insert(path, bytes);
        }
    }
}

/// An id as it stands on the wire.
fn shown(id: &Value) -> String {
    id.to_string()
}

/// The numbers of the steps of a whole case.
pub fn all_steps(count: u64) -> Vec<u64> {
    (1..=count).collect()
}

#[test]
fn the_settings_of_a_case_name_its_models() {
    let settings = settings(&mut Dice::new(1));
    for model in settings["models"].as_array().expect("models") {
        assert!(requests::MODELS.contains(&format!("own/{}", model["id"].as_str().expect("an id")).as_str()));
    }
}
