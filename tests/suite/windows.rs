//! Windows that providers teach, through the real binary: in two sessions, behind a restart, disproved, forgotten, shown.

use crate::support::{Daemon, Home, assistant, failed, run, text_of, user};
use serde_json::{Value, json};
use std::{
    fs,
    time::{Duration, Instant},
};

/// A refusal that states a limit of 32,768 tokens.
const STATES: &str =
    "400 This model's maximum context length is 32768 tokens. However, your messages resulted in 33000 tokens.";

/// A session of a model that nobody knows, or with the window that its host names.
fn session(daemon: &mut Daemon, window: Option<u64>) -> String {
    let mut params = json!({"cwd": "/project", "model": "some/model", "settings": {"compaction": {"enabled": false}, "tokens": {"estimator": "chars"}}});
    if let Some(window) = window {
        params["contextWindow"] = json!(window);
    }
    daemon.new_session(params)
}

fn refuse(daemon: &mut Daemon, session: &str) -> Value {
    daemon.append(session, &[user("hi"), failed(STATES)])["usage"].clone()
}

/// An answer to a prompt that its provider counted, with a message before it of so many tokens by characters.
fn answered(daemon: &mut Daemon, session: &str, grown: usize, prompt: u64) -> Value {
    let mut answer = assistant("Yes.");
    answer["usage"] = json!({"input": prompt, "output": 5, "cacheRead": 0, "cacheWrite": 0, "totalTokens": prompt + 5});
    daemon.append(session, &[user(&text_of(grown, "more")), answer])["usage"].clone()
}

/// Window and source of a session.
fn window(daemon: &mut Daemon, session: &str) -> (u64, String) {
    of(&daemon.ok("session/usage", json!({"sessionId": session})))
}

fn of(usage: &Value) -> (u64, String) {
    let source = usage["windowSource"].as_str().expect("a source").to_owned();
    (usage["contextWindow"].as_u64().expect("a window"), source)
}

fn learned(window: u64) -> (u64, String) {
    (window, "learned".to_owned())
}

fn set(window: u64) -> (u64, String) {
    (window, "setting".to_owned())
}

/// The rows of the file, when it holds so many.
fn rows(home: &Home, count: usize) -> Vec<Value> {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let text = fs::read(home.path("data/learned-windows.json")).unwrap_or_default();
        let file: Value = serde_json::from_slice(&text).unwrap_or_default();
        let rows = file["windows"].as_array().cloned().unwrap_or_default();
        if rows.len() == count && file["version"] == 2 {
            return rows;
        }
        assert!(Instant::now() < end, "{count} rows are expected in {file:#}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The model of the sessions in `models/list`, null where it is not listed.
fn listed(daemon: &mut Daemon, params: Value) -> Value {
    let models = daemon.ok("models/list", params)["models"].clone();
    let model = models.as_array().expect("models").iter().find(|it| it["id"] == "model").cloned();
    model.unwrap_or_default()
}

/// Details of the notices about windows to a session.
fn notices(daemon: &Daemon, session: &str) -> Vec<String> {
    let events = daemon.events.iter().filter(|frame| frame["params"]["sessionId"] == session);
    let details = events.map(|frame| &frame["params"]["event"]).filter(|event| event["type"] == "notice");
    let details = details.filter_map(|event| event["detail"].as_str());
    details.filter(|detail| detail.contains("tokens here instead of")).map(str::to_owned).collect()
}

/// Details of the notices about limits that do not count in a session.
fn doubts(daemon: &Daemon, session: &str) -> Vec<String> {
    let events = daemon.events.iter().filter(|frame| frame["params"]["sessionId"] == session);
    let doubts = events.map(|frame| &frame["params"]["event"]).filter(|event| event["code"] == "window_doubted");
    doubts.map(|event| event["detail"].as_str().expect("a detail").to_owned()).collect()
}

/// Details of the notices about the file of the windows.
fn faults(daemon: &Daemon) -> Vec<String> {
    let notices = daemon.events.iter().filter(|frame| frame["method"] == "notice").map(|frame| &frame["params"]);
    let told = notices.filter(|notice| notice["code"] == "windows_not_kept");
    told.map(|notice| notice["detail"].as_str().expect("a detail").to_owned()).collect()
}

fn restarted(mut daemon: Daemon) -> Daemon {
    daemon.end();
    let home = std::mem::replace(&mut daemon.home, Home::new());
    drop(daemon);
    Daemon::at(home)
}

#[test]
fn a_limit_below_the_hosts_window_counts_for_others_after_a_second_refusal_also_behind_a_restart() {
    let mut daemon = Daemon::start();
    let [one, other, unnamed] = [Some(200_000), Some(200_000), None].map(|window| session(&mut daemon, window));
    assert_eq!(of(&refuse(&mut daemon, &one)), learned(32_768));
    assert_eq!(window(&mut daemon, &one), learned(32_768));
    let notices_of_one = notices(&daemon, &one);
    assert_eq!(notices_of_one.len(), 1, "{notices_of_one:?}");
    assert!(notices_of_one[0].contains("some/model") && notices_of_one[0].contains("models/forget"));
    assert_eq!(window(&mut daemon, &other), set(200_000));
    assert_eq!(window(&mut daemon, &unnamed), learned(32_768), "nobody names its window");
    let row = rows(&daemon.home, 1).remove(0);
    assert_eq!(
        (&row["contextWindow"], &row["refusals"], &row["origin"]),
        (&json!(32_768), &json!(1), &json!("refusal"))
    );
    let path = daemon.ok("session/status", json!({"sessionId": one}))["session"]["path"].clone();

    let mut daemon = restarted(daemon);
    let loaded = daemon.ok("session/load", json!({"path": path, "contextWindow": 200_000}));
    assert_eq!(of(&loaded["session"]["usage"]), learned(32_768), "it is the session that was refused");
    daemon.ok("ping", json!({}));
    let other = session(&mut daemon, Some(200_000));
    assert_eq!(window(&mut daemon, &other), set(200_000));
    assert_eq!(notices(&daemon, &one).len(), 1, "it is told again behind the opening");
    refuse(&mut daemon, &other);
    let third = session(&mut daemon, Some(200_000));
    assert_eq!(window(&mut daemon, &third), learned(32_768), "two refusals say so");
}

#[test]
fn a_larger_request_that_succeeds_takes_a_window_back_everywhere() {
    let mut daemon = Daemon::start();
    let [one, other] = [(); 2].map(|()| session(&mut daemon, None));
    refuse(&mut daemon, &one);
    rows(&daemon.home, 1);
    assert_eq!(of(&answered(&mut daemon, &other, 24_000, 30_000)), learned(32_768));
    let usage = answered(&mut daemon, &other, 8_000, 40_000);
    assert_eq!(of(&usage), (128_000, "default".to_owned()));
    assert_eq!(window(&mut daemon, &one), (128_000, "default".to_owned()));
    rows(&daemon.home, 0);
    // The same refusal teaches nothing where the model took more.
    assert_eq!(of(&refuse(&mut daemon, &other)).0, 128_000);
}

#[test]
fn a_limit_below_a_prompt_that_another_session_got_through_counts_only_where_it_was_stated() {
    let mut daemon = Daemon::start();
    let one = session(&mut daemon, None);
    answered(&mut daemon, &one, 24_000, 30_000);
    assert_eq!(of(&answered(&mut daemon, &one, 8_000, 40_000)), (128_000, "default".to_owned()));
    assert!(!daemon.home.path("data/learned-windows.json").exists(), "no report is worth a write");
    let other = session(&mut daemon, None);
    assert_eq!(of(&refuse(&mut daemon, &other)), learned(32_768), "the session goes on from its refusal");
    let third = session(&mut daemon, None);
    assert_eq!(window(&mut daemon, &third), (128_000, "default".to_owned()), "the model took more");
    assert_eq!(window(&mut daemon, &other), learned(32_768));
    let named = session(&mut daemon, Some(200_000));
    assert_eq!(of(&refuse(&mut daemon, &named)), set(200_000), "no window below an accepted size");
    assert_eq!(window(&mut daemon, &named), set(200_000));
    assert_eq!(notices(&daemon, &named), [""; 0]);
    assert_eq!(listed(&mut daemon, json!({})), Value::Null);
    daemon.ok("models/forget", json!({"model": "some/model"}));
    assert_eq!(window(&mut daemon, &other), (128_000, "default".to_owned()));
    assert_eq!(of(&refuse(&mut daemon, &other)), learned(32_768));
    assert_eq!(window(&mut daemon, &third), learned(32_768), "the accepted size is forgotten, too");
}

#[test]
fn a_limit_that_does_not_count_is_told_once_per_session_and_number_with_the_way_to_make_it_count() {
    let mut daemon = Daemon::start();
    let [took, unnamed] = [(); 2].map(|()| session(&mut daemon, None));
    let named = session(&mut daemon, Some(200_000));
    answered(&mut daemon, &took, 24_000, 30_000);
    answered(&mut daemon, &took, 8_000, 40_000);
    let sessions = [&took, &unnamed, &named];
    for _ in 0..2 {
        for session in sessions {
            refuse(&mut daemon, session);
        }
    }
    assert_eq!(sessions.map(|session| window(&mut daemon, session).0), [128_000, 32_768, 200_000]);
    let told = sessions.map(|session| doubts(&daemon, session));
    assert_eq!([told[0].len(), told[1].len(), told[2].len()], [1, 0, 1], "{told:#?}");
    for (detail, counts) in [(&told[0][0], "128000 tokens here"), (&told[2][0], "200000 tokens here")] {
        for part in ["32768 tokens for some/model", "a request of 400", counts, "contextWindow", "models/forget"] {
            assert!(detail.contains(part), "{part}: {detail}");
        }
    }
    // The server states another limit.
    let smaller = STATES.replace("32768", "30000");
    daemon.append(&named, &[user("hi"), failed(&smaller)]);
    assert_eq!(doubts(&daemon, &named).len(), 2);
    // The way that the notice names.
    daemon.ok("session/configure", json!({"sessionId": named, "contextWindow": 32_768}));
    daemon.ok("models/forget", json!({"model": "some/model"}));
    refuse(&mut daemon, &named);
    assert_eq!(window(&mut daemon, &named).0, 32_768);
    assert_eq!(doubts(&daemon, &named).len(), 2);
}

#[test]
fn an_accepted_size_is_written_with_the_windows_and_outlives_the_daemon() {
    let mut daemon = Daemon::start();
    let one = session(&mut daemon, None);
    refuse(&mut daemon, &one);
    rows(&daemon.home, 1);
    answered(&mut daemon, &one, 24_000, 30_000);
    answered(&mut daemon, &one, 8_000, 40_000);
    rows(&daemon.home, 0);
    let mut daemon = restarted(daemon);
    let other = session(&mut daemon, None);
    refuse(&mut daemon, &other);
    let third = session(&mut daemon, None);
    assert_eq!(window(&mut daemon, &third), (128_000, "default".to_owned()));
    assert_eq!(rows(&daemon.home, 0), [Value::Null; 0]);
}

#[test]
fn the_notice_about_a_window_is_said_once_per_session_and_number() {
    let mut daemon = Daemon::start();
    let [one, other] = [(); 2].map(|()| session(&mut daemon, Some(200_000)));
    for _ in 0..3 {
        assert_eq!(of(&refuse(&mut daemon, &one)), learned(32_768));
    }
    for model in ["some/other", "some/model"] {
        daemon.ok("session/configure", json!({"sessionId": one, "model": model, "contextWindow": 200_000}));
    }
    assert_eq!(window(&mut daemon, &one), learned(32_768));
    assert_eq!(of(&refuse(&mut daemon, &other)), learned(32_768));
    assert_eq!([&one, &other].map(|session| window(&mut daemon, session)), [(); 2].map(|()| learned(32_768)));
    assert_eq!(notices(&daemon, &other).len(), 1, "another session");
    assert_eq!(notices(&daemon, &one).len(), 1, "{:?}", notices(&daemon, &one));
    let smaller = STATES.replace("32768", "30000");
    daemon.append(&one, &[user("hi"), failed(&smaller), user("hi"), failed(&smaller)]);
    assert_eq!(window(&mut daemon, &one), learned(30_000));
    let told = notices(&daemon, &one);
    assert!(told.len() == 2 && told[1].contains("30000 tokens here"), "{told:?}");
}

#[test]
fn a_model_can_be_forgotten_and_is_listed_with_its_evidence_until_then() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon, Some(200_000));
    refuse(&mut daemon, &session);
    rows(&daemon.home, 1);
    for params in [json!({}), json!({"sessionId": session})] {
        let learned = listed(&mut daemon, params)["learned"].clone();
        let row = &learned[0];
        assert_eq!(learned.as_array().map(Vec::len), Some(1), "{learned:#}");
        assert_eq!(row["model"], json!({"provider": "some", "id": "model"}));
        assert_eq!((&row["contextWindow"], &row["origin"]), (&json!(32_768), &json!("refusal")));
        assert_eq!((&row["baseUrl"], &row["refusals"]), (&Value::Null, &json!(1)));
        assert!(row["learnedAt"].as_str().is_some_and(|at| at.ends_with('Z')), "{row:#}");
    }
    assert_eq!(daemon.ok("models/forget", json!({"model": "some/other"})), json!({"forgotten": []}));
    let forgotten = daemon.ok("models/forget", json!({"model": "some/model"}))["forgotten"].clone();
    assert_eq!(forgotten[0]["contextWindow"], 32_768, "{forgotten:#}");
    assert_eq!(window(&mut daemon, &session), set(200_000));
    assert_eq!(rows(&daemon.home, 0), [Value::Null; 0]);
    assert_eq!(listed(&mut daemon, json!({})), Value::Null);
    let wrong = daemon.err("models/forget", json!({"model": "nonsense"}));
    assert_eq!((&wrong["data"]["code"], &wrong["data"]["path"]), (&json!("invalid_params"), &json!("model")));
}

#[test]
fn a_window_that_the_host_configures_later_is_told_of() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon, None);
    refuse(&mut daemon, &session);
    let configured = daemon.ok("session/configure", json!({"sessionId": session, "contextWindow": 200_000}));
    assert_eq!(of(&configured["session"]["usage"]), learned(32_768), "the provider's word counts for more");
    assert_eq!(window(&mut daemon, &session), learned(32_768));
    let notices = notices(&daemon, &session);
    assert!(notices.len() == 1 && notices[0].contains("instead of 200000"), "{notices:?}");
}

/// The report of the doctor, as JSON and as text.
fn doctor(home: &Home) -> (Value, String) {
    let report = |more: &[&str]| {
        let mut command = home.command();
        command.arg("doctor").args(more);
        run(command).1
    };
    (serde_json::from_str(&report(&["--json"])).expect("JSON"), report(&[]))
}

#[test]
fn files_of_every_kind_are_survived_and_shown() {
    let row = |model: &str, more: Value| {
        let mut row = json!({"model": model, "baseUrl": null, "contextWindow": 32_768, "origin": "refusal",
            "learnedAt": "2099-01-01T00:00:00.000Z", "refusals": 2, "session": null});
        row.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        row
    };
    let of_rows = |rows: Value| json!({"version": 2, "windows": rows}).to_string();
    let newer = json!({"version": 3, "windows": [], "more": true}).to_string();
    // The text, the window of a session with a larger one, and a part of the doctor's problem.
    let cases = [
        (json!({"some/model": 32_768}).to_string(), set(200_000), None),
        (of_rows(json!([row("some/model", json!({}))])), learned(32_768), None),
        (
            of_rows(json!([row("some/model", json!({"contextWindow": "many"})), row("some/model", json!({}))])),
            learned(32_768),
            Some("1 of its rows"),
        ),
        (newer.clone(), set(200_000), Some("a newer version")),
        ("{\"version\": 2, \"windo".to_owned(), set(200_000), Some("cannot be read")),
        ("\u{0}".repeat(200), set(200_000), Some("cannot be read")),
        (" ".repeat(2 << 20), set(200_000), Some("larger than")),
    ];
    for (text, expected, problem) in cases {
        let home = Home::new();
        fs::create_dir_all(home.path("data"))
            .and_then(|()| fs::write(home.path("data/learned-windows.json"), &text))
            .expect("a file");
        let (found, told) = doctor(&home);
        let problems: Vec<&str> =
            found["problems"].as_array().expect("problems").iter().filter_map(|it| it["what"].as_str()).collect();
        let named = |part: &str| problems.iter().any(|it| it.contains(part)) && told.contains(part);
        assert!(problem.map_or(problems.is_empty(), named), "{text:.60}: {problems:?}");
        let is_kept = found["models"][0]["learned"][0]["contextWindow"] == 32_768;
        assert_eq!(is_kept, told.contains("learned: window 32,768 from"), "{told}");
        let mut daemon = Daemon::at(home);
        let first = session(&mut daemon, Some(200_000));
        assert_eq!(window(&mut daemon, &first), expected, "{text:.60}");
        let expected: Vec<&str> = problem.into_iter().collect();
        assert_eq!(faults(&daemon).len(), expected.len(), "{:?}", faults(&daemon));
        assert!(faults(&daemon).iter().all(|told| told.contains("learned-windows.json") && told.contains(expected[0])));
        // It goes on learning, and a file that it cannot read stays as it is.
        assert_eq!(of(&refuse(&mut daemon, &first)), learned(32_768));
        let kept = text == newer || text.starts_with("  ");
        let forgotten = daemon.call("models/forget", json!({"model": "none/such"}));
        assert_eq!(forgotten.is_err(), kept, "{forgotten:?}");
        let now = fs::read_to_string(daemon.home.path("data/learned-windows.json")).expect("a file");
        assert_eq!(now == text, kept, "{now:.200}");
        if let Err(error) = forgotten {
            assert_eq!(error["data"]["code"], "storage_error", "{error}");
        }
        session(&mut daemon, None);
        assert_eq!(faults(&daemon).len(), expected.len(), "told once: {:?}", faults(&daemon));
    }
}

#[test]
fn a_file_that_becomes_unusable_while_the_daemon_runs_is_told_of_once() {
    for (text, problem) in [(r#"{"version": 3, "windows": []}"#, "a newer version"), ("nonsense", "a copy")] {
        let mut daemon = Daemon::start();
        let session = session(&mut daemon, None);
        let file = daemon.home.path("data/learned-windows.json");
        fs::create_dir_all(daemon.home.path("data")).and_then(|()| fs::write(&file, text)).expect("a file");
        refuse(&mut daemon, &session);
        let end = Instant::now() + Duration::from_secs(20);
        while faults(&daemon).is_empty() {
            assert!(Instant::now() < end, "no notice");
            daemon.ok("ping", json!({}));
        }
        refuse(&mut daemon, &session);
        daemon.call("models/forget", json!({"model": "none/such"})).ok();
        assert!(faults(&daemon).len() == 1 && faults(&daemon)[0].contains(problem), "{:?}", faults(&daemon));
        let copy = daemon.home.path("data/learned-windows.json.damaged");
        let kept = if text == "nonsense" { copy } else { file };
        assert_eq!(fs::read_to_string(kept).expect("a file"), text);
    }
}

#[test]
fn two_daemons_keep_what_both_learned() {
    let mut one = Daemon::start();
    let mut other = beside(&one);
    for (daemon, model) in [(&mut one, "some/first"), (&mut other, "some/second")] {
        let session = daemon.new_session(json!({"cwd": "/project", "model": model}));
        refuse(daemon, &session);
    }
    let mut models: Vec<String> = rows(&one.home, 2).iter().map(|row| row["model"]["id"].to_string()).collect();
    models.sort_unstable();
    assert_eq!(models, ["\"first\"", "\"second\""]);
    other.ok("models/forget", json!({"model": "some/first"}));
    assert_eq!(rows(&one.home, 1)[0]["model"]["id"], "second");
}

/// Another daemon with the data of this one.
fn beside(daemon: &Daemon) -> Daemon {
    let mut command = Home::new().command();
    command.env("ABRIDGED_DATA_DIR", daemon.home.path("data"));
    let mut other = Daemon::of(Home::new(), command);
    other.ok("initialize", json!({"protocolVersion": 1}));
    other
}

#[test]
fn a_daemon_that_runs_sees_windows_that_another_one_learns_and_forgets() {
    let mut one = Daemon::start();
    let mut other = beside(&one);
    let earlier = session(&mut other, None);
    let first = session(&mut one, None);
    refuse(&mut one, &first);
    rows(&one.home, 1);
    let later = session(&mut other, None);
    assert_eq!(window(&mut other, &later), learned(32_768), "a new session");
    assert_eq!(window(&mut other, &earlier), learned(32_768), "an open one");
    one.ok("models/forget", json!({"model": "some/model"}));
    assert_eq!(listed(&mut other, json!({"sessionId": later}))["learned"], json!([]), "a list of a session");
    assert_eq!(listed(&mut other, json!({})), Value::Null, "a general list");
    refuse(&mut one, &first);
    rows(&one.home, 1);
    other.ok("session/close", json!({"sessionId": later}));
    other.ok("session/load", json!({"sessionId": later}));
    assert_eq!(window(&mut other, &later), learned(32_768), "a session that is loaded");
}

#[test]
fn a_lock_that_is_no_file_is_named_in_the_notice() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon, None);
    fs::create_dir_all(daemon.home.path("data/learned-windows.json.lock")).expect("a folder");
    refuse(&mut daemon, &session);
    let end = Instant::now() + Duration::from_secs(20);
    while faults(&daemon).is_empty() {
        assert!(Instant::now() < end, "no notice");
        daemon.ok("ping", json!({}));
    }
    assert!(faults(&daemon)[0].contains("learned-windows.json.lock cannot be used"), "{:?}", faults(&daemon));
}
