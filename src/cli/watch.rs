//! `abridged watch`: the sessions of a data folder with their fullness, their operations and their cost. It reads files
//! and locks, starts no daemon, and writes nothing.

mod live;
pub(super) mod look;
pub(super) mod row;
mod table;
mod terminal;

use super::{paint::Paint, print};
use crate::{
    clock,
    daemon::{Places, stores},
};
use look::Looks;
use serde_json::json;
use std::{
    io::{self, IsTerminal},
    path::{Path, PathBuf},
};
use table::Size;

/// Options of `abridged watch`.
pub struct Request {
    /// The data folder, in the place of the one of the environment.
    pub data: Option<PathBuf>,
    /// Print the sessions once.
    pub once: bool,
    /// As JSON.
    pub json: bool,
}

/// Columns of a table that is written to no terminal.
const COLUMNS: usize = 120;

/// Shows the sessions of a data folder.
///
/// # Errors
/// When the folder cannot be listed, or the sessions are in a store: what to do next.
pub fn run(request: &Request) -> Result<i32, String> {
    if request.data.is_none() && stores::is_named(variable("ABRIDGED_STORE").as_deref(), &Places::from_environment()?) {
        return Err(
            "the sessions are in a store, and watch reads a data folder: abridged sessions lists those of the store, \
                    --data FOLDER watches a folder"
                .to_owned(),
        );
    }
    let looks = looks(request.data.as_deref())?;
    match (request.json, request.once) {
        (true, true) => as_json(looks),
        (true, false) => Ok(live::as_json(looks)),
        (false, false) if can_be_drawn_on() => live::on_terminal(looks, &Paint::for_stdout()),
        (false, _) => table(looks),
    }
}

/// Reads the sessions of a data folder, or of the one of the environment.
///
/// # Errors
/// When the folder cannot be listed: what to do next.
pub(super) fn looks(data: Option<&Path>) -> Result<Looks, String> {
    let mut places = Places::from_environment()?;
    if let Some(data) = data {
        is_folder(data)?;
        data.clone_into(&mut places.data);
    }
    places.data = std::path::absolute(&places.data).map_err(|error| error.to_string())?;
    let looks = Looks::at(&places, &variable);
    match looks.problem() {
        Some(problem) => Err(problem),
        None => Ok(looks),
    }
}

/// A folder that a person names has to be there.
#[expect(clippy::disallowed_methods, reason = "a command of a person")]
fn is_folder(data: &Path) -> Result<(), String> {
    match data.metadata() {
        Ok(about) if about.is_dir() => Ok(()),
        Ok(_) => Err(format!("{}: it is no folder; name the data folder of a daemon", data.display())),
        Err(error) => Err(format!("{}: {error}; name the data folder of a daemon", data.display())),
    }
}

#[expect(clippy::disallowed_methods, reason = "the environment of the process")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The columns of the terminal of stdout, or `otherwise` where it is none.
pub(super) fn columns(otherwise: usize) -> usize {
    if io::stdout().is_terminal() { terminal::size().columns } else { otherwise }
}

/// Whether stdout is a terminal with a cursor.
fn can_be_drawn_on() -> bool {
    io::stdout().is_terminal() && variable("TERM").is_some_and(|term| term != "dumb")
}

fn table(mut looks: Looks) -> Result<i32, String> {
    let mut picture = looks.look();
    looks.measure(&mut picture.rows);
    let lines =
        table::lines(&picture, clock::now(), Size { columns: columns(COLUMNS), rows: None }, "", &Paint::for_stdout());
    print::line(&lines.join("\n"));
    Ok(0)
}

fn as_json(mut looks: Looks) -> Result<i32, String> {
    let mut picture = looks.look();
    looks.measure(&mut picture.rows);
    let document = json!({ "folder": picture.folder, "sessions": picture.rows, "leftOut": picture.left_out });
    print::document(&document);
    Ok(0)
}
