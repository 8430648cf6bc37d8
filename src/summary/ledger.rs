//! The facts of a conversation: requests and their outcomes, rules of the user, decisions, failures, the todo list.

use super::{
    todo,
    words::{COMMANDS, Words},
};
use crate::{
    conversation::{
        entry::{Body, Entry, Todo},
        message::{self, Block, Message, ToolCall, outline::Role},
    },
    ids::CallId,
    redact::Clean,
    text,
};
use serde_json::Value;
use std::{
    collections::HashMap,
    sync::{Arc, LazyLock},
};

/// A piece of the conversation with its secrets gone and our tags made harmless.
#[derive(Debug, Clone)]
pub(super) struct Said {
    pub speaker: Speaker,
    /// Heading of a line: the tool and its most telling argument.
    pub label: Clean,
    pub text: Clean,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    User,
    Assistant,
    Call,
    Result {
        failed: bool,
    },
    /// A command of the user, an extension, another branch.
    Aside,
}

/// How much of one tool result is looked at, in characters: its beginning and its end say most.
const LONGEST_RESULT: usize = 24_000;

/// A request of the user and what came of it.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub text: String,
    pub outcome: Option<String>,
}

/// Something that failed.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    pub label: String,
    pub line: String,
    /// The same was tried again later and worked.
    pub resolved: bool,
}

/// The facts of a conversation, each list from the oldest to the newest.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub requests: Vec<Request>,
    pub constraints: Vec<String>,
    pub decisions: Vec<String>,
    pub failures: Vec<Failure>,
    pub todos: Vec<Todo>,
    /// Last words of the agent.
    pub narrative: Vec<String>,
}

/// The largest conversation that is heard whole, in bytes of its lines: four million tokens, more than any window. The facts
/// of a larger one come from its newest part, and from the messages of the user, the same size of them.
const HEARD: usize = 16 << 20;

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
        let before = *room;
        *room = before.saturating_sub(entry.line().len());
        before > 0
    }
}

/// The conversation, piece by piece, every text of it through `clean`; `stop` ends the work early.
pub(super) fn listen(entries: &[&Arc<Entry>], clean: &dyn Fn(&str) -> Clean, stop: &dyn Fn() -> bool) -> Vec<Said> {
    let mut labels: HashMap<CallId, Clean> = HashMap::new();
    let mut said = Vec::new();
    let mut say = |speaker, label: Clean, text: Clean| {
        if !text.trim().is_empty() {
            said.push(Said { speaker, label, text });
        }
    };
    // Cleaned before it is clipped: half of a secret looks like none.
    let clipped = |text: &str| Clean::assembled(text::clip_middle(&clean(text), LONGEST_RESULT, "\n[…]\n"));
    for entry in Hearing::of(entries) {
        if stop() {
            break;
        }
        let content = match &entry.body {
            Body::BranchSummary(branch) => {
                say(Speaker::Aside, Clean::assembled("another branch"), clean(&branch.summary));
                continue;
            }
            Body::CustomMessage(custom) => {
                say(Speaker::Aside, clean(&custom.custom_type), clipped(&message::text_of(&custom.content)));
                continue;
            }
            Body::Message(_) => match entry.message_once() {
                Some(message) => message,
                None => continue,
            },
            _ => continue,
        };
        match &*content {
            Message::User(blocks) => say(Speaker::User, Clean::assembled("user"), clean(&with_images(blocks))),
            Message::Assistant(answer) if !answer.failed() => {
                say(Speaker::Assistant, Clean::assembled("assistant"), clean(&message::text_of(&answer.content)));
                for call in answer.calls() {
                    let arguments = text_arguments(call, &clean);
                    let label = label_of(&clean(&call.name), &arguments);
                    say(Speaker::Call, label.clone(), call_text(&arguments, &label));
                    labels.insert(call.id.clone(), label);
                }
            }
            Message::ToolResult(result) => {
                let label = labels.get(&result.call).cloned().unwrap_or_else(|| clean(&result.tool));
                let speaker = Speaker::Result { failed: result.is_error };
                say(speaker, label, clipped(&message::text_of(&result.content)));
            }
            Message::Execution(run) if !run.excluded => {
                let label = Clean::assembled(format!("user ran {}", text::one_line(&clean(&run.command), 80)));
                say(Speaker::Aside, label, clipped(&format!("{}\n{}", run.command, run.output)));
            }
            Message::Developer(_) | Message::Custom(_) | Message::Summary(_) => {
                say(Speaker::Aside, Clean::assembled("note"), clipped(&content.text()));
            }
            Message::Assistant(_) | Message::Execution(_) | Message::System(_) => {}
        }
    }
    said
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

/// The tool and the argument that says most: what a person would call this call.
fn label_of(tool: &Clean, arguments: &[(Clean, Clean)]) -> Clean {
    const TELLING: [&str; 12] = [
        "path",
        "file_path",
        "filePath",
        "absolute_path",
        "target_file",
        "notebook_path",
        "command",
        "cmd",
        "pattern",
        "query",
        "url",
        "description",
    ];
    let named = |name: &&str| arguments.iter().find(|(it, _)| **it == **name);
    match TELLING.iter().find_map(named).or(arguments.first()) {
        Some((_, value)) => Clean::assembled(format!("{tool} {}", text::one_line(value, 80))),
        None => tool.clone(),
    }
}

/// Every text argument of a call, line by line: what was written and run is in there. What the label says already is
/// not said again.
fn call_text(arguments: &[(Clean, Clean)], label: &Clean) -> Clean {
    let said = arguments.iter().filter(|(_, value)| !label.ends_with(&**value));
    let said = said.map(|(name, value)| format!("{name}: {}", text::clip_middle(value, 4_000, "\n[…]\n")));
    Clean::assembled(said.collect::<Vec<_>>().join("\n"))
}

/// An acknowledgement asks for nothing.
fn is_request(text: &str) -> bool {
    const EMPTY: &[&str] = &[
        "ok",
        "okay",
        "yes",
        "yep",
        "yeah",
        "no",
        "y",
        "n",
        "yo",
        "wow",
        "nice",
        "great",
        "cool",
        "good",
        "perfect",
        "thanks",
        "thank you",
        "thx",
        "go",
        "go on",
        "continue",
        "sure",
        "done",
        "ls",
        "hi",
        "hello",
        "and",
        "really",
    ];
    let words = text.to_lowercase();
    !EMPTY.contains(&words.trim_matches(|char: char| !char.is_alphanumeric()))
}

impl Ledger {
    /// Gathers the facts of what was said, and the newest todo list of the calls in `entries`.
    pub(super) fn of(
        said: &[Said],
        entries: &[&Arc<Entry>],
        todo_tools: &[String],
        clean: &dyn Fn(&str) -> Clean,
    ) -> Self {
        let mut ledger = Self::default();
        for piece in said {
            match piece.speaker {
                Speaker::User => ledger.user(&piece.text),
                Speaker::Assistant => ledger.assistant(&piece.text),
                Speaker::Result { failed } => ledger.result(piece, failed),
                Speaker::Call | Speaker::Aside => {}
            }
        }
        ledger.todos = todo::list(entries.iter().copied(), todo_tools);
        for todo in &mut ledger.todos {
            todo.text = clean(&todo.text).into_string();
        }
        ledger
    }

    fn user(&mut self, said: &str) {
        let request = text::one_line(&without_pastes(said), 240);
        if !request.is_empty() && is_request(&request) {
            self.requests.push(Request { text: request, outcome: None });
        }
        for sentence in sentences(said).filter(|sentence| is_prose(sentence)) {
            if is_constraint(sentence) {
                add_once(&mut self.constraints, text::one_line(sentence, 240));
            }
        }
    }

    fn assistant(&mut self, said: &str) {
        if let Some(request) = self.requests.last_mut() {
            // The last answer of a turn says what came of it; a sentence that ends with a colon says it further down.
            let telling = sentences(said).find(|sentence| !sentence.ends_with(':') && sentence.split(' ').count() > 2);
            if let Some(sentence) = telling {
                request.outcome = Some(text::one_line(sentence, 160));
            }
        }
        for sentence in sentences(said) {
            if is_decision(sentence) {
                add_once(&mut self.decisions, text::one_line(sentence, 220));
            }
        }
        self.narrative.push(said.to_owned());
    }

    fn result(&mut self, piece: &Said, failed: bool) {
        if !failed {
            for failure in self.failures.iter_mut().filter(|failure| failure.label == *piece.label) {
                failure.resolved = true;
            }
            return;
        }
        let line = text::one_line(telling_line(&piece.text), 240);
        // grep and the like fail by finding nothing.
        if line.is_empty() || line.starts_with("(no output)") || line.starts_with("Command exited with code") {
            return;
        }
        self.failures.retain(|failure| failure.label != *piece.label || failure.line != line);
        self.failures.push(Failure { label: piece.label.to_string(), line, resolved: false });
    }
}

/// The line of a failure that says what failed: one that reads like an error, else the first. Lines too long to read
/// are code that was thrown out along with it.
fn telling_line(text: &str) -> &str {
    const READABLE: usize = 400;
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty() && line.len() <= READABLE);
    let error = |line: &&str| {
        let line = line.to_ascii_lowercase();
        ["error", "panicked", "exception", "fatal"]
            .iter()
            .any(|word| line.match_indices(word).any(|(at, _)| line[at + word.len()..].starts_with([':', '[', ' '])))
    };
    let failed = |line: &&str| {
        let line = line.to_ascii_lowercase();
        ["failed", "cannot", "not found", "denied", "no such", "unable"].iter().any(|word| line.contains(word))
    };
    lines().find(error).or_else(|| lines().find(failed)).or_else(|| lines().next()).unwrap_or_default()
}

/// A user's own words without what was pasted after them: long lines, code blocks, many lines.
fn without_pastes(text: &str) -> String {
    let mut code = false;
    let mut kept = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            code = !code;
            continue;
        }
        if !code && !line.trim().is_empty() {
            kept.push(line.trim());
        }
        if kept.len() == 12 {
            break;
        }
    }
    kept.join(" ")
}

/// Sentences of prose: cut at line ends and after full stops, outside of code blocks, of a readable length.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut code = false;
    text.lines()
        .filter(move |line| {
            let fence = line.trim_start().starts_with("```");
            code ^= fence;
            !code && !fence
        })
        .flat_map(sentences_of_line)
        .map(|sentence| sentence.trim().trim_start_matches(['-', '*', '#', '>', ' ']))
        .filter(|sentence| sentence.len() >= 8 && sentence.len() <= 600)
}

/// A full stop ends a sentence only before a blank: those in `main.rs` and `0.5` do not.
fn sentences_of_line(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.char_indices().find_map(|(at, char)| {
            let after = at + char.len_utf8();
            let stop = char == '。' || matches!(char, '.' | '!' | '?') && rest[after..].starts_with(' ');
            stop.then_some(after)
        });
        let (sentence, tail) = rest.split_at(end.unwrap_or(rest.len()));
        rest = tail;
        Some(sentence)
    })
}

fn add_once(list: &mut Vec<String>, text: String) {
    if !text.is_empty() {
        list.retain(|it| *it != text);
        list.push(text);
    }
}

/// A person's own words, not a log or a piece of JSON that was pasted, and no question.
fn is_prose(sentence: &str) -> bool {
    let strange =
        sentence.chars().filter(|char| matches!(char, '{' | '}' | '"' | '\\' | '|' | '<' | '>' | ';' | '=')).count();
    sentence.len() <= 400 && strange * 20 <= sentence.len() && !sentence.ends_with('?') && !sentence.starts_with("at ")
}

/// Whether a sentence of the user sets a rule.
pub(super) fn is_constraint(sentence: &str) -> bool {
    static WORDS: LazyLock<Words> = LazyLock::new(|| {
        const WISHES: &[&str] = &[
            "only",
            "prefer",
            "avoid",
            "should not",
            "shouldn't",
            "required",
            "instead of",
            "without",
            "keep it",
            "i want",
            "no more",
            "ensure",
            "use the",
            "use a",
            "we use",
            // German, French, Italian, Russian
            "müssen",
            "nicht",
            "keine",
            "ne pas",
            "mai ",
            "нужно",
        ];
        Words::new(COMMANDS.iter().chain(WISHES))
    });
    let lower = sentence.to_lowercase();
    WORDS.stand_in(&lower) || lower.starts_with("use ") || lower.starts_with("no ") || lower.contains(". use ")
}

/// Whether a sentence of the agent settles something.
fn is_decision(sentence: &str) -> bool {
    static PHRASES: LazyLock<Words> = LazyLock::new(|| {
        Words::new(&[
            "decided",
            "decision",
            "instead of",
            "rather than",
            "we'll use",
            "i'll use",
            "will use",
            "chose",
            "choose",
            "going with",
            "root cause",
            "the fix is",
            "turns out",
            "the problem is",
            "the issue is",
            "because",
            "the reason",
            "trade-off",
            "tradeoff",
            "must be",
            "has to be",
            "so that",
        ])
    });
    let lower = sentence.to_lowercase();
    // A plan of the agent is no decision yet, and a heading is none.
    let plan = ["let me", "now let", "now i", "i'll now", "first,"].iter().any(|start| lower.starts_with(start));
    if plan || sentence.ends_with(':') || sentence.split_whitespace().count() < 5 {
        return false;
    }
    PHRASES.are_in(&lower)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_of_the_user_are_told_from_other_words() {
        for rule in [
            "You must not touch the vendor folder",
            "never push to main",
            "Don't use unwrap",
            "always run the tests",
            "use tabs",
            "bitte niemals force-push",
            "必须使用中文回答",
            "only change src/lib.rs",
            "I prefer short names",
            "Work without the network",
        ] {
            assert!(is_constraint(rule), "{rule}");
        }
        for word in COMMANDS {
            assert!(is_constraint(&format!("and {word} so")), "{word}");
        }
        for other in ["read the file please", "what does this do?", "mustard is yellow", "looks good"] {
            assert!(!is_constraint(other), "{other}");
        }
    }

    #[test]
    fn full_stops_in_names_end_no_sentence() {
        let found: Vec<&str> =
            sentences("Look at main.rs and 0.5 first. Then go on.\n```\nnot. this.\n```\n- a list item").collect();
        assert_eq!(found, ["Look at main.rs and 0.5 first.", "Then go on.", "a list item"]);
    }

    #[test]
    fn a_failure_that_worked_later_is_resolved() {
        let said = |failed, label: &str, text: &str| Said {
            speaker: Speaker::Result { failed },
            label: Clean::assembled(label),
            text: Clean::assembled(text),
        };
        let pieces = [
            said(true, "bash cargo test", "running\nerror[E0308]: mismatched types"),
            said(true, "bash make", "make: *** no rule"),
            said(false, "bash cargo test", "ok"),
        ];
        let ledger = Ledger::of(&pieces, &[], &[], &|text| Clean::assembled(text));
        let found: Vec<_> = ledger.failures.iter().map(|it| (it.line.as_str(), it.resolved)).collect();
        assert_eq!(found, [("error[E0308]: mismatched types", true), ("make: *** no rule", false)]);
    }
}
