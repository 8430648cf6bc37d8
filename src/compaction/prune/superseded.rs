//! Reads of files that a later read of the same file stands for.

use super::{Rules, Standing};
use crate::{
    conversation::{
        entry::Entry,
        message::{Message, ToolCall},
        tokens::Estimator,
    },
    ids::CallId,
    settings::FileOperation,
    summary::files,
};
use serde_json::Value;
use std::{collections::HashMap, sync::Arc};

/// Names of arguments that say neither which file nor which part of it: the command of an editor's tool that views.
const NO_PART: &[&str] = &["command"];

/// A read whose result is in the context.
struct Read<'a> {
    entry: &'a Arc<Entry>,
    part: Part,
    standing: Standing,
    /// Whether the file was changed after it.
    stale: bool,
}

/// The part of a file that a read returns.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    /// All of it, or as much as the tool returns at once.
    Whole,
    /// The part that these arguments name, as JSON.
    Of(String),
}

impl Read<'_> {
    /// Whether this read stands for an older one of the same file: it returns the same part, or the whole file, or the
    /// file was changed in between. A whole read that is smaller than a part of the file was cut by its tool.
    fn supersedes(&self, older: &Read<'_>, estimator: Estimator) -> bool {
        older.stale
            || self.part == older.part
            || self.part == Part::Whole && self.entry.tokens(estimator) >= older.entry.tokens(estimator)
    }
}

/// The reads that newer reads stand for and that may be cut, oldest first. Failed calls read and change nothing.
pub(super) fn superseded<'a>(
    entries: &'a [Arc<Entry>],
    rules: Rules<'_>,
    estimator: Estimator,
    standing: &dyn Fn(&Entry) -> Standing,
) -> Vec<&'a Arc<Entry>> {
    let mut calls: HashMap<&CallId, &ToolCall> = HashMap::new();
    let mut reads: HashMap<String, Vec<Read<'a>>> = HashMap::new();
    let mut found = Vec::new();
    for entry in entries {
        match entry.message() {
            Some(Message::Assistant(answer)) if !answer.failed() => {
                calls.extend(answer.calls().map(|call| (&call.id, call)));
            }
            Some(Message::ToolResult(result)) if !result.is_error => {
                let Some(call) = calls.get(&result.call) else { continue };
                let Ok(arguments) = serde_json::from_str::<Value>(&call.arguments) else { continue };
                for (path, operation) in files::files_of(&call.name, &arguments, rules.tools) {
                    let of_file = reads.entry(plain(&path).to_owned()).or_default();
                    if operation != FileOperation::Read {
                        of_file.iter_mut().for_each(|read| read.stale = true);
                        continue;
                    }
                    let standing = if result.pruned { Standing::Edited } else { standing(entry) };
                    if standing == Standing::Edited {
                        continue;
                    }
                    let newer = Read { entry, part: part(&arguments, &path), standing, stale: false };
                    of_file.retain(|older| {
                        let gone = newer.supersedes(older, estimator);
                        if gone && older.standing == Standing::Free {
                            found.push(older.entry);
                        }
                        !gone
                    });
                    of_file.push(newer);
                }
            }
            _ => {}
        }
    }
    found
}

/// A path without the parts that name the same file.
fn plain(path: &str) -> &str {
    let path = path.trim();
    path.strip_prefix("./").unwrap_or(path)
}

/// The part that a read returns, by its arguments beside the path.
fn part(arguments: &Value, path: &str) -> Part {
    named_part(arguments, path).map_or(Part::Whole, Part::Of)
}

/// The arguments of a read that name a part of its file, as JSON; `None` for the whole file.
#[must_use]
pub fn named_part(arguments: &Value, path: &str) -> Option<String> {
    let named = |name: &str, value: &Value| !value.is_null() && !NO_PART.contains(&name) && value != path;
    let mut rest: Vec<_> = arguments.as_object().into_iter().flatten().filter(|it| named(it.0, it.1)).collect();
    rest.sort_by_key(|(name, _)| *name);
    (!rest.is_empty()).then(|| serde_json::json!(rest).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{compaction::lines, conversation::path::Path, settings::FileTool};
    use serde_json::json;

    /// Calls of tools with the size of each result in tokens. A call of `!tool` fails.
    fn history(calls: &[(&str, Value, u32)]) -> Path {
        let mut messages = Vec::new();
        for (at, (tool, arguments, tokens)) in calls.iter().enumerate() {
            let failed = tool.starts_with('!');
            let name = tool.trim_start_matches('!');
            let call = json!({"type": "toolCall", "id": format!("c{at}"), "name": name, "arguments": arguments});
            let text = "abc ".repeat(*tokens as usize);
            for message in [
                json!({"role": "assistant", "content": [call], "stopReason": "toolUse"}),
                json!({"role": "toolResult", "toolCallId": format!("c{at}"), "toolName": tool, "isError": failed,
                    "content": [{"type": "text", "text": text}]}),
            ] {
                messages.push(json!({"type": "message", "message": message}));
            }
        }
        lines::path(&messages)
    }

    fn read(path: &str) -> (&'static str, Value, u32) {
        ("read", json!({ "path": path }), 10)
    }

    fn lines_of(path: &str, offset: u32, tokens: u32) -> (&'static str, Value, u32) {
        ("read", json!({"path": path, "offset": offset, "limit": 50}), tokens)
    }

    fn edit(path: &str) -> (&'static str, Value, u32) {
        ("edit", json!({"path": path, "oldText": "a", "newText": "b"}), 10)
    }

    /// The calls whose results are superseded, by their numbers.
    fn found(calls: &[(&str, Value, u32)], tools: &[FileTool], standing: &dyn Fn(&Entry) -> Standing) -> Vec<usize> {
        let path = history(calls);
        let settings = Default::default();
        let rules = Rules { settings: &settings, tools };
        let ids = superseded(&path, rules, Estimator::Chars, standing);
        let places = ids.iter().filter_map(|entry| path.position(&entry.id));
        places.map(|place| place / 2).collect()
    }

    #[test]
    fn a_read_is_superseded_by_a_newer_one_that_has_its_part() {
        let command = |name: &str| ("bash", json!({ "command": name }), 10);
        let view = |range: Value| {
            ("str_replace_based_edit_tool", json!({"command": "view", "path": "a", "view_range": range}), 10)
        };
        for (calls, expected) in [
            (vec![read("a"), read("a"), read("a")], vec![0, 1]),
            (vec![read("a"), read("./a ")], vec![0]),
            (vec![read("a"), read("b"), command("cat a")], vec![]),
            (vec![lines_of("a", 1, 10), lines_of("a", 50, 10), lines_of("a", 1, 10)], vec![0]),
            (vec![lines_of("a", 1, 10), read("a")], vec![0]),
            (vec![lines_of("a", 9_000, 11), read("a")], vec![]),
            (vec![read("a"), lines_of("a", 1, 10)], vec![]),
            (vec![read("a"), edit("a")], vec![]),
            (vec![read("a"), edit("a"), lines_of("a", 1, 5)], vec![0]),
            (vec![read("a"), edit("b"), lines_of("a", 1, 5)], vec![]),
            (vec![read("a"), edit("a"), lines_of("a", 1, 5), lines_of("a", 50, 5)], vec![0]),
            (vec![read("a"), ("!edit", json!({"path": "a"}), 10), lines_of("a", 1, 5)], vec![]),
            (vec![read("a"), ("!read", json!({"path": "a"}), 10)], vec![]),
            (vec![read("a"), ("write", json!({"path": "a", "content": "x"}), 1), read("a")], vec![0]),
            (vec![view(json!([1, 9])), view(json!([1, 9])), view(json!([2, 9]))], vec![0]),
            (vec![view(json!([1, 9])), view(Value::Null)], vec![0]),
        ] {
            assert_eq!(found(&calls, &[], &|_| Standing::Free), expected, "{calls:?}");
        }
    }

    #[test]
    fn the_settings_say_which_tool_reads_which_file() {
        let open = |path: &str| ("open", json!({ "uri": path }), 10);
        let own = FileTool { tool: "open".into(), argument: "uri".into(), operation: FileOperation::Read };
        let calls = [open("a"), open("a")];
        assert_eq!(found(&calls, &[own], &|_| Standing::Free), [0]);
        assert_eq!(found(&calls, &[], &|_| Standing::Free), [0; 0]);
    }

    #[test]
    fn a_pinned_read_stays_and_one_that_is_gone_stands_for_none() {
        let calls = [read("a"), read("a"), read("a")];
        let second =
            |standing: Standing| move |entry: &Entry| if entry.id.as_str() == "e3" { standing } else { Standing::Free };
        assert_eq!(found(&calls, &[], &second(Standing::Pinned)), [0]);
        assert_eq!(found(&calls, &[], &second(Standing::Edited)), [0]);
        let last = |entry: &Entry| if entry.id.as_str() == "e5" { Standing::Edited } else { Standing::Free };
        assert_eq!(found(&calls, &[], &last), [0], "the second one is the newest in the context");
    }

    #[test]
    fn results_of_a_failed_answer_count_for_nothing() {
        let settings = Default::default();
        let rules = Rules { settings: &settings, tools: &[] };
        for (stop, expected) in [("toolUse", 1), ("aborted", 0)] {
            let read = |id: &str, stop: &str| {
                let call = json!({"type": "toolCall", "id": id, "name": "read", "arguments": {"path": "a"}});
                [
                    json!({"role": "assistant", "content": [call], "stopReason": stop}),
                    json!({"role": "toolResult", "toolCallId": id, "toolName": "read",
                        "content": [{"type": "text", "text": "abc"}]}),
                ]
                .map(|message| json!({"type": "message", "message": message}))
            };
            let path = lines::path(&[read("c", "toolUse"), read("d", stop)].concat());
            let found = superseded(&path, rules, Estimator::Chars, &|_| Standing::Free);
            assert_eq!(found.len(), expected, "{stop}");
        }
    }
}
