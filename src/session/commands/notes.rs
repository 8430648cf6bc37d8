//! What is written beside messages and compactions: names, pins, edits, undone compactions, configuration. Each request
//! becomes entries, and an answer when they are on disk.

use super::undoing::Undoing;
use crate::{
    compaction::prune,
    conversation::{
        entry::{self, ContextEdit, Entry, PINNED_TEXT},
        tokens::Estimator,
    },
    ids::EntryId,
    protocol::{
        errors::Failure,
        events::Event,
        types::{
            ConfigureAnswer, ConfigureParams, EntryIdAnswer, LabelParams, Next, PinParams, PruneAnswer, PruneParams,
            Status, UndoAnswer, Usage,
        },
    },
    session::{handle::Note, open::model_fields, state::State},
    settings::PruneSettings,
    wire::rpc::Reply,
};
use serde_json::{Value, json};
use std::sync::Arc;

/// Pins may take so much of the window, in percent: they are in every context.
const MOST_PINNED_PERCENT: u64 = 10;

/// Entries that are to be written for a request.
#[derive(Default)]
pub struct Staged {
    /// The entries, each behind the one before.
    pub entries: Vec<Arc<Entry>>,
    /// What the request is about: a pinned entry, pruned entries.
    about: Vec<EntryId>,
    tokens_saved: u64,
    /// Only to be told.
    dry_run: bool,
    /// An undo whose other entries need the path without the compaction.
    pub undoing: Option<Box<Undoing>>,
}

/// Why nothing can be written yet, or at all.
pub enum Cannot {
    /// The entry it is about is not on the path, and may be anywhere.
    NeedsIndex,
    /// It is wrong.
    Fail(Failure),
}

impl From<Failure> for Cannot {
    fn from(failure: Failure) -> Self {
        Self::Fail(failure)
    }
}

impl Staged {
    fn add(&mut self, state: &State, kind: &str, fields: &[(&str, Value)]) -> Result<EntryId, Failure> {
        let id = EntryId::fresh();
        let parent = self.entries.last().or_else(|| state.path().last()).map(|entry| entry.id.clone());
        let raw: Vec<_> = fields.iter().map(|(name, value)| (*name, entry::raw(value))).collect();
        let fields: Vec<_> = raw.iter().map(|(name, value)| (*name, &**value)).collect();
        let line = entry::line(kind, &id, parent.as_ref(), &fields);
        let entry = Entry::parse(line.into()).map_err(|error| Failure::Internal(error.to_string()))?;
        self.entries.push(Arc::new(entry));
        Ok(id)
    }

    fn mark(&mut self, state: &State, name: &str, data: Value) -> Result<EntryId, Failure> {
        self.add(state, "custom", &[("customType", format!("abridged.{name}").into()), ("data", data)])
    }
}

/// Makes the entries of a request.
///
/// # Errors
/// When it cannot be done, or not without the index.
pub fn stage(state: &State, note: &Note) -> Result<Staged, Cannot> {
    match note {
        Note::Label(params) => label(state, params),
        Note::Pin(params) => pin(state, params),
        Note::Unpin(params) => unpin(state, params),
        Note::Undo => Ok(undo(state)?),
        Note::Prune(params) => Ok(prune(state, params)?),
        Note::Configure(params) => Ok(configure(state, params)?),
        Note::Settings(patch) => Ok(set(state, patch)?),
    }
}

/// Whether an entry is known at all. Without the index only the path is.
fn known(state: &State, id: &EntryId) -> Result<(), Cannot> {
    match state.history().index() {
        _ if state.path().position(id).is_some() => Ok(()),
        None => Err(Cannot::NeedsIndex),
        Some(index) if index.find(id).is_some() => Ok(()),
        Some(_) => Err(Failure::no_entry(id).into()),
    }
}

fn label(state: &State, params: &LabelParams) -> Result<Staged, Cannot> {
    known(state, &params.target_entry_id)?;
    let mut staged = Staged::default();
    let label = params.label.as_deref().map(str::trim).filter(|label| !label.is_empty());
    let mut fields = vec![("targetId", json!(params.target_entry_id))];
    // pi takes a label away by an entry without one.
    fields.extend(label.map(|label| ("label", label.into())));
    let id = staged.add(state, "label", &fields)?;
    staged.about.push(id);
    Ok(staged)
}

fn pin(state: &State, params: &PinParams) -> Result<Staged, Cannot> {
    let mut staged = Staged::default();
    match (&params.entry_id, &params.text) {
        (Some(id), None) => {
            known(state, id)?;
            if state.path().pins().iter().any(|pin| pin.entry == *id) {
                staged.about.push(id.clone());
                return Ok(staged);
            }
            let entry = match state.path().position(id) {
                Some(place) => state.path()[place].clone(),
                None if state.history().is_on_path(id) => {
                    let found = state.history().look_up(id).map_err(Failure::from)?;
                    found.ok_or_else(|| Failure::no_entry(id))?
                }
                None => return Err(Failure::params("entryId", "the entry is on a branch that was left").into()),
            };
            if !entry.in_context() || entry.outline().is_some_and(|outline| outline.failed) {
                let what = "only messages that are sent to a model can be pinned";
                return Err(Failure::params("entryId", what).into());
            }
            let mut data = json!({ "entryId": id });
            if state.path().position(id).is_none_or(|place| place < state.path().first_kept()) {
                data["text"] = entry.pinned_text().into();
                data["before"] = json!(next_pin(state, id));
            }
            room_for(state, u64::from(entry.tokens(Estimator::Chars)), "entryId")?;
            staged.mark(state, "pin", data)?;
            staged.about.push(id.clone());
        }
        (None, Some(text)) if text.trim().is_empty() => {
            return Err(Failure::params("text", "there is nothing in it").into());
        }
        (None, Some(text)) => {
            room_for(state, Estimator::Chars.of_text(text), "text")?;
            let fields =
                [("customType", PINNED_TEXT.into()), ("content", text.as_str().into()), ("display", true.into())];
            let id = staged.add(state, "custom_message", &fields)?;
            staged.about.push(id);
        }
        _ => return Err(Failure::params("entryId", "give either entryId or text").into()),
    }
    Ok(staged)
}

/// The pin that comes next on the path behind an entry that was compacted away, if that was too.
fn next_pin(state: &State, id: &EntryId) -> Option<EntryId> {
    let path = state.path();
    let place = |id: &EntryId| state.history().index()?.find(id);
    let pins = path.pins();
    let next = pins.iter().find(|pin| match (path.position(id), path.position(&pin.entry)) {
        (Some(own), Some(other)) => other > own,
        (Some(_), None) => false,
        (None, Some(_)) => true,
        (None, None) => place(&pin.entry) > place(id),
    });
    next.map(|pin| pin.entry.clone())
}

/// What is pinned is in every context, so there must not be too much of it.
fn room_for(state: &State, more: u64, param: &str) -> Result<(), Failure> {
    let path = state.path();
    let size = |pin: &crate::conversation::path::Pin| match path.position(&pin.entry) {
        Some(place) => u64::from(path[place].tokens(Estimator::Chars)),
        None => pin.text.as_ref().map_or(0, |text| Estimator::Chars.of_text(text)),
    };
    let pinned: u64 = path.pins().iter().map(size).sum();
    let window = state.measure().budget.window;
    let most = window * MOST_PINNED_PERCENT / 100;
    if pinned + more <= most {
        return Ok(());
    }
    let what = format!(
        "it has about {more} tokens, and {pinned} are pinned already; pins may take {most}, {MOST_PINNED_PERCENT} % of the window. Unpin something, or pin a shorter text"
    );
    Err(Failure::params(param, what))
}

fn unpin(state: &State, params: &PinParams) -> Result<Staged, Cannot> {
    let path = state.path();
    let pins = path.pins();
    let found = match (&params.entry_id, &params.text) {
        (Some(id), None) => pins.iter().find(|pin| pin.entry == *id),
        (None, Some(text)) => pins.iter().find(|pin| match path.position(&pin.entry) {
            Some(place) => path[place].pinned_text() == *text,
            None => pin.text.as_ref() == Some(text),
        }),
        _ => return Err(Failure::params("entryId", "give either entryId or text").into()),
    };
    let Some(pin) = found else {
        let what = "nothing like that is pinned in this session".to_owned();
        return Err(Failure::NotFound { kind: "pin", what }.into());
    };
    let mut staged = Staged::default();
    staged.mark(state, "unpin", json!({ "entryId": pin.entry }))?;
    staged.about.push(pin.entry.clone());
    Ok(staged)
}

fn undo(state: &State) -> Result<Staged, Failure> {
    let undoing = Undoing::of(state)?;
    let mut staged = Staged { entries: vec![undoing.marker().clone()], ..Staged::default() };
    staged.undoing = Some(Box::new(undoing));
    Ok(staged)
}

fn prune(state: &State, params: &PruneParams) -> Result<Staged, Failure> {
    let path = state.path();
    let settings = &state.settings().settings.prune;
    let settings = PruneSettings {
        protect_tokens: params.protect_tokens.unwrap_or(settings.protect_tokens),
        minimum_savings: params.minimum_savings.unwrap_or(settings.minimum_savings),
        protected_tools: settings.protected_tools.clone(),
    };
    let kept = &path[path.first_kept()..];
    let pins = path.pins();
    let edited = |entry: &Entry| crate::conversation::context::is_edited(path, &entry.id);
    let may = |entry: &Entry| !edited(entry) && pins.iter().all(|pin| pin.entry != entry.id);
    let pruned = prune::prune(kept, &settings, state.estimator(), &may);
    let mut staged = Staged { tokens_saved: pruned.tokens_saved, ..Staged::default() };
    staged.dry_run = params.dry_run == Some(true);
    for ContextEdit { target_id, replacement } in pruned.edits {
        if !staged.dry_run {
            let fields = [("targetId", json!(target_id)), ("replacement", json!(replacement))];
            staged.add(state, "context_edit", &fields)?;
        }
        staged.about.push(target_id);
    }
    Ok(staged)
}

fn configure(state: &State, params: &ConfigureParams) -> Result<Staged, Failure> {
    let mut staged = Staged::default();
    if let Some(model) = &params.model {
        let Some(model) = model else {
            let what = "a model cannot be taken away, only another one chosen";
            return Err(Failure::params("model", what));
        };
        staged.add(state, "model_change", &model_fields(model))?;
    }
    if let Some(level) = &params.thinking_level {
        let level = level.as_deref().unwrap_or("off");
        staged.add(state, "thinking_level_change", &[("thinkingLevel", level.into())])?;
    }
    if let Some(title) = &params.title {
        staged.add(state, "session_info", &[("name", title.as_deref().unwrap_or_default().into())])?;
    }
    if params.system_prompt.is_some() || params.tools.is_some() {
        let mut data = state.data().clone();
        if let Some(prompt) = &params.system_prompt {
            data.system_prompt.clone_from(prompt);
        }
        if let Some(tools) = &params.tools {
            data.tools.clone_from(tools);
        }
        staged.mark(state, "session", serde_json::to_value(data).unwrap_or_default())?;
    }
    Ok(staged)
}

/// The session's own settings with a patch, stored with it.
fn set(state: &State, patch: &Value) -> Result<Staged, Failure> {
    let mut staged = Staged::default();
    let data = state.data().patched(patch)?;
    if data.settings != state.data().settings {
        staged.mark(state, "session", serde_json::to_value(data).unwrap_or_default())?;
    }
    Ok(staged)
}

impl Staged {
    /// Whether it stores what else a client gave for this time: system prompt, tools, settings.
    #[must_use]
    pub fn stores_data(&self) -> bool {
        self.entries.iter().any(|entry| entry.ours("session").is_some())
    }

    /// Whether it chooses a model.
    #[must_use]
    pub fn stores_model(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry.body, entry::Body::ModelChange { .. }))
    }
}

/// Answers a request whose entries are on disk.
pub fn answer(state: &State, note: &Note, staged: &Staged, usage: &Usage, status: Status, reply: Reply) {
    match note {
        Note::Label(_) | Note::Pin(_) | Note::Unpin(_) => match staged.about.first() {
            Some(id) => reply.ok(&EntryIdAnswer { entry_id: id.clone() }),
            None => reply.fail(&Failure::Internal("nothing was written".to_owned())),
        },
        Note::Undo => reply.ok(&UndoAnswer { leaf_entry_id: state.visible_leaf(), usage: usage.clone() }),
        Note::Prune(_) => {
            reply.ok(&PruneAnswer { entry_ids: staged.about.clone(), tokens_saved: staged.tokens_saved });
        }
        Note::Configure(_) => reply.ok(&ConfigureAnswer { session: state.info(status), next: Next::None }),
        Note::Settings(_) => reply.ok(&**state.settings()),
    }
}

/// What else is told of it.
#[must_use]
pub fn event(state: &State, note: &Note, staged: &Staged) -> Option<Event> {
    match note {
        _ if staged.entries.is_empty() => None,
        Note::Prune(_) => Some(Event::Pruned {
            entry_ids: staged.about.clone(),
            tokens_saved: staged.tokens_saved,
            why: "session/prune was called".to_owned(),
        }),
        Note::Settings(_) => Some(Event::SettingsChanged {
            settings: Box::new(state.settings().settings.clone()),
            sources: state.settings().sources.clone(),
        }),
        _ => None,
    }
}
