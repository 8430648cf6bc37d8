//! Replaces each secret of a text by a placeholder that names its kind, before anything else reads the text.
//!
//! The order: private keys and manifests, encoded keys, the issuers' own key formats, the places where secrets stand, the flags of
//! programs, labels in the languages of people, and the names of values (`password = …`), whose values may stand on the
//! lines below. A placeholder matches none of them, so redacting twice changes nothing.

mod blocks;
mod clean;
mod commands;
mod encoded;
mod keys;
mod labels;
mod lines;
mod named;
mod places;
mod rules;
mod stream;
mod tables;

pub use clean::{Clean, Secrets};
pub use stream::Stream;

use keys::{BEGINNING, INSIDE, KEYS, ODD_KEYS};
use memchr::{
    memchr,
    memmem::{self, Finder},
    memrchr,
};
use places::PLACES;
use regex::{Captures, Regex};
use rules::{Rule, Value, secret_of};
use std::{borrow::Cow, ops::Range, sync::LazyLock};

/// A text with every secret in it replaced by `[REDACTED:kind]`.
#[must_use]
pub fn redact(text: &str) -> Cow<'_, str> {
    let mut text = blocks::redact(text);
    let encoded = encoded::find(&text);
    if !encoded.is_empty() {
        text = Cow::Owned(blocks::replaced(&text, encoded).into_owned());
    }
    for matcher in ODD.iter() {
        matcher.apply(&mut text);
    }
    if let Cow::Owned(replaced) =
        ALL_KEYS.pattern.replace_all(&text, |found: &Captures<'_>| ALL_KEYS.replacement(found))
    {
        text = Cow::Owned(replaced);
    }
    for matcher in PLACES_OF.iter() {
        matcher.apply(&mut text);
    }
    let commands = commands::find(&text);
    replace(&mut text, commands);
    let labels = labels::find(&text);
    replace(&mut text, labels);
    let words: Vec<usize> = named::words(&text).collect();
    let mut named = Vec::new();
    lines::find(&text, &words, &mut named);
    named.extend(named::find(&text, &words));
    replace(&mut text, named);
    text
}

/// Puts a placeholder where each of these secrets stands.
fn replace(text: &mut Cow<'_, str>, secrets: Vec<Range<usize>>) {
    let free =
        |range: &Range<usize>| !text[range.clone()].contains("[REDACTED") && !is_in_a_placeholder(text, range.start);
    let secrets: Vec<_> = secrets.into_iter().filter(free).map(|range| (range, "secret")).collect();
    if !secrets.is_empty() {
        *text = Cow::Owned(blocks::replaced(text, secrets).into_owned());
    }
}

/// Whether a position is inside of a placeholder.
fn is_in_a_placeholder(text: &str, at: usize) -> bool {
    const LONGEST: usize = 40;
    let before = &text.as_bytes()[at.saturating_sub(LONGEST)..at];
    memmem::rfind(before, b"[REDACTED").is_some_and(|begin| !before[begin..].contains(&b']'))
}

/// A rule, ready to be used.
struct Matcher {
    rule: &'static Rule,
    hints: Vec<Finder<'static>>,
    pattern: Regex,
    /// How many lines a match is on, at the most.
    lines: usize,
}

static ODD: LazyLock<Vec<Matcher>> = LazyLock::new(|| {
    let key = |rule: &'static Rule| Matcher::new(rule, &format!("{BEGINNING}(?P<secret>{})", rule.pattern), 1);
    ODD_KEYS.iter().map(key).collect()
});

static PLACES_OF: LazyLock<Vec<Matcher>> = LazyLock::new(|| {
    let on_a_line = PLACES.iter().map(|rule| Matcher::new(rule, rule.pattern, 1));
    on_a_line.chain(blocks::ACROSS.iter().map(|rule| Matcher::new(rule, rule.pattern, 2))).collect()
});

impl Matcher {
    fn new(rule: &'static Rule, pattern: &str, lines: usize) -> Self {
        Self { rule, hints: rule.hints.iter().map(Finder::new).collect(), pattern: fixed(pattern), lines }
    }

    /// Replaces what the rule finds on the lines that have a hint.
    fn apply(&self, text: &mut Cow<'_, str>) {
        let mut out = String::new();
        let mut done = 0;
        for lines in Hinted::new(text, self) {
            let replaced =
                self.pattern.replace_all(&text[lines.clone()], |found: &Captures<'_>| replacement(self.rule, found));
            if let Cow::Owned(replaced) = replaced {
                out.push_str(&text[done..lines.start]);
                out.push_str(&replaced);
                done = lines.end;
            }
        }
        if done > 0 {
            out.push_str(&text[done..]);
            *text = Cow::Owned(out);
        }
    }
}

/// The lines of a text that have one of the hints of a rule, in order. A line is in one range only.
struct Hinted<'a> {
    text: &'a str,
    matcher: &'a Matcher,
    /// Where each hint stands next; none that is left stands nowhere.
    next: Vec<Option<usize>>,
    done: usize,
}

impl<'a> Hinted<'a> {
    fn new(text: &'a str, matcher: &'a Matcher) -> Self {
        let next = matcher.hints.iter().map(|hint| hint.find(text.as_bytes())).collect();
        Self { text, matcher, next, done: 0 }
    }

    fn first(&mut self, from: usize) -> Option<usize> {
        for (hint, next) in self.matcher.hints.iter().zip(&mut self.next) {
            if let Some(at) = *next
                && at < from
            {
                *next = hint.find(&self.text.as_bytes()[from..]).map(|at| from + at);
            }
        }
        self.next.iter().flatten().min().copied()
    }
}

impl Iterator for Hinted<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let bytes = self.text.as_bytes();
        let start_of = |at: usize, from: usize| memrchr(b'\n', &bytes[from..at]).map_or(from, |end| from + end + 1);
        let end_of = |at: usize| memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |end| at + end + 1);
        let hint = self.first(self.done)?;
        let mut start = start_of(hint, self.done);
        let mut end = end_of(hint);
        if self.matcher.lines > 1 {
            start = start_of(start.saturating_sub(1).max(self.done), self.done);
            // The line below may be the one above the next hint.
            while let Some(hint) = self.first(end).filter(|hint| *hint < end_of(end_of(end))) {
                end = end_of(hint);
            }
            end = end_of(end);
        }
        self.done = end;
        Some(start..end)
    }
}

fn fixed(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the patterns are fixed and tested")
}

/// The rules of many keys as one pattern: the text is gone through once for all of them.
struct AllKeys {
    pattern: Regex,
    /// Index of each key's rule in the pattern.
    each: Vec<(&'static Rule, Regex)>,
}

static ALL_KEYS: LazyLock<AllKeys> = LazyLock::new(|| {
    let any = |rules: &[Rule]| rules.iter().map(|rule| rule.pattern).collect::<Vec<_>>().join("|");
    AllKeys {
        pattern: fixed(&format!("(?:{BEGINNING}(?P<secret>{})|(?P<single>{}))", any(KEYS), any(INSIDE))),
        each: KEYS.iter().chain(INSIDE).map(|rule| (rule, fixed(&format!("^(?:{})$", rule.pattern)))).collect(),
    }
});

impl AllKeys {
    /// The rule of a match, if it is a key.
    fn rule(&self, found: &Captures<'_>) -> Option<&'static Rule> {
        let key = secret_of(found)?.as_str();
        let (rule, _) = self.each.iter().find(|(_, pattern)| pattern.is_match(key))?;
        match rule.value {
            Value::If(is_one) if !is_one(found) => None,
            _ => Some(rule),
        }
    }

    /// The keys in a text, with their kinds.
    fn find<'a>(&'a self, text: &'a str) -> impl Iterator<Item = (Range<usize>, &'static str)> + 'a {
        let key = |found: Captures<'a>| Some((secret_of(&found)?.range(), self.rule(&found)?.kind));
        self.pattern.captures_iter(text).filter_map(key)
    }

    fn replacement(&self, found: &Captures<'_>) -> String {
        let key = secret_of(found).map_or("", |key| key.as_str());
        match self.each.iter().find(|(_, pattern)| pattern.is_match(key)) {
            Some((rule, _)) => replacement(rule, found),
            None => found[0].to_owned(),
        }
    }
}

fn replacement(rule: &Rule, found: &Captures<'_>) -> String {
    let whole = &found[0];
    let Some(secret) = secret_of(found) else {
        return whole.to_owned();
    };
    let start = found.get(0).map_or(0, |whole| whole.start());
    let (before, behind) = (&whole[..secret.start() - start], &whole[secret.end() - start..]);
    // A placeholder is no secret, nor is a part of one.
    let inside = before.rfind("[REDACTED").is_some_and(|at| !before[at..].contains(']'));
    match rule.value {
        Value::Always | Value::If(_) if inside || secret.as_str().contains("[REDACTED") => whole.to_owned(),
        Value::If(is_one) if !is_one(found) => whole.to_owned(),
        Value::Always | Value::If(_) => format!("{before}[REDACTED:{}]{behind}", rule.kind),
        Value::Pairs => format!("{before}{}{behind}", pairs(secret.as_str(), rule.kind)),
        Value::Members => format!("{before}{}{behind}", members(secret.as_str(), rule.kind)),
    }
}

/// The pairs of a cookie, without the values that authenticate a user.
fn pairs<'a>(text: &'a str, kind: &str) -> Cow<'a, str> {
    static PAIR: LazyLock<Regex> = LazyLock::new(|| {
        let pattern = r"(?P<name>[A-Za-z0-9_.%$-]+)=(?P<value>[^;\s\x22'\\,]+)";
        Regex::new(pattern).expect("the pattern is fixed and tested")
    });
    PAIR.replace_all(text, |pair: &Captures<'_>| match rules::is_cookie(&pair["name"], &pair["value"]) {
        true => format!("{}=[REDACTED:{kind}]", &pair["name"]),
        false => pair[0].to_owned(),
    })
}

/// The members of an object, without their strings.
fn members<'a>(text: &'a str, kind: &str) -> Cow<'a, str> {
    static MEMBER: LazyLock<Regex> =
        LazyLock::new(|| fixed(r#"(?P<before>:[ \t]*\\*["'])(?P<secret>[^"'\\\n]+)(?P<after>\\*["'])"#));
    MEMBER.replace_all(text, |member: &Captures<'_>| match named::is_stand_in(&member["secret"]) {
        false => format!("{}[REDACTED:{kind}]{}", &member["before"], &member["after"]),
        true => member[0].to_owned(),
    })
}

#[cfg(test)]
#[path = "../tests/suite/canaries.rs"]
mod canaries;
#[cfg(test)]
mod corpus;

#[cfg(test)]
mod tests {
    use super::{canaries::*, *};
    use proptest::prelude::*;
    use std::time::Duration;

    #[test]
    fn every_canary_is_named_and_gone() {
        for Canary { kind, text, secret } in canaries() {
            let redacted = redact(&text);
            assert!(!redacted.contains(&secret), "{secret} in {redacted}");
            assert!(redacted.contains(&format!("[REDACTED:{kind}]")), "{kind}: {redacted}");
            assert_eq!(redact(&redacted), redacted, "redacting twice changes nothing");
            let quoted = serde_json::json!({"stdin": text, "env": {"X": text}, "list": [text, 1]}).to_string();
            let again = serde_json::json!({"quoted": quoted, "n": 1}).to_string();
            for text in [quoted, again] {
                let redacted = redact(&text);
                assert!(!redacted.contains(&secret), "{secret} in {redacted}");
                assert_eq!(redact(&redacted), redacted, "redacting twice changes nothing");
            }
        }
    }

    #[test]
    fn a_private_key_goes_whole_even_when_its_end_is_missing() {
        let begin = format!("-----BEGIN RSA {} KEY-----", "PRIVATE");
        let end = format!("-----END RSA {} KEY-----", "PRIVATE");
        let whole = format!("before\n{begin}\nMIIEow\nabc\n{end}\nafter");
        assert_eq!(redact(&whole), "before\n[REDACTED:private-key]\nafter");
        assert_eq!(redact(&format!("x {begin}\nMIIEow")), "x [REDACTED:private-key]");
    }

    #[test]
    fn what_a_name_gives_away_goes_and_the_name_stays() {
        for (text, expected) in [
            ("DB_PASSWORD=hunter2hunter2", "DB_PASSWORD=[REDACTED:secret]"),
            ("export API_TOKEN='abcd1234efgh'", "export API_TOKEN='[REDACTED:secret]'"),
            (r#"{"password": "correct-horse"}"#, r#"{"password": "[REDACTED:secret]"}"#),
            ("client_secret: 9f8e7d6c5b4a", "client_secret: [REDACTED:secret]"),
            ("aws_secret_access_key = wJalrXUtnFEMIK7MDENGbPxRfiCY", "aws_secret_access_key = [REDACTED:secret]"),
            ("postgres://app:s3cr3t@db:5432/x", "postgres://app:[REDACTED:url-password]@db:5432/x"),
            ("Authorization: Bearer abcdefgh12345678", "Authorization: Bearer [REDACTED:authorization]"),
            ("curl -H 'x-api-key: abcdef123456'", "curl -H 'x-api-key: [REDACTED:authorization]'"),
            (
                r#"{"log": "{\\"token\\":\\"abcd1234efgh5678\\"}"}"#,
                r#"{"log": "{\\"token\\":\\"[REDACTED:secret]\\"}"}"#,
            ),
            (r#"password = "two words 99secret""#, r#"password = "[REDACTED:secret]""#),
            ("DB_PASSWORD=/abc/def9", "DB_PASSWORD=[REDACTED:secret]"),
            ("password=abc(def9)x", "password=[REDACTED:secret]"),
            ("sshpass -p geheim ssh host", "sshpass -p [REDACTED:secret] ssh host"),
            ("machine a login b password c7", "machine a login b password [REDACTED:secret]"),
            ("mysql --password=geheim123 -u root", "mysql --password=[REDACTED:secret] -u root"),
            // The end of a value is where its quotes, its line or its list end, and not earlier.
            (r#"{"password": "a\"b1,c d"}"#, r#"{"password": "[REDACTED:secret]"}"#),
            (r#"{\"password\": \"a1,c\\\"d\", \"x\": 1}"#, r#"{\"password\": \"[REDACTED:secret]\", \"x\": 1}"#),
            ("DB_PASSWORD=a1,b&c;d PORT=80", "DB_PASSWORD=[REDACTED:secret] PORT=80"),
            ("a\\nDB_PASSWORD=abc123\\nPORT=80", "a\\nDB_PASSWORD=[REDACTED:secret]\\nPORT=80"),
            ("Server=db; Password=a b,c1; Encrypt=True", "Server=db; Password=[REDACTED:secret]; Encrypt=True"),
            ("connect(user=me, password=geheim12)", "connect(user=me, password=[REDACTED:secret])"),
            (r#"let password: &str = "hunter2x";"#, r#"let password: &str = "[REDACTED:secret]";"#),
            ("password: |\n  hunter2x\nuser: me", "password: |\n  [REDACTED:secret]\nuser: me"),
            ("const apiKey =\n  'abcd1234efgh';", "const apiKey =\n  '[REDACTED:secret]';"),
            ("mongodb://u:p@ss/w0rd@h/db", "mongodb://u:[REDACTED:url-password]@h/db"),
            ("redis://:p%40ss@cache", "redis://:[REDACTED:url-password]@cache"),
            ("Cookie: lang=de; sid=abcdef123", "Cookie: lang=de; sid=[REDACTED:cookie]"),
        ] {
            assert_eq!(redact(text), expected);
            assert_eq!(redact(expected), expected, "redacting twice changes nothing");
        }
    }

    #[test]
    fn code_counts_and_references_stay() {
        for text in [
            "max_tokens: 4096",
            "const token = getToken();",
            "password: string;",
            "apiKey: process.env.API_KEY",
            "TOKEN=${GITHUB_TOKEN}",
            "let secret = config.secret;",
            "keepRecentTokens=20000",
            "the token was refused",
            "http://localhost:8080/path",
            "tokens: [1, 2, 3]",
            "fn token(&self) -> Token",
            "git@github.com:a/b.git",
            "password: userPassword",
            "token = parser.next_token()",
            "https://user@host/path",
            // Ids, sums and data.
            "id: 0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b",
            "commit 9487edb1f0c2a3b4d5e6f708192a3b4c5d6e7f80",
            r#""integrity": "sha512-1uZ2bWyo9nN4hQHVYxN9pXz0vJr3y6w1d5kQ8sT7uF2aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789+/AbCdEf==""#,
            r#"checksum = "cd15bfb0ca8e9d1b1a5ae0a4c0b21d1f7e0a7c7c6c0df4a7e8b0f3d2c1b0a998""#,
            "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl me@host",
            "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJ\n-----END CERTIFICATE-----",
            "src/auth/token/refresh_token2.rs:12:5: error",
            // Code.
            "use crate::token::TokenStream2;",
            r#""tokenizer": "o200k_base""#,
            "token: TokenKind2,",
            "let token = response.data.accessToken1;",
            "self.password = req.body.password;",
            "password = user_password",
            "token = next(tokens, 16)",
            "passwordFile: /run/secrets/db1",
            "secretName: my-app-secret-12",
            "if text.starts_with(\"-----BEGIN PRIVATE KEY-----\") { parse(text) }",
            "pub const CRED_TYPE_PASSWORD: CRED_TYPE = 2u32;",
            "Self::PrivateKey => 0x80001,",
            r#"for name in ["password", "username1", "api_key", "client_id2"] {}"#,
            r#"<input type="password" name="password" placeholder="min 8 characters">"#,
            r#""password": "Your password must have 8 characters""#,
            "CACHE_KEY=linux-cargo-9487edb1f0c2a3b4",
            "class=\"sk-spinner-fading-circle-container-inner\"",
            "task-management-system-with-boards-and-2-views",
            "authorization: implemented in auth.rs",
            "Basic authentication is not enough",
            "Bearer authentication-and-authorization",
            // References.
            "password: <your-password-1>",
            "API_KEY=your-key...here1",
            "password: !secret wifi_password1",
            "token: ********",
            "DATABASE_URL=postgres://app:${DB_PASSWORD}@db/x",
            "http://localhost:8080/@scope/package",
            "curl -u $USER:$PASSWORD https://x",
            "op read 'op://vault/item/password'",
            "api_key = os.environ['API_KEY_2']",
            "mysql -p < dump.sql",
            "the password is stored as base64url",
            "--password and --token options are required",
            "Cookie: theme=dark; lang=de-DE",
        ] {
            assert_eq!(redact(text), text);
        }
    }

    /// A text may be redacted line by line while it comes in, so no rule may look over the end of one.
    #[test]
    fn rules_end_with_the_line() {
        for rule in ODD_KEYS.iter().chain(KEYS).chain(PLACES) {
            assert!(!rule.pattern.contains(r"\s*") && !rule.pattern.contains(r"\s+"), "{}", rule.pattern);
            for class in rule.pattern.split("[^").skip(1) {
                let class = class.split(']').next().unwrap_or_default();
                assert!(class.contains(r"\s") || class.contains(r"\n"), "[^{class}] in {}", rule.pattern);
            }
        }
    }

    /// The processor time of this thread. Unlike the time of the clock it does not grow with the load of the machine.
    fn processor_time() -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::try_from(time).expect("a time from zero on")
    }

    #[test]
    fn blanks_of_any_kind_may_end_a_line() {
        for blank in ["\u{a0}", "\u{b}", "\u{3000} ", "\t"] {
            let text = format!("name  token  {blank}\nme  {blank}");
            assert_eq!(redact(&text), text);
        }
    }

    #[test]
    fn nothing_takes_forever() {
        for piece in [
            "task-",
            "token",
            "-----BEGIN PRIVATE KEY-----",
            "password=(",
            "://a:",
            "curl -",
            "\\",
            "\"",
            "eyJ.",
            "[REDACTED:",
        ] {
            for text in [piece.repeat(60_000 / piece.len()), format!("{piece}\n").repeat(60_000 / piece.len())] {
                let before = processor_time();
                let redacted = redact(&text).len();
                assert!((processor_time() - before).as_secs() < 10, "{piece} to {redacted}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

        /// Any combination of pieces has a result, and redacting the result changes nothing.
        #[test]
        fn redacting_twice_changes_nothing(pieces in prop::collection::vec(prop::sample::select(PIECES.to_vec()), 0..30)) {
            let text = pieces.concat();
            let once = redact(&text);
            prop_assert_eq!(redact(&once), &*once, "from {}", text);
        }
    }

    const PIECES: [&str; 47] = [
        "token",
        "password",
        "API_KEY",
        "secret",
        "x",
        "hunter2x",
        "a1B2c3D4e5F6g7H8i9J0",
        "=",
        ":",
        "==",
        "=>",
        ",",
        ";",
        " ",
        "  ",
        "\u{a0}",
        "\t",
        "\n",
        "\\",
        "\\n",
        "\"",
        "'",
        "`",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "<",
        ">",
        "|",
        "/",
        "@",
        "://",
        ".",
        "-",
        "--",
        "$",
        "ä",
        "…",
        "[REDACTED:jwt]",
        "sk-",
        "Bearer ",
        "Cookie: ",
        "curl -u ",
        "-----BEGIN PRIVATE KEY-----",
    ];
}
