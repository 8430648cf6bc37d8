//! `abridged search`: finds a text in all entries of a session, compacted ones too.

use super::opened::{Rights, open};
use crate::cli::{
    cells::{clipped, fitted},
    paint::Paint,
    print::{self, plain},
    watch::columns,
};
use serde_json::{Value, json};
use std::{num::NonZeroUsize, path::PathBuf};

/// Options of `abridged search`.
pub struct Request {
    /// A session file, or the beginning of an id.
    pub session: PathBuf,
    /// The text.
    pub text: String,
    /// The most matches.
    pub limit: NonZeroUsize,
    /// The data folder, in the place of the one of the environment.
    pub data: Option<PathBuf>,
    /// As JSON.
    pub json: bool,
}

/// Columns of a line that is written to no terminal.
const COLUMNS: usize = 80;

/// Finds a text. The exit code is 1 where there is no match, as of `grep`.
///
/// # Errors
/// When the session cannot be opened.
pub fn run(request: &Request) -> Result<i32, String> {
    let mut opened = open(Some(&request.session), request.data.as_deref(), Rights::Read)?;
    let answer = opened.call("session/search", json!({ "query": request.text, "limit": request.limit }))?;
    opened.client.end()?;
    if request.json {
        print::document(&answer);
    }
    let matches = answer["matches"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !request.json {
        let paint = Paint::for_stdout();
        matches.iter().for_each(|found| print::line(&line(found, &paint)));
        if matches.is_empty() {
            print::note(&format!("no entry has the text {:?}", request.text));
        }
        if !answer["nextCursor"].is_null() {
            print::note(&format!("there are more; --limit shows more than {}", request.limit));
        }
    }
    Ok(i32::from(matches.is_empty()))
}

/// A match on a line: `○` stands before an entry of another branch.
fn line(found: &Value, paint: &Paint) -> String {
    let text = |name: &str| plain(found[name].as_str().unwrap_or_default());
    let mark = if found["active"] == false { "○" } else { "●" };
    let id = clipped(&text("entryId"), 16);
    let role = format!("{:<10}", clipped(&text("role"), 10));
    let width = columns(COLUMNS).saturating_sub(id.chars().count() + 14).max(20);
    format!("{mark} {} {role} {}", paint.dim(&id), fitted(&text("snippet"), width))
}
