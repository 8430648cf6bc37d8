//! Random trees through the real binary: branches, compactions, undos, edits, pins, labels, navigations and kills. For each
//! leaf the path, the context and the conservation of every message hold. `ABRIDGED_TREE_CASES` is another number of trees.

use crate::{
    proof::conserved,
    support::{Home, text_of},
    wire::{Peer, cases},
};
use abridged::conversation::context::check::violations;
use proptest::{prelude::*, sample::Index};
use serde_json::{Value, json};
use std::{
    collections::{HashMap, HashSet},
    fs,
    path::PathBuf,
    time::Duration,
};

/// A step of a session's history.
#[derive(Debug, Clone)]
enum Step {
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
    /// The result of a call at the leaf that waits for one.
    Result,
    Compact(u64),
    Undo,
    Reset,
    Prune,
    Pin(Index),
    PinText,
    Unpin(Index),
    Label(Index),
    Title,
    Navigate(Target, Way),
    /// To an entry and back to the leaf.
    Visit(Index),
    Reopen,
    /// The daemon is killed when so many frames of a navigation were read.
    Kill(Index, usize),
}

#[derive(Debug, Clone, Copy)]
enum Target {
    /// Any line of the file, markers included.
    Line(Index),
    Unknown,
}

#[derive(Debug, Clone, Copy)]
struct Way {
    summarize: bool,
    label: bool,
    cancel: bool,
}

fn step() -> impl Strategy<Value = Step> {
    let size = || 1_usize..300;
    let at = any::<Index>;
    let parent = || prop::option::weighted(0.25, at());
    let target = prop_oneof![12 => at().prop_map(Target::Line), 1 => Just(Target::Unknown)];
    let way = (prop::bool::weighted(0.35), prop::bool::weighted(0.2), prop::bool::weighted(0.2))
        .prop_map(|(summarize, label, cancel)| Way { summarize, label, cancel });
    prop_oneof![
        4 => (size(), parent()).prop_map(|(size, parent)| Step::User { size, parent }),
        6 => (size(), 0_usize..3, 0_usize..3, prop::bool::weighted(0.1), parent())
            .prop_map(|(size, calls, results, failed, parent)| Step::Answer { size, calls, results, failed, parent }),
        2 => Just(Step::Result),
        3 => (0_u64..500).prop_map(Step::Compact),
        2 => Just(Step::Undo),
        1 => Just(Step::Reset),
        1 => Just(Step::Prune),
        2 => at().prop_map(Step::Pin),
        1 => Just(Step::PinText),
        1 => at().prop_map(Step::Unpin),
        1 => at().prop_map(Step::Label),
        1 => Just(Step::Title),
        6 => (target, way).prop_map(|(target, way)| Step::Navigate(target, way)),
        3 => at().prop_map(Step::Visit),
        1 => Just(Step::Reopen),
        1 => (at(), 0_usize..6).prop_map(|(at, read)| Step::Kill(at, read)),
    ]
}

/// The tree as anybody reads it who knows only ids and parents.
struct Tree {
    entries: Vec<Value>,
    lines: Vec<String>,
    places: HashMap<String, usize>,
}

/// The decision about a target.
#[derive(Debug, PartialEq)]
enum Decision {
    /// The session goes on at this leaf.
    Goes(Option<String>),
    NotFound,
    Refused,
}

impl Tree {
    fn of(bytes: &[u8]) -> Self {
        let text = std::str::from_utf8(bytes).expect("text");
        let lines: Vec<String> = text.lines().skip(1).map(str::to_owned).collect();
        let entries: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).expect("an entry")).collect();
        let places = entries.iter().enumerate().map(|(place, entry)| (id_of(entry).to_owned(), place)).collect();
        Self { entries, lines, places }
    }

    fn get(&self, id: &str) -> Option<&Value> {
        self.places.get(id).map(|place| &self.entries[*place])
    }

    fn parent(&self, entry: &Value) -> Option<&Value> {
        self.get(entry["parentId"].as_str()?)
    }

    /// The entries from the root to the last line.
    fn path_to_last(&self) -> Vec<Value> {
        let mut path: Vec<_> =
            std::iter::successors(self.entries.last(), |entry| self.parent(entry)).cloned().collect();
        path.reverse();
        path
    }

    /// The entries from the root to this one, without markers.
    fn path_to(&self, id: &str) -> Vec<&Value> {
        let mut path: Vec<_> = std::iter::successors(self.get(id), |entry| self.parent(entry)).collect();
        path.reverse();
        path.into_iter().filter(|entry| !is_marker(entry)).collect()
    }

    /// The nearest entry that is no marker, from this one towards the root.
    fn shown(&self, from: Option<&Value>) -> Option<String> {
        let mut above = std::iter::successors(from, |entry| self.parent(entry));
        above.find(|entry| !is_marker(entry)).map(|entry| id_of(entry).to_owned())
    }

    /// The leaf, by the last line.
    fn leaf(&self) -> Option<String> {
        self.shown(self.entries.last())
    }

    /// Whether a path to this entry ends in a batch of which more results follow.
    fn is_in_batch(&self, entry: &Value) -> bool {
        let above = std::iter::successors(Some(entry), |entry| self.parent(entry));
        let behind: Vec<&Value> = above.take_while(|entry| is_result(entry) || !in_context(entry)).collect();
        let Some(result) = behind.iter().position(|entry| is_result(entry)) else { return false };
        let batch: HashSet<&str> = behind[..=result].iter().map(|entry| id_of(entry)).collect();
        let after = &self.entries[self.places[id_of(entry)] + 1..];
        let (mut batch, mut found) = (batch, false);
        for next in after {
            if next["parentId"].as_str().is_some_and(|parent| batch.contains(parent)) {
                found |= is_result(next);
                if is_result(next) || !in_context(next) {
                    batch.insert(id_of(next));
                }
            }
        }
        found
    }

    /// Whether lines of the daemon stand right behind this entry.
    fn has_markers(&self, id: &str) -> bool {
        self.entries.iter().any(|entry| entry["parentId"] == id && is_marker(entry))
    }

    fn decision(&self, target: &str) -> Decision {
        match self.get(target) {
            None => Decision::NotFound,
            Some(entry) if is_marker(entry) || self.is_in_batch(entry) => Decision::Refused,
            Some(entry) if entry["message"]["role"] == "user" => Decision::Goes(self.shown(self.parent(entry))),
            Some(_) => Decision::Goes(Some(target.to_owned())),
        }
    }

    fn any(&self, at: Index, wanted: impl Fn(&Value) -> bool) -> Option<String> {
        let of: Vec<_> = self.entries.iter().filter(|entry| wanted(entry)).collect();
        (!of.is_empty()).then(|| id_of(of[at.index(of.len())]).to_owned())
    }
}

fn id_of(entry: &Value) -> &str {
    entry["id"].as_str().expect("an id")
}

fn is_marker(entry: &Value) -> bool {
    let custom = entry["customType"].as_str().unwrap_or_default();
    let data = &entry["preserveData"]["abridged"];
    match entry["type"].as_str() {
        Some("custom") => custom.starts_with("abridged."),
        Some("custom_message") => custom == "abridged.carried",
        Some("context_edit") => entry["abridged"].is_object(),
        Some("compaction") => !data["undone"].is_null() || !data["reset"].is_null(),
        Some("usage") => true,
        _ => false,
    }
}

fn is_result(entry: &Value) -> bool {
    entry["message"]["role"] == "toolResult"
}

fn in_context(entry: &Value) -> bool {
    !is_marker(entry) && ["message", "custom_message", "branch_summary"].iter().any(|kind| entry["type"] == **kind)
}

fn ids(entries: &[&Value]) -> Vec<String> {
    entries.iter().map(|entry| id_of(entry).to_owned()).collect()
}

/// The parts of a context that two requests agree about.
#[derive(Debug, Clone, PartialEq)]
struct Context {
    messages: Value,
    entry_ids: Value,
    compaction: Value,
}

impl Context {
    fn of(answer: &Value) -> Self {
        let part = |name: &str| answer[name].clone();
        Self { messages: part("messages"), entry_ids: part("entryIds"), compaction: part("compactionEntryId") }
    }

    fn empty() -> Self {
        Self { messages: json!([]), entry_ids: json!([]), compaction: Value::Null }
    }
}

/// A session and everything that must be true of it.
struct World {
    home: Home,
    peer: Peer,
    session: String,
    path: PathBuf,
    /// The file after the last step.
    bytes: Vec<u8>,
    count: usize,
}

impl World {
    fn new() -> Self {
        let home = Home::new();
        // Counting by tokenizer takes each new process a while, and decides nothing here.
        home.settings(r#"{"tokens": {"estimator": "chars"}}"#);
        let mut peer = Peer::start(&home);
        let session = peer.ok("session/new", json!({"cwd": "/project"}))["session"].clone();
        let path = PathBuf::from(session["path"].as_str().expect("a path"));
        let session = session["sessionId"].as_str().expect("an id").to_owned();
        Self { home, peer, session, bytes: fs::read(&path).expect("a file"), path, count: 0 }
    }

    fn tree(&self) -> Tree {
        Tree::of(&fs::read(&self.path).expect("the file is there"))
    }

    fn begin(&mut self, method: &str, mut params: Value) -> u64 {
        params["sessionId"] = json!(self.session);
        self.peer.begin(method, &params)
    }

    fn call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.begin(method, params);
        self.peer.answer(id)
    }

    fn ok(&mut self, method: &str, params: Value) -> Value {
        self.call(method, params).unwrap_or_else(|error| panic!("{method}: {error:#}"))
    }

    fn context(&mut self) -> Context {
        Context::of(&self.ok("session/context", json!({})))
    }

    /// The context of an entry; an empty one before the first entry.
    fn context_of(&mut self, leaf: Option<&str>) -> Context {
        match leaf {
            Some(leaf) => Context::of(&self.ok("session/context", json!({"leafEntryId": leaf}))),
            None => Context::empty(),
        }
    }

    /// The context after a navigation to this target. None where the session stands before a message of the user whose
    /// parent has lines of the daemon on other branches: no id names that state.
    fn context_there(&mut self, tree: &Tree, target: &str, leaf: Option<&str>) -> Option<Context> {
        match tree.get(target).and_then(|entry| entry["parentId"].as_str()) {
            Some(parent) if leaf != Some(target) && tree.has_markers(parent) => None,
            Some(parent) if leaf != Some(target) && leaf.is_some() => Some(self.context_of(Some(parent))),
            _ => Some(self.context_of(leaf)),
        }
    }

    fn navigate(&mut self, target: &str) -> Value {
        let answer = self.ok("session/navigate", json!({"targetEntryId": target, "summarize": false, "wait": true}));
        assert_eq!(answer["outcome"], "completed", "{answer:#}\n{}", self.tree().lines.join("\n"));
        answer
    }

    fn load(&mut self) {
        let loaded = self.peer.ok("session/load", json!({"path": self.path}));
        assert_eq!((&loaded["session"]["sessionId"], &loaded["repairs"]), (&json!(self.session), &json!([])));
    }

    fn append(&mut self, messages: &[Value], parent: Option<Index>) {
        let mut params = json!({"messages": messages});
        let tree = self.tree();
        if let Some(parent) = parent.and_then(|at| tree.any(at, |entry| !is_marker(entry))) {
            params["parentEntryId"] = json!(parent);
        }
        let answer = self.ok("session/append", params.clone());
        assert_eq!(answer["entryIds"].as_array().map(Vec::len), Some(messages.len()));
        let first = answer["entryIds"][0].as_str().expect("an id");
        let now = self.tree();
        if let Some(parent) = params["parentEntryId"].as_str() {
            let path = ids(&now.path_to(first));
            assert_eq!(path.iter().nth_back(1).map(String::as_str), Some(parent), "it follows its parent");
        }
    }

    /// A request that may be impossible in this state, but is never a defect.
    fn may(&mut self, method: &str, params: Value) {
        const CANNOT: [&str; 5] = ["not_found", "nothing_to_compact", "invalid_params", "busy", "context_overflow"];
        if let Err(error) = self.call(method, params) {
            assert!(CANNOT.contains(&error["data"]["code"].as_str().unwrap_or_default()), "{method}: {error:#}");
        }
    }

    fn take(&mut self, step: &Step) {
        self.count += 1;
        let n = self.count;
        let tree = self.tree();
        match step {
            Step::User { size, parent } => {
                let text = format!("word_{n} é must {}", text_of(*size, "user"));
                self.append(&[json!({"role": "user", "content": text, "timestamp": n})], *parent);
            }
            Step::Answer { size, calls, results, failed, parent } => {
                let text = text_of(*size, "answer");
                let call = |at| json!({"type": "toolCall", "id": format!("c{n}_{at}"), "name": "bash", "arguments": {"command": "make"}});
                let mut content = vec![json!({"type": "text", "text": format!("answer_{n} {text}")})];
                content.extend((0..*calls).map(call));
                let stop = if *failed { "error" } else { "stop" };
                let answer = json!({"role": "assistant", "content": content, "stopReason": stop, "timestamp": n});
                let results = (0..*results.min(calls)).map(|at| result(&format!("c{n}_{at}"), &text));
                self.append(&std::iter::once(answer).chain(results).collect::<Vec<_>>(), *parent);
            }
            Step::Result => {
                let path = tree.leaf().map(|leaf| tree.path_to(&leaf)).unwrap_or_default();
                if let Some(call) = waiting(&path) {
                    self.append(&[result(&call, "late")], None);
                }
            }
            Step::Compact(keep) => self.may("session/compact", json!({"keepRecentTokens": keep, "wait": true})),
            Step::Undo => self.may("session/undo_compaction", json!({})),
            Step::Reset => self.may("session/reset", json!({})),
            Step::Prune => self.may("session/prune", json!({"protectTokens": 0, "minimumSavings": 0})),
            Step::Pin(at) => {
                if let Some(id) = tree.any(*at, |entry| entry["type"] == "message") {
                    self.may("session/pin", json!({"entryId": id}));
                }
            }
            Step::PinText => self.may("session/pin", json!({"text": format!("pinned_{n}")})),
            Step::Unpin(at) => {
                let pinned = |entry: &Value| entry["customType"] == "abridged.pin";
                if let Some(pin) = tree.any(*at, pinned).and_then(|id| tree.get(&id)) {
                    self.may("session/unpin", json!({"entryId": pin["data"]["entryId"]}));
                }
            }
            Step::Label(at) => {
                if let Some(id) = tree.any(*at, |entry| !is_marker(entry)) {
                    self.ok("session/label", json!({"targetEntryId": id, "label": format!("label_{n}")}));
                }
            }
            Step::Title => drop(self.ok("session/configure", json!({"title": format!("title_{n}")}))),
            Step::Navigate(target, way) => {
                let target = match target {
                    Target::Line(at) => tree.any(*at, |_| true),
                    Target::Unknown => Some("nowhere".to_owned()),
                };
                if let Some(target) = target {
                    self.goes(&tree, &target, *way);
                }
            }
            Step::Visit(at) => {
                if let Some(target) = tree.any(*at, |entry| !is_marker(entry)) {
                    self.visit(&tree, &target);
                }
            }
            Step::Reopen => {
                let before = (self.tree().leaf(), self.context());
                self.ok("session/close", json!({}));
                self.load();
                assert_eq!((self.leaf(), self.context()), before, "a reopening changes nothing");
            }
            Step::Kill(at, read) => {
                if let Some(target) = tree.any(*at, |_| true) {
                    self.killed(&tree, &target, *read);
                }
            }
        }
    }

    /// The leaf as the session says it.
    fn leaf(&mut self) -> Option<String> {
        self.ok("session/status", json!({}))["session"]["leafEntryId"].as_str().map(str::to_owned)
    }

    /// A navigation of any kind to any target.
    fn goes(&mut self, tree: &Tree, target: &str, way: Way) {
        let n = self.count;
        let (before, old) = (self.context(), tree.leaf());
        let decision = tree.decision(target);
        let there = match &decision {
            Decision::Goes(leaf) => self.context_there(tree, target, leaf.as_deref()),
            Decision::NotFound | Decision::Refused => None,
        };
        let mut params = json!({"targetEntryId": target, "summarize": way.summarize, "wait": true});
        if way.label {
            params["label"] = json!(format!("moved_{n}"));
        }
        let request = self.begin("session/navigate", params);
        let cancel = way.cancel.then(|| self.begin("session/cancel", json!({})));
        let answer = self.peer.answer(request);
        if let Some(cancel) = cancel {
            self.peer.answer(cancel).expect("a cancel is answered");
        }
        let now = self.tree();
        let unchanged = |world: &mut Self| {
            assert_eq!((now.leaf(), world.leaf()), (old.clone(), old.clone()), "the leaf stays");
            assert_eq!(world.context(), before, "the context stays");
            assert!(now.entries[tree.entries.len()..].iter().all(|entry| entry["type"] == "usage"));
        };
        let answer = match answer {
            Err(error) => {
                let code = error["data"]["code"].as_str().unwrap_or_default();
                let expected = match decision {
                    Decision::NotFound => code == "not_found",
                    Decision::Refused => code == "invalid_params",
                    Decision::Goes(_) => false,
                };
                assert!(expected || (way.cancel && code == "request_cancelled"), "{decision:?}: {error:#}");
                return unchanged(self);
            }
            Ok(answer) => answer,
        };
        if answer["outcome"] != "completed" {
            assert!(way.cancel && answer["outcome"] == "cancelled", "{answer:#}");
            assert_eq!((&answer["newLeafId"], &answer["summaryEntryId"]), (&json!(old), &Value::Null));
            return unchanged(self);
        }
        let Decision::Goes(leaf) = decision else { panic!("{target} is no target: {answer:#}") };
        assert_eq!(answer["oldLeafId"], json!(old));
        let entry = tree.get(target).expect("the target");
        let is_user = entry["message"]["role"] == "user";
        assert_eq!(answer["editorText"].is_string(), is_user, "{answer:#}");
        assert_eq!(json!(self.leaf()), answer["newLeafId"]);
        assert_eq!(now.leaf(), self.leaf(), "the last line says the leaf");
        let labelled = answer["summaryEntryId"].as_str().unwrap_or(target);
        if way.label {
            let label = now.entries.iter().rev().find(|entry| entry["type"] == "label").expect("a label");
            assert_eq!((&label["targetId"], &label["label"]), (&json!(labelled), &json!(format!("moved_{n}"))));
        }
        match answer["summaryEntryId"].as_str() {
            None => {
                assert_eq!(answer["newLeafId"], json!(leaf));
                let there = there.unwrap_or_else(|| self.context());
                assert_eq!(self.context(), there, "the context of {target} is the one of its leaf");
            }
            Some(summary) => {
                assert!(way.summarize);
                let entry = now.get(summary).expect("the summary");
                assert_eq!(entry["fromId"], json!(old.as_deref().unwrap_or("root")));
                let above = leaf.as_deref().map(|leaf| ids(&now.path_to(leaf))).unwrap_or_default();
                let mut path = ids(&now.path_to(summary));
                assert_eq!(path.pop().as_deref(), Some(summary));
                assert_eq!(path, above, "the summary is a child of the target");
                let context = self.context();
                let shown = context.entry_ids.as_array().expect("ids");
                assert_eq!(shown.last(), Some(&json!(summary)), "{:#}", context.messages);
            }
        }
    }

    /// There and back is the identity, wherever the leaf is a point at which a session goes on.
    fn visit(&mut self, tree: &Tree, target: &str) {
        let Some(old) = tree.leaf() else { return };
        let Decision::Goes(leaf) = tree.decision(target) else { return };
        let before = self.context();
        let there = self.context_there(tree, target, leaf.as_deref());
        assert_eq!(self.context_of(Some(&old)), before, "the leaf {old} has the context of the session");
        self.navigate(target);
        assert!(there.is_none_or(|there| there == self.context()), "{target}");
        if self.tree().decision(&old) == Decision::Goes(Some(old.clone())) {
            self.navigate(&old);
            assert_eq!((self.leaf(), self.context()), (Some(old), before), "there and back");
        }
    }

    /// A kill in the middle of a navigation: the session stands before or behind it.
    fn killed(&mut self, tree: &Tree, target: &str, read: usize) {
        let before = (tree.leaf(), self.context());
        let behind = match tree.decision(target) {
            Decision::Goes(leaf) => match self.context_there(tree, target, leaf.as_deref()) {
                Some(there) => (leaf, there),
                None => return,
            },
            Decision::NotFound | Decision::Refused => before.clone(),
        };
        self.begin("session/navigate", json!({"targetEntryId": target, "summarize": false}));
        let until = self.peer.said.len() + read;
        while self.peer.said.len() < until && self.peer.hear_within(Duration::from_millis(20)) {}
        self.peer.kill();
        self.peer = Peer::start(&self.home);
        self.load();
        let now = (self.leaf(), self.context());
        assert!(now == before || now == behind, "{now:#?}\nbefore: {before:#?}\nbehind: {behind:#?}");
    }

    /// The file only grew, and the session stands where its last line says, with a context of that path and no other.
    fn check(&mut self) -> Tree {
        let bytes = fs::read(&self.path).expect("the file is there");
        assert!(bytes.starts_with(&self.bytes), "lines are gone from the file");
        self.bytes = bytes;
        let tree = Tree::of(&self.bytes);
        assert_eq!(self.leaf(), tree.leaf());
        self.check_context(&tree);
        tree
    }

    fn check_context(&mut self, tree: &Tree) {
        let active = tree.path_to_last();
        let on_path: HashSet<&str> = active.iter().map(id_of).collect();
        let context = self.context();
        let messages = context.messages.as_array().expect("messages");
        assert_eq!(violations(messages), Vec::<String>::new());
        let shown = context.entry_ids.as_array().expect("ids").iter().filter_map(Value::as_str);
        let strange: Vec<&str> = shown.filter(|id| !on_path.contains(id)).collect();
        assert!(strange.is_empty(), "{strange:?} are entries of other branches");
        let cleared = active.iter().rposition(|entry| entry["type"] == "reset_boundary").unwrap_or(0);
        let sent = context.entry_ids.as_array().expect("ids");
        assert!(active[..cleared].iter().all(|entry| !sent.contains(&entry["id"])), "cleared entries are sent");
        conserved(&active[cleared..], &context.compaction, &context.entry_ids);
        let said = self.ok("session/entries", json!({}));
        let said: Vec<&Value> = said["entries"].as_array().expect("entries").iter().collect();
        let said: Vec<String> = ids(&said.into_iter().filter(|entry| !is_marker(entry)).collect::<Vec<_>>());
        let shown: Vec<&Value> = active.iter().filter(|entry| !is_marker(entry)).collect();
        assert_eq!(said, ids(&shown), "the active branch");
    }

    /// Every leaf of the tree, and every entry.
    fn check_all(&mut self) {
        let tree = self.check();
        let shown: Vec<&Value> = tree.entries.iter().filter(|entry| !is_marker(entry)).collect();
        let contexts: Vec<(String, Context)> = shown
            .iter()
            .filter(|entry| matches!(tree.decision(id_of(entry)), Decision::Goes(Some(leaf)) if leaf == id_of(entry)))
            .map(|entry| (id_of(entry).to_owned(), self.context_of(Some(id_of(entry)))))
            .collect();
        for (leaf, context) in contexts {
            self.navigate(&leaf);
            assert_eq!((self.leaf(), self.context()), (Some(leaf.clone()), context), "the context of {leaf}");
            self.check();
        }
        let last = (self.leaf(), self.context());
        self.peer.kill();
        self.peer = Peer::start(&self.home);
        self.load();
        assert_eq!((self.leaf(), self.context()), last, "a kill at rest changes nothing");
        let tree = self.tree();
        for (entry, line) in tree.entries.iter().zip(&tree.lines) {
            self.ok("session/entry", json!({"entryId": id_of(entry)}));
            let frame = self.peer.wire.last().expect("a frame");
            assert!(frame.contains(line.as_str()), "{line} is not answered as it is: {frame}");
        }
    }
}

fn result(call: &str, text: &str) -> Value {
    json!({"role": "toolResult", "toolCallId": call, "toolName": "bash", "content": [{"type": "text", "text": text}],
        "isError": false, "timestamp": 1})
}

/// A call of the last answer of a path that waits for its result.
fn waiting(path: &[&Value]) -> Option<String> {
    let messages: Vec<&Value> = path.iter().filter(|entry| in_context(entry)).map(|entry| &entry["message"]).collect();
    let results = messages.iter().rev().take_while(|message| message["role"] == "toolResult").count();
    let answer = messages.len().checked_sub(results + 1).map(|at| messages[at])?;
    let answered: HashSet<&str> =
        messages[messages.len() - results..].iter().filter_map(|it| it["toolCallId"].as_str()).collect();
    let calls = answer["content"].as_array()?.iter().filter_map(|block| block["id"].as_str());
    let mut open = calls.filter(|call| !answered.contains(call));
    (answer["stopReason"] != "error").then(|| open.next().map(str::to_owned)).flatten()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases("ABRIDGED_TREE_CASES", 6, 12),
        max_shrink_iters: 60,
        // A failure prints its steps. The time of a kill is not repeated by a seed.
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_path_the_context_and_the_conservation_hold_for_every_leaf(steps in prop::collection::vec(step(), 10..45)) {
        let mut world = World::new();
        for step in &steps {
            world.take(step);
            world.check();
        }
        world.check_all();
    }
}
