//! Models that somebody names: the model of a session that its host names, and the model of a summary that a request names.

use crate::{
    provider::{Format, Provider, Step},
    summarizing::{good_model, settings},
    support::{Daemon, Home, assistant, run, session_of, turns, user},
};
use serde_json::{Value, json};
use std::{fs, path::PathBuf};

/// A summary that passes no gate.
fn useless() -> Step {
    Step::answer("I would rather not.")
}

/// Two providers: the one of the settings, which writes good summaries, and `other/model`.
struct Scene {
    good: Provider,
    other: Provider,
    daemon: Daemon,
    session: String,
    path: PathBuf,
}

impl Scene {
    fn home(good: &Provider, other: &Provider) -> Home {
        let home = Home::new();
        let model = |provider: &str, at: &Provider| json!({"provider": provider, "id": "model", "api": "openai_chat", "baseUrl": at.base_url(), "contextWindow": 100_000});
        home.settings(&settings(
            good,
            Format::OpenAiChat,
            json!({
                "models": [model("test", good), model("other", other), {"provider": "nowhere", "id": "model"}],
                "compaction": {"models": ["test/model"]},
                "retry": {"enabled": false},
            }),
        ));
        home
    }

    fn providers() -> (Provider, Provider) {
        let providers = (Provider::start(Format::OpenAiChat), Provider::start(Format::OpenAiChat));
        providers.0.otherwise(good_model);
        providers
    }

    fn new() -> Self {
        let (good, other) = Self::providers();
        let mut daemon = Daemon::at(Self::home(&good, &other));
        let path = session_of(&daemon.home, "s", &turns(20));
        let session = daemon.load(&path);
        Self { good, other, daemon, session, path }
    }

    fn params(&self, more: Value) -> Value {
        let mut params = json!({"sessionId": self.session, "keepRecentTokens": 500, "wait": true});
        params.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        params
    }

    fn compact(&mut self, more: Value) -> Value {
        let params = self.params(more);
        self.daemon.ok("session/compact", params)
    }

    fn compactions(&self) -> usize {
        fs::read_to_string(&self.path).expect("a file").matches(r#""type":"compaction""#).count()
    }
}

#[test]
fn a_model_that_a_compaction_names_is_the_only_one_that_is_asked() {
    let mut scene = Scene::new();
    scene.other.otherwise(good_model);
    let plan = scene.compact(json!({"model": "other/model", "dryRun": true}));
    assert_eq!(plan["preparation"]["summarizer"], json!({"provider": "other", "id": "model"}), "{plan:#}");
    assert_eq!(plan["_meta"]["ignored"], Value::Null);
    let answer = scene.compact(json!({"model": {"provider": "other", "id": "model"}}));
    assert_eq!((&answer["outcome"], &answer["result"]["model"]["provider"]), (&json!("completed"), &json!("other")));
    assert_eq!(scene.good.asked().len(), 0);
}

#[test]
fn a_compaction_fails_and_writes_nothing_where_its_model_writes_no_summary() {
    for failing in [Step::answer(""), useless(), Step::status(500)] {
        let mut scene = Scene::new();
        scene.other.otherwise(move |_: &_| failing.clone());
        let answer = scene.compact(json!({"model": "other/model"}));
        assert_eq!(answer["outcome"], "failed", "{answer:#}");
        let error = &answer["error"];
        assert_eq!((&error["code"], &error["provider"]), (&json!("provider_error"), &json!("other")), "{answer:#}");
        assert_eq!((scene.compactions(), scene.good.asked().len()), (0, 0));
        let end = scene.daemon.events.iter().find(|frame| frame["params"]["event"]["type"] == "compaction_end");
        let why = end.expect("an end")["params"]["event"]["errorMessage"].as_str().expect("a text").to_owned();
        assert!(why.contains("other/model wrote no summary") && why.contains("fallback"), "{why}");

        let answer = scene.compact(json!({"model": "other/model", "fallback": true}));
        assert_eq!((&answer["outcome"], &answer["result"]["model"]["provider"]), (&json!("completed"), &json!("test")));
        assert_eq!(rejecting(&answer), ["other"], "{answer:#}");
    }
}

/// The providers of the candidates that were rejected, each once.
fn rejecting(answer: &Value) -> Vec<String> {
    let rejected = answer["result"]["rejected"].as_array().expect("a list").iter();
    let mut names: Vec<String> =
        rejected.filter_map(|it| it["model"]["provider"].as_str()).map(str::to_owned).collect();
    names.dedup();
    names
}

#[test]
fn the_extracted_summary_follows_at_last_where_the_others_may() {
    let mut scene = Scene::new();
    scene.other.otherwise(|_: &_| useless());
    scene.good.otherwise(|_: &_| useless());
    let answer = scene.compact(json!({"model": "other/model", "fallback": true}));
    assert_eq!((&answer["outcome"], &answer["result"]["method"]), (&json!("completed"), &json!("extractive")));
    assert_eq!(rejecting(&answer), ["other", "test"], "{answer:#}");
}

#[test]
fn a_model_that_cannot_be_asked_is_refused_before_anything_starts() {
    let mut scene = Scene::new();
    for (params, word) in [
        (json!({"model": "nowhere/model"}), "nothing says where"),
        (json!({"model": "nowhere/model", "dryRun": true}), "nothing says where"),
        (json!({"model": "never/heard"}), "cannot be asked"),
        (json!({"model": "never/heard", "fallback": true}), "cannot be asked"),
        (json!({"model": "other/model", "method": "extractive"}), "has no model"),
        (json!({"model": "nonsense"}), "provider/id"),
    ] {
        let all = scene.params(params.clone());
        let error = scene.daemon.err("session/compact", all);
        assert_eq!(
            (&error["data"]["code"], &error["data"]["path"]),
            (&json!("invalid_params"), &json!("model")),
            "{params}"
        );
        assert!(error["message"].as_str().is_some_and(|text| text.contains(word)), "{error}");
    }
    assert_eq!((scene.daemon.count("compaction_start"), scene.compactions()), (0, 0));
}

/// `abridged compact --model other/model`: exit code, stdout, stderr, and the compactions of the file.
fn command(other: Step, more: &[&str]) -> (Option<i32>, String, String, usize) {
    let (good, bad) = Scene::providers();
    bad.otherwise(move |_: &_| other.clone());
    let home = Scene::home(&good, &bad);
    let path = session_of(&home, "s", &turns(20));
    let mut command = home.command();
    command.arg("compact").arg(&path).args(["--keep", "500", "--model", "other/model"]).args(more);
    let (code, out, err) = run(command);
    let written = fs::read_to_string(&path).expect("a file").matches(r#""type":"compaction""#).count();
    (code, out, err, written)
}

#[test]
fn the_command_fails_and_writes_nothing_where_its_model_fails_unless_others_may_follow() {
    let (code, out, err, written) = command(Step::status(500), &[]);
    assert_eq!((code, written), (Some(1), 0), "{out}{err}");
    assert!(out.contains("Not compacted (failed): ") && out.contains("other/model wrote no summary"), "{out}");
    let (code, out, _, written) = command(Step::status(500), &["--fallback"]);
    assert_eq!((code, written), (Some(0), 1), "{out}");
    assert!(out.contains("summary by test/model") && out.contains("Not by other/model: "), "{out}");
    let (code, out, _, written) = command(useless(), &["--dry-run"]);
    assert_eq!((code, written), (Some(0), 0));
    assert!(out.contains("Summary: by other/model"), "{out}");
}

#[test]
fn the_model_that_a_host_names_is_the_sessions_also_behind_a_restart() {
    let provider = Provider::start(Format::OpenAiChat);
    provider.otherwise(good_model);
    let home = Home::new();
    home.settings(&settings(&provider, Format::OpenAiChat, json!({})));
    let mut daemon = Daemon::at(home);
    let new = json!({"cwd": "/project", "model": "hostcorp/big-1", "contextWindow": 50_000});
    let made = daemon.ok("session/new", new)["session"].clone();
    let big = json!({"provider": "hostcorp", "id": "big-1"});
    assert_eq!((&made["model"], &made["usage"]["contextWindow"]), (&big, &json!(50_000)));
    let session = made["sessionId"].as_str().expect("an id").to_owned();
    daemon.append(&session, &[user("hi"), assistant("hello")]);
    let text = fs::read_to_string(made["path"].as_str().expect("a path")).expect("a file");
    let answer = text.lines().find(|line| line.contains(r#""role":"assistant""#)).expect("an answer");
    let answer: Value = serde_json::from_str(answer).expect("JSON");
    assert_eq!((&answer["message"]["provider"], &answer["message"]["model"]), (&json!("hostcorp"), &json!("big-1")));

    // Its summaries are written by the default, which can be asked.
    daemon.append(&session, &turns(20));
    let params = json!({"sessionId": session, "keepRecentTokens": 500, "wait": true});
    let compacted = daemon.ok("session/compact", params);
    assert_eq!(compacted["result"]["model"], json!({"provider": "test", "id": "model"}), "{compacted:#}");
    assert_eq!(daemon.ok("session/status", json!({"sessionId": session}))["session"]["model"], big);

    let other = json!({"provider": "hostcorp", "id": "small-1"});
    let configured = daemon.ok("session/configure", json!({"sessionId": session, "model": "hostcorp/small-1"}));
    assert_eq!(configured["session"]["model"], other);
    assert_eq!(configured["session"]["usage"]["contextWindow"], 128_000, "nobody states its window");
    let changed = daemon.until("model_changed")["params"]["event"].clone();
    assert_eq!((&changed["from"], &changed["to"]), (&big, &other), "{changed:#}");
    let mut daemon = daemon.restarted();
    let path = made["path"].clone();
    let loaded = daemon.ok("session/load", json!({"path": path}));
    assert_eq!(loaded["session"]["model"], other);
}

#[test]
fn a_session_without_a_model_has_the_default() {
    let home = Home::new();
    home.settings(&json!({"defaultModel": "test/model"}).to_string());
    let mut daemon = Daemon::at(home);
    let made = daemon.ok("session/new", json!({"cwd": "/project"}))["session"].clone();
    assert_eq!(made["model"], json!({"provider": "test", "id": "model"}));
}
