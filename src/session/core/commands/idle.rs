//! `session/run_idle` and `session/activity`.

use crate::{
    protocol::{SessionActivity, SessionRunIdle, types::SessionParams},
    session::{
        core::{
            Core,
            command::{Command, CommandMethod, SessionMethod},
        },
        effects::Ticket,
    },
};

impl SessionMethod for SessionRunIdle {
    fn handle(core: &mut Core, _: SessionParams, ticket: Ticket) {
        core.run_idle(ticket);
    }
}

impl CommandMethod for SessionActivity {
    fn command(_: SessionParams) -> Command {
        Command::Activity
    }
}
