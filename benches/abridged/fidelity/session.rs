//! A session as the measure sees it: entries with their texts, and the places where it is cut.

use super::names::names;
use abridged::conversation::{
    entry::{Body, Entry},
    message::{self, Block, Message},
    tokens,
};
use serde_json::Value;
use std::{collections::HashSet, sync::Arc};

/// The kept part behind a cut, in tokens, if the session is large enough.
const KEPT: u64 = 20_000;

/// Entries after a cut whose names are looked for.
const HORIZON: usize = 60;

/// Cuts of a session.
const CUTS: usize = 8;

/// The least size of a span, in tokens. A smaller one leaves nothing to choose.
const LEAST_SPAN: u64 = 6_000;

/// One entry with its texts.
pub struct Piece {
    pub entry: Arc<Entry>,
    pub kind: Kind,
    /// The texts, one for each block.
    pub texts: Vec<String>,
    pub tokens: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    User,
    Assistant,
    Result { failed: bool },
    Other,
}

/// A session.
pub struct Session {
    pub name: String,
    pub pieces: Vec<Piece>,
}

/// A cut: what is summarized, what is kept and what comes after it.
pub struct Cut<'a> {
    pub span: &'a [Piece],
    pub kept: &'a [Piece],
    pub later: &'a [Piece],
}

impl Session {
    pub fn read(name: &str, lines: &str) -> Self {
        let entries = lines.lines().enumerate().filter_map(|(at, line)| entry(at, line)).map(Arc::new);
        let pieces = entries.map(Piece::of).filter(|piece| !piece.texts.is_empty()).collect();
        Self { name: name.to_owned(), pieces }
    }

    /// The cuts of a session: at equal distances, with a span that leaves something to choose and an entry behind it.
    pub fn cuts(&self) -> Vec<Cut<'_>> {
        let all: u64 = self.pieces.iter().map(|piece| piece.tokens).sum();
        let kept = KEPT.min(all / 5);
        let mut cuts = Vec::new();
        for number in 1..=CUTS {
            let now = self.pieces.len() * number / (CUTS + 1);
            let mut sum = 0;
            let mut at = now;
            while at > 0 && sum < kept {
                at -= 1;
                sum += self.pieces[at].tokens;
            }
            // A kept part never begins with a result.
            while at > 0 && matches!(self.pieces[at].kind, Kind::Result { .. }) {
                at -= 1;
            }
            let span = &self.pieces[..at];
            if span.iter().map(|piece| piece.tokens).sum::<u64>() < LEAST_SPAN.min(all / 4) {
                continue;
            }
            let until = (now + HORIZON).min(self.pieces.len());
            cuts.push(Cut { span, kept: &self.pieces[at..now], later: &self.pieces[now..until] });
        }
        cuts
    }
}

/// The entry in a line. A line of pi's first form has no id and gets one.
fn entry(at: usize, line: &str) -> Option<Entry> {
    let mut value: Value = serde_json::from_str(line).ok()?;
    let members = value.as_object_mut()?;
    members.entry("id").or_insert_with(|| format!("line-{at}").into());
    members.entry("parentId").or_insert(Value::Null);
    members.entry("timestamp").or_insert_with(|| "".into());
    Entry::parse(value.to_string().into()).ok()
}

impl Piece {
    fn of(entry: Arc<Entry>) -> Self {
        let mut texts = Vec::new();
        let mut kind = Kind::Other;
        if let (Body::Message(_), Some(message)) = (&entry.body, entry.message_once()) {
            match &*message {
                Message::User(blocks) => {
                    kind = Kind::User;
                    texts.push(message::text_of(blocks));
                }
                Message::Assistant(answer) if !answer.failed() => {
                    kind = Kind::Assistant;
                    texts.push(message::text_of(&answer.content));
                    for block in &answer.content {
                        if let Block::ToolCall(call) = block {
                            texts.push(call_text(&call.name, &call.arguments));
                        }
                    }
                }
                Message::ToolResult(result) => {
                    kind = Kind::Result { failed: result.is_error };
                    texts.push(message::text_of(&result.content));
                }
                _ => {}
            }
        }
        texts.retain(|text| !text.trim().is_empty());
        let tokens = texts.iter().map(|text| u64::from(tokens::of_text(text))).sum();
        Self { entry, kind, texts, tokens }
    }
}

/// A call with its arguments, each on lines of its own.
fn call_text(name: &str, arguments: &str) -> String {
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
    let mut text = name.to_owned();
    for (argument, value) in arguments.as_object().into_iter().flatten() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        text.push_str(&format!(" {argument}={value}"));
    }
    text
}

impl<'a> Cut<'a> {
    /// The lines of the span.
    pub fn lines(&self) -> impl Iterator<Item = (&'a Piece, &'a str)> {
        let texts = self.span.iter().flat_map(|piece| piece.texts.iter().map(move |text| (piece, text)));
        texts.flat_map(|(piece, text)| text.lines().map(move |line| (piece, line)))
    }

    /// The names that the user and the agent use after the cut, that occur in the span and not in the kept part.
    pub fn gold(&self) -> HashSet<&'a str> {
        let of = |pieces: &'a [Piece]| pieces.iter().flat_map(|it| it.texts.iter()).flat_map(|text| names(text));
        let (span, kept): (HashSet<&str>, HashSet<&str>) = (of(self.span).collect(), of(self.kept).collect());
        let later = self.later.iter().filter(|piece| matches!(piece.kind, Kind::User | Kind::Assistant));
        let used = later.flat_map(|piece| piece.texts.iter()).flat_map(|text| names(text));
        used.filter(|name| span.contains(name) && !kept.contains(name)).collect()
    }
}
