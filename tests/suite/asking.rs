//! Models from a shell: the demo with a model, `compact` with one, and what the doctor says of them.

use crate::{
    provider::{Format, Provider, Step},
    summarizing::good_model,
    support::{Home, run, session_of, turns},
};
use serde_json::{Value, json};
use std::{fs, process::Command};

/// No key of whoever runs the tests is asked for anything.
const KEYS: [&str; 4] = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "LOCAL_KEY", "ABRIDGED_SETTINGS"];

fn command(home: &Home, arguments: &[&str]) -> Command {
    fs::create_dir_all(home.path("tmp")).expect("a folder");
    let mut command = home.command();
    command.args(arguments).current_dir(home.0.path()).env("TMPDIR", home.path("tmp"));
    for key in KEYS {
        command.env_remove(key);
    }
    command
}

fn left(home: &Home) -> usize {
    fs::read_dir(home.path("tmp")).expect("a folder").count()
}

#[test]
fn a_model_writes_the_demos_summary_and_is_watched() {
    let provider = Provider::start(Format::Anthropic);
    provider.key("sk-right").otherwise(good_model);
    let home = Home::new();
    let url = provider.base_url();
    let mut command = command(&home, &["demo", "--model", "anthropic/claude-sonnet-4-5", "--base-url", &url]);
    command.env("ANTHROPIC_API_KEY", "sk-right");
    let (code, out, err) = run(command);
    assert_eq!(code, Some(0), "{out}\n{err}");
    for part in [
        &format!("anthropic/claude-sonnet-4-5 at {url}, key from ANTHROPIC_API_KEY"),
        "    history │ Fix the parser (by the model).",
        "turn_prefix │ ## Original Request",
        "summary  by anthropic/claude-sonnet-4-5",
        "in short Looked at the parts of the parser.",
        "cost     compaction, anthropic/claude-sonnet-4-5: ",
        "cost     turn_prefix, ",
        "cost     short_summary, ",
        "4 lines were appended",
        "byte for byte",
    ] {
        assert!(out.contains(part), "{part} is missing in:\n{out}");
    }
    assert!(!out.contains("not by") && !out.contains("sk-right"), "{out}");
    let asked = provider.asked();
    assert_eq!(asked.len(), 3);
    for one in &asked {
        assert_eq!(one.refused, None);
        assert!(
            !one.text().contains("corriere-7731") && !one.text().contains("a81f37c2d94e"),
            "secrets stay out of it"
        );
    }
    assert_eq!(left(&home), 0, "nothing is left behind");
    assert!(!home.path("data").exists() && !home.path("config").exists());
}

#[test]
fn a_wrong_key_is_told_and_the_demo_ends_well() {
    let provider = Provider::start(Format::OpenAiChat);
    provider.key("sk-right");
    let home = Home::new();
    let url = provider.base_url();
    let models =
        json!([{"provider": "my", "id": "model", "apiKeyEnv": "LOCAL_KEY", "headers": {"x-proxy": "hush-hush"}}]);
    home.settings(&json!({ "models": models }).to_string());
    for more in [&[][..], &["--json"]] {
        let mut command = command(
            &home,
            &[&["demo", "--model", "my/model", "--base-url", &url, "--api", "openai_chat"], more].concat(),
        );
        command.env("LOCAL_KEY", "sk-wrong");
        let (code, out, err) = run(command);
        assert_eq!(code, Some(0), "{out}\n{err}");
        assert!(!out.contains("hush-hush") && !err.contains("hush-hush"), "{out}\n{err}");
        if more.is_empty() {
            for part in [
                "key from LOCAL_KEY",
                "summary  by extractive",
                "not by   my/model: the key is missing or not accepted (status 401)",
                "check the key in the variable that apiKeyEnv names",
                "## Goal",
            ] {
                assert!(out.contains(part), "{part} is missing in:\n{out}");
            }
            assert!(!out.contains("│ ## Goal"), "no model wrote that:\n{out}");
        }
    }
    let asked = provider.asked();
    assert!(!asked.is_empty() && asked.iter().all(|one| one.header("x-proxy") == Some("hush-hush")));
    assert_eq!(left(&home), 0, "nothing is left behind");
}

#[test]
fn a_model_that_cannot_be_asked_is_told_and_nothing_else() {
    let home = Home::new();
    let path = session_of(&home, "shell", &turns(30));
    let bytes = fs::read(&path).expect("a file");
    let path = path.to_str().expect("a text");
    for (arguments, part) in [
        (vec!["demo", "--model", "anthropic/claude-sonnet-4-5"], "environment as ANTHROPIC_API_KEY"),
        (vec!["demo", "--model", "nobody/knows"], "nobody/knows cannot be asked: nothing says where it is asked"),
        (vec!["demo", "--model", "nonsense"], "write provider/id"),
        (vec!["demo", "--base-url", "http://127.0.0.1:1"], "--model"),
        (vec!["demo", "--model", "a/b", "--api", "soap"], "openai_chat"),
        (vec!["demo", "--model", "a/b", "--api", "google"], "no baseUrl"),
        (vec!["compact", path, "--model", "openai/gpt-5"], "environment as OPENAI_API_KEY"),
        (vec!["compact", path, "--fallback"], "--model"),
    ] {
        let (code, out, err) = run(command(&home, &arguments));
        assert_eq!((code, out.as_str()), (Some(2), ""), "{arguments:?}: {err}");
        assert!(err.contains(part), "{arguments:?}: {err}");
    }
    assert_eq!(fs::read(path).expect("a file"), bytes);
    assert_eq!(left(&home), 0, "nothing is left behind");
}

#[test]
fn a_session_is_compacted_from_the_shell_by_a_model() {
    let provider = Provider::start(Format::OpenAiChat);
    provider.otherwise(good_model);
    let home = Home::new();
    // Models that the settings name already stay; they would be asked next.
    let other = json!({"provider": "other", "id": "model", "baseUrl": "http://127.0.0.1:1/v1"});
    home.settings(
        &json!({"models": [other], "compaction": {"models": ["other/model"]}, "retry": {"enabled": false}}).to_string(),
    );
    let path = session_of(&home, "shell", &turns(30));
    let compact = |more: &[&str]| {
        let mut command = command(&home, &["compact"]);
        command
            .arg(&path)
            .args(["--keep", "1000", "--model", "local/qwen", "--base-url", &provider.base_url()])
            .args(more);
        run(command)
    };
    let (code, out, err) = compact(&["--dry-run"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("Summary: by local/qwen, in ") && out.contains("Nothing was changed."), "{out}");
    assert!(provider.asked().is_empty(), "only what would be done was asked for");
    let (code, out, err) = compact(&[]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("summary by local/qwen."), "{out}");
    assert!(out.contains("Looked at the parts of the parser."), "{out}");
    let text = fs::read_to_string(&path).expect("a file");
    assert!(text.contains("by the model") && !text.contains("baseUrl"), "only the summary is kept with the session");
    provider.otherwise(Step::answer("No."));
    let long = session_of(&home, "other", &turns(30));
    let (code, out, _) = {
        let mut command = command(&home, &["compact"]);
        command.arg(&long).args(["--keep", "1000", "--model", "local/qwen", "--base-url", &provider.base_url()]);
        command.arg("--fallback");
        run(command)
    };
    assert_eq!(code, Some(0));
    assert!(out.contains("summary by extractive.") && out.contains("Not by local/qwen: it had none"), "{out}");
    assert!(out.contains("Not by other/model: "), "{out}");
}

/// Report of the doctor: exit code, JSON, and the text for a person.
fn doctor(home: &Home, ask: &[&str]) -> (Option<i32>, Value, String) {
    let run = |more: &[&str]| {
        let mut command = command(home, &[&["doctor"], ask, more].concat());
        command.env("LOCAL_KEY", "sk-local");
        run(command)
    };
    let (code, out, err) = run(&["--json"]);
    let found = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}\n{err}"));
    (code, found, run(&[]).1)
}

#[test]
fn the_doctor_says_how_each_model_is_asked() {
    let home = Home::new();
    home.settings(
        &json!({
            "defaultModel": "anthropic/claude-sonnet-4-5",
            "compaction": {"models": ["openai/gpt-5", "local/qwen", "nonsense"]},
            "models": [
                {"provider": "local", "id": "qwen", "baseUrl": "http://me:hush@127.0.0.1:1/v1?key=hush", "apiKeyEnv": "LOCAL_KEY",
                 "contextWindow": 32_768, "maxOutputTokens": 4_096, "headers": {"x": "hush"}},
                {"provider": "vault", "id": "m", "baseUrl": "http://127.0.0.1:1", "apiKeyCommand": ["pass", "show", "hush"]},
                {"provider": "editor", "id": "m", "api": "client"},
            ],
        })
        .to_string(),
    );
    fs::create_dir_all(home.path("data")).expect("a folder");
    fs::write(home.path("data/learned-windows.json"), r#"{"local/qwen": 8192}"#).expect("a file");
    let (code, found, told) = doctor(&home, &[]);
    assert_eq!(code, Some(0));
    let model = |name: &str| {
        let models = found["models"].as_array().expect("models");
        let (provider, id) = name.split_once('/').expect("a model");
        let model = models.iter().find(|it| it["provider"] == provider && it["id"] == id);
        model.unwrap_or_else(|| panic!("{name} is missing in {found:#}")).clone()
    };
    let local = model("local/qwen");
    assert_eq!(
        local["asking"],
        json!({"possible": true, "api": "openai_chat", "baseUrl": "http://127.0.0.1:1/v1", "key": "set in LOCAL_KEY"})
    );
    assert_eq!(local["contextWindow"], json!({"value": 32_768, "source": "global"}), "one refusal may be wrong");
    let learned = json!([{"model": {"provider": "local", "id": "qwen"}, "contextWindow": 8192, "origin": "refusal",
        "learnedAt": null, "refusals": 1, "session": null}]);
    assert_eq!(local["learned"], learned);
    assert_eq!(local["maxOutputTokens"], json!({"value": 4096, "source": "global"}));
    assert_eq!((&local["summarizes"], &local["answer"]), (&json!(true), &Value::Null));
    assert_eq!(model("vault/m")["asking"]["key"], "command pass …");
    assert!(model("editor/m")["asking"]["why"].as_str().expect("a text").contains("capabilities.llm"));
    let default = model("anthropic/claude-sonnet-4-5");
    assert_eq!((&default["default"], &default["asking"]["possible"]), (&json!(true), &json!(false)));
    assert_eq!(default["asking"]["key"], "missing: set ANTHROPIC_API_KEY");
    assert_eq!(model("openai/gpt-5")["asking"]["key"], "missing: set OPENAI_API_KEY");
    let problems: Vec<_> =
        found["problems"].as_array().expect("problems").iter().map(|it| it["key"].as_str()).collect();
    assert_eq!(problems, [Some("openai/gpt-5: compaction.models"), Some("compaction.models")]);
    for part in
        ["window 32,768 from global, output 4,096 from global", "the default", "writes summaries", "command pass …"]
    {
        let words = told.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(part), "{part} is missing in:\n{told}");
    }
    assert!(told.contains("learned: window 8,192 from 1 refusal\n"), "{told}");
    assert!(told.lines().all(|line| line.chars().count() <= 80), "{told}");
    for text in [told, found.to_string()] {
        assert!(!text.contains("hush") && !text.contains("sk-local"), "{text}");
    }
}

#[test]
fn the_doctor_asks_if_it_is_told_to() {
    for format in Format::ALL {
        let (good, bad) = (Provider::start(format), Provider::start(format));
        good.otherwise(Step::answer("ok"));
        bad.key("sk-right");
        let home = Home::new();
        let model = |name: &str, url: String| json!({"provider": name, "id": "m", "api": format.api(), "baseUrl": url, "apiKeyEnv": "LOCAL_KEY"});
        let nobody = model("nobody", "http://127.0.0.1:1/v1".to_owned());
        let models = json!([model("good", good.base_url()), model("bad", bad.base_url()), nobody]);
        home.settings(&json!({ "models": models, "retry": {"enabled": false} }).to_string());
        let (code, _, told) = doctor(&home, &[]);
        assert!(code == Some(0) && !told.contains("answers"), "{told}");
        assert!(good.asked().is_empty() && bad.asked().is_empty(), "nothing goes over the network by itself");

        let (code, found, told) = doctor(&home, &["--ask"]);
        assert_eq!(code, Some(1), "{told}");
        let answers: Vec<&Value> = (0..3).map(|at| &found["models"][at]["answer"]).collect();
        assert_eq!(answers[0]["ok"], true, "{format:?}: {found:#}");
        let why = |at: usize| answers[at]["why"].as_str().unwrap_or_default();
        assert!(why(1).contains("bad/m: ") && why(1).contains("key"), "{format:?}: {}", why(1));
        assert!(why(2).contains("nobody answers there") && why(2).contains("check baseUrl"), "{}", why(2));
        assert_eq!(found["problems"].as_array().map(Vec::len), Some(2), "{found:#}");
        assert!(told.contains("✓ answers, after ") && told.contains("✗ nobody/m: "), "{told}");
        for one in good.asked() {
            assert_eq!(one.refused, None);
            assert_eq!(one.max_output(), Some(16));
        }
        assert!(!found.to_string().contains("sk-local") && !told.contains("sk-local"));
    }
}

/// The doctor's picture and its stderr, and the number of requests that `provider` got.
fn asks(home: &Home, provider: &Provider) -> (Option<i32>, String, String, usize) {
    let before = provider.asked().len();
    let (code, out, err) = run(command(home, &["doctor", "--ask"]));
    (code, out, err, provider.asked().len() - before)
}

#[test]
fn the_doctor_retries_a_throttled_model_as_the_settings_allow() {
    let provider = Provider::start(Format::OpenAiChat);
    let home = Home::new();
    let model = json!({"provider": "slow", "id": "m", "api": "openai_chat", "baseUrl": provider.base_url()});
    let retry = json!({"baseDelayMs": 100, "maxRetries": 2});
    home.settings(&json!({ "models": [model], "retry": retry }).to_string());

    provider.script([Step::rate_limited(0), Step::server_error()]);
    provider.otherwise(Step::answer("ok"));
    let (code, found, _) = doctor(&home, &["--ask"]);
    let answer = &found["models"][0]["answer"];
    assert_eq!((code, &answer["ok"], &answer["retries"]), (Some(0), &json!(true), &json!(2)), "{found:#}");

    provider.script([Step::rate_limited(0)]);
    let (code, out, err, asked) = asks(&home, &provider);
    assert_eq!((code, asked), (Some(0), 2), "{out}");
    assert!(out.contains(" ms and 1 retry"), "{out}");
    assert!(
        err.contains("abridged: slow/m: it takes no more requests for now") && err.contains("; retry 1 of 2 in 0.")
    );

    provider.otherwise(Step::rate_limited(0));
    let (code, out, err, asked) = asks(&home, &provider);
    assert_eq!((code, asked), (Some(1), 3), "{out}");
    assert!(out.contains("✗ slow/m: ") && out.contains(" and 2 retries)"), "{out}");
    assert_eq!(err.matches("; retry ").count(), 2, "{err}");

    provider.otherwise(Step::rate_limited(31));
    let (code, out, _, asked) = asks(&home, &provider);
    assert_eq!((code, asked), (Some(1), 1), "a compaction does not wait that long: {out}");

    provider.otherwise(Step::unauthorized());
    assert_eq!(asks(&home, &provider).3, 1, "a retry does not help");
}
