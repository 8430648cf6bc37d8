//! `session/run_idle` and `session/activity`.

use crate::{
    protocol::{SessionActivity, SessionRunIdle, types::SessionParams},
    session::{
        core::{
            Core,
            command::{Command, CommandMethod, SessionMethod},
            idle::maintenance,
            standing::Standing,
        },
        effects::Ticket,
    },
};

impl SessionMethod for SessionRunIdle {
    fn handle(core: &mut Core, _: SessionParams, ticket: Ticket) {
        let objection = Standing::of(core).idle_check().objection();
        maintenance::run(&mut core.base, &mut core.idle.rounds, ticket, objection);
    }
}

impl CommandMethod for SessionActivity {
    fn command(_: SessionParams) -> Command {
        Command::Activity
    }
}
