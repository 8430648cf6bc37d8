//! The tokens that summaries take: counted in entries, shown in the status and by the doctor, and limited by
//! `compaction.maxTokensPerHour`. Through the real binary and a provider on loopback.

use crate::{
    provider::{Asked, Format, Provider, Step},
    summarizing::{events, good_model, settings},
    support::{Daemon, Home, assistant, run, text_of, user},
};
use serde_json::{Value, json};

/// Tokens that each request reports.
const REPORTED: u64 = 26_000;

/// A good model whose requests all report the same tokens.
fn model(asked: &Asked) -> Step {
    good_model(asked).usage(25_000, 600, 300, 100)
}

/// A daemon with a summarizer and this ceiling, and a session with a small window.
fn scene(provider: &Provider, ceiling: i64) -> (Daemon, String) {
    provider.otherwise(model);
    let named = |id: &str, window: u64| {
        json!({"provider": "test", "id": id, "api": Format::Anthropic.api(), "baseUrl": provider.base_url(),
            "contextWindow": window})
    };
    let more = json!({"models": [named("model", 16_000), named("large", 200_000)],
        "compaction": {"models": ["test/large"], "maxTokensPerHour": ceiling, "keepRecentTokens": 100}});
    let home = Home::new();
    home.settings(&settings(provider, Format::Anthropic, more));
    let mut daemon = Daemon::at(home);
    let session = daemon.new_session(json!({"cwd": "/project", "model": "test/model"}));
    (daemon, session)
}

/// Appends a request and its answer over the threshold, and waits for the compaction. Returns its result.
fn grow(daemon: &mut Daemon, session: &str) -> Value {
    let before = daemon.events.len();
    let (parts, rest) = (user(&text_of(12_000, "parts")), user(&text_of(300, "rest")));
    let answer = daemon.append(session, &[parts, assistant("Done."), rest, assistant("Done, too.")]);
    assert_eq!(answer["next"]["reason"], "threshold");
    // It waits for the compaction.
    daemon.context(session);
    let of = |kind: &str| {
        let sent = daemon.events[before..].iter().map(|frame| &frame["params"]["event"]);
        sent.filter(|event| event["type"] == kind).cloned().collect::<Vec<_>>()
    };
    let end = of("compaction_end").remove(0);
    assert_eq!(end["outcome"], "completed", "{end:#}");
    end["result"].clone()
}

fn spent(daemon: &mut Daemon, session: &str) -> Value {
    daemon.ok("session/status", json!({"sessionId": session}))["spent"].clone()
}

fn why(daemon: &mut Daemon, session: &str) -> String {
    let usage = daemon.ok("session/usage", json!({"sessionId": session}));
    usage["why"].as_str().expect("a text").to_owned()
}

/// The notices about the ceiling.
fn told(daemon: &Daemon) -> Vec<String> {
    let about = |event: &&Value| event["title"] == "Automatic maintenance may ask no model now";
    events(daemon, "notice").filter(about).map(|event| event["detail"].to_string()).collect()
}

/// The purposes and the triggers of the `usage` entries of a file.
fn entries(path: &str) -> Vec<(String, String)> {
    let file = std::fs::read_to_string(path).expect("a file");
    let lines = file.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    lines
        .filter(|line| line["type"] == "usage")
        .map(|line| {
            assert!(line["operationId"].is_string() && line["kind"] == line["purpose"], "{line}");
            (text(&line["purpose"]), text(&line["trigger"]))
        })
        .collect()
}

fn path(daemon: &mut Daemon, session: &str) -> String {
    let status = daemon.ok("session/status", json!({"sessionId": session}));
    status["session"]["path"].as_str().expect("a path").to_owned()
}

#[test]
fn above_the_ceiling_summaries_are_extracted_with_one_notice_also_after_a_restart() {
    let provider = Provider::start(Format::Anthropic);
    let (mut daemon, session) = scene(&provider, 60_000);
    assert_eq!(spent(&mut daemon, &session)["lastHour"], json!({"tokens": 0, "most": 60_000, "left": 60_000}));
    let result = grow(&mut daemon, &session);
    assert_eq!(result["method"], "llm", "{result:#}");
    assert_eq!(provider.asked().len(), 2, "the summary and the short one");
    let now = spent(&mut daemon, &session);
    assert_eq!((&now["total"]["requests"], &now["total"]["totalTokens"]), (&json!(2), &json!(2 * REPORTED)));
    assert_eq!(now["automatic"], now["total"]);
    let of = |purpose: &str| (now["purposes"][purpose]["requests"].clone(), now["purposes"][purpose]["input"].clone());
    assert_eq!((of("compaction"), of("short_summary")), ((json!(1), json!(25_000)), (json!(1), json!(25_000))));
    assert_eq!(now["lastHour"], json!({"tokens": 52_000, "most": 60_000, "left": 8_000}));
    assert_eq!(now["atLeast"], false);
    assert!(told(&daemon).is_empty() && !why(&mut daemon, &session).contains("maxTokensPerHour"));

    let result = grow(&mut daemon, &session);
    assert_eq!(result["method"], "extractive", "{result:#}");
    let rejected = result["rejected"].to_string();
    assert!(rejected.contains("8000 of those that an hour has are left"), "{rejected}");
    grow(&mut daemon, &session);
    assert_eq!(provider.asked().len(), 2, "no model was asked");
    let notices = told(&daemon);
    assert_eq!(notices.len(), 1, "one for the whole time: {notices:?}");
    assert!(notices[0].contains("took 52000 of the 60000") && notices[0].contains(" UTC"), "{}", notices[0]);
    assert!(!events(&daemon, "notice").any(|event| event["title"] == "No model could write the summary"));
    let said = why(&mut daemon, &session);
    assert!(said.contains("52000 of the 60000 tokens of compaction.maxTokensPerHour are spent"), "{said}");

    let file = path(&mut daemon, &session);
    let lines = std::fs::read_to_string(&file).expect("a file");
    let line = lines.lines().rfind(|line| line.contains(r#""type":"compaction""#)).expect("a compaction");
    let carried = &serde_json::from_str::<Value>(line).expect("JSON")["preserveData"]["abridged"]["spent"];
    assert_eq!((&carried["automatic"]["total"], &carried["automatic"]["requests"]), (&json!(52_000), &json!(2)));
    assert_eq!(carried["recent"][0][1], 52_000, "{carried}");
    let mut daemon = daemon.restarted();
    let session = daemon.load(file.as_ref());
    assert_eq!(spent(&mut daemon, &session), now, "the file has it");
    assert_eq!(grow(&mut daemon, &session)["method"], "extractive");
    assert_eq!((provider.asked().len(), told(&daemon).len()), (2, 1));

    // A client that asks for a compaction has its model.
    daemon.append(&session, &[user(&text_of(2_000, "more")), assistant("Done."), user("And now?")]);
    let asked = json!({"sessionId": session, "keepRecentTokens": 100, "wait": true});
    let answer = daemon.ok("session/compact", asked);
    assert_eq!(answer["result"]["method"], "llm", "{answer:#}");
    let then = spent(&mut daemon, &session);
    assert_eq!((&then["automatic"], &then["lastHour"]), (&now["automatic"], &now["lastHour"]));
    assert_eq!(then["total"]["requests"], 4);
    let triggers = entries(&file);
    let expected = ["threshold", "threshold", "manual", "manual"];
    assert_eq!(triggers.iter().map(|(_, trigger)| trigger.as_str()).collect::<Vec<_>>(), expected);
    assert_eq!(
        triggers.iter().map(|(purpose, _)| purpose.as_str()).collect::<Vec<_>>()[..2],
        ["compaction", "short_summary"]
    );
}

#[test]
fn rejected_answers_and_retries_are_counted() {
    let provider = Provider::start(Format::Anthropic);
    let (mut daemon, session) = scene(&provider, -1);
    provider.script([Step::answer("I cannot help with that.").usage(20_000, 10, 0, 0)]);
    let result = grow(&mut daemon, &session);
    assert_eq!(result["method"], "llm", "{result:#}");
    let now = spent(&mut daemon, &session);
    assert_eq!((&now["total"]["requests"], &now["total"]["totalTokens"]), (&json!(3), &json!(2 * REPORTED + 20_010)));
    assert_eq!(now["lastHour"], json!({"tokens": 2 * REPORTED + 20_010, "most": null, "left": null}));
}

#[test]
fn an_answer_that_breaks_off_is_counted_as_far_as_it_was_reported() {
    let provider = Provider::start(Format::Anthropic);
    let (mut daemon, session) = scene(&provider, -1);
    provider.script([Step::answer("## Goal\nIt breaks off.").usage(7_000, 600, 0, 0).cut_after(2)]);
    let result = grow(&mut daemon, &session);
    assert_eq!((&result["method"], &result["rejected"]), (&json!("llm"), &json!([])), "it is sent again");
    let now = spent(&mut daemon, &session);
    assert_eq!((&now["total"]["requests"], &now["total"]["input"]), (&json!(3), &json!(50_000 + 7_000)));
}

/// A cloned repository cannot make each turn of a large window pay for a summary.
#[test]
fn a_project_without_trust_cannot_compact_after_every_turn() {
    for threshold in [json!({"thresholdPercent": 1}), json!({"thresholdTokens": 100})] {
        let provider = Provider::start(Format::Anthropic);
        provider.otherwise(model);
        let large = json!({"provider": "test", "id": "large", "api": Format::Anthropic.api(),
            "baseUrl": provider.base_url(), "contextWindow": 200_000});
        let home = Home::new();
        home.settings(&settings(&provider, Format::Anthropic, json!({"models": [large]})));
        let folder = home.path("project");
        std::fs::create_dir_all(folder.join(".abridged")).expect("a folder");
        let mut compaction = json!({"keepRecentTokens": 0});
        crate::summarizing::merge(&mut compaction, threshold.clone());
        let text = json!({"compaction": compaction}).to_string();
        std::fs::write(folder.join(".abridged/settings.json"), text).expect("a file");
        let mut daemon = Daemon::at(home);
        let session = daemon.new_session(json!({"cwd": folder, "model": "test/large"}));
        for turn in 0..20 {
            daemon.append(&session, &[user(&text_of(400, &format!("turn {turn}"))), assistant("Done.")]);
            daemon.context(&session);
        }
        assert!(provider.asked().is_empty(), "{threshold}: {} requests", provider.asked().len());
    }
}

#[test]
fn a_ceiling_below_one_summary_lets_no_model_be_asked_and_says_so() {
    let provider = Provider::start(Format::Anthropic);
    let (mut daemon, session) = scene(&provider, 0);
    assert_eq!(grow(&mut daemon, &session)["method"], "extractive");
    assert!(provider.asked().is_empty());
    let notices = told(&daemon);
    assert!(notices.len() == 1 && notices[0].contains("until the setting is larger"), "{notices:?}");
    let said = why(&mut daemon, &session);
    assert!(said.contains("Automatic summaries are extracted: 0 of the 0 tokens"), "{said}");
}

#[test]
fn the_doctor_shows_what_the_sessions_spent() {
    let provider = Provider::start(Format::Anthropic);
    let (mut daemon, session) = scene(&provider, 60_000);
    grow(&mut daemon, &session);
    grow(&mut daemon, &session);
    daemon.new_session(json!({"cwd": "/project"}));
    let spent = spent(&mut daemon, &session);
    let mut command = daemon.home.command();
    command.args(["doctor", "--json"]);
    let (_, out, err) = run(command);
    let found: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}\n{err}"));
    let costs = &found["costs"];
    assert_eq!((&costs["total"], &costs["purposes"]), (&spent["total"], &spent["purposes"]));
    assert_eq!(costs["automatic"], spent["automatic"]);
    assert_eq!((&costs["sessions"], &costs["atLeast"], &costs["leftOut"]), (&json!(2), &json!(0), &json!(0)));
    let mut command = daemon.home.command();
    command.arg("doctor");
    let (_, out, _) = run(command);
    let part = out.split("Costs of summaries\n").nth(1).expect("a part").split("\n\n").next().expect("rows");
    assert!(part.contains("compaction") && part.contains("52,000 tokens"), "{part}");
    assert!(part.contains("as far as the ends of 2 sessions say"), "{part}");
    assert!(part.lines().all(|line| line.chars().count() <= 80), "{part}");
}
