//! A fork: a new session of the lines of a path of another one.

use super::{data::SessionData, founding::Keeping, state::Beginning, state::State};
use crate::{
    conversation::{
        entry::{self, Body, Entry, Header, HeaderKind, Stamps, VERSION},
        message::{Message, outline::Role, text_of},
        mirroring,
    },
    ids::{EntryId, SessionId},
    log::{
        blobs::Blobs,
        error::StoreError,
        history::library::Library,
        index::{NamedBeside, Place},
        sealed::Blocking,
        store::Sink,
    },
    models::ModelRef,
    protocol::{
        errors::Failure,
        types::{ForkParams, ForkPosition},
    },
    settings::trust::Trust,
    wire::rpc::Reply,
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, iter, path::Path, sync::Arc};

/// A session that is to be made of the lines of another one.
pub struct Forking {
    /// The header. It names the session that it comes from.
    pub header: Header,
    /// The place where it is kept.
    pub keeping: Keeping,
    /// Data that the client gave the other session at its opening, which no line has.
    pub given: SessionData,
    /// The model that the client gave it.
    pub model: Option<ModelRef>,
    /// The images beside its file.
    pub images: Option<Blobs>,
    /// Whether the settings in its lines apply without limits.
    pub trust: Trust,
    source: Library,
    end: ForkEnd,
    stamps: Stamps,
}

/// The end of a fork.
enum ForkEnd {
    /// The leaf of the other session; `None` where it has no entries.
    Leaf(Option<Place>),
    /// Before this entry.
    Before(Place),
    /// With this entry.
    With(Place),
}

/// The entries of a fork.
pub struct Forked {
    source: Library,
    path: Vec<Place>,
    /// Entries behind the path: the title and the labels that lines beside the path give.
    names: Vec<Arc<Entry>>,
    /// The text of the message before which the fork ends.
    pub editor_text: Option<String>,
}

/// Takes forks, each with the request that it answers.
pub type Forker = Box<dyn Fn(Forking, Reply) + Send + Sync>;

impl Forking {
    /// The fork of a session that a request asks for. `library`: the entries of the session.
    ///
    /// # Errors
    /// When the params are invalid, or there is no such entry.
    pub fn of(state: &State, library: Library, params: ForkParams, stamps: &mut Stamps) -> Result<Self, Failure> {
        let ForkParams { entry_id, position, cwd, .. } = params;
        if let Some(cwd) = cwd.as_ref().filter(|cwd| !Path::new(cwd).is_absolute()) {
            return Err(Failure::params("cwd", format!("{cwd:?} is not absolute; give the whole path of the folder")));
        }
        let index = library.index();
        let named = entry_id.map(|id| index.find(&id).ok_or_else(|| Failure::no_entry(&id))).transpose()?;
        let end = match (named, position) {
            (Some(place), Some(ForkPosition::At)) => ForkEnd::With(place),
            (Some(place), Some(ForkPosition::Before) | None) => ForkEnd::Before(place),
            (None, Some(ForkPosition::Before)) => {
                return Err(Failure::params(
                    "position",
                    "before which entry? Name it in entryId, or leave out position",
                ));
            }
            (None, Some(ForkPosition::At) | None) => {
                ForkEnd::Leaf(state.path().last().and_then(|leaf| index.find(&leaf.id)))
            }
        };
        let Beginning { given, model, trust, images, .. } = state.beginning();
        let parent = state.file.as_ref().map_or_else(|| state.id.to_string(), |file| file.display().to_string());
        let mut header = Header {
            kind: HeaderKind::Session,
            version: VERSION,
            id: stamps.session(),
            timestamp: entry::timestamp(stamps.now()),
            cwd: cwd.unwrap_or_else(|| state.cwd().to_owned()),
            parent_session: Some(parent),
            // oh-my-pi reads a title from no other place.
            title: state.title().filter(|title| !title.is_empty()),
            // The header of an old file has the model and the thinking level.
            rest: state.header().rest.clone(),
        };
        // oh-my-pi keeps the former places of the file there.
        header.rest.remove("previousSessionFiles");
        if trust == Trust::Untrusted {
            header.mark_foreign();
        }
        Ok(Self {
            header,
            keeping: if state.file.is_some() { Keeping::File } else { Keeping::Memory },
            given,
            model,
            images: images.map(Blobs::of),
            trust,
            source: library,
            end,
            stamps: stamps.fork(),
        })
    }

    /// The id of the session.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.header.id
    }

    /// Finds the entries of the fork.
    ///
    /// # Errors
    /// When no fork may end at the entry, or the file of the other session cannot be read.
    pub fn run(&mut self, blocking: &Blocking) -> Result<Forked, Failure> {
        let source = self.source.clone();
        let index = source.index();
        let reader = Reader { source: &source, blocking };
        let (leaf, editor_text) = match self.end {
            ForkEnd::Leaf(leaf) => (leaf, None),
            ForkEnd::Before(place) => {
                let entry = reader.end_of_fork(place)?;
                (index.parent(place), editor_text(&entry))
            }
            ForkEnd::With(place) => {
                let entry = reader.end_of_fork(place)?;
                reader.ends_batch(place, &entry)?;
                (Some(reader.last_mirror(place, entry.id.clone())?), None)
            }
        };
        let path = leaf.map(|leaf| index.path_to(leaf)).unwrap_or_default();
        let names = self.names(leaf.map(|leaf| source.body(leaf, blocking)).transpose()?, index.named_beside(&path))?;
        Ok(Forked { source, path, names, editor_text })
    }

    /// The entries behind the leaf that give the session and its entries the names that they have.
    fn names(&mut self, leaf: Option<Arc<Entry>>, beside: NamedBeside) -> Result<Vec<Arc<Entry>>, Failure> {
        let NamedBeside { title, labels } = beside;
        let title = title.map(|title| ("session_info", vec![("name", title.into())]));
        let labels = labels.into_iter().map(|(target, name)| {
            // pi takes a label away by an entry without one.
            let name = name.map(|name| ("label", Value::from(name)));
            ("label", iter::once(("targetId", json!(target))).chain(name).collect())
        });
        let mut parent = leaf.map(|leaf| leaf.id.clone());
        let mut entries = Vec::new();
        for (kind, fields) in title.into_iter().chain(labels) {
            let entry = mirroring::entry_of(kind, &self.stamps.stamp(), parent.as_ref(), &fields);
            let entry = entry.ok_or_else(|| Failure::Internal(format!("a {kind} of a fork is no entry")))?;
            parent = Some(entry.id.clone());
            entries.push(entry);
        }
        Ok(entries)
    }
}

impl Forked {
    /// Writes the lines.
    ///
    /// # Errors
    /// When the file of the other session cannot be read, and those of the sink.
    pub fn write(&self, sink: Sink<'_>, blocking: &Blocking) -> Result<(), StoreError> {
        self.source.lines_of(&self.path, blocking, sink)?;
        self.names.iter().try_for_each(|entry| sink(format!("{}\n", entry.line()).as_bytes()))
    }

    /// The entries, read into memory.
    ///
    /// # Errors
    /// When the file of the other session cannot be read.
    pub fn entries(&self, blocking: &Blocking) -> Result<Vec<Arc<Entry>>, Failure> {
        let path = self.path.iter().map(|place| self.source.body(*place, blocking).map_err(Failure::from));
        path.chain(self.names.iter().cloned().map(Ok)).collect()
    }
}

/// Reads the entries around the end of a fork.
struct Reader<'a> {
    source: &'a Library,
    blocking: &'a Blocking,
}

impl Reader<'_> {
    fn body(&self, place: Place) -> Result<Arc<Entry>, Failure> {
        self.source.body(place, self.blocking).map_err(Failure::from)
    }

    /// The entry that the request names.
    ///
    /// # Errors
    /// When it is a marker.
    fn end_of_fork(&self, place: Place) -> Result<Arc<Entry>, Failure> {
        let entry = self.body(place)?;
        if !entry.is_marker() {
            return Ok(entry);
        }
        let mut before = self.source.index().parent(place);
        while let Some(place) = before {
            let other = self.body(place)?;
            if !other.is_marker() {
                let what = format!("entry {} is a marker; name the entry before it, {}", entry.id, other.id);
                return Err(Failure::params("entryId", what));
            }
            before = self.source.index().parent(place);
        }
        let what = format!("entry {} is a marker, and no entry is before it; name a later one, or none", entry.id);
        Err(Failure::params("entryId", what))
    }

    /// Refuses a tool result behind which other results of its batch stand.
    fn ends_batch(&self, place: Place, entry: &Entry) -> Result<(), Failure> {
        if !entry.is_from(Role::ToolResult) {
            return Ok(());
        }
        let index = self.source.index();
        let mut batch = BTreeSet::from([place]);
        let mut last = None;
        for next in index.after(Some(place)) {
            if !index.parent(next).is_some_and(|parent| batch.contains(&parent)) {
                continue;
            }
            let behind = self.body(next)?;
            if behind.is_from(Role::ToolResult) {
                last = Some(behind.id.clone());
                batch.insert(next);
            } else if !behind.in_context() {
                batch.insert(next);
            }
        }
        last.map_or(Ok(()), |last| {
            let what = format!(
                "entry {} is a tool result in the middle of a batch of calls; name the last result of the batch, {last}",
                entry.id
            );
            Err(Failure::params("entryId", what))
        })
    }

    /// The last of the lines for other programs that stand right behind an entry and belong to it.
    fn last_mirror(&self, mut place: Place, mut id: EntryId) -> Result<Place, Failure> {
        let index = self.source.index();
        while let Some(next) = index.after(Some(place)).next().filter(|next| index.parent(*next) == Some(place)) {
            let behind = self.body(next)?;
            if !behind.is_mirror_behind(&id) {
                break;
            }
            (place, id) = (next, behind.id.clone());
        }
        Ok(place)
    }
}

/// The text that a user goes on editing where a fork ends before an entry.
fn editor_text(entry: &Entry) -> Option<String> {
    match &entry.body {
        Body::CustomMessage(custom) if !entry.is_pinned_text() => Some(text_of(&custom.content)),
        Body::Message(_) => match entry.message() {
            Some(Message::User(content)) => Some(text_of(content)),
            _ => None,
        },
        _ => None,
    }
}
