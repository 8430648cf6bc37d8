//! `session/status` and `session/clear_queue`, and the answer to `session/load` of a session that is open.

#![expect(clippy::disallowed_methods, reason = "the time since the start")]

use crate::{
    log::Access,
    protocol::{
        SessionClearQueue, SessionStatus,
        errors::Failure,
        types::{LoadAnswer, LoadParams, Queue, SessionParams, Status, StatusAnswer},
    },
    session::{Session, Writer, command::SessionMethod, open},
    wire::rpc::Reply,
};
use serde_json::json;
use std::path::PathBuf;

impl SessionMethod for SessionStatus {
    fn handle(session: &mut Session, _: SessionParams, reply: Reply) {
        reply.ok(&session.status_answer());
    }
}

impl SessionMethod for SessionClearQueue {
    fn handle(_: &mut Session, _: SessionParams, reply: Reply) {
        reply.ok(&Queue::default());
    }
}

impl Session {
    /// The status as clients see it.
    pub(in crate::session) fn status(&self) -> Status {
        self.operations.status()
    }

    /// The result of `session/status`.
    #[must_use]
    pub fn status_answer(&self) -> StatusAnswer {
        let stats = match &self.writer {
            Writer::Ready(log) => log.stats(),
            _ => self.state.stats,
        };
        StatusAnswer {
            session: self.state.info(self.status()),
            queue: Queue::default(),
            operations: self.operations.list(),
            meta: json!({ "writes": stats.writes, "fsyncs": stats.fsyncs }),
        }
    }

    /// The result of a `session/load` of this session. It takes over the model, the system prompt, the tools and the
    /// settings of the params.
    ///
    /// # Errors
    /// When the params name another file, or want to write to a session that is open to read.
    pub fn describe(&mut self, params: LoadParams) -> Result<LoadAnswer, Failure> {
        if let (Some(asked), Some(file)) = (&params.path, &self.state.file)
            && PathBuf::from(asked).canonicalize().ok().as_ref() != Some(file)
        {
            let what = format!("its session is open already, from {}; close that one first", file.display());
            return Err(Failure::params("path", what));
        }
        if matches!(&self.writer, Writer::Ready(log) if log.access() == Access::Read) && params.read_only != Some(true)
        {
            let what =
                "the session is open here to look at only; close it with session/close, then load it to write to it";
            return Err(Failure::params("readOnly", what));
        }
        self.state.give(open::given(&params), params.model)?;
        let indexed = self.state.history().index().is_some();
        Ok(LoadAnswer { session: self.state.info(self.status()), indexed, repairs: self.state.repairs() })
    }
}
