//! Recorded requests as commands of a session, by the table in `protocol.rs`.

use super::Request;
use crate::{
    protocol::{self, Method, errors::Failure, with_methods},
    session::{
        core::{
            Core,
            command::{Command, CommandMethod},
            commands::{settings, status},
        },
        effects::Ticket,
    },
    wire::rpc::read_params,
};
use std::path::PathBuf;

macro_rules! commands {
    ($($(#[$doc:meta])+ $kind:ident $handler:ident $method:ident = $name:literal: $params:ty => $answer:ty;)+) => {
        /// The command for a request.
        ///
        /// # Errors
        /// When the params are invalid, or no session answers the method.
        pub fn command(request: &Request, asked: Option<PathBuf>) -> Result<Command, Failure> {
            let params = request.params.as_ref().map(|params| params.get());
            match request.method.as_str() {
                $($name => commands!(@ $handler protocol::$method, params, asked),)+
                other => Err(Failure::MethodNotFound(other.to_owned())),
            }
        }
    };
    (@ session $method:ty, $params:ident, $asked:ident) => {
        read_params::<<$method as Method>::Params>($params).map(|read| read.params).map(Command::call::<$method>)
    };
    (@ edit $method:ty, $params:ident, $asked:ident) => {
        read_params::<<$method as Method>::Params>($params).map(|read| read.params).map(Command::edit::<$method>)
    };
    (@ command $method:ty, $params:ident, $asked:ident) => {
        read_params::<<$method as Method>::Params>($params).map(|read| read.params).map(<$method as CommandMethod>::command)
    };
    (@ daemon $method:ty, $params:ident, $asked:ident) => {
        of_daemon(<$method as Method>::NAME, $params, $asked)
    };
}

with_methods!(commands);

/// The command for a method of the daemon that is passed on to a session.
fn of_daemon(method: &str, params: Option<&str>, asked: Option<PathBuf>) -> Result<Command, Failure> {
    match method {
        <protocol::SessionLoad as Method>::NAME => {
            let params = read_params::<<protocol::SessionLoad as Method>::Params>(params)?.params;
            Ok(Command::with(move |core: &mut Core, ticket: Ticket| ticket.with(status::describe(core, params, asked))))
        }
        <protocol::SettingsGet as Method>::NAME => Ok(settings::settings()),
        <protocol::ModelsList as Method>::NAME => Ok(settings::models()),
        <protocol::ToolsSet as Method>::NAME => {
            let params = read_params::<<protocol::ToolsSet as Method>::Params>(params)?.params;
            Ok(Command::edit::<protocol::ToolsSet>(params))
        }
        <protocol::SettingsSet as Method>::NAME => {
            let params = read_params::<<protocol::SettingsSet as Method>::Params>(params)?.params;
            Ok(Command::edit::<protocol::SettingsSet>(params))
        }
        other => Err(Failure::MethodNotFound(other.to_owned())),
    }
}
