//! The session that a command is about: a file, or the beginning of the id of a session of the data folder.

use super::print::plain;
use crate::{
    daemon::{Places, listing::Catalog, stores},
    ids::SessionId,
    log::store::{
        home::{Home, Store},
        postgres::ListOrder,
    },
    protocol::types::{ListParams, ListedSession},
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// The most ids that are named where the beginning of an id is that of several.
const MOST_NAMED: usize = 5;

/// A path as the daemon is given it.
///
/// # Errors
/// When it is no text.
pub(super) fn on_the_wire(path: &Path) -> Result<&str, String> {
    path.to_str().ok_or_else(|| {
        let path = plain(&path.to_string_lossy());
        format!("{path} is no path in UTF-8, and cannot be named to the daemon; rename the file or its folder")
    })
}

/// The path of a session. Without a name it is the session of the data folder that was changed last.
///
/// # Errors
/// When there is none, or several: what to do next.
#[expect(clippy::disallowed_methods, reason = "a command of a person")]
pub(super) fn file(named: Option<&Path>, data: Option<&Path>) -> Result<PathBuf, String> {
    let absolute = |path: &Path| std::path::absolute(path).map_err(|error| error.to_string());
    let is_id =
        |text: &&str| !text.is_empty() && !text.contains(std::path::MAIN_SEPARATOR) && !text.ends_with(".jsonl");
    let id = match named {
        None => "",
        Some(named) => match named.to_str().filter(is_id) {
            Some(id) if !named.exists() => id,
            _ => return absolute(named),
        },
    };
    if data.is_none()
        && let Some(shelf) = Shelf::named()?
    {
        return shelf.file(id);
    }
    let data = match data {
        Some(data) => data.to_owned(),
        None => Places::from_environment()?.data,
    };
    let places = Places { config: PathBuf::new(), data: absolute(&data)? };
    let catalog = Catalog::reading(places.sessions(), places.data.join("sessions-list.json"));
    let mut sessions = catalog.list(&ListParams { limit: Some(usize::MAX), ..ListParams::default() }).sessions;
    if named.is_none() {
        let newest = sessions.into_iter().next().map(|session| session.path.into());
        return newest.ok_or_else(|| format!("there is no session in {}", places.sessions().display()));
    }
    sessions.retain(|session| session.session_id.as_str().starts_with(id));
    let exact = sessions.iter().position(|session| session.session_id.as_str() == id);
    match (exact, sessions.as_slice()) {
        (Some(exact), _) => Ok(sessions.swap_remove(exact).path.into()),
        (None, [only]) => Ok(only.path.clone().into()),
        (None, []) => Err(format!(
            "there is no file {id}, and no session in {} has an id that begins so; abridged sessions lists them",
            places.sessions().display()
        )),
        (None, several) => Err(ambiguous(id, several)),
    }
}

fn ambiguous(id: &str, several: &[ListedSession]) -> String {
    let ids: Vec<&SessionId> = several.iter().map(|it| &it.session_id).collect();
    ambiguous_ids(id, &ids)
}

fn ambiguous_ids(id: &str, several: &[&SessionId]) -> String {
    let named: Vec<String> = several.iter().take(MOST_NAMED).map(|it| plain(it.as_str())).collect();
    let more = match several.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{} sessions have an id that begins with {id}: {}{more}; write more of it", several.len(), named.join(", "))
}

/// The store that a command works with, and the runtime that its connections need.
pub(super) struct Shelf {
    store: Arc<Store>,
    _runtime: tokio::runtime::Runtime,
}

impl Shelf {
    /// The store at an address, else the one of the environment or the settings.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn open(address: Option<&str>) -> Result<Self, String> {
        Self::at(address)?.ok_or_else(|| {
            "no store is named; name one with --store postgres://user@host/database, or in the global settings"
                .to_owned()
        })
    }

    /// The store of the environment or the settings, where there is one.
    pub(super) fn named() -> Result<Option<Self>, String> {
        Self::at(None)
    }

    /// The store at an address, else the one of the environment or the settings, where there is one.
    #[expect(clippy::disallowed_methods, reason = "a command of a person")]
    pub(super) fn at(address: Option<&str>) -> Result<Option<Self>, String> {
        let variable = std::env::var("ABRIDGED_STORE").ok();
        let places = Places::from_environment()?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.map_err(|error| format!("the runtime cannot be made: {error}"))?;
        let store = stores::store(address.or(variable.as_deref()), &places, runtime.handle())?;
        Ok(store.map(|store| Self { store, _runtime: runtime }))
    }

    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    /// The session whose id begins so, with the path of its cache file. Without a beginning it is the one that was changed last.
    ///
    /// # Errors
    /// When there is none, or several.
    pub(super) fn find(&self, id: &str) -> Result<(SessionId, PathBuf), String> {
        let most = if id.is_empty() { 1 } else { MOST_NAMED as u64 + 1 };
        let order = ListOrder { id: Some(id.to_owned()), most, ..ListOrder::default() };
        let mut found = self.store.list(order).map_err(|error| error.to_string())?;
        let exact = found.iter().position(|(it, _)| it.id.as_str() == id);
        match (exact, found.len()) {
            (Some(at), _) => Ok(found.swap_remove(at)),
            (None, 1) => Ok(found.swap_remove(0)),
            (None, 0) if id.is_empty() => Err("there is no session in the store".to_owned()),
            (None, 0) => Err(format!("there is no file {id}, and no session in the store has an id that begins so")),
            (None, _) => Err(ambiguous_ids(id, &found.iter().map(|(it, _)| &it.id).collect::<Vec<_>>())),
        }
        .and_then(|(listed, path)| Ok((listed.id, path.ok_or("the store gives it a name that is no path")?)))
    }

    /// The cache file of the session whose id begins so, with all of its lines. The store stays open until the process ends, and
    /// with it the file belongs to this process.
    pub(super) fn file(self, id: &str) -> Result<PathBuf, String> {
        let (_, path) = self.find(id)?;
        let whole = Home::Store(self.store.clone()).whole(&path).map_err(|error| error.to_string())?;
        std::mem::forget(self);
        Ok(whole)
    }
}
