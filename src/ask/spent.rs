//! The cost of a model's answer.

use super::purpose::Purpose;
use crate::{
    conversation::{
        entry::{self, Stamp},
        message::Usage,
        spending::{self, Trigger},
    },
    ids::{EntryId, ModelRef, OperationId},
    models::prices::Cost,
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
    /// Reason of the request. An older recording has none.
    #[serde(default)]
    pub trigger: Trigger,
    /// Usage, in tokens.
    pub usage: Usage,
    /// Whether the usage is an estimate, because no report came.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// The input by an estimate, where it is known, in tokens. A report may be too small.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sent: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}

impl Spent {
    /// The cost before its entry is written: without a time and a price.
    #[must_use]
    pub fn cost(&self) -> spending::Cost {
        let purpose = self.purpose.name().to_owned();
        spending::Cost { purpose, trigger: self.trigger, usage: self.usage, price: None, at: 0 }
    }

    /// The cost as an entry of the session. Without known prices `cost` is zero, because readers need the fields.
    #[must_use]
    pub fn line(&self, stamp: &Stamp, parent: Option<&EntryId>, operation: &OperationId, cost: Option<Cost>) -> String {
        let Usage { input, output, cache_read, cache_write, .. } = self.usage;
        let usage = json!({
            "input": input, "output": output, "cacheRead": cache_read, "cacheWrite": cache_write,
            "totalTokens": self.usage.context_tokens(),
            "cost": cost.unwrap_or_default(),
        });
        let fields = [
            ("kind", entry::raw(&self.purpose)),
            ("purpose", entry::raw(&self.purpose)),
            ("trigger", entry::raw(&self.trigger)),
            ("provider", entry::raw(&self.model.provider)),
            ("model", entry::raw(&self.model.id)),
            ("usage", entry::raw(&usage)),
            ("operationId", entry::raw(operation)),
        ];
        let estimated = self.estimated.then(|| ("estimated", entry::raw(&true)));
        let fields: Vec<_> = fields.iter().chain(&estimated).map(|(name, json)| (*name, &**json)).collect();
        entry::line("usage", stamp, parent, &fields)
    }
}
