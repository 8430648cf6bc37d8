//! Secrets that are none, one of each kind and the place it stands in. Each is put together at run time from parts, so
//! that nobody who looks for secrets in this repository takes one for real.

/// A planted secret.
#[derive(Debug, Clone)]
pub struct Canary {
    /// Kind in the placeholder.
    pub kind: &'static str,
    /// One or a few lines, as they stand in a terminal or a file.
    pub text: String,
    /// Text that must not appear again.
    pub secret: String,
}

/// Characters that look random and are the same for the same seed.
fn noise(seed: u64, length: usize, of: &str) -> String {
    let of = of.as_bytes();
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let char = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(of[(state >> 20) as usize % of.len()])
    };
    (0..length).map(char).collect()
}

fn mixed(seed: u64, length: usize) -> String {
    // No word of it is without a digit.
    let text = noise(seed, length, "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghjkmnpqrstuvwxyz23456789");
    text.char_indices().map(|(at, char)| if at % 7 == 3 { '4' } else { char }).collect()
}

fn hex(seed: u64, length: usize) -> String {
    noise(seed, length, "0123456789abcdef")
}

fn upper(seed: u64, length: usize) -> String {
    noise(seed, length, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
}

fn small(seed: u64, length: usize) -> String {
    noise(seed, length, "abcdefghijklmnopqrstuvwxyz0123456789")
}

/// Lines as they stand in a key's file.
fn body(seed: u64) -> String {
    [mixed(seed, 64), mixed(seed + 1, 64), mixed(seed + 2, 40)].join("\n")
}

fn armored(what: &str, seed: u64) -> String {
    let key = ["PRIVATE", "KEY"].join(" ");
    format!("-----BEGIN {what}{key}-----\n{}\n-----END {what}{key}-----", body(seed))
}

/// The canaries, the issuers' keys first.
#[must_use]
pub fn canaries() -> Vec<Canary> {
    let mut all: Vec<Canary> = Vec::new();
    all.extend(keys());
    all.extend(places());
    all.extend(named());
    all.extend(blocks());
    all
}

/// Keys that are known wherever they stand, each in another place.
fn keys() -> Vec<Canary> {
    let parts = |parts: &[&str]| parts.concat();
    let keys = vec![
        ("openai-key", parts(&["sk", "-proj-", &mixed(1, 48)])),
        ("openai-key", parts(&["sk", "-svcacct-", &mixed(2, 48)])),
        ("openai-key", parts(&["sk", "-admin-", &mixed(3, 48)])),
        ("openai-key", parts(&["sk", "-", &mixed(4, 48)])),
        ("anthropic-key", parts(&["sk", "-ant-", "api03-", &mixed(5, 90)])),
        ("anthropic-key", parts(&["sk", "-ant-", "oat01-", &mixed(6, 90)])),
        ("anthropic-key", parts(&["sk", "-ant-", "sid01-", &mixed(7, 90)])),
        ("openrouter-key", parts(&["sk", "-or-v1-", &hex(8, 64)])),
        ("google-key", parts(&["AI", "za", &mixed(9, 35)])),
        ("google-key", parts(&["ya", "29.", &mixed(10, 60)])),
        ("google-key", parts(&["GOC", "SPX-", &mixed(11, 28)])),
        ("github-token", parts(&["gh", "p_", &mixed(12, 36)])),
        ("github-token", parts(&["gh", "s_", &mixed(13, 36)])),
        ("github-token", parts(&["github", "_pat_", &mixed(14, 22), "_", &mixed(15, 59)])),
        ("gitlab-token", parts(&["gl", "pat-", &mixed(16, 20)])),
        ("bitbucket-token", parts(&["AT", "BB", &mixed(17, 32)])),
        ("atlassian-token", parts(&["AT", "ATT3x", &mixed(18, 60)])),
        ("aws-access-key", parts(&["AK", "IA", &upper(19, 16)])),
        ("aws-access-key", parts(&["AS", "IA", &upper(20, 16)])),
        ("azure-secret", parts(&["aB3", "8Q", "~", &mixed(21, 34)])),
        ("slack-token", parts(&["xox", "b-123456789012-", &mixed(22, 24)])),
        ("slack-token", parts(&["xap", "p-1-A0123-", &mixed(23, 30)])),
        ("slack-webhook", parts(&["https://hooks.", "slack.com/services/T0/B0/", &mixed(24, 24)])),
        ("discord-token", parts(&["MTE", &mixed(25, 23), ".", &mixed(26, 6), ".", &mixed(27, 38)])),
        ("discord-webhook", parts(&["https://discord", ".com/api/webhooks/123456789012345678/", &mixed(28, 68)])),
        ("telegram-token", parts(&["123456789", ":AA", &mixed(29, 33)])),
        ("twilio-key", parts(&["S", "K", &hex(30, 32)])),
        ("sendgrid-key", parts(&["S", "G.", &mixed(31, 22), ".", &mixed(32, 43)])),
        ("mailgun-key", parts(&["ke", "y-", &hex(33, 32)])),
        ("mailchimp-key", parts(&[&hex(34, 32), "-u", "s12"])),
        ("stripe-key", parts(&["sk", "_live_", &mixed(35, 24)])),
        ("stripe-key", parts(&["wh", "sec_", &mixed(36, 32)])),
        ("square-token", parts(&["sq0", "csp-", &mixed(37, 43)])),
        ("shopify-token", parts(&["shp", "at_", &hex(38, 32)])),
        ("braintree-token", parts(&["access", "_token$production$", &small(39, 16), "$", &hex(40, 32)])),
        ("npm-token", parts(&["np", "m_", &mixed(41, 36)])),
        ("pypi-token", parts(&["py", "pi-AgEIcHlwaS5vcmc", &mixed(42, 70)])),
        ("rubygems-key", parts(&["ruby", "gems_", &hex(43, 48)])),
        ("crates-token", parts(&["ci", "o", &mixed(44, 32)])),
        ("nuget-key", parts(&["oy", "2", &small(45, 43)])),
        ("docker-token", parts(&["dckr", "_pat_", &mixed(46, 27)])),
        ("huggingface-token", parts(&["h", "f_", &mixed(47, 34)])),
        ("replicate-token", parts(&["r", "8_", &mixed(48, 37)])),
        ("groq-key", parts(&["gs", "k_", &mixed(49, 52)])),
        ("xai-key", parts(&["xa", "i-", &mixed(50, 80)])),
        ("perplexity-key", parts(&["pp", "lx-", &mixed(51, 48)])),
        ("notion-token", parts(&["nt", "n_", &mixed(52, 46)])),
        ("linear-key", parts(&["lin", "_api_", &mixed(53, 40)])),
        ("asana-token", parts(&["2/12012345678901", "/1201234567890123", ":", &hex(54, 32)])),
        ("digitalocean-token", parts(&["do", "p_v1_", &hex(55, 64)])),
        ("heroku-key", parts(&["HR", "KU-", &mixed(56, 60)])),
        ("vercel-token", parts(&["vercel", "_blob_rw_", &mixed(57, 40)])),
        ("netlify-token", parts(&["nf", "p_", &mixed(58, 36)])),
        ("supabase-key", parts(&["sb", "p_", &hex(59, 40)])),
        ("planetscale-token", parts(&["pscale", "_tkn_", &mixed(60, 43)])),
        ("databricks-token", parts(&["da", "pi", &hex(61, 32)])),
        ("newrelic-key", parts(&["NR", "AK-", &upper(62, 27)])),
        ("sentry-token", parts(&["sntr", "ys_", &mixed(63, 80)])),
        ("grafana-token", parts(&["gl", "sa_", &mixed(64, 32), "_", &hex(65, 8)])),
        ("vault-token", parts(&["hv", "s.", &mixed(66, 24)])),
        ("terraform-token", parts(&[&mixed(67, 14), ".atlas", "v1.", &mixed(68, 67)])),
        ("doppler-token", parts(&["dp", ".pt.", &mixed(69, 43)])),
        ("1password-token", parts(&["op", "s_eyJ", &mixed(70, 80)])),
        ("age-key", parts(&["AGE-SECRET", "-KEY-1", &upper(71, 58)])),
        ("airtable-token", parts(&["pa", "t", &mixed(72, 14), ".", &hex(73, 64)])),
        ("figma-token", parts(&["fig", "d_", &mixed(74, 40)])),
        ("tailscale-key", parts(&["ts", "key-auth-", &mixed(75, 12), "-", &mixed(76, 32)])),
        ("jwt", parts(&["ey", "JhbGciOiJIUzI1NiJ9.", "eyJzdWIiOiIx", &mixed(77, 20), ".", &mixed(78, 43)])),
    ];
    let standing = |(at, (kind, secret)): (usize, (&'static str, String))| {
        let text = match at % 8 {
            0 => format!("please use {secret} for now"),
            1 => format!("+    client = Client(\"{secret}\")"),
            2 => format!("\"env\": {{\"X\": \"{secret}\"}}"),
            3 => format!("the log says\\n{secret}\\nand goes on"),
            4 => format!("\u{1b}[32m{secret}\u{1b}[0m ok"),
            5 => format!("https://api.example.com/v1?k%3D{secret}&page=2"),
            6 => format!("| prod | `{secret}` |"),
            _ => format!("- {secret}."),
        };
        Canary { kind, text, secret }
    };
    keys.into_iter().enumerate().map(standing).collect()
}

/// Secrets that a place makes one. What stands around each is what a person would see.
fn places() -> Vec<Canary> {
    let pass = |seed: u64| format!("Tr0ub4dor{}", mixed(seed, 8));
    let key44 = |seed: u64| format!("{}=", mixed(seed, 43));
    // `ops:hunter2…` in base 64.
    let basic = ["b3Bz", "Omh1", "bnRlcjJodW50ZXIy"].concat();
    let pair = format!("deploy,{}IA{},", "AK", upper(134, 16));
    let secrets: Vec<(&'static str, &str, &str, String)> = vec![
        ("aws-secret-key", &pair, "", mixed(102, 40)),
        (
            "azure-key",
            "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=",
            ";EndpointSuffix=core.windows.net",
            format!("{}==", mixed(103, 86)),
        ),
        (
            "signed-url",
            "https://a.blob.core.windows.net/c/b?sv=2024&sp=r&sig=",
            "&se=2026",
            format!("{}%3D", mixed(104, 43)),
        ),
        ("signed-url", "GET https://b.s3.amazonaws.com/k?X-Amz-Expires=60&X-Amz-Signature=", " 200", hex(105, 64)),
        ("otp-secret", "otpauth://totp/ops:me?secret=", "&issuer=ops", upper(106, 32)),
        ("url-password", "DATABASE_URL=postgres://app:", "@db:5432/x", pass(107)),
        ("url-password", "redis://:", "@cache:6379/0", pass(108)),
        ("url-password", "mongodb+srv://app:", "@c0.example.net/x?retryWrites=true", format!("p%40{}", pass(109))),
        ("url-password", "git clone https://me:", "@git.example.com/a.git", pass(110)),
        ("url-password", "amqp://guest:", "@mq/vhost", format!("{}/{}", pass(111), mixed(112, 4))),
        (
            "url-password",
            "SENTRY_DSN=https://0123456789abcdef0123456789abcdef:",
            "@o1.ingest.sentry.io/2",
            hex(113, 32),
        ),
        ("url-password", "jdbc:oracle:thin:scott/", "@//db:1521/x", pass(114)),
        ("authorization", "Authorization: Bearer ", "", mixed(115, 40)),
        ("authorization", "curl -H 'X-Api-Key: ", "' https://x", mixed(116, 32)),
        ("authorization", "headers: {\\\"Authorization\\\": \\\"Token ", "\\\"}", mixed(117, 40)),
        ("bearer", "it works with bearer ", ", but slowly", mixed(118, 40)),
        ("basic-auth", "> Basic ", "", basic.clone()),
        ("basic-auth", "{\"auths\": {\"r.example.com\": {\"auth\": \"", "\"}}}", basic),
        ("cookie", "Cookie: theme=dark; session=", "; lang=de", mixed(119, 32)),
        ("cookie", "< Set-Cookie: connect.sid=", "; Path=/; HttpOnly", format!("s%3A{}", mixed(120, 40))),
        ("password-hash", "deploy:", "", format!("$2y$10${}", mixed(121, 53))),
        ("pgpass", "db.internal:5432:app:app:", "", pass(122)),
        ("secret", "curl -sS -u admin:", " https://jenkins.example.com/api/json", pass(123)),
        ("secret", "mysql -h db -uroot -p", " app < dump.sql", pass(124)),
        ("secret", "sshpass -p ", " ssh root@host", pass(125)),
        ("secret", "machine api.example.com login me password ", "", pass(126)),
        ("secret", "docker login -u me -p ", " registry.example.com", pass(127)),
        ("secret", "ALTER USER app WITH PASSWORD '", "';", pass(128)),
        ("secret", "<server><password>", "</password></server>", pass(129)),
        ("secret", "the password for staging is ", ", don't tell", pass(130)),
        ("secret", "./deploy --api-token ", " --dry-run", mixed(131, 30)),
        ("secret", "kubectl create secret generic x --from-literal=anything=", "", pass(132)),
        ("secret", "[Interface]\nPrivateKey = ", "\nAddress = 10.0.0.2/32", key44(133)),
    ];
    let canary = |(kind, before, after, secret): (&'static str, &str, &str, String)| Canary {
        kind,
        text: format!("{before}{secret}{after}"),
        secret,
    };
    secrets.into_iter().map(canary).collect()
}

/// Secrets that only their names give away, in the ways names are given.
fn named() -> Vec<Canary> {
    let names = [
        ("export COHERE_API_KEY=", ""),
        ("DD_API_KEY=\"", "\""),
        ("CLOUDFLARE_API_TOKEN: ", ""),
        ("docker run -e AWS_SECRET_ACCESS_KEY=", " app"),
        ("aws_session_token = ", ""),
        ("{\"SecretAccessKey\": \"", "\"}"),
        ("\"env\": {\"TWILIO_AUTH_TOKEN\": \"", "\"}"),
        ("jdbc:mysql://db/x?user=app&password=", "&ssl=true"),
        ("Server=db;User Id=sa;Password=", ";Encrypt=True"),
        ("os.environ[\"GH_TOKEN\"] = \"", "\""),
        ("const apiKey: string = '", "';"),
        ("$env:AZURE_CLIENT_SECRET = \"", "\""),
        ("{\\\"db_password\\\":\\\"", "\\\"}"),
        ("{\\\\\\\"client_secret\\\\\\\":\\\\\\\"", "\\\\\\\"}"),
        ("if password == \"", "\":"),
        ("    secretKeyBase: ", ""),
        ("cat .env\\nHEROKU_API_KEY=", "\\nPORT=80"),
        ("//registry.npmjs.org/:_authToken=", ""),
    ];
    let canary = |(at, (before, after)): (usize, &(&str, &str))| {
        let secret = mixed(200 + at as u64, 24);
        Canary { kind: "secret", text: format!("{before}{secret}{after}"), secret }
    };
    names.iter().enumerate().map(canary).collect()
}

/// Secrets over several lines.
fn blocks() -> Vec<Canary> {
    let key = |what: &str, seed: u64| {
        let text = armored(what, seed);
        (text, mixed(seed + 1, 64))
    };
    let mut all = Vec::new();
    for (at, what) in ["RSA ", "EC ", "OPENSSH ", ""].iter().enumerate() {
        let (text, secret) = key(what, 300 + 10 * at as u64);
        all.push(Canary { kind: "private-key", text: format!("cat key.pem\n{text}\n$"), secret });
    }
    let (text, secret) = key("", 350);
    let text = format!("{{\"type\": \"service_account\", \"private_key\": \"{}\\n\"}}", text.replace('\n', "\\n"));
    all.push(Canary { kind: "private-key", text, secret });
    let pgp = ["PGP", "PRIVATE", "KEY", "BLOCK"].join(" ");
    let text = format!("-----BEGIN {pgp}-----\n\n{}\n-----END {pgp}-----", body(360));
    all.push(Canary { kind: "private-key", text, secret: mixed(361, 64) });
    let secret = mixed(370, 24);
    let text =
        format!("apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\ndata:\n  anything: {secret}\ntype: Opaque");
    all.push(Canary { kind: "kubernetes-secret", text, secret });
    let secret = mixed(371, 24);
    let text = format!("env:\n  - name: DB_PASSWORD\n    value: {secret}\n  - name: PORT\n    value: \"80\"");
    all.push(Canary { kind: "secret", text, secret });
    let secret = mixed(372, 24);
    let text = format!("machine example.com\n  login me\n  password {secret}\nmachine other.example.com");
    all.push(Canary { kind: "secret", text, secret });
    all
}
