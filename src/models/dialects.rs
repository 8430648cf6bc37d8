//! The dialect of each model, by the rules of `data/dialects.json`.

use super::patterns::{Name, Pattern};
use crate::provider::{Dialect, Model, anthropic, google, openai_chat, openai_responses};
use serde::Deserialize;
use std::sync::LazyLock;

/// The rules for each wire format.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[expect(dead_code, reason = "for readers of the file")]
    about: String,
    anthropic: Vec<Rule<anthropic::Dialect>>,
    openai_chat: Vec<Rule<openai_chat::Dialect>>,
    openai_responses: Vec<Rule<openai_responses::Dialect>>,
    google: Vec<Rule<google::Dialect>>,
}

/// The dialect of the models whose names fit one of the patterns.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule<D> {
    models: Vec<Pattern>,
    /// A name whose first rule is this one.
    #[cfg_attr(not(test), expect(dead_code, reason = "a test looks it up"))]
    example: String,
    dialect: D,
}

const JSON: &str = include_str!("../../data/dialects.json");

// A test reads the same text, so that the default never takes its place.
static FILE: LazyLock<File> = LazyLock::new(|| serde_json::from_str(JSON).unwrap_or_default());

/// A model as requests name it: its name at its provider, and the dialect that goes with the name. A name without a rule
/// gets the default of each wire format.
#[must_use]
pub fn model(id: &str) -> Model {
    let name = Name::of(id);
    let File { anthropic, openai_chat, openai_responses, google, .. } = &*FILE;
    let dialect = Dialect {
        anthropic: first(anthropic, &name),
        openai_chat: first(openai_chat, &name),
        openai_responses: first(openai_responses, &name),
        google: first(google, &name),
    };
    Model { id: id.to_owned(), dialect }
}

fn first<D: Clone + Default>(rules: &[Rule<D>], name: &Name) -> D {
    let rule = rules.iter().find(|rule| rule.models.iter().any(|pattern| pattern.fits(name)));
    rule.map(|rule| rule.dialect.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rule that an earlier one hides has no example of its own.
    #[test]
    fn each_rule_is_the_first_for_its_example() {
        fn check<D>(format: &str, rules: &[Rule<D>]) {
            assert!(!rules.is_empty(), "{format} has no rules");
            for (at, rule) in rules.iter().enumerate() {
                let name = Name::of(&rule.example);
                let fits = |rule: &Rule<D>| rule.models.iter().any(|pattern| pattern.fits(&name));
                assert_eq!(rules.iter().position(fits), Some(at), "{format}: {}", rule.example);
            }
        }
        let file: File = serde_json::from_str(JSON).expect("the file is valid");
        check("anthropic", &file.anthropic);
        check("openai_chat", &file.openai_chat);
        check("openai_responses", &file.openai_responses);
        check("google", &file.google);
    }

    #[test]
    fn an_unknown_name_gets_the_defaults() {
        for id in ["", "llama3", "nobody/knows:7b", "ünknown"] {
            assert_eq!(model(id), Model { id: id.to_owned(), dialect: Dialect::default() });
        }
        assert_ne!(model("gpt-5").dialect, Dialect::default());
    }
}
