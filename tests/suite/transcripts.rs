//! The golden dialogues under `protocol/transcripts/`, played against the real daemon: what the client says is sent,
//! what the daemon says is compared, and each frame is held against `protocol/schema.json`.
//!
//! `UPDATE_TRANSCRIPTS=1 cargo test transcripts` writes down what the daemon says now.

use crate::{
    json_schema,
    support::{Daemon, Home, at_once},
};
use abridged::protocol::{codes::CODES, schema, transcripts};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

/// Longer than the daemon ever takes between two frames of one thought. Only writing transcripts anew waits for it.
const SILENCE: Duration = Duration::from_millis(400);

/// Counts by characters: a count by the tokenizer comes when its tables are loaded, and nobody knows when that is. No line
/// names the file: sizes would depend on the length of its path.
const SETTINGS: &str = r#"{ "tokens": { "estimator": "chars" }, "compaction": { "transcriptHint": false } }"#;

/// Keys whose text is an id, and what kind of id.
const IDS: [(&str, &str); 22] = [
    ("newSessionId", "sessionId"),
    ("sessionId", "sessionId"),
    ("entryId", "entryId"),
    ("entryIds", "entryId"),
    ("leafEntryId", "entryId"),
    ("parentId", "entryId"),
    ("parentEntryId", "entryId"),
    ("firstKeptEntryId", "entryId"),
    ("compactionEntryId", "entryId"),
    ("expectedLeafId", "entryId"),
    ("nextCursor", "entryId"),
    ("targetId", "entryId"),
    ("targetEntryId", "entryId"),
    ("oldLeafId", "entryId"),
    ("newLeafId", "entryId"),
    ("commonAncestorId", "entryId"),
    ("summaryEntryId", "entryId"),
    ("fromId", "entryId"),
    ("undone", "entryId"),
    ("operationId", "operationId"),
    ("epoch", "epoch"),
    ("planHash", "planHash"),
];

/// Keys whose value is another one each time.
const TIMES: [&str; 8] = ["ts", "timestamp", "createdAt", "updatedAt", "startedAt", "durationMs", "remainingMs", "pid"];

struct Line {
    text: String,
    value: Value,
}

fn read(text: &str) -> Vec<Line> {
    let line = |text: &str| Line {
        text: text.to_owned(),
        value: serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}")),
    };
    text.lines().map(line).collect()
}

/// A dialogue that is being held.
struct Dialogue {
    daemon: Daemon,
    names: Names,
    sent: Vec<Value>,
    received: Vec<Value>,
    /// Frames that arrived before their turn.
    early: VecDeque<Value>,
}

impl Dialogue {
    fn begin(lines: &[Line]) -> Self {
        let home = Home::new();
        home.settings(SETTINGS);
        let names = Names::of(lines, &home.0.path().canonicalize().expect("a folder"));
        Self { daemon: Daemon::silent(home), names, sent: Vec::new(), received: Vec::new(), early: VecDeque::new() }
    }

    /// Lays a session file where the dialogue needs one.
    fn set_up(&self, line: &Value) {
        let lines: Vec<&Value> = line["lines"].as_array().expect("lines").iter().collect();
        let (header, entries) = lines.split_first().expect("a header");
        let times = line["times"].as_u64().unwrap_or(1);
        let mut text = format!("{header}\n");
        for _ in 0..times {
            // A text stands for a line that is no JSON.
            entries
                .iter()
                .for_each(|it| text.push_str(&format!("{}\n", it.as_str().map_or(it.to_string(), str::to_owned))));
        }
        text.push_str(line["torn"].as_str().unwrap_or_default());
        fs::write(self.daemon.home.path(line["file"].as_str().expect("a name")), text).expect("a file");
    }

    fn say(&mut self, line: &Value) {
        match line["raw"].as_str() {
            Some(raw) => self.daemon.write(format!("{raw}\n").as_bytes()),
            None => {
                let frame = self.names.spoken(&line["frame"]);
                self.daemon.send(&frame);
                self.sent.push(frame);
            }
        }
    }

    /// The next request of the daemon, or the next frame that is none. Requests come by a way of their own: which of the
    /// events around them they overtake is another one each time.
    fn next(&mut self, request: bool) -> Value {
        let wanted = |frame: &Value| asks(frame).is_some() == request;
        if let Some(at) = self.early.iter().position(wanted) {
            return self.early.remove(at).unwrap_or_default();
        }
        loop {
            let frame = self.daemon.frame();
            if wanted(&frame) {
                return frame;
            }
            self.early.push_back(frame);
        }
    }

    /// Frame of the daemon in the form of a transcript.
    fn heard(&mut self, frame: Value) -> Value {
        let written = self.names.written(&frame);
        self.received.push(frame);
        written
    }

    /// Writes down what the daemon says: until what the client waits for, or until nothing is expected any more.
    fn listen(&mut self, awaited: Option<&str>, out: &mut String) {
        loop {
            let next = match awaited.is_some() || self.expecting() {
                true => Some(self.daemon.frame()),
                false => self.daemon.frame_within(SILENCE),
            };
            let Some(frame) = next else { return };
            let frame = self.heard(frame);
            out.push_str(&format!("{}\n", json!({ "direction": "server", "frame": frame })));
            if awaited.is_some_and(|awaited| is(&frame, awaited)) {
                return;
            }
        }
    }

    /// Whether an answer, or the end of something that began, is still to come.
    fn expecting(&self) -> bool {
        let asks = |it: &&Value| it.get("id").is_some_and(|id| id.is_string() || id.is_i64());
        let requests = requests(&self.sent).filter(asks).count();
        let answers = answers(&self.received).filter(|it| !it["id"].is_null()).count();
        let events = |kind: &str| self.received.iter().filter(|it| it["params"]["event"]["type"] == kind).count();
        answers < requests || events("settled") < events("compaction_start")
    }

    /// The daemon has said all, and every frame of both is what the schema says.
    fn end(mut self, name: &str) {
        let (status, _) = self.daemon.end();
        assert!(status.success(), "{name}: the daemon ended with {status}");
        let more = self.early.iter().chain(&self.daemon.events).collect::<Vec<_>>();
        assert!(more.is_empty(), "{name}: it said more: {more:#?}");
        let schema = schema::schema();
        let errors: BTreeMap<String, Value> =
            answers(&self.received).map(|it| (it["id"].to_string(), it["error"]["data"]["code"].clone())).collect();
        let methods: BTreeMap<String, Value> =
            requests(&self.sent).map(|it| (it["id"].to_string(), it["method"].clone())).collect();
        for request in requests(&self.sent) {
            let refused = errors.get(&request["id"].to_string()).and_then(Value::as_str).unwrap_or_default();
            let Some(params) = request["method"].as_str().and_then(|method| params_of(&schema, method)) else {
                assert!(["method_not_found", "invalid_request"].contains(&refused), "{name}: {request}");
                continue;
            };
            let problem = json_schema::problem(&schema, params, request.get("params").unwrap_or(&json!({})));
            match refused {
                "invalid_params" => {
                    assert!(problem.is_some(), "{name}: the schema takes what the daemon refuses: {request}")
                }
                _ => assert_eq!(problem, None, "{name}: {request}"),
            }
        }
        self.end_of_client_requests(name, &schema);
        for frame in self.received.iter().flat_map(each) {
            assert_eq!(frame["jsonrpc"], "2.0", "{name}: {frame}");
            let (schema_of_it, value) = match (frame["method"].as_str(), frame.get("error")) {
                (Some(method), _) => (params_of(&schema, method), &frame["params"]),
                (None, Some(error)) => {
                    let named = (error["code"].as_i64(), error["data"]["code"].as_str());
                    assert!(
                        CODES.iter().any(|(number, name)| named == (Some(i64::from(*number)), Some(*name))),
                        "{name}: {error}"
                    );
                    (schema["properties"].get("error"), error)
                }
                (None, None) => {
                    let method = methods.get(&frame["id"].to_string()).and_then(Value::as_str).unwrap_or_default();
                    (schema["properties"][method]["properties"].get("result"), &frame["result"])
                }
            };
            let schema_of_it = schema_of_it.unwrap_or_else(|| panic!("{name}: no schema for {frame}"));
            assert_eq!(json_schema::problem(&schema, schema_of_it, value), None, "{name}: {frame}");
        }
    }

    /// The client has answered each request of the daemon, and the daemon has sent each request that is answered.
    fn end_of_client_requests(&self, name: &str, schema: &Value) {
        let asked = requests(&self.received).filter(|it| it.get("id").is_some());
        let mut asked: BTreeMap<String, &str> =
            asked.map(|it| (it["id"].to_string(), it["method"].as_str().unwrap_or_default())).collect();
        for answer in answers(&self.sent) {
            // An answer that nobody asked for is forgotten by the daemon too.
            let Some(method) = asked.remove(&answer["id"].to_string()) else { continue };
            if answer.get("error").is_none() {
                let result = schema["properties"][method]["properties"].get("result");
                let result = result.unwrap_or_else(|| panic!("{name}: no schema for {answer}"));
                assert_eq!(json_schema::problem(schema, result, &answer["result"]), None, "{name}: {answer}");
            }
        }
        assert!(asked.is_empty(), "{name}: nobody answered {asked:?}");
    }
}

fn params_of<'a>(schema: &'a Value, method: &str) -> Option<&'a Value> {
    schema["properties"].get(method)?["properties"].get("params")
}

/// The messages of a frame: more than one in a batch.
fn each(frame: &Value) -> &[Value] {
    frame.as_array().map_or_else(|| std::slice::from_ref(frame), Vec::as_slice)
}

fn requests(frames: &[Value]) -> impl Iterator<Item = &Value> {
    frames.iter().flat_map(each).filter(|frame| frame.get("result").is_none() && frame.get("error").is_none())
}

fn answers(frames: &[Value]) -> impl Iterator<Item = &Value> {
    frames.iter().flat_map(each).filter(|frame| frame.get("method").is_none())
}

/// Values that differ in each run, with their names in a transcript.
struct Names {
    home: String,
    /// Texts the client made up: they are the same each time.
    fixed: BTreeSet<String>,
    given: Vec<(String, String)>,
    counts: BTreeMap<&'static str, usize>,
}

impl Names {
    fn of(lines: &[Line], home: &Path) -> Self {
        let mut fixed = BTreeSet::new();
        for line in lines.iter().filter(|line| line.value["direction"] != "server") {
            strings(&line.value, &mut |text| fixed.extend([text.to_owned()]));
        }
        Self { home: home.display().to_string(), fixed, given: Vec::new(), counts: BTreeMap::new() }
    }

    /// A client's frame with the real ids in it.
    fn spoken(&self, frame: &Value) -> Value {
        let spoken = map_strings(frame, "", &mut |_, text| {
            let text = text.replace("<home>", &self.home);
            self.given.iter().fold(text, |text, (real, name)| text.replace(name.as_str(), real))
        });
        strings(&spoken, &mut |text| {
            assert!(!text.contains("Id:") && !text.contains("<epoch:"), "nobody has said {text} yet");
        });
        spoken
    }

    /// A frame of the daemon with names in it.
    fn written(&mut self, frame: &Value) -> Value {
        self.learn("", frame);
        map_strings(frame, "", &mut |key, value| match value {
            _ if key == "version" => "<version>".into(),
            _ if key == "contextId" => "<contextId>".into(),
            _ if TIMES.contains(&key) => "<ts>".into(),
            text => {
                let text = text.replace(&self.home, "<home>");
                let text = self.given.iter().fold(text, |text, (real, name)| text.replace(real.as_str(), name));
                without_time(&text)
            }
        })
    }

    fn learn(&mut self, key: &str, value: &Value) {
        match value {
            Value::String(id) => {
                let Some((_, kind)) = IDS.iter().find(|(name, _)| *name == key) else { return };
                if self.fixed.contains(id) || self.given.iter().any(|(real, _)| real == id) {
                    return;
                }
                let count = self.counts.entry(kind).or_default();
                *count += 1;
                self.given.push((id.clone(), format!("<{kind}:{count}>")));
            }
            Value::Array(items) => items.iter().for_each(|item| self.learn(key, item)),
            Value::Object(map) => {
                // An entry's own id is called `id`, as is a request's, which is the client's business.
                let entry = map.contains_key("parentId");
                map.iter()
                    .for_each(|(key, value)| self.learn(if entry && key == "id" { "entryId" } else { key }, value));
            }
            _ => {}
        }
    }
}

/// The name of a session's file begins with a time.
fn without_time(text: &str) -> String {
    match text.find("_<sessionId:") {
        Some(at) if at >= 24 && text.is_char_boundary(at - 24) && text[at - 24..at].ends_with('Z') => {
            format!("{}<ts>{}", &text[..at - 24], &text[at..])
        }
        _ => text.to_owned(),
    }
}

fn strings(value: &Value, visit: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(items) => items.iter().for_each(|item| strings(item, visit)),
        Value::Object(map) => map.values().for_each(|value| strings(value, visit)),
        _ => {}
    }
}

/// Each text through `change`, with its key; each number that is a time becomes 0.
fn map_strings(value: &Value, key: &str, change: &mut impl FnMut(&str, &str) -> String) -> Value {
    match value {
        Value::String(text) => change(key, text).into(),
        Value::Number(_) if TIMES.contains(&key) => json!(0),
        // Not in each dialogue what `rpc.discover` says.
        Value::Array(_) if key == "methods" => json!(["<methods>"]),
        Value::Array(items) => items.iter().map(|item| map_strings(item, key, change)).collect(),
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), map_strings(value, key, change))).collect(),
        other => other.clone(),
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("protocol/transcripts")
}

/// Plays a transcript and compares.
fn play(name: &str, text: &str) {
    let lines = read(text);
    let mut dialogue = Dialogue::begin(&lines);
    for (at, Line { value, .. }) in lines.iter().enumerate() {
        match value["direction"].as_str() {
            Some("note") => {}
            Some("setup") => dialogue.set_up(value),
            Some("client") => dialogue.say(value),
            Some("server") => {
                let frame = dialogue.next(asks(&value["frame"]).is_some());
                let frame = dialogue.heard(frame);
                let place = format!("{name}.jsonl, line {}", at + 1);
                assert!(
                    frame == value["frame"],
                    "{place}: the daemon says something else\nwritten: {}\nsaid:    {frame}\nUPDATE_TRANSCRIPTS=1 cargo test transcripts writes it down, if it is right",
                    value["frame"]
                );
            }
            other => panic!("{name}: {other:?} is no direction"),
        }
    }
    dialogue.end(name);
}

/// The method of a frame that asks the client.
fn asks(frame: &Value) -> Option<&str> {
    frame["method"].as_str().filter(|_| frame.get("id").is_some())
}

/// Whether a frame is what a client waits for: an event of this type, a request of this name, or any `answer`.
fn is(frame: &Value, awaited: &str) -> bool {
    match (asks(frame), frame["params"]["event"]["type"].as_str()) {
        (Some(method), _) => method == awaited,
        (None, Some(kind)) => kind == awaited,
        (None, None) => awaited == "answer",
    }
}

/// Plays the client's part and writes down what the daemon says.
fn write_anew(name: &str, text: &str) {
    let lines = read(text);
    let mut dialogue = Dialogue::begin(&lines);
    let mut out = String::new();
    // Frames between two frames of the client belong to the second.
    let mut before = String::new();
    for Line { text, value } in lines.iter().filter(|line| line.value["direction"] != "server") {
        if value["direction"] == "client" {
            dialogue.listen(value["after"].as_str(), &mut out);
            out.push_str(&std::mem::take(&mut before));
            out.push_str(&format!("{text}\n"));
            dialogue.say(value);
        } else {
            before.push_str(&format!("{text}\n"));
            if value["direction"] == "setup" {
                dialogue.set_up(value);
            }
        }
    }
    dialogue.listen(None, &mut out);
    dialogue.end(name);
    fs::write(folder().join(format!("{name}.jsonl")), out).expect("a file");
}

#[test]
fn transcripts_are_what_the_daemon_says() {
    let anew = std::env::var_os("UPDATE_TRANSCRIPTS").is_some();
    at_once(transcripts::ALL, |transcript| {
        if anew {
            let text = fs::read_to_string(folder().join(format!("{}.jsonl", transcript.name))).expect("a transcript");
            write_anew(transcript.name, &text);
        } else {
            play(transcript.name, transcript.text);
        }
    });
}

#[test]
fn transcripts_that_are_there_are_shipped() {
    let files: BTreeSet<String> = fs::read_dir(folder())
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    let shipped: BTreeSet<String> = transcripts::ALL.iter().map(|it| format!("{}.jsonl", it.name)).collect();
    assert_eq!(files, shipped, "src/protocol/transcripts.rs lists those that are shipped");
}
