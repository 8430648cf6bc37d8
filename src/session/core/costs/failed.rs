//! The entry of a summary ahead that failed. A failed request has no cost, so the file has nothing else of it.

use crate::{
    conversation::{
        entry::{Entry, Stamps},
        mirroring,
    },
    ids::{EntryId, ModelRef},
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;

/// The data of an `abridged.speculation_failed` entry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FailedAhead {
    /// Tokens of failed requests that their providers may have taken. They count for an hour.
    pub tokens: u64,
    /// The end of the summary. None while it goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureAhead>,
}

/// The failure of a summary ahead.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FailureAhead {
    /// The size of the context at its begin, in tokens.
    pub context_tokens: u64,
    /// The size of the entries that were to be summarized, in tokens.
    pub span: u64,
    /// Number of the failures in a row.
    pub row: u32,
    /// The model of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelRef>,
    /// A digest of the settings.
    pub settings: String,
    /// The reason, for a person.
    pub why: String,
}

impl FailedAhead {
    /// The data of an entry of this kind.
    pub fn of(entry: &Entry) -> Option<Self> {
        Self::deserialize(entry.ours("speculation_failed")?).ok()
    }

    /// Adds a later one.
    pub fn add(&mut self, later: Self) {
        self.tokens = self.tokens.saturating_add(later.tokens);
        self.failure = later.failure.or(self.failure.take());
    }

    /// Its entry after `parent`.
    pub fn entry(&self, stamps: &mut Stamps, parent: Option<&EntryId>) -> Option<Arc<Entry>> {
        let fields = [("customType", "abridged.speculation_failed".into()), ("data", json!(self))];
        mirroring::entry_of("custom", &stamps.stamp(), parent, &fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_add_up_and_the_newest_failure_stays() {
        let failure = |why: &str| Some(FailureAhead { why: why.to_owned(), ..FailureAhead::default() });
        let mut all = FailedAhead { tokens: 1, failure: failure("first") };
        all.add(FailedAhead { tokens: 2, failure: None });
        assert_eq!(all, FailedAhead { tokens: 3, failure: failure("first") });
        all.add(FailedAhead { tokens: u64::MAX, failure: failure("second") });
        assert_eq!(all, FailedAhead { tokens: u64::MAX, failure: failure("second") });
    }
}
