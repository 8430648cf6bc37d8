//! Anthropic's compaction on demand: through the real binary and a provider on loopback that keeps to its rules.

use crate::{
    provider::{Asked, Format, Provider, Step, Stop, claude, objection},
    summarizing::{compact, good_model, merge, session, settings},
    support::{text_of, turns, user},
    turning,
};
use serde_json::{Value, json};
use std::path::Path;

const MODEL: &str = "claude-opus-5-5";

fn is_list(asked: &Asked) -> bool {
    asked.path.starts_with("/v1/models")
}

fn is_compaction(asked: &Asked) -> bool {
    !asked.body["compaction"].is_null()
}

/// A provider that refuses what breaks its rules. `answers` answers compactions.
fn provider_with(answers: impl Fn(&Asked) -> Step + Send + Sync + 'static) -> Provider {
    let provider = Provider::start(Format::Anthropic);
    provider.otherwise(move |asked: &Asked| match asked {
        _ if is_list(asked) => claude::models(&[MODEL]),
        _ if is_compaction(asked) => match claude::objection(asked) {
            Some(code) => claude::error(400, &code),
            None => answers(asked),
        },
        _ => good_model(asked),
    });
    provider
}

fn provider() -> Provider {
    provider_with(claude::compacted)
}

/// Settings with two models of Anthropic at this provider.
fn anthropic(provider: &Provider, more: Value) -> String {
    let model = |id: &str| json!({"provider": "anthropic", "id": id, "api": "anthropic", "baseUrl": provider.base_url(), "contextWindow": 100_000});
    let mut all =
        json!({"defaultModel": format!("anthropic/{MODEL}"), "models": [model(MODEL), model("claude-opus-4-6")]});
    merge(&mut all, more);
    settings(provider, Format::Anthropic, all)
}

/// A conversation whose cut is between two turns.
fn whole_turns() -> Vec<Value> {
    let mut messages = turns(12);
    messages.push(user(&text_of(620, "next")));
    messages
}

fn compactions(provider: &Provider) -> Vec<Asked> {
    provider.asked().into_iter().filter(is_compaction).collect()
}

/// The last compaction of a file.
fn line(path: &Path) -> Value {
    let file = std::fs::read_to_string(path).expect("a file");
    let line = file.lines().rfind(|line| line.contains(r#""type":"compaction""#)).expect("a compaction");
    serde_json::from_str(line).expect("JSON")
}

/// The answer with the request for the session in Anthropic's format. Fails where the provider would refuse it.
fn context(daemon: &mut crate::support::Daemon, session: &str) -> Value {
    let answer = daemon.ok("session/context", json!({"sessionId": session, "format": "anthropic"}));
    let betas = answer["headers"]["anthropic-beta"].as_str().unwrap_or_default();
    let has = |beta: &str| betas.split(',').any(|it| it == beta);
    assert_eq!(claude::objection_to(&answer["body"], &has), None, "{answer:#}");
    assert_eq!(objection(Format::Anthropic, MODEL, answer["body"].clone()), None);
    answer
}

fn block_in(answer: &Value) -> Value {
    let block = &answer["body"]["messages"][0]["content"][0];
    if block["type"] == "compaction" { block.clone() } else { Value::Null }
}

#[test]
fn anthropic_compacts_on_demand_and_gets_its_block_back_and_others_get_its_text() {
    let provider = provider();
    let (mut daemon, session, path) = session(&anthropic(&provider, json!({})), &whole_turns());
    daemon.ok(
        "session/configure",
        json!({"sessionId": session, "systemPrompt": "Be a parser.",
        "tools": [{"name": "read", "inputSchema": {"type": "object"}}]}),
    );
    let before = context(&mut daemon, &session)["body"].clone();
    let answer = compact(&mut daemon, &session, json!({}));
    let result = &answer["result"];
    assert_eq!((&result["method"], &result["model"]["id"]), (&json!("provider_native"), &json!(MODEL)), "{answer:#}");
    assert_eq!(result["rejected"], json!([]));
    let summary = result["summary"].as_str().expect("a text");
    assert!(summary.contains("The provider's summary: Request 0"), "{summary}");
    assert!(result["shortSummary"].is_string(), "{result:#}");
    // It was asked once, for the summary alone.
    let asked = provider.asked();
    assert_eq!((asked.len(), asked.iter().filter(|asked| is_list(asked)).count()), (2, 1), "{asked:#?}");
    let sent = &asked[1].body;
    for field in ["system", "tools", "model"] {
        assert_eq!(claude::without_marks(sent[field].clone()), claude::without_marks(before[field].clone()), "{field}");
    }
    let (sent_messages, all) =
        (sent["messages"].as_array().expect("messages"), before["messages"].as_array().expect("messages"));
    assert_eq!(
        claude::without_marks(json!(sent_messages)),
        claude::without_marks(json!(all[..sent_messages.len()])),
        "it is the beginning of the session's own request"
    );
    assert!(sent["max_tokens"].as_u64().is_some_and(|most| most >= 8_192), "{sent}");
    // The cost is that of the compaction.
    let spent = daemon.ok("session/status", json!({"sessionId": session}))["spent"]["purposes"].clone();
    assert!(spent["compaction"]["input"].as_u64().is_some_and(|input| input > 1_000), "{spent}");

    let stored = &line(&path)["preserveData"]["anthropicCompaction"];
    assert_eq!((&stored["provider"], &stored["model"]), (&json!("anthropic"), &json!(MODEL)));
    let own = context(&mut daemon, &session);
    assert_eq!(
        (block_in(&own), &own["headers"]["anthropic-beta"]),
        (stored["block"].clone(), &json!(claude::COMPACTION))
    );
    assert!(own.get("why").is_none(), "{own:#}");
    let text = own["body"].to_string();
    assert_eq!(text.matches("The provider's summary").count(), 1, "{text}");
    assert!(text.contains("next_value") && !text.contains("value_3"), "{text}");
    assert!(text.contains("never change part_3.lock"), "a rule that its text does not have: {text}");
    for format in ["openai_chat", "openai_responses", "google"] {
        let other = daemon.ok("session/context", json!({"sessionId": session, "format": format}));
        assert!(
            other["body"].to_string().contains("The provider's summary") && other.get("headers").is_none(),
            "{format}"
        );
        assert!(
            !other["body"].to_string().contains(stored["block"]["signature"].as_str().expect("a text")),
            "{format}"
        );
    }

    // The next compaction continues with the block, and its own block covers it.
    daemon.append(&session, &whole_turns());
    assert_eq!(compact(&mut daemon, &session, json!({}))["result"]["method"], "provider_native");
    let asked = compactions(&provider);
    assert_eq!(asked[1].body["messages"][0]["content"][0], stored["block"]);
    let again = line(&path)["preserveData"]["anthropicCompaction"]["block"].clone();
    assert_ne!(again, stored["block"]);
    assert_eq!(block_in(&context(&mut daemon, &session)), again);
    assert_eq!(provider.asked().iter().filter(|asked| is_list(asked)).count(), 1, "its models are known");
}

#[test]
fn the_text_goes_where_the_block_is_not_valid_and_the_usage_says_why() {
    let provider = provider();
    let (mut daemon, session, path) = session(&anthropic(&provider, json!({})), &whole_turns());
    let configure = |daemon: &mut crate::support::Daemon, mut what: Value| {
        what["sessionId"] = json!(session);
        daemon.ok("session/configure", what);
    };
    configure(&mut daemon, json!({"systemPrompt": "Be a parser."}));
    assert_eq!(compact(&mut daemon, &session, json!({}))["result"]["method"], "provider_native");
    let block = line(&path)["preserveData"]["anthropicCompaction"]["block"].clone();
    assert_eq!(block_in(&context(&mut daemon, &session)), block);
    let falls_back = |daemon: &mut crate::support::Daemon, why: &str| {
        let answer = context(daemon, &session);
        assert_eq!(block_in(&answer), Value::Null);
        assert!(answer.get("headers").is_none(), "{answer:#}");
        assert!(answer["body"].to_string().contains("The provider's summary"), "{answer:#}");
        assert!(answer["why"].as_str().is_some_and(|text| text.contains(why)), "{why}: {}", answer["why"]);
        let usage = daemon.ok("session/usage", json!({"sessionId": session}));
        assert!(usage["why"].as_str().is_some_and(|text| text.contains(why)), "{why}: {}", usage["why"]);
    };
    configure(&mut daemon, json!({"model": "anthropic/claude-opus-4-6"}));
    falls_back(&mut daemon, "another model made it");
    configure(&mut daemon, json!({"model": format!("anthropic/{MODEL}")}));
    assert_eq!(block_in(&context(&mut daemon, &session)), block);
    configure(&mut daemon, json!({"systemPrompt": "Be a painter."}));
    falls_back(&mut daemon, "the system prompt or the tools changed");
    configure(&mut daemon, json!({"systemPrompt": "Be a parser."}));
    assert_eq!(block_in(&context(&mut daemon, &session)), block);
    // After a while the provider does not take its own signature.
    let refused = json!({"role": "assistant", "content": [], "stopReason": "error", "timestamp": 1,
        "errorMessage": "400 invalid_request_error: compaction_signature_invalid"});
    daemon.append(&session, &[user("Go on."), refused]);
    falls_back(&mut daemon, "the provider refused it");
    // An undo takes the compaction back, and its block with it.
    daemon.ok("session/undo_compaction", json!({"sessionId": session}));
    assert!(!context(&mut daemon, &session)["body"].to_string().contains("The provider's summary"));
}

#[test]
fn a_turn_whose_block_is_refused_is_repeated_with_the_text() {
    let provider = Provider::start(Format::Anthropic);
    provider.otherwise(|asked: &Asked| match asked {
        _ if is_list(asked) => claude::models(&[MODEL]),
        _ if is_compaction(asked) => claude::compacted(asked),
        _ if asked.body.to_string().contains(r#""type":"compaction""#) => {
            claude::error(400, "compaction_signature_invalid")
        }
        _ => Step::answer("Fine."),
    });
    let (mut daemon, session, _) = session(&anthropic(&provider, json!({})), &whole_turns());
    assert_eq!(compact(&mut daemon, &session, json!({}))["result"]["method"], "provider_native");
    // A turn of the daemon.
    daemon.events.clear();
    turning::prompt(&mut daemon, &session, "Go on.");
    turning::serve(&mut daemon, &mut |_: &Value| json!({}), turning::is("settled"));
    let asked: Vec<_> = provider.asked().into_iter().filter(|asked| !is_list(asked) && !is_compaction(asked)).collect();
    assert_eq!(asked.len(), 2, "{asked:#?}");
    assert!(asked[1].text().contains("The provider's summary"));
    // A turn of a host.
    daemon.append(&session, &whole_turns());
    assert_eq!(compact(&mut daemon, &session, json!({}))["result"]["method"], "provider_native");
    let refused = |daemon: &mut crate::support::Daemon| {
        let refused = json!({"role": "assistant", "content": [], "stopReason": "error", "timestamp": 1,
            "errorMessage": "400 invalid_request_error: compaction_content_mismatch"});
        daemon.append(&session, &[user("Go on."), refused])["next"].clone()
    };
    let next = refused(&mut daemon);
    assert_eq!((&next["type"], &next["willRetry"]), (&json!("retry"), &json!(true)), "{next:#}");
    assert!(next["why"].to_string().contains("text of the summary"), "{next:#}");
    assert_eq!(block_in(&context(&mut daemon, &session)), Value::Null);
    // Without a block the error has another cause.
    assert_ne!(refused(&mut daemon)["type"], "retry");
}

/// A gateway that drops the field answers the conversation. Neither is asked for another compaction.
#[test]
fn a_gateway_that_knows_no_compactions_is_asked_once() {
    let beta = "Unexpected value(s) `compact-2026-09-04` for the `anthropic-beta` header";
    let refuses = move |_: &Asked| Step::status(400).body(&json!({"error": {"message": beta}}).to_string());
    for provider in [provider_with(refuses), provider_with(|_| Step::answer("Done."))] {
        let (mut daemon, session, _) = session(&anthropic(&provider, json!({})), &whole_turns());
        for _ in 0..2 {
            assert_eq!(compact(&mut daemon, &session, json!({}))["result"]["method"], "llm");
            daemon.append(&session, &whole_turns());
        }
        assert_eq!(compactions(&provider).len(), 1);
    }
}

/// A block comes whole, and nothing comes before it.
#[test]
fn a_compaction_may_take_longer_than_a_silence() {
    let provider = provider_with(|asked| {
        std::thread::sleep(std::time::Duration::from_millis(1_500));
        claude::compacted(asked)
    });
    let settings = anthropic(&provider, json!({"compaction": {"stallSeconds": 1}}));
    let (mut daemon, session, _) = session(&settings, &whole_turns());
    assert_eq!(compact(&mut daemon, &session, json!({}))["result"]["method"], "provider_native");
}

/// The ceiling of automatic maintenance counts the request for the block alone: there is no summary beside it.
#[test]
fn a_ceiling_counts_no_summary_beside_a_block() {
    let provider = provider();
    let more = json!({"compaction": {"maxTokensPerHour": 16_000, "thresholdTokens": 4_000, "reserveTokens": 2_000, "keepRecentTokens": 600, "speculative": false}});
    let (mut daemon, session, path) = session(&anthropic(&provider, more), &turns(4));
    daemon.append(&session, &whole_turns());
    daemon.until("compaction_end");
    let line = line(&path);
    assert_eq!(line["method"], "provider_native", "{:#}", line["preserveData"]["abridged"]["rejected"]);
}

#[test]
fn pins_come_after_the_next_message_of_the_user() {
    let provider = provider();
    let (mut daemon, session, path) = session(&anthropic(&provider, json!({})), &turns(14));
    let entries = daemon.ok("session/entries", json!({"sessionId": session, "types": ["message"], "limit": 1}));
    let first = entries["entries"][0]["id"].clone();
    daemon.ok("session/pin", json!({"sessionId": session, "entryId": first}));
    assert_eq!(compact(&mut daemon, &session, json!({}))["result"]["method"], "provider_native");
    daemon.append(&session, &[user("The next request.")]);
    let answer = context(&mut daemon, &session);
    assert_eq!(block_in(&answer), line(&path)["preserveData"]["anthropicCompaction"]["block"]);
    let messages = answer["body"]["messages"].as_array().expect("messages");
    let place = |words: &str| messages.iter().position(|message| message.to_string().contains(words));
    let (next, pin) = (place("The next request").expect("it is there"), place("<pinned").expect("pins"));
    assert!(next <= pin && pin + 1 == messages.len(), "{next} {pin} {messages:#?}");
    let last = messages[next..].iter().map(Value::to_string).collect::<String>();
    assert!(last.find("The next request") < last.find("<pinned"), "{last}");
    // They stay there.
    daemon.append(&session, &[crate::support::assistant("Fine."), user("One more.")]);
    let later = context(&mut daemon, &session)["body"]["messages"].as_array().expect("messages").clone();
    assert_eq!(claude::without_marks(json!(later[..messages.len()])), claude::without_marks(json!(messages)));
}

#[test]
fn a_compaction_that_fails_leaves_the_summary_to_the_model() {
    type Fault = (&'static str, fn(&Asked) -> Step, &'static str, usize);
    let faults: [Fault; 12] = [
        (
            "an overload",
            |_| claude::error(529, "compaction_unavailable").header("retry-after-ms", "1"),
            "compaction_unavailable",
            4,
        ),
        ("an open call", |_| claude::error(400, "compaction_incomplete_turn"), "compaction_incomplete_turn", 1),
        ("the output limit", |_| Step::empty().stop(Stop::Length), "output limit", 1),
        ("a full window", |_| Step::empty().stop(Stop::Window), "the end of the window", 1),
        ("a call", |_| Step::call("read", json!({})), "called a tool", 1),
        ("a refusal", |_| Step::empty().stop(Stop::Refusal), "refused the compaction", 1),
        ("an answer", |_| Step::answer("Done."), "without a compaction", 1),
        (
            "no text",
            |_| Step::compaction(json!({"type": "compaction", "content": null, "signature": "s"})),
            "no text",
            1,
        ),
        ("no signature", |_| Step::compaction(json!({"type": "compaction", "content": "So far."})), "no signature", 1),
        (
            "a secret",
            |_| Step::compaction(claude::block("The key is sk-ant-api03-0123456789abcdefghijABCDEFGHIJ.")),
            "a secret",
            1,
        ),
        ("no fewer tokens", |_| Step::compaction(claude::block(&"word ".repeat(60_000))), "not smaller", 1),
        ("few fewer tokens", |_| Step::compaction(claude::block(&"word ".repeat(2_400))), "over the limit", 1),
    ];
    for (name, fault, why, requests) in faults {
        let provider = provider_with(fault);
        let (mut daemon, session, path) = session(&anthropic(&provider, json!({})), &whole_turns());
        let answer = compact(&mut daemon, &session, json!({}));
        let result = &answer["result"];
        assert_eq!((&answer["outcome"], &result["method"]), (&json!("completed"), &json!("llm")), "{name}: {answer:#}");
        let rejected = result["rejected"].as_array().expect("a list");
        assert_eq!((rejected.len(), &rejected[0]["method"]), (1, &json!("provider_native")), "{name}: {rejected:?}");
        assert!(rejected[0]["why"].as_str().expect("a text").contains(why), "{name}: {rejected:?}");
        assert_eq!(compactions(&provider).len(), requests, "{name}");
        assert!(line(&path)["preserveData"].get("anthropicCompaction").is_none(), "{name}");
    }
}

#[test]
fn the_provider_or_the_settings_say_which_model_compacts() {
    let gateway = |provider: &Provider, id: &str, more: Value| {
        let mut model = json!({"provider": "work", "id": id, "api": "anthropic", "baseUrl": provider.base_url(), "contextWindow": 100_000});
        merge(&mut model, more);
        settings(provider, Format::Anthropic, json!({"defaultModel": format!("work/{id}"), "models": [model]}))
    };
    let own = |provider: &Provider, more: Value| {
        let mut model = json!({"provider": "anthropic", "id": "claude-opus-4-6", "api": "anthropic", "baseUrl": provider.base_url(), "contextWindow": 100_000});
        merge(&mut model, more);
        settings(provider, Format::Anthropic, json!({"defaultModel": "anthropic/claude-opus-4-6", "models": [model]}))
    };
    let said = |compacts: bool| json!({"nativeCompaction": compacts});
    for (name, settings, lists, asked) in [
        ("a gateway", &gateway as &dyn Fn(&Provider, &str, Value) -> String, 0, 0),
        ("a gateway that compacts", &|provider: &Provider, id: &str, _| gateway(provider, id, said(true)), 0, 1),
        ("a model that is not listed", &|provider: &Provider, _: &str, _| own(provider, json!({})), 1, 0),
        ("one that compacts by the settings", &|provider: &Provider, _: &str, _| own(provider, said(true)), 0, 1),
        ("one that does not by the settings", &|provider: &Provider, _: &str, _| own(provider, said(false)), 0, 0),
        (
            "another switch",
            &|provider: &Provider, _: &str, _| own(provider, json!({"compaction": {"remoteEnabled": false}})),
            0,
            0,
        ),
    ] {
        let provider = provider();
        let settings = settings(&provider, MODEL, json!({}));
        let (mut daemon, session, _) = session(&settings, &whole_turns());
        let result = compact(&mut daemon, &session, json!({}))["result"].clone();
        let of_lists = provider.asked().iter().filter(|asked| is_list(asked)).count();
        assert_eq!((of_lists, compactions(&provider).len()), (lists, asked), "{name}: {result:#}");
        assert_eq!(result["method"] == "provider_native", asked == 1, "{name}: {result:#}");
    }
}

#[test]
fn wishes_go_along_as_instructions() {
    let provider = provider();
    let (mut daemon, session, _) = session(&anthropic(&provider, json!({})), &whole_turns());
    let answer = compact(&mut daemon, &session, json!({"instructions": "keep the port numbers"}));
    assert_eq!(answer["result"]["method"], "provider_native", "{answer:#}");
    let instructions = compactions(&provider)[0].body["compaction"]["instructions"].clone();
    let instructions = instructions.as_str().expect("a text");
    assert!(instructions.contains("## Goal") && instructions.contains("keep the port numbers"), "{instructions}");
    daemon.append(&session, &whole_turns());
    let answer = compact(&mut daemon, &session, json!({"instructions": "port ".repeat(4_000)}));
    assert_eq!(answer["result"]["method"], "llm", "{answer:#}");
    assert!(answer["result"]["rejected"][0]["why"].to_string().contains("at most 16384 characters"), "{answer:#}");
}
