//! The index of a session file, and what is odd about its lines.

use super::{
    lines::{self, Line},
    pieces::{self, Form, Piece},
};
use crate::{
    conversation::entry::{Entry, Head},
    log::{
        Placed,
        error::StoreError,
        index::{Gap, Index, Oddity, Spot},
        repair::{self, Repair},
        source::Source,
    },
    text::values,
};
use std::ops::{ControlFlow, Range};

/// The most repairs of one file that are kept. Each is a line of text in an answer.
const MOST_REPAIRS: usize = 10_000;

/// An index of everything up to some place of a file.
pub struct Made {
    pub index: Index,
    pub repairs: Vec<Repair>,
    /// The number of the last line.
    pub lines: usize,
}

/// The repairs of a file, up to a number.
#[derive(Default)]
struct Repairs {
    listed: Vec<Repair>,
    more: usize,
}

impl Repairs {
    fn add(&mut self, repair: Repair) {
        if self.listed.len() < MOST_REPAIRS {
            self.listed.push(repair);
        } else {
            self.more += 1;
        }
    }

    fn list(self) -> Vec<Repair> {
        let mut listed = repair::distinct(self.listed);
        if self.more > 0 {
            let detail = format!("{} more are not listed", self.more);
            listed.push(Repair { kind: "more", line: None, detail });
        }
        listed
    }
}

impl Source {
    /// Makes the index of everything up to `end`, unless it is stopped.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn index(&self, end: u64, stopped: &dyn Fn() -> bool) -> Result<Option<Made>, StoreError> {
        let mut index = Index::default();
        let mut repairs = Repairs::default();
        let mut number = self.header_lines();
        let mut over = false;
        let on_header = self.floor() < end && !self.ends_line(self.floor())?;
        let each = |line: Line<'_>| {
            number += 1;
            if number.is_multiple_of(4_096) && stopped() {
                over = true;
                return ControlFlow::Break(());
            }
            if on_header && number == self.header_lines() + 1 && entries_of(&line) == 1 {
                repairs.add(glued_to_header(number));
            }
            self.add_line(&mut index, &line, number, &mut |repair| repairs.add(repair));
            ControlFlow::Continue(())
        };
        lines::forwards(self.bytes(), self.floor(), end, each).map_err(self.failed())?;
        index.shrink();
        Ok((!over).then(|| Made { index, repairs: repairs.list(), lines: number }))
    }

    /// Adds what stands between two offsets to an index.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn index_on(&self, index: &mut Index, from: u64, to: u64) -> Result<(), StoreError> {
        let each = |line: Line<'_>| {
            self.add_line(index, &line, 0, &mut drop);
            ControlFlow::Continue(())
        };
        lines::forwards(self.bytes(), from, to, each).map_err(self.failed())
    }

    /// The numbers of the lines of these spots, from one, in one reading of the file.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn line_numbers(&self, spots: &[Spot]) -> Result<Vec<usize>, StoreError> {
        let mut order: Vec<usize> = (0..spots.len()).collect();
        order.sort_unstable_by_key(|&at| spots[at].offset);
        let mut numbers = vec![0; spots.len()];
        let Some(last) = order.last().map(|&at| spots[at].offset) else { return Ok(numbers) };
        let mut left = order.into_iter().peekable();
        let mut number = self.header_lines();
        let each = |line: Line<'_>| {
            number += 1;
            while let Some(at) = left.next_if(|&at| spots[at].offset < line.next) {
                numbers[at] = number;
            }
            ControlFlow::Continue(())
        };
        lines::forwards(self.bytes(), self.floor(), last + 1, each).map_err(self.failed())?;
        Ok(numbers)
    }

    /// Whether nothing but blank lines stands between two offsets. A larger gap than is looked at counts as unreadable.
    pub fn is_blank(&self, gap: Range<u64>) -> bool {
        /// In bytes.
        const LARGEST: u64 = 64 << 10;
        let length = gap.end.saturating_sub(gap.start);
        let spot = Spot { offset: gap.start, length: length.min(LARGEST) as u32 };
        length <= LARGEST && lines::at(self.bytes(), spot).is_ok_and(|bytes| bytes.iter().all(u8::is_ascii_whitespace))
    }

    /// Adds the entries of a line.
    fn add_line(&self, index: &mut Index, line: &Line<'_>, number: usize, repair: &mut dyn FnMut(Repair)) {
        if line.is_blank() {
            return;
        }
        let add = |head: &Head<'_>, spot, index: &mut Index| {
            let oddity = index.push(head, spot, |gap| self.is_blank(gap));
            oddity.zip(head.id()).map(|(oddity, id)| odd(&oddity, &id, Some(number)))
        };
        let large = |head: &Head<'_>, bytes: &[u8]| {
            let id = head.id().filter(|_| Entry::is_known(&head.kind) && values::are_too_many(bytes))?;
            Some(too_large(&head.kind, &id, Some(number)))
        };
        let pieces = match pieces::whole(line, Form::Today) {
            Ok(head) => {
                let odd = add(&head, line.spot(), index);
                return odd.into_iter().chain(large(&head, line.bytes)).for_each(repair);
            }
            Err(pieces) => pieces,
        };
        repair(damaged(&pieces, number));
        for piece in &pieces {
            let spot = piece.spot(line);
            match piece {
                Piece::Entry(range, head) => {
                    let odd = add(head, spot, index);
                    odd.into_iter().chain(large(head, &line.bytes[range.clone()])).for_each(&mut *repair);
                }
                Piece::Broken(_, fault) => {
                    if let Some(ids) = &fault.ids {
                        index.push_broken(&ids.into(), spot, |gap| self.is_blank(gap));
                    }
                }
            }
        }
    }
}

/// How many whole entries stand on a line.
fn entries_of(line: &Line<'_>) -> usize {
    if line.is_blank() {
        return 0;
    }
    pieces::of(line, Form::Today).iter().filter(|piece| matches!(piece, Piece::Entry(..))).count()
}

/// Adds an entry to an index.
pub fn push(index: &mut Index, placed: &Placed) -> Option<Oddity> {
    let head = Head::read(placed.entry.line()).ok()?;
    index.push(&head, placed.spot, |_| placed.gap == Gap::Blank)
}

/// The problem of a line of NUL bytes, as a crash leaves it on some file systems.
pub const ZEROS: &str = "no bytes but NUL and blanks";

/// The repair of an entry that stands whole on the line of the header.
pub fn glued_to_header(number: usize) -> Repair {
    let detail = "an entry stands on the line of the header; it is read".to_owned();
    Repair { kind: "glued_entries", line: Some(number), detail }
}

/// The repair of a line that is not one entry.
fn damaged(pieces: &[Piece<'_>], number: usize) -> Repair {
    let entries = pieces.iter().filter(|piece| matches!(piece, Piece::Entry(..))).count();
    let fault = pieces.iter().find_map(|piece| match piece {
        Piece::Entry(..) => None,
        Piece::Broken(_, fault) => Some((fault.what.as_str(), fault.ids.as_ref())),
    });
    let (what, ids) = match fault {
        Some(fault) => fault,
        None if pieces.is_empty() => (ZEROS, None),
        None => return glued(entries, number),
    };
    let place = match ids {
        Some(ids) => format!("its id {} can be read, and a placeholder stands in its place", ids.id),
        None => "its id cannot be read, and the entry that follows it goes on behind the entry before it".to_owned(),
    };
    let rest = match entries {
        0 => "the line is left as it is and everything else is loaded".to_owned(),
        1 => "the whole entry on the same line is read".to_owned(),
        more => format!("the {more} whole entries on the same line are read"),
    };
    Repair { kind: "corrupt_line", line: Some(number), detail: format!("{what}; {place}; {rest}") }
}

/// The repair of a line that holds several entries.
pub fn glued(entries: usize, number: usize) -> Repair {
    let detail = format!("{entries} entries stand on this line; each is read");
    Repair { kind: "glued_entries", line: Some(number), detail }
}

/// The repair of an entry that is not taken literally.
pub fn odd(oddity: &Oddity, id: &str, line: Option<usize>) -> Repair {
    let (kind, detail) = match oddity {
        Oddity::MissingParent => (
            "missing_parent",
            format!(
                "the parent of entry {id} is not before it; it follows the entry before it, and the first entry is a root"
            ),
        ),
        Oddity::SameId => ("same_id", format!("two entries have the id {id}; it means the later one")),
    };
    Repair { kind, line, detail }
}

/// The repair of an entry whose fields are not read.
fn too_large(kind: &str, id: &str, line: Option<usize>) -> Repair {
    let most = values::MOST;
    let detail = format!("the {kind} {id} has more than {most} values and keys; it is kept, and is not in the context");
    Repair { kind: "unreadable_entry", line, detail }
}

/// An entry that is kept and adds nothing, though its type says it should.
pub fn unreadable(entry: &Entry) -> Option<Repair> {
    if entry.has_invalid_usage() {
        let detail =
            format!("a count of tokens in the usage of entry {} is no number; the usage is not used", entry.id);
        return Some(Repair { kind: "invalid_usage", line: None, detail });
    }
    if entry.is_too_large() {
        return Some(too_large(&entry.kind, entry.id.as_str(), None));
    }
    let detail = format!(
        "the {} {} is not in the form of its type; it is kept, and is not in the context",
        entry.kind, entry.id
    );
    entry.unreadable().then_some(Repair { kind: "unreadable_entry", line: None, detail })
}
