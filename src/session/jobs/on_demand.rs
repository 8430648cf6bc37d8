//! The request for a compaction that a provider makes on demand: the session's own request, up to the cut.

use crate::{
    ask::content::Content,
    compaction::{native::NativeOrder, plan::Plan},
    conversation::entry::native::Bound,
    ids::SessionId,
    log::sealed::Blocking,
    provider::Api,
    redact::Secrets,
    session::state::{
        View,
        request::{Extent, LiveRequest},
    },
    summary::model::writer::{NativeJob, NativeKind},
};

/// The requests of a session.
pub(super) struct Live {
    /// The view on its path.
    pub view: Box<View>,
    /// The session.
    pub session: SessionId,
    /// The proof that a thread of the pool may wait for the disk.
    pub may_block: fn() -> Blocking,
}

impl Live {
    /// The request for Anthropic's compaction of the part that a plan summarizes. Blocks.
    /// None where the work is stopped.
    pub fn compaction(self, order: NativeOrder, plan: &Plan, secrets: Secrets) -> Option<NativeJob> {
        let Self { view, session, may_block } = self;
        let NativeOrder { candidate, is_certain, .. } = order;
        let (path, extent) = (plan.path(), Extent::Before(plan.first_kept()));
        let live = view.request_of(path, extent, &session, &candidate.model, Api::Anthropic, &may_block());
        let LiveRequest { request, tokens, .. } = live.ok()?;
        let (reasoning, cache) = (request.reasoning, request.cache.clone());
        let bound = Bound { model: candidate.model.id.clone(), instructions: view.instructions().fingerprint() };
        // The model has seen all of it, unless another one gave the last answer.
        let has_seen = path.answered_by().is_none_or(|model| model == candidate.model);
        let content = if has_seen { Content::live(request) } else { Content::of(request, secrets) };
        let kind = NativeKind::Summary { bound, is_certain, reasoning, cache };
        Some(NativeJob { candidate, content, tokens, kind })
    }
}
