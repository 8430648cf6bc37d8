//! The last words of the agent, in the length that a summary has room for.

use crate::summary::{
    prose::{Fence, clip},
    sections::GAP,
};

/// The beginning and the end of a text in whole lines, at most about `chars` characters, with an ellipsis between. Blocks of code
/// that the ellipsis divides keep both of their fences.
pub(super) fn head_and_end(said: &str, chars: usize) -> String {
    if said.chars().count() <= chars {
        return said.to_owned();
    }
    let lines: Vec<&str> = said.lines().collect();
    let blocks = blocks(&lines);
    let mut head = lines_within(lines.iter(), chars * 2 / 3);
    // A fence without code says nothing.
    if head > 0 && blocks[head - 1] == Some(head - 1) {
        head -= 1;
    }
    let mut cut: Vec<String> = lines[..head].iter().map(|line| (*line).to_owned()).collect();
    // Whether a block of code goes on between a line and the one before it.
    let inside =
        |at: usize| at.checked_sub(1).and_then(|before| blocks[before].filter(|it| blocks.get(at) == Some(&Some(*it))));
    let mut before = inside(head);
    if head == 0
        && let Some(first) = lines.iter().position(|line| fence(line).is_none())
    {
        cut.push(clip(lines[first], chars * 2 / 3));
        (head, before) = (first + 1, None);
    }
    let mut end = lines.len() - lines_within(lines[head..].iter().rev(), chars / 3);
    let mut after = inside(end);
    // A closing fence alone says nothing.
    if after.is_some() && after != before && inside(end + 1) != after && fence(lines[end]).is_some() {
        (end, after) = (end + 1, None);
    }
    if let Some(fence) = before.filter(|_| after != before).and_then(|opening| fence(lines[opening])) {
        cut.push(fence.end());
    }
    let has_gap = cut.last().is_some_and(|line| line.ends_with(GAP)) || lines.get(end) == Some(&GAP);
    if head < end && !has_gap {
        cut.push(GAP.to_owned());
    }
    if let Some(opening) = after.filter(|_| after != before) {
        cut.push(lines[opening].to_owned());
    }
    cut.extend(lines[end..].iter().map(|line| (*line).to_owned()));
    cut.join("\n")
}

/// The number of the first of these lines that have at most `most` characters together.
fn lines_within<'a>(lines: impl Iterator<Item = &'a &'a str>, most: usize) -> usize {
    let mut left = most;
    lines
        .take_while(|line| {
            let size = line.chars().count() + 1;
            let fits = size <= left;
            left = left.saturating_sub(size);
            fits
        })
        .count()
}

/// For each line the place of the fence that opens its block of code. The fences belong to their block.
fn blocks(lines: &[&str]) -> Vec<Option<usize>> {
    let mut open: Option<(usize, Fence)> = None;
    let block = |(at, line): (usize, &&str)| match open {
        Some((opening, fence)) => {
            open = open.filter(|_| !fence.is_closed_by(line.trim()));
            Some(opening)
        }
        None => {
            open = fence(line).map(|fence| (at, fence));
            open.map(|_| at)
        }
    };
    lines.iter().enumerate().map(block).collect()
}

fn fence(line: &str) -> Option<Fence> {
    Fence::opened_by(line.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_long_last_words_is_left_out_line_by_line() {
        assert_eq!(head_and_end("short", 100), "short");
        let said = (0..40).map(|at| format!("line number {at}\n")).collect::<String>();
        let cut = head_and_end(&said, 120);
        assert!(
            cut.starts_with("line number 0\nline number 1\n") && cut.ends_with("\n…\nline number 38\nline number 39"),
            "{cut}"
        );
        let again = head_and_end(&cut, 90);
        assert_eq!(again.matches(GAP).count(), 1, "{again}");
        let long = head_and_end(&"QUJD".repeat(2_000), 90);
        assert!(long.starts_with("QUJDQUJD") && long.ends_with(" …") && long.chars().count() <= 90, "{long}");
    }

    #[test]
    fn a_block_of_code_that_the_gap_divides_keeps_its_fences() {
        let code = |from: usize| (from..from + 20).map(|at| format!("code {at}\n")).collect::<String>();
        let (first, second, prose) = (code(10), code(50), |count: usize| "Before it.\n".repeat(count));
        for (said, cut) in [
            (
                format!("The code:\n```rust\n{first}```\nThat is all."),
                "The code:\n```rust\ncode 10\ncode 11\ncode 12\ncode 13\n…\ncode 29\n```\nThat is all.".to_owned(),
            ),
            (
                format!("The code:\n```rust\n{first}```\n{}That is all there is.", prose(9)),
                "The code:\n```rust\ncode 10\ncode 11\ncode 12\ncode 13\n```\n…\nThat is all there is.".to_owned(),
            ),
            (
                format!("{}```sh\n{first}```\nThat is all.", prose(9)),
                format!("{}…\n```sh\ncode 29\n```\nThat is all.", prose(5)),
            ),
            (
                format!("A:\n```rust\n{first}```\n```sh\n{second}```\nThat is all."),
                "A:\n```rust\ncode 10\ncode 11\ncode 12\ncode 13\ncode 14\n```\n…\n```sh\ncode 69\n```\nThat is all."
                    .to_owned(),
            ),
            (
                format!("{}```sh\n{first}```\nThat is all of it now.", prose(9)),
                format!("{}…\nThat is all of it now.", prose(5)),
            ),
            (
                format!("{}```sh\n{first}```\nThat is all of it now.", prose(4)),
                format!("{}…\nThat is all of it now.", prose(4)),
            ),
        ] {
            assert_eq!(head_and_end(&said, 85), cut);
        }
    }
}
