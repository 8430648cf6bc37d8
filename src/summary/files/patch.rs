//! Patches in the form of Codex: the lines that they begin and end with, and the files that they name.

use crate::summary::shell::string_literal;

/// The first line of a patch.
pub(in crate::summary) const BEGIN: &str = "*** Begin Patch";

/// The last line of a patch.
pub(in crate::summary) const END: &str = "*** End Patch";

/// The beginning of a line with a file that is changed.
pub(in crate::summary) const UPDATE: &str = "*** Update File: ";

const ADD: &str = "*** Add File: ";
const DELETE: &str = "*** Delete File: ";
const MOVE: &str = "*** Move to: ";

/// The change of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::summary) enum Change {
    Added,
    Updated,
    /// It is removed, or moved away.
    Deleted,
}

/// A file of a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::summary) struct File {
    pub path: String,
    pub change: Change,
}

/// The file that a line of a patch names.
fn named(line: &str) -> Option<File> {
    let marks = [(ADD, Change::Added), (UPDATE, Change::Updated), (DELETE, Change::Deleted), (MOVE, Change::Added)];
    marks.into_iter().find_map(|(mark, change)| Some(File { path: line.strip_prefix(mark)?.trim().to_owned(), change }))
}

/// The files of a patch, in its order.
pub(in crate::summary) fn files(patch: &str) -> Vec<File> {
    let mut files: Vec<File> = Vec::new();
    for line in patch.lines() {
        // The file before is moved there.
        if let Some(moved) = files.last_mut().filter(|_| line.starts_with(MOVE)) {
            moved.change = Change::Deleted;
        }
        files.extend(named(line));
    }
    files
}

/// The patches that a text is, or that a piece of code gives to a tool.
pub(in crate::summary) fn all_in(text: &str) -> Vec<String> {
    // Other texts quote these lines.
    if !text.contains(END) {
        return Vec::new();
    }
    if text.trim_start().starts_with(BEGIN) {
        return vec![text.to_owned()];
    }
    // A string literal: its quote is right before.
    let literal = |(at, _): (usize, &str)| {
        let quote = text[..at].char_indices().next_back()?.0;
        // An escaped quote is inside of another literal.
        (!text[..quote].ends_with('\\')).then(|| string_literal(&text[quote..])).flatten()
    };
    text.match_indices(BEGIN).filter_map(literal).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_patches_of_a_piece_of_code_are_its_string_literals() {
        let patch = |file: &str| format!("{BEGIN}\n{UPDATE}{file}\n@@\n-a\n+b\n{END}");
        let literal = |file: &str| serde_json::json!(patch(file)).to_string();
        let code = format!("await tools.apply_patch({});\nawait tools.apply_patch({});", literal("a"), literal("b"));
        assert_eq!(all_in(&code), [patch("a"), patch("b")]);
        assert_eq!(all_in(&patch("a")), [patch("a")]);
        assert!(all_in(&format!("it says {BEGIN} and {END}")).is_empty());
    }

    #[test]
    fn a_moved_file_is_gone() {
        let found = files(&format!("{BEGIN}\n{UPDATE}a\n{MOVE}b\n{DELETE}c\n{ADD}d\n{END}"));
        let found: Vec<_> = found.iter().map(|file| (file.path.as_str(), file.change)).collect();
        let expected = [("a", Change::Deleted), ("b", Change::Added), ("c", Change::Deleted), ("d", Change::Added)];
        assert_eq!(found, expected);
    }
}
