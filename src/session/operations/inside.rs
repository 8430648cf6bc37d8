//! Hooks and retries inside of an operation: each has one end, before that of its operation.

use super::{Key, Kind, Operations, hook_end, retry_end};
use crate::{
    ids::CallId,
    log,
    protocol::{
        errors::Failure,
        events::{Event, HookOutcome, RetrySource},
        types::HookEvent,
    },
};
use std::time::{Duration, Instant};

/// A hook or a retry whose end was not sent.
#[derive(Debug, Clone)]
pub(super) enum Inside {
    /// The client is asked since this time.
    Hook(HookEvent, Instant),
    /// A request is repeated, with the number of the retry.
    Retry(RetrySource, u32),
    /// The client executes a tool for this call.
    Tool(CallId),
}

impl Inside {
    /// As the lock lists it.
    pub fn recorded(&self) -> log::Inside {
        match self {
            Self::Hook(hook, _) => log::Inside::Hook { hook: hook.name().to_owned() },
            Self::Retry(source, attempt) => log::Inside::Retry { retry: source.name(), attempt: *attempt },
            Self::Tool(call) => log::Inside::Tool { call: call.clone() },
        }
    }

    /// Its end event where its operation ends before it.
    pub fn cut_off(self, now: Instant) -> Event {
        match self {
            Self::Hook(hook, since) => {
                hook_end(hook, HookOutcome::Cancelled, now.saturating_duration_since(since), None)
            }
            Self::Retry(source, attempt) => retry_end(source, attempt, Some(&Failure::Cancelled)),
            Self::Tool(call) => Event::ToolEnd { tool_call_id: call, is_error: true },
        }
    }
}

/// The end event of a hook or a retry of a process that died. None where this version does not know its name.
pub(super) fn interrupted(inside: &log::Inside) -> Option<Event> {
    let what = "the process that waited for it ended before the answer came";
    let event = match inside {
        log::Inside::Hook { hook } => {
            let ends = |hook| hook_end(hook, HookOutcome::Error, Duration::ZERO, Some(what.to_owned()));
            hook.parse().ok().map(ends)
        }
        log::Inside::Retry { retry, attempt } => {
            let ends = |source| retry_end(source, *attempt, Some(&Failure::Internal(what.to_owned())));
            RetrySource::read(retry).map(ends)
        }
        log::Inside::Tool { call } => Some(Event::ToolEnd { tool_call_id: call.clone(), is_error: true }),
    };
    if event.is_none() {
        tracing::warn!(?inside, "the lock lists a hook or a retry of an unknown name");
    }
    event
}

impl<K: Kind, W> Operations<K, W> {
    /// Records that a retry starts. False where the operation has ended, so that nothing is sent.
    pub fn retry_starts(&mut self, key: Key, source: RetrySource, attempt: u32) -> bool {
        self.begins(key, Inside::Retry(source, attempt))
    }

    /// Records that a retry ends. False where it has no start, or has its end already.
    pub fn retry_ends(&mut self, key: Key, source: RetrySource, attempt: u32) -> bool {
        let is_it =
            |inside: &Inside| matches!(inside, Inside::Retry(it, number) if (*it, *number) == (source, attempt));
        self.take_inside(key, is_it).is_some()
    }

    /// Records that a hook starts. False where the operation has ended, so that nothing is sent.
    pub fn hook_starts(&mut self, key: Key, hook: HookEvent, now: Instant) -> bool {
        self.begins(key, Inside::Hook(hook, now))
    }

    /// Records that a hook ends, and gives the time of its start. None where it has no start, or has its end already.
    pub fn hook_ends(&mut self, key: Key, hook: HookEvent) -> Option<Instant> {
        match self.take_inside(key, |inside| matches!(inside, Inside::Hook(it, _) if *it == hook))? {
            Inside::Hook(_, since) => Some(since),
            Inside::Retry(..) | Inside::Tool(_) => None,
        }
    }

    /// Records that a tool is executed. False where the operation has ended, so that nothing is sent.
    pub fn tool_starts(&mut self, key: Key, call: CallId) -> bool {
        self.begins(key, Inside::Tool(call))
    }

    /// Records that a call has its result. False where it has no start, or has its end already.
    pub fn tool_ends(&mut self, key: Key, call: &CallId) -> bool {
        self.take_inside(key, |inside| matches!(inside, Inside::Tool(it) if it == call)).is_some()
    }

    fn begins(&mut self, key: Key, inside: Inside) -> bool {
        self.find_mut(key).map(|open| open.inside.push(inside)).is_some()
    }

    fn take_inside(&mut self, key: Key, is_it: impl Fn(&Inside) -> bool) -> Option<Inside> {
        let open = self.find_mut(key)?;
        let at = open.inside.iter().position(is_it)?;
        Some(open.inside.remove(at))
    }
}
