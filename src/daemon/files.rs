//! The session files of a running daemon: the catalog, and changes that other programs make.

#![expect(clippy::disallowed_methods, reason = "follows files")]

use super::{Daemon, lock};
use crate::{
    daemon::listing::{Catalog, names_below},
    protocol::notifications::{Notification as _, SessionsChanged, SessionsChangedParams},
    session::handle::{Handle, Urgent},
    watch::{Depth, Watcher},
    wire::outbox::Outbox,
};
use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

/// The session files.
pub(super) struct SessionFiles {
    outbox: Arc<Outbox>,
    sessions: PathBuf,
    /// The sessions on disk.
    pub(super) catalog: Catalog,
    /// The files that are not announced any more: those that were there, and those that were announced or made here.
    /// `None` until the folders are watched.
    seen: Mutex<Option<HashSet<PathBuf>>>,
}

/// Keeps the folder of a session file watched until it is dropped.
pub(super) struct Watched {
    daemon: Arc<Daemon>,
    folder: Option<PathBuf>,
}

impl SessionFiles {
    pub(super) fn new(outbox: Arc<Outbox>, data: &Path) -> Self {
        let sessions = data.join("sessions");
        let catalog = Catalog::new(sessions.clone(), data.join("sessions-list.json"));
        Self { outbox, sessions, catalog, seen: Mutex::default() }
    }

    /// Watches the folders for sessions of other programs. Blocks; the time grows with the number of folders.
    pub(super) fn watch(&self, watcher: Option<&Watcher>) {
        let Some(watcher) = watcher else { return };
        if let Err(error) = watcher.watch_folder(&self.sessions, Depth::Tree) {
            tracing::warn!(%error, "sessions of other programs are not announced");
        }
        let names = names_below(&self.sessions);
        lock(&self.seen).get_or_insert_default().extend(names);
    }

    /// Adds a file that this daemon made to the known names, so that it is not announced.
    fn made(&self, file: &Path) {
        if let Some(seen) = &mut *lock(&self.seen) {
            seen.insert(file.to_owned());
        }
    }

    /// Something changed at this path, which is the file of a session that is `open`. `is_ours` tells whether a session
    /// that is open or being opened here made a file.
    pub(super) fn changed(&self, path: &Path, open: Option<&Handle>, is_ours: impl Fn(&Path) -> bool) {
        if let Some(handle) = open {
            handle.send_urgent(Urgent::FileTouched);
        }
        if path.starts_with(&self.sessions) {
            self.look_for_others(path, open, is_ours);
        }
    }

    fn look_for_others(&self, path: &Path, open: Option<&Handle>, is_ours: impl Fn(&Path) -> bool) {
        let is_session = |path: &Path| path.extension().is_some_and(|it| it == "jsonl");
        let mut news = Vec::new();
        let mut seen = lock(&self.seen);
        let Some(seen) = &mut *seen else { return };
        if is_session(path) {
            match path.exists() {
                true if !seen.contains(path) => news.push(path.to_owned()),
                false if seen.remove(path) => news.push(path.to_owned()),
                _ => {}
            }
        } else if path.is_dir() {
            // A folder that is new may have got its first file before it was watched.
            let there = if path == self.sessions { names_below(path) } else { names_in(path) };
            news.extend(there.into_iter().filter(|file| !seen.contains(file)));
        }
        if open.is_some() {
            seen.insert(path.to_owned());
            return;
        }
        seen.extend(news.iter().filter(|file| file.exists()).cloned());
        // A file of ours is there before its session is open.
        news.retain(|file| !is_ours(file));
        // A notification stays under the limit for unsolicited frames.
        for some in news.chunks(100) {
            let paths = some.iter().map(|file| file.display().to_string()).collect();
            self.outbox.notify(SessionsChanged::NAME, SessionsChangedParams { paths });
        }
    }
}

fn names_in(folder: &Path) -> HashSet<PathBuf> {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|file| file.path());
    files.filter(|path| path.extension().is_some_and(|it| it == "jsonl")).collect()
}

impl Daemon {
    /// Something changed in a folder that is watched.
    pub(super) fn path_changed(&self, path: &Path) {
        self.settings.changed(path);
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let open = self.session_at(&real);
        self.files.changed(path, open.as_ref(), |file| {
            let name = file.file_stem().unwrap_or_default().to_string_lossy();
            file.exists() && name.rsplit_once('_').is_some_and(|(_, id)| self.is_current(&id.into()))
        });
    }

    /// Notes the file of a session that was opened, and watches its folder where other sessions do not lie.
    pub(super) fn watch_file(self: &Arc<Self>, file: &Path) -> Watched {
        self.files.made(file);
        let folder = file.canonicalize().unwrap_or_else(|_| file.to_owned()).parent().map(Path::to_owned);
        let folder = folder.filter(|_| !file.starts_with(&self.files.sessions));
        if let (Some(watcher), Some(folder)) = (self.settings.watcher(), &folder)
            && let Err(error) = watcher.watch_folder(folder, Depth::Folder)
        {
            tracing::warn!(%error, "what other programs append is read before the next write, and not earlier");
        }
        Watched { daemon: self.clone(), folder }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let (Some(watcher), Some(folder)) = (self.daemon.settings.watcher(), &self.folder) {
            watcher.unwatch_folder(folder);
        }
    }
}
