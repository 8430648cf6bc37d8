//! `abridged export`: a session as Markdown for a person, or as a file with every entry.

use super::opened::{Rights, open};
use crate::cli::print;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Options of `abridged export`.
pub struct Request {
    /// A session file, or the beginning of an id.
    pub session: PathBuf,
    /// The new file. Its ending tells the format: `.jsonl` has every entry, and `.md`, `.markdown`, `.txt` or none
    /// is Markdown.
    pub out: PathBuf,
    /// The data folder, in the place of the one of the environment.
    pub data: Option<PathBuf>,
}

/// Exports a session.
///
/// # Errors
/// When the session cannot be opened, or the file is there already.
pub fn run(request: &Request) -> Result<i32, String> {
    let format = format(&request.out)?;
    let mut opened = open(Some(&request.session), request.data.as_deref(), Rights::Read)?;
    let out = std::path::absolute(&request.out).map_err(|error| error.to_string())?;
    let answer = opened.call("session/export", json!({ "format": format, "path": out }))?;
    opened.client.end()?;
    print::line(&print::plain(answer["path"].as_str().unwrap_or_default()));
    Ok(0)
}

/// The format of a file with this name.
fn format(out: &Path) -> Result<&'static str, String> {
    match out.extension().map(|ending| ending.to_string_lossy().to_lowercase()).as_deref() {
        Some("jsonl") => Ok("jsonl"),
        None | Some("md" | "markdown" | "txt") => Ok("markdown"),
        Some(other) => Err(format!(
            "nothing is written as .{}; name a file that ends with .md for Markdown, or with .jsonl for every entry",
            print::plain(other)
        )),
    }
}
