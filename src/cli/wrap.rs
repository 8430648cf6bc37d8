//! Texts in the columns of a terminal.

use super::{cells::width, print, watch::columns};

/// A text in lines of at most `columns` columns. The lines of an item of a list stand below its text; a line of a fence is
/// divided where it is too long, and nothing is left out.
pub(super) fn wrapped_text(text: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for line in text.lines() {
        if width(line) <= columns {
            lines.push(line.to_owned());
            continue;
        }
        let words = line.trim_start();
        let indent = &line[..line.len() - words.len()];
        // A deep indent leaves half of the line.
        let indent = if indent.len() * 2 > columns { "" } else { indent };
        let (mark, words) = if words.starts_with("- ") { words.split_at(2) } else { ("", words) };
        let room = columns.saturating_sub(indent.len() + mark.len()).max(4);
        for (at, part) in wrapped(words, room).into_iter().enumerate() {
            let before = if at == 0 { mark } else { &"  "[..mark.len()] };
            lines.push(format!("{indent}{before}{part}"));
        }
    }
    lines
}

/// The words of a line in lines of at most `columns` columns. A longer word is divided.
pub(super) fn wrapped(line: &str, columns: usize) -> Vec<String> {
    in_lines(line, columns, |word| divided(word, columns))
}

/// The words of each line of a text in lines of at most `columns` columns. A longer word is whole: a path, which may be copied.
pub(super) fn in_sentences(text: &str, columns: usize) -> Vec<String> {
    let one = |line: &str| match width(line) <= columns {
        true => vec![line.to_owned()],
        false => in_lines(line, columns, |word| vec![word.to_owned()]),
    };
    text.lines().flat_map(one).collect()
}

/// Prints sentences to stdout, in lines of the terminal's width or of 80 columns. Paths are whole.
pub(super) fn print_sentences(text: &str) {
    in_sentences(text, columns(80).max(20)).iter().for_each(|line| print::line(line));
}

fn in_lines(line: &str, columns: usize, long: impl Fn(&str) -> Vec<String>) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in line.split_whitespace() {
        let fits = lines.last().is_some_and(|last| width(last) + 1 + width(word) <= columns);
        match lines.last_mut() {
            Some(last) if fits => {
                last.push(' ');
                last.push_str(word);
            }
            _ => lines.extend(long(word)),
        }
    }
    lines.retain(|line| !line.is_empty());
    lines
}

fn divided(word: &str, columns: usize) -> Vec<String> {
    let mut parts = vec![String::new()];
    for char in word.chars() {
        let last = parts.len() - 1;
        if width(&parts[last]) + width(&char.to_string()) > columns {
            parts.push(char.to_string());
        } else {
            parts[last].push(char);
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_their_columns_and_lose_nothing() {
        let text = "## Goal\n- Build the parser, and never touch the vendor folder of the project.\n\n  ```\n  let value = parse(input).expect(\"a value\");\n  ```\n漢字漢字漢字漢字漢字漢字";
        for columns in [20, 33, 80] {
            let lines = wrapped_text(text, columns);
            assert!(lines.iter().all(|line| width(line) <= columns), "{lines:#?}");
            let bare = |text: &str| text.split_whitespace().collect::<String>();
            assert_eq!(bare(&lines.join("\n")), bare(text));
        }
        assert_eq!(wrapped_text("- one two three", 9), ["- one two", "  three"]);
        assert_eq!(in_sentences("In /a/long/path it is.\n\nHere", 8), ["In", "/a/long/path", "it is.", "", "Here"]);
    }
}
