//! `session/fork`: the path to an entry as a new session.

use crate::{
    protocol::{SessionFork, types::ForkParams},
    session::{
        core::{
            Core,
            command::{Command, SessionMethod},
            standing::Standing,
        },
        effects::{Effect, Ticket},
        forking::Forking,
    },
};

impl SessionMethod for SessionFork {
    fn handle(core: &mut Core, params: ForkParams, ticket: Ticket) {
        // Its user is there.
        core.is_active();
        if let Err(failure) = Standing::of(core).free() {
            return ticket.fail(&failure);
        }
        let Some(library) = core.state.history().library() else {
            return core.await_index(Command::call::<Self>(params), ticket);
        };
        match Forking::of(&core.state, library, params, &mut core.stamps) {
            Ok(forking) => ticket.leave_to(|number| Effect::Fork(number, Box::new(forking))),
            Err(failure) => ticket.fail(&failure),
        }
    }
}
