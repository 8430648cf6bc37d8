//! The output of a tool, without the report of its harness around it: headers with times and exit codes, JSON with the output as
//! one string, colors, meters of progress, reminders.

use crate::{redact::Clean, text::values};
use serde_json::Value;
use std::borrow::Cow;

/// An output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Output<'a> {
    pub text: Cow<'a, str>,
    /// Whether a report gives an exit code, and one that is not 0.
    pub failed: bool,
    /// The name of the process or script that goes on after this output.
    pub running: Option<String>,
}

/// Beginnings of the first line of a report, in small letters.
const FIRST: [&str; 6] =
    ["chunk id: ", "exit code: ", "wall time", "script ", "warning: truncated output", "process exited with code "];

/// Beginnings of the other lines of a report.
const MORE: [&str; 4] =
    ["original token count: ", "total output lines: ", "process running with session id ", "output:"];

/// Reads the result of a tool. `is_file`: it is a part of a file, of which each line counts.
pub(super) fn of(raw: &str, is_file: bool) -> Output<'_> {
    let reported = if is_file { Reported { text: raw, ..Reported::default() } } else { reported(raw) };
    let mut failed = reported.failed;
    let mut text = Cow::Borrowed(without_reminders(reported.text));
    if !is_file {
        text = map(text, |text| inside_of_json(text, &mut failed));
        text = map(text, without_colors);
        text = map(text, without_meters);
    }
    Output { text, failed, running: reported.running }
}

fn map<'a>(text: Cow<'a, str>, change: impl FnOnce(&str) -> Option<String>) -> Cow<'a, str> {
    match change(&text) {
        Some(changed) => Cow::Owned(changed),
        None => text,
    }
}

#[derive(Default)]
struct Reported<'a> {
    text: &'a str,
    failed: bool,
    running: Option<String>,
}

/// An output without the lines that report how its process ended. A second report may follow an empty line.
fn reported(raw: &str) -> Reported<'_> {
    let mut reported = Reported { text: raw, ..Reported::default() };
    let mut rest = raw;
    let mut began = false;
    while let Some((line, below)) = rest.split_once('\n').or((!rest.is_empty()).then_some((rest, ""))) {
        let is_first = FIRST.iter().any(|start| after(line, start).is_some_and(|rest| is_report(start, rest)));
        let is_more = began && MORE.iter().any(|start| after(line, start).is_some());
        if !(is_first || is_more || began && line.trim().is_empty()) {
            break;
        }
        began = true;
        let code = after(line, "process exited with code ").or_else(|| after(line, "exit code: "));
        reported.failed |= code.is_some_and(|code| code.trim() != "0") || after(line, "script failed").is_some();
        let running = ["process running with session id ", "script running with cell id "];
        if let Some(name) = running.iter().find_map(|start| after(line, start)) {
            reported.running = Some(name.trim().to_owned());
        }
        rest = below;
    }
    if began {
        reported.text = rest;
    }
    reported
}

/// The rest of a line after a beginning, in capital or small letters.
fn after<'a>(line: &'a str, start: &str) -> Option<&'a str> {
    let (head, rest) = line.split_at_checked(start.len())?;
    head.eq_ignore_ascii_case(start).then_some(rest)
}

/// Whether the rest of a line that begins like a report is that of one: an output may begin with the same word.
fn is_report(start: &str, rest: &str) -> bool {
    match start {
        "script " => ["completed", "failed", "running with cell id "].iter().any(|state| after(rest, state).is_some()),
        "wall time" => rest.ends_with(" seconds"),
        "exit code: " | "process exited with code " => rest.trim().parse::<i64>().is_ok(),
        _ => true,
    }
}

/// A text without the reminders that a harness adds to the end of a result. One in the middle is a quotation.
fn without_reminders(text: &str) -> &str {
    let mut rest = text;
    while rest.trim_end().ends_with("</system-reminder>")
        && let Some(at) = rest.rfind("<system-reminder>")
    {
        rest = rest[..at].trim_end();
    }
    rest
}

/// The lines in which an object has the output as one string, with that output in their place.
fn inside_of_json(text: &str, failed: &mut bool) -> Option<String> {
    let is_object = |line: &str| line.starts_with('{') && (line.contains("\"output\"") || line.contains("\"stdout\""));
    if !text.lines().any(is_object) {
        return None;
    }
    let mut whole = String::with_capacity(text.len());
    for line in text.lines() {
        let is_small = || values::check(line).is_ok();
        let value: Option<Value> = (is_object(line) && is_small()).then(|| serde_json::from_str(line).ok()).flatten();
        match value.as_ref().and_then(|value| output_of(value, failed)) {
            Some(output) => whole.push_str(&output),
            None => whole.push_str(line),
        }
        whole.push('\n');
    }
    whole.pop();
    Some(whole)
}

/// A clean text with the lines that a long string in JSON has as `\n`, each as a line of its own. A secret may end in such a
/// line, so this comes after redaction.
pub(super) fn unescaped(text: Clean) -> Clean {
    const LONG: usize = 400;
    let is_long = |line: &str| line.len() > LONG && line.contains("\":") && line.matches("\\n").nth(2).is_some();
    if !text.lines().any(is_long) {
        return text;
    }
    let line = |line: &str| match is_long(line) {
        true => line.replace("\\n", "\n").replace("\\\"", "\""),
        false => line.to_owned(),
    };
    Clean::assembled(text.lines().map(line).collect::<Vec<_>>().join("\n"))
}

/// The output in the object that a harness made of the run of a command.
fn output_of(value: &Value, failed: &mut bool) -> Option<String> {
    let code = value.get("exit_code").or_else(|| value.get("metadata")?.get("exit_code"));
    let is_run = code.is_some() || value.get("wall_time_seconds").is_some() || value.get("metadata").is_some();
    let text = |name: &str| value.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let output = match text("output") {
        Some(output) => output.to_owned(),
        None => [text("stdout"), text("stderr")].into_iter().flatten().collect::<Vec<_>>().join("\n"),
    };
    *failed |= is_run && code.and_then(Value::as_i64).is_some_and(|code| code != 0);
    is_run.then_some(output)
}

/// A text without the sequences that color it, and with the last state of each line that was written over.
fn without_colors(text: &str) -> Option<String> {
    let is_overwritten = |line: &str| line.trim_end_matches('\r').contains('\r');
    memchr::memchr2(0x1b, b'\r', text.as_bytes())?;
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        if char != '\u{1b}' {
            plain.push(char);
            continue;
        }
        // ESC [ … letter; other sequences have one character.
        if chars.next() == Some('[') {
            while chars.next_if(|char| char.is_ascii_digit() || matches!(char, ';' | '?')).is_some() {}
            chars.next();
        }
    }
    let mut last = String::with_capacity(plain.len());
    for line in plain.split('\n') {
        let line = line.trim_end_matches('\r');
        let state = || line.rsplit('\r').find(|state| !state.trim().is_empty()).unwrap_or_default();
        last.push_str(if is_overwritten(line) { state() } else { line });
        last.push('\n');
    }
    last.pop();
    Some(last)
}

/// Lines of one kind that are shown: hits in files of locked versions, steps of a build, tests that passed.
const MOST_ALIKE: usize = 3;

/// A text without meters of progress, and with the first of many lines of one kind.
fn without_meters(text: &str) -> Option<String> {
    let mut seen: [usize; 3] = [0; 3];
    let mut left_out = false;
    let mut keeps = |line: &str| {
        let kind = [is_hit_in_locked, is_step, is_passed].iter().position(|is_kind| is_kind(line));
        let keeps = !is_meter(line)
            && kind.is_none_or(|kind| {
                seen[kind] += 1;
                seen[kind] <= MOST_ALIKE
            });
        left_out |= !keeps;
        keeps
    };
    let kept: Vec<&str> = text.lines().filter(|line| keeps(line)).collect();
    left_out.then(|| kept.join("\n"))
}

/// Whether a line is a step of a build: one package that is fetched or compiled.
fn is_step(line: &str) -> bool {
    const STEPS: [&str; 10] = [
        "Compiling",
        "Checking",
        "Downloading",
        "Downloaded",
        "Fetched",
        "Unpacking",
        "Collecting",
        "Installing",
        "Get:",
        "Documenting",
    ];
    line.split_whitespace().next().is_some_and(|first| STEPS.iter().any(|step| first.starts_with(step)))
}

/// Whether a line reports one test that passed.
fn is_passed(line: &str) -> bool {
    let line = line.trim();
    line.starts_with("test ") && line.ends_with(" ok") || line.starts_with("--- PASS") || line.ends_with(" PASSED")
}

/// Whether a line is a meter: a bar, a rate, or a line of the table that curl draws.
fn is_meter(line: &str) -> bool {
    let bytes = line.as_bytes();
    if memchr::memchr2(b'%', 0xe2, bytes).is_none() {
        let digits = bytes.iter().filter(|byte| byte.is_ascii_digit()).count();
        return digits > 6 && (line.contains("--:--:--") || line.contains(":--:--"));
    }
    let bar = ["█", "▏", "━━━━", "░░", "####", "====>", "|####"].iter().any(|bar| line.contains(bar));
    let rate = ["it/s", "s/it", "B/s", "examples/s", "ETA", "eta "].iter().any(|rate| line.contains(rate));
    let curl = line.contains("% Total") && line.contains("% Received");
    curl || bar && line.contains('%') || rate && bar || line.contains("━━━━") && rate
}

/// Whether a line is what a search found in a file of locked versions.
fn is_hit_in_locked(line: &str) -> bool {
    const LOCKED: [&str; 11] = [
        "Cargo.lock",
        "package-lock.json",
        "yarn.lock",
        "pnpm-lock.yaml",
        "bun.lock",
        "poetry.lock",
        "uv.lock",
        "go.sum",
        "composer.lock",
        "Gemfile.lock",
        "flake.lock",
    ];
    line.split_once(':').is_some_and(|(path, rest)| {
        let name = path.rsplit('/').next().unwrap_or(path);
        LOCKED.contains(&name) && rest.starts_with(|char: char| char.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(raw: &str) -> String {
        of(raw, false).text.into_owned()
    }

    #[test]
    fn the_report_around_an_output_is_left_out_and_gives_the_exit_code() {
        let codex = "Chunk ID: 3388db\nWall time: 0.1 seconds\nProcess exited with code 101\nOriginal token count: 5\nOutput:\nerror: x";
        let found = of(codex, false);
        assert_eq!((&*found.text, found.failed, found.running), ("error: x", true, None));
        assert!(!of(&codex.replace("101", "0"), false).failed);
        let script = "Script running with cell ID 7\nWall time 1.0 seconds\nOutput:\n\nfirst line";
        let found = of(script, false);
        assert_eq!((&*found.text, found.failed, found.running.as_deref()), ("first line", false, Some("7")));
        let twice = "Script completed\nWall time 0.0 seconds\nOutput:\n\nWarning: truncated output (original token count: 9)\nTotal output lines: 1\n\n[1]";
        assert_eq!(text(twice), "[1]");
        let file = "Script for the demo\nWall time is short\nOutput:";
        assert_eq!(text(file), file, "an output may begin with such words");
        for own in ["script to build it", "SCRIPT x", "exit code: see below", "wall time is short"] {
            assert_eq!((text(own), of(own, false).failed), (own.to_owned(), false));
        }
        assert_eq!(of("Exit code: 1\nx", true).text, "Exit code: 1\nx", "a file has its own lines");
    }

    #[test]
    fn an_output_in_an_object_is_read_out_of_it() {
        let one = r#"{"exit_code":101,"output":"\nthread 'main' panicked\nnote: x"}"#;
        let found = of(one, false);
        assert_eq!((&*found.text, found.failed), ("\nthread 'main' panicked\nnote: x", true));
        let two = format!("A\n{}\n{one}", r#"{"output":"fine","metadata":{"exit_code":0}}"#);
        assert_eq!(text(&two), "A\nfine\n\nthread 'main' panicked\nnote: x");
        let long = format!(r#"{{"a":"{}\none\ntwo\nthree"}}"#, "x".repeat(400));
        assert_eq!(unescaped(Clean::assembled(long)).lines().count(), 4);
        let data = r#"{"output":"a field of the user's own data"}"#;
        assert_eq!(text(data), data);
    }

    #[test]
    fn colors_meters_and_reminders_are_left_out() {
        assert_eq!(text("\u{1b}[32m✓\u{1b}[0m rendering\r\n 10%\r 50%\rdone"), "✓ rendering\ndone");
        let curl = "  % Total    % Received % Xferd  Average Speed\n100  1270  100  1270    0     0   9000      0 --:--:-- --:--:-- --:--:--  9071\nok";
        assert_eq!(text(curl), "ok");
        assert_eq!(text("Split: 100%|██████████| 7473/7473 [00:00<00:00, 175848.04 examples/s]\nbuilt"), "built");
        let percent = "coverage is 93 % of lines";
        assert_eq!(text(percent), percent);
        assert_eq!(of("fn a() {}\n\n<system-reminder>\nbe kind\n</system-reminder>\n", true).text, "fn a() {}");
        let quoted = "x = \"<system-reminder>\"\ny";
        assert_eq!(of(quoted, true).text, quoted);
    }

    #[test]
    fn of_many_steps_of_a_build_the_first_ones_are_shown() {
        let log: String = (0..20).map(|at| format!("   Compiling crate_{at} v1.0.{at}\n")).collect();
        let tests: String = (0..20).map(|at| format!("test a::b_{at} ... ok\n")).collect();
        let found = text(&format!("{log}{tests}test a::c ... FAILED"));
        assert_eq!(found.lines().count(), 7, "{found}");
        assert!(found.ends_with("FAILED"));
    }

    #[test]
    fn many_reminders_are_left_out() {
        let text = format!("x{}", "<system-reminder>a</system-reminder>\n".repeat(100_000));
        assert_eq!(of(&text, true).text, "x");
    }

    #[test]
    fn of_many_hits_in_locked_versions_the_first_ones_are_shown() {
        let hits: String = (0..9).map(|at| format!("./Cargo.lock:{at}:name = \"a{at}\"\n")).collect();
        let found = text(&format!("{hits}src/main.rs:3:use a1;"));
        assert_eq!(found.lines().count(), 4, "{found}");
        assert!(found.ends_with("src/main.rs:3:use a1;"));
    }
}
