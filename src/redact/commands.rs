//! Secrets on command lines: the flags of programs that take one.

use super::{
    named::{is_random, is_stand_in},
    rules::secret_of,
};
use memchr::memmem;
use regex::{Captures, Regex};
use std::{collections::BTreeSet, ops::Range, sync::LazyLock};

/// How a flag and its value stand together.
#[derive(Debug, Clone, Copy)]
enum Form {
    /// `-P X`, `-P=X`
    Apart,
    /// `-pX`
    Glued,
    /// Both.
    Any,
    /// `-u name:X`, with this between the name and the secret.
    Behind(&'static str),
    /// `-u KEY:`, where the name is the secret.
    Name,
    /// The first argument is the secret.
    First,
    /// The argument after the first.
    Second,
}

use Form::{Any, Apart, Behind, First, Glued, Name, Second};

/// Programs, the flags of theirs that take a secret (a pattern), and the form.
const FLAGS: &[(&[&str], &str, Form)] = &[
    (&["curl"], "-[a-zA-Z]*[uU]|--user|--proxy-user", Behind(":")),
    (&["curl"], "-[a-zA-Z]*u|--user", Name),
    (&["http", "https"], "-a|--auth", Behind(":")),
    (&["7z a", "7z e", "7z l", "7z t", "7z u", "7z x", "7za", "7zr", "7zz", "rar", "unrar"], "-h?p", Glued),
    (&["zip", "unzip", "zipcloak"], "-P", Any),
    (&["sqlcmd", "osql", "bcp", "isql", "mosquitto_pub", "mosquitto_sub", "ipmitool"], "-P", Any),
    (&["mysql", "mysqldump", "mysqladmin", "mysqlimport", "mysqlshow", "mariadb", "mariadb-dump"], "-p", Glued),
    (&["mongo", "mongosh", "mongodump", "mongorestore", "mongoimport", "mongoexport"], "-p|--password", Any),
    (&["redis-cli"], "-a|--pass", Apart),
    (&["cqlsh"], "-p|--password", Apart),
    (&["influx"], "-password|--password", Apart),
    (&["sqlplus", "sqlldr", "expdp", "impdp"], "", Behind("/")),
    (&["keytool", "jarsigner", "apksigner"], "-(?:src|dest)?(?:storepass|keypass)", Apart),
    (&["openssl enc"], "-k", Apart),
    (&["sshpass"], "-p", Any),
    (
        &["docker login", "podman login", "buildah login", "skopeo login", "oras login", "nerdctl login"],
        "-p|--password",
        Any,
    ),
    (&["helm registry login", "az login"], "-p|--password", Any),
    (&["smbclient", "rpcclient", "smbmap"], "-U|--user", Behind("%")),
    (&["ldapsearch", "ldapadd", "ldapmodify", "ldapdelete", "ldappasswd", "ldapwhoami"], "-w", Any),
    (&["xfreerdp", "wfreerdp", "cmdkey"], "/p(?:ass)?:", Glued),
    (&["signtool sign"], "/p", Apart),
    (&["security unlock-keychain"], "-p", Any),
    (&["security add-generic-password", "security add-internet-password"], "-w", Any),
    (&["ssh-keygen"], "-[NP]", Apart),
    (&["twine upload"], "-p", Apart),
    (&["psexec"], "-p", Apart),
    (&["rabbitmqctl add_user", "rabbitmqctl change_password"], "", Second),
    (&["evil-winrm", "crackmapexec", "netexec", "nxc"], "-p|--password", Apart),
    (&["pscp", "psftp", "plink", "putty"], "-pw", Apart),
    (&["lftp"], "-u", Behind(",")),
    (&["snmpget", "snmpwalk", "snmpset", "snmpbulkwalk"], "-[AX]", Any),
    (&["wpa_passphrase"], "", Second),
    (&["nmcli"], "password", Apart),
    (&["rclone obscure"], "", First),
    (&["doctl auth init"], "-t|--access-token", Apart),
    (&["gh secret set"], "-b|--body", Apart),
];

/// A blank between arguments, or the end of a line that goes on, as it is or in a string of JSON, or what stands between
/// the members of a list.
const BLANK: &str = r"(?:[ \t]+|[ \t]*\\+\r?\n[ \t]*|[ \t]*(?:\\\\\\){1,2}n[ \t]*|\\*[\x22'],[ \t]*\\*[\x22'])";

/// An argument, in its quotes or without.
const ARGUMENT: &str =
    r#"(?:\\*"(?P<double>[^"\\\n]+)|\\*'(?P<single>[^'\\\n]+)|(?P<secret>[^\s"'\\;|&<>()-][^\s"'\\;|&<>()]*))"#;

struct Flag {
    programs: &'static [&'static str],
    pattern: Regex,
    form: Form,
}

static COMMANDS: LazyLock<Vec<Flag>> = LazyLock::new(|| {
    let flag = |(programs, flags, form): &(&'static [&'static str], &str, Form)| {
        let before = format!("{BLANK}(?:{flags})");
        let pattern = match form {
            Apart => format!("{before}(?:{BLANK}|=){ARGUMENT}"),
            Glued => format!("{before}{ARGUMENT}"),
            Any => format!("{before}(?:{BLANK}|=)?{ARGUMENT}"),
            Behind(what) => {
                let not = if *what == "/" { "@" } else { "" };
                let user = format!(r#"(?:\[REDACTED:[a-z0-9-]+\]|[^\s:"'\\/=@\[-][^\s:"'\\/={what}]*)"#);
                format!(r#"{before}(?:{BLANK}|=)?\\*["']?{user}{what}(?P<secret>[^\s"'\\/{not}]+)"#)
            }
            Name => format!(r#"{before}(?:{BLANK}|=)?\\*["']?(?P<secret>[A-Za-z0-9_-]{{16,}}):(?:[\s"'\\]|$)"#),
            First => format!("^{BLANK}{ARGUMENT}"),
            Second => format!(r#"^{BLANK}[^-\s;|&][^\s;|&]*{BLANK}{ARGUMENT}"#),
        };
        Flag { programs, pattern: Regex::new(&pattern).expect("the patterns are fixed and tested"), form: *form }
    };
    FLAGS.iter().map(flag).collect()
});

/// The names of programs. A search for nothing but text, of four bytes or more and at most 64 at a time, is many times
/// faster than a pattern.
static PROGRAMS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    const AT_A_TIME: usize = 48;
    let names = spaced_names();
    names.chunks(AT_A_TIME).map(|names| Regex::new(&names.join("|")).expect("the names are fixed and tested")).collect()
});

/// The names of programs as Windows has them, which may stand at the end of a quoted path.
static ON_WINDOWS: LazyLock<Regex> = LazyLock::new(|| {
    let name = |name: &str| match name.split_once(' ') {
        Some((program, command)) => format!(r#"{program}\.exe\\*["']? {command} "#),
        None => format!(r#"{name}\.exe\\*["']? "#),
    };
    let names: Vec<String> = names().iter().map(|it| name(it)).collect();
    Regex::new(&format!("(?i){}", names.join("|"))).expect("the names are fixed and tested")
});

fn names() -> BTreeSet<&'static str> {
    FLAGS.iter().flat_map(|(programs, ..)| *programs).copied().collect()
}

/// The names of programs, with the blank after each.
fn spaced_names() -> Vec<String> {
    names().iter().map(|name| format!("{name} ")).collect()
}

/// The names of programs that are the first of a list of arguments.
static LISTED: LazyLock<Regex> = LazyLock::new(|| {
    let names: Vec<String> = names().iter().map(|name| name.replace(' ', r#"\\*["'],[ \t]*\\*["']"#)).collect();
    Regex::new(&format!(r#"(?P<name>{})\\*["'],"#, names.join("|"))).expect("the names are fixed and tested")
});

/// The beginnings of flags in lists of arguments.
const LISTED_FLAGS: [&str; 6] = ["\", \"-", "\",\"-", "', '-", "','-", "\\\", \\\"-", "\\\",\\\"-"];

/// The texts that each line with the name of a program has.
pub(super) fn hints() -> Vec<String> {
    let others = [".exe", ".EXE"].iter().chain(&LISTED_FLAGS).map(|hint| (*hint).to_owned());
    spaced_names().into_iter().chain(others).collect()
}

/// Where the names of programs stand on these lines of a text.
fn programs(text: &str, lines: &Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let start = lines.start;
    let text = &text[lines.clone()];
    let has = |hint: &&str| memmem::find(text.as_bytes(), hint.as_bytes()).is_some();
    let on_windows = [".exe", ".EXE"].iter().any(has).then(|| ON_WINDOWS.find_iter(text)).into_iter().flatten();
    let listed = LISTED_FLAGS.iter().any(has).then(|| LISTED.captures_iter(text)).into_iter().flatten();
    let names = PROGRAMS.iter().flat_map(|names| names.find_iter(text)).chain(on_windows);
    let names = names.chain(listed.filter_map(|listed| listed.name("name")));
    names.map(move |name| start + name.start()..start + name.end())
}

/// The name of a program without its ending on Windows and without what stands around it in a list.
fn plain_name(written: &str) -> String {
    let name = written.to_ascii_lowercase().replace(".exe", "").replace(['\\', '"', '\''], "").replace(',', " ");
    name.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

/// A command is looked at as far as this.
const LONGEST: usize = 8 * 1024;

/// Where in `text` the secrets of command lines stand. Names of programs are on these `lines`.
pub(super) fn find(text: &str, lines: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let names = lines.iter().flat_map(|lines| programs(text, lines));
    let mut programs: Vec<_> = names.filter(|name| begins_a_word(text, name.start)).collect();
    programs.sort_unstable_by_key(|program| program.start);
    let mut programs = programs.into_iter().peekable();
    while let Some(program) = programs.next() {
        let written = text[program.clone()].trim_end();
        let from = program.start + written.len();
        let name = plain_name(written);
        // A command ends at the next program: each part of the text is looked at once.
        let next = programs.peek().map_or(text.len(), |next| next.start);
        let mut end = next.min(from + LONGEST);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let arguments = &text[from..from + end_of_command(&text[from..end])];
        for flag in COMMANDS.iter().filter(|flag| flag.programs.contains(&name.as_str())) {
            let taken = flag.pattern.captures_iter(arguments).filter(|it| takes(flag.form, it));
            let secrets = taken.filter_map(|it| secret_of(&it).map(|secret| secret.range()));
            found.extend(secrets.map(|secret| from + secret.start..from + secret.end));
        }
    }
    found
}

/// Whether a name that stands at `at` is not the end of a longer one. An escaped character may stand before it.
fn begins_a_word(text: &str, at: usize) -> bool {
    let before = text.as_bytes()[..at].iter().rev();
    match before.clone().next() {
        Some(b'n' | b't' | b'r') => before.clone().nth(1) == Some(&b'\\'),
        Some(byte) => !byte.is_ascii_alphanumeric() && !matches!(byte, b'_' | b'-' | b'.'),
        None => true,
    }
}

/// Where a command ends: at an operator of the shell, or at the end of its line, which a backslash moves to the next.
fn end_of_command(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut backslashes = 0;
    for (at, byte) in bytes.iter().enumerate() {
        let next = bytes.get(at + 1);
        let ends = match byte {
            b'\n' => backslashes % 2 == 0 && !(at > 1 && bytes[at - 1] == b'\r' && bytes[at - 2] == b'\\'),
            // In a string of JSON the end of a line has one backslash, and one that goes on has three.
            b'n' => backslashes > 0 && backslashes % 3 != 0,
            b'|' | b';' | b'&' => matches!(next, Some(b' ' | b'|' | b'&' | b'\n') | None),
            _ => false,
        };
        if ends {
            return at;
        }
        backslashes = if *byte == b'\\' { backslashes + 1 } else { 0 };
    }
    text.len()
}

fn takes(form: Form, found: &Captures<'_>) -> bool {
    let Some(secret) = secret_of(found).map(|secret| secret.as_str()) else {
        return false;
    };
    // A list of arguments goes on after the flag.
    if secret.bytes().all(|byte| matches!(byte, b',' | b' ' | b']')) {
        return false;
    }
    match form {
        Name => is_random(secret),
        // `1000:1000` are ids.
        Behind(_) => !is_stand_in(secret) && !found[0].bytes().all(|byte| !byte.is_ascii_alphabetic() || byte == b'u'),
        _ => !is_stand_in(secret),
    }
}
