//! Redaction of a text while it is being written.

use super::{blocks::Open, redact};

/// Redacts a text that comes in pieces. It gives out what cannot be part of a secret any more: whole lines, and nothing
/// after the beginning of a private key until its end. What it gives out is, put together, the redacted whole.
#[derive(Debug)]
pub struct Stream {
    enabled: bool,
    /// Text that arrived and was not returned yet.
    held: String,
    /// Length of its whole lines, in bytes.
    lines: usize,
    /// How much of it may go.
    free: usize,
    open: Open,
}

impl Stream {
    /// A stream at its beginning. Without redaction it returns every text unchanged.
    #[must_use]
    pub fn new(enabled: bool) -> Self {
        Self { enabled, held: String::new(), lines: 0, free: 0, open: Open::default() }
    }

    /// Takes the next piece; what may be told now.
    pub fn push(&mut self, piece: &str) -> Option<String> {
        if !self.enabled {
            return (!piece.is_empty()).then(|| piece.to_owned());
        }
        self.held.push_str(piece);
        // A line without an end is looked at when its end is there, once.
        let last = self.held.len() - piece.len() + piece.rfind('\n')? + 1;
        let whole = self.held[self.lines..last].split_inclusive('\n');
        let mut at = self.lines;
        for line in whole {
            at += line.len();
            if self.open.take(line) {
                self.free = at;
            }
        }
        self.lines = last;
        if self.free == 0 {
            return None;
        }
        let rest = self.held.split_off(self.free);
        let told = redact(&std::mem::replace(&mut self.held, rest)).into_owned();
        self.lines -= self.free;
        self.free = 0;
        Some(told)
    }

    /// The text has ended; what is left of it.
    #[must_use]
    pub fn finish(self) -> Option<String> {
        match self.held.is_empty() {
            true => None,
            false => Some(redact(&self.held).into_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::canaries::canaries, *};
    use proptest::prelude::*;

    fn told(pieces: &[&str]) -> (Vec<String>, String) {
        let mut stream = Stream::new(true);
        let mut told: Vec<String> = pieces.iter().filter_map(|piece| stream.push(piece)).collect();
        told.extend(stream.finish());
        let all = told.concat();
        (told, all)
    }

    #[test]
    fn whole_lines_are_told_and_keys_waited_for() {
        let mut stream = Stream::new(true);
        assert_eq!(stream.push("one\ntw"), Some("one\n".to_owned()));
        assert_eq!(stream.push("o password=hunter"), None);
        assert_eq!(stream.push("2hunter2\nthree\n"), Some("two password=[REDACTED:secret]\nthree\n".to_owned()));
        let marker = |what: &str| format!("-----{what} {} KEY-----", "PRIVATE");
        assert_eq!(stream.push(&format!("{}\nMIIEowIBAAKCAQEA\n\n", marker("BEGIN"))), None);
        assert_eq!(stream.push("more\n"), None);
        assert_eq!(stream.push(&format!("{}\n", marker("END"))), Some("[REDACTED:private-key]\n".to_owned()));
        assert_eq!(stream.push("the end"), None);
        assert_eq!(stream.finish(), Some("the end".to_owned()));
    }

    #[test]
    fn what_is_not_redacted_goes_through() {
        let mut stream = Stream::new(false);
        assert_eq!(stream.push("password=hunter2hunter2"), Some("password=hunter2hunter2".to_owned()));
        assert_eq!(stream.push(""), None);
        assert_eq!(stream.finish(), None);
    }

    /// Words and canaries on lines of any length.
    fn text() -> impl Strategy<Value = (String, Vec<String>)> {
        let all = canaries();
        let quoted = canaries();
        let corpus = super::super::corpus::texts();
        let word = prop_oneof![
            6 => prop::sample::select(vec!["a", "the token", "## Goal", "path: src/a.rs", "```", "- [x] done", "name: x", "ä→", ""])
                .prop_map(|word| (word.to_owned(), None)),
            2 => (0..all.len()).prop_map(move |at| (format!("\n{}\n", all[at].text), Some(all[at].secret.clone()))),
            3 => prop::sample::select(corpus).prop_map(|text| (format!("\n{text}\n"), None)),
            1 => (0..quoted.len()).prop_map(move |at| {
                let line = serde_json::json!({"text": quoted[at].text, "n": 1});
                (format!("\n{line}\n"), Some(quoted[at].secret.clone()))
            }),
        ];
        let between = prop::sample::select(vec!["\n", "\n", "\n\n", " ", "\r\n", ", "]);
        prop::collection::vec((word, between), 0..12).prop_map(|parts| {
            let text = parts.iter().map(|((word, _), between)| format!("{word}{between}")).collect();
            (text, parts.into_iter().filter_map(|((_, secret), _)| secret).collect())
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_pieces_are_the_redacted_whole((text, secrets) in text(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20)) {
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).filter(|at| text.is_char_boundary(*at)).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&str> = cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]).collect();
            let (pieces, all) = told(&pieces);
            let whole = redact(&text).into_owned();
            prop_assert_eq!(&all, &whole);
            prop_assert_eq!(&redact(&whole), &whole, "redacting twice changes nothing");
            for secret in &secrets {
                prop_assert!(!all.contains(secret.as_str()), "{} in {}", secret, all);
                prop_assert!(pieces.iter().all(|piece| !piece.contains(secret.as_str())));
            }
        }
    }
}
