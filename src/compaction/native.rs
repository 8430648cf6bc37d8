//! The provider's own compaction of the part that a plan summarizes: its input, and whether its result can be sent.

use super::plan::Plan;
use crate::{
    ask::content::Content,
    conversation::{
        context::{self, Context, ContextMessage, native::NativeForm},
        entry::{
            Entry,
            native::{Covers, Kind, NativeHistory},
        },
        instructions::Instructions,
        message::error_of,
        path::Path,
    },
    ids::{EntryId, ModelRef},
    models::candidates::{Candidate, Way},
    prompts::{Prompt, escape_frame},
    provider::{
        Api, Request, Turn,
        anthropic::support,
        openai_responses::compact,
        turns::{Target, turns},
    },
    redact::Secrets,
    summary::model::writer::{NativeJob, NativeKind},
};
use serde_json::Value;
use std::sync::Arc;

/// A compaction that a provider is asked for.
#[derive(Debug, Clone)]
pub struct NativeOrder {
    /// The model, and the way to its provider.
    pub candidate: Candidate,
    /// Whether the provider compacts this model, or has to be asked first.
    pub is_certain: bool,
    /// The system prompt of the conversation.
    pub system: Option<String>,
}

/// The reason for which a provider's own compaction is not sent. The text of its summary goes in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsent {
    /// The request goes to another provider, or in another format.
    OtherProvider,
    /// The request goes to another model.
    OtherModel,
    /// The system prompt or the tools changed.
    OtherInstructions,
    /// The provider refused it.
    Refused,
    /// The settings switch it off.
    SwitchedOff,
}

impl Unsent {
    /// The reason as a sentence.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Self::OtherProvider => "The provider's own compaction is not sent: it is another provider's.",
            Self::OtherModel => "The provider's own compaction is not sent: another model made it.",
            Self::OtherInstructions => {
                "The provider's own compaction is not sent: the system prompt or the tools changed after it."
            }
            Self::Refused => "The provider's own compaction is not sent: the provider refused it.",
            Self::SwitchedOff => "The provider's own compaction is not sent: the settings switch it off.",
        }
    }
}

/// A request that a provider's own compaction may go into.
#[derive(Clone, Copy)]
pub struct Reader<'r> {
    /// Its model.
    pub model: &'r ModelRef,
    /// Its format.
    pub api: Api,
    /// Its system prompt and tools.
    pub instructions: &'r Instructions,
    /// Whether the settings allow it.
    pub is_allowed: bool,
}

/// The form of a context with the provider's own compaction, where the request can have it. None: there is no such
/// compaction.
#[must_use]
pub fn form<'c>(context: &'c Context, path: &Path, reader: Reader<'_>) -> Option<Result<&'c NativeForm, Unsent>> {
    let form = context.any_native()?;
    Some(may_be_sent(form.history(), path, reader).map(|()| form))
}

/// The reason for which the newest compaction of a provider on a path is not sent to a model in the format that it is made for.
#[must_use]
pub fn unsent(path: &Path, model: &ModelRef, instructions: &Instructions, is_allowed: bool) -> Option<Unsent> {
    let history = path[path.compaction()?].compaction()?.native()?;
    let api = match history.kind() {
        Kind::Items => Api::OpenaiResponses,
        Kind::Block(_) => Api::Anthropic,
    };
    may_be_sent(history, path, Reader { model, api, instructions, is_allowed }).err()
}

fn may_be_sent(history: &NativeHistory, path: &Path, reader: Reader<'_>) -> Result<(), Unsent> {
    let Reader { model, api, instructions, is_allowed } = reader;
    match history.kind() {
        _ if history.provider() != model.provider => Err(Unsent::OtherProvider),
        Kind::Items if api != Api::OpenaiResponses => Err(Unsent::OtherProvider),
        Kind::Block(_) if api != Api::Anthropic => Err(Unsent::OtherProvider),
        _ if !is_allowed => Err(Unsent::SwitchedOff),
        Kind::Block(bound) if bound.model != model.id => Err(Unsent::OtherModel),
        Kind::Block(bound) if bound.instructions != instructions.fingerprint() => Err(Unsent::OtherInstructions),
        _ if is_refused(path, history) => Err(Unsent::Refused),
        _ => Ok(()),
    }
}

/// Whether an answer after the newest compaction says that its provider refused it.
fn is_refused(path: &Path, history: &NativeHistory) -> bool {
    refusals(path, history).next().is_some()
}

/// Whether an answer is the first one that says that its provider refused the newest compaction.
#[must_use]
pub fn is_first_refusal(path: &Path, answer: &EntryId) -> bool {
    let native = path.compaction().and_then(|place| path[place].compaction()?.native());
    native.is_some_and(|history| refusals(path, history).next() == Some(answer))
}

/// The answers after the newest compaction that say so.
fn refusals<'p>(path: &'p Path, history: &NativeHistory) -> impl Iterator<Item = &'p EntryId> {
    let after = path.compaction().map_or(0, |place| place + 1);
    let says = match history.kind() {
        Kind::Block(_) => support::refuses_block,
        Kind::Items => compact::refuses_item,
    };
    let refuses = move |entry: &&Arc<Entry>| {
        let failed = entry.outline().is_some_and(|outline| outline.failed);
        failed && entry.message_json().and_then(error_of).is_some_and(|error| says(&error))
    };
    path[after..].iter().filter(refuses).map(|entry| &entry.id)
}

impl NativeOrder {
    /// Whether it is Anthropic's, whose text is the summary.
    #[must_use]
    pub fn is_summary(&self) -> bool {
        self.candidate.way.endpoint().is_some_and(|endpoint| endpoint.api == Api::Anthropic)
    }

    /// Whether it is asked for by the session's own request.
    #[must_use]
    pub fn is_on_demand(&self) -> bool {
        matches!(self.candidate.way, Way::OnDemand(_))
    }

    /// The same by OpenAI's address for compactions.
    #[must_use]
    pub fn by_its_address(self) -> Self {
        let Candidate { way, .. } = &self.candidate;
        let way = way.endpoint().cloned().map_or(Way::Client, Way::Compaction);
        Self { candidate: Candidate { way, ..self.candidate }, ..self }
    }

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
        NativeJob { candidate: self.candidate, content, tokens, kind: NativeKind::Beside(None) }
    }
}

/// The beginning of the input: the history of this provider, or else the summary before; and the messages after it.
fn beginning<'a>(
    plan: &Plan,
    context: &'a Context,
    provider: &str,
) -> (Vec<Value>, Option<String>, &'a [ContextMessage]) {
    let place = plan.path().compaction();
    let items = context.native(provider).filter(|native| *native.history().kind() == Kind::Items);
    let native = items.filter(|native| match native.history().covers() {
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
