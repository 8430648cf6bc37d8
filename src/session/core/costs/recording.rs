//! The write of costs whose compaction was not written.

use super::CostEntries;
use crate::{
    conversation::entry::Entry,
    protocol::{errors::Failure, notices::NoticeCode},
    session::core::{
        base::Base,
        step::{Step, Write},
    },
};
use std::sync::Arc;

impl Write for CostEntries {
    fn entries(&self) -> Vec<Arc<Entry>> {
        self.entries.clone()
    }

    fn written(self: Box<Self>, base: &mut Base) -> Vec<Step> {
        self.entries.iter().for_each(|entry| base.effects.announce(entry, None));
        Vec::new()
    }

    fn not_written(self: Box<Self>, base: &mut Base, failure: &Failure) -> Vec<Step> {
        if self.len() == 0 {
            tracing::warn!(%failure, "the failure of a summary ahead could not be recorded");
            return Vec::new();
        }
        base.effects.warn(
            NoticeCode::CostsNotRecorded,
            "The costs of model requests could not be recorded",
            format!("{failure}. session/usage lacks {} of them.", self.len()),
        );
        Vec::new()
    }

    fn again(self: Box<Self>, base: &mut Base) -> Vec<Step> {
        base.costs.put_back(*self);
        Vec::new()
    }
}
