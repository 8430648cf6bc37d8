//! `SETTINGS.md`: every setting with its type, default and range, generated from the types.

use crate::{settings::Settings, text};
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// The text before the tables.
const HEAD: &str = "# Settings

Generated from the types by `abridged schema`. The settings file is `settings.json` in `$ABRIDGED_CONFIG_DIR`, or in `abridged/` of the
platform's config folder. Every key is optional. A project's `.abridged/settings.json` overrides the global file, a client's
`ABRIDGED_SETTINGS` both, and the settings of a session all of them.

**The threshold.** A context over its threshold is compacted: `window − max(reserve, 15 % of the window)`. The reserve is
`compaction.reserveTokens`, by default 16,384 tokens and at most a quarter of the window.

| window | reserve | 15 % | threshold | a compaction brings the context below |
|---|---|---|---|---|
";

/// The text between the two.
const MIDDLE: &str = "
`compaction.thresholdTokens`, else `compaction.thresholdPercent`, names another threshold. *In a project* is the tighter range of a
project's file that is not trusted; a setting without one may have its whole range there, or needs trust (see SECURITY.md).
";

/// The page.
#[must_use]
pub fn page() -> String {
    let mut page = HEAD.to_owned();
    for window in [8_192_u64, 32_000, 128_000, 200_000, 1_000_000] {
        let budget = crate::models::Budget::of(window, &Settings::default().compaction, 0, 0);
        let numbers = [window, budget.reserve, window * 15 / 100, budget.threshold, budget.target()].map(grouped);
        let _ = writeln!(page, "| {} |", numbers.join(" | "));
    }
    page.push_str(MIDDLE);
    let root = SchemaSettings::draft2020_12().for_deserialize().into_generator().into_root_schema_for::<Settings>();
    let root = root.as_value();
    let defaults = json!(Settings::default());
    let mut alone = Table::default();
    let mut groups = Vec::new();
    for (name, schema) in members(root, root) {
        let resolved = resolved(root, schema);
        match item_or_itself(root, resolved) {
            (group, mark) if group.get("properties").is_some() => {
                let mut table = Table::default();
                let prefix = format!("{name}{mark}.");
                table.add_all(
                    root,
                    group,
                    &prefix,
                    if mark.is_empty() { &defaults[name.as_str()] } else { &Value::Null },
                );
                groups.push((format!("{name}{mark}"), doc(schema, resolved), table));
            }
            _ => alone.add(root, name, schema, &defaults[name.as_str()]),
        }
    }
    let _ = write!(page, "\n## At the top\n\n{}", alone.text());
    for (name, doc, table) in groups {
        let _ = write!(page, "\n## `{name}`\n\n{doc}\n\n{}", table.text());
    }
    page
}

/// Rows of settings.
#[derive(Default)]
struct Table {
    rows: Vec<[String; 5]>,
}

impl Table {
    fn add_all(&mut self, root: &Value, group: &Value, prefix: &str, defaults: &Value) {
        for (name, schema) in members(root, group) {
            let inner = resolved(root, schema);
            // A model's own values have the names of the group below.
            if prefix.starts_with("models") && name == "compaction" {
                let meaning = "Settings of `compaction` for this model alone, by the same names.".to_owned();
                self.rows.push([
                    format!("`{prefix}{name}`"),
                    "object".to_owned(),
                    String::new(),
                    String::new(),
                    meaning,
                ]);
                continue;
            }
            match item_or_itself(root, inner) {
                (below, mark) if below.get("properties").is_some() && prefix.matches('.').count() < 2 => {
                    let default = if mark.is_empty() { &defaults[name.as_str()] } else { &Value::Null };
                    self.add_all(root, below, &format!("{prefix}{name}{mark}."), default);
                }
                _ => self.add(root, &format!("{prefix}{name}"), schema, &defaults[name.as_str()]),
            }
        }
    }

    fn add(&mut self, root: &Value, name: &str, schema: &Value, default: &Value) {
        let inner = resolved(root, schema);
        let range = |schema: &Value, least: &str, most: &str| match (schema[least].as_i64(), schema[most].as_i64()) {
            (Some(least), Some(most)) => format!("{} to {}", signed(least), signed(most)),
            _ => String::new(),
        };
        let both = [schema, inner];
        let find = |least: &str, most: &str| both.iter().map(|it| range(it, least, most)).find(|it| !it.is_empty());
        let of_project = both.iter().find_map(|it| it.get("x-project"));
        let of_project = of_project.map(|it| range(it, "minimum", "maximum")).filter(|it| !it.is_empty());
        let range = find("minimum", "maximum").unwrap_or_default();
        let range = of_project.map_or(range.clone(), |project| format!("{range}; in a project {project}"));
        let default = match default {
            Value::Null => String::new(),
            Value::Number(number) => number.as_i64().map_or_else(|| number.to_string(), signed),
            Value::String(text) => format!("`\"{text}\"`"),
            value if value.to_string().len() > 60 => "see `settings/get`".to_owned(),
            value => format!("`{value}`"),
        };
        self.rows.push([format!("`{name}`"), kind(root, inner), default, range, doc(schema, inner)]);
    }

    fn text(&self) -> String {
        let mut text = "| setting | type | default | range | |\n|---|---|---|---|---|\n".to_owned();
        for row in &self.rows {
            let cells = row.clone().map(|cell| cell.replace('\n', " ").replace('|', "\\|"));
            let _ = writeln!(text, "| {} |", cells.join(" | "));
        }
        text
    }
}

fn members<'s>(root: &'s Value, schema: &'s Value) -> impl Iterator<Item = (&'s String, &'s Value)> {
    resolved(root, schema)["properties"].as_object().into_iter().flatten()
}

/// The schema behind references and behind a value that may be null.
fn resolved<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        return resolved(root, &root["$defs"][name]);
    }
    let choices = ["anyOf", "allOf"].iter().find_map(|choice| schema[*choice].as_array());
    match choices.map(Vec::as_slice) {
        Some([only]) => resolved(root, only),
        Some([one, other]) if other["type"] == "null" => resolved(root, one),
        _ => schema,
    }
}

/// The items of a list and the mark of one, or the schema itself.
fn item_or_itself<'s>(root: &'s Value, schema: &'s Value) -> (&'s Value, &'static str) {
    match schema.get("items") {
        Some(items) => (resolved(root, items), "[]"),
        None => (schema, ""),
    }
}

/// The description of a setting, in one line.
fn doc(schema: &Value, inner: &Value) -> String {
    let text = [schema, inner].iter().find_map(|it| it["description"].as_str()).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The type of a value, in words.
fn kind(root: &Value, schema: &Value) -> String {
    let schema = resolved(root, schema);
    let word = |value: &Value| format!("`{value}`");
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(word).collect::<Vec<_>>().join(", ");
    }
    if let Some(value) = schema.get("const") {
        return word(value);
    }
    if let Some(choices) = ["oneOf", "anyOf"].iter().find_map(|choice| schema[*choice].as_array()) {
        let kinds = choices.iter().map(|it| kind(root, it)).filter(|it| it != "null").collect::<Vec<_>>();
        return kinds.join(", ");
    }
    let name = match &schema["type"] {
        Value::Array(types) => types.iter().find(|it| **it != "null").and_then(Value::as_str),
        one => one.as_str(),
    };
    match name {
        Some("integer") => "whole number".to_owned(),
        Some("string") => "text".to_owned(),
        Some("array") => format!("list of {}", schema.get("items").map_or_else(String::new, |items| kind(root, items))),
        Some("object") => "object".to_owned(),
        Some(name) => name.to_owned(),
        None => "any".to_owned(),
    }
}

fn signed(number: i64) -> String {
    let digits = grouped(number.unsigned_abs());
    if number < 0 { format!("−{digits}") } else { digits }
}

fn grouped(number: u64) -> String {
    text::grouped(&number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_has_a_row_with_its_default_and_its_meaning() {
        let page = page();
        for row in [
            "| 200,000 | 16,384 | 30,000 | 170,000 | 136,000 |",
            "| `compaction.keepRecentTokens` | whole number | 20,000 |",
            "| `compaction.idleEnabled` | boolean | `false` |",
            "| `models[].contextWindow` | whole number |",
        ] {
            assert!(page.contains(row), "{row} in\n{page}");
        }
        let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
        assert!(rows.len() > 50, "{}", rows.len());
        for row in rows {
            assert!(!row.ends_with("|  |"), "a setting without a description: {row}");
        }
    }
}
