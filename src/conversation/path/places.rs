//! The places of many entries on a path.

use super::Path;
use crate::{conversation::entry::Entry, ids::EntryId};
use std::{
    cell::{Cell, OnceCell},
    collections::HashMap,
    sync::Arc,
};

/// Looks up entries of a path. A few are searched for from its end, where most of them stand; for more of them all places are
/// gathered once.
#[derive(Debug)]
pub struct Places<'p> {
    path: &'p Path,
    searches: Cell<usize>,
    all: OnceCell<HashMap<&'p EntryId, usize>>,
}

/// Searches before all places are gathered.
const SEARCHES: usize = 4;

impl<'p> Places<'p> {
    pub(super) fn of(path: &'p Path) -> Self {
        Self { path, searches: Cell::new(0), all: OnceCell::new() }
    }

    /// The place of an entry: the last one, where several have its id.
    #[must_use]
    pub fn of_entry(&self, id: &EntryId) -> Option<usize> {
        if self.searches.get() < SEARCHES {
            self.searches.set(self.searches.get() + 1);
            return self.path.position(id);
        }
        let all = || self.path.iter().enumerate().map(|(place, entry)| (&entry.id, place)).collect();
        self.all.get_or_init(all).get(id).copied()
    }

    /// The entry of an id.
    #[must_use]
    pub fn entry(&self, id: &EntryId) -> Option<&'p Arc<Entry>> {
        self.of_entry(id).map(|place| &self.path[place])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_the_same_however_often_it_is_looked_up() {
        let entry = |id: &str| {
            let line = format!(r#"{{"type":"custom","id":"{id}","parentId":null,"timestamp":"t"}}"#);
            Arc::new(Entry::parse(line.into()).expect("an entry"))
        };
        let mut path = Path::default();
        ["a", "b", "a", "c"].map(entry).into_iter().for_each(|entry| path.push(entry));
        let places = path.places();
        for _ in 0..=SEARCHES {
            for (id, place) in [("a", Some(2)), ("b", Some(1)), ("c", Some(3)), ("d", None)] {
                assert_eq!(places.of_entry(&id.into()), place, "{id}");
                assert_eq!(place, path.position(&id.into()));
            }
        }
    }
}
