//! A session file on disk and its lock, as a writer uses them.

#![expect(clippy::disallowed_methods, reason = "writes session files")]

use super::Medium;
use crate::{
    conversation::entry::{Stamp, Stamps},
    log::{Register, Unfinished, bytes::Bytes, lock::Lock, names::names_beside},
    regular,
};
use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    thread,
    time::Duration,
};

/// A session file that is held with its lock.
#[derive(Debug)]
pub struct SessionFile {
    path: PathBuf,
    file: Arc<File>,
    lock: Arc<Mutex<Lock>>,
}

impl SessionFile {
    /// An open file at this path.
    #[must_use]
    pub fn new(path: PathBuf, file: Arc<File>, lock: Lock) -> Self {
        Self { path, file, lock: Arc::new(Mutex::new(lock)) }
    }
}

/// The register of a lock, which the session file holds.
#[derive(Debug)]
struct Held(Weak<Mutex<Lock>>);

impl Register for Held {
    fn record(&self, operations: Vec<Unfinished>) {
        if let Some(lock) = self.0.upgrade() {
            locked(&lock).record(operations);
        }
    }
}

fn locked(lock: &Mutex<Lock>) -> MutexGuard<'_, Lock> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Medium for SessionFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        (&*self.file).write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }

    fn keep_torn(&mut self, piece: &[u8]) -> io::Result<PathBuf> {
        let (torn, mut file) = regular::make_first_free(names_beside(&self.path, "torn"))?;
        let written = file.write_all(piece).and_then(|()| file.sync_all());
        written.inspect_err(|_| drop(fs::remove_file(&torn)))?;
        Ok(torn)
    }

    fn remove_torn(&mut self, torn: &Path) -> io::Result<()> {
        fs::remove_file(torn)
    }

    /// The new file is complete on disk before it takes the name.
    fn replace(&mut self, bytes: &[u8], version: &str) -> io::Result<Bytes> {
        let (new, mut file) = regular::make_first_free(names_beside(&self.path, "new"))?;
        let mut write_new = || -> io::Result<()> {
            // It takes the place of the old file, for the same readers.
            file.set_permissions(self.file.metadata()?.permissions())?;
            file.write_all(bytes)?;
            file.sync_all()?;
            keep_old(&self.path, version)?;
            fs::rename(&new, &self.path)
        };
        write_new().inspect_err(|_| drop(fs::remove_file(&new)))?;
        self.file = Arc::new(file);
        // Nobody else knows the new file. The lock file holds in any case.
        let _ = locked(&self.lock).hold_session(&self.path);
        regular::sync_folder(self.path.parent().unwrap_or(Path::new(".")));
        Ok(Bytes::File(self.file.clone()))
    }

    fn wait_for_others(&mut self) {
        thread::sleep(Duration::from_millis(5));
    }

    fn stamp(&mut self) -> Stamp {
        Stamps::system().stamp()
    }

    fn register(&self) -> Arc<dyn Register> {
        Arc::new(Held(Arc::downgrade(&self.lock)))
    }
}

/// Keeps the bytes of a file that is to be replaced under the first free name with this suffix.
fn keep_old(path: &Path, suffix: &str) -> io::Result<()> {
    for kept in names_beside(path, suffix) {
        // A hard link keeps them also where the process dies between this step and the next.
        match fs::hard_link(path, &kept) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Ok(()) => return Ok(()),
            // Not every file system has hard links.
            Err(_) => break,
        }
    }
    let mut old = regular::open(path, regular::Links::Refused)?;
    let (_, mut kept) = regular::make_first_free(names_beside(path, suffix))?;
    io::copy(&mut old, &mut kept)?;
    kept.sync_all()
}
