//! The lock beside a session file: one process writes a session. The operating system frees it when the process dies,
//! however it dies.

use super::store::{StoreError, beside};
use crate::ids::OperationId;
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

/// A lock that is held. Its file goes when it is let go.
#[derive(Debug)]
pub struct Lock {
    file: File,
    path: PathBuf,
    left_behind: Option<Unfinished>,
    /// It says that something runs, or ran and nobody was told of its end.
    says_something: bool,
}

/// An operation that was started and not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unfinished {
    /// Its id.
    pub operation_id: OperationId,
    /// What it is.
    pub kind: String,
    /// Why it ran.
    pub reason: String,
    /// Since when.
    pub started_at: String,
}

/// What stands in the lock file, for whoever finds it.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    pid: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    operation: Option<Unfinished>,
}

impl Lock {
    /// Takes the lock of a session file.
    pub(super) fn take(session: &Path) -> Result<Self, StoreError> {
        let path = beside(session, "lock");
        loop {
            let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(
                StoreError::io(&path, "cannot make the lock; to look at the session, load it with readOnly: true"),
            )?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(StoreError::Locked { pid: read(&mut file).map(|note| note.pid) });
                }
                Err(TryLockError::Error(error)) => return Err(StoreError::io(&path, "cannot be locked")(error)),
            }
            // Whoever held it may have removed the file between our opening and our locking it.
            if is_at(&file, &path) {
                // The file is still there only when its last owner died.
                let left_behind = read(&mut file).and_then(|note| note.operation);
                let mut lock = Self { file, path, left_behind, says_something: false };
                // An operation that was left behind stays noted until somebody was told of its end.
                lock.note(lock.left_behind.clone());
                return Ok(lock);
            }
        }
    }

    /// What the last owner left running.
    pub(super) fn left_behind(&mut self) -> Option<Unfinished> {
        self.left_behind.take()
    }

    /// Says who holds the lock and what runs. Only for others to read: a note that could not be written (a full disk)
    /// takes nothing from the lock itself.
    pub fn note(&mut self, operation: Option<Unfinished>) {
        self.says_something = operation.is_some();
        let note = Note { pid: std::process::id(), operation };
        let text = serde_json::to_string(&note).expect("a note is always JSON");
        // Over what stands there first: a crash in between leaves no empty file.
        let written = self.file.seek(SeekFrom::Start(0)).and_then(|_| {
            self.file.write_all(text.as_bytes())?;
            self.file.set_len(text.len() as u64)
        });
        if let Err(error) = written {
            tracing::warn!(%error, "the lock file could not be written");
        }
    }
}

fn read(file: &mut File) -> Option<Note> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

impl Drop for Lock {
    fn drop(&mut self) {
        if self.says_something {
            // For the next owner.
            return;
        }
        // Removed while it is held: nobody else can hold this very file, and the next one finds none and makes its own.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let same = |a: &fs::Metadata, b: &fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
    matches!((file.metadata(), fs::metadata(path)), (Ok(a), Ok(b)) if same(&a, &b))
}
