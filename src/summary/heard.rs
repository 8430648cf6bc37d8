//! A conversation, heard piece by piece: who said it, under which label, and its cleaned text.

use super::{
    files::without_files,
    harness,
    prose::clip,
    read_lines::{LineNumbers, first_line},
};
use crate::{
    conversation::{
        entry::{Body, Entry},
        message::{self, Block, Message, ToolCall, outline::Role},
    },
    ids::CallId,
    redact::Clean,
    text,
};
use serde_json::Value;
use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

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
    /// Whether an earlier summary has it.
    pub carried: bool,
}

impl Said {
    pub(super) fn new(speaker: Speaker, label: Clean, text: Clean) -> Self {
        Self { speaker, label, text, call: None, numbers: None, carried: false }
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
    let mut calls: HashMap<CallId, Called> = HashMap::new();
    let mut said: Vec<Said> = Vec::new();
    let mut say = |piece: Said| {
        if !piece.text.trim().is_empty() {
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
                let harness::Parts { own, instructions } = harness::parts(&text);
                if let Some(text) = instructions {
                    say(Said::new(Speaker::Instructions, Clean::assembled("instructions"), clean(text)));
                }
                say(Said::new(Speaker::User, Clean::assembled("user"), clean(&own)));
            }
            Message::Assistant(answer) if !answer.failed() => {
                let text = clean(&message::text_of(&answer.content));
                let text = Clean::assembled(text::clip_middle(&text, LONGEST_ANSWER, "\n[…]\n"));
                say(Said::new(Speaker::Assistant, Clean::assembled("assistant"), text));
                for call in answer.calls() {
                    let arguments = text_arguments(call, &clean);
                    let label = label_of(&clean(&call.name), &arguments);
                    let text = call_text(&arguments, &label, plain_arguments(call, &clean).as_deref());
                    say(Said::new(Speaker::Call, label.clone(), text));
                    calls.insert(call.id.clone(), Called { label, same: same(call), first_line: first_line(call) });
                }
            }
            Message::ToolResult(result) => {
                let called = calls.remove(&result.call);
                let raw = message::text_of(&result.content);
                let cleaned = clean(&raw);
                let text = in_whole_lines(&cleaned);
                let read = called.as_ref().and_then(|called| called.first_line).filter(|_| !result.is_error);
                let numbers = read.and_then(|first| LineNumbers::of(first, &raw, &cleaned, &text, GAP.trim()));
                let call = called.as_ref().map(|called| called.same);
                let label = called.map_or_else(|| clean(&result.tool), |called| called.label);
                let speaker = Speaker::Result { failed: result.is_error };
                say(Said { call, numbers, ..Said::new(speaker, label, Clean::assembled(text)) });
            }
            Message::Execution(run) if !run.excluded => {
                let label = Clean::assembled(format!("user ran {}", clip(&clean(&run.command), 80)));
                say(Said::new(Speaker::Aside, label, clipped(&format!("{}\n{}", run.command, run.output))));
            }
            Message::Developer(_) | Message::Custom(_) | Message::Summary(_) => {
                say(Said::new(Speaker::Aside, Clean::assembled("note"), clipped(&content.text())));
            }
            Message::Assistant(_) | Message::Execution(_) | Message::System(_) => {}
        }
    }
    said
}

/// A call whose result was not heard yet.
struct Called {
    label: Clean,
    /// A number that is the same for the same call.
    same: u64,
    first_line: Option<usize>,
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

/// A longer word in a label is clipped, in characters.
const LONGEST_PATH: usize = 240;

/// The arguments of a call that are texts, cleaned.
fn text_arguments(call: &ToolCall, clean: &dyn Fn(&str) -> Clean) -> Vec<(Clean, Clean)> {
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    // A name can give a value away: both are looked at together.
    let cleaned = |name: &String, value: &str| {
        let together = clean(&format!("{name}={value}"));
        match together.strip_prefix(&format!("{name}=")) {
            Some(value) if value.contains("[REDACTED:") => Clean::assembled(value),
            _ => clean(value),
        }
    };
    let texts = arguments.as_object().into_iter().flatten();
    texts.filter_map(|(name, value)| Some((clean(name), cleaned(name, value.as_str()?)))).collect()
}

/// The arguments of a call that are numbers, switches and lists of plain values, on one line, without those that are secret.
fn plain_arguments(call: &ToolCall, clean: &dyn Fn(&str) -> Clean) -> Option<Clean> {
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    let is_plain = |value: &Value| match value {
        Value::Number(_) | Value::Bool(_) => true,
        Value::Array(items) => !items.is_empty() && !items.iter().any(|item| item.is_object() || item.is_array()),
        Value::Null | Value::String(_) | Value::Object(_) => false,
    };
    // A name gives a value away in one form and not in the other.
    let is_open = |name: &String, value: &Value| {
        let items = value.as_array().map(Vec::as_slice).unwrap_or_default().iter();
        let items = items.map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned));
        let forms = |value: &str| {
            [format!("{{\"{name}\": {value}}}"), format!("{{\"{name}\": \"{value}\"}}"), format!("{name}={value}")]
        };
        let all = forms(&value.to_string()).into_iter().chain(items.flat_map(|item| forms(&item)));
        all.into_iter().all(|form| *clean(&form) == form)
    };
    let plain = arguments.as_object().into_iter().flatten().filter(|(_, value)| is_plain(value));
    let open = plain.filter(|(name, value)| is_open(name, value));
    let said: Vec<String> = open.map(|(name, value)| format!("{name}: {value}")).collect();
    (!said.is_empty()).then(|| clean(&said.join(", ")))
}

/// The tool and the argument that says most: what a person would call this call.
fn label_of(tool: &Clean, arguments: &[(Clean, Clean)]) -> Clean {
    const TELLING: [&str; 14] = [
        "path",
        "file_path",
        "filePath",
        "absolute_path",
        "target_file",
        "notebook_path",
        "command",
        "cmd",
        "input",
        "patch",
        "pattern",
        "query",
        "url",
        "description",
    ];
    let named = |name: &&str| arguments.iter().find(|(it, _)| **it == **name);
    match TELLING.iter().find_map(named).or(arguments.first()) {
        Some((_, value)) if value.starts_with("*** Begin Patch") => {
            let marks = ["*** Update File: ", "*** Add File: ", "*** Delete File: "];
            let file = value.lines().find_map(|line| marks.iter().find_map(|mark| line.strip_prefix(mark)));
            Clean::assembled(format!("{tool} {}", file.unwrap_or_default().trim()))
        }
        // A path is not cut.
        Some((_, value)) if !value.contains(char::is_whitespace) => {
            Clean::assembled(format!("{tool} {}", clip(value, LONGEST_PATH)))
        }
        Some((_, value)) => Clean::assembled(format!("{tool} {}", clip(value, 80))),
        None => tool.clone(),
    }
}

/// Every text argument of a call, line by line: what was written and run is in there. What the label says already is
/// not said again. `plain`: the other arguments.
fn call_text(arguments: &[(Clean, Clean)], label: &Clean, plain: Option<&str>) -> Clean {
    let said = arguments.iter().filter(|(_, value)| !label.ends_with(&**value));
    let clipped = |text: &str| text::clip_middle(text, 4_000, "\n[…]\n");
    let said = said.map(|(name, value)| format!("{name}: {}", clipped(value)));
    Clean::assembled(said.chain(plain.map(clipped)).collect::<Vec<_>>().join("\n"))
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
    fn the_plain_arguments_of_a_call_stand_on_one_line_after_its_texts() {
        let arguments = serde_json::json!({"path": "src/a.rs", "old": "one\ntwo", "all": true, "limit": 5,
            "prefix": ["git", "push"], "edits": [{"old": "x"}], "none": null});
        let call = serde_json::json!({"type": "toolCall", "id": "c", "name": "edit", "arguments": arguments});
        let message = serde_json::json!({"role": "assistant", "content": [call], "stopReason": "toolUse"});
        let line =
            serde_json::json!({"type": "message", "id": "e", "parentId": null, "timestamp": "", "message": message});
        let entry = Arc::new(Entry::parse(line.to_string().into()).expect("an entry"));
        let said = listen(&[&entry], &|text| Clean::assembled(text), &|| false);
        assert_eq!(&*said[0].label, "edit src/a.rs");
        assert_eq!(&*said[0].text, "old: one\ntwo\nall: true, limit: 5, prefix: [\"git\",\"push\"]");
    }

    #[test]
    fn a_secret_in_a_list_of_a_call_is_not_heard() {
        let arguments = serde_json::json!({"password": ["hunter2hunter2"], "DB_PASSWORD": 48151623,
            "user_password": [31415926], "client_secret": [true, 1234567890], "limit": 5});
        let call = serde_json::json!({"type": "toolCall", "id": "c", "name": "login", "arguments": arguments});
        let message = serde_json::json!({"role": "assistant", "content": [call], "stopReason": "toolUse"});
        let line =
            serde_json::json!({"type": "message", "id": "e", "parentId": null, "timestamp": "", "message": message});
        let entry = Arc::new(Entry::parse(line.to_string().into()).expect("an entry"));
        let clean = |text: &str| crate::summary::cleaner::Cleaner::new(&Default::default()).clean(text);
        let said = listen(&[&entry], &clean, &|| false);
        let is_told = |text: &str| said[0].text.contains(text);
        assert!(!["hunter2", "31415926", "1234567890"].into_iter().any(is_told), "{}", &*said[0].text);
        assert!(is_told("limit: 5"), "{}", &*said[0].text);
    }

    #[test]
    fn images_and_the_middle_of_results_leave_older_messages_heard() {
        let entry = |message: Value| {
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
