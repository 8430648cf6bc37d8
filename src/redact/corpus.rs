//! The rules over `tests/corpora/secrets.jsonl` and `tests/corpora/not_secrets.jsonl`. Every secret in them is made up.
//!
//! A line is `{"kind": …, "text": …}`. In `text`, `⟦` and `⟧` enclose each secret, and `¦` stands for nothing: it
//! splits what a scanner of repositories takes for a real key.

use super::{Stream, redact};
use regex::Regex;
use serde::Deserialize;
use std::sync::LazyLock;

const SECRETS: &str = include_str!("../../tests/corpora/secrets.jsonl");
const NOT_SECRETS: &str = include_str!("../../tests/corpora/not_secrets.jsonl");

#[derive(Deserialize)]
struct Row {
    kind: String,
    text: String,
}

fn rows(corpus: &str) -> Vec<Row> {
    let row = |line: &str| serde_json::from_str::<Row>(line).expect("a row of the corpus is JSON");
    let whole = |row: Row| Row { text: row.text.replace('¦', ""), ..row };
    corpus.lines().map(row).map(whole).collect()
}

/// The texts of both corpora.
pub(super) fn texts() -> Vec<String> {
    rows(SECRETS).iter().chain(&rows(NOT_SECRETS)).map(Row::plain).collect()
}

impl Row {
    /// The text as a session holds it.
    fn plain(&self) -> String {
        self.text.replace(['⟦', '⟧'], "")
    }

    fn secrets(&self) -> Vec<&str> {
        self.text.split('⟦').skip(1).filter_map(|part| part.split('⟧').next()).collect()
    }

    /// The text with `⟦⟧` for each secret: what a redacted text is compared with.
    fn expected(&self) -> String {
        static SECRET: LazyLock<Regex> = LazyLock::new(|| Regex::new("⟦[^⟧]*⟧").expect("a fixed pattern"));
        SECRET.replace_all(&self.text, "⟦⟧").into_owned()
    }
}

/// `redacted` with `⟦⟧` for each placeholder.
fn without_kinds(redacted: &str) -> String {
    static PLACEHOLDER: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\[REDACTED:[a-z0-9-]+\]").expect("fixed"));
    PLACEHOLDER.replace_all(redacted, "⟦⟧").into_owned()
}

/// The text as a stream tells it whose pieces are the lines.
fn streamed(text: &str) -> String {
    let mut stream = Stream::new(true);
    let mut told: String = text.split_inclusive('\n').filter_map(|line| stream.push(line)).collect();
    told.extend(stream.finish());
    told
}

/// Fails with all rows that `fault` names at once.
fn check(corpus: &str, fault: impl Fn(&Row) -> Option<String>) {
    let faults: Vec<String> = rows(corpus)
        .iter()
        .filter_map(|row| fault(row).map(|fault| format!("{}: {:?}\n    {fault:?}", row.kind, row.text)))
        .collect();
    assert!(faults.is_empty(), "{} rows:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn the_corpora_are_large_enough() {
    assert!(rows(SECRETS).len() >= 250 && rows(SECRETS).iter().all(|row| !row.secrets().is_empty()));
    assert!(rows(NOT_SECRETS).len() >= 150 && rows(NOT_SECRETS).iter().all(|row| row.secrets().is_empty()));
}

#[test]
fn a_secret_goes_and_the_text_around_it_stays() {
    check(SECRETS, |row| {
        let redacted = redact(&row.plain()).into_owned();
        let told = row.secrets().iter().any(|secret| redacted.contains(secret));
        (told || without_kinds(&redacted) != row.expected()).then_some(redacted)
    });
}

#[test]
fn other_texts_keep_each_byte() {
    check(NOT_SECRETS, |row| {
        let redacted = redact(&row.text);
        (redacted != row.text).then(|| redacted.into_owned())
    });
}

#[test]
fn a_stream_of_lines_redacts_the_same() {
    check(SECRETS, |row| {
        let (told, whole) = (streamed(&row.plain()), redact(&row.plain()).into_owned());
        (told != whole).then_some(told)
    });
    check(NOT_SECRETS, |row| {
        let told = streamed(&row.text);
        (told != row.text).then_some(told)
    });
}

#[test]
fn redacting_a_row_twice_changes_nothing() {
    check(SECRETS, |row| {
        let once = redact(&row.plain()).into_owned();
        let twice = redact(&once).into_owned();
        (once != twice).then_some(twice)
    });
}

#[test]
fn a_secret_goes_from_a_string_of_json_too() {
    check(SECRETS, |row| {
        let quoted = serde_json::json!({"command": row.plain(), "n": 1}).to_string();
        let redacted = redact(&quoted).into_owned();
        let told = row.secrets().iter().any(|secret| {
            let secret = serde_json::json!(secret).to_string();
            redacted.contains(secret.trim_matches('"'))
        });
        (told || !redacted.ends_with(",\"n\":1}") || !redacted.starts_with("{\"command\":\"")).then_some(redacted)
    });
    check(NOT_SECRETS, |row| {
        let quoted = serde_json::json!({"command": row.text, "n": 1}).to_string();
        let redacted = redact(&quoted);
        (redacted != quoted).then(|| redacted.into_owned())
    });
}
