//! Frames that nobody asked for, and errors, stay under the announced size whatever settings, params and files hold.

use crate::support::{Daemon, Home, entries, header, run, user};
use serde_json::{Value, json};

/// The announced limit, in bytes.
const SOFT: usize = 60 << 10;

/// Every event and notification so far is below the limit. Returns those of this name or type.
fn of<'a>(daemon: &'a Daemon, name: &str) -> Vec<&'a Value> {
    for frame in &daemon.events {
        assert!(frame.to_string().len() < SOFT, "{} bytes: {}", frame.to_string().len(), &frame.to_string()[..200]);
    }
    let named = |frame: &&Value| frame["method"] == name || frame["params"]["event"]["type"] == name;
    daemon.events.iter().filter(named).collect()
}

#[test]
fn settings_that_do_not_fit_are_announced_with_the_request_that_returns_them() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(json!({"cwd": "/project"}));
    let models: Vec<Value> = (0..400)
        .map(|at| json!({"provider": "p", "id": format!("{at}-{}", "m".repeat(200)), "contextWindow": 100_000}))
        .collect();
    for patch in [json!({"compaction": {"instructions": "x".repeat(50_000)}}), json!({"models": models})] {
        for scope in ["session", "global"] {
            let params = json!({"scope": scope, "sessionId": session, "patch": patch});
            // A setting may be refused as too long, which is no frame over the limit either.
            if let Err(error) = daemon.call("settings/set", params) {
                assert!(error.to_string().len() < SOFT, "{error}");
            }
        }
    }
    daemon.ok("settings/get", json!({"sessionId": session}));
    let announced = of(&daemon, "settings_changed");
    let shortened = announced.iter().filter(|frame| frame["params"]["_meta"]["shortened"] == "settings/get").count();
    assert!(shortened >= 2, "{shortened} of {}", announced.len());
}

#[test]
fn long_paths_and_unknown_keys_are_shortened_in_notices_answers_and_errors() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(json!({"cwd": format!("/{}", "long/".repeat(800)), "title": "t"}));
    daemon.append(&session, &[user("x")]);
    let key = "q".repeat(100_000);
    let answer = daemon.ok("session/status", json!({"sessionId": session, &key: 1}));
    let ignored = answer["_meta"]["ignored"].to_string();
    assert!(ignored.len() < 1_000 && ignored.contains("qqq…"), "{ignored}");
    // The answer is null, so the key is in a notice.
    daemon.ok("session/unsubscribe", json!({"sessionId": session, &key: 1}));
    for (method, params) in [
        (key.as_str(), json!({})),
        ("session/load", json!({"path": format!("/{key}")})),
        ("session/status", json!({"sessionId": key})),
        ("session/append", json!({"sessionId": session, "messages": [{"role": key}]})),
        ("settings/set", json!({"scope": "global", "patch": {&key: 1}})),
    ] {
        let error = daemon.err(method, params);
        assert!(error.to_string().len() < SOFT && error["data"]["code"].is_string(), "{}", error.to_string().len());
    }
    daemon.ok("ping", json!({}));
    assert_eq!(of(&daemon, "notice").iter().filter(|it| it["params"]["code"] == "params_ignored").count(), 1);
}

#[test]
fn a_session_whose_id_is_longer_than_any_is_refused() {
    let mut daemon = Daemon::start();
    let home = &daemon.home;
    let (long, just) = (
        home.session("long.jsonl", &[header(&"i".repeat(1_025))]),
        home.session("just.jsonl", &[header(&"i".repeat(1_024))]),
    );
    let error = daemon.err("session/load", json!({"path": long}));
    assert_eq!(error["data"]["code"], "invalid_params");
    let text = error["message"].as_str().expect("a message");
    assert!(text.contains("long.jsonl") && text.contains("1025 bytes; 1024 are the most"), "{text}");
    assert_eq!(daemon.load(&just).len(), 1_024);
}

#[test]
fn a_title_or_a_path_that_no_header_holds_is_refused_with_its_limit() {
    let mut daemon = Daemon::start();
    let (title, path) = ("ü".repeat(513), format!("/{}", "c".repeat(4_096)));
    let id = daemon.new_session(json!({"cwd": "/project", "title": "t".repeat(1_024)}));
    daemon.append(&id, &[user("Hello.")]);
    for (method, field, params) in [
        ("session/new", "title", json!({"cwd": "/project", "title": title})),
        ("session/new", "cwd", json!({"cwd": path})),
        ("session/new", "parentSession", json!({"cwd": "/project", "parentSession": path})),
        ("session/configure", "title", json!({"sessionId": id, "title": title})),
        ("session/fork", "cwd", json!({"sessionId": id, "cwd": path})),
    ] {
        let error = daemon.err(method, params);
        assert_eq!(
            (error["data"]["code"].as_str(), error["data"]["path"].as_str()),
            (Some("invalid_params"), Some(field))
        );
        let most = if field == "title" { "1024" } else { "4096" };
        assert!(error["message"].as_str().is_some_and(|it| it.contains(&format!("the most is {most}"))), "{error}");
    }
    let listed = daemon.ok("session/list", json!({}));
    assert_eq!(listed["sessions"].as_array().map(Vec::len), Some(1), "{listed}");
}

#[test]
fn a_long_title_of_another_program_is_shortened_and_its_fork_is_loaded() {
    let mut daemon = Daemon::start();
    let name = json!({"type": "session_info", "id": "n0", "parentId": null, "timestamp": "2026-01-01T00:00:00.000Z",
        "name": "ü".repeat(1 << 20)});
    let path = daemon.home.session("named.jsonl", &[header("named"), name]);
    let id = daemon.load(&path);
    let fork = daemon.ok("session/fork", json!({"sessionId": id}))["session"].clone();
    let title = fork["title"].as_str().expect("a title");
    assert!(title.len() <= 1_024 && title.ends_with("ü…"), "{}", title.len());
    daemon.ok("session/close", json!({"sessionId": fork["sessionId"]}));
    let loaded = daemon.ok("session/load", json!({"path": fork["path"]}));
    assert_eq!(loaded["session"]["title"], title);
    let file = std::fs::read(fork["path"].as_str().expect("a path")).expect("a file");
    assert!(file.split(|byte| *byte == b'\n').next().is_some_and(|header| header.len() < 8_192));
}

#[test]
fn a_session_with_a_long_header_is_listed() {
    let home = Home::new();
    let folder = home.path("data/sessions/--project--");
    std::fs::create_dir_all(&folder).expect("a folder");
    let sizes = [10_000, 70_000, 300_000, 1_000_000];
    for size in sizes {
        let mut head = header(&format!("long-{size}"));
        head["notes"] = json!("n".repeat(size));
        let lines = [head.to_string(), entries(&[user("Hello.")])[0].to_string()].join("\n") + "\n";
        std::fs::write(folder.join(format!("{size}.jsonl")), lines).expect("a file");
    }
    let mut command = home.command();
    command.args(["sessions", "--json"]);
    let (_, out, err) = run(command);
    let found: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}"));
    assert_eq!((found["sessions"].as_array().map(Vec::len), &found["leftOut"]), (Some(sizes.len()), &json!([])));
    let mut daemon = Daemon::at(home);
    let listed = daemon.ok("session/list", json!({}));
    assert_eq!(listed["sessions"].as_array().map(Vec::len), Some(sizes.len()), "{listed}");
}
