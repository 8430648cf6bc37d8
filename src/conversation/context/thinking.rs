//! The thinking that goes back to a model which binds it to everything before it: system prompt, tools and messages.
//!
//! Such a model refuses thinking after other bytes than it was produced with. The requests of a session have the same bytes
//! before each message until something changes them, so thinking after the last change goes back, and all older thinking is
//! left out. A change of the prompts of the settings is not seen here: the server is asked to drop such thinking.

use crate::{
    conversation::{
        entry::{Body, Entry, Requested},
        instructions::{Announced, Instructions},
        message::outline::{Outline, Role},
        path::Path,
    },
    ids::{CallId, EntryId},
};
use std::{collections::HashSet, mem, sync::Arc};

/// A request that thinking goes back in.
#[derive(Clone, Copy)]
pub struct Request<'r> {
    /// Its system prompt and tools.
    pub instructions: &'r Instructions,
    /// The time at which the session was made of another one.
    pub forked: Option<&'r str>,
    /// Whether thinking goes back at some thinking levels of the model alone.
    pub depends_on_level: bool,
}

/// The place on a path from which on thinking is bound to what a request has before it.
#[must_use]
pub fn bound_from(path: &Path, request: Request<'_>) -> usize {
    let Request { instructions, forked, depends_on_level } = request;
    let rewrite = path.last_rewrite();
    if rewrite.is_none() && path.is_cut() {
        return path.len();
    }
    // Without tools in the session those in a request are made up from the calls, so that a call changes them.
    let calls = |entry: &Arc<Entry>| entry.outline().is_some_and(|it| !it.calls.is_empty());
    if instructions.tools().unwrap_or_default().is_empty() && path.iter().any(calls) {
        return path.len();
    }
    // The frame of a summary names the file of its session.
    let forked = forked.filter(|_| path.compaction().is_some());
    let mut from = rewrite.map_or(0, |place| place + 1);
    let (mut announced, mut order) = (Announced::default(), Order::default());
    let (mut level, mut is_announced) = (None, false);
    for (place, entry) in path.iter().enumerate() {
        if path.foundation() == Some(place) && (entry.compaction().is_some() || entry.preserved().is_some()) {
            announced.restore(entry);
            is_announced |= entry.preserved().is_some_and(|it| it.session.is_some());
        }
        is_announced |= Announced::by(entry);
        let is_set_anew =
            announces_others(&mut announced, entry) | (changes_level(&mut level, entry) && depends_on_level);
        order.is_fresh |= is_set_anew;
        let changes = is_set_anew
            | order.changes(entry)
            | forked.is_some_and(|forked| entry.timestamp.as_str() < forked)
            // The request of the answer before this line was another one than the path before it.
            | (lacks_a_message(path, place) || entry.is_ours("unbound"));
        if changes {
            from = from.max(place + 1);
        }
    }
    // Instructions of a load alone are not on the path. Those from before a compaction of another program are not read.
    let is_known = is_announced || !path.is_cut();
    if is_known && !announced.instructions().are_the_same_as(instructions) { path.len() } else { from }
}

/// Whether the line at a place says that the request of an answer lacked a message which the path has before the answer.
fn lacks_a_message(path: &Path, place: usize) -> bool {
    let gap = match path[place].requested() {
        None => return false,
        Some((_, Requested::Earlier)) => return true,
        Some((_, Requested::Without(gap) | Requested::Perhaps(gap))) => gap,
    };
    let place_of = |id: &EntryId| path[..place].iter().rposition(|entry| entry.id == *id);
    let (Some(first), Some(last)) = (place_of(&gap.from), place_of(&gap.to)) else { return true };
    path[first..=last].iter().any(|entry| entry.in_context() && !is_unsent(entry))
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

/// Whether an entry changes the thinking level. At some levels no thinking goes back, so that thinking which is produced there is
/// bound to messages without any.
fn changes_level<'e>(level: &mut Option<&'e str>, entry: &'e Entry) -> bool {
    match &entry.body {
        Body::ThinkingLevel(now) => level.replace(now) != Some(now),
        _ => false,
    }
}

/// The order of the messages at the end of a path. A request has other messages than the path where a message is made up for
/// it, and the messages after it are then bound to one that later requests do not have.
#[derive(Default)]
struct Order {
    /// The last message is an answer, so that a request had one of the user made up after it.
    after_answer: bool,
    /// The calls of the last answer without a result.
    open: HashSet<CallId>,
    /// Instructions or level changed after the last message. The request of an answer that follows may be from before that.
    is_fresh: bool,
}

impl Order {
    /// Takes the next entry. Returns whether requests before and after it differ before it.
    fn changes(&mut self, entry: &Entry) -> bool {
        if !entry.in_context() || is_unsent(entry) {
            return false;
        }
        let is_fresh = mem::take(&mut self.is_fresh);
        match entry.outline() {
            Some(outline) => self.message(outline) || is_fresh && outline.role == Role::Assistant,
            None => self.other(),
        }
    }

    fn message(&mut self, outline: &Outline) -> bool {
        match outline.role {
            Role::Assistant => {
                self.open = outline.calls.iter().map(|call| call.id.clone()).collect();
                mem::replace(&mut self.after_answer, true)
            }
            // A result that comes after the next answer replaces the one that was made up for the request of that answer.
            Role::ToolResult => {
                let is_next = outline.answers.as_ref().is_some_and(|call| self.open.remove(call));
                self.after_answer &= !is_next;
                !is_next
            }
            Role::User | Role::Developer | Role::Custom | Role::Execution | Role::System | Role::Summary => {
                self.other()
            }
        }
    }

    fn other(&mut self) -> bool {
        self.after_answer = false;
        false
    }
}

/// Whether no request has a message for an entry: it failed, is for the user alone, or has nothing but blanks.
fn is_unsent(entry: &Entry) -> bool {
    let is_blank = || entry.readable_text().trim().is_empty() && entry.image_bytes() == 0;
    let Some(outline) = entry.outline() else { return is_blank() };
    match outline.role {
        Role::Assistant => outline.failed || outline.empty,
        Role::ToolResult | Role::Summary => false,
        Role::System => true,
        Role::Execution => outline.excluded,
        Role::User | Role::Developer | Role::Custom => outline.silent || is_blank(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::instructions::Given;
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
        from_fork(entries, instructions, None)
    }

    fn from_fork(entries: &[Value], instructions: &Instructions, forked: Option<&str>) -> usize {
        let mut path = Path::default();
        for (at, entry) in entries.iter().enumerate() {
            let mut entry = entry.clone();
            entry["id"] = json!(format!("e{at}"));
            entry["timestamp"] = json!(format!("2026-01-01T00:00:{at:02}.000Z"));
            entry["parentId"] = at.checked_sub(1).map_or(Value::Null, |before| json!(format!("e{before}")));
            path.push(Entry::parse(entry.to_string().into()).expect("an entry").into());
        }
        bound_from(&path, Request { instructions, forked, depends_on_level: true })
    }

    #[test]
    fn thinking_is_bound_after_the_last_change_of_what_a_request_begins_with() {
        let tools = [json!({"name": "read"})];
        let given = Given { system_prompt: None, tools: Some(tools.to_vec()) };
        let nothing = Instructions::new(given, &Default::default());
        let session = session(json!({ "tools": tools }));
        let level = |level: &str| json!({"type": "thinking_level_change", "thinkingLevel": level});
        let blank = message(json!({"role": "user", "content": " \n"}));
        let edit = json!({"type": "context_edit", "targetId": "e2", "action": "drop"});
        let compaction = json!({"type": "compaction", "summary": "s", "firstKeptEntryId": "e1", "tokensBefore": 1});
        let pin = json!({"type": "custom", "customType": "abridged.pin", "data": {"text": "Keep this."}});
        let report = json!({"type": "custom", "customType": "abridged.report",
            "data": {"entryId": "e3", "without": {"from": "e2", "to": "e2"}}});
        let retried = json!({"type": "custom", "customType": "abridged.report",
            "data": {"entryId": "e3", "without": {"from": "e2", "to": "e2"}}});
        let unbound = json!({"type": "custom", "customType": "abridged.unbound", "data": {"entryId": "e2"}});
        let long = message(json!({"role": "user", "content": "\n".repeat(2_000)}));
        let usage = json!({"type": "usage", "purpose": "compaction", "usage": {"input": 1}});
        let mut failed = answer(&[]);
        failed["message"]["stopReason"] = json!("error");
        for (what, entries, place) in [
            ("turns", vec![user(), answer(&["a"]), result("a"), answer(&[])], 0),
            ("a compaction", vec![user(), answer(&[]), compaction.clone(), user(), answer(&[])], 3),
            ("an answer after a compaction", vec![user(), answer(&[]), compaction.clone(), answer(&[]), user()], 4),
            ("an edit", vec![user(), answer(&[]), edit, user()], 3),
            ("a pin", vec![user(), answer(&[]), user(), pin, answer(&[])], 4),
            ("a request without the last message", vec![user(), user(), answer(&[]), report, user()], 4),
            ("a marker of another request", vec![user(), answer(&[]), unbound, user()], 3),
            ("a request without an answer that failed", vec![user(), failed.clone(), answer(&[]), retried, user()], 0),
            ("a long blank message", vec![answer(&[]), long, answer(&[]), user()], 3),
            ("an entry beside the conversation", vec![user(), answer(&[]), usage, user(), answer(&[])], 0),
            ("results in another order", vec![user(), answer(&["a", "b"]), result("b"), result("a")], 0),
            ("an answer that failed", vec![user(), failed.clone(), answer(&[])], 0),
            ("an answer to an answer", vec![user(), answer(&[]), answer(&[]), user(), answer(&[])], 3),
            ("a failed one between them", vec![user(), answer(&[]), failed, answer(&[])], 4),
            ("a result after a message", vec![user(), answer(&["a"]), user(), result("a"), answer(&[])], 0),
            ("a blank message between answers", vec![user(), answer(&[]), blank, answer(&[]), user()], 4),
            ("the same level", vec![level("high"), user(), answer(&[]), level("high"), user()], 1),
            ("another level", vec![level("high"), user(), answer(&[]), level("off"), user()], 4),
            ("another level before an answer", vec![user(), level("off"), answer(&[]), user()], 3),
            ("a result after an answer", vec![answer(&["a", "b"]), result("a"), answer(&[]), result("b"), user()], 4),
            ("a result twice", vec![user(), answer(&["a"]), result("a"), result("a"), answer(&[])], 4),
        ] {
            let entries: Vec<Value> = std::iter::once(session.clone()).chain(entries).collect();
            assert_eq!(from(&entries, &nothing), place + 1, "{what}");
        }
    }

    #[test]
    fn thinking_is_bound_to_the_instructions() {
        let prompt = |text: &str| session(json!({ "systemPrompt": text }));
        let given = |text: &str| {
            let given = Given { system_prompt: Some(text.to_owned()), tools: None };
            Instructions::new(given, &Default::default())
        };
        let title = session(json!({"systemPrompt": "a", "settings": {"compaction": {"enabled": false}}}));
        assert_eq!(from(&[prompt("a"), user(), answer(&[]), title], &given("a")), 1, "the prompt stays");
        assert_eq!(from(&[prompt("a"), user(), answer(&[]), prompt("b"), user()], &given("b")), 4, "another prompt");
        assert_eq!(from(&[prompt("a"), user(), answer(&[])], &given("c")), 3, "a prompt that is not on the path");
        let tools = session(json!({"systemPrompt": "a", "tools": [{"name": "read"}]}));
        assert_eq!(from(&[prompt("a"), user(), tools, user()], &given("a")), 4, "tools that are not in the request");
        let called = [prompt("a"), user(), answer(&["a"]), result("a"), answer(&[])];
        assert_eq!(from(&called, &given("a")), 5, "tools that are made up from the calls");
        assert_eq!(from(&[prompt("a"), user(), prompt("b"), answer(&[]), user()], &given("b")), 4, "meanwhile");
    }

    #[test]
    fn a_fork_has_another_summary_before_the_messages_that_it_copied() {
        let compaction = json!({"type": "compaction", "summary": "s", "firstKeptEntryId": "e0", "tokensBefore": 1});
        let entries = [user(), answer(&[]), compaction, user(), answer(&[]), user(), answer(&[])];
        let forked = Some("2026-01-01T00:00:04.500Z");
        assert_eq!(from_fork(&entries, &Instructions::default(), forked), 5);
        assert_eq!(from_fork(&entries[..2], &Instructions::default(), forked), 0, "there is no summary");
    }
}
