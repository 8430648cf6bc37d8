//! Pruning: old tool results are replaced with a notice. The newest results and those of protected tools stay. A small
//! gain is not worth an edit, because each edit costs the provider's prompt cache behind it.

use crate::{
    conversation::{
        entry::{ContextEdit, Entry, Replacement},
        message::{Message, ToolResult, outline::Role},
        tokens::Estimator,
    },
    settings::PruneSettings,
};
use std::sync::Arc;

/// The edits of a pruning.
#[derive(Debug, Clone, Default)]
pub struct Pruned {
    /// One edit for each result.
    pub edits: Vec<ContextEdit>,
    /// Freed tokens, by the estimate.
    pub tokens_saved: u64,
}

/// The tool results among entries, newest first.
pub fn results(entries: &[Arc<Entry>]) -> impl Iterator<Item = (&Arc<Entry>, &ToolResult)> {
    entries.iter().rev().filter(|entry| entry.is_from(Role::ToolResult)).filter_map(|entry| match entry.message() {
        Some(Message::ToolResult(result)) => Some((entry, result)),
        _ => None,
    })
}

/// Cuts the results before the newest `protect_tokens` of results, if that frees at least `minimum_savings`. `may` tells
/// whether an entry may be cut.
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

/// An edit that replaces the content of an entry.
#[must_use]
pub fn edit(entry: &Entry, content: serde_json::Value) -> ContextEdit {
    ContextEdit { target_id: entry.id.clone(), replacement: Some(Replacement { content }) }
}
