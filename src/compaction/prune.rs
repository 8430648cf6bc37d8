//! Old tool results give way to a line about them. The newest stay, so does what is protected, and nothing is touched for
//! a small gain: every edit costs the provider's prompt cache behind it.

use crate::{
    conversation::{
        entry::{ContextEdit, Entry, Replacement},
        message::{Message, ToolResult, outline::Role},
        tokens::Estimator,
    },
    settings::PruneSettings,
};
use std::sync::Arc;

/// What would be cut.
#[derive(Debug, Clone, Default)]
pub struct Pruned {
    /// One for each result.
    pub edits: Vec<ContextEdit>,
    /// What that frees, estimated and not calibrated.
    pub tokens_saved: u64,
}

/// The tool results among entries, newest first.
pub fn results(entries: &[Arc<Entry>]) -> impl Iterator<Item = (&Arc<Entry>, &ToolResult)> {
    entries.iter().rev().filter(|entry| entry.is_from(Role::ToolResult)).filter_map(|entry| match entry.message() {
        Some(Message::ToolResult(result)) => Some((entry, result)),
        _ => None,
    })
}

/// Cuts the results behind the newest `protect_tokens` of them, if that frees at least `minimum_savings`. `may` says
/// which may be cut at all.
#[must_use]
pub fn prune(
    entries: &[Arc<Entry>],
    settings: &PruneSettings,
    estimator: Estimator,
    may: &dyn Fn(&Entry) -> bool,
) -> Pruned {
    let mut newer = 0;
    let mut pruned = Pruned::default();
    for (entry, result) in results(entries) {
        let tokens = u64::from(entry.tokens(estimator));
        let protected = newer < settings.protect_tokens || settings.protected_tools.contains(&result.tool);
        newer += tokens;
        if protected || result.pruned || !may(entry) {
            continue;
        }
        let notice = format!("[Output truncated - {tokens} tokens]");
        let left = Estimator::Chars.of_text(&notice);
        if tokens > left {
            pruned.tokens_saved += tokens - left;
            pruned.edits.push(edit(entry, notice.into()));
        }
    }
    if pruned.tokens_saved < settings.minimum_savings { Pruned::default() } else { pruned }
}

/// Another content for an entry.
#[must_use]
pub fn edit(entry: &Entry, content: serde_json::Value) -> ContextEdit {
    ContextEdit { target_id: entry.id.clone(), replacement: Some(Replacement { content }) }
}
