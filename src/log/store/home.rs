//! The place where the sessions of a daemon are: a folder, or a store with the folder of its cache.

use super::{
    cache::{Cache, Cached},
    followed::Followed,
    postgres::{ListOrder, Listed, Postgres},
    server::{About, Fault, Held, Server},
    stored::Stored,
};
use crate::{
    conversation::{self, entry::Header},
    ids::SessionId,
    log::{
        Log,
        bytes::{Bytes, Paged as _},
        error::StoreError,
        files::{self, Opened, Owned, Sink},
        header::{self, Found},
        history::History,
        sealed::Blocking,
        source::Source,
        walk::costs_of,
        writer::{Unfinished, Writer, file::SessionFile},
    },
};
use std::{
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

/// Sessions of a store up to this size are indexed before they are answered for, in bytes, where the cache lacks lines.
const INDEXED_AT_ONCE: u64 = 1 << 20;

/// Bytes of a new session that are sent at once.
const SENT_AT_ONCE: usize = 8 << 20;

/// The place where the sessions of a daemon are.
#[derive(Debug, Clone)]
pub enum Home {
    /// Files below a folder.
    Folder(PathBuf),
    /// Rows of a store.
    Store(Arc<Store>),
}

/// A store that was opened.
#[derive(Debug)]
pub struct Store {
    server: Arc<Postgres>,
    /// The folder of the caches of all stores.
    root: PathBuf,
    /// The cache of this store, whose identity the server knows.
    cache: OnceLock<Arc<Cache>>,
    opening: Mutex<()>,
}

impl Store {
    /// A store with its cache below a folder.
    #[must_use]
    pub fn new(server: Arc<Postgres>, root: PathBuf) -> Self {
        Self { server, root, cache: OnceLock::new(), opening: Mutex::default() }
    }

    /// The address, in the place of a path.
    fn shown(&self) -> PathBuf {
        self.server.to_string().into()
    }

    /// The cache of the store. It waits for the server the first time.
    fn cache(&self) -> Result<&Arc<Cache>, StoreError> {
        if let Some(cache) = self.cache.get() {
            return Ok(cache);
        }
        let _opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        if self.cache.get().is_none() {
            let mut attempt = 0;
            let identity = loop {
                match self.server.identity() {
                    Err(Fault::Away(_) | Fault::Cut(_)) if self.server.waits(attempt) => attempt += 1,
                    other => break other.map_err(|fault| fault.at(&self.shown()))?,
                }
            };
            let made = Cache::below(&self.root, &identity);
            let what = "the cache folder cannot be made; set ABRIDGED_CACHE_DIR to one that can";
            let _ = self.cache.set(Arc::new(made.map_err(StoreError::io(&self.root, what))?));
        }
        self.cache.get().ok_or(StoreError::Stopped)
    }

    /// The database.
    #[must_use]
    pub fn server(&self) -> &Arc<Postgres> {
        &self.server
    }

    /// Lists sessions with the paths of their files, those that were changed last first. `None` stands for a name that is no path.
    ///
    /// # Errors
    /// Those of the store.
    pub fn list(&self, order: ListOrder) -> Result<Vec<(Listed, Option<PathBuf>)>, StoreError> {
        let cache = self.cache()?;
        let listed = self.server.list(&order).map_err(|fault| fault.at(&self.shown()))?;
        let with_path = |listed: Listed| (cache.path(&listed.name).ok(), listed);
        Ok(listed.into_iter().map(with_path).map(|(path, listed)| (listed, path)).collect())
    }

    fn dynamic(&self) -> Arc<dyn Server> {
        self.server.clone()
    }

    /// Opens a session that is held.
    fn opened(&self, held: Held, blocking: &Blocking) -> Result<Opened, StoreError> {
        let release = held.clone();
        self.open_held(held, blocking).inspect_err(|_| self.server.release(&release))
    }

    fn open_held(&self, held: Held, blocking: &Blocking) -> Result<Opened, StoreError> {
        let (path, pages) = self.cache()?.file(&held.id, &held.standing, self.dynamic())?;
        let bytes = Bytes::Paged(pages.clone());
        let found = header::of(&path, &bytes)?;
        let local = files::hold(&path)?;
        let source = Source::of(path.clone(), bytes.clone(), &found);
        let at_once = if pages.marks().are_whole() { files::INDEXED_AT_ONCE } else { INDEXED_AT_ONCE };
        let left_behind = held.left_behind.clone();
        let medium = Stored::new(path, local, self.dynamic(), held, bytes).cached_in(self.cache()?.clone(), pages);
        files::load(source, found, at_once, medium, left_behind, blocking)
    }

    /// Moves a local file that was made here into the store, and opens it.
    fn founded(
        &self,
        path: &Path,
        known: Option<conversation::path::Path>,
        blocking: &Blocking,
    ) -> Result<Opened, StoreError> {
        let Owned { source, found, medium, .. } = Owned::take(path)?;
        let held = self.sent(path, &found, blocking)?;
        let medium = self.written(path, &source, medium, held)?;
        match known {
            None => files::load(source, found, files::INDEXED_AT_ONCE, medium, Vec::new(), blocking),
            Some(path) => {
                let durable = source.length().map_err(source.failed())?;
                let log = Box::new(Writer::new(medium, source.clone(), durable, Unfinished::Nothing)?);
                let spent = costs_of(&path);
                let history = History::of_file(source.into(), path, None).with_costs(spent);
                let Found { header, title, .. } = found;
                Ok(Opened { header, title, history, repairs: Vec::new(), left_behind: Vec::new(), log })
            }
        }
    }

    /// A file that was made here, for writing.
    fn written(
        &self,
        path: &Path,
        source: &Source,
        medium: SessionFile,
        held: Held,
    ) -> Result<Stored<SessionFile>, StoreError> {
        let (bytes, cache) = (source.bytes().clone(), self.cache()?.clone());
        let Bytes::File(file) = &bytes else { return Err(StoreError::Stopped) };
        let pages = cache.made(file.clone(), &held.id, &held.standing, self.dynamic());
        Ok(Stored::new(path.to_owned(), medium, self.dynamic(), held, bytes).cached_in(cache, pages))
    }

    /// Sends the lines of a local file to the store, where they become a session.
    fn sent(&self, path: &Path, found: &Found, blocking: &Blocking) -> Result<Held, StoreError> {
        let name = path.strip_prefix(self.cache()?.sessions()).ok().and_then(Path::to_str).unwrap_or_default();
        send(&self.server, path, name, found, blocking)
    }
}

/// Sends the lines of a session file to a store, where they become a session with this name.
///
/// # Errors
/// When the file cannot be read, or the store refuses it. Nothing is in the store then.
pub fn send(
    server: &Postgres,
    path: &Path,
    name: &str,
    found: &Found,
    blocking: &Blocking,
) -> Result<Held, StoreError> {
    let about = About {
        id: found.header.id.clone(),
        name: name.to_owned(),
        cwd: found.header.cwd.clone(),
        created: found.header.timestamp.clone(),
        parent: found.header.parent_session.clone(),
    };
    let failed = || StoreError::io(path, "cannot be read");
    let file = crate::regular::open(path, crate::regular::Links::Followed).map_err(failed())?;
    let mut file = BufReader::with_capacity(256 << 10, file);
    let mut some = || {
        blocking.go_on()?;
        let (mut rows, mut size) = (Vec::new(), 0);
        while size < SENT_AT_ONCE {
            let mut row = Vec::new();
            match file.read_until(b'\n', &mut row).map_err(failed())? {
                0 => break,
                more => size += more,
            }
            rows.push(row);
        }
        Ok(rows)
    };
    let created = server.create(&about, &mut some);
    created.map_err(|fault| if blocking.is_stopped() { StoreError::Stopped } else { fault.at(path) })
}

/// A session of a store: its path in the cache of this process, and its name.
type Place<'a> = (&'a Arc<Store>, PathBuf, String);

impl Home {
    /// The folder of the session files.
    ///
    /// # Errors
    /// Those of the store.
    pub fn sessions(&self) -> Result<PathBuf, StoreError> {
        match self {
            Self::Folder(folder) => Ok(folder.clone()),
            Self::Store(store) => Ok(store.cache()?.sessions().to_owned()),
        }
    }

    /// The folder of the session files, where they are in no store.
    #[must_use]
    pub fn folder(&self) -> Option<&PathBuf> {
        match self {
            Self::Folder(folder) => Some(folder),
            Self::Store(_) => None,
        }
    }

    /// The store, where there is one.
    #[must_use]
    pub fn store(&self) -> Option<&Arc<Store>> {
        match self {
            Self::Folder(_) => None,
            Self::Store(store) => Some(store),
        }
    }

    /// The path in the cache of this process for a path in the cache of any. `None` where it leads elsewhere.
    ///
    /// # Errors
    /// `Foreign` where it is in the cache of another store: its lines are there, and what is written to the file would be lost.
    /// Those of the store.
    pub fn own(&self, path: &Path) -> Result<Option<PathBuf>, StoreError> {
        Ok(self.place(path)?.map(|(_, path, _)| path))
    }

    /// The session of the store whose cache file is at a path.
    fn stored(&self, path: &Path) -> Result<Option<(&Arc<Store>, SessionId)>, StoreError> {
        let Some((store, path, name)) = self.place(path)? else { return Ok(None) };
        let id = store.server.id_of(&name).map_err(|fault| fault.at(&path))?;
        Ok(Some((store, id)))
    }

    /// The path of this process, and the name, for a path in the cache of the store.
    fn place(&self, path: &Path) -> Result<Option<Place<'_>>, StoreError> {
        let Some(Cached { identity, name }) = Cached::at(path) else { return Ok(None) };
        if let Self::Store(store) = self {
            let cache = store.cache()?;
            if cache.identity() == identity {
                return Ok(Some((store, cache.path(&name)?, name)));
            }
        }
        let what =
            "it is in the cache of a store; name that store with --store, and load the session by its id".to_owned();
        Err(StoreError::Foreign { path: path.to_owned(), what })
    }

    /// Makes a session of a header and first entries, as [`files::create`].
    ///
    /// # Errors
    /// As there, and those of the store. Nothing is left then.
    pub fn create(&self, path: &Path, header: &Header, first: &[String]) -> Result<(Box<dyn Log>, Source), StoreError> {
        let Self::Store(store) = self else { return files::create(path, header, first) };
        let write = |sink: Sink<'_>| first.iter().try_for_each(|line| sink(format!("{line}\n").as_bytes()));
        let blocking = Blocking::is_allowed_here();
        files::write_new(path, header, write, || Ok(None), &blocking)?;
        let made = || {
            let Owned { source, found, medium, .. } = Owned::take(path)?;
            let held = store.sent(path, &found, &blocking)?;
            let durable = held.standing.bytes;
            let medium = store.written(path, &source, medium, held)?;
            let log: Box<dyn Log> = Box::new(Writer::new(medium, source.clone(), durable, Unfinished::Nothing)?);
            Ok((log, source))
        };
        made().inspect_err(|_| drop(files::delete(path)))
    }

    /// Makes a session of a header and entries, as [`files::found_of`].
    ///
    /// # Errors
    /// As there, and those of the store. Nothing is left then.
    pub fn found(
        &self,
        path: &Path,
        header: &Header,
        write: impl FnOnce(Sink<'_>) -> Result<(), StoreError>,
        known: impl FnOnce() -> Result<Option<conversation::path::Path>, StoreError>,
        blocking: &Blocking,
    ) -> Result<Opened, StoreError> {
        let Self::Store(store) = self else { return files::found_of(path, header, write, known, blocking) };
        let known = files::write_new(path, header, write, known, blocking)?;
        store.founded(path, known, blocking).inspect_err(|_| drop(files::delete(path)))
    }

    /// Opens a session for reading and appending.
    ///
    /// # Errors
    /// As [`files::open`], and those of the store.
    pub fn open(&self, path: &Path, blocking: &Blocking) -> Result<Opened, StoreError> {
        let Some((store, id)) = self.stored(path)? else { return files::open(path, blocking) };
        let held = store.server.take(&id).map_err(|fault| fault.at(path))?;
        store.opened(held, blocking)
    }

    /// Opens a session for reading only.
    ///
    /// # Errors
    /// As [`files::open_read_only`], and those of the store.
    pub fn open_read_only(&self, path: &Path, blocking: &Blocking) -> Result<Opened, StoreError> {
        let Some((store, id)) = self.stored(path)? else { return files::open_read_only(path, blocking) };
        let standing = store.server.look(&id).map_err(|fault| fault.at(path))?;
        // A session that is open here is read from the file that its owner writes.
        if let Some((path, pages)) = store.cache()?.opened(&standing.name) {
            let bytes = Bytes::Paged(pages);
            let found = header::of(&path, &bytes)?;
            return files::follow(Source::of(path, bytes, &found), found, files::INDEXED_AT_ONCE, blocking);
        }
        let (path, pages) = store.cache()?.file(&id, &standing, store.dynamic())?;
        let bytes = Bytes::Paged(pages.clone());
        let found = header::of(&path, &bytes)?;
        let source = Source::of(path.clone(), bytes, &found);
        let at_once = if pages.marks().are_whole() { files::INDEXED_AT_ONCE } else { INDEXED_AT_ONCE };
        let opened = files::follow(source, found, at_once, blocking)?;
        let (server, cache, follower) = (store.dynamic(), store.cache()?.clone(), opened.log);
        let log = Followed { id, path, standing, server, cache, pages, follower };
        Ok(Opened { log: Box::new(log), ..opened })
    }

    /// The cache file of a session of the store, with all of its lines.
    ///
    /// # Errors
    /// Those of the store.
    pub fn whole(&self, path: &Path) -> Result<PathBuf, StoreError> {
        let Some((store, id)) = self.stored(path)? else { return Ok(path.to_owned()) };
        let standing = store.server.look(&id).map_err(|fault| fault.at(path))?;
        let (path, pages) = store.cache()?.file(&id, &standing, store.dynamic())?;
        pages.bring(0, standing.bytes).map_err(StoreError::io(&path, "cannot be read"))?;
        store.cache()?.record(&path, &pages, standing.lines, standing.bytes);
        Ok(path)
    }

    /// Deletes a session that is not open, as [`files::delete`].
    ///
    /// # Errors
    /// As there, and those of the store.
    pub fn delete(&self, path: &Path) -> Result<(), StoreError> {
        let Some((store, path, name)) = self.place(path)? else {
            // A session of another agent is only read.
            header::peek(path)?;
            return files::delete(path);
        };
        let id = store.server.id_of(&name).map_err(|fault| fault.at(&path))?;
        store.server.delete(&id).map_err(|fault| fault.at(&path))?;
        store.cache()?.remove(&name);
        Ok(())
    }

    /// The id and the working folder of the session at a path of the cache. `None` where the path leads elsewhere.
    ///
    /// # Errors
    /// Those of the store.
    pub fn peek(&self, path: &Path) -> Result<Option<(SessionId, String)>, StoreError> {
        let Some((store, id)) = self.stored(path)? else { return Ok(None) };
        let standing = store.server.look(&id).map_err(|fault| fault.at(path))?;
        Ok(Some((id, standing.cwd)))
    }

    /// The path of the session of the store with an id. `None` in a folder, where the names of its files have to be read.
    ///
    /// # Errors
    /// `Missing` where the store has no such session.
    pub fn find(&self, id: &SessionId) -> Result<Option<PathBuf>, StoreError> {
        let Self::Store(store) = self else { return Ok(None) };
        let path = Path::new(id.as_str());
        match store.server.look(id) {
            Ok(standing) => store.cache()?.path(&standing.name).map(Some),
            Err(Fault::Missing) => Err(StoreError::Missing(path.to_owned())),
            Err(fault) => Err(fault.at(path)),
        }
    }
}
