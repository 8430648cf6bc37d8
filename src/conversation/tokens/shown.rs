//! The count of the text that stands for an entry in contexts.

use std::sync::{Arc, Mutex, PoisonError};

/// The newest text that stands for an entry in contexts, with its count: a summary in its frame. Each context of a path has it
/// again, and only a change of what stands behind the summary makes it another one.
#[derive(Debug, Clone, Default)]
pub struct Shown(Arc<Mutex<Option<Counted>>>);

#[derive(Debug)]
struct Counted {
    text: String,
    tokens: u32,
}

impl Shown {
    /// The tokens of a text. `count` counts it, where it is another one than the last.
    pub fn tokens(&self, text: &str, count: impl FnOnce() -> u32) -> u32 {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(counted) = known.as_ref().filter(|counted| counted.text == text) {
            return counted.tokens;
        }
        // Counting may take a while.
        drop(known);
        let tokens = count();
        let counted = Counted { text: text.to_owned(), tokens };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(counted);
        tokens
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_counted_again_after_another_one() {
        let (shown, counts) = (Shown::default(), std::cell::Cell::new(0));
        let mut sizes = Vec::new();
        for text in ["a", "a", "bb", "bb", "a"] {
            let count = || {
                counts.set(counts.get() + 1);
                text.len() as u32
            };
            sizes.push(shown.tokens(text, count));
        }
        assert_eq!((sizes, counts.get()), (vec![1, 1, 2, 2, 1], 3));
    }
}
