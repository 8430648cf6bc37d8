//! `session/prompt`, `session/continue` and `session/clear_queue`: turns that the daemon runs.

use crate::{
    protocol::{
        SessionClearQueue, SessionContinue, SessionPrompt,
        errors::Failure,
        types::{PromptParams, SessionParams},
    },
    session::{
        core::{Core, command::SessionMethod, commands::compacting::after_turn::turn_is_over},
        effects::Ticket,
    },
};

impl SessionMethod for SessionPrompt {
    fn handle(core: &mut Core, params: PromptParams, ticket: Ticket) {
        let Core { base, turns, .. } = core;
        let PromptParams { message, behavior, .. } = params;
        if let Err(failure) = base.writable() {
            return ticket.fail(&failure);
        }
        if message.is_empty() {
            let what = "the message is empty; give a text, or content blocks";
            return ticket.fail(&Failure::params("message", what));
        }
        if let Err(what) = message.check() {
            return ticket.fail(&Failure::params("message", what));
        }
        if turns.none().and_then(|()| base.free()).is_ok() {
            return turns.begin(base, Some(message), ticket);
        }
        let step = turns.queue(base, message, behavior.unwrap_or_default(), ticket);
        core.follow(step);
    }
}

impl SessionMethod for SessionContinue {
    fn handle(core: &mut Core, _: SessionParams, ticket: Ticket) {
        let Core { base, turns, .. } = core;
        let free = base.writable().and_then(|()| turns.none()).and_then(|()| base.free());
        if let Err(failure) = free {
            return ticket.fail(&failure);
        }
        let is_empty = !base.state.path().iter().any(|entry| entry.in_context());
        if is_empty || turn_is_over(base.state.path()) {
            let what = "the conversation waits for no answer; send a message with session/prompt";
            return ticket.fail(&Failure::params("sessionId", what));
        }
        turns.begin(base, None, ticket);
    }
}

impl SessionMethod for SessionClearQueue {
    fn handle(core: &mut Core, _: SessionParams, ticket: Ticket) {
        if let Err(failure) = core.base.writable() {
            return ticket.fail(&failure);
        }
        let step = core.turns.prompts.clear(&mut core.base, ticket);
        core.follow(step);
    }
}
