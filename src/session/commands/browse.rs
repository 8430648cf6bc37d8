//! Ways through the whole of a session: pages of entries, single ones, its tree. What the path in memory has is answered
//! at once; the rest goes by the index and is read from the file, away from the session.

use super::{
    export,
    read::{self, Page},
    request,
};
use crate::{
    conversation::{entry::Entry, message::outline::Role},
    log::{history::Wanted, index::Place},
    protocol::{
        errors::Failure,
        types::{
            Branch, ContextParams, EntriesAnswer, EntriesParams, EntryAnswer, EntryParams, TreeAnswer, TreeNode,
            TreeParams,
        },
    },
    session::{Session, handle::Command, state::State},
    text,
    wire::rpc::Reply,
};
use std::sync::Arc;

/// Nodes of a page, if the client does not say.
const NODES: usize = 1_000;

/// A preview, in characters.
const PREVIEW: usize = 120;

impl Session {
    /// Answers a command that may be about any entry.
    pub(in crate::session) fn browse(&mut self, command: Command) {
        let indexed = self.state.history().index().is_some();
        match command {
            Command::Entries(params, reply) => match entries_of_path(&self.state, &params) {
                Some(answer) => reply.ok(&answer),
                None if !indexed => self.await_index(Command::Entries(params, reply)),
                None => self.entries(params, reply),
            },
            Command::Entry(params, reply) => match self.state.path().position(&params.entry_id) {
                Some(place) => reply.ok(&EntryAnswer { entry: read::wire(&self.state.path()[place]) }),
                None if !indexed => self.await_index(Command::Entry(params, reply)),
                None => self.entry(params, reply),
            },
            command if !indexed => self.await_index(command),
            Command::Tree(params, reply) => self.tree(&params, reply),
            Command::Export(params, reply) => {
                let path = self.whole_path();
                let whole = self.state.history().wanted(self.places(None));
                match export::Job::new(&self.state, params, path, whole) {
                    Ok(job) => self.spawn_read(move || reply.with(job.run())),
                    Err(failure) => reply.fail(&failure),
                }
            }
            _ => unreachable!("only commands about any entry come here"),
        }
    }

    fn places(&self, after: Option<Place>) -> Vec<Place> {
        self.state.history().index().map(|index| index.after(after).collect()).unwrap_or_default()
    }

    /// Everything from the root to the leaf.
    fn whole_path(&self) -> Wanted {
        let leaf = self.state.path().last().map(|leaf| &leaf.id);
        let index = self.state.history().index();
        let places = index.zip(leaf).and_then(|(index, leaf)| Some(index.path_to(index.find(leaf)?)));
        self.state.history().wanted(places.unwrap_or_default())
    }

    fn entry(&mut self, params: EntryParams, reply: Reply) {
        let Some(place) = self.state.history().index().and_then(|index| index.find(&params.entry_id)) else {
            return reply.fail(&Failure::no_entry(&params.entry_id));
        };
        let wanted = self.state.history().wanted([place]);
        self.spawn_read(move || {
            let entry = wanted.read().next().unwrap_or_else(|| unreachable!("one was asked for"));
            let found = entry.map_err(Failure::from).and_then(|entry| {
                let same = entry.id == params.entry_id;
                same.then(|| EntryAnswer { entry: read::wire(&entry) }).ok_or(Failure::no_entry(&params.entry_id))
            });
            reply.with(found);
        });
    }

    fn entries(&mut self, params: EntriesParams, reply: Reply) {
        let Some(index) = self.state.history().index() else { return };
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

    fn tree(&mut self, params: &TreeParams, reply: Reply) {
        let Some(index) = self.state.history().index() else { return };
        let after = match &params.cursor {
            None => None,
            Some(id) => match index.find(id) {
                None => return reply.fail(&Failure::no_entry(id)),
                found => found,
            },
        };
        let limit = params.limit.unwrap_or(NODES).clamp(1, 10 * NODES);
        let mut places: Vec<Place> = index.after(after).take(limit + 1).collect();
        let more = places.len() > limit;
        places.truncate(limit);
        let wanted = self.state.history().wanted(places);
        let labels = index.labels();
        let leaf = self.state.visible_leaf();
        self.spawn_read(move || {
            let nodes = wanted.read().map(|entry| {
                let entry = entry?;
                let label = labels.of(&entry.id).map(str::to_owned);
                Ok(node(&entry, label))
            });
            let nodes: Result<Vec<TreeNode>, crate::session::StoreError> = nodes.collect();
            reply.with(nodes.map_err(Failure::from).map(|nodes| TreeAnswer {
                next_cursor: nodes.last().filter(|_| more).map(|node| node.id.clone()),
                nodes,
                leaf_entry_id: leaf,
            }));
        });
    }

    /// `session/context`, wherever its leaf is.
    pub(in crate::session) fn answer_context(&mut self, params: ContextParams, reply: Reply) {
        let here = match &params.leaf_entry_id {
            None => Some(self.state.path().clone()),
            Some(leaf) => self.state.path().up_to(leaf),
        };
        let api = params.format.and_then(request::api);
        if let Some(path) = here {
            let view = match params.leaf_entry_id {
                Some(_) => self.state.view().of(&path),
                None => self.state.view(),
            };
            return match api {
                None if view.blobs().is_none() => reply.pieces(read::Context::new(&view, &path).pieces()),
                // Images are read from files of their own.
                None => self.spawn_read(move || reply.pieces(read::Context::new(&view, &path).pieces())),
                Some(api) => {
                    let session = self.state.id.clone();
                    self.spawn_read(move || request::answer(&view, &path, &session, api, reply));
                }
            };
        }
        let (Some(library), Some(leaf)) = (self.state.history().library(), params.leaf_entry_id.clone()) else {
            return self.await_index(Command::Context(params, reply));
        };
        let (view, session) = (self.state.view(), self.state.id.clone());
        self.spawn_read(move || match (library.path_to(&leaf), api) {
            (Ok(Some(path)), None) => reply.pieces(read::Context::new(&view.of(&path), &path).pieces()),
            (Ok(Some(path)), Some(api)) => request::answer(&view.of(&path), &path, &session, api, reply),
            (Ok(None), _) => reply.fail(&Failure::no_entry(&leaf)),
            (Err(error), _) => reply.fail(&error.into()),
        });
    }
}

/// A page that the path in memory has all of.
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

fn node(entry: &Arc<Entry>, label: Option<String>) -> TreeNode {
    let role = entry.outline().map(|outline| match outline.role {
        Role::User => "user",
        Role::Developer => "developer",
        Role::System => "system",
        Role::Assistant => "assistant",
        Role::ToolResult => "toolResult",
        Role::Execution => "bashExecution",
        Role::Custom => "custom",
        Role::Summary => "branchSummary",
    });
    TreeNode {
        id: entry.id.clone(),
        parent_id: entry.parent.clone(),
        kind: entry.kind.clone(),
        role: role.map(str::to_owned),
        preview: text::one_line(&entry.readable_text(), PREVIEW),
        label,
        timestamp: entry.timestamp.clone(),
    }
}
