//! Calls and their results: the rule that pairs them, for contexts and for requests.

use std::{borrow::Borrow, collections::HashMap, hash::Hash};

/// The text of a result for a call that was never answered.
pub const INTERRUPTED: &str = "[No result: the call was interrupted.]";

/// The answers that wait for results, by the ids of their calls. A result belongs to the nearest earlier answer that still
/// waits for its id: ids repeat within a session, because some models number their calls from zero each time.
#[derive(Debug, Clone)]
pub struct Waiting<K> {
    /// Places of answers, the nearest last. An answer is here once for each call of the id.
    answers: HashMap<K, Vec<usize>>,
}

impl<K> Default for Waiting<K> {
    fn default() -> Self {
        Self { answers: HashMap::new() }
    }
}

impl<K: Eq + Hash> Waiting<K> {
    /// Adds a call of the answer at a place.
    pub fn call(&mut self, id: K, answer: usize) {
        self.answers.entry(id).or_default().push(answer);
    }

    /// Takes a result and returns the place of its answer; `None` where no answer waits for it.
    pub fn result<Q: Eq + Hash + ?Sized>(&mut self, id: &Q) -> Option<usize>
    where
        K: Borrow<Q>,
    {
        let places = self.answers.get_mut(id)?;
        let place = places.pop();
        if places.is_empty() {
            self.answers.remove(id);
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_belongs_to_the_nearest_answer_that_waits() {
        let mut waiting = Waiting::default();
        for (id, answer) in [("a", 0), ("b", 0), ("a", 4), ("a", 4)] {
            waiting.call(id, answer);
        }
        let places = ["a", "a", "a", "a", "b", "c"].map(|id| waiting.result(id));
        assert_eq!(places, [Some(4), Some(4), Some(0), None, Some(0), None]);
    }
}
