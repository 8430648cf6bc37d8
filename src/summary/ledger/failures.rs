//! Failures of tools: the line that says what failed, and whether it was solved since.

use crate::summary::{
    heard::Said,
    prose::clip,
    sections::Section,
    shell::{self, ExitCode, Run, runs},
};
use std::sync::{Arc, LazyLock};

/// Something that failed.
#[derive(Debug, Clone)]
pub(in crate::summary) struct Failure {
    pub label: String,
    pub line: String,
    pub state: State,
    runs: Arc<[Run]>,
    /// The number of requests before it: that of its turn.
    turn: usize,
}

/// The state of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::summary) enum State {
    /// Nothing says that it is solved.
    Open,
    /// The work went on without it, or the same failed in another way later.
    Earlier,
    /// The same was tried again later and worked.
    Solved,
}

impl State {
    /// The section of a summary with the failures of this state, and their mark.
    pub(in crate::summary) fn place(self) -> (Section, &'static str) {
        match self {
            Self::Open => (Section::Blocked, ""),
            Self::Earlier => (Section::Context, "failed earlier – "),
            Self::Solved => (Section::Context, "failed, later worked – "),
        }
    }
}

/// Longest line of a failure, in characters.
const LONGEST: usize = 240;

impl Failure {
    /// The failure in an item of an earlier summary.
    pub(super) fn carried(section: Section, text: &str, turn: usize) -> Option<Self> {
        let state = [State::Earlier, State::Solved, State::Open].into_iter().find(|state| {
            let (place, mark) = state.place();
            place == section && text.starts_with(mark)
        })?;
        let text = text.strip_prefix(state.place().1).unwrap_or(text);
        let (label, line) = text.split_once(": ").unwrap_or(("", text));
        Some(Self { label: label.to_owned(), line: line.to_owned(), state, runs: runs_of_label(label), turn })
    }

    /// The failure that a result reports. `None` where it says nothing: grep and the like fail by finding nothing.
    pub(super) fn of(piece: &Said, turn: usize) -> Option<Self> {
        let telling = telling_line(&piece.text);
        // After a colon the next line has the message.
        let place = telling.as_ptr().addr().checked_sub(piece.text.as_ptr().addr());
        let after = place.and_then(|place| piece.text.get(place + telling.len()..)).unwrap_or_default();
        let next = after.lines().map(str::trim).find(|line| !line.is_empty());
        let telling = telling.trim_start_matches("<tool_use_error>").trim_end_matches("</tool_use_error>");
        let line = match next.filter(|_| telling.ends_with(':')) {
            Some(next) => clip(&format!("{telling} {next}"), LONGEST),
            None => clip(telling, LONGEST),
        };
        let says_nothing = line.is_empty()
            || line.starts_with("(no output)")
            || only_failed(&line)
            || line.starts_with("The user doesn't want");
        let (label, runs) = (piece.label.to_string(), runs_of(piece));
        (!says_nothing).then_some(Self { label, line, state: State::Open, runs, turn })
    }

    /// The failure on one line.
    pub(in crate::summary) fn text(&self) -> String {
        if self.label.is_empty() { self.line.clone() } else { format!("{}: {}", self.label, self.line) }
    }

    /// Whether nothing says that it is solved.
    pub(in crate::summary) fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// Whether the same was tried again later and worked.
    pub(in crate::summary) fn is_solved(&self) -> bool {
        self.state == State::Solved
    }

    /// Whether it was a slip in the use of a tool that changes or reads files. Once it worked, nobody has to know.
    pub(in crate::summary) fn is_solved_slip(&self) -> bool {
        const TOOLS: [&str; 8] = [
            "edit",
            "write",
            "read",
            "multiedit",
            "str_replace",
            "apply_patch",
            "str_replace_based_edit_tool",
            "update",
        ];
        let tool = self.label.split(' ').next().unwrap_or_default().to_lowercase();
        self.is_solved() && TOOLS.contains(&&*tool)
    }

    /// Whether another failure is the same.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.label == other.label && self.line == other.line
    }

    /// Learns that the same call failed in another way: it came further, or broke elsewhere.
    pub(super) fn failed_again(&mut self, later: &Self) {
        if self.is_open() && !self.label.is_empty() && self.label == later.label && self.runs == later.runs {
            self.state = State::Earlier;
        }
    }

    /// Learns that a call worked.
    pub(super) fn worked(&mut self, by: &Worked) {
        if self.state == State::Solved {
            return;
        }
        // An invalid use says nothing of the arguments that work.
        let is_misuse = is_misuse(&self.line);
        let solves = |run: &Run, failed: &Run| run.covers(failed) || is_misuse && run.is_same_command(failed);
        let is_solved = self.failed_run().is_some_and(|failed| by.runs.iter().any(|run| solves(run, failed)));
        if is_solved || by.is_same_script(&self.runs) {
            self.state = State::Solved;
        } else if self.is_open() && self.only_looked() {
            // Looking for something in vain blocks nothing once the work goes on.
            self.state = State::Earlier;
        }
    }

    /// Learns that a turn ended with an answer that claims success. A check that failed last has to pass for that, and the
    /// success of another turn says nothing of this failure.
    pub(super) fn turn_succeeded(&mut self, turn: usize) {
        if self.is_open() && self.turn == turn && !self.runs.iter().any(Run::checks) {
            self.state = State::Earlier;
        }
    }

    /// The program that failed: the last one that does not only look, most often.
    fn failed_run(&self) -> Option<&Run> {
        self.runs.iter().rev().find(|run| !run.only_looks()).or(self.runs.last())
    }

    fn only_looked(&self) -> bool {
        !self.runs.is_empty() && self.runs.iter().all(|run| run.only_looks() || run.exit == ExitCode::DryRun)
    }
}

/// A call that worked.
pub(super) struct Worked {
    /// The programs of it that worked for sure.
    runs: Vec<Run>,
    /// All of its programs.
    script: Arc<[Run]>,
}

impl Worked {
    /// Whether a program that failed worked in it.
    pub(super) fn covers(&self, failed: &Run) -> bool {
        self.runs.iter().any(|run| run.covers(failed))
    }

    pub(super) fn by(piece: &Said) -> Self {
        // Of two alternatives it is not known which one worked, and the end of a script or a pipe may hide a failure.
        // A check whose exit code is hidden has to say that it passed.
        let (fails, passes) = (admits_failure(&piece.text), says_passed(&piece.text));
        let is_certain = |run: &&Run| match run.exit {
            ExitCode::Own => true,
            ExitCode::Masked => !fails && (passes || !run.checks()),
            // The output of a script that goes on may be there.
            ExitCode::Background => run.runs_script() && passes && !fails,
            ExitCode::Unknown => passes && !fails,
            ExitCode::DryRun => false,
        };
        let script = runs_of(piece);
        Self { runs: script.iter().filter(is_certain).cloned().collect(), script }
    }

    /// Whether it is the script that failed, and no exit code in it is hidden: `a || b`.
    fn is_same_script(&self, failed: &[Run]) -> bool {
        let tells = |run: &Run| matches!(run.exit, ExitCode::Own | ExitCode::Unknown);
        !failed.is_empty() && *self.script == *failed && failed.iter().all(tells)
    }
}

/// Whether a check failed though its call is said to have worked: a pipe or the rest of a script hides its exit code.
pub(super) fn is_hidden_failure(piece: &Said) -> bool {
    static VERDICT: LazyLock<regex::Regex> = LazyLock::new(|| {
        regex::Regex::new(
            r"(?m)test result: FAILED|\b[1-9]\d* (?:tests? )?failed\b|^--- FAIL|^FAILED |could not compile",
        )
        .expect("a fixed pattern")
    });
    let is_hidden = |run: &Run| !matches!(run.exit, ExitCode::Own | ExitCode::DryRun);
    piece.runs.iter().any(|run| is_hidden(run) && run.checks()) && VERDICT.is_match(&piece.text)
}

fn runs_of(piece: &Said) -> Arc<[Run]> {
    if piece.runs.is_empty() { runs_of_label(&piece.label) } else { piece.runs.clone() }
}

/// The runs that a label names, of which the commands are not known otherwise: those of a shell, or the tool with its argument.
fn runs_of_label(label: &str) -> Arc<[Run]> {
    match label.split_once(' ') {
        Some((tool, script)) if shell::is_shell(tool) => runs(script).into(),
        Some((tool, argument)) => [Run::of_tool(tool, argument)].into(),
        None => Arc::default(),
    }
}

/// Whether the output of a call that is said to have worked reports a failure: of a part of a script, or before a pipe.
fn admits_failure(output: &str) -> bool {
    static SIGNS: LazyLock<regex::Regex> = LazyLock::new(|| {
        regex::Regex::new(
            r"FAILED|❌|error:|error\[|Error:|Traceback \(most|panicked at|❌|npm ERR!|fatal:|\b[1-9]\d* (?:tests? )?failed\b",
        )
        .expect("a fixed pattern")
    });
    SIGNS.is_match(output)
}

/// Whether an output says that a check passed.
fn says_passed(output: &str) -> bool {
    static SIGNS: LazyLock<regex::Regex> = LazyLock::new(|| {
        regex::Regex::new(r"✅|\b(?:is|now) ready\b|test result: ok|\b\d+ passed|\b0 (?:failed|errors?|failures)\b|\bpassed\b|(?m)^\s*ok\b|Finished|SUCCESS|[Nn]o (?:issues|errors|problems)|\bclean\b|✓|✔|up to date")
            .expect("a fixed pattern")
    });
    SIGNS.is_match(output)
}

/// Whether a line says that a program was used in an invalid way.
fn is_misuse(line: &str) -> bool {
    static SIGNS: LazyLock<regex::Regex> = LazyLock::new(|| {
        regex::Regex::new(
            r"(?i)unexpected argument|(?:unknown|unrecognized|invalid|illegal|no such) (?:shorthand |command )?(?:option|flag|argument|switch)|^usage:|flag provided but not defined|requires an argument|required arguments? (?:was|were) not|too many arguments",
        )
        .expect("a fixed pattern")
    });
    SIGNS.is_match(line)
}

/// Whether the result of a failed call says that the program was used in an invalid way.
pub(super) fn was_misused(piece: &Said) -> bool {
    is_misuse(telling_line(&piece.text))
}

/// Whether a line says only that a command failed.
fn only_failed(line: &str) -> bool {
    let lower = line.to_lowercase();
    lower.starts_with("warning: truncated output")
        || lower.starts_with("total output lines: ")
        || lower.starts_with("command exited with code")
        || lower.starts_with("exit code ") && line.len() < 16
}

/// A line with the place of an error in a file before its message.
static PLACED: LazyLock<regex::Regex> =
    LazyLock::new(|| regex::Regex::new(r"^\S+\.\w{1,5}:\d+(?:[:-]\d+)?:? \w").expect("a fixed pattern"));

/// The line of a failure that says what failed: the end of a traceback, one that reads like an error, else the first. Lines too
/// long to read are code that was thrown out along with it.
fn telling_line(text: &str) -> &str {
    const READABLE: usize = 400;
    let lines =
        || text.lines().map(str::trim).filter(|line| !line.is_empty() && line.len() <= READABLE && !only_failed(line));
    // A wrapper only says that another one failed.
    let wraps = |line: &str| {
        let lower = line.to_ascii_lowercase();
        lower.contains("warning")
            || lower.contains("task failed")
            || lower.starts_with("=== run")
            || line.contains("] $ ")
            || line.starts_with("$ ")
    };
    // Code that was printed along tells of errors, too.
    let is_code = |line: &str| {
        ["return ", "if ", "throw ", "raise ", "// ", "# "].iter().any(|start| line.starts_with(start))
            || line.ends_with(['{', ';', '}'])
            || line.contains("%w")
    };
    let placed = |line: &&str| PLACED.is_match(line) && !wraps(line);
    let verdict = |line: &&str| {
        ["CONFLICT (", "--- FAIL", "panicked at", "error["].iter().any(|word| line.contains(word)) && !wraps(line)
    };
    let error = |line: &&str| {
        let lower = line.to_ascii_lowercase();
        !wraps(line)
            && !is_code(line)
            && ["error", "panicked", "exception", "fatal"].iter().any(|word| {
                lower.match_indices(word).any(|(at, _)| {
                    let rest = &lower[at + word.len()..];
                    rest.starts_with([':', '[', '(']) || at == 0 && rest.starts_with(' ')
                })
            })
    };
    let failed = |line: &&str| {
        let lower = line.to_ascii_lowercase();
        !wraps(line)
            && !is_code(line)
            && ["failed", "cannot", "not found", "denied", "no such", "unable", "timed out", "rejected"]
                .iter()
                .any(|word| lower.contains(word))
    };
    let traced = || text.contains("Traceback (most recent call last)").then(|| text.lines().rev().find(ends_trace));
    let traced = traced().flatten().map(str::trim).filter(|line| line.len() <= READABLE);
    // A tool says first what was wrong with its call.
    let of_call = || text.trim_start().starts_with("<tool_use_error>").then(|| lines().next()).flatten();
    let told = traced.or_else(of_call).or_else(|| lines().find(verdict)).or_else(|| lines().find(error));
    let told = told.or_else(|| lines().find(placed)).or_else(|| lines().find(failed));
    told.or_else(|| lines().find(|line| !wraps(line) && !is_code(line))).or_else(|| lines().next()).unwrap_or_default()
}

/// Whether a line ends a traceback of Python: the name of an exception at its beginning.
fn ends_trace(line: &&str) -> bool {
    let name = line.split([':', ' ']).next().unwrap_or_default();
    let is_name = name.starts_with(|char: char| char.is_ascii_alphabetic())
        && name.chars().all(|char| char.is_ascii_alphanumeric() || matches!(char, '.' | '_'));
    let ends = ["Error", "Exception", "SystemExit", "Interrupt", "StopIteration", "Timeout", "NotFound"];
    is_name && ends.iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests;
