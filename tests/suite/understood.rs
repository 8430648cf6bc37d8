//! Params of clients are understood, or refused by name: tools, settings, levels and folders.

use crate::support::{Daemon, LONG, user};
use serde_json::{Value, json};

/// The tool `read` in each shape that a provider takes.
fn shapes() -> Vec<Value> {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let named = |key: &str| {
        let mut tool = json!({"name": "read", "description": "Reads a file."});
        tool[key] = schema.clone();
        tool
    };
    let of_google = json!({"name": "read", "description": "Reads a file.", "parameters": {
        "type": "OBJECT", "properties": {"path": {"type": "STRING"}}}});
    vec![
        named("inputSchema"),
        named("input_schema"),
        named("parameters"),
        json!({"type": "function", "function": named("parameters")}),
        json!({"functionDeclarations": [of_google]}),
        json!({"functionDeclarations": [named("parametersJsonSchema")]}),
    ]
}

/// The tools of the four request bodies of a session.
fn bodies(daemon: &mut Daemon, session: &str) -> Vec<Value> {
    daemon.ok("session/append", json!({"sessionId": session, "messages": [user("Read it.")]}));
    let formats = ["anthropic", "openai_chat", "openai_responses", "google"];
    let body =
        |format| daemon.ok("session/context", json!({"sessionId": session, "format": format}))["body"]["tools"].take();
    formats.map(body).to_vec()
}

#[test]
fn tools_in_the_shape_of_any_provider_are_the_same_tools() {
    let mut daemon = Daemon::start();
    let mut all = Vec::new();
    for tool in shapes() {
        let session = daemon.new_session(json!({"cwd": "/project", "model": "p/m", "tools": [tool]}));
        all.push(bodies(&mut daemon, &session));
        let session = daemon.new_session(json!({"cwd": "/project", "model": "p/m"}));
        daemon.ok("session/configure", json!({"sessionId": session, "tools": [tool]}));
        all.push(bodies(&mut daemon, &session));
        let session = daemon.new_session(json!({"cwd": "/project", "model": "p/m"}));
        daemon.ok("tools/set", json!({"sessionId": session, "tools": [tool]}));
        all.push(bodies(&mut daemon, &session));
    }
    assert_eq!(all[0][1][0]["function"]["parameters"]["properties"]["path"]["type"], "string");
    assert_eq!(all[0][3][0]["functionDeclarations"][0]["name"], "read");
    assert!(all.iter().all(|bodies| *bodies == all[0]), "{all:#?}");
}

#[test]
fn tools_that_are_no_functions_are_refused_with_their_place() {
    let mut daemon = Daemon::start();
    let good = shapes().remove(0);
    for (bad, path, says) in [
        (json!(7), "tools[1]", "a tool is an object"),
        (json!({"foo": 1}), "tools[1]", "`foo` alone is no function"),
        (json!({"type": "web_search_20250305", "name": "web_search"}), "tools[1]", "a tool of a provider"),
        (json!({"googleSearch": {}}), "tools[1]", "add a provider's tools to the request yourself"),
        (json!({"type": "function", "function": {"name": "read"}}), "tools[1].function.name", "two tools"),
        (json!({"name": "a", "desciption": "x"}), "tools[1].desciption", "did you mean \"description\"?"),
        (json!({"name": "a", "inputShema": {}}), "tools[1].inputShema", "did you mean \"inputSchema\"?"),
        (json!({"function": {"nme": "a"}}), "tools[1].function.nme", "did you mean \"name\"?"),
        (json!({"name": "a", "description": 7}), "tools[1].description", "is a text"),
        (json!({"functionDeclarations": [{"name": "a"}, {}]}), "tools[1].functionDeclarations[1].name", "no name"),
    ] {
        let error = daemon.err("session/new", json!({"cwd": "/project", "tools": [good, bad]}));
        assert_eq!(
            (&error["data"]["code"], &error["data"]["path"]),
            (&json!("invalid_params"), &json!(path)),
            "{error}"
        );
        assert!(error["message"].as_str().expect("a text").contains(says), "{error}");
    }
}

#[test]
fn a_tool_without_a_schema_is_refused_at_its_place_among_the_params() {
    let mut daemon = Daemon::start();
    let described = json!({"name": "a", "parameters": {"type": "OBJECT"}});
    let google = json!({"functionDeclarations": [described, {"name": "b"}]});
    let error = daemon.err("tools/set", json!({"tools": [google, {"name": "c"}]}));
    assert_eq!(error["data"]["path"], "tools[1]", "{error}");
    assert!(error["message"].as_str().expect("a text").contains("has no inputSchema"), "{error}");
    // In the forms of OpenAI and Google such a function takes no arguments.
    let openai = json!({"type": "function", "function": {"name": "c"}});
    daemon.ok("tools/set", json!({"tools": [google, openai]}));
}

#[test]
fn a_misspelt_member_of_a_message_is_refused_and_nothing_is_appended() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(json!({"cwd": "/project"}));
    let said = json!({"role": "user", "content": "Hello."});
    for (format, message, path, says) in [
        (
            "messages",
            json!({"role": "assistant", "content": "Hi.", "stopReson": "stop"}),
            "stopReson",
            "\"stopReason\"",
        ),
        ("messages", json!({"role": "assistant", "content": "Hi.", "stopReason": "stpo"}), "stopReason", "`stop`"),
        (
            "messages",
            json!({"role": "assistant", "content": "Hi.", "usage": {"ouput": 7}}),
            "usage.ouput",
            "\"output\"",
        ),
        (
            "messages",
            json!({"role": "assistant", "content": "Hi.", "usage": {"prompt_tokens": 9}}),
            "usage",
            "it has no count; expected input",
        ),
        (
            "anthropic",
            json!({"role": "assistant", "content": [], "stop_reason": "max_token"}),
            "stop_reason",
            "`max_tokens`",
        ),
        ("openai_chat", json!({"role": "assistant", "content": "Hi.", "tool_cals": []}), "tool_cals", "\"tool_calls\""),
        (
            "openai_responses",
            json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}", "satus": "completed"}),
            "satus",
            "\"status\"",
        ),
        (
            "google",
            json!({"role": "model", "parts": [{"text": "Hi.", "thougtSignature": "x"}]}),
            "parts[0].thougtSignature",
            "\"thoughtSignature\"",
        ),
    ] {
        let messages = if format == "google" {
            json!([{"role": "user", "parts": [{"text": "Hello."}]}, message])
        } else {
            json!([said, message])
        };
        let append = json!({"sessionId": session, "format": format, "messages": messages});
        for (method, params) in
            [("session/append", append), ("context/fit", json!({"format": format, "messages": messages}))]
        {
            let error = daemon.err(method, params);
            assert_eq!(error["data"]["path"], format!("messages[1].{path}"), "{method}: {error}");
            assert!(error["message"].as_str().expect("a text").contains(says), "{error}");
        }
    }
    for (format, beside, path) in [
        ("anthropic", json!({"usage": {"input_tokens": 9, "outputTokens": 1}}), "usage.outputTokens"),
        ("openai_chat", json!({"stopReason": "lenght"}), "stopReason"),
    ] {
        let mut params =
            json!({"sessionId": session, "format": format, "messages": [{"role": "assistant", "content": "Hi."}]});
        params.as_object_mut().expect("an object").extend(beside.as_object().expect("an object").clone());
        assert_eq!(daemon.err("session/append", params)["data"]["path"], path);
    }
    assert_eq!(daemon.ok("session/entries", json!({"sessionId": session}))["entries"], json!([]));
    // Members of a host's own stay.
    let own = json!({"role": "assistant", "content": "Hi.", "stopReason": "stop", "stopReasons": [], "mine": {"stopReson": 1}});
    daemon.append(&session, std::slice::from_ref(&own));
    let entries = daemon.ok("session/entries", json!({"sessionId": session}))["entries"].take();
    assert_eq!(
        (&entries[0]["message"]["stopReasons"], &entries[0]["message"]["mine"]),
        (&own["stopReasons"], &own["mine"])
    );
}

#[test]
fn members_of_tools_that_reach_no_provider_are_named() {
    let mut daemon = Daemon::start();
    let tool =
        json!({"name": "read", "description": "Reads.", "input_schema": {"type": "object"}, "cache_control": {}});
    let google = json!({"functionDeclarations": [{"name": "find"}], "googleSearch": {}});
    let answer = daemon.ok("session/new", json!({"cwd": "/project", "tools": [tool, google]}));
    assert_eq!(answer["_meta"]["ignored"], json!(["tools[0].cache_control", "tools[1].googleSearch"]));
    let session = answer["session"]["sessionId"].clone();
    let answer = daemon.ok("session/configure", json!({"sessionId": session, "tools": [tool]}));
    assert_eq!(answer["_meta"]["ignored"], json!(["tools[0].cache_control"]));
    // An answer of null has no place for it.
    daemon.ok("tools/set", json!({"sessionId": session, "tools": [tool]}));
    // It is no part of the answer, and may come after it.
    let is_notice = |frame: &Value| frame["method"] == "notice" && frame.to_string().contains("tools[0].cache_control");
    assert!(daemon.events.iter().any(is_notice) || daemon.next_within(LONG, is_notice).is_some(), "a notice");
}

#[test]
fn a_misspelt_setting_is_refused_and_others_are_named() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(json!({"cwd": "/project"}));
    daemon.ok("session/close", json!({"sessionId": session}));
    let misspelt = json!({"compaction": {"enabld": false}});
    for (method, params) in [
        ("session/new", json!({"cwd": "/project", "settings": misspelt})),
        ("session/load", json!({"sessionId": session, "settings": misspelt})),
    ] {
        let error = daemon.err(method, params);
        assert_eq!(error["data"]["path"], "settings.compaction.enabld");
        assert!(error["message"].as_str().expect("a text").ends_with("did you mean \"enabled\"?"), "{error}");
    }
    let error = daemon.err("settings/set", json!({"scope": "global", "patch": misspelt}));
    assert!(error["message"].as_str().expect("a text").ends_with("did you mean \"enabled\"?"), "{error}");

    let nested = "keys are nested: {\"compaction\": {\"enabled\": …}}";
    let dotted = json!({"compaction.enabled": false});
    for (method, params) in [
        ("session/new", json!({"cwd": "/project", "settings": dotted})),
        ("settings/set", json!({"scope": "global", "patch": dotted})),
    ] {
        let error = daemon.err(method, params);
        assert!(error["message"].as_str().expect("a text").ends_with(nested), "{error}");
    }

    let foreign = json!({"compaction": {"zebra": 1}});
    let answer = daemon.ok("session/new", json!({"cwd": "/project", "settings": foreign, "colour": 1}));
    assert_eq!(answer["_meta"]["ignored"], json!(["colour", "settings.compaction.zebra"]));
    let error = daemon.err("session/configure", json!({"sessionId": "s", "settings": {}}));
    assert!(error["message"].as_str().expect("a text").contains("settings/set"), "{error}");
}

#[test]
fn a_wrong_value_is_told_in_the_words_of_json() {
    let mut daemon = Daemon::start();
    for (settings, says) in [
        (json!({"compaction": {"enabled": "yes"}}), "expected a boolean"),
        (json!({"compaction": {"models": 7}}), "expected a list"),
        (json!({"prune": 7}), "expected an object"),
        (json!({"prune": {"protectTokens": "x"}}), "expected a whole number"),
    ] {
        let error = daemon.err("session/new", json!({"cwd": "/project", "settings": settings}));
        let text = error.to_string();
        assert!(text.contains(says), "{text}");
        for word in ["struct", "sequence", "u64", "f64", "variant"] {
            assert!(!text.contains(word), "{word} in {text}");
        }
    }
}

#[test]
fn levels_and_folders_are_checked() {
    let mut daemon = Daemon::start();
    let error = daemon.err("session/new", json!({"cwd": "/project", "thinkingLevel": "very"}));
    assert_eq!(error["data"]["path"], "thinkingLevel");
    assert!(error["message"].as_str().expect("a text").contains("`xhigh`"), "{error}");
    for (level, says) in [(json!("hgh"), "did you mean `high`?"), (json!(5), "expected one of `off`, `minimal`")] {
        let error = daemon.err("session/new", json!({"cwd": "/project", "thinkingLevel": level}));
        assert!(error["message"].as_str().expect("a text").contains(says), "{error}");
    }
    let error = daemon.err("session/new", json!({"cwd": "project"}));
    assert_eq!(error["data"]["path"], "cwd");
    let session = daemon.new_session(json!({"cwd": "/project", "thinkingLevel": "high"}));
    let error = daemon.err("session/configure", json!({"sessionId": session, "thinkingLevel": "very"}));
    assert_eq!(error["data"]["path"], "thinkingLevel");
    let set = daemon.ok("session/configure", json!({"sessionId": session, "thinkingLevel": null}));
    assert_eq!(set["session"]["thinkingLevel"], "off");
}
