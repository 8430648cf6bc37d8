//! Names of the files beside a session file.

use std::path::{Path, PathBuf};

/// `session.jsonl` → `session.jsonl.<suffix>`.
pub fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(suffix);
    path.with_file_name(name)
}

/// Whether a path is one of a file in the cache of a store, by its folders: `stores/<identity>/<number>/sessions/<folder>/<file>`.
pub fn is_cached(path: &Path) -> bool {
    let mut folders = path.ancestors().skip(1).map(|folder| folder.file_name().unwrap_or_default());
    folders.nth(1).is_some_and(|name| name == "sessions") && folders.nth(2).is_some_and(|name| name == "stores")
}

/// The name of the document that a handoff saves for a session: `handoff-2026-01-01T00-00-00-000Z.md`. `timestamp` is the one
/// of the session's header.
pub fn of_document(timestamp: &str) -> String {
    format!("handoff-{}.md", timestamp.replace([':', '.'], "-"))
}

/// The names that a file beside this one may get, in order: `session.jsonl.torn`, `session.jsonl.torn.2` and so on.
pub fn names_beside(path: &Path, suffix: &str) -> impl Iterator<Item = PathBuf> {
    /// More are a defect, or somebody's joke.
    const MOST: u32 = 10_000;
    let numbered = (2..MOST).map(move |n| format!("{suffix}.{n}"));
    std::iter::once(suffix.to_owned()).chain(numbered).map(|suffix| beside(path, &suffix))
}
