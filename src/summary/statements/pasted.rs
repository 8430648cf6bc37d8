//! Text that a user pasted: the output of a program, and what follows it.

use std::sync::LazyLock;

/// The paste in a message, line by line.
#[derive(Debug, Default)]
pub(in crate::summary) struct Paste {
    /// Whether a line of a log was met.
    began: bool,
    /// Whether the line before was one.
    goes_on: bool,
    /// Whether it was a remark below one.
    remark: bool,
}

impl Paste {
    /// Takes the next line in: whether it is pasted. A remark right below a log is a part of it; other lines are read, since a
    /// rule of the user may stand there.
    pub(in crate::summary) fn has(&mut self, line: &str) -> bool {
        let is_remark = self.goes_on && REMARKS.iter().any(|label| line.starts_with(label));
        self.remark = is_remark;
        self.goes_on = begins_log(line) || is_remark;
        self.began |= self.goes_on;
        self.goes_on
    }

    /// Whether the last line was a remark that a program added to an error.
    pub(super) fn is_remark(&self) -> bool {
        self.remark
    }

    /// Whether there was a line of a log.
    pub(in crate::summary) fn began(&self) -> bool {
        self.began
    }
}

/// Labels of the remarks that programs add to an error.
const REMARKS: [&str; 12] = [
    "DETAIL:",
    "HINT:",
    "CONTEXT:",
    "STATEMENT:",
    "QUERY:",
    "HINWEIS:",
    "Hinweis:",
    "note:",
    "help:",
    "hint:",
    "Hint:",
    "= note",
];

/// The number of sentences of a line before a pasted error with remarks begins.
pub(super) fn own(sentences: &[&str]) -> usize {
    let has_remark = |sentence: &&&str| REMARKS.iter().any(|label| sentence.starts_with(label));
    match sentences.iter().any(|sentence| has_remark(&sentence)) {
        true => sentences.iter().position(|sentence| is_log(sentence)).unwrap_or(sentences.len()),
        false => sentences.len(),
    }
}

/// Whether a line begins like the output of a program. A sentence may name an error further on.
fn begins_log(line: &str) -> bool {
    let words: usize = line.split_whitespace().take(2).map(|word| word.len() + 1).sum();
    is_log(line)
        && is_log(line.get(..words.min(line.len())).unwrap_or(line))
        && !super::begins_rule(&line.to_lowercase())
}

/// Whether a line is the output of a program: an error with its place, a line of a trace, of a log or of a listing.
pub(super) fn is_log(line: &str) -> bool {
    static LOG: LazyLock<regex::Regex> = LazyLock::new(|| {
        regex::Regex::new(
            r"(?x)^(?://|/\*|raise\s|assert\s|throw\s|Caused\sby:|Assertion\sfailed|node:|at\s|\[[a-z]|\d+\s*\||\d{4}-\d\d-\d\d[T\s]\d\d:|\$\s|~|\+\s|\+{3}|-{3}|diff\s|Traceback|File\s\S|remote:|hint:|\[?(?:WARN(?:ING)?|ERROR|INFO|DEBUG|FATAL|TRACE)\]?\s)
              | \w:\d+:\d+ | \b(?:[A-Za-z]*Error|[A-Za-z]*Exception|error\[[^\]]*\]|warning|panicked\sat|FAIL(?:ED)?|ERROR|FATAL|FEHLER|ERREUR|SEVERE)\s*:
              | ^\S+(?:Error|Exception)\b",
        )
        .expect("a fixed pattern")
    });
    LOG.is_match(line)
}
