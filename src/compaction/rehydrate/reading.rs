//! The calls of a path that touch files and load texts, and the files and texts that are there at its end.

use super::{FileToRead, FileUse, LoadKept, Loaded, MOST_OF_ONE, clipped};
use crate::{
    compaction::prune::named_part,
    conversation::{
        context,
        entry::{CarriedLoad, Entry, LoadKind},
        message::{Message, ToolCall, outline::Role, text_of},
        path::Path,
        tokens::Scale,
    },
    ids::{CallId, EntryId},
    redact::Secrets,
    settings::{FileOperation, Settings, ToolSettings},
    summary::{
        files::{files_of, skills},
        shell::is_absolute,
    },
    text,
};
use serde_json::Value;
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

/// Arguments with the whole text of a file that is written.
const CONTENTS: [&str; 5] = ["content", "contents", "file_text", "fileText", "text"];

/// The longest path, in bytes: Linux's `PATH_MAX`.
const LONGEST_PATH: usize = 4_096;

/// The longest name of a loaded text, in characters.
const LONGEST_NAME: usize = 200;

/// The longest text that is read for secrets, in characters. The middle of a longer one would not stay anyhow.
const LONGEST_TEXT: usize = 256 * 1024;

/// Files and loaded texts while a path is read.
#[derive(Debug, Clone)]
pub(super) struct Reading {
    rules: Arc<Rules>,
    /// Calls without their results so far.
    calls: HashMap<CallId, Vec<Touch>>,
    files: BTreeMap<String, Touched>,
    loads: Vec<Load>,
    /// Entries that are sent with another content.
    edited: HashSet<EntryId>,
}

#[derive(Debug)]
struct Rules {
    tools: ToolSettings,
    cwd: Option<String>,
    secrets: Secrets,
    scale: Scale,
}

/// A file that was touched and not removed.
#[derive(Debug, Clone)]
pub(super) struct Touched {
    /// The place of its first use.
    first: usize,
    /// The place of its newest change.
    pub changed: Option<usize>,
    /// The place of its newest use.
    pub newest: usize,
    /// The result of its newest change, or else of its newest read.
    entry: EntryId,
    whole: Option<Whole>,
}

/// The newest text of a whole file.
#[derive(Debug, Clone)]
struct Whole {
    /// The entry with the text.
    entry: EntryId,
    /// The place of the result.
    place: usize,
    /// Size of the text, in tokens.
    tokens: u64,
}

/// A loaded text.
#[derive(Debug, Clone)]
pub(super) struct Load {
    /// Its place; `None` for a text that an earlier compaction carries.
    pub place: Option<usize>,
    /// The text.
    pub text: Arc<CarriedLoad>,
    /// Whether the text can stay.
    pub may_stay: bool,
}

/// The effect of a call, which counts once its result says that it succeeded.
#[derive(Debug, Clone)]
enum Touch {
    /// A file is read; `whole`: all of it is.
    Read { path: String, whole: bool },
    /// A file is changed. With the entry and the size of the text that replaces all of it, if there is one.
    Changed { path: String, written: Option<(EntryId, u64)> },
    /// A file or a folder is removed.
    Removed { path: String },
    /// A text is loaded, or a part of it.
    Load { load: skills::Load, part: Option<String> },
}

impl Rules {
    /// The effects of a call in this entry.
    fn touches(&self, call: &ToolCall, entry: &Entry) -> Vec<Touch> {
        let Ok(arguments) = serde_json::from_str::<Value>(&call.arguments) else { return Vec::new() };
        let mut touches = Vec::new();
        for (named, operation) in files_of(&call.name, &arguments, &self.tools.files) {
            let Some(path) = self.resolved(&named) else { continue };
            touches.push(match operation {
                FileOperation::Read => Touch::Read { path, whole: named_part(&arguments, &named).is_none() },
                FileOperation::Write => {
                    let text = CONTENTS.iter().find_map(|name| arguments.get(*name)?.as_str());
                    Touch::Changed { path, written: text.map(|text| (entry.id.clone(), self.scale.text(text))) }
                }
                FileOperation::Edit => Touch::Changed { path, written: None },
                FileOperation::Delete => Touch::Removed { path },
            });
        }
        if let Some(load) = skills::loaded_by(&call.name, &arguments, &self.tools) {
            let part = load.path.as_ref().and_then(|path| named_part(&arguments, path));
            let part = part.filter(|_| !skills::loads_a_skill(&call.name));
            touches.push(Touch::Load { load, part });
        }
        touches
    }

    /// A path with the folder of the session before it, without `.` and `..`. `None` for a path that names no file.
    fn resolved(&self, path: &str) -> Option<String> {
        let path = path.trim();
        if path.is_empty() || path.len() > LONGEST_PATH || path.contains(['\n', '\r']) || path.contains("://") {
            return None;
        }
        let cwd = self.cwd.as_deref().filter(|_| !is_absolute(path));
        // A folder of Windows has no slash.
        let backslashes = cwd.unwrap_or(path).contains('\\') && !cwd.unwrap_or(path).starts_with('/');
        let separators: &[char] = if backslashes { &['/', '\\'] } else { &['/'] };
        let mut parts: Vec<&str> = Vec::new();
        for part in cwd.into_iter().chain([path]).flat_map(|path| path.split(separators)) {
            match part {
                "." => {}
                "" if !parts.is_empty() => {}
                ".." if parts.last().is_some_and(|last| !matches!(*last, "" | ".." | "~")) => drop(parts.pop()),
                ".." if parts.last() == Some(&"") => {}
                part => parts.push(part),
            }
        }
        Some(parts.join(if backslashes { "\\" } else { "/" })).filter(|path| !path.is_empty())
    }
}

impl Reading {
    /// Reads a path from its first kept entry on.
    pub fn of(path: &Path, settings: &Settings, cwd: Option<&str>, scale: Scale) -> Self {
        let rules = Rules {
            tools: settings.tools.clone(),
            cwd: cwd.filter(|cwd| is_absolute(cwd)).map(str::to_owned),
            secrets: settings.redaction.secrets(),
            scale,
        };
        let before = path.compaction().and_then(|place| path[place].preserved()).map(|it| it.agent.loaded.as_slice());
        let carried = |load: &CarriedLoad| Load { place: None, text: Arc::new(load.clone()), may_stay: true };
        let mut reading = Self {
            rules: Arc::new(rules),
            calls: HashMap::new(),
            files: BTreeMap::new(),
            loads: before.unwrap_or_default().iter().map(carried).collect(),
            edited: context::edited_entries(path),
        };
        let first = path.first_kept();
        path[first..].iter().enumerate().for_each(|(at, entry)| reading.hear(first + at, entry));
        reading
    }

    /// The files, by their paths. A path with a secret in it cannot be told.
    pub fn files(&self) -> impl Iterator<Item = (&String, &Touched)> {
        self.files.iter().filter(|(path, _)| *self.rules.secrets.clean(path) == ***path)
    }

    /// The loaded texts, oldest first.
    pub fn loads(&self) -> &[Load] {
        &self.loads
    }

    /// Whether an entry is sent with another content.
    pub fn is_edited(&self, entry: &EntryId) -> bool {
        self.edited.contains(entry)
    }

    /// Reads the entry at a place.
    pub fn hear(&mut self, place: usize, entry: &Entry) {
        let Some(outline) = entry.outline() else { return };
        match outline.role {
            Role::Assistant if !outline.failed && !outline.calls.is_empty() => {
                let message = entry.message_once();
                let Some(Message::Assistant(answer)) = message.as_deref() else { return };
                for call in answer.calls() {
                    let touches = self.rules.touches(call, entry);
                    if !touches.is_empty() {
                        self.calls.insert(call.id.clone(), touches);
                    }
                }
            }
            Role::ToolResult => {
                let Some(touches) = outline.answers.as_ref().and_then(|call| self.calls.remove(call)) else { return };
                let message = entry.message_once();
                let Some(Message::ToolResult(result)) = message.as_deref() else { return };
                if result.is_error {
                    return;
                }
                let in_context = !result.pruned && !self.edited.contains(&entry.id);
                for touch in touches {
                    match touch {
                        Touch::Removed { path } => self.removed(&path),
                        Touch::Read { path, whole } => self.read(path, whole && in_context, place, entry),
                        Touch::Changed { path, written } => self.changed(path, written, place, entry),
                        Touch::Load { load, part } => {
                            let text = text_of(&result.content);
                            let may_stay = in_context && !text.trim().is_empty();
                            self.load(load, part, &text, may_stay, place, entry);
                        }
                    }
                }
            }
            Role::User | Role::Developer | Role::Custom => {
                let Some(text) = entry.message_once().map(|message| message.text()) else { return };
                if let Some(load) = skills::loaded_in(&text) {
                    self.load(load, None, &text, false, place, entry);
                }
            }
            Role::Assistant | Role::System | Role::Execution | Role::Summary => {}
        }
    }

    fn removed(&mut self, path: &str) {
        let goes = |it: &str| it == path || it.strip_prefix(path).is_some_and(|rest| rest.starts_with(['/', '\\']));
        self.files.retain(|it, _| !goes(it));
        self.loads.retain(|load| !load.text.path.as_deref().is_some_and(goes));
    }

    fn read(&mut self, path: String, whole: bool, place: usize, entry: &Entry) {
        let tokens = self.rules.scale.size(u64::from(entry.tokens(self.rules.scale.estimator())));
        let file = self.touched(path, place, entry);
        if file.changed.is_none() {
            file.entry = entry.id.clone();
        }
        if whole {
            file.whole = Some(Whole { entry: entry.id.clone(), place, tokens });
        }
    }

    fn changed(&mut self, path: String, written: Option<(EntryId, u64)>, place: usize, entry: &Entry) {
        // The loaded text is an older one.
        self.loads.retain(|load| load.text.path.as_ref() != Some(&path));
        let file = self.touched(path, place, entry);
        (file.changed, file.entry) = (Some(place), entry.id.clone());
        if let Some((entry, tokens)) = written {
            file.whole = Some(Whole { entry, place, tokens });
        }
    }

    fn touched(&mut self, path: String, place: usize, entry: &Entry) -> &mut Touched {
        let new = || Touched { first: place, changed: None, newest: place, entry: entry.id.clone(), whole: None };
        let file = self.files.entry(path).or_insert_with(new);
        file.newest = place;
        file
    }

    /// Takes a loaded text in. It takes the place of an older one with its name and its part. A whole text takes that of all parts.
    fn load(
        &mut self,
        load: skills::Load,
        part: Option<String>,
        text: &str,
        may_stay: bool,
        place: usize,
        entry: &Entry,
    ) {
        let Rules { secrets, scale, .. } = *self.rules;
        let name = text::one_line(&secrets.clean(&load.name), LONGEST_NAME);
        let path =
            load.path.and_then(|path| if path.contains("://") { Some(path) } else { self.rules.resolved(&path) });
        let path = path.filter(|path| *secrets.clean(path) == **path && path.len() <= LONGEST_PATH);
        self.loads.retain(|older| {
            let older = &older.text;
            let same = older.kind == load.kind
                && match load.kind {
                    // A name alone means the skill itself; another file of it, or a skill elsewhere, is another text.
                    LoadKind::Skill => {
                        older.name == name && (older.path == path || older.path.is_none() || path.is_none())
                    }
                    LoadKind::Instructions => older.name == name && older.path == path,
                };
            !same || part.is_some() && older.part != part
        });
        let (clean, tokens) = match may_stay {
            // Half of a secret looks like none, so the text is cleaned before it is clipped for good.
            true => {
                let gap = "\n[… the middle of this text was left out …]\n";
                (secrets.clean(&text::clip_middle(text, LONGEST_TEXT, gap)).into_string(), scale.text(text))
            }
            false => (String::new(), scale.text(text)),
        };
        let (kept, is_clipped) = clipped(&clean, MOST_OF_ONE, scale);
        let is_clipped = is_clipped || text.len() > LONGEST_TEXT && text.chars().count() > LONGEST_TEXT;
        let (entry_id, kind) = (entry.id.clone(), load.kind);
        let text = CarriedLoad { entry_id, kind, name, path, part, text: kept, tokens, clipped: is_clipped };
        self.loads.push(Load { place: Some(place), text: Arc::new(text), may_stay });
    }
}

impl Touched {
    /// Whether it was used before a cut.
    pub fn is_used_before(&self, cut: usize) -> bool {
        self.first < cut
    }

    /// Whether its newest form stands in a context with this cut: all of its text is kept, and with it every later change, or
    /// the text is pinned and was not changed later.
    pub fn stands(
        &self,
        cut: usize,
        is_edited: &dyn Fn(&EntryId) -> bool,
        is_pinned: &dyn Fn(&EntryId) -> bool,
    ) -> bool {
        let Some(Whole { entry, place, .. }) = &self.whole else { return false };
        let is_newest = self.changed.is_none_or(|changed| changed <= *place);
        *place >= cut && !is_edited(entry) || is_newest && is_pinned(entry)
    }

    /// The file as a client sees it.
    pub fn shown(&self, path: &str) -> FileToRead {
        FileToRead {
            path: path.to_owned(),
            operation: if self.changed.is_some() { FileUse::Changed } else { FileUse::Read },
            tokens: self.whole.as_ref().map(|whole| whole.tokens),
            entry_id: self.entry.clone(),
        }
    }
}

impl Load {
    /// The text as a client sees it, with those that a compaction carries. A pinned text stays by itself.
    pub fn shown(&self, carried: &[CarriedLoad], is_pinned: bool) -> Loaded {
        let CarriedLoad { entry_id, kind, name, path, part, tokens, .. } = &*self.text;
        let same = |it: &&CarriedLoad| it.entry_id == *entry_id && it.name == *name && it.part == *part;
        let kept = match carried.iter().find(same) {
            _ if is_pinned => LoadKept::Whole,
            Some(CarriedLoad { clipped: true, .. }) => LoadKept::Clipped,
            Some(_) => LoadKept::Whole,
            None => LoadKept::None,
        };
        let (name, path) = (name.clone(), path.clone());
        Loaded { kind: *kind, name, path, tokens: *tokens, kept, entry_id: entry_id.clone() }
    }
}
