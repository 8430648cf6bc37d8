//! The entries of a session: those its context is made of in memory, all others where they lie.
//!
//! A file is read from its end to where the context begins. Everything else – another branch, a search, a list of all
//! entries – goes by the index, which is made when somebody needs it or nothing else is to be done.

use super::{
    header::Found,
    indexing::{Made, odd, push, unreadable},
    lines::{self, Backwards, LONGEST, Line},
    migrate,
    pieces::{self, Form, Piece},
    walk::Walk,
};
use crate::{
    conversation::{
        context,
        entry::{CarriedPin, Entry, Preserved, VERSION},
        message::outline::Role,
        path::{self, Path},
    },
    ids::EntryId,
    log::{
        error::StoreError,
        index::{Index, Place, Spot},
        repair::Repair,
    },
    regular,
};
use std::{fs::File, io, ops::ControlFlow, path::PathBuf, sync::Arc};

/// Files up to this are indexed before they are answered for, in bytes: it takes a few milliseconds.
const INDEXED_AT_ONCE: u64 = 16 << 20;

/// An entry and where it stands.
pub type Placed = (Arc<Entry>, Spot);

/// A session file to read from.
#[derive(Debug, Clone)]
pub struct Source {
    path: PathBuf,
    file: Arc<File>,
    /// Where the entries begin, in bytes, and how many lines stand before that.
    floor: u64,
    header_lines: usize,
}

/// Where entries are that are not in memory as part of the path.
#[derive(Debug, Clone)]
enum Bodies {
    /// In the file.
    File(Source),
    /// In memory all the same: the session has no file, or one of an older version.
    Memory(Arc<Vec<Arc<Entry>>>),
}

/// The entries of a session.
pub struct History {
    path: Path,
    index: Option<Arc<Index>>,
    bodies: Bodies,
    /// Counts of the path's entries, kept while their bodies are not.
    asleep: Option<Counts>,
}

/// Everything of a session, to be looked up away from it.
#[derive(Clone)]
pub struct Library {
    index: Arc<Index>,
    bodies: Bodies,
}

/// The entries of a session, to be read without its index.
#[derive(Clone)]
pub struct Reader(Bodies);

/// What a path's entries were counted to, by their order.
struct Counts {
    first: Option<EntryId>,
    tokens: Box<[Option<u32>]>,
}

/// A file that was read.
pub struct Loaded {
    /// Its entries.
    pub history: History,
    /// What was not as it should be, and is carried on with.
    pub repairs: Vec<Repair>,
    /// Everything before this is whole lines, but for a newline that may be missing.
    pub durable: u64,
    /// How it ends.
    pub tail: Tail,
}

/// How a file ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// With a newline.
    Whole,
    /// With a whole line without its newline.
    NoNewline,
    /// With a piece of an entry.
    Torn,
    /// With a line over the limit that no newline ends.
    TooLong,
    /// It is of an older version; so many entries were read.
    Old { entries: usize },
}

/// An index that is about to be made.
pub struct Indexing {
    source: Source,
    end: u64,
    path: Path,
}

/// An index that was made, up to some place of the file.
pub struct Indexed {
    index: Index,
    end: u64,
    /// The session's path as it was, with what it lacked.
    path: Option<Path>,
    /// What was odd about the lines.
    pub repairs: Vec<Repair>,
}

/// Entries to be answered with, some of which have to be read first.
pub struct Wanted {
    source: Option<Source>,
    entries: Vec<Where>,
}

enum Where {
    Here(Arc<Entry>),
    There(Stand),
}

/// Where an entry stands in a file, and the parent it has there if its line names another one.
struct Stand {
    spot: Spot,
    mended: Option<Option<EntryId>>,
}

impl Source {
    /// A file whose entries begin behind this header.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(path: PathBuf, header: &Found) -> Result<Self, StoreError> {
        let file = regular::open(&path, regular::Links::Followed).map_err(StoreError::io(&path, "cannot be read"))?;
        Ok(Self::of(path, Arc::new(file), header))
    }

    /// A file that is open already, whose entries begin behind this header.
    #[must_use]
    pub fn of(path: PathBuf, file: Arc<File>, header: &Found) -> Self {
        Self { path, file, floor: header.end, header_lines: header.lines }
    }

    /// Its name.
    #[must_use]
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// The file.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Where the entries begin, in bytes.
    #[must_use]
    pub fn floor(&self) -> u64 {
        self.floor
    }

    /// How long it is now, in bytes.
    ///
    /// # Errors
    /// When the operating system does not say.
    pub fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// How many lines stand before the entries.
    pub fn header_lines(&self) -> usize {
        self.header_lines
    }

    pub fn failed(&self) -> impl FnOnce(io::Error) -> StoreError {
        StoreError::io(&self.path, "cannot be read")
    }

    /// Reads the file so that the session can be worked with.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn load(self, found: &Found) -> Result<Loaded, StoreError> {
        let length = self.file.metadata().map_err(self.failed())?.len();
        if found.header.version < VERSION {
            let (entries, repairs) = migrate::read(&self.file, found, length).map_err(self.failed())?;
            let tail = Tail::Old { entries: entries.len() };
            let mut history = History::in_memory(Vec::new());
            let oddities: Vec<Repair> = entries.into_iter().filter_map(|entry| history.add(entry)).collect();
            let repairs = repairs.into_iter().chain(oddities).collect();
            return Ok(Loaded { history, repairs, durable: length, tail });
        }
        let (durable, tail) = self.end(length)?;
        let mut repairs = Vec::new();
        let mut index = None;
        let mut torn_line = None;
        if durable <= INDEXED_AT_ONCE
            && let Some(made) = self.index(durable, &|| false)?
        {
            torn_line = Some(made.lines + usize::from(self.ends_line(durable)?));
            index = Some(made.index);
            repairs = made.repairs;
        }
        if tail == Tail::TooLong {
            let detail = format!("the last line is longer than {LONGEST} bytes and has no end; it is left out");
            repairs.push(Repair { kind: "torn_tail", line: torn_line, detail });
        }
        if tail == Tail::Torn {
            let detail = "the last line is incomplete; it is left out, and moved to a .torn file before the next write";
            repairs.push(Repair { kind: "torn_tail", line: torn_line, detail: detail.to_owned() });
        }
        if found.header.version > VERSION {
            let version = found.header.version;
            let detail = format!("version {version} is newer than {VERSION}, which is what is understood here");
            repairs.push(Repair { kind: "newer_version", line: None, detail });
        }
        let path = self.path_from(durable)?;
        repairs.extend(self.unreadable(&path, index.as_ref())?);
        let index = index.map(Arc::new);
        let mut history = History { path, index, bodies: Bodies::File(self), asleep: None };
        if let Some(library) = history.library() {
            library.look_into_the_past(&mut history.path);
        }
        Ok(Loaded { history, repairs, durable, tail })
    }

    /// Entries of a path that are not in the form of their type, by their lines where an index knows those.
    fn unreadable(&self, path: &Path, index: Option<&Index>) -> Result<Vec<Repair>, StoreError> {
        let found = path.iter().filter_map(|entry| Some((unreadable(entry)?, &entry.id)));
        let (mut repairs, ids): (Vec<Repair>, Vec<&EntryId>) = found.unzip();
        let Some(index) = index else { return Ok(repairs) };
        let spots: Vec<Option<Spot>> = ids.into_iter().map(|id| Some(index.spot(index.find(id)?))).collect();
        let known: Vec<Spot> = spots.iter().flatten().copied().collect();
        let mut numbers = self.line_numbers(&known)?.into_iter();
        for (repair, _) in repairs.iter_mut().zip(spots).filter(|(_, spot)| spot.is_some()) {
            repair.line = numbers.next();
        }
        Ok(repairs)
    }

    /// Where the last whole entry ends.
    fn end(&self, length: u64) -> Result<(u64, Tail), StoreError> {
        let mut lines = Backwards::new(&self.file, self.floor, length);
        let Some(line) = lines.before().map_err(self.failed())? else {
            return Ok((length, if self.floor > length { Tail::NoNewline } else { Tail::Whole }));
        };
        if line.ended {
            return Ok((length, Tail::Whole));
        }
        if line.is_blank() && !line.too_long {
            return Ok((length, Tail::NoNewline));
        }
        Ok(match pieces::of(&line, Form::Today).as_slice() {
            [.., Piece::Entry(..)] => (length, Tail::NoNewline),
            // A whole entry before the piece on the same line is read.
            [.., Piece::Entry(whole, _), Piece::Broken(..)] => (line.offset + whole.end as u64, Tail::Torn),
            _ if line.too_long => (line.offset, Tail::TooLong),
            _ => (line.offset, Tail::Torn),
        })
    }

    /// Whether a line ends right before `at`.
    pub fn ends_line(&self, at: u64) -> Result<bool, StoreError> {
        if at == 0 {
            return Ok(true);
        }
        let spot = Spot { offset: at - 1, length: 1 };
        Ok(lines::at(&self.file, spot).map_err(self.failed())? == b"\n")
    }

    /// Whether what stands behind `from` ends with a whole entry, though no newline follows it.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn ends_with_entry(&self, from: u64, length: u64) -> Result<bool, StoreError> {
        let mut lines = Backwards::new(&self.file, from, length);
        let last = lines.before().map_err(self.failed())?;
        Ok(last
            .is_some_and(|line| !line.ended && matches!(pieces::of(&line, Form::Today).last(), Some(Piece::Entry(..)))))
    }

    /// Whether the last line ends with an entry, or with a broken one whose id can be read.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn ends_with_id(&self, length: u64) -> Result<bool, StoreError> {
        let mut lines = Backwards::new(&self.file, self.floor, length);
        let Some(line) = lines.before().map_err(self.failed())? else { return Ok(true) };
        if line.is_blank() {
            return Ok(false);
        }
        let next = line.next + u64::from(!line.ended);
        let pieces = pieces::of(&line, Form::Today);
        let last = pieces.last().filter(|piece| piece.entry(&line).is_some());
        Ok(last.is_some_and(|piece| piece.spot(&line).is_right_before(next)))
    }

    /// Reads backwards from `end` to where the context of the last entry begins.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn path_from(&self, end: u64) -> Result<Path, StoreError> {
        self.path_behind(None, end)
    }

    /// The same, as it would be with an entry behind the last line, where one is given.
    fn path_behind(&self, leaf: Option<Arc<Entry>>, end: u64) -> Result<Path, StoreError> {
        let mut walk = Walk::new(self, end);
        let mut leaf = leaf;
        path::gather(|child| match leaf.take() {
            Some(leaf) => Ok(Some(leaf)),
            None => walk.before(child),
        })
    }

    /// The entries from one offset to another, whole lines only, and where the last of those ends. A placeholder stands
    /// for what is broken, and nothing for what has no id.
    ///
    /// # Errors
    /// When the file cannot be read, or ends in a line over the limit.
    pub fn entries_between(&self, from: u64, to: u64) -> Result<(Vec<Placed>, u64), StoreError> {
        let mut entries = Vec::new();
        let mut end = from;
        let mut too_long = None;
        let each = |line: Line<'_>| {
            if line.ended {
                end = line.next;
                if !line.is_blank() {
                    let pieces = pieces::of(&line, Form::Today);
                    let placed = |piece: &Piece<'_>| Some((piece.entry(&line)?, piece.spot(&line)));
                    entries.extend(pieces.iter().filter_map(placed));
                }
            } else if line.too_long {
                too_long = Some(line.offset);
            }
            ControlFlow::Continue(())
        };
        lines::forwards(&self.file, from, to, each).map_err(self.failed())?;
        match too_long {
            Some(offset) => Err(self.too_long(offset)),
            None => Ok((entries, end)),
        }
    }

    /// The error of a line over the limit that begins at `offset`.
    pub fn too_long(&self, offset: u64) -> StoreError {
        StoreError::LineTooLong { path: self.path.clone(), offset }
    }

    /// Reads the entry that stands at a place, or its placeholder.
    ///
    /// # Errors
    /// When the file cannot be read, or no entry stands there.
    pub fn read(&self, spot: Spot) -> Result<Arc<Entry>, StoreError> {
        let bytes = lines::at(&self.file, spot).map_err(self.failed())?;
        pieces::entry(&bytes).or_else(|what| {
            let changed = || StoreError::Changed { path: self.path.clone(), what };
            pieces::placeholder(&bytes, spot).ok_or_else(changed)
        })
    }

    fn read_at(&self, stand: &Stand) -> Result<Arc<Entry>, StoreError> {
        let entry = self.read(stand.spot)?;
        Ok(match &stand.mended {
            Some(parent) => entry.behind(parent.clone()),
            None => entry,
        })
    }
}

impl History {
    /// The history of a session that is kept in memory alone.
    #[must_use]
    pub fn in_memory(entries: Vec<Arc<Entry>>) -> Self {
        let bodies = Bodies::Memory(Arc::default());
        let mut history = Self { path: Path::default(), index: Some(Arc::default()), bodies, asleep: None };
        entries.into_iter().for_each(|entry| drop(history.add(entry)));
        history
    }

    /// The history of a new file that has these entries.
    #[must_use]
    pub fn of_new_file(source: Source, entries: Vec<Arc<Entry>>) -> Self {
        let mut index = Index::default();
        let mut offset = source.floor;
        for entry in &entries {
            let spot = Spot { offset, length: entry.line().len() as u32 };
            offset += u64::from(spot.length) + 1;
            push(&mut index, entry, spot, Some(&source));
        }
        Self { path: Path::of(&entries), index: Some(Arc::new(index)), bodies: Bodies::File(source), asleep: None }
    }

    /// The path to the leaf.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many entries there are, once that is known.
    #[must_use]
    pub fn entry_count(&self) -> Option<usize> {
        self.index.as_ref().map(|index| index.len())
    }

    /// The index, once there is one.
    #[must_use]
    pub fn index(&self) -> Option<&Index> {
        self.index.as_deref()
    }

    /// All of it, once there is an index.
    #[must_use]
    pub fn library(&self) -> Option<Library> {
        Some(Library { index: self.index.clone()?, bodies: self.bodies.clone() })
    }

    /// The file.
    #[must_use]
    pub fn source(&self) -> Option<&Source> {
        match &self.bodies {
            Bodies::File(source) => Some(source),
            Bodies::Memory(_) => None,
        }
    }

    /// Reads paths of the session away from it.
    #[must_use]
    pub fn reader(&self) -> Reader {
        Reader(self.bodies.clone())
    }

    /// Adds an entry that was appended. One that does not go on where the path ends needs the new path along.
    pub fn push(&mut self, entry: Arc<Entry>, spot: Option<Spot>) {
        match spot {
            Some(spot) if self.source().is_some() => {
                if let (Some(index), Bodies::File(source)) = (&mut self.index, &self.bodies) {
                    push(Arc::make_mut(index), &entry, spot, Some(source));
                }
                if self.asleep.is_none() && self.path.continues_with(&entry) {
                    self.path.push(entry);
                }
            }
            _ => drop(self.add(entry)),
        }
    }

    /// Adds an entry in memory.
    fn add(&mut self, entry: Arc<Entry>) -> Option<Repair> {
        let (Bodies::Memory(entries), Some(index)) = (&mut self.bodies, &mut self.index) else { return None };
        let index = Arc::make_mut(index);
        let spot = Spot { offset: entries.len() as u64, length: 0 };
        let oddity = push(index, &entry, spot, None);
        let mended = index.leaf().and_then(|place| index.mended_parent(place)).cloned();
        let entry = match mended {
            Some(parent) => entry.behind(parent),
            None => entry,
        };
        Arc::make_mut(entries).push(entry.clone());
        if self.path.continues_with(&entry) {
            self.path.push(entry.clone());
        } else {
            self.path = Path::of(entries);
        }
        oddity.map(|oddity| odd(&oddity, entry.id.as_str(), None))
    }

    /// Takes a path that was gathered anew.
    pub fn set_path(&mut self, path: Path) {
        self.path = path;
    }

    /// Looks up what the path's context needs from before it, once everything that was appended is in the index.
    pub fn complete(&mut self) {
        if self.path.lacks_its_past()
            && let Some(library) = self.library()
        {
            library.look_into_the_past(&mut self.path);
        }
    }

    /// Lets go of what stands before the first kept entry, where it can be read again.
    pub fn trim(&mut self) {
        if self.source().is_some() {
            self.path.trim();
        }
    }

    /// How the index is made, where there is none yet.
    #[must_use]
    pub fn indexing(&self, end: u64) -> Option<Indexing> {
        let source = self.source().filter(|_| self.index.is_none())?.clone();
        Some(Indexing { source, end, path: self.path.clone() })
    }

    /// Takes an index that was made, and what came behind it meanwhile.
    ///
    /// # Errors
    /// When that cannot be read.
    pub fn set_index(&mut self, indexed: Indexed, durable: u64) -> Result<(), StoreError> {
        let Indexed { mut index, end, path, .. } = indexed;
        if let Some(source) = self.source()
            && end < durable
        {
            source.index_on(&mut index, end, durable)?;
        }
        self.index = Some(Arc::new(index));
        if let Some(path) = path {
            self.path.learn_its_past_from(&path);
        }
        // A path that changed meanwhile, which hardly ever happens, is looked at here.
        if let Some(library) = self.library() {
            library.look_into_the_past(&mut self.path);
        }
        Ok(())
    }

    /// The entries at these places.
    #[must_use]
    pub fn wanted(&self, places: impl IntoIterator<Item = Place>) -> Wanted {
        let stands = places.into_iter().filter_map(|place| Some(stand(self.index.as_ref()?, place)));
        let entries = stands.map(|stand| match &self.bodies {
            Bodies::File(_) => Where::There(stand),
            Bodies::Memory(entries) => Where::Here(entries[stand.spot.offset as usize].clone()),
        });
        Wanted { entries: entries.collect(), source: self.source().cloned() }
    }

    /// Lets go of the bodies, where they can be read again.
    pub fn sleep(&mut self) {
        if self.source().is_some() && self.asleep.is_none() {
            let tokens = self
                .path
                .iter()
                .map(|entry| entry.tokens_known(crate::conversation::tokens::Estimator::Tiktoken))
                .collect();
            self.asleep = Some(Counts { first: self.path.first().map(|entry| entry.id.clone()), tokens });
            self.path = Path::default();
        }
    }

    /// The path is not known any more, and is read again when it is needed.
    pub fn forget_path(&mut self) {
        self.asleep = Some(Counts { first: None, tokens: Box::default() });
        self.path = Path::default();
    }

    /// Reads one entry that is not on the path.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn look_up(&self, id: &EntryId) -> Result<Option<Arc<Entry>>, StoreError> {
        let Some(library) = self.library() else { return Ok(None) };
        library.index.find(id).map(|place| library.body(place)).transpose()
    }

    /// Whether an entry is on the path to the leaf, also before what is in memory of it. Needs the index for that.
    #[must_use]
    pub fn is_on_path(&self, id: &EntryId) -> bool {
        let in_file = || {
            let index = self.index.as_ref()?;
            let place = index.find(id)?;
            let first = index.find(&self.path.first()?.id)?;
            Some(std::iter::successors(Some(first), |place| index.parent(*place)).any(|it| it == place))
        };
        self.path.position(id).is_some() || in_file() == Some(true)
    }

    /// Whether its bodies were let go of.
    #[must_use]
    pub fn is_asleep(&self) -> bool {
        self.asleep.is_some()
    }

    /// Takes the path again.
    pub fn wake(&mut self, path: Path) {
        if let Some(counts) = self.asleep.take()
            && counts.first.as_ref() == path.first().map(|entry| &entry.id)
        {
            let known = path.iter().zip(counts.tokens).filter_map(|(entry, tokens)| Some((entry, tokens?)));
            known.for_each(|(entry, tokens)| entry.remember_tokens(tokens));
        }
        self.set_path(path);
    }
}

impl Indexing {
    /// Makes it, unless it is stopped; away from the session, because it may take a second.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn run(self, stopped: &dyn Fn() -> bool) -> Result<Option<Indexed>, StoreError> {
        let Self { source, end, mut path } = self;
        let Some(Made { index, repairs, .. }) = source.index(end, stopped)? else { return Ok(None) };
        let mut indexed = Indexed { index, end, path: None, repairs };
        if path.lacks_its_past() {
            let library = Library { index: Arc::new(indexed.index), bodies: Bodies::File(source) };
            library.look_into_the_past(&mut path);
            indexed.index = Arc::into_inner(library.index).expect("nobody else has it");
            indexed.path = Some(path);
        }
        Ok(Some(indexed))
    }
}

impl Reader {
    /// The path to an entry that is not appended yet. `end` is the length of the file.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn path_behind(&self, entry: Arc<Entry>, end: u64) -> Result<Path, StoreError> {
        match &self.0 {
            Bodies::File(source) => source.path_behind(Some(entry), end),
            Bodies::Memory(entries) => Ok(Path::of(&[entries.as_slice(), &[entry]].concat())),
        }
    }
}

fn stand(index: &Index, place: Place) -> Stand {
    Stand { spot: index.spot(place), mended: index.mended_parent(place).cloned() }
}

impl Library {
    /// The index.
    #[must_use]
    pub fn index(&self) -> &Index {
        &self.index
    }

    fn body(&self, place: Place) -> Result<Arc<Entry>, StoreError> {
        match &self.bodies {
            Bodies::File(source) => source.read_at(&stand(&self.index, place)),
            Bodies::Memory(entries) => Ok(entries[self.index.spot(place).offset as usize].clone()),
        }
    }

    /// The path to an entry, as far back as its context needs, and what that needs from before; none where there is no
    /// such entry.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn path_to(&self, id: &EntryId) -> Result<Option<Path>, StoreError> {
        let Some(leaf) = self.index.find(id) else { return Ok(None) };
        let mut next = Some(leaf);
        let mut path = path::gather(|_| {
            let here = next;
            next = here.and_then(|place| self.index.parent(place));
            here.map(|place| self.body(place)).transpose()
        })?;
        self.look_into_the_past(&mut path);
        Ok(Some(path))
    }

    /// Finds what a context needs from before a path, where the compaction in force is another program's. What of it
    /// cannot be read is left out.
    pub fn look_into_the_past(&self, path: &mut Path) {
        if !path.lacks_its_past() {
            return;
        }
        let Some(first) = path.first().and_then(|entry| self.index.find(&entry.id)) else { return };
        let readable = |place: Place| {
            let entry = self.body(place);
            entry.inspect_err(|error| tracing::warn!(%error, "an entry before the path is left out")).ok()
        };
        let mut told = Path::default();
        self.index.landmarks_before(first).into_iter().filter_map(readable).for_each(|entry| told.push(entry));
        let mut past = Preserved::of(&told);
        let mut earlier = std::iter::successors(self.index.parent(first), |place| self.index.parent(*place));
        let newest = earlier.by_ref().filter_map(readable).find(|entry| entry.is_from(Role::User));
        past.newest_user_message = newest.map(|entry| context::carried(&entry));
        // A pin on the path may be of an entry that the other program's compaction left behind.
        let left_behind = path.pins().iter().filter(|pin| pin.text.is_none() && path.position(&pin.entry).is_none());
        for pin in left_behind {
            if past.pins.iter().all(|known| known.entry_id != pin.entry) {
                past.pins.push(CarriedPin { entry_id: pin.entry.clone(), text: None });
            }
        }
        past.pins.sort_by_key(|pin| self.index.find(&pin.entry_id));
        // Their texts stand somewhere before the path.
        for pin in past.pins.iter_mut().filter(|pin| pin.text.is_none()) {
            pin.text = self.index.find(&pin.entry_id).and_then(readable).map(|entry| entry.pinned_text());
        }
        path.learn_its_past(past);
    }
}

impl Wanted {
    /// Reads them one by one.
    pub fn read(self) -> impl Iterator<Item = Result<Arc<Entry>, StoreError>> {
        let Self { source, entries } = self;
        entries.into_iter().map(move |entry| match (entry, &source) {
            (Where::Here(entry), _) => Ok(entry),
            (Where::There(stand), Some(source)) => source.read_at(&stand),
            (Where::There(_), None) => unreachable!("only entries in a file are not here"),
        })
    }
}
