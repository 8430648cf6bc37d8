//! The cost of redaction, per MB of text of each kind, with all rules.

use super::{Report, milliseconds};
use abridged::{ids::random::SplitMix64, redact::redact};
use serde_json::{Value, json};
use std::{
    fs,
    hint::black_box,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

/// The size of each generated text, in bytes.
const SIZE: usize = 1_000_000;

/// The times that a text is redacted.
const ROUNDS: usize = 11;

const CORPORA: [&str; 2] =
    [include_str!("../../tests/corpora/secrets.jsonl"), include_str!("../../tests/corpora/not_secrets.jsonl")];

/// Makes a text.
type Make = fn(&mut SplitMix64) -> String;

/// Kinds of text that are generated.
const KINDS: [(&str, Make); 9] = [
    ("prose", prose),
    ("source code", source),
    ("a log", log),
    ("results of tools, in JSON", results),
    ("base 64 on one line", encoded),
    ("a minified script on one line", minified),
    ("settings without secrets", settings),
    ("nothing but keys", keys),
    ("nothing but settings with secrets", secrets),
];

/// The processor time per MB. `ABRIDGED_SESSIONS` names a folder of sessions, whose texts are measured, too.
pub fn redactions(report: &mut Report) {
    let mut random = SplitMix64::new(7);
    for (name, piece) in KINDS {
        let mut text = String::with_capacity(SIZE + SIZE / 10);
        while text.len() < SIZE {
            text.push_str(&piece(&mut random));
        }
        add(report, name, &[text]);
    }
    for (name, corpus) in ["rows with secrets", "rows that look like secrets"].into_iter().zip(CORPORA) {
        let rows: String = corpus.lines().map(row).collect();
        add(report, name, &[rows.repeat(SIZE / rows.len())]);
    }
    if let Some(folder) = std::env::var_os("ABRIDGED_SESSIONS") {
        for file in sessions(Path::new(&folder)) {
            let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            add(report, &name, &texts_of(&read(&file)));
        }
    }
}

fn add(report: &mut Report, name: &str, texts: &[String]) {
    let mut times: Vec<Duration> = (0..ROUNDS).map(|_| timed(texts)).collect();
    times.sort_unstable();
    let bytes: usize = texts.iter().map(String::len).sum();
    report.add(
        format!("redaction of {name}, per MB"),
        milliseconds(times[ROUNDS / 2]) / bytes as f64 * 1e6,
        "ms",
        "10",
    );
}

/// The processor time of this thread. Unlike the time of the clock it does not grow with the load of the machine.
fn timed(texts: &[String]) -> Duration {
    let now = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::try_from(time).expect("a time from zero on")
    };
    let before = now();
    for text in texts {
        black_box(redact(black_box(text)).len());
    }
    now() - before
}

/// The text of a row of a corpus, without its marks.
fn row(line: &str) -> String {
    let row: Value = serde_json::from_str(line).expect("JSON");
    let text = row["text"].as_str().expect("a text").replace(['⟦', '⟧', '¦'], "");
    format!("{text}\n")
}

fn sessions(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").path());
    let mut files: Vec<PathBuf> = files.filter(|file| file.is_file()).collect();
    files.retain(|file| file.to_string_lossy().ends_with(".jsonl") || file.to_string_lossy().ends_with(".jsonl.gz"));
    files.sort_unstable();
    files
}

fn read(file: &Path) -> String {
    if file.extension().is_some_and(|extension| extension == "gz") {
        let unpacked = Command::new("gzip").arg("-dc").arg(file).output().expect("gzip runs");
        return String::from_utf8(unpacked.stdout).expect("UTF-8");
    }
    fs::read_to_string(file).expect("a file")
}

/// The texts of the messages of a session, each for itself as they are redacted.
fn texts_of(session: &str) -> Vec<String> {
    /// Ids and names of tools are no texts.
    const SHORTEST: usize = 40;
    fn gather(value: Value, texts: &mut Vec<String>) {
        match value {
            Value::String(text) => texts.extend((text.len() >= SHORTEST).then_some(text)),
            Value::Array(values) => values.into_iter().for_each(|value| gather(value, texts)),
            Value::Object(fields) => fields.into_iter().for_each(|(_, value)| gather(value, texts)),
            _ => {}
        }
    }
    let mut texts = Vec::new();
    for line in session.lines() {
        gather(serde_json::from_str::<Value>(line).map_or(Value::Null, |mut line| line["message"].take()), &mut texts);
    }
    texts
}

/// Characters of these, so many.
fn noise(random: &mut SplitMix64, length: usize, of: &str) -> String {
    let chars = of.as_bytes();
    (0..length).filter_map(|_| random.one_of(chars)).map(|byte| char::from(*byte)).collect()
}

const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

fn word(random: &mut SplitMix64) -> &'static str {
    const WORDS: &str = "the a of and to in is it that for with on as are this be at from by which when then token \
        request session message answer file path line test error value model window context key password summary \
        we read write check build cache list because only never should would compaction result branch index";
    let words: Vec<&str> = WORDS.split_ascii_whitespace().collect();
    random.one_of(&words).copied().unwrap_or_default()
}

fn words(random: &mut SplitMix64, count: usize, between: &str) -> String {
    (0..count).map(|_| word(random)).collect::<Vec<_>>().join(between)
}

fn prose(random: &mut SplitMix64) -> String {
    let sentence = |random: &mut SplitMix64| format!("It's {}, {}. ", words(random, 9, " "), words(random, 6, " "));
    let paragraph: String = (0..4).map(|_| sentence(random)).collect();
    format!("{paragraph}\n\n- `{}`: {} (https://example.com/{})\n", word(random), sentence(random), word(random))
}

fn source(random: &mut SplitMix64) -> String {
    let (name, part, other) = (words(random, 2, "_"), word(random), word(random));
    format!(
        "/// Returns the {part} of a {other}.\n#[must_use]\npub fn {name}(&self, {part}: &str, {other}: usize) -> Option<String> {{\n    \
         let {part} = self.{part}.get({other})?.to_owned();\n    if {part}.is_empty() || {other} == 0 {{\n        \
         return Err(anyhow!(\"no {part} in {{{other}}}\"));\n    }}\n    const path = './{part}/{other}.ts'; // {}\n    \
         self.{name}.insert(\"{part}\", {other}::new({part}, '\\n'));\n    Some(format!(\"{{{part}}}: {{}}\", {other}))\n}}\n\n",
        words(random, 8, " ")
    )
}

fn log(random: &mut SplitMix64) -> String {
    let id = noise(random, 8, "0123456789abcdef");
    format!(
        "2026-03-{:02}T10:{:02}:07.{:03}Z INFO  [{}] {}: id={id}-4e1c status=200 duration={}ms path=/api/v1/{}/{id}\n",
        random.below(28) + 1,
        random.below(60),
        random.below(1_000),
        word(random),
        words(random, 7, " "),
        random.below(10_000),
        word(random),
    )
}

fn results(random: &mut SplitMix64) -> String {
    let code = source(random);
    format!(
        "{}\n",
        json!({"path": format!("src/{}.rs", word(random)), "content": code, "lines": random.below(900), "ok": true})
    )
}

fn encoded(random: &mut SplitMix64) -> String {
    noise(random, 64, &format!("{LETTERS}+/"))
}

fn minified(random: &mut SplitMix64) -> String {
    let names: Vec<String> = (0..3).map(|_| noise(random, 2, "abcdefghijklmnopqrstuvwxyz")).collect();
    let (a, b, c) = (&names[0], &names[1], &names[2]);
    format!(
        "function {a}({b},{c}){{var e={b}.{},t=\"{}\";return e&&!{c}?{a}.call(this,{b},{{{}:!0,value:{c}--,key:t}}):\
         (0,{c}.{})(e,'<div class=\"{}-{}\">'+t+\"</div>\")||\"https://{}.example.com/\"+{b}}}",
        word(random),
        words(random, 3, " "),
        word(random),
        word(random),
        word(random),
        word(random),
        word(random),
    )
}

fn settings(random: &mut SplitMix64) -> String {
    let (name, value) = (words(random, 2, "_"), random.below(100_000));
    match random.below(4) {
        0 => format!("{}={value}\n", name.to_uppercase()),
        1 => format!("  {name}: {}\n", words(random, 3, "-")),
        2 => format!("  \"{name}\": \"{}\",\n", words(random, 2, " ")),
        _ => format!("export {}=\"${{{}}}\"\n", name.to_uppercase(), name.to_uppercase()),
    }
}

/// Keys of issuers that are none, put together at run time: nobody takes one for real who looks for them here.
fn keys(random: &mut SplitMix64) -> String {
    const BEGINNINGS: [(&str, &str, usize); 8] = [
        ("sk-", "proj-", 48),
        ("sk-", "ant-api03-", 90),
        ("gh", "p_", 36),
        ("AK", "IA", 16),
        ("xo", "xb-", 40),
        ("AI", "za", 35),
        ("hf", "_", 34),
        ("glp", "at-", 20),
    ];
    let &(first, second, length) = random.one_of(&BEGINNINGS).expect("there are some");
    let of = if first == "AK" { "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567" } else { LETTERS };
    format!("{first}{second}{}\n", noise(random, length, of))
}

fn secrets(random: &mut SplitMix64) -> String {
    let value = noise(random, 24, LETTERS);
    match random.below(5) {
        0 => format!("DB_PASSWORD={value}\n"),
        1 => format!("  \"apiKey\": \"{value}\",\n"),
        2 => format!("postgres://app:{value}@db.internal:5432/app\n"),
        3 => format!("Authorization: Bearer {value}\n"),
        _ => format!("mysql --password={value} -u root\n"),
    }
}
