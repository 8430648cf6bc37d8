//! The rules on lines. Each line that has hints is gone through step by step: the keys and the places of one line. The rules
//! on two lines follow.

use super::{
    blocks::{ACROSS, replaced},
    commands,
    hints::{Hint, Hints, Marks, Place, forms},
    keys::{self, BEGINNING, INSIDE, KEYS, ODD_KEYS},
    labels, named,
    places::PLACES,
    rules::{self, Pattern, Rule, Value, secret_of},
    told::is_password,
};
use memchr::{memchr, memmem, memrchr};
use regex::{Captures, Regex};
use std::{borrow::Cow, ops::Range, sync::LazyLock};

/// A step of the redaction of a line.
enum Step {
    /// The issuers' keys.
    Keys,
    Rule(Matcher),
}

static STEPS: LazyLock<Vec<Step>> = LazyLock::new(|| {
    let odd = ODD_KEYS.iter().map(|rule| Matcher::new(rule, format!("{BEGINNING}(?P<secret>{})", rule.pattern)));
    let places = PLACES.iter().map(|rule| Matcher::new(rule, rule.pattern));
    odd.map(Step::Rule).chain([Step::Keys]).chain(places.map(Step::Rule)).collect()
});

/// The marks of hints that later rules look for.
const PROGRAMS: usize = 0;
const LABELS: usize = 1;
const NAMES: usize = 2;
const ON_TWO_LINES_FROM: usize = 3;
/// The first mark of the steps.
const STEPS_FROM: usize = ON_TWO_LINES_FROM + ACROSS.len();

static HINTS: LazyLock<Hints> = LazyLock::new(|| {
    fn of<T: Into<Vec<u8>>>(mark: usize, texts: impl IntoIterator<Item = T>) -> impl Iterator<Item = Hint> {
        texts.into_iter().map(move |text| Hint { text: text.into(), place: Place::Anywhere, mark })
    }
    let mut hints: Vec<Hint> = Vec::new();
    hints.extend(of(PROGRAMS, commands::hints()));
    hints.extend(of(LABELS, labels::hints().iter().flat_map(|hint| forms(hint))));
    hints.extend(of(NAMES, named::hints()));
    for (rule, mark) in ACROSS.iter().zip(ON_TWO_LINES_FROM..) {
        hints.extend(of(mark, rule.hints.iter().flat_map(|hint| forms(hint))));
    }
    for (step, mark) in STEPS.iter().zip(STEPS_FROM..) {
        match step {
            Step::Keys => hints.extend(KEYS.iter().chain(INSIDE).flat_map(|key| key.hints(mark))),
            Step::Rule(Matcher { rule, .. }) => hints.extend(of(mark, rule.hints.iter().flat_map(|hint| forms(hint)))),
        }
    }
    Hints::new(hints)
});

/// The lines of a text that have hints of later rules.
#[derive(Default)]
pub(super) struct Later {
    lines: [Vec<Range<usize>>; STEPS_FROM],
    /// The secrets that labels gave away.
    values: Vec<Box<str>>,
}

/// The kind of a secret that its label gives away.
const LABELLED: &str = "secret";

impl Later {
    fn add(&mut self, line: &Range<usize>, marks: Marks) {
        for (_, lines) in (0..).zip(&mut self.lines).filter(|(mark, _)| marks.has(*mark)) {
            match lines.last_mut().filter(|last| last.end == line.start) {
                Some(last) => last.end = line.end,
                None => lines.push(line.clone()),
            }
        }
    }

    /// Puts a placeholder where each of these secrets stands. What it has of hints is none of later rules.
    pub(super) fn replace(&mut self, text: &mut Cow<'_, str>, mut secrets: Vec<Range<usize>>, kind: &'static str) {
        let free = |range: &Range<usize>| {
            !text[range.clone()].contains("[REDACTED") && !is_in_a_placeholder(text, range.start)
        };
        secrets.retain(free);
        secrets.sort_by_key(|range| range.start);
        // Where two overlap, the first counts.
        secrets.dedup_by(|next, before| next.start < before.end);
        if secrets.is_empty() {
            return;
        }
        if kind == LABELLED {
            let passwords = secrets.iter().filter(|range| is_password(&text[..range.start]));
            self.values.extend(passwords.map(|range| text[range.clone()].into()));
        }
        for lines in &mut self.lines {
            shift(lines, &secrets, "[REDACTED:]".len() + kind.len());
        }
        let secrets = secrets.into_iter().map(|range| (range, kind)).collect();
        *text = Cow::Owned(replaced(text, secrets).into_owned());
    }

    pub(super) fn programs(&self) -> &[Range<usize>] {
        &self.lines[PROGRAMS]
    }

    pub(super) fn labels(&self) -> &[Range<usize>] {
        &self.lines[LABELS]
    }

    pub(super) fn names(&self) -> &[Range<usize>] {
        &self.lines[NAMES]
    }

    pub(super) fn into_values(self) -> Vec<Box<str>> {
        self.values
    }
}

/// Moves the lines of a text in which each of these secrets becomes as long as a placeholder.
fn shift(lines: &mut [Range<usize>], secrets: &[Range<usize>], placeholder: usize) {
    let mut secrets = secrets.iter().peekable();
    let (mut before, mut after) = (0, 0);
    let mut shift = |at: &mut usize| {
        while let Some(secret) = secrets.next_if(|secret| secret.end <= *at) {
            before += secret.len();
            after += placeholder;
        }
        *at = *at + after - before;
    };
    for line in lines {
        shift(&mut line.start);
        shift(&mut line.end);
    }
}

/// Whether a position is inside of a placeholder.
fn is_in_a_placeholder(text: &str, at: usize) -> bool {
    const LONGEST: usize = 40;
    let before = &text.as_bytes()[at.saturating_sub(LONGEST)..at];
    memmem::rfind(before, b"[REDACTED").is_some_and(|begin| !before[begin..].contains(&b']'))
}

/// Replaces the secrets on each line of a text, and on each two lines. The lines that later rules look at.
pub(super) fn redact(text: &mut Cow<'_, str>) -> Later {
    let mut later = Later::default();
    let mut out = String::new();
    let mut done = 0;
    for (range, mut marks) in HINTS.lines(text) {
        let before = out.len() + range.start - done;
        let mut length = range.len();
        if let Some(line) = redacted(&text[range.clone()], &mut marks, &mut later.values) {
            out.push_str(&text[done..range.start]);
            out.push_str(&line);
            done = range.end;
            length = line.len();
        }
        later.add(&(before..before + length), marks);
    }
    if done > 0 {
        out.push_str(&text[done..]);
        *text = Cow::Owned(out);
    }
    for (rule, mark) in ON_TWO_LINES.iter().zip(ON_TWO_LINES_FROM..) {
        let mut secrets = Vec::new();
        for lines in around(text, &later.lines[mark]) {
            let found = rule.secrets(&text[lines.clone()]).into_iter();
            secrets.extend(found.map(|secret| lines.start + secret.start..lines.start + secret.end));
        }
        later.replace(text, secrets, rule.rule.kind);
    }
    later
}

/// The line without its secrets, if it has any. `marks` are those of its hints, before and after. `values` takes the secrets
/// that labels gave away.
fn redacted(line: &str, marks: &mut Marks, values: &mut Vec<Box<str>>) -> Option<String> {
    let mut line = Cow::Borrowed(line);
    let mut next = STEPS_FROM;
    while let Some(mark) = marks.next(next) {
        next = mark + 1;
        let step = &STEPS[mark - STEPS_FROM];
        if !step.may_find(&line, *marks) {
            continue;
        }
        let secrets = step.secrets(&line);
        if !secrets.is_empty() {
            let labelled =
                secrets.iter().filter(|(range, kind)| *kind == LABELLED && is_password(&line[..range.start]));
            values.extend(labelled.map(|(range, _)| line[range.clone()].into()));
            let replaced = replaced(&line, secrets).into_owned();
            // A rule counts on what the ones before it have left.
            *marks = HINTS.marks(&replaced);
            line = Cow::Owned(replaced);
        }
    }
    match line {
        Cow::Owned(line) => Some(line),
        Cow::Borrowed(_) => None,
    }
}

impl Step {
    /// Whether a line with these marks may have what the step finds.
    fn may_find(&self, line: &str, marks: Marks) -> bool {
        match self {
            Self::Rule(Matcher { rule: Rule { value: Value::IfNamed(_), .. }, .. }) if !marks.has(NAMES) => false,
            Self::Rule(matcher) => (matcher.rule.needs)(line),
            Self::Keys => true,
        }
    }

    /// The secrets on a line, with their kinds.
    fn secrets(&self, line: &str) -> Vec<(Range<usize>, &'static str)> {
        match self {
            Self::Keys => keys::find(line),
            Self::Rule(matcher) => {
                matcher.secrets(line).into_iter().map(|secret| (secret, matcher.rule.kind)).collect()
            }
        }
    }
}

/// A rule, ready to be used.
struct Matcher {
    rule: &'static Rule,
    pattern: Pattern,
}

static ON_TWO_LINES: LazyLock<Vec<Matcher>> =
    LazyLock::new(|| ACROSS.iter().map(|rule| Matcher::new(rule, rule.pattern)).collect());

impl Matcher {
    fn new(rule: &'static Rule, pattern: impl Into<String>) -> Self {
        Self { rule, pattern: Pattern::new(pattern) }
    }

    /// Where the secrets stand that the rule finds.
    fn secrets(&self, text: &str) -> Vec<Range<usize>> {
        let mut secrets = Vec::new();
        // The groups of a match cost much more than the answer that there is none.
        if self.pattern.is_match(text) {
            self.pattern.captures_iter(text).for_each(|found| self.add(text, &found, &mut secrets));
        }
        secrets
    }

    /// Adds the secrets of a match.
    fn add(&self, text: &str, found: &Captures<'_>, secrets: &mut Vec<Range<usize>>) {
        let (Some(whole), Some(secret)) = (found.get(0), secret_of(found)) else { return };
        let mut add = |range: Range<usize>| secrets.push(secret.start() + range.start..secret.start() + range.end);
        match self.rule.value {
            Value::Pairs => pairs(secret.as_str()).for_each(add),
            Value::Members => members(secret.as_str()).for_each(add),
            Value::Columns => columns(&found["columns"], secret.as_str()).for_each(add),
            Value::Always | Value::If(_) | Value::IfNamed(_) => {
                // A placeholder is no secret, nor is a part of one.
                let before = &text[whole.start()..secret.start()];
                let inside = before.rfind("[REDACTED").is_some_and(|at| !before[at..].contains(']'));
                let is_one = || match self.rule.value {
                    Value::If(is_one) | Value::IfNamed(is_one) => is_one(found),
                    _ => true,
                };
                if !inside && !secret.as_str().contains("[REDACTED") && is_one() {
                    add(0..secret.len());
                }
            }
        }
    }
}

/// Lines, with the one above and the one below each. A line is in one range only.
fn around(text: &str, lines: &[Range<usize>]) -> impl Iterator<Item = Range<usize>> {
    let bytes = text.as_bytes();
    let end_of = |at: usize| memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |end| at + end + 1);
    let mut lines = lines.iter().peekable();
    let mut done = 0;
    std::iter::from_fn(move || {
        let Range { start, mut end } = lines.next()?.clone();
        let above = memrchr(b'\n', &bytes[done..start.saturating_sub(1).max(done)]).map_or(done, |end| done + end + 1);
        // The line below may be the one above the next.
        while let Some(next) = lines.next_if(|next| next.start < end_of(end_of(end))) {
            end = next.end;
        }
        done = end_of(end);
        Some(above..done)
    })
}

fn fixed(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the patterns are fixed and tested")
}

/// The values of the pairs of a cookie that authenticate a user.
fn pairs(text: &str) -> impl Iterator<Item = Range<usize>> {
    static PAIR: LazyLock<Regex> = LazyLock::new(|| fixed(r"(?P<name>[A-Za-z0-9_.%$-]+)=(?P<value>[^;\s\x22'\\,]+)"));
    let of_a_user = |pair: &Captures<'_>| rules::is_cookie(&pair["name"], &pair["value"]);
    PAIR.captures_iter(text).filter(of_a_user).filter_map(|pair| Some(pair.name("value")?.range()))
}

/// The strings that are members of an object.
fn members(text: &str) -> impl Iterator<Item = Range<usize>> {
    static MEMBER: LazyLock<Regex> = LazyLock::new(|| fixed(r#":[ \t]*\\*["'](?P<secret>[^"'\\\n]+)\\*["']"#));
    let is_one = |member: &Captures<'_>| !named::is_stand_in(&member["secret"]);
    MEMBER.captures_iter(text).filter(is_one).filter_map(|member| Some(member.name("secret")?.range()))
}

/// The strings in rows of SQL, as `('a', 1), ('b', 2)`, whose columns have names of secrets. A string in the call of a
/// function belongs to the column of the call.
fn columns<'a>(names: &'a str, rows: &'a str) -> impl Iterator<Item = Range<usize>> + 'a {
    static TOKEN: LazyLock<Regex> = LazyLock::new(|| fixed(r"'(?P<string>[^'\n]*)'|[(),]"));
    let names: Vec<&str> = names.split(',').map(|name| name.trim_matches([' ', '"', '`', '\\', '[', ']'])).collect();
    let (mut depth, mut column) = (0_usize, 0);
    TOKEN.captures_iter(rows).filter_map(move |token| {
        let Some(string) = token.name("string") else {
            match &token[0] {
                "(" => depth += 1,
                ")" => depth = depth.saturating_sub(1),
                _ if depth == 1 => column += 1,
                _ => {}
            }
            if depth == 0 {
                column = 0;
            }
            return None;
        };
        let is_one = depth > 0 && names.get(column).is_some_and(|name| named::is_plausible(name, string.as_str()));
        is_one.then(|| string.range())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redact::{canaries::canaries, corpus::texts};

    /// Each match has the texts that a rule looks for before its pattern. A hint may leave out a way to write it, so texts of the
    /// corpora decide.
    #[test]
    fn each_match_has_a_hint_and_what_its_rule_needs() {
        let canaries = canaries().into_iter().map(|canary| canary.text);
        for text in texts().into_iter().chain(canaries) {
            let quoted = serde_json::json!({ "text": text }).to_string();
            for line in text.split_inclusive('\n').chain([quoted.as_str()]) {
                let marks = HINTS.marks(line);
                for (step, mark) in STEPS.iter().zip(STEPS_FROM..) {
                    if !step.secrets(line).is_empty() {
                        assert!(marks.has(mark), "no hint: {} in {line:?}", step.name());
                        assert!(step.may_find(line, marks), "it needs more: {} in {line:?}", step.name());
                    }
                }
            }
        }
    }

    impl Step {
        fn name(&self) -> &'static str {
            match self {
                Self::Keys => "keys",
                Self::Rule(matcher) => matcher.rule.pattern,
            }
        }
    }
}
