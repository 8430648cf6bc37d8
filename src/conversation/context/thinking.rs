//! The thinking that goes back to a model which binds it to everything before it: system prompt, tools and messages.
//!
//! Such a model refuses thinking whose prefix is another one than when it was produced. A context has the same bytes as
//! before up to its last rewrite, so thinking after that place is bound to what still stands before it, and all older
//! thinking is left out.

use crate::{
    conversation::{
        entry::Entry,
        instructions::{Announced, Instructions},
        message::outline::{Outline, Role},
        path::Path,
    },
    ids::CallId,
};
use std::{collections::HashSet, mem};

/// The place on a path from which on thinking is bound to what a request with these instructions has before it.
#[must_use]
pub fn bound_from(path: &Path, instructions: &Instructions) -> usize {
    let rewrite = path.last_rewrite();
    if rewrite.is_none() && path.is_cut() {
        return path.len();
    }
    let mut from = rewrite.map_or(0, |place| place + 1);
    let (mut announced, mut order) = (Announced::default(), Order::default());
    for (place, entry) in path.iter().enumerate() {
        if path.foundation() == Some(place) && (entry.compaction().is_some() || entry.preserved().is_some()) {
            announced.restore(entry);
        }
        if announces_others(&mut announced, entry) || order.changes(entry) {
            from = from.max(place + 1);
        }
    }
    // Instructions of a load alone are not on the path.
    if announced.instructions().are_the_same_as(instructions) { from } else { path.len() }
}

/// Whether an entry changes the instructions.
fn announces_others(announced: &mut Announced, entry: &Entry) -> bool {
    if !Announced::by(entry) {
        return false;
    }
    let before = announced.clone();
    announced.take(entry);
    !announced.instructions().are_the_same_as(before.instructions())
}

/// The order of the messages at the end of a path. A request has other messages than the path where a message is made up for
/// it, and the messages after it are then bound to one that later requests do not have.
#[derive(Default)]
struct Order {
    /// The last message is an answer, so that a request had one of the user made up after it.
    after_answer: bool,
    /// The calls of the last answer without a result, where nothing but results followed it.
    open: HashSet<CallId>,
}

impl Order {
    /// Takes the next entry. Returns whether requests before and after it differ before it.
    fn changes(&mut self, entry: &Entry) -> bool {
        if !entry.in_context() {
            return false;
        }
        match entry.outline() {
            Some(outline) => self.message(outline),
            None => self.other(),
        }
    }

    fn message(&mut self, outline: &Outline) -> bool {
        match outline.role {
            Role::Assistant if outline.failed || outline.empty => false,
            Role::Assistant => {
                self.open = outline.calls.iter().map(|call| call.id.clone()).collect();
                mem::replace(&mut self.after_answer, true)
            }
            // A result that comes late takes the place of one that was made up.
            Role::ToolResult => {
                let is_next = outline.answers.as_ref().is_some_and(|call| self.open.remove(call));
                self.after_answer &= !is_next;
                !is_next
            }
            Role::User | Role::Developer | Role::Custom if outline.silent => false,
            Role::Execution if outline.excluded => false,
            Role::User | Role::Developer | Role::Custom | Role::Execution | Role::System | Role::Summary => {
                self.other()
            }
        }
    }

    fn other(&mut self) -> bool {
        self.after_answer = false;
        self.open.clear();
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn message(message: Value) -> Value {
        json!({"type": "message", "message": message})
    }

    fn user() -> Value {
        message(json!({"role": "user", "content": "Go on."}))
    }

    fn answer(calls: &[&str]) -> Value {
        let calls = calls.iter().map(|id| json!({"type": "toolCall", "id": id, "name": "read", "arguments": {}}));
        let text = json!({"type": "text", "text": "Fine."});
        message(json!({"role": "assistant", "content": std::iter::once(text).chain(calls).collect::<Vec<_>>()}))
    }

    fn result(call: &str) -> Value {
        message(json!({"role": "toolResult", "toolCallId": call, "toolName": "read", "content": "text"}))
    }

    fn session(data: Value) -> Value {
        json!({"type": "custom", "customType": "abridged.session", "data": data})
    }

    /// The number of entries before the place.
    fn from(entries: &[Value], instructions: &Instructions) -> usize {
        let mut path = Path::default();
        for (at, entry) in entries.iter().enumerate() {
            let mut entry = entry.clone();
            entry["id"] = json!(format!("e{at}"));
            entry["parentId"] = at.checked_sub(1).map_or(Value::Null, |before| json!(format!("e{before}")));
            path.push(Entry::parse(entry.to_string().into()).expect("an entry").into());
        }
        bound_from(&path, instructions)
    }

    #[test]
    fn thinking_is_bound_after_the_last_change_of_what_a_request_begins_with() {
        let nothing = Instructions::default();
        let edit = json!({"type": "context_edit", "targetId": "e1", "action": "drop"});
        let compaction = json!({"type": "compaction", "summary": "s", "firstKeptEntryId": "e0", "tokensBefore": 1});
        let pin = json!({"type": "custom", "customType": "abridged.pin", "data": {"text": "Keep this."}});
        let usage = json!({"type": "usage", "purpose": "compaction", "usage": {"input": 1}});
        let mut failed = answer(&[]);
        failed["message"]["stopReason"] = json!("error");
        for (what, entries, place) in [
            ("turns", vec![user(), answer(&["a"]), result("a"), answer(&[])], 0),
            ("a compaction", vec![user(), answer(&[]), compaction, user(), answer(&[])], 3),
            ("an edit", vec![user(), answer(&[]), edit, user()], 3),
            ("a pin", vec![user(), answer(&[]), user(), pin, answer(&[])], 4),
            ("an entry beside the conversation", vec![user(), answer(&[]), usage, user(), answer(&[])], 0),
            ("results in another order", vec![user(), answer(&["a", "b"]), result("b"), result("a")], 0),
            ("an answer that failed", vec![user(), failed.clone(), answer(&[])], 0),
            ("an answer to an answer", vec![user(), answer(&[]), answer(&[]), user(), answer(&[])], 3),
            ("a failed one between them", vec![user(), answer(&[]), failed, answer(&[])], 4),
            ("a result after a message", vec![user(), answer(&["a"]), user(), result("a"), answer(&[])], 4),
            ("a result after an answer", vec![answer(&["a", "b"]), result("a"), answer(&[]), result("b"), user()], 4),
            ("a result twice", vec![user(), answer(&["a"]), result("a"), result("a"), answer(&[])], 4),
        ] {
            assert_eq!(from(&entries, &nothing), place, "{what}");
        }
    }

    #[test]
    fn thinking_is_bound_to_the_instructions() {
        let prompt = |text: &str| session(json!({ "systemPrompt": text }));
        let given = |text: &str| {
            let given = crate::conversation::instructions::Given { system_prompt: Some(text.to_owned()), tools: None };
            Instructions::new(given, &Default::default())
        };
        let title = session(json!({"systemPrompt": "a", "settings": {"compaction": {"enabled": false}}}));
        assert_eq!(from(&[prompt("a"), user(), answer(&[]), title], &given("a")), 1, "the prompt stays");
        assert_eq!(from(&[prompt("a"), user(), answer(&[]), prompt("b"), user()], &given("b")), 4, "another prompt");
        assert_eq!(from(&[prompt("a"), user(), answer(&[])], &given("c")), 3, "a prompt that is not on the path");
        let tools = session(json!({"systemPrompt": "a", "tools": [{"name": "read"}]}));
        assert_eq!(from(&[prompt("a"), user(), tools, user()], &given("a")), 4, "tools that are not in the request");
    }
}
