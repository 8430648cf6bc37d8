//! Compactions that a host applies itself: `session/compact` with `apply: false`, and `context/fit`.

use crate::{
    provider::{Format, Provider, objection},
    summarizing::{good_model, held_model, settings},
    support::{Daemon, Home, assistant, calls, result, session_of, text_of, turns, user},
};
use serde_json::{Value, json};
use std::{fs, path::Path};

fn unapplied(daemon: &mut Daemon, session: &str, more: Value) -> Value {
    let mut params = json!({"sessionId": session, "apply": false});
    for (key, value) in more.as_object().expect("fields") {
        params[key] = value.clone();
    }
    daemon.ok("session/compact", params)
}

fn without_ids(result: &Value) -> Value {
    let mut result = result.clone();
    result["entryId"] = Value::Null;
    result
}

#[test]
fn a_result_that_is_not_applied_is_the_one_that_would_be_written() {
    let mut daemon = Daemon::start();
    let path = session_of(&daemon.home, "unapplied", &turns(8));
    let bytes = |path: &Path| fs::read(path).expect("a file");
    let before = bytes(&path);
    let read_only = daemon.ok("session/load", json!({"path": path, "readOnly": true}))["session"]["sessionId"].take();
    let read_only = read_only.as_str().expect("an id").to_owned();
    let more = json!({"keepRecentTokens": 400, "instructions": "focus on the fourth"});
    let result = unapplied(&mut daemon, &read_only, more.clone());
    assert_eq!((&result["outcome"], &result["result"]["entryId"]), (&json!("completed"), &Value::Null));
    assert_eq!(bytes(&path), before, "nothing is written");
    assert_eq!(daemon.count("compaction_start") + daemon.count("status_changed") + daemon.count("entry_appended"), 0);
    daemon.ok("session/close", json!({"sessionId": read_only}));

    let session = daemon.load(&path);
    let mut applied = more;
    applied["sessionId"] = json!(session);
    applied["wait"] = json!(true);
    let applied = daemon.ok("session/compact", applied);
    assert_eq!(without_ids(&applied["result"]), result["result"]);
    let extent = |part: &str| ["entries", "tokens"].map(|key| result["result"][part][key].as_u64().expect("a number"));
    let (covered, kept) = (extent("covered"), extent("kept"));
    assert_eq!(covered[0] + kept[0], turns(8).len() as u64);
    assert!(covered[1] > kept[1] && kept[1] > 0, "{covered:?} {kept:?}");
    assert_eq!(result["result"]["usage"], Value::Null, "no model was asked");
}

#[test]
fn another_leaf_is_compacted_as_if_it_were_the_sessions() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(json!({"cwd": "/project"}));
    let ids = daemon.append(&session, &turns(6))["entryIds"].take();
    let fork = ids[3].clone();
    daemon.ok("session/append", json!({"sessionId": session, "parentEntryId": fork, "messages": [user("Another way: the wombat."), assistant("Yes.")]}));
    let old_leaf = ids.as_array().expect("ids").last().expect("one").clone();
    let here = unapplied(&mut daemon, &session, json!({"keepRecentTokens": 10}));
    let there = unapplied(&mut daemon, &session, json!({"keepRecentTokens": 10, "leafEntryId": old_leaf}));
    assert!(
        here["result"]["summary"].to_string().contains("wombat")
            || here["result"]["firstKeptEntryId"] != there["result"]["firstKeptEntryId"]
    );
    assert!(!there["result"]["summary"].to_string().contains("wombat"));
    let plan = daemon.ok(
        "session/compact",
        json!({"sessionId": session, "dryRun": true, "keepRecentTokens": 10, "leafEntryId": old_leaf}),
    );
    assert_eq!(plan["preparation"]["firstKeptEntryId"], there["result"]["firstKeptEntryId"]);
    for (more, path) in [
        (json!({"leafEntryId": old_leaf}), "leafEntryId"),
        (json!({"apply": false, "newSession": true}), "newSession"),
        (json!({"apply": false, "when": "after_turn"}), "when"),
    ] {
        let mut params = more;
        params["sessionId"] = json!(session);
        assert_eq!(daemon.err("session/compact", params)["data"]["path"], path);
    }
    let error = daemon.err("session/compact", json!({"sessionId": session, "apply": false, "leafEntryId": "none"}));
    assert_eq!(error["data"]["code"], "not_found");
}

#[test]
fn a_model_writes_it_and_its_tokens_are_in_the_result() {
    let provider = Provider::start(Format::Anthropic);
    provider.otherwise(good_model);
    let home = Home::new();
    home.settings(&settings(&provider, Format::Anthropic, json!({})));
    let path = session_of(&home, "modelled", &turns(8));
    let mut daemon = Daemon::at(home);
    let session = daemon.load(&path);
    let before = fs::read(&path).expect("a file");
    let answer = unapplied(&mut daemon, &session, json!({"keepRecentTokens": 400}));
    let result = &answer["result"];
    assert_eq!(result["method"], "llm", "{answer:#}");
    assert!(result["usage"]["input"].as_u64().is_some_and(|tokens| tokens > 0), "{result:#}");
    assert!(result["usage"]["totalTokens"].as_u64() > result["usage"]["output"].as_u64());
    assert_eq!(fs::read(&path).expect("a file"), before, "no cost is written either");
    let applied = daemon.ok("session/compact", json!({"sessionId": session, "wait": true, "keepRecentTokens": 400}));
    assert!(applied["result"]["usage"]["output"].as_u64().is_some_and(|tokens| tokens > 0), "{applied:#}");
}

#[test]
fn its_progress_and_its_text_are_the_only_events() {
    let provider = Provider::start(Format::Anthropic);
    provider.otherwise(good_model);
    let home = Home::new();
    home.settings(&settings(&provider, Format::Anthropic, json!({})));
    let path = session_of(&home, "told", &turns(8));
    let mut daemon = Daemon::at(home);
    let session = daemon.load(&path);
    daemon.ok("session/tree", json!({"sessionId": session, "limit": 1}));
    let before = daemon.events.len();
    let answer = unapplied(&mut daemon, &session, json!({"keepRecentTokens": 400}));
    daemon.ok("ping", json!({}));
    let events: Vec<&Value> = daemon.events[before..].iter().map(|frame| &frame["params"]["event"]).collect();
    let kinds: Vec<&str> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    assert!(kinds.iter().all(|kind| ["compaction_progress", "summary_chunk"].contains(kind)), "{kinds:?}");
    let about = daemon.events[before..].iter().all(|event| event["params"]["operationId"] == answer["operationId"]);
    assert!(about, "{:?}", daemon.events);
    let text: String = events
        .iter()
        .filter(|event| event["type"] == "summary_chunk" && event["source"] == "history")
        .filter_map(|event| event["text"].as_str())
        .collect();
    let summary = answer["result"]["summary"].as_str().expect("a summary");
    let first = text.lines().find(|line| line.starts_with("- ")).expect("a line of the model");
    assert!(summary.contains(first), "{first} in {summary}");
    let shares: Vec<f64> = events.iter().filter_map(|event| event["share"].as_f64()).collect();
    assert!(!shares.is_empty() && shares.is_sorted(), "{shares:?}");
    // The answer of a dry run names no operation.
    let before = daemon.events.len();
    daemon.ok("session/compact", json!({"sessionId": session, "dryRun": true, "draft": true, "keepRecentTokens": 400}));
    assert_eq!(daemon.events.len(), before);
}

#[test]
fn its_request_cancels_it_and_so_does_a_close() {
    let provider = Provider::start(Format::Anthropic);
    let (_go_on, held) = held_model();
    provider.otherwise(held);
    let home = Home::new();
    home.settings(&settings(&provider, Format::Anthropic, json!({})));
    let path = session_of(&home, "held", &turns(8));
    let mut daemon = Daemon::at(home);
    let session = daemon.load(&path);
    let params = json!({"sessionId": session, "apply": false, "keepRecentTokens": 400});
    let id = daemon.begin("session/compact", params.clone());
    provider.wait_for(1);
    assert_eq!(daemon.append(&session, &[user("And on.")])["next"]["type"], "none", "the session goes on");
    daemon.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": id}}));
    match daemon.answer(id) {
        Ok(answer) => assert_eq!(answer["outcome"], "cancelled"),
        Err(error) => assert_eq!(error["data"]["code"], "request_cancelled"),
    }
    let id = daemon.begin("session/compact", params);
    provider.wait_for(2);
    let close = daemon.begin("session/close", json!({"sessionId": session}));
    let ended = daemon.answer(id).expect("an outcome");
    assert_eq!(ended["outcome"], "cancelled");
    daemon.answer(close).expect("it is closed");
}

/// A conversation in a format: turns with calls, long enough for a small window.
fn conversation(format: Option<Format>) -> Vec<Value> {
    let mut daemon = Daemon::start();
    let mut messages = vec![user("Build the parser. You must never touch vendor/.")];
    for turn in 0..12 {
        messages.push(calls(&[&format!("c{turn}")]));
        messages.push(result(&format!("c{turn}"), &text_of(300, &format!("module_{turn}"))));
        messages.push(assistant(&format!("Part {turn} is written.")));
        messages.push(user(&format!("Now part {}.", turn + 1)));
    }
    let session = daemon.new_session(json!({"cwd": "/project", "model": "p/m", "contextWindow": 1_000_000}));
    daemon.append(&session, &messages);
    let api = format.map_or("messages", Format::api);
    let context = daemon.ok("session/context", json!({"sessionId": session, "format": api}));
    let list = match format {
        None => &context["messages"],
        Some(_) => ["messages", "input", "contents"]
            .iter()
            .map(|key| &context["body"][*key])
            .find(|it| it.is_array())
            .expect("a list"),
    };
    list.as_array().expect("messages").clone()
}

fn body(format: Format, messages: &Value) -> Value {
    match format {
        Format::Anthropic => {
            json!({"model": "m", "max_tokens": 100, "messages": messages, "tools": [{"name": "read", "input_schema": {"type": "object"}}]})
        }
        Format::OpenAiChat => json!({"model": "m", "messages": messages}),
        Format::OpenAiResponses => json!({"model": "m", "input": messages, "store": false}),
        Format::Google => json!({"contents": messages}),
    }
}

#[test]
fn messages_of_a_host_fit_in_every_format_and_the_kept_ones_are_its_own() {
    let formats =
        [None, Some(Format::Anthropic), Some(Format::OpenAiChat), Some(Format::OpenAiResponses), Some(Format::Google)];
    for format in formats {
        let messages = conversation(format);
        let mut daemon = Daemon::start();
        let api = format.map_or("messages", Format::api);
        let roomy = daemon.ok("context/fit", json!({"messages": messages, "format": api, "contextWindow": 200_000}));
        assert_eq!(
            (&roomy["messages"], &roomy["summary"], &roomy["method"]),
            (&json!(messages), &Value::Null, &Value::Null)
        );
        let params = json!({"messages": messages, "format": api, "contextWindow": 3_000, "maxOutputTokens": 400, "system": "You write parsers."});
        let fitted = daemon.ok("context/fit", params);
        let first = fitted["firstKeptIndex"].as_u64().expect("a place") as usize;
        assert!(
            first > 0 && first < messages.len(),
            "{api}: {first} of {}, {} to {}",
            messages.len(),
            fitted["tokensBefore"],
            fitted["tokensAfter"]
        );
        let (before, after) = (fitted["tokensBefore"].as_u64(), fitted["tokensAfter"].as_u64());
        assert!(before > after && after < Some(2_600), "{api}: {before:?} {after:?}");
        assert!(fitted["summary"].as_str().is_some_and(|text| text.contains("vendor/")), "{fitted:#}");
        assert_eq!(fitted["method"], "extractive");
        let list = fitted["messages"].as_array().expect("messages");
        assert!(list.ends_with(&messages[first..]), "{api}: the kept messages are as they were given");
        assert!(json!(list).to_string().contains("vendor/"));
        if let Some(format) = format {
            assert_eq!(objection(format, "m", body(format, &fitted["messages"])), None, "{api}");
        }
        // The next call goes on from there.
        let rest = json!({"messages": messages[first..], "format": api, "contextWindow": 200_000, "previousSummary": fitted["summary"]});
        let next = daemon.ok("context/fit", rest);
        assert_eq!((&next["summary"], &next["firstKeptIndex"]), (&fitted["summary"], &json!(0)));
        assert!(next["messages"].as_array().expect("messages").ends_with(&messages[first..]));
        assert!(next["messages"].to_string().contains("vendor/"), "{api}: the summary is in the messages");
        assert_eq!(daemon.ok("session/list", json!({}))["sessions"], json!([]), "nothing is stored");
    }
}

#[test]
fn leading_instructions_stay_and_wrong_messages_are_told_by_their_place() {
    let mut daemon = Daemon::start();
    let mut messages = vec![json!({"role": "system", "content": "You write parsers."})];
    messages.extend(conversation(Some(Format::OpenAiChat)));
    let params = json!({"messages": messages, "format": "openai_chat", "contextWindow": 3_000, "maxOutputTokens": 400});
    let fitted = daemon.ok("context/fit", params);
    assert_eq!(fitted["messages"][0], messages[0]);
    let first = fitted["firstKeptIndex"].as_u64().expect("a place") as usize;
    assert!(fitted["messages"].as_array().expect("messages").ends_with(&messages[first..]));
    messages.insert(3, json!({"role": "tool", "content": 7}));
    for (messages, format, path) in [
        (json!(messages), "openai_chat", "messages[3]"),
        (json!([user("x"), 7]), "messages", "messages[1]"),
        (json!([{"role": "nobody", "content": "x"}]), "messages", "messages[0]"),
    ] {
        let error = daemon.err("context/fit", json!({"messages": messages, "format": format, "contextWindow": 4_000}));
        let at = error["data"]["path"].as_str().expect("a path");
        assert!(at.starts_with(path), "{at}: {error}");
    }
    let long = user(&"many words ".repeat(4_000));
    let cut = daemon.ok("context/fit", json!({"messages": [long], "contextWindow": 2_000}));
    assert!(cut["tokensAfter"].as_u64().is_some_and(|tokens| tokens < 2_000), "{cut}");
    let empty = daemon.ok("context/fit", json!({"messages": []}));
    assert_eq!((&empty["messages"], &empty["firstKeptIndex"]), (&json!([]), &json!(0)));
}

#[test]
fn messages_that_fit_are_never_made_larger() {
    let mut daemon = Daemon::start();
    let short = [user("Which port?"), assistant("8080."), user("And the host?"), assistant("localhost.")];
    for keep in [0, 1, 20, 1_000_000] {
        let params = json!({"messages": short, "contextWindow": 100_000, "keepRecentTokens": keep});
        let fitted = daemon.ok("context/fit", params);
        assert_eq!(fitted["messages"], json!(short), "{keep}: {fitted}");
        assert_eq!((&fitted["tokensAfter"], &fitted["firstKeptIndex"]), (&fitted["tokensBefore"], &json!(0)));
        assert_eq!(fitted["method"], Value::Null);
    }
    // The plan of a small tail makes something smaller, and its draft nothing.
    let long = json!([user("Which port?"), assistant("8080."), user(&"z ".repeat(3_000))]);
    for keep in [0, 1, 500] {
        let fitted =
            daemon.ok("context/fit", json!({"messages": long, "contextWindow": 100_000, "keepRecentTokens": keep}));
        assert_eq!(fitted["messages"], long, "{keep}: {fitted}");
    }
}

#[test]
fn messages_that_do_not_fit_are_made_to_fit_whatever_they_are_to_keep() {
    let mut daemon = Daemon::start();
    let messages = conversation(None);
    for keep in [2_000, 1_000_000] {
        let params =
            json!({"messages": messages, "contextWindow": 3_000, "maxOutputTokens": 400, "keepRecentTokens": keep});
        let fitted = daemon.ok("context/fit", params);
        assert!(fitted["tokensAfter"].as_u64() < Some(2_600), "{keep}: {}", fitted["tokensAfter"]);
    }
}

#[test]
fn a_model_fits_messages_and_is_cancelled_with_the_request() {
    let provider = Provider::start(Format::Anthropic);
    provider.otherwise(good_model);
    let home = Home::new();
    home.settings(&settings(&provider, Format::Anthropic, json!({})));
    let messages = conversation(None);
    let mut daemon = Daemon::at(home);
    let params = json!({"messages": messages, "contextWindow": 16_000, "keepRecentTokens": 500});
    let fitted = daemon.ok("context/fit", params.clone());
    assert_eq!(fitted["method"], "llm", "{fitted:#}");
    let (_go_on, held) = held_model();
    provider.otherwise(held);
    let before = provider.asked().len();
    let id = daemon.begin("context/fit", params);
    provider.wait_for(before + 1);
    daemon.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": id}}));
    assert_eq!(daemon.answer(id).expect_err("it is cancelled")["data"]["code"], "request_cancelled");
}

#[test]
fn many_drafts_at_once_hold_nothing_up() {
    let provider = Provider::start(Format::Anthropic);
    let (_go_on, held) = held_model();
    provider.otherwise(held);
    let home = Home::new();
    home.settings(&settings(&provider, Format::Anthropic, json!({})));
    let path = session_of(&home, "many", &turns(8));
    let mut daemon = Daemon::at(home);
    let session = daemon.load(&path);
    let messages = conversation(None);
    let mut ids = Vec::new();
    for at in 0..40 {
        ids.push(match at % 2 {
            0 => daemon
                .begin("context/fit", json!({"messages": messages, "contextWindow": 16_000, "keepRecentTokens": 500})),
            _ => {
                daemon.begin("session/compact", json!({"sessionId": session, "apply": false, "keepRecentTokens": 400}))
            }
        });
    }
    // All of them wait for the model, and the daemon serves everything else.
    daemon.append(&session, &[user("And on.")]);
    assert_eq!(
        daemon.ok("session/search", json!({"sessionId": session, "query": "and on"}))["matches"][0]["role"],
        "user"
    );
    for id in &ids {
        daemon.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": id}}));
    }
    for id in ids {
        let ended = daemon.answer(id);
        assert!(ended.map_or(true, |answer| answer["outcome"] == "cancelled"));
    }
}

#[test]
fn a_large_summary_is_whole_where_no_entry_has_it() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(
        json!({"cwd": "/project", "contextWindow": 1_000_000, "settings": {"compaction": {"reserveTokens": 200_000}}}),
    );
    let said = |at: usize| {
        (0..60)
            .map(|line| format!("The value of key_{at}_{line} is {} in file_{at}_{line}.rs.\n", at * line))
            .collect::<String>()
    };
    for at in 0..120 {
        daemon.append(&session, &[user(&format!("Step {at}.")), assistant(&said(at))]);
    }
    let answer = unapplied(&mut daemon, &session, json!({"keepRecentTokens": 1_000}));
    let summary = answer["result"]["summary"].as_str().expect("the whole summary");
    assert!(summary.len() > 60 * 1024, "{}", summary.len());
}

#[test]
fn messages_of_another_format_are_refused_and_signed_ones_stay() {
    let mut daemon = Daemon::start();
    for message in [
        json!({"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "read", "input": {}}]}),
        json!({"role": "user", "parts": [{"text": "x"}]}),
    ] {
        let error = daemon.err("context/fit", json!({"messages": [user("x"), message], "contextWindow": 4_000}));
        assert_eq!(error["data"]["path"], "messages[1]");
        assert!(error["message"].as_str().is_some_and(|text| text.contains("`format`")), "{error}");
    }
    let system = json!({"role": "system", "content": "Answer in French."});
    let fitted =
        daemon.ok("context/fit", json!({"messages": [system, user("x"), assistant("y")], "contextWindow": 4_000}));
    assert_eq!(fitted["messages"][0], system);

    // The end of a message whose beginning was summarized, and a signature of a model that nobody names.
    let long = text_of(4_000, "long");
    let messages = json!([
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "gone", "content": "old"}, {"type": "text", "text": "Go on."}]},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "EqQB+/=="},
            {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "b.rs"}},
        ]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": long}]},
    ]);
    for window in [200_000, 3_000] {
        let params = json!({"messages": messages, "format": "anthropic", "contextWindow": window, "maxOutputTokens": 300, "previousSummary": "It began."});
        let fitted = daemon.ok("context/fit", params);
        assert_eq!(objection(Format::Anthropic, "m", body(Format::Anthropic, &fitted["messages"])), None, "{fitted:#}");
        let text = fitted["messages"].to_string();
        assert!(
            text.contains("EqQB+/==") && !text.contains("\"gone\"") && !text.contains("; entry m"),
            "{window}: {text}"
        );
    }
}

#[test]
fn a_message_is_not_sent_again_whole_where_its_beginning_was_summarized() {
    let mut daemon = Daemon::start();
    let old = json!({"type": "tool_result", "tool_use_id": "toolu_1", "content": text_of(900, "old")});
    let messages = json!([
        {"role": "user", "content": "Read a.rs."},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a.rs"}}]},
        {"role": "user", "content": [old, {"type": "text", "text": "Go on with b.rs."}]},
        {"role": "assistant", "content": "It is read."},
    ]);
    let params = json!({"messages": messages, "format": "anthropic", "contextWindow": 200_000, "keepRecentTokens": 12});
    let fitted = daemon.ok("context/fit", params);
    assert_eq!(fitted["firstKeptIndex"], 2, "{fitted:#}");
    assert_eq!(objection(Format::Anthropic, "m", body(Format::Anthropic, &fitted["messages"])), None, "{fitted:#}");
    let text = fitted["messages"].to_string();
    assert!(text.contains("Go on with b.rs.") && !text.contains("toolu_1"), "{text}");

    // A host may give what is left of such a message without the summary.
    let rest = json!({"messages": [messages[2], messages[3]], "format": "anthropic", "contextWindow": 200_000});
    let rest = daemon.ok("context/fit", rest);
    assert_eq!(objection(Format::Anthropic, "m", body(Format::Anthropic, &rest["messages"])), None, "{rest:#}");
}

#[test]
fn another_leaf_has_the_window_of_its_own_model() {
    let home = Home::new();
    let models = [("large", 200_000), ("small", 2_000)].map(|(id, window)| crate::support::model(id, window));
    home.settings(&json!({"models": models}).to_string());
    let mut daemon = Daemon::at(home);
    let session = daemon.new_session(json!({"cwd": "/project", "model": "p/large"}));
    let ids = daemon.append(&session, &turns(20))["entryIds"].take();
    let leaf = ids.as_array().expect("ids").last().expect("one");
    daemon.ok("session/configure", json!({"sessionId": session, "model": "p/small"}));
    let mut tokens_after = |more: Value| {
        let answer = unapplied(&mut daemon, &session, more);
        answer["result"]["tokensAfter"].as_u64().unwrap_or_else(|| panic!("{answer:#}"))
    };
    let (here, there) = (
        tokens_after(json!({"keepRecentTokens": 3_000})),
        tokens_after(json!({"keepRecentTokens": 3_000, "leafEntryId": leaf})),
    );
    assert!(here < 2_000 && there > 2_500, "{here} {there}");
}

#[test]
fn a_result_that_is_not_applied_shortens_no_entry_and_loses_no_file_that_it_names() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(json!({"cwd": "/project", "contextWindow": 4_000, "maxOutputTokens": 500}));
    let write = |id: &str, path: &str| {
        json!({"role": "assistant", "stopReason": "toolUse", "timestamp": 1, "content": [
        {"type": "toolCall", "id": id, "name": "write", "arguments": {"path": path, "content": "x"}}]})
    };
    let done = |id: &str| {
        json!({"role": "toolResult", "toolCallId": id, "toolName": "write", "isError": false, "timestamp": 1,
        "content": [{"type": "text", "text": "Written."}]})
    };
    let mut messages = vec![user("Write the files.")];
    for file in ["a", "b", "c"] {
        messages.extend([write(file, &format!("src/{file}.rs")), done(file)]);
    }
    messages.extend([assistant("They are written."), user("Now read the large one."), calls(&["large"])]);
    messages.push(result("large", &text_of(6_000, "large")));
    daemon.append(&session, &messages);
    let answer = unapplied(&mut daemon, &session, json!({}));
    let result = &answer["result"];
    assert_eq!(result["shortened"], Value::Null, "{answer:#}");
    let tokens = |of: &Value| of["tokensAfter"].as_u64().expect("tokens");
    assert!(
        tokens(result) > result["kept"]["tokens"].as_u64().expect("tokens"),
        "the kept messages are whole: {answer:#}"
    );
    let summary = result["summary"].as_str().expect("a summary");
    assert!(summary.contains("src/a.rs"), "{summary}");
    assert_eq!(result["lost"]["files"], json!([]), "{answer:#}");
}

#[test]
fn the_request_of_a_long_turn_is_in_each_fit_of_a_loop_that_gives_the_summary_back() {
    const TASK: &str = "Find the harbour with the blue lighthouse,\nand say nothing else.";
    let mut daemon = Daemon::start();
    let mut messages = vec![user(TASK)];
    let mut previous = Value::Null;
    for round in 0..3 {
        for nth in 0..30 {
            let id = format!("c{round}-{nth}");
            let call = json!({"type": "toolCall", "id": id, "name": "look", "arguments": {"at": nth}});
            messages.push(json!({"role": "assistant", "content": [call]}));
            let text = format!("Place {round} {nth}. {}", "lorem ipsum dolor ".repeat(100));
            messages.push(json!({"role": "toolResult", "toolCallId": id, "content": [{"type": "text", "text": text}]}));
        }
        let params = json!({"messages": messages, "contextWindow": 14_000, "previousSummary": previous});
        let fitted = daemon.ok("context/fit", params);
        let sent = fitted["messages"].as_array().expect("messages");
        let said: Vec<String> = sent.iter().map(|message| message.to_string()).collect();
        assert_eq!(said.iter().filter(|it| it.contains("<user-message>")).count(), 1, "{said:#?}");
        assert!(said.iter().any(|it| it.contains("blue lighthouse,\\nand say nothing else.")), "round {round}");
        let summary = fitted["summary"].as_str().expect("a summary");
        assert!(summary.ends_with(&format!("<user-message>\n{TASK}\n</user-message>")), "{summary}");
        assert_eq!(summary.matches("<user-message>").count(), 1, "{summary}");
        previous = fitted["summary"].clone();
        messages.drain(..fitted["firstKeptIndex"].as_u64().expect("a place") as usize);
    }
    messages.push(user("Now say it."));
    let params =
        json!({"messages": messages, "contextWindow": 200_000, "previousSummary": previous, "keepRecentTokens": 10});
    let fitted = daemon.ok("context/fit", params);
    let summary = fitted["summary"].as_str().expect("a summary");
    assert!(!summary.contains("<user-message>"), "the newest request is kept as it is: {summary}");
}

#[test]
fn a_fit_that_only_shortens_messages_has_no_summary() {
    let mut daemon = Daemon::start();
    let messages = json!([user(&"A line of a large paste, with its number. ".repeat(5_000))]);
    let fitted = daemon.ok("context/fit", json!({"messages": messages, "contextWindow": 8_000}));
    assert_eq!((&fitted["summary"], fitted["tokensAfter"].as_u64() < Some(8_000)), (&Value::Null, true), "{fitted:#}");
    // A word that is worth no line by its kind is in the summary where it is all that was said.
    let paste = json!([
        user("Hello"),
        {"role": "assistant", "content": [{"type": "toolCall", "id": "c", "name": "look", "arguments": {}}]},
        {"role": "toolResult", "toolCallId": "c", "content": [{"type": "text", "text": "a word"}]},
        user(&"word ".repeat(50_000)),
    ]);
    let fitted = daemon.ok("context/fit", json!({"messages": paste, "contextWindow": 8_000}));
    assert_eq!(fitted["firstKeptIndex"], 1, "{fitted:#}");
    assert!(fitted["summary"].as_str().is_some_and(|summary| summary.contains("Hello")), "{}", fitted["summary"]);
}
