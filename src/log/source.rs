//! A session file that is read: its lines and entries by their offsets.

use super::{
    Placed,
    bytes::Bytes,
    error::StoreError,
    header::Found,
    index::{Gap, Spot},
    lines::{self, Backwards, Line},
    pieces::{self, Form, Piece},
    repair::Repair,
};
use crate::{conversation::entry::Entry, regular};
use std::{io::Error, ops::ControlFlow, path::PathBuf, sync::Arc};

/// A session file that is read.
#[derive(Debug, Clone)]
pub struct Source {
    path: PathBuf,
    bytes: Bytes,
    /// Offset of the first entry, in bytes.
    floor: u64,
    /// Number of lines before the first entry.
    header_lines: usize,
}

/// End of a file.
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
    /// A file of an older version, of which this number of entries was read.
    Old { entries: usize },
}

impl Tail {
    /// The repair of a last line that is left out. `line` is its number, where that is known.
    #[must_use]
    pub fn repair(self, line: Option<usize>) -> Option<Repair> {
        let detail = match self {
            Self::TooLong => {
                let longest = lines::LONGEST;
                format!("the last line is longer than {longest} bytes and has no end; it is left out")
            }
            Self::Torn => {
                "the last line is incomplete; it is left out, and moved to a .torn file before the next write"
                    .to_owned()
            }
            Self::Whole | Self::NoNewline | Self::Old { .. } => return None,
        };
        Some(Repair { kind: "torn_tail", line, detail })
    }
}

impl Source {
    /// A file whose entries begin after this header.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(path: PathBuf, header: &Found) -> Result<Self, StoreError> {
        let file = regular::open(&path, regular::Links::Followed).map_err(StoreError::io(&path, "cannot be read"))?;
        Ok(Self::of(path, file.into(), header))
    }

    /// An open file whose entries begin after this header.
    #[must_use]
    pub fn of(path: PathBuf, bytes: Bytes, header: &Found) -> Self {
        Self { path, bytes, floor: header.end, header_lines: header.lines }
    }

    /// Path of the file.
    #[must_use]
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// The bytes of the file.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The lines before an offset, the last one first, down to the first entry.
    #[must_use]
    pub fn backwards(&self, end: u64) -> Backwards<'_> {
        Backwards::new(&self.bytes, self.floor, end)
    }

    /// The same file, of which nothing before `offset` is read. A line may begin before it and is a broken one then.
    #[must_use]
    pub fn not_before(&self, offset: u64) -> Self {
        Self { floor: self.floor.max(offset), ..self.clone() }
    }

    /// Offset of the first entry, in bytes.
    #[must_use]
    pub fn floor(&self) -> u64 {
        self.floor
    }

    /// Current length, in bytes.
    ///
    /// # Errors
    /// When the file cannot be looked at.
    pub fn length(&self) -> Result<u64, Error> {
        self.bytes.length()
    }

    /// Number of lines before the first entry.
    pub fn header_lines(&self) -> usize {
        self.header_lines
    }

    /// Wraps an error of reading the file.
    pub fn failed(&self) -> impl FnOnce(Error) -> StoreError {
        StoreError::io(&self.path, "cannot be read")
    }

    /// End of the last whole entry in bytes, and the form of the file's end.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn end(&self, length: u64) -> Result<(u64, Tail), StoreError> {
        let mut lines = self.backwards(length);
        let Some(line) = lines.before().map_err(self.failed())? else {
            return Ok((length, if self.floor > length { Tail::NoNewline } else { Tail::Whole }));
        };
        if line.ended {
            return Ok((length, Tail::Whole));
        }
        if line.is_blank() && !line.cut {
            return Ok((length, Tail::NoNewline));
        }
        Ok(match pieces::of(&line, Form::Today).as_slice() {
            [.., Piece::Entry(..)] => (length, Tail::NoNewline),
            // A whole entry before the piece on the same line is read.
            [.., Piece::Entry(whole, _), Piece::Broken(..)] => (line.offset + whole.end as u64, Tail::Torn),
            _ if line.is_over_limit() => (line.offset, Tail::TooLong),
            _ => (line.offset, Tail::Torn),
        })
    }

    /// Whether a line ends right before `at`.
    pub fn ends_line(&self, at: u64) -> Result<bool, StoreError> {
        if at == 0 {
            return Ok(true);
        }
        let spot = Spot { offset: at - 1, length: 1 };
        Ok(lines::at(&self.bytes, spot).map_err(self.failed())? == b"\n")
    }

    /// Whether what stands after `from` ends with a whole entry, though no newline follows it.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn ends_with_entry(&self, from: u64, length: u64) -> Result<bool, StoreError> {
        let mut lines = Backwards::new(&self.bytes, from, length);
        let last = lines.before().map_err(self.failed())?;
        Ok(last
            .is_some_and(|line| !line.ended && matches!(pieces::of(&line, Form::Today).last(), Some(Piece::Entry(..)))))
    }

    /// Whether the last line ends with an entry, or with a broken one whose id can be read.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn ends_with_id(&self, length: u64) -> Result<bool, StoreError> {
        let mut lines = self.backwards(length);
        let Some(line) = lines.before().map_err(self.failed())? else { return Ok(true) };
        if line.is_blank() {
            return Ok(false);
        }
        let next = line.next + u64::from(!line.ended);
        let pieces = pieces::of(&line, Form::Today);
        let last = pieces.last().filter(|piece| piece.entry(&line).is_some());
        Ok(last.is_some_and(|piece| piece.spot(&line).is_right_before(next)))
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
        let mut before = None;
        let each = |line: Line<'_>| {
            if line.ended {
                end = line.next;
                if !line.is_blank() {
                    let pieces = pieces::of(&line, Form::Today);
                    for piece in &pieces {
                        let Some(entry) = piece.entry(&line) else { continue };
                        let spot = piece.spot(&line);
                        let gap = match before {
                            Some(before) => self.gap(before, spot.offset),
                            None => self.gap_before(spot.offset),
                        };
                        before = Some(spot);
                        entries.push(Placed { entry, spot, gap });
                    }
                }
            } else if line.is_over_limit() {
                too_long = Some(line.offset);
            }
            ControlFlow::Continue(())
        };
        lines::forwards(&self.bytes, from, to, each).map_err(self.failed())?;
        match too_long {
            Some(offset) => Err(self.too_long(offset)),
            None => Ok((entries, end)),
        }
    }

    /// The gap between two entries.
    fn gap(&self, before: Spot, offset: u64) -> Gap {
        let blank = before.is_right_before(offset) || self.is_blank(before.end()..offset);
        if blank { Gap::Blank } else { Gap::Unreadable }
    }

    /// The gap between an entry and the one before it, which is looked for in the file.
    fn gap_before(&self, offset: u64) -> Gap {
        let mut lines = self.backwards(offset);
        while let Ok(Some(line)) = lines.before() {
            if line.is_blank() && !line.cut && self.is_blank(line.offset..offset) {
                continue;
            }
            let pieces = pieces::of(&line, Form::Today);
            let last = pieces.iter().rev().find(|piece| piece.entry(&line).is_some());
            return last.map_or(Gap::Unreadable, |last| self.gap(last.spot(&line), offset));
        }
        Gap::Unreadable
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
        let bytes = lines::at(&self.bytes, spot).map_err(self.failed())?;
        pieces::entry(&bytes).or_else(|what| {
            let changed = || StoreError::Changed { path: self.path.clone(), what };
            pieces::placeholder(&bytes, spot).ok_or_else(changed)
        })
    }

    /// The bytes right before a place in the file.
    pub fn ending(&self, at: u64) -> Result<Vec<u8>, StoreError> {
        /// As many as the end of any entry has that is unlike that of another: its text or its id.
        const ENOUGH: u64 = 64;
        let length = at.min(ENOUGH);
        let at_end = self.length().map_err(StoreError::io(self.path(), "cannot be looked at"))? >= at;
        if !at_end {
            return Ok(Vec::new());
        }
        let spot = Spot { offset: at - length, length: length as u32 };
        lines::at(&self.bytes, spot).map_err(StoreError::io(self.path(), "cannot be read"))
    }

    /// A file that was cut and then grew again is another one, though it is longer than before.
    pub fn is_what_it_was(&self, at: u64, ending: &[u8]) -> Result<(), StoreError> {
        if self.ending(at)? == ending {
            return Ok(());
        }
        let what = "what was read of it is not there any more".to_owned();
        Err(StoreError::Changed { path: self.path().to_owned(), what })
    }
}
