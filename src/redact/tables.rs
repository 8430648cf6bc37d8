//! Columns of passwords and tokens: CSV, Markdown, and what clients of databases print.

use super::named::{is_in_a_table, is_name_of_a_secret};
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
        let cells: Vec<&str> = cells(line, between, framed).into_iter().map(|cell| &line[cell]).collect();
        let name = |cell: &str| {
            let padded = cell.len() != cell.trim().len();
            let words = bare(cell).contains(' ') || line.ends_with([',', ';']);
            let cell = bare(cell);
            let of = |char: char| char.is_alphanumeric() || matches!(char, '_' | ' ' | '-' | '.' | '/' | '\'');
            // A list in prose has a blank behind each comma, and more than one word somewhere.
            cell.len() <= LONGEST_NAME
                && cell.chars().all(of)
                && !(padded && words && matches!(between, Text("," | ";")))
        };
        // A head has names only: a row has numbers, too.
        let number = |cell: &&str| !bare(cell).is_empty() && bare(cell).bytes().all(|byte| byte.is_ascii_digit());
        if cells.len() < 2
            || cells.iter().any(number)
            || !cells.iter().all(|cell| name(cell))
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
    let mut cells = Vec::new();
    match between {
        Text(text) => {
            let may_quote = matches!(text, "," | ";" | "\t");
            let (mut quoted, mut from) = (false, 0);
            for (at, char) in line.char_indices() {
                quoted ^= char == '"' && may_quote;
                if !quoted && at >= from && line[at..].starts_with(text) {
                    cells.push(from..at);
                    from = at + text.len();
                }
            }
            cells.push(from..line.len());
        }
        Blanks => {
            let (mut from, mut blanks) = (None, 0);
            for (at, char) in line.char_indices() {
                if char == ' ' {
                    blanks += 1;
                    continue;
                }
                if blanks >= 2
                    && let Some(from) = from.take()
                {
                    cells.push(from..at - blanks);
                }
                blanks = 0;
                from.get_or_insert(at);
            }
            // The last one may have nothing in it but blanks of another kind.
            cells.extend(from.map(|from| from..line.trim_end().len().max(from)));
        }
    }
    if framed && cells.len() > 2 {
        cells.remove(0);
        if cells.last().is_some_and(|cell| line[cell.clone()].trim().is_empty()) {
            cells.pop();
        }
    }
    cells
}
