//! Made-up records with one fault each. The rule that the fault breaks reports it, and a record without one breaks none.

use super::super::record::{Broken, Line, Record};
use crate::support::{assistant, calls, entries, header, result, user};
use serde_json::{Value, json};
use std::{collections::BTreeMap, path::PathBuf};

/// The first broken rule of a record, and the place of the line that broke it.
fn judged(lines: &[Line]) -> Option<(usize, Broken)> {
    let mut record = Record::new();
    lines.iter().enumerate().find_map(|(at, line)| Some((at, record.push(line.clone()).err()?)))
}

fn sent(id: u64, method: &str, params: Value) -> Line {
    Line::Sent(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

fn got(id: u64, result: Value) -> Line {
    Line::Got(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

fn failed(id: u64, code: i64, name: &str) -> Line {
    let data = json!({"code": name, "retryable": false});
    Line::Got(json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "no", "data": data}}))
}

fn event(seq: u64, operation: Option<&str>, event: Value) -> Line {
    let mut params = json!({"sessionId": "s", "epoch": "e", "seq": seq, "ts": "2026-01-01T00:00:00.000Z", "durable": true, "event": event});
    if let Some(operation) = operation {
        params["operationId"] = json!(operation);
    }
    Line::Got(json!({"jsonrpc": "2.0", "method": "session/event", "params": params}))
}

fn settled(seq: u64) -> Line {
    event(seq, None, json!({"type": "settled", "aborted": false}))
}

fn begins(seq: u64) -> Line {
    event(seq, Some("op-1"), json!({"type": "idle_start", "contextTokens": 9, "idleSeconds": 1}))
}

fn ends(seq: u64, outcome: &str) -> Line {
    event(seq, Some("op-1"), json!({"type": "idle_end", "outcome": outcome}))
}

fn appended(seq: u64, id: &str) -> Line {
    let mut line = event(seq, None, json!({"type": "entry_appended", "entryType": "message"}));
    if let Line::Got(frame) = &mut line {
        frame["params"]["entryId"] = json!(id);
    }
    line
}

fn of_session() -> Value {
    json!({"sessionId": "s"})
}

fn file(name: &str, text: &str) -> (PathBuf, Vec<u8>) {
    (PathBuf::from(format!("/data/sessions/{name}")), text.as_bytes().to_vec())
}

fn files(of: &[(&str, &str)]) -> Line {
    Line::Files(of.iter().map(|(name, text)| file(name, text)).collect::<BTreeMap<_, _>>())
}

fn usage() -> Value {
    json!({
        "contextTokens": 0, "contextWindow": 8_192, "percent": 0.0, "thresholdTokens": 6_000, "reserveTokens": 500,
        "source": "estimate", "autoCompaction": true, "windowSource": "setting", "canUndo": false,
        "breakdown": {"system": 0, "tools": 0, "summary": 0, "messages": 0}, "estimator": "chars",
    })
}

fn context(messages: &[Value]) -> Value {
    json!({
        "messages": messages, "entryIds": vec![Value::Null; messages.len()], "contextId": "c", "usage": usage(),
        "compactionEntryId": null, "model": null, "maxOutputTokens": null,
    })
}

/// Two lines of a session file.
fn two_lines() -> (String, String) {
    let first = format!("{}\n", header("s"));
    let entry = format!("{}\n", entries(&[user("hello")])[0]);
    (first, entry)
}

#[test]
fn a_record_without_faults_breaks_no_rule() {
    let (first, entry) = two_lines();
    let both = format!("{first}{entry}");
    let torn = format!("{both}{{\"type\":");
    let talk = [user("hello"), calls(&["a", "b"]), result("b", "two"), result("a", "one"), assistant("done")];
    let again = json!({"sessionId": "s", "after": {"epoch": "e", "seq": 1}});
    let subscribed = json!({"epoch": "e", "seq": 4, "status": "ok", "replayed": 2, "snapshot": null});
    let lines = [
        Line::Started,
        sent(1, "ping", json!({})),
        sent(2, "session/context", of_session()),
        got(2, context(&talk)),
        got(1, json!({})),
        settled(1),
        begins(2),
        appended(3, "e0"),
        ends(4, "completed"),
        files(&[("s.jsonl", &both)]),
        sent(3, "session/subscribe", again),
        got(3, subscribed),
        begins(2),
        appended(3, "e0"),
        settled(5),
        sent(4, "session/unsubscribe", of_session()),
        got(4, Value::Null),
        settled(9),
        files(&[("s.jsonl", &torn)]),
        files(&[("s.jsonl", &format!("{both}{both}")), ("s.jsonl.torn", "{\"type\":")]),
        begins(10),
        Line::Sent(json!({"jsonrpc": "2.0", "id": 6})),
        failed(6, -32600, "invalid_request"),
        sent(5, "ping", json!({})),
        Line::Killed,
        Line::Started,
        event(11, Some("op-1"), json!({"type": "idle_end", "outcome": "failed"})),
        Line::Reopened { session: "s".to_owned(), before: context(&talk), after: context(&talk) },
        Line::Logged("a warning".to_owned()),
        Line::Ended,
    ];
    assert_eq!(judged(&lines), None);
}

/// Each record breaks the named rule with its last line and no rule before.
#[test]
fn every_rule_reports_its_faults() {
    let (first, entry) = two_lines();
    let both = format!("{first}{entry}");
    let (ping, asks) = (sent(1, "ping", json!({})), sent(1, "session/context", of_session()));
    let replay = |replayed: u64| {
        let after = json!({"sessionId": "s", "after": {"epoch": "e", "seq": 0}});
        let answer = json!({"epoch": "e", "seq": 2, "status": "ok", "replayed": replayed, "snapshot": null});
        [settled(1), begins(2), sent(3, "session/subscribe", after), got(3, answer)]
    };
    let body = json!({
        "body": {"model": "m", "max_tokens": 9, "messages": [{"role": "robot", "content": "x"}]}, "contextId": "c",
        "usage": usage(), "compactionEntryId": null, "model": null, "maxOutputTokens": null,
    });
    let large = json!({"type": "notice", "severity": "info", "code": "window_learned", "title": "x".repeat(70_000)});
    let mut short = context(&[user("hello")]);
    short["entryIds"] = json!([]);
    let none = || context(&[]);
    let rows: Vec<(&str, &str, Vec<Line>)> = vec![
        ("a frame", "a field of another type", vec![ping.clone(), got(1, json!(7))]),
        ("a frame", "no version", vec![ping.clone(), Line::Got(json!({"id": 1, "result": {}}))]),
        ("a frame", "a large event", vec![event(1, None, large)]),
        ("there are no defects", "an internal error", vec![ping.clone(), failed(1, -32603, "internal")]),
        ("there are no defects", "a panic", vec![Line::Logged("thread 'x' panicked at src/a.rs:1:1:\nno".to_owned())]),
        ("a request has one", "a second answer", vec![ping.clone(), got(1, json!({})), got(1, json!({}))]),
        ("a request has one", "an answer for nobody", vec![got(1, json!({}))]),
        (
            "a request has one",
            "two answers to a bare id",
            vec![
                Line::Sent(json!({"id": 6})),
                failed(6, -32600, "invalid_request"),
                failed(6, -32600, "invalid_request"),
            ],
        ),
        ("a request has one", "no answer until the end", vec![ping.clone(), Line::Ended]),
        ("a request has one", "no answer at all", vec![ping, Line::Overdue]),
        ("the numbers of events", "a gap", vec![settled(1), settled(3)]),
        ("the numbers of events", "a number twice", vec![settled(1), settled(1)]),
        ("the numbers of events", "a late beginning", vec![settled(2)]),
        ("the numbers of events", "another event again", [&replay(2)[..], &[settled(1), settled(2)]].concat()),
        ("the numbers of events", "an old event again", [&replay(2)[..], &[begins(2), settled(1)]].concat()),
        (
            "the numbers of events",
            "a gap after those that came again",
            [&replay(1)[..], &[settled(1), settled(4)]].concat(),
        ),
        ("a start has one end", "a second start", vec![begins(1), begins(2)]),
        ("a start has one end", "an end without a start", vec![ends(1, "completed")]),
        ("a start has one end", "a second end", vec![begins(1), ends(2, "completed"), ends(3, "failed")]),
        ("a start has one end", "a good end after a kill", vec![begins(1), Line::Killed, ends(2, "completed")]),
        (
            "a start has one end",
            "two ends after a kill",
            vec![begins(1), Line::Killed, ends(2, "failed"), ends(3, "failed")],
        ),
        (
            "a start has one end",
            "no end until the close",
            vec![begins(1), sent(1, "session/close", of_session()), got(1, Value::Null)],
        ),
        ("a start has one end", "no end until the end", vec![begins(1), Line::Ended]),
        ("a start has one end", "no end at all", vec![begins(1), Line::Overdue]),
        (
            "session files only grow",
            "another byte",
            vec![files(&[("s.jsonl", &both)]), files(&[("s.jsonl", &both.replace("hello", "hallo"))])],
        ),
        (
            "session files only grow",
            "a shorter file",
            vec![files(&[("s.jsonl", &both)]), files(&[("s.jsonl", &first)])],
        ),
        (
            "session files only grow",
            "a torn line that is nowhere",
            vec![files(&[("s.jsonl", "{}\n{\"a")]), files(&[("s.jsonl", "{}\n")])],
        ),
        ("session files only grow", "no file", vec![files(&[("s.jsonl", &both)]), files(&[])]),
        ("session files only grow", "an entry that is nowhere", vec![appended(1, "e7"), files(&[("s.jsonl", &both)])]),
        (
            "a context is valid",
            "a call without a result",
            vec![asks.clone(), got(1, context(&[user("x"), calls(&["a"]), user("y")]))],
        ),
        ("a context is valid", "a result without a call", vec![asks.clone(), got(1, context(&[result("a", "x")]))]),
        ("a context is valid", "a message without an id", vec![asks, got(1, short)]),
        (
            "a context is valid",
            "a body that is refused",
            vec![sent(1, "session/context", json!({"sessionId": "s", "format": "anthropic"})), got(1, body)],
        ),
        (
            "a context is valid",
            "another message after",
            vec![Line::Reopened { session: "s".to_owned(), before: context(&[user("x")]), after: none() }],
        ),
    ];
    for (rule, fault, lines) in rows {
        let all: Vec<Line> = std::iter::once(Line::Started).chain(lines).collect();
        let (at, broken) = judged(&all).unwrap_or_else(|| panic!("{fault} is not found"));
        assert!(broken.rule.starts_with(rule), "{fault} broke {broken}");
        assert_eq!(at + 1, all.len(), "{fault}: {broken}");
    }
}
