//! The session file: opened under a lock, read line by line, and only ever appended to.
//!
//! A `Log` is the right to append. What it says is on disk, is: `append` returns after the fsync, and what a failed
//! write left behind is cut off again. The file's own bytes are never changed; a torn last line is moved aside, and an
//! old version is replaced by its new form with the old file kept, both right before the first write of ours.

use super::migrate::{self, OldLine};
use crate::entry::{Entry, Header, VERSION};
use serde_json::{Map, Value};
use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

/// The right to append to one session file.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    file: File,
    /// Everything before this is on disk and ends with a newline, unless `unfinished` says otherwise.
    durable: u64,
    unfinished: Unfinished,
    /// Writing is over, and why: after a failed fsync nobody knows what is on disk.
    broken: Option<String>,
    stats: Stats,
    _lock: Lock,
}

/// What the first write has to put in order.
#[derive(Debug)]
enum Unfinished {
    Nothing,
    /// The last line is whole but for its newline.
    NoNewline,
    /// The file is of an older version; these are the lines it is replaced by.
    Old(Box<Rewrite>),
}

#[derive(Debug)]
struct Rewrite {
    header: Header,
    entries: Vec<Arc<Entry>>,
}

/// What became of lines that were to be appended.
#[derive(Debug)]
pub enum Appended {
    /// They are on disk.
    Written,
    /// Another program was faster: these are its entries, and nothing of ours was written.
    Behind(Vec<Arc<Entry>>),
}

/// How often the disk was touched.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stats {
    /// Appends that reached the file, each any number of lines.
    pub writes: u64,
    /// Calls of fsync after them.
    pub fsyncs: u64,
}

/// What a session file holds.
#[derive(Debug)]
pub struct Loaded {
    /// The first line.
    pub header: Header,
    /// The rest, in the form of today.
    pub entries: Vec<Arc<Entry>>,
    /// What was not as it should be, and is carried on with.
    pub repairs: Vec<Repair>,
    /// oh-my-pi's leading title line.
    pub title: Option<String>,
}

/// Something in a file that was not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// `torn_tail`, `corrupt_line`, `missing_parent`, `same_id` or `migrated`.
    pub kind: &'static str,
    /// The line, from one, where it is about one.
    pub line: Option<usize>,
    /// What was found, and what was done about it.
    pub detail: String,
}

/// Why a file cannot be opened or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Somebody else writes it.
    #[error("another process{} has this session open; close it there, or load it with readOnly: true",
        .pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default())]
    Locked { pid: Option<u32> },
    /// There is no such file.
    #[error("there is no file {}; make a session with session/new, or list those there are with session/list", .0.display())]
    Missing(PathBuf),
    /// It is not a session file.
    #[error("{} is not a session file: {what}", .path.display())]
    Foreign { path: PathBuf, what: String },
    /// The operating system refused.
    #[error("{}: {what} ({source})", .path.display())]
    Io { path: PathBuf, what: &'static str, source: io::Error },
    /// Writing is over for this session.
    #[error("{} is read-only from here on: {why}", .path.display())]
    ReadOnly { path: PathBuf, why: String },
}

impl StoreError {
    fn io(path: &Path, what: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, what, source }
    }
}

/// The lock beside a session file. The operating system frees it when the process dies, however it dies.
#[derive(Debug)]
struct Lock {
    file: File,
}

impl Lock {
    fn take(session: &Path) -> Result<Self, StoreError> {
        let path = lock_path(session);
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(
            StoreError::io(&path, "cannot make the lock; to look at the session, load it with readOnly: true"),
        )?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let _ = file.read_to_string(&mut text);
                let pid = serde_json::from_str::<Value>(&text).ok().and_then(|it| it["pid"].as_u64());
                return Err(StoreError::Locked { pid: pid.and_then(|pid| u32::try_from(pid).ok()) });
            }
            Err(TryLockError::Error(error)) => {
                return Err(StoreError::io(&path, "cannot be locked")(error));
            }
        }
        let mut lock = Self { file };
        lock.note();
        Ok(lock)
    }

    /// Says who holds the lock. Only for others to read: a note that could not be written (a full disk) takes nothing
    /// from the lock itself.
    fn note(&mut self) {
        let text = serde_json::json!({ "pid": std::process::id() }).to_string();
        let written = self.file.set_len(0).and_then(|()| {
            self.file.seek(SeekFrom::Start(0))?;
            self.file.write_all(text.as_bytes())
        });
        if let Err(error) = written {
            tracing::warn!(%error, "the lock file could not be written");
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // An empty lock file is nobody's. It is not removed: another process may be waiting on this very inode.
        let _ = self.file.set_len(0);
    }
}

fn lock_path(session: &Path) -> PathBuf {
    beside(session, "lock")
}

/// `session.jsonl` → `session.jsonl.<suffix>`.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(suffix);
    path.with_file_name(name)
}

/// A name beside the file that is not taken yet.
fn free_beside(path: &Path, suffix: &str) -> PathBuf {
    let plain = beside(path, suffix);
    if !plain.exists() {
        return plain;
    }
    (2..).map(|n| beside(path, &format!("{suffix}.{n}"))).find(|path| !path.exists()).unwrap_or(plain)
}

/// Opens a file for reading and appending.
///
/// # Errors
/// When it is missing, no session, somebody else's at the moment, or the operating system refuses.
pub fn open(path: &Path) -> Result<(Log, Loaded), StoreError> {
    // Looked at first: a lock file beside something that is no session would be litter.
    peek(path)?;
    let lock = Lock::take(path)?;
    let file = OpenOptions::new()
        .read(true)
        .append(true)
        .open(path)
        .map_err(StoreError::io(path, "cannot be written; to look at it, load it with readOnly: true"))?;
    let bytes = read_all(path)?;
    let Parsed { loaded, durable, tail } = parse(path, &bytes)?;
    let unfinished = match tail {
        _ if loaded.header.version < VERSION => Unfinished::Old(Box::new(Rewrite {
            header: migrate::to_header(&loaded.header),
            entries: loaded.entries.clone(),
        })),
        // A torn line stands behind what is durable, and is looked at again before the first write.
        Tail::Whole | Tail::Torn => Unfinished::Nothing,
        Tail::NoNewline => Unfinished::NoNewline,
    };
    let log =
        Log { path: path.to_owned(), file, durable, unfinished, broken: None, stats: Stats::default(), _lock: lock };
    Ok((log, loaded))
}

/// Opens a file for reading only: no lock, no write.
///
/// # Errors
/// When it is missing, no session, or the operating system refuses.
pub fn open_read_only(path: &Path) -> Result<Loaded, StoreError> {
    peek(path)?;
    Ok(parse(path, &read_all(path)?)?.loaded)
}

/// Makes a new file with a header. The file and its name are on disk when this returns.
///
/// # Errors
/// When the operating system refuses.
pub fn create(path: &Path, header: &Header) -> Result<Log, StoreError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    create_private_folder(folder)?;
    let lock = Lock::take(path)?;
    let mut options = OpenOptions::new();
    options.read(true).append(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path).map_err(StoreError::io(path, "cannot be made"))?;
    let mut log = Log {
        path: path.to_owned(),
        file,
        durable: 0,
        unfinished: Unfinished::Nothing,
        broken: None,
        stats: Stats::default(),
        _lock: lock,
    };
    if let Err(error) = log.append(&[header_line(header)]) {
        // Nobody was told of it yet, and an empty file is no session.
        let _ = fs::remove_file(path);
        let _ = fs::remove_file(lock_path(path));
        return Err(error);
    }
    sync_folder(folder);
    Ok(log)
}

fn header_line(header: &Header) -> String {
    serde_json::to_string(header).expect("a header is always JSON")
}

fn create_private_folder(folder: &Path) -> Result<(), StoreError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
        .create(folder)
        .map_err(StoreError::io(folder, "this folder cannot be made; set ABRIDGED_DATA_DIR to one that can"))
}

/// A new name is only sure when its folder is on disk too. Not every file system can do it; the data is safe anyway.
fn sync_folder(folder: &Path) {
    if let Err(error) = File::open(folder).and_then(|folder| folder.sync_all()) {
        tracing::debug!(%error, "the folder could not be synced");
    }
}

impl Log {
    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How often the disk was touched so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// Size of the file that is sure to be on disk, in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.durable
    }

    /// Appends lines with one write and one fsync; when it returns `Written`, they are on disk. On an error none of them
    /// is. What another program has appended meanwhile comes back first, and then nothing was written: whoever appends
    /// must have seen it.
    ///
    /// # Errors
    /// When the disk is full or fails. After a failed fsync the log takes nothing any more.
    pub fn append(&mut self, lines: &[String]) -> Result<Appended, StoreError> {
        if let Some(why) = &self.broken {
            return Err(StoreError::ReadOnly { path: self.path.clone(), why: why.clone() });
        }
        self.put_in_order()?;
        let strangers = self.catch_up()?;
        if !strangers.is_empty() {
            return Ok(Appended::Behind(strangers));
        }
        let mut bytes = Vec::with_capacity(lines.iter().map(|line| line.len() + 1).sum());
        for line in lines {
            bytes.extend_from_slice(line.as_bytes());
            bytes.push(b'\n');
        }
        if let Err(error) = self.file.write_all(&bytes) {
            // What was written of it is cut off again, so that the next append does not stand behind half a line.
            if let Err(cut) = self.file.set_len(self.durable) {
                self.broken = Some(format!("a failed write could not be taken back ({cut})"));
            }
            let what = "could not be written; nothing was changed. Make room, then try again";
            return Err(StoreError::io(&self.path, what)(error));
        }
        self.stats.writes += 1;
        if let Err(error) = self.file.sync_data() {
            self.broken = Some(format!("the disk did not confirm a write ({error})"));
            let what = "the disk did not confirm the write; check the disk, then load the session again";
            return Err(StoreError::io(&self.path, what)(error));
        }
        self.stats.fsyncs += 1;
        self.durable += bytes.len() as u64;
        Ok(Appended::Written)
    }

    /// Reads what stands behind the last line we know. Whole lines are another program's; a piece of one is moved aside.
    fn catch_up(&mut self) -> Result<Vec<Arc<Entry>>, StoreError> {
        let length = self.length()?;
        if length < self.durable {
            // Appending would hide the loss.
            let why = "another program made the file shorter; load the session again".to_owned();
            self.broken = Some(why.clone());
            return Err(StoreError::ReadOnly { path: self.path.clone(), why });
        }
        if length == self.durable {
            return Ok(Vec::new());
        }
        let mut rest = Vec::new();
        let read = File::open(&self.path).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.durable))?;
            file.read_to_end(&mut rest)
        });
        read.map_err(StoreError::io(&self.path, "cannot be read"))?;
        let whole = memchr::memrchr(b'\n', &rest).map_or(0, |at| at + 1);
        let lines = Lines::new(&rest[..whole]);
        let entries = lines.filter_map(|line| match read_line(line.bytes, true) {
            Ok(Line::Entry(entry)) => Some(entry),
            _ => None,
        });
        let entries: Vec<_> = entries.collect();
        self.durable += whole as u64;
        if whole < rest.len() {
            self.move_aside(&rest[whole..])?;
        }
        Ok(entries)
    }

    /// The piece of a line at the end goes to a `.torn` file.
    fn move_aside(&mut self, piece: &[u8]) -> Result<(), StoreError> {
        let torn = free_beside(&self.path, "torn");
        let failed = "could not be written; nothing was changed. Make room, then try again";
        let mut file = File::create(&torn).map_err(StoreError::io(&torn, failed))?;
        file.write_all(piece).and_then(|()| file.sync_all()).map_err(StoreError::io(&torn, failed))?;
        self.file.set_len(self.durable).map_err(StoreError::io(&self.path, "could not be cut to its last whole line"))
    }

    fn length(&self) -> Result<u64, StoreError> {
        Ok(self.file.metadata().map_err(StoreError::io(&self.path, "cannot be looked at"))?.len())
    }

    /// What has to be done once, before the first write.
    fn put_in_order(&mut self) -> Result<(), StoreError> {
        match std::mem::replace(&mut self.unfinished, Unfinished::Nothing) {
            Unfinished::Nothing => Ok(()),
            Unfinished::NoNewline => self.finish_line().inspect_err(|_| self.unfinished = Unfinished::NoNewline),
            Unfinished::Old(rewrite) => match self.replace_old(&rewrite) {
                Ok(()) => Ok(()),
                Err(error) => {
                    self.unfinished = Unfinished::Old(rewrite);
                    Err(error)
                }
            },
        }
    }

    fn finish_line(&mut self) -> Result<(), StoreError> {
        self.file.write_all(b"\n").map_err(StoreError::io(&self.path, "could not be written; nothing was changed"))?;
        self.durable += 1;
        Ok(())
    }

    /// An old version gives way to its form of today: the new file is complete on disk before it takes the name, and
    /// the old one stays beside it.
    fn replace_old(&mut self, rewrite: &Rewrite) -> Result<(), StoreError> {
        let failed = "could not be written in its new form; nothing was changed";
        let old_version = format!("v{}", 1.max(read_version(&self.path)));
        let kept = free_beside(&self.path, &old_version);
        let new = free_beside(&self.path, "new");
        let mut bytes = header_line(&rewrite.header);
        bytes.push('\n');
        for entry in &rewrite.entries {
            bytes.push_str(entry.line());
            bytes.push('\n');
        }
        let write_new = || -> io::Result<()> {
            let mut options = OpenOptions::new();
            options.write(true).create_new(true);
            let mut file = options.open(&new)?;
            file.set_permissions(self.file.metadata()?.permissions())?;
            file.write_all(bytes.as_bytes())?;
            file.sync_all()?;
            // A hard link keeps the old bytes under their new name even if we die between the two steps.
            fs::hard_link(&self.path, &kept).or_else(|_| fs::copy(&self.path, &kept).map(|_| ()))?;
            fs::rename(&new, &self.path)
        };
        if let Err(error) = write_new() {
            let _ = fs::remove_file(&new);
            return Err(StoreError::io(&self.path, failed)(error));
        }
        sync_folder(self.path.parent().unwrap_or(Path::new(".")));
        self.file = OpenOptions::new()
            .read(true)
            .append(true)
            .open(&self.path)
            .map_err(StoreError::io(&self.path, "cannot be opened after it was replaced; load the session again"))?;
        self.durable = bytes.len() as u64;
        Ok(())
    }
}

fn read_version(path: &Path) -> u32 {
    peek(path).map_or(0, |header| header.version)
}

fn read_all(path: &Path) -> Result<Vec<u8>, StoreError> {
    fs::read(path).map_err(StoreError::io(path, "cannot be read"))
}

/// Reads the header and nothing else: at most as much of the file as pi looks at, 1 MiB.
///
/// # Errors
/// When the file is missing, or is no session.
pub fn peek(path: &Path) -> Result<Header, StoreError> {
    const LONGEST_HEADER: u64 = 1 << 20;
    let metadata = fs::metadata(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => StoreError::Missing(path.to_owned()),
        _ => StoreError::io(path, "cannot be read")(error),
    })?;
    if metadata.is_dir() {
        let source = io::Error::from_raw_os_error(21);
        return Err(StoreError::io(path, "is a folder; give the path of the session file in it")(source));
    }
    if !metadata.is_file() {
        return Err(StoreError::Foreign { path: path.to_owned(), what: "it is a device or a pipe".to_owned() });
    }
    let mut head = Vec::new();
    let file = File::open(path).map_err(StoreError::io(path, "cannot be read"))?;
    file.take(LONGEST_HEADER).read_to_end(&mut head).map_err(StoreError::io(path, "cannot be read"))?;
    let mut lines = Lines::new(&head);
    Ok(read_header(path, &mut lines)?.0)
}

struct Parsed {
    loaded: Loaded,
    durable: u64,
    tail: Tail,
}

enum Tail {
    Whole,
    NoNewline,
    Torn,
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Parsed, StoreError> {
    let mut lines = Lines::new(bytes);
    let (header, title) = read_header(path, &mut lines)?;
    let current = header.version >= VERSION;
    let mut entries = Vec::new();
    let mut old = Vec::new();
    let mut repairs = Vec::new();
    let mut tail = if bytes.ends_with(b"\n") { Tail::Whole } else { Tail::NoNewline };
    let mut durable = bytes.len();
    for line in lines {
        if line.bytes.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let bad = match read_line(line.bytes, current) {
            Ok(Line::Entry(entry)) => {
                entries.push(entry);
                continue;
            }
            Ok(Line::Old(value)) => {
                old.push(OldLine { number: line.number, value });
                continue;
            }
            Err(what) => what,
        };
        if line.ended {
            let detail = format!("{bad}; the line is left as it is and everything else is loaded");
            repairs.push(Repair { kind: "corrupt_line", line: Some(line.number), detail });
        } else {
            let detail = "the last line is incomplete; it is left out, and moved to a .torn file before the next write";
            repairs.push(Repair { kind: "torn_tail", line: Some(line.number), detail: detail.to_owned() });
            tail = Tail::Torn;
            durable = line.start;
        }
    }
    if !current {
        let (migrated, bad) = migrate::to_entries(&header, old);
        entries = migrated;
        repairs.extend(bad.into_iter().map(|(line, what)| Repair {
            kind: "corrupt_line",
            line: Some(line),
            detail: what,
        }));
        let detail =
            format!("a version {} file; the first write replaces it by version {VERSION} and keeps it", header.version);
        repairs.push(Repair { kind: "migrated", line: None, detail });
    }
    Ok(Parsed { loaded: Loaded { header, entries, repairs, title }, durable: durable as u64, tail })
}

enum Line {
    Entry(Arc<Entry>),
    Old(Map<String, Value>),
}

fn read_line(bytes: &[u8], current: bool) -> Result<Line, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| format!("not UTF-8 ({error})"))?;
    let text = text.strip_suffix('\r').unwrap_or(text);
    if current {
        return Entry::parse(text.into()).map(|entry| Line::Entry(Arc::new(entry))).map_err(|error| error.to_string());
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(value)) if value.contains_key("type") => Ok(Line::Old(value)),
        Ok(_) => Err("not an object with a type".to_owned()),
        Err(error) => Err(format!("not JSON ({error})")),
    }
}

/// The header, behind oh-my-pi's title line where there is one.
fn read_header(path: &Path, lines: &mut Lines<'_>) -> Result<(Header, Option<String>), StoreError> {
    let foreign = |what: &str| StoreError::Foreign { path: path.to_owned(), what: what.to_owned() };
    let mut title = None;
    loop {
        let line = loop {
            match lines.next() {
                Some(line) if line.bytes.iter().all(u8::is_ascii_whitespace) => {}
                Some(line) => break line,
                None => return Err(foreign("it is empty; make a session with session/new")),
            }
        };
        let text = std::str::from_utf8(line.bytes).map_err(|_| foreign("its first line is not UTF-8"))?;
        let text = text.trim_start_matches('\u{feff}');
        let value: Value = serde_json::from_str(text).map_err(|_| {
            foreign(if line.ended { "its first line is not JSON" } else { "its only line is not whole JSON" })
        })?;
        match value["type"].as_str() {
            Some("title") if title.is_none() => {
                title = Some(value["title"].as_str().unwrap_or_default().to_owned());
            }
            Some("session") => {
                let header: Header = serde_json::from_value(value)
                    .map_err(|error| foreign(&format!("its header is not one of a session ({error})")))?;
                if header.id.as_str().is_empty() {
                    return Err(foreign("its header has an empty id"));
                }
                let title = title.filter(|title| !title.is_empty()).or_else(|| header.title.clone());
                return Ok((header, title));
            }
            _ => {
                return Err(foreign("its first line is not a header {\"type\":\"session\",\"id\":…}"));
            }
        }
    }
}

/// The lines of a file with their numbers and places.
struct Lines<'a> {
    bytes: &'a [u8],
    at: usize,
    number: usize,
}

struct RawLine<'a> {
    bytes: &'a [u8],
    number: usize,
    start: usize,
    /// A newline follows.
    ended: bool,
}

impl<'a> Lines<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, number: 0 }
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = RawLine<'a>;

    fn next(&mut self) -> Option<RawLine<'a>> {
        let start = self.at;
        let rest = self.bytes.get(start..).filter(|rest| !rest.is_empty())?;
        let (length, ended) = match memchr::memchr(b'\n', rest) {
            Some(length) => (length, true),
            None => (rest.len(), false),
        };
        self.at = start + length + usize::from(ended);
        self.number += 1;
        Some(RawLine { bytes: &rest[..length], number: self.number, start, ended })
    }
}
