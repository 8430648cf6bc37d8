//! The provider's own compaction of the part that a plan summarizes: its input.

use super::plan::Plan;
use crate::{
    conversation::{
        context::{self, Context, ContextMessage},
        entry::native::Covers,
    },
    ids::ModelRef,
    models::candidates::Candidate,
    prompts::{Prompt, escape_frame},
    provider::{
        Api, Part, Request, Turn,
        turns::{Target, turns},
    },
    redact,
    summary::model::writer::NativeJob,
};
use serde_json::Value;

/// A compaction that a provider is asked for.
#[derive(Debug, Clone)]
pub struct NativeOrder {
    /// The model, and the way to its provider.
    pub candidate: Candidate,
    /// The system prompt of the conversation.
    pub system: Option<String>,
}

/// Whether texts are redacted before they are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Secrets {
    /// They are.
    Redacted,
    /// They are sent.
    Sent,
}

impl NativeOrder {
    /// The request for a plan: the previous history or summary, and the messages that are summarized. Pinned messages stay
    /// out of it, because each context has them.
    #[must_use]
    pub fn job(self, plan: &Plan, secrets: Secrets) -> NativeJob {
        let estimator = plan.demand.scale.estimator();
        let context = context::build(plan.path(), &plan.prompts);
        let (history, summary, messages) = beginning(plan, &context, &self.candidate.model.provider);
        let is_covered = |message: &&ContextMessage| match &message.entry {
            Some(entry) => plan.path().position(entry).is_none_or(|place| place < plan.first_kept()),
            None => true,
        };
        let is_pinned = |message: &ContextMessage| {
            let place = message.entry.as_ref().and_then(|entry| plan.path().position(entry));
            place.is_some_and(|place| plan.is_pinned(&plan.path()[place]))
        };
        let entries = messages.iter().filter(|message| message.part != context::Part::Summary);
        let covered: Vec<_> = entries.take_while(is_covered).filter(|message| !is_pinned(message)).collect();
        let said = covered.iter().map(|message| u64::from(message.tokens(estimator)));
        let of_history = context.native(&self.candidate.model.provider).filter(|_| !history.is_empty());
        let of_history = of_history.map_or(0, |native| native.history().tokens());
        let of_summary = summary.as_ref().map_or(0, |summary| estimator.of_text(summary));
        let tokens = said.sum::<u64>() + of_history + of_summary;
        let said = turns(covered.into_iter().map(ContextMessage::json), &target(&self.candidate.model));
        let mut turns: Vec<Turn> = summary.map(Turn::user).into_iter().chain(said).collect();
        if secrets == Secrets::Redacted {
            turns.iter_mut().for_each(clean);
        }
        NativeJob { candidate: self.candidate, system: self.system, history, turns, tokens }
    }
}

/// The beginning of the input: the history of this provider, or else the summary before; and the messages behind it.
fn beginning<'a>(
    plan: &Plan,
    context: &'a Context,
    provider: &str,
) -> (Vec<Value>, Option<String>, &'a [ContextMessage]) {
    let place = plan.path().compaction();
    let native = context.native(provider).filter(|native| match native.history().covers() {
        Covers::Summarized => true,
        // Some of the entries that it covers would be kept.
        Covers::Kept => place.is_some_and(|place| place < plan.first_kept()),
    });
    if let Some(native) = native {
        return (native.history().items().to_vec(), None, native.messages());
    }
    let summary = place.and_then(|place| plan.path()[place].compaction());
    let summary = summary.map(|compaction| {
        let summary = escape_frame(&compaction.summary);
        plan.prompts.render(Prompt::CompactionSummaryContext, &[("summary", &summary)])
    });
    (Vec::new(), summary, context.messages())
}

fn target(model: &ModelRef) -> Target<'_> {
    Target { api: Api::OpenaiResponses, provider: &model.provider, model: &model.id }
}

/// Removes secrets from a turn.
pub fn clean(turn: &mut Turn) {
    for part in parts(turn) {
        match part {
            Part::Text { text, .. } => *text = redact::redact(text).into_owned(),
            Part::Call { arguments, .. } => {
                let redacted = redact::redact(arguments).into_owned();
                // A placeholder is no JSON everywhere.
                let readable = serde_json::from_str::<Value>(&redacted).is_ok();
                *arguments = if readable { redacted } else { "{}".to_owned() };
            }
            Part::Thinking { .. } | Part::Image { .. } => {}
        }
    }
}

/// Removes secrets from a request for another model than the session's own.
pub fn clean_request(request: &mut Request) {
    if let Some(text) = &mut request.system {
        *text = redact::redact(text).into_owned();
    }
    request.turns.iter_mut().for_each(clean);
    request.history.iter_mut().chain(&mut request.tools).for_each(clean_value);
}

/// Removes secrets from the texts of a value. Ids, names and encrypted parts are of use only as they are.
fn clean_value(value: &mut Value) {
    const KEPT: [&str; 5] = ["id", "call_id", "name", "type", "encrypted_content"];
    match value {
        Value::String(text) => *text = redact::redact(text).into_owned(),
        Value::Array(items) => items.iter_mut().for_each(clean_value),
        Value::Object(fields) => {
            let is_kept = |name: &str, value: &Value| value.is_string() && KEPT.contains(&name);
            fields.iter_mut().filter(|(name, value)| !is_kept(name, value)).for_each(|(_, value)| clean_value(value));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn parts(turn: &mut Turn) -> &mut Vec<Part> {
    match turn {
        Turn::User(parts) | Turn::Assistant(parts) => parts,
        Turn::Result(outcome) => &mut outcome.parts,
    }
}
