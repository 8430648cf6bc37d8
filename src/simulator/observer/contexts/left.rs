//! The way there and back: a leaf that is entered again has the context that it had when it was left.

use super::{File, Rule, Verdict, context_of, require};
use crate::{conversation::path::Path, ids::EntryId, protocol::events::Event, session::core::Core};
use std::collections::HashMap;

/// The leaves that navigations left.
#[derive(Debug, Default)]
pub struct Left {
    paths: HashMap<EntryId, Path>,
    /// The leaf that a navigation without a summary has entered in this input.
    entered: Option<EntryId>,
}

impl Left {
    /// `tree_changed` is sent. `path`: the path before.
    pub fn moves(&mut self, event: &Event, path: Option<&Path>, file: &File) {
        let Event::TreeChanged { old_leaf_id, new_leaf_id, summary_entry_id, .. } = event else { return };
        if let (Some(old), Some(path)) = (old_leaf_id, path)
            && path.visible_leaf() == Some(old)
        {
            self.paths.insert(old.clone(), path.clone());
        }
        // Before a message of the user the session stands where that message stood.
        let marker = file.announced_chain().next().and_then(|leaf| leaf.ours("leaf"));
        let target = marker.as_ref().and_then(|data| data["targetEntryId"].as_str());
        let is_target = target == new_leaf_id.as_ref().map(EntryId::as_str);
        self.entered = new_leaf_id.clone().filter(|_| summary_entry_id.is_none() && is_target);
    }

    /// The session stands at this path. A leaf that was left may get another state until it is left again.
    pub fn stands(&mut self, path: &Path) {
        if let Some(known) = path.visible_leaf().and_then(|leaf| self.paths.get_mut(leaf)) {
            known.clone_from(path);
        }
    }

    /// An input was handled.
    pub fn arrives(&mut self, core: &Core, file: &File) -> Verdict {
        let before = self.entered.take().and_then(|leaf| self.paths.get(&leaf));
        let now = core.state().path();
        let (Some(before), false) = (before, file.another_wrote() || now.lacks_its_past()) else { return Ok(()) };
        if before.lacks_its_past() {
            return Ok(());
        }
        let (old, new) = (context_of(core, before), context_of(core, now));
        require(old == new, Rule::ThereAndBack, || {
            let differs = old.iter().zip(&new).position(|(old, new)| old != new);
            format!("{:?} was left with {} messages and has {}: {differs:?}", now.visible_leaf(), old.len(), new.len())
        })
    }
}

/// A session that was opened again stands at the leaf of its last line.
pub fn leaf_survives(core: &Core, file: &File) -> Verdict {
    if file.another_wrote() || file.is_unfinished() {
        return Ok(());
    }
    let said = file.chain().find(|entry| !entry.is_marker()).map(|entry| entry.id.clone());
    let leaf = core.state().visible_leaf();
    require(leaf == said, Rule::LeafSurvives, || format!("the leaf is {leaf:?}, and the file says {said:?}"))
}
