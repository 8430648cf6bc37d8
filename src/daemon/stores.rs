//! The store of a daemon: found in the arguments or the settings, opened, listed, and told about.

#![expect(clippy::disallowed_methods, reason = "the environment of the process")]

use super::{Daemon, Places};
use crate::{
    ids::SessionId,
    log::Access,
    log::store::{
        address::{Address, Password},
        home::{Home, Store},
        postgres::{ListOrder, Listed, Me, Outage, Postgres},
    },
    protocol::{
        errors::Failure,
        events::Severity,
        notices::NoticeCode,
        notifications::{Notice, NoticeParams, Notification as _},
        types::{ListAnswer, ListParams, ListedSession},
    },
    provider::{KeySource, keys},
    session::{
        handle::{Handle, Urgent},
        open::Opened,
    },
    settings::{Settings, files::SettingsFiles},
    wire::outbox::Outbox,
};
use std::{path::PathBuf, sync::Arc, time::Duration};
use tokio::runtime::Handle as Runtime;

/// The argument that takes the data folder, whatever the settings say.
const NONE: &str = "none";

/// Default number of sessions in a page.
const PAGE: usize = 100;

/// The longest time that the program which keeps the password may take.
const LONGEST_PASSWORD: Duration = Duration::from_secs(30);

/// The home of a daemon: the store that the argument names, else the one of the global settings, else the data folder.
///
/// # Errors
/// When the address of the store is none.
pub fn home(argument: Option<&str>, places: &Places, runtime: &Runtime) -> Result<Home, String> {
    let store = store(argument, places, runtime)?;
    Ok(store.map_or_else(|| Home::Folder(places.sessions()), Home::Store))
}

/// The store that the argument names, else the one of the global settings. Nothing is asked of it yet.
///
/// # Errors
/// When its address is none.
pub fn store(argument: Option<&str>, places: &Places, runtime: &Runtime) -> Result<Option<Arc<Store>>, String> {
    let settings = settings(places);
    let Some(url) = named(argument, &settings) else { return Ok(None) };
    let address: Address = url.parse().map_err(|error| format!("{error}"))?;
    let mut address = address.with_password(std::env::var("PGPASSWORD").ok().filter(|it| !it.is_empty()));
    if !address.has_password()
        && let Some(command) = settings.store_password_command.clone()
    {
        address.password = Some(password(command));
    }
    Ok(Some(Arc::new(Store::new(Postgres::new(address, me(), runtime.clone()), cache_root(places)))))
}

/// Whether a store is named.
#[must_use]
pub fn is_named(argument: Option<&str>, places: &Places) -> bool {
    named(argument, &settings(places)).is_some()
}

/// The address of the argument, else the one of the settings.
fn named<'a>(argument: Option<&'a str>, settings: &'a Settings) -> Option<&'a str> {
    let argument = argument.filter(|it| !it.is_empty());
    argument.or_else(|| settings.store.as_ref().map(|store| store.reveal())).filter(|url| *url != NONE)
}

fn settings(places: &Places) -> Settings {
    SettingsFiles::read(places.settings(), &|name| std::env::var(name).ok()).layers().sourced().settings
}

/// The password that a program prints.
fn password(command: Vec<String>) -> Password {
    Arc::new(move || {
        let source = KeySource::Command(command.clone());
        Box::pin(async move {
            match keys::key(&source, LONGEST_PASSWORD).await {
                Ok(key) => Ok(key.map(|key| key.reveal().to_owned()).unwrap_or_default()),
                Err(trouble) => Err(trouble.to_string()),
            }
        })
    })
}

/// `$ABRIDGED_CACHE_DIR`, else `cache` in `$ABRIDGED_DATA_DIR`, else the platform's own folder.
fn cache_root(places: &Places) -> PathBuf {
    use etcetera::BaseStrategy;
    let own = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let in_data = || places.data.join("cache");
    let folder = match (own("ABRIDGED_CACHE_DIR"), own("ABRIDGED_DATA_DIR")) {
        (Some(own), _) => own,
        (None, Some(_)) => in_data(),
        (None, None) => {
            etcetera::choose_base_strategy().map_or_else(|_| in_data(), |it| it.cache_dir().join("abridged"))
        }
    };
    std::path::absolute(&folder).unwrap_or(folder)
}

/// This process, as others see it in the store.
fn me() -> Me {
    let id = uuid::Uuid::new_v4();
    let (high, _) = id.as_u64_pair();
    Me {
        id: id.simple().to_string(),
        lock: i64::from_ne_bytes(high.to_ne_bytes()),
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        pid: std::process::id(),
    }
}

/// Tells the client when the store is away, and when it is back.
pub(super) fn tell_outages(store: &Store, outbox: Arc<Outbox>) {
    store.server().on_outage(move |outage| {
        let (severity, code, title, detail) = match outage {
            Outage::Begun(why) => (
                Severity::Warning,
                NoticeCode::StoreAway,
                "The store does not answer",
                format!("{why}. Appends are refused until it does; contexts are answered from the cache"),
            ),
            Outage::Over => (
                Severity::Info,
                NoticeCode::StoreBack,
                "The store answers again",
                "Appends that were refused can be repeated".to_owned(),
            ),
        };
        let notice = NoticeParams { severity, code, title: title.to_owned(), detail: Some(detail) };
        outbox.notify(Notice::NAME, notice);
    });
}

/// A session of the store that another daemon writes, followed until this is dropped.
pub(super) struct Followed {
    store: Arc<Store>,
    id: SessionId,
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.store.server().unfollow(&self.id);
    }
}

impl Daemon {
    /// Follows a session that is only read, where it is one of the store.
    pub(super) fn follow(&self, opened: &Opened, id: &SessionId, handle: &Handle) -> Option<Followed> {
        let store = self.home.store().filter(|_| opened.log.access() == Access::Read)?;
        let file = opened.state.file.as_deref()?;
        self.home.own(file).ok().flatten()?;
        let handle = handle.clone();
        store.server().follow(id, move || handle.send_urgent(Urgent::FileTouched));
        Some(Followed { store: store.clone(), id: id.clone() })
    }
}

/// The answer to `session/list` from a store, without the status of open sessions.
///
/// # Errors
/// When the store cannot be reached.
pub fn list(store: &Store, params: &ListParams) -> Result<ListAnswer, Failure> {
    let limit = params.limit.unwrap_or(PAGE).clamp(1, 10_000);
    // A cursor is a place in the order, so that it holds when its session changes or goes.
    let after = params.cursor.as_deref().and_then(|cursor| cursor.split_once(':'));
    let order = ListOrder {
        cwd: params.cwd.clone(),
        search: params.search.clone(),
        id: None,
        after: after.and_then(|(changed, id)| Some((changed.parse().ok()?, id.to_owned()))),
        most: limit as u64 + 1,
    };
    let mut listed = store.list(order)?;
    let more = listed.len() > limit;
    listed.truncate(limit);
    let next_cursor = listed.last().filter(|_| more).map(|last| format!("{}:{}", last.0.changed, last.0.id));
    let sessions =
        listed.into_iter().filter_map(|(listed, path)| Some(row(listed, path?.display().to_string()))).collect();
    Ok(ListAnswer { sessions, next_cursor })
}

fn row(listed: Listed, path: String) -> ListedSession {
    let updated = jiff::Timestamp::from_microsecond(listed.changed);
    ListedSession {
        session_id: listed.id,
        path,
        cwd: listed.cwd,
        parent_session_id: listed.parent.as_deref().and_then(id_of_file),
        parent_session: listed.parent,
        title: listed.title,
        preview: listed.preview,
        created_at: listed.created,
        updated_at: updated.map(|it| it.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()).unwrap_or_default(),
        entry_count: usize::try_from(listed.entries).ok(),
        percent: None,
        size_bytes: listed.bytes,
        status: None,
    }
}

/// The id that a header names as its parent, or that the name of its parent's file has.
fn id_of_file(parent: &str) -> Option<SessionId> {
    let name = parent.rsplit(['/', '\\']).next()?;
    let id = name.strip_suffix(".jsonl").map_or(name, |stem| stem.rsplit_once('_').map_or(stem, |(_, id)| id));
    (!id.is_empty()).then(|| id.into())
}
