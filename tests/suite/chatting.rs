//! `abridged chat`, with lines from a pipe.

use crate::{
    provider::{Asked, Format, Provider, Step},
    support::{Home, run},
};
use std::{
    io::Write as _,
    process::{Command, Stdio},
};

/// Runs a chat with these lines. Returns what it prints.
fn chat(mut command: Command, lines: &str) -> String {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    child.stdin.take().expect("a pipe").write_all(lines.as_bytes()).expect("it reads");
    let out = child.wait_with_output().expect("it ends");
    assert!(out.status.success(), "{out:?}");
    String::from_utf8(out.stdout).expect("UTF-8")
}

fn command(home: &Home, arguments: &[&str]) -> Command {
    let mut command = home.command();
    command.arg("chat").args(arguments);
    command
}

#[test]
fn the_demo_talks_pins_and_compacts_without_a_key() {
    let home = Home::new();
    let messages: String = (1..10).map(|number| format!("message {number}\n")).collect();
    let out = chat(command(&home, &["--demo"]), &format!("{messages}/pin Port 8042.\n/nope\n"));
    for part in [
        "You said: message 1\n",
        "You said: message 9\n",
        "compacting (threshold)",
        "compacted: ",
        "pinned",
        "there is no /nope",
        " of 6,000 tokens",
    ] {
        assert!(out.contains(part), "{part} is missing in:\n{out}");
    }
    assert!(!home.path("data").exists(), "nothing is left behind");
}

#[test]
fn an_answer_comes_from_the_model_that_is_named_and_an_error_is_told() {
    let provider = Provider::start(Format::Anthropic);
    provider.script([Step::answer("Hello to you.").pieces(3)]).otherwise(|_: &Asked| Step::unauthorized());
    let home = Home::new();
    let url = provider.base_url();
    let mut named = command(&home, &["--model", "anthropic/claude-sonnet-4-5", "--base-url", &url]);
    named.env("ANTHROPIC_API_KEY", "sk-right");
    let out = chat(named, "Hello.\nAgain.\n");
    assert!(out.contains("anthropic/claude-sonnet-4-5") && out.contains("Hello to you."), "{out}");
    assert!(out.contains("key"), "the next step is told: {out}");
    let (code, _, err) = run(command(&home, &["--model", "nobody/none"]));
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("cannot be asked"), "{err}");
}
