//! The lines of a session file, forwards in chunks or backwards from the end: never the whole file at once.

use super::bytes::Bytes;
use crate::log::index::Spot;
use std::{
    io::Error,
    ops::{ControlFlow, Range},
};

/// The longest line that is read, in bytes without its newline: twice the largest frame that a client may send, and so
/// longer than any line that is written here. A longer one is no entry, and only its beginning is looked at.
pub const LONGEST: u64 = 128 << 20;

/// How much of a line over the limit is looked at, in bytes: its ids stand there.
const BEGINNING: usize = 64 << 10;

/// How much is read at once going forwards, in bytes. A longer line is read whole, up to the limit.
const CHUNK: usize = 1 << 20;

/// How much is read at first going backwards, in bytes; then twice as much each time.
const FIRST_BLOCK: usize = 64 << 10;
const LARGEST_BLOCK: usize = 1 << 20;

/// A line without its newline.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    /// Its text; a carriage return before the newline is no part of it. Of a line over the limit, its beginning.
    pub bytes: &'a [u8],
    /// Where it begins in the file.
    pub offset: u64,
    /// Where the next line begins, or would.
    pub next: u64,
    /// A newline follows.
    pub ended: bool,
    /// It is longer than the limit.
    pub too_long: bool,
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
        // The limit is far below the largest length.
        Spot { offset: self.offset, length: u32::try_from(self.bytes.len()).unwrap_or(u32::MAX) }
    }
}

fn line(bytes: &[u8], offset: u64, ended: bool) -> Line<'_> {
    let next = offset + bytes.len() as u64 + u64::from(ended);
    Line { bytes: bytes.strip_suffix(b"\r").unwrap_or(bytes), offset, next, ended, too_long: false }
}

/// How long a line may be, and how much of a longer one is kept, in bytes.
#[derive(Debug, Clone, Copy)]
struct Limit {
    longest: usize,
    beginning: usize,
}

const LIMIT: Limit = Limit { longest: LONGEST as usize, beginning: BEGINNING };

/// Gives every line between two offsets, blank ones too, until `each` breaks.
///
/// # Errors
/// When the file cannot be read.
pub fn forwards(file: &Bytes, from: u64, to: u64, each: impl FnMut(Line<'_>) -> ControlFlow<()>) -> Result<(), Error> {
    forwards_within(LIMIT, file, from, to, each)
}

fn forwards_within(
    limit: Limit,
    file: &Bytes,
    from: u64,
    to: u64,
    mut each: impl FnMut(Line<'_>) -> ControlFlow<()>,
) -> Result<(), Error> {
    let mut buffer = Vec::new();
    let mut start = from;
    let mut read_to = from;
    // The beginning of the line that is being read, where it is over the limit; the rest of it is not kept.
    let mut long: Option<Vec<u8>> = None;
    while read_to < to {
        if long.is_some() {
            buffer.clear();
        } else if buffer.len() > limit.longest {
            long = Some(buffer[..limit.beginning].to_vec());
            buffer = Vec::new();
        }
        let known = buffer.len();
        let room = (limit.longest + CHUNK).saturating_sub(known);
        let more = usize::try_from(to - read_to).unwrap_or(usize::MAX).min(CHUNK.max(known)).min(room);
        buffer.reserve_exact(more);
        buffer.resize(known + more, 0);
        let got = file.read_at(&mut buffer[known..], read_to)?;
        buffer.truncate(known + got);
        let before = read_to;
        read_to = if got == 0 { to } else { read_to + got as u64 };

        let mut done = 0;
        // The part that was known before has no newline.
        for newline in memchr::memchr_iter(b'\n', &buffer[known..]) {
            let end = known + newline;
            let next = before + newline as u64 + 1;
            let bytes = &buffer[done..end];
            let flow = match long.take() {
                Some(bytes) => each(Line { bytes: &bytes, offset: start, next, ended: true, too_long: true }),
                None if bytes.len() > limit.longest => {
                    let bytes = &bytes[..limit.beginning];
                    each(Line { bytes, offset: start, next, ended: true, too_long: true })
                }
                None => each(line(bytes, start, true)),
            };
            if flow.is_break() {
                return Ok(());
            }
            done = end + 1;
            start = next;
        }
        if long.is_none() {
            buffer.drain(..done);
        }
    }
    if long.is_none() && buffer.len() > limit.longest {
        buffer.truncate(limit.beginning);
        long = Some(buffer);
        buffer = Vec::new();
    }
    if let Some(bytes) = long {
        let _ = each(Line { bytes: &bytes, offset: start, next: to, ended: false, too_long: true });
    } else if !buffer.is_empty() {
        let _ = each(line(&buffer, start, false));
    }
    Ok(())
}

/// The line of a spot.
///
/// # Errors
/// When it cannot be read, or the file is shorter than that.
pub fn at(file: &Bytes, spot: Spot) -> Result<Vec<u8>, Error> {
    let mut bytes = vec![0; spot.length as usize];
    file.read_exact_at(&mut bytes, spot.offset)?;
    Ok(bytes)
}

/// Lines from the end of a file towards its beginning.
pub struct Backwards<'f> {
    file: &'f Bytes,
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
    limit: Limit,
}

impl<'f> Backwards<'f> {
    /// The lines between two offsets, the last one first.
    #[must_use]
    pub fn new(file: &'f Bytes, floor: u64, end: u64) -> Self {
        Self::within(LIMIT, file, floor, end)
    }

    fn within(limit: Limit, file: &'f Bytes, floor: u64, end: u64) -> Self {
        Self {
            limit,
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
    pub fn before(&mut self) -> Result<Option<Line<'_>>, Error> {
        self.before_where(|_| true)
    }

    /// The nearest line before the one that was given last that is `wanted`.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn before_where(&mut self, wanted: impl Fn(Line<'_>) -> bool) -> Result<Option<Line<'_>>, Error> {
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
                    if wanted(self.line(bytes.clone(), offset, ended)) {
                        return Ok(Some(self.line(bytes, offset, ended)));
                    }
                }
                None if self.start > self.floor && self.end <= self.limit.longest => self.read_block()?,
                None if self.start > self.floor => {
                    let (offset, next, ended) = self.skip_long_line()?;
                    let long = Line { bytes: &self.buffer, offset, next, ended, too_long: true };
                    if wanted(long) {
                        return Ok(Some(Line { bytes: &self.buffer, ..long }));
                    }
                }
                None => {
                    self.over = true;
                    let first = self.line(0..self.end, self.floor, self.ended);
                    return Ok(wanted(first).then_some(first));
                }
            }
        }
        Ok(None)
    }

    /// A line that stands in the buffer.
    fn line(&self, bytes: Range<usize>, offset: u64, ended: bool) -> Line<'_> {
        let bytes = &self.buffer[bytes];
        if bytes.len() <= self.limit.longest {
            return line(bytes, offset, ended);
        }
        let next = offset + bytes.len() as u64 + u64::from(ended);
        Line { bytes: &bytes[..self.limit.beginning], offset, next, ended, too_long: true }
    }

    /// Goes back to the beginning of a line over the limit, which is all that is kept of it. Gives its offset, that of
    /// the next line, and whether a newline follows.
    fn skip_long_line(&mut self) -> Result<(u64, u64, bool), Error> {
        let next = self.start + self.end as u64 + u64::from(self.ended);
        let ended = std::mem::replace(&mut self.ended, true);
        let mut offset = self.start;
        let mut block = vec![0; LARGEST_BLOCK];
        while offset > self.floor {
            let size = usize::try_from(offset - self.floor).unwrap_or(usize::MAX).min(LARGEST_BLOCK);
            let from = offset - size as u64;
            self.file.read_exact_at(&mut block[..size], from)?;
            match memchr::memrchr(b'\n', &block[..size]) {
                Some(newline) => {
                    offset = from + newline as u64 + 1;
                    break;
                }
                None => offset = from,
            }
        }
        self.buffer = vec![0; self.limit.beginning];
        self.file.read_exact_at(&mut self.buffer, offset)?;
        (self.end, self.searched) = (0, 0);
        // The newline before it ends the line before it.
        self.over = offset == self.floor;
        self.start = offset.saturating_sub(1).max(self.floor);
        Ok((offset, next, ended))
    }

    fn read_block(&mut self) -> Result<(), Error> {
        let left = usize::try_from(self.start - self.floor).unwrap_or(usize::MAX);
        // A line longer than a block must not be copied once for each of them.
        let room = self.limit.longest + LARGEST_BLOCK - self.end;
        let size = self.block.max(self.end).min(room).min(left);
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

    type Seen = Vec<(Vec<u8>, u64, u64, bool, bool)>;

    fn both(bytes: &[u8], floor: u64) -> (Seen, Seen) {
        both_within(LIMIT, bytes, floor)
    }

    fn both_within(limit: Limit, bytes: &[u8], floor: u64) -> (Seen, Seen) {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(bytes).expect("it is written");
        let in_memory = both_of(limit, &Bytes::Memory(bytes.to_vec().into()), floor);
        let in_file = both_of(limit, &file.into(), floor);
        assert_eq!(in_memory, in_file);
        in_file
    }

    fn both_of(limit: Limit, file: &Bytes, floor: u64) -> (Seen, Seen) {
        let end = file.length().expect("a length");
        let seen = |line: Line<'_>| (line.bytes.to_vec(), line.offset, line.next, line.ended, line.too_long);
        let mut there = Vec::new();
        forwards_within(limit, file, floor, end, |line| {
            there.push(seen(line));
            ControlFlow::Continue(())
        })
        .expect("it is read");
        let mut back = Vec::new();
        let mut lines = Backwards::within(limit, file, floor, end);
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
        assert_eq!((there[1].0.len(), &there[3].0[..], there[4].3), (long.len(), &b"b"[..], false));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn backwards_is_forwards_reversed(bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'a'), Just(b'\r')], 0..40), floor in 0_usize..4) {
            let floor = floor.min(bytes.len()) as u64;
            let (there, back) = both(&bytes, floor);
            prop_assert_eq!(there, back);
        }

        #[test]
        fn a_line_over_the_limit_is_given_by_its_beginning_in_both_directions(
            lengths in proptest::collection::vec(prop_oneof![0_usize..8, 64_000_usize..67_000, 1_000_000_usize..1_200_000], 1..5),
            longest in prop_oneof![Just(4_usize), Just(65_536), Just(1_100_000)],
            newline in any::<bool>(),
        ) {
            let limit = Limit { longest, beginning: 3 };
            let mut bytes: Vec<u8> = Vec::new();
            for length in &lengths {
                bytes.extend(std::iter::repeat_n(b'x', *length));
                bytes.push(b'\n');
            }
            if !newline {
                bytes.pop();
            }
            let (there, back) = both_within(limit, &bytes, 0);
            prop_assert_eq!(&there, &back);
            for (line, length) in there.iter().zip(&lengths) {
                let too_long = *length > longest;
                prop_assert_eq!((line.4, line.0.len()), (too_long, if too_long { 3 } else { *length }));
            }
        }
    }
}
