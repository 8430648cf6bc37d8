//! The keys that settings may have, and those that a client or a file misspelt.

use super::Settings;
use crate::text::spelling;
use schemars::generate::SchemaSettings;
use serde_json::Value;
use std::sync::LazyLock;

/// The advice for a key that is no setting; `None` where it looks like none.
#[must_use]
pub fn advice(key: &str) -> Option<String> {
    let name = key.rsplit('.').next().unwrap_or(key);
    let meant = meant(key)?;
    if meant != name {
        return Some(format!("did you mean {meant:?}?"));
    }
    // The setting exists, so the key itself has the dots.
    let nested = key.rsplit('.').fold("…".to_owned(), |value, name| format!("{{{name:?}: {value}}}"));
    Some(format!("keys are nested: {nested}"))
}

/// The setting that the last key of a dotted one looks like.
fn meant(key: &str) -> Option<String> {
    let (before, name) = key.rsplit_once('.').unwrap_or(("", key));
    let place = before
        .split('.')
        .filter(|key| !key.is_empty())
        .try_fold(SCHEMA.as_value(), |schema, key| below(schema, key))?;
    let place = resolved(place);
    let known = place.get("properties")?.as_object()?.keys();
    spelling::meant(name, known.map(String::as_str)).map(str::to_owned)
}

static SCHEMA: LazyLock<schemars::Schema> = LazyLock::new(|| {
    SchemaSettings::draft2020_12().for_deserialize().into_generator().into_root_schema_for::<Settings>()
});

/// The schema of a member, or of an item of it: `models[2]`.
fn below<'s>(schema: &'s Value, key: &str) -> Option<&'s Value> {
    let name = key.split('[').next().unwrap_or(key);
    let schema = resolved(schema);
    let member = match schema.get("properties").and_then(|properties| properties.get(name)) {
        Some(member) => member,
        // A map has names of its own.
        None => schema.get("additionalProperties").filter(|schema| schema.is_object())?,
    };
    (0..key.matches('[').count()).try_fold(member, |list, _| resolved(list).get("items"))
}

/// The schema behind a reference, or behind a value that may be null.
fn resolved(schema: &Value) -> &Value {
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        let name = name.rsplit('/').next().unwrap_or(name);
        return SCHEMA.as_value()["$defs"].get(name).map_or(schema, resolved);
    }
    let choices = ["anyOf", "allOf"].iter().find_map(|choice| schema.get(*choice)?.as_array());
    match choices.into_iter().flatten().find(|choice| choice.get("type").and_then(Value::as_str) != Some("null")) {
        Some(choice) => resolved(choice),
        None => schema,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dotted_key_is_shown_in_its_nested_form() {
        for (key, expected) in [
            ("compaction.enabled", Some(r#"keys are nested: {"compaction": {"enabled": …}}"#)),
            ("compaction.enabld", Some(r#"did you mean "enabled"?"#)),
            ("compaction.zebra", None),
        ] {
            assert_eq!(advice(key).as_deref(), expected, "{key}");
        }
    }

    #[test]
    fn a_misspelt_setting_is_known_at_every_depth() {
        for (key, expected) in [
            ("compactoin", Some("compaction")),
            ("compaction.enabld", Some("enabled")),
            ("compaction.keep_recent_tokens", Some("keepRecentTokens")),
            ("prune.protectTokns", Some("protectTokens")),
            ("models[3].contextwindow", Some("contextWindow")),
            ("models[3].compaction.enabld", Some("enabled")),
            ("compaction.zebra", None),
            ("zebra.enabld", None),
            ("", None),
        ] {
            assert_eq!(meant(key).as_deref(), expected, "{key}");
        }
    }
}
