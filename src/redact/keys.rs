//! The key formats of issuers: text that is a secret wherever it stands.
//!
//! No pattern goes over the end of a line.

use super::{
    hints::{Hint, Hints, Place},
    named::is_random,
    rules::{Pattern, Rule, Value::Always, rule},
};
use regex_syntax::hir::literal::Extractor;
use std::{ops::Range, sync::LazyLock};

/// A key that is known by its beginning.
pub(super) struct Key {
    pub kind: &'static str,
    /// Each match begins with one of a few fixed texts.
    pub pattern: &'static str,
    looks: Looks,
    tries: Tries,
}

/// The looks of the text of a key.
enum Looks {
    Any,
    /// Only what is random is a key.
    Random,
}

use Looks::{Any, Random};

/// Where a pattern is tried, so that nothing is looked at again and again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tries {
    /// At each beginning. It ends soon, or it matches.
    Each,
    /// At the first beginning in a run of letters, digits, `_` and `-`: what a match needs after the run is there for all of
    /// them, or for none.
    OncePerRun,
}

const fn key(kind: &'static str, pattern: &'static str, looks: Looks) -> Key {
    Key { kind, pattern, looks, tries: Tries::Each }
}

impl Key {
    const fn once_per_run(self) -> Self {
        Self { tries: Tries::OncePerRun, ..self }
    }

    /// The hints of the key, taken from its pattern.
    pub(super) fn hints(&self, mark: usize) -> impl Iterator<Item = Hint> + use<> {
        /// More of a text would only make the search larger.
        const LONGEST: usize = 5;
        let hir = regex_syntax::parse(self.pattern).expect("the patterns are fixed and tested");
        let mut extractor = Extractor::new();
        // `gh[a-z]_` are as many texts as there are letters.
        extractor.limit_class(26).limit_literal_len(LONGEST).limit_total(200);
        let texts = extractor.extract(&hir);
        let texts = texts.literals().expect("each pattern begins with a few fixed texts").to_vec();
        let place = Place::Key(hir.properties().minimum_len().unwrap_or(0));
        texts.into_iter().map(move |text| Hint { text: text.as_bytes().to_vec(), place, mark })
    }
}

/// The keys, ready to be searched for.
struct All {
    hints: Hints,
    /// The index of a key is the mark of its hints.
    each: Vec<Each>,
}

struct Each {
    key: &'static Key,
    /// Whether the key needs a beginning.
    at: At,
    first: Pattern,
    whole: Pattern,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    ABeginning,
    Anywhere,
}

static ALL: LazyLock<All> = LazyLock::new(|| {
    let each = |at: At| {
        move |key: &'static Key| Each {
            key,
            at,
            first: Pattern::new(format!("^(?:{})", key.pattern)),
            whole: Pattern::new(format!("^(?:{})$", key.pattern)),
        }
    };
    let each: Vec<Each> = KEYS.iter().map(each(At::ABeginning)).chain(INSIDE.iter().map(each(At::Anywhere))).collect();
    let hints: Vec<Hint> = each.iter().enumerate().flat_map(|(mark, each)| each.key.hints(mark)).collect();
    All { hints: Hints::new(hints), each }
});

/// Where keys stand in a text, with their kinds.
pub(super) fn find(text: &str) -> Vec<(Range<usize>, &'static str)> {
    let mut hints: Vec<(usize, usize)> = ALL.hints.keys(text).collect();
    // Of several keys that begin at the same place, the first one counts.
    hints.sort_unstable();
    let mut found = Vec::new();
    let mut done = 0;
    let mut tried = vec![0; if hints.is_empty() { 0 } else { ALL.each.len() }];
    for (index, (start, number)) in hints.iter().copied().enumerate() {
        let Each { key, at, first, .. } = &ALL.each[number];
        let is_free = start >= done.max(tried[number]);
        if !is_free || *at == At::ABeginning && !may_begin(text.as_bytes(), done, start) {
            continue;
        }
        match first.find(&text[start..]) {
            Some(text) => {
                done = start + text.end();
                let before =
                    hints[..index].iter().rev().take_while(|(other, _)| *other == start).map(|(_, number)| *number);
                found.extend(kind_of(text.as_str(), number, before).map(|kind| (start..done, kind)));
            }
            None if key.tries == Tries::OncePerRun => tried[number] = start + length_of_run(&text.as_bytes()[start..]),
            None => {}
        }
    }
    found
}

/// The kind of a key that a rule has found. None where it only looks like one. A rule `before`, with the same beginning, may
/// know the key from where it ends, or may need another place for it.
fn kind_of(text: &str, rule: usize, before: impl Iterator<Item = usize>) -> Option<&'static str> {
    let knows = |number: &usize| ALL.each[*number].whole.is_match(text);
    let Each { key, .. } = &ALL.each[before.filter(knows).last().unwrap_or(rule)];
    match key.looks {
        Random if !is_random(text) => None,
        Any | Random => Some(key.kind),
    }
}

fn length_of_run(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')).count()
}

/// Whether a key may begin at `start`, as [`BEGINNING`] says. The text before `done` belongs to another key.
fn may_begin(bytes: &[u8], done: usize, start: usize) -> bool {
    const ESCAPES: [&[u8]; 7] = [b"\x1b", b"\\u001b", b"\\u001B", b"\\x1b", b"\\x1B", b"\\033", b"\\e"];
    let before = &bytes[done..start];
    if start == 0 || !(bytes[start - 1].is_ascii_alphanumeric() || bytes[start - 1] == b'_') {
        return true;
    }
    let is_hex = |digits: &[u8]| digits.iter().all(u8::is_ascii_hexdigit);
    match before {
        [.., b'\\', b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v'] => true,
        [.., b'%', a, b] => is_hex(&[*a, *b]),
        [.., b'\\', b'u', a, b, c, d] => is_hex(&[*a, *b, *c, *d]),
        [before @ .., letter] if letter.is_ascii_alphabetic() => {
            let numbers = before.iter().rev().take_while(|byte| byte.is_ascii_digit() || **byte == b';').count();
            let escape = before[..before.len() - numbers].strip_suffix(b"[");
            escape.is_some_and(|before| ESCAPES.iter().any(|escape| before.ends_with(escape)))
        }
        _ => false,
    }
}

/// Where a key may begin: at a word, or right after what looks like a part of one – an escaped character, a colour of
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
    rule("openshift-token", &["sha256~"], r"sha256~[A-Za-z0-9_-]{43}(?-u:\b)", Always),
    rule("newrelic-key", &["NRAL"], r"[a-f0-9]{36}NRAL", Always),
];

/// Keys that are known by their looks, wherever they stand.
pub(super) const KEYS: &[Key] = &[
    key("age-key", r"AGE-SECRET-KEY-(?:PQ-)?1[A-Z0-9]{40,}", Any),
    key("anthropic-key", r"sk-ant-[A-Za-z0-9_-]{16,}", Any),
    key("openrouter-key", r"sk-or-v1-[A-Za-z0-9]{24,}", Any),
    key("stripe-key", r"(?:(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{12,}|whsec_[A-Za-z0-9+/=]{12,})", Any),
    key("openai-key", r"sk-(?:[a-z0-9]+-)*[A-Za-z0-9_-]{20,}", Random),
    key("github-token", r"(?:gh[a-z]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})", Any),
    key(
        "gitlab-token",
        r"(?:gl(?:pat|dt|rt|rtr|cbt|ptt|ft|imt|agent|oas|soat|ffct)-[A-Za-z0-9_.-]{15,}[A-Za-z0-9_-]|GR1348941[A-Za-z0-9_-]{20,})",
        Any,
    ),
    key("bitbucket-token", r"(?:ATBB[A-Za-z0-9]{24,}|ATCTT3[A-Za-z0-9_=-]{24,})", Any),
    key("atlassian-token", r"ATATT[A-Za-z0-9_=-]{20,}", Any),
    key("aws-access-key", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?-u:\b)", Any),
    key("aws-bedrock-key", r"ABSK[A-Za-z0-9+/]{100,}={0,2}", Any),
    key("slack-token", r"(?:xox[abceoprsd](?:\.xox[bp])?|xapp)-[A-Za-z0-9%+/=-]{10,}", Any),
    // An id in base 64, which begins with a digit, a time, a signature.
    key("discord-token", r"(?:M[Tjz]|N[DTjz]|O[DT])[A-Za-z0-9_-]{21,26}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}", Random),
    key(
        "google-key",
        r"(?:AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_.-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,}|1//0[A-Za-z0-9_-]{40,})",
        Any,
    ),
    key("npm-token", r"npm_[A-Za-z0-9]{30,}", Random),
    key("pypi-token", r"pypi-[A-Za-z0-9_-]{32,}", Random),
    key("rubygems-key", r"rubygems_[a-f0-9]{40,}", Any),
    key("crates-token", r"cio[A-Za-z0-9]{32}(?-u:\b)", Random),
    key("nuget-key", r"oy2[a-z0-9]{43}(?-u:\b)", Any),
    key("docker-token", r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}", Any),
    key("huggingface-token", r"(?:hf|api_org)_[A-Za-z0-9]{24,}", Random),
    key("runpod-key", r"rpa_[A-Za-z0-9]{36,}", Random),
    key("replicate-token", r"r8_[A-Za-z0-9]{30,}", Any),
    key("groq-key", r"gsk_[A-Za-z0-9]{24,}", Any),
    key("xai-key", r"xai-[A-Za-z0-9]{24,}", Any),
    key("perplexity-key", r"pplx-[A-Za-z0-9]{32,}", Any),
    key("tavily-key", r"tvly-[A-Za-z0-9_-]{20,}", Any),
    key("nvidia-key", r"nvapi-[A-Za-z0-9_-]{40,}", Any),
    key("cerebras-key", r"csk-[a-z0-9]{40,}", Any),
    key("fireworks-key", r"fw_[A-Za-z0-9]{22,}", Random),
    key("langsmith-key", r"lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}", Any),
    key("elevenlabs-key", r"sk_[a-f0-9]{48}(?-u:\b)", Any),
    key("pinecone-key", r"pcsk_[A-Za-z0-9_]{30,}", Any),
    key("notion-token", r"(?:ntn_[A-Za-z0-9]{24,}|secret_[A-Za-z0-9]{43}(?-u:\b))", Random),
    key("linear-key", r"lin_(?:api|oauth)_[A-Za-z0-9]{20,}", Any),
    key("airtable-token", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}(?-u:\b)", Any),
    key("figma-token", r"fig[do]_[A-Za-z0-9_-]{30,}", Any),
    key("dropbox-token", r"sl\.(?:u\.)?[A-Za-z0-9_-]{100,}", Any),
    key("postman-key", r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}", Any),
    key("twilio-key", r"(?:SK|AC)[0-9a-f]{32}(?-u:\b)", Any),
    key("sendgrid-key", r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}", Any),
    key("mailgun-key", r"key-[a-f0-9]{32}(?-u:\b)", Any),
    key("brevo-key", r"xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}", Any),
    key("resend-key", r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}", Random),
    key("shopify-token", r"shp(?:at|ca|pa|ss|tka)_[a-fA-F0-9]{24,}", Any),
    key("square-token", r"(?:sq0[a-z]{3}-[A-Za-z0-9_-]{20,}|EAAA[A-Za-z0-9_-]{60}(?-u:\b))", Random),
    key("braintree-token", r"access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}", Any),
    key("digitalocean-token", r"do[opr]_v1_[a-f0-9]{40,}", Any),
    key("heroku-key", r"HRKU-[A-Za-z0-9_-]{30,}", Any),
    key("vercel-token", r"(?:vercel_[A-Za-z0-9_]{20,}|vc[apirk]_[A-Za-z0-9]{24,})", Random),
    key("netlify-token", r"nf[pcoub]_[A-Za-z0-9]{30,}", Any),
    key("fly-token", r"(?:fm[12][ar]?_[A-Za-z0-9+/=_-]{40,}|fo1_[A-Za-z0-9_-]{40,})", Any),
    key("supabase-key", r"(?:sbp_(?:v0_)?[a-f0-9]{32,}|sb_secret_[A-Za-z0-9_-]{20,})", Any),
    key("planetscale-token", r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{30,}", Any),
    key("databricks-token", r"(?:dapi|dose)[a-f0-9]{32}(?:-[0-9])?(?-u:\b)", Any),
    key("newrelic-key", r"NR(?:AK|JS|II|IQ|SP|RA)-[A-Za-z0-9_-]{18,}", Any),
    key("sentry-token", r"sntry[sui]_[A-Za-z0-9+/=_-]{30,}", Any),
    key("grafana-token", r"(?:glsa|glc)_[A-Za-z0-9+/=_-]{20,}", Any),
    key("posthog-key", r"phx_[A-Za-z0-9]{30,}", Any),
    key("sonar-token", r"sq[pua]_[a-f0-9]{40}", Any),
    key("vault-token", r"hv[sbr]\.[A-Za-z0-9_-]{20,}", Any),
    key("pulumi-token", r"pul-[a-f0-9]{40}(?-u:\b)", Any),
    key("doppler-token", r"dp\.(?:pt|st|ct|sa|said|scim|audit)\.(?:[a-z0-9_-]+\.)?[A-Za-z0-9]{30,}", Any),
    key(
        "1password-token",
        r"(?:ops_eyJ[A-Za-z0-9+/=_-]{40,}|A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3})",
        Any,
    ),
    key("swarm-token", r"SWMTKN-1-[a-z0-9]{40,}-[a-z0-9]{20,}", Any),
    key("artifactory-key", r"(?:AKCp[A-Za-z0-9]{69}|cmVmd[A-Za-z0-9]{59})(?-u:\b)", Random),
    key("dynatrace-token", r"dt0[a-z][0-9]{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64}", Any),
    key("plaid-token", r"access-(?:sandbox|development|production)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", Any),
    key("sourcegraph-token", r"sgp_(?:[a-f0-9]{16}_|local_)?[a-f0-9]{40}(?-u:\b)", Any),
    key("buildkite-token", r"bk(?:ua|ct|aj)_[A-Za-z0-9]{32,}", Random),
    key("circleci-token", r"CCIP(?:AT|RJ)_[A-Za-z0-9]{10,}_[a-f0-9]{40}", Any),
    key("prefect-key", r"pn[ub]_[A-Za-z0-9]{36}(?-u:\b)", Random),
    key("tailscale-key", r"tskey-[a-z]+-[A-Za-z0-9]+(?:-[A-Za-z0-9]+)?", Any),
    key("alibaba-key", r"LTAI[A-Za-z0-9]{12,26}(?-u:\b)", Random),
    key("paseto", r"v[1-4]\.(?:local|public)\.[A-Za-z0-9_-]{40,}(?:\.[A-Za-z0-9_-]+)?", Any),
    key("jwt", r"eyJ[A-Za-z0-9_-]{8,}\.(?:[A-Za-z0-9_-]{8,}|\.[A-Za-z0-9_-]{8,})(?:\.[A-Za-z0-9_-]+){0,3}", Any)
        .once_per_run(),
];

/// Keys that are known even inside of a word: the beginning is rare, and the rest is long.
pub(super) const INSIDE: &[Key] = &[
    key("anthropic-key", r"sk-ant-(?:api|oat|sid|admin)[0-9]{2}-[A-Za-z0-9_-]{32,}", Any),
    key("openai-key", r"sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{32,}", Random),
    key("github-token", r"(?:gh[opsur]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{50,})", Random),
    key("gitlab-token", r"gl(?:pat|dt|rt|cbt|ptt|ft)-[A-Za-z0-9_-]{20,}", Random),
    key("slack-token", r"xox[abceoprs]-[0-9]{8,}-[A-Za-z0-9-]{16,}", Any),
    key("aws-access-key", r"(?:AKIA|ASIA)[A-Z0-9]{16}(?-u:\b)", Random),
    key("stripe-key", r"(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{20,}", Random),
    key("npm-token", r"npm_[A-Za-z0-9]{36}(?-u:\b)", Random),
    key("pypi-token", r"pypi-AgEI[A-Za-z0-9_-]{32,}", Any),
    key("docker-token", r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}", Any),
    key("sendgrid-key", r"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}(?-u:\b)", Random),
    key("digitalocean-token", r"do[opr]_v1_[a-f0-9]{64}", Any),
    key("shopify-token", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}", Any),
    key("vault-token", r"hv[sbr]\.[A-Za-z0-9_-]{24,}", Random),
    key("jwt", r"eyJhbGciOi[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{16,}", Any).once_per_run(),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redact::hints::is_of_a_key;
    use regex_syntax::hir::{Class, Hir, HirKind};

    fn has_only_characters_of_keys(hir: &Hir) -> bool {
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => true,
            HirKind::Literal(text) => text.0.iter().all(|byte| is_of_a_key(*byte)),
            HirKind::Class(Class::Unicode(class)) => {
                let is_one = |char: char| u8::try_from(char).is_ok_and(is_of_a_key);
                class.ranges().iter().all(|range| (range.start()..=range.end()).all(is_one))
            }
            HirKind::Class(Class::Bytes(class)) => {
                class.ranges().iter().all(|range| (range.start()..=range.end()).all(is_of_a_key))
            }
            HirKind::Repetition(repeated) => has_only_characters_of_keys(&repeated.sub),
            HirKind::Capture(captured) => has_only_characters_of_keys(&captured.sub),
            HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().all(has_only_characters_of_keys),
        }
    }

    #[test]
    fn keys_have_the_characters_that_are_looked_for() {
        for Key { pattern, .. } in KEYS.iter().chain(INSIDE) {
            let hir = regex_syntax::parse(pattern).expect("a pattern");
            assert!(has_only_characters_of_keys(&hir), "{pattern} has more; see `is_of_a_key`");
        }
    }
}
