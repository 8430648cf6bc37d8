//! The counts of texts that were counted before. Summaries, frames and instructions are counted again with each measurement, and
//! a look here takes a fiftieth of the time.

use std::{
    hash::{BuildHasher, RandomState},
    sync::{LazyLock, Mutex, PoisonError},
};

/// Counts that are kept. A newer text takes the place of an older one. A chosen number: together they take 128 KiB.
const PLACES: usize = 4_096;

/// Texts below this length, in bytes, are counted as fast as they are looked up.
const SHORTEST: usize = 32;

/// A text by its hash and its length. The hash has keys of this process, so nobody can make two texts of one place.
type Text = (u64, usize);

/// The text that was counted last at a place, and its tokens.
type Place = Mutex<(Text, u32)>;

static COUNTS: LazyLock<(RandomState, Box<[Place]>)> = LazyLock::new(|| {
    let places = (0..PLACES).map(|_| Mutex::default());
    (RandomState::new(), places.collect())
});

/// The tokens of a text: those that were counted before, or those that `count` finds.
pub fn of_text(text: &str, count: impl FnOnce(&str) -> u32) -> u32 {
    if text.len() < SHORTEST {
        return count(text);
    }
    let (hasher, places) = &*COUNTS;
    let hash = hasher.hash_one(text);
    let key = (hash, text.len());
    let place = &places[usize::try_from(hash % PLACES as u64).unwrap_or(0)];
    let (known, tokens) = *place.lock().unwrap_or_else(PoisonError::into_inner);
    if known == key {
        return tokens;
    }
    let tokens = count(text);
    *place.lock().unwrap_or_else(PoisonError::into_inner) = (key, tokens);
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_counted_once_and_another_of_its_length_is_not_it() {
        let text = "a text of this test that is long enough to be kept";
        let other = text.replace("this", "that");
        assert_eq!(of_text(text, |_| 7), 7);
        assert_eq!(of_text(text, |_| panic!("it was counted")), 7);
        assert_eq!(of_text(&other, |_| 8), 8);
    }
}
