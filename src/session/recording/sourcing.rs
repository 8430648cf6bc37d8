//! Sources of references in a recording.

use crate::{conversation::path::Path, ids::SessionId, protocol::errors::Failure, session::source::Source};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The result of looking for a source. The text that was made of it is recorded with its transfer, so a replay needs no
/// entry of the source.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sourcing {
    /// It was found.
    Found {
        /// The session.
        id: SessionId,
        /// Its file.
        file: Option<PathBuf>,
    },
    /// There is no such session.
    Unknown(String),
    /// Another process has it open.
    Locked {
        /// The process.
        pid: Option<u32>,
        /// The error text.
        what: String,
    },
    /// It cannot be a source.
    Unfit {
        /// The parameter that names it.
        path: String,
        /// The error text.
        what: String,
    },
    /// Its file cannot be read.
    Unreadable {
        /// The file.
        path: String,
        /// The error number of the operating system.
        errno: Option<i32>,
        /// The error text.
        what: String,
    },
    /// It was stopped.
    Cancelled,
    /// It failed in another way.
    Failed(String),
}

impl From<&Result<Source, Failure>> for Sourcing {
    fn from(result: &Result<Source, Failure>) -> Self {
        match result {
            Ok(source) => Self::Found { id: source.id.clone(), file: source.file.clone() },
            Err(Failure::NotFound { kind: "session", what }) => Self::Unknown(what.clone()),
            Err(Failure::Locked { pid, what }) => Self::Locked { pid: *pid, what: what.clone() },
            Err(Failure::Elsewhere { pid, what, .. }) => Self::Locked { pid: *pid, what: what.clone() },
            Err(Failure::Store { path, what, .. }) => {
                Self::Unreadable { path: path.clone(), errno: None, what: what.clone() }
            }
            Err(Failure::InvalidParams { path, what }) => Self::Unfit { path: path.clone(), what: what.clone() },
            Err(Failure::Storage { path, errno, what }) => {
                Self::Unreadable { path: path.clone(), errno: *errno, what: what.clone() }
            }
            Err(Failure::Cancelled) => Self::Cancelled,
            Err(Failure::Internal(what)) => Self::Failed(what.clone()),
            Err(other) => Self::Failed(other.to_string()),
        }
    }
}

impl From<Sourcing> for Result<Source, Failure> {
    fn from(sourcing: Sourcing) -> Self {
        Err(match sourcing {
            Sourcing::Found { id, file } => return Ok(Source { id, file, path: Path::of(&[]) }),
            Sourcing::Unknown(what) => Failure::NotFound { kind: "session", what },
            Sourcing::Locked { pid, what } => Failure::Locked { pid, what },
            Sourcing::Unfit { path, what } => Failure::InvalidParams { path, what },
            Sourcing::Unreadable { path, errno, what } => Failure::Storage { path, errno, what },
            Sourcing::Cancelled => Failure::Cancelled,
            Sourcing::Failed(what) => Failure::Internal(what),
        })
    }
}
