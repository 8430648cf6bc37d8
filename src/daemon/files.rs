//! The session files of a running daemon: which are open, which there are, and what other programs do to them.

use super::{Daemon, lock};
use crate::{
    ids::SessionId,
    outbox::Outbox,
    protocol::{
        errors::Failure,
        notifications::{Notification as _, SessionsChanged, SessionsChangedParams},
        types::SessionParams,
    },
    rpc::Reply,
    session::{
        handle::{self, Command, Handle, Urgent},
        listing::{Catalog, names_below},
        open, store,
    },
    watch::{Depth, Watcher},
};
use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

/// The session files.
pub(super) struct SessionFiles {
    outbox: Arc<Outbox>,
    sessions: PathBuf,
    /// Those there are.
    pub(super) catalog: Catalog,
    /// Those that are open, without links in their paths.
    open: Mutex<HashMap<PathBuf, (SessionId, Handle)>>,
    /// The names that a client was or could be told of; none until somebody watches.
    seen: Mutex<Option<HashSet<PathBuf>>>,
}

/// A session is told of what others do to its file as long as this is kept.
pub(super) struct Watched {
    daemon: Arc<Daemon>,
    file: PathBuf,
}

impl SessionFiles {
    pub(super) fn new(outbox: Arc<Outbox>, data: &Path) -> Self {
        let sessions = data.join("sessions");
        let catalog = Catalog::new(sessions.clone(), data.join("sessions-list.json"));
        Self { outbox, sessions, catalog, open: Mutex::default(), seen: Mutex::default() }
    }

    /// Looks out for sessions of other programs. Takes a while where there are many folders.
    pub(super) fn watch(&self, watcher: Option<&Watcher>) {
        let Some(watcher) = watcher else { return };
        if let Err(error) = watcher.watch_folder(&self.sessions, Depth::Tree) {
            tracing::warn!(%error, "sessions of other programs are not announced");
        }
        let names = names_below(&self.sessions);
        lock(&self.seen).get_or_insert_default().extend(names);
    }

    /// A file that we made is no news.
    fn made(&self, file: &Path) {
        if let Some(seen) = &mut *lock(&self.seen) {
            seen.insert(file.to_owned());
        }
    }

    /// Something changed at this path.
    pub(super) fn changed(&self, path: &Path) {
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let handle = lock(&self.open).get(&real).map(|(_, handle)| handle.clone());
        if let Some(handle) = handle {
            handle.send_urgent(Urgent::FileTouched);
        }
        if path.starts_with(&self.sessions) {
            self.look_for_others(path, &real);
        }
    }

    fn look_for_others(&self, path: &Path, real: &Path) {
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
        if lock(&self.open).contains_key(real) {
            seen.insert(path.to_owned());
            return;
        }
        if news.is_empty() {
            return;
        }
        seen.extend(news.iter().filter(|file| file.exists()).cloned());
        // No frame that nobody asked for may be large.
        for some in news.chunks(100) {
            let paths = some.iter().map(|file| file.display().to_string()).collect();
            self.outbox.notify(SessionsChanged::NAME, SessionsChangedParams { paths });
        }
    }

    fn file_of(&self, id: &SessionId) -> Option<PathBuf> {
        lock(&self.open).iter().find(|(_, (it, _))| it == id).map(|(file, _)| file.clone())
    }
}

fn names_in(folder: &Path) -> HashSet<PathBuf> {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|file| file.path());
    files.filter(|path| path.extension().is_some_and(|it| it == "jsonl")).collect()
}

impl Daemon {
    /// Has an open session told of what others do to its file.
    pub(super) fn watch_file(self: &Arc<Self>, file: &Path, id: &SessionId, handle: Handle) -> Watched {
        let real = file.canonicalize().unwrap_or_else(|_| file.to_owned());
        self.files.made(file);
        lock(&self.files.open).insert(real.clone(), (id.clone(), handle));
        if let (Some(watcher), Some(folder)) = (self.settings.watcher(), real.parent())
            && !file.starts_with(&self.files.sessions)
            && let Err(error) = watcher.watch_folder(folder, Depth::Folder)
        {
            tracing::warn!(%error, "what other programs append is read before the next write, and not earlier");
        }
        Watched { daemon: self.clone(), file: real }
    }

    /// `session/delete`: what runs in it is cancelled, then its file goes.
    pub(super) fn session_delete(self: &Arc<Self>, params: SessionParams, reply: Reply) {
        let SessionParams { session_id: id } = params;
        let handle = lock(&self.sessions).remove(&id);
        if let Some(handle) = &handle {
            // Behind everything that was sent to it before.
            handle.send(&id, Command::Leave);
        }
        // Whoever loads it from here on waits until its file is gone.
        let (gone, deleting) = handle::mailbox(self.in_common.clone());
        let before = lock(&self.leaving).insert(id.clone(), gone);
        let file = self.files.file_of(&id);
        let daemon = self.clone();
        let work = async move {
            let was_open = handle.is_some();
            for handle in handle.into_iter().chain(before) {
                handle.gone().await;
            }
            let sessions = daemon.places.sessions();
            let delete = move || match file.map_or_else(|| open::find(&id, &sessions), Ok) {
                Ok(file) => store::delete(&file).map_err(Failure::from),
                // It had no file, and is gone with its memory.
                Err(_) if was_open => Ok(()),
                Err(failure) => Err(failure),
            };
            let deleted = tokio::task::spawn_blocking(delete).await;
            reply.with(deleted.unwrap_or_else(|_| {
                Err(Failure::Internal("a defect of abridged kept the session from being deleted".to_owned()))
            }));
            drop(deleting);
            lock(&daemon.leaving).retain(|_, handle| handle.is_open());
        };
        self.tasks.spawn_on(work, &self.runtime);
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        lock(&self.daemon.files.open).remove(&self.file);
        if let (Some(watcher), Some(folder)) = (self.daemon.settings.watcher(), self.file.parent()) {
            watcher.unwatch_folder(folder);
        }
    }
}
