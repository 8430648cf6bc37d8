//! Fixed texts, all searched for at once: a text is gone through one time for all rules, and a rule looks only at the lines
//! that have one of its hints.

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use memchr::{memchr, memrchr};
use std::{collections::BTreeSet, ops::Range};

/// A text that is searched for.
pub(super) struct Hint {
    pub text: Vec<u8>,
    pub place: Place,
    /// A number below 128.
    pub mark: usize,
}

/// Where a hint counts.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    Anywhere,
    /// At the beginning of what may be a key of so many characters.
    Key(usize),
}

/// A text in the ways in which it is written: as it is, in small letters, in capitals, and with a capital at the beginning of
/// each word, or of each but the first. A hint may leave out the first letter of a name.
pub(super) fn forms(text: &str) -> BTreeSet<String> {
    let mut is_first = true;
    let capitals = |char: char| {
        let begins = std::mem::replace(&mut is_first, !char.is_alphanumeric());
        if begins { char.to_ascii_uppercase() } else { char }
    };
    let all: String = text.chars().map(capitals).collect();
    let first = text.chars().next().map_or(0, char::len_utf8);
    let later = format!("{}{}", &text[..first], &all[first..]);
    [text.to_owned(), text.to_ascii_lowercase(), text.to_ascii_uppercase(), all, later].into()
}

/// The marks of hints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Marks(u128);

impl Marks {
    pub(super) fn of(mark: usize) -> Self {
        Self(1 << mark)
    }

    /// The first mark that is not below this one.
    pub(super) fn next(self, mark: usize) -> Option<usize> {
        let rest = self.0.checked_shr(u32::try_from(mark).ok()?)?;
        (rest != 0).then(|| mark + rest.trailing_zeros() as usize)
    }

    pub(super) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn has(self, mark: usize) -> bool {
        self.0 >> mark & 1 == 1
    }
}

/// Hints, ready to be searched for.
pub(super) struct Hints {
    automaton: AhoCorasick,
    /// By their numbers in the automaton.
    each: Vec<Hint>,
}

impl Hints {
    pub(super) fn new(hints: Vec<Hint>) -> Self {
        let automaton = AhoCorasick::builder().kind(Some(AhoCorasickKind::DFA)).build(hints.iter().map(|it| &it.text));
        Self { automaton: automaton.expect("the hints are fixed and tested"), each: hints }
    }

    /// The lines of a text that have hints, in order, with the marks of these.
    pub(super) fn lines<'a>(&'a self, text: &'a str) -> impl Iterator<Item = (Range<usize>, Marks)> + 'a {
        let bytes = text.as_bytes();
        let mut found = self.found(text).peekable();
        let mut done = 0;
        std::iter::from_fn(move || {
            let (hint, mark) = found.next()?;
            let mut marks = Marks::of(mark);
            let start = memrchr(b'\n', &bytes[done..hint.end]).map_or(done, |end| done + end + 1);
            done = memchr(b'\n', &bytes[hint.end..]).map_or(bytes.len(), |end| hint.end + end + 1);
            while let Some((_, mark)) = found.next_if(|(hint, _)| hint.end <= done) {
                marks = marks.with(Marks::of(mark));
            }
            Some((start..done, marks))
        })
    }

    /// The marks of the hints in a line.
    pub(super) fn marks(&self, line: &str) -> Marks {
        self.found(line).fold(Marks::default(), |marks, (_, mark)| marks.with(Marks::of(mark)))
    }

    /// Where keys may begin in a text, with the marks of their hints, by the ends of these.
    pub(super) fn keys<'a>(&'a self, text: &'a str) -> impl Iterator<Item = (usize, usize)> + 'a {
        self.found(text).map(|(hint, mark)| (hint.start, mark))
    }

    /// The hints that count in a text, with their marks, by their ends.
    fn found<'a>(&'a self, text: &'a str) -> impl Iterator<Item = (Range<usize>, usize)> + 'a {
        self.automaton.find_overlapping_iter(text).filter_map(|found| {
            let Hint { place, mark, .. } = &self.each[found.pattern()];
            place.allows(&text.as_bytes()[found.start()..], found.len()).then(|| (found.range(), *mark))
        })
    }
}

impl Place {
    /// Whether a hint of this length counts at the beginning of these bytes.
    fn allows(self, bytes: &[u8], hint: usize) -> bool {
        match self {
            Self::Anywhere => true,
            Self::Key(least) => {
                bytes.get(hint..least.max(hint)).is_some_and(|rest| rest.iter().copied().all(is_of_a_key))
            }
        }
    }
}

/// Whether keys have this byte.
pub(super) fn is_of_a_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.+/=%$".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The lines that have hints, found one hint after the other.
    fn expected(hints: &[Hint], text: &str) -> Vec<(Range<usize>, Marks)> {
        let mut at = 0;
        let lines = text.split_inclusive('\n').map(|line| {
            at += line.len();
            at - line.len()..at
        });
        let marks = |line: Range<usize>| {
            let counts = |hint: &&Hint| {
                let places = text[line.clone()].as_bytes().windows(hint.text.len()).enumerate();
                let starts = places.filter(|(_, found)| *found == hint.text).map(|(at, _)| line.start + at);
                starts.into_iter().any(|start| match hint.place {
                    Place::Anywhere => true,
                    Place::Key(least) => {
                        let rest = text.as_bytes()[start + hint.text.len()..].iter();
                        hint.text.len() + rest.take_while(|byte| is_of_a_key(**byte)).count() >= least
                    }
                })
            };
            let marks =
                hints.iter().filter(counts).fold(Marks::default(), |marks, hint| marks.with(Marks::of(hint.mark)));
            (line, marks)
        };
        lines.map(marks).filter(|(_, marks)| *marks != Marks::default()).collect()
    }

    #[test]
    fn a_text_has_the_forms_in_which_it_is_written() {
        let written = ["EED WORDS", "Eed Words", "eed Words", "eed words"];
        assert_eq!(forms("eed words"), written.map(str::to_owned).into());
        assert_eq!(forms(": ä").len(), 1);
    }

    fn texts() -> impl Strategy<Value = String> {
        let words = prop::sample::select(vec!["a", "b", "ab", "ba", " ", "\n", "ä", "aab", "----------"]);
        prop::collection::vec((words, 1..40_usize), 0..60)
            .prop_map(|words| words.into_iter().map(|(word, times)| word.repeat(times)).collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn each_line_has_the_marks_of_its_hints(
            hints in prop::collection::vec(("[ab]{1,4}|a ?b", prop::option::of(1..12_usize)), 1..6),
            text in texts(),
        ) {
            let hint = |(mark, (text, least)): (usize, (String, Option<usize>))| {
                let least = least.map(|least| text.len() + least);
                Hint { text: text.into(), place: least.map_or(Place::Anywhere, Place::Key), mark: mark * 25 }
            };
            let hints: Vec<Hint> = hints.into_iter().enumerate().map(hint).collect();
            let expected = expected(&hints, &text);
            let all = Hints::new(hints);
            let found: Vec<_> = all.lines(&text).collect();
            prop_assert_eq!(&found, &expected);
            for (line, marks) in expected {
                prop_assert_eq!(all.marks(&text[line]), marks);
            }
        }
    }
}
