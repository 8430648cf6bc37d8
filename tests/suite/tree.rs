//! `abridged tree`: sessions of this daemon, of other programs and damaged ones, drawn and as JSON.

use crate::support::{Daemon, Home, assistant, calls, entries, header, result, run, session_of, turns, user};
use serde_json::{Value, json};
use std::{fs, path::Path};

fn tree(home: &Home, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = home.command();
    command.arg("tree").args(arguments);
    run(command)
}

/// The picture of a session that can be drawn.
fn picture(home: &Home, session: &Path, more: &[&str]) -> Vec<String> {
    let mut arguments = vec![session.to_str().expect("a path")];
    arguments.extend(more);
    let (code, out, err) = tree(home, &arguments);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    for line in out.lines() {
        assert!(line.chars().count() <= 80 && !line.contains('\u{1b}'), "{line}");
    }
    out.lines().map(str::to_owned).collect()
}

/// The rows of a picture: without its head and its legend.
fn rows(home: &Home, session: &Path, more: &[&str]) -> Vec<String> {
    let lines = picture(home, session, more);
    lines[3..lines.len() - 2].to_vec()
}

fn document(home: &Home, session: &str) -> Value {
    let (code, out, err) = tree(home, &[session, "--json"]);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
}

fn entry(id: &str, parent: &str, message: Value) -> Value {
    other(id, parent, json!({"type": "message", "message": message}))
}

/// An entry of any type; an empty parent is none.
fn other(id: &str, parent: &str, fields: Value) -> Value {
    let parent = if parent.is_empty() { Value::Null } else { json!(parent) };
    let mut entry = json!({"type": "", "id": id, "parentId": parent, "timestamp": "2026-01-01T00:00:00.000Z"});
    for (name, value) in fields.as_object().expect("an object") {
        entry[name] = value.clone();
    }
    entry
}

#[test]
fn branches_compactions_labels_and_the_leaf_are_drawn() {
    let home = Home::new();
    let compaction = json!({"type": "compaction", "summary": "The goal is a parser.", "firstKeptEntryId": "b1", "tokensBefore": 142_300});
    let lines = [
        header("s"),
        entry("a1", "", user("Fix the parser")),
        entry("a2", "a1", assistant("I look at the lexer first.")),
        entry("b1", "a2", user("Try a table")),
        entry("b2", "b1", calls(&["x"])),
        entry("b3", "b2", result("x", "fn lex() {}")),
        entry("c1", "a2", user("Try recursion")),
        entry("c2", "c1", assistant("It recurses.")),
        other("l1", "c2", json!({"type": "label", "targetId": "b1", "label": "table"})),
        other("s1", "b3", json!({"type": "branch_summary", "fromId": "c2", "summary": "Recursion was tried."})),
        other("k1", "s1", compaction),
        other("m1", "k1", json!({"type": "custom", "customType": "abridged.attempt", "data": {}})),
        other("m2", "m1", json!({"type": "usage", "purpose": "compaction", "usage": {"input": 1, "output": 1}})),
        entry("d1", "m2", user("Go on")),
        other("t1", "d1", json!({"type": "session_info", "name": "Parser"})),
    ];
    let session = home.session("s.jsonl", &lines);
    let lines = picture(&home, &session, &[]);
    assert!(lines[0].ends_with("/s.jsonl"), "{lines:#?}");
    let expected = [
        "Parser · 12 entries · 2 branches",
        "",
        "● a1 user       Fix the parser",
        "● a2 assistant  I look at the lexer first.",
        "├─○ c1 user       Try recursion",
        "│ ○ c2 assistant  It recurses.",
        "│ ○ l1 label      b1: table",
        "● b1 user       [table] Try a table",
        "● b2 assistant  read({\"path\":\"src/x.rs\"})",
        "● b3 result     fn lex() {}",
        "◆ s1 branch     Recursion was tried.",
        "◆ k1 compaction 142k tokens: The goal is a parser.",
        "● d1 user       Go on",
        "◉ t1 title      Parser",
        "",
        "◉ leaf · ● path to it · ○ other branches · ◆ ◇ compaction, reset, summary",
    ];
    assert_eq!(lines[1..], expected);
}

/// A navigation writes its label behind the leaf that it leaves.
#[test]
fn the_label_of_a_navigation_is_no_branch_of_its_own() {
    let mut daemon = Daemon::start();
    let path = session_of(&daemon.home, "labelled", &[user("One"), assistant("Two"), user("Three"), assistant("Four")]);
    let session = daemon.load(&path);
    let lines = || -> Vec<Value> {
        let file = fs::read_to_string(&path).expect("a file");
        file.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    let ids: Vec<Value> = lines().iter().skip(1).map(|entry| entry["id"].clone()).collect();
    let navigate = |daemon: &mut Daemon, target: &Value, label: &Value| {
        daemon.ok(
            "session/navigate",
            json!({"sessionId": session, "targetEntryId": target, "label": label, "wait": true}),
        );
    };
    navigate(&mut daemon, &ids[1], &json!("the start"));
    navigate(&mut daemon, &ids[3], &Value::Null);
    let drawn = |home: &Home| rows(home, &path, &["--all"]).concat();
    assert!(drawn(&daemon.home).contains("[the start] Two") && !drawn(&daemon.home).contains("label"));
    daemon.append(&session, &[user("Five")]);
    let rows = rows(&daemon.home, &path, &["--all"]);
    assert!(rows.len() == 5 && !rows.concat().contains('├'), "{rows:#?}");
    assert!(lines().iter().any(|entry| entry["type"] == "label"), "the file has it all the same");
}

/// The daemon's own undo, reset and labels.
#[test]
fn an_undone_compaction_is_marked() {
    let mut daemon = Daemon::start();
    let path = session_of(&daemon.home, "undone", &turns(6));
    let session = daemon.load(&path);
    let compact = |daemon: &mut Daemon| {
        let params = json!({"sessionId": session, "keepRecentTokens": 300, "wait": true});
        daemon.ok("session/compact", params)["result"]["entryId"].as_str().expect("an id").to_owned()
    };
    let row_of = |daemon: &Daemon, kind: &str| -> Vec<String> {
        let rows = rows(&daemon.home, &path, &[]);
        rows.into_iter().filter(|row| row.contains(&format!(" {kind} "))).collect()
    };
    // Only lines that may leave the path follow the first one: it is on a branch of its own then.
    compact(&mut daemon);
    assert!(row_of(&daemon, "compaction")[0].starts_with('◉'));
    daemon.ok("session/undo_compaction", json!({"sessionId": session}));
    let undone = row_of(&daemon, "compaction");
    assert!(undone.len() == 1 && undone[0].starts_with("╰─○") && undone[0].contains("undone"), "{undone:?}");
    // Messages follow the second one: it stays on the path.
    compact(&mut daemon);
    daemon.append(&session, &[user("More."), assistant("Yes.")]);
    daemon.ok("session/undo_compaction", json!({"sessionId": session}));
    let undone = row_of(&daemon, "compaction");
    assert_eq!(undone.len(), 2, "{undone:#?}");
    assert!(undone.iter().all(|row| row.contains(" undone ")), "{undone:#?}");
    assert!(undone[1].starts_with('●'), "{undone:#?}");
    // A third one holds.
    compact(&mut daemon);
    let held = row_of(&daemon, "compaction").pop().expect("a row");
    assert!(held.starts_with('◉') && !held.contains("undone"), "{held}");
    // A reset, and its undo.
    daemon.ok("session/reset", json!({"sessionId": session}));
    assert!(row_of(&daemon, "reset")[0].starts_with('◉'));
    daemon.ok("session/undo_compaction", json!({"sessionId": session}));
    let reset = row_of(&daemon, "reset");
    assert!(reset[0].contains('○') && reset[0].contains("undone"), "{reset:?}");
}

#[test]
fn a_compaction_that_another_branch_undid_holds() {
    let home = Home::new();
    let undo = json!({"type": "custom", "customType": "abridged.undo", "data": {"compactionEntryId": "k"}});
    let lines = [
        header("s"),
        entry("a", "", user("Begin")),
        other("k", "a", json!({"type": "compaction", "summary": "Begun.", "firstKeptEntryId": "k"})),
        entry("b", "k", user("There")),
        other("u", "b", undo),
        entry("c", "u", user("Further")),
        entry("d", "k", user("Here")),
    ];
    let session = home.session("s.jsonl", &lines);
    let expected = [
        "● a user       Begin",
        "◆ k compaction Begun.",
        "├─○ b user       There",
        "│ ○ c user       Further",
        "◉ d user       Here",
    ];
    assert_eq!(rows(&home, &session, &[]), expected);
}

#[test]
fn a_long_session_is_folded_unless_all_of_it_is_wanted() {
    let home = Home::new();
    let session = session_of(&home, "long", &turns(500));
    let folded = rows(&home, &session, &[]);
    assert_eq!(folded.len(), 8, "{folded:#?}");
    assert_eq!(folded[3], "⋮ 1,993 entries, 498 of the user");
    let all = rows(&home, &session, &["--all"]);
    assert_eq!(all.len(), 2_000);
    assert!(all.iter().all(|row| !row.contains('⋮')));
}

/// The same nodes as the daemon's, page for page.
#[test]
fn the_document_has_the_nodes_of_session_tree() {
    let mut daemon = Daemon::start();
    let path = session_of(&daemon.home, "same", &turns(40));
    let session = daemon.load(&path);
    daemon.ok("session/compact", json!({"sessionId": session, "keepRecentTokens": 1_000, "wait": true}));
    daemon.ok("session/label", json!({"sessionId": session, "targetEntryId": "e3", "label": "here"}));
    daemon.ok("session/pin", json!({"sessionId": session, "text": "Use tabs."}));
    daemon.ok("session/undo_compaction", json!({"sessionId": session}));
    let mut nodes = Vec::new();
    let mut params = json!({"sessionId": session, "limit": 33});
    let leaf = loop {
        let page = daemon.ok("session/tree", params.clone());
        nodes.extend(page["nodes"].as_array().expect("nodes").clone());
        match &page["nextCursor"] {
            Value::Null => break page["leafEntryId"].clone(),
            cursor => params["cursor"] = cursor.clone(),
        }
    };
    let found = document(&daemon.home, path.to_str().expect("a path"));
    assert_eq!((&found["sessionId"], &found["leafEntryId"], &found["repairs"]), (&json!("same"), &leaf, &json!([])));
    assert_eq!(found["nodes"], json!(nodes));
    assert!(nodes.iter().any(|node| node["label"] == "here") && nodes.len() > 160);
}

#[test]
fn damaged_old_and_foreign_files_are_drawn_as_far_as_they_go() {
    let home = Home::new();
    // A broken line in the middle, an entry without its parent, and a torn end.
    let lines =
        [header("d"), entry("a", "", user("One")), entry("c", "b", user("Three")), entry("d", "nowhere", user("Four"))];
    let mut text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    text = text.replacen(
        "{\"type\":\"message\",\"id\":\"c\"",
        "{\"type\":\"message\",\"id\":\"b\",\"parentId\":\"a\",\"message\":{\n{\"type\":\"message\",\"id\":\"c\"",
        1,
    );
    text.push_str("{\"type\":\"message\",\"id\":\"e\",\"parentId\":\"d\",\"mess");
    let path = home.path("damaged.jsonl");
    fs::write(&path, &text).expect("a file");
    let drawn = picture(&home, &path, &[]);
    assert_eq!(drawn[1], "d · 3 entries · 3 faults in the file (see --json)", "{drawn:#?}");
    assert_eq!(drawn[3..6], ["● a user       One", "● c user       Three", "◉ d user       Four"], "{drawn:#?}");
    let named = text.replacen("\"id\":\"d\"", &format!("\"id\":\"{}\"", "d".repeat(48)), 1);
    let long = home.path("long.jsonl");
    fs::write(&long, named).expect("a file");
    let head = &picture(&home, &long, &[])[1..4];
    assert!(head[0].ends_with("d · 3 entries") && head[2].is_empty(), "{head:#?}");
    assert_eq!(head[1], "3 faults in the file (see --json)");
    let kinds: Vec<Value> = document(&home, path.to_str().expect("a path"))["repairs"]
        .as_array()
        .expect("repairs")
        .iter()
        .map(|repair| repair["kind"].clone())
        .collect();
    assert_eq!(kinds, ["corrupt_line", "missing_parent", "torn_tail"]);
    assert_eq!(fs::read_to_string(&path).expect("a file"), text, "nothing is written");

    // pi's first version has no ids.
    let old = [
        json!({"type": "session", "id": "o", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/p"}),
        json!({"type": "message", "timestamp": "2026-01-01T00:00:00.000Z", "message": user("Old")}),
        json!({"type": "message", "timestamp": "2026-01-01T00:00:00.000Z", "message": assistant("Yes")}),
    ];
    let drawn = rows(&home, &home.session("old.jsonl", &old), &[]);
    assert_eq!(drawn.len(), 2, "{drawn:?}");
    assert!(drawn[1].starts_with('◉') && drawn[1].ends_with("assistant  Yes"), "{drawn:?}");

    // oh-my-pi's title line and entries.
    let titled = [
        json!({"type": "title", "title": "Of oh-my-pi"}),
        header("t"),
        entry("a", "", user("One")),
        other("r", "a", json!({"type": "reset_boundary"})),
        other("m", "r", json!({"type": "model_change", "model": "p/m"})),
        other("x", "m", json!({"type": "mode_change", "mode": "plan"})),
    ];
    let drawn = picture(&home, &home.session("titled.jsonl", &titled), &[]);
    assert_eq!(drawn[1], "Of oh-my-pi · 4 entries");
    let expected = [
        "● a user       One",
        "◆ r reset      nothing before it is in the context",
        "● m model      p/m",
        "◉ x mode_chan…",
    ];
    assert_eq!(drawn[3..7], expected);

    let drawn = picture(&home, &home.session("empty.jsonl", &[header("e")]), &[]);
    assert_eq!(drawn[1..], ["e · no entries yet", ""]);
}

/// Two lines of one id, a cycle, and a parent that is the entry itself.
#[test]
fn entries_of_one_id_are_drawn_apart() {
    let home = Home::new();
    let lines = [
        header("s"),
        entry("a", "b", user("One")),
        entry("b", "a", user("Two")),
        entry("a", "b", user("Three")),
        entry("a", "a", user("Four")),
    ];
    let drawn = rows(&home, &home.session("s.jsonl", &lines), &[]);
    assert_eq!(drawn, ["● a user       One", "● b user       Two", "● a user       Three", "◉ a user       Four"]);
}

#[test]
fn a_session_is_named_by_the_beginning_of_its_id() {
    let home = Home::new();
    let folder = home.path("data/sessions/--project--");
    fs::create_dir_all(&folder).expect("a folder");
    for id in ["0192aa", "0192ab", "0192"] {
        let lines: Vec<Value> = std::iter::once(header(id)).chain(entries(&[user(&format!("I am {id}"))])).collect();
        fs::rename(home.session("x.jsonl", &lines), folder.join(format!("2026-01-01T00-00-00-000Z_{id}.jsonl")))
            .expect("a file");
    }
    assert_eq!(document(&home, "0192aa")["sessionId"], "0192aa");
    assert_eq!(document(&home, "0192ab")["sessionId"], "0192ab");
    assert_eq!(document(&home, "0192")["sessionId"], "0192", "a whole id is no beginning");
    for (named, expected) in [
        ("0192a", "2 sessions have an id that begins with 0192a: 0192"),
        ("7", "there is no file 7, and no session in"),
        ("7", "abridged sessions lists them"),
        ("./7", "there is no file"),
        ("7.jsonl", "there is no file"),
    ] {
        let (code, out, err) = tree(&home, &[named]);
        assert_eq!((code, out.as_str()), (Some(1), ""), "{named}");
        assert!(err.starts_with("abridged: ") && err.contains(expected), "{named}: {err}");
    }
    let elsewhere = home.path("elsewhere");
    let (code, _, err) = tree(&home, &["0192aa", "--data", elsewhere.to_str().expect("a path")]);
    assert!(code == Some(1) && err.contains("elsewhere"), "{err}");
}

#[test]
fn a_file_that_is_no_session_is_refused() {
    let home = Home::new();
    for (name, content, expected) in [
        ("text.jsonl", "hello\n", "is not a session file: its first line is not JSON"),
        ("empty.jsonl", "", "is not a session file: it is empty"),
        ("other.jsonl", "{\"type\":\"event\"}\n", "its first line is not a header"),
    ] {
        fs::write(home.path(name), content).expect("a file");
        for form in [&[][..], &["--json"]] {
            let path = home.path(name);
            let arguments: Vec<&str> =
                [path.to_str().expect("a path")].into_iter().chain(form.iter().copied()).collect();
            let (code, out, err) = tree(&home, &arguments);
            assert_eq!((code, out.as_str()), (Some(1), ""), "{name}");
            assert!(err.contains(expected), "{name}: {err}");
        }
    }
    let (code, _, err) = tree(&home, &[home.0.path().to_str().expect("a path")]);
    assert!(code == Some(1) && err.contains("is a folder"), "{err}");
}
