//! Escapes that JavaScript writes and no reader of UTF-8 takes.

/// JavaScript writes half of a surrogate pair where it cut a text in the middle of one. No reader of UTF-8 takes it, so
/// it reads as U+FFFD, which is what it would be shown as.
pub fn without_half_pairs(line: &str) -> Option<String> {
    let escape = |at: usize| -> Option<u16> {
        let digits = line.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    // Most lines have no such escape at all.
    if memchr::memmem::find(line.as_bytes(), b"\\ud").is_none()
        && memchr::memmem::find(line.as_bytes(), b"\\uD").is_none()
    {
        return None;
    }
    let mut mended = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = line[at..].find('\\') {
        at += found;
        match escape(at) {
            Some(0xD800..=0xDBFF) if matches!(escape(at + 6), Some(0xDC00..=0xDFFF)) => at += 12,
            Some(0xD800..=0xDFFF) => {
                mended.push_str(&line[copied..at]);
                mended.push_str("\\ufffd");
                at += 6;
                copied = at;
            }
            Some(_) => at += 6,
            // Any other escape is two characters; the second may be a backslash.
            None => at += line[at..].char_indices().nth(2).map_or(line.len() - at, |(next, _)| next),
        }
    }
    (copied > 0).then(|| mended + &line[copied..])
}
