//! A candidate that writes a summary: its window, and the room for requests and answers in it.

use super::{
    brief::{Ask, Brief, Part},
    fold,
    material::Material,
    transcript::without_thinking,
};
use crate::{
    ask::request::thinking_room,
    conversation::{
        evidence,
        tokens::{self, Estimator, Scale},
    },
    models::candidates::Candidate,
    provider::Reasoning,
};
use std::{
    borrow::Cow,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

/// Smallest window in use, in tokens.
const SMALLEST_WINDOW: u64 = 1_024;

/// A candidate at work.
pub(super) struct Summarizer<'a> {
    /// Its model.
    pub candidate: &'a Candidate,
    /// Its window as far as it is known, in tokens. An overflow makes it smaller.
    window: AtomicU64,
    /// Room for an answer, in tokens: in a small window no more than half of it.
    reserve: u64,
    /// The scale of the session's own model.
    scale: Scale,
    /// Whether its conversations have no thinking of models in them.
    is_plain: AtomicBool,
}

/// Meaning of a request that was too long for the window.
#[derive(Debug, Clone, Copy)]
pub(super) enum Clue {
    /// The request did not fit; the window is unknown.
    None,
    /// The provider states its size, in tokens.
    Stated(u64),
    /// The server read only so many tokens.
    Served(u64),
}

impl<'a> Summarizer<'a> {
    /// A candidate that was not asked yet. Sizes of the session are measured with `scale`.
    pub fn new(candidate: &'a Candidate, reserve: u64, scale: Scale) -> Self {
        let reserve = reserve.min(candidate.window / 2);
        let is_plain = AtomicBool::new(candidate.refuses_reasoning());
        Self { candidate, window: AtomicU64::new(candidate.window), reserve, scale, is_plain }
    }

    /// The conversation as its provider takes it.
    pub fn conversation<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.is_plain.load(Ordering::Relaxed) { without_thinking(text) } else { Cow::Borrowed(text) }
    }

    /// Leaves the thinking of models out from here on: the provider refused it. False where it was left out before.
    pub fn becomes_plain(&self) -> bool {
        !self.is_plain.swap(true, Ordering::Relaxed)
    }

    /// Its window as far as it is known, in tokens.
    pub fn window(&self) -> u64 {
        self.window.load(Ordering::Relaxed)
    }

    /// The scale of this model, which has reported nothing yet.
    fn own_scale(&self) -> Scale {
        Scale::expected(self.scale.estimator(), Some(&self.candidate.model.provider))
    }

    /// Largest answer, in tokens.
    pub fn answer(&self, part: Part) -> u64 {
        let reserve = self.reserve.min(self.window() / 2);
        let most = match part {
            Part::History => reserve * 4 / 5,
            Part::TurnPrefix => reserve / 2,
            Part::Short => (reserve / 5).min(512),
        };
        most.min(self.candidate.output.unwrap_or(u64::MAX)).max(16)
    }

    /// Largest text of a part with this share of the summary, in tokens of the session. Where it is carried along, it
    /// leaves half of the room for the rest of the conversation. None where the window leaves no room.
    pub fn most(&self, brief: &Brief, part: Part, share: u64) -> Option<u64> {
        let half = self.scale.size(self.room(brief, part, Some(""))? / 2);
        Some(share.min(self.answer(part)).min(half))
    }

    /// Room for a conversation, in estimated tokens. None where the window leaves none.
    pub fn room(&self, brief: &Brief, part: Part, previous: Option<&str>) -> Option<u64> {
        let ask = Ask { part, conversation: "", previous, most: self.answer(part), refused: Some(&"x".repeat(200)) };
        let around = self.scale.estimate(&brief.text(&ask)) + self.scale.estimate(&brief.system()) + 64;
        let around = self.own_scale().size(around);
        let answer = self.answer(part) + thinking_room(self.candidate, Reasoning::Off);
        Some(self.own_scale().unscaled(fold::room(self.window(), answer, around)?))
    }

    /// The most tokens that a request takes with a conversation of `tokens` estimated tokens in it: the request and its
    /// largest answer.
    pub fn most_tokens(&self, brief: &Brief, part: Part, tokens: u64, previous: Option<&str>) -> u64 {
        let ask = Ask { part, conversation: "", previous, most: self.answer(part), refused: Some(&"x".repeat(200)) };
        let around = self.scale.estimate(&brief.text(&ask)) + self.scale.estimate(&brief.system()) + 64;
        self.sent(tokens.saturating_add(around), part)
    }

    /// The most tokens of a request of `estimate` estimated tokens, its largest answer included.
    pub fn sent(&self, estimate: u64, part: Part) -> u64 {
        let answer = self.answer(part) + thinking_room(self.candidate, Reasoning::Off);
        self.input(estimate).saturating_add(answer)
    }

    /// The input of a request of about `estimate` tokens, by a safe estimate.
    pub fn input(&self, estimate: u64) -> u64 {
        self.own_scale().size(estimate)
    }

    /// The window that a server really has, where it cut a request of about `estimate` tokens and read `reported`.
    pub fn truncated(&self, reported: u64, estimate: u64, text: &str) -> Option<u64> {
        let served = evidence::served(reported, estimate)?;
        match self.scale.estimator() {
            Estimator::Tiktoken => Some(served),
            // A quarter of the characters is far too many for blanks, so the text is counted.
            Estimator::Chars => evidence::served(reported, u64::from(tokens::of_text(text))),
        }
    }

    /// Makes the window smaller after an overflow of a request of `estimate` tokens that was planned for a window of
    /// `before`: to the size that the clue says, or to half. False where the result is too small to work in.
    pub fn shrink(&self, before: u64, clue: Clue, estimate: u64) -> bool {
        let sent = self.own_scale().size(estimate);
        let smaller = match clue {
            Clue::Stated(window) | Clue::Served(window) if window < before => window,
            // The request did not fit, whatever size the clue says.
            _ => before.min(sent + self.answer(Part::History)) / 2,
        };
        // Two parts may meet the same limit. The window shrinks by the larger step, not by both.
        self.window.fetch_min(smaller, Ordering::Relaxed).min(smaller) >= SMALLEST_WINDOW
    }
}

/// The requests that a candidate takes for its summary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Planned {
    /// Their number, the short summary included where there is one.
    pub requests: usize,
    /// The most tokens that they take together, without the short summary and without repeated requests.
    pub tokens: u64,
}

/// The requests that a candidate takes for its summary. The length of the summary that later requests carry along is a
/// guess for their number, half of its limit, and the limit for their tokens.
#[must_use]
pub fn planned(material: &Material, brief: &Brief, candidate: &Candidate, reserve: u64, scale: Scale) -> Planned {
    let summarizer = Summarizer::new(candidate, reserve, scale);
    let shares = material.shares();
    let chunks = |part: Part| {
        let (pieces, previous) = material.part(part);
        if pieces.is_empty() {
            return (0, 0);
        }
        let share = if part == Part::History { shares.history } else { shares.prefix };
        let rooms = (summarizer.room(brief, part, previous), summarizer.most(brief, part, share));
        let (Some(room), Some(most)) = rooms else { return (1, 0) };
        let until = pieces.end_of_chunk(0, room);
        let carried = scale.unscaled(most) / 2;
        let room = summarizer.room(brief, part, Some("")).unwrap_or(room).saturating_sub(carried).max(1);
        let chunks = 1 + pieces.chunks(until, room);
        let first = summarizer.most_tokens(brief, part, 0, previous);
        let later = summarizer.most_tokens(brief, part, scale.unscaled(most), Some(""));
        let texts = summarizer.own_scale().size(pieces.tokens());
        (chunks, texts.saturating_add(first).saturating_add(later.saturating_mul(chunks as u64 - 1)))
    };
    let (history, prefix) = (chunks(Part::History), chunks(Part::TurnPrefix));
    Planned {
        requests: history.0 + prefix.0 + usize::from(brief.has_short()),
        tokens: history.1.saturating_add(prefix.1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ids::ModelRef, models::candidates::Way};

    #[test]
    fn a_window_shrinks_to_what_a_clue_says_or_by_half() {
        let model = ModelRef::parse("some/model").expect("a model");
        let candidate = Candidate { model, window: 100_000, output: None, thinks: false, way: Way::Client };
        let after = |clue: Clue, estimate: u64| {
            let summarizer = Summarizer::new(&candidate, 16_384, Scale::new(Estimator::Tiktoken, 1.0));
            let works = summarizer.shrink(100_000, clue, estimate);
            (summarizer.window(), works)
        };
        assert_eq!(after(Clue::Stated(32_000), 90_000), (32_000, true));
        assert_eq!(after(Clue::Served(4_096), 90_000), (4_096, true));
        assert_eq!(after(Clue::None, 200_000), (50_000, true));
        assert_eq!(after(Clue::Stated(200_000), 200_000), (50_000, true), "a clue that says nothing new");
        assert_eq!(after(Clue::Stated(1_023), 90_000), (1_023, false));
        let (window, _) = after(Clue::None, 10_000);
        assert!(window < 20_000, "half of what was sent, with its answer: {window}");
    }

    #[test]
    fn two_overflows_at_the_same_limit_shrink_a_window_once() {
        let model = ModelRef::parse("some/model").expect("a model");
        let candidate = Candidate { model, window: 100_000, output: None, thinks: false, way: Way::Client };
        let summarizer = Summarizer::new(&candidate, 16_384, Scale::new(Estimator::Tiktoken, 1.0));
        assert!(summarizer.shrink(100_000, Clue::Stated(40_000), 90_000));
        assert!(summarizer.shrink(100_000, Clue::None, 200_000));
        assert_eq!(summarizer.window(), 40_000);
    }
}
