//! Text on the terminal of a person. Commands write to stdout and stderr by this file alone.
//!
//! Titles, paths, ids and messages come from session files, which may be a stranger's. A printer lets no character pass that
//! moves the cursor, turns the direction of a line or starts a sequence of the terminal. Colours are marks until then, so no
//! text has a sequence of its own.

pub mod words;

use super::paint;
use serde_json::Value;
use std::{
    borrow::Cow,
    fmt,
    io::{self, BufWriter, IsTerminal, StdoutLock, Write},
    sync::OnceLock,
};

/// A writer for the texts of a command.
pub(super) struct Printer<W: Write> {
    out: W,
    form: Form,
}

/// The form of what is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Lines for a person.
    Text,
    /// JSON. Its strings have escapes in the place of these characters.
    Json,
}

impl<W: Write> Printer<W> {
    /// A printer to this writer.
    pub(super) fn to(out: W, form: Form) -> Self {
        Self { out, form }
    }

    /// The way by which `write!` and `writeln!` print.
    ///
    /// # Errors
    /// When the writer fails.
    pub(super) fn write_fmt(&mut self, text: fmt::Arguments<'_>) -> io::Result<()> {
        let text = text.to_string();
        let printed = match self.form {
            Form::Text => shown(&text),
            Form::Json => escaped(&text),
        };
        self.out.write_all(printed.as_bytes())
    }

    /// Goes back to the beginning of the line. The next text takes the place of this one.
    ///
    /// # Errors
    /// When the writer fails.
    pub(super) fn back(&mut self) -> io::Result<()> {
        self.out.write_all(b"\r")
    }

    /// Passes everything on.
    ///
    /// # Errors
    /// When the writer fails.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The first error of a write to stdout. A closed pipe is none: the reader has read enough.
static NOT_WRITTEN: OnceLock<String> = OnceLock::new();

/// Stdout. Its first error fails the command at its end.
pub(super) struct Stdout<W>(W);

impl<W: Write> Write for Stdout<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).inspect_err(not_written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().inspect_err(not_written)
    }
}

fn not_written(error: &io::Error) {
    if !matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::Interrupted) {
        let _ = NOT_WRITTEN.set(error.to_string());
    }
}

/// Ends the output of a command.
///
/// # Errors
/// When a part of it could not be written.
pub fn end() -> Result<(), String> {
    let _ = Stdout(io::stdout()).flush();
    NOT_WRITTEN.get().map_or(Ok(()), |error| Err(format!("stdout cannot be written: {error}; the output is not whole")))
}

/// A printer of lines to stdout.
pub(super) fn stdout() -> Printer<Stdout<io::Stdout>> {
    Printer::to(Stdout(io::stdout()), Form::Text)
}

/// A printer of JSON to stdout.
pub(super) fn json() -> Printer<Stdout<io::Stdout>> {
    Printer::to(Stdout(io::stdout()), Form::Json)
}

/// A printer to stdout for a large output. It is flushed at the end.
pub(super) fn buffered(form: Form) -> Printer<BufWriter<Stdout<StdoutLock<'static>>>> {
    Printer::to(BufWriter::new(Stdout(io::stdout().lock())), form)
}

/// Prints bytes to stdout as they are.
pub fn bytes(bytes: &[u8]) {
    let _ = Stdout(io::stdout()).write_all(bytes);
}

/// Prints a line to stdout. A closed pipe is no error: the reader has read enough.
pub(super) fn line(text: &str) {
    let _ = writeln!(stdout(), "{text}");
}

/// Prints a JSON document to stdout, over several lines. A closed pipe is no error.
pub(super) fn document(document: &Value) {
    let _ = writeln!(json(), "{document:#}");
}

/// Tells a person about an error, or about the progress, on a line of stderr.
pub fn note(text: &str) {
    let _ = writeln!(Printer::to(io::stderr(), Form::Text), "abridged: {}", plain(text));
}

/// Whether stdout is a terminal.
pub(super) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Whether progress can be shown: stderr is a terminal.
pub(super) fn has_progress() -> bool {
    io::stderr().is_terminal()
}

/// Shows progress in the place of that before, on the last line of stderr. An empty text takes it away.
pub(super) fn progress(text: &str, columns: usize) {
    let columns = columns.saturating_sub(1);
    let mut out = Printer::to(io::stderr(), Form::Text);
    let _ = out.back();
    let _ = write!(out, "{:<columns$}", super::cells::fitted(text, columns));
    let _ = out.back();
    let _ = out.flush();
}

/// Tells a person why arguments are refused, on lines of stderr.
pub fn refused(text: &str) {
    let _ = writeln!(Printer::to(io::stderr(), Form::Text), "{}", printable(text.trim_end()));
}

/// A text from elsewhere, of several lines.
pub(super) fn printable(text: &str) -> String {
    cleaned(text, '\n')
}

/// A text from elsewhere on one line.
pub fn plain(text: &str) -> String {
    cleaned(text, ' ')
}

/// A painted text on one line.
pub(super) fn cell(painted: &str) -> String {
    painted.replace(breaks_line, " ")
}

/// A text without characters that act, with this character for the ends of its lines.
fn cleaned(text: &str, end: char) -> String {
    let kept = text.chars().filter(|char| *char != '\r' && !acts(*char));
    kept.map(|char| match char {
        '\t' => ' ',
        char if breaks_line(char) => end,
        char => char,
    })
    .collect()
}

/// The text as a terminal gets it.
pub(super) fn shown(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|char| acts(char) || breaks_line(char) && char != '\n') {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for char in text.chars() {
        match paint::sequence(char) {
            Some(sequence) => shown.push_str(sequence),
            None if char == '\r' => {}
            None if breaks_line(char) => shown.push('\n'),
            None if acts(char) => {}
            None => shown.push(char),
        }
    }
    Cow::Owned(shown)
}

/// JSON with escapes for these characters. Outside of its strings JSON has none of them but the ends of lines.
fn escaped(json: &str) -> Cow<'_, str> {
    let is_meant = |char: char| char != '\n' && (acts(char) || breaks_line(char));
    if !json.chars().any(is_meant) {
        return Cow::Borrowed(json);
    }
    let mut escaped = String::with_capacity(json.len());
    for char in json.chars() {
        match is_meant(char) {
            true => char.encode_utf16(&mut [0; 2]).iter().for_each(|unit| escaped.push_str(&format!("\\u{unit:04x}"))),
            false => escaped.push(char),
        }
    }
    Cow::Owned(escaped)
}

/// Whether a character ends a line on some terminal.
fn breaks_line(char: char) -> bool {
    matches!(char, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Whether a terminal does something else with a character than to show it: control characters, changes of the direction,
/// tags, characters that nobody sees, and the noncharacters that colours are marked with. A joiner of emoji or letters is seen.
fn acts(char: char) -> bool {
    char.is_control() && !breaks_line(char) && char != '\t'
        || matches!(char, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || matches!(char, '\u{ad}' | '\u{200b}' | '\u{2060}' | '\u{feff}' | '\u{fdd0}'..='\u{fdef}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::paint::Paint;
    use serde_json::json;

    const HOSTILE: &str =
        "a\u{200b}\u{ad}\u{2060}\u{1b}[2Jb\u{9b}31mc\u{7f}d\u{202e}e\u{2028}f\u{2029}g\u{85}h\u{7}i\rj\u{fdd1}k\nl\tm";

    fn printed(form: Form, text: &str) -> String {
        let mut out = Vec::new();
        write!(Printer::to(&mut out, form), "{text}").expect("a vector takes it");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn a_text_does_nothing_on_a_terminal() {
        assert_eq!(printed(Form::Text, &HOSTILE.replace('\u{fdd1}', "")), "a[2Jb31mcde\nf\ng\nhijk\nl\tm");
        assert_eq!(plain(HOSTILE), "a[2Jb31mcde f g hijk l m");
        assert_eq!(printable(HOSTILE), "a[2Jb31mcde\nf\ng\nhijk\nl m");
        assert_eq!(printed(Form::Text, "漢字 👩\u{200d}👩 e\u{301}"), "漢字 👩\u{200d}👩 e\u{301}");
    }

    #[test]
    fn a_colour_is_a_sequence_on_a_terminal_and_nothing_in_a_text() {
        let painted = Paint::on().red("no");
        assert_eq!(printed(Form::Text, &painted), "\u{1b}[31mno\u{1b}[0m");
        assert_eq!(plain(&painted), "no");
    }

    #[test]
    fn json_is_the_same_value_and_does_nothing_on_a_terminal() {
        let value = json!({ HOSTILE: [HOSTILE, "\u{e0041}"] });
        for text in [format!("{value:#}"), value.to_string()] {
            let printed = printed(Form::Json, &text);
            assert!(printed.chars().all(|char| char == '\n' || !acts(char) && !breaks_line(char)), "{printed:?}");
            assert_eq!(serde_json::from_str::<Value>(&printed).expect("JSON"), value);
        }
    }
}
