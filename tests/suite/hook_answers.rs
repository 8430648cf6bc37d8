//! Answers to hooks as no client should give them. The compaction ends all the same, and the daemon goes on.

use crate::support::{Daemon, session_of, turns};
use serde_json::{Value, json};
use std::{collections::BTreeMap, time::Duration};

const BEFORE: &str = "hook/session_before_compact";
const COMPACTING: &str = "hook/session_compacting";

/// It only bounds how long a failure hangs.
const LONG: Duration = Duration::from_secs(60);

/// A daemon with a session of thirty turns and this registration.
fn asked_by(registration: Value) -> (Daemon, String) {
    let mut daemon = Daemon::start();
    let path = session_of(&daemon.home, "shell", &turns(30));
    let session = daemon.load(&path);
    daemon.ok("hooks/set", registration);
    (daemon, session)
}

/// The registration of one hook.
fn only(hook: &str) -> Value {
    json!({"events": [hook]})
}

fn compact(daemon: &mut Daemon, session: &str) -> u64 {
    daemon.begin("session/compact", json!({"sessionId": session, "keepRecentTokens": 1_000, "wait": true}))
}

/// Waits for a request of the daemon; its id. What comes before it is kept.
fn asked(daemon: &mut Daemon, method: &str) -> String {
    let request = daemon.next_within(LONG, |frame| frame["method"] == method).expect("the daemon asks");
    request["id"].as_str().expect("an id").to_owned()
}

fn answer(daemon: &mut Daemon, id: &str, result: Value) {
    daemon.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
}

fn replace(summary: &str) -> Value {
    json!({"action": "replace", "compaction": {"summary": summary}})
}

/// Counts of the events so far that begin or end something.
fn starts_and_ends(daemon: &Daemon) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for kind in daemon.kinds().into_iter().filter(|kind| kind.ends_with("_start") || kind.ends_with("_end")) {
        *counts.entry(kind).or_default() += 1;
    }
    counts
}

/// The ends of hooks so far: hook and outcome.
fn ends(daemon: &Daemon) -> Vec<(String, String)> {
    let events = daemon.events.iter().map(|frame| &frame["params"]["event"]);
    let ends = events.filter(|event| event["type"] == "hook_end");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    ends.map(|event| (text(&event["hook"]), text(&event["outcome"]))).collect()
}

/// The text of the end of a hook.
fn said(daemon: &Daemon) -> String {
    let events = daemon.events.iter().map(|frame| &frame["params"]["event"]);
    let end = events.rev().find(|event| event["type"] == "hook_end").expect("an end");
    end["errorMessage"].as_str().expect("a text").to_owned()
}

/// The daemon has one end for each start, and answers the next request.
fn is_sound(daemon: &mut Daemon, session: &str, about: &str) {
    daemon.until("settled");
    let counts = starts_and_ends(daemon);
    for (start, count) in counts.iter().filter(|(kind, _)| kind.ends_with("_start")) {
        assert_eq!(counts.get(&start.replace("_start", "_end")), Some(count), "{about}: {counts:?}");
    }
    let status = daemon.ok("session/status", json!({"sessionId": session}));
    assert_eq!((&status["session"]["status"]["type"], &status["operations"]), (&json!("idle"), &json!([])), "{about}");
}

#[test]
fn an_answer_in_a_wrong_form_is_an_error_of_the_hook_and_the_compaction_goes_on() {
    let huge = "x".repeat(2 << 20);
    let rows = [
        (BEFORE, json!({"result": 7})),
        (BEFORE, json!({"result": "continue"})),
        (BEFORE, json!({"result": []})),
        (BEFORE, json!({"result": {}})),
        (BEFORE, json!({"result": {"action": "explode"}})),
        (BEFORE, json!({"result": {"action": 7}})),
        (BEFORE, json!({"result": {"action": "replace"}})),
        (BEFORE, json!({"result": {"action": "replace", "compaction": "a summary"}})),
        (BEFORE, json!({"result": {"action": "replace", "compaction": {}}})),
        (BEFORE, json!({"result": {"action": "replace", "compaction": {"summary": 7}}})),
        (BEFORE, json!({"result": {"action": "replace", "compaction": {"summary": "s", "preserveData": "x"}}})),
        (BEFORE, json!({"result": {"action": "replace", "compaction": {"summary": "s", "firstKeptEntryId": 7}}})),
        (BEFORE, json!({"result": replace(&huge)})),
        (BEFORE, json!({"error": {"code": -32603, "message": "broken"}})),
        (BEFORE, json!({"error": "broken"})),
        (BEFORE, json!({"error": {"code": "none"}, "result": {"action": "cancel"}})),
        (COMPACTING, json!({"result": 7})),
        (COMPACTING, json!({"result": {"context": "one line"}})),
        (COMPACTING, json!({"result": {"context": [7]}})),
        (COMPACTING, json!({"result": {"prompt": ["a"]}})),
        (COMPACTING, json!({"result": {"preserveData": [1]}})),
        (COMPACTING, json!({"result": {"preserveData": {"abridged": {}}}})),
        (COMPACTING, json!({"result": {"context": [huge]}})),
        (COMPACTING, json!({"error": {"code": -32601, "message": "no such method"}})),
    ];
    let mut daemon = Daemon::start();
    for (row, (hook, frame)) in rows.into_iter().enumerate() {
        let path = session_of(&daemon.home, &format!("session-{row}"), &turns(30));
        let session = daemon.load(&path);
        daemon.ok("hooks/set", only(hook));
        daemon.events.clear();
        let shown: String = frame.to_string().chars().take(120).collect();
        let compaction = compact(&mut daemon, &session);
        let id = asked(&mut daemon, hook);
        let mut sent = json!({"jsonrpc": "2.0", "id": id});
        sent.as_object_mut().expect("an object").extend(frame.as_object().expect("an object").clone());
        daemon.send(&sent);
        let end = daemon.answer(compaction).expect("an end");
        assert_eq!((&end["outcome"], &end["result"]["method"]), (&json!("completed"), &json!("extractive")), "{shown}");
        let name = hook.trim_start_matches("hook/").to_owned();
        assert_eq!(ends(&daemon), [(name, "error".to_owned())], "{shown}");
        let said = said(&daemon);
        for word in ["struct", "variant", "sequence", "map", "newtype", "column", "u64"] {
            assert!(!said.split(' ').any(|part| part.contains(word)), "{word} in {said}");
        }
        is_sound(&mut daemon, &session, &shown);
    }
}

#[test]
fn an_answer_in_a_wrong_form_is_an_error_with_the_path_of_the_wrong_value() {
    for (hook, result, says) in [
        (BEFORE, json!(7), "invalid type: integer `7`, expected an object with `action`"),
        (BEFORE, json!({}), "action: missing field `action`"),
        (
            BEFORE,
            json!({"action": "replce"}),
            "action: unknown value `replce`, expected one of `continue`, `cancel`, `replace`; did you mean `replace`?",
        ),
        (BEFORE, json!({"action": "replace"}), "compaction: missing field `compaction`"),
        (
            BEFORE,
            json!({"action": "replace", "compaction": {"summary": 7}}),
            "compaction.summary: invalid type: integer `7`, expected a string",
        ),
        (BEFORE, json!({"action": "replace", "compaction": {}}), "compaction.summary: missing field `summary`"),
        (BEFORE, json!({"action": "cancel", "reason": []}), "reason: invalid type: list, expected a string"),
        (COMPACTING, json!({"context": ["a", 7]}), "context[1]: invalid type: integer `7`, expected a string"),
        (COMPACTING, json!({"preserveData": [1]}), "preserveData: expected an object"),
    ] {
        let (mut daemon, session) = asked_by(only(hook));
        let compaction = compact(&mut daemon, &session);
        let id = asked(&mut daemon, hook);
        answer(&mut daemon, &id, result.clone());
        daemon.answer(compaction).expect("an end");
        assert_eq!(said(&daemon), format!("the client's answer cannot be read: {says}"), "{result}");
    }
}

#[test]
fn an_answer_without_a_decision_goes_on() {
    for (hook, result) in [
        (BEFORE, json!(null)),
        (BEFORE, json!({"action": "continue", "more": {"a": 1}})),
        (COMPACTING, json!(null)),
        (COMPACTING, json!({})),
        (COMPACTING, json!({"context": null, "prompt": null, "preserveData": null})),
        (COMPACTING, json!({"context": [], "prompt": "", "preserveData": {}})),
        (COMPACTING, json!({"context": ["", "  "], "preserveData": []})),
    ] {
        let (mut daemon, session) = asked_by(only(hook));
        let compaction = compact(&mut daemon, &session);
        let id = asked(&mut daemon, hook);
        answer(&mut daemon, &id, result.clone());
        let end = daemon.answer(compaction).expect("an end");
        assert_eq!(end["outcome"], "completed", "{hook} {result}");
        assert_eq!(ends(&daemon), [(hook.trim_start_matches("hook/").to_owned(), "ok".to_owned())], "{hook} {result}");
        is_sound(&mut daemon, &session, hook);
    }
}

#[test]
fn a_second_answer_is_forgotten() {
    let (mut daemon, session) = asked_by(only(BEFORE));
    let compaction = compact(&mut daemon, &session);
    let id = asked(&mut daemon, BEFORE);
    for result in [replace("The first answer."), replace("The second answer."), json!({"action": "cancel"})] {
        answer(&mut daemon, &id, result);
    }
    daemon.send(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32603, "message": "the third"}}));
    let end = daemon.answer(compaction).expect("an end");
    assert_eq!((&end["outcome"], &end["result"]["summary"]), (&json!("completed"), &json!("The first answer.")));
    is_sound(&mut daemon, &session, "twice");
    let strays: Vec<_> = daemon.events.iter().filter(|frame| frame.get("error").is_some()).collect();
    assert!(strays.is_empty(), "an answer is not answered: {strays:#?}");
}

#[test]
fn an_answer_is_found_by_its_id_alone() {
    let (mut daemon, session) = asked_by(only(BEFORE));
    let compaction = compact(&mut daemon, &session);
    let id = asked(&mut daemon, BEFORE);
    for other in [json!(1), json!("srv-999"), json!(null), json!(format!("{id} ")), json!([id])] {
        daemon.send(&json!({"jsonrpc": "2.0", "id": other, "result": {"action": "cancel"}}));
    }
    // An answer in a batch, between requests.
    let ping = |id: &str| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    daemon.send(&json!([ping("p1"), {"jsonrpc": "2.0", "id": id, "result": replace("By the batch.")}, ping("p2")]));
    let end = daemon.answer(compaction).expect("an end");
    assert_eq!(end["result"]["summary"], "By the batch.");
    is_sound(&mut daemon, &session, "ids");
}

#[test]
fn a_late_answer_is_forgotten_and_the_request_is_taken_back() {
    let (mut daemon, session) = asked_by(json!({"events": ["session_before_compact"], "timeoutMs": 100}));
    let compaction = compact(&mut daemon, &session);
    let id = asked(&mut daemon, BEFORE);
    let end = daemon.answer(compaction).expect("an end");
    assert_eq!((&end["outcome"], &end["result"]["method"]), (&json!("completed"), &json!("extractive")));
    assert_eq!(ends(&daemon), [("session_before_compact".to_owned(), "timeout".to_owned())]);
    let taken: Vec<_> = daemon.events.iter().filter(|frame| frame["method"] == "$/cancelRequest").collect();
    assert_eq!(taken.iter().map(|frame| &frame["params"]["id"]).collect::<Vec<_>>(), [&json!(id)]);
    answer(&mut daemon, &id, replace("Too late."));
    is_sound(&mut daemon, &session, "late");
    let context = daemon.ok("session/context", json!({"sessionId": session}));
    assert!(!context.to_string().contains("Too late."));
}

#[test]
fn an_answer_behind_a_cancel_is_forgotten() {
    for hook in [BEFORE, COMPACTING] {
        let (mut daemon, session) = asked_by(only(hook));
        let compaction = compact(&mut daemon, &session);
        let id = asked(&mut daemon, hook);
        let cancelled = daemon.ok("session/cancel", json!({"sessionId": session}));
        assert_eq!(cancelled["cancelled"][0]["kind"], "compaction", "{cancelled}");
        answer(&mut daemon, &id, replace("Behind the cancel."));
        let end = daemon.answer(compaction).expect("an end");
        assert_eq!(end["outcome"], "cancelled", "{hook}");
        assert_eq!(ends(&daemon), [(hook.trim_start_matches("hook/").to_owned(), "cancelled".to_owned())]);
        is_sound(&mut daemon, &session, hook);
        let entries = daemon.ok("session/entries", json!({"sessionId": session, "types": ["compaction"]}));
        assert_eq!(entries["entries"], json!([]), "{hook}");
    }
}

#[test]
fn an_answer_larger_than_a_frame_is_none() {
    let (mut daemon, session) = asked_by(json!({"events": ["session_before_compact"], "timeoutMs": 1_000}));
    let compaction = compact(&mut daemon, &session);
    let id = asked(&mut daemon, BEFORE);
    let head = format!(r#"{{"jsonrpc":"2.0","id":"{id}","result":{{"action":"replace","compaction":{{"summary":""#);
    daemon.write(head.as_bytes());
    let part = "x".repeat(1 << 20);
    for _ in 0..100 {
        daemon.write(part.as_bytes());
    }
    daemon.write(b"\"}}}\n");
    let end = daemon.answer(compaction).expect("an end");
    assert_eq!((&end["outcome"], &end["result"]["method"]), (&json!("completed"), &json!("extractive")));
    let [(_, outcome)] = ends(&daemon).try_into().expect("one end");
    assert!(["timeout", "error"].contains(&outcome.as_str()), "{outcome}");
    is_sound(&mut daemon, &session, "100 MB");
}

#[test]
fn an_event_stays_under_its_limit_with_a_large_answer() {
    let huge = "word ".repeat(40_000);
    let with = |mut more: Value| {
        more["summary"] = json!("A summary.");
        json!({"result": {"action": "replace", "compaction": more}})
    };
    for (row, completed) in [
        (with(json!({"details": {"text": huge}})), "hook"),
        (with(json!({"shortSummary": "word ".repeat(15_000)})), "hook"),
        (with(json!({"firstKeptEntryId": huge})), "extractive"),
        (json!({"result": {"action": huge}}), "extractive"),
        (json!({"error": {"code": -32603, "message": huge}}), "extractive"),
        (json!({"result": {"action": "cancel", "reason": huge}}), "cancelled"),
    ] {
        let mut daemon = Daemon::start();
        let path = session_of(&daemon.home, "large", &turns(1_000));
        let session = daemon.load(&path);
        daemon.ok("hooks/set", only(BEFORE));
        let compaction = compact(&mut daemon, &session);
        let mut frame = row.clone();
        frame["jsonrpc"] = json!("2.0");
        frame["id"] = json!(asked(&mut daemon, BEFORE));
        daemon.send(&frame);
        let shown: String = row.to_string().chars().take(120).collect();
        let end = daemon.answer(compaction).expect("an end");
        let method = end["result"]["method"].as_str().unwrap_or("cancelled");
        assert_eq!(method, completed, "{shown}");
        is_sound(&mut daemon, &session, &shown);
        let longest = daemon.events.iter().map(|event| event.to_string().len()).max();
        assert!(longest.is_some_and(|bytes| bytes < 60 * 1024), "{longest:?} bytes: {shown}");
        let entries = daemon.ok("session/entries", json!({"sessionId": session, "types": ["compaction"]}));
        let stored = entries["entries"][0]["details"]["text"].as_str().map(str::len);
        assert_eq!(stored, row["result"]["compaction"]["details"]["text"].as_str().map(str::len), "{shown}");
    }
}

#[test]
fn a_hook_may_ask_everything_while_it_is_asked() {
    let (mut daemon, session) = asked_by(only(BEFORE));
    let compaction = compact(&mut daemon, &session);
    let request = daemon.next_within(LONG, |frame| frame["method"] == BEFORE).expect("the daemon asks");
    let plan = &request["params"]["preparation"];
    let first = plan["messagesToSummarize"]["firstEntryId"].clone();
    let of = |mut more: Value| {
        more["sessionId"] = json!(session);
        more
    };
    assert_eq!(daemon.ok("session/entry", of(json!({"entryId": first})))["entry"]["id"], first);
    let page = daemon.ok("session/entries", of(json!({"since": first, "limit": 5})));
    assert_eq!(page["entries"].as_array().map(Vec::len), Some(5));
    daemon.ok("session/search", of(json!({"query": "part_3"})));
    daemon.ok("session/usage", of(json!({})));
    assert_eq!(daemon.ok("session/status", of(json!({})))["session"]["status"]["type"], "compacting");
    let busy = daemon.err("session/compact", of(json!({"wait": true})));
    assert_eq!(busy["data"]["code"], "busy");
    let appended = daemon.append(&session, &turns(31)[120..]);
    assert_eq!(appended["entryIds"].as_array().map(Vec::len), Some(4));
    let id = request["id"].as_str().expect("an id");
    answer(&mut daemon, id, replace("Asked a lot."));
    let end = daemon.answer(compaction).expect("an end");
    assert_eq!((&end["outcome"], &end["result"]["summary"]), (&json!("completed"), &json!("Asked a lot.")));
    is_sound(&mut daemon, &session, "calls back");
}

#[test]
fn a_registration_during_a_compaction_counts_for_the_next_one() {
    let (mut daemon, session) = asked_by(json!({"events": ["session_before_compact", "session_compacting"]}));
    let compaction = compact(&mut daemon, &session);
    let id = asked(&mut daemon, BEFORE);
    daemon.ok("hooks/set", json!({"events": []}));
    assert_eq!(daemon.ok("session/status", json!({"sessionId": session}))["hooks"], Value::Null);
    answer(&mut daemon, &id, json!({"action": "continue"}));
    // The compaction keeps the hooks that it began with.
    let id = asked(&mut daemon, COMPACTING);
    daemon.ok("hooks/set", json!({"events": ["session_before_compact"], "sessionIds": [session], "timeoutMs": 60_000}));
    answer(&mut daemon, &id, json!({"preserveData": {"mine": {"n": 1}}}));
    assert_eq!(daemon.answer(compaction).expect("an end")["outcome"], "completed");
    is_sound(&mut daemon, &session, "the first");
    daemon.append(&session, &turns(40)[120..]);
    let next = compact(&mut daemon, &session);
    let request = daemon.next_within(LONG, |frame| frame["method"] == BEFORE).expect("the daemon asks");
    assert_eq!(request["params"]["deadlineMs"], 60_000);
    assert_eq!(request["params"]["preparation"]["previousPreserveData"], json!({"mine": {"n": 1}}));
    answer(&mut daemon, request["id"].as_str().expect("an id"), replace("The next one."));
    assert_eq!(daemon.answer(next).expect("an end")["result"]["summary"], "The next one.");
    is_sound(&mut daemon, &session, "the next");
}

#[test]
fn a_client_that_ends_while_it_is_asked_leaves_the_session_as_it_was() {
    let (mut daemon, session) = asked_by(only(BEFORE));
    compact(&mut daemon, &session);
    asked(&mut daemon, BEFORE);
    let (status, took) = daemon.end();
    assert!(status.success() && took < Duration::from_secs(10), "{status} after {took:?}");
    let counts = starts_and_ends(&daemon);
    assert_eq!((counts["compaction_start"], counts["compaction_end"], counts["hook_end"]), (1, 1, 1), "{counts:?}");
}
