//! Tools in the shapes in which they are given to the four providers, and their one form here.
//!
//! | given as | shape |
//! |---|---|
//! | here, MCP | `{name, description, inputSchema}` |
//! | Anthropic | `{name, description, input_schema}`, with `type: "custom"` or without |
//! | OpenAI Responses, pi | `{name, description, parameters}`, with `type: "function"` or without |
//! | OpenAI Chat | `{type: "function", function: {name, description, parameters}}` |
//! | Google | `{functionDeclarations: [{name, description, parameters or parametersJsonSchema}, …]}` |

//!
//! The other members of a tool reach no provider. [`unknown`] names them, and the ones that are misspelt.

use crate::text::spelling;
use serde_json::{Map, Value, json};

/// A function of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// The function as `{name, description, inputSchema}`.
    pub value: Value,
    /// Its path from the tool on; empty for the tool itself.
    pub path: String,
}

/// The reason why a tool is no function that every provider can be given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The path of the value from the tool on; empty for the tool itself.
    pub path: String,
    /// The problem and the expected value.
    pub what: String,
}

impl Fault {
    fn new(path: impl Into<String>, what: impl Into<String>) -> Self {
        Self { path: path.into(), what: what.into() }
    }

    /// The same fault of a member of another value.
    fn below(self, path: &str) -> Self {
        Self { path: joined(path, &self.path), ..self }
    }
}

/// The functions of a tool. Google's form has several in one tool.
///
/// # Errors
/// The first reason why the tool is no function that every provider can be given.
pub fn functions(tool: &Value) -> Result<Vec<Function>, Fault> {
    let Some(given) = tool.as_object() else { return Err(Fault::new("", "a tool is an object")) };
    let nested = nested(given)?;
    if nested.is_empty() && !given.keys().any(|key| LISTS.contains(&key.as_str())) {
        let is_declared = given.get("type").is_some_and(|kind| kind == "function");
        let value = if is_declared { declared(given)? } else { function(given)? };
        return Ok(vec![Function { value, path: String::new() }]);
    }
    let one = |(path, function_of): Nested<'_>| {
        let value = declared(function_of).map_err(|fault| fault.below(&path))?;
        Ok(Function { value, path })
    };
    nested.into_iter().map(one).collect()
}

/// A function in the forms of OpenAI and Google, which takes no arguments where it has no schema.
///
/// # Errors
/// When it is no function, or a schema stands in a member of another name, which would be lost.
fn declared(given: &Map<String, Value>) -> Result<Value, Fault> {
    let mut function = function(given)?;
    if function.get("inputSchema").is_some() {
        return Ok(function);
    }
    // Other members may be schemas, too: `response` of Google and `outputSchema` of MCP are those of results.
    if let Some((member, _)) =
        given.iter().find(|(name, value)| ELSEWHERE.contains(&name.as_str()) && value.is_object())
    {
        return Err(Fault::new(member, format!("`{member}` is no member of a function; did you mean `parameters`?")));
    }
    function["inputSchema"] = json!({ "type": "object", "properties": {} });
    Ok(function)
}

/// The members of a function inside of a tool, with its path from the tool on.
type Nested<'a> = (String, &'a Map<String, Value>);

/// The functions inside of a tool. None in a flat tool.
fn nested(given: &Map<String, Value>) -> Result<Vec<Nested<'_>>, Fault> {
    if let Some(name) = LISTS.into_iter().find(|name| given.contains_key(*name)) {
        let Some(list) = given[name].as_array() else { return Err(Fault::new(name, format!("`{name}` is a list"))) };
        let declarations = list.iter().enumerate().map(|(at, declaration)| {
            let path = format!("{name}[{at}]");
            match declaration.as_object() {
                Some(declaration) => Ok((path, declaration)),
                None => Err(Fault::new(path, format!("each of `{name}` is an object"))),
            }
        });
        return declarations.collect();
    }
    match given.get(INNER) {
        Some(Value::Object(inner)) => Ok(vec![(INNER.to_owned(), inner)]),
        Some(_) => Err(Fault::new(INNER, "`function` is an object")),
        None => Ok(Vec::new()),
    }
}

fn joined(path: &str, below: &str) -> String {
    match (path, below) {
        ("", path) | (path, "") => path.to_owned(),
        (path, below) => format!("{path}.{below}"),
    }
}

/// The functions of tools that a file has: versions before this one stored every shape. A flat tool, or one that is no function,
/// stays as it is.
#[must_use]
pub fn of_file(tools: Vec<Value>) -> Vec<Value> {
    let is_nested = |tool: &Value| LISTS.iter().chain([&INNER]).any(|key| tool.get(key).is_some());
    let one = |tool: Value| match is_nested(&tool).then(|| functions(&tool)) {
        Some(Ok(functions)) => functions.into_iter().map(|function| function.value).collect(),
        _ => vec![tool],
    };
    tools.into_iter().flat_map(one).collect()
}

/// A member of a tool that no function has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// Its path from the list of tools on, such as `[0].function.parametrs`.
    pub path: String,
    /// The member that it looks like.
    pub meant: Option<&'static str>,
}

/// The members of tools that reach no provider, in their order. Values that are no tools have none.
#[must_use]
pub fn unknown(tools: &Value) -> Vec<Unknown> {
    let mut found = Vec::new();
    for (at, tool) in tools.as_array().into_iter().flatten().enumerate() {
        let Some(given) = tool.as_object() else { continue };
        let place = format!("[{at}]");
        match nested(given) {
            Ok(inner) if !inner.is_empty() => {
                note(given, &place, &WRAPPER, &mut found);
                inner.iter().for_each(|(path, function)| note(function, &joined(&place, path), &MEMBERS, &mut found));
            }
            Ok(_) => {
                let known: Vec<&'static str> = MEMBERS.iter().chain(&WRAPPER).copied().collect();
                note(given, &place, &known, &mut found);
            }
            Err(_) => {}
        }
    }
    found
}

fn note(given: &Map<String, Value>, place: &str, known: &[&'static str], found: &mut Vec<Unknown>) {
    let unknown = given.keys().filter(|key| !known.contains(&key.as_str()) && *key != "_meta");
    found.extend(unknown.map(|key| {
        let meant = spelling::meant(key, known.iter().copied());
        let meant = meant.and_then(|meant| known.iter().copied().find(|known| *known == meant));
        Unknown { path: joined(place, key), meant }
    }));
}

/// Members with the functions of a tool of Google.
const LISTS: [&str; 2] = ["functionDeclarations", "function_declarations"];

/// The member with the function of a tool of OpenAI Chat.
const INNER: &str = "function";

/// Members of a tool around its functions.
const WRAPPER: [&str; 4] = ["type", LISTS[0], LISTS[1], INNER];

/// Members with the schema of the arguments.
const SCHEMAS: [&str; 5] = ["inputSchema", "input_schema", "parameters", "parametersJsonSchema", "inputJsonSchema"];

/// Names under which other programs have the schema of the arguments. A function with one of them and none of the others would
/// lose it.
const ELSEWHERE: [&str; 6] = ["schema", "arguments", "args", "params", "input", "jsonSchema"];

/// Members of a function.
const MEMBERS: [&str; 8] = ["name", "description", "type", SCHEMAS[0], SCHEMAS[1], SCHEMAS[2], SCHEMAS[3], SCHEMAS[4]];

/// The name of a function.
#[must_use]
pub fn name(function: &Value) -> Option<&str> {
    function["name"].as_str().filter(|name| !name.is_empty())
}

fn function(given: &Map<String, Value>) -> Result<Value, Fault> {
    let kind = given.get("type").and_then(Value::as_str);
    let schema = SCHEMAS.iter().find_map(|name| Some((*name, given.get(*name).filter(|schema| !schema.is_null())?)));
    if let Some(kind) = kind.filter(|kind| *kind != "function" && (*kind != "custom" || schema.is_none())) {
        let what = format!("{kind:?} is a tool of a provider; give functions here and add it to the request yourself");
        return Err(Fault::new("", what));
    }
    let name = match given.get("name") {
        Some(Value::String(name)) if !name.is_empty() => name,
        Some(other) if !other.is_null() && other != "" => {
            return Err(Fault::new("name", "the name of a tool is a text"));
        }
        _ => {
            return Err(match given.keys().next() {
                Some(key) if given.len() == 1 && key != "name" => {
                    let next = "add a provider's tools to the request yourself";
                    Fault::new("", format!("`{key}` alone is no function, which has a name; {next}"))
                }
                _ => Fault::new("name", "a tool is {name, description, inputSchema}, and this one has no name"),
            });
        }
    };
    let description = match given.get("description") {
        Some(Value::String(text)) => text.as_str(),
        None | Some(Value::Null) => "",
        Some(_) => return Err(Fault::new("description", format!("the description of the tool {name:?} is a text"))),
    };
    let mut function = json!({ "name": name, "description": description });
    match schema {
        Some((member, schema @ Value::Object(_))) => {
            let schema = json_schema(schema.clone());
            if let Some(kind) = schema.get("type").filter(|kind| !allows_objects(kind)) {
                let what =
                    format!("the arguments of the tool {name:?} are an object, and this schema has the type {kind}");
                return Err(Fault::new(format!("{member}.type"), what));
            }
            function["inputSchema"] = schema;
        }
        Some((member, _)) => {
            return Err(Fault::new(member, format!("the schema of the tool {name:?} is an object")));
        }
        None => {}
    }
    Ok(function)
}

/// Whether the `type` of a schema allows objects.
fn allows_objects(kind: &Value) -> bool {
    match kind {
        Value::Array(kinds) => kinds.iter().any(|kind| kind == "object"),
        Value::Null => true,
        kind => kind == "object",
    }
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

    fn values(given: &Value) -> Vec<Value> {
        functions(given).expect("functions").into_iter().map(|function| function.value).collect()
    }

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
            assert_eq!(values(&given), expected, "{given}");
        }
        let two = json!({"functionDeclarations": [{"name": "a"}, {"name": "b"}]});
        assert_eq!(values(&two).iter().map(name).collect::<Vec<_>>(), [Some("a"), Some("b")]);
        assert_eq!(values(&json!({"name": "a"})), [json!({"name": "a", "description": ""})]);
    }

    #[test]
    fn a_property_named_type_keeps_its_schema() {
        let schema = json!({"type": "OBJECT", "properties": {"type": {"type": "STRING", "enum": ["OBJECT"]}}});
        let expected = json!({"type": "object", "properties": {"type": {"type": "string", "enum": ["OBJECT"]}}});
        assert_eq!(json_schema(schema), expected);
    }

    #[test]
    fn other_values_are_no_functions() {
        for (given, path, why) in [
            (json!(7), "", "an object"),
            (json!({}), "name", "no name"),
            (json!({"name": ""}), "name", "no name"),
            (json!({"name": 7}), "name", "a text"),
            (json!({"name": "a", "description": ["x"]}), "description", "a text"),
            (json!({"foo": 1}), "", "`foo` alone"),
            (json!({"googleSearch": {}}), "", "`googleSearch` alone"),
            (json!({"type": "web_search_20250305", "name": "web_search"}), "", "a tool of a provider"),
            (json!({"type": "custom", "name": "apply_patch"}), "", "a tool of a provider"),
            (json!({"type": "function", "function": 7}), "function", "`function` is an object"),
            (json!({"type": "function", "function": {"name": ""}}), "function.name", "no name"),
            (json!({"functionDeclarations": {}}), "functionDeclarations", "`functionDeclarations` is a list"),
            (json!({"functionDeclarations": [7]}), "functionDeclarations[0]", "is an object"),
            (json!({"functionDeclarations": [{"name": "a"}, {"name": 1}]}), "functionDeclarations[1].name", "a text"),
            (json!({"name": "a", "input_schema": "none"}), "input_schema", "the schema of the tool \"a\""),
            (json!({"name": "a", "inputSchema": {"type": "objct"}}), "inputSchema.type", "are an object"),
            (json!({"name": "a", "parameters": {"type": ["string", "null"]}}), "parameters.type", "are an object"),
            (
                json!({"type": "function", "name": "a", "schema": {"type": "object"}}),
                "schema",
                "did you mean `parameters`",
            ),
            (
                json!({"type": "function", "function": {"name": "a", "arguments": {"properties": {}}}}),
                "function.arguments",
                "`arguments` is no member",
            ),
            (
                json!({"functionDeclarations": [{"name": "a", "args": {"type": "OBJECT"}}]}),
                "functionDeclarations[0].args",
                "did you mean `parameters`",
            ),
        ] {
            let fault = functions(&given).expect_err("no function");
            assert_eq!(fault.path, path, "{given}");
            assert!(fault.what.contains(why), "{given}: {}", fault.what);
        }
        let kept = vec![json!({"type": "web_search"}), json!({"name": "a", "v": 1})];
        assert_eq!(of_file(kept.clone()), kept);
        let nested = json!({"type": "function", "function": {"name": "a"}});
        let schema = json!({"type": "object", "properties": {}});
        assert_eq!(of_file(vec![nested]), [json!({"name": "a", "description": "", "inputSchema": schema})]);
    }

    #[test]
    fn a_function_of_openai_or_google_without_parameters_takes_no_arguments() {
        let expected =
            vec![json!({"name": "a", "description": "", "inputSchema": {"type": "object", "properties": {}}})];
        for given in [
            json!({"type": "function", "name": "a"}),
            json!({"type": "function", "function": {"name": "a", "parameters": null}}),
            json!({"functionDeclarations": [{"name": "a"}]}),
            json!({"functionDeclarations": [{"name": "a", "response": {"type": "OBJECT", "properties": {}}}]}),
            json!({"type": "function", "name": "a", "outputSchema": {"type": "object"}}),
        ] {
            assert_eq!(values(&given), expected, "{given}");
        }
    }

    #[test]
    fn members_that_reach_no_provider_are_named_and_misspelt_ones_known() {
        let tools = json!([
            {"name": "a", "desciption": "x", "inputShema": {}, "strict": true, "_meta": 1},
            {"type": "function", "function": {"name": "b", "parametrs": {}}, "cache_control": {}},
            {"functionDeclarations": [{"name": "c"}, {"name": "d", "parametersJsonSchem": {}}], "googleSearch": {}},
            {"functionDeclaration": [{"name": "e"}]},
            7,
        ]);
        let found = unknown(&tools);
        let found: Vec<_> = found.iter().map(|unknown| (unknown.path.as_str(), unknown.meant)).collect();
        let expected = [
            ("[0].desciption", Some("description")),
            ("[0].inputShema", Some("inputSchema")),
            ("[0].strict", None),
            ("[1].cache_control", None),
            ("[1].function.parametrs", Some("parameters")),
            ("[2].googleSearch", None),
            ("[2].functionDeclarations[1].parametersJsonSchem", Some("parametersJsonSchema")),
            ("[3].functionDeclaration", Some("functionDeclarations")),
        ];
        assert_eq!(found, expected);
    }
}
