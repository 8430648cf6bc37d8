//! Usage that a host appends and that cannot be true: the session goes on, and compacts in time.

use crate::support::{Daemon, assistant, text_of, user};
use serde_json::{Value, json};

const WINDOW: u64 = 16_000;

fn session(daemon: &mut Daemon) -> String {
    let model = json!({"provider": "maker", "id": "m", "contextWindow": WINDOW});
    let settings = json!({"models": [model], "tokens": {"estimator": "chars"}});
    let new = json!({"cwd": "/project", "model": "maker/m", "settings": settings});
    daemon.new_session(new)
}

/// Usage of an answer to a request of this many tokens, in the turn of this number.
type Report = fn(u64, u64) -> Value;

/// Runs 40 turns of about 800 tokens with these reports. Each context fits the window, by the size of its text.
fn run(name: &str, report: Report) {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon);
    let format = "openai_chat";
    for turn in 0..40 {
        let request = format!("Turn {turn}: {}", text_of(500, "ask"));
        let params =
            json!({"sessionId": session, "format": format, "messages": [{"role": "user", "content": request}]});
        daemon.ok("session/append", params);
        let asked = json!({"sessionId": session, "format": format, "wait": true});
        let context = daemon.ok("session/context", asked);
        let text = context["body"]["messages"].to_string();
        // The texts of this test have more than four characters for a token of every tokenizer.
        let size = text.len() as u64 / 4;
        assert!(size <= WINDOW, "{name}, turn {turn}: {size} tokens are over the window: {}", context["usage"]);
        assert!(text.contains(&format!("Turn {turn}: ")), "{name}, turn {turn}");
        let answer = json!([{"role": "assistant", "content": text_of(300, "answer")}]);
        let mut params = json!({"sessionId": session, "format": format, "messages": answer, "stopReason": "stop"});
        params["usage"] = report(turn, size);
        daemon.ok("session/append", params);
    }
    daemon.context(&session);
    let (starts, ends) = (daemon.count("compaction_start"), daemon.count("compaction_end"));
    assert_eq!(starts, ends, "{name}");
    // About one in five turns. A report over the window counts as an overflow, which costs a compaction.
    assert!((2..=20).contains(&starts), "{name}: {starts} compactions");
}

#[test]
fn reports_that_cannot_be_true_leave_each_context_inside_the_window() {
    let rows: [(&str, Report); 10] = [
        ("true", |_, size| json!({"prompt_tokens": size, "completion_tokens": 300})),
        ("none", |_, _| Value::Null),
        ("zero", |_, _| json!({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0})),
        ("absurd", |turn, size| match turn % 4 {
            3 => json!({"prompt_tokens": 1e15, "completion_tokens": 300}),
            _ => json!({"prompt_tokens": size, "completion_tokens": 300}),
        }),
        ("always absurd", |_, _| json!({"prompt_tokens": 1e15, "completion_tokens": 300})),
        ("large", |turn, size| match turn % 4 {
            3 => json!({"prompt_tokens": 90_000_000_u64, "completion_tokens": 300}),
            _ => json!({"prompt_tokens": size, "completion_tokens": 300}),
        }),
        ("decreasing", |turn, _| json!({"prompt_tokens": 4_000 - 100 * turn, "completion_tokens": 300})),
        ("the output alone", |_, _| json!({"completion_tokens": 300})),
        ("a total alone", |_, size| json!({"total_tokens": size + 300})),
        ("the newest message alone", |_, _| json!({"prompt_tokens": 500, "completion_tokens": 300})),
    ];
    crate::support::at_once(rows, |(name, report)| run(name, report));
}

/// An answer of another model, whose tokenizer counts otherwise.
#[test]
fn a_report_of_another_model_does_not_stop_the_threshold() {
    for factor in [5_u64, 30] {
        let mut daemon = Daemon::start();
        let session = session(&mut daemon);
        for turn in 0..40 {
            let request = json!({"role": "user", "content": format!("Turn {turn}: {}", text_of(500, "ask"))});
            daemon.append(&session, &[request]);
            let context = daemon.context(&session);
            let size = context["messages"].to_string().len() as u64 / 4;
            assert!(size <= WINDOW, "turn {turn}: {size}");
            let other = turn % 3 == 0;
            let usage = json!({"input": if other { size * factor / 10 } else { size }, "output": 300, "cacheRead": 0,
                "cacheWrite": 0, "totalTokens": 0});
            let answer = json!({"role": "assistant", "content": text_of(300, "answer"), "usage": usage, "stopReason": "stop",
                "provider": "maker", "model": if other { "other" } else { "m" }});
            daemon.append(&session, &[answer]);
        }
    }
}

/// Some providers add the limit of the answer to the request, and refuse a sum over the window.
#[test]
fn a_size_that_nobody_reported_leaves_a_twentieth_of_it_free() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon);
    daemon.append(&session, &[user(&text_of(6_000, "ask"))]);
    let free = |context: &Value| {
        let number = |value: &Value| value.as_u64().expect("a number");
        let tokens = number(&context["usage"]["contextTokens"]);
        (tokens, WINDOW - tokens - number(&context["maxOutputTokens"]))
    };
    let (tokens, left) = free(&daemon.context(&session));
    assert_eq!(left, tokens / 20);
    let mut answer = assistant("Read.");
    answer["usage"] =
        json!({"input": tokens, "output": 20, "cacheRead": 0, "cacheWrite": 0, "totalTokens": tokens + 20});
    daemon.append(&session, &[answer, user("On.")]);
    assert_eq!(free(&daemon.context(&session)).1, WINDOW / 100);
}
