//! The file of learned windows: one for all daemons that keep their files in the same folder.
//!
//! A change is made in memory at once and in the file in the background. For the file it is made anew: the file is read
//! again under a lock, so that daemons that learn at the same time lose nothing of each other. A file that another daemon
//! changed is read again when a session is opened and when models are listed.

#![expect(clippy::disallowed_methods, reason = "keeps learned windows on disk")]

use super::{
    ModelRef,
    learned::{
        Change, Learned, LearnedWindow,
        accepted::AcceptedSizes,
        kept::{self, Content},
    },
};
use crate::regular;
use std::{
    fmt,
    fs::{self, File, TryLockError},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

/// Largest file that is read and written, in bytes. A window takes about 200.
const LARGEST: u64 = 1 << 20;

/// Most changes that wait for a file that cannot be written. The oldest are left out then, and are learned again.
const MOST_WAITING: usize = 1_000;

/// The windows that providers taught, with the file that keeps them.
#[derive(Debug, Clone, Default)]
pub struct Windows {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    known: Mutex<Known>,
    /// Grows with each change.
    version: AtomicU64,
    /// None: nothing is written.
    file: Option<PathBuf>,
    /// One writes at a time. The identity of the file that was read or written last.
    writer: Mutex<Option<Identity>>,
    faults: Mutex<Faults>,
}

/// The identity of a file with a content. A file that is replaced has another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    bytes: u64,
    /// Time of the last change, in seconds and nanoseconds.
    changed: (i64, i64),
}

impl Identity {
    /// The identity of a file. None: there is none.
    fn of(file: &Path) -> Option<Self> {
        let about = fs::metadata(file).ok()?;
        Some(Self {
            device: about.dev(),
            inode: about.ino(),
            bytes: about.len(),
            changed: (about.mtime(), about.mtime_nsec()),
        })
    }
}

/// The faults of the file. Each is told once.
#[derive(Default)]
struct Faults {
    known: Vec<String>,
    tell: Option<Tell>,
}

/// Tells a person of a fault of the file.
type Tell = Box<dyn Fn(&Path, &str) + Send>;

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.known.fmt(f)
    }
}

#[derive(Debug, Default)]
struct Known {
    learned: Learned,
    /// Changes of windows that the file does not have.
    waiting: Vec<Change>,
    /// Sizes that servers took since, and that changed no window. They are written with the next change.
    grown: AcceptedSizes,
}

/// The part of the known windows that a change changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Changed {
    /// No part.
    Nothing,
    /// The largest request of a server, and no window.
    AcceptedSizes,
    /// A window.
    Windows,
}

impl Known {
    /// Keeps a change for the file.
    fn wait(&mut self, change: Change, changed: Changed) {
        match &change {
            Change::Accepted(server, tokens) if changed == Changed::AcceptedSizes => {
                self.grown.grow(server, *tokens);
                return;
            }
            Change::Accepted(..) => {}
            Change::Learned(row) => self.grown.bound(&row.model, &row.base_url, row.context_window),
            Change::Forgotten(model) => self.grown.forget(model),
        }
        self.waiting.push(change);
        let too_many = self.waiting.len().saturating_sub(MOST_WAITING);
        self.waiting.drain(..too_many);
    }

    /// The changes that the file does not have.
    fn unwritten(&self) -> Vec<Change> {
        self.waiting.iter().cloned().chain(self.grown.changes()).collect()
    }

    /// Takes the windows of the file, with the changes that it does not have. Returns true if something is different then.
    fn take(&mut self, file: Learned) -> bool {
        let unwritten = self.unwritten();
        let mut process = self.learned.clone();
        for model in self.learned.models_missing_in(&file.clone().with(&unwritten)) {
            // Another daemon forgot it. Sessions forget their own numbers about it, too.
            process.apply(&Change::Forgotten(model));
        }
        let now = file.beside(&process).with(&unwritten);
        let is_new = self.learned != now;
        self.learned = now;
        is_new
    }
}

impl Windows {
    /// No windows, and no file.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::default()
    }

    /// Reads the file in `data`. Rows that cannot be read are left out. Blocks.
    #[must_use]
    pub fn read(data: &Path) -> Self {
        let file = data.join("learned-windows.json");
        let read = Identity::of(&file);
        let (learned, fault) = match KeptFile::read(&file) {
            Ok(KeptFile { learned, fault, .. }) => (learned, fault),
            Err(error) => (Learned::default(), Some(error.to_string())),
        };
        let known = Mutex::new(Known { learned, ..Known::default() });
        let writer = Mutex::new(read);
        let windows = Self { shared: Arc::new(Shared { known, file: Some(file), writer, ..Shared::default() }) };
        fault.into_iter().for_each(|fault| windows.report(fault));
        windows
    }

    /// The file, and its first fault.
    #[must_use]
    pub fn fault(&self) -> Option<(&Path, String)> {
        let faults = self.faults();
        self.shared.file.as_deref().zip(faults.known.first().cloned())
    }

    /// Has a person told of the faults of the file, of those so far and of later ones.
    pub fn tell_faults(&self, tell: impl Fn(&Path, &str) + Send + 'static) {
        let Some(file) = &self.shared.file else { return };
        let mut faults = self.faults();
        faults.known.iter().for_each(|fault| tell(file, fault));
        faults.tell = Some(Box::new(tell));
    }

    /// Records a fault of the file, and tells of it, if it is a new one.
    fn report(&self, fault: String) {
        let Some(file) = &self.shared.file else { return };
        let mut faults = self.faults();
        if faults.known.contains(&fault) {
            return;
        }
        tracing::warn!("{}: {fault}", file.display());
        faults.tell.iter().for_each(|tell| tell(file, &fault));
        faults.known.push(fault);
    }

    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.shared.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the file again where another daemon changed it. A file that cannot be read changes nothing. Blocks.
    pub fn refresh(&self) {
        let Some(file) = &self.shared.file else { return };
        // A write reads the file, too.
        let Ok(mut read) = self.shared.writer.try_lock() else { return };
        let identity = Identity::of(file);
        if *read == identity {
            return;
        }
        *read = identity;
        match KeptFile::read(file) {
            Err(error) => self.report(error.to_string()),
            Ok(KeptFile { learned, damaged, fault }) => {
                fault.into_iter().for_each(|fault| self.report(fault));
                if damaged.is_none() && self.known().take(learned) {
                    self.shared.version.fetch_add(1, Ordering::Release);
                }
            }
        }
    }

    /// The windows now.
    #[must_use]
    pub fn learned(&self) -> Learned {
        self.known().learned.clone()
    }

    /// A number that grows with each change. It costs less than a look at the windows.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.shared.version.load(Ordering::Acquire)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.shared.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a change for all sessions. The file follows in the background. An accepted size alone is written with the next
    /// change of a window: it grows with nearly each report.
    pub fn teach(&self, change: Change) {
        if self.change(change) == Changed::Windows && self.shared.file.is_some() {
            let windows = self.clone();
            tokio::task::spawn_blocking(move || {
                if let Err(error) = windows.write() {
                    windows.report(error.to_string());
                }
            });
        }
    }

    /// Forgets the windows of a model, here and in the file, and returns them. Blocks.
    ///
    /// # Errors
    /// When the file cannot be written. The windows are forgotten in this process then.
    pub fn forget(&self, model: &ModelRef) -> io::Result<Vec<LearnedWindow>> {
        let mut forgotten = self.learned().of_model(model).to_vec();
        self.change(Change::Forgotten(model.clone()));
        for row in self.write()?.of_model(model) {
            if !forgotten.iter().any(|known| known.base_url == row.base_url) {
                forgotten.push(row.clone());
            }
        }
        Ok(forgotten)
    }

    /// The file of the windows, if there is one.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.shared.file.as_deref()
    }

    /// Makes a change in memory.
    fn change(&self, change: Change) -> Changed {
        let mut known = self.known();
        let before = known.learned.clone();
        if !known.learned.apply(&change) {
            return Changed::Nothing;
        }
        self.shared.version.fetch_add(1, Ordering::Release);
        let changed = match known.learned.has_windows_of(&before) {
            true => Changed::AcceptedSizes,
            false => Changed::Windows,
        };
        if self.shared.file.is_some() {
            known.wait(change, changed);
        }
        changed
    }

    /// Makes the changes that wait in the file, and returns the windows that it had before.
    fn write(&self) -> io::Result<Learned> {
        let Some(file) = &self.shared.file else { return Ok(Learned::default()) };
        let mut read = self.shared.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let (changes, grown, all) = {
            let known = self.known();
            (known.waiting.clone(), known.grown.clone(), known.unwritten())
        };
        if changes.is_empty() {
            return Ok(Learned::default());
        }
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        let beside = with_ending(file, "lock");
        let _locked = lock(&beside).map_err(|error| named(&beside, error))?;
        let before = KeptFile::read(file)?;
        before.set_aside(file)?;
        before.fault.iter().cloned().for_each(|fault| self.report(fault));
        let learned = before.learned.clone().with(&all);
        if learned != before.learned || before.damaged.is_some() {
            let text = kept::text(&learned);
            if text.len() as u64 > LARGEST {
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, "there are too many windows"));
            }
            regular::replace(file, text.as_bytes())?;
        }
        *read = Identity::of(file);
        let mut known = self.known();
        // Changes that came meanwhile are still to be written.
        let written = known.waiting.iter().zip(&changes).take_while(|(waiting, change)| waiting == change).count();
        known.waiting.drain(..written);
        known.grown.leave_out(&grown);
        if known.take(learned) {
            // Another daemon learned, too.
            self.shared.version.fetch_add(1, Ordering::Release);
        }
        Ok(before.learned)
    }
}

/// The file as it is.
struct KeptFile {
    learned: Learned,
    /// Its bytes, where they are nothing that can be read.
    damaged: Option<Vec<u8>>,
    fault: Option<String>,
}

impl KeptFile {
    /// Reads the file. A missing one holds nothing.
    ///
    /// # Errors
    /// When it may not be written: it cannot be read, or a newer version wrote it.
    fn read(file: &Path) -> io::Result<Self> {
        let text = match regular::read(file, LARGEST) {
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                b"{}".to_vec()
            }
            text => text?,
        };
        match kept::read(&text) {
            Content::Read(learned, bad) => {
                let fault = (bad > 0).then(|| format!("{bad} of its rows cannot be read and are left out"));
                Ok(Self { learned, damaged: None, fault })
            }
            Content::Damaged => {
                let fault = "it cannot be read and counts as empty; the next window that is learned replaces it, and a \
                             copy stays beside it";
                Ok(Self { learned: Learned::default(), damaged: Some(text), fault: Some(fault.to_owned()) })
            }
            Content::Newer => Err(io::Error::other(
                "a newer version of abridged wrote it, so it is neither used nor changed; use that version, or remove \
                 the file",
            )),
        }
    }

    /// Keeps what is damaged beside the file, before the file is replaced.
    fn set_aside(&self, file: &Path) -> io::Result<()> {
        let Some(damaged) = &self.damaged else { return Ok(()) };
        regular::replace(&with_ending(file, "damaged"), damaged)
    }
}

fn with_ending(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".{ending}"));
    name.into()
}

/// An error of a lock that is there, with its name in the text. Without one the error is about the folder.
fn named(path: &Path, error: io::Error) -> io::Error {
    if fs::symlink_metadata(path).is_err() {
        return error;
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    io::Error::new(error.kind(), format!("its lock {name} cannot be used: {error}"))
}

/// Locks the file for other daemons, by this one beside it. The operating system frees it when the process dies. The lock is a file of its own,
/// because the file is replaced, and it stays: a new one would not keep out an owner of the old one.
fn lock(path: &Path) -> io::Result<File> {
    /// Time for a write by another daemon. It takes milliseconds; a daemon that is stopped holds the lock for longer.
    const TRIES: u32 = 200;
    const PAUSE: Duration = Duration::from_millis(10);
    let lock = regular::open_or_make(path)?;
    for _ in 0..TRIES {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Err(io::Error::new(io::ErrorKind::WouldBlock, "another process holds its lock"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        models::learned::{Address, Server, WindowOrigin},
        settings::Settings,
    };
    use jiff::Timestamp;
    use std::os::unix::fs::symlink;

    fn model(name: &str) -> ModelRef {
        ModelRef::parse(name).expect("a model")
    }

    fn refusal(name: &str, window: u64) -> Change {
        let server = Server { model: model(name), address: Address::Usual };
        Change::Learned(LearnedWindow::new(server, window, WindowOrigin::Refusal, Timestamp::UNIX_EPOCH, &"s".into()))
    }

    fn window(windows: &Windows, name: &str) -> Option<u64> {
        windows.learned().row(&Settings::default(), &model(name)).map(|row| row.context_window)
    }

    /// A folder for data, with this text in its file.
    fn data(text: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("learned-windows.json");
        fs::write(&file, text).expect("a file");
        (folder, file)
    }

    fn learns(windows: &Windows, change: Change) -> io::Result<Learned> {
        windows.change(change);
        windows.write()
    }

    #[test]
    fn windows_outlive_their_daemon() {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("data");
        let windows = Windows::read(&data);
        assert_eq!(window(&windows, "local/m"), None);
        learns(&windows, refusal("local/m", 8_192)).expect("it is written");
        assert_eq!(window(&Windows::read(&data), "local/m"), Some(8_192));
    }

    #[test]
    fn two_daemons_that_learn_at_the_same_time_keep_the_windows_of_both() {
        let (folder, _) = data(br#"{"p/old": 4096}"#);
        let daemons = [(); 2].map(|()| Windows::read(folder.path()));
        thread::scope(|scope| {
            for (at, windows) in daemons.iter().enumerate() {
                scope.spawn(move || {
                    for number in 0..10 {
                        learns(windows, refusal(&format!("p/{at}-{number}"), 8_192)).expect("it is written");
                    }
                });
            }
        });
        assert_eq!(Windows::read(folder.path()).learned().all().count(), 21);
        let version = daemons[0].version();
        learns(&daemons[0], refusal("p/last", 8_192)).expect("it is written");
        assert_eq!((window(&daemons[0], "p/1-9"), window(&daemons[0], "p/old")), (Some(8_192), Some(4_096)));
        assert!(daemons[0].version() > version, "its sessions are to know");
    }

    #[test]
    fn a_window_that_another_daemon_had_forgotten_does_not_come_back() {
        let (folder, _) = data(br#"{"p/m": 4096, "p/n": 4096}"#);
        let [one, other] = [(); 2].map(|()| Windows::read(folder.path()));
        assert_eq!(one.forget(&model("p/m")).expect("it is written").len(), 1);
        assert_eq!(window(&one, "p/m"), None);
        learns(&other, refusal("p/n", 4_096)).expect("it is written");
        assert_eq!((window(&other, "p/m"), window(&other, "p/n")), (None, Some(4_096)));
        learns(&other, refusal("p/later", 4_096)).expect("it is written");
        let forgotten = one.forget(&model("p/later")).expect("it is written");
        assert_eq!(forgotten.iter().map(|row| row.context_window).collect::<Vec<_>>(), [4_096], "only the file has it");
        assert_eq!(one.forget(&model("p/later")).expect("it is written"), []);
        assert_eq!(Windows::read(folder.path()).learned().all().count(), 1);
    }

    fn accepted(name: &str, tokens: u64) -> Change {
        Change::Accepted(Server { model: model(name), address: Address::Usual }, tokens)
    }

    #[test]
    fn an_accepted_size_is_written_with_the_next_window_and_with_one_that_it_disproves() {
        let (folder, file) = data(b"{}");
        let windows = Windows::read(folder.path());
        let version = windows.version();
        for tokens in [9_000, 9_500, 9_100] {
            windows.teach(accepted("p/m", tokens));
        }
        assert!(windows.version() > version, "sessions are to know");
        assert_eq!(fs::read(&file).expect("a file"), b"{}");
        windows.teach(refusal("p/m", 9_400));
        assert_eq!(window(&windows, "p/m"), None);
        assert_eq!(fs::read(&file).expect("a file"), b"{}", "nothing is learned");
        learns(&windows, refusal("p/n", 8_192)).expect("it is written");
        let again = Windows::read(folder.path());
        again.teach(refusal("p/m", 9_499));
        assert_eq!((window(&again, "p/m"), window(&again, "p/n")), (None, Some(8_192)));
        learns(&again, accepted("p/n", 8_500)).expect("it is written");
        let text = fs::read_to_string(&file).expect("a file");
        let parsed: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!((&parsed["version"], &parsed["windows"]), (&2.into(), &serde_json::json!([])), "{text}");
        assert_eq!(parsed["accepted"].as_array().map(Vec::len), Some(2), "{text}");
    }

    #[test]
    fn the_accepted_sizes_of_two_daemons_are_those_of_the_file_that_was_read_last() {
        let (folder, _) = data(b"{}");
        let [one, other] = [(); 2].map(|()| Windows::read(folder.path()));
        one.teach(accepted("p/m", 9_000));
        learns(&one, refusal("p/n", 8_192)).expect("it is written");
        learns(&other, refusal("p/o", 8_192)).expect("it is written");
        other.teach(refusal("p/m", 8_192));
        assert_eq!(window(&other, "p/m"), None, "read from the file");
        other.forget(&model("p/m")).expect("it is written");
        learns(&one, refusal("p/p", 8_192)).expect("it is written");
        learns(&one, refusal("p/m", 8_192)).expect("it is written");
        assert_eq!(window(&one, "p/m"), Some(8_192), "the other daemon had it forgotten");
    }

    #[test]
    fn a_size_that_waits_for_a_write_comes_behind_no_later_change() {
        let (folder, _) = data(b"{}");
        let windows = Windows::read(folder.path());
        ["p/m", "p/n"].iter().for_each(|name| windows.teach(accepted(name, 9_000)));
        windows.forget(&model("p/m")).expect("it is written");
        learns(&windows, refusal("p/m", 8_192)).expect("it is written");
        windows.teach(accepted("p/n", 9_500));
        let Change::Learned(row) = refusal("p/n", 4_096) else { unreachable!("a refusal") };
        let cut = Change::Learned(LearnedWindow { origin: WindowOrigin::Saturation, ..row });
        learns(&windows, cut).expect("it is written");
        for windows in [&windows, &Windows::read(folder.path())] {
            assert_eq!((window(windows, "p/m"), window(windows, "p/n")), (Some(8_192), Some(4_096)));
        }
    }

    #[test]
    fn a_file_of_a_newer_version_is_left_alone() {
        let text = br#"{"version": 3, "windows": [{"of": "the future"}]}"#;
        let (folder, file) = data(text);
        let windows = Windows::read(folder.path());
        assert!(windows.fault().is_some_and(|(_, fault)| fault.contains("a newer version")));
        assert!(learns(&windows, refusal("p/m", 8_192)).is_err() && windows.forget(&model("p/n")).is_err());
        assert_eq!(window(&windows, "p/m"), Some(8_192), "this process knows it");
        assert_eq!(fs::read(&file).expect("a file"), text);
        // The changes wait for a file that can be written.
        fs::remove_file(&file).expect("removed");
        learns(&windows, refusal("p/o", 8_192)).expect("it is written");
        assert_eq!(Windows::read(folder.path()).learned().all().count(), 2);
    }

    #[test]
    fn a_damaged_file_is_copied_before_it_is_replaced_and_one_that_is_no_file_stays() {
        for damaged in [&b"{"[..], b"\xff\xfe", b"[1]", br#"{"version": 2, "windows": 7}"#, b""] {
            let (folder, file) = data(damaged);
            let windows = Windows::read(folder.path());
            assert!(windows.fault().is_some());
            assert_eq!(fs::read(&file).expect("a file"), damaged, "it is only read");
            learns(&windows, refusal("p/m", 8_192)).expect("it is written");
            assert_eq!(fs::read(folder.path().join("learned-windows.json.damaged")).expect("a copy"), damaged);
            assert_eq!(window(&Windows::read(folder.path()), "p/m"), Some(8_192));
        }
        let (folder, file) = data(b"");
        fs::remove_file(&file).and_then(|()| symlink("/dev/zero", &file)).expect("a link");
        let windows = Windows::read(folder.path());
        assert!(windows.fault().is_some() && learns(&windows, refusal("p/m", 8_192)).is_err());
        assert!(file.is_symlink());
    }

    #[test]
    fn good_rows_stay_where_others_are_bad() {
        let (folder, _) = data(br#"{"p/m": 8192, "p/n": "many"}"#);
        let windows = Windows::read(folder.path());
        assert!(windows.fault().is_some_and(|(_, fault)| fault.contains("1 of its rows")));
        learns(&windows, refusal("p/o", 4_096)).expect("it is written");
        assert_eq!(Windows::read(folder.path()).learned().all().count(), 2);
        assert!(Windows::read(folder.path()).fault().is_none());
    }

    #[test]
    fn a_file_that_another_daemon_changed_is_read_again() {
        let (folder, file) = data(br#"{"p/m": 4096}"#);
        let [one, other] = [(); 2].map(|()| Windows::read(folder.path()));
        let version = other.version();
        other.refresh();
        assert_eq!(other.version(), version, "nothing changed");
        learns(&one, refusal("p/n", 8_192)).expect("it is written");
        assert_eq!(window(&other, "p/n"), None);
        other.refresh();
        assert_eq!((window(&other, "p/m"), window(&other, "p/n")), (Some(4_096), Some(8_192)));
        assert!(other.version() > version, "its sessions are to know");
        let mut session = other.learned();
        session.see(&model("p/m"), 2_048);
        one.forget(&model("p/m")).expect("it is written");
        other.refresh();
        assert_eq!((window(&other, "p/m"), window(&other, "p/n")), (None, Some(8_192)));
        session.update(other.learned());
        assert_eq!(session.taught(&Settings::default(), &model("p/m")).seen, None, "forgotten in the session, too");
        // A change that the file does not have stays, and a damaged file changes nothing.
        other.change(refusal("p/o", 8_192));
        learns(&one, refusal("p/q", 8_192)).expect("it is written");
        other.refresh();
        assert_eq!((window(&other, "p/o"), window(&other, "p/q")), (Some(8_192), Some(8_192)));
        fs::write(&file, b"{").expect("a file");
        other.refresh();
        assert_eq!(window(&other, "p/q"), Some(8_192));
        assert!(other.fault().is_some());
    }

    #[test]
    fn a_lock_that_is_no_file_is_named() {
        let (folder, file) = data(b"{}");
        let lock = with_ending(&file, "lock");
        fs::create_dir(&lock).expect("a folder");
        let windows = Windows::read(folder.path());
        let error = learns(&windows, refusal("p/m", 8_192)).expect_err("no lock").to_string();
        assert!(error.contains("its lock learned-windows.json.lock cannot be used: "), "{error}");
    }

    #[test]
    fn windows_in_memory_need_neither_a_file_nor_a_runtime() {
        let windows = Windows::in_memory();
        windows.teach(refusal("local/m", 8_192));
        assert_eq!(window(&windows.clone(), "local/m"), Some(8_192));
        assert_eq!(windows.forget(&model("local/m")).expect("nothing is written").len(), 1);
        assert_eq!(window(&windows, "local/m"), None);
    }
}
