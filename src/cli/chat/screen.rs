//! A conversation on the terminal: the answer as it comes, and the context beside it.

use crate::cli::{
    cells::bar::bar,
    compact::grouped,
    paint::Paint,
    print::{self, plain},
};
use serde_json::Value;

/// The screen.
pub(super) struct Screen {
    paint: Paint,
    /// Whether the cursor stands in a line.
    is_in_line: bool,
    usage: Value,
    /// Whether a person writes the messages.
    has_person: bool,
}

impl Screen {
    pub(super) fn new(has_person: bool) -> Self {
        Self { paint: Paint::for_stdout(), is_in_line: false, usage: Value::Null, has_person }
    }

    /// A line about the conversation.
    pub(super) fn note(&mut self, text: &str) {
        self.end_line();
        for line in text.lines() {
            print::line(&format!("  {}", self.paint.dim(&plain(line))));
        }
    }

    /// Asks for a message.
    pub(super) fn ask(&mut self) {
        self.end_line();
        if self.has_person {
            self.put("› ");
            self.is_in_line = false;
        }
    }

    /// Everything is done.
    pub(super) fn settle(&mut self, aborted: bool) {
        if aborted {
            self.note("stopped");
        }
        if let Some(meter) = meter(&self.usage, &self.paint) {
            self.end_line();
            print::line(&format!("  {meter}"));
        }
        self.ask();
    }

    /// Shows an event.
    pub(super) fn show(&mut self, event: &Value) {
        let text = |name: &str| event[name].as_str().unwrap_or_default();
        match text("type") {
            "turn_start" | "tool_start" => self.end_line(),
            "usage_updated" => self.usage = event["usage"].clone(),
            "message_delta" if text("kind") == "text" => self.put(text("text")),
            "turn_end" => {
                self.usage = event["usage"].clone();
                if let Some(error) = event["errorMessage"].as_str() {
                    self.note(error);
                }
            }
            "retry_start" => {
                let seconds = event["delayMs"].as_u64().unwrap_or(0).div_ceil(1_000);
                self.note(&format!("{}; asked again in {seconds} s", text("errorMessage")));
            }
            "compaction_start" => self.note(&format!("compacting ({}) …", text("reason"))),
            "compaction_end" => {
                let (before, after) = (&event["result"]["tokensBefore"], &event["result"]["tokensAfter"]);
                match text("outcome") {
                    "completed" => self.note(&format!("compacted: {} → {} tokens", grouped(before), grouped(after))),
                    "failed" => self.note(text("errorMessage")),
                    "skipped" => self.note(&format!("nothing to compact ({})", text("skippedReason"))),
                    outcome => self.note(&format!("the compaction was {outcome}")),
                }
            }
            "recovery_start" => self.note("the request was too long; it is sent again with a smaller context"),
            "model_changed" => self.note(&format!("the model is {} now", text_of(&event["to"]))),
            _ => {}
        }
    }

    /// A piece of the answer.
    fn put(&mut self, text: &str) {
        let mut out = print::stdout();
        let _ = write!(out, "{}", print::printable(text));
        let _ = out.flush();
        self.is_in_line = !text.ends_with('\n');
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.is_in_line) {
            print::line("");
        }
    }
}

fn text_of(model: &Value) -> String {
    format!("{}/{}", model["provider"].as_str().unwrap_or_default(), model["id"].as_str().unwrap_or_default())
}

/// How full the context is; none before it is known.
fn meter(usage: &Value, paint: &Paint) -> Option<String> {
    const CELLS: u64 = 20;
    (usage["contextWindow"].is_u64()).then(|| {
        let (tokens, window) = (grouped(&usage["contextTokens"]), grouped(&usage["contextWindow"]));
        format!("{} {tokens} of {window} tokens", bar(usage, CELLS, paint))
    })
}
