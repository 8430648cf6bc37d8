//! The walk from a leaf back to where nothing older matters.

use super::Path;
use crate::{
    conversation::entry::{Body, Entry},
    ids::EntryId,
};
use std::{collections::HashSet, sync::Arc};

/// Walks a branch backwards from its leaf. `earlier` gives the leaf for nothing, and for the entry that it gave last the
/// entry which that one follows. Where that is not the parent it names, the entry follows it all the same.
///
/// # Errors
/// Those of `earlier`.
pub fn gather<E>(mut earlier: impl FnMut(Option<&Entry>) -> Result<Option<Arc<Entry>>, E>) -> Result<Path, E> {
    let mut path = Path::default();
    let mut reach = Reach::Compaction { undone: HashSet::new() };
    let mut next = earlier(None)?;
    while let Some(entry) = next {
        if !reach.goes_on(&entry) {
            path.cut = entry.parent.is_some();
            path.push(entry);
            break;
        }
        next = earlier(Some(&entry))?;
        let parent = next.as_ref().map(|parent| parent.id.clone());
        path.push(entry.behind(parent));
    }
    path.entries.reverse();
    Ok(path)
}

/// The parts that are still missing on the way back.
enum Reach {
    /// The compaction in force.
    Compaction { undone: HashSet<EntryId> },
    /// The first entry it keeps.
    Entry(EntryId),
    /// So many messages before it, and the start of the turn of the first of them.
    Messages(u64),
}

impl Reach {
    fn goes_on(&mut self, entry: &Entry) -> bool {
        match self {
            Self::Compaction { .. } if matches!(entry.body, Body::ResetBoundary(_)) => false,
            Self::Compaction { undone } => {
                undone.extend(entry.undoes());
                match &entry.body {
                    Body::Compaction(it) if !undone.contains(&entry.id) => {
                        match (&it.first_kept_entry_id, it.keep_last_messages) {
                            (Some(first), _) if *first == entry.id => return false,
                            (Some(first), _) => *self = Self::Entry(first.clone()),
                            (None, None | Some(0)) => return false,
                            (None, Some(count)) => *self = Self::Messages(count),
                        }
                        true
                    }
                    _ => true,
                }
            }
            Self::Entry(first) => entry.id != *first,
            Self::Messages(left) => {
                *left = left.saturating_sub(u64::from(entry.outline().is_some()));
                entry.compaction().is_none() && !(*left == 0 && entry.starts_turn())
            }
        }
    }
}
