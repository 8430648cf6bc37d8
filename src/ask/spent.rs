//! The cost of a model's answer.

use super::purpose::Purpose;
use crate::{
    conversation::{
        entry::{self, Stamp},
        message::Usage,
    },
    ids::{EntryId, ModelRef, OperationId},
};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Cost of one answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Purpose of the request.
    pub purpose: Purpose,
    /// Model that answered.
    pub model: ModelRef,
    /// Usage, in tokens.
    pub usage: Usage,
}

impl Spent {
    /// The cost as an entry of the session.
    #[must_use]
    pub fn line(&self, stamp: &Stamp, parent: Option<&EntryId>, operation: &OperationId) -> String {
        let Usage { input, output, cache_read, cache_write, .. } = self.usage;
        let usage = json!({
            "input": input, "output": output, "cacheRead": cache_read, "cacheWrite": cache_write,
            "totalTokens": self.usage.context_tokens(),
            // Prices are not known here, and readers need the fields.
            "cost": { "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0 },
        });
        entry::line(
            "usage",
            stamp,
            parent,
            &[
                ("kind", &entry::raw(&self.purpose)),
                ("purpose", &entry::raw(&self.purpose)),
                ("provider", &entry::raw(&self.model.provider)),
                ("model", &entry::raw(&self.model.id)),
                ("usage", &entry::raw(&usage)),
                ("operationId", &entry::raw(operation)),
            ],
        )
    }
}
