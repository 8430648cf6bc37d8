//! The time for which a provider keeps a prompt in its cache, by the rules of `data/caches.json`.

use super::{
    ModelRef,
    patterns::{Name, Pattern},
};
use serde::Deserialize;
use std::sync::LazyLock;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[expect(dead_code, reason = "for readers of the file")]
    about: String,
    default: u64,
    rules: Vec<Rule>,
}

/// The time for the models whose names fit one of the patterns.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    models: Vec<Pattern>,
    /// A name whose first rule is this one.
    #[cfg_attr(not(test), expect(dead_code, reason = "a test looks it up"))]
    example: String,
    seconds: u64,
}

const JSON: &str = include_str!("../../data/caches.json");

// A test reads the same text, so that the default never takes its place.
static FILE: LazyLock<File> = LazyLock::new(|| serde_json::from_str(JSON).unwrap_or_default());

/// The longest time for which the prompts of a model are kept after their last use, in seconds.
#[must_use]
pub fn lifetime(model: Option<&ModelRef>) -> u64 {
    let rule = model.and_then(|model| {
        let name = Name::of(&model.id);
        FILE.rules.iter().find(|rule| rule.models.iter().any(|pattern| pattern.fits(&name)))
    });
    rule.map_or(FILE.default, |rule| rule.seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_has_an_example_and_other_names_the_default() {
        let file: File = serde_json::from_str(JSON).expect("the file is right");
        let model = |id: &str| ModelRef { provider: "p".into(), id: id.into() };
        for rule in &file.rules {
            assert_eq!(lifetime(Some(&model(&rule.example))), rule.seconds, "{}", rule.example);
        }
        assert_eq!(lifetime(Some(&model("anthropic/claude-sonnet-4.5"))), 300);
        assert_eq!([lifetime(None), lifetime(Some(&model("gpt-5.5")))], [3_600; 2]);
    }
}
