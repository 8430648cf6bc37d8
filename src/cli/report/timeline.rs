//! A session as a person looks back at it: the size of its context after each entry, and the events that changed it.

use super::sizes::{Change, Sizes};
use crate::{
    conversation::{
        entry::{Body, Entry},
        message::outline::Role,
        spending::Cost,
    },
    ids::{EntryId, ModelRef},
};
use serde::Deserialize;
use serde_json::Value;
use std::{
    collections::{HashMap, HashSet},
    rc::Rc,
};

/// The sizes and the events of a session.
#[derive(Default)]
pub(super) struct Timeline {
    /// By the number of an entry's place.
    pub points: Vec<Point>,
    /// The events, in the order of the file.
    pub events: Vec<Event>,
    /// Number of entries that a person sees.
    pub entries: u32,
    /// The times of the first and the last of them, as the file has them.
    pub times: Option<(String, String)>,
    /// Number of reports that are not believed.
    pub doubted: u32,
    /// The cost of the model requests that belong to no compaction.
    pub other_cost: Spent,
    sizes: Sizes,
    requests: Vec<Request>,
}

/// The context after an entry.
#[derive(Debug, Clone)]
pub(super) struct Point {
    /// The number of the entry that it follows.
    pub parent: Option<usize>,
    /// The number of entries that a person sees up to it, in the order of the file.
    pub at: u32,
    /// The size of the context, in tokens.
    pub tokens: u64,
    /// Whether a report of the provider is a part of the size.
    pub is_reported: bool,
    /// Whether the entry begins an estimate of its own: it rewrites the context, or has a report.
    is_anchor: bool,
    /// Whether the entry is a part of the conversation.
    pub is_said: bool,
    /// Whether a person sees the entry.
    is_seen: bool,
    /// The model of the context.
    pub model: Option<Rc<ModelRef>>,
}

/// An event of a session.
#[derive(Debug)]
pub(super) struct Event {
    /// The number of its entry.
    pub number: usize,
    /// The id of its entry.
    pub id: EntryId,
    /// Its time, as the file has it.
    pub time: String,
    /// Its kind.
    pub kind: Kind,
}

/// The kind of an event, with its facts.
#[derive(Debug)]
pub(super) enum Kind {
    /// A compaction.
    Compaction(Box<Compaction>),
    /// The context was cleared.
    Reset {
        /// The size before, in tokens.
        before: u64,
    },
    /// The summary of a branch that was left.
    Branch {
        /// The text.
        summary: String,
    },
    /// Entries were shortened or left out in the context.
    Pruning {
        /// Number of entries.
        edits: u32,
        /// The size before, in tokens.
        before: u64,
        /// The size after it, in tokens.
        after: u64,
    },
    /// A recovery began after an answer that failed.
    Recovery {
        /// Its reason, as the file has it.
        reason: String,
    },
    /// A compaction or a reset was undone.
    Undo {
        /// The entry that no longer holds.
        of: EntryId,
    },
    /// The session goes on with another model.
    Model {
        /// The model.
        to: ModelRef,
    },
}

/// A compaction.
#[derive(Debug)]
pub(super) struct Compaction {
    /// The summary, whole.
    pub summary: String,
    /// Two sentences for a person.
    pub short: Option<String>,
    /// The method that wrote the summary, as the file has it.
    pub method: Option<String>,
    /// Whether an extension or a hook supplied the summary.
    pub is_supplied: bool,
    /// The size before, in tokens: that in the file, else the measured one.
    pub before: u64,
    /// The size after it, in tokens.
    pub after: u64,
    /// Number of entries of the conversation that it summarizes.
    pub covered: u32,
    /// Number of entries of the conversation that it keeps.
    pub kept: u32,
    /// The number of the first entry that is kept.
    pub first_kept: Option<usize>,
    /// The reason of the recovery that it belongs to.
    pub recovery: Option<String>,
    /// The cost of its model requests.
    pub cost: Spent,
}

/// A cost of model requests.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Spent {
    /// Number of requests.
    pub requests: u32,
    /// Tokens that were sent and received.
    pub tokens: u64,
    /// Price as far as it is known, in millionths of a dollar.
    pub price: u64,
    /// Number of the requests whose price is known.
    pub priced: u32,
    /// The models that were asked.
    pub models: Vec<String>,
    /// The reason for which they were asked.
    pub trigger: Option<&'static str>,
}

/// A model request that the file records.
struct Request {
    operation: Option<String>,
    /// Number of events before it.
    events: usize,
    /// Whether it is a part of a compaction.
    is_of_compaction: bool,
    model: Option<String>,
    cost: Cost,
}

impl Timeline {
    /// Adds the next entry of the file. `parent`: the number of the entry that it follows. `find` gives the number of the
    /// entry with an id.
    pub(super) fn add(&mut self, entry: &Entry, parent: Option<usize>, find: impl Fn(&EntryId) -> Option<usize>) {
        let change = self.sizes.add(entry, parent, &find);
        self.doubted += u32::from(change.is_doubted);
        if !entry.is_marker() {
            self.entries += 1;
            let first = self.times.take().map_or_else(|| entry.timestamp.clone(), |(first, _)| first);
            self.times = Some((first, entry.timestamp.clone()));
        }
        let before = parent.and_then(|parent| self.points.get(parent));
        let model = match model(entry) {
            Some(named) => match before.and_then(|before| before.model.clone()).filter(|model| **model == named) {
                Some(same) => Some(same),
                None => Some(Rc::new(named)),
            },
            None => before.and_then(|before| before.model.clone()),
        };
        let number = self.points.len();
        if let Some(kind) = self.kind(entry, &change, parent, number, &find) {
            self.events.push(Event { number, id: entry.id.clone(), time: entry.timestamp.clone(), kind });
        }
        if let Some(request) = request(entry, self.events.len()) {
            self.requests.push(request);
        }
        let Change { after: tokens, is_reported, is_said, .. } = change;
        let is_anchor = entry.rewrites() || is_reported && entry.is_from(Role::Assistant);
        let (at, is_seen) = (self.entries, !entry.is_marker());
        self.points.push(Point { parent, at, tokens, is_reported, is_anchor, is_said, is_seen, model });
    }

    /// Ends the timeline: each model request becomes a cost of its compaction.
    pub(super) fn end(&mut self) {
        let mut by_operation: HashMap<String, usize> = HashMap::new();
        let is_compaction = |event: &Event| matches!(event.kind, Kind::Compaction(_));
        for request in std::mem::take(&mut self.requests) {
            let known = request.operation.as_ref().and_then(|operation| by_operation.get(operation)).copied();
            // Costs are written after the entry of their compaction. Those of a draft that came to nothing, or was made
            // ahead, are before it.
            let after = request.events.checked_sub(1).filter(|last| is_compaction(&self.events[*last]));
            let before = || (request.events..self.events.len()).find(|at| is_compaction(&self.events[*at]));
            let at = known.or(after).or_else(before).filter(|_| request.is_of_compaction);
            match at.map(|at| &mut self.events[at].kind) {
                Some(Kind::Compaction(compaction)) => compaction.cost.add(&request),
                _ => self.other_cost.add(&request),
            }
            if let (Some(operation), Some(at)) = (request.operation, at) {
                by_operation.insert(operation, at);
            }
        }
    }

    /// The kind of the event that an entry is. Edits that follow each other are one pruning.
    fn kind(
        &mut self,
        entry: &Entry,
        change: &Change,
        parent: Option<usize>,
        number: usize,
        find: &impl Fn(&EntryId) -> Option<usize>,
    ) -> Option<Kind> {
        Some(match &entry.body {
            Body::Compaction(compaction) => {
                let written = Written::of(entry);
                let first_kept = compaction.first_kept_entry_id.as_ref().and_then(find);
                let before = match compaction.tokens_before() {
                    tokens if tokens >= 1.0 => tokens as u64,
                    _ => change.before,
                };
                // This program counts the context before it compacts it. Another one may have written anything.
                if compaction.preserved().is_some() {
                    self.scale(parent, before);
                }
                let recovery = self.events.last().filter(|last| parent == Some(last.number));
                let recovery = recovery.and_then(|last| match &last.kind {
                    Kind::Recovery { reason } => Some(reason.clone()),
                    _ => None,
                });
                Kind::Compaction(Box::new(Compaction {
                    summary: compaction.summary.clone(),
                    short: compaction.short_summary.clone().filter(|short| !short.is_empty()),
                    method: written.method.as_ref().and_then(Value::as_str).map(str::to_owned),
                    is_supplied: compaction.from_hook(),
                    before,
                    after: written.tokens_after.as_ref().and_then(Value::as_u64).unwrap_or(change.after),
                    covered: change.covered,
                    kept: change.kept,
                    first_kept: first_kept.filter(|kept| *kept < number && change.kept > 0),
                    recovery,
                    cost: Spent::default(),
                }))
            }
            Body::ResetBoundary(_) => Kind::Reset { before: change.before },
            Body::BranchSummary(branch) => Kind::Branch { summary: branch.summary.clone() },
            Body::ContextEdit(_) => {
                let last = self.events.last_mut().filter(|last| parent == Some(last.number));
                if let Some(Event { number: last, kind: Kind::Pruning { edits, after, .. }, .. }) = last {
                    *last = number;
                    *edits += 1;
                    *after = change.after;
                    return None;
                }
                Kind::Pruning { edits: 1, before: change.before, after: change.after }
            }
            Body::Custom(_) => {
                let reason = |data: Value| data.get("reason").and_then(Value::as_str).unwrap_or("unknown").to_owned();
                match (entry.undoes(), entry.ours("attempt")) {
                    (Some(of), _) => Kind::Undo { of },
                    (None, Some(data)) => {
                        self.leave_out_failed_answer(parent);
                        Kind::Recovery { reason: reason(data) }
                    }
                    (None, None) => Kind::Undo { of: entry.ours("leaf")?.get("resetEntryId")?.as_str()?.into() },
                }
            }
            Body::ModelChange { provider, model } => {
                let to = ModelRef { provider: provider.clone(), id: model.clone() };
                let before = parent.and_then(|parent| self.points.get(parent)?.model.clone());
                if before.is_none_or(|before| *before == to) {
                    return None;
                }
                Kind::Model { to }
            }
            _ => return None,
        })
    }

    /// Scales the estimates up to an entry to the size that was counted there.
    fn scale(&mut self, entry: Option<usize>, counted: u64) {
        let Some(last) = entry.filter(|entry| !self.points[*entry].is_reported) else { return };
        let mut estimates = vec![last];
        while let Some(parent) = self.points[estimates[estimates.len() - 1]].parent {
            if self.points[estimates[estimates.len() - 1]].is_anchor {
                break;
            }
            estimates.push(parent);
        }
        let is_anchored = estimates.last().is_some_and(|first| self.points[*first].is_anchor);
        let base = estimates.pop_if(|_| is_anchored).map_or(0, |anchor| self.points[anchor].tokens);
        let grown = self.points[last].tokens.saturating_sub(base);
        let factor = counted.saturating_sub(base) as f64 / grown.max(1) as f64;
        for number in estimates {
            let point = &mut self.points[number];
            point.tokens = base + (point.tokens.saturating_sub(base) as f64 * factor).round() as u64;
        }
    }

    /// A recovery takes the failed answer out of the context. That edit is no pruning.
    fn leave_out_failed_answer(&mut self, parent: Option<usize>) {
        let is_of_recovery =
            |last: &mut Event| parent == Some(last.number) && matches!(last.kind, Kind::Pruning { edits: 1, .. });
        self.events.pop_if(is_of_recovery);
    }

    /// The largest size of a context, in tokens.
    pub(super) fn largest(&self) -> u64 {
        self.points.iter().map(|point| point.tokens).max().unwrap_or(0)
    }

    /// The tips of the branches beside a path, each with its entries that no longer branch has, oldest first.
    pub(super) fn branches(&self, active: &[usize]) -> Vec<Vec<usize>> {
        let mut taken: HashSet<usize> = active.iter().copied().collect();
        let mut is_parent = vec![false; self.points.len()];
        for parent in self.points.iter().filter_map(|point| point.parent) {
            is_parent[parent] = true;
        }
        let mut branches = Vec::new();
        for tip in (0..self.points.len()).rev().filter(|tip| !is_parent[*tip]) {
            let mut branch = Vec::new();
            let mut here = Some(tip);
            while let Some(number) = here {
                branch.push(number);
                if !taken.insert(number) {
                    break;
                }
                here = self.points[number].parent;
            }
            branch.reverse();
            // The first entry is that which the branch leaves. A line that only programs read is no branch.
            if branch.iter().skip(1).any(|number| self.points[*number].is_seen) {
                branches.push(branch);
            }
        }
        branches.reverse();
        branches
    }
}

impl Spent {
    /// Both together.
    pub(super) fn and(mut self, other: &Self) -> Self {
        self.requests += other.requests;
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.price = self.price.saturating_add(other.price);
        self.priced += other.priced;
        self
    }

    fn add(&mut self, request: &Request) {
        self.requests += 1;
        self.tokens = self.tokens.saturating_add(request.cost.tokens());
        self.price = self.price.saturating_add(request.cost.price.unwrap_or(0));
        self.priced += u32::from(request.cost.price.is_some());
        if let Some(model) = request.model.as_ref().filter(|model| !self.models.contains(model)) {
            self.models.push(model.clone());
        }
        self.trigger = self.trigger.or(Some(request.cost.trigger.name()));
    }
}

/// Fields of the line of a compaction that only a person reads.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Written {
    method: Option<Value>,
    tokens_after: Option<Value>,
}

impl Written {
    fn of(entry: &Entry) -> Self {
        serde_json::from_str(entry.line()).unwrap_or_default()
    }
}

/// The model that an entry names for the entries from it on.
fn model(entry: &Entry) -> Option<ModelRef> {
    match &entry.body {
        Body::ModelChange { provider, model } => Some(ModelRef { provider: provider.clone(), id: model.clone() }),
        Body::Message(_) if entry.is_from(Role::Assistant) => entry.outline()?.model.clone(),
        _ => entry.preserved()?.model.as_ref().map(|carried| carried.model.clone()),
    }
}

fn request(entry: &Entry, events: usize) -> Option<Request> {
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    struct Line {
        operation_id: Option<Value>,
        provider: Option<Value>,
        model: Option<Value>,
    }
    let cost = entry.cost()?;
    let Line { operation_id, provider, model } = serde_json::from_str(entry.line()).unwrap_or_default();
    let name = |value: Option<Value>| value.as_ref().and_then(Value::as_str).map(str::to_owned);
    let model = name(model).map(|id| match name(provider) {
        Some(provider) => format!("{provider}/{id}"),
        None => id,
    });
    let is_of_compaction = matches!(cost.purpose.as_str(), "compaction" | "turn_prefix" | "short_summary");
    Some(Request { operation: name(operation_id), events, is_of_compaction, model, cost })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::json;

    /// The timeline of these lines.
    pub(in crate::cli::report) fn timeline(lines: &[Value]) -> Timeline {
        let entries: Vec<Entry> =
            lines.iter().map(|line| Entry::parse(line.to_string().into()).expect("an entry")).collect();
        let find = |id: &EntryId| entries.iter().position(|entry| entry.id == *id);
        let mut timeline = Timeline::default();
        entries.iter().for_each(|entry| timeline.add(entry, entry.parent.as_ref().and_then(find), find));
        timeline.end();
        timeline
    }

    /// An entry of this type.
    pub(in crate::cli::report) fn entry(kind: &str, id: &str, parent: &str, fields: Value) -> Value {
        let mut line = json!({"type": kind, "id": id, "parentId": parent, "timestamp": "2026-01-02T03:04:05.000Z"});
        if parent.is_empty() {
            line["parentId"] = Value::Null;
        }
        if let (Value::Object(line), Value::Object(fields)) = (&mut line, fields) {
            line.extend(fields);
        }
        line
    }

    pub(in crate::cli::report) fn user(id: &str, parent: &str) -> Value {
        entry("message", id, parent, json!({"message": {"role": "user", "content": "x".repeat(400)}}))
    }

    fn compaction(id: &str, parent: &str) -> Value {
        entry("compaction", id, parent, json!({"summary": "s", "firstKeptEntryId": "none", "tokensBefore": 500}))
    }

    fn names(timeline: &Timeline) -> Vec<&'static str> {
        timeline.events.iter().map(|event| super::super::chart::name(&event.kind)).collect()
    }

    #[test]
    fn edits_in_a_row_are_one_pruning_and_that_of_a_recovery_is_none() {
        let edit = |id: &str, parent: &str, target: &str| {
            entry("context_edit", id, parent, json!({"targetId": target, "replacement": null}))
        };
        let attempt =
            entry("custom", "t", "g", json!({"customType": "abridged.attempt", "data": {"reason": "overflow"}}));
        let lines = [
            user("a", ""),
            user("b", "a"),
            edit("e", "b", "a"),
            edit("f", "e", "b"),
            user("c", "f"),
            edit("g", "c", "c"),
            attempt,
            compaction("s", "t"),
        ];
        let timeline = timeline(&lines);
        assert_eq!(names(&timeline), ["Pruning", "Recovery", "Compaction"]);
        let Kind::Pruning { edits: 2, before: 270, after: 0 } = timeline.events[0].kind else {
            panic!("{:?}", timeline.events[0])
        };
        let Kind::Compaction(compaction) = &timeline.events[2].kind else { panic!("a compaction") };
        assert_eq!(compaction.recovery.as_deref(), Some("overflow"));
    }

    #[test]
    fn a_cost_belongs_to_the_compaction_of_its_operation() {
        let cost = |id: &str, parent: &str, operation: &str, purpose: &str, input: u64| {
            let usage = json!({"input": input, "output": 0, "cacheRead": 0, "cacheWrite": 0, "cost": {"total": 0.5}});
            let fields = json!({"purpose": purpose, "trigger": "threshold", "provider": "p", "model": "m", "usage": usage,
                "operationId": operation});
            entry("usage", id, parent, fields)
        };
        let lines = [
            user("a", ""),
            cost("ahead", "a", "one", "compaction", 1),
            compaction("s", "ahead"),
            cost("after", "s", "one", "short_summary", 10),
            user("b", "after"),
            cost("beside", "b", "two", "branch_summary", 100),
            compaction("t", "beside"),
            cost("late", "t", "three", "compaction", 1_000),
        ];
        let timeline = timeline(&lines);
        let costs: Vec<u64> = timeline
            .events
            .iter()
            .map(|event| match &event.kind {
                Kind::Compaction(compaction) => compaction.cost.tokens,
                _ => 0,
            })
            .collect();
        assert_eq!(costs, [11, 1_000]);
        assert_eq!((timeline.other_cost.tokens, timeline.other_cost.price), (100, 500_000));
        assert_eq!(timeline.other_cost.models, ["p/m"]);
    }

    #[test]
    fn estimates_before_a_compaction_reach_the_size_that_was_counted() {
        let mut counted = compaction("s", "b");
        counted["preserveData"] = json!({"abridged": {"entryId": "s"}});
        let timeline = timeline(&[user("a", ""), user("b", "a"), counted, user("c", "s"), compaction("t", "c")]);
        let tokens: Vec<u64> = timeline.points.iter().map(|point| point.tokens).collect();
        assert_eq!(tokens[..2], [250, 500], "the size in the file of this program");
        assert_eq!(tokens[3] - tokens[2], 135, "another program may have written anything");
    }

    #[test]
    fn a_branch_begins_at_the_entry_that_it_leaves() {
        let marker =
            |id: &str, parent: &str| entry("custom", id, parent, json!({"customType": "abridged.leaf", "data": {}}));
        let lines = [user("a", ""), user("b", "a"), user("c", "b"), user("d", "a"), marker("m", "c")];
        assert_eq!(timeline(&lines).branches(&[0, 3]), [[0, 1, 2, 4]]);
        assert_eq!(timeline(&lines).branches(&[0, 1, 2]), [[0, 3]], "a line for programs is no branch");
    }

    #[test]
    fn the_model_is_that_of_the_path() {
        let answer = |id: &str, parent: &str, model: &str| {
            entry(
                "message",
                id,
                parent,
                json!({"message": {"role": "assistant", "content": "A", "provider": "p", "model": model}}),
            )
        };
        let change = entry("model_change", "m", "b", json!({"provider": "p", "modelId": "two"}));
        let timeline = timeline(&[user("a", ""), answer("b", "a", "one"), change, user("c", "b"), user("d", "m")]);
        let models: Vec<Option<&str>> =
            timeline.points.iter().map(|point| point.model.as_ref().map(|model| model.id.as_str())).collect();
        assert_eq!(models, [None, Some("one"), Some("two"), Some("one"), Some("two")]);
        assert_eq!(names(&timeline), ["Change of the model"]);
    }
}
