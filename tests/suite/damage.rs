//! Session files with damaged lines: everything that can be read is in the context, in its place.

use crate::support::{Daemon, Home, assistant, calls, header, result, session_of, turns, user};
use crate::wire::cases;
use abridged::{
    conversation::{
        context::{self, check::violations},
        path::Path as ContextPath,
    },
    log::{files, index::NEAR, sealed::Blocking},
    prompts::Prompts,
};
use proptest::{prelude::*, strategy::ValueTree};
use serde_json::{Value, json};
use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
};

/// The kinds and lines of the repairs in an answer or an event.
fn kinds(repairs: &Value) -> Vec<(&str, Option<u64>)> {
    let repairs = repairs.as_array().expect("repairs");
    repairs.iter().map(|repair| (repair["kind"].as_str().expect("a kind"), repair["line"].as_u64())).collect()
}

fn ids_of(context: &Value) -> Vec<&str> {
    context["entryIds"].as_array().expect("ids").iter().filter_map(Value::as_str).collect()
}

fn write(path: &Path, lines: &[String]) -> Vec<u8> {
    let text = lines.join("\n") + "\n";
    fs::write(path, &text).expect("a file");
    text.into_bytes()
}

/// The lines of a session of so many messages, the header first.
fn lines_of(home: &Home, messages: &[Value]) -> (PathBuf, Vec<String>) {
    let path = session_of(home, "damaged", messages);
    let text = fs::read_to_string(&path).expect("a file");
    (path, text.lines().map(str::to_owned).collect())
}

#[test]
fn glued_entries_are_found_by_every_method_and_reported_once() {
    let mut daemon = Daemon::start();
    let texts = ["one", "two", "three", "four", "five", "six"];
    let messages: Vec<Value> =
        texts.iter().enumerate().map(|(at, text)| if at % 2 == 0 { user(text) } else { assistant(text) }).collect();
    let (path, lines) = lines_of(&daemon.home, &messages);
    // One entry on the line of the header, and three on the next but one.
    let glued = [
        format!("{}{}", lines[0], lines[1]),
        lines[2].clone(),
        format!("{} {}{}", lines[3], lines[4], lines[5]),
        lines[6].clone(),
    ];
    let bytes = write(&path, &glued);
    let loaded = daemon.ok("session/load", json!({"path": path}));
    assert_eq!(kinds(&loaded["repairs"]), [("glued_entries", Some(1)), ("glued_entries", Some(3))]);
    let session = loaded["session"]["sessionId"].clone();
    let all = ["e0", "e1", "e2", "e3", "e4", "e5"];
    assert_eq!(ids_of(&daemon.ok("session/context", json!({"sessionId": session}))), all);
    let page = daemon.ok("session/entries", json!({"sessionId": session, "branch": "all"}));
    let lines_there: Vec<String> = page["entries"].as_array().expect("entries").iter().map(Value::to_string).collect();
    assert_eq!(lines_there, lines[1..]);
    let tree = daemon.ok("session/tree", json!({"sessionId": session}));
    for (at, node) in tree["nodes"].as_array().expect("nodes").iter().enumerate() {
        let parent = if at == 0 { Value::Null } else { json!(all[at - 1]) };
        assert_eq!((&node["id"], &node["parentId"]), (&json!(all[at]), &parent));
    }
    for (id, text) in all.iter().zip(texts) {
        let found = daemon.ok("session/search", json!({"sessionId": session, "query": text}));
        assert_eq!(found["matches"][0]["entryId"], *id, "{text}");
        daemon.ok("session/entry", json!({"sessionId": session, "entryId": id}));
    }
    let copy = daemon.home.path("copy.jsonl");
    daemon.ok("session/export", json!({"sessionId": session, "format": "jsonl", "path": copy}));
    let exported = fs::read_to_string(&copy).expect("a file");
    assert_eq!(exported.lines().skip(1).collect::<Vec<_>>(), lines[1..]);
    assert_eq!(fs::read(&path).expect("a file"), bytes, "the file keeps its bytes");
}

/// Copies of one entry on one line need the same repair several times.
#[test]
fn a_repair_of_one_line_is_reported_once() {
    let home = Home::new();
    let (path, lines) = lines_of(&home, &turns(1));
    let copy = &lines[2];
    for version in [3, 2] {
        let head = lines[0].replacen("\"version\":3", &format!("\"version\":{version}"), 1);
        write(&path, &[head, lines[1].clone(), copy.clone(), copy.repeat(3), lines[3].clone()]);
        let opened = files::open_read_only(&path, &Blocking::is_allowed_here()).expect("it opens");
        let seen: Vec<&str> =
            opened.repairs.iter().map(|repair| repair.kind).filter(|kind| *kind != "migrated").collect();
        assert_eq!(seen, ["glued_entries", "same_id"], "version {version}: {:?}", opened.repairs);
    }
}

#[test]
fn what_follows_a_broken_line_keeps_everything_before_it() {
    let home = Home::new();
    let (path, lines) = lines_of(&home, &turns(4));
    let broken = |line: &String| line.replacen("Request", "\\q", 1);
    // Remaining bytes of line 9 (entry e8, a request), the repairs, and the entries of the context.
    let cut = |to: usize| lines[9][..to].to_owned();
    for (line, expected) in [
        // A broken escape.
        (broken(&lines[9]), vec![("corrupt_line", 10)]),
        // Torn behind its ids, in its id, and in front of it.
        (cut(120), vec![("corrupt_line", 10)]),
        (cut(lines[9].find("e8").expect("an id")), vec![("corrupt_line", 10), ("missing_parent", 11)]),
        ("garbage".to_owned(), vec![("corrupt_line", 10), ("missing_parent", 11)]),
        // Nothing is left of it.
        (String::new(), vec![("missing_parent", 11)]),
    ] {
        let mut now = lines.clone();
        now[9].clone_from(&line);
        let bytes = write(&path, &now);
        let opened = files::open_read_only(&path, &Blocking::is_allowed_here()).expect("it opens");
        let seen: Vec<(&str, usize)> =
            opened.repairs.iter().map(|repair| (repair.kind, repair.line.expect("a line"))).collect();
        assert_eq!(seen, expected, "{line}");
        let context = context::build(opened.history.path(), &Prompts::default());
        let ids: Vec<String> =
            context.messages().iter().filter_map(|it| it.entry.as_ref()).map(ToString::to_string).collect();
        let all: Vec<String> = (0..16).filter(|at| *at != 8).map(|at| format!("e{at}")).collect();
        assert_eq!(ids, all, "{line}");
        assert_eq!(fs::read(&path).expect("a file"), bytes);
    }
}

#[test]
fn an_export_of_a_damaged_file_holds_together_without_repairs() {
    let mut daemon = Daemon::start();
    let (path, mut lines) = lines_of(&daemon.home, &turns(3));
    lines[4] = lines[4].replacen("Looked", "\\q", 1);
    lines.remove(7);
    write(&path, &lines);
    let session = daemon.load(&path);
    let context = daemon.ok("session/context", json!({"sessionId": session}));
    let copy = daemon.home.path("copy.jsonl");
    daemon.ok("session/export", json!({"sessionId": session, "format": "jsonl", "path": copy}));
    daemon.ok("session/close", json!({"sessionId": session}));
    let loaded = daemon.ok("session/load", json!({"path": copy}));
    assert_eq!(loaded["repairs"], json!([]));
    let again = daemon.ok("session/context", json!({"sessionId": session}));
    assert_eq!(again["entryIds"], context["entryIds"]);
    assert_eq!(again["messages"], context["messages"]);
}

/// The end of the file is read without the rest of it. The index, which is made later, says the same.
#[test]
fn damage_at_the_end_of_a_large_file_is_repaired_before_its_index_is_there() {
    let mut daemon = Daemon::start();
    let mut messages = vec![user(&"long ago ".repeat(2_000_000))];
    messages.extend(turns(6));
    let (path, mut lines) = lines_of(&daemon.home, &messages);
    // The context begins with the second turn.
    let summary = json!({"type": "compaction", "id": "c", "parentId": "e24", "timestamp": "2026-01-01T00:00:00.000Z",
        "summary": "S", "firstKeptEntryId": "e5", "tokensBefore": 1});
    lines.push(summary.to_string());
    let after = json!({"type": "message", "id": "last", "parentId": "c", "timestamp": "2026-01-01T00:00:00.000Z", "message": user("go on")});
    lines.push(after.to_string());
    lines[9] = "{garbage".to_owned();
    lines[13] = lines[13][..90].to_owned() + &lines.remove(14);
    lines.remove(16);
    write(&path, &lines);
    let loaded = daemon.ok("session/load", json!({"path": path}));
    assert_eq!(loaded["indexed"], false);
    assert_eq!(loaded["repairs"], json!([]));
    let session = loaded["session"]["sessionId"].clone();
    let before = daemon.ok("session/context", json!({"sessionId": session}));
    assert_eq!(before["compactionEntryId"], "c");
    let mut expected = Vec::new();
    expected.extend((5..25).filter(|at| ![8, 12, 16].contains(at)).map(|at| format!("e{at}")));
    expected.push("last".to_owned());
    assert_eq!(ids_of(&before), expected);
    let ready = daemon.until("index_ready")["params"]["event"].clone();
    let expected = [
        ("corrupt_line", Some(10)),
        ("missing_parent", Some(11)),
        ("corrupt_line", Some(14)),
        ("missing_parent", Some(17)),
    ];
    assert_eq!(kinds(&ready["repairs"]), expected);
    assert_eq!(daemon.ok("session/context", json!({"sessionId": session}))["entryIds"], before["entryIds"]);
    let tree = daemon.ok("session/tree", json!({"sessionId": session}));
    let nodes = tree["nodes"].as_array().expect("nodes");
    assert!(nodes.windows(2).all(|pair| pair[1]["parentId"] == pair[0]["id"]), "one chain: {nodes:#?}");
}

/// Something unreadable right before an entry may have been its parent. The id that it names is looked for in the
/// neighbourhood only, so that the file before is not read for it.
#[test]
fn behind_something_unreadable_a_parent_is_looked_for_nearby() {
    let home = Home::new();
    let messages: Vec<Value> = (0..NEAR + 50).map(|at| user(&format!("message {at}"))).collect();
    let (path, lines) = lines_of(&home, &messages);
    let last = messages.len() - 1;
    for (back, between, expected) in [
        (NEAR - 1, "{garbage\n", NEAR - 1),
        (NEAR, "{garbage\n", 0),
        // Nothing stands between, or nothing but blank lines: the branch begins where it says.
        (NEAR, "", NEAR),
        (NEAR, "\n", NEAR),
        (NEAR, " \t\r\n\n", NEAR),
        (NEAR, "\n{garbage\n\n", 0),
    ] {
        let parent = format!("e{}", last - back);
        let line = json!({"type": "message", "id": "x", "parentId": parent, "timestamp": "t", "message": user("on")});
        fs::write(&path, format!("{}\n{between}{line}\n", lines.join("\n"))).expect("a file");
        let history = files::open_read_only(&path, &Blocking::is_allowed_here()).expect("it opens").history;
        let parent = format!("e{}", last - expected);
        assert_eq!(history.path().last().and_then(|leaf| leaf.parent.clone()), Some(parent.as_str().into()));
        assert_eq!(history.path().len(), last - expected + 2);
        let by_index = history
            .library()
            .expect("an index")
            .path_to(&"x".into(), &Blocking::is_allowed_here())
            .expect("it is read")
            .expect("a path");
        assert_eq!(chain(&by_index), chain(history.path()));
    }
}

/// An append names its parent, and lands behind it at any distance: also where another program left blank lines or half a
/// line at the end of the file.
#[test]
fn an_append_lands_behind_its_parent_after_blank_and_half_lines() {
    let mut daemon = Daemon::start();
    let messages: Vec<Value> = (0..NEAR + 50).map(|at| user(&format!("message {at}"))).collect();
    let path = session_of(&daemon.home, "far", &messages);
    let branch = ["e0", "e1", "e2", "e3"];
    let half_with_ids = format!(r#"{{"type":"message","id":"half","parentId":"e{}","mess"#, messages.len() - 1);
    for rest in ["", "\n\n", " \n\t\n", "garbage\n", "{\"type\":\"mess", &half_with_ids] {
        daemon.load(&path);
        let mut file = fs::File::options().append(true).open(&path).expect("a file");
        std::io::Write::write_all(&mut file, rest.as_bytes()).expect("a write");
        let before = fs::read(&path).expect("a file");
        let params = json!({"sessionId": "far", "messages": [user("on")], "parentEntryId": "e3"});
        let ours = daemon.ok("session/append", params)["entryIds"][0].as_str().expect("an id").to_owned();
        let expected = [branch.as_slice(), &[ours.as_str()]].concat();
        assert_eq!(ids_of(&daemon.ok("session/context", json!({"sessionId": "far"}))), expected, "live: {rest:?}");
        daemon.ok("session/close", json!({"sessionId": "far"}));
        daemon.load(&path);
        assert_eq!(ids_of(&daemon.ok("session/context", json!({"sessionId": "far"}))), expected, "reopened: {rest:?}");
        let at_entry = daemon.ok("session/context", json!({"sessionId": "far", "entryId": ours}));
        assert_eq!(ids_of(&at_entry), expected, "by the index: {rest:?}");
        assert!(fs::read(&path).expect("a file").starts_with(&before), "the bytes that were there stay");
        daemon.ok("session/close", json!({"sessionId": "far"}));
    }
}

#[test]
fn entries_are_given_with_the_parent_that_the_tree_has() {
    let mut daemon = Daemon::start();
    let messages: Vec<Value> = (0..4).map(|at| user(&format!("message {at}"))).collect();
    let (path, mut lines) = lines_of(&daemon.home, &messages);
    lines[4] = lines[4].replacen("\"e2\"", "\"gone\"", 1);
    let bytes = write(&path, &lines);
    let session = daemon.load(&path);
    let mended = lines[4].replacen("\"gone\"", "\"e2\"", 1);
    for params in [json!({"sessionId": session}), json!({"sessionId": session, "branch": "all"})] {
        let page = daemon.ok("session/entries", params);
        let given: Vec<String> = page["entries"].as_array().expect("entries").iter().map(Value::to_string).collect();
        assert_eq!(given, [lines[1].as_str(), &lines[2], &lines[3], &mended]);
    }
    let entry = daemon.ok("session/entry", json!({"sessionId": session, "entryId": "e3"}));
    assert_eq!(entry["entry"].to_string(), mended);
    assert_eq!(fs::read(&path).expect("a file"), bytes, "the file keeps its bytes");
}

#[test]
fn a_line_of_zeros_is_a_corrupt_line_and_an_entry_on_the_line_of_the_header_is_reported() {
    let home = Home::new();
    let (path, lines) = lines_of(&home, &turns(1));
    let zeros = "\0".repeat(50);
    for version in [3, 2] {
        let header = lines[0].replacen("\"version\":3", &format!("\"version\":{version}"), 1);
        let rest = lines[2..].join("\n");
        fs::write(&path, format!("{header}{}\n{zeros}\n{rest}\n", lines[1])).expect("a file");
        let opened = files::open_read_only(&path, &Blocking::is_allowed_here()).expect("it opens");
        let seen: Vec<(&str, Option<usize>)> =
            opened.repairs.iter().map(|repair| (repair.kind, repair.line)).take(2).collect();
        assert_eq!(seen, [("glued_entries", Some(1)), ("corrupt_line", Some(2))], "version {version}");
        assert_eq!(opened.history.path().len(), 4, "version {version}");
    }
}

/// An entry of a generated session.
#[derive(Debug, Clone)]
struct Given {
    /// The call that its message is a result of, or its own number.
    call: usize,
    /// Where the damage of it changes more than its own message.
    sensitive: bool,
}

/// A line of a generated file: its bytes and the entries on it.
#[derive(Debug, Clone)]
struct Lines(Vec<(Vec<u8>, Vec<usize>)>);

/// One damage: its kind, its line, and a number for the rest.
type Damage = (u8, prop::sample::Index, u32);

/// An id as programs make them.
fn id_of(at: usize) -> String {
    format!("{:08x}", (at as u32 + 1).wrapping_mul(0x9E37_79B1))
}

/// A session of turns with tools, an abandoned branch, and a compaction. Each message says `<number id>` once.
///
/// Damage of four lines may change more than their own messages, because nothing else says where they stood: the entry
/// at which a branch begins and the one it follows, a compaction, and the first entry that it keeps. Without them the
/// abandoned branch, or what was compacted away, may be in the context.
fn generated(
    shape: &[u8],
    fork: prop::sample::Index,
    compact: Option<prop::sample::Index>,
) -> (Vec<String>, Vec<Given>) {
    let mut lines = vec![header("generated").to_string()];
    let mut given: Vec<Given> = Vec::new();
    let mut parent: Option<usize> = None;
    let add = |given: &mut Vec<Given>,
               lines: &mut Vec<String>,
               parent: &mut Option<usize>,
               call: Option<usize>,
               mut line: Value| {
        let at = given.len();
        let mut whole = json!({"type": line["type"].take(), "id": id_of(at), "parentId": parent.map(id_of), "timestamp": "2026-01-01T00:00:00.000Z"});
        for (key, value) in line.as_object().expect("an object").iter().filter(|(key, _)| *key != "type") {
            whole[key] = value.clone();
        }
        lines.push(whole.to_string());
        given.push(Given { call: call.unwrap_or(at), sensitive: false });
        *parent = Some(at);
    };
    let fork = fork.index(shape.len());
    let compact = compact.map(|at| at.index(shape.len()));
    for (turn, kind) in shape.iter().enumerate() {
        let message = |message: Value| json!({"type": "message", "message": message});
        let say = |at: usize| format!("<{at} {}> a \"quoted\" {{\"key\": [1]}} text, é\\ and more of it", id_of(at));
        let begin = given.len();
        add(&mut given, &mut lines, &mut parent, None, message(user(&say(begin))));
        if kind % 3 > 0 {
            let call = given.len();
            let name = format!("call{turn}");
            let mut calling = calls(&[&name]);
            calling["content"].as_array_mut().expect("blocks").insert(0, json!({"type": "text", "text": say(call)}));
            add(&mut given, &mut lines, &mut parent, None, message(calling));
            add(&mut given, &mut lines, &mut parent, Some(call), message(result(&name, &say(call + 1))));
        }
        if kind % 2 == 0 {
            let line = json!({"type": "custom", "customType": "state", "data": {"entries": [{"type": "message", "id": "inner", "parentId": null}]}});
            add(&mut given, &mut lines, &mut parent, None, line);
        }
        let at = given.len();
        add(&mut given, &mut lines, &mut parent, None, message(assistant(&say(at))));
        if compact == Some(turn) {
            given[begin].sensitive = true;
            let line =
                json!({"type": "compaction", "summary": "S", "firstKeptEntryId": id_of(begin), "tokensBefore": 1});
            add(&mut given, &mut lines, &mut parent, None, line);
            given.last_mut().expect("it was added").sensitive = true;
        }
        if fork == turn {
            let back = parent;
            for _ in 0..2 {
                let at = given.len();
                add(&mut given, &mut lines, &mut parent, None, message(user(&say(at))));
            }
            parent = back;
            given[back.expect("a turn")].sensitive = true;
            let at = given.len();
            add(&mut given, &mut lines, &mut parent, None, message(user(&say(at))));
            given[at].sensitive = true;
        }
    }
    (lines, given)
}

impl Lines {
    fn of(lines: &[String]) -> Self {
        let on = |at: usize| if at == 0 { Vec::new() } else { vec![at - 1] };
        Self(lines.iter().enumerate().map(|(at, line)| (line.clone().into_bytes(), on(at))).collect())
    }

    /// Damages a line. Gives the entries whose own messages may not be as they were.
    fn damage(&mut self, given: &[Given], (kind, at, number): &Damage) -> Vec<usize> {
        let at = at.index(self.0.len());
        let next = (at + 1).min(self.0.len() - 1);
        let place = *number as usize % self.0[at].0.len().max(1);
        let entries = self.0[at].1.clone();
        let change_id = |line: &mut (Vec<u8>, Vec<usize>), key: &str| {
            let text = String::from_utf8_lossy(&line.0).into_owned();
            let found = text.find(key).map(|found| found + key.len());
            if let Some(found) = found.filter(|found| text.len() > found + 8) {
                line.0[found..found + 8].copy_from_slice(format!("{number:08x}").as_bytes());
            }
        };
        match kind % 9 {
            _ if self.0.len() < 3 || at == 0 && kind % 9 != 3 => return Vec::new(),
            0 => drop(self.0.remove(at)),
            1 => self.0.insert(at, self.0[at].clone()),
            2 if at != next => {
                self.0.swap(at, next);
                return [entries, self.0[at].1.clone()].concat();
            }
            3 if at != next => return self.glue(at, next),
            4 => self.0[at].0.truncate(place),
            5 if at != next => {
                // Torn, and the next line glued to what is left. A branch that begins there may be a part of the torn line.
                self.0[at].0.truncate(place);
                let branches = self.0[next].1.clone().into_iter().filter(|at| given[*at].sensitive);
                return entries.into_iter().chain(branches).chain(self.glue(at, next)).collect();
            }
            6 if entries.len() == 1 && *number > 0xF000_0000 => {
                change_id(&mut self.0[at], "\"id\":\"");
                // Nothing but the id is another, and no entry had this one.
                return if given[entries[0]].sensitive { entries } else { Vec::new() };
            }
            7 if entries.len() == 1 && *number > 0xF000_0000 => {
                change_id(&mut self.0[at], "\"parentId\":\"");
                return if given[entries[0]].sensitive { entries } else { Vec::new() };
            }
            6 => self.0[at].0.splice(place..place, *b"\\q").for_each(drop),
            _ if place < self.0[at].0.len() => self.0[at].0[place] = (number >> 8) as u8,
            _ => {}
        }
        entries
    }

    /// Takes the newline between two lines away. Where the first one is cut off right before a value, the second one reads
    /// as that value, unless it names the first one as its parent: its entries may not be as they were.
    fn glue(&mut self, at: usize, next: usize) -> Vec<usize> {
        let (bytes, more) = self.0.remove(next);
        let is_value = matches!(self.0[at].0.last(), Some(b':' | b',' | b'['));
        self.0[at].0.extend(bytes);
        self.0[at].1.extend(&more);
        if is_value { more } else { Vec::new() }
    }

    /// The entries of a last line that has no newline and does not end with a whole one: it is left out as a torn tail.
    fn cut_off(&self, newline: bool) -> Vec<usize> {
        let (bytes, entries) = self.0.last().expect("a header");
        let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<Value>();
        if newline || values.all(|value| value.is_ok()) { Vec::new() } else { entries.clone() }
    }

    fn bytes(&self, newline: bool) -> Vec<u8> {
        let mut bytes = self.0.iter().map(|(bytes, _)| bytes.as_slice()).collect::<Vec<_>>().join(&b'\n');
        if newline {
            bytes.push(b'\n');
        }
        bytes
    }
}

/// The numbers of the messages of a context, in order. Frames and the repairs that a provider needs have none. A number
/// counts only with its id beside it: one changed byte does not make one message look like another.
fn numbers(path: &ContextPath) -> Vec<usize> {
    let context = context::build(path, &Prompts::default());
    let messages: Vec<Value> =
        context.messages().iter().map(|it| serde_json::from_str(&it.json()).expect("a message is JSON")).collect();
    assert_eq!(violations(&messages), Vec::<String>::new());
    let number = |message: &Value| {
        let blocks = message["content"].as_array().into_iter().flatten();
        let text = blocks.filter_map(|block| block["text"].as_str()).chain(message["content"].as_str()).next()?;
        let (number, id) = text.strip_prefix('<')?.split_once('>')?.0.split_once(' ')?;
        number.parse().ok().filter(|number| id_of(*number) == id)
    };
    messages.iter().filter_map(number).collect()
}

/// Each entry of a path with the entry it follows. The parent of the first is not
/// looked for where more stands before it.
fn chain(path: &ContextPath) -> Vec<(String, Option<String>)> {
    let parent = |at: usize| path[at].parent.as_ref().filter(|_| at > 0 || !path.is_cut()).map(ToString::to_string);
    (0..path.len()).map(|at| (path[at].id.to_string(), parent(at))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases("ABRIDGED_DAMAGES", 100, 200)))]

    /// The context of a damaged file is that of the whole one, but for the messages on the damaged lines, and for results
    /// whose call was on one: a provider takes no result without its call.
    #[test]
    fn a_damaged_file_gives_everything_that_was_not_damaged(
        shape in prop::collection::vec(0_u8..6, 2..8),
        fork in any::<prop::sample::Index>(),
        compact in proptest::option::of(any::<prop::sample::Index>()),
        damages in prop::collection::vec((any::<u8>(), any::<prop::sample::Index>(), any::<u32>()), 0..5),
        newline in any::<bool>(),
        split in any::<prop::sample::Index>(),
    ) {
        let home = Home::new();
        let path = home.path("damaged.jsonl");
        let (lines, given) = generated(&shape, fork, compact);
        write(&path, &lines);
        let whole = files::open_read_only(&path, &Blocking::is_allowed_here()).expect("the whole file opens");
        prop_assert_eq!(whole.repairs.len(), 0, "{:?}", whole.repairs);
        let before = numbers(whole.history.path());

        let mut now = Lines::of(&lines);
        let mut damaged = HashSet::new();
        for damage in &damages {
            damaged.extend(now.damage(&given, damage));
        }
        let bytes = now.bytes(newline);
        damaged.extend(now.cut_off(newline));
        fs::write(&path, &bytes).expect("a file");
        let opened = files::open_read_only(&path, &Blocking::is_allowed_here()).expect("a damaged file opens");
        let after = numbers(opened.history.path());

        // Nothing is invented.
        let unharmed = |number: &usize| !damaged.contains(number) && given.get(*number).is_some_and(|it| !damaged.contains(&it.call));
        prop_assert!(after.iter().all(|number| *number < given.len()), "{after:?}");
        if !damaged.iter().any(|at| given[*at].sensitive) {
            let of = |numbers: &[usize]| numbers.iter().copied().filter(|number| unharmed(number)).collect::<Vec<_>>();
            prop_assert_eq!(of(&after), of(&before), "damaged {:?}:\n{}", damaged, String::from_utf8_lossy(&bytes));
        }
        let told: HashSet<_> = opened.repairs.iter().map(|repair| (repair.kind, repair.line, &repair.detail)).collect();
        prop_assert_eq!(told.len(), opened.repairs.len(), "each repair is reported once: {:?}", opened.repairs);

        // The index and the walk from the end agree, for every entry.
        let library = opened.history.library().expect("a small file has an index");
        if let Some(leaf) = opened.history.path().last() {
            let by_index = library.path_to(&leaf.id, &Blocking::is_allowed_here()).expect("it can be read").expect("the leaf is there");
            prop_assert_eq!(chain(&by_index), chain(opened.history.path()));
        }
        // A session that was open while the second part came says the same.
        let newlines: Vec<usize> = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect();
        if let Some(first) = (!newlines.is_empty()).then(|| newlines[split.index(newlines.len())]) {
            fs::write(&path, &bytes[..first]).expect("a file");
            let files::Opened { mut history, log: mut follower, .. } = files::open_read_only(&path, &Blocking::is_allowed_here()).expect("it opens");
            let mut file = fs::OpenOptions::new().append(true).open(&path).expect("a file");
            std::io::Write::write_all(&mut file, &bytes[first..]).expect("a write");
            let leaf = history.path().last().map(|leaf| leaf.id.clone());
            let grown = follower.catch_up(leaf.as_ref()).expect("it is read on");
            grown.entries.into_iter().for_each(|placed| history.push(placed));
            if let Some(path) = grown.path {
                history.set_path(path);
            }
            let again = files::open_read_only(&path, &Blocking::is_allowed_here()).expect("it opens");
            if again.history.index().map(|index| index.len()) == history.index().map(|index| index.len()) {
                let leaf = again.history.path().last().map(|leaf| leaf.id.clone());
                prop_assert_eq!(history.path().last().map(|leaf| leaf.id.clone()), leaf.clone());
                prop_assert_eq!(numbers(history.path()), numbers(again.history.path()));
                if let Some(leaf) = leaf {
                    let of = |history: &abridged::log::history::History| {
                        let library = history.library().expect("an index");
                        chain(&library.path_to(&leaf, &Blocking::is_allowed_here()).expect("it can be read").expect("the leaf is there"))
                    };
                    prop_assert_eq!(of(&history), of(&again.history));
                }
            } else {
                // The last line has no newline: it may still be on its way.
                prop_assert!(!newline);
            }
        }
        drop(opened);
    }
}

/// The same files as before, in one daemon: it answers for each as the library reads it, goes on writing to it, and reads
/// the same again.
#[test]
fn a_daemon_opens_damaged_files_and_goes_on_with_them() {
    let mut daemon = Daemon::start();
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let damage = (any::<u8>(), any::<prop::sample::Index>(), any::<u32>());
    let given =
        (prop::collection::vec(0_u8..6, 2..8), any::<prop::sample::Index>(), prop::collection::vec(damage, 1..5));
    for round in 0..40 {
        let (shape, fork, damages) = given.new_tree(&mut runner).expect("a value").current();
        let (lines, entries) = generated(&shape, fork, (round % 2 == 0).then_some(fork));
        let mut now = Lines::of(&lines);
        damages.iter().for_each(|damage| drop(now.damage(&entries, damage)));
        let path = daemon.home.path(&format!("damaged{round}.jsonl"));
        let bytes = now.bytes(true);
        fs::write(&path, &bytes).expect("a file");
        let path_by_library =
            files::open_read_only(&path, &Blocking::is_allowed_here()).expect("it opens").history.path().clone();
        let loaded = daemon.ok("session/load", json!({"path": path}));
        let session = loaded["session"]["sessionId"].clone();
        let context = daemon.ok("session/context", json!({"sessionId": session}));
        let built = context::build(&path_by_library, &Prompts::default());
        let ids: Vec<Value> = built.messages().iter().map(|it| json!(it.entry_shown())).collect();
        assert_eq!(context["entryIds"], json!(ids), "{}", String::from_utf8_lossy(&bytes));
        let answer = daemon.ok("session/append", json!({"sessionId": session, "messages": [user("go on")]}));
        assert!(fs::read(&path).expect("a file").starts_with(&bytes), "the bytes that were there stay");
        let with_ours = [ids, vec![answer["entryIds"][0].clone()]].concat();
        for _ in 0..2 {
            let context = daemon.ok("session/context", json!({"sessionId": session}));
            let sent = context["entryIds"].as_array().expect("ids").clone();
            assert_eq!(sent, with_ours, "{}", String::from_utf8_lossy(&bytes));
            daemon.ok("session/close", json!({"sessionId": session}));
            daemon.load(&path);
        }
        daemon.ok("session/close", json!({"sessionId": session}));
    }
}

/// A line of zeros that no newline ends, as a crash leaves it on some file systems. Sparse: it takes no room on the disk.
fn grow(path: &Path, bytes: u64) {
    fs::File::options().append(true).open(path).and_then(|file| file.set_len(bytes)).expect("a sparse file");
}

/// The most memory that a process had so far, in MB.
fn peak(daemon: &Daemon) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", daemon.pid())).expect("a process");
    let line = status.lines().find(|line| line.starts_with("VmHWM")).expect("a peak");
    line.split_whitespace().nth(1).and_then(|number| number.parse::<u64>().ok()).expect("a number") / 1024
}

#[test]
fn an_endless_last_line_is_refused_with_its_offset_and_read_up_to_it_where_nothing_is_written() {
    let mut daemon = Daemon::start();
    let path = session_of(&daemon.home, "sparse", &turns(3));
    let whole = fs::metadata(&path).expect("a file").len();
    grow(&path, 1 << 30);
    let error = daemon.err("session/load", json!({"path": path}));
    assert_eq!(error["data"]["code"], "storage_error");
    let text = error["message"].as_str().expect("a message");
    assert!(text.contains("sparse.jsonl") && text.contains(&format!("byte {whole}")), "{text}");
    assert!(!daemon.home.path("sparse.jsonl.lock").exists(), "no litter");
    let loaded = daemon.ok("session/load", json!({"path": path, "readOnly": true}));
    assert_eq!(kinds(&loaded["repairs"]), [("torn_tail", Some(14))]);
    let context = daemon.ok("session/context", json!({"sessionId": "sparse"}));
    assert_eq!(ids_of(&context).len(), 12);
    assert_eq!(fs::metadata(&path).expect("a file").len(), 1 << 30);
    assert!(peak(&daemon) < 700, "{} MB", peak(&daemon));
}

#[test]
fn a_line_over_the_limit_in_the_middle_is_left_out() {
    let mut daemon = Daemon::start();
    let (path, lines) = lines_of(&daemon.home, &turns(3));
    fs::write(&path, lines[..8].join("\n") + "\n").expect("a file");
    grow(&path, 200 << 20);
    let rest = format!("\n{}\n", lines[8..].join("\n"));
    let mut file = fs::File::options().append(true).open(&path).expect("a file");
    std::io::Write::write_all(&mut file, rest.as_bytes()).expect("a write");
    let loaded = daemon.ok("session/load", json!({"path": path}));
    assert_eq!(loaded["indexed"], false);
    let context = daemon.ok("session/context", json!({"sessionId": "damaged"}));
    assert_eq!(ids_of(&context).len(), 12, "everything else is there");
    let ready = daemon.until("index_ready")["params"]["event"].clone();
    assert_eq!(kinds(&ready["repairs"]), [("corrupt_line", Some(9))]);
    assert_eq!(ready["entryCount"], 12);
    assert!(peak(&daemon) < 700, "{} MB", peak(&daemon));
}

#[test]
fn an_endless_line_of_another_program_is_refused_before_anything_is_written() {
    let mut daemon = Daemon::start();
    let path = session_of(&daemon.home, "grown", &turns(1));
    daemon.load(&path);
    let whole = fs::metadata(&path).expect("a file").len();
    grow(&path, 1 << 30);
    let error = daemon.err("session/append", json!({"sessionId": "grown", "messages": [user("ours")]}));
    assert_eq!(error["data"]["code"], "storage_error");
    assert!(error["message"].as_str().is_some_and(|text| text.contains(&format!("byte {whole}"))), "{error}");
    assert_eq!(fs::metadata(&path).expect("a file").len(), 1 << 30);
    assert_eq!(daemon.ok("session/status", json!({"sessionId": "grown"}))["session"]["entryCount"], 4);
    assert!(peak(&daemon) < 700, "{} MB", peak(&daemon));
}

#[test]
fn a_header_or_an_old_file_without_an_end_is_told() {
    let mut daemon = Daemon::start();
    let path = daemon.home.path("endless.jsonl");
    fs::write(&path, "{\"type\":\"session\",\"id\":\"x").expect("a file");
    grow(&path, 1 << 30);
    let error = daemon.err("session/load", json!({"path": path}));
    assert_eq!(error["data"]["code"], "invalid_params");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("endless.jsonl")), "{error}");
    let old = json!({"type": "message", "timestamp": "2025-01-01T00:00:00.000Z", "message": user("old")});
    let head = json!({"type": "session", "id": "old", "timestamp": "2025-01-01T00:00:00.000Z", "cwd": "/p"});
    fs::write(&path, format!("{head}\n{old}{old}\n{old}\n")).expect("a file");
    grow(&path, 1 << 30);
    let loaded = daemon.ok("session/load", json!({"path": path, "readOnly": true}));
    assert_eq!(kinds(&loaded["repairs"])[..2], [("glued_entries", Some(2)), ("torn_tail", Some(4))]);
    let context = daemon.ok("session/context", json!({"sessionId": "old"}));
    assert_eq!(ids_of(&context).len(), 3);
    assert!(peak(&daemon) < 700, "{} MB", peak(&daemon));
}
