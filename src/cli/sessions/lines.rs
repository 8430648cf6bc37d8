//! The list as lines of a terminal, of any width.

use super::family::{Member, Parent};
use crate::{
    cli::{
        cells::{age, fitted, short, told_apart, width},
        columns::{self, Column as _, LEAST_TITLE, LEAST_WITH_FOLDER, Layout, MOST_TITLE, aligned},
        paint::Paint,
        print::plain,
        watch::row::{Fullness, Row},
    },
    protocol::types::UsageSource,
    text::head,
};
use jiff::Timestamp;

/// The most levels of parents that are drawn.
const MOST_LEVELS: usize = 4;

/// A column of the list. Title and folder take the rest of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Id,
    Age,
    Size,
    Full,
    From,
}

impl Column {
    /// All columns, in their order.
    const ALL: [Self; 5] = [Self::Id, Self::Age, Self::Size, Self::Full, Self::From];

    /// The columns that make room, the first one first.
    const MAKE_ROOM: [Self; 5] = [Self::Size, Self::From, Self::Age, Self::Full, Self::Id];

    /// The columns of a line of this width. A column is as wide as its widest cell; one without a text is not shown.
    fn fitting(cells: &[[String; 5]], columns: usize) -> Layout<Self> {
        let widest = |at: usize| cells.iter().map(|cells| width(&cells[at])).max().unwrap_or(0);
        let all = Self::ALL.into_iter().enumerate().filter(|(at, _)| widest(*at) > 0);
        let all = all.map(|(at, column)| (column, widest(at).max(column.heading().len())));
        let making_room = Self::MAKE_ROOM.map(|column| (column, LEAST_TITLE));
        Layout::fitting(all.collect(), &making_room, LEAST_WITH_FOLDER, columns)
    }
}

impl columns::Column for Column {
    fn heading(self) -> &'static str {
        match self {
            Self::Id => "id",
            Self::Age => "age",
            Self::Size => "size",
            Self::Full => "full",
            Self::From => "from",
        }
    }

    fn is_number(self) -> bool {
        matches!(self, Self::Age | Self::Size | Self::Full)
    }
}

/// The list: all sessions, and those of them that are shown.
pub(super) struct List<'a> {
    /// All sessions that were asked for, the newest one first.
    pub rows: &'a [Row],
    /// By the number of a session.
    pub parents: &'a [Option<Parent>],
    /// The sessions that are shown, in their order.
    pub members: &'a [Member],
    /// The beginning of the id of each session that names it and no other one.
    pub ids: &'a [String],
}

/// The beginnings of the ids of sessions that name them and no other ones.
pub(super) fn short_ids(ids: &[&str]) -> Vec<String> {
    told_apart(ids).into_iter().zip(ids).map(|(length, id)| plain(head(id, length))).collect()
}

/// Draws the list.
pub(super) fn lines(list: &List<'_>, now: Timestamp, columns: usize, paint: &Paint) -> Vec<String> {
    let cells: Vec<[String; 5]> = list.members.iter().map(|member| list.cells(member, now)).collect();
    let layout = Column::fitting(&cells, columns);
    let mut lines = vec![paint.dim(&layout.headings())];
    lines.extend(list.members.iter().zip(&cells).map(|(member, cells)| list.line(member, cells, &layout, paint)));
    lines
}

impl List<'_> {
    /// The texts of the columns.
    fn cells(&self, member: &Member, now: Timestamp) -> [String; 5] {
        let row = &self.rows[member.number];
        let from = match &self.parents[member.number] {
            Some(Parent::Listed(parent)) => self.ids[*parent].clone(),
            Some(Parent::Elsewhere(id)) => plain(head(id, 8)),
            None => String::new(),
        };
        [
            self.ids[member.number].clone(),
            row.updated_at.parse().map(|at| age(at, now)).unwrap_or_default(),
            format!("{}B", short(row.size_bytes)),
            row.usage.as_ref().and_then(full).unwrap_or_default(),
            from,
        ]
    }

    fn line(&self, member: &Member, cells: &[String; 5], layout: &Layout<Column>, paint: &Paint) -> String {
        let row = &self.rows[member.number];
        let cell = |column, width| {
            let text = aligned(&cells[column as usize], column, width);
            match column {
                Column::Full => coloured(row.usage.as_ref(), &text, paint),
                Column::From | Column::Size => paint.dim(&text),
                Column::Id | Column::Age => text,
            }
        };
        layout.line(cell, named(row, member, layout, paint))
    }
}

/// The part of the window that a context takes; `~` before an estimate, `≥` where there may be more.
fn full(fullness: &Fullness) -> Option<String> {
    let percent = fullness.usage.percent?;
    let mark = match fullness {
        Fullness { at_least: true, .. } => "≥",
        Fullness { usage, .. } if usage.source == UsageSource::Estimate => "~",
        _ => "",
    };
    Some(if percent < 999.5 { format!("{mark}{percent:.0}%") } else { ">999%".to_owned() })
}

fn coloured(fullness: Option<&Fullness>, text: &str, paint: &Paint) -> String {
    let Some(usage) = fullness.map(|it| &it.usage) else { return text.to_owned() };
    match (usage.context_window, usage.threshold_tokens) {
        (Some(window), _) if usage.context_tokens >= window => paint.red(text),
        (_, Some(threshold)) if usage.context_tokens > threshold => paint.yellow(text),
        _ => text.to_owned(),
    }
}

/// Title and folder, below the title of the parent.
fn named(row: &Row, member: &Member, layout: &Layout<Column>, paint: &Paint) -> String {
    let levels = levels(&member.bars);
    let title = match &row.problem {
        Some(problem) => paint.red(&fitted(&plain(problem), layout.rest.saturating_sub(width(&levels)))),
        None => String::new(),
    };
    if !title.is_empty() {
        return format!("{}{title}", paint.dim(&levels));
    }
    let texts = [row.title.as_deref(), row.preview.as_deref(), Some(row.session_id.as_str())];
    let texts = texts.into_iter().flatten().map(|text| plain(head(text, MOST_TITLE))).find(|text| !text.is_empty());
    let levels = if width(&levels) + LEAST_TITLE / 2 > layout.rest { String::new() } else { levels };
    layout.named(&levels, &texts.unwrap_or_default(), &row.cwd, paint)
}

/// The lines to the left of a title. Of many levels the innermost ones are drawn.
fn levels(bars: &[bool]) -> String {
    let (mark, bars) = match bars.len() {
        levels if levels <= MOST_LEVELS => ("", bars),
        levels => ("… ", &bars[levels + 1 - MOST_LEVELS..]),
    };
    let Some((joins, above)) = bars.split_last() else { return String::new() };
    let above = above.iter().map(|goes_on| if *goes_on { "│ " } else { "  " });
    std::iter::once(mark).chain(above).chain([if *joins { "├ " } else { "╰ " }]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cli::{
            sessions::family::{families, parents},
            watch::row::tests::row,
        },
        protocol::types::{Breakdown, Usage},
    };

    fn full_of(tokens: u64, source: UsageSource) -> Option<Fullness> {
        let usage = Usage {
            context_tokens: tokens,
            context_window: Some(200_000),
            percent: Some(tokens as f64 / 2_000.0),
            threshold_tokens: Some(160_000),
            reserve_tokens: 16_384,
            source,
            auto_compaction: crate::compaction::resting::AutoCompaction::Set(true),
            window_source: "catalog".to_owned(),
            can_undo: false,
            breakdown: Breakdown { system: 0, tools: 0, summary: 0, messages: tokens },
            estimator: "chars".to_owned(),
            cold_resume: None,
        };
        Some(Fullness { usage, at_least: false })
    }

    fn drawn(rows: &[Row], columns: usize) -> Vec<String> {
        let parents = parents(rows);
        let members = families(&parents, rows.len());
        let all: Vec<&str> = rows.iter().map(|row| row.session_id.as_str()).collect();
        let list = List { rows, parents: &parents, members: &members, ids: &short_ids(&all) };
        lines(&list, "2026-01-01T00:01:00Z".parse().expect("a time"), columns, &Paint::off())
    }

    fn session(id: &str, title: &str, parent: Option<&str>) -> Row {
        Row { title: Some(title.to_owned()), parent_session: parent.map(str::to_owned), ..row(id, 10) }
    }

    #[test]
    fn a_chain_of_sessions_is_seen_in_eighty_columns() {
        let mut rows = vec![
            session("0192aaaa-4444", "Fix the retries, third part", Some("/x/2026_0192aaaa-3333.jsonl")),
            session("0192aaaa-3333", "Fix the retries, second part", Some("0192bbbb")),
            session("0192cccc", "Another way to fix them", Some("0192bbbb")),
            session("0192bbbb", "Fix the retries", None),
            session("0192dddd", "Write the docs", Some("/gone/0192eeee-1234.jsonl")),
        ];
        rows[0].usage = full_of(142_300, UsageSource::Provider);
        rows[3].usage = full_of(8_230, UsageSource::Estimate);
        rows[4].size_bytes = 12_345_678;
        let expected = [
            "id         age  size full from       session, folder",
            "0192bbbb   50s 1.0kB  ~4%            Fix the retries              …/user/project",
            "0192aaaa-3 50s 1.0kB      0192bbbb   ├ Fix the retries, second p… …/user/project",
            "0192aaaa-4 50s 1.0kB  71% 0192aaaa-3 │ ╰ Fix the retries, third…  …/user/project",
            "0192cccc   50s 1.0kB      0192bbbb   ╰ Another way to fix them    …/user/project",
            "0192dddd   50s  12MB      0192eeee   Write the docs               …/user/project",
        ];
        assert_eq!(drawn(&rows, 80), expected);
        let alone = drawn(&[session("a", "Alone", None)], 80);
        assert_eq!(alone[0], "id age  size session, folder", "columns without a text are not shown");
    }

    #[test]
    fn lines_fit_every_terminal_and_move_no_cursor() {
        let title = format!("漢字\u{1b}[2J \u{202e}{}", "a title that goes on ".repeat(9));
        let mut rows: Vec<Row> = (0..9)
            .map(|number| {
                let mut row = session(&format!("\u{1b}[3{number}m"), &title, None);
                row.cwd = "/漢字/folder\u{7}/far/below".repeat(20);
                row.usage = full_of(123_456_789_000, UsageSource::Estimate);
                row.parent_session = (number > 0).then(|| format!("\u{1b}[3{}m", number - 1));
                row
            })
            .collect();
        rows[4].problem = Some("it is \u{1b}[2J wrong ".repeat(30));
        for columns in 1..160 {
            for line in drawn(&rows, columns) {
                assert!(width(&line) <= columns, "{columns}: {line}");
                assert!(!line.chars().any(|char| char.is_control() || char == '\u{202e}'), "{line:?}");
            }
        }
    }
}
