//! Prose of a conversation: its sentences, and texts clipped between words.

use crate::text;

/// Sentences of prose: cut at line ends and after full stops, outside of code blocks, of a readable length.
pub(super) fn sentences(text: &str) -> impl Iterator<Item = &str> {
    lines(text)
        .flat_map(sentences_of_line)
        .map(|sentence| sentence.trim().trim_start_matches(['-', '*', '#', '>', ' ']))
        .filter(|sentence| sentence.len() >= 8 && sentence.len() <= 600)
}

/// The lines of a text outside of code blocks.
pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut code = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        !code && !fence
    })
}

/// The sentences of a line. A full stop ends a sentence only before a blank: those in `main.rs` and `0.5` do not.
pub(super) fn sentences_of_line(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.char_indices().find_map(|(at, char)| {
            let after = at + char.len_utf8();
            let stop =
                matches!(char, '。' | '！' | '？') || matches!(char, '.' | '!' | '?') && rest[after..].starts_with(' ');
            stop.then_some(after)
        });
        let (sentence, tail) = rest.split_at(end.unwrap_or(rest.len()));
        rest = tail;
        Some(sentence)
    })
}

/// A text on one line of at most `chars` characters, with an ellipsis where something went. It is cut between words, and marks
/// that the cut left open are taken out.
pub(super) fn clip(text: &str, chars: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().nth(chars).is_none() {
        return line;
    }
    let head = text::head(&line, chars.saturating_sub(2));
    // Writing without blanks has no words to cut between.
    let end = head.rfind(' ').filter(|end| *end * 2 > head.len()).unwrap_or(head.len());
    let head = head[..end].trim_end_matches([' ', ',', ';', ':', '–', '-', '(']);
    let mut cut = head.to_owned();
    for mark in ["**", "`"] {
        if cut.matches(mark).count() % 2 == 1
            && let Some(at) = cut.rfind(mark)
        {
            cut.replace_range(at..at + mark.len(), "");
        }
    }
    format!("{} …", cut.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_stops_in_names_end_no_sentence() {
        let found: Vec<&str> =
            sentences("Look at main.rs and 0.5 first. Then go on.\n```\nnot. this.\n```\n- a list item").collect();
        assert_eq!(found, ["Look at main.rs and 0.5 first.", "Then go on.", "a list item"]);
    }

    #[test]
    fn a_clipped_text_ends_between_words_and_closes_its_marks() {
        assert_eq!(clip("four words\nstand here", 40), "four words stand here");
        assert_eq!(clip("four words stand here", 14), "four words …");
        assert_eq!(clip("see **the whole** list, and more", 26), "see **the whole** list …");
        assert_eq!(clip("see **the whole list** and more", 18), "see the whole …");
        assert_eq!(clip(&"字".repeat(20), 10), format!("{} …", "字".repeat(8)));
    }
}
