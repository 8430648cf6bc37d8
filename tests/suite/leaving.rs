//! Summaries of branches that `session/navigate` leaves, by models and without one, through the real binary.

mod hooked;
mod models;
mod stopped;

use crate::{
    provider::{Format, Provider, Step},
    summarizing::{good, good_model, merge, settings},
    support::*,
};
use serde_json::{Value, json};
use std::path::PathBuf;

/// A daemon with these settings.
fn daemon(settings: &str) -> Daemon {
    let home = Home::new();
    home.settings(settings);
    Daemon::at(home)
}

/// A daemon whose models are at this provider.
fn asking(provider: &Provider, more: Value) -> Daemon {
    let mut without_retries = json!({"retry": {"enabled": false}});
    merge(&mut without_retries, more);
    daemon(&settings(provider, Format::Anthropic, without_retries))
}

fn of(session: &str) -> Value {
    json!({"sessionId": session})
}

fn begin(daemon: &mut Daemon, session: &str, target: &Value, more: Value) -> u64 {
    let mut params = json!({"sessionId": session, "targetEntryId": target, "summarize": true, "wait": true});
    merge(&mut params, more);
    daemon.begin("session/navigate", params)
}

fn left_for(daemon: &mut Daemon, session: &str, target: &Value, more: Value) -> Value {
    let id = begin(daemon, session, target, more);
    let answer = daemon.answer(id).unwrap_or_else(|error| panic!("{error:#}"));
    daemon.until("settled");
    answer
}

fn path_of(daemon: &mut Daemon, session: &str) -> PathBuf {
    daemon.ok("session/status", of(session))["session"]["path"].as_str().expect("a path").into()
}

fn leaf(daemon: &mut Daemon, session: &str) -> Value {
    daemon.ok("session/status", of(session))["session"]["leafEntryId"].clone()
}

fn reopen(daemon: &mut Daemon, session: &str) {
    let path = path_of(daemon, session);
    daemon.ok("session/close", of(session));
    daemon.load(&path);
}

/// The lines of this type in the file.
fn lines(daemon: &mut Daemon, session: &str, kind: &str) -> Vec<Value> {
    let file = std::fs::read_to_string(path_of(daemon, session)).expect("a file");
    let lines = file.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    lines.filter(|line| line["type"] == kind).collect()
}

fn say(daemon: &mut Daemon, session: &str, message: Value, parent: Option<&Value>) -> Value {
    let mut params = json!({"sessionId": session, "messages": [message]});
    if let Some(parent) = parent {
        params["parentEntryId"] = parent.clone();
    }
    daemon.ok("session/append", params)["entryIds"][0].clone()
}

/// The picture of the seeds: behind A one branch with B, C and D, and one with E and F. The leaf is D.
fn picture(daemon: &mut Daemon) -> (String, [Value; 6]) {
    let session = daemon.new_session(json!({"cwd": "/project"}));
    let a = say(daemon, &session, assistant("A: the parser is ready."), None);
    let e = say(daemon, &session, user("E: write the printer."), None);
    let f = say(daemon, &session, assistant("F: the printer is written."), None);
    let b = say(daemon, &session, user("B: write the lexer. You must never use macros."), Some(&a));
    let c = say(daemon, &session, assistant("C: the lexer is written."), None);
    let d = say(daemon, &session, assistant("D: the lexer is tested."), None);
    // Its answer comes behind the events of the messages.
    daemon.ok("session/status", of(&session));
    daemon.events.clear();
    (session, [a, b, c, d, e, f])
}

/// The texts of the context, in order.
fn context(daemon: &mut Daemon, session: &str) -> Vec<String> {
    let messages = daemon.context(session)["messages"].clone();
    messages.as_array().expect("messages").iter().map(|message| message["content"].to_string()).collect()
}

fn notices(daemon: &Daemon) -> Vec<String> {
    let events = daemon.events.iter().map(|frame| &frame["params"]["event"]);
    events.filter(|event| event["type"] == "notice").map(|event| event["title"].to_string()).collect()
}

#[test]
fn a_model_summarizes_the_branch_and_the_summary_is_the_new_leaf_behind_the_target() {
    let provider = Provider::start(Format::Anthropic);
    provider.otherwise(good_model);
    let mut daemon = asking(&provider, json!({}));
    let (session, [a, _, _, d, _, f]) = picture(&mut daemon);
    let answer = left_for(&mut daemon, &session, &f, json!({"label": "the lexer"}));
    assert_eq!(answer["outcome"], "completed", "{answer:#}");
    let summary = answer["summaryEntryId"].clone();
    assert!(summary.is_string());
    assert_eq!((&answer["oldLeafId"], &answer["newLeafId"]), (&d, &summary));

    let asked = provider.asked();
    assert_eq!(asked.len(), 1);
    let text = asked[0].text();
    assert!(text.contains("a branch that was left") && asked[0].refused.is_none(), "{text}");
    for (word, is_there) in
        [("B: write", true), ("C: the", true), ("D: the", true), ("A: the", false), ("F: the", false)]
    {
        assert_eq!(text.contains(word), is_there, "{word}: {text}");
    }

    let entry = lines(&mut daemon, &session, "branch_summary").pop().expect("an entry");
    assert_eq!((&entry["id"], &entry["parentId"], &entry["fromId"]), (&summary, &f, &d));
    assert_eq!(entry["method"], "llm");
    assert_eq!(entry["preserveData"]["abridged"], json!({"summarizer": {"provider": "test", "id": "model"}}));
    assert_eq!(entry["details"], json!({"readFiles": [], "modifiedFiles": []}));
    assert_eq!((&entry["fromHook"], &entry["fromExtension"]), (&Value::Null, &Value::Null));
    let text = entry["summary"].as_str().expect("a text");
    assert!(
        text.starts_with("What happened on a branch that the user left:\n\n## Goal\nFix the parser (by the model)")
    );
    assert!(text.contains("You must never use macros"), "a rule that the model lost: {text}");
    let label = lines(&mut daemon, &session, "label").pop().expect("a label");
    assert_eq!((&label["targetId"], &label["label"]), (&summary, &json!("the lexer")));
    let costs = lines(&mut daemon, &session, "usage");
    assert_eq!(costs.len(), 1);
    assert_eq!((&costs[0]["purpose"], &costs[0]["operationId"]), (&json!("branch_summary"), &answer["operationId"]));

    let events = daemon.events_since(0);
    let expected = [
        "status_changed",
        "branch_summary_start",
        "entry_appended",
        "tree_changed",
        "branch_summary_end",
        "status_changed",
        "settled",
    ];
    assert_eq!(names(&events), expected);
    let start = json!({"type": "branch_summary_start", "oldLeafId": d, "targetEntryId": f, "commonAncestorId": a,
        "entryCount": 3});
    assert_eq!(event(&events, "branch_summary_start"), &start);
    let end = json!({"type": "branch_summary_end", "outcome": "completed", "summaryEntryId": summary});
    assert_eq!(event(&events, "branch_summary_end"), &end);
    let change = json!({"type": "tree_changed", "oldLeafId": d, "newLeafId": summary, "summaryEntryId": summary,
        "label": "the lexer"});
    assert_eq!(event(&events, "tree_changed"), &change);
    let told: String = daemon
        .events
        .iter()
        .map(|frame| &frame["params"])
        .filter(|params| params["event"]["type"] == "summary_chunk")
        .map(|params| {
            assert_eq!(
                (&params["event"]["source"], &params["operationId"]),
                (&json!("branch"), &answer["operationId"])
            );
            params["event"]["text"].as_str().expect("a text")
        })
        .collect();
    assert!(told.contains("by the model"), "{told}");

    let there = context(&mut daemon, &session);
    assert_eq!(there.len(), 4, "{there:#?}");
    for (at, word) in ["A: the parser", "E: write", "F: the printer", "by the model"].into_iter().enumerate() {
        assert!(there[at].contains(word), "{there:#?}");
    }
    assert!(!there.concat().contains("C: the lexer"), "{there:#?}");
    reopen(&mut daemon, &session);
    assert_eq!((leaf(&mut daemon, &session), context(&mut daemon, &session)), (summary, there));
    left_for(&mut daemon, &session, &d, json!({"summarize": false}));
    assert_eq!(leaf(&mut daemon, &session), d, "the branch is as it was");
}

#[test]
fn without_a_model_the_summary_is_extracted_and_with_a_failing_one_a_notice_says_so() {
    for code in [None, Some(500), Some(401)] {
        let provider = Provider::start(Format::Anthropic);
        let mut daemon = match code {
            None => daemon(r#"{"tokens": {"estimator": "chars"}}"#),
            Some(code) => {
                provider.otherwise(move |_: &_| Step::status(code));
                asking(&provider, json!({}))
            }
        };
        let (session, [_, _, _, _, _, f]) = picture(&mut daemon);
        let answer = left_for(&mut daemon, &session, &f, json!({"instructions": "the tests"}));
        assert_eq!(answer["outcome"], "completed", "{answer:#}");
        let entry = lines(&mut daemon, &session, "branch_summary").pop().expect("an entry");
        assert_eq!(entry["method"], "extractive");
        let text = entry["summary"].as_str().expect("a text");
        assert!(text.contains("write the lexer") && text.contains("never use macros"), "{text}");
        let rejected = &entry["preserveData"]["abridged"]["rejected"];
        assert_eq!(rejected.as_array().map(Vec::len), code.map(|_| 1), "{entry:#}");
        let expected: Vec<_> = code.iter().map(|_| r#""No model could write the summary""#.to_owned()).collect();
        assert_eq!(notices(&daemon), expected);
        assert_eq!(event(&daemon.events_since(0), "branch_summary_end")["outcome"], "completed");
        assert!(daemon.events.iter().any(|frame| frame["params"]["event"]["source"] == "branch"), "its text is sent");
    }
}

#[test]
fn a_refused_answer_is_not_stored_and_its_cost_is() {
    let provider = Provider::start(Format::Anthropic);
    provider.script([Step::answer("I'm sorry, I can't help with that."), Step::answer("I'm sorry, I can't help.")]);
    let mut daemon = asking(&provider, json!({}));
    let (session, [_, _, _, _, _, f]) = picture(&mut daemon);
    left_for(&mut daemon, &session, &f, json!({}));
    let entry = lines(&mut daemon, &session, "branch_summary").pop().expect("an entry");
    assert_eq!(entry["method"], "extractive");
    assert!(!entry["summary"].to_string().contains("sorry"));
    assert_eq!(lines(&mut daemon, &session, "usage").len(), 2);
}

#[test]
fn instructions_add_to_the_prompt_or_replace_it() {
    let provider = Provider::start(Format::Anthropic);
    provider.otherwise(|_: &_| Step::answer("## Ports\n- the port of the server is 8080"));
    let mut daemon = asking(&provider, json!({}));
    let (session, [_, _, _, d, _, f]) = picture(&mut daemon);
    let more = json!({"instructions": "List the ports.", "replaceInstructions": true});
    left_for(&mut daemon, &session, &f, more);
    let text = provider.asked()[0].text();
    assert!(text.contains("List the ports.") && !text.contains("a branch that was left"), "{text}");
    assert!(!text.contains("Additional focus"), "{text}");
    let entry = lines(&mut daemon, &session, "branch_summary").pop().expect("an entry");
    assert_eq!(entry["method"], "llm", "{entry:#}");
    assert!(entry["summary"].to_string().contains("8080"));
    provider.otherwise(good_model);
    left_for(&mut daemon, &session, &d, json!({"instructions": "List the ports."}));
    let text = provider.asked().last().expect("a request").text();
    assert!(text.contains("Additional focus: List the ports.") && text.contains("a branch that was left"), "{text}");
    assert!(text.contains("Summary of another branch"), "the summary is part of the branch that is left now: {text}");
}

#[test]
fn the_setting_is_the_default_of_summarize() {
    for (enabled, asked, expected) in [(true, Value::Null, 1), (false, Value::Null, 0), (true, json!(false), 0)] {
        let mut daemon = daemon(&json!({"branchSummary": {"enabled": enabled}}).to_string());
        let (session, [_, _, _, _, _, f]) = picture(&mut daemon);
        left_for(&mut daemon, &session, &f, json!({"summarize": asked}));
        assert_eq!(lines(&mut daemon, &session, "branch_summary").len(), expected, "{enabled} {asked}");
    }
}

#[test]
fn the_files_of_all_branches_that_were_left_go_along() {
    let mut daemon = daemon("{}");
    let session = daemon.new_session(json!({"cwd": "/project"}));
    let touch = |id: &str, tool: &str, path: &str| {
        let call = json!({"type": "toolCall", "id": id, "name": tool, "arguments": {"path": path}});
        json!({"role": "assistant", "content": [call], "stopReason": "toolUse", "timestamp": 1})
    };
    let a = say(&mut daemon, &session, user("Go."), None);
    let done = say(&mut daemon, &session, assistant("Ready."), None);
    daemon.append(&session, &[user("One."), touch("c1", "edit", "/one.rs"), result("c1", "ok"), assistant("Done.")]);
    left_for(&mut daemon, &session, &done, json!({}));
    daemon.append(&session, &[user("Two."), touch("c2", "read", "/two.rs"), result("c2", "ok"), assistant("Done.")]);
    left_for(&mut daemon, &session, &a, json!({}));
    let entries = lines(&mut daemon, &session, "branch_summary");
    assert_eq!(entries[0]["details"], json!({"readFiles": [], "modifiedFiles": ["/one.rs"]}));
    assert_eq!(entries[1]["details"], json!({"readFiles": ["/two.rs"], "modifiedFiles": ["/one.rs"]}));
    let text = entries[1]["summary"].as_str().expect("a text");
    let lists = "<read-files>\n/two.rs\n</read-files>\n<modified-files>\n/one.rs\n</modified-files>";
    assert!(text.ends_with(lists) && text.matches("/one.rs\n<").count() == 1, "{text}");
    assert_eq!(entries[1]["parentId"], Value::Null, "the target is a message of the user at the root");
    assert!(context(&mut daemon, &session).concat().contains("/one.rs"));
}

#[test]
fn pins_of_the_branch_stand_word_for_word_in_the_summary_and_no_model_reads_them() {
    let provider = Provider::start(Format::Anthropic);
    provider.otherwise(good_model);
    let mut daemon = asking(&provider, json!({}));
    let (session, [_, b, _, _, _, f]) = picture(&mut daemon);
    daemon.ok("session/pin", json!({"sessionId": session, "entryId": b}));
    let text = "The  port is 8080;\n  never another one.";
    daemon.ok("session/pin", json!({"sessionId": session, "text": text}));
    left_for(&mut daemon, &session, &f, json!({}));
    let sent = provider.asked()[0].text();
    assert!(sent.contains("C: the lexer") && !sent.contains("8080") && !sent.contains("never use macros"), "{sent}");
    let entry = lines(&mut daemon, &session, "branch_summary").pop().expect("an entry");
    let summary = entry["summary"].as_str().expect("a text");
    assert_eq!(summary.matches(text).count(), 1, "{summary}");
    assert_eq!(summary.matches("B: write the lexer. You must never use macros.").count(), 1, "{summary}");
}

#[test]
fn pins_of_entries_before_the_branch_and_behind_a_compaction_go_along() {
    let mut daemon = daemon("{}");
    let (session, [a, b, c, _, e, f]) = picture(&mut daemon);
    for message in turns(6) {
        say(&mut daemon, &session, message, None);
    }
    for entry in [&a, &b] {
        daemon.ok("session/pin", json!({"sessionId": session, "entryId": entry}));
    }
    daemon.ok("session/compact", json!({"sessionId": session, "keepRecentTokens": 100, "wait": true}));
    daemon.ok("session/pin", json!({"sessionId": session, "entryId": c}));
    reopen(&mut daemon, &session);
    left_for(&mut daemon, &session, &f, json!({}));
    let entry = lines(&mut daemon, &session, "branch_summary").pop().expect("an entry");
    let pinned = entry["summary"].as_str().and_then(|text| text.split_once("## Pinned")).expect("pins").1.to_owned();
    for text in ["A: the parser is ready.", "You must never use macros.", "C: the lexer is written."] {
        assert_eq!(pinned.matches(text).count(), 1, "{pinned}");
    }

    // A pin that holds at the target, too, stays a pin.
    daemon.ok("session/pin", json!({"sessionId": session, "entryId": e}));
    let there = leaf(&mut daemon, &session);
    say(&mut daemon, &session, user("G: read the printer."), None);
    left_for(&mut daemon, &session, &there, json!({}));
    let entry = lines(&mut daemon, &session, "branch_summary").pop().expect("an entry");
    assert!(!entry["summary"].to_string().contains("## Pinned"), "{entry:#}");
}

#[test]
fn a_branch_without_messages_is_left_without_a_summary_and_without_its_events() {
    let mut daemon = daemon("{}");
    let session = daemon.new_session(json!({"cwd": "/project"}));
    let ids = daemon.append(&session, &[user("One."), assistant("Two.")])["entryIds"].clone();
    daemon.ok("session/label", json!({"sessionId": session, "targetEntryId": ids[0], "label": "first"}));
    daemon.events.clear();
    let answer = left_for(&mut daemon, &session, &ids[1], json!({}));
    assert_eq!((&answer["outcome"], &answer["summaryEntryId"]), (&json!("completed"), &Value::Null));
    assert!(lines(&mut daemon, &session, "branch_summary").is_empty());
    assert!(daemon.kinds().iter().all(|kind| !kind.starts_with("branch_summary")), "{:?}", daemon.kinds());
}

#[test]
fn a_summary_fits_beside_the_context_at_the_target() {
    for (there, expected) in [(1_000, Some(6_000)), (5_000, Some(2_000)), (7_500, None)] {
        let mut daemon = daemon(
            &json!({
                "defaultModel": "p/m", "models": [model("m", 8_000)], "compaction": {"enabled": false},
                "tokens": {"estimator": "chars"},
            })
            .to_string(),
        );
        let session = daemon.new_session(json!({"cwd": "/project"}));
        let a = say(&mut daemon, &session, user(&text_of(there * 100 / 135, "first")), None);
        let b = say(&mut daemon, &session, assistant("Read."), None);
        let far: Vec<Value> = (0..12)
            .flat_map(|at| {
                [
                    user(&format!("Request {at}. {}", text_of(300, "branch"))),
                    assistant(&format!("Answer {at}. {}", text_of(100, "answer"))),
                ]
            })
            .collect();
        daemon.append(&session, &far);
        daemon.events.clear();
        let answer = left_for(&mut daemon, &session, &b, json!({}));
        assert_eq!(answer["outcome"], "completed", "{a}");
        let usage = daemon.ok("session/usage", of(&session));
        let summary = lines(&mut daemon, &session, "branch_summary").pop();
        assert_eq!(summary.is_some(), expected.is_some(), "{there}: {usage:#}");
        assert!(usage["contextTokens"].as_u64().is_some_and(|tokens| tokens <= 8_000), "{there}: {usage:#}");
        match expected {
            Some(most) => assert!(summary.is_some_and(|it| it["summary"].to_string().len() / 3 < most), "{there}"),
            None => {
                assert_eq!(notices(&daemon), [r#""The branch was left without a summary""#]);
                assert_eq!(leaf(&mut daemon, &session), b);
            }
        }
    }
}

#[test]
fn a_branch_over_the_window_of_the_summarizer_is_summarized_from_its_newest_messages() {
    let provider = Provider::start(Format::Anthropic);
    provider.otherwise(good_model);
    let more = json!({"models": [{"provider": "test", "id": "model", "api": "anthropic", "baseUrl": provider.base_url(),
        "contextWindow": 12_000}], "branchSummary": {"reserveTokens": 6_000}, "compaction": {"enabled": false}});
    let mut daemon = asking(&provider, more);
    let session = daemon.new_session(json!({"cwd": "/project"}));
    let a = say(&mut daemon, &session, user("A: begin."), None);
    let b = say(&mut daemon, &session, assistant("B: begun."), None);
    daemon.append(&session, &turns(30));
    let answer = left_for(&mut daemon, &session, &b, json!({}));
    assert_eq!(answer["outcome"], "completed", "{a}");
    let asked: String = provider.asked().iter().map(|asked| asked.text()).collect();
    assert!(asked.contains("Request 29:") && !asked.contains("Request 2:"), "the newest ones");
    assert!(provider.asked().iter().all(|asked| asked.refused.is_none()));
    let entry = lines(&mut daemon, &session, "branch_summary").pop().expect("an entry");
    assert!(
        entry["summary"].to_string().contains("oldest messages of the branch are not in this summary"),
        "{entry:#}"
    );
    assert!(entry["details"]["readFiles"].to_string().contains("src/call0.rs"), "the files of all: {entry:#}");
}

#[test]
fn a_compaction_of_another_branch_does_not_count() {
    let mut daemon = daemon(r#"{"tokens": {"estimator": "chars"}}"#);
    let session = daemon.new_session(json!({"cwd": "/project", "model": "some/model", "thinkingLevel": "high"}));
    let first = daemon.append(&session, &turns(4))["entryIds"].clone();
    let fork = first.as_array().and_then(|ids| ids.last()).expect("an id").clone();
    let at_fork = context(&mut daemon, &session);
    daemon
        .append(&session, &[user("Branch one."), assistant(&text_of(400, "one")), user("Go on."), assistant("Done.")]);
    daemon.ok("session/configure", json!({"sessionId": session, "model": "other/model", "thinkingLevel": "low"}));
    let params = json!({"sessionId": session, "keepRecentTokens": 10, "method": "extractive", "wait": true});
    assert_eq!(daemon.ok("session/compact", params)["outcome"], "completed");
    daemon.events.clear();
    left_for(&mut daemon, &session, &fork, json!({"summarize": false}));
    assert_eq!(context(&mut daemon, &session), at_fork, "no compaction is on this path");
    let status = daemon.ok("session/status", of(&session))["session"].clone();
    assert_eq!(
        (&status["model"]["provider"], &status["thinkingLevel"]),
        (&json!("some"), &json!("high")),
        "{status:#}"
    );
    daemon
        .append(&session, &[user("Branch two."), assistant(&text_of(400, "two")), user("Go on."), assistant("Done.")]);
    let params = json!({"sessionId": session, "keepRecentTokens": 10, "method": "extractive", "wait": true});
    let answer = daemon.ok("session/compact", params);
    assert_eq!(answer["outcome"], "completed", "{answer:#}");
    let shown = context(&mut daemon, &session).concat();
    assert!(shown.contains("Branch two") && !shown.contains("Branch one"), "{shown}");
    assert!(answer["result"]["summary"].to_string().contains("part_0"), "what stood before the branch: {answer:#}");
}

#[test]
fn a_compaction_of_the_branch_that_is_left_counts_as_its_message() {
    let provider = Provider::start(Format::Anthropic);
    provider.otherwise(|asked: &crate::provider::Asked| match asked.text().contains("a branch that was left") {
        true => Step::answer(&good("of the branch")),
        false => good_model(asked),
    });
    let mut daemon = asking(&provider, json!({}));
    let session = daemon.new_session(json!({"cwd": "/project"}));
    let fork = say(&mut daemon, &session, assistant("Ready."), None);
    daemon.append(&session, &turns(12));
    let params = json!({"sessionId": session, "keepRecentTokens": 300, "wait": true});
    assert_eq!(daemon.ok("session/compact", params)["outcome"], "completed");
    left_for(&mut daemon, &session, &fork, json!({}));
    let asked = provider.asked().last().expect("a request").text();
    assert!(asked.contains("[Summary of an earlier part]: ## Goal\nFix the parser (by the model)"), "{asked}");
    let entry = lines(&mut daemon, &session, "branch_summary").pop().expect("an entry");
    assert!(entry["summary"].to_string().contains("of the branch"));
    let details = entry["details"]["readFiles"].as_array().map(Vec::len);
    assert_eq!(details, Some(12), "{entry:#}");
}
