//! The decision after an answer: whether a turn can go on from it, and the remedy where it cannot.
//!
//! Both are functions of facts. Sizes are in tokens.

use super::decide::Automatic;
use crate::{
    conversation::{entry::Attempts, message::StopReason},
    models::ModelRef,
    provider::overflow::{Reservation, is_far_off},
};

/// The window of the model that answered.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// Its size.
    pub window: u64,
    /// Whether that size is a default, because nobody said it.
    pub assumed: bool,
}

/// An answer at the leaf.
#[derive(Debug, Clone, Copy)]
pub struct Answer {
    /// The reason of its end.
    pub stop: StopReason,
    /// The meaning of its error.
    pub error: AnswerError,
    /// Whether it has text that is not empty.
    pub has_text: bool,
    /// Whether it has calls of tools.
    pub has_calls: bool,
    /// The input that the provider reported, cache included. `None` where it reported none, or none that is believed.
    pub input: Option<u64>,
    /// The output that the provider reported.
    pub output: u64,
    /// The size of the context with the answer.
    pub context_tokens: u64,
}

/// The meaning of an answer's error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerError {
    /// There is none, or it has another meaning.
    None,
    /// The request has more tokens than the window.
    TooManyTokens,
    /// The request fits with a smaller answer.
    Reserved(Reservation),
    /// The request has too many bytes. It is too long only where it nearly fills the window.
    TooManyBytes,
    /// The provider refuses its own compaction. The next request has the text in its place.
    RefusedBlock,
}

/// The state of a turn after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The turn can go on from the answer, or is over.
    Usable,
    /// The output limit or the end of the window cut the text of the answer. It stays.
    Shortened,
    /// The answer is whole, and its request had more tokens than the window.
    OverWindow,
    /// The request was refused for the room kept for its answer. It fits with a smaller one.
    Reserved(Reservation),
    /// The request was refused for the provider's own compaction in it. The next one has the text in its place.
    RefusedBlock,
    /// The turn cannot go on from the answer.
    Unusable(Trouble),
}

/// The reason for which a turn cannot go on from an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// The request was too long.
    TooLong,
    /// The window was full before the answer was complete.
    WindowFull,
    /// The output limit was reached before any text, or inside a call.
    CutOff,
}

/// The part of a window that input and output fill when an answer ends at the window, in percent. `maxOutputTokens` leaves a
/// twentieth of an estimated size free, and a hundredth is for the error of that estimate.
const FULL: u64 = 94;

impl Answer {
    /// The state of the turn after the answer.
    #[must_use]
    pub fn verdict(&self, room: Room) -> Verdict {
        let Room { window, assumed } = room;
        // The size of the context contains the answer.
        let filled = self.input.map_or(self.context_tokens, |input| input.saturating_add(self.output));
        let fills = |tokens: u64, percent: u64| tokens.saturating_mul(100) >= window.saturating_mul(percent);
        match (self.stop, self.error) {
            (StopReason::Error, AnswerError::TooManyTokens) => Verdict::Unusable(Trouble::TooLong),
            (StopReason::Error, AnswerError::Reserved(refused)) => Verdict::Reserved(refused),
            (StopReason::Error, AnswerError::RefusedBlock) => Verdict::RefusedBlock,
            (StopReason::Error, AnswerError::TooManyBytes) if fills(self.context_tokens, 90) => {
                Verdict::Unusable(Trouble::TooLong)
            }
            (StopReason::Error | StopReason::Aborted, _) => Verdict::Usable,
            (StopReason::Length, _) => match () {
                // The text was delivered, so it stays, also where the window is full: the threshold acts on that.
                () if self.has_text && !self.has_calls => Verdict::Shortened,
                () if !fills(filled, FULL) => Verdict::Unusable(Trouble::CutOff),
                () if self.output == 0 && !self.has_calls => Verdict::Unusable(Trouble::TooLong),
                () => Verdict::Unusable(Trouble::WindowFull),
            },
            _ if !assumed && self.input.is_some_and(|input| input > window) => Verdict::OverWindow,
            _ => Verdict::Usable,
        }
    }
}

/// The facts that the remedy depends on.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The trouble.
    pub trouble: Trouble,
    /// Whether automatic compaction is on.
    pub automatic: Automatic,
    /// Whether a compaction was written, or another model chosen, after the context of the failed request.
    pub stale: bool,
    /// A larger model that takes the context.
    pub larger: Option<ModelRef>,
    /// The attempts since the last progress.
    pub attempts: Attempts,
}

/// The remedy for an answer that a turn cannot go on from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remedy {
    /// The turn ends with its error: automatic compaction is off.
    None,
    /// The same request once more.
    Retry,
    /// The turn with the context that is in force: the failure says nothing about that one.
    Repeat,
    /// A larger model.
    Promote(ModelRef),
    /// A compaction to less than this share of the rejected context.
    Compact(Share),
    /// The attempts are used up.
    GiveUp(Attempts),
}

/// A share of a size, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share(u64);

impl Share {
    /// All of it.
    pub const WHOLE: Self = Self(100);
    /// 30 % less.
    pub const SMALLER: Self = Self(70);

    /// The share of a size.
    #[must_use]
    pub fn of(self, size: u64) -> u64 {
        size / 100 * self.0 + size % 100 * self.0 / 100
    }
}

/// Most moves to a larger model in a row. Models that name each other would take turns.
const MOST_PROMOTIONS: u32 = 3;
/// Most turns that are repeated in a row because their failures are about other contexts or models. Up to three requests that ran
/// beside each other may fail about one context. A host that names an old context or a changing model for each of them would
/// repeat its turn for ever.
const MOST_REPEATS: u32 = 3;
/// Most recoveries of requests that were too long, in a row.
const MOST_OVERFLOWS: u32 = 2;
/// Most recoveries in a row. Compactions at the threshold are none: `decide::MOST_MAINTENANCES` bounds them.
const MOST_RECOVERIES: u32 = 3;

/// The remedy.
#[must_use]
pub fn remedy(facts: Facts) -> Remedy {
    let Facts { trouble, automatic, stale, larger, attempts } = facts;
    if stale && attempts.repeats < MOST_REPEATS {
        return Remedy::Repeat;
    }
    if let Some(larger) = larger.filter(|_| attempts.promotions < MOST_PROMOTIONS) {
        return Remedy::Promote(larger);
    }
    if trouble != Trouble::CutOff && automatic != Automatic::On {
        return Remedy::None;
    }
    match trouble {
        _ if attempts.recoveries() >= MOST_RECOVERIES => Remedy::GiveUp(attempts),
        Trouble::TooLong if attempts.overflow >= MOST_OVERFLOWS => Remedy::GiveUp(attempts),
        Trouble::TooLong if attempts.overflow > 0 => Remedy::Compact(Share::SMALLER),
        Trouble::TooLong | Trouble::WindowFull => Remedy::Compact(Share::WHOLE),
        Trouble::CutOff => Remedy::Retry,
    }
}

/// The bound is a quarter of the rejected context at least, whatever size a provider states: a larger ratio is an error of
/// the provider, or counts text that no compaction removes. A second attempt, at 70 %, reaches a sixth.
const SMALLEST_PART: u64 = 4;

/// The window of a recovery's compaction: the rejected context bounds it. Where the provider states sizes, the bound is in
/// the proportion of its limit to its count of the request, and a quarter of the context at least. A count far off the size
/// of the context is not believed.
#[must_use]
pub fn bound(rejected: u64, share: Share, stated: Option<(u64, u64)>) -> u64 {
    let believed = |&(limit, requested): &(u64, u64)| limit < requested && !is_far_off(requested, rejected);
    let in_proportion = stated.filter(believed).map(|(limit, requested)| {
        let product = u128::from(rejected) * u128::from(limit) / u128::from(requested);
        u64::try_from(product).unwrap_or(rejected).max(rejected / SMALLEST_PART)
    });
    share.of(in_proportion.unwrap_or(rejected)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(stop: StopReason) -> Answer {
        Answer {
            stop,
            error: AnswerError::None,
            has_text: true,
            has_calls: false,
            input: Some(10_000),
            output: 100,
            context_tokens: 10_100,
        }
    }

    const ROOM: Room = Room { window: 100_000, assumed: false };

    #[test]
    fn a_refusal_is_too_long_by_its_error() {
        let refused = Answer { error: AnswerError::TooManyTokens, input: None, ..answer(StopReason::Error) };
        assert_eq!(refused.verdict(ROOM), Verdict::Unusable(Trouble::TooLong));
        let bytes = Answer { error: AnswerError::TooManyBytes, ..refused };
        assert_eq!(bytes.verdict(ROOM), Verdict::Usable);
        assert_eq!(Answer { context_tokens: 89_999, ..bytes }.verdict(ROOM), Verdict::Usable);
        let full = Answer { context_tokens: 90_000, ..bytes };
        assert_eq!(full.verdict(ROOM), Verdict::Unusable(Trouble::TooLong));
        assert_eq!(answer(StopReason::Error).verdict(ROOM), Verdict::Usable, "another error");
        let aborted = Answer { error: AnswerError::TooManyTokens, ..answer(StopReason::Aborted) };
        assert_eq!(aborted.verdict(ROOM), Verdict::Usable);
        for failed in [StopReason::Error, StopReason::Aborted] {
            let over = Answer { input: Some(100_001), ..answer(failed) };
            assert_eq!(over.verdict(ROOM), Verdict::Usable, "only a whole answer is over the window");
        }
    }

    #[test]
    fn a_refusal_for_the_room_of_an_answer_has_a_verdict_of_its_own() {
        let refused = Reservation::of(100_000, 10_000, 100_000).expect("a reservation");
        let error = AnswerError::Reserved(refused);
        assert_eq!(Answer { error, ..answer(StopReason::Error) }.verdict(ROOM), Verdict::Reserved(refused));
        for other in [StopReason::Aborted, StopReason::Stop] {
            assert_eq!(Answer { error, ..answer(other) }.verdict(ROOM), Verdict::Usable);
        }
    }

    #[test]
    fn an_answer_at_its_limit_is_kept_repeated_or_has_filled_the_window() {
        let length = answer(StopReason::Length);
        assert_eq!(length.verdict(ROOM), Verdict::Shortened);
        assert_eq!(Answer { has_text: false, ..length }.verdict(ROOM), Verdict::Unusable(Trouble::CutOff));
        assert_eq!(Answer { has_calls: true, ..length }.verdict(ROOM), Verdict::Unusable(Trouble::CutOff));
        let full = Answer { has_calls: true, input: Some(60_000), output: 34_000, ..length };
        assert_eq!(full.verdict(ROOM), Verdict::Unusable(Trouble::WindowFull));
        assert_eq!(Answer { output: 33_999, ..full }.verdict(ROOM), Verdict::Unusable(Trouble::CutOff));
        assert_eq!(Answer { has_calls: false, ..full }.verdict(ROOM), Verdict::Shortened, "delivered text stays");
        let empty = Answer { has_text: false, input: Some(94_000), output: 0, ..length };
        assert_eq!(empty.verdict(ROOM), Verdict::Unusable(Trouble::TooLong));
        assert_eq!(Answer { input: Some(93_999), ..empty }.verdict(ROOM), Verdict::Unusable(Trouble::CutOff));
        let estimated = Answer { input: None, context_tokens: 94_000, ..empty };
        assert_eq!(estimated.verdict(ROOM), Verdict::Unusable(Trouble::TooLong));
        assert_eq!(Answer { context_tokens: 93_999, ..estimated }.verdict(ROOM), Verdict::Unusable(Trouble::CutOff));
        for filled in [Answer { output: 1, ..empty }, Answer { has_calls: true, ..empty }] {
            assert_eq!(filled.verdict(ROOM), Verdict::Unusable(Trouble::WindowFull), "{filled:?}");
        }
        let counted = Answer { has_calls: true, input: None, output: 10_000, context_tokens: 93_999, ..length };
        assert_eq!(counted.verdict(ROOM), Verdict::Unusable(Trouble::CutOff), "the context counts the output once");
    }

    #[test]
    fn an_answer_over_the_window_stays() {
        let over = Answer { input: Some(100_001), ..answer(StopReason::Stop) };
        assert_eq!(over.verdict(ROOM), Verdict::OverWindow);
        assert_eq!(over.verdict(Room { assumed: true, ..ROOM }), Verdict::Usable);
        assert_eq!(Answer { input: Some(100_000), ..over }.verdict(ROOM), Verdict::Usable);
        assert_eq!(Answer { input: Some(20_000_000), ..over }.verdict(ROOM), Verdict::OverWindow);
    }

    fn facts(trouble: Trouble) -> Facts {
        Facts { trouble, automatic: Automatic::On, stale: false, larger: None, attempts: Attempts::default() }
    }

    #[test]
    fn the_remedy_is_the_mildest_that_was_not_tried() {
        use Trouble::{CutOff, TooLong, WindowFull};
        let larger = ModelRef::parse("p/large");
        let overflows = |overflow| Attempts { overflow, ..Attempts::default() };
        let incompletes = |incomplete| Attempts { incomplete, ..Attempts::default() };
        let compacted = |compactions, overflow| Attempts { compactions, ..overflows(overflow) };
        let repeated = |repeats| Attempts { repeats, ..Attempts::default() };
        let mixed = Attempts { incomplete: 2, compactions: 1, ..overflows(1) };
        let promoted = |promotions| {
            let attempts = Attempts { promotions, ..Attempts::default() };
            Facts { attempts, larger: ModelRef::parse("p/large"), ..facts(TooLong) }
        };
        for (facts, expected) in [
            (facts(TooLong), Remedy::Compact(Share::WHOLE)),
            (facts(WindowFull), Remedy::Compact(Share::WHOLE)),
            (facts(CutOff), Remedy::Retry),
            (Facts { stale: true, ..facts(TooLong) }, Remedy::Repeat),
            (Facts { stale: true, attempts: repeated(2), ..facts(TooLong) }, Remedy::Repeat),
            (Facts { stale: true, attempts: repeated(3), ..facts(TooLong) }, Remedy::Compact(Share::WHOLE)),
            (Facts { larger: larger.clone(), ..facts(TooLong) }, Remedy::Promote(larger.clone().expect("a model"))),
            (Facts { larger: larger.clone(), stale: true, ..facts(TooLong) }, Remedy::Repeat),
            (Facts { automatic: Automatic::Disabled, ..facts(TooLong) }, Remedy::None),
            (Facts { automatic: Automatic::Disabled, ..facts(WindowFull) }, Remedy::None),
            (Facts { automatic: Automatic::Disabled, ..facts(CutOff) }, Remedy::Retry),
            (
                Facts { automatic: Automatic::Disabled, larger: larger.clone(), ..facts(TooLong) },
                Remedy::Promote(larger.clone().expect("a model")),
            ),
            (Facts { automatic: Automatic::ReadOnly, ..facts(TooLong) }, Remedy::None),
            (Facts { larger: larger.clone(), ..facts(CutOff) }, Remedy::Promote(larger.clone().expect("a model"))),
            (Facts { attempts: overflows(1), ..facts(TooLong) }, Remedy::Compact(Share::SMALLER)),
            (Facts { attempts: overflows(2), ..facts(WindowFull) }, Remedy::Compact(Share::WHOLE)),
            (Facts { attempts: overflows(2), ..facts(TooLong) }, Remedy::GiveUp(overflows(2))),
            (
                Facts { attempts: overflows(2), larger: larger.clone(), ..facts(TooLong) },
                Remedy::Promote(larger.expect("a model")),
            ),
            (promoted(2), Remedy::Promote(ModelRef::parse("p/large").expect("a model"))),
            (promoted(3), Remedy::Compact(Share::WHOLE)),
            (Facts { attempts: incompletes(2), ..facts(CutOff) }, Remedy::Retry),
            (Facts { attempts: incompletes(3), ..facts(CutOff) }, Remedy::GiveUp(incompletes(3))),
            (Facts { attempts: mixed, ..facts(TooLong) }, Remedy::GiveUp(mixed)),
            // Compactions at the threshold are no attempts to recover.
            (Facts { attempts: compacted(3, 0), ..facts(TooLong) }, Remedy::Compact(Share::WHOLE)),
            (Facts { attempts: compacted(3, 1), ..facts(TooLong) }, Remedy::Compact(Share::SMALLER)),
            (Facts { attempts: compacted(3, 2), ..facts(TooLong) }, Remedy::GiveUp(compacted(3, 2))),
            (Facts { attempts: compacted(3, 0), ..facts(WindowFull) }, Remedy::Compact(Share::WHOLE)),
        ] {
            assert_eq!(remedy(facts.clone()), expected, "{facts:?}");
        }
    }

    #[test]
    fn the_bound_is_below_the_rejected_size_in_its_own_unit() {
        assert_eq!(bound(20_000, Share::WHOLE, None), 20_000);
        assert_eq!(bound(20_000, Share::SMALLER, None), 14_000);
        assert_eq!(bound(20_050, Share::SMALLER, None), 14_035);
        assert_eq!(bound(20_000, Share::WHOLE, Some((32_000, 40_000))), 16_000);
        assert_eq!(bound(20_000, Share::SMALLER, Some((32_000, 40_000))), 11_200);
        assert_eq!(bound(20_000, Share::WHOLE, Some((40_000, 32_000))), 20_000, "no refusal states that");
        assert_eq!(bound(16_042, Share::WHOLE, Some((8_000, 48_126))), 4_010, "a quarter at least");
        assert_eq!(bound(16_042, Share::SMALLER, Some((8_000, 48_126))), 2_807);
        assert_eq!(bound(16_042, Share::WHOLE, Some((8_000, 48_127))), 16_042, "over three times the estimate");
        assert_eq!(bound(16_042, Share::SMALLER, Some((4_000, 5_347))), 11_229, "under a third of it");
        assert_eq!(bound(16_042, Share::WHOLE, Some((4_000, 5_348))), 11_998);
        assert_eq!(bound(20_000, Share::WHOLE, Some((10_001, 40_000))), 5_000);
        assert_eq!(bound(u64::MAX, Share::WHOLE, Some((1, u64::MAX))), u64::MAX / 4);
        assert_eq!(bound(0, Share::SMALLER, None), 1);
    }
}
