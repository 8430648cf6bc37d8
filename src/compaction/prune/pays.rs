//! Whether a pruning pays. An edit of an old result makes the provider's prompt cache useless after it: the next request
//! writes that part anew instead of reading it. Later requests do not read the removed tokens any more, and the next
//! compaction comes later.

use super::cache::{Cache, Cold};
use crate::models::prices::{Basis, Rates};
use std::fmt;

/// The most requests over which the removed tokens are counted as saved. A recorded request of an agent is followed by 13
/// others in its turn, on average over 188 turns of 13 sessions. After the turn the cache is rarely warm.
pub const MOST_REQUESTS: u64 = 13;

/// Size of a summary, in tokens, as far as its limit allows: one of a long session, with its headings and lists of files.
pub const SUMMARY: u64 = 2_000;

/// The facts about a pruning. All sizes are in tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Facts {
    /// The tokens that leave.
    pub saved: u64,
    /// The tokens after the first of them that stay.
    pub behind: u64,
    /// The cache at the provider.
    pub cache: Cache,
    /// The prices of the session's model.
    pub rates: Rates,
    /// The requests for which the saving lasts.
    pub requests: u64,
    /// The compaction that comes later.
    pub postponed: Postponed,
}

/// A compaction that a pruning postpones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Postponed {
    /// The tokens that the summarizer reads.
    pub read: u64,
    /// The tokens of its answer.
    pub answered: u64,
    /// The tokens of the compacted context, which the next request writes to the cache.
    pub written: u64,
    /// The part of its cost that is saved: the room that the pruning makes, by the room that the compaction makes.
    pub share: f64,
}

/// A pruning that was judged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judged {
    facts: Facts,
    /// The judgement.
    pub verdict: Verdict,
}

/// Whether a pruning pays. Costs are dollars, or the price of so many input tokens where no price is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// It breaks no cache.
    Free(Cold),
    /// It saves at least as much as it costs.
    Pays {
        /// Cost of writing the cache again.
        cost: f64,
        /// The saving.
        saves: f64,
    },
    /// It costs more than it saves.
    Loses {
        /// Cost of writing the cache again.
        cost: f64,
        /// The saving.
        saves: f64,
    },
}

/// The reason why nothing was pruned, or the judgement of a pruning.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Considered {
    /// The results that may leave have fewer tokens than `prune.minimumSavings`.
    Nothing {
        /// The setting.
        minimum: u64,
    },
    /// The context would still be over its threshold.
    TooLittle {
        /// The tokens that would leave.
        saved: u64,
        /// The size of the context after it.
        left: u64,
        /// The threshold.
        threshold: u64,
    },
    /// It would bring the context below its threshold.
    Judged(Judged),
}

/// Judges a pruning.
#[must_use]
pub fn judge(facts: Facts) -> Judged {
    let Facts { saved, behind, rates, requests, postponed, .. } = facts;
    let of = |tokens: u64, price: f64| tokens as f64 * price / 1e6;
    // An automatic cache writes for the price of input. A free write costs less than a read, and then nothing is lost.
    let anew = (rates.cache_write - rates.cache_read).max(0.0);
    let cost = of(behind, anew);
    let compaction =
        of(postponed.read, rates.input) + of(postponed.answered, rates.output) + of(postponed.written, anew);
    let saves = of(saved, rates.cache_read) * requests as f64 + compaction * postponed.share;
    let verdict = match facts.cache {
        Cache::Cold(cold) => Verdict::Free(cold),
        Cache::Warm { .. } if saves >= cost => Verdict::Pays { cost, saves },
        Cache::Warm { .. } => Verdict::Loses { cost, saves },
    };
    Judged { facts, verdict }
}

impl Judged {
    /// Whether the pruning costs no more than it saves.
    #[must_use]
    pub fn pays(&self) -> bool {
        !matches!(self.verdict, Verdict::Loses { .. })
    }

    /// A cost as a person reads it.
    fn amount(&self, cost: f64) -> String {
        match self.facts.rates.basis {
            Basis::Listed | Basis::CacheAssumed => format!("${cost:.4}"),
            Basis::Ratios => format!("the price of {:.0} input tokens", cost * 1e6),
        }
    }

    /// The saving in words.
    fn savings(&self, saves: f64) -> String {
        let requests = match self.facts.requests {
            1 => "the next request".to_owned(),
            requests => format!("the next {requests} requests"),
        };
        format!("{}, which {requests} and a later compaction save", self.amount(saves))
    }

    /// The source of the prices, where they are not listed.
    fn basis(&self) -> String {
        let Rates { input, output, cache_read, cache_write, basis } = self.facts.rates;
        let (read, written) = (cache_read / input, cache_write / input);
        match basis {
            Basis::Listed => String::new(),
            Basis::CacheAssumed => {
                format!(" (prices of the cache are assumed: {read:.2} × input to read, {written:.2} × input to write)")
            }
            Basis::Ratios => format!(
                " (no prices are known; assumed are {read:.2} × input to read the cache, {written:.2} × to write it, \
                 {output:.0} × for output)"
            ),
        }
    }
}

/// The effect of a pruning, as a part of a sentence.
impl fmt::Display for Judged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Facts { saved, behind, cache, .. } = self.facts;
        let age = match cache {
            Cache::Warm { age } => age,
            Cache::Cold(_) => 0,
        };
        match self.verdict {
            Verdict::Free(Cold::Expired { age, kept }) => write!(
                f,
                "it saves {saved} tokens and breaks no prompt cache: the last answer is {age} s old, and a prompt is cached \
                 for {kept} s"
            ),
            Verdict::Free(Cold::Unused) => {
                write!(f, "it saves {saved} tokens and breaks no prompt cache: no answer reports cached tokens")
            }
            Verdict::Free(Cold::NoAnswer) => write!(
                f,
                "it saves {saved} tokens and breaks no prompt cache: the model has not answered since the context changed"
            ),
            Verdict::Pays { cost, saves } => write!(
                f,
                "it saves {saved} tokens; the prompt cache is warm (last answer {age} s ago), but writing {behind} tokens to \
                 it again costs {}, not more than {}{}",
                self.amount(cost),
                self.savings(saves),
                self.basis()
            ),
            Verdict::Loses { cost, saves } => write!(
                f,
                "it saves {saved} tokens, but the prompt cache is warm (last answer {age} s ago): writing {behind} tokens to \
                 it again costs {}, more than {}{}",
                self.amount(cost),
                self.savings(saves),
                self.basis()
            ),
        }
    }
}

/// Whether the last pruning was made, and why, as a sentence.
impl fmt::Display for Considered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing { minimum } => write!(
                f,
                "No results were pruned: those that may leave have fewer than {minimum} tokens (prune.minimumSavings)."
            ),
            Self::TooLittle { saved, left, threshold } => write!(
                f,
                "No results were pruned: without {saved} tokens of them the context has {left}, still over the threshold \
                 of {threshold}."
            ),
            Self::Judged(judged) if judged.pays() => write!(f, "Old results were pruned: {judged}."),
            Self::Judged(judged) => write!(f, "No results were pruned: {judged}."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(basis: Basis) -> Rates {
        match basis {
            Basis::Ratios => Rates { input: 1.0, output: 4.0, cache_read: 0.1, cache_write: 1.0, basis },
            _ => Rates { input: 3.0, output: 15.0, cache_read: 0.3, cache_write: 3.75, basis },
        }
    }

    /// 40,000 of 170,000 tokens leave.
    fn facts() -> Facts {
        Facts {
            saved: 40_000,
            behind: 110_000,
            cache: Cache::Warm { age: 12 },
            rates: rates(Basis::Listed),
            requests: 13,
            postponed: Postponed { read: 140_000, answered: 2_000, written: 22_000, share: 0.3 },
        }
    }

    #[test]
    fn a_pruning_pays_where_a_cold_cache_or_its_saving_covers_what_is_written_again() {
        let none = Postponed { read: 0, answered: 0, written: 0, share: 1.0 };
        let free_cache = Rates { cache_read: 3.0, cache_write: 0.0, ..rates(Basis::Listed) };
        for (facts, pays) in [
            (Facts { cache: Cache::Cold(Cold::Unused), behind: u64::MAX, ..facts() }, true),
            (Facts { cache: Cache::Cold(Cold::NoAnswer), ..facts() }, true),
            (Facts { cache: Cache::Cold(Cold::Expired { age: 301, kept: 300 }), ..facts() }, true),
            // 110,000 × $3.45 = $0.3795 against 13 × 40,000 × $0.3 + 0.3 × ($0.42 + $0.03 + $0.0759) = $0.31377.
            (facts(), false),
            (Facts { behind: 90_947, ..facts() }, true),
            (Facts { behind: 90_949, ..facts() }, false),
            (Facts { behind: 0, saved: 0, postponed: none, ..facts() }, true),
            (Facts { requests: 19, ..facts() }, true),
            (Facts { postponed: Postponed { share: 0.6, ..facts().postponed }, ..facts() }, true),
            (Facts { postponed: none, ..facts() }, false),
            (Facts { rates: free_cache, postponed: none, ..facts() }, true),
        ] {
            let judged = judge(facts);
            assert_eq!(judged.pays(), pays, "{judged}");
        }
    }

    #[test]
    fn a_price_list_changes_the_judgement() {
        // Cheap reads make the saving small; a dear compaction makes it large.
        let cheap = Rates { cache_read: 0.03, ..rates(Basis::Listed) };
        let slow = Rates { output: 150.0, ..rates(Basis::Listed) };
        let verdict = |rates| judge(Facts { behind: 90_000, rates, ..facts() }).pays();
        assert_eq!([rates(Basis::Listed), cheap, slow].map(verdict), [true, false, true]);
    }

    #[test]
    fn each_judgement_is_a_sentence_with_its_numbers() {
        let nothing = Considered::Nothing { minimum: 20_000 };
        let too_little = Considered::TooLittle { saved: 21_000, left: 180_000, threshold: 170_000 };
        let of = |facts| Considered::Judged(judge(facts));
        for (considered, expected) in [
            (
                nothing,
                "No results were pruned: those that may leave have fewer than 20000 tokens (prune.minimumSavings).",
            ),
            (
                too_little,
                "No results were pruned: without 21000 tokens of them the context has 180000, still over the threshold of 170000.",
            ),
            (
                of(facts()),
                "No results were pruned: it saves 40000 tokens, but the prompt cache is warm (last answer 12 s ago): writing \
                 110000 tokens to it again costs $0.3795, more than $0.3138, which the next 13 requests and a later compaction save.",
            ),
            (
                of(Facts { behind: 10_000, rates: rates(Basis::CacheAssumed), ..facts() }),
                "Old results were pruned: it saves 40000 tokens; the prompt cache is warm (last answer 12 s ago), but writing \
                 10000 tokens to it again costs $0.0345, not more than $0.3138, which the next 13 requests and a later compaction save \
                 (prices of the cache are assumed: 0.10 × input to read, 1.25 × input to write).",
            ),
            (
                of(Facts { rates: rates(Basis::Ratios), requests: 1, ..facts() }),
                "No results were pruned: it saves 40000 tokens, but the prompt cache is warm (last answer 12 s ago): writing \
                 110000 tokens to it again costs the price of 99000 input tokens, more than the price of 54340 input tokens, \
                 which the next request and a later compaction save (no prices are known; assumed are 0.10 × input to read the \
                 cache, 1.00 × to write it, 4 × for output).",
            ),
            (
                of(Facts { cache: Cache::Cold(Cold::Expired { age: 301, kept: 300 }), ..facts() }),
                "Old results were pruned: it saves 40000 tokens and breaks no prompt cache: the last answer is 301 s old, and \
                 a prompt is cached for 300 s.",
            ),
            (
                of(Facts { cache: Cache::Cold(Cold::Unused), ..facts() }),
                "Old results were pruned: it saves 40000 tokens and breaks no prompt cache: no answer reports cached tokens.",
            ),
            (
                of(Facts { cache: Cache::Cold(Cold::NoAnswer), ..facts() }),
                "Old results were pruned: it saves 40000 tokens and breaks no prompt cache: the model has not answered since \
                 the context changed.",
            ),
        ] {
            assert_eq!(considered.to_string(), expected);
        }
    }
}
