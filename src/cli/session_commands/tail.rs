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
    watch::{Depth, Watcher},
};
use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    io,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, channel},
    time::Duration,
};

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

/// The time between two looks at a session whose folder is watched. Some file systems report no change by other machines.
const WATCHED_PAUSE: Duration = Duration::from_secs(5);

/// The time between two looks at a session whose folder cannot be watched.
const PAUSE: Duration = Duration::from_millis(300);

/// The types of entries that are shown.
const SHOWN: [&str; 4] = ["message", "compaction", "branch_summary", "custom_message"];

/// Shows the newest messages.
///
/// # Errors
/// When the session cannot be opened.
pub fn run(request: &Request) -> Result<i32, String> {
    let mut opened = open(request.session.as_deref(), request.data.as_deref(), Rights::Read)?;
    let file = PathBuf::from(opened.session["path"].as_str().unwrap_or_default());
    // The file is watched before it is read, so that no change is missed.
    let changes = request.follow.then(|| Changes::of(&file));
    let lines = if request.json { Lines::Json } else { Lines::Text(Paint::for_stdout()) };
    let (newest, mut last) = newest(&mut opened, request.count.get(), &lines)?;
    // A closed pipe is no error: the reader has read enough.
    let mut is_read = newest.iter().try_for_each(|line| lines.print(line)).is_ok();
    let Some(changes) = changes else {
        opened.client.end()?;
        return Ok(0);
    };
    while is_read {
        changes.wait();
        loop {
            let page = opened.call("session/entries", json!({ "since": last, "types": SHOWN }))?;
            let entries = page["entries"].as_array().map(Vec::as_slice).unwrap_or_default();
            let shown = entries.iter().filter_map(|entry| lines.of(entry));
            is_read = is_read && shown.map(|line| lines.print(&line)).all(|printed| printed.is_ok());
            last = entries.last().map(|entry| entry["id"].clone()).or(last);
            if page["nextCursor"].is_null() {
                break;
            }
        }
    }
    Ok(0)
}

/// The lines of the newest entries that have one, and the id of the last entry.
fn newest(opened: &mut Opened, count: usize, lines: &Lines) -> Result<(VecDeque<String>, Option<Value>), String> {
    let (mut found, mut last, mut before) = (VecDeque::new(), None, json!("leaf"));
    loop {
        let page = json!({ "before": before, "limit": (count - found.len()).min(1_000), "types": SHOWN });
        let mut page = opened.call("session/entries", page)?;
        let entries = page["entries"].as_array().map(Vec::as_slice).unwrap_or_default();
        last = last.or_else(|| entries.last().map(|entry| entry["id"].clone()));
        entries.iter().rev().filter_map(|entry| lines.of(entry)).for_each(|line| found.push_front(line));
        before = page["nextCursor"].take();
        if found.len() >= count || before.is_null() {
            return Ok((found, last));
        }
    }
}

/// The form of the lines.
enum Lines {
    Text(Paint),
    Json,
}

impl Lines {
    /// The line of an entry. A line for other programs has no text, and is shown as JSON only.
    fn of(&self, value: &Value) -> Option<String> {
        match self {
            Self::Json => Some(value.to_string()),
            Self::Text(paint) => {
                let entry = Entry::parse(value.to_string().into()).ok()?;
                (!entry.readable_text().trim().is_empty()).then(|| line(&entry, paint))
            }
        }
    }

    fn print(&self, line: &str) -> io::Result<()> {
        match self {
            Self::Json => writeln!(print::json(), "{line}"),
            Self::Text(_) => writeln!(print::stdout(), "{line}"),
        }
    }
}

/// Changes of a file by other programs.
struct Changes {
    reported: Receiver<PathBuf>,
    /// Reports end when it is dropped. None where the folder cannot be watched.
    watcher: Option<Watcher>,
}

impl Changes {
    fn of(file: &Path) -> Self {
        let (sender, reported) = channel();
        let name = file.file_name().map(ToOwned::to_owned);
        let watcher = Watcher::new(move |path| {
            if path.file_name() == name.as_deref() {
                drop(sender.send(path));
            }
        });
        let folder = file.parent().unwrap_or(file);
        let is_watched = watcher.watch_folder(folder, Depth::Folder).is_ok();
        Self { reported, watcher: is_watched.then_some(watcher) }
    }

    /// Waits for a change, or for the next look.
    fn wait(&self) {
        match &self.watcher {
            // The file is looked at after a report, and reports of one change are one.
            Some(_) => drop(self.reported.recv_timeout(WATCHED_PAUSE).map(|_| self.reported.try_iter().count())),
            None => std::thread::sleep(PAUSE),
        }
    }
}

fn line(entry: &Entry, paint: &Paint) -> String {
    let kind = role_of(entry).unwrap_or_else(|| entry.kind.clone());
    let id = clipped(&print::plain(entry.id.as_str()), 16);
    let width = columns(COLUMNS).saturating_sub(id.chars().count() + 14).max(20);
    let text = fitted(&print::plain(&entry.readable_text()), width);
    format!("{} {:<12} {text}", paint.dim(&id), clipped(&print::plain(&kind), 12))
}
