//! Cutting texts, always on a character and never in the middle of one, the size of JSON texts, and errors about them.

pub mod faults;
pub mod members;
pub mod spelling;
pub mod values;

/// Digits with a comma after each thousand: 1234567 is 1,234,567.
#[must_use]
pub fn grouped(digits: &str) -> String {
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) && digit.is_ascii_digit() {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The first `chars` characters of `text`.
#[must_use]
pub fn head(text: &str, chars: usize) -> &str {
    match text.char_indices().nth(chars) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

/// The last `chars` characters of `text`.
#[must_use]
pub fn tail(text: &str, chars: usize) -> &str {
    if chars == 0 {
        return "";
    }
    match text.char_indices().rev().nth(chars - 1) {
        Some((start, _)) => &text[start..],
        None => text,
    }
}

/// `text` with at most about `chars` characters: two thirds of them from its beginning, a third from its end, and
/// `gap` between.
#[must_use]
pub fn clip_middle(text: &str, chars: usize, gap: &str) -> String {
    if text.len() <= chars || text.chars().nth(chars).is_none() {
        return text.to_owned();
    }
    let back = chars / 3;
    format!("{}{gap}{}", head(text, chars - back), tail(text, back))
}

/// `text` on one line of at most `chars` characters, ended by an ellipsis where something went.
#[must_use]
pub fn one_line(text: &str, chars: usize) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > chars * 4 {
            break;
        }
    }
    if line.chars().nth(chars).is_some() {
        let mut cut = head(&line, chars.saturating_sub(1)).trim_end().to_owned();
        cut.push('…');
        return cut;
    }
    line
}

/// A text of at most so many bytes, with an ellipsis at its end where it was longer.
#[must_use]
pub fn shortened(mut text: String, bytes: usize) -> String {
    const ELLIPSIS: char = '…';
    if text.len() > bytes {
        let end = (0..=bytes.saturating_sub(ELLIPSIS.len_utf8())).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or(0));
        text.push(ELLIPSIS);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_fall_on_characters() {
        assert_eq!(head("äöü", 2), "äö");
        assert_eq!(tail("äöü", 2), "öü");
        assert_eq!(tail("äöü", 9), "äöü");
        assert_eq!(clip_middle("äöüäöüäöü", 3, "…"), "äö…ü");
        assert_eq!(clip_middle("short", 9, "…"), "short");
        assert_eq!(one_line("a\n b\tc", 9), "a b c");
        assert_eq!(one_line("four words stand here", 11), "four words…");
    }
}
