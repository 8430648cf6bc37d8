//! The session that a command is about: a file, or the beginning of the id of a session of the data folder.

use super::print::plain;
use crate::{
    daemon::{Places, listing::Catalog},
    protocol::types::{ListParams, ListedSession},
};
use std::path::{Path, PathBuf};

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
    let named: Vec<String> = several.iter().take(MOST_NAMED).map(|it| plain(it.session_id.as_str())).collect();
    let more = match several.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{} sessions have an id that begins with {id}: {}{more}; write more of it", several.len(), named.join(", "))
}
