//! Random histories of sessions, read by pi's rules: another program that goes on with a file sends the messages that
//! the daemon sends. What differs are the frames: a summary's own words, and the texts that the summary's frame repeats,
//! which other programs get as messages of their own.

use crate::{
    pi_reader::{Sent, Session, plain, requested},
    support::{Daemon, Home, header, result, text_of, user},
    wire::cases,
};
use abridged::conversation::context::check::violations;
use proptest::{prelude::*, sample::Index};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fs, io::Write, path::PathBuf};

/// A client's action on a session.
#[derive(Debug, Clone)]
enum Step {
    /// A request, perhaps with an image, and perhaps on another branch.
    Request {
        image: bool,
        branch: Option<Index>,
    },
    /// An answer with calls and results of so many tokens each, and its last words.
    Work {
        results: Vec<usize>,
    },
    /// An answer that failed, or whose calls nobody answered, and the request after it.
    Trouble {
        failed: bool,
    },
    /// A result that no call waits for where it stands.
    Stray(Stray),
    Compact {
        keep: u64,
    },
    Undo,
    Reset,
    Prune,
    Pin(Index),
    PinText,
    Unpin(Index),
    Label(Index),
    Title,
    Reopen,
    /// The session goes on at another entry.
    Navigate {
        at: Index,
        summarize: bool,
        label: bool,
    },
    /// The session is that of a fork from now on: at an entry, or before it.
    Fork {
        at: Index,
        before: bool,
    },
    /// pi goes on.
    Pi(Pi),
}

#[derive(Debug, Clone, Copy)]
enum Stray {
    /// Its call is before a message of the user.
    Late,
    /// Its answer was aborted.
    Aborted,
    /// Its call has a result already.
    Second,
    /// It has no call.
    Lone,
}

#[derive(Debug, Clone)]
enum Pi {
    /// A request and its answer.
    Turn,
    /// An edit of what is in the context.
    Edit {
        at: Index,
        whole: bool,
    },
    Compaction(Index),
    /// A name for an entry: the last line, so the leaf.
    Label(Index),
    /// A request and its answer behind another entry, perhaps with a summary of the branch that is left.
    Branch {
        at: Index,
        summary: bool,
    },
    /// A session of its own of the path to an entry.
    Fork(Index),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (prop::bool::weighted(0.2), prop::option::weighted(0.1, any::<Index>()))
            .prop_map(|(image, branch)| Step::Request { image, branch }),
        6 => prop::collection::vec(prop_oneof![3 => 10_usize..200, 1 => 1_000_usize..4_000], 0..3)
            .prop_map(|results| Step::Work { results }),
        1 => any::<bool>().prop_map(|failed| Step::Trouble { failed }),
        2 => prop::sample::select(vec![Stray::Late, Stray::Aborted, Stray::Second, Stray::Lone]).prop_map(Step::Stray),
        5 => (0_u64..2_000).prop_map(|keep| Step::Compact { keep }),
        3 => Just(Step::Undo),
        1 => Just(Step::Reset),
        3 => Just(Step::Prune),
        3 => any::<Index>().prop_map(Step::Pin),
        1 => Just(Step::PinText),
        1 => any::<Index>().prop_map(Step::Unpin),
        1 => any::<Index>().prop_map(Step::Label),
        1 => Just(Step::Title),
        1 => Just(Step::Reopen),
        2 => Just(Step::Pi(Pi::Turn)),
        1 => (any::<Index>(), any::<bool>()).prop_map(|(at, whole)| Step::Pi(Pi::Edit { at, whole })),
        1 => any::<Index>().prop_map(|at| Step::Pi(Pi::Compaction(at))),
        3 => (any::<Index>(), any::<bool>(), prop::bool::weighted(0.3))
            .prop_map(|(at, summarize, label)| Step::Navigate { at, summarize, label }),
        1 => (any::<Index>(), any::<bool>()).prop_map(|(at, before)| Step::Fork { at, before }),
        1 => any::<Index>().prop_map(|at| Step::Pi(Pi::Label(at))),
        1 => (any::<Index>(), any::<bool>()).prop_map(|(at, summary)| Step::Pi(Pi::Branch { at, summary })),
        1 => any::<Index>().prop_map(|at| Step::Pi(Pi::Fork(at))),
    ]
}

/// A picture of one red point.
const PICTURE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";

/// A session with a small window and no model: every compaction is an extracted one.
struct World {
    daemon: Daemon,
    session: String,
    path: PathBuf,
    title: Option<String>,
    count: usize,
}

impl World {
    fn new() -> Self {
        let home = Home::new();
        home.settings(r#"{"tokens": {"estimator": "chars"}, "compaction": {"enabled": false}}"#);
        let mut daemon = Daemon::at(home);
        let session = daemon.ok("session/new", json!({"cwd": "/project", "contextWindow": 8_000}))["session"].take();
        let path = PathBuf::from(session["path"].as_str().expect("a path"));
        let session = session["sessionId"].as_str().expect("an id").to_owned();
        Self { daemon, session, path, title: None, count: 0 }
    }

    /// A text with a word that stands nowhere else.
    fn text(&mut self, tokens: usize) -> String {
        self.count += 1;
        format!("Word{}Ends. {}", self.count, text_of(tokens, "part"))
    }

    fn asked(&mut self, method: &str, mut params: Value) -> Result<Value, Value> {
        params["sessionId"] = json!(self.session);
        self.daemon.call(method, params)
    }

    fn append(&mut self, messages: Vec<Value>, parent: Option<String>) {
        let mut params = json!({"messages": messages});
        if let Some(parent) = parent {
            params["parentEntryId"] = json!(parent);
        }
        self.asked("session/append", params).expect("an append");
    }

    fn entries(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.path).expect("a file");
        text.lines().skip(1).map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    /// One of the entries that `what` holds for.
    fn any(&self, at: Index, what: impl Fn(&Value) -> bool) -> Option<Value> {
        let entries = self.entries();
        // The edit of a result without a call comes behind it: a session that goes on before the edit lacks it until the next
        // append.
        let is_stray = |entry: &Value| {
            let is_its_edit = |edit: &&Value| edit["targetId"] == entry["id"] && is_left_out(edit);
            entries.iter().any(|edit| is_its_edit(&edit))
        };
        let mut found: Vec<Value> = entries.iter().filter(|it| what(it) && !is_stray(it)).cloned().collect();
        (!found.is_empty()).then(|| found.swap_remove(at.index(found.len())))
    }

    /// Takes a step. One that is not possible now is refused, and changes nothing.
    fn take(&mut self, step: &Step) {
        let is_request = |entry: &Value| entry["message"]["role"] == "user";
        match step {
            Step::Request { image, branch } => {
                let mut message = user(&self.text(20));
                if *image {
                    let image = json!({"type": "image", "mimeType": "image/png", "data": PICTURE});
                    message["content"].as_array_mut().expect("blocks").push(image);
                }
                let parent = branch.and_then(|at| self.any(at, is_request));
                self.append(vec![message], parent.and_then(|entry| Some(entry["id"].as_str()?.to_owned())));
            }
            Step::Work { results } => {
                let ids: Vec<String> = (0..results.len()).map(|at| format!("call{}_{at}", self.count)).collect();
                let mut messages = Vec::new();
                if !ids.is_empty() {
                    messages.push(self.calls(&ids));
                }
                for (id, size) in ids.iter().zip(results) {
                    messages.push(result(id, &self.text(*size)));
                }
                messages.push(self.answer());
                self.append(messages, None);
            }
            Step::Trouble { failed } => {
                let id = format!("call{}", self.count);
                let answer = match failed {
                    true => json!({"role": "assistant", "content": [], "stopReason": "error", "errorMessage": "503"}),
                    false => self.calls(&[id]),
                };
                let next = user(&self.text(20));
                self.append(vec![answer, next], None);
            }
            Step::Stray(stray) => {
                let id = format!("call{}", self.count);
                let call = self.calls(std::slice::from_ref(&id));
                let mut aborted = call.clone();
                aborted["stopReason"] = json!("aborted");
                let mut messages = match stray {
                    Stray::Late => vec![call, user(&self.text(20))],
                    Stray::Aborted => vec![aborted],
                    Stray::Second => vec![call, result(&id, &self.text(20))],
                    Stray::Lone => Vec::new(),
                };
                messages.push(result(&id, &self.text(20)));
                self.append(messages, None);
            }
            Step::Compact { keep } => {
                let _ = self.asked("session/compact", json!({"keepRecentTokens": keep, "wait": true}));
            }
            Step::Undo => {
                let _ = self.asked("session/undo_compaction", json!({}));
            }
            Step::Reset => {
                self.asked("session/reset", json!({})).expect("a reset");
            }
            Step::Prune => {
                let _ = self.asked("session/prune", json!({"protectTokens": 100, "minimumSavings": 0}));
            }
            Step::Pin(at) => {
                if let Some(entry) = self.any(*at, |entry| entry["type"] == "message") {
                    let _ = self.asked("session/pin", json!({"entryId": entry["id"]}));
                }
            }
            Step::PinText => {
                let text = self.text(5);
                let _ = self.asked("session/pin", json!({"text": text}));
            }
            Step::Unpin(at) => {
                let is_pin = |entry: &Value| entry["customType"] == "abridged.pin";
                if let Some(entry) = self.any(*at, is_pin) {
                    let pinned = entry["data"]["entryId"].as_str().or(entry["id"].as_str());
                    let _ = self.asked("session/unpin", json!({"entryId": pinned}));
                }
            }
            Step::Label(at) => {
                if let Some(entry) = self.any(*at, is_request) {
                    self.asked("session/label", json!({"targetEntryId": entry["id"], "label": "here"}))
                        .expect("a label");
                }
            }
            Step::Title => {
                self.count += 1;
                self.title = Some(format!("Title {}", self.count));
                self.asked("session/configure", json!({"title": self.title})).expect("a title");
            }
            Step::Reopen => {
                self.asked("session/close", json!({})).expect("a close");
                self.daemon.load(&self.path);
            }
            Step::Navigate { at, summarize, label } => {
                let Some(target) = self.any(*at, |entry| !is_marker(entry)) else { return };
                let mut params = json!({"targetEntryId": target["id"], "summarize": summarize, "wait": true});
                if *label {
                    params["label"] = json!("here");
                }
                // A result in the middle of its batch is refused.
                let answer = self.asked("session/navigate", params);
                let moved = answer.as_ref().is_ok_and(|answer| answer["outcome"] == "completed");
                assert!(moved || is_result(&target), "{answer:#?}");
            }
            Step::Fork { at, before } => {
                let Some(target) = self.any(*at, |entry| !is_marker(entry)) else { return };
                let position = if *before { "before" } else { "at" };
                match self.asked("session/fork", json!({"entryId": target["id"], "position": position})) {
                    Ok(answer) => self.moves_to(answer["session"]["path"].as_str().expect("a path").into()),
                    Err(error) => assert!(is_result(&target), "{error:#}"),
                }
            }
            Step::Pi(what) => {
                self.asked("session/close", json!({})).expect("a close");
                match what {
                    Pi::Fork(at) => self.forked_by_pi(*at),
                    what => self.pi(what),
                }
                self.session = self.daemon.load(&self.path);
            }
        }
    }

    /// Goes on with another file.
    fn moves_to(&mut self, path: PathBuf) {
        self.asked("session/close", json!({})).expect("a close");
        self.path = path;
        self.session = self.daemon.load(&self.path);
    }

    /// Makes the file that pi's `createBranchedSession` makes: the path without its labels, each entry behind the one
    /// before, and labels for its entries at the end.
    fn forked_by_pi(&mut self, at: Index) {
        let Some(target) = self.any(at, |entry| entry["type"] == "message") else { return };
        let file = self.file();
        let path: Vec<Value> = file.path_to(&target).into_iter().cloned().collect();
        let labels = file.labels();
        let mut lines: Vec<Value> = Vec::new();
        let mut parent = Value::Null;
        let mut removed: Vec<Value> = Vec::new();
        for mut entry in path.iter().cloned() {
            if entry["type"] == "label" {
                removed.push(entry["id"].clone());
                continue;
            }
            entry["parentId"] = std::mem::replace(&mut parent, entry["id"].clone());
            lines.push(entry);
        }
        let kept: Vec<Value> = lines.iter().map(|entry| entry["id"].clone()).collect();
        for entry in &mut lines {
            if removed.contains(&entry["firstKeptEntryId"]) {
                let from = path.iter().position(|it| it["id"] == entry["firstKeptEntryId"]).expect("it is on the path");
                let next = path[from..].iter().find(|it| kept.contains(&it["id"])).expect("the compaction itself");
                entry["firstKeptEntryId"] = next["id"].clone();
            }
        }
        for (of, label) in labels.into_iter().filter(|(of, _)| kept.contains(of)) {
            self.count += 1;
            let id = json!(format!("{:08x}", self.count));
            lines.push(json!({"type": "label", "id": id, "parentId": parent, "timestamp": "2026-01-01T00:00:00.000Z", "targetId": of, "label": label}));
            parent = id;
        }
        self.count += 1;
        let mut header = header(&format!("pi{}", self.count));
        header["parentSession"] = json!(self.path);
        lines.insert(0, header);
        self.path = self.daemon.home.session(&format!("pi{}.jsonl", self.count), &lines);
        self.title = self.file().title().map(str::to_owned);
    }

    /// Appends what pi would, behind the last line.
    fn pi(&mut self, what: &Pi) {
        let sent = self.file().context();
        let message = |message: Value| json!({"type": "message", "message": message});
        let mut behind = self.entries().pop().map_or(Value::Null, |last| last["id"].clone());
        let lines = match what {
            Pi::Fork(_) => return,
            Pi::Label(at) => {
                let Some(target) = self.any(*at, |entry| entry["type"] == "message") else { return };
                vec![json!({"type": "label", "targetId": target["id"], "label": "pi was here"})]
            }
            Pi::Branch { at, summary } => {
                let Some(target) = self.any(*at, |entry| entry["type"] == "message") else { return };
                let from = std::mem::replace(&mut behind, target["id"].clone());
                let text = self.text(20);
                let summary = summary.then(|| json!({"type": "branch_summary", "fromId": from, "summary": text}));
                summary.into_iter().chain([message(user(&self.text(20))), message(self.answer())]).collect()
            }
            Pi::Turn => vec![message(user(&self.text(20))), message(self.answer())],
            Pi::Edit { at, whole } => {
                // A pinned entry stays whole here, and in pi from the next line of the daemon on.
                let pins: Vec<Value> = self.entries().iter().map(|entry| entry["data"]["entryId"].clone()).collect();
                let may = |it: &&Sent| it.message["role"] == "toolResult" && !pins.contains(&it.entry["id"]);
                let results: Vec<_> = sent.iter().filter(may).collect();
                let Some(target) = (!results.is_empty()).then(|| &results[at.index(results.len())].entry) else {
                    return;
                };
                let replacement = if *whole { Value::Null } else { json!({"content": self.text(5)}) };
                vec![json!({"type": "context_edit", "targetId": target["id"], "replacement": replacement})]
            }
            Pi::Compaction(at) => {
                let is_turn = |it: &&Sent| it.entry["type"] == "message" && it.message["role"] != "toolResult";
                let starts: Vec<_> = sent.iter().filter(is_turn).collect();
                let Some(first) = (!starts.is_empty()).then(|| &starts[at.index(starts.len())].entry) else { return };
                let summary = self.text(30);
                vec![
                    json!({"type": "compaction", "summary": summary, "firstKeptEntryId": first["id"], "tokensBefore": 1}),
                ]
            }
        };
        let mut file = fs::OpenOptions::new().append(true).open(&self.path).expect("a file");
        for mut line in lines {
            self.count += 1;
            line["id"] = json!(format!("{:08x}", self.count));
            line["parentId"] = std::mem::replace(&mut behind, line["id"].clone());
            line["timestamp"] = json!("2026-01-01T00:00:00.000Z");
            writeln!(file, "{line}").expect("a line");
        }
    }

    fn file(&self) -> Session {
        Session::parse(&fs::read_to_string(&self.path).expect("a file"))
    }

    fn answer(&mut self) -> Value {
        json!({"role": "assistant", "content": [{"type": "text", "text": self.text(30)}], "stopReason": "stop"})
    }

    fn calls(&mut self, ids: &[String]) -> Value {
        let call = |id: &String| json!({"type": "toolCall", "id": id, "name": "bash", "arguments": {"command": id}});
        json!({"role": "assistant", "content": ids.iter().map(call).collect::<Vec<_>>(), "stopReason": "toolUse"})
    }

    /// pi's rules give what the daemon gives.
    fn check(&mut self) {
        let context = self.asked("session/context", json!({})).expect("a context");
        let file = self.file();
        // A result that came late stands with its call here. pi cannot move it, and leaves it out.
        let path = file.path();
        let is_edit = |entry: &&&Value, id: &Value| entry["type"] == "context_edit" && entry["targetId"] == *id;
        let left_out = |id: &Value| path.iter().rfind(|entry| is_edit(entry, id)).is_some_and(|edit| is_left_out(edit));
        let ids = context["entryIds"].as_array().expect("ids");
        let messages = context["messages"].as_array().expect("messages").iter().zip(ids);
        let messages: Vec<_> =
            messages.filter(|(message, id)| message["role"] != "toolResult" || !left_out(id)).collect();
        let ours = messages.iter().filter(|(_, id)| !id.is_null());
        let ours: Vec<_> = ours.flat_map(|(message, id)| tagged(id, message)).collect();
        assert_eq!(violations(&requested(file.context())), Vec::<String>::new(), "a request of pi");

        let status = self.asked("session/status", json!({})).expect("a status");
        let leaf =
            file.path().into_iter().rev().find(|entry| !is_marker(entry)).map_or(&Value::Null, |entry| &entry["id"]);
        assert_eq!(status["session"]["leafEntryId"], *leaf, "the leaf of the daemon and that of pi");
        let sent = file.context();
        let theirs = sent.iter().filter(|it| !is_frame(it));
        let theirs: Vec<_> = theirs.flat_map(|it| tagged(&it.entry["id"], &it.message)).collect();
        assert_eq!(self.title.as_deref(), file.title());
        assert_eq!(ours, theirs, "the messages of the daemon and those by pi's rules");

        // A compaction of pi brings along nothing from before its cut.
        if let Some(compaction) = self.entries().iter().find(|entry| entry["id"] == context["compactionEntryId"])
            && compaction["preserveData"]["abridged"].is_null()
        {
            return;
        }
        let there: Vec<&Value> =
            sent.iter().map(|it| &it.message).filter(|message| !plain(message).is_empty()).collect();
        let here = messages.iter().map(|(message, _)| *message);
        assert_eq!(words(here), words(there), "the words of all messages, the frames included");
    }
}

/// Whether an entry is a line of the daemon that no client sees.
fn is_marker(entry: &Value) -> bool {
    let ours = &entry["preserveData"]["abridged"];
    match entry["type"].as_str() {
        Some("custom") => entry["customType"].as_str().is_some_and(|kind| kind.starts_with("abridged.")),
        Some("custom_message") => entry["customType"] == "abridged.carried",
        Some("context_edit") => entry.get("abridged").is_some(),
        Some("compaction") => !ours["undone"].is_null() || !ours["reset"].is_null(),
        kind => kind == Some("usage"),
    }
}

/// Whether an edit is a line of the daemon by which other programs leave an entry out.
fn is_left_out(edit: &Value) -> bool {
    edit["replacement"].is_null() && edit["abridged"].is_object()
}

fn is_result(entry: &Value) -> bool {
    entry["message"]["role"] == "toolResult"
}

/// The parts of a message, each with the entry that it comes from.
fn tagged(id: &Value, message: &Value) -> Vec<(Value, Value)> {
    plain(message).into_iter().map(|part| (id.clone(), part)).collect()
}

/// Whether a message stands for others: a summary, or a text that other programs get beside it.
fn is_frame(sent: &Sent) -> bool {
    sent.entry["type"] == "compaction" || sent.entry["customType"] == "abridged.carried"
}

/// How often each of the words that stand in one text alone is in these messages.
fn words<'a>(messages: impl IntoIterator<Item = &'a Value>) -> BTreeMap<String, usize> {
    let mut words = BTreeMap::new();
    for message in messages {
        let text = message.to_string();
        for word in text.split("Word").skip(1).filter_map(|rest| rest.split_once("Ends")) {
            *words.entry(word.0.to_owned()).or_default() += 1;
        }
    }
    words
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases("ABRIDGED_PROOF_CASES", 12, 24),
        max_shrink_iters: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn another_program_goes_on_with_the_same_messages(steps in prop::collection::vec(step(), 1..30)) {
        let mut world = World::new();
        for step in &steps {
            world.take(step);
            world.check();
        }
    }
}
