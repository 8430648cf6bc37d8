//! Recoveries and other automatic maintenance: when they may start, how often, and the context after them.

use super::{Rule, Verdict, file::File, requests::Asked, require};
use crate::{
    compaction::resting::AutoCompaction,
    conversation::{
        entry::{Body, Entry},
        message::outline::Role,
    },
    ids::{EntryId, ModelRef, OperationId},
    protocol::{
        errors::Failure,
        events::{Event, ModelChange, Reason, RecoveryAction, RecoveryOutcome, RecoveryReason},
        types::{Outcome, Usage},
    },
    session::{
        core::{Core, Input},
        log_work::LogDone,
    },
    wire::outbox::About,
};
use serde_json::Value;
use std::collections::HashMap;

/// Most compactions in a row because of requests that were too long.
const MOST_OVERFLOWS: usize = 2;
/// Most recoveries in a row.
const MOST_RECOVERIES: usize = 3;

/// The session after an input, as far as recoveries depend on it.
#[derive(Debug, Clone, PartialEq)]
struct Snapshot {
    usage: Usage,
    given: Given,
}

/// The state in which a client is given a context.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Given {
    compaction: Option<EntryId>,
    model: Option<ModelRef>,
}

/// A recovery that runs.
#[derive(Debug)]
struct Running {
    id: OperationId,
    reason: RecoveryReason,
    action: RecoveryAction,
    removed: Option<EntryId>,
    /// Whether its answer has left the context.
    is_removed: bool,
    /// Whether the failure is older than a compaction, or than the choice of another model.
    is_stale: bool,
    /// Whether another model was chosen.
    promoted: bool,
    /// Its compaction.
    inside: Option<Inside>,
}

/// The compaction of a recovery.
#[derive(Debug)]
struct Inside {
    tokens_before: u64,
    /// The most tokens that it leaves, unless the session changed meanwhile.
    most: u64,
    outcome: Option<Outcome>,
}

/// A context that the client is promised or refused, until the session changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Promise {
    #[default]
    None,
    /// A recovery has made a context that fits.
    Fits,
    /// A recovery has failed.
    Refused,
}

/// An automatic compaction that left the context over its threshold.
#[derive(Debug)]
struct Unhelpful {
    tokens: u64,
    threshold: u64,
    /// Whether the newest message was one of the user, which no compaction covers before its answer.
    unanswered: bool,
}

/// The knowledge about recoveries. Attempts are known beyond the life of a session.
#[derive(Debug, Default)]
pub struct Recoveries {
    /// Attempts, by the entries that record them.
    attempts: HashMap<EntryId, RecoveryReason>,
    running: Option<Running>,
    promise: Promise,
    last: Option<Snapshot>,
    /// The state in which a context was given last.
    given: Option<Given>,
    /// A context was given in this input.
    gives: bool,
    /// The state at the answer of an append whose `next` names a recovery, by that: whether it is stale and whether
    /// automatic maintenance is on.
    named: HashMap<OperationId, (bool, AutoCompaction)>,
    /// A larger model was chosen in this input.
    promoted: bool,
    /// Whether the client asks the model that a context names.
    switches_models: bool,
    unhelpful: Option<Unhelpful>,
    /// Whether a write was not confirmed, or the log is lost. Entries of such a write are not announced.
    is_unconfirmed: bool,
    /// The session changed since the start of the compaction that runs.
    changed: bool,
}

impl Recoveries {
    /// A life begins.
    pub fn opens(&mut self) {
        let attempts = std::mem::take(&mut self.attempts);
        *self = Self { attempts, switches_models: self.switches_models, ..Self::default() };
    }

    /// The client asks the model that a context names.
    pub fn client_switches_models(&mut self) {
        self.switches_models = true;
    }

    /// Automatic maintenance is off.
    #[cfg(test)]
    pub fn switches_off(&mut self) {
        self.named.values_mut().for_each(|(_, auto)| *auto = AutoCompaction::Set(false));
        self.last.iter_mut().for_each(|last| last.usage.auto_compaction = AutoCompaction::Set(false));
    }

    /// An input goes in.
    pub fn feeds(&mut self, input: &Input) {
        self.is_unconfirmed |= matches!(input, Input::Log(None | Some(LogDone::Wrote { appended: Err(_), .. }), _));
        if matches!(input, Input::Layers(_) | Input::Windows(_) | Input::FileTouched) {
            self.session_changes();
        }
    }

    /// The session changes: a promise about its context is void.
    fn session_changes(&mut self) {
        self.promise = Promise::None;
        self.changed = true;
    }

    /// An append was answered.
    pub fn appended(&mut self, asked: &Asked, result: &Value, file: &File) {
        self.session_changes();
        let messages = asked.params["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
        if messages.iter().any(|message| message["role"] == "user") {
            self.unhelpful = None;
        }
        let answers =
            |it: &Value| it["role"] == "assistant" && it["stopReason"] != "error" && it["stopReason"] != "aborted";
        if messages.iter().any(answers) {
            self.unhelpful.take_if(|before| before.unanswered);
        }
        if !asked.params["parentEntryId"].is_null() {
            // The other branch may have another compaction.
            self.given = None;
        }
        if let Some(id) = result["next"]["operationId"].as_str().map(OperationId::from) {
            let auto = match &result["usage"]["autoCompaction"] {
                Value::Bool(on) => AutoCompaction::Set(*on),
                _ => AutoCompaction::Resting,
            };
            let is_stale = self.is_stale()
                && !self.answers_by_given(messages, file)
                && !self.names_this_context(&asked.params["contextId"]);
            self.named.insert(id, (is_stale, auto));
        }
    }

    /// A turn that the daemon runs asks its model: the context is given.
    pub fn asks(&mut self) {
        self.gives = true;
    }

    /// The usage after messages of a turn is sent. It says whether a compaction may start, as the answer of an append does.
    pub fn turn_measures(&mut self, usage: &Usage) {
        self.last.iter_mut().for_each(|last| last.usage.auto_compaction = usage.auto_compaction);
    }

    /// A message of a turn that the daemon runs is announced.
    pub fn turn_says(&mut self, entry: &Entry) {
        let Some(outline) = entry.outline() else { return };
        match outline.role {
            Role::User => self.unhelpful = None,
            Role::Assistant if !outline.failed => drop(self.unhelpful.take_if(|before| before.unanswered)),
            _ => {}
        }
    }

    /// Whether an append names a context that begins where the context does now: an undo has taken back what came since.
    fn names_this_context(&self, id: &Value) -> bool {
        let foundation = id.as_str().and_then(|id| id.rsplit('|').nth(1));
        let now = self.last.as_ref().map(|last| last.given.compaction.as_ref().map_or("", EntryId::as_str));
        foundation.is_some() && foundation == now
    }

    /// Whether a session without a chosen model takes the model of the given context from its answer: the answer names it, or
    /// names none.
    fn answers_by_given(&self, messages: &[Value], file: &File) -> bool {
        let (Some(given), Some(last)) = (&self.given, &self.last) else { return false };
        let named = messages.last().is_some_and(|answer| {
            answer["model"].is_null()
                || given.model.as_ref().is_some_and(|model| {
                    answer["provider"] == model.provider.as_str() && answer["model"] == model.id.as_str()
                })
        });
        let is_chosen = file.chain().any(|entry| matches!(entry.body, Body::ModelChange { .. }));
        named && !is_chosen && given.compaction == last.given.compaction
    }

    /// A request that may rewrite the context, or changes what it is measured by, was answered.
    pub fn rewritten(&mut self, result: &Value) {
        if let Some(id) = result["next"]["operationId"].as_str().map(OperationId::from) {
            let auto = self.last.as_ref().map_or(AutoCompaction::Set(true), |last| last.usage.auto_compaction);
            self.named.insert(id, (false, auto));
        }
        self.session_changes();
        self.unhelpful = None;
    }

    /// Whether a compaction was written, or another model chosen, since a context was given.
    fn is_stale(&self) -> bool {
        matches!((&self.given, &self.last), (Some(given), Some(last)) if *given != last.given)
    }

    /// An entry is announced outside of a compaction.
    pub fn announced(&mut self, about: &About) {
        if about.operation.is_none() {
            self.session_changes();
        }
    }

    /// The usage after the last input.
    pub fn usage(&self) -> Option<&Usage> {
        self.last.as_ref().map(|last| &last.usage)
    }

    /// Whether a session may end over its window: maintenance is off, or the attempts to recover are used up.
    pub fn may_end(&self) -> bool {
        let is_off = |last: &Snapshot| last.usage.auto_compaction == AutoCompaction::Set(false);
        self.promise == Promise::Refused || self.last.as_ref().is_none_or(is_off)
    }

    /// A request for the context is answered, or is left to be answered.
    pub fn gives(&mut self, asked: &Asked, failure: Option<&Failure>) -> Verdict {
        let at_leaf = asked.params["leafEntryId"].is_null();
        self.gives |= at_leaf && failure.is_none();
        if !at_leaf || !asked.must_fit() {
            return Ok(());
        }
        let refused = matches!(failure, Some(Failure::OverWindow { .. }));
        require(!refused || self.promise != Promise::Fits, Rule::RecoveredFits, || {
            format!("context {} is refused with {failure:?} right behind a recovery", asked.number)
        })?;
        require(failure.is_some() || self.promise != Promise::Refused, Rule::FailedRefuses, || {
            format!("context {} is answered right behind a recovery that failed", asked.number)
        })
    }

    /// A recovery starts, or a compaction.
    pub fn starts(&mut self, id: &OperationId, event: &Event, file: &File) -> Verdict {
        self.promise = Promise::None;
        match event {
            Event::RecoveryStart { reason, removed_entry_id, action } => {
                self.changed = false;
                self.recovery_starts(id, *reason, removed_entry_id.clone(), *action, file)
            }
            Event::CompactionStart { reason, tokens_before, threshold_tokens, will_retry, .. } => {
                self.changed &= self.running.is_some();
                // After an undo the size of the context starts nothing.
                let by_size = matches!(reason, Reason::Threshold | Reason::Idle);
                let acts = |auto: AutoCompaction| match auto {
                    AutoCompaction::Set(on) => on,
                    AutoCompaction::Resting => !by_size,
                };
                let acts = self.last.as_ref().is_none_or(|last| acts(last.usage.auto_compaction))
                    || self.named.get(id).is_some_and(|(_, auto)| acts(*auto));
                require(acts || *reason == Reason::Manual, Rule::OffIsOff, || {
                    format!("{id:?} starts for {reason:?}, and automatic maintenance is off or rests")
                })?;
                let around = self.running.is_some();
                require(around == *will_retry, Rule::RecoveryAgrees, || {
                    format!("{id:?} says {will_retry}, and a recovery runs: {around}")
                })?;
                if around {
                    return self.compaction_inside_starts(id, *reason, *tokens_before, file);
                }
                if *reason == Reason::Manual {
                    self.unhelpful = None;
                }
                let again = self.unhelpful.as_ref().filter(|before| {
                    *reason == Reason::Threshold
                        && *threshold_tokens >= before.threshold
                        && *tokens_before < before.tokens + (before.tokens / 20).max(1)
                });
                require(again.is_none(), Rule::NoLoop, || format!("{id:?} starts at {tokens_before}, behind {again:?}"))
            }
            _ => Ok(()),
        }
    }

    fn recovery_starts(
        &mut self,
        id: &OperationId,
        reason: RecoveryReason,
        removed: Option<EntryId>,
        action: RecoveryAction,
        file: &File,
    ) -> Verdict {
        let line = removed.as_ref().and_then(|id| file.newest(id)).map(|place| file.line(place));
        let message: Value = line.and_then(|line| serde_json::from_str(line).ok()).unwrap_or_default();
        let message = &message["message"];
        let too_long = message["stopReason"] == "error" && means_too_long(message["errorMessage"].as_str());
        let needed = match reason {
            // An empty answer may say that the window was full before its first word.
            RecoveryReason::Overflow => too_long || message["stopReason"] == "length",
            RecoveryReason::Incomplete => message["stopReason"] == "length",
        };
        require(needed, Rule::RecoveryWasNeeded, || format!("{id:?} recovers by {reason:?} from {message}"))?;
        let removal = removed.as_ref().and_then(|removed| file.removal_of(removed));
        let unsaid = removal.filter(|place| !file.is_announced(*place));
        require(unsaid.is_none() || self.is_unconfirmed, Rule::RecoveryFollowsEdit, || {
            format!("{id:?} starts before the edit of line {unsaid:?} is announced")
        })?;
        let is_stale = self.named.get(id).map_or_else(|| self.is_stale(), |(is_stale, _)| *is_stale);
        if is_stale && action == RecoveryAction::Retry {
            // A client that asks for no other context is not told the same again.
            self.given = self.last.as_ref().map(|last| last.given.clone());
        }
        if reason == RecoveryReason::Incomplete && action == RecoveryAction::Retry && !is_stale {
            self.attempt(id, reason, removal, file)?;
        }
        let (is_removed, id) = (removal.is_some(), id.clone());
        self.running =
            Some(Running { id, reason, action, removed, is_removed, is_stale, promoted: false, inside: None });
        Ok(())
    }

    /// An attempt to recover begins.
    fn attempt(
        &mut self,
        id: &OperationId,
        reason: RecoveryReason,
        removal: Option<usize>,
        file: &File,
    ) -> Result<(), super::Violation> {
        // The entry after the edit records the attempt. A client may go on from between both.
        let recorded = removal.map(|place| place + 1).filter(|place| file.entry(*place).is_some());
        let Some(entry) = recorded.or(removal).and_then(|place| file.entry(place)) else { return Ok(()) };
        self.attempts.insert(entry.id.clone(), reason);
        if file.another_wrote() {
            return Ok(());
        }
        let row: Vec<_> = self.in_a_row(file).collect();
        let overflows = row.iter().filter(|it| **it == RecoveryReason::Overflow).count();
        require(overflows <= MOST_OVERFLOWS && row.len() <= MOST_RECOVERIES, Rule::AttemptsAreBounded, || {
            format!("{id:?} recovers behind {row:?} without progress")
        })
    }

    /// The attempts since the last progress of the conversation, newest first.
    fn in_a_row<'a>(&'a self, file: &'a File) -> impl Iterator<Item = RecoveryReason> + 'a {
        let mut removed: Vec<&EntryId> = Vec::new();
        let since = file.chain().take_while(move |entry| {
            if let Body::ContextEdit(edit) = &entry.body
                && edit.replacement.is_none()
            {
                removed.push(&edit.target_id);
            }
            !is_progress(entry) || removed.contains(&&entry.id)
        });
        since.filter_map(|entry| self.attempts.get(&entry.id).copied())
    }

    fn compaction_inside_starts(
        &mut self,
        id: &OperationId,
        reason: Reason,
        tokens_before: u64,
        file: &File,
    ) -> Verdict {
        let Some(running) = &self.running else { return Ok(()) };
        let (of, stale) = (running.reason, running.is_stale);
        let agrees = running.id == *id && running.action == RecoveryAction::Compact && reason == Reason::from(of);
        require(agrees, Rule::RecoveryAgrees, || format!("{id:?} compacts for {reason:?} inside {running:?}"))?;
        require(running.is_removed, Rule::RecoveryFollowsEdit, || format!("{running:?} compacts"))?;
        require(!stale, Rule::StaleCompactsNothing, || format!("{id:?} compacts for a stale failure"))?;
        let removal = running.removed.as_ref().and_then(|removed| file.removal_of(removed));
        self.attempt(id, of, removal, file)?;
        let overflows = self.in_a_row(file).filter(|it| *it == RecoveryReason::Overflow).count();
        let second = of == RecoveryReason::Overflow && overflows >= MOST_OVERFLOWS && !file.another_wrote();
        let most = if second { tokens_before / 100 * 70 + tokens_before % 100 * 70 / 100 } else { tokens_before };
        if let Some(running) = &mut self.running {
            running.inside = Some(Inside { tokens_before, most, outcome: None });
        }
        Ok(())
    }

    /// The compaction that runs has a summary from before its start: messages came since.
    pub fn began_ahead(&mut self) {
        self.changed = true;
    }

    /// A compaction ends.
    pub fn compaction_ends(&mut self, event: &Event, file: &File) -> Verdict {
        let Event::CompactionEnd { reason, outcome, result, usage, will_retry, .. } = event else { return Ok(()) };
        let over = usage.threshold_tokens.is_some_and(|threshold| usage.context_tokens > threshold);
        match self.running.as_mut().and_then(|running| running.inside.as_mut()) {
            Some(inside) => {
                inside.outcome = Some(*outcome);
                let completed = *outcome == Outcome::Completed;
                if completed {
                    self.unhelpful = None;
                }
                require(completed == *will_retry, Rule::RecoveryAgrees, || format!("{outcome:?} with {will_retry}"))?;
                let left = result.as_ref().map_or(0, |result| result.tokens_after);
                require(left <= inside.most || self.changed, Rule::AttemptShrinks, || {
                    format!("{left} tokens are left of {}, at most {} should be", inside.tokens_before, inside.most)
                })
            }
            // Messages that came meanwhile are another matter.
            None if *reason == Reason::Threshold && over && !self.changed => {
                let threshold = usage.threshold_tokens.unwrap_or_default();
                let newest = file.chain().find_map(|entry| entry.outline());
                let unanswered = newest.is_some_and(|newest| newest.role == Role::User);
                self.unhelpful = Some(Unhelpful { tokens: usage.context_tokens, threshold, unanswered });
                Ok(())
            }
            None => {
                self.unhelpful = None;
                Ok(())
            }
        }
    }

    /// A recovery ends.
    pub fn ends(&mut self, outcome: RecoveryOutcome, will_retry: bool, file: &File) -> Verdict {
        // It was left by a life before.
        let Some(running) = self.running.take() else { return Ok(()) };
        let recovered = outcome == RecoveryOutcome::Recovered;
        let inside = running.inside.as_ref().map(|inside| inside.outcome);
        let agrees = match (running.action, inside, outcome) {
            (_, _, RecoveryOutcome::Cancelled) => true,
            (RecoveryAction::Retry, None, _) => !running.promoted,
            // Without the answer the context may be too large for that model, too.
            (RecoveryAction::PromoteModel, None, _) => running.promoted || !recovered,
            // Its attempts are used up, or it could not be written.
            (RecoveryAction::Compact, None, _) => !recovered,
            (RecoveryAction::Compact, Some(inside), _) => (inside == Some(Outcome::Completed)) == recovered,
            _ => false,
        };
        require(agrees && recovered == will_retry, Rule::RecoveryAgrees, || {
            format!("{running:?} ends as {outcome:?}, {will_retry}")
        })?;
        require(running.is_removed || !recovered, Rule::RecoveryFollowsEdit, || format!("{running:?} has recovered"))?;
        self.promise = match outcome {
            // Messages that came meanwhile may be over the window again.
            _ if self.changed => Promise::None,
            // Another program went on from the answer before it left the context.
            RecoveryOutcome::Failed if file.another_wrote() && went_on(running.removed.as_ref(), file) => Promise::None,
            RecoveryOutcome::Recovered => Promise::Fits,
            RecoveryOutcome::Failed => Promise::Refused,
            RecoveryOutcome::Cancelled => Promise::None,
        };
        Ok(())
    }

    /// The model changes.
    pub fn model_changes(&mut self, reason: ModelChange) {
        self.promoted |= reason == ModelChange::Promotion;
        self.unhelpful = None;
        if let Some(running) = &mut self.running {
            running.promoted = true;
        }
    }

    /// An input was handled.
    pub fn after_input(&mut self, core: &Core) -> Verdict {
        let (state, path) = (core.state(), core.state().path());
        let compaction = path.foundation().map(|place| path[place].id.clone());
        let now = Snapshot { usage: state.usage(), given: Given { compaction, model: state.model(path) } };
        if std::mem::take(&mut self.promoted) {
            let before = self.last.as_ref().and_then(|last| last.usage.context_window);
            let larger = now.usage.context_window > before && now.usage.window_source != "default";
            require(larger && self.switches_models, Rule::PromotionFits, || {
                format!("the model is {now:?}, and the window was {before:?}")
            })?;
        }
        if std::mem::take(&mut self.gives) {
            self.given = Some(now.given.clone());
        }
        self.last = Some(now);
        Ok(())
    }
}

/// Whether a message of the user or an answer stands after an answer.
fn went_on(answer: Option<&EntryId>, file: &File) -> bool {
    let mut behind = file.chain().take_while(|entry| Some(&entry.id) != answer);
    behind.any(|entry| entry.outline().is_some_and(|it| matches!(it.role, Role::User | Role::Assistant)))
}

/// Whether a text says that a request is too long, by the texts of simulated providers.
fn means_too_long(text: Option<&str>) -> bool {
    let meanings = ["too long", "too large", "maximum context length"];
    text.is_some_and(|text| meanings.iter().any(|meaning| text.contains(meaning)))
}

fn is_progress(entry: &Entry) -> bool {
    let Some(outline) = entry.outline() else { return false };
    match outline.role {
        Role::User => true,
        Role::Assistant => !outline.failed && !outline.empty,
        _ => false,
    }
}
