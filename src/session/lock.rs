//! The lock beside a session file: one process writes a session. The operating system frees it when the process dies,
//! however it dies.

use super::store::{StoreError, beside};
use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

/// A lock that is held. Its file goes when it is let go.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    path: PathBuf,
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
                    let mut text = String::new();
                    let _ = file.read_to_string(&mut text);
                    let note = serde_json::from_str::<serde_json::Value>(&text).unwrap_or_default();
                    let pid = note["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
                    return Err(StoreError::Locked { pid });
                }
                Err(TryLockError::Error(error)) => return Err(StoreError::io(&path, "cannot be locked")(error)),
            }
            // Whoever held it may have removed the file between our opening and our locking it.
            if is_at(&file, &path) {
                let mut lock = Self { file, path };
                lock.note();
                return Ok(lock);
            }
        }
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
