//! `session/prompt`, `session/continue` and `session/clear_queue`: turns that the daemon runs.

use crate::{
    protocol::{
        SessionClearQueue, SessionContinue, SessionPrompt,
        errors::Failure,
        types::{PromptParams, SessionParams},
    },
    session::{
        core::{
            Core,
            base::Base,
            command::{Command, CommandMethod, SessionMethod, TurnRequest},
            commands::compacting::after_turn::turn_is_over,
            step::Step,
            turns::Turns,
        },
        effects::Ticket,
    },
};

impl CommandMethod for SessionPrompt {
    fn command(params: PromptParams) -> Command {
        let PromptParams { message, behavior, .. } = params;
        Command::Turn(Box::new(TurnRequest { prompt: Some((message, behavior.unwrap_or_default())), cancelled: false }))
    }
}

impl CommandMethod for SessionContinue {
    fn command(_: SessionParams) -> Command {
        Command::Turn(Box::new(TurnRequest { prompt: None, cancelled: false }))
    }
}

/// Begins a turn, or puts its message in the queue.
pub(in crate::session::core) fn begin(
    base: &mut Base,
    turns: &mut Turns,
    request: TurnRequest,
    ticket: Ticket,
) -> Option<Step> {
    let TurnRequest { prompt, cancelled } = request;
    let free = turns.none().and_then(|()| base.free());
    let checked = base.writable().and_then(|()| match &prompt {
        Some((message, _)) if message.is_empty() => {
            Err(Failure::params("message", "the message is empty; give a text, or content blocks"))
        }
        Some((message, _)) => message.check().map_err(|what| Failure::params("message", what)),
        None => free.clone().and_then(|()| awaits_answer(base)),
    });
    match (checked, prompt) {
        (Err(failure), _) => return Some(Step::fail(ticket, &failure)),
        (Ok(()), None) if cancelled => return Some(Step::fail(ticket, &Failure::Cancelled)),
        (Ok(()), Some((message, behavior))) if cancelled || free.is_err() => {
            return turns.queue(base, message, behavior, ticket, cancelled);
        }
        (Ok(()), prompt) => turns.begin(base, prompt.map(|(message, _)| message), ticket),
    }
    None
}

/// Refuses to continue a conversation in which nothing waits for an answer.
fn awaits_answer(base: &Base) -> Result<(), Failure> {
    let is_empty = !base.state.path().iter().any(|entry| entry.in_context());
    match is_empty || turn_is_over(base.state.path()) {
        true => {
            let what = "the conversation waits for no answer; send a message with session/prompt";
            Err(Failure::params("sessionId", what))
        }
        false => Ok(()),
    }
}

impl SessionMethod for SessionClearQueue {
    fn handle(core: &mut Core, _: SessionParams, ticket: Ticket) {
        if let Err(failure) = core.base.writable() {
            return ticket.fail(&failure);
        }
        let step = core.turns.clear_queue(&mut core.base, ticket);
        core.follow(step);
    }
}
