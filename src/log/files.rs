//! Session files: opening, creating and deleting them.

#![expect(clippy::disallowed_methods, reason = "opens session files")]

use super::{
    Log, Unfinished as LeftBehind,
    bytes::Bytes,
    error::StoreError,
    follower::Follower,
    header::{self, Found},
    history::History,
    lock::Lock,
    names,
    repair::Repair,
    sealed::Blocking,
    writer::file::SessionFile,
    writer::{Medium, Unfinished, Writer},
};
use crate::{
    conversation::{self, entry::Header},
    log::{
        loading::Loaded,
        source::{Source, Tail},
        walk::costs_of,
    },
    regular,
};
use std::{
    fs,
    io::{self, Write as _},
    path::Path,
    sync::Arc,
};

/// Files up to this size are indexed before they are answered for, in bytes: it takes a few milliseconds.
pub const INDEXED_AT_ONCE: u64 = 16 << 20;

/// A session file that was opened.
pub struct Opened {
    /// The header line.
    pub header: Header,
    /// Title of oh-my-pi's title line, which precedes the header.
    pub title: Option<String>,
    /// The entries.
    pub history: History,
    /// Faults of the file.
    pub repairs: Vec<Repair>,
    /// Operations that the last owner had not ended when it died, outer ones first.
    pub left_behind: Vec<LeftBehind>,
    /// The log of the file.
    pub log: Box<dyn Log>,
}

/// Opens a file for reading and appending. Its path must not end in a link; a caller resolves links before.
///
/// # Errors
/// When it is missing, no session, somebody else's at the moment, or the operating system refuses.
pub fn open(path: &Path, blocking: &Blocking) -> Result<Opened, StoreError> {
    // Looked at first: a lock file beside something that is no session would be litter.
    header::peek(path)?;
    let Owned { source, found, medium, left_behind } = Owned::take(path)?;
    load(source, found, INDEXED_AT_ONCE, medium, left_behind, blocking)
}

/// A file whose lock is held.
pub struct Owned {
    /// The file, for reading.
    pub source: Source,
    /// Its header.
    pub found: Found,
    /// The file, for writing.
    pub medium: SessionFile,
    /// Operations that the last owner had not ended when it died, outer ones first.
    pub left_behind: Vec<LeftBehind>,
}

/// Takes the lock of a file that need not be a session yet, for writing.
///
/// # Errors
/// `Locked` where another process has it; those of the operating system.
pub fn hold(path: &Path) -> Result<SessionFile, StoreError> {
    let mut lock = Lock::take(path)?;
    drop(lock.left_behind());
    let file = regular::open_to_append(path).map_err(StoreError::io(path, "cannot be written"))?;
    lock.hold_session(path)?;
    Ok(SessionFile::new(path.to_owned(), Arc::new(file), lock))
}

impl Owned {
    /// Takes the lock of a session file.
    ///
    /// # Errors
    /// When it is no session, another process's at the moment, or the operating system refuses.
    pub fn take(path: &Path) -> Result<Self, StoreError> {
        let mut lock = Lock::take(path)?;
        let left_behind = lock.left_behind();
        let file = regular::open_to_append(path)
            .map_err(StoreError::io(path, "cannot be written; to look at it, load it with readOnly: true"))?;
        lock.hold_session(path)?;
        let file = Arc::new(file);
        // The lock is held: from here on the path and the open file are the same file.
        let found = header::peek(path)?;
        let source = Source::of(path.to_owned(), Bytes::File(file.clone()), &found);
        Ok(Self { source, found, medium: SessionFile::new(path.to_owned(), file, lock), left_behind })
    }

    /// Opens it without reading it: its lines are those of a path.
    fn opened(self, path: conversation::path::Path) -> Result<Opened, StoreError> {
        let Self { source, found, medium, left_behind } = self;
        let durable = source.length().map_err(source.failed())?;
        let log = Box::new(Writer::new(medium, source.clone(), durable, Unfinished::Nothing)?);
        let spent = costs_of(&path);
        let history = History::of_file(source.into(), path, None).with_costs(spent);
        Ok(Opened { header: found.header, title: found.title, history, repairs: Vec::new(), left_behind, log })
    }
}

/// Reads a file whose lock is held, with its index where the file is no larger than `indexed_at_once`, in bytes.
///
/// # Errors
/// When it cannot be read.
pub fn load(
    source: Source,
    found: Found,
    indexed_at_once: u64,
    medium: impl Medium + 'static,
    left_behind: Vec<LeftBehind>,
    blocking: &Blocking,
) -> Result<Opened, StoreError> {
    let Loaded { history, repairs, durable, tail } = source.clone().load(&found, indexed_at_once, blocking)?;
    let unfinished = match tail {
        Tail::Old { entries } => Unfinished::Old { known: entries },
        Tail::Whole => Unfinished::Nothing,
        Tail::Torn => Unfinished::Torn,
        Tail::TooLong => return Err(source.too_long(durable)),
        Tail::NoNewline => Unfinished::NoNewline,
    };
    let log = Box::new(Writer::new(medium, source, durable, unfinished)?);
    Ok(Opened { header: found.header, title: found.title, history, repairs, left_behind, log })
}

/// Opens a file for reading only: no lock, no write.
///
/// # Errors
/// When it is missing, no session, or the operating system refuses.
pub fn open_read_only(path: &Path, blocking: &Blocking) -> Result<Opened, StoreError> {
    let found = header::peek(path)?;
    follow(Source::open(path.to_owned(), &found)?, found, INDEXED_AT_ONCE, blocking)
}

/// Reads a file that is only read, with its index where the file is no larger than `indexed_at_once`, in bytes.
///
/// # Errors
/// When it cannot be read.
pub fn follow(source: Source, found: Found, indexed_at_once: u64, blocking: &Blocking) -> Result<Opened, StoreError> {
    let Loaded { history, repairs, durable, tail } = source.clone().load(&found, indexed_at_once, blocking)?;
    let log = Box::new(Follower::new(source, durable, tail)?);
    Ok(Opened { header: found.header, title: found.title, history, repairs, left_behind: Vec::new(), log })
}

/// Makes a new file of a header and first entries. The file and its name are on disk when this returns.
///
/// # Errors
/// When the operating system refuses.
pub fn create(path: &Path, header: &Header, first: &[String]) -> Result<(Box<dyn Log>, Source), StoreError> {
    let line = header::new_line(path, header)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    create_private_folder(folder)?;
    let mut lock = Lock::take(path)?;
    let file = Arc::new(regular::make(path).map_err(StoreError::io(path, "cannot be made"))?);
    lock.hold_session(path)?;
    let found = Found { header: header.clone(), title: None, end: line.len() as u64 + 1, lines: 1 };
    let source = Source::of(path.to_owned(), Bytes::File(file.clone()), &found);
    let medium = SessionFile::new(path.to_owned(), file, lock);
    let mut log = Writer::new(medium, source.clone(), 0, Unfinished::Nothing)?;
    let lines: Vec<String> = std::iter::once(line).chain(first.iter().cloned()).collect();
    if let Err(error) = log.append(&lines, None) {
        // The session was not announced yet, and a file without its header is no session.
        let _ = fs::remove_file(path);
        return Err(error);
    }
    regular::sync_folder(folder);
    Ok((Box::new(log), source))
}

/// Takes bytes of a file that is being made.
pub type Sink<'a> = &'a mut dyn FnMut(&[u8]) -> Result<(), StoreError>;

/// Makes a new file of a header and entries, all or nothing, and opens it. The file and its name are on disk when this
/// returns. `write` writes the lines of the entries, each with its newline. The folder of the file is made after its lines
/// are on disk.
///
/// # Errors
/// When there is a file, or the operating system refuses, and those of `write`. No file is left then, and no new folder of
/// one that could not be written.
pub fn found(
    path: &Path,
    header: &Header,
    write: impl FnOnce(Sink<'_>) -> Result<(), StoreError>,
    blocking: &Blocking,
) -> Result<Opened, StoreError> {
    found_of(path, header, write, || Ok(None), blocking)
}

/// The same. The end of a large file is not read again where `known` gives its path, as far back as its context needs.
///
/// # Errors
/// The same, and those of `known`.
pub fn found_of(
    path: &Path,
    header: &Header,
    write: impl FnOnce(Sink<'_>) -> Result<(), StoreError>,
    known: impl FnOnce() -> Result<Option<conversation::path::Path>, StoreError>,
    blocking: &Blocking,
) -> Result<Opened, StoreError> {
    let path_in_memory = write_new(path, header, write, known, blocking)?;
    // The file has its name from here on, so the request is not stopped any more.
    let open = || match path_in_memory {
        Some(entries) => Owned::take(path)?.opened(entries),
        None => open(path, &blocking.to_the_end()),
    };
    // The session was not announced yet.
    open().inspect_err(|_| drop(fs::remove_file(path)))
}

/// Writes the file of a new session, and returns its path where it is large and `known` gives it.
///
/// # Errors
/// The same. No file is left then.
pub fn write_new(
    path: &Path,
    header: &Header,
    write: impl FnOnce(Sink<'_>) -> Result<(), StoreError>,
    known: impl FnOnce() -> Result<Option<conversation::path::Path>, StoreError>,
    blocking: &Blocking,
) -> Result<Option<conversation::path::Path>, StoreError> {
    let line = header::new_line(path, header)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let what = "this new session cannot be written; nothing is left of it. Make room or make the folder writable, then try again";
    let failed = |error| StoreError::io(path, what)(error);
    // A folder cannot be removed safely after it was made: another program may be about to write to it.
    let has_folder = folder.symlink_metadata().is_ok();
    create_private_folder(if has_folder { folder } else { folder.parent().unwrap_or(folder) })?;
    if path.try_exists().map_err(failed)? {
        return Err(failed(io::ErrorKind::AlreadyExists.into()));
    }
    let mut path_in_memory = None;
    let whole = |file: &mut fs::File| {
        let mut length = 0;
        let mut add = |bytes: &[u8]| {
            blocking.go_on()?;
            length += bytes.len() as u64;
            file.write_all(bytes).map_err(failed)
        };
        add(format!("{line}\n").as_bytes())?;
        write(&mut add)?;
        if length > INDEXED_AT_ONCE {
            path_in_memory = known()?;
        }
        blocking.go_on()
    };
    match has_folder {
        true => regular::make_whole(path, failed, whole)?,
        false => regular::make_whole_with_folder(path, failed, whole, || create_private_folder(folder))?,
    }
    regular::sync_folder(folder);
    Ok(path_in_memory)
}

/// Saves a text as a file of its own in the folder beside a session file, all or nothing.
///
/// # Errors
/// When the operating system refuses.
pub fn save_beside(path: &Path, text: &str) -> Result<(), StoreError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    create_private_folder(folder)?;
    let failed = |error| StoreError::io(path, "cannot be written")(error);
    regular::make_whole(path, failed, |file| file.write_all(text.as_bytes()).map_err(failed))?;
    regular::sync_folder(folder);
    Ok(())
}

/// Removes such a file, and its folder where nothing else is in it.
pub fn remove_beside(path: &Path) {
    let _ = fs::remove_file(path);
    let _ = path.parent().map(fs::remove_dir);
}

/// Deletes a session file that is not open, with the files that belong to it.
///
/// # Errors
/// `Locked` while a process has it open, `Missing` without a file, `Io` when the operating system refuses.
pub fn delete(path: &Path) -> Result<(), StoreError> {
    let _lock = Lock::take(path)?;
    let failed = || StoreError::io(path, "cannot be deleted");
    let document = header::peek(path).ok().map(|found| names::of_document(&found.header.timestamp));
    fs::remove_file(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => StoreError::Missing(path.to_owned()),
        _ => failed()(error),
    })?;
    // As `names_beside` has them.
    let ours = |name: &str| {
        let (kind, number) = name.split_once('.').unwrap_or((name, "2"));
        ["torn", "v1", "v2", "new"].contains(&kind) && number.parse::<u32>().is_ok()
    };
    let base = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let beside = fs::read_dir(path.parent().unwrap_or(Path::new("."))).map_err(failed())?;
    for file in beside.flatten() {
        let name = file.file_name().to_string_lossy().into_owned();
        let is_folder = file.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_folder && name.strip_prefix(&base).and_then(|rest| rest.strip_prefix('.')).is_some_and(ours) {
            fs::remove_file(file.path()).map_err(failed())?;
        }
    }
    if let Some(name) = document {
        delete_document(&path.with_extension(""), &name);
    }
    Ok(())
}

/// Deletes the document that was saved with a session, and its folder where nothing else is in it. The session is gone by
/// then, so a refusal of the operating system leaves them.
fn delete_document(folder: &Path, document: &str) {
    // A link leads to the files of others.
    if !fs::symlink_metadata(folder).is_ok_and(|it| it.is_dir()) {
        return;
    }
    for file in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_file = file.file_type().is_ok_and(|kind| kind.is_file());
        if is_file && file.file_name() == document {
            let _ = fs::remove_file(file.path());
        }
    }
    let _ = fs::remove_dir(folder);
}

/// Makes a folder that only its user may open, with those above it.
///
/// # Errors
/// When the operating system refuses.
pub fn create_private_folder(folder: &Path) -> Result<(), StoreError> {
    make_private(folder)
        .map_err(StoreError::io(folder, "this folder cannot be made; set ABRIDGED_DATA_DIR to one that can"))
}

/// The same with the error of the operating system.
///
/// # Errors
/// When the operating system refuses.
pub fn make_private(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::entry::{HeaderKind, VERSION};

    #[test]
    fn a_session_that_is_not_written_leaves_no_folder_that_was_made_for_it() {
        let home = tempfile::tempdir().expect("a folder");
        let sessions = home.path().join("sessions");
        let header = Header {
            kind: HeaderKind::Session,
            version: VERSION,
            id: "a".into(),
            timestamp: "2026-01-01T00:00:00.000Z".to_owned(),
            cwd: "/project".to_owned(),
            parent_session: None,
            title: None,
            rest: serde_json::Map::new(),
        };
        let path = sessions.join("--project--/a.jsonl");
        let none = |_: Sink<'_>| Err(StoreError::Stopped);
        let found = |write: fn(Sink<'_>) -> Result<(), StoreError>| {
            super::found(&path, &header, write, &Blocking::is_allowed_here()).map(drop)
        };
        let left = || fs::read_dir(&sessions).expect("a folder").flatten().map(|it| it.file_name()).collect::<Vec<_>>();
        assert!(matches!(found(none), Err(StoreError::Stopped)));
        assert_eq!(left(), Vec::<std::ffi::OsString>::new());
        // A folder that was there stays.
        fs::create_dir(path.parent().expect("a folder")).expect("a folder");
        assert!(matches!(found(none), Err(StoreError::Stopped)));
        assert_eq!(left(), ["--project--"]);
        fs::remove_dir(path.parent().expect("a folder")).expect("an empty folder");
        found(|_| Ok(())).expect("made");
        assert_eq!(left(), ["--project--"]);
        assert!(path.exists());
    }

    #[test]
    fn a_deleted_session_takes_its_own_files_along_and_nothing_else() {
        let home = tempfile::tempdir().expect("a folder");
        let at = |name: &str| home.path().join(name);
        for ours in ["s.jsonl", "s.jsonl.torn", "s.jsonl.torn.3", "s.jsonl.v1", "s.jsonl.v2.2", "s.jsonl.new"] {
            fs::write(at(ours), "").expect("a file");
        }
        let theirs = ["s.jsonl.torn.txt", "s.jsonl.bak", "s.jsonl.v3", "s2.jsonl.torn", "s.jsonl2"];
        for name in theirs {
            fs::write(at(name), "").expect("a file");
        }
        fs::create_dir(at("s.jsonl.torn.2")).expect("a folder");
        fs::write(at("s.jsonl.torn.2/kept"), "").expect("a file");
        delete(&at("s.jsonl")).expect("deleted");
        let mut left: Vec<_> =
            fs::read_dir(home.path()).expect("a folder").flatten().map(|it| it.file_name()).collect();
        left.sort();
        let mut expected: Vec<_> = theirs.iter().chain(&["s.jsonl.torn.2"]).map(std::ffi::OsString::from).collect();
        expected.sort();
        assert_eq!(left, expected);
        assert!(at("s.jsonl.torn.2/kept").exists());
        assert!(matches!(delete(&at("s.jsonl")), Err(StoreError::Missing(_))));
    }
}
