//! `abridged tail`: the newest messages of a session, and those that come.

use super::opened::{Opened, Rights, open};
use crate::{
    cli::{
        cells::{clipped, fitted},
        paint::Paint,
        print,
        watch::columns,
    },
    conversation::entry::Entry,
    protocol::types::role_of,
};
use serde_json::{Value, json};
use std::{num::NonZeroUsize, path::PathBuf, thread, time::Duration};

/// Options of `abridged tail`.
pub struct Request {
    /// A session file, or the beginning of an id. Default: the newest session.
    pub session: Option<PathBuf>,
    /// The number of messages.
    pub count: NonZeroUsize,
    /// Whether those that come are shown, until Ctrl-C.
    pub follow: bool,
    /// The data folder, in the place of the one of the environment.
    pub data: Option<PathBuf>,
    /// As JSON: an entry on a line.
    pub json: bool,
}

/// Columns of a line that is written to no terminal.
const COLUMNS: usize = 80;

/// The time between two looks at a session that is followed.
const PAUSE: Duration = Duration::from_millis(300);

/// The types of entries that are shown.
const SHOWN: [&str; 4] = ["message", "compaction", "branch_summary", "custom_message"];

/// Shows the newest messages.
///
/// # Errors
/// When the session cannot be opened.
pub fn run(request: &Request) -> Result<i32, String> {
    let mut opened = open(request.session.as_deref(), request.data.as_deref(), Rights::Read)?;
    let page = json!({ "before": "leaf", "limit": request.count, "types": SHOWN });
    let mut last = show(&opened.call("session/entries", page)?, request.json);
    if !request.follow {
        opened.client.end()?;
        return Ok(0);
    }
    loop {
        thread::sleep(PAUSE);
        let came = newer(&mut opened, last.as_ref())?;
        last = show(&came, request.json).or(last);
    }
}

/// The entries after one.
fn newer(opened: &mut Opened, last: Option<&Value>) -> Result<Value, String> {
    opened.call("session/entries", json!({ "since": last, "types": SHOWN }))
}

/// Prints the entries of a page. Returns the id of the last one.
fn show(page: &Value, is_json: bool) -> Option<Value> {
    let paint = Paint::for_stdout();
    let entries = page["entries"].as_array().map(Vec::as_slice).unwrap_or_default();
    for value in entries {
        match is_json {
            true => drop(writeln!(print::json(), "{value}")),
            false => {
                // A line for other programs has no text.
                let entry = Entry::parse(value.to_string().into()).ok();
                let entry = entry.filter(|entry| !entry.readable_text().trim().is_empty());
                entry.iter().for_each(|entry| print::line(&line(entry, &paint)));
            }
        }
    }
    entries.last().map(|entry| entry["id"].clone())
}

fn line(entry: &Entry, paint: &Paint) -> String {
    let kind = role_of(entry).unwrap_or_else(|| entry.kind.clone());
    let id = clipped(&print::plain(entry.id.as_str()), 16);
    let width = columns(COLUMNS).saturating_sub(id.chars().count() + 14).max(20);
    let text = fitted(&print::plain(&entry.readable_text()), width);
    format!("{} {:<12} {text}", paint.dim(&id), clipped(&print::plain(&kind), 12))
}
