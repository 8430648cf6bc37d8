//! Places where a secret stands, whatever it looks like: addresses, headers, statements, attributes.
//!
//! No pattern goes over the end of a line.

use super::rules::{
    Rule,
    Value::{Always, Columns, If, IfNamed, Members, Pairs},
    behind_its_flag, behind_its_name, chosen, chosen_and_no_count, chosen_and_no_test, cookie, credential,
    names_a_user, no_instruction, no_reference, no_sentence, no_stand_in, password_of_url, random, rule,
    second_of_a_pair, told_in_prose,
};

/// Whether a line may have an address with a password in it.
fn has_an_at(line: &str) -> bool {
    line.contains('@')
}

/// Programs that read a secret from their input, and flags that make them.
const LOGINS: &[&str] =
    &["--password-stdin", "--passphrase-fd", "--with-token", "--stdin", "sudo", "cryptsetup", "kinit", "vault"];

/// Places where a secret stands, whatever it looks like.
pub(super) const PLACES: &[Rule] = &[
    // As the console hands them out: both in one line.
    rule(
        "aws-secret-key",
        &["[REDACTED:aws-access-key]"],
        r#"\[REDACTED:aws-access-key\]\\*["']?(?:[,:;|/\t ]|\\+t){1,3}(?:[0-9TZ:.+-]{16,40}(?:[ \t]|\\+t)+)?\\*["']?(?P<secret>[A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=\n]|(?m:$))"#,
        Always,
    ),
    rule(
        "aws-session-token",
        &["[REDACTED:aws-secret-key]"],
        r"\[REDACTED:aws-secret-key\](?:[ \t]|\\+t)+(?P<secret>[A-Za-z0-9/+=]{24,})",
        If(random),
    ),
    rule(
        "azure-key",
        &["rimary", "econdary"],
        concat!(
            r"(?i)(?:primary|secondary)_?(?:readonly_?)?(?:master_?|access_?|shared_?)?key",
            r#"\\*["']?[ \t]*[:=][ \t]*\\*["']?(?P<secret>[A-Za-z0-9+/]{40,}={1,2})"#
        ),
        Always,
    )
    .needing(|line| line.contains('=')),
    // 64 bytes: the keys of a storage account.
    rule(
        "azure-key",
        &["alue"],
        r#"(?i)value\\*["']?[ \t]*:[ \t]*\\*["']?(?P<secret>[A-Za-z0-9+/]{86}==)"#,
        Always,
    )
    .needing(|line| line.contains("==")),
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
    )
    .needing(has_an_at),
    rule("url-password", &["://"], r#"://[^\s:/?#@"'`<>]*:(?P<secret>[^\s/?#"'`<>]+)@"#, If(password_of_url))
        .needing(has_an_at),
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
    rule(
        "secret",
        &["password"],
        r#"(?:login|machine)[ \t]+\S+[ \t]+password[ \t]+(?P<secret>[^\s\x22'\\]+)"#,
        If(no_reference),
    ),
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
    )
    .needing(|line| line.contains('\'')),
    rule(
        "secret",
        &["ConvertTo-SecureString"],
        concat!(
            r"ConvertTo-SecureString[ \t]+(?:-String[ \t]+)?",
            r#"(?:\\*"(?P<double>[^"\\\n]+)\\*"|\\*'(?P<single>[^'\\\n]+)\\*'|(?P<secret>[^\s"'\\$(-][^\s"'\\]*)[ \t]+-AsPlainText)"#
        ),
        If(no_reference),
    ),
    rule(
        "secret",
        &["--"],
        concat!(
            r"(?i)(?P<name>--(?:[a-z0-9]+-)*(?:password|passwd|pass|passphrase|token|secret|api-?key|access-key|secret-key|private-key|auth-key|key))",
            r#"(?P<between>\\*["'],[ \t]*\\*["']|=|[ \t]+)\\*["']?(?P<secret>[^\s"'\\-][^\s"'\\]*)"#
        ),
        IfNamed(behind_its_flag),
    ),
    rule(
        "secret",
        &["set ", "setx ", "setenv "],
        concat!(
            r"(?-u:\b)set(?:x|env)?[ \t]+(?:-[a-zA-Z]+[ \t]+|--[a-z-]+[ \t]+)*\\*[\x22']?(?P<name>[A-Za-z0-9_.:/-]*(?i:password|passwd|secret|token|_key))\\*[\x22']?[ \t]+",
            r#"\\*["']?(?P<secret>[^\s"'\\=<>][^\s"'\\]*)"#
        ),
        IfNamed(behind_its_name),
    ),
    rule(
        "secret",
        &["</"],
        r"(?i)<(?P<name>[a-z0-9_.:-]*(?:passw(?:or)?d|passphrase|pwd|secret|token|(?:api|access|secret)[_-]?key))(?:[ \t][^<>\n]*)?>(?P<secret>[^<>\s][^<>\n]*)</",
        IfNamed(behind_its_name),
    ),
    rule(
        "secret",
        &["value=", "Value="],
        r#"(?i)(?:key|name)=\\*["'](?P<name>[a-z0-9_.:-]*(?:passw(?:or)?d|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key)[a-z0-9_.:-]*)\\*["'][ \t]+value=\\*["'](?P<secret>[^"'\\\n]+)"#,
        IfNamed(behind_its_name),
    ),
    // A phrase has blanks: it goes to the end of its clause.
    rule(
        "secret",
        &["hrase", "HRASE"],
        concat!(
            r"(?i)(?-u:\b)(?P<name>pass[ -]?phrase)(?:[ \t]+(?:for|of|to|für)[ \t]+[a-z0-9_.@-]+)?",
            r#"(?:[ \t]*[:=][ \t]*|[ \t]+(?:is|ist|was|lautet)[ \t]*:?[ \t]*)["'`*]{0,2}"#,
            r"(?P<secret>[a-z0-9äöüß_-]+(?:[ \t]+[a-z0-9äöüß_-]+){3,})"
        ),
        If(no_instruction),
    ),
    rule(
        "secret",
        &["ass", "ecret", "oken", "key"],
        concat!(
            r"(?i)(?P<name>password|passwort|passphrase|passcode|secret|token|api[ -]key)(?:[ \t]+(?:for|of|to|für)[ \t]+[a-z0-9_.@-]+)?",
            r#"[ \t]+(?:is|ist|was|lautet|will be|provided)[ \t]*:?[ \t]*(?P<quote>["'`*]{0,2})(?P<secret>[^\s"'`*,;()\[\]]+)"#
        ),
        If(told_in_prose),
    )
    .needing(|line| line.bytes().any(|byte| byte.is_ascii_digit())),
    // Text that is piped into a program that reads a secret.
    rule(
        "secret",
        LOGINS,
        concat!(
            r"(?:echo|printf)[ \t]+(?:-[neE]+[ \t]+)*(?:\\*['\x22]?%s(?:\\+n)?\\*['\x22]?[ \t]+)?",
            r#"(?:\\*"(?P<double>[^"\\\n|]+)(?:\\+n)?\\*"|\\*'(?P<single>[^'\\\n|]+)(?:\\+n)?\\*'|(?P<secret>[^\s"'\\|;&$-][^\s"'\\|;&]*))"#,
            r"[ \t]*\|[ \t]*[^\n|]*?(?:--password-stdin|--passphrase-fd[ =]0|--with-token|--stdin(?-u:\b)",
            r"|(?-u:\b)sudo[ \t][^\n|]*?-[A-Za-z]*S(?-u:\b)|(?-u:\b)cryptsetup[ \t]|(?-u:\b)kinit(?-u:\b)|(?-u:\b)vault[ \t]+login[^\n|]*?-)"
        ),
        If(no_stand_in),
    ),
    rule(
        "secret",
        LOGINS,
        concat!(
            r"(?:--password-stdin|--with-token|sudo[ \t][^\n|]*?-[A-Za-z]*S(?-u:\b)|cryptsetup[ \t]|kinit(?-u:\b)|vault[ \t]+login)",
            r#"[^\n|]*?<<<[ \t]*(?:\\*"(?P<double>[^"\\\n]+)|\\*'(?P<single>[^'\\\n]+)|(?P<secret>[^\s"'\\|;&]+))"#
        ),
        If(no_stand_in),
    ),
    rule(
        "secret",
        &["send "],
        r#"(?-u:\b)send[ \t]+(?:--[ \t]+)?\\*["'](?P<secret>[^\s"'\\]{6,})\\+r\\*["']"#,
        If(chosen),
    ),
    rule(
        "secret",
        &["net use"],
        r#"net use[ \t]+(?:[A-Za-z*]:?[ \t]+)?\\\\[^\s"']+[ \t]+(?P<secret>[^\s"'/*\\][^\s"'\\]*)"#,
        If(no_stand_in),
    ),
    rule("url-token", &["@"], r"(?i)https?://(?P<secret>[A-Za-z0-9_-]{16,})@", If(random)),
    // Two members of an object, in either order, with a few short ones between them.
    rule(
        "secret",
        &["alue", "efault"],
        concat!(
            r#"(?i)(?:name|key|variable|parameter|field|label)\\*["']?[ \t]*:[ \t]*\\*["']?(?P<name>[a-z0-9_.-]{3,80})\\*["']?[ \t]*,"#,
            r#"(?:[^\n{}\[\]]{0,200}?,)??[ \t]*\\*["']?(?:parameter)?(?:value|default|defaultvalue)\\*["']?[ \t]*:[ \t]*"#,
            r#"(?:\\*"(?P<double>[^"\\\n]+)|\\*'(?P<single>[^'\\\n]+)|(?P<secret>[^\s"'\\,{}\[\]]+))"#
        ),
        IfNamed(behind_its_name),
    )
    .needing(|line| line.contains(':')),
    rule(
        "secret",
        &["alue", "efault"],
        concat!(
            r#"(?i)(?:value|default)\\*["']?[ \t]*:[ \t]*\\*["'](?P<secret>[^"'\\\n]+)\\*["'][ \t]*,[ \t]*"#,
            r#"\\*["'](?:name|key|variable|parameterkey)\\*["'][ \t]*:[ \t]*\\*["'](?P<name>[a-z0-9_.-]{3,80})\\*["']"#
        ),
        IfNamed(behind_its_name),
    )
    .needing(|line| line.contains(':')),
    rule(
        "secret",
        &["alue", "efault"],
        concat!(
            r#"(?i)(?P<name>[a-z0-9_.-]{3,80})\\*["']?[ \t]*[:=]?[ \t]*\{(?:[^\n{}\[\]]{0,80}?,)??[ \t]*\\*["']?(?:value|default|defaultvalue)\\*["']?[ \t]*[:=][ \t]*"#,
            r#"\\*["'](?P<secret>[^"'\\\n]+)"#
        ),
        IfNamed(behind_its_name),
    )
    .needing(|line| line.contains('{')),
    rule(
        "secret",
        &["define("],
        r#"define\([ \t]*\\*["'](?P<name>[A-Za-z0-9_.-]+)\\*["'],[ \t]*\\*["'](?P<secret>[^"'\\\n]+)"#,
        IfNamed(behind_its_name),
    ),
    rule(
        "private-key",
        &["key-data"],
        r#"client-key-data\\*["']?[ \t]*:[ \t]*\\*["']?(?P<secret>[A-Za-z0-9+/]{16,}={0,2})"#,
        Always,
    ),
    rule(
        "secret",
        &["env ", "ENV "],
        concat!(
            r#"(?m)(?:^|\\n|["'])[ \t]*(?i:env)[ \t]+(?P<name>[A-Za-z0-9_]*(?i:pass|pwd|secret|token|key)[A-Za-z0-9_]*)[ \t]+"#,
            r#"\\*["']?(?P<secret>[^\s"'\\=][^\s"'\\]*)\\*["']?[ \t]*(?:$|\r|\\+[nr]|["'])"#
        ),
        IfNamed(behind_its_name),
    ),
    rule(
        "secret",
        &["</key>"],
        r"<key>(?P<name>[^<>\n]{3,80})</key>[ \t]*<string>(?P<secret>[^<>\n]+)</string>",
        IfNamed(behind_its_name),
    ),
    rule(
        "secret",
        &["variable"],
        r#"variable[ \t]+\\*["'](?P<name>[A-Za-z0-9_.-]+)\\*["'][ \t]*\{[^\n{}]*?default[ \t]*=[ \t]*\\*["'](?P<secret>[^"'\\\n]+)"#,
        IfNamed(behind_its_name),
    ),
    rule("secret", &["sensitive_values"], r#"sensitive_values\\*["'][ \t]*:[ \t]*\{(?P<secret>[^\n{}]+)\}"#, Members),
    rule(
        "secret",
        &["uth=(", "uth = (", "Auth(", "asic_auth("],
        concat!(
            r#"(?:(?i:auth)[ \t]*=[ \t]*\(|(?:Basic|Digest)Auth\(|basic_auth\()[ \t]*"#,
            r#"(?:\\*["'][^"'\\\n]*\\*["']|&?[A-Za-z_][A-Za-z0-9_.]*),[ \t]*(?:Some\()?"#,
            r#"(?:\\*["'](?P<secret>[^"'\\\n]{6,})\\*["']|(?P<bare>[^\s"'\\()\[\],.]{6,})\))"#
        ),
        If(second_of_a_pair),
    ),
    // Plans of terraform: the old value, and the new one.
    rule(
        "secret",
        &["\" ->", "\\\" ->"],
        r#"(?P<name>[A-Za-z0-9_.-]{3,80})\\*["']?[ \t]*[:=][ \t]*\\*"[^"\\\n]*\\*"[ \t]*->[ \t]*\\*"(?P<secret>[^"\\\n]+)"#,
        IfNamed(behind_its_name),
    ),
    rule("secret", &["::add-mask::"], r#"::add-mask::(?P<secret>[^\s"'\\]+)"#, If(no_reference)),
    rule(
        "secret",
        &["Password ", "ApiKey ", "Token ", "Secret "],
        concat!(
            r"[ \t](?P<name>-(?:[A-Z][A-Za-z]*)?(?:Password|ApiKey|Token|Secret))(?P<between>[ \t]+)",
            r#"(?:\\*"(?P<double>[^"\\\n]+)|\\*'(?P<single>[^'\\\n]+)|(?P<secret>[^\s"'\\$(@\[<-][^\s"'\\]*))"#
        ),
        IfNamed(behind_its_flag),
    ),
    rule(
        "secret",
        &["nseal ", "NSEAL ", "ecovery "],
        r"(?i)(?:unseal|recovery) key[ \t]*[0-9]*[ \t]*:[ \t]*(?P<secret>[A-Za-z0-9+/]{24,}={0,2})",
        If(random),
    ),
    // Of rclone, which writes passwords in a form of base 64.
    rule(
        "secret",
        &["pass ="],
        r#"(?m)(?:^|\\n)[ \t]*pass =[ \t]*(?P<secret>[A-Za-z0-9_-]{20,})[ \t]*(?:$|\r|\\+[nr]|["'])"#,
        If(random),
    ),
    rule(
        "secret",
        &["add-authtoken ", "authtoken "],
        r"ngrok[ \t]+(?:config[ \t]+add-)?authtoken[ \t]+(?P<secret>[A-Za-z0-9_]{20,})",
        If(random),
    ),
    // A person tells them in passing: "the pw is …", "log in as root with …", "creds are bob/…".
    rule(
        "secret",
        &["pw ", "PW ", "pwd ", "phrase "],
        concat!(
            r"\b(?P<name>pw|PW|pwd|passphrase) (?:(?:for|of|to|für)[ \t]+(?:the[ \t]+)?[a-z0-9_.@-]+[ \t]+)?(?:is|ist|was)[ \t]+",
            r#"["'`]?(?P<secret>[^\s"'`,;()\[\]]+)"#
        ),
        If(told_in_prose),
    )
    .needing(|line| line.bytes().any(|byte| byte.is_ascii_digit())),
    rule(
        "secret",
        &["pass: "],
        r#"user(?:name)?:[ \t]*[^\s,;.]+[ \t,;]+pass: ["'`]?(?P<secret>[^\s"'`,;.()\[\]]+)"#,
        If(told_in_prose),
    ),
    rule(
        "secret",
        &["ogin is ", "og in as ", "reds are ", "entials are "],
        concat!(
            r"\b(?:[Ll]ogin is|[Ll]og in as|[Cc]reds are|[Cc]redentials are) [A-Za-z0-9_.@-]+[ \t]*(?:/|with|and|pass:)[ \t]*",
            r#"["'`]?(?P<secret>[^\s"'`,;()\[\]]+)"#
        ),
        If(told_in_prose),
    ),
    rule(
        "secret",
        &["emporary password"],
        r"(?i)temporary password is generated for [^\s:]+:[ \t]*(?P<secret>[^\s\\\x22]+)",
        If(no_stand_in),
    ),
    rule(
        "secret",
        &["assword for "],
        r#"(?i)password for (?:user )?[^\s:,;]+:[ \t]+\\*["'`]?(?P<secret>[^\s"'`*,;()\[\]\\]+)"#,
        If(told_in_prose),
    ),
    rule(
        "secret",
        &["requirepass ", "masterauth "],
        r#"(?:requirepass|masterauth)[ \t]+\\*["']?(?P<secret>[^\s"'\\]{6,})"#,
        If(chosen),
    ),
    rule(
        "secret",
        &["stats auth "],
        r#"stats auth[ \t]+[^\s:"']+:(?P<secret>[^\s"'\\]+)"#,
        If(no_stand_in),
    ),
    rule(
        "secret",
        &["net user "],
        r#"net user[ \t]+[^\s/"']+[ \t]+(?P<secret>[^\s/"'*\\][^\s"'\\]{5,})"#,
        If(chosen),
    ),
    rule(
        "secret",
        &["http-basic."],
        r#"http-basic\.[^\s"']+[ \t]+[^\s"']+[ \t]+\\*["']?(?P<secret>[^\s"'\\<-][^\s"'\\]*)"#,
        If(no_stand_in),
    ),
    rule(
        "secret",
        &["] => "],
        r"(?m)(?:^|\\n|[ \t]|\\t)\[(?P<name>[A-Za-z0-9_]+)\] => (?P<secret>[^\s\x22'\\(){}\[\]]+)[ \t]*(?:$|\r|\\+[nr]|\x22)",
        IfNamed(behind_its_name),
    ),
    rule(
        "secret",
        &["alue="],
        r#"(?i)type=\\*["']password\\*["'][^<>\n]*?[ \t]value=\\*["'](?P<secret>[^"'\\\n]+)"#,
        If(no_stand_in),
    )
    .needing(|line| line.contains("password")),
    rule(
        "password-hash",
        &["assword:", "Password:", "PASSWORD:", "RootPW:", "rootpw:"],
        concat!(
            r"(?i)(?:userpassword|olcrootpw|rootpw):(?::[ \t]+(?P<secret>[A-Za-z0-9+/]{8,}={0,2})",
            r"|[ \t]+(?P<single>\{(?:S?SHA[0-9]*|S?MD5|CRYPT|PBKDF2[A-Z0-9-]*|ARGON2)\}[^\s\\\x22']{8,}))"
        ),
        Always,
    ),
    rule(
        "secret",
        &[" /d "],
        r#"/v[ \t]+\\*"?(?P<name>[A-Za-z0-9_.-]+)\\*"?[ \t]+(?:/t[ \t]+[A-Za-z_]+[ \t]+)?/d[ \t]+\\*"?(?P<secret>[^\s"'\\]+)"#,
        IfNamed(behind_its_name),
    ),
    rule(
        "secret",
        &["<Value>"],
        r"<(?:[A-Za-z]+)?Password>[ \t]*<Value>(?P<secret>[^<>\n]+)</Value>",
        If(no_stand_in),
    ),
    rule(
        "secret",
        &["pass:", "pass\"", "pass'", "pass\\"],
        concat!(
            r#"(?i)user(?:name)?\\*["']?[ \t]*:[ \t]*\\*["'][^"'\\\n]*\\*["'],[ \t]*"#,
            r#"\\*["']?pass\\*["']?[ \t]*:[ \t]*\\*["'](?P<secret>[^"'\\\n]{4,})"#
        ),
        If(no_stand_in),
    ),
    // A private key as JSON, on one line.
    rule(
        "private-key",
        &["kty"],
        concat!(
            r#"\{(?:(?P<secret>[^{}\n]*\\*"kty\\*"[^{}\n]*\\*"d\\*"[ \t]*:[^{}\n]*)"#,
            r#"|(?P<single>[^{}\n]*\\*"d\\*"[ \t]*:[^{}\n]*\\*"kty\\*"[^{}\n]*))\}"#
        ),
        Members,
    ),
    // A row of a cookie jar, as curl and browsers write it.
    rule(
        "cookie",
        &["\tTRUE\t", "\tFALSE\t", "\\tTRUE\\t", "\\tFALSE\\t"],
        concat!(
            r"(?:\t|\\+t)(?:TRUE|FALSE)(?:\t|\\+t)/[^\s\\]*(?:\t|\\+t)(?:TRUE|FALSE)(?:\t|\\+t)[0-9]+(?:\t|\\+t)",
            r"(?P<name>[^\s\\]+)(?:\t|\\+t)(?P<secret>[^\s\x22'\\]+)"
        ),
        If(cookie),
    ),
    rule(
        "cookie",
        &["omain"],
        concat!(
            r#"name\\*["'][ \t]*:[ \t]*\\*["'](?P<name>[A-Za-z0-9_.%$-]+)\\*["'],[ \t]*"#,
            r#"\\*["']value\\*["'][ \t]*:[ \t]*\\*["'](?P<secret>[^"'\\\n]+)\\*["'],[ \t]*\\*["']domain"#
        ),
        If(cookie),
    ),
    rule(
        "cookie",
        &["ookies"],
        r#"(?i)cookies\\*["']?[ \t]*[:=][ \t]*\{[ \t]*\\*["'](?P<name>[A-Za-z0-9_.%$-]+)\\*["'][ \t]*:[ \t]*\\*["'](?P<secret>[^"'\\\n]+)"#,
        If(cookie),
    ),
    rule(
        "secret",
        &["login(", "auth(", "authenticate("],
        concat!(
            r#"\.(?:login|auth|authenticate)\([ \t]*\\*["'][^"'\\\n]+\\*["'],[ \t]*"#,
            r#"\\*["'](?P<secret>[^\s"'\\\n/]{6,})\\*["'][ \t]*\)"#
        ),
        If(chosen),
    ),
    // Variables whose names tell less than those of passwords do.
    rule(
        "secret",
        &["_AUTH=", "_PAT=", "_SALT=", "_AUTH: ", "_PAT: ", "_SALT: "],
        r#"[A-Z0-9]_(?:AUTH|PAT|SALT)(?:=|: )\\*["']?(?P<secret>[^\s"'\\]{16,})"#,
        If(random),
    ),
    rule(
        "password-hash",
        &["$2a$", "$2b$", "$2y$", "$argon2", "pbkdf2_sha"],
        concat!(
            r"(?P<secret>\$2[aby]\$[0-9]{2}\$[A-Za-z0-9./]{53}",
            r"|\$argon2(?:id?|d)\$v=[0-9]+\$m=[0-9]+,t=[0-9]+,p=[0-9]+\$[A-Za-z0-9+/]{8,}\$[A-Za-z0-9+/]{16,}",
            r"|pbkdf2_sha(?:1|256|512)\$[0-9]+\$[A-Za-z0-9+/=]{4,}\$[A-Za-z0-9+/=]{20,})"
        ),
        Always,
    ),
    rule(
        "secret",
        &["nsert into ", "eplace into "],
        r"(?i)(?:insert|replace) into [^\s()]+[ \t]*\((?P<columns>[^()\n]+)\)[ \t]*values[ \t]*(?P<secret>\([^\n]+)",
        Columns,
    ),
    // Two underscores stand for the point in the name of a host.
    rule(
        "secret",
        &["BUNDLE_"],
        r#"BUNDLE_[A-Z0-9_]*__[A-Z0-9_]*\\*["']?(?:[ \t]*:[ \t]+|=)\\*["']?[^\s:"'\\/]+:(?P<secret>[^\s"'\\/][^\s"'\\]*)"#,
        If(no_stand_in),
    ),
    rule(
        "secret",
        &["bundle config"],
        concat!(
            r"bundle config[ \t]+(?:set[ \t]+)?(?:--(?:global|local)[ \t]+)*(?:https?://)?[a-z0-9-]+(?:\.[a-z0-9-]+)+/?[ \t]+",
            r#"\\*["']?[^\s:"'\\/]+:(?P<secret>[^\s"'\\/][^\s"'\\]*)"#
        ),
        If(no_stand_in),
    ),
    rule(
        "mnemonic",
        &["nemonic", "NEMONIC", "hrase", "HRASE", "eed words", "ery words"],
        concat!(
            r#"(?i:mnemonic|(?:seed|recovery|backup|wallet)[ _-]?(?:phrase|words))\\*["'`*]{0,2}[ \t]*(?:[:=]|is|are|ist)[ \t]*"#,
            r#"\\*["'`*]{0,2}(?P<secret>[a-z]{3,8}(?:[ \t]+[a-z]{3,8}){11,23})(?-u:\b)"#
        ),
        If(no_sentence),
    ),
    rule(
        "secret",
        &["pass=", "pw=", "PASS=", "PW="],
        r#"(?i)(?:[ \t,;&?(]|\\+[nrt])(?:pass|pw)=\\*["']?(?P<secret>[^\s"'\\,;&()]{6,})"#,
        If(chosen_and_no_count),
    ),
    // A line of its own: after `pass` there may be a result of a test.
    rule(
        "secret",
        &["pass:", "pass=", "Pass:", "PASS=", "PASS:", "pw:", "pw=", "PW:", "PW="],
        r#"(?im)(?:^|\\n|["'])[ \t]*(?:(?P<verdict>(?-i:PASS):[ \t])|(?:pass|pw)[:=])[ \t]*\\*["'`]?(?P<secret>[^\s"'`\\,;:]+)\\*["'`]?[ \t]*(?:$|\r|\\+[nr]|["'])"#,
        If(chosen_and_no_test),
    ),
];
