//! The tools of common agents that read and change files, with the arguments that name the files.

use crate::{settings::FileOperation, summary::shell::is_same_tool};
use serde_json::Value;

/// Tools of common agents that name a file in one argument: tool, argument, what is done.
pub(super) const KNOWN: &[(&str, &str, FileOperation)] = {
    use FileOperation::{Delete, Edit, Read, Write};
    &[
        // pi and oh-my-pi
        ("read", "path", Read),
        ("write", "path", Write),
        ("edit", "path", Edit),
        // Claude Code
        ("Read", "file_path", Read),
        ("Write", "file_path", Write),
        ("Edit", "file_path", Edit),
        ("MultiEdit", "file_path", Edit),
        ("NotebookRead", "notebook_path", Read),
        ("NotebookEdit", "notebook_path", Edit),
        // OpenCode
        ("read", "filePath", Read),
        ("write", "filePath", Write),
        ("edit", "filePath", Edit),
        ("multiedit", "filePath", Edit),
        // Codex and editor agents
        ("view_image", "path", Read),
        ("view", "file_path", Read),
        ("view", "path", Read),
        ("view_file", "path", Read),
        ("read_file", "path", Read),
        ("read_file", "target_file", Read),
        ("read_file", "absolute_path", Read),
        ("read_file", "filePath", Read),
        ("read_file", "file_path", Read),
        ("write_file", "path", Write),
        ("write_file", "file_path", Write),
        ("write_to_file", "path", Write),
        ("create_file", "path", Write),
        ("create_file", "filePath", Write),
        ("edit_file", "path", Edit),
        ("edit_file", "target_file", Edit),
        ("replace", "file_path", Edit),
        ("replace_in_file", "path", Edit),
        ("insert_edit_into_file", "filePath", Edit),
        ("replace_string_in_file", "filePath", Edit),
        ("apply_diff", "path", Edit),
        ("search_replace", "file_path", Edit),
        ("delete_file", "path", Delete),
        ("delete_file", "target_file", Delete),
        ("delete_path", "path", Delete),
    ]
};

/// Tools with one argument, a patch that names its files.
pub(super) const PATCHES: &[&str] = &["apply_patch", "patch", "ApplyPatch"];

/// Tools with a `path` and a `command` that names the operation on it.
pub(super) const COMMANDED: &[&str] = &["str_replace_editor", "str_replace_based_edit_tool", "text_editor"];

/// Whether a tool of this name reads a file in a common agent.
#[must_use]
pub fn reads_a_file(tool: &str) -> bool {
    reading().any(|known| known != "view_image" && is_same_tool(known, tool))
}

/// The tools that read a file.
fn reading() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().filter(|(.., operation)| *operation == FileOperation::Read).map(|(tool, ..)| *tool)
}

/// The arguments that name the file in a call of a tool that reads one.
pub(in crate::summary) const PATHS: [&str; 5] = ["path", "file_path", "filePath", "absolute_path", "target_file"];

/// The file that a call reads, by the words in the name of its tool: servers give their tools a name of their own before it.
pub(in crate::summary) fn file_read<'a>(tool: &str, arguments: &'a Value) -> Option<&'a str> {
    let tool = tool.to_lowercase();
    let mut words = tool.split(|char: char| !char.is_alphanumeric());
    let is_reader = words.any(|word| word == "cat" || reading().any(|known| is_same_tool(known, word)));
    PATHS.iter().filter(|_| is_reader).find_map(|name| arguments.get(*name)?.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tools_of_servers_read_files_by_the_words_in_their_names() {
        for (tool, arguments, read) in [
            ("mcp__fs__read_file", json!({"path": "a"}), Some("a")),
            ("fs.cat", json!({"file_path": "a"}), Some("a")),
            ("fs-write", json!({"path": "a"}), None),
            ("search", json!({"path": "a"}), None),
        ] {
            assert_eq!(file_read(tool, &arguments), read, "{tool}");
        }
        assert!(reads_a_file("read") && reads_a_file("ReadFile") && !reads_a_file("write"));
        assert!(!reads_a_file("view_image"), "an image is no text");
    }
}
