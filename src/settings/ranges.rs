//! The range of every number in the settings, read from the JSON Schema of their types, which has it beside the field.
//! A project that is not trusted has tighter ranges.

use super::{Settings, trust::Trust};
use schemars::generate::SchemaSettings;
use serde_json::Value;
use std::{fmt, sync::OnceLock};

/// The number that stands for none, where a range begins with it.
const NONE: i64 = -1;

/// One step of the way to a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Step {
    /// A member of an object.
    Key(String),
    /// An item of a list.
    Item(usize),
}

/// The way to a value, from the root of a settings file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place(pub Vec<Step>);

/// The values that a number may have, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// The smallest.
    pub least: i64,
    /// The largest.
    pub most: i64,
}

/// The effect of a number outside of its range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The number is not used.
    Refused,
    /// The nearest number of the range is used.
    Clamped,
}

/// A number of the settings.
#[derive(Debug, Clone)]
pub struct Number {
    /// Its keys from the root; every item of a list on the way is meant.
    pub keys: Vec<String>,
    range: Range,
    of_projects: Range,
    /// The effect of a value outside of its range.
    pub effect: Effect,
    kind: Kind,
}

/// The kind of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Only whole numbers. The type of the value refuses a fraction.
    Whole,
    /// Fractions, too.
    Real,
}

/// A number outside of its range.
#[derive(Debug, Clone, PartialEq)]
pub struct Outside {
    /// Its place.
    pub place: Place,
    /// The number that was found.
    pub found: serde_json::Number,
    /// The range of its layer.
    pub range: Range,
    /// The range in a trusted layer, and the one in a project that is not trusted.
    ranges: [Range; 2],
    /// The effect.
    pub effect: Effect,
}

impl Number {
    /// The range for layers of this trust.
    #[must_use]
    pub fn range(&self, trust: Trust) -> Range {
        match trust {
            Trust::Trusted => self.range,
            Trust::Untrusted => self.of_projects,
        }
    }

    /// Whether a value is outside of a range of this number. None is in every range of a number that may be none.
    fn is_outside(&self, range: Range, found: &serde_json::Number) -> bool {
        if self.range.least == NONE && whole(found) == Some(i128::from(NONE)) {
            return false;
        }
        let in_range = |it: f64| (range.least as f64..=range.most as f64).contains(&it);
        match self.kind {
            Kind::Whole => range.nearest(found).is_some(),
            Kind::Real => !found.as_f64().is_some_and(in_range),
        }
    }
}

impl Range {
    /// The number of the range that is nearest to `found`, where `found` is a whole number outside of it.
    fn nearest(self, found: &serde_json::Number) -> Option<i64> {
        let found = whole(found)?;
        match () {
            () if found < i128::from(self.least) => Some(self.least),
            () if found > i128::from(self.most) => Some(self.most),
            () => None,
        }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.least, self.most)
    }
}

/// The value of a whole number. JSON has one kind of number: `80.0` is 80.
fn whole(number: &serde_json::Number) -> Option<i128> {
    let float = || number.as_f64().filter(|it| it.fract() == 0.0 && it.abs() <= u64::MAX as f64).map(|it| it as i128);
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from)).or_else(float)
}

impl Outside {
    /// The range for layers of this trust, and the one for trusted layers where it is wider.
    #[must_use]
    pub fn expected(&self, trust: Trust) -> String {
        let [trusted, project] = self.ranges;
        match trust {
            Trust::Untrusted if project != trusted => format!("{project} in a project, or {trusted} in a trusted one"),
            Trust::Trusted | Trust::Untrusted => trusted.to_string(),
        }
    }

    /// The number of the range that is nearest to the one that was found.
    #[must_use]
    pub fn nearest(&self) -> i64 {
        self.range.nearest(&self.found).unwrap_or(self.range.least)
    }
}

impl fmt::Display for Place {
    /// As `models[0].contextWindow`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(key) if at == 0 => f.write_str(key)?,
                Step::Key(key) => write!(f, ".{key}")?,
                Step::Item(item) => write!(f, "[{item}]")?,
            }
        }
        Ok(())
    }
}

impl Place {
    /// The value at this place.
    #[must_use]
    pub fn of<'a>(&self, root: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(root, |value, step| match step {
            Step::Key(key) => value.get(key),
            Step::Item(item) => value.get(*item),
        })
    }

    /// The value at this place, to be changed.
    pub fn of_mut<'a>(&self, root: &'a mut Value) -> Option<&'a mut Value> {
        self.0.iter().try_fold(root, |value, step| match step {
            Step::Key(key) => value.get_mut(key),
            Step::Item(item) => value.get_mut(*item),
        })
    }
}

/// Every number of the settings.
#[must_use]
pub fn numbers() -> &'static [Number] {
    static NUMBERS: OnceLock<Vec<Number>> = OnceLock::new();
    NUMBERS.get_or_init(|| {
        let root = SchemaSettings::draft2020_12().for_deserialize().into_generator().into_root_schema_for::<Settings>();
        let mut found = Vec::new();
        collect(root.as_value(), root.as_value(), &mut Vec::new(), &mut found);
        found
    })
}

/// The numbers of `settings` that are outside of the range that this trust allows.
#[must_use]
pub fn outside(settings: &Value, trust: Trust) -> Vec<Outside> {
    let mut found = Vec::new();
    for number in numbers() {
        look(settings, number, &number.keys, number.range(trust), &mut Place::default(), &mut found);
    }
    found
}

fn look(value: &Value, number: &Number, keys: &[String], range: Range, at: &mut Place, found: &mut Vec<Outside>) {
    match (value, keys) {
        (Value::Array(items), _) => {
            for (item, value) in items.iter().enumerate() {
                at.0.push(Step::Item(item));
                look(value, number, keys, range, at, found);
                at.0.pop();
            }
        }
        (Value::Object(map), [key, rest @ ..]) => {
            if let Some(value) = map.get(key) {
                at.0.push(Step::Key(key.clone()));
                look(value, number, rest, range, at, found);
                at.0.pop();
            }
        }
        (Value::Number(value), []) if number.is_outside(range, value) => {
            let ranges = [number.range, number.of_projects];
            found.push(Outside { place: at.clone(), found: value.clone(), range, ranges, effect: number.effect });
        }
        _ => {}
    }
}

/// Gives every whole number of `settings` the form without a fraction, in which its type reads it.
pub fn make_whole(settings: &mut Value) {
    for number in numbers() {
        for_each(settings, &number.keys, &mut |value| {
            if let Value::Number(number) = value
                && number.is_f64()
                && let Some(whole) = whole(number).and_then(serde_json::Number::from_i128)
            {
                *number = whole;
            }
        });
    }
}

/// Does something with every value at these keys; every item of a list on the way is meant.
fn for_each(value: &mut Value, keys: &[String], act: &mut impl FnMut(&mut Value)) {
    match (value, keys) {
        (Value::Array(items), _) => items.iter_mut().for_each(|item| for_each(item, keys, act)),
        (Value::Object(map), [key, rest @ ..]) => {
            if let Some(value) = map.get_mut(key) {
                for_each(value, rest, act);
            }
        }
        (value, []) => act(value),
        _ => {}
    }
}

/// The numbers below `schema`, each by its keys.
fn collect(root: &Value, schema: &Value, keys: &mut Vec<String>, found: &mut Vec<Number>) {
    if let Some(target) = schema["$ref"].as_str().and_then(|path| root.pointer(path.trim_start_matches('#'))) {
        collect(root, target, keys, found);
    }
    for part in ["anyOf", "oneOf", "allOf"].iter().filter_map(|it| schema[*it].as_array()).flatten() {
        collect(root, part, keys, found);
    }
    if let items @ Value::Object(_) = &schema["items"] {
        collect(root, items, keys, found);
    }
    for (key, schema) in schema["properties"].as_object().into_iter().flatten() {
        keys.push(key.clone());
        collect(root, schema, keys, found);
        keys.pop();
    }
    let is = |name: &str| {
        schema["type"] == name || schema["type"].as_array().is_some_and(|it| it.iter().any(|it| it == name))
    };
    if is("integer") || is("number") {
        let end = |schema: &Value, name: &str, without: i64| schema[name].as_f64().map_or(without, |end| end as i64);
        let read = |schema: &Value, wider: Range| Range {
            least: end(schema, "minimum", wider.least),
            most: end(schema, "maximum", wider.most),
        };
        let range = read(schema, Range { least: i64::MIN, most: i64::MAX });
        let effect = if schema["x-outOfRange"] == "clamped" { Effect::Clamped } else { Effect::Refused };
        let kind = if is("number") { Kind::Real } else { Kind::Whole };
        found.push(Number { keys: keys.clone(), range, of_projects: read(&schema["x-project"], range), effect, kind });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_two_ends_and_a_project_never_more_room() {
        let mut rows: Vec<String> = numbers()
            .iter()
            .map(|it| {
                let (all, project) = (it.range(Trust::Trusted), it.range(Trust::Untrusted));
                assert!(all.least >= -1 && all.most <= 1_000_000_000, "{:?}: {all}", it.keys);
                assert!(project.least >= all.least && project.most <= all.most && project.least <= project.most);
                it.keys.join(".")
            })
            .collect();
        // Every number of the defaults, those of `compaction` for each model too, and the numbers without a default.
        let mut expected = vec!["compaction.reserveTokens".to_owned()];
        keys_of_numbers(&serde_json::to_value(Settings::default()).expect("settings are JSON"), "", &mut expected);
        let of_compaction = expected.iter().filter(|key| key.starts_with("compaction."));
        let of_models: Vec<String> = of_compaction.map(|key| format!("models.{key}")).collect();
        expected.extend(of_models);
        expected.extend(["models.contextWindow".to_owned(), "models.maxOutputTokens".to_owned()]);
        expected.extend(["input", "output", "cacheRead", "cacheWrite"].map(|price| format!("models.cost.{price}")));
        expected.sort();
        rows.sort();
        assert_eq!(rows, expected);
    }

    fn keys_of_numbers(value: &Value, key: &str, found: &mut Vec<String>) {
        match value {
            Value::Number(_) => found.push(key.to_owned()),
            Value::Object(fields) => {
                for (name, value) in fields {
                    let key = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
                    keys_of_numbers(value, &key, found);
                }
            }
            _ => {}
        }
    }

    #[test]
    fn a_price_may_be_a_fraction_and_is_checked_as_one() {
        let outside_of = |price: &str| {
            let text = format!(r#"{{"models": [{{"cost": {{"input": {price}, "output": 1}}}}]}}"#);
            let found = outside(&serde_json::from_str(&text).expect("JSON"), Trust::Trusted);
            found.into_iter().map(|it| it.place.to_string()).collect::<Vec<_>>()
        };
        for price in ["0", "0.0375", "3", "99999.5", "100000"] {
            assert_eq!(outside_of(price), [""; 0], "{price}");
        }
        for price in ["-0.5", "-1", "100000.5", "1e300"] {
            assert_eq!(outside_of(price), ["models[0].cost.input"], "{price}");
        }
    }

    #[test]
    fn none_is_in_the_tighter_range_of_a_project() {
        let outside_of = |percent: i64| {
            let settings = serde_json::json!({"compaction": {"thresholdPercent": percent}});
            outside(&settings, Trust::Untrusted).iter().map(Outside::nearest).collect::<Vec<_>>()
        };
        for percent in [-1, 25, 99] {
            assert_eq!(outside_of(percent), [0; 0], "{percent}");
        }
        assert_eq!((outside_of(1), outside_of(0), outside_of(-2)), (vec![25], vec![25], vec![25]));
    }

    #[test]
    fn the_defaults_are_in_range_for_everybody() {
        let defaults = serde_json::to_value(Settings::default()).expect("settings are JSON");
        for trust in [Trust::Trusted, Trust::Untrusted] {
            assert_eq!(outside(&defaults, trust), []);
        }
    }
}
