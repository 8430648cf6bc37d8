//! Errors of a session file.

use super::lines;
use std::{
    borrow::Cow,
    io,
    path::{Path, PathBuf},
};

/// Error of opening, reading or writing a session file.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process owns the session.
    #[error("another process{} has this session open; close it there, or load it with readOnly: true",
        .pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default())]
    Locked { pid: Option<u32> },
    /// Another daemon owns the session in the store.
    #[error("the daemon on {host}{} has this session open since {since}; close it there, or load it with readOnly: true",
        .pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default())]
    Owned { host: String, pid: Option<u32>, since: String },
    /// The store cannot be reached, or refused the request.
    #[error("{}: {what}", .path.display())]
    Stored { path: PathBuf, what: String, retryable: bool },
    /// The file does not exist.
    #[error("there is no file {}; make a session with session/new, or list those there are with session/list", .0.display())]
    Missing(PathBuf),
    /// The file is not a session file.
    #[error("{} is not a session file: {what}", .path.display())]
    Foreign { path: PathBuf, what: String },
    /// The operating system refused the operation.
    #[error("{}: {what} ({source}){}", .path.display(), advice(source))]
    Io { path: PathBuf, what: Cow<'static, str>, source: io::Error },
    /// A link, a pipe or a foreign file is in the place of a file of the daemon.
    #[error("{}: {what}; nothing was written. Remove it, then try again; to look at the session, load it with readOnly: true", .path.display())]
    Planted { path: PathBuf, what: String },
    /// Another program changed bytes that were read before.
    #[error("{} was changed by another program ({what}); close the session and load it again", .path.display())]
    Changed { path: PathBuf, what: String },
    /// A line exceeds the limit.
    #[error("{}: the line at byte {offset} is longer than {} bytes and has no end; cut the file there, or load it with readOnly: true, which reads what stands before it", .path.display(), lines::LONGEST)]
    LineTooLong { path: PathBuf, offset: u64 },
    /// The reader does not want the result any more.
    #[error("cancelled")]
    Stopped,
    /// The session cannot be written any more.
    #[error("{} is read-only from here on: {why}", .path.display())]
    ReadOnly { path: PathBuf, why: String },
}

impl StoreError {
    /// Wraps an error of the operating system on a path.
    pub fn io(path: &Path, what: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| match source.kind() {
            _ if source.get_ref().is_some_and(|inner| inner.is::<Self>()) => {
                let inner = source.into_inner().and_then(|inner| inner.downcast::<Self>().ok());
                inner.map_or_else(|| Self::Changed { path, what: what.to_owned() }, |inner| *inner)
            }
            // The bytes were there when their place was noted.
            io::ErrorKind::UnexpectedEof => Self::Changed { path, what: "it is shorter than it was".to_owned() },
            _ => Self::Io { path, what: Cow::Borrowed(what), source },
        }
    }
}

/// The next step after an error that a person can mend.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "; change the permissions of the file and its folder, then try again",
        io::ErrorKind::ReadOnlyFilesystem => {
            "; the file system is mounted read-only: mount it for writing, then try again"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_operating_system_says_what_to_do_next() {
        let path = Path::new("/s.jsonl");
        let text = |kind: io::ErrorKind| StoreError::io(path, "cannot be read")(kind.into()).to_string();
        let cut =
            "/s.jsonl was changed by another program (it is shorter than it was); close the session and load it again";
        assert_eq!(text(io::ErrorKind::UnexpectedEof), cut);
        assert!(
            text(io::ErrorKind::PermissionDenied)
                .ends_with("change the permissions of the file and its folder, then try again")
        );
        assert!(text(io::ErrorKind::NotFound).ends_with(')'));
    }
}
