//! Columns of passwords and tokens: CSV, Markdown, and what clients of databases print.

use super::named::{is_in_a_table, is_name_of_a_secret};
use memchr::{memchr2, memmem};
use std::ops::Range;

/// The table that is open at the end of the lines seen so far.
#[derive(Debug, Default)]
pub(super) struct Tables {
    open: Option<Table>,
}

#[derive(Debug)]
struct Table {
    between: Between,
    /// Whether what stands between cells stands at both ends of a line, too.
    framed: bool,
    /// How many columns there are.
    width: usize,
    /// Those of secrets, and their names.
    columns: Vec<(usize, String)>,
    /// Whether the line below the head was seen.
    ruled: bool,
}

/// Separator of two cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Between {
    Text(&'static str),
    /// Two blanks or more.
    Blanks,
}

use Between::{Blanks, Text};

/// A tab may be escaped, in a string of JSON.
const BETWEEN: [Between; 7] = [Text("│"), Text("|"), Text("\t"), Text("\\t"), Text(";"), Text(","), Blanks];

impl Tables {
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Takes one more line; `named` says whether a name of a secret stands in it.
    pub(super) fn take(&mut self, line: &str, start: usize, named: bool, found: &mut Vec<Range<usize>>) {
        if let Some(table) = &mut self.open {
            if table.take(line, start, found) {
                return;
            }
            self.open = None;
        }
        if named {
            self.open = BETWEEN.into_iter().find_map(|between| Table::headed(line, between));
        }
    }
}

impl Table {
    /// The table that a line is the head of, if a column of it has secrets.
    fn headed(line: &str, between: Between) -> Option<Self> {
        const LONGEST_NAME: usize = 40;
        let framed = matches!(between, Text(text) if line.trim_start().starts_with(text));
        let name = |cell: &str| {
            let padded = cell.len() != cell.trim().len();
            let words = bare(cell).contains(' ') || line.ends_with([',', ';']);
            let cell = bare(cell);
            let of = |char: char| char.is_alphanumeric() || matches!(char, '_' | ' ' | '-' | '.' | '/' | '\'');
            // A list in prose has a blank after each comma, and more than one word somewhere.
            cell.len() <= LONGEST_NAME
                && cell.chars().all(of)
                && !(padded && words && matches!(between, Text("," | ";")))
        };
        // A head has names only: a row has numbers, too.
        let number = |cell: &str| !bare(cell).is_empty() && bare(cell).bytes().all(|byte| byte.is_ascii_digit());
        let of_a_head = |cell: &str| name(cell) && !number(cell);
        // Most lines are none, and most of these say so with their first cell.
        if !framed && !split(line, between).all(|cell| of_a_head(&line[cell])) {
            return None;
        }
        let cells: Vec<&str> = cells(line, between, framed).into_iter().map(|cell| &line[cell]).collect();
        if cells.len() < 2
            || !cells.iter().all(|cell| of_a_head(cell))
            || cells.iter().all(|cell| bare(cell).is_empty())
        {
            return None;
        }
        let named = cells.iter().map(|cell| bare(cell)).enumerate();
        let secret = |(_, name): &(usize, &str)| is_name_of_a_secret(&name.replace(' ', "_"));
        let columns: Vec<_> = named.filter(secret).map(|(at, name)| (at, name.replace(' ', "_"))).collect();
        (!columns.is_empty()).then_some(Self { between, framed, width: cells.len(), columns, ruled: false })
    }

    /// Takes a line of it; whether the line is one of it.
    fn take(&mut self, line: &str, start: usize, found: &mut Vec<Range<usize>>) -> bool {
        let rule = |char: char| matches!(char, '-' | '=' | '+' | '|' | ':' | ' ' | '\t') || ('─'..='╿').contains(&char);
        if line.chars().filter(|char| !char.is_whitespace()).count() >= 3 && line.chars().all(rule) {
            self.ruled = true;
            return true;
        }
        let needs_a_rule = matches!(self.between, Blanks | Text("|" | "│"));
        let cells = cells(line, self.between, self.framed);
        if cells.len() != self.width || needs_a_rule && !self.ruled {
            return false;
        }
        for (at, name) in &self.columns {
            let cell = &line[cells[*at].clone()];
            let value = bare(cell);
            if is_in_a_table(name, value) {
                let from = start + (value.as_ptr() as usize - line.as_ptr() as usize);
                found.push(from..from + value.len());
            }
        }
        true
    }
}

/// A cell without what stands around its text.
fn bare(cell: &str) -> &str {
    cell.trim_matches(|char: char| char.is_whitespace() || matches!(char, '`' | '*' | '"' | '\'' | '\\'))
}

/// Where the cells of a line stand.
fn cells(line: &str, between: Between, framed: bool) -> Vec<Range<usize>> {
    let mut cells: Vec<_> = split(line, between).collect();
    if framed && cells.len() > 2 {
        cells.remove(0);
        if cells.last().is_some_and(|cell| line[cell.clone()].trim().is_empty()) {
            cells.pop();
        }
    }
    cells
}

/// The parts of a line, one after the other. A frame has an empty one at each end.
fn split(line: &str, between: Between) -> impl Iterator<Item = Range<usize>> {
    let mut from = Some(0);
    std::iter::from_fn(move || {
        let start = from.take()?;
        let (cell, next) = match between {
            Text(text) => up_to(line, start, text),
            Blanks => up_to_blanks(line, start)?,
        };
        from = next;
        Some(cell)
    })
}

/// The cell from `start` up to this text outside of quotes, and where the next one begins.
fn up_to(line: &str, start: usize, text: &str) -> (Range<usize>, Option<usize>) {
    let bytes = line.as_bytes();
    let first = text.as_bytes()[0];
    let quote = if matches!(text, "," | ";" | "\t") { b'"' } else { first };
    let (mut quoted, mut at) = (false, start);
    while let Some(next) = memchr2(first, quote, &bytes[at..]).map(|next| at + next) {
        if bytes[next] == b'"' {
            quoted = !quoted;
        } else if !quoted && bytes[next..].starts_with(text.as_bytes()) {
            return (start..next, Some(next + text.len()));
        }
        at = next + 1;
    }
    (start..line.len(), None)
}

/// The same up to two blanks or more. None where nothing but blanks is left.
fn up_to_blanks(line: &str, start: usize) -> Option<(Range<usize>, Option<usize>)> {
    let bytes = line.as_bytes();
    let start = start + bytes[start..].iter().position(|byte| *byte != b' ')?;
    match memmem::find(&bytes[start..], b"  ").map(|end| start + end) {
        Some(end) if bytes[end..].iter().any(|byte| *byte != b' ') => Some((start..end, Some(end))),
        _ => Some((start..line.trim_end().len().max(start), None)),
    }
}
