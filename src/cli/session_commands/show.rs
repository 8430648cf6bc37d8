//! `abridged show`: the summary in force of a session, or one of its entries, whole. It reads the file, takes no lock and writes
//! nothing.

use crate::{
    cli::{
        compact::grouped,
        named,
        paint::Paint,
        print::{self, plain, printable},
        tree::file::{SessionFile, compaction_at_the_end},
        watch::columns,
        wrap::{in_sentences, wrapped_text},
    },
    conversation::entry::{Body, Entry},
    log::index::Place,
    protocol::types::role_of,
};
use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// Options of `abridged show`.
pub struct Request {
    /// A session file, or the beginning of an id. Default: the newest session.
    pub session: Option<PathBuf>,
    /// The beginning of an entry's id. Default: the summary in force.
    pub entry: Option<String>,
    /// The data folder, in the place of the one of the environment.
    pub data: Option<PathBuf>,
    /// As JSON.
    pub json: bool,
}

/// Columns of a line that is written to no terminal.
const COLUMNS: usize = 80;

/// Shows the summary in force, or an entry.
///
/// # Errors
/// When there is none, or the file cannot be read: what to do next.
pub fn run(request: &Request) -> Result<i32, String> {
    let path = named::file(request.session.as_deref(), request.data.as_deref())?;
    let open = || SessionFile::open(&path).map_err(|error| error.to_string());
    let entry = match &request.entry {
        Some(id) => entry(&open()?, id)?,
        // A large file is not read for a summary at its end.
        None => match compaction_at_the_end(&path).map_err(|error| error.to_string())? {
            Some(compaction) => compaction,
            None => summary(&open()?, request.session.as_deref())?,
        },
    };
    if entry.is_placeholder() {
        return Err(broken(&path, &entry));
    }
    if request.json {
        let line: Value = serde_json::from_str(entry.line()).map_err(|error| error.to_string())?;
        print::document(&line);
        return Ok(0);
    }
    let paint = &Paint::for_stdout();
    // A file or a program gets each line as it is.
    let columns = if print::is_terminal() { columns(COLUMNS).max(20) } else { usize::MAX };
    in_sentences(&head(&entry), columns).iter().for_each(|line| print::line(&paint.dim(line)));
    print::line("");
    let text = match &entry.body {
        Body::Compaction(compaction) => compaction.summary.clone(),
        _ => entry.readable_text(),
    };
    let text = printable(&text);
    match print::is_terminal() {
        true => wrapped_text(&text, columns).iter().for_each(|line| print::line(line)),
        false => print::line(&text),
    }
    Ok(0)
}

/// The compaction in force.
fn summary(file: &SessionFile, named: Option<&Path>) -> Result<Arc<Entry>, String> {
    let failed = |error: crate::log::error::StoreError| error.to_string();
    let active = file.active();
    let undone = file.undone(&active).map_err(failed)?;
    for place in active.iter().rev().filter(|place| !undone.contains(place)) {
        let Some(entry) = file.entry(*place).map_err(failed)? else { continue };
        match &entry.body {
            Body::Compaction(_) => return Ok(entry),
            Body::ResetBoundary(_) => {
                return Err(
                    "the context was cleared, and nothing was summarized since; abridged tree shows where".to_owned()
                );
            }
            _ => {}
        }
    }
    // An undo may leave the branch of its compaction.
    let mut undone: Vec<Place> = undone.into_iter().collect();
    undone.sort_unstable_by_key(|place| std::cmp::Reverse(place.number()));
    for place in undone {
        let Some(entry) = file.entry(place).map_err(failed)? else { continue };
        if matches!(entry.body, Body::Compaction(_)) {
            let session = named.map(|path| plain(&path.display().to_string()));
            return Err(format!(
                "no summary is in force: the last compaction was undone. abridged show {} {} prints its summary, and \
                 abridged compact makes a new one",
                session.as_deref().unwrap_or(file.found.header.id.as_str()),
                plain(entry.id.as_str())
            ));
        }
    }
    Err("this session has no summary: nothing was compacted. abridged compact makes one, abridged tree lists the entries".to_owned())
}

/// The entry whose id begins so.
fn entry(file: &SessionFile, id: &str) -> Result<Arc<Entry>, String> {
    if id.is_empty() {
        return Err("the id of the entry is empty; abridged tree lists the entries with their ids".to_owned());
    }
    if let Some(entry) = file.find(id).map_err(|error| error.to_string())? {
        return Ok(entry);
    }
    let mut found: Vec<Arc<Entry>> = Vec::new();
    file.each_entry(|_, entry| {
        if entry.id.as_str().starts_with(id) && found.len() < 2 {
            found.push(entry);
        }
        Ok::<(), crate::log::error::StoreError>(())
    })
    .map_err(|error| error.to_string())?;
    match found.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(format!("no entry has an id that begins with {}; abridged tree lists them", plain(id))),
        _ => Err(format!("several entries have an id that begins with {}; write more of it", plain(id))),
    }
}

/// The error about an entry whose line is broken.
fn broken(path: &Path, entry: &Entry) -> String {
    let line: Value = serde_json::from_str(entry.line()).unwrap_or_default();
    format!(
        "the line of entry {} is damaged, and no context has it; its {} bytes are in {} from byte {} on",
        plain(entry.id.as_str()),
        line["data"]["length"],
        plain(&path.display().to_string()),
        line["data"]["offset"]
    )
}

/// The line above an entry.
fn head(entry: &Entry) -> String {
    let kind = role_of(entry).unwrap_or_else(|| entry.kind.clone());
    let mut parts = vec![plain(entry.id.as_str()), plain(&kind), plain(&entry.timestamp)];
    if let Body::Compaction(compaction) = &entry.body {
        let line: Value = serde_json::from_str(entry.line()).unwrap_or_default();
        let after = line["tokensAfter"].as_u64().map(|after| format!(" → {}", grouped(&json!(after))));
        let before = grouped(&json!(compaction.tokens_before() as u64));
        parts.push(format!("{before}{} tokens", after.unwrap_or_default()));
    }
    parts.retain(|part| !part.is_empty());
    parts.join(" · ")
}
