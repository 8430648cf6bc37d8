//! The provider's own compaction of the part that a plan summarizes: its input.

use super::plan::Plan;
use crate::{
    ask::content::Content,
    conversation::{
        context::{self, Context, ContextMessage},
        entry::native::Covers,
    },
    ids::ModelRef,
    models::candidates::Candidate,
    prompts::{Prompt, escape_frame},
    provider::{
        Api, Request, Turn,
        turns::{Target, turns},
    },
    redact::Secrets,
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

impl NativeOrder {
    /// The request for a plan: the previous history or summary, and the messages that are summarized. Pinned messages stay
    /// out of it, because each context has them.
    #[must_use]
    pub fn job(self, plan: &Plan, secrets: Secrets) -> NativeJob {
        let estimator = plan.demand.scale.estimator();
        let context = context::build(plan.path(), &plan.prompts);
        let (history, summary, messages) = beginning(plan, &context, &self.candidate.model.provider);
        let places = plan.path().places();
        let is_covered = |message: &&ContextMessage| match &message.entry {
            Some(entry) => places.of_entry(entry).is_none_or(|place| place < plan.first_kept()),
            None => true,
        };
        let is_pinned = |message: &ContextMessage| {
            let entry = message.entry.as_ref().and_then(|entry| places.entry(entry));
            entry.is_some_and(|entry| plan.is_pinned(entry))
        };
        let entries = messages.iter().filter(|message| message.part != context::Part::Summary);
        let covered: Vec<_> = entries.take_while(is_covered).filter(|message| !is_pinned(message)).collect();
        let said = covered.iter().map(|message| u64::from(message.tokens(estimator)));
        let of_history = context.native(&self.candidate.model.provider).filter(|_| !history.is_empty());
        let of_history = of_history.map_or(0, |native| native.history().tokens());
        let of_summary = summary.as_ref().map_or(0, |summary| estimator.of_text(summary));
        let tokens = said.sum::<u64>() + of_history + of_summary;
        let said = turns(covered.into_iter().map(ContextMessage::json), &target(&self.candidate.model));
        let turns = summary.map(Turn::user).into_iter().chain(said).collect();
        let content = Content::of(Request { system: self.system, history, turns, ..Request::default() }, secrets);
        NativeJob { candidate: self.candidate, content, tokens }
    }
}

/// The beginning of the input: the history of this provider, or else the summary before; and the messages after it.
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
