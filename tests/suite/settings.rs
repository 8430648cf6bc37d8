//! Settings from a file, the environment and a session.

use crate::support::{Daemon, Home};
use serde_json::{Value, json};
use std::fs;

fn notices(daemon: &mut Daemon) -> Vec<String> {
    daemon.ok("ping", json!({}));
    daemon
        .events
        .iter()
        .filter(|frame| frame["method"] == "notice")
        .map(|frame| {
            format!(
                "{}: {}",
                frame["params"]["severity"].as_str().unwrap_or("?"),
                frame["params"]["detail"].as_str().unwrap_or("?")
            )
        })
        .collect()
}

#[test]
fn every_value_says_where_it_comes_from() {
    let home = Home::new();
    home.settings(
        r#"{ "compaction": { "reserveTokens": 1000, "strategy": "context-full" }, "defaultModel": "local/qwen",
        "models": [{ "provider": "local", "id": "qwen", "contextWindow": 32768 }] }"#,
    );
    let mut daemon = Daemon::at(home);
    assert_eq!(notices(&mut daemon), Vec::<String>::new());
    let all = daemon.ok("settings/get", json!({}));
    assert_eq!(all["settings"]["compaction"]["reserveTokens"], 1000);
    assert_eq!(all["settings"]["compaction"]["keepRecentTokens"], 20_000);
    assert_eq!(all["sources"]["compaction.reserveTokens"], "global");
    assert_eq!(all["sources"].get("compaction.keepRecentTokens"), None);
    let new = json!({"cwd": "/project", "settings": {"compaction": {"keepRecentTokens": 5}}});
    let session = daemon.ok("session/new", new)["session"].clone();
    assert_eq!(session["model"], json!({"provider": "local", "id": "qwen"}));
    assert_eq!(session["usage"]["contextWindow"], 32_768);
    let own = daemon.ok("settings/get", json!({"sessionId": session["sessionId"]}));
    assert_eq!(own["sources"]["compaction.keepRecentTokens"], "session");
    assert_eq!(own["sources"]["compaction.reserveTokens"], "global");
}

#[test]
fn an_invalid_value_at_start_is_reported_and_the_rest_of_the_file_holds() {
    let home = Home::new();
    home.settings("{\n  \"compaction\": {\n    \"keepRecentTokens\": \"all\"\n  }\n}\n");
    let mut daemon = Daemon::at(home);
    let said = notices(&mut daemon);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].starts_with("error: ")
            && said[0].contains("settings.json: line 3: compaction.keepRecentTokens: invalid type"),
        "{said:?}"
    );
    assert_eq!(daemon.ok("settings/get", json!({}))["settings"]["compaction"]["keepRecentTokens"], 20_000);

    let home = Home::new();
    home.settings(
        "{\n\"models\": [{ \"provider\": \"local\", \"id\": \"qwen\", \"contextWindow\": 32768 }],\n\"compaction\": \
         { \"thresholdPercent\": 150,\n\"reserveTokens\": \"a lot\" },\n\"retry\": { \"maxRetries\": 1000000 } }",
    );
    let mut daemon = Daemon::at(home);
    let said = notices(&mut daemon);
    for (at, expected) in [
        "warning: $settings.json: line 3: compaction.thresholdPercent: 150; expected -1 to 99; 99 is used",
        "error: $settings.json: line 5: retry.maxRetries: 1000000; expected 0 to 10",
        "error: $settings.json: line 4: compaction.reserveTokens: invalid type: string \"a lot\", expected a whole number",
    ]
    .iter()
    .enumerate()
    {
        let (begin, end) = expected.split_once('$').expect("a place for the folder");
        assert!(said[at].starts_with(begin) && said[at].ends_with(end), "{expected} in {said:?}");
    }
    let held = daemon.ok("settings/get", json!({}))["settings"].clone();
    assert_eq!(held["models"][0]["contextWindow"], 32_768);
    assert_eq!((&held["compaction"]["thresholdPercent"], &held["retry"]["maxRetries"]), (&json!(99), &json!(3)));

    let home = Home::new();
    home.settings("{ \"compaction\": { \"keepRecent\": 5 } }");
    let mut daemon = Daemon::at(home);
    assert!(notices(&mut daemon)[0].contains("compaction.keepRecent: unknown key, ignored"));
}

#[test]
fn the_environment_switches_automatic_compaction_off() {
    let home = Home::new();
    let mut command = home.command();
    command.env("ABRIDGED_DISABLE_AUTOCOMPACT", "1");
    let mut daemon = Daemon::of(home, command);
    daemon.ok("initialize", json!({}));
    assert_eq!(daemon.ok("settings/get", json!({}))["sources"]["compaction.enabled"], "environment");
    let session = daemon.ok("session/new", json!({"cwd": "/project"}))["session"].clone();
    assert_eq!(session["usage"]["autoCompaction"], Value::Bool(false));
}

/// A folder with a settings file of its own.
fn project(home: &Home, text: &str) -> std::path::PathBuf {
    let folder = home.path("project");
    fs::create_dir_all(folder.join(".abridged")).expect("a folder");
    fs::write(folder.join(".abridged/settings.json"), text).expect("a file");
    folder
}

#[test]
fn a_project_says_what_is_harmless_and_no_more() {
    let home = Home::new();
    let text = "{\n\"compaction\": { \"keepRecentTokens\": 7 },\n\"redaction\": { \"enabled\": false } }";
    let folder = project(&home, text);
    let mut daemon = Daemon::at(home);
    let session = daemon.ok("session/new", json!({ "cwd": folder }))["session"].clone();
    let own = daemon.ok("settings/get", json!({ "sessionId": session["sessionId"] }));
    assert_eq!(own["settings"]["compaction"]["keepRecentTokens"], 7);
    assert_eq!(own["sources"]["compaction.keepRecentTokens"], "project");
    assert_eq!(own["settings"]["redaction"]["enabled"], true);
    let said = notices(&mut daemon);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].starts_with("warning: ")
            && said[0].contains(".abridged/settings.json: line 3: redaction: a project may not set this")
            && said[0].contains("trustedProjects"),
        "{said:?}"
    );
    assert_eq!(daemon.ok("settings/get", json!({}))["sources"], json!({}), "it is about that folder alone");
    // It holds for sessions that are loaded, too.
    daemon.ok("session/close", json!({ "sessionId": session["sessionId"] }));
    let loaded = daemon.ok("session/load", json!({ "path": session["path"] }))["session"].clone();
    let own = daemon.ok("settings/get", json!({ "sessionId": loaded["sessionId"] }));
    assert_eq!(own["sources"]["compaction.keepRecentTokens"], "project");
}

/// Each of them was a notice, and a scan of the whole file.
#[test]
fn a_project_with_thousands_of_problems_gets_a_few_notices() {
    let unknown: serde_json::Map<String, Value> = (0..2_000).map(|key| (format!("k{key}"), json!(1))).collect();
    let model = json!({ "provider": "p", "id": "m", "compaction": { "thresholdPercent": 150 } });
    let forbidden = json!({ "models": vec![model; 2_000] });
    for (settings, expected, last) in [
        (json!(unknown), 17, "settings.json: and 1984 more problems, which are not listed"),
        (forbidden, 1, "to trustedProjects in the global settings file"),
    ] {
        let home = Home::new();
        let folder = project(&home, &settings.to_string());
        let mut daemon = Daemon::at(home);
        daemon.ok("session/new", json!({ "cwd": folder }));
        let said = notices(&mut daemon);
        assert_eq!(said.len(), expected, "{:?}", said.first());
        assert!(said.last().is_some_and(|it| it.ends_with(last)), "{:?}", said.last());
        daemon.ok("session/new", json!({ "cwd": folder }));
        assert_eq!(notices(&mut daemon).len(), expected, "each is told once");
    }
}

#[test]
fn a_trusted_project_says_more() {
    let home = Home::new();
    let folder = project(&home, r#"{ "defaultModel": "far/away" }"#);
    home.settings(&json!({ "trustedProjects": [folder] }).to_string());
    let mut daemon = Daemon::at(home);
    let session = daemon.ok("session/new", json!({ "cwd": folder }))["session"].clone();
    assert_eq!(session["model"], json!({"provider": "far", "id": "away"}));
    assert_eq!(notices(&mut daemon), Vec::<String>::new());
}

fn id_of(session: &Value) -> &str {
    session["sessionId"].as_str().expect("an id")
}

#[test]
fn a_client_changes_the_global_file_and_keeps_what_else_is_in_it() {
    let home = Home::new();
    home.settings("{\n  \"defaultModel\": \"a/b\",\n  \"prune\": { \"minimumSavings\": 3 }\n}\n");
    let mut daemon = Daemon::at(home);
    let session = daemon.ok("session/new", json!({"cwd": "/project"}))["session"].clone();
    let patch = json!({"prune": {"minimumSavings": null}, "compaction": {"reserveTokens": 9}});
    let answer = daemon.ok("settings/set", json!({"scope": "global", "patch": patch}));
    assert_eq!(answer["settings"]["compaction"]["reserveTokens"], 9);
    assert_eq!(answer["sources"], json!({"defaultModel": "global", "compaction.reserveTokens": "global"}));
    assert_eq!(daemon.ok("settings/get", json!({})), answer);
    let text = fs::read_to_string(daemon.home.path("config/settings.json")).expect("a file");
    let expected =
        "{\n  \"defaultModel\": \"a/b\",\n  \"prune\": {},\n  \"compaction\": {\n    \"reserveTokens\": 9\n  }\n}\n";
    assert_eq!(text, expected);
    let own = daemon.ok("settings/set", json!({"scope": "global", "sessionId": id_of(&session), "patch": {}}));
    assert_eq!(own, answer, "nothing is different for this session");
    // The session that is open has it before it answers anything else, and says so.
    let own = daemon.ok("settings/get", json!({"sessionId": id_of(&session)}));
    assert_eq!(own["settings"]["compaction"]["reserveTokens"], 9);
    let event = daemon.until("settings_changed");
    assert_eq!(event["params"]["event"]["sources"]["compaction.reserveTokens"], "global");
}

#[test]
fn a_wrong_change_is_refused_and_nothing_is_written() {
    let mut daemon = Daemon::start();
    let file = daemon.home.path("config/settings.json");
    for (patch, path) in [
        (json!({"compaction": {"reserveTokens": "many"}}), "patch.compaction.reserveTokens"),
        (json!({"compaction": {"reserve": 1}}), "patch.compaction.reserve"),
        (json!({"prune": 1}), "patch.prune"),
        (json!({"defaultModel": "a/b", "retry": {"maxRetries": 11}}), "patch.retry.maxRetries"),
        (json!({"defaultModel": "a/b", "retry": {"baseDelayMs": 99}}), "patch.retry.baseDelayMs"),
    ] {
        let error = daemon.err("settings/set", json!({"scope": "global", "patch": patch}));
        assert_eq!(
            (&error["data"]["code"], &error["data"]["path"]),
            (&json!("invalid_params"), &json!(path)),
            "{error}"
        );
        assert!(!file.exists());
    }
    let stranger = json!({"scope": "global", "sessionId": "nobody", "patch": {"defaultModel": "a/b"}});
    assert_eq!(daemon.err("settings/set", stranger)["data"]["code"], "not_found");
    assert!(!file.exists(), "what is answered with an error was not done");
    let error = daemon.err("settings/set", json!({"scope": "project", "patch": {}}));
    assert_eq!(error["data"]["path"], "sessionId");
    daemon.home.settings("{ \"compaction\": ");
    let error = daemon.err("settings/set", json!({"scope": "global", "patch": {"defaultModel": "a/b"}}));
    assert_eq!(error["data"]["code"], "storage_error", "{error}");
    assert!(
        error["message"].as_str().is_some_and(|text| text.contains("line 1") && text.contains("mend it")),
        "{error}"
    );
    assert_eq!(fs::read_to_string(&file).expect("a file"), "{ \"compaction\": ");
}

/// Every change is of another key, so none takes the place of another.
#[test]
fn daemons_lose_no_change_of_each_other() {
    let mut one = Daemon::start();
    let cwd = one.home.path("project");
    fs::create_dir_all(&cwd).expect("a folder");
    let mut others = [Daemon::of(Home::new(), one.home.command()), Daemon::of(Home::new(), one.home.command())];
    others.iter_mut().for_each(|other| drop(other.ok("initialize", json!({}))));
    let mut daemons: Vec<&mut Daemon> = std::iter::once(&mut one).chain(&mut others).collect();
    let sessions: Vec<String> =
        daemons.iter_mut().map(|daemon| daemon.new_session(json!({"cwd": cwd, "ephemeral": true}))).collect();
    for (scope, file) in [("global", "config/settings.json"), ("project", "project/.abridged/settings.json")] {
        let keys = ["reserveTokens", "keepRecentTokens", "thresholdTokens"];
        for round in 0..20_u64 {
            let asked: Vec<u64> = daemons
                .iter_mut()
                .zip(&sessions)
                .zip(keys)
                .map(|((daemon, session), key)| {
                    let patch = json!({"compaction": {key: 20_000 + round}});
                    daemon.begin("settings/set", json!({"scope": scope, "sessionId": session, "patch": patch}))
                })
                .collect();
            for (daemon, id) in daemons.iter_mut().zip(asked) {
                daemon.answer(id).expect("it is set");
            }
            let home = &daemons[0].home;
            let kept: Value = serde_json::from_slice(&fs::read(home.path(file)).expect("a file")).expect("JSON");
            for key in keys {
                assert_eq!(kept["compaction"][key], 20_000 + round, "{scope}, round {round}: {kept}");
            }
        }
    }
}

#[test]
fn changes_are_made_in_the_order_of_their_requests_while_another_daemon_makes_its_own() {
    let mut one = Daemon::start();
    let mut other = Daemon::of(Home::new(), one.home.command());
    other.ok("initialize", json!({}));
    for round in 0..5_u64 {
        let mut ids = [Vec::new(), Vec::new()];
        for change in 0..20_u64 {
            for (at, (daemon, key)) in
                [(&mut one, "reserveTokens"), (&mut other, "keepRecentTokens")].into_iter().enumerate()
            {
                let patch = json!({"compaction": {key: 4_000 + 100 * round + change}});
                ids[at].push(daemon.begin("settings/set", json!({"scope": "global", "patch": patch})));
            }
        }
        for (daemon, ids) in [&mut one, &mut other].into_iter().zip(ids) {
            ids.into_iter().for_each(|id| drop(daemon.answer(id).expect("it is set")));
        }
        let kept: Value =
            serde_json::from_slice(&fs::read(one.home.path("config/settings.json")).expect("a file")).expect("JSON");
        let last = 4_019 + 100 * round;
        assert_eq!(kept["compaction"], json!({"reserveTokens": last, "keepRecentTokens": last}), "round {round}");
    }
}

#[test]
fn a_session_opens_while_another_process_keeps_the_settings() {
    let mut daemon = Daemon::start();
    fs::create_dir_all(daemon.home.path("config")).expect("a folder");
    let kept = fs::File::open(daemon.home.path("config")).expect("a folder");
    kept.lock().expect("the lock");
    let patch = json!({"compaction": {"reserveTokens": 9_000}});
    let sets: Vec<u64> =
        (0..2).map(|_| daemon.begin("settings/set", json!({"scope": "global", "patch": patch}))).collect();
    let new = daemon.begin("session/new", json!({"cwd": "/project"}));
    let first = daemon.next_within(std::time::Duration::from_secs(60), |frame| {
        frame["id"].as_u64().is_some_and(|id| id == new || sets.contains(&id))
    });
    assert_eq!(first.expect("an answer")["id"], new);
    let error = daemon.answer(sets[0]).expect_err("it is kept");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("another process")), "{error}");
    drop(kept);
    daemon.answer(sets[1]).expect("it is free");
}

#[test]
fn a_client_changes_the_settings_of_a_project() {
    let home = Home::new();
    let folder = home.path("project");
    fs::create_dir(&folder).expect("a folder");
    let mut daemon = Daemon::at(home);
    let session = daemon.ok("session/new", json!({ "cwd": folder }))["session"].clone();
    let set = |patch: Value| json!({"scope": "project", "sessionId": id_of(&session), "patch": patch});
    let answer = daemon.ok("settings/set", set(json!({"compaction": {"keepRecentTokens": 7}})));
    assert_eq!(answer["sources"], json!({"compaction.keepRecentTokens": "project"}));
    assert!(fs::read_to_string(folder.join(".abridged/settings.json")).expect("a file").contains("keepRecent"));
    let error = daemon.err("settings/set", set(json!({"models": []})));
    assert_eq!(error["data"]["path"], "patch.models");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("trustedProjects")), "{error}");
    let error = daemon.err("settings/set", set(json!({"compaction": {"midTurn": false}, "retry": {"maxRetries": 4}})));
    assert_eq!(error["data"]["path"], "patch.retry.maxRetries");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("a project may set 0 to 3")), "{error}");
    let answer = daemon.ok("settings/set", set(json!({"compaction": null})));
    assert_eq!(answer["sources"], json!({}));
    let own = json!({"scope": "session", "sessionId": id_of(&session), "patch": {"retry": {"maxRetries": 11}}});
    assert_eq!(daemon.err("settings/set", own)["data"]["path"], "patch.retry.maxRetries");
    let own = json!({"cwd": folder, "settings": {"compaction": {"stallSeconds": 0}}});
    assert_eq!(daemon.err("session/new", own)["data"]["path"], "settings.compaction.stallSeconds");
    let nowhere = daemon.ok("session/new", json!({"cwd": "/there/is/no/such/folder"}))["session"].clone();
    let set = json!({"scope": "project", "sessionId": id_of(&nowhere), "patch": {"prune": {"minimumSavings": 1}}});
    assert_eq!(daemon.err("settings/set", set)["data"]["code"], "storage_error");
}

/// Waits for something told that is so, and takes it out of what was told.
fn told(daemon: &mut Daemon, wanted: impl Fn(&Value) -> bool) -> Value {
    loop {
        if let Some(at) = daemon.events.iter().position(&wanted) {
            return daemon.events.remove(at);
        }
        let frame = daemon.frame();
        daemon.events.push(frame);
    }
}

fn told_everybody(daemon: &mut Daemon, method: &str) -> Value {
    told(daemon, |frame| frame["method"] == method)["params"].clone()
}

fn told_session(daemon: &mut Daemon, session: &Value, kind: &str) -> Value {
    let wanted = |frame: &Value| {
        frame["params"]["sessionId"] == session["sessionId"] && frame["params"]["event"]["type"] == kind
    };
    told(daemon, wanted)["params"]["event"].clone()
}

#[test]
fn a_changed_file_holds_at_once() {
    let mut daemon = Daemon::start();
    let session = daemon.ok("session/new", json!({"cwd": "/project"}))["session"].clone();
    let own = json!({"cwd": "/project", "settings": {"compaction": {"reserveTokens": 5}}});
    let stubborn = daemon.ok("session/new", own)["session"].clone();
    // The folder is not there yet, either.
    daemon.home.settings(r#"{ "compaction": { "reserveTokens": 1000 } }"#);
    let all = told_everybody(&mut daemon, "settings_changed");
    assert_eq!(all["settings"]["compaction"]["reserveTokens"], 1000);
    assert_eq!(all["sources"], json!({"compaction.reserveTokens": "global"}));
    let event = told_session(&mut daemon, &session, "settings_changed");
    assert_eq!(event["settings"]["compaction"]["reserveTokens"], 1000);
    assert_eq!(told_session(&mut daemon, &session, "usage_updated")["usage"]["reserveTokens"], 1000);
    assert_eq!(daemon.ok("settings/get", json!({})), all);
    // As editors save: a new file in the place of the old one.
    let (fresh, file) = (daemon.home.path("config/fresh"), daemon.home.path("config/settings.json"));
    fs::write(&fresh, r#"{ "compaction": { "reserveTokens": 2000 } }"#).expect("a file");
    fs::rename(&fresh, &file).expect("renamed");
    let all = told_everybody(&mut daemon, "settings_changed");
    assert_eq!(all["settings"]["compaction"]["reserveTokens"], 2000);
    fs::remove_file(&file).expect("removed");
    assert_eq!(told_everybody(&mut daemon, "settings_changed")["sources"], json!({}));
    daemon.ok("session/status", json!({"sessionId": id_of(&stubborn)}));
    let of_stubborn = |frame: &&Value| frame["params"]["sessionId"] == stubborn["sessionId"];
    assert_eq!(daemon.events.iter().filter(of_stubborn).count(), 0, "its own settings hold: nothing changed for it");
}

#[test]
fn a_file_that_breaks_keeps_the_old_values_and_is_told_once() {
    let home = Home::new();
    home.settings(r#"{ "compaction": { "reserveTokens": 1000 } }"#);
    let mut daemon = Daemon::at(home);
    daemon.home.settings("{\n  \"compaction\": { \"reserveTokens\": true } }");
    let notice = told_everybody(&mut daemon, "notice");
    assert_eq!((&notice["severity"], &notice["code"]), (&json!("error"), &json!("setting_invalid")));
    let detail = notice["detail"].as_str().expect("a detail");
    assert!(detail.contains("settings.json: line 2: compaction.reserveTokens: invalid type"), "{detail}");
    let all = daemon.ok("settings/get", json!({}));
    assert_eq!(all["settings"]["compaction"]["reserveTokens"], 1000);
    daemon.home.settings(r#"{ "compaction": { "reserveTokens": 1001 } }"#);
    let all = told_everybody(&mut daemon, "settings_changed");
    assert_eq!(all["settings"]["compaction"]["reserveTokens"], 1001);
    assert_eq!(notices(&mut daemon), Vec::<String>::new());
}

#[test]
fn a_changed_project_is_told_to_its_sessions_alone() {
    let home = Home::new();
    let folder = home.path("project");
    fs::create_dir(&folder).expect("a folder");
    let mut daemon = Daemon::at(home);
    let inside = daemon.ok("session/new", json!({ "cwd": folder }))["session"].clone();
    let outside = daemon.ok("session/new", json!({ "cwd": daemon.home.path("") }))["session"].clone();
    project(&daemon.home, r#"{ "compaction": { "reserveTokens": 7 }, "models": [] }"#);
    let event = told_session(&mut daemon, &inside, "settings_changed");
    assert_eq!(event["sources"], json!({"compaction.reserveTokens": "project"}));
    let notice = told_everybody(&mut daemon, "notice");
    assert_eq!(notice["code"], "setting_untrusted");
    assert!(notice["detail"].as_str().is_some_and(|it| it.contains("models")));
    // Trusted by a change of another file, it says more.
    daemon.home.settings(&json!({ "trustedProjects": [folder] }).to_string());
    let event = told_session(&mut daemon, &inside, "settings_changed");
    assert_eq!(event["sources"]["models"], "project");
    let event = told_session(&mut daemon, &outside, "settings_changed");
    assert_eq!(event["sources"], json!({"trustedProjects": "global"}));
    daemon.ok("session/close", json!({"sessionId": id_of(&inside)}));
    project(&daemon.home, "{ broken");
    daemon.ok("settings/set", json!({"scope": "global", "patch": {"defaultModel": "a/b"}}));
    told_session(&mut daemon, &outside, "settings_changed");
    assert_eq!(notices(&mut daemon), Vec::<String>::new(), "nobody asks about the project any more");
}

#[cfg(unix)]
#[test]
fn a_file_that_is_kept_elsewhere_is_watched_there() {
    let home = Home::new();
    fs::create_dir_all(home.path("dotfiles")).and_then(|()| fs::create_dir(home.path("config"))).expect("folders");
    let file = home.path("dotfiles/abridged.json");
    fs::write(&file, "{}").expect("a file");
    std::os::unix::fs::symlink(&file, home.path("config/settings.json")).expect("a link");
    let mut daemon = Daemon::at(home);
    fs::write(&file, r#"{ "defaultModel": "a/b" }"#).expect("a file");
    assert_eq!(told_everybody(&mut daemon, "settings_changed")["settings"]["defaultModel"], "a/b");
}

#[test]
fn models_are_listed_with_what_is_known_of_them_and_no_secret() {
    let home = Home::new();
    let local = json!({"provider": "local", "id": "qwen", "api": "openai_chat", "apiKeyEnv": "LOCAL_KEY",
        "baseUrl": "http://me:hush@127.0.0.1/v1?key=hush", "contextWindow": 32_768, "promoteTo": "local/long"});
    home.settings(&json!({"models": [local], "defaultModel": "local/qwen"}).to_string());
    let mut daemon = Daemon::at(home);
    let models = daemon.ok("models/list", json!({}))["models"].clone();
    let expected = json!([{"provider": "local", "id": "qwen", "api": "openai_chat", "baseUrl": "http://127.0.0.1/v1",
        "apiKeyEnv": "LOCAL_KEY", "contextWindow": {"value": 32_768, "source": "global"}, "maxOutputTokens": null,
        "cost": null, "promoteTo": "local/long", "default": true, "learned": []}]);
    assert_eq!(models, expected);
    let cost = json!({"input": 0.5, "output": 2});
    let own = json!({"models": [{"provider": "own", "id": "m", "contextWindow": 9, "cost": cost}]});
    let new = json!({"cwd": "/project", "model": "else/where", "settings": own});
    let session = daemon.ok("session/new", new)["session"].clone();
    let models = daemon.ok("models/list", json!({"sessionId": id_of(&session)}))["models"].clone();
    let of = |at: usize| (models[at]["id"].clone(), models[at]["contextWindow"].clone());
    assert_eq!(of(0), (json!("m"), json!({"value": 9, "source": "session"})));
    assert_eq!(of(1), (json!("qwen"), json!({"value": 128_000, "source": "default"})));
    let prices = json!({"input": 0.5, "output": 2.0, "cacheRead": null, "cacheWrite": null, "source": "session"});
    assert_eq!(models[0]["cost"], prices);
    // The host's own model is listed, too, with the default limits.
    assert_eq!(of(2), (json!("where"), json!({"value": 128_000, "source": "default"})));
    assert_eq!(models.as_array().map(Vec::len), Some(3));
}

#[test]
fn a_model_that_everybody_knows_needs_no_settings() {
    let mut daemon = Daemon::start();
    let new = json!({"cwd": "/project", "model": "anthropic/claude-opus-4-5"});
    let session = daemon.ok("session/new", new)["session"].clone();
    let usage = &session["usage"];
    assert_eq!((&usage["contextWindow"], &usage["windowSource"]), (&json!(200_000), &json!("catalog")));
    let models = daemon.ok("models/list", json!({"sessionId": id_of(&session)}))["models"].clone();
    assert_eq!(models[0]["contextWindow"], json!({"value": 200_000, "source": "catalog"}));
    assert_eq!(models[0]["maxOutputTokens"], json!({"value": 64_000, "source": "catalog"}));
    let prices = json!({"input": 5.0, "output": 25.0, "cacheRead": 0.5, "cacheWrite": 6.25, "source": "catalog"});
    assert_eq!(models[0]["cost"], prices);
}

#[test]
fn a_header_is_told_by_its_name_and_never_by_its_value() {
    let home = Home::new();
    let model = |value: &str| json!({"provider": "local", "id": "qwen", "headers": {"X-Proxy-Key": value}});
    home.settings(&json!({"models": [model("hush")]}).to_string());
    let mut daemon = Daemon::at(home);
    let mut told = vec![daemon.ok("settings/get", json!({})), daemon.ok("models/list", json!({}))];
    let models = told[0]["settings"]["models"].clone();
    assert_eq!(models[0]["headers"], json!({"X-Proxy-Key": "***"}));
    let session = daemon.ok("session/new", json!({"cwd": "/project"}))["session"].clone();
    told.push(daemon.ok("settings/get", json!({"sessionId": id_of(&session)})));

    // A masked value is no value and is not written to the file.
    let refused = daemon.err("settings/set", json!({"scope": "global", "patch": {"models": models}}));
    assert_eq!(refused["data"]["path"], "patch.models[0].headers.X-Proxy-Key", "{refused}");
    told.push(daemon.ok("settings/set", json!({"scope": "global", "patch": {"models": [model("hush hush")]}})));
    told.push(told_everybody(&mut daemon, "settings_changed"));
    told.push(told_session(&mut daemon, &session, "settings_changed"));
    let written = fs::read_to_string(daemon.home.path("config/settings.json")).expect("a file");
    assert!(written.contains("hush hush"), "{written}");
    for told in told.iter().chain(&daemon.events) {
        assert!(!told.to_string().contains("hush"), "{told}");
    }
}

#[test]
fn a_key_in_an_address_or_a_command_is_told_to_nobody() {
    let home = Home::new();
    let of = |word: &str| {
        json!({
            "models": [{"provider": "local", "id": "qwen", "baseUrl": format!("https://me:{word}@127.0.0.1/v1?key={word}"),
                "apiKeyCommand": ["print-key", "--of", word], "compaction": {"remoteEndpoint": format!("http://{word}@127.0.0.1:9/sum")}}],
            "compaction": {"remoteEndpoint": format!("http://127.0.0.1:9/sum?token={word}#{word}")},
        })
    };
    home.settings(&of("hush").to_string());
    let mut daemon = Daemon::at(home);
    let mut told = vec![daemon.ok("settings/get", json!({}))];
    let shown = &told[0]["settings"];
    assert_eq!(shown["compaction"]["remoteEndpoint"], "http://127.0.0.1:9/sum");
    let model = shown["models"][0].clone();
    assert_eq!(
        (&model["baseUrl"], &model["apiKeyCommand"]),
        (&json!("https://127.0.0.1/v1"), &json!(["print-key", "***", "***"]))
    );
    assert_eq!(model["compaction"]["remoteEndpoint"], "http://127.0.0.1:9/sum");
    let session = daemon.ok("session/new", json!({"cwd": "/project", "settings": of("hush-own")}))["session"].clone();
    told.push(daemon.ok("settings/get", json!({"sessionId": id_of(&session)})));

    // A masked argument is no argument and is not written to the file.
    let refused = daemon.err("settings/set", json!({"scope": "global", "patch": {"models": [model]}}));
    assert_eq!(refused["data"]["path"], "patch.models[0].apiKeyCommand", "{refused}");
    let params = json!({"scope": "session", "sessionId": id_of(&session), "patch": of("hush-again")});
    told.push(daemon.ok("settings/set", params));
    told.push(told_session(&mut daemon, &session, "settings_changed"));
    told.push(daemon.ok("settings/set", json!({"scope": "global", "patch": of("hush-file")})));
    told.push(told_everybody(&mut daemon, "settings_changed"));
    let written = fs::read_to_string(daemon.home.path("config/settings.json")).expect("a file");
    assert!(written.contains("hush-file"), "{written}");
    // A session's own settings stand in its file as the client wrote them, and so does the event of that entry.
    let events = daemon.events.iter().filter(|frame| frame["params"]["event"]["type"] != "entry_appended");
    for told in told.iter().chain(events) {
        assert!(!told.to_string().contains("hush"), "{told}");
    }
    let mut command = daemon.home.command();
    let shown = command.args(["doctor", "--json"]).output().expect("doctor runs").stdout;
    let shown = String::from_utf8(shown).expect("text");
    assert!(shown.contains("127.0.0.1") && !shown.contains("hush"), "{shown}");
}
