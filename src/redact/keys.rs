//! The key formats of issuers: text that is a secret wherever it stands.
//!
//! No pattern goes over the end of a line.

use super::rules::{
    Rule,
    Value::{Always, If},
    key, random, rule,
};

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
    key("runpod-key", r"rpa_[A-Za-z0-9]{36,}", If(random)),
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

/// Keys that are known even inside of a word: the beginning is rare, and the rest is long.
pub(super) const INSIDE: &[Rule] = &[
    key("anthropic-key", r"sk-ant-(?:api|oat|sid|admin)[0-9]{2}-[A-Za-z0-9_-]{32,}", Always),
    key("openai-key", r"sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{32,}", If(random)),
    key("github-token", r"(?:gh[opsur]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{50,})", If(random)),
    key("gitlab-token", r"gl(?:pat|dt|rt|cbt|ptt|ft)-[A-Za-z0-9_-]{20,}", If(random)),
    key("slack-token", r"xox[abceoprs]-[0-9]{8,}-[A-Za-z0-9-]{16,}", Always),
    key("aws-access-key", r"(?:AKIA|ASIA)[A-Z0-9]{16}(?-u:\b)", If(random)),
    key("stripe-key", r"(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{20,}", If(random)),
    key("npm-token", r"npm_[A-Za-z0-9]{36}(?-u:\b)", If(random)),
    key("pypi-token", r"pypi-AgEI[A-Za-z0-9_-]{32,}", Always),
    key("docker-token", r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}", Always),
    key("sendgrid-key", r"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}(?-u:\b)", If(random)),
    key("digitalocean-token", r"do[opr]_v1_[a-f0-9]{64}", Always),
    key("shopify-token", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}", Always),
    key("vault-token", r"hv[sbr]\.[A-Za-z0-9_-]{24,}", If(random)),
    key("jwt", r"eyJhbGciOi[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{16,}", Always),
];
