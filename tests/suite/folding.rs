//! Conversations that are larger than what a summarizer takes, and what is asked of it: through the real binary.

use crate::{
    provider::{Asked, Format, Provider, Step},
    summarizing::{compact, good, good_model, session, settings},
    support::{Daemon, Home, calls, entries, header, result, text_of, turns, user},
};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    fs,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

const SPLIT: &str = "\n\n---\n\n**Turn Context (split turn):**\n\n";

/// Purpose of a request, recognized by its prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    First,
    Update,
    TurnPrefix,
    Short,
}

fn kind(asked: &Asked) -> Kind {
    let text = asked.text();
    let found = [
        ("In at most two sentences", Kind::Short),
        ("The conversation above is the beginning of one long turn", Kind::TurnPrefix),
        ("The conversation above goes on from what", Kind::Update),
        ("Write the record of the conversation above", Kind::First),
    ];
    found.iter().find(|(words, _)| text.contains(words)).map(|(_, kind)| *kind).expect("a prompt of ours")
}

/// Text between the tags.
fn inside(asked: &Asked, tag: &str) -> Option<String> {
    let text = asked.text();
    let (_, rest) = text.split_once(&format!("<{tag}>\n"))?;
    Some(rest.split_once(&format!("\n</{tag}>\n")).expect("an end").0.to_owned())
}

/// A model with so large a window.
fn window(provider: &Provider, format: Format, tokens: u64) -> String {
    model(provider, format, json!({"contextWindow": tokens}))
}

fn model(provider: &Provider, format: Format, more: Value) -> String {
    let mut model = json!({"provider": "test", "id": "model", "api": format.api(), "baseUrl": provider.base_url()});
    model.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    // The client asks for every compaction of these tests.
    settings(provider, format, json!({"models": [model], "compaction": {"enabled": false}}))
}

/// So many whole turns; the last one has only begun, and is what is kept.
fn whole_turns(count: usize) -> Vec<Value> {
    let mut messages = turns(count);
    messages.push(user(&text_of(620, "next")));
    messages
}

/// One turn of so many steps, each of a call and its result of about 300 tokens, behind two whole turns.
fn long_turn(steps: usize) -> Vec<Value> {
    let mut messages = turns(2);
    messages.push(user("Now do the long thing with all the parts."));
    messages.extend(steps_of("step", steps));
    messages
}

fn steps_of(name: &str, count: usize) -> Vec<Value> {
    let step = |at: usize| {
        let id = format!("{name}{at}");
        [calls(&[&id]), result(&id, &text_of(280, &id))]
    };
    (0..count).flat_map(step).collect()
}

fn summary(answer: &Value) -> &str {
    answer["result"]["summary"].as_str().unwrap_or_else(|| panic!("a summary in {answer:#}"))
}

/// Every mark of the form `MARK_12_` in a text.
fn marks(text: &str) -> BTreeSet<u32> {
    text.split("MARK_").skip(1).filter_map(|rest| rest.split('_').next()?.parse().ok()).collect()
}

/// A model that writes down every mark it reads.
fn echo(asked: &Asked) -> Step {
    let lines: Vec<String> = marks(&asked.text()).iter().map(|mark| format!("- MARK_{mark}_ is known")).collect();
    let lines = if lines.is_empty() { "- nothing yet".to_owned() } else { lines.join("\n") };
    match kind(asked) {
        Kind::Short => Step::answer("Marks were kept."),
        Kind::TurnPrefix => Step::answer(&format!("## Original Request\nthe long thing\n\n## Early Progress\n{lines}")),
        Kind::First | Kind::Update => Step::answer(&format!("{}\n{lines}", good("by the echo"))),
    }
}

fn completed_by_model(answer: &Value) {
    assert_eq!(answer["outcome"], "completed", "{answer:#}");
    assert_eq!(answer["result"]["method"], "llm", "{answer:#}");
}

#[test]
fn a_conversation_far_over_the_window_is_folded() {
    let provider = Provider::start(Format::Anthropic);
    let number = AtomicUsize::new(0);
    provider.window(16_000).otherwise(move |asked: &Asked| match kind(asked) {
        Kind::Short => Step::answer("It went on."),
        _ => Step::answer(&good(&format!("fold-{}.", number.fetch_add(1, Ordering::SeqCst)))),
    });
    let mut messages = whole_turns(1_300);
    messages.insert(400, user(&format!("BEGIN_OF_IT {} END_OF_IT", text_of(30_000, "paste"))));
    let (mut daemon, session, _) = session(&window(&provider, Format::Anthropic, 16_000), &messages);
    let planned = daemon.ok("session/compact", json!({"sessionId": session, "keepRecentTokens": 600, "dryRun": true}));
    let planned = planned["preparation"]["chunks"].as_u64().expect("a number") as usize;
    let answer = compact(&mut daemon, &session, json!({}));
    completed_by_model(&answer);
    assert_eq!(answer["result"]["rejected"], json!([]));
    let asked = provider.asked();
    assert!(asked.iter().all(|it| it.refused.is_none()), "one was refused");
    assert!((asked.len() * 2 / 3..=asked.len() * 3 / 2).contains(&planned), "{planned} planned, {} asked", asked.len());
    let folds: Vec<&Asked> = asked.iter().filter(|it| kind(it) != Kind::Short).collect();
    assert!(folds.len() > 30 && asked.len() == folds.len() + 1, "{}", folds.len());
    let mut requests = Vec::new();
    for (at, fold) in folds.iter().enumerate() {
        let conversation = inside(fold, "conversation").expect("a conversation");
        assert!(conversation.starts_with('['), "it begins in the middle of a message: {}", &conversation[..80]);
        requests
            .extend(conversation.lines().filter_map(|line| line.strip_prefix("[User]: Request ")).map(str::to_owned));
        if at == 0 {
            assert_eq!((kind(fold), inside(fold, "previous-summary")), (Kind::First, None));
        } else {
            assert_eq!(kind(fold), Kind::Update);
            let before = inside(fold, "previous-summary").expect("the summary before");
            assert!(before.contains(&format!("fold-{}.", at - 1)), "{at}: {before}");
        }
    }
    let numbers: Vec<usize> = requests.iter().filter_map(|it| it.split(':').next()?.parse().ok()).collect();
    assert!(numbers.len() > 1_290 && numbers.windows(2).all(|two| two[1] == two[0] + 1), "each message once, in order");
    let paste = folds.iter().filter_map(|it| inside(it, "conversation")).find(|it| it.contains("BEGIN_OF_IT"));
    let paste = paste.expect("the large message");
    assert!(paste.contains("the middle of this message was left out") && paste.contains("END_OF_IT"));
    assert!(summary(&answer).contains(&format!("fold-{}.", folds.len() - 1)));
}

/// The rows of the file of learned windows: model, tokens, evidence.
fn rows(file: &Value) -> Vec<(String, u64, String)> {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let row = |row: &Value| {
        let model = format!("{}/{}", text(&row["model"]["provider"]), text(&row["model"]["id"]));
        (model, row["contextWindow"].as_u64().expect("tokens"), text(&row["origin"]))
    };
    file["windows"].as_array().expect("rows").iter().map(row).collect()
}

#[test]
fn a_window_that_is_smaller_than_set_is_learned_from_what_its_provider_says() {
    for format in Format::ALL {
        let provider = Provider::start(format);
        provider.window(8_000).otherwise(good_model);
        let (mut daemon, session, path) = session(&window(&provider, format, 100_000), &whole_turns(70));
        let answer = compact(&mut daemon, &session, json!({}));
        completed_by_model(&answer);
        let refused = provider.asked().iter().filter(|it| it.refused.is_some()).count();
        assert!(refused >= 1, "{format:?}");
        let learned = fs::read_to_string(daemon.home.path("data/learned-windows.json"));
        if format == Format::OpenAiResponses {
            assert!(learned.is_err(), "it states no number");
            assert!(refused <= 4, "it was halved {refused} times");
            continue;
        }
        assert_eq!(refused, 1, "{format:?}: what was learned fits");
        let learned: Value = serde_json::from_str(&learned.expect("a file")).expect("JSON");
        assert_eq!(rows(&learned), [("test/model".to_owned(), 8_000, "refusal".to_owned())], "{format:?}");
        // The next compaction knows the smaller window from its beginning.
        daemon.end();
        let home = std::mem::replace(&mut daemon.home, Home::new());
        drop(daemon);
        let mut daemon = Daemon::at(home);
        let session = daemon.load(&path);
        daemon.ok("session/append", json!({"sessionId": session, "messages": whole_turns(60)}));
        completed_by_model(&compact(&mut daemon, &session, json!({})));
        let again = provider.asked().iter().filter(|it| it.refused.is_some()).count();
        assert_eq!(again, 1, "{format:?}");
    }
}

#[test]
fn both_parts_of_a_summary_meet_a_limit_once() {
    let provider = Provider::start(Format::OpenAiResponses);
    provider.window(9_000).otherwise(good_model);
    let mut messages = turns(60);
    messages.extend(long_turn(60));
    let mut settings: Value = serde_json::from_str(&window(&provider, Format::OpenAiResponses, 20_000)).expect("JSON");
    settings["compaction"]["reserveTokens"] = 16_384.into();
    let (mut daemon, session, _) = session(&settings.to_string(), &messages);
    let answer = compact(&mut daemon, &session, json!({}));
    completed_by_model(&answer);
    assert!(summary(&answer).contains(SPLIT));
    let refused = provider.asked().iter().filter(|it| it.refused.is_some()).count();
    assert!((1..=4).contains(&refused), "{refused}");
}

#[test]
fn a_window_that_leaves_no_room_is_said_to_and_the_floor_stands_in() {
    let provider = Provider::start(Format::OpenAiChat);
    provider.otherwise(good_model);
    let mut tiny: Value = serde_json::from_str(&window(&provider, Format::OpenAiChat, 1_200)).expect("JSON");
    tiny.as_object_mut().expect("an object").remove("defaultModel");
    tiny["compaction"] = json!({"models": ["test/model"]});
    let (mut daemon, session, _) = session(&tiny.to_string(), &turns(20));
    let answer = compact(&mut daemon, &session, json!({}));
    assert_eq!(answer["outcome"], "completed");
    assert_eq!(answer["result"]["method"], "extractive");
    let why = answer["result"]["rejected"][0]["why"].as_str().expect("a reason");
    assert!(why.contains("1200 tokens leaves no room"), "{why}");
    assert_eq!(answer["result"]["rejected"].as_array().map(Vec::len), Some(1), "{answer:#}");
    assert_eq!(provider.asked().len(), 0);
}

#[test]
fn a_server_that_cuts_prompts_silently_is_found_out() {
    let provider = Provider::start(Format::OpenAiChat);
    provider.truncates(4_096).otherwise(good_model);
    let set = window(&provider, Format::OpenAiChat, 32_000);
    let mut unset: Value = serde_json::from_str(&set).expect("JSON");
    unset["models"][0].as_object_mut().expect("an object").remove("contextWindow");
    // Against what a person set it is only a guess, and holds for this summary.
    for (settings, learned) in
        [(set, None), (unset.to_string(), Some(("test/model".to_owned(), 4_096, "saturation".to_owned())))]
    {
        let before = provider.asked().len();
        let (mut daemon, session, _) = session(&settings, &whole_turns(30));
        let answer = compact(&mut daemon, &session, json!({}));
        completed_by_model(&answer);
        let rejected = answer["result"]["rejected"].as_array().expect("a list");
        assert_eq!(rejected.len(), 1, "{rejected:#?}");
        assert!(rejected[0]["why"].as_str().expect("a reason").contains("its server cuts prompts"), "{rejected:#?}");
        let kept = fs::read_to_string(daemon.home.path("data/learned-windows.json")).ok();
        let kept = kept.map(|text| rows(&serde_json::from_str(&text).expect("JSON"))).unwrap_or_default();
        assert_eq!(kept.into_iter().next(), learned);
        assert!(provider.asked()[before + 1..].iter().all(|it| it.tokens() < 4_096), "all later ones fit");
    }
}

#[test]
fn usage_over_the_window_is_an_overflow_too() {
    let provider = Provider::start(Format::Anthropic);
    provider.script([Step::answer(&good("OVERFLOWN")).usage(20_000, 100, 0, 0)]).otherwise(good_model);
    let (mut daemon, session, _) = session(&window(&provider, Format::Anthropic, 16_000), &whole_turns(60));
    let answer = compact(&mut daemon, &session, json!({}));
    completed_by_model(&answer);
    let rejected = answer["result"]["rejected"].as_array().expect("a list");
    assert!(
        rejected.len() == 1 && rejected[0]["why"].as_str().expect("why").contains("filled its window"),
        "{rejected:#?}"
    );
    assert!(!answer.to_string().contains("OVERFLOWN"));
    let asked = provider.asked();
    assert!(asked[1].tokens() < asked[0].tokens() * 2 / 3, "{} then {}", asked[0].tokens(), asked[1].tokens());
}

#[test]
fn the_room_for_an_answer_is_what_the_reserve_says() {
    // Window of the model and limit of the settings; then history, turn prefix, short summary.
    let rows = [
        (json!({"contextWindow": 100_000}), json!({}), [13_107, 8_192, 512]),
        (json!({"contextWindow": 100_000, "maxOutputTokens": 4_000}), json!({}), [4_000, 4_000, 512]),
        (json!({"contextWindow": 100_000, "maxOutputTokens": 400}), json!({}), [400, 400, 400]),
        (json!({"contextWindow": 16_000}), json!({}), [3_200, 2_000, 512]),
        (json!({"contextWindow": 16_000}), json!({"reserveTokens": 16_384}), [6_400, 4_000, 512]),
        (json!({"contextWindow": 100_000}), json!({"reserveTokens": 2_000}), [1_600, 1_000, 400]),
    ];
    for (of_model, compaction, expected) in rows {
        for format in Format::ALL {
            let provider = Provider::start(format);
            provider.otherwise(good_model);
            let mut settings: Value = serde_json::from_str(&model(&provider, format, of_model.clone())).expect("JSON");
            settings["compaction"] = compaction.clone();
            let (mut daemon, session, _) = session(&settings.to_string(), &long_turn(12));
            completed_by_model(&compact(&mut daemon, &session, json!({})));
            let asked = provider.asked();
            let most = |wanted: Kind| {
                let found = asked.iter().find(|it| kind(it) == wanted);
                found.unwrap_or_else(|| panic!("{wanted:?} was not asked")).max_output()
            };
            let found = [Kind::First, Kind::TurnPrefix, Kind::Short].map(|kind| most(kind).expect("a limit"));
            assert_eq!(found, expected, "{format:?} {of_model} {compaction}");
        }
    }
}

#[test]
fn no_request_has_tools_or_lets_the_model_think_and_each_has_the_system_prompt() {
    let ids = ["claude-sonnet-4-5", "gpt-5", "gpt-5", "gemini-2.5-flash"];
    for (format, id) in Format::ALL.into_iter().zip(ids) {
        let provider = Provider::start(format);
        provider.otherwise(good_model);
        let mut settings: Value = serde_json::from_str(&model(
            &provider,
            format,
            json!({"id": id, "contextWindow": 16_000, "reasoning": true}),
        ))
        .expect("JSON");
        settings["defaultModel"] = format!("test/{id}").into();
        let mut messages = turns(60);
        messages.extend(long_turn(12));
        let (mut daemon, session, _) = session(&settings.to_string(), &messages);
        let tools = json!([{"name": "read", "description": "reads", "inputSchema": {"type": "object"}}]);
        daemon.ok(
            "session/configure",
            json!({"sessionId": session, "tools": tools, "systemPrompt": "You are the agent."}),
        );
        completed_by_model(&compact(&mut daemon, &session, json!({})));
        let asked = provider.asked();
        assert!(asked.len() > 4, "{format:?}");
        for asked in &asked {
            let body = &asked.body;
            assert!(body["tools"].is_null() && body["tool_choice"].is_null(), "{body:#}");
            let system = ["system", "systemInstruction", "instructions"].iter().find(|name| !body[**name].is_null());
            let system = system.map_or_else(|| body["messages"][0].to_string(), |name| body[*name].to_string());
            assert!(system.contains("You write the record of a conversation"), "{system}");
            assert!(!asked.text().contains("You are the agent."), "the agent's own prompt has no place here");
            let effort = [&body["reasoning_effort"], &body["reasoning"]["effort"]];
            let effort = effort.iter().find_map(|it| it.as_str()).unwrap_or("none");
            assert!(["none", "minimal"].contains(&effort), "{effort}");
            assert!(body["thinking"].is_null() || body["thinking"]["type"] == "disabled", "{}", body["thinking"]);
            let budget = &body["generationConfig"]["thinkingConfig"]["thinkingBudget"];
            assert_eq!(budget.as_u64().unwrap_or(0), 0, "{budget}");
        }
    }
}

#[test]
fn both_halves_of_a_split_turn_are_asked_at_once() {
    let provider = Provider::start(Format::Anthropic);
    let together = Arc::new((Mutex::new(0), Condvar::new()));
    let meeting = together.clone();
    provider.otherwise(move |asked: &Asked| {
        if kind(asked) != Kind::Short {
            let (count, changed) = &*meeting;
            let mut count = count.lock().expect("nobody panics");
            *count += 1;
            changed.notify_all();
            let waited = changed.wait_timeout_while(count, Duration::from_secs(15), |count| *count < 2);
            assert!(!waited.expect("nobody panics").1.timed_out(), "the other one never came");
        }
        good_model(asked)
    });
    let (mut daemon, session, _) = session(&window(&provider, Format::Anthropic, 100_000), &long_turn(12));
    let planned = daemon.ok("session/compact", json!({"sessionId": session, "keepRecentTokens": 600, "dryRun": true}));
    assert_eq!(planned["preparation"]["chunks"], 3, "two halves and the two sentences: {planned:#}");
    assert_eq!(planned["preparation"]["isSplitTurn"], true);
    let answer = compact(&mut daemon, &session, json!({}));
    completed_by_model(&answer);
    let (history, prefix) = summary(&answer).split_once(SPLIT).expect("two parts");
    assert!(history.contains("by the model") && prefix.starts_with("## Original Request"), "{answer:#}");
    assert_eq!(provider.asked().len(), 3);
}

#[test]
fn a_turn_that_is_condensed_again_and_again_stays_one_record() {
    let provider = Provider::start(Format::Anthropic);
    provider.otherwise(echo);
    let mut messages = long_turn(12);
    messages.insert(1, user("MARK_1_ stands before the turn. It is one of many words in here."));
    messages.insert(14, result("none", "MARK_2_ stands in the turn"));
    let (mut daemon, session, path) = session(&window(&provider, Format::Anthropic, 100_000), &messages);
    let first = compact(&mut daemon, &session, json!({}));
    completed_by_model(&first);
    assert!(summary(&first).contains(SPLIT));
    for round in 3..9 {
        let before = provider.asked().len();
        let mut more = steps_of(&format!("round{round}"), 10);
        let id = format!("mark{round}");
        more.extend([calls(&[&id]), result(&id, &format!("MARK_{round}_ {}", text_of(20, "mark")))]);
        more.extend(steps_of(&format!("rest{round}"), 4));
        daemon.ok("session/append", json!({"sessionId": session, "messages": more}));
        let answer = compact(&mut daemon, &session, json!({}));
        completed_by_model(&answer);
        let text = summary(&answer);
        assert_eq!(marks(text), (1..=round).collect(), "{text}");
        assert!(!text.contains("Turn Context"), "one record of the turn, not one in the other: {text}");
        let asked = provider.asked()[before..].to_vec();
        assert_eq!(asked.iter().map(kind).collect::<Vec<_>>(), [Kind::Update, Kind::Short]);
        let carried = inside(&asked[0], "previous-summary").expect("the record before");
        assert_eq!(marks(&carried), (1..round).collect(), "all of it is read again: {carried}");
    }
    let file = fs::read_to_string(path).expect("a file");
    assert!(!file.contains("No prior history"));
}

#[test]
fn a_record_without_a_turn_stays_when_only_a_turn_is_new() {
    let provider = Provider::start(Format::OpenAiChat);
    provider.otherwise(echo);
    let mut messages = turns(10);
    messages.insert(3, user("MARK_1_ is said here, and that is all there is to say about it."));
    let (mut daemon, session, _) = session(&window(&provider, Format::OpenAiChat, 100_000), &messages);
    let first = compact(&mut daemon, &session, json!({"keepRecentTokens": 0}));
    completed_by_model(&first);
    let record = summary(&first).to_owned();
    assert!(marks(&record).contains(&1));
    let mut more = vec![user("Now the long thing.")];
    more.extend(steps_of("more", 10));
    daemon.ok("session/append", json!({"sessionId": session, "messages": more}));
    let answer = compact(&mut daemon, &session, json!({}));
    completed_by_model(&answer);
    let (kept, _) = summary(&answer).split_once(SPLIT).expect("two parts");
    let plain = record.split("\n\n<read-files>").next().expect("the text");
    assert_eq!(kept, plain, "the record before is there whole");
    let told: String = daemon
        .events
        .iter()
        .map(|frame| &frame["params"]["event"])
        .skip_while(|event| event["type"] != "compaction_end")
        .filter(|event| event["type"] == "summary_chunk" && event["source"] == "history")
        .filter_map(|event| event["text"].as_str())
        .collect();
    assert_eq!(told, plain, "who follows the pieces has all of it");
}

#[test]
fn pieces_name_the_chunk_and_the_try_that_they_belong_to() {
    let provider = Provider::start(Format::Anthropic);
    let number = AtomicUsize::new(0);
    // The third answer is empty, so the third chunk is asked for twice.
    provider.window(16_000).otherwise(move |asked: &Asked| {
        match (kind(asked), number.fetch_add(1, Ordering::SeqCst)) {
            (Kind::Short, _) => Step::answer("It went on."),
            (_, 2) => Step::answer("Nothing of use."),
            (_, at) => Step::answer(&good(&format!("answer-{at}."))).pieces(3),
        }
    });
    let (mut daemon, session, _) = session(&window(&provider, Format::Anthropic, 16_000), &whole_turns(150));
    let answer = compact(&mut daemon, &session, json!({}));
    completed_by_model(&answer);
    let chunks: Vec<(u64, u64, &str)> = daemon
        .events
        .iter()
        .map(|frame| &frame["params"]["event"])
        .filter(|event| event["type"] == "summary_chunk" && event["source"] == "history")
        .map(|event| {
            let number = |key: &str| event[key].as_u64().unwrap_or_else(|| panic!("{key} in {event}"));
            (number("part"), number("attempt"), event["text"].as_str().expect("a text"))
        })
        .collect();
    let mut places: Vec<(u64, u64)> = chunks.iter().map(|(part, attempt, _)| (*part, *attempt)).collect();
    places.dedup();
    let folds = provider.asked().iter().filter(|it| kind(it) != Kind::Short).count() as u64 - 1;
    let expected = [(1, 1), (2, 1), (3, 1), (3, 2)].into_iter().chain((4..=folds).map(|part| (part, 1)));
    assert!(folds > 3 && places.iter().copied().eq(expected), "{folds} chunks: {places:?}");
    let last = places.last().copied();
    let of_last = chunks.iter().filter(|(part, attempt, _)| Some((*part, *attempt)) == last);
    let text: String = of_last.map(|(.., text)| *text).collect();
    // The fold before the last request, which is for the short summary.
    let last = format!("answer-{folds}.");
    assert!(text.starts_with(&good(&last)) && summary(&answer).contains(&last), "the last part is the summary: {text}");
}

#[test]
fn what_a_person_wants_kept_is_in_every_request() {
    let provider = Provider::start(Format::Google);
    provider.window(12_000).otherwise(good_model);
    let mut messages = turns(60);
    messages.extend(long_turn(60));
    let (mut daemon, session, _) = session(&window(&provider, Format::Google, 12_000), &messages);
    let answer =
        compact(&mut daemon, &session, json!({"instructions": "Above all keep the port numbers </conversation>."}));
    completed_by_model(&answer);
    let asked = provider.asked();
    let count = |wanted: Kind| asked.iter().filter(|it| kind(it) == wanted).count();
    assert!(
        count(Kind::First) == 1 && count(Kind::Update) >= 1 && count(Kind::TurnPrefix) >= 2 && count(Kind::Short) == 1
    );
    for asked in &asked {
        let text = asked.text();
        assert_eq!(text.matches("Above all keep the port numbers").count(), 1, "{:?}", kind(asked));
        assert_eq!(text.matches("</conversation>").count(), 1, "{:?}", kind(asked));
    }
}

#[test]
fn what_is_pinned_is_neither_shown_nor_asked_for() {
    let provider = Provider::start(Format::Anthropic);
    provider.otherwise(good_model);
    let mut messages = turns(20);
    messages[4] = user("PINNED_WORDS: the service listens on 7341.");
    let (mut daemon, session, _) = session(&window(&provider, Format::Anthropic, 100_000), &messages);
    daemon.ok("session/pin", json!({"sessionId": session, "entryId": "e4"}));
    completed_by_model(&compact(&mut daemon, &session, json!({})));
    for asked in provider.asked() {
        assert!(!asked.text().contains("PINNED_WORDS") && !asked.text().to_lowercase().contains("pinned"));
    }
    let seen = daemon.ok("session/context", json!({"sessionId": session}))["messages"].to_string();
    assert_eq!(seen.matches("PINNED_WORDS: the service listens on 7341.").count(), 1);
}

#[test]
fn ten_compactions_lose_nothing_that_the_model_carries_on() {
    let provider = Provider::start(Format::OpenAiChat);
    provider.otherwise(echo);
    let (mut daemon, session, _) = session(&window(&provider, Format::OpenAiChat, 32_000), &turns(6));
    for round in 1..=10_u32 {
        let mut more = vec![user(&format!("MARK_{round}_ is what this round is about, and nothing else matters."))];
        more.extend(turns(6));
        daemon.ok("session/append", json!({"sessionId": session, "messages": more}));
        let answer = compact(&mut daemon, &session, json!({}));
        completed_by_model(&answer);
        let wanted: BTreeSet<u32> = (1..=round).collect();
        assert_eq!(marks(summary(&answer)), wanted, "round {round}");
    }
}

/// Number of words that a request allows.
fn words_allowed(asked: &Asked) -> usize {
    let text = asked.text();
    let rest = text.rsplit_once("Use at most ").expect("a limit").1;
    rest.split(' ').next().and_then(|number| number.parse().ok()).expect("a number")
}

#[test]
fn a_model_that_writes_as_much_as_it_can_never_makes_a_summary_grow() {
    for obeys in [true, false] {
        let provider = Provider::start(Format::Anthropic);
        provider.otherwise(move |asked: &Asked| {
            let heading = match kind(asked) {
                Kind::Short => return Step::answer("As much as it can."),
                Kind::TurnPrefix => "## Original Request",
                Kind::First | Kind::Update => "## Goal",
            };
            let mut text = format!("{heading}\n");
            let most = if obeys { words_allowed(asked) } else { usize::MAX };
            let chars = if obeys { usize::MAX } else { asked.max_output().expect("a limit") as usize * 4 - 40 };
            for at in (0..most - 4).take_while(|at| at * 9 < chars) {
                text.push_str(&format!("w{:04} {}", at % 7_919, if at % 12 == 0 { "\n- " } else { "" }));
            }
            Step::answer(&text)
        });
        let (mut daemon, session, _) = session(&window(&provider, Format::Anthropic, 32_000), &turns(40));
        for round in 0..10 {
            daemon.ok("session/append", json!({"sessionId": session, "messages": turns(25)}));
            let dry = json!({"sessionId": session, "keepRecentTokens": 600, "dryRun": true});
            let planned = daemon.ok("session/compact", dry)["preparation"]["tokensAfterEstimate"].as_u64();
            let answer = compact(&mut daemon, &session, json!({}));
            assert_eq!(answer["outcome"], "completed");
            assert!(answer["result"]["tokensAfter"].as_u64() <= planned, "round {round}: {planned:?}, {answer:#}");
            if obeys {
                completed_by_model(&answer);
            }
            // 0.8 of the reserve of 16,000, and a third of what 80 % of the threshold of 16,000 leaves: 4,266 tokens.
            let tokens = summary(&answer).chars().count() as f64 / 4.0;
            assert!(tokens <= 4_266.0, "round {round}: {tokens}");
        }
    }
}

#[test]
fn a_summary_that_is_larger_than_the_window_is_taken_in_bit_by_bit() {
    let provider = Provider::start(Format::Anthropic);
    provider.window(8_000).otherwise(echo);
    let lines: Vec<String> = (100..200).map(|mark| format!("- MARK_{mark}_ {}", text_of(70, "long"))).collect();
    let large = format!("## Goal\nship it\n\n## Critical Context\n{}", lines.join("\n"));
    let mut file = vec![header("s")];
    file.extend(entries(&turns(4)));
    let parent = file.last().expect("an entry")["id"].clone();
    file.push(json!({"type": "compaction", "id": "c0", "parentId": parent, "timestamp": "2026-01-01T00:00:00.000Z",
        "summary": large, "firstKeptEntryId": "e12", "tokensBefore": 50_000}));
    let mut behind = entries(&turns(30));
    behind.iter_mut().enumerate().for_each(|(at, entry)| {
        entry["id"] = format!("f{at}").into();
        entry["parentId"] = if at == 0 { "c0".into() } else { format!("f{}", at - 1).into() };
    });
    file.extend(behind);
    let home = Home::new();
    home.settings(&{
        // The session's own model is larger; the one that summarizes is not.
        let mut settings: Value = serde_json::from_str(&window(&provider, Format::Anthropic, 8_000)).expect("JSON");
        settings["defaultModel"] = "other/large".into();
        settings["models"]
            .as_array_mut()
            .expect("a list")
            .push(json!({"provider": "other", "id": "large", "contextWindow": 200_000}));
        settings["compaction"] = json!({"models": ["test/model"]});
        settings.to_string()
    });
    let path = home.session("s.jsonl", &file);
    let mut daemon = Daemon::at(home);
    let session = daemon.load(&path);
    let answer = compact(&mut daemon, &session, json!({}));
    completed_by_model(&answer);
    assert!(provider.asked().iter().all(|it| it.refused.is_none()));
    let found = marks(summary(&answer));
    assert!((100..200).all(|mark| found.contains(&mark)), "{} of 100 are left", found.len());
}
