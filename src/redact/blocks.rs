//! Secrets that go over lines: private keys, and the few things whose name stands on one line and whose value on another.
//!
//! Each has a line that opens it and one that closes it, so that a text which comes in pieces need not be held back for
//! longer than that.

use super::{
    lines::Lines,
    named::is_plausible,
    rules::{Rule, Value::If, rule},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use memchr::memmem;
use regex::Regex;
use std::{borrow::Cow, ops::Range, sync::LazyLock};

/// Rules over two lines, recognized by the end of the first line. Each pattern covers one line end.
pub(super) const ACROSS: &[Rule] = &[
    rule(
        "secret",
        &["</key>"],
        r"<key>(?P<name>[^<>\n]{3,80})</key>[ \t]*(?:\r?\n|\\+n)(?:[ \t]|\\+t)*<string>(?P<secret>[^<>\n]+)</string>",
        If(|found| is_plausible(&found["name"], &found["secret"])),
    ),
    rule(
        "secret",
        &["value", "Value"],
        concat!(
            r#"(?i)name\\*["']?[ \t]*:[ \t]*\\*["']?(?P<name>[a-z0-9_.-]{3,})\\*["']?,?[ \t]*(?:\r?\n|\\+n)[ \t]*"#,
            r#"\\*["']?value\\*["']?[ \t]*:[ \t]*\\*["']?(?P<secret>[^\s"'\\]+)"#
        ),
        If(|found| is_plausible(&found["name"], &found["secret"])),
    ),
    // A parameter of AWS, on one line or on two.
    rule(
        "secret",
        &["SecureString"],
        r#""SecureString\\*",[ \t]*(?:\r?\n|\\+n)?[ \t]*\\*"Value\\*"[ \t]*:[ \t]*\\*"(?P<secret>[^"\\\n]+)"#,
        If(|found| !super::named::is_stand_in(&found["secret"])),
    ),
    rule(
        "secret",
        &["password"],
        r"\blogin[ \t]+\S+[ \t]*(?:\r?\n|\\+n)[ \t]*password[ \t]+(?P<secret>[^\s\\\x22']+)",
        If(|found| !super::named::is_reference(&found["secret"])),
    ),
];

/// Whether the rest of what begins on this line may stand on the next.
fn needs_the_next(line: &str) -> bool {
    static OPENS: LazyLock<Regex> = LazyLock::new(|| {
        let pattern = concat!(
            r#"(?:\\|["'`][ \t]*[+.&]?[ \t]*|</key>[ \t]*|SecureString\\*",[ \t]*|login[ \t]+\S+[ \t]*"#,
            r#"|(?i:name)\\*["']?[ \t]*:[ \t]*\\*["']?[A-Za-z0-9_.-]+\\*["']?,?[ \t]*)\r?\n?$"#
        );
        Regex::new(pattern).expect("the pattern is fixed and tested")
    });
    OPENS.is_match(line)
}

/// State at the end of the lines seen so far.
#[derive(Debug, Default)]
pub(super) struct Open {
    /// A private key, and how much stands after its first line.
    key: Option<usize>,
    putty: bool,
    manifest: Option<Manifest>,
    line: bool,
    lines: Lines,
    /// Lines of nothing but base 64, which may be those of a key whose first line is missing.
    run: usize,
}

/// A marker alone is not waited for any longer than this, where nothing like a key stands after it.
const LONGEST_KEY: usize = 16 * 1024;

impl Open {
    /// Takes one more line; whether nothing is open after it.
    pub(super) fn take(&mut self, line: &str) -> bool {
        self.line = needs_the_next(line);
        let mut rest = line;
        if let Some(seen) = &mut self.key {
            *seen += line.len();
            match END.find_iter(line).last() {
                Some(end) => {
                    self.key = None;
                    rest = &line[end.end()..];
                }
                None if *seen > LONGEST_KEY => self.key = None,
                None => {}
            }
        }
        let ended = END.find_iter(rest).last().map_or(0, |end| end.end());
        if self.key.is_none() && BEGIN.is_match(&rest[ended..]) {
            self.key = Some(0);
        }
        self.putty = (self.putty || line.contains("Private-Lines:")) && !line.contains("Private-MAC:");
        if self.manifest.as_ref().is_none_or(|manifest| manifest.closes(line)) {
            self.manifest = Manifest::opens(line).filter(|_| !is_file_in_a_string(line));
        }
        self.lines.take(line, 0, &mut Vec::new());
        let run = match ENCODED_LINE.is_match(line) {
            true => self.run + line.len(),
            false if KEY_BODY_AT_THE_END.is_match(line) => line.len(),
            false => 0,
        };
        self.run = run;
        let in_a_run = (1..=LONGEST_KEY).contains(&run);
        self.key.is_none() && !self.putty && !self.line && self.manifest.is_none() && !self.lines.is_open() && !in_a_run
    }
}

/// `text` without private keys and what is in the secrets of a cluster.
pub(super) fn redact(text: &str) -> Cow<'_, str> {
    let has = |hint: &str| memmem::find(text.as_bytes(), hint.as_bytes()).is_some();
    let mut ranges = Vec::new();
    if has("PRIVATE KEY") {
        private_keys(text, &mut ranges);
    }
    key_bodies(text, &mut ranges);
    if has("Private-Lines:") {
        ranges
            .extend(PUTTY.captures_iter(text).filter_map(|found| Some((found.name("secret")?.range(), "private-key"))));
    }
    if has("apiVersion") && has("Secret") {
        manifests(text, &mut ranges);
    }
    replaced(text, ranges)
}

/// `text` with a placeholder for each range; where two overlap, the first counts.
pub(super) fn replaced<'a>(text: &'a str, mut ranges: Vec<(Range<usize>, &'static str)>) -> Cow<'a, str> {
    if ranges.is_empty() {
        return text.into();
    }
    ranges.sort_by_key(|(range, _)| range.start);
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for (range, kind) in ranges {
        if range.start < done {
            continue;
        }
        out.push_str(&text[done..range.start]);
        out.push_str("[REDACTED:");
        out.push_str(kind);
        out.push(']');
        done = range.end;
    }
    out.push_str(&text[done..]);
    out.into()
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the patterns are fixed and tested")
}

static BEGIN: LazyLock<Regex> = LazyLock::new(|| pattern("-{4,5} ?BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)? ?-{4,5}"));
static END: LazyLock<Regex> = LazyLock::new(|| pattern("-{4,5} ?END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)? ?-{4,5}"));
static PUTTY: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"Private-Lines:[ \t]*[0-9]+[ \t]*(?:\r?\n|\\r|\\n)+(?P<secret>(?:[A-Za-z0-9+/=]{16,}(?:\r?\n|\\r|\\n|$)+)*[A-Za-z0-9+/=]{16,})",
    )
});

fn private_keys(text: &str, ranges: &mut Vec<(Range<usize>, &'static str)>) {
    let mut ends = END.find_iter(text).peekable();
    let mut done = 0;
    for begin in BEGIN.find_iter(text) {
        if begin.start() < done {
            continue;
        }
        while ends.next_if(|end| end.start() < begin.end()).is_some() {}
        let like_one = begins_a_key(&text[begin.end()..]);
        let end = ends.peek().map(|end| end.end());
        let end = match end {
            Some(end) if like_one => end,
            // Its first lines may have been left out.
            Some(end) if end - begin.end() <= LONGEST_KEY && LONG_LINE.is_match(&text[begin.end()..end]) => end,
            None if like_one => text.len(),
            _ => continue,
        };
        done = end;
        ranges.push((begin.start()..end, "private-key"));
    }
    // An end that ends none of them.
    let wholes: Vec<_> = ranges.iter().map(|(range, _)| range.clone()).collect();
    let mut wholes = wholes.into_iter().peekable();
    for end in END.find_iter(text) {
        while wholes.next_if(|whole| whole.end <= end.start()).is_some() {}
        if !wholes.peek().is_some_and(|whole| whole.contains(&end.start())) {
            ranges.extend(tail_of_a_key(text, end.start()).map(|start| (start..end.end(), "private-key")));
        }
    }
}

/// How keys begin when nothing says so: as DER with the version and the algorithm of each format, as OpenSSH writes
/// them, or the whole file with its marker once more in base 64.
const KEY_BODY: &str = concat!(
    r"(?:MII[A-Za-z0-9+/]{2}[AQgw]IBA[AD]|MI[A-Za-z0-9+/]{2}AgE[AB]|MH[A-Za-z0-9+/]CAQEE",
    r"|MC4CAQAwBQYDK2V|b3BlbnNzaC1rZXktdjE|LS0tLS1CRUdJTi)"
);
static KEY_BODIES: LazyLock<Regex> = LazyLock::new(|| pattern(&format!("{KEY_BODY}[A-Za-z0-9+/_-]{{24,}}={{0,2}}")));
static KEY_BODY_AT_THE_END: LazyLock<Regex> =
    LazyLock::new(|| pattern(&format!(r"{KEY_BODY}[A-Za-z0-9+/]{{24,}}={{0,2}}\s*$")));
/// Before a line of a file: quotation marks of a mail, or its number as tools print it.
const MARGIN: &str = r"(?:[ \t>]*|[ \t]*[0-9]+(?:→|[ \t|:])[ \t]*)";
/// A line of nothing but base 64.
static ENCODED_LINE: LazyLock<Regex> =
    LazyLock::new(|| pattern(&format!(r"^{MARGIN}[A-Za-z0-9+/]{{16,}}={{0,2}}[ \t]*\r?\n?$")));
/// The same, as it is or in a string of JSON, at the beginning of a text and at the end of one.
static NEXT_ENCODED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"^[ \t]*(?:\r?\n|(?:\\+r)?\\+n)[ \t]*(?:[A-Za-z0-9+/]{16,}={0,2}|[A-Za-z0-9+/]{2,}={1,2})")
});

/// Keys in base 64 without their markers.
fn key_bodies(text: &str, ranges: &mut Vec<(Range<usize>, &'static str)>) {
    let mut after = 0;
    while let Some(body) = KEY_BODIES.find_at(text, after) {
        after = body.end();
        let before = text.as_bytes()[..body.start()].last();
        let inside = before.is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'));
        let escaped = matches!(before, Some(b'n' | b't' | b'r')) && text[..body.start() - 1].ends_with('\\');
        if inside && !escaped || body.as_str().starts_with("LS0t") && !holds_a_key(body.as_str()) {
            continue;
        }
        // The next lines are a part of the value.
        let mut end = body.end();
        while let Some(next) = NEXT_ENCODED.find(&text[end..])
            && end + next.end() - body.start() <= LONGEST_KEY
        {
            end += next.end();
        }
        if let Some(marker) = NEXT_END.find(&text[end..]) {
            end += marker.end();
        }
        after = end;
        ranges.push((body.start()..end, "private-key"));
    }
}

/// Whether what base 64 holds begins as a private key does.
fn holds_a_key(text: &str) -> bool {
    const LOOKED_AT: usize = 64;
    let head = &text[..text.len().min(LOOKED_AT) / 4 * 4];
    BASE64_STANDARD.decode(head).is_ok_and(|bytes| memmem::find(&bytes, b"PRIVATE KEY").is_some())
}

static NEXT_END: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"^[ \t]*(?:\r?\n|(?:\\+r)?\\+n)[ \t]*-{4,5} ?END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)? ?-{4,5}")
});

/// Where the lines of a key begin whose end stands at `end`, if there are any.
fn tail_of_a_key(text: &str, end: usize) -> Option<usize> {
    let is_encoded = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    let bytes = &text.as_bytes()[end.saturating_sub(LONGEST_KEY)..end];
    let (mut at, mut begins, mut long) = (bytes.len(), None, false);
    loop {
        // The end of the line above, as it is or escaped.
        let blanks = |at: usize| at - bytes[..at].iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        at = before_the_margin(&bytes[..at]).unwrap_or_else(|| blanks(at));
        let over = match bytes[..at] {
            [.., b'\r', b'\n'] => 2,
            [.., b'\n'] => 1,
            [.., b'\\', b'n'] => 1 + bytes[..at - 1].iter().rev().take_while(|byte| **byte == b'\\').count(),
            _ => break,
        };
        at = blanks(at - over);
        if bytes[..at].ends_with(b"\\r") {
            at -= bytes[..at - 1].iter().rev().take_while(|byte| **byte == b'\\').count() + 1;
        }
        let line = bytes[..at].iter().rev().take_while(|byte| is_encoded(byte)).count();
        let last_of_it = begins.is_none();
        if line < if last_of_it { 4 } else { 16 } {
            break;
        }
        at -= line;
        // An escaped character before the line looks like a part of it.
        if at > 0 && bytes[at - 1] == b'\\' && matches!(bytes[at], b'n' | b't') {
            at += 1;
        }
        long |= line >= 32;
        begins = Some(at);
    }
    begins.filter(|_| long).map(|begins| end.saturating_sub(LONGEST_KEY) + begins)
}

/// Where a line ends before the margin that ends `bytes`, if one does.
fn before_the_margin(bytes: &[u8]) -> Option<usize> {
    let mut at = bytes.len();
    loop {
        let rest = &bytes[..at];
        let escaped = || rest[..at - 1].iter().rev().take_while(|byte| **byte == b'\\').count();
        at -= match rest.last()? {
            b'\n' => return Some(at),
            b'n' if escaped() > 0 => return Some(at),
            b't' if escaped() > 0 => 1 + escaped(),
            b' ' | b'\t' | b'>' | b'|' | b':' | b'0'..=b'9' => 1,
            _ if rest.ends_with("→".as_bytes()) => "→".len(),
            _ => return None,
        };
    }
}

static LONG_LINE: LazyLock<Regex> = LazyLock::new(|| pattern("[A-Za-z0-9+/]{40}"));

/// Whether what stands after the marker is a key, and not the program or the sentence that names the marker.
fn begins_a_key(text: &str) -> bool {
    // Ends of lines, as they are or escaped; quotes and what joins them; numbers of lines; quotation marks of a mail.
    static BODY: LazyLock<Regex> = LazyLock::new(|| {
        let between = r#"(?:[\s"'`+,>|#:*→.]|\\+[nrt]?|[0-9]+(?:→|[ \t|:]))*"#;
        let line = r#"(?:[A-Za-z0-9+/=]{16,}|[A-Za-z0-9+/=]{4,}(?:\s*$|[ \t]*\r?\n|\\|["'])|(?:Proc-Type|DEK-Info|Version|Comment|Hash|Subject|Charset): )"#;
        pattern(&format!("^{between}{line}"))
    });
    let mut end = text.len().min(1024);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.starts_with(|char: char| char.is_whitespace() || matches!(char, '\\' | '"' | '\'' | '`'))
        && BODY.is_match(&text[..end])
}

/// A resource of a cluster, from its `apiVersion` on, which stands so far to the right.
#[derive(Debug)]
struct Manifest {
    indent: usize,
}

static RESOURCE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"^(?:[^\n]*["'`])?(?P<indent>[ \t]*(?:- )?[ \t{]*)(?:\\*["'])*(?P<name>apiVersion|kind)\\*["']?[ \t]*:[ \t]*\\*["']?(?P<value>[A-Za-z0-9./]+)"#,
    )
});
static DATA: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"^(?P<indent>[ \t]*)\\*["']?(?:data|stringData)\\*["']?[ \t]*:[ \t]*\{?[ \t]*$"#));
static PAIR: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"^[ \t]*\\*["']?[A-Za-z0-9_.-]+\\*["']?[ \t]*:[ \t]+\\*["']?(?P<secret>[^\s"',|>\[{\\][^\s"',\\]*)(?:\\*["'][^\n]*|,?[ \t]*)$"#,
    )
});
static ONE_LINE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"\\*"(?:data|stringData)\\*"[ \t]*:[ \t]*\{(?P<all>[^{}\n]*)\}"#));
static ONE_VALUE: LazyLock<Regex> = LazyLock::new(|| pattern(r#":[ \t]*\\*"(?P<secret>[^"\\\[]+)"#));
static ONE_SECRET: LazyLock<Regex> = LazyLock::new(|| pattern(r#"\\*"kind\\*"[ \t]*:[ \t]*\\*"Secret\\*""#));
/// Ends of lines in a string of JSON.
static ESCAPED_END: LazyLock<Regex> = LazyLock::new(|| pattern(r"\\+(?:r\\+)?n"));

impl Manifest {
    fn opens(line: &str) -> Option<Self> {
        let found = RESOURCE.captures(line.contains("apiVersion").then_some(line)?)?;
        if &found["name"] != "apiVersion" {
            return None;
        }
        Some(Self { indent: found["indent"].len() })
    }

    fn closes(&self, line: &str) -> bool {
        let text = line.trim_end();
        let indent = text.len() - text.trim_start().len();
        let fence = text.starts_with("---") || text.trim_start().starts_with("```");
        let other = || {
            let resource = RESOURCE.captures(line);
            resource.is_some_and(|it| {
                it["indent"].len() <= self.indent && (&it["name"] == "apiVersion" || !secret_kind(&it["value"]))
            })
        };
        let prose = || indent == 0 && !text.contains(':') && !text.starts_with(['{', '}', '[', ']', '-', '#']);
        !text.is_empty() && (fence || other() || prose())
    }
}

fn secret_kind(kind: &str) -> bool {
    matches!(kind, "Secret" | "SecretList" | "List")
}

fn manifests(text: &str, ranges: &mut Vec<(Range<usize>, &'static str)>) {
    let mut open = Values::default();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if open.manifest.as_ref().is_none_or(|manifest| manifest.closes(line)) && is_file_in_a_string(line) {
            open.flush(ranges);
            let mut inner = Values::default();
            let mut start = 0;
            for end in ESCAPED_END.find_iter(line) {
                inner.take(&line[start..end.start()], at + start, ranges);
                start = end.end();
            }
            inner.take(&line[start..], at + start, ranges);
            inner.flush(ranges);
        } else {
            open.take(line, at, ranges);
        }
        at += line.len();
    }
    open.flush(ranges);
}

/// Whether the lines of a resource are all in this one, in a string of JSON.
fn is_file_in_a_string(line: &str) -> bool {
    line.contains("\\n") && line.contains("apiVersion")
}

/// The values of the resource that is open. Its kind often stands after them.
#[derive(Default)]
struct Values {
    manifest: Option<Manifest>,
    secret: bool,
    /// The indentation of the heading they stand under.
    data: Option<usize>,
    found: Vec<Range<usize>>,
}

impl Values {
    fn flush(&mut self, ranges: &mut Vec<(Range<usize>, &'static str)>) {
        let Self { secret, found, .. } = std::mem::take(self);
        if secret {
            ranges.extend(found.into_iter().map(|range| (range, "kubernetes-secret")));
        }
    }

    fn take(&mut self, line: &str, start: usize, ranges: &mut Vec<(Range<usize>, &'static str)>) {
        let line = line.trim_end();
        if self.manifest.as_ref().is_none_or(|manifest| manifest.closes(line)) {
            self.flush(ranges);
            self.manifest = Manifest::opens(line);
        }
        if self.manifest.is_none() || line.is_empty() {
            return;
        }
        let one_line = line.contains("apiVersion") && ONE_SECRET.is_match(line);
        self.secret |=
            one_line || RESOURCE.captures(line).is_some_and(|it| &it["name"] == "kind" && &it["value"] == "Secret");
        if one_line {
            for all in ONE_LINE.captures_iter(line).filter_map(|found| found.name("all")) {
                let secrets = ONE_VALUE.captures_iter(all.as_str()).filter_map(|found| found.name("secret"));
                let at = start + all.start();
                self.found.extend(secrets.map(|secret| at + secret.start()..at + secret.end()));
            }
        }
        let indent = line.len() - line.trim_start().len();
        self.data = self.data.filter(|data| indent > *data);
        if self.data.is_none() {
            self.data = DATA.captures(line).map(|found| found["indent"].len());
        } else if let Some(secret) = PAIR.captures(line).and_then(|found| found.name("secret")) {
            self.found.push(start + secret.start()..start + secret.end());
        } else if !line.contains([':', '[']) {
            // The lines of a longer value.
            self.found.push(start + indent..start + line.len());
        }
    }
}
