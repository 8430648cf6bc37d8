//! A session that goes on with a cold prompt cache: the notice about its costs, and the compaction that starts once for it.

use crate::{
    compaction::cold,
    conversation::{message::outline::Role, path::Path},
    ids::{CallId, EntryId},
    protocol::notices::NoticeCode,
    session::{core::base::Base, state::State},
    settings::ColdResumption,
};
use jiff::Timestamp;
use std::collections::HashSet;

/// The pauses of a session after which its cache was cold. A pause begins at the newest report.
#[derive(Default)]
pub(in crate::session::core) struct ColdPauses {
    /// The pauses whose costs the client was told.
    told: HashSet<EntryId>,
    /// The pauses after which a compaction has started.
    compacted: HashSet<EntryId>,
}

impl ColdPauses {
    /// The size over which the context is compacted because its cache is cold, in tokens. One compaction starts for each pause: after
    /// one that was cancelled or failed, the session goes on as it is.
    pub fn compact_over(&self, state: &State, now: Timestamp) -> Option<u64> {
        let fullness = state.measure();
        if fullness.compaction.cold_resume != ColdResumption::Compact {
            return None;
        }
        let resume = state.cold_resume(now).filter(|resume| !self.compacted.contains(&resume.report))?;
        // A message closes the calls before it for a model, and their results may still come.
        if has_calls_without_results(state.path()) {
            return None;
        }
        Some(cold::bound(&fullness).min(resume.tokens))
    }

    /// A compaction starts for the pause before now.
    pub fn compacts(&mut self, state: &State, now: Timestamp) {
        self.compacted.extend(state.cold_resume(now).map(|resume| resume.report));
    }

    /// Sends the notice about the costs, once for each pause. A session that is only read does not go on.
    pub fn report(&mut self, base: &Base) {
        let mode = base.state.measure().compaction.cold_resume;
        if mode != ColdResumption::Notice || base.writable().is_err() {
            return;
        }
        let Some(resume) = base.state.cold_resume(base.stamps.now()) else { return };
        if !self.told.contains(&resume.report) {
            let title = "The next request reads a large context that no cache holds any more";
            base.effects.inform(NoticeCode::ColdResume, title, resume.detail());
            self.told.insert(resume.report);
        }
    }
}

/// Whether a call of the newest answer has no result.
fn has_calls_without_results(path: &Path) -> bool {
    let Some(place) = path.iter().rposition(|entry| entry.is_from(Role::Assistant)) else { return false };
    let results: HashSet<&CallId> = path[place..].iter().filter_map(|it| it.outline()?.answers.as_ref()).collect();
    path[place].outline().is_some_and(|outline| outline.calls.iter().any(|call| !results.contains(&call.id)))
}
