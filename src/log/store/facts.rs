//! The facts about lines that a store keeps beside them, so that sessions are listed and found without being read.

use crate::{
    conversation::message::{self, Message},
    text::{self, values},
};
use serde_json::Value;

/// The longest text of one entry that can be found, in characters.
const LONGEST_TEXT: usize = 4 << 10;

/// The longest title, in characters.
const LONGEST_TITLE: usize = 1 << 10;

/// The longest first request, in characters.
const LONGEST_PREVIEW: usize = 160;

/// Longer lines are not looked into, in bytes: a text that a person wrote is shorter.
const LONGEST_LINE: usize = 1 << 20;

/// The facts about lines that are appended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// The name that they give the session; an empty one takes it away.
    pub title: Option<String>,
    /// The first request of the user in them.
    pub preview: Option<String>,
    /// Number of entries.
    pub entries: u64,
    /// The texts that can be searched, each with the number of its line.
    pub texts: Vec<(u64, String)>,
}

impl Facts {
    /// The facts about rows, the first of which has this number.
    #[must_use]
    pub fn of(rows: &[Vec<u8>], first: u64) -> Self {
        let mut facts = Self::default();
        for (number, row) in (first..).zip(rows) {
            facts.add(number, row);
        }
        facts
    }

    fn add(&mut self, number: u64, row: &[u8]) {
        if row.len() > LONGEST_LINE {
            self.entries += 1;
            return;
        }
        let Some(line) = std::str::from_utf8(row).ok().filter(|line| values::check(line).is_ok()) else { return };
        let Ok(line) = serde_json::from_str::<Value>(line) else { return };
        let kind = line["type"].as_str().unwrap_or_default();
        if !["session", "title"].contains(&kind) && line.get("id").is_some() {
            self.entries += 1;
        }
        if let Some(name) = named(&line) {
            self.title = Some(cut(&name, LONGEST_TITLE));
        }
        match kind {
            "message" => match Message::parse(&line["message"].to_string()) {
                Ok(Message::User(content)) => {
                    let said = message::text_of(&content);
                    self.preview.get_or_insert_with(|| sound(&text::one_line(&said, LONGEST_PREVIEW)));
                    self.find(number, &said);
                }
                Ok(Message::Assistant(answer)) => self.find(number, &message::text_of(&answer.content)),
                _ => {}
            },
            "compaction" | "branch_summary" => self.find(number, line["summary"].as_str().unwrap_or_default()),
            _ => {}
        }
    }

    fn find(&mut self, number: u64, text: &str) {
        if !text.trim().is_empty() {
            self.texts.push((number, cut(text, LONGEST_TEXT)));
        }
    }
}

/// The name that a line gives the session: the header, oh-my-pi's line before it, or an entry.
fn named(line: &Value) -> Option<String> {
    match line["type"].as_str()? {
        "session" | "title" => line["title"].as_str().map(str::to_owned),
        _ => renamed(line),
    }
}

/// The name that an entry gives the session: pi's, or oh-my-pi's.
#[must_use]
pub fn renamed(entry: &Value) -> Option<String> {
    let name = match entry["type"].as_str()? {
        "session_info" => &entry["name"],
        "title_change" => &entry["title"],
        _ => return None,
    };
    name.as_str().map(str::to_owned)
}

/// The beginning of a text, as a database takes it.
fn cut(text: &str, most: usize) -> String {
    sound(text::head(text, most))
}

/// A text without the zero character, which a database takes in no text.
#[must_use]
pub fn sound(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}
