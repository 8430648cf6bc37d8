//! `abridged export`: a session as Markdown for a person, or as a file with every entry.

use super::opened::{Rights, open};
use crate::cli::print;
use serde_json::json;
use std::path::PathBuf;

/// Options of `abridged export`.
pub struct Request {
    /// A session file, or the beginning of an id.
    pub session: PathBuf,
    /// The new file. Its ending tells the format: `.jsonl` has every entry, any other one is Markdown.
    pub out: PathBuf,
    /// The data folder, in the place of the one of the environment.
    pub data: Option<PathBuf>,
}

/// Exports a session.
///
/// # Errors
/// When the session cannot be opened, or the file is there already.
pub fn run(request: &Request) -> Result<i32, String> {
    let mut opened = open(Some(&request.session), request.data.as_deref(), Rights::Read)?;
    let out = std::path::absolute(&request.out).map_err(|error| error.to_string())?;
    let format = if out.extension().is_some_and(|ending| ending == "jsonl") { "jsonl" } else { "markdown" };
    let answer = opened.call("session/export", json!({ "format": format, "path": out }))?;
    opened.client.end()?;
    print::line(&print::plain(answer["path"].as_str().unwrap_or_default()));
    Ok(0)
}
