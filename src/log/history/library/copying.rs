//! The lines of a path for another file, byte for byte and in pieces.

use super::{Bodies, Library};
use crate::log::{error::StoreError, index::Place, sealed::Blocking, source::Source};

/// The size of a piece, in bytes. A longer line is a piece of its own.
const PIECE: u64 = 1 << 20;

impl Library {
    /// Hands out the lines of these entries, in this order. A piece has whole lines, each with its newline. A line is as it
    /// stands in the file, unless it is broken or names another parent than the entry has: a placeholder, or the line with
    /// the parent that the entry has, takes its place.
    ///
    /// # Errors
    /// When the file cannot be read or was changed by another program, and those of `each`.
    pub fn lines_of(
        &self,
        path: &[Place],
        blocking: &Blocking,
        each: &mut dyn FnMut(&[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut piece = Vec::new();
        let mut rest = path;
        while let Some(first) = rest.first() {
            let neighbours = match &self.bodies {
                Bodies::File(source) => self.neighbours(rest, source.open(blocking), &mut piece)?,
                Bodies::Memory(_) => 0,
            };
            if neighbours == 0 {
                piece.clear();
                piece.extend_from_slice(self.body(*first, blocking)?.line_with_parent().as_bytes());
            }
            piece.push(b'\n');
            each(&piece)?;
            rest = &rest[neighbours.max(1)..];
        }
        Ok(())
    }

    /// Reads the first lines of a path that stand right after each other, and returns the number of their entries. None
    /// where the first line cannot stand as it is.
    fn neighbours(&self, path: &[Place], source: &Source, piece: &mut Vec<u8>) -> Result<usize, StoreError> {
        let index = self.index();
        let Some(first) = path.first().filter(|place| index.stands_as_it_is(**place)) else { return Ok(0) };
        let start = index.spot(*first).offset;
        let mut end = index.spot(*first).end();
        let mut count = 1;
        for place in &path[1..] {
            let spot = index.spot(*place);
            let is_next = spot.offset == end + 1 && spot.end() - start <= PIECE;
            if !is_next || !index.stands_as_it_is(*place) {
                break;
            }
            (end, count) = (spot.end(), count + 1);
        }
        piece.clear();
        piece.resize(usize::try_from(end - start).unwrap_or(usize::MAX), 0);
        source.bytes().read_exact_at(piece, start).map_err(source.failed())?;
        for place in &path[..count] {
            let spot = index.spot(*place);
            let from = usize::try_from(spot.offset - start).unwrap_or(usize::MAX);
            let (line, behind) = piece[from..].split_at(spot.length as usize);
            let line = line.trim_ascii();
            let is_whole = line.first() == Some(&b'{') && line.last() == Some(&b'}');
            if !is_whole || behind.first().is_some_and(|byte| *byte != b'\n') {
                let what = format!("no line stands at byte {} any more", spot.offset);
                return Err(StoreError::Changed { path: source.path().to_owned(), what });
            }
        }
        Ok(count)
    }
}
