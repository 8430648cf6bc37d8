//! The branches of tool calls. A result belongs to the branch of its call, wherever the leaf is when it comes.

use super::library::{Bodies, Library};
use crate::{
    conversation::entry::Entry,
    ids::{CallId, EntryId},
    log::{
        error::StoreError,
        index::Place,
        lines::Line,
        pieces::{self, Form},
        sealed::Blocking,
    },
};
use memchr::memmem;
use std::{cmp::Reverse, collections::HashSet, sync::Arc};

/// The branch of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    /// The call.
    pub call: CallId,
    /// Its tool, where the call was found.
    pub tool: Option<String>,
    /// The branch.
    pub branch: Branch,
}

/// A branch, seen from a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Branch {
    /// No entry has the call.
    Nowhere,
    /// The call is on the path.
    Here,
    /// The call is on another branch, which ends with this entry.
    Elsewhere(EntryId),
}

/// An answer with a call.
struct Called {
    place: Place,
    tool: String,
}

/// The answers with a call, and its results.
#[derive(Default)]
struct Found {
    answers: Vec<Called>,
    results: HashSet<Place>,
}

impl Library {
    /// The branches of these calls, seen from the path to `leaf`. `end`: the end of the file.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn homes(
        &self,
        calls: &[CallId],
        leaf: Option<&EntryId>,
        end: u64,
        blocking: &Blocking,
    ) -> Result<Vec<Home>, StoreError> {
        let index = self.index();
        let path: HashSet<Place> =
            leaf.and_then(|leaf| index.find(leaf)).map(|leaf| index.path_to(leaf)).into_iter().flatten().collect();
        if path.len() == index.len() {
            // There is no other branch.
            return Ok(calls.iter().map(|call| home(call, None, Branch::Here)).collect());
        }
        let mut found: Vec<Found> = calls.iter().map(|_| Found::default()).collect();
        self.each_that_may_name(calls, end, blocking, &mut |place, entry| {
            let Some(outline) = entry.outline() else { return };
            for (id, found) in calls.iter().zip(&mut found) {
                if outline.answers.as_ref() == Some(id) {
                    found.results.insert(place);
                }
                if let Some(call) = outline.calls.iter().find(|call| call.id == *id) {
                    found.answers.push(Called { place, tool: call.name.clone() });
                }
            }
        })?;
        let homes = calls.iter().zip(found).map(|(call, found)| self.home(call, found, &path, blocking));
        homes.collect()
    }

    fn home(
        &self,
        call: &CallId,
        found: Found,
        path: &HashSet<Place>,
        blocking: &Blocking,
    ) -> Result<Home, StoreError> {
        let Found { mut answers, results } = found;
        if let Some(here) = answers.iter().find(|answer| path.contains(&answer.place)) {
            return Ok(home(call, Some(&here.tool), Branch::Here));
        }
        // The newest first.
        answers.sort_by_key(|answer| Reverse(answer.place));
        let mut ends = answers.iter().map(|answer| (answer, self.behind(answer.place, &results)));
        let newest = ends.next();
        let open = newest.iter().chain(&ends.collect::<Vec<_>>()).find(|(_, end)| !end.is_answered).cloned();
        match open.or(newest) {
            None => Ok(home(call, None, Branch::Nowhere)),
            Some((answer, End { place, .. })) => {
                let last = self.body(place, blocking)?.id.clone();
                Ok(home(call, Some(&answer.tool), Branch::Elsewhere(last)))
            }
        }
    }

    /// The newest entry after an answer, and whether one of these results is after it.
    fn behind(&self, answer: Place, results: &HashSet<Place>) -> End {
        let mut branch = HashSet::from([answer]);
        let mut last = answer;
        for next in self.index().after(Some(answer)) {
            if self.index().parent(next).is_some_and(|parent| branch.contains(&parent)) {
                branch.insert(next);
                last = next;
            }
        }
        End { place: last, is_answered: !results.is_disjoint(&branch) }
    }

    /// Reads the entries whose lines have the id of one of these calls, newest first.
    fn each_that_may_name(
        &self,
        calls: &[CallId],
        end: u64,
        blocking: &Blocking,
        take: &mut dyn FnMut(Place, Arc<Entry>),
    ) -> Result<(), StoreError> {
        let index = self.index();
        let Bodies::File(source) = self.bodies() else {
            for place in index.after(None).rev() {
                take(place, self.body(place, blocking)?);
            }
            return Ok(());
        };
        let finders: Vec<memmem::Finder<'_>> =
            calls.iter().map(|call| memmem::Finder::new(longest_plain(call.as_str()))).collect();
        let source = source.open(blocking);
        let mut lines = source.backwards(end);
        let failed = |error| StoreError::io(source.path(), "cannot be read")(error);
        let named = |line: Line<'_>| finders.iter().any(|finder| finder.find(line.bytes).is_some());
        while let Some(line) = lines.before_where(named).map_err(failed)? {
            let pieces = pieces::of(&line, Form::Today);
            for entry in pieces.iter().rev().filter_map(|piece| piece.entry(&line)) {
                if let Some(place) = index.find(&entry.id) {
                    take(place, entry);
                }
            }
        }
        Ok(())
    }
}

/// The end of a branch.
#[derive(Clone)]
struct End {
    place: Place,
    is_answered: bool,
}

fn home(call: &CallId, tool: Option<&str>, branch: Branch) -> Home {
    Home { call: call.clone(), tool: tool.map(str::to_owned), branch }
}

/// The longest part of an id that every writer of JSON writes as it is.
fn longest_plain(id: &str) -> &str {
    let plain = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-' | '.' | ':' | '|');
    id.split(|char| !plain(char)).max_by_key(|part| part.len()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_searched_by_its_plain_part() {
        assert_eq!(longest_plain("call_1|fc-2"), "call_1|fc-2");
        assert_eq!(longest_plain("a/call_12\"é"), "call_12");
        assert_eq!(longest_plain("é"), "");
    }
}
