//! The lines of a session file, forwards in chunks or backwards from the end: never the whole file at once.
//!
//! A line over the limit is given by its beginning. The rest of it is passed over: holes without reading them, and other
//! bytes up to a number, after which reading ends with an error. In a file with large holes the same holds for a shorter
//! line with a hole in it, so the size of a file that takes no room on the disk costs nothing.

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

/// The most bytes of a line over the limit that are read to find its end. It is a second's work on a slow machine.
const PASSED: u64 = 1 << 30;

/// Bytes in holes above which a file is a sparse one. A crash leaves a hole as large as the last write, and a whole entry
/// may follow it on the same line, so smaller holes are read.
const SPARSE: u64 = LONGEST;

/// The longest line of a sparse file that is read with its holes, in bytes. It is also how much is read of such a file at
/// once.
const WITH_HOLES: usize = 64 << 10;

/// How much is read at first going backwards, in bytes; then twice as much each time.
const FIRST_BLOCK: usize = 64 << 10;

/// How much is read at most going backwards, in bytes, where no line is longer. Two of them fit in the second cache of a core.
const LARGEST_BLOCK: usize = 256 << 10;

/// A line without its newline.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    /// Its text; a carriage return before the newline is no part of it. Of a cut line, its beginning.
    pub bytes: &'a [u8],
    /// Where it begins in the file.
    pub offset: u64,
    /// Where the next line begins, or would.
    pub next: u64,
    /// A newline follows.
    pub ended: bool,
    /// Only its beginning is given: it is longer than the limit, or has a hole in a sparse file.
    pub cut: bool,
}

impl Line<'_> {
    /// Whether it says nothing.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.bytes.iter().all(u8::is_ascii_whitespace)
    }

    /// Whether it is longer than any line may be.
    #[must_use]
    pub fn is_over_limit(&self) -> bool {
        self.cut && self.next - self.offset > LONGEST
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
    Line { bytes: bytes.strip_suffix(b"\r").unwrap_or(bytes), offset, next, ended, cut: false }
}

/// The end of a line was not found within the bytes that are read for it.
#[derive(Debug, thiserror::Error)]
#[error("the line around byte {offset} goes on for more than {} bytes; take it out of the file", PASSED)]
struct Endless {
    offset: u64,
}

/// How long a line may be, how much of a longer one is kept, how much of it is read, and how much of a file that is no
/// sparse one lies in holes, in bytes.
#[derive(Debug, Clone, Copy)]
struct Limit {
    longest: usize,
    beginning: usize,
    passed: u64,
    holes: u64,
}

const LIMIT: Limit = Limit { longest: LONGEST as usize, beginning: BEGINNING, passed: PASSED, holes: SPARSE };

impl Limit {
    /// A line that was read whole.
    fn line<'b>(&self, holes: Option<&Bytes>, bytes: &'b [u8], offset: u64, ended: bool) -> Line<'b> {
        let length = bytes.len() as u64;
        let has_hole = |file: &Bytes| bytes.len() > WITH_HOLES && file.has_hole(offset, offset + length);
        if bytes.len() <= self.longest && !holes.is_some_and(has_hole) {
            return line(bytes, offset, ended);
        }
        let bytes = &bytes[..self.beginning.min(bytes.len())];
        Line { bytes, offset, next: offset + length + u64::from(ended), ended, cut: true }
    }

    /// Fails where more was read of a line than is read of any.
    fn check(&self, passed: u64, offset: u64) -> Result<(), Error> {
        if passed > self.passed { Err(Error::other(Endless { offset })) } else { Ok(()) }
    }
}

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
    let holes = Some(file).filter(|file| file.is_sparse(limit.holes));
    // More at once would be mostly holes, where somebody wants it to be.
    let (chunk, most) = if holes.is_some() { (WITH_HOLES, WITH_HOLES) } else { (CHUNK, usize::MAX) };
    let mut buffer = Vec::new();
    let mut start = from;
    let mut read_to = from;
    // The beginning of the line that is being read, where it is a cut one; the rest of it is not kept.
    let mut long: Option<Vec<u8>> = None;
    // How much of its rest was read.
    let mut passed = 0;
    while read_to < to {
        if long.is_some() {
            buffer.clear();
        } else if buffer.len() > limit.longest {
            buffer.truncate(limit.beginning);
            (long, passed) = (Some(std::mem::take(&mut buffer)), 0);
        }
        let known = buffer.len();
        let room = (limit.longest + chunk).saturating_sub(known);
        let more = usize::try_from(to - read_to).unwrap_or(usize::MAX).min(chunk.max(known).min(most)).min(room);
        buffer.reserve(more);
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
                Some(bytes) => each(Line { bytes: &bytes, offset: start, next, ended: true, cut: true }),
                None => each(limit.line(holes, bytes, start, true)),
            };
            if flow.is_break() {
                return Ok(());
            }
            done = end + 1;
            start = next;
        }
        if long.is_some() {
            passed += got as u64;
            limit.check(passed, start)?;
        } else {
            buffer.drain(..done);
        }
        let next = holes.map_or(read_to, |file| file.hole_end(read_to, to));
        // A line that is read with its holes is read on, wherever a chunk ends in it.
        if next > read_to && (long.is_some() || next - start > WITH_HOLES as u64) {
            if long.is_none() {
                buffer.truncate(limit.beginning);
                (long, passed) = (Some(std::mem::take(&mut buffer)), 0);
            }
            read_to = next;
        }
    }
    if long.is_none() && buffer.len() > limit.longest {
        buffer.truncate(limit.beginning);
        long = Some(std::mem::take(&mut buffer));
    }
    if let Some(bytes) = long {
        let _ = each(Line { bytes: &bytes, offset: start, next: to, ended: false, cut: true });
    } else if !buffer.is_empty() {
        let _ = each(limit.line(holes, &buffer, start, false));
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
    /// The buffer before, which is read into next. A new one costs as much as the reading.
    spare: Vec<u8>,
    /// So much of the buffer is still to be given.
    end: usize,
    /// So many bytes before that are known to have no newline among them.
    searched: usize,
    /// The next line is followed by a newline.
    ended: bool,
    block: usize,
    over: bool,
    limit: Limit,
    /// The file is a sparse one.
    sparse: bool,
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
            spare: Vec::new(),
            end: 0,
            searched: 0,
            ended: false,
            block: FIRST_BLOCK,
            over: end <= floor,
            sparse: file.is_sparse(limit.holes),
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
                None if self.start > self.floor && self.end <= self.longest_block() && !self.is_behind_hole() => {
                    self.read_block()?;
                }
                None if self.start > self.floor => {
                    let (offset, length, ended) = self.skip_long_line()?;
                    if wanted(self.long_line(offset, length, ended)) {
                        return Ok(Some(self.long_line(offset, length, ended)));
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
        self.limit.line(self.sparse.then_some(self.file), &self.buffer[bytes], offset, ended)
    }

    /// Whether a hole ends where the buffer begins.
    fn is_behind_hole(&self) -> bool {
        self.sparse && self.hole_start(self.start) < self.start
    }

    fn hole_start(&self, end: u64) -> u64 {
        // Nearly always none is there, and that is one step.
        if end == self.floor || self.file.hole_end(end - 1, end) != end {
            end
        } else {
            self.file.hole_start(self.floor, end)
        }
    }

    /// A line that the buffer holds whole, or the beginning of.
    fn long_line(&self, offset: u64, length: u64, ended: bool) -> Line<'_> {
        if self.buffer.len() as u64 == length {
            return line(&self.buffer, offset, ended);
        }
        Line { bytes: &self.buffer, offset, next: offset + length + u64::from(ended), ended, cut: true }
    }

    /// The longest line that is read by going back with all of it in the buffer.
    fn longest_block(&self) -> usize {
        if self.sparse { WITH_HOLES } else { self.limit.longest }
    }

    /// Goes back to the beginning of a long line. The buffer is all of it, or its beginning where it is a cut one. Gives its
    /// offset, its length, and whether a newline follows.
    fn skip_long_line(&mut self) -> Result<(u64, u64, bool), Error> {
        let end = self.start + self.end as u64;
        let ended = std::mem::replace(&mut self.ended, true);
        let mut offset = self.start;
        let mut block = vec![0; if self.sparse { WITH_HOLES } else { LARGEST_BLOCK }];
        let mut passed = 0;
        while offset > self.floor {
            if self.sparse {
                offset = self.hole_start(offset);
            }
            let size = usize::try_from(offset - self.floor).unwrap_or(usize::MAX).min(block.len());
            let from = offset - size as u64;
            self.file.read_exact_at(&mut block[..size], from)?;
            match memchr::memrchr(b'\n', &block[..size]) {
                Some(newline) => {
                    offset = from + newline as u64 + 1;
                    break;
                }
                None => offset = from,
            }
            passed += size as u64;
            self.limit.check(passed, offset)?;
        }
        let length = end - offset;
        let is_cut = length > self.limit.longest as u64 || self.file.has_hole(offset, end);
        let kept = usize::try_from(length).unwrap_or(usize::MAX);
        self.buffer = vec![0; if is_cut { kept.min(self.limit.beginning) } else { kept }];
        self.file.read_exact_at(&mut self.buffer, offset)?;
        (self.end, self.searched) = (0, 0);
        // The newline before it ends the line before it.
        self.over = offset == self.floor;
        self.start = offset.saturating_sub(1).max(self.floor);
        Ok((offset, length, ended))
    }

    fn read_block(&mut self) -> Result<(), Error> {
        let left = usize::try_from(self.start - self.floor).unwrap_or(usize::MAX);
        // A line longer than a block must not be copied once for each of them.
        let room = self.limit.longest + LARGEST_BLOCK - self.end;
        let size = self.block.max(self.end).min(room).min(left);
        self.block = if self.sparse { FIRST_BLOCK } else { (self.block * 2).min(LARGEST_BLOCK) };
        self.spare.resize(size + self.end, 0);
        let (block, rest) = self.spare.split_at_mut(size);
        self.file.read_exact_at(block, self.start - size as u64)?;
        rest.copy_from_slice(&self.buffer[..self.end]);
        std::mem::swap(&mut self.buffer, &mut self.spare);
        if self.spare.capacity() > 4 * LARGEST_BLOCK {
            // It had a long line.
            self.spare = Vec::new();
        }
        self.searched = self.end;
        self.end += size;
        self.start -= size as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::{io::Write, os::unix::fs::FileExt};

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
        let seen = |line: Line<'_>| (line.bytes.to_vec(), line.offset, line.next, line.ended, line.cut);
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

    #[test]
    fn a_line_without_end_is_given_up_in_both_directions() {
        let limit = Limit { longest: 8, beginning: 3, passed: 3 << 20, holes: LIMIT.holes };
        let text = |line: usize| [&b"a\n"[..], &vec![b'x'; line], b"\nb\n"].concat();
        assert_eq!(both_within(limit, &text(2 << 20), 0).0.len(), 3);
        let bytes = Bytes::Memory(text(5 << 20).into());
        let mut seen = 0;
        let forwards = forwards_within(limit, &bytes, 0, bytes.length().expect("a length"), |_| {
            seen += 1;
            ControlFlow::Continue(())
        });
        let mut lines = Backwards::within(limit, &bytes, 0, bytes.length().expect("a length"));
        assert_eq!(lines.before().expect("it is read").map(|line| line.bytes.to_vec()), Some(b"b".to_vec()));
        for error in [forwards.expect_err("it is given up"), lines.before().expect_err("it is given up")] {
            let text = error.to_string();
            assert!(text.starts_with("the line around byte ") && text.ends_with("take it out of the file"), "{text}");
        }
        assert_eq!(seen, 1);
    }

    /// Both directions give the same lines of a file. Its parts: a number of bytes, whether they are a hole, and whether a
    /// newline follows.
    fn same_with_holes(parts: &[(u64, bool, bool)], longest: usize) {
        let file = tempfile::tempfile().expect("a file");
        let mut at = 0;
        for &(length, hole, newline) in parts {
            if !hole {
                file.write_all_at(&vec![b'x'; length as usize], at).expect("it is written");
            }
            at += length;
            if newline {
                file.write_all_at(b"\n", at).expect("it is written");
                at += 1;
            }
        }
        file.set_len(at).expect("a hole");
        // A hole in the last block of the file is none for the count of blocks.
        file.set_len(at + (1 << 20)).expect("a hole");
        let limit = Limit { longest, holes: 0, ..LIMIT };
        let (there, back) = both_of(limit, &file.into(), 0);
        assert_eq!(there.len(), back.len());
        for (there, back) in there.iter().zip(&back) {
            assert_eq!((there.1, there.2, there.3, there.4), (back.1, back.2, back.3, back.4));
            let least = there.0.len().min(back.0.len());
            // Going forwards, the beginning of a cut line may end at its first hole.
            assert!(there.4 || there.0.len() == back.0.len());
            assert_eq!(&there.0[..least], &back.0[..least]);
        }
    }

    #[test]
    fn a_short_line_with_a_hole_at_the_end_of_a_chunk_is_whole() {
        same_with_holes(&[(9_177, false, true), (60_454, true, true)], 100_000);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn lines_with_holes_are_given_by_their_beginnings_in_both_directions(
            parts in proptest::collection::vec((1_u64..300_000, any::<bool>(), any::<bool>()), 1..12),
            longest in prop_oneof![Just(100_000_usize), Just(1_100_000)],
        ) {
            same_with_holes(&parts, longest);
        }

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
            let limit = Limit { longest, beginning: 3, ..LIMIT };
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
