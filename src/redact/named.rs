//! Secrets that only their names give away: `password = …`, in the code, settings and output of any language.

mod words;

use memchr::{memchr, memmem};
use regex::Regex;
use std::{ops::Range, sync::LazyLock};

/// The words that are in each name of a secret, as they are written.
pub(super) fn hints() -> Vec<String> {
    written(&[WORDS, &["pw"]].concat())
}

/// Those that need not be looked for at each `pw`.
const WORDS: &[&str] = &["pass", "pwd", "_pw", "secret", "token", "key", "psk", "credential", "kennwort", "sensitive"];

fn written(words: &[&str]) -> Vec<String> {
    let forms =
        |word: &&str| [(*word).to_owned(), word.to_uppercase(), format!("{}{}", word[..1].to_uppercase(), &word[1..])];
    words.iter().flat_map(forms).collect()
}

/// Where these words stand on lines of a text: the first of each name, in order.
pub(super) fn words(text: &str, lines: Range<usize>) -> impl Iterator<Item = usize> {
    // Nothing but text: many times faster than a pattern.
    static ANY: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(&written(WORDS).join("|")).expect("the pattern is fixed and tested"));
    let text = &text[..lines.end];
    let mut after = lines.start;
    std::iter::from_fn(move || {
        let word = ANY.find_at(text, after)?.start();
        after = word + name_length(&text[word..]);
        Some(word)
    })
}

fn name_length(text: &str) -> usize {
    text.bytes().take_while(|byte| is_name(*byte)).count()
}

/// Where in `text` the values stand that are secrets by their names, in order; `words` are those of names.
pub(super) fn find(text: &str, words: &[usize]) -> impl Iterator<Item = Range<usize>> {
    let mut after = 0;
    words.iter().filter_map(move |word| {
        // A value may have names in it.
        let free = *word >= after && GIVEN.is_match(&text[*word..]);
        if free { next(text, *word, &mut after) } else { None }
    })
}

/// The value of the name that `word` is a part of, if it is a secret; `after` goes after what has been looked at.
fn next(text: &str, word: usize, after: &mut usize) -> Option<Range<usize>> {
    // The name goes on to both sides; one name is looked at once.
    let bytes = text.as_bytes();
    let begins = word - bytes[*after..word].iter().rev().take_while(|byte| is_name(**byte)).count();
    let end = word + bytes[word..].iter().take_while(|byte| is_name(**byte)).count();
    let start = behind_a_colour(text, begins, end);
    *after = end;
    // In a string of JSON an escaped character may stand right before the name.
    let escaped = start > 0 && bytes[start - 1] == b'\\' && matches!(bytes[start], b'n' | b't' | b'r');
    let name = text[start + usize::from(escaped)..end].trim_start_matches(['-', '.']);
    let of = first_word(text, start, name);
    let class = if of.is_empty() { class_of(name)? } else { Class::Token };
    let found = value_behind(text, start..end, is_setting(name))?;
    let value = &text[found.range.clone()];
    if is_working_folder(name, value) {
        return None;
    }
    // A value with placeholders in it leaves too little text for a decision.
    let seen = value.contains("[REDACTED:");
    let secret = !seen
        && match found.looks {
            Looks::Quoted => is_secret(class, value, true),
            Looks::Argument => is_secret(class, value, true) && is_random(value),
            Looks::Setting => is_secret(class, value, true) && !is_expression(value),
            Looks::Bare => !is_code(class, value) && is_secret(class, value, false),
        }
        && (of.is_empty() || is_random(value));
    // In what is none, names may stand that have one.
    *after = end.max(found.range.start);
    if !secret {
        return None;
    }
    let rest = found.more.map_or(0, |until| bare(&text[found.range.end..], &until, usize::MAX));
    *after = found.range.end + rest;
    Some(found.range.start..found.range.end + rest)
}

/// The word before `key` or `token` that makes a secret of it: `API key: …`. A name of one word has none.
fn first_word<'a>(text: &'a str, start: usize, name: &str) -> &'a str {
    const LONGEST: usize = 16;
    const FIRST: [&str; 7] = ["api", "access", "auth", "secret", "signing", "private", "encryption"];
    if !name.eq_ignore_ascii_case("key") && !name.eq_ignore_ascii_case("token") {
        return "";
    }
    let Some(before) = text.as_bytes()[..start].strip_suffix(b" ") else {
        return "";
    };
    let length = before.iter().rev().take(LONGEST).take_while(|byte| byte.is_ascii_alphabetic()).count();
    let word = &text[before.len() - length..before.len()];
    // In a string of JSON the end of a line may stand right before it.
    let word = if text[..before.len() - length].ends_with('\\') { word.get(1..).unwrap_or("") } else { word };
    if FIRST.iter().any(|it| word.eq_ignore_ascii_case(it)) { word } else { "" }
}

/// Where a name begins, whose first characters may be the end of what colours it.
fn behind_a_colour(text: &str, begins: usize, end: usize) -> usize {
    const LONGEST: usize = 32;
    let bytes = text.as_bytes();
    let digits = bytes[begins..end].iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !begins.checked_sub(1).is_some_and(|at| matches!(bytes[at], b'[' | b';')) || bytes[begins + digits] != b'm' {
        return begins;
    }
    let behind = begins + digits + 1;
    let from = (begins.saturating_sub(LONGEST)..begins).rev().find(|at| matches!(bytes[*at], b'\x1b' | b'\\'));
    match from.filter(|from| behind < end && from + colours(&bytes[*from..]) == behind) {
        Some(_) => behind,
        None => begins,
    }
}

/// How long the codes are that begin a text and colour what follows in a terminal, as they are or escaped.
fn colours(bytes: &[u8]) -> usize {
    const ESCAPED: [&[u8]; 7] = [b"u001b", b"u001B", b"x1b", b"x1B", b"033", b"33", b"e"];
    let mut at = 0;
    loop {
        let rest = &bytes[at..];
        let backslashes = rest.iter().take_while(|byte| **byte == b'\\').count();
        let code = match backslashes {
            0 => usize::from(rest.first() == Some(&b'\x1b')),
            _ => ESCAPED.iter().find(|it| rest[backslashes..].starts_with(it)).map_or(0, |it| backslashes + it.len()),
        };
        if code == 0 || rest.get(code) != Some(&b'[') {
            return at;
        }
        let numbers = rest[code + 1..].iter().take_while(|byte| byte.is_ascii_digit() || **byte == b';').count();
        if !rest.get(code + 1 + numbers).is_some_and(u8::is_ascii_alphabetic) {
            return at;
        }
        at += code + 2 + numbers;
    }
}

/// Whether a column or a field that is called so has secrets.
pub(super) fn is_name_of_a_secret(name: &str) -> bool {
    class_of(name).is_some()
}

/// Whether a value that stands in a table or a list, whose name is somewhere else, is a secret. There are words and
/// types, too.
pub(super) fn is_in_a_table(name: &str, value: &str) -> bool {
    const TOKEN: usize = 16;
    let has = |of: fn(&u8) -> bool| value.bytes().any(|byte| of(&byte));
    let chosen = value.len() >= 6 && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic);
    // No word, type or path has these.
    let odd =
        value.len() >= 8 && value.contains(['!', '@', '#', '$', '%', '^', '&', '*', '?', '~']) && !value.contains(' ');
    let is_one = |class| {
        is_secret(class, value, false)
            && !is_code(class, value)
            && (class == Class::Password || value.len() >= TOKEN && is_random(value))
    };
    let of_a_person = || odd && has(u8::is_ascii_lowercase) && class_of(name) == Some(Class::Password);
    (chosen || of_a_person()) && !names_an_algorithm(value) && class_of(name).is_some_and(is_one)
}

/// Whether a text stands for any secret in a manual or is a reference to one.
pub(super) fn is_stand_in(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    is_reference(value) || words::DICTIONARY.contains(lower.as_str()) || lower.starts_with("your")
}

/// `sha256`, `base64url`: the name of an algorithm, which has digits as a secret does.
pub(super) fn names_an_algorithm(text: &str) -> bool {
    const KNOWN: [&str; 14] = [
        "base", "sha", "md5", "utf", "oauth", "argon", "pbkdf", "int", "uint", "aes", "rsa", "http", "varchar", "char(",
    ];
    let lower = text.to_ascii_lowercase();
    KNOWN.iter().any(|known| lower.starts_with(known))
}

/// Whether a value that stands after a name, by itself, is a secret.
pub(super) fn is_plausible(name: &str, value: &str) -> bool {
    class_of(name.trim_start_matches('-')).is_some_and(|class| is_secret(class, value, true))
}

/// Whether a text says where a secret is to be had, or stands for any: `${VAR}`, `<your key>`, `{{ password }}`, `***`.
pub(super) fn is_reference(value: &str) -> bool {
    const BEGINNINGS: &[&str] = &["${", "$(", "{", "<", "%(", "[REDACTED:"];
    let value = value.trim_end_matches([';', ',', ')', '"', '\'']);
    let Some(first) = value.chars().next() else {
        return true;
    };
    let name = value[first.len_utf8()..].trim_end_matches('%');
    let identifier = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let digits = name.bytes().any(|byte| byte.is_ascii_digit());
    let variable = matches!(first, '$' | '%' | '@' | '&' | '*' | '#') && identifier && (!digits || is_setting(name));
    let masked = matches!(first, '*' | 'x' | 'X' | '.' | '•' | '_' | '-') && value.chars().all(|char| char == first);
    variable
        || masked
        || BEGINNINGS.iter().any(|it| value.starts_with(it))
        || first == '[' && value.ends_with(']')
        || ["${", "{{", "...", "…"].iter().any(|it| value.contains(it))
}

/// Whether a text is random rather than written: digits between letters, not only after them.
pub(super) fn is_random(text: &str) -> bool {
    let upper = text.bytes().any(|byte| byte.is_ascii_uppercase());
    let lower = text.bytes().any(|byte| byte.is_ascii_lowercase());
    let odd = |word: &str| {
        let digits = word.bytes().filter(u8::is_ascii_digit).count();
        word.len() >= 8 && (1..word.len()).contains(&digits) && !is_numbered(word)
    };
    (upper && lower || text.len() >= 16) && text.split(|char: char| !char.is_ascii_alphanumeric()).any(odd)
}

/// Class of secret that a name announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Chosen by a person: anything may be one.
    Password,
    /// Made by a machine: letters and digits.
    Token,
    /// A name that often is one: only what is long and random.
    Key,
}

/// The rest of a name, and after it what may give it a value.
static GIVEN: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = concat!(
        r"^[A-Za-z0-9_.-]*",
        r"(?:(?:\x1b|\\+(?:u001[bB]|x1[bB]|0?33|e))\[[0-9;]*[A-Za-z])?",
        r#"(?:\\*["'`]\]?|\[\])?(?:[ \t]*(?:[:=?!]|[(,][ \t]*[A-Za-z@]{0,2}\\*["'`])|[ \t]+")"#
    );
    Regex::new(pattern).expect("the pattern is fixed and tested")
});

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// A variable of an environment: its value goes on to the next blank.
fn is_setting(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

/// The working folder of a shell, as `env` prints it: `PWD=/home/user`.
fn is_working_folder(name: &str, value: &str) -> bool {
    let of_a_shell = ["pwd", "oldpwd"].iter().any(|it| name.eq_ignore_ascii_case(it));
    let drive = value.as_bytes().first().is_some_and(u8::is_ascii_alphabetic) && value[1..].starts_with(":\\");
    of_a_shell && (value.starts_with(['/', '~']) || drive)
}

/// `name1`, `user_id2`: what a person calls a thing.
fn is_numbered(word: &str) -> bool {
    let stem = word.trim_end_matches(|char: char| char.is_ascii_digit());
    word.len() - stem.len() <= 3 && !stem.bytes().any(|byte| byte.is_ascii_digit())
}

fn class_of(name: &str) -> Option<Class> {
    let lower = name.to_ascii_lowercase();
    let words: Vec<&str> = words_of(name).map(|word| &lower[word]).collect();
    let last = *words.last()?;
    if words::ABOUT.contains(last) && words.len() > 1 || words.contains(&"allow") {
        return None;
    }
    // Charts and manifests name a secret that lies elsewhere.
    if words.windows(2).any(|pair| matches!(pair, ["existing", "secret"] | ["pull", "secrets"])) {
        return None;
    }
    let ends = |word: &str, with: &[&str]| with.iter().any(|end| word.ends_with(end));
    let password = |word: &&str| {
        ends(word, &["password", "passwd", "passphrase", "pwd", "secret", "passwort", "passcode", "kennwort"])
            || ["password", "passwd", "passphrase"].iter().any(|part| word.starts_with(part) && *word != "passwordless")
            || *word == "secrets"
    };
    if words.iter().any(password)
        || words.len() > 1 && matches!(last, "pass" | "pw") && !name.contains('.')
        || matches!(last, "dbpass" | "rootpass" | "requirepass" | "psk")
    {
        return Some(Class::Password);
    }
    if words.iter().any(|word| ends(word, &["token"]) || matches!(*word, "credential" | "credentials")) {
        return Some(Class::Token);
    }
    let of_key = |at: usize| {
        let word = &words[at];
        let before = match word.strip_suffix("key") {
            Some("") => at.checked_sub(1).map(|at| words[at]),
            Some(before) => Some(before),
            None => None,
        };
        before.is_some_and(|before| words::KEYS.contains(before))
    };
    if (0..words.len()).any(of_key) && !words.iter().any(|word| words::HARMLESS.contains(word)) {
        return Some(Class::Token);
    }
    let other =
        last == "key" && words.len() > 1 && is_setting(name) && !words.iter().any(|it| words::HARMLESS.contains(it));
    other.then_some(Class::Key)
}

/// Where the words of a name stand, in any convention.
fn words_of(name: &str) -> impl Iterator<Item = Range<usize>> {
    let bytes = name.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        at += bytes[at..].iter().position(u8::is_ascii_alphanumeric)?;
        let start = at;
        let goes_on = |at: usize| {
            let small_follows = bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase);
            let begins = bytes[at].is_ascii_uppercase() && (!bytes[at - 1].is_ascii_uppercase() || small_follows);
            bytes[at].is_ascii_alphanumeric() && !begins
        };
        at += 1;
        while at < bytes.len() && goes_on(at) {
            at += 1;
        }
        Some(start..at)
    })
}

enum Looks {
    Quoted,
    /// Quoted, in a call or a list that the name is only mentioned in.
    Argument,
    /// After a variable of an environment.
    Setting,
    Bare,
}

struct Found {
    range: Range<usize>,
    looks: Looks,
    /// It is longer than what was looked at.
    more: Option<Until>,
}

/// Value after a name, if there is one.
fn value_behind(text: &str, name: Range<usize>, setting: bool) -> Option<Found> {
    let Range { start, end } = name;
    let bytes = text.as_bytes();
    let at = |at: usize| bytes.get(at).copied().unwrap_or(b'\n');
    let blanks = |from: usize| from + bytes[from..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    // The quote that ends the name, perhaps escaped: JSON in a string of JSON. Then what ends `env["NAME"]`.
    let end = end + colours(&bytes[end..]);
    let mut here = end + bytes[end..].iter().take_while(|byte| **byte == b'\\').count();
    let quoted = matches!(at(here), b'"' | b'\'' | b'`');
    if quoted {
        here += 1;
        here += usize::from(at(here) == b']');
    } else if here != end {
        return None;
    }
    if at(here) == b'[' && at(here + 1) == b']' {
        here += 2;
    }
    let tight = here;
    here = blanks(here);
    let mut only_quoted = false;
    let mut argument = false;
    let mut typed = false;
    match at(here) {
        b':' if at(here + 1) == b':' => return None,
        b':' if at(here + 1) == b'=' => here += 2,
        b'=' if at(here + 1) == b'>' => {
            // After the name of a variant stands what it means.
            if !quoted && !bytes[start].is_ascii_lowercase() {
                return None;
            }
            here += 2;
        }
        b'=' if at(here + 1) == b'=' => {
            only_quoted = true;
            here += 2 + usize::from(at(here + 2) == b'=');
        }
        b'!' if at(here + 1) == b'=' => {
            only_quoted = true;
            here += 2 + usize::from(at(here + 2) == b'=');
        }
        b'=' => here += 1,
        b'?' if matches!(at(here + 1), b':' | b'=') => here += 2,
        b':' => {
            typed = true;
            here += 1;
            here = behind_the_type(text, here).unwrap_or(here);
        }
        // A call: `password("…")`, `set("token", "…")`.
        byte if byte == b'(' && !quoted || byte == b',' && quoted => {
            (only_quoted, argument) = (true, true);
            here += 1;
        }
        b'"' if setting && here > tight => only_quoted = true,
        _ => return None,
    }
    here += colours(&bytes[here.min(bytes.len())..]);
    let spaced = here != tight + 1 && !bytes[tight..here].contains(&b'[') || blanks(here) != here;
    here = blanks(here);
    here += colours(&bytes[here.min(bytes.len())..]);
    if typed && spaced {
        here = behind_a_tag(text, here);
    }
    // Letters that say what kind of string follows.
    let prefix = bytes[here.min(bytes.len())..].iter().take(2).take_while(|byte| b"bBrRuUfFL@".contains(byte)).count();
    let escaped = bytes[(here + prefix).min(bytes.len())..].iter().take_while(|byte| **byte == b'\\').count();
    if matches!(at(here + prefix + escaped), b'"' | b'\'') {
        here += prefix;
    }
    let escapes = bytes[here.min(bytes.len())..].iter().take_while(|byte| **byte == b'\\').count();
    let quote = at(here + escapes);
    if matches!(quote, b'"' | b'\'' | b'`') {
        let start = here + escapes + 1;
        if let Some(range) = in_three_quotes(text, here, escapes + 1) {
            return (!range.is_empty()).then_some(Found { range, looks: Looks::Quoted, more: None });
        }
        if let Some(end) = closing_quote(bytes, start, quote, escapes) {
            let looks = if argument { Looks::Argument } else { Looks::Quoted };
            return (end > start).then_some(Found { range: start..end, looks, more: None });
        }
        here = start;
    } else if escapes > 0 || only_quoted {
        return None;
    }
    // `Server=…;Password=…;`: such a value has anything in it but a semicolon.
    let connection = bytes[..start].trim_ascii_end().ends_with(b";") && !spaced;
    let (until, looks) = match (connection, setting && !spaced) {
        (true, _) => (Until::Semicolon, Looks::Setting),
        (_, true) => (Until::Blank, Looks::Setting),
        _ => (Until::Punctuation, Looks::Bare),
    };
    let end = here + bare(&text[here..], &until, LOOKED_AT);
    // `NAME: TYPE = …`
    let behind = text[end..].trim_start_matches([' ', '\t']);
    if typed && behind.starts_with('=') && !behind.starts_with("==") {
        return None;
    }
    let more = (end - here >= LOOKED_AT).then_some(until);
    (end > here).then_some(Found { range: here..end, looks, more })
}

/// After `name: Type =`, if a string is given to a name with a type.
fn behind_the_type(text: &str, from: usize) -> Option<usize> {
    const LONGEST: usize = 48;
    let rest = text.as_bytes()[from..].iter().take(LONGEST);
    let of_type = |byte: &&u8| is_name(**byte) || b"&'<>[]|? :*".contains(byte);
    let end = from + rest.take_while(of_type).count();
    let behind = text.as_bytes()[end..].strip_prefix(b"=")?;
    let behind = behind.strip_prefix(b" ").unwrap_or(behind);
    let quote = behind.iter().find(|byte| **byte != b'\\')?;
    matches!(quote, b'"' | b'\'').then_some(end + 1)
}

/// The text between two `"""`, if the first stands at `at` and both are on one line. The quote may be escaped.
fn in_three_quotes(text: &str, at: usize, length: usize) -> Option<Range<usize>> {
    let quote = text.get(at..at + length)?;
    let three = quote.repeat(3);
    let start = at + three.len();
    let rest = text.get(at..)?.strip_prefix(three.as_str())?;
    // As far as a value is looked at: names may follow closely.
    let rest = &rest.as_bytes()[..rest.len().min(LOOKED_AT)];
    let line = memchr(b'\n', rest).map_or(rest, |end| &rest[..end]);
    Some(start..memmem::find(line, three.as_bytes()).map_or(start, |end| start + end))
}

/// After the anchor and the tag of a value in YAML: `&name`, `!!str`.
fn behind_a_tag(text: &str, from: usize) -> usize {
    static TAGS: LazyLock<Regex> = LazyLock::new(|| {
        let pattern = r"^(?:&[A-Za-z0-9_-]+[ \t]+)?(?:!!(?:str|binary)[ \t]+)?";
        Regex::new(pattern).expect("the pattern is fixed and tested")
    });
    const LONGEST: usize = 64;
    let mut end = text.len().min(from + LONGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let tags = text.get(from..end).and_then(|rest| TAGS.find(rest)).map_or("", |tags| tags.as_str());
    // `&mut T` and `&str` are types.
    if ["&mut", "&dyn", "&str"].iter().any(|it| tags.starts_with(it)) { from } else { from + tags.len() }
}

/// Where the string ends whose quote stands after so many backslashes.
fn closing_quote(bytes: &[u8], start: usize, quote: u8, escapes: usize) -> Option<usize> {
    let mut backslashes = 0;
    for (at, byte) in bytes.iter().enumerate().skip(start) {
        match byte {
            b'\n' | b'\r' => return None,
            b'\\' => backslashes += 1,
            _ if *byte == quote && (backslashes <= escapes || escapes == 0 && backslashes % 2 == 0) => {
                return Some(at - backslashes.min(escapes));
            }
            _ => backslashes = 0,
        }
    }
    None
}

/// So much of a value says whether it is a secret. Looking at all of it for each name in it would take forever.
const LOOKED_AT: usize = 1024;

/// How far a value goes that is in no quotes.
enum Until {
    Punctuation,
    Blank,
    Semicolon,
}

/// How long the value is that begins a text and is in no quotes.
fn bare(text: &str, until: &Until, longest: usize) -> usize {
    let mut end = text.len();
    let mut opened = false;
    let mut chars = text.char_indices().peekable();
    while let Some((at, char)) = chars.next() {
        let next = chars.peek().map(|(_, next)| *next);
        let ends = match char {
            '"' | '\'' | '`' | '\n' | '\r' | '\x1b' => true,
            '\\' if colours(&text.as_bytes()[at..]) > 0 => true,
            '\\' => matches!(next, Some('n' | 'r' | 't' | '"' | '\'' | '\\' | 'u') | None),
            ';' => !matches!(until, Until::Blank),
            ',' | '<' | '&' => matches!(until, Until::Punctuation),
            ')' | ']' | '}' => matches!(until, Until::Punctuation) && !opened,
            _ => char.is_whitespace() && !matches!(until, Until::Semicolon),
        };
        if ends || at >= longest {
            end = at;
            break;
        }
        opened |= matches!(char, '(' | '[' | '{');
    }
    // Closing brackets around a value are not a part of it.
    let value = &text[..end];
    let inner = value.trim_end_matches([',', ';']);
    let unopened = inner.trim_end_matches([')', '}', ']']);
    if opened { inner.len() } else { unopened.trim_end_matches(['.', ',', ';']).len() }
}

/// `next()`, `{`, `function(`: what a program computes.
fn is_expression(value: &str) -> bool {
    let name = value.len()
        - value.trim_start_matches(|char: char| char.is_ascii_alphanumeric() || "_.:!?".contains(char)).len();
    let starts = value.starts_with(|char: char| char.is_ascii_alphabetic() || char == '_');
    let count = |what: char| value.chars().filter(|char| *char == what).count();
    let closed = value.trim_end_matches([';', ',', '?', '.']).ends_with(')') || count('(') != count(')');
    let call = starts && value[name..].starts_with('(') && closed;
    call || value.starts_with(['(', '{', '[', '|', '>', '*', '='])
}

/// Whether what stands after `name =` is a piece of a program: another name, a call, a type.
fn is_code(class: Class, value: &str) -> bool {
    let identifier = |word: &str| {
        word.starts_with(|char: char| char.is_ascii_alphabetic() || char == '_')
            && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let value = value.trim_end_matches(['?', '!', '.']);
    let parts: Vec<&str> =
        value.split(['.', ':']).flat_map(|part| part.split("->")).map(|part| part.trim_matches('?')).collect();
    let dotted = parts.len() > 1 && parts.iter().all(|part| part.is_empty() || identifier(part) && is_numbered(part));
    let small = value.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    let several = small && value.trim_matches('_').contains('_') && identifier(value);
    let numbered = class != Class::Password && identifier(value) && is_numbered(value);
    let indexed = value.contains(['[', '{']) && !value.starts_with('[');
    let constant = value.contains('_') && value.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    let path = value.starts_with(['/', '.', '~']) && class != Class::Password;
    dotted || several || constant || numbered || indexed || path || is_expression(value)
}

/// Whether a value is a secret, rather than a word, a count or a place to get it from.
fn is_secret(class: Class, value: &str, whole: bool) -> bool {
    let value = value.trim();
    let lower = value.to_ascii_lowercase();
    let words = lower.trim_end_matches([';', ',', '?', '.', '!', ':']);
    let chars = value.chars().count();
    if chars < 4 || words::DICTIONARY.contains(words) || is_reference(value) || is_placed_elsewhere(&lower) {
        return false;
    }
    if value.contains(' ')
        && value.split([' ', ',', '.']).any(|word| words::PROSE.contains(word.to_ascii_lowercase().as_str()))
    {
        return false;
    }
    if is_number(&lower) {
        return class == Class::Password && chars >= 6 && value.bytes().all(|byte| byte.is_ascii_digit());
    }
    let digits = value.bytes().any(|byte| byte.is_ascii_digit());
    let letters = value.chars().any(char::is_alphabetic);
    let mixed = value.chars().any(char::is_uppercase) && value.chars().any(char::is_lowercase);
    match class {
        // camelCase after `password:` is the name of a variable.
        Class::Password => digits || (whole || !mixed) && chars >= 6,
        Class::Token if value.contains(' ') => false,
        Class::Token => digits && letters && chars >= 8 || chars >= 20 && (digits || mixed),
        Class::Key => chars >= 16 && digits && letters && is_random(value),
    }
}

/// A number as programs write it, with its base or its type.
fn is_number(lower: &str) -> bool {
    let digits = lower.trim_end_matches([';', ',']);
    match digits.strip_prefix("0x") {
        Some(hex) => hex.len() <= 16 && hex.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'_'),
        None => {
            let rest = digits.trim_start_matches(|char: char| char.is_ascii_digit() || char == '_' || char == '.');
            let types =
                ["", "u", "l", "ul", "n", "f", "u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f32", "f64"];
            rest.len() < digits.len() && (types.contains(&rest) || matches!(rest, "usize" | "isize"))
        }
    }
}

/// A secret that is kept in another place, which is named here.
fn is_placed_elsewhere(lower: &str) -> bool {
    const PLACES: &[&str] =
        &["://", "env.", "environ", "getenv", "self.", "this.", "config.", "std::", "secrets.", "import.meta"];
    const BEGINNINGS: &[&str] =
        &["arn:", "env:", "!secret", "!ref", "!sub", "!vault", "!env", "!getatt", "vault:", "ssm:", "file:"];
    PLACES.iter().any(|place| lower.contains(place)) || BEGINNINGS.iter().any(|it| lower.starts_with(it))
}
