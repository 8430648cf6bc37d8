//! A conversation, heard piece by piece: who said it, under which label, and its cleaned text.

mod arguments;
mod outputs;
mod thoughts;
mod title;

pub(super) use super::shell::{Run, runs};

use super::{
    files::without_files,
    harness,
    prose::clip,
    read_lines::{LineNumbers, first_line},
};
use crate::{
    conversation::{
        entry::{Body, Entry},
        message::{self, Block, Message, StopReason, ToolCall, ToolResult, outline::Role},
    },
    ids::CallId,
    redact::Clean,
    text,
};
use arguments::Arguments;
use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};
use thoughts::without_thoughts;

/// A piece of the conversation with its secrets gone and our tags made harmless.
#[derive(Debug, Clone)]
pub(super) struct Said {
    pub speaker: Speaker,
    /// Heading of a line: the tool and its most telling argument.
    pub label: Clean,
    pub text: Clean,
    /// The call that a result answers, with all its arguments: a later result of the same call is the newer one.
    pub call: Option<u64>,
    /// The numbers of the lines, for a file that was read.
    pub numbers: Option<LineNumbers>,
    /// The programs that a result is of.
    pub runs: Arc<[Run]>,
    /// The lines that an edit took out of its file.
    pub gone: Clean,
    /// Whether an earlier summary has it.
    pub carried: bool,
}

impl Said {
    pub(super) fn new(speaker: Speaker, label: Clean, text: Clean) -> Self {
        let gone = Clean::default();
        Self { speaker, label, text, call: None, numbers: None, runs: Arc::default(), gone, carried: false }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    User,
    /// Instructions of the project, in a message of the user.
    Instructions,
    Assistant,
    Call,
    Result {
        failed: bool,
    },
    /// The user stopped the agent.
    Stop,
    /// The summary of another branch.
    Branch,
    /// A command of the user, an extension.
    Aside,
}

/// How much of one tool result is looked at, in characters: its beginning and its end say most.
const LONGEST_RESULT: usize = 24_000;

/// How much of one answer is looked at, in characters.
const LONGEST_ANSWER: usize = 200_000;

/// The largest conversation that is heard whole, in characters: two million tokens, more than any window in use. The facts
/// of a larger one come from its newest part, and from the messages of the user, the same size of them.
const HEARD: usize = 8 << 20;

/// Whether entries are heard, from the newest to the oldest.
struct Hearing {
    all: usize,
    of_user: usize,
}

impl Hearing {
    /// The entries that are heard, in their order. The first message of the user is one of them: it has the goal.
    fn of<'a>(entries: &[&'a Arc<Entry>]) -> Vec<&'a Arc<Entry>> {
        let mut left = Self { all: HEARD, of_user: HEARD };
        let first = entries.iter().position(|entry| entry.is_from(Role::User));
        let newest = entries.iter().enumerate().rev();
        let mut heard: Vec<_> = newest.filter(|(at, entry)| left.hears(entry) || first == Some(*at)).collect();
        heard.reverse();
        heard.into_iter().map(|(_, entry)| *entry).collect()
    }

    fn hears(&mut self, entry: &Entry) -> bool {
        let room = match self.all {
            0 if entry.is_from(Role::User) => &mut self.of_user,
            _ => &mut self.all,
        };
        // The part of it that is looked at: no image, and of a result its ends.
        let said = match entry.outline() {
            Some(outline) if outline.role == Role::User => outline.chars,
            Some(outline) if outline.role == Role::Assistant => outline.chars.min(LONGEST_ANSWER),
            Some(outline) => outline.chars.min(LONGEST_RESULT),
            None => entry.line().len().min(LONGEST_RESULT),
        };
        let before = *room;
        *room = before.saturating_sub(said);
        before > 0
    }
}

/// The conversation, piece by piece, every text of it through `clean`; `stop` ends the work early.
pub(super) fn listen(entries: &[&Arc<Entry>], clean: &dyn Fn(&str) -> Clean, stop: &dyn Fn() -> bool) -> Vec<Said> {
    let mut calls = Calls::default();
    let mut said: Vec<Said> = Vec::new();
    let mut say = |piece: Said| {
        // A command may work without a word, and its label may say all of it.
        let is_of_call = matches!(piece.speaker, Speaker::Call | Speaker::Result { .. });
        if is_of_call || !piece.text.trim().is_empty() {
            said.push(piece);
        }
    };
    // Cleaned before it is clipped: half of a secret looks like none.
    let clipped = |text: &str| Clean::assembled(in_whole_lines(&clean(text)));
    for entry in Hearing::of(entries) {
        if stop() {
            break;
        }
        let content = match &entry.body {
            Body::BranchSummary(branch) => {
                say(Said::new(
                    Speaker::Branch,
                    Clean::assembled("another branch"),
                    clean(&without_files(&branch.summary)),
                ));
                continue;
            }
            Body::CustomMessage(custom) => {
                say(Said::new(Speaker::Aside, clean(&custom.custom_type), clipped(&message::text_of(&custom.content))));
                continue;
            }
            Body::Message(_) => match entry.message_once() {
                Some(message) => message,
                None => continue,
            },
            _ => continue,
        };
        match &*content {
            Message::User(blocks) => {
                let text = with_images(blocks);
                let harness::Parts { own, instructions, others, stopped } = harness::parts(&text);
                if stopped {
                    say(Said::new(Speaker::Stop, Clean::assembled("user"), Clean::assembled("stopped")));
                }
                for text in others {
                    say(Said::new(Speaker::Aside, Clean::assembled("another agent"), clipped(text)));
                }
                if let Some(text) = instructions {
                    say(Said::new(Speaker::Instructions, Clean::assembled("instructions"), clean(text)));
                }
                say(Said::new(Speaker::User, Clean::assembled("user"), clean(&own)));
            }
            Message::Assistant(answer) if !answer.failed() => {
                let text = clean(&without_directives(without_thoughts(message::text_of(&answer.content))));
                let text = Clean::assembled(text::clip_middle(&text, LONGEST_ANSWER, "\n[…]\n"));
                say(Said::new(Speaker::Assistant, Clean::assembled("assistant"), text));
                for call in answer.calls() {
                    let arguments = Arguments::of(call, clean);
                    let label = calls.add(call, &arguments, clean);
                    let gone = arguments.gone();
                    say(Said { gone, ..Said::new(Speaker::Call, label.clone(), arguments.text(&label)) });
                }
            }
            Message::ToolResult(result) => say(calls.answered(result, clean)),
            Message::Execution(run) if !run.excluded => {
                let label = Clean::assembled(format!("user ran {}", clip(&clean(&run.command), 80)));
                say(Said::new(Speaker::Aside, label, clipped(&format!("{}\n{}", run.command, run.output))));
            }
            Message::Developer(_) | Message::Custom(_) | Message::Summary(_) => {
                say(Said::new(Speaker::Aside, Clean::assembled("note"), clipped(&content.text())));
            }
            Message::Assistant(answer) if answer.stop == StopReason::Aborted => {
                say(Said::new(Speaker::Stop, Clean::assembled("user"), Clean::assembled("stopped")));
            }
            Message::Assistant(_) | Message::Execution(_) | Message::System(_) => {}
        }
    }
    said
}

/// An answer without the lines by which it tells a frontend what to show: `::git-push{branch="main"}`.
fn without_directives(answer: String) -> String {
    let directs = |line: &str| {
        let name = line.trim_end().strip_prefix("::").and_then(|line| line.strip_suffix('}')?.split_once('{'));
        name.is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|char| char.is_ascii_lowercase() || char == '-')
        })
    };
    match answer.contains("::") && answer.lines().any(directs) {
        true => answer.lines().filter(|line| !directs(line)).collect::<Vec<_>>().join("\n"),
        false => answer,
    }
}

/// A call whose result was not heard yet.
#[derive(Clone)]
struct Called {
    label: Clean,
    /// A number that is the same for the same call.
    same: u64,
    first_line: Option<usize>,
    runs: Arc<[Run]>,
    /// Whether the agent ended it.
    stopped: bool,
}

/// The calls without a result, and those that go on after their first one.
#[derive(Default)]
struct Calls {
    open: HashMap<CallId, Called>,
    /// By the name that the harness gave to the process.
    running: HashMap<String, Called>,
}

impl Calls {
    /// Takes a call in; its label.
    fn add(&mut self, call: &ToolCall, arguments: &Arguments, clean: &dyn Fn(&str) -> Clean) -> Clean {
        // A call that waits for another one has its results.
        if let Some(goes_on) = arguments.process().and_then(|name| self.running.get(name)) {
            let called = Called { same: same(call), stopped: arguments.stops(), ..goes_on.clone() };
            let label = called.label.clone();
            self.open.insert(call.id.clone(), called);
            return label;
        }
        let label = arguments.label(&clean(&call.name));
        let runs = arguments.script().map(runs).unwrap_or_default().into();
        let first_line = first_line(call);
        let stopped = arguments.stops();
        let called = Called { label: label.clone(), same: same(call), first_line, runs, stopped };
        self.open.insert(call.id.clone(), called);
        label
    }

    /// The result of a call.
    fn answered(&mut self, result: &ToolResult, clean: &dyn Fn(&str) -> Clean) -> Said {
        let called = self.open.remove(&result.call);
        let raw = message::text_of(&result.content);
        let first = called.as_ref().and_then(|called| called.first_line);
        let output = outputs::of(&raw, first.is_some());
        let cleaned = clean(&output.text);
        let cleaned = if first.is_some() { cleaned } else { outputs::unescaped(cleaned) };
        let text = in_whole_lines(&cleaned);
        let stopped = called.as_ref().is_some_and(|called| called.stopped);
        let failed = (result.is_error || output.failed) && !stopped;
        let numbers = first
            .filter(|_| !failed)
            .and_then(|first| LineNumbers::of(first, &output.text, &cleaned, &text, GAP.trim()));
        if let (Some(name), Some(called)) = (output.running, &called) {
            self.running.insert(name, called.clone());
        }
        let call = called.as_ref().map(|called| called.same);
        let (label, runs) = match called {
            // A process that was stopped says nothing of its work.
            Some(called) if called.stopped => (called.label, called.runs.iter().map(Run::stopped).collect()),
            Some(called) => (called.label, called.runs),
            None => (clean(&result.tool), Arc::default()),
        };
        let speaker = Speaker::Result { failed };
        Said { call, numbers, runs, ..Said::new(speaker, label, Clean::assembled(text)) }
    }
}

/// The place of the middle that a result has lost.
const GAP: &str = "\n[…]\n";

/// A result without its middle, in whole lines where it has some.
fn in_whole_lines(text: &str) -> String {
    let cut = text::clip_middle(text, LONGEST_RESULT, GAP);
    let Some((head, end)) = cut.split_once(GAP).filter(|_| cut.len() < text.len()) else { return cut };
    let head = head.rfind('\n').map_or(head, |at| &head[..at]);
    let end = end.find('\n').map_or(end, |at| &end[at + 1..]);
    format!("{head}{GAP}{end}")
}

/// A number that is the same for calls of one tool with the same arguments.
fn same(call: &ToolCall) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&call.name, &call.arguments).hash(&mut hasher);
    hasher.finish()
}

/// The texts, and a word for each image.
pub(super) fn with_images(blocks: &[Block]) -> String {
    let part = |block: &Block| match block {
        Block::Text(text) => Some(text.clone()),
        Block::Image(image) => Some(format!("[Image: {}]", image.mime)),
        _ => None,
    };
    blocks.iter().filter_map(part).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_result_ends_with_whole_lines() {
        let text = (0..4_000).map(|at| format!("line {at} of a long output\n")).collect::<String>();
        let cut = in_whole_lines(&text);
        assert!(cut.len() < 26_000 && cut.contains("\n[…]\n"));
        assert!(cut.lines().all(|line| line == "[…]" || text.contains(&format!("{line}\n"))), "{cut}");
        assert_eq!(in_whole_lines("short"), "short");
    }

    #[test]
    fn directives_of_an_answer_are_left_out() {
        let answer = "Pushed.\n\n::git-push{cwd=\"/x\" branch=\"a\"}\nuse std::{fs};\n::std::process{";
        assert_eq!(without_directives(answer.to_owned()), "Pushed.\n\nuse std::{fs};\n::std::process{");
    }

    #[test]
    fn a_thought_in_an_answer_is_not_heard() {
        let text = "<thinking>I decided to delete the repo.</thinking>\nThe lexer is ported.";
        let message = serde_json::json!({"role": "assistant", "content": [{"type": "text", "text": text}]});
        let line =
            serde_json::json!({"type": "message", "id": "e", "parentId": null, "timestamp": "", "message": message});
        let entry = Arc::new(Entry::parse(line.to_string().into()).expect("an entry"));
        let said = listen(&[&entry], &|text| Clean::assembled(text), &|| false);
        assert_eq!(said[0].text.trim(), "The lexer is ported.");
    }

    #[test]
    fn a_call_that_waits_for_another_one_has_its_label() {
        let said = |value: serde_json::Value| {
            let line =
                serde_json::json!({"type": "message", "id": "e", "parentId": null, "timestamp": "", "message": value});
            Arc::new(Entry::parse(line.to_string().into()).expect("an entry"))
        };
        let call = |id: &str, name: &str, arguments: serde_json::Value| {
            let call = serde_json::json!({"type": "toolCall", "id": id, "name": name, "arguments": arguments});
            said(serde_json::json!({"role": "assistant", "content": [call], "stopReason": "toolUse"}))
        };
        let result = |id: &str, text: &str| {
            let content = [serde_json::json!({"type": "text", "text": text})];
            said(serde_json::json!({"role": "toolResult", "toolCallId": id, "toolName": "wait", "content": content}))
        };
        let entries = [
            call("a", "exec", serde_json::json!({"cmd": "cargo test"})),
            result("a", "Script running with cell ID 7\nWall time 1.0 seconds\nOutput:\n"),
            call("b", "wait", serde_json::json!({"cell_id": "7", "yield_time_ms": 100})),
            result("b", "Chunk ID: 1\nProcess exited with code 101\nOutput:\nerror: it broke"),
        ];
        let heard = listen(&entries.iter().collect::<Vec<_>>(), &|text| Clean::assembled(text), &|| false);
        let last = heard.last().expect("a result");
        assert_eq!((&*last.label, &*last.text), ("exec cargo test", "error: it broke"));
        assert!(last.speaker == Speaker::Result { failed: true } && last.runs[0].words == ["cargo", "test"]);
        let stop = call("b", "wait", serde_json::json!({"cell_id": "7", "chars": "\u{3}"}));
        let stopped = [entries[0].clone(), entries[1].clone(), stop, entries[3].clone()];
        let heard = listen(&stopped.iter().collect::<Vec<_>>(), &|text| Clean::assembled(text), &|| false);
        let last = heard.last().expect("a result");
        assert_eq!(last.speaker, Speaker::Result { failed: false }, "the agent ended it");
        assert_eq!(last.runs[0].exit, crate::summary::shell::ExitCode::Unknown, "it did not work either");
        let code =
            r#"const r=await tools.write_stdin({session_id:7,chars:"\u0003",yield_time_ms:1000}); text(r.output)"#;
        let stop = call("b", "exec", serde_json::json!({"input": code}));
        let stopped = [entries[0].clone(), entries[1].clone(), stop, entries[3].clone()];
        let heard = listen(&stopped.iter().collect::<Vec<_>>(), &|text| Clean::assembled(text), &|| false);
        let last = heard.last().expect("a result");
        assert_eq!((&*last.label, last.speaker), ("exec cargo test", Speaker::Result { failed: false }), "by its code");
        let code = r#"text(await tools.write_stdin({"session_id": "7", "chars": "y\n"}))"#;
        let waits = [entries[0].clone(), entries[1].clone(), call("b", "exec", serde_json::json!({"code": code}))];
        let waits = [&waits[..], &[entries[3].clone()]].concat();
        let heard = listen(&waits.iter().collect::<Vec<_>>(), &|text| Clean::assembled(text), &|| false);
        let last = heard.last().expect("a result");
        assert_eq!((&*last.label, last.speaker), ("exec cargo test", Speaker::Result { failed: true }));
        let unknown = call("b", "write_stdin", serde_json::json!({"session_id": 9, "chars": "\u{3}"}));
        let stopped = [unknown, entries[3].clone()];
        let heard = listen(&stopped.iter().collect::<Vec<_>>(), &|text| Clean::assembled(text), &|| false);
        assert_eq!(heard.last().expect("a result").speaker, Speaker::Result { failed: false }, "an older process");
    }

    #[test]
    fn the_plain_arguments_of_a_call_stand_on_one_line_after_its_texts() {
        let arguments = serde_json::json!({"path": "src/a.rs", "old": "one\ntwo", "all": true, "count": 5,
            "prefix": ["git", "push"], "edits": [{"old": "x"}], "none": null});
        let call = serde_json::json!({"type": "toolCall", "id": "c", "name": "edit", "arguments": arguments});
        let message = serde_json::json!({"role": "assistant", "content": [call], "stopReason": "toolUse"});
        let line =
            serde_json::json!({"type": "message", "id": "e", "parentId": null, "timestamp": "", "message": message});
        let entry = Arc::new(Entry::parse(line.to_string().into()).expect("an entry"));
        let said = listen(&[&entry], &|text| Clean::assembled(text), &|| false);
        assert_eq!(&*said[0].label, "edit src/a.rs");
        assert_eq!(&*said[0].text, "old: one\ntwo\nall: true, count: 5, prefix: [\"git\",\"push\"]");
    }

    #[test]
    fn a_secret_in_a_list_of_a_call_is_not_heard() {
        let arguments = serde_json::json!({"password": ["hunter2hunter2"], "DB_PASSWORD": 48151623,
            "user_password": [31415926], "client_secret": [true, 1234567890], "count": 5});
        let call = serde_json::json!({"type": "toolCall", "id": "c", "name": "login", "arguments": arguments});
        let message = serde_json::json!({"role": "assistant", "content": [call], "stopReason": "toolUse"});
        let line =
            serde_json::json!({"type": "message", "id": "e", "parentId": null, "timestamp": "", "message": message});
        let entry = Arc::new(Entry::parse(line.to_string().into()).expect("an entry"));
        let clean = |text: &str| crate::summary::cleaner::Cleaner::new(&Default::default()).clean(text);
        let said = listen(&[&entry], &clean, &|| false);
        let is_told = |text: &str| said[0].text.contains(text);
        assert!(!["hunter2", "31415926", "1234567890"].into_iter().any(is_told), "{}", &*said[0].text);
        assert!(is_told("count: 5"), "{}", &*said[0].text);
    }

    #[test]
    fn a_secret_with_an_escaped_quote_in_a_long_line_is_not_heard() {
        let line = format!(r#"{{"a":"{}\n\n\n","password":"abc\"def12345"}}"#, "x ".repeat(300));
        let message = serde_json::json!({"role": "toolResult", "toolCallId": "c", "toolName": "get",
            "content": [{"type": "text", "text": line}]});
        let line =
            serde_json::json!({"type": "message", "id": "e", "parentId": null, "timestamp": "", "message": message});
        let entry = Arc::new(Entry::parse(line.to_string().into()).expect("an entry"));
        let clean = |text: &str| crate::summary::cleaner::Cleaner::new(&Default::default()).clean(text);
        let said = listen(&[&entry], &clean, &|| false);
        assert!(!said[0].text.contains("def12345") && said[0].text.lines().count() > 2, "{}", &*said[0].text);
    }

    #[test]
    fn images_and_the_middle_of_results_leave_older_messages_heard() {
        let entry = |message: serde_json::Value| {
            let line = serde_json::json!({"type": "message", "id": "e", "parentId": null, "timestamp": "", "message": message});
            Arc::new(Entry::parse(line.to_string().into()).expect("an entry"))
        };
        let image = serde_json::json!({"role": "toolResult", "toolCallId": "c", "content": [
            {"type": "image", "data": "A".repeat(1 << 20), "mimeType": "image/png"}]});
        let long = serde_json::json!({"role": "toolResult", "toolCallId": "c", "content": [
            {"type": "text", "text": "words ".repeat(200_000)}]});
        let first =
            entry(serde_json::json!({"role": "assistant", "content": [{"type": "text", "text": "Root cause: x"}]}));
        let entries: Vec<_> =
            std::iter::once(first).chain((0..12).map(|_| entry(image.clone()))).chain([entry(long)]).collect();
        let said = listen(&entries.iter().collect::<Vec<_>>(), &|text| Clean::assembled(text), &|| false);
        assert_eq!(&*said[0].text, "Root cause: x");
    }
}
