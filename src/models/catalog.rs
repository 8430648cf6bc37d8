//! The models, the facts about each, and their sources. Keys and the credentials in an address are left out.

use super::{
    ModelRef, SaidBy,
    known::Api,
    learned::{Learned, LearnedWindow},
    output_limit,
    prices::{self, Listed},
    window,
};
use crate::{
    provider::address::without_credentials,
    settings::{ModelCost, ModelSettings, Source, Sourced},
};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashSet;

/// A model and what is known of it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListedModel {
    /// The provider's name.
    pub provider: String,
    /// The model's name at that provider.
    pub id: String,
    /// The wire format.
    pub api: Option<Api>,
    /// The base URL, without credentials.
    pub base_url: Option<String>,
    /// The environment variable with the key. Its value is never sent.
    pub api_key_env: Option<String>,
    /// Size of the window, in tokens.
    pub context_window: Known,
    /// The output limit, in tokens; null where it is unknown.
    pub max_output_tokens: Option<Known>,
    /// The prices; null where they are unknown.
    pub cost: Option<KnownCost>,
    /// `"provider/id"` of a larger model to go to.
    pub promote_to: Option<String>,
    /// Whether sessions without a model of their own use this model.
    pub default: bool,
    /// The windows that its servers taught, whether they count or not. `models/forget` clears them.
    pub learned: Vec<LearnedWindow>,
}

impl ListedModel {
    /// Its name.
    #[must_use]
    pub fn model(&self) -> ModelRef {
        ModelRef { provider: self.provider.clone(), id: self.id.clone() }
    }
}

/// A value and its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Known {
    /// The value.
    pub value: u64,
    /// The source.
    pub source: KnownBy,
}

/// Prices in dollars per million tokens, and their source.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KnownCost {
    /// Input that is not cached.
    pub input: f64,
    /// Output.
    pub output: f64,
    /// Input that is read from the prompt cache; null where it is unknown.
    pub cache_read: Option<f64>,
    /// Input that is written to the prompt cache; null where it is unknown, or costs as much as input.
    pub cache_write: Option<f64>,
    /// The source.
    pub source: KnownBy,
}

/// The source of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KnownBy {
    /// No source: a cautious default.
    Default,
    /// The catalog of known models.
    Catalog,
    /// The provider, in an error about a request that was too long.
    Learned,
    /// The global settings file.
    Global,
    /// The project's settings file.
    Project,
    /// An environment variable.
    Environment,
    /// The session's own settings.
    Session,
}

impl From<Source> for KnownBy {
    fn from(source: Source) -> Self {
        match source {
            Source::Default => Self::Default,
            Source::Global => Self::Global,
            Source::Project => Self::Project,
            Source::Environment => Self::Environment,
            Source::Session => Self::Session,
        }
    }
}

/// The models of the settings, then those that are only used: the default one, and a session's own; then those of which
/// only a window was learned.
#[must_use]
pub fn catalog(sourced: &Sourced, learned: &Learned, in_use: &[ModelRef]) -> Vec<ListedModel> {
    let Sourced { settings, sources, .. } = sourced;
    let default = settings.model_by_default();
    // A list is taken from one place as a whole.
    let source = sources.get("models").copied().map_or(KnownBy::Default, KnownBy::from);
    let by = |said_by| match said_by {
        SaidBy::Setting => source,
        SaidBy::Learned => KnownBy::Learned,
        SaidBy::Catalog => KnownBy::Catalog,
        SaidBy::Default => KnownBy::Default,
    };
    let configured = settings.models.iter().map(|it| ModelRef { provider: it.provider.clone(), id: it.id.clone() });
    let taught = learned.all().map(|row| row.model.clone());
    let named = configured.chain(default.clone()).chain(in_use.iter().cloned()).chain(taught);
    let mut seen = HashSet::new();
    let listed = named.filter(|model| seen.insert(model.clone())).map(|model| {
        let nothing = ModelSettings::default();
        let set = settings.model(&model).unwrap_or(&nothing);
        let window = window(settings, learned.taught(settings, &model), Some(&model));
        let output = output_limit(settings, Some(&model));
        let stated =
            |limit: Option<u64>, by: KnownBy| if limit.is_some() && by == source { KnownBy::Session } else { by };
        let window_by = stated(settings.stated.window(Some(&model)), by(window.source));
        let output_by = |said_by| stated(settings.stated.output(Some(&model)), by(said_by));
        ListedModel {
            api: set.api,
            base_url: set.base_url.as_deref().map(without_credentials),
            api_key_env: set.api_key_env.clone(),
            context_window: Known { value: window.tokens, source: window_by },
            max_output_tokens: output.map(|limit| Known { value: limit.tokens, source: output_by(limit.source) }),
            cost: prices::listed(settings, &model).map(|Listed { cost, source }| {
                let ModelCost { input, output, cache_read, cache_write } = cost;
                KnownCost { input, output, cache_read, cache_write, source: by(source) }
            }),
            promote_to: set.promote_to.clone(),
            default: default.as_ref() == Some(&model),
            learned: learned.of_model(&model).to_vec(),
            provider: model.provider,
            id: model.id,
        }
    });
    listed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Layers;
    use serde_json::json;

    #[test]
    fn each_model_is_there_once_and_says_who_knows_it() {
        let global = json!({
            "defaultModel": "far/unknown",
            "models": [
                {"provider": "local", "id": "qwen", "contextWindow": 5, "promoteTo": "local/big"},
                {"provider": "local", "id": "qwen", "contextWindow": 6},
                {"provider": "local", "id": "big", "maxOutputTokens": 7, "cost": {"input": 2, "output": 8.5}},
                {"provider": "anthropic", "id": "claude-opus-4-5", "apiKeyCommand": ["hush"], "headers": {"X": "hush"}},
            ],
        });
        let sourced = Layers::of(vec![(Source::Global, global)]).sourced();
        let in_use = ModelRef { provider: "local".into(), id: "big".into() };
        let learned: Learned =
            serde_json::from_value(json!({"local/big": 64_000, "once/met": 32_000})).expect("windows");
        let models = catalog(&sourced, &learned, std::slice::from_ref(&in_use));
        let seen: Vec<_> = models
            .iter()
            .map(|it| (it.id.as_str(), it.context_window.value, it.context_window.source, it.default))
            .collect();
        let expected = [
            ("qwen", 5, KnownBy::Global, false),
            ("big", 64_000, KnownBy::Learned, false),
            ("claude-opus-4-5", 200_000, KnownBy::Catalog, false),
            ("unknown", 128_000, KnownBy::Default, true),
            ("met", 32_000, KnownBy::Learned, false),
        ];
        assert_eq!(seen, expected);
        assert_eq!(models[0].max_output_tokens, None);
        assert_eq!(models[1].max_output_tokens, Some(Known { value: 7, source: KnownBy::Global }));
        assert_eq!(models[2].max_output_tokens, Some(Known { value: 64_000, source: KnownBy::Catalog }));
        let costs = models.iter().map(|it| it.cost.map(|cost| (cost.input, cost.cache_read, cost.source)));
        let known = (5.0, Some(0.5), KnownBy::Catalog);
        assert_eq!(costs.collect::<Vec<_>>(), [None, Some((2.0, None, KnownBy::Global)), Some(known), None, None]);
        let taught = models.iter().map(|it| it.learned.len());
        assert_eq!(taught.collect::<Vec<_>>(), [0, 1, 0, 0, 1]);
        let told = serde_json::to_string(&models).expect("JSON");
        assert!(!told.contains("hush"), "{told}");
    }
}
