//! A fork: a new session of the lines of a path of another one.

use super::{data::SessionData, founding::Keeping, state::Beginning, state::State};
use crate::{
    conversation::{
        entry::{self, Entry, Header, HeaderKind, Stamps, VERSION},
        message::outline::Role,
        mirroring, path,
    },
    ids::{EntryId, SessionId},
    log::{
        blobs::Blobs,
        error::StoreError,
        files::Sink,
        history::{
            library::Library,
            points::{NoPoint, editor_text},
        },
        index::{NamedBeside, Place},
        sealed::Blocking,
    },
    models::ModelRef,
    protocol::{
        errors::Failure,
        types::{ForkParams, ForkPosition, LONGEST_PATH, LONGEST_TITLE},
    },
    settings::trust::Trust,
    text,
    wire::rpc::Reply,
};
use serde_json::{Value, json};
use std::{iter, path::Path, sync::Arc};

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
    /// The path of the other session in memory.
    here: path::Path,
    end: ForkEnd,
    stamps: Stamps,
}

/// The end of a fork.
enum ForkEnd {
    /// The leaf of the other session; `None` where it has no entries.
    Leaf(Option<Place>),
    /// Before this entry or with it.
    At(EntryId, ForkPosition),
}

/// The entries of a fork.
pub struct Forked {
    source: Library,
    here: path::Path,
    path: Vec<Place>,
    /// Entries after the path: the title and the labels that lines beside the path give.
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
            return Err(Failure::relative_path("cwd", cwd));
        }
        Failure::if_longer("cwd", cwd.as_deref(), LONGEST_PATH)?;
        let index = library.index();
        let end = match (entry_id, position) {
            (Some(id), position) => ForkEnd::At(id, position.unwrap_or(ForkPosition::Before)),
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
            here: state.path().clone(),
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
        let (leaf, editor_text) = match &self.end {
            ForkEnd::Leaf(leaf) => (*leaf, None),
            ForkEnd::At(id, position) => ending(&source, id, *position, blocking)?,
        };
        let path = leaf.map(|leaf| index.path_to(leaf)).unwrap_or_default();
        let names = self.names(leaf.map(|leaf| source.body(leaf, blocking)).transpose()?, index.named_beside(&path))?;
        Ok(Forked { source, here: self.here.clone(), path, names, editor_text })
    }

    /// The entries after the leaf that give the session and its entries the names that they have.
    fn names(&mut self, leaf: Option<Arc<Entry>>, beside: NamedBeside) -> Result<Vec<Arc<Entry>>, Failure> {
        let NamedBeside { title, labels } = beside;
        let title = title.map(|title| text::shortened(title, LONGEST_TITLE));
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

    /// The path of the fork as far back as its context needs. Entries that the other session has in memory are not read.
    /// None where a line is another one in the file of the fork.
    ///
    /// # Errors
    /// When the file of the other session cannot be read.
    pub fn known(&self, blocking: &Blocking) -> Result<Option<path::Path>, StoreError> {
        if !self.path.iter().all(|place| self.source.index().stands_as_it_is(*place)) {
            return Ok(None);
        }
        let mut path = self.source.path_of(&self.path, &self.here, blocking)?;
        self.names.iter().for_each(|entry| path.push(entry.clone()));
        Ok(Some(path))
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

/// The last entry of a fork that ends at an entry, and the text for the editor.
///
/// # Errors
/// When no fork may end there, or the file cannot be read.
fn ending(
    source: &Library,
    id: &EntryId,
    position: ForkPosition,
    blocking: &Blocking,
) -> Result<(Option<Place>, Option<String>), Failure> {
    let refuse = |none: NoPoint| refused(&none, id, position);
    let (place, entry) = source.conversed(id, blocking)?.map_err(refuse)?;
    match position {
        ForkPosition::At => {
            source.ends_batch(place, blocking)?.map_err(refuse)?;
            Ok((Some(source.behind_markers(place, blocking)?), None))
        }
        ForkPosition::Before => {
            let parent = source.index().parent(place);
            // A message that stands in the middle of a batch is no result of it; its calls stay open in the fork.
            if let Some(parent) = parent.filter(|_| entry.is_from(Role::ToolResult)) {
                source.ends_batch(parent, blocking)?.map_err(refuse)?;
            }
            Ok((parent, editor_text(&entry)))
        }
    }
}

/// The error of an entry at which no fork ends.
fn refused(none: &NoPoint, id: &EntryId, position: ForkPosition) -> Failure {
    let what = match (none, position) {
        (NoPoint::Unknown, _) => return Failure::no_entry(id),
        (NoPoint::Marker(Some(before)), _) => {
            format!("entry {id} is a marker; name the entry before it, {before}, with position at")
        }
        (NoPoint::Marker(None), _) => {
            format!("entry {id} is a marker, and no entry is before it; name a later one, or none")
        }
        (NoPoint::InBatch(last), ForkPosition::At) => format!(
            "entry {id} is a tool result in the middle of a batch of calls; name the last result of the batch, {last}, or \
             the answer with the calls"
        ),
        (NoPoint::InBatch(last), ForkPosition::Before) => format!(
            "before entry {id} is the middle of a batch of calls; name the last result of the batch, {last}, with position \
             at, or the answer with the calls"
        ),
    };
    Failure::params("entryId", what)
}
