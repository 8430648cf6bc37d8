//! `session/entries` and `session/entry`: entries in pages, and single ones. Entries of the path in memory are answered
//! immediately. All others are found by the index and read from the file beside the session.

use crate::{
    conversation::entry::{self, Entry},
    ids::EntryId,
    log::index::Place,
    protocol::{
        SessionEntries, SessionEntry,
        errors::Failure,
        types::{self, Branch, EntriesAnswer, EntriesParams, EntryAnswer, EntryParams},
    },
    session::{
        Session,
        command::{Command, SessionMethod},
        state::State,
    },
    wire::rpc::Reply,
};
use serde_json::value::RawValue;

/// Entries of a page without a `limit`.
const PAGE: usize = 1_000;

/// Bytes of a page without `maxBytes`.
const PAGE_BYTES: usize = 1 << 20;

impl SessionMethod for SessionEntries {
    fn handle(session: &mut Session, params: EntriesParams, reply: Reply) {
        match entries_of_path(&session.state, &params) {
            Some(answer) => reply.ok(&answer),
            None => session.entries(params, reply),
        }
    }
}

impl SessionMethod for SessionEntry {
    fn handle(session: &mut Session, params: EntryParams, reply: Reply) {
        match session.state.path().position(&params.entry_id) {
            Some(place) => reply.ok(&EntryAnswer { entry: wire(&session.state.path()[place]) }),
            None => session.entry(params, reply),
        }
    }
}

impl Session {
    fn entries(&mut self, params: EntriesParams, reply: Reply) {
        let Some(index) = self.state.history().index() else {
            return self.await_index(Command::call::<SessionEntries>(params, reply));
        };
        let since = match &params.since {
            None => None,
            Some(id) => match index.find(id) {
                None => return reply.fail(&Failure::no_entry(id)),
                found => found,
            },
        };
        let places: Vec<Place> = if params.branch == Some(Branch::All) {
            index.after(since).collect()
        } else {
            let leaf = self.state.path().last().and_then(|leaf| index.find(&leaf.id));
            let path = leaf.map(|leaf| index.path_to(leaf)).unwrap_or_default();
            // A cursor on a branch that was left goes on where that branch leaves the path.
            let fork = std::iter::successors(since, |place| index.parent(*place));
            let from = fork.filter_map(|place| path.binary_search(&place).ok()).next().map_or(0, |at| at + 1);
            path[from..].to_vec()
        };
        let wanted = self.state.history().wanted(places);
        let leaf = self.state.visible_leaf();
        self.spawn_read(move || {
            let mut page = Page::new(&params);
            for entry in wanted.read() {
                match entry {
                    Err(error) => return reply.fail(&error.into()),
                    Ok(entry) if !page.add(&entry) => break,
                    Ok(_) => {}
                }
            }
            reply.ok(&page.answer(leaf));
        });
    }

    fn entry(&mut self, params: EntryParams, reply: Reply) {
        let Some(index) = self.state.history().index() else {
            return self.await_index(Command::call::<SessionEntry>(params, reply));
        };
        let Some(place) = index.find(&params.entry_id) else {
            return reply.fail(&Failure::no_entry(&params.entry_id));
        };
        let wanted = self.state.history().wanted([place]);
        self.spawn_read(move || {
            let entry = wanted.read().next().unwrap_or_else(|| unreachable!("one was asked for"));
            let found = entry.map_err(Failure::from).and_then(|entry| {
                let same = entry.id == params.entry_id;
                same.then(|| EntryAnswer { entry: wire(&entry) }).ok_or(Failure::no_entry(&params.entry_id))
            });
            reply.with(found);
        });
    }
}

/// A page of the path in memory; `None` where other entries belong to it.
fn entries_of_path(state: &State, params: &EntriesParams) -> Option<EntriesAnswer> {
    let path = state.path();
    let from = match &params.since {
        _ if params.branch == Some(Branch::All) => return None,
        None if path.is_cut() => return None,
        None => 0,
        Some(since) => path.position(since)? + 1,
    };
    let mut page = Page::new(params);
    let _ = path[from..].iter().all(|entry| page.add(entry));
    Some(page.answer(state.visible_leaf()))
}

/// A page that is being filled.
struct Page<'a> {
    params: &'a EntriesParams,
    entries: Vec<types::Entry>,
    bytes: usize,
    last: Option<EntryId>,
    next_cursor: Option<EntryId>,
}

impl<'a> Page<'a> {
    fn new(params: &'a EntriesParams) -> Self {
        Self { params, entries: Vec::new(), bytes: 0, last: None, next_cursor: None }
    }

    /// Adds the next entry unless its type is not wanted. False where the page is full and the entry is not added.
    fn add(&mut self, entry: &Entry) -> bool {
        if self.params.types.as_ref().is_some_and(|types| !types.contains(&entry.kind)) {
            return true;
        }
        let limit = self.params.limit.unwrap_or(PAGE).max(1);
        let max_bytes = self.params.max_bytes.unwrap_or(PAGE_BYTES);
        let size = entry.line().len();
        if self.entries.len() == limit || !self.entries.is_empty() && self.bytes + size > max_bytes {
            self.next_cursor = self.last.take();
            return false;
        }
        self.bytes += size;
        self.last = Some(entry.id.clone());
        self.entries.push(wire(entry));
        true
    }

    fn answer(self, leaf_entry_id: Option<EntryId>) -> EntriesAnswer {
        EntriesAnswer { entries: self.entries, leaf_entry_id, next_cursor: self.next_cursor }
    }
}

/// An entry on the wire: its line, with the parent that it has in the tree.
#[must_use]
pub fn wire(entry: &Entry) -> types::Entry {
    types::Entry(raw(&entry.line_with_parent()))
}

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(entry::one_line(json).into_owned()).expect("lines and messages were read as JSON")
}
