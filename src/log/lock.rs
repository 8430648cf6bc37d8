//! The lock beside a session file: one process writes a session. The operating system frees it when the process dies,
//! however it dies.
//!
//! The lock lies in the folder of the session, which may come from a stranger. So it is a regular file and no link, and
//! only a file that is empty or holds a record of ours is written to.

#![expect(clippy::disallowed_methods, reason = "writes lock files")]

use crate::{
    log::{Unfinished, error::StoreError, names::beside},
    regular,
};
use rustix::{
    io::Errno,
    process::{Pid, test_kill_process},
};
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use std::{
    fs::{self, File, TryLockError},
    io::{self, Seek, SeekFrom, Write},
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
};

/// The most bytes of a lock file that are read. A record has about 200, 130 more for each operation, and 40 for each hook or
/// retry inside of it.
const LONGEST: usize = 16 << 10;

/// How every record begins, in this version and in those before it.
const BEGINNING: &[u8] = b"{\"pid\":";

/// A lock that is held. Its file goes when it is released.
#[derive(Debug)]
pub struct Lock {
    file: File,
    path: PathBuf,
    /// The session file, which is locked, too. None before it is there, and where its file system has no locks.
    session: Option<File>,
    left_behind: Vec<Unfinished>,
    /// The operations of the record: open ones, or those of the last owner whose end was not sent.
    recorded: Vec<Unfinished>,
    /// The last write of the record failed.
    outdated: bool,
}

/// The content of a lock file, for the process that finds it.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Record {
    pid: u32,
    /// The operation that an older version ends. It reads no other field, and ends it as a compaction.
    #[serde(default, deserialize_with = "readable", skip_serializing_if = "Option::is_none")]
    operation: Option<Unfinished>,
    /// The open operations, outer ones first.
    #[serde(default, deserialize_with = "readable_ones", skip_serializing_if = "Vec::is_empty")]
    operations: Vec<Unfinished>,
}

/// The kind of operation that older versions record and end.
const KIND_OF_OLDER_VERSIONS: &str = "compaction";

impl Record {
    fn of(operations: &[Unfinished]) -> Self {
        let operation = operations.iter().rev().find(|operation| operation.kind == KIND_OF_OLDER_VERSIONS);
        let operation = operation.map(|operation| Unfinished { inside: Vec::new(), ..operation.clone() });
        Self { pid: std::process::id(), operation, operations: operations.to_vec() }
    }

    /// At most as long as a lock that is read. Ids of another program may be too long, and are left out then.
    fn to_json(&self) -> String {
        let text = serde_json::to_string(self).expect("a record is always JSON");
        if text.len() <= LONGEST {
            return text;
        }
        tracing::warn!(bytes = text.len(), "the operations of the lock are too long to be recorded");
        serde_json::to_string(&Self { pid: self.pid, ..Self::default() }).expect("a record is always JSON")
    }

    /// The operations that the process which wrote this did not end, outer ones first. An older version records one.
    fn unfinished(self) -> Vec<Unfinished> {
        if self.operations.is_empty() { self.operation.into_iter().collect() } else { self.operations }
    }
}

/// Reads an item of a record. One that this version cannot read is left out, and the rest of the record holds.
fn readable<'de, D: Deserializer<'de>, T: DeserializeOwned>(reader: D) -> Result<Option<T>, D::Error> {
    let item = serde_json::from_value(serde_json::Value::deserialize(reader)?);
    Ok(item.inspect_err(|error| tracing::warn!(%error, "the lock holds an item that cannot be read")).ok())
}

/// The same for each item of a list.
pub(super) fn readable_ones<'de, D: Deserializer<'de>, T: DeserializeOwned>(reader: D) -> Result<Vec<T>, D::Error> {
    let serde_json::Value::Array(items) = serde_json::Value::deserialize(reader)? else { return Ok(Vec::new()) };
    Ok(items.into_iter().filter_map(|item| readable(item).ok().flatten()).collect())
}

/// The record of a lock file, read by a process that does not take the lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// The process that wrote it, and holds the lock while it lives.
    pub pid: u32,
    /// The operations that it has not ended, outer ones first.
    pub operations: Vec<Unfinished>,
}

impl Recorded {
    /// Whether the process that wrote it may still live. One that this user may not ask about counts as alive.
    #[must_use]
    pub fn is_of_the_living(&self) -> bool {
        let process = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        process.is_some_and(|process| test_kill_process(process) != Err(Errno::SRCH))
    }
}

/// Reads the lock file of a session. The lock is neither taken nor tested: a test of the lock would hold it for a moment,
/// and an owner that opens the session in that moment would be refused. `None` where no record is there.
///
/// # Errors
/// When there is a file that cannot be opened or read, or that no session takes for a lock.
pub fn look(session: &Path) -> io::Result<Option<Recorded>> {
    let file = match regular::open(&beside(session, "lock"), regular::Links::Refused) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let recorded = |record: Record| Recorded { pid: record.pid, operations: record.unfinished() };
    match acceptable(&file)? {
        Ok(record) => Ok(record.map(recorded)),
        Err(why) => Err(io::Error::other(why)),
    }
}

/// The other living process that has the session of a file open, as its lock file says. The lock is not tested.
#[must_use]
pub fn owner_elsewhere(session: &Path) -> Option<u32> {
    let found = look(session).ok().flatten()?;
    (found.pid != std::process::id() && found.is_of_the_living()).then_some(found.pid)
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
                None => planted_file(&path, error.to_string()),
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
        // The file is still there only when its last owner died.
        let left_behind = match acceptable(&file).map_err(StoreError::io(path, "cannot be read"))? {
            Ok(record) => record.map(Record::unfinished).unwrap_or_default(),
            Err(why) => return Err(planted_file(path, why.to_owned())),
        };
        let recorded = left_behind.clone();
        let mut lock = Self { file, path: path.to_owned(), session: None, left_behind, recorded, outdated: false };
        // The operations of the last owner stay in the record until their ends are sent.
        lock.write();
        Ok(Some(lock))
    }

    /// Locks the session file, too: neither another name of the file nor another lock file makes a second writer.
    ///
    /// # Errors
    /// `Locked` where another process holds it; those of the operating system.
    pub fn hold_session(&mut self, session: &Path) -> Result<(), StoreError> {
        let failed = StoreError::io(session, "cannot be written; to look at it, load it with readOnly: true");
        let file = regular::open_to_append(session).map_err(failed)?;
        self.session = match file.try_lock() {
            Ok(()) => Some(file),
            Err(TryLockError::WouldBlock) => return Err(StoreError::Locked { pid: None }),
            Err(TryLockError::Error(error)) => {
                tracing::warn!(%error, path = %session.display(), "the session file cannot be locked; its lock file is");
                None
            }
        };
        Ok(())
    }

    /// Takes the operations that the last owner did not end, outer ones first.
    pub fn left_behind(&mut self) -> Vec<Unfinished> {
        std::mem::take(&mut self.left_behind)
    }

    /// Records the open operations, outer ones first. The record is for other processes: the lock holds without it, for
    /// example on a full disk. A record that says the same is not written again.
    pub fn record(&mut self, operations: Vec<Unfinished>) {
        if self.outdated || self.recorded != operations {
            self.recorded = operations;
            self.write();
        }
    }

    fn write(&mut self) {
        let text = Record::of(&self.recorded).to_json();
        // Written over the old record before the rest is cut off: a crash in between leaves no empty file.
        let written = self.file.seek(SeekFrom::Start(0)).and_then(|_| {
            self.file.write_all(text.as_bytes())?;
            self.file.set_len(text.len() as u64)
        });
        self.outdated = written.is_err();
        if let Err(error) = written {
            tracing::warn!(%error, "the lock file could not be written");
        }
    }
}

fn planted_file(path: &Path, what: String) -> StoreError {
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
    Ours(Option<Record>),
    /// Something that was never written here.
    Foreign,
}

impl Content {
    fn pid(self) -> Option<u32> {
        match self {
            Self::Ours(record) => record.map(|record| record.pid),
            Self::Foreign => None,
        }
    }

    fn of(bytes: &[u8]) -> Self {
        // A file system may leave zeros where a crash came before the bytes.
        if bytes.len() <= LONGEST && (bytes.starts_with(BEGINNING) || bytes.iter().all(|byte| *byte == 0)) {
            // The end of an older and longer record may stand after it.
            let record = serde_json::Deserializer::from_slice(bytes).into_iter().next();
            return Self::Ours(record.and_then(Result::ok));
        }
        Self::Foreign
    }
}

/// The record of a lock file, or the reason why the file is none that a session may write to.
fn acceptable(file: &File) -> io::Result<Result<Option<Record>, &'static str>> {
    if file.metadata()?.nlink() > 1 {
        return Ok(Err("it is another name of a file that lies elsewhere too"));
    }
    Ok(match read(file)? {
        Content::Ours(record) => Ok(record),
        Content::Foreign => Err("it holds something else than a lock of a session"),
    })
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
        // A child process has the open file until it begins its own program. Unlocked, the file is free at once.
        let _ = self.session.as_ref().map(File::unlock);
        // A record of an operation stays for the next owner; a file that took the lock's name stays too.
        if self.recorded.is_empty() && regular::is_at(&self.file, &self.path) {
            // Removed while it is held: no other process holds this very file, and the next owner makes its own.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ids::OperationId, log::Inside};

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
    fn a_session_has_one_writer_whatever_its_name_and_its_lock_file() {
        let (home, session, path) = session();
        fs::write(&session, "").expect("a file");
        let mut lock = Lock::take(&session).expect("the lock");
        lock.hold_session(&session).expect("free");
        let other_name = home.path().join("t.jsonl");
        fs::hard_link(&session, &other_name).expect("a second name");
        // The lock file of the owner was removed, so that another one can be made.
        fs::remove_file(&path).expect("removed");
        for name in [&session, &other_name] {
            let mut second = Lock::take(name).expect("a lock file");
            let refused = second.hold_session(name).expect_err("it has a writer");
            assert!(matches!(refused, StoreError::Locked { pid: None }), "{refused}");
        }
        drop(lock);
        Lock::take(&other_name).expect("the lock").hold_session(&other_name).expect("free");
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

    fn operation(id: &str, kind: &str) -> Unfinished {
        let (kind, reason) = (kind.to_owned(), "manual".to_owned());
        let started_at = "2026-01-01T00:00:00Z".to_owned();
        Unfinished { operation_id: id.into(), kind, reason, started_at, inside: Vec::new() }
    }

    fn hook(name: &str) -> Inside {
        Inside::Hook { hook: name.to_owned() }
    }

    fn retry(source: &str, attempt: u32) -> Inside {
        Inside::Retry { retry: source.to_owned(), attempt }
    }

    /// The record of a process that died, and the operations that the next owner finds.
    fn left_behind(record: &str) -> Vec<Unfinished> {
        let (_home, session, path) = session();
        fs::write(&path, record).expect("a record");
        Lock::take(&session).expect("free").left_behind()
    }

    #[test]
    fn a_record_lists_all_operations_and_names_the_one_that_an_older_version_ends() {
        for (open, for_older) in [
            (vec![], None),
            (vec![operation("a", "compaction")], Some("a")),
            (vec![operation("a", "turn"), operation("b", "compaction"), operation("c", "compaction")], Some("c")),
            (vec![operation("a", "turn"), operation("b", "compaction"), operation("c", "handoff")], Some("b")),
            (vec![operation("a", "turn"), operation("b", "speculation")], None),
        ] {
            let (_home, session, path) = session();
            let mut lock = Lock::take(&session).expect("the lock");
            lock.record(open.clone());
            let text = fs::read_to_string(&path).expect("a record");
            let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            assert_eq!(json["operation"]["operationId"].as_str(), for_older, "{text}");
            assert_eq!(left_behind(&text), open, "{text}");
        }
    }

    #[test]
    fn a_record_of_an_older_version_holds_one_operation() {
        let old = r#"{"pid":7,"operation":{"operationId":"a","kind":"compaction","reason":"manual","startedAt":"2026-01-01T00:00:00Z"}}"#;
        assert_eq!(left_behind(old), [operation("a", "compaction")]);
    }

    #[test]
    fn an_operation_that_cannot_be_read_is_left_out_of_a_record() {
        let known = r#"{"operationId":"b","kind":"compaction","reason":"manual","startedAt":"2026-01-01T00:00:00Z"}"#;
        for record in [
            format!(r#"{{"pid":7,"operation":7,"operations":[{known}]}}"#),
            format!(r#"{{"pid":7,"operations":[{{"kind":"turn"}},{known},null]}}"#),
            format!(r#"{{"pid":7,"operation":{known},"operations":"none"}}"#),
        ] {
            assert_eq!(left_behind(&record), [operation("b", "compaction")], "{record}");
        }
        let short = left_behind(r#"{"pid":7,"operations":[{"operationId":"a","kind":"turn","turns":3}]}"#);
        assert_eq!((short[0].kind.as_str(), short[0].reason.as_str()), ("turn", ""), "fields of another version");
    }

    #[test]
    fn hooks_and_retries_stand_in_the_operation_that_they_run_in() {
        let inside = vec![hook("session_before_compact"), retry("history", 2)];
        let open = vec![operation("a", "recovery"), Unfinished { inside, ..operation("b", "compaction") }];
        let (_home, session, path) = session();
        let mut lock = Lock::take(&session).expect("the lock");
        lock.record(open.clone());
        let text = fs::read_to_string(&path).expect("a record");
        assert_eq!(left_behind(&text), open, "{text}");
        let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(json["operation"].get("inside"), None, "an older version knows none of them: {text}");
        assert_eq!(json["operations"][0].get("inside"), None, "{text}");
    }

    #[test]
    fn a_hook_or_a_retry_that_cannot_be_read_is_left_out_of_its_operation() {
        for (inside, read) in [
            (r#"[{"dream":"x"},{"hook":"h","since":3},7,{"retry":"history","attempt":-1}]"#, vec![hook("h")]),
            (r#"[{"retry":"history","attempt":1,"delayMs":9}]"#, vec![retry("history", 1)]),
            (r#"{"hook":"h"}"#, vec![]),
            ("null", vec![]),
        ] {
            let known = r#""operationId":"b","kind":"compaction","reason":"manual","startedAt":"2026-01-01T00:00:00Z""#;
            let record = format!(r#"{{"pid":7,"operations":[{{{known},"inside":{inside}}}]}}"#);
            assert_eq!(left_behind(&record), [Unfinished { inside: read, ..operation("b", "compaction") }], "{record}");
        }
    }

    #[test]
    fn a_record_is_never_longer_than_what_is_read() {
        let (_home, session, path) = session();
        let mut lock = Lock::take(&session).expect("the lock");
        lock.record(vec![operation(&"x".repeat(LONGEST), "turn")]);
        assert_eq!(fs::read_to_string(&path).expect("a record"), format!(r#"{{"pid":{}}}"#, std::process::id()));
        drop(lock);
        assert!(Lock::take(&session).is_ok());
    }

    #[test]
    fn a_record_that_says_the_same_is_not_written_again() {
        let (_home, session, path) = session();
        let mut lock = Lock::take(&session).expect("the lock");
        lock.record(vec![operation("a", "compaction")]);
        fs::write(&path, "seen").expect("a mark");
        lock.record(vec![operation("a", "compaction")]);
        assert_eq!(fs::read_to_string(&path).expect("the mark"), "seen");
        lock.record(Vec::new());
        assert!(fs::read_to_string(&path).expect("a record").starts_with("{\"pid\":"));
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
            inside: vec![hook("session_compacting")],
        };
        let mut first = Lock::take(&session).expect("the lock");
        first.record(vec![operation.clone()]);
        let pid = std::process::id();
        let second = Lock::take(&session).expect_err("it is held");
        assert!(matches!(second, StoreError::Locked { pid: Some(it) } if it == pid), "{second:?}");
        drop(first);
        assert!(path.exists(), "the record stays where an operation runs");
        let mut next = Lock::take(&session).expect("the lock");
        assert_eq!(next.left_behind(), [operation]);
        next.record(Vec::new());
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
    fn a_lock_that_is_looked_at_is_neither_taken_nor_made() {
        let (_home, session, path) = session();
        assert_eq!(look(&session).expect("no file"), None);
        assert!(!path.exists(), "a look makes no file");
        let mut lock = Lock::take(&session).expect("the lock");
        lock.record(vec![operation("a", "recovery"), operation("b", "compaction")]);
        let operations = vec![operation("a", "recovery"), operation("b", "compaction")];
        let recorded = Recorded { pid: std::process::id(), operations };
        assert_eq!(look(&session).expect("a record"), Some(recorded));
        drop(lock);
        let seen = regular::open(&path, regular::Links::Refused).expect("the file of a dead owner");
        assert!(Lock::take(&session).is_ok(), "a reader does not hold the lock");
        drop(seen);
    }

    #[test]
    fn a_lock_that_is_looked_at_may_be_anything() {
        let (home, session, path) = session();
        for (content, pid) in [("", None), (r#"{"pid":7,"oper"#, None), (r#"{"pid":7}"#, Some(7))] {
            fs::write(&path, content).expect("a file");
            assert_eq!(look(&session).expect("it is read").map(|it| it.pid), pid, "{content:?}");
        }
        fs::write(&path, "ssh-ed25519 AAAA").expect("a file");
        assert_eq!(
            look(&session).expect_err("no lock").to_string(),
            "it holds something else than a lock of a session"
        );
        fs::remove_file(&path).expect("removed");
        std::os::unix::fs::symlink(home.path().join("elsewhere"), &path).expect("a link");
        assert!(look(&session).is_err(), "a link is not followed");
    }

    #[test]
    fn a_record_of_ours_is_known_whole_torn_or_followed_by_an_older_one() {
        let pid = |text: &str| match Content::of(text.as_bytes()) {
            Content::Ours(record) => Some(record.map(|record| record.pid)),
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
