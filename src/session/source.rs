//! Another session as a source of knowledge: its live context, read without taking it over.

use super::{open, state::State};
use crate::{
    conversation::path::Path,
    ids::{OperationId, SessionId},
    log::{files, lock, sealed::Blocking, store::home::Home},
    protocol::errors::Failure,
    summary::passages::has_passages,
};
use std::path::PathBuf;

/// The live context of another session, at one moment.
#[derive(Clone)]
pub struct Source {
    /// The session.
    pub id: SessionId,
    /// Its file; `None` for an ephemeral session.
    pub file: Option<PathBuf>,
    /// Its path.
    pub path: Path,
}

/// A source that is wanted.
#[derive(Debug, Clone)]
pub struct SourceOrder {
    /// The operation that it is wanted for.
    pub id: OperationId,
    /// The session.
    pub from: SessionId,
}

/// Takes a source, or the reason why there is none.
pub type Told = Box<dyn FnOnce(Result<Source, Failure>) + Send>;

/// Finds the sources that sessions ask for.
pub type Finder = Box<dyn Fn(SessionId, Told) + Send + Sync>;

impl Source {
    /// The source that an open session is. The path of a sleeping session is not in memory; the file that it is read from.
    ///
    /// # Errors
    /// When the session sleeps.
    pub fn of(state: &State) -> Result<Self, Option<PathBuf>> {
        if state.history().is_asleep() {
            return Err(state.file.clone());
        }
        Ok(Self { id: state.id.clone(), file: state.file.clone(), path: state.path().clone() })
    }

    /// The source that is read from the file of a session that is not open here. Nothing is written, and the session is not
    /// taken over. Blocks.
    ///
    /// # Errors
    /// When there is no such session in this home, another process has it open, or its file cannot be read.
    pub fn find(id: &SessionId, home: &Home, blocking: &Blocking) -> Result<Self, Failure> {
        let file = open::find(id, home)?;
        if let Some(pid) = lock::owner_elsewhere(&file) {
            let what = format!(
                "another process (pid {pid}) has session {id} open; load it with readOnly: true, then refer to it"
            );
            return Err(Failure::Locked { pid: Some(pid), what });
        }
        Self::read(file, home, blocking)
    }

    /// The source that is read from a file. Blocks.
    ///
    /// # Errors
    /// When the file is no session, or cannot be read.
    pub fn read(file: PathBuf, home: &Home, blocking: &Blocking) -> Result<Self, Failure> {
        let files::Opened { header, history, .. } = home.open_read_only(&file, blocking)?;
        Ok(Self { id: header.id, file: Some(file), path: history.path().clone() })
    }

    /// Refuses a source that says nothing. Blocks.
    ///
    /// # Errors
    /// When the context has no message with a text of this session.
    pub fn with_messages(self) -> Result<Self, Failure> {
        if has_passages(&self.path) {
            return Ok(self);
        }
        let what = format!(
            "session {} has no message with a text of its own in its context; name a session with a conversation",
            self.id
        );
        Err(Failure::params("fromSessionId", what))
    }
}
