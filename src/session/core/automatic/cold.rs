//! A session that goes on with a cold prompt cache: the notice about its costs, and the compaction that starts once for it.

use crate::{
    compaction::cold,
    ids::EntryId,
    protocol::notices::NoticeCode,
    session::{core::base::Base, state::State},
    settings::ColdResumption,
};
use jiff::Timestamp;

/// The pauses of a session after which its cache was cold. A pause begins at the newest report.
#[derive(Default)]
pub(in crate::session::core) struct ColdPauses {
    /// The pause whose costs the client was told last.
    told: Option<EntryId>,
    /// The pause after which a compaction has started.
    compacted: Option<EntryId>,
}

impl ColdPauses {
    /// The size over which the context is compacted because its cache is cold, in tokens. One compaction starts for each pause: after
    /// one that was cancelled or failed, the session goes on as it is.
    pub fn compact_over(&self, state: &State, now: Timestamp) -> Option<u64> {
        let fullness = state.measure();
        if fullness.compaction.cold_resume != ColdResumption::Compact {
            return None;
        }
        let resume = state.cold_resume(now).filter(|resume| self.compacted.as_ref() != Some(&resume.report))?;
        Some(cold::bound(&fullness).min(resume.tokens))
    }

    /// A compaction starts for the pause before now.
    pub fn compacts(&mut self, state: &State, now: Timestamp) {
        self.compacted = state.cold_resume(now).map(|resume| resume.report);
    }

    /// Sends the notice about the costs, once for each pause. A session that is only read does not go on.
    pub fn report(&mut self, base: &Base) {
        let mode = base.state.measure().compaction.cold_resume;
        if mode != ColdResumption::Notice || base.writable().is_err() {
            return;
        }
        let Some(resume) = base.state.cold_resume(base.stamps.now()) else { return };
        if self.told.as_ref() != Some(&resume.report) {
            let title = "The next request reads a large context that no cache holds any more";
            base.effects.inform(NoticeCode::ColdResume, title, resume.detail());
            self.told = Some(resume.report);
        }
    }
}
