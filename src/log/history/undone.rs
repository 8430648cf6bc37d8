//! The compactions and resets of a session that markers take back.

use super::library::Library;
use crate::{
    conversation::entry::Entry,
    ids::EntryId,
    log::{error::StoreError, index::Place, sealed::Blocking},
};
use std::collections::HashSet;

/// The compaction or the reset that a marker takes back.
fn undone_by(marker: &Entry) -> Option<EntryId> {
    marker.undoes().or_else(|| Some(marker.ours("leaf")?.get("resetEntryId")?.as_str()?.into()))
}

impl Library {
    /// The places of compactions and resets that do not hold any more. `active`: the places of the active path, in the order of
    /// the file. A compaction of the active path holds, though another branch took it back.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn undone(&self, active: &[Place], blocking: &Blocking) -> Result<HashSet<Place>, StoreError> {
        let is_active = |place: &Place| active.binary_search(place).is_ok();
        let mut undone = HashSet::new();
        for marker in self.index().undo_markers() {
            let by = self.body(*marker, blocking)?;
            let place = undone_by(&by).and_then(|id| self.index().find(&id));
            undone.extend(place.filter(|place| !is_active(place) || is_active(marker)));
        }
        Ok(undone)
    }

    /// The places of the path to an entry, in the order of the file.
    #[must_use]
    pub fn active(&self, leaf: Option<&EntryId>) -> Vec<Place> {
        let leaf = leaf.and_then(|leaf| self.index().find(leaf));
        leaf.map(|leaf| self.index().path_to(leaf)).unwrap_or_default()
    }
}
