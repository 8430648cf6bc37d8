//! Line numbers of a file, in the result of a call that read it.

use crate::{
    conversation::message::ToolCall,
    summary::files::tools::{PATHS, file_read},
};
use serde_json::Value;

/// The line of the file that the result of a call begins with, from 1. `None` if the call reads no file, or names the
/// lines in its path.
pub(super) fn first_line(call: &ToolCall) -> Option<usize> {
    const STARTS: [&str; 5] = ["offset", "start_line", "startLine", "line_start", "start_line_one_indexed"];
    const OTHERS: [&str; 6] = ["limit", "i", "description", "explanation", "encoding", "should_read_entire_file"];
    let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
    let path = file_read(&call.name, &arguments)?;
    // An argument that is not understood may choose the lines.
    let is_known = |name: &String| [&PATHS[..], &STARTS, &OTHERS].concat().contains(&name.as_str());
    if has_lines(path) || path.contains("://") || !arguments.as_object()?.keys().all(is_known) {
        return None;
    }
    let start = match STARTS.iter().find_map(|name| arguments.get(*name).filter(|start| !start.is_null())) {
        Some(start) => Some(usize::try_from(start.as_u64()?).ok()?),
        None => None,
    };
    // Gemini CLI counts its `offset` from 0, and it alone says `absolute_path`.
    let before = usize::from(arguments.get("absolute_path").is_some() && arguments.get("offset").is_some());
    Some(start.unwrap_or(1).saturating_add(before).max(1))
}

/// Whether a path ends with lines, as `a.rs:10-20`.
fn has_lines(path: &str) -> bool {
    path.rsplit_once(':').is_some_and(|(_, lines)| {
        !lines.is_empty() && lines.chars().all(|char| char.is_ascii_digit() || matches!(char, '-' | ',' | '+'))
    })
}

/// The line numbers of a text that may have lost lines in its middle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineNumbers {
    first: usize,
    /// The line of the text that stands for those that were left out.
    gap: Option<usize>,
    /// The number of lines before and after the gap was made.
    lines: (usize, usize),
    /// Lines at the end that are no lines of the file.
    remarks: usize,
}

impl LineNumbers {
    /// The numbers of the lines of `text`, the result `raw` after redaction (`clean`) and without its middle (`gap`).
    /// `None` where the lines have numbers of their own, or are not those of the file.
    pub(super) fn of(first: usize, raw: &str, clean: &str, text: &str, gap: &str) -> Option<Self> {
        let lines = clean.lines().count();
        // A secret of several lines is one line after redaction.
        if raw.lines().count() != lines || is_numbered(raw) || is_wrapped(raw) {
            return None;
        }
        // A remark of the tool stands at the end.
        let remarks = text.lines().rev().take_while(|line| line.trim().is_empty() || is_remark(line)).count();
        let gap = (text.len() != clean.len()).then(|| text.lines().position(|line| line == gap)).flatten();
        Some(Self { first, gap, lines: (lines, text.lines().count()), remarks })
    }

    /// The number of a line of the text, which is counted from 0.
    pub(super) fn number(&self, line: usize) -> Option<usize> {
        match self.gap {
            _ if line + self.remarks >= self.lines.1 => None,
            Some(gap) if line == gap => None,
            Some(gap) if line > gap => self.first.checked_add(line + self.lines.0)?.checked_sub(self.lines.1),
            _ => self.first.checked_add(line),
        }
    }
}

/// Whether most of the first lines begin with a number: `12→`, `12:`, `12|` or `12` and a tab.
fn is_numbered(text: &str) -> bool {
    let begins = |line: &&str| {
        let rest = line.trim_start().trim_start_matches(|char: char| char.is_ascii_digit());
        rest.len() < line.trim_start().len() && rest.starts_with(['→', ':', '|', '\t', '#'])
    };
    let head: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).take(12).collect();
    head.iter().filter(|line| begins(line)).count() * 2 > head.len()
}

/// Whether a line is a remark of the tool: `[200 more lines in the file]`.
fn is_remark(line: &str) -> bool {
    let line = line.trim();
    line.starts_with('[') && line.ends_with(']') && line.contains(' ')
}

/// Whether a tool put the file into a frame of its own.
fn is_wrapped(text: &str) -> bool {
    const FRAMES: [&str; 9] =
        ["<file", "<path", "<content", "<result", "IMPORTANT: ", "--- FILE ", "```", "File: ", "Lines "];
    let head = text.trim_start();
    FRAMES.iter().any(|frame| head.starts_with(frame))
}

/// The numbers of lines in a short form: `12`, `12-14,80`. Runs that blank lines interrupt are one.
pub(super) fn short(numbers: &[usize]) -> String {
    /// The most runs that are listed. More are one, from the first line to the last.
    const MOST_RUNS: usize = 3;
    const NEAR: usize = 3;
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &number in numbers {
        match runs.last_mut() {
            Some((_, last)) if number >= *last && number <= *last + NEAR => *last = number,
            _ => runs.push((number, number)),
        }
    }
    if runs.len() > MOST_RUNS {
        runs = vec![(numbers.iter().copied().min().unwrap_or(0), numbers.iter().copied().max().unwrap_or(0))];
    }
    let run = |(first, last): &(usize, usize)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    runs.iter().map(run).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn first(name: &str, arguments: Value) -> Option<usize> {
        first_line(&ToolCall { id: "c".into(), name: name.to_owned(), arguments: arguments.to_string() })
    }

    #[test]
    fn the_first_line_is_that_of_the_call() {
        assert_eq!(first("read", json!({"path": "a.rs"})), Some(1));
        assert_eq!(first("Read", json!({"file_path": "a.rs", "offset": 40, "limit": 10})), Some(40));
        assert_eq!(first("read_file", json!({"absolute_path": "/a.rs", "offset": 40})), Some(41));
        assert_eq!(first("view_file", json!({"path": "a.rs", "start_line": 7})), Some(7));
        assert_eq!(first("read", json!({"path": "a.rs", "offset": 0})), Some(1));
        assert_eq!(first("read", json!({"path": "a.rs", "offset": -3})), None);
        assert_eq!(first("view", json!({"path": "a.rs", "view_range": [30, 59]})), None, "it may choose the lines");
        assert_eq!(first("open_browser", json!({"path": "http://x"})), None);
        assert_eq!(first("thread_list", json!({"path": "a"})), None);
        assert_eq!(first("read", json!({"path": "a.rs:150-195"})), None, "the label has them");
        assert_eq!(first("bash", json!({"command": "cat a.rs"})), None);
        assert_eq!(first("write", json!({"path": "a.rs"})), None);
        assert_eq!(first("read", json!({"path": "a.rs", "offset": u64::MAX})), Some(usize::MAX));
    }

    #[test]
    fn lines_after_a_gap_have_their_numbers() {
        let raw: String = (10..30).map(|at| format!("line {at}\n")).collect();
        let numbers = LineNumbers::of(10, &raw, &raw, &raw, "[…]").expect("numbers");
        assert_eq!((numbers.number(0), numbers.number(19)), (Some(10), Some(29)));
        let cut = "line 10\nline 11\n[…]\nline 28\nline 29";
        let numbers = LineNumbers::of(10, &raw, &raw, cut, "[…]").expect("numbers");
        assert_eq!((numbers.number(1), numbers.number(2)), (Some(11), None));
        assert_eq!((numbers.number(3), numbers.number(4)), (Some(28), Some(29)));
    }

    #[test]
    fn a_remark_of_the_tool_is_no_line_of_the_file() {
        let text = "fn a() {\n}\n\n[200 more lines in the file]";
        let numbers = LineNumbers::of(1, text, text, text, "[…]").expect("numbers");
        assert_eq!([0, 1, 2, 3].map(|line| numbers.number(line)), [Some(1), Some(2), None, None]);
    }

    #[test]
    fn lines_with_numbers_of_their_own_or_in_a_frame_get_none() {
        let none = |raw: &str, clean: &str| assert_eq!(LineNumbers::of(1, raw, clean, clean, "[…]"), None, "{raw}");
        none("    1→fn a() {\n    2→}\n", "    1→fn a() {\n    2→}\n");
        none("1: fn a() {\n2: }", "1: fn a() {\n2: }");
        none("00001| fn a()\n00002| {}", "00001| fn a()\n00002| {}");
        none("<file>\nfn a() {}\n</file>", "<file>\nfn a() {}\n</file>");
        none("key:\nabc\ndef\nnext", "key:\n[REDACTED:key]\nnext");
        let text = "port 8080: open\nfn a() {}";
        assert!(LineNumbers::of(1, text, text, text, "[…]").is_some());
    }

    #[test]
    fn near_lines_are_one_run_and_many_runs_are_one() {
        assert_eq!(short(&[12]), "12");
        assert_eq!(short(&[12, 13, 15, 80]), "12-15,80");
        assert_eq!(short(&[1, 10, 20, 30]), "1-30");
        assert_eq!(short(&[40, 41, 3]), "40-41,3", "a second reading of the same file");
    }
}
