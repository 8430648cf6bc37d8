//! The origin of a summary.

pub use crate::conversation::entry::{SummaryForm, SummaryRequests};
use crate::{conversation::message::Usage, ids::ModelRef, models::candidates::Candidate};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Method of a summary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SummaryMethod {
    /// A model wrote the summary.
    Llm,
    /// A remote endpoint wrote the summary.
    Remote,
    /// The provider's own compaction.
    ProviderNative,
    /// The summary was extracted without a model.
    #[default]
    Extractive,
    /// A hook supplied the summary.
    Hook,
}

/// A part of the summary of a split turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SummaryPart {
    /// The whole turns.
    History,
    /// The beginning of the turn whose end is kept.
    TurnPrefix,
}

/// The origin of a part. The default: extracted without a model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PartOrigin {
    /// The method of the part.
    pub method: SummaryMethod,
    /// The model that wrote the part; null for a method without a model.
    pub model: Option<ModelRef>,
}

/// The origins of the parts of a summary, where they differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PartOrigins {
    /// The origin of the whole turns.
    pub history: PartOrigin,
    /// The origin of the beginning of the turn whose end is kept.
    pub turn_prefix: PartOrigin,
}

impl PartOrigin {
    /// The origin of a part by a candidate.
    #[must_use]
    pub fn of(candidate: &Candidate) -> Self {
        let model = candidate.named().cloned();
        Self { method: if model.is_some() { SummaryMethod::Llm } else { SummaryMethod::Remote }, model }
    }

    fn is_extracted(&self) -> bool {
        self.method == SummaryMethod::Extractive
    }
}

impl PartOrigins {
    /// The part that was extracted.
    #[must_use]
    pub fn extracted(&self) -> Option<SummaryPart> {
        match (self.history.is_extracted(), self.turn_prefix.is_extracted()) {
            (true, _) => Some(SummaryPart::History),
            (false, true) => Some(SummaryPart::TurnPrefix),
            (false, false) => None,
        }
    }
}

/// The origin of a summary.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Made {
    /// The method of the summary. Where its parts differ: that of the part by a model, or of the history.
    pub method: SummaryMethod,
    /// The model that wrote it, or that part of it; `None` for a method without a model.
    pub by: Option<ModelRef>,
    /// The origins of its parts, where they differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<Box<PartOrigins>>,
    /// The form of the requests for it; `None` where no model wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<SummaryForm>,
    /// A request of the session's own brought no summary.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub live_failed: bool,
    /// The rejected candidates.
    pub rejected: Vec<Rejected>,
    /// The tokens that a request or a whole summary would have taken, where no model was asked because too few were left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unaffordable: Option<u64>,
    /// The tokens of all requests for it together; `None` where no model was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The part of the price of these requests that their providers' caches saved, in dollars; `None` where a price is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved: Option<f64>,
}

/// A candidate that did not become the summary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rejected {
    /// Method of the candidate.
    pub method: SummaryMethod,
    /// Model of the candidate.
    pub model: Option<ModelRef>,
    /// Reason of the rejection.
    pub why: String,
    /// Error of the provider, for a candidate that failed with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "error_data")]
    pub error: Option<Value>,
}

/// The schema of `error.data`, by its name: the protocol declares it, and knows summaries.
fn error_data(generator: &mut SchemaGenerator) -> Schema {
    let definitions = &generator.settings().definitions_path;
    json_schema!({ "anyOf": [{ "$ref": format!("#{definitions}/ErrorData") }, { "type": "null" }] })
}

impl Made {
    /// The origin of a summary by a model.
    #[must_use]
    pub fn by_model(model: ModelRef) -> Self {
        Self { method: SummaryMethod::Llm, by: Some(model), ..Self::default() }
    }

    /// The origin of a summary with parts of these origins.
    #[must_use]
    pub fn of_parts(history: PartOrigin, turn_prefix: PartOrigin) -> Self {
        let parts = PartOrigins { history, turn_prefix };
        let written = if parts.history.is_extracted() { &parts.turn_prefix } else { &parts.history };
        let PartOrigin { method, model: by } = written.clone();
        Self { method, by, parts: (parts.history != parts.turn_prefix).then(|| Box::new(parts)), ..Self::default() }
    }

    /// The requests for it. None where no model was asked. `before`: those for the summary before it.
    #[must_use]
    pub fn requests(&self, before: Option<SummaryRequests>) -> Option<SummaryRequests> {
        let has_failed = before.is_some_and(|before| before.live_failed) && self.form != Some(SummaryForm::LiveRequest);
        let (form, dollars) = (self.form, self.saved);
        self.usage.map(|usage| SummaryRequests {
            form,
            cached: usage.cache_read,
            input: usage.input.saturating_add(usage.cache_write),
            live_failed: self.live_failed || has_failed,
            dollars,
        })
    }

    /// Whether the summary was extracted, because no candidate supplied one.
    #[must_use]
    pub fn is_extracted(&self) -> bool {
        self.method == SummaryMethod::Extractive
    }
}

impl Rejected {
    /// A rejected candidate of a summary by models.
    #[must_use]
    pub fn model(model: Option<ModelRef>, why: String) -> Self {
        Self { method: SummaryMethod::Llm, model, why, error: None }
    }

    /// A rejected candidate: a model, or the service at `compaction.remoteEndpoint`.
    #[must_use]
    pub fn of(model: Option<&ModelRef>, why: String) -> Self {
        let method = if model.is_some() { SummaryMethod::Llm } else { SummaryMethod::Remote };
        Self { method, model: model.cloned(), why, error: None }
    }
}
