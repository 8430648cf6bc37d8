//! The models that write the summary of a branch: their order, their failures, and what they are told.

use super::*;
use std::time::Duration;

/// It only bounds how long a failure hangs.
const LONG: Duration = Duration::from_secs(60);

/// Settings with two models at this provider, the first of which is named for summaries.
fn two(provider: &Provider) -> Value {
    let model = |id: &str, window: u64| json!({"provider": "test", "id": id, "api": "anthropic", "baseUrl": provider.base_url(), "contextWindow": window});
    json!({"models": [model("model", 100_000), model("small", 12_000)], "compaction": {"models": ["test/small"]}})
}

#[test]
fn the_next_candidate_writes_where_the_first_one_fails() {
    let provider = Provider::start(Format::Anthropic);
    provider.otherwise(|asked: &crate::provider::Asked| match asked.model() {
        "small" => Step::unauthorized(),
        _ => good_model(asked),
    });
    let mut daemon = asking(&provider, two(&provider));
    let (session, [_, _, _, _, _, f]) = picture(&mut daemon);
    left_for(&mut daemon, &session, &f, json!({}));
    let entry = lines(&mut daemon, &session, "branch_summary").pop().expect("an entry");
    assert_eq!(entry["method"], "llm");
    let ours = &entry["preserveData"]["abridged"];
    assert_eq!(ours["summarizer"], json!({"provider": "test", "id": "model"}));
    assert_eq!(ours["rejected"][0]["model"], json!({"provider": "test", "id": "small"}), "{ours:#}");
    assert!(notices(&daemon).is_empty(), "a model wrote it");
}

#[test]
fn the_window_of_the_model_that_summarizes_decides_how_much_it_reads() {
    let provider = Provider::start(Format::Anthropic);
    provider.otherwise(good_model);
    let mut more = two(&provider);
    merge(&mut more, json!({"branchSummary": {"reserveTokens": 6_000}, "compaction": {"enabled": false}}));
    let mut daemon = asking(&provider, more);
    let session = daemon.new_session(json!({"cwd": "/project", "model": "test/model"}));
    say(&mut daemon, &session, user("A: begin."), None);
    let b = say(&mut daemon, &session, assistant("B: begun."), None);
    daemon.append(&session, &turns(30));
    left_for(&mut daemon, &session, &b, json!({}));
    let asked = provider.asked();
    assert!(asked.iter().all(|asked| asked.model() == "small" && asked.refused.is_none()));
    let read: String = asked.iter().map(|asked| asked.text()).collect();
    assert!(read.contains("Request 29:") && !read.contains("Request 2:"), "{}", read.len());
}

#[test]
fn a_retry_of_the_request_is_told_with_its_source() {
    let provider = Provider::start(Format::Anthropic);
    provider.script([Step::overloaded()]).otherwise(good_model);
    let mut daemon = asking(&provider, json!({"retry": {"enabled": true, "baseDelayMs": 100}}));
    let (session, [_, _, _, _, _, f]) = picture(&mut daemon);
    left_for(&mut daemon, &session, &f, json!({}));
    let events = daemon.events_since(0);
    assert_eq!(event(&events, "retry_start")["source"], "branch");
    assert_eq!((daemon.count("retry_start"), daemon.count("retry_end")), (1, 1));
    assert_eq!(event(&events, "retry_end")["success"], true);
}

#[test]
fn a_client_that_runs_models_is_told_the_purpose() {
    let home = Home::new();
    home.settings(r#"{"defaultModel": "own/model", "models": [{"provider": "own", "id": "model", "api": "client"}]}"#);
    let mut daemon = Daemon::silent(home);
    daemon.ok("initialize", json!({"protocolVersion": 1, "capabilities": {"llm": {}}}));
    let (session, [_, _, _, _, _, f]) = picture(&mut daemon);
    let id = begin(&mut daemon, &session, &f, json!({}));
    let request = daemon.next_within(LONG, |frame| frame["method"] == "llm/complete").expect("the daemon asks");
    assert_eq!(request["params"]["purpose"], "branch_summary", "{request:#}");
    let operation = daemon.until("branch_summary_start")["params"]["operationId"].clone();
    assert_eq!(request["params"]["operationId"], operation);
    let message = json!({"role": "assistant", "content": [{"type": "text", "text": good("by the client")}],
        "stopReason": "stop", "usage": {"input": 100, "output": 20, "cacheRead": 0, "cacheWrite": 0}});
    daemon.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": {"message": message}}));
    assert_eq!(daemon.answer(id).expect("an answer")["outcome"], "completed");
    let entry = lines(&mut daemon, &session, "branch_summary").pop().expect("an entry");
    assert!(entry["summary"].to_string().contains("by the client"), "{entry:#}");
}

#[test]
fn no_secret_of_the_branch_reaches_the_model_or_the_summary() {
    let secret = format!("sk-{}-{}", "ant", "api03-a1B2c3D4e5F6g7H8i9J0k1L2");
    let provider = Provider::start(Format::Anthropic);
    let leaked = secret.clone();
    provider.otherwise(move |_: &_| Step::answer(&format!("{}\n- the key is {leaked}", good("by the model"))));
    let mut daemon = asking(&provider, json!({}));
    let (session, [_, _, _, _, _, f]) = picture(&mut daemon);
    say(&mut daemon, &session, user(&format!("Use the key {secret} for the tests of the lexer.")), None);
    left_for(&mut daemon, &session, &f, json!({"instructions": format!("keep {secret}")}));
    assert!(provider.asked().iter().all(|asked| !asked.text().contains(&secret)));
    let entry = lines(&mut daemon, &session, "branch_summary").pop().expect("an entry");
    assert_eq!(entry["method"], "extractive", "the answer was refused");
    assert!(!entry.to_string().contains(&secret), "{entry:#}");
    let told = daemon.events.iter().filter(|frame| frame["params"]["event"]["type"] == "summary_chunk");
    assert!(told.into_iter().all(|frame| !frame.to_string().contains(&secret)));
}

#[test]
fn a_session_without_a_file_is_summarized_too() {
    let mut daemon = daemon("{}");
    let session = daemon.new_session(json!({"cwd": "/project", "ephemeral": true}));
    let ids = daemon.append(&session, &[user("One."), assistant("Two.")])["entryIds"].clone();
    daemon.append(&session, &[user("Look at three."), assistant("Seen.")]);
    let answer = left_for(&mut daemon, &session, &ids[1], json!({}));
    assert_eq!((&answer["outcome"], &answer["newLeafId"]), (&json!("completed"), &answer["summaryEntryId"]));
    let shown = context(&mut daemon, &session);
    assert!(shown.len() == 3 && shown[2].contains("Look at three"), "{shown:#?}");
}

#[test]
fn an_answer_without_wait_comes_before_the_events_that_name_its_operation() {
    let mut daemon = daemon("{}");
    let (session, [_, _, _, _, _, f]) = picture(&mut daemon);
    let id = begin(&mut daemon, &session, &f, json!({"wait": false}));
    let answer = daemon.answer(id).expect("an answer");
    assert!(daemon.events.iter().all(|frame| frame["params"].get("operationId").is_none()), "{:?}", daemon.kinds());
    let start = daemon.until("branch_summary_start");
    assert_eq!(start["params"]["operationId"], answer["operationId"]);
    daemon.until("settled");
}

/// The first model reads the branch in parts and fails.
#[test]
fn the_progress_of_a_summary_only_moves_forward_and_arrives() {
    for second_fails in [true, false] {
        let provider = Provider::start(Format::Anthropic);
        provider.otherwise(move |asked: &crate::provider::Asked| match asked.model() {
            "model" if !second_fails => good_model(asked),
            _ => Step::unauthorized(),
        });
        let mut daemon = asking(&provider, two(&provider));
        let (session, [_, _, _, _, _, f]) = picture(&mut daemon);
        for message in turns(40) {
            say(&mut daemon, &session, message, None);
        }
        daemon.events.clear();
        let answer = left_for(&mut daemon, &session, &f, json!({}));
        assert_eq!(answer["outcome"], "completed", "{answer:#}");
        let events = daemon.events.iter().map(|frame| &frame["params"]["event"]);
        let steps: Vec<(u64, u64)> = events
            .filter(|event| event["type"] == "compaction_progress")
            .map(|event| (event["done"].as_u64().unwrap_or_default(), event["total"].as_u64().unwrap_or_default()))
            .collect();
        assert_eq!(steps.first(), Some(&(0, 1)), "{steps:?}");
        assert!(steps.is_sorted_by(|a, b| a.0 <= b.0 && a.1 <= b.1), "{steps:?}");
        assert!(steps.last().is_some_and(|(done, total)| done == total), "{steps:?}");
    }
}
