//! Prose of a conversation: its sentences, and texts clipped between words.

mod quoted;

pub(super) use quoted::Fence;

use crate::text;
use quoted::Quoted;
use std::collections::HashSet;

/// Sentences of prose: cut at line ends and after full stops, outside of code blocks and headings, of a readable length. The
/// marks of bold text are left out where a sentence has one of them alone.
pub(super) fn sentences(text: &str) -> impl Iterator<Item = &str> {
    lines(text)
        .filter(|line| !is_heading(line.trim()))
        .flat_map(sentences_of_line)
        .map(|sentence| without_half_marks(sentence.trim().trim_start_matches(['-', '#', '>', ' '])))
        .filter(|sentence| sentence.len() >= 8 && sentence.len() <= 600)
}

fn is_heading(line: &str) -> bool {
    let rest = line.trim_start_matches('#');
    rest.len() < line.len() && rest.starts_with(' ') && !rest.ends_with(['.', '!', '。'])
}

/// A sentence without the bullet, and without the marks of bold text that are open at one of its ends.
fn without_half_marks(sentence: &str) -> &str {
    let sentence = sentence.strip_prefix("* ").unwrap_or(sentence).trim_start();
    match sentence.matches("**").count() % 2 {
        0 => sentence,
        _ => sentence.strip_prefix("**").or_else(|| sentence.strip_suffix("**")).unwrap_or(sentence).trim(),
    }
}

/// The lines of a text outside of blocks of quoted text.
pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut quoted = Quoted::of(text);
    text.lines().filter(move |line| !quoted.has(line))
}

/// The sentences of a line. A full stop ends a sentence only before a blank: those in `main.rs` and `0.5` do not.
pub(super) fn sentences_of_line(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    let mut known = None;
    std::iter::from_fn(move || {
        let mut is_german = || *known.get_or_insert_with(|| is_german(line));
        if rest.is_empty() {
            return None;
        }
        let end = rest.char_indices().find_map(|(at, char)| {
            let after = at + char.len_utf8();
            let ends = matches!(char, '.' | '!' | '?') && rest[after..].starts_with(' ');
            let stop = matches!(char, '。' | '！' | '？')
                || ends && !is_abbreviation(&rest[..at], &rest[after..], &mut is_german);
            stop.then_some(after)
        });
        let (sentence, tail) = rest.split_at(end.unwrap_or(rest.len()));
        rest = tail;
        Some(sentence)
    })
}

/// Whether the word before a full stop is a short form: one of a few, an ordinal number, or a letter that the sentence goes on
/// after. `is_german` says it of the line.
fn is_abbreviation(before: &str, after: &str, is_german: &mut dyn FnMut() -> bool) -> bool {
    let word = before.rsplit([' ', '(']).next().unwrap_or_default();
    let is_one_of = |words: &[&str]| words.iter().any(|short| word.eq_ignore_ascii_case(short));
    let after = after.trim_start();
    let mut next = after.chars();
    let first = next.next();
    let is_digit = first.is_some_and(|char| char.is_ascii_digit());
    let goes_on = is_digit || first.is_some_and(char::is_lowercase);
    let is_letter = word.chars().count() == 1 && word.chars().all(char::is_alphabetic);
    let is_ordinal = matches!(word.len(), 1 | 2) && word.bytes().all(|byte| byte.is_ascii_digit());
    is_one_of(&SHORT)
        || TITLES.contains(&word)
        || goes_on && is_one_of(&SHORT_OR_LAST)
        || is_digit && is_one_of(&["no"])
        || is_letter && (goes_on || next.next() == Some('.'))
        || is_ordinal && (first.is_some_and(char::is_lowercase) || begins_with_month(after) || is_german())
}

/// Short forms that end no sentence.
const SHORT: [&str; 17] = [
    "nr", "bzw", "vs", "ca", "e.g", "i.e", "z.b", "d.h", "u.a", "approx", "dr", "mr", "mrs", "prof", "sr", "sra", "dra",
];

/// Titles that are another word in small letters: `5 ms`.
const TITLES: [&str; 2] = ["Ms", "St"];

/// Short forms that may end a sentence. It goes on in small letters or with a number.
const SHORT_OR_LAST: [&str; 14] =
    ["max", "min", "tel", "str", "etc", "usw", "incl", "inkl", "resp", "evtl", "ggf", "vgl", "abs", "art"];

/// Whether a text begins with the name of a month, in English or German.
fn begins_with_month(text: &str) -> bool {
    const MONTHS: [&str; 20] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
        "Januar",
        "Februar",
        "März",
        "Mai",
        "Juni",
        "Juli",
        "Oktober",
        "Dezember",
    ];
    let name = text.split(|char: char| !char.is_alphabetic()).next().unwrap_or_default();
    MONTHS.contains(&name)
}

/// Whether a line is German by its small words.
fn is_german(line: &str) -> bool {
    const WORDS: [&str; 16] = [
        "der", "die", "das", "den", "dem", "des", "und", "ist", "im", "am", "ein", "eine", "nicht", "wird", "zum",
        "auf",
    ];
    let words = line.split(|char: char| !char.is_alphanumeric());
    words.filter(|word| WORDS.iter().any(|it| word.eq_ignore_ascii_case(it))).nth(1).is_some()
}

/// The text of an item of a list: after a bullet, or a number.
pub(super) fn item(line: &str) -> Option<&str> {
    let digits = line.trim_start_matches(|char: char| char.is_ascii_digit());
    let bullet = ["- ", "* ", "+ ", "• "].iter().find_map(|mark| line.strip_prefix(mark));
    let number =
        || digits.strip_prefix(". ").or_else(|| digits.strip_prefix(") ")).filter(|_| digits.len() < line.len());
    bullet.or_else(number)
}

/// The words of a text in small letters that tell its subject, by their first letters.
pub(super) fn content_words(lower: &str) -> HashSet<String> {
    // Shorter words are those of every sentence, and an ending makes no other word. Other writings say more in a letter.
    const SHORTEST: usize = 4;
    const SHORTEST_WIDE: usize = 2;
    const STEM: usize = 6;
    let words = lower
        .split(|char: char| !char.is_alphanumeric())
        .filter(|word| word.chars().count() >= if word.is_ascii() { SHORTEST } else { SHORTEST_WIDE });
    words.map(|word| word.chars().take(STEM).collect()).collect()
}

/// A text on one line of at most `chars` characters, with an ellipsis where something went. It is cut between words, and marks
/// that the cut left open are taken out.
pub(super) fn clip(text: &str, chars: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().nth(chars).is_none() {
        return line;
    }
    let head = text::head(&line, chars.saturating_sub(2));
    // A path is cut between its names. Writing without blanks has no words to cut between.
    let second_half = |end: &usize| *end * 2 > head.len();
    let separator = || head.rfind(['/', '?', '&', ',', ';']).filter(second_half);
    let blank = head.rfind(' ');
    let end = blank.filter(second_half).or_else(separator).or(blank).unwrap_or(head.len());
    let head = head[..end].trim_end_matches([' ', ',', ';', ':', '–', '-', '(']);
    let mut cut = head.to_owned();
    for mark in ["**", "```", "`"] {
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
        let found: Vec<&str> =
            sentences("Nicht löschen, z. B. die Nr. 5 bleibt. Use x, e.g. y. It is I. Done now.").collect();
        assert_eq!(found, ["Nicht löschen, z. B. die Nr. 5 bleibt.", "Use x, e.g. y.", "It is I.", "Done now."]);
    }

    #[test]
    fn a_short_form_or_an_ordinal_ends_no_sentence() {
        for text in [
            "Der Termin wurde auf den 9. Mai verschoben.|",
            "Die 2. Fassung ist die letzte.| Am 3. und 4. gilt der Plan.|",
            "We ship on 3. October at last.| This is version 3.| It works.|",
            "Dr. Halvorsen is the cardiologist and Mr. Quist is the patient.|",
            "Ms. Lee lives in St. Gallen.| It took 5 ms.| Then it stopped.|",
            "The max. level width is 512 tiles.| The volume is at max.| Go on.|",
            "See no. 5 there, tel. 555.| The answer is no.| Stop here.|",
            "La Sra. Ruiz und usw. alles, etc.| Next.|",
        ] {
            let plain = text.replace('|', "");
            let found: Vec<&str> = sentences_of_line(&plain).collect();
            assert_eq!(found, text.split_terminator('|').collect::<Vec<_>>());
        }
    }

    #[test]
    fn lines_of_quoted_blocks_are_left_out() {
        let text = "a\n~~~\nb\n```\n~~~\nc\n<pre>\nd\n</pre>\ne:\n\n    f\n\ng";
        assert_eq!(lines(text).filter(|line| !line.is_empty()).collect::<Vec<_>>(), ["a", "c", "e:", "g"]);
    }

    #[test]
    fn a_clipped_text_ends_between_words_and_closes_its_marks() {
        assert_eq!(clip("four words\nstand here", 40), "four words stand here");
        assert_eq!(clip("four words stand here", 14), "four words …");
        assert_eq!(clip("see **the whole** list, and more", 26), "see **the whole** list …");
        assert_eq!(clip("see **the whole list** and more", 18), "see the whole …");
        assert_eq!(clip("run ```sh cargo test ``` and more of it", 23), "run sh cargo test …");
        assert_eq!(clip("read /home/ana/shop/src/settings/reader.rs", 38), "read /home/ana/shop/src/settings …");
        assert_eq!(clip("the configuration_value_of_it", 20), "the …");
        assert_eq!(clip(&"字".repeat(20), 10), format!("{} …", "字".repeat(8)));
    }
}
