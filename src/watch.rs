//! Watches folders, and reports each path that changed, once for a burst of changes.
//!
//! A report means "read it again" and says nothing about the content. A report may be superfluous, so callers compare
//! contents, not times. Folders are watched instead of files, because editors put a new file in the place of the old
//! one.

#![expect(clippy::disallowed_methods, reason = "watches folders")]

use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher as _};
use std::{
    collections::{BTreeSet, HashMap},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    time::{Duration, Instant},
};

/// The time in which changes of a path count as one: an editor that saves writes, truncates, renames and changes the
/// mode.
const BURST: Duration = Duration::from_millis(40);

/// The depth to which a folder is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// The entries of the folder.
    Folder,
    /// The entries of the folder, and those of its subfolders.
    Tree,
}

/// The reason why changes of a folder are not reported.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}: changes are not noticed by themselves ({why}); on Linux fs.inotify.max_user_watches and max_user_instances are the usual limits", .folder.display())]
pub struct NotWatched {
    /// The folder.
    pub folder: PathBuf,
    /// The error of the operating system.
    pub why: String,
}

/// A watcher of folders. Reports end when it is dropped.
pub struct Watcher {
    watched: Arc<Mutex<Watched>>,
}

/// The watched folders, by the requests for them.
struct Watched {
    /// `None` where the operating system refused.
    system: Option<RecommendedWatcher>,
    /// The wanted folders, by the path in the request.
    wanted: HashMap<PathBuf, Wanted>,
    /// The folders that the operating system watches, by their paths without links.
    armed: HashMap<PathBuf, Armed>,
}

/// A folder that the operating system watches.
struct Armed {
    depth: Depth,
    /// The wanted folders that are watched through it.
    wanted: BTreeSet<PathBuf>,
}

struct Wanted {
    /// Number of requests for it.
    count: usize,
    depth: Depth,
    /// The place where it is watched; `None` where that failed.
    place: Option<Place>,
}

/// The place where a wanted folder is watched: itself where it exists, else the folder in which it would appear.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    /// The folder, or its nearest existing parent.
    at: PathBuf,
    /// The same without links: the name in the events of some systems.
    real: PathBuf,
}

/// A report of the operating system.
enum Said {
    Changed(PathBuf),
    /// Events were lost.
    Lost,
}

impl Watcher {
    /// Makes a watcher that calls `on_change` with each path that changed, on a thread of its own. Where the operating
    /// system offers no watching, it is never called.
    #[must_use]
    pub fn new(on_change: impl Fn(PathBuf) + Send + 'static) -> Self {
        let (sender, said) = channel();
        let watched = Watched { system: system(sender), wanted: HashMap::new(), armed: HashMap::new() };
        let watched = Arc::new(Mutex::new(watched));
        let weak = Arc::downgrade(&watched);
        let thread = std::thread::Builder::new().name("abridged-watch".to_owned());
        if let Err(error) = thread.spawn(move || listen(&said, &weak, &on_change)) {
            tracing::warn!(%error, "changes of files are not noticed: a thread cannot be made");
            lock(&watched).system = None;
        }
        Self { watched }
    }

    /// Watches a folder, which need not exist. A folder that is asked for twice is watched until it is released twice.
    ///
    /// # Errors
    /// When the operating system refuses. Callers log it and go on without reports.
    pub fn watch_folder(&self, folder: &Path, depth: Depth) -> Result<(), NotWatched> {
        let mut watched = lock(&self.watched);
        let wanted = watched.wanted.entry(folder.to_owned()).or_insert(Wanted { count: 0, depth, place: None });
        wanted.count += 1;
        wanted.depth = wanted.depth.max(depth);
        watched.arm(folder).map_err(|why| NotWatched { folder: folder.to_owned(), why })
    }

    /// Releases a folder.
    pub fn unwatch_folder(&self, folder: &Path) {
        let mut watched = lock(&self.watched);
        let Some(wanted) = watched.wanted.get_mut(folder) else { return };
        wanted.count -= 1;
        if wanted.count == 0 {
            let place = wanted.place.take();
            watched.wanted.remove(folder);
            watched.leave(folder, place);
        }
    }
}

/// The watcher of this operating system. Its events go into a channel only: it waits for its listener while it adds a
/// folder.
fn system(said: Sender<Said>) -> Option<RecommendedWatcher> {
    let listener = move |event: notify::Result<Event>| {
        let tell = |what| drop(said.send(what));
        match event {
            Ok(event) if event.need_rescan() => tell(Said::Lost),
            // A read is no change, and to read the file because of it would never end.
            Ok(event) if event.kind.is_access() => {}
            Ok(event) => event.paths.into_iter().for_each(|path| tell(Said::Changed(path))),
            Err(error) => {
                tracing::debug!(%error, "the watcher lost count");
                tell(Said::Lost);
            }
        }
    };
    notify::recommended_watcher(listener)
        .inspect_err(|error| tracing::warn!(%error, "changes of files are not noticed: the system offers no watching"))
        .ok()
}

/// Collects events and reports them, until the watcher is dropped.
fn listen(said: &Receiver<Said>, watched: &Weak<Mutex<Watched>>, on_change: &impl Fn(PathBuf)) {
    let mut bursts = Bursts::default();
    loop {
        let heard = match bursts.next_end() {
            Some(end) => said.recv_timeout(end.saturating_duration_since(Instant::now())),
            None => said.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match heard {
            Ok(what) => {
                let Some(watched) = watched.upgrade() else { return };
                let changed = lock(&watched).heard(what);
                let now = Instant::now();
                changed.into_iter().for_each(|path| bursts.note(path, now));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        bursts.ended(Instant::now()).into_iter().for_each(on_change);
    }
}

impl Watched {
    /// The wanted paths that an event is about. A folder that appeared or vanished meanwhile is watched anew.
    fn heard(&mut self, what: Said) -> Vec<PathBuf> {
        let folders: Vec<PathBuf> = match &what {
            Said::Changed(path) => {
                let armed = path.ancestors().filter_map(|above| self.armed.get(above));
                armed.flat_map(|armed| armed.wanted.iter().cloned()).collect()
            }
            Said::Lost => self.wanted.keys().cloned().collect(),
        };
        let mut changed = Vec::new();
        for folder in folders {
            let Some(wanted) = self.wanted.get(&folder) else { continue };
            let meant = match (&what, &wanted.place) {
                (Said::Changed(path), Some(place)) => match path.strip_prefix(&place.real) {
                    Ok(below) if below.as_os_str().is_empty() => Some(place.at.clone()),
                    Ok(below) => Some(place.at.join(below)),
                    Err(_) => continue,
                },
                (Said::Changed(_), None) => continue,
                (Said::Lost, _) => None,
            };
            let place = wanted.place.as_ref();
            let elsewhere = place.is_none_or(|place| place.at != folder);
            let itself = meant.as_ref().is_none_or(|path| place.is_some_and(|place| place.at == *path));
            match meant {
                Some(path) if inside(&path, &folder, wanted.depth) => changed.push(path),
                Some(_) => {}
                None => changed.push(folder.clone()),
            }
            // The files that a new folder was made with came before the watch.
            if itself {
                changed.extend(self.renew(&folder));
            } else if elsewhere && self.arm_anew(&folder) {
                changed.push(folder);
            }
        }
        changed
    }

    /// Renews the watches of folders that were replaced: a watch belongs to the inode it was made for. Returns the
    /// folders that appeared meanwhile.
    fn renew(&mut self, folder: &Path) -> Vec<PathBuf> {
        let Some(place) = self.wanted.get(folder).and_then(|wanted| wanted.place.clone()) else {
            return Vec::from_iter(self.arm_anew(folder).then(|| folder.to_owned()));
        };
        let armed = self.armed.remove(&place.real);
        if let Some(system) = &mut self.system {
            // The watch of a removed folder is released already.
            let _ = system.unwatch(&place.real);
        }
        // Others may stand on the same folder.
        armed.into_iter().flat_map(|armed| armed.wanted).filter(|it| self.arm_anew(it)).collect()
    }

    /// Watches a wanted folder where it is now. Returns true where it exists and did not before.
    fn arm_anew(&mut self, folder: &Path) -> bool {
        let before = self.wanted.get(folder).and_then(|wanted| wanted.place.clone());
        if let Err(why) = self.arm(folder) {
            tracing::warn!(folder = %folder.display(), why, "changes of this folder are not noticed any more");
        }
        let now = self.wanted.get(folder).and_then(|wanted| wanted.place.as_ref());
        let there = |place: &Place| place.at == folder;
        now.is_some_and(there) && !before.as_ref().is_some_and(there)
    }

    /// Watches a wanted folder where it is, or where it would appear.
    fn arm(&mut self, folder: &Path) -> Result<(), String> {
        let Some(depth) = self.wanted.get(folder).map(|wanted| wanted.depth) else { return Ok(()) };
        if self.system.is_none() {
            return Err("the system offers no watching".to_owned());
        }
        loop {
            let place = nearest(folder).ok_or("none of the folders it would be in can be looked into")?;
            let depth = if place.at == folder { depth } else { Depth::Folder };
            let result = self.arm_place(&place.real, depth);
            // A folder may come or go while we look.
            if nearest(folder).as_ref() != Some(&place) {
                self.leave(folder, Some(place));
                continue;
            }
            let now = result.is_ok().then_some(place);
            if let Some(place) = &now
                && let Some(armed) = self.armed.get_mut(&place.real)
            {
                armed.wanted.insert(folder.to_owned());
            }
            if let Some(wanted) = self.wanted.get_mut(folder) {
                let before = std::mem::replace(&mut wanted.place, now.clone());
                if before.as_ref().map(|place| &place.real) != now.as_ref().map(|place| &place.real) {
                    self.leave(folder, before);
                }
            }
            return result;
        }
    }

    fn arm_place(&mut self, real: &Path, depth: Depth) -> Result<(), String> {
        let Some(system) = &mut self.system else { return Ok(()) };
        if self.armed.get(real).is_some_and(|armed| armed.depth >= depth) {
            return Ok(());
        }
        let mode = match depth {
            Depth::Folder => RecursiveMode::NonRecursive,
            Depth::Tree => RecursiveMode::Recursive,
        };
        system.watch(real, mode).map_err(|error| error.to_string())?;
        let armed = self.armed.entry(real.to_owned());
        armed.or_insert_with(|| Armed { depth, wanted: BTreeSet::new() }).depth = depth;
        Ok(())
    }

    /// Moves a wanted folder to another place. A place without wanted folders is watched no longer.
    fn leave(&mut self, folder: &Path, place: Option<Place>) {
        let Some(place) = place else { return };
        let Some(armed) = self.armed.get_mut(&place.real) else { return };
        armed.wanted.remove(folder);
        if armed.wanted.is_empty() {
            self.armed.remove(&place.real);
            if let Some(system) = &mut self.system {
                let _ = system.unwatch(&place.real);
            }
        }
    }
}

/// The folder where it exists, else its nearest existing parent.
fn nearest(folder: &Path) -> Option<Place> {
    folder.ancestors().filter(|at| at.is_dir()).find_map(|at| {
        let real = at.canonicalize().ok()?;
        Some(Place { at: at.to_owned(), real })
    })
}

fn inside(path: &Path, folder: &Path, depth: Depth) -> bool {
    match depth {
        Depth::Folder => path == folder || path.parent() == Some(folder),
        Depth::Tree => path.starts_with(folder),
    }
}

/// Paths that changed and wait for the end of their burst.
#[derive(Default)]
struct Bursts(HashMap<PathBuf, Instant>);

impl Bursts {
    /// The end of a burst, counted from its beginning, so that a path that changes all the time is reported too.
    fn note(&mut self, path: PathBuf, now: Instant) {
        self.0.entry(path).or_insert(now + BURST);
    }

    fn next_end(&self) -> Option<Instant> {
        self.0.values().min().copied()
    }

    fn ended(&mut self, now: Instant) -> Vec<PathBuf> {
        let mut ended: Vec<_> = self.0.extract_if(|_, end| *end <= now).collect();
        ended.sort_by_key(|(_, end)| *end);
        ended.into_iter().map(|(path, _)| path).collect()
    }
}

fn lock(watched: &Mutex<Watched>) -> MutexGuard<'_, Watched> {
    watched.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Only bounds how long a failure hangs.
    const LONG: Duration = Duration::from_secs(30);

    fn watcher() -> (Watcher, Receiver<PathBuf>) {
        let (sender, told) = channel();
        (Watcher::new(move |path| drop(sender.send(path))), told)
    }

    /// Everything told up to `path`, without it.
    fn before(told: &Receiver<PathBuf>, path: &Path) -> Vec<PathBuf> {
        let mut others = Vec::new();
        loop {
            match told.recv_timeout(LONG) {
                Ok(it) if it == path => return others,
                Ok(it) => others.push(it),
                Err(_) => panic!("{} is never told, only {others:?}", path.display()),
            }
        }
    }

    #[test]
    fn what_changes_is_told_and_what_is_only_read_is_not() {
        let home = tempfile::tempdir().expect("a folder");
        let (read, written) = (home.path().join("read"), home.path().join("written"));
        fs::write(&read, "1").expect("a file");
        let (watcher, told) = watcher();
        watcher.watch_folder(home.path(), Depth::Folder).expect("it is watched");
        fs::read(&read).expect("a file");
        fs::write(&written, "1").expect("a file");
        assert!(!before(&told, &written).contains(&read));
        let other = home.path().join("other");
        fs::write(&other, "2").expect("a file");
        fs::rename(&other, &written).expect("renamed");
        before(&told, &written);
        fs::remove_file(&written).expect("removed");
        before(&told, &written);
    }

    #[test]
    fn a_folder_may_come_go_and_come_again() {
        let home = tempfile::tempdir().expect("a folder");
        let folder = home.path().join("a/b");
        let file = folder.join("file");
        let (watcher, told) = watcher();
        watcher.watch_folder(&folder, Depth::Folder).expect("the folder it would be in is watched");
        for round in 0..3 {
            fs::write(home.path().join("stranger"), round.to_string()).expect("a file");
            fs::create_dir_all(&folder).expect("a folder");
            assert!(before(&told, &folder).iter().all(|path| path.starts_with(&folder)), "strangers are not told");
            // A report of the folder may be about the round before, so the file is written until it is reported.
            let end = Instant::now() + LONG;
            while {
                fs::write(&file, round.to_string()).expect("a file");
                told.recv_timeout(BURST * 5) != Ok(file.clone())
            } {
                assert!(Instant::now() < end, "round {round}: the file is never told");
            }
            fs::remove_dir_all(home.path().join("a")).expect("removed");
            before(&told, &folder);
        }
    }

    /// Whichever is looked at first, and whatever it was that happened.
    #[test]
    fn folders_that_are_waited_for_in_one_place_are_told_when_they_arrive() {
        for round in 0..16 {
            let home = tempfile::tempdir().expect("a folder");
            let outer = home.path().join("outer");
            let (watcher, _told) = watcher();
            for folder in [&outer, &outer.join("inner")] {
                watcher.watch_folder(folder, Depth::Folder).expect("it is waited for");
            }
            let mut watched = lock(&watcher.watched);
            fs::create_dir_all(outer.join("inner")).expect("folders");
            let place = home.path().canonicalize().expect("a folder");
            let what = if round % 2 == 0 { place.join("stranger") } else { place };
            let mut told = watched.heard(Said::Changed(what));
            told.sort();
            assert_eq!(told, [outer.clone(), outer.join("inner")], "round {round}");
        }
    }

    #[test]
    fn it_is_watched_until_the_last_lets_go() {
        let home = tempfile::tempdir().expect("a folder");
        let (kept, left) = (home.path().join("kept"), home.path().join("left"));
        fs::create_dir(&kept).and_then(|()| fs::create_dir(&left)).expect("folders");
        let (watcher, told) = watcher();
        for folder in [&kept, &left, &left] {
            watcher.watch_folder(folder, Depth::Folder).expect("it is watched");
        }
        watcher.unwatch_folder(&left);
        fs::write(left.join("1"), "").expect("a file");
        before(&told, &left.join("1"));
        watcher.unwatch_folder(&left);
        fs::write(left.join("2"), "").expect("a file");
        fs::write(kept.join("3"), "").expect("a file");
        assert!(!before(&told, &kept.join("3")).contains(&left.join("2")));
    }

    #[test]
    fn a_tree_is_watched_all_the_way_down() {
        let home = tempfile::tempdir().expect("a folder");
        let deep = home.path().join("a/b");
        fs::create_dir_all(&deep).expect("folders");
        let (watcher, told) = watcher();
        watcher.watch_folder(home.path(), Depth::Tree).expect("it is watched");
        fs::write(deep.join("file"), "").expect("a file");
        before(&told, &deep.join("file"));
    }

    #[test]
    fn a_burst_is_told_once_and_ends() {
        let mut bursts = Bursts::default();
        let start = Instant::now();
        let later = |millis| start + Duration::from_millis(millis);
        for millis in 0..30 {
            bursts.note("busy".into(), later(millis));
        }
        bursts.note("quiet".into(), later(10));
        assert_eq!(bursts.ended(later(39)), Vec::<PathBuf>::new());
        assert_eq!(bursts.next_end(), Some(later(40)));
        assert_eq!(bursts.ended(later(45)), [PathBuf::from("busy")]);
        assert_eq!(bursts.ended(later(60)), [PathBuf::from("quiet")]);
        assert_eq!(bursts.next_end(), None);
    }

    #[test]
    fn a_system_that_refuses_is_said_and_nothing_breaks() {
        let (watcher, _told) = watcher();
        lock(&watcher.watched).system = None;
        let refused = watcher.watch_folder(Path::new("/"), Depth::Folder).expect_err("there is no watching");
        assert!(refused.to_string().starts_with("/: changes are not noticed"), "{refused}");
        watcher.unwatch_folder(Path::new("/"));
        assert!(lock(&watcher.watched).wanted.is_empty());
    }

    #[test]
    fn who_loses_count_has_everything_looked_at_again() {
        let home = tempfile::tempdir().expect("a folder");
        let (watcher, _told) = watcher();
        watcher.watch_folder(home.path(), Depth::Folder).expect("it is watched");
        assert_eq!(lock(&watcher.watched).heard(Said::Lost), [home.path()]);
    }
}
