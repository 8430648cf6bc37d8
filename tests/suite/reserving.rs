//! Refusals for the room kept for an answer: the input fits, so a host repeats its request with a smaller answer, and nothing
//! is compacted.

use crate::{
    hosts::wire::{self, Connection},
    provider::{Asked, Format, Provider, Step, Trouble},
    summarizing::{compact, good_model, merge, settings},
    support::{Daemon, Home, assistant, at_once, failed, model, names, text_of, turns, user},
};
use serde_json::{Value, json};

const WINDOW: u64 = 1_048_576;

/// A session of about 24,000 tokens whose model has this window.
fn session(daemon: &mut Daemon, window: u64) -> String {
    let settings = json!({"tokens": {"estimator": "chars"}, "models": [model("m", window)]});
    let session = daemon.new_session(json!({"cwd": "/project", "model": "p/m", "settings": settings}));
    let half = text_of(12_000, "one");
    daemon.append(&session, &[user(&half), assistant("Read."), user(&half), assistant("Read, too."), user("And now?")]);
    session
}

/// The text of OpenRouter.
fn refusal(input: u64, output: u64) -> String {
    format!(
        "400 This endpoint's maximum context length is {WINDOW} tokens. However, you requested about {} tokens ({} of text \
         input, 732 of tool input, {output} in the output). Please reduce the length of either one.",
        input + output,
        input - 732,
    )
}

const INPUT: u64 = 24_302;
/// The largest answer beside that input.
const MOST: u64 = WINDOW - INPUT - INPUT / 20;

fn size(context: &Value) -> u64 {
    context["usage"]["contextTokens"].as_u64().expect("a number")
}

/// The largest answer of a body.
fn most(format: &str, context: &Value) -> Value {
    let place = match format {
        "anthropic" => "/body/max_tokens",
        "openai_chat" => "/body/max_completion_tokens",
        "openai_responses" => "/body/max_output_tokens",
        _ => "/body/generationConfig/maxOutputTokens",
    };
    let other = if format == "openai_chat" { "/body/max_tokens" } else { place };
    context.pointer(place).or_else(|| context.pointer(other)).cloned().unwrap_or_default()
}

#[test]
fn a_session_far_below_its_window_is_not_compacted_for_the_room_of_an_answer() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon, WINDOW);
    let before = daemon.context(&session);
    daemon.ok("session/status", json!({"sessionId": session}));
    let from = daemon.events.len();
    let answer = daemon.append(&session, &[failed(&refusal(INPUT, WINDOW))]);
    let next = &answer["next"];
    assert_eq!((&next["type"], &next["willRetry"]), (&json!("retry"), &json!(true)), "{next}");
    assert_eq!(next["maxOutputTokens"], MOST);
    assert!(next["why"].as_str().is_some_and(|why| why.contains("24302") && why.contains("1048576")), "{next}");
    assert_eq!(next.as_object().map(serde_json::Map::len), Some(4), "{next}");
    let context = daemon.context(&session);
    assert_eq!((&context["messages"], size(&context)), (&before["messages"], size(&before)), "nothing is compacted");
    assert_eq!(context["maxOutputTokens"], MOST);
    daemon.ok("session/status", json!({"sessionId": session}));
    let events = daemon.events_since(from);
    assert_eq!((names(&events), events.len()), (vec!["entry_appended"], 2), "the answer and its removal, no operation");
    let edit = &events[1].1["event"]["entry"];
    assert_eq!((&edit["type"], &edit["targetId"]), (&json!("context_edit"), &answer["leafEntryId"]));

    // A request succeeds.
    daemon.append(&session, &[assistant("Now it is done.")]);
    let context = daemon.context(&session);
    let most = |context: &Value| context["maxOutputTokens"].as_u64().expect("a number");
    assert!(most(&context).abs_diff(most(&before)) < 100 && most(&context) < MOST, "lifted");
    // The same again is a new beginning.
    daemon.append(&session, &[user("And now?")]);
    assert_eq!(daemon.append(&session, &[failed(&refusal(INPUT, WINDOW))])["next"]["type"], "retry");
}

#[test]
fn the_words_of_gateways_for_input_and_answer_are_understood() {
    let text = |input: u64, output: u64| {
        [
            format!(
                "max_completion_tokens is too large: {output}. This model's maximum context length is {WINDOW} tokens, and your \
                 messages resulted in {input} tokens"
            ),
            format!("max_tokens ({output}) + input tokens ({input}) exceeds context window ({WINDOW})"),
        ]
    };
    for (input, expected) in
        [(INPUT, json!({"type": "retry", "maxOutputTokens": MOST})), (WINDOW + 1, json!({"type": "maintenance"}))]
    {
        for refusal in text(input, WINDOW) {
            let mut daemon = Daemon::start();
            let session = session(&mut daemon, WINDOW);
            let next = daemon.append(&session, &[failed(&refusal)])["next"].clone();
            assert_eq!(next["type"], expected["type"], "{refusal}: {next}");
            assert_eq!(next["maxOutputTokens"], expected["maxOutputTokens"], "{refusal}");
        }
    }
}

#[test]
fn a_second_refusal_of_the_same_context_is_recovered_from_as_an_overflow() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon, WINDOW);
    let before = size(&daemon.context(&session));
    assert_eq!(daemon.append(&session, &[failed(&refusal(INPUT, WINDOW))])["next"]["type"], "retry");
    let next = daemon.append(&session, &[failed(&refusal(INPUT, MOST))])["next"].clone();
    assert_eq!(
        (&next["type"], &next["reason"], &next["willRetry"]),
        (&json!("maintenance"), &json!("overflow"), &json!(true))
    );
    let after = daemon.context(&session);
    assert!(size(&after) < before, "{after}");
    assert!(daemon.kinds().contains(&"recovery_end".to_owned()));
    // A host that obeys and is refused for ever comes to an end.
    let mut refusals = 2;
    loop {
        let next = daemon.append(&session, &[failed(&refusal(INPUT, WINDOW))])["next"].clone();
        refusals += 1;
        if next["willRetry"] != true {
            break;
        }
        assert!(refusals < 10, "{next}");
        daemon.call("session/context", json!({"sessionId": session, "wait": true})).expect("a context");
    }
    let refused = daemon.err("session/context", json!({"sessionId": session, "wait": true}));
    assert_eq!(refused["data"]["code"], "context_overflow");
}

#[test]
fn the_bodies_of_all_formats_carry_the_smaller_answer_also_behind_a_restart() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon, WINDOW);
    let formats = ["anthropic", "openai_chat", "openai_responses", "google"];
    let context = |daemon: &mut Daemon, format: &str| {
        daemon.ok("session/context", json!({"sessionId": session, "format": format}))
    };
    let carries = |daemon: &mut Daemon, expected: u64| {
        for format in formats {
            let context = context(daemon, format);
            assert_eq!(context["maxOutputTokens"], expected, "{format}");
            assert_eq!(most(format, &context), expected, "{format}");
        }
    };
    // No format names an answer of this size by itself: the model has no limit.
    assert!(formats.iter().all(|format| most(format, &context(&mut daemon, format)) != MOST));
    let params = json!({"sessionId": session, "format": "openai_chat", "messages": [], "stopReason": "error",
        "errorMessage": refusal(INPUT, WINDOW)});
    assert_eq!(daemon.ok("session/append", params)["next"]["maxOutputTokens"], MOST);
    carries(&mut daemon, MOST);
    let mut daemon = daemon.restarted();
    daemon.ok("session/load", json!({"sessionId": session}));
    carries(&mut daemon, MOST);
    // The context grows, and the room for the answer gets smaller.
    daemon.append(&session, &[user(&text_of(10_000, "three"))]);
    let grown = size(&context(&mut daemon, "openai_chat"));
    assert!(grown > INPUT + 5_000);
    carries(&mut daemon, WINDOW - grown - grown / 20);
    // It is not the model that refused.
    daemon.ok("session/configure", json!({"sessionId": session, "model": "other/model"}));
    let other = context(&mut daemon, "openai_chat");
    assert_ne!(other["maxOutputTokens"], json!(WINDOW - grown - grown / 20));
}

#[test]
fn a_limit_of_the_model_is_smaller_than_the_room_for_the_answer() {
    let mut daemon = Daemon::start();
    let mut model = model("m", WINDOW);
    model["maxOutputTokens"] = json!(64_000);
    let settings = json!({"tokens": {"estimator": "chars"}, "models": [model]});
    let session = daemon.new_session(json!({"cwd": "/project", "model": "p/m", "settings": settings}));
    daemon.append(&session, &[user(&text_of(INPUT as usize, "one"))]);
    let next = daemon.append(&session, &[failed(&refusal(INPUT, WINDOW))])["next"].clone();
    assert_eq!((&next["type"], &next["maxOutputTokens"]), (&json!("retry"), &json!(64_000)));
}

#[test]
fn two_refusals_in_one_append_are_history_and_the_last_one() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon, WINDOW);
    let refused = failed(&refusal(INPUT, WINDOW));
    let next = daemon.append(&session, &[refused.clone(), user("Go on."), refused.clone()])["next"].clone();
    assert_eq!(next["type"], "retry", "the context has grown between them");
    let next = daemon.append(&session, &[refused.clone(), refused])["next"].clone();
    assert_eq!(next["reason"], "overflow", "the same context was refused before");
}

#[test]
fn an_odd_text_has_a_sane_meaning_and_teaches_no_window() {
    let long = "请求过长。".repeat((1 << 20) / 15);
    let chat = |limit: &str, input: u64, output: u64| {
        format!(
            "This model's maximum context length is {limit} tokens. However, you requested 100 tokens ({input} in the \
             messages, {output} in the completion)."
        )
    };
    let (fits, limits) = (refusal(INPUT, WINDOW), [chat("65536", 60_000, 8_000), chat("49152", 60_000, 8_000)]);
    for (text, expected) in [
        (format!("{fits}{long}"), "retry"),
        (format!("{}{fits}", "-".repeat(1 << 20)), "retry"),
        (long, "none"),
        ("请求失败：该请求的输入超出了模型最大输入长度".to_owned(), "maintenance"),
        (chat("0", INPUT, 8_192), "maintenance"),
        (chat("65536", 0, 0), "maintenance"),
        (chat("8192", 5_000, 8_000), "maintenance"),
        (chat("30000", u64::MAX, u64::MAX), "maintenance"),
        (limits.concat(), "maintenance"),
        (format!("{fits} Rate limit exceeded."), "none"),
    ] {
        let mut daemon = Daemon::start();
        let session = session(&mut daemon, WINDOW);
        let answer = daemon.append(&session, &[failed(&text)]);
        let shown: String = text.chars().take(120).collect();
        assert_eq!(answer["next"]["type"], expected, "{shown}: {}", answer["next"]);
        let usage = daemon.ok("session/usage", json!({"sessionId": session}));
        let known = usage["contextWindow"].as_u64();
        // Numbers that explain no refusal, and sizes that no request has, are not looked at here.
        let explains = !text.contains("(0 in the") && !text.contains("30000");
        assert!(!explains || known == Some(WINDOW), "{shown}: {usage}");
    }
}

/// A host that sends the bodies it is given, and a provider whose window is smaller than the one that the host states.
#[test]
fn a_host_is_answered_by_a_provider_that_adds_the_answer_to_the_input() {
    at_once([Format::Anthropic, Format::OpenAiChat], |format| {
        let provider = Provider::start(format);
        provider.window(30_000).otherwise(|_: &Asked| Step::answer("Done."));
        let home = Home::new();
        let model = json!({"provider": "test", "id": "model", "contextWindow": 60_000, "maxOutputTokens": 40_000});
        home.settings(&json!({"models": [model], "compaction": {"reserveTokens": 4_000}}).to_string());
        let mut daemon = Daemon::at(home);
        let session = daemon.new_session(json!({"cwd": "/project", "model": "test/model"}));
        daemon.append(&session, &[user(&text_of(8_000, "one"))]);
        let mut connection = Connection::to(&provider, format);
        let mut nexts = Vec::new();
        for _ in 0..3 {
            let asked = json!({"sessionId": session, "format": format.api(), "wait": true});
            let body = daemon.ok("session/context", asked)["body"].clone();
            let response = connection.post("model", &body).expect("a response");
            let mut report = json!({"sessionId": session, "format": format.api(), "messages": []});
            match response.status {
                200 => {
                    let answer = wire::answer(format, &serde_json::from_str(&response.text).expect("JSON"));
                    report["messages"] = json!(answer.messages);
                    merge(&mut report, answer.beside);
                }
                _ => merge(&mut report, json!({"stopReason": "error", "errorMessage": response.text})),
            }
            nexts.push(daemon.ok("session/append", report)["next"]["type"].clone());
            if response.status == 200 {
                break;
            }
        }
        assert_eq!(nexts, [json!("retry"), json!("none")], "{format:?}");
        let asked = provider.asked();
        assert_eq!((asked.len(), &asked[0].refused), (2, &Some(Trouble::Overflow)));
        assert_eq!(asked[0].text(), asked[1].text(), "the same context");
        let (first, second) = (asked[0].max_output().expect("a number"), asked[1].max_output().expect("a number"));
        assert!(second < first && second >= 1_024, "{second} of {first}");
        assert!(!daemon.kinds().iter().any(|kind| kind.starts_with("compaction") || kind.starts_with("recovery")));
    });
}

/// The provider refused one request, and got the same once more with a smaller answer.
fn asked_once_more_with_less(provider: &Provider) {
    let asked = provider.asked();
    let refused: Vec<&Asked> = asked.iter().filter(|it| it.refused.is_some()).collect();
    let [refused] = refused[..] else { panic!("{} requests were refused", refused.len()) };
    assert_eq!(refused.refused, Some(Trouble::Overflow));
    let same: Vec<&Asked> = asked.iter().filter(|it| it.text() == refused.text()).collect();
    let [first, second] = same[..] else { panic!("the same conversation once more, not a shorter one") };
    let (first, second) = (first.max_output().expect("a number"), second.max_output().expect("a number"));
    assert!(second < first && second >= 1_024, "{second} of {first}");
}

#[test]
fn a_summarizer_that_refuses_the_room_of_its_answer_is_asked_again_with_less() {
    at_once([Format::Anthropic, Format::OpenAiChat], |format| {
        let provider = Provider::start(format);
        provider.otherwise(good_model);
        let (mut daemon, session, _) = crate::summarizing::session(&settings(&provider, format, json!({})), &turns(20));
        // The request fits, and its answer of 13,107 tokens does not.
        provider.window(15_000);
        let answer = compact(&mut daemon, &session, json!({}));
        assert_eq!(
            (&answer["outcome"], &answer["result"]["method"]),
            (&json!("completed"), &json!("llm")),
            "{answer:#}"
        );
        assert_eq!(answer["result"]["rejected"], json!([]), "no candidate failed");
        asked_once_more_with_less(&provider);
        let usage = daemon.ok("session/usage", json!({"sessionId": session}));
        assert_eq!(usage["contextWindow"], 15_000, "the limit that the refusal states: {usage}");
    });
}

#[test]
fn the_document_of_a_handoff_is_asked_for_again_with_less() {
    at_once([Format::Anthropic, Format::OpenAiChat], |format| {
        let provider = Provider::start(format);
        provider.otherwise(good_model);
        let (mut daemon, session, _) = crate::summarizing::session(&settings(&provider, format, json!({})), &turns(20));
        provider.window(16_000);
        let answer = daemon.ok("session/handoff", json!({"sessionId": session, "dryRun": true}));
        assert!(answer["document"].as_str().is_some_and(|text| text.contains("by the model")), "{answer}");
        asked_once_more_with_less(&provider);
    });
}
