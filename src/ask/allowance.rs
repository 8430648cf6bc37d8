//! Tokens that the requests of one piece of work may take together.

use crate::provider::{Trouble, TroubleKind};
use std::sync::atomic::{AtomicU64, Ordering};

/// Tokens that may still be taken. A request claims the most that it may take before it is sent, and gives back the rest
/// after its answer. Requests at the same time claim one after the other, so that together they stay within it.
#[derive(Debug)]
pub struct Allowance {
    left: AtomicU64,
    /// The most tokens that a request or a plan was refused for. Zero: none was refused.
    refused: AtomicU64,
}

/// The tokens that a request claims. Dropping it gives all of them back: a request without an answer reports no cost.
#[derive(Debug)]
pub struct Claim<'a> {
    of: &'a Allowance,
    tokens: u64,
}

impl Allowance {
    /// An allowance of so many tokens.
    #[must_use]
    pub fn new(tokens: u64) -> Self {
        Self { left: AtomicU64::new(tokens), refused: AtomicU64::new(0) }
    }

    /// Claims the most tokens that a request may take.
    ///
    /// # Errors
    /// When fewer are left.
    pub fn claim(&self, tokens: u64) -> Result<Claim<'_>, Trouble> {
        let claimed = |left: u64| left.checked_sub(tokens);
        match self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, claimed) {
            Ok(_) => Ok(Claim { of: self, tokens }),
            Err(left) => Err(Trouble::new(TroubleKind::NoTokens, self.refuse(tokens, left))),
        }
    }

    /// Whether so many tokens are left, with a text for a person where they are not.
    ///
    /// # Errors
    /// When fewer are left.
    pub fn has(&self, tokens: u64) -> Result<(), String> {
        match self.left.load(Ordering::Relaxed) {
            left if tokens <= left => Ok(()),
            left => Err(self.refuse(tokens, left)),
        }
    }

    /// The most tokens that something was refused for; none where nothing was.
    #[must_use]
    pub fn refused(&self) -> Option<u64> {
        Some(self.refused.load(Ordering::Relaxed)).filter(|tokens| *tokens > 0)
    }

    fn refuse(&self, tokens: u64, left: u64) -> String {
        self.refused.fetch_max(tokens, Ordering::Relaxed);
        format!("it may take {tokens} tokens, and {left} of those that an hour has are left")
    }
}

impl Claim<'_> {
    /// Gives back the tokens that the request did not take. A request that took more than its claim takes the rest, too.
    pub fn took(mut self, tokens: u64) {
        let more = tokens.saturating_sub(self.tokens);
        let less = |left: u64| Some(left.saturating_sub(more));
        let _ = self.of.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        self.tokens = self.tokens.saturating_sub(tokens);
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.of.left.fetch_add(self.tokens, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(allowance: &Allowance) -> u64 {
        allowance.left.load(Ordering::Relaxed)
    }

    #[test]
    fn requests_claim_before_they_are_sent_and_give_back_what_they_did_not_take() {
        let allowance = Allowance::new(100);
        let (first, second) = (allowance.claim(60).expect("a claim"), allowance.claim(40).expect("a claim"));
        assert_eq!(allowance.claim(1).expect_err("nothing is left").kind, TroubleKind::NoTokens);
        first.took(25);
        assert_eq!(left(&allowance), 35);
        drop(second);
        assert_eq!(left(&allowance), 75, "a request without an answer took nothing");
        allowance.claim(10).expect("a claim").took(30);
        assert_eq!(left(&allowance), 45, "more than its claim");
        allowance.claim(45).expect("a claim").took(1_000);
        assert_eq!(left(&allowance), 0);
    }

    #[test]
    fn a_refusal_names_what_is_left_and_the_most_is_known() {
        let allowance = Allowance::new(50);
        assert_eq!((allowance.has(50), allowance.refused()), (Ok(()), None));
        let said = "it may take 51 tokens, and 50 of those that an hour has are left";
        assert_eq!(allowance.has(51), Err(said.to_owned()));
        assert!(allowance.claim(70).is_err() && allowance.claim(60).is_err());
        assert_eq!(allowance.refused(), Some(70));
    }
}
