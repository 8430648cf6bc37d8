//! Prunings that nobody asked for.

use super::{Rule, Verdict, file::File, require};
use crate::{conversation::message::outline::Role, ids::EntryId, simulator::setup::MINIMUM_SAVINGS};

/// A pruning frees its minimum, and the newest result stays. One for the bytes of images, and one of a client, have other
/// limits.
pub fn announced(entries: &[EntryId], tokens_saved: u64, why: &str, file: &File) -> Verdict {
    if !why.starts_with("the context was over the threshold") {
        return Ok(());
    }
    require(tokens_saved >= MINIMUM_SAVINGS, Rule::PruningKeepsLimits, || {
        format!("a pruning saves {tokens_saved} tokens, and the minimum is {MINIMUM_SAVINGS}")
    })?;
    let newest = file.chain().find(|entry| entry.is_from(Role::ToolResult)).map(|entry| &entry.id);
    let taken = newest.filter(|newest| !file.another_wrote() && entries.contains(newest));
    require(taken.is_none(), Rule::PruningKeepsLimits, || format!("a pruning takes the newest result, {taken:?}"))
}
