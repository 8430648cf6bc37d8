//! The arguments of a call: a label that a person would call it by, and the text that it brought.

use super::title::title;
use crate::{
    conversation::message::ToolCall,
    redact::Clean,
    summary::{files::patch, prose::clip, shell},
    text,
};
use serde_json::{Map, Value};
use std::{collections::HashSet, sync::LazyLock};

/// The arguments of a call, without those that only say how it is run.
pub(super) struct Arguments {
    /// The texts by their names.
    named: Vec<(Clean, Clean)>,
    /// Numbers, switches and lists.
    plain: Option<Clean>,
    /// The commands that it runs.
    script: Option<Clean>,
    /// The lines of a piece of code that call other tools.
    calls: Option<Clean>,
    /// Lines that an edit takes out.
    old: Vec<Clean>,
    /// Lines that an edit puts in.
    new: Vec<Clean>,
    /// The first file of a patch.
    patched: Option<Clean>,
    /// The process that it waits for or writes to.
    process: Option<String>,
    /// Whether it ends that process.
    stops: bool,
}

/// A longer word in a label is clipped, in characters.
const LONGEST_PATH: usize = 240;

/// Longest label of words, in characters.
const LONGEST_LABEL: usize = 100;

/// Arguments that say how a call is run, and nothing of what it does.
const OPTIONS: [&str; 16] = [
    "yield_time_ms",
    "max_output_tokens",
    "max_tokens",
    "timeout",
    "timeout_ms",
    "timeoutMs",
    "run_in_background",
    "sandbox_permissions",
    "with_escalated_permissions",
    "prefix_rule",
    "justification",
    "output_mode",
    "head_limit",
    "offset",
    "limit",
    "session_id",
];

/// Names of the text that an edit takes out.
const OLD: [&str; 5] = ["old_string", "oldString", "old_str", "oldText", "old_text"];

/// Names of the text that an edit puts in.
const NEW: [&str; 5] = ["new_string", "newString", "new_str", "newText", "new_text"];

impl Arguments {
    pub(super) fn of(call: &ToolCall, clean: &dyn Fn(&str) -> Clean) -> Self {
        let all: Map<String, Value> = serde_json::from_str(&call.arguments).unwrap_or_default();
        let process = ["cell_id", "session_id"].iter().find_map(|name| all.get(*name)).map(|id| match id {
            Value::String(id) => id.clone(),
            id => id.to_string(),
        });
        let inner = shell::CODES.iter().find_map(|name| all.get(*name)?.as_str()).map(Inner::of).unwrap_or_default();
        let stop = |chars: &str| !chars.is_empty() && chars.chars().all(|char| matches!(char, '\u{3}' | '\u{4}'));
        let script = shell::script_of(&all).map(|script| clean(&script));
        let texts: Vec<(&String, &str)> = all
            .iter()
            .filter(|(name, _)| !OPTIONS.contains(&name.as_str()))
            .filter_map(|(name, value)| Some((name, value.as_str()?)))
            .collect();
        let code = texts.iter().find(|(name, value)| {
            script.is_some() && shell::CODES.contains(&name.as_str()) && value.contains("tools.")
        });
        let calls = code.and_then(|(_, code)| shell::other_calls(code)).map(|calls| clean(&calls));
        let code = code.map(|(name, _)| (*name).clone());
        let patch = texts.iter().find_map(|(name, value)| Some(((*name).clone(), patch_in(value)?)));
        let edit = |name: &String| OLD.contains(&name.as_str()) || NEW.contains(&name.as_str());
        let told = texts.iter().filter(|(name, _)| {
            !edit(name) && code.as_ref() != Some(*name) && patch.as_ref().is_none_or(|(patch, _)| patch != *name)
        });
        let mut arguments = Self {
            named: told.map(|(name, value)| (clean(name), cleaned(name, value, clean))).collect(),
            plain: plain(&all, clean),
            script,
            calls,
            old: Vec::new(),
            new: Vec::new(),
            patched: None,
            process: process.or(inner.process),
            stops: inner.stops || all.get("chars").and_then(Value::as_str).is_some_and(stop),
        };
        arguments.edits(&all, clean);
        if let Some((_, patch)) = patch {
            arguments.patch(&clean(&patch));
        }
        arguments
    }

    /// Takes the texts of edits in: those of the call, or those in its list.
    fn edits(&mut self, all: &Map<String, Value>, clean: &dyn Fn(&str) -> Clean) {
        let listed = all.get("edits").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object);
        for edit in std::iter::once(all).chain(listed) {
            let text = |names: &[&str]| names.iter().find_map(|name| edit.get(*name)?.as_str()).map(clean);
            self.old.extend(text(&OLD));
            self.new.extend(text(&NEW));
        }
    }

    /// Takes a patch in: of its lines, those that it takes out are gone.
    fn patch(&mut self, patch: &Clean) {
        let (old, kept): (Vec<&str>, Vec<&str>) = patch.lines().partition(|line| line.starts_with('-'));
        let old: Vec<&str> = old.into_iter().map(|line| &line[1..]).collect();
        self.old.push(Clean::assembled(old.join("\n")));
        let marks = [patch::BEGIN, patch::END, "@@"];
        // The label has the first file.
        let mut files = 0;
        let mut is_told = |line: &str| {
            files += usize::from(line.starts_with(patch::UPDATE));
            !(marks.contains(&line.trim()) || line.starts_with(patch::UPDATE) && files == 1)
        };
        let first = patch::files(patch).into_iter().next();
        self.patched = first.map(|file| Clean::assembled(file.path));
        let new: Vec<&str> = kept.into_iter().filter(|line| is_told(line)).collect();
        self.new.push(Clean::assembled(new.join("\n")));
    }

    /// The commands that the call runs.
    pub(super) fn script(&self) -> Option<&str> {
        self.script.as_deref()
    }

    /// The process that the call goes on with.
    pub(super) fn process(&self) -> Option<&str> {
        self.process.as_deref()
    }

    /// Whether the call ends the process that it goes on with.
    pub(super) fn stops(&self) -> bool {
        self.stops
    }

    /// The lines that an edit takes out and does not put in again.
    pub(super) fn gone(&self) -> Clean {
        let bare = |line: &'_ str| line.trim_start_matches('+').trim().to_owned();
        let new: HashSet<String> = self.new.iter().flat_map(|text| text.lines()).map(bare).collect();
        let old = self.old.iter().flat_map(|text| text.lines()).map(str::trim);
        let gone: Vec<&str> = old.filter(|line| !line.is_empty() && !new.contains(*line)).collect();
        Clean::assembled(gone.join("\n"))
    }

    /// The tool and the argument that says most: what a person would call this call.
    pub(super) fn label(&self, tool: &Clean) -> Clean {
        const TELLING: [&str; 12] = [
            "path",
            "file_path",
            "filePath",
            "absolute_path",
            "target_file",
            "notebook_path",
            "input",
            "pattern",
            "query",
            "url",
            "subject",
            "description",
        ];
        let named = |name: &&str| self.named.iter().find(|(it, _)| **it == **name);
        if let Some(script) = &self.script {
            return Clean::assembled(format!("{tool} {}", shortened(&title(script))));
        }
        // A search is known by its words, and not by the folder that it looks in.
        let searches = ["grep", "glob", "search", "find"].iter().any(|word| tool.to_lowercase().contains(word));
        let words = ["pattern", "query", "regex"].iter().find_map(named).filter(|_| searches);
        match words.or_else(|| TELLING.iter().find_map(named)).or(self.named.first()) {
            Some((_, value)) => Clean::assembled(format!("{tool} {}", shortened(value))),
            None => match &self.patched {
                Some(file) => Clean::assembled(format!("{tool} {file}")),
                None => tool.clone(),
            },
        }
    }

    /// The commands and the texts that were written, line by line, without what the label says already.
    pub(super) fn text(&self, label: &Clean) -> Clean {
        let clipped = |text: &str| text::clip_middle(text, 4_000, "\n[…]\n");
        // The description of a command says what the command says.
        let of_script = |name: &str| shell::COMMANDS.contains(&name) || name == "description";
        let is_script = |name: &Clean| self.script.is_some() && of_script(name);
        let script = self.script.as_ref().filter(|script| !label.ends_with(&***script));
        let script = script.map(|script| format!("$ {}", clipped(script)));
        let said = self.named.iter().filter(|(name, value)| !is_script(name) && !label.ends_with(&**value));
        let said = said.map(|(name, value)| match &**name {
            "content" | "file_text" => clipped(value),
            name => format!("{name}: {}", clipped(value)),
        });
        let new = self.new.iter().map(|text| clipped(text));
        let plain = self.plain.as_deref().map(clipped);
        let calls = self.calls.as_deref().map(clipped);
        Clean::assembled(
            script.into_iter().chain(calls).chain(said).chain(new).chain(plain).collect::<Vec<_>>().join("\n"),
        )
    }
}

/// The process in a piece of code that calls the tool for one, and runs no commands.
#[derive(Default)]
struct Inner {
    process: Option<String>,
    /// Whether the call ends it.
    stops: bool,
}

impl Inner {
    fn of(code: &str) -> Self {
        static PROCESS: LazyLock<regex::Regex> = LazyLock::new(|| {
            regex::Regex::new(r#"\b(?:session_id|cell_id)["']?\s*:\s*["']?([\w-]+)"#).expect("a fixed pattern")
        });
        static STOP: LazyLock<regex::Regex> = LazyLock::new(|| {
            regex::Regex::new(r#"\bchars["']?\s*:\s*["'`](?:\\u000[34]|\\x0[34]|[\x03\x04])+["'`]"#)
                .expect("a fixed pattern")
        });
        if !code.contains("tools.") || code.contains("cmd:") {
            return Self::default();
        }
        let mut processes = PROCESS.captures_iter(code).map(|found| found[1].to_owned());
        let process = processes.next().filter(|_| processes.next().is_none());
        Self { stops: process.is_some() && STOP.is_match(code), process }
    }
}

/// A value on one line of a label. A path is not cut.
fn shortened(value: &str) -> String {
    clip(value, if value.contains(char::is_whitespace) { LONGEST_LABEL } else { LONGEST_PATH })
}

/// The patches that a text is, or that a piece of code gives to a tool, as one text.
fn patch_in(value: &str) -> Option<String> {
    let patches = patch::all_in(value);
    (!patches.is_empty()).then(|| patches.join("\n"))
}

/// The value of an argument. Its name can give a secret away: both are looked at together.
fn cleaned(name: &str, value: &str, clean: &dyn Fn(&str) -> Clean) -> Clean {
    let together = clean(&format!("{name}={value}"));
    match together.strip_prefix(&format!("{name}=")) {
        Some(value) if value.contains("[REDACTED:") => Clean::assembled(value),
        _ => clean(value),
    }
}

/// The arguments that are numbers, switches and lists of plain values, on one line, without those that are secret.
fn plain(all: &Map<String, Value>, clean: &dyn Fn(&str) -> Clean) -> Option<Clean> {
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
    let told = all.iter().filter(|(name, value)| {
        is_plain(value) && !OPTIONS.contains(&name.as_str()) && !shell::COMMANDS.contains(&name.as_str())
    });
    let open = told.filter(|(name, value)| is_open(name, value));
    let said: Vec<String> = open.map(|(name, value)| format!("{name}: {value}")).collect();
    (!said.is_empty()).then(|| clean(&said.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(name: &str, arguments: Value) -> (String, String, String) {
        let call = ToolCall { id: "c".into(), name: name.to_owned(), arguments: arguments.to_string() };
        let arguments = Arguments::of(&call, &|text| Clean::assembled(text));
        let label = arguments.label(&Clean::assembled(name));
        let text = arguments.text(&label).into_string();
        (label.into_string(), text, arguments.gone().into_string())
    }

    #[test]
    fn an_edit_brings_its_new_lines_and_takes_its_old_ones() {
        let (label, text, gone) =
            of("edit", json!({"path": "src/a.rs", "old_string": "one\n  two", "new_string": "two\nthree"}));
        assert_eq!((&*label, &*text, &*gone), ("edit src/a.rs", "two\nthree", "one"));
        let (_, text, gone) = of(
            "edit",
            json!({"path": "a", "edits": [{"oldText": "x", "newText": "y"}, {"oldText": "v", "newText": "w"}]}),
        );
        assert_eq!((&*text, &*gone), ("y\nw", "x\nv"));
        let patch = "*** Begin Patch\n*** Update File: src/b.rs\n@@\n-old line\n+new line\n same\n*** End Patch";
        let (label, text, gone) = of("apply_patch", json!({"input": patch}));
        assert_eq!((&*label, &*text, &*gone), ("apply_patch src/b.rs", "+new line\n same", "old line"));
        let code = format!("const patch = {};\ntext(await tools.apply_patch(patch));", json!(patch));
        assert_eq!(of("exec", json!({"input": code})).0, "exec src/b.rs");
    }

    #[test]
    fn commands_stand_once_and_without_the_options_of_their_call() {
        let (label, text, _) = of("bash", json!({"command": "cargo test", "timeout": 300}));
        assert_eq!((&*label, &*text), ("bash cargo test", ""));
        let (label, text, _) =
            of("exec_command", json!({"cmd": "cd /x && cargo test", "yield_time_ms": 5, "workdir": "/x"}));
        assert_eq!((&*label, &*text), ("exec_command cargo test", "$ cd /x && cargo test\nworkdir: /x"));
        let code = r#"const r = await tools.exec_command({cmd:"git log\nls",workdir:"/x"}); text(r.output)"#;
        let (label, text, _) = of("exec", json!({"input": code}));
        assert_eq!((&*label, &*text), ("exec git log …", "$ git log\nls"));
    }
}
