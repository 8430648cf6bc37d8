//! What secrets look like: the key formats of their issuers, and the places where secrets stand.
//!
//! No pattern goes over the end of a line: a text may be redacted line by line and is the same in the end.

use super::named::{is_plausible, is_random, is_reference};
use base64::{Engine, prelude::BASE64_STANDARD};
use regex::Captures;

/// A kind of secret.
pub(super) struct Rule {
    pub kind: &'static str,
    /// One of these stands in every match: a search for plain text is many times faster than the pattern. The patterns
    /// of [`KEYS`] are searched for all at once, and have none.
    pub hints: &'static [&'static str],
    /// Of a place, the group `secret` or `single` is what goes. A key goes as a whole.
    pub pattern: &'static str,
    pub value: Value,
}

/// What of a match is a secret.
pub(super) enum Value {
    Always,
    /// Only what looks like one.
    If(fn(&Captures<'_>) -> bool),
    /// The values of its `name=value` pairs.
    Pairs,
}

use Value::{Always, If, Pairs};

const fn rule(kind: &'static str, hints: &'static [&'static str], pattern: &'static str, value: Value) -> Rule {
    Rule { kind, hints, pattern, value }
}

const fn key(kind: &'static str, pattern: &'static str, value: Value) -> Rule {
    rule(kind, &[], pattern, value)
}

/// Where a key may begin: at a word, or right behind what looks like a part of one – an escaped character, a colour of
/// a terminal, an encoded character of an address.
pub(super) const BEGINNING: &str = concat!(
    r"(?:(?-u:\b)|\\[abfnrtv]|(?:\x1b|\\u001[bB]|\\x1[bB]|\\033|\\e)\[[0-9;]*[A-Za-z]",
    r"|%[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4})"
);

/// Keys that do not begin with what makes them known.
pub(super) const ODD_KEYS: &[Rule] = &[
    rule("azure-secret", &["Q~"], r"[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{30,40}", Always),
    rule("azure-devops-token", &["AZDO"], r"[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}(?-u:\b)", Always),
    rule(
        "slack-webhook",
        &["hooks.slack"],
        r"https://hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{16,}",
        Always,
    ),
    rule(
        "discord-webhook",
        &["/webhooks/"],
        r"https://(?:[a-z]+\.)?discord(?:app)?\.com/api/(?:v[0-9]+/)?webhooks/[0-9]{10,}/[A-Za-z0-9_-]{30,}",
        Always,
    ),
    rule(
        "teams-webhook",
        &[".webhook.office.com"],
        r"https://[a-z0-9-]+\.webhook\.office\.com/[^\s\x22'<>\\]{30,}",
        Always,
    ),
    rule("firebase-key", &[":APA91b"], r"[A-Za-z0-9_-]{11}:APA91b[A-Za-z0-9_-]{60,}", Always),
    rule("asana-token", &["/12"], r"[0-2]/12[0-9]{10,}(?:/[0-9]{12,})?:[a-f0-9]{32}(?-u:\b)", Always),
    rule("mailchimp-key", &["-us"], r"[a-f0-9]{32}-us[0-9]{1,2}(?-u:\b)", Always),
    rule("telegram-token", &[":AA"], r"(?:bot)?[0-9]{8,10}:AA[A-Za-z0-9_-]{30,}", Always),
    rule("cloudflare-key", &["v1.0-"], r"v1\.0-[a-f0-9]{24}-[a-f0-9]{146}", Always),
    rule("terraform-token", &[".atlasv1."], r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,}", Always),
    rule("newrelic-key", &["NRAL"], r"[a-f0-9]{36}NRAL", Always),
];

/// Keys that are known by their looks, wherever they stand.
pub(super) const KEYS: &[Rule] = &[
    key("age-key", r"AGE-SECRET-KEY-(?:PQ-)?1[A-Z0-9]{40,}", Always),
    key("anthropic-key", r"sk-ant-[A-Za-z0-9_-]{16,}", Always),
    key("openrouter-key", r"sk-or-v1-[A-Za-z0-9]{24,}", Always),
    key("stripe-key", r"(?:(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{12,}|whsec_[A-Za-z0-9+/=]{12,})", Always),
    key("openai-key", r"sk-(?:[a-z0-9]+-)*[A-Za-z0-9_-]{20,}", If(random)),
    key("github-token", r"(?:gh[a-z]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})", Always),
    key(
        "gitlab-token",
        r"(?:gl(?:pat|dt|rt|rtr|cbt|ptt|ft|imt|agent|oas|soat|ffct)-[A-Za-z0-9_.-]{15,}[A-Za-z0-9_-]|GR1348941[A-Za-z0-9_-]{20,})",
        Always,
    ),
    key("bitbucket-token", r"(?:ATBB[A-Za-z0-9]{24,}|ATCTT3[A-Za-z0-9_=-]{24,})", Always),
    key("atlassian-token", r"ATATT[A-Za-z0-9_=-]{20,}", Always),
    key("aws-access-key", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?-u:\b)", Always),
    key("aws-bedrock-key", r"ABSK[A-Za-z0-9+/]{100,}={0,2}", Always),
    key("slack-token", r"(?:xox[abceoprsd](?:\.xox[bp])?|xapp)-[A-Za-z0-9%+/=-]{10,}", Always),
    // An id in base 64, which begins with a digit, a time, a signature.
    key(
        "discord-token",
        r"(?:M[Tjz]|N[DTjz]|O[DT])[A-Za-z0-9_-]{21,26}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}",
        If(random),
    ),
    key(
        "google-key",
        r"(?:AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_.-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,}|1//0[A-Za-z0-9_-]{40,})",
        Always,
    ),
    key("npm-token", r"npm_[A-Za-z0-9]{30,}", If(random)),
    key("pypi-token", r"pypi-[A-Za-z0-9_-]{32,}", If(random)),
    key("rubygems-key", r"rubygems_[a-f0-9]{40,}", Always),
    key("crates-token", r"cio[A-Za-z0-9]{32}(?-u:\b)", If(random)),
    key("nuget-key", r"oy2[a-z0-9]{43}(?-u:\b)", Always),
    key("docker-token", r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}", Always),
    key("huggingface-token", r"(?:hf|api_org)_[A-Za-z0-9]{24,}", If(random)),
    key("replicate-token", r"r8_[A-Za-z0-9]{30,}", Always),
    key("groq-key", r"gsk_[A-Za-z0-9]{24,}", Always),
    key("xai-key", r"xai-[A-Za-z0-9]{24,}", Always),
    key("perplexity-key", r"pplx-[A-Za-z0-9]{32,}", Always),
    key("tavily-key", r"tvly-[A-Za-z0-9_-]{20,}", Always),
    key("nvidia-key", r"nvapi-[A-Za-z0-9_-]{40,}", Always),
    key("cerebras-key", r"csk-[a-z0-9]{40,}", Always),
    key("fireworks-key", r"fw_[A-Za-z0-9]{22,}", If(random)),
    key("langsmith-key", r"lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}", Always),
    key("elevenlabs-key", r"sk_[a-f0-9]{48}(?-u:\b)", Always),
    key("pinecone-key", r"pcsk_[A-Za-z0-9_]{30,}", Always),
    key("notion-token", r"(?:ntn_[A-Za-z0-9]{24,}|secret_[A-Za-z0-9]{43}(?-u:\b))", If(random)),
    key("linear-key", r"lin_(?:api|oauth)_[A-Za-z0-9]{20,}", Always),
    key("airtable-token", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}(?-u:\b)", Always),
    key("figma-token", r"fig[do]_[A-Za-z0-9_-]{30,}", Always),
    key("dropbox-token", r"sl\.(?:u\.)?[A-Za-z0-9_-]{100,}", Always),
    key("postman-key", r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}", Always),
    key("twilio-key", r"(?:SK|AC)[0-9a-f]{32}(?-u:\b)", Always),
    key("sendgrid-key", r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}", Always),
    key("mailgun-key", r"key-[a-f0-9]{32}(?-u:\b)", Always),
    key("brevo-key", r"xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}", Always),
    key("resend-key", r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}", If(random)),
    key("shopify-token", r"shp(?:at|ca|pa|ss|tka)_[a-fA-F0-9]{24,}", Always),
    key("square-token", r"(?:sq0[a-z]{3}-[A-Za-z0-9_-]{20,}|EAAA[A-Za-z0-9_-]{60}(?-u:\b))", If(random)),
    key("braintree-token", r"access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}", Always),
    key("digitalocean-token", r"do[opr]_v1_[a-f0-9]{40,}", Always),
    key("heroku-key", r"HRKU-[A-Za-z0-9_-]{30,}", Always),
    key("vercel-token", r"(?:vercel_[A-Za-z0-9_]{20,}|vc[apirk]_[A-Za-z0-9]{24,})", If(random)),
    key("netlify-token", r"nf[pcoub]_[A-Za-z0-9]{30,}", Always),
    key("fly-token", r"(?:fm[12][ar]?_[A-Za-z0-9+/=_-]{40,}|fo1_[A-Za-z0-9_-]{40,})", Always),
    key("supabase-key", r"(?:sbp_(?:v0_)?[a-f0-9]{32,}|sb_secret_[A-Za-z0-9_-]{20,})", Always),
    key("planetscale-token", r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{30,}", Always),
    key("databricks-token", r"(?:dapi|dose)[a-f0-9]{32}(?:-[0-9])?(?-u:\b)", Always),
    key("newrelic-key", r"NR(?:AK|JS|II|IQ|SP|RA)-[A-Za-z0-9_-]{18,}", Always),
    key("sentry-token", r"sntry[sui]_[A-Za-z0-9+/=_-]{30,}", Always),
    key("grafana-token", r"(?:glsa|glc)_[A-Za-z0-9+/=_-]{20,}", Always),
    key("posthog-key", r"phx_[A-Za-z0-9]{30,}", Always),
    key("sonar-token", r"sq[pua]_[a-f0-9]{40}", Always),
    key("vault-token", r"hv[sbr]\.[A-Za-z0-9_-]{20,}", Always),
    key("pulumi-token", r"pul-[a-f0-9]{40}(?-u:\b)", Always),
    key("doppler-token", r"dp\.(?:pt|st|ct|sa|said|scim|audit)\.(?:[a-z0-9_-]+\.)?[A-Za-z0-9]{30,}", Always),
    key(
        "1password-token",
        r"(?:ops_eyJ[A-Za-z0-9+/=_-]{40,}|A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3})",
        Always,
    ),
    key("tailscale-key", r"tskey-[a-z]+-[A-Za-z0-9]+(?:-[A-Za-z0-9]+)?", Always),
    key("alibaba-key", r"LTAI[A-Za-z0-9]{12,26}(?-u:\b)", If(random)),
    key("paseto", r"v[1-4]\.(?:local|public)\.[A-Za-z0-9_-]{40,}(?:\.[A-Za-z0-9_-]+)?", Always),
    key("jwt", r"eyJ[A-Za-z0-9_-]{8,}\.(?:[A-Za-z0-9_-]{8,}|\.[A-Za-z0-9_-]{8,})(?:\.[A-Za-z0-9_-]+){0,3}", Always),
];

/// Places where a secret stands, whatever it looks like.
pub(super) const PLACES: &[Rule] = &[
    // As the console hands them out: both in one line.
    rule(
        "aws-secret-key",
        &["[REDACTED:aws-access-key]"],
        r#"\[REDACTED:aws-access-key\]\\*["']?[,:;|/\t ]{1,3}\\*["']?(?P<secret>[A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=\n]|(?m:$))"#,
        Always,
    ),
    rule(
        "azure-key",
        &["AccountKey=", "AccessKey=", "accountkey="],
        r"(?i)(?:account|sharedaccess|access)key=(?P<secret>[A-Za-z0-9+/%]{30,}={0,2})",
        Always,
    ),
    rule(
        "signed-url",
        &["sig=", "ignature="],
        r"(?:sig|(?:X-Amz-|X-Goog-)?Signature)=(?P<secret>[A-Za-z0-9%/+_-]{30,}={0,2})",
        Always,
    ),
    rule("signed-url", &["X-Amz-Security-Token="], r"X-Amz-Security-Token=(?P<secret>[A-Za-z0-9%/+_=-]{16,})", Always),
    rule("otp-secret", &["otpauth://"], r#"(?i)otpauth://[^\s"'<>]*?[?&]secret=(?P<secret>[A-Z2-7=]{8,})"#, Always),
    // A raw slash in a password is wrong, and common in those of databases.
    rule(
        "url-password",
        &["://"],
        concat!(
            r"(?:postgres|sql|mariadb|mongodb|redis|rediss|amqps?|sqlserver|clickhouse|cockroachdb|oracle|nats|mqtts?)",
            r#"(?:\+[a-z0-9]+)?://[^\s:/@"'`<>]*:(?P<secret>[^\s"'`<>\\]+)@"#,
        ),
        If(password_of_url),
    ),
    rule("url-password", &["://"], r#"://[^\s:/?#@"'`<>]*:(?P<secret>[^\s/?#"'`<>]+)@"#, If(password_of_url)),
    rule(
        "url-password",
        &["jdbc:oracle"],
        r"(?i)jdbc:oracle:[a-z]+:[^\s/@]+/(?P<secret>[^\s@/]+)@",
        If(password_of_url),
    ),
    rule(
        "authorization",
        &["igest ", "IGEST "],
        r#"(?i)digest[ \t]+(?P<secret>(?:[a-z]+=(?:\\*"[^"\\\n]*\\*"|[^\s,"'\\]+)(?:,[ \t]*)?){2,})"#,
        Always,
    ),
    rule(
        "basic-auth",
        &["asic ", "ASIC ", "auth", "AUTH"],
        r#"(?i)(?:basic[ \t]+|_?auth\\*["']?[ \t]*[:=][ \t]*\\*["']?)(?P<secret>[A-Za-z0-9+/]{6,}={0,2})"#,
        If(names_a_user),
    ),
    rule(
        "authorization",
        &["uthorization", "UTHORIZATION", "-key", "-Key", "-KEY", "-token", "-Token", "-TOKEN"],
        concat!(
            r"(?i)(?:authorization|(?:api|auth)-key|(?:auth|access|vault|gitlab|github|security|private|job|deploy)-token)",
            r#"\\*["']?[ \t]*[:=,][ \t]*\\*["'`]?"#,
            r"(?:(?:bearer|basic|token|digest|apikey|key|negotiate|ntlm|bot|splunk|sso-key)[ \t]+)?(?P<secret>[A-Za-z0-9._~+/=:-]{8,})"
        ),
        If(credential),
    ),
    rule("bearer", &["earer", "EARER"], r"(?i)bearer(?:[ \t]+|%20)(?P<secret>[A-Za-z0-9._~+/=-]{16,})", If(credential)),
    rule(
        "cookie",
        &["ookie", "OOKIE"],
        r"(?i)(?:set-)?cookies?\\*['\x22]?[ \t]*[:=,][ \t]*(?P<secret>[^\r\n]+)",
        Pairs,
    ),
    rule(
        "cookie",
        &["curl"],
        r#"curl(?-u:\b)[^\n]*?[ \t](?:-b|--cookie)[ =]?(?P<secret>"[^"\n]+"|'[^'\n]+'|[^\s"']+)"#,
        Pairs,
    ),
    rule(
        "password-hash",
        &[":$", ":\\$"],
        r":(?P<secret>\\?\$(?:2[abxy]?|apr1|1|5|6|y|7|gy|argon2(?:id?|d))\\?\$[A-Za-z0-9./$=,+\\]{16,})",
        Always,
    ),
    rule(
        "pgpass",
        &[":5432:", ":5433:", ":6432:", ":*:"],
        r#"(?m):(?:5432|5433|6432|\*):[^\s:\[`]+:[A-Za-z_][^\s:\[`]*:(?P<secret>[^\s:`"'\\]{3,})(?:[ \t]*\r?$|\\*["']|\\+[nr])"#,
        If(no_reference),
    ),
    rule(
        "secret",
        &["curl", "http ", "https "],
        r#"(?:curl|https?)[ \t][^\n]*?[ \t](?:-u|-U|-a|--user|--proxy-user|--auth)[ =]?\\*["']?[^\s:"'\\/]+:(?P<secret>[^\s"'\\/]+)"#,
        If(no_reference),
    ),
    rule(
        "secret",
        &["mysql", "mariadb"],
        r#"(?:mysql|mariadb)[a-z-]*(?-u:\b)[^\n|;&]*?[ \t]-p(?:\\*["'](?P<single>[^"'\n\\]+)|(?P<secret>[^\s"'\\;|&]+))"#,
        If(no_reference),
    ),
    rule(
        "secret",
        &["login", "mongo", "sshpass", "ldap", "redis-cli", "smbclient"],
        concat!(
            r"(?:(?:docker|podman|helm registry|buildah|skopeo|oras|nerdctl|az)[ \t]+login(?-u:\b)[^\n|;&]*?[ \t](?:-p|--password)",
            r"|mongo(?:sh|dump|restore|import|export)?(?-u:\b)[^\n|;&]*?[ \t](?:-p|--password)|sshpass[ \t]+-p|ldap[a-z]+(?-u:\b)[^\n|;&]*?[ \t]-w",
            r#"|redis-cli(?-u:\b)[^\n|;&]*?[ \t](?:-a|--pass))[ =]*\\*["']?(?P<secret>[^\s"'\\;|&-][^\s"'\\;|&]*)"#
        ),
        If(no_reference),
    ),
    rule("secret", &["sshpass"], r#"sshpass[ \t]+-p[ \t]*\\*["']?(?P<secret>[^\s"'\\]+)"#, If(no_reference)),
    rule(
        "secret",
        &["htpasswd"],
        r#"htpasswd[ \t]+-[A-Za-z]*b[A-Za-z]*[ \t]+(?:\S+[ \t]+)?\S+[ \t]+\\*["']?(?P<secret>[^\s"'\\]+)"#,
        If(no_reference),
    ),
    rule(
        "secret",
        &["chpasswd"],
        r#"echo[ \t]+(?:-n[ \t]+)?\\*["']?[A-Za-z0-9._-]+:(?P<secret>[^\s"'|\\]+)\\*["']?[ \t]*\|[^\n|]*?(?-u:\b)chpasswd"#,
        If(no_reference),
    ),
    rule("secret", &["pass:"], r#"(?:-pass(?:in|out)?|-k)[ =]\\*["']?pass:(?P<secret>[^\s"'\\]+)"#, If(no_reference)),
    rule("secret", &["password"], r#"(?:login|machine)[ \t]+\S+[ \t]+password[ \t]+(?P<secret>\S+)"#, If(no_reference)),
    rule(
        "secret",
        &["--from-literal"],
        r#"--from-literal[= ]\\*["']?[A-Za-z0-9_.-]+=(?P<secret>[^\s"'\\]+)"#,
        If(no_reference),
    ),
    rule(
        "secret",
        &["IDENTIFIED", "identified", "PASSWORD", "password"],
        r"(?i)(?:identified[ \t]+(?:with[ \t]+[a-z0-9_]+[ \t]+)?by|(?:with|encrypted|set|user|role)[ \t]+(?:\S+[ \t]+(?:with[ \t]+)?)?password)(?:[ \t]*=)?[ \t]+\\*'(?P<secret>[^'\n\\]+)'?",
        If(no_reference),
    ),
    rule(
        "secret",
        &["ConvertTo-SecureString"],
        r#"ConvertTo-SecureString[ \t]+(?:-String[ \t]+)?["'](?P<secret>[^"'\n]+)["']"#,
        If(no_reference),
    ),
    rule(
        "secret",
        &["--"],
        concat!(
            r"(?i)(?P<name>--(?:[a-z0-9]+-)*(?:password|passwd|pass|passphrase|token|secret|api-?key|access-key|secret-key|private-key|auth-key|key))",
            r#"(?P<between>\\*["'],[ \t]*\\*["']|=|[ \t]+)\\*["']?(?P<secret>[^\s"'\\-][^\s"'\\]*)"#
        ),
        If(behind_its_flag),
    ),
    rule(
        "secret",
        &["set "],
        concat!(
            r"(?-u:\b)set[ \t]+(?:-[a-zA-Z]+[ \t]+|--[a-z-]+[ \t]+)*\\*[\x22']?(?P<name>[A-Za-z0-9_.:/-]*(?i:password|passwd|secret|token|_key))\\*[\x22']?[ \t]+",
            r#"\\*["']?(?P<secret>[^\s"'\\=<>][^\s"'\\]*)"#
        ),
        If(behind_its_name),
    ),
    rule(
        "secret",
        &["</"],
        r"(?i)<(?P<name>[a-z0-9_.:-]*(?:passw(?:or)?d|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key))(?:[ \t][^<>\n]*)?>(?P<secret>[^<>\s][^<>\n]*)</",
        If(behind_its_name),
    ),
    rule(
        "secret",
        &["value=", "Value="],
        r#"(?i)(?:key|name)=["'](?P<name>[a-z0-9_.:-]*(?:passw(?:or)?d|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key)[a-z0-9_.:-]*)["'][ \t]+value=["'](?P<secret>[^"'\n]+)"#,
        If(behind_its_name),
    ),
    rule(
        "secret",
        &["ass", "ecret", "oken", "key"],
        concat!(
            r"(?i)(?P<name>password|passwort|passphrase|passcode|secret|token|api[ -]key)(?:[ \t]+(?:for|of|to|für)[ \t]+[a-z0-9_.@-]+)?",
            r#"[ \t]+(?:is|ist|was|lautet|will be)[ \t]*:?[ \t]*(?P<quote>["'`*]{0,2})(?P<secret>[^\s"'`*,;()\[\]]+)"#
        ),
        If(told_in_prose),
    ),
];

fn secret<'a>(found: &'a Captures<'_>) -> &'a str {
    found.name("secret").or_else(|| found.name("single")).map_or("", |secret| secret.as_str())
}

fn random(found: &Captures<'_>) -> bool {
    is_random(secret(found))
}

fn no_reference(found: &Captures<'_>) -> bool {
    !is_reference(secret(found))
}

/// Behind a host there is a port, behind a user a password.
fn password_of_url(found: &Captures<'_>) -> bool {
    let secret = secret(found);
    let port = secret.split(['/', '?', '#']).next().unwrap_or_default();
    let only_port = port.len() < secret.len() && port.bytes().all(|byte| byte.is_ascii_digit());
    !only_port && !secret.contains("://") && !is_reference(secret)
}

/// Whether a pair of a cookie makes somebody be somebody, rather than choose a language.
pub(super) fn is_cookie(name: &str, value: &str) -> bool {
    const SESSIONS: [&str; 9] = ["sess", "sid", "auth", "token", "jwt", "csrf", "xsrf", "remember", "login"];
    const ATTRIBUTES: [&str; 8] =
        ["path", "domain", "expires", "max-age", "samesite", "version", "comment", "priority"];
    let name = name.to_ascii_lowercase();
    if ATTRIBUTES.contains(&name.as_str()) || is_reference(value) || value.contains(['(', '[']) {
        return false;
    }
    let session = SESSIONS.iter().any(|word| name.contains(word)) && is_plausible("token", value);
    session || is_random(value)
}

/// What is left of `Basic …` when it is decoded: a user and a password.
fn names_a_user(found: &Captures<'_>) -> bool {
    let text = secret(found).trim_end_matches('=');
    let padded = format!("{text}{}", &"==="[..(4 - text.len() % 4) % 4]);
    let decoded = BASE64_STANDARD.decode(padded).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    decoded.is_some_and(|text| text.contains(':') && text.chars().all(|char| !char.is_control()))
}

/// What stands in a header, and is no word of prose about it.
fn credential(found: &Captures<'_>) -> bool {
    let text = secret(found);
    is_random(text) || text.bytes().any(|byte| byte.is_ascii_digit()) && is_plausible("token", text)
}

fn behind_its_name(found: &Captures<'_>) -> bool {
    is_plausible(&found["name"], secret(found))
}

/// Behind a blank there may be a sentence about the flag: its words have small letters and nothing else.
fn behind_its_flag(found: &Captures<'_>) -> bool {
    let word = secret(found).trim_end_matches(['.', ',', ';', ':', ')']);
    let prose = found["between"].trim().is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
    !prose && behind_its_name(found)
}

/// "The password is …": letters and digits, and no name of an algorithm. What is quoted may be any word with a digit.
fn told_in_prose(found: &Captures<'_>) -> bool {
    const KNOWN: [&str; 12] =
        ["base", "sha", "md5", "utf", "oauth", "argon", "pbkdf", "int", "uint", "aes", "rsa", "http"];
    let text = secret(found).trim_end_matches(['.', '!', '?', ':']);
    let lower = text.to_ascii_lowercase();
    let digits = text.bytes().any(|byte| byte.is_ascii_digit());
    let letters = text.bytes().any(|byte| byte.is_ascii_alphabetic());
    digits && letters && text.len() >= 6 && !KNOWN.iter().any(|known| lower.starts_with(known)) && !is_reference(text)
}
