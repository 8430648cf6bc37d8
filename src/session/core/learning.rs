//! Windows that an overflow teaches.

use super::{Core, commands::append};
use crate::{
    conversation::entry::Entry,
    models::{self, ModelRef, SaidBy},
    provider::overflow::{self, Meaning, Overflow},
    session::effects::Effect,
};
use std::sync::Arc;

impl Core {
    /// Learns the window that the error of a failed answer states. Where it states none and the window is a default, the
    /// size of the context that was refused bounds it for this session. A report of a longer prompt lifts that bound.
    pub(super) fn learn_from(&mut self, entries: &[Arc<Entry>]) {
        if !self.state.settings().settings.tokens.learn_window {
            return;
        }
        let session = self.state.model(self.state.path());
        for outline in entries.iter().filter_map(|entry| entry.outline()) {
            if let (Some(usage), Some(model)) = (outline.measured(), outline.model.as_ref().or(session.as_ref())) {
                self.state.learned.disprove(model, usage.prompt_tokens());
            }
        }
        for entry in entries.iter().filter(|entry| entry.outline().is_some_and(|outline| outline.failed)) {
            let Some(failed) = append::failed_answer(entry) else { continue };
            let Meaning::Overflow(Overflow { limit, .. }) = overflow::meaning(None, &failed.error) else { continue };
            let Some(model) = failed.model.or_else(|| self.state.model(self.state.path())) else { continue };
            match limit {
                Some(window) if self.state.learned.learn(&model, window) => {
                    self.effects.push(Effect::Learn(model, window));
                }
                Some(_) => {}
                None => {
                    if let Some(size) = self.refused_size(&model) {
                        self.state.learned.see(&model, size);
                    }
                }
            }
        }
    }

    /// The size of the context that a model has just refused, if its window is not known better: from no source, or from
    /// an earlier refusal of a size that is a little larger.
    fn refused_size(&self, model: &ModelRef) -> Option<u64> {
        /// The least part of a learned window, in percent, at which a refusal corrects the window.
        const NEARLY_FULL: u64 = 80;
        if self.state.model(self.state.path()).as_ref() != Some(model) {
            return None;
        }
        let window = models::window(&self.state.settings().settings, self.state.learned.taught(model), Some(model));
        let size = self.state.measure().context_tokens;
        let corrects = match window.source {
            SaidBy::Default => size < window.tokens,
            SaidBy::Learned => size < window.tokens && size >= window.tokens / 100 * NEARLY_FULL,
            SaidBy::Setting | SaidBy::Catalog => false,
        };
        corrects.then_some(size)
    }
}
