//! The lines of a session file, forwards in chunks or backwards from the end: never the whole file at once.

use crate::index::Spot;
use std::{fs::File, io, ops::ControlFlow, os::unix::fs::FileExt};

/// How much is read at once going forwards, in bytes. A longer line is read whole.
const CHUNK: usize = 1 << 20;

/// How much is read at first going backwards, in bytes; then twice as much each time.
const FIRST_BLOCK: usize = 64 << 10;
const LARGEST_BLOCK: usize = 1 << 20;

/// A line without its newline.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    /// What it says; a carriage return before the newline is no part of it.
    pub bytes: &'a [u8],
    /// Where it begins in the file.
    pub offset: u64,
    /// Where the next line begins, or would.
    pub next: u64,
    /// A newline follows.
    pub ended: bool,
}

impl Line<'_> {
    /// Whether it says nothing.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.bytes.iter().all(u8::is_ascii_whitespace)
    }

    /// Where it stands.
    #[must_use]
    pub fn spot(&self) -> Spot {
        // A line of four gigabytes is no entry; what is read of it will not be JSON, and reported as that.
        Spot { offset: self.offset, length: u32::try_from(self.bytes.len()).unwrap_or(u32::MAX) }
    }
}

fn line(bytes: &[u8], offset: u64, ended: bool) -> Line<'_> {
    let next = offset + bytes.len() as u64 + u64::from(ended);
    Line { bytes: bytes.strip_suffix(b"\r").unwrap_or(bytes), offset, next, ended }
}

/// Gives every line between two offsets, blank ones too, until `each` breaks.
///
/// # Errors
/// When the file cannot be read.
pub fn forwards(file: &File, from: u64, to: u64, mut each: impl FnMut(Line<'_>) -> ControlFlow<()>) -> io::Result<()> {
    let mut buffer = Vec::new();
    let mut start = from;
    let mut read_to = from;
    while read_to < to {
        let known = buffer.len();
        let more = usize::try_from(to - read_to).unwrap_or(usize::MAX).min(CHUNK.max(known));
        buffer.resize(known + more, 0);
        let got = read_at(file, &mut buffer[known..], read_to)?;
        buffer.truncate(known + got);
        read_to = if got == 0 { to } else { read_to + got as u64 };

        let mut done = 0;
        // What was known before had no newline in it.
        for newline in memchr::memchr_iter(b'\n', &buffer[known..]) {
            let end = known + newline;
            if each(line(&buffer[done..end], start + done as u64, true)).is_break() {
                return Ok(());
            }
            done = end + 1;
        }
        start += done as u64;
        buffer.drain(..done);
    }
    if !buffer.is_empty() {
        let _ = each(line(&buffer, start, false));
    }
    Ok(())
}

fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    loop {
        match file.read_at(buffer, offset) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// The line of a spot.
///
/// # Errors
/// When it cannot be read, or the file is shorter than that.
pub fn at(file: &File, spot: Spot) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; spot.length as usize];
    file.read_exact_at(&mut bytes, spot.offset)?;
    Ok(bytes)
}

/// Lines from the end of a file towards its beginning.
pub struct Backwards<'f> {
    file: &'f File,
    /// Nothing before this is read: the header stands there.
    floor: u64,
    /// Where the buffer begins in the file.
    start: u64,
    buffer: Vec<u8>,
    /// So much of the buffer is still to be given.
    end: usize,
    /// So many bytes before that are known to have no newline among them.
    searched: usize,
    /// The next line is followed by a newline.
    ended: bool,
    block: usize,
    over: bool,
}

impl<'f> Backwards<'f> {
    /// The lines between two offsets, the last one first.
    #[must_use]
    pub fn new(file: &'f File, floor: u64, end: u64) -> Self {
        Self {
            file,
            floor,
            start: end,
            buffer: Vec::new(),
            end: 0,
            searched: 0,
            ended: false,
            block: FIRST_BLOCK,
            over: end <= floor,
        }
    }

    /// The line before the one that was given last.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn before(&mut self) -> io::Result<Option<Line<'_>>> {
        self.before_where(|_| true)
    }

    /// The nearest line before the one that was given last that is `wanted`.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn before_where(&mut self, wanted: impl Fn(Line<'_>) -> bool) -> io::Result<Option<Line<'_>>> {
        while !self.over {
            match memchr::memrchr(b'\n', &self.buffer[..self.end - self.searched]) {
                Some(newline) if newline + 1 == self.end && !self.ended => {
                    // The one at the very end.
                    (self.end, self.searched, self.ended) = (newline, 0, true);
                }
                Some(newline) => {
                    let bytes = newline + 1..self.end;
                    let ended = std::mem::replace(&mut self.ended, true);
                    (self.end, self.searched) = (newline, 0);
                    let offset = self.start + bytes.start as u64;
                    if wanted(line(&self.buffer[bytes.clone()], offset, ended)) {
                        return Ok(Some(line(&self.buffer[bytes], offset, ended)));
                    }
                }
                None if self.start > self.floor => self.read_block()?,
                None => {
                    self.over = true;
                    let first = line(&self.buffer[..self.end], self.floor, self.ended);
                    return Ok(wanted(first).then_some(first));
                }
            }
        }
        Ok(None)
    }

    fn read_block(&mut self) -> io::Result<()> {
        let left = usize::try_from(self.start - self.floor).unwrap_or(usize::MAX);
        // A line longer than a block must not be copied once for each of them.
        let size = self.block.max(self.end).min(left);
        self.block = (self.block * 2).min(LARGEST_BLOCK);
        let mut buffer = vec![0; size];
        self.file.read_exact_at(&mut buffer, self.start - size as u64)?;
        buffer.extend_from_slice(&self.buffer[..self.end]);
        self.searched = self.end;
        self.end = buffer.len();
        self.buffer = buffer;
        self.start -= size as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;

    type Seen = Vec<(Vec<u8>, u64, bool)>;

    fn both(bytes: &[u8], floor: u64) -> (Seen, Seen) {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(bytes).expect("it is written");
        let end = bytes.len() as u64;
        let seen = |line: Line<'_>| (line.bytes.to_vec(), line.offset, line.ended);
        let mut there = Vec::new();
        forwards(&file, floor, end, |line| {
            there.push(seen(line));
            ControlFlow::Continue(())
        })
        .expect("it is read");
        let mut back = Vec::new();
        let mut lines = Backwards::new(&file, floor, end);
        while let Some(line) = lines.before().expect("it is read") {
            back.push(seen(line));
        }
        back.reverse();
        (there, back)
    }

    #[test]
    fn lines_longer_than_any_block_are_whole() {
        let long = vec![b'x'; 5 * LARGEST_BLOCK];
        let bytes = [b"a\n", long.as_slice(), b"\n\nb\r\n", &long].concat();
        let (there, back) = both(&bytes, 0);
        assert_eq!(there, back);
        assert_eq!(there.len(), 5);
        assert_eq!((there[1].0.len(), &there[3].0[..], there[4].2), (long.len(), &b"b"[..], false));
    }

    proptest! {
        #[test]
        fn backwards_is_forwards_reversed(bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'a'), Just(b'\r')], 0..40), floor in 0_usize..4) {
            let floor = floor.min(bytes.len()) as u64;
            let (there, back) = both(&bytes, floor);
            prop_assert_eq!(there, back);
        }
    }
}
