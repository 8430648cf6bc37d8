//! The cost in a `usage` entry, of this program or another.

use super::{Head, milliseconds, text};
use crate::conversation::{message::Usage, spending::Cost};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

impl Cost {
    /// The cost that a line records; none where it is of another type.
    #[must_use]
    pub fn of(head: &Head<'_>) -> Option<Self> {
        #[derive(Deserialize)]
        struct Priced {
            cost: Total,
        }
        #[derive(Deserialize)]
        struct Total {
            total: f64,
        }
        /// Millionths of a dollar; no request costs more than a million dollars.
        const MOST: f64 = 1e12;
        if !matches!(head.kind.as_ref(), "usage" | "model_usage") {
            return None;
        }
        let name = |json: Option<&RawValue>| json.and_then(text).map(Cow::into_owned);
        let purpose = name(head.purpose).or_else(|| name(head.use_kind)).unwrap_or_default();
        let trigger = head.trigger.and_then(|json| serde_json::from_str(json.get()).ok()).unwrap_or_default();
        let price = head.usage.and_then(|json| serde_json::from_str::<Priced>(json.get()).ok());
        let price = price.map(|priced| priced.cost.total * 1e6).filter(|micros| *micros > 0.0 && *micros < MOST);
        let at = head.timestamp.and_then(text).map_or(0, |time| milliseconds(&time));
        let usage = head.usage.and_then(Usage::read).unwrap_or_default();
        Some(Self { purpose, trigger, usage, price: price.map(|micros| micros.round() as u64), at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::spending::Trigger;
    use serde_json::{Value, json};

    fn cost(line: &Value) -> Option<Cost> {
        let line = line.to_string();
        Cost::of(&Head::read(&line).expect("a line"))
    }

    fn line(purpose: &str, trigger: &str, input: u64) -> Value {
        json!({"type": "usage", "id": "a", "timestamp": "1970-01-01T00:00:01.000Z", "purpose": purpose,
            "trigger": trigger, "usage": {"input": input, "output": 2, "cacheRead": 3, "cacheWrite": 4}})
    }

    #[test]
    fn an_entry_says_purpose_trigger_tokens_and_price() {
        let mut told = line("compaction", "idle", 1);
        told["usage"]["cost"] = json!({"total": 0.25});
        let usage = Usage { input: 1, output: 2, cache_read: 3, cache_write: 4, total: 0 };
        let expected =
            Cost { purpose: "compaction".into(), trigger: Trigger::Idle, usage, price: Some(250_000), at: 1_000 };
        assert_eq!(cost(&told), Some(expected));
        assert_eq!(cost(&json!({"type": "label", "id": "a", "purpose": "compaction"})), None);
    }

    #[test]
    fn an_entry_of_an_older_version_or_another_program_has_an_unknown_trigger() {
        for told in [
            json!({"type": "usage", "id": "a", "kind": "compaction"}),
            json!({"type": "model_usage", "id": "a", "kind": "compaction", "trigger": "tomorrow"}),
            json!({"type": "usage", "id": "a", "kind": "compaction", "trigger": 7, "usage": {"cost": {"total": 0}}}),
            json!({"type": "usage", "id": "a", "kind": "compaction", "usage": "none", "timestamp": 7}),
        ] {
            let cost = cost(&told).expect("a cost");
            let found = (cost.purpose.as_str(), cost.trigger, cost.tokens(), cost.price, cost.at);
            assert_eq!(found, ("compaction", Trigger::Unknown, 0, None, 0), "{told}");
        }
    }
}
