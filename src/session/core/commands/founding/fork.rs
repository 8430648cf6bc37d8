//! `session/fork`: the path to an entry as a new session.

use crate::{
    protocol::{SessionFork, types::ForkParams},
    session::{
        core::{
            Core,
            command::{Command, SessionMethod},
        },
        effects::{Effect, Ticket},
        forking::Forking,
    },
};

impl SessionMethod for SessionFork {
    fn handle(core: &mut Core, params: ForkParams, ticket: Ticket) {
        // Its user is there.
        core.is_active();
        if let Err(failure) = core.base.free() {
            return ticket.fail(&failure);
        }
        let Some(library) = core.base.state.history().library() else {
            return core.base.await_index(Command::call::<Self>(params), ticket);
        };
        match Forking::of(&core.base.state, library, params, &mut core.base.stamps) {
            Ok(forking) => ticket.leave_to(|number| Effect::Fork(number, Box::new(forking))),
            Err(failure) => ticket.fail(&failure),
        }
    }
}
