//! The prompt cache at the provider, by the reports of the answers on a path.

use crate::{
    conversation::{
        entry::{Entry, milliseconds},
        evidence,
        path::Path,
    },
    models::ModelRef,
};
use jiff::Timestamp;
use std::sync::Arc;

/// The state of the prompt cache for the context as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cache {
    /// The next request can read it.
    Warm {
        /// Time since the newest answer, in seconds.
        age: u64,
    },
    /// It holds nothing for the next request.
    Cold(Cold),
}

/// The reason why nothing is cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cold {
    /// The newest answer is older than the provider keeps a prompt.
    Expired {
        /// Time since the newest answer, in seconds.
        age: u64,
        /// Time for which a prompt is kept, in seconds.
        kept: u64,
    },
    /// No answer reports cached tokens.
    Unused,
    /// The model has not answered since the context was changed the last time.
    NoAnswer,
}

impl Cache {
    /// The cache for a model at a time. A provider keeps a prompt for `kept` seconds after the last request that used it.
    /// Answers from before the last change of the context do not count: the part after the change is written again in any
    /// case. An answer from the future, by a clock that was set, counts like one that is as old.
    #[must_use]
    pub fn of(path: &Path, model: Option<&ModelRef>, now: Timestamp, kept: u64) -> Self {
        let since = path.last_rewrite().map_or(0, |place| place + 1);
        let report = |entry: &Arc<Entry>| {
            let outline = entry.outline()?;
            let same = outline.model.is_none() || outline.model.as_ref() == model;
            outline.measured().filter(|_| same).map(|usage| (entry.timestamp.clone(), usage))
        };
        let mut reports = path[since.min(path.len())..].iter().rev().filter_map(report).peekable();
        let Some((newest, _)) = reports.peek() else { return Self::Cold(Cold::NoAnswer) };
        let age = now.as_millisecond().abs_diff(milliseconds(newest)) / 1_000;
        match () {
            () if !reports.any(|(_, usage)| evidence::shows_a_cache(&usage)) => Self::Cold(Cold::Unused),
            () if age > kept => Self::Cold(Cold::Expired { age, kept }),
            () => Self::Warm { age },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// Entries `e0`, `e1`, … of these times in seconds.
    fn path(entries: &[(u64, Value)]) -> Path {
        let mut path = Path::default();
        for (at, (seconds, line)) in entries.iter().enumerate() {
            let mut line = line.clone();
            line["id"] = format!("e{at}").into();
            line["parentId"] = at.checked_sub(1).map(|parent| format!("e{parent}")).into();
            line["timestamp"] = format!("1970-01-01T00:{:02}:{:02}.000Z", seconds / 60, seconds % 60).into();
            path.push(Arc::new(Entry::parse(line.to_string().into()).expect("an entry")));
        }
        path
    }

    fn answer(model: &str, read: u64, written: u64) -> Value {
        let usage = json!({"input": 5, "output": 5, "cacheRead": read, "cacheWrite": written, "totalTokens": 10 + read + written});
        json!({"type": "message", "message": {"role": "assistant", "content": [{"type": "text", "text": "x"}],
            "provider": "p", "model": model, "stopReason": "stop", "usage": usage}})
    }

    fn failed() -> Value {
        let mut failed = answer("m", 9, 9);
        failed["message"]["stopReason"] = "error".into();
        failed
    }

    #[test]
    fn the_newest_answer_of_the_model_since_the_last_change_tells_whether_the_cache_is_warm() {
        let edit = json!({"type": "context_edit", "targetId": "e0", "replacement": {"content": "x"}});
        let user = json!({"type": "message", "message": {"role": "user", "content": "x"}});
        let expired = |age| Cache::Cold(Cold::Expired { age, kept: 300 });
        let (unused, no_answer) = (Cache::Cold(Cold::Unused), Cache::Cold(Cold::NoAnswer));
        for (entries, now, expected) in [
            (vec![], 0, no_answer),
            (vec![(0, user.clone())], 0, no_answer),
            (vec![(10, answer("m", 0, 0))], 20, unused),
            (vec![(10, answer("m", 7, 0))], 310, Cache::Warm { age: 300 }),
            (vec![(10, answer("m", 0, 7))], 311, expired(301)),
            (vec![(10, answer("m", 0, 7)), (200, answer("m", 0, 0)), (400, user)], 500, Cache::Warm { age: 300 }),
            (vec![(10, answer("m", 0, 7)), (200, failed())], 400, expired(390)),
            (vec![(10, answer("m", 0, 7)), (400, answer("other", 9, 9))], 400, expired(390)),
            (vec![(10, answer("other", 0, 7))], 20, no_answer),
            (vec![(10, answer("m", 0, 7)), (11, edit.clone())], 20, no_answer),
            (vec![(10, answer("m", 0, 7)), (11, edit), (12, answer("m", 0, 7))], 20, Cache::Warm { age: 8 }),
            (vec![(1_000, answer("m", 0, 7))], 900, Cache::Warm { age: 100 }),
            (vec![(1_000, answer("m", 0, 7))], 600, expired(400)),
        ] {
            let model = ModelRef { provider: "p".into(), id: "m".into() };
            let now = Timestamp::from_second(now).expect("a time");
            assert_eq!(Cache::of(&path(&entries), Some(&model), now, 300), expected, "{entries:?} at {now}");
        }
    }
}
