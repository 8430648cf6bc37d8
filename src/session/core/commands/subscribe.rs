//! `session/subscribe` and `session/unsubscribe`. The shell performs both, because it keeps the events.

use crate::{
    protocol::{
        SessionSubscribe, SessionUnsubscribe,
        types::{SessionParams, SubscribeParams},
    },
    session::{
        core::{Core, command::SessionMethod, commands::status},
        effects::{Effect, Ticket},
    },
};

impl SessionMethod for SessionSubscribe {
    fn handle(core: &mut Core, params: SubscribeParams, ticket: Ticket) {
        let snapshot = Box::new(status::answer(core));
        ticket.leave_to(|number| Effect::Subscribe(number, params, snapshot));
    }
}

impl SessionMethod for SessionUnsubscribe {
    fn handle(_: &mut Core, _: SessionParams, ticket: Ticket) {
        ticket.leave_to(Effect::Unsubscribe);
    }
}
