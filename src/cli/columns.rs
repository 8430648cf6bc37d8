//! Tables of sessions on a terminal: the columns that fit a line, their headings, and cells as wide as their column. Title and
//! folder of a session take the rest of a line.

use super::{
    cells::{fitted, folder, width},
    paint::Paint,
    print::plain,
};

/// The least columns for the title of a session in a list. Other columns make room for them.
pub(super) const LEAST_TITLE: usize = 16;

/// The least columns for title and folder with which a list shows the folder.
pub(super) const LEAST_WITH_FOLDER: usize = 30;

/// The most characters of a title that a list looks at.
pub(super) const MOST_TITLE: usize = 400;

/// A column of a table.
pub(super) trait Column: Copy + PartialEq {
    /// The heading.
    fn heading(self) -> &'static str;
    /// Whether its texts end at the right edge.
    fn is_number(self) -> bool;
}

/// The columns of a line with their widths, and the width that is left for title and folder.
#[derive(Debug)]
pub(super) struct Layout<C> {
    columns: Vec<(C, usize)>,
    /// The least rest with which the folder is shown.
    least_with_folder: usize,
    /// The width of title and folder.
    pub rest: usize,
}

impl<C: Column> Layout<C> {
    /// The columns that fit a line of this width. `making_room`: the columns that leave the line, the first one first, each where
    /// less than this number is left for the title.
    pub fn fitting(
        mut columns: Vec<(C, usize)>,
        making_room: &[(C, usize)],
        least_with_folder: usize,
        line: usize,
    ) -> Self {
        let taken = |columns: &[(C, usize)]| columns.iter().map(|(_, width)| width + 1).sum::<usize>();
        for (next, room) in making_room {
            if taken(&columns) + room > line {
                columns.retain(|(column, _)| column != next);
            }
        }
        let rest = line.saturating_sub(taken(&columns));
        Self { columns, least_with_folder, rest }
    }

    /// The columns of a line.
    #[cfg(test)]
    pub fn shown(&self) -> impl Iterator<Item = C> {
        self.columns.iter().map(|(column, _)| *column)
    }

    /// The headings.
    pub fn headings(&self) -> String {
        let title = if self.shows_folder() { "session, folder" } else { "session" };
        self.line(|column, width| aligned(column.heading(), column, width), fitted(title, self.rest))
    }

    /// A line of these cells, which `cell` makes as wide as they are, and of title and folder.
    pub fn line(&self, cell: impl Fn(C, usize) -> String, named: String) -> String {
        let cells = self.columns.iter().map(|(column, width)| cell(*column, *width));
        cells.chain([named]).collect::<Vec<_>>().join(" ").trim_end().to_owned()
    }

    /// Title and folder of a session after `levels`, the lines from the title of its parent.
    pub fn named(&self, levels: &str, title: &str, cwd: &str, paint: &Paint) -> String {
        let room = self.rest.saturating_sub(width(levels));
        if !self.shows_folder() {
            return format!("{}{}", paint.dim(levels), fitted(title, room));
        }
        let for_folder = (self.rest / 3).min(40);
        let folder = fitted(&folder(&plain(cwd), for_folder), for_folder);
        let for_title = room.saturating_sub(for_folder);
        let title = fitted(title, for_title.saturating_sub(1));
        let gap = " ".repeat(for_title.saturating_sub(width(&title)));
        format!("{}{title}{gap}{}", paint.dim(levels), paint.dim(&folder))
    }

    fn shows_folder(&self) -> bool {
        self.rest >= self.least_with_folder
    }
}

/// A text of exactly the width of a column.
pub(super) fn aligned(text: &str, column: impl Column, columns: usize) -> String {
    let text = fitted(text, columns);
    let gap = " ".repeat(columns.saturating_sub(width(&text)));
    if column.is_number() { format!("{gap}{text}") } else { format!("{text}{gap}") }
}
