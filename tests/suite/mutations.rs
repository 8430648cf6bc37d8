//! Frames as nobody would send them, and as they may arrive.

use crate::{
    mutator::{mutant, mutate, mutations, seed},
    parsers::owed::{Owed, answered},
    support::{self, Home, assistant, calls, result, user},
    wire::{Dice, first_frame},
};
use abridged::{
    daemon::{Daemon, Places},
    wire::{
        outbox::Outbox,
        rpc::Service,
        transport::{Chosen, FrameReader, Framing, Inbound, LARGEST_FRAME},
    },
};
use serde_json::{Value, json};
use std::{
    io::{self, BufReader, Read, Write},
    sync::{Arc, Condvar, Mutex},
    time::{Duration, Instant},
};

/// It only bounds how long a failure hangs.
const LONG: Duration = Duration::from_secs(60);

/// A daemon is given up after so many frames, so that the long version is many short sessions and not one huge one.
const FRAMES_OF_A_DAEMON: usize = 2_500;

/// Frames that are sent before their answers are waited for: fewer than are refused as too many.
const BATCH: usize = 50;

/// Frames of a client, without requests that end the daemon or write files at a path of their params.
fn frames(session: &str) -> Vec<String> {
    let of_session = |more: Value| {
        let mut params = json!({"sessionId": session});
        params.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        params
    };
    let messages = json!([user("hello"), calls(&["c1"]), result("c1", "text"), assistant("bye")]);
    let calls = [
        ("initialize", json!({"protocolVersion": 1, "clientInfo": {"name": "c", "version": "1"}})),
        ("initialized", json!({})),
        ("ping", json!({})),
        ("rpc.discover", json!([])),
        ("models/list", json!({})),
        ("models/forget", json!({"model": "p/m"})),
        ("settings/get", of_session(json!({}))),
        ("hooks/set", json!({"events": ["session_compacting"], "sessionIds": [session], "timeoutMs": 200})),
        ("settings/set", of_session(json!({"scope": "session", "patch": {"compaction": {"keepRecentTokens": 9}}}))),
        ("session/new", json!({"cwd": "/p", "title": "t", "ephemeral": true, "settings": {"prune": {}}})),
        ("session/load", of_session(json!({"readOnly": true}))),
        ("session/list", json!({"cwd": "/p", "search": "x", "limit": 3})),
        ("session/status", of_session(json!({}))),
        ("session/usage", of_session(json!({}))),
        ("session/configure", of_session(json!({"model": "p/m", "thinkingLevel": "high", "title": null}))),
        ("session/append", of_session(json!({"messages": messages}))),
        ("session/append", of_session(json!({"messages": [user("u")], "parentEntryId": "x", "expectedLeafId": "y"}))),
        ("session/context", of_session(json!({"format": "messages", "wait": true}))),
        ("session/entries", of_session(json!({"branch": "all", "types": ["message"], "limit": 5, "maxBytes": 999}))),
        ("session/entry", of_session(json!({"entryId": "x"}))),
        ("session/search", of_session(json!({"query": "hello", "limit": 2}))),
        ("session/tree", of_session(json!({"limit": 4}))),
        ("session/label", of_session(json!({"targetEntryId": "x", "label": "l"}))),
        ("session/pin", of_session(json!({"text": "pinned"}))),
        ("session/unpin", of_session(json!({"text": "pinned"}))),
        ("session/activity", of_session(json!({}))),
        ("session/run_idle", of_session(json!({}))),
        ("session/prune", of_session(json!({"protectTokens": 0, "minimumSavings": 0}))),
        ("session/compact", of_session(json!({"keepRecentTokens": 5, "wait": true, "instructions": "i"}))),
        ("session/compact", of_session(json!({"dryRun": true}))),
        ("session/compact", of_session(json!({"apply": false, "leafEntryId": "x", "keepRecentTokens": 5}))),
        (
            "context/fit",
            json!({"messages": messages, "contextWindow": 4_000, "keepRecentTokens": 5, "previousSummary": "s"}),
        ),
        ("session/undo_compaction", of_session(json!({}))),
        ("session/reset", of_session(json!({}))),
        ("session/navigate", of_session(json!({"targetEntryId": "nowhere", "wait": true}))),
        ("session/reference", of_session(json!({"fromSessionId": "other", "question": "which port?", "wait": true}))),
        ("session/handoff", of_session(json!({"goal": "g", "dryRun": true, "document": "d", "wait": true}))),
        ("session/cancel", of_session(json!({"operationId": "op-1"}))),
        ("session/fork", of_session(json!({"entryId": "x", "position": "at", "cwd": "/q"}))),
        ("session/import", json!({"path": "/nowhere/session.jsonl", "title": "t", "cwd": "/q"})),
        ("session/clear_queue", of_session(json!({}))),
        ("session/prompt", of_session(json!({"message": [{"type": "text", "text": "hello"}], "behavior": "steer"}))),
        ("session/continue", of_session(json!({}))),
        ("tools/set", of_session(json!({"tools": [{"name": "read", "inputSchema": {"type": "object"}}]}))),
        ("session/subscribe", of_session(json!({"after": {"epoch": "e", "seq": 3}}))),
        ("session/unsubscribe", of_session(json!({}))),
        ("session/close", json!({"sessionId": "other"})),
        ("session/delete", json!({"sessionId": "other"})),
        ("$/cancelRequest", json!({"id": 4})),
        ("$/cancel_request", json!({"requestId": "five"})),
    ];
    let request = |(id, (method, params)): (usize, &(&str, Value))| {
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
    };
    let mut frames: Vec<String> = calls.iter().enumerate().map(request).collect();
    frames.push(format!("[{},{}]", frames[2], frames[10]));
    frames.push(json!([{"jsonrpc": "2.0", "method": "ping"}, 7, {"id": "s", "method": "ping"}]).to_string());
    frames.push(json!({"jsonrpc": "2.0", "id": "srv-1", "result": {}}).to_string());
    frames
}

/// The far end of the daemon's stdout.
#[derive(Clone, Default)]
struct Out(Arc<(Mutex<Vec<u8>>, Condvar)>);

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.0.lock().expect("nobody panics with it").extend_from_slice(bytes);
        self.0.1.notify_all();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A daemon in this process, without its pipes.
struct Within {
    home: Home,
    runtime: tokio::runtime::Runtime,
    daemon: Arc<Daemon>,
    service: Service<Daemon>,
    outbox: Arc<Outbox>,
    chosen: Chosen,
    framing: Framing,
    out: Out,
    read: Vec<u8>,
    /// The beginning of a frame that is not whole yet.
    unread: Vec<u8>,
    answers: Vec<String>,
}

impl Within {
    fn new(framing: Framing) -> Self {
        let home = Home::new();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let outbox = Arc::new(Outbox::new());
        let places = Places { data: home.path("data"), config: home.path("config") };
        let daemon = Daemon::new(outbox.clone(), places, runtime.handle().clone());
        let chosen = Chosen::default();
        chosen.set(framing).expect("nobody chose before");
        let out = Out::default();
        let (service, answers) = (daemon.service(), Vec::new());
        std::thread::spawn({
            let (outbox, out, chosen) = (outbox.clone(), out.clone(), chosen.clone());
            move || outbox.write_to(out, &chosen)
        });
        Self {
            home,
            runtime,
            daemon,
            service,
            outbox,
            chosen,
            framing,
            out,
            read: Vec::new(),
            unread: Vec::new(),
            answers,
        }
    }

    /// A session to talk about.
    fn session(&mut self) -> String {
        let new = r#"{"id":2,"method":"session/new","params":{"cwd":"/p"}}"#;
        self.send(&[br#"{"id":1,"method":"initialize","params":{}}"#.to_vec(), new.into()]);
        let text = String::from_utf8_lossy(&self.read).into_owned();
        let (_, rest) = text.split_once("\"sessionId\":\"").expect("a session");
        rest.split('"').next().expect("an id").to_owned()
    }

    /// Sends bodies in the framing and waits until everything they ask for is answered.
    fn send(&mut self, bodies: &[Vec<u8>]) {
        let mut stream = Vec::new();
        let mut expected: Vec<&[u8]> = Vec::new();
        for body in bodies {
            match self.framing {
                Framing::Ndjson => {
                    stream.extend_from_slice(body);
                    stream.push(b'\n');
                    let lines = body.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
                    expected.extend(lines.filter(|line| !line.iter().all(u8::is_ascii_whitespace)));
                }
                Framing::ContentLength => {
                    stream.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
                    stream.extend_from_slice(body);
                    expected.push(body);
                }
            }
        }
        let mut owed = Owed::default();
        let mut frames = FrameReader::new(BufReader::with_capacity(77, &*stream), self.chosen.clone(), LARGEST_FRAME);
        let entered = self.runtime.enter();
        let mut count = 0;
        while let Some(frame) = frames.next_frame().expect("a slice can be read") {
            let Inbound::Frame(bytes) = frame else { panic!("{frame:?}") };
            assert_eq!(bytes, expected[count]);
            count += 1;
            owed.by_frame(&bytes);
            self.service.frame(&bytes);
        }
        drop(entered);
        assert_eq!(count, expected.len());
        self.answers.clear();
        self.read.clear();
        let end = Instant::now() + LONG;
        while self.outbox.in_flight() > 0 || self.answers.len() < owed.count {
            self.hear();
            assert!(Instant::now() < end, "{:?} of {owed:?} came for {}", self.answers, shown(bodies));
        }
        self.hear();
        if let Err(what) = owed.settle(&self.answers) {
            panic!("{what}; for {}", shown(bodies));
        }
    }

    /// Takes in what was written. Hooks are answered at once: the daemon waits for them.
    fn hear(&mut self) {
        let (mutex, more) = &*self.out.0;
        let waited = more.wait_timeout(mutex.lock().expect("nobody panics with it"), Duration::from_millis(1));
        let bytes = std::mem::take(&mut *waited.expect("nobody panics with it").0);
        self.read.extend_from_slice(&bytes);
        // A frame may be written in several pieces, of which the last ones are still to come.
        self.unread.extend_from_slice(&bytes);
        let mut hooks = Vec::new();
        while let Some((frame, rest)) = first_frame(self.framing, &self.unread) {
            self.answers.extend(answered(frame));
            let asked = serde_json::from_slice::<Value>(frame).unwrap_or_default();
            if asked["method"].as_str().is_some_and(|method| method.starts_with("hook/")) {
                hooks.push(json!({"jsonrpc": "2.0", "id": asked["id"], "result": {}}).to_string());
            }
            self.unread = rest.to_vec();
        }
        let _entered = self.runtime.enter();
        hooks.iter().for_each(|answer| self.service.frame(answer.as_bytes()));
    }
}

impl Drop for Within {
    fn drop(&mut self) {
        self.runtime.block_on(self.daemon.finish_sessions());
        self.outbox.close();
        let _ = &self.home;
    }
}

fn shown(bodies: &[Vec<u8>]) -> String {
    bodies.iter().map(|body| format!("\n  {}", String::from_utf8_lossy(body))).collect()
}

#[test]
fn mutated_frames_are_answered_once_each() {
    let mut dice = Dice::new(seed());
    let mut left = mutations();
    while left > 0 {
        for framing in [Framing::Ndjson, Framing::ContentLength] {
            let mut within = Within::new(framing);
            let frames = frames(&within.session());
            let mut of_this = FRAMES_OF_A_DAEMON.min(left.div_ceil(2));
            left = left.saturating_sub(of_this);
            while of_this > 0 {
                let bodies: Vec<Vec<u8>> = (0..BATCH.min(of_this)).map(|_| mutant(&mut dice, &frames)).collect();
                of_this -= bodies.len();
                within.send(&bodies);
            }
        }
    }
}

#[test]
fn an_array_inside_a_batch_is_no_request() {
    let mut daemon = support::Daemon::start();
    daemon.send(&json!([["2.0", 1, "ping"], [7]]));
    let answers = daemon.frame();
    for answer in answers.as_array().expect("a batch of answers") {
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(-32600)), "{answer}");
    }
}

/// A new method is mutated too, or somebody says why not.
#[test]
fn every_method_is_among_the_frames_that_are_mutated() {
    // The first two end the daemon, the last one writes a file wherever it is told to.
    const NOT_MUTATED: [&str; 3] = ["exit", "shutdown", "session/export"];
    let within = Within::new(Framing::Ndjson);
    let frames = frames("s");
    for method in within.service.names() {
        let quoted = format!("\"method\":\"{method}\"");
        let mutated = frames.iter().any(|frame| frame.contains(&quoted));
        assert!(mutated != NOT_MUTATED.contains(&method), "{method}");
    }
}

/// Hands over bytes in pieces of any size.
struct Pieces<'a> {
    bytes: &'a [u8],
    dice: Dice,
}

impl Read for Pieces<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.bytes.len().min(into.len()).min(1 + self.dice.below(9));
        into[..count].copy_from_slice(&self.bytes[..count]);
        self.bytes = &self.bytes[count..];
        Ok(count)
    }
}

/// Frames that a reader finds in a stream, up to its end: nothing is read behind a broken header.
fn frames_of(input: impl Read, capacity: usize, largest: usize) -> Vec<Inbound> {
    let mut reader = FrameReader::new(BufReader::with_capacity(capacity, input), Chosen::default(), largest);
    let mut found = Vec::new();
    while let Some(frame) = reader.next_frame().expect("a slice can be read") {
        let broken = matches!(frame, Inbound::BrokenHeader(_));
        found.push(frame);
        if broken {
            break;
        }
    }
    found
}

/// Headers, ends of lines and limits too: whatever comes in, reading comes to an end, and how the bytes arrive makes no
/// difference.
#[test]
fn mutated_streams_are_read_to_their_end() {
    const LARGEST: usize = 400;
    let mut dice = Dice::new(seed());
    let corpus = frames("s");
    for _ in 0..mutations() / 4 {
        let headed = dice.below(2) == 0;
        let streams: Vec<String> = (0..4)
            .map(|_| {
                let body = dice.pick(&corpus);
                if headed { format!("Content-Length: {}\r\n\r\n{body}", body.len()) } else { format!("{body}\r\n") }
            })
            .collect();
        let mut stream = streams.concat().into_bytes();
        mutate(&mut dice, &mut stream, &streams);
        let whole = frames_of(&*stream, stream.len() + 1, LARGEST);
        let pieces = Pieces { bytes: &stream, dice: Dice::new(dice.roll()) };
        assert_eq!(whole, frames_of(pieces, 1 + dice.below(40), LARGEST), "{}", String::from_utf8_lossy(&stream));
        let read: usize = whole.iter().map(|it| if let Inbound::Frame(frame) = it { frame.len() } else { 0 }).sum();
        assert!(read <= stream.len() && whole.len() <= stream.len());
    }
}

/// Two pieces, cut at every byte of a stream, in both framings: the same frames.
#[test]
fn a_stream_cut_in_two_anywhere_says_the_same() {
    let lines = "\u{feff}\r\n{\"id\":1,\"method\":\"ping\"}\r\n\n[{\"é\":\"\u{2028}\"}]\n{}";
    let headed = "Content-Length: 4\r\n\r\n{\"\"}content-type: é\r\nCONTENT-LENGTH:2\n\r\n[]Content-Length: 0\r\n\r\n";
    for stream in [lines.as_bytes(), headed.as_bytes()] {
        let whole = frames_of(stream, stream.len(), LARGEST_FRAME);
        assert_eq!(whole.len(), 3);
        for at in 0..=stream.len() {
            let (a, b) = stream.split_at(at);
            assert_eq!(frames_of(a.chain(b), 1 << 16, LARGEST_FRAME), whole, "cut at {at}");
        }
    }
}
