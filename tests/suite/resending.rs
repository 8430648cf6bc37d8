//! A request of the user is edited and sent again: a navigation to it, and new text behind.

use crate::support::*;
use serde_json::{Value, json};

fn of(session: &str, more: Value) -> Value {
    let mut params = json!({"sessionId": session});
    params.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    params
}

fn navigate(daemon: &mut Daemon, session: &str, target: &Value, more: Value) -> Value {
    let mut params = of(session, json!({"targetEntryId": target, "wait": true}));
    params.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    let answer = daemon.ok("session/navigate", params);
    assert_eq!(answer["outcome"], "completed", "{answer:#}");
    answer
}

/// The nodes of a tree by id.
fn nodes(daemon: &mut Daemon, session: &str) -> Vec<Value> {
    daemon.ok("session/tree", of(session, json!({})))["nodes"].as_array().expect("nodes").clone()
}

fn node<'a>(nodes: &'a [Value], id: &Value) -> &'a Value {
    nodes.iter().find(|node| node["id"] == *id).unwrap_or_else(|| panic!("{id} is not in {nodes:#?}"))
}

/// The nearest message before an entry.
fn message_before<'a>(nodes: &'a [Value], id: &Value) -> Option<&'a Value> {
    let mut parent = &node(nodes, id)["parentId"];
    while !parent.is_null() {
        let found = node(nodes, parent);
        if found["type"] == "message" {
            return Some(&found["id"]);
        }
        parent = &found["parentId"];
    }
    None
}

#[test]
fn an_edited_request_begins_a_branch_and_the_old_one_stays_reachable() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(json!({"cwd": "/project"}));
    let ids = daemon.append(&session, &turns(3))["entryIds"].clone();
    // The second request.
    let request = ids[4].clone();
    let old = daemon.context(&session);
    let answer = navigate(&mut daemon, &session, &request, json!({"label": "first try"}));
    assert_eq!((&answer["newLeafId"], &answer["oldLeafId"]), (&ids[3], &ids[11]));
    let edited = answer["editorText"].as_str().expect("a text").replace("part_1", "part_9");
    assert!(edited.contains("look at part_9"), "{edited}");
    let again = daemon.append(&session, &[user(&edited), assistant("Part 9 is fine.")])["entryIds"].clone();

    let tree = nodes(&mut daemon, &session);
    assert_eq!((message_before(&tree, &again[0]), message_before(&tree, &request)), (Some(&ids[3]), Some(&ids[3])));
    assert_eq!(
        (&node(&tree, &request)["label"], &node(&tree, &again[0])["label"]),
        (&json!("first try"), &Value::Null)
    );
    let context = daemon.context(&session);
    let shown: Vec<&Value> = context["entryIds"].as_array().expect("ids").iter().collect();
    assert_eq!(shown, [&ids[0], &ids[1], &ids[2], &ids[3], &again[0], &again[1]]);

    let aside = daemon.ok("session/context", of(&session, json!({"leafEntryId": ids[11]})));
    assert_eq!((&aside["messages"], &aside["entryIds"]), (&old["messages"], &old["entryIds"]));
    let status = daemon.ok("session/status", of(&session, json!({})));
    let path: std::path::PathBuf = status["session"]["path"].as_str().expect("a path").into();
    daemon.ok("session/close", of(&session, json!({})));
    daemon.load(&path);
    assert_eq!(daemon.context(&session), context, "a session opens where its user left it");
    navigate(&mut daemon, &session, &ids[11], json!({}));
    let back = daemon.context(&session);
    assert_eq!((&back["messages"], &back["entryIds"]), (&old["messages"], &old["entryIds"]));
    // The same again of the branch that was left last.
    navigate(&mut daemon, &session, &again[1], json!({}));
    assert_eq!(daemon.context(&session)["entryIds"], context["entryIds"]);
}

#[test]
fn the_first_request_is_edited_too_and_with_an_image_its_text_goes_to_the_editor() {
    let mut daemon = Daemon::start();
    let session =
        daemon.new_session(json!({"cwd": "/project", "systemPrompt": "Be brief.", "model": "openai/gpt-4.1"}));
    let mut first = user("What is in the picture?");
    first["content"]
        .as_array_mut()
        .expect("blocks")
        .push(json!({"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="}));
    let ids = daemon.append(&session, &[first, assistant("A point.")])["entryIds"].clone();
    let answer = navigate(&mut daemon, &session, &ids[0], json!({}));
    assert_eq!(answer["editorText"], "What is in the picture?");
    assert_eq!(daemon.context(&session)["messages"], json!([]));
    let again = daemon.append(&session, &[user("What colour is it?")])["entryIds"].clone();
    assert_eq!(daemon.context(&session)["entryIds"], again);
    let body = daemon.ok("session/context", of(&session, json!({"format": "openai_chat"})))["body"].clone();
    assert_eq!(body["messages"][0]["content"], "Be brief.", "the values of the session stay");
    let aside = daemon.ok("session/context", of(&session, json!({"leafEntryId": ids[1]})));
    assert_eq!(aside["entryIds"], ids);
}
