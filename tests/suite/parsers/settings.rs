//! Texts of settings: what is kept of them is valid, says the same when it is read again, and holds nothing that its trust
//! forbids; no problem tells a secret.

use super::chunks::choices;
use abridged::settings::{
    Layers, Problem, Source,
    checked::{self, Checked, check_layer, tighten},
    layers::from_environment,
    masked::told,
    patch::patched_text,
    ranges::outside,
    trust::{Trust, allowed, needs_trust},
};
use serde_json::{Value, json};

/// The most problems that are reported: the worst ones, and one that counts the rest.
const MOST_REPORTED: usize = 16 + 1;

/// Values from before the text was read.
fn before() -> Value {
    json!({"compaction": {"reserveTokens": 5_000, "strategy": "off"}, "models": [{"provider": "p", "id": "m", "contextWindow": 9_000}]})
}

pub fn check(data: &[u8]) {
    let Some(([form], text)) = choices(data) else { return };
    let text = &*String::from_utf8_lossy(text);
    let before = (form % 2 == 1).then(before);
    is_checked(text, before.as_ref());
    is_patched(text);
}

fn is_checked(text: &str, before: Option<&Value>) {
    for trust in [Trust::Trusted, Trust::Untrusted] {
        let (Checked { value, problems }, refused) = check_layer(text, before, trust);
        are_few_and_placed(text, &problems);
        tell_no_secret(text, &problems);
        assert!(refused.iter().all(|key| needs_trust(key)), "{refused:?}");
        let Some(mut value) = value else {
            assert!(problems.iter().any(Problem::is_fatal));
            continue;
        };
        is_valid(&value);
        if trust == Trust::Untrusted && before.is_none() {
            assert_eq!(allowed(&value, trust), (value.clone(), Vec::new()));
        }
        tighten(&mut value, trust);
        assert_eq!(outside(&value, trust), []);
        is_valid(&value);
        is_in_force(&value, trust);
    }
    let of_environment = from_environment(&|name| (name == "ABRIDGED_SETTINGS").then(|| text.to_owned()));
    assert!(of_environment.value == checked::check(text, None).value || text.trim().is_empty());
}

fn are_few_and_placed(text: &str, problems: &[Problem]) {
    assert!(problems.len() <= MOST_REPORTED, "{} problems", problems.len());
    for problem in problems {
        assert!(problem.line.is_none_or(|line| (1..=text.split('\n').count()).contains(&line)), "{problem:?}");
        assert!(!problem.what.is_empty() && problem.what.len() <= 500 + text.len(), "{problem:?}");
    }
}

/// The kept settings are read again without a problem.
fn is_valid(value: &Value) {
    let again = checked::check(&value.to_string(), None);
    assert!(!again.problems.iter().any(Problem::is_fatal), "{:?} in {value}", again.problems);
    assert_eq!(again.value.as_ref(), Some(value));
}

/// Layers that are valid one by one are valid together.
fn is_in_force(value: &Value, trust: Trust) {
    let (project, _) = allowed(value, trust);
    for layers in [vec![(Source::Global, value.clone())], vec![(Source::Global, before()), (Source::Project, project)]]
    {
        let layers = Layers::of(layers);
        let sourced = layers.with_session(None).unwrap_or_else(|problem| panic!("{problem}: {value}"));
        let shown = told(&sourced.settings);
        assert!(serde_json::to_value(&sourced).is_ok_and(|sourced| sourced["settings"] == shown));
        for secret in secrets(value) {
            assert!(!shown.to_string().contains(&secret), "{secret}");
        }
    }
}

fn tell_no_secret(text: &str, problems: &[Problem]) {
    let Ok(value) = serde_json::from_str::<Value>(text) else { return };
    for secret in secrets(&value) {
        let telling = problems.iter().find(|problem| problem.to_string().contains(&secret));
        assert!(telling.is_none(), "{secret}: {telling:?}");
    }
}

/// Texts and numbers at the places of secrets, each of which stands at no other place.
fn secrets(value: &Value) -> Vec<String> {
    let all = value.to_string();
    let mut found = Vec::new();
    for model in value["models"].as_array().into_iter().flatten() {
        texts(&model["headers"], &mut found);
        match &model["apiKeyCommand"] {
            // The program is none.
            Value::Array(words) => words.iter().skip(1).for_each(|word| texts(word, &mut found)),
            other => texts(other, &mut found),
        }
    }
    found.retain(|secret| secret.len() >= 8 && all.matches(secret).count() == 1);
    found
}

fn texts(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Number(number) => found.push(number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Object(fields) => fields.values().for_each(|value| texts(value, found)),
        Value::Null | Value::Bool(_) => {}
    }
}

/// A patch changes what it names and nothing else, and a second time nothing at all.
fn is_patched(text: &str) {
    let Ok(Value::Object(fields)) = serde_json::from_str::<Value>(text) else { return };
    // A number with more digits than a reader keeps is written as it was read.
    let again = serde_json::from_str::<Value>(&Value::Object(fields.clone()).to_string());
    if again.ok() != Some(Value::Object(fields.clone())) {
        return;
    }
    let patches = [
        json!({"compaction": {"reserveTokens": 7_000, "strategy": null}}),
        json!({"models": [{"provider": "p", "id": "m"}]}),
        Value::Object(fields.clone()),
        Value::Object(fields.keys().map(|key| (key.clone(), Value::Null)).collect()),
    ];
    for patch in patches {
        let Ok(Some(after)) = patched_text(Some(text), &patch) else { continue };
        let value: Value = serde_json::from_str(&after).unwrap_or_else(|error| panic!("{error}: {after}"));
        for (key, kept) in fields.iter().filter(|(key, _)| patch.get(key.as_str()).is_none()) {
            assert_eq!(value.get(key), Some(kept), "{after}");
        }
        let known = checked::check(text, None).problems;
        let new = checked::check(&after, None).problems.into_iter().find(|problem| {
            problem.is_fatal() && !known.iter().any(|old| (&old.key, &old.what) == (&problem.key, &problem.what))
        });
        // Of many problems only some are listed.
        assert!(new.is_none() || known.len() == MOST_REPORTED, "{new:?} in {after}");
        assert_eq!(patched_text(Some(&after), &patch), Ok(None), "{after}");
    }
}
