//! Outcomes of the log in a recording.

use super::Bytes;
use crate::{
    log::{Stats, error::StoreError},
    session::log_work::LogDone,
};
use serde::{Deserialize, Serialize};
use std::{io, path::PathBuf};

/// A call of the log: an append, or a look for entries of other programs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogCall {
    /// Bytes of the file that the session did not write: from the end that it knew to the place of its own lines, or to
    /// the end that it knows now. After a failed write they are all bytes after the end that it knew.
    #[serde(default, skip_serializing_if = "Bytes::is_none")]
    pub bytes: Bytes,
    /// Where the bytes begin.
    pub from: Begin,
    /// The outcome.
    pub outcome: Outcome,
    /// Disk operations so far.
    pub stats: Stats,
}

/// The place where recorded bytes begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Begin {
    /// At this offset. Bytes after it were cut off.
    At(u64),
    /// At the beginning: a file of an older version was replaced.
    Replaced,
}

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// The lines are durable, after the bytes.
    Written,
    /// Nothing was written, because other programs have written before. The file is known up to this offset.
    Behind(u64),
    /// The entries of other programs were read up to this offset.
    CaughtUp(u64),
    /// The call failed. The file is known up to this offset.
    Failed(u64, Failing),
}

/// An error of a session file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Failing {
    /// `StoreError::Locked`
    Locked { pid: Option<u32> },
    /// `StoreError::Owned`
    Owned { host: String, pid: Option<u32>, since: String },
    /// `StoreError::Stored`
    Stored { path: PathBuf, what: String, retryable: bool },
    /// `StoreError::Missing`
    Missing { path: PathBuf },
    /// `StoreError::Foreign`
    Foreign { path: PathBuf, what: String },
    /// `StoreError::Io`
    Io { path: PathBuf, what: String, errno: Option<i32>, text: String },
    /// `StoreError::Planted`
    Planted { path: PathBuf, what: String },
    /// `StoreError::Changed`
    Changed { path: PathBuf, what: String },
    /// `StoreError::LineTooLong`
    LineTooLong { path: PathBuf, offset: u64 },
    /// `StoreError::Stopped`
    Stopped,
    /// `StoreError::ReadOnly`
    ReadOnly { path: PathBuf, why: String },
}

impl Failing {
    /// The error of reading a path again, in a result of work on the log.
    #[must_use]
    pub fn of_reading(done: &LogDone) -> Option<Self> {
        match done {
            LogDone::Woke(Err(error)) | LogDone::Wrote { path: Some(Err(error)), .. } => Some(error.into()),
            // An undo that could not read the path did not write.
            LogDone::Wrote { appended: Err(error), path: None, undone: None, .. } => Some(error.into()),
            LogDone::CaughtUp(Err(error)) | LogDone::Fetched(Err(error)) | LogDone::Indexed(Err(error)) => {
                Some(error.into())
            }
            LogDone::Wrote { .. }
            | LogDone::Woke(Ok(_))
            | LogDone::CaughtUp(Ok(_))
            | LogDone::Fetched(Ok(_))
            | LogDone::Indexed(Ok(_)) => None,
        }
    }

    /// Puts the error in the place of what a replay read.
    #[must_use]
    pub fn in_place_of(self, done: LogDone) -> LogDone {
        match done {
            LogDone::Woke(_) => LogDone::Woke(Err(self.into())),
            LogDone::CaughtUp(_) => LogDone::CaughtUp(Err(self.into())),
            LogDone::Fetched(_) => LogDone::Fetched(Err(self.into())),
            LogDone::Indexed(_) => LogDone::Indexed(Err(self.into())),
            LogDone::Wrote { appended: Ok(appended), path: Some(_), undone: None, added } => {
                LogDone::Wrote { appended: Ok(appended), path: Some(Err(self.into())), undone: None, added }
            }
            LogDone::Wrote { .. } => {
                LogDone::Wrote { appended: Err(self.into()), path: None, undone: None, added: Vec::new() }
            }
        }
    }
}

impl From<&StoreError> for Failing {
    fn from(error: &StoreError) -> Self {
        match error {
            StoreError::Locked { pid } => Self::Locked { pid: *pid },
            StoreError::Owned { host, pid, since } => {
                Self::Owned { host: host.clone(), pid: *pid, since: since.clone() }
            }
            StoreError::Stored { path, what, retryable } => {
                Self::Stored { path: path.clone(), what: what.clone(), retryable: *retryable }
            }
            StoreError::Missing(path) => Self::Missing { path: path.clone() },
            StoreError::Foreign { path, what } => Self::Foreign { path: path.clone(), what: what.clone() },
            StoreError::Io { path, what, source } => Self::Io {
                path: path.clone(),
                what: what.clone().into_owned(),
                errno: source.raw_os_error(),
                text: source.to_string(),
            },
            StoreError::Planted { path, what } => Self::Planted { path: path.clone(), what: what.clone() },
            StoreError::Changed { path, what } => Self::Changed { path: path.clone(), what: what.clone() },
            StoreError::LineTooLong { path, offset } => Self::LineTooLong { path: path.clone(), offset: *offset },
            StoreError::Stopped => Self::Stopped,
            StoreError::ReadOnly { path, why } => Self::ReadOnly { path: path.clone(), why: why.clone() },
        }
    }
}

impl From<Failing> for StoreError {
    fn from(failing: Failing) -> Self {
        match failing {
            Failing::Locked { pid } => Self::Locked { pid },
            Failing::Owned { host, pid, since } => Self::Owned { host, pid, since },
            Failing::Stored { path, what, retryable } => Self::Stored { path, what, retryable },
            Failing::Missing { path } => Self::Missing(path),
            Failing::Foreign { path, what } => Self::Foreign { path, what },
            Failing::Io { path, what, errno, text } => {
                let source = errno.map_or_else(|| io::Error::other(text), io::Error::from_raw_os_error);
                Self::Io { path, what: what.into(), source }
            }
            Failing::Planted { path, what } => Self::Planted { path, what },
            Failing::Changed { path, what } => Self::Changed { path, what },
            Failing::LineTooLong { path, offset } => Self::LineTooLong { path, offset },
            Failing::Stopped => Self::Stopped,
            Failing::ReadOnly { path, why } => Self::ReadOnly { path, why },
        }
    }
}
