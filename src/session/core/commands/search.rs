//! `session/search`: finds a text in all entries of a session, newest first.

use crate::{
    protocol::{
        SessionSearch,
        errors::Failure,
        types::{SearchAnswer, SearchParams},
    },
    session::{
        core::{Core, command::SessionMethod},
        effects::{Answer, Ticket},
        jobs::search::Search,
    },
};

impl SessionMethod for SessionSearch {
    fn handle(core: &mut Core, params: SearchParams, ticket: Ticket) {
        if params.query.trim().is_empty() {
            return ticket.fail(&Failure::params(
                "query",
                "the text to find is empty; send at least one character that is not a blank",
            ));
        }
        let search = match Search::new(&params) {
            Ok(search) => search,
            Err(failure) => return ticket.fail(&failure),
        };
        let end = core.base.log.facts().end;
        let library = core.base.state.history().library();
        let leaf = core.base.state.path().last().map(|entry| entry.id.clone());
        let source = core.base.state.history().source().cloned();
        core.base.reads.start(ticket, move |blocking| {
            let found = match (&source, &library) {
                (Some(source), _) => search.file(source, end, blocking),
                (None, Some(library)) => search.entries(library, blocking),
                (None, None) => Ok(SearchAnswer { matches: Vec::new(), next_cursor: None }),
            };
            let mut found = match found {
                Ok(found) => found,
                Err(error) => return Answer::Failed(error.into()),
            };
            if let Some(library) = library {
                let active = library.active(leaf.as_ref());
                for it in &mut found.matches {
                    let place = library.index().find(&it.entry_id);
                    it.active = place.map(|place| active.binary_search(&place).is_ok());
                }
            }
            Answer::ok(&found)
        });
    }
}
