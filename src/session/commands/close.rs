//! `session/close`.

use crate::{
    protocol::{SessionClose, types::SessionParams},
    session::{
        Ending, Session,
        command::{Command, CommandMethod},
    },
    wire::rpc::Reply,
};

/// A close waits for nothing but the requests before it.
impl CommandMethod for SessionClose {
    fn command(_: SessionParams, reply: Reply) -> Command {
        Command::Close(reply)
    }
}

impl Session {
    /// Ends the session. Running work is cancelled. `reply` is answered when the file is closed.
    pub(in crate::session) fn leave(&mut self, reply: Option<Reply>) {
        let mut replies: Vec<Reply> = reply.into_iter().collect();
        if let Ending::Now(before) = &mut self.ending {
            replies.append(before);
        }
        self.stop_running(None);
        self.reads.stop.request();
        self.ending = Ending::Now(replies);
    }
}
