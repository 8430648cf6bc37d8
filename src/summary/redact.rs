//! Secrets out of texts, before anything else reads them: each is replaced by a placeholder that says what it was.
//!
//! The patterns are those of the issuers' own key formats, then what a name gives away (`password = …`). A placeholder
//! matches none of them, so redacting twice changes nothing.

pub mod stream;

use regex::{Captures, Regex};
use std::{borrow::Cow, sync::LazyLock};

/// A text with every secret in it replaced by `[REDACTED:kind]`.
#[must_use]
pub fn redact(text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    for rule in RULES.iter() {
        if !rule.may_match(&text) {
            continue;
        }
        let replaced = rule.pattern.replace_all(&text, |found: &Captures<'_>| rule.replacement(found));
        if let Cow::Owned(replaced) = replaced {
            text = Cow::Owned(replaced);
        }
    }
    text
}

struct Rule {
    kind: &'static str,
    pattern: Regex,
    /// One of these stands in every match: a search for plain text is many times faster than the pattern.
    hints: &'static [&'static str],
    value: Value,
}

enum Value {
    /// The whole match is the secret.
    Whole,
    /// The group `secret` is; what stands around it stays.
    Group,
    /// The same, if it looks like a value and not like code or prose.
    Plausible,
}

impl Rule {
    fn may_match(&self, text: &str) -> bool {
        self.hints.is_empty()
            || self.hints.iter().any(|hint| memchr::memmem::find(text.as_bytes(), hint.as_bytes()).is_some())
    }

    fn replacement(&self, found: &Captures<'_>) -> String {
        let whole = &found[0];
        let placeholder = format!("[REDACTED:{}]", self.kind);
        let group = ["secret", "single", "bare"].iter().find_map(|name| found.name(name));
        let Some(secret) = group.filter(|_| !matches!(self.value, Value::Whole)) else {
            return placeholder;
        };
        let text = secret.as_str();
        if text.starts_with("[REDACTED:") || matches!(self.value, Value::Plausible) && !plausible(&found["name"], text)
        {
            return whole.to_owned();
        }
        let start = found.get(0).map_or(0, |whole| whole.start());
        format!("{}{placeholder}{}", &whole[..secret.start() - start], &whole[secret.end() - start..])
    }
}

/// Whether what stands behind `name =` is a secret, rather than a type, an expression or a count.
fn plausible(name: &str, value: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let password = ["pass", "pwd", "secret"].iter().any(|word| name.contains(word));
    if name.ends_with("tokens") && !password || value.chars().count() < 4 {
        return false;
    }
    // A reference to a secret is none: ${VAR}, $VAR, <your key>, process.env.KEY, getToken(), tokens[0].
    let call = value.contains('(') && value.trim_end_matches([';', ',', '?']).ends_with(')');
    let code = value.contains(['[', '<', '{']) || call;
    let path = value.starts_with(['/', '.']) && !password;
    let reference = value.starts_with(['$', '<', '{', '*', '%', '&'])
        || code
        || path
        || ["env.", "environ", "self.", "this.", "config.", "std::"].iter().any(|it| value.contains(it));
    let dictionary = [
        "string",
        "str",
        "text",
        "number",
        "boolean",
        "bool",
        "none",
        "null",
        "undefined",
        "true",
        "false",
        "required",
        "optional",
        "option",
        "object",
        "unknown",
        "secret",
        "token",
        "password",
        "example",
        "changeme",
        "redacted",
        "your",
        "this",
        "that",
        "with",
        "from",
        "into",
        "type",
        "field",
        "value",
        "input",
        "hidden",
        "bytes",
        "char",
    ];
    if reference || dictionary.contains(&value.to_ascii_lowercase().trim_end_matches([';', ',', '?', '.'])) {
        return false;
    }
    let digits = value.chars().any(|char| char.is_ascii_digit());
    let letters = value.chars().any(char::is_alphabetic);
    let mixed = value.chars().any(char::is_uppercase) && value.chars().any(char::is_lowercase);
    match password {
        // camelCase behind `password:` is the name of a variable.
        true => digits || !mixed && value.chars().count() >= 6,
        false => digits && letters && value.chars().count() >= 8 || value.chars().count() >= 20 && (digits || mixed),
    }
}

static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let rule = |kind, hints, value, pattern: &str| Rule {
        kind,
        pattern: Regex::new(pattern).expect("the patterns are fixed and tested"),
        hints,
        value,
    };
    use Value::{Group, Plausible, Whole};
    vec![
        rule(
            "private-key",
            &["PRIVATE KEY"],
            Whole,
            r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)",
        ),
        rule("age-key", &["AGE-SECRET-KEY-"], Whole, r"AGE-SECRET-KEY-1[A-Z0-9]{40,}"),
        rule("anthropic-key", &["sk-ant-"], Whole, r"\bsk-ant-[A-Za-z0-9_-]{16,}"),
        rule(
            "stripe-key",
            &["k_live_", "k_test_", "whsec_"],
            Whole,
            r"\b(?:(?:sk|rk|pk)_(?:live|test)_|whsec_)[A-Za-z0-9]{12,}",
        ),
        rule("openai-key", &["sk-"], Whole, r"\bsk-(?:[a-z0-9]+-)*[A-Za-z0-9_-]{20,}"),
        rule(
            "github-token",
            &["gh", "github_pat_"],
            Whole,
            r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})",
        ),
        rule("gitlab-token", &["gl"], Whole, r"\bgl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas)-[A-Za-z0-9_.-]{16,}"),
        rule("aws-access-key", &["AKIA", "ASIA"], Whole, r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
        rule("slack-token", &["xox", "xapp-"], Whole, r"\b(?:xox[abeoprs](?:\.xox[bp])?|xapp)-[A-Za-z0-9-]{10,}"),
        rule(
            "slack-webhook",
            &["hooks.slack.com"],
            Whole,
            r"https://hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_-]{16,}",
        ),
        rule(
            "google-key",
            &["AIza", "ya29.", "GOCSPX-"],
            Whole,
            r"\b(?:AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_.-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,})",
        ),
        rule(
            "service-token",
            &[
                "npm_",
                "pypi-",
                "hf_",
                "gsk_",
                "xai-",
                "lin_api_",
                "ntn_",
                "hvs.",
                "dapi",
                "shp",
                "do",
                "r8_",
                "key-",
                "sq0",
                "dckr_pat_",
                "sbp_",
                "vercel_",
                "tvly-",
                "pplx-",
                "ATATT",
            ],
            Whole,
            concat!(
                r"\b(?:npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{32,}|hf_[A-Za-z0-9]{24,}|gsk_[A-Za-z0-9]{24,}|xai-[A-Za-z0-9]{24,}",
                r"|lin_api_[A-Za-z0-9]{20,}|ntn_[A-Za-z0-9]{24,}|hvs\.[A-Za-z0-9_-]{20,}|dapi[a-f0-9]{32}|shp(?:at|ca|pa|ss)_[a-fA-F0-9]{24,}",
                r"|do[opr]_v1_[a-f0-9]{40,}|r8_[A-Za-z0-9]{30,}|key-[a-f0-9]{32}|sq0[a-z]{3}-[A-Za-z0-9_-]{20,}|dckr_pat_[A-Za-z0-9_-]{20,}",
                r"|sbp_[a-f0-9]{32,}|vercel_[A-Za-z0-9_]{20,}|tvly-[A-Za-z0-9_-]{20,}|pplx-[A-Za-z0-9]{32,}|ATATT[A-Za-z0-9_=-]{20,})",
            ),
        ),
        rule("sendgrid-key", &["SG."], Whole, r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
        rule("twilio-key", &["SK", "AC"], Whole, r"\b(?:SK|AC)[0-9a-f]{32}\b"),
        rule("telegram-token", &[":AA"], Whole, r"\b[0-9]{8,10}:AA[A-Za-z0-9_-]{30,}"),
        rule("jwt", &["eyJ"], Whole, r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"),
        rule(
            "url-password",
            &["://"],
            Group,
            r#"\b[A-Za-z][A-Za-z0-9+.-]*://[^\s:/@"'`<>]*:(?P<secret>[^\s/@"'`<>$\[{][^\s/@"'`<>]*)@"#,
        ),
        rule(
            "authorization",
            &["uthorization", "UTHORIZATION", "-key", "-Key", "-token", "-Token"],
            Group,
            r#"(?i)\b(?:(?:proxy-)?authorization|x-api-key|x-goog-api-key|x-auth-token|private-token|api-key)["']?\s*[:=]\s*["']?(?:(?:bearer|basic|token|digest)\s+)?(?P<secret>[A-Za-z0-9._~+/=:-]{8,})"#,
        ),
        rule("bearer", &["earer ", "EARER "], Group, r"(?i)\bbearer\s+(?P<secret>[A-Za-z0-9._~+/=-]{16,})"),
        rule(
            "secret",
            &["=", ":"],
            Plausible,
            concat!(
                r#"(?i)(?P<name>[a-z0-9_.-]*(?:passw(?:or)?d|passphrase|passwd|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential|auth[_-]?key|encryption[_-]?key|signing[_-]?key)[a-z0-9_.-]*)"#,
                // Quotes may be escaped: JSON in a string of JSON.
                r#"\\*["'`]?[ \t]*(?::=|=>|[:=])[ \t]*(?:\\*"(?P<secret>[^"\\\n]{1,200})|'(?P<single>[^'\n]{1,200})'|(?P<bare>[^\s"'`,;\\]+))"#,
            ),
        ),
        rule("secret", &["sshpass"], Group, r#"\bsshpass\s+-p\s*["']?(?P<secret>[^\s"']+)"#),
        rule("secret", &["login"], Group, r"\blogin\s+\S+\s+password\s+(?P<secret>\S+)"),
        rule(
            "secret",
            &["--pass", "--token", "--secret", "--api-key", "--key"],
            Plausible,
            r#"(?P<name>--(?:password|pass|token|secret|api-key|key))(?:=|\s+)["']?(?P<secret>[^\s"']+)"#,
        ),
    ]
});

#[cfg(test)]
mod tests {
    use super::*;

    /// Put together at run time, so that no scanner of this repository takes them for real.
    fn planted() -> Vec<(&'static str, String)> {
        let tail = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
        let hex = "0123456789abcdef0123456789abcdef";
        vec![
            ("anthropic-key", format!("sk-ant-{}-{tail}", "api03")),
            ("openai-key", format!("sk-{}-{tail}", "proj")),
            ("openai-key", format!("sk-{tail}")),
            ("github-token", format!("ghp_{tail}")),
            ("github-token", format!("github_pat_{tail}")),
            ("gitlab-token", format!("glpat-{tail}")),
            ("aws-access-key", format!("AKIA{}", "IOSFODNN7EXAMPLE")),
            ("slack-token", format!("xoxb-{}-{tail}", "123456789012")),
            ("google-key", format!("AIza{tail}")),
            ("stripe-key", format!("sk_live_{tail}")),
            ("service-token", format!("npm_{tail}")),
            ("service-token", format!("hf_{tail}")),
            ("sendgrid-key", format!("SG.{tail}.{tail}")),
            ("twilio-key", format!("SK{hex}")),
            ("telegram-token", format!("123456789:AA{tail}")),
            ("jwt", format!("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.{tail}")),
        ]
    }

    #[test]
    fn keys_of_issuers_are_named_and_gone() {
        for (kind, secret) in planted() {
            let text = format!("it is {secret}, keep it");
            let redacted = redact(&text);
            assert!(!redacted.contains(&secret[8..]), "{secret} in {redacted}");
            assert!(redacted.contains(&format!("[REDACTED:{kind}]")), "{kind}: {redacted}");
            assert!(redacted.ends_with("keep it"), "{redacted}");
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
        ] {
            assert_eq!(redact(text), text);
        }
    }
}
