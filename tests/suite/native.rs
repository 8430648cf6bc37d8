//! OpenAI's own compaction beside a summary, and its history in later requests: through the real binary and a provider on
//! loopback.

use crate::{
    provider::{Asked, Format, Provider, Step, objection},
    summarizing::{compact, good_model, merge, session, settings},
    support::{Daemon, Home, entries, header, text_of, turns, user},
};
use serde_json::{Value, json};
use std::path::Path;

const RESPONSES: Format = Format::OpenAiResponses;

fn is_native(asked: &Asked) -> bool {
    asked.path.ends_with("/compact")
}

/// A good model whose provider compacts, too.
fn model(asked: &Asked) -> Step {
    if is_native(asked) { Step::answer("c2VjcmV0LWhpc3Rvcnk=") } else { good_model(asked) }
}

fn provider(answers: impl Fn(&Asked) -> Step + Send + Sync + 'static) -> Provider {
    let provider = Provider::start(RESPONSES);
    provider.otherwise(answers);
    provider
}

/// Settings with a model of OpenAI at this provider.
fn openai(provider: &Provider, more: Value) -> String {
    let own = json!({"provider": "openai", "id": "gpt-5", "api": "openai_responses", "baseUrl": provider.base_url(), "contextWindow": 100_000});
    let mut all = json!({"defaultModel": "openai/gpt-5", "models": [own]});
    merge(&mut all, more);
    settings(provider, RESPONSES, all)
}

/// A conversation whose cut is between two turns.
fn whole_turns() -> Vec<Value> {
    let mut messages = turns(12);
    messages.push(user(&text_of(620, "next")));
    messages
}

/// The last compaction of a file.
fn compaction(path: &Path) -> Value {
    let file = std::fs::read_to_string(path).expect("a file");
    let line = file.lines().rfind(|line| line.contains(r#""type":"compaction""#)).expect("a compaction");
    serde_json::from_str(line).expect("JSON")
}

fn body(daemon: &mut Daemon, session: &str, format: &str) -> Value {
    let answer = daemon.ok("session/context", json!({"sessionId": session, "format": format}));
    answer["body"].clone()
}

fn native_requests(provider: &Provider) -> Vec<Asked> {
    provider.asked().into_iter().filter(is_native).collect()
}

/// The kinds of the items of an input, a message by its role.
fn kinds(input: &Value) -> Vec<&str> {
    let items = input.as_array().expect("items").iter();
    items.map(|item| item["role"].as_str().or(item["type"].as_str()).expect("a kind")).collect()
}

#[test]
fn openai_compacts_itself_and_gets_its_history_and_others_get_the_summary() {
    let provider = provider(model);
    let mut messages = whole_turns();
    messages.insert(0, user("The key is sk-ant-api03-0123456789abcdefghijABCDEFGHIJ, keep it."));
    let (mut daemon, session, path) = session(&openai(&provider, json!({})), &messages);
    daemon.ok("session/configure", json!({"sessionId": session, "systemPrompt": "Be a parser."}));
    let answer = compact(&mut daemon, &session, json!({}));
    let result = &answer["result"];
    assert_eq!(result["method"], "provider_native", "{answer:#}");
    assert_eq!((&result["model"]["id"], &result["rejected"]), (&json!("gpt-5"), &json!([])));
    assert!(result["summary"].as_str().expect("a text").contains("by the model"));

    let asked = native_requests(&provider);
    assert_eq!(asked.len(), 1);
    let sent = &asked[0].body;
    assert_eq!((&sent["model"], &sent["instructions"]), (&json!("gpt-5"), &Value::Null));
    assert!(asked[0].refused.is_none() && !sent.to_string().contains("sk-ant-api03"), "{sent:#}");
    let input = sent["input"].to_string();
    assert!(input.contains("Request 3") && input.contains("value_3") && !input.contains("next_value"), "{input}");

    let line = compaction(&path);
    assert_eq!(line["method"], "provider_native");
    let stored = &line["preserveData"]["openaiRemoteCompaction"];
    assert_eq!((&stored["provider"], &stored["compactionItem"]["type"]), (&json!("openai"), &json!("compaction")));
    let ours = line["preserveData"]["abridged"]["nativeItems"].as_u64().expect("a count") as usize;
    let history = stored["replacementHistory"].as_array().expect("items");
    assert_eq!(history[ours - 1]["encrypted_content"], "c2VjcmV0LWhpc3Rvcnk=");
    // oh-my-pi sends the history and the entries behind the one that is named, or the summary and the kept entries.
    assert_eq!(history.len(), ours, "the kept messages are no part of it: {history:#?}");
    let kept = daemon.ok("session/entry", json!({"sessionId": session, "entryId": line["firstKeptEntryId"]}));
    assert_eq!(line["providerReplayThroughEntryId"], kept["entry"]["parentId"]);
    assert!(kept["entry"]["parentId"].is_string());

    // The provider's own requests have the history in the place of the summary, and the kept entries behind it.
    let own = body(&mut daemon, &session, "openai_responses");
    let input = own["input"].as_array().expect("items");
    assert_eq!(input[..ours], history[..ours]);
    let text = own["input"].to_string();
    assert!(!text.contains("by the model") && text.matches("The next module reads").count() > 1, "{text}");
    assert_eq!(objection(RESPONSES, "gpt-5", own.clone()), None);
    for format in ["openai_chat", "anthropic", "google"] {
        let other = body(&mut daemon, &session, format).to_string();
        assert!(other.contains("by the model") && !other.contains("c2VjcmV0LWhpc3Rvcnk="), "{format}");
    }
    let plain = daemon.ok("session/context", json!({"sessionId": session}));
    assert!(plain["messages"][0].to_string().contains("by the model"));
    // Both forms are in the size.
    let usage = daemon.ok("session/usage", json!({"sessionId": session}));
    assert_eq!(usage["contextTokens"], line["tokensAfter"]);

    // The next compaction continues with the history, and stores what it made itself.
    daemon.append(&session, &whole_turns());
    assert_eq!(compact(&mut daemon, &session, json!({}))["result"]["method"], "provider_native");
    let asked = native_requests(&provider);
    let input = asked[1].body["input"].as_array().expect("items");
    assert_eq!(input[..ours], history[..ours]);
    assert!(!asked[1].body.to_string().contains("by the model"));
    let again = compaction(&path);
    let stored = &again["preserveData"]["openaiRemoteCompaction"];
    let encrypted = |item: &&Value| item["type"] == "compaction";
    let compactions = stored["replacementHistory"].as_array().expect("items").iter().filter(encrypted).count();
    assert_eq!(compactions, 1, "the former one is not inherited: {stored:#}");
}

/// A newer model compacts at a trigger at the end of the session's own request.
#[test]
fn a_trigger_compacts_after_the_sessions_own_request() {
    let is_trigger = |asked: &Asked| {
        let last = asked.body["input"].as_array().and_then(|input| input.last());
        last.is_some_and(|last| last["type"] == "compaction_trigger")
    };
    for takes in [true, false] {
        let provider = provider(move |asked: &Asked| match (is_trigger(asked), takes) {
            (true, true) => {
                Step::item(json!({"type": "compaction", "id": "cmp_9", "encrypted_content": "dHJpZ2dlcmVk"}))
            }
            (true, false) => Step::status(400).body(r#"{"error": {"message": "Invalid value: 'compaction_trigger'"}}"#),
            (false, _) => model(asked),
        });
        let own = json!({"provider": "openai", "id": "gpt-5.2", "api": "openai_responses", "baseUrl": provider.base_url(), "contextWindow": 100_000});
        let settings = settings(&provider, RESPONSES, json!({"defaultModel": "openai/gpt-5.2", "models": [own]}));
        let (mut daemon, session, path) = session(&settings, &whole_turns());
        daemon.ok(
            "session/configure",
            json!({"sessionId": session, "systemPrompt": "Be a parser.",
            "tools": [{"name": "read", "inputSchema": {"type": "object"}}]}),
        );
        let before = body(&mut daemon, &session, "openai_responses");
        let result = compact(&mut daemon, &session, json!({}))["result"].clone();
        assert_eq!(result["method"], "provider_native", "{result:#}");
        let triggers = || provider.asked().into_iter().filter(is_trigger).collect::<Vec<_>>();
        let sent = triggers()[0].body.clone();
        for field in ["model", "instructions", "tools", "prompt_cache_key"] {
            assert_eq!(sent[field], before[field], "{field}");
        }
        let (items, all) = (sent["input"].as_array().expect("items"), before["input"].as_array().expect("items"));
        assert_eq!(
            items[..items.len() - 1],
            all[..items.len() - 1],
            "it is the beginning of the session's own request"
        );
        assert_eq!((triggers().len(), native_requests(&provider).len()), (1, usize::from(!takes)), "{takes}");
        let history = line_items(&path);
        let encrypted = if takes { "dHJpZ2dlcmVk" } else { "c2VjcmV0LWhpc3Rvcnk=" };
        assert_eq!(history.last().expect("an item")["encrypted_content"], encrypted);
        let own = body(&mut daemon, &session, "openai_responses");
        assert_eq!(own["input"].as_array().expect("items")[..history.len()], history);
        // A model that refused the trigger is not asked by it again.
        daemon.append(&session, &whole_turns());
        assert_eq!(compact(&mut daemon, &session, json!({}))["result"]["method"], "provider_native");
        assert_eq!(triggers().len(), if takes { 2 } else { 1 }, "{takes}");
    }
}

/// The items of the last compaction of a file.
fn line_items(path: &Path) -> Vec<Value> {
    compaction(path)["preserveData"]["openaiRemoteCompaction"]["replacementHistory"].as_array().expect("items").clone()
}

#[test]
fn the_text_goes_where_an_item_is_refused_or_switched_off() {
    let provider = provider(model);
    let (mut daemon, session, _) = session(&openai(&provider, json!({})), &whole_turns());
    assert_eq!(compact(&mut daemon, &session, json!({}))["result"]["method"], "provider_native");
    let has_item = |daemon: &mut Daemon| body(daemon, &session, "openai_responses").to_string().contains("c2VjcmV0");
    assert!(has_item(&mut daemon));
    daemon.ok(
        "settings/set",
        json!({"sessionId": session, "scope": "session", "patch": {"compaction": {"remoteEnabled": false}}}),
    );
    assert!(!has_item(&mut daemon));
    daemon.ok(
        "settings/set",
        json!({"sessionId": session, "scope": "session", "patch": {"compaction": {"remoteEnabled": true}}}),
    );
    assert!(has_item(&mut daemon));
    let refused = json!({"role": "assistant", "content": [], "stopReason": "error", "timestamp": 1,
        "errorMessage": "400 invalid_encrypted_content: the encrypted content could not be verified"});
    let next = daemon.append(&session, &[user("Go on."), refused])["next"].clone();
    assert_eq!(next["type"], "retry", "{next:#}");
    assert!(!has_item(&mut daemon));
    let why = daemon.ok("session/usage", json!({"sessionId": session}))["why"].to_string();
    assert!(why.contains("the provider refused it"), "{why}");
}

#[test]
fn an_item_that_is_too_long_to_go_back_is_not_kept() {
    let long = "x".repeat(10_485_761);
    let provider =
        provider(move |asked: &Asked| if is_native(asked) { Step::answer(&long) } else { good_model(asked) });
    let (mut daemon, session, path) = session(&openai(&provider, json!({})), &whole_turns());
    let answer = compact(&mut daemon, &session, json!({}));
    assert_eq!(answer["result"]["method"], "llm", "{}", answer["result"]["rejected"]);
    assert!(compaction(&path)["preserveData"].get("openaiRemoteCompaction").is_none());
}

#[test]
fn a_new_session_begins_with_the_history_of_its_provider() {
    let provider = provider(model);
    let (mut daemon, session, _) = session(&openai(&provider, json!({})), &whole_turns());
    let answer = compact(&mut daemon, &session, json!({"newSession": true}));
    let result = &answer["result"];
    assert_eq!((&result["method"], &result["model"]["id"]), (&json!("provider_native"), &json!("gpt-5")));
    let new = answer["newSessionId"].as_str().expect("an id");
    let begun = body(&mut daemon, new, "openai_responses");
    compact(&mut daemon, &session, json!({}));
    let here = body(&mut daemon, &session, "openai_responses");
    assert_eq!(kinds(&begun["input"]), kinds(&here["input"]));
    assert!(begun["input"].to_string().contains("next_value"), "the kept messages follow: {begun:#}");
}

#[test]
fn another_model_of_the_session_gets_the_summary() {
    let provider = provider(model);
    let other = json!({"provider": "work", "id": "m", "api": "openai_responses", "baseUrl": provider.base_url(), "contextWindow": 100_000});
    let own = json!({"provider": "openai", "id": "gpt-5", "api": "openai_responses", "baseUrl": provider.base_url(), "contextWindow": 100_000});
    let settings = settings(&provider, RESPONSES, json!({"defaultModel": "openai/gpt-5", "models": [own, other]}));
    let (mut daemon, session, path) = session(&settings, &whole_turns());
    compact(&mut daemon, &session, json!({}));
    daemon.ok("session/configure", json!({"sessionId": session, "model": "work/m"}));
    let text = body(&mut daemon, &session, "openai_responses").to_string();
    assert!(text.contains("by the model") && !text.contains("c2VjcmV0"), "{text}");
    // Its settings do not say that its provider compacts, and nothing is inherited.
    daemon.append(&session, &whole_turns());
    assert_eq!(compact(&mut daemon, &session, json!({}))["result"]["method"], "llm");
    assert_eq!(native_requests(&provider).len(), 1);
    let line = compaction(&path);
    assert!(line["preserveData"].get("openaiRemoteCompaction").is_none(), "{line:#}");
}

#[test]
fn a_failure_of_the_providers_compaction_leaves_the_summary() {
    type Fault = (&'static str, fn() -> Step, &'static str, usize);
    let faults: [Fault; 7] = [
        ("no such address", || Step::status(404), "status 404", 1),
        ("no key", Step::unauthorized, "status 401", 1),
        ("a failure", || Step::status(500).header("retry-after-ms", "1"), "status 500", 4),
        ("a long wait", || Step::rate_limited(120), "status 429", 1),
        ("silence", Step::hang, "nothing came for 1 s", 1),
        ("an overflow", Step::overflow, "too long for its window", 1),
        ("no encrypted content", Step::empty, "no compaction with encrypted content", 1),
    ];
    for (name, fault, why, requests) in faults {
        let provider = provider(move |asked: &Asked| if is_native(asked) { fault() } else { good_model(asked) });
        let more = json!({"compaction": {"stallSeconds": 1}});
        let (mut daemon, session, path) = session(&openai(&provider, more), &whole_turns());
        let answer = compact(&mut daemon, &session, json!({}));
        let result = &answer["result"];
        assert_eq!((&answer["outcome"], &result["method"]), (&json!("completed"), &json!("llm")), "{name}: {answer:#}");
        let rejected = result["rejected"].as_array().expect("a list");
        assert_eq!(rejected.len(), 1, "{name}: {rejected:?}");
        assert_eq!((&rejected[0]["method"], &rejected[0]["model"]["id"]), (&json!("provider_native"), &json!("gpt-5")));
        assert!(rejected[0]["why"].as_str().expect("a text").contains(why), "{name}: {rejected:?}");
        assert_eq!(native_requests(&provider).len(), requests, "{name}");
        let line = compaction(&path);
        assert!(line["preserveData"].get("openaiRemoteCompaction").is_none(), "{name}: {line:#}");
    }
}

#[test]
fn the_providers_compaction_stands_beside_an_extracted_summary() {
    let provider = provider(|asked: &Asked| if is_native(asked) { model(asked) } else { Step::status(404) });
    let (mut daemon, session, _) = session(&openai(&provider, json!({})), &whole_turns());
    let answer = compact(&mut daemon, &session, json!({}));
    assert_eq!(answer["result"]["method"], "provider_native", "{answer:#}");
    assert_eq!(answer["result"]["rejected"][0]["method"], "llm");
    let said = body(&mut daemon, &session, "anthropic").to_string();
    assert!(said.contains("Request 3"), "{said}");
}

#[test]
fn nobody_compacts_where_the_settings_or_the_client_say_so() {
    let provider = provider(model);
    let off = json!({"compaction": {"remoteEnabled": false}});
    let (mut daemon, session, _) = session(&openai(&provider, off), &whole_turns());
    assert_eq!(compact(&mut daemon, &session, json!({}))["result"]["method"], "llm");
    let (mut daemon, session, _) = crate::summarizing::session(&openai(&provider, json!({})), &whole_turns());
    assert_eq!(compact(&mut daemon, &session, json!({"method": "llm"}))["result"]["method"], "llm");
    daemon.append(&session, &whole_turns());
    assert_eq!(compact(&mut daemon, &session, json!({"method": "extractive"}))["result"]["method"], "extractive");
    daemon.append(&session, &whole_turns());
    let wishes = json!({"instructions": "keep the port numbers"});
    assert_eq!(compact(&mut daemon, &session, wishes)["result"]["method"], "llm");
    assert!(native_requests(&provider).is_empty());
}

/// A session that oh-my-pi compacted itself, with this data, and its file.
fn of_oh_my_pi(provider: &Provider, data: &Value) -> (Daemon, String, std::path::PathBuf) {
    let home = Home::new();
    home.settings(&openai(provider, json!({})));
    let mut messages = turns(4);
    messages.push(user("KEPT request"));
    let mut lines = vec![header("s")];
    lines.extend(entries(&messages));
    lines.push(json!({
        "type": "compaction", "id": "c", "parentId": "e16", "timestamp": "2026-01-01T00:00:01.000Z",
        "summary": "Remote compaction preserved provider-native history for the current session.",
        "shortSummary": "Remote compaction", "firstKeptEntryId": "e16", "tokensBefore": 9000, "preserveData": data,
    }));
    for (at, message) in turns(6).into_iter().enumerate() {
        let parent = if at == 0 { "c".to_owned() } else { format!("f{}", at - 1) };
        lines.push(json!({"type": "message", "id": format!("f{at}"), "parentId": parent,
            "timestamp": "2026-01-01T00:00:02.000Z", "message": message}));
    }
    let path = home.session("s.jsonl", &lines);
    let mut daemon = Daemon::at(home);
    let session = daemon.load(&path);
    (daemon, session, path)
}

fn their_item() -> Value {
    json!({"type": "compaction", "id": "cmp_theirs", "encrypted_content": "dGhlaXJz"})
}

#[test]
fn a_history_of_oh_my_pi_stands_for_all_before_its_compaction() {
    let provider = provider(model);
    let said = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "KEPT request"}]});
    let history = json!([said, their_item()]);
    let data = json!({"openaiRemoteCompaction": {"provider": "openai", "replacementHistory": history, "compactionItem": their_item()},
        "anthropicCompaction": {"provider": "anthropic", "content": "theirs", "encryptedContent": "YW50aHJvcGlj"}});
    let (mut daemon, session, path) = of_oh_my_pi(&provider, &data);
    let before = std::fs::read_to_string(&path).expect("a file");
    let own = body(&mut daemon, &session, "openai_responses");
    assert_eq!(kinds(&own["input"])[..3], ["user", "compaction", "user"], "{own:#}");
    let text = own["input"].to_string();
    assert_eq!(text.matches("KEPT request").count(), 1, "the history has the kept entry");
    assert!(!text.contains("Remote compaction") && !text.contains("YW50aHJvcGlj"), "{text}");
    assert_eq!(objection(RESPONSES, "gpt-5", own.clone()), None);
    let other = body(&mut daemon, &session, "anthropic").to_string();
    assert!(other.contains("KEPT request") && other.contains("provider-native history"), "{other}");
    assert!(!other.contains("dGhlaXJz") && !other.contains("YW50aHJvcGlj"), "{other}");

    daemon.ok("session/pin", json!({"sessionId": session, "entryId": "e16"}));
    let pinned = body(&mut daemon, &session, "openai_responses")["input"].to_string();
    assert!(pinned.contains("Pinned by the user") && pinned.matches("KEPT request").count() == 2, "{pinned}");
    daemon.ok("session/unpin", json!({"sessionId": session, "entryId": "e16"}));
    let answer = compact(&mut daemon, &session, json!({"keepRecentTokens": 100}));
    assert_eq!(answer["result"]["method"], "provider_native", "{answer:#}");
    let input = native_requests(&provider)[0].body["input"].clone();
    assert_eq!(kinds(&input)[..3], ["user", "compaction", "user"], "{input:#}");
    assert!(std::fs::read_to_string(&path).expect("a file").starts_with(&before), "their line stays byte for byte");
}

#[test]
fn a_malformed_history_is_left_where_it_is_and_the_summary_is_sent() {
    let provider = provider(model);
    let remote =
        |history: Value| json!({"openaiRemoteCompaction": {"provider": "openai", "replacementHistory": history}});
    for data in [
        remote(json!([])),
        remote(json!([{"type": "compaction"}])),
        remote(json!([their_item(), {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}])),
        remote(json!([their_item(), their_item()])),
        remote(json!("all of it")),
        json!({"openaiRemoteCompaction": [their_item()]}),
        json!({"openaiRemoteCompaction": {"replacementHistory": [their_item()]}}),
        json!([their_item()]),
    ] {
        let (mut daemon, session, path) = of_oh_my_pi(&provider, &data);
        let before = std::fs::read_to_string(&path).expect("a file");
        let own = body(&mut daemon, &session, "openai_responses");
        let text = own["input"].to_string();
        assert!(text.contains("provider-native history") && text.contains("KEPT request"), "{data}: {text}");
        assert!(!text.contains("dGhlaXJz"), "{data}: {text}");
        assert_eq!(objection(RESPONSES, "gpt-5", own.clone()), None, "{data}");
        assert!(std::fs::read_to_string(&path).expect("a file").starts_with(&before));
    }
}
