//! Prices of tokens: the ones that are known of a model, and assumed ones where they are not.

use super::{ModelRef, SaidBy, known};
use crate::{
    conversation::message::Usage,
    provider::Api,
    settings::{ModelCost, Settings},
};
use serde::Serialize;

/// Price of cached input, as a share of the price of input: the documented one of Anthropic and Google, and the median of
/// the models of the catalog that have one.
const CACHED: f64 = 0.1;

/// Price of input that is written to the cache, as a share of the price of input, where a request marks the parts to be
/// cached: Anthropic's for five minutes.
const WRITTEN: f64 = 1.25;

/// Price of output, as a share of the price of input: the median of the models of the catalog.
const OUTPUT: f64 = 4.0;

/// The prices of a model and their source.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Listed {
    /// The prices.
    pub cost: ModelCost,
    /// The source.
    pub source: SaidBy,
}

/// The prices of a model with nothing missing, for a million tokens each.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// Input that is not cached.
    pub input: f64,
    /// Output.
    pub output: f64,
    /// Input that is read from the cache.
    pub cache_read: f64,
    /// Input that is written to the cache.
    pub cache_write: f64,
    /// The source of the numbers.
    pub basis: Basis,
}

/// The source of [`Rates`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// All four prices are known, in dollars. A price of writing that is not listed is that of input, where a provider
    /// caches by itself.
    Listed,
    /// The prices of input and output are known, in dollars. The prices of the cache are assumed.
    CacheAssumed,
    /// No price is known. Input costs 1.
    Ratios,
}

/// The cost of an answer, in dollars, in the form of a message's `usage.cost`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cost {
    /// Input that was not cached.
    pub input: f64,
    /// Output.
    pub output: f64,
    /// Input that was read from the cache.
    pub cache_read: f64,
    /// Input that was written to the cache.
    pub cache_write: f64,
    /// All of it.
    pub total: f64,
}

/// The prices of a model: configured, else known. None where both are unknown.
#[must_use]
pub fn listed(settings: &Settings, model: &ModelRef) -> Option<Listed> {
    let set = settings.model(model).and_then(|model| model.cost);
    let set = set.map(|cost| Listed { cost, source: SaidBy::Setting });
    let known = || known::known(&model.provider, &model.id)?.cost;
    set.or_else(|| known().map(|cost| Listed { cost, source: SaidBy::Catalog }))
}

/// The rates of a model. A model without prices, and one that is free, has ratios alone.
#[must_use]
pub fn rates(settings: &Settings, model: Option<&ModelRef>) -> Rates {
    let api = model.and_then(|model| {
        let set = settings.model(model).and_then(|model| model.api);
        set.or_else(|| known::provider(&model.provider).map(|provider| provider.api))
    });
    let written = if api == Some(Api::Anthropic) { WRITTEN } else { 1.0 };
    let listed = model.and_then(|model| listed(settings, model));
    match listed.map(|listed| listed.cost).filter(|cost| cost.input > 0.0) {
        Some(ModelCost { input, output, cache_read, cache_write }) => Rates {
            input,
            output,
            cache_read: cache_read.unwrap_or(input * CACHED),
            cache_write: cache_write.unwrap_or(input * written),
            basis: match (cache_read, cache_write) {
                (Some(_), Some(_)) => Basis::Listed,
                (Some(_), None) if written <= 1.0 => Basis::Listed,
                _ => Basis::CacheAssumed,
            },
        },
        None => Rates { input: 1.0, output: OUTPUT, cache_read: CACHED, cache_write: written, basis: Basis::Ratios },
    }
}

/// The cost of an answer of a model. None where the prices of the model are unknown.
#[must_use]
pub fn cost(settings: &Settings, model: &ModelRef, usage: &Usage) -> Option<Cost> {
    listed(settings, model)?;
    let rates = rates(settings, Some(model));
    if rates.basis == Basis::Ratios {
        // The model is free.
        return Some(Cost::default());
    }
    let of = |tokens: u64, price: f64| rounded(tokens as f64 * price / 1e6);
    let (input, output) = (of(usage.input, rates.input), of(usage.output, rates.output));
    let (cache_read, cache_write) = (of(usage.cache_read, rates.cache_read), of(usage.cache_write, rates.cache_write));
    let total = rounded(input + output + cache_read + cache_write);
    Some(Cost { input, output, cache_read, cache_write, total })
}

/// The part of the price of a request that the provider's cache saved, in dollars. None where the prices of the model are
/// unknown.
#[must_use]
pub fn saved_by_cache(settings: &Settings, model: &ModelRef, usage: &Usage) -> Option<f64> {
    listed(settings, model)?;
    let rates = rates(settings, Some(model));
    let saved = match rates.basis {
        // The model is free.
        Basis::Ratios => 0.0,
        Basis::Listed | Basis::CacheAssumed => usage.cache_read as f64 * (rates.input - rates.cache_read) / 1e6,
    };
    Some(rounded(saved.max(0.0)))
}

/// Dollars with nine digits after the point: a token of the cheapest model costs more than one of the last.
#[must_use]
pub fn rounded(dollars: f64) -> f64 {
    (dollars * 1e9).round() / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Layers, Source};
    use serde_json::{Value, json};

    fn settings(model: Value) -> Settings {
        Layers::of(vec![(Source::Global, json!({"models": [model]}))]).sourced().settings
    }

    fn model(name: &str) -> ModelRef {
        ModelRef::parse(name).expect("a name")
    }

    fn numbers(rates: Rates) -> ([f64; 4], Basis) {
        ([rates.input, rates.output, rates.cache_read, rates.cache_write], rates.basis)
    }

    #[test]
    fn prices_that_are_missing_are_assumed() {
        let of = |cost: Value| settings(json!({"provider": "p", "id": "m", "cost": cost}));
        let marked = |cost: Value| settings(json!({"provider": "p", "id": "m", "api": "anthropic", "cost": cost}));
        for (settings, expected, basis) in [
            (of(Value::Null), [1.0, 4.0, 0.1, 1.0], Basis::Ratios),
            (marked(Value::Null), [1.0, 4.0, 0.1, 1.25], Basis::Ratios),
            (
                of(json!({"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0})),
                [1.0, 4.0, 0.1, 1.0],
                Basis::Ratios,
            ),
            (of(json!({"input": 2, "output": 8})), [2.0, 8.0, 0.2, 2.0], Basis::CacheAssumed),
            (of(json!({"input": 2, "output": 8, "cacheWrite": 3})), [2.0, 8.0, 0.2, 3.0], Basis::CacheAssumed),
            (of(json!({"input": 2, "output": 8, "cacheRead": 0.5})), [2.0, 8.0, 0.5, 2.0], Basis::Listed),
            (marked(json!({"input": 2, "output": 8, "cacheRead": 0.5})), [2.0, 8.0, 0.5, 2.5], Basis::CacheAssumed),
            (
                of(json!({"input": 2, "output": 8, "cacheRead": 0, "cacheWrite": 0})),
                [2.0, 8.0, 0.0, 0.0],
                Basis::Listed,
            ),
        ] {
            assert_eq!(numbers(rates(&settings, Some(&model("p/m")))), (expected, basis));
        }
        let known = rates(&Settings::default(), Some(&model("anthropic/claude-haiku-4-5")));
        assert_eq!(numbers(known), ([1.0, 5.0, 0.1, 1.25], Basis::Listed));
        assert_eq!(rates(&Settings::default(), None).basis, Basis::Ratios);
    }

    #[test]
    fn a_price_of_the_settings_stands_for_that_of_the_catalog() {
        let own =
            settings(json!({"provider": "anthropic", "id": "claude-haiku-4-5", "cost": {"input": 9, "output": 9}}));
        let haiku = model("anthropic/claude-haiku-4-5");
        let source = |settings: &Settings, model| listed(settings, model).map(|it| (it.cost.input, it.source));
        assert_eq!(source(&own, &haiku), Some((9.0, SaidBy::Setting)));
        assert_eq!(source(&Settings::default(), &haiku), Some((1.0, SaidBy::Catalog)));
        assert_eq!(source(&own, &model("p/m")), None);
    }

    #[test]
    fn an_answer_costs_its_tokens_by_their_prices() {
        let usage = Usage { input: 1_000_000, output: 200_000, cache_read: 3_000_000, cache_write: 100_000, total: 0 };
        let haiku = cost(&Settings::default(), &model("anthropic/claude-haiku-4-5"), &usage);
        let expected = Cost { input: 1.0, output: 1.0, cache_read: 0.3, cache_write: 0.125, total: 2.425 };
        assert_eq!(haiku, Some(expected));
        let free = settings(json!({"provider": "p", "id": "m", "cost": {"input": 0, "output": 0}}));
        assert_eq!(cost(&free, &model("p/m"), &usage), Some(Cost::default()));
        assert_eq!(cost(&free, &model("p/n"), &usage), None);
    }
}
