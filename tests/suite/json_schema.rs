//! A validator for the keywords that our schemas use. A crate for it would bring 27 others along, and skip what
//! matters here: a keyword that is not known fails the test, and so does a field that no schema names, unless the
//! schema says that there may be others.

use serde_json::{Map, Value};

/// Where `value` is not what `schema` says; none where it is.
pub fn problem(root: &Value, schema: &Value, value: &Value) -> Option<String> {
    let Value::Object(keywords) = schema else {
        return (schema == &Value::Bool(false)).then(|| format!("{value} must not be there"));
    };
    keywords.iter().find_map(|(keyword, argument)| check(root, keywords, keyword, argument, value))
}

fn check(root: &Value, schema: &Map<String, Value>, keyword: &str, argument: &Value, value: &Value) -> Option<String> {
    let wrong = |expected: &str| Some(format!("{:.200} is not {expected}", value.to_string()));
    match keyword {
        "description" | "title" | "default" | "$schema" | "$defs" => None,
        // Sizes of integers: JSON has one kind.
        "format" => None,
        // How the daemon treats a number of the settings; no rule about frames.
        "x-project" | "x-outOfRange" => None,
        "$ref" => {
            let path = argument.as_str().expect("a reference").trim_start_matches('#');
            let target = root.pointer(path).unwrap_or_else(|| panic!("{path} leads nowhere"));
            problem(root, target, value).map(|it| format!("{}: {it}", path.trim_start_matches("/$defs/")))
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
            let fits = argument.as_array().map_or_else(|| is(argument), |names| names.iter().any(is));
            if fits { None } else { wrong(&argument.to_string()) }
        }
        "const" => {
            if argument == value {
                None
            } else {
                wrong(&argument.to_string())
            }
        }
        "enum" => {
            if list(argument).contains(value) {
                None
            } else {
                wrong(&argument.to_string())
            }
        }
        "minimum" => match (value.as_f64(), argument.as_f64()) {
            (Some(value), Some(least)) if value < least => wrong(&format!("{argument} or more")),
            _ => None,
        },
        "maximum" => match (value.as_f64(), argument.as_f64()) {
            (Some(value), Some(most)) if value > most => wrong(&format!("{argument} or less")),
            _ => None,
        },
        "pattern" => {
            let pattern = regex::Regex::new(argument.as_str().expect("a pattern")).expect("a pattern");
            if value.as_str().is_none_or(|text| pattern.is_match(text)) { None } else { wrong(&argument.to_string()) }
        }
        "minItems" => match (value.as_array(), argument.as_u64()) {
            (Some(items), Some(least)) if (items.len() as u64) < least => wrong(&format!("{argument} items or more")),
            _ => None,
        },
        "maxItems" => match (value.as_array(), argument.as_u64()) {
            (Some(items), Some(most)) if items.len() as u64 > most => wrong(&format!("{argument} items or fewer")),
            _ => None,
        },
        "items" => value.as_array()?.iter().enumerate().find_map(|(at, item)| inside(root, argument, item, &at)),
        "properties" => {
            let object = value.as_object()?;
            let known = argument.as_object().expect("properties");
            let open =
                ["additionalProperties", "oneOf", "anyOf", "allOf", "$ref"].iter().any(|it| schema.contains_key(*it));
            let stranger = object.keys().find(|key| !open && !known.contains_key(*key) && *key != "_meta");
            let named = known.iter().find_map(|(key, schema)| inside(root, schema, object.get(key)?, key));
            named.or_else(|| stranger.map(|key| format!("nobody knows the field {key}")))
        }
        "required" => {
            let object = value.as_object()?;
            let missing = list(argument).iter().find(|key| !object.contains_key(key.as_str().expect("a name")));
            missing.map(|key| format!("{key} is missing"))
        }
        "additionalProperties" => {
            let known = schema.get("properties").and_then(Value::as_object);
            let others = value.as_object()?.iter().filter(|(key, _)| !known.is_some_and(|it| it.contains_key(*key)));
            others.into_iter().find_map(|(key, value)| inside(root, argument, value, key))
        }
        "allOf" => list(argument).iter().find_map(|part| problem(root, part, value)),
        "anyOf" | "oneOf" => {
            let problems: Vec<_> = list(argument).iter().filter_map(|part| problem(root, part, value)).collect();
            match list(argument).len() - problems.len() {
                0 => Some(format!("none of: {}", problems.join("; "))),
                1 => None,
                _ if keyword == "anyOf" => None,
                several => Some(format!("{several} at once, where one is meant")),
            }
        }
        other => panic!("the keyword {other} is not checked yet"),
    }
}

fn inside(root: &Value, schema: &Value, value: &Value, at: &dyn std::fmt::Display) -> Option<String> {
    problem(root, schema, value).map(|it| format!("{at}: {it}"))
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
