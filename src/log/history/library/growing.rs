//! The path after a write, read by the index: the parent of the new entries may lie anywhere in the file.

use super::Library;
use crate::{
    conversation::{
        entry::Entry,
        path::{self, Path},
    },
    log::{error::StoreError, index::Place, sealed::Blocking},
};
use std::{collections::HashMap, iter, sync::Arc};

impl Library {
    /// The path to the last of these entries, which stand after all others, as far back as its context needs. None where
    /// the index does not know its parents.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn path_behind(&self, new: &[Arc<Entry>], blocking: &Blocking) -> Result<Option<Path>, StoreError> {
        let Some((last, mut before)) = new.split_last() else { return Ok(None) };
        let mut chain = vec![last];
        let mut parent = last.parent.as_ref();
        while let Some(at) = parent.and_then(|parent| before.iter().rposition(|entry| entry.id == *parent)) {
            chain.push(&before[at]);
            parent = before[at].parent.as_ref();
            before = &before[..at];
        }
        let place = match parent {
            None => None,
            Some(parent) => match self.index.find(parent) {
                None => return Ok(None),
                found => found,
            },
        };
        self.gather(chain.into_iter().cloned(), place, blocking).map(Some)
    }

    /// The path of these places, as far back as its context needs, with the values from before it. `known` are entries in
    /// memory: the end of a path of the session.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn path_of(&self, places: &[Place], known: &[Arc<Entry>], blocking: &Blocking) -> Result<Path, StoreError> {
        let end = known.last().and_then(|last| self.index.find(&last.id)).map(|last| self.index.path_to(last));
        let end = end.unwrap_or_default();
        let known: HashMap<Place, &Arc<Entry>> = end.into_iter().rev().zip(known.iter().rev()).collect();
        let mut places = places.iter().rev();
        let mut path = path::gather(|_| match places.next() {
            Some(place) => {
                known.get(place).map_or_else(|| self.body(*place, blocking), |it| Ok((*it).clone())).map(Some)
            }
            None => Ok(None),
        })?;
        self.complete(&mut path, &[], blocking);
        Ok(path)
    }

    /// Reads the path that has these entries at its end, the last one first, and goes on at a place.
    pub(super) fn gather(
        &self,
        mut end: impl Iterator<Item = Arc<Entry>>,
        place: Option<Place>,
        blocking: &Blocking,
    ) -> Result<Path, StoreError> {
        let mut places = iter::successors(place, |place| self.index.parent(*place));
        path::gather(|_| match end.next() {
            Some(entry) => Ok(Some(entry)),
            None => places.next().map(|place| self.body(place, blocking)).transpose(),
        })
    }
}
