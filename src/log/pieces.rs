//! The entries of one line of a session file. Nearly every line is one entry. A line on which a newline was lost holds
//! several; a write that was cut off, or bytes that were changed, leave a broken piece of one.

use super::lines::Line;
use crate::{
    conversation::entry::{Broken, Entry, Head},
    ids::EntryId,
    log::index::Spot,
    text::faults::without_position,
};
use serde_json::{
    de::{SliceRead, StrRead},
    value::RawValue,
};
use std::{borrow::Cow, cell::OnceCell, ops::Range, sync::Arc};

/// Part of a line.
#[derive(Debug)]
pub enum Piece<'a> {
    /// A whole entry, and its head.
    Entry(Range<usize>, Head<'a>),
    /// A part that is no entry, and its fault.
    Broken(Range<usize>, Fault),
}

/// The fault of a part that is no entry.
#[derive(Debug)]
pub struct Fault {
    /// The problem, for a repair.
    pub what: String,
    /// Its ids, where they can be read.
    pub ids: Option<Broken>,
}

/// The problem of an entry without its id.
const NO_ID: &str = "an entry of version 3 needs an id";

/// The form of the lines of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Of the version that is written today: every entry has an id.
    Today,
    /// Of an older version: an entry may have no ids.
    Old,
}

/// The parts of a line that is not blank, in their order.
pub fn of<'a>(line: &Line<'a>, form: Form) -> Vec<Piece<'a>> {
    match whole(line, form) {
        Ok(head) => vec![Piece::Entry(0..line.bytes.len(), head)],
        Err(pieces) => pieces,
    }
}

/// The head of a line that is one entry, as nearly every line is. The parts of any other line.
pub fn whole<'a>(line: &Line<'a>, form: Form) -> Result<Head<'a>, Vec<Piece<'a>>> {
    let bytes = line.bytes;
    if line.cut {
        return Err(vec![broken(bytes, 0..bytes.len(), "longer than a line may be, or a hole of the file is in it")]);
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => return Err(split(bytes, form, &format!("not UTF-8 ({error})"), None)),
    };
    let mut heads = Head::all(StrRead::new(text));
    let (problem, first) = match heads.next() {
        Some(Ok(head)) => {
            let end = heads.byte_offset();
            let alone = bytes[end..].iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'));
            match form {
                _ if !alone => ("trailing characters".to_owned(), Object::Entry(end, head)),
                Form::Today if head.id().is_none() => {
                    return Err(split(bytes, form, NO_ID, Some(Object::Entry(end, head))));
                }
                _ => return Ok(head),
            }
        }
        Some(Err(error)) => (without_position(&error.to_string()), Object::stopped(&error, bytes, 0)),
        None => ("no value".to_owned(), Object::Broken(bytes.len())),
    };
    Err(split(bytes, form, &format!("not a JSON object with a type: {problem}"), Some(first)))
}

/// An object of a line, after one reading.
#[expect(clippy::large_enum_variant, reason = "one lives at a time")]
enum Object<'a> {
    /// It has a type, and ends there.
    Entry(usize, Head<'a>),
    /// It ends there. Its head was not read, or it has none.
    Value(usize),
    /// Reading stopped there.
    Broken(usize),
}

impl<'a> Object<'a> {
    /// Reads an object that is probably an entry.
    fn entry_at(bytes: &'a [u8], start: usize) -> Self {
        let mut heads = Head::all(SliceRead::new(&bytes[start..]));
        match heads.next() {
            Some(Ok(head)) => {
                let end = start + heads.byte_offset();
                match std::str::from_utf8(&bytes[start..end]) {
                    Ok(_) => Self::Entry(end, head),
                    Err(_) => Self::Broken(end),
                }
            }
            Some(Err(error)) => Self::stopped(&error, bytes, start),
            None => Self::Broken(bytes.len()),
        }
    }

    /// The object on which the reading of a head stopped. A head has stricter rules than JSON, unless it has no end.
    fn stopped(error: &serde_json::Error, bytes: &'a [u8], start: usize) -> Self {
        if error.is_eof() { Self::Broken(bytes.len()) } else { Self::value_at(bytes, start) }
    }

    /// Reads an object that is probably a part of an entry.
    fn value_at(bytes: &'a [u8], start: usize) -> Self {
        let mut values = serde_json::Deserializer::from_slice(&bytes[start..]).into_iter::<&RawValue>();
        match values.next() {
            Some(Ok(_)) => Self::Value(start + values.byte_offset()),
            // There is no newline in a line, so a column is an offset.
            Some(Err(error)) => Self::Broken((start + error.column()).min(bytes.len())),
            None => Self::Broken(bytes.len()),
        }
    }

    /// Its head, where it is whole and has one.
    fn head(self, bytes: &'a [u8], start: usize) -> Option<Head<'a>> {
        match self {
            Self::Entry(_, head) => Some(head),
            Self::Value(end) => Head::read(std::str::from_utf8(&bytes[start..end]).ok()?).ok(),
            Self::Broken(_) => None,
        }
    }
}

/// The parts of a line that is not one entry. `first` is the object at its beginning, where it was read.
fn split<'a>(bytes: &'a [u8], form: Form, what: &str, first: Option<Object<'a>>) -> Vec<Piece<'a>> {
    /// An object is read again for each object around it, so many times in all. Deeper nesting is no longer looked into.
    const READINGS: usize = 16;
    /// In bytes; lines of a few kilobytes are looked into completely.
    const AT_LEAST: usize = 64 << 10;
    let mut pieces = Vec::new();
    let mut left = bytes.len().saturating_mul(READINGS).max(AT_LEAST);
    // Everything before `known.from` belongs to a piece.
    let mut known = Before::new(bytes, 0, form);
    let mut at = 0;
    let is_blank = |range: Range<usize>| bytes[range].iter().all(|byte| byte.is_ascii_whitespace() || *byte == 0);
    let add_broken = |range: Range<usize>, pieces: &mut Vec<Piece<'a>>| {
        if !is_blank(range.clone()) {
            pieces.push(broken(bytes, range, what));
        }
    };
    // An entry after something else names its parent.
    let parents = memchr::memmem::Finder::new(b"\"parentId\"");
    let mut named = 0;
    let mut read = first.map(|object| (0, object));
    while let Some(start) = object_from(bytes, at) {
        if form == Form::Today && named <= start {
            let Some(found) = parents.find(&bytes[start..]) else { break };
            named = start + found + 1;
        }
        let object = match read.take_if(|(at, _)| *at == start) {
            Some((_, object)) => object,
            _ if is_blank(known.from..start) => Object::entry_at(bytes, start),
            _ => Object::value_at(bytes, start),
        };
        match object {
            Object::Entry(end, _) | Object::Value(end) => {
                // Where no parent is named inside, it is no entry.
                let may_be = form == Form::Old || named < end;
                if may_be
                    && let Some(head) = object.head(bytes, start)
                    && known.ends_before_entry(start, &head)
                {
                    add_broken(known.from..start, &mut pieces);
                    pieces.push(Piece::Entry(start..end, head));
                    known = Before::new(bytes, end, form);
                }
                // An entry never stands inside of a whole object.
                at = end;
                left = left.saturating_sub(end - start);
            }
            Object::Broken(error_at) => {
                left = left.saturating_sub(error_at - start);
                if known.ends_before_broken(start) {
                    add_broken(known.from..start, &mut pieces);
                    known = Before::new(bytes, start, form);
                }
                // Where a piece was cut off and the next entry follows, reading ends right after the first bytes of that.
                let next = memchr::memrchr(b'{', &bytes[start + 1..error_at.max(start + 1)]).map(|at| start + 1 + at);
                if read.as_ref().map(|(at, _)| *at) != next {
                    read = next
                        .filter(|next| form == Form::Old || parents.find(&bytes[*next..]).is_some())
                        .map(|next| (next, Object::entry_at(bytes, next)))
                        .filter(|(next, object)| match object {
                            Object::Entry(_, head) => known.clone().ends_before_entry(*next, head),
                            _ => false,
                        });
                }
                // Cut off right before a value, a piece has the first of several entries that follow as its value.
                let between = |next: usize| {
                    object_from(bytes, start + 1)
                        .is_some_and(|first| first < next && parents.find(&bytes[first..next]).is_some())
                };
                let jump = read.as_ref().map(|(next, _)| *next).filter(|next| form == Form::Old || !between(*next));
                at = jump.unwrap_or(start + 1);
            }
        }
        if left == 0 {
            break;
        }
    }
    add_broken(known.from..bytes.len(), &mut pieces);
    pieces
}

/// A part that is no entry.
fn broken<'a>(bytes: &[u8], range: Range<usize>, what: &str) -> Piece<'a> {
    let ids = ids(&bytes[range.clone()]);
    Piece::Broken(range, Fault { what: what.to_owned(), ids })
}

/// The broken piece before an object that may be an entry of its own.
#[derive(Clone)]
struct Before<'a> {
    whole: &'a [u8],
    form: Form,
    /// Where it begins.
    from: usize,
    /// The state of its JSON where it was read to.
    fields: Fields<'a>,
    /// Its id, once it was looked for.
    id: OnceCell<Option<EntryId>>,
}

impl<'a> Before<'a> {
    fn new(whole: &'a [u8], from: usize, form: Form) -> Self {
        Self { whole, form, from, fields: Fields { at: from, ..Fields::of(whole) }, id: OnceCell::new() }
    }

    /// Whether a whole object is an entry of its own.
    fn ends_before_entry(&mut self, start: usize, head: &Head<'_>) -> bool {
        // A part of an entry, such as a tool call, names no parent.
        match self.form {
            Form::Old => self.ends_before(start, None),
            Form::Today => {
                // An entry after a broken piece has a time, as every program writes it; a part that looks like one may have none.
                let is_own = head.timestamp.is_some() || self.is_blank_to(start);
                is_own
                    && head.id().is_some()
                    && head.names_parent()
                    && self.ends_before(start, head.parent().as_deref())
            }
        }
    }

    /// Whether nothing stands before a place.
    fn is_blank_to(&self, start: usize) -> bool {
        self.whole[self.from..start].iter().all(|byte| byte.is_ascii_whitespace() || *byte == 0)
    }

    /// Whether a broken object is another one than that before it.
    fn ends_before_broken(&mut self, start: usize) -> bool {
        /// Where the ids of an entry stand, in bytes.
        const BEGINNING: usize = 1 << 10;
        if start == self.from || self.form == Form::Old {
            return false;
        }
        let object = &self.whole[start..self.whole.len().min(start + BEGINNING)];
        let Some(Broken { parent: Some(parent), .. }) = ids(object) else { return false };
        self.ends_before(start, parent.as_ref().map(EntryId::as_str))
    }

    /// Whether what begins here is no value of the object before it: no value can stand here, or it names that object as
    /// its parent, which an entry inside of it never does.
    fn ends_before(&mut self, start: usize, parent: Option<&str>) -> bool {
        self.fields.read_to(self.whole, start);
        let before = &self.whole[self.from..start];
        let last = before.iter().rev().find(|byte| !byte.is_ascii_whitespace());
        match (last, self.fields.key) {
            _ if self.fields.in_text => true,
            // In an object a name stands after a comma.
            (Some(b','), _) if self.fields.in_object() => true,
            (Some(b':'), Some(b"type" | b"id" | b"parentId" | b"timestamp")) => true,
            (Some(b':' | b',' | b'['), _) => {
                let id = self.id.get_or_init(|| ids(before).map(|broken| broken.id));
                parent.is_some() && id.as_ref().map(EntryId::as_str) == parent
            }
            _ => true,
        }
    }
}

/// Where the next object may begin.
fn object_from(bytes: &[u8], at: usize) -> Option<usize> {
    let mut from = at;
    loop {
        let start = from + memchr::memchr(b'{', bytes.get(from..)?)?;
        let key = bytes[start + 1..].iter().find(|byte| !byte.is_ascii_whitespace());
        if key == Some(&b'"') {
            return Some(start);
        }
        from = start + 1;
    }
}

/// The ids of a broken piece, where its own can be read: those of its outermost object, up to where it breaks.
fn ids(bytes: &[u8]) -> Option<Broken> {
    // A long piece without any id is nothing rare.
    memchr::memmem::find(bytes, b"\"id\"")?;
    let fields = Fields::of(bytes);
    let (mut id, mut parent, mut timestamp) = (None, None, None);
    for (key, value) in fields {
        let text = || serde_json::from_slice::<String>(value).ok();
        match key {
            b"id" if id.is_none() => id = text().filter(|id| !id.is_empty()),
            b"parentId" if parent.is_none() && value == b"null" => parent = Some(None),
            b"parentId" if parent.is_none() => parent = text().map(|parent| Some(EntryId::from(parent))),
            b"timestamp" if timestamp.is_none() => timestamp = text(),
            _ => {}
        }
        if id.is_some() && parent.is_some() && timestamp.is_some() {
            break;
        }
    }
    Some(Broken { id: id?.into(), parent, timestamp })
}

/// The texts and nulls of the outermost object of something that is nearly JSON.
#[derive(Clone, Copy)]
struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: usize,
    /// A bit for each container around, set for an object; the innermost is the lowest.
    objects: u128,
    key: Option<&'a [u8]>,
    /// The bytes end in a text.
    in_text: bool,
}

impl<'a> Fields<'a> {
    fn of(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, depth: 0, objects: 0, key: None, in_text: false }
    }

    /// Whether the innermost container is an object.
    fn in_object(&self) -> bool {
        self.depth > 0 && self.objects & 1 == 1
    }

    /// Reads on to a place, whatever is found there.
    fn read_to(&mut self, whole: &'a [u8], end: usize) {
        self.bytes = &whole[..end];
        self.in_text = false;
        while self.at < end && !self.in_text {
            self.next();
        }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        while let Some(byte) = self.bytes.get(self.at) {
            let from = self.at;
            self.at += 1;
            match byte {
                b'"' => {
                    let Some(end) = string_end(self.bytes, from) else {
                        // It may be read on from here.
                        self.at = from;
                        self.in_text = true;
                        return None;
                    };
                    self.at = end;
                    let text = &self.bytes[from..self.at];
                    match self.key.take() {
                        _ if self.depth != 1 => {}
                        Some(key) => return Some((key, text)),
                        None => self.key = self.takes_colon().then(|| &text[1..text.len() - 1]),
                    }
                }
                b'n' if self.depth == 1 && self.bytes[from..].starts_with(b"null") => {
                    self.at = from + 4;
                    if let Some(key) = self.key.take() {
                        return Some((key, &self.bytes[from..self.at]));
                    }
                }
                b'{' | b'[' => {
                    self.depth += 1;
                    self.objects = self.objects << 1 | u128::from(*byte == b'{');
                    self.key = None;
                }
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    self.objects >>= 1;
                    if self.depth == 0 {
                        return None;
                    }
                }
                b',' => self.key = None,
                // A piece that does not begin with an object has lost its beginning, and its ids with it.
                other if self.depth == 0 && !other.is_ascii_whitespace() && *other != 0 => return None,
                _ => {}
            }
        }
        None
    }
}

impl Fields<'_> {
    fn takes_colon(&mut self) -> bool {
        let rest = &self.bytes[self.at..];
        let blank = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let found = rest.get(blank) == Some(&b':');
        if found {
            self.at += blank + 1;
        }
        found
    }
}

/// Where a JSON text ends that begins with the quote at `from`, after its closing quote.
fn string_end(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}

impl Piece<'_> {
    /// Where it stands in the file.
    pub fn spot(&self, line: &Line<'_>) -> Spot {
        let (Self::Entry(range, _) | Self::Broken(range, _)) = self;
        // The longest line is far below the largest length.
        let length = u32::try_from(range.len()).unwrap_or(u32::MAX);
        Spot { offset: line.offset + range.start as u64, length }
    }

    /// Its id, where it can be read.
    pub fn id(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Entry(_, head) => head.id(),
            Self::Broken(_, fault) => Some(fault.ids.as_ref()?.id.as_str().into()),
        }
    }

    /// The entry, or the placeholder of a broken one; nothing where that has no id.
    pub fn entry(&self, line: &Line<'_>) -> Option<Arc<Entry>> {
        match self {
            Self::Entry(range, _) => entry(line.bytes.get(range.clone())?).ok(),
            Self::Broken(_, fault) => stand_in(fault.ids.as_ref()?, self.spot(line)),
        }
    }
}

/// Reads one whole entry.
pub fn entry(bytes: &[u8]) -> Result<Arc<Entry>, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| format!("not UTF-8 ({error})"))?;
    Entry::parse(text.into()).map(Arc::new).map_err(|error| error.to_string())
}

/// The entry that stands for a broken piece.
pub fn placeholder(bytes: &[u8], spot: Spot) -> Option<Arc<Entry>> {
    stand_in(&ids(bytes)?, spot)
}

fn stand_in(ids: &Broken, spot: Spot) -> Option<Arc<Entry>> {
    Entry::placeholder(ids, spot.offset, spot.length).ok().map(Arc::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = r#"{"type":"message","id":"a","parentId":null,"timestamp":"t","message":{"role":"user","content":[{"type":"text","text":"one {\"two\"}"},{"type":"toolCall","id":"c","name":"n","arguments":{"id":"x","type":"y"}}]}}"#;
    const B: &str =
        r#"{"id":"b","type":"message","parentId":"a","timestamp":"t","message":{"role":"user","content":"three"}}"#;

    /// Whole entries as `=id`, placeholders as `~id<parent`, other broken pieces as `~`.
    fn shape(text: &str) -> String {
        let line = Line { bytes: text.as_bytes(), offset: 100, next: 101 + text.len() as u64, ended: true, cut: false };
        let piece = |piece: &Piece| match (piece, piece.entry(&line)) {
            (Piece::Entry(..), Some(entry)) => format!("={}", entry.id),
            (Piece::Broken(..), Some(entry)) => {
                format!("~{}<{}", entry.id, entry.parent.as_ref().map_or("null", EntryId::as_str))
            }
            (Piece::Broken(..), None) => "~".to_owned(),
            (Piece::Entry(range, _), None) => panic!("{range:?} is no entry"),
        };
        of(&line, Form::Today).iter().map(piece).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn every_whole_entry_of_a_line_is_read_and_a_broken_one_keeps_its_ids() {
        let id_only = r#"{"type":"message","id":"q","par"#;
        let at_value = r#"{"type":"message","id":"a","parentId":"z","message":"#;
        let broken = A.replace("one", r"\q");
        let strange = format!(r#"{{"type":"custom","id":"a","parentId":null,"\ud800":1,"data":[{B}]}}"#);
        let twice = A.replace(r#""timestamp":"t""#, r#""timestamp":"t","timestamp":"u""#);
        for (line, expected) in [
            (A.to_owned(), "=a"),
            (format!("{A}{B}"), "=a =b"),
            (format!("{A} \t{B}{A}"), "=a =b =a"),
            (format!("{id_only}{B}"), "~q< =b"),
            (format!("{at_value}{B}"), "~a<z =b"),
            (format!("{at_value}{B}{A}"), "~a<z =b =a"),
            // An object is no name in an object.
            (format!(r#"{{"type":"message","id":"q","parentId":"z","message":{{"role":"user",{B}"#), "~q<z =b"),
            // A value that does not name the broken entry as its parent may be a part of it.
            (format!("{at_value}{A}"), "~a<z"),
            (broken.clone(), "~a<null"),
            (format!("{broken}{B}"), "~a<null =b"),
            (twice, "~a<null"),
            // A key that is no text of UTF-8 does not break the object: an entry inside of it is a part of it.
            (strange, "~a<null"),
            // A changed quote turns a part into one that could be an entry of its own.
            (r#"{"type":"custom","id":"a","parentId":"z","data":{"list?:[{"type":"message","id":"i","parentId":null}]}}"#.to_owned(), "~a<z"),
            // A form feed is no blank of JSON.
            (format!("{A}\u{c}"), "=a"),
            (format!("{A}garbage"), "=a ~"),
            (format!("\0\0\0{A}"), "=a"),
            (format!("{A}}}"), "=a ~"),
            (format!("{B}{id_only}"), "=b ~q<"),
            (format!("{id_only}{B}{id_only}{A}"), "~q< =b ~q< =a"),
            // Two that were cut off, one in a text and one right before a value.
            (format!(r#"{{"type":"message","id":"p","parentId":null,"mess{at_value}{B}"#), "~p<null ~a<z =b"),
            (format!(r#"{{"type":"message","id":"z","parentId":null,"message":{at_value}{B}"#), "~z<null ~a<z =b"),
            ("garbage".to_owned(), "~"),
            (r#"{"type":"x"}"#.to_owned(), "~"),
            (r#"pe":"message","id":"m"}"#.to_owned(), "~"),
            (r#"{"message":{"id":"inner"},"id":"o""#.to_owned(), "~o<"),
        ] {
            assert_eq!(shape(&line), expected, "{line}");
        }
    }

    #[test]
    fn an_entry_cut_anywhere_and_glued_to_the_next_never_takes_it_along() {
        for cut in 1..A.len() {
            let line = format!("{}{B}", &A[..cut]);
            let shape = shape(&line);
            assert!(shape.ends_with("=b"), "{cut}: {shape}: {line}");
            assert_eq!(shape.matches('=').count(), 1, "{cut}: {shape}");
            let two = self::shape(&format!("{line}{A}"));
            assert_eq!(two, format!("{shape} =a"), "{cut}: {line}{A}");
        }
    }

    #[test]
    fn part_of_an_entry_is_never_taken_for_one() {
        let nested = format!(r#"{{"type":"custom","id":"o","parentId":null,"data":{{"entries":[{A},{B}]}}}}"#);
        for cut in 1..nested.len() {
            let shape = shape(&nested[..cut]);
            assert!(!shape.contains('='), "{cut}: {shape}: {}", &nested[..cut]);
        }
        for cut in 1..A.len() {
            assert!(!shape(&A[cut..]).contains('='), "{}", &A[cut..]);
        }
    }

    #[test]
    fn deep_nesting_costs_a_bounded_number_of_readings() {
        let deep = r#"{"a":"#.repeat(200_000);
        assert_eq!(shape(&deep), "~");
    }
}
