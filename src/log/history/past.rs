//! Values of a session from before its path: a context needs them where the compaction in force is another program's, which
//! carries none.

use crate::{
    conversation::{
        context,
        entry::{Body, CarriedPin, Entry, Preserved},
        message::outline::Role,
        path::Path,
    },
    ids::EntryId,
    log::index::{Index, Place},
};
use std::{collections::HashSet, sync::Arc};

/// Completes a path with the values from before its first entry, as far as the index knows that entry. `body` gives the
/// entry at a place, and `None` where it cannot be read: such an entry is left out.
pub fn complete(index: &Index, path: &mut Path, body: impl Fn(Place) -> Option<Arc<Entry>>) {
    if !path.lacks_its_past() {
        return;
    }
    let Some(first) = path.first().and_then(|entry| index.find(&entry.id)) else { return };
    let mut told = Path::default();
    index.landmarks_before(first).into_iter().filter_map(&body).for_each(|entry| told.push(entry));
    let mut past = Preserved::of(&told);
    let mut earlier = std::iter::successors(index.parent(first), |place| index.parent(*place));
    let cleared = |entry: &Arc<Entry>| matches!(entry.body, Body::ResetBoundary(_));
    let newest = earlier.by_ref().filter_map(&body).find(|entry| entry.is_from(Role::User) || cleared(entry));
    past.newest_user_message = newest.filter(|entry| !cleared(entry)).map(|entry| context::carried(&entry));
    // A pin on the path may be of an entry that the other program's compaction left behind.
    let places = path.places();
    let left_behind = path.pins().iter().filter(|pin| pin.text.is_none() && places.of_entry(&pin.entry).is_none());
    let mut known: HashSet<EntryId> = past.pins.iter().map(|known| known.entry_id.clone()).collect();
    for pin in left_behind {
        if known.insert(pin.entry.clone()) {
            past.pins.push(CarriedPin { entry_id: pin.entry.clone(), text: None });
        }
    }
    past.pins.sort_by_cached_key(|pin| index.find(&pin.entry_id));
    // Their texts stand somewhere before the path.
    for pin in past.pins.iter_mut().filter(|pin| pin.text.is_none()) {
        pin.text = index.find(&pin.entry_id).and_then(&body).map(|entry| entry.pinned_text());
    }
    path.learn_its_past(past);
}
