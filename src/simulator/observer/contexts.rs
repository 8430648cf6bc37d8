//! The context: valid, the same after a reopening, and without a lost message.

mod left;

use super::{Rule, Verdict, file::File, limits, requests::Asked, require};
use crate::{
    conversation::{
        context::{self, Context, ContextMessage, check},
        entry::{Body, Entry},
        message::outline::Role,
        path::Path,
    },
    ids::EntryId,
    log::history::History,
    protocol::{events::Event, types::Usage},
    session::{core::Core, effects::Answer},
    wire::transport::Piece,
};
use left::Left;
use serde_json::Value;
use std::{
    collections::{HashMap, HashSet},
    ops::Range,
    sync::Arc,
};

/// One of this number of steps with a new path has its context checked.
const OFTEN: u64 = 8;

/// The number of steps from one check of a context to the next. A check costs the whole file.
fn often(file: &File) -> u64 {
    OFTEN * (1 + file.count() as u64 / 500)
}

/// The session as it was when it last knew every line of the file.
#[derive(Debug)]
struct Known {
    path: Path,
    lines: usize,
    usage: Usage,
}

/// The knowledge about contexts.
#[derive(Debug, Default)]
pub struct Contexts {
    known: Option<Known>,
    /// The session before it was opened again, while it lacks values from before its path.
    returns: Option<Known>,
    /// The compaction of the context that was checked last.
    compaction: Option<EntryId>,
    /// The leaves that navigations left.
    left: Left,
    parsed: Parsed,
}

impl Contexts {
    /// An input was handled.
    pub fn after_input(&mut self, core: &Core, file: &File, step: u64) -> Verdict {
        let state = core.state();
        let path = state.path();
        if !is_whole(core, file) {
            return Ok(());
        }
        self.left.arrives(core, file)?;
        if let Some(before) = self.returns.take() {
            if path.lacks_its_past() && before.lines == file.count() {
                self.returns = Some(before);
            } else if before.lines == file.count() {
                same(core, &before.path, path)?;
                same_usage(&before.usage, &state.usage())?;
            }
        }
        if self.known.as_ref().is_some_and(|known| {
            known.lines == file.count() && known.path.revision() == path.revision() && known.path.len() == path.len()
        }) {
            return Ok(());
        }
        self.left.stands(path);
        self.known = Some(Known { path: path.clone(), lines: file.count(), usage: state.usage() });
        let compaction = path.compaction().map(|place| path[place].id.clone());
        let rewritten = compaction != self.compaction;
        self.compaction = compaction;
        if !rewritten && !step.is_multiple_of(often(file)) {
            return Ok(());
        }
        limits::hold(core, file)?;
        self.parsed.sound(core, path, file)
    }

    /// `tree_changed` is sent.
    pub fn moves(&mut self, event: &Event, file: &File) {
        self.left.moves(event, self.known.as_ref().map(|known| &known.path), file);
    }

    /// A context was answered. One of `OFTEN` is read.
    pub fn answered(&self, asked: &Asked, answer: &Answer, file: &File, step: u64) -> Verdict {
        fits(asked, answer, file)?;
        if !step.is_multiple_of(OFTEN) || !asked.params["format"].is_null() && asked.params["format"] != "messages" {
            return Ok(());
        }
        let text = match answer {
            Answer::Failed(_) => return Ok(()),
            Answer::Result(json) => json.get().to_owned(),
            Answer::Pieces(pieces) => pieces.iter().map(Piece::as_str).collect(),
        };
        let value: Value = serde_json::from_str(&text).unwrap_or_default();
        let messages = value["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
        let entries = value["entryIds"].as_array().map_or(usize::MAX, Vec::len);
        require(messages.len() == entries, Rule::ContextValid, || {
            format!("{} messages have {entries} ids of entries", messages.len())
        })?;
        let system = messages.first().is_some_and(|first| first["role"] == "system");
        valid(&messages[usize::from(system)..])
    }

    /// The session was opened again. After a compaction of another program, values from before the path come back with
    /// the index.
    pub fn reopened(&mut self, core: &Core, file: &File) -> Verdict {
        let path = core.state().path();
        left::leaf_survives(core, file)?;
        if file.is_unfinished() {
            // The path may have an entry more.
            (self.known, self.returns) = (None, None);
            return Ok(());
        }
        if !path.lacks_its_past() {
            limits::hold(core, file)?;
        }
        let Some(before) = self.returns.take().or(self.known.take()) else {
            return self.parsed.sound(core, path, file);
        };
        self.known = None;
        let same_file = before.lines == file.count();
        if path.lacks_its_past() {
            match (same_file, file.another_wrote()) {
                (true, _) => same(core, &Path::of(&before.path), path)?,
                (false, false) => same(core, &Path::of(&file.entries()), path)?,
                (false, true) => {}
            }
            self.returns = Some(before).filter(|before| same_file && !before.path.lacks_its_past());
        } else if same_file && !before.path.lacks_its_past() {
            same(core, &before.path, path)?;
            same_usage(&before.usage, &core.state().usage())?;
        } else if !file.another_wrote() {
            same(core, &whole(file), path)?;
        }
        self.parsed.sound(core, path, file)
    }

    /// Changes the usage that is known.
    #[cfg(test)]
    pub fn miscount(&mut self) {
        self.known.iter_mut().for_each(|known| known.usage.context_tokens += 1);
    }

    /// Nothing runs: a reader of the whole file has the same context.
    pub fn at_rest(&mut self, core: &Core, file: &File) -> Verdict {
        let unknown = file.another_wrote() || file.is_unfinished() || file.count() == 0;
        if core.state().history().is_asleep() || unknown {
            return Ok(());
        }
        let path = core.state().path();
        let reader = if path.lacks_its_past() { Path::of(&file.entries()) } else { whole(file) };
        same(core, &reader, path)?;
        self.parsed.sound(core, path, file)
    }
}

/// Whether the path of a session ends with the last line of its file. A broken line may have an entry of its own.
fn is_whole(core: &Core, file: &File) -> bool {
    let state = core.state();
    let leaf = state.path().last().map(|entry| &entry.id);
    match file.count().checked_sub(1) {
        _ if state.history().is_asleep() => false,
        // The first line is the header.
        None | Some(0) => leaf.is_none(),
        Some(last) => leaf.is_some() && leaf == file.entry(last).map(|entry| &entry.id),
    }
}

/// The path of a reader who has the whole file in memory.
fn whole(file: &File) -> Path {
    History::in_memory(file.entries()).path().clone()
}

/// Two usages have one size, if they are measured in one way.
fn same_usage(old: &Usage, new: &Usage) -> Verdict {
    let comparable = (&old.estimator, &old.window_source, old.context_window)
        == (&new.estimator, &new.window_source, new.context_window)
        && (old.breakdown.system, old.breakdown.tools) == (new.breakdown.system, new.breakdown.tools);
    require(!comparable || old.context_tokens == new.context_tokens, Rule::UsageSurvives, || {
        format!("the usage was {old:?} and is {new:?}")
    })
}

/// Two paths have one context.
fn same(core: &Core, before: &Path, now: &Path) -> Verdict {
    let prompts = &core.state().settings().prompts;
    let (before, now) = (context::build(before, prompts), context::build(now, prompts));
    require(before.compaction() == now.compaction(), Rule::ContextSurvives, || {
        format!("the compaction was {:?} and is {:?}", before.compaction(), now.compaction())
    })?;
    let (old, new) = (before.messages(), now.messages());
    let differs = old.iter().zip(new).position(|(old, new)| old.json() != new.json());
    require(differs.is_none() && old.len() == new.len(), Rule::ContextSurvives, || {
        let at = differs.unwrap_or(old.len().min(new.len()));
        let shown = |messages: &[context::ContextMessage]| messages.get(at).map(|it| it.json().into_owned());
        format!("{} messages were {}: message {at} was {:?} and is {:?}", new.len(), old.len(), shown(old), shown(new))
    })
}

/// The messages of the context of a path.
fn context_of(core: &Core, path: &Path) -> Vec<String> {
    let context = context::build(path, &core.state().settings().prompts);
    context.messages().iter().map(|message| message.json().into_owned()).collect()
}

/// A context is valid, and has every message, the newest one of the user, and the pins.
#[cfg(test)]
pub fn sound(core: &Core, path: &Path, file: &File) -> Verdict {
    Parsed::default().sound(core, path, file)
}

/// The messages of the context that was checked last, each with its place in the line that it is a part of. The next context
/// has most of them again.
#[derive(Debug, Default)]
struct Parsed(HashMap<EntryId, (Part, Value)>);

/// A line, which no other one has the memory of while this is kept, and the place of a message in it.
type Part = (Arc<str>, Range<usize>);

impl Parsed {
    /// A context is valid, and has every message, the newest one of the user, and the pins.
    fn sound(&mut self, core: &Core, path: &Path, file: &File) -> Verdict {
        let context = context::build(path, &core.state().settings().prompts);
        let messages: Vec<Value> = context.messages().iter().map(|message| self.value(message)).collect();
        valid(&messages)?;
        let indexed = core.state().history().index().is_some();
        if !file.another_wrote() {
            complete(&context, &messages, file, indexed)?;
        }
        let parts = context.messages().iter().map(|message| message.entry.clone().zip(message.part()));
        self.0 = parts.zip(messages).filter_map(|(part, value)| part.map(|(id, part)| (id, (part, value)))).collect();
        Ok(())
    }

    fn value(&mut self, message: &ContextMessage) -> Value {
        let known = message.entry.as_ref().and_then(|entry| self.0.remove(entry)).zip(message.part());
        match known {
            Some((((line, range), value), part)) if Arc::ptr_eq(&line, &part.0) && range == part.1 => value,
            _ => serde_json::from_str(&message.json()).unwrap_or_default(),
        }
    }
}

fn valid(messages: &[Value]) -> Verdict {
    let found = check::violations(messages);
    require(found.is_empty(), Rule::ContextValid, || format!("{found:?}"))
}

/// The conversation as the file has it, in the words of the file format: which entries are sent by themselves, and which
/// are covered by the latest compaction.
struct Told<'a> {
    /// Entries that are sent, in order.
    kept: Vec<&'a Arc<Entry>>,
    /// The newest message of the user after the last reset.
    newest_by_user: Option<&'a Arc<Entry>>,
    /// Entries before the last reset.
    cleared: HashSet<&'a EntryId>,
    /// Pinned entries.
    pinned: Vec<EntryId>,
    /// The compaction in force carries what is needed from before it. One of another program does not, and the index has it.
    carries: bool,
}

impl<'a> Told<'a> {
    fn by(file: &'a File) -> Self {
        let chain: Vec<&Arc<Entry>> = file.chain().collect();
        let mut undone = HashSet::new();
        let (mut compaction, mut reset) = (None, None);
        for (at, entry) in chain.iter().enumerate() {
            if let Some(id) = entry.undoes() {
                undone.insert(id);
            }
            if matches!(entry.body, Body::ResetBoundary(_)) {
                reset = Some(at);
                break;
            }
            if let Some(body) = entry.compaction().filter(|_| !undone.contains(&entry.id)) {
                compaction = Some((at, body));
                break;
            }
        }
        let first_kept = match &compaction {
            None => reset.unwrap_or(chain.len()),
            Some((at, body)) => {
                let kept = body.first_kept_entry_id.as_ref();
                let older = chain.iter().skip(*at + 1).position(|entry| Some(&entry.id) == kept);
                older.map_or(*at, |older| at + 1 + older + 1)
            }
        };
        let mut pinned: Vec<EntryId> = Vec::new();
        for entry in chain.iter().rev() {
            let named = |data: Value| data["entryId"].as_str().map(EntryId::from);
            match (entry.ours("pin"), entry.ours("unpin")) {
                (Some(data), _) => pinned.extend(named(data).filter(|id| !pinned.contains(id))),
                (_, Some(data)) => {
                    let unpinned = named(data);
                    pinned.retain(|id| Some(id) != unpinned.as_ref());
                }
                _ if entry.is_pinned_text() => pinned.push(entry.id.clone()),
                _ => {}
            }
        }
        let cleared = reset.map_or(&[][..], |at| &chain[at + 1..]).iter().map(|entry| &entry.id).collect();
        let mut since_reset = chain.iter().take_while(|entry| !matches!(entry.body, Body::ResetBoundary(_)));
        Self {
            kept: chain[..first_kept].iter().rev().copied().collect(),
            newest_by_user: since_reset.find(|entry| entry.is_from(Role::User)).copied(),
            cleared,
            pinned,
            carries: compaction.is_none_or(|(_, body)| body.preserved().is_some()),
        }
    }
}

/// The usage is at the end of the answer, after the messages or the body.
fn fits(asked: &Asked, answer: &Answer, file: &File) -> Verdict {
    let end = match answer {
        Answer::Failed(_) => return Ok(()),
        Answer::Result(json) => json.get().to_owned(),
        Answer::Pieces(pieces) => {
            let end = pieces.last().map(Piece::as_str).unwrap_or_default();
            format!("{{{}", end.trim_start_matches([']', ',']))
        }
    };
    let end: Value = serde_json::from_str(&end).unwrap_or_default();
    let usage = &end["usage"];
    let over = usage["contextTokens"].as_u64() > usage["contextWindow"].as_u64() && usage["windowSource"] != "default";
    require(!asked.must_fit() || !over, Rule::RequestFits, || {
        format!("request {} is answered with {usage}", asked.number)
    })?;
    // A read runs beside the session, which may have other limits since.
    if asked.params["leafEntryId"].is_null() && matches!(answer, Answer::Pieces(_)) && asked.params["format"].is_null()
    {
        return limits::fit(&end, file);
    }
    Ok(())
}

fn complete(context: &Context, messages: &[Value], file: &File, indexed: bool) -> Verdict {
    let told = Told::by(file);
    let shown: Vec<&EntryId> = context.messages().iter().filter_map(|message| message.entry.as_ref()).collect();
    let edited: HashSet<&EntryId> = file
        .chain()
        .filter_map(|entry| if let Body::ContextEdit(edit) = &entry.body { Some(&edit.target_id) } else { None })
        .collect();
    let wanted = told.kept.iter().filter(|entry| {
        let spoken = entry.is_from(Role::User) || entry.is_from(Role::Developer) || entry.is_pinned_text();
        spoken && entry.in_context() && !edited.contains(&entry.id)
    });
    let mut rest = shown.iter();
    for entry in wanted {
        require(rest.any(|id| **id == entry.id), Rule::NoMessageLost, || {
            let there: String = Value::from(messages.to_vec()).to_string().chars().take(2_000).collect();
            format!("{:?} is kept and not in the context: {}; there is {there}", entry.id, entry.line())
        })?;
    }
    let is_removed = |entry: &Entry| match &entry.body {
        Body::ContextEdit(edit) => edit.replacement.is_none() && shown.contains(&&edit.target_id),
        _ => false,
    };
    let stays = file.chain().find(|entry| is_removed(entry));
    require(stays.is_none(), Rule::RemovedStaysOut, || format!("{stays:?} removes a message of the context"))?;
    let on_path: HashSet<&EntryId> = file.chain().map(|entry| &entry.id).collect();
    let strange = shown.iter().find(|id| !on_path.contains(**id));
    require(strange.is_none(), Rule::OtherBranchesStayOut, || format!("{strange:?} is an entry of another branch"))?;
    let cleared = shown.iter().find(|id| told.cleared.contains(**id));
    require(cleared.is_none(), Rule::RemovedStaysOut, || format!("{cleared:?} stands before the last reset"))?;
    if !told.carries && !indexed {
        return Ok(());
    }
    let says = |text: &str| {
        let beginning: String = text.chars().take_while(|it| it.is_alphanumeric() || *it == ' ').take(40).collect();
        messages.iter().any(|message| has(message, &beginning))
    };
    if let Some(newest) = told.newest_by_user.filter(|newest| !edited.contains(&newest.id)) {
        let there = shown.contains(&&newest.id) || says(&newest.pinned_text());
        require(there, Rule::NoMessageLost, || format!("the user's newest message is gone: {}", newest.line()))?;
    }
    for id in &told.pinned {
        let entry = file.newest(id).and_then(|place| file.entry(place));
        // A provider takes no result without its call, and no call without its result.
        if entry.is_some_and(|entry| entry.is_from(Role::ToolResult) || entry.is_from(Role::Assistant)) {
            continue;
        }
        let text = entry.map(|entry| entry.pinned_text());
        let there = shown.contains(&id) || text.as_ref().is_some_and(|text| says(text));
        require(there, Rule::PinsStay, || format!("{id:?} is pinned and not in the context: {text:?}"))?;
    }
    Ok(())
}

/// Whether a text is in a value.
fn has(value: &Value, text: &str) -> bool {
    match value {
        Value::String(it) => it.contains(text),
        Value::Array(items) => items.iter().any(|it| has(it, text)),
        Value::Object(fields) => fields.values().any(|it| has(it, text)),
        _ => false,
    }
}
