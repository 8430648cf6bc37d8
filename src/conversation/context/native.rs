//! The form of a context for the provider that compacted it: the provider's own history in place of the readable summary,
//! and the rest of the context after it.

use super::{Context, ContextMessage, Part, pairing};
use crate::conversation::{
    entry::{
        Entry,
        native::{Covers, Kind, NativeHistory},
    },
    message::outline::Role,
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
        let place = match history.kind() {
            Kind::Items => 0,
            Kind::Block(_) => place_after_block(kept, later),
        };
        let mut messages: Vec<_> = kept.iter().chain(later).cloned().collect();
        if let Some(rest) = rest {
            messages.insert(place, rest);
        }
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

/// The place of the pinned texts and the like among the messages after a block: nothing may stand between the block and the
/// kept messages. The next message of the user comes before them. Where the kept messages end inside a turn there may be
/// none, and later requests must have the same bytes, so that they follow the kept messages at once.
fn place_after_block(kept: &[ContextMessage], later: &[ContextMessage]) -> usize {
    let is_over = kept.last().is_some_and(|last| {
        let outline = last.outline();
        outline.role == Role::Assistant && outline.calls.is_empty()
    });
    let asks = |message: &ContextMessage| !matches!(message.outline().role, Role::Assistant | Role::ToolResult);
    kept.len() + usize::from(is_over && later.first().is_some_and(asks))
}

impl Context {
    /// The form for the provider that compacted the conversation itself.
    #[must_use]
    pub fn any_native(&self) -> Option<&NativeForm> {
        self.native.as_ref()
    }

    /// The form for this provider, where it compacted the conversation itself.
    #[must_use]
    pub fn native(&self, provider: &str) -> Option<&NativeForm> {
        self.native.as_ref().filter(|native| native.history.provider() == provider)
    }
}
