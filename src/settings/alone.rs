//! A settings file that one process changes at a time. The lock is that of a folder, so no lock file is left behind.

#![expect(clippy::disallowed_methods, reason = "writes settings files")]

use crate::regular;
use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

/// Keeps other processes from changing a file while it exists.
pub struct Alone {
    file: PathBuf,
    /// None where the folder of the project is missing. Nothing is written then.
    lock: Option<File>,
}

impl Alone {
    /// Waits for other processes that change this file of the user. Its folder is made where it is missing.
    ///
    /// # Errors
    /// When one of them takes too long, or the folder cannot be made or opened.
    pub fn with_file_of_user(file: PathBuf) -> io::Result<Self> {
        let folder = folder_of(&followed(&file));
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let lock = regular::hold_folder(&folder).map(Some)?;
        Ok(Self { file, lock })
    }

    /// Waits for other processes that change this file of the project in `cwd`.
    ///
    /// # Errors
    /// When one of them takes too long, or the folder cannot be opened.
    pub fn with_file_of_project(file: PathBuf, cwd: &Path) -> io::Result<Self> {
        let lock = if cwd.is_dir() { Some(regular::hold_folder(cwd)?) } else { None };
        Ok(Self { file, lock })
    }

    /// The file.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Replaces the text of the file atomically. A link stays.
    ///
    /// # Errors
    /// When the folder of the project is missing, the file is read-only, or the write fails. Then the file is unchanged.
    pub fn replace(&self, text: &str) -> io::Result<()> {
        if self.lock.is_none() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the session's folder is not there"));
        }
        let file = followed(&self.file);
        let folder = folder_of(&file);
        fs::create_dir_all(&folder)?;
        let kept = fs::metadata(&file).ok().map(|about| about.permissions());
        if kept.as_ref().is_some_and(fs::Permissions::readonly) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the file is read-only"));
        }
        regular::make_whole(&file, std::convert::identity, |writer| {
            writer.write_all(text.as_bytes())?;
            kept.map_or(Ok(()), |kept| writer.set_permissions(kept))
        })?;
        regular::sync_folder(&folder);
        Ok(())
    }
}

/// The file that a link leads to: a user may keep the file elsewhere.
fn followed(file: &Path) -> PathBuf {
    file.canonicalize().unwrap_or_else(|_| file.to_owned())
}

fn folder_of(file: &Path) -> PathBuf {
    file.parent().unwrap_or(Path::new(".")).to_owned()
}
