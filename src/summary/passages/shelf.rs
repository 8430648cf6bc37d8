//! The passages that are kept of a conversation that is too large to be held in memory.

use super::{Origin, Passage, ranked, weights};
use std::collections::HashSet;

/// The largest size of the passages that are kept, in bytes. A model with a window of a million tokens reads a quarter of it.
pub(super) const KEPT: usize = 16 << 20;

/// The size of a passage beside its texts, in bytes.
const OVERHEAD: usize = size_of::<Passage>() + 64;

/// Passages of a conversation, oldest first. A conversation of more than [`KEPT`] loses those that no choice for its question
/// takes: of those with the fewest words of it the oldest.
pub(super) struct Shelf<'a> {
    question: &'a str,
    limit: usize,
    kept: Vec<Passage>,
    bytes: usize,
}

impl<'a> Shelf<'a> {
    pub(super) fn new(question: &'a str, limit: usize) -> Self {
        Self { question, limit, kept: Vec::new(), bytes: 0 }
    }

    pub(super) fn put(&mut self, passage: Passage) {
        self.bytes += size(&passage);
        self.kept.push(passage);
        // At twice the limit half of it goes, so a passage is weighed twice on average.
        if self.bytes > self.limit * 2 {
            self.clear();
        }
    }

    /// The passages, oldest first.
    pub(super) fn into_passages(mut self) -> Vec<Passage> {
        if self.bytes > self.limit {
            self.clear();
        }
        self.kept
    }

    /// Keeps a quarter of the limit for the first parts of summaries, one for the newest messages that were said, and the rest for
    /// the passages of most weight, the newest of them. Equal texts stay once.
    fn clear(&mut self) {
        let kept = &self.kept;
        let weights = weights(kept, self.question);
        let mut stays = vec![false; kept.len()];
        let mut seen = HashSet::new();
        let mut take = |order: &mut dyn Iterator<Item = usize>, share: usize| {
            let mut left = share;
            for at in order {
                if seen.contains(&kept[at].text) {
                    continue;
                }
                let Some(less) = left.checked_sub(size(&kept[at])) else { break };
                (left, stays[at]) = (less, true);
                seen.insert(&kept[at].text);
            }
        };
        let of = |origin: Origin| (0..kept.len()).filter(move |at| kept[*at].origin == origin);
        take(&mut of(Origin::Summary), self.limit / 4);
        take(&mut of(Origin::Said).rev(), self.limit / 4);
        take(&mut ranked(&weights).into_iter(), self.limit / 2);
        let mut stays = stays.into_iter();
        self.kept.retain(|_| stays.next() == Some(true));
        self.kept.shrink_to_fit();
        self.bytes = self.kept.iter().map(size).sum();
    }
}

fn size(passage: &Passage) -> usize {
    passage.text.len() + passage.label.len() + OVERHEAD
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passage(at: usize, origin: Origin, text: &str) -> Passage {
        Passage { entry: format!("e{at}").into(), origin, text: text.to_owned(), label: "User".to_owned() }
    }

    #[test]
    fn a_shelf_holds_its_limit_and_what_a_question_asks_for() {
        let limit = 100 * (OVERHEAD + 20);
        let mut shelf = Shelf::new("Where is the wombat?", limit);
        let mut largest = 0;
        for at in 0..5_000 {
            shelf.put(match at {
                0 => passage(at, Origin::Summary, "the summary"),
                7 | 4_000 => passage(at, Origin::Work, &format!("wombat {at}")),
                4_900 => passage(at, Origin::Said, "the last word"),
                _ => passage(at, Origin::Work, &format!("nothing {at}")),
            });
            largest = largest.max(shelf.bytes);
        }
        assert!(largest <= limit * 2, "{largest}");
        let kept = shelf.into_passages();
        assert!(kept.iter().map(size).sum::<usize>() <= limit);
        let ids: Vec<&str> = kept.iter().map(|passage| passage.entry.as_str()).collect();
        for id in ["e0", "e7", "e4000", "e4900", "e4999"] {
            assert!(ids.contains(&id), "{id}: {ids:?}");
        }
        assert!(kept.is_sorted_by_key(|passage| passage.entry.as_str()[1..].parse::<usize>().expect("a number")));
    }
}
