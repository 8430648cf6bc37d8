//! Keys of the known forms that are written in another way: in base 64 or hex, as literals that a program joins, with
//! escaped characters, or with invisible ones inside. Each part of a text is decoded once.

use super::keys;
use base64::{
    Engine,
    alphabet::{STANDARD, URL_SAFE},
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use std::ops::Range;

/// The shortest key that is known by its form, in bytes.
const SHORTEST: usize = 20;

/// Where in `text` encoded keys stand, with their kinds.
pub(super) fn find(text: &str) -> Vec<(Range<usize>, &'static str)> {
    let mut found = Vec::new();
    decoded(text, &mut found);
    joined(text, &mut found);
    found
}

/// Runs of base 64 or hex whose text has a key.
fn decoded(text: &str, found: &mut Vec<(Range<usize>, &'static str)>) {
    for run in runs(text.as_bytes()) {
        let encoded = &text[run.clone()];
        let is_hex = encoded.bytes().all(|byte| byte.is_ascii_hexdigit());
        let decode = if is_hex { of_hex } else { of_base64 };
        // An image or a sum is no text from its beginning on.
        const LOOKED_AT: usize = 24;
        let head = decode(&encoded[..LOOKED_AT]);
        if head.is_some_and(|head| is_text(&head))
            && let Some(decoded) = decode(encoded).and_then(|bytes| String::from_utf8(bytes).ok())
            && let Some((_, kind)) = keys::find(&decoded).first()
        {
            let padding = text.as_bytes()[run.end..].iter().take(2).take_while(|byte| **byte == b'=').count();
            found.push((run.start..run.end + padding, kind));
        }
    }
}

/// Characters of base 64.
static OF_BASE64: [bool; 256] = {
    let mut of = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let char = byte as u8;
        of[byte] = char.is_ascii_alphanumeric() || matches!(char, b'+' | b'/' | b'_' | b'-');
        byte += 1;
    }
    of
};

/// Runs of characters of base 64 that are long enough for a key.
fn runs(bytes: &[u8]) -> impl Iterator<Item = Range<usize>> {
    /// The length of the shortest key in base 64.
    const LEAST: usize = SHORTEST.div_ceil(3) * 4;
    let is_one = |byte: &u8| OF_BASE64[usize::from(*byte)];
    let mut at = 0;
    std::iter::from_fn(move || {
        // From the end on: another character there leaves out all before it.
        while let Some(other) = bytes.get(at..at + LEAST)?.iter().rposition(|byte| !is_one(byte)) {
            at += other + 1;
        }
        let start = at;
        at += LEAST + bytes[at + LEAST..].iter().take_while(|byte| is_one(byte)).count();
        Some(start..at)
    })
}

fn is_text(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace())
}

fn of_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = |pair: &[u8]| u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok();
    text.as_bytes().chunks_exact(2).map(byte).collect()
}

fn of_base64(text: &str) -> Option<Vec<u8>> {
    const ANY_END: GeneralPurposeConfig = GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent);
    const PLAIN: GeneralPurpose = GeneralPurpose::new(&STANDARD, ANY_END);
    const FOR_URLS: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, ANY_END);
    let text = text.trim_end_matches('=');
    // One character more is no whole byte.
    let whole = &text[..text.len() - usize::from(text.len() % 4 == 1)];
    if whole.contains(['-', '_']) { FOR_URLS.decode(whole).ok() } else { PLAIN.decode(whole).ok() }
}

/// Between two parts of a key: the ends of two literals that are joined, the end of a line that goes on, a colour of a
/// terminal, an invisible character; or an escaped character of the key.
struct Seam {
    range: Range<usize>,
    /// The character that it stands for.
    char: Option<u8>,
}

fn is_of_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/' | b'+' | b'=' | b'~')
}

fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'`')
}

/// How seams begin: one of these bytes, and one of those after it. A table is several times faster than comparisons.
const SEAMS: [(&[u8], &[u8]); 7] = [
    (b"\"'`", b" \t+.&\r\n\\\"'`"),
    (b"\\", b"\\\n\rux03e\"'`"),
    (b"\x1b", b"["),
    (b"\xC2", b"\xAD"),
    (b"\xE1", b"\xA0"),
    (b"\xE2", b"\x80\x81"),
    (b"\xEF", b"\xBB"),
];

/// For each byte the kinds of seams that it begins, and those that it follows in.
static KINDS: ([u8; 256], [u8; 256]) = {
    let mut kinds = ([0; 256], [0; 256]);
    let mut kind = 0;
    while kind < SEAMS.len() {
        let (first, second) = SEAMS[kind];
        let mut at = 0;
        while at < first.len() {
            kinds.0[first[at] as usize] |= 1 << kind;
            at += 1;
        }
        at = 0;
        while at < second.len() {
            kinds.1[second[at] as usize] |= 1 << kind;
            at += 1;
        }
        kind += 1;
    }
    kinds
};

impl Seam {
    /// The first one from `from` on. Each byte is looked at once, or twice after a quote.
    fn next(text: &str, from: usize) -> Option<Self> {
        let bytes = text.as_bytes();
        let begins = |two: &[u8]| KINDS.0[usize::from(two[0])] & KINDS.1[usize::from(two[1])] != 0;
        let mut at = from;
        loop {
            at += bytes[at..].windows(2).position(begins)?;
            let backslashes = bytes[at..].iter().take_while(|byte| **byte == b'\\').count();
            let rest = &text[at + backslashes..];
            let found = match backslashes {
                0 => joined_literals(rest.as_bytes()).or_else(|| invisible(rest)).map(|length| (length, None)),
                _ => escaped(rest.as_bytes(), backslashes),
            };
            if let Some((length, char)) = found {
                return Some(Self { range: at..at + backslashes + length, char });
            }
            at += backslashes + rest.chars().next().map_or(0, char::len_utf8);
        }
    }
}

fn blanks(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

/// The length of the end of a line, as it is or escaped.
fn end_of_line(bytes: &[u8]) -> usize {
    let plain = usize::from(bytes.first() == Some(&b'\r'));
    if bytes.get(plain) == Some(&b'\n') {
        return plain + 1;
    }
    let mut at = 0;
    for char in [b'r', b'n'] {
        let backslashes = bytes[at..].iter().take_while(|byte| **byte == b'\\').count();
        if backslashes > 0 && bytes.get(at + backslashes) == Some(&char) {
            at += backslashes + 1;
        }
    }
    at
}

/// The length of what joins two literals, from the quote that ends the first to the one that begins the second.
fn joined_literals(bytes: &[u8]) -> Option<usize> {
    let is_at = |at: usize, of: fn(u8) -> bool| bytes.get(at).is_some_and(|byte| of(*byte));
    let joins = |byte: u8| matches!(byte, b'+' | b'.' | b'&');
    if !is_at(0, is_quote) {
        return None;
    }
    let mut at = 1 + blanks(&bytes[1..]);
    at += usize::from(is_at(at, joins));
    at += blanks(&bytes[at..]);
    at += end_of_line(&bytes[at..]);
    at += blanks(&bytes[at..]);
    at += usize::from(is_at(at, joins));
    at += blanks(&bytes[at..]);
    at += bytes[at..].iter().take_while(|byte| **byte == b'\\').count();
    is_at(at, is_quote).then_some(at + 1)
}

/// The length of a colour of a terminal, or of a character that nobody sees.
fn invisible(text: &str) -> Option<usize> {
    match text.chars().next()? {
        '\x1b' => colour(&text.as_bytes()[1..]).map(|length| 1 + length),
        char @ ('\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}') => {
            Some(char.len_utf8())
        }
        _ => None,
    }
}

/// The length of the code of a colour, after its first character.
fn colour(bytes: &[u8]) -> Option<usize> {
    let bytes = bytes.strip_prefix(b"[")?;
    let numbers = bytes.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b';').count();
    bytes.get(numbers)?.is_ascii_alphabetic().then_some(numbers + 2)
}

/// The length of what follows so many backslashes, and the character that it stands for.
fn escaped(bytes: &[u8], backslashes: usize) -> Option<(usize, Option<u8>)> {
    const ESCAPE: [&[u8]; 7] = [b"u001b", b"u001B", b"x1b", b"x1B", b"033", b"33", b"e"];
    const UNSEEN: [u32; 15] = [
        0xad, 0x180e, 0x200b, 0x200c, 0x200d, 0x200e, 0x200f, 0x2060, 0x2061, 0x2062, 0x2063, 0x2064, 0xfeff, 0x2028,
        0x2029,
    ];
    let code = |from: usize, length: usize| {
        let digits = str::from_utf8(bytes.get(from..from + length)?).ok()?;
        u32::from_str_radix(digits, 16).ok()
    };
    let of_colour = || {
        let escape = ESCAPE.iter().find(|escape| bytes.starts_with(escape))?.len();
        Some((escape + colour(&bytes[escape..])?, None))
    };
    let of_char = |from: usize, length: usize| match code(from, length)? {
        char @ 0x20..0x7f => Some((from + length, u8::try_from(char).ok())),
        char if UNSEEN.contains(&char) => Some((from + length, None)),
        _ => None,
    };
    // In a string of JSON a line that goes on has three backslashes, in one of such a string seven.
    let goes_on = |at: usize| Some((at + 1 + blanks(&bytes[at + 1..]), None));
    match bytes.first()? {
        b'\n' if backslashes == 1 => goes_on(0),
        b'\r' if backslashes == 1 && bytes.get(1) == Some(&b'\n') => goes_on(1),
        b'n' if (3..=7).contains(&backslashes) => goes_on(0),
        b'u' => of_colour().or_else(|| of_char(1, 4)),
        b'x' => of_colour().or_else(|| of_char(1, 2)),
        byte if is_quote(*byte) => joined_literals(bytes).map(|length| (length, None)),
        _ => of_colour(),
    }
}

/// Parts of a key with the seams between them.
struct Run {
    start: usize,
    end: usize,
    seams: Vec<Seam>,
}

/// Keys in several parts.
fn joined(text: &str, found: &mut Vec<(Range<usize>, &'static str)>) {
    let bytes = text.as_bytes();
    let mut run: Option<Run> = None;
    let mut at = 0;
    while let Some(seam) = Seam::next(text, at) {
        let (start, end) = (seam.range.start, seam.range.end);
        let goes_on = |run: &Run| bytes[run.end..start].iter().all(|byte| is_of_key(*byte));
        if !run.as_ref().is_some_and(goes_on) {
            if let Some(run) = run.take() {
                run.keys(text, found);
            }
            let before = bytes[at..start].iter().rev().take_while(|byte| is_of_key(**byte)).count();
            run = Some(Run { start: start - before, end, seams: Vec::new() });
        }
        if let Some(run) = &mut run {
            run.seams.push(seam);
            run.end = end;
        }
        at = end;
    }
    if let Some(run) = run {
        run.keys(text, found);
    }
}

impl Run {
    /// Looks for keys in the parts together, up to the end of the last one.
    fn keys(mut self, text: &str, found: &mut Vec<(Range<usize>, &'static str)>) {
        self.end += text.as_bytes()[self.end..].iter().take_while(|byte| is_of_key(**byte)).count();
        let between: usize = self.seams.iter().map(|seam| seam.range.len() - usize::from(seam.char.is_some())).sum();
        if self.end - self.start - between < SHORTEST {
            return;
        }
        let mut whole = String::with_capacity(self.end - self.start);
        // Where each byte of it begins in the text, and ends.
        let mut origins: Vec<(usize, usize)> = Vec::with_capacity(self.end - self.start);
        let mut at = self.start;
        let rest = Seam { range: self.end..self.end, char: None };
        for Seam { range, char } in self.seams.into_iter().chain([rest]) {
            whole.push_str(&text[at..range.start]);
            origins.extend((at..range.start).map(|at| (at, at + 1)));
            if let Some(char) = char {
                whole.push(char::from(char));
                origins.push((range.start, range.end));
            }
            at = range.end;
        }
        for (key, kind) in keys::find(&whole) {
            let range = origins[key.start].0..origins[key.end - 1].1;
            // A key in a single part is found where it stands.
            if range.len() > key.len() {
                found.push((range, kind));
            }
        }
    }
}
