//! The routes of a connection: each line of the table in `protocol.rs` with the handler that it names.

use super::Daemon;
use crate::{
    protocol::{self, Method, with_methods},
    session::{
        core::command::{Command, CommandMethod},
        handle::Mail,
    },
    wire::rpc::{Reply, Service},
};
use std::sync::Arc;

/// The handler of a method that the daemon answers.
#[diagnostic::on_unimplemented(
    message = "the method `{Self}` has no handler",
    label = "implement `DaemonMethod` for `{Self}` in a file of `src/daemon`"
)]
pub(super) trait DaemonMethod: Method {
    /// Answers a request, or passes the reply on to work that answers it. Runs on the thread that reads requests, and
    /// must not block.
    fn handle(daemon: &Arc<Daemon>, params: Self::Params, reply: Reply);
}

macro_rules! routes {
    ($($(#[$doc:meta])+ $kind:ident $handler:ident $method:ident = $name:literal: $params:ty => $answer:ty;)+) => {
        /// Adds every method of the table.
        pub(super) fn add_to(service: &mut Service<Daemon>) {
            $(service.method::<protocol::$method>(routes!(@ $handler protocol::$method));)+
        }
    };
    (@ daemon $method:ty) => { <$method as DaemonMethod>::handle };
    (@ session $method:ty) => {
        |daemon, params, reply| {
            daemon.send(&params.session_id.clone(), Mail::Command(Command::call::<$method>(params), reply))
        }
    };
    (@ edit $method:ty) => {
        |daemon, params, reply| {
            daemon.send(&params.session_id.clone(), Mail::Command(Command::edit::<$method>(params), reply))
        }
    };
    (@ command $method:ty) => {
        |daemon, params, reply| {
            let id = params.session_id.clone();
            daemon.send(&id, Mail::Command(<$method as CommandMethod>::command(params), reply))
        }
    };
}

with_methods!(routes);
