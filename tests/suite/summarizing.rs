//! Summaries by models, through the real binary and a provider on loopback.

use crate::{
    provider::{Asked, Format, Provider, Step},
    support::{Daemon, Home, session_of, turns},
};
use serde_json::{Value, json};
use std::path::PathBuf;

/// A summary as a good model writes it, with a word by which it is known again.
pub fn good(word: &str) -> String {
    format!(
        "## Goal\nFix the parser ({word}).\n\n## Constraints & Preferences\n- never change the lock files\n\n## Progress\n\
         ### Done\n- [x] looked at the parts\n### In Progress\n- [ ] the rest\n### Blocked\n(none)\n\n## Key Decisions\n\
         (none)\n\n## Next Steps\n1. go on\n\n## Critical Context\n- value_1 is set"
    )
}

/// A good model: it answers what each request asks for.
pub fn good_model(asked: &Asked) -> Step {
    let text = asked.text();
    let said = if text.contains("at most two sentences") {
        "Looked at the parts of the parser. The rest is to be done.".to_owned()
    } else if text.contains("the beginning of one long turn") {
        "## Original Request\nlook at everything\n\n## Early Progress\n- read the first parts\n\n## Context for the Rest\n- none"
            .to_owned()
    } else {
        good("by the model")
    };
    Step::answer(&said)
}

/// Settings with one model at this provider.
pub fn settings(provider: &Provider, format: Format, more: Value) -> String {
    let mut settings = json!({
        "defaultModel": "test/model",
        "models": [{"provider": "test", "id": "model", "api": format.api(), "baseUrl": provider.base_url(), "contextWindow": 100_000}],
        "tokens": {"estimator": "chars"},
        "retry": {"baseDelayMs": 20},
    });
    merge(&mut settings, more);
    settings.to_string()
}

pub fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more,
    }
}

/// A daemon with these settings and a session of so many turns.
pub fn session(settings: &str, messages: &[Value]) -> (Daemon, String, PathBuf) {
    let home = Home::new();
    home.settings(settings);
    let path = session_of(&home, "s", messages);
    let mut daemon = Daemon::at(home);
    let id = daemon.load(&path);
    (daemon, id, path)
}

pub fn compact(daemon: &mut Daemon, session: &str, more: Value) -> Value {
    let mut params = json!({"sessionId": session, "keepRecentTokens": 600, "wait": true});
    merge(&mut params, more);
    daemon.ok("session/compact", params)
}

pub fn events<'a>(daemon: &'a Daemon, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    daemon.events.iter().map(|frame| &frame["params"]["event"]).filter(move |event| event["type"] == kind)
}

#[test]
fn a_model_writes_the_summary_in_every_format() {
    for format in Format::ALL {
        let provider = Provider::start(format);
        provider.otherwise(good_model);
        let (mut daemon, session, _) = session(&settings(&provider, format, json!({})), &turns(20));
        let answer = compact(&mut daemon, &session, json!({}));
        assert_eq!(answer["outcome"], "completed", "{answer:#}");
        let result = &answer["result"];
        assert_eq!(result["method"], "llm", "{format:?}: {result:#}");
        assert_eq!(result["model"], json!({"provider": "test", "id": "model"}));
        assert_eq!(result["rejected"], json!([]));
        assert!(result["summary"].as_str().expect("a text").contains("by the model"));
        assert_eq!(result["shortSummary"], "Looked at the parts of the parser. The rest is to be done.");
        let told: String = events(&daemon, "summary_chunk")
            .filter(|it| it["source"] == "history")
            .filter_map(|it| it["text"].as_str())
            .collect();
        assert!(told.contains("by the model"), "{told}");
        assert!(provider.asked().iter().all(|asked| asked.refused.is_none()), "{format:?}");
        let seen = daemon.ok("session/context", json!({"sessionId": session}))["messages"].clone();
        assert!(seen[0].to_string().contains("by the model"));
    }
}
