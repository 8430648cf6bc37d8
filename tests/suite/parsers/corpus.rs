//! The corpus of a target: a file with an input on each line, as a JSON text, or in base64 where it is no UTF-8.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use std::{
    fs,
    io::{self, ErrorKind},
    path::PathBuf,
};

/// The file of a target.
pub fn file(target: &str) -> PathBuf {
    // `tests/corpora` of the package that is tested, or of the one around the fuzzer.
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let root = if root.ends_with("tests/fuzz") { root.join("../..") } else { root };
    root.join(format!("tests/corpora/parsers/{target}.jsonl"))
}

/// The inputs of a target.
pub fn read(target: &str) -> io::Result<Vec<Vec<u8>>> {
    let text = fs::read_to_string(file(target))?;
    text.lines()
        .map(|line| input(line).ok_or_else(|| io::Error::new(ErrorKind::InvalidData, line.to_owned())))
        .collect()
}

/// Replaces the inputs of a target. Small ones come first.
#[cfg(not(test))]
pub fn write(target: &str, mut inputs: Vec<Vec<u8>>) -> io::Result<()> {
    inputs.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
    inputs.dedup();
    let text: String = inputs.iter().map(|input| line(input) + "\n").collect();
    fs::write(file(target), text)
}

fn input(line: &str) -> Option<Vec<u8>> {
    match serde_json::from_str(line).ok()? {
        Value::String(text) => Some(text.into_bytes()),
        Value::Object(fields) => STANDARD.decode(fields.get("base64")?.as_str()?).ok(),
        _ => None,
    }
}

/// The line of an input.
pub fn line(input: &[u8]) -> String {
    match std::str::from_utf8(input) {
        Ok(text) => json!(text).to_string(),
        Err(_) => json!({"base64": STANDARD.encode(input)}).to_string(),
    }
}
