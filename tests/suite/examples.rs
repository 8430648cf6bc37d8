//! The host loops of `examples/`: programs of their own, against a provider that enforces its window and has its faults.

use crate::{
    provider::{Asked, Format, Provider, Step, Stop, Trouble},
    summarizing::good_model,
    support::{Home, at_once, binary, text_of, without_keys},
};
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    io::{Read as _, Write as _, stderr},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
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

/// Gives a host loop its provider, its requests and its folder. `format` is its argument before the binary, if it has one.
fn prepare(
    command: &mut Command,
    home: &Home,
    provider: &Provider,
    requests: &str,
    format: Option<Format>,
    settings: &[(&str, &str)],
) {
    let input = home.path("requests");
    fs::write(&input, requests).expect("a file");
    command
        .args([provider.base_url().as_str(), "model", &WINDOW.to_string()])
        .args(format.map(Format::api))
        .arg(binary().get_program())
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
    without_keys(command);
}

/// Runs a host loop with one request on each line, and returns the lines of its output.
fn run(
    mut command: Command,
    home: &Home,
    provider: &Provider,
    requests: &str,
    settings: &[(&str, &str)],
) -> Vec<String> {
    prepare(&mut command, home, provider, requests, None, settings);
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
    let content = &message["content"];
    let text = content.as_str().or_else(|| content[0]["text"].as_str())?;
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

/// The output and the errors of the streaming loop.
struct Streamed {
    output: String,
    events: String,
}

/// The command of the streaming loop, prepared for a provider of a format.
fn streaming(home: &Home, provider: &Provider, format: Format, requests: &str) -> Command {
    let mut python = Command::new("python3");
    python.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/streaming_loop.py"));
    prepare(&mut python, home, provider, requests, Some(format), &[]);
    python
}

/// Runs the streaming loop with one request on each line.
fn stream(home: &Home, provider: &Provider, format: Format, requests: &str) -> Streamed {
    let output = streaming(home, provider, format, requests).output().expect("it runs");
    let [output, events] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    assert!(!events.contains("Traceback"), "{format:?}: {output}\n{events}");
    Streamed { output, events }
}

/// Runs a test of the streaming loop for each format that it knows, at the same time. Without Python it is skipped.
fn in_each_format(test: impl Fn(Format, Home, Provider) + Sync) {
    if let Err(missing) = Language::Python.command() {
        writeln!(stderr(), "skipped: examples/streaming_loop.py: {missing}").expect("it is written");
        return;
    }
    at_once([Format::Anthropic, Format::OpenAiChat], |format| test(format, Home::new(), Provider::start(format)));
}

/// The ends of the turns, as the streaming loop prints them.
fn ends(output: &str) -> Vec<&str> {
    output.lines().filter_map(|line| line.rsplit('(').next()?.strip_suffix(')')).collect()
}

#[test]
fn every_turn_of_the_streaming_loop_ends_inside_the_window() {
    in_each_format(|format, home, provider| {
        provider.window(WINDOW).otherwise(model);
        let Streamed { output, events } = stream(&home, &provider, format, &requests(TURNS));
        assert_eq!(ends(&output), ["done"; TURNS], "{format:?}: {output}\n{events}");
        let asked = provider.asked();
        let refused: Vec<_> = asked.iter().filter_map(|one| one.refused.as_ref()).collect();
        assert!(refused.is_empty(), "{format:?}: {refused:?}");
        assert!(asked.iter().all(|one| one.streams()), "{format:?}");
        for event in ["[compacting (threshold)", "[compacting: ", "[compaction completed]", "[settled]"] {
            assert!(events.contains(event), "{format:?}: {event} is not in {events}");
        }
    });
}

#[test]
fn the_streaming_loop_repeats_a_turn_that_was_refused_as_too_long() {
    in_each_format(|format, home, provider| {
        // The provider has a smaller window than the host says. Later it refuses a request that its window has room for.
        let refuses = AtomicBool::new(true);
        provider.window(WINDOW / 2).otherwise(move |asked: &Asked| {
            let is_late = asked.text().contains("Request 30:") && !asked.body["tools"].is_null();
            if is_late && refuses.swap(false, Ordering::SeqCst) { Step::overflow() } else { model(asked) }
        });
        let Streamed { output, events } = stream(&home, &provider, format, &requests(TURNS));
        assert_eq!(ends(&output), ["done"; TURNS], "{format:?}: {output}\n{events}");
        let expected =
            ["[warning: ", "[recovery (overflow): compact]", "[compacting (overflow)", "[recovery recovered]"];
        let missing: Vec<_> = expected.iter().filter(|event| !events.contains(**event)).collect();
        assert!(missing.is_empty(), "{format:?}: {missing:?} are not in {events}");
    });
}

#[test]
fn the_streaming_loop_tells_each_end_of_an_answer() {
    in_each_format(|format, home, provider| {
        let text = |text: &str| Step::answer(text).thinking("Let me see.", "c2lnbmF0dXJl");
        let call = || Step::call("read", json!({"path": "note.txt"}));
        fs::write(home.path("note.txt"), "The harbour is Ningbo.").expect("a file");
        provider.script([
            text("Whole."),
            call(),
            text("Read."),
            // At the limit: inside of a call, and inside of a text.
            call().stop(Stop::Length),
            text("Again."),
            text("Cut here").stop(Stop::Length),
            text("Filtered here").stop(Stop::Safety),
            Step::answer("I will not.").stop(Stop::Refusal),
            // Nothing: once, and twice.
            Step::empty(),
            text("Something."),
            Step::only_thinking(),
            Step::empty(),
            // No answer.
            Step::status(400),
            Step::rate_limited(0),
            text("After the limit."),
            text("Torn off").cut_after(5),
            text("Connected."),
            text("Half").error_in_stream(Trouble::Overloaded),
            text("Last."),
        ]);
        let requests: String = (0..12).map(|turn| format!("Turn {turn}\n")).collect();
        let Streamed { output, events } = stream(&home, &provider, format, &requests);
        let ends = ends(&output);
        let expected = ["done", "done", "done", "cut off", "declined", "declined", "done", "empty"];
        assert_eq!(&ends[..8], expected, "{format:?}: {output}\n{events}");
        assert!(output.contains("(refused: 400 "), "{format:?}: {output}");
        assert_eq!(&ends[ends.len() - 3..], ["done"; 3], "{format:?}: {output}\n{events}");
        assert!(events.contains("[recovery (incomplete): retry]"), "{format:?}: {events}");
        let asked = provider.asked();
        assert!(asked[2].text().contains("The harbour is Ningbo."), "the tool ran: {format:?}");
        let last = asked.last().expect("a request").text();
        for (part, stays) in [
            ("Cut here", true),
            ("Filtered here", false),
            ("I will not.", false),
            // The requests that were declined.
            ("Turn 4", false),
            ("Turn 5", false),
            ("Torn off", false),
            ("Half", false),
            ("Connected.", true),
            ("Turn 11", true),
        ] {
            assert_eq!(last.contains(part), stays, "{format:?}: {part}: {last}");
        }
        let messages = entries(&home, "message");
        let failed = messages.iter().filter(|entry| entry["message"]["stopReason"] == "error").count();
        assert_eq!(failed, 5, "two that were declined, and three errors: {format:?}: {messages:#?}");
    });
}

#[test]
fn the_streaming_loop_ends_a_turn_at_once_when_it_is_interrupted() {
    in_each_format(|format, home, provider| {
        provider.script([Step::endless()]);
        let mut command = streaming(&home, &provider, format, "First\nSecond\n");
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        let mut output = child.stdout.take().expect("a pipe");
        let mut said = String::new();
        while !said.contains("agaaga") {
            let mut more = [0; 64];
            let count = output.read(&mut more).expect("it writes");
            assert!(count > 0, "{format:?}: {said}");
            said.push_str(&String::from_utf8_lossy(&more[..count]));
        }
        let pid = rustix::process::Pid::from_raw(child.id().try_into().expect("a pid")).expect("a pid");
        rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it is there");
        output.read_to_string(&mut said).expect("text");
        assert!(child.wait().expect("it ends").success(), "{format:?}: {said}");
        assert_eq!(ends(&said), ["aborted", "done"], "{format:?}: {said}");
        let last = provider.asked().pop().expect("a request").text();
        assert!(last.contains("Second") && !last.contains("aga"), "{format:?}: {last}");
        let messages = entries(&home, "message");
        assert_eq!(messages.iter().filter(|entry| entry["message"]["stopReason"] == "aborted").count(), 1);
    });
}

#[test]
fn host_loops_are_short() {
    for language in Language::ALL {
        let text = fs::read_to_string(language.file()).expect("a file");
        assert!(text.lines().count() <= 60, "{language:?}");
    }
}
