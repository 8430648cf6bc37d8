//! The checks of settings, row by row.

use super::*;
use crate::settings::{
    Layers,
    ranges::{Number, Range, numbers},
};
use serde_json::json;

fn problem(text: &str) -> String {
    let problems = check(text, None).problems;
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[test]
fn a_wrong_value_names_its_key_its_line_and_what_was_expected() {
    let found = problem("{\n  \"compaction\": {\n    \"reserveTokens\": \"many\"\n  }\n}");
    assert_eq!(found, "line 3: compaction.reserveTokens: invalid type: string \"many\", expected a whole number");
    let found = problem("{\n  \"compaction\": { \"thresholdPercent\": 250 } }");
    assert_eq!(found, "line 2: compaction.thresholdPercent: 250; expected -1 to 99; 99 is used");
    let found = problem("{\n\"models\": [ { \"provider\": \"a\", \"id\": \"b\", \"contextWindow\": 0 } ] }");
    assert_eq!(found, "line 2: models[0].contextWindow: 0; expected 1 to 1000000000");
    assert!(problem("{ \"compaction\": ").starts_with("line 1: not JSON"));
    for (model, expected) in [
        (
            r#""api": "openai""#,
            "line 2: models[0].api: unknown value `openai`, expected one of `anthropic`, `openai_chat`, \
             `openai_responses`, `google`, `client`; did you mean `openai_chat`?",
        ),
        (
            r#""apiKeyCommand": "pass show key""#,
            // A key may stand in it, as in each value at the place of a secret.
            "line 2: models[0].apiKeyCommand: expected a list",
        ),
        (r#""apiKeyCommand": ["pass", 12345678]"#, "line 2: models[0].apiKeyCommand[1]: expected a string"),
        (r#""headers": "hush""#, "line 2: models[0].headers: expected an object"),
        (r#""headers": {"X-Key": 12345678}"#, "line 2: models[0].headers.X-Key: expected a string"),
        (
            r#""apiKeyCommand": []"#,
            "line 2: models[0].apiKeyCommand: no program; expected its name, then its arguments",
        ),
        (
            r#""headers": {"X-Key": "***"}"#,
            "line 2: models[0].headers.X-Key: *** stands for a value that is not told; expected the value itself",
        ),
        (r#""headers": {"X Key": "a"}"#, "line 2: models[0].headers: \"X Key\" is no name of a header"),
        (
            r#""headers": {"X-Key": "hush\nhush"}"#,
            "line 2: models[0].headers: the value of X-Key has a line break or the like in it",
        ),
    ] {
        assert_eq!(problem(&format!("{{ \"models\":\n[ {{ {model} }} ] }}")), expected);
    }
}

#[test]
fn an_unknown_key_is_worth_a_word_and_no_more() {
    let Checked { value, problems } = check("{\"compaction\":\n{\"reserve\":1,\"midTurn\":false}}", None);
    assert!(value.is_some());
    assert_eq!(problems[0].to_string(), "line 2: compaction.reserve: unknown key, ignored");
    assert_eq!(problems[0].flaw, Flaw::Unknown);
    let nested = problem("{\"models\":[\n{\"id\":\"a\"},\n{\"id\":\"\\\"size\\\": {\",\n\"size\":1}]}");
    assert_eq!(nested, "line 4: models[1].size: unknown key, ignored");
}

/// The values that hold of a text, after `before`.
fn held(text: &str, before: Option<Value>) -> Value {
    check(text, before.as_ref()).value.expect("JSON")
}

#[test]
fn an_invalid_value_falls_back_and_the_rest_holds() {
    let rows = [
        (json!({"compaction": {"reserveTokens": "many", "midTurn": false}}), json!({"compaction": {"midTurn": false}})),
        (json!({"compaction": 5, "prune": {"protectTokens": 1}}), json!({"prune": {"protectTokens": 1}})),
        (
            json!({"retry": {"maxRetries": 1_000_000, "baseDelayMs": 0, "maxDelayMs": 500}}),
            json!({"retry": {"maxDelayMs": 500}}),
        ),
        (json!({"retry": {"maxRetries": u64::MAX, "baseDelayMs": 1.5}}), json!({"retry": {}})),
        (
            json!({"models": [5, {"id": "a", "contextWindow": 0}, {"id": "b", "compaction": {"style": "x", "enabled": true}}]}),
            json!({"models": [{"id": "a"}, {"id": "b", "compaction": {"enabled": true}}]}),
        ),
        (
            json!({"tools": {"files": [{"tool": "x"}, {"tool": "a", "argument": "b", "operation": "read"}]}}),
            json!({"tools": {"files": [{"tool": "a", "argument": "b", "operation": "read"}]}}),
        ),
        // Half of a list of names is another list.
        (json!({"compaction": {"models": ["a/b", 5]}}), json!({"compaction": {}})),
        (
            json!({"models": [{"id": "a", "compaction": {"models": ["a/b", 5]}}]}),
            json!({"models": [{"id": "a", "compaction": {}}]}),
        ),
        (json!({"compaction": {"stallSeconds": null}}), json!({"compaction": {}})),
    ];
    for (text, expected) in rows {
        let checked = check(&text.to_string(), None);
        assert_eq!(checked.value, Some(expected), "{text}");
        assert!(checked.problems.iter().all(|it| it.flaw == Flaw::Invalid && it.line == Some(1)), "{checked:?}");
        assert!(!checked.problems.is_empty());
    }
}

#[test]
fn an_old_value_holds_on() {
    let before = json!({"compaction": {"reserveTokens": 7}, "models": [
        {"provider": "p", "id": "m", "contextWindow": 9, "baseUrl": "http://old"}]});
    let text = json!({"compaction": {"reserveTokens": -1}, "prune": {"protectTokens": 2}, "models": [
        {"provider": "q", "id": "m", "contextWindow": 0},
        {"provider": "p", "id": "m", "contextWindow": 0, "baseUrl": "http://new"}]});
    let expected = json!({"compaction": {"reserveTokens": 7}, "prune": {"protectTokens": 2}, "models": [
        {"provider": "q", "id": "m"},
        {"provider": "p", "id": "m", "contextWindow": 9, "baseUrl": "http://new"}]});
    assert_eq!(held(&text.to_string(), Some(before)), expected);
}

/// Without its address a model of a known provider would be asked at the provider's own, with the key for it.
#[test]
fn a_model_with_an_invalid_address_is_asked_nowhere() {
    let model = |base_url: Value| json!({"provider": "anthropic", "id": "m", "baseUrl": base_url, "contextWindow": 9});
    let text = json!({"models": [model(json!(5))]}).to_string();
    assert_eq!(held(&text, None), json!({"models": [model(json!(""))]}).to_owned());
    let before = json!({"models": [model(json!("http://proxy"))]});
    assert_eq!(held(&text, Some(before.clone())), before);
    let command = json!({"models": [{"provider": "p", "id": "m", "apiKeyCommand": ["pass", 5]}]});
    assert_eq!(held(&command.to_string(), None), json!({"models": [{"provider": "p", "id": "m", "baseUrl": ""}]}));
}

#[test]
fn a_service_for_summaries_has_an_address() {
    let text = |url: &str| format!("{{\"compaction\": {{\n\"remoteEndpoint\": {url:?}\n}}}}");
    for url in ["h/sum", "localhost:7/sum", "ftp://h/sum", "http://", "file:///sum", "https://user:pass-word@"] {
        let checked = check(&text(url), None);
        let problem = checked.problems.first().unwrap_or_else(|| panic!("{url} is taken"));
        assert_eq!((problem.key.as_str(), problem.line), ("compaction.remoteEndpoint", Some(2)), "{url}");
        assert!(problem.to_string().contains("no address of a server"), "{problem}");
        assert!(!problem.to_string().contains("pass-word"), "{problem}");
        assert_eq!(checked.value, Some(json!({"compaction": {}})), "{url}");
    }
    for url in ["http://127.0.0.1:8080/sum", "https://h", "HTTPS://h/sum?key=k"] {
        assert_eq!(check(&text(url), None).problems, [], "{url}");
    }
}

#[test]
fn prices_of_a_model_are_all_valid_or_none_is_used() {
    let model = |cost: Value| json!({"models": [{"provider": "p", "id": "m", "cost": cost}]}).to_string();
    let kept = json!({"models": [{"provider": "p", "id": "m"}]});
    for (cost, key) in [
        (json!(3), ""),
        (json!({"input": 3}), ""),
        (json!({"input": 3, "output": "15"}), ".output"),
        (json!({"input": -1, "output": 2}), ".input"),
        (json!({"input": 1, "output": 2, "cacheRead": 100_000.5}), ".cacheRead"),
    ] {
        let checked = check(&model(cost.clone()), None);
        assert_eq!(checked.value.as_ref(), Some(&kept), "{cost}");
        let keys: Vec<_> = checked.problems.iter().map(|it| it.key.clone()).collect();
        assert_eq!(keys, [format!("models[0].cost{key}")]);
    }
    let valid = model(json!({"input": 0.25, "output": 1, "cacheRead": 0}));
    assert_eq!(held(&valid, None).to_string(), valid);
}

#[test]
fn problems_name_the_items_as_they_stand_in_the_text() {
    let found = problem("{\"models\": [5,\n7, {\"id\": \"a\",\n\"contextWindow\": 0}, 8,\n{\"reasoning\": 1}]}");
    let keys: Vec<&str> = found
        .split("; line ")
        .map(|it| it.split(": ").nth(usize::from(it.starts_with("line"))).unwrap_or(it))
        .collect();
    assert_eq!(keys.len(), 5, "{found}");
    for expected in [
        "models[0]: ",
        "models[1]: ",
        "models[3]: ",
        "line 3: models[2].contextWindow: 0;",
        "line 4: models[4].reasoning: ",
    ] {
        assert!(found.contains(expected), "{expected} in {found}");
    }
}

#[test]
fn a_whole_number_may_be_written_with_a_fraction() {
    let settings = json!({"compaction": {"thresholdPercent": 80.0, "reserveTokens": 1e3}, "retry": {"maxRetries": 3.0},
        "models": [{"provider": "p", "id": "m", "contextWindow": 32768.0, "compaction": {"stallSeconds": 9.0}}]});
    let whole = json!({"compaction": {"thresholdPercent": 80, "reserveTokens": 1000}, "retry": {"maxRetries": 3},
        "models": [{"provider": "p", "id": "m", "contextWindow": 32768, "compaction": {"stallSeconds": 9}}]});
    assert_eq!(check(&settings.to_string(), None), Checked { value: Some(whole), problems: vec![] });
    for (settings, expected, told) in [
        (
            json!({"compaction": {"thresholdPercent": 150.0}}),
            json!({"compaction": {"thresholdPercent": 99}}),
            "99 is used",
        ),
        (json!({"retry": {"maxRetries": 11.0}}), json!({"retry": {}}), "11; expected 0 to 10"),
        (json!({"retry": {"maxRetries": 2.5}}), json!({"retry": {}}), "invalid type: number `2.5`"),
        (json!({"retry": {"maxRetries": 1e300}}), json!({"retry": {}}), "invalid type: number"),
    ] {
        let checked = check(&settings.to_string(), None);
        assert_eq!((checked.value, checked.problems.len()), (Some(expected), 1));
        assert!(checked.problems[0].what.contains(told), "{}", checked.problems[0]);
    }
    let patch = json!({"prune": {"protectTokens": 7.0}});
    let sourced = Layers::default().with_session(Some(&patch)).expect("a whole number");
    assert_eq!(sourced.settings.prune.protect_tokens, 7);
    let twice = problem("{\"retry\": {\"maxRetries\": 3.0},\n\"prune\": {}, \"prune\": {}}");
    assert_eq!(twice, "line 2: duplicate field `prune`; its last value is used");
}

#[test]
fn an_invalid_number_of_a_project_names_the_range_of_projects() {
    let of = |settings: &str, trust| check_layer(settings, None, trust).0.problems[0].to_string();
    let (narrow, clamped) =
        (r#"{"compaction": {"reserveTokens": -5}}"#, r#"{"compaction": {"thresholdPercent": 250}}"#);
    assert_eq!(
        of(narrow, Trust::Untrusted),
        "line 1: compaction.reserveTokens: -5; expected 0 to 10000000 in a project, or 0 to 1000000000 in a trusted one"
    );
    assert_eq!(of(narrow, Trust::Trusted), "line 1: compaction.reserveTokens: -5; expected 0 to 1000000000");
    let told = |expected: &str| format!("line 1: compaction.thresholdPercent: 250; expected {expected}; 99 is used");
    assert_eq!(of(clamped, Trust::Trusted), told("-1 to 99"));
    assert_eq!(of(clamped, Trust::Untrusted), told("25 to 99 in a project, or -1 to 99 in a trusted one"));
}

#[test]
fn an_unknown_key_of_a_models_own_compaction_is_reported() {
    let found = problem(
        "{\"models\": [{\"provider\": \"p\", \"id\": \"m\",\n\"compaction\": {\"reserve\": 1, \"style\": 5}}]}",
    );
    assert!(found.contains("line 2: models[0].compaction.style: "), "{found}");
    assert!(found.ends_with("line 2: models[0].compaction.reserve: unknown key, ignored"), "{found}");
}

/// An unknown key is out of the value once it was seen, so that a look for the next invalid value is no longer for it.
#[test]
fn unknown_keys_are_seen_once_however_many_values_are_invalid() {
    let unknown: Map<String, Value> = (0..60_000).map(|key| (format!("k{key}"), json!(1))).collect();
    let model = json!({"provider": "p", "id": "m", "compaction": unknown});
    for mut settings in [json!({"retry": unknown}), json!({"models": [model]}), Value::Object(unknown)] {
        settings["tools"] = json!({"files": vec![json!({"tool": "x"}); MOST_INVALID]});
        let Checked { value, problems } = check_all(&settings.to_string());
        let rest = value.expect("the valid part").to_string();
        assert!(rest.len() < 100, "{} bytes are left", rest.len());
        assert_eq!(problems.len(), 60_000 + MOST_INVALID);
    }
}

#[test]
fn a_key_that_stands_there_twice_is_reported() {
    let checked = check("{\"prune\": {\"protectTokens\": 1,\n\"protectTokens\": 2}}", None);
    assert_eq!(checked.value, Some(json!({"prune": {"protectTokens": 2}})));
    assert_eq!(
        checked.problems[0].to_string(),
        "line 2: prune: duplicate field `protectTokens`; its last value is used"
    );
}

#[test]
fn a_file_of_nothing_but_invalid_values_costs_little() {
    let text = json!({"models": vec![5; 100_000]}).to_string();
    let checked = check(&text, None);
    assert_eq!((checked.value, checked.problems.len()), (None, MOST_REPORTED + 1));
}

#[test]
fn the_problems_of_a_text_are_counted_beyond_the_reported_ones() {
    let keys: Map<String, Value> = (0..60_000).map(|key| (format!("k{key}"), json!(1))).collect();
    let mut unknown = json!(keys);
    unknown["compaction"] = json!({"stallSeconds": 0, "reserveTokens": 5});
    let model = json!({"provider": "p", "id": "m", "compaction": {"thresholdPercent": 150}});
    let clamped = json!({"models": vec![model; 10_000], "defaultModel": 5});
    for (settings, count, rest) in [(unknown, 60_001, Flaw::Unknown), (clamped, 10_001, Flaw::Clamped)] {
        let Checked { value, problems } = check(&settings.to_string(), None);
        assert!(value.is_some());
        assert_eq!(problems.len(), MOST_REPORTED + 1);
        assert_eq!(problems[0].flaw, Flaw::Invalid, "the worst is first");
        let last = &problems[MOST_REPORTED];
        let what = format!("and {} more problems, which are not listed", count - MOST_REPORTED);
        assert_eq!((&last.what, last.flaw), (&what, rest));
        assert_eq!(check_all(&settings.to_string()).problems.len(), count);
    }
}

#[test]
fn too_many_numbers_out_of_range_end_the_check_of_a_file() {
    let model = json!({"provider": "p", "id": "m", "contextWindow": 0});
    let checked = check_all(&json!({"models": vec![model; 10_000]}).to_string());
    assert_eq!((checked.value, checked.problems.len()), (None, MOST_INVALID + 2));
}

#[test]
fn a_forbidden_setting_of_an_untrusted_project_is_not_checked() {
    let model = json!({"compaction": {"thresholdPercent": 150}, "contextWindow": 0});
    let settings = json!({"models": vec![model; 10_000], "defaultModel": 5, "prune": 5, "compaction":
        {"remoteEnabled": 7, "stallSeconds": 8, "midTurns": 9}, "x": 1});
    let (checked, refused) = check_layer(&settings.to_string(), None, Trust::Untrusted);
    assert_eq!(checked.value, Some(json!({"compaction": {"stallSeconds": 8}})));
    let keys: Vec<_> = checked.problems.iter().map(|it| (it.flaw, it.key.as_str())).collect();
    let expected = [(Flaw::Invalid, "prune"), (Flaw::Unknown, "compaction.midTurns"), (Flaw::Unknown, "x")];
    assert_eq!(keys, expected);
    assert_eq!(refused, ["models", "defaultModel", "compaction.remoteEnabled"]);
    let (checked, _) = check_layer(r#"{"compaction": 5}"#, None, Trust::Untrusted);
    assert_eq!(checked.problems[0].flaw, Flaw::Invalid);
}

/// The settings with one number in them.
fn with(number: &Number, value: i64) -> Value {
    number.keys.iter().rev().fold(json!(value), |inner, key| match key.as_str() {
        "models" => json!({"models": [inner]}),
        "cost" => {
            let mut cost = json!({"input": 0, "output": 0});
            inner.as_object().into_iter().flatten().for_each(|(price, value)| cost[price] = value.clone());
            json!({ "cost": cost })
        }
        key => json!({ key: inner }),
    })
}

fn place(number: &Number) -> Place {
    let item = |key: &String| if key == "models" { vec![Step::Item(0)] } else { vec![] };
    Place(number.keys.iter().flat_map(|key| [vec![Step::Key(key.clone())], item(key)].concat()).collect())
}

#[test]
fn every_number_is_held_within_its_range_in_a_file() {
    for number in numbers() {
        let Range { least, most } = number.range(Trust::Trusted);
        for inside in [least, most] {
            let settings = with(number, inside);
            assert_eq!(check(&settings.to_string(), None), Checked { value: Some(settings), problems: vec![] });
        }
        for (outside, nearest) in [(least - 1, least), (i64::MIN, least), (most + 1, most), (i64::MAX, most)] {
            let checked = check(&with(number, outside).to_string(), None);
            let held = checked.value.as_ref().and_then(|it| place(number).of(it));
            let (flaw, expected) = match number.effect {
                Effect::Refused => (Flaw::Invalid, None),
                Effect::Clamped => (Flaw::Clamped, Some(json!(nearest))),
            };
            assert_eq!(held, expected.as_ref(), "{:?} {outside}", number.keys);
            assert_eq!(checked.problems.len(), 1, "{checked:?}");
            assert_eq!((checked.problems[0].flaw, &checked.problems[0].key), (flaw, &place(number).to_string()));
        }
    }
}

#[test]
fn the_unknown_keys_of_settings_are_listed() {
    let settings = json!({"compaction": {"enabld": false, "zebra": 1}, "models": [{"provider": "p", "id": "m", "contxtWindow": 1}]});
    let found = unknown(settings.as_object().expect("an object"));
    let found: Vec<_> = found.iter().map(|it| (it.key.as_str(), it.advice.as_deref())).collect();
    let expected = [
        ("compaction.enabld", Some(r#"did you mean "enabled"?"#)),
        ("compaction.zebra", None),
        ("models[0].contxtWindow", Some(r#"did you mean "contextWindow"?"#)),
    ];
    for key in expected {
        assert!(found.contains(&key), "{key:?} in {found:?}");
    }
    assert_eq!(found.len(), 3);
}
