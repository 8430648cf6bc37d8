//! The todo list of an agent, from the calls of the tool that holds it and from their results.
//!
//! Some tools are given the whole list, some answer with it, and some change one task with each call. A call counts once
//! its result says that it succeeded.

use crate::{
    conversation::{
        entry::{CarriedTodos, Entry, Todo, TodoState as State},
        message::{self, Message, ToolCall},
        path::Path,
    },
    ids::{CallId, EntryId},
    prompts::escape_tags,
    redact::Secrets,
    settings::Settings,
    text,
};
use serde_json::{Map, Value};
use std::{collections::HashMap, sync::Arc};

/// Tools of common agents: pi's and oh-my-pi's, Claude Code's, Codex's, OpenCode's, those of editors.
const KNOWN: [&str; 9] = [
    "todo",
    "todo_write",
    "TodoWrite",
    "todowrite",
    "TaskCreate",
    "TaskUpdate",
    "update_plan",
    "manage_todo_list",
    "todos",
];

/// Characters of a task that are kept.
const LONGEST: usize = 240;

/// Characters of the open tasks together, at most: about a thousand tokens.
const MOST: usize = 4_000;

/// Characters that a list has in any case: the task under way and a few more.
const LEAST: usize = 400;

/// The rules by which a list is read and kept.
#[derive(Debug, Clone)]
pub struct Rules {
    /// Tools that hold a list, beside the known ones.
    tools: Arc<[String]>,
    secrets: Secrets,
    /// Limit of the open tasks, in characters.
    chars: usize,
}

impl Default for Rules {
    fn default() -> Self {
        Self { tools: Arc::default(), secrets: Secrets::Redacted, chars: MOST }
    }
}

impl Rules {
    /// The same with the tools and the redaction of these settings.
    #[must_use]
    pub fn of(self, settings: &Settings) -> Self {
        Self { tools: settings.tools.todo.as_slice().into(), secrets: settings.redaction.secrets(), ..self }
    }

    /// The same for a room of so many characters.
    #[must_use]
    pub fn within(self, chars: usize) -> Self {
        Self { chars: chars.clamp(LEAST, MOST), ..self }
    }

    fn hold(&self, tool: &str) -> bool {
        KNOWN.contains(&tool) || self.tools.iter().any(|it| it == tool)
    }

    /// A text without secrets, on one line. It is cleaned before it is clipped: half of a secret looks like none.
    fn clean(&self, task: &str) -> String {
        let task = self.secrets.clean(task);
        text::one_line(&escape_tags(&task), LONGEST)
    }
}

/// The open tasks at the end of a path, as its next compaction carries them. None where nothing is open.
#[must_use]
pub fn open_tasks(path: &Path, rules: &Rules) -> Option<CarriedTodos> {
    let first = path.first_kept();
    // A compaction of another program carries no list.
    let carried = path.compaction().and_then(|place| Some((place, path[place].compaction()?.preserved()?)));
    let (list, from) = match carried {
        Some((place, preserved)) => (preserved.agent.todos.as_ref().map(List::carried), place + 1),
        None => (None, first),
    };
    let mut reading = Reading { rules, calls: HashMap::new(), list };
    for (place, entry) in path.iter().enumerate().skip(first) {
        reading.hear(entry, place >= from);
    }
    reading.list?.open(rules)
}

/// The list that the newest of these entries leave behind.
pub(super) fn list<'a>(entries: impl Iterator<Item = &'a Arc<Entry>>, tools: &[String]) -> Vec<Todo> {
    let rules = Rules { tools: tools.into(), ..Rules::default() };
    let mut reading = Reading { rules: &rules, calls: HashMap::new(), list: None };
    entries.for_each(|entry| reading.hear(entry, true));
    reading.list.map(|list| list.tasks).unwrap_or_default()
}

/// A list while the entries of a path are read.
struct Reading<'r> {
    rules: &'r Rules,
    /// Calls of tools that hold a list, without their results so far.
    calls: HashMap<CallId, (EntryId, ToolCall)>,
    list: Option<List>,
}

/// A list as it stands at some entry.
struct List {
    tasks: Vec<Todo>,
    /// Number of tasks that are known to be done or open, and are not named.
    done: usize,
    more: usize,
    entry: EntryId,
    since: Option<EntryId>,
}

impl Reading<'_> {
    /// Reads an entry. Where it is not `new`, a compaction carries what its result changed.
    fn hear(&mut self, entry: &Entry, new: bool) {
        let Some(outline) = entry.outline() else { return };
        if !outline.failed && outline.calls.iter().any(|call| self.rules.hold(&call.name)) {
            let message = entry.message_once();
            let Some(Message::Assistant(answer)) = message.as_deref() else { return };
            let held = answer.calls().filter(|call| self.rules.hold(&call.name));
            self.calls.extend(held.map(|call| (call.id.clone(), (entry.id.clone(), call.clone()))));
        }
        let Some((said, call)) = outline.answers.as_ref().and_then(|call| self.calls.remove(call)) else { return };
        let message = entry.message_once();
        let Some(Message::ToolResult(result)) = message.as_deref() else { return };
        if !new || result.is_error {
            return;
        }
        let details =
            entry.message_json().and_then(message::value).and_then(|mut it| it.get_mut("details").map(Value::take));
        let happened = Happened {
            arguments: message::value(&call.arguments).unwrap_or_default(),
            details: details.unwrap_or_default(),
            text: message::text_of(&result.content),
            call: &call.name,
            said: &said,
            entry: &entry.id,
        };
        self.list = happened.after(self.list.take());
    }
}

/// A call of a tool that holds a list, and its result.
struct Happened<'a> {
    call: &'a str,
    arguments: Value,
    details: Value,
    text: String,
    /// The entry of the call.
    said: &'a EntryId,
    /// The entry of the result.
    entry: &'a EntryId,
}

impl Happened<'_> {
    /// The list after the call.
    fn after(&self, before: Option<List>) -> Option<List> {
        let tells = before.is_none();
        let list = |tasks: Vec<Todo>, since: Option<EntryId>| {
            Some(List { tasks, done: 0, more: 0, entry: self.entry.clone(), since })
        };
        let since = before.as_ref().map_or_else(|| Some(self.said.clone()), |before| before.since.clone());
        if let Some(tasks) = whole(&self.details) {
            let shown =
                tasks.iter().filter(|task| task.state != State::Done).all(|task| self.text.contains(&task.text));
            return list(tasks, if shown { Some(self.entry.clone()) } else { since });
        }
        let changes = Change::all(self.call, &self.arguments, &self.text);
        if changes.is_empty() {
            return match whole(&self.arguments) {
                Some(tasks) => list(tasks, Some(self.said.clone())),
                None => before,
            };
        }
        let replaces = changes.iter().any(|change| matches!(change, Change::Replace(_)));
        let mut next = before.unwrap_or_else(|| List {
            tasks: Vec::new(),
            done: 0,
            more: 0,
            entry: self.entry.clone(),
            since: Some(self.said.clone()),
        });
        changes.into_iter().for_each(|change| next.change(change));
        next.entry = self.entry.clone();
        if replaces && !tells {
            next.since = Some(self.said.clone());
        }
        Some(next)
    }
}

/// The whole list in the arguments of a call or in the details of a result; none where they hold no list.
fn whole(value: &Value) -> Option<Vec<Todo>> {
    const LISTS: [&str; 6] = ["todos", "phases", "plan", "tasks", "todoList", "items"];
    let mut found = Vec::new();
    collect(value, &mut found);
    let empty = |key: &str| value.get(key).and_then(Value::as_array).is_some_and(Vec::is_empty);
    (!found.is_empty() || LISTS.iter().any(|key| empty(key))).then_some(found)
}

/// Every object with a state and a text, wherever the tool puts it.
fn collect(value: &Value, found: &mut Vec<Todo>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Object(map) => match (text_of(map), state(map)) {
            (Some(text), Some(state)) => found.push(Todo { id: id_of(map), text: text.to_owned(), state }),
            _ => map.values().for_each(|item| collect(item, found)),
        },
        _ => {}
    }
}

fn text_of(map: &Map<String, Value>) -> Option<&str> {
    const KEYS: [&str; 7] = ["content", "text", "title", "step", "task", "subject", "description"];
    KEYS.iter().find_map(|key| map.get(*key)?.as_str())
}

fn state(map: &Map<String, Value>) -> Option<State> {
    let word = map.get("status").or_else(|| map.get("state")).and_then(Value::as_str).map(state_of);
    let done = |done: &Value| Some(if done.as_bool()? { State::Done } else { State::Open });
    word.or_else(|| map.get("done").or_else(|| map.get("completed")).and_then(done))
}

fn id_of(map: &Map<String, Value>) -> Option<String> {
    ["id", "taskId"].iter().find_map(|key| match map.get(*key)? {
        Value::String(id) => Some(id.clone()),
        Value::Number(id) => Some(id.to_string()),
        _ => None,
    })
}

fn state_of(word: &str) -> State {
    match word.to_ascii_lowercase().replace(['-', ' '], "_").as_str() {
        "completed" | "complete" | "done" | "cancelled" | "canceled" | "abandoned" | "dropped" | "deleted" => {
            State::Done
        }
        "in_progress" | "doing" | "active" | "started" => State::Doing,
        _ => State::Open,
    }
}

/// A change of a list.
enum Change {
    /// Another list.
    Replace(Vec<Todo>),
    /// More tasks.
    Add(Vec<Todo>),
    /// A state and perhaps another text.
    Set(Target, Option<State>, Option<String>),
    /// A task that is done is open again, and the other way round.
    Toggle(Target),
    Remove(Target),
}

/// The tasks that a change is about.
enum Target {
    /// By a name or a text.
    One(String),
    All,
}

impl Change {
    /// The changes of a call that changes tasks one by one; none where it gives a whole list, or changes nothing.
    fn all(tool: &str, arguments: &Value, result: &str) -> Vec<Self> {
        let Some(map) = arguments.as_object() else { return Vec::new() };
        let word = |key: &str| map.get(key).and_then(Value::as_str);
        match tool {
            "TaskCreate" => {
                let created =
                    text_of(map).map(|text| Todo { id: number_in(result), text: text.to_owned(), state: State::Open });
                return created.into_iter().map(|it| Self::Add(vec![it])).collect();
            }
            "TaskUpdate" => {
                let Some(id) = id_of(map) else { return Vec::new() };
                return vec![match word("status") {
                    Some("deleted") => Self::Remove(Target::One(id)),
                    status => Self::Set(Target::One(id), status.map(state_of), word("subject").map(str::to_owned)),
                }];
            }
            _ => {}
        }
        if let Some(ops) = map.get("ops").and_then(Value::as_array) {
            return ops.iter().filter_map(Value::as_object).flat_map(Self::of_op).collect();
        }
        match (word("op"), word("action")) {
            (Some(_), _) => Self::of_op(map),
            (None, Some("add")) => {
                let added =
                    word("text").map(|text| Todo { id: number_in(result), text: text.to_owned(), state: State::Open });
                added.into_iter().map(|it| Self::Add(vec![it])).collect()
            }
            (None, Some("toggle")) => id_of(map).into_iter().map(|id| Self::Toggle(Target::One(id))).collect(),
            (None, Some("clear")) => vec![Self::Replace(Vec::new())],
            _ => Vec::new(),
        }
    }

    /// An operation of oh-my-pi's tool. Phases of tasks are not told apart, so one that ends a phase changes nothing here;
    /// the details of its result have the whole list.
    fn of_op(map: &Map<String, Value>) -> Vec<Self> {
        let word = |key: &str| map.get(key).and_then(Value::as_str);
        let texts = |value: Option<&Value>| -> Vec<Todo> {
            let texts = value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
            texts.map(|text| Todo { id: None, text: text.to_owned(), state: State::Open }).collect()
        };
        let target = || match (word("task"), word("phase")) {
            (Some(task), _) => Some(Target::One(task.to_owned())),
            (None, Some(_)) => None,
            (None, None) => Some(Target::All),
        };
        let set = |state| target_of(target(), |target| Self::Set(target, Some(state), None));
        match word("op") {
            Some("init" | "replace") => {
                let phases =
                    map.get("list").or_else(|| map.get("phases")).and_then(Value::as_array).into_iter().flatten();
                let of_phases = phases.flat_map(|phase| texts(phase.get("items").or_else(|| phase.get("tasks"))));
                vec![Self::Replace(of_phases.chain(texts(map.get("items"))).collect())]
            }
            Some("append" | "add") => vec![Self::Add(texts(map.get("items")))],
            Some("start") => set(State::Doing),
            Some("done" | "drop") => set(State::Done),
            Some("unblock" | "block") => set(State::Open),
            Some("rm" | "remove") => target_of(target(), Self::Remove),
            _ => Vec::new(),
        }
    }
}

fn target_of(target: Option<Target>, change: impl FnOnce(Target) -> Change) -> Vec<Change> {
    target.map(change).into_iter().collect()
}

/// The number after the first `#` of a text.
fn number_in(text: &str) -> Option<String> {
    let digits: String = text.split_once('#')?.1.chars().take_while(char::is_ascii_digit).collect();
    Some(digits).filter(|digits| !digits.is_empty())
}

impl List {
    fn carried(carried: &CarriedTodos) -> Self {
        let CarriedTodos { entry_id, since: _, open, more, done } = carried.clone();
        Self { tasks: open, done, more, entry: entry_id, since: None }
    }

    fn change(&mut self, change: Change) {
        match change {
            Change::Replace(tasks) => (self.tasks, self.done, self.more) = (tasks, 0, 0),
            Change::Add(tasks) => self.tasks.extend(tasks),
            Change::Set(target, state, text) => {
                for task in self.of(&target) {
                    task.state = state.unwrap_or(task.state);
                    if let Some(text) = &text {
                        task.text.clone_from(text);
                    }
                }
            }
            Change::Toggle(target) => {
                for task in self.of(&target) {
                    task.state = if task.state == State::Done { State::Open } else { State::Done };
                }
            }
            Change::Remove(target) => self.tasks.retain(|task| !target.is(task)),
        }
    }

    fn of(&mut self, target: &Target) -> impl Iterator<Item = &mut Todo> {
        self.tasks.iter_mut().filter(|task| target.is(task))
    }

    /// The open tasks within the room of the rules: those under way first, then the first ones.
    fn open(self, rules: &Rules) -> Option<CarriedTodos> {
        let (done, open): (Vec<Todo>, Vec<Todo>) = self.tasks.into_iter().partition(|task| task.state == State::Done);
        let mut open: Vec<(usize, Todo)> = open
            .into_iter()
            .map(|task| Todo { text: rules.clean(&task.text), id: task.id.map(|id| rules.clean(&id)), ..task })
            .filter(|task| !task.text.is_empty())
            .enumerate()
            .collect();
        let all = open.len();
        open.sort_by_key(|(place, task)| (task.state != State::Doing, *place));
        let mut left = rules.chars;
        let fits = |(_, task): &(usize, Todo)| {
            let size = task.text.chars().count();
            let fits = size <= left;
            left = left.saturating_sub(size);
            fits
        };
        let mut open: Vec<(usize, Todo)> = open.into_iter().take_while(fits).collect();
        open.sort_by_key(|(place, _)| *place);
        let more = self.more + all - open.len();
        let open: Vec<Todo> = open.into_iter().map(|(_, task)| task).collect();
        (!open.is_empty()).then_some(CarriedTodos {
            entry_id: self.entry,
            since: self.since,
            open,
            more,
            done: self.done + done.len(),
        })
    }
}

impl Target {
    fn is(&self, task: &Todo) -> bool {
        match self {
            Self::All => true,
            Self::One(name) => match &task.id {
                Some(id) => id == name,
                // A carried text is clipped.
                None => task.text == *name || task.text == text::one_line(name, LONGEST),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A path of these lines; each names its id, and follows the one before.
    fn path(lines: &[Value]) -> Path {
        let mut path = Path::default();
        for line in lines {
            let mut line = line.clone();
            line["parentId"] = path.last().map_or(Value::Null, |leaf| json!(leaf.id));
            path.push(Arc::new(Entry::parse(line.to_string().into()).expect("an entry")));
        }
        path
    }

    /// A call and its result, entries `c<at>` and `r<at>`.
    fn called(at: usize, tool: &str, arguments: Value, text: &str, details: Value) -> [Value; 2] {
        let call = json!({"type": "toolCall", "id": format!("call{at}"), "name": tool, "arguments": arguments});
        let mut result = json!({"role": "toolResult", "toolCallId": format!("call{at}"), "toolName": tool,
            "content": [{"type": "text", "text": text}], "isError": false, "timestamp": 1});
        if !details.is_null() {
            result["details"] = details;
        }
        let said = json!({"role": "assistant", "content": [call], "stopReason": "toolUse", "timestamp": 1});
        [
            json!({"type": "message", "id": format!("c{at}"), "message": said}),
            json!({"type": "message", "id": format!("r{at}"), "message": result}),
        ]
    }

    fn failed(mut pair: [Value; 2]) -> [Value; 2] {
        pair[1]["message"]["isError"] = true.into();
        pair
    }

    /// The lines of the open tasks, with the entry from which on the messages tell them.
    fn told(lines: &[Value]) -> String {
        let rules = Rules { tools: ["mine".to_owned()].as_slice().into(), ..Rules::default() };
        open_tasks(&path(lines), &rules).map_or_else(String::new, |todos| {
            let since = todos.since.as_ref().map_or("-", |id| id.as_str());
            format!("{since} {}", todos.lines().replace("- [ ] ", "").replace('\n', " / "))
        })
    }

    fn claude(at: usize, todos: &[(&str, &str)]) -> [Value; 2] {
        let todos: Vec<Value> = todos.iter().map(|(text, status)| json!({"content": text, "status": status})).collect();
        called(at, "TodoWrite", json!({"todos": todos}), "Todos have been modified successfully.", Value::Null)
    }

    #[test]
    fn whole_lists_of_different_agents_are_read() {
        let [a, b] = [("a", "completed"), ("b", "in_progress")];
        assert_eq!(told(&claude(0, &[a, b, ("c", "pending")])), "c0 b (in progress) / c / (1 of the list are done)");
        let codex = called(
            0,
            "update_plan",
            json!({"plan": [{"step": "a", "status": "pending"}]}),
            "Plan updated",
            Value::Null,
        );
        assert_eq!(told(&codex), "c0 a");
        let phases = json!({"phases": [{"name": "p", "tasks": [{"title": "x", "state": "doing"}]}]});
        assert_eq!(told(&called(0, "mine", phases.clone(), "", Value::Null)), "c0 x (in progress)");
        assert_eq!(told(&called(0, "read", phases, "", Value::Null)), "");
        let mut redacted = claude(0, &[("deploy with AKIAIOSFODNN7EXAMPLE </todos>", "pending")]);
        let line = told(&redacted);
        assert!(!line.contains("AKIA") && line.contains("&lt;/todos>"), "{line}");
        redacted[1]["message"]["isError"] = true.into();
        assert_eq!(told(&redacted), "");
    }

    #[test]
    fn lists_in_the_details_of_results_are_read() {
        // oh-my-pi answers with the whole list in its text, too; pi's example with the changed task alone.
        let tasks = |state: &str| json!({"op": "start", "phases": [{"name": "P", "tasks": [{"content": "x", "status": state}, {"content": "y", "status": "completed"}]}]});
        let arguments = json!({"op": "start", "task": "x"});
        let all = "Remaining items (1):\n  - x [in_progress] (P)";
        assert_eq!(
            told(&called(0, "todo", arguments.clone(), all, tasks("in_progress"))),
            "r0 x (in progress) / (1 of the list are done)"
        );
        assert_eq!(told(&called(0, "todo", arguments, "Remaining items: none.", tasks("abandoned"))), "");
        let todos = |done: bool| json!({"action": "toggle", "todos": [{"id": 1, "text": "x", "done": false}, {"id": 2, "text": "y", "done": done}], "nextId": 3});
        let first = called(
            0,
            "todo",
            json!({"action": "add", "text": "x"}),
            "Added todo #1: x",
            json!({"todos": [{"id": 1, "text": "x", "done": false}]}),
        );
        let added = called(1, "todo", json!({"action": "add", "text": "y"}), "Added todo #2: y", todos(false));
        let toggled = called(2, "todo", json!({"action": "toggle", "id": 2}), "Todo #2 completed", todos(true));
        assert_eq!(told(&[first.clone(), added.clone()].concat()), "r0 #1 x / #2 y");
        assert_eq!(told(&[first, added, toggled].concat()), "r0 #1 x / (1 of the list are done)");
    }

    #[test]
    fn tools_that_change_one_task_with_each_call_are_followed() {
        let create = |at: usize, text: &str| {
            let number = at + 1;
            called(
                at,
                "TaskCreate",
                json!({"subject": text, "description": "more"}),
                &format!("Task #{number} created successfully: {text}"),
                Value::Null,
            )
        };
        let update = |at: usize, id: &str, status: &str| {
            called(at, "TaskUpdate", json!({"taskId": id, "status": status}), "Updated task status", Value::Null)
        };
        let lines = [create(0, "one"), create(1, "two"), update(2, "1", "in_progress")].concat();
        assert_eq!(
            told(&lines),
            "c0 #1 more (in progress) / #2 more"
                .replace("more", "x")
                .replace("#1 x", "#1 one")
                .replace("#2 x", "#2 two")
        );
        let done = [lines.clone(), update(3, "1", "completed").to_vec(), update(4, "2", "deleted").to_vec()].concat();
        assert_eq!(told(&done), "");
        let refused = [lines, failed(update(3, "1", "completed")).to_vec()].concat();
        assert!(told(&refused).contains("#1 one (in progress)"));
        // oh-my-pi's operations, where a host stored no details.
        let op = |at: usize, arguments: Value| called(at, "todo", arguments, "", Value::Null);
        let ops = [
            op(0, json!({"op": "init", "list": [{"phase": "A", "items": ["x", "y"]}, {"phase": "B", "items": ["z"]}]})),
            op(1, json!({"op": "done", "task": "x"})),
            op(2, json!({"op": "append", "phase": "B", "items": ["w"]})),
            op(3, json!({"op": "rm", "task": "z"})),
        ];
        assert_eq!(told(&ops.concat()), "c0 y / w / (1 of the list are done)");
        assert_eq!(told(&[ops.concat(), op(4, json!({"op": "done"})).to_vec()].concat()), "");
        let started = [ops.concat(), op(4, json!({"op": "start", "task": "y"})).to_vec()].concat();
        assert_eq!(told(&started), "c0 y (in progress) / w / (1 of the list are done)");
        let blocked = [started, op(5, json!({"op": "block", "task": "y"})).to_vec()].concat();
        assert_eq!(told(&blocked), "c0 y / w / (1 of the list are done)");
        let again = [ops.concat(), op(4, json!({"op": "init", "items": ["n"]})).to_vec()].concat();
        assert_eq!(told(&again), "c4 n");
        let legacy = op(0, json!({"ops": [{"op": "replace", "phases": [{"name": "A", "tasks": ["x"]}]}]}));
        assert_eq!(told(&legacy), "c0 x");
    }

    #[test]
    fn actions_without_details_change_the_list() {
        let act = |at: usize, arguments: Value, text: &str| called(at, "todo", arguments, text, Value::Null);
        let added = [
            act(0, json!({"action": "add", "text": "x"}), "Added todo #1: x"),
            act(1, json!({"action": "add", "text": "y"}), "Added todo #2: y"),
        ]
        .concat();
        assert_eq!(told(&added), "c0 #1 x / #2 y");
        let toggled = [added, act(2, json!({"action": "toggle", "id": 2}), "").to_vec()].concat();
        assert_eq!(told(&toggled), "c0 #1 x / (1 of the list are done)");
        let open = [toggled.clone(), act(3, json!({"action": "toggle", "id": 2}), "").to_vec()].concat();
        assert_eq!(told(&open), "c0 #1 x / #2 y");
        assert_eq!(told(&[toggled, act(3, json!({"action": "clear"}), "").to_vec()].concat()), "");
    }

    #[test]
    fn the_newest_list_counts_and_a_failed_or_open_call_changes_nothing() {
        let old = claude(0, &[("old", "pending")]);
        let new = claude(1, &[("new", "pending")]);
        assert_eq!(told(&[old.clone(), new.clone()].concat()), "c1 new");
        assert_eq!(told(&[old.clone(), failed(new.clone())].concat()), "c0 old");
        assert_eq!(told(&[old.to_vec(), new[..1].to_vec()].concat()), "c0 old");
        let cleared = called(1, "TodoWrite", json!({"todos": []}), "ok", Value::Null);
        assert_eq!(told(&[old.clone(), cleared].concat()), "");
        let reset = json!({"type": "reset_boundary", "id": "z"});
        assert_eq!(told(&[old.to_vec(), vec![reset]].concat()), "");
    }

    #[test]
    fn a_carried_list_goes_on_and_those_of_the_kept_part_are_not_read_twice() {
        let carried =
            json!({"entryId": "r9", "since": "c9", "open": [{"id": "7", "text": "seven", "state": "open"}], "done": 2});
        let compaction = |todos: Value| json!({"type": "compaction", "id": "k", "summary": "s", "firstKeptEntryId": "c0", "tokensBefore": 1, "preserveData": {"abridged": {"entryId": "k", "todos": todos}}});
        // The call is kept, and its result comes after the compaction.
        let update = called(0, "TaskUpdate", json!({"taskId": "7", "status": "in_progress"}), "ok", Value::Null);
        let around = [update[0].clone(), compaction(carried.clone()), update[1].clone()];
        assert_eq!(told(&around), "- #7 seven (in progress) / (2 of the list are done)");
        let kept = [claude(0, &[("kept", "pending")]).to_vec(), vec![compaction(carried)]].concat();
        assert_eq!(told(&kept), "- #7 seven / (2 of the list are done)");
        let none = [claude(0, &[("kept", "pending")]).to_vec(), vec![compaction(Value::Null)]].concat();
        assert_eq!(told(&none), "");
    }

    #[test]
    fn a_long_list_keeps_the_task_under_way_and_the_first_ones() {
        let texts: Vec<String> = (0..100).map(|at| format!("{at} {}", "word ".repeat(60))).collect();
        let state = |at: usize| if at == 70 { "in_progress" } else { "pending" };
        let todos: Vec<(&str, &str)> = texts.iter().enumerate().map(|(at, text)| (text.as_str(), state(at))).collect();
        let path = path(&claude(0, &todos));
        for (chars, number) in [(0, 1), (2_000, 8), (1 << 20, 16)] {
            let todos = open_tasks(&path, &Rules::default().within(chars)).expect("open tasks");
            assert_eq!((todos.open.len(), todos.more), (number, 100 - number));
            let doing = todos.open.last().expect("a task");
            assert!(doing.text.starts_with("70 ") && doing.state == State::Doing, "{doing:?}");
        }
    }
}
