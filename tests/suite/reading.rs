//! The methods that read a session.

use crate::support::{Daemon, assistant, calls, result, session_of, text_of, turns, user};
use serde_json::{Value, json};

#[test]
fn entries_come_in_pages_and_an_id_is_a_cursor() {
    let mut daemon = Daemon::start();
    let path = session_of(&daemon.home, "pages", &turns(10));
    let session = daemon.load(&path);
    let mut seen = Vec::new();
    let mut since = Value::Null;
    loop {
        let mut params = json!({"sessionId": session, "limit": 7});
        if !since.is_null() {
            params["since"] = since;
        }
        let page = daemon.ok("session/entries", params);
        assert_eq!(page["leafEntryId"], "e39");
        seen.extend(
            page["entries"]
                .as_array()
                .expect("entries")
                .iter()
                .map(|entry| entry["id"].as_str().expect("an id").to_owned()),
        );
        since = page["nextCursor"].clone();
        if since.is_null() {
            break;
        }
    }
    assert_eq!(seen, (0..40).map(|at| format!("e{at}")).collect::<Vec<_>>());
    let small = daemon.ok("session/entries", json!({"sessionId": session, "maxBytes": 1}));
    assert_eq!(small["entries"].as_array().map(Vec::len), Some(1), "a page has at least one entry");
    let none = daemon.ok("session/entries", json!({"sessionId": session, "types": ["compaction"]}));
    assert_eq!((&none["entries"], &none["nextCursor"]), (&json!([]), &Value::Null));
    assert_eq!(
        daemon.err("session/entries", json!({"sessionId": session, "since": "nobody"}))["data"]["kind"],
        "entry"
    );
    assert_eq!(
        daemon.err("session/entry", json!({"sessionId": session, "entryId": "nobody"}))["data"]["kind"],
        "entry"
    );
}

#[test]
fn a_branch_is_a_path_of_its_own() {
    let mut daemon = Daemon::start();
    let path = session_of(&daemon.home, "branch", &[user("root"), assistant("one"), user("two")]);
    let session = daemon.load(&path);
    let answer = daemon.ok(
        "session/append",
        json!({"sessionId": session, "messages": [user("other two"), assistant("other three")], "parentEntryId": "e1"}),
    );
    let ids = answer["entryIds"].as_array().expect("ids").clone();
    assert_eq!(answer["leafEntryId"], ids[1]);
    assert_eq!(answer["next"], json!({"type": "none"}));
    let of = |daemon: &mut Daemon, branch: &str| -> Vec<Value> {
        let page = daemon.ok("session/entries", json!({"sessionId": session, "branch": branch}));
        page["entries"].as_array().expect("entries").iter().map(|entry| entry["id"].clone()).collect()
    };
    assert_eq!(of(&mut daemon, "active"), [json!("e0"), json!("e1"), ids[0].clone(), ids[1].clone()]);
    assert_eq!(of(&mut daemon, "all").len(), 5);
    let old = daemon.ok("session/context", json!({"sessionId": session, "leafEntryId": "e2"}));
    assert_eq!(old["messages"].as_array().map(Vec::len), Some(3));
    // A cursor on the branch that was left goes on where it leaves the path.
    let page = daemon.ok("session/entries", json!({"sessionId": session, "since": "e2"}));
    assert_eq!(page["entries"].as_array().map(Vec::len), Some(2));
    let error =
        daemon.err("session/append", json!({"sessionId": session, "messages": [user("x")], "parentEntryId": "nobody"}));
    assert_eq!(error["data"]["kind"], "entry");
    let error =
        daemon.err("session/append", json!({"sessionId": session, "messages": [user("x")], "expectedLeafId": "e2"}));
    assert_eq!(error["code"], -32801);
}

#[test]
fn an_append_is_answered_before_its_entries_are_announced() {
    let mut daemon = Daemon::start();
    let session = daemon.ok("session/new", json!({"cwd": "/project"}))["session"]["sessionId"].clone();
    let answer = daemon.ok("session/append", json!({"sessionId": session, "messages": [user("one"), {"role": "assistant", "content": "two"}, user(&"large ".repeat(20_000))]}));
    assert!(!daemon.kinds().contains(&"entry_appended".to_owned()));
    let ids = answer["entryIds"].as_array().expect("ids").clone();
    for id in &ids {
        let frame = daemon.frame();
        assert_eq!(frame["params"]["event"]["type"], "entry_appended");
        assert_eq!(frame["params"]["entryId"], *id);
        assert!(frame.to_string().len() < 60 * 1024);
        let whole = frame["params"]["event"].get("entry").is_some();
        assert_eq!(whole, *id != ids[2], "a large one is announced by its type alone");
    }
    let entry = daemon.ok("session/entry", json!({"sessionId": session, "entryId": ids[1]}))["entry"].clone();
    assert_eq!(entry["message"]["content"], json!([{"type": "text", "text": "two"}]), "in pi's form");
    assert!(entry["message"]["timestamp"].is_i64());
    assert_eq!(entry["parentId"], ids[0]);
}

#[test]
fn wrong_messages_are_told_by_their_path_and_nothing_is_written() {
    let mut daemon = Daemon::start();
    let session = daemon.ok("session/new", json!({"cwd": "/project"}))["session"]["sessionId"].clone();
    for (message, path) in [
        (json!({"content": "no role"}), "messages[1].role"),
        (json!({"role": "king", "content": "x"}), "messages[1].role"),
        (json!({"role": "user"}), "messages[1].content"),
        (json!({"role": "toolResult", "content": []}), "messages[1].toolCallId"),
        (json!({"role": "assistant", "content": [{"type": "toolCall", "name": "x"}]}), "messages[1].content[0].id"),
        (json!(7), "messages[1]"),
    ] {
        let error = daemon.err("session/append", json!({"sessionId": session, "messages": [user("fine"), message]}));
        assert_eq!(error["data"]["code"], "invalid_params");
        assert_eq!(error["data"]["path"], path, "{error}");
    }
    assert_eq!(daemon.ok("session/status", json!({"sessionId": session}))["session"]["entryCount"], 0);
    assert_eq!(daemon.err("session/append", json!({"sessionId": session, "messages": []}))["data"]["path"], "messages");
}

#[test]
fn a_context_pairs_calls_and_results_whatever_happened() {
    let mut daemon = Daemon::start();
    let failed = json!({"role": "assistant", "content": [{"type": "toolCall", "id": "f", "name": "x", "arguments": {}}], "stopReason": "error", "errorMessage": "no"});
    let path = session_of(
        &daemon.home,
        "pairs",
        &[
            result("ghost", "nobody asked"),
            user("go"),
            calls(&["a", "b"]),
            result("b", "two"),
            user("typed in between"),
            result("a", "one"),
            failed,
            result("f", "of a failed answer"),
            calls(&["c"]),
            user("never mind"),
            result("a", "again"),
        ],
    );
    let session = daemon.load(&path);
    let context = daemon.ok("session/context", json!({"sessionId": session}));
    let shape: Vec<String> = context["messages"]
        .as_array()
        .expect("messages")
        .iter()
        .map(|message| {
            format!(
                "{}{}",
                message["role"].as_str().expect("a role"),
                message["toolCallId"].as_str().map(|id| format!(":{id}")).unwrap_or_default()
            )
        })
        .collect();
    assert_eq!(
        shape,
        ["user", "assistant", "toolResult:b", "toolResult:a", "user", "assistant", "toolResult:c", "user"]
    );
    assert_eq!(context["messages"][6]["isError"], true, "an unanswered call has a result that says so");
    assert_eq!(context["entryIds"][6], Value::Null);
}

#[test]
fn usage_follows_the_provider_and_says_why() {
    let mut daemon = Daemon::start();
    let model = json!({"provider": "p", "id": "m", "contextWindow": 200_000});
    let settings = json!({"models": [model], "compaction": {"enabled": false, "thresholdTokens": 20_000}, "tokens": {"estimator": "chars"}});
    let new = json!({"cwd": "/project", "model": "p/m", "settings": settings, "systemPrompt": "Be brief.", "tools": [{"name": "read"}]});
    let session = daemon.ok("session/new", new)["session"]["sessionId"].clone();
    let usage = daemon.ok("session/usage", json!({"sessionId": session}));
    assert_eq!(
        (&usage["contextWindow"], &usage["windowSource"], &usage["thresholdTokens"]),
        (&json!(200_000), &json!("setting"), &json!(20_000))
    );
    assert_eq!(usage["source"], "estimate");
    assert!(usage["breakdown"]["system"].as_u64() > Some(0) && usage["breakdown"]["tools"].as_u64() > Some(0));
    let reported = json!({"role": "assistant", "content": "ok", "provider": "p", "model": "m", "stopReason": "stop",
        "usage": {"input": 10, "output": 20, "cacheRead": 27_000, "cacheWrite": 0, "totalTokens": 27_030}});
    let asked = user(&text_of(20_000, "asked"));
    let answer = daemon.ok("session/append", json!({"sessionId": session, "messages": [asked, reported]}));
    assert_eq!((&answer["usage"]["contextTokens"], &answer["usage"]["source"]), (&json!(27_030), &json!("provider")));
    let usage = daemon.ok("session/usage", json!({"sessionId": session}));
    assert!(usage["why"].as_str().is_some_and(|why| why.contains("over the threshold of 20000")), "{}", usage["why"]);
    // All zero, aborted or failed reports say nothing.
    for (stop, input) in [("stop", 0), ("error", 5), ("aborted", 5)] {
        let void = json!({"role": "assistant", "content": "x", "stopReason": stop, "usage": {"input": input, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0}});
        let answer = daemon.ok("session/append", json!({"sessionId": session, "messages": [void]}));
        assert!(answer["usage"]["contextTokens"].as_u64() >= Some(27_030), "{stop}");
    }
    daemon.ok("session/compact", json!({"sessionId": session, "keepRecentTokens": 1, "wait": true}));
    let usage = daemon.ok("session/usage", json!({"sessionId": session}));
    assert_eq!(usage["source"], "estimate", "a report from before the compaction never counts again");
    assert!(usage["contextTokens"].as_u64() < Some(5_000), "{usage:#}");
}

#[test]
fn sessions_are_listed_newest_first_without_opening_them() {
    let mut daemon = Daemon::start();
    for (age, cwd, title) in [(30, "/a", "First"), (20, "/a", "Second"), (10, "/b", "Third")] {
        let created = daemon.ok("session/new", json!({"cwd": cwd, "title": title}))["session"].clone();
        let session = created["sessionId"].clone();
        daemon.ok("session/append", json!({"sessionId": session, "messages": [user(&format!("Please do {title}"))]}));
        let file =
            std::fs::File::options().append(true).open(created["path"].as_str().expect("a path")).expect("a file");
        let changed = std::time::SystemTime::now() - std::time::Duration::from_secs(age);
        file.set_modified(changed).expect("a time can be set");
    }
    let titles = |answer: &Value| -> Vec<String> {
        answer["sessions"]
            .as_array()
            .expect("sessions")
            .iter()
            .map(|it| it["title"].as_str().expect("a title").to_owned())
            .collect()
    };
    let all = daemon.ok("session/list", json!({}));
    assert_eq!(titles(&all), ["Third", "Second", "First"]);
    assert_eq!(all["sessions"][0]["preview"], "Please do Third");
    assert_eq!(all["sessions"][0]["status"]["type"], "idle");
    assert_eq!(titles(&daemon.ok("session/list", json!({"cwd": "/a"}))), ["Second", "First"]);
    assert_eq!(titles(&daemon.ok("session/list", json!({"search": "do first"}))), ["First"]);
    let page = daemon.ok("session/list", json!({"limit": 2}));
    let rest = daemon.ok("session/list", json!({"limit": 2, "cursor": page["nextCursor"]}));
    assert_eq!(titles(&rest), ["First"]);
    assert_eq!(rest["nextCursor"], Value::Null);
}

#[test]
fn a_list_names_the_parent_of_each_session_and_ignores_a_cache_of_another_version() {
    let mut daemon = Daemon::start();
    let first = daemon.ok("session/new", json!({"cwd": "/project"}))["session"].clone();
    let params = json!({"cwd": "/project", "parentSession": first["path"]});
    let second = daemon.ok("session/new", params)["session"].clone();
    let parents = |answer: &Value| -> Vec<(Value, Value)> {
        let sessions = answer["sessions"].as_array().expect("sessions").iter();
        let mut parents: Vec<_> = sessions.map(|it| (it["path"].clone(), it["parentSession"].clone())).collect();
        parents.sort_by_key(|(path, _)| path.to_string());
        parents
    };
    let mut expected = vec![(first["path"].clone(), Value::Null), (second["path"].clone(), first["path"].clone())];
    expected.sort_by_key(|(path, _)| path.to_string());
    assert_eq!(parents(&daemon.ok("session/list", json!({}))), expected);

    // The cache of an older daemon has valid rows for both files, without parents.
    let home = &daemon.home;
    let rows: serde_json::Map<String, Value> = [&first, &second]
        .map(|session| {
            let path = std::path::Path::new(session["path"].as_str().expect("a path"));
            let about = path.metadata().expect("a file");
            let modified = about.modified().expect("a time").duration_since(std::time::UNIX_EPOCH).expect("a time");
            let name = path.strip_prefix(home.path("data/sessions")).expect("a session of the folder");
            let row = json!({"id": session["sessionId"], "cwd": "/project", "title": null, "preview": null});
            let modified = u64::try_from(modified.as_nanos()).expect("a time");
            let row = json!({"modified": modified, "size": about.len(), "session": row});
            (name.display().to_string(), row)
        })
        .into_iter()
        .collect();
    std::fs::write(home.path("data/sessions-list.json"), Value::Object(rows).to_string()).expect("a cache");
    let mut daemon = daemon.restarted();
    assert_eq!(parents(&daemon.ok("session/list", json!({}))), expected);
}

#[test]
fn events_a_client_does_not_want_are_not_sent_and_not_counted() {
    let mut daemon = Daemon::silent(crate::support::Home::new());
    daemon.ok("initialize", json!({"capabilities": {"events": {"optOut": ["usage_updated", "compaction_progress"]}}}));
    let session = daemon.ok("session/new", json!({"cwd": "/project"}))["session"]["sessionId"].clone();
    daemon.ok("session/append", json!({"sessionId": session, "messages": turns(10)}));
    daemon.ok("session/compact", json!({"sessionId": session, "keepRecentTokens": 100, "wait": true}));
    let kinds = daemon.kinds();
    assert!(!kinds.contains(&"usage_updated".to_owned()) && !kinds.contains(&"compaction_progress".to_owned()));
    let seqs: Vec<u64> = daemon.events.iter().filter_map(|frame| frame["params"]["seq"].as_u64()).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
}
