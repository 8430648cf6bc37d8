//! A line of a session file: its pieces, and the entries on it.

use super::chunks::choices;
use abridged::{
    conversation::{
        context::{self, check::violations},
        entry::{Entry, Head},
        message::{Message, outline::Outline},
        path::Path,
        tokens::Estimator,
    },
    ids::EntryId,
    log::{
        lines::Line,
        pieces::{self, Form, Piece},
    },
    prompts::Prompts,
    provider::{
        Api, Delivery, Request, codec,
        turns::{Target, turns},
    },
};
use serde_json::Value;
use std::{borrow::Cow, ops::Range, sync::Arc};

const APIS: [Api; 4] = [Api::Anthropic, Api::OpenaiChat, Api::OpenaiResponses, Api::Google];

/// The most tokens of an image.
const MOST_OF_IMAGE: usize = 1_600;

/// Where the line stands in its file.
const OFFSET: u64 = 100;

pub fn check(data: &[u8]) {
    let Some(([form], rest)) = choices(data) else { return };
    let form = if form % 2 == 0 { Form::Today } else { Form::Old };
    let bytes = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = Line { bytes, offset: OFFSET, next: OFFSET + bytes.len() as u64 + 1, ended: true, cut: false };
    if !line.is_blank() {
        stand_apart(&line, form);
    }
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(entry) = Entry::parse(text.into())
    {
        says_what_its_line_says(&entry, text);
        has_another_parent_elsewhere(&entry);
        is_part_of_a_context(entry);
    }
}

/// The pieces of a line are apart and in order, and nothing between them says anything.
fn stand_apart(line: &Line<'_>, form: Form) {
    let pieces = pieces::of(line, form);
    let mut end = 0;
    for piece in &pieces {
        let (Piece::Entry(range, _) | Piece::Broken(range, _)) = piece;
        assert!(end <= range.start && range.start < range.end && range.end <= line.bytes.len(), "{pieces:?}");
        says_nothing(line, end..range.start);
        end = range.end;
        let spot = piece.spot(line);
        assert_eq!((spot.offset, spot.length as usize), (OFFSET + range.start as u64, range.len()));
        let bytes = &line.bytes[range.clone()];
        match (piece, piece.entry(line)) {
            (Piece::Entry(_, head), Some(entry)) => {
                assert_eq!(head.id().as_deref(), Some(entry.id.as_str()));
                assert_eq!(head.parent().as_deref(), entry.parent.as_ref().map(EntryId::as_str));
                let again = pieces::entry(bytes).expect("it was one");
                assert_eq!((&again.id, again.line()), (&entry.id, entry.line()));
            }
            (Piece::Entry(_, head), None) => assert!(form == Form::Old && head.id().is_none(), "{pieces:?}"),
            (Piece::Broken(_, fault), placeholder) => {
                assert!(!fault.what.is_empty());
                // It is read again by its place alone.
                let again = pieces::placeholder(bytes, spot);
                let ids = |entry: Option<Arc<Entry>>| entry.map(|entry| (entry.id.clone(), entry.parent.clone()));
                assert_eq!(ids(again), ids(placeholder));
            }
        }
    }
    says_nothing(line, end..line.bytes.len());
}

fn says_nothing(line: &Line<'_>, range: Range<usize>) {
    let bytes = &line.bytes[range];
    let is_nothing = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0;
    assert!(bytes.iter().all(is_nothing), "{:?} is in no piece", String::from_utf8_lossy(bytes));
}

/// Two readings of a line, and two of its message, say the same.
fn says_what_its_line_says(entry: &Entry, text: &str) {
    let head = Head::read(text).expect("the line of an entry has a head");
    assert_eq!(head.id().as_deref(), Some(entry.id.as_str()));
    assert_eq!(head.parent().as_deref(), entry.parent.as_ref().map(EntryId::as_str));
    assert!(entry.line() == text || text.contains("\\u"), "{text}");
    let images = text.matches("image").count();
    assert!(entry.tokens(Estimator::Chars) as usize <= entry.line().len() + MOST_OF_IMAGE * images, "{text}");
    // A text is no longer than its line, but for the marks of images.
    assert!(entry.readable_text().len() <= 8 * entry.line().len() + 1_000, "{text}");
    if let Some(json) = entry.message_json() {
        let (outline, message) = (Outline::read(json).expect("it was read"), Message::parse(json).expect("a message"));
        assert_eq!(outline, Outline::of(&message), "{json}");
        assert_eq!(Some(&outline), entry.outline());
        let turn = |api: Api| turns([Cow::Borrowed(json)], &Target { api, provider: "p", model: "m" });
        for api in APIS {
            let request = Request { turns: turn(api), ..Request::default() };
            assert!(codec::encode(api, &request, Delivery::Stream).body.is_object(), "{json}");
        }
    }
}

/// The line behind another parent is the same entry but for its parent.
fn has_another_parent_elsewhere(entry: &Entry) {
    for parent in [None, Some(EntryId::from("another \"parent\""))] {
        let copy = Arc::new(Entry::parse(entry.line().into()).expect("it was read")).behind(parent.clone());
        let line = copy.line_with_parent();
        let moved = Entry::parse(line.as_ref().into()).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!((&moved.id, &moved.parent, &moved.kind), (&entry.id, &parent, &entry.kind), "{line}");
        assert_eq!(moved.message_json(), entry.message_json(), "{line}");
    }
}

/// A context of the entry alone is one that a provider takes.
fn is_part_of_a_context(entry: Entry) {
    let path = Path::of(&[Arc::new(entry).behind(None)]);
    let context = context::build(&path, &Prompts::default());
    let message = |json: Cow<'_, str>| serde_json::from_str::<Value>(&json).ok();
    let messages: Vec<Value> = context.messages().iter().filter_map(|it| message(it.json())).collect();
    // A number that is too large for any reader is still JSON.
    if messages.len() == context.messages().len() {
        assert_eq!(violations(&messages), Vec::<String>::new());
    }
}
