//! Replaces each secret of a text by a placeholder that names its kind, before anything else reads the text.
//!
//! The order: private keys and manifests, encoded keys, the issuers' own key formats, the places where secrets stand, the flags of
//! programs, labels in the languages of people, and the names of values (`password = …`), whose values may stand on the
//! lines below. A placeholder matches none of them, so redacting twice changes nothing.

mod blocks;
mod clean;
mod commands;
mod encoded;
mod hints;
mod keys;
mod labels;
mod lines;
mod matching;
mod named;
mod places;
mod rules;
pub mod secret;
mod stream;
mod tables;
mod told;

pub use clean::{Clean, Secrets};
pub use stream::Stream;
pub use told::Told;

use std::borrow::Cow;

/// A text with every secret in it replaced by `[REDACTED:kind]`.
#[must_use]
pub fn redact(text: &str) -> Cow<'_, str> {
    redact_telling(text).0
}

/// The same, and the values that labels gave away.
fn redact_telling(text: &str) -> (Cow<'_, str>, Vec<Box<str>>) {
    let mut text = blocks::redact(text);
    let encoded = encoded::find(&text);
    if !encoded.is_empty() {
        text = Cow::Owned(blocks::replaced(&text, encoded).into_owned());
    }
    let mut later = matching::redact(&mut text);
    let commands = commands::find(&text, later.programs());
    later.replace(&mut text, commands, "secret");
    let labels = labels::find(&text, later.labels());
    later.replace(&mut text, labels, "secret");
    let words: Vec<usize> = later.names().iter().flat_map(|lines| named::words(&text, lines.clone())).collect();
    let mut named = Vec::new();
    lines::find(&text, &words, &mut named);
    named.extend(named::find(&text, &words));
    later.replace(&mut text, named, "secret");
    (text, later.into_values())
}

#[cfg(test)]
#[path = "../tests/suite/canaries.rs"]
mod canaries;
#[cfg(test)]
mod corpus;

#[cfg(test)]
mod tests {
    use super::{
        canaries::*,
        keys::{INSIDE, KEYS, ODD_KEYS},
        places::PLACES,
        *,
    };
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
            ("My passphrase: correct horse battery staple 42, ok?", "My passphrase: [REDACTED:secret], ok?"),
            ("The passphrase is \"correct horse battery staple\".", "The passphrase is \"[REDACTED:secret]\"."),
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
            "passphrase: the words that unlock the key",
            "The passphrase is asked for once per session",
        ] {
            assert_eq!(redact(text), text);
        }
    }

    /// A text may be redacted line by line while it comes in, so no rule may look over the end of one.
    #[test]
    fn rules_end_with_the_line() {
        let rules = ODD_KEYS.iter().chain(PLACES).map(|rule| rule.pattern);
        for pattern in rules.chain(KEYS.iter().chain(INSIDE).map(|key| key.pattern)) {
            assert!(!pattern.contains(r"\s*") && !pattern.contains(r"\s+"), "{pattern}");
            for class in pattern.split("[^").skip(1) {
                let class = class.split(']').next().unwrap_or_default();
                assert!(class.contains(r"\s") || class.contains(r"\n"), "[^{class}] in {pattern}");
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

    /// Each of these begins what would be a key if there were a point after all of them.
    #[test]
    fn what_is_missing_behind_a_run_is_looked_for_once() {
        for piece in ["-eyJabcdefgh", "_eyJhbGciOiabcdefgh"] {
            let text = piece.repeat(2_000_000 / piece.len());
            let before = processor_time();
            assert_eq!(redact(&text), text);
            assert!((processor_time() - before).as_secs() < 10, "{piece}");
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
