//! The screen of the demo: a bar for the context of each turn, and a line for each event, in 80 columns and 30 rows.

use crate::cli::{
    cells::bar::bar,
    compact::grouped,
    paint::Paint,
    print::{Printer, plain, printable},
    wrap::{wrapped, wrapped_text},
};
use serde_json::Value;
use std::{io::Write, thread, time::Duration};

/// The most columns of a line.
pub(super) const COLUMNS: usize = 80;

/// The columns of a turn's line beside its title and its cells: the frame of the bar, the size, the gaps and a last one that
/// stays free.
const BESIDE: usize = 12;

/// The fewest columns of a terminal on which a bar grows in its place. A bar over two rows would be drawn again below itself.
const FEWEST: usize = 20;

/// A pause after a line, so that a person can follow. Without a terminal there is none.
const PAUSE: Duration = Duration::from_millis(250);

/// A pause after a change of a bar.
const SHORT_PAUSE: Duration = Duration::from_millis(60);

/// Lines and bars of the demo.
pub(super) struct Screen<W: Write> {
    out: Printer<W>,
    paint: Paint,
    /// The columns of a line.
    columns: usize,
    /// The number of turns.
    turns: usize,
    /// The title of the bar.
    title: String,
    /// The newest bar.
    bar: String,
    /// Whether no line stands after it.
    open: bool,
    /// The summary of the last compaction.
    summary: String,
}

impl<W: Write> Screen<W> {
    pub(super) fn of(out: Printer<W>, paint: Paint, columns: usize) -> Self {
        let columns = columns.min(COLUMNS);
        let (title, bar, summary) = Default::default();
        Self { out, paint, columns, turns: 0, title, bar, open: false, summary }
    }

    /// The columns of a turn's title, and as many cells of its bar.
    fn half(&self) -> usize {
        (self.columns.saturating_sub(BESIDE) / 2).max(2)
    }

    /// Whether bars grow in their places.
    fn is_live(&self) -> bool {
        self.paint.is_on() && self.columns >= FEWEST
    }

    /// The head, with the usage of the new session.
    pub(super) fn begins(&mut self, usage: &Value) {
        let window = grouped(&usage["contextWindow"]);
        for line in wrapped("A coding agent with a loop of its own, and abridged beside it", self.columns) {
            let line = self.paint.bold(&line);
            self.line(&line);
        }
        self.says(&format!(
            "The model has a window of {window} tokens. At │, {} tokens, abridged acts.",
            grouped(&usage["thresholdTokens"])
        ));
        self.line("");
    }

    /// A request of the user.
    pub(super) fn turn(&mut self, request: &str) {
        self.ends_bar();
        self.turns += 1;
        let words = request.split_whitespace().collect::<Vec<_>>().join(" ");
        self.title = format!("{} {}", self.turns, clipped(&plain(&words), self.half().saturating_sub(2)));
    }

    /// The usage of the session. On a terminal the bar of the turn grows in its place.
    pub(super) fn usage(&mut self, usage: &Value) {
        let bar = self.bar(usage);
        if self.bar == bar {
            return;
        }
        if self.is_live() {
            let _ = self.out.back();
            self.write(&bar);
            thread::sleep(SHORT_PAUSE);
        }
        (self.bar, self.open) = (bar, true);
    }

    /// The words with which the model refuses a request.
    pub(super) fn refusal(&mut self, words: &str) {
        for line in wrapped(&format!("the model refuses: {}", plain(words)), self.columns.saturating_sub(2)) {
            let line = self.paint.red(&format!("  {line}"));
            self.line(&line);
        }
    }

    /// A sentence.
    pub(super) fn says(&mut self, text: &str) {
        wrapped(text, self.columns).iter().for_each(|line| self.line(line));
    }

    /// An event, if it is one to be shown.
    pub(super) fn event(&mut self, event: &Value) {
        let Some(detail) = detail(event) else { return };
        let kind = event["type"].as_str().unwrap_or_default();
        if let Some(summary) = event["result"]["summary"].as_str() {
            summary.clone_into(&mut self.summary);
        }
        let line = clipped(&format!("  {kind:<18} {detail}"), self.columns);
        let line = match kind {
            "compaction_end" | "recovery_end" => self.paint.green(&line),
            _ => self.paint.yellow(&line),
        };
        self.line(&line);
        match kind {
            "recovery_end" => "  …once more".clone_into(&mut self.title),
            "compaction_end" => "  …goes on".clone_into(&mut self.title),
            _ => {}
        }
    }

    /// The end of the run.
    pub(super) fn ends(&mut self, answered: u64, refused: u64, messages: usize, kept: usize) {
        self.line("");
        let lost = if messages == kept { "nothing is lost" } else { "NOT ALL ARE THERE" };
        self.says(&format!("The model answered {answered} requests and refused {refused}. The loop only asked again."));
        self.says(&format!("{messages} messages were reported, and session/entries returns {kept}: {lost}."));
        self.says("Next: examples/ has this loop in 60 lines of Python, TypeScript and Rust.");
    }

    /// The summary of the last compaction, whole.
    pub(super) fn summary(&mut self) {
        self.line("");
        let head = self.paint.bold("The summary that is in the context now");
        self.line(&head);
        self.line("");
        for line in wrapped_text(&printable(&std::mem::take(&mut self.summary)), self.columns) {
            self.write(&format!("{line}\n"));
        }
    }

    /// A window with its threshold, as a line of the turn.
    fn bar(&self, usage: &Value) -> String {
        let half = self.half();
        let bar = bar(usage, half as u64, &self.paint);
        let title = clipped(&self.title, half);
        format!("{title:<half$} {bar} {:>7}", grouped(&usage["contextTokens"]))
    }

    fn ends_bar(&mut self) {
        if std::mem::take(&mut self.open) {
            let line = if self.is_live() { "\n".to_owned() } else { format!("{}\n", self.bar) };
            self.write(&line);
        }
    }

    fn line(&mut self, line: &str) {
        self.ends_bar();
        self.write(&format!("{line}\n"));
        if self.paint.is_on() {
            thread::sleep(PAUSE);
        }
    }

    /// A reader that has gone away does not stop the demo.
    fn write(&mut self, text: &str) {
        let _ = write!(self.out, "{text}").and_then(|()| self.out.flush());
    }
}

/// The text of an event. None for an event that is not shown.
fn detail(event: &Value) -> Option<String> {
    let text = |name: &str| event[name].as_str().unwrap_or_default();
    let tokens = |value: &Value| grouped(value);
    let retry = if event["willRetry"] == true { "; the turn is tried again" } else { "" };
    Some(match event["type"].as_str()? {
        "recovery_start" => format!("{}, action: {}", text("reason"), text("action")),
        "recovery_end" => format!("{}{retry}", text("outcome")),
        "compaction_start" => format!("{}: {} tokens", text("reason"), tokens(&event["tokensBefore"])),
        "compaction_end" if event["result"].is_object() => {
            let (result, after) = (&event["result"], &event["result"]["tokensAfter"]);
            let method = result["method"].as_str().unwrap_or_default();
            let took = &event["durationMs"];
            format!(
                "{} in {took} ms: {} → {} tokens, {method}",
                text("outcome"),
                tokens(&result["tokensBefore"]),
                tokens(after)
            )
        }
        "compaction_end" => format!("{}: {}", text("outcome"), plain(text("errorMessage"))),
        "pruned" => format!("{} tokens of old results: {}", tokens(&event["tokensSaved"]), plain(text("why"))),
        "notice" => plain(text("title")),
        "settled" => "nothing runs any more".to_owned(),
        _ => return None,
    })
}

/// The beginning of a text, with a sign where more of it follows.
fn clipped(text: &str, columns: usize) -> String {
    match text.chars().count() <= columns {
        true => text.to_owned(),
        false => text.chars().take(columns.saturating_sub(1)).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::print::Form;
    use serde_json::json;

    /// The text of a screen without a terminal.
    fn shown(fill: impl FnOnce(&mut Screen<&mut Vec<u8>>)) -> String {
        let mut out = Vec::new();
        fill(&mut Screen::of(Printer::to(&mut out, Form::Text), Paint::off(), COLUMNS));
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn a_bar_is_shown_with_its_last_size_and_its_threshold() {
        let text = shown(|screen| {
            screen.turn("Look at all of the parser, and then at everything else");
            for tokens in [1_000, 2_500_000] {
                screen
                    .usage(&json!({"contextTokens": tokens, "contextWindow": 2_000_000, "thresholdTokens": 1_000_000}));
            }
            screen.event(&json!({"type": "usage_updated"}));
            screen.event(&json!({"type": "settled"}));
        });
        let bar = format!("▕{}│{}▏", "█".repeat(17), "█".repeat(16));
        let expected =
            format!("1 Look at all of the parser, and … {bar} 2,500,000\n  settled            nothing runs any more\n");
        assert_eq!(text, expected);
    }

    #[test]
    fn an_event_is_one_line_with_its_numbers() {
        let result = json!({"tokensBefore": 1_234_567, "tokensAfter": 7_654, "method": "extractive"});
        for (event, line) in [
            (
                json!({"type": "recovery_start", "reason": "overflow", "action": "compact"}),
                "recovery_start     overflow, action: compact",
            ),
            (
                json!({"type": "recovery_end", "outcome": "recovered", "willRetry": true}),
                "recovery_end       recovered; the turn is tried again",
            ),
            (
                json!({"type": "compaction_end", "outcome": "completed", "durationMs": 12, "result": result}),
                "compaction_end     completed in 12 ms: 1,234,567 → 7,654 tokens, extractive",
            ),
            (
                json!({"type": "compaction_end", "outcome": "failed", "errorMessage": "no\u{1b}[2J room"}),
                "compaction_end     failed: no[2J room",
            ),
        ] {
            assert_eq!(shown(|screen| screen.event(&event)), format!("  {line}\n"));
        }
        let long = json!({"type": "notice", "title": "x".repeat(200)});
        assert_eq!(shown(|screen| screen.event(&long)).trim_end().chars().count(), COLUMNS);
    }
}
