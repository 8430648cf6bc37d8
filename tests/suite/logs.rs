//! The contract of a log, kept by the file and by the disk in memory: the same steps give the same entries and the same
//! path.

use abridged::{
    conversation::{entry::Header, path::Path},
    ids::EntryId,
    log::{Access, Appended, Grown, Log, error::StoreError, history::History, memory::Disk, store},
};
use proptest::{prelude::*, sample};
use serde_json::{Value, json};
use std::{fs, io::Write as _, path::PathBuf};

/// A file that outlives its logs.
trait Medium {
    fn open(&self) -> Result<store::Opened, StoreError>;
    fn append_as_another(&self, line: &str);
}

struct File {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Medium for File {
    fn open(&self) -> Result<store::Opened, StoreError> {
        store::open(&self.path)
    }

    fn append_as_another(&self, line: &str) {
        let mut file = fs::OpenOptions::new().append(true).open(&self.path).expect("a file");
        file.write_all(format!("{line}\n").as_bytes()).expect("a write");
    }
}

impl Medium for Disk {
    fn open(&self) -> Result<store::Opened, StoreError> {
        Self::open(self)
    }

    fn append_as_another(&self, line: &str) {
        Self::append_as_another(self, line).expect("an entry");
    }
}

fn header() -> Header {
    serde_json::from_value(json!({"type": "session", "version": 3, "id": "s", "timestamp": "", "cwd": "/"}))
        .expect("a header")
}

fn media() -> [Box<dyn Medium>; 2] {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s.jsonl");
    drop(store::create(&path, &header(), &[]).expect("a file"));
    [Box::new(File { path, _folder: folder }), Box::new(Disk::new(header(), &[]).expect("a disk"))]
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
        let store::Opened { log, history, .. } = medium.open().expect("it opens");
        Self { log, history }
    }

    fn leaf(&self) -> Option<EntryId> {
        self.history.path().last().map(|leaf| leaf.id.clone())
    }

    fn take_in(&mut self, grown: Grown) {
        let Grown { entries, path } = grown;
        entries.into_iter().for_each(|(entry, spot)| self.history.push(entry, Some(spot)));
        if let (Some(path), Some(_)) = (path, self.history.source()) {
            self.history.set_path(path);
        }
    }

    fn catch_up(&mut self) {
        let grown = self.log.catch_up(self.leaf().as_ref()).expect("it can be read");
        self.take_in(grown);
    }

    /// Appends a line until no entry of another program is before it. Its parent is the leaf, or an entry of the path.
    fn append(&mut self, id: &str, parent: Option<&sample::Index>) {
        loop {
            let parent = match parent.filter(|_| !self.history.path().is_empty()) {
                Some(index) => Some(index.get(self.history.path()).id.clone()),
                None => self.leaf(),
            };
            let line = line(id, parent.as_ref().map(EntryId::as_str));
            match self.log.append(std::slice::from_ref(&line), self.leaf().as_ref()).expect("a write") {
                Appended::Behind(grown) => self.take_in(grown),
                Appended::Written { at, others } => {
                    assert!(others.is_empty(), "nobody else writes at this moment");
                    let entry = abridged::conversation::entry::Entry::parse(line.as_str().into()).expect("an entry");
                    let spot = abridged::log::index::Spot { offset: at, length: line.len() as u32 };
                    let elsewhere = parent != self.leaf();
                    self.history.push(entry.into(), Some(spot));
                    if let (true, Some(source)) = (elsewhere, self.history.source().cloned()) {
                        self.history.set_path(source.path_from(self.log.end()).expect("it can be read"));
                    }
                    return;
                }
            }
        }
    }
}

fn ids(path: &Path) -> Vec<String> {
    path.iter().map(|entry| entry.id.to_string()).collect()
}

#[derive(Debug, Clone)]
enum Step {
    /// The session appends behind its leaf.
    Append,
    /// The session appends behind an entry of its path.
    Branch(sample::Index),
    /// Another program appends behind an entry of the path.
    Other(sample::Index),
    CatchUp,
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => Just(Step::Append),
        2 => any::<sample::Index>().prop_map(Step::Branch),
        3 => any::<sample::Index>().prop_map(Step::Other),
        1 => Just(Step::CatchUp),
        1 => Just(Step::Reopen),
    ];
    prop::collection::vec(step, 1..25)
}

/// The path and its length after each step.
fn play(medium: &dyn Medium, steps: &[Step]) -> Vec<Vec<String>> {
    let mut session = Session::open(medium);
    let mut paths = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let id = format!("e{number:07}");
        match step {
            Step::Append => session.append(&id, None),
            Step::Branch(parent) => session.append(&id, Some(parent)),
            Step::Other(parent) => {
                let path = session.history.path();
                let parent = (!path.is_empty()).then(|| parent.get(path).id.to_string());
                medium.append_as_another(&line(&id, parent.as_deref()));
                assert!(session.log.may_have_grown(), "a line of another program can be seen");
            }
            Step::CatchUp => session.catch_up(),
            Step::Reopen => {
                drop(session);
                session = Session::open(medium);
            }
        }
        paths.push(ids(session.history.path()));
    }
    session.catch_up();
    let live = ids(session.history.path());
    assert!(!session.log.may_have_grown(), "everything was read");
    drop(session);
    assert_eq!(ids(Session::open(medium).history.path()), live, "an opened session has the path of the live one");
    paths.push(live);
    paths
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_file_and_the_disk_in_memory_agree(steps in steps()) {
        let [file, memory] = media();
        prop_assert_eq!(play(&*file, &steps), play(&*memory, &steps));
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
    let mut first = disk.open().expect("it opens");
    first.log.record(vec![serde_json::from_value(running()).expect("an operation")]);
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
    crashed.log.record(vec![serde_json::from_value(running()).expect("an operation")]);
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

#[test]
fn a_log_that_is_read_refuses_lines() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s.jsonl");
    drop(store::create(&path, &header(), &[]).expect("a file"));
    let mut opened = store::open_read_only(&path).expect("it opens");
    assert_eq!(opened.log.access(), Access::Read);
    assert!(matches!(opened.log.append(&[line("a", None)], None), Err(StoreError::ReadOnly { .. })));
}
