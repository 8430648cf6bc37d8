//! `abridged tree`: the tree of one session in the terminal, or as JSON. It reads the file, takes no lock and writes nothing.

pub(super) mod file;
mod forest;
mod row;

use super::{
    cells::{fitted, told_apart, width},
    compact::grouped,
    named,
    paint::Paint,
    print::{self, Form, Printer, plain},
    watch::columns,
};
use crate::{
    log::error::StoreError,
    protocol::types::{Around, TreeNode},
};
use file::{SessionFile, Tree};
use forest::{Fold, Item, Row};
use row::{Drawn, State, Style};
use serde_json::json;
use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

/// Options of `abridged tree`.
pub struct Request {
    /// A session file, or the beginning of the id of a session of the data folder.
    pub session: PathBuf,
    /// The data folder, in the place of the one of the environment.
    pub data: Option<PathBuf>,
    /// Draw every entry.
    pub all: bool,
    /// As JSON.
    pub json: bool,
}

/// Columns of a line that is written to no terminal.
const COLUMNS: usize = 80;

/// The end of the output: the session could not be read further, or nobody reads on.
enum End {
    Unreadable(StoreError),
    Closed(io::Error),
}

impl From<StoreError> for End {
    fn from(error: StoreError) -> Self {
        Self::Unreadable(error)
    }
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        Self::Closed(error)
    }
}

/// Draws the tree of a session.
///
/// # Errors
/// When there is no such session, or its file cannot be read: what to do next.
pub fn run(request: &Request) -> Result<i32, String> {
    let path = named::file(Some(&request.session), request.data.as_deref())?;
    let file = SessionFile::open(&path).map_err(|error| error.to_string())?;
    let form = if request.json { Form::Json } else { Form::Text };
    let mut out = print::buffered(form);
    let written = match request.json {
        true => write_json(&file, &path, &mut out),
        false => draw(&file, &path, if request.all { Fold::Nothing } else { Fold::LongRuns }, &mut out),
    };
    match written.and_then(|()| Ok(out.flush()?)) {
        Ok(()) => Ok(0),
        // A closed pipe is no error: the reader has read enough.
        Err(End::Closed(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
        Err(End::Closed(error)) => Err(format!("stdout cannot be written: {error}")),
        Err(End::Unreadable(error)) => Err(error.to_string()),
    }
}

/// Writes one JSON document. Its nodes are those of `session/tree`, all of them.
fn write_json(file: &SessionFile, path: &Path, out: &mut Printer<impl Write>) -> Result<(), End> {
    let repairs =
        file.repairs.iter().map(|repair| json!({"kind": repair.kind, "line": repair.line, "detail": repair.detail}));
    let head = json!({
        "sessionId": file.found.header.id,
        "path": path,
        "title": file.title(),
        "leafEntryId": file.leaf()?,
        "repairs": repairs.collect::<Vec<_>>(),
    });
    let head = head.to_string();
    // The nodes are written one by one: a session may have a million.
    write!(out, "{},\n\"nodes\": [", head.strip_suffix('}').unwrap_or(&head))?;
    let labels = file.labels();
    let active = file.active();
    let undone = file.undone(&active)?;
    let mut separator = "\n";
    file.each_entry(|place, entry| {
        let around = Around {
            label: labels.of(&entry.id).map(str::to_owned),
            active: active.binary_search(&place).is_ok(),
            undone: undone.contains(&place),
        };
        let node = TreeNode::of(&entry, around);
        write!(out, "{separator}{}", json!(node))?;
        separator = ",\n";
        Ok::<(), End>(())
    })?;
    Ok(writeln!(out, "\n]}}")?)
}

fn draw(file: &SessionFile, path: &Path, fold: Fold, out: &mut Printer<impl Write>) -> Result<(), End> {
    let tree = file.tree()?;
    let paint = &Paint::for_stdout();
    let style = Style { columns: columns(COLUMNS), id: id_length(&tree, fold), paint };
    writeln!(out, "{}", paint.dim(&fitted(&plain(&path.display().to_string()), style.columns)))?;
    for head in head(file, &tree, style.columns) {
        writeln!(out, "{}", paint.bold(&fitted(&head, style.columns)))?;
    }
    writeln!(out)?;
    let labels = file.labels();
    tree.forest.draw(fold, |row| {
        let line = match row.item {
            Item::Entry(number) => match tree.entry(number, file)? {
                Some(entry) => style.entry(&row, &drawn(&tree, number, &entry, labels.of(&entry.id))),
                None => String::new(),
            },
            Item::Folded { .. } | Item::Blank => style.other(&row),
        };
        Ok::<(), End>(writeln!(out, "{}", line.trim_end())?)
    })?;
    if tree.forest.len() > 0 {
        let legend = "◉ leaf · ● path to it · ○ other branches · ◆ ◇ compaction, reset, summary";
        writeln!(out, "\n{}", paint.dim(&fitted(legend, style.columns)))?;
    }
    Ok(())
}

/// The characters of an id that tell the entries of the picture apart.
fn id_length(tree: &Tree, fold: Fold) -> usize {
    let mut shown = Vec::new();
    let gathered: Result<(), std::convert::Infallible> = tree.forest.draw(fold, |Row { item, .. }| {
        shown.extend(if let Item::Entry(number) = item { Some(tree.id(number)) } else { None });
        Ok(())
    });
    match gathered {
        Ok(()) => told_apart(&shown).into_iter().max().unwrap_or(0),
        Err(never) => match never {},
    }
}

fn drawn<'a>(
    tree: &Tree,
    number: u32,
    entry: &'a crate::conversation::entry::Entry,
    label: Option<&'a str>,
) -> Drawn<'a> {
    let state = match tree.forest.is_on_path(number) {
        _ if tree.forest.leaf() == Some(number) => State::Leaf,
        true => State::Active,
        false => State::Aside,
    };
    Drawn { entry, label, state, is_undone: tree.is_undone(number) }
}

/// Title, numbers and faults of a session. The faults have a line of their own where one is too short for all.
fn head(file: &SessionFile, tree: &Tree, columns: usize) -> Vec<String> {
    let counted = |count: usize, one: &str, many: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        _ => Some(format!("{} {many}", grouped(&json!(count)))),
    };
    let parts = [
        Some(file.title().map_or_else(|| file.found.header.id.to_string(), str::to_owned)),
        counted(tree.forest.len(), "entry", "entries").or_else(|| Some("no entries yet".to_owned())),
        counted(tree.forest.tips(), "branch", "branches").filter(|_| tree.forest.tips() > 1),
    ];
    let head = plain(&parts.into_iter().flatten().collect::<Vec<_>>().join(" · "));
    let Some(faults) = counted(file.repairs.len(), "fault in the file (see --json)", "faults in the file (see --json)")
    else {
        return vec![head];
    };
    let all = format!("{head} · {faults}");
    if width(&all) <= columns { vec![all] } else { vec![head, faults] }
}
