//! The list of sessions, read from the beginnings and ends of their files. No session is opened.
//!
//! The rows are cached in memory and on disk. A row is valid as long as its file has the same size and modification
//! time, so a list costs one `stat` a file, and a read of each file that is new or changed.

#![expect(clippy::disallowed_methods, reason = "lists session files")]

use crate::{
    conversation::{
        entry::Header,
        message::{self, Message},
    },
    ids::SessionId,
    log::{header, store::facts::renamed},
    protocol::types::{ListAnswer, ListParams, ListedSession},
    regular,
    session::{founding::HANDOFF, jobs::at_once},
    text::{self, values},
};
use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::Value;
use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    fs::{self, DirEntry},
    io::{self, Read},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime},
};

/// Default number of sessions in a page.
const PAGE: usize = 100;

/// Bytes at the beginning of a file that are read for its first message: the second number where the first is too few, and the
/// last one only where the header does not end before.
const HEADS: [usize; 3] = [8 * 1024, 64 * 1024, header::LONGEST];

/// Bytes at the end of a file that are read for a later name.
const TAIL: usize = 16 * 1024;

/// The most bytes of the cache file that are read, enough for 100,000 sessions. A larger file is replaced.
const LARGEST_CACHE: u64 = 64 << 20;

/// Number of changed files after which the cache file is written.
const WORTH_WRITING: usize = 50;

/// Number of files from which a further thread reads a part of them.
const WORTH_A_THREAD: usize = 64;

/// The age from which a file that is not complete has no process that goes on with it.
const UNFINISHED: Duration = Duration::from_secs(24 * 60 * 60);

/// The sessions of a folder.
pub struct Catalog {
    sessions: PathBuf,
    cache: PathBuf,
    keeps: Keeps,
    known: Mutex<Option<Known>>,
}

/// The right to write the cache file, and to remove files that were never finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keeps {
    /// The file is read, and written after many changes.
    Written,
    /// The file is only read.
    Read,
}

/// Version of the cache file. A file of another version is replaced: its rows lack fields.
const CACHE_VERSION: u32 = 3;

/// The cache file.
#[derive(Serialize, Deserialize)]
struct Kept<K> {
    version: u32,
    rows: K,
}

/// The cached rows, by the path of the file below the folder.
type Known = HashMap<String, Card>;

/// The cached row of a file, valid for this size and modification time.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Card {
    /// Nanoseconds since 1970.
    modified: u64,
    size: u64,
    /// `None` where the file is no session.
    session: Option<Face>,
    /// The sizes that a daemon saw while the session was open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sizes: Option<Sizes>,
}

/// Sizes of a session that its beginning and end do not tell.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Sizes {
    percent: Option<f64>,
    entry_count: Option<usize>,
}

/// The fields of a session that `session/list` returns.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Face {
    id: SessionId,
    cwd: String,
    /// The header's `timestamp`.
    created: String,
    /// The header's `parentSession`.
    parent: Option<String>,
    title: Option<String>,
    preview: Option<String>,
    /// Number of entries, of a file that was read whole.
    entries: Option<usize>,
}

impl Catalog {
    /// The sessions below a folder, with the cache file `cache`.
    #[must_use]
    pub fn new(sessions: PathBuf, cache: PathBuf) -> Self {
        Self { sessions, cache, keeps: Keeps::Written, known: Mutex::new(None) }
    }

    /// The same for a process that writes nothing: the cache file is only read.
    #[must_use]
    pub fn reading(sessions: PathBuf, cache: PathBuf) -> Self {
        Self { keeps: Keeps::Read, ..Self::new(sessions, cache) }
    }

    /// The files of the last list that it leaves out, because they are no sessions or cannot be read.
    #[must_use]
    pub fn left_out(&self) -> Vec<PathBuf> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let cards = known.iter().flatten().filter(|(_, card)| card.session.is_none());
        let mut files: Vec<PathBuf> = cards.map(|(name, _)| self.sessions.join(name)).collect();
        files.sort_unstable();
        files
    }

    /// The answer to `session/list`, without the status of open sessions.
    #[must_use]
    pub fn list(&self, params: &ListParams) -> ListAnswer {
        let files = files_below(&self.sessions, |unfinished| {
            if self.keeps == Keeps::Written {
                remove_unfinished(unfinished, SystemTime::now());
            }
        });
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_with(|| read_cache(&self.cache));
        let read = self.update(known, &files);
        if read >= WORTH_WRITING && self.keeps == Keeps::Written {
            self.write_cache(known);
        }

        let mut cards: Vec<(&String, &Card, &Face)> = files
            .iter()
            .filter_map(|file| known.get_key_value(&file.name))
            .filter_map(|(name, card)| Some((name, card, card.session.as_ref()?)))
            .collect();
        // Newest first; the name settles a tie, so that a cursor means the same every time.
        cards.sort_unstable_by(|a, b| b.1.modified.cmp(&a.1.modified).then_with(|| b.0.cmp(a.0)));
        let search = params.search.as_deref().map(str::to_lowercase);
        let wanted = |face: &Face| {
            let cwd = params.cwd.as_ref().is_none_or(|cwd| *cwd == face.cwd);
            let found = search.as_ref().is_none_or(|search| {
                let fields = [Some(&face.cwd), face.title.as_ref(), face.preview.as_ref()];
                fields.into_iter().flatten().any(|text| text.to_lowercase().contains(search.as_str()))
            });
            cwd && found
        };
        let path = |name: &String| self.sessions.join(name).display().to_string();
        // A cursor is a place in the order, so that it holds when its session changes or goes.
        let behind = params.cursor.as_deref().and_then(|cursor| cursor.split_once(':'));
        let behind = behind.and_then(|(modified, name)| Some((modified.parse::<u64>().ok()?, name)));
        let start = behind.map_or(0, |(modified, name)| {
            cards.partition_point(|card| (card.1.modified, card.0.as_str()) >= (modified, name))
        });
        let mut listed = cards[start..].iter().filter(|(_, _, face)| wanted(face));
        let limit = params.limit.unwrap_or(PAGE).max(1);
        let mut last = None;
        let page = listed.by_ref().take(limit).inspect(|(name, card, _)| last = Some((card.modified, *name)));
        let page = page.map(|(name, card, face)| ListedSession {
            session_id: face.id.clone(),
            path: path(name),
            cwd: face.cwd.clone(),
            parent_session_id: face.parent.as_deref().and_then(|parent| self.id_of(parent, known)),
            parent_session: face.parent.clone(),
            title: face.title.clone(),
            preview: face.preview.clone(),
            created_at: face.created.clone(),
            updated_at: rfc3339(card.modified),
            entry_count: face.entries.or(card.sizes.and_then(|sizes| sizes.entry_count)),
            percent: card.sizes.and_then(|sizes| sizes.percent),
            size_bytes: card.size,
            status: None,
        });
        let page: Vec<ListedSession> = page.collect();
        let next_cursor = listed.next().and(last).map(|(modified, name)| format!("{modified}:{name}"));
        ListAnswer { sessions: page, next_cursor }
    }

    /// Keeps the sizes of open sessions, for lists after they are closed. A change of the file makes them unknown.
    pub fn remember(&self, listed: &[ListedSession]) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for session in listed.iter().filter(|session| session.status.is_some()) {
            let name = Path::new(&session.path).strip_prefix(&self.sessions).ok().and_then(Path::to_str);
            if let Some(card) = known.as_mut().zip(name).and_then(|(known, name)| known.get_mut(name))
                && card.size == session.size_bytes
            {
                card.sizes = Some(Sizes { percent: session.percent, entry_count: session.entry_count });
            }
        }
    }

    /// The id of the session that a header names as its parent: of a file that is listed, else as the name of a file tells it.
    fn id_of(&self, parent: &str, known: &Known) -> Option<SessionId> {
        let path = Path::new(parent);
        let listed = path.strip_prefix(&self.sessions).ok().and_then(Path::to_str).and_then(|name| known.get(name));
        if let Some(face) = listed.and_then(|card| card.session.as_ref()) {
            return Some(face.id.clone());
        }
        if !parent.contains(['/', '\\']) && !parent.ends_with(".jsonl") {
            return Some(parent.into()).filter(|_| !parent.is_empty());
        }
        let (_, id) = path.file_stem()?.to_str()?.rsplit_once('_')?;
        Some(id.into())
    }

    /// Reads new and changed files and drops the rows of removed ones. Returns the number of files that were read.
    fn update(&self, known: &mut Known, files: &[Listed]) -> usize {
        let is_current = |file: &&Listed| {
            known.get(&file.name).is_some_and(|card| (card.modified, card.size) == (file.modified, file.size))
        };
        let changed: Vec<&Listed> = files.iter().filter(|file| !is_current(file)).collect();
        let card = |file: &&Listed| {
            let session = face(&self.sessions.join(&file.name), file.size).ok().flatten();
            (file.name.clone(), Card { modified: file.modified, size: file.size, session, sizes: None })
        };
        let share = changed.len().div_ceil(at_once::threads()).max(WORTH_A_THREAD);
        let shares: Vec<&[&Listed]> = changed.chunks(share).collect();
        for cards in at_once::each(&shares, |files| files.iter().map(card).collect::<Vec<_>>()) {
            known.extend(cards);
        }
        if known.len() > files.len() {
            let there: HashSet<&String> = files.iter().map(|file| &file.name).collect();
            known.retain(|name, _| there.contains(name));
        }
        changed.len()
    }

    /// Writes the cache file. On an error the files are read again by the next process.
    fn write_cache(&self, known: &Known) {
        let written = serde_json::to_vec(&Kept { version: CACHE_VERSION, rows: known }).map_err(io::Error::from);
        if let Err(error) = written.and_then(|bytes| regular::replace(&self.cache, &bytes)) {
            tracing::debug!(%error, "the list of sessions could not be kept");
        }
    }
}

fn read_cache(cache: &Path) -> Known {
    let kept =
        regular::read(cache, LARGEST_CACHE).ok().and_then(|bytes| serde_json::from_slice::<Kept<Known>>(&bytes).ok());
    kept.filter(|kept| kept.version == CACHE_VERSION).map(|kept| kept.rows).unwrap_or_default()
}

/// A session file in the folder.
struct Listed {
    /// Path below the folder of sessions.
    name: String,
    modified: u64,
    size: u64,
}

/// The session files below a folder. `unfinished` is given each file that was not complete when it was made.
fn files_below(sessions: &Path, unfinished: impl Fn(&DirEntry)) -> Vec<Listed> {
    let mut files = Vec::new();
    for folder in fs::read_dir(sessions).into_iter().flatten().flatten() {
        let folder_name = folder.file_name();
        // A session whose folder is not there yet is written here.
        if regular::is_fresh_name(&folder_name.to_string_lossy(), ".jsonl") {
            unfinished(&folder);
        }
        for file in fs::read_dir(folder.path()).into_iter().flatten().flatten() {
            let file_name = file.file_name();
            if !file_name.to_string_lossy().ends_with(".jsonl") {
                if regular::is_fresh_name(&file_name.to_string_lossy(), ".jsonl") {
                    unfinished(&file);
                }
                continue;
            }
            let Ok(metadata) = file.metadata() else { continue };
            let Some(modified) = metadata.modified().ok().and_then(nanoseconds).filter(|_| metadata.is_file()) else {
                continue;
            };
            let name = format!("{}/{}", folder_name.to_string_lossy(), file_name.to_string_lossy());
            files.push(Listed { name, modified, size: metadata.len() });
        }
    }
    files
}

/// Removes a file that was being made when its process died. A file that is being made now is much younger.
fn remove_unfinished(file: &DirEntry, now: SystemTime) {
    let Ok(metadata) = file.metadata() else { return };
    let age = metadata.modified().ok().and_then(|modified| now.duration_since(modified).ok());
    if metadata.is_file()
        && age.is_some_and(|age| age > UNFINISHED)
        && let Err(error) = fs::remove_file(file.path())
    {
        tracing::debug!(%error, "a file that was not finished could not be removed");
    }
}

/// The names of all session files below a folder.
#[must_use]
pub fn names_below(sessions: &Path) -> HashSet<PathBuf> {
    files_below(sessions, |_| {}).into_iter().map(|file| sessions.join(file.name)).collect()
}

fn nanoseconds(time: SystemTime) -> Option<u64> {
    u64::try_from(time.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_nanos()).ok()
}

fn rfc3339(nanoseconds: u64) -> String {
    let time = SystemTime::UNIX_EPOCH + Duration::from_nanos(nanoseconds);
    jiff::Timestamp::try_from(time).map(|time| time.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()).unwrap_or_default()
}

/// The row of a file, from its beginning and its end; `None` where it is no session.
fn face(path: &Path, size: u64) -> io::Result<Option<Face>> {
    let mut file = regular::open(path, regular::Links::Followed)?;
    let mut head = Vec::new();
    let mut found = None;
    for most in HEADS {
        file.by_ref().take((most - head.len()) as u64).read_to_end(&mut head)?;
        found = beginning(path, &head);
        if let Some(face) = found.as_mut().filter(|_| head.len() as u64 == size) {
            face.entries = Some(entries(&head));
        }
        let enough = found.as_ref().is_some_and(|face| face.preview.is_some() || most >= HEADS[1]);
        if enough || (head.len() as u64) == size {
            break;
        }
    }
    if let Some(face) = &mut found
        && size > head.len() as u64
    {
        let from = size.saturating_sub(TAIL as u64).max(head.len() as u64);
        let mut tail = vec![0; usize::try_from(size - from).unwrap_or(TAIL)];
        file.read_exact_at(&mut tail, from)?;
        face.title = later_title(&tail).or(face.title.take()).filter(|title| !title.is_empty());
    }
    Ok(found)
}

fn beginning(path: &Path, head: &[u8]) -> Option<Face> {
    let header::Found { header: Header { id, cwd, parent_session: parent, timestamp: created, .. }, mut title, .. } =
        header::find(path, head).ok()?;
    let (mut preview, mut handed) = (None, None);
    for line in String::from_utf8_lossy(head).lines() {
        if preview.is_some() && !may_name(line.as_bytes()) {
            continue;
        }
        let Some(line) = values::check(line).ok().and_then(|()| serde_json::from_str::<Value>(line).ok()) else {
            continue;
        };
        if let Some(name) = renamed(&line) {
            title = Some(name).filter(|name| !name.is_empty());
        }
        match line["type"].as_str() {
            Some("message") if preview.is_none() => {
                if let Ok(Message::User(content)) = Message::parse(&line["message"].to_string()) {
                    preview = Some(text::one_line(&message::text_of(&content), 160));
                }
            }
            Some("custom_message") if handed.is_none() && line["customType"] == HANDOFF => {
                let details = &line["details"];
                let first =
                    details["document"].as_str().and_then(|text| text.lines().find(|line| !line.trim().is_empty()));
                handed = details["goal"].as_str().or(first).map(|text| text::one_line(text, 160));
            }
            _ => {}
        }
    }
    // A session that goes on from another one may have no request of the user yet.
    let preview = preview.or(handed);
    Some(Face { id, cwd, created, parent, title, preview, entries: None })
}

/// The number of entries of a whole file: its lines with a type and an id, after the header.
fn entries(file: &[u8]) -> usize {
    #[derive(Deserialize)]
    struct Line<'a> {
        #[serde(rename = "type", borrow)]
        kind: Cow<'a, str>,
        #[serde(rename = "id")]
        _id: IgnoredAny,
    }
    let lines = file.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Line<'_>>(line).ok());
    lines.filter(|line| line.kind != "session").count()
}

/// Whether a line may name the session. Most lines need not be parsed for it.
fn may_name(line: &[u8]) -> bool {
    [&b"\"session_info\""[..], b"\"title_change\""].iter().any(|kind| memchr::memmem::find(line, kind).is_some())
}

/// The session name in the last lines, if any.
fn later_title(tail: &[u8]) -> Option<String> {
    let naming = tail.split(|byte| *byte == b'\n').rev().filter(|line| may_name(line));
    naming.filter_map(|line| serde_json::from_slice::<Value>(line).ok()).find_map(|line| renamed(&line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn files_that_were_never_finished_are_removed_after_a_day() {
        let home = tempfile::tempdir().expect("a folder");
        let folder = home.path().join("--project--");
        fs::create_dir(&folder).expect("a folder");
        let hex = "0123456789abcdef0123456789abcdef";
        let old = SystemTime::now() - UNFINISHED - Duration::from_secs(1);
        let made = |name: String, modified: SystemTime| {
            let path = folder.join(name);
            File::create(&path).and_then(|file| file.set_modified(modified)).expect("a file");
            path
        };
        let left_over = [format!(".a.jsonl.{hex}.tmp"), format!("../.a.jsonl.{hex}.tmp")].map(|name| made(name, old));
        let others = [
            made(format!(".b.jsonl.{hex}.tmp"), SystemTime::now()),
            made(".c.jsonl.tmp".to_owned(), old),
            made(format!("d.jsonl.{hex}.tmp"), old),
            made(format!(".e.txt.{hex}.tmp"), old),
            made("f.jsonl".to_owned(), old),
        ];
        let listed = |catalog: Catalog| catalog.list(&ListParams::default()).sessions.len();
        assert_eq!(listed(Catalog::reading(home.path().to_owned(), home.path().join("cache"))), 0);
        assert!(left_over.iter().all(|path| path.exists()), "a command that reads removes nothing");
        assert_eq!(listed(Catalog::new(home.path().to_owned(), home.path().join("cache"))), 0);
        assert!(!left_over.iter().any(|path| path.exists()));
        assert!(others.iter().all(|path| path.exists()));
    }
}
