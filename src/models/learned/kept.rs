//! The text of the file of learned windows. Version 2 is a list of rows; before it the file was a map from names of models
//! to tokens. Rows that cannot be read are left out, and the others hold. The sizes that servers accepted stand beside the
//! windows: older programs that know version 2 ignore them, and leave them out where they write the file.

use super::{Accepted, Address, Learned, LearnedWindow, plausible};
use crate::ids::ModelRef;
use serde_json::{Map, Value, json};

/// The version that is written.
const VERSION: u64 = 2;

/// Longest name of a model and longest address of a row, in bytes. A longer one is no name.
const LONGEST_NAME: usize = 1_000;

/// The content of the file.
#[derive(Debug, PartialEq)]
pub enum Content {
    /// The windows, and the number of rows that cannot be read.
    Read(Learned, usize),
    /// A newer version wrote it.
    Newer,
    /// It is no JSON object, or its parts are of a wrong type.
    Damaged,
}

/// Reads the text of the file.
#[must_use]
pub fn read(text: &[u8]) -> Content {
    let Ok(file) = serde_json::from_slice::<Map<String, Value>>(text) else { return Content::Damaged };
    let (version, windows) = (file.get("version"), file.get("windows"));
    match (version.map(Value::as_u64), windows) {
        (None, None) => of_rows(file.iter().map(|(name, tokens)| row_before_2(name, tokens))),
        (Some(Some(version)), _) if version > VERSION => Content::Newer,
        (Some(Some(_)), Some(Value::Array(rows))) => match of_rows(rows.iter().map(row)) {
            Content::Read(learned, bad) => {
                let sizes = file.get("accepted").and_then(Value::as_array).into_iter().flatten();
                Content::Read(learned.with_accepted(sizes.filter_map(size)), bad)
            }
            other => other,
        },
        _ => Content::Damaged,
    }
}

fn of_rows(rows: impl Iterator<Item = Option<LearnedWindow>>) -> Content {
    let (mut good, mut bad) = (Vec::new(), 0);
    for row in rows {
        match row {
            Some(row) => good.push(row),
            None => bad += 1,
        }
    }
    Content::Read(good.into_iter().collect(), bad)
}

fn row(value: &Value) -> Option<LearnedWindow> {
    usable(serde_json::from_value(value.clone()).ok()?)
}

/// A size that was accepted. One that cannot be read costs nothing: it is learned again.
fn size(value: &Value) -> Option<Accepted> {
    let size: Accepted = serde_json::from_value(value.clone()).ok()?;
    (is_named(&size.model, &size.base_url) && plausible(size.tokens)).then_some(size)
}

fn row_before_2(name: &str, tokens: &Value) -> Option<LearnedWindow> {
    usable(LearnedWindow::before_2(name, tokens.as_u64()?)?)
}

fn usable(row: LearnedWindow) -> Option<LearnedWindow> {
    let named = is_named(&row.model, &row.base_url);
    (named && row.refusals > 0 && plausible(row.context_window)).then_some(row)
}

/// Whether these can be the names of a model and of a server.
fn is_named(model: &ModelRef, address: &Address) -> bool {
    let short = |text: &str| text.len() <= LONGEST_NAME;
    short(&model.to_string()) && address.url().is_none_or(short)
}

/// The text of the file with these windows.
#[must_use]
pub fn text(learned: &Learned) -> String {
    let rows: Vec<&LearnedWindow> = learned.all().collect();
    let mut file = json!({ "version": VERSION, "windows": rows });
    let sizes = learned.all_accepted().iter().filter(|size| is_named(&size.model, &size.base_url));
    let sizes: Vec<&Accepted> = sizes.collect();
    if !sizes.is_empty() {
        file["accepted"] = json!(sizes);
    }
    format!("{file:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::learned::{Server, WindowOrigin};
    use jiff::Timestamp;

    fn learned(text: &str) -> (Vec<(String, u64, u32)>, usize) {
        match read(text.as_bytes()) {
            Content::Read(learned, bad) => {
                let rows = learned.all().map(|row| (row.model.to_string(), row.context_window, row.refusals));
                (rows.collect(), bad)
            }
            other => panic!("{other:?}"),
        }
    }

    fn one(tokens: u64, refusals: u32) -> Vec<(String, u64, u32)> {
        vec![("p/m".to_owned(), tokens, refusals)]
    }

    #[test]
    fn the_map_of_older_versions_is_read_and_each_of_its_windows_was_taught_once() {
        assert_eq!(learned(r#"{"p/m": 8192}"#), (one(8_192, 1), 0));
        assert_eq!(learned("{}"), (Vec::new(), 0));
        let odd = r#"{"p/m": 8192, "nonsense": 8192, "a/text": "8192", "a/negative": -1, "a/part": 1.5, "a/small": 3}"#;
        assert_eq!(learned(odd), (one(8_192, 1), 5));
        let Content::Read(learned, _) = read(br#"{"p/m": 8192}"#) else { panic!("it is read") };
        let row = learned.all().next().expect("a row");
        assert_eq!((&row.base_url, &row.learned_at, row.origin), (&Address::Unknown, &None, WindowOrigin::Refusal));
    }

    #[test]
    fn what_is_written_is_read_again() {
        let addresses = [Address::Unknown, Address::Usual, Address::At("http://h/v1".to_owned())];
        for address in addresses {
            let server = Server { model: ModelRef::parse("p/m").expect("a model"), address };
            let now = Timestamp::from_second(1_700_000_000).expect("a time");
            let row = LearnedWindow::new(server, 8_192, WindowOrigin::Saturation, now, &"s1".into());
            let learned: Learned = [row].into_iter().collect();
            assert_eq!(read(text(&learned).as_bytes()), Content::Read(learned.clone(), 0));
            let recorded = serde_json::to_value(&learned).expect("JSON");
            assert_eq!(serde_json::from_value::<Learned>(recorded).expect("windows"), learned);
        }
        let old: Learned = serde_json::from_value(json!({"p/m": 8_192})).expect("an old recording");
        assert_eq!(old.all().count(), 1);
    }

    #[test]
    fn a_row_that_somebody_edited_costs_no_other() {
        let row = |model: &str, window: Value, more: Value| {
            let mut row = json!({"model": model, "baseUrl": null, "contextWindow": window, "origin": "refusal"});
            row.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            row
        };
        let good =
            row("p/m", json!(8_192), json!({"refusals": 2, "learnedAt": "2099-01-01T00:00:00Z", "note": "mine"}));
        let text = |rows: Value| json!({"version": 2, "windows": rows}).to_string();
        let bad = [
            row("p/m", json!(-1), json!({})),
            row("p/m", json!(4_096), json!({"refusals": -2})),
            row("p/m", json!(4_096), json!({"refusals": 0})),
            row("p/m", json!(4_096), json!({"origin": "dream"})),
            row("p/m", json!(4_096), json!({"baseUrl": 7})),
            row("p/m", json!(20), json!({})),
            row(&format!("p/{}", "m".repeat(2_000)), json!(4_096), json!({})),
            json!({"model": "p/m"}),
            json!(null),
            json!("p/m"),
        ];
        for bad in bad {
            assert_eq!(learned(&text(json!([bad, good]))), (one(8_192, 2), 1), "{bad}");
        }
        let undated = row("p/m", json!(8_192), json!({"learnedAt": "yesterday"}));
        assert_eq!(learned(&text(json!([undated]))), (one(8_192, 1), 0), "a time that is none is left out");
        let other = row("p/m", json!(4_096), json!({}));
        let both = [one(8_192, 2), one(4_096, 1)].concat();
        assert_eq!(learned(&text(json!([good, other]))), (both, 0), "both may be true");
        let again = row("p/m", json!(8_192), json!({}));
        assert_eq!(learned(&text(json!([good, again]))), (one(8_192, 2), 0), "the count of the one that is confirmed");
    }

    #[test]
    fn a_file_of_a_newer_version_and_one_that_is_damaged_are_told_apart() {
        for newer in [r#"{"version": 3}"#, r#"{"version": 99, "windows": [], "more": 1}"#] {
            assert_eq!(read(newer.as_bytes()), Content::Newer, "{newer}");
        }
        for damaged in ["", "{", "[]", "7", r#"{"version": 2}"#, r#"{"version": "2", "windows": []}"#, "\u{0}\u{0}"] {
            assert_eq!(read(damaged.as_bytes()), Content::Damaged, "{damaged}");
        }
        assert_eq!(read(&[0xff, 0xfe, b'{']), Content::Damaged);
        let empty = r#"{"version": 2, "windows": {}}"#;
        assert_eq!(read(empty.as_bytes()), Content::Damaged, "the rows of another type");
    }
}
