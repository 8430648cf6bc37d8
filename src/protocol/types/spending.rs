//! Tokens that models took for work beside the turns.

use crate::conversation::spending::{Spending, Sum};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Requests and tokens that models took for work beside the turns of a session: summaries, retries and rejected answers
/// included.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Spent {
    /// All requests.
    pub total: SpentSum,
    /// Those by purpose, as `usage` entries name it.
    pub purposes: BTreeMap<String, SpentSum>,
    /// Those of automatic maintenance, which no client asked for.
    pub automatic: SpentSum,
    /// Automatic maintenance of the last hour.
    pub last_hour: SpentInHour,
    /// Whether earlier requests may be missing, because the index is not ready.
    pub at_least: bool,
}

/// A sum of requests.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpentSum {
    /// Number of requests that reported a cost.
    pub requests: u64,
    /// Input that was not cached, in tokens.
    pub input: u64,
    /// Output, in tokens.
    pub output: u64,
    /// Input that a provider read from its cache, in tokens.
    pub cache_read: u64,
    /// Input that a provider wrote to its cache, in tokens.
    pub cache_write: u64,
    /// All tokens.
    pub total_tokens: u64,
    /// Cost in dollars of the requests whose prices are known; null where none is.
    pub dollars: Option<f64>,
    /// Number of requests whose prices are not known.
    pub unpriced: u64,
}

/// Automatic maintenance of the last hour.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpentInHour {
    /// Tokens.
    pub tokens: u64,
    /// The most tokens, by `compaction.maxTokensPerHour`; null: no limit.
    pub most: Option<u64>,
    /// Tokens that are left; null: no limit.
    pub left: Option<u64>,
}

impl Spent {
    /// The costs of a session as clients see them.
    #[must_use]
    pub fn new(spending: &Spending, last_hour: SpentInHour) -> Self {
        Self {
            total: spending.all().into(),
            purposes: spending.purposes.iter().map(|(name, sum)| (name.clone(), SpentSum::from(*sum))).collect(),
            automatic: spending.automatic.into(),
            last_hour,
            at_least: spending.is_partial,
        }
    }
}

impl From<Sum> for SpentSum {
    fn from(sum: Sum) -> Self {
        let Sum { requests, input, output, cache_read, cache_write, total, price, priced } = sum;
        let dollars = (priced > 0).then_some(price as f64 / 1e6);
        let unpriced = requests.saturating_sub(priced);
        Self { requests, input, output, cache_read, cache_write, total_tokens: total, dollars, unpriced }
    }
}
