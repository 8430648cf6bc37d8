//! `session/tree`: all entries of a session with their parents.

use crate::{
    log::{error::StoreError, index::Place},
    protocol::{
        SessionTree,
        errors::Failure,
        types::{Around, TreeAnswer, TreeNode, TreeParams},
    },
    session::{
        core::{
            Core,
            command::{Command, SessionMethod},
        },
        effects::{Answer, Ticket},
    },
};

/// Nodes of a page without a `limit`.
const NODES: usize = 1_000;

impl SessionMethod for SessionTree {
    fn handle(core: &mut Core, params: TreeParams, ticket: Ticket) {
        let Some(library) = core.base.state.history().library() else {
            return core.base.await_index(Command::call::<Self>(params), ticket);
        };
        let index = library.index();
        let after = match &params.cursor {
            None => None,
            Some(cursor) => match index.find_cursor(cursor) {
                None => return ticket.fail(&Failure::no_entry(cursor)),
                found => found,
            },
        };
        let limit = params.limit.unwrap_or(NODES).clamp(1, 10 * NODES);
        let mut places: Vec<Place> = index.after(after).take(limit + 1).collect();
        let more = places.len() > limit;
        places.truncate(limit);
        let last = places.last().copied().filter(|_| more);
        let wanted = core.base.state.history().wanted(places.iter().copied());
        let labels = index.labels();
        let leaf = core.base.state.visible_leaf();
        let end = core.base.state.path().last().map(|entry| entry.id.clone());
        core.base.reads.start(ticket, move |blocking| {
            let active = library.active(end.as_ref());
            let undone = match library.undone(&active, blocking) {
                Ok(undone) => undone,
                Err(error) => return Answer::Failed(error.into()),
            };
            let nodes = places.iter().zip(wanted.read(blocking)).map(|(place, entry)| {
                let entry = entry?;
                let around = Around {
                    label: labels.of(&entry.id).map(str::to_owned),
                    active: active.binary_search(place).is_ok(),
                    undone: undone.contains(place),
                };
                Ok(TreeNode::of(&entry, around))
            });
            let nodes: Result<Vec<TreeNode>, StoreError> = nodes.collect();
            Answer::from(nodes.map_err(Failure::from).map(|nodes| TreeAnswer {
                next_cursor: last.zip(nodes.last()).map(|(place, node)| library.index().cursor(place, &node.id)),
                nodes,
                leaf_entry_id: leaf,
            }))
        });
    }
}
