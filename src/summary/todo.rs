//! The todo list of an agent, from the newest call of the tool that holds it.

use crate::conversation::message::ToolCall;
use serde_json::Value;

/// A task and how far it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Todo {
    pub text: String,
    pub state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Open,
    Doing,
    Done,
}

/// Tools of common agents that are given the whole list: pi's and oh-my-pi's, Claude Code's, Codex's, OpenCode's.
const KNOWN: &[&str] = &["todo", "todo_write", "TodoWrite", "todowrite", "update_plan", "manage_todo_list", "todos"];

/// The list a call holds; none where the tool holds no list.
pub(super) fn of_call(call: &ToolCall, tools: &[String]) -> Option<Vec<Todo>> {
    if !KNOWN.contains(&call.name.as_str()) && !tools.contains(&call.name) {
        return None;
    }
    let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
    let mut found = Vec::new();
    collect(&arguments, &mut found);
    (!found.is_empty()).then_some(found)
}

/// Every object with a state and a text, wherever the tool puts it.
fn collect(value: &Value, found: &mut Vec<Todo>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Object(map) => {
            let text = ["content", "text", "title", "step", "task", "description", "subject"]
                .iter()
                .find_map(|key| map.get(*key)?.as_str());
            match (text, map.get("status").or_else(|| map.get("state")).and_then(Value::as_str)) {
                (Some(text), Some(state)) => found.push(Todo { text: text.to_owned(), state: state_of(state) }),
                _ => map.values().for_each(|item| collect(item, found)),
            }
        }
        _ => {}
    }
}

fn state_of(word: &str) -> State {
    match word.to_ascii_lowercase().replace(['-', ' '], "_").as_str() {
        "completed" | "complete" | "done" | "cancelled" | "canceled" | "abandoned" => State::Done,
        "in_progress" | "doing" | "active" | "started" => State::Doing,
        _ => State::Open,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_different_agents_are_read() {
        let of = |name: &str, arguments: &str| {
            let call = ToolCall { id: "c".into(), name: name.into(), arguments: arguments.into() };
            let todos = of_call(&call, &["mine".to_owned()])?;
            Some(todos.iter().map(|todo| format!("{}:{:?}", todo.text, todo.state)).collect::<Vec<_>>().join(" "))
        };
        let claude = r#"{"todos":[{"content":"a","status":"completed"},{"content":"b","status":"in_progress"}]}"#;
        assert_eq!(of("TodoWrite", claude).as_deref(), Some("a:Done b:Doing"));
        let codex = r#"{"plan":[{"step":"a","status":"pending"}]}"#;
        assert_eq!(of("update_plan", codex).as_deref(), Some("a:Open"));
        let phases = r#"{"phases":[{"name":"p","tasks":[{"title":"x","state":"doing"}]}]}"#;
        assert_eq!(of("mine", phases).as_deref(), Some("x:Doing"));
        assert_eq!(of("read", claude), None);
    }
}
