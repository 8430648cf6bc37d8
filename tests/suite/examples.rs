//! The host loops of `examples/`: programs of their own, against a provider that enforces its window.

use crate::{
    provider::{Asked, Format, Provider, Step, Stop},
    summarizing::good_model,
    support::{Home, at_once, binary, text_of, without_keys},
};
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    io::{Write as _, stderr},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

const WINDOW: u64 = 16_000;
const TURNS: usize = 40;

/// Languages with a host loop.
#[derive(Debug, Clone, Copy)]
enum Language {
    Python,
    TypeScript,
    Rust,
}

impl Language {
    const ALL: [Self; 3] = [Self::Python, Self::TypeScript, Self::Rust];

    /// The file below the root of the project.
    fn file(self) -> PathBuf {
        let name = match self {
            Self::Python => "host_loop.py",
            Self::TypeScript => "host_loop.mts",
            Self::Rust => "host_loop.rs",
        };
        Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name)
    }

    /// The command that runs the loop. The error names what is missing on this machine.
    fn command(self) -> Result<Command, &'static str> {
        match self {
            Self::Python => {
                says("python3", &["-c", "import sys; print(sys.version_info >= (3, 9))"], "True")
                    .ok_or("Python 3.9 is not installed")?;
                let mut python = Command::new("python3");
                python.arg(self.file());
                Ok(python)
            }
            Self::TypeScript => {
                says("node", &["-p", "process.features.typescript"], "strip")
                    .ok_or("a Node that runs TypeScript (22.18 or later) is not installed")?;
                let mut node = Command::new("node");
                node.arg(self.file());
                Ok(node)
            }
            Self::Rust => {
                says("curl", &["--version"], "curl").ok_or("curl is not installed")?;
                Ok(Command::new(built()))
            }
        }
    }
}

/// Whether a program is there and prints a text that begins like this.
pub fn says(program: &str, arguments: &[&str], text: &str) -> Option<()> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output().ok()?;
    output.stdout.starts_with(text.as_bytes()).then_some(())
}

/// The example in Rust. `cargo test` builds it, but not with a filter for one target.
fn built() -> PathBuf {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--offline", "--example", "host_loop"]);
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    let done = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).status().expect("cargo runs");
    assert!(done.success(), "the example builds");
    let binary = binary();
    Path::new(binary.get_program()).parent().expect("a folder").join("examples/host_loop")
}

/// Runs a test for each language at the same time. A language that cannot run here is skipped, and the log says so.
fn in_each_language(test: impl Fn(Language, Command) + Sync) {
    at_once(Language::ALL, |language| match language.command() {
        Ok(command) => test(language, command),
        // The harness captures `eprintln!` only.
        Err(missing) => writeln!(stderr(), "skipped: {}: {missing}", language.file().display()).expect("it is written"),
    });
}

/// Runs a host loop with one request on each line, and returns the lines of its output.
fn run(
    mut command: Command,
    home: &Home,
    provider: &Provider,
    requests: &str,
    settings: &[(&str, &str)],
) -> Vec<String> {
    let input = home.path("requests");
    fs::write(&input, requests).expect("a file");
    let binary = binary();
    command
        .args([provider.base_url().as_str(), "model", &WINDOW.to_string()])
        .arg(binary.get_program())
        .env("ABRIDGED_DATA_DIR", home.path("data"))
        .env("ABRIDGED_CONFIG_DIR", home.path("config"))
        .env_remove("ABRIDGED_DISABLE_AUTOCOMPACT")
        // A proxy or the curl settings of this machine play no part.
        .env("NO_PROXY", "127.0.0.1")
        .env("no_proxy", "127.0.0.1")
        .env("CURL_HOME", home.path("config"))
        .envs(settings.iter().copied())
        .current_dir(home.path(""))
        .stdin(File::open(&input).expect("a file"));
    without_keys(&mut command);
    let output = command.output().expect("it runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {error}", output.status);
    String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect()
}

/// Requests of about 150 tokens, one a line.
fn requests(count: usize) -> String {
    (0..count).map(|turn| format!("Request {turn}: {}\n", text_of(150, "ask"))).collect()
}

/// A model that calls a tool in every third turn, and writes the summaries that the daemon asks for.
fn model(asked: &Asked) -> Step {
    if asked.body["tools"].is_null() {
        return good_model(asked);
    }
    let last = asked.body["messages"].as_array().and_then(|messages| messages.last()).expect("a message");
    let number = number(last);
    if last["role"] == "user" && number.is_some_and(|number| number % 3 == 0) {
        return Step::call("read", json!({"path": "src/ask.rs"})).stop(Stop::ToolUse);
    }
    Step::answer(&format!("Answer. {}", text_of(250, "answer")))
}

/// The number of a request of the user.
fn number(message: &Value) -> Option<usize> {
    let text = message["content"].as_str()?;
    text.strip_prefix("Request ")?.split(':').next()?.parse().ok()
}

/// The entries of this type in the session file.
fn entries(home: &Home, kind: &str) -> Vec<Value> {
    fn files(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                files(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "jsonl") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    files(&home.path("data"), &mut found);
    let [path] = found.as_slice() else { panic!("one session: {found:?}") };
    let text = fs::read_to_string(path).expect("a file");
    let entries = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    entries.filter(|entry| entry["type"] == kind).collect()
}

#[test]
fn every_turn_of_a_host_loop_ends_inside_the_window() {
    in_each_language(|language, command| {
        let (home, provider) = (Home::new(), Provider::start(Format::OpenAiChat));
        provider.window(WINDOW).otherwise(model);
        let output = run(command, &home, &provider, &requests(TURNS), &[]);
        let answers = output.iter().filter(|line| line.contains("Answer. ")).count();
        assert_eq!(answers, TURNS, "{language:?}: {output:#?}");
        let asked = provider.asked();
        let refused: Vec<_> = asked.iter().filter_map(|one| one.refused.as_ref()).collect();
        assert!(refused.is_empty(), "{language:?}: {refused:?}");
        let results = |one: &&Asked| {
            one.body["messages"].as_array().is_some_and(|it| it.last().is_some_and(|it| it["role"] == "tool"))
        };
        assert_eq!(asked.iter().filter(results).count(), TURNS.div_ceil(3), "{language:?}");
        assert!(!entries(&home, "compaction").is_empty(), "{language:?}");
    });
}

#[test]
fn a_host_loop_repeats_a_turn_that_was_refused_as_too_long() {
    in_each_language(|language, command| {
        let (home, provider) = (Home::new(), Provider::start(Format::OpenAiChat));
        // The provider has a smaller window than the host says.
        provider.window(WINDOW * 2 / 5).otherwise(model);
        let output = run(command, &home, &provider, &requests(TURNS), &[]);
        let answers = output.iter().filter(|line| line.contains("Answer. ")).count();
        assert_eq!(answers, TURNS, "{language:?}: {output:#?}");
        let refused = provider.asked().iter().filter(|one| one.refused.is_some()).count();
        assert!((1..=2).contains(&refused), "the first refusal tells the window: {language:?}: {refused}");
    });
}

#[test]
fn a_host_loop_goes_on_after_a_refusal() {
    in_each_language(|language, command| {
        let (home, provider) = (Home::new(), Provider::start(Format::OpenAiChat));
        provider.otherwise(model).script([Step::answer("One."), Step::server_error(), Step::html_proxy(403)]);
        let output = run(command, &home, &provider, "First\nSecond\nThird\nFourth\n", &[]).join("\n");
        let parts = ["One.", "The server had an error", "Sign in to the network", "Answer. "];
        let places: Vec<_> = parts.iter().map(|part| output.find(part)).collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{language:?}: {output}");
        let asked = provider.asked();
        assert!(asked[3].text().contains("Second") && asked[3].text().contains("Third"), "requests stay: {language:?}");
        let failed = |message: &&Value| message["stopReason"] == "error" && message["errorMessage"].is_string();
        let messages = entries(&home, "message");
        assert_eq!(messages.iter().map(|entry| &entry["message"]).filter(failed).count(), 2, "{language:?}");
    });
}

#[test]
fn a_host_loop_goes_on_after_a_context_that_does_not_fit() {
    in_each_language(|language, command| {
        let (home, provider) = (Home::new(), Provider::start(Format::OpenAiChat));
        provider.window(WINDOW).otherwise(model);
        let output = run(command, &home, &provider, &requests(TURNS), &[("ABRIDGED_DISABLE_AUTOCOMPACT", "1")]);
        let overflows = output.iter().filter(|line| line.contains("context_overflow")).count();
        let answers = output.iter().filter(|line| line.contains("Answer. ")).count();
        assert!(overflows > 0 && answers > 0, "{language:?}: {output:#?}");
        assert_eq!(overflows + answers, TURNS, "{language:?}: {output:#?}");
    });
}

#[test]
fn host_loops_are_short_and_the_page_shows_one() {
    for language in Language::ALL {
        let text = fs::read_to_string(language.file()).expect("a file");
        assert!(text.lines().count() <= 60, "{language:?}");
    }
    let python = fs::read_to_string(Language::Python.file()).expect("a file");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/CLIENTS.md");
    let page = fs::read_to_string(page).expect("the page");
    let (_, behind) = page.split_once("```python\ndef turn(").expect("the turn");
    let (turn, _) = behind.split_once("```").expect("its end");
    let missing: Vec<_> = turn.lines().skip(1).filter(|line| !python.contains(line)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
