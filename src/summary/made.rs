//! The origin of a summary.

use crate::{ids::ModelRef, models::candidates::Candidate};
use schemars::JsonSchema;
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

/// The origin of a summary.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Made {
    /// The method of the summary.
    pub method: SummaryMethod,
    /// The model that wrote it; `None` for a method without a model.
    pub by: Option<ModelRef>,
    /// The rejected candidates.
    pub rejected: Vec<Rejected>,
    /// The tokens that a request or a whole summary would have taken, where no model was asked because too few were left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unaffordable: Option<u64>,
}

/// A rejected candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rejected {
    /// The method of the candidate.
    pub method: SummaryMethod,
    /// The model; `None` if the configured name is no model.
    pub model: Option<ModelRef>,
    /// The reason.
    pub why: String,
    /// The error of the provider in the form of `error.data`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Value>,
}

impl Made {
    /// The origin of a summary by a model.
    #[must_use]
    pub fn by_model(model: ModelRef) -> Self {
        Self { method: SummaryMethod::Llm, by: Some(model), ..Self::default() }
    }

    /// The origin of a summary by a candidate.
    #[must_use]
    pub fn by(candidate: &Candidate) -> Self {
        match candidate.named() {
            Some(model) => Self::by_model(model.clone()),
            None => Self { method: SummaryMethod::Remote, ..Self::default() },
        }
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
