//! Whether idle maintenance may start, and the reason why not.

use crate::{
    compaction::decide::Matter,
    conversation::{
        batch::Batch,
        entry::{Body, Entry},
        message::outline::Role,
        path::Path,
    },
    protocol::types::IdleSkipped,
    session::{
        core::Core,
        fault::{Fault, planted},
    },
    settings::Switch,
};
use std::sync::Arc;

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

impl Core {
    /// The reason why no idle maintenance starts now. The bodies of the session are in memory.
    pub(super) fn idle_objection(&self) -> Option<IdleSkipped> {
        let fullness = self.state.measure();
        Some(match () {
            () if !self.nothing_waits() => IdleSkipped::Busy,
            () if fullness.compaction.switch() != Switch::On || self.writable().is_err() => IdleSkipped::Disabled,
            () if self.is_below_idle_threshold(fullness.evident_tokens) => IdleSkipped::BelowThreshold,
            () => return self.objection_at_leaf(),
        })
    }

    /// The reason why the conversation is left as it is. The bodies of the session are in memory.
    pub(super) fn objection_at_leaf(&self) -> Option<IdleSkipped> {
        let path = self.state.path();
        Some(match () {
            () if awaits_result(path) && !planted(Fault::IdleCallIgnored) => IdleSkipped::UnansweredCall,
            () if awaits_answer(path) && !awaits_result(path) && !planted(Fault::IdleMessageIgnored) => {
                IdleSkipped::UnansweredMessage
            }
            () if self.state.measure().rests(path) => IdleSkipped::Undone,
            () if self.rests() => IdleSkipped::Resting,
            () if self.is_exhausted() || Matter::on(path) == Matter::None => IdleSkipped::NothingToCompact,
            () => return None,
        })
    }

    /// The reason why no idle maintenance starts in a session whose bodies are not in memory. The reason at the leaf is that
    /// from the time at which they were dropped: a change of the conversation brings them back.
    pub(super) fn objection_asleep(&self) -> Option<IdleSkipped> {
        let switch = self.state.settings().settings.compaction.switch();
        Some(match () {
            () if !self.nothing_waits() => IdleSkipped::Busy,
            () if switch != Switch::On || self.writable().is_err() => IdleSkipped::Disabled,
            () if self.is_below_idle_threshold(self.sent_usage.context_tokens) => IdleSkipped::BelowThreshold,
            () => return self.reason_at_sleep(),
        })
    }

    /// Whether a context of this size is too small, in tokens.
    pub(super) fn is_below_idle_threshold(&self, context_tokens: u64) -> bool {
        context_tokens < self.state.settings().settings.compaction.idle_threshold_tokens
    }
}
