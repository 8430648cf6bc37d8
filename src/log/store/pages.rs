//! The bytes of a session of a store: a local file that has the beginning and the end of it, and the rows between them as soon
//! as somebody reads them.
//!
//! Reading a session begins at both ends: the header stands at the beginning, and a context is read from the end back to the
//! last compaction. So two marks say which bytes are there: those before the one, and those from the other on.

use super::server::{From, Server};
use crate::{
    ids::SessionId,
    log::{bytes::Paged, error::StoreError},
};
use serde::{Deserialize, Serialize};
use std::{
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
};

/// The least and the most bytes that are read at once. Reading on doubles the number.
const LEAST: u64 = 256 << 10;
const MOST: u64 = 4 << 20;

/// The lines of a session and its size contradict each other.
const LONGER: &str = "the lines in the store are longer than it says";

/// A place between two lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Number of the line after it.
    pub line: u64,
    /// Its offset, in bytes.
    pub at: u64,
}

/// The lines that the local file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marks {
    /// The lines before this place are there.
    pub head: Mark,
    /// The lines from this place on are there.
    pub tail: Mark,
}

impl Marks {
    /// Nothing is there of this number of lines and bytes.
    #[must_use]
    pub fn none(lines: u64, bytes: u64) -> Self {
        Self { head: Mark { line: 0, at: 0 }, tail: Mark { line: lines, at: bytes } }
    }

    /// Whether every line is there.
    #[must_use]
    pub fn are_whole(&self) -> bool {
        self.head.at >= self.tail.at
    }
}

/// The bytes of a session of a store.
#[derive(Debug)]
pub struct Pages {
    file: Arc<File>,
    id: SessionId,
    generation: AtomicI64,
    server: Arc<dyn Server>,
    marks: Mutex<Marks>,
    /// The offsets of the marks, for readers that need nothing of the server.
    head: AtomicU64,
    tail: AtomicU64,
    /// The bytes that are read next.
    step: AtomicU64,
}

impl Pages {
    /// The bytes of a session, of which a local file has these.
    #[must_use]
    pub fn new(file: Arc<File>, id: SessionId, generation: i64, server: Arc<dyn Server>, marks: Marks) -> Self {
        Self {
            file,
            id,
            generation: AtomicI64::new(generation),
            server,
            head: AtomicU64::new(marks.head.at),
            tail: AtomicU64::new(marks.tail.at),
            marks: Mutex::new(marks),
            step: AtomicU64::new(LEAST),
        }
    }

    /// The lines that are there.
    #[must_use]
    pub fn marks(&self) -> Marks {
        *self.lock()
    }

    /// Generation of the lines.
    #[must_use]
    pub fn generation(&self) -> i64 {
        self.generation.load(Ordering::Relaxed)
    }

    /// The owner replaced lines at the end, which the local file has.
    pub fn has_generation(&self, generation: i64) {
        self.generation.store(generation, Ordering::Relaxed);
    }

    fn has(&self, from: u64, to: u64) -> bool {
        let (head, tail) = (self.head.load(Ordering::Acquire), self.tail.load(Ordering::Acquire));
        head >= tail || to <= head || from >= tail
    }

    fn forward(&self, marks: &mut Marks, bytes: u64) -> io::Result<()> {
        for row in self.read(From::Line(marks.head.line), bytes)? {
            // The rows of one page may reach into those that are there.
            if marks.head.line == marks.tail.line {
                break;
            }
            let at = marks.head.at + row.len() as u64;
            if at > marks.tail.at {
                return Err(self.changed(LONGER.to_owned()));
            }
            self.file.write_all_at(&row, marks.head.at)?;
            marks.head = Mark { line: marks.head.line + 1, at };
        }
        self.meet(marks)
    }

    fn backward(&self, marks: &mut Marks, bytes: u64) -> io::Result<()> {
        for row in self.read(From::Before(marks.tail.line), bytes)? {
            if marks.head.line == marks.tail.line {
                break;
            }
            let Some(at) = marks.tail.at.checked_sub(row.len() as u64).filter(|at| *at >= marks.head.at) else {
                return Err(self.changed(LONGER.to_owned()));
            };
            self.file.write_all_at(&row, at)?;
            marks.tail = Mark { line: marks.tail.line - 1, at };
        }
        self.meet(marks)
    }

    /// Marks at one line are at one offset.
    fn meet(&self, marks: &Marks) -> io::Result<()> {
        if (marks.head.line == marks.tail.line) == (marks.head.at == marks.tail.at) {
            return Ok(());
        }
        Err(self.changed("the lines in the store are shorter than it says".to_owned()))
    }

    fn read(&self, from: From, bytes: u64) -> io::Result<Vec<Vec<u8>>> {
        let rows = self.server.read(&self.id, self.generation(), from, bytes);
        let rows = rows.map_err(|fault| io::Error::other(fault.at(Path::new(self.id.as_str()))))?;
        if rows.is_empty() {
            return Err(self.changed("lines are missing in the store".to_owned()));
        }
        Ok(rows)
    }

    fn changed(&self, what: String) -> io::Error {
        io::Error::other(StoreError::Changed { path: self.id.as_str().into(), what })
    }

    fn lock(&self) -> MutexGuard<'_, Marks> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Paged for Pages {
    fn file(&self) -> &Arc<File> {
        &self.file
    }

    fn bring(&self, from: u64, to: u64) -> io::Result<()> {
        if self.has(from, to) {
            return Ok(());
        }
        let mut marks = self.lock();
        while !self.has(from, to) {
            let step = self.step.load(Ordering::Relaxed);
            self.step.store((step * 2).min(MOST), Ordering::Relaxed);
            let (before, after) = (from.saturating_sub(marks.head.at), marks.tail.at.saturating_sub(to));
            match before <= after {
                true => self.forward(&mut marks, step)?,
                false => self.backward(&mut marks, step)?,
            }
            self.head.store(marks.head.at, Ordering::Release);
            self.tail.store(marks.tail.at, Ordering::Release);
        }
        Ok(())
    }
}
