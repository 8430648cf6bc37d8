//! The rest of automatic compaction after an undo. It ends with a size, so that an undo never ends a session.

use super::{ahead, gauge::Fullness};
use crate::{conversation::path::Path, models::Budget, settings::Switch};
use schemars::JsonSchema;
use serde::Serialize;

/// Whether automatic compaction acts. On the wire it is true, false or `"resting"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum AutoCompaction {
    /// It is on or off.
    Set(bool),
    /// It is on, and rests after an undo until the context is near its window.
    #[serde(with = "resting")]
    #[schemars(schema_with = "resting::schema")]
    Resting,
}

/// The size up to which automatic compaction rests after an undo, in tokens: half of the reserve stays free for the answer.
#[must_use]
pub fn rests_to(budget: &Budget) -> u64 {
    ahead::waits_beyond(&budget.attainable().unwrap_or(*budget))
}

impl Fullness {
    /// Whether automatic compaction acts on a path of this size.
    #[must_use]
    pub fn auto_compaction(&self, path: &Path) -> AutoCompaction {
        match self.compaction.switch() {
            Switch::On if self.rests(path) => AutoCompaction::Resting,
            switch => AutoCompaction::Set(switch == Switch::On),
        }
    }

    /// Whether automatic compaction rests on a path of this size, because a compaction was undone there.
    #[must_use]
    pub fn rests(&self, path: &Path) -> bool {
        path.has_undo() && self.context_tokens <= rests_to(&self.with_reported_overhead())
    }
}

mod resting {
    use serde::Serializer;

    pub(super) fn serialize<S: Serializer>(writer: S) -> Result<S::Ok, S::Error> {
        writer.serialize_str("resting")
    }

    pub(super) fn schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "const": "resting" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::CompactionSettings;
    use serde_json::json;

    #[test]
    fn a_rest_ends_where_half_of_the_reserve_is_free_and_within_each_window() {
        let set = |threshold_percent: i64, threshold_tokens: i64, reserve_tokens: u64| CompactionSettings {
            threshold_percent,
            threshold_tokens,
            reserve_tokens,
            ..CompactionSettings::default()
        };
        for (window, settings, overhead, until) in [
            (200_000, set(-1, -1, 16_384), 0, 191_808),
            (200_000, set(40, -1, 16_384), 0, 191_808),
            (200_000, set(-1, 50_000, 16_384), 0, 191_808),
            // Never below the threshold.
            (200_000, set(99, -1, 16_384), 0, 198_000),
            (200_000, set(-1, 199_999, 16_384), 0, 199_999),
            // The reserve is at most half of the window.
            (8_000, set(-1, -1, 16_384), 0, 6_000),
            (2, set(-1, -1, 16_384), 0, 2),
            // A threshold that no compaction can meet gives way.
            (200_000, set(-1, 1, 16_384), 100_000, 191_808),
            (1_000, set(-1, -1, 500), 990, 850),
        ] {
            let budget = Budget::of(window, &settings, overhead, 0);
            assert_eq!(rests_to(&budget), until, "{budget:?}");
            assert!(until <= window.max(2));
        }
    }

    #[test]
    fn a_client_reads_a_boolean_or_a_word() {
        let on_wire = |auto: AutoCompaction| serde_json::to_value(auto).expect("JSON");
        assert_eq!(on_wire(AutoCompaction::Set(true)), json!(true));
        assert_eq!(on_wire(AutoCompaction::Set(false)), json!(false));
        assert_eq!(on_wire(AutoCompaction::Resting), json!("resting"));
    }
}
