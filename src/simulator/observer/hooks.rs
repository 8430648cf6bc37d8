//! Hooks: each is asked where it is registered and ends once, and a compaction makes of its answer what the answer says.

use super::{Rule, Verdict, broken, file::File, operations::Operations, require};
use crate::{
    compaction::request::Cause,
    ids::{EntryId, OperationId},
    protocol::{
        events::{Event, HookOutcome},
        types::{CompactionResult, HookEvent, OnFailure, Outcome, SummaryMethod},
    },
    session::{
        hooks::Hooks as Registered,
        jobs::{DraftOrder, PlanOrder},
    },
    simulator::hooks::Called,
};
use serde_json::{Map, Value};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// The hooks of a life of a session.
#[derive(Debug, Default)]
pub struct Hooks {
    registered: Arc<Registered>,
    /// The compactions that were planned and have not ended.
    compactions: HashMap<OperationId, Compaction>,
    /// Operations that a hook may end.
    cancelled: HashSet<OperationId>,
    /// A call that no rule allows.
    stray: Option<String>,
}

/// A compaction with its hooks.
#[derive(Debug, Default)]
struct Compaction {
    /// The registration when its draft began.
    registered: Arc<Registered>,
    /// The path of its plan.
    path: Vec<EntryId>,
    /// The data of the compaction in force.
    carried: Map<String, Value>,
    /// The window that its start names, in tokens.
    window: u64,
    calls: Vec<Called>,
    open: Option<HookEvent>,
    ended: Vec<(HookEvent, HookOutcome)>,
    /// Whether a hook ended before its answer, so that the compaction ends too.
    ends: bool,
}

impl Hooks {
    /// The registration changed.
    pub fn registers(&mut self, hooks: &Arc<Registered>) {
        self.registered = hooks.clone();
    }

    /// A plan is made.
    pub fn plans(&mut self, order: &PlanOrder) -> Verdict {
        let is_ahead = order.request.cause == Cause::Ahead;
        require(!is_ahead || !self.registered.concerns_compaction(), Rule::NoneAheadWithHooks, || {
            format!("{:?} begins ahead, and {:?} is registered", order.id, self.registered)
        })?;
        let path = &order.request.path;
        let before = path.compaction().map(|place| &path[place]);
        let mut line: Value = before.and_then(|it| serde_json::from_str(it.line()).ok()).unwrap_or_default();
        let mut carried = match line["preserveData"].take() {
            Value::Object(data) => data,
            _ => Map::new(),
        };
        // Ours, and those of providers.
        for key in ["abridged", "openaiRemoteCompaction", "anthropicCompaction"] {
            carried.remove(key);
        }
        let compaction = self.compactions.entry(order.id.clone()).or_default();
        (compaction.path, compaction.carried) = (super::ids(path), carried);
        Ok(())
    }

    /// A draft begins.
    pub fn drafts(&mut self, order: &DraftOrder) {
        self.compactions.entry(order.id.clone()).or_default().registered = self.registered.clone();
    }

    /// The client is asked.
    pub fn asked(&mut self, call: Called) {
        let compaction = self.compactions.entry(call.operation.clone()).or_default();
        let timeout = u64::try_from(compaction.registered.timeout.as_millis()).ok();
        if !compaction.registered.answers(call.hook) || call.deadline_ms != timeout {
            let (hook, deadline, registered) = (call.hook, call.deadline_ms, &compaction.registered);
            self.stray = Some(format!("{hook:?} is asked for {deadline:?} ms, and {registered:?} is registered"));
        }
        compaction.calls.push(call);
    }

    /// `hook_start`
    pub fn starts(&mut self, id: &OperationId, hook: HookEvent, operations: &Operations) -> Verdict {
        require(operations.compacts(id), Rule::HooksEnd, || format!("{hook:?} starts, and {id:?} does not compact"))?;
        let compaction = self.compactions.entry(id.clone()).or_default();
        let ended = &compaction.ended;
        let again = compaction.open.is_some() || ended.iter().any(|(it, _)| *it == hook);
        require(!again, Rule::HooksEnd, || {
            format!("{hook:?} of {id:?} starts behind {:?}, {ended:?}", compaction.open)
        })?;
        require(compaction.registered.answers(hook), Rule::HooksRegistered, || {
            format!("{hook:?} of {id:?} starts, and {:?} is registered", compaction.registered)
        })?;
        let decided = ended.iter().any(|(_, it)| matches!(it, HookOutcome::Cancelled | HookOutcome::Replaced));
        require(!decided, Rule::HooksRegistered, || format!("{hook:?} of {id:?} starts behind {ended:?}"))?;
        compaction.open = Some(hook);
        Ok(())
    }

    /// `hook_end`
    pub fn ends(&mut self, id: &OperationId, hook: HookEvent, outcome: HookOutcome) -> Verdict {
        let compaction = self.compactions.entry(id.clone()).or_default();
        let open = compaction.open.take();
        require(open == Some(hook), Rule::HooksEnd, || format!("{hook:?} of {id:?} ends, and {open:?} was open"))?;
        compaction.ended.push((hook, outcome));
        let Some(call) = compaction.calls.iter().find(|call| call.hook == hook) else { return Ok(()) };
        let timeout = compaction.registered.timeout.as_millis();
        let is_late = call.after_ms.is_none_or(|after| u128::from(after) > timeout);
        let said = said(call, &compaction.path, compaction.window);
        if outcome == HookOutcome::Cancelled && (is_late || said != Said::Cancels) {
            compaction.ends = true;
            return Ok(());
        }
        let (answer, after) = (&call.answer, call.after_ms);
        let what =
            || format!("{hook:?} of {id:?} ends as {outcome:?} of {timeout} ms, behind {after:?} ms: {answer:?}");
        require(is_late == (outcome == HookOutcome::Timeout), Rule::LateHook, what)?;
        let fits = match outcome {
            HookOutcome::Timeout => true,
            HookOutcome::Ok => said == Said::GoesOn,
            HookOutcome::Cancelled => said == Said::Cancels,
            HookOutcome::Replaced if said == Said::Unusable => return broken(Rule::RefusedIsNotUsed, what()),
            HookOutcome::Replaced => said == Said::Replaces,
            HookOutcome::Error => matches!(said, Said::Unusable | Said::Replaces),
        };
        require(fits, Rule::HookOutcome, what)?;
        let fails = matches!(outcome, HookOutcome::Timeout | HookOutcome::Error);
        if outcome == HookOutcome::Cancelled || fails && compaction.registered.on_failure == OnFailure::Abort {
            self.cancelled.insert(id.clone());
        }
        Ok(())
    }

    /// Whether a hook may have ended an operation as cancelled.
    pub fn cancelled(&self, id: &OperationId) -> bool {
        self.cancelled.contains(id)
    }

    /// A compaction starts.
    pub fn compaction_starts(&mut self, id: &OperationId, event: &Event) {
        if let Event::CompactionStart { context_window, .. } = event {
            self.compactions.entry(id.clone()).or_default().window = *context_window;
        }
    }

    /// A compaction ends. `is_lost`: the log of the session is lost.
    pub fn compaction_ends(&mut self, id: &OperationId, event: &Event, is_lost: bool, file: &File) -> Verdict {
        let Event::CompactionEnd { outcome, result, .. } = event else { return Ok(()) };
        let Some(compaction) = self.compactions.remove(id) else { return Ok(()) };
        require(compaction.open.is_none(), Rule::HooksEnd, || format!("{id:?} ends before {:?}", compaction.open))?;
        let has = |wanted: HookOutcome| compaction.ended.iter().any(|(_, outcome)| *outcome == wanted);
        let cancels = has(HookOutcome::Cancelled) && !compaction.ends;
        require(!cancels || *outcome == Outcome::Cancelled || is_lost, Rule::HookCancels, || {
            format!("a hook cancels {id:?}, which ends as {outcome:?}")
        })?;
        match (outcome, result) {
            (Outcome::Completed, Some(result)) => compaction.completed(id, result, file),
            _ => Ok(()),
        }
    }

    /// An input was handled. `ahead`: a summary is being made ahead.
    pub fn after_input(&mut self, ahead: Option<&OperationId>) -> Verdict {
        if let Some(stray) = self.stray.take() {
            return broken(Rule::HooksRegistered, stray);
        }
        let open = self.compactions.iter().find(|(_, compaction)| compaction.ends);
        require(open.is_none(), Rule::HookOutcome, || format!("a hook was cancelled, and {open:?} goes on"))?;
        require(ahead.is_none() || !self.registered.concerns_compaction(), Rule::NoneAheadWithHooks, || {
            format!("{ahead:?} is made ahead, and {:?} is registered", self.registered)
        })
    }

    /// The process dies.
    pub fn crashed(&mut self) {
        *self = Self::default();
    }
}

impl Compaction {
    /// The summary and the data of a compaction that completed are those of its hooks.
    fn completed(&self, id: &OperationId, result: &CompactionResult, file: &File) -> Verdict {
        let Some(place) = result.entry_id.as_ref().and_then(|id| file.newest(id)) else { return Ok(()) };
        let line: Value = serde_json::from_str(file.line(place)).unwrap_or_default();
        let by_hook = result.method == SummaryMethod::Hook;
        let replaced = self.answer_of(HookOutcome::Replaced);
        match replaced {
            None => require(!by_hook && !result.from_hook, Rule::RefusedIsNotUsed, || {
                format!("{id:?} has the summary of a hook, and its hooks ended as {:?}", self.ended)
            })?,
            Some(answer) => {
                let summary = answer["compaction"]["summary"].as_str().unwrap_or_default().trim();
                let is_its = line["summary"] == summary && line["fromHook"] == true && line["method"] == "hook";
                require(by_hook && result.from_hook && is_its, Rule::HookReplaces, || {
                    format!("{id:?} has {:?} by {:?}, and the hook said {answer}", line["summary"], result.method)
                })?;
                let (details, said) = (&line["details"], &answer["compaction"]["details"]);
                require(details == said, Rule::HookReplaces, || format!("{id:?} has {details}, the hook said {said}"))?;
            }
        }
        let mut expected = self.carried.clone();
        let supplied = match replaced {
            Some(answer) => &answer["compaction"]["preserveData"],
            None => self.added().map_or(&Value::Null, |answer| &answer["preserveData"]),
        };
        expected.extend(supplied.as_object().cloned().unwrap_or_default());
        let has = &line["preserveData"];
        let lost = expected.iter().find(|(key, value)| has[*key] != **value);
        require(lost.is_none(), Rule::HookDataKept, || format!("{id:?} has {has} and not {lost:?}"))
    }

    fn answer_of(&self, outcome: HookOutcome) -> Option<&Value> {
        let hook = self.ended.iter().find(|(_, it)| *it == outcome).map(|(hook, _)| *hook)?;
        self.calls.iter().find(|call| call.hook == hook).and_then(|call| call.answer.as_ref().ok())
    }

    /// The additions of `session_compacting`.
    fn added(&self) -> Option<&Value> {
        let ended = self.ended.contains(&(HookEvent::SessionCompacting, HookOutcome::Ok));
        let call = self.calls.iter().find(|call| ended && call.hook == HookEvent::SessionCompacting)?;
        call.answer.as_ref().ok()
    }
}

/// The meaning of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    GoesOn,
    Cancels,
    Replaces,
    Unusable,
}

fn said(call: &Called, path: &[EntryId], window: u64) -> Said {
    let Ok(answer) = &call.answer else { return Said::Unusable };
    let takes_ours = |data: &Value| data.get("abridged").is_some();
    if call.hook == HookEvent::SessionCompacting {
        let context = &answer["context"];
        let is_one = answer.is_null() || answer.is_object() && (context.is_null() || context.is_array());
        return if is_one && !takes_ours(&answer["preserveData"]) { Said::GoesOn } else { Said::Unusable };
    }
    match answer["action"].as_str() {
        None if answer.is_null() => Said::GoesOn,
        Some("continue") => Said::GoesOn,
        Some("cancel") => Said::Cancels,
        Some("replace") => {
            let compaction = &answer["compaction"];
            let summary = compaction["summary"].as_str().unwrap_or_default();
            let kept = compaction["firstKeptEntryId"].as_str();
            let is_strange = kept.is_some_and(|kept| !path.iter().any(|id| id.as_str() == kept));
            let is_framed = summary.contains("</summary>") || summary.contains("<conversation>");
            let is_long = window > 0 && summary.len() as u64 / 16 > window;
            match summary.trim().is_empty()
                || is_strange
                || is_framed
                || is_long
                || takes_ours(&compaction["preserveData"])
            {
                true => Said::Unusable,
                false => Said::Replaces,
            }
        }
        _ => Said::Unusable,
    }
}
