//! The session file: opened under a lock, read line by line, and only ever appended to.
//!
//! A `Log` is the right to append. What it says is on disk, is: `append` returns after the fsync, and what a failed
//! write left behind is cut off again. The file's own bytes are never changed; a torn last line is moved aside, and an
//! old version is replaced by its new form with the old file kept, both right before the first write of ours.

use super::{
    lock::Lock,
    migrate::{self, OldLine},
};
use crate::entry::{Entry, Header, VERSION};
use serde_json::{Map, Value};
use std::{
    fs::{self, File, OpenOptions},
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
    /// The file is of an older version; so many of its entries are known.
    Old {
        known: usize,
    },
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
    /// `torn_tail`, `corrupt_line`, `unreadable_entry`, `missing_parent`, `same_id`, `migrated` or `newer_version`.
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
    pub(super) fn io(path: &Path, what: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, what, source }
    }
}

/// `session.jsonl` → `session.jsonl.<suffix>`.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
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
        _ if loaded.header.version < VERSION => Unfinished::Old { known: loaded.entries.len() },
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

/// Makes a new file of a header and first entries. The file and its name are on disk when this returns.
///
/// # Errors
/// When the operating system refuses.
pub fn create(path: &Path, header: &Header, first: &[String]) -> Result<Log, StoreError> {
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
    let lines: Vec<String> = std::iter::once(header_line(header)).chain(first.iter().cloned()).collect();
    if let Err(error) = log.append(&lines) {
        // Nobody was told of it yet, and an empty file is no session.
        let _ = fs::remove_file(path);
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
        let mut strangers = self.put_in_order()?;
        strangers.extend(self.catch_up()?);
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
        let write = || -> io::Result<()> {
            let mut file = File::create(&torn)?;
            file.set_permissions(self.file.metadata()?.permissions())?;
            file.write_all(piece)?;
            file.sync_all()
        };
        write().map_err(StoreError::io(&torn, failed))?;
        self.file.set_len(self.durable).map_err(StoreError::io(&self.path, "could not be cut to its last whole line"))
    }

    fn length(&self) -> Result<u64, StoreError> {
        Ok(self.file.metadata().map_err(StoreError::io(&self.path, "cannot be looked at"))?.len())
    }

    /// What has to be done once, before the first write.
    fn put_in_order(&mut self) -> Result<Vec<Arc<Entry>>, StoreError> {
        match self.unfinished {
            Unfinished::Nothing => return Ok(Vec::new()),
            Unfinished::NoNewline => self.finish_line()?,
            Unfinished::Old { known } => {
                let strangers = self.replace_old(known)?;
                self.unfinished = Unfinished::Nothing;
                return Ok(strangers);
            }
        }
        self.unfinished = Unfinished::Nothing;
        Ok(Vec::new())
    }

    fn finish_line(&mut self) -> Result<(), StoreError> {
        self.file.write_all(b"\n").map_err(StoreError::io(&self.path, "could not be written; nothing was changed"))?;
        self.durable += 1;
        Ok(())
    }

    /// An old version gives way to its form of today: the new file is complete on disk before it takes the name, and
    /// the old one stays beside it. The file is read once more, so that what another program wrote to it since is in
    /// the new one too; that comes back.
    fn replace_old(&mut self, known: usize) -> Result<Vec<Arc<Entry>>, StoreError> {
        let failed = "could not be written in its new form; nothing was changed";
        let Parsed { loaded, .. } = parse(&self.path, &read_all(&self.path)?)?;
        let kept = free_beside(&self.path, &format!("v{}", loaded.header.version));
        let new = free_beside(&self.path, "new");
        let mut bytes = header_line(&migrate::to_header(&loaded.header));
        bytes.push('\n');
        for entry in &loaded.entries {
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
        Ok(loaded.entries.into_iter().skip(known).collect())
    }
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
    header_in(path, &head)
}

/// The header in the beginning of a file.
///
/// # Errors
/// When it is no session.
pub fn header_in(path: &Path, beginning: &[u8]) -> Result<Header, StoreError> {
    Ok(read_header(path, &mut Lines::new(beginning))?.0)
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
                repairs.extend(unreadable(&entry, Some(line.number)));
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
        repairs.extend(migrated.iter().filter_map(|entry| unreadable(entry, None)));
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
    if header.version > VERSION {
        let detail = format!("version {} is newer than {VERSION}, which is what is understood here", header.version);
        repairs.push(Repair { kind: "newer_version", line: None, detail });
    }
    Ok(Parsed { loaded: Loaded { header, entries, repairs, title }, durable: durable as u64, tail })
}

/// An entry that is kept and adds nothing, though its type says it should.
fn unreadable(entry: &Entry, line: Option<usize>) -> Option<Repair> {
    let detail = format!(
        "the {} {} is not in the form of its type; it is kept, and is not in the context",
        entry.kind, entry.id
    );
    entry.unreadable().then_some(Repair { kind: "unreadable_entry", line, detail })
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
