//! The contract of a log, kept by the file and by the disk in memory: the same steps give the same entries and the same
//! path.

use abridged::{
    conversation::{entry::Header, path::Path},
    ids::EntryId,
    log::{
        Access, Appended, Grown, Log,
        error::StoreError,
        files,
        history::History,
        memory::{Disk, Unconfirmed},
        sealed::Blocking,
    },
    session::log_work::placed,
};
use proptest::{prelude::*, sample};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fs, io::Write as _, path::PathBuf};

/// A file that outlives its logs.
pub trait Medium {
    fn open(&self) -> Result<files::Opened, StoreError>;
    fn open_read_only(&self) -> Result<files::Opened, StoreError>;
    fn write_as_another(&self, bytes: &[u8]);
    fn bytes(&self) -> Vec<u8>;

    fn append_as_another(&self, line: &str) {
        self.write_as_another(format!("{line}\n").as_bytes());
    }
}

struct File {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Medium for File {
    fn open(&self) -> Result<files::Opened, StoreError> {
        files::open(&self.path, &Blocking::is_allowed_here())
    }

    fn open_read_only(&self) -> Result<files::Opened, StoreError> {
        files::open_read_only(&self.path, &Blocking::is_allowed_here())
    }

    fn write_as_another(&self, bytes: &[u8]) {
        let mut file = fs::OpenOptions::new().append(true).open(&self.path).expect("a file");
        file.write_all(bytes).expect("a write");
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(&self.path).expect("a file")
    }
}

impl Medium for Disk {
    fn open(&self) -> Result<files::Opened, StoreError> {
        Self::open(self)
    }

    fn open_read_only(&self) -> Result<files::Opened, StoreError> {
        Self::open_read_only(self)
    }

    fn write_as_another(&self, bytes: &[u8]) {
        Self::write_as_another(self, bytes);
    }

    fn bytes(&self) -> Vec<u8> {
        Self::bytes(self)
    }

    fn append_as_another(&self, line: &str) {
        Self::append_as_another(self, line).expect("an entry");
    }
}

fn header() -> Header {
    serde_json::from_value(json!({"type": "session", "version": 3, "id": "s", "timestamp": "", "cwd": "/"}))
        .expect("a header")
}

/// A file of these bytes, a disk in memory, and one that is opened with its index, as the small file is.
fn media_of(bytes: &[u8]) -> [Box<dyn Medium>; 3] {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s.jsonl");
    fs::write(&path, bytes).expect("a file");
    let indexed = Disk::of(bytes.to_vec());
    indexed.index_at_once(u64::MAX);
    [Box::new(File { path, _folder: folder }), Box::new(Disk::of(bytes.to_vec())), Box::new(indexed)]
}

pub fn media() -> [Box<dyn Medium>; 3] {
    let disk = Disk::new(header(), &[]).expect("a disk");
    media_of(&disk.bytes())
}

fn line(id: &str, parent: Option<&str>) -> String {
    let message = json!({"role": "user", "content": id, "timestamp": 0});
    json!({"type": "message", "id": id, "parentId": parent, "timestamp": "", "message": message}).to_string()
}

fn running() -> Value {
    json!({"operationId": "o", "kind": "compaction", "reason": "manual", "startedAt": ""})
}

/// A session that does with a log as the daemon does.
struct Session {
    log: Box<dyn Log>,
    history: History,
}

impl Session {
    fn open(medium: &dyn Medium) -> Self {
        let files::Opened { log, history, .. } = medium.open().expect("it opens");
        Self { log, history }
    }

    fn leaf(&self) -> Option<EntryId> {
        self.history.path().last().map(|leaf| leaf.id.clone())
    }

    fn take_in(&mut self, grown: Grown) {
        let Grown { entries, path } = grown;
        entries.into_iter().for_each(|placed| self.history.push(placed));
        if let (Some(path), Some(_)) = (path, self.history.source()) {
            self.history.set_path(path);
        }
    }

    fn catch_up(&mut self) {
        self.wake();
        let grown = self.log.catch_up(self.leaf().as_ref()).expect("it can be read");
        self.take_in(grown);
    }

    /// Reads the path again where its entries were let go of.
    fn wake(&mut self) {
        if let (true, Some(source)) = (self.history.is_asleep(), self.history.source()) {
            let path = source.open(&Blocking::is_allowed_here()).path_from(self.log.end()).expect("it can be read");
            self.history.wake(path);
        }
    }

    /// Builds the index up to the end that is known now.
    fn index(&mut self) {
        let Some(indexing) = self.history.indexing(self.log.end()) else { return };
        let indexed =
            indexing.run(&|| false, &Blocking::is_allowed_here()).expect("it can be read").expect("it is not stopped");
        assert!(indexed.covers(self.log.end(), self.history.path()));
        self.history.set_index(indexed);
    }

    /// Appends a line until no entry of another program is before it. Its parent is the leaf, or an entry of the path.
    fn append(&mut self, id: &str, parent: Option<&sample::Index>) {
        self.wake();
        loop {
            let parent = match parent.filter(|_| !self.history.path().is_empty()) {
                Some(index) => Some(index.get(self.history.path()).id.clone()),
                None => self.leaf(),
            };
            let line = line(id, parent.as_ref().map(EntryId::as_str));
            match self.log.append(std::slice::from_ref(&line), self.leaf().as_ref()).expect("a write") {
                Appended::Behind(grown) => self.take_in(grown),
                Appended::Written { at, others } => {
                    let elsewhere = parent != self.leaf() || !others.is_empty();
                    others.into_iter().for_each(|placed| self.history.push(placed));
                    let entry = abridged::conversation::entry::Entry::parse(line.as_str().into()).expect("an entry");
                    placed(&[entry.into()], at).for_each(|placed| self.history.push(placed));
                    if let (true, Some(source)) = (elsewhere, self.history.source().cloned()) {
                        let path = source.open(&Blocking::is_allowed_here()).path_from(self.log.end());
                        self.history.set_path(path.expect("it can be read"));
                    }
                    return;
                }
            }
        }
    }
}

fn ids(path: &Path) -> Vec<String> {
    path.iter().map(|entry| known(&entry.id)).collect()
}

/// An id, and one word for that of a marker, which the two media make in different ways.
fn known(id: &EntryId) -> String {
    if id.as_str().len() < 16 { id.to_string() } else { "marker".to_owned() }
}

/// The paths to all entries, by the index, without those to markers.
fn tree(session: &mut Session) -> BTreeMap<String, Vec<String>> {
    session.index();
    let library = session.history.library().expect("an index");
    let index = library.index();
    let entries = session.history.wanted(index.after(None));
    let blocking = &Blocking::is_allowed_here();
    let entries = entries.read(blocking).map(|entry| entry.expect("it can be read"));
    let path_to = |id: &EntryId| library.path_to(id, blocking).expect("it can be read").expect("it is there");
    let paths = entries.map(|entry| (known(&entry.id), path_to(&entry.id)));
    paths.map(|(id, path)| (id, ids(&path))).filter(|(id, _)| id != "marker").collect()
}

#[derive(Debug, Clone)]
pub enum Step {
    /// The session appends behind its leaf.
    Append,
    /// The session appends behind an entry of its path.
    Branch(sample::Index),
    /// Another program appends behind an entry of the path.
    Other(sample::Index),
    /// Another program appends a line in two pieces, the second one after the session has looked.
    InPieces(sample::Index),
    CatchUp,
    Index,
    Sleep,
    Reopen,
    /// A crash leaves a piece of a line, and the session is opened again.
    Torn(sample::Index),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => Just(Step::Append),
        2 => any::<sample::Index>().prop_map(Step::Branch),
        3 => any::<sample::Index>().prop_map(Step::Other),
        2 => any::<sample::Index>().prop_map(Step::InPieces),
        1 => Just(Step::CatchUp),
        1 => Just(Step::Index),
        1 => Just(Step::Sleep),
        1 => Just(Step::Reopen),
        1 => any::<sample::Index>().prop_map(Step::Torn),
    ];
    prop::collection::vec(step, 1..25)
}

/// The path after each step, the paths to all entries at the end, and the ids of a second reader's path.
pub type Played = (Vec<Vec<String>>, BTreeMap<String, Vec<String>>, Vec<String>);

pub fn play(medium: &dyn Medium, steps: &[Step]) -> Played {
    let mut session = Session::open(medium);
    let mut reader = medium.open_read_only().expect("it opens");
    let mut paths = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let id = format!("e{number:07}");
        let other = |session: &mut Session, parent: &sample::Index| {
            session.wake();
            let path = session.history.path();
            let parent = (!path.is_empty()).then(|| parent.get(path).id.to_string());
            line(&id, parent.as_deref())
        };
        match step {
            Step::Append => session.append(&id, None),
            Step::Branch(parent) => session.append(&id, Some(parent)),
            Step::Other(parent) => {
                let line = other(&mut session, parent);
                medium.append_as_another(&line);
                assert!(session.log.may_have_grown(), "a line of another program can be seen");
            }
            Step::InPieces(at) => {
                let line = other(&mut session, at);
                let (first, second) = line.split_at(1 + at.index(line.len() - 1));
                medium.write_as_another(first.as_bytes());
                session.catch_up();
                assert!(session.log.may_have_grown(), "half a line can be seen");
                medium.write_as_another(format!("{second}\n").as_bytes());
            }
            Step::CatchUp => session.catch_up(),
            Step::Index => session.index(),
            Step::Sleep => session.history.sleep(),
            Step::Reopen => {
                drop(session);
                session = Session::open(medium);
            }
            Step::Torn(at) => {
                let line = other(&mut session, at);
                drop(session);
                medium.write_as_another(&line.as_bytes()[..1 + at.index(line.len() - 1)]);
                session = Session::open(medium);
            }
        }
        let asleep = session.history.is_asleep();
        paths.push(if asleep { vec!["asleep".to_owned()] } else { ids(session.history.path()) });
    }
    session.catch_up();
    let live = ids(session.history.path());
    // A torn tail stays until the next write.
    session.append("e-end", None);
    assert!(!session.log.may_have_grown(), "everything was read");
    paths.extend([live, ids(session.history.path())]);
    let tree = tree(&mut session);
    let ending = paths.last().cloned();
    drop(session);
    let mut opened = Session::open(medium);
    assert_eq!(Some(ids(opened.history.path())), ending, "an opened session has the path of the live one");
    assert_eq!(self::tree(&mut opened), tree, "an index that grew is the one of the whole file");
    let leaf = reader.history.path().last().map(|leaf| leaf.id.clone());
    let seen = match reader.log.catch_up(leaf.as_ref()) {
        Ok(grown) => grown.entries.iter().map(|placed| known(&placed.entry.id)).collect(),
        Err(error) => vec![error.to_string().split(" (").last().unwrap_or_default().to_owned()],
    };
    (paths, tree, seen)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_file_and_the_disk_in_memory_agree(steps in steps()) {
        let [file, memory, indexed] = media().map(|medium| play(&*medium, &steps));
        prop_assert_eq!(&file, &memory);
        prop_assert_eq!(&file, &indexed);
    }
}

#[test]
fn a_log_has_one_owner() {
    for medium in media() {
        let first = medium.open().expect("it opens");
        assert_eq!(first.log.access(), Access::Write);
        assert!(matches!(medium.open(), Err(StoreError::Locked { .. })));
        drop(first);
        medium.open().expect("it opens again");
    }
}

#[test]
fn an_operation_that_runs_is_known_to_the_next_owner() {
    // A kill of the file's owner is a test of the real binary: `kills.rs`.
    let disk = Disk::new(header(), &[]).expect("a disk");
    let first = disk.open().expect("it opens");
    first.log.register().expect("a lock").record(vec![serde_json::from_value(running()).expect("an operation")]);
    disk.crash();
    let next = disk.open().expect("it opens after the crash");
    assert_eq!(serde_json::to_value(next.left_behind).expect("JSON"), json!([running()]));
}

#[test]
fn a_crashed_log_changes_nothing_of_the_next_owner() {
    let disk = Disk::new(header(), &[]).expect("a disk");
    let mut crashed = disk.open().expect("it opens");
    disk.crash();
    let next = disk.open().expect("it opens after the crash");
    crashed.log.register().expect("a lock").record(vec![serde_json::from_value(running()).expect("an operation")]);
    assert!(crashed.log.append(&[line("a", None)], None).is_err());
    drop(crashed);
    assert!(matches!(disk.open(), Err(StoreError::Locked { .. })), "the crashed log released the lock of the next");
    drop(next);
    assert!(disk.open().expect("it opens again").left_behind.is_empty());
    assert!(disk.ids().is_empty());
}

#[test]
fn a_failed_append_leaves_nothing_behind() {
    let disk = Disk::new(header(), &[]).expect("a disk");
    let mut session = Session::open(&disk);
    session.append("a", None);
    disk.fill();
    let leaf = session.leaf();
    assert!(session.log.append(&[line("b", Some("a"))], leaf.as_ref()).is_err());
    disk.make_room();
    session.append("c", None);
    assert_eq!(disk.ids().iter().map(EntryId::as_str).collect::<Vec<_>>(), ["a", "c"]);
}

/// The bytes of a file in which the session `e1`, `e2` was written.
fn two_entries() -> Disk {
    Disk::new(header(), &[line("e1", None), line("e2", Some("e1"))]).expect("a disk")
}

#[test]
fn a_disk_in_memory_is_opened_without_an_index_and_small_ones_with_it_on_request() {
    let disk = two_entries();
    let mut session = Session::open(&disk);
    assert!(session.history.library().is_none() && session.history.entry_count().is_none());
    session.append("e3", None);
    session.index();
    assert_eq!(session.history.entry_count(), Some(3));
    assert_eq!(tree(&mut session)["e3"], ["e1", "e2", "e3"]);
    drop(session);
    disk.index_at_once(u64::MAX);
    assert_eq!(Session::open(&disk).history.entry_count(), Some(3));
}

#[test]
fn a_session_on_a_disk_in_memory_sleeps_and_wakes() {
    let disk = two_entries();
    let mut session = Session::open(&disk);
    session.history.sleep();
    assert!(session.history.is_asleep() && session.history.path().is_empty());
    session.append("e3", None);
    assert_eq!(ids(session.history.path()), ["e1", "e2", "e3"]);
}

/// Half a line at the end: by whom, and the ids after the next append. Both media end with the same bytes.
#[test]
fn half_a_line_of_another_program_is_waited_for_and_then_stays_a_line_of_its_own() {
    let half = &line("other", Some("e2"))[..20];
    let whole_without_newline = line("e3", Some("e2"));
    let rows: [(&str, &[&str]); 3] = [
        ("never finished", &["e1", "e2", "e9"]),
        ("whole but for its newline", &["e1", "e2", "e3", "e9"]),
        ("a torn line of the last owner", &["e1", "e2", "e9"]),
    ];
    for (row, expected) in rows {
        let mut endings = Vec::new();
        for medium in media_of(&two_entries().bytes()) {
            let mut session = (!row.contains("torn")).then(|| Session::open(&*medium));
            let text = if row.contains("newline") { whole_without_newline.as_str() } else { half };
            medium.write_as_another(text.as_bytes());
            let mut session = session.take().unwrap_or_else(|| Session::open(&*medium));
            session.append("e9", None);
            assert_eq!(ids(session.history.path()), expected, "{row}");
            drop(session);
            assert_eq!(ids(Session::open(&*medium).history.path()), expected, "{row}");
            endings.push(String::from_utf8(medium.bytes()).expect("text"));
        }
        assert!(endings.iter().all(|ending| *ending == endings[0]), "{row}: {endings:#?}");
    }
}

#[test]
fn a_line_that_is_finished_while_the_owner_waits_comes_first() {
    let disk = two_entries();
    let mut session = Session::open(&disk);
    let other = line("e3", Some("e2"));
    disk.write_as_another(&other.as_bytes()[..20]);
    disk.send_when_awaited(&[&other.as_bytes()[20..], b"\n"].concat());
    session.append("e4", None);
    assert_eq!(ids(session.history.path()), ["e1", "e2", "e3", "e4"]);
}

#[test]
fn a_line_that_comes_between_a_look_and_the_write_is_before_ours() {
    let disk = two_entries();
    let mut session = Session::open(&disk);
    disk.race(format!("{}\n", line("e3", Some("e2"))).as_bytes());
    let appended = session.log.append(&[line("e4", Some("e2"))], Some(&"e2".into())).expect("a write");
    let Appended::Written { at, others } = appended else { panic!("{appended:?}") };
    assert_eq!(others.iter().map(|placed| placed.entry.id.as_str()).collect::<Vec<_>>(), ["e3"]);
    assert_eq!(&disk.bytes()[at as usize..], format!("{}\n", line("e4", Some("e2"))).as_bytes());
}

#[test]
fn lines_that_glue_to_half_a_line_of_another_program_are_written_once_more() {
    let disk = two_entries();
    let mut session = Session::open(&disk);
    disk.race(b"{\"type\":");
    session.append("e3", None);
    assert_eq!(ids(session.history.path()), ["e1", "e2", "e3"]);
    let (ours, bytes) = (line("e3", Some("e2")), String::from_utf8(disk.bytes()).expect("text"));
    assert!(bytes.ends_with(&format!("\n{{\"type\":{ours}\n\n{ours}\n")), "{bytes}");
    drop(session);
    assert_eq!(ids(Session::open(&disk).history.path()), ["e1", "e2", "e3"]);
}

#[test]
fn a_write_that_fits_in_part_is_cut_off_again() {
    let disk = two_entries();
    let before = disk.bytes();
    let mut session = Session::open(&disk);
    for room in [0, 1, 50] {
        disk.leave_room(room);
        for _ in 0..2 {
            let error = session.log.append(&[line("e3", Some("e2"))], None).expect_err("the disk is full");
            assert!(matches!(error, StoreError::Io { .. }), "{error}");
            assert_eq!(disk.bytes(), before);
        }
    }
    let short = line("e4", Some("e2"));
    disk.leave_room(short.len() + 1);
    let long = [short.clone(), short.clone()];
    session.log.append(&long, session.leaf().as_ref()).expect_err("the disk is full");
    // A part that was cut off leaves its room to the next append.
    session.append("e4", None);
    session.log.append(&[short], session.leaf().as_ref()).expect_err("the disk is full");
    disk.make_room();
    session.append("e5", None);
    assert_eq!(ids(Session::open(&Disk::of(disk.bytes())).history.path()), ["e1", "e2", "e4", "e5"]);
}

#[test]
fn a_failed_write_behind_a_line_of_another_program_says_that_a_part_may_have_stayed() {
    let disk = two_entries();
    let mut session = Session::open(&disk);
    disk.race(format!("{}\n", line("e3", Some("e2"))).as_bytes());
    disk.leave_room(50);
    let lines = [line("e4", Some("e2"))];
    let error = session.log.append(&lines, session.leaf().as_ref()).expect_err("the disk is full");
    assert!(error.to_string().contains("a part of the write may have stayed"), "{error}");
    let bytes = String::from_utf8(disk.bytes()).expect("text");
    assert!(bytes.ends_with(&format!("\n{}", &lines[0][..50])), "{bytes}");
    let error = session.log.append(&lines, session.leaf().as_ref()).expect_err("writing is over");
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
}

#[test]
fn after_a_failed_fsync_the_log_is_read_only_and_the_lines_are_there_or_not() {
    for (unconfirmed, expected) in [(Unconfirmed::Kept, vec!["e1", "e2", "e3"]), (Unconfirmed::Lost, vec!["e1", "e2"])]
    {
        let disk = two_entries();
        let mut session = Session::open(&disk);
        disk.fail_sync_once(unconfirmed);
        let lines = [line("e3", Some("e2"))];
        let error = session.log.append(&lines, session.leaf().as_ref()).expect_err("it is not confirmed");
        assert!(matches!(error, StoreError::Io { .. }), "{error}");
        for _ in 0..2 {
            let error = session.log.append(&lines, session.leaf().as_ref()).expect_err("writing is over");
            assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
        }
        assert!(session.log.catch_up(session.leaf().as_ref()).expect("it is read").entries.is_empty());
        drop(session);
        let mut next = Session::open(&disk);
        assert_eq!(ids(next.history.path()), expected, "{unconfirmed:?}");
        next.append("e4", None);
    }
}

/// Each length that a crash may leave of an append, also nothing and all of it. The file on disk that ends with the same
/// bytes is handled the same.
#[test]
fn a_crash_during_an_append_leaves_a_torn_tail_that_the_next_owner_moves_aside() {
    let written = format!("{}\n", line("e3", Some("e2")));
    for left in 0..=written.len() {
        let disk = two_entries();
        let before = disk.bytes();
        let mut session = Session::open(&disk);
        disk.crash_torn(left);
        let lines = [written.trim_end().to_owned()];
        session.log.append(&lines, session.leaf().as_ref()).expect_err("the owner is gone");
        assert_eq!(disk.bytes(), [&before, &written.as_bytes()[..left]].concat());
        assert!(session.log.append(&lines, session.leaf().as_ref()).is_err(), "a crashed log writes nothing");

        let torn = disk.bytes();
        let whole = left >= written.len() - 1;
        let mut endings = Vec::new();
        let [file, _, _] = media_of(&torn);
        for medium in [&disk as &dyn Medium, &*file] {
            let mut next = Session::open(medium);
            next.append("e4", None);
            endings.push(medium.bytes());
            let expected: &[&str] = if whole { &["e1", "e2", "e3", "e4"] } else { &["e1", "e2", "e4"] };
            assert_eq!(ids(next.history.path()), expected, "{left}");
        }
        assert_eq!(endings[0], endings[1], "{left}");
        let aside = if whole || left == 0 { vec![] } else { vec![written.as_bytes()[..left].to_vec()] };
        assert_eq!(disk.torn(), aside, "{left}");
    }
}

#[test]
fn an_old_version_in_memory_is_replaced_by_its_new_form_before_the_first_write() {
    let old = json!({"type": "session", "id": "s", "timestamp": "", "cwd": "/"});
    let message =
        json!({"type": "message", "timestamp": "", "message": {"role": "user", "content": "x", "timestamp": 0}});
    let bytes = format!("{old}\n{message}\n");
    let mut endings = Vec::new();
    for medium in media_of(bytes.as_bytes()) {
        let mut reader = medium.open_read_only().expect("it opens");
        let mut session = Session::open(&*medium);
        let leaf = session.leaf();
        assert!(reader.log.catch_up(leaf.as_ref()).expect("it is what it was").entries.is_empty());
        session.log.append(&[line("e2", leaf.as_ref().map(EntryId::as_str))], leaf.as_ref()).expect("a write");
        let replaced = reader.log.catch_up(leaf.as_ref()).expect_err("another file has its place");
        assert!(matches!(replaced, StoreError::Changed { .. }), "{replaced}");
        endings.push(String::from_utf8(medium.bytes()).expect("text"));
    }
    assert!(endings[0].contains("\"version\":3") && endings[0].contains("e2"), "{}", endings[0]);
    assert!(endings.iter().all(|ending| *ending == endings[0]), "{endings:#?}");
}

#[test]
fn two_disks_with_the_same_steps_have_the_same_bytes() {
    let play = || {
        let disk = two_entries();
        let mut session = Session::open(&disk);
        // Unreadable bytes before a branch need a marker.
        disk.write_as_another(b"nothing that can be read\n");
        session.catch_up();
        session.log.append(&[line("e3", Some("e1"))], Some(&"e2".into())).expect("a write");
        disk.bytes()
    };
    let bytes = play();
    assert!(String::from_utf8_lossy(&bytes).contains("abridged.gap"));
    assert_eq!(bytes, play());
}

#[test]
fn a_log_that_is_read_refuses_lines() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s.jsonl");
    drop(files::create(&path, &header(), &[]).expect("a file"));
    let mut opened = files::open_read_only(&path, &Blocking::is_allowed_here()).expect("it opens");
    assert_eq!(opened.log.access(), Access::Read);
    assert!(matches!(opened.log.append(&[line("a", None)], None), Err(StoreError::ReadOnly { .. })));
}
