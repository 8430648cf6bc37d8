//! The lock beside a session file: one process writes a session. The operating system frees it when the process dies,
//! however it dies.
//!
//! The lock lies in the folder of the session, which may come from a stranger. So it is a regular file and no link, and
//! only a file that is empty or holds a record of ours is written to.

use crate::{
    ids::OperationId,
    log::{error::StoreError, names::beside},
    regular,
};
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, File, TryLockError},
    io::{self, Seek, SeekFrom, Write},
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
};

/// The most bytes of a lock file that are read. A record has about 200.
const LONGEST: usize = 16 << 10;

/// How every record begins, in this version and in those before it.
const BEGINNING: &[u8] = b"{\"pid\":";

/// A lock that is held. Its file goes when it is released.
#[derive(Debug)]
pub struct Lock {
    file: File,
    path: PathBuf,
    left_behind: Option<Unfinished>,
    /// The record names an operation that runs, or whose end nobody was told.
    says_something: bool,
}

/// An operation that was started and not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unfinished {
    /// Its id.
    pub operation_id: OperationId,
    /// The kind of operation.
    pub kind: String,
    /// Why it ran.
    pub reason: String,
    /// When it started.
    pub started_at: String,
}

/// The content of a lock file, for the process that finds it.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    pid: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    operation: Option<Unfinished>,
}

impl Lock {
    /// Takes the lock of a session file.
    ///
    /// # Errors
    /// `Locked` where another process holds it; `Planted` where its path leads to anything but a lock of ours; those of
    /// the operating system.
    pub fn take(session: &Path) -> Result<Self, StoreError> {
        let path = beside(session, "lock");
        loop {
            let file = regular::open_or_make(&path).map_err(|error| match error.raw_os_error() {
                None => planted(&path, error.to_string()),
                Some(_) => StoreError::io(&path, refused(&error, path.symlink_metadata().is_ok()))(error),
            })?;
            if let Some(lock) = Self::hold(file, &path)? {
                return Ok(lock);
            }
        }
    }

    /// Locks a file that was opened at `path`. `None` where another file, or none, is at the path by now: the last
    /// owner removed this one between the opening and the locking, and the next owner would not find it.
    fn hold(file: File, path: &Path) -> Result<Option<Self>, StoreError> {
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(StoreError::Locked { pid: read(&file).ok().and_then(Content::pid) });
            }
            Err(TryLockError::Error(error)) => return Err(StoreError::io(path, "cannot be locked")(error)),
        }
        if !regular::is_at(&file, path) {
            return Ok(None);
        }
        if file.metadata().map_err(StoreError::io(path, "cannot be looked at"))?.nlink() > 1 {
            return Err(planted(path, "it is another name of a file that lies elsewhere too".to_owned()));
        }
        // The file is still there only when its last owner died.
        let left_behind = match read(&file).map_err(StoreError::io(path, "cannot be read"))? {
            Content::Ours(note) => note.and_then(|note| note.operation),
            Content::Foreign => {
                return Err(planted(path, "it holds something else than a lock of a session".to_owned()));
            }
        };
        let mut lock = Self { file, path: path.to_owned(), left_behind, says_something: false };
        // An operation that was left behind stays noted until its end was sent.
        lock.note(lock.left_behind.clone());
        Ok(Some(lock))
    }

    /// The operation that the last owner left running.
    pub fn left_behind(&mut self) -> Option<Unfinished> {
        self.left_behind.take()
    }

    /// Records who holds the lock and what runs. The record is for other processes to read: the lock holds without it,
    /// for example on a full disk.
    pub fn note(&mut self, operation: Option<Unfinished>) {
        self.says_something = operation.is_some();
        let note = Note { pid: std::process::id(), operation };
        let text = serde_json::to_string(&note).expect("a note is always JSON");
        // Written over the old record before the rest is cut off: a crash in between leaves no empty file.
        let written = self.file.seek(SeekFrom::Start(0)).and_then(|_| {
            self.file.write_all(text.as_bytes())?;
            self.file.set_len(text.len() as u64)
        });
        if let Err(error) = written {
            tracing::warn!(%error, "the lock file could not be written");
        }
    }
}

fn planted(path: &Path, what: String) -> StoreError {
    StoreError::Planted { path: path.to_owned(), what }
}

/// The reason and the way out where a lock file cannot be opened or made; `exists` says which of the two.
fn refused(error: &io::Error, exists: bool) -> &'static str {
    match (error.kind(), exists) {
        (io::ErrorKind::PermissionDenied, true) => {
            "the lock file cannot be written; make it readable and writable for this user, or remove it, and try again; \
             to look at the session, load it with readOnly: true"
        }
        (io::ErrorKind::PermissionDenied, false) => {
            "the lock cannot be made in this folder; make the folder writable for this user and try again; to look at \
             the session, load it with readOnly: true"
        }
        _ => "cannot make the lock; to look at the session, load it with readOnly: true",
    }
}

/// Content of a lock file.
#[derive(Debug)]
enum Content {
    /// A record, or the beginning of one that a crash cut, or nothing.
    Ours(Option<Note>),
    /// Something that was never written here.
    Foreign,
}

impl Content {
    fn pid(self) -> Option<u32> {
        match self {
            Self::Ours(note) => note.map(|note| note.pid),
            Self::Foreign => None,
        }
    }

    fn of(bytes: &[u8]) -> Self {
        // A file system may leave zeros where a crash came before the bytes.
        if bytes.len() <= LONGEST && (bytes.starts_with(BEGINNING) || bytes.iter().all(|byte| *byte == 0)) {
            // The end of an older and longer record may stand behind it.
            let note = serde_json::Deserializer::from_slice(bytes).into_iter().next();
            return Self::Ours(note.and_then(Result::ok));
        }
        Self::Foreign
    }
}

/// Reads a lock file, and no more of it than a lock has.
fn read(file: &File) -> io::Result<Content> {
    let mut bytes = vec![0; LONGEST + 1];
    let mut length = 0;
    while length < bytes.len() {
        match file.read_at(&mut bytes[length..], length as u64) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    if length > LONGEST {
        return Ok(Content::Foreign);
    }
    Ok(Content::of(&bytes[..length]))
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A record of an operation stays for the next owner; a file that took the lock's name stays too.
        if !self.says_something && regular::is_at(&self.file, &self.path) {
            // Removed while it is held: no other process holds this very file, and the next owner makes its own.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A session in a folder of its own, and the path of its lock.
    fn session() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let home = tempfile::tempdir().expect("a folder");
        let session = home.path().join("s.jsonl");
        let lock = beside(&session, "lock");
        (home, session, lock)
    }

    #[test]
    fn a_file_that_left_its_path_before_it_was_locked_is_not_the_lock() {
        let (_home, session, path) = session();
        let first = Lock::take(&session).expect("the lock");
        let late = regular::open_or_make(&path).expect("the file of the first owner");
        drop(first);
        assert!(
            Lock::hold(late.try_clone().expect("a file"), &path).expect("free").is_none(),
            "nothing is at the path"
        );
        let second = Lock::take(&session).expect("the lock");
        assert!(Lock::hold(late, &path).expect("free").is_none(), "another file is at the path");
        drop(second);
    }

    #[test]
    fn a_file_that_took_the_name_of_a_lock_stays() {
        let (_home, session, path) = session();
        let lock = Lock::take(&session).expect("the lock");
        fs::remove_file(&path).and_then(|()| fs::write(&path, "mine")).expect("another file");
        drop(lock);
        assert_eq!(fs::read_to_string(&path).expect("the other file"), "mine");
        fs::remove_file(&path).expect("removed");
        drop(Lock::take(&session).expect("the lock"));
        assert!(!path.exists(), "a lock of ours goes with its owner");
    }

    #[test]
    fn a_file_with_a_second_name_is_no_lock() {
        let (home, session, path) = session();
        let other = home.path().join("other");
        for content in ["", "{\"pid\":1}"] {
            fs::write(&other, content).and_then(|()| fs::hard_link(&other, &path)).expect("two names");
            assert!(matches!(Lock::take(&session), Err(StoreError::Planted { .. })), "{content:?}");
            assert_eq!(fs::read_to_string(&other).expect("a file"), content);
            fs::remove_file(&path).expect("removed");
        }
    }

    #[test]
    fn an_operation_that_was_left_running_is_known_to_the_next_owner() {
        let (_home, session, path) = session();
        let operation = Unfinished {
            operation_id: OperationId::from("op1"),
            kind: "compaction".to_owned(),
            reason: "threshold".to_owned(),
            started_at: "2026-01-02T03:04:05Z".to_owned(),
        };
        let mut first = Lock::take(&session).expect("the lock");
        first.note(Some(operation.clone()));
        let pid = std::process::id();
        let second = Lock::take(&session).expect_err("it is held");
        assert!(matches!(second, StoreError::Locked { pid: Some(it) } if it == pid), "{second:?}");
        drop(first);
        assert!(path.exists(), "the record stays where an operation runs");
        let mut next = Lock::take(&session).expect("the lock");
        assert_eq!(next.left_behind(), Some(operation));
        next.note(None);
        assert_eq!(fs::read_to_string(&path).expect("a record"), format!("{{\"pid\":{pid}}}"));
    }

    #[test]
    fn a_file_that_is_longer_than_a_record_is_no_lock() {
        let (_home, session, path) = session();
        for (length, ours) in [(LONGEST, true), (LONGEST + 1, false), (4 * LONGEST, false)] {
            fs::write(&path, vec![0; length]).expect("a file");
            assert_eq!(Lock::take(&session).is_ok(), ours, "{length}");
        }
    }

    #[test]
    fn a_lock_that_is_refused_names_the_way_out() {
        let text = |kind: io::ErrorKind, exists| refused(&kind.into(), exists);
        for (kind, exists, words) in [
            (io::ErrorKind::PermissionDenied, true, "make it readable and writable for this user, or remove it"),
            (io::ErrorKind::PermissionDenied, false, "make the folder writable for this user"),
            (io::ErrorKind::ReadOnlyFilesystem, false, "cannot make the lock"),
        ] {
            assert!(text(kind, exists).contains(words) && text(kind, exists).contains("readOnly: true"), "{kind}");
        }
    }

    #[test]
    fn a_record_of_ours_is_known_whole_torn_or_followed_by_an_older_one() {
        let pid = |text: &str| match Content::of(text.as_bytes()) {
            Content::Ours(note) => Some(note.map(|note| note.pid)),
            Content::Foreign => None,
        };
        for (text, wanted) in [
            ("", Some(None)),
            ("\0\0\0\0", Some(None)),
            (r#"{"pid":7}"#, Some(Some(7))),
            (r#"{"pid":7}"startedAt":"now"}}"#, Some(Some(7))),
            (r#"{"pid":7,"operation":{"opera"#, Some(None)),
            (r#"{"name":"a settings file"}"#, None),
            ("ssh-ed25519 AAAA user@host", None),
            ("\0secret", None),
        ] {
            assert_eq!(pid(text), wanted, "{text}");
        }
        assert_eq!(pid(&format!("{{\"pid\":7}}{}", "x".repeat(LONGEST))), None, "longer than any record");
    }
}
