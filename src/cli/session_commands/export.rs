//! `abridged export`: a session as Markdown for a person, or as a file with every entry.

use super::opened::{Rights, open};
use crate::cli::print;
use serde_json::json;
use std::path::{Path, PathBuf};

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
    let format = format(&request.out)?;
    let mut opened = open(Some(&request.session), request.data.as_deref(), Rights::Read)?;
    let out = std::path::absolute(&request.out).map_err(|error| error.to_string())?;
    let answer = opened.call("session/export", json!({ "format": format, "path": out }))?;
    opened.client.end()?;
    print::line(&print::plain(answer["path"].as_str().unwrap_or_default()));
    Ok(0)
}

/// Endings of names whose format a person would expect.
const OTHERS: [&str; 12] = ["pdf", "html", "htm", "json", "docx", "odt", "rtf", "csv", "xml", "yaml", "yml", "zip"];

/// The format of a file with this name.
fn format(out: &Path) -> Result<&'static str, String> {
    let name = out.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let ending = name.rsplit_once('.').map(|(_, ending)| ending).unwrap_or_default();
    match ending {
        "jsonl" => Ok("jsonl"),
        other if OTHERS.contains(&other) => Err(format!(
            "export cannot write .{other} files; name a file that ends with .md for Markdown, or with .jsonl for every entry"
        )),
        _ => Ok("markdown"),
    }
}
