//! `session/close`.

use crate::{
    protocol::{SessionClose, types::SessionParams},
    session::core::command::{Command, CommandMethod},
};

/// A close waits for nothing but the requests before it.
impl CommandMethod for SessionClose {
    fn command(_: SessionParams) -> Command {
        Command::Close
    }
}
