//! A session that goes on with a cold prompt cache: the next request pays for its whole context, and a compaction before it pays
//! for less.

use super::gauge::Fullness;
use crate::{
    compaction::prune::pays::SUMMARY,
    conversation::{entry::milliseconds, message::outline::Role, path::Path},
    ids::EntryId,
    models::{
        ModelRef, caches,
        prices::{self, Basis},
    },
    settings::Settings,
    text::grouped,
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

/// The cost of the next request of a session whose prompt cache is cold. Costs are in dollars, and absent where no price is known
/// or the model is free. They are those of input: the answer costs the same in any case.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ColdResume {
    /// Age of the newest answer, in seconds.
    pub age_seconds: u64,
    /// The longest time for which the provider keeps a prompt, in seconds.
    pub cache_seconds: u64,
    /// Size of the context, which the next request sends anew.
    pub tokens: u64,
    /// Estimated size of the context after a compaction.
    pub tokens_after: u64,
    /// Cost of the context in the next request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Cost of the context in the next request after a compaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_after: Option<f64>,
    /// Cost of the compaction, if the model of the session writes the summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compaction_cost: Option<f64>,
    /// The newest answer.
    #[serde(skip)]
    pub report: EntryId,
}

/// The cold cache of a context.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Cold {
    report: EntryId,
    age: u64,
    kept: u64,
}

impl Cold {
    /// The cold cache of a path. `None` where it may be warm, and where nothing says how old it is: no report, an answer without a
    /// time, or one from the future, by a clock that differs. An answer without a report reads the prompt, too. A compaction after
    /// the newest report has made the context small.
    fn of(path: &Path, now: Timestamp, kept: u64) -> Option<Self> {
        let place = path.iter().rposition(|entry| entry.outline().is_some_and(|it| it.measured().is_some()))?;
        if path.compaction().is_some_and(|compaction| compaction > place) {
            return None;
        }
        let newest = path.iter().rposition(|entry| entry.is_from(Role::Assistant)).unwrap_or(place).max(place);
        let answered = Some(milliseconds(&path[newest].timestamp)).filter(|time| *time > 0)?;
        let age = u64::try_from(now.as_millisecond() - answered).ok()? / 1_000;
        (age > kept).then(|| Self { report: path[newest].id.clone(), age, kept })
    }
}

/// The size over which a context with a cold cache is large, in tokens.
#[must_use]
pub fn bound(fullness: &Fullness) -> u64 {
    let set = u64::try_from(fullness.compaction.cold_resume_tokens).ok();
    set.unwrap_or(fullness.budget.threshold / 2)
}

/// The cost of the next request of a path, if its cache is cold, its context is over the bound, and a compaction makes it smaller.
#[must_use]
pub fn resume(
    path: &Path,
    fullness: &Fullness,
    settings: &Settings,
    model: Option<&ModelRef>,
    now: Timestamp,
) -> Option<ColdResume> {
    let tokens = fullness.context_tokens;
    let budget = &fullness.budget;
    let keep = fullness.compaction.keep_recent_tokens.min(fullness.messages);
    let answered = SUMMARY.min(budget.summary_cap());
    let tokens_after = budget.overhead() + budget.pins + keep + answered;
    if tokens <= bound(fullness) || tokens_after >= tokens {
        return None;
    }
    let kept = caches::lifetime(model).max(settings.prune.cache_seconds);
    let Cold { report, age, kept } = Cold::of(path, now, kept)?;
    let rates = prices::rates(settings, model);
    // A list without a price of writing has a zero there.
    let written = rates.cache_write.max(rates.input);
    let of = |tokens: u64, price: f64| tokens as f64 * price / 1e6;
    let dollars = |cost: f64| (rates.basis != Basis::Ratios).then_some((cost * 1e6).round() / 1e6);
    let read = fullness.messages - keep;
    Some(ColdResume {
        age_seconds: age,
        cache_seconds: kept,
        tokens,
        tokens_after,
        cost: dollars(of(tokens, written)),
        cost_after: dollars(of(tokens_after, written)),
        compaction_cost: dollars(of(read, rates.input) + of(answered, rates.output)),
        report,
    })
}

impl ColdResume {
    /// The costs as a text for a person.
    #[must_use]
    pub fn detail(&self) -> String {
        let Self { age_seconds: age, cache_seconds: kept, tokens, tokens_after, .. } = self;
        let money = |cost: Option<f64>| cost.map(|cost| format!(" (about ${cost:.2})")).unwrap_or_default();
        let costs = self.compaction_cost.map(|cost| format!(" The compaction itself costs about ${cost:.2}."));
        format!(
            "The newest answer is {age} s old, and the provider keeps a prompt for {kept} s at most, so the next request sends {} \
             tokens anew{}. After session/compact it sends about {}{}.{} compaction.coldResume: \"compact\" compacts such a session \
             when it goes on, and \"off\" says nothing.",
            grouped(&tokens.to_string()),
            money(self.cost),
            grouped(&tokens_after.to_string()),
            money(self.cost_after),
            costs.unwrap_or_default(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compaction::{gauge::Source, lines},
        conversation::tokens::{Estimator, Scale},
        models::{Budget, SaidBy},
        settings::{CompactionSettings, Layers, layers},
    };
    use serde_json::{Value, json};

    fn answer(time: &str, usage: Value) -> Value {
        let message = json!({"role": "assistant", "content": [{"type": "text", "text": "x"}], "stopReason": "stop",
            "provider": "p", "model": "m", "usage": usage});
        json!({"type": "message", "time": time, "message": message})
    }

    fn used() -> Value {
        json!({"input": 10, "output": 1, "cacheRead": 0, "cacheWrite": 0})
    }

    fn path(entries: &[Value]) -> Path {
        let mut path = Path::default();
        for entry in lines::path(entries).iter() {
            let mut line: Value = serde_json::from_str(entry.line()).expect("JSON");
            if let Some(time) = line.get("time").cloned() {
                line["timestamp"] = time;
            }
            let entry = crate::conversation::entry::Entry::parse(line.to_string().into()).expect("an entry");
            path.push(std::sync::Arc::new(entry));
        }
        path
    }

    const AT: &str = "2026-01-01T10:00:00.000Z";

    /// A time so many seconds after `AT`.
    fn after(seconds: i64) -> Timestamp {
        let at: Timestamp = AT.parse().expect("a time");
        Timestamp::from_second(at.as_second() + seconds).expect("a time")
    }

    #[test]
    fn a_cache_is_cold_once_the_newest_answer_is_older_than_prompts_are_kept() {
        let user = json!({"type": "message", "time": "2026-01-01T12:00:00.000Z", "message": {"role": "user", "content": "go"}});
        let compaction = json!({"type": "compaction", "summary": "s", "firstKeptEntryId": "e0", "tokensBefore": 1});
        let (new, old) = (answer(AT, used()), answer("2025-12-31T10:00:00.000Z", used()));
        let nothing = json!({"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0});
        for (entries, seconds, cold) in [
            (vec![new.clone()], 301, Some(("e0", 301))),
            (vec![new.clone()], 300, None),
            (vec![new.clone(), user.clone()], 7_201, Some(("e0", 7_201))),
            (vec![old.clone(), new.clone()], 301, Some(("e1", 301))),
            (vec![old.clone(), new.clone()], 10, None),
            (vec![new.clone(), answer("2026-01-01T10:10:00.000Z", nothing.clone())], 301, None),
            (vec![new.clone(), answer("2026-01-01T10:10:00.000Z", nothing)], 901, Some(("e1", 301))),
            (vec![new.clone()], -86_400, None),
            (vec![answer("", used())], 301, None),
            (vec![answer("yesterday", used())], 301, None),
            (vec![user], 301, None),
            (vec![new.clone(), compaction.clone()], 301, None),
            (vec![new.clone(), compaction, new.clone()], 301, Some(("e2", 301))),
            (vec![], 301, None),
        ] {
            let found = Cold::of(&path(&entries), after(seconds), 300).map(|cold| (cold.report.to_string(), cold.age));
            let cold = cold.map(|(report, age)| (report.to_owned(), age));
            assert_eq!(found, cold, "{entries:?} after {seconds} s");
        }
    }

    fn fullness(context_tokens: u64, compaction: CompactionSettings) -> Fullness {
        Fullness {
            context_tokens,
            evident_tokens: context_tokens,
            source: Source::Estimate,
            is_anchored: false,
            messages: context_tokens.saturating_sub(10_000),
            summary_tokens: 0,
            image_bytes: 0,
            budget: Budget::of(200_000, &compaction, 6_000, 4_000),
            window_source: SaidBy::Setting,
            scale: Scale::new(Estimator::Chars, 1.0),
            calibration: None,
            compaction,
        }
    }

    /// The resume of a session with so many tokens whose only report is a day old.
    fn resumed(tokens: u64, compaction: CompactionSettings, model: Value) -> Option<ColdResume> {
        let settings = Layers::of(vec![(layers::Source::Global, json!({"models": [model]}))]).sourced().settings;
        let model = ModelRef { provider: "p".into(), id: "m".into() };
        resume(&path(&[answer(AT, used())]), &fullness(tokens, compaction), &settings, Some(&model), after(86_400))
    }

    #[test]
    fn a_cold_context_is_priced_over_its_bound() {
        let cost = json!({"provider": "p", "id": "m", "cost": {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75}});
        let resume = resumed(110_000, CompactionSettings::default(), cost.clone()).expect("a cold session");
        // 10,000 of overhead, 20,000 kept and 2,000 of a summary. The summarizer reads 80,000.
        assert_eq!((resume.tokens, resume.tokens_after, resume.cache_seconds), (110_000, 32_000, 3_600));
        assert_eq!([resume.cost, resume.cost_after, resume.compaction_cost], [Some(0.4125), Some(0.12), Some(0.27)]);
        let told = resume.detail();
        for part in
            ["86400 s old", "3600 s", "110,000 tokens anew (about $0.41)", "32,000 (about $0.12)", "about $0.27"]
        {
            assert!(told.contains(part), "{told}");
        }
        // Half of the threshold of 170,000.
        assert_eq!(resumed(85_000, CompactionSettings::default(), cost.clone()), None);
        assert!(resumed(85_001, CompactionSettings::default(), cost.clone()).is_some());
        let bound = |cold_resume_tokens| CompactionSettings { cold_resume_tokens, ..CompactionSettings::default() };
        assert!(resumed(50_001, bound(50_000), cost.clone()).is_some());
        assert_eq!(resumed(50_000, bound(50_000), cost.clone()), None);
        assert_eq!(resumed(32_000, bound(0), cost), None, "a compaction makes it no smaller");
    }

    #[test]
    fn without_prices_nothing_is_said_about_money() {
        for cost in [Value::Null, json!({"input": 0, "output": 0})] {
            let model = json!({"provider": "p", "id": "m", "cost": cost});
            let resume = resumed(110_000, CompactionSettings::default(), model).expect("a cold session");
            assert_eq!([resume.cost, resume.cost_after, resume.compaction_cost], [None; 3]);
            assert!(!resume.detail().contains('$'), "{}", resume.detail());
        }
    }
}
