//! Limits that a client states for the model of a session.

use crate::ids::ModelRef;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};
use std::{borrow::Cow, ops::RangeInclusive};

/// The numbers of tokens that a limit may have, as in the settings.
const RANGE: RangeInclusive<u64> = 1..=1_000_000_000;

/// The numbers of tokens that a limit in the file of another program may have. A smaller window would leave a session stuck.
const RANGE_OF_OTHERS: RangeInclusive<u64> = 1_024..=10_000_000;

/// A limit in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct TokenLimit(u64);

impl TokenLimit {
    /// The number of tokens.
    #[must_use]
    pub fn tokens(self) -> u64 {
        self.0
    }
}

impl<'de> Deserialize<'de> for TokenLimit {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        let tokens = u64::deserialize(reader)?;
        match RANGE.contains(&tokens) {
            true => Ok(Self(tokens)),
            false => Err(de::Error::custom(format!(
                "{tokens} is out of range; expected a number of tokens from {} to {}",
                RANGE.start(),
                RANGE.end()
            ))),
        }
    }
}

impl JsonSchema for TokenLimit {
    fn schema_name() -> Cow<'static, str> {
        "TokenLimit".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": RANGE.start(), "maximum": RANGE.end() })
    }
}

/// The limits that a client states for a model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Limits {
    /// The model. Without one they hold for a session without a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelRef>,
    /// Size of the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_window: Option<TokenLimit>,
    /// The longest answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<TokenLimit>,
}

impl Limits {
    /// Whether they limit nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.context_window.is_none() && self.max_output_tokens.is_none()
    }

    /// The window of a model, in tokens, if it is stated.
    #[must_use]
    pub fn window(&self, model: Option<&ModelRef>) -> Option<u64> {
        self.context_window.filter(|_| self.model.as_ref() == model).map(TokenLimit::tokens)
    }

    /// The longest answer of a model, in tokens, if it is stated.
    #[must_use]
    pub fn output(&self, model: Option<&ModelRef>) -> Option<u64> {
        self.max_output_tokens.filter(|_| self.model.as_ref() == model).map(TokenLimit::tokens)
    }

    /// These limits over older ones, which hold where both are of the same model.
    #[must_use]
    pub fn over(self, before: Self) -> Self {
        if self.model != before.model {
            return self;
        }
        Self {
            context_window: self.context_window.or(before.context_window),
            max_output_tokens: self.max_output_tokens.or(before.max_output_tokens),
            ..self
        }
    }

    /// The limits that a file of another program may state.
    #[must_use]
    pub fn of_others(self) -> Self {
        let allowed = |limit: &TokenLimit| RANGE_OF_OTHERS.contains(&limit.0);
        Self { context_window: self.context_window.filter(allowed), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn limits(json: serde_json::Value) -> Limits {
        serde_json::from_value(json).expect("limits")
    }

    #[test]
    fn limits_hold_for_their_model_alone() {
        let model = ModelRef::parse("p/m").expect("a model");
        let stated = limits(json!({"model": "p/m", "contextWindow": 8_000, "maxOutputTokens": 500}));
        assert_eq!((stated.window(Some(&model)), stated.output(Some(&model))), (Some(8_000), Some(500)));
        let other = ModelRef::parse("p/other").expect("a model");
        assert_eq!((stated.window(Some(&other)), stated.output(None)), (None, None));
        let of_none = limits(json!({"contextWindow": 8_000}));
        assert_eq!((of_none.window(None), of_none.window(Some(&model))), (Some(8_000), None));
    }

    #[test]
    fn newer_limits_complete_those_of_the_same_model() {
        let before = limits(json!({"model": "p/m", "contextWindow": 8_000, "maxOutputTokens": 500}));
        let same = limits(json!({"model": "p/m", "contextWindow": 9_000})).over(before.clone());
        assert_eq!(same, limits(json!({"model": "p/m", "contextWindow": 9_000, "maxOutputTokens": 500})));
        let output = limits(json!({"model": "p/m", "maxOutputTokens": 600})).over(before.clone());
        assert_eq!(output, limits(json!({"model": "p/m", "contextWindow": 8_000, "maxOutputTokens": 600})));
        let other = limits(json!({"model": "p/n", "contextWindow": 9_000}));
        assert_eq!(other.clone().over(before), other);
    }

    #[test]
    fn each_limit_alone_is_one() {
        for (json, empty) in [
            (json!({"contextWindow": 1}), false),
            (json!({"maxOutputTokens": 1}), false),
            (json!({"model": "p/m"}), true),
        ] {
            assert_eq!(limits(json.clone()).is_empty(), empty, "{json}");
        }
    }

    #[test]
    fn a_limit_has_a_range() {
        for (tokens, right) in [(0, false), (1, true), (1_000_000_000, true), (1_000_000_001, false)] {
            assert_eq!(serde_json::from_value::<TokenLimit>(json!(tokens)).is_ok(), right, "{tokens}");
        }
        for window in [1_023, 10_000_001] {
            assert!(limits(json!({"contextWindow": window})).of_others().is_empty(), "{window}");
        }
        assert!(!limits(json!({"contextWindow": 1_024})).of_others().is_empty());
    }
}
