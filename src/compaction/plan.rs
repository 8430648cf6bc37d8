//! The plan of a compaction.

pub mod cut;

use super::style::Messages;
use crate::{
    conversation::{
        context,
        entry::{Body, CarriedCalibration, CarriedMessage, CarriedTodos, Entry, carried_data},
        message::outline::{Call, Role},
        path::Path,
        tokens::{Estimator, Scale},
    },
    ids::EntryId,
    models::Budget,
    prompts::Prompts,
    settings::Settings,
    summary::{span::Span, todo},
};
use cut::{Cut, Kind, Step, before, cut};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::{collections::HashSet, sync::Arc};

/// The demands on a compaction.
#[derive(Debug, Clone, Copy)]
pub struct Demand {
    /// Size of the kept tail, in tokens.
    pub keep: u64,
    /// Whether the request named that size. It then applies without a lower bound.
    pub explicit: bool,
    /// The scale of the session.
    pub scale: Scale,
    /// The parts of the window.
    pub budget: Budget,
    /// Size of the context now, in tokens.
    pub tokens_before: u64,
    /// The size up to which a context may stay whole, in tokens. Of a larger one less is kept than demanded, if there is no
    /// other cut.
    pub may_stay: u64,
    /// Whether the compaction is made even where it makes nothing smaller: the request has instructions.
    pub insists: bool,
}

/// The reason why the kept part cannot begin at an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoCut {
    /// The entry is not on the path, or an earlier compaction covers it.
    #[error("it is not among the messages of the context")]
    NotInContext,
    /// The entry is a tool result.
    #[error("it is a tool result, which stays with its call")]
    Result,
    /// An answer before the entry waits for results.
    #[error("a call before it still waits for its result")]
    OpenCall,
    /// No message precedes the entry.
    #[error("no message precedes it")]
    First,
}

/// The plan of a compaction. It is valid as long as the entries that it covers are unchanged.
#[derive(Debug, Clone)]
pub struct Plan {
    path: Path,
    /// Place on the path of the first entry that may be summarized: the kept tail of the previous compaction.
    start: usize,
    cut: Cut,
    /// Pinned entries, which are kept verbatim and not summarized.
    pinned: Arc<HashSet<EntryId>>,
    calibrations: Arc<[CarriedCalibration]>,
    /// The messages of the user in front of the summary, in the style that has some.
    messages: Option<Messages>,
    /// The data of other programs that the previous compaction carries.
    carried_data: Arc<Map<String, Value>>,
    todos: todo::Rules,
    /// The demands.
    pub demand: Demand,
    /// The frames around the summary and the carried message.
    pub prompts: Arc<Prompts>,
}

/// The reason why there is nothing to compact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NothingToDo {
    /// No message follows the last compaction.
    AlreadyCompacted,
    /// All messages are kept.
    TooShort,
    /// The result would not be smaller.
    WouldNotShrink,
    /// An agent asks below half of the threshold.
    BelowHalfThreshold,
}

/// Plans a compaction of a path. With `Estimator::Tiktoken` it may count for a while.
///
/// # Errors
/// When there is nothing to compact.
pub fn plan(path: Path, demand: Demand, prompts: Arc<Prompts>) -> Result<Plan, NothingToDo> {
    let too_large = !demand.explicit && demand.tokens_before > demand.may_stay;
    // Behind a compaction only messages that came while it was made, or another model, make a context too large.
    if !too_large && !anything_new(&path) {
        return Err(NothingToDo::AlreadyCompacted);
    }
    let start = path.first_kept();
    let window = Window::of(&path[start..]);
    let steps = window.steps(demand.scale.estimator());
    let (mut keep, stays) = (kept_tail(&demand), window.stays(&demand));
    let cut_at = |keep| cut(&steps, keep, stays);
    let cut = cut_at(keep);
    let pinned = Arc::new(path.pins().iter().map(|pin| pin.entry.clone()).collect());
    let carried_data = Arc::new(path.compaction().map(|place| carried_data(&path[place])).unwrap_or_default());
    // In a small window the todo list gets a sixth of the room.
    let sixth = demand.scale.fitting(demand.budget.available()) as usize / 2;
    let todos = todo::Rules::default().within(sixth);
    let calibrations = Arc::default();
    let mut plan =
        Plan { path, start, cut, pinned, calibrations, messages: None, carried_data, todos, demand, prompts };
    while plan.summarized().is_empty() {
        match (too_large, keep) {
            (true, 1..) => keep /= 2,
            // Edits make a context small enough that has nothing to summarize.
            (true, 0) if demand.tokens_before >= demand.budget.window => break,
            _ => return Err(NothingToDo::TooShort),
        }
        plan.cut = cut_at(keep);
    }
    Ok(plan)
}

/// Whether an entry of the context follows the compaction in force.
#[must_use]
fn anything_new(path: &Path) -> bool {
    let since = path.compaction().map_or(0, |place| place + 1);
    path[since..].iter().any(|entry| entry.in_context())
}

/// The estimate of the kept tail, in tokens: the demanded size, and no more than fits beside the summary.
fn kept_tail(demand: &Demand) -> u64 {
    if demand.explicit {
        return demand.keep;
    }
    let fits = demand.budget.available().saturating_sub(demand.budget.summary_cap());
    // An empty tail is only for a request that asks for it.
    demand.scale.fitting(demand.keep.min(fits)).max(u64::from(demand.keep > 0))
}

/// The entries after the last answer among `entries`: no model has read them.
#[must_use]
pub fn unread(entries: &[Arc<Entry>]) -> &[Arc<Entry>] {
    &entries[newest_answer(entries).map_or(0, |answer| answer + 1)..]
}

/// The ids of these entries.
#[must_use]
pub fn unread_ids(entries: &[Arc<Entry>]) -> HashSet<&EntryId> {
    unread(entries).iter().map(|entry| &entry.id).collect()
}

/// Entries that may be summarized, and those among them that are in no context: answers that failed or were removed.
pub(super) struct Window<'a> {
    entries: &'a [Arc<Entry>],
    removed: HashSet<&'a EntryId>,
}

/// The place of the newest answer. An answer that failed or was removed does not count: nothing shows that its model has read the
/// entries before it. An empty one counts: the model had nothing to say. Reads only the end of the entries, because an edit follows the entry that it removes.
fn newest_answer(entries: &[Arc<Entry>]) -> Option<usize> {
    let mut removed: HashSet<&EntryId> = HashSet::new();
    let answers =
        |entry: &Entry| entry.outline().is_some_and(|outline| outline.role == Role::Assistant && !outline.failed);
    entries.iter().rposition(|entry| match &entry.body {
        Body::ContextEdit(edit) if edit.replacement.is_none() => {
            removed.insert(&edit.target_id);
            false
        }
        _ => answers(entry) && !removed.contains(&entry.id),
    })
}

/// The places of the messages of the user that no model has read, oldest first. Reads only the end of the entries.
pub(super) fn unread_requests(entries: &[Arc<Entry>]) -> Vec<usize> {
    let unread = unread(entries);
    let (first, window) = (entries.len() - unread.len(), Window::of(unread));
    let waits = |entry: &Entry| entry.is_from(Role::User) && entry.in_context() && !window.is_gone(entry);
    unread.iter().enumerate().filter(|(_, entry)| waits(entry)).map(|(place, _)| first + place).collect()
}

impl<'a> Window<'a> {
    pub(super) fn of(entries: &'a [Arc<Entry>]) -> Self {
        let removed = entries.iter().filter_map(|entry| match &entry.body {
            Body::ContextEdit(edit) if edit.replacement.is_none() => Some(&edit.target_id),
            _ => None,
        });
        Self { entries, removed: removed.collect() }
    }

    /// Whether an entry is in no context.
    fn is_gone(&self, entry: &Entry) -> bool {
        entry.outline().is_some_and(|outline| outline.failed) || self.removed.contains(&entry.id)
    }

    fn steps(&self, estimator: Estimator) -> Vec<Step> {
        self.entries.iter().map(|entry| self.step(entry, estimator)).collect()
    }

    /// An entry that is in no context adds nothing to the tail. pi counts failed answers, so its tail may be shorter by them.
    fn step(&self, entry: &Arc<Entry>, estimator: Estimator) -> Step {
        let kind = match &entry.body {
            Body::Compaction(_) => Kind::Compaction,
            _ if self.is_gone(entry) => Kind::Metadata,
            _ if entry.starts_turn() => Kind::TurnStart,
            Body::Message(body) if entry.in_context() => match body.outline.role {
                Role::ToolResult => Kind::ToolResult,
                Role::System => Kind::Metadata,
                _ => Kind::Message,
            },
            _ => Kind::Metadata,
        };
        let tokens = match kind {
            Kind::Metadata | Kind::Compaction => 0,
            _ => u64::from(entry.tokens(estimator)),
        };
        Step { kind, tokens }
    }

    /// The place of the first entry that stays while it has room: one that stays in any case, or an answer whose results no
    /// model has read. A request that names the size of the tail names that answer's place, too, and an empty tail has none.
    fn stays(&self, demand: &Demand) -> Option<usize> {
        let batch = self.unread_batch().filter(|_| !demand.explicit && demand.keep > 0);
        self.must_stay(demand).into_iter().chain(batch).min()
    }

    /// The place of the first entry that stays in any case: an answer whose calls are open, or a message of the user that no
    /// model has read. A request that names the size of the tail names that message's place, too.
    fn must_stay(&self, demand: &Demand) -> Option<usize> {
        let request = || unread_requests(self.entries).first().map(|place| self.with_later_results(*place));
        self.pending().or_else(|| request().filter(|_| !demand.explicit))
    }

    /// A place among the unread entries, or that of the newest answer if one of its results comes later than the place.
    fn with_later_results(&self, place: usize) -> usize {
        self.unread_batch().filter(|_| self.last_result() > Some(place)).unwrap_or(place)
    }

    /// The place of the last result.
    fn last_result(&self) -> Option<usize> {
        self.entries.iter().rposition(|entry| entry.is_from(Role::ToolResult) && !self.is_gone(entry))
    }

    /// The place of the newest answer if results of its calls follow it.
    fn unread_batch(&self) -> Option<usize> {
        let answer = newest_answer(self.entries)?;
        let has_calls = self.entries[answer].outline().is_some_and(|outline| !outline.calls.is_empty());
        (has_calls && self.last_result() > Some(answer)).then_some(answer)
    }

    /// The place from which on fewer messages of the user stay that no model has read: about the newer half of those from
    /// `first` on. `None` where that leaves only the newest one, or would part a result from its call.
    fn fewer_requests(&self, first: usize) -> Option<usize> {
        let mut requests = unread_requests(self.entries);
        requests.retain(|place| *place >= first);
        let may_begin: Vec<usize> =
            requests.iter().copied().filter(|place| self.last_result() < Some(*place)).collect();
        may_begin.get(may_begin.len() / 2).copied().filter(|place| requests.first() != Some(place))
    }

    /// The place of the last answer if it has open calls and only results follow it.
    fn pending(&self) -> Option<usize> {
        let mut answered = HashSet::new();
        for (place, entry) in self.entries.iter().enumerate().rev() {
            match entry.outline() {
                _ if self.is_gone(entry) => {}
                Some(outline) if outline.role == Role::ToolResult => answered.extend(&outline.answers),
                Some(outline) if outline.role == Role::Assistant => {
                    let open = |call: &Call| !answered.contains(&call.id);
                    return outline.calls.iter().any(open).then_some(place);
                }
                None if !entry.in_context() => {}
                _ => return None,
            }
        }
        None
    }
}

impl Plan {
    /// The same plan, whose compaction carries these calibrations.
    #[must_use]
    pub fn carrying(self, calibrations: Vec<CarriedCalibration>) -> Self {
        Self { calibrations: calibrations.into(), ..self }
    }

    /// The same plan with the todo tools and the redaction of these settings.
    #[must_use]
    pub fn reading_todos(self, settings: &Settings) -> Self {
        Self { todos: self.todos.of(settings), ..self }
    }

    /// The same plan, whose todo list has its shortest form.
    #[must_use]
    pub fn with_short_todos(&self) -> Self {
        Self { todos: self.todos.clone().within(0), ..self.clone() }
    }

    /// The open tasks of the agent at the end of a path.
    #[must_use]
    pub fn todos(&self, path: &Path) -> Option<CarriedTodos> {
        todo::open_tasks(path, &self.todos)
    }

    /// The same plan, whose compaction carries messages of the user in front of its summary.
    #[must_use]
    pub fn carrying_messages(self, messages: Option<Messages>) -> Self {
        Self { messages, ..self }
    }

    /// The same plan with fewer messages of the user in front of the summary; `None` without any that could be fewer.
    #[must_use]
    pub fn with_fewer_messages(&self) -> Option<Self> {
        let fewer = self.messages.as_ref()?.fewer()?;
        Some(Self { messages: Some(fewer), ..self.clone() })
    }

    /// The messages of the user in front of the summary.
    #[must_use]
    pub fn user_messages(&self) -> Vec<CarriedMessage> {
        let is_pinned = |id: &EntryId| self.pinned.contains(id);
        let of = |messages: &Messages| messages.before(self.first_kept(), self.demand.scale, &is_pinned);
        self.messages.as_ref().map(of).unwrap_or_default()
    }

    /// The calibrations that the compaction carries.
    #[must_use]
    pub fn calibrations(&self) -> &[CarriedCalibration] {
        &self.calibrations
    }

    /// The path that the plan was made for.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces the path with one of the same entries, which were read again, or with none while they are not needed.
    pub fn set_path(&mut self, path: Path) {
        self.path = path;
    }

    /// The previous compaction, whose summary is merged into the new one.
    #[must_use]
    pub fn previous(&self) -> Option<&Arc<Entry>> {
        self.path.compaction().map(|place| &self.path[place])
    }

    /// The entries of whole turns that are summarized.
    #[must_use]
    pub fn history(&self) -> &[Arc<Entry>] {
        &self.path[self.start..self.start + self.cut.history_end()]
    }

    /// The entries of the turn whose end is kept.
    #[must_use]
    pub fn turn_prefix(&self) -> &[Arc<Entry>] {
        &self.path[self.start + self.cut.history_end()..self.first_kept()]
    }

    /// The kept entries.
    #[must_use]
    pub fn kept(&self) -> &[Arc<Entry>] {
        &self.path[self.first_kept()..]
    }

    /// The messages that are summarized, history and turn prefix.
    #[must_use]
    pub fn summarized(&self) -> Vec<&Arc<Entry>> {
        self.span().messages()
    }

    /// The part of the path that is summarized.
    #[must_use]
    pub fn span(&self) -> Span<'_> {
        Span::of(self.history())
            .with_turn_prefix(self.turn_prefix())
            .continuing(self.previous())
            .followed_by(self.kept())
            .without(&self.pinned)
    }

    /// Whether an entry is pinned.
    #[must_use]
    pub fn is_pinned(&self, entry: &Entry) -> bool {
        self.pinned.contains(&entry.id)
    }

    /// Place on the path of the first kept entry.
    #[must_use]
    pub fn first_kept(&self) -> usize {
        self.start + self.cut.at()
    }

    /// The first kept entry; `None` if no entry is kept.
    #[must_use]
    pub fn first_kept_id(&self) -> Option<&EntryId> {
        self.path.get(self.first_kept()).map(|entry| &entry.id)
    }

    /// Whether the cut is inside a turn.
    #[must_use]
    pub fn splits_a_turn(&self) -> bool {
        !self.turn_prefix().is_empty()
    }

    /// The newest user message, if it is before the cut and no message in front of the summary.
    #[must_use]
    pub fn carried(&self) -> Option<CarriedMessage> {
        if self.messages.is_some() {
            return None;
        }
        let found = context::newest_user_message_before(&self.path, self.first_kept(), self.path.len());
        // The message that an earlier compaction carries may precede all entries of this path.
        let carried = found.or_else(|| {
            let kept_user = self.kept().iter().any(|entry| entry.is_from(Role::User));
            let carried = self.path.newest_carried_message().filter(|_| !kept_user);
            carried.cloned()
        });
        // In a small window it gets a third of the room; a token has at least three characters of prose.
        let third = self.demand.scale.fitting(self.demand.budget.available());
        carried.map(|it| CarriedMessage { text: context::clip_carried(&it.text, third as usize), ..it })
    }

    /// Size of the kept messages, in tokens.
    #[must_use]
    pub fn kept_tokens(&self) -> u64 {
        let sum = self
            .kept()
            .iter()
            .filter(|entry| entry.is_conversation())
            .map(|entry| u64::from(entry.tokens(self.demand.scale.estimator())))
            .sum();
        self.demand.scale.size(sum)
    }

    /// The plan with a smaller tail of about `keep` estimated tokens.
    #[must_use]
    pub fn keeping(&self, keep: u64) -> Self {
        let window = Window::of(&self.path[self.start..]);
        let cut = cut(&window.steps(self.demand.scale.estimator()), keep, window.stays(&self.demand));
        Self { cut, ..self.clone() }
    }

    /// The plan with the least tail: the entries that stay in any case.
    #[must_use]
    pub fn keeping_least(&self) -> Self {
        let window = Window::of(&self.path[self.start..]);
        let cut = cut(&window.steps(self.demand.scale.estimator()), 0, window.must_stay(&self.demand));
        Self { cut, ..self.clone() }
    }

    /// The plan that summarizes about the older half of the kept messages of the user that no model has read. `None` where the
    /// request named the size of the tail, or only the newest message is kept.
    #[must_use]
    pub fn keeping_fewer_unread(&self) -> Option<Self> {
        let window = Window::of(&self.path[self.start..]);
        let at = window.fewer_requests(self.cut.at()).filter(|_| !self.demand.explicit)?;
        Some(Self { cut: before(&window.steps(self.demand.scale.estimator()), at), ..self.clone() })
    }

    /// The messages of the user that no model has read and of which the context has only a summary, although the request did not
    /// name the size of the tail.
    #[must_use]
    pub fn summarized_unread(&self) -> Vec<&Arc<Entry>> {
        let window = &self.path[self.start..];
        let mut requests = if self.demand.explicit { Vec::new() } else { unread_requests(window) };
        requests.retain(|place| *place < self.cut.at());
        if requests.is_empty() {
            return Vec::new();
        }
        let carried: Vec<CarriedMessage> = self.user_messages().into_iter().chain(self.carried()).collect();
        let is_shown = |entry: &Entry| self.is_pinned(entry) || carried.iter().any(|it| it.entry_id == entry.id);
        requests.iter().map(|place| &window[*place]).filter(|entry| !is_shown(entry)).collect()
    }

    /// The plan with a tail that begins at an entry.
    ///
    /// # Errors
    /// When the tail cannot begin there.
    pub fn keeping_from(&self, entry: &EntryId) -> Result<Self, NoCut> {
        let window = Window::of(&self.path[self.start..]);
        let steps = window.steps(self.demand.scale.estimator());
        let place = self.path.position(entry).and_then(|place| place.checked_sub(self.start));
        let named = place.ok_or(NoCut::NotInContext)?;
        let at = (named..steps.len()).find(|place| steps[*place].kind != Kind::Metadata).ok_or(NoCut::NotInContext)?;
        match steps[at].kind {
            Kind::Compaction | Kind::Metadata => return Err(NoCut::NotInContext),
            Kind::ToolResult => return Err(NoCut::Result),
            Kind::TurnStart | Kind::Message => {}
        }
        if window.pending().is_some_and(|pending| pending < at) {
            return Err(NoCut::OpenCall);
        }
        let plan = Self { cut: before(&steps, at), ..self.clone() };
        if plan.summarized().is_empty() { Err(NoCut::First) } else { Ok(plan) }
    }

    /// The data of other programs that the previous compaction carries. The compaction carries it on.
    #[must_use]
    pub fn carried_data(&self) -> &Map<String, Value> {
        &self.carried_data
    }

    /// Whether another plan of the same path keeps the same entries.
    #[must_use]
    pub fn cuts_like(&self, other: &Self) -> bool {
        self.cut == other.cut
    }

    /// Fingerprint of the plan: two plans with the same effect on the same path have the same one.
    #[must_use]
    pub fn hash(&self) -> String {
        let mut digest = Sha256::new();
        for entry in self.path.iter().filter(|entry| !entry.is_marker()) {
            digest.update(entry.id.as_str());
            digest.update([0]);
        }
        digest.update(format!("{}/{}/{}", self.start, self.cut.at(), self.cut.history_end()));
        digest.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compaction::lines::path;
    use proptest::{collection::vec, prelude::*};
    use serde_json::json;

    fn message(message: Value) -> Value {
        json!({"type": "message", "message": message})
    }

    /// A message of the user of so many tokens.
    fn user(tokens: usize) -> Value {
        message(json!({"role": "user", "content": "abc ".repeat(tokens)}))
    }

    fn answer(tokens: usize, stop: &str, calls: &[&str]) -> Value {
        let mut content = vec![json!({"type": "text", "text": "abc ".repeat(tokens)})];
        let call = |id: &&str| json!({"type": "toolCall", "id": id, "name": "r", "arguments": {}});
        content.extend(calls.iter().map(call));
        message(json!({"role": "assistant", "content": content, "stopReason": stop}))
    }

    fn said(tokens: usize) -> Value {
        answer(tokens, "stop", &[])
    }

    fn result(call: &str) -> Value {
        let text = json!([{"type": "text", "text": "abc"}]);
        message(json!({"role": "toolResult", "toolCallId": call, "toolName": "r", "isError": false, "content": text}))
    }

    fn edit(target: &str, replacement: Value) -> Value {
        json!({"type": "context_edit", "targetId": target, "replacement": replacement})
    }

    fn label() -> Value {
        json!({"type": "label", "targetId": "e0", "label": "here"})
    }

    fn compaction(first_kept: &str, ours: Value) -> Value {
        json!({"type": "compaction", "summary": "s", "firstKeptEntryId": first_kept, "tokensBefore": 1,
            "preserveData": {"abridged": ours}})
    }

    fn demand(keep: u64) -> Demand {
        let budget = Budget { window: 10_000, threshold: 8_000, reserve: 1_000, system: 0, tools: 0, pins: 0 };
        let scale = Scale::new(Estimator::Chars, 1.0);
        Demand { keep, explicit: false, scale, budget, tokens_before: 0, may_stay: 8_000, insists: false }
    }

    fn explicit(keep: u64) -> Demand {
        Demand { explicit: true, ..demand(keep) }
    }

    /// The first kept entry.
    fn kept(lines: &[Value], demand: Demand) -> Result<Option<String>, NothingToDo> {
        let plan = plan(path(lines), demand, Arc::default())?;
        Ok(plan.first_kept_id().map(ToString::to_string))
    }

    fn from(entry: &str) -> Result<Option<String>, NothingToDo> {
        Ok(Some(entry.to_owned()))
    }

    #[test]
    fn each_entry_has_a_role_for_a_cut() {
        let execution = |excluded: bool| {
            message(json!({"role": "bashExecution", "command": "ls", "output": "a", "excludeFromContext": excluded}))
        };
        let rows = [
            (user(1), Kind::TurnStart),
            (answer(1, "stop", &["a"]), Kind::Message),
            (result("a"), Kind::ToolResult),
            (answer(1, "error", &[]), Kind::Metadata),
            (said(2), Kind::Metadata),
            (said(3), Kind::Message),
            (execution(true), Kind::Metadata),
            (execution(false), Kind::TurnStart),
            (message(json!({"role": "system", "content": "abc ".repeat(9)})), Kind::Metadata),
            (label(), Kind::Metadata),
            (json!({"type": "custom_message", "customType": "x", "content": "y", "display": true}), Kind::TurnStart),
            (compaction("e0", json!({})), Kind::Compaction),
            (edit("e4", Value::Null), Kind::Metadata),
            (edit("e5", json!({"content": "x"})), Kind::Metadata),
        ];
        let path = path(&rows.clone().map(|(line, _)| line));
        let steps = Window::of(&path).steps(Estimator::Chars);
        for (step, (line, kind)) in steps.iter().zip(&rows) {
            assert_eq!(step.kind, *kind, "{line}");
            let is_sized = !matches!(kind, Kind::Metadata | Kind::Compaction);
            assert_eq!(step.tokens > 0, is_sized, "{line}");
        }
    }

    #[test]
    fn requests_without_answer_and_open_calls_are_found() {
        let open = || answer(1, "toolUse", &["a", "b"]);
        let failed = || answer(1, "error", &[]);
        for (lines, unread, pending) in [
            (vec![user(1)], vec![0], None),
            (vec![user(1), label()], vec![0], None),
            (vec![user(1), failed()], vec![0], None),
            (vec![user(1), failed(), user(1)], vec![0, 2], None),
            (vec![user(1), user(1), edit("e0", Value::Null)], vec![1], None),
            (vec![user(1), said(1), edit("e1", Value::Null)], vec![0], None),
            (vec![user(1), said(1)], vec![], None),
            (vec![user(1), open(), result("a")], vec![], Some(1)),
            (vec![user(1), open(), result("a"), result("b")], vec![], None),
            (vec![user(1), open(), failed(), label()], vec![], Some(1)),
            (vec![user(1), open(), user(1)], vec![2], None),
        ] {
            let path = path(&lines);
            let window = Window::of(&path);
            assert_eq!((unread_requests(window.entries), window.pending()), (unread, pending), "{lines:?}");
        }
    }

    #[test]
    fn a_tail_has_its_size_without_the_answers_that_are_in_no_context() {
        let gone = [
            vec![answer(500, "aborted", &[]), label()],
            vec![answer(500, "error", &[]), label()],
            vec![said(500), edit("e3", Value::Null)],
        ];
        for gone in gone {
            let before = vec![user(1_000), said(1_000), user(1_000)];
            let lines = [before, gone, vec![user(1_000), said(1_000)]].concat();
            for (keep, first, size) in
                [(2_000, "e5", 2_000), (2_001, "e2", 3_000), (3_000, "e2", 3_000), (3_001, "e1", 4_000)]
            {
                let plan = plan(path(&lines), explicit(keep), Arc::default()).expect("a plan");
                let steps = Window::of(plan.kept()).steps(Estimator::Chars);
                // Entries that are in no context stay with the message behind them.
                let sent = steps.iter().position(|step| step.tokens > 0).expect("a message");
                assert_eq!(plan.kept()[sent].id.as_str(), first, "keeping {keep}");
                let kept: u64 = steps.iter().map(|step| step.tokens).sum();
                assert_eq!((kept, kept >= keep), (size, true), "keeping {keep}");
            }
        }
    }

    #[test]
    fn a_tail_that_has_exactly_the_demanded_size_is_long_enough() {
        let lines: Vec<Value> = (0..10).map(|at| if at % 2 == 0 { user(1_000) } else { said(1_000) }).collect();
        assert_eq!(kept(&lines, demand(2_000)), from("e8"));
        assert_eq!(kept(&lines, demand(2_001)), from("e7"));
    }

    #[test]
    fn open_calls_stay_and_a_request_stays_where_no_tail_is_named() {
        let asked = [user(10), said(10), user(10)];
        assert_eq!(kept(&asked, demand(0)), from("e2"));
        assert_eq!(kept(&asked, explicit(0)), Ok(None));
        let open = [user(10), answer(10, "toolUse", &["a"])];
        assert_eq!(kept(&open, explicit(0)), from("e1"));
    }

    fn empty() -> Value {
        message(json!({"role": "assistant", "content": [], "stopReason": "stop"}))
    }

    fn developer() -> Value {
        message(json!({"role": "developer", "content": "abc"}))
    }

    fn custom() -> Value {
        json!({"type": "custom_message", "customType": "x", "content": "y", "display": true})
    }

    #[test]
    fn messages_that_no_model_has_read_stay_where_no_tail_is_named() {
        let failed = |stop: &str| answer(10, stop, &[]);
        let hundred: Vec<Value> = (0..100).map(|_| user(1)).collect();
        for (more, first) in [
            (vec![user(10), user(10)], "e2"),
            (hundred, "e2"),
            (vec![user(10), developer(), user(10)], "e2"),
            (vec![user(10), custom()], "e2"),
            (vec![user(10), failed("aborted"), user(10)], "e2"),
            (vec![user(10), failed("error"), label(), user(10)], "e2"),
            (vec![user(10), said(10), edit("e3", Value::Null), user(10)], "e2"),
            (vec![user(10), empty(), user(10)], "e4"),
            (vec![answer(10, "toolUse", &["a"]), user(10), user(10)], "e3"),
            (vec![developer(), user(10), user(10)], "e3"),
            (vec![user(10), said(10), user(10)], "e4"),
        ] {
            let lines = [vec![user(10), said(10)], more].concat();
            let plan = plan(path(&lines), demand(1), Arc::default()).expect("a plan");
            for plan in [plan.keeping_least(), plan] {
                assert_eq!(plan.first_kept_id().map(EntryId::as_str), Some(first), "{lines:?}");
            }
        }
        let named = [user(10), said(10), user(10), user(10)];
        assert_eq!(kept(&named, explicit(1)), from("e3"));
        assert_eq!(kept(&named, explicit(0)), Ok(None));
    }

    #[test]
    fn a_result_behind_a_message_that_no_model_has_read_stays_with_its_call() {
        let lines = [user(10), said(10), answer(10, "toolUse", &["a", "b"]), result("a"), user(10), result("b")];
        let plan = plan(path(&lines), demand(1), Arc::default()).expect("a plan").keeping_least();
        assert_eq!(plan.first_kept_id().map(EntryId::as_str), Some("e2"));
    }

    #[test]
    fn a_context_of_messages_that_no_model_has_read_is_only_edited_where_it_is_over_the_window() {
        let sized = |tokens_before| Demand { tokens_before, ..demand(5_000) };
        let lines = [user(4_500), user(4_500)];
        assert_eq!(kept(&lines, sized(9_999)), Err(NothingToDo::TooShort));
        assert_eq!(kept(&lines, sized(10_000)), from("e0"));
    }

    /// An entry of any kind that may be near messages of the user, and whether a model has read the entries before it.
    fn any_entry() -> impl Strategy<Value = (Value, bool)> {
        let unread = |line: Value| (line, false);
        prop_oneof![
            4 => (1_usize..40).prop_map(move |tokens| unread(user(tokens))),
            2 => (1_usize..40).prop_map(|tokens| (said(tokens), true)),
            1 => Just((answer(5, "toolUse", &["a"]), true)),
            1 => Just(unread(result("a"))),
            1 => Just(unread(answer(5, "aborted", &[]))),
            1 => Just(unread(answer(5, "error", &[]))),
            1 => Just((empty(), true)),
            1 => Just(unread(developer())),
            1 => Just(unread(custom())),
            1 => Just(unread(label())),
        ]
    }

    proptest! {
        #[test]
        fn no_plan_summarizes_a_message_that_no_model_has_read(
            entries in vec(any_entry(), 1..24),
            keep in 1_u64..100,
            less in 0_u64..100,
        ) {
            let lines: Vec<Value> = entries.iter().map(|(line, _)| line.clone()).collect();
            let read = entries.iter().rposition(|(_, reads)| *reads).map_or(0, |place| place + 1);
            let waits = |place: &usize| lines[*place]["message"]["role"] == "user";
            let Some(first) = (read..lines.len()).find(waits) else { return Ok(()) };
            let sized = Demand { tokens_before: 20_000, ..demand(keep) };
            let Ok(plan) = plan(path(&lines), sized, Arc::default()) else { return Ok(()) };
            for plan in [plan.keeping(less), plan.keeping_least(), plan] {
                prop_assert!(plan.first_kept() <= first, "{} of {first}", plan.first_kept());
            }
        }
    }

    #[test]
    fn results_that_no_model_has_read_stay_with_their_call_where_no_tail_is_named() {
        let call = || answer(10, "toolUse", &["a"]);
        let failed = || answer(1, "error", &[]);
        for (more, first) in [
            (vec![result("a")], "e2"),
            (vec![result("a"), user(10)], "e2"),
            (vec![result("a"), failed(), label()], "e2"),
            (vec![result("a"), said(10), user(10)], "e5"),
            (vec![user(10)], "e3"),
        ] {
            let lines = [vec![user(10), said(10), call()], more].concat();
            assert_eq!(kept(&lines, demand(1)), from(first), "{}", lines.len());
            let least = plan(path(&lines), demand(1), Arc::default()).expect("a plan").keeping_least();
            let asks = lines[lines.len() - 1]["message"]["role"] == "user";
            assert_eq!(least.first_kept(), lines.len() - usize::from(asks), "they leave where nothing else helps");
        }
        for none in [demand(0), explicit(0)] {
            assert_eq!(kept(&[user(10), said(10), call(), result("a")], none), Ok(None));
        }
    }

    #[test]
    fn behind_a_compaction_only_new_messages_or_a_large_context_are_compacted() {
        let mut lines = vec![user(3_000), said(3_000), compaction("e1", json!({})), label()];
        let sized = |tokens_before| Demand { tokens_before, ..demand(20_000) };
        assert_eq!(kept(&lines, sized(0)), Err(NothingToDo::AlreadyCompacted));
        assert_eq!(kept(&lines, sized(8_000)), Err(NothingToDo::AlreadyCompacted));
        assert_eq!(kept(&lines, sized(8_001)), Ok(None), "less is kept than demanded");
        let explicit = Demand { explicit: true, ..sized(8_001) };
        assert_eq!(kept(&lines, explicit), Err(NothingToDo::AlreadyCompacted));
        lines.push(user(10));
        assert_eq!(kept(&lines, sized(0)), Err(NothingToDo::TooShort));
    }

    #[test]
    fn a_request_alone_is_only_edited_where_the_context_is_over_the_window() {
        let sized = |tokens_before| Demand { tokens_before, ..demand(5_000) };
        assert_eq!(kept(&[user(9_000)], sized(9_999)), Err(NothingToDo::TooShort));
        assert_eq!(kept(&[user(9_000)], sized(10_000)), from("e0"));
    }

    #[test]
    fn a_demanded_tail_leaves_room_for_the_summary_and_a_named_one_is_as_named() {
        let lines: Vec<Value> = (0..10).map(|at| if at % 2 == 0 { user(1_000) } else { said(1_000) }).collect();
        assert_eq!(kept(&lines, explicit(20_000)), Err(NothingToDo::TooShort));
        // 6400 tokens are the target, and 800 are for the summary.
        assert_eq!(kept(&lines, demand(20_000)), from("e4"));
        let least = |keep| Demand { scale: Scale::new(Estimator::Chars, 2.0), ..demand(keep) };
        assert_eq!(kept(&lines, least(1)), from("e9"));
        assert_eq!(kept(&lines, least(0)), Ok(None));
    }

    #[test]
    fn the_message_that_an_earlier_compaction_carries_is_carried_on() {
        let ours = json!({"newestUserMessage": {"entryId": "old", "text": "Mend it."}});
        let mut lines = vec![said(10), compaction("e0", ours), said(10)];
        let carried = |lines: &[Value], demand| {
            let plan = plan(path(lines), demand, Arc::default()).expect("a plan");
            plan.carried().map(|it| (it.entry_id.to_string(), it.text.chars().count()))
        };
        assert_eq!(carried(&lines, explicit(0)), Some(("old".to_owned(), 8)));
        lines.push(user(10));
        assert_eq!(carried(&lines, explicit(1)), None, "a newer one is kept");
        assert_eq!(carried(&lines, explicit(0)), Some(("e3".to_owned(), 40)));
        // A third of 6400 tokens, at three characters each.
        let (_, chars) = carried(&[user(2_000), said(10)], explicit(1)).expect("a message");
        assert!((6_400..6_500).contains(&chars), "{chars}");
    }

    #[test]
    fn a_plan_sees_past_pins_markers_and_system_messages() {
        let pin = json!({"type": "custom", "customType": "abridged.pin", "data": {"entryId": "e1"}});
        let system = message(json!({"role": "system", "content": "abc ".repeat(9)}));
        let mut lines = vec![user(10), said(10), user(10), system, said(10)];
        let planned = |lines: &[Value]| plan(path(lines), explicit(20), Arc::default()).expect("a plan");
        let before = planned(&lines);
        assert_eq!(before.kept_tokens(), 20);
        assert_eq!(before.span().said_by_user_later(), ["abc ".repeat(10)]);
        lines.push(pin);
        let after = planned(&lines);
        assert_eq!(after.hash(), before.hash(), "a marker is no part of the conversation");
        let summarized = |plan: &Plan| plan.summarized().iter().map(|entry| entry.id.to_string()).collect::<Vec<_>>();
        assert_eq!((summarized(&before), summarized(&after)), (vec!["e0".into(), "e1".into()], vec!["e0".to_owned()]));
    }

    #[test]
    fn a_tail_begins_at_any_message_that_is_no_result_and_has_no_open_call_before_it() {
        let calls = |ids: &[&str]| answer(100, "toolUse", ids);
        let begins = |lines: &[Value], entry: &str| {
            let plan = plan(path(lines), explicit(100), Arc::default()).expect("a plan");
            plan.keeping_from(&entry.into()).map(|plan| {
                let split = if plan.splits_a_turn() { " in a turn" } else { "" };
                format!("{}{split}", plan.first_kept_id().expect("a tail"))
            })
        };
        let lines = [user(100), calls(&["c"]), result("c"), label(), said(100), user(100), said(100)];
        assert_eq!(begins(&lines, "e5"), Ok("e5".to_owned()));
        // The label before a message goes with it.
        assert_eq!(begins(&lines, "e4"), Ok("e3 in a turn".to_owned()));
        assert_eq!(begins(&lines, "e3"), Ok("e3 in a turn".to_owned()));
        assert_eq!(begins(&lines, "e2"), Err(NoCut::Result));
        assert_eq!(begins(&lines, "e1"), Ok("e1 in a turn".to_owned()));
        assert_eq!(begins(&lines, "e0"), Err(NoCut::First));
        assert_eq!(begins(&lines, "nowhere"), Err(NoCut::NotInContext));
        assert_eq!(begins(&[user(100), said(100), user(100), said(100), label()], "e4"), Err(NoCut::NotInContext));
        let open = [user(100), said(100), user(100), calls(&["c", "d"]), result("c"), user(100), said(100)];
        assert_eq!(begins(&open[..5], "e3"), Ok("e3 in a turn".to_owned()));
        assert_eq!(begins(&open[..5], "e4"), Err(NoCut::Result));
        let again = [user(100), said(100), compaction("e1", json!({})), user(100), said(100), user(100), said(100)];
        assert_eq!(begins(&again, "e0"), Err(NoCut::NotInContext), "an earlier compaction covers it");
        assert_eq!(begins(&again, "e2"), Err(NoCut::NotInContext), "it is a compaction");
        assert_eq!(begins(&again, "e3"), Ok("e3".to_owned()));
    }

    #[test]
    fn data_of_other_programs_is_carried_and_that_of_providers_is_not() {
        let data = json!({"abridged": {}, "memory": [1], "openaiRemoteCompaction": {}, "anthropicCompaction": {}});
        let mut line = compaction("e1", json!({}));
        line["preserveData"] = data;
        let lines = [user(100), said(100), line.clone(), user(900), said(900)];
        let carried = |lines: &[Value]| {
            let plan = plan(path(lines), explicit(100), Arc::default()).expect("a plan");
            json!(plan.carried_data())
        };
        assert_eq!(carried(&lines), json!({"memory": [1]}));
        line["preserveData"] = json!("a text");
        assert_eq!(carried(&[user(100), said(100), line, user(900), said(900)]), json!({}));
    }
}
