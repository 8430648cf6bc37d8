//! `tools/set`: the tools that the client executes.

use super::{Daemon, lock, routes::DaemonMethod};
use crate::{
    protocol::{
        ToolsSet,
        types::{Tools, ToolsSetParams},
    },
    session::{core::command::Command, handle::Mail},
    wire::rpc::Reply,
};
use std::sync::{Arc, Mutex};

/// The tools of sessions that begin without tools of their own.
#[derive(Default)]
pub(super) struct DefaultTools(Mutex<Option<Tools>>);

impl DefaultTools {
    /// The tools now.
    pub fn get(&self) -> Option<Tools> {
        lock(&self.0).clone()
    }
}

impl DaemonMethod for ToolsSet {
    fn handle(daemon: &Arc<Daemon>, params: ToolsSetParams, reply: Reply) {
        match params.session_id.clone() {
            Some(id) => daemon.send(&id, Mail::Command(Command::edit::<Self>(params), reply)),
            None => {
                *lock(&daemon.tools.0) = Some(params.tools);
                reply.ok(&());
            }
        }
    }
}
