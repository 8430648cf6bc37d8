//! `session/status` and `session/clear_queue`, and the answer to `session/load` of a session that is open.

use crate::{
    log::Access,
    protocol::{
        SessionClearQueue, SessionStatus,
        errors::Failure,
        types::{LoadAnswer, LoadParams, Queue, SessionParams, Status, StatusAnswer},
    },
    session::{
        core::{
            Core,
            command::{Command, SessionMethod},
            standing::Standing,
        },
        effects::Ticket,
        state::SessionData,
    },
};
use serde_json::json;
use std::path::PathBuf;

impl SessionMethod for SessionStatus {
    fn handle(core: &mut Core, _: SessionParams, ticket: Ticket) {
        ticket.ok(&core.status_answer());
    }
}

/// `session/status` without its params.
#[must_use]
pub fn command() -> Command {
    Command::with(|core, ticket| ticket.ok(&core.status_answer()))
}

impl SessionMethod for SessionClearQueue {
    fn handle(_: &mut Core, _: SessionParams, ticket: Ticket) {
        ticket.ok(&Queue::default());
    }
}

impl Core {
    /// The status as clients see it.
    pub(in crate::session::core) fn status(&self) -> Status {
        self.operations.status()
    }

    /// The result of `session/status`.
    #[must_use]
    pub fn status_answer(&self) -> StatusAnswer {
        let stats = self.log.facts().stats;
        StatusAnswer {
            session: self.state.info(self.status()),
            queue: Queue::default(),
            operations: self.operations.list(),
            waiting: self.upkeep.after_turn.status().into_iter().collect(),
            spent: self.costs.spent(&Standing::of(self).facts()),
            hooks: self.hooks().in_force(),
            meta: json!({ "writes": stats.writes, "fsyncs": stats.fsyncs }),
        }
    }

    /// The result of a `session/load` of this session. It takes over the model, the system prompt, the tools and the
    /// settings of the params. `asked` is the file of the params, without links and `..`.
    ///
    /// # Errors
    /// When the params name another file, or want to write to a session that is open to read.
    pub fn describe(&mut self, params: LoadParams, asked: Option<PathBuf>) -> Result<LoadAnswer, Failure> {
        if params.path.is_some()
            && let Some(file) = &self.state.file
            && asked.as_ref() != Some(file)
        {
            let what = format!("its session is open already, from {}; close that one first", file.display());
            return Err(Failure::params("path", what));
        }
        if self.log.facts().access == Access::Read && params.read_only != Some(true) {
            let what =
                "the session is open here to look at only; close it with session/close, then load it to write to it";
            return Err(Failure::params("readOnly", what));
        }
        self.state.give(SessionData::given(&params), params.model)?;
        let indexed = self.state.history().index().is_some();
        Ok(LoadAnswer { session: self.state.info(self.status()), indexed, repairs: self.state.repairs() })
    }
}
