//! Searches the entries of a session for a text, newest first. The lines of a file are searched as they are, and only lines
//! with a hit are parsed.

use crate::{
    conversation::entry::Entry,
    log::{
        error::StoreError,
        history::library::Library,
        lines::Line,
        pieces::{self, Form},
        sealed::{Blocking, Sealed},
        source::Source,
    },
    protocol::{
        errors::Failure,
        types::{SearchAnswer, SearchMatch, SearchParams, role_of},
    },
    session::jobs::at_once,
    text,
};
use memchr::memmem::Finder;
use regex::bytes;
use std::{fmt, ops::Range};

/// Matches without a `limit`.
const LIMIT: usize = 50;

/// Characters of a snippet before and after a hit.
const AROUND: usize = 60;

/// Characters of a query that are looked for in the line of an entry, before the entry is parsed. An expression of more is
/// slow: its work grows with the length of the query times that of the line.
const IN_LINE: usize = 32;

/// The part of a file that is searched first, in bytes.
const FIRST_STRETCH: u64 = 1 << 20;

/// The largest part of a file that a thread searches at once, in bytes. The parts after the page are searched in vain.
const LARGEST_STRETCH: u64 = 16 << 20;

/// A search for a text.
pub struct Search {
    /// The beginning of the query as it may stand in a line of JSON.
    in_line: bytes::Regex,
    /// The query, folded.
    in_text: Finder<'static>,
    /// Number of characters of the query.
    chars: usize,
    limit: usize,
    cursor: Option<Cursor>,
    /// The part of a file that is searched first, in bytes.
    first_stretch: u64,
}

/// The place where the next page begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cursor {
    /// The end of the line that is searched next, in bytes; of a session in memory the number of entries before that place.
    end: u64,
    /// The matches of this line that a page has already. Few lines have several entries.
    skip: usize,
}

impl Cursor {
    fn read(text: &str) -> Option<Self> {
        let (end, skip) = text.split_once('.').unwrap_or((text, "0"));
        Some(Self { end: end.parse().ok()?, skip: skip.parse().ok()? })
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.skip {
            0 => write!(f, "{}", self.end),
            skip => write!(f, "{}.{skip}", self.end),
        }
    }
}

/// A part of a file, from the beginning of a line to a place of a search.
struct Stretch {
    source: Source,
    from: Cursor,
}

/// The parts of a file before a place, the last one first.
struct Stretches<'s> {
    source: &'s Source,
    from: Cursor,
    /// The least size of the next one, in bytes, where so much is left.
    size: u64,
}

impl Iterator for Stretches<'_> {
    type Item = Result<Stretch, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        let Cursor { end, .. } = self.from;
        if end <= self.source.floor() {
            return None;
        }
        let begin = end.saturating_sub(self.size);
        let begin = match self.source.backwards(begin).before() {
            Ok(line) => line.map_or(self.source.floor(), |line| line.offset),
            Err(error) => return Some(Err(self.source.failed()(error))),
        };
        self.size = (self.size * 2).min(LARGEST_STRETCH);
        let from = std::mem::replace(&mut self.from, Cursor { end: begin, skip: 0 });
        Some(Ok(Stretch { source: self.source.not_before(begin), from }))
    }
}

impl Search {
    /// The search of a request.
    ///
    /// # Errors
    /// When the cursor is none of this session.
    pub fn new(params: &SearchParams) -> Result<Self, Failure> {
        let no_cursor = || {
            Failure::params("cursor", "this is no nextCursor of a search; leave it out to begin with the newest entry")
        };
        let cursor = params.cursor.as_deref().map(|cursor| Cursor::read(cursor).ok_or_else(no_cursor)).transpose()?;
        let in_line: String = params.query.chars().take(IN_LINE).map(as_json).collect();
        let in_line = bytes::RegexBuilder::new(&in_line).case_insensitive(true).build();
        Ok(Self {
            cursor,
            in_line: in_line.expect("the expression of a few characters is valid and small"),
            in_text: Finder::new(&folded(&params.query)).into_owned(),
            chars: params.query.chars().count(),
            limit: params.limit.unwrap_or(LIMIT).max(1),
            first_stretch: FIRST_STRETCH,
        })
    }

    /// Searches a file from its end, on several threads where it is large.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn file(&self, source: &Sealed, end: u64, blocking: &Blocking) -> Result<SearchAnswer, StoreError> {
        let source = source.open(blocking);
        let first = self.cursor.map_or(Cursor { end, skip: 0 }, |cursor| Cursor { end: cursor.end.min(end), ..cursor });
        let mut stretches = Stretches { source, from: first, size: self.first_stretch };
        let mut hits = Vec::new();
        // The newest stretch is searched alone: it often has the whole page.
        let mut threads = 1;
        while hits.len() <= self.limit {
            let next = stretches.by_ref().take(threads).collect::<Result<Vec<_>, _>>()?;
            if next.is_empty() {
                break;
            }
            // The hit after the page says where the next page begins.
            let wanted = self.limit.saturating_add(1) - hits.len();
            let found = at_once::each(&next, |stretch| self.stretch(stretch, wanted, blocking));
            for found in found {
                hits.extend(found?);
            }
            threads = at_once::threads();
        }
        let next_cursor = hits.get(self.limit).map(|(cursor, _)| cursor.to_string());
        let matches = hits.into_iter().take(self.limit).map(|(_, found)| found).collect();
        Ok(SearchAnswer { matches, next_cursor })
    }

    /// The newest matches of a part of a file, at most `wanted`, each with its place.
    fn stretch(
        &self,
        stretch: &Stretch,
        wanted: usize,
        blocking: &Blocking,
    ) -> Result<Vec<(Cursor, SearchMatch)>, StoreError> {
        let Stretch { source, from } = stretch;
        let mut skip = from.skip;
        let mut hits = Vec::new();
        let mut lines = source.backwards(from.end);
        while hits.len() < wanted {
            let hit = |line: Line<'_>| blocking.is_stopped() || self.in_line.is_match(line.bytes);
            let Some(line) = lines.before_where(hit).map_err(source.failed())? else { break };
            blocking.go_on()?;
            let pieces = pieces::of(&line, Form::Today);
            let entries = pieces.iter().rev().filter_map(|piece| piece.entry(&line));
            let found = entries.filter_map(|entry| self.entry(&entry)).enumerate().skip(skip);
            hits.extend(
                found.map(|(at, found)| (Cursor { end: line.next, skip: at }, found)).take(wanted - hits.len()),
            );
            skip = 0;
        }
        Ok(hits)
    }

    /// Searches entries in memory, from the newest to the oldest.
    ///
    /// # Errors
    /// When an entry cannot be read.
    pub fn entries(&self, library: &Library, blocking: &Blocking) -> Result<SearchAnswer, StoreError> {
        let mut matches = Vec::new();
        let end = self.cursor.map_or(usize::MAX, |cursor| usize::try_from(cursor.end).unwrap_or(usize::MAX));
        for place in library.index().after(None).rev().filter(|place| place.number() < end) {
            let Some(found) = self.entry(&*library.body(place, blocking)?) else { continue };
            if matches.len() == self.limit {
                let next = Cursor { end: place.number() as u64 + 1, skip: 0 };
                return Ok(SearchAnswer { matches, next_cursor: Some(next.to_string()) });
            }
            matches.push(found);
        }
        Ok(SearchAnswer { matches, next_cursor: None })
    }

    /// A hit in what a person would read, not in an id or a key.
    fn entry(&self, entry: &Entry) -> Option<SearchMatch> {
        let text = entry.readable_text();
        let hit = self.find(&text)?;
        let before = text::tail(&text[..hit.start], AROUND);
        let behind = text::head(&text[hit.end..], AROUND);
        let cut = |gone: bool| if gone { "…" } else { "" };
        let snippet = format!(
            "{}{before}{}{behind}{}",
            cut(before.len() < hit.start),
            &text[hit.clone()],
            cut(behind.len() < text.len() - hit.end)
        );
        let snippet = text::one_line(&snippet, 4 * AROUND + self.chars);
        let (role, timestamp) = (role_of(entry), entry.timestamp.clone());
        Some(SearchMatch { entry_id: entry.id.clone(), role, timestamp, active: None, snippet })
    }

    /// The first place of the query in a text, in bytes. Linear in the text.
    fn find(&self, text: &str) -> Option<Range<usize>> {
        let folded = folded(text);
        let hit = self.in_text.find(folded.as_bytes())?;
        let mut offsets = text.char_indices().map(|(offset, _)| offset).chain([text.len()]);
        let start = offsets.nth(folded[..hit].chars().count())?;
        let end = self.chars.checked_sub(1).map_or(Some(start), |rest| offsets.nth(rest))?;
        Some(start..end)
    }
}

/// A text without upper and lower case, character by character.
fn folded(text: &str) -> String {
    text.chars().map(fold).collect()
}

/// The lower case of the upper case of a character. A case of several characters counts as none, so a folded text has as
/// many characters as the text.
fn fold(character: char) -> char {
    fn single(mut cases: impl Iterator<Item = char>, otherwise: char) -> char {
        cases.next().filter(|_| cases.next().is_none()).unwrap_or(otherwise)
    }
    match character {
        // Its upper case is the one of another letter.
        'ı' => character,
        _ if character.is_ascii() => character.to_ascii_lowercase(),
        _ => {
            let upper = single(character.to_uppercase(), character);
            single(upper.to_lowercase(), upper)
        }
    }
}

/// The ways a character may be written in JSON, in either case, as a regular expression.
fn as_json(character: char) -> String {
    let escaped = |character: char| -> String {
        let mut units = [0; 2];
        character.encode_utf16(&mut units).iter().map(|unit| format!("\\\\u{unit:04x}")).collect()
    };
    let plain = match character {
        'a'..='z' | 'A'..='Z' | '0'..='9' | ' ' => return character.to_string(),
        '"' => "\\\\\"".to_owned(),
        '\\' => "\\\\\\\\".to_owned(),
        '/' => "\\\\?/".to_owned(),
        '\n' => "\\\\n".to_owned(),
        '\r' => "\\\\r".to_owned(),
        '\t' => "\\\\t".to_owned(),
        other => regex::escape(&other.to_string()),
    };
    // The raw form has its cases from the expression; those of an escape are other numbers.
    let cases = character.to_lowercase().chain(character.to_uppercase()).chain([character]).map(escaped);
    let ways: Vec<String> = std::iter::once(plain).chain(cases).collect();
    format!("(?:{})", ways.join("|"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{bytes::Bytes, header};
    use proptest::{collection::vec, prelude::*};
    use serde_json::json;
    use std::path::Path;

    fn search(query: &str, limit: Option<usize>, cursor: Option<String>) -> Search {
        let params = SearchParams { session_id: "s".into(), query: query.to_owned(), limit, cursor };
        Search::new(&params).expect("a search")
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn pages_of_a_file_are_the_matches_from_its_end(
            texts in vec(vec("[ab]{1,3}|[ab]{200}", 1..3), 0..60),
            (limit, stretch) in (1_usize..9, 1_u64..2_000),
        ) {
            let mut count = 0;
            let mut line = |texts: &Vec<String>| {
                // A line with two entries is one that lost its newline.
                let entry = |text: &String| {
                    count += 1;
                    json!({"type": "message", "id": format!("e{count}"), "parentId": format!("e{}", count - 1),
                        "message": {"role": "user", "content": text}})
                };
                texts.iter().map(entry).map(|entry| entry.to_string()).collect::<String>() + "\n"
            };
            let header = json!({"type": "session", "version": 3, "id": "s", "timestamp": "t", "cwd": "/"});
            let text = format!("{header}\n{}", texts.iter().map(&mut line).collect::<String>());
            let found = header::find(Path::new("session"), text.as_bytes()).expect("a header");
            let end = text.len() as u64;
            let source = Sealed::from(Source::of("session".into(), Bytes::Memory(text.into_bytes().into()), &found));
            let flat: Vec<&String> = texts.iter().flatten().collect();
            let hits = flat.iter().enumerate().filter(|(_, text)| text.contains('a'));
            let all: Vec<String> = hits.map(|(at, _)| format!("e{}", at + 1)).rev().collect();

            let (mut seen, mut cursor) = (Vec::new(), None);
            loop {
                let search = Search { first_stretch: stretch, ..search("a", Some(limit), cursor) };
                let page = search.file(&source, end, &Blocking::is_allowed_here()).expect("a page");
                prop_assert_eq!(page.matches.len() < limit, seen.len() + limit > all.len());
                seen.extend(page.matches.into_iter().map(|it| it.entry_id.to_string()));
                cursor = page.next_cursor;
                if cursor.is_none() {
                    break;
                }
            }
            prop_assert_eq!(&seen, &all);
            let whole = search("a", Some(usize::MAX), None).file(&source, end, &Blocking::is_allowed_here());
            prop_assert_eq!(whole.expect("a page").matches.len(), all.len());
        }
    }

    #[test]
    fn a_query_is_found_however_it_is_written_in_json() {
        let search = |query: &str| search(query, None, None);
        let line = |text: &str| {
            json!({"type": "message", "id": "x", "message": {"role": "user", "content": text}}).to_string()
        };
        for (query, text) in [
            ("say \"hi\"", "they SAY \"hi\" twice"),
            ("src/a.rs", "in src/a.rs"),
            ("a\nb", "xa\nby"),
            ("grüße", "GRÜSSE, Grüße"),
        ] {
            let line = line(text);
            assert!(search(query).in_line.is_match(line.as_bytes()), "{query} in {line}");
            let entry = Entry::parse(line.into()).expect("an entry");
            assert!(search(query).entry(&entry).is_some(), "{query}");
        }
        let ascii =
            r#"{"type":"message","id":"x","message":{"role":"user","content":"gr\u00fc\u00dfe \ud83d\ude00 a\/b"}}"#;
        for query in ["grüße", "GRÜ", "😀", "a/b"] {
            assert!(search(query).in_line.is_match(ascii.as_bytes()), "{query}");
        }
        let entry = Entry::parse(line("nothing").into()).expect("an entry");
        assert!(search("user").entry(&entry).is_none(), "a role is not what somebody said");
    }

    #[test]
    fn a_hit_is_a_range_of_the_text_whatever_the_cases_of_its_characters_are() {
        let find = |query: &str, text: &str| search(query, None, None).find(text).map(|hit| text[hit].to_owned());
        // Cases of other lengths in bytes stand before the hit and in it.
        for (query, text, hit) in [
            ("aſ", "ẞẞ K AS", "AS"),
            ("ß k", "Ⱥẞ \u{212a}elvin", "ẞ \u{212a}"),
            ("ΟΔΟΣ", "İ οδος", "οδος"),
            ("ⱥb", "ﬁⱤ ȺB", "ȺB"),
            ("a", "A", "A"),
        ] {
            assert_eq!(find(query, text).as_deref(), Some(hit), "{query} in {text}");
        }
        for (query, text) in [("i", "ı"), ("ss", "ß"), ("ab", "a\nb"), ("abc", "ab")] {
            assert_eq!(find(query, text), None, "{query} in {text}");
        }
    }
}
