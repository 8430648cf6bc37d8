//! Texts, numbers and times in the cells of a terminal.

pub(super) mod bar;

use crate::text::{one_line, tail};
use jiff::Timestamp;

/// The least characters of an id that are shown. More are where these are the same for two ids.
const LEAST_ID: usize = 8;

/// The most characters of an id that are shown.
const MOST_ID: usize = 24;

/// A text on one line of at most `width` characters.
pub(super) fn clipped(text: &str, width: usize) -> String {
    if width == 0 { String::new() } else { one_line(text, width) }
}

/// A text on one line of at most `columns` columns of a terminal. Wide characters take two.
pub(super) fn fitted(text: &str, columns: usize) -> String {
    // Characters that join another one take no column.
    let line = one_line(text, columns.saturating_mul(4).saturating_add(8));
    if width(&line) <= columns {
        return line;
    }
    let mut taken = 0;
    let fits = |char: &char| {
        taken += columns_of(*char);
        taken < columns
    };
    let kept: String = line.chars().take_while(fits).collect();
    if columns == 0 { String::new() } else { format!("{}…", kept.trim_end_matches(['…', ' '])) }
}

/// The columns that a text takes on a terminal.
pub(super) fn width(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// The columns of a character: two for those of East Asian scripts and for pictographs, none for marks that join another one.
fn columns_of(char: char) -> usize {
    match char as u32 {
        0x300..=0x36f | 0x200b..=0x200d | 0x20d0..=0x20ff | 0xfe00..=0xfe0f => 0,
        0x1100..=0x115f
        | 0x2e80..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1faff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

/// For each id the number of its first characters that tell it apart from the others.
pub(super) fn told_apart(ids: &[&str]) -> Vec<usize> {
    let shared = |a: &str, b: &str| a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
    let mut order: Vec<usize> = (0..ids.len()).collect();
    order.sort_unstable_by_key(|at| ids[*at]);
    let mut lengths = vec![LEAST_ID; ids.len()];
    for pair in order.windows(2) {
        let needed = shared(ids[pair[0]], ids[pair[1]]) + 1;
        pair.iter().for_each(|at| lengths[*at] = lengths[*at].max(needed));
    }
    lengths.iter().zip(ids).map(|(length, id)| (*length).min(id.chars().count()).min(MOST_ID)).collect()
}

/// A number in at most five characters.
pub(super) fn short(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..9_950 => format!("{:.1}k", number as f64 / 1e3),
        9_950..999_500 => format!("{:.0}k", number as f64 / 1e3),
        999_500..9_950_000 => format!("{:.1}M", number as f64 / 1e6),
        9_950_000..999_500_000 => format!("{:.0}M", number as f64 / 1e6),
        _ => format!("{:.0}G", (number as f64 / 1e9).min(9_999.0)),
    }
}

/// Seconds up to 99, then minutes up to 99, then hours up to two days, then days.
pub(super) fn age(from: Timestamp, now: Timestamp) -> String {
    let seconds = now.as_second().saturating_sub(from.as_second()).max(0);
    match seconds {
        0..100 => format!("{seconds}s"),
        100..6_000 => format!("{}m", seconds / 60),
        6_000..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", (seconds / 86_400).min(999)),
    }
}

/// A folder in a number of characters: its last parts that have room, or the end of the last one.
pub(super) fn folder(cwd: &str, width: usize) -> String {
    if cwd.chars().count() <= width {
        return cwd.to_owned();
    }
    let ends = cwd.match_indices('/').map(|(at, _)| format!("…{}", &cwd[at..]));
    let last = cwd.rsplit('/').next().unwrap_or_default();
    let fits = |text: &String| text.chars().count() <= width;
    ends.chain([last.to_owned()]).find(fits).unwrap_or_else(|| format!("…{}", tail(last, width.saturating_sub(1))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_ends_with_whole_names() {
        for (width, expected) in [
            (20, "/home/user/project"),
            (18, "/home/user/project"),
            (17, "…/user/project"),
            (13, "…/project"),
            (9, "…/project"),
            (8, "project"),
            (7, "project"),
            (5, "…ject"),
            (1, "…"),
        ] {
            assert_eq!(folder("/home/user/project", width), expected, "{width}");
        }
    }

    #[test]
    fn a_number_has_five_characters_at_most() {
        for (number, expected) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1.0k"),
            (9_949, "9.9k"),
            (9_950, "10k"),
            (999_499, "999k"),
            (999_500, "1.0M"),
            (9_950_000, "10M"),
            (1_000_000_000, "1G"),
            (u64::MAX, "9999G"),
        ] {
            assert_eq!(short(number), expected, "{number}");
        }
    }

    #[test]
    fn an_age_has_four_characters_at_most() {
        let now: Timestamp = "2026-01-01T00:01:00Z".parse().expect("a time");
        for (seconds, expected) in [
            (-5, "0s"),
            (0, "0s"),
            (99, "99s"),
            (100, "1m"),
            (5_999, "99m"),
            (6_000, "1h"),
            (172_799, "47h"),
            (172_800, "2d"),
            (1_000_000_000, "999d"),
        ] {
            assert_eq!(age(now - jiff::SignedDuration::from_secs(seconds), now), expected, "{seconds}");
        }
    }

    #[test]
    fn a_text_fits_its_columns() {
        for (text, columns, expected) in [
            ("four words stand here", 40, "four words stand here"),
            ("four words stand here", 11, "four words…"),
            ("漢字かな", 8, "漢字かな"),
            ("漢字かな", 7, "漢字か…"),
            ("漢字かな", 6, "漢字…"),
            ("漢字かな", 1, "…"),
            ("漢字かな", 0, ""),
            ("e\u{301}a", 2, "e\u{301}a"),
        ] {
            assert_eq!(fitted(text, columns), expected, "{text} in {columns}");
            assert!(width(&fitted(text, columns)) <= columns, "{text} in {columns}");
        }
    }

    #[test]
    fn an_id_is_as_long_as_it_takes_to_tell_it_apart() {
        for (ids, expected) in [
            (vec!["0123456789abcdef", "1123456789abcdef"], vec![8, 8]),
            (vec!["0123456789abcdef", "0123456788abcdef", "1"], vec![10, 10, 1]),
            (vec!["0123456789abcdef", "9123456789abcdef", "0123456789abcdee"], vec![16, 8, 16]),
            (vec!["entry-00001", "entry-00002"], vec![11, 11]),
            (vec!["same-same-same", "same-same-same"], vec![14, 14]),
            (vec!["0123456789-0123456789-0123456789", "0123456789-0123456789-0123456780"], vec![24, 24]),
            (vec![], vec![]),
        ] {
            assert_eq!(told_apart(&ids), expected, "{ids:?}");
        }
    }
}
