//! `session/search`: finds a text in all entries of a session, newest first.

use crate::{
    protocol::{SessionSearch, errors::Failure, types::SearchParams},
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
        let search = Search::new(&params);
        let end = core.base.log.facts().end;
        match core.base.state.history().source().cloned() {
            Some(source) => {
                core.base.reads.start(ticket, move |blocking| {
                    Answer::from(search.file(&source, end, blocking).map_err(Failure::from))
                });
            }
            None => {
                let index = core.base.state.history().index();
                let places: Vec<_> = index.map(|index| index.after(None).rev().collect()).unwrap_or_default();
                let wanted = core.base.state.history().wanted(places);
                core.base.reads.start(ticket, move |blocking| {
                    Answer::from(search.entries(wanted, blocking).map_err(Failure::from))
                });
            }
        }
    }
}
