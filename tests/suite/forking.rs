//! `session/fork`: a path as a session of its own.

mod disk;
mod sources;

use crate::{
    provider::{Format, Provider, Step},
    summarizing::{good_model, settings},
    support::*,
};
use serde_json::{Value, json};
use std::{fs, path::PathBuf};

/// The lines of a session file without its header.
fn lines(path: &str) -> Vec<String> {
    fs::read_to_string(path).expect("a file").lines().skip(1).map(str::to_owned).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

/// The contents of a context's messages.
fn contents(daemon: &mut Daemon, session: &Value) -> Vec<String> {
    let context = daemon.ok("session/context", json!({"sessionId": session}));
    let messages = context["messages"].as_array().expect("messages").iter();
    messages
        .map(|message| match &message["content"] {
            Value::String(text) => text.clone(),
            blocks => blocks.as_array().into_iter().flatten().filter_map(|block| block["text"].as_str()).collect(),
        })
        .collect()
}

fn fork(daemon: &mut Daemon, params: Value) -> Value {
    daemon.ok("session/fork", params)
}

/// The survey's session: u1, a1, u2, a2, a compaction that keeps two messages, u3, a3, u4, a4.
fn compacted_in_the_middle(home: &Home) -> PathBuf {
    let mut parent = Value::Null;
    let mut lines = vec![header("picture")];
    for id in ["u1", "a1", "u2", "a2", "c", "u3", "a3", "u4", "a4"] {
        let mut line =
            json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2026-01-01T00:00:00.000Z"});
        match id.split_at(1) {
            ("u", _) => line["message"] = user(id),
            ("a", _) => line["message"] = assistant(id),
            _ => {
                line["type"] = "compaction".into();
                line["summary"] = "They met.".into();
                line["firstKeptEntryId"] = "u2".into();
                line["tokensBefore"] = 100.into();
            }
        }
        parent = id.into();
        lines.push(line);
    }
    home.session("picture.jsonl", &lines)
}

#[test]
fn a_fork_behind_a_compaction_has_it_and_one_before_it_has_none() {
    let mut daemon = Daemon::start();
    let path = compacted_in_the_middle(&daemon.home);
    let session = daemon.load(&path);
    let source = lines(&path.display().to_string());

    let answer = fork(&mut daemon, json!({"sessionId": session, "entryId": "u3"}));
    assert_eq!(answer["editorText"], "u3");
    let forked = &answer["session"];
    assert_eq!(lines(text(&forked["path"])), source[..5], "u1, a1, u2, a2 and the compaction");
    assert_eq!((&forked["leafEntryId"], &forked["parentSession"]), (&json!("c"), &json!(path)));
    let seen = contents(&mut daemon, &forked["sessionId"]);
    assert!(seen.len() == 3 && seen[0].contains("They met.") && seen[1..] == ["u2", "a2"], "{seen:#?}");

    let answer = fork(&mut daemon, json!({"sessionId": session, "entryId": "u2"}));
    assert_eq!(answer["editorText"], "u2");
    let forked = &answer["session"];
    assert_eq!(lines(text(&forked["path"])), source[..2], "u1 and a1");
    assert_eq!(contents(&mut daemon, &forked["sessionId"]), ["u1", "a1"], "the compaction is undone");

    assert_eq!(lines(&path.display().to_string()), source, "the session stays as it is");
}

fn refused(daemon: &mut Daemon, params: Value, path: &str, told: &[&str]) {
    let error = daemon.err("session/fork", params);
    assert_eq!((&error["data"]["code"], &error["data"]["path"]), (&json!("invalid_params"), &json!(path)), "{error:#}");
    let message = text(&error["message"]);
    assert!(told.iter().all(|told| message.contains(told)), "{message}");
}

#[test]
fn a_fork_ends_before_an_entry_or_with_it_or_has_the_whole_path() {
    let mut daemon = Daemon::start();
    let path = compacted_in_the_middle(&daemon.home);
    let session = daemon.load(&path);
    let source = lines(&path.display().to_string());
    for (more, count, leaf, editor) in [
        (json!({"entryId": "u3", "position": "at"}), 6, json!("u3"), Value::Null),
        (json!({"entryId": "u3", "position": "before"}), 5, json!("c"), json!("u3")),
        (json!({"entryId": "a4"}), 8, json!("u4"), Value::Null),
        (json!({"entryId": "a4", "position": "at"}), 9, json!("a4"), Value::Null),
        (json!({"entryId": "c"}), 4, json!("a2"), Value::Null),
        (json!({"entryId": "c", "position": "at"}), 5, json!("c"), Value::Null),
        (json!({"entryId": "u1"}), 0, Value::Null, json!("u1")),
        (json!({"position": "at"}), 9, json!("a4"), Value::Null),
        (json!({}), 9, json!("a4"), Value::Null),
    ] {
        let mut params = more.clone();
        params["sessionId"] = json!(session);
        let answer = fork(&mut daemon, params);
        let forked = &answer["session"];
        assert_eq!(lines(text(&forked["path"])), source[..count], "{more}");
        assert_eq!((&forked["leafEntryId"], &answer["editorText"]), (&leaf, &editor), "{more}");
        assert_eq!((&forked["parentSession"], &forked["cwd"]), (&json!(path), &json!("/project")), "{more}");
    }
    let of = |more: Value| {
        let mut params = json!({"sessionId": session});
        params.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        params
    };
    refused(&mut daemon, of(json!({"position": "before"})), "position", &["entryId"]);
    refused(&mut daemon, of(json!({"cwd": "elsewhere"})), "cwd", &["absolute"]);
    let error = daemon.err("session/fork", of(json!({"entryId": "nowhere"})));
    assert_eq!((&error["data"]["code"], &error["data"]["kind"]), (&json!("not_found"), &json!("entry")), "{error:#}");
    let answer = fork(&mut daemon, of(json!({"cwd": "/else/where"})));
    assert_eq!(answer["session"]["cwd"], "/else/where");
    assert!(text(&answer["session"]["path"]).contains("/--else-where--/"), "{answer:#}");
}

#[test]
fn a_fork_goes_on_as_a_session_of_its_own_and_its_client_hears_of_it() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(json!({"cwd": "/project", "title": "First"}));
    let messages = daemon.append(&session, &[user("One."), assistant("Two.")])["entryIds"].clone();
    let answer = fork(&mut daemon, json!({"sessionId": session}));
    let forked = answer["session"]["sessionId"].as_str().expect("an id").to_owned();
    assert_eq!(answer["session"]["title"], "First");
    let from = daemon.events.len();
    let added = daemon.append(&forked, &[user("Three.")])["entryIds"][0].clone();
    assert_eq!(contents(&mut daemon, &json!(forked)), ["One.", "Two.", "Three."]);
    let told: Vec<_> =
        daemon.events_since(from).into_iter().filter(|(_, it)| it["sessionId"] == json!(forked)).collect();
    assert_eq!(event(&told, "entry_appended")["entry"]["id"], added);
    assert_eq!(contents(&mut daemon, &json!(session)), ["One.", "Two."]);
    // The entries keep their ids; the next fork has the whole chain in the list.
    let tree = daemon.ok("session/tree", json!({"sessionId": forked}));
    let named = |id: &Value| tree["nodes"].as_array().is_some_and(|nodes| nodes.iter().any(|node| node["id"] == *id));
    assert!(named(&messages[0]) && named(&messages[1]) && named(&added), "{tree:#}");
    let second = fork(&mut daemon, json!({"sessionId": forked, "entryId": added, "position": "at"}));
    let listed = daemon.ok("session/list", json!({}));
    let parent_of = |id: &Value| {
        let found = listed["sessions"].as_array().into_iter().flatten().find(|it| it["sessionId"] == *id);
        found.unwrap_or_else(|| panic!("{id} is not in {listed:#}"))["parentSession"].clone()
    };
    assert_eq!(parent_of(&second["session"]["sessionId"]), answer["session"]["path"]);
    assert!(text(&parent_of(&json!(forked))).contains(&session) && parent_of(&json!(session)).is_null());
    let mut command = daemon.home.command();
    command.arg("sessions");
    let (code, out, err) = run(command);
    let rows: Vec<&str> = out.lines().skip(1).collect();
    assert!(code == Some(0) && err.is_empty() && rows.len() == 3, "{out}{err}");
    let chain = [session.as_str(), &forked, text(&second["session"]["sessionId"])];
    for (row, id) in rows.iter().zip(chain) {
        assert!(id.starts_with(row.split(' ').next().expect("a word")), "{id} in {out}");
    }
}

/// A session with everything that a context depends on: pins, labels, edits, two compactions of which one is undone, a
/// title, settings, another branch.
fn rich(daemon: &mut Daemon) -> (String, PathBuf) {
    let new = json!({"cwd": "/project", "title": "Rich", "systemPrompt": "Be brief.", "contextWindow": 16_000});
    let session = daemon.new_session(new);
    let of = |more: Value| {
        let mut params = json!({"sessionId": session, "wait": true});
        params.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        params
    };
    let added = daemon.append(&session, &turns(6))["entryIds"].clone();
    daemon.ok("session/pin", json!({"sessionId": session, "entryId": added[4]}));
    daemon.ok("session/label", json!({"sessionId": session, "targetEntryId": added[8], "label": "third"}));
    daemon.ok("session/pin", json!({"sessionId": session, "text": "Never touch the lock."}));
    let compacted = daemon.ok("session/compact", of(json!({"keepRecentTokens": 300})));
    assert_eq!(compacted["outcome"], "completed", "{compacted:#}");
    daemon.append(&session, &[user("Behind the first compaction."), assistant("Yes.")]);
    daemon.ok("session/undo_compaction", json!({"sessionId": session}));
    daemon.append(&session, &[user("Behind its undo."), assistant("Yes.")]);
    let pruned = daemon.ok("session/prune", json!({"sessionId": session, "protectTokens": 100, "minimumSavings": 0}));
    assert!(pruned["entryIds"].as_array().is_some_and(|it| !it.is_empty()), "{pruned:#}");
    daemon.append(&session, &turns(2));
    let compacted = daemon.ok("session/compact", of(json!({"keepRecentTokens": 300})));
    assert_eq!(compacted["outcome"], "completed", "{compacted:#}");
    daemon.append(
        &session,
        &[user("Behind the second compaction."), calls(&["x", "y"]), result("x", "1"), result("y", "2")],
    );
    daemon.ok("session/configure", json!({"sessionId": session, "title": "Rich still"}));
    daemon.append(&session, &[assistant("Done.")]);
    let aside =
        json!({"sessionId": session, "messages": [user("Aside."), assistant("Yes.")], "parentEntryId": added[12]});
    daemon.ok("session/append", aside);
    let status = daemon.ok("session/status", json!({"sessionId": session}));
    (session, text(&status["session"]["path"]).into())
}

/// A home without automatic compactions, and without the name of the file in a context.
fn unhinted() -> Home {
    let home = Home::new();
    let compaction = json!({"enabled": false, "transcriptHint": false});
    let settings = json!({"tokens": {"estimator": "chars"}, "compaction": compaction, "prune": {"protectedTools": []}});
    home.settings(&settings.to_string());
    home
}

/// The parts of a context that belong to its path.
fn of_path(context: &Value) -> [Value; 4] {
    ["messages", "entryIds", "compactionEntryId", "model"].map(|field| context[field].clone())
}

#[test]
fn a_fork_has_the_context_that_the_session_has_at_its_end() {
    let (mut daemon, mut copy) = (Daemon::at(unhinted()), Daemon::at(unhinted()));
    let (session, path) = rich(&mut daemon);
    let tree = daemon.ok("session/tree", json!({"sessionId": session}));
    let points: Vec<Value> = tree["nodes"].as_array().expect("nodes").iter().map(|node| node["id"].clone()).collect();
    let before = fs::read(&path).expect("a file");
    let (mut forks, mut refusals) = (0, 0);
    for id in &points {
        let params = json!({"sessionId": session, "entryId": id, "position": "at"});
        let forked = match daemon.call("session/fork", params) {
            Ok(answer) => answer["session"].clone(),
            Err(error) => {
                assert!(
                    text(&error["message"]).contains("batch") || text(&error["message"]).contains("marker"),
                    "{error:#}"
                );
                refusals += 1;
                continue;
            }
        };
        forks += 1;
        assert_eq!(forked["title"], "Rich still");
        let here = daemon.ok("session/context", json!({"sessionId": forked["sessionId"]}));
        let there = daemon.ok("session/context", json!({"sessionId": session, "leafEntryId": id}));
        assert_eq!(of_path(&here), of_path(&there), "{id}");
        // The file says the same to a daemon that knows nothing else.
        let other = copy.home.path("copy.jsonl");
        fs::copy(text(&forked["path"]), &other).expect("a copy");
        let loaded = copy.ok("session/load", json!({"path": other, "readOnly": true}));
        assert_eq!(
            (&loaded["repairs"], &loaded["session"]["leafEntryId"]),
            (&json!([]), &forked["leafEntryId"]),
            "{id}"
        );
        let read = copy.ok("session/context", json!({"sessionId": loaded["session"]["sessionId"]}));
        assert_eq!(of_path(&read), of_path(&here), "{id}");
        copy.ok("session/close", json!({"sessionId": forked["sessionId"]}));
        daemon.ok("session/close", json!({"sessionId": forked["sessionId"]}));
    }
    assert!(forks > 30 && refusals > 0, "{forks} forks, {refusals} refusals");
    assert_eq!(fs::read(&path).expect("a file"), before, "the session stays as it is");
    // The label of an entry comes along, also where its line stands behind the end.
    let labelled = points.iter().find(|id| {
        tree["nodes"]
            .as_array()
            .is_some_and(|nodes| nodes.iter().any(|node| node["id"] == **id && node["label"] == "third"))
    });
    let forked = fork(&mut daemon, json!({"sessionId": session, "entryId": labelled, "position": "at"}));
    let tree = daemon.ok("session/tree", json!({"sessionId": forked["session"]["sessionId"]}));
    let node = tree["nodes"].as_array().into_iter().flatten().find(|node| Some(&node["id"]) == labelled);
    assert_eq!(node.expect("the entry")["label"], "third");
}

#[test]
fn pins_and_values_right_behind_the_end_come_along() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(json!({"cwd": "/project"}));
    let ids = daemon.append(&session, &[user("Keep this."), assistant("Yes."), user("Go on.")])["entryIds"].clone();
    daemon.ok("session/fork", json!({"sessionId": session, "entryId": ids[1], "position": "at"}));
    daemon.ok("session/pin", json!({"sessionId": session, "entryId": ids[0]}));
    daemon.append(&session, &[assistant("More.")]);
    let forked = fork(&mut daemon, json!({"sessionId": session, "entryId": ids[2], "position": "at"}));
    assert_eq!(forked["session"]["leafEntryId"], ids[2]);
    let lines = lines(text(&forked["session"]["path"]));
    assert!(lines.last().expect("lines").contains("abridged.pin"), "{lines:#?}");
}

#[test]
fn the_end_of_a_fork_is_an_entry_of_the_conversation_and_splits_no_batch() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(json!({"cwd": "/project"}));
    let messages = [
        user("Look."),
        calls(&["c1", "c2", "c3"]),
        result("c1", "one"),
        result("c2", "two"),
        result("c3", "three"),
        assistant("Done."),
    ];
    let ids = daemon.append(&session, &messages)["entryIds"].clone();
    let id = |at: usize| text(&ids[at]).to_owned();
    daemon.ok("session/pin", json!({"sessionId": session, "entryId": ids[0]}));
    let status = daemon.ok("session/status", json!({"sessionId": session}));
    let file = lines(text(&status["session"]["path"]));
    let marker: Value = serde_json::from_str(file.last().expect("lines")).expect("JSON");
    let of = |target: &Value, position: &str| json!({"sessionId": session, "entryId": target, "position": position});
    for position in ["before", "at"] {
        refused(&mut daemon, of(&marker["id"], position), "entryId", &["marker", &id(5)]);
        refused(&mut daemon, of(&ids[3], position), "entryId", &["batch", &id(4)]);
    }
    refused(&mut daemon, of(&ids[2], "at"), "entryId", &["batch", &id(4)]);
    refused(&mut daemon, of(&ids[4], "before"), "entryId", &["batch", &id(4)]);
    // Calls without results: the context says that they were interrupted.
    for params in [of(&ids[1], "at"), of(&ids[2], "before")] {
        let forked = fork(&mut daemon, params)["session"].clone();
        assert_eq!(forked["leafEntryId"], ids[1]);
        let context = daemon.ok("session/context", json!({"sessionId": forked["sessionId"]}));
        let messages = context["messages"].as_array().expect("messages");
        let answered: Vec<_> = messages.iter().filter_map(|message| message["toolCallId"].as_str()).collect();
        assert_eq!(answered, ["c1", "c2", "c3"], "{context:#}");
        assert!(messages[2..].iter().all(|message| message.to_string().contains("interrupted")), "{context:#}");
        // The calls are interrupted for good: the session goes on.
        let forked = text(&forked["sessionId"]).to_owned();
        daemon.append(&forked, &[user("Again.")]);
        assert_eq!(daemon.context(&forked)["messages"].as_array().map(Vec::len), Some(6));
    }
    let whole = fork(&mut daemon, of(&ids[4], "at"));
    assert_eq!(whole["session"]["leafEntryId"], ids[4]);
}

#[test]
fn a_running_operation_refuses_a_fork() {
    let provider = Provider::start(Format::Anthropic);
    provider.script([Step::hang()]).otherwise(good_model);
    let home = Home::new();
    home.settings(&settings(&provider, Format::Anthropic, json!({})));
    let mut daemon = Daemon::at(home);
    let session = daemon.new_session(json!({"cwd": "/project"}));
    daemon.append(&session, &turns(20));
    let started = daemon.ok("session/compact", json!({"sessionId": session, "keepRecentTokens": 100}));
    provider.wait_for(1);
    let error = daemon.err("session/fork", json!({"sessionId": session}));
    assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32003), &json!("busy")), "{error:#}");
    assert_eq!(error["data"]["operationId"], started["operationId"]);
    daemon.ok("session/cancel", json!({"sessionId": session}));
    fork(&mut daemon, json!({"sessionId": session}));
}
