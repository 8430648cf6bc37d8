//! `session/entries` and `session/entry`: entries in pages, and single ones. Entries of the path in memory are answered
//! immediately. All others are found by the index and read from the file beside the core.

use crate::{
    conversation::{entry::Entry, path::Path},
    ids::EntryId,
    log::index::{Index, Place},
    protocol::{
        SessionEntries, SessionEntry,
        errors::Failure,
        types::{self, Branch, EntriesAnswer, EntriesParams, EntryAnswer, EntryParams},
    },
    session::{
        core::{
            Core,
            base::Base,
            command::{Command, SessionMethod},
        },
        effects::{Answer, Ticket, telling::wire},
        state::State,
    },
};

/// Entries of a page without a `limit`.
const PAGE: usize = 1_000;

/// The cursor of the end of the session.
const LEAF: &str = "leaf";

/// Bytes of a page without `maxBytes`.
const PAGE_BYTES: usize = 1 << 20;

impl SessionMethod for SessionEntries {
    fn handle(core: &mut Core, params: EntriesParams, ticket: Ticket) {
        if params.since.is_some() && params.before.is_some() {
            let what = "give either since, for the entries after an entry, or before, for those before one";
            return ticket.fail(&Failure::params("before", what));
        }
        match entries_in_memory(&core.base.state, &params) {
            Some(answer) => ticket.ok(&answer),
            None if params.before.is_some() => read_back(&mut core.base, params, ticket),
            None => read_entries(&mut core.base, params, ticket),
        }
    }
}

impl SessionMethod for SessionEntry {
    fn handle(core: &mut Core, params: EntryParams, ticket: Ticket) {
        match core.base.state.path().position(&params.entry_id) {
            Some(place) => ticket.ok(&EntryAnswer { entry: wire(&core.base.state.path()[place]) }),
            None => read_entry(&mut core.base, params, ticket),
        }
    }
}

fn read_entries(base: &mut Base, params: EntriesParams, ticket: Ticket) {
    let Some(library) = base.state.history().library() else {
        return base.await_index(Command::call::<SessionEntries>(params), ticket);
    };
    let index = library.index();
    let since = match &params.since {
        None => None,
        Some(cursor) => match index.find_cursor(cursor) {
            None => return ticket.fail(&Failure::no_entry(cursor)),
            found => found,
        },
    };
    let places: Vec<Place> = if params.branch == Some(Branch::All) {
        index.after(since).collect()
    } else {
        let leaf = base.state.path().last().and_then(|leaf| index.find(&leaf.id));
        let path = leaf.map(|leaf| index.path_to(leaf)).unwrap_or_default();
        // A cursor on a branch that was left goes on where that branch leaves the path.
        let fork = std::iter::successors(since, |place| index.parent(*place));
        let from = fork.filter_map(|place| path.binary_search(&place).ok()).next().map_or(0, |at| at + 1);
        path[from..].to_vec()
    };
    let wanted = base.state.history().wanted(places.iter().copied());
    let leaf = base.state.visible_leaf();
    base.reads.start(ticket, move |blocking| {
        let mut page = Page::new(&params);
        for entry in wanted.read(blocking) {
            match entry {
                Err(error) => return Answer::Failed(error.into()),
                Ok(entry) if !page.add(&entry) => break,
                Ok(_) => {}
            }
        }
        let next = page.ends_at().map(|last| library.index().cursor(places[last.number], &last.id));
        Answer::ok(&page.answer(leaf, next))
    });
}

/// Reads the entries before a cursor, the newest first.
fn read_back(base: &mut Base, params: EntriesParams, ticket: Ticket) {
    let Some(library) = base.state.history().library() else {
        return base.await_index(Command::call::<SessionEntries>(params), ticket);
    };
    let before = params.before.as_ref().filter(|cursor| cursor.as_str() != LEAF);
    let before = match before.map(|cursor| library.index().find_cursor(cursor).ok_or(cursor)).transpose() {
        Ok(before) => before,
        Err(cursor) => return ticket.fail(&Failure::no_entry(cursor)),
    };
    let leaf = base.state.path().last().and_then(|leaf| library.index().find(&leaf.id));
    let visible_leaf = base.state.visible_leaf();
    base.reads.start(ticket, move |blocking| {
        let index = library.index();
        let places: Box<dyn Iterator<Item = Place>> = match params.branch {
            Some(Branch::All) => Box::new(index.until(before).rev()),
            _ => {
                let newest = match before {
                    None => leaf,
                    // Before a cursor on a branch that was left stands where that branch leaves the path.
                    Some(before) => index.last_in_common(leaf, index.parent(before)),
                };
                Box::new(std::iter::successors(newest, |place| index.parent(*place)))
            }
        };
        let mut page = Page::new(&params);
        let mut offered = Vec::new();
        for place in places {
            match library.body(place, blocking) {
                Err(error) => return Answer::Failed(error.into()),
                Ok(entry) => {
                    offered.push(place);
                    if !page.add(&entry) {
                        break;
                    }
                }
            }
        }
        let next = page.ends_at().map(|oldest| index.cursor(offered[oldest.number], &oldest.id));
        Answer::ok(&page.answer_backwards(visible_leaf, next))
    });
}

fn read_entry(base: &mut Base, params: EntryParams, ticket: Ticket) {
    let Some(index) = base.state.history().index() else {
        return base.await_index(Command::call::<SessionEntry>(params), ticket);
    };
    let Some(place) = index.find(&params.entry_id) else {
        return ticket.fail(&Failure::no_entry(&params.entry_id));
    };
    let wanted = base.state.history().wanted([place]);
    base.reads.start(ticket, move |blocking| {
        let entry = wanted.read(blocking).next().unwrap_or_else(|| unreachable!("one was asked for"));
        let found = entry.map_err(Failure::from).and_then(|entry| {
            let same = entry.id == params.entry_id;
            same.then(|| EntryAnswer { entry: wire(&entry) }).ok_or(Failure::no_entry(&params.entry_id))
        });
        Answer::from(found)
    });
}

/// A page of the path in memory; `None` where other entries belong to it, or where several entries have one id, so that
/// the index is needed for cursors.
fn entries_in_memory(state: &State, params: &EntriesParams) -> Option<EntriesAnswer> {
    let by_ids = params.branch != Some(Branch::All) && !state.history().index().is_some_and(Index::has_twins);
    if params.before.is_some() {
        let ids = if state.history().index().is_some() { Ids::Unique } else { Ids::Unknown };
        let (page, next) = by_ids.then(|| page_before(state.path(), params, ids)).flatten()?;
        return Some(page.answer_backwards(state.visible_leaf(), next));
    }
    let (page, next) = by_ids.then(|| page_of(state.path(), params)).flatten()?;
    Some(page.answer(state.visible_leaf(), next))
}

/// A page of a path and its next cursor; `None` where other entries belong to it, or where the id of its last entry means
/// a later entry of the path.
fn page_of<'a>(path: &Path, params: &'a EntriesParams) -> Option<(Page<'a>, Option<EntryId>)> {
    let from = match &params.since {
        None if path.is_cut() => return None,
        None => 0,
        Some(since) => path.position(since)? + 1,
    };
    let mut page = Page::new(params);
    let _ = path[from..].iter().all(|entry| page.add(entry));
    match page.ends_at() {
        Some(last) if path.position(&last.id) != Some(from + last.number) => None,
        last => Some((page, last.map(|last| last.id))),
    }
}

/// The ids of the entries of a session.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ids {
    /// Each is the id of one entry.
    Unique,
    /// Several entries may have one.
    Unknown,
}

/// A page of a path before a cursor, and its next cursor; `None` where only other entries belong to it, or where the id of its
/// oldest entry means a later entry of the path. The page is short where the path in memory begins in it.
fn page_before<'a>(path: &Path, params: &'a EntriesParams, ids: Ids) -> Option<(Page<'a>, Option<EntryId>)> {
    let before = params.before.as_ref()?;
    let end = if before.as_str() == LEAF { path.len() } else { path.position(before)? };
    let mut page = Page::new(params);
    let all = path[..end].iter().rev().all(|entry| page.add(entry));
    let oldest = match all && path.is_cut() {
        true => page.last.clone()?,
        false => match page.ends_at() {
            None => return Some((page, None)),
            Some(oldest) => oldest,
        },
    };
    // This search of the path takes longer with each page, since it begins at the end.
    let means_it = ids == Ids::Unique || path.position(&oldest.id) == Some(end - 1 - oldest.number);
    means_it.then_some((page, Some(oldest.id)))
}

/// A page that is being filled.
struct Page<'a> {
    params: &'a EntriesParams,
    entries: Vec<types::Entry>,
    bytes: usize,
    /// Number of entries that were offered.
    offered: usize,
    last: Option<Last>,
    full: bool,
}

/// The last entry of a page.
#[derive(Clone)]
struct Last {
    /// Its number among the offered entries, from zero.
    number: usize,
    id: EntryId,
}

impl<'a> Page<'a> {
    fn new(params: &'a EntriesParams) -> Self {
        Self { params, entries: Vec::new(), bytes: 0, offered: 0, last: None, full: false }
    }

    /// Adds the next entry unless its type is not wanted. False where the page is full and the entry is not added.
    fn add(&mut self, entry: &Entry) -> bool {
        let number = self.offered;
        self.offered += 1;
        if self.params.types.as_ref().is_some_and(|types| !types.contains(&entry.kind)) {
            return true;
        }
        let limit = self.params.limit.unwrap_or(PAGE).max(1);
        let max_bytes = self.params.max_bytes.unwrap_or(PAGE_BYTES);
        let size = entry.line().len();
        if self.entries.len() == limit || !self.entries.is_empty() && self.bytes + size > max_bytes {
            self.full = true;
            return false;
        }
        self.bytes += size;
        self.last = Some(Last { number, id: entry.id.clone() });
        self.entries.push(wire(entry));
        true
    }

    /// Its last entry where another page follows.
    fn ends_at(&self) -> Option<Last> {
        self.last.clone().filter(|_| self.full)
    }

    /// The answer of a page that was filled from its newest entry to its oldest.
    fn answer_backwards(mut self, leaf_entry_id: Option<EntryId>, next_cursor: Option<EntryId>) -> EntriesAnswer {
        self.entries.reverse();
        self.answer(leaf_entry_id, next_cursor)
    }

    fn answer(self, leaf_entry_id: Option<EntryId>, next_cursor: Option<EntryId>) -> EntriesAnswer {
        EntriesAnswer { entries: self.entries, leaf_entry_id, next_cursor }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Arc;

    #[test]
    fn a_page_of_the_path_never_ends_at_an_id_that_means_a_later_entry() {
        let entry = |id: &str, parent: Option<&str>| {
            let line = json!({"type": "custom", "id": id, "parentId": parent, "timestamp": "", "customType": "x"});
            Arc::new(Entry::parse(line.to_string().into()).expect("an entry"))
        };
        let path = Path::of(&[entry("a", None), entry("b", Some("a")), entry("b", Some("b")), entry("c", Some("b"))]);
        let next = |limit: usize| {
            let params = serde_json::from_value(json!({"sessionId": "s", "limit": limit})).expect("params");
            page_of(&path, &params).map(|(_, next)| next)
        };
        assert_eq!(next(1), Some(Some("a".into())));
        assert_eq!(next(2), None);
        assert_eq!(next(3), Some(Some("b".into())));
        assert_eq!(next(4), Some(None));
        let before = |limit: usize, ids| {
            let params =
                serde_json::from_value(json!({"sessionId": "s", "before": "leaf", "limit": limit})).expect("params");
            page_before(&path, &params, ids).map(|(_, next)| next)
        };
        assert_eq!(before(2, Ids::Unknown), Some(Some("b".into())));
        assert_eq!(before(3, Ids::Unknown), None);
        assert_eq!(before(3, Ids::Unique), Some(Some("b".into())));
    }
}
