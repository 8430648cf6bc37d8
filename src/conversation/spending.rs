//! Tokens that models took for work beside the turns of a session, by purpose, as `usage` entries record them.

use super::message::Usage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The reason for which a model was asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// A client asked for the work.
    Manual,
    /// The context exceeded the threshold.
    Threshold,
    /// The provider rejected the context as too long.
    Overflow,
    /// An answer was cut off.
    Incomplete,
    /// The session was idle.
    Idle,
    /// The new model has a smaller window.
    ModelSwitch,
    /// The summary was made before it was needed.
    Speculative,
    /// The entry names no reason, or one that is unknown here.
    #[default]
    #[serde(other)]
    Unknown,
}

impl Trigger {
    /// Whether no client asked for the work. An unknown reason is none of these.
    #[must_use]
    pub fn is_automatic(self) -> bool {
        !matches!(self, Self::Manual | Self::Unknown)
    }

    /// Its name in entries.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Manual => "manual",
            Self::Threshold => "threshold",
            Self::Overflow => "overflow",
            Self::Incomplete => "incomplete",
            Self::Idle => "idle",
            Self::ModelSwitch => "model_switch",
            Self::Speculative => "speculative",
            Self::Unknown => "unknown",
        }
    }
}

/// The cost of one request, as a `usage` entry records it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cost {
    /// The purpose of the request. Other programs and versions have names of their own.
    pub purpose: String,
    /// The reason of the request.
    pub trigger: Trigger,
    /// Its tokens.
    pub usage: Usage,
    /// Its price in millionths of a dollar. None where the entry names none.
    pub price: Option<u64>,
    /// The time of the entry, in milliseconds since 1970. Zero where the entry has none.
    pub at: i64,
}

impl Cost {
    /// Its tokens together.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.usage.context_tokens()
    }
}

/// A sum of costs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Sum {
    /// Number of requests that had a cost.
    pub requests: u64,
    /// Input that was not cached, in tokens.
    pub input: u64,
    /// Output, in tokens.
    pub output: u64,
    /// Input that the provider read from its cache, in tokens.
    pub cache_read: u64,
    /// Input that the provider wrote to its cache, in tokens.
    pub cache_write: u64,
    /// All tokens.
    pub total: u64,
    /// Their price as far as it is known, in millionths of a dollar.
    pub price: u64,
    /// Number of the requests whose price is known.
    pub priced: u64,
}

impl Sum {
    /// Adds a cost.
    pub fn add(&mut self, cost: &Cost) {
        let Usage { input, output, cache_read, cache_write, .. } = cost.usage;
        *self = self.plus(Self {
            requests: 1,
            input,
            output,
            cache_read,
            cache_write,
            total: cost.tokens(),
            price: cost.price.unwrap_or(0),
            priced: u64::from(cost.price.is_some()),
        });
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_add(other.requests),
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            total: self.total.saturating_add(other.total),
            price: self.price.saturating_add(other.price),
            priced: self.priced.saturating_add(other.priced),
        }
    }
}

/// The costs of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Spending {
    /// Sums by purpose.
    pub purposes: BTreeMap<String, Sum>,
    /// Sum of the automatic maintenance.
    pub automatic: Sum,
    /// The newest costs of automatic maintenance in the order of the file.
    pub recent: Recent,
    /// The tokens of summaries ahead of the threshold that came to nothing, up to the compaction that carries them.
    #[serde(skip_serializing_if = "Recent::is_empty")]
    pub unused: Recent,
    /// Whether costs before those that were read are missing, so that the sums are lower bounds.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_partial: bool,
}

/// Most purposes with a sum of their own. Names come from files.
const MOST_PURPOSES: usize = 16;
/// Longest name of a purpose, in bytes.
const LONGEST_NAME: usize = 32;
/// The name for all other purposes.
const OTHER: &str = "other";

impl Spending {
    /// Adds the cost of the next entry of the file.
    pub fn add(&mut self, cost: &Cost) {
        let known = self.purposes.contains_key(&cost.purpose);
        let fits = !cost.purpose.is_empty() && cost.purpose.len() <= LONGEST_NAME;
        let name = if known || fits && self.purposes.len() < MOST_PURPOSES { &cost.purpose } else { OTHER };
        match self.purposes.get_mut(name) {
            Some(sum) => sum.add(cost),
            None => self.purposes.entry(name.to_owned()).or_default().add(cost),
        }
        if cost.trigger.is_automatic() {
            self.automatic.add(cost);
            self.recent.add(cost.at, cost.tokens());
        }
    }

    /// Sum of all purposes.
    #[must_use]
    pub fn all(&self) -> Sum {
        self.purposes.values().fold(Sum::default(), |all, sum| all.plus(*sum))
    }

    /// Whether nothing was spent, as far as it is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.purposes.is_empty()
    }
}

/// Tokens with the times at which they were spent, in milliseconds of a clock, in the order of spending. All tokens of
/// `STEP` count from the first of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Recent(Vec<(i64, u64)>);

/// The resolution of a list in milliseconds: one minute.
const STEP: i64 = 60_000;
/// The time for which tokens count as those of the last hour, in milliseconds. The step counts for whole, so that none is
/// forgotten within the hour.
const HOUR: i64 = 3_600_000 + STEP;
/// Most items of a list. By a clock that goes forward they reach back four hours.
const MOST_RECENT: usize = 256;

impl Recent {
    /// Adds tokens.
    pub fn add(&mut self, at: i64, tokens: u64) {
        match self.0.last_mut() {
            Some((first, sum)) if (0..STEP).contains(&at.saturating_sub(*first)) => *sum = sum.saturating_add(tokens),
            _ => {
                if self.0.len() >= MOST_RECENT {
                    self.0.remove(0);
                }
                self.0.push((at, tokens));
            }
        }
    }

    /// The list by another clock, which shows `now` where this one shows `here`. Times after `here` become `now`.
    #[must_use]
    pub fn by(&self, here: i64, now: i64) -> Self {
        let moved = |at: i64| now.saturating_sub(here.saturating_sub(at).max(0));
        Self(self.0.iter().map(|(at, tokens)| (moved(*at), *tokens)).collect())
    }

    /// The items up to a time.
    #[must_use]
    pub fn until(&self, last: i64) -> Self {
        Self(self.0.iter().copied().filter(|(at, _)| *at <= last).collect())
    }

    /// The items of both lists.
    #[must_use]
    pub fn and(&self, later: &Self) -> Self {
        Self([self.0.as_slice(), &later.0].concat())
    }

    /// Drops the tokens that are not of the last hour.
    pub fn forget(&mut self, now: i64) {
        self.0.retain(|(at, _)| now.saturating_sub(*at) < HOUR);
    }

    /// Tokens of the last hour.
    #[must_use]
    pub fn in_hour(&self, now: i64) -> u64 {
        let recent = self.0.iter().filter(|(at, _)| now.saturating_sub(*at) < HOUR);
        recent.fold(0, |sum, (_, tokens)| sum.saturating_add(*tokens))
    }

    /// The first time from `now` on at which no more than `most` tokens are of the last hour.
    #[must_use]
    pub fn falls_to(&self, most: u64, now: i64) -> i64 {
        let mut ends: Vec<i64> =
            self.0.iter().map(|(at, _)| at.saturating_add(HOUR)).filter(|end| *end > now).collect();
        ends.sort_unstable();
        std::iter::once(now).chain(ends).find(|at| self.in_hour(*at) <= most).unwrap_or(now)
    }

    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn cost(purpose: &str, trigger: Trigger, input: u64) -> Cost {
        let usage = Usage { input, output: 2, cache_read: 3, cache_write: 4, total: 0 };
        Cost { purpose: purpose.to_owned(), trigger, usage, price: None, at: 1_000 }
    }

    #[test]
    fn a_trigger_is_written_as_it_is_read() {
        use Trigger::{Idle, Incomplete, Manual, ModelSwitch, Overflow, Speculative, Threshold, Unknown};
        for (trigger, automatic) in [
            (Manual, false),
            (Threshold, true),
            (Overflow, true),
            (Incomplete, true),
            (Idle, true),
            (ModelSwitch, true),
            (Speculative, true),
            (Unknown, false),
        ] {
            assert_eq!(json!(trigger), json!(trigger.name()));
            assert_eq!(serde_json::from_value::<Trigger>(json!(trigger.name())).expect("a trigger"), trigger);
            assert_eq!(trigger.is_automatic(), automatic, "{trigger:?}");
        }
    }

    #[test]
    fn costs_are_summed_by_purpose_and_those_of_automatic_maintenance_apart() {
        let mut spending = Spending::default();
        let (manual, threshold) = (Trigger::Manual, Trigger::Threshold);
        for (purpose, trigger) in [("compaction", manual), ("compaction", threshold), ("other", Trigger::Unknown)] {
            spending.add(&cost(purpose, trigger, 10));
        }
        let of = |requests: u64| Sum {
            requests,
            input: 10 * requests,
            output: 2 * requests,
            cache_read: 3 * requests,
            cache_write: 4 * requests,
            total: 19 * requests,
            ..Sum::default()
        };
        assert_eq!((spending.purposes["compaction"], spending.purposes["other"]), (of(2), of(1)));
        assert_eq!((spending.all(), spending.automatic, spending.recent.in_hour(0)), (of(3), of(1), 19));
        let read: Spending = serde_json::from_value(json!(spending)).expect("JSON");
        assert_eq!(read, spending);
    }

    #[test]
    fn a_file_with_many_purposes_has_few_sums() {
        let mut spending = Spending::default();
        for at in 0..100 {
            spending.add(&cost(&format!("purpose {at}"), Trigger::Idle, 1));
        }
        spending.add(&cost(&"x".repeat(33), Trigger::Idle, 1));
        spending.add(&cost("", Trigger::Idle, 1));
        assert_eq!(spending.purposes.len(), MOST_PURPOSES + 1);
        assert_eq!((spending.purposes[OTHER].requests, spending.all().requests), (86, 102));
    }

    const MINUTE: i64 = 60_000;

    fn recent(items: &[(i64, u64)]) -> Recent {
        let mut recent = Recent::default();
        items.iter().for_each(|(minute, tokens)| recent.add(minute * MINUTE, *tokens));
        recent
    }

    #[test]
    fn tokens_count_for_an_hour_and_no_longer_than_a_minute_more() {
        let mut recent = recent(&[(0, 1)]);
        recent.add(MINUTE - 1, 2);
        recent.add(MINUTE, 4);
        assert_eq!(recent.0.len(), 2, "one item for each minute");
        for (at, expected) in [(MINUTE, 7), (60 * MINUTE, 7), (61 * MINUTE - 1, 7), (61 * MINUTE, 4), (62 * MINUTE, 0)]
        {
            assert_eq!(recent.in_hour(at), expected, "{at}");
            let mut known = recent.clone();
            known.forget(at);
            assert_eq!(known.in_hour(at), expected, "{at}");
        }
    }

    #[test]
    fn a_list_says_when_few_tokens_are_left_of_the_hour() {
        let recent = recent(&[(0, 100), (10, 50), (20, 25)]);
        for (most, minute) in [(175, 30), (174, 61), (75, 61), (74, 71), (25, 71), (24, 81), (0, 81)] {
            assert_eq!(recent.falls_to(most, 30 * MINUTE), minute * MINUTE, "{most}");
        }
    }

    #[test]
    fn a_list_by_another_clock_has_the_same_ages_and_none_from_the_future() {
        let moved = recent(&[(0, 1), (50, 2), (2_000, 4)]).by(60 * MINUTE, 1_000 * MINUTE);
        assert_eq!(moved.0, [(940 * MINUTE, 1), (990 * MINUTE, 2), (1_000 * MINUTE, 4)]);
    }

    #[test]
    fn a_clock_that_jumps_back_makes_no_tokens_disappear() {
        let recent = recent(&[(1_440, 1), (0, 2), (1_441, 4)]);
        assert_eq!(recent.in_hour(1_441 * MINUTE), 5);
        assert_eq!(recent.in_hour(0), 7, "tokens of the future count");
        assert_eq!(recent.in_hour(i64::MIN), 7);
        assert_eq!(recent.in_hour(i64::MAX), 0);
    }

    #[test]
    fn a_list_is_bounded() {
        let mut recent = Recent::default();
        (0..10_000).for_each(|minute| recent.add(minute * MINUTE, 1));
        assert_eq!(recent.0.len(), MOST_RECENT);
        assert_eq!(recent.in_hour(9_999 * MINUTE), 61);
    }
}
