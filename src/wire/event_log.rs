//! Events in the log on stderr: their sizes, times, outcomes and codes. Texts of the conversation and of errors are not in it: a
//! text may quote anything.

use crate::{
    conversation::entry::raw,
    ids::{EntryId, OperationId, SessionId},
    protocol::{codes::ErrorData, events::Event},
};
use serde::Serialize;

/// Logs an event of an operation or a turn, and about an entry. Each operation has its start and its end at `info`; steps inside of them are at `debug`.
pub(super) fn log(session: &SessionId, operation: Option<&OperationId>, entry: Option<&EntryId>, event: &Event) {
    if !tracing::enabled!(tracing::Level::INFO) {
        return;
    }
    let operation = operation.map(ToString::to_string);
    macro_rules! info {
        ($($field:tt)*) => { tracing::info!(%session, operation, $($field)*) };
    }
    macro_rules! debug {
        ($($field:tt)*) => { tracing::debug!(%session, operation, $($field)*) };
    }
    let error = |error: &Option<ErrorData>| error.as_ref().map(|error| error.code.clone());
    match event {
        Event::CompactionStart { reason, strategy, tokens_before, context_window, threshold_tokens, .. } => {
            let (reason, strategy) = (name(reason), name(strategy));
            info!(reason, strategy, tokens_before, context_window, threshold_tokens, "compaction started");
        }
        Event::CompactionEnd { outcome, result: Some(result), duration_ms, .. } => {
            let (before, after) = (result.tokens_before, result.tokens_after);
            let (outcome, method) = (name(outcome), name(&result.method));
            let model = result.model.as_ref().map(ToString::to_string);
            info!(
                outcome,
                method,
                model,
                tokens_before = before,
                tokens_after = after,
                duration_ms,
                "compaction ended"
            );
        }
        Event::CompactionEnd { outcome, error: failed, skipped_reason, duration_ms, .. } => {
            let (outcome, skipped, error) = (name(outcome), skipped_reason.as_ref().map(name), error(failed));
            info!(outcome, skipped, error, duration_ms, "compaction ended");
        }
        Event::RetryStart { source, attempt, max_attempts, delay_ms, error, .. } => {
            let source = name(source);
            info!(source, attempt, max_attempts, delay_ms, error = error.code, "a model is asked again after a delay");
        }
        Event::RetryEnd { source, success, attempt, error: failed, .. } => {
            info!(source = name(source), success, attempt, error = error(failed), "retry ended");
        }
        Event::RecoveryStart { reason, action, .. } => {
            info!(reason = name(reason), action = name(action), "recovery started");
        }
        Event::RecoveryEnd { outcome, will_retry, error: failed, .. } => {
            info!(outcome = name(outcome), will_retry, error = error(failed), "recovery ended");
        }
        Event::IdleStart { context_tokens, idle_seconds } => {
            info!(context_tokens, idle_seconds, "idle maintenance started");
        }
        Event::IdleEnd { outcome, skipped_reason } => {
            info!(outcome = name(outcome), skipped = skipped_reason.as_ref().map(name), "idle maintenance ended");
        }
        Event::BranchSummaryStart { entry_count, .. } => info!(entry_count, "branch summary started"),
        Event::BranchSummaryEnd { outcome, error: failed, .. } => {
            info!(outcome = name(outcome), error = error(failed), "branch summary ended");
        }
        Event::HandoffStart { .. } => info!("handoff started"),
        Event::HandoffEnd { outcome, new_session_id, error: failed, .. } => {
            let new_session = new_session_id.as_ref().map(ToString::to_string);
            info!(outcome = name(outcome), new_session, error = error(failed), "handoff ended");
        }
        Event::SessionReplaced { new_session_id, reason } => {
            info!(new_session = %new_session_id, reason = name(reason), "another session goes on");
        }
        Event::ModelChanged { from, to, reason } => {
            let from = from.as_ref().map(ToString::to_string);
            info!(from, to = %to, reason = name(reason), "model changed");
        }
        Event::Pruned { entry_ids, tokens_saved, .. } => {
            info!(results = entry_ids.len(), tokens_saved, "old results pruned");
        }
        Event::HookStart { hook } => debug!(hook = name(hook), "hook called"),
        Event::HookEnd { hook, outcome, duration_ms, .. } => {
            info!(hook = name(hook), outcome = name(outcome), duration_ms, "hook ended");
        }
        Event::TurnStart {} => info!("turn started"),
        Event::TurnEnd { outcome, stop_reason, usage, error: failed, .. } => {
            let (outcome, tokens, error) = (name(outcome), usage.context_tokens, error(failed));
            info!(outcome, stop_reason, context_tokens = tokens, error, "turn ended");
        }
        Event::ToolStart { tool_call_id, name, .. } => debug!(call = %tool_call_id, tool = name, "tool called"),
        Event::ToolEnd { tool_call_id, is_error } => debug!(call = %tool_call_id, is_error, "tool ended"),
        Event::Notice { severity, code, .. } => info!(severity = name(severity), code = name(code), "notice sent"),
        Event::IndexReady { entry_count, repairs, .. } => {
            debug!(entry_count, repairs = repairs.len(), "index ready");
        }
        Event::TreeChanged { new_leaf_id, .. } => {
            let leaf = new_leaf_id.as_ref().map(ToString::to_string);
            debug!(leaf, "moved to another branch");
        }
        Event::UsageUpdated { usage } => {
            let (tokens, threshold) = (usage.context_tokens, usage.threshold_tokens);
            debug!(context_tokens = tokens, threshold_tokens = threshold, "context measured");
        }
        Event::EntryAppended { .. } => {
            debug!(entry = entry.map(ToString::to_string), "entry appended");
        }
        Event::SettingsChanged { sources, .. } => debug!(values = sources.len(), "settings changed"),
        // Progress and pieces of texts, and events that say nothing alone.
        _ => {}
    }
}

/// The name of a value on the wire.
fn name(value: &impl Serialize) -> String {
    raw(value).get().trim_matches('"').to_owned()
}
