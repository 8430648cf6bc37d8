//! Params that are missing, wrong or misspelt are refused with their path, in every method of the schema.

use crate::{json_schema, support::Daemon};
use abridged::protocol::{methods, schema};
use serde_json::{Map, Value, json};

/// The params of a method in the schema.
fn properties(schema: &Value, method: &str) -> (Map<String, Value>, Vec<String>) {
    let params = &schema["properties"][method]["properties"]["params"];
    let definition = match params["$ref"].as_str() {
        Some(path) => schema.pointer(path.trim_start_matches('#')).expect("a definition"),
        None => params,
    };
    let required = definition["required"].as_array().into_iter().flatten();
    let required = required.map(|name| name.as_str().expect("a name").to_owned()).collect();
    (definition["properties"].as_object().cloned().unwrap_or_default(), required)
}

/// A value of each kind. A schema allows some, and no schema of a param allows all.
fn candidates() -> [Value; 9] {
    let message = json!({"role": "user", "content": "x"});
    [
        json!("/x"),
        json!(8_000),
        json!(true),
        json!({}),
        json!([]),
        json!(["session_compacting"]),
        json!([message]),
        json!({"provider": "p", "id": "m"}),
        json!({"epoch": "e", "seq": 1}),
    ]
}

/// The values of a closed set.
fn constants(schema: &Value, property: &Value) -> Vec<Value> {
    let resolved = |value: &Value| match value["$ref"].as_str() {
        Some(path) => schema.pointer(path.trim_start_matches('#')).expect("a definition").clone(),
        None => value.clone(),
    };
    let mut found = Vec::new();
    let mut open = vec![resolved(property)];
    while let Some(one) = open.pop() {
        found.extend(one.get("const").cloned());
        found.extend(one["enum"].as_array().into_iter().flatten().cloned());
        let members = ["anyOf", "oneOf"].iter().filter_map(|name| one[name].as_array()).flatten();
        open.extend(members.map(&resolved));
    }
    found
}

fn fits(schema: &Value, property: &Value, value: &Value) -> bool {
    json_schema::problem(schema, property, value).is_none()
}

/// Params with the required ones alone.
fn least(schema: &Value, method: &str) -> Value {
    let (properties, required) = properties(schema, method);
    let value = |name: &String| {
        let property = &properties[name];
        let all = constants(schema, property).into_iter().chain(candidates());
        all.into_iter().find(|value| fits(schema, property, value)).unwrap_or_else(|| panic!("{method}: {name}"))
    };
    required.iter().map(|name| (name.clone(), value(name))).collect::<Map<_, _>>().into()
}

/// The methods that are answered, without the one that ends the daemon.
fn answered() -> impl Iterator<Item = &'static str> {
    methods().into_iter().filter(|method| !method.notification && method.name != "shutdown").map(|method| method.name)
}

fn refused(daemon: &mut Daemon, method: &str, params: &Value) -> (String, String) {
    let error = daemon.call(method, params.clone()).expect_err("it is refused");
    assert_eq!(error["data"]["code"], "invalid_params", "{method} {params}: {error}");
    let text = error["message"].as_str().expect("a text").to_owned();
    for word in ["struct", "variant", "sequence", "map", "newtype", "u64", "usize", "line", "untagged"] {
        assert!(
            !text.split(|letter: char| !letter.is_alphanumeric()).any(|part| part == word),
            "{method} {params}: {word} in {text}"
        );
    }
    (error["data"]["path"].as_str().expect("a path").to_owned(), text)
}

#[test]
fn a_missing_param_is_refused_by_its_name() {
    let (schema, mut daemon) = (schema::schema(), Daemon::start());
    let mut count = 0;
    for method in answered() {
        for name in properties(&schema, method).1 {
            let mut params = least(&schema, method);
            params.as_object_mut().expect("an object").remove(&name);
            assert_eq!(refused(&mut daemon, method, &params).0, name, "{method}");
            count += 1;
        }
    }
    assert!(count > 40, "{count} params");
}

#[test]
fn a_param_of_another_type_is_refused_by_its_name() {
    let (schema, mut daemon) = (schema::schema(), Daemon::start());
    // The messages of an append are read by its session.
    let session = daemon.new_session(json!({"cwd": "/project"}));
    let mut count = 0;
    for method in answered() {
        for (name, property) in properties(&schema, method).0 {
            // `initialize` reads every form of hooks as far as it is right.
            if name == "capabilities" {
                continue;
            }
            for wrong in [json!(true), json!(-7), json!([7]), json!({"q": 1}), json!("\u{1}")] {
                let problem = json_schema::problem(&schema, &property, &wrong);
                // Other fields of an object are ignored.
                if problem.is_none_or(|problem| problem.contains("nobody knows the field")) {
                    continue;
                }
                let mut params = least(&schema, method);
                if params.get("sessionId").is_some() {
                    params["sessionId"] = json!(session);
                }
                params[&name] = wrong;
                let (path, _) = refused(&mut daemon, method, &params);
                assert!(
                    path == name || path.starts_with(&format!("{name}.")) || path.starts_with(&format!("{name}[")),
                    "{method} {params}: {path}"
                );
                count += 1;
            }
        }
    }
    assert!(count > 300, "{count} values");
}

#[test]
fn a_misspelt_param_is_refused_and_another_one_is_ignored() {
    let (schema, mut daemon) = (schema::schema(), Daemon::start());
    for method in answered().filter(|method| *method != "initialize") {
        let mut params = least(&schema, method);
        params["zebraCrossing"] = json!(1);
        if let Err(error) = daemon.call(method, params) {
            assert_ne!(error["data"]["path"], "zebraCrossing", "{method}: {error}");
        }
        for (name, property) in properties(&schema, method).0 {
            let misspelt = format!("{name}x");
            let mut params = least(&schema, method);
            params[&misspelt] =
                candidates().into_iter().find(|value| fits(&schema, &property, value)).unwrap_or_default();
            let (path, text) = refused(&mut daemon, method, &params);
            assert_eq!(path, misspelt, "{method}");
            assert!(text.contains(&format!("did you mean {name:?}?")), "{method}: {text}");
        }
    }
}
