//! A validator for the keywords that our schemas use. A crate for it would bring 27 others along, and skip what
//! matters here: a keyword that is not known fails the test, and so does a field that no schema names, unless the
//! schema says that there may be others.

use regex::Regex;
use serde_json::{Map, Value};
use std::{
    collections::BTreeMap,
    fmt,
    sync::{Mutex, PoisonError},
};

/// Where a value is not what its schema says. The text is written only where a test fails: most of these are alternatives that do
/// not apply, and their values can be long.
#[derive(Debug)]
pub enum Problem<'a> {
    /// A value that is not as expected.
    Value(&'a Value, Expected<'a>),
    /// A problem below a field, an item or a definition.
    Below(Place<'a>, Box<Self>),
    /// No alternative applies.
    NoneOf(Vec<Self>),
    /// More alternatives apply than one.
    Several(usize),
    Missing(&'a str),
    Unknown(&'a str),
    /// The schema forbids the value.
    Forbidden(&'a Value),
}

/// The demand of a keyword.
#[derive(Debug)]
pub enum Expected<'a> {
    Argument(&'a Value),
    AtLeast(&'a Value),
    AtMost(&'a Value),
    Items(u64),
    ItemsAtMost(u64),
}

#[derive(Debug)]
pub enum Place<'a> {
    Field(&'a str),
    Item(usize),
}

impl fmt::Display for Problem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(value, expected) => write!(f, "{:.200} is not {expected}", value.to_string()),
            Self::Below(Place::Field(name), problem) => write!(f, "{name}: {problem}"),
            Self::Below(Place::Item(at), problem) => write!(f, "{at}: {problem}"),
            Self::NoneOf(problems) => {
                let problems: Vec<String> = problems.iter().map(Self::to_string).collect();
                write!(f, "none of: {}", problems.join("; "))
            }
            Self::Several(several) => write!(f, "{several} at once, where one is meant"),
            Self::Missing(name) => write!(f, "{name} is missing"),
            Self::Unknown(name) => write!(f, "nobody knows the field {name}"),
            Self::Forbidden(value) => write!(f, "{value} must not be there"),
        }
    }
}

impl fmt::Display for Expected<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Argument(argument) => write!(f, "{argument}"),
            Self::AtLeast(least) => write!(f, "{least} or more"),
            Self::AtMost(most) => write!(f, "{most} or less"),
            Self::Items(least) => write!(f, "{least} items or more"),
            Self::ItemsAtMost(most) => write!(f, "{most} items or fewer"),
        }
    }
}

/// Where `value` is not what `schema` says; none where it is.
pub fn problem(root: &Value, schema: &Value, value: &Value) -> Option<String> {
    find(root, schema, value).map(|problem| problem.to_string())
}

fn find<'a>(root: &'a Value, schema: &'a Value, value: &'a Value) -> Option<Problem<'a>> {
    let Value::Object(keywords) = schema else {
        return (schema == &Value::Bool(false)).then_some(Problem::Forbidden(value));
    };
    keywords.iter().find_map(|(keyword, argument)| check(root, keywords, keyword, argument, value))
}

fn check<'a>(
    root: &'a Value,
    schema: &'a Map<String, Value>,
    keyword: &str,
    argument: &'a Value,
    value: &'a Value,
) -> Option<Problem<'a>> {
    let unless = |fits: bool| (!fits).then_some(Problem::Value(value, Expected::Argument(argument)));
    match keyword {
        "description" | "title" | "default" | "$schema" | "$defs" => None,
        // Sizes of integers: JSON has one kind.
        "format" => None,
        // How the daemon treats a number of the settings; no rule about frames.
        "x-project" | "x-outOfRange" => None,
        // A member of a union for other values; TypeScript leaves it out.
        "x-open" => None,
        // Read together with `properties`.
        "unevaluatedProperties" => (argument != true).then(|| panic!("other fields are allowed or not named")),
        "$ref" => {
            let path = argument.as_str().expect("a reference").trim_start_matches('#');
            let target = root.pointer(path).unwrap_or_else(|| panic!("{path} leads nowhere"));
            below(root, target, value, Place::Field(path.trim_start_matches("/$defs/")))
        }
        "type" => {
            let is = |name: &Value| match name.as_str().expect("a type") {
                "null" => value.is_null(),
                "boolean" => value.is_boolean(),
                "string" => value.is_string(),
                "number" => value.is_number(),
                "integer" => value.is_i64() || value.is_u64(),
                "array" => value.is_array(),
                "object" => value.is_object(),
                other => panic!("there is no type {other}"),
            };
            unless(argument.as_array().map_or_else(|| is(argument), |names| names.iter().any(is)))
        }
        "const" => unless(argument == value),
        "enum" => unless(list(argument).contains(value)),
        "minimum" => match (value.as_f64(), argument.as_f64()) {
            (Some(number), Some(least)) if number < least => Some(Problem::Value(value, Expected::AtLeast(argument))),
            _ => None,
        },
        "maximum" => match (value.as_f64(), argument.as_f64()) {
            (Some(number), Some(most)) if number > most => Some(Problem::Value(value, Expected::AtMost(argument))),
            _ => None,
        },
        "pattern" => unless(value.as_str().is_none_or(|text| matches(argument.as_str().expect("a pattern"), text))),
        "minItems" => match (value.as_array(), argument.as_u64()) {
            (Some(items), Some(least)) if (items.len() as u64) < least => {
                Some(Problem::Value(value, Expected::Items(least)))
            }
            _ => None,
        },
        "maxItems" => match (value.as_array(), argument.as_u64()) {
            (Some(items), Some(most)) if items.len() as u64 > most => {
                Some(Problem::Value(value, Expected::ItemsAtMost(most)))
            }
            _ => None,
        },
        "items" => {
            let mut items = value.as_array()?.iter().enumerate();
            items.find_map(|(at, item)| below(root, argument, item, Place::Item(at)))
        }
        "properties" => {
            let object = value.as_object()?;
            let known = argument.as_object().expect("properties");
            let open = ["additionalProperties", "unevaluatedProperties", "oneOf", "anyOf", "allOf", "$ref"]
                .iter()
                .any(|it| schema.contains_key(*it));
            let stranger = object.keys().find(|key| !open && !known.contains_key(*key) && *key != "_meta");
            let named = known.iter().find_map(|(key, schema)| below(root, schema, object.get(key)?, Place::Field(key)));
            named.or_else(|| stranger.map(|key| Problem::Unknown(key)))
        }
        "required" => {
            let object = value.as_object()?;
            let mut names = list(argument).iter().map(|name| name.as_str().expect("a name"));
            names.find(|name| !object.contains_key(*name)).map(Problem::Missing)
        }
        "additionalProperties" => {
            let known = schema.get("properties").and_then(Value::as_object);
            let others = value.as_object()?.iter().filter(|(key, _)| !known.is_some_and(|it| it.contains_key(*key)));
            others.into_iter().find_map(|(key, value)| below(root, argument, value, Place::Field(key)))
        }
        "allOf" => list(argument).iter().find_map(|part| find(root, part, value)),
        "anyOf" | "oneOf" => {
            let problems: Vec<_> = list(argument).iter().filter_map(|part| find(root, part, value)).collect();
            match list(argument).len() - problems.len() {
                0 => Some(Problem::NoneOf(problems)),
                1 => None,
                _ if keyword == "anyOf" => None,
                several => Some(Problem::Several(several)),
            }
        }
        other => panic!("the keyword {other} is not checked yet"),
    }
}

fn below<'a>(root: &'a Value, schema: &'a Value, value: &'a Value, place: Place<'a>) -> Option<Problem<'a>> {
    find(root, schema, value).map(|problem| Problem::Below(place, problem.into()))
}

/// Whether a text matches a pattern. Schemas have few patterns, and each is compiled once.
fn matches(pattern: &str, text: &str) -> bool {
    static PATTERNS: Mutex<BTreeMap<String, Regex>> = Mutex::new(BTreeMap::new());
    let mut patterns = PATTERNS.lock().unwrap_or_else(PoisonError::into_inner);
    if !patterns.contains_key(pattern) {
        patterns.insert(pattern.to_owned(), Regex::new(pattern).expect("a pattern"));
    }
    patterns[pattern].is_match(text)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

#[test]
fn what_is_wrong_is_found() {
    use serde_json::json;
    let root = json!({ "$defs": { "Id": { "type": "string", "pattern": "^[a-z]+$" } } });
    let schema = json!({
        "type": "object",
        "properties": {
            "id": { "$ref": "#/$defs/Id" },
            "count": { "type": ["integer", "null"], "minimum": 0, "maximum": 9 },
            "what": { "oneOf": [{ "type": "string", "const": "a" }, { "type": "string", "enum": ["b", "c"] }] },
            "list": { "type": "array", "minItems": 1, "maxItems": 2, "items": { "type": "object", "properties": {}, "additionalProperties": { "type": "number" } } },
        },
        "required": ["id"],
    });
    let open = json!({ "type": "object", "properties": { "id": { "type": "string" } }, "unevaluatedProperties": true });
    assert_eq!(problem(&root, &open, &json!({ "stranger": 1 })), None);
    let right = json!({ "id": "x", "count": null, "what": "b", "list": [{ "n": 1.5 }], "_meta": 1 });
    assert_eq!(problem(&root, &schema, &right), None);
    for wrong in [
        json!(7),
        json!({}),
        json!({ "id": "X" }),
        json!({ "id": "x", "list": [{}, {}, {}] }),
        json!({ "id": "x", "count": -1 }),
        json!({ "id": "x", "count": 10 }),
        json!({ "id": "x", "count": 1.5 }),
        json!({ "id": "x", "what": "d" }),
        json!({ "id": "x", "list": [{ "n": "text" }] }),
        json!({ "id": "x", "list": {} }),
        json!({ "id": "x", "list": [] }),
        json!({ "id": "x", "stranger": 1 }),
    ] {
        assert!(problem(&root, &schema, &wrong).is_some(), "{wrong}");
    }
}
