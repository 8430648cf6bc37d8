//! `abridged sessions`: the sessions of a data folder, each below the one that it was made from. It reads files and locks, and
//! writes nothing.

mod family;
mod lines;

use super::{
    cells::fitted,
    named::Shelf,
    other_agents::list,
    paint::Paint,
    print::{self, plain},
    watch::{self, row::Row},
};
use crate::{daemon::stores, protocol::types::ListParams};
use family::{Parent, families, parents};
use jiff::Timestamp;
use lines::{List, lines, short_ids};
use serde::Serialize;
use serde_json::json;
use std::{
    num::NonZeroUsize,
    path::{Path, PathBuf},
};

/// Options of `abridged sessions`.
pub struct Request {
    /// The data folder, in the place of the one of the environment.
    pub data: Option<PathBuf>,
    /// Whether those of all agents on this machine are listed.
    pub all: bool,
    /// The address of a store.
    pub store: Option<String>,
    /// The text that sessions of a store are searched for.
    pub search: Option<String>,
    /// The working folder of the sessions.
    pub cwd: Option<PathBuf>,
    /// The most sessions that are listed.
    pub limit: NonZeroUsize,
    /// As JSON.
    pub json: bool,
    /// The time that ages are measured against.
    pub now: Timestamp,
}

/// Columns of a line that is written to no terminal.
const COLUMNS: usize = 80;

/// A session for a program.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed<'a> {
    #[serde(flatten)]
    row: &'a Row,
    /// Id of the session that it was made from.
    parent_session_id: Option<&'a str>,
}

/// Lists the sessions of a data folder.
///
/// # Errors
/// When the folder cannot be listed: what to do next.
pub fn run(request: &Request) -> Result<i32, String> {
    let cwd = request.cwd.as_deref().map(std::path::absolute).transpose().map_err(|error| error.to_string())?;
    if request.all {
        return list::run(&list::Request {
            data: request.data.as_deref(),
            cwd: cwd.as_deref(),
            limit: request.limit,
            json: request.json,
            now: request.now,
        });
    }
    if request.data.is_none()
        && let Some(shelf) = Shelf::at(request.store.as_deref())?
    {
        return stored(&shelf, request, cwd.as_deref());
    }
    if request.search.is_some() {
        return Err("--search is for a store; name one with --store".to_owned());
    }
    let mut looks = watch::looks(request.data.as_deref())?;
    let mut picture = looks.look();
    // An id names one session of the folder, also where some are not listed.
    let all: Vec<String> = picture.rows.iter().map(|row| row.session_id.to_string()).collect();
    let mut ids = short_ids(&all.iter().map(String::as_str).collect::<Vec<_>>());
    if let Some(cwd) = &cwd {
        let wanted: Vec<bool> = picture.rows.iter().map(|row| Path::new(&row.cwd) == cwd).collect();
        keep(&mut picture.rows, &wanted);
        keep(&mut ids, &wanted);
    }
    let shown = picture.rows.len().min(request.limit.get());
    looks.measure(&mut picture.rows[..shown]);
    let parents = parents(&picture.rows);
    match request.json {
        true => {
            let listed = |row| listed(row, &parents, &picture.rows);
            let sessions: Vec<_> = (0..shown).map(listed).collect();
            let more = picture.rows.len() - shown;
            let document =
                json!({ "folder": picture.folder, "sessions": sessions, "more": more, "leftOut": picture.left_out });
            print::document(&document);
        }
        false => {
            let members = families(&parents, shown);
            let list = List { rows: &picture.rows, parents: &parents, members: &members, ids: &ids };
            let left_out = picture.left_out.len();
            print::line(&drawn(&list, request, all.len(), left_out, looks.folder()));
        }
    }
    Ok(0)
}

/// Lists the sessions of a store. Their files are not read.
fn stored(shelf: &Shelf, request: &Request, cwd: Option<&Path>) -> Result<i32, String> {
    let limit = request.limit.get();
    let params = ListParams {
        cwd: cwd.map(|cwd| cwd.display().to_string()),
        search: request.search.clone(),
        limit: Some(limit),
        ..ListParams::default()
    };
    let answer = stores::list(shelf.store(), &params).map_err(|failure| failure.to_string())?;
    let is_more = answer.next_cursor.is_some();
    let rows: Vec<Row> = answer.sessions.into_iter().map(|listed| Row::of(listed, None, |_| false)).collect();
    let parents = parents(&rows);
    let address = shelf.store().server().to_string();
    if request.json {
        let sessions: Vec<_> = (0..rows.len()).map(|row| listed(row, &parents, &rows)).collect();
        print::document(&json!({ "store": address, "sessions": sessions, "more": is_more }));
        return Ok(0);
    }
    if rows.is_empty() {
        print::line(&plain(&format!("No such sessions in {address}.")));
        return Ok(0);
    }
    let ids: Vec<String> = rows.iter().map(|row| row.session_id.to_string()).collect();
    let ids = short_ids(&ids.iter().map(String::as_str).collect::<Vec<_>>());
    let members = families(&parents, rows.len());
    let list = List { rows: &rows, parents: &parents, members: &members, ids: &ids };
    let (columns, paint) = (watch::columns(COLUMNS), Paint::for_stdout());
    let mut text = lines(&list, request.now, columns, &paint);
    if is_more {
        text.push(paint.dim(&fitted("and more (--limit)", columns)));
    }
    print::line(&text.join("\n"));
    Ok(0)
}

/// Keeps the wanted ones.
fn keep<T>(of: &mut Vec<T>, wanted: &[bool]) {
    let mut wanted = wanted.iter();
    of.retain(|_| wanted.next() == Some(&true));
}

fn listed<'a>(number: usize, parents: &'a [Option<Parent>], rows: &'a [Row]) -> Listed<'a> {
    let parent_session_id = match &parents[number] {
        Some(Parent::Listed(parent)) => Some(rows[*parent].session_id.as_str()),
        Some(Parent::Elsewhere(id)) => Some(id.as_str()),
        None => None,
    };
    Listed { row: &rows[number], parent_session_id }
}

/// The list for a person.
fn drawn(list: &List<'_>, request: &Request, all: usize, left_out: usize, folder: &Path) -> String {
    let paint = Paint::for_stdout();
    let columns = watch::columns(COLUMNS);
    let mut text: Vec<String> = match (list.members, &request.cwd) {
        ([], Some(cwd)) if all > 0 => {
            let folder = plain(&cwd.display().to_string());
            vec![format!("No session has the folder {folder}; without --cwd there are {all}.")]
        }
        ([], _) => vec![
            format!("No sessions in {} yet. A daemon writes one at session/new.", plain(&folder.display().to_string())),
            "Another folder: --data DIR or ABRIDGED_DATA_DIR.".to_owned(),
        ],
        _ => lines(list, request.now, columns, &paint),
    };
    let more = match list.rows.len() - list.members.len() {
        0 => None,
        more => Some(format!("and {more} more (--limit)")),
    };
    let left_out = match left_out {
        0 => None,
        1 => Some("1 file is no session, or not readable (--json names it)".to_owned()),
        files => Some(format!("{files} files are no sessions, or not readable (--json names them)")),
    };
    let end: Vec<String> = [more, left_out].into_iter().flatten().collect();
    if !end.is_empty() {
        text.push(paint.dim(&fitted(&end.join(" · "), columns)));
    }
    text.join("\n")
}
