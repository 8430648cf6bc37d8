//! `abridged undo`: takes the last compaction or reset of a session back.

use super::opened::{Rights, open};
use crate::cli::{compact::grouped, print, wrap::print_sentences};
use serde_json::json;
use std::path::PathBuf;

/// Options of `abridged undo`.
pub struct Request {
    /// A session file, or the beginning of an id.
    pub session: PathBuf,
    /// The data folder, in the place of the one of the environment.
    pub data: Option<PathBuf>,
    /// As JSON.
    pub json: bool,
}

/// Takes the last compaction back.
///
/// # Errors
/// When there is none, or another program has the session open.
pub fn run(request: &Request) -> Result<i32, String> {
    let mut opened = open(Some(&request.session), request.data.as_deref(), Rights::Write)?;
    let before = opened.session["usage"]["contextTokens"].clone();
    let answer = opened.call("session/undo_compaction", json!({}))?;
    opened.client.end()?;
    if request.json {
        print::document(&answer);
        return Ok(0);
    }
    let usage = &answer["usage"];
    let percent =
        usage["percent"].as_f64().map(|percent| format!(", {percent:.0} % of the window")).unwrap_or_default();
    print_sentences(&format!(
        "Undone: the context has {} tokens ({} with the summary){percent}. The summary stays in the file.",
        grouped(&usage["contextTokens"]),
        grouped(&before)
    ));
    Ok(0)
}
