//! The log under everything that may happen to it: random sequences of what clients ask for, crashes, files cut short,
//! and other programs that write to the same file. `ABRIDGED_PROOF_CASES` raises how many sequences are tried.

use crate::{
    support::{Home, text_of},
    wire::{Peer, cases},
};
use abridged::conversation::context::check::violations;
use proptest::{prelude::*, sample::Index};
use serde_json::{Value, json};
use std::{
    collections::{HashMap, HashSet},
    fs,
    io::Write,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// It only bounds how long a failure hangs.
const LONG: Duration = Duration::from_secs(20);

/// A step of a session's history.
#[derive(Debug, Clone)]
enum Step {
    Ask(Request),
    /// The daemon is killed with these requests on their way, when so many of its frames were read.
    Crash(Vec<Request>, usize),
    /// No daemon runs, and the file loses its end, somewhere in its last lines.
    Cut {
        lines: usize,
        at: Index,
    },
    /// Another program appends, with the session open or not. Perhaps only the beginning of its line, the rest later.
    Strange {
        what: Strange,
        torn: Option<Index>,
        open: bool,
    },
    /// The session is closed and loaded again, or the whole daemon ended in order.
    Reopen {
        daemon: bool,
    },
    /// A second daemon begins to look at the session, or stops.
    Follow,
}

/// A request of a client.
#[derive(Debug, Clone)]
enum Request {
    User {
        size: usize,
        parent: Option<Index>,
    },
    /// An answer with calls, some of which get their results.
    Answer {
        size: usize,
        calls: usize,
        results: usize,
        failed: bool,
        parent: Option<Index>,
    },
    Compact {
        keep: u64,
    },
    Undo,
    Pin(Index),
    PinText,
    Unpin(Index),
    Prune,
    Label(Index, bool),
    Configure(usize),
}

/// Lines that another program appends.
#[derive(Debug, Clone)]
enum Strange {
    Message {
        parent: Option<Index>,
    },
    Title,
    /// Without what ours carry along.
    Compaction {
        keep: Index,
    },
}

fn request() -> impl Strategy<Value = Request> {
    let size = 1_usize..300;
    let parent = || prop::option::weighted(0.15, any::<Index>());
    prop_oneof![
        4 => (size.clone(), parent()).prop_map(|(size, parent)| Request::User { size, parent }),
        6 => (size, 0_usize..3, 0_usize..4, prop::bool::weighted(0.1), parent())
            .prop_map(|(size, calls, results, failed, parent)| Request::Answer { size, calls, results, failed, parent }),
        4 => (0_u64..500).prop_map(|keep| Request::Compact { keep }),
        2 => Just(Request::Undo),
        1 => any::<Index>().prop_map(Request::Pin),
        1 => Just(Request::PinText),
        1 => any::<Index>().prop_map(Request::Unpin),
        1 => Just(Request::Prune),
        1 => (any::<Index>(), any::<bool>()).prop_map(|(at, clear)| Request::Label(at, clear)),
        1 => (0_usize..4).prop_map(Request::Configure),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let strange = prop_oneof![
        4 => prop::option::weighted(0.2, any::<Index>()).prop_map(|parent| Strange::Message { parent }),
        1 => Just(Strange::Title),
        2 => any::<Index>().prop_map(|keep| Strange::Compaction { keep }),
    ];
    prop_oneof![
        12 => request().prop_map(Step::Ask),
        2 => (prop::collection::vec(request(), 1..8), 0_usize..24).prop_map(|(asked, read)| Step::Crash(asked, read)),
        1 => (1_usize..4, any::<Index>()).prop_map(|(lines, at)| Step::Cut { lines, at }),
        3 => (strange, prop::option::weighted(0.3, any::<Index>()), prop::bool::weighted(0.8))
            .prop_map(|(what, torn, open)| Step::Strange { what, torn, open }),
        1 => any::<bool>().prop_map(|daemon| Step::Reopen { daemon }),
        1 => Just(Step::Follow),
    ]
}

/// A file as anybody reads it who knows only that a line is JSON.
struct Lines(Vec<(String, Value, String)>);

impl Lines {
    fn of(bytes: &[u8]) -> Self {
        let entry = |line: &[u8]| {
            let value: Value = serde_json::from_slice(line).ok()?;
            let id = value["id"].as_str()?.to_owned();
            Some((id, value, String::from_utf8(line.to_vec()).ok()?))
        };
        Self(bytes.split(|byte| *byte == b'\n').skip(1).filter_map(entry).collect())
    }

    fn last_id(&self) -> Option<&str> {
        self.0.last().map(|(id, ..)| id.as_str())
    }

    /// The ids of all entries that `what` holds for.
    fn ids(&self, what: impl Fn(&Value) -> bool) -> Vec<String> {
        self.0.iter().filter(|(_, value, _)| what(value)).map(|(id, ..)| id.clone()).collect()
    }

    fn any(&self, at: Index, what: impl Fn(&Value) -> bool) -> Option<String> {
        let mut ids = self.ids(what);
        (!ids.is_empty()).then(|| ids.swap_remove(at.index(ids.len())))
    }
}

fn is_message(line: &Value) -> bool {
    line["type"] == "message"
}

/// A daemon's view of a session.
#[derive(Debug, PartialEq)]
struct Picture {
    messages: Value,
    entry_ids: Value,
    compaction: Value,
    /// The model the context is for; the session's title, thinking level, leaf and number of entries.
    session: Value,
    entries: Value,
    tree: Value,
}

const ASKED: [(&str, &str); 4] =
    [("session/context", ""), ("session/status", ""), ("session/entries", ",\"branch\":\"all\""), ("session/tree", "")];

impl Picture {
    fn of(answers: &[Value]) -> Self {
        let [context, status, entries, tree] = answers else { panic!("{answers:#?}") };
        let session = &status["session"];
        let about = ["title", "thinkingLevel", "leafEntryId", "entryCount", "model"].map(|name| session[name].clone());
        Self {
            messages: context["messages"].clone(),
            entry_ids: context["entryIds"].clone(),
            compaction: context["compactionEntryId"].clone(),
            session: json!([about, context["model"], entries["leafEntryId"], entries["nextCursor"]]),
            entries: entries["entries"].clone(),
            tree: tree["nodes"].clone(),
        }
    }

    fn by(peer: &mut Peer, session: &str) -> Self {
        let ids: Vec<u64> = ASKED
            .map(|(method, more)| peer.begin_with(method, &format!("{{\"sessionId\":\"{session}\"{more}}}")))
            .to_vec();
        let answer = |id| peer.answer(id).unwrap_or_else(|error| panic!("{error:#}"));
        Self::of(&ids.into_iter().map(answer).collect::<Vec<_>>())
    }
}

/// A session and everything that must be true of it.
struct World {
    home: Home,
    peer: Peer,
    follower: Option<Peer>,
    session: String,
    path: PathBuf,
    /// The file after the last step.
    bytes: Vec<u8>,
    /// Every whole line that ever was in the file, and every entry that was answered, by its id.
    lines: HashMap<String, String>,
    /// Rest of a last line that another program has not finished.
    rest: Option<String>,
    count: usize,
}

impl World {
    fn new() -> Self {
        let home = Home::new();
        // Counting by tokenizer takes each new process a while, and decides nothing here.
        home.settings(r#"{"tokens": {"estimator": "chars"}}"#);
        let mut peer = Peer::start(&home);
        let session = peer.ok("session/new", json!({"cwd": "/project", "title": "Proof"}))["session"].clone();
        let path = PathBuf::from(session["path"].as_str().expect("a path"));
        let bytes = fs::read(&path).expect("a file");
        let session = session["sessionId"].as_str().expect("an id").to_owned();
        Self { home, peer, follower: None, session, path, bytes, lines: HashMap::new(), rest: None, count: 0 }
    }

    fn now(&self) -> Lines {
        Lines::of(&fs::read(&self.path).expect("the file is there"))
    }

    /// A request and the messages it brings, as they stand on the wire; none where there is nothing it could be about.
    fn request(&mut self, request: &Request) -> Option<(&'static str, String, Vec<String>)> {
        self.count += 1;
        let n = self.count;
        let now = self.now();
        let parent = |at: &Option<Index>| at.and_then(|at| now.any(at, |_| true));
        let append = |messages: Vec<String>, parent: Option<String>| {
            let parent = parent.map(|id| format!(",\"parentEntryId\":\"{id}\"")).unwrap_or_default();
            ("session/append", format!("\"messages\":[{}]{parent}", messages.join(",")), messages)
        };
        let plain = |method, params: Value| {
            let params = params.to_string();
            (method, params[1..params.len() - 1].to_owned(), Vec::new())
        };
        Some(match request {
            Request::User { size, parent: at } => {
                // Bytes that a careless writer would not give back.
                let text = format!("word_{n} \\u00e9  must {}", text_of(*size, "user"));
                append(vec![format!(r#"{{"role":"user", "content":"{text}","z":1.50,"timestamp":{n}}}"#)], parent(at))
            }
            Request::Answer { size, calls, results, failed, parent: at } => {
                let stop = if *failed { "error" } else { "stop" };
                let calls = (0..*calls).map(|at| {
                    format!(
                        r#",{{"type":"toolCall","id":"c{n}_{at}","name":"bash","arguments":{{"command":"make {n}"}}}}"#
                    )
                });
                let text = text_of(*size, "answer");
                let answer = format!(
                    r#"{{"role":"assistant","content":[{{"type":"text","text":"answer_{n} {text}"}}{}],"stopReason":"{stop}","timestamp":{n}}}"#,
                    calls.collect::<String>()
                );
                let results = (0..*results).map(|at| {
                    format!(r#"{{"role":"toolResult","toolCallId":"c{n}_{at}","toolName":"bash","content":[{{"type":"text","text":"{text}"}}],"isError":false,"timestamp":{n}}}"#)
                });
                append(std::iter::once(answer).chain(results).collect(), parent(at))
            }
            Request::Compact { keep } => plain("session/compact", json!({"keepRecentTokens": keep, "wait": true})),
            Request::Undo => plain("session/undo_compaction", json!({"_meta": {}})),
            Request::Pin(at) => plain("session/pin", json!({"entryId": now.any(*at, is_message)?})),
            Request::PinText => plain("session/pin", json!({"text": format!("pinned_{n}")})),
            Request::Unpin(at) => {
                let pin = now.any(*at, |line| line["customType"].as_str().is_some_and(|it| it.ends_with(".pin")))?;
                let pin = now.0.into_iter().find(|(id, ..)| *id == pin)?.1;
                plain("session/unpin", json!({"entryId": pin["data"]["entryId"].as_str().or(pin["id"].as_str())}))
            }
            Request::Prune => plain("session/prune", json!({"protectTokens": 0, "minimumSavings": 0})),
            Request::Label(at, clear) => {
                let label = if *clear { Value::Null } else { json!(format!("label_{n}")) };
                plain("session/label", json!({"targetEntryId": now.any(*at, |_| true)?, "label": label}))
            }
            Request::Configure(0) => plain("session/configure", json!({"title": format!("title_{n}")})),
            Request::Configure(1) => plain("session/configure", json!({"thinkingLevel": "high"})),
            Request::Configure(2) => plain("session/configure", json!({"model": "p/m"})),
            Request::Configure(_) => plain("session/configure", json!({"systemPrompt": "Be brief.", "title": null})),
        })
    }

    fn begin(&mut self, request: &Request) -> Option<(u64, Vec<String>)> {
        let (method, params, messages) = self.request(request)?;
        let id = self.peer.begin_with(method, &format!("{{\"sessionId\":\"{}\",{params}}}", self.session));
        Some((id, messages))
    }

    /// Answered entries must stay, with the bytes that were sent.
    fn answered(&mut self, answer: &Result<Value, Value>, messages: &[String]) {
        // A request that is impossible in this state gets its error; any other error is a defect.
        const CANNOT: [&str; 6] =
            ["not_found", "nothing_to_compact", "invalid_params", "busy", "content_modified", "context_overflow"];
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                let code = error["data"]["code"].as_str().unwrap_or_default();
                return assert!(messages.is_empty() && CANNOT.contains(&code), "{error:#}");
            }
        };
        if answer["outcome"].is_string() {
            let content_modified = answer["error"]["code"] == "content_modified";
            // A short text may be as large as its summary, which only the draft shows.
            let skipped = answer["skippedReason"] == "would_not_shrink";
            assert!(answer["outcome"] == "completed" || content_modified || skipped, "{answer:#}");
        }
        let ids = answer["entryIds"].as_array().map(Vec::as_slice).unwrap_or_default();
        if !messages.is_empty() {
            assert_eq!(ids.len(), messages.len());
        }
        let now = self.now();
        for (id, message) in ids.iter().zip(messages) {
            let line = now.0.iter().find(|(known, ..)| *known == *id).map(|(.., line)| line);
            let line = line.unwrap_or_else(|| panic!("{id} was answered and is not in the file"));
            // Fields that other programs need are added behind the client's own bytes.
            let sent = message.strip_suffix('}').expect("a message is an object");
            assert!(line.contains(sent), "{line} is not {message}");
            self.lines.insert(id.as_str().expect("an id").to_owned(), line.clone());
        }
    }

    fn load(&mut self) {
        let loaded = self.peer.ok("session/load", json!({"path": self.path}));
        assert_eq!(loaded["session"]["sessionId"], self.session.as_str());
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Ask(request) => {
                if let Some((id, messages)) = self.begin(request) {
                    let answer = self.peer.answer(id);
                    self.answered(&answer, &messages);
                }
            }
            Step::Crash(requests, read) => {
                let sent: Vec<_> = requests.iter().filter_map(|request| self.begin(request)).collect();
                let until = self.peer.said.len() + read;
                while self.peer.said.len() < until && self.peer.hear_within(Duration::from_millis(30)) {}
                self.peer.kill();
                for (id, messages) in sent {
                    if let Some(answer) = self.peer.answered(id) {
                        self.answered(&answer, &messages);
                    }
                }
                self.peer = Peer::start(&self.home);
                self.load();
            }
            Step::Cut { lines, at } => self.cut(*lines, *at),
            Step::Strange { what, torn, open } => self.strange(what, *torn, *open),
            Step::Reopen { daemon: false } => {
                self.peer.ok("session/close", json!({"sessionId": self.session}));
                self.load();
            }
            Step::Reopen { daemon: true } => {
                self.peer.end();
                self.peer = Peer::start(&self.home);
                self.load();
            }
            Step::Follow => {
                if self.follower.take().is_none() {
                    let mut follower = Peer::start(&self.home);
                    follower.ok("session/load", json!({"path": self.path, "readOnly": true}));
                    self.follower = Some(follower);
                }
            }
        }
    }

    fn cut(&mut self, lines: usize, at: Index) {
        self.peer.end();
        // A file that became shorter is another one to whoever looks at it.
        (self.follower, self.rest) = (None, None);
        let bytes = fs::read(&self.path).expect("the file is there");
        let newlines: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] == b'\n').collect();
        let first = newlines[newlines.len().saturating_sub(lines + 1)] + 1;
        let length = first + at.index(bytes.len() + 1 - first);
        fs::OpenOptions::new()
            .write(true)
            .open(&self.path)
            .and_then(|it| it.set_len(length as u64))
            .expect("it is cut");
        self.bytes = bytes[..length].to_vec();
        let left: HashSet<String> = Lines::of(&self.bytes).0.into_iter().map(|(id, ..)| id).collect();
        self.lines.retain(|id, _| left.contains(id));
        self.peer = Peer::start(&self.home);
        self.load();
    }

    /// Another program writes as pi does: it appends, and asks nobody.
    fn strange(&mut self, what: &Strange, torn: Option<Index>, open: bool) {
        if !open {
            self.peer.ok("session/close", json!({"sessionId": self.session}));
        }
        self.check_file();
        self.count += 1;
        let n = self.count;
        let now = Lines::of(&self.bytes);
        let text = match self.rest.take() {
            Some(rest) => rest,
            None => {
                let mut line = match what {
                    Strange::Message { .. } => {
                        json!({"type": "message", "message": {"role": "user", "content": format!("strange_{n}")}})
                    }
                    Strange::Title => json!({"type": "session_info", "name": format!("strange_{n}")}),
                    Strange::Compaction { keep } => {
                        let kept = now.any(*keep, |line| line["message"]["role"] == "user");
                        json!({"type": "compaction", "summary": format!("strange_{n}"), "firstKeptEntryId": kept, "tokensBefore": 9})
                    }
                };
                let other = match what {
                    Strange::Message { parent: Some(at) } => now.any(*at, |_| true),
                    _ => None,
                };
                line["id"] = json!(format!("s{n}"));
                line["parentId"] = json!(other.as_deref().or(now.last_id()));
                line["timestamp"] = json!("2026-01-01T00:00:00.000Z");
                // It is as careful as one that looks at the last byte, not more.
                let gap = if self.bytes.ends_with(b"\n") { "" } else { "\n" };
                format!("{gap}{line}\n")
            }
        };
        let written = match torn {
            Some(at) if text.len() > 4 => {
                let (begin, rest) = text.split_at(2 + at.index(text.len() - 3));
                self.rest = Some(rest.to_owned());
                begin
            }
            _ => &text,
        };
        let mut file = fs::OpenOptions::new().append(true).open(&self.path).expect("a file");
        file.write_all(written.as_bytes()).expect("a write");
        self.bytes.extend_from_slice(written.as_bytes());
        if !open {
            self.load();
        }
    }

    /// The file is what it was and more. Only a torn line may be gone from its end, and then it lies beside it.
    fn check_file(&mut self) {
        let bytes = fs::read(&self.path).expect("the file is there");
        if !bytes.starts_with(&self.bytes) {
            let whole = self.bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            let (whole, torn) = self.bytes.split_at(whole);
            assert!(bytes.starts_with(whole), "whole lines are gone from the file");
            let entry = serde_json::from_slice::<Value>(torn).is_ok_and(|line| line["id"].is_string());
            assert!(!entry, "a whole line without its newline is gone");
            let aside = torn_files(&self.path).iter().any(|file| file == torn);
            assert!(aside, "a torn line is nowhere: {}", String::from_utf8_lossy(torn));
        }
        self.bytes = bytes;
        let now: HashMap<String, String> =
            Lines::of(&self.bytes).0.into_iter().map(|(id, _, line)| (id, line)).collect();
        for (id, line) in &self.lines {
            assert_eq!(now.get(id), Some(line), "{id} is not what it was");
        }
        self.lines.extend(now);
    }

    fn check(&mut self) {
        self.check_file();
        let (fresh, active) = self.fresh();
        let context = fresh.messages.as_array().expect("messages");
        assert_eq!(violations(context), Vec::<String>::new());
        conserved(&active, &fresh.compaction, &fresh.entry_ids);
        let follower = self.follower.as_mut().map(|peer| (peer, "the follower"));
        for (peer, who) in std::iter::once((&mut self.peer, "the owner")).chain(follower) {
            let end = Instant::now() + LONG;
            // The operating system reports the lines of other programs with a delay.
            while Picture::by(peer, &self.session) != fresh {
                assert!(Instant::now() < end, "{who}: {:#?}\nfresh: {fresh:#?}", Picture::by(peer, &self.session));
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }

    /// The view of a daemon that opens the session read-only for the first time, and the active branch.
    fn fresh(&self) -> (Picture, Vec<Value>) {
        let mut peer = Peer::start(&self.home);
        peer.ok("session/load", json!({"path": self.path, "readOnly": true}));
        let picture = Picture::by(&mut peer, &self.session);
        // On the wire as it stands in the file, byte for byte.
        for line in self.lines.values() {
            assert!(peer.wire.iter().any(|frame| frame.contains(line.as_str())), "{line} is not answered as it is");
        }
        let active = peer.ok("session/entries", json!({"sessionId": self.session}))["entries"].take();
        peer.end();
        (picture, active.as_array().expect("entries").clone())
    }
}

fn torn_files(path: &Path) -> Vec<Vec<u8>> {
    let folder = fs::read_dir(path.parent().expect("a folder")).expect("a folder");
    let files = folder.map(|entry| entry.expect("an entry").path());
    files.filter(|file| file.to_string_lossy().contains(".torn")).map(|file| fs::read(file).expect("a file")).collect()
}

/// Each message of the active branch is in the context, or before what the compaction keeps, and not both.
pub fn conserved(active: &[Value], compaction: &Value, sent: &Value) {
    let place = |id: &Value| active.iter().position(|entry| entry["id"] == *id && !id.is_null());
    let in_force = compaction;
    let compaction = place(in_force);
    assert_eq!(compaction.is_some(), in_force.is_string(), "a compaction that is not on the branch");
    let first_kept = compaction.map_or(0, |at| {
        let first = place(&active[at]["firstKeptEntryId"]).filter(|first| *first < at);
        first.unwrap_or(at)
    });
    let sent = sent.as_array().expect("ids");
    let mut waiting: Vec<&str> = Vec::new();
    for (at, entry) in active.iter().enumerate() {
        let is_sent = sent.contains(&entry["id"]);
        let message = &entry["message"];
        let always = match message["role"].as_str() {
            Some("user") => {
                waiting.clear();
                true
            }
            Some("assistant") => {
                let failed = message["stopReason"] == "error";
                let calls = message["content"].as_array().expect("blocks").iter().filter_map(|it| it["id"].as_str());
                waiting = if failed { Vec::new() } else { calls.collect() };
                !failed
            }
            // The first result of a call of the answer right before it.
            Some("toolResult") => {
                let call = waiting.iter().position(|call| *call == message["toolCallId"]);
                call.map(|call| waiting.remove(call)).is_some()
            }
            // A text that only other programs read here is no message of this context.
            _ => entry["type"] == "custom_message" && entry["customType"] != "abridged.carried",
        };
        if at < first_kept {
            assert!(!is_sent, "{entry} is summarized and sent");
        } else if always {
            assert!(is_sent, "{entry} is kept and not sent");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases("ABRIDGED_PROOF_CASES", 3, 6),
        max_shrink_iters: 60,
        // A failure prints its steps. The time of a kill is not repeated by a seed.
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn whatever_happens_to_a_session_nothing_is_lost_and_its_context_is_one(steps in prop::collection::vec(step(), 1..25)) {
        let mut world = World::new();
        for step in &steps {
            world.take(step);
            world.check();
        }
    }
}
