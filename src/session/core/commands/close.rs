//! `session/close`.

use crate::{
    protocol::{SessionClose, types::SessionParams},
    session::{
        core::{
            Core, Ending,
            command::{Command, CommandMethod},
        },
        effects::Ticket,
    },
};

/// A close waits for nothing but the requests before it.
impl CommandMethod for SessionClose {
    fn command(_: SessionParams) -> Command {
        Command::Close
    }
}

impl Core {
    /// Ends the session. Running work is cancelled. The ticket is answered when the file is closed.
    pub(in crate::session::core) fn leave(&mut self, ticket: Ticket) {
        // The contexts that wait start nothing any more.
        self.ending = Ending::Now(vec![ticket]);
        self.stop_running(None);
        self.reads.stop.request();
        // Those that waited for counts.
        self.answer_held();
    }
}
