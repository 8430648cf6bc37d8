//! The picture as lines of a terminal, of any width and height.

use super::row::{Cost, Fullness, Picture, Row, at_work};
use crate::{
    cli::{
        cells::{age, clipped, short},
        columns::{self, Layout, aligned},
        paint::Paint,
        print::plain,
    },
    log::Unfinished,
    text::clip_middle,
};
use jiff::Timestamp;

/// Columns and rows of a screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    /// Characters in a line.
    pub columns: usize,
    /// Lines; `None` where there is no end.
    pub rows: Option<usize>,
}

/// Lines that are no session: the head, the headings of the columns, and the last line.
const OTHER_LINES: usize = 3;

/// Cells of a bar.
const CELLS: u64 = 10;

/// The least characters for title and folder of a session. Other columns make room for them.
const LEAST_TITLE: usize = 18;

/// The least characters for title and folder with which the folder is shown.
const LEAST_WITH_FOLDER: usize = 24;

/// A column of the table. Title and folder take the rest of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Bar,
    Percent,
    Tokens,
    Window,
    Runs,
    Spent,
    Changed,
}

impl Column {
    /// All columns, in their order.
    const ALL: [Self; 7] =
        [Self::Bar, Self::Percent, Self::Tokens, Self::Window, Self::Runs, Self::Spent, Self::Changed];

    /// The columns that make room, the first one first, each for this number of characters of the title.
    const MAKE_ROOM: [(Self, usize); 7] = [
        (Self::Window, 36),
        (Self::Spent, LEAST_TITLE),
        (Self::Bar, LEAST_TITLE),
        (Self::Tokens, LEAST_TITLE),
        (Self::Changed, LEAST_TITLE),
        (Self::Runs, LEAST_TITLE),
        (Self::Percent, LEAST_TITLE),
    ];

    fn width(self) -> usize {
        match self {
            Self::Bar => CELLS as usize,
            Self::Percent | Self::Changed => 4,
            Self::Tokens | Self::Spent => 6,
            Self::Window => 7,
            Self::Runs => 16,
        }
    }

    /// The columns of a line of this width.
    fn fitting(width: usize) -> Layout<Self> {
        let columns = Self::ALL.into_iter().map(|column| (column, column.width())).collect();
        Layout::fitting(columns, &Self::MAKE_ROOM, LEAST_WITH_FOLDER, width)
    }
}

impl columns::Column for Column {
    fn heading(self) -> &'static str {
        match self {
            Self::Bar => "context",
            Self::Percent => "full",
            Self::Tokens => "tokens",
            Self::Window => "window",
            Self::Runs => "runs",
            Self::Spent => "spent",
            Self::Changed => "age",
        }
    }

    fn is_number(self) -> bool {
        !matches!(self, Self::Bar | Self::Runs)
    }
}

/// The number of sessions that a screen shows.
pub(super) fn shown(rows: usize, size: Size) -> usize {
    size.rows.map_or(rows, |lines| lines.saturating_sub(OTHER_LINES).min(rows))
}

/// Draws the picture. `hint` stands at its end.
pub(super) fn lines(picture: &Picture, now: Timestamp, size: Size, hint: &str, paint: &Paint) -> Vec<String> {
    let mut lines = vec![head(picture, size.columns, paint)];
    let shown = shown(picture.rows.len(), size);
    if picture.rows.is_empty() {
        lines.extend(nothing(picture).iter().map(|line| clipped(line, size.columns)));
    } else {
        let layout = Column::fitting(size.columns);
        lines.push(paint.dim(&layout.headings()));
        lines.extend(picture.rows[..shown].iter().map(|row| line(row, now, &layout, paint)));
    }
    let end = end(picture, &picture.rows[shown..], hint);
    if !end.is_empty() {
        lines.push(paint.dim(&clipped(&end, size.columns)));
    }
    lines.truncate(size.rows.unwrap_or(usize::MAX));
    lines
}

fn head(picture: &Picture, width: usize, paint: &Paint) -> String {
    let count = match (picture.rows.len(), picture.at_work()) {
        (1, 0) => "1 session".to_owned(),
        (1, _) => "1 session, at work".to_owned(),
        (rows, 0) => format!("{rows} sessions"),
        (rows, at_work) => format!("{rows} sessions, {at_work} at work"),
    };
    let folder = plain(&picture.folder.display().to_string());
    let room = width.saturating_sub(count.chars().count() + 2);
    match room {
        0..12 => clipped(&count, width),
        _ => format!("{}  {count}", paint.bold(&clip_middle(&folder, room - 1, "…"))),
    }
}

/// The text in the place of the sessions.
fn nothing(picture: &Picture) -> Vec<String> {
    match &picture.problem {
        Some(problem) => vec![plain(problem)],
        None => vec![
            "No sessions here yet. A daemon writes one at session/new.".to_owned(),
            "Another folder: --data DIR or ABRIDGED_DATA_DIR.".to_owned(),
        ],
    }
}

fn line(row: &Row, now: Timestamp, layout: &Layout<Column>, paint: &Paint) -> String {
    let cell = |column, width| {
        let text = |text: String| aligned(&text, column, width);
        let usage = row.usage.as_ref();
        match column {
            Column::Bar => bar(usage, paint),
            Column::Percent => text(usage.and_then(percent).unwrap_or_default()),
            Column::Tokens => text(usage.map(tokens).unwrap_or_default()),
            Column::Window => text(
                usage.and_then(|it| it.usage.context_window).map(|it| format!("/ {}", short(it))).unwrap_or_default(),
            ),
            Column::Runs => runs(row, now, paint),
            Column::Spent => text(spent(&row.maintenance)),
            Column::Changed => text(row.updated_at.parse().map(|at| age(at, now)).unwrap_or_default()),
        }
    };
    layout.line(cell, layout.named("", &title(row), &row.cwd, paint))
}

/// The sessions below the screen, the files that are left out, and the hint.
fn end(picture: &Picture, hidden: &[Row], hint: &str) -> String {
    let more = match (hidden.len(), at_work(hidden)) {
        (0, _) => String::new(),
        (more, 0) => format!("and {more} more"),
        (more, at_work) => format!("and {more} more, {at_work} of them at work"),
    };
    let left_out = match picture.left_out.as_slice() {
        [] => String::new(),
        [file] => format!("no session, or not readable: {}", plain(&file.display().to_string())),
        [file, ..] => format!(
            "{} are no sessions, or not readable: {} …",
            picture.left_out.len(),
            plain(&file.display().to_string())
        ),
    };
    let parts = [hint, &more, &left_out].into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(" · ")
}

fn bar(usage: Option<&Fullness>, paint: &Paint) -> String {
    let Some(usage) = usage.map(|it| &it.usage) else { return " ".repeat(CELLS as usize) };
    let window = usage.context_window.unwrap_or(0).max(1);
    let filled = (usage.context_tokens.saturating_mul(CELLS) / window).min(CELLS) as usize;
    let cells = format!("{}{}", "█".repeat(filled), "░".repeat(CELLS as usize - filled));
    match () {
        () if usage.context_tokens >= window => paint.red(&cells),
        () if usage.threshold_tokens.is_some_and(|threshold| usage.context_tokens > threshold) => paint.yellow(&cells),
        () => paint.green(&cells),
    }
}

fn percent(fullness: &Fullness) -> Option<String> {
    let percent = fullness.usage.percent?;
    Some(if percent < 999.5 { format!("{percent:.0}%") } else { ">999".to_owned() })
}

/// The size of a context; `~` before an estimate, `≥` where there may be more.
fn tokens(fullness: &Fullness) -> String {
    let mark = match fullness {
        Fullness { at_least: true, .. } => "≥",
        Fullness { usage, .. } if usage.source == crate::protocol::types::UsageSource::Estimate => "~",
        _ => "",
    };
    format!("{mark}{}", short(fullness.usage.context_tokens))
}

/// The price of maintenance where it is known and not below a cent, else its tokens.
fn spent(cost: &Cost) -> String {
    let text = match (cost.requests, cost.dollars) {
        (0, _) => return String::new(),
        (_, Some(dollars @ 0.01..10.0)) => format!("${dollars:.2}"),
        (_, Some(dollars @ 10.0..)) => format!("${}", short(dollars as u64)),
        _ => short(cost.tokens),
    };
    format!("{}{text}", if cost.at_least { "≥" } else { "" })
}

/// The operation that runs, and for how long.
fn runs(row: &Row, now: Timestamp, paint: &Paint) -> String {
    let runs = |text: &str| aligned(text, Column::Runs, Column::Runs.width());
    match (row.running.first(), row.left_behind.first(), row.problem.as_ref(), row.open_in) {
        (Some(operation), ..) => {
            let time = operation.started_at.parse().map(|at| age(at, now)).unwrap_or_default();
            let label = clipped(&label(operation), Column::Runs.width() - 5);
            paint.yellow(&runs(&format!("{label} {time}")))
        }
        (None, Some(_), ..) => paint.red(&runs("was interrupted")),
        (None, None, Some(_), _) => paint.red(&runs("unreadable")),
        (None, None, None, Some(_)) => paint.dim(&runs("open")),
        (None, None, None, None) => runs(""),
    }
}

/// The kind of an operation. A compaction of idle maintenance is named by its reason.
fn label(operation: &Unfinished) -> String {
    match (operation.kind.as_str(), operation.reason.as_str()) {
        ("compaction", "idle") => "idle".to_owned(),
        (kind, _) => plain(kind),
    }
}

/// The title of a session, or the reason why its file cannot be measured.
fn title(row: &Row) -> String {
    let texts = [row.title.as_deref(), row.preview.as_deref(), Some(row.session_id.as_str())];
    match &row.problem {
        Some(problem) => plain(problem),
        None => texts.into_iter().flatten().map(plain).find(|text| !text.is_empty()).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cli::watch::row::tests::{operation, row},
        protocol::types::{Breakdown, Usage, UsageSource},
    };

    fn full(tokens: u64, source: UsageSource) -> Fullness {
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
        Fullness { usage, at_least: false }
    }

    fn picture(rows: Vec<Row>) -> Picture {
        Picture {
            folder: "/home/user/.local/share/abridged/sessions".into(),
            rows,
            left_out: Vec::new(),
            problem: None,
        }
    }

    fn now() -> Timestamp {
        "2026-01-01T00:01:00Z".parse().expect("a time")
    }

    fn drawn(picture: &Picture, columns: usize, rows: usize) -> Vec<String> {
        lines(picture, now(), Size { columns, rows: Some(rows) }, "q quits", &Paint::off())
    }

    fn busy() -> Row {
        let mut busy = row("Fix the retries", 10);
        busy.usage = Some(full(142_300, UsageSource::Provider));
        busy.running = vec![operation("compaction", "threshold", "2026-01-01T00:00:18Z")];
        busy.open_in = Some(7);
        busy.maintenance = Cost { requests: 2, tokens: 31_234, ..Cost::default() };
        busy
    }

    #[test]
    fn a_session_is_one_line_of_eighty_columns() {
        let mut quiet = row("Write the docs", 5);
        quiet.usage = Some(full(8_230, UsageSource::Estimate));
        let lines = drawn(&picture(vec![busy(), quiet]), 80, 24);
        let expected = [
            "/home/user/.local/share/abridged/sessions  2 sessions, 1 at work",
            "context    full tokens runs              spent  age session, folder",
            "███████░░░  71%   142k compaction 42s      31k  50s Fix the retries    …/project",
            "░░░░░░░░░░   4%  ~8.2k                          55s Write the docs     …/project",
            "q quits",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn lines_fit_every_screen() {
        let mut long = busy();
        long.title = Some("a title that goes on and on ".repeat(20));
        long.cwd = "/a/folder/far/below".repeat(20);
        long.usage = Some(full(123_456_789_000, UsageSource::Estimate));
        let mut wrong = row("wrong", 3);
        wrong.problem = Some("it is wrong ".repeat(30));
        let mut picture = picture(vec![long, wrong, row("a", 1), row("b", 1)]);
        picture.left_out = vec!["/data/sessions/x.jsonl".into(); 2];
        let empty = Picture { rows: Vec::new(), folder: picture.folder.clone(), left_out: Vec::new(), problem: None };
        for columns in 1..200 {
            for rows in [1, 2, 3, 4, 5, 24] {
                for picture in [&picture, &empty] {
                    let lines = drawn(picture, columns, rows);
                    assert!(lines.len() <= rows, "{columns} x {rows}: {lines:#?}");
                    let widest = lines.iter().map(|line| line.chars().count()).max();
                    assert!(widest.is_some_and(|widest| widest <= columns), "{columns} x {rows}: {lines:#?}");
                }
            }
        }
    }

    #[test]
    fn sessions_below_the_screen_are_counted() {
        let mut rows: Vec<Row> = (0..30).map(|number| row(&format!("s{number}"), number)).collect();
        rows[28].running = busy().running;
        let lines = drawn(&picture(rows.clone()), 80, 24);
        assert_eq!((lines.len(), lines[23].as_str()), (24, "q quits · and 9 more, 1 of them at work"));
        rows.truncate(21);
        assert_eq!(drawn(&picture(rows), 80, 24)[23], "q quits");
    }

    #[test]
    fn the_title_keeps_room_and_other_columns_go() {
        let columns = |width| Column::fitting(width).shown().collect::<Vec<_>>();
        assert_eq!(columns(80).len(), 6);
        assert!(!columns(80).contains(&Column::Window) && columns(96).contains(&Column::Window));
        assert_eq!(columns(40), [Column::Percent, Column::Runs]);
        assert_eq!(columns(10), []);
        assert_eq!(Column::fitting(10).rest, 10);
    }

    #[test]
    fn controls_of_a_title_do_not_reach_the_terminal() {
        let mut row = row("x", 1);
        row.title = Some("a\u{1b}[2Jb\u{9b}2Jc\nd\u{202e}e\u{7}".to_owned());
        row.cwd = "/p\u{1b}]0;x\u{7}".to_owned();
        row.running = vec![operation("com\u{1b}[31mpaction", "", "")];
        let mut picture = picture(vec![row]);
        picture.folder = "/data\u{1b}[2J".into();
        picture.left_out = vec!["/data/x\u{1b}[2J.jsonl".into()];
        let all = drawn(&picture, 120, 24).join("");
        assert!(!all.chars().any(|char| char.is_control() || char == '\u{202e}'), "{all:?}");
        assert!(all.contains("a[2Jb2Jc de"), "{all:?}");
    }

    #[test]
    fn a_state_is_named() {
        let state = |change: fn(&mut Row)| {
            let mut row = row("x", 1);
            change(&mut row);
            runs(&row, now(), &Paint::off()).trim_end().to_owned()
        };
        assert_eq!(state(|_| {}), "");
        assert_eq!(state(|row| row.open_in = Some(7)), "open");
        assert_eq!(state(|row| row.problem = Some("x".to_owned())), "unreadable");
        let interrupted = |row: &mut Row| row.left_behind = busy().running;
        assert_eq!(state(interrupted), "was interrupted");
        let running = |row: &mut Row| {
            row.running = vec![
                operation("recovery", "overflow", "2026-01-01T00:00:00Z"),
                operation("compaction", "overflow", "2026-01-01T00:00:30Z"),
            ];
        };
        assert_eq!(state(running), "recovery 60s");
        let idle = |row: &mut Row| row.running = vec![operation("compaction", "idle", "2025-12-31T23:01:00Z")];
        assert_eq!(state(idle), "idle 60m");
        let unknown = |row: &mut Row| row.running = vec![operation("a kind of tomorrow", "", "no time")];
        assert_eq!(state(unknown), "a kind of…");
    }

    #[test]
    fn a_cost_is_a_price_where_one_is_known() {
        for (requests, tokens, dollars, expected) in [
            (0, 0, Some(0.0), ""),
            (1, 31_234, None, "31k"),
            (1, 31_234, Some(0.004), "31k"),
            (1, 31_234, Some(0.125), "$0.12"),
            (1, 31_234, Some(12.5), "$12"),
            (1, 31_234, Some(12_500.0), "$12k"),
        ] {
            let cost = Cost { requests, tokens, dollars, ..Cost::default() };
            assert_eq!(spent(&cost), expected, "{dollars:?}");
            let partial = spent(&Cost { at_least: true, ..cost });
            assert_eq!(partial.strip_prefix('≥').unwrap_or_default(), expected, "{dollars:?}");
        }
    }

    #[test]
    fn a_size_says_how_well_it_is_known() {
        let marked = |source, at_least| tokens(&Fullness { at_least, ..full(142_300, source) });
        assert_eq!(marked(UsageSource::Provider, false), "142k");
        assert_eq!(marked(UsageSource::Estimate, false), "~142k");
        assert_eq!(marked(UsageSource::Estimate, true), "≥142k");
    }
}
