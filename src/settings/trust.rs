//! The settings that a project's file may have. The file may come with a cloned repository, so it must not be able to
//! send a conversation or a key elsewhere, or to let secrets into a summary, unless a person trusts its folder.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The settings that every project may have. A key that is not in this list needs trust, so a new setting is safe by
/// default.
const HARMLESS: &[&str] = &[
    "compaction.enabled",
    "compaction.strategy",
    "compaction.reserveTokens",
    "compaction.keepRecentTokens",
    "compaction.thresholdPercent",
    "compaction.thresholdTokens",
    "compaction.autoContinue",
    "compaction.midTurn",
    "compaction.idleEnabled",
    "compaction.idleThresholdTokens",
    "compaction.idleTimeoutSeconds",
    "compaction.speculative",
    "compaction.stallSeconds",
    "compaction.deadlineSeconds",
    "compaction.maxTokensPerHour",
    "compaction.style",
    "compaction.transcriptHint",
    "compaction.rehydrate",
    "compaction.coldResume",
    "compaction.coldResumeTokens",
    "prune",
    "tools",
    "branchSummary",
    "contextPromotion",
    "retry",
    "tokens",
];

/// The settings of which a project needs trust.
const NEEDS_TRUST: [&str; 10] = [
    "defaultModel",
    "models",
    "compaction.remoteEnabled",
    "compaction.remoteEndpoint",
    "compaction.maxConcurrent",
    "compaction.models",
    "redaction",
    "trustedProjects",
    "store",
    "storePasswordCommand",
];

/// The list of trusted projects, and the place of the sessions. Only the global file has them.
const NEVER: [&str; 3] = ["trustedProjects", "store", "storePasswordCommand"];

/// The trust of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// The project may set everything but `trustedProjects`.
    Trusted,
    /// The project may set the harmless settings only.
    Untrusted,
}

/// Returns true for the dotted key of a setting that an untrusted project may not have.
#[must_use]
pub fn needs_trust(key: &str) -> bool {
    NEEDS_TRUST.contains(&key)
}

/// Returns true for the dotted key of an object with settings that every project may have.
#[must_use]
pub fn encloses_settings(key: &str) -> bool {
    HARMLESS.iter().any(|it| it.strip_prefix(key).is_some_and(|it| it.starts_with('.')))
}

/// The allowed part of a project's settings, and the dotted keys of the rest.
#[must_use]
pub fn allowed(layer: &Value, trust: Trust) -> (Value, Vec<String>) {
    let mut refused = Vec::new();
    let Value::Object(map) = layer else { return (layer.clone(), refused) };
    let kept = match trust {
        Trust::Untrusted => harmless(map, "", &mut refused),
        Trust::Trusted => {
            let mut kept = map.clone();
            refused.extend(NEVER.iter().filter(|key| kept.shift_remove(**key).is_some()).map(|key| (*key).to_owned()));
            kept
        }
    };
    (Value::Object(kept), refused)
}

fn harmless(map: &Map<String, Value>, at: &str, refused: &mut Vec<String>) -> Map<String, Value> {
    let mut kept = Map::new();
    for (key, value) in map {
        let path = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
        let leads_on = encloses_settings(&path);
        match value {
            _ if HARMLESS.contains(&path.as_str()) => {
                kept.insert(key.clone(), value.clone());
            }
            Value::Object(below) if leads_on => {
                kept.insert(key.clone(), Value::Object(harmless(below, &path, refused)));
            }
            _ => refused.push(path),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;
    use serde_json::json;

    /// Each key is decided about: one that is in neither list makes this fail.
    #[test]
    fn every_setting_is_harmless_or_known_to_need_trust() {
        let all = serde_json::to_value(Settings::default()).expect("settings are JSON");
        let (kept, refused) = allowed(&all, Trust::Untrusted);
        assert_eq!(refused, NEEDS_TRUST);
        for key in HARMLESS {
            let pointer = format!("/{}", key.replace('.', "/"));
            assert!(kept.pointer(&pointer).is_some(), "{key} is no setting");
        }
    }

    #[test]
    fn a_trusted_project_may_say_everything_but_whom_to_trust_and_where_sessions_are() {
        let layer = json!({"models": [], "trustedProjects": ["/"], "prune": {"protectTokens": 1}, "store": "postgres://h/d",
            "storePasswordCommand": ["sh"]});
        let (kept, refused) = allowed(&layer, Trust::Trusted);
        assert_eq!(kept, json!({"models": [], "prune": {"protectTokens": 1}}));
        assert_eq!(refused, ["trustedProjects", "store", "storePasswordCommand"]);
        let (kept, refused) = allowed(&layer, Trust::Untrusted);
        assert_eq!(kept, json!({"prune": {"protectTokens": 1}}));
        assert_eq!(refused, ["models", "trustedProjects", "store", "storePasswordCommand"]);
    }
}
