//! Secrets whose name stands on a line above: the columns of a table, the members of a list or of an object.
//!
//! A line is one of the text, or one of a string of JSON in it.

use super::{
    named::{is_in_a_table, is_name_of_a_secret, is_plausible, words},
    rules::secret_of,
    tables::Tables,
};
use regex::Regex;
use std::{ops::Range, sync::LazyLock};

/// The construct that is open at the end of the lines seen so far.
#[derive(Debug, Default)]
pub(super) struct Lines {
    section: Option<Section>,
    tables: Tables,
}

/// Members of one name.
#[derive(Debug)]
struct Section {
    name: String,
    kind: Kind,
    lines: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Under `name:`, each with a dash, or one alone.
    Listed,
    /// The next line: after a backslash, `|` or three quotes.
    Next,
    /// The next line where nothing else is on it: after a flag without a backslash there may be its description.
    Alone,
    /// The next member of a list of arguments, which is on the next line.
    Argument,
    /// Between brackets.
    Array,
    /// Between braces: what is called `value` or `default`.
    Object,
    /// Between braces: every string.
    Members,
}

/// An object is looked through as far as this.
const LONGEST_OBJECT: usize = 64;

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the patterns are fixed and tested")
}

/// The rest of a name, and after it what makes it the head of something.
static HEAD: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"^[A-Za-z0-9_.-]*\\*[\x22'`*]{0,2}[ \t]*",
        r"(?:[,;|│\t]|[:=][ \t]*(?:[\[{|>\\`]|\r?\n|[rbfRBF]{0,2}(?:\\*\x22\\*\x22|'')|$)|\{|  |\r?\n|\\|$)"
    ))
});
static OPENS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"(?:(?P<name>[A-Za-z0-9_.-]+)\\*[\x22']?\]?[ \t]*(?:[:=][ \t]*(?P<bracket>[\[{]?)",
        r"|(?P<next>:[ \t]*[|>][+-]?|=[ \t]*[\\`]|[:=][ \t]*[rbfRBF]{0,2}(?:\\*\x22\\*\x22\\*\x22|'{3})\\?))",
        r"|(?P<flag>--[A-Za-z0-9-]+)[ \t]*\\|(?P<last>--[A-Za-z0-9-]+)|(?P<argument>--[A-Za-z0-9-]+)\\*[\x22'],|^[ \t]*-[ \t]+(?P<listed>--[A-Za-z0-9-]+)|^[ \t]*\?[ \t]+(?P<key>[A-Za-z0-9_.-]+))[ \t\r]*$"
    ))
});
static VARIABLE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"^[ \t]*variable[ \t]+\\*["'](?P<name>[A-Za-z0-9_.-]+)\\*["'][ \t]*\{[ \t\r]*$"#));
static SENSITIVE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"\\*["']sensitive_values\\*["'][ \t]*:[ \t]*\{[ \t\r]*$"#));
static ANY_VALUE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"^[ \t]*\\*["'][^"'\\\n]+\\*["'][ \t]*:[ \t]*\\*["'](?P<secret>[^"'\\\n]+)\\*["']"#));
/// After `name:[` without quotes there may be a class of characters.
static INLINE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"(?P<name>[A-Za-z0-9_.-]+)\\*[\x22']?[ \t]*[:=]",
        r"(?:[ \t]+\[(?P<apart>[^\n\[\]]+)\]|\[(?P<quoted>[ \t]*\\*[\x22'][^\n\[\]]+)\])"
    ))
});
static INLINE_MEMBER: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"[ \t]*\\*["']?(?P<secret>[^\s"'\\,;]+)\\*["']?[ \t]*(?:,|$)"#));
static LISTED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"^[ \t]*-[ \t]+(?:&\S+[ \t]+)?(?:!!?[a-z]+[ \t]+)?\\*[\x22']?",
        r"(?P<secret>[^\s\x22'\\#\[{][^\s\x22'\\]*)\\*[\x22']?[ \t\r]*(?:#.*)?$"
    ))
});
static ALONE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r#"^[ \t]+(?:\\*["'](?P<single>[^"'\\]+)\\*["'][ \t,;)]*|(?P<secret>[^\s"'\\:]+)[ \t]*)$"#)
});
static ARGUMENT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"^[ \t]*(?:-[ \t]+\\*[\x22']?|\\*[\x22'])(?P<secret>[^\s\x22'\\,;|&\[\]{}-][^\s\x22'\\]*)",
        r"\\*[\x22']?[ \t]*\]?\)?,?[ \t\r]*$"
    ))
});
static NEXT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r#"^[ \t]*(?::[ \t]+)?(?:\\*["'](?P<single>[^"'\\]+)\\*["']|(?P<secret>[^\s"'\\;|&-][^\s"'\\;|&]*))"#)
});
/// A row of a name and a value.
static ROW: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"(?:^|\x22)[ \t]*[|│]?[ \t]*[`*]*(?P<name>[A-Za-z0-9_.-]+)[`*]*[ \t]*[|│][ \t]*`?(?P<secret>[^\s|│`\x22'\\,]+)`?",
        r"[ \t]*(?:[|│][ \t]*)?(?:$|\x22)"
    ))
});
static MEMBER: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"^[ \t]*\\*["']?(?P<secret>[^\s"'\\,\]]+)\\*["']?[ \t]*,?[ \t\r]*$"#));
static VALUE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"^[ \t]*\\*["']?(?i:value|default|defaultvalue)\\*["']?[ \t]*[:=][ \t]*\\*["'](?P<secret>[^"'\\\n]+)\\*["']"#,
    )
});
/// Ends of lines in a string of JSON.
static ESCAPED_END: LazyLock<Regex> = LazyLock::new(|| pattern(r"\\+(?:r\\+)?n"));
/// Text before the first line of a string in an object.
static BEFORE: LazyLock<Regex> = LazyLock::new(|| pattern(r#"^[^\n]*\\*"[A-Za-z_][A-Za-z0-9_]*\\*"[ \t]*:[ \t]*\\*""#));

/// Where in `text` the secrets stand whose names stand on a line above; `words` are those of names, in order.
pub(super) fn find(text: &str, words: &[usize], found: &mut Vec<Range<usize>>) {
    let mut heads = words.iter().copied().filter(|word| HEAD.is_match(&text[*word..])).peekable();
    let mut lines = Lines::default();
    let mut at = 0;
    while at < text.len() {
        while heads.next_if(|head| *head < at).is_some() {}
        if !lines.is_open() {
            let Some(head) = heads.peek() else {
                return;
            };
            at = text[at..*head].rfind('\n').map_or(at, |end| at + end + 1);
        }
        let end = text[at..].find('\n').map_or(text.len(), |end| at + end + 1);
        lines.take(&text[at..end], at, found);
        at = end;
    }
}

impl Lines {
    pub(super) fn is_open(&self) -> bool {
        self.section.is_some() || self.tables.is_open()
    }

    /// Takes one more line of a text, which stands at `start` of it.
    pub(super) fn take(&mut self, line: &str, start: usize, found: &mut Vec<Range<usize>>) {
        let mut heads = words(line, 0..line.len()).filter(|word| HEAD.is_match(&line[*word..])).peekable();
        let mut escaped = ESCAPED_END.find_iter(line);
        let mut at = 0;
        loop {
            let next = escaped.next();
            // A line that goes on ends with a backslash: in a string of JSON that makes three.
            let goes_on = |end: &regex::Match<'_>| usize::from((end.len() - 1).is_multiple_of(3));
            let end = next.map_or(line.len(), |next| next.start() + goes_on(&next));
            while heads.next_if(|head| *head < at).is_some() {}
            let named = heads.peek().is_some_and(|head| *head < end);
            if named || self.is_open() {
                let mut inner = &line[at..end];
                let mut from = start + at;
                if at == 0 && next.is_some() {
                    let before = BEFORE.find(inner).map_or(0, |before| before.end());
                    (inner, from) = (&inner[before..], from + before);
                } else if at > 0 && next.is_none() {
                    inner = &inner[..end_of_string(inner)];
                }
                self.take_one(inner.trim_end_matches(['\n', '\r']), from, named, found);
            }
            match next {
                Some(next) => at = next.end(),
                None => return,
            }
        }
    }

    fn take_one(&mut self, line: &str, start: usize, named: bool, found: &mut Vec<Range<usize>>) {
        if let Some(section) = &mut self.section
            && !section.take(line, start, found)
        {
            self.section = None;
        }
        let in_a_table = self.tables.is_open();
        self.tables.take(line, start, named, found);
        if !named || self.section.is_some() {
            return;
        }
        self.section = Section::opened_by(line);
        if let Some(row) = ROW.captures(line).filter(|_| !in_a_table)
            && let Some(secret) = row.name("secret").filter(|secret| is_in_a_table(&row["name"], secret.as_str()))
        {
            found.push(start + secret.start()..start + secret.end());
        }
        for list in INLINE.captures_iter(line) {
            let Some(all) = list.name("apart").or_else(|| list.name("quoted")) else { continue };
            let members = INLINE_MEMBER.captures_iter(all.as_str()).filter_map(|member| member.name("secret"));
            let name = singular(&list["name"]);
            let secrets = members.filter(|member| is_name_of_secrets(name) && is_in_a_table(name, member.as_str()));
            let at = start + all.start();
            found.extend(secrets.map(|secret| at + secret.start()..at + secret.end()));
        }
    }
}

impl Section {
    fn opened_by(line: &str) -> Option<Self> {
        if SENSITIVE.is_match(line) {
            return Some(Self { name: "secret".to_owned(), kind: Kind::Members, lines: 0 });
        }
        let (name, kind) = match OPENS.captures(line) {
            Some(head) => {
                let groups = ["name", "flag", "last", "argument", "listed", "key"];
                let name = groups.into_iter().find_map(|group| head.name(group))?;
                let kind = match head.name("bracket").map(|bracket| bracket.as_str()) {
                    None if head.name("last").is_some() => Kind::Alone,
                    None if head.name("argument").or_else(|| head.name("listed")).is_some() => Kind::Argument,
                    Some("[") => Kind::Array,
                    Some("{") => Kind::Object,
                    Some(_) => Kind::Listed,
                    None => Kind::Next,
                };
                (name.as_str(), kind)
            }
            None => (VARIABLE.captures(line)?.name("name")?.as_str(), Kind::Object),
        };
        let name = singular(name.trim_start_matches(['-', '.']));
        is_name_of_secrets(name).then(|| Self { name: name.to_owned(), kind, lines: 0 })
    }

    /// Takes a line of it; whether it goes on after the line.
    fn take(&mut self, line: &str, start: usize, found: &mut Vec<Range<usize>>) -> bool {
        self.lines += 1;
        let text = line.trim();
        let member = match self.kind {
            Kind::Listed => LISTED.captures(line).or_else(|| ALONE.captures(line).filter(|_| self.lines == 1)),
            Kind::Array => MEMBER.captures(line),
            Kind::Object => VALUE.captures(line),
            Kind::Members => ANY_VALUE.captures(line),
            Kind::Next => NEXT.captures(line),
            Kind::Alone => {
                NEXT.captures(line).filter(|next| next.get(0).is_some_and(|all| line[all.end()..].trim().is_empty()))
            }
            Kind::Argument => ARGUMENT.captures(line),
        };
        let Some(secret) = member.as_ref().and_then(secret_of) else {
            return match self.kind {
                Kind::Listed => text.is_empty() && self.lines == 1 || text.starts_with('#'),
                Kind::Array => text.is_empty() || text.starts_with(['#', '/']),
                Kind::Object | Kind::Members => !text.starts_with('}') && self.lines < LONGEST_OBJECT,
                Kind::Next | Kind::Alone | Kind::Argument => false,
            };
        };
        let quoted = member.as_ref().is_some_and(|member| member.name("single").is_some());
        let is_one = match self.kind {
            Kind::Object | Kind::Members | Kind::Next | Kind::Alone | Kind::Argument => {
                is_plausible(&self.name, secret.as_str())
            }
            Kind::Listed if quoted => is_plausible(&self.name, secret.as_str()),
            Kind::Listed | Kind::Array => is_in_a_table(&self.name, secret.as_str()),
        };
        if is_one {
            found.push(start + secret.start()..start + secret.end());
        }
        // One alone has no next.
        !matches!(self.kind, Kind::Next | Kind::Alone | Kind::Argument)
            && (self.kind != Kind::Listed || text.starts_with('-'))
    }
}

/// `passwords` has passwords.
fn singular(name: &str) -> &str {
    name.strip_suffix('s').unwrap_or(name)
}

/// Whether what is under a name are secrets: the last word says so.
fn is_name_of_secrets(name: &str) -> bool {
    const LAST: [&str; 11] = [
        "password",
        "passwd",
        "pwd",
        "passphrase",
        "pass",
        "passwort",
        "kennwort",
        "secret",
        "token",
        "key",
        "credential",
    ];
    let lower = name.to_ascii_lowercase();
    LAST.iter().any(|last| lower.ends_with(last)) && is_name_of_a_secret(name)
}

/// Where the string ends that a line is the last of.
fn end_of_string(line: &str) -> usize {
    let mut backslash = false;
    for (at, byte) in line.bytes().enumerate() {
        if byte == b'"' && !backslash {
            return at;
        }
        backslash = byte == b'\\';
    }
    line.len()
}
