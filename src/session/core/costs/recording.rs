//! The write of costs whose compaction was not written.

use super::CostEntries;
use crate::{
    conversation::entry::Entry,
    protocol::{errors::Failure, notices::NoticeCode},
    session::core::{Core, parts::log_gate::Write},
};
use std::sync::Arc;

impl Write for CostEntries {
    fn entries(&self) -> Vec<Arc<Entry>> {
        self.entries.clone()
    }

    fn written(self: Box<Self>, core: &mut Core) {
        self.entries.iter().for_each(|entry| core.effects.announce(entry, None));
    }

    fn not_written(self: Box<Self>, core: &mut Core, failure: &Failure) {
        if self.len() == 0 {
            tracing::warn!(%failure, "the failure of a summary ahead could not be recorded");
            return;
        }
        core.effects.warn(
            NoticeCode::CostsNotRecorded,
            "The costs of model requests could not be recorded",
            format!("{failure}. session/usage lacks {} of them.", self.len()),
        );
    }

    fn again(self: Box<Self>, core: &mut Core) {
        core.costs.put_back(*self);
    }
}
