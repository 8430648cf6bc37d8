//! The sessions of all agents on this machine.

#![expect(clippy::disallowed_methods, reason = "a command of a person")]

use crate::{
    agents::{
        Agent,
        homes::{Found, Homes, Listing},
    },
    cli::{named::Shelf, print::plain},
    daemon::{Places, listing::Catalog, stores},
    protocol::types::{ListParams, ListedSession},
};
use std::path::{Path, PathBuf};

/// The most ids that are named where the beginning of an id is that of several.
const MOST_NAMED: usize = 5;

/// All sessions, the newest first.
///
/// # Errors
/// When there is no home folder, or the store that is named does not answer.
pub(super) fn all(data: Option<&Path>) -> Result<Listing, String> {
    listing(data, shelf(data)?.as_ref())
}

/// The store in the place of the data folder, where one is named and no folder is.
fn shelf(data: Option<&Path>) -> Result<Option<Shelf>, String> {
    if data.is_some() { Ok(None) } else { Shelf::named() }
}

fn listing(data: Option<&Path>, shelf: Option<&Shelf>) -> Result<Listing, String> {
    let data = match data {
        Some(data) => std::path::absolute(data).map_err(|error| error.to_string())?,
        None => Places::from_environment()?.data,
    };
    let homes = Homes::from_environment()?;
    let mut all = homes.sessions();
    all.found.extend(match shelf {
        Some(shelf) => {
            let listed = stores::list(shelf.store(), &everything()).map_err(|failure| failure.to_string())?;
            listed.sessions.into_iter().map(|listed| found(None, listed)).collect()
        }
        None => of_catalog(None, &data.join("sessions"), &data.join("sessions-list.json")),
    });
    all.found.extend(of_catalog(Some(Agent::Pi), &homes.pi, Path::new("")));
    all.found.extend(of_catalog(Some(Agent::OhMyPi), &homes.oh_my_pi, Path::new("")));
    all.found.sort_by(|a, b| b.updated_at.cmp(&a.updated_at).then_with(|| a.path.cmp(&b.path)));
    Ok(all)
}

/// The sessions in pi's form below a folder.
fn of_catalog(agent: Option<Agent>, folder: &Path, cache: &Path) -> Vec<Found> {
    let catalog = Catalog::reading(folder.to_owned(), cache.to_owned());
    catalog.list(&everything()).sessions.into_iter().map(|listed| found(agent, listed)).collect()
}

fn everything() -> ListParams {
    ListParams { limit: Some(usize::MAX), ..ListParams::default() }
}

fn found(agent: Option<Agent>, listed: ListedSession) -> Found {
    Found {
        agent,
        session_id: listed.session_id.to_string(),
        path: listed.path.into(),
        cwd: Some(listed.cwd),
        title: listed.title.or(listed.preview),
        updated_at: listed.updated_at,
        size_bytes: listed.size_bytes,
    }
}

/// The path of a session, of a file or of a session whose id begins so, as the daemon is given it.
///
/// # Errors
/// When there is none, or several: what to do next.
pub(super) fn path(named: &Path, data: Option<&Path>) -> Result<PathBuf, String> {
    let text = named.to_string_lossy();
    let is_path = text.contains(std::path::MAIN_SEPARATOR) || named.exists() || text.contains('#');
    if is_path {
        return std::path::absolute(named).map_err(|error| error.to_string());
    }
    let shelf = shelf(data)?;
    let mut sessions = listing(data, shelf.as_ref())?.found;
    sessions.retain(|session| session.session_id.starts_with(text.as_ref()));
    let exact = sessions.iter().position(|session| session.session_id == text);
    let only = match (exact, sessions.len()) {
        (Some(exact), _) => Some(sessions.swap_remove(exact)),
        (None, 1) => sessions.pop(),
        (None, _) => None,
    };
    if let Some(only) = only {
        return match shelf {
            Some(shelf) if only.agent.is_none() => shelf.file(&only.session_id),
            _ => Ok(only.path),
        };
    }
    match sessions.as_slice() {
        [] => Err(format!(
            "there is no file {}, and no session of any agent has an id that begins so; abridged sessions --all lists them",
            plain(&text)
        )),
        several => {
            let named: Vec<String> = several.iter().take(MOST_NAMED).map(|it| plain(&it.session_id)).collect();
            let count = several.len();
            Err(format!(
                "{count} sessions have an id that begins with {}: {}; write more of it",
                plain(&text),
                named.join(", ")
            ))
        }
    }
}
