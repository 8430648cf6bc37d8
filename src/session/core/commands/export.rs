//! `session/export`: a session as a file for another program or a person.

use crate::{
    protocol::{SessionExport, types::ExportParams},
    session::{
        core::{
            Core,
            command::{Command, SessionMethod},
        },
        effects::{Answer, Ticket},
        jobs::export::Export,
    },
};

impl SessionMethod for SessionExport {
    fn handle(core: &mut Core, params: ExportParams, ticket: Ticket) {
        let Some(index) = core.base.state.history().index() else {
            return core.base.await_index(Command::call::<Self>(params), ticket);
        };
        let leaf = core.base.state.path().last().and_then(|leaf| index.find(&leaf.id));
        let path = core.base.state.history().wanted(leaf.map(|leaf| index.path_to(leaf)).unwrap_or_default());
        let whole = core.base.state.history().wanted(index.after(None).collect::<Vec<_>>());
        match Export::new(&core.base.state, params, path, whole) {
            Ok(export) => core.base.reads.start_outside(ticket, move |_, blocking| Answer::from(export.run(blocking))),
            Err(failure) => ticket.fail(&failure),
        }
    }
}
