//! The right to write a session file: taken with its lock, and used to append only.
//!
//! `append` returns after the fsync, and the rest of a failed write is cut off again. Bytes of the file are never changed:
//! a torn last line is moved aside, and an old version is replaced by its new form with the old file kept, both right before
//! the first write.

#![expect(clippy::disallowed_methods, reason = "writes session files")]

use super::{
    Access, Appended, Grown, Log, Stats,
    error::StoreError,
    header::{self, header_line},
    index::Spot,
    lines,
    lock::{Lock, Unfinished as Operation},
    migrate,
    names::names_beside,
};
use crate::{
    conversation::entry::{self, Head, Stamps},
    ids::EntryId,
    log::source::{Placed, Source},
    regular,
};
use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

/// The right to append to one session file, held with its lock.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    /// The descriptor that `source` reads with too.
    file: Arc<File>,
    source: Source,
    /// Everything before this is on disk and ends with a newline, unless `unfinished` says otherwise.
    durable: u64,
    /// The bytes right before that, by which the file is known to be what it was.
    ending: Vec<u8>,
    unfinished: Unfinished,
    /// Writing is over, and why: after a failed fsync nobody knows what is on disk.
    broken: Option<String>,
    stats: Stats,
    lock: Lock,
}

/// State of the file's end, which the first write puts in order.
#[derive(Debug)]
pub enum Unfinished {
    Nothing,
    /// The last line was a piece of one when the file was opened.
    Torn,
    /// The last line is whole but for its newline.
    NoNewline,
    /// The file is of an older version; so many of its entries are known.
    Old {
        known: usize,
    },
}

impl Log for Writer {
    fn access(&self) -> Access {
        Access::Write
    }

    /// One write and one fsync.
    fn append(&mut self, lines: &[String], leaf: Option<&EntryId>) -> Result<Appended, StoreError> {
        if let Some(why) = &self.broken {
            return Err(StoreError::ReadOnly { path: self.path.clone(), why: why.clone() });
        }
        self.is_still_there()?;
        let mut grown = self.put_in_order()?;
        grown.entries.extend(self.read_on()?);
        grown.entries.extend(self.wait_for_line()?);
        if !grown.entries.is_empty() {
            return Ok(Appended::Behind(self.source.grown(grown.entries, leaf, self.durable)?));
        }
        let mut bytes = Vec::with_capacity(1 + lines.iter().map(|line| line.len() + 1).sum::<usize>());
        if self.length()? > self.durable {
            // Somebody's half line stays where it is, and becomes a line that is none.
            bytes.push(b'\n');
        }
        if let Some(marker) = self.marker_before(lines, leaf)? {
            bytes.extend_from_slice(marker.as_bytes());
            bytes.push(b'\n');
        }
        let begin = bytes.len();
        for line in lines {
            bytes.extend_from_slice(line.as_bytes());
            bytes.push(b'\n');
        }
        if let Err(error) = (&*self.file).write_all(&bytes) {
            self.take_back(&bytes);
            let what = "could not be written; nothing was changed. Make room, then try again";
            return Err(StoreError::io(&self.path, what)(error));
        }
        self.stats.writes += 1;
        if let Err(error) = self.file.sync_data() {
            self.broken = Some(format!("the disk did not confirm a write ({error})"));
            let what = "the disk did not confirm the write; check the disk, then load the session again";
            return Err(StoreError::io(&self.path, what)(error));
        }
        self.stats.fsyncs += 1;
        self.find_own(&bytes[begin..])
    }

    fn catch_up(&mut self, leaf: Option<&EntryId>) -> Result<Grown, StoreError> {
        // An old file is read anew when it is replaced, and not before.
        if self.broken.is_some() || matches!(self.unfinished, Unfinished::Old { .. }) {
            return Ok(Grown::default());
        }
        let entries = self.read_on()?;
        self.source.grown(entries, leaf, self.durable)
    }

    fn may_have_grown(&self) -> bool {
        self.length().map_or(true, |length| length != self.durable)
    }

    fn end(&self) -> u64 {
        self.durable
    }

    fn record(&mut self, operations: Vec<Operation>) {
        self.lock.record(operations);
    }

    fn stats(&self) -> Stats {
        self.stats
    }
}

impl Writer {
    /// The writer of a file that was read up to `durable`, in bytes.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn new(
        file: Arc<File>,
        source: Source,
        durable: u64,
        unfinished: Unfinished,
        lock: Lock,
    ) -> Result<Self, StoreError> {
        let ending = source.ending(durable)?;
        let path = source.path().to_owned();
        Ok(Self { path, file, source, durable, ending, unfinished, broken: None, stats: Stats::default(), lock })
    }

    /// A line that adds nothing, behind `leaf`, where the lines to be appended begin a branch and the file does not end with
    /// an entry. Right behind an entry a parent is found at any distance, and else nearby only.
    fn marker_before(&self, lines: &[String], leaf: Option<&EntryId>) -> Result<Option<String>, StoreError> {
        let parent = lines.first().and_then(|line| Head::read(line).ok()?.parent());
        let (Some(parent), Some(leaf)) = (parent, leaf) else { return Ok(None) };
        if parent == leaf.as_str() || self.source.ends_with_id(self.length()?)? {
            return Ok(None);
        }
        let custom_type = entry::raw(&"abridged.gap");
        Ok(Some(entry::line("custom", &Stamps::system().stamp(), Some(leaf), &[("customType", &custom_type)])))
    }

    /// Where our bytes are. Nearly always right behind what we knew; but another program may have been faster by less
    /// than can be seen before writing.
    fn find_own(&mut self, ours: &[u8]) -> Result<Appended, StoreError> {
        let length = self.length()?;
        if length == self.durable + ours.len() as u64 {
            return self.landed(0, ours.len());
        }
        let behind = self.behind(length)?;
        // Ours stand on lines of their own, or nobody can read them.
        let own_lines = |at: &usize| *at == 0 || behind[at - 1] == b'\n';
        if let Some(at) = memchr::memmem::find_iter(&behind, ours).find(own_lines) {
            return self.landed(at, ours.len());
        }
        // Glued to a half line of somebody else's: they are written once more.
        self.broken = Some("another program wrote into a line of ours; load the session again".to_owned());
        let again = [b"\n", ours].concat();
        let failed = StoreError::io(&self.path, "another program wrote into a line of ours; load it again");
        (&*self.file).write_all(&again).and_then(|()| self.file.sync_data()).map_err(failed)?;
        self.broken = None;
        let behind = self.behind(self.length()?)?;
        match memchr::memmem::rfind(&behind, ours).filter(|at| *at > 0 && behind[at - 1] == b'\n') {
            Some(at) => self.landed(at, ours.len()),
            None => {
                let what = "another program writes into our lines".to_owned();
                Err(StoreError::Changed { path: self.path.clone(), what })
            }
        }
    }

    /// Our bytes stand so far behind what we knew; in between are other programs' lines.
    fn landed(&mut self, behind: usize, length: usize) -> Result<Appended, StoreError> {
        let at = self.durable + behind as u64;
        let (others, _) = self.source.entries_between(self.durable, at)?;
        self.reached(at + length as u64)?;
        Ok(Appended::Written { at, others })
    }

    /// Everything behind what we know: a write of ours, and at most a line of another program.
    fn behind(&self, length: u64) -> Result<Vec<u8>, StoreError> {
        let length = u32::try_from(length - self.durable).ok();
        let Some(length) = length.filter(|length| u64::from(*length) <= 2 * lines::LONGEST) else {
            return Err(self.source.too_long(self.durable));
        };
        let spot = Spot { offset: self.durable, length };
        lines::at(self.source.file(), spot).map_err(StoreError::io(&self.path, "cannot be read"))
    }

    /// The file is known up to here.
    fn reached(&mut self, end: u64) -> Result<(), StoreError> {
        self.durable = end;
        self.ending = self.source.ending(end)?;
        Ok(())
    }

    /// Cuts off the rest of a failed write, so that the next append does not follow half a line.
    fn take_back(&mut self, bytes: &[u8]) {
        let taken = self.length().and_then(|length| self.behind(length)).and_then(|behind| {
            if !bytes.starts_with(&behind) {
                let what = "another program wrote to it while a write failed".to_owned();
                return Err(StoreError::Changed { path: self.path.clone(), what });
            }
            self.file.set_len(self.durable).map_err(StoreError::io(&self.path, "cannot be cut"))
        });
        if let Err(error) = taken {
            self.broken = Some(format!("a failed write could not be taken back ({error})"));
        }
    }

    /// Whether the file we write is still the one that others find: a write to one that was deleted or replaced would be
    /// lost.
    fn is_still_there(&mut self) -> Result<(), StoreError> {
        use std::os::unix::fs::MetadataExt;
        let ours = self.file.metadata().map_err(StoreError::io(&self.path, "cannot be looked at"))?;
        let what = match fs::metadata(&self.path) {
            Ok(there) if (there.dev(), there.ino()) == (ours.dev(), ours.ino()) => return Ok(()),
            Ok(_) => "it was replaced by another file",
            Err(_) => "it was deleted or moved",
        };
        Err(StoreError::Changed { path: self.path.clone(), what: what.to_owned() })
    }

    /// Reads whole lines behind what is durable. A line without its newline may still be on its way.
    fn read_on(&mut self) -> Result<Vec<Placed>, StoreError> {
        let length = self.length()?;
        if length < self.durable {
            // Appending would hide the loss.
            let why = "another program made the file shorter; load the session again".to_owned();
            self.broken = Some(why.clone());
            return Err(StoreError::ReadOnly { path: self.path.clone(), why });
        }
        if length == self.durable {
            return Ok(Vec::new());
        }
        self.source.is_what_it_was(self.durable, &self.ending)?;
        // An entry on the line of another one is read; one on the line of the header is not looked for.
        if self.durable < self.source.floor() && !self.source.ends_line(self.durable + 1)? {
            let what = "another program wrote into its header".to_owned();
            return Err(StoreError::Changed { path: self.path.clone(), what });
        }
        let (entries, durable) = self.source.entries_between(self.durable, length)?;
        if durable > self.durable {
            // What was missing of the last line came.
            if !matches!(self.unfinished, Unfinished::Old { .. }) {
                self.unfinished = Unfinished::Nothing;
            }
            self.reached(durable)?;
        }
        Ok(entries)
    }

    /// A line without its newline may be on its way. Its writer gets a moment to finish it.
    fn wait_for_line(&mut self) -> Result<Vec<Placed>, StoreError> {
        for _ in 0..20 {
            if self.length()? <= self.durable {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
            let entries = self.read_on()?;
            if !entries.is_empty() {
                return Ok(entries);
            }
        }
        // Some programs write the newline before a line and not behind it.
        let length = self.length()?;
        if length > self.durable && self.source.ends_with_entry(self.durable, length)? {
            (&*self.file)
                .write_all(b"\n")
                .map_err(StoreError::io(&self.path, "could not be written; nothing was changed"))?;
            return self.read_on();
        }
        Ok(Vec::new())
    }

    /// A piece of a line that stood at the end when the file was opened was left by a crash, and goes to a `.torn` file.
    fn move_torn_line_aside(&mut self) -> Result<(), StoreError> {
        let length = self.length()?;
        if length <= self.durable {
            return Ok(());
        }
        let piece = self.behind(length)?;
        if piece.contains(&b'\n') {
            return Ok(());
        }
        self.move_aside(&piece)
    }

    /// The piece of a line at the end goes to a `.torn` file.
    fn move_aside(&mut self, piece: &[u8]) -> Result<(), StoreError> {
        let failed = "its incomplete last line could not be kept in a .torn file; nothing was changed. Make room, then try again";
        let kept = regular::make_first_free(names_beside(&self.path, "torn")).and_then(|(torn, mut file)| {
            let written = file.write_all(piece).and_then(|()| file.sync_all());
            written.inspect_err(|_| drop(fs::remove_file(&torn)))?;
            Ok(torn)
        });
        let torn = kept.map_err(StoreError::io(&self.path, failed))?;
        // Whoever wrote it may be there yet and have gone on.
        if self.behind(self.length()?)? != piece {
            return fs::remove_file(&torn).map_err(StoreError::io(&torn, "cannot be removed"));
        }
        self.file.set_len(self.durable).map_err(StoreError::io(&self.path, "could not be cut to its last whole line"))
    }

    fn length(&self) -> Result<u64, StoreError> {
        Ok(self.file.metadata().map_err(StoreError::io(&self.path, "cannot be looked at"))?.len())
    }

    /// Repairs of the file's end, once before the first write.
    fn put_in_order(&mut self) -> Result<Grown, StoreError> {
        let entries = match self.unfinished {
            Unfinished::Nothing => Vec::new(),
            Unfinished::NoNewline => {
                let entries = self.read_on()?;
                self.finish_line()?;
                entries
            }
            Unfinished::Torn => {
                let entries = self.read_on()?;
                self.move_torn_line_aside()?;
                // A whole entry may stand before the piece on the same line.
                if !self.source.ends_line(self.durable)? {
                    self.finish_line()?;
                }
                entries
            }
            Unfinished::Old { known } => self.replace_old(known)?,
        };
        self.unfinished = Unfinished::Nothing;
        Ok(Grown { entries, path: None })
    }

    fn finish_line(&mut self) -> Result<(), StoreError> {
        if self.length()? > self.durable {
            // Another program has written on; whether its newline is there is seen when that is read.
            return Ok(());
        }
        (&*self.file)
            .write_all(b"\n")
            .map_err(StoreError::io(&self.path, "could not be written; nothing was changed"))?;
        self.reached(self.durable + 1)
    }

    /// An old version gives way to its form of today: the new file is complete on disk before it takes the name, and
    /// the old one stays beside it. The file is read once more, so that what another program wrote to it since is in
    /// the new one too; that comes back.
    fn replace_old(&mut self, known: usize) -> Result<Vec<Placed>, StoreError> {
        let failed = "could not be written in its new form; nothing was changed";
        let found = header::peek(&self.path)?;
        let old = Source::open(self.path.clone(), &found)?;
        let length = old.file().metadata().map_err(StoreError::io(&self.path, "cannot be looked at"))?.len();
        let (entries, _) =
            migrate::read(old.file(), &found, length).map_err(StoreError::io(&self.path, "cannot be read"))?;
        let version = format!("v{}", found.header.version);
        let header = migrate::to_header(&found.header);
        let mut bytes = header_line(&header);
        bytes.push('\n');
        let found = header::Found { header, title: None, end: bytes.len() as u64, lines: 1 };
        for entry in &entries {
            bytes.push_str(entry.line());
            bytes.push('\n');
        }
        let failed = StoreError::io(&self.path, failed);
        let made = regular::make_first_free(names_beside(&self.path, "new")).and_then(|(new, mut file)| {
            let mut write_new = || -> io::Result<()> {
                // It takes the place of the old file, for the same readers.
                file.set_permissions(self.file.metadata()?.permissions())?;
                file.write_all(bytes.as_bytes())?;
                file.sync_all()?;
                keep_old(&self.path, &version)?;
                fs::rename(&new, &self.path)
            };
            write_new().inspect_err(|_| drop(fs::remove_file(&new)))?;
            Ok(file)
        });
        self.file = Arc::new(made.map_err(failed)?);
        sync_folder(self.path.parent().unwrap_or(Path::new(".")));
        self.source = Source::of(self.path.clone(), self.file.clone(), &found);
        self.reached(bytes.len() as u64)?;
        // The session keeps the entries of an old file in memory, so that nobody asks for their places.
        let nowhere = Spot { offset: 0, length: 0 };
        Ok(entries.into_iter().skip(known).map(|entry| (entry, nowhere)).collect())
    }
}

/// Keeps the bytes of a file that is to be replaced under the first free name with this suffix.
fn keep_old(path: &Path, suffix: &str) -> io::Result<()> {
    for kept in names_beside(path, suffix) {
        // A hard link keeps them also where the process dies between this step and the next.
        match fs::hard_link(path, &kept) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Ok(()) => return Ok(()),
            // Not every file system has hard links.
            Err(_) => break,
        }
    }
    let mut old = regular::open(path, regular::Links::Refused)?;
    let (_, mut kept) = regular::make_first_free(names_beside(path, suffix))?;
    io::copy(&mut old, &mut kept)?;
    kept.sync_all()
}

/// A new name is only sure when its folder is on disk too. Not every file system can do it; the data is safe anyway.
pub fn sync_folder(folder: &Path) {
    if let Err(error) = File::open(folder).and_then(|folder| folder.sync_all()) {
        tracing::debug!(%error, "the folder could not be synced");
    }
}
