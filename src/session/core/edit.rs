//! Requests that write entries which are neither messages nor compactions: pins, labels, undone compactions,
//! configuration. A request becomes entries, and an answer when they are on disk.

use crate::{
    conversation::{
        entry::{self, Entry, Stamps},
        mirroring,
        undo::Undoing,
    },
    ids::EntryId,
    protocol::{
        Method,
        errors::Failure,
        events::Event,
        types::{EntryIdAnswer, Next, Status},
    },
    session::{
        effects::{Answer, Ticket},
        log_work::Fetch,
        state::{ModelInForce, State},
    },
    text::values,
};
use serde_json::Value;
use std::sync::Arc;

/// The handler of a method whose requests become entries.
#[diagnostic::on_unimplemented(
    message = "the method `{Self}` has no handler",
    label = "implement `EditMethod` for `{Self}` in a file of `src/session/commands`"
)]
pub trait EditMethod: Method + 'static {
    /// Makes the entries of a request. A request without entries is answered without a write.
    ///
    /// # Errors
    /// When the request is invalid, or needs the index and there is none.
    fn stage(state: &State, params: &Self::Params, stamps: &mut Stamps) -> Result<Staged, NotStaged>;

    /// The result, when the entries are on disk.
    ///
    /// # Errors
    /// When a defect left nothing to answer with.
    fn answer(state: &State, staged: &Staged) -> Result<Self::Answer, Failure>;

    /// The event that follows those of the entries.
    fn event(_state: &State, _staged: &Staged) -> Option<Event> {
        None
    }

    /// Whether the request changes the part of the context that a running operation works on. It is refused as `busy`
    /// while one runs.
    fn rewrites_context(_params: &Self::Params) -> bool {
        false
    }
}

/// A request to an [`EditMethod`].
pub trait Edit: Send {
    /// [`EditMethod::stage`].
    ///
    /// # Errors
    /// Those of the method.
    fn stage(&self, state: &State, stamps: &mut Stamps) -> Result<Staged, NotStaged>;
    /// [`EditMethod::answer`].
    fn answer(&self, state: &State, staged: &Staged) -> Answer;
    /// [`EditMethod::event`].
    fn event(&self, state: &State, staged: &Staged) -> Option<Event>;
    /// [`EditMethod::rewrites_context`].
    fn rewrites_context(&self) -> bool;
}

struct Request<M: EditMethod>(M::Params);

/// A request to a method, for the mailbox.
pub(in crate::session::core) fn request<M: EditMethod>(params: M::Params) -> Box<dyn Edit> {
    Box::new(Request::<M>(params))
}

impl<M: EditMethod> Edit for Request<M> {
    fn stage(&self, state: &State, stamps: &mut Stamps) -> Result<Staged, NotStaged> {
        M::stage(state, &self.0, stamps)
    }

    fn answer(&self, state: &State, staged: &Staged) -> Answer {
        M::answer(state, staged).into()
    }

    fn event(&self, state: &State, staged: &Staged) -> Option<Event> {
        M::event(state, staged)
    }

    fn rewrites_context(&self) -> bool {
        M::rewrites_context(&self.0)
    }
}

/// An edit with its entries.
pub(in crate::session::core) struct EditWrite {
    pub edit: Box<dyn Edit>,
    pub staged: Staged,
    pub ticket: Ticket,
}

/// Entries that are to be written for a request, and values for its answer.
#[derive(Default)]
pub struct Staged {
    /// The entries, each the child of the one before.
    pub entries: Vec<Arc<Entry>>,
    /// The entries that the request is about: a pinned entry, pruned entries.
    pub about: Vec<EntryId>,
    /// Tokens that a prune saves.
    pub tokens_saved: u64,
    /// The reason of a prune, and what it saves.
    pub why: String,
    /// An undo: its entries after the marker need the path without the compaction, which the writer reads.
    pub undoing: Option<Box<Undoing>>,
    /// The model and its window before entries that may change them.
    pub before: Option<Box<ModelInForce>>,
    /// The maintenance that follows, when the entries are on disk.
    pub next: Next,
    /// The status of the session, when the entries are on disk.
    pub status: Status,
}

/// The reason why a request has no entries.
pub enum NotStaged {
    /// The request names an entry that is not on the path, and there is no index.
    NeedsIndex,
    /// The request is about entries that are not in memory.
    NeedsEntries(Fetch),
    /// The request is invalid.
    Failed(Failure),
}

impl From<Failure> for NotStaged {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Staged {
    /// Adds an entry after the leaf and the entries before it.
    ///
    /// # Errors
    /// When the fields make no entry, which is a defect.
    pub fn add(
        &mut self,
        state: &State,
        stamps: &mut Stamps,
        kind: &str,
        fields: &[(&str, Value)],
    ) -> Result<EntryId, Failure> {
        self.add_with(state, stamps, kind, |_| fields.to_vec())
    }

    /// The same with fields that may name the new entry.
    ///
    /// # Errors
    /// As [`Staged::add`].
    pub fn add_with<'a>(
        &mut self,
        state: &State,
        stamps: &mut Stamps,
        kind: &str,
        fields: impl FnOnce(&EntryId) -> Vec<(&'a str, Value)>,
    ) -> Result<EntryId, Failure> {
        let stamp = stamps.stamp();
        let fields = fields(&stamp.id);
        let parent = self.entries.last().or_else(|| state.path().last()).map(|entry| entry.id.clone());
        let raw: Vec<_> = fields.iter().map(|(name, value)| (*name, entry::raw(value))).collect();
        let fields: Vec<_> = raw.iter().map(|(name, value)| (*name, &**value)).collect();
        let line = entry::line(kind, &stamp, parent.as_ref(), &fields);
        let entry = Entry::parse(line.into()).map_err(|error| Failure::Internal(error.to_string()))?;
        if entry.is_too_large() {
            let most = values::MOST;
            let what = format!(
                "with this an entry would have more than {most} values and keys, and could not be read; send less"
            );
            return Err(Failure::params("", what));
        }
        self.entries.push(Arc::new(entry));
        Ok(stamp.id)
    }

    /// Adds a `custom` entry of the type `abridged.NAME`.
    ///
    /// # Errors
    /// As [`Staged::add`].
    pub fn add_custom(
        &mut self,
        state: &State,
        stamps: &mut Stamps,
        name: &str,
        data: Value,
    ) -> Result<EntryId, Failure> {
        self.add(state, stamps, "custom", &[("customType", format!("abridged.{name}").into()), ("data", data)])
    }

    /// Adds the entries that other programs lack after those staged here.
    pub fn add_mirrors(&mut self, state: &State, stamps: &mut Stamps) {
        let mirrors = mirroring::with_mirrors(state.path(), &self.entries, &state.settings().prompts, stamps);
        self.entries.extend(mirrors);
    }

    /// The answer with the one entry that the request is about.
    ///
    /// # Errors
    /// When there is none, which is a defect.
    pub fn entry_id(&self) -> Result<EntryIdAnswer, Failure> {
        let id = self.about.first().ok_or_else(|| Failure::Internal("nothing was written".to_owned()))?;
        Ok(EntryIdAnswer { entry_id: id.clone() })
    }

    /// Whether an entry stores the system prompt, the tools or the settings of the session.
    #[must_use]
    pub fn stores_data(&self) -> bool {
        self.entries.iter().any(|entry| entry.is_ours("session"))
    }

    /// Whether an entry clears the context.
    #[must_use]
    pub fn clears(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry.body, entry::Body::ResetBoundary(_)))
    }

    /// Whether an entry chooses a model.
    #[must_use]
    pub fn stores_model(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry.body, entry::Body::ModelChange { .. }))
    }
}

/// Checks that an entry exists.
///
/// # Errors
/// When there is none, or it is not on the path and there is no index.
pub fn known(state: &State, id: &EntryId) -> Result<(), NotStaged> {
    match state.history().index() {
        _ if state.path().position(id).is_some() => Ok(()),
        None => Err(NotStaged::NeedsIndex),
        Some(index) if index.find(id).is_some() => Ok(()),
        Some(_) => Err(Failure::no_entry(id).into()),
    }
}
