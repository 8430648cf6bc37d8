//! Whether idle maintenance may start, and the reason why not.

use super::super::parts::facts::Facts;
use crate::{
    compaction::decide::Matter,
    conversation::{
        batch::Batch,
        entry::{Body, Entry},
        message::outline::Role,
        path::Path,
    },
    protocol::types::IdleSkipped,
    session::fault::{Fault, planted},
    settings::{Settings, Switch},
};
use std::sync::Arc;

/// The facts that decide whether idle maintenance may start.
pub(in crate::session::core) struct Check<'a> {
    pub facts: Facts<'a>,
    /// Whether the session has anything to do in the foreground, now or after the work that runs.
    pub is_busy: bool,
    /// Whether the session may be written.
    pub is_writable: bool,
    /// Whether an automatic compaction that did not complete lets no other one start.
    pub rests: bool,
    /// Whether nothing was to be compacted, and the conversation has not changed since.
    pub is_exhausted: bool,
    /// The size of the context that was sent last, in tokens.
    pub sent_tokens: u64,
    /// The reason at the leaf when the bodies were dropped.
    pub at_sleep: Option<IdleSkipped>,
}

impl Check<'_> {
    /// The reason why no idle maintenance starts now. Where the bodies are not in memory, the reason at the leaf is that from
    /// the time at which they were dropped: a change of the conversation brings them back.
    pub fn objection(&self) -> Option<IdleSkipped> {
        let (state, is_asleep) = (self.facts.state, self.facts.state.history().is_asleep());
        let (switch, tokens) = match is_asleep {
            true => (state.settings().settings.compaction.switch(), self.sent_tokens),
            false => {
                let fullness = state.measure();
                (fullness.compaction.switch(), fullness.evident_tokens)
            }
        };
        Some(match () {
            () if self.is_busy => IdleSkipped::Busy,
            () if switch != Switch::On || !self.is_writable => IdleSkipped::Disabled,
            () if is_below_threshold(tokens, &state.settings().settings) => IdleSkipped::BelowThreshold,
            () if is_asleep => return self.at_sleep,
            () => return self.objection_at_leaf(),
        })
    }

    /// The reason why the conversation is left as it is. The bodies of the session are in memory.
    pub fn objection_at_leaf(&self) -> Option<IdleSkipped> {
        let path = self.facts.state.path();
        Some(match () {
            () if awaits_result(path) && !planted(Fault::IdleCallIgnored) => IdleSkipped::UnansweredCall,
            () if awaits_answer(path) && !awaits_result(path) && !planted(Fault::IdleMessageIgnored) => {
                IdleSkipped::UnansweredMessage
            }
            () if self.facts.state.measure().rests(path) => IdleSkipped::Undone,
            () if self.rests => IdleSkipped::Resting,
            () if self.is_exhausted || Matter::on(path) == Matter::None => IdleSkipped::NothingToCompact,
            () => return None,
        })
    }
}

/// Whether a context of this size is too small, in tokens.
pub(super) fn is_below_threshold(context_tokens: u64, settings: &Settings) -> bool {
    context_tokens < settings.compaction.idle_threshold_tokens
}

/// Whether the model is to answer the newest message: one of the user or of an agent, or a tool result. An answer that failed
/// or was cut off may be repeated, but no request runs.
fn awaits_answer(path: &Path) -> bool {
    let newest = path.iter().rev().find_map(|entry| entry.outline());
    newest.is_some_and(|newest| matches!(newest.role, Role::User | Role::Developer | Role::ToolResult))
}

/// Whether a tool call waits for its result. A text that was pinned after the call answers nothing, and neither does the
/// summary of a branch that was left for the call.
fn awaits_result(path: &Path) -> bool {
    let mut batch = Batch::default();
    let answer = path.iter().rposition(|entry| entry.is_from(Role::Assistant)).unwrap_or(path.len());
    let answers = |entry: &&Arc<Entry>| !entry.is_pinned_text() && !matches!(entry.body, Body::BranchSummary(_));
    path[answer..].iter().filter(answers).for_each(|entry| batch.push(entry));
    batch.is_open()
}
