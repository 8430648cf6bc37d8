//! The right to write a session file: taken with its lock, and used to append only.
//!
//! `append` returns after the fsync, and the rest of a failed write is cut off again. Bytes of the file are never changed:
//! a torn last line is moved aside, and an old version is replaced by its new form with the old file kept, both right before
//! the first write. A `Medium` does the writing: a file on disk, or one in memory.

pub mod file;

use super::{
    Access, Appended, Grown, Log, Placed, Register, Stats,
    bytes::{Bytes, Standing},
    error::StoreError,
    header::{self, header_line},
    index::{Gap, Spot},
    lines, migrate,
};
use crate::{
    conversation::entry::{self, Head, Stamp},
    ids::EntryId,
    log::source::Source,
};
use std::{
    fmt,
    io::Error,
    path::{Path, PathBuf},
    sync::Arc,
};

/// The operations of a writer on its file, on the files beside it and on its lock. The lock is released with it.
pub trait Medium: fmt::Debug + Send {
    /// Appends bytes. After an error any part of them may be there.
    ///
    /// # Errors
    /// Those of the operating system.
    fn append(&mut self, bytes: &[u8]) -> Result<(), Error>;

    /// Makes the appended bytes durable.
    ///
    /// # Errors
    /// Those of the operating system. The last bytes may then be durable or not.
    fn sync(&mut self) -> Result<(), Error>;

    /// Cuts off the bytes after a length.
    ///
    /// # Errors
    /// Those of the operating system.
    fn cut(&mut self, length: u64) -> Result<(), Error>;

    /// Keeps a piece of a line in a new file beside this one.
    ///
    /// # Errors
    /// Those of the operating system. Nothing is kept then.
    fn keep_torn(&mut self, piece: &[u8]) -> Result<PathBuf, Error>;

    /// Removes a piece that was kept.
    ///
    /// # Errors
    /// Those of the operating system.
    fn remove_torn(&mut self, torn: &Path) -> Result<(), Error>;

    /// Puts a new file in the place of this one, which is kept beside it under the name of its version.
    ///
    /// # Errors
    /// Those of the operating system. The old file is then in its place.
    fn replace(&mut self, bytes: &[u8], version: &str) -> Result<Bytes, Error>;

    /// Gives another program a moment to finish its line.
    fn wait_for_others(&mut self);

    /// The stamp of an entry that the writer adds.
    fn stamp(&mut self) -> Stamp;

    /// The register of the lock.
    fn register(&self) -> Arc<dyn Register>;
}

/// The right to append to one session file.
#[derive(Debug)]
pub struct Writer<M> {
    path: PathBuf,
    medium: M,
    source: Source,
    /// Everything before this is on disk and ends with a newline, unless `unfinished` says otherwise.
    durable: u64,
    /// The bytes right before that, by which the file is known to be what it was.
    ending: Vec<u8>,
    unfinished: Unfinished,
    /// Writing is over, and why: after a failed fsync nobody knows what is on disk.
    broken: Option<String>,
    stats: Stats,
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

impl<M: Medium> Log for Writer<M> {
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
        let start = self.length()?;
        if start > self.durable {
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
        if let Err(error) = self.medium.append(&bytes) {
            self.take_back(start, &bytes);
            let what = match self.broken {
                None => "could not be written; nothing was changed. Make room, then try again",
                Some(_) => "could not be written, and a part of the write may have stayed; load the session again",
            };
            return Err(StoreError::io(&self.path, what)(error));
        }
        self.stats.writes += 1;
        if let Err(error) = self.medium.sync() {
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

    fn register(&self) -> Option<Arc<dyn Register>> {
        Some(self.medium.register())
    }

    fn stats(&self) -> Stats {
        self.stats
    }
}

impl<M: Medium> Writer<M> {
    /// The writer of a file that was read up to `durable`, in bytes.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn new(medium: M, source: Source, durable: u64, unfinished: Unfinished) -> Result<Self, StoreError> {
        let ending = source.ending(durable)?;
        let path = source.path().to_owned();
        Ok(Self { path, medium, source, durable, ending, unfinished, broken: None, stats: Stats::default() })
    }

    /// A line that adds nothing, after `leaf`, where the lines to be appended begin a branch and the file does not end with
    /// an entry. Right after an entry a parent is found at any distance, and else nearby only.
    fn marker_before(&mut self, lines: &[String], leaf: Option<&EntryId>) -> Result<Option<String>, StoreError> {
        let parent = lines.first().and_then(|line| Head::read(line).ok()?.parent());
        let (Some(parent), Some(leaf)) = (parent, leaf) else { return Ok(None) };
        if parent == leaf.as_str() || self.source.ends_with_id(self.length()?)? {
            return Ok(None);
        }
        let custom_type = entry::raw(&"abridged.gap");
        Ok(Some(entry::line("custom", &self.medium.stamp(), Some(leaf), &[("customType", &custom_type)])))
    }

    /// Where our bytes are. Nearly always right after what we knew; but another program may have been faster by less
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
        self.medium.append(&again).and_then(|()| self.medium.sync()).map_err(failed)?;
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

    /// Our bytes stand so far after what we knew; in between are other programs' lines.
    fn landed(&mut self, behind: usize, length: usize) -> Result<Appended, StoreError> {
        let at = self.durable + behind as u64;
        let (others, _) = self.source.entries_between(self.durable, at)?;
        self.reached(at + length as u64)?;
        Ok(Appended::Written { at, others })
    }

    /// Everything after what we know: a write of ours, and at most a line of another program.
    fn behind(&self, length: u64) -> Result<Vec<u8>, StoreError> {
        let length = u32::try_from(length - self.durable).ok();
        let Some(length) = length.filter(|length| u64::from(*length) <= 2 * lines::LONGEST) else {
            return Err(self.source.too_long(self.durable));
        };
        let spot = Spot { offset: self.durable, length };
        lines::at(self.source.bytes(), spot).map_err(StoreError::io(&self.path, "cannot be read"))
    }

    /// The file is known up to here.
    fn reached(&mut self, end: u64) -> Result<(), StoreError> {
        self.durable = end;
        self.ending = self.source.ending(end)?;
        Ok(())
    }

    /// Cuts off the rest of a failed write that began at `start`, so that the next append does not follow half a line.
    /// Half a line of another program may stand before it.
    fn take_back(&mut self, start: u64, bytes: &[u8]) {
        let before = usize::try_from(start - self.durable).unwrap_or(usize::MAX);
        let taken = self.length().and_then(|length| self.behind(length)).and_then(|behind| {
            if !behind.get(before..).is_some_and(|written| bytes.starts_with(written)) {
                let what = "another program wrote to it while a write failed".to_owned();
                return Err(StoreError::Changed { path: self.path.clone(), what });
            }
            self.medium.cut(start).map_err(StoreError::io(&self.path, "cannot be cut"))
        });
        if let Err(error) = taken {
            self.broken = Some(format!("a failed write could not be taken back ({error})"));
        }
    }

    /// Whether the file we write is still the one that others find: a write to one that was deleted or replaced would be
    /// lost.
    fn is_still_there(&mut self) -> Result<(), StoreError> {
        let looked = self.source.bytes().standing(&self.path);
        let what = match looked.map_err(StoreError::io(&self.path, "cannot be looked at"))? {
            Standing::Same(_) => return Ok(()),
            Standing::Replaced => "it was replaced by another file",
            Standing::Gone(_) => "it was deleted or moved",
        };
        Err(StoreError::Changed { path: self.path.clone(), what: what.to_owned() })
    }

    /// Reads whole lines after what is durable. A line without its newline may still be on its way.
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
            self.medium.wait_for_others();
            let entries = self.read_on()?;
            if !entries.is_empty() {
                return Ok(entries);
            }
        }
        // Some programs write the newline before a line and not after it.
        let length = self.length()?;
        if length > self.durable && self.source.ends_with_entry(self.durable, length)? {
            let failed = StoreError::io(&self.path, "could not be written; nothing was changed");
            self.medium.append(b"\n").map_err(failed)?;
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
        let torn = self.medium.keep_torn(piece).map_err(StoreError::io(&self.path, failed))?;
        // Whoever wrote it may be there yet and have gone on.
        if self.behind(self.length()?)? != piece {
            return self.medium.remove_torn(&torn).map_err(StoreError::io(&torn, "cannot be removed"));
        }
        let failed = StoreError::io(&self.path, "could not be cut to its last whole line");
        self.medium.cut(self.durable).map_err(failed)
    }

    fn length(&self) -> Result<u64, StoreError> {
        self.source.length().map_err(StoreError::io(&self.path, "cannot be looked at"))
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
        let failed = StoreError::io(&self.path, "could not be written; nothing was changed");
        self.medium.append(b"\n").map_err(failed)?;
        self.reached(self.durable + 1)
    }

    /// An old version gives way to its form of today: the new file is complete on disk before it takes the name, and
    /// the old one stays beside it. The file is read once more, so that what another program wrote to it since is in
    /// the new one too; that comes back.
    fn replace_old(&mut self, known: usize) -> Result<Vec<Placed>, StoreError> {
        let failed = "could not be written in its new form; nothing was changed";
        let old = self.source.bytes();
        let found = header::of(&self.path, old)?;
        let read = migrate::read(old, &found, self.length()?);
        let (entries, _) = read.map_err(StoreError::io(&self.path, "cannot be read"))?;
        let version = format!("v{}", found.header.version);
        let header = migrate::to_header(&found.header);
        let mut bytes = header_line(&header);
        bytes.push('\n');
        let found = header::Found { header, title: None, end: bytes.len() as u64, lines: 1 };
        for entry in &entries {
            bytes.push_str(entry.line());
            bytes.push('\n');
        }
        let new = self.medium.replace(bytes.as_bytes(), &version).map_err(StoreError::io(&self.path, failed))?;
        self.source = Source::of(self.path.clone(), new, &found);
        self.reached(bytes.len() as u64)?;
        // The session keeps the entries of an old file in memory, so that nobody asks for their places.
        let spot = Spot { offset: 0, length: 0 };
        Ok(entries.into_iter().skip(known).map(|entry| Placed { entry, spot, gap: Gap::Blank }).collect())
    }
}
