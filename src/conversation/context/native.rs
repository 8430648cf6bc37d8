//! The form of a context for the provider that compacted it: the provider's own history in place of the readable summary,
//! and the rest of the context after it.

use super::{Context, ContextMessage, Part, pairing};
use crate::conversation::{
    entry::{
        Entry,
        native::{Covers, NativeHistory},
    },
    tokens::Estimator,
};
use std::sync::Arc;

/// A context that begins with a provider's own history.
#[derive(Debug, Clone)]
pub struct NativeForm {
    history: Arc<NativeHistory>,
    messages: Vec<ContextMessage>,
}

impl NativeForm {
    /// The form of a context after the compaction in an entry. `rest` is the summary message without the summary, beside a
    /// history of such a part. `kept` are the messages of the kept entries, and `later` those of the entries after the
    /// compaction.
    pub(super) fn of(
        entry: &Entry,
        rest: &dyn Fn(Covers) -> String,
        kept: &[ContextMessage],
        later: &[ContextMessage],
    ) -> Option<Self> {
        let history = entry.compaction()?.native()?.clone();
        let kept = match history.covers() {
            Covers::Summarized => kept,
            Covers::Kept => &[],
        };
        let rest = Some(rest(history.covers())).filter(|rest| !rest.is_empty());
        let rest = rest.map(|rest| ContextMessage::user_text(entry, Part::Summary, rest));
        let messages = rest.into_iter().chain(kept.iter().chain(later).cloned()).collect();
        Some(Self { history, messages: pairing::pair(messages) })
    }

    /// The provider's history.
    #[must_use]
    pub fn history(&self) -> &NativeHistory {
        &self.history
    }

    /// The messages after it.
    #[must_use]
    pub fn messages(&self) -> &[ContextMessage] {
        &self.messages
    }

    /// Its estimated tokens, uncalibrated.
    pub(super) fn tokens(&self, estimator: Estimator) -> u64 {
        let messages = self.messages.iter().map(|message| u64::from(message.tokens(estimator)));
        messages.sum::<u64>().saturating_add(self.history.tokens())
    }
}

impl Context {
    /// The form for this provider, where it compacted the conversation itself.
    #[must_use]
    pub fn native(&self, provider: &str) -> Option<&NativeForm> {
        self.native.as_ref().filter(|native| native.history.provider() == provider)
    }
}
