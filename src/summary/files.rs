//! The files that an agent read and changed, by the calls of its tools.

pub(super) mod patch;
pub mod skills;
pub(super) mod tools;

pub use tools::reads_a_file;

use super::{
    shell::{self, Use},
    span::Span,
};
use crate::{
    conversation::{
        entry::{Body, Entry, Unparsed},
        message::{Message, ToolCall, outline::Role},
    },
    ids::CallId,
    redact::Clean,
    settings::{FileOperation, FileTool},
};
use memchr::memmem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashSet;
use tools::{COMMANDED, KNOWN, PATCHES};

/// Files, each list from the one touched longest ago to the newest, and no longer than `MOST_STORED`: every compaction
/// carries them on, so without a limit each would be larger than the one before.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct FileLists {
    /// Read and not changed.
    pub read_files: Vec<String>,
    /// Made, changed or removed.
    pub modified_files: Vec<String>,
    /// Files that were read earlier and are not named any more. One that is read again counts twice.
    #[serde(skip_serializing_if = "is_zero")]
    pub read_files_left_out: u64,
    /// Files that were changed earlier and are not named any more.
    #[serde(skip_serializing_if = "is_zero")]
    pub modified_files_left_out: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Number of files that a summary names in each list, the newest.
const MOST_FILES: usize = 50;

/// Part of the limit of both lists that files which were only read have: a reader needs those that were changed more.
const READ_FILES_SHARE: u64 = 3;

/// Number of files that are stored in each list: twice as many, about 12 KB with the paths of a common project.
const MOST_STORED: usize = 100;

/// Longest path, in bytes: Linux's `PATH_MAX`, the largest of all supported systems.
const LONGEST_PATH: usize = 4_096;

impl FileLists {
    /// The files of a span, on top of those that its previous summary lists. `tools` precede the known ones. Lists of a
    /// hook's summary belong to the hook and are skipped. `clean` redacts each path.
    #[must_use]
    pub fn of(span: &Span<'_>, tools: &[FileTool], clean: &dyn Fn(&str) -> Clean) -> Self {
        let mut lists = Self::default();
        let failed = failed_calls(span);
        for entry in span.entries() {
            match &entry.body {
                Body::Compaction(it) if !it.from_hook() => {
                    lists.merge(it.details.as_ref().map(Unparsed::read).as_ref())
                }
                Body::BranchSummary(it) if !it.from_hook() => {
                    lists.merge(it.details.as_ref().map(Unparsed::read).as_ref())
                }
                Body::Message(body) if !body.outline.calls.is_empty() => {
                    if let Some(Message::Assistant(answer)) = entry.message_once().as_deref() {
                        let called = answer.calls().map(|call| (call, failed.contains(&call.id)));
                        called
                            .filter(|(call, failed)| !failed || does_more(call))
                            .for_each(|(call, _)| lists.call(call, tools));
                    }
                }
                _ => {}
            }
        }
        for path in lists.read_files.iter_mut().chain(&mut lists.modified_files) {
            *path = clean(path).into_string();
        }
        lists
    }

    fn merge(&mut self, details: Option<&Value>) {
        let Some(other) = details.and_then(|details| Self::deserialize(details).ok()) else {
            return;
        };
        // A compaction carries the count of those before it, so the largest is the newest.
        self.read_files_left_out = self.read_files_left_out.max(other.read_files_left_out);
        self.modified_files_left_out = self.modified_files_left_out.max(other.modified_files_left_out);
        for path in other.read_files {
            self.touch(&path, FileOperation::Read);
        }
        for path in other.modified_files {
            self.touch(&path, FileOperation::Edit);
        }
    }

    fn call(&mut self, call: &ToolCall, tools: &[FileTool]) {
        let Ok(arguments) = serde_json::from_str::<Value>(&call.arguments) else {
            return;
        };
        let is_told = |path: &str| !shell::is_shell(&call.name) || !is_scratch(path);
        for (path, operation) in files_of(&call.name, &arguments, tools).into_iter().filter(|(path, _)| is_told(path)) {
            self.touch(&path, operation);
        }
    }

    /// Moves a file to the end of its list. A changed file is not in the list of files that were only read.
    fn touch(&mut self, path: &str, operation: FileOperation) {
        let path = path.trim();
        if path.is_empty() || path.len() > LONGEST_PATH || path.contains(['\n', '\r']) || path.contains("://") {
            return;
        }
        if operation == FileOperation::Read {
            let path = without_lines(path);
            if !self.modified_files.iter().any(|it| it == path) {
                move_to_end(&mut self.read_files, path, &mut self.read_files_left_out);
            }
        } else {
            self.read_files.retain(|it| it != path);
            move_to_end(&mut self.modified_files, path, &mut self.modified_files_left_out);
        }
    }

    /// The lists as the end of a summary has them, with as many files as fit into `cap` tokens: changed files first, and
    /// within a third of the cap those that were only read. Empty if not even one fits.
    #[must_use]
    pub fn tags_within(&self, cap: u64, measure: &dyn Fn(&str) -> u64) -> String {
        let most = |fits: &dyn Fn(usize) -> bool| {
            let mut halves = std::iter::successors(Some(MOST_FILES), |most| (*most > 0).then_some(most / 2));
            halves.find(|most| fits(*most)).unwrap_or_default()
        };
        let modified = most(&|modified| measure(&self.lists(0, modified)) <= cap);
        let with_read = cap.min(measure(&self.lists(0, modified)) + cap / READ_FILES_SHARE);
        let read = most(&|read| measure(&self.lists(read, modified)) <= with_read);
        if read + modified == 0 { String::new() } else { self.lists(read, modified) }
    }

    /// The lists as the end of a summary has them: the newest `most` of each, and the number of the others.
    #[must_use]
    pub fn tags(&self, most: usize) -> String {
        self.lists(most, most)
    }

    fn lists(&self, read: usize, modified: usize) -> String {
        let mut text = String::new();
        let lists = [
            ("read-files", &self.read_files, self.read_files_left_out, read),
            ("modified-files", &self.modified_files, self.modified_files_left_out, modified),
        ];
        for (tag, files, before, most) in lists {
            if files.is_empty() {
                continue;
            }
            let unnamed = files.len().saturating_sub(most);
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&format!("<{tag}>\n"));
            for file in &files[unnamed..] {
                text.push_str(file);
                text.push('\n');
            }
            let left_out = before.saturating_add(unnamed as u64);
            if left_out > 0 {
                text.push_str(&format!("… ({left_out} more files, touched earlier)\n"));
            }
            text.push_str(&format!("</{tag}>"));
        }
        text
    }
}

/// A path without the lines that a tool shows of its file: `a.rs:10`, `a.rs:10-25`, `a.rs:1-5,10-25`.
fn without_lines(path: &str) -> &str {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_range = |text: &str| {
        text.split_once('-').map_or_else(|| is_number(text), |(from, to)| is_number(from) && is_number(to))
    };
    match path.rsplit_once(':') {
        Some((file, lines)) if !file.is_empty() && lines.split(',').all(is_range) => file,
        _ => path,
    }
}

/// Whether a file that a command writes or removes is none of the work: the log of a run, a file beside the project.
fn is_scratch(path: &str) -> bool {
    let is_log = [".log", ".out", ".err", ".pid"].iter().any(|end| path.ends_with(end));
    is_log || path.strip_prefix("/tmp/").is_some_and(|rest| !rest.contains('/'))
}

/// The calls of which the results are errors.
fn failed_calls(span: &Span<'_>) -> HashSet<CallId> {
    // Results are most of a conversation: only those that may say it are read.
    let may_fail = |line: &str| {
        ["\"isError\":true", "\"isError\": true"]
            .iter()
            .any(|it| memmem::find(line.as_bytes(), it.as_bytes()).is_some())
    };
    let is_result = |entry: &&Entry| entry.is_from(Role::ToolResult) && may_fail(entry.line());
    let failed = span.entries().filter(is_result).filter_map(|entry| match entry.message_once().as_deref() {
        Some(Message::ToolResult(result)) if result.is_error => Some(result.call.clone()),
        _ => None,
    });
    failed.collect()
}

/// Whether a failed call may have done a part of its work: a script goes on until the command that fails.
fn does_more(call: &ToolCall) -> bool {
    let arguments = || serde_json::from_str::<Value>(&call.arguments).ok();
    shell::is_shell(&call.name) && arguments().is_some_and(|arguments| !shell::runs_one_command(&arguments))
}

/// A summary without the lists of files at its end. A list further up is a quotation and stays.
#[must_use]
pub fn without_files(summary: &str) -> String {
    let mut kept = summary.trim_end();
    while let Some(before) = ["read-files", "modified-files"].iter().find_map(|tag| {
        let inside = kept.strip_suffix(&format!("</{tag}>"))?;
        let open = format!("<{tag}>");
        let at = inside.rfind(&open).filter(|at| *at == 0 || inside[..*at].ends_with('\n'))?;
        Some(&kept[..at])
    }) {
        kept = before.trim_end();
    }
    kept.to_owned()
}

/// The files that a call touches, with what it does to each. `tools` precede the known ones.
#[must_use]
pub fn files_of(tool: &str, arguments: &Value, tools: &[FileTool]) -> Vec<(String, FileOperation)> {
    let text = |argument: &str| arguments.get(argument).and_then(Value::as_str).map(str::to_owned);
    if let Some(own) = tools.iter().find(|it| it.tool == tool) {
        return text(&own.argument).map(|path| (path, own.operation)).into_iter().collect();
    }
    if shell::is_shell(tool) {
        return shell::uses(tool, arguments).into_iter().filter_map(of_use).collect();
    }
    if PATCHES.contains(&tool) {
        let patch = text("input").or_else(|| text("patch")).or_else(|| text("patchText"));
        return patch.map(|patch| files_of_patch(&patch)).unwrap_or_default();
    }
    if COMMANDED.contains(&tool) {
        let operation = match text("command").as_deref() {
            Some("view") => FileOperation::Read,
            Some("create") => FileOperation::Write,
            _ => FileOperation::Edit,
        };
        return text("path").map(|path| (path, operation)).into_iter().collect();
    }
    KNOWN
        .iter()
        .filter(|(known, ..)| *known == tool)
        .find_map(|(_, argument, operation)| Some((text(argument)?, *operation)))
        .into_iter()
        .collect()
}

/// The file that a command of a shell changes. The output of `cat` is a part of it, or several files: it is not one that was read.
fn of_use(used: Use) -> Option<(String, FileOperation)> {
    match used {
        Use::Removed(path) => Some((path, FileOperation::Delete)),
        Use::Changed(path) | Use::Written(path) => Some((path, FileOperation::Edit)),
        Use::Shown(_) => None,
    }
}

/// The files of a patch in Codex's form.
fn files_of_patch(patch: &str) -> Vec<(String, FileOperation)> {
    let operation = |change| match change {
        patch::Change::Added => FileOperation::Write,
        patch::Change::Updated => FileOperation::Edit,
        patch::Change::Deleted => FileOperation::Delete,
    };
    patch::files(patch).into_iter().map(|file| (file.path, operation(file.change))).collect()
}

fn move_to_end(files: &mut Vec<String>, path: &str, left_out: &mut u64) {
    files.retain(|it| it != path);
    if files.len() >= MOST_STORED {
        files.remove(0);
        *left_out = left_out.saturating_add(1);
    }
    files.push(path.to_owned());
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn lists(calls: &[(&str, Value)], tools: &[FileTool]) -> FileLists {
        let mut lists = FileLists::default();
        for (name, arguments) in calls {
            let call = ToolCall { id: "c".into(), name: (*name).to_owned(), arguments: arguments.to_string() };
            lists.call(&call, tools);
        }
        lists
    }

    #[test]
    fn a_changed_file_is_not_among_those_read() {
        let found = lists(
            &[
                ("read", json!({"path": "a"})),
                ("Read", json!({"file_path": "b"})),
                ("edit", json!({"path": "a"})),
                ("read", json!({"path": "a"})),
                ("str_replace_editor", json!({"command": "view", "path": "c"})),
                ("apply_patch", json!({"input": "*** Begin Patch\n*** Update File: d\n*** Delete File: b\n"})),
                ("bash", json!({"command": "cat e"})),
            ],
            &[],
        );
        assert_eq!(found.read_files, ["c"]);
        assert_eq!(found.modified_files, ["a", "d", "b"]);
    }

    #[test]
    fn files_are_changed_by_scripts_and_by_code() {
        let patch = |file: &str| format!("*** Begin Patch\n*** Update File: {file}\n@@\n-old\n+new\n*** End Patch");
        let code = format!("const patch = {};\ntext(await tools.apply_patch(patch));", json!(patch("src/b.rs")));
        let script = format!("apply_patch <<'EOF'\n{}\nEOF", patch("src/c.rs"));
        let found = lists(
            &[
                ("exec", json!({ "input": code })),
                ("bash", json!({ "command": script })),
                ("shell", json!({"command": ["apply_patch", patch("src/e.rs")]})),
                ("bash", json!({"command": "cd src && sed -i s/a/b/ d.rs"})),
                ("bash", json!({"command": "make > build.log 2>&1; make > /tmp/x.txt"})),
            ],
            &[],
        );
        assert_eq!(found.modified_files, ["src/b.rs", "src/c.rs", "src/e.rs", "src/d.rs"]);
    }

    #[test]
    fn a_call_that_failed_touches_no_file() {
        let entry = |message: Value| {
            let line = json!({"type": "message", "id": "e", "parentId": null, "timestamp": "", "message": message});
            std::sync::Arc::new(Entry::parse(line.to_string().into()).expect("an entry"))
        };
        let mut entries = Vec::new();
        for (id, tool, arguments, failed) in [
            ("a", "edit", json!({"path": "a.rs", "oldText": "x", "newText": "y"}), true),
            ("b", "write", json!({"path": "b.rs", "content": "\"isError\":true"}), false),
            ("c", "bash", json!({"command": "sed -i s/a/b/ c.rs"}), true),
            ("d", "bash", json!({"command": "sed -i s/a/b/ d.rs && cargo test"}), true),
            ("f", "read", json!({"path": "f.rs"}), true),
        ] {
            let call = json!({"type": "toolCall", "id": id, "name": tool, "arguments": arguments});
            entries.push(entry(json!({"role": "assistant", "content": [call], "stopReason": "toolUse"})));
            entries.push(entry(json!({"role": "toolResult", "toolCallId": id, "toolName": tool, "isError": failed,
                "content": [{"type": "text", "text": "Error: not found"}]})));
        }
        let found = FileLists::of(&Span::of(&entries), &[], &|path| Clean::assembled(path));
        assert_eq!((found.read_files, found.modified_files), (vec![], vec!["b.rs".to_owned(), "d.rs".to_owned()]));
    }

    #[test]
    fn a_tool_of_the_settings_wins_over_a_known_one() {
        let own = FileTool { tool: "read".into(), argument: "uri".into(), operation: FileOperation::Delete };
        let found = lists(&[("read", json!({"uri": "x", "path": "y"}))], &[own]);
        assert_eq!(found.modified_files, ["x"]);
    }

    #[test]
    fn changed_files_have_their_place_before_those_that_were_read() {
        let named = |count: usize, name: &str| (0..count).map(|n| format!("src/{name}/{n}.rs")).collect::<Vec<_>>();
        let measure = |text: &str| text.lines().count() as u64;
        let files =
            FileLists { read_files: named(40, "read"), modified_files: named(20, "changed"), ..FileLists::default() };
        let tags = files.tags_within(30, &measure);
        assert_eq!((tags.matches("src/changed").count(), tags.matches("src/read").count()), (20, 3), "{tags}");
        assert!(measure(&tags) <= 30 && tags.contains("… (37 more files, touched earlier)"));
        assert_eq!(files.tags_within(200, &measure), files.tags(50));
        assert_eq!(files.tags_within(4, &measure), "");
        let read = FileLists { read_files: named(4, "read"), ..FileLists::default() };
        assert_eq!(read.tags_within(30, &measure), read.tags(50));
    }

    #[test]
    fn a_part_of_a_file_is_the_file() {
        let read = |path: &str| ("read", json!({"path": path}));
        let paths =
            ["a.rs:520-625", "a.rs", "b.rs:7", "c.rs:1-5,9-12,20", "d.rs:10", ":5", "e:", "f:x", "g:1-", "C:\\h.rs:3"];
        let mut calls = paths.map(read).to_vec();
        calls.push(("edit", json!({"path": "d.rs"})));
        calls.push(read("d.rs:1-9"));
        let found = lists(&calls, &[]);
        assert_eq!(found.read_files, ["a.rs", "b.rs", "c.rs", ":5", "e:", "f:x", "g:1-", "C:\\h.rs"]);
        assert_eq!(found.modified_files, ["d.rs"]);
    }

    #[test]
    fn the_newest_are_named_and_the_rest_counted() {
        let files = FileLists {
            read_files: (0..5).map(|n| format!("r{n}")).collect(),
            modified_files: vec!["m".to_owned()],
            ..FileLists::default()
        };
        assert_eq!(
            files.tags(2),
            "<read-files>\nr3\nr4\n… (3 more files, touched earlier)\n</read-files>\n<modified-files>\nm\n</modified-files>"
        );
        assert_eq!(FileLists::default().tags(50), "");
    }

    /// Each compaction continues the lists of the one before.
    #[test]
    fn the_lists_of_thousands_of_compactions_stay_small() {
        let mut details = json!({});
        for compaction in 0..3_000 {
            let mut lists = FileLists::default();
            lists.merge(Some(&details));
            for file in 0..3 {
                lists.touch(&format!("/src/read_{compaction}_{file}.rs"), FileOperation::Read);
                lists.touch(&format!("/src/changed_{compaction}_{file}.rs"), FileOperation::Edit);
            }
            lists.touch(&"x".repeat(LONGEST_PATH + 1), FileOperation::Read);
            details = json!(lists);
            assert!(details.to_string().len() < 10_000);
        }
        let lists: FileLists = serde_json::from_value(details).expect("lists");
        assert_eq!((lists.read_files.len(), lists.modified_files.len()), (MOST_STORED, MOST_STORED));
        assert_eq!(lists.read_files.last().map(String::as_str), Some("/src/read_2999_2.rs"));
        assert_eq!(lists.read_files_left_out, 9_000 - 100);
        assert!(lists.tags(50).contains("… (8950 more files, touched earlier)"), "{}", lists.tags(50));
        let few = json!(FileLists { read_files: vec!["a".to_owned()], ..FileLists::default() });
        assert_eq!(few, json!({"readFiles": ["a"], "modifiedFiles": []}));
    }

    #[test]
    fn lists_of_files_are_not_part_of_a_summary() {
        let text = "## Goal\nx\n\n<read-files>\n/a\n</read-files>\n\n<modified-files>\n/b\n</modified-files>";
        assert_eq!(without_files(text), "## Goal\nx");
        assert_eq!(without_files("</read-files> <read-files>"), "</read-files> <read-files>");
        let quoted = "it says <read-files>\n## Goal\nx\n\n<modified-files>\n/b\n</modified-files>\n";
        assert_eq!(without_files(quoted), "it says <read-files>\n## Goal\nx");
    }
}
