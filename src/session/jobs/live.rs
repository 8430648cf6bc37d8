//! Requests that begin as the session's own: for a compaction that its provider makes on demand, up to the cut, and for a summary
//! by its own model, whose provider has the request in its cache.

use crate::{
    ask::content::Content,
    compaction::{native::NativeOrder, plan::Plan},
    conversation::{
        entry::{Entry, SummaryForm, native::Bound},
        message::outline::Role,
        path::Path,
    },
    ids::SessionId,
    log::sealed::Blocking,
    models::candidates::{Candidate, Unfit, Way},
    prompts::escape_tags,
    redact::{Clean, Secrets},
    session::state::{
        View,
        request::{Extent, LiveRequest},
    },
    summary::model::writer::{LiveBytes, LiveJob, NativeJob, NativeKind},
    text,
};
use std::sync::Arc;

/// The requests of a session.
pub(super) struct Live {
    /// The view on its path.
    pub view: Box<View>,
    /// The session.
    pub session: SessionId,
    /// The proof that a thread of the pool may wait for the disk.
    pub may_block: fn() -> Blocking,
    /// Whether the provider of the session's model has the last request in its cache.
    pub is_warm: bool,
}

impl Live {
    /// The session's own request for a path, where its provider has it in its cache and its model is one of the candidates.
    /// `part`: the sentence about the part that the summary is of. Blocks.
    pub fn request(
        &self,
        path: &Path,
        part: Option<Clean>,
        candidates: &[Result<Candidate, Unfit>],
    ) -> Option<LiveJob> {
        let model = self.view.model(path).filter(|_| self.is_warm)?;
        // Another model gave the last answer, and this one may not have seen its secrets.
        path.answered_by().filter(|last| *last == model)?;
        if !self.view.begins_as_the_last_request(path) || has_missed(path) {
            return None;
        }
        let candidate = candidates.iter().flatten().find(|candidate| candidate.model == model)?;
        let Way::Provider(endpoint) = &candidate.way else { return None };
        let live = self.view.live_request(path, &self.session, &model, endpoint.api, &(self.may_block)()).ok()?;
        let LiveRequest { request, usage, .. } = live;
        Some(LiveJob {
            reasoning: request.reasoning,
            cache: request.cache.clone(),
            content: Content::live(request),
            tokens: usage.context_tokens,
            part,
            model,
        })
    }

    /// The request for a compaction on demand of the part that a plan summarizes. Blocks.
    /// None where the work is stopped.
    pub fn compaction(&self, order: NativeOrder, plan: &Plan, secrets: Secrets) -> Option<NativeJob> {
        let Self { view, session, may_block, .. } = self;
        let fallback = (!order.is_summary()).then(|| order.clone().by_its_address().job(plan, secrets));
        let NativeOrder { candidate, is_certain, .. } = order;
        let api = candidate.way.endpoint()?.api;
        let (path, extent) = (plan.path(), Extent::Before(plan.first_kept()));
        let live = view.request_of(path, extent, session, &candidate.model, api, &may_block());
        let LiveRequest { request, tokens, .. } = live.ok()?;
        let (reasoning, cache) = (request.reasoning, request.cache.clone());
        let bound = Bound { model: candidate.model.id.clone(), instructions: view.instructions().fingerprint() };
        // The model has seen all of it, unless another one gave the last answer.
        let has_seen = path.answered_by().is_none_or(|model| model == candidate.model);
        let content = if has_seen { Content::live(request) } else { Content::of(request, secrets) };
        let live = LiveBytes { reasoning, cache };
        let kind = match fallback {
            None => NativeKind::Summary { bound, is_certain, live },
            Some(fallback) => NativeKind::Beside(Some((live, Box::new(fallback)))),
        };
        Some(NativeJob { candidate, content, tokens, kind })
    }
}

/// Whether the request for the summary in force was a session's own and read less than half of it from the cache: a host may send
/// other bytes than the daemon gives.
fn has_missed(path: &Path) -> bool {
    let summary = path.compaction().and_then(|place| path[place].compaction()?.preserved()?.summary.requests);
    summary.is_some_and(|it| it.live_failed || it.form == Some(SummaryForm::LiveRequest) && it.cached < it.input)
}

/// The sentence about the messages at the end that stay, so that no summary is of them. None where no message there is known by its
/// beginning: the summary is then of more than it has to be.
pub(super) fn kept_part(path: &Path, kept: &[Arc<Entry>], secrets: Secrets) -> Option<Clean> {
    let from = kept.iter().find_map(|entry| beginning(path, entry, secrets))?;
    let what = "stay in the conversation beside the record. Leave out whatever they alone say.";
    Some(secrets.clean(&format!("The messages from {from} on {what}")))
}

/// The sentence about the messages of a branch that is left, which a summary is of. None where its first message is not known by its
/// beginning.
pub(super) fn left_part(path: &Path, left: &[Arc<Entry>], secrets: Secrets) -> Option<Clean> {
    let first = left.iter().find(|entry| entry.in_context())?;
    let from = beginning(path, first, secrets)?;
    let what = "are that branch. The messages before them stay in the conversation: leave them out.";
    Some(secrets.clean(&format!("The messages from {from} on {what}")))
}

/// The beginning of a text that a user or a model said, in quotes. None where it is short, or another message begins so.
fn beginning(path: &Path, entry: &Entry, secrets: Secrets) -> Option<String> {
    /// The longest and the shortest beginning by which a message is known, in characters.
    const LONGEST: usize = 120;
    const SHORTEST: usize = 8;
    let of = |entry: &Entry| {
        let is_said = entry.is_from(Role::User) || entry.is_from(Role::Assistant);
        let text = entry.message_once().filter(|_| is_said)?.text();
        let words = text.split_whitespace().take(LONGEST).collect::<Vec<_>>().join(" ");
        Some(text::head(&words, LONGEST).to_owned()).filter(|text| text.chars().count() >= SHORTEST)
    };
    let own = of(entry)?;
    let is_another = |other: &&Arc<Entry>| other.id != entry.id && of(other).is_some_and(|other| other == own);
    let is_known = !path.iter().any(|other| is_another(&other));
    is_known.then(|| format!("\u{201c}{}\u{201d}", escape_tags(&secrets.clean(&own))))
}
