//! A lock file, which may come from a stranger: it is read by a process that looks and by one that takes the lock alike, and
//! only a file of ours is written over.

use abridged::log::{
    error::StoreError,
    lock::{self, Lock},
};
use std::{
    fs,
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering},
};

/// The longest record, in bytes.
const LONGEST: usize = 16 << 10;

pub fn check(data: &[u8]) {
    let folder = Folder::new();
    let (session, lock_file) = (folder.0.join("s.jsonl"), folder.0.join("s.jsonl.lock"));
    fs::write(&lock_file, data).expect("a file");
    let looked = lock::look(&session);
    assert_eq!(fs::read(&lock_file).expect("it is there"), data, "a look changes nothing");
    match Lock::take(&session) {
        Ok(mut lock) => {
            let recorded = looked.expect("what can be taken can be looked at");
            let left_behind = lock.left_behind();
            assert_eq!(recorded.map(|it| it.operations).unwrap_or_default(), left_behind);
            let ours = lock::look(&session).expect("it can be looked at").expect("a record");
            assert_eq!(ours.pid, std::process::id());
            // Ids of another program may be too long to be recorded.
            assert!(ours.operations == left_behind || ours.operations.is_empty());
            let text = fs::read(&lock_file).expect("it is there");
            assert!(text.len() <= LONGEST);
            lock.record(Vec::new());
            drop(lock);
            assert!(!lock_file.exists(), "the lock of an owner that ended all goes with it");
        }
        Err(StoreError::Planted { .. }) => {
            assert!(looked.is_err());
            assert_eq!(fs::read(&lock_file).expect("it is there"), data, "a file of others stays as it is");
        }
        Err(error) => panic!("{error}"),
    }
}

/// A folder in memory where there is one.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let memory = PathBuf::from("/dev/shm");
        let root = if memory.is_dir() { memory } else { std::env::temp_dir() };
        let name = format!("abridged-locks-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = root.join(name);
        fs::create_dir(&folder).expect("a folder");
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
