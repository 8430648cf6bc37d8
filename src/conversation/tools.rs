//! Tools in the shapes in which they are given to the four providers, and their one form here.
//!
//! | given as | shape |
//! |---|---|
//! | here, MCP | `{name, description, inputSchema}` |
//! | Anthropic | `{name, description, input_schema}`, with `type: "custom"` or without |
//! | OpenAI Responses, pi | `{name, description, parameters}`, with `type: "function"` or without |
//! | OpenAI Chat | `{type: "function", function: {name, description, parameters}}` |
//! | Google | `{functionDeclarations: [{name, description, parameters or parametersJsonSchema}, …]}` |

use serde_json::{Map, Value, json};

/// The functions of a tool, each `{name, description, inputSchema}`. Google's form has several in one tool.
///
/// # Errors
/// The reason why the tool is no function that every provider can be given.
pub fn functions(tool: &Value) -> Result<Vec<Value>, String> {
    let Some(given) = tool.as_object() else { return Err("a tool is an object".to_owned()) };
    for name in &NESTED[..2] {
        if let Some(declarations) = given.get(*name) {
            let Some(declarations) = declarations.as_array() else { return Err(format!("`{name}` is a list")) };
            let one = |declaration: &Value| match declaration.as_object() {
                Some(declaration) => function(declaration),
                None => Err(format!("each of `{name}` is an object")),
            };
            return declarations.iter().map(one).collect();
        }
    }
    match given.get("function") {
        Some(Value::Object(inner)) => Ok(vec![function(inner)?]),
        Some(_) => Err("`function` is an object".to_owned()),
        None => Ok(vec![function(given)?]),
    }
}

/// The functions of tools that a file has: versions before this one stored every shape. A flat tool, or one that is no function,
/// stays as it is.
#[must_use]
pub fn of_file(tools: Vec<Value>) -> Vec<Value> {
    let is_nested = |tool: &Value| NESTED.iter().any(|key| tool.get(key).is_some());
    let one = |tool: Value| match is_nested(&tool).then(|| functions(&tool)) {
        Some(Ok(functions)) => functions,
        _ => vec![tool],
    };
    tools.into_iter().flat_map(one).collect()
}

/// Members with the functions of a tool.
const NESTED: [&str; 3] = ["functionDeclarations", "function_declarations", "function"];

/// The name of a function.
#[must_use]
pub fn name(function: &Value) -> Option<&str> {
    function["name"].as_str().filter(|name| !name.is_empty())
}

fn function(given: &Map<String, Value>) -> Result<Value, String> {
    const SCHEMAS: [&str; 5] = ["inputSchema", "input_schema", "parameters", "parametersJsonSchema", "inputJsonSchema"];
    let kind = given.get("type").and_then(Value::as_str);
    let schema = SCHEMAS.iter().find_map(|name| given.get(*name).filter(|schema| !schema.is_null()));
    if let Some(kind) = kind.filter(|kind| *kind != "function" && (*kind != "custom" || schema.is_none())) {
        return Err(format!(
            "{kind:?} is a tool of a provider; give functions here and add it to the request yourself"
        ));
    }
    let Some(name) = given.get("name").and_then(Value::as_str).filter(|name| !name.is_empty()) else {
        return Err(match given.keys().next() {
            Some(key) if given.len() == 1 && key != "name" => {
                format!(
                    "`{key}` alone is no function, which has a name; add a provider's tools to the request yourself"
                )
            }
            _ => "a tool is {name, description, inputSchema}, and this one has no name".to_owned(),
        });
    };
    let mut function =
        json!({ "name": name, "description": given.get("description").and_then(Value::as_str).unwrap_or_default() });
    match schema {
        Some(schema @ Value::Object(_)) => function["inputSchema"] = json_schema(schema.clone()),
        Some(_) => return Err(format!("the schema of the tool {name:?} is an object")),
        None => {}
    }
    Ok(function)
}

/// A schema with the names that JSON Schema has for types. Google's are in capitals.
fn json_schema(mut schema: Value) -> Value {
    const TYPES: [&str; 7] = ["OBJECT", "STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "NULL"];
    match &mut schema {
        Value::Object(members) => {
            for (key, member) in members {
                match member {
                    Value::String(kind) if key == "type" && TYPES.contains(&kind.as_str()) => {
                        kind.make_ascii_lowercase()
                    }
                    _ => *member = json_schema(member.take()),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = json_schema(item.take())),
        _ => {}
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_is_the_same_function() {
        let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
        let expected = vec![json!({"name": "read", "description": "Reads.", "inputSchema": schema})];
        let declared = json!({"name": "read", "description": "Reads.", "parametersJsonSchema": schema});
        let of_google = json!({"name": "read", "description": "Reads.", "parameters": {
            "type": "OBJECT", "properties": {"path": {"type": "STRING"}}}});
        for given in [
            json!({"name": "read", "description": "Reads.", "inputSchema": schema}),
            json!({"name": "read", "description": "Reads.", "input_schema": schema}),
            json!({"type": "custom", "name": "read", "description": "Reads.", "input_schema": schema, "cache_control": {"type": "ephemeral"}}),
            json!({"name": "read", "description": "Reads.", "parameters": schema}),
            json!({"type": "function", "name": "read", "description": "Reads.", "parameters": schema, "strict": true}),
            json!({"type": "function", "function": {"name": "read", "description": "Reads.", "parameters": schema}}),
            json!({"functionDeclarations": [declared]}),
            json!({"function_declarations": [of_google]}),
        ] {
            assert_eq!(functions(&given).as_ref(), Ok(&expected), "{given}");
        }
        let two = json!({"functionDeclarations": [{"name": "a"}, {"name": "b"}]});
        assert_eq!(functions(&two).expect("two").iter().map(name).collect::<Vec<_>>(), [Some("a"), Some("b")]);
        assert_eq!(functions(&json!({"name": "a"})), Ok(vec![json!({"name": "a", "description": ""})]));
    }

    #[test]
    fn a_property_named_type_keeps_its_schema() {
        let schema = json!({"type": "OBJECT", "properties": {"type": {"type": "STRING", "enum": ["OBJECT"]}}});
        let expected = json!({"type": "object", "properties": {"type": {"type": "string", "enum": ["OBJECT"]}}});
        assert_eq!(json_schema(schema), expected);
    }

    #[test]
    fn other_values_are_no_functions() {
        for (given, why) in [
            (json!(7), "an object"),
            (json!({}), "no name"),
            (json!({"name": ""}), "no name"),
            (json!({"foo": 1}), "`foo` alone"),
            (json!({"googleSearch": {}}), "`googleSearch` alone"),
            (json!({"type": "web_search_20250305", "name": "web_search"}), "a tool of a provider"),
            (json!({"type": "custom", "name": "apply_patch"}), "a tool of a provider"),
            (json!({"type": "function", "function": 7}), "`function` is an object"),
            (json!({"functionDeclarations": {}}), "`functionDeclarations` is a list"),
            (json!({"functionDeclarations": [7]}), "is an object"),
            (json!({"name": "a", "inputSchema": "none"}), "the schema of the tool \"a\""),
        ] {
            let error = functions(&given).expect_err("no function");
            assert!(error.contains(why), "{given}: {error}");
        }
        let kept = vec![json!({"type": "web_search"}), json!({"name": "a", "v": 1})];
        assert_eq!(of_file(kept.clone()), kept);
        let nested = json!({"type": "function", "function": {"name": "a"}});
        assert_eq!(of_file(vec![nested]), [json!({"name": "a", "description": ""})]);
    }
}
