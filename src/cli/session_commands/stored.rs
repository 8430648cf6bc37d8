//! `abridged push` and `abridged pull`: session files into a store and out of it, byte for byte.

use crate::{
    cli::{named::Shelf, print},
    daemon::Places,
    ids::SessionId,
    log::{
        header, lock,
        sealed::Blocking,
        store::{
            home::{Store, send},
            server::{From, Server as _},
        },
    },
    regular,
    session::open::file_of,
};
use serde_json::json;
use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
};

/// Bytes that are read from the store at once.
const READ_AT_ONCE: u64 = 4 << 20;

/// Options of `abridged push`.
pub struct Push {
    /// The session files.
    pub files: Vec<PathBuf>,
    /// The address of the store, in the place of the one of the settings.
    pub store: Option<String>,
    /// As JSON.
    pub json: bool,
}

/// Options of `abridged pull`.
pub struct Pull {
    /// The beginning of an id.
    pub id: String,
    /// The new file. Default: one in the data folder.
    pub out: Option<PathBuf>,
    /// The address of the store, in the place of the one of the settings.
    pub store: Option<String>,
    /// As JSON.
    pub json: bool,
}

/// Makes a session of the store of each file. The files stay.
///
/// # Errors
/// When no store is named. Files that cannot be pushed are named, and the others are pushed.
pub fn push(request: &Push) -> Result<i32, String> {
    let shelf = Shelf::open(request.store.as_deref())?;
    shelf.store().server().keep();
    let mut code = 0;
    for file in &request.files {
        match push_one(shelf.store(), file) {
            Ok(id) if request.json => {
                print::line(&json!({ "file": file.display().to_string(), "sessionId": id }).to_string());
            }
            Ok(id) => print::line(&print::plain(&format!("{}  {id}", file.display()))),
            Err(why) => {
                code = 1;
                if request.json {
                    print::line(&json!({ "file": file.display().to_string(), "error": why }).to_string());
                } else {
                    print::note(&print::plain(&why));
                }
            }
        }
    }
    Ok(code)
}

fn push_one(store: &Store, file: &Path) -> Result<SessionId, String> {
    let found = header::peek(file).map_err(|error| error.to_string())?;
    if let Some(pid) = lock::owner_elsewhere(file) {
        let file = file.display();
        return Err(format!("{file}: a process (pid {pid}) has this session open; close it there, then push it"));
    }
    let name = file_of(Path::new(""), &found.header);
    let name = name.to_str().ok_or("its working folder is no text")?;
    let held = send(store.server(), file, name, &found, &Blocking::is_allowed_here());
    let held = held.map_err(|error| {
        format!("{}: {error}", file.display()).replacen(
            &format!("{0}: {0}", file.display()),
            &file.display().to_string(),
            1,
        )
    })?;
    store.server().release(&held);
    let length = file_length(file).map_err(|error| format!("{}: {error}", file.display()))?;
    if held.standing.bytes != length {
        let _ = store.server().delete(&held.id);
        return Err(format!("{}: it was written to meanwhile; push it again", file.display()));
    }
    Ok(held.id)
}

fn file_length(file: &Path) -> io::Result<u64> {
    Ok(regular::open(file, regular::Links::Followed)?.metadata()?.len())
}

/// Writes a session of the store into a new file. The session stays in the store.
///
/// # Errors
/// When no store is named, the store has no such session, or the file is there already.
#[expect(clippy::disallowed_methods, reason = "a command of a person")]
pub fn pull(request: &Pull) -> Result<i32, String> {
    let shelf = Shelf::open(request.store.as_deref())?;
    let (id, _) = shelf.find(&request.id)?;
    let store = shelf.store();
    let standing = store.server().look(&id).map_err(|fault| fault.at(Path::new(id.as_str())).to_string())?;
    let out = match &request.out {
        Some(out) => std::path::absolute(out).map_err(|error| error.to_string())?,
        None => Places::from_environment()?.sessions().join(&standing.name),
    };
    let failed = |error: io::Error| format!("{}: {error}", out.display());
    if out.symlink_metadata().is_ok() {
        return Err(format!("{}: it is there already; name another file with --out", out.display()));
    }
    let folder = out.parent().unwrap_or(Path::new("."));
    crate::log::files::create_private_folder(folder).map_err(|error| error.to_string())?;
    regular::make_whole(&out, failed, |file| {
        let mut line = 0;
        while line < standing.lines {
            let rows = store.server().read(&id, standing.generation, From::Line(line), READ_AT_ONCE);
            let rows = rows.map_err(|fault| fault.at(Path::new(id.as_str())).to_string())?;
            if rows.is_empty() {
                return Err(format!("session {id}: lines are missing in the store; see its log"));
            }
            for row in rows.iter().take(usize::try_from(standing.lines - line).unwrap_or(usize::MAX)) {
                file.write_all(row).map_err(failed)?;
                line += 1;
            }
        }
        Ok(())
    })?;
    regular::sync_folder(folder);
    match request.json {
        true => print::line(&json!({ "sessionId": id, "path": out.display().to_string() }).to_string()),
        false => print::line(&print::plain(&out.display().to_string())),
    }
    Ok(0)
}
