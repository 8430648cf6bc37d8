//! Requests on their way to a session.

use super::{
    World,
    life::{Mail, Urgent},
    tampering,
};
use crate::{
    protocol::{self, types::LoadParams, with_methods},
    session::{
        core::{
            Core,
            command::{Command, CommandMethod as _},
            commands::{settings, status},
        },
        effects::{Sent, Ticket},
    },
    simulator::action::{Request, WhichOperation},
};
use serde_json::{Value, json};

macro_rules! commands {
    ($($(#[$doc:meta])+ $kind:ident $handler:ident $method:ident = $name:literal: $params:ty => $answer:ty;)+) => {
        /// The command for a request that a session answers, as the daemon makes it.
        fn command(method: &str, params: &str) -> Option<Command> {
            match method {
                $($name => commands!(@ $handler protocol::$method, params),)+
                _ => None,
            }
        }
    };
    (@ daemon $method:ty, $params:ident) => { None };
    (@ session $method:ty, $params:ident) => { Some(Command::call::<$method>(serde_json::from_str($params).ok()?)) };
    (@ edit $method:ty, $params:ident) => { Some(Command::edit::<$method>(serde_json::from_str($params).ok()?)) };
    (@ command $method:ty, $params:ident) => { Some(<$method>::command(serde_json::from_str($params).ok()?)) };
}

with_methods!(commands);

/// The command of a request. None where the params are refused before they reach a session.
fn made(request: &Request, method: &str, params: &Value) -> Option<Command> {
    let params = params.to_string();
    match request {
        Request::Settings => Some(settings::settings()),
        Request::Set(_) => Some(Command::edit::<protocol::SettingsSet>(serde_json::from_str(&params).ok()?)),
        Request::HandOver => Some(Command::HandOver),
        Request::Load => {
            let params: LoadParams = serde_json::from_str(&params).ok()?;
            Some(Command::with(move |core: &mut Core, ticket: Ticket| {
                ticket.with(status::describe(core, params, None))
            }))
        }
        _ => command(method, &params),
    }
}

impl World<'_> {
    /// Sends a request. A session that has ended gets none.
    pub(super) fn send(&mut self, request: &Request, sent: Sent) {
        if self.life.is_none() {
            return;
        }
        let (method, params) = self.view.params(request);
        let Some(command) = made(request, method, &tampering::params(method, &params)) else { return };
        let number = self.register(method, params, sent);
        if let Some(life) = &mut self.life {
            life.mailbox.push_back(Mail { number, command, sent });
        }
    }

    /// Sends a `session/cancel`.
    pub(super) fn send_cancel(&mut self, which: WhichOperation) {
        if self.life.is_none() {
            return;
        }
        let operation = self.view.operation(which);
        let params = match &operation {
            Some(operation) => json!({"operationId": operation}),
            None => json!({}),
        };
        let number = self.register("session/cancel", params, Sent::Alone);
        self.urge(Urgent::Cancel(operation, number));
    }

    fn register(&mut self, method: &'static str, params: Value, sent: Sent) -> u64 {
        self.next_ticket += 1;
        self.view.open.insert(self.next_ticket, method);
        let number = self.next_ticket;
        self.tell(|| {
            format!("  request {number}: {method} {}", params.to_string().chars().take(300).collect::<String>())
        });
        self.view.exchanges.sent(number, method, &params);
        for exchange in self.view.exchanges.take() {
            self.observer.exchanged(exchange);
        }
        self.observer.sent(self.next_ticket, method, params, sent);
        self.next_ticket
    }
}
