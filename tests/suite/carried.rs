//! Pins and open tasks behind everything that changes a context: every trigger of a compaction, every way to another branch or
//! session, every method of a summary.

use crate::{
    hooks::{Client, Hooked, Method, TRIGGERS, Trigger, settings},
    provider::{Asked, Format, Provider, Step},
    remote::{Reply, Service},
    summarizing::{good, good_model},
    support::{assistant, at_once, text_of, user},
    todos::written,
};
use serde_json::{Value, json};

/// A change of the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Compaction(Trigger),
    Reset,
    /// To another branch behind the pins and the list.
    Navigation,
    /// The same with a summary of the branch that is left.
    Summary,
    ForkAt,
    ForkBefore,
    /// A fork of a compacted session.
    ForkOfCompacted,
    NewSession,
    Handoff,
}

/// The way in which summaries are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Extraction,
    Model,
    Hook,
}

impl Way {
    fn all() -> impl Iterator<Item = Self> {
        let others = [
            Self::Reset,
            Self::Navigation,
            Self::Summary,
            Self::ForkAt,
            Self::ForkBefore,
            Self::ForkOfCompacted,
            Self::NewSession,
            Self::Handoff,
        ];
        TRIGGERS.into_iter().map(Self::Compaction).chain(others)
    }

    /// Whether open tasks are carried. A reset clears them, and the document of a handoff tells them in its own words.
    fn carries_todos(self) -> bool {
        !matches!(self, Self::Reset | Self::Handoff)
    }
}

/// Texts whose bytes would not survive a careless copy.
const ENTRY: &str = "Pinned:  never push\n\n\tto `main`; \u{fc}n\u{ef}c\u{f6}d\u{e9} & <b>\"quoted\"</b>  \\n.";
const TEXT: &str = "  Use port 4711,\u{2028}always.\n- [ ] no task";

/// A document for a new session, as a model or a person writes it.
const DOCUMENT: &str = "## Goal\nFinish the parser.\n\n## Constraints & Preferences\n- be brief\n\n## State of the Work\nThe parts \
                        were looked at.\n\n## What Was Learned\nvalue_1 is set.\n\n## Next Steps\n1. Run the tests.\n\n## Files to \
                        Read First\n- /project/src/parser.rs, the parser.";

/// The texts of a context, message by message.
fn texts(messages: &Value) -> Vec<String> {
    let text = |message: &Value| match &message["content"] {
        Value::String(text) => text.clone(),
        content => {
            let blocks = content.as_array().into_iter().flatten();
            blocks.filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
        }
    };
    messages.as_array().into_iter().flatten().map(text).collect()
}

fn play(way: Way, by: By) {
    let at = format!("{way:?} {by:?}");
    let provider = Provider::start(Format::OpenAiChat);
    provider.otherwise(|asked: &Asked| match asked.text().contains("## Files to Read First") {
        true => Step::answer(DOCUMENT),
        false => good_model(asked),
    });
    let service = Service::start(|_| Reply::json(&json!({"summary": good("by the service")})));
    let method = if by == By::Model { Method::Llm } else { Method::Extractive };
    let client = if by == By::Hook { Client::Replaces } else { Client::Continues };
    let mut hooked = Hooked::start(&settings(method, &provider, &service), client);
    let list = [("read the store", "completed"), ("mend the store", "in_progress"), ("test it", "pending")];
    let first = hooked.append(&[user(ENTRY), assistant("I will keep to it.")])["entryIds"].clone();
    hooked.ok("session/pin", json!({"entryId": first[0]}));
    hooked.ok("session/pin", json!({"text": TEXT}));
    let listed =
        hooked.append(&[written("w0", &list).to_vec(), vec![assistant("Noted.")]].concat())["entryIds"].clone();
    let branch = listed[2].clone();
    let history = hooked.append(&[
        user(&text_of(7_000, "one")),
        assistant("Read."),
        user(&text_of(7_000, "two")),
        assistant("Read, too."),
    ])["entryIds"]
        .clone();
    let wait = json!({"wait": true});
    let navigate = |hooked: &mut Hooked, summarize: bool| {
        let params = json!({"targetEntryId": branch, "summarize": summarize, "wait": true});
        let moved = hooked.ok("session/navigate", params);
        assert_eq!(moved["outcome"], "completed", "{at}: {moved:#}");
        moved
    };
    let fork = |hooked: &mut Hooked, params: Value| hooked.ok("session/fork", params)["session"]["sessionId"].clone();
    let mut elsewhere = Value::Null;
    match way {
        Way::Compaction(trigger) => drop(hooked.run(trigger, method)),
        Way::Reset => drop(hooked.ok("session/reset", json!({}))),
        Way::Navigation => drop(navigate(&mut hooked, false)),
        Way::Summary => assert!(navigate(&mut hooked, true)["summaryEntryId"].is_string(), "{at}"),
        Way::ForkAt => elsewhere = fork(&mut hooked, json!({"entryId": history[1], "position": "at"})),
        Way::ForkBefore => elsewhere = fork(&mut hooked, json!({"entryId": history[2]})),
        Way::ForkOfCompacted => {
            hooked.run(Trigger::Manual, method);
            elsewhere = fork(&mut hooked, json!({}));
        }
        Way::NewSession => {
            let mut params = json!({"newSession": true, "wait": true});
            if by == By::Model {
                params["method"] = "llm".into();
            }
            let ended = hooked.ok("session/compact", params);
            assert_eq!(ended["outcome"], "completed", "{at}: {ended:#}");
            elsewhere = ended["newSessionId"].clone();
        }
        Way::Handoff => {
            let mut params = wait;
            if by != By::Model {
                params["document"] = DOCUMENT.into();
            }
            let ended = hooked.ok("session/handoff", params);
            assert_eq!(ended["outcome"], "completed", "{at}: {ended:#}");
            elsewhere = ended["newSessionId"].clone();
        }
    }
    if let Some(session) = elsewhere.as_str() {
        hooked.session = session.to_owned();
    }
    for reopened in [false, true] {
        if reopened {
            let path = hooked.ok("session/status", json!({}))["session"]["path"].clone();
            hooked.ok("session/close", json!({}));
            hooked.daemon.ok("session/load", json!({"path": path}));
        }
        let messages = hooked.context();
        let texts = texts(&messages);
        for pin in [ENTRY, TEXT] {
            let found: usize = texts.iter().map(|text| text.matches(pin).count()).sum();
            assert_eq!(found, 1, "{at}, reopened: {reopened}: {pin:?} in {texts:#?}");
        }
        let told = messages.to_string().contains("TodoWrite")
            || texts.join("\n").contains("- [ ] mend the store (in progress)");
        assert!(told || !way.carries_todos(), "{at}, reopened: {reopened}: {texts:#?}");
    }
}

fn all(by: By) {
    let ways: Vec<Way> = Way::all().collect();
    for some in ways.chunks(8) {
        at_once(some.to_vec(), |way| play(way, by));
    }
}

#[test]
fn pins_and_open_tasks_are_behind_every_change_of_a_context_without_a_model() {
    all(By::Extraction);
}

#[test]
fn pins_and_open_tasks_are_behind_every_change_of_a_context_with_a_model() {
    all(By::Model);
}

#[test]
fn pins_and_open_tasks_are_behind_every_change_of_a_context_with_a_hook() {
    all(By::Hook);
}
