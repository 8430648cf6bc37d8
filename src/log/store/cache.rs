//! The cache folder of a store: one local file for each session that was open here.
//!
//! A record beside each file says which of its bytes are those of the store. A process holds a folder of its own while it
//! lives, so no two processes write one file, and a later process finds what an earlier one has left.

#![expect(clippy::disallowed_methods, reason = "makes cache files")]

use super::{
    pages::{Mark, Marks, Pages},
    server::{From, Server, Standing},
};
use crate::{
    ids::SessionId,
    log::{bytes::Paged as _, error::StoreError, files, names::beside},
    regular,
};
use serde::{Deserialize, Serialize};
use std::{
    collections::HashMap,
    fs::{self, File, TryLockError},
    io,
    os::unix::fs::FileExt,
    path::{Component, Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, Weak},
    time::{Duration, SystemTime},
};

/// Processes of one user on one machine that have the store open at the same time. More are refused.
const MOST_PROCESSES: usize = 256;

/// The age from which a cache file is removed: its session was neither written nor closed here since.
const UNUSED: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The file in the folder of a process that it has locked.
const HELD: &str = "held";

/// The largest record about a file that is read, in bytes.
const LARGEST_RECORD: u64 = 4 << 10;

/// The cache folder of this process.
#[derive(Debug)]
pub struct Cache {
    identity: String,
    sessions: PathBuf,
    boot: Option<String>,
    /// The files that are open in this process, by the names of their sessions.
    open: Mutex<HashMap<String, Weak<Pages>>>,
    /// Locked while the process lives.
    _held: File,
}

/// Record about a cache file, which a later process believes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    /// Generation of the lines.
    generation: i64,
    /// The number of lines that were known.
    lines: u64,
    /// Their size, in bytes.
    bytes: u64,
    /// The lines that are there.
    marks: Marks,
    /// The start of the machine, where the bytes are not known to be on disk.
    boot: Option<String>,
}

impl Cache {
    /// A folder below `root` that no other process holds. `identity` is that of the store.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub fn below(root: &Path, identity: &str) -> io::Result<Self> {
        let store = root.join("stores").join(identity);
        for number in 0..MOST_PROCESSES {
            let folder = store.join(number.to_string());
            files::make_private(&folder.join("sessions"))?;
            let held = regular::open_or_make(&folder.join(HELD))?;
            match held.try_lock() {
                Ok(()) => {
                    remove_unused(&folder.join("sessions"), SystemTime::now());
                    let boot = boot();
                    let identity = identity.to_owned();
                    return Ok(Self {
                        identity,
                        sessions: folder.join("sessions"),
                        boot,
                        open: Mutex::default(),
                        _held: held,
                    });
                }
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Err(io::Error::other("too many processes of this user have the store open"))
    }

    /// The identity of the store.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The folder of the session files.
    #[must_use]
    pub fn sessions(&self) -> &Path {
        &self.sessions
    }

    /// Path of a session's file.
    ///
    /// # Errors
    /// When the name leads out of the folder.
    pub fn path(&self, name: &str) -> Result<PathBuf, StoreError> {
        let relative = Path::new(name);
        let inside = relative.components().all(|part| matches!(part, Component::Normal(_)));
        if inside && relative.components().count() == 2 && name.ends_with(".jsonl") {
            return Ok(self.sessions.join(relative));
        }
        let what = "the store gives it a name that is no path of a session file".to_owned();
        Err(StoreError::Foreign { path: relative.to_owned(), what })
    }

    /// The file of a session as it stands, with as much of its bytes as an earlier process has left.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub fn file(
        &self,
        id: &SessionId,
        standing: &Standing,
        server: Arc<dyn Server>,
    ) -> Result<(PathBuf, Arc<Pages>), StoreError> {
        let path = self.path(&standing.name)?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        files::create_private_folder(path.parent().unwrap_or(&self.sessions))?;
        let failed = || StoreError::io(&path, "the cache file cannot be made");
        let record = beside(&path, "cache");
        let file = regular::open_or_make(&path).map_err(failed())?;
        let length = file.metadata().map_err(failed())?.len();
        let kept =
            regular::read(&record, LARGEST_RECORD).ok().and_then(|json| serde_json::from_slice::<Kept>(&json).ok());
        let kept = kept.filter(|kept| kept.holds(standing, self.boot.as_deref()) && kept.bytes <= length);
        let mut marks = Marks::none(standing.lines, standing.bytes);
        let mut known = 0;
        if let Some(kept) = kept {
            let end = Mark { line: kept.lines, at: kept.bytes };
            let head = if kept.marks.are_whole() { end } else { kept.marks.head };
            let is_current = kept.lines == standing.lines;
            // A store that was restored from a backup may have gone another way since.
            if is_same(&file, id, standing, if is_current { end } else { head }, &*server)? {
                known = kept.bytes;
                marks.head = head;
                if is_current && !kept.marks.are_whole() {
                    marks.tail = kept.marks.tail;
                }
            }
        }
        // A record outlives no change of its file: a crash would leave it beside other bytes.
        let _ = fs::remove_file(&record);
        // Bytes that nobody vouches for are zeros until they are read again.
        file.set_len(known).and_then(|()| file.set_len(standing.bytes)).map_err(failed())?;
        let pages = Arc::new(Pages::new(Arc::new(file), id.clone(), standing.generation, server, marks));
        open.insert(standing.name.clone(), Arc::downgrade(&pages));
        open.retain(|_, pages| pages.strong_count() > 0);
        Ok((path, pages))
    }

    /// A file that was made here, with all of its lines.
    pub fn made(&self, file: Arc<File>, id: &SessionId, standing: &Standing, server: Arc<dyn Server>) -> Arc<Pages> {
        let end = Mark { line: standing.lines, at: standing.bytes };
        let marks = Marks { head: end, tail: end };
        let pages = Arc::new(Pages::new(file, id.clone(), standing.generation, server, marks));
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.insert(standing.name.clone(), Arc::downgrade(&pages));
        pages
    }

    /// The file of a session that is open in this process. It is read as it is, and nothing of it is changed.
    #[must_use]
    pub fn opened(&self, name: &str) -> Option<(PathBuf, Arc<Pages>)> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let pages = open.get(name)?.upgrade()?;
        Some((self.path(name).ok()?, pages))
    }

    /// Records which bytes of a file are there, and that it is not open any more. `lines` and `bytes` are those that the store has.
    pub fn record(&self, path: &Path, pages: &Pages, lines: u64, bytes: u64) {
        let (generation, marks) = (pages.generation(), pages.marks());
        let boot = match pages.file().sync_data() {
            Ok(()) => None,
            Err(_) => self.boot.clone(),
        };
        keep(&beside(path, "cache"), &Kept { generation, lines, bytes, marks, boot });
        if let Some(name) = path.strip_prefix(&self.sessions).ok().and_then(Path::to_str) {
            self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
        }
    }

    /// Removes the file of a session that is deleted.
    pub fn remove(&self, name: &str) {
        if let Ok(path) = self.path(name) {
            let _ = fs::remove_file(beside(&path, "cache"));
            let _ = files::delete(&path);
        }
    }
}

/// Removes cache files that were not used for a long time. The store has their lines.
fn remove_unused(sessions: &Path, now: SystemTime) {
    let folders = fs::read_dir(sessions).into_iter().flatten().flatten();
    for file in folders.flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten().flatten()) {
        let modified = file.metadata().and_then(|about| about.modified()).ok();
        if modified.and_then(|modified| now.duration_since(modified).ok()).is_some_and(|age| age > UNUSED) {
            let _ = fs::remove_file(file.path());
        }
    }
}

/// The start of the machine, where the system names it.
fn boot() -> Option<String> {
    let id = regular::read(Path::new("/proc/sys/kernel/random/boot_id"), 64).ok()?;
    String::from_utf8(id).ok()
}

/// The place of a file in the cache of a store, whichever process has made it.
#[derive(Debug, PartialEq, Eq)]
pub struct Cached {
    /// Identity of the store.
    pub identity: String,
    /// Path of the file below the folder of the sessions.
    pub name: String,
}

impl Cached {
    /// The place of a path, where it is in a cache. Links are followed. The file need not be there.
    #[must_use]
    pub fn at(path: &Path) -> Option<Self> {
        let real = path.canonicalize().or_else(|_| std::path::absolute(path)).ok()?;
        let mut above = real.ancestors();
        let file = above.next()?.file_name()?.to_str()?;
        let folder = above.next()?.file_name()?.to_str()?;
        let sessions = above.next()?;
        let process = above.next()?;
        let store = above.next()?;
        let is_cache = sessions.file_name()? == "sessions"
            && store.parent()?.file_name()? == "stores"
            && process.join(HELD).symlink_metadata().is_ok();
        let identity = store.file_name()?.to_str()?.to_owned();
        is_cache.then(|| Self { identity, name: format!("{folder}/{file}") })
    }
}

/// Whether the last line before a place is the same in a file and in the store. Lines have ids, so those before it are the
/// same, too.
fn is_same(
    file: &File,
    id: &SessionId,
    standing: &Standing,
    end: Mark,
    server: &dyn Server,
) -> Result<bool, StoreError> {
    if end.line == 0 {
        return Ok(true);
    }
    let rows = server.read(id, standing.generation, From::Before(end.line), 1);
    let rows = rows.map_err(|fault| fault.at(Path::new(id.as_str())))?;
    let Some(row) = rows.first() else { return Ok(false) };
    let mut local = vec![0; row.len()];
    let Some(at) = end.at.checked_sub(row.len() as u64) else { return Ok(false) };
    Ok(file.read_exact_at(&mut local, at).is_ok() && local == *row)
}

impl Kept {
    /// Whether the cache file still has lines of the session as it stands.
    fn holds(&self, standing: &Standing, boot: Option<&str>) -> bool {
        let same =
            self.generation == standing.generation && self.lines <= standing.lines && self.bytes <= standing.bytes;
        same && self.boot.as_deref().is_none_or(|of| Some(of) == boot)
    }
}

/// Writes the record about a cache file. Without it the next process reads from the store again.
fn keep(path: &Path, kept: &Kept) {
    let written = serde_json::to_vec(kept).map_err(io::Error::from).and_then(|json| regular::replace(path, &json));
    if let Err(error) = written {
        tracing::debug!(%error, "the record about a cache file could not be written");
    }
}
